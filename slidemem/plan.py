"""Decides the budget, in one place: what of the live messages is shown, and what is due for consolidation.

Pure: the same state, options and counts give the same plan. How a plan becomes one list is `compose.py`'s;
who acts on a due job is `flow.py`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from slidemem.archive import Segment
from slidemem.config import Options
from slidemem.head import Head, Headlines, compose, headlines
from slidemem.messages import Message, digest, marked
from slidemem.present import clamp, without_reasoning
from slidemem.state import Entry, Kept, Pin, Record, Snapshot, recounted
from slidemem.tokens import Tally
from slidemem.units import Grouped, Unit, group, silenced

_FILL: int = 80  # per cent of its share that the archive is filled to before segments get shorter


@dataclass(frozen=True, slots=True)
class Layout:
    """The state of a session, sorted into its zones.

    Attributes:
        system: leading system messages.
        units: the live messages.
        anchor: the user message of the turn that the boundary cuts through.
        head: metadata, pins and archive, composed.
        covered: messages before the boundary.
        room: tokens that system messages and head leave.
        limit: tokens that the window may take.
        allotment: tokens that it may take once something is archived.
        window_tokens: of the anchor and all live units.
        added_tokens: of those, what was added to make them complete: stubs, notes, other ids.
        grouped: the live messages as they were grouped.
        told: what the head was composed of: record, pins and metadata.
    """

    system: tuple[Kept, ...]
    units: tuple[Unit, ...]
    anchor: Kept | None
    head: Head
    covered: int
    room: int
    limit: int
    allotment: int
    window_tokens: int
    added_tokens: int
    grouped: Grouped
    told: tuple[Record, tuple[Pin, ...], tuple[tuple[str, str], ...]]

    def viewing(self, units: tuple[Unit, ...], anchor: Kept | None) -> Layout:
        """The layout with other units behind another anchor."""
        tokens = _tokens(anchor) + sum(unit.tokens for unit in units)
        return replace(self, units=units, anchor=anchor, window_tokens=tokens)


@dataclass(frozen=True, slots=True)
class Job:
    """A span that is due to leave the window, and what the session becomes when it has left.

    Attributes:
        snapshot: the session that it was planned on.
        covered: the messages of the span.
        messages: the span as a summariser is shown it.
        earlier: what the archive says already.
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


def lay_out(
    snapshot: Snapshot,
    options: Options,
    tally: Tally,
    pending: Sequence[Entry] = (),
    before: Layout | None = None,
) -> Layout:
    """Sort a snapshot into its zones.

    Args:
        snapshot: the session.
        options: of the memory.
        tally: counts.
        pending: messages about to be sent, as entries after the last one; they complete and follow the live
            units in the grouping.
        before: an earlier layout of the session, with the same options and tally; only what differs is done
            again. The result is the same with and without it.
    """
    record = snapshot.record
    live = recounted(snapshot.live, tally.fingerprint, tally)
    leading = () if record.boundary else tuple(_leading(live))
    passed = {entry.seq for entry in leading}
    system = tuple(kept.recounted(tally.fingerprint, tally) for kept in record.system) or tuple(map(_kept, leading))
    rest = tuple(entry for entry in live if entry.seq not in passed) if passed else live
    told = (record, snapshot.pins, snapshot.metadata)
    if before and before.told == told:
        composed = before.head
    else:
        composed = compose(headlines_of(snapshot, options, tally), options.archive_tokens, tally.text)
    grouped = group((*rest, *pending), options.unit_tokens, tally, before.grouped if before else None)
    inside = not (grouped.units and grouped.units[0].opens_turn)
    anchor = record.anchor.recounted(tally.fingerprint, tally) if record.anchor and inside else None
    room = options.usable - composed.tokens - (_sum(system) if options.count_system else 0)
    allotment = max(1, min(options.allotment, room))
    unit_tokens = sum(unit.tokens for unit in grouped.units)
    return Layout(
        system=tuple(kept for kept in system if kept.message.parts),
        units=grouped.units,
        anchor=anchor,
        head=composed,
        covered=record.boundary,
        room=max(1, room),
        limit=allotment if record.boundary else max(1, room),
        allotment=allotment,
        window_tokens=_tokens(anchor) + unit_tokens,
        added_tokens=unit_tokens - sum(entry.tokens for entry in grouped.entries),
        grouped=grouped,
        told=told,
    )


def narrowed(layout: Layout, taken: int) -> Layout:
    """The layout with room for what a call shows besides: what its reads cannot show is due."""
    room = max(1, layout.room - taken)
    allotment = min(layout.allotment, room)
    return replace(layout, limit=allotment if layout.covered else room, allotment=allotment, room=room)


