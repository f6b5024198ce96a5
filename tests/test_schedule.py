"""When due work is done: behind the caller's back, on threads and in tasks, at the end of the process, or never."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slidemem import AsyncOnly, ConfigurationError, ConversationMemory, Event, SlideMem, SQLiteStore, schedule
from slidemem.driver import drive
from slidemem.state import Snapshot, Totals
from slidemem.stores.memory import MemoryStore

ROOT = Path(__file__).parent.parent
WORKER = "slidemem-background"
LONG = 60.0  # seconds that a test waits for what must come; it comes at once


def words(text: str) -> int:
    """Words of a text."""
    return len(text.split())


def turn(at: int, name: str = "Pune") -> list[dict[str, Any]]:
    """A question and an answer of five words each, with a name and a number."""
    return [{"role": role, "content": f"word word word {name} {at}"} for role in ("user", "assistant")]


def turns(count: int, name: str = "Pune") -> list[dict[str, Any]]:
    """Several turns; twenty make something due."""
    return [message for at in range(count) for message in turn(at, name)]


def memory(**options: Any) -> SlideMem:
    """A memory of 200 words that works in the background."""
    given = {"counter": words, "recall_share": 0, "archive_share": 0.4, "mode": "background", **options}
    return SlideMem(max_tokens=200, **given)


def snapshot(mem: SlideMem, session: str = "s") -> Snapshot:
    """What a read of the session sees."""
    return drive(mem.store.snapshot(session), "")


def workers() -> list[threading.Thread]:
    """The worker threads there are."""
    return [thread for thread in threading.enumerate() if thread.name == WORKER]


def summary(messages: list[dict[str, Any]]) -> str:
    """A fact of the span."""
    return f"They spoke of {' '.join(str(messages[0]['content']).split()[3:])}"


class Held:
    """A summariser that waits until it is let go, and says when it was asked."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.go = threading.Event()
        self.calls = 0

    def __call__(self, messages: list[dict[str, Any]]) -> str:
        """A fact of the span, once it may be told."""
        self.calls += 1
        self.asked.set()
        assert self.go.wait(LONG)
        return summary(messages)


@pytest.fixture
def held() -> Iterator[Held]:
    """A summariser that is let go at the end of the test at the latest."""
    one = Held()
    yield one
    one.go.set()


class AsyncHeld:
    """The same, awaited; it belongs to the loop it is first asked in."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.go = asyncio.Event()
        self.calls = 0

    async def __call__(self, messages: list[dict[str, Any]]) -> str:
        """A fact of the span, once it may be told."""
        self.calls += 1
        self.asked.set()
        await self.go.wait()
        return summary(messages)


# ------------------------------------------------------------------ on a thread


def test_an_append_does_not_wait_for_the_summariser(held: Held) -> None:
    """It returns while the summary is written, and flush waits until that is committed."""
    chat = memory(consolidator=held).session("s")

    chat.append(turns(20))
    assert held.asked.wait(LONG)
    before = chat.archive(), chat.stats().live_messages
    held.go.set()
    done = chat.flush()

    assert (((), 40), True, 1) == (before, done, len(chat.archive()))
    assert chat.plan().due is None


def test_flush_gives_up_in_time_and_the_work_goes_on(held: Held) -> None:
    """False while it is still being done, True once it is, and what was not waited for was not lost."""
    chat = memory(consolidator=held).session("s")
    chat.append(turns(20))

    early = chat.flush(0.01), chat.flush(0)
    held.go.set()
    late = chat.flush(LONG)

    assert ((False, False), True, 1) == (early, late, len(chat.archive()))


def test_flush_without_anything_to_do() -> None:
    """A session that is empty, or has nothing due, or never worked behind anybody's back, is flushed at once."""
    mem = memory()
    mem.session("short").append(turn(0))

    assert [True, True] == [mem.session(name).flush(LONG) for name in ("empty", "short")]
    others = [memory(mode=mode).session("s") for mode in ("inline", "manual")]
    assert [True, True] == [chat.flush(0) for chat in others]
    assert [True, True] == [asyncio.run(chat.aflush(0)) for chat in others]


def test_flush_sees_to_what_another_left_due() -> None:
    """What was appended in manual mode, or by a process that was killed, is due and done by a flush."""
    manual = memory(mode="manual")
    manual.session("s").append(turns(20))
    chat = memory(store=manual.store).session("s")

    done = chat.flush(LONG)

    assert (True, True) == (done, len(chat.archive()) > 0)


