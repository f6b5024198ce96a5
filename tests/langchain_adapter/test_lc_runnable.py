# ruff: noqa: E501, S106  # a row of a table is one line; no token here is a password

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import ConfigurableFieldSpec, Runnable, RunnableGenerator, RunnableLambda
from lc_scripted import Echo, Meeting, faults
from test_lc_with_message_history import MODES, NAMED, SHAPES, SYNC, pair

from langchain_slidemem import (
    LangChainCodec,
    RunnableWithSlidingMemory,
    SlidingChatMessageHistory,
    with_sliding_memory,
)
from langchain_slidemem.surely import surely
from slidemem import BudgetTooSmall, ConfigurationError, InvalidMessage, SlideMem

LIMIT = 250
CODEC = LangChainCodec()


class Bench:
    """A runnable with memory over a session that has been consolidated already."""

    def __init__(
        self,
        session: str,
        shape: str = "list",
        meeting: Meeting | None = None,
        *,
        fails: bool = False,
        turns: int = 12,
        build: Callable[[Echo], Any] | None = None,
        **given: Any,
    ) -> None:
        make, keys, self._given = SHAPES[shape]
        self.model = Echo(meeting=meeting, fails=fails)
        self.session = session
        self.mem = SlideMem(max_tokens=LIMIT, counter="approximate")
        self.runnable = with_sliding_memory((build or make)(self.model), self.mem, **keys, **given)
        said = [
            message
            for n in range(turns)
            for message in (HumanMessage(f"question {n} of the day"), AIMessage(f"re: question {n} of the day"))
        ]
        self.view().add_messages(said)
        self.before = self.view().transcript

    def view(self) -> SlidingChatMessageHistory:
        """A history of the session."""
        return SlidingChatMessageHistory(self.session, memory=self.mem)

    @property
    def config(self) -> Any:
        """For a run."""
        return {"configurable": {"session_id": self.session}, "max_concurrency": 8}

    def run(self, mode: str, texts: list[str]) -> list[Any]:
        """Run on all texts at once; what each run gave."""
        given = [self._given(text) for text in texts]
        if mode == "batch":
            return self.runnable.batch(given, self.config)
        if mode in SYNC:
            with ThreadPoolExecutor(len(given)) as threads:
                return list(threads.map(lambda one: self._one(mode, one), given))
        return asyncio.run(self._all(mode, given))

    def _one(self, mode: str, given: Any) -> Any:
        if mode == "invoke":
            return self.runnable.invoke(given, self.config)
        return list(self.runnable.stream(given, self.config))

    async def _all(self, mode: str, given: list[Any]) -> list[Any]:
        if mode == "abatch":
            return await self.runnable.abatch(given, self.config)
        return list(await asyncio.gather(*(self._aone(mode, one) for one in given)))

    async def _aone(self, mode: str, given: Any) -> Any:
        if mode == "ainvoke":
            return await self.runnable.ainvoke(given, self.config)
        if mode == "astream":
            return [chunk async for chunk in self.runnable.astream(given, self.config)]
        return [event async for event in self.runnable.astream_events(given, self.config, version="v2")]

    def added(self) -> list[str]:
        """What the transcript has beyond what was there before, as text."""
        now = self.view().transcript
        assert self.before == now[: len(self.before)]
        return [f"{message.type}: {message.text}" for message in now[len(self.before) :]]


# ------------------------------------------------------------------ every mode


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", MODES)
def test_runs_one_after_another_store_each_turn_once(fresh: str, shape: str, mode: str) -> None:
    """Each question and answer is stored once, and what the model sees is valid and within the budget with it."""
    bench = Bench(fresh, shape)

    for text in ("what now?", "and then " * 12, "at last"):
        bench.run(mode, [text.strip()])

    assert [*pair("what now?"), *pair(("and then " * 12).strip()), *pair("at last")] == bench.added()
    assert [[]] * 3 == [faults(messages) for messages in bench.model.seen]
    assert LIMIT >= max(
        sum(bench.mem.count(CODEC.encode(message)) for message in messages if message.type != "system")
        for messages in bench.model.seen
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", MODES)
def test_eight_runs_at_once_store_each_turn_once(fresh: str, shape: str, mode: str) -> None:
    """Eight runs that all read before any has written store eight pairs."""
    bench = Bench(fresh, shape, Meeting(8))
    texts = [f"number {n} {'please ' * n}".strip() for n in range(8)]

    bench.run(mode, texts)

    added = bench.added()
    assert sorted(tuple(pair(text)) for text in texts) == sorted(zip(added[::2], added[1::2], strict=True))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", MODES)
def test_what_the_user_said_is_kept_when_the_chain_fails(fresh: str, shape: str, mode: str) -> None:
    """A failing run raises its own fault and stores the question; asked again, it stands once."""
    bench = Bench(fresh, shape, fails=True)

    with pytest.raises(ConnectionError):
        bench.run(mode, ["what now?"])
    kept = bench.added()
    bench.model.fails = False
    bench.run(mode, ["what now?"])
    bench.run(mode, ["again"])

    assert (["human: what now?"], [*pair("what now?"), *pair("again")]) == (kept, bench.added())
    assert [[]] * 3 == [faults(messages) for messages in bench.model.seen]


@pytest.mark.parametrize("mode", MODES)
def test_a_failed_chain_stores_nothing_where_that_is_not_wanted(fresh: str, mode: str) -> None:
    """`save_on_error=False` leaves the session as it was."""
    bench = Bench(fresh, fails=True, save_on_error=False)

    with pytest.raises(ConnectionError):
        bench.run(mode, ["what now?"])

    assert [] == bench.added()


# ------------------------------------------------------------------ closed early, cancelled


@pytest.mark.parametrize("shape", ["list", "input and history key", "input key", "list, text out"])
def test_a_stream_closed_early_has_stored_the_reply_so_far(fresh: str, shape: str) -> None:
    """When `close()` returns, question and first chunk are in the transcript."""
    bench = Bench(fresh, shape)
    stream: Any = bench.runnable.stream(bench._given("what now?"), bench.config)

    next(stream)
    stream.close()

    assert ["human: what now?", "ai: re:"] == bench.added()


@pytest.mark.parametrize("shape", ["list", "input and history key", "input key", "list, text out"])
def test_an_async_stream_closed_early_has_stored_the_reply_so_far(fresh: str, shape: str) -> None:
    """When `aclose()` returns, question and first chunk are in the transcript."""
    bench = Bench(fresh, shape)

    async def close() -> list[str]:
        stream: Any = bench.runnable.astream(bench._given("what now?"), bench.config)
        await stream.__anext__()
        await stream.aclose()
        return bench.added()

    assert ["human: what now?", "ai: re:"] == asyncio.run(close())


def test_a_stream_closed_before_its_answer_stores_the_question(fresh: str) -> None:
    """A dict whose answer is still to come says nothing yet."""
    bench = Bench(fresh, "all keys, the input passed on")
    stream: Any = bench.runnable.stream({"question": "what now?"}, bench.config)

    assert {"question": "what now?"} == {key: value for key, value in next(stream).items() if key == "question"}
    stream.close()

    assert ["human: what now?"] == bench.added()


def test_a_stream_never_begun_stores_nothing(fresh: str) -> None:
    """Making a stream does nothing."""
    bench = Bench(fresh)

    bench.runnable.stream([HumanMessage("what now?")], bench.config).close()  # type: ignore[attr-defined]

    assert [] == bench.added()


@pytest.mark.parametrize("times", [1, 3])
def test_a_cancelled_stream_has_stored_the_reply_so_far(fresh: str, times: int) -> None:
    """A task that is cancelled, once or again and again, has stored what was heard when it ends."""
    bench = Bench(fresh)
    heard = asyncio.Event

    async def listen(event: asyncio.Event) -> None:
        async for _ in bench.runnable.astream([HumanMessage("what now?")], bench.config):
            event.set()
            await asyncio.Event().wait()

    async def cancel() -> None:
        event = heard()
        task = asyncio.create_task(listen(event))
        await event.wait()
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())

    assert ["human: what now?", "ai: re:"] == bench.added()


def test_a_cancelled_run_keeps_the_question(fresh: str) -> None:
    """A call that is cancelled while the model works has stored what was asked."""
    bench = Bench(fresh, meeting=Meeting(2))

    async def cancel() -> None:
        task = asyncio.create_task(bench.runnable.ainvoke([HumanMessage("what now?")], bench.config))
        await bench.model.meeting.begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())

    assert ["human: what now?"] == bench.added()


def test_an_interrupted_run_keeps_the_question(fresh: str) -> None:
    """Ctrl-C in a sync run loses nothing that was said."""

    def interrupted(messages: list[BaseMessage]) -> str:
        raise KeyboardInterrupt

    bench = Bench(fresh, build=lambda model: RunnableLambda(interrupted))

    with pytest.raises(KeyboardInterrupt):
        bench.runnable.invoke("what now?", bench.config)

    assert ["human: what now?"] == bench.added()


@pytest.mark.parametrize("times", [0, 1, 5])
def test_what_is_done_surely_is_done_whatever_is_cancelled(times: int) -> None:
    """The work ends, and the cancellation is raised after it."""
    done: list[str] = []

    async def work(gate: asyncio.Event) -> None:
        await gate.wait()
        done.append("stored")

    async def main() -> None:
        gate = asyncio.Event()
        task = asyncio.create_task(surely(work(gate)))
        await asyncio.sleep(0)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert not task.done()
        gate.set()
        if times:
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            await task

    asyncio.run(main())

    assert ["stored"] == done


# ------------------------------------------------------------------ saves that fail


class Broken:
    """A factory of histories that store nothing, and raise."""

    def __init__(self, session: str) -> None:
        self.session = session

    def __call__(self, session_id: str) -> SlidingChatMessageHistory:
        """A history whose memory is full."""

        class Full(SlidingChatMessageHistory):
            def add_messages(self, messages: Any) -> None:
                raise OSError("no space")

            async def aadd_messages(self, messages: Any) -> None:
                raise OSError("no space")

        return Full(self.session, max_tokens=LIMIT, token_counter="approximate")


@pytest.mark.parametrize("mode", MODES)
def test_a_failed_save_reaches_the_caller(fresh: str, mode: str) -> None:
    """An answer that could not be stored is no success, in any mode."""
    bench = Bench(fresh)
    bench.runnable = with_sliding_memory(bench.model, Broken(fresh))

    with pytest.raises(OSError, match="no space"):
        bench.run(mode, ["what now?"])


def test_a_failed_save_of_a_failed_run_is_told(fresh: str, caplog: pytest.LogCaptureFixture) -> None:
    """The run's own fault is the one that its caller sees."""
    runnable = with_sliding_memory(Echo(fails=True), Broken(fresh))

    with caplog.at_level(logging.WARNING), pytest.raises(ConnectionError):
        runnable.invoke("hi", {"configurable": {"session_id": fresh}})

    assert "could not be stored when its run failed: OSError: no space" in caplog.text


@pytest.mark.parametrize(
    "answer", [7, {"a": "x", "b": "y"}, ["x"], AIMessage("x", response_metadata={"at": object()})]
)
def test_an_answer_that_cannot_be_stored_reaches_the_caller(fresh: str, answer: Any) -> None:
    """What holds no message raises, and the question is kept."""
    bench = Bench(fresh, build=lambda model: RunnableLambda(lambda messages: answer))

    with pytest.raises((ConfigurationError, InvalidMessage)):
        bench.runnable.invoke("what now?", bench.config)

    assert ["human: what now?"] == bench.added()


# ------------------------------------------------------------------ the input is pending


def test_the_input_is_inside_the_budget(fresh: str) -> None:
    """Window, archive and a large input together stay within the limit."""
    bench = Bench(fresh)

    bench.runnable.invoke("word " * 100, bench.config)

    given = bench.model.seen[0]
    tokens = sum(bench.mem.count(message) for message in map(CODEC.encode, given))
    assert LIMIT >= tokens
    assert 1 < len(given)


def test_an_input_that_cannot_fit_raises_and_is_kept(fresh: str) -> None:
    """Input messages that are larger than the budget together are refused with the numbers, and stored."""
    bench = Bench(fresh)

    with pytest.raises(BudgetTooSmall):
        bench.runnable.invoke([HumanMessage("word " * 80)] * 5, bench.config)

    assert [f"human: {'word ' * 80}"] * 5 == bench.added()
    assert [] == bench.model.seen


