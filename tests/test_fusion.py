"""What a likeness of meaning is worth beside words."""

from __future__ import annotations

import pytest

from slidemem.fusion import fused
from slidemem.recall import Document

PLAIN = {seq: Document(5, 0.0, "") for seq in range(20)}


def test_words_and_meaning_are_scaled_and_summed() -> None:
    """The best by words counts 1, the best by meaning .7, whatever their scales are; what is both comes first."""
    ranking = dict(fused("x", [(3, 8.0), (12, 4.0)], {12: 0.2}, PLAIN))

    assert pytest.approx({12: 1.2, 3: 1.0, 11: 0.35, 13: 0.35, 10: 0.175, 14: 0.175}) == ranking


def test_meaning_alone_ranks() -> None:
    """Where no word is found the messages that mean it come, best first, the newer first among equals."""
    ranking = fused("x", [], {3: 0.5, 12: 0.5}, PLAIN)

    assert [12, 3] == [seq for seq, _ in ranking][:2]


def test_what_means_nothing_of_it_changes_nothing() -> None:
    """Likenesses of 0, and of messages that are not there, leave the words' ranking."""
    assert ((3, 1.0),) == fused("x", [(3, 8.0)], {90: 0.9}, PLAIN)
    assert ((3, 1.0), (4, 0.0)) == tuple(one for one in fused("x", [(3, 8.0)], {4: 0.0}, PLAIN) if one[0] in {3, 4})


def test_neighbours_help_within_the_hour() -> None:
    """A message gains by what the next ones mean, not by what was said hours before."""
    documents = {0: Document(5, 1e9, ""), 1: Document(5, 1e9 + 9000, ""), 2: Document(5, 1e9 + 9060, "")}

    ranking = dict(fused("x", [], {1: 1.0}, documents))

    assert pytest.approx({1: 0.7, 2: 0.35}) == ranking


def test_length_and_speaker_count_as_with_words() -> None:
    """A long message pays for its length, one of a speaker whom the question names gains."""
    documents = {0: Document(180, 0.0, ""), 10: Document(5, 0.0, "ada"), 20: Document(5, 0.0, "bob")}

    ranking = dict(fused("What did Ada say?", [], {0: 1.0, 10: 1.0, 20: 1.0}, documents))

    assert pytest.approx({10: 0.7, 20: 0.7 / 1.6, 0: 0.7 / 3.2}) == ranking
