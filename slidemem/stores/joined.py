"""Decides how a transcript and records that a host owns apart work as one store, and what is weaker then.

There is no transaction over both. The sums of a session are made of its live messages at each call; a rewind
changes the record first and the transcript after it, so that in between no message is lost, and one that was to
leave is still there. The boundary is checked by the digest of its message whenever it is read: where the host has
edited the list behind our back, the record says nothing about it any more, and everything is live again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from slidemem.archive import Segment
from slidemem.errors import StoreError
from slidemem.index import MOST
from slidemem.messages import digest
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
from slidemem.stores.base import Exchanging, Postings, Records, Transcript, awaited
from slidemem.stores.indexed import Indexes


class JoinedStore:
    """A store of a transcript and records that are kept apart.

    Args:
        transcript: the home of the messages.
        records: the home of the rest.
    """

    def __init__(self, transcript: Transcript, records: Records) -> None:
        self.transcript = transcript
        self.records = records
        self._indexes = Indexes()

    def for_async(self) -> JoinedStore:
        """See `Blocking.for_async`, of both."""
        face = JoinedStore(awaited(self.transcript), awaited(self.records))
        face._indexes = self._indexes
        return face

    # -------------------------------------------------------------- transcript

    async def append(
        self,
        session: str,
        entries: Sequence[Entry],
        metadata: Sequence[tuple[str, str]] | None = None,
        user: str | None = None,  # noqa: ARG002  # the protocol's
    ) -> Totals:
        """See `Store.append`; a message that is there already is looked for among the live ones.

        The totals are of what was there at the look and of the messages added; what others add meanwhile comes next.
        """
        now = await self.snapshot(session)
        new = _unsaid(now.live, entries)
        await self.transcript.append(session, new)
        if metadata is not None:
            await self.records.describe(session, metadata)
        live = (*now.live, *new)
        return Totals.of(now.record, live, live[-1].counter if live else "")

    async def read(self, session: str, start: int = 0, end: int | None = None) -> tuple[Entry, ...]:
        """See `Transcript.read`."""
        return await self.transcript.read(session, start, end)

    async def pick(self, session: str, seqs: Sequence[int]) -> tuple[Entry, ...]:
        """See `Store.pick`; the transcript is read from the first of them to the last."""
        if not seqs:
            return ()
        wanted = set(seqs)
        read = await self.transcript.read(session, min(wanted), max(wanted) + 1)
        return tuple(entry for entry in read if entry.seq in wanted)

    async def matching(self, session: str, terms: Sequence[str], before: int, most: int = MOST) -> Matches:
        """See `Postings.matching`; of a transcript that keeps no postings this process makes an index."""
        if isinstance(self.transcript, Postings):
            return await self.transcript.matching(session, terms, before, most)
        return await self._indexes.matching(self.transcript, session, terms, before, most)

    async def documents(self, session: str, seqs: Collection[int]) -> Mapping[int, Document]:
        """See `Postings.documents`."""
        if isinstance(self.transcript, Postings):
            return await self.transcript.documents(session, seqs)
        return self._indexes.documents(session, seqs)

    async def cut(self, session: str, keep: int) -> None:
        """See `Transcript.cut`."""
        self._indexes.drop(session)
        await self.transcript.cut(session, keep)

    async def keys(self, session: str) -> tuple[Key, ...]:
        """See `Store.keys`."""
        return tuple(map(key_of, await self.transcript.read(session)))

    async def branches(self, session: str) -> tuple[Branch, ...]:  # noqa: ARG002  # the protocol's
        """None: a transcript apart keeps what it closes, if it does, in its own way."""
        return ()

    # -------------------------------------------------------------- records

    async def held(self, session: str) -> Held:
        """See `Records.held`; the record of a list that was edited since says nothing."""
        return (await self._looked_at(session))[0]

    async def describe(self, session: str, metadata: Sequence[tuple[str, str]]) -> None:
        """See `Records.describe`."""
        await self.records.describe(session, metadata)

    async def commit(self, session: str, expected: int, change: Change) -> bool:
        """See `Records.commit`."""
        return await self.records.commit(session, expected, change)

    async def segment(self, session: str, id_: str) -> Segment | None:
        """See `Records.segment`."""
        return await self.records.segment(session, id_)

    async def pin(self, session: str, pin: Pin, user: str | None = None) -> None:  # noqa: ARG002  # the protocol's
        """See `Records.pin`."""
        await self.records.pin(session, pin)

    async def unpin(self, session: str, id_: str) -> bool:
        """See `Records.unpin`."""
        return await self.records.unpin(session, id_)

    async def claim(self, session: str, expected: int, lease: Lease, now: float) -> bool:
        """See `Records.claim`."""
        return await self.records.claim(session, expected, lease, now)

    async def release(self, session: str, holder: str) -> None:
        """See `Records.release`."""
        await self.records.release(session, holder)

    async def clear(self, session: str) -> None:
        """See `Records.clear`; the messages go first."""
        self._indexes.drop(session)
        await self.transcript.clear(session)
        await self.records.clear(session)

    # -------------------------------------------------------------- all together

    async def snapshot(self, session: str) -> Snapshot:
        """See `Store.snapshot`; the record is read first, so that what is appended meanwhile is live."""
        held, live = await self._looked_at(session)
        totals = Totals.of(held.record, live, live[-1].counter if live else "")
        return Snapshot(held.record, live, held.pins, held.metadata, totals)

    async def recount(self, session: str, expected: int, counts: Recount) -> None:
        """Nothing: no sums are kept."""

    async def rewrite(
        self,
        session: str,
        expected: tuple[int, int],
        rewrite: Rewrite,
        metadata: Sequence[tuple[str, str]] | None = None,
        user: str | None = None,
    ) -> Totals | None:
        """See `Store.rewrite`; an append that comes between the look and the change is closed with the rest."""
        now = await self.snapshot(session)
        if (now.record.revision, now.totals.next_seq) != expected:
            return None
        record = rewrite.record
        if record is not None and not await self.records.commit(session, expected[0], Change(record)):
            return None
        left = rewrite.entries if record is None else await self._exchanged(session, rewrite)
        for id_ in rewrite.unpinned:
            await self.records.unpin(session, id_)
        return await self.append(session, left, metadata, user)

    async def _exchanged(self, session: str, rewrite: Rewrite) -> tuple[Entry, ...]:
        """What is still to be appended when the messages that leave have left."""
        self._indexes.drop(session)
        if isinstance(self.transcript, Exchanging):
            await self.transcript.exchange(session, rewrite.keep, rewrite.entries)
            return ()
        await self.transcript.cut(session, rewrite.keep)
        return rewrite.entries

    async def whole(self, session: str) -> Whole:
        """See `Store.whole`."""
        held, _ = await self._looked_at(session)
        left, segments = list(held.record.archive.segments), dict[str, Segment]()
        while left:
            one = left.pop()
            segments[one.id] = one
            children = [await self.records.segment(session, id_) for id_ in one.children]
            left.extend(child for child in children if child)
        entries = await self.transcript.read(session)
        return Whole(held.record, entries, (), tuple(segments.values()), held.pins, held.metadata)

    async def restore(self, session: str, expected: tuple[int, int], whole: Whole) -> bool:
        """See `Store.restore`; closed branches are left out, and the messages come first."""
        now = await self.snapshot(session)
        if (now.record.revision, now.totals.next_seq) != expected:
            return False
        await self.transcript.append(session, await self._exchanged(session, Rewrite(None, 0, whole.entries)))
        for pin in (await self.records.held(session)).pins:
            await self.records.unpin(session, pin.id)
        await self.records.describe(session, whole.metadata)
        record = replace(whole.record, revision=max(expected[0], whole.record.revision) + 1)
        return await self.records.commit(session, expected[0], Change(record, (), whole.segments, whole.pins))

    async def sessions(self, user: str | None = None) -> tuple[str, ...]:
        """None: who owns the transcript knows its sessions.

        Raises:
            StoreError: a user is named: parts do not know whose a session is.
        """
        if user is not None:
            advice = "clear the user's sessions one by one, in the host that knows them"
            raise StoreError("of a transcript and records apart", "it does not know whose a session is", advice)
        return ()

    async def _looked_at(self, session: str) -> tuple[Held, tuple[Entry, ...]]:
        """The records and the live messages, the record being empty where the list was edited."""
        held = await self.records.held(session)
        record = held.record
        if not record.boundary:
            return held, await self.transcript.read(session)
        last, *live = await self.transcript.read(session, record.boundary - 1) or (None,)
        first = digest(live[0].message) if live else record.boundary_digest
        if last is not None and record.boundary_digest in {"", first}:
            return held, tuple(live)
        return replace(held, record=Record(revision=record.revision)), await self.transcript.read(session)


def _unsaid(live: Sequence[Entry], entries: Sequence[Entry]) -> list[Entry]:
    said = {entry.message.id: digest(entry.message) for entry in live if entry.message.id is not None}
    new: list[Entry] = []
    for entry in entries:
        id_, text = entry.message.id, digest(entry.message)
        if id_ is None or said.get(id_) != text:
            new.append(entry)
        if id_ is not None:
            said[id_] = text
    return new
