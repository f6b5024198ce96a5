"""What a session of the clients' tests says: 200 turns with everything in them that has broken a memory."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from strict_provider import directive

BUDGET = 2500
TOOLS = 250  # tokens of tools and system prompt, where a memory does not see them
SYSTEM = "You are a travel agent. Look things up before you answer."
PIXEL = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001"
        "5d2d1e3b0000000049454e44ae426082"
    )
).decode("ascii")

Kind = Literal["plain", "interrupted", "restart"]


@dataclass(frozen=True)
class Line:
    """What is said in one turn.

    Attributes:
        text: of the user.
        picture: whether a picture goes with it.
        kind: whether the turn runs through, is broken off, or comes after a restart.
    """

    text: str
    picture: bool
    kind: Kind


def lines(turns: int, *, tools: bool, think: bool, pictures: bool = True) -> Iterator[Line]:
    """A session.

    Args:
        turns: how many; an oversize paste, an interrupted run and a restart are among any twenty.
        tools: whether tools are called: one at a time, several at once, several rounds.
        think: whether the model thinks before it answers.
        pictures: whether pictures are sent.
    """
    for n in range(turns):
        called = tools and n % 2 == 0
        asked = directive(
            tools=(n // 2) % 3 + 1 if called else 0,
            rounds=2 if n % 10 == 4 else 1,
            think=think and n % 3 != 2,
            say=30 if n % 5 == 0 else 0,
        )
        pad = "and mind the usual wishes about the seat by the window, the lower berth and the vegetarian meal"
        paste = "\n".join(f"{row}: train {row * 7} leaves at {row % 24}:00" for row in range(2500))
        text = f"Turn {n}: please book seat {n}A from Mumbai to Pune for reference REF-{n:04}, {pad}."
        yield Line(
            f"{text}\n{paste}\n{asked}" if n % 100 == 17 else f"{text} {asked}",
            picture=pictures and n % 40 == 6,
            kind="interrupted" if n % 50 == 12 else "restart" if n % 100 == 15 else "plain",
        )
