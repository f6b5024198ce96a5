"""Work in three steps: what is due, what a run costs, what a commit moves, and where a segment comes from."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from conversations import COUNTERS, Script, script

from slidemem import AsyncOnly, ConversationMemory, Event, SlideMem, SlidememError
from slidemem.driver import drive
from slidemem.errors import UnknownReference
from slidemem.flow import Explanation
from slidemem.request import SummaryRequest
from slidemem.settle import LEASE_SECONDS
from slidemem.state import Snapshot, Totals, Whole
from slidemem.stores.memory import MemoryStore

WRITES = (
    *("append", "close", "describe", "commit", "pin", "unpin", "claim", "release", "clear", "recount", "rewrite"),
    "restore",
)


def words(text: str) -> int:
    """Words of a text."""
    return len(text.split())


def turn(at: int) -> list[dict[str, Any]]:
    """A question and an answer of five words each, with a name and a number."""
    return [{"role": role, "content": f"word word word Pune {at}"} for role in ("user", "assistant")]


def memory(**options: Any) -> SlideMem:
    """A memory of 200 words that consolidates when asked."""
    given = {"counter": words, "recall_share": 0, "archive_share": 0.4, "mode": "manual", **options}
    return SlideMem(max_tokens=200, **given)


def filled(mem: SlideMem, turns: int = 20) -> ConversationMemory:
    """The session `s` with as many turns as make something due."""
    chat = mem.session("s")
    chat.append([message for at in range(turns) for message in turn(at)])
    return chat


def whole(mem: SlideMem, session: str = "s") -> Whole:
    """Everything that is kept of a session."""
    return drive(mem.store.whole(session), "")


def snapshot(mem: SlideMem, session: str = "s") -> Snapshot:
    """What a read of the session sees."""
    return drive(mem.store.snapshot(session), "")


class RecordingStore(MemoryStore):
    """A store that notes which writes it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        """The method; a note when it writes."""
        if name in WRITES:
            self.writes.append(name)
        return super().__getattribute__(name)


class Summarizer:
    """Answers with a fact of the span, counts its calls, and does something of the test's before each answer."""

    def __init__(self, before: Callable[[], object] = lambda: None) -> None:
        self.before = before
        self.calls = 0

    def __call__(self, messages: list[dict[str, Any]]) -> str:
        """A short true summary."""
        self.calls += 1
        self.before()
        return f"They spoke of {' '.join(str(messages[0]['content']).split()[3:])}"


# ------------------------------------------------------------------ due, run, commit


def test_three_steps_move_what_was_due() -> None:
    """A job says what is due, its run writes a segment of it, and the commit moves the boundary there."""
    events: list[Event] = []
    mem = memory(on_event=events.append)
    chat = filled(mem)

    job = chat.due()
    assert job is not None
    made = job.run()
    assert made is not None
    before, done = chat.archive(), chat.commit(made)

    assert ((), True, (made.segment,)) == (before, done, chat.archive())
    assert (0, job.end) == (made.segment.start, made.segment.end)
    assert (job.end, 40 - job.end) == (chat.stats().covered_messages, chat.stats().live_messages)
    assert ["consolidated"] == [event.kind for event in events]


def test_three_awaited_steps_do_the_same() -> None:
    """The async twins leave the session as the sync methods do, to the byte."""

    async def talk() -> bool:
        chat = awaited.session("s")
        await chat.aappend([message for at in range(20) for message in turn(at)])
        job = await chat.adue()
        assert job is not None
        return await chat.acommit(await job.arun())

    sync, awaited = (memory(consolidator=Summarizer(), clock=lambda: 7.0) for _ in range(2))
    chat = filled(sync)
    job = chat.due()
    assert job is not None
    chat.commit(job.run())

    done = asyncio.run(talk())

    assert (True, whole(sync), snapshot(sync)) == (done, whole(awaited), snapshot(awaited))


def test_due_is_a_read() -> None:
    """Asking what is due writes nothing, changes nothing, and gives the same answer again."""
    store = RecordingStore()
    mem = memory(store=store)
    chat = filled(mem)
    before, _ = (whole(mem), snapshot(mem)), store.writes.clear()

    first, second = chat.due(), asyncio.run(chat.adue())

    assert first is not None
    assert second is not None
    assert ([], before) == (store.writes, (whole(mem), snapshot(mem)))
    assert repr(first) == repr(second)


