"""Decides which lines of an archive a later one corrects, and marks them.

A user's "no, I meant the 23rd" replaces the last date that was said before it; "the 23rd, not the 16th" says itself
what it replaces. The corrected value stands, and a line with the old one is marked, since it may hold more.
"""

# ruff: noqa: RUF001  # the signs of several scripts are what it looks for
from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from slidemem.cues import CORRECTS
from slidemem.facts import Fact
from slidemem.remembered import remembered
from slidemem.retention import REPLACED, Statement, statements

_BEFORE: Final = 24  # lines before a correction in which what it corrects is looked for
_KINDS: Final = frozenset(("email", "identifier", "url", "path", "money", "date", "time", "number", "name", "person"))
_INSTEAD: Final = re.compile(
    r"""
    (?:\b(?:not|instead\sof|rather\sthan|ignore|forget|nicht|statt|anstatt|pas|au\slieu\sde|en\svez\sde|em\svez\sde
      |y\sno|e\snão|invece\sdi)\b | 不是 | नहीं | की\sजगह)
    \s? (?:(?:the|on|at|el|la|der|den|le|o|a)\s)* (.{1,40}?) (?=[,.;:!?，。；]|$)
    """,
    re.VERBOSE | re.IGNORECASE,
)


def with_marks(lines: Sequence[str]) -> list[str]:
    """The lines of an archive, oldest first, each that a later one corrects with a mark at its end."""
    said = [_statement(line) for line in lines]
    stale = {at for place, one in enumerate(said) if one for at in _corrected(said, place, one)}
    return [f"{line}{REPLACED}" if at in stale else line for at, line in enumerate(lines)]


@remembered(4096)
def _statement(line: str) -> Statement | None:
    """What a line that is not marked yet states, of several sentences the first; remembered, as each commit asks."""
    return None if line.endswith(REPLACED) else next(iter(statements(line)), None)


def _corrected(said: Sequence[Statement | None], place: int, correction: Statement) -> Iterator[int]:
    """Places of the lines before a correction that hold what it replaces."""
    if not correction.cues & CORRECTS or correction.role not in {"user", ""}:
        return
    earlier = [(at, one) for at in range(max(0, place - _BEFORE), place) if (one := said[at])]
    old = _named(correction) or _last(correction, earlier)
    yield from (at for at, one in earlier if old & one.facts.keys() and not _says_new(one, correction, old))


def _named(correction: Statement) -> set[str]:
    """Keys of the values that a correction itself calls wrong."""
    wrong = " ".join(match[1] for match in _INSTEAD.finditer(correction.text)).lower()
    return {key for key, fact in correction.facts.items() if fact.kind in _KINDS and key in wrong}


def _last(correction: Statement, earlier: Sequence[tuple[int, Statement]]) -> set[str]:
    """Keys of the values of a correction's main kind that were said last before it."""
    kind = _main_kind(correction.facts.values())
    for _, one in reversed(earlier):
        values = {key for key, fact in one.facts.items() if fact.kind == kind}
        if values:
            return set() if values & correction.facts.keys() else values
    return set()


def _main_kind(facts: Iterable[Fact]) -> str:
    weighed = sorted((fact.weight, fact.kind) for fact in facts if fact.kind in _KINDS)
    return weighed[-1][1] if weighed else ""


def _says_new(one: Statement, correction: Statement, old: set[str]) -> bool:
    """Whether a line holds the new value too: then it has been corrected already."""
    return bool((correction.facts.keys() - old) & one.facts.keys())
