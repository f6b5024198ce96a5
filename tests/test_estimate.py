# Some tests look at the prices that are kept.
# pyright: reportPrivateUsage=false
import base64
import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from slidemem import estimate
from slidemem.estimate import estimate_tokens

CORPUS: dict[str, dict[str, list[str]]] = json.loads(
    Path(__file__).with_name("estimate_corpus.json").read_text(encoding="utf-8")
)
LANGUAGES = CORPUS.pop("languages")
# The figures were fitted to the texts called fitted; those called unseen were written afterwards.
SAMPLES = [(origin, kind) for origin in CORPUS for kind in CORPUS[origin]]
ENGLISH = [("fitted", "english"), ("unseen", "english"), ("unseen", "messages")]
SENTENCE_ENDS = re.compile(r"(?<=[.!?।])\s+|(?<=[。！？])|\n")

CONSTANT = 10  # tokens by which two joined texts may cost more than both

Count = Callable[[str], int]
samples = pytest.mark.parametrize("origin, kind", SAMPLES)
english = pytest.mark.parametrize("origin, kind", ENGLISH)


def text_of(origin: str, kind: str) -> str:
    """One kind's text."""
    return "\n".join(CORPUS[origin][kind])


def sentences_of(origin: str, kind: str) -> list[str]:
    """One kind's text as short messages: its sentences, or its lines where it has none."""
    return [part for part in SENTENCE_ENDS.split(text_of(origin, kind)) if part.strip()]


# What the rules look at, in any order: with surrogates, with words that take surcharges back.
FRAGMENTS = (
    "the |you| |   |\n|\r|\t|Ab|aB|AB|zkj|a1|1bcde|42|é|É|ł|==|?!|\u2019|'s|漢|か|한|न|ب|да|😀|\u200d|\ud83d|\x00"
)
TEXTS = st.text(st.characters(exclude_categories=()), max_size=200) | st.lists(
    st.sampled_from(FRAGMENTS.split("|"))
).map("".join)


@pytest.fixture(params=["o200k_base", "cl100k_base"])
def count(request: pytest.FixtureRequest, vocabulary: Path) -> Count:
    """Count by one vocabulary."""
    encoding = tiktoken.get_encoding(request.param)
    return lambda text: len(encoding.encode_ordinary(text))


@pytest.fixture
def heavier(vocabulary: Path) -> Count:
    """Count by the vocabulary that needs more."""
    encodings = [tiktoken.get_encoding(name) for name in ("o200k_base", "cl100k_base")]
    return lambda text: max(len(encoding.encode_ordinary(text)) for encoding in encodings)


def forget_prices() -> None:
    """Forget every price that was kept."""
    for prices in (estimate._WORDS, estimate._FOREIGN, estimate._PIECE_PRICES):
        prices.clear()


class TestAccuracy:
    @samples
    def test_never_a_tenth_low(self, origin: str, kind: str, count: Count) -> None:
        """An estimate is at least nine tenths of what a vocabulary counts, for every kind of text."""
        text = text_of(origin, kind)

        assert estimate_tokens(text) >= 0.9 * count(text)

    @samples
    def test_not_absurdly_high(self, origin: str, kind: str, heavier: Count) -> None:
        """An estimate is at most 1.3 times what the heavier vocabulary counts."""
        text = text_of(origin, kind)

        assert estimate_tokens(text) <= 1.3 * heavier(text)

    @samples
    def test_sentences_never_a_tenth_low(self, origin: str, kind: str, count: Count) -> None:
        """The same holds for the sum over sentences and lines, each estimated alone."""
        sentences = sentences_of(origin, kind)

        assert sum(map(estimate_tokens, sentences)) >= 0.9 * sum(map(count, sentences))

    @english
    def test_english_prose(self, origin: str, kind: str, count: Count) -> None:
        """English prose is estimated within 15 % of both vocabularies."""
        text = text_of(origin, kind)

        assert estimate_tokens(text) == pytest.approx(count(text), rel=0.15)

    @english
    def test_english_sentences(self, origin: str, kind: str, count: Count) -> None:
        """Short English messages, each estimated alone, add up to within 15 % of both vocabularies."""
        sentences = sentences_of(origin, kind)

        assert sum(map(estimate_tokens, sentences)) == pytest.approx(sum(map(count, sentences)), rel=0.15)

    @pytest.mark.parametrize("language", LANGUAGES)
    def test_other_languages(self, language: str, heavier: Count) -> None:
        """A single sentence in a language that no figure was fitted to is at most a fifth low, a third high."""
        text = str(LANGUAGES[language])

        assert 0.8 * heavier(text) <= estimate_tokens(text) <= 1.33 * heavier(text)

    @pytest.mark.parametrize("glue", [" ", "\n"])
    def test_english_beside_another_language(self, glue: str, heavier: Count) -> None:
        """English words do not make the Portuguese beside them cheap."""
        text = glue.join([*CORPUS["unseen"]["english"], *CORPUS["unseen"]["portuguese"]])

        assert estimate_tokens(text) >= 0.9 * heavier(text)

    @pytest.mark.parametrize("seed", range(5))
    def test_random_bytes(self, seed: int, heavier: Count) -> None:
        """Base64 and hex of random bytes are neither a tenth low nor a third high."""
        data = random.Random(seed).randbytes(1200)
        texts = [base64.b64encode(data).decode(), data.hex(), data.hex().upper(), data.hex(" ")]

        assert all(0.9 * heavier(text) <= estimate_tokens(text) <= 1.33 * heavier(text) for text in texts)

    def test_special_tokens_are_text(self) -> None:
        """The name of a special token costs what another word between the same signs costs."""
        assert estimate_tokens("<|endoftext|>") == estimate_tokens("<|afternoons|>") > 1

    def test_corpus_is_long_enough(self) -> None:
        """Each unseen kind has at least 1,500 characters."""
        lengths = {kind: len(text_of("unseen", kind)) for kind in CORPUS["unseen"]}

        assert {kind: length for kind, length in lengths.items() if length < 1500} == {}


