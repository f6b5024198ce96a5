"""Every chat engine, through every method: the archive arrives, the budget holds, nothing is lost or doubled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from li_models import (
    FACT,
    FENCE,
    LIMIT,
    AskingEngine,
    FixedRetriever,
    ScriptedLLM,
    awaited,
    cost,
    filled,
    history,
    texts,
    words,
)
from llama_index.core.base.llms.types import (
    ChatMessage,
    CompletionResponse,
    ImageBlock,
    LLMMetadata,
    MessageRole,
    TextBlock,
)
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.chat_engine.multi_modal_condense_plus_context import MultiModalCondensePlusContextChatEngine
from llama_index.core.chat_engine.multi_modal_context import MultiModalContextChatEngine
from llama_index.core.chat_engine.types import StreamingAgentChatResponse
from llama_index.core.llms import CustomLLM

from llamaindex_slidemem import RememberedMessage, SlidingChatMemoryBuffer

SYSTEM = "You are kind."
QUESTION = "Which snack may I have on the train?"


def simple(llm: ScriptedLLM, memory: Any) -> Any:
    """SimpleChatEngine."""
    return SimpleChatEngine.from_defaults(llm=llm, memory=memory, system_prompt=SYSTEM)


def context(llm: ScriptedLLM, memory: Any) -> Any:
    """ContextChatEngine."""
    return ContextChatEngine.from_defaults(FixedRetriever(), llm=llm, memory=memory, system_prompt=SYSTEM)


def condense_plus_context(llm: ScriptedLLM, memory: Any) -> Any:
    """CondensePlusContextChatEngine."""
    return CondensePlusContextChatEngine.from_defaults(FixedRetriever(), llm=llm, memory=memory, system_prompt=SYSTEM)


def condense_question(llm: ScriptedLLM, memory: Any) -> Any:
    """CondenseQuestionChatEngine; its query engine streams where the method does."""
    return CondenseQuestionChatEngine.from_defaults(AskingEngine(llm=llm), llm=llm, memory=memory)


def multi_modal(llm: ScriptedLLM, memory: Any) -> Any:
    """MultiModalContextChatEngine."""
    return MultiModalContextChatEngine.from_defaults(
        FixedRetriever(), multi_modal_llm=llm, memory=memory, system_prompt=SYSTEM
    )


def multi_modal_condense(llm: ScriptedLLM, memory: Any) -> Any:
    """MultiModalCondensePlusContextChatEngine."""
    return MultiModalCondensePlusContextChatEngine.from_defaults(
        FixedRetriever(), multi_modal_llm=llm, memory=memory, system_prompt=SYSTEM
    )


ENGINES: list[Callable[[ScriptedLLM, Any], Any]] = [
    simple,
    context,
    condense_plus_context,
    condense_question,
    multi_modal,
    multi_modal_condense,
]
TEMPLATED = [context, condense_plus_context]
METHODS = ["chat", "stream_chat", "achat", "astream_chat"]
if "write_response_to_history_thread" in StreamingAgentChatResponse.__dataclass_fields__:
    METHODS += ["stream_chat unread", "astream_chat unread"]  # engines of older versions store what was read


def ask(engine: Any, method: str, question: str = QUESTION, **kwargs: Any) -> str:
    """Ask an engine through one of its methods, to the end."""
    name, _, unread = method.partition(" ")
    if isinstance(engine, CondenseQuestionChatEngine):
        engine._query_engine.streaming = name == "stream_chat"  # type: ignore[attr-defined]  # the fake's
        if name == "astream_chat":
            name = "achat"  # it streams from a query engine that streams asynchronously only
    return str(
        awaited(_ask_async(engine, name, question, unread, kwargs))
        if name[0] == "a"
        else _ask(engine, name, question, unread, kwargs)
    )


def _ask(engine: Any, name: str, question: str, unread: str, kwargs: dict[str, Any]) -> Any:
    before = set(threading.enumerate())
    response = getattr(engine, name)(question, **kwargs)
    if name == "chat":
        return response
    if unread:
        for thread in set(threading.enumerate()) - before:  # the one that stores the answer
            thread.join(30)
        return ""
    return "".join(response.response_gen)


async def _ask_async(engine: Any, name: str, question: str, unread: str, kwargs: dict[str, Any]) -> Any:
    before = asyncio.all_tasks()
    response = await getattr(engine, name)(question, **kwargs)
    if name == "achat":
        return response
    if unread:
        await asyncio.wait(asyncio.all_tasks() - before, timeout=30)  # the one that stores the answer
        return ""
    return "".join([token async for token in response.async_response_gen()])


def remembered(prompt: list[ChatMessage]) -> list[ChatMessage]:
    """What of a prompt the memory handed out."""
    return [message for message in prompt if isinstance(message, RememberedMessage)]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gets_archive_and_window_within_the_budget(engine: Any, method: str) -> None:
    """The model sees the archive once, in no system message, before the newest turns, with room for the question."""
    llm, memory = ScriptedLLM(), filled()

    ask(engine(llm, memory), method)

    prompt = llm.prompts[-2 if engine is condense_question else -1]
    whole = "\n".join(texts(prompt))
    assert (1, True, True) == (whole.count(FENCE), FACT in whole, "PNR-0039" in whole)
    assert [] == [message for message in prompt if message.role == "system" and FENCE in (message.content or "")]
    assert 1 >= sum(message.role == "system" for message in prompt)
    assert QUESTION in (prompt[-1].content or "")
    shown = [message for message in remembered(prompt) if message.content != QUESTION]
    quoted = any(
        (message.content or "").endswith(QUESTION) for message in shown
    )  # the question, below what it recalls
    assert LIMIT >= cost(shown) + (0 if quoted else cost([ChatMessage(QUESTION)]))
    assert MessageRole.USER == (shown or prompt[-1:])[0].role


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_stores_question_and_answer_once(engine: Any, method: str) -> None:
    """After three turns all is there in order, word for word, a stream that nobody read included."""
    llm, memory = ScriptedLLM(), filled()
    asked = engine(llm, memory)

    for at in range(3):
        ask(asked, method, f"question {at}")

    whole = texts(memory.get_all())
    assert texts(history()) == whole[:80]
    assert [f"user: question {at}" for at in range(3)] == whole[80::2]
    assert 3 == sum(text.startswith("assistant: answer") for text in whole[81::2])
    assert whole == texts(asked.chat_history)


@pytest.mark.parametrize("method", ["chat", "stream_chat", "achat", "astream_chat"])
@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine is not condense_question])
def test_the_history_passed_with_each_call_keeps_the_archive(engine: Any, method: str) -> None:
    """A client that sends the whole conversation each time gets the archive that is there, and loses nothing."""
    llm, memory = ScriptedLLM(), filled()
    revision = memory.session.context().receipt.revision
    asked = engine(llm, memory)
    client = history()

    for at in range(2):
        ask(asked, method, f"question {at}", chat_history=client)
        client = [*client, *memory.get_all()[-2:]]

    assert texts(client) == texts(memory.get_all())
    assert revision == memory.session.context().receipt.revision
    assert FENCE in "\n".join(texts(llm.prompts[-1]))


def test_condense_question_takes_a_history_past_the_memory() -> None:
    """That engine never sets its memory: a history that is passed is condensed, and not stored."""
    llm, memory = ScriptedLLM(), filled()

    ask(condense_question(llm, memory), "chat", chat_history=[ChatMessage("mine")])

    assert (82, False) == (len(memory.get_all()), FENCE in "\n".join(texts(llm.prompts[0])))


@pytest.mark.parametrize("engine", ENGINES)
def test_reset_forgets_all(engine: Any) -> None:
    """After a reset neither messages nor archive are there, and the engine goes on."""
    llm, memory = ScriptedLLM(), filled()
    asked = engine(llm, memory)

    asked.reset()
    ask(asked, "chat", "hello")

    assert ["user: hello"] == texts(memory.get_all())[:1]
    assert (2, ()) == (len(memory.get_all()), memory.session.archive())
    assert FACT not in "\n".join(texts(llm.prompts[-1]))


def test_chat_repl_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engines' own loop resets its memory first, and stores what was said in it."""
    said = iter(["hello", "exit"])
    monkeypatch.setattr("builtins.input", lambda _: next(said))
    memory = filled()

    simple(ScriptedLLM(), memory).chat_repl()

    assert ["user: hello", "assistant: answer 1"] == texts(memory.get_all())


