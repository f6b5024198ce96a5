"""Which clause of a sentence is kept, and where a sentence may be cut."""

from __future__ import annotations

import pytest

from slidemem.clauses import cuts, without_opening
from slidemem.retention import importance, statements, states


@pytest.mark.parametrize(
    "sentence, clauses",
    [
        ("It runs on our own cluster, the limit is 512Mi today", 2),
        ("The limit is 512Mi today and nobody may raise it now", 2),
        ("We stay until the end of it, but only if they pay us", 1),
        ("The factor is 21764 by now, not what I said before it", 1),
        ("The clinic is on Monday 9 November, 14:20 on level three", 1),
        ("That is what he said (to the whole of the lab, mind you)", 2),
        ('He said "we close at noon, and we open again at four"', 1),
        ("Yes, it is", 1),
        ("我本来想自己开车去那边，后来想想还是包车比较好", 2),  # noqa: RUF001
        ("我本来想自己开车去那边，如果你们觉得那样比较好", 1),  # noqa: RUF001
        ("wir nehmen den grünen Wagen, weil er besser aussieht", 2),
    ],
)
def test_where_a_sentence_may_be_cut(sentence: str, clauses: int) -> None:
    """At commas and joining words, not before conditions, negations and numbers, nor within quotes and brackets."""
    assert len(cuts(sentence, [0])) == clauses


def test_sentences_stay_apart() -> None:
    """Each sentence is cut by itself."""
    assert cuts("Here it is. There it is.", [0, 12]) == [0, 12]


@pytest.mark.parametrize(
    "text, rest",
    [
        ("ok so the limit is 512Mi", "the limit is 512Mi"),
        ("Well, by the way, the code is 4471", "the code is 4471"),
        ("but no", "but no"),
        ("Andrea is my sister in law", "Andrea is my sister in law"),
        ("also abfahrt am 6. juni ist fest", "abfahrt am 6. juni ist fest"),
    ],
)
def test_openings_go(text: str, rest: str) -> None:
    """Words that only lead to a clause go, unless little would be left."""
    assert without_opening(text) == rest


def test_the_clause_that_states_something_is_kept() -> None:
    """What is beside it goes; where the speaker is not known the sentence stays whole."""
    said = "So we had a look at it, and the key is at /srv/nightly/key.pem, which is really nice, and we saw the sea"

    kept = [one.text for one in statements(said, speaker="user")]

    assert kept == ["the key is at /srv/nightly/key.pem"]
    assert len(statements(said)) == 1


def test_a_long_list_is_one_statement() -> None:
    """A sentence of many clauses is not gone through for each pair of them."""
    said = ", ".join(f"Nikhil lives there {letter}" for letter in "abcdefghijklm")

    assert [len(statements(text, speaker="user")) for text in (said, said[:80])] == [1, 2]


def test_a_question_stays_one_when_its_mark_is_cut() -> None:
    """A clause of a question counts as a question."""
    (asked,) = statements("Is the code still BKG-7731, as far as you are aware of it?", speaker="user")

    assert "?" not in asked.text
    assert asked.share < 1


def test_a_line_that_introduces_states_nothing() -> None:
    """What ends with a colon says what comes."""
    assert statements("We need:")[0].worth() == 0 < statements("We need it.")[0].worth()


def test_a_summarisers_line_comes_before_extracts() -> None:
    """Its headings do not, and what it says of preferences and prohibitions comes first."""
    extract, heading = "- user: The code is BKG-7731.", "- Facts and identifiers"

    assert importance("- likes tea", 5) > importance(extract, 5) > importance(heading, 5)
    assert importance("- never fish!", 5) > importance("- likes fish!!", 5)


def test_what_states_nothing_fills_no_room() -> None:
    """A line without facts and cues states nothing; a summariser's does."""
    assert [states(line) for line in ("- tool: fine", "- user: never ring", "- likes tea")] == [False, True, True]
