"""Going back: a rewind by the user, and a host that owns the list."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from conversations import COUNTERS, Script, script
from conversations import summarizer as named
from invariants import Run

from slidemem import (
    AsyncOnly,
    BudgetTooSmall,
    ConversationMemory,
    Event,
    InvalidMessage,
    Message,
    OversizeMessage,
    PinBudgetError,
    Segment,
    SlideMem,
    SQLiteStore,
    from_openai,
    to_openai,
)
from slidemem.check import violations
from slidemem.driver import drive
from slidemem.errors import TranscriptMismatch, UnknownReference
from slidemem.rewind import Reconciled
from slidemem.state import Snapshot, Totals, Whole
from slidemem.stores.memory import MemoryStore


def words(text: str) -> int:
    """Words of a text."""
    return len(text.split())


def said(role: str, text: str, **fields: Any) -> dict[str, Any]:
    """A message of plain text."""
    return {"role": role, "content": text, **fields}


def turn(at: int) -> list[dict[str, Any]]:
    """A question and an answer of five words each, with a name and a number, and ids of the host's."""
    return [said(role, f"word word word Pune {at}", id=f"{role}-{at}") for role in ("user", "assistant")]


def tool_round(at: int) -> list[dict[str, Any]]:
    """A call and its result of eight words."""
    call = {"id": f"c{at}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{at}", "content": f"found in Pune {at} and four words"},
    ]


def memory(**options: Any) -> SlideMem:
    """A memory of 200 words."""
    given = {"counter": words, "recall_share": 0, "archive_share": 0.4, **options}
    return SlideMem(max_tokens=200, **given)


def filled(mem: SlideMem, turns: int = 30) -> ConversationMemory:
    """The session `s` with as many turns."""
    chat = mem.session("s")
    for at in range(turns):
        chat.append(turn(at))
    return chat


def archived(mem: SlideMem, enough: Callable[[tuple[Segment, ...]], bool]) -> ConversationMemory:
    """The session `s` with as many turns as its archive needs to be as a test wants it."""
    chat = mem.session("s")
    for at in range(400):
        chat.append(turn(at))
        if enough(chat.archive()):
            return chat
    raise AssertionError("400 turns were not enough")


def levels(segments: tuple[Segment, ...]) -> list[int]:
    """The levels of segments."""
    return [segment.level for segment in segments]


def whole(mem: SlideMem, session: str = "s") -> Whole:
    """Everything that is kept of a session."""
    return drive(mem.store.whole(session), "")


def snapshot(mem: SlideMem, session: str = "s") -> Snapshot:
    """What a read of the session sees."""
    return drive(mem.store.snapshot(session), "")


def check_state(mem: SlideMem, session: str = "s") -> None:
    """Every message is live or covered by one segment, and the sums are those of what is live."""
    kept, seen = whole(mem, session), snapshot(mem, session)
    edges = [
        0,
        *(edge for one in kept.record.archive.segments for edge in (one.start, one.end)),
        seen.record.boundary,
    ]
    assert edges[0::2] == edges[1::2]
    assert kept.entries[seen.record.boundary :] == seen.live
    assert list(range(len(kept.entries))) == [entry.seq for entry in kept.entries]
    assert Totals.of(seen.record, seen.live, seen.totals.counter) == seen.totals
    assert all(pin.source is None or pin.source < len(kept.entries) for pin in kept.pins)


def texts(messages: tuple[Message, ...]) -> list[str]:
    """What they say."""
    return [message.text for message in messages]


# ------------------------------------------------------------------ which messages leave


@pytest.mark.parametrize(
    "to, stays",
    [(58, 58), (-2, 58), (59, 59), (-1, 59), (60, 60), (7, 7), (-60, 0), (0, 0), ("user-29", 58), ("user-3", 6)],
)
def test_a_rewind_keeps_the_first_and_returns_the_rest(to: int | str, stays: int) -> None:
    """A number says how many stay, a negative one how many leave, an id which one leaves first."""
    mem = memory()
    chat = filled(mem)
    before = chat.transcript()

    left = chat.rewind(to)

    assert (before[:stays], before[stays:]) == (chat.transcript(), left)
    check_state(mem)


def test_an_awaited_rewind_does_the_same() -> None:
    """The async twins of rewind and branches leave and tell what the sync methods do."""
    sync, awaited = memory(clock=lambda: 0.0), memory(clock=lambda: 0.0)
    chat, other = filled(sync), filled(awaited)

    left, expected = chat.rewind(11), asyncio.run(other.arewind(11))

    assert expected == left
    assert (whole(sync), snapshot(sync)) == (whole(awaited), snapshot(awaited))
    assert chat.branches() == asyncio.run(other.abranches())


def test_an_id_that_came_twice_names_the_latest() -> None:
    """Where a host used an id again, the rewind goes to the newest message that has it."""
    chat = memory().session("s")
    chat.append(
        [said("user", "a", id="x"), said("assistant", "b"), said("user", "c", id="x"), said("assistant", "d")]
    )

    left = chat.rewind("x")

    assert ["c", "d"] == texts(left)


@pytest.mark.parametrize("to", [True, False, 10**9, -(10**9), 61, -61, "nope", "", 1.5, None, b"user-3", [3]])
def test_a_place_that_is_not_there_changes_nothing(to: Any) -> None:
    """What names no message of the transcript is an error that says so, and everything stays."""
    events: list[Event] = []
    mem = memory(on_event=events.append)
    chat = filled(mem)
    before, told = whole(mem), len(events)

    with pytest.raises(UnknownReference, match=r"60|id") as refused:
        chat.rewind(to)

    assert isinstance(refused.value, LookupError)
    assert (before, told) == (whole(mem), len(events))


