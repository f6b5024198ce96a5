"""A memory written down and read back: text, dict, pickle, copies, workflow contexts, and dumps of other memories."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import threading
from typing import Any

import pytest
from li_models import FACT, FENCE, LIMIT, ScriptedLLM, awaited, filled, history, texts, words
from llama_index.core import Settings
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock, ToolCallBlock
from llama_index.core.bridge.pydantic import BaseModel, ValidationError
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.storage.chat_store import SimpleChatStore
from llama_index.core.utils import set_global_tokenizer
from llama_index.core.workflow import Context, JsonPickleSerializer, JsonSerializer

from llamaindex_slidemem import SlidingChatMemoryBuffer
from slidemem import Event, InvalidExport


class ProviderCall(BaseModel):
    """A provider's own object, as older integrations left it in `additional_kwargs`."""

    id: str
    type: str = "function"


def shout(text: str) -> str:
    """A function that can be pickled."""
    return text.upper()


HEARD: list[Event] = []


def listen(event: Event) -> None:
    """A listener that can be pickled."""
    HEARD.append(event)


@pytest.fixture
def model() -> Any:
    """LlamaIndex's global model, for one test."""
    before, Settings._llm = Settings._llm, ScriptedLLM()
    yield Settings._llm
    Settings._llm = before


# ------------------------------------------------------------------ what JSON cannot hold


def test_images_and_provider_objects_are_written() -> None:
    """run-llama/llama_index 7169, 10349, 16405: bytes come back as they were, a provider's object as its JSON."""
    image = ImageBlock(image=b"\x89PNG\r\n\x1a\n\x00\xff", detail="low")
    kwargs = {"tool_calls": [ProviderCall(id="1")], "set": {1}, "raw": b"\xff\x00"}
    said = [
        ChatMessage(role="user", blocks=[TextBlock(text="look"), image]),
        ChatMessage(role="assistant", blocks=[TextBlock(text="ok")], additional_kwargs=kwargs),
    ]
    memory = filled()
    memory.put_messages(said)

    again = SlidingChatMemoryBuffer.from_string(memory.to_string(), tokenizer_fn=words)

    first, second = again.get_all()[-2:]
    assert ([TextBlock(text="look"), image], said) == (first.blocks, memory.get_all()[-2:])
    assert {**kwargs, "tool_calls": [{"id": "1", "type": "function"}], "set": [1]} == second.additional_kwargs
    assert memory.session.archive() == again.session.archive()


def test_a_tokenizer_that_is_a_lambda_hinders_nothing() -> None:
    """run-llama/llama_index 11537: it is left out of text and dict, and is given again."""
    memory = filled(tokenizer_fn=lambda text: text.split())

    data = memory.to_dict()
    again = SlidingChatMemoryBuffer.from_dict(json.loads(json.dumps(data)), tokenizer_fn=words)

    assert (data, memory.get()) == (json.loads(memory.to_string()), again.get())


def test_the_global_tokenizer_is_attached_where_none_is_given() -> None:
    """As ChatMemoryBuffer has it: `set_global_tokenizer`, and `Settings.tokenizer`, hold for what is read later."""
    data = filled().to_dict()

    set_global_tokenizer(words)
    again = SlidingChatMemoryBuffer.from_dict(data)
    set_global_tokenizer(None)  # type: ignore[arg-type]  # LlamaIndex's own again

    assert (words, filled().get()) == (again.tokenizer_fn, again.get())


def test_a_model_that_wrote_the_archive_is_the_global_one_again(model: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Where another is given, that one; where there is none, extracts stand in, which is told."""
    saved = filled(turns=2, summarizer=ScriptedLLM()).to_dict()

    attached = SlidingChatMemoryBuffer.from_dict(saved)
    given = SlidingChatMemoryBuffer.from_dict(saved, summarizer=shout)
    assert (model, shout, "") == (attached.summarizer, given.summarizer, caplog.text)
    Settings._llm = None
    without = SlidingChatMemoryBuffer.from_dict(saved)

    assert (None, True) == (without.summarizer, "had summarizer" in caplog.text and "pass summarizer=" in caplog.text)
    assert "base_component" in caplog.text or "LLM" in caplog.text


def test_a_memory_read_without_its_redaction_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """What was to be kept out of archives is not, until the function is given again."""
    saved = filled(redact=shout).to_dict()

    given = SlidingChatMemoryBuffer.from_dict(saved, redact=shout)
    assert (shout, "") == (given.redact, caplog.text)
    without = SlidingChatMemoryBuffer.from_dict(saved)

    assert (None, True) == (without.redact, "had redact shout was read without" in caplog.text)


def test_a_memory_without_such_things_is_read_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is told of what was never there, nor of what an older or a foreign hand wrote."""
    with caplog.at_level(logging.DEBUG, "llamaindex_slidemem"):
        SlidingChatMemoryBuffer.from_dict(filled().to_dict())
        SlidingChatMemoryBuffer.from_dict({"token_limit": 5, "left_out": ["redact"]})

    assert "" == caplog.text


@pytest.mark.parametrize("data", [None, 5, [], "text"])
def test_what_is_no_memory_is_refused(data: Any) -> None:
    """By a sentence, whatever came."""
    with pytest.raises(InvalidExport, match="a memory is read from the object that to_dict gives"):
        SlidingChatMemoryBuffer.from_dict(data)
    with pytest.raises(InvalidExport, match="a memory is read from"):
        SlidingChatMemoryBuffer.from_string(data if data is None else json.dumps(data))


def test_what_is_no_text_of_a_memory_is_refused() -> None:
    """Broken JSON, and a memory whose conversation is none; what nobody knows is named."""
    for text in ("", "{", "[" * 100_000):
        with pytest.raises(InvalidExport, match="a memory is read from JSON text"):
            SlidingChatMemoryBuffer.from_string(text)
    with pytest.raises(InvalidExport, match="session of a memory is a JSON object, got NoneType"):
        SlidingChatMemoryBuffer.from_dict({"token_limit": 5, "session": None})
    with pytest.raises(ValidationError, match="unheard_of"):
        SlidingChatMemoryBuffer.from_dict({"token_limit": 5, "unheard_of": 1})


# ------------------------------------------------------------------ copies


def test_a_pickle_leaves_the_original_intact_and_takes_along_what_it_can() -> None:
    """run-llama/llama_index 22578: functions go along by name; a model, its lock and a lambda stay where they are."""
    llm = ScriptedLLM()
    object.__setattr__(llm, "_lock", threading.Lock())
    memory = filled(redact=shout, on_event=listen, summarizer=llm, tokenizer_fn=lambda text: text.split())

    again = pickle.loads(pickle.dumps(memory))  # noqa: S301  # our own

    assert (shout, listen, None) == (again.redact, again.on_event, again.summarizer)
    assert (llm, ["a", "b"], True) == (memory.summarizer, memory.tokenizer_fn("a b"), hasattr(llm, "_lock"))
    assert memory.get_all() == again.get_all()
    assert memory.session.archive() == again.session.archive()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda memory: memory.model_copy(deep=True)])
def test_a_deep_copy_is_apart_and_shares_its_model(copied: Any) -> None:
    """Its messages and archive are its own, with a chat store too, and the model is the same object."""
    llm = ScriptedLLM()
    for given in ({}, {"chat_store": SimpleChatStore()}):
        memory = filled(summarizer=llm, **given)

        again = copied(memory)
        again.put(ChatMessage("only there"))

        assert (80, 81, llm) == (len(memory.get_all()), len(again.get_all()), again.summarizer)
        assert [one.text for one in memory.session.archive()] == [one.text for one in again.session.archive()]


def test_a_shallow_copy_is_the_same_conversation() -> None:
    """As ChatMemoryBuffer's, which shares its store."""
    memory = filled()

    memory.model_copy().put(ChatMessage("in both"))

    assert "in both" == memory.get_all()[-1].content


# ------------------------------------------------------------------ workflows


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("serializer", [JsonSerializer, JsonPickleSerializer])
def test_a_workflow_context_keeps_memory_and_archive(serializer: Any) -> None:
    """run-llama/llama_index 18475: through text and back, twice, and the agent goes on where it was."""
    llm, memory = ScriptedLLM(), filled()
    agent = FunctionAgent(llm=llm)

    async def talk() -> list[Any]:
        ctx = Context(agent)
        await agent.run("first", memory=memory, ctx=ctx)
        for question in ("second", "third"):
            text = json.dumps(ctx.to_dict(serializer=serializer()))
            ctx = Context.from_dict(agent, json.loads(text), serializer=serializer())
            await agent.run(question, ctx=ctx)
        return [memory, await ctx.store.get("memory")]

    before, after = awaited(talk())

    assert (SlidingChatMemoryBuffer, 82, 86) == (type(after), len(before.get_all()), len(after.get_all()))
    assert ["user: first", "user: second", "user: third"] == texts(after.get_all())[80::2]
    said = "\n".join(texts(llm.prompts[-1]))
    assert (1, True, True) == (
        said.count(FENCE),
        FACT in said,
        before.session.archive()[0].text == after.session.archive()[0].text,
    )


# ------------------------------------------------------------------ dumps of those whose place it takes


CALL = ChatMessage(
    role="assistant", blocks=[ToolCallBlock(tool_call_id="1", tool_name="weather", tool_kwargs={"city": "Pune"})]
)
RESULT = ChatMessage(role="tool", content="dry", additional_kwargs={"tool_call_id": "1"})
SAID = [*history(2), ChatMessage("And the weather?"), CALL, RESULT]
DUMPED = [json.loads(message.model_dump_json()) for message in SAID]
OLD = [{"role": "user", "content": "hello", "additional_kwargs": {}}]


def dump(**fields: Any) -> dict[str, Any]:
    """What `ChatMemoryBuffer.to_dict` writes where pydantic lets it."""
    return {
        "chat_store": {"store": {"meera": DUMPED, "other": OLD}, "class_name": "SimpleChatStore"},
        "chat_store_key": "meera",
        "token_limit": 500,
        "class_name": "ChatMemoryBuffer",
        **fields,
    }


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {
            "class_name": "ChatSummaryMemoryBuffer",
            "count_initial_tokens": False,
            "summarize_prompt": "Summarize.",
            "llm": {"class_name": "MockLLM"},
        },
    ],
)
def test_the_dump_of_another_memory_is_read(fields: dict[str, Any]) -> None:
    """run-llama/llama_index 9928: limit, key and the messages of every key; the dump is not changed."""
    data = dump(**fields)
    before = json.dumps(data)

    read = SlidingChatMemoryBuffer.from_dict(data, tokenizer_fn=words)
    read_text = SlidingChatMemoryBuffer.from_string(before, summarizer=shout)

    assert before == json.dumps(data)
    assert (500, "meera", SAID) == (read.token_limit, read.chat_store_key, read.get_all())
    assert [ChatMessage("hello")] == read.chat_store.get_messages("other")
    assert (SAID, shout) == (read_text.get_all(), read_text.summarizer)


def test_the_oldest_form_of_a_dump_is_read() -> None:
    """`chat_history` beside the limit, its messages with `content`."""
    old = {"chat_history": OLD, "token_limit": 7}
    bare = {"chat_history": [ChatMessage("hello")]}

    memories = [SlidingChatMemoryBuffer.from_dict(one) for one in (old, bare)]

    assert [(7, [ChatMessage("hello")]), (3000, [ChatMessage("hello")])] == [
        (memory.token_limit, memory.get_all()) for memory in memories
    ]


def test_a_dump_that_this_version_writes_is_read() -> None:
    """Straight from ChatMemoryBuffer, with an empty store under every pydantic, and a filled one where it can."""
    empty = ChatMemoryBuffer.from_defaults(token_limit=9)
    filled_too = ChatMemoryBuffer.from_defaults(SAID, token_limit=9)
    try:
        dumps = [(empty.to_dict(), []), (filled_too.to_dict(), SAID)]
    except Exception:  # noqa: BLE001  # a pydantic with which SimpleChatStore cannot be dumped raises its own error
        dumps = [(empty.to_dict(), [])]

    for data, messages in dumps:
        read = SlidingChatMemoryBuffer.from_dict(data)
        assert (9, messages) == (read.token_limit, read.get_all())


def test_a_dump_whose_messages_are_elsewhere_asks_for_the_store() -> None:
    """A RedisChatStore's dump holds no messages; with the store given it goes on with what is there."""
    data = dump(chat_store={"ttl": 5, "class_name": "RedisChatStore"})
    store = SimpleChatStore(store={"meera": SAID})

    with pytest.raises(InvalidExport, match="in its RedisChatStore: pass it as chat_store="):
        SlidingChatMemoryBuffer.from_dict(data)
    with pytest.raises(InvalidExport, match="in its int: pass it"):
        SlidingChatMemoryBuffer.from_dict(dump(chat_store=5))

    assert SAID == SlidingChatMemoryBuffer.from_dict(data, chat_store=store).get_all()
    assert [] == SlidingChatMemoryBuffer.from_dict({"token_limit": 5, "class_name": "ChatMemoryBuffer"}).get_all()


@pytest.mark.parametrize("said", [{"meera": 5}, {"meera": [5]}, {"meera": [{"role": "hologram"}]}, 5])
def test_a_dump_with_damaged_messages_says_so(said: Any) -> None:
    """Nothing is read of it."""
    with pytest.raises(InvalidExport, match="the messages of this memory cannot be read"):
        SlidingChatMemoryBuffer.from_dict(dump(chat_store={"store": said, "class_name": "SimpleChatStore"}))


def test_a_memory_moves_to_a_store_as_it_is_read() -> None:
    """The archive too: the argument for another home is the way from one to another."""
    saved, store = filled().to_dict(), SimpleChatStore()

    moved = SlidingChatMemoryBuffer.from_dict(saved, tokenizer_fn=words, chat_store=store)

    assert (history(), filled().get()) == (store.get_messages("chat_history"), moved.get())
    assert LIMIT == moved.token_limit
