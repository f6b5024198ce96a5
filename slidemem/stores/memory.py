"""Keeps sessions in this process: the default, gone with it."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from slidemem.archive import Segment
from slidemem.state import Entry, Pin, Record, Recount, Snapshot, Totals


@dataclass(slots=True)
class _Session:
    entries: list[Entry] = field(default_factory=list[Entry])
    record: Record = field(default_factory=Record)
    totals: Totals = field(default_factory=Totals)
    pins: dict[str, Pin] = field(default_factory=dict[str, Pin])
    metadata: tuple[tuple[str, str], ...] = ()
    segments: dict[str, Segment] = field(default_factory=dict[str, Segment])


class MemoryStore:
    """A store in this process; its methods never suspend, and any thread may call them.

    Attributes:
        rows_read: entries handed out so far, for those who measure.
    """

    def __init__(self) -> None:
        self._sessions: defaultdict[str, _Session] = defaultdict(_Session)
        self._lock = threading.Lock()
        self.rows_read = 0

    async def append(
        self, session: str, entries: Sequence[Entry], metadata: Sequence[tuple[str, str]] | None
    ) -> Totals:
        """See `Transcript.append`."""
        with self._lock:
            kept = self._sessions[session]
            first = kept.totals.next_seq
            numbered = tuple(replace(entry, seq=first + at) for at, entry in enumerate(entries))
            kept.entries.extend(numbered)
            kept.totals = kept.totals.plus(numbered)
            if metadata is not None:
                kept.metadata = tuple(metadata)
            return kept.totals

    async def read(self, session: str, start: int = 0, end: int | None = None) -> tuple[Entry, ...]:
        """See `Transcript.read`."""
        with self._lock:
            return self._read(session, start, end)

    async def snapshot(self, session: str) -> Snapshot:
        """See `Store.snapshot`."""
        with self._lock:
            if session not in self._sessions:
                return Snapshot()
            kept = self._sessions[session]
            live = self._read(session, kept.record.boundary, None)
            return Snapshot(kept.record, live, tuple(kept.pins.values()), kept.metadata, kept.totals)

    async def commit(
        self,
        session: str,
        expected: int,
        record: Record,
        covered: Sequence[Entry],
        segments: Sequence[Segment],
        pins: Sequence[Pin],
    ) -> bool:
        """See `Records.commit`."""
        with self._lock:
            kept = self._sessions[session]
            if kept.record.revision != expected:
                return False
            kept.record = record
            kept.totals = kept.totals.less(kept.entries[covered[0].seq : covered[-1].seq + 1], record)
            kept.segments.update({segment.id: segment for segment in segments})
            kept.pins.update({pin.id: pin for pin in pins})
            return True

    async def recount(self, session: str, expected: int, counts: Recount) -> None:
        """See `Records.recount`."""
        with self._lock:
            kept = self._sessions[session]
            if kept.record.revision != expected:
                return
            for seq, tokens in counts.tokens.items():
                kept.entries[seq] = replace(kept.entries[seq], tokens=tokens, counter=counts.counter)
            live = kept.entries[kept.record.boundary :]
            kept.totals = replace(
                kept.totals,
                live_tokens=sum(entry.tokens for entry in live),
                anchor_tokens=counts.anchor_tokens,
                overhead_tokens=counts.overhead_tokens,
                counter=counts.counter,
            )

    async def segment(self, session: str, id_: str) -> Segment | None:
        """See `Records.segment`."""
        with self._lock:
            return self._sessions[session].segments.get(id_) if session in self._sessions else None

    async def pin(self, session: str, pin: Pin) -> None:
        """See `Records.pin`."""
        with self._lock:
            self._sessions[session].pins[pin.id] = pin

    async def unpin(self, session: str, id_: str) -> bool:
        """See `Records.unpin`."""
        with self._lock:
            return session in self._sessions and self._sessions[session].pins.pop(id_, None) is not None

    async def clear(self, session: str) -> None:
        """See `Records.clear`."""
        with self._lock:
            revision = self._sessions[session].record.revision if session in self._sessions else 0
            self._sessions[session] = _Session(record=Record(revision=revision + 1))

    def _read(self, session: str, start: int, end: int | None) -> tuple[Entry, ...]:
        entries = self._sessions[session].entries if session in self._sessions else []
        rows = tuple(entries[start:end])
        self.rows_read += len(rows)
        return rows
