"""The figures that documents tell are what is measured."""

from __future__ import annotations

import json
import re

import pytest
from pages import ROOT, text

from slidemem.cli import main

BETWEEN = re.compile(r"<!-- short -->\n(.*?)<!-- /short -->", re.DOTALL)
PEERS = ROOT / "benchmarks" / "results" / "peers.md"


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
    measured = BETWEEN.search(PEERS.read_text(encoding="utf-8")) if PEERS.exists() else None
    shown = BETWEEN.search(text("README.md"))

    assert shown is not None
    assert (measured[1] if measured else "") == shown[1]
