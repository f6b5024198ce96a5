# ruff: noqa: FBT001, S106  # a row of a table is one line, and may be a bool; no token here is a password

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from lc_scripted import Echo

from langchain_slidemem import ChatModelConsolidator, SlidingChatMessageHistory, with_sliding_memory
from langchain_slidemem.consolidator import consolidator_of
from slidemem import AsyncOnly, ConfigurationError, Message, Part, SlideMem, SummaryRequest

USAGE = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
NOTES = "Seats 0A and following are booked, PNR-0000."


class Notes(GenericFakeChatModel):
    """A model that writes the same notes each time."""

    messages: Any = None
    asked: Any = None

    def __init__(self, *answers: Any, asked: list[Any] | None = None) -> None:
        super().__init__(messages=iter([*answers, *[AIMessage(NOTES, usage_metadata=USAGE)] * 50]))
        self.asked = asked

    def _generate(self, messages: list[BaseMessage], *given: Any, **more: Any) -> Any:
        if self.asked is not None:
            self.asked.append(messages)
        return super()._generate(messages, *given, **more)


def request(used: list[Any] | None = None) -> SummaryRequest:
    """A request for notes of one message."""
    said = Message("user", (Part("text", "Please book seat 0A."),))
    noted = (lambda read, wrote: used.append((read, wrote))) if used is not None else (lambda read, wrote: None)
    return SummaryRequest((said,), "", 100, count=len, used=noted)


def talk(history: SlidingChatMessageHistory, turns: int = 20) -> None:
    """Add turns."""
    for n in range(turns):
        history.add_messages([HumanMessage(f"Please book seat {n}A to Pune."), AIMessage(f"Booked, PNR-{n:04}.")])


async def atalk(history: SlidingChatMessageHistory, turns: int = 20) -> None:
    """Add turns, awaited."""
    for n in range(turns):
        await history.aadd_messages(
            [HumanMessage(f"Please book seat {n}A to Pune."), AIMessage(f"Booked, PNR-{n:04}.")]
        )


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between tries, which take no time."""
    taken: list[float] = []

    async def nap(seconds: float, *rest: Any) -> None:
        taken.append(seconds)

    monkeypatch.setattr("tenacity.nap.time.sleep", taken.append)
    monkeypatch.setattr("asyncio.sleep", nap)
    return taken


# ------------------------------------------------------------------ a model


@pytest.mark.parametrize("awaited", [False, True])
def test_a_model_writes_the_archive_and_its_usage_is_added(fresh: str, awaited: bool) -> None:
    """Sync and async, the model's notes are the archive, and its provider's counts are in `stats()`."""
    history = SlidingChatMessageHistory(fresh, max_tokens=300, token_counter="approximate", summarizer=Notes())

    if awaited:
        asyncio.run(atalk(history))
    else:
        talk(history)

    stats = history.session.stats()
    assert stats.summarizer_calls > 0
    assert (100, 10) == (
        stats.summarizer_read / stats.summarizer_calls,
        stats.summarizer_wrote / stats.summarizer_calls,
    )


def test_the_model_gets_the_request_as_one_text() -> None:
    """Instructions and conversation are one human message."""
    asked: list[Any] = []

    answer = ChatModelConsolidator(Notes(asked=asked)).summarize(request())

    assert (NOTES, [[HumanMessage(request().prompt)]]) == (answer, asked)


@pytest.mark.parametrize("awaited", [False, True])
def test_a_runnable_writes_as_a_model_does(awaited: bool) -> None:
    """A chain of prompt, model and parser takes the text, and its model's usage counts."""
    chain = ChatPromptTemplate.from_template("{text}") | Notes() | StrOutputParser()
    used: list[Any] = []
    consolidator = ChatModelConsolidator(chain)

    answer = asyncio.run(consolidator.asummarize(request(used))) if awaited else consolidator.summarize(request(used))

    assert (NOTES, [(100, 10)]) == (answer, used)


def test_a_model_that_does_not_say_what_it_used_adds_nothing() -> None:
    """Without usage metadata there is nothing to add up."""
    used: list[Any] = []

    ChatModelConsolidator(RunnableLambda(lambda prompt: NOTES)).summarize(request(used))
    ChatModelConsolidator(Notes(AIMessage(NOTES))).summarize(request(used))

    assert [] == used