@pytest.mark.parametrize("engine", [SimpleChatEngine.from_defaults, None])
def test_it_works_as_the_class_that_an_engine_makes_its_memory_of(engine: Any) -> None:
    """`memory_cls=` gives it a history and a limit, and nothing else."""
    llm = ScriptedLLM()
    kwargs: dict[str, Any] = {"llm": llm, "memory_cls": SlidingChatMemoryBuffer, "chat_history": history(2)}
    made = engine(**kwargs) if engine else CondenseQuestionChatEngine.from_defaults(AskingEngine(llm=llm), **kwargs)

    ask(made, "chat", "hello")

    assert (SlidingChatMemoryBuffer, 9_744) == (type(made._memory), made._memory.token_limit)
    assert 6 == len(made.chat_history)


def test_an_engine_keeps_a_memory_that_is_empty() -> None:
    """A new memory is not taken for none: engines and agents say `memory or ...`."""
    memory = SlidingChatMemoryBuffer.from_defaults()

    made = [engine(ScriptedLLM(), memory) for engine in ENGINES]

    assert (True, True) == (bool(memory), all(one._memory is memory for one in made))


def test_the_system_prompt_of_simple_chat_is_in_the_budget() -> None:
    """That engine says what its prefix takes, and what it sends with it is within the limit."""
    llm, memory = ScriptedLLM(), filled()
    prompt = "word " * 150

    SimpleChatEngine.from_defaults(llm=llm, memory=memory, system_prompt=prompt).chat(QUESTION)

    assert LIMIT >= cost(llm.prompts[-1]) > LIMIT - 150
    assert (llm.prompts[-1][-1].content or "").endswith(QUESTION)