def shown_start(layout: Layout, limit: int, options: Options, tally: Tally) -> int:
    """The first unit that a window of `limit` tokens shows.

    Fold over the units: whenever the sum passes the limit, the start moves to where a consolidation would
    cut. So the start moves in batches, and depends on nothing that comes later.
    """
    if layout.window_tokens <= limit:
        return 0
    room = _Room.of(min(limit, layout.allotment), options)
    start, total = 0, _tokens(layout.anchor)
    for at, unit in enumerate(layout.units):
        total += unit.tokens
        if total <= limit:
            continue
        seen = layout.units[: at + 1]
        start = _cut(seen, start, room, options.keep_turns, layout.anchor, tally)
        anchor = anchor_at(seen, start, layout.anchor, room.anchor, tally)
        total = sum(unit.tokens for unit in seen[start:]) + _tokens(anchor)
    return start


def anchor_at(units: Sequence[Unit], start: int, anchor: Kept | None, limit: int, tally: Tally) -> Kept | None:
    """The user message that stands before the units from `start` on, when they start inside a turn.

    Args:
        units: all live units.
        start: the first one that is shown.
        anchor: the record's, for units of the turn that the boundary cut.
        limit: tokens that the anchor may take; a larger one is clamped.
        tally: counts.
    """
    if not units:
        return anchor
    if start >= len(units) or units[start].opens_turn:
        return None
    opener = next((unit for unit in reversed(units[:start]) if unit.opens_turn), None)
    if opener is None:
        return anchor
    return anchored(opener.start, opener.shown[0].message, opener.shown[0].tokens, limit, tally)


def anchored(seq: int, message: Message, tokens: int, limit: int, tally: Tally) -> Kept:
    """A user message as an anchor, clamped to `limit` tokens where it takes more and its marks do not.

    It is marked, so that a host that hands it back does not seem to have left out what came after it.
    """
    clamped = None if tokens <= limit else tally.once(clamp, (message,), limit)
    shown, cost = (message, tokens) if clamped is None else (clamped[0], tally(clamped[0]))
    return Kept(seq, marked(shown, "anchor", shown), cost, tally.fingerprint)


