"""Decides that what has to be stored is stored, though the task that stores it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def surely(work: Coroutine[Any, Any, None]) -> None:
    """Await work to its end; a cancellation that comes meanwhile, however often, is raised after it."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:  # noqa: PERF203  # once, mostly
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled
