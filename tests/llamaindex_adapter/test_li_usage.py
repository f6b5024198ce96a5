"""What clients report of their prompts reaches the memory through LlamaIndex's dispatcher."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from li_models import ScriptedLLM, history, words
from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.events.llm import LLMChatEndEvent, LLMChatStartEvent
from pydantic import BaseModel

from llamaindex_slidemem import SlidingChatMemoryBuffer, UsageHandler, follow_usage
from llamaindex_slidemem.usage import prompt_tokens


class Usage(BaseModel):
    """As OpenAI's client has it."""

    prompt_tokens: int


class Completion(BaseModel):
    """As OpenAI's client has it."""

    usage: Usage | None = None


@pytest.fixture
def memory() -> SlidingChatMemoryBuffer:
    """A memory that follows what is reported, and holds something."""
    made = SlidingChatMemoryBuffer.from_defaults(token_limit=400, tokenizer_fn=words, correct_counts=True)
    made.put_messages(history(30))
    return made


@pytest.fixture
def following(memory: SlidingChatMemoryBuffer) -> Iterator[UsageHandler]:
    """The memory's handler, at the root for the time of a test."""
    handler = follow_usage(memory)
    yield handler
    get_dispatcher().event_handlers.remove(handler)


@pytest.mark.parametrize(
    "raw, expected",
    [
        pytest.param(Completion(usage=Usage(prompt_tokens=7)), 7, id="OpenAI"),
        pytest.param({"usage": {"prompt_tokens": 7}}, 7, id="a dict"),
        pytest.param({"usage_metadata": {"prompt_token_count": 7, "cached_content_token_count": 3}}, 7, id="Gemini"),
        pytest.param(
            {"usage": {"input_tokens": 2, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 1}},
            7,
            id="Anthropic, whose cached tokens stand beside",
        ),
        pytest.param(Completion(), 0, id="no usage"),
        pytest.param({}, 0, id="nothing"),
        pytest.param(None, 0, id="no raw answer"),
    ],
)
def test_a_prompt_is_read_from_each_clients_answer(raw: Any, expected: int) -> None:
    """Cached tokens are in the count, wherever a client has them."""
    assert expected == prompt_tokens(raw)


def ended(messages: list[ChatMessage], tokens: int) -> LLMChatEndEvent:
    """The end of a chat."""
    answer = ChatResponse(
        message=ChatMessage(role="assistant", content="ok"), raw={"usage": {"prompt_tokens": tokens}}
    )
    return LLMChatEndEvent(messages=messages, response=answer)


def test_what_a_prompt_took_corrects_the_budget(memory: SlidingChatMemoryBuffer, following: UsageHandler) -> None:
    """A prompt with the memory's messages that took 1.4 times as many tokens is followed."""
    prompt = memory.get()
    counted = sum(memory.session.context().costs)

    following.handle(ended(prompt, int(counted * 1.4)))

    assert 1.4 == pytest.approx(memory.stats().token_factor, abs=0.06)


def test_what_is_not_of_the_memory_is_passed_over(memory: SlidingChatMemoryBuffer, following: UsageHandler) -> None:
    """Other events, chats without an answer or a count, and prompts of others change nothing."""
    prompt = memory.get()
    others = [ChatMessage(message.content) for message in prompt]

    following.handle(LLMChatStartEvent(messages=prompt, additional_kwargs={}, model_dict={}))
    following.handle(LLMChatEndEvent(messages=prompt, response=None))
    following.handle(ended(prompt, 0))
    following.handle(ended(others, 10_000))

    assert 1.0 == memory.stats().token_factor


def test_an_engine_is_heard(memory: SlidingChatMemoryBuffer, following: UsageHandler) -> None:
    """A chat engine's model reports through the dispatcher, without a word to the memory."""
    llm = ScriptedLLM.of(usage={"prompt_tokens": 10_000})

    SimpleChatEngine.from_defaults(llm=llm, memory=memory).chat("And one back, please.")
    get_dispatcher().event(ended(memory.get(), 10_000))

    assert 2.0 == memory.stats().token_factor
    assert "UsageHandler" == following.class_name()