def test_a_job_tells_its_span() -> None:
    """Start, end, tokens, target and messages of a job are those of the span that its segment covers."""
    mem = memory()
    chat = filled(mem)

    job = chat.due()

    assert job is not None
    assert list(chat.transcript()[: job.end]) == list(job.messages)
    assert (0, mem.count(job.messages)) == (job.start, job.tokens)
    assert 0 < job.target_tokens <= job.tokens // 2
    assert f"DueJob(messages 0 to {job.end - 1}, {job.tokens} tokens into {job.target_tokens})" == repr(job)


def test_the_tokens_of_a_job_are_those_of_this_memorys_counter() -> None:
    """A memory that counts otherwise than the one that stored the messages plans and tells in its own tokens."""
    first = memory()
    filled(first, 40)
    other = SlideMem(max_tokens=1_000, counter=len, store=first.store, recall_share=0, mode="manual")
    chat = other.session("s")

    job, plan = chat.due(), chat.plan()

    assert job is not None
    assert (plan.due_tokens, job.tokens) == (job.tokens, other.count(chat.transcript()[job.start : job.end]))


def test_nothing_is_due_in_a_short_session() -> None:
    """An empty session, and one whose window is not full, have no job."""
    mem = memory()

    assert (None, None) == (mem.session("empty").due(), filled(mem, 3).due())


def test_what_is_appended_meanwhile_stays_live_and_counted() -> None:
    """An append between due and commit is no part of the span, and the totals hold it."""
    mem = memory(consolidator=Summarizer())
    chat = filled(mem)
    job = chat.due()
    assert job is not None
    chat.append(turn(20))

    made = job.run()
    chat.append(turn(21))
    done = chat.commit(made)

    after = snapshot(mem)
    assert (True, list(range(job.end, 44))) == (done, [entry.seq for entry in after.live])
    assert Totals.of(after.record, after.live, "") == after.totals
    assert (44, 5 * (44 - job.end), 22 - job.end // 2) == (
        after.totals.next_seq,
        after.totals.live_tokens,
        after.totals.live_turns,
    )


def another_commit(chat: ConversationMemory) -> None:
    """Consolidate first."""
    chat.consolidate(force=True)


def a_rewind(chat: ConversationMemory) -> None:
    """Take back the last turn."""
    chat.rewind(-2)


def a_clear(chat: ConversationMemory) -> None:
    """Delete the session."""
    chat.clear()


def a_clear_and_the_same_again(chat: ConversationMemory) -> None:
    """Delete the session and say the same again."""
    chat.clear()
    chat.append([message for at in range(20) for message in turn(at)])


def an_edit(chat: ConversationMemory) -> None:
    """Let the host change its newest message."""
    given = [*chat.transcript()[:-1], {"role": "assistant", "content": "something else"}]
    chat.reconcile(given)


@pytest.mark.parametrize("move", [another_commit, a_rewind, a_clear, a_clear_and_the_same_again, an_edit])
@pytest.mark.parametrize("summarize", [None, Summarizer()], ids=["extractive", "function"])
def test_work_of_before_is_dropped(move: Callable[[ConversationMemory], None], summarize: Any) -> None:
    """When the session has moved on the commit is False, nothing has changed, and an event tells."""
    events: list[Event] = []
    mem = memory(on_event=events.append, **({"consolidator": summarize} if summarize else {}))
    other = memory(store=mem.store)
    chat = filled(mem)
    job = chat.due()
    assert job is not None
    made = job.run()
    assert made is not None
    move(other.session("s"))
    before = whole(mem), snapshot(mem)

    done = chat.commit(made)

    assert (False, before) == (done, (whole(mem), snapshot(mem)))
    assert ("lost_race", 0, job.end) == (events[-1].kind, events[-1].start, events[-1].end)