@pytest.mark.parametrize("shape", SHAPES)
def test_an_oversize_input_is_sent_head_and_tail(fresh: str, shape: str) -> None:
    """A paste is cut as the window will show it, in whatever form it was given, and kept whole."""
    bench = Bench(fresh, shape)

    bench.run("invoke", ["word " * 1000 + "so what?"])

    (first,) = bench.model.seen
    assert "characters left out" in first[-1].text
    assert first[-1].text.endswith("so what?")
    assert f"human: {'word ' * 1000}so what?" == bench.added()[0]
    assert LIMIT >= sum(bench.mem.count(CODEC.encode(message)) for message in first if message.type != "system")


def test_an_oversize_message_is_cut_as_a_message(fresh: str) -> None:
    """Under its key, one message stays a message where the runnable has a place for the history."""
    bench = Bench(
        fresh, build=lambda model: RunnableLambda(lambda given: [*given["history"], given["asked"]]) | model
    )
    chain = with_sliding_memory(
        bench.runnable.bound, bench.mem, input_messages_key="asked", history_messages_key="history"
    )

    chain.invoke({"asked": HumanMessage("word " * 1000)}, bench.config)

    assert "characters left out" in bench.model.seen[0][-1].text
    assert f"human: {'word ' * 1000}" == bench.added()[0]


def test_an_input_that_no_provider_takes_is_mended(fresh: str) -> None:
    """Half of a surrogate pair is not sent, and is in the transcript as it came."""
    bench = Bench(fresh)

    bench.runnable.invoke([HumanMessage("half \ud800")], bench.config)

    assert "half \ufffd" == bench.model.seen[0][-1].text
    assert "human: half \ud800" == bench.added()[0]


@pytest.mark.parametrize("shape", ["list", "text", "input key", "input and history key"])
def test_an_unanswered_question_is_joined_to_the_next_one(fresh: str, shape: str) -> None:
    """With `alternate` nobody is sent two user messages in a row, for the input's sake neither."""
    bench = Bench(fresh, shape)
    memory = SlideMem(max_tokens=LIMIT, counter="approximate", store=bench.mem.store, alternate=True)
    _, keys, given = SHAPES[shape]
    chain = with_sliding_memory(bench.runnable.bound, memory, **keys)
    bench.view().add_messages([HumanMessage("are you there?")])

    chain.invoke(given("what now?"), bench.config)

    sent = [message for message in bench.model.seen[0] if message.type != "system"]
    assert sent[-1].text.endswith("are you there?\n\nwhat now?")
    assert [] == [one for one, after in pairwise(sent) if one.type == after.type]
    assert ["human: are you there?", "human: what now?"] == bench.added()[:2]


def test_a_picture_is_not_joined_to_plain_text(fresh: str) -> None:
    """An unanswered picture stays a message of its own before an input that is text in a dict."""
    bench = Bench(fresh, "input and history key")
    memory = SlideMem(max_tokens=4000, counter="approximate", store=bench.mem.store, alternate=True)
    _, keys, given = SHAPES["input and history key"]
    chain = with_sliding_memory(bench.runnable.bound, memory, **keys)
    picture = HumanMessage([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}])
    SlidingChatMessageHistory(fresh, memory=memory).add_messages([picture])

    chain.invoke(given("what now?"), bench.config)

    assert "what now?" == bench.model.seen[0][-1].text
    assert picture.content[0] in bench.model.seen[0][-2].content


def test_langchain_25716_a_stored_call_without_result_is_answered(fresh: str) -> None:
    """langchain#25716: a call whose result was never stored does not make the next question a bad request."""
    bench = Bench(fresh)
    call = {"name": "look_up", "args": {}, "id": "c1"}
    bench.view().add_messages([HumanMessage("look it up"), AIMessage("", tool_calls=[call])])

    bench.runnable.invoke("never mind", bench.config)

    (given,) = bench.model.seen
    assert [] == faults(given)
    assert [("tool", "c1"), ("human", None)] == [(m.type, getattr(m, "tool_call_id", None)) for m in given[-2:]]


