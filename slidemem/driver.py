"""Decides how a flow runs for a sync caller: to its end, at once, with no event loop."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from slidemem.errors import AsyncOnly

T = TypeVar("T")


def drive(flow: Coroutine[Any, Any, T], twin: str) -> T:
    """Run a flow that never suspends; works inside a running event loop too.

    Args:
        flow: a coroutine that has not started.
        twin: the async method to name when it does suspend.

    Raises:
        AsyncOnly: it suspended.
    """
    try:
        flow.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]  # StopIteration.value has no type
    flow.close()
    raise AsyncOnly(twin)