def test_a_context_is_within_budget_while_work_is_pending(held: Held) -> None:
    """What is not consolidated yet is live, and a context shows as much of it as fits."""
    chat = memory(consolidator=held).session("s")

    chat.append(turns(60))
    context = chat.context()

    assert context.tokens <= 200
    assert (0, 120, 120) == (
        context.receipt.covered,
        context.receipt.left_out + len(context.messages),
        chat.stats().live_messages,
    )
    assert "Pune 59" in context.messages[-1].text


def test_what_is_appended_meanwhile_is_looked_at_before_the_work_ends() -> None:
    """Appends while a summary is written start no second worker, and are consolidated too when they are due."""
    asked, go = threading.Semaphore(0), threading.Semaphore(0)

    def summarize(messages: list[dict[str, Any]]) -> str:
        asked.release()
        assert go.acquire(timeout=LONG)
        return summary(messages)

    mem, before = memory(consolidator=summarize), set(workers())
    chat = mem.session("s")
    chat.append(turns(20))
    assert asked.acquire(timeout=LONG)
    for at in range(20, 50):
        chat.append(turn(at))

    there = len(set(workers()) - before)
    for _ in range(100):
        go.release()
    done = chat.flush(LONG)

    assert (1, True, None) == (there, done, chat.plan().due)
    assert chat.stats().consolidations >= 2
    assert chat.archive()[-1].end > 40
    seen = snapshot(mem)
    assert Totals.of(seen.record, seen.live, "") == seen.totals


def test_what_is_appended_at_the_last_moment_is_looked_at() -> None:
    """An append between a worker's last look, which finds nothing due, and its end is not left for the next one."""

    class Interfering(MemoryStore):
        armed = True

        async def snapshot(self, session: str) -> Snapshot:
            seen = await super().snapshot(session)
            if self.armed and seen.record.revision and threading.current_thread().name == WORKER:
                self.armed = False
                chat.append(turns(30))
            return seen

    chat, before = memory(store=Interfering()).session("s"), set(workers())
    chat.append(turns(20))
    for thread in set(workers()) - before:
        thread.join(LONG)

    assert (100, None) == (len(chat.transcript()), chat.plan().due)
    assert 2 <= chat.stats().consolidations


def test_one_session_is_worked_on_by_one_at_a_time() -> None:
    """Two sessions are summarised side by side, and never one of them twice at once."""
    meet, lock = threading.Barrier(2), threading.Lock()
    now: Counter[str] = Counter()
    most: Counter[str] = Counter()
    calls: Counter[str] = Counter()

    def summarize(messages: list[dict[str, Any]]) -> str:
        name = str(messages[0]["content"]).split()[3]
        with lock:
            now[name] += 1
            calls[name] += 1
            most[name] = max(most[name], now[name])
            first = calls[name] == 1
        if first:
            meet.wait(LONG)
        with lock:
            now[name] -= 1
        return summary(messages)

    mem = memory(consolidator=summarize)
    chats = {name: mem.session(name) for name in ("Pune", "Goa")}
    for at in range(60):
        for name, chat in chats.items():
            chat.append(turn(at, name))

    done = [chat.flush(LONG) for chat in chats.values()]

    assert [True, True] == done
    assert {"Pune": 1, "Goa": 1} == most
    assert min(calls.values()) > 1


def test_more_sessions_than_workers() -> None:
    """Nine sessions are all seen to, by four threads at most, in the order in which they came."""
    order: list[str] = []
    full, go = threading.Barrier(5), threading.Event()

    def summarize(messages: list[dict[str, Any]]) -> str:
        name = str(messages[0]["content"]).split()[3]
        new = name not in order
        order.append(name)
        if new and len(set(order)) <= 4:
            full.wait(LONG)
        assert go.wait(LONG)
        return summary(messages)

    mem = memory(consolidator=summarize)
    before = set(workers())
    chats = [mem.session(str(at)) for at in range(9)]
    for at, chat in enumerate(chats):
        chat.append(turns(20, f"Pune{at}"))

    full.wait(LONG)
    hired, waiting = len(set(workers()) - before), len(set(order))
    go.set()
    done = [chat.flush(LONG) for chat in chats]

    assert ([True] * 9, 4, 4) == (done, hired, waiting)
    assert [1] * 9 == [len(chat.archive()) for chat in chats]
    assert {f"Pune{at}" for at in range(4)} == set(order[:4])