def test_a_tool_loop_by_hand_goes_on(fresh: str) -> None:
    """A result that is the input answers the stored call, without a stub."""
    bench = Bench(fresh)
    call = {"name": "look_up", "args": {}, "id": "c1"}
    bench.view().add_messages([HumanMessage("look it up"), AIMessage("", tool_calls=[call])])

    bench.runnable.invoke([ToolMessage("22", tool_call_id="c1")], bench.config)

    (given,) = bench.model.seen
    assert ([], "22") == (faults(given), given[-1].text)
    assert ["human", "ai", "tool", "ai"] == [line.partition(":")[0] for line in bench.added()]


def test_the_first_question_asked_again_keeps_the_head(fresh: str) -> None:
    """Where the kept question was all that the window showed, its head stands alone on the second try."""
    mem = SlideMem(max_tokens=400, counter="approximate")
    mem.session(fresh, metadata={"timezone": "IST"}).append({"role": "user", "content": "hi"})
    model = Echo()

    with_sliding_memory(model, mem).invoke("hi", {"configurable": {"session_id": fresh}})

    ((head, question),) = model.seen
    assert ("hi", True) == (question.text, head.text.endswith("timezone: IST\n</earlier-conversation>"))
    assert ["hi", "re: hi"] == [message.text for message in mem.session(fresh).transcript()]


def test_a_chain_in_fallbacks_stores_the_question_once(fresh: str) -> None:
    """A chain with memory falls back to another one on the same session: one question, one answer."""
    bench = Bench(fresh, fails=True)
    other = with_sliding_memory(Echo(), bench.mem)

    bench.runnable.with_fallbacks([other]).invoke([HumanMessage("what now?")], bench.config)

    assert pair("what now?") == bench.added()


def test_a_chain_with_retry_stores_the_question_once(fresh: str) -> None:
    """Three tries of one question are one question."""
    tries: list[int] = []

    def flaky(messages: list[BaseMessage]) -> str:
        tries.append(len(messages))
        if len(tries) < 3:
            raise ConnectionError
        return f"re: {messages[-1].text}"

    bench = Bench(fresh, build=lambda model: RunnableLambda(flaky))

    retrying = bench.runnable.with_retry(stop_after_attempt=3, wait_exponential_jitter=False)
    retrying.invoke([HumanMessage("what now?")], bench.config)

    assert (pair("what now?"), 1) == (bench.added(), len(set(tries)))


# ------------------------------------------------------------------ among other runnables


def test_it_streams_through_pipes(fresh: str) -> None:
    """Before and behind it, chunks pass as they come."""
    bench = Bench(fresh, "input and history key")
    chain = RunnableLambda(lambda text: {"question": text}) | bench.runnable | StrOutputParser()

    async def chunks() -> list[str]:
        return [chunk async for chunk in chain.astream("and again?", bench.config)]

    assert ["re:", " what", " now?"] == [chunk for chunk in chain.stream("what now?", bench.config) if chunk]
    assert ["re:", " and", " again?"] == [chunk for chunk in asyncio.run(chunks()) if chunk]
    assert [*pair("what now?"), *pair("and again?")] == bench.added()


def test_an_input_that_comes_in_pieces_is_one_input(fresh: str) -> None:
    """A stream in front of it is added up, as LangChain does."""
    bench = Bench(fresh, "text")

    def pieces() -> Iterator[Any]:
        yield from ("what ", "now?")

    async def apieces() -> Any:
        for piece in pieces():
            yield piece

    async def arun() -> None:
        [chunk async for chunk in bench.runnable.atransform(apieces(), bench.config)]

    list(bench.runnable.transform(pieces(), bench.config))
    asyncio.run(arun())

    assert [*pair("what now?"), *pair("what now?")] == bench.added()


def test_chunks_that_do_not_add_up_are_states_of_the_answer(fresh: str) -> None:
    """Of plain dicts, as a graph streams its state, the last one is the answer."""

    def states(given: Iterator[Any]) -> Iterator[Any]:
        for _ in given:
            yield {"answer": "thinking"}
            yield {"answer": "done"}

    bench = Bench(fresh, build=lambda model: RunnableGenerator(states))

    list(bench.runnable.stream("what now?", bench.config))

    assert ["human: what now?", "ai: done"] == bench.added()


