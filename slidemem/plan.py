"""Decides the budget, in one place: what of the live messages is shown, and where a window that is too full is cut.

Pure: the same state, options and counts give the same plan. How a plan becomes one list is `compose.py`'s, what
leaves the window for good is `leaving.py`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from slidemem.config import Options
from slidemem.head import Head, Headlines, compose, headlines
from slidemem.messages import Message, marked
from slidemem.present import clamp
from slidemem.state import Entry, Kept, Pin, Record, Snapshot, recounted
from slidemem.tokens import Tally
from slidemem.units import Grouped, Unit, group, silenced

_PAUSE: Final = 6 * 3600.0  # seconds of silence after which another sitting begins


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
        tokens = tokens_of(anchor) + sum(unit.tokens for unit in units)
        return replace(self, units=units, anchor=anchor, window_tokens=tokens)


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
    system = tuple(kept.recounted(tally.fingerprint, tally) for kept in record.system) or tuple(map(kept_of, leading))
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
        window_tokens=tokens_of(anchor) + unit_tokens,
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
    room = Room.of(min(limit, layout.allotment), options)
    start, total = 0, tokens_of(layout.anchor)
    for at, unit in enumerate(layout.units):
        total += unit.tokens
        if total <= limit:
            continue
        seen = layout.units[: at + 1]
        start = cut_at(seen, start, room, options.keep_turns, layout.anchor, tally)
        anchor = anchor_at(seen, start, layout.anchor, room.anchor, tally)
        total = sum(unit.tokens for unit in seen[start:]) + tokens_of(anchor)
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
    lines = headlines(snapshot.metadata, pinned_texts(snapshot), first, record.archive.text, record.boundary)
    return replace(lines, cues=options.signs)


def kept_of(entry: Entry) -> Kept:
    """An entry as the record keeps it."""
    return Kept(entry.seq, entry.shown, entry.tokens, entry.counter)


def _leading(live: Sequence[Entry]) -> list[Entry]:
    """The system messages before the first user message."""
    first_user = next((at for at, entry in enumerate(live) if entry.message.role == "user"), len(live))
    return [entry for entry in live[:first_user] if entry.message.role == "system"]


@dataclass(frozen=True, slots=True)
class Room:
    """Where a cut of a window begins and down to where it goes, in tokens."""

    high: float
    low: float
    anchor: int

    @classmethod
    def of(cls, limit: int, options: Options) -> Room:
        """The room of a window that may take `limit` tokens."""
        return cls(options.compact_at * limit, options.compact_to * limit, options.allotment // 2)


def cut_at(units: Sequence[Unit], start: int, room: Room, keep_turns: int, anchor: Kept | None, tally: Tally) -> int:
    """Where a window of the units from `start` on is cut: the first unit that stays; `start` for no cut.

    Whole turns leave first, down to `room.low`, while the newest `keep_turns` stay as long as they are under
    `room.high`. A newest turn that is over it by itself is cut inside, at the first unit that brings its
    anchor and the rest under `room.low`; its newest unit stays. Where a sitting ends earlier, and the window is left
    less than half way from there to `room.high`, it is cut there, so that no segment holds the end of one and the
    beginning of the next.
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
        cut, middle = min(whole), (room.low + room.high) / 2
        ends = (at for at in turns if start < at < cut and after[at] <= middle and _apart(units[at - 1], units[at]))
        return next(ends, cut)
    opener = turns[-1] if turns else start - 1
    inside = _inside(units, range(opener + 1, len(units)), after, room, anchor, tally)
    gone = after[start] + tokens_of(anchor_at(units, start, anchor, room.anchor, tally))
    for at in (inside, opener):
        if at > start and gone > after[at] + tokens_of(anchor_at(units, at, anchor, room.anchor, tally)):
            return at
    return start


def _apart(one: Unit, other: Unit) -> bool:
    """Whether a sitting ends between two units."""
    return other.entries[0].at - one.entries[-1].at >= _PAUSE


def _inside(
    units: Sequence[Unit],
    places: Sequence[int],
    after: dict[int, int],
    room: Room,
    anchor: Kept | None,
    tally: Tally,
) -> int:
    """Where a turn that is too large by itself is cut; -1 when it is a single message."""
    if not places:
        return -1
    if any(units[at].reasons for at in places):
        places = [at for at in places if units[at].starts_with_reasoning] or places
    cost = tokens_of(anchor_at(units, places[-1], anchor, room.anchor, tally))
    return next((at for at in places if cost + after[at] <= room.low), places[-1])


def tokens_of(kept: Kept | None) -> int:
    """Tokens of a kept message; none of none."""
    return kept.tokens if kept else 0


def _sum(kept: Sequence[Kept]) -> int:
    return sum(one.tokens for one in kept)
