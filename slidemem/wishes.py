"""Decides what a user's message asks to remember, and what to forget: by how a sentence begins, in many languages."""

# ruff: noqa: RUF001  # the signs of several scripts are what it looks for
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from slidemem.facts import CLOSERS
from slidemem.retention import LONGEST, QUESTION_MARKS, sentences, stems

_REMEMBER: Final = re.compile(
    r"""
    (?: (?:and|also|but|so|oh|ok|okay|btw|hey)[,\s]+ ){0,3}
    (?: (?:please|pls)\s+(?:remember|keep\ in\ mind)\b (?!\s+(?:to|me|when|how|what|if)\b)
      | remember (?:\s+(?:this|that|please))? (?=\s*[:：])
      | remember \s+this (?=\s*(?:[,.!—–-]|$))
      | (?:remember|keep\ in\ mind) \s+that\b
        (?!\s+(?:time|day|night|one|guy|trip|place|moment|story|song|movie|summer|weekend)\b)
      | (?:(?:please|pls)\s+)? (?:don['’]?t|do\s+not)\s+(?:ever\s+)?forget\b
      | (?: lembre-se | lembra-te | não\s(?:se\s|te\s)?esque[cç]as? | recuerda | no\s(?:te\s)?olvides
          | merke?\sdir | vergiss\snicht | n['’]oubliez?\spas | souviens-toi | retiens )
        (?: \s(?:de\s)?que\b | ,?\s?dass\b | (?=\s*:) )
      | 请?记住 | 請?記住 | 别忘了 | 別忘了 | याद\sरख\S* )
    (?: \s+(?:this|that)\b )? [\s:：,，.!—–-]*
    """,
    re.VERBOSE | re.IGNORECASE,
)
_FORGET: Final = re.compile(
    r"""
    (?: (?:and|also|but|so|oh|ok|okay|btw|hey|actually)[,\s]+ ){0,3}
    (?: (?:(?:please|pls)\s+|you\s+can\s+(?:now\s+)?)? (?:forget|stop\s+remembering)
        (?:\s+(?:that\b|about\b|what\ i\ said\ about\b|(?=my\b|our\b)))
      | (?:please\s+|pls\s+)?(?:don['’]?t|do\s+not)\s+remember\s+(?:that|about)\b
      | esquece\s(?:de\s)?que | olvida\s(?:de\s)?que | vergiss,?\sdass | oublie\sque | 请?忘记 | 别再记
      | भूल\sजाओ\sकि )
    [\s:：,，.!—–-]*
    """,
    re.VERBOSE | re.IGNORECASE,
)
_NOTE: Final = re.compile(r"(?:(?:please|pls)\s+)?note(?:\s+(?:this|that)\b|(?=\s*:))[\s:,]*", re.IGNORECASE)
_WORD: Final = re.compile(r"\w")
_MEANT: Final = 0.6  # of the words of what is to be forgotten that its pin has, at least
_BELOW: Final = 12  # lines below "remember this:" that are taken


class Asked(NamedTuple):
    """What a message asks a memory to do.

    Attributes:
        remember: texts to pin.
        forget: texts whose pins go.
    """

    remember: tuple[str, ...] = ()
    forget: tuple[str, ...] = ()


def to_remember(text: str) -> list[str]:
    """What a user asks to remember: an imperative at the start of a sentence, no question, nothing quoted.

    "Remember this: X", "please remember that X", "don't forget X", "Note: X" as a message's first words, and the
    like in other languages; X may be the next sentence, or the lines below. Not "do you remember X?".
    """
    asked: list[str] = []
    lines = text.splitlines()
    for at in _own_lines(lines):
        said = sentences(lines[at])
        for nth, sentence in enumerate(said):
            opening = _REMEMBER.match(sentence) or (None if at or nth else _NOTE.match(sentence))
            if opening:
                what = sentence[opening.end() :]
                below = takewhile(str.strip, lines[at + 1 : at + 1 + _BELOW])
                asked.extend([what] if what else said[nth + 1 : nth + 2] or map(_unmarked, below))
    return [what for what in asked if _WORD.search(what) and not what.rstrip(CLOSERS).endswith(QUESTION_MARKS)]


def to_forget(text: str) -> list[str]:
    """What a user asks to forget: "forget that X", "please forget about X", where a sentence begins; no question."""
    lines = text.splitlines()
    said = [sentence for at in _own_lines(lines) for sentence in sentences(lines[at])]
    asked = [sentence[opening.end() :] for sentence in said if (opening := _FORGET.match(sentence))]
    return [what for what in asked if stems(what) and not what.rstrip(CLOSERS).endswith(QUESTION_MARKS)]


def means(asked: str, pinned: str) -> bool:
    """Whether what a user asks to forget is what is pinned: most of its words are there."""
    wanted = stems(asked)
    return len(wanted & stems(pinned)) > _MEANT * len(wanted)


def _unmarked(line: str) -> str:
    return " ".join(sentences(line))[:LONGEST]


def _own_lines(lines: Sequence[str]) -> Iterator[int]:
    """Places of the lines that are neither code nor quoted."""
    fenced = False
    for at, line in enumerate(lines):
        start = line.lstrip()
        if start.startswith("```"):
            fenced = not fenced
        elif start and not fenced and not start.startswith((">", "#")):
            yield at
