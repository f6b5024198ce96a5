"""The bar of a long consolidation."""

import importlib
import sys
from typing import Any

import pytest

from slidemem import Event, MissingExtra, SlideMem
from slidemem.show import progress
from slidemem.show.progress import ProgressBars


class Bar:
    """A bar that keeps what is done to it."""

    made: list["Bar"]

    def __init__(self, total: int, desc: str, unit: str) -> None:
        self.total, self.desc, self.unit = total, desc, unit
        self.moved, self.closed = 0, 0
        self.made.append(self)

    def update(self, by: int) -> None:
        """Move."""
        self.moved += by

    def close(self) -> None:
        """End."""
        self.closed += 1


@pytest.fixture(autouse=True)
def made() -> list[Bar]:
    """The bars of a test."""
    Bar.made = []
    return Bar.made


def told(kind: Any, done: int = 0, of: int = 0, session: str = "s") -> Event:
    """Return an event."""
    return Event(kind, session, "", 0, 9, done=done, of=of)


def summarize(messages: list[dict[str, Any]]) -> str:
    """Keep the first of a span."""
    return f"- user: {messages[0]['content']}"


@pytest.mark.parametrize("mode", ["inline", "background"])
def test_a_span_in_pieces_moves_a_bar(mode: str, made: list[Bar]) -> None:
    """The bar has as many steps as the summariser is asked about pieces, moves once for each, and is closed once."""
    asked: list[int] = []
    heard: list[str] = []

    def counted(messages: list[dict[str, Any]]) -> str:
        asked.append(len(messages))
        return summarize(messages)

    bars = ProgressBars(lambda event: heard.append(event.kind), Bar)
    options = {"summary_input_tokens": 500, "archive_share": 0.4}
    mem = SlideMem(max_tokens=3000, counter="approximate", consolidator=counted, mode=mode, on_event=bars, **options)
    chat = mem.session("s")
    said = [
        {"role": role, "content": f"Room {n} costs {n + 100} EUR. " + "word " * 20}
        for n in range(60)
        for role in ("user", "assistant")
    ]
    chat.append(said)
    chat.flush()

    assert [1] == [bar.closed for bar in made]
    assert [bar.total for bar in made] == [bar.moved for bar in made]
    assert made[0].total > 2
    assert len(asked) >= made[0].total
    assert made[0].desc.startswith("messages 0 to ")
    assert made[0].desc.endswith(" of 's'")
    assert "summarizing" in heard
    assert "consolidated" in heard


@pytest.mark.parametrize("end", ["consolidated", "refused", "postponed", "lost_race"])
def test_a_bar_ends_with_its_span(end: str, made: list[Bar]) -> None:
    """Whatever ends the work closes the bar of its session, and of no other."""
    bars = ProgressBars(bar=Bar)
    for event in (
        told("summarizing", 0, 4),
        told("summarizing", 0, 3, "other"),
        told("summarizing", 1, 4),
        told(end),
    ):
        bars(event)

    assert [(1, 1), (0, 0)] == [(bar.moved, bar.closed) for bar in made]


def test_a_span_that_begins_anew_has_a_new_bar(made: list[Bar]) -> None:
    """A bar that nobody ended is closed by the next; what moves without one is passed over."""
    bars = ProgressBars(bar=Bar)
    bars(told("summarizing", 2, 4))
    bars(told("recalled"))
    for _ in range(2):
        bars(told("summarizing", 0, 4))

    assert [1, 0] == [bar.closed for bar in made]


def test_a_span_in_one_piece_tells_nothing(made: list[Bar]) -> None:
    """Where one prompt holds the span, no event tells of pieces, and there is no bar."""
    heard: list[Event] = []
    mem = SlideMem(max_tokens=600, counter="approximate", consolidator=summarize, on_event=heard.append)
    mem.session("s").append(
        [{"role": "user", "content": f"Room {n} costs 100 EUR. " + "word " * 9} for n in range(90)]
    )

    assert {"summarizing"}.isdisjoint(event.kind for event in heard)
    assert [] == made


def test_without_tqdm_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where tqdm is not installed, the error says what to install."""
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)

    with pytest.raises(MissingExtra, match=r"pip install 'slidemem\[notebooks\]'"):
        importlib.reload(progress)

    monkeypatch.undo()
    importlib.reload(progress)
