"""Fakes of LlamaIndex's models, retrievers and engines, and a memory with an archive, for tests of the adapter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from typing import Any, TypeVar

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    LLMMetadata,
    ToolCallBlock,
)
from llama_index.core.base.response.schema import Response, StreamingResponse
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from llamaindex_slidemem import LlamaIndexCodec, SlidingChatMemoryBuffer

Result = TypeVar("Result")
Answer = ChatMessage | str | Callable[[Sequence[ChatMessage]], "ChatMessage | str"]

FENCE = "<earlier-conversation>\nQuoted notes"  # begins the head; quotes have a fence of their own
FACT = "allergic to peanuts"
LIMIT = 400


class ScriptedLLM(FunctionCallingLLM):
    """A model that gives the answers of its script, then "answer 1", "answer 2" ..., and records its prompts."""

    window: int = 10_000
    usage: dict[str, int] | None = None
    _script: list[Answer] = PrivateAttr(default_factory=list)
    _prompts: list[list[ChatMessage]] = PrivateAttr(default_factory=list)
    _methods: set[str] = PrivateAttr(default_factory=set)

    @classmethod
    def of(cls, *script: Answer, **fields: Any) -> ScriptedLLM:
        """A model with a script."""
        llm = cls(**fields)
        llm._script = list(script)
        return llm

    @property
    def prompts(self) -> list[list[ChatMessage]]:
        """What it was asked, call by call."""
        return self._prompts

    @property
    def methods(self) -> set[str]:
        """Whether it was asked with `chat` or `achat`."""
        return self._methods

    @property
    def metadata(self) -> LLMMetadata:
        """A chat model that calls functions."""
        return LLMMetadata(context_window=self.window, is_chat_model=True, is_function_calling_model=True)

    def _answer(self, messages: Sequence[ChatMessage]) -> ChatMessage:
        self._prompts.append([message.model_copy(deep=True) for message in messages])
        answer: Any = self._script.pop(0) if self._script else f"answer {len(self._prompts)}"
        if callable(answer) and not isinstance(answer, ChatMessage):
            answer = answer(messages)
        return ChatMessage(role="assistant", content=answer) if isinstance(answer, str) else answer

    def _response(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        message = self._answer(messages)
        return ChatResponse(message=message, delta=message.content, raw={"usage": self.usage} if self.usage else None)

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """The next answer."""
        self._methods.add("chat")
        return self._response(messages)

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """The next answer."""
        self._methods.add("achat")
        await asyncio.sleep(0)
        return self._response(messages)

    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Generator[ChatResponse, None, None]:
        """The next answer, in one piece."""
        yield self._response(messages)

    async def astream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> AsyncGenerator[ChatResponse, None]:
        """The next answer, in one piece."""

        async def stream() -> AsyncGenerator[ChatResponse, None]:
            await asyncio.sleep(0)
            yield self._response(messages)

        return stream()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:  # noqa: FBT001, FBT002  # the base's
        """The next answer."""
        return CompletionResponse(text=self._answer([ChatMessage(prompt)]).content or "")

    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:  # noqa: FBT001, FBT002  # the base's
        """The next answer."""
        return self.complete(prompt)

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:  # noqa: FBT001, FBT002  # the base's
        """Never asked."""
        raise NotImplementedError

    async def astream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:  # noqa: FBT001, FBT002  # the base's
        """Never asked."""
        raise NotImplementedError

    def _prepare_chat_with_tools(
        self,
        tools: Any,
        user_msg: str | ChatMessage | None = None,
        chat_history: list[ChatMessage] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        last = [ChatMessage(user_msg)] if isinstance(user_msg, str) else [user_msg] if user_msg else []
        return {"messages": [*(chat_history or ()), *last]}

    def get_tool_calls_from_response(
        self,
        response: ChatResponse,
        error_on_no_tool_call: bool = True,  # noqa: FBT001, FBT002  # the base's
        **kwargs: Any,
    ) -> list[ToolSelection]:
        """The calls in the answer's blocks."""
        return [
            ToolSelection(
                tool_id=block.tool_call_id or "",
                tool_name=block.tool_name,
                tool_kwargs=block.tool_kwargs if isinstance(block.tool_kwargs, dict) else {},
            )
            for block in response.message.blocks
            if isinstance(block, ToolCallBlock)
        ]


class FixedRetriever(BaseRetriever):
    """Finds the same text for every question."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(text="retrieved text"), score=1.0)]


class AskingEngine(CustomQueryEngine):
    """A query engine that asks a model; the question is all that it gets."""

    llm: ScriptedLLM
    streaming: bool = False

    def custom_query(self, query_str: str) -> Any:
        """The model's answer."""
        text = str(self.llm.complete(query_str))
        return StreamingResponse(response_gen=iter([text])) if self.streaming else Response(text)


def words(text: str) -> list[str]:
    """A tokenizer."""
    return text.split()


def turn(at: int) -> list[ChatMessage]:
    """A question and its answer, 18 words."""
    return [
        ChatMessage(role="user", content=f"Please book seat {at}A on the train to Pune."),
        ChatMessage(role="assistant", content=f"Seat {at}A is booked, your reference is PNR-{at:04}."),
    ]


def history(turns: int = 40) -> list[ChatMessage]:
    """A conversation that begins with a fact; none of no turns."""
    if not turns:
        return []
    first = ChatMessage(role="user", content=f"I am {FACT}, and my name is Meera.")
    return [first, turn(0)[1], *(message for at in range(1, turns) for message in turn(at))]


def filled(turns: int = 40, **options: Any) -> SlidingChatMemoryBuffer:
    """A memory whose archive holds the fact."""
    memory = SlidingChatMemoryBuffer.from_defaults(
        **{"token_limit": LIMIT, "tokenizer_fn": words, "archive_share": 0.3, **options}
    )
    memory.put_messages(history(turns))
    while memory.session.consolidate():
        pass
    return memory


def cost(messages: Sequence[ChatMessage]) -> int:
    """Words of messages, by the memory's own counter."""
    memory = SlidingChatMemoryBuffer.from_defaults(tokenizer_fn=words)
    return memory.session.count(LlamaIndexCodec().encode_all(messages))


def awaited(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """What a coroutine returns, within half a minute."""
    return asyncio.run(asyncio.wait_for(coroutine, 30))


def texts(messages: Sequence[ChatMessage]) -> list[str]:
    """Role and text of messages."""
    return [f"{message.role.value}: {message.content}" for message in messages]
