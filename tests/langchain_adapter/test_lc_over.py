# no token here is a password

from __future__ import annotations

import asyncio
import inspect
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    message_to_dict,
    messages_from_dict,
)
from langchain_core.runnables import ConfigurableFieldSpec, RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory
from lc_scripted import Echo

from langchain_slidemem import SlidingChatMessageHistory, with_sliding_memory
from slidemem import ConfigurationError

LIMITS: dict[str, Any] = {"max_tokens": 400, "token_counter": "approximate"}


class InProcess(BaseChatMessageHistory):
    """A user's history in a list."""

    kept: dict[str, list[BaseMessage]]
    made: list[str]

    def __init__(self, session_id: str) -> None:
        super().__init__()
        self.made.append(session_id)
        self.session_id = session_id

    @property
    def messages(self) -> list[BaseMessage]:
        """A copy of the list."""
        return list(self.kept.setdefault(self.session_id, []))

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append."""
        self.kept.setdefault(self.session_id, []).extend(messages)

    def clear(self) -> None:
        """Forget."""
        self.kept.pop(self.session_id, None)


class InFile(BaseChatMessageHistory):
    """A user's history in an SQLite table, as langchain-community's has it: JSON in, copies out."""

    path: Path

    def __init__(self, session_id: str) -> None:
        super().__init__()
        self.session_id = session_id
        with self._open() as file:
            file.execute("CREATE TABLE IF NOT EXISTS store (session TEXT, message TEXT)")

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path)

    @property
    def messages(self) -> list[BaseMessage]:
        """Copies, made at each read."""
        with self._open() as file:
            rows = file.execute("SELECT message FROM store WHERE session = ? ORDER BY rowid", (self.session_id,))
            return messages_from_dict([json.loads(row[0]) for row in rows])

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Insert."""
        with self._open() as file:
            rows = [(self.session_id, json.dumps(message_to_dict(message))) for message in messages]
            file.executemany("INSERT INTO store VALUES (?, ?)", rows)

    def clear(self) -> None:
        """Delete."""
        with self._open() as file:
            file.execute("DELETE FROM store WHERE session = ?", (self.session_id,))


class AsyncOnly(InProcess):
    """A user's history that refuses sync calls, as one over an async driver does."""

    @property
    def messages(self) -> list[BaseMessage]:
        """Refused."""
        raise RuntimeError("use aget_messages")

    async def aget_messages(self) -> list[BaseMessage]:
        """The list."""
        await asyncio.sleep(0)
        return list(self.kept.setdefault(self.session_id, []))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append."""
        await asyncio.sleep(0)
        InProcess.add_messages(self, messages)

    async def aclear(self) -> None:
        """Forget."""
        InProcess.clear(self)


@pytest.fixture(params=["in process", "in a file"])
def theirs(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A user's factory."""
    if request.param == "in process":
        return type("Mine", (InProcess,), {"kept": {}, "made": []})
    return type("Mine", (InFile,), {"path": tmp_path / "theirs.db"})


def talk(history: SlidingChatMessageHistory, turns: int) -> list[BaseMessage]:
    """Add turns, one after another."""
    said: list[BaseMessage] = []
    for n in range(turns):
        turn = [HumanMessage(f"Please book seat {n}A to Pune."), AIMessage(f"Booked, reference PNR-{n:04}.")]
        history.add_messages(turn)
        said += turn
    return said


def test_theirs_keeps_the_transcript_and_ours_what_is_shown(theirs: Any) -> None:
    """Their history holds everything as it was said, and what a model sees is bounded."""
    get = SlidingChatMessageHistory.over(theirs, **LIMITS)

    said = talk(get("s"), 40)

    assert said == theirs("s").messages == get("s").transcript
    assert 400 >= get("s").context().tokens
    assert get("s").messages[0].text.startswith("<earlier-conversation>")
    assert said[-2:] == get("s").messages[-2:]


def test_issue_10078_a_history_that_returns_copies_is_bounded(theirs: Any) -> None:
    """langchain#10078: pruning does not rest on changing the list that a history returns, nor is it done again."""
    calls: list[int] = []

    def summarize(messages: list[BaseMessage]) -> str:
        calls.append(len(messages))
        return messages[0].text

    get = SlidingChatMessageHistory.over(theirs, summarizer=summarize, **LIMITS)
    talk(get("s"), 40)
    consolidated = sum(calls)

    _ = [get("s").messages for _ in range(5)]

    assert 100 > consolidated == sum(calls)  # each of 80 messages once, and lines of the archive when it merges
    assert 400 >= get("s").context().tokens


