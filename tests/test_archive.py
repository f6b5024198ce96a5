"""How segments are kept: appended without gaps, merged upwards, and stored as JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slidemem.archive import FAN, Archive, Retention, Segment


def segment(start: int, end: int, level: int = 0, text: str = "- user: Pune", tokens: int = 4) -> Segment:
    """A segment."""
    return Segment(
        id=f"{start}-{end}.{level}",
        start=start,
        end=end,
        level=level,
        text=text,
        tokens=tokens if text else 0,
        method="extractive" if text else "none",
        retention=Retention(found=3, kept=1),
        children=() if level == 0 else (f"{start}-{start + 1}.0",),
        first_at=1_700_000_000.25 + start,
        last_at=1_700_000_000.25 + end,
    )


def archive(*levels: int) -> Archive:
    """An archive of segments with these levels, ten messages each."""
    return Archive(tuple(segment(10 * at, 10 * at + 10, level) for at, level in enumerate(levels)))


def test_an_archive_starts_empty() -> None:
    """Nothing covered, nothing said, nothing to merge."""
    empty = Archive()

    assert (empty.tokens, empty.text, empty.segments, empty.mergeable()) == (0, "", (), ())


def test_a_segment_is_appended_where_the_last_one_ends() -> None:
    """Segments follow each other without gap or overlap, and the archive itself stays as it was."""
    first = Archive().appended(segment(0, 4))
    second = first.appended(segment(4, 9))

    assert [(one.start, one.end) for one in second.segments] == [(0, 4), (4, 9)]
    assert len(first.segments) == 1


@pytest.mark.parametrize("start, end", [(0, 4), (3, 9), (5, 9)])
def test_a_gap_or_an_overlap_is_refused(start: int, end: int) -> None:
    """A segment that starts anywhere else raises, with both numbers."""
    kept = Archive().appended(segment(0, 4))

    with pytest.raises(ValueError, match=f"must start at 4, .* starts at {start}$"):
        kept.appended(segment(start, end))


def test_the_first_segment_starts_at_the_beginning() -> None:
    """An empty archive ends at 0."""
    with pytest.raises(ValueError, match=r"must start at 0, .* starts at 2$"):
        Archive().appended(segment(2, 4))


def test_text_and_tokens_add_up() -> None:
    """Texts stand one below the other, oldest first; empty ones leave no line."""
    kept = Archive((segment(0, 4, text="- user: a"), segment(4, 6, text=""), segment(6, 8, text="- user: b")))

    assert kept.text == "- user: a\n- user: b"
    assert kept.tokens == 8


@pytest.mark.parametrize(
    "levels, merging",
    [
        ((0, 0, 0), ()),
        ((0, 0, 0, 0), (0, 1, 2, 3)),
        ((0, 0, 0, 0, 0), (0, 1, 2, 3)),
        ((1, 0, 0, 0), ()),
        ((1, 0, 0, 0, 0), (1, 2, 3, 4)),
        ((1, 1, 1, 1, 0, 0, 0, 0), (0, 1, 2, 3)),
        ((2, 1, 1, 0, 1, 1), ()),
    ],
)
def test_four_neighbours_of_a_level_merge(levels: tuple[int, ...], merging: tuple[int, ...]) -> None:
    """The oldest four in a row of one level; fewer, or with another level between them, stay."""
    kept = archive(*levels)

    assert kept.mergeable() == tuple(kept.segments[at] for at in merging)


def test_a_merged_segment_stands_in_the_place_of_its_children() -> None:
    """What is before and behind them stays; the whole still has no gap."""
    kept = archive(1, 0, 0, 0, 0, 0)
    children = kept.mergeable()
    parent = segment(children[0].start, children[-1].end, level=1)

    merged = kept.merged(children, parent)

    assert merged.segments == (kept.segments[0], parent, kept.segments[5])
    assert [one.start for one in merged.segments[1:]] == [one.end for one in merged.segments[:-1]]
    assert kept == archive(1, 0, 0, 0, 0, 0)


def test_merging_keeps_an_archive_short() -> None:
    """However many segments are appended, few stand at the top, and together they cover everything."""
    kept = Archive()
    for at in range(300):
        kept = kept.appended(segment(at, at + 1))
        while children := kept.mergeable():
            parent = segment(children[0].start, children[-1].end, children[0].level + 1)
            kept = kept.merged(children, parent)

    assert len(kept.segments) <= 5 * FAN
    assert [one.start for one in kept.segments] == [0, *(one.end for one in kept.segments[:-1])]
    assert kept.segments[-1].end == 300


@given(
    st.lists(
        st.tuples(st.integers(1, 50), st.integers(0, 9), st.text(), st.integers(0, 10**6), st.floats(0, 4e9)),
        max_size=5,
    )
)
def test_an_archive_survives_json(rows: list[tuple[int, int, str, int, float]]) -> None:
    """Through real JSON text and back it is the same, whatever the texts hold."""
    kept = Archive()
    for length, level, text, tokens, at in rows:
        end = kept.segments[-1].end if kept.segments else 0
        made = segment(end, end + length, level, text, tokens)
        kept = kept.appended(replace(made, first_at=at, last_at=at + 0.1))

    assert Archive.from_json(json.loads(json.dumps(kept.to_json()))) == kept


def test_the_stored_form_is_small_and_named() -> None:
    """A segment as JSON: its range, dates and retention together, ids of children, nothing else."""
    assert segment(3, 9, level=1).to_json() == {
        "id": "3-9.1",
        "range": [3, 9],
        "level": 1,
        "text": "- user: Pune",
        "tokens": 4,
        "method": "extractive",
        "retention": {"found": 3, "kept": 1},
        "children": ["3-4.0"],
        "dates": [1_700_000_003.25, 1_700_000_009.25],
    }
