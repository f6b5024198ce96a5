"""Decides what a memory's arguments mean, and what is told of one that is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import Any, Final

from llama_index.core.base.llms.base import BaseLLM

from llamaindex_slidemem.consolidator import LLMConsolidator
from slidemem import ConfigurationError, Consolidator, Options

_WINDOW_SHARE: Final = 0.75  # of the model's context window, as ChatMemoryBuffer
DEFAULT_LIMIT: Final = 3000
_OURS: Final[Mapping[str, str]] = {
    "max_tokens": "token_limit",
    "counter": "tokenizer_fn",
    "consolidator": "summarizer",
    "transcript": "chat_store",
    "session_id": "chat_store_key",
}


def limit_of(llm: Any, token_limit: int | None) -> int:
    """The budget in tokens: the given one, else three quarters of the model's window, else 3,000.

    Raises:
        ConfigurationError: the model does not tell its window.
    """
    if llm is None:
        return DEFAULT_LIMIT if token_limit is None else token_limit
    if token_limit:
        return token_limit
    try:
        return int(llm.metadata.context_window * _WINDOW_SHARE)
    except (AttributeError, TypeError) as fault:
        raise ConfigurationError(
            f"llm gives the limit by its metadata.context_window, got {type(llm).__name__}: pass token_limit instead"
        ) from fault


def check_known(options: Iterable[str], given: Mapping[str, Any]) -> None:
    """Refuse arguments that nobody knows, as ChatMemoryBuffer does.

    Args:
        options: names that are known besides slidemem's options.
        given: what was given.

    Raises:
        ConfigurationError: one is unknown; a ValueError.
    """
    known = [name for name in (*options, *Options.model_fields) if name not in _OURS]
    unknown = {key: value for key, value in given.items() if key not in known}
    if unknown:
        said = [f"{name} is {_OURS[name]} here" for name in unknown if name in _OURS]
        told = said or [f"known are {', '.join(known)}"]
        raise ConfigurationError("; ".join((f"Unexpected kwargs: {unknown!r:.200}", *told)))


def consolidator_of(summarizer: Any) -> dict[str, Any]:
    """The argument that a summarizer means; none for None, which leaves slidemem's own.

    Raises:
        ConfigurationError: it is no model, no function and no consolidator.
    """
    if summarizer is None:
        return {}
    if isinstance(summarizer, BaseLLM):
        return {"consolidator": LLMConsolidator(summarizer)}
    if isinstance(summarizer, type) or not (callable(summarizer) or isinstance(summarizer, Consolidator)):
        got = f"the class {summarizer.__name__}" if isinstance(summarizer, type) else type(summarizer).__name__
        raise ConfigurationError(
            "summarizer must be None, a LlamaIndex LLM, a function summarize(messages) -> str, or a slidemem "
            f"Consolidator; got {got}"
        )
    return {"consolidator": summarizer}


def reserve_of(initial_token_count: Any) -> int:
    """Tokens that a caller sends besides.

    Raises:
        ConfigurationError: it is no whole number of 0 or more.
    """
    try:
        tokens = index(initial_token_count)
    except TypeError:
        tokens = -1
    if tokens < 0:
        raise ConfigurationError(
            f"initial_token_count must be a whole number of tokens, 0 or more, got {initial_token_count!r:.80}"
        )
    return tokens
