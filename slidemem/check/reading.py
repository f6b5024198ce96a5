"""Decides how a message is read: whatever is not of the format reads as absent, and a rule of its own reports it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from slidemem.check.rule import Given, Listed, Provider


def speaks(message: Given, *roles: str) -> bool:
    """Whether a message is of one of the roles."""
    return message.get("role") in roles


def is_system(message: Given) -> bool:
    """Whether a message instructs: OpenAI's two names for it."""
    return speaks(message, "system", "developer")


def mapping(value: object) -> Mapping[str, Any]:
    """An object; an empty one for anything else."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def items(value: object) -> list[Any]:
    """A list; an empty one for anything else."""
    return list(cast("Sequence[Any]", value)) if isinstance(value, (list, tuple)) else []


def text_of(value: object) -> str:
    """A text; an empty one for anything else."""
    return value if isinstance(value, str) else ""


def parts_of(message: Given) -> list[Mapping[str, Any]]:
    """The parts of a content that is a list."""
    return [mapping(part) for part in items(message.get("content"))]


def calls_of(message: Given) -> list[Mapping[str, Any]]:
    """The calls of an assistant message; nobody else calls."""
    calls = items(message.get("tool_calls")) if speaks(message, "assistant") else []
    return [mapping(call) for call in calls]


def function_of(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a call calls, and with which arguments."""
    return mapping(call.get("function"))


def call_ids(message: Given) -> list[str]:
    """The ids of a message's calls, empty ones left out."""
    ids = (text_of(call.get("id")) for call in calls_of(message))
    return [call_id for call_id in ids if call_id]


def result_id(message: Given) -> str:
    """The call that a tool message answers; empty when it does not say."""
    return text_of(message.get("tool_call_id"))


def each(messages: Listed, *roles: str) -> Iterator[tuple[int, Given]]:
    """The messages of the given roles, with their positions."""
    return ((index, message) for index, message in enumerate(messages) if speaks(message, *roles))


def each_call(messages: Listed) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Every call, with the position of its message."""
    return ((index, call) for index, message in enumerate(messages) for call in calls_of(message))


def results_after(messages: Listed, owner: int) -> range:
    """The positions of the tool messages directly after the message at `owner`."""
    end = owner + 1
    while end < len(messages) and speaks(messages[end], "tool"):
        end += 1
    return range(owner + 1, end)


def rounds(messages: Listed) -> Iterator[tuple[int, range]]:
    """Each assistant message with calls, and the positions of the tool messages directly after it."""
    for index, message in enumerate(messages):
        if calls_of(message):
            yield index, results_after(messages, index)


def needs_no_content(message: Given) -> bool:
    """Whether an assistant message needs no content: it calls a tool, refuses, or answers in sound."""
    others = ("tool_calls", "function_call", "refusal", "audio")
    return speaks(message, "assistant") and any(message.get(key) for key in others)


def refusing(patterns: Mapping[Provider, re.Pattern[str]], value: str) -> list[Provider]:
    """The providers whose pattern a value does not match whole."""
    return [provider for provider, pattern in patterns.items() if not pattern.fullmatch(value)]