@pytest.mark.parametrize("to", [0, "x"])
def test_an_empty_session_has_nowhere_to_go(to: int | str) -> None:
    """A rewind to 0 of nothing returns nothing, and an id is unknown."""
    chat = memory().session("s")

    if to == 0:
        assert ((), ()) == (chat.rewind(0), chat.branches())
    else:
        with pytest.raises(UnknownReference):
            chat.rewind(to)


def test_a_rewind_of_nothing_is_no_change() -> None:
    """Keeping every message makes no branch, moves no revision and tells nothing."""
    events: list[Event] = []
    mem = memory(on_event=events.append)
    chat = filled(mem, 3)
    before = whole(mem)

    left = chat.rewind(6)

    assert ((), before, []) == (left, whole(mem), events)


def test_branches_keep_what_left_in_order() -> None:
    """Each rewind closes one branch, with the revision before it and the places its messages had."""
    mem = memory()
    chat = mem.session("s")
    chat.append([*turn(0), *turn(1)])
    chat.rewind(2)
    chat.append(turn(2))

    chat.rewind(1)

    first, second = chat.branches()
    assert (0, [2, 3]) == (first.revision, [entry.seq for entry in first.entries])
    assert (1, [1, 2, 3]) == (second.revision, [entry.seq for entry in second.entries])
    assert ["word word word Pune 1"] * 2 == [entry.message.text for entry in first.entries]
    assert [f"word word word Pune {at}" for at in (0, 2, 2)] == [entry.message.text for entry in second.entries]
    assert ["word word word Pune 0"] == texts(chat.transcript())


def test_a_rewind_is_told() -> None:
    """The event names the messages that left, and the new revision kills what was in flight."""
    events: list[Event] = []
    mem = memory(on_event=events.append)
    chat = filled(mem, 5)
    before = snapshot(mem).record.revision

    chat.rewind(-3)

    assert [("rewound", "s", 7, 10)] == [(one.kind, one.session, one.start, one.end) for one in events]
    assert before + 1 == snapshot(mem).record.revision


def test_another_turn_after_a_rewind() -> None:
    """What is said next takes the place of what left, and is all that a context shows of it."""
    chat = memory().session("s")
    chat.append([said("user", "Book Mumbai"), said("assistant", "Which date?"), said("user", "Never mind")])

    chat.rewind(-1)
    chat.append(said("user", "Tomorrow"))

    assert ["Book Mumbai", "Which date?", "Tomorrow"] == texts(chat.transcript()) == texts(chat.context().messages)


# ------------------------------------------------------------------ what becomes of the archive


def test_a_rewind_inside_the_live_part_keeps_the_archive() -> None:
    """Boundary and segments stay as they are while the place is behind the boundary."""
    mem = memory()
    chat = filled(mem)
    before = snapshot(mem).record

    chat.rewind(before.boundary + 2)

    after = snapshot(mem).record
    assert before.boundary > 0
    assert (before.archive, before.boundary, before.boundary_digest) == (
        after.archive,
        after.boundary,
        after.boundary_digest,
    )


def test_segments_before_the_place_stay_and_a_straddled_one_is_live_again() -> None:
    """A segment made from messages that reaches beyond the place is gone, and those that stay are live."""
    mem = memory()
    chat = archived(mem, lambda segments: levels(segments)[-3:] == [1, 0, 0])
    first, second = chat.archive()[-2:]

    chat.rewind(second.start + 3)

    kept = chat.archive()
    assert (first, second.start) == (kept[-1], snapshot(mem).record.boundary)
    assert [second.start, second.start + 1, second.start + 2] == [entry.seq for entry in snapshot(mem).live]
    check_state(mem)


def leaves(chat: ConversationMemory, segment: Segment) -> list[Segment]:
    """The segments made from messages that one was merged from."""
    left, found = [chat.explain(segment)], list[Segment]()
    while left:
        one = left.pop(0)
        left = [*one.children, *left]
        if not one.children:
            found.append(one.segment)
    return found


@pytest.mark.parametrize("which", range(8))
def test_a_merged_segment_gives_way_to_its_parts(which: int) -> None:
    """Of a merged segment that reaches beyond the place, the parts before it come back by their own ids."""
    mem = memory()
    chat = archived(mem, lambda segments: 2 in levels(segments))
    top = max(chat.archive(), key=lambda segment: segment.level)
    parts = leaves(chat, top)
    place = parts[which].end

    chat.rewind(place)

    kept = [leaf for segment in chat.archive() for leaf in leaves(chat, segment)]
    assert top.level >= 2
    assert [part.id for part in parts[: which + 1]] == [leaf.id for leaf in kept]
    assert (place, place, ()) == (snapshot(mem).record.boundary, len(chat.transcript()), snapshot(mem).live)
    check_state(mem)


def test_a_place_inside_a_part_of_a_merged_segment() -> None:
    """The parts before it stay, and of the part it cuts the messages before it are live again."""
    mem = memory()
    chat = archived(mem, lambda segments: 2 in levels(segments))
    top = max(chat.archive(), key=lambda segment: segment.level)
    parts = leaves(chat, top)
    place = parts[5].start + 1

    chat.rewind(place)

    kept = [leaf.id for segment in chat.archive() for leaf in leaves(chat, segment)]
    assert [part.id for part in parts[:5]] == kept
    assert [parts[5].start] == [entry.seq for entry in snapshot(mem).live]


