"""Decides what counts as a fact in a line of text, by its form, in whatever language.

Addresses, paths, identifiers, money, dates, times, numbers, quoted words, names. A line is gone through once, by
patterns that take time linear in its length, whatever it holds. Words that say that something matters are those
of `cues.py`.
"""

# ruff: noqa: RUF001  # the signs of several scripts are what it looks for
from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from slidemem.cues import place


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_WEIGHTS: Final = {  # what a sentence's worth is multiplied by, fitted like those of the cues
    "email": 130.0,
    "identifier": 35.0,
    "url": 50.0,
    "path": 34.0,
    "money": 16.0,
    "date": 22.0,
    "time": 4.5,
    "person": 4.0,
    "name": 1.2,
    "quoted": 0.6,
    "number": 3.5,
}
_COPIED: Final = frozenset(("email", "identifier", "url", "path"))  # all that a log, JSON or code is searched for
_CAPITAL: Final = "[A-ZÀ-ÖØ-ÞĀĆČĐĒĞĪİŁŌŐŚŞŠŪŰŹŻŽ\u0391-\u03a9\u0400-\u042f]"
_EMAIL: Final = re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}")
_URL: Final = re.compile(r"(?<![A-Za-z\d])(?:https?://|www\.)[^\s<>\"'`*)\]}，。；！？、）】」]+")
_PATH: Final = re.compile(
    r"""
    (?<![\w/:.-]) (?: (?:~|\.{1,2})?/[\w.-]+(?:/[\w.-]+)+ | (?:~|\.{1,2})/[\w.-]+
                    | [\w-]+(?:/[\w.-]+)+\.[A-Za-z]\w{0,4}\b )
  | \b[A-Za-z]:\\[\w.\\-]+
    """,
    re.VERBOSE,
)
_DIGITS: Final = re.compile(r"\d[A-Za-z\d]*(?:(?:[-_.]|(?<=\d)[,:/](?=\d))[A-Za-z\d]+)*")
_NAME: Final = re.compile(rf"{_CAPITAL}(?<!\w\w)[^\W\d_]+(?:['’-][^\W\d_]+)*(?:\s{_CAPITAL}[^\W\d_]+)*(?!\w|[-_.]\d)")
_QUOTE: Final = re.compile('["“«„「`‘]')
_QUOTED: Final = re.compile(
    r"""
    ["“«„「`'‘](?:
      (?<=") ([^"]{2,60})"(?!\s?:) | (?<=“) ([^”]{2,60})” | (?<=«) ([^»]{2,60})» | (?<=„) ([^“”]{2,60})[“”]
    | (?<=「)([^」]{2,60})」 | (?<=`) ([^`]{2,60})` | (?<!\w['‘]) ([^'’]{2,60})['’](?!\w) )
    """,
    re.VERBOSE,
)
_DATE: Final = re.compile(r"\d{4}-\d\d?-\d\d?(?:T\S*)?|\d{1,2}([./])\d{1,2}\1(?:\d\d){1,2}", re.IGNORECASE)
_TIME: Final = re.compile(r"\d{1,2}:\d\d(?::\d\d)?(?:[ap]m)?", re.IGNORECASE)
_NUMBER: Final = re.compile(r"(\d(?:[\d.,:/-]*\d)?)(?:[.-]?[a-z]{1,8})?")  # with a unit, as in 23kg, 17th, 3-bedroom
_AFTER: Final = re.compile(r"\s?(?:(?:of|de)\s)?([₹$€£¥元円年月日號号]|[^\s\d.,;:!?।]{2,10})")
_MONEY: Final = _words(
    "₹ $ € £ ¥ 元 円 rs inr eur usd gbp brl cny jpy chf euro euros dollar dollars pound pounds rupee rupees reais"
    " yuan lakh crore रुपये रुपए"
)
_CALENDAR: Final = _words(
    "年 月 日 號 号 january february march april may june july august september october november december"
    " jan feb mar apr jun jul aug sep sept oct nov dec"
    " janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro"
    " enero febrero marzo mayo junio julio septiembre octubre noviembre diciembre"
    " janvier février mars avril mai juin juillet août septembre octobre novembre décembre"
    " januar februar märz juni juli oktober dezember"
    " जनवरी फ़रवरी फरवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर अक्टूबर नवंबर दिसंबर"
)
_CODE: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_."  # what stands before a digit in a code
CLOSERS: Final = "\"'”’»)]*_`」』）"
_EDGES: Final = CLOSERS + "“„«「‘([{}<>.,:;!?…，。；：！？、।|#~=-—– "  # what stands around a word
_SHORTEST: Final = 4  # characters of an identifier; a seat or a class is shorter
_LONGEST: Final = 80  # what is longer is base64 or a hash
_ACCOUNT: Final = 5  # digits of a number that stands for something
_ABBREVIATED: Final = 5  # letters of an abbreviation, with its full stop; a longer word with one ends a sentence
_ACRONYM: Final = 5  # letters; longer words in capitals are shouted
ABBREVIATIONS: Final = _words(
    "mr mrs ms dr prof st sr sra jr vs approx incl excl min max tel ca cf fig e.g i.e z.b d.h bzw"
)
_OPENERS: Final = _words(
    "the a an my our your his her their this that it i we he she they in on at for and but so if when what is are"
    " der die das ein eine einen einem einer mein meine unser unsere ihr ihre sein seine dein deine"
    " ich wir er sie es im am"
    " in auf für und aber wenn was ist bei mit zum zur vom beim als den dem des kein keine so da dann"
    " el la los las un una mi mis nuestro su y pero si en no le les des mon ma notre son et mais dans au"
    " o os as um uma meu minha e mas se no na dear hi hello"
)
_NO_NAMES: Final = _CALENDAR | _MONEY | ABBREVIATIONS


