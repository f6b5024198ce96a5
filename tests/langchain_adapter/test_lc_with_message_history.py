# ruff: noqa: E501, S106  # a row of a table is one line; no token here is a password

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import count
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough
from langchain_core.runnables.history import RunnableWithMessageHistory
from lc_scripted import Echo, Meeting, faults

from langchain_slidemem import SlidingChatMessageHistory

pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.deprecation.LangChainDeprecationWarning")

PROMPT = ChatPromptTemplate.from_messages(
    [("system", "Be brief."), MessagesPlaceholder("history"), ("human", "{question}")]
)
TAKE_MESSAGES: Runnable[Any, Any] = RunnableLambda(lambda given: given["messages"])
NAMED: Runnable[Any, Any] = RunnableLambda(lambda answer: {"answer": answer, "sources": []})


def whole(model: Echo) -> Runnable[Any, Any]:
    """Answers with the whole list, as agents do: every message has an id by then."""
    numbers = count()

    def agent(given: dict[str, Any]) -> dict[str, Any]:
        for message in given["messages"]:
            message.id = message.id or f"id-{id(given)}-{next(numbers)}"
        return {"messages": [*given["messages"], model.invoke(given["messages"])]}

    async def aagent(given: dict[str, Any]) -> dict[str, Any]:
        for message in given["messages"]:
            message.id = message.id or f"id-{id(given)}-{next(numbers)}"
        return {"messages": [*given["messages"], await model.ainvoke(given["messages"])]}

    return RunnableLambda(agent, aagent)


def whole_list(model: Echo) -> Runnable[Any, Any]:
    """Answers with the list that it was given and its answer, without ids."""

    async def aadd(given: list[BaseMessage]) -> list[BaseMessage]:
        return [*given, await model.ainvoke(given)]

    return RunnableLambda(lambda given: [*given, model.invoke(given)], aadd)


Shape = tuple[Callable[[Echo], Runnable[Any, Any]], dict[str, str], Callable[[str], Any]]
SHAPES: dict[str, Shape] = {
    "list": (lambda model: model, {}, lambda text: [HumanMessage(text)]),
    "list, text out": (lambda model: model | StrOutputParser(), {}, lambda text: [HumanMessage(text)]),
    "message": (lambda model: model, {}, HumanMessage),
    "text": (lambda model: model, {}, lambda text: text),
    "list, dict out": (lambda model: model | NAMED, {"output_messages_key": "answer"}, lambda text: [HumanMessage(text)]),
    "input key": (
        lambda model: TAKE_MESSAGES | model,
        {"input_messages_key": "messages"},
        lambda text: {"messages": [HumanMessage(text)], "more": 1},
    ),
    "input and output key": (
        lambda model: TAKE_MESSAGES | model | NAMED,
        {"input_messages_key": "messages", "output_messages_key": "answer"},
        lambda text: {"messages": text},
    ),
    "input and history key": (
        lambda model: PROMPT | model,
        {"input_messages_key": "question", "history_messages_key": "history"},
        lambda text: {"question": text},
    ),
    "input and history key, text out": (
        lambda model: PROMPT | model | StrOutputParser(),
        {"input_messages_key": "question", "history_messages_key": "history"},
        lambda text: {"question": text},
    ),
    "all keys": (
        lambda model: PROMPT | model | NAMED,
        {"input_messages_key": "question", "history_messages_key": "history", "output_messages_key": "answer"},
        lambda text: {"question": text},
    ),
    "all keys, the input passed on": (
        lambda model: RunnablePassthrough.assign(answer=PROMPT | model),
        {"input_messages_key": "question", "history_messages_key": "history", "output_messages_key": "answer"},
        lambda text: {"question": text},
    ),
    "agent": (
        whole,
        {"input_messages_key": "messages", "output_messages_key": "messages"},
        lambda text: {"messages": [HumanMessage(text)]},
    ),
    "whole list": (whole_list, {}, lambda text: [HumanMessage(text)]),
}  # fmt: skip

SYNC = ["invoke", "batch", "stream"]
ASYNC = ["ainvoke", "abatch", "astream", "astream_events"]
MODES = [*SYNC, *ASYNC]