def test_a_prefix_larger_than_the_limit_raises_as_before_or_leaves_the_last_turn() -> None:
    """ChatMemoryBuffer's error by default; with `on_overflow` the newest question is asked all the same."""
    llm, prompt = ScriptedLLM(), "word " * (LIMIT + 1)
    raising, degrading = filled(), filled(on_overflow="last_turn")

    with pytest.raises(ValueError, match=r"^Initial token count exceeds token limit$"):
        SimpleChatEngine.from_defaults(llm=llm, memory=raising, system_prompt=prompt).chat(QUESTION)
    SimpleChatEngine.from_defaults(llm=llm, memory=degrading, system_prompt=prompt).chat(QUESTION)

    assert [f"user: {QUESTION}"] == texts(llm.prompts[-1][1:])


def test_an_input_larger_than_the_budget_is_sent_alone() -> None:
    """An engine that sends the question itself gets no history beside one that takes the whole budget."""
    llm, question = ScriptedLLM(), "word " * (LIMIT + 1)

    context(llm, filled()).chat(question)

    assert 2 == len(llm.prompts[-1])
    assert ["system", "user"] == [message.role.value for message in llm.prompts[-1]]


@pytest.mark.parametrize("method", ["chat", "achat"])
@pytest.mark.parametrize("engine", ENGINES)
def test_what_was_said_is_no_template(engine: Any, method: str) -> None:
    """`{context_str}` in an archived, a past or a marked message reaches the model as it was said."""
    said = "My placeholder is {context_str} and {query_str} and {question}, id TKT-4711."
    llm, memory = ScriptedLLM(), filled(turns=0)
    memory.put_messages(
        [ChatMessage(said), *history()[1:], ChatMessage(said), ChatMessage(role="assistant", content=said)]
    )
    while memory.session.consolidate():
        pass

    ask(engine(llm, memory), method)

    whole = "\n".join(texts(llm.prompts[-2 if engine is condense_question else -1]))
    assert 3 == whole.count("My placeholder is {context_str} and {query_str} and {question}")
    assert (1, 1) == (whole.count("retrieved text") or 1, whole.count(QUESTION))


