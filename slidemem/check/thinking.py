"""Decides which rules hold for thinking blocks: where they stand, and that they are signed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from slidemem.check.reading import calls_of, each, parts_of, text_of
from slidemem.check.rule import Finding, Listed, Room

THINKING: Final = Room()


_THINKING: Final = ("thinking", "redacted_thinking")


@THINKING.rule("thinking-not-first", "anthropic")
def _thinking_not_first(messages: Listed) -> Iterator[Finding]:
    """Where an answer to the last user message thinks, its first assistant message starts with thinking.

    Anthropic: "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled,
    a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use`
    and `tool_result` blocks)." https://github.com/anomalyco/opencode/issues/3077
    """
    asked = max((index for index, _ in each(messages, "user")), default=-1)
    answers = [(index, message) for index, message in each(messages, "assistant") if index > asked]
    kinds = [[part.get("type") for part in parts_of(message)] for _, message in answers]
    thinks = any(kind in _THINKING for part_kinds in kinds for kind in part_kinds)
    if thinks and not any(kind in _THINKING for kind in kinds[0][:1]):
        yield Finding(answers[0][0], "the answer thinks later, but does not start with a thinking block")


@THINKING.rule("thinking-signature", "anthropic")
def _thinking_signature(messages: Listed) -> Iterator[Finding]:
    """A thinking block carries its signature.

    Anthropic: "thinking.signature: Field required"
    https://github.com/WordPress/ai-provider-for-anthropic/pull/27
    """
    for index, message in enumerate(messages):
        thinking = (part for part in parts_of(message) if part.get("type") == "thinking")
        if not all(text_of(part.get("signature")) for part in thinking):
            yield Finding(index, "a thinking block without signature")


@THINKING.rule("final-thinking", "anthropic")
def _final_thinking(messages: Listed) -> Iterator[Finding]:
    """A list does not end with a thinking block.

    Anthropic: "messages.N: The final block in an assistant message cannot be `thinking`."
    https://github.com/router-for-me/CLIProxyAPI/issues/5321
    """
    for message in messages[-1:]:
        last = [part.get("type") for part in parts_of(message)[-1:]]
        if not calls_of(message) and any(kind in _THINKING for kind in last):
            yield Finding(len(messages) - 1, "the last block is thinking")