class Bench:
    """A runnable with history over a session that has been consolidated already."""

    def __init__(
        self,
        session: str,
        shape: str,
        meeting: Meeting | None = None,
        *,
        fails: bool = False,
        turns: int = 12,
        kept: bool = False,
    ) -> None:
        build, keys, self._given = SHAPES[shape]
        self.model = Echo(meeting=meeting, fails=fails)
        self.made = 0
        self.session = session
        self.kept = self.view() if kept else None
        self.runnable = RunnableWithMessageHistory(build(self.model), self._history, **keys)
        self.before = [
            message
            for n in range(turns)
            for message in (HumanMessage(f"question {n} of the day"), AIMessage(f"re: question {n} of the day"))
        ]
        self.view().add_messages(self.before)
        self.before = self.view().transcript

    def view(self) -> SlidingChatMessageHistory:
        """A history of the session, as any process would make one."""
        return SlidingChatMessageHistory(self.session, max_tokens=250, token_counter="approximate")

    def _history(self, session_id: str) -> SlidingChatMessageHistory:
        self.made += 1
        return self.kept or self.view()

    @property
    def config(self) -> Any:
        """For a run."""
        return {"configurable": {"session_id": self.session}, "max_concurrency": 8}

    def run(self, mode: str, texts: list[str]) -> None:
        """Run on all texts at once."""
        given = [self._given(text) for text in texts]
        if mode == "batch":
            self.runnable.batch(given, self.config)
        elif mode in SYNC:
            with ThreadPoolExecutor(len(given)) as threads:
                list(threads.map(lambda one: self._one(mode, one), given))
        else:
            asyncio.run(self._all(mode, given))

    def _one(self, mode: str, given: Any) -> None:
        if mode == "invoke":
            self.runnable.invoke(given, self.config)
        else:
            list(self.runnable.stream(given, self.config))

    async def _all(self, mode: str, given: list[Any]) -> None:
        if mode == "abatch":
            await self.runnable.abatch(given, self.config)
        else:
            await asyncio.gather(*(self._aone(mode, one) for one in given))

    async def _aone(self, mode: str, given: Any) -> None:
        if mode == "ainvoke":
            await self.runnable.ainvoke(given, self.config)
        elif mode == "astream":
            [chunk async for chunk in self.runnable.astream(given, self.config)]
        else:
            [event async for event in self.runnable.astream_events(given, self.config, version="v2")]

    def close_early(self, mode: str, text: str) -> None:
        """Take one chunk of a stream and close it."""
        if mode == "stream":
            stream = self.runnable.stream(self._given(text), self.config)
            next(stream)
            stream.close()  # type: ignore[attr-defined]
            return

        async def close() -> None:
            streams = {"astream": self.runnable.astream, "astream_events": self.runnable.astream_events}
            stream: Any = streams[mode](self._given(text), self.config)
            await stream.__anext__()
            await stream.aclose()

        asyncio.run(close())

    def added(self) -> list[str]:
        """What the transcript has beyond what was there before, as text."""
        now = self.view().transcript
        assert self.before == now[: len(self.before)]
        return [f"{message.type}: {message.text}" for message in now[len(self.before) :]]


def pair(text: str) -> list[str]:
    """A question and its answer in the transcript."""
    return [f"human: {text}", f"ai: re: {text}"]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", MODES)
def test_runs_one_after_another_store_each_turn_once(fresh: str, shape: str, mode: str) -> None:
    """Three runs on a session that is consolidated between them store three questions and answers."""
    bench = Bench(fresh, shape)

    for text in ("what now?", "and then " * 12, "at last"):
        bench.run(mode, [text.strip()])

    assert [*pair("what now?"), *pair(("and then " * 12).strip()), *pair("at last")] == bench.added()
    assert [[]] * 3 == [faults(messages) for messages in bench.model.seen]
    assert 3 == bench.made
    assert {AIMessage, HumanMessage} == {type(message) for message in bench.view().transcript}


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", MODES)
def test_eight_runs_at_once_store_each_turn_once(fresh: str, shape: str, mode: str, *, kept: bool) -> None:
    """Eight runs that all read before any has written store eight pairs, whatever the session became meanwhile."""
    bench = Bench(fresh, shape, Meeting(8), kept=kept)
    texts = [f"number {n} {'please ' * n}".strip() for n in range(8)]

    bench.run(mode, texts)

    added = bench.added()
    assert sorted(tuple(pair(text)) for text in texts) == sorted(zip(added[::2], added[1::2], strict=True))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", MODES)
def test_a_run_that_raises_leaves_the_session_as_it_was(fresh: str, shape: str, mode: str) -> None:
    """A failing chain stores nothing, and the next run is right."""
    bench = Bench(fresh, shape, fails=True)

    with pytest.raises(ConnectionError):
        bench.run(mode, ["what now?"])
    bench.model.fails = False
    bench.run(mode, ["again"])

    assert pair("again") == bench.added()