@pytest.mark.parametrize("move", [another_commit, a_rewind, a_clear, a_clear_and_the_same_again, an_edit])
def test_awaited_work_of_before_is_dropped(move: Callable[[ConversationMemory], None]) -> None:
    """The awaited commit is False as the sync one is."""
    mem = memory(consolidator=Summarizer())
    chat = filled(mem)

    async def late() -> tuple[bool, Any, Any]:
        job = await chat.adue()
        assert job is not None
        made = await job.arun()
        move(memory(store=mem.store).session("s"))
        before = whole(mem), snapshot(mem)
        return await chat.acommit(made), before, (whole(mem), snapshot(mem))

    done, before, after = asyncio.run(late())

    assert (False, before) == (done, after)


def test_a_restore_drops_what_is_in_flight() -> None:
    """A session that was put in the place of another takes none of its work."""
    mem = memory()
    chat = filled(mem)
    exported = chat.export()
    job = chat.due()
    assert job is not None
    made = job.run()
    mem.restore(exported, replace=True)
    before = whole(mem)

    done = chat.commit(made)

    assert (False, before) == (done, whole(mem))


def test_a_commit_of_nothing_is_false() -> None:
    """What a run did not make moves nothing."""
    mem = memory()
    chat = filled(mem)
    before = whole(mem)

    done = chat.commit(None), asyncio.run(chat.acommit(None))

    assert ((False, False), before) == (done, whole(mem))


def test_the_same_work_is_committed_once() -> None:
    """A second commit of the same work is False and changes nothing."""
    mem = memory()
    chat = filled(mem)
    job = chat.due()
    assert job is not None
    made = job.run()
    first, before = chat.commit(made), whole(mem)

    second = chat.commit(made)

    assert (True, False, before) == (first, second, whole(mem))


def test_the_work_of_one_session_is_no_other_ones() -> None:
    """Work that is handed to another session of the same memory by mistake does not become its archive."""
    mem = memory()
    chat, other = filled(mem), mem.session("other")
    other.append(turn(1))
    job = chat.due()
    assert job is not None
    made, before = job.run(), whole(mem, "other")

    with contextlib.suppress(SlidememError):
        other.commit(made)

    assert before == whole(mem, "other")


def test_an_async_summariser_is_not_run_by_a_sync_one() -> None:
    """A sync run of an async summariser names the twin, makes nothing in its place, and leaves the work to do."""

    async def summarize(messages: list[dict[str, Any]]) -> str:
        return Summarizer()(messages)

    mem = memory(consolidator=summarize)
    chat = mem.session("s")
    asyncio.run(chat.aappend([message for at in range(20) for message in turn(at)]))
    job = chat.due()
    assert job is not None

    with pytest.raises(AsyncOnly, match=r"await arun\(\)"):
        job.run()
    made = asyncio.run(job.arun())

    assert made is not None
    assert "summarizer" == made.segment.method


# ------------------------------------------------------------------ the lease


def test_two_workers_pay_for_one_summary() -> None:
    """While one worker writes, another's run is None with an event, and the summariser is called once in all."""
    events: list[Event] = []
    seen: list[Any] = []

    def meanwhile() -> None:
        if summarize.calls > 1:
            return
        job = second.session("s").due()
        assert job is not None
        seen.append(job.run())

    summarize = Summarizer(meanwhile)
    first = memory(consolidator=summarize)
    second = memory(consolidator=summarize, store=first.store, on_event=events.append)
    chat = filled(first)
    job = chat.due()
    assert job is not None

    done = chat.commit(job.run())

    assert (True, [None], 1) == (done, seen, summarize.calls)
    assert [("busy", 0, job.end)] == [(event.kind, event.start, event.end) for event in events]


def test_two_tasks_pay_for_one_summary() -> None:
    """Awaited side by side, one run makes the segment and the other is None."""
    calls: list[int] = []

    async def race() -> list[bool]:
        both = asyncio.Event()

        async def summarize(messages: list[dict[str, Any]]) -> str:
            calls.append(1)
            await asyncio.wait_for(both.wait(), 5)  # set by the one whose run is None
            return "They spoke of Pune 0"

        async def work(mem: SlideMem) -> bool:
            chat = mem.session("s")
            job = await chat.adue()
            assert job is not None
            made = await job.arun()
            both.set()
            return await chat.acommit(made)

        first = memory(consolidator=summarize)
        await first.session("s").aappend([message for at in range(20) for message in turn(at)])
        return await asyncio.gather(work(first), work(memory(consolidator=summarize, store=first.store)))

    assert ([True, False], [1]) == (asyncio.run(race()), calls)


