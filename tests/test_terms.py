"""What a text is found by: words in every script, identifiers and their parts, and no text that takes long."""

from __future__ import annotations

import random
import string
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slidemem.terms import _PLAINER, Terms, among, asked, may_say, telling, terms

# ------------------------------------------------------------------ words


@pytest.mark.parametrize(
    "one, other",
    [
        ("party", "parties"),
        ("box", "boxes"),
        ("dog", "dogs"),
        ("adopt", "adopted"),
        ("make", "making"),
        ("run", "running"),
        ("fall", "falling"),
        ("quick", "quickly"),
        ("adoption", "adoptions"),
        ("Mumbai", "MUMBAI"),
        ("Asha's", "asha"),
        ("café", "cafe\u0301"),
        ("Zürich", "zurich"),
        ("Straße", "strasse"),
        ("İstanbul", "istanbul"),
        ("Łódź", "lodz"),
        ("\uff21\uff22\uff23", "abc"),
        ("שָׁלוֹם", "שלום"),
        ("soft\u00adware", "software"),
        ("O\u2019Brien", "o'brien"),
    ],
)
def test_words_of_one_family_share_a_term(one: str, other: str) -> None:
    """Endings, capitals, accents and ways of typing do not matter."""
    first, second = terms(one), terms(other)

    assert first.counts
    assert first.counts == second.counts


@pytest.mark.parametrize(
    "one, other",
    [("glass", "glad"), ("bus", "bu"), ("red", "r"), ("sing", "s"), ("fly", "f"), ("bed", "bee"), ("thing", "th")],
)
def test_short_words_keep_their_ends(one: str, other: str) -> None:
    """An ending is no ending where nothing would be left."""
    assert asked(one) != asked(other)


def test_function_words_are_left_out_but_counted_in_the_length() -> None:
    """What every text says finds none, and still makes a text long."""
    assert Terms({"gat": 2, "clos": 1}, 8) == terms("The gates were closed; which gate isn't it?")


def test_a_word_in_a_long_script_is_shortened_only() -> None:
    """Letters outside English are cut at six; vowel signs belong to their word."""
    assert ("рестор", "हिन्दी", "में") == asked("Рестораны हिन्दी। में")


def test_scripts_without_spaces_are_found_by_pairs() -> None:
    """CJK, Hangul and Thai by two characters, one alone by itself, and words between them as words."""
    assert ("我们", "们去", "去北", "北京", "ok") == asked("我们去北京ok")
    assert ("好",) == asked("好！")
    assert ("한국", "국어") == asked("한국어")
    assert ("กา", "าแ", "แฟ") == asked("กาแฟ")


# ------------------------------------------------------------------ what is kept whole


@pytest.mark.parametrize(
    "text, whole, parts",
    [
        ("ana.lima@mail.example.com!", "ana.lima@mail.example.com", ("ana", "lima", "mail", "exampl", "com")),
        ("(BKG-7731),", "bkg-7731", ("bkg", "7731")),
        ("/usr/local/bin", "usr/local/bin", ("usr", "local", "bin")),
        ("C:\\tmp\\a.txt", "c:\\tmp\\a.txt", ("c", "tmp", "txt")),
        ("user_name", "user_name", ("user", "nam")),
        ("v2.0.1.", "v2.0.1", ("v2", "0", "1")),
        ("$4,500.25", "4500.25", ("4500", "25")),
    ],
)
def test_identifiers_are_found_whole_and_by_their_parts(text: str, whole: str, parts: tuple[str, ...]) -> None:
    """An address, a code, a path and a number, without the signs around them."""
    assert (whole, *parts) == asked(text)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("C++ and C#", ("c++", "c", "c#")),
        ("QZ7M2L", ("qz7m2l",)),
        ("4,500", ("4500",)),
        ("l'amour", ("l", "amour")),
        ("__init__", ("init",)),
        ("don't they're", ()),
        ("... !!! 🙂", ()),
        ("", ()),
        ("x" * 80, ("xxxxxx",)),
        ("7" * 80, ("7" * 64,)),
        ("/".join(["abcdefg"] * 12), ("abcdef",)),
        ("\ud800 lone", ("lon",)),
    ],
)
def test_what_else_is_found(text: str, expected: tuple[str, ...]) -> None:
    """Names of languages, bare numbers, short forms, and what is too long to be kept whole."""
    assert expected == asked(text)


# ------------------------------------------------------------------ the question


def test_a_question_asks_for_each_term_once() -> None:
    """Terms come in the order they are said, and nothing in them is a command."""
    assert ("near", "tabl", "drop", "gat") == asked('"OR" NEAR(table, drop) * gate: gates')


