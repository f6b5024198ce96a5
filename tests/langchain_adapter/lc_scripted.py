"""What the adapter's tests run: a chat model that needs no network, and places where runs wait for each other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage, convert_to_openai_messages, message_chunk_to_message
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import ConfigDict, Field

from slidemem.check import violations


class Meeting:
    """A place that runs leave only when as many as expected have come."""

    def __init__(self, expected: int = 1) -> None:
        self.expected = expected
        self._threads = threading.Barrier(expected, timeout=30)
        self._came = 0
        self._all = asyncio.Event()
        self.begun = asyncio.Event()

    def wait(self) -> None:
        """Wait on a thread."""
        self._threads.wait()

    async def await_(self) -> None:
        """Wait in a task."""
        self._came += 1
        self.begun.set()
        if self._came % self.expected == 0:
            self._all.set()
        await asyncio.wait_for(self._all.wait(), 30)


class Echo(BaseChatModel):
    """Answers `re: <the last message>`, word by word; keeps the lists that it was given.

    Attributes:
        fails: raise in the place of an answer; in a stream after the first word.
        meeting: where each run waits before it answers.
        seen: the lists.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    fails: bool = False
    usage: dict[str, int] | None = None
    meeting: Any = None
    seen: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "echo"

    def answer(self, messages: list[BaseMessage]) -> str:
        """The answer to a list."""
        self.seen.append(list(messages))
        return f"re: {messages[-1].text.rpartition('</earlier-conversation>')[2].strip()}"

    def _generate(self, messages: list[BaseMessage], *given: Any, **more: Any) -> ChatResult:
        return self._result(list(self._stream(messages)))

    async def _agenerate(self, messages: list[BaseMessage], *given: Any, **more: Any) -> ChatResult:
        return self._result([chunk async for chunk in self._astream(messages)])

    def _stream(self, messages: list[BaseMessage], *given: Any, **more: Any) -> Iterator[ChatGenerationChunk]:
        if self.meeting:
            self.meeting.wait()
        yield from self._words(messages)

    async def _astream(
        self, messages: list[BaseMessage], *given: Any, **more: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        if self.meeting:
            await self.meeting.await_()
        for chunk in self._words(messages):
            yield chunk
            await asyncio.sleep(0)

    def _words(self, messages: list[BaseMessage]) -> Iterator[ChatGenerationChunk]:
        first, *rest = self.answer(messages).split(" ")
        yield ChatGenerationChunk(message=AIMessageChunk(first, usage_metadata=self.usage))
        if self.fails:
            raise ConnectionError("the model is not there")
        for word in rest:
            yield ChatGenerationChunk(message=AIMessageChunk(f" {word}"))

    def _result(self, chunks: list[ChatGenerationChunk]) -> ChatResult:
        whole = chunks[0]
        for chunk in chunks[1:]:
            whole += chunk
        return ChatResult(generations=[ChatGeneration(message=message_chunk_to_message(whole.message))])


def faults(messages: list[BaseMessage]) -> list[str]:
    """What a provider would refuse a list for."""
    converted = convert_to_openai_messages(messages)
    return [str(fault) for fault in violations(converted, providers=("openai", "anthropic", "gemini", "bedrock"))]