def test_only_the_text_of_an_answer_counts() -> None:
    """Reasoning in front of the notes is no part of them."""
    answer = AIMessage([{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": NOTES}])

    assert NOTES == ChatModelConsolidator(RunnableLambda(lambda prompt: answer)).summarize(request())


def test_another_answer_is_none() -> None:
    """What is neither a message nor a text raises, and the core takes it for a refusal."""
    with pytest.raises(TypeError, match="a message or a text, got dict"):
        ChatModelConsolidator(RunnableLambda(lambda prompt: {"notes": NOTES})).summarize(request())


def test_langchain_40725_what_the_model_must_not_see_is_taken_out() -> None:
    """langchain#40725: redaction comes before the summary, so that the model never reads it."""
    asked: list[Any] = []

    ChatModelConsolidator(Notes(asked=asked), redact=lambda text: text.replace("0A", "[seat]")).summarize(request())

    assert (True, False) == ("seat [seat]" in asked[0][0].text, "0A" in asked[0][0].text)


class Heard(BaseCallbackHandler):
    """Keeps name, tags and metadata of the runs."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, list[str]]] = []

    def on_chat_model_start(self, serialized: Any, messages: Any, *, tags: Any = None, **more: Any) -> None:
        """Keep them."""
        self.runs.append((more["name"], [tag for tag in tags if not tag.startswith("seq:")]))


def test_its_runs_have_a_name_and_tags() -> None:
    """A tracer can tell summaries from answers, and LangGraph keeps them out of its message stream."""
    heard = Heard()

    ChatModelConsolidator(Notes(), retries=0, tags=["mine"], callbacks=[heard]).summarize(request())

    assert [("slidemem_summary", ["slidemem", "nostream", "mine"])] == heard.runs


@pytest.mark.parametrize("mode", ["astream", "astream_events"])
def test_deepagentsjs_629_no_token_of_a_summary_is_in_the_stream(fresh: str, mode: str) -> None:
    """deepagentsjs#629: what streams is the answer, though the summary is written in the same run."""
    mem = SlideMem(max_tokens=400, counter="approximate", consolidator=ChatModelConsolidator(Notes()))
    chain = RunnableLambda(lambda text: text) | with_sliding_memory(Echo(), mem)
    config: Any = {"configurable": {"session_id": fresh}}

    async def listen() -> str:
        heard = ""
        for n in range(25):
            text = f"Please book seat {n}A to Pune."
            if mode == "astream":
                heard += "".join([chunk.text async for chunk in chain.astream(text, config)])
            else:
                events = [event async for event in chain.astream_events(text, config, version="v2")]
                heard += str(
                    [event["data"].get("chunk") for event in events if event["event"].startswith("on_chat_model")]
                )
        return heard

    heard = asyncio.run(listen())

    assert (False, True) == ("PNR-0000" in heard, "PNR-0000" in str(mem.session(fresh).archive()))


# ------------------------------------------------------------------ tries and time


@pytest.mark.parametrize("awaited", [False, True])
def test_a_failure_is_tried_again(naps: list[float], awaited: bool) -> None:
    """One failure is a pause and another try."""
    calls: list[str] = []

    def flaky(prompt: str) -> str:
        calls.append(prompt)
        if len(calls) == 1:
            raise ConnectionError
        return NOTES

    consolidator = ChatModelConsolidator(RunnableLambda(flaky), timeout=None)
    answer = asyncio.run(consolidator.asummarize(request())) if awaited else consolidator.summarize(request())

    assert (NOTES, 2, 1) == (answer, len(calls), len(naps))


def test_a_model_that_stays_dead_raises(naps: list[float]) -> None:
    """After the last try the fault is the core's to deal with: the user's turn goes on."""

    def dead(prompt: str) -> str:
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        ChatModelConsolidator(RunnableLambda(dead), retries=2).summarize(request())
    assert 2 == len(naps)


def test_a_sync_call_that_takes_too_long_is_left_alone() -> None:
    """The caller goes on after the time-out, while the call ends in its thread."""
    gate, ended = threading.Event(), threading.Event()

    def slow(prompt: str) -> str:
        gate.wait(30)
        ended.set()
        return NOTES

    with pytest.raises(TimeoutError, match=r"no summary within 0\.01 seconds"):
        ChatModelConsolidator(RunnableLambda(slow), timeout=0.01).summarize(request())
    gate.set()

    assert ended.wait(30)


def test_an_async_call_that_takes_too_long_is_cancelled() -> None:
    """Awaited, the call itself ends at the time-out."""
    ended: list[str] = []

    async def slow(prompt: str) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return NOTES

    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(ChatModelConsolidator(RunnableLambda(slow), timeout=0.01).asummarize(request()))
    assert ["cancelled"] == ended


@pytest.mark.parametrize("given", [{"model": 7}, {"timeout": 0}, {"retries": -1}])
def test_a_wrong_argument_raises_when_it_is_made(given: dict[str, Any]) -> None:
    """A model that is none, no time, or fewer tries than one."""
    with pytest.raises(ConfigurationError):
        ChatModelConsolidator(**{"model": Notes(), **given})


# ------------------------------------------------------------------ a function


def test_a_function_is_called_on_a_thread(fresh: str) -> None:
    """A slow function holds neither an event loop nor a sync caller; it gets LangChain's messages."""
    seen: list[tuple[str, bool]] = []

    def summarize(messages: list[BaseMessage]) -> str:
        seen.append((threading.current_thread().name, all(isinstance(one, BaseMessage) for one in messages)))
        return messages[0].text

    history = SlidingChatMessageHistory(fresh, max_tokens=300, token_counter="approximate", summarizer=summarize)

    asyncio.run(atalk(history))
    awaited = len(seen)
    talk(history)

    assert {True} == {whole for _, whole in seen}
    assert "MainThread" not in {name for name, _ in seen}
    assert 0 < awaited < len(seen)


def test_an_async_function_has_to_be_awaited(fresh: str) -> None:
    """A sync caller is told so before anything is stored."""

    async def summarize(messages: list[BaseMessage]) -> str:
        return NOTES

    history = SlidingChatMessageHistory(fresh, max_tokens=300, token_counter="approximate", summarizer=summarize)

    with pytest.raises(AsyncOnly):
        history.add_user_message("hi")
    asyncio.run(atalk(history, 12))

    assert 24 == len(history.transcript)
    assert "summarizer" in {segment.method for segment in history.session.archive()}


def test_a_function_that_returns_an_awaitable_has_to_be_awaited() -> None:
    """Whatever it returns, a sync call gets no coroutine for a summary."""

    async def later() -> str:
        return NOTES

    class Awaitable:
        def __await__(self) -> Any:
            return later().__await__()

    for make in (lambda messages: later(), lambda messages: Awaitable()):
        consolidator = consolidator_of(make)
        with pytest.raises(AsyncOnly):
            consolidator.summarize(request())
        assert NOTES == asyncio.run(consolidator.asummarize(request()))