def test_an_idle_worker_ends(held: Held) -> None:
    """A thread lives as long as there is work, and a new one comes with new work."""
    before = set(workers())
    chat = memory(consolidator=held).session("s")
    chat.append(turns(20))
    assert held.asked.wait(LONG)
    first = set(workers()) - before

    held.go.set()
    chat.flush()
    for thread in first:
        thread.join(LONG)
    ended = [thread.is_alive() for thread in first]
    chat.append(turns(30))
    done = chat.flush(LONG)

    assert ([False], True) == (ended, done)
    assert chat.stats().consolidations > 1


def test_a_worker_is_a_daemon(held: Held) -> None:
    """It does not keep a process alive beyond what flush_seconds grants."""
    before = set(workers())
    memory(consolidator=held).session("s").append(turns(20))
    assert held.asked.wait(LONG)

    assert [True] == [thread.daemon for thread in set(workers()) - before]


def test_manual_mode_does_nothing_by_itself() -> None:
    """Due work stays due through appends, reads and a flush, until it is asked for."""
    events: list[Event] = []
    chat = memory(mode="manual", on_event=events.append).session("s")
    before = set(workers())

    for at in range(40):
        chat.append(turn(at))
        chat.context()
    done = chat.flush()

    assert (True, (), [], set()) == (done, chat.archive(), events, set(workers()) - before)
    assert chat.due() is not None
    assert chat.consolidate() is not None


def test_inline_mode_uses_no_thread() -> None:
    """What is due is done before the append returns, by the thread that appends where it waits without limit."""
    seen: list[threading.Thread] = []

    def summarize(messages: list[dict[str, Any]]) -> str:
        seen.append(threading.current_thread())
        return summary(messages)

    chat = memory(mode="inline", consolidator=summarize, summary_seconds=None).session("s")
    chat.append(turns(20))

    assert [threading.current_thread()] == seen
    assert 1 == len(chat.archive())


# ------------------------------------------------------------------ in a task


def test_an_awaited_append_does_not_wait_for_the_summariser() -> None:
    """It returns while the summary is awaited, and aflush awaits the commit; no thread is started."""

    async def talk() -> tuple[Any, ...]:
        held = AsyncHeld()
        chat = memory(consolidator=held).session("s")
        await chat.aappend(turns(20))
        await held.asked.wait()
        before = await chat.aarchive()
        early = await chat.aflush(0.01)
        held.go.set()
        late = await chat.aflush()
        return before, early, late, len(await chat.aarchive())

    there = set(workers())

    assert ((), False, True, 1) == asyncio.run(talk())
    assert set() == set(workers()) - there


def test_what_is_awaited_meanwhile_is_looked_at_before_the_task_ends() -> None:
    """Appends while a summary is awaited start no second task, and are consolidated too when they are due."""

    async def talk() -> tuple[Any, ...]:
        held = AsyncHeld()
        chat = memory(consolidator=held).session("s")
        await chat.aappend(turns(20))
        await held.asked.wait()
        for at in range(20, 50):
            await chat.aappend(turn(at))
        tasks = [task for task in asyncio.all_tasks() if task.get_name() == WORKER]
        held.go.set()
        return len(tasks), await chat.aflush(), held.calls > 1, (await chat.aplan()).due

    assert (1, True, True, None) == asyncio.run(talk())


def test_sessions_are_awaited_side_by_side() -> None:
    """Five sessions wait for their summaries at once, each once."""

    async def talk() -> tuple[Any, ...]:
        met: list[str] = []
        all_met = asyncio.Event()

        async def summarize(messages: list[dict[str, Any]]) -> str:
            met.append(str(messages[0]["content"]).split()[3])
            if len(met) == 5:
                all_met.set()
            await all_met.wait()
            return summary(messages)

        mem = memory(consolidator=summarize)
        chats = [mem.session(str(at)) for at in range(5)]
        for at, chat in enumerate(chats):
            await chat.aappend(turns(20, f"Pune{at}"))
        done = [await chat.aflush(LONG) for chat in chats]
        return sorted(met), done

    assert ([f"Pune{at}" for at in range(5)], [True] * 5) == asyncio.run(talk())


def test_a_sync_flush_would_wait_for_itself() -> None:
    """Inside the loop that runs the task, the error names the twin, and nothing is lost by it."""

    async def talk() -> tuple[bool, int]:
        held = AsyncHeld()
        chat = memory(consolidator=held).session("s")
        await chat.aappend(turns(20))
        await held.asked.wait()
        with pytest.raises(AsyncOnly, match=r"await aflush\(\)"):
            chat.flush()
        held.go.set()
        return await chat.aflush(), len(await chat.aarchive())

    assert (True, 1) == asyncio.run(talk())