@pytest.mark.parametrize("back", [2, 30])
def test_the_system_prompt_and_the_first_question_outlive_a_rewind(back: int) -> None:
    """What the boundary has passed and contexts still show is shown after it, in the live part and before it."""
    mem = memory(keep_first_user=True)
    chat = mem.session("s")
    chat.append([said("system", "be kind"), said("user", "The first question"), said("assistant", "An answer")])
    for at in range(60):
        chat.append(turn(at))
    first = chat.archive()[0]

    chat.rewind(-back)

    context = chat.context()
    assert first == chat.archive()[0]
    assert ("be kind", True) == (context.messages[0].text, "First message: The first question" in context.head)
    assert 2 == context.zones.system
    assert snapshot(mem).record.overhead_tokens == context.zones.system + chat.plan().head_tokens


def test_a_rewind_to_nothing_leaves_nothing_live_and_nothing_archived() -> None:
    """The conversation begins anew: no archive, no head, no system prompt, and the old one is a branch."""
    mem = memory(keep_first_user=True)
    chat = mem.session("s")
    chat.append(said("system", "be kind"))
    for at in range(30):
        chat.append(turn(at))

    left = chat.rewind(0)

    record = snapshot(mem).record
    assert (61, (), (), 0) == (len(left), chat.transcript(), chat.archive(), record.boundary)
    assert ((), None, None, 0) == (record.system, record.first_user, record.anchor, record.overhead_tokens)
    assert ((), 61) == (chat.context().messages, len(chat.branches()[0].entries))


def test_a_lost_part_of_a_merged_segment_makes_its_messages_live() -> None:
    """Where a store has lost a part, what follows it is live again, so that there is no gap."""

    class Losing(MemoryStore):
        lost = ""

        async def segment(self, session: str, id_: str) -> Any:
            return None if id_ == self.lost else await super().segment(session, id_)

    store = Losing()
    mem = memory(store=store)
    chat = archived(mem, lambda segments: 1 in levels(segments))
    top = max(chat.archive(), key=lambda segment: segment.level)
    parts = [child.segment for child in chat.explain(top).children]
    store.lost = parts[1].id

    chat.rewind(parts[3].start)

    assert [parts[0].id] == [segment.id for segment in chat.archive()]
    check_state(mem)


# ------------------------------------------------------------------ pins


def test_pins_of_what_left_go_and_others_stay() -> None:
    """A pin taken from a message that left is gone; one of a message that stays, and one by a call, are not."""
    chat = memory().session("s")
    chat.pin("vegan")
    chat.append([said("user", "Remember this: gate code 4471."), turn(0)[1]])
    chat.append([said("user", "Remember this: seat 12A."), turn(1)[1]])
    for at in range(2, 30):
        chat.append(turn(at))
    before = {pin.text for pin in chat.pins()}

    chat.rewind(2)

    assert {"vegan", "gate code 4471.", "seat 12A."} == before
    assert {"vegan", "gate code 4471."} == {pin.text for pin in chat.pins()}


def test_a_pin_by_a_call_stays_though_it_was_said_too() -> None:
    """What the user pinned by a call, and later asked to remember in a message, outlives that message."""
    chat = memory().session("s")
    chat.pin("gate code 4471.")
    chat.append([said("user", "Remember this: gate code 4471."), turn(0)[1]])
    for at in range(1, 30):
        chat.append(turn(at))

    chat.rewind(0)

    assert ["gate code 4471."] == [pin.text for pin in chat.pins()]


# ------------------------------------------------------------------ the anchor


@pytest.mark.parametrize("rounds", [3, 11, 20, 29])
def test_a_rewind_into_a_tool_loop_keeps_its_task(rounds: int) -> None:
    """Where the boundary cuts a turn, the context is valid, within the budget, and has the task word for word."""
    mem = memory()
    chat = mem.session("s")
    chat.append([said("user", "Hello"), said("assistant", "Hi"), said("user", "Find the best train to Pune")])
    for at in range(40):
        chat.append(tool_round(at))

    chat.rewind(3 + 2 * rounds)

    context = chat.context()
    assert [] == violations(context.to_openai())
    assert context.tokens <= 200
    assert [message for message in context.messages if message.text.endswith("Find the best train to Pune")]
    check_state(mem)


def test_a_long_task_is_found_and_clamped_as_an_anchor() -> None:
    """A task far before the place, larger than half of the window's allotment, stands there cut to that."""
    mem = memory()
    chat = mem.session("s")
    chat.append(said("user", " ".join(f"task{at}" for at in range(90))))
    for at in range(60):
        chat.append(tool_round(at))
    parts = [leaf for segment in chat.archive() for leaf in leaves(chat, segment)]

    chat.rewind(parts[-3].end)

    record, context = snapshot(mem).record, chat.context()
    assert record.anchor is not None
    assert (0, True) == (record.anchor.seq, record.anchor.tokens <= 60)
    assert "task0 " in context.messages[0].text
    assert ([], True) == (violations(context.to_openai()), context.tokens <= 200)


def test_a_context_of_messages_with_ids_is_one_that_providers_take() -> None:
    """The host's ids name messages here, and do not make the list one that a provider refuses."""
    chat = filled(memory())

    assert [] == violations(chat.context().to_openai())


def test_where_no_user_spoke_there_is_no_anchor() -> None:
    """An archive of assistant messages alone has no task to stand before what is live."""
    mem = memory(mode="manual")
    chat = mem.session("s")
    chat.append([said("assistant", f"word word word Pune {at}") for at in range(60)])
    chat.consolidate(force=True)
    boundary = snapshot(mem).record.boundary

    chat.rewind(boundary)

    assert boundary > 0
    assert (None, ()) == (snapshot(mem).record.anchor, chat.context().messages)
    check_state(mem)