@pytest.mark.parametrize("shape", [name for name in SHAPES if name not in {"agent", "whole list"}])
@pytest.mark.parametrize("mode", ["stream", "astream", "astream_events"])
def test_a_stream_that_is_closed_early_tears_nothing(fresh: str, shape: str, mode: str) -> None:
    """`RunnableWithMessageHistory` stores nothing of a stream that was closed early; the next run is right."""
    bench = Bench(fresh, shape)

    bench.close_early(mode, "what now?")
    bench.run(mode, ["again"])

    assert pair("again") == bench.added()


@pytest.mark.parametrize("shape", ["agent", "whole list"])
@pytest.mark.parametrize("mode", MODES)
def test_the_first_turn_of_an_agent_is_stored_once(fresh: str, shape: str, mode: str) -> None:
    """In a session that has nothing yet, a list that begins with the question says it once."""
    bench = Bench(fresh, shape, turns=0)

    bench.run(mode, ["what now?"])
    bench.run(mode, ["what now?"])

    assert [*pair("what now?"), *pair("what now?")] == bench.added()


def test_two_equal_questions_are_two(fresh: str) -> None:
    """What was said twice in one input, by two messages without ids, is no repetition of ours."""
    bench = Bench(fresh, "list", turns=0)

    bench.runnable.invoke([HumanMessage("hello?"), HumanMessage("hello?")], bench.config)

    assert ["human: hello?", *pair("hello?")] == bench.added()


def test_a_history_that_is_kept_is_right_for_one_run_after_another(fresh: str) -> None:
    """A factory that hands out one object again and again works while runs do not overlap, failures included."""
    model = Echo()
    kept = SlidingChatMessageHistory(fresh, max_tokens=250, token_counter="approximate")
    runnable = RunnableWithMessageHistory(model, lambda session_id: kept)
    config: Any = {"configurable": {"session_id": fresh}}

    for n in range(12):
        model.fails = n % 3 == 2
        try:
            runnable.invoke(f"question {n}", config)
        except ConnectionError:
            continue

    assert [text for n in range(12) if n % 3 != 2 for text in pair(f"question {n}")] == [
        f"{message.type}: {message.text}" for message in kept.transcript
    ]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", ASYNC)
