"""Which words say that a sentence matters, a user's own too, and what a correction does to what it corrects."""

# ruff: noqa: RUF001  # the words of several scripts are tested
from __future__ import annotations

from typing import Any

import pytest

from slidemem import SlideMem
from slidemem.corrections import with_marks
from slidemem.cues import (
    BINDS,
    CORRECTS,
    DECIDES,
    DENIES,
    FIXES,
    FORBIDS,
    LABELS,
    LIKES,
    ORDERS,
    PROMISES,
    STATES,
    STRESSES,
    TELLS,
    WARNS,
    cues_at,
    strength,
)
from slidemem.errors import ConfigurationError
from slidemem.retention import importance, statements


@pytest.mark.parametrize(
    "text, cue",
    [
        ("I'm allergic to nuts", WARNS),
        ("soy celíaca", WARNS),
        ("it does NOT fit", DENIES | STRESSES),
        ("it MUST fit", BINDS | STRESSES),
        ("ich heiße Ole", STATES),
        ("我对花生过敏", WARNS),
        ("मुझे मूँगफली से एलर्जी है", WARNS),
        ("no grey anything", DENIES),
        ("please don’t ring", ORDERS | FORBIDS),
        ("nothing solvent based", FORBIDS),
        ("Pucón no, por favor", DENIES),
        ("kein Fleisch", DENIES),
        ("jamais le lundi", FORBIDS),
        ("sem cebola", DENIES),
        ("墙上不许打孔", DENIES),
        ("फ़ोन मत करना", DENIES),
        ("только не звони", DENIES),
        ("it must fit", BINDS),
        ("before the fifth", BINDS),
        ("nur vormittags", BINDS),
        ("il faut payer", BINDS),
        ("必须在月底", BINDS),
        ("ok, we decided", DECIDES),
        ("let's do the blue", DECIDES),
        ("wir nehmen den grünen", DECIDES),
        ("就这么说好了", DECIDES),
        ("your reference is", LABELS),
        ("单号是", LABELS),
        ("I'll send it", PROMISES),
        ("te prometo", PROMISES),
        ("I prefer tea", LIKES),
        ("sorry, it's the other", CORRECTS),
        ("quise decir el otro", CORRECTS),
        ("说错了", CORRECTS),
        ("my gate is blue", FIXES | TELLS),
    ],
)
def test_a_cue_is_found_in_its_language(text: str, cue: int) -> None:
    """Prohibitions, conditions, decisions, promises and the like have their words."""
    assert cue == cues_at(text, [0]).get(0, 0) & cue


@pytest.mark.parametrize(
    "text", ["The cannon is nocturnal", "a noted mustard", "beforehand", "Onlyfans", "das Hotel"]
)
def test_a_longer_word_is_no_cue(text: str) -> None:
    """A cue is a whole word."""
    assert {} == cues_at(text, [0])


def test_a_cue_belongs_to_its_sentence() -> None:
    """Each sentence has its own."""
    assert {0: DENIES, 1: BINDS} == dict(cues_at("No nuts. Tea must wait.", [0, 9]))


def test_what_a_user_forbids_counts_more_than_what_an_assistant_advises() -> None:
    """And what an assistant promises counts more than what a user does."""
    assert strength(DENIES, user=True) > strength(DENIES, user=False) == 1
    assert strength(PROMISES, user=False) > strength(PROMISES, user=True) == 1
    assert strength(DENIES | WARNS, user=True) > strength(DENIES, user=True)


def test_an_assistants_advice_without_a_fact_is_worth_nothing() -> None:
    """A user's prohibition is; so is an assistant's promise."""
    advice, promise = statements("You should not do that.")[0], statements("I'll see to it.")[0]

    assert 0 == advice.worth(role="assistant") < advice.worth(role="user")
    assert promise.worth(role="assistant") > promise.worth(role="user") == 0


# ------------------------------------------------------------------ a user's own


def words(text: str) -> int:
    """Words of a text."""
    return len(text.split())


def head(**options: Any) -> str:
    """The head of a session that holds many numbers and one sentence of the user's trade."""
    mem = SlideMem(max_tokens=400, counter=words, archive_share=0.15, recall_share=0, **options)
    chat = mem.session("s")
    for at in range(40):
        said = (
            "the halyard is chafed at the masthead" if at == 3 else f"we passed buoy {at} at {at} knots in the dark"
        )
        chat.append([{"role": "user", "content": said}, {"role": "assistant", "content": "a fine night for sailing"}])
    return chat.context().head