def test_a_rewind_to_the_boundary_shows_the_newest_question() -> None:
    """Where all that is left is archived, the newest user message stands there, and the next one takes its place."""
    mem = memory()
    chat = filled(mem)
    boundary = snapshot(mem).record.boundary
    newest = chat.transcript()[boundary - 2].text

    chat.rewind(boundary)
    alone = chat.context()
    chat.append(said("user", "Another question"))

    assert alone.messages[-1].text.endswith(newest)
    assert ["Another question"] == [message.text.split("\n\n")[-1] for message in chat.context().messages]


# ------------------------------------------------------------------ whatever was said


@dataclass
class Coverage:
    """How often a rewind met what it has to get right."""

    before_boundary: int = 0
    gave_way: int = 0
    anchored: int = 0
    all_archived: int = 0
    consolidated_after: int = 0


def rewound(seed: int, coverage: Coverage) -> None:
    """A conversation played to its middle, rewound to a random place, and played to its end, each step checked."""
    given = replace(script(seed), alternates=False)  # the place may leave two questions side by side
    run, rng = Run(given), random.Random(seed)
    middle = len(given.steps) * 2 // 3
    for run.step, (kind, argument) in enumerate(given.steps[:middle]):
        run.take(kind, argument)
    before = snapshot(run.memory, "one").record
    place = rng.randint(0, len(run.appended))
    left = run.chat.rewind(place)
    assert run.appended[place:] == list(left), run
    del run.appended[place:]
    check_state(run.memory, "one")
    run.read()
    after = snapshot(run.memory, "one").record
    coverage.before_boundary += place < before.boundary
    coverage.gave_way += any(segment not in before.archive.segments for segment in after.archive.segments)
    coverage.anchored += after.anchor is not None
    coverage.all_archived += 0 < after.boundary == place
    for run.step, (kind, argument) in enumerate(given.steps[middle:], middle):
        run.take(kind, argument)
        run.read()
    check_state(run.memory, "one")
    coverage.consolidated_after += snapshot(run.memory, "one").record.boundary > after.boundary


def test_the_invariants_hold_after_a_rewind() -> None:
    """Budget, validity, newest message, nothing lost, purity, prefix and sums hold after it and further on."""
    coverage = Coverage()

    for seed in range(150):
        rewound(seed, coverage)

    assert coverage.before_boundary >= 50, coverage
    assert coverage.gave_way >= 15, coverage
    assert coverage.anchored >= 15, coverage
    assert coverage.all_archived >= 8, coverage
    assert coverage.consolidated_after >= 75, coverage


# ------------------------------------------------------------------ work in flight


def test_a_rewind_kills_a_consolidation_in_flight() -> None:
    """A session rewound while its summary is written reads as after the rewind, and the work is dropped."""
    events: list[Event] = []
    calls: list[int] = []

    def summarize(messages: list[dict[str, Any]]) -> str:
        calls.append(1)
        if len(calls) == 1:
            memory(store=mem.store).session("s").rewind(6)
            seen.append(whole(mem))
        return "They spoke of Pune 0"

    seen: list[Whole] = []
    mem = memory(consolidator=summarize, on_event=events.append)
    chat = mem.session("s")

    chat.append([message for at in range(20) for message in turn(at)])

    assert [whole(mem)] == seen
    assert ["lost_race"] == [event.kind for event in events]
    assert (6, (), 34) == (len(chat.transcript()), chat.archive(), len(chat.branches()[0].entries))
    check_state(mem)


class Interfering(MemoryStore):
    """A store where another worker appends before a call of the test's choice."""

    def __init__(self, before: str) -> None:
        super().__init__()
        self._before = before
        self.armed = False

    def __getattribute__(self, name: str) -> Any:
        """The method, after the append when its time has come."""
        kept = super().__getattribute__("__dict__")
        if name == kept.get("_before") and kept["armed"]:
            self.armed = False
            memory(store=self, mode="manual").session("s").append(said("user", "meanwhile", id="m"))
        return super().__getattribute__(name)


@pytest.mark.parametrize("before", ["read", "rewrite"])
def test_a_rewind_looks_again_when_an_append_comes_between(before: str) -> None:
    """A message that is stored while the rewind plans is not lost: the rewind is planned anew."""
    store = Interfering(before)
    mem = memory(store=store)
    chat = filled(mem, 5)
    store.armed = True

    left = chat.rewind(8)

    assert ["word word word Pune 4", "word word word Pune 4", "meanwhile"] == texts(left)
    assert [3] == [len(branch.entries) for branch in chat.branches()]
    check_state(mem)


@pytest.mark.parametrize("before", ["keys", "read", "rewrite"])
def test_a_rewind_to_an_id_looks_again_when_an_append_comes_between(before: str) -> None:
    """The place is looked for among the messages that the rewind is planned on."""
    store = Interfering(before)
    mem = memory(store=store)
    chat = filled(mem, 5)
    store.armed = True

    left = chat.rewind("user-4")

    assert ["user-4", "assistant-4", "m"] == [message.id for message in left]
    check_state(mem)


# ------------------------------------------------------------------ reconcile


def test_what_a_reconcile_does_is_told() -> None:
    """The result says how many messages stayed, were new, and left."""
    chat = filled(memory(), 5)
    given = [to_openai(message) for message in chat.transcript()[:8]]

    done = chat.reconcile([*given, said("user", "new")])

    assert Reconciled(kept=8, appended=1, closed=2) == done


