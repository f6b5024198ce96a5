"""Decides whether two texts are in different languages, where that is clear: by script, or by their small words."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

_SCRIPTS: Final = {
    "Latin": "A-Za-zÀ-ɏ",
    "Greek": "\u0370-\u03ff",
    "Cyrillic": "\u0400-\u052f",
    "Hebrew": "\u0590-\u05ff",
    "Arabic": "\u0600-\u06ff",
    "Devanagari": "\u0900-\u097f",
    "Bengali": "\u0980-\u09ff",
    "Tamil": "\u0b80-\u0bff",
    "Thai": "\u0e00-\u0e7f",
    "kana": "\u3040-\u30ff",
    "Han": "\u3400-\u9fff",
    "Hangul": "\uac00-\ud7af",
}
_LETTERS: Final = {name: re.compile(f"[{letters}]") for name, letters in _SCRIPTS.items()}
_SMALL: Final = {  # words that one of these languages has and the others have not
    "English": "the and is of to with was for that this are you it they has have from their which",
    "German": "der und das ist nicht mit den ein eine auf für sich dem auch wurde wird zu im ich sie",
    "French": "et les des une est pas dans pour qui sur avec il elle du au sont cette je vous le",
    "Spanish": "el los las y que una es por con para del su se lo como pero muy está son la",
    "Portuguese": "o os e não uma com para do da em dos das ao mas foi está são você pela as",
    "Italian": "il di che è non una per con del della sono gli nel alla anche più questo ha lo",
    "Dutch": "het een en van is niet dat op te zijn voor met aan hij naar wordt bij ook maar",
}
_SPOKEN: Final = {name: frozenset(words.split()) for name, words in _SMALL.items()}
_WORD: Final = re.compile(r"[^\W\d_]+")
_CLEAR: Final = 5  # small words before a language is named
_AHEAD: Final = 1.6  # times as many as the next language has
_MAIN: Final = 0.6  # of all letters, in the script that a text is written in
_SHORT: Final = 20  # Latin letters; a code with its label is in no language
_TRACE: Final = 0.1  # of a text's letters: what it uses besides its main script
_KANA: Final = 0.1  # of a Japanese text's signs
_READ: Final = 20_000  # characters that are enough to tell


def differ(source: str, text: str) -> bool:
    """Whether a text is clearly in another language than its source."""
    script = _main_script(text)
    if script == "Latin" and len(_LETTERS[script].findall(text)) < _SHORT:
        script = ""
    shares = _scripts(source)
    if script and shares and shares.get(script, 0.0) < _TRACE:
        return True
    spoken, written = language(source), language(text)
    return bool(spoken and written) and spoken != written


def language(text: str) -> str:
    """The language of a text in Latin letters, by name; "" where its words do not make it clear."""
    words = Counter(_WORD.findall(text[:_READ].lower()))
    counts = {name: sum(words[word] for word in small) for name, small in _SPOKEN.items()}
    first, second = sorted(counts, key=lambda name: -counts[name])[:2]
    clear = counts[first] >= _CLEAR and counts[first] >= _AHEAD * counts[second]
    return first if clear else ""


def _main_script(text: str) -> str:
    return next((name for name, share in _scripts(text).items() if share >= _MAIN), "")


def _scripts(text: str) -> dict[str, float]:
    """The share of each script among the letters; Japanese is written with signs of two, and counts as one."""
    counts = {name: len(letters.findall(text[:_READ])) for name, letters in _LETTERS.items()}
    if counts["kana"] > _KANA * (counts["kana"] + counts["Han"]):
        counts["kana"] += counts.pop("Han")
    letters = sum(counts.values())
    return {name: count / letters for name, count in counts.items() if count}