def test_a_run_is_traced_under_the_names_that_users_know(fresh: str) -> None:
    """The run, its loading and the chain inside are runs of their own, with names and tags of the caller's."""
    bench = Bench(fresh, "input and history key")

    async def names() -> list[str]:
        config = {**bench.config, "tags": ["mine"]}
        events = bench.runnable.with_config(run_name="chat").astream_events({"question": "hi"}, config, version="v2")
        return [
            f"{e['event']}:{e['name']}" async for e in events if e["event"].endswith("_start") and "mine" in e["tags"]
        ]

    assert [
        "on_chain_start:chat",
        "on_chain_start:load_history",
        "on_chain_start:RunnableSequence",
        "on_prompt_start:ChatPromptTemplate",
        "on_chat_model_start:Echo",
    ] == asyncio.run(names())


def test_the_schema_is_the_chains_without_the_history() -> None:
    """Callers see the fields that they pass."""
    prompt = ChatPromptTemplate.from_messages(
        [("system", "{ability}"), MessagesPlaceholder("history"), ("human", "{question}")]
    )
    mem = SlideMem(max_tokens=LIMIT, counter="approximate")

    keyed = with_sliding_memory(prompt | Echo(), mem, input_messages_key="question", history_messages_key="history")
    plain = with_sliding_memory(Echo(), mem)
    listed = with_sliding_memory(RunnableLambda(lambda given: "x"), mem, input_messages_key="messages")

    assert {"ability", "question"} == set(keyed.get_input_schema().model_fields)
    assert {"root"} == set(plain.get_input_schema().model_fields)
    assert {"messages"} == set(listed.get_input_schema().model_fields)
    assert Echo().get_output_schema().model_json_schema() == plain.get_output_schema().model_json_schema()
    assert ["session_id"] == [spec.id for spec in keyed.config_specs]
    assert "RunnableWithSlidingMemory(" in repr(plain)
    assert isinstance(plain, (Runnable, RunnableWithSlidingMemory))


# ------------------------------------------------------------------ whose session


def test_several_fields_name_a_session(fresh: str) -> None:
    """A factory gets them by name; a memory keeps one session for each combination."""
    specs = [ConfigurableFieldSpec(id=name, annotation=str) for name in ("user_id", "thread_id")]
    mem = SlideMem(max_tokens=LIMIT, counter="approximate")
    given: list[tuple[str, str]] = []

    def factory(*, thread_id: str, user_id: str) -> SlidingChatMessageHistory:
        given.append((user_id, thread_id))
        return SlidingChatMessageHistory(f"{user_id}/{thread_id}", memory=mem)

    config: Any = {"configurable": {"user_id": "alice", "thread_id": "1"}}
    with_sliding_memory(Echo(), factory, history_factory_config=specs).invoke("hi", config)
    with_sliding_memory(Echo(), mem, history_factory_config=specs).invoke("hi", config)

    assert [("alice", "1")] == given
    assert ("alice/1", '{"thread_id": "1", "user_id": "alice"}') == mem.sessions()


