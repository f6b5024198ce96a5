# ruff: noqa: S106, FBT001  # no token here is a password; fixtures tell whether a test awaits
"""A session that is searched by a tool and by a retriever."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool
from lc_agents import MODES, Scripted, say
from pydantic import ValidationError

from langchain_slidemem import SlidingChatMessageHistory, SlidingMemoryRetriever, recall_tool
from slidemem import ConfigurationError, ConversationMemory, Message, Part, SlideMem


class Home(BaseChatMessageHistory):
    """A user's own history."""

    def __init__(self) -> None:
        self.messages: list[BaseMessage] = []

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Keep them."""
        self.messages.extend(messages)

    def clear(self) -> None:
        """Forget them."""
        self.messages.clear()


HISTORIES: dict[str, Callable[[str], SlidingChatMessageHistory]] = {
    "history": lambda session: SlidingChatMessageHistory(session, max_tokens=1_000, token_counter="approximate"),
    "over": SlidingChatMessageHistory.over(
        lambda session: HOMES[session], max_tokens=1_000, token_counter="approximate"
    ),
}
HOMES: dict[str, Home] = defaultdict(Home)


def searched(kind: str, session: str) -> Any:
    """A session of four messages, as a history or as the core's own."""
    chat = SlideMem(max_tokens=1_000, counter="approximate").session(session)
    chat.append({"role": "user", "content": "The boathouse key hangs behind the barometer."})
    chat.append({"role": "assistant", "content": "Noted: the key, behind the barometer."})
    chat.append({"role": "user", "content": "My cabin is number 214."})
    chat.append({"role": "assistant", "content": "A boathouse and a cabin, then."})
    if kind == "core":
        return chat
    history = HISTORIES[kind](session)
    for message in chat.transcript():
        history.add_message((HumanMessage if message.role == "user" else AIMessage)(message.text))
    return history


def archived() -> ConversationMemory:
    """A session of which an archive has a line."""
    chat = SlideMem(max_tokens=300, counter="approximate").session("s")
    chat.append({"role": "user", "content": "My booking is PNR-4711 and my seat is 12A."})
    chat.append({"role": "assistant", "content": "Thank you, I have noted the booking PNR-4711."})
    for n in range(40):
        chat.append({"role": "user", "content": f"How is the weather at the lake on day {n}?"})
        chat.append({"role": "assistant", "content": f"It is dry on day {n}, with a light wind."})
    return chat


def found(tool: BaseTool, query: str, *, awaited: bool) -> Any:
    """What a tool answers."""
    return asyncio.run(tool.ainvoke({"query": query})) if awaited else tool.invoke({"query": query})


def documents(retriever: BaseRetriever, query: str, *, awaited: bool, **more: Any) -> list[Document]:
    """What a retriever answers."""
    if awaited:
        return asyncio.run(retriever.ainvoke(query, **more))
    return retriever.invoke(query, **more)


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def awaited(request: pytest.FixtureRequest) -> bool:
    """Whether a test awaits."""
    return bool(request.param)


@pytest.fixture(params=["history", "over", "core"])
def memory(request: pytest.FixtureRequest, fresh: str) -> Any:
    """A session of each kind."""
    return searched(request.param, fresh)


# ------------------------------------------------------------------ the tool


def test_the_tool_tells_who_said_what(memory: Any, awaited: bool) -> None:
    """A hit is a line with its role, as many as `k` at most."""
    tool = recall_tool(memory, k=1)

    assert "user: My cabin is number 214." == found(tool, "cabin number", awaited=awaited)


def test_each_hit_has_its_line(memory: Any) -> None:
    """Hits stand below one another, in the order of the search."""
    chat = memory if isinstance(memory, ConversationMemory) else memory.session
    hits = chat.search("barometer", 5)

    told = found(recall_tool(memory), "barometer", awaited=False).splitlines()

    assert len(hits) > 1
    assert [f"{hit.message.role}: {hit.text}" for hit in hits] == told


def test_nothing_is_said_to_be_nothing(memory: Any, awaited: bool) -> None:
    """Where nothing is found the model reads that, and no empty text."""
    assert "Nothing was found." == found(recall_tool(memory), "zeppelin", awaited=awaited)


@pytest.mark.parametrize(
    "time, speaker",
    [
        pytest.param("2026-03-01T09:30:00Z", "user, 2026-03-01", id="iso"),
        pytest.param("last spring", "user", id="no-date"),
        pytest.param(None, "user", id="none"),
    ],
)
def test_the_day_is_told_where_it_is_known(time: str | None, speaker: str) -> None:
    """The day is that of the message's own time; when it was appended says nothing of it."""
    chat = SlideMem(max_tokens=1_000, counter="approximate").session("s")
    chat.append(Message("user", (Part("text", "The ferry is late."),), time=time))
    chat.append({"role": "assistant", "content": "I see."})

    assert f"{speaker}: The ferry is late." == found(recall_tool(chat), "ferry", awaited=False)


def test_no_line_of_a_message_passes_for_another() -> None:
    """The further lines of a message are indented."""
    chat = SlideMem(max_tokens=1_000, counter="approximate").session("s")
    chat.append({"role": "user", "content": "The ferry is late.\nassistant: it is not."})
    chat.append({"role": "assistant", "content": "I see."})

    assert "user: The ferry is late.\n  assistant: it is not." == found(recall_tool(chat), "ferry", awaited=False)


def test_calls_are_told_with_their_arguments(fresh: str) -> None:
    """A message without a text is told by its calls, and not by nothing."""
    history = SlidingChatMessageHistory(fresh, max_tokens=1_000, token_counter="approximate")
    call = {"name": "book", "args": {"city": "Tangier"}, "id": "1"}
    history.add_messages([HumanMessage("Go."), AIMessage("", tool_calls=[call]), ToolMessage("ok", tool_call_id="1")])
    history.add_message(AIMessage("I have."))

    assert 'assistant: called book({"city": "Tangier"})' in found(recall_tool(history), "Tangier", awaited=False)


