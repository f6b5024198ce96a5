"""The tables of the comparison say what was measured, what was not, and where another memory is ahead."""

from __future__ import annotations

from typing import Any

import pytest
from peers import soak, table
from peers.columns import Column, columns, percent
from peers.memories import KINDS

SIZES = (1_000,)


def record(**changed: Any) -> dict[str, Any]:
    """A memory's record, the same figure everywhere."""
    talk = {
        "reuse": 0.5,
        "cost": 100.0,
        "cost_summaries": 0.0,
        "verbatim": 0.5,
        "least": 0.5,
        "needed": 0.5,
        "calls": 0.0,
    }
    keys = (
        "over",
        "worst",
        "invalid",
        "invalid_tools",
        "missing",
        "counted",
        "errors",
        "facts_honest",
        "facts_useless",
    )
    return {
        **dict.fromkeys(keys, 0.5),
        "lost": 0,
        "lost_of": 10,
        "time_1000": 2.0,
        "pause": 1.0,
        "conversations": {"chat": talk, "asked": talk, "travel": talk},
        **changed,
    }


def run(**changed: Any) -> dict[str, Any]:
    """A run in which every memory is alike, but for one."""
    records = {kind.name: record() for kind in KINDS}
    records["trim_messages"] = record(**changed)
    return {
        "plan": {"timed": SIZES, "sizes": {"chat": 10, "rounds": 5, "logs": 5}, "corpus": 2},
        "versions": {"slidemem": "0"},
        "counter": "o200k_base",
        "embeddings": None,
        "dialogues": 0,
        "replayed": 0,
        "memories": records,
    }


@pytest.mark.parametrize(
    "value, expected",
    [(0, "0 %"), (0.0004, "<0.1 %"), (0.013, "1.3 %"), (0.93, "93 %"), (0.9996, ">99.9 %"), (1, "100 %")],
)
def test_a_share_that_is_not_nothing_never_reads_as_nothing(value: float, expected: str) -> None:
    """A share reads as 0 or 100 % only when it is that."""
    assert percent(value) == expected


def test_what_was_not_measured_is_a_dash_and_a_bound_says_so() -> None:
    """A cell tells a figure, a lower bound and a gap apart."""
    column = next(one for one in columns(SIZES) if one.title.startswith("time per turn"))

    cells = [
        column.cell(record()),
        column.cell(record(time_1000=900.0, time_1000_least=True)),
        column.cell(record(time_1000=None)),
    ]

    assert cells == ["2×", "over 900×", "–"]  # noqa: RUF001  # as the table has it


def test_a_peer_that_is_better_is_named_with_its_reason() -> None:
    """Where another memory is ahead the page says by what, and why."""
    lines = list(table.ahead(run(facts_useless=0.9)["memories"], columns(SIZES)))

    assert len(lines) == 1
    assert (
        "critical facts, useless summariser (the best of ours: 50 %): `trim_messages` 90 %. Its summary" in lines[0]
    )


def test_nobody_is_ahead_where_all_are_alike() -> None:
    """Equal figures make no winner."""
    assert list(table.ahead(run()["memories"], columns(SIZES))) == []


def test_the_page_holds_the_short_table_between_its_marks() -> None:
    """The README takes what stands between two marks: a table of five memories."""
    page = table.markdown(run())

    short = page.partition("<!-- short -->\n")[2].partition("<!-- /short -->")[0]

    assert len(table.SHORT) + 3 == short.splitlines()[0].count("|") + 1
    assert "50 % (50 % with recall off)" in short


def test_every_column_where_a_peer_may_win_has_a_reason() -> None:
    """A column that another memory can lead has a sentence ready that says why."""
    led: list[Column] = [one for one in columns(SIZES) if one.group != "What a provider sees" and one.better]

    silent = [one.title for one in led if not any(one.title.startswith(start) for start in table.REASONS)]

    assert silent == ["messages lost for good, summariser failing", "turns that failed with it"]


def test_a_soak_that_grows_is_found_out() -> None:
    """Growth is the last third of the looks over the first."""
    looks = [{"messages": at, "megabytes": 100.0 + 50 * at, "seconds": 0.01} for at in range(9)]

    assert soak.growth(looks, "megabytes") == pytest.approx(450 / 150)
    assert soak.growth(looks, "seconds") == 1


def test_a_soak_fills_its_file_and_looks_at_it(tmp_path: Any) -> None:
    """Each look tells how much is stored, resident and in the file, and what a turn took."""
    looks = list(soak.soak(200, 2, 2, tmp_path))

    assert [look["messages"] > 0 and look["megabytes"] > 0 and look["seconds"] > 0 for look in looks] == [True, True]
    assert looks[0]["file"] <= looks[1]["file"]
