"""LlamaIndex's memories behind the benchmark's protocol: both buffers, and `Memory` with and without blocks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from embedded import vector_blocks
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, LLMMetadata
from llama_index.core.llms import CustomLLM
from llama_index.core.memory import ChatMemoryBuffer, ChatSummaryMemoryBuffer, FactExtractionMemoryBlock
from llama_index.core.memory import Memory as LlamaMemory
from speech import Said

from llamaindex_slidemem import LlamaIndexCodec
from peers.protocol import Memory, Setting
from slidemem import from_openai, to_openai

_CODEC = LlamaIndexCodec()


class Model(CustomLLM):
    """A language model that is a script."""

    setting: Any

    @property
    def metadata(self) -> LLMMetadata:
        """Of a chat model."""
        return LLMMetadata(is_chat_model=True)

    def chat(self, messages: Sequence[ChatMessage], **more: Any) -> ChatResponse:  # noqa: ARG002
        """The script's answer."""
        answer = self.setting.script("\n".join(message.content or "" for message in messages))
        return ChatResponse(message=ChatMessage(role="assistant", content=answer))

    async def achat(self, messages: Sequence[ChatMessage], **more: Any) -> ChatResponse:
        """The same."""
        return self.chat(messages, **more)

    def complete(self, prompt: str, formatted: bool = False, **more: Any) -> CompletionResponse:  # noqa: ARG002, FBT001, FBT002
        """The same of a text."""
        return CompletionResponse(text=self.setting.script(prompt))

    def stream_complete(self, prompt: str, formatted: bool = False, **more: Any) -> Any:  # noqa: FBT001, FBT002
        """Not asked for."""
        raise NotImplementedError


def read(said: Said) -> ChatMessage:
    """A message of LlamaIndex."""
    return _CODEC.decode(from_openai(said))


def written(messages: Sequence[ChatMessage]) -> list[Said]:
    """Messages in OpenAI format."""
    return [to_openai(_CODEC.encode(message), portable=True) for message in messages]


class Buffer(Memory):
    """`ChatMemoryBuffer`."""

    def __init__(self, setting: Setting) -> None:
        self._own = setting.count
        self._limit = setting.budget
        self._log: list[ChatMessage] = []
        self._ends: list[int] = [0]
        self.memory = ChatMemoryBuffer.from_defaults(
            token_limit=setting.budget, tokenizer_fn=lambda text: range(setting.count(text))
        )

    def add(self, said: Said) -> None:
        """Keep it."""
        self._log.append(read(said))
        self._ends.append(self._ends[-1] + self._own.tokens(str(self._log[-1].content)))

    def fill(self, messages: Sequence[Said]) -> None:
        """Keep them."""
        for one in messages:
            self.add(one)

    def prompt(self) -> list[Said]:
        """What it gives out.

        It is given no more than the newest messages that are over its limit: it drops the oldest until the rest fits,
        and takes minutes a prompt over a long list.
        """
        at, far = len(self._log), self._ends[-1] - 1.1 * self._limit
        while at and self._ends[at] > far:
            at -= 1
        self.memory.set(self._log[max(0, at - 1) :])
        return written(self.memory.get())

    def held(self) -> list[str]:
        """Its store keeps everything."""
        return [message.content or "" for message in self._log]


class UntouchedBuffer(Buffer):
    """The same with everything in its store, for times and counts."""

    def add(self, said: Said) -> None:
        """Put it."""
        self.memory.put(read(said))

    def fill(self, messages: Sequence[Said]) -> None:
        """Set them."""
        self.memory.set([*self.memory.get_all(), *map(read, messages)])

    def prompt(self) -> list[Said]:
        """What it gives out."""
        return written(self.memory.get())


class SummaryBuffer(Memory):
    """`ChatSummaryMemoryBuffer`."""

    def __init__(self, setting: Setting) -> None:
        self._memory = ChatSummaryMemoryBuffer.from_defaults(
            llm=Model(setting=setting),
            token_limit=setting.budget,
            tokenizer_fn=lambda text: range(setting.count(text)),
        )

    def add(self, said: Said) -> None:
        """Put it."""
        self._memory.put(read(said))

    def prompt(self) -> list[Said]:
        """What it gives out."""
        return written(list(self._memory.get()))

    def held(self) -> list[str]:
        """What is left in its store."""
        return [message.content or "" for message in self._memory.get_all()]


class Queue(Memory):
    """`Memory`, with blocks or without; a tenth of its limit is flushed at a time, its own default share."""

    def __init__(self, setting: Setting, blocks: Sequence[Any] = ()) -> None:
        self._loop = asyncio.new_event_loop()
        self._memory = LlamaMemory.from_defaults(
            session_id="bench",
            token_limit=setting.budget,
            token_flush_size=setting.budget // 10,
            tokenizer_fn=lambda text: range(setting.count(text)),
            memory_blocks=list(blocks),
        )

    def add(self, said: Said) -> None:
        """Put it."""
        self._loop.run_until_complete(self._memory.aput(read(said)))

    def fill(self, messages: Sequence[Said]) -> None:
        """Put them, twenty at a time."""
        for at in range(0, len(messages), 20):
            self._loop.run_until_complete(self._memory.aput_messages(list(map(read, messages[at : at + 20]))))

    def prompt(self) -> list[Said]:
        """What it gives out."""
        return written(self._loop.run_until_complete(self._memory.aget()))

    def ask(self, question: str) -> list[Said]:
        """The same for a question, by which its blocks look for what they give out."""
        shown = self._loop.run_until_complete(self._memory.aget(input=question))
        return [*written(shown), {"role": "user", "content": question}]

    def held(self) -> list[str]:
        """All of its store, what was archived too, and what its blocks give out."""
        kept = self._loop.run_until_complete(self._memory.aget_all())
        shown = self._loop.run_until_complete(self._memory.aget())
        return [message.content or "" for message in (*kept, *shown)]

    def close(self) -> None:
        """Close its database and the loop."""
        engine = getattr(self._memory.sql_store, "_async_engine", None)
        if engine is not None:
            self._loop.run_until_complete(engine.dispose())
        self._loop.close()


class Facts(Queue):
    """`Memory` with a block that extracts facts."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, [FactExtractionMemoryBlock(llm=Model(setting=setting), max_facts=50, priority=1)])


class Vectors(Queue):
    """`Memory` with a vector block."""

    def __init__(self, setting: Setting) -> None:
        if setting.model is None:
            raise ValueError("a vector block needs an embedding model: pip install wordllama")
        super().__init__(setting, [vector_blocks(setting.model)(priority=2)])
