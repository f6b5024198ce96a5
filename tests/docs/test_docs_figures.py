"""The figures that documents tell are what is measured."""

from __future__ import annotations

import json
import re

import pytest
from compared import PEERS, short, with_short
from pages import text

from slidemem.cli import main


@pytest.mark.parametrize("budget", [2_000, 4_000, 8_000, 16_000])
def test_tuning_tells_the_figures_of_the_demo(budget: int, capsys: pytest.CaptureFixture[str]) -> None:
    """A row of its table is what `slidemem demo` comes to with that budget."""
    main(["demo", "--json", "--max-tokens", str(budget)])
    ours = json.loads(capsys.readouterr().out)
    slide = ours["one_turn_slide"]

    facts = [f"{one['facts_held']} of {ours['facts_needed']}" for one in (ours, slide)]
    reused = [f"{one['prefix_reuse']:.0%}".replace("%", " %") for one in (ours, slide)]
    cells = [f"{budget:,}", *facts, *reused]
    (row,) = re.findall(rf"^\| {budget:,} \|.*$", text("docs/tuning.md"), re.MULTILINE)
    shown = [cell.strip() for cell in row.strip("|").split("|")]
    fresh = [int(cell.replace(",", "")) for cell in shown[5:]]

    assert cells == shown[:5]
    assert fresh == pytest.approx(
        [one["prompt_tokens"] * (1 - one["prefix_reuse"]) for one in (ours, slide)], rel=0.001
    )


def test_the_readme_compares_as_the_benchmark_does() -> None:
    """Between the marks stands the short table of the benchmark's results, and nothing before there are any."""
    measured = short(PEERS.read_text(encoding="utf-8")) if PEERS.exists() else ""

    assert measured == short(text("README.md"))


def test_another_table_takes_the_place_of_the_last() -> None:
    """What stands around the marks stays; a document without marks is told of."""
    page = "# Page\n\n<!-- short -->\n| 1 |\n<!-- /short -->\nafter\n"

    assert page.replace("| 1 |\n", "| 2\\0 |\n") == with_short(page, "| 2\\0 |\n")
    with pytest.raises(LookupError, match="short"):
        short("# Page\n")
