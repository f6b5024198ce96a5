"""Decides how a whole session reads as one JSON object, and how it comes back.

Everything is in it: transcript, closed branches, record, the segments that merged ones were made from, pins and
metadata. Keys are in the order in which a person would read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from slidemem import meaning
from slidemem.archive import Segment
from slidemem.entries import findable
from slidemem.errors import InvalidExport, InvalidMessage, SessionExists
from slidemem.openai_format import read_openai
from slidemem.session import Session
from slidemem.shape import misfit
from slidemem.state import SCHEMA, Branch, Entry, Kept, Pin, Record, Whole

_SCHEMA: Final = 1  # of an exported session


async def export(session: Session) -> dict[str, Any]:
    """The whole session as one JSON object, to be read by eye, kept, and restored."""
    whole = await session.store.whole(session.id)
    return {
        "schema": _SCHEMA,
        "session": session.id,
        "metadata": dict(whole.metadata),
        "pins": [pin.to_json() for pin in whole.pins],
        "record": whole.record.to_json(),
        "segments": [segment.to_json() for segment in whole.segments],
        "transcript": [entry.to_json() for entry in whole.entries],
        "branches": [branch.to_json() for branch in whole.branches],
    }


async def restore(session: Session, exported: Mapping[str, Any], *, replace: bool) -> None:
    """Put an exported session in the place of this one.

    Raises:
        InvalidExport: it cannot be read; nothing has changed.
        SessionExists: this one holds something, and `replace` is False; nothing has changed.
    """
    whole = _counted(_read(exported), session)
    while True:
        there = await session.store.snapshot(session.id)
        held = there.totals.next_seq or there.pins or there.metadata or await session.store.branches(session.id)
        if held and not replace:
            raise SessionExists(session.id, there.totals.next_seq)
        if session.user is not None:  # first: a session that is there is its user's, whenever this is killed
            await session.store.append(session.id, (), None, session.user)
        if await session.store.restore(session.id, (there.record.revision, there.totals.next_seq), whole):
            session.forget()
            await meaning.rewound(session, 0, there.record.boundary)
            return


def _read(exported: Mapping[str, Any]) -> Whole:
    if not isinstance(exported, Mapping):
        raise InvalidExport(f"an exported session is a JSON object, got {type(exported).__name__}")
    if exported.get("schema") != _SCHEMA:
        got = f"{exported.get('schema')!r:.80}"
        raise InvalidExport(f"this version reads schema {_SCHEMA} of exported sessions, got {got}")
    try:
        whole = Whole(
            record=Record.from_json(exported["record"]),
            entries=tuple(map(Entry.from_json, exported["transcript"])),
            branches=tuple(map(Branch.from_json, exported["branches"])),
            segments=tuple(map(Segment.from_json, exported["segments"])),
            pins=tuple(map(Pin.from_json, exported["pins"])),
            metadata=tuple((str(name), str(value)) for name, value in exported["metadata"].items()),
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as fault:
        raise InvalidExport(f"the exported session lacks something, or holds it wrongly: {fault!r:.200}") from fault
    wrong = misfit(whole)
    if wrong or exported["record"].get("schema") != SCHEMA:
        raise InvalidExport(f"the exported session holds something wrongly: {wrong or 'the schema of its record'}")
    _check(whole)
    closed = (entry for branch in whole.branches for entry in branch.entries)
    try:
        read_openai([message for entry in (*whole.entries, *closed) for message in (entry.message, entry.shown)])
    except InvalidMessage as fault:
        raise InvalidExport(f"a message of the exported session cannot be read: {fault.reason}") from fault
    return whole


def _counted(whole: Whole, session: Session) -> Whole:
    """The session counted and indexed anew: what an export says of tokens is nobody's promise."""
    record, tally, name = whole.record, session.tally, session.tally.fingerprint
    entries = tuple(replace(entry, tokens=tally(entry.shown), counter=name) for entry in whole.entries)

    def anew(kept: Kept) -> Kept:
        return replace(kept, tokens=tally(kept.message), counter=name)

    return replace(
        whole,
        entries=findable(session, entries),
        record=replace(
            record,
            system=tuple(map(anew, record.system)),
            first_user=record.first_user and anew(record.first_user),
            anchor=record.anchor and anew(record.anchor),
        ),
    )


def _check(whole: Whole) -> None:
    """Refuse what no session can be: a place twice or missing, or messages in no segment and not live."""
    seqs = [entry.seq for entry in whole.entries]
    if seqs != list(range(len(seqs))):
        raise InvalidExport("the messages of the transcript must be numbered from 0 on without a gap")
    archive = whole.record.archive.segments
    _check_parts(whole)
    edges = [0, *(edge for segment in archive for edge in (segment.start, segment.end)), whole.record.boundary]
    if any(first != second for first, second in list(pairwise(edges))[::2]) or whole.record.boundary > len(seqs):
        raise InvalidExport(
            f"the archive must cover the messages before the boundary ({whole.record.boundary} of {len(seqs)}) "
            "without a gap"
        )


def _check_parts(whole: Whole) -> None:
    """Refuse an archive whose merged segments are not made of what they cover."""
    kept = {segment.id: segment for segment in whole.segments}
    left = list(whole.record.archive.segments)
    while left:
        one = left.pop()
        lost = [id_ for id_ in one.children if id_ not in kept]
        if lost:
            raise InvalidExport(f"segment {one.id!r:.80} was merged from others that are missing: {lost!r:.80}")
        parts = [kept[id_] for id_ in one.children]
        edges = [one.start, *(edge for part in parts for edge in (part.start, part.end)), one.end]
        empty = any(part.start >= part.end or part.level >= one.level for part in parts)
        if parts and (empty or any(first != second for first, second in list(pairwise(edges))[::2])):
            raise InvalidExport(f"the parts of segment {one.id!r:.80} are not what it covers")
        left.extend(parts)