def test_the_words_of_any_talk_tell_nothing() -> None:
    """Courtesy, greetings and what is said of anything give no reason to look back; they are found all the same."""
    text = "Thanks, that sounds good! What's the name of Asha's dentist, who says thanks?"

    assert {"asha", "dentis"} == telling(text)
    assert {"thank", "sound", "good", "nam", "asha", "dentis", "say"} == set(asked(text))


# ------------------------------------------------------------------ any text


def test_a_message_has_a_thousand_terms_at_most() -> None:
    """The first thousand are kept; the length is that of all that is read."""
    found = terms(" ".join(f"n{number}" for number in range(3_000)))

    assert 1_000 == len(found.counts)
    assert {"n0", "n999"} <= found.counts.keys()
    assert 3_000 == found.length


def test_a_question_has_256_terms_at_most() -> None:
    """A page that is pasted asks for its first words."""
    assert tuple(f"n{number}" for number in range(256)) == asked(" ".join(f"n{number}" for number in range(3_000)))


def test_characters_are_remembered_within_bounds() -> None:
    """Text in every character there is takes no memory for good."""
    every = "".join(map(chr, range(0xA0, 0x8000)))

    assert terms(every) == terms(every)
    assert len(_PLAINER) <= 20_005


ANY = st.text(max_size=200)


@given(text=ANY)
def test_any_text_has_terms(text: str) -> None:
    """Terms are short, lower case and not empty, and a question's are a message's."""
    found = terms(text)

    assert all(0 < len(term) <= 64 for term in found.counts)
    assert set(asked(text)) == set(found.counts)
    assert telling(text) <= set(asked(text))
    assert found.length >= sum(found.counts.values())


HEAVY: dict[str, Callable[[int], str]] = {
    "letters": lambda size: "a" * size,
    "spaces": lambda size: " " * size,
    "dots": lambda size: "a." * (size // 2),
    "dashes": lambda size: ("a" + "-" * 999) * (size // 1_000),
    "apostrophes": lambda size: "a'" * (size // 2),
    "commas": lambda size: "1," * (size // 2),
    "underscores": lambda size: "_" * size,
    "accents": lambda size: "e" + "\u0301\u0327" * (size // 2),
    "cjk": lambda size: "我" * size,
    "ligatures": lambda size: "\ufdfa" * (size // 18),
    "words": lambda size: " ".join(
        "".join(random.Random(at).choices(string.ascii_lowercase, k=7)) for at in range(size // 8)
    ),
    "anything": lambda size: "".join(map(chr, random.Random(1).choices(range(0x20, 0x3000), k=size))),
}


@pytest.mark.parametrize("make", HEAVY.values(), ids=HEAVY)
def test_no_text_takes_long(make: Callable[[int], str]) -> None:
    """Four times the text takes four times as long, not sixteen."""
    small, large = make(10_000), make(40_000)
    measured = [(spent(small), spent(large)) for _ in range(2)]

    assert min(large for _, large in measured) <= 10 * min(small for small, _ in measured) + 0.05


def test_a_megabyte_is_read_in_part() -> None:
    """What stands behind the first 200,000 characters is not found, and costs nothing."""
    found = terms("gate " * 200_000 + "closed")

    assert Terms({"gat": 40_000}, 40_000) == found


def spent(text: str) -> float:
    """CPU seconds of cutting a text."""
    start = time.process_time()
    terms(text)
    asked(text)
    return time.process_time() - start


# ------------------------------------------------------------------ what is sought in a text

ENDINGS = st.sampled_from(["", "s", "es", "ies", "ed", "ing", "ly", "y", "e", "'s", ",", ", 1,000", "é", "ß", "的车"])


@given(st.lists(st.tuples(st.text(max_size=12), ENDINGS), max_size=8), st.text(max_size=40))
def test_what_may_not_be_said_is_not_said(words: list[tuple[str, str]], other: str) -> None:
    """The quick look finds every text that says one of the terms, whatever endings and signs stand there."""
    text = " ".join(word + ending for word, ending in words)
    said = terms(text).counts

    assert [term for term in said if not may_say(text, [term])] == []
    assert list(said) == among(text, frozenset(said))
    assert [term for term in terms(other).counts if term in said] == among(other, frozenset(said))


@pytest.mark.parametrize(
    "text, question",
    [
        ("two flies", "fly"),
        ("ponies", "a pony"),
        ("EUR 1,000", "1000"),
        ("Crème brûlée", "creme"),
        ("火车站", "车站"),
    ],
)
def test_another_form_of_a_word_may_be_said(text: str, question: str) -> None:
    """Plurals, commas in numbers, accents and pairs of characters are no reason to pass a text over."""
    sought = frozenset(asked(question))

    assert may_say(text, sought)
    assert among(text, sought)
    assert not may_say("nothing of it", sought)
