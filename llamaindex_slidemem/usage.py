"""Decides what LlamaIndex's events tell of the prompts that a memory made, so that it can correct its budget.

A memory never sees a reply's usage: engines and agents store its text. The framework's dispatcher tells of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import BaseModel, PrivateAttr
from llama_index.core.instrumentation.events.llm import LLMChatEndEvent
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.event_handlers import BaseEventHandler

from llamaindex_slidemem.buffer import SlidingChatMemoryBuffer
from llamaindex_slidemem.codec import LlamaIndexCodec
from llamaindex_slidemem.remembered import RememberedMessage

_CODEC: Final = LlamaIndexCodec()
_USAGE: Final = ("usage", "usage_metadata")
_WHOLE: Final = ("prompt_tokens", "prompt_token_count")  # OpenAI's and Gemini's, cached tokens among them
_APART: Final = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")  # Anthropic's add up


class UsageHandler(BaseEventHandler):
    """Tells a memory what providers report of the prompts that hold its messages.

    Args:
        memory: with `correct_counts=True`; another one learns nothing.
    """

    _memory: SlidingChatMemoryBuffer = PrivateAttr()

    def __init__(self, memory: SlidingChatMemoryBuffer) -> None:
        super().__init__()
        self._memory = memory

    @classmethod
    def class_name(cls) -> str:
        """The handler's name."""
        return "UsageHandler"

    def handle(self, event: Any, **kwargs: Any) -> None:  # noqa: ARG002  # the base's signature
        """Take the end of a chat with a model; anything else is passed over."""
        if not isinstance(event, LLMChatEndEvent) or event.response is None:
            return
        messages: Sequence[ChatMessage] = event.messages
        tokens = prompt_tokens(event.response.raw)
        if tokens and any(isinstance(message, RememberedMessage) for message in messages):
            self._memory.session.report(tokens, _CODEC.encode_all(messages))


def follow_usage(memory: SlidingChatMemoryBuffer) -> UsageHandler:
    """Let a memory follow what providers report in this process; see `correct_counts` of `slidemem.Options`.

    Returns:
        The handler, which stands at the root dispatcher until it is taken off its `event_handlers`.
    """
    handler = UsageHandler(memory)
    get_dispatcher().add_event_handler(handler)
    return handler


def prompt_tokens(raw: object) -> int:
    """Tokens of a prompt as a client's raw answer reports them; 0 where it does not."""
    answer = _fields(raw)
    usage: dict[str, Any] = {}
    for name in _USAGE:
        usage = usage or _fields(answer.get(name))
    whole = next((usage[name] for name in _WHOLE if usage.get(name)), 0)
    apart = [usage.get(name) or 0 for name in _APART]
    return int(whole or sum(apart))


def _fields(value: object) -> dict[str, Any]:
    if isinstance(value, BaseModel):
        return dict(value)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
