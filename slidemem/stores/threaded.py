"""Decides how a store whose methods take a while is used from event loops: on one worker thread of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from slidemem.archive import Segment
from slidemem.driver import drive
from slidemem.index import MOST
from slidemem.recall import Document, Matches
from slidemem.state import Branch, Change, Entry, Held, Key, Lease, Pin, Recount, Rewrite, Snapshot, Totals, Whole
from slidemem.stores.base import Store

P = ParamSpec("P")
T = TypeVar("T")


class Threaded:
    """The face of a store for async callers: the same calls, one after the other, on a thread of its own.

    It belongs to no event loop: several may use it at once, and one may end. A call whose task is cancelled
    still happens, whole and in its turn.

    Args:
        store: one whose methods never suspend, and may be called from any thread.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._workers: dict[int, ThreadPoolExecutor] = {}  # by process: a forked child has no thread of its parent's

    def __repr__(self) -> str:
        return f"Threaded({self._store!r})"

    def close(self) -> None:
        """End the thread once its calls are done; a later call starts another."""
        worker = self._workers.pop(os.getpid(), None)
        if worker is not None:
            worker.shutdown()

    async def _run(self, method: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
        def call() -> T:
            return drive(method(*args, **kwargs), method.__name__)

        pid = os.getpid()
        worker = self._workers.get(pid) or self._workers.setdefault(pid, ThreadPoolExecutor(1, "slidemem-store"))
        done = asyncio.get_running_loop().run_in_executor(worker, call)
        done.add_done_callback(lambda one: one.cancelled() or one.exception())  # which a cancelled caller never hears
        return await asyncio.shield(done)

    # -------------------------------------------------------------- transcript

    async def append(
        self,
        session: str,
        entries: Sequence[Entry],
        metadata: Sequence[tuple[str, str]] | None = None,
        user: str | None = None,
    ) -> Totals:
        """See `Store.append`."""
        return await self._run(self._store.append, session, entries, metadata, user)

    async def read(self, session: str, start: int = 0, end: int | None = None) -> tuple[Entry, ...]:
        """See `Transcript.read`."""
        return await self._run(self._store.read, session, start, end)

    async def pick(self, session: str, seqs: Sequence[int]) -> tuple[Entry, ...]:
        """See `Store.pick`."""
        return await self._run(self._store.pick, session, seqs)

    async def matching(self, session: str, terms: Sequence[str], before: int, most: int = MOST) -> Matches:
        """See `Postings.matching`."""
        return await self._run(self._store.matching, session, terms, before, most)

    async def documents(self, session: str, seqs: Collection[int]) -> Mapping[int, Document]:
        """See `Postings.documents`."""
        return await self._run(self._store.documents, session, seqs)

    async def keys(self, session: str) -> tuple[Key, ...]:
        """See `Store.keys`."""
        return await self._run(self._store.keys, session)

    async def cut(self, session: str, keep: int) -> None:
        """See `Transcript.cut`."""
        await self._run(self._store.cut, session, keep)

    async def branches(self, session: str) -> tuple[Branch, ...]:
        """See `Store.branches`."""
        return await self._run(self._store.branches, session)

    # -------------------------------------------------------------- records

    async def held(self, session: str) -> Held:
        """See `Records.held`."""
        return await self._run(self._store.held, session)

    async def describe(self, session: str, metadata: Sequence[tuple[str, str]]) -> None:
        """See `Records.describe`."""
        await self._run(self._store.describe, session, metadata)

    async def commit(self, session: str, expected: int, change: Change) -> bool:
        """See `Records.commit`."""
        return await self._run(self._store.commit, session, expected, change)

    async def segment(self, session: str, id_: str) -> Segment | None:
        """See `Records.segment`."""
        return await self._run(self._store.segment, session, id_)

    async def pin(self, session: str, pin: Pin, user: str | None = None) -> None:
        """See `Records.pin`."""
        await self._run(self._store.pin, session, pin, user)

    async def unpin(self, session: str, id_: str) -> bool:
        """See `Records.unpin`."""
        return await self._run(self._store.unpin, session, id_)

    async def claim(self, session: str, expected: int, lease: Lease, now: float) -> bool:
        """See `Records.claim`."""
        return await self._run(self._store.claim, session, expected, lease, now)

    async def release(self, session: str, holder: str) -> None:
        """See `Records.release`."""
        await self._run(self._store.release, session, holder)

    async def clear(self, session: str) -> None:
        """See `Records.clear`."""
        await self._run(self._store.clear, session)

    # -------------------------------------------------------------- all together

    async def snapshot(self, session: str) -> Snapshot:
        """See `Store.snapshot`."""
        return await self._run(self._store.snapshot, session)

    async def recount(self, session: str, expected: int, counts: Recount) -> None:
        """See `Store.recount`."""
        await self._run(self._store.recount, session, expected, counts)

    async def rewrite(
        self,
        session: str,
        expected: tuple[int, int],
        rewrite: Rewrite,
        metadata: Sequence[tuple[str, str]] | None = None,
        user: str | None = None,
    ) -> Totals | None:
        """See `Store.rewrite`."""
        return await self._run(self._store.rewrite, session, expected, rewrite, metadata, user)

    async def whole(self, session: str) -> Whole:
        """See `Store.whole`."""
        return await self._run(self._store.whole, session)

    async def restore(self, session: str, expected: tuple[int, int], whole: Whole) -> bool:
        """See `Store.restore`."""
        return await self._run(self._store.restore, session, expected, whole)

    async def sessions(self, user: str | None = None) -> tuple[str, ...]:
        """See `Store.sessions`."""
        return await self._run(self._store.sessions, user)
