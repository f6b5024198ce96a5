"""Decides which of a span's own lines are kept, word for word, within a target.

Lines are chosen by what they state for their length, each weighed anew by what is kept by then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Final

from slidemem.archive import Retention
from slidemem.cues import Cue
from slidemem.facts import Fact
from slidemem.messages import Role
from slidemem.request import SummaryRequest
from slidemem.retention import Statement, held, importance, statements, states, stems

_AGAIN: Final = 0.8  # what a message's next line counts, so that no message takes all
_LENGTHY: Final = 0.2  # what a statement counts in an explanation of a thousand characters
_TOLD: Final = 0.35  # of its words that a summary has when it tells a statement without a fact
_MISSES: Final = 6  # lines that did not fit before the rest is left


def completed(text: str, span: Span, request: SummaryRequest) -> str:
    """The summary with verbatim lines for the facts it lacks, most important first, within the target."""
    known = {fact.key for fact in held(span.facts, text)}
    said = stems(text)
    page = _Page(request, text, request.count(text) if text else 0)
    _fill(page, [line for line in span.lines if _lacks(line.stated, known, said)], known)
    return page.finished()


def most_important(
    lines: Sequence[str], fits: Callable[[Sequence[str]], bool], cues: tuple[Cue, ...] = ()
) -> list[str]:
    """Whole lines that fit, the most important first, and what states something for the room that is left, in order.

    Args:
        lines: oldest first.
        fits: whether some of them fit; true for fewer lines when it is for more.
        cues: a user's own.
    """
    newest = len(lines) - 1
    ranked = sorted(range(len(lines)), key=lambda at: -importance(lines[at], newest - at, cues))

    def in_order(places: Sequence[int]) -> list[str]:
        return [lines[at] for at in sorted(places)]

    fitting, over = 0, len(lines) + 1
    while over - fitting > 1:
        middle = (fitting + over) // 2
        fitting, over = (middle, over) if fits(in_order(ranked[:middle])) else (fitting, middle)
    kept = ranked[:fitting]
    for at in ranked[over : over + _MISSES]:  # shorter ones for what is left
        if states(lines[at], cues) and fits(in_order([*kept, at])):
            kept = [*kept, at]
    return in_order(kept)


def _lacks(stated: Statement, known: set[str], said: frozenset[str]) -> bool:
    """Whether a summary, of these word stems, leaves out a fact of a statement; or most of one without a fact."""
    if stated.facts:
        return not known.issuperset(stated.facts)
    words = stems(stated.text)
    return len(words & said) <= len(words) * _TOLD


def extracted(span: Span, request: SummaryRequest) -> str:
    """The span's own lines that state most, in the order they were said, within the target."""
    page = _Page(request)
    _fill(page, span.lines, set())
    return page.finished()


@dataclass(frozen=True, slots=True)
class _Line:
    """A statement as a line of the archive.

    Attributes:
        place: in the span.
        message: the message it is from.
        role: who said it.
        stated: what it says.
        share: of its worth that counts: less in an assistant's long explanation.
    """

    place: int
    message: int
    role: str
    stated: Statement
    share: float = 1.0

    @property
    def text(self) -> str:
        return f"- {self.role}: {self.stated.text}"


@dataclass(frozen=True, slots=True)
class Span:
    """What is summarised.

    Attributes:
        text: all of it.
        lines: what it states.
        facts: all that it holds.
    """

    text: str
    lines: tuple[_Line, ...]
    facts: frozenset[Fact]

    @classmethod
    def of(cls, spoken: Sequence[tuple[Role, str]], cues: tuple[Cue, ...] = ()) -> Span:
        """The span of pairs of role and text."""
        said = [
            (message, stated.role or role, stated, 1.0 if role == "user" else _LENGTHY ** (len(text) / 1000))
            for message, (role, text) in enumerate(spoken)
            for stated in statements(text, cues, role)
        ]
        return cls(
            text="".join(f"{text}\n" for _, text in spoken),
            lines=tuple(_Line(place, *line) for place, line in enumerate(said)),
            facts=frozenset(fact for _, _, stated, _ in said for fact in stated.facts.values()),
        )

    @property
    def length(self) -> int:
        """Characters of it."""
        return len(self.text)

    def retention(self, text: str) -> Retention:
        """How many of its facts a text holds."""
        return Retention(len(self.facts), len(held(self.facts, text)) if text else 0)


@dataclass(slots=True)
class _Page:
    """Takes lines as long as they fit into the target.

    Attributes:
        request: has the target.
        start: a summary that they stand below, in the order they were taken; without it they stand as they were said.
        tokens: of all of it, or more.
        misses: lines that did not fit.
    """

    request: SummaryRequest
    start: str = ""
    tokens: int = 0
    misses: int = 0
    _lines: list[_Line] = field(default_factory=list[_Line])

    def take(self, line: _Line) -> bool:
        """Take a line if it fits; lines count more one by one than together, so a full page is counted anew."""
        cost = self.request.count(f"\n{line.text}")
        if self.tokens + cost > self.request.target_tokens:
            self.tokens = self._counted()
        if self.tokens + cost > self.request.target_tokens:
            self.misses += 1
            return False
        self.tokens += cost
        self._lines.append(line)
        return True

    def finished(self) -> str:
        """The page; what was taken last goes again where lines together count more than one by one."""
        while self._lines and self._counted() > self.request.target_tokens:
            self._lines.pop()
        return self._text()

    def _counted(self) -> int:
        text = self._text()
        return self.request.count(text) if text else 0

    def _text(self) -> str:
        if self.start:
            return "\n".join((self.start, *(line.text for line in self._lines)))
        return "\n".join(line.text for line in sorted(self._lines, key=lambda line: line.place))


def _fill(page: _Page, lines: Sequence[_Line], known: set[str]) -> None:
    """Give a page the lines that state most for their length, each weighed anew by what the page says by then.

    Args:
        page: gets them.
        lines: to choose from.
        known: keys of facts that the page holds; those of the lines taken are added.
    """
    taken: Counter[int] = Counter()
    said: set[str] = set()

    def density(line: _Line) -> float:
        return line.stated.density(line.role, known) * _AGAIN ** taken[line.message] * line.share

    heap = [(-density(line), line.place, line) for line in lines]
    heapify(heap)
    while heap and page.misses <= _MISSES:
        _, place, line = heappop(heap)
        now = density(line)
        stale = page.start and line.stated.facts and known.issuperset(line.stated.facts)  # it must add to a summary
        if now <= 0 or line.text in said or stale:
            continue
        if heap and now < -heap[0][0]:
            heappush(heap, (-now, place, line))
        elif page.take(line):
            known.update(line.stated.facts)
            taken[line.message] += 1
            said.add(line.text)
