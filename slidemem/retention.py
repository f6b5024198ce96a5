"""Decides what in a span of conversation must survive a summary, and what of it did.

Facts are found by their form: numbers with their units, money, dates, addresses, paths, identifiers, quoted
words, names; and by cues of preference, prohibition, decision and promise. Cues are English, forms are
neutral.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

_FORMS: Final = re.compile(
    r"""
    (?P<email> [\w.+-]+@[\w-]+(?:\.[\w-]+)+ )
  | (?P<url> https?://[^\s<>"')\]]+ )
  | (?P<path> (?<![\w/])(?:~|\.{1,2})?/[\w.-]+(?:/[\w.-]+)+ )
  | (?P<identifier> \b(?=[\w-]*[A-Za-z])(?=[\w-]*\d)\w[\w-]{2,}\b )
  | (?P<number> [₹$€£¥]\s?\d[\d.,]*\w* | \b\d[\d.,:/-]*(?:\s?(?:%|°C?|[A-Za-z]{1,4}\b))? )
  | (?P<quoted> "[^"\n]{2,60}" | “[^”\n]{2,60}” | «[^»\n]{2,60}» | 「[^」\n]{2,60}」 )
  | (?P<name> (?<![.!?:\n]\s)(?<!^)\b[A-Z][a-z]+(?:\s[A-Z][a-z]+)*\b | \b[A-Z]{2,}\b )
    """,
    re.VERBOSE,
)
_WEIGHTS: Final = {"email": 3, "url": 2, "path": 2, "identifier": 3, "number": 2, "quoted": 1, "name": 1}

_CUES: Final = re.compile(
    r"""\b(?: allerg\w+ | prefer\w* | favou?rite | always | never | must(?:n't)? | don'?t | do\ not | can(?:no|'?)t
      | won'?t | hate | dislike | like | love | need | vegetarian | vegan | no\ longer | instead | only
      | decided | agreed | confirmed | booked | promise\w* | will\ (?:send|call|pay|bring)
      | I\ meant | not\ the | correction | remember | deadline | birthday | my\ name )\b""",
    re.VERBOSE | re.IGNORECASE,
)
_CUE_WEIGHT: Final = 3

_REMEMBER: Final = re.compile(
    r"(?:^|(?<=[.!?]\s)|(?<=\n))(?:please\s+)?(?:remember|don'?t\s+forget|do\s+not\s+forget|note)"
    r"(?:\s+(?:this|that|please))?\s*[:,]?\s+(?P<what>[^\n]+)",
    re.IGNORECASE,
)
_REMEMBER_SIGN: Final = re.compile(r"this|that|:|forget", re.IGNORECASE)

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+(?=[^\s.a-z])|(?<=[。！？।])\s*|\n+")
_LOG_LINE: Final = re.compile(r"^\s*(?:at\s|File\s\"|\.{3}\s\d|Caused by|[{}\[\]<|])|[{;]\s*$|::|->")
_SENTENCE_LIMIT: Final = 300


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that must survive.

    Attributes:
        kind: `email`, `url`, `path`, `identifier`, `number`, `quoted` or `name`.
        key: the fact as it is looked for, case folded.
        weight: how much it matters.
    """

    kind: str
    key: str
    weight: int


def facts(text: str) -> frozenset[Fact]:
    """The facts in a text, by their form."""
    found: set[Fact] = set()
    for match in _FORMS.finditer(text):
        kind = match.lastgroup or ""
        key = match.group().strip(' .,:;/-"“”«»「」').casefold()
        if key:
            found.add(Fact(kind, key, _WEIGHTS[kind]))
    return frozenset(found)


def held(wanted: Iterable[Fact], text: str) -> frozenset[Fact]:
    """Those of the facts that a text holds."""
    folded = text.casefold()
    return frozenset(fact for fact in wanted if fact.key in folded)


def has_cue(text: str) -> bool:
    """Whether a text states a preference, a prohibition, a decision or a promise."""
    return _CUES.search(text) is not None


def worth(text: str) -> int:
    """How much a sentence matters by itself: the weights of its facts and of its cue."""
    if _LOG_LINE.search(text):
        return min(1, len(facts(text)))
    return sum(fact.weight for fact in facts(text)) + (_CUE_WEIGHT if has_cue(text) else 0)


def importance(line: str, age: int) -> float:
    """How much an archive line matters, fading with the number of lines after it; a cue fades a quarter as fast.

    Args:
        line: of the archive.
        age: lines that came after it.
    """
    fading = age / 4 if has_cue(line) else age
    return (1 + worth(line)) / (1 + fading / 16)


def sentences(text: str) -> list[str]:
    """The sentences of a text, long ones cut at 300 characters, blank ones left out."""
    return [part.strip()[:_SENTENCE_LIMIT] for part in _SENTENCE_END.split(text) if part.strip()]


def to_remember(text: str) -> list[str]:
    """What a user asks to remember: an imperative at the start of a sentence that is no question.

    "Remember this: X", "please remember that X", "don't forget X"; not "do you remember X?".
    """
    asked: list[str] = []
    for match in _REMEMBER.finditer(text):
        what = sentences(match.group("what"))
        opening = match.group()[: match.start("what") - match.start()]
        if what and _REMEMBER_SIGN.search(opening) and not what[0].endswith(("?", "?")):
            asked.append(what[0])
    return asked


def missing_lines(texts: Sequence[tuple[str, str]], summary: str) -> list[str]:
    """Lines of a span that hold facts which a summary lacks, most important first.

    Args:
        texts: the span as pairs of role and text.
        summary: what was written of it.
    """
    lacking = [
        (worth(sentence), f"- {role}: {sentence}")
        for role, text in texts
        for sentence in sentences(text)
        if len(held(found := facts(sentence), summary)) < len(found)
    ]
    ranked = sorted(lacking, key=lambda line: -line[0])
    return list(dict.fromkeys(line for weight, line in ranked if weight > 1))
