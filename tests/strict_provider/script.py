"""Decides what the model behind the server says: what the newest user message tells it to do, and nothing else.

`[do tools=2 rounds=1 think]` at the end of a user message asks for one round of two calls and a thought before each
answer. What was quoted before it asks for nothing: the last directive of the message counts.
"""

from __future__ import annotations

import re
from itertools import count

from strict_provider.wire import Asked, Call, Spoken, texts

_DIRECTIVE = re.compile(r"\[do((?: \w+(?:=\d+)?)*)\]")
_NUMBERS = count(1)


def directive(*, tools: int = 0, rounds: int = 0, think: bool = False, say: int = 0) -> str:
    """What to put at the end of a user message.

    Args:
        tools: calls at once.
        rounds: of calls before the answer.
        think: whether it thinks before each answer.
        say: words of the answer; 0 for about thirty.
    """
    asked = [f"tools={tools}", f"rounds={rounds}"] if tools else []
    asked += [*(["think"] if think else []), *([f"say={say}"] if say else [])]
    return f"[{' '.join(['do', *asked])}]"


def spoken_of(asked: Asked) -> Spoken:
    """The answer of a request."""
    number = next(_NUMBERS)
    users = [at for at, message in enumerate(asked.messages) if message["role"] == "user"]
    last = users[-1] if users else 0
    wanted = _wanted(texts(asked.messages[last].get("content")) if users else "")
    done = sum(bool(message.get("tool_calls")) for message in asked.messages[last:])
    thought = f"Let me see, step {number}: the timetable first, then the price." if _thinks(asked, wanted) else ""
    if asked.tools and done < wanted.get("rounds", 0):
        calls = tuple(
            Call(f"call_{number:06}_{n}", asked.tools[0], {"query": f"platform of train {number * 10 + n}"})
            for n in range(wanted.get("tools", 1))
        )
        return Spoken("", calls, thought, number)
    return Spoken(_said(number, wanted.get("say", 0)), (), thought, number)


def _thinks(asked: Asked, wanted: dict[str, int]) -> bool:
    return asked.thinks and "think" in wanted


def _wanted(text: str) -> dict[str, int]:
    found = _DIRECTIVE.findall(text)
    pairs = (word.partition("=") for word in (found[-1] if found else "").split())
    return {name: int(value or 1) for name, _, value in pairs}


def _said(number: int, words: int) -> str:
    said = f"Seat {number % 40 + 1}A on train {12000 + number} is booked, reference PNR-{number:05}."
    more = f"It leaves from platform {number % 9 + 1} at {number % 24:02}:{number % 60:02}, bring your identity card."
    return " ".join([said, more, *(["really"] * words)])
