"""Decides how many tokens a text takes when no tokenizer vocabulary is at hand.

A byte-pair vocabulary holds the common words of English whole, spells other languages out in pieces, and falls
back to single bytes for scripts it hardly saw. So script and kind of text decide the price, not length alone.

The figures below were fitted to two public vocabularies, o200k_base and cl100k_base, and follow the heavier of
the two: an estimate may be high, and is meant never to be more than a tenth low. English prose is within 15 % of
both. What a message costs beyond its text is left to `slidemem.tokens`.
"""

import re
import string
from bisect import bisect_right
from collections.abc import Callable
from typing import Final

# First code point of a range, and tokens for one of its characters; Latin letters are dealt with as words.
_SCRIPTS: Final = (
    (0x0000, 1.0),  # signs of Latin-1: one token each
    (0x0250, 2.0),  # phonetic and combining marks: their two bytes, as for every script hardly seen
    (0x0370, 1.1),  # Greek
    (0x0400, 0.6),  # Cyrillic of Russian, the best known script after Latin
    (0x0450, 1.2),  # its letters in Ukrainian and Serbian
    (0x0460, 2.0),  # rarer Cyrillic, Armenian
    (0x0590, 1.25),  # Hebrew
    (0x0600, 1.0),  # Arabic
    (0x0671, 1.5),  # letters of Persian and Urdu
    (0x0700, 2.0),
    (0x0900, 1.35),  # Devanagari
    (0x0980, 1.65),  # Bengali
    (0x0A00, 2.1),  # Gurmukhi, Gujarati, Oriya
    (0x0B80, 1.6),  # Tamil
    (0x0C00, 2.1),  # Telugu, Kannada, Malayalam
    (0x0E00, 1.05),  # Thai
    (0x0E80, 2.0),  # Lao, Tibetan, Burmese, Georgian
    (0x1200, 3.0),  # Ethiopic
    (0x1380, 2.0),
    (0x2010, 1.0),  # dashes, quotation marks, bullets
    (0x2028, 2.0),  # arrows, mathematics, symbols
    (0x2500, 1.3),  # box drawing
    (0x2580, 2.0),
    (0x3000, 1.0),  # CJK punctuation and Kana
    (0x3100, 2.0),
    (0x4E00, 1.4),  # Han
    (0xA000, 2.0),
    (0xAC00, 1.36),  # Hangul
    (0xD7B0, 2.0),
    (0xFE00, 1.0),  # what makes a symbol an emoji
    (0xFE10, 2.0),
    (0xFF00, 1.1),  # full-width forms
    (0x10000, 2.9),  # emoji, rare Han: three of their four bytes
    (0x1F600, 2.0),  # the smileys everybody uses
    (0x1F650, 2.9),
)

# A Latin word costs one token, and more for what makes it rare.
_ACCENT: Final = 0.8  # each letter of Latin-1 (é, ã)
_FAR_ACCENT: Final = 1.4  # each letter beyond it (ł, ř, ế)
_HUMP: Final = 1.15  # each hump of camelCase
_HASH_LETTER: Final = 0.42  # each letter after the first in what directly follows a digit: hex, base64
_LETTER: Final = 0.34  # each letter of a foreign word beyond the fourth
_LETTERS_FREE: Final = 4
_SIGN: Final = 0.5  # each change of sign in a run of punctuation beyond the second

# Long English words are one token too. Telling languages apart word by word needs a vocabulary; line by line it
# needs only the words that every English line is full of and that hardly another language shares: each takes
# back the surcharge of about six foreign letters.
_ENGLISH_WORD: Final = 2.0
_ENGLISH: Final = (
    "the and that it with you this are have not but they from your or if we can will what which when my has about"
    " like how be by of to for was would there their been"
)

_LONGEST_SPACES: Final = 64  # a vocabulary has tokens for runs of spaces up to about here
_LONGEST_RUN: Final = 16  # and for runs of another character

_LONGEST_KEPT: Final = 24  # characters of a text whose price is kept
_MOST_KEPT: Final = 50_000  # prices; some megabytes

_FIRSTS: Final = [first for first, _ in _SCRIPTS]
_SIGNS: Final = re.escape(string.punctuation)
_ENGLISH_WORDS: Final = frozenset(_ENGLISH.split())
_LATIN: Final = re.compile("[A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]+")
_HUMPS: Final = re.compile("[A-Z]?[^A-Z]+|[A-Z]+(?![^A-Z])")
_HASHED: Final = re.compile("(?<=[0-9])[A-Za-z]{2,8}")
_RARE_LETTERS: Final = re.compile("[jkz]")  # hardly in Romance words, which cost least after English: one more each
_SAME_SIGNS: Final = re.compile(r"(.)\1*", re.DOTALL)
_GAPS: Final = re.compile("  +")

