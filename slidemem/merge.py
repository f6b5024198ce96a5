"""Decides what is left of several segments when they become one.

A summariser is asked to write their notes shorter; where it is refused, and for the extractive consolidator,
whole lines are kept by their importance, which fades with age unless a line states a preference, a prohibition
or a decision. So nothing is extracted from an extract.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from slidemem.archive import Retention
from slidemem.consolidate import Written, write
from slidemem.corrections import with_marks
from slidemem.cues import Cue
from slidemem.extract import most_important
from slidemem.messages import Message, Part, Role
from slidemem.request import SummaryRequest
from slidemem.retention import facts, held

_SPOKEN: Final = re.compile(r"- (system|user|assistant|tool): (.*)")
_ROLES: Final[dict[str, Role]] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


async def merge(
    ask: Callable[[SummaryRequest], Awaitable[str]] | None,
    texts: Sequence[str],
    target_tokens: int,
    count: Callable[[str], int],
    cues: tuple[Cue, ...] = (),
) -> Written:
    """One text in the place of several.

    Args:
        ask: the summariser; None keeps lines by their importance.
        texts: oldest first.
        target_tokens: what the text may take.
        count: tokens of a text.
        cues: a user's own.
    """
    lines = with_marks(list(dict.fromkeys(line for text in texts for line in text.splitlines())))
    whole = "\n".join(lines)
    found = facts(whole)
    if count(whole) <= target_tokens:
        return Written(whole, "joined", Retention(len(found), len(found)))
    refusals: tuple[str, ...] = ()
    if ask:
        request = SummaryRequest(tuple(map(_as_said, lines)), "", target_tokens, count, cues=cues)
        written = await write(ask, request)
        if written.method == "summarizer":
            return written
        refusals = written.refusals
    kept = most_important(lines, lambda some: count("\n".join(some)) <= target_tokens, cues)
    text = "\n".join(kept)
    return Written(text, "extractive", Retention(len(found), len(held(found, text))), refusals)


def _as_said(line: str) -> Message:
    """A line of the archive as the message it was taken from; a summariser's own line counts as the assistant's."""
    spoken = _SPOKEN.match(line)
    role, text = spoken.groups() if spoken else ("assistant", line)
    return Message(_ROLES[role], (Part("text", text),))
