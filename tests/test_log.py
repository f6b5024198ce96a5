"""A host's own list of messages as the transcript."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest

from slidemem import ConversationMemory, Message, SlideMem, StoreError
from slidemem.driver import drive
from slidemem.messages import user
from slidemem.stores.log import LoggedTranscript, MessageLog, RewritableLog
from slidemem.stores.memory import MemoryStore


class ReadOnlyLog:
    """A host that reads, appends and clears, and counts how often it is asked."""

    def __init__(self) -> None:
        self.lists: defaultdict[str, list[Message]] = defaultdict(list)
        self.reads = 0

    async def messages(self, session: str) -> Sequence[Message]:
        """All of them."""
        self.reads += 1
        return list(self.lists[session])

    async def add(self, session: str, messages: Sequence[Message]) -> None:
        """At the end."""
        self.lists[session].extend(messages)

    async def clear(self, session: str) -> None:
        """None is left."""
        self.lists[session].clear()


class Log(ReadOnlyLog):
    """One that can replace its list, and has a face for async callers."""

    def __init__(self) -> None:
        super().__init__()
        self.awaited = 0

    async def replace(self, session: str, messages: Sequence[Message]) -> None:
        """By another list."""
        self.lists[session] = list(messages)

    def for_async(self) -> Log:
        """The same, counted."""
        self.awaited += 1
        return self


class Counter:
    """Words, and how often it was asked."""

    fingerprint = "words"

    def __init__(self) -> None:
        self.calls = 0

    def count(self, message: Message) -> int:
        """Words of the text."""
        self.calls += 1
        return len(message.text.split())


def memory(log: Any, **options: Any) -> ConversationMemory:
    """A session over a log, forty words wide."""
    return SlideMem(
        max_tokens=40, transcript=log, **{"counter": Counter(), "recall_share": 0, "archive_share": 0.3, **options}
    ).session("s")


def turn(at: int) -> list[dict[str, Any]]:
    """A question and its answer, seven words each."""
    return [{"role": role, "content": f"{role} says that seat {at} is Pune-{at}"} for role in ("user", "assistant")]


def filled(log: ReadOnlyLog, turns: int = 8) -> ConversationMemory:
    """A session in which turns have been consolidated."""
    chat = memory(log)
    for at in range(turns):
        chat.append(turn(at))
    return chat


def test_a_log_is_known_by_its_methods() -> None:
    """A list that can be replaced is told from one that can only grow."""
    assert (True, False) == (isinstance(ReadOnlyLog(), MessageLog), isinstance(ReadOnlyLog(), RewritableLog))
    assert isinstance(Log(), RewritableLog)


def test_the_host_keeps_every_message() -> None:
    """The transcript stays where it is, while the archive is elsewhere."""
    log = ReadOnlyLog()

    chat = filled(log)

    assert tuple(log.lists["s"]) == chat.transcript()
    assert 16 == len(chat.transcript())
    assert chat.stats().covered_messages > 4
    assert chat.context().tokens <= 40


def test_a_filled_list_is_picked_up_as_it_is() -> None:
    """What the host held before is in the window at once, an oversize message clamped and not refused."""
    log = ReadOnlyLog()
    log.lists["s"] = [user("hello there"), Message("assistant", user("word " * 90).parts), user("And now?")]

    chat = memory(log, oversize="raise")

    assert "And now?" == chat.context().messages[-1].text
    assert chat.context().tokens <= 40


def test_each_message_is_counted_once() -> None:
    """A read makes entries of what is new, and a list that has not changed costs the counter nothing."""
    log, counter = ReadOnlyLog(), Counter()
    chat = memory(log, counter=counter, consolidator=None)
    chat.append([message for at in range(2) for message in turn(at)])
    chat.context()
    counter.calls = 0

    chat.context()
    unchanged = counter.calls
    log.lists["s"].append(user("one more"))
    chat.context()

    assert (0, 1) == (unchanged, counter.calls)


def test_the_latest_sessions_are_remembered() -> None:
    """More sessions than are remembered are read as well."""
    mem = SlideMem(max_tokens=40, transcript=ReadOnlyLog(), counter=Counter())
    for at in range(70):
        mem.session(f"s{at}").append(user(f"hello {at}"))

    assert "hello 0" == mem.session("s0").context().messages[-1].text


def test_a_list_that_was_edited_is_live_again() -> None:
    """A host that changes its list behind our back loses the archive, and no message."""
    log = ReadOnlyLog()
    chat = filled(log)

    log.lists["s"] = log.lists["s"][3:]

    assert 0 == chat.stats().covered_messages
    assert 13 == chat.stats().live_messages
    assert chat.context().tokens <= 40


def test_a_list_that_can_be_replaced_is_shortened() -> None:
    """A rewind takes the messages out of the host's list."""
    log = Log()
    chat = filled(log)

    left = chat.rewind(-2)

    assert 14 == len(log.lists["s"])
    assert 2 == len(left)
    assert () == chat.branches()