def test_a_factory_without_parameters_is_called_without(fresh: str) -> None:
    """One conversation for all."""
    mem = SlideMem(max_tokens=LIMIT, counter="approximate")

    runnable = with_sliding_memory(Echo(), lambda: SlidingChatMessageHistory(fresh, memory=mem))
    runnable.invoke("hi", {"configurable": {"session_id": "whatever"}})

    assert (fresh,) == mem.sessions()


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda mem: with_sliding_memory(Echo(), mem).invoke("hi"), 'call with {"configurable": {"session_id": "..."}}'),
        (lambda mem: with_sliding_memory(Echo(), 7), "memory must be a SlideMem"),
        (lambda mem: with_sliding_memory(Echo(), mem, history_messages_key="h"), "needs input_messages_key"),
        (lambda mem: with_sliding_memory(Echo(), lambda s: mem).invoke("hi", {"configurable": {"session_id": "s"}}), "SlidingChatMessageHistory.over"),
        (lambda mem: with_sliding_memory(Echo(), mem).invoke("hi", {"configurable": {"session_id": None}}), "does not name a session (missing: session_id)"),
        (lambda mem: with_sliding_memory(Echo(), asyncio.sleep).invoke("hi", {"configurable": {"session_id": 0}}), "got coroutine: make it a function that is not async"),
        (lambda mem: with_sliding_memory(Echo(), mem, input_messages_key="q").invoke("hi", {"configurable": {"session_id": "s"}}), "the chain takes a dict with 'q', which input_messages_key names, got 'hi': call with {\"q\": ...}"),
        (lambda mem: with_sliding_memory(Echo(), mem, input_messages_key="q", history_messages_key="h").invoke("hi", {"configurable": {"session_id": "s"}}), 'call with {"q": ...}'),
        (lambda mem: with_sliding_memory(Echo(), mem).invoke(7, {"configurable": {"session_id": "s"}}), "the input must be text"),
        (lambda mem: with_sliding_memory(Echo(), mem, input_messages_key="q").invoke({"x": 1, "y": 2}, {"configurable": {"session_id": "s"}}), "the input has no 'q' (its keys: x, y): pass input_messages_key"),
        (lambda mem: with_sliding_memory(NAMED, mem, output_messages_key="x").invoke("hi", {"configurable": {"session_id": "s"}}), "the output has no 'x'"),
        (lambda mem: with_sliding_memory(Echo(), mem, history_factory_config=[ConfigurableFieldSpec(id=i, annotation=str) for i in "ab"]).invoke("hi", {"configurable": {"a": object(), "b": 1}}), "named by text and numbers"),
    ],
)  # fmt: skip
def test_a_mistake_is_named(make: Callable[[SlideMem], Any], said: str) -> None:
    """Each wrong use raises a ConfigurationError, which is a ValueError, and says what to do."""
    with pytest.raises(ConfigurationError) as raised:
        make(SlideMem(max_tokens=LIMIT, counter="approximate"))

    assert said in str(raised.value)


@pytest.mark.parametrize("value", [{"only": "hi"}, {"input": "hi", "more": 1}])
def test_a_dict_without_keys_is_understood(fresh: str, value: dict[str, Any]) -> None:
    """One key is the input, and so is `input` among several."""
    bench = Bench(fresh, turns=0)

    bench.runnable.invoke(value, bench.config)

    assert pair("hi") == bench.added()


def test_an_agent_that_drops_what_it_was_given_adds_only_what_is_new(fresh: str) -> None:
    """A list that begins elsewhere is told apart by marks and ids."""

    def agent(messages: list[BaseMessage]) -> list[BaseMessage]:
        return [*messages[-3:], AIMessage("new", id="n")]

    bench = Bench(fresh, build=lambda model: RunnableLambda(agent))
    numbered = [HumanMessage("q", id="q1"), AIMessage("a", id="a1"), HumanMessage("what now?", id="q2")]
    bench.view().add_messages(numbered[:2])

    bench.runnable.invoke([numbered[2]], bench.config)

    assert ["human: q", "ai: a", "human: what now?", "ai: new"] == bench.added()


def test_it_works_without_langchains_histories() -> None:
    """With the deprecated modules absent, as langchain-core 2.0 announces, memory works and no warning is raised."""
    code = """
import sys
sys.modules["langchain_core.chat_history"] = None
sys.modules["langchain_core.runnables.history"] = None
from langchain_slidemem import SlidingChatMessageHistory, with_sliding_memory
from slidemem import SlideMem
mem = SlideMem(max_tokens=200, counter="approximate")
chain = with_sliding_memory(lambda messages: f"{len(messages)} messages", mem)
for text in ("hi", "and now?"):
    print(chain.invoke(text, {"configurable": {"session_id": "s"}}))
print(len(SlidingChatMessageHistory("s", memory=mem).messages))
"""

    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)  # noqa: S603  # our own code

    assert ("1 messages\n3 messages\n4\n", "") == (done.stdout, done.stderr)


def test_a_run_that_answers_with_a_removal_is_refused(fresh: str) -> None:
    """What takes messages away cannot be stored."""
    bench = Bench(fresh, build=lambda model: RunnableLambda(lambda messages: [RemoveMessage(id="x")]))

    with pytest.raises(InvalidMessage):
        bench.runnable.invoke("hi", bench.config)