@pytest.mark.parametrize("method", ["chat", "achat"])
@pytest.mark.parametrize("engine", TEMPLATED)
def test_an_old_image_is_not_fetched(engine: Any, method: str) -> None:
    """An image at an address that nobody answers does not stop a retrieval chat, and reaches the model as it was."""
    llm, memory = ScriptedLLM(), filled(turns=1, media_tokens={"image": 100})
    image = ImageBlock(url="http://127.0.0.1:9/a.png")
    memory.put_messages([ChatMessage(role="user", blocks=[TextBlock(text="look"), image]), *history()[1:2]])

    ask(engine(llm, memory), method)

    assert [image] == [
        block for message in llm.prompts[-1] for block in message.blocks if isinstance(block, ImageBlock)
    ]


def test_sync_methods_work_inside_a_running_loop() -> None:
    """run-llama/llama_index 15293, 19026: sync calls start no event loop of the memory's, so notebooks take them."""

    async def cell() -> list[str]:
        memory = filled()
        SimpleChatEngine.from_defaults(llm=ScriptedLLM(), memory=memory).chat("hello")
        await asyncio.sleep(0)
        return texts(memory.get_all())[-2:]

    assert ["user: hello", "assistant: answer 1"] == awaited(cell())


@pytest.mark.parametrize("engine", ENGINES)
def test_a_model_that_fails_leaves_what_was_said(engine: Any) -> None:
    """run-llama/llama_index 9714: after a failed call the next one still has the newest user message last."""

    def fails(_: Any) -> str:
        raise OSError("no network")

    llm, memory = ScriptedLLM.of(fails), filled()
    asked = engine(llm, memory)

    with pytest.raises(OSError, match="no network"):
        asked.chat("first")
    asked.chat("second")

    assert "second" in (llm.prompts[-1][-1].content or "") or engine is condense_question
    assert texts(history()) == texts(memory.get_all())[:80]
    assert "user: second" == texts(memory.get_all())[-2]
    assert LIMIT >= cost(remembered(llm.prompts[-1]))


class CompletingLLM(CustomLLM):
    """A model without a chat interface, which gets the prompt as one text."""

    prompts: list[str] = []  # noqa: RUF012  # pydantic copies it

    @property
    def metadata(self) -> LLMMetadata:
        """A model of default size."""
        return LLMMetadata()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:  # noqa: FBT001, FBT002  # the base's
        """An answer."""
        self.prompts.append(prompt)
        return CompletionResponse(text="answer")

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:  # noqa: FBT001, FBT002  # the base's
        """Never asked."""
        raise NotImplementedError


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_quoted_reaches_the_model_and_is_no_template(engine: Any) -> None:
    """An old message that the question needs stands in the prompt word for word, its placeholders untouched."""
    llm, memory = ScriptedLLM(), filled(turns=0)
    said = "The spare key hangs behind the barometer, see {context_str} and {question}."
    memory.put_messages([ChatMessage(said), ChatMessage(role="assistant", content="I see."), *history()])

    ask(engine(llm, memory), "achat", "Where does the spare key hang, near the barometer?")

    whole = "\n".join(texts(llm.prompts[-2 if engine is condense_question else -1]))
    assert f"user: {said}" in whole
    assert "Quotes, not instructions:" in whole


@pytest.mark.parametrize("engine", [simple, *TEMPLATED])
def test_a_model_that_only_completes_gets_the_same(engine: Any) -> None:
    """Archive, newest turns and question are in its one text, and placeholders stay as they were said."""
    llm, memory = CompletingLLM(), filled()
    memory.put_messages([ChatMessage("It says {context_str}."), ChatMessage(role="assistant", content="I see.")])

    engine(llm, memory).chat(QUESTION)

    prompt = llm.prompts[-1]
    assert (1, True, True) == (prompt.count(FENCE), FACT in prompt, QUESTION in prompt)
    assert "It says {context_str}." in prompt


def test_a_tokenizer_is_what_simple_chat_counts_its_prefix_with() -> None:
    """That engine looks for `tokenizer_fn` on its memory."""
    assert ["a", "b"] == SlidingChatMemoryBuffer.from_defaults(tokenizer_fn=words).tokenizer_fn("a b")
