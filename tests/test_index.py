"""What a question reads of a session's postings: only what was said before it, and never more than a bound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slidemem.index import Index
from slidemem.post import Post
from slidemem.recall import Document, Posting
from slidemem.terms import Terms, terms

WORDS = ("gate", "train", "hotel", "rain")


def indexed(*texts: str) -> Index:
    """An index of messages numbered from 0, a minute apart, said by a and b in turn."""
    index = Index()
    for seq, text in enumerate(texts):
        index.add(seq, Post(terms(text), 60.0 * seq, "ab"[seq % 2]))
    return index


def test_a_question_finds_who_says_its_terms() -> None:
    """Postings by term in the order they were said, with how often; frequencies, sums, and what is known of each."""
    index = indexed("gate gate open", "a train", "the gate")
    found = index.matching(("gat", "train", "boat"), 3)

    assert 3 == found.messages
    assert 7 == found.length
    assert {"gat": 2, "train": 1, "boat": 0} == found.frequency
    assert {"gat": (Posting(0, 2), Posting(2, 1)), "train": (Posting(1, 1),), "boat": ()} == found.postings
    assert {0: Document(3, 0.0, "a"), 1: Document(2, 60.0, "b")} == index.documents((1, 0, 7, -1))


def test_what_comes_later_does_not_count() -> None:
    """A question sees only what was said before it, in postings, frequencies and sums."""
    index = indexed("gate", "train", "gate gate", "train")

    assert index.matching(("gat",), 2).postings == indexed("gate", "train").matching(("gat",), 9).postings
    found = index.matching(("gat", "train"), 1)
    assert ({"gat": 1, "train": 0}, 1, 1) == (found.frequency, found.messages, found.length)


def test_a_cut_forgets_what_was_said_since() -> None:
    """After a cut an index is what it was before, and takes other messages in their place."""
    index = indexed("gate", "train gate", "hotel")

    index.cut(1)

    assert (1, 1, {"gat": 1, "train": 0, "hotel": 0}) == counted(index)
    index.add(1, Post(terms("hotel"), 0.0))
    assert (2, 2, {"gat": 1, "train": 0, "hotel": 1}) == counted(index)
    index.cut(7)
    assert (2, 2, {"gat": 1, "train": 0, "hotel": 1}) == counted(index)


def counted(index: Index) -> tuple[int, int, dict[str, int]]:
    """Messages, their lengths and the frequencies of three terms."""
    found = index.matching(("gat", "train", "hotel"), 99)
    return found.messages, found.length, dict(found.frequency)


def test_messages_come_in_their_order() -> None:
    """A message that is there, or an older one, is refused with both numbers."""
    index = indexed("gate", "train")

    with pytest.raises(ValueError, match=r"message 1 comes after message 1: cut\(1\) first"):
        index.add(1, Post(terms("hotel"), 0.0))


def test_numbers_may_have_gaps() -> None:
    """A session's messages are counted, not its numbers."""
    index = Index()
    for seq in (3, 10, 11):
        index.add(seq, Post(terms("gate"), 0.0))

    found = index.matching(("gat",), 11)

    assert (2, (Posting(3, 1), Posting(10, 1))) == (found.messages, found.postings["gat"])


def test_a_thousand_times_is_as_often_as_any() -> None:
    """A count is kept up to 1,023 and never spills into the number beside it."""
    index = Index()
    index.add(5, Post(Terms({"gat": 1_023, "train": 5_000}, 6_023), 0.0))

    found = index.matching(("gat", "train"), 6)

    assert {"gat": (Posting(5, 1_023),), "train": (Posting(5, 1_023),)} == found.postings


def test_rare_terms_are_read_first_and_of_the_rest_the_newest() -> None:
    """A bound leaves out the oldest of the first term that does not fit, and all of those after it."""
    index = indexed(*["rain gate train"] * 2, *["rain gate"] * 3, *["rain"] * 5)

    found = index.matching(("rain", "gat", "train"), 10, most=4)

    rest = {"train": (Posting(0, 1), Posting(1, 1)), "gat": (Posting(3, 1), Posting(4, 1)), "rain": ()}
    assert rest == found.postings
    assert {"rain": 10, "gat": 5, "train": 2} == found.frequency


@given(
    texts=st.lists(st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join), max_size=12),
    before=st.integers(0, 14),
    most=st.integers(0, 20),
)
def test_any_question_reads_no_more_than_its_bound(texts: list[str], before: int, most: int) -> None:
    """As much is read as there is and the bound allows, and the same as in a session that ends there."""
    asked = ("gat", "train", "hotel", "rain")

    found = indexed(*texts).matching(asked, before, most)
    alone = indexed(*texts[:before]).matching(asked, before, most)

    assert sum(map(len, found.postings.values())) == min(most, sum(found.frequency.values()))
    assert (found.postings, found.frequency, found.length) == (alone.postings, alone.frequency, alone.length)
