"""Decides what leaves the window, and what the session becomes when it has left.

Pure: a job is a plan, with all that is needed to carry it out; who does so, and when, is `settle.py`'s and
`schedule.py`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from slidemem.archive import Segment
from slidemem.config import Options
from slidemem.head import Head, shown_of
from slidemem.messages import Message, digest
from slidemem.plan import Layout, Room, anchor_at, cut_at, kept_of, tokens_of
from slidemem.present import without_reasoning
from slidemem.state import Entry, Kept, Record, Snapshot, recounted
from slidemem.tokens import Tally
from slidemem.units import Unit

_FILL: Final = 200  # per cent of its share that the archive is filled to before segments get shorter


@dataclass(frozen=True, slots=True)
class Job:
    """A span that is due to leave the window, and what the session becomes when it has left.

    Attributes:
        snapshot: the session that it was planned on.
        covered: the messages of the span.
        messages: the span as a summariser is shown it.
        earlier: what a context shows of the archive.
        target_tokens: what the new segment may take.
        record: the session's record after the commit, but for archive, revision and overhead.
    """

    snapshot: Snapshot
    covered: tuple[Entry, ...]
    messages: tuple[Message, ...]
    earlier: str
    target_tokens: int
    record: Record

    @property
    def revision(self) -> int:
        """Of the record that it was planned on."""
        return self.snapshot.record.revision

    @property
    def tokens(self) -> int:
        """Of the span, as it is shown."""
        return sum(entry.tokens for entry in self.covered)

    @property
    def start(self) -> int:
        """`seq` of the first message it covers, leading system messages counted in."""
        return self.covered[0].seq

    @property
    def end(self) -> int:
        """`seq` after the last message it covers."""
        return self.covered[-1].seq + 1


@dataclass(frozen=True, slots=True)
class Plan:
    """Where a session stands in its budget, in tokens.

    Attributes:
        usable: what a context may take.
        head_tokens: of metadata, pins and archive as a context shows them.
        window_tokens: of the live messages, the anchor of a cut turn counted in.
        limit: what the window may take now.
        compact_at: where consolidation starts.
        compact_to: down to where it goes.
        live: messages from the boundary on.
        due: the span that consolidation would cover now; None when nothing is due.
        due_tokens: of that span, as it is shown.
        target_tokens: what its segment may take.
    """

    usable: int
    head_tokens: int
    window_tokens: int
    limit: int
    compact_at: int
    compact_to: int
    live: int
    due: tuple[int, int] | None
    due_tokens: int
    target_tokens: int


def planned(snapshot: Snapshot, layout: Layout, options: Options, tally: Tally) -> Plan:
    """Where a session stands, and what of it is due."""
    job = plan_job(snapshot, layout, options, tally)
    return Plan(
        usable=options.usable,
        head_tokens=layout.head.tokens,
        window_tokens=layout.window_tokens,
        limit=layout.limit,
        compact_at=int(options.compact_at * layout.limit),
        compact_to=int(options.compact_to * layout.allotment),
        live=len(snapshot.live),
        due=(job.start, job.end) if job else None,
        due_tokens=job.tokens if job else 0,
        target_tokens=job.target_tokens if job else 0,
    )


def due_start(layout: Layout, options: Options, tally: Tally, *, now: bool) -> int:
    """The unit at which the window starts once everything due has left it; 0 when nothing is due.

    A fold over the live units: wherever a turn ends (or the window passes its limit in the middle of one) and the
    window is over `compact_at`, or holds more than `window_turns`, its oldest units leave. So the outcome is the
    same whether consolidation followed at once or long after, in one step or in many.

    Args:
        layout: of the session.
        options: of the memory.
        tally: counts.
        now: take the newest unit for the end of a turn.
    """
    room = Room.of(layout.allotment, options)
    start, limit, total, turns = 0, layout.limit, tokens_of(layout.anchor), 0
    for at, unit in enumerate(layout.units):
        total, turns = total + unit.tokens, turns + unit.opens_turn
        ended = unit.answers or total > limit or (now and at == len(layout.units) - 1)
        if not ended or not (total > options.compact_at * limit or _surplus(turns, options)):
            continue
        seen = layout.units[: at + 1]
        cut = cut_at(seen, start, room, options.keep_turns, layout.anchor, tally)
        cut = max(cut, start + _surplus_start(seen[start:], options))
        if cut > start:
            start, limit = cut, layout.allotment
            anchor = anchor_at(seen, start, layout.anchor, room.anchor, tally)
            total = tokens_of(anchor) + sum(unit.tokens for unit in seen[start:])
            turns = sum(unit.opens_turn for unit in seen[start:])
    return start


def plan_job(
    snapshot: Snapshot, layout: Layout, options: Options, tally: Tally, *, now: bool = False, force: bool = False
) -> Job | None:
    """What leaves the window; None when nothing is due, or a cut would free nothing worth its segment.

    Args:
        snapshot: the session.
        layout: of the snapshot.
        options: of the memory.
        tally: counts.
        now: take the newest message for the end of a turn, though it is not an answer.
        force: cut down to `compact_to`, whether it is due or not.
    """
    units, room = layout.units, Room.of(layout.allotment, options)
    if force and units:
        cut = cut_at(units, 0, room, options.keep_turns, layout.anchor, tally)
        at = max(cut, _surplus_start(units, options))
    else:
        at = due_start(layout, options, tally, now=now)
    if at == 0:
        return None
    anchor = anchor_at(units, at, layout.anchor, room.anchor, tally)
    freed = tokens_of(layout.anchor) + sum(unit.tokens for unit in units[:at]) - tokens_of(anchor)
    last = [one for one in snapshot.record.archive.segments[-1:] if one.level == 0]
    pressing = layout.window_tokens > layout.limit  # what is not shown must not stay out of the archive
    if freed <= (0 if pressing else min(sum(segment.tokens for segment in last), options.archive_tokens)):
        return None
    target = _target(snapshot.record, layout.head, freed, options, tally)
    return _job(snapshot, layout, units[at], anchor, target, tally)


def _job(
    snapshot: Snapshot,
    layout: Layout,
    first_kept: Unit,
    anchor: Kept | None,
    target: int,
    tally: Tally,
) -> Job:
    record, end = snapshot.record, first_kept.start
    covered = tuple(entry for entry in snapshot.live if entry.seq < end)
    leading = {kept.seq for kept in layout.system}
    first_user = record.first_user or next(
        (kept_of(entry) for entry in covered if entry.message.role == "user"),
        None,
    )
    return Job(
        snapshot=snapshot,
        covered=recounted(covered, tally.fingerprint, tally),
        messages=tuple(without_reasoning(entry.shown) for entry in covered if entry.seq not in leading),
        earlier=shown_of(record.archive.text, layout.head),
        target_tokens=target,
        record=replace(
            bounded(record, end, first_kept.entries[0]),
            system=record.system or layout.system,
            first_user=first_user,
            anchor=anchor,
        ),
    )


def bounded(record: Record, boundary: int, first_live: Entry | None) -> Record:
    """The record with another boundary, and what tells the message there from others."""
    return replace(
        record,
        boundary=boundary,
        boundary_id=first_live.message.id if first_live else None,
        boundary_digest=digest(first_live.message) if first_live else "",
    )


def advanced(job: Job, segment: Segment) -> Record:
    """The record after the job's commit: its archive has one more segment, its revision has moved."""
    record = job.record
    return replace(record, revision=record.revision + 1, archive=record.archive.appended(segment))