def test_cues_of_ones_own() -> None:
    """A sentence with a user's own sign is kept before others, through merges and in the head."""
    assert "halyard" not in head()
    assert "- user: the halyard is chafed" in head(cues={r"\bhalyards?\b": 200})


def test_an_own_cue_multiplies() -> None:
    """The strongest one of a sentence counts, and it fades slowly."""
    cues = SlideMem(max_tokens=400, counter=words, cues={"buoy": 2, "knots": 9}).options.signs
    line = "- user: we passed buoy 7 at 7 knots"

    assert 9 == statements(line, cues)[0].own
    assert statements(line, cues)[0].worth() == 9 * statements(line)[0].worth()
    assert importance(line, 99, cues) / importance(line, 0, cues) > importance(line, 99) / importance(line, 0)


@pytest.mark.parametrize("wrong", [{"(": 2}, {"a*": 2}, {"a": 0}, {"a": "much"}, ["a"], {3: 2}])
def test_wrong_cues_are_wrong_options(wrong: Any) -> None:
    """What is no pattern, matches everything, or has no weight is refused at once."""
    with pytest.raises(ConfigurationError, match="cues"):
        SlideMem(max_tokens=400, counter=words, cues=wrong)


# ------------------------------------------------------------------ corrections


@pytest.mark.parametrize(
    "lines, stale",
    [
        (["- user: We arrive on 16 August.", "- user: Sorry, it's the 23rd of August, I misread it."], [0]),
        (["- user: We arrive on 16 August.", "- user: Make it 23 August, not 16 August."], [0]),
        (["- assistant: Dinner at 19:00 then.", "- user: I meant 20:30."], [0]),
        (["- user: The port is 5433.", "- user: me equivoqué, el puerto es 6432"], [0]),
        (["- user: 预算300元", "- user: 说错了，是500元"], [0]),
        (["- user: In Pune at 19:00.", "- user: It costs €90.", "- user: I meant €95."], [1]),
        (["- user: The code is AB-1200.", "- user: Der Code ist nicht AB-1200, sondern AB-1300."], [0]),
        (["- user: We arrive on 16 August.", "- user: We leave on 23 August."], []),
        (["- user: We arrive on 16 August.", "- assistant: Sorry, it's 23 August."], []),
        (["- user: We arrive on 16 August.", "- user: Sorry, it's me again."], []),
        (["- user: The code is AB-1200.", "- user: I meant 23 August."], []),
        (["- user: 23 August it is.", "- user: I meant 23 August."], []),
        (["- user: From 16 August or 23 August.", "- user: I meant 23 August."], []),
        (["- user: Moved from 16 to 23 August.", "- user: I meant 23 August, not 16 August."], []),
        (["- user: I'm off.", "- user: I meant 23 August."], []),
        (["- user: I meant 23 August."], []),
    ],
)
def test_what_is_corrected_is_marked(lines: list[str], stale: list[int]) -> None:
    """The last value of its kind, or the one that a correction names; what says the new one too is right already."""
    marked = with_marks(lines)

    assert stale == [at for at, line in enumerate(marked) if line.endswith(" (replaced)")]
    assert lines == [line.removesuffix(" (replaced)") for line in marked]
    assert marked == with_marks(marked)


def test_a_marked_line_gives_way() -> None:
    """The corrected value is kept before the one that it replaced."""
    assert importance("- user: We arrive on 16 August. (replaced)", 0) < importance(
        "- user: We arrive on 23 August.", 0
    )


def test_a_correction_reaches_the_context_with_its_mark() -> None:
    """A value that is corrected many turns later is marked in the head, and the new one stands."""
    chat = SlideMem(max_tokens=300, counter=words, archive_share=0.4, recall_share=0).session("s")
    said = {2: "The wedding is on 16 August in Whitby.", 20: "Sorry, it's 23 August, I misread the invitation."}
    for at in range(60):
        chat.append({"role": "user", "content": said.get(at, "and how was the sea today, calm or rather rough?")})
        chat.append({"role": "assistant", "content": "it was calm in the morning and rough in the afternoon"})

    lines = chat.context().head.splitlines()

    assert "- user: The wedding is on 16 August in Whitby. (replaced)" in lines
    assert any(line.startswith("- user: Sorry, it's 23 August") for line in lines)
