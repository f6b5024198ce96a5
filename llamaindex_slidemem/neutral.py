"""Decides how a ChatMessage reads in the neutral form: its role, its parts, its calls. A block is `parts.py`'s."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final, Literal, cast

from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock

from llamaindex_slidemem.parts import part_of
from llamaindex_slidemem.values import plain
from slidemem import Part, ToolCall

Role = Literal["system", "user", "assistant", "tool"]

ROLES: Final[Mapping[MessageRole, Role]] = {
    MessageRole.SYSTEM: "system",
    MessageRole.DEVELOPER: "system",
    MessageRole.USER: "user",
    MessageRole.ASSISTANT: "assistant",
    MessageRole.CHATBOT: "assistant",
    MessageRole.MODEL: "assistant",
    MessageRole.TOOL: "tool",
    MessageRole.FUNCTION: "tool",
}


def parts_of(message: ChatMessage) -> tuple[Part, ...]:
    """The content of a message, its calls left out where they are an assistant's."""
    calling = ROLES[message.role] == "assistant"
    return tuple(part_of(block) for block in message.blocks if not (calling and isinstance(block, ToolCallBlock)))


def calls_of(message: ChatMessage) -> tuple[ToolCall, ...]:
    """The calls of an assistant message: its blocks, or what older integrations left in `additional_kwargs`."""
    if ROLES[message.role] != "assistant":
        return ()
    blocks = [block for block in message.blocks if isinstance(block, ToolCallBlock)]
    if blocks:
        return tuple(
            ToolCall(block.tool_call_id or "", block.tool_name, _text(block.tool_kwargs)) for block in blocks
        )
    older = message.additional_kwargs.get("tool_calls")
    if isinstance(older, Iterable) and not isinstance(older, (str, bytes)):
        return tuple(map(_older_call, cast("Iterable[object]", older)))
    legacy = message.additional_kwargs.get("function_call")
    return (_older_call({"function": legacy}),) if legacy else ()


def _older_call(call: object) -> ToolCall:
    """A call as OpenAI, Anthropic or Gemini integrations left it: a dict, or their own object.

    `{"id": …, "function": {"name": …, "arguments": …}}`, or flat with `input` or `args`.
    """
    body = _item(call, "function") or call
    given = (_item(body, key) for key in ("arguments", "input", "args"))
    arguments = next((value for value in given if value is not None), "")
    return ToolCall(str(_item(call, "id") or ""), str(_item(body, "name") or ""), _text(arguments))


def _item(of: object, name: str) -> object:
    return cast("Mapping[str, object]", of).get(name) if isinstance(of, Mapping) else getattr(of, name, None)


def _text(arguments: object) -> str:
    """Arguments as text: as the model wrote them, or as JSON."""
    if isinstance(arguments, str):
        return arguments
    if isinstance(arguments, Mapping):  # a provider's own mapping, too
        arguments = dict(cast("Mapping[str, object]", arguments))
    return json.dumps(plain(arguments), ensure_ascii=False)