def test_a_sync_flush_waits_for_the_task_of_another_loop() -> None:
    """From a thread without a loop, the task of a loop elsewhere is waited for."""
    ready, go = threading.Event(), threading.Event()
    chats: list[ConversationMemory] = []

    async def talk() -> None:
        held = AsyncHeld()
        chat = memory(consolidator=held).session("s")
        chats.append(chat)
        await chat.aappend(turns(20))
        await held.asked.wait()
        ready.set()
        await asyncio.to_thread(go.wait, LONG)
        held.go.set()
        await chat.aflush()

    thread = threading.Thread(target=lambda: asyncio.run(talk()))
    thread.start()
    assert ready.wait(LONG)
    early = chats[0].flush(0.01)
    go.set()
    late = chats[0].flush(LONG)
    thread.join(LONG)

    assert (False, True, 1) == (early, late, len(chats[0].archive()))


def test_an_awaited_flush_waits_for_a_thread(held: Held) -> None:
    """Work that a sync caller left on a worker thread is awaited, and a time-out leaves nothing behind."""
    chat = memory(consolidator=held).session("s")
    chat.append(turns(20))

    async def wait() -> tuple[bool, bool]:
        early = await chat.aflush(0.01)
        held.go.set()
        return early, await chat.aflush(LONG)

    assert ((False, True), 1) == (asyncio.run(wait()), len(chat.archive()))


def test_a_flush_that_was_given_up_does_not_trouble_a_closed_loop(
    held: Held, caplog: pytest.LogCaptureFixture
) -> None:
    """Work that ends after the loop of a waiter was closed ends in silence."""
    chat = memory(consolidator=held).session("s")
    chat.append(turns(20))
    early = asyncio.run(chat.aflush(0.01))

    held.go.set()
    late = chat.flush(LONG)

    assert (False, True, []) == (early, late, caplog.messages)


def test_the_task_of_a_loop_that_ended_does_not_block_what_comes() -> None:
    """A loop that closes cancels its task; the work stays due, and the next append, in whatever loop, does it."""
    never = AsyncHeld()
    mem = memory(consolidator=never)
    chat = mem.session("s")

    async def first() -> None:
        await chat.aappend(turns(20))
        await never.asked.wait()

    async def second() -> tuple[bool, int]:
        never.go = asyncio.Event()
        never.go.set()
        await chat.aappend(turn(20))
        return await chat.aflush(LONG), len(await chat.aarchive())

    asyncio.run(first())
    between = chat.archive()

    assert ((), (True, 1)) == (between, asyncio.run(second()))


def test_a_task_that_was_cancelled_before_it_began_does_not_block_what_comes() -> None:
    """Whoever cancels every task of a loop costs a consolidation now, not for good."""

    async def talk() -> tuple[bool, int]:
        chat = memory().session("s")
        await chat.aappend(turns(20))
        tasks = [task for task in asyncio.all_tasks() if task.get_name() == WORKER]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await chat.aappend(turn(20))
        return await chat.aflush(1), len(await chat.aarchive())

    assert (True, 1) == asyncio.run(talk())


def test_a_task_that_is_cancelled_at_work_does_not_block_what_comes() -> None:
    """The lease is given back, who waits is told, and the next append starts anew."""

    async def talk() -> tuple[bool, bool, int]:
        held = AsyncHeld()
        chat = memory(consolidator=held).session("s")
        await chat.aappend(turns(20))
        await held.asked.wait()
        tasks = [task for task in asyncio.all_tasks() if task.get_name() == WORKER]
        waiting = asyncio.ensure_future(chat.aflush(LONG))
        tasks[0].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        told = await waiting
        held.go.set()
        await chat.aappend(turn(20))
        return told, await chat.aflush(LONG), len(await chat.aarchive())

    assert (False, True, 1) == asyncio.run(talk())


def test_a_sync_flush_does_not_stand_in_for_an_async_summariser() -> None:
    """What only an async summariser can write is not replaced by extracts behind its back: the twin is named."""
    never = AsyncHeld()
    events: list[Event] = []
    chat = memory(consolidator=never, on_event=events.append).session("s")

    async def talk() -> None:
        await chat.aappend(turns(20))
        await never.asked.wait()

    asyncio.run(talk())

    with pytest.raises(AsyncOnly, match=r"await aflush\(\)"):
        chat.flush(LONG)
    assert ((), []) == (chat.archive(), events)