# The pieces that both vocabularies cut a text into before they look anything up: a word takes the one sign or
# space before it along, digits go in threes, and of several spaces the last goes to what follows.
_PIECES: Final = re.compile(
    rf"[\s{_SIGNS}\u2019]?{_LATIN.pattern}|[0-9]{{1,3}}| ?[{_SIGNS}]+| ?[^\x00-\x7f]|\s+(?=\s)|.", re.DOTALL
)


class _Prices(dict[str, float]):
    """Prices of texts by a function, kept because a language repeats its words."""

    def __init__(self, price: Callable[[str], float]) -> None:
        super().__init__()
        self._price = price

    def __missing__(self, text: str) -> float:
        price = self._price(text)
        if len(text) <= _LONGEST_KEPT:
            if len(self) >= _MOST_KEPT:
                self.clear()
            self[text] = price
        return price


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text from its script and its kind.

    The time is linear in the length of the text, and about that of counting with a vocabulary.

    Args:
        text: Any text. Lone surrogates, NUL and the names of special tokens are ordinary characters.

    Returns:
        Tokens: 0 for an empty text, else at least 1. The estimate of two joined texts is at most the sum of
        theirs and a small constant.
    """
    if not text:
        return 0
    lines = text.replace("\r\n", "\n").split("\n")
    tokens = sum(map(_line_tokens, filter(None, lines))) + sum(map(_break_tokens, lines[:-1]))
    return max(1, round(tokens))


def _line_tokens(line: str) -> float:
    words = line.split(" ")
    foreign = sum(map(_FOREIGN.__getitem__, words))
    tokens = sum(map(_WORDS.__getitem__, words)) + max(0.0, foreign)
    if "  " in line:
        tokens += sum(1 + len(gap) // _LONGEST_SPACES for gap in _GAPS.findall(line))
    return tokens


def _break_tokens(line: str) -> float:
    """Tokens of the line break after a line: a sign or another break before it takes it along."""
    return 1 / _LONGEST_RUN if line[-1:] in string.punctuation else 1.0


def _word_tokens(word: str) -> float:
    """Tokens of what stands between two spaces, at English prices; nothing between two is a gap's."""
    if not word:
        return 0.0
    hashed = sum(len(letters) - 1 for letters in _HASHED.findall(word))
    return sum(map(_PIECE_PRICES.__getitem__, _PIECES.findall(" " + word))) + _HASH_LETTER * hashed


def _piece_tokens(piece: str) -> float:
    last = piece[-1]
    if latin := _LATIN.search(piece):
        return _latin_tokens(latin[0])
    if not last.isascii():
        return _SCRIPTS[bisect_right(_FIRSTS, ord(last)) - 1][1]
    if last.isspace() or last.isdigit():
        return 1.0 + len(piece) // _LONGEST_RUN
    changes = len(_SAME_SIGNS.findall(piece.lstrip()))
    return 1.0 + _SIGN * max(0, changes - 2) + len(piece) // _LONGEST_SPACES


def _latin_tokens(word: str) -> float:
    accents = sum(_ACCENT if letter < "\u0100" else _FAR_ACCENT for letter in word if letter > "\x7f")
    humps = len(_HUMPS.findall(word))
    return (1.0 if humps == 1 else _HUMP * humps) + accents


def _foreign_tokens(word: str) -> float:
    """Tokens that a word costs on top when its line is not English; negative for a word that is English."""
    return sum(map(_surcharge, _LATIN.findall(word)))


def _surcharge(latin: str) -> float:
    if latin in _ENGLISH_WORDS or latin[0].lower() + latin[1:] in _ENGLISH_WORDS:
        return -_ENGLISH_WORD
    if len(_HUMPS.findall(latin)) > 1:
        return 0.0
    return _LETTER * max(0, len(latin) + len(_RARE_LETTERS.findall(latin)) - _LETTERS_FREE)


_WORDS: Final = _Prices(_word_tokens)
_FOREIGN: Final = _Prices(_foreign_tokens)
_PIECE_PRICES: Final = _Prices(_piece_tokens)