def test_the_first_list_of_a_session_is_appended() -> None:
    """An empty session takes the list as it is."""
    mem = memory()
    chat = mem.session("s")

    done = chat.reconcile([*turn(0), *turn(1)])

    assert (Reconciled(0, 4, 0), 4, ()) == (done, len(chat.transcript()), chat.branches())


def test_a_whole_list_that_grew_appends_what_is_new() -> None:
    """The host's whole list, long archived messages among it, adds only its new end."""
    mem = memory()
    chat = filled(mem)
    given = [to_openai(message) for message in chat.transcript()]
    before = snapshot(mem).record

    done = chat.reconcile([*given, said("user", "new")])

    assert (Reconciled(60, 1, 0), before.archive) == (done, snapshot(mem).record.archive)
    assert "new" == chat.transcript()[-1].text


@pytest.mark.parametrize("first", [1, 17, 40, 58])
def test_a_trim_changes_nothing(first: int) -> None:
    """A list without its beginning is a trim: every message stays."""
    mem = memory()
    chat = filled(mem)
    before = whole(mem)

    done = chat.reconcile([to_openai(message) for message in chat.transcript()[first:]])

    assert (Reconciled(60, 0, 0), before) == (done, whole(mem))


@pytest.mark.parametrize("at", [0, 3, 30, 50, 58, 59])
def test_an_edit_rewinds_to_where_it_begins(at: int) -> None:
    """A changed message and what the host kept after it take the place of the old ones, which are a branch."""
    mem = memory()
    chat = filled(mem)
    given = [to_openai(message) for message in chat.transcript()]
    given[at] = {**given[at], "content": "edited by the user"}

    done = chat.reconcile(given)

    assert Reconciled(at, 60 - at, 60 - at) == done
    assert given == [to_openai(message) for message in chat.transcript()]
    assert list(range(at, 60)) == [entry.seq for entry in chat.branches()[0].entries]
    check_state(mem)


@pytest.mark.parametrize("turns", [1, 2, 30])
def test_an_edit_of_the_very_first_message_takes_the_place_of_everything(turns: int) -> None:
    """Without ids nothing before the edit tells whose list it is: it is refused whole, or with replace=True done."""
    mem = memory()
    chat = mem.session("s")
    for at in range(turns):
        chat.append([said(role, f"word word word Pune {at}") for role in ("user", "assistant")])
    given = [to_openai(message) for message in chat.transcript()]
    given[0] = {**given[0], "content": "edited by the user"}
    before = whole(mem)

    try:
        done = chat.reconcile(given)
    except TranscriptMismatch:
        assert before == whole(mem)
        done = chat.reconcile(given, replace=True)

    assert Reconciled(0, 2 * turns, 2 * turns) == done
    assert given == [to_openai(message) for message in chat.transcript()]


@pytest.mark.parametrize("ids", ["the transcript", "the list"])
def test_ids_on_one_side_only_do_not_matter(ids: str) -> None:
    """A host that gave no ids before, or gives none now, hands over the same messages."""
    mem = memory()
    chat = mem.session("s")
    for at in range(30):
        for message in turn(at):
            chat.append({key: message[key] for key in message if key != "id" or ids == "the transcript"})
    before = whole(mem)

    done = chat.reconcile(
        [{key: one[key] for key in one if key != "id" or ids == "the list"} for at in range(30) for one in turn(at)]
    )

    assert (Reconciled(60, 0, 0), before) == (done, whole(mem))


def test_a_question_handed_over_with_its_answer() -> None:
    """A context read for a pending question, with question and answer behind it, appends the two."""
    chat = filled(memory())
    question, answer = said("user", "And now?"), said("assistant", "Now.")

    done = chat.reconcile([*chat.context(pending=question).messages, question, answer])

    assert Reconciled(60, 2, 0) == done
    assert ["And now?", "Now."] == texts(chat.transcript()[-2:])


@pytest.mark.parametrize("stays", [1, 2, 31, 57, 59])
def test_an_undo_rewinds(stays: int) -> None:
    """A list that is the beginning of the transcript takes the newest messages back."""
    mem = memory()
    chat = filled(mem)
    given = [to_openai(message) for message in chat.transcript()[:stays]]

    done = chat.reconcile(given)

    assert (Reconciled(stays, 0, 60 - stays), stays) == (done, len(chat.transcript()))
    check_state(mem)


def test_a_list_of_another_conversation_is_refused() -> None:
    """The error has the length of both, and nothing has changed."""
    mem = memory()
    chat = filled(mem)
    before = whole(mem)

    with pytest.raises(TranscriptMismatch, match=r"the 2 messages given .* not among the 60") as refused:
        chat.reconcile([said("user", "who are you"), said("assistant", "nobody")])

    assert (2, 60, before) == (refused.value.given, refused.value.stored, whole(mem))
    assert isinstance(refused.value, ValueError)


def test_another_conversation_may_take_its_place() -> None:
    """With replace=True the list goes on in the place of the transcript, which is a branch."""
    mem = memory()
    chat = filled(mem)

    done = chat.reconcile([said("user", "who are you"), said("assistant", "nobody")], replace=True)

    assert (Reconciled(0, 2, 60), ["who are you", "nobody"]) == (done, texts(chat.transcript()))
    assert (60, ()) == (len(chat.branches()[0].entries), chat.archive())
    check_state(mem)