# ------------------------------------------------------------------ what fails


class Failing(MemoryStore):
    """A store that fails at a method while a worker calls it, as often as it is told to."""

    def __init__(self, method: str, times: int = 1) -> None:
        super().__init__()
        self._method = method
        self.left = times

    def __getattribute__(self, name: str) -> Any:
        """The method; one that fails when its time has come."""
        if name == super().__getattribute__("__dict__").get("_method") and self._fails():
            self.left -= 1
            return self._fail
        return super().__getattribute__(name)

    def _fails(self) -> bool:
        return self.left > 0 and threading.current_thread().name == WORKER

    async def _fail(self, *args: Any) -> Any:
        raise OSError("the disk is full")


@pytest.mark.parametrize("summarize", [None, summary], ids=["extractive", "function"])
@pytest.mark.parametrize("method", ["snapshot", "commit"])
def test_a_store_that_fails_is_told_and_the_next_append_does_the_work(
    method: str, summarize: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody is there to be raised to: an event and a warning tell, all is as before, and it is done later."""
    events: list[Event] = []
    store = Failing(method)
    chosen = {"consolidator": summarize} if summarize else {}
    chat = memory(store=store, on_event=events.append, **chosen).session("s")

    chat.append(turns(20))
    for thread in workers():
        thread.join(LONG)
    before, due = chat.archive(), chat.due()
    told = [event for event in events if event.kind == "postponed"]
    chat.append(turn(20))
    done = chat.flush(LONG)

    assert ((), True, 0) == (before, due is not None, store.left)
    assert [("s", True)] == [(event.session, "OSError: the disk is full" in event.detail) for event in told]
    assert ["slidemem"] == [record.name for record in caplog.records if "the disk is full" in record.message]
    assert (True, 1) == (done, len(chat.archive()))


def test_a_store_that_fails_an_awaited_task_is_told() -> None:
    """The same in a task: the append that started it has long returned."""

    class FailsOnce(MemoryStore):
        left = 1

        async def commit(self, *args: Any) -> bool:
            if self.left:
                self.left -= 1
                raise OSError("the disk is full")
            return await super().commit(*args)

    events: list[Event] = []

    async def talk() -> tuple[bool, int, bool, int]:
        chat = memory(store=FailsOnce(), on_event=events.append).session("s")
        await chat.aappend(turns(20))
        first, nothing = await chat.aflush(), len(await chat.aarchive())
        return first, nothing, await chat.aflush(), len(await chat.aarchive())

    assert (False, 0, True, 1) == asyncio.run(talk())
    assert ["postponed", "consolidated"] == [event.kind for event in events]


def test_a_summariser_that_raises_is_no_failure_of_the_background() -> None:
    """It is refused, and extracts stand in its place, as inline."""
    events: list[Event] = []

    def fails(messages: list[dict[str, Any]]) -> str:
        raise ConnectionError("no model")

    chat = memory(consolidator=fails, on_event=events.append).session("s")
    chat.append(turns(20))

    assert chat.flush(LONG)
    assert ["extractive"] == [segment.method for segment in chat.archive()]
    assert {"refused", "consolidated"} == {event.kind for event in events}


@pytest.mark.parametrize("times", [1, 5])
def test_a_summariser_that_exits_does_not_wedge_its_session(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a thread is ended from inside a summariser, a later append is seen to."""
    monkeypatch.setattr(threading, "excepthook", lambda args: None)
    asked = threading.Semaphore(0)
    calls: list[int] = []

    def summarize(messages: list[dict[str, Any]]) -> str:
        calls.append(1)
        asked.release()
        if len(calls) <= times:
            raise SystemExit
        return summary(messages)

    chat = memory(consolidator=summarize).session("s")
    chat.append(turns(20))
    for at in range(times):
        got = asked.acquire(timeout=5)
        for thread in workers():
            thread.join(LONG)
        assert (True, ()) == (got, chat.archive())
        chat.append(turn(20 + at))

    assert (True, times + 1) == (chat.flush(5), len(calls))
    assert 1 == len(chat.archive())


def test_a_summariser_that_exits_leaves_other_sessions_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions that wait behind the one whose thread was ended are seen to without another append of theirs."""
    monkeypatch.setattr(threading, "excepthook", lambda args: None)
    full, go = threading.Barrier(5), threading.Event()

    def summarize(messages: list[dict[str, Any]]) -> str:
        if "bad" in str(messages[0]["content"]):
            full.wait(LONG)
            assert go.wait(LONG)
            raise SystemExit
        return summary(messages)

    mem = memory(consolidator=summarize)
    for at in range(4):
        mem.session(f"bad{at}").append(turns(20, "bad"))
    full.wait(LONG)
    good = mem.session("good")
    good.append(turns(20))

    go.set()
    waited = good.flush(5)

    assert (True, 1) == (waited, len(good.archive()))


def test_where_no_thread_can_be_started_the_work_stays_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """An append does not fail for it, nobody waits for it, and the next one that gets a thread does it."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    chat = memory().session("s")
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        chat.append(turns(20))
        waited, due = chat.flush(LONG), chat.due()
    chat.append(turn(20))

    assert (False, True) == (waited, due is not None)
    assert (True, 1) == (chat.flush(LONG), len(chat.archive()))


def test_there_is_nothing_to_wait_for_where_nothing_was_asked() -> None:
    """A session that nobody works on is done at once, for both kinds of callers."""
    background = schedule.Background(LONG)

    assert (True, True) == (background.flush("s", LONG), asyncio.run(background.aflush("s", LONG)))


def test_work_that_several_wait_for_is_done_once(held: Held) -> None:
    """Three threads that flush at once cost one summary, and all of them come back."""
    chat = memory(consolidator=held).session("s")
    chat.append(turns(20))
    waiting = [threading.Thread(target=chat.flush) for _ in range(3)]
    for thread in waiting:
        thread.start()

    held.go.set()
    for thread in waiting:
        thread.join(LONG)

    assert (1, 1, [False] * 3) == (held.calls, len(chat.archive()), [thread.is_alive() for thread in waiting])


def test_a_clear_while_work_is_pending(held: Held) -> None:
    """The summary of a session that was cleared meanwhile is dropped, and the session is empty."""
    events: list[Event] = []
    mem = memory(consolidator=held, on_event=events.append)
    chat = mem.session("s")
    chat.append(turns(20))
    assert held.asked.wait(LONG)

    chat.clear()
    held.go.set()
    done = chat.flush(LONG)

    assert (True, (), (), ["lost_race"]) == (
        done,
        chat.archive(),
        chat.transcript(),
        [event.kind for event in events],
    )


# ------------------------------------------------------------------ the end of the process, and a fork

PROGRAM = """
import sys, threading
from slidemem import SlideMem

def summarize(messages):
    threading.Event().wait({seconds})
    print("summarised", flush=True)
    return "They spoke of Pune 0"

mem = SlideMem(max_tokens=200, counter=lambda text: len(text.split()), recall_share=0, archive_share=0.4,
               mode="background", consolidator=summarize, {options})
chat = mem.session("s")
chat.append([{{"role": role, "content": f"word word word Pune {{at}}"}}
             for at in range(20) for role in ("user", "assistant")])
print("appended", flush=True)
{rest}
"""


def run(seconds: float, options: str = "", rest: str = "") -> subprocess.CompletedProcess[str]:
    """A process that appends in background mode and ends."""
    code = PROGRAM.format(seconds=seconds, options=options, rest=rest)
    return subprocess.run(  # noqa: S603  # our own code
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT, timeout=LONG / 2
    )


@pytest.mark.parametrize("kept", ["in memory", "in a file"])
def test_the_end_of_a_process_waits_for_its_work(kept: str, tmp_path: Path) -> None:
    """A summary that is being written is written, and committed where the store outlives the process."""
    store = f"sqlite:///{tmp_path / 'chat.db'}" if kept == "in a file" else None

    ended = run(0.2, f"store={store!r}")

    assert ("appended\nsummarised\n", "", 0) == (ended.stdout, ended.stderr, ended.returncode)
    if store:
        archive = memory(store=store, mode="manual").session("s").archive()
        assert ["They spoke of Pune 0"] == [segment.text.splitlines()[0] for segment in archive]


def test_the_end_of_a_process_waits_no_longer_than_it_may() -> None:
    """With flush_seconds=0 a process that was told to end ends, though its summariser takes minutes."""
    ended = run(600, "flush_seconds=0")

    assert ("appended\n", "", 0) == (ended.stdout, ended.stderr, ended.returncode)


def test_a_process_that_fails_waits_too() -> None:
    """An exception that ends the process does not cost the summary."""
    ended = run(0.2, rest="raise SystemExit(3)")

    assert ("appended\nsummarised\n", "", 3) == (ended.stdout, ended.stderr, ended.returncode)


def test_an_append_at_the_end_of_a_process_is_stored(tmp_path: Path) -> None:
    """A farewell that is appended while the process ends is stored, and what it makes due does not raise."""
    store = f"sqlite:///{tmp_path / 'chat.db'}"
    farewell = "import atexit; atexit.register(lambda: chat.append({'role': 'user', 'content': 'bye'}))"

    ended = run(0, f"store={store!r}", farewell)

    assert ("", 0) == (ended.stderr, ended.returncode)
    assert "bye" == memory(store=store, mode="manual").session("s").transcript()[-1].text


def test_the_end_waits_for_threads_and_not_for_tasks(held: Held) -> None:
    """What the end of a process calls waits for a worker thread; a task cannot go on there, and is not waited for."""

    async def leave_a_task() -> None:
        never = AsyncHeld()
        other = memory(consolidator=never).session("s")
        await other.aappend(turns(20))
        await never.asked.wait()
        schedule._drain_all()

    chat = memory(consolidator=held).session("s")
    chat.append(turns(20))
    assert held.asked.wait(LONG)
    ended = threading.Thread(target=schedule._drain_all)
    ended.start()
    waits = ended.is_alive()

    held.go.set()
    ended.join(LONG)
    archive = chat.archive()
    asyncio.run(leave_a_task())

    assert (True, False, 1) == (waits, ended.is_alive(), len(archive))


def test_a_memory_that_begins_anew_works() -> None:
    """What a forked child does first leaves a memory that does its work."""
    chat = memory().session("s")

    schedule._begin_all()
    chat.append(turns(20))

    assert (True, 1) == (chat.flush(LONG), len(chat.archive()))


FORK = """
pid = os.fork()
if pid == 0:
    chat.append([{"role": role, "content": f"word word word Goa {at}"} for at in range(20) for role in ROLES])
    done = chat.flush(30)
    own = mem.session("own")
    own.append([{"role": role, "content": f"word word word Goa {at}"} for at in range(20) for role in ROLES])
    done = done and own.flush(30)
    os._exit(0 if done and own.archive() and chat.archive() and chat.plan().due is None else 1)
_, status = os.waitpid(pid, 0)
print("child", os.waitstatus_to_exitcode(status), flush=True)
go.set()
print("parent", chat.flush(30), len(chat.archive()), flush=True)
"""

FORKING = """
import os, threading
from slidemem import SlideMem

ROLES = ("user", "assistant")
asked, go, parent = threading.Event(), threading.Event(), os.getpid()

def summarize(messages):
    asked.set()
    if os.getpid() == parent:
        assert go.wait(30)
    return "They spoke of Pune 0 and Goa 0"

mem = SlideMem(max_tokens=200, counter=lambda text: len(text.split()), recall_share=0, archive_share=0.4,
               mode="background", consolidator=summarize, clock=lambda: 0.0 if os.getpid() == parent else 1e6)
chat = mem.session("s")
chat.append([{"role": role, "content": f"word word word Pune {at}"} for at in range(20) for role in ROLES])
assert asked.wait(30)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_a_forked_child_can_use_the_memory() -> None:
    """A child that was forked while its parent's worker was at it has workers of its own, and so has the parent."""
    ended = subprocess.run(  # noqa: S603  # our own code
        [sys.executable, "-W", "ignore", "-c", FORKING + FORK],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=LONG,
    )

    assert ("child 0\nparent True 1\n", "") == (ended.stdout, ended.stderr)


# ------------------------------------------------------------------ options


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "soon"])
def test_flush_seconds_are_a_number_of_seconds(seconds: Any) -> None:
    """What is no time to wait is refused when the memory is made."""
    with pytest.raises(ValueError, match="flush_seconds"):
        memory(flush_seconds=seconds)


