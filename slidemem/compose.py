"""Decides how the zones become one list that a model takes, and what gives way when all does not fit.

System first, then the head in front of the first shown user message, then the window. What gives way, in this
order: older units, archive lines, the archive, pins, the newest unit (clamped), the newest user message
(clamped) last. Pure. Where the window starts is `plan.py`'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from slidemem import head
from slidemem.archive import Archive
from slidemem.config import Options
from slidemem.errors import BudgetTooSmall
from slidemem.head import Head
from slidemem.messages import Mark, Message, Part, marked
from slidemem.openai_format import to_openai
from slidemem.plan import Layout, anchor_at, headlines_of, quiet, shown_start
from slidemem.present import Shown, barest, headed, is_note, joined
from slidemem.state import Entry, Kept, Snapshot
from slidemem.tokens import Tally
from slidemem.units import Unit, fitted


@dataclass(frozen=True, slots=True)
class Zones:
    """Tokens of a context by zone; they add up to its `tokens`, with the system prompt counted in."""

    system: int = 0
    pinned: int = 0
    archive: int = 0
    window: int = 0
    recall: int = 0


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a context is made of, and what it leaves out.

    Attributes:
        revision: of the record it was read from.
        boundary: the first live `seq`.
        covered: messages that the archive stands for.
        start: `seq` of the first live message that is shown, `next_seq` when none is; the anchor stands before it.
        shown: `seq` of each transcript message that is shown, in order.
        left_out: live messages that are not shown; they are kept, and due for consolidation.
        clamped: `seq` of those shown head and tail.
        dropped_lines: archive lines that did not fit.
        recalled: `seq` of each message that is quoted, in order.
        usable: tokens that there were.
        open: the newest unit still waits for results, so the list is no prompt yet.
    """

    revision: int
    boundary: int
    covered: int
    start: int
    shown: tuple[int, ...]
    left_out: int
    clamped: tuple[int, ...]
    dropped_lines: int
    usable: int
    open: bool
    recalled: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Context:
    """The result of one read.

    Attributes:
        messages: what to send, in order.
        costs: tokens of each of them.
        tokens: of them, by the memory's counter; the system prompt left out with `count_system=False`.
        zones: the same by zone.
        head: the block of metadata, pins and archive as it is shown, "" when there is none.
        receipt: what it is made of.
    """

    messages: tuple[Message, ...]
    costs: tuple[int, ...]
    tokens: int
    zones: Zones
    head: str
    receipt: Receipt

    def to_openai(self) -> list[dict[str, Any]]:
        """The messages as new OpenAI chat-completions dicts."""
        return [to_openai(message, portable=True) for message in self.messages]

    def to_html(self) -> str:
        """The context as a piece of a page: a bar of its zones, a row a message, the receipt."""
        from slidemem.show.html import context_html, safely  # noqa: PLC0415  # only who looks needs it

        return safely(lambda: context_html(self))

    def _repr_html_(self) -> str:
        return self.to_html()