def test_an_empty_list_changes_nothing() -> None:
    """A host that hands over nothing has trimmed everything; only with replace=True is that an empty conversation."""
    mem = memory()
    chat = filled(mem)
    before = whole(mem)

    done, same = chat.reconcile([]), whole(mem)
    replaced = chat.reconcile([], replace=True)

    assert (Reconciled(60, 0, 0), before) == (done, same)
    assert (Reconciled(0, 0, 60), (), 1) == (replaced, chat.transcript(), len(chat.branches()))


def test_replace_is_for_lists_that_share_nothing() -> None:
    """With replace=True a list that shares messages is read as without."""
    mem = memory()
    chat = filled(mem)
    given = [to_openai(message) for message in chat.transcript()[20:]]

    done = chat.reconcile([*given, said("user", "new")], replace=True)

    assert Reconciled(60, 1, 0) == done


@pytest.mark.parametrize("bad", [[{"role": "robot", "content": "x"}], "text", None, [7]])
def test_a_list_that_cannot_be_read_changes_nothing(bad: Any) -> None:
    """A bad message among good ones is refused before anything is stored."""
    mem = memory()
    chat = filled(mem)
    before = whole(mem)
    given = [*turn(29), *bad] if isinstance(bad, list) else bad

    with pytest.raises(InvalidMessage):
        chat.reconcile(given)

    assert before == whole(mem)


def test_a_new_message_that_is_too_large_changes_nothing() -> None:
    """With oversize="raise" neither the rewind nor the append of the same list happens."""
    mem = memory(oversize="raise")
    chat = filled(mem)
    before = whole(mem)

    with pytest.raises(OversizeMessage):
        chat.reconcile([*turn(28), said("user", "word " * 150)])

    assert before == whole(mem)


def test_an_async_summariser_needs_the_awaited_reconcile() -> None:
    """A sync reconcile is refused before anything is stored, as an append is."""

    async def summarize(messages: list[dict[str, Any]]) -> str:
        return "They spoke of Pune 0"

    chat = memory(consolidator=summarize).session("s")

    with pytest.raises(AsyncOnly, match=r"await areconcile\(\)"):
        chat.reconcile(turn(0))
    done = asyncio.run(chat.areconcile(turn(0)))

    assert (Reconciled(0, 2, 0), 2) == (done, len(chat.transcript()))


def test_an_awaited_reconcile_does_the_same() -> None:
    """The async twin gives the same result and the same session."""
    sync, awaited = memory(clock=lambda: 0.0), memory(clock=lambda: 0.0)
    chat, other = filled(sync), filled(awaited)
    given = [*[to_openai(message) for message in chat.transcript()[:50]], said("user", "edited")]

    done, expected = chat.reconcile(given), asyncio.run(other.areconcile(given))

    assert (expected, Reconciled(50, 1, 10)) == (done, done)
    assert (whole(sync), snapshot(sync)) == (whole(awaited), snapshot(awaited))


def test_a_reconcile_that_grows_the_window_consolidates() -> None:
    """What is appended by a reconcile is consolidated like what is appended."""
    appended, reconciled = memory(clock=lambda: 0.0), memory(clock=lambda: 0.0)
    chat, other = appended.session("s"), reconciled.session("s")

    for at in range(40):
        chat.append(turn(at))
        other.reconcile([*other.context().messages, *turn(at)])

    assert chat.transcript() == other.transcript()
    assert chat.archive() == other.archive()


def test_the_same_id_and_content_twice_is_one_message() -> None:
    """An append and a reconcile both leave out a message that is there already by id and content."""
    chat = memory().session("s")
    chat.append(turn(0))
    chat.append([*turn(0), *turn(1)])

    done = chat.reconcile([*turn(0), *turn(1), turn(1)[1], turn(2)[0], turn(2)[0]])

    assert Reconciled(4, 1, 0) == done
    assert [f"word word word Pune {at}" for at in (0, 0, 1, 1, 2)] == texts(chat.transcript())


def test_the_same_words_without_an_id_are_two_messages() -> None:
    """A user who says the same thing again has said it twice."""
    chat = memory().session("s")
    chat.append([said("user", "yes"), said("assistant", "sure"), said("user", "yes"), said("assistant", "sure")])

    done = chat.reconcile([*[to_openai(message) for message in chat.transcript()], said("user", "yes")])

    assert (Reconciled(4, 1, 0), 5) == (done, len(chat.transcript()))


def test_an_id_that_left_with_a_branch_may_come_again() -> None:
    """A message taken back by a rewind can be said again with its id."""
    chat = memory().session("s")
    chat.append([*turn(0), *turn(1)])
    chat.rewind(2)

    chat.append(turn(1))

    assert ["user-0", "assistant-0", "user-1", "assistant-1"] == [message.id for message in chat.transcript()]


def test_a_list_that_grew_by_two_is_counted_by_two() -> None:
    """Of a list of a thousand messages only the two new ones are counted."""
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return words(text)

    mem = SlideMem(max_tokens=20_000, counter=count, recall_share=0)
    chat = mem.session("s")
    given = [message for at in range(500) for message in turn(at)]
    chat.reconcile(given)
    asked.clear()

    done = chat.reconcile([*given, said("user", "one more"), said("assistant", "and another")])

    assert (Reconciled(1_000, 2, 0), ["one more", "and another"]) == (done, asked)


