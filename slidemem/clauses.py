"""Decides where a sentence may be cut, so that the clause that states something is kept without what is beside it.

By punctuation, and by the small words that join clauses. Never before a condition, a negation or a number, which
change what the clause before them says, and never inside of brackets or quotes.
"""

# ruff: noqa: RUF001  # the signs of several scripts are what it looks for
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

_JOINS: Final = re.compile(
    r"""
    [,;:—–]["”»)]?\s+ | \s[-–—]\s+ | [，；：]\s* | [.!?]{2,}\s+ | \s(?=\()
  | (?<=[^\W\d_]{2})\s(?=(?:and|but|so|because|since|cause|which|though|although|while|or\selse
      |und|aber|weil|denn|sonst|pero|porque|así\sque|mais|parce\sque|car|mas|então
      |और|लेकिन|क्योंकि|पर|तो|वरना)\s)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_BINDS: Final = re.compile(  # what says when, whether, or how much of it, the clause before is true
    r"""
    \W*(?:(?:and|but|or|und|oder|aber|y|o|pero|et|ou|mais|e|mas)\s)?
    (?:(?:if|unless|except|until|till|only|not|no|nor|without|before|after|provided|instead|never|even
      |wenn|falls|außer|bis|nur|nicht|kein\w*|ohne|sofern|sondern|auch
      |si|salvo|excepto|hasta|solo|sólo|sin|ni|nunca|tampoco
      |sauf|sans|jusqu\w*|pas|seulement|se|exceto|até|só|sem|nem)\b
    | \S{1,4}\s?\d | \d
    | 不 | 除非 | 如果 | 只 | 别 | 没 | 也不 | 否则 | नहीं | जब\sतक | अगर | सिर्फ़ | मत\s)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_OPENS: Final = re.compile(
    r"""
    (?:(?:oh|ah|ok|okay|so|well|yes|yeah|yep|and|but|also|right|sure|thanks|by\sthe\sway|btw|one\smore\sthing|because
      |since|then|now|hm+|hi|hello|lol|haha|sorry|anyway|oops|um|uh|wait|listen|look|you\ssee
      |und|aber|also|ja|ach|naja|gut|danke|na|weil|denn|y|pero|bueno|vale|ah|sí|gracias|porque|oye|mira|pues|che
      |et|mais|oui|bon|alors|merci|car|e|mas|então|bom|sim|obrigad[oa]|और|तो|अच्छा|हाँ|हां|अरे|लेकिन|क्योंकि)\b
      (?![’'-])[,.:;!…\s–—-]*
    | (?:好的?|嗯+|哦+|啊|对了?|那|行|然后|还有)[，,。！\s]+ )+
    """,
    re.VERBOSE | re.IGNORECASE,
)
_LEAST: Final = 16  # characters of a clause; of a script without spaces it is half of that
_HALF: Final = re.compile("[\u3040-\u9fff\uac00-\ud7af]")
_BRACKETS: Final = {"(": ")", "“": "”", "«": "»", "„": "“", "「": "」", "『": "』", "（": "）"}


def cuts(line: str, starts: Sequence[int]) -> list[int]:
    """Where the clauses of a line start, the sentences' own starts included.

    Args:
        line: a line of text.
        starts: where its sentences start.
    """
    found: list[int] = []
    for start, end in pairwise((*starts, len(line))):
        found.append(start)
        found.extend(_inside(line, start, end))
    return found


def without_opening(text: str) -> str:
    """A clause without the words that only lead to it; the whole where nothing is left."""
    opening = _OPENS.match(text)
    return text[opening.end() :] if opening and len(text) - opening.end() >= _LEAST else text


def _inside(line: str, start: int, end: int) -> Iterator[int]:
    """Where a sentence may be cut."""
    last = start
    for match in _JOINS.finditer(line, start, end):
        at = match.end()
        least = _LEAST // 2 if _HALF.search(line, last, at) else _LEAST
        if at - last >= least and end - at >= least and not _BINDS.match(line, at) and not _opened(line, start, at):
            yield at
            last = at


def _opened(line: str, start: int, at: int) -> bool:
    """Whether a bracket or a quote is open there."""
    said = line[start:at]
    if said.count('"') % 2:
        return True
    return any(said.count(opens) > said.count(closes) for opens, closes in _BRACKETS.items() if opens in said)