def quiet(units: Sequence[Unit], start: int, tally: Tally) -> tuple[Unit, ...]:
    """The units from `start` on, without reasoning in a turn that is cut before a unit that has none.

    Anthropic: within a tool loop the first assistant message must start with its thinking block when any has
    one ("Expected `thinking` or `redacted_thinking`, but found `tool_use`").
    """
    shown = tuple(units[start:])
    if not shown or shown[0].opens_turn or shown[0].starts_with_reasoning:
        return shown
    end = next((at for at, unit in enumerate(shown) if unit.opens_turn), len(shown))
    return (*(silenced(unit, tally) for unit in shown[:end]), *shown[end:])


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
    room = _Room.of(layout.allotment, options)
    start, limit, total, turns = 0, layout.limit, _tokens(layout.anchor), 0
    for at, unit in enumerate(layout.units):
        total, turns = total + unit.tokens, turns + unit.opens_turn
        ended = unit.answers or total > limit or (now and at == len(layout.units) - 1)
        if not ended or not (total > options.compact_at * limit or _surplus(turns, options)):
            continue
        seen = layout.units[: at + 1]
        cut = _cut(seen, start, room, options.keep_turns, layout.anchor, tally)
        cut = max(cut, start + _surplus_start(seen[start:], options))
        if cut > start:
            start, limit = cut, layout.allotment
            anchor = anchor_at(seen, start, layout.anchor, room.anchor, tally)
            total = _tokens(anchor) + sum(unit.tokens for unit in seen[start:])
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
    units, room = layout.units, _Room.of(layout.allotment, options)
    if force and units:
        cut = _cut(units, 0, room, options.keep_turns, layout.anchor, tally)
        at = max(cut, _surplus_start(units, options))
    else:
        at = due_start(layout, options, tally, now=now)
    if at == 0:
        return None
    anchor = anchor_at(units, at, layout.anchor, room.anchor, tally)
    freed = _tokens(layout.anchor) + sum(unit.tokens for unit in units[:at]) - _tokens(anchor)
    last = [one for one in snapshot.record.archive.segments[-1:] if one.level == 0]
    pressing = layout.window_tokens > layout.limit  # what is not shown must not stay out of the archive
    if freed <= (0 if pressing else sum(segment.tokens for segment in last)):
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
        (_kept(entry) for entry in covered if entry.message.role == "user"),
        None,
    )
    return Job(
        snapshot=snapshot,
        covered=recounted(covered, tally.fingerprint, tally),
        messages=tuple(without_reasoning(entry.shown) for entry in covered if entry.seq not in leading),
        earlier=record.archive.text,
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
    """Tokens that the merged segment may take: what is free of the archive's fill, at least a third of its share."""
    share = options.archive_tokens
    rest = _texts_tokens([one for one in record.archive.segments if one not in children], tally)
    return max(share * _FILL // 100 - rest, share // 3)


def pinned_texts(snapshot: Snapshot) -> tuple[str, ...]:
    """The pins that are shown: one taken from a message is shown once the message is archived."""
    return tuple(pin.text for pin in snapshot.pins if pin.source is None or pin.source < snapshot.record.boundary)


def headed_by(snapshot: Snapshot, options: Options, tally: Tally) -> int:
    """Tokens of what stands before the window whatever it shows: system messages and head."""
    head = compose(headlines_of(snapshot, options, tally), options.archive_tokens, tally.text)
    system = sum(kept.recounted(tally.fingerprint, tally).tokens for kept in snapshot.record.system)
    return head.tokens + (system if options.count_system else 0)


def pinned_tokens(snapshot: Snapshot, options: Options, tally: Tally) -> int:
    """Tokens of everything pinned, pins that are not shown yet counted in."""
    everything = replace(snapshot, pins=tuple(replace(pin, source=None) for pin in snapshot.pins))
    return compose(headlines_of(everything, options, tally), options.archive_tokens, tally.text).pinned_tokens


def headlines_of(snapshot: Snapshot, options: Options, tally: Tally) -> Headlines:
    """What the session's head can hold."""
    record = snapshot.record
    first = ""
    if options.keep_first_user and record.first_user:
        kept = tally.once(clamp, (record.first_user.message,), options.archive_tokens // 2)
        first = " ".join(kept[0].text.split()) if kept else ""
    return headlines(snapshot.metadata, pinned_texts(snapshot), first, record.archive.text, record.boundary)


def _kept(entry: Entry) -> Kept:
    return Kept(entry.seq, entry.shown, entry.tokens, entry.counter)


def _leading(live: Sequence[Entry]) -> list[Entry]:
    """The system messages before the first user message."""
    first_user = next((at for at, entry in enumerate(live) if entry.message.role == "user"), len(live))
    return [entry for entry in live[:first_user] if entry.message.role == "system"]


@dataclass(frozen=True, slots=True)
class _Room:
    """Where a cut of a window begins and down to where it goes, in tokens."""

    high: float
    low: float
    anchor: int

    @classmethod
    def of(cls, limit: int, options: Options) -> _Room:
        return cls(options.compact_at * limit, options.compact_to * limit, options.allotment // 2)


def _cut(units: Sequence[Unit], start: int, room: _Room, keep_turns: int, anchor: Kept | None, tally: Tally) -> int:
    """Where a window of the units from `start` on is cut: the first unit that stays; `start` for no cut.

    Whole turns leave first, down to `room.low`, while the newest `keep_turns` stay as long as they are under
    `room.high`. A newest turn that is over it by itself is cut inside, at the first unit that brings its
    anchor and the rest under `room.low`; its newest unit stays.
    """
    after: dict[int, int] = {}
    left = sum(unit.tokens for unit in units[start:])
    for at in range(start, len(units)):
        after[at] = left
        left -= units[at].tokens
    turns = [at for at in range(start, len(units)) if units[at].opens_turn]
    lowest = next((at for at in turns if after[at] <= room.low), None)
    kept = next((at for at in turns[-keep_turns:] if after[at] <= room.high), None)
    whole = [at for at in (lowest, kept) if at is not None]
    if whole:
        return min(whole)
    opener = turns[-1] if turns else start - 1
    inside = _inside(units, range(opener + 1, len(units)), after, room, anchor, tally)
    gone = after[start] + _tokens(anchor_at(units, start, anchor, room.anchor, tally))
    for at in (inside, opener):
        if at > start and gone > after[at] + _tokens(anchor_at(units, at, anchor, room.anchor, tally)):
            return at
    return start


def _inside(
    units: Sequence[Unit],
    places: Sequence[int],
    after: dict[int, int],
    room: _Room,
    anchor: Kept | None,
    tally: Tally,
) -> int:
    """Where a turn that is too large by itself is cut; -1 when it is a single message."""
    if not places:
        return -1
    if any(units[at].reasons for at in places):
        places = [at for at in places if units[at].starts_with_reasoning] or places
    cost = _tokens(anchor_at(units, places[-1], anchor, room.anchor, tally))
    return next((at for at in places if cost + after[at] <= room.low), places[-1])


def _target(record: Record, composed: Head, freed: int, options: Options, tally: Tally) -> int:
    """Tokens that a new segment may take.

    What the archive has free up to 80 % of its share, at least a third of the share, at most half of the span.
    """
    share = options.archive_tokens
    free = share * _FILL // 100 - composed.pinned_tokens - _texts_tokens(record.archive.segments, tally)
    return min(max(free, share // 3), freed // 2)


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


def _tokens(kept: Kept | None) -> int:
    return kept.tokens if kept else 0


def _sum(kept: Sequence[Kept]) -> int:
    return sum(one.tokens for one in kept)
