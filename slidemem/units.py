"""Decides which messages belong together: units, turns, and the pairing of calls and results.

The only place that knows the pairing rules. A unit is the smallest run that may not be split: one message, or
an assistant message with calls and the tool messages directly after it, until all calls are answered. Pairing
is by place, not by id over the whole list: ids get used again, and can be empty. What a unit shows is complete
for every provider: each call answered at once and in full, and nothing answered that was not called.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from slidemem.messages import Mark, Message, Part, ToolCall, marked, origins
from slidemem.present import Shown, barest, clamp, is_note, oversize, without_reasoning
from slidemem.state import Entry
from slidemem.tokens import Tally

NO_RESULT: Final = "[no result]"

# Anthropic: `tool_use` ids match ^[a-zA-Z0-9_-]+$ and are unique in a request; Bedrock takes
# at most 64 characters, OpenAI 40.
_PORTABLE_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,40}")


@dataclass(frozen=True, slots=True)
class Unit:
    """What may not be split.

    Attributes:
        entries: its messages, in the transcript's order.
        shown: what a context shows of it, complete and valid by itself.
        opens_turn: whether it is a user message.
        waits: whether it is the newest unit and some of its calls have no result yet.
        tokens: of `shown`.
        noted: whether it shows a note, which joins the user message beside it.
    """

    entries: tuple[Entry, ...]
    shown: tuple[Shown, ...]
    opens_turn: bool = False
    waits: bool = False
    tokens: int = field(init=False)
    noted: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", sum(shown.tokens for shown in self.shown))
        object.__setattr__(self, "noted", any(is_note(shown.message) for shown in self.shown))

    @property
    def start(self) -> int:
        """`seq` of its first message."""
        return self.entries[0].seq

    @property
    def end(self) -> int:
        """`seq` after its last message."""
        return self.entries[-1].seq + 1

    @property
    def reasons(self) -> bool:
        """Whether it shows a reasoning block."""
        return any(shown.message.reasons for shown in self.shown)

    @property
    def starts_with_reasoning(self) -> bool:
        """Whether it starts with an assistant message that starts with reasoning."""
        return self.shown[0].message.starts_with_reasoning

    @property
    def answers(self) -> bool:
        """Whether it is an assistant message that calls nothing: the end of a turn."""
        return self.entries[-1].message.role == "assistant" and not self.entries[-1].message.tool_calls


@dataclass(frozen=True, slots=True)
class Grouped:
    """The units of a run of messages, and where grouping can be taken up again when more follow.

    Attributes:
        entries: the messages.
        units: of them.
        settled: entries before the last run; their units cannot change any more.
        names: tools by call id, up to there.
        taken: call ids that are shown, up to there.
    """

    entries: tuple[Entry, ...] = ()
    units: tuple[Unit, ...] = ()
    settled: int = 0
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    taken: frozenset[str] = frozenset()


def group(entries: tuple[Entry, ...], limit: int, tally: Tally, before: Grouped | None = None) -> Grouped:
    """The units of a run of messages.

    Args:
        entries: consecutive messages, without leading system messages.
        limit: tokens that one unit may show; a larger one is clamped, largest member first, and one whose
            bare marks take more is left with those.
        tally: counts what we compose.
        before: an earlier grouping with the same limit and count; where `entries` goes on from its messages,
            only what is new is grouped. The result is the same with and without it.
    """
    if before is None or not _goes_on(before, entries):
        before = Grouped()
    names, taken = dict(before.names), set(before.taken)
    units = list(before.units[:-1])
    found = runs(entries[before.settled :])
    units.extend(_bounded(_unit(run, names, taken, tally, newest=False), limit, tally) for run in found[:-1])
    settled_names, settled_ids = dict(names), frozenset(taken)
    units.extend(_bounded(_unit(run, names, taken, tally, newest=True), limit, tally) for run in found[-1:])
    return Grouped(entries, tuple(units), len(entries) - sum(map(len, found[-1:])), settled_names, settled_ids)


def _goes_on(before: Grouped, entries: tuple[Entry, ...]) -> bool:
    """Whether these messages begin with the settled ones, and have more: the last run is never settled."""
    return before.settled < len(entries) and before.entries[: before.settled] == entries[: before.settled]


def fitted(unit: Unit, limit: int, tally: Tally) -> Unit | None:
    """The unit clamped to `limit` tokens, first with, then without its reasoning; None when the marks do not fit."""
    if unit.tokens <= limit:
        return unit
    clamped = tally.once(clamp, tuple(shown.message for shown in unit.shown), limit)
    if clamped is None and unit.reasons:
        clamped = tally.once(clamp, tuple(without_reasoning(shown.message) for shown in unit.shown), limit)
    return None if clamped is None else _showing(unit, clamped, tally)


def _bounded(unit: Unit, limit: int, tally: Tally) -> Unit:
    if not oversize(unit.tokens, limit, tally):
        return unit
    return fitted(unit, limit, tally) or _bare(unit, tally)


def silenced(unit: Unit, tally: Tally) -> Unit:
    """The unit without its reasoning; itself when it shows none."""
    if not unit.reasons:
        return unit
    return _showing(unit, [without_reasoning(shown.message) for shown in unit.shown], tally)


def _bare(unit: Unit, tally: Tally) -> Unit:
    return _showing(unit, [barest(without_reasoning(shown.message)) for shown in unit.shown], tally)


def _showing(unit: Unit, messages: Sequence[Message], tally: Tally) -> Unit:
    """The unit with other messages in the place of those it shows; what is unchanged keeps its count."""
    return replace(
        unit,
        shown=tuple(
            old if old.message is new else Shown(new, tally(new), old.seqs)
            for old, new in zip(unit.shown, messages, strict=True)
        ),
    )


def runs(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Each assistant message with calls with the tool messages that follow until all are answered; the rest alone."""
    runs: list[list[Entry]] = []
    missing, named = 0, Counter[str]()
    for entry in entries:
        if entry.message.role == "tool" and missing > 0:
            runs[-1].append(entry)
            wanted = entry.message.tool_call_id
            missing -= wanted is None or named[wanted] > 0
            if wanted is not None:
                named[wanted] -= 1
        else:
            runs.append([entry])
            missing, named = len(entry.message.tool_calls), Counter(call.id for call in entry.message.tool_calls)
    return runs


