"""What a benchmark finds: figures, what they should be, the table they are printed in, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Wanted:
    """What a figure should be."""

    sense: Literal["exactly", "at most", "at least"]
    limit: float

    def met(self, measured: float) -> bool:
        """Whether a measured figure is so."""
        if self.sense == "exactly":
            return measured == self.limit
        return measured <= self.limit if self.sense == "at most" else measured >= self.limit


@dataclass(frozen=True)
class Figure:
    """One row of the table.

    Attributes:
        name: what was measured.
        measured: None when it could not be measured here.
        wanted: None for a figure that only explains the one above it.
        guarantee: whether the design promises it, on every machine.
    """

    name: str
    measured: float | None
    wanted: Wanted | None = None
    guarantee: bool = False

    @property
    def missed(self) -> bool:
        """Whether it was measured and is not as wanted."""
        return self.wanted is not None and self.measured is not None and not self.wanted.met(self.measured)

    @property
    def row(self) -> str:
        """The figure as a line of the table."""
        indent = "" if self.wanted else "  "
        wanted = f"{self.wanted.sense} {number(self.wanted.limit)}" if self.wanted else ""
        return f"{indent + self.name:<76}{number(self.measured):>10}   {wanted:<18}{self.verdict}".rstrip()

    @property
    def verdict(self) -> str:
        """`ok` or `missed`, where there is something to judge."""
        if self.wanted is None:
            return ""
        if self.measured is None:
            return "not measured"
        return ("missed, a guarantee" if self.guarantee else "missed") if self.missed else "ok"


def number(value: float | None) -> str:
    """A figure as the table shows it."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:.3g}"


def printed(measures: Iterable[Callable[[], Iterable[Figure]]]) -> Iterator[Figure]:
    """Every figure, printed as soon as it is there."""
    print(f"{'figure':<76}{'measured':>10}   wanted")
    for measure in measures:
        for figure in measure():
            print(figure.row, flush=True)
            yield figure


def judged(figures: Sequence[Figure]) -> int:
    """Print what was missed; 1 when a guarantee was."""
    missed = [figure for figure in figures if figure.missed]
    for figure in missed:
        print(f"{figure.verdict}: {figure.name}")
    if not missed:
        print("nothing missed")
    return int(any(figure.guarantee for figure in missed))
