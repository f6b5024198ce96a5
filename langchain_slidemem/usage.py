"""Decides what a reply reports of the prompt that it answers, so that the memory can correct its budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from langchain_core.messages import AIMessage, BaseMessage

from slidemem import ConversationMemory, Message


class Reported(NamedTuple):
    """What a provider counted.

    Attributes:
        tokens: of the prompt, those from its cache among them.
        model: who counted; "" where the reply does not say.
    """

    tokens: int
    model: str


def reported(messages: Sequence[BaseMessage]) -> Reported | None:
    """What the first reply reports: later ones answer prompts that hold it already. None where it reports nothing."""
    reply = next((message for message in messages if isinstance(message, AIMessage)), None)
    if reply is None or not reply.usage_metadata:
        return None
    told = cast("dict[str, Any]", reply.response_metadata)
    name = told.get("model_name") or told.get("model") or ""
    return Reported(int(reply.usage_metadata["input_tokens"]), str(name))


def report(
    chat: ConversationMemory, messages: Sequence[BaseMessage], sent: Sequence[Message], beside: int = 0
) -> None:
    """Tell the memory what a reply reports.

    Args:
        chat: the session.
        messages: what came of a prompt.
        sent: the prompt, as far as we know it.
        beside: tokens of the rest that we know of.
    """
    told = reported(messages)
    if told and sent:
        chat.report(told.tokens, list(sent), beside=beside, model=told.model)