def _unit(run: Sequence[Entry], names: dict[str, str], taken: set[str], tally: Tally, *, newest: bool) -> Unit:
    """One unit; `names` (call id to tool) and `taken` (ids already shown) are carried along."""
    first, rest = run[0], run[1:]
    if not first.message.tool_calls:
        return Unit((first,), (_alone(first, names, tally),), opens_turn=first.message.role == "user")
    calls = first.message.tool_calls
    answers = _pair(calls, rest)
    answered = set(answers.values())
    unanswered = [place for place in range(len(calls)) if place not in answered]
    waits = newest and bool(unanswered)
    names.update({call.id: shown.name for call, shown in zip(calls, first.shown.tool_calls, strict=True)})
    ids = [_free_id(call, first.seq, place, taken) for place, call in enumerate(calls)]
    shown = (
        _calling(first, ids, tally),
        *(_answer(entry, ids[answers[entry.seq]], tally) for entry in rest if entry.seq in answers),
        *(_stub(ids[place], first.shown.tool_calls[place], tally) for place in unanswered if not waits),
        *(_note(entry, names, tally) for entry in rest if entry.seq not in answers),
    )
    return Unit(tuple(run), shown, waits=waits)


def _pair(calls: Sequence[ToolCall], results: Sequence[Entry]) -> dict[int, int]:
    """For each result that belongs to a call, its `seq` and the place of the call.

    A result that names its call goes first; one that names none takes the first call left over.
    """
    places: dict[str, deque[int]] = {}
    for place, call in enumerate(calls):
        places.setdefault(call.id, deque()).append(place)
    answers: dict[int, int] = {}
    for entry in results:
        wanted = entry.message.tool_call_id
        if wanted is not None and places.get(wanted):
            answers[entry.seq] = places[wanted].popleft()
    left_over = iter(sorted(place for open_places in places.values() for place in open_places))
    nameless = (entry for entry in results if entry.message.tool_call_id is None)
    answers.update((entry.seq, place) for entry, place in zip(nameless, left_over, strict=False))
    return answers


def _free_id(call: ToolCall, seq: int, place: int, taken: set[str]) -> str:
    """The call's own id where every provider takes it and no earlier call has it, else one made from its place."""
    free = call.id if _PORTABLE_ID.fullmatch(call.id) and call.id not in taken else f"call_{seq}_{place}"
    while free in taken:
        free += "_"
    taken.add(free)
    return free


def _calling(entry: Entry, ids: Sequence[str], tally: Tally) -> Shown:
    calls = tuple(replace(call, id=new) for call, new in zip(entry.shown.tool_calls, ids, strict=True))
    if calls == entry.shown.tool_calls:
        return _as_counted(entry)
    message = marked(replace(entry.shown, tool_calls=calls), "mended", entry.shown)
    return Shown(message, tally(message), (entry.seq,))


def _answer(entry: Entry, call_id: str, tally: Tally) -> Shown:
    if entry.shown.tool_call_id == call_id:
        return _as_counted(entry)
    message = marked(replace(entry.shown, tool_call_id=call_id), "mended", entry.shown)
    return Shown(message, tally(message), (entry.seq,))


def _stub(call_id: str, call: ToolCall, tally: Tally) -> Shown:
    part = Part("text", NO_RESULT)
    message = Message("tool", (part,), tool_call_id=call_id, name=call.name, mark=Mark(("stub",)))
    return Shown(message, tally(message), ())


def _alone(entry: Entry, names: dict[str, str], tally: Tally) -> Shown:
    """A message by itself: as it is, or as a note when it is a result or a system message out of place."""
    return _note(entry, names, tally) if entry.message.role in {"tool", "system"} else _as_counted(entry)


def _note(entry: Entry, names: dict[str, str], tally: Tally) -> Shown:
    """A user-role message that quotes what cannot stand at its place in its own role."""
    if entry.message.role == "system":
        text = f"[note from the system]\n{entry.shown.text}"
    else:
        call = entry.shown.tool_call_id or "of unknown id"
        name = entry.shown.name or names.get(entry.message.tool_call_id or "", "a tool")
        quoted = "\n".join(f"> {line}" for line in entry.shown.text.splitlines())
        text = f"[result of {name}, call {call}, out of its place]\n{quoted}"
    message = Message("user", (Part("text", text),), mark=Mark(("note",), origins(entry.shown)))
    return Shown(message, tally(message), (entry.seq,))


def _as_counted(entry: Entry) -> Shown:
    return Shown(entry.shown, entry.tokens, (entry.seq,))
