"""Decides when due work is done: inline, behind the caller's back, or only when asked.

Four lines over `settle` each, and threads and tasks for the second: a sync caller's work runs on a worker thread,
an async caller's in a task of its event loop. A session is worked on by one of them at a time; what is appended
meanwhile is looked at before it ends. Nothing is lost where one is killed: what is due stays due.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
import time
import weakref
from collections import deque
from concurrent.futures import Future, wait
from contextvars import ContextVar
from typing import Final

from slidemem.driver import drive
from slidemem.errors import AsyncOnly
from slidemem.meaning import catch_up, keep_up
from slidemem.session import Session
from slidemem.settle import postpone, settle

_WORKERS: Final = 4  # threads of one memory at most; they wait for a model most of the time


async def inline(session: Session) -> None:
    """Consolidate once, now that the turn is answered, or the window past its limit; embed some of what has left."""
    await settle(session, waits=True)
    await keep_up(session)


async def manual(session: Session) -> None:
    """Leave it to `consolidate()`, or to `due`, `run` and `commit`."""


async def everything(session: Session) -> None:
    """Consolidate until nothing is due, and embed what has left the window."""
    while await settle(session):
        pass
    await catch_up(session)


class Background:
    """Runs what is due without keeping the caller waiting.

    Args:
        patience: seconds that the end of the process waits.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self.begin()
        _ALL.add(self)

    def begin(self) -> None:
        """Start with nothing: at first, and in a forked process, which has none of its parent's threads."""
        self._lock = threading.Lock()
        self._work: dict[str, _Work] = {}  # by session: what waits or runs
        self._queue: deque[tuple[Session, _Work]] = deque()
        self._workers = 0

    async def on_thread(self, session: Session) -> None:
        """Hand a sync caller's session to a worker thread; never suspends."""
        with self._lock:
            work = self._claimed(session)
            if work is None:
                return
            self._queue.append((session, work))
            hire = self._workers < _WORKERS
            self._workers += hire
        if hire:
            self._hire()

    async def in_task(self, session: Session) -> None:
        """Start a task for an async caller's session."""
        loop = asyncio.get_running_loop()
        with self._lock:
            work = self._claimed(session)
        if work is not None:
            work.task = loop.create_task(self._toil_async(session, work), name="slidemem-background")
            work.task.add_done_callback(lambda _: self._end(session, work))  # however it ends, begun or not

    def flush(self, session: str, seconds: float) -> bool:
        """Wait until nothing of a session waits or runs; False when it still does, or the caller is at it.

        Raises:
            AsyncOnly: it waits for a task of the event loop that this thread runs.
        """
        with self._lock:
            work = self._work.get(session)
        if work is None:
            return True
        if work.is_mine():
            return False
        with contextlib.suppress(RuntimeError):
            if work.task is not None and work.task.get_loop() is asyncio.get_running_loop():
                raise AsyncOnly("aflush")
        return not wait([work.done], min(seconds, threading.TIMEOUT_MAX)).not_done

    async def aflush(self, session: str, seconds: float) -> bool:
        """Async twin of `flush`."""
        with self._lock:
            work = self._work.get(session)
        if work is None:
            return True
        if work.is_mine():
            return False
        patience = min(seconds, threading.TIMEOUT_MAX)
        done, _ = await asyncio.wait([asyncio.wrap_future(work.done)], timeout=patience)
        return bool(done)

    def drain(self) -> None:
        """Wait for everything, as long as the patience lasts."""
        end = time.monotonic() + min(self._patience, threading.TIMEOUT_MAX)
        with self._lock:
            threads = [work for work in self._work.values() if work.task is None]
        for work in threads:
            wait([work.done], max(0.0, end - time.monotonic()))

    def _claimed(self, session: Session) -> _Work | None:
        """New work on a session; None, and a word to the one who is at it, when there is some already."""
        work = self._work.get(session.id)
        if work is not None and not work.is_stale():
            work.again = True
            return None
        self._work[session.id] = work = _Work()
        # What was registered last runs first at exit: before a store that was made meanwhile closes its file.
        atexit.unregister(_drain_all)
        atexit.register(_drain_all)
        return work

    def _hire(self) -> None:
        """Start a worker; at the end of the process there are none to be had, and what is due stays due."""
        try:
            threading.Thread(target=self._toil, name="slidemem-background", daemon=True).start()
        except RuntimeError:
            while waiting := self._next():
                self._end(*waiting)

    def _toil(self) -> None:
        """A worker thread's life: until nothing waits."""
        while waiting := self._next():
            session, work = waiting
            _AT_WORK.set(work)
            while self._goes_on(session, work):
                with contextlib.suppress(BaseException):  # a thread has nobody to raise to, and others wait behind it
                    _work_off(session)
            self._end(session, work)

    def _next(self) -> tuple[Session, _Work] | None:
        """What waits longest; None ends the worker that asked."""
        with self._lock:
            if self._queue:
                return self._queue.popleft()
            self._workers -= 1
            return None

    async def _toil_async(self, session: Session, work: _Work) -> None:
        _AT_WORK.set(work)
        while self._goes_on(session, work):
            try:
                await everything(session)
            except Exception as fault:  # noqa: BLE001, PERF203  # nobody awaits the task
                postpone(session, fault)

    def _goes_on(self, session: Session, work: _Work) -> bool:
        """Whether somebody asked since the last look; when nobody did, who asks from now on starts new work."""
        with self._lock:
            asked, work.again = work.again, False
            if not asked and self._work.get(session.id) is work:
                del self._work[session.id]
        return asked

    def _end(self, session: Session, work: _Work) -> None:
        """Tell those who wait, whether the work was done or its task cancelled."""
        work.again = False
        self._goes_on(session, work)
        work.done.set_result(None)


def _work_off(session: Session) -> None:
    try:
        drive(everything(session), "aflush")
    except BaseException as fault:  # noqa: BLE001  # whatever it is, the rest stays due
        postpone(session, fault)


class _Work:
    """What waits or runs for one session."""

    def __init__(self) -> None:
        self.again = True
        self.done: Future[None] = Future()
        self.task: asyncio.Task[None] | None = None

    def is_mine(self) -> bool:
        """Whether who asks is the one who is at it, or a summariser that it waits for, on whatever thread."""
        return _AT_WORK.get() is self

    def is_stale(self) -> bool:
        """Whether it was a task of an event loop that is gone."""
        return self.task is not None and self.task.get_loop().is_closed()


_AT_WORK: ContextVar[_Work | None] = ContextVar("slidemem_at_work", default=None)
_ALL: weakref.WeakSet[Background] = weakref.WeakSet()


def _drain_all() -> None:
    for background in list(_ALL):
        background.drain()


def _begin_all() -> None:
    for background in list(_ALL):
        background.begin()


if hasattr(os, "register_at_fork"):  # pragma: no branch  # not on Windows
    os.register_at_fork(after_in_child=_begin_all)