def test_what_was_there_before_is_the_transcript(theirs: Any) -> None:
    """A history of years is taken as it is, on the first read."""
    theirs("s").add_messages([HumanMessage(f"old {n}") for n in range(100)])

    history = SlidingChatMessageHistory.over(theirs, **LIMITS)("s")

    assert 400 >= history.context().tokens
    assert 100 == len(history.transcript)
    assert "old 99" == history.messages[-1].text


def test_others_may_add_to_theirs(theirs: Any) -> None:
    """What another program appends is there on the next read."""
    history = SlidingChatMessageHistory.over(theirs, **LIMITS)("s")
    talk(history, 40)

    theirs("s").add_messages([HumanMessage("from elsewhere")])

    assert "from elsewhere" == history.messages[-1].text


def test_edits_behind_our_back_are_noticed(theirs: Any) -> None:
    """Where their list is another one, what was remembered of the old one is not shown."""
    history = SlidingChatMessageHistory.over(theirs, **LIMITS)("s")
    talk(history, 40)

    theirs("s").clear()
    theirs("s").add_messages([HumanMessage("new"), AIMessage("start")])

    assert ["new", "start"] == [message.text for message in history.messages]


def test_clearing_ours_clears_theirs(theirs: Any) -> None:
    """Both are empty, and the archive is gone."""
    history = SlidingChatMessageHistory.over(theirs, **LIMITS)("s")
    talk(history, 40)

    history.clear()

    assert ([], [], ()) == (theirs("s").messages, history.messages, history.session.archive())


def test_the_record_outlives_the_process_in_a_store(theirs: Any, tmp_path: Path) -> None:
    """With `records` another process shows the same bytes; without, everything is live again."""
    records = f"sqlite:///{tmp_path / 'records.db'}"
    before = SlidingChatMessageHistory.over(theirs, records=records, **LIMITS)("s")
    talk(before, 40)

    after = SlidingChatMessageHistory.over(theirs, records=records, **LIMITS)("s")
    without = SlidingChatMessageHistory.over(theirs, **LIMITS)("s")

    assert before.messages == after.messages
    assert (True, 0) == (after.context().receipt.covered > 0, without.context().receipt.covered)
    assert 400 >= without.context().tokens


def test_the_async_face_uses_their_async_members() -> None:
    """A history over an async driver works awaited, and is never called in a thread."""
    mine = type("Mine", (AsyncOnly,), {"kept": {}, "made": []})
    get = SlidingChatMessageHistory.over(mine, **LIMITS)
    chain = with_sliding_memory(Echo(), get)

    async def turns() -> list[int]:
        for n in range(40):
            await chain.ainvoke(f"question {n} of the day", {"configurable": {"session_id": "s"}})
        history = get("s")
        shown = [(await history.acontext()).tokens, len(await history.aget_transcript())]
        await history.aclear()
        return [*shown, len(await history.aget_messages())]

    tokens, kept, left = asyncio.run(turns())

    assert (True, 80, 0) == (tokens <= 400, kept, left)


def test_what_json_cannot_hold_reaches_a_history_that_can() -> None:
    """An artifact that no store could keep stays where it is, in their list."""
    mine = type("Mine", (InProcess,), {"kept": {}, "made": []})
    history = SlidingChatMessageHistory.over(mine, **LIMITS)("s")
    thing = object()
    call = AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "c"}])

    history.add_messages([HumanMessage("go"), call, ToolMessage("done", tool_call_id="c", artifact=thing)])

    chain = RunnableLambda(lambda messages: AIMessage("done", response_metadata={"thing": thing}))
    with_sliding_memory(chain, lambda session_id: history).invoke("and?", {"configurable": {"session_id": "s"}})

    kept = mine("s").messages
    assert (thing, thing) == (kept[2].artifact, kept[4].response_metadata["thing"])
    assert (None, {}) == (history.messages[2].artifact, history.messages[4].response_metadata)


def test_a_chunk_reaches_theirs_whole(theirs: Any) -> None:
    """Their history gets messages that it can write."""
    history = SlidingChatMessageHistory.over(theirs, **LIMITS)("s")

    history.add_messages([HumanMessage("hi"), AIMessageChunk("hel") + AIMessageChunk("lo")])

    assert [HumanMessage, AIMessage] == [type(message) for message in theirs("s").messages]


