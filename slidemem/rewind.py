"""Decides what becomes of a session when messages are taken back: by a rewind, or by a host that owns the list.

What leaves the conversation is closed as a branch, never deleted. The archive before the place stays; a segment
that reaches beyond it gives way to its children, and where it has none, its messages are live again. Which of a
host's messages are which of ours is `align.py`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from slidemem import meaning
from slidemem.align import align
from slidemem.archive import Archive, Segment
from slidemem.entries import findable, read
from slidemem.errors import OversizeMessage, TranscriptMismatch, UnknownReference
from slidemem.events import Event
from slidemem.leaving import bounded
from slidemem.messages import Message
from slidemem.openai_format import Given, read_openai
from slidemem.plan import anchored, headed_by
from slidemem.prompts import reprompted
from slidemem.session import Session
from slidemem.settle import grown
from slidemem.state import Entry, Kept, Key, Record, Rewrite, Snapshot, Totals


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What a reconcile did.

    Attributes:
        kept: messages of the transcript that stayed.
        appended: messages that were new.
        closed: messages that left the conversation.
    """

    kept: int
    appended: int
    closed: int


async def rewind(session: Session, to: int | str) -> tuple[Message, ...]:
    """Take the newest messages out of the conversation.

    Args:
        session: the session.
        to: how many messages stay; less than 0, how many leave; or the host's id of the first that leaves.

    Returns:
        The messages that left.

    Raises:
        UnknownReference: there is no such message.
    """
    while True:
        snapshot = await session.store.snapshot(session.id)
        there = snapshot.totals.next_seq
        keep = await _place(session, there, to)
        if keep == there:
            return ()
        closed = () if keep is None else await session.store.read(session.id, keep, there)
        if keep is None or len(closed) != there - keep:
            continue  # something came between two reads
        if await _rewritten(session, snapshot, keep, ()):
            return tuple(entry.message for entry in closed)


async def reconcile(session: Session, given: Given | Sequence[Given], *, replace: bool = False) -> Reconciled:
    """Bring the transcript in line with a list that the host owns.

    Args:
        session: the session.
        given: the host's list, or the end of it.
        replace: what a list means that shares nothing with the transcript: another conversation (True), or a
            mistake. Then the list owns the leading system messages too, and what holds no others, or nothing at
            all, is a conversation that is still to begin.

    Raises:
        TranscriptMismatch: the list shares nothing with the transcript.
        InvalidMessage: one of the messages cannot be read; nothing has changed.
        OversizeMessage: a new one is too large and `oversize="raise"`; nothing has changed.
    """
    messages = read_openai(given)
    while True:
        snapshot = await session.store.snapshot(session.id)
        keys = await session.store.keys(session.id)
        if len(keys) != snapshot.totals.next_seq:
            continue  # an append, or a rewind, came between the two reads
        aligned = align(keys, messages)
        if aligned.shares_nothing and not replace:
            raise TranscriptMismatch(len(messages), len(keys))
        entries = findable(session, _read(session, aligned.new, messages))
        keep = aligned.keep if not (replace and aligned.bare) else _leading(keys) if messages else 0
        prompts = findable(session, read(session, aligned.prompts)) if replace else ()
        if prompts:
            done, stay = await _reprompted(session, snapshot, keep, prompts, entries), keep - _leading(keys)
        else:
            done, stay = await _rewritten(session, snapshot, keep, entries), keep
        if done:
            return Reconciled(stay, len(prompts) + len(entries), len(keys) - stay)


def _leading(keys: Sequence[Key]) -> int:
    """How many system messages the transcript begins with."""
    return sum(1 for _ in takewhile(lambda key: key.role == "system", keys))


def _read(session: Session, new: Sequence[Message], given: Sequence[Message]) -> tuple[Entry, ...]:
    """What is new of a host's list as entries; an error names the place in that list."""
    try:
        return read(session, new)
    except OversizeMessage as large:
        at = next((at for at, message in enumerate(given) if message is new[large.index]), large.index)
        raise OversizeMessage(at, large.tokens, large.limit) from None


async def _rewritten(session: Session, snapshot: Snapshot, keep: int, entries: tuple[Entry, ...]) -> bool:
    """Whether the session was still as planned on, and now keeps that many messages, with others after them."""
    there = snapshot.totals.next_seq
    if keep == there and not entries:
        return True
    rewrite = Rewrite(None, keep, entries) if keep == there else await _rewound(session, snapshot, keep, entries)
    totals = await session.store.rewrite(
        session.id,
        (snapshot.record.revision, there),
        rewrite,
        session.metadata if entries else None,
        session.user,
    )
    if totals is None:
        return False
    if keep < there:
        session.forget()
        _tell_rewound(session, keep, there)
    if keep < snapshot.record.boundary:
        await meaning.rewound(session, keep, snapshot.record.boundary)
    if entries:
        await grown(session, totals, entries)
    return True