def test_a_reconcile_kills_a_consolidation_in_flight() -> None:
    """A host that edits its list while a summary is written gets the edit, and the work is dropped."""
    events: list[Event] = []

    def summarize(messages: list[dict[str, Any]]) -> str:
        if not events:
            other = memory(store=mem.store, on_event=events.append).session("s")
            other.reconcile([*turn(0), *turn(1), said("user", "edited")])
        return "They spoke of Pune 0"

    mem = memory(consolidator=summarize, on_event=events.append)
    chat = mem.session("s")

    chat.append([message for at in range(20) for message in turn(at)])

    assert ["rewound", "lost_race"] == [event.kind for event in events]
    assert ("edited", 5, ()) == (chat.transcript()[-1].text, len(chat.transcript()), chat.archive())


@pytest.mark.parametrize("before", ["keys", "rewrite"])
def test_a_reconcile_looks_again_when_an_append_comes_between(before: str) -> None:
    """A message stored between the look and the change is kept, and counted among those that stayed."""
    store = Interfering(before)
    mem = memory(store=store)
    chat = filled(mem, 5)
    given = [*[to_openai(message) for message in chat.transcript()], said("user", "meanwhile", id="m")]
    store.armed = True

    done = chat.reconcile(given)

    assert (Reconciled(11, 0, 0), 11) == (done, len(chat.transcript()))
    check_state(mem)


# ------------------------------------------------------------------ a context handed back


def play(given: Script, check: Callable[[SlideMem, ConversationMemory, int], None]) -> None:
    """A conversation with a check after each step."""
    name = "honest" if given.summarizer == "racing" else given.summarizer
    chosen = {} if name == "extractive" else {"consolidator": named(name)}
    mem = SlideMem(counter=COUNTERS[given.counter], clock=lambda: 0.0, **chosen, **given.options)
    chat = mem.session("one")
    for step, (kind, argument) in enumerate(given.steps):
        if kind == "append":
            chat.append(argument)
        elif kind == "consolidate":
            chat.consolidate(force=True)
        else:
            with contextlib.suppress(PinBudgetError):
                chat.pin(argument)
        check(mem, chat, step)


def read(chat: ConversationMemory, given: Script) -> tuple[Message, ...] | None:
    """A context's messages; None where the budget is too small for any."""
    try:
        return chat.context(system=given.system, reserve=given.reserve).messages
    except BudgetTooSmall:
        return None


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_a_context_handed_back_changes_nothing(first: int) -> None:
    """At every step of every conversation, what was shown is recognised, whatever was made or changed in it."""
    for seed in range(first, first + 20):
        given = script(seed)

        def check(mem: SlideMem, chat: ConversationMemory, step: int, given: Script = given) -> None:
            messages = read(chat, given)
            if messages is None:
                return
            before = whole(mem, "one"), snapshot(mem, "one")

            done = chat.reconcile(messages)

            assert (len(before[0].entries), 0, 0) == (done.kept, done.appended, done.closed), (given.seed, step)
            assert before == (whole(mem, "one"), snapshot(mem, "one")), (given.seed, step)

        play(given, check)


@pytest.mark.parametrize("first", range(120, 180, 20))
def test_a_context_with_an_answer_appends_the_answer(first: int) -> None:
    """What the model said to a context, handed back behind it, is the one message that is new."""
    for seed in range(first, first + 20):
        given = script(seed)

        def check(mem: SlideMem, chat: ConversationMemory, step: int, given: Script = given) -> None:
            messages = read(chat, given) if step % 5 == 0 else None
            if not messages or messages[-1].role == "system":
                return
            exported, answer = chat.export(), from_openai(said("assistant", f"The answer to step {step}."))
            copy = mem.restore(exported, "copy", replace=True)

            done = copy.reconcile([*messages, answer])

            assert (len(chat.transcript()), 1, 0) == (done.kept, done.appended, done.closed), (given.seed, step)
            assert [*chat.transcript(), answer] == list(copy.transcript()), (given.seed, step)

        play(given, check)


def test_a_context_as_plain_dicts_changes_nothing() -> None:
    """In plain conversations the head's block is found by its text where no mark tells of it."""
    met = 0
    for given in (one for one in map(script, range(120)) if one.alternates):

        def check(mem: SlideMem, chat: ConversationMemory, step: int, given: Script = given) -> None:
            nonlocal met
            try:
                context = chat.context(system=given.system, reserve=given.reserve)
            except BudgetTooSmall:
                return
            if context.receipt.clamped or context.receipt.open:
                return
            before = whole(mem, "one")

            done = chat.reconcile(context.to_openai())

            met += bool(context.head)
            assert (len(before.entries), 0, 0) == (done.kept, done.appended, done.closed), (given.seed, step)
            assert before == whole(mem, "one"), (given.seed, step)

        play(given, check)

    assert met >= 100


def test_a_users_own_words_about_the_block_stay_his() -> None:
    """A message that quotes the head's block, said by the user, is kept whole and recognised."""
    mem = memory()
    chat = mem.session("s")
    quoted = said("user", "<earlier-conversation>\nmine\n</earlier-conversation>\n\nWhat is this?")
    chat.append([quoted, said("assistant", "A block.")])
    before = whole(mem)

    done = chat.reconcile(chat.context().to_openai())

    assert (Reconciled(2, 0, 0), before) == (done, whole(mem))


def test_a_call_of_the_prompts_system_message_is_not_stored() -> None:
    """A leading system message that the transcript does not know belongs to the call."""
    chat = filled(memory(), 5)

    done = chat.reconcile([*chat.context(system="You are kind.").messages, said("user", "new")])

    assert (Reconciled(10, 1, 0), 11) == (done, len(chat.transcript()))
    assert not [message for message in chat.transcript() if message.role == "system"]


