"""Decides how a LlamaIndex model writes the archive: what it is asked, and what of its answer is heard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole

from slidemem import ConfigurationError, SummaryRequest

_SYSTEM: Final = (
    "You keep the notes of a conversation that goes on without you. Answer with the notes and nothing else."
)
_READ: Final = ("prompt_tokens", "input_tokens", "prompt_token_count")
_WROTE: Final = ("completion_tokens", "output_tokens", "candidates_token_count")


class LLMConsolidator:
    """A slidemem `Consolidator` that asks a LlamaIndex model: `chat` for sync callers, `achat` for async ones.

    Args:
        llm: any LlamaIndex `LLM`. What it reads and writes, as its provider counts, is in the memory's `stats()`.

    Raises:
        ConfigurationError: it is no LlamaIndex model.
    """

    def __init__(self, llm: BaseLLM) -> None:
        if not isinstance(llm, BaseLLM):
            raise ConfigurationError(f"LLMConsolidator takes a LlamaIndex LLM, got {type(llm).__name__}")
        self._llm = llm

    def summarize(self, request: SummaryRequest) -> str:
        """The notes of the request's span; what the model raises counts as no answer."""
        return _heard(self._llm.chat(_asked(request)), request)

    async def asummarize(self, request: SummaryRequest) -> str:
        """Async twin of `summarize`."""
        return _heard(await self._llm.achat(_asked(request)), request)


def _asked(request: SummaryRequest) -> list[ChatMessage]:
    return [
        ChatMessage(role=MessageRole.SYSTEM, content=_SYSTEM),
        ChatMessage(role=MessageRole.USER, content=request.prompt),
    ]


def _heard(response: ChatResponse, request: SummaryRequest) -> str:
    """The text of the answer, thinking left out; its usage is told."""
    usage = _usage(response)
    request.used(_tokens(usage, _READ), _tokens(usage, _WROTE))
    return response.message.content or ""


def _usage(response: ChatResponse) -> object:
    """Where the provider's counts are: beside its raw answer, or in the response."""
    for name in ("usage", "usage_metadata"):
        found = _item(response.raw, name)
        if found is not None:
            return found
    return cast("Any", response).additional_kwargs


def _tokens(usage: object, names: tuple[str, ...]) -> int:
    found = (_item(usage, name) for name in names)
    return next((value for value in found if isinstance(value, int)), 0)


def _item(of: Any, name: str) -> object:
    return cast("Mapping[str, object]", of).get(name) if isinstance(of, Mapping) else getattr(of, name, None)
