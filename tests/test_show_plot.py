"""What is drawn of prompts."""

import importlib
import sys
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import pytest

from slidemem import ConversationMemory, MissingExtra, SlideMem
from slidemem.events import READINGS
from slidemem.replay import replay

mpl.use("agg")

from matplotlib import pyplot as plt  # after the choice of what draws

from slidemem.show import plot  # as above


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """Close what a test has drawn."""
    yield
    plt.close("all")


def said(role: str, text: str) -> dict[str, Any]:
    """Return a message."""
    return {"role": role, "content": text}


def session(turns: int) -> ConversationMemory:
    """Return a session whose context was read before each answer."""
    chat = SlideMem(max_tokens=2000, counter=len).session("s")
    for turn in range(turns):
        chat.append(said("user", f"question {turn} " + "word " * 10))
        chat.context(system="Be brief.")
        chat.append(said("assistant", f"It costs {turn + 100} EUR. " + "word " * 10))
    return chat


def heights(axes: Any) -> dict[str, list[float]]:
    """Return the bars' heights by zone."""
    return {bars.get_label(): [bar.get_height() for bar in bars] for bars in axes.containers}


def test_a_session_draws_the_contexts_that_were_read() -> None:
    """Each context is a bar of its zones, as high as they say, below the budget, on the axes that were given."""
    chat, (_, axes) = session(40), plt.subplots()

    drawn = chat.plot(axes)

    assert drawn is axes
    bars, context = heights(axes), chat.context(system="Be brief.")
    assert ["system", "archive", "window"] == list(bars)
    assert {40} == {len(of) for of in bars.values()}
    assert [9.0] * 40 == bars["system"]
    assert bars["archive"][-1] == context.zones.archive
    assert max(map(sum, zip(*bars.values(), strict=True))) <= 2000
    budget = axes.lines[0]
    assert [2000] * 40 == list(budget.get_ydata())
    assert axes.get_xlabel() == "prompt: the first after 1 messages, the last after 79"


def test_consolidations_are_marked_where_they_happened() -> None:
    """A dotted line stands between the prompts before and after the archive grew, and is named once."""
    chat = session(40)
    axes = chat.plot()
    lines = [line for line in axes.lines if line.get_linestyle() == ":"]

    assert chat.stats().consolidations - len(lines) in (0, 1)  # the last may be later than the last context
    assert len(lines) > 2
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert ["archive", "budget", "consolidated", "system", "window"] == sorted(labels)


def test_nothing_read_is_said() -> None:
    """Before the first context there is a sentence in the place of bars, and again when the session was cleared."""
    chat = session(3)
    chat.clear()

    assert "no context has been read in this process yet" == chat.plot().get_xlabel()


def test_the_newest_contexts_are_remembered() -> None:
    """Of a long session a bounded number of contexts is drawn, the newest."""
    chat = session(3)
    for _ in range(READINGS):
        chat.context()

    bars = heights(chat.plot())

    assert {READINGS} == {len(of) for of in bars.values()}
    assert "system" not in bars


def test_a_replay_is_drawn_beside_the_slide() -> None:
    """The steps of a replay are bars; tokens new to a cache are two lines that end where the report does."""
    talk = [said(role, f"{n} " + "word " * 12) for n in range(60) for role in ("user", "assistant")]
    report = replay(talk, max_tokens=2000, counter=len)
    _, (above, below) = plt.subplots(2)

    plot.zones(report.steps, above)
    lines = {line.get_label(): list(line.get_ydata()) for line in plot.new_tokens(report, below).lines}

    assert len(report.steps) == len(heights(above)["window"])
    assert sum(step.prefix.tokens - step.prefix.reused for step in report.steps) == lines["slidemem"][-1]
    assert sum(step.slide.tokens - step.slide.reused for step in report.steps) == lines["one-turn slide"][-1]
    assert lines["slidemem"][-1] < lines["one-turn slide"][-1]
    assert "tokens new to a cache" == plot.new_tokens(report).get_ylabel()


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where matplotlib is not installed, the error says what to install."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "slidemem.show.plot")

    with pytest.raises(MissingExtra, match=r"pip install 'slidemem\[notebooks\]'"):
        session(1).plot()

    monkeypatch.undo()
    importlib.reload(plot)
