"""Decides which columns the tables have, what each means, which way is better, and what ours must show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from peers.times import PAUSE

Record = Mapping[str, Any]


def percent(value: float) -> str:
    """A share; what is not nothing never reads as nothing, nor what is not all as all."""
    if 0 < value < 0.001 or 0.999 < value < 1:
        return "<0.1 %" if value < 0.5 else ">99.9 %"
    return f"{100 * value:.1f} %" if 0 < value < 0.1 or 0.99 < value < 1 else f"{100 * value:.0f} %"


def plain(value: float) -> str:
    """A number of two or three figures."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def fold(value: float) -> str:
    """How many times."""
    return f"{plain(value)}×"  # noqa: RUF001  # it is what is meant


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        title: in the table.
        value: of a memory's record; None where it was not measured.
        shown: as text.
        better: the better direction; "" where it explains another column.
        group: the table that it stands in.
        least: key of a record that says whether the value is a lower bound.
    """

    title: str
    value: Callable[[Record], float | None]
    shown: Callable[[float], str]
    better: Literal["low", "high", ""]
    group: str
    least: str = ""

    def cell(self, record: Record) -> str:
        """The text of a cell."""
        value = self.value(record)
        if value is None:
            return "–"  # noqa: RUF001  # the same
        return f"{'over ' if self.least and record.get(self.least) else ''}{self.shown(value)}"


def of(key: str) -> Callable[[Record], float | None]:
    """A figure of a record."""
    return lambda record: record.get(key)


def talk(name: str, key: str) -> Callable[[Record], float | None]:
    """A figure of one conversation."""
    return lambda record: record["conversations"].get(name, {}).get(key)


def locomo(key: str) -> Callable[[Record], float | None]:
    """A figure of LoCoMo's dialogues, the mean over them."""

    def value(record: Record) -> float | None:
        found = [one[key] for name, one in record["conversations"].items() if name.startswith("locomo")]
        return sum(found) / len(found) if found else None

    return value


def lost(record: Record) -> float | None:
    """The share of messages that are lost."""
    return record["lost"] / record["lost_of"] if "lost" in record else None


RULES: Final = "What a provider sees"
COST: Final = "What a prompt cache saves"
KEPT: Final = "What is still there"
TIME: Final = "What it takes"
GROUPS: Final = (RULES, COST, KEPT, TIME)


def columns(sizes: Sequence[int]) -> tuple[Column, ...]:
    """Every column, for sessions timed at these sizes."""
    return (
        Column("over budget", of("over"), percent, "low", RULES),
        Column("worst prompt, of the budget", of("worst"), fold, "low", RULES),
        Column("invalid, no tools", of("invalid"), percent, "low", RULES),
        Column("invalid, tools", of("invalid_tools"), percent, "low", RULES),
        Column("newest question missing", of("missing"), percent, "low", RULES),
        Column("re-used, chat", talk("chat", "reuse"), percent, "high", COST),
        Column("cost per turn, chat", talk("chat", "cost"), plain, "low", COST),
        Column("of it the summariser's", talk("chat", "cost_summaries"), plain, "", COST),
        Column("word for word, mean", talk("chat", "verbatim"), percent, "", COST),
        Column("word for word, least", talk("chat", "least"), percent, "high", COST),
        Column("re-used, LoCoMo", locomo("reuse"), percent, "high", COST),
        Column("cost per turn, LoCoMo", locomo("cost"), plain, "low", COST),
        Column("re-used, a question every turn", talk("asked", "reuse"), percent, "high", COST),
        Column("cost per turn, a question every turn", talk("asked", "cost"), plain, "low", COST),
        Column("needed fact there, a question every turn", talk("asked", "needed"), percent, "high", KEPT),
        Column("needed fact there, travel", talk("travel", "needed"), percent, "high", KEPT),
        Column("evidence there, LoCoMo, 2,000 tokens", of("evidence"), percent, "high", KEPT),
        Column("critical facts, honest summariser", of("facts_honest"), percent, "high", KEPT),
        Column("critical facts, useless summariser", of("facts_useless"), percent, "high", KEPT),
        Column("messages lost for good, summariser failing", lost, percent, "low", KEPT),
        Column("turns that failed with it", of("errors"), plain, "low", KEPT),
        Column("summariser calls per 100 turns, chat", talk("chat", "calls"), plain, "low", TIME),
        Column("times a message is counted", of("counted"), plain, "low", TIME),
        Column("of them by itself", of("counted_alone"), plain, "", TIME),
        *(
            Column(f"time per turn at {size:,} messages", of(f"time_{size}"), fold, "low", TIME, f"time_{size}_least")
            for size in sizes
        ),
        Column(f"longest pause, in summaries of {PAUSE:g} s", of("pause"), plain, "low", TIME),
    )