@dataclass(frozen=True, slots=True)
class Composition:
    """A context before anything is quoted in it, and what is needed to do so.

    Attributes:
        context: without quotes.
        archive: of the session.
        body: its messages without the system messages.
        free: tokens that are left.
    """

    context: Context
    archive: Archive
    body: tuple[Shown, ...]
    free: int

    def showing(self, body: Sequence[Shown], taken: int, recalled: tuple[int, ...]) -> Context:
        """The context with another body, in which quotes of some messages take tokens."""
        context, first = self.context, len(self.context.messages) - len(self.body)
        return replace(
            context,
            messages=(*context.messages[:first], *(one.message for one in body)),
            costs=(*context.costs[:first], *(one.tokens for one in body)),
            tokens=context.tokens + taken,
            zones=replace(context.zones, recall=taken),
            receipt=replace(context.receipt, recalled=recalled),
        )


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments of one read.

    Attributes:
        pending: messages about to be sent but not stored yet, as entries.
        system: messages shown first.
        reserve: tokens kept free besides.
    """

    pending: tuple[Entry, ...] = ()
    system: tuple[Message, ...] = ()
    reserve: int = 0


@dataclass(frozen=True, slots=True)
class _Draft:
    """A list being composed, without the system messages.

    Attributes:
        body: what is shown, the head included.
        head: the head it shows.
        window_tokens: of the body without the head.
        start: `seq` from which on live messages are shown.
        tokens: of the body.
    """

    body: tuple[Shown, ...] = ()
    head: Head = field(default_factory=Head)
    window_tokens: int = 0
    start: int = 0
    tokens: int = 0


def compose(snapshot: Snapshot, layout: Layout, options: Options, tally: Tally, call: Call) -> Composition:
    """The context of a session for one call, before anything is quoted in it.

    Args:
        snapshot: the session.
        layout: of the snapshot and the call's pending messages.
        options: of the memory.
        tally: counts.
        call: arguments of the read.

    Raises:
        BudgetTooSmall: not even the newest message, clamped to its marks, fits.
    """
    system = _system(layout, call, tally)
    usable = options.usable - call.reserve
    taken = sum(shown.tokens for shown in system) if options.count_system else 0
    room = usable - taken - sum(entry.tokens for entry in call.pending)
    units = _without_pending(layout.units, snapshot.totals.next_seq) if call.pending else layout.units
    asked = any(entry.message.role == "user" for entry in call.pending)
    view = layout.viewing(units, layout.anchor) if call.pending else layout
    composer = _Composer(snapshot, view, options, tally, pending=bool(call.pending), asked=asked)
    draft = next((draft for draft in composer.drafts(room) if draft.tokens <= room), None)
    if draft is None or room < 0:
        raise BudgetTooSmall(usable - room + composer.least(), usable)
    pinned = min(draft.head.pinned_tokens, draft.tokens - draft.window_tokens)
    shown = tuple(seq for one in draft.body for seq in one.seqs)
    first = units[0].start if units else snapshot.totals.next_seq
    context = Context(
        messages=tuple(one.message for one in (*system, *draft.body)),
        costs=tuple(one.tokens for one in (*system, *draft.body)),
        tokens=taken + draft.tokens,
        zones=Zones(
            system=sum(one.tokens for one in system),
            pinned=pinned,
            archive=draft.tokens - draft.window_tokens - pinned,
            window=draft.window_tokens,
        ),
        head=draft.head.text,
        receipt=Receipt(
            revision=snapshot.record.revision,
            boundary=snapshot.record.boundary,
            covered=layout.covered,
            start=min((seq for seq in shown if seq >= draft.start), default=snapshot.totals.next_seq),
            shown=shown,
            left_out=sum(len(unit.entries) for unit in units) - sum(1 for seq in shown if seq >= first),
            clamped=tuple(seq for one in draft.body if _is_clamped(one) for seq in one.seqs),
            dropped_lines=draft.head.dropped,
            usable=usable,
            open=bool(layout.units) and layout.units[-1].waits,
        ),
    )
    return Composition(context, snapshot.record.archive, draft.body, room - draft.tokens)


@dataclass(frozen=True)
class _Composer:
    """Finds the fullest list that fits into a room, by trying what may give way in its order.

    Attributes:
        pending: whether messages follow that are not stored yet.
        asked: whether the newest user message is among those, so that ours need not be squeezed in.
    """

    snapshot: Snapshot
    layout: Layout
    options: Options
    tally: Tally
    pending: bool
    asked: bool

    def drafts(self, room: int) -> Iterator[_Draft]:
        """Lists from the fullest to the barest."""
        start = shown_start(self.layout, self.layout.limit, self.options, self.tally)
        yield from self._fewer_units(start, room)
        newest = max(0, len(self.layout.units) - 1)
        bare = self._draft(Head(), newest, whole=True)
        yield from (self._draft(smaller, newest, whole=True) for smaller in self._smaller_heads(room - bare.tokens))
        yield bare
        if not self.asked:
            yield from self._squeezed(room)
        if self.pending:
            yield _Draft()

    def least(self) -> int:
        """Tokens of the smallest list there is."""
        newest = self._newest_user()
        return sum(self.tally(barest(shown.message)) for shown in newest.shown) if newest else 0

    def _fewer_units(self, start: int, room: int) -> Iterator[_Draft]:
        """The whole head before fewer and fewer units; a list costs more than its units where notes are joined."""
        draft = self._draft(self.layout.head, start)
        yield draft
        while True:
            units = self.layout.units[start:]
            spare = sum(unit.tokens for unit in units) - (draft.tokens - room)
            view = self.layout.viewing(units, self._anchor(start))
            later = start + shown_start(view, max(1, spare), self.options, self.tally)
            if later == start:
                return
            start, draft = later, self._draft(self.layout.head, later)
            yield draft

    def _smaller_heads(self, room: int) -> Iterator[Head]:
        """The whole head, then one with fewer archive lines, then one without the archive."""
        yield self.layout.head
        lines = headlines_of(self.snapshot, self.options, self.tally)
        for share in (1, 0.7, 0.4):
            yield head.compose(lines, int(room * share), self.tally.text)
        yield head.compose(replace(lines, archive=()), 0, self.tally.text)

    def _squeezed(self, room: int) -> Iterator[_Draft]:
        """The newest unit, clamped, behind the newest user message; then that message alone, clamped."""
        for whole in (True, False):
            yield from self._newest_behind(self._anchor(len(self.layout.units) - 1, whole=whole), room)
        newest_user = self._newest_user()
        alone = newest_user and fitted(newest_user, room, self.tally)
        if alone:
            yield self._assembled(
                Head(), (alone if newest_user in self.layout.units[-1:] else _as_anchor(alone),), None
            )

    def _newest_behind(self, anchor: Kept | None, room: int) -> Iterator[_Draft]:
        """The newest unit clamped to what its anchor leaves, and once more where the two joined take more."""
        over = 0
        for newest in self.layout.units[-1:] * 2:
            fitting = fitted(newest, room - over - (anchor.tokens if anchor else 0), self.tally)
            if fitting:
                draft = self._assembled(Head(), quiet((fitting,), 0, self.tally), anchor)
                yield draft
                over = draft.tokens - room

    def _newest_user(self) -> Unit | None:
        newest = next((unit for unit in reversed(self.layout.units) if unit.opens_turn), None)
        anchor = self.layout.anchor
        if newest or not anchor:
            return newest
        return Unit((), (Shown(anchor.message, anchor.tokens, (anchor.seq,)),), opens_turn=True)

    def _draft(self, composed: Head, start: int, *, whole: bool = False) -> _Draft:
        anchor = self._anchor(start, whole=whole)
        return self._assembled(composed, quiet(self.layout.units, start, self.tally), anchor)

    def _anchor(self, start: int, *, whole: bool = False) -> Kept | None:
        """The user message before the units from `start` on; `whole` where nothing but the newest unit is left."""
        limit = self.options.usable if whole else self.options.allotment // 2
        return anchor_at(self.layout.units, start, self.layout.anchor, limit, self.tally)

    def _assembled(self, composed: Head, units: Sequence[Unit], anchor: Kept | None) -> _Draft:
        """Units behind their anchor, or from the first user message on, with the head in front."""
        first = 0 if anchor else next((at for at, unit in enumerate(units) if unit.opens_turn), len(units))
        shown = [Shown(anchor.message, anchor.tokens, (anchor.seq,))] if anchor else []
        shown.extend(one for unit in units[first:] for one in unit.shown)
        apart = not self.options.alternate and not any(unit.noted for unit in units)
        body = tuple(shown if apart else _joined(shown, self.tally, alternate=self.options.alternate))
        window_tokens = sum(one.tokens for one in body)
        start = next((unit.start for unit in units[first:] if unit.entries), 0)
        if not composed.text or not (body or self.pending):
            return _Draft(body, Head(), window_tokens, start, window_tokens)
        whole = self._behind(composed, body)
        return _Draft(whole, composed, window_tokens, start, sum(one.tokens for one in whole))

    def _behind(self, composed: Head, body: tuple[Shown, ...]) -> tuple[Shown, ...]:
        """The head in the first user message, or before it as a message of its own."""
        role = self.options.archive_role
        merges = role == "merge" or (role == "user" and self.options.alternate)
        if merges and body:
            return (self.tally.once(_headed, body[0], composed.text), *body[1:])
        mark = Mark(("head",))
        own = Message("system" if role == "system" else "user", (Part("text", composed.text),), mark=mark)
        return (Shown(own, self.tally(own), ()), *body)


def _as_anchor(alone: Unit) -> Unit:
    """A user message that stands for more of its turn, marked so."""
    return replace(
        alone, shown=tuple(replace(one, message=marked(one.message, "anchor", one.message)) for one in alone.shown)
    )


def _headed(first: Shown, text: str, tally: Tally) -> Shown:
    """The first message behind the head."""
    merged = headed(first.message, text, "head")
    return Shown(merged, tally(merged), first.seqs)


def _system(layout: Layout, call: Call, tally: Tally) -> tuple[Shown, ...]:
    mark = Mark(("system",))  # of this call and of no transcript
    asked = (Shown(replace(message, mark=mark), tally(message), ()) for message in call.system if message.parts)
    return (*asked, *(Shown(kept.message, kept.tokens, (kept.seq,)) for kept in layout.system))


def _without_pending(units: Sequence[Unit], stored: int) -> tuple[Unit, ...]:
    """The units with nothing of what is not stored yet."""
    kept = (
        unit
        if unit.end <= stored
        else replace(
            unit,
            entries=tuple(entry for entry in unit.entries if entry.seq < stored),
            shown=tuple(one for one in unit.shown if all(seq < stored for seq in one.seqs)),
        )
        for unit in units
        if unit.start < stored
    )
    return tuple(kept)


def _joined(shown: Sequence[Shown], tally: Tally, *, alternate: bool) -> Iterator[Shown]:
    """The list with each note joined to the user message beside it; all equal neighbours with `alternate`."""
    last: Shown | None = None
    for one in shown:
        if last is None:
            last = one
        elif _meets(last.message, one.message, alternate=alternate):
            both = joined(last.message, one.message)
            last = Shown(both, tally(both), (*last.seqs, *one.seqs))
        else:
            yield last
            last = one
    if last:
        yield last


def _meets(last: Message, one: Message, *, alternate: bool) -> bool:
    if last.role != one.role or one.role == "tool":
        return False
    return alternate or is_note(last) or is_note(one)


def _is_clamped(shown: Shown) -> bool:
    return shown.message.mark is not None and "clamp" in shown.message.mark.kinds