def test_a_list_that_only_grows_refuses_a_rewind() -> None:
    """What cannot be shortened says so, with the numbers, and every message stays."""
    log = ReadOnlyLog()
    chat = filled(log)

    with pytest.raises(StoreError, match="2 messages were to leave it"):
        chat.rewind(-2)

    assert 16 == len(chat.transcript())
    assert chat.context().tokens <= 40


def test_a_rewind_to_where_the_list_ends_changes_nothing() -> None:
    """Nothing leaves, and nothing is refused."""
    chat = filled(ReadOnlyLog())

    assert () == chat.rewind(16)


def test_a_cut_behind_the_end_leaves_a_log_alone() -> None:
    """Keeping as many messages as there are needs no log that can be rewritten."""
    log = ReadOnlyLog()
    log.lists["s"] = [user("hello")]

    drive(LoggedTranscript(log, lambda messages, first: ()).cut("s", 1), "")

    assert [user("hello")] == log.lists["s"]


def test_clear_clears_the_hosts_list() -> None:
    """Messages and archive go."""
    log = ReadOnlyLog()
    chat = filled(log)

    chat.clear()

    assert [] == log.lists["s"]
    assert () == chat.archive()


def test_the_log_has_a_face_for_async_callers() -> None:
    """The async twins reach the log's own async face, and what one face has counted the other knows."""
    log, counter = Log(), Counter()
    chat = memory(log, counter=counter, consolidator=None)
    chat.append(turn(0))
    expected = chat.context()
    counter.calls = 0

    actual = asyncio.run(chat.acontext())

    assert expected == actual
    assert (1, 0) == (log.awaited, counter.calls)


def test_records_may_be_a_url() -> None:
    """The record can live in an SQLite file beside the host's list."""
    log = ReadOnlyLog()
    mem = SlideMem(max_tokens=40, transcript=log, records="sqlite://", counter=Counter(), recall_share=0)

    mem.session("s").append([message for at in range(8) for message in turn(at)])

    assert mem.session("s").stats().covered_messages > 0
    assert asyncio.run(mem.session("s").astats()).covered_messages > 0


def test_a_repr_tells_what_is_kept_where() -> None:
    """A log is named by its class."""
    store = SlideMem(max_tokens=40, transcript=ReadOnlyLog(), records=MemoryStore(), counter=Counter()).store

    assert "LoggedTranscript(ReadOnlyLog)" == repr(getattr(store, "transcript", None))


def test_a_cut_shortens_a_list_that_can_be_replaced() -> None:
    """What is behind the place is gone from the host's list; behind its end nothing is."""
    log = Log()
    log.lists["s"] = [user("a"), user("b")]
    transcript = LoggedTranscript(log, lambda _messages, _first: ())

    for keep in (9, 1):
        drive(transcript.cut("s", keep), "cut")

    assert [user("a")] == log.lists["s"]
