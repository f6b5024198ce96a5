"""Decides what of a message it is found by: its words, those of its calls, who said it, and when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from slidemem.messages import Message
from slidemem.terms import Terms, terms


@dataclass(frozen=True, slots=True)
class Post:
    """What recall finds a message by.

    Attributes:
        terms: of what it says.
        at: when it was said, in seconds since 1970.
        speaker: its name in lower case, "" when it has none.
    """

    terms: Terms
    at: float
    speaker: str = ""


NOTHING: Final = Post(Terms({}, 0), 0.0)


def post_of(message: Message, at: float, redact: Callable[[str], str] | None = None) -> Post:
    """What a message is found by; a system prompt is found by nothing.

    Args:
        message: the message.
        at: when it was said, in seconds since 1970.
        redact: changes what it says before anything is made of it.
    """
    said = "" if message.role == "system" else findable(message)
    name = message.name.lower() if message.name and message.role != "tool" else ""
    return Post(terms(redact(said) if redact else said), at, name)


def findable(message: Message) -> str:
    """What a message says, with the names and arguments of its calls; reasoning is not said."""
    calls = (f"{call.name} {call.arguments}" for call in message.tool_calls)
    return "\n".join((message.text, *calls))
