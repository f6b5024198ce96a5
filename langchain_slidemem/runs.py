"""Decides what a run of `RunnableWithMessageHistory` was given, so that only what is new of it is stored.

That class reads a history when a run begins, and again when it ends, to tell by the length of what it reads which of
the run's messages are new. Meanwhile the session may have become longer or shorter, and other runs may have begun on
the same object. So what is read at the end of a run is never longer than what it was given, and what is too much then
is taken off when it is stored. Who reads is told by the code that calls: a context variable would not be there in
async runs on Python 3.10.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Sequence
from itertools import islice
from traceback import walk_stack
from types import CodeType
from typing import Final, Literal

from langchain_slidemem.handed import begins_with, unsaid
from slidemem import Message

Moment = Literal["begin", "end"]
View = tuple[Message, ...]

_DEEPEST: Final = 10  # calls: ours, then a subclass's or those of a history that wraps ours, then LangChain's
_REMEMBERED: Final = 256  # views of an object; of a run that raised nobody hears any more


def _codes() -> dict[CodeType, Moment]:
    """What in LangChain reads a history at which moment of a run."""
    try:
        from langchain_core.runnables.history import RunnableWithMessageHistory as Upstream  # noqa: PLC0415  # see below
    except ImportError:  # langchain-core 2.0 announces to be without it
        return {}
    moments: dict[Moment, tuple[Callable[..., object], ...]] = {
        "begin": (Upstream._enter_history, Upstream._aenter_history),  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        "end": (Upstream._exit_history, Upstream._aexit_history),  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    }
    return {function.__code__: moment for moment, functions in moments.items() for function in functions}


_CODES: Final = _codes()


def moment() -> Moment | None:
    """The moment of a run that the caller of the member that asks this is at; None outside of a run's ends."""
    callers = islice(walk_stack(inspect.currentframe()), _DEEPEST)
    return next((_CODES[frame.f_code] for frame, _ in callers if frame.f_code in _CODES), None)


class Runs:
    """What the runs of one history object were given, as long as they have not ended."""

    def __init__(self) -> None:
        self._views: list[View] = []
        self._lock = threading.Lock()
        self._read = threading.local()  # an end reads and stores without a break

    def begin(self, view: View) -> None:
        """A run begins, and was given this."""
        with self._lock:
            self._views = [*self._views[1 - _REMEMBERED :], view]

    def ending(self) -> View:
        """What a run that ends is to read: nothing that is longer than what it was given."""
        with self._lock:
            shortest = min(self._views, key=len, default=())
        self._read.length = len(shortest)
        return shortest

    def end(self, messages: Sequence[Message], same: Callable[[int, int], bool]) -> list[int]:
        """The places of what is new in the messages of a run that ends.

        Args:
            messages: what it was given beyond what it read at its end, what was asked, what it returned.
            same: whether the messages at two places are one and the same, whatever they say.
        """
        length, self._read.length = getattr(self._read, "length", None), None
        with self._lock:
            views = list(self._views)
        explained = [(new, view) for view in views if (new := _new(messages, view, length, same))]
        if not explained:
            return list(range(len(messages)))
        best, view = min(explained, key=lambda one: len(one[0]))
        self._drop(view)
        return best

    def _drop(self, view: View) -> None:
        with self._lock:
            at = next((at for at, one in enumerate(self._views) if one is view), None)
            if at is not None:
                del self._views[at]


def _new(messages: Sequence[Message], view: View, length: int | None, same: Callable[[int, int], bool]) -> list[int]:
    """The places of what is new if this is what the run was given; none where it cannot be."""
    over = () if length is None else view[length:]
    if not begins_with(messages, over):
        return []
    first = len(over)
    return [first + at for at in unsaid(messages[first:], view, lambda one, other: same(first + one, first + other))]
