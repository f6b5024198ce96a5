"""Keeps sessions in an SQLite database: on a file that threads and processes share, or in memory.

Decides which changes are one transaction, and when one is refused. Connections are `sqlite_file.py`'s, rows
`sqlite_rows.py`'s.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import get_args

from slidemem.archive import Segment
from slidemem.errors import ConfigurationError
from slidemem.index import MOST
from slidemem.recall import Document, Matches
from slidemem.state import (
    Branch,
    Change,
    Entry,
    Held,
    Key,
    Lease,
    Pin,
    Record,
    Recount,
    Rewrite,
    Snapshot,
    Totals,
    Whole,
)
from slidemem.stores import sqlite_postings as postings
from slidemem.stores import sqlite_rows as rows
from slidemem.stores.base import Store
from slidemem.stores.parsed import Latest, Parsed
from slidemem.stores.sqlite_file import Connections, Synchronous
from slidemem.stores.threaded import Threaded

_DAY = 86_400


class _Here:
    """What one process has of a store."""

    def __init__(self, connections: Connections) -> None:
        self.connections = connections
        self.latest = Latest()
        self.counting = Lock()


class SQLiteStore:
    """A store on SQLite; its methods never suspend, and any thread and process may call them.

    The file must be on a disk of this machine, since processes share its log through memory. `with` the store, or
    `close` it, when the file is to be let go before the process ends.

    Args:
        path: of the file, which is made if need be; None or `:memory:` for a database in memory.
        busy_seconds: how long a call waits for other writers before it raises `StoreBusy`.
        synchronous: `full`: what was written outlives a power cut; `normal`: it outlives the end of the process,
            and a power cut may take the last changes, each of them whole.

    Attributes:
        rows_read: entries handed out so far, for those who measure.

    Raises:
        ConfigurationError: an argument is wrong.
        StoreError: the file cannot be used, is another program's, or of a newer slidemem. Methods raise it too.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        busy_seconds: float = 30.0,
        synchronous: Synchronous = "full",
    ) -> None:
        self._path = _checked(path)
        if not isinstance(busy_seconds, (int, float)) or not 0 <= busy_seconds <= _DAY:
            raise ConfigurationError(f"busy_seconds must be from 0 to {_DAY} seconds, got {busy_seconds!r:.80}")
        if synchronous not in get_args(Synchronous):
            raise ConfigurationError(f'synchronous must be "full" or "normal", got {synchronous!r:.80}')
        self._busy_seconds = busy_seconds
        self._synchronous: Synchronous = synchronous
        self._places: dict[int, _Here] = {}
        self._face = Threaded(self)
        self.rows_read = 0
        self._here.connections.touch()

    def __repr__(self) -> str:
        return f"SQLiteStore({self._path!r})"

    def __enter__(self) -> SQLiteStore:  # noqa: PYI034  # typing.Self is of Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def for_async(self) -> Store:
        """The face for async callers: the same store on one worker thread of its own, the same at each call."""
        return self._face

    def close(self) -> None:
        """Close all connections of this process, each once its call is done; later calls raise `StoreError`."""
        self._face.close()
        self._here.connections.close()

    # -------------------------------------------------------------- transcript

    async def append(
        self,
        session: str,
        entries: Sequence[Entry],
        metadata: Sequence[tuple[str, str]] | None = None,
        user: str | None = None,
    ) -> Totals:
        """See `Store.append`."""
        with self._here.connections.writing() as db:
            row = rows.begun(db, session)
            rows.tell(db, row.n, metadata, user)
            return rows.add(db, row.n, row.totals, entries)

    async def read(self, session: str, start: int = 0, end: int | None = None) -> tuple[Entry, ...]:
        """See `Transcript.read`."""
        with self._here.connections.reading() as db:
            found = rows.entries(db, rows.there(db, session).n, start, rows.LAST if end is None else end)
        return self._handed(found)

    async def pick(self, session: str, seqs: Sequence[int]) -> tuple[Entry, ...]:
        """See `Store.pick`."""
        with self._here.connections.reading() as db:
            found = rows.picked(db, rows.there(db, session).n, seqs)
        return self._handed(found)

    async def matching(self, session: str, terms: Sequence[str], before: int, most: int = MOST) -> Matches:
        """See `Postings.matching`."""
        with self._here.connections.reading() as db:
            return postings.matching(db, rows.there(db, session).n, terms, before, most)

    async def documents(self, session: str, seqs: Collection[int]) -> Mapping[int, Document]:
        """See `Postings.documents`."""
        with self._here.connections.reading() as db:
            return postings.documents(db, rows.there(db, session).n, seqs)

    async def keys(self, session: str) -> tuple[Key, ...]:
        """See `Store.keys`."""
        with self._here.connections.reading() as db:
            return rows.keys(db, rows.there(db, session).n)

    async def cut(self, session: str, keep: int) -> None:
        """See `Transcript.cut`."""
        with self._here.connections.writing() as db:
            row = rows.begun(db, session)
            rows.cut(db, row, keep)
            rows.sum_up(db, row.n, rows.live_sums(db, row.n, rows.record(db, row), row.totals.counter))

    async def branches(self, session: str) -> tuple[Branch, ...]:
        """See `Store.branches`."""
        with self._here.connections.reading() as db:
            return rows.branches(db, rows.there(db, session).n)

    # -------------------------------------------------------------- records

    async def held(self, session: str) -> Held:
        """See `Records.held`."""
        with self._here.connections.reading() as db:
            row = rows.there(db, session)
            return Held(rows.record(db, row), rows.pins(db, row.n), row.metadata)

    async def describe(self, session: str, metadata: Sequence[tuple[str, str]]) -> None:
        """See `Records.describe`."""
        with self._here.connections.writing() as db:
            rows.describe(db, rows.begun(db, session).n, metadata)

    async def commit(self, session: str, expected: int, change: Change) -> bool:
        """See `Records.commit`."""
        with self._here.connections.writing() as db:
            if rows.there(db, session).revision != expected:
                return False
            row = rows.begun(db, session)
            rows.sum_up(db, row.n, rows.covered(db, row, change))
            rows.put_record(db, row.n, change.record)
            rows.put_segments(db, row.n, change.segments)
            rows.put_pins(db, row.n, change.pins)
            return True

    async def segment(self, session: str, id_: str) -> Segment | None:
        """See `Records.segment`."""
        with self._here.connections.reading() as db:
            return rows.segment(db, rows.there(db, session).n, id_)

    async def pin(self, session: str, pin: Pin, user: str | None = None) -> None:
        """See `Records.pin`."""
        with self._here.connections.writing() as db:
            n = rows.begun(db, session).n
            rows.put_pins(db, n, [pin])
            rows.tell(db, n, None, user)

    async def unpin(self, session: str, id_: str) -> bool:
        """See `Records.unpin`."""
        with self._here.connections.writing() as db:
            return rows.unpin(db, rows.there(db, session).n, [id_])

    async def claim(self, session: str, expected: int, lease: Lease, now: float) -> bool:
        """See `Records.claim`."""
        with self._here.connections.writing() as db:
            was = rows.there(db, session)
            taken = was.lease is not None and was.lease.keeps_out(lease, now)
            if was.revision != expected or taken:
                return False
            rows.lease(db, rows.begun(db, session).n, lease)
            return True

    async def release(self, session: str, holder: str) -> None:
        """See `Records.release`."""
        with self._here.connections.writing() as db:
            row = rows.there(db, session)
            if row.lease is not None and row.lease.holder == holder:
                rows.lease(db, row.n, None)

    async def clear(self, session: str) -> None:
        """See `Records.clear`; what was deleted is overwritten, in the log too unless somebody is reading it."""
        here = self._here
        with here.connections.writing() as db:
            row = rows.begun(db, session)
            rows.empty(db, row.n)
            rows.put_record(db, row.n, Record(revision=row.revision + 1))
            rows.bury(db, row.n, session)
        here.latest.drop(session)
        here.connections.settle()

    # -------------------------------------------------------------- all together

    async def snapshot(self, session: str) -> Snapshot:
        """See `Store.snapshot`."""
        here = self._here
        with here.connections.reading() as db:
            row = rows.there(db, session)
            parsed = here.latest.get(session, row.epoch) or Parsed(row.epoch, rows.record(db, row))
            known = row.boundary + len(parsed.live)
            new = rows.entries(db, row.n, known) if known < row.totals.next_seq else ()
            pins = rows.pins(db, row.n)
        if row.n:
            parsed = replace(parsed, live=parsed.live + new)
            here.latest.put(session, parsed)
        # another thread may have read later than this transaction, and remembered more
        live = self._handed(parsed.live[: row.totals.next_seq - row.boundary])
        return Snapshot(parsed.record, live, pins, row.metadata, row.totals)

    async def recount(self, session: str, expected: int, counts: Recount) -> None:
        """See `Store.recount`."""
        with self._here.connections.writing() as db:
            if rows.there(db, session).revision == expected:
                rows.recount(db, rows.begun(db, session), counts)

    async def rewrite(
        self,
        session: str,
        expected: tuple[int, int],
        rewrite: Rewrite,
        metadata: Sequence[tuple[str, str]] | None = None,
        user: str | None = None,
    ) -> Totals | None:
        """See `Store.rewrite`."""
        with self._here.connections.writing() as db:
            was = rows.there(db, session)
            if (was.revision, was.totals.next_seq) != expected:
                return None
            row = rows.begun(db, session)
            totals = row.totals
            if rewrite.record is not None:
                rows.cut(db, row, rewrite.keep)
                rows.put_record(db, row.n, rewrite.record)
                totals = rows.live_sums(db, row.n, rewrite.record, totals.counter)
                rows.sum_up(db, row.n, totals)
            rows.unpin(db, row.n, rewrite.unpinned)
            rows.tell(db, row.n, metadata, user)
            return rows.add(db, row.n, totals, rewrite.entries)

    async def whole(self, session: str) -> Whole:
        """See `Store.whole`."""
        with self._here.connections.reading() as db:
            row = rows.there(db, session)
            return Whole(
                record=rows.record(db, row),
                entries=rows.entries(db, row.n),
                branches=rows.branches(db, row.n),
                segments=rows.segments(db, row.n),
                pins=rows.pins(db, row.n),
                metadata=row.metadata,
            )

    async def restore(self, session: str, expected: tuple[int, int], whole: Whole) -> bool:
        """See `Store.restore`."""
        with self._here.connections.writing() as db:
            was = rows.there(db, session)
            if (was.revision, was.totals.next_seq) != expected:
                return False
            n = rows.begun(db, session).n
            rows.empty(db, n)
            for branch in whole.branches:
                rows.put_branch(db, n, branch)
            rows.put_segments(db, n, whole.segments)
            rows.put_pins(db, n, whole.pins)
            rows.describe(db, n, whole.metadata)
            rows.fill(db, n, whole.entries)
            record = replace(whole.record, revision=max(expected[0], whole.record.revision) + 1)
            rows.put_record(db, n, record)
            rows.sum_up(db, n, rows.live_sums(db, n, record, whole.entries[-1].counter if whole.entries else ""))
            return True

    async def sessions(self, user: str | None = None) -> tuple[str, ...]:
        """See `Store.sessions`."""
        with self._here.connections.reading() as db:
            return rows.sessions(db, user)

    @property
    def _here(self) -> _Here:
        """What this process has; a forked child begins anew, but in memory, where it has a copy."""
        pid = os.getpid() if self._path else 0
        here = self._places.get(pid)
        if here is None:
            connections = Connections(self._path, self._busy_seconds, self._synchronous)
            here = self._places.setdefault(pid, _Here(connections))
        return here

    def _handed(self, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        with self._here.counting:
            self.rows_read += len(entries)
        return entries


def _checked(path: str | os.PathLike[str] | None) -> str | None:
    """The file's absolute path, so that it stays the same one wherever the process goes; None in memory."""
    if path is None or path == ":memory:":
        return None
    if not isinstance(path, (str, os.PathLike)) or os.fspath(path) == "" or "\0" in os.fspath(path):
        raise ConfigurationError(f"path must name a file, got {path!r:.80}")
    return str(Path(path).absolute())