def test_without_a_context_in_tasks_runs_at_once_are_right(
    fresh: str, shape: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Python 3.10 a task has no context of its own run: two runs that read at the same time store two pairs."""
    monkeypatch.setattr("langchain_core.runnables.utils.asyncio_accepts_context", lambda: False)
    bench = Bench(fresh, shape, Meeting(2), kept=True)

    bench.run(mode, ["what now?", "and then?"])

    assert sorted([*pair("what now?"), *pair("and then?")]) == sorted(bench.added())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("inner", ["none", "ends", "raises"])
def test_runs_within_runs_on_a_kept_history(fresh: str, shape: str, inner: str) -> None:
    """Runs that read at different lengths of a session, and end in any order or never, store each turn once."""
    build, keys, given = SHAPES[shape]
    kept = SlidingChatMessageHistory(fresh, max_tokens=250, token_counter="approximate")
    said: list[str] = []
    model = Echo()

    def on_the_way(value: Any) -> Any:
        if not said:
            said.append("begun")
            kept.add_messages([HumanMessage("meanwhile"), AIMessage("re: meanwhile")])
            model.fails = inner == "raises"
            with pytest.raises(ConnectionError) if model.fails else nullcontext():
                if inner != "none":
                    runnable.invoke(given("inner"), config)
            model.fails = False
        return value

    config: Any = {"configurable": {"session_id": fresh}}
    runnable = RunnableWithMessageHistory(RunnableLambda(on_the_way) | build(model), lambda session_id: kept, **keys)
    runnable.invoke(given("outer"), config)
    runnable.invoke(given("last"), config)

    between = pair("inner") if inner == "ends" else []
    assert [*pair("meanwhile"), *between, *pair("outer"), *pair("last")] == [
        f"{message.type}: {message.text}" for message in kept.transcript
    ]


@pytest.mark.parametrize(
    "shape", [name for name, (_, keys, _) in SHAPES.items() if "history_messages_key" not in keys]
)
def test_a_run_that_ends_before_an_earlier_one_on_a_kept_history(fresh: str, shape: str) -> None:
    """What a later run was given beyond the earlier one's is not said again, though that one has not ended."""
    build, keys, given = SHAPES[shape]
    kept = SlidingChatMessageHistory(fresh, max_tokens=250, token_counter="approximate")
    model = Echo(fails=True)
    runnable = RunnableWithMessageHistory(build(model), lambda session_id: kept, **keys)
    config: Any = {"configurable": {"session_id": fresh}}
    with pytest.raises(ConnectionError):
        runnable.invoke(given("never heard of"), config)
    kept.add_messages([HumanMessage("meanwhile"), AIMessage("re: meanwhile")])
    model.fails = False

    runnable.invoke(given("meanwhile"), config)

    assert [*pair("meanwhile"), *pair("meanwhile")] == [f"{one.type}: {one.text}" for one in kept.transcript]


def test_after_a_run_that_raised_the_next_one_reads_anew(fresh: str) -> None:
    """A history that is kept shows what others added since a failed run."""
    kept = SlidingChatMessageHistory(fresh, max_tokens=250, token_counter="approximate")
    model = Echo(fails=True)
    runnable = RunnableWithMessageHistory(model, lambda session_id: kept)
    config: Any = {"configurable": {"session_id": fresh}}
    with pytest.raises(ConnectionError):
        runnable.invoke("never heard of", config)
    model.fails = False
    SlidingChatMessageHistory(fresh, max_tokens=250, token_counter="approximate").add_user_message("from elsewhere")

    runnable.invoke("hi", config)

    assert ["from elsewhere", "hi"] == [message.text for message in model.seen[-1]]
    assert ["from elsewhere", "hi", "re: hi"] == [message.text for message in kept.transcript]


def test_an_end_without_a_beginning_stores_what_it_is_given(fresh: str) -> None:
    """A history that takes the place of the one that a run began with stores all of the run's messages."""
    began = SlidingChatMessageHistory(fresh, max_tokens=250, token_counter="approximate")
    ended = SlidingChatMessageHistory(fresh, max_tokens=250, token_counter="approximate")

    class Fickle:
        """Reads with one history, and stores with another."""

        @property
        def messages(self) -> list[BaseMessage]:
            return began.messages

        def add_messages(self, messages: list[BaseMessage]) -> None:
            ended.add_messages(messages)

    runnable = RunnableWithMessageHistory(Echo(), lambda session_id: Fickle())  # type: ignore[arg-type,return-value]
    runnable.invoke("hi", {"configurable": {"session_id": fresh}})

    assert pair("hi") == [f"{message.type}: {message.text}" for message in ended.transcript]


def test_a_history_inside_another_one_is_told_who_reads(fresh: str) -> None:
    """A subclass, and a class that hands on to ours, store each turn once."""

    class Mine(SlidingChatMessageHistory):
        """A user's."""

        @property
        def messages(self) -> list[BaseMessage]:  # type: ignore[override]
            return super().messages

        def add_messages(self, messages: Any) -> None:
            super().add_messages(messages)

    kept = Mine(fresh, max_tokens=250, token_counter="approximate")
    runnable = RunnableWithMessageHistory(Echo(), lambda session_id: kept)

    for n in range(12):
        runnable.invoke(f"question {n}", {"configurable": {"session_id": fresh}})

    assert [text for n in range(12) for text in pair(f"question {n}")] == [
        f"{message.type}: {message.text}" for message in kept.transcript
    ]


def test_reading_inside_of_a_run_is_always_up_to_date(fresh: str) -> None:
    """Only what a run's beginning has read stays for its end."""
    seen: list[int] = []
    kept = SlidingChatMessageHistory(fresh, max_tokens=250, token_counter="approximate")
    other = SlidingChatMessageHistory(fresh, max_tokens=250, token_counter="approximate")

    def chain(messages: list[BaseMessage]) -> str:
        other.add_user_message("from elsewhere")
        seen.extend([len(messages), len(kept.messages), len(other.messages)])
        return "done"

    runnable = RunnableWithMessageHistory(RunnableLambda(chain), lambda session_id: kept)
    runnable.invoke("hi", {"configurable": {"session_id": fresh}})

    assert [1, 1, 1] == seen
    assert ["from elsewhere", "hi", "done"] == [message.text for message in kept.messages]


def test_a_save_that_fails_is_only_logged_by_langchain(fresh: str, caplog: pytest.LogCaptureFixture) -> None:
    """Upstream swallows what a history raises at the end of a run: `with_sliding_memory` does not."""

    def chain(messages: list[BaseMessage]) -> AIMessage:
        return AIMessage("hi", response_metadata={"at": object()})

    view = SlidingChatMessageHistory(fresh, max_tokens=250, token_counter="approximate")
    runnable = RunnableWithMessageHistory(RunnableLambda(chain), lambda session_id: view)

    assert "hi" == runnable.invoke("hello", {"configurable": {"session_id": fresh}}).content
    assert [] == view.transcript
    assert "InvalidMessage" in caplog.text