class Fact(NamedTuple):
    """Something that must survive.

    Attributes:
        kind: `email`, `url`, `path`, `identifier`, `money`, `date`, `time`, `number`, `quoted`, `name`,
            or `person` for a name of several words.
        key: the words it is looked for by, in lower case.
        weight: how much it matters: what it multiplies the worth of a sentence by.
    """

    kind: str
    key: str
    weight: float


def facts_at(
    line: str, starts: Sequence[int], sentences: Sequence[int], *, data: bool
) -> Mapping[int, dict[str, Fact]]:
    """The facts of each clause or sentence, by its place.

    Args:
        line: a line of text.
        starts: where they start.
        sentences: where sentences start, by which names are told from capitals.
        data: whether it is of a log, JSON or code.
    """
    found: defaultdict[int, dict[str, Fact]] = defaultdict(dict)
    for position, kind, text in _forms(line, sentences):
        key = text.lower().strip()
        if key and (kind in _COPIED or not data):
            found[place(starts, position)].setdefault(key, Fact(kind, key, _WEIGHTS[kind]))
    return found


def is_month(text: str) -> bool:
    """Whether a text begins with the name of a month."""
    return text.split(" ", 1)[0].rstrip(_EDGES).lower() in _CALENDAR


def _forms(line: str, starts: Sequence[int]) -> Iterator[tuple[int, str, str]]:
    """Place, kind and text of each fact of a line, those that hold others first."""
    if "@" in line:
        yield from ((match.start(), "email", match[0].rstrip(_EDGES)) for match in _EMAIL.finditer(line))
    if "/" in line or "\\" in line:
        yield from ((match.start(), "url", match[0].rstrip(_EDGES)) for match in _URL.finditer(line))
        yield from ((match.start(), "path", match[0].rstrip(_EDGES)) for match in _PATH.finditer(line))
    for match in _DIGITS.finditer(line, starts[0]):
        yield match.start(), *_numeral(line, match)
    for match in _NAME.finditer(line, starts[0]):
        if _is_name(line, match, starts):
            name = match[0].removesuffix("'s").removesuffix("’s")
            yield match.start(), "person" if " " in name else "name", name
    if _QUOTE.search(line) or " '" in line or line.startswith("'"):
        for match in _QUOTED.finditer(line):
            if place(starts, match.start()) == place(starts, match.end() - 1):
                yield match.start(), "quoted", match[match.lastindex or 0].strip(_EDGES)


def _numeral(line: str, match: re.Match[str]) -> tuple[str, str]:
    """Kind and text of what holds a digit, the letters before it included."""
    start, end = match.span()
    run = match[0]
    if start and line[start - 1] in _CODE:
        before = line[max(0, start - _LONGEST) : start]
        run = before[len(before.rstrip(_CODE)) :].lstrip("-_.") + run
    elif run.isdigit():
        return _number(run, line, start, end)
    if _DATE.fullmatch(run):
        return "date", run
    if _TIME.fullmatch(run):
        return "time", run
    if number := _NUMBER.fullmatch(run):
        return _number(number[1], line, start, end)
    coded = _SHORTEST <= len(run) <= _LONGEST and (not run.islower() or sum(map(str.isdigit, run)) > 1)
    return "identifier" if coded else "number", run[:_LONGEST]


def _number(number: str, line: str, start: int, end: int) -> tuple[str, str]:
    """Kind and text of a number, by the words beside it."""
    after = _AFTER.match(line, end)
    before = line[max(0, start - 12) : start].rstrip(" ")
    last = before.rpartition(" ")[2]
    if len(last) <= _ABBREVIATED:
        last = last.rstrip(".")
    for word in (after[1].lower() if after else "", before[-1:], last.lower()):
        if word in _CALENDAR:
            return "date", f"{number} {word}" if len(word) > 1 else number
        if word in _MONEY:
            return "money", number
    stands = len(number) >= _ACCOUNT and (number.isdigit() or "-" in number)
    return "identifier" if stands else "number", number


def _is_name(line: str, match: re.Match[str], starts: Sequence[int]) -> bool:
    """Whether capitals mean a name: not where a sentence starts, nor in what is shouted."""
    start, name = match.start(), match[0]
    if (
        (line[start - 2 : start] == ": " and " " not in name)
        or name.lower() in _NO_NAMES
        or (name.isupper() and len(name) > _ACRONYM)
    ):
        return False
    first = starts[place(starts, start)]
    if line[first:start].strip(_EDGES):
        return True
    opening, _, more = name.partition(" ")  # capitals where a sentence starts: a full name has two
    return bool(more) and opening.lower() not in _OPENERS
