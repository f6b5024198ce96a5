"""Decides where a prompt's stable part ends, and marks it for providers that keep only what is marked.

Anthropic serves from its cache what ends at a mark of an earlier prompt. A mark at the end of ours would keep a
newest user message with quotes in it, which the next prompt no longer begins with; everything before it stays.
https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from langchain_core.messages import BaseMessage

_EPHEMERAL: Final = {"cache_control": {"type": "ephemeral"}}


def mark_prefix(messages: Sequence[BaseMessage], mark: Mapping[str, Any] | None = None) -> list[BaseMessage]:
    """The messages with two marks: where their stable part ends, and at their end, for the rounds of a turn's tools.

    Args:
        messages: what is to be sent, as a memory hands it out; not changed.
        mark: what a block gets; None for Anthropic's `cache_control`.

    Returns:
        A new list. A message without text is passed over for the one before it.
    """
    marked = list(messages)
    newest = max((at for at, message in enumerate(marked) if message.type == "human"), default=0)
    for end in (newest, len(marked)):
        at = next((at for at in range(end - 1, -1, -1) if _has_text(marked[at])), None)
        if at is not None and marked[at] is messages[at]:
            content = _marked(marked[at].content, mark or _EPHEMERAL)
            marked[at] = marked[at].model_copy(update={"content": content})
    return marked


def _has_text(message: BaseMessage) -> bool:
    last = _blocks(message.content)[-1:]
    return any(block.get("type") == "text" and block.get("text") for block in last)


def _marked(content: object, mark: Mapping[str, Any]) -> list[dict[str, Any]]:
    blocks = _blocks(content)
    return [*blocks[:-1], {**blocks[-1], **mark}]


def _blocks(content: object) -> list[dict[str, Any]]:
    """Content as blocks."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    listed = cast("list[str | dict[str, Any]]", content)
    return [{"type": "text", "text": block} if isinstance(block, str) else block for block in listed]