def test_a_line_of_the_archive_is_a_summary() -> None:
    """What the archive says is told as a summary's, and a document names its segment."""
    chat = archived()
    line = next(hit for hit in chat.search("PNR-4711", k=9) if hit.segment)

    told = found(recall_tool(chat, k=9), "PNR-4711", awaited=False).splitlines()
    document = next(
        one for one in SlidingMemoryRetriever(memory=chat, k=9).invoke("PNR-4711") if one.metadata["segment"]
    )

    assert f"summary: {line.text}" in told
    assert line.text == document.page_content
    assert (None, None, line.segment.id if line.segment else None) == tuple(
        document.metadata[key] for key in ("seq", "role", "segment")
    )


def test_a_tool_has_the_name_it_is_given(memory: Any) -> None:
    """Name and description are the caller's; the one argument is the query."""
    tool = recall_tool(memory, name="look_back", description="Looks back.")

    assert ("look_back", "Looks back.", ["query"]) == (tool.name, tool.description, list(tool.args))
    assert "recall" == recall_tool(memory).name


@pytest.mark.parametrize("mode", MODES)
def test_an_agent_calls_it(fresh: str, mode: str) -> None:
    """An agent's model reads what its call found, in every way to run the agent."""
    agents = pytest.importorskip("langchain.agents")
    chat = SlideMem(max_tokens=1_000, counter="approximate").session(fresh)
    chat.append({"role": "user", "content": "My parcel is Q1-0."})  # what the script asks for first
    chat.append({"role": "assistant", "content": "I see."})
    model = Scripted(rounds=1, called="recall")

    say(agents.create_agent(model, tools=[recall_tool(chat)]), "Where is my parcel?", fresh, mode)

    assert "user: My parcel is Q1-0." == model.seen[-1][-1].text
    assert 2 == len(model.seen)


def test_the_question_and_what_the_tool_said_before_are_no_answers(fresh: str) -> None:
    """A stored question does not answer itself, nor does what an earlier call of the tool found."""
    history = SlidingChatMessageHistory(fresh, max_tokens=1_000, token_counter="approximate")
    call = {"name": "recall", "args": {"query": "parcel"}, "id": "1"}
    told = ToolMessage("user: My parcel is Q1-0.", tool_call_id="1")
    history.add_messages([HumanMessage("My parcel is Q1-0."), AIMessage("I see.")])
    history.add_messages([HumanMessage("Which?"), AIMessage("", tool_calls=[call]), told, AIMessage("That one.")])
    history.add_message(HumanMessage("Where is my parcel?"))

    assert "user: My parcel is Q1-0." == found(recall_tool(history), "parcel", awaited=False)


# ------------------------------------------------------------------ the retriever


def test_a_document_says_where_it_is_from(memory: Any, awaited: bool) -> None:
    """A document has the text, and the place, role, score and session of its message."""
    chat = memory if isinstance(memory, ConversationMemory) else memory.session
    hit = chat.search("cabin number", 1)[0]

    got = documents(SlidingMemoryRetriever(memory=memory, k=1), "cabin number", awaited=awaited)

    expected = {"seq": 2, "role": "user", "score": hit.score, "session": chat.session_id, "segment": None}
    assert [Document(page_content="My cabin is number 214.", metadata=expected)] == got


def test_a_call_may_ask_for_another_number(memory: Any, awaited: bool) -> None:
    """`k` of a call goes before that of the retriever; 0 is refused and not taken for none."""
    retriever = SlidingMemoryRetriever(memory=memory)

    assert 1 == len(documents(retriever, "boathouse", awaited=awaited, k=1))
    with pytest.raises(ConfigurationError, match="k must be"):
        documents(retriever, "boathouse", awaited=awaited, k=0)


# ------------------------------------------------------------------ both


@pytest.mark.parametrize("kind", ["history", "core"])  # a user's own history may take one itself
def test_awaiting_takes_no_thread(kind: str, fresh: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The async ways are async themselves: nothing is handed to a thread."""

    def refuse(*_: Any) -> None:
        raise AssertionError("a thread was started")

    memory = searched(kind, fresh)
    monkeypatch.setattr(threading.Thread, "start", refuse)

    assert "user: My cabin is number 214." in found(recall_tool(memory), "cabin", awaited=True)
    assert documents(SlidingMemoryRetriever(memory=memory), "cabin", awaited=True)


def test_what_is_no_session_is_refused_at_once() -> None:
    """Neither is made of something that cannot be searched."""
    memory: Any = SlideMem(max_tokens=1_000, counter="approximate")

    with pytest.raises(ConfigurationError, match="got SlideMem"):
        recall_tool(memory)
    with pytest.raises(ValidationError):
        SlidingMemoryRetriever(memory=memory)


@pytest.mark.parametrize("k", [0, -1, True, "3", 2.5])
def test_a_number_of_hits_that_is_none_is_refused_at_once(memory: Any, k: Any) -> None:
    """The number is checked when the tool is made, and not when a model calls it."""
    with pytest.raises(ConfigurationError, match="k must be a whole number of 1 or more"):
        recall_tool(memory, k=k)


@pytest.mark.parametrize("k", [0, -1, 2.5])
def test_a_retriever_refuses_it_as_well(memory: Any, k: Any) -> None:
    """The number is checked when the retriever is made."""
    with pytest.raises(ValidationError):
        SlidingMemoryRetriever(memory=memory, k=k)