def test_flush_waits_for_flush_seconds_unless_told_otherwise(held: Held) -> None:
    """The option is what flush waits at most when it is not told."""
    chat = memory(consolidator=held, flush_seconds=0).session("s")
    chat.append(turns(20))

    early, early_too = chat.flush(), asyncio.run(chat.aflush())
    held.go.set()

    assert (False, False, True) == (early, early_too, chat.flush(LONG))


def test_a_listener_hears_of_background_work(held: Held) -> None:
    """Events of a worker reach on_event with the session's id."""
    events: list[Event] = []
    chat = memory(consolidator=held, on_event=events.append).session("s")
    held.go.set()

    chat.append(turns(20))
    chat.flush(LONG)

    assert [("consolidated", "s")] == [(event.kind, event.session) for event in events]


def test_threads_that_append_to_one_session_lose_nothing() -> None:
    """Eight threads, one session, work behind all of them: every message once, the sums right, nothing due."""
    mem = memory()

    def talk(who: int) -> None:
        chat = mem.session("s")
        for at in range(40):
            chat.append(turn(at, f"Pune{who}"))

    threads = [threading.Thread(target=talk, args=(who,)) for who in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    chat = mem.session("s")
    done = chat.flush(LONG)

    seen = snapshot(mem)
    assert (True, None, 640) == (done, chat.plan().due, len(set(chat.transcript())))
    assert Totals.of(seen.record, seen.live, "") == seen.totals


class Untold(Exception):
    """A fault that cannot be told in words."""

    def __str__(self) -> str:
        raise ValueError("no words")


def test_a_listener_that_exits_does_not_cost_a_session_its_worker() -> None:
    """Whatever on_event raises while a worker tells it, the next append is seen to."""
    loud = [True]

    def leave(event: Event) -> None:
        if loud[0]:
            raise SystemExit

    chat = memory(on_event=leave).session("s")
    chat.append(turns(20))
    for thread in workers():
        thread.join(LONG)
    loud[0] = False
    chat.append(turns(20))

    assert chat.flush(LONG)
    assert [] == workers()


def test_a_fault_without_words_is_told_by_its_name() -> None:
    """A store's or a summariser's exception whose text raises is told, and what is due is done later."""
    events: list[Event] = []
    faults = [Untold()]

    class Store(MemoryStore):
        async def commit(self, *args: Any) -> bool:
            if faults:
                raise faults.pop()
            return await super().commit(*args)

    def summarize(messages: list[dict[str, Any]]) -> str:
        raise Untold

    chat = memory(store=Store(), consolidator=summarize, on_event=events.append).session("s")
    chat.append(turns(20))
    first = chat.flush(LONG)
    chat.append(turn(20))

    assert (True, True) == (first, chat.flush(LONG))
    assert any(event.detail.endswith("stays due: Untold") for event in events if event.kind == "postponed")
    assert any("raised Untold" in event.detail for event in events if event.kind == "refused")


@pytest.mark.parametrize("awaited", [False, True])
def test_who_is_at_it_does_not_wait_for_himself(awaited: bool) -> None:  # noqa: FBT001  # a row
    """A flush from inside the summariser, on the worker or in the task, is told that it is not done yet."""
    told: list[bool] = []

    def summarize(messages: list[dict[str, Any]]) -> str:
        told.append(chats[0].flush(LONG))
        return summary(messages)

    async def asummarize(messages: list[dict[str, Any]]) -> str:
        told.append(await chats[0].aflush(LONG))
        return summary(messages)

    chats = [memory(consolidator=asummarize if awaited else summarize).session("s")]

    async def talk() -> bool:
        await chats[0].aappend(turns(20))
        return await chats[0].aflush(LONG)

    if awaited:
        done = asyncio.run(talk())
    else:
        chats[0].append(turns(20))
        done = chats[0].flush(LONG)

    assert done
    assert told
    assert not any(told)


@pytest.mark.parametrize("seconds", ["a", -1, True, float("nan")])
def test_a_wait_that_means_nothing_is_refused(seconds: Any) -> None:
    """A flush waits for a number of seconds; one beyond any clock is as long as there is."""
    chat = memory().session("s")
    chat.append(turns(20))

    with pytest.raises(ConfigurationError, match="0 seconds or more"):
        chat.flush(seconds)
    assert chat.flush(float("inf"))


def test_a_cancelled_append_gives_its_lease_back() -> None:
    """Wherever an append over a file is cancelled, the session is consolidated by the next ones."""

    async def summarize(messages: list[dict[str, Any]]) -> str:
        await asyncio.sleep(0)
        return summary(messages)

    async def talk(steps: int) -> int:
        with SQLiteStore() as store:
            chat = memory(store=store, mode="inline", consolidator=summarize).session("s")
            task = asyncio.ensure_future(chat.aappend(turns(20)))
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            for at in range(20, 24):
                await chat.aappend(turn(at))
            return len(await chat.aarchive())

    assert 0 not in [asyncio.run(talk(steps)) for steps in range(7, 400, 7)]