def test_a_message_that_is_too_large_is_named_by_its_place_in_the_list() -> None:
    """With oversize="raise" the error of a reconcile counts in the host's list, and nothing has changed."""
    mem = memory(oversize="raise")
    chat = filled(mem, 3)
    listed = [*chat.transcript(), {"role": "user", "content": "word " * 150}]

    with pytest.raises(OversizeMessage) as refused:
        chat.reconcile(listed)

    assert (6, 6) == (refused.value.index, len(chat.transcript()))


# ------------------------------------------------------------------ other system messages


BRIEF, KIND = said("system", "Be brief."), said("system", "Be kind.")


@pytest.mark.parametrize("store", [MemoryStore, SQLiteStore])
@pytest.mark.parametrize("given", [[BRIEF], [BRIEF, KIND]])
@pytest.mark.parametrize("stored", [[], [said("system", "Be terse.")], [KIND, said("system", "Be terse.")]])
def test_other_system_messages_leave_the_archive_as_it_is(
    store: Any, stored: list[dict[str, Any]], given: list[dict[str, Any]]
) -> None:
    """They take the place of those that were there; every segment covers what it covered, down to its parts."""
    mem = memory(store=store(), mode="manual")
    chat = mem.session("s")
    chat.append(stored)
    for at in range(120):
        chat.append(turn(at))
        chat.consolidate()
    chat.pin("allergic to nuts")
    before, listed = chat.context(), [to_openai(message) for message in chat.transcript()[len(stored) :]]
    sources = [texts(explained(chat, segment)) for segment in chat.archive()]
    assert 1 <= max(levels(chat.archive()))

    done = chat.reconcile([*given, *listed, said("user", "new")], replace=True)

    assert Reconciled(240, len(given) + 1, len(stored)) == done
    assert [*given, *listed, said("user", "new")] == [to_openai(message) for message in chat.transcript()]
    said_before = [one for source in sources for one in source if one not in {"Be kind.", "Be terse."}]
    now = [one for segment in chat.archive() for one in texts(explained(chat, segment))]
    assert [*(one["content"] for one in given), *said_before] == now
    assert chat.context().head.splitlines()[:-2] == before.head.splitlines()[:-2]
    assert [*given, "new"] == [*chat.context().to_openai()[: len(given)], chat.context().to_openai()[-1]["content"]]
    assert [stored] * bool(stored) == [
        [to_openai(entry.message) for entry in branch.entries] for branch in chat.branches()
    ]
    check_state(mem)


def explained(chat: ConversationMemory, segment: Segment | str) -> tuple[Message, ...]:
    """The messages that a segment comes from."""
    left, found = [chat.explain(segment)], list[Message]()
    while left:
        one = left.pop(0)
        found.extend(one.messages)
        left = [*one.children, *left]
    return tuple(found)


@pytest.mark.parametrize("keep", [0, 7, 30, 31, 59])
def test_other_system_messages_before_an_edit_rewind_to_where_it_begins(keep: int) -> None:
    """The archive before it stays, what follows is a branch with the old system message, and pins move along."""
    mem = memory()
    chat = mem.session("s")
    chat.append([KIND, said("user", "Remember this: I am allergic to nuts.")])
    for at in range(30):
        chat.append(turn(at))
    listed = [to_openai(message) for message in chat.transcript()[1:]]
    archive = [one.text for one in chat.archive() if one.end <= keep + 1]

    done = chat.reconcile([BRIEF, BRIEF, *listed[:keep], said("user", "other", id="x")], replace=True)

    assert (keep, 3, len(listed) + 1 - keep) == (done.kept, done.appended, done.closed)
    assert [BRIEF, BRIEF, *listed[:keep]] == [to_openai(message) for message in chat.transcript()[:-1]]
    assert archive == [one.text for one in chat.archive()][: len(archive)]
    assert {2} >= {pin.source for pin in chat.pins()}
    check_state(mem)


def test_a_list_of_system_messages_begins_a_conversation() -> None:
    """With `replace=True` alone; without it they are a call's."""
    mem = memory()
    chat = filled(mem)

    assert (60, 60) == (chat.reconcile([BRIEF]).kept, len(chat.transcript()))
    assert Reconciled(0, 1, 60) == chat.reconcile([BRIEF], replace=True)
    assert Reconciled(1, 0, 0) == chat.reconcile([BRIEF], replace=True)
    assert Reconciled(0, 2, 1) == chat.reconcile([KIND, BRIEF], replace=True)
    assert Reconciled(0, 0, 2) == chat.reconcile([], replace=True)
    check_state(mem)


def test_session_metadata_are_written_with_other_system_messages() -> None:
    """As with an append, the metadata that a caller was given are the session's from then on."""
    mem = memory()
    filled(mem, 3)
    chat = mem.session("s", metadata={"city": "Pune"})

    chat.reconcile([BRIEF, *chat.transcript()], replace=True)

    assert (("city", "Pune"),) == snapshot(mem).metadata


@pytest.mark.parametrize("before", ["keys", "whole", "restore"])
def test_other_system_messages_look_again_when_an_append_comes_between(before: str) -> None:
    """A message that is stored while they are planned is not lost: the list no longer ends as the transcript does."""
    store = Interfering(before)
    mem = memory(store=store)
    chat = filled(mem, 5)
    listed = chat.transcript()
    store.armed = True

    chat.reconcile([from_openai(BRIEF), *listed], replace=True)

    assert ("Be brief.", 11) == (chat.transcript()[0].text, len(chat.transcript()))
    assert ["meanwhile"] == [entry.message.text for branch in chat.branches() for entry in branch.entries]
    check_state(mem)