def merge_target(record: Record, children: Sequence[Segment], options: Options, tally: Tally) -> int:
    """What the merged segment may take: what is free of the archive's fill, two thirds of its share or more."""
    share = options.archive_tokens
    rest = _texts_tokens([one for one in record.archive.segments if one not in children], tally)
    return max(share * _FILL // 100 - rest, share * 2 // 3)


def _target(record: Record, composed: Head, freed: int, options: Options, tally: Tally) -> int:
    """Tokens that a new segment may take.

    What the archive has free up to twice its share, at least two thirds of the share, at most half of the span. More
    is kept than a context shows, so that the head chooses among lines of the whole conversation.
    """
    share = options.archive_tokens
    free = share * _FILL // 100 - composed.pinned_tokens - _texts_tokens(record.archive.segments, tally)
    return min(max(free, share * 2 // 3), freed // 2)


def _surplus(turns: int, options: Options) -> int:
    """How many turns leave because the window holds more than `window_turns`: whole batches."""
    if options.window_turns is None:
        return 0
    over = turns - options.window_turns
    return -(-over // options.leaving_turns) * options.leaving_turns if over > 0 else 0


def _surplus_start(units: Sequence[Unit], options: Options) -> int:
    turns = [at for at, unit in enumerate(units) if unit.opens_turn]
    surplus = _surplus(len(turns), options)
    return turns[min(surplus, len(turns) - 1)] if surplus else 0


def _texts_tokens(segments: Sequence[Segment], tally: Tally) -> int:
    return sum(tally.text(segment.text) for segment in segments if segment.text)