def test_a_lease_ends_by_the_clock() -> None:
    """A worker that never came back keeps others from the work for LEASE_SECONDS, and no longer."""
    now = [1_000.0]
    first, second = Summarizer(), Summarizer()
    mem = memory(consolidator=first, clock=lambda: now[0])
    chat = filled(mem)
    other = memory(consolidator=second, clock=lambda: now[0], store=mem.store).session("s")
    job, again = chat.due(), other.due()
    assert job is not None
    assert again is not None
    lost = job.run()

    now[0] += LEASE_SECONDS - 1
    before = again.run()
    now[0] += 1
    after = again.run()

    assert (None, 1, 1) == (before, first.calls, second.calls)
    assert (True, False) == (other.commit(after), chat.commit(lost))


@pytest.mark.parametrize("fault", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_an_interrupted_run_gives_its_lease_back(fault: type[BaseException]) -> None:
    """What is no error of the summariser goes through to the caller, and the work is free at once."""

    def interrupt() -> None:
        raise fault

    mem = memory(consolidator=Summarizer(interrupt))
    chat = filled(mem)
    before, job = whole(mem), chat.due()
    assert job is not None

    with pytest.raises(fault):
        job.run()
    other = memory(consolidator=Summarizer(), store=mem.store).session("s")
    again = other.due()
    assert again is not None

    assert before == whole(mem)
    assert other.commit(again.run())


def test_a_cancelled_run_gives_its_lease_back() -> None:
    """A task that is cancelled while its summariser works leaves the work free at once."""

    async def cancel() -> bool:
        asked, never = asyncio.Event(), asyncio.Event()

        async def summarize(messages: list[dict[str, Any]]) -> str:
            asked.set()
            await never.wait()
            return ""

        mem = memory(consolidator=summarize)
        chat = mem.session("s")
        await chat.aappend([message for at in range(20) for message in turn(at)])
        job = await chat.adue()
        assert job is not None
        task = asyncio.ensure_future(job.arun())
        await asked.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        other = memory(consolidator=Summarizer(), store=mem.store).session("s")
        again = await other.adue()
        assert again is not None
        return await other.acommit(await again.arun())

    assert asyncio.run(cancel())


def test_a_run_that_is_closed_from_outside_is_as_one_that_was_killed() -> None:
    """A coroutine that is closed cannot give its lease back: that ends by the clock, and nothing else is lost."""
    now = [0.0]

    async def start() -> bool:
        never = asyncio.Event()

        async def summarize(messages: list[dict[str, Any]]) -> str:
            await never.wait()
            return ""

        mem = memory(consolidator=summarize, clock=lambda: now[0])
        chat = mem.session("s")
        await chat.aappend([message for at in range(20) for message in turn(at)])
        before, job = whole(mem), await chat.adue()
        assert job is not None
        running = job.arun()
        running.send(None)
        running.close()
        other = memory(consolidator=Summarizer(), store=mem.store, clock=lambda: now[0]).session("s")
        again = await other.adue()
        assert again is not None
        held = await again.arun()
        now[0] = LEASE_SECONDS
        return (None, before) == (held, whole(mem)) and await other.acommit(await again.arun())

    assert asyncio.run(start())


def test_a_lease_ends_with_its_commit() -> None:
    """The next work of the session needs no waiting."""
    summarize = Summarizer()
    mem = memory(consolidator=summarize, clock=lambda: 0.0)
    chat = mem.session("s")
    done = []
    for at in range(40):
        chat.append(turn(at))
        job = chat.due()
        if job:
            done.append(chat.commit(job.run()))

    assert len(done) > 1
    assert [True] * len(done) == done


@pytest.mark.parametrize("consolidator", [{}, {"consolidator": None}], ids=["extractive", "none"])
def test_what_costs_nothing_takes_no_lease(consolidator: dict[str, Any]) -> None:
    """Without a summariser to pay, a run writes nothing at all."""
    store = RecordingStore()
    chat = filled(memory(store=store, **consolidator))
    job = chat.due()
    assert job is not None
    store.writes.clear()

    made = job.run()

    assert made is not None
    assert [] == store.writes


def test_a_run_of_a_session_that_moved_on_asks_nobody() -> None:
    """A job whose session was cleared before its run makes nothing, pays nothing, and says so."""
    events: list[Event] = []
    summarize = Summarizer()
    chat = filled(memory(consolidator=summarize, on_event=events.append))
    job = chat.due()
    assert job is not None
    chat.clear()

    made = job.run()

    assert (None, 0, ["busy"]) == (made, summarize.calls, [event.kind for event in events])


# ------------------------------------------------------------------ the plan


def test_a_plan_adds_up() -> None:
    """Its figures are those of the options, of a context, of the stats and of the job that is due."""
    store = RecordingStore()
    mem = memory(store=store)
    chat = mem.session("s", metadata={"city": "Pune"})
    chat.append([message for at in range(20) for message in turn(at)])
    store.writes.clear()

    plan, job = chat.plan(), chat.due()

    assert job is not None
    zones = chat.context().zones
    assert ([], 200, zones.pinned + zones.archive) == (store.writes, plan.usable, plan.head_tokens)
    assert (200 - plan.head_tokens, 40, 200) == (plan.limit, plan.live, plan.window_tokens)
    assert (int(0.9 * plan.limit), int(0.5 * 120)) == (plan.compact_at, plan.compact_to)
    assert ((0, job.end), job.tokens, job.target_tokens) == (plan.due, plan.due_tokens, plan.target_tokens)


def test_a_plan_of_an_archived_session() -> None:
    """After a commit the window's limit is its allotment, nothing is due, and the head is the archive's."""
    mem = memory()
    chat = filled(mem)
    job = chat.due()
    assert job is not None
    chat.commit(job.run())

    plan, zones = chat.plan(), chat.context().zones

    assert (120, 108, 60, None, 0, 0) == (
        plan.limit,
        plan.compact_at,
        plan.compact_to,
        plan.due,
        plan.due_tokens,
        plan.target_tokens,
    )
    assert (zones.archive + zones.pinned, zones.window) == (plan.head_tokens, plan.window_tokens)
    assert plan == asyncio.run(chat.aplan())


def test_the_anchor_of_a_cut_turn_is_in_the_plan() -> None:
    """In a tool loop that was cut inside, the window is the task and the rounds that stayed."""
    mem = memory()
    chat = mem.session("s")
    chat.append({"role": "user", "content": "task of five words here"})
    for at in range(30):
        call = {"id": f"c{at}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        chat.append({"role": "assistant", "content": None, "tool_calls": [call]})
        chat.append({"role": "tool", "tool_call_id": f"c{at}", "content": f"found Pune {at} and six words"})
    chat.consolidate(force=True)

    plan, stats = chat.plan(), chat.stats()

    assert 5 + stats.live_tokens == plan.window_tokens
    assert stats.live_messages == plan.live


# ------------------------------------------------------------------ the same turns leave, however late


def in_whole_units(given: Script) -> list[list[dict[str, Any]]]:
    """What a conversation appends, each call together with its results."""
    units: list[list[dict[str, Any]]] = []
    for kind, argument in given.steps:
        for message in (argument if isinstance(argument, list) else [argument]) if kind == "append" else ():
            if message["role"] == "tool" and units:
                units[-1].append(message)
            else:
                units.append([message])
    return units


def is_answered(units: list[list[dict[str, Any]]]) -> bool:
    """Whether each call has its result at once, and each result its call."""
    return all(
        sorted(str(call["id"]) for message in unit for call in message.get("tool_calls", ()))
        == sorted(str(message.get("tool_call_id")) for message in unit if message["role"] == "tool")
        for unit in units
    )


def late(given: Script, mode: str, **options: Any) -> tuple[SlideMem, ConversationMemory]:
    """The memory of a conversation, in another mode."""
    settings = {**given.options, "mode": mode, **options}
    mem = SlideMem(counter=COUNTERS[given.counter], clock=lambda: 0.0, **settings)
    return mem, mem.session("s")


def settle(chat: ConversationMemory) -> int:
    """Do all that is due; how many steps it took."""
    steps = 0
    while job := chat.due():
        assert chat.commit(job.run())
        steps += 1
    return steps


def ends_a_turn(unit: list[dict[str, Any]]) -> bool:
    """Whether it is an answer that calls nothing."""
    return unit[-1]["role"] == "assistant" and not unit[-1].get("tool_calls")


def inline(given: Script, **options: Any) -> tuple[int, bool]:
    """The boundary of a conversation consolidated at each append, and whether a cut was not worth its segment.

    It was not where a turn that ended left the window over a limit and nothing is due. What the last append left
    due, since one append starts at most one consolidation, is done at the end.
    """
    mem, chat = late(given, "inline", **options)
    passed, cap = False, mem.options.window_turns
    for unit in in_whole_units(given):
        chat.append(unit)
        plan = chat.plan() if ends_a_turn(unit) else None
        if plan and plan.due is None:
            turns = sum(entry.message.role == "user" for entry in snapshot(mem).live)
            passed |= plan.window_tokens > mem.options.compact_at * plan.limit or (cap is not None and turns > cap)
    settle(chat)
    return snapshot(mem).record.boundary, passed


def later(given: Script, chance: float, **options: Any) -> tuple[int, int]:
    """The boundary of a conversation consolidated now and then and at its end, and in how many steps."""
    mem, chat = late(given, "manual", **options)
    rng, steps = random.Random(given.seed), 0
    for unit in in_whole_units(given):
        chat.append(unit)
        if rng.random() < chance:
            steps += settle(chat)
    steps += settle(chat)
    return snapshot(mem).record.boundary, steps


@pytest.fixture(scope="module")
def at_once() -> list[tuple[Script, int, bool]]:
    """Conversations, and what they come to when they are consolidated at each append.

    Only those whose calls are answered in full, appended with their results: a call that still waits takes less
    than it does later, so who looks earlier may cut elsewhere.
    """
    given = [one for one in map(script, range(45)) if is_answered(in_whole_units(one))]
    return [(one, *inline(one)) for one in given]


@pytest.mark.parametrize("chance", [0.0, 0.15], ids=["at-the-end", "now-and-then"])
def test_the_same_turns_leave_however_late(chance: float, at_once: list[tuple[Script, int, bool]]) -> None:
    """Consolidated at each append, or at random points, or only at the end, the boundary is the same.

    But for a conversation where an inline cut was passed over because it would have freed less than the last
    segment costs: who comes later has another last segment, or none.
    """
    met = [(one.seed, sooner, passed, *later(one, chance)) for one, sooner, passed in at_once]

    assert [] == [(seed, sooner, late) for seed, sooner, passed, late, _ in met if sooner != late and not passed]
    assert len(met) >= 30
    assert sum(sooner != late for _, sooner, _, late, _ in met) <= 2
    assert sum(late > 0 for *_, late, _ in met) >= 25
    assert sum(steps > 1 for *_, steps in met) >= (15 if chance else 0)


def test_the_same_turns_leave_where_segments_cost_nothing() -> None:
    """Without archive text no cut is passed over, and every conversation comes to the same boundary."""
    given = [one for one in map(script, range(100, 140)) if is_answered(in_whole_units(one))]

    met = [(one.seed, inline(one, consolidator=None)[0], later(one, 0.15, consolidator=None)[0]) for one in given]

    assert [] == [(seed, sooner, late) for seed, sooner, late in met if sooner != late]
    assert len(met) >= 25


# ------------------------------------------------------------------ where a segment comes from


def leaves(explanation: Explanation) -> list[Explanation]:
    """The explanations that stand on messages."""
    if not explanation.children:
        return [explanation]
    return [leaf for child in explanation.children for leaf in leaves(child)]


def archived() -> tuple[SlideMem, ConversationMemory]:
    """A session of 200 turns, a second between two of its messages, with segments of several levels."""
    now = [0.0]

    def clock() -> float:
        now[0] += 1
        return now[0]

    mem = memory(mode="inline", clock=clock)
    chat = mem.session("s")
    for at in range(200):
        chat.append(turn(at))
    return mem, chat


def test_a_segment_is_explained_down_to_its_messages() -> None:
    """Its leaves hold exactly the messages of its range, in order, and each child is a segment of its own."""
    _, chat = archived()
    top = chat.archive()
    said = [message.text for message in chat.transcript()]

    for segment in top:
        explanation = chat.explain(segment)
        found = leaves(explanation)

        assert segment == explanation.segment
        assert said[segment.start : segment.end] == [message.text for leaf in found for message in leaf.messages]
        assert all(said[leaf.segment.start : leaf.segment.end] == [m.text for m in leaf.messages] for leaf in found)
    assert max(segment.level for segment in top) >= 2


def test_children_are_kept_and_make_up_their_parent() -> None:
    """Four of one level stand for their parent's range without a gap, and their ids are the parent's children."""
    _, chat = archived()
    parent = max(chat.archive(), key=lambda segment: segment.level)

    children = [child.segment for child in chat.explain(parent).children]

    edges = [children[0].start, *(child.end for child in children)]
    assert (4, {parent.level - 1}) == (len(children), {child.level for child in children})
    assert (parent.start, parent.end) == (edges[0], edges[-1])
    assert edges[:-1] == [child.start for child in children]
    assert parent.children == tuple(child.id for child in children)


def test_a_segment_is_named_by_its_id() -> None:
    """A top-level segment, and a child far below one, are explained by their ids, sync and awaited."""
    _, chat = archived()
    top = max(chat.archive(), key=lambda segment: segment.level)
    leaf = leaves(chat.explain(top))[-1]

    assert chat.explain(top) == chat.explain(top.id)
    assert leaf == chat.explain(leaf.segment.id) == chat.explain(leaf.segment)
    assert chat.explain(leaf.segment.id) == asyncio.run(chat.aexplain(leaf.segment.id))


@pytest.mark.parametrize("unknown", ["", "0-4.1x", "nope", "9" * 500])
def test_an_unknown_segment_is_told(unknown: str) -> None:
    """An id that the archive does not have is an error that is short and says where to look."""
    _, chat = archived()

    with pytest.raises(UnknownReference, match=r"the archive has no segment .*archive\(\)") as refused:
        chat.explain(unknown)

    assert isinstance(refused.value, LookupError)
    assert len(str(refused.value)) < 200


def test_segments_are_dated() -> None:
    """A segment of any level begins and ends with the times of its first and its last message."""
    mem, _ = archived()
    at = [entry.at for entry in whole(mem).entries]

    segments = whole(mem).segments

    assert {0, 1, 2} <= {segment.level for segment in segments}
    assert [(at[segment.start], at[segment.end - 1]) for segment in segments] == [
        (segment.first_at, segment.last_at) for segment in segments
    ]


def test_a_segment_of_another_session_is_unknown() -> None:
    """Ids name segments within their session."""
    mem, chat = archived()

    with pytest.raises(UnknownReference):
        mem.session("other").explain(chat.archive()[0])


def test_a_summariser_reads_of_the_archive_what_contexts_show() -> None:
    """Beside a span it is shown notes within the archive's share, however many lines are kept."""
    seen: list[SummaryRequest] = []

    class Noting:
        def summarize(self, request: SummaryRequest) -> str:
            seen.append(request)
            seats = re.findall(r"book seat (\w+)", str(request.messages))
            return "\n".join(f"Seat {seat} is booked." for seat in seats)

        async def asummarize(self, request: SummaryRequest) -> str:
            return self.summarize(request)

    mem = SlideMem(max_tokens=400, counter=words, consolidator=Noting())
    chat = mem.session("s")
    for at in range(150):
        chat.append({"role": "user", "content": f"Please book seat {at}A for the train to Pune on that day."})
        chat.append({"role": "assistant", "content": f"Booked is seat {at}A, as you asked me to do it."})

    kept = "\n".join(segment.text for segment in chat.archive())
    shown = [words(request.earlier) for request in seen]
    assert max(shown) <= mem.options.archive_tokens < words(kept)
    assert set(seen[-1].earlier.splitlines()) <= set(kept.splitlines())
    assert shown[-1] > mem.options.archive_tokens // 2