async def _reprompted(
    session: Session, snapshot: Snapshot, keep: int, prompts: tuple[Entry, ...], entries: tuple[Entry, ...]
) -> bool:
    """Whether the session was still as planned on, and now begins with these system messages."""
    there = snapshot.totals.next_seq
    planned_on = (snapshot.record.revision, there)
    rewrite = await _rewound(session, snapshot, keep, entries)
    whole = await session.store.whole(session.id)
    if (whole.record.revision, len(whole.entries)) != planned_on:
        return False
    left = replace(whole, pins=tuple(pin for pin in whole.pins if pin.id not in rewrite.unpinned))
    after = reprompted(left, rewrite.record or whole.record, keep, prompts, entries)
    metadata = after.metadata if session.metadata is None else session.metadata
    seen = Snapshot(after.record, after.entries[after.record.boundary :], after.pins, metadata)
    overhead = headed_by(seen, session.options, session.tally)
    after = replace(after, record=replace(after.record, overhead_tokens=overhead), metadata=metadata)
    after = replace(after, entries=findable(session, after.entries))
    if not await session.store.restore(session.id, planned_on, after):
        return False
    session.forget()
    if keep < there:
        _tell_rewound(session, keep, there)
    await meaning.rewound(session, 0, snapshot.record.boundary)
    await grown(session, Totals.of(after.record, seen.live, session.tally.fingerprint))
    return True


def _tell_rewound(session: Session, keep: int, there: int) -> None:
    detail = f"messages {keep} to {there - 1} left the conversation; they are kept as a branch"
    session.happened(Event("rewound", session.id, detail, keep, there))


async def _place(session: Session, there: int, to: int | str) -> int | None:
    """How many of the messages that are there stay; None when they are not there any more, or others too."""
    if isinstance(to, str):
        keys = await session.store.keys(session.id)
        if len(keys) != there:
            return None
        place = next((at for at in range(there - 1, -1, -1) if keys[at].id == to), None)
        if place is None:
            raise UnknownReference(f"no message of the {there} in the transcript has the id {to!r:.80}")
        return place
    if isinstance(to, bool) or not isinstance(to, int) or not -there <= to <= there:
        raise UnknownReference(f"rewind takes a number from {-there} to {there}, or a message's id; got {to!r:.80}")
    return to if to >= 0 else there + to


async def _rewound(session: Session, snapshot: Snapshot, keep: int, entries: tuple[Entry, ...]) -> Rewrite:
    """The rewrite that keeps the first messages and the archive before them."""
    record = snapshot.record
    archive = await _archive_before(session, record.archive, keep)
    boundary = archive.segments[-1].end if archive.segments else 0
    live = (*await session.store.read(session.id, boundary, keep), *entries)
    after = replace(
        bounded(record, boundary, live[0] if live else None),
        revision=record.revision + 1,
        system=record.system if boundary else (),
        first_user=record.first_user if record.first_user and record.first_user.seq < boundary else None,
        anchor=await _anchor(session, record, boundary, live),
        archive=archive,
    )
    closed = [pin for pin in snapshot.pins if pin.source is not None and pin.source >= keep]
    left = replace(snapshot, record=after, pins=tuple(pin for pin in snapshot.pins if pin not in closed))
    return Rewrite(
        record=replace(after, overhead_tokens=headed_by(left, session.options, session.tally)),
        keep=keep,
        entries=entries,
        unpinned=tuple(pin.id for pin in closed),
    )


async def _archive_before(session: Session, archive: Archive, keep: int) -> Archive:
    """The archive of the first `keep` messages: segments that end there or before, of merged ones the children."""
    kept: list[Segment] = []
    left = list(archive.segments)
    while left:
        segment = left.pop(0)
        if segment.end <= keep:
            kept.append(segment)
            continue
        left = list[Segment]()
        for id_ in segment.children:
            child = await session.store.segment(session.id, id_)
            if child is None:
                break  # without it there would be a gap; what follows is live again
            left.append(child)
    return Archive(tuple(kept))


async def _anchor(session: Session, record: Record, boundary: int, live: Sequence[Entry]) -> Kept | None:
    """The user message before a boundary that what is live does not begin a turn at."""
    if not boundary or (live and live[0].message.role == "user"):
        return None
    if boundary == record.boundary and record.anchor:
        return record.anchor
    start, step = boundary, 16
    while start:
        end, start, step = start, max(0, start - step), 2 * step
        earlier = await session.store.read(session.id, start, end)
        for entry in reversed(earlier):
            if entry.message.role == "user":
                tokens = session.tally(entry.shown)
                return anchored(entry.seq, entry.shown, tokens, session.options.allotment // 2, session.tally)
    return None
