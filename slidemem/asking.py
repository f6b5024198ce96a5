"""Decides how a consolidator is called, by sync callers and by async ones, and for how long it is waited for.

A sync one is called on a thread of its own where there is a limit, since nothing else can leave it behind; it then
goes on, and its answer is dropped.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from typing import Final, TypeVar

from slidemem.consolidate import Consolidator, ExtractiveConsolidator, FunctionConsolidator
from slidemem.request import SummaryRequest

T = TypeVar("T")
Ask = Callable[[SummaryRequest], Awaitable[str]]

_NAME: Final = "slidemem-call"


def asking(consolidator: Consolidator, seconds: float | None) -> Ask:
    """How a sync caller asks: a coroutine that never suspends.

    Args:
        consolidator: who is asked.
        seconds: how long one answer may take; None for as long as it takes. Then a `TimeoutError` is raised.
    """
    limit = _limit(consolidator, seconds)

    async def ask(request: SummaryRequest) -> str:
        return within(limit, lambda: consolidator.summarize(request))

    return ask


def asking_async(consolidator: Consolidator, seconds: float | None) -> Ask:
    """The same for an async caller; a sync function is called on a thread, and does not hold the event loop."""
    limit = _limit(consolidator, seconds)

    async def ask(request: SummaryRequest) -> str:
        try:
            return await asyncio.wait_for(_awaited(consolidator, request), limit)
        except asyncio.TimeoutError as late:  # until Python 3.11 not the TimeoutError that all others raise
            raise (TimeoutError(str(late)) if str(late) or limit is None else _late(limit)) from None

    return ask


def within(seconds: float | None, call: Callable[[], T], what: str = "summary") -> T:
    """What a call returns: on a thread that is left behind when it takes longer; None waits for ever, without one.

    Args:
        seconds: to wait for.
        call: what is called.
        what: it makes, as the error names it.

    Raises:
        TimeoutError: it took longer, and goes on.
    """
    if seconds is None:
        return call()
    answer = on_thread(call)
    if not wait([answer], seconds).done:
        raise _late(seconds, what)
    return answer.result()


async def _awaited(consolidator: Consolidator, request: SummaryRequest) -> str:
    if not isinstance(consolidator, FunctionConsolidator) or consolidator.async_only:
        return await consolidator.asummarize(request)
    function = consolidator
    answer = await asyncio.wrap_future(on_thread(lambda: function.called(request)))
    return await answer if inspect.isawaitable(answer) else answer  # type: ignore[no-any-return]  # as above


def _limit(consolidator: Consolidator, seconds: float | None) -> float | None:
    """Seconds to wait for a consolidator; one that needs no model, or keeps its own time, is waited for."""
    own = isinstance(consolidator, ExtractiveConsolidator) or getattr(consolidator, "keeps_time", False)
    return None if own else seconds


def on_thread(call: Callable[[], T]) -> Future[T]:
    """What a call returns, on a thread that keeps no process from ending."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # so that who stops waiting does not take the place of its result
    context = contextvars.copy_context()

    def work() -> None:
        try:
            done.set_result(context.run(call))
        except BaseException as error:  # noqa: BLE001  # whatever it is, it is raised to whoever waits
            done.set_exception(error)

    threading.Thread(target=work, name=_NAME, daemon=True).start()
    return done


def _late(seconds: float, what: str = "summary") -> TimeoutError:
    return TimeoutError(f"no {what} within {seconds:g} seconds")
