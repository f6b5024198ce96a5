"""Keeps sessions in this process: the default, gone with it."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from slidemem.archive import Segment
from slidemem.index import MOST, Index
from slidemem.messages import digest
from slidemem.post import NOTHING
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
    key_of,
)


@dataclass(slots=True)
class _Session:
    began: int = 0  # its place among the sessions
    entries: list[Entry] = field(default_factory=list[Entry])
    said: dict[str, str] = field(default_factory=dict[str, str])  # digest by the host's id
    branches: list[Branch] = field(default_factory=list[Branch])
    record: Record = field(default_factory=Record)
    totals: Totals = field(default_factory=Totals)
    pins: dict[str, Pin] = field(default_factory=dict[str, Pin])
    metadata: tuple[tuple[str, str], ...] = ()
    user: str | None = None
    segments: dict[str, Segment] = field(default_factory=dict[str, Segment])
    lease: Lease | None = None
    index: Index = field(default_factory=Index)

    @property
    def live(self) -> list[Entry]:
        return self.entries[self.record.boundary :]

    def add(self, entries: Sequence[Entry]) -> None:
        new = self._unsaid(entries)
        self._hold(new)
        self.totals = self.totals.plus(new)

    def _hold(self, entries: Sequence[Entry]) -> None:
        """Keep messages with what they are found by."""
        for entry in entries:
            self.index.add(entry.seq, entry.post or NOTHING)
            self.entries.append(entry if entry.post is None else replace(entry, post=None))

    def _unsaid(self, entries: Sequence[Entry]) -> tuple[Entry, ...]:
        """Those that are not there already, numbered."""
        new: list[Entry] = []
        saying: dict[str, str] = {}
        for entry in entries:
            id_, said = entry.message.id, digest(entry.message)
            if id_ is not None:
                if saying.get(id_, self.said.get(id_)) == said:
                    continue
                saying[id_] = said
            new.append(replace(entry, seq=self.totals.next_seq + len(new)))
        self.said.update(saying)
        return tuple(new)

    def fill(self, entries: Sequence[Entry]) -> None:
        """Hold these messages where none are, one said twice with its id twice."""
        self._hold([replace(entry, seq=seq) for seq, entry in enumerate(entries)])
        self._say()
        self.totals = Totals().plus(self.entries)

    def _say(self) -> None:
        self.said = {
            entry.message.id: digest(entry.message) for entry in self.entries if entry.message.id is not None
        }

    def cut(self, keep: int) -> None:
        closed = tuple(self.entries[keep:])
        if closed:
            self.branches.append(Branch(self.record.revision, closed))
        del self.entries[keep:]
        self.index.cut(keep)
        self._say()
        self.totals = replace(self.totals, next_seq=len(self.entries))

    def told(self, metadata: Sequence[tuple[str, str]] | None, user: str | None) -> None:
        """Keep metadata and user where they are given."""
        self.metadata = self.metadata if metadata is None else tuple(metadata)
        self.user = self.user if user is None else user

    def become(self, record: Record) -> None:
        """Take a record that was rewound, with the sums of what is live then."""
        self.record, self.lease = record, None
        self.totals = Totals.of(record, self.live, self.totals.counter)


class MemoryStore:
    """A store in this process; its methods never suspend, and any thread may call them.

    Attributes:
        rows_read: entries handed out so far, for those who measure.
    """

    def __init__(self) -> None:
        self._sessions: dict[str, _Session] = {}
        self._gone: dict[bytes, _Session] = {}  # cleared ones, of which their revision is known
        self._next = 0
        self._lock = threading.Lock()
        self.rows_read = 0

    def __repr__(self) -> str:
        return f"MemoryStore({len(self._sessions)} sessions)"

    # -------------------------------------------------------------- transcript

    async def append(
        self,
        session: str,
        entries: Sequence[Entry],
        metadata: Sequence[tuple[str, str]] | None = None,
        user: str | None = None,
    ) -> Totals:
        """See `Store.append`."""
        with self._lock:
            kept = self._begun(session)
            kept.add(entries)
            kept.told(metadata, user)
            return kept.totals

    async def read(self, session: str, start: int = 0, end: int | None = None) -> tuple[Entry, ...]:
        """See `Transcript.read`."""
        with self._lock:
            return self._read(session, start, end)

    async def keys(self, session: str) -> tuple[Key, ...]:
        """See `Store.keys`."""
        with self._lock:
            return tuple(map(key_of, self._there(session).entries))

    async def pick(self, session: str, seqs: Sequence[int]) -> tuple[Entry, ...]:
        """See `Store.pick`."""
        with self._lock:
            entries = self._there(session).entries
            picked = tuple(entries[seq] for seq in sorted(set(seqs)) if 0 <= seq < len(entries))
            self.rows_read += len(picked)
            return picked

    async def matching(self, session: str, terms: Sequence[str], before: int, most: int = MOST) -> Matches:
        """See `Postings.matching`."""
        with self._lock:
            return self._there(session).index.matching(terms, before, most)

    async def documents(self, session: str, seqs: Collection[int]) -> Mapping[int, Document]:
        """See `Postings.documents`."""
        with self._lock:
            return self._there(session).index.documents(seqs)

    async def cut(self, session: str, keep: int) -> None:
        """See `Transcript.cut`."""
        with self._lock:
            kept = self._begun(session)
            kept.cut(keep)
            kept.totals = Totals.of(kept.record, kept.live, kept.totals.counter)

    async def branches(self, session: str) -> tuple[Branch, ...]:
        """See `Store.branches`."""
        with self._lock:
            return tuple(self._there(session).branches)

    # -------------------------------------------------------------- records

    async def held(self, session: str) -> Held:
        """See `Records.held`."""
        with self._lock:
            kept = self._there(session)
            return Held(kept.record, tuple(kept.pins.values()), kept.metadata)

    async def describe(self, session: str, metadata: Sequence[tuple[str, str]]) -> None:
        """See `Records.describe`."""
        with self._lock:
            self._begun(session).metadata = tuple(metadata)

    async def commit(self, session: str, expected: int, change: Change) -> bool:
        """See `Records.commit`."""
        with self._lock:
            if self._there(session).record.revision != expected:
                return False
            kept = self._begun(session)
            kept.record, kept.lease = change.record, None
            kept.totals = kept.totals.less(
                [kept.entries[entry.seq] for entry in change.covered if entry.seq < len(kept.entries)], change.record
            )
            kept.segments.update({segment.id: segment for segment in change.segments})
            kept.pins.update({pin.id: pin for pin in change.pins})
            return True

    async def segment(self, session: str, id_: str) -> Segment | None:
        """See `Records.segment`."""
        with self._lock:
            return self._there(session).segments.get(id_)

    async def pin(self, session: str, pin: Pin, user: str | None = None) -> None:
        """See `Records.pin`."""
        with self._lock:
            kept = self._begun(session)
            kept.pins[pin.id] = pin
            kept.told(None, user)

    async def unpin(self, session: str, id_: str) -> bool:
        """See `Records.unpin`."""
        with self._lock:
            return self._there(session).pins.pop(id_, None) is not None

    async def claim(self, session: str, expected: int, lease: Lease, now: float) -> bool:
        """See `Records.claim`."""
        with self._lock:
            kept = self._there(session)
            taken = kept.lease is not None and kept.lease.keeps_out(lease, now)
            if kept.record.revision != expected or taken:
                return False
            self._begun(session).lease = lease
            return True

    async def release(self, session: str, holder: str) -> None:
        """See `Records.release`."""
        with self._lock:
            kept = self._there(session)
            if kept.lease is not None and kept.lease.holder == holder:
                kept.lease = None

    async def clear(self, session: str) -> None:
        """See `Records.clear`."""
        with self._lock:
            was = self._begun(session)
            del self._sessions[session]
            self._gone[_buried(session)] = _Session(was.began, record=Record(revision=was.record.revision + 1))

    # -------------------------------------------------------------- all together

    async def snapshot(self, session: str) -> Snapshot:
        """See `Store.snapshot`."""
        with self._lock:
            kept = self._there(session)
            live = self._read(session, kept.record.boundary, None)
            return Snapshot(kept.record, live, tuple(kept.pins.values()), kept.metadata, kept.totals)

    async def recount(self, session: str, expected: int, counts: Recount) -> None:
        """See `Store.recount`."""
        with self._lock:
            if self._there(session).record.revision != expected:
                return
            kept = self._begun(session)
            there = range(len(kept.entries))
            for seq, tokens in counts.tokens.items():
                if seq not in there:
                    continue
                kept.entries[seq] = replace(kept.entries[seq], tokens=tokens, counter=counts.counter)
            kept.totals = replace(
                kept.totals,
                live_tokens=sum(entry.tokens for entry in kept.live),
                anchor_tokens=counts.anchor_tokens,
                overhead_tokens=counts.overhead_tokens,
                counter=counts.counter,
            )

    async def rewrite(
        self,
        session: str,
        expected: tuple[int, int],
        rewrite: Rewrite,
        metadata: Sequence[tuple[str, str]] | None = None,
        user: str | None = None,
    ) -> Totals | None:
        """See `Store.rewrite`."""
        with self._lock:
            kept = self._there(session)
            if (kept.record.revision, kept.totals.next_seq) != expected:
                return None
            kept = self._begun(session)
            if rewrite.record is not None:
                kept.cut(rewrite.keep)
                kept.become(rewrite.record)
            for id_ in rewrite.unpinned:
                kept.pins.pop(id_, None)
            kept.add(rewrite.entries)
            kept.told(metadata, user)
            return kept.totals

    async def whole(self, session: str) -> Whole:
        """See `Store.whole`."""
        with self._lock:
            kept = self._there(session)
            return Whole(
                record=kept.record,
                entries=tuple(kept.entries),
                branches=tuple(kept.branches),
                segments=tuple(kept.segments.values()),
                pins=tuple(kept.pins.values()),
                metadata=kept.metadata,
            )

    async def restore(self, session: str, expected: tuple[int, int], whole: Whole) -> bool:
        """See `Store.restore`."""
        with self._lock:
            there = self._there(session)
            if (there.record.revision, there.totals.next_seq) != expected:
                return False
            kept = _Session(
                began=self._begun(session).began,
                branches=list(whole.branches),
                pins={pin.id: pin for pin in whole.pins},
                metadata=whole.metadata,
                user=there.user,
                segments={segment.id: segment for segment in whole.segments},
            )
            kept.fill(whole.entries)
            kept.become(replace(whole.record, revision=max(expected[0], whole.record.revision) + 1))
            self._sessions[session] = kept
            return True

    async def sessions(self, user: str | None = None) -> tuple[str, ...]:
        """See `Store.sessions`."""
        with self._lock:
            found = sorted(self._sessions.items(), key=lambda item: item[1].began)
            return tuple(id_ for id_, kept in found if (_holds(kept) if user is None else kept.user == user))

    def _there(self, session: str) -> _Session:
        """The session, or an empty one that is not kept."""
        return self._sessions.get(session) or self._gone.get(_buried(session)) or _Session()

    def _begun(self, session: str) -> _Session:
        kept = self._sessions.get(session) or self._gone.pop(_buried(session), None)
        if kept is None:
            kept, self._next = _Session(self._next), self._next + 1
        self._sessions[session] = kept
        return kept

    def _read(self, session: str, start: int, end: int | None) -> tuple[Entry, ...]:
        rows = tuple(self._there(session).entries[start:end])
        self.rows_read += len(rows)
        return rows


def _buried(session: str) -> bytes:
    """What stands for the id of a cleared session."""
    return sha256(session.encode("utf-8", "surrogatepass")).digest()


def _holds(kept: _Session) -> bool:
    return bool(kept.entries or kept.branches or kept.pins or kept.metadata or kept.record.archive.segments)
