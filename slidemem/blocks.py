"""Decides what of a context's message is ours, head and quotes in front of it, and what it says itself."""

from __future__ import annotations

from typing import NamedTuple

from slidemem.head import TAG
from slidemem.messages import Message


class Blocks(NamedTuple):
    """The text of a context's message in its parts, "" for one that it does not have.

    Attributes:
        head: pins and archive.
        quotes: old messages.
        own: what it says itself.
    """

    head: str
    quotes: str
    own: str


def blocks(message: Message) -> Blocks:
    """What we put in front of a message, and its own text."""
    kinds = message.mark.kinds if message.mark else ()
    rest, ours = message.text, {"head": "", "recall": ""}
    for kind in ours:
        if kind in kinds:
            block, fence, rest = rest.partition(f"</{TAG}>")
            ours[kind], rest = block + fence, rest.removeprefix("\n\n").removeprefix("\n")
    return Blocks(ours["head"], ours["recall"], rest)


def readable(message: Message) -> str:
    """What a message says to a model: its own text, without head and quotes, and its calls."""
    return "\n".join((blocks(message).own, *(f"{call.name} {call.arguments}" for call in message.tool_calls)))