class TestAnyText:
    @given(text=TEXTS)
    def test_counts(self, text: str) -> None:
        """Any text, with lone surrogates and NUL, has a whole number of tokens: 0 when empty, else at least 1."""
        tokens = estimate_tokens(text)

        assert isinstance(tokens, int)
        assert tokens >= (1 if text else 0)
        assert text or tokens == 0

    @given(first=TEXTS, second=TEXTS)
    @settings(max_examples=400)
    def test_adds_up(self, first: str, second: str) -> None:
        """Two texts joined cost at most what both cost, and a small constant."""
        apart = estimate_tokens(first) + estimate_tokens(second)

        assert estimate_tokens(first + second) <= apart + CONSTANT

    @given(first=TEXTS, second=TEXTS, times=st.integers(1, 60))
    @settings(max_examples=200)
    def test_adds_up_when_long(self, first: str, second: str, times: int) -> None:
        """The constant does not grow with the texts."""
        first, second = first * times, second * times
        apart = estimate_tokens(first) + estimate_tokens(second)

        assert estimate_tokens(first + second) <= apart + CONSTANT

    @given(text=TEXTS)
    def test_deterministic(self, text: str) -> None:
        """A price that was kept is the price that is worked out."""
        first = estimate_tokens(text)
        forget_prices()

        assert estimate_tokens(text) == first

    def test_windows_line_breaks(self) -> None:
        """A line break of two characters costs what a line break costs."""
        text = text_of("unseen", "python")

        assert estimate_tokens(text.replace("\n", "\r\n")) == estimate_tokens(text)


class CountingPattern:
    """A pattern that adds up the characters it was given to read."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern = pattern
        self.read = 0

    def findall(self, text: str) -> list[str]:
        """Find like the pattern."""
        self.read += len(text)
        return self.pattern.findall(text)

    def search(self, text: str) -> re.Match[str] | None:
        """Search like the pattern."""
        self.read += len(text)
        return self.pattern.search(text)


HOSTILE = {
    "spaces": " " * 10**6,
    "one letter": "a" * 10**6,
    "humps": "aB" * 500_000,
    "digits": "7" * 10**6,
    "accents": "é" * 10**6,
    "one sign": "=" * 10**6,
    "signs": "?!" * 500_000,
    "tabs": "\t" * 10**6,
    "lines": "\n" * 10**6,
    "NUL": "\x00" * 10**6,
    "surrogates": "\ud83d" * 200_000,
    "emoji": "👩‍💻" * 100_000,
    "base64": base64.b64encode(random.Random(1).randbytes(750_000)).decode(),
    "five megabytes": text_of("unseen", "english") * 2000,
}


class TestWork:
    @pytest.fixture(autouse=True)
    def nothing_kept(self) -> None:
        """Start without prices."""
        forget_prices()

    @pytest.mark.parametrize("hostile", HOSTILE)
    def test_linear(self, hostile: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Every character is read a bounded number of times, whatever the text."""
        names = ["_PIECES", "_LATIN", "_HUMPS", "_HASHED", "_RARE_LETTERS", "_SAME_SIGNS", "_GAPS"]
        patterns = {name: CountingPattern(getattr(estimate, name)) for name in names}
        for name, pattern in patterns.items():
            monkeypatch.setattr(estimate, name, pattern)
        text = HOSTILE[hostile]

        assert 1 <= estimate_tokens(text) <= 4 * len(text)
        assert sum(pattern.read for pattern in patterns.values()) <= 8 * len(text)

    def test_repeated_words_are_priced_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Repeating a text asks for no new price."""
        text = text_of("unseen", "english")
        estimate_tokens(text)
        asked: list[str] = []
        monkeypatch.setattr(estimate._WORDS, "_price", asked.append)

        estimate_tokens("\n".join([text] * 50))

        assert asked == []

    def test_kept_prices_are_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Many different words, or one long word, leave no more prices than the limit behind."""
        monkeypatch.setattr(estimate, "_MOST_KEPT", 10)
        text = " ".join(f"word{number}" for number in range(95)) + " " + "long" * 10_000

        assert estimate_tokens(text) > 95
        assert len(estimate._WORDS) <= 10
        assert max(map(len, estimate._WORDS)) <= estimate._LONGEST_KEPT