def test_a_failing_history_leaves_nothing_behind() -> None:
    """What theirs raises reaches the caller, and the next try is a new one."""

    class Full(InProcess):
        kept: dict[str, list[BaseMessage]] = {}  # noqa: RUF012  # of this test
        made: list[str] = []  # noqa: RUF012  # the same
        full = True

        def add_messages(self, messages: Sequence[BaseMessage]) -> None:
            if self.full:
                raise OSError("no space")
            super().add_messages(messages)

    history = SlidingChatMessageHistory.over(Full, **LIMITS)("s")
    with pytest.raises(OSError, match="no space"):
        history.add_user_message("hi")
    Full.full = False
    history.add_user_message("hi")

    assert ["hi"] == [message.text for message in history.transcript]


@pytest.mark.filterwarnings("ignore::langchain_core._api.deprecation.LangChainDeprecationWarning")
def test_it_is_a_factory_for_langchains_runnable() -> None:
    """The wrapped factory has the other one's parameters, and is called once for each run."""
    made: list[str] = []
    mine = type("Mine", (InProcess,), {"kept": {}, "made": made})

    def factory(*, user_id: str, thread_id: str) -> BaseChatMessageHistory:
        return mine(f"{user_id}/{thread_id}")  # type: ignore[no-any-return]

    get = SlidingChatMessageHistory.over(factory, **LIMITS)
    specs = [ConfigurableFieldSpec(id=name, annotation=str) for name in ("user_id", "thread_id")]
    runnable = RunnableWithMessageHistory(Echo(), get, history_factory_config=specs)
    config: Any = {"configurable": {"user_id": "alice", "thread_id": "1"}}

    for n in range(12):
        runnable.invoke(f"question {n} of the day", config)

    assert ["user_id", "thread_id"] == list(inspect.signature(get).parameters)
    assert ["alice/1"] * 12 == made
    assert 24 == len(mine.kept["alice/1"])  # type: ignore[attr-defined]


def test_a_history_that_was_forgotten_is_made_again() -> None:
    """However many sessions a process serves, each finds its own list."""
    mine = type("Mine", (InProcess,), {"kept": {}, "made": []})
    one = SlidingChatMessageHistory.over(mine, **LIMITS)
    several = SlidingChatMessageHistory.over(lambda user, thread: mine(f"{user}/{thread}"), **LIMITS)
    first, second = one("s-0"), several("alice", thread="0")
    first.add_user_message("hi")
    second.add_user_message("hello")

    for n in range(1, 300):
        one(f"s-{n}")
        several("alice", f"{n}")

    assert (["hi"], ["hello"]) == tuple([message.text for message in one.messages] for one in (first, second))


def test_a_factory_of_one_conversation_has_no_parameters() -> None:
    """Its session has a name of its own."""
    mine = type("Mine", (InProcess,), {"kept": {}, "made": []})
    get = SlidingChatMessageHistory.over(lambda: mine("all"), **LIMITS)

    get().add_user_message("hi")

    assert ["hi"] == [message.text for message in get().messages]


def test_a_session_must_have_a_name() -> None:
    """What JSON cannot hold names no session."""
    get = SlidingChatMessageHistory.over(lambda user, thread: None, **LIMITS)

    with pytest.raises(ConfigurationError, match="named by text and numbers"):
        get(object(), "1")


@pytest.mark.parametrize(
    "given, said",
    [
        ({"store": "sqlite://"}, "pass what else there is to keep with records="),
        ({"transcript": None}, "leave out transcript"),
        ({"memory": None}, "pass the options of the memory themselves"),
    ],
)
def test_an_option_without_a_meaning_here_is_refused(given: dict[str, Any], said: str) -> None:
    """The error says what to pass instead."""
    with pytest.raises(ConfigurationError) as raised:
        SlidingChatMessageHistory.over(InProcess, **LIMITS, **given)

    assert said in str(raised.value)


def test_a_factory_of_something_else_is_named() -> None:
    """What is no history is refused when the factory is called, and not by an AttributeError somewhere else."""
    get = SlidingChatMessageHistory.over(lambda session_id: {"a": session_id}, **LIMITS)  # type: ignore[arg-type,return-value]

    with pytest.raises(ConfigurationError) as raised:
        get("s")

    assert "it returned {'a': 's'}, which has no add_messages" in str(raised.value)
