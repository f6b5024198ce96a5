"""Decides what counts as a fact in a line of text, and which words are cues that something matters.

Facts are found by their form: addresses, paths, identifiers, money, dates, times, numbers, quoted words, names.
Cues of health, preference, prohibition, limit, decision, promise and correction are lists of words in a handful
of languages. A line is gone through once, by patterns that take time linear in its length, whatever it holds.
"""

# ruff: noqa: RUF001  # the signs of several scripts are what it looks for
from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_WEIGHTS: Final = {
    "email": 6,
    "identifier": 6,
    "url": 5,
    "path": 5,
    "money": 4,
    "date": 4,
    "time": 3,
    "name": 2,
    "quoted": 1,
    "number": 1,
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
WARNS, STATES, FIXES, TELLS = 1, 2, 4, 8
# Patterns in lower case, split at spaces; _ is a space, and a word ends where no * says that it goes on.
_WARNINGS: Final = (
    "allerg* alérg* asthma* diabet* emergenc* halal intoleran* jamais kosher medication* medicine* must_not mustn't"
    " never niemals nunca pregnan* vegan* vegetarian*"
)
_STATING: Final = (
    "agreed always at_least at_most birthday* booked born_on born_in budget* call_me cannot"
    " can't_(?:eat|drink|have|use|take|stand|walk|pay) changed?_my_mind confirmed correction"
    " deadline* decid* decis* dislike* due_(?:by|on) don't_(?:eat|drink|like|want|work|pay|send|call|forget)"
    " décid* entschied* expire* favou?rite* from_now_on got_(?:it|that)_wrong hate* have_to has_to had_to i_meant"
    " immer instead lieber limit maximum must named no_longer no_more_than orçamento ordered password* prefer*"
    " prefier* prefir* préfèr* presupuesto promise* prometo rather_than remember* remind_me sempre siempre signed"
    " toujours won't_(?:eat|drink|have|use|pay)"
)
_OWN: Final = (
    "i my me mine our we us eu meu meus minha minhas nosso nossa nossos nossas tenho sou yo mi mis tengo soy nuestro"
    " nuestra je mon mes nous notre ich mein meine meinen wir unser unsere"
)
_BEING: Final = re.compile(r"\s(?:[\w-]{1,20}\s){1,5}?(?:is|are|was|were|runs|ends)\b")
_POSSESSIVE: Final = "my our his her their"
_FAR: Final = re.compile("[\u0900-\u097f\u3040-\u30ff\u4e00-\u9fff]")
_FAR_CUES: Final = {
    WARNS: re.compile("एलर्जी|शाकाहारी|मधुमेह|过敏|過敏|素食|糖尿病|アレルギー|从不"),
    STATES: re.compile(
        "कभी नहीं|हमेशा|पसंद|वादा|याद रख|जन्मदिन|不能|必须|总是|喜欢|决定|预算|不要|生日|必ず|決め|好き|予算"
    ),
    TELLS: re.compile("मैं|मेर|मुझे|हमार|मला|माझ|我|私|僕"),
}


def _any_of(*lists: str) -> re.Pattern[str]:
    """A pattern for the words of lists, each after what is no letter; grouped by first letter, which is faster."""
    by_letter: dict[str, list[str]] = {}
    for word in " ".join(lists).split():
        rest = word[1:].replace("_", " ")
        by_letter.setdefault(word[0], []).append(rest[:-1] if word.endswith("*") else rf"{rest}\b")
    groups = (f"{first}(?:{'|'.join(rest)})" for first, rest in by_letter.items())
    return re.compile(rf"\W(?:{'|'.join(groups)})")


_CUES: Final = _any_of(_WARNINGS, _STATING, _OWN, _POSSESSIVE)
_WARNING: Final = tuple(_WARNINGS.replace("*", "").replace("_", " ").split(" "))
_OWNING: Final = _words(_OWN)
_POSSESSIVES: Final = _words(_POSSESSIVE)
ABBREVIATIONS: Final = _words(
    "mr mrs ms dr prof st sr sra jr vs approx incl excl min max tel ca cf fig e.g i.e z.b d.h bzw"
)
_NO_NAMES: Final = _CALENDAR | _MONEY | ABBREVIATIONS


class Fact(NamedTuple):
    """Something that must survive.

    Attributes:
        kind: `email`, `url`, `path`, `identifier`, `money`, `date`, `time`, `number`, `quoted` or `name`.
        key: the words it is looked for by, in lower case.
        weight: how much it matters.
    """

    kind: str
    key: str
    weight: int


def facts_at(line: str, starts: Sequence[int], *, data: bool) -> Mapping[int, dict[str, Fact]]:
    """The facts of each sentence, by its place."""
    found: defaultdict[int, dict[str, Fact]] = defaultdict(dict)
    for position, kind, text in _forms(line, starts):
        key = text.lower().strip()
        if key and (kind in _COPIED or not data):
            found[_place(starts, position)].setdefault(key, Fact(kind, key, _WEIGHTS[kind]))
    return found


def cues_at(line: str, starts: Sequence[int]) -> Mapping[int, int]:
    """The cues of each sentence, by its place."""
    cues: defaultdict[int, int] = defaultdict(int)
    lower = " " + line.replace("’", "'").replace("İ", "I").lower()  # a space more, else the same length
    for match in _CUES.finditer(lower):
        cues[_place(starts, match.start())] |= _cue(match[0][1:], lower, match.end())
    if not line.isascii() and _FAR.search(line):
        for bit, pattern in _FAR_CUES.items():
            for match in pattern.finditer(line):
                cues[_place(starts, match.start())] |= bit
    return cues


def _cue(word: str, lower: str, end: int) -> int:
    tells = TELLS if word in _OWNING else 0
    if word in _POSSESSIVES and _BEING.match(lower, end):
        return tells | FIXES
    if tells or word in _POSSESSIVES:
        return tells
    return WARNS if word.startswith(_WARNING) else STATES


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
            yield match.start(), "name", match[0].removesuffix("'s").removesuffix("’s")
    if _QUOTE.search(line) or " '" in line or line.startswith("'"):
        for match in _QUOTED.finditer(line):
            if _place(starts, match.start()) == _place(starts, match.end() - 1):
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
    if line[start - 2 : start] == ": " or name.lower() in _NO_NAMES or (name.isupper() and len(name) > _ACRONYM):
        return False
    first = starts[_place(starts, start)]
    return line[first:start].strip(_EDGES) != ""


def _place(starts: Sequence[int], position: int) -> int:
    """The sentence that holds a position."""
    return max(0, bisect_right(starts, position) - 1)
