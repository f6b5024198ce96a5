"""Decides what in a span of conversation must survive a summary, and what of it did.

Facts are found by their form: addresses, paths, identifiers, money, dates, times, numbers, quoted words, names.
What else a sentence states is found by cues of health, preference, prohibition, limit, decision, promise and
correction, in a handful of languages. Each line of a text is gone through once, by patterns that take time
linear in its length, whatever it holds.
"""

# ruff: noqa: RUF001  # the signs of several scripts are what it looks for
from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise, takewhile
from typing import Final, NamedTuple


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


# ------------------------------------------------------------------ facts

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
_CLOSERS: Final = "\"'”’»)]*_`」』）"
_EDGES: Final = _CLOSERS + "“„«「‘([{}<>.,:;!?…，。；：！？、।|#~=-—– "  # what stands around a word
_SHORTEST: Final = 4  # characters of an identifier; a seat or a class is shorter
_LONGEST: Final = 80  # what is longer is base64 or a hash
_ACCOUNT: Final = 5  # digits of a number that stands for something
_ABBREVIATED: Final = 5  # letters of an abbreviation, with its full stop; a longer word with one ends a sentence
_ACRONYM: Final = 5  # letters; longer words in capitals are shouted

# ------------------------------------------------------------------ cues

_WARNS, _STATES, _FIXES, _TELLS = 1, 2, 4, 8
_NO_CUES: Final[Mapping[int, int]] = {}
_STRONG: Final = 4  # what a sentence states when it matters without a fact
_CUE_WEIGHTS: Final = {_WARNS: 8, _STATES: 4, _FIXES: 3, _TELLS: 3}
_CUE_SUMS: Final = tuple(sum(weight for bit, weight in _CUE_WEIGHTS.items() if bits & bit) for bits in range(16))

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
    _WARNS: re.compile("एलर्जी|शाकाहारी|मधुमेह|过敏|過敏|素食|糖尿病|アレルギー|从不"),
    _STATES: re.compile(
        "कभी नहीं|हमेशा|पसंद|वादा|याद रख|जन्मदिन|不能|必须|总是|喜欢|决定|预算|不要|生日|必ず|決め|好き|予算"
    ),
    _TELLS: re.compile("मैं|मेर|मुझे|हमार|मला|माझ|我|私|僕"),
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

# ------------------------------------------------------------------ sentences

_ROLE: Final = re.compile(r"- (system|user|assistant|tool): ")
_STACK: Final = re.compile(
    r"\s*(?:at\s[\w.$/<>]+\(|\.{3}\s\d+\smore|File\s\".*\",\sline\s\d)"
)  # a frame of a stack trace
_DUMP: Final = re.compile(  # how a line of a log, a stack trace, a table or JSON begins
    r"\s*(?:Caused\sby:|[|<{}\[\]]|\d{4}-\d\d-\d\d[T\s]\d|[\w$]+\.[\w$]+\.\S*:|calls\s\S+\s[{\[])"
)
_BRACES: Final = re.compile(r"[{\[>;]")
_CODED: Final = re.compile(r"[{;]\s*$|[{\[]\"|\":\s?[\"\d\[{]|->|=>|\[…")  # what else holds it; […: our mark of a cut
_BOLD: Final = re.compile(r"(?<!\w)\*\*|\*\*(?!\w)")
_MARKER: Final = re.compile(r"\s*(?:(?:[-*•>#+]+|\d{1,3}[.)])\s+)*")
_END: Final = re.compile(
    rf"[.!?…。！？।॥](?:(?<=[。！？।॥])[。！？।॥{re.escape(_CLOSERS)}]*\s*|[{re.escape(_CLOSERS)}]*\s+)"
)
_ABBREVIATIONS: Final = _words(
    "mr mrs ms dr prof st sr sra jr vs approx incl excl min max tel ca cf fig e.g i.e z.b d.h bzw"
)
_NO_NAMES: Final = _CALENDAR | _MONEY | _ABBREVIATIONS
_NUMBERED: Final = frozenset(("no", "nr", "p", "art"))  # abbreviations only before a number
_QUESTION: Final = ("?", "？", "؟")
_ASKING: Final = re.compile(  # a question that is typed without its mark
    r"(?:(?:and|but|ok|right|so)[,\s]+){0,3}(?:(?:what|where|who|how)s\b|(?:can|could|do|did|are)\s(?:u|you)\b|is\s(?:it|that)\b"
    r"|(?:wh\w{1,3}|how)\s(?:\w+\s)?(?:is|are|was|were|do|does|did|can|could|should|will|would)\b)[^.!]*\Z",
    re.IGNORECASE,
)
_LIMIT: Final = 300  # characters of a sentence
_FRAGMENT: Final = 24  # characters and
_FEW: Final = 3  # words that are no sentence of their own
_ASKS, _DUMPS = 0.4, 0.25  # what questions, and logs, JSON and code count

# ------------------------------------------------------------------ asked to remember

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
_NOTE: Final = re.compile(r"(?:(?:please|pls)\s+)?note(?:\s+(?:this|that)\b|(?=\s*:))[\s:,]*", re.IGNORECASE)
_WORD: Final = re.compile(r"\w")
_BELOW: Final = 12  # lines below "remember this:" that are taken

# ------------------------------------------------------------------ worth

_SPEAKERS: Final = {"user": 2.5, "assistant": 1.0, "tool": 0.5, "system": 0.5}
_FRAME: Final = 40  # characters that any line costs besides its text
_FADING: Final = 32  # lines after which an archive line counts half
_SLOWER: Final = 4  # times that one with a cue fades slower


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


class Statement(NamedTuple):
    """A sentence that holds a fact or a cue, a fragment beside it included.

    Attributes:
        text: as it was said, without list marks.
        role: of who said it, when the line of an archive names it; else "".
        facts: in it, by key.
        cue: how much it states besides.
        share: of its worth that counts: less for questions, and for logs, JSON and code.
    """

    text: str
    role: str
    facts: Mapping[str, Fact]
    cue: int
    share: float

    def worth(self, known: Container[str] = ()) -> float:
        """How much it matters; facts with a key that is known do not count, and a weak cue needs a fact."""
        new = sum(fact.weight for key, fact in self.facts.items() if key not in known)
        return self.share * (new + self.cue) if new or self.cue >= _STRONG else 0.0

    def density(self, role: str, known: Container[str] = ()) -> float:
        """What it is worth for its length, when this role says it."""
        return self.worth(known) * _SPEAKERS[role] / (_FRAME + len(self.text))


def facts(text: str) -> frozenset[Fact]:
    """The facts in a text, by their form; of logs, JSON and code only addresses, paths and identifiers."""
    return frozenset(fact for stated in statements(text) for fact in stated.facts.values())


def held(wanted: Iterable[Fact], text: str) -> frozenset[Fact]:
    """Those of the facts whose every word a text holds."""
    lower = text.lower()
    return frozenset(fact for fact in wanted if all(_says(lower, word) for word in fact.key.split()))


def importance(line: str, age: int) -> float:
    """How much an archive line matters, fading with the number of lines after it; a cue fades a quarter as fast.

    Args:
        line: of the archive.
        age: lines that came after it.
    """
    worth, fades_slowly = _standing(line)
    fading = age / _SLOWER if fades_slowly else age
    return (1 + worth) / (_FRAME + len(line)) / (1 + fading / _FADING)


@lru_cache(maxsize=1024)
def _standing(line: str) -> tuple[float, bool]:
    """Worth of an archive line, and whether it holds a strong cue; remembered, as every read asks again."""
    said = statements(line)
    worth = sum(one.worth() * _SPEAKERS[one.role or "assistant"] for one in said)
    return worth, any(one.cue >= _STRONG for one in said)


def statements(text: str) -> list[Statement]:
    """What a text states, in order; sentences without a fact or a cue are left out."""
    made: list[Statement] = []
    fenced = False
    for line in text.splitlines():
        role = _ROLE.match(line)
        start = role.end() if role else 0
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif line and not _STACK.match(line, start):
            data = fenced or _is_data(line, start)
            made.extend(_stated(line, _starts(line, start), role[1] if role else "", data=data))
    return made


def sentences(text: str) -> list[str]:
    """The sentences of a text, without list marks; one that is longer than 300 characters comes in pieces."""
    lines = [(line, _starts(line, 0)) for line in text.splitlines() if line]
    pieces = [line[start:end].strip() for line, starts in lines for start, end in pairwise((*starts, len(line)))]
    return [piece for piece in pieces if piece]


def to_remember(text: str) -> list[str]:
    """What a user asks to remember: an imperative at the start of a sentence, no question, nothing quoted.

    "Remember this: X", "please remember that X", "don't forget X", "Note: X" as a message's first words, and the
    like in other languages; X may be the next sentence, or the lines below. Not "do you remember X?".
    """
    asked: list[str] = []
    lines = text.splitlines()
    for at in _own_lines(lines):
        said = sentences(lines[at])
        for place, sentence in enumerate(said):
            opening = _REMEMBER.match(sentence) or (None if at or place else _NOTE.match(sentence))
            if opening:
                what = sentence[opening.end() :]
                below = takewhile(str.strip, lines[at + 1 : at + 1 + _BELOW])
                asked.extend([what] if what else said[place + 1 : place + 2] or map(_unmarked, below))
    return [what for what in asked if _WORD.search(what) and not what.rstrip(_CLOSERS).endswith(_QUESTION)]


def _unmarked(line: str) -> str:
    return " ".join(sentences(line))[:_LIMIT]


def _own_lines(lines: Sequence[str]) -> Iterator[int]:
    """Places of the lines that are neither code nor quoted."""
    fenced = False
    for at, line in enumerate(lines):
        start = line.lstrip()
        if start.startswith("```"):
            fenced = not fenced
        elif start and not fenced and not start.startswith((">", "#")):
            yield at


# ------------------------------------------------------------------ reading a line


def _stated(line: str, starts: Sequence[int], role: str, *, data: bool) -> Iterator[Statement]:
    """The statements of a line whose sentences start there; an archive line, which has a role, is one."""
    found = _facts_at(line, starts, data=data)
    cues = _NO_CUES if data else _cues_at(line, starts)
    places = found.keys() | {place for place, bits in cues.items() if bits != _TELLS}
    runs = [(0, len(starts) - 1)] if role else _runs(line, starts, sorted(places))
    for first, last in runs if places else ():
        run = range(first, last + 1)
        bits = 0
        known: dict[str, Fact] = {}
        for place in run:
            bits |= cues.get(place, 0)
            known |= found.get(place, {})
        text = line[starts[first] : starts[last + 1] if last + 1 < len(starts) else len(line)].strip()
        asks = text.rstrip(_CLOSERS).endswith(_QUESTION) or _ASKING.match(text)
        share = _DUMPS if data else _ASKS if asks else 1.0
        yield Statement(_BOLD.sub("", text) if "**" in text else text, role, known, _CUE_SUMS[bits], share)


def _runs(line: str, starts: Sequence[int], places: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of the sentences that stand together: neighbours of which one is a fragment."""
    runs: list[tuple[int, int]] = []
    edges = (*starts, len(line))
    for place in places:
        if runs and runs[-1][1] == place - 1 and edges[place + 1] - edges[runs[-1][0]] <= _LIMIT:
            first = runs[-1][0]
            if _is_fragment(line, edges[first], edges[place]) or _is_fragment(line, edges[place], edges[place + 1]):
                runs[-1] = first, place
                continue
        runs.append((place, place))
    return runs


def _is_fragment(line: str, start: int, end: int) -> bool:
    return end - start < _FRAGMENT and line.count(" ", start, end) <= _FEW


def _facts_at(line: str, starts: Sequence[int], *, data: bool) -> Mapping[int, dict[str, Fact]]:
    """The facts of each sentence, by its place."""
    found: defaultdict[int, dict[str, Fact]] = defaultdict(dict)
    for position, kind, text in _forms(line, starts):
        key = text.lower().strip()
        if key and (kind in _COPIED or not data):
            found[_place(starts, position)].setdefault(key, Fact(kind, key, _WEIGHTS[kind]))
    return found


def _cues_at(line: str, starts: Sequence[int]) -> Mapping[int, int]:
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
    tells = _TELLS if word in _OWNING else 0
    if word in _POSSESSIVES and _BEING.match(lower, end):
        return tells | _FIXES
    if tells or word in _POSSESSIVES:
        return tells
    return _WARNS if word.startswith(_WARNING) else _STATES


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


def _starts(line: str, start: int) -> list[int]:
    """Where the sentences of a line start; a long one starts again every 300 characters or less."""
    marker = _MARKER.match(line, start)
    starts = [marker.end() if marker else start]
    for end in _END.finditer(line, starts[0]):
        if line[end.start()] != "." or not _abbreviates(line, starts[-1], end):
            starts.append(end.end())
    return starts if len(line) <= _LIMIT else list(_cut(line, starts))


def _cut(line: str, starts: Sequence[int]) -> Iterator[int]:
    for start, end in pairwise((*starts, len(line))):
        at = start
        yield at
        while end - at > _LIMIT:
            space = line.rfind(" ", at + _LIMIT // 2, at + _LIMIT)
            at = space + 1 if space >= 0 else at + _LIMIT
            yield at


def _abbreviates(line: str, start: int, end: re.Match[str]) -> bool:
    """Whether a full stop belongs to an abbreviation or an initial."""
    word = line[max(start, end.start() - 8) : end.start()].rpartition(" ")[2].lstrip("(")
    numbered = word.lower() in _NUMBERED and line[end.end() : end.end() + 1].isdigit()
    return numbered or word.lower() in _ABBREVIATIONS or (len(word) == 1 and word.isupper())


def _is_data(line: str, start: int) -> bool:
    """Whether a line is of a log, JSON or code."""
    if _DUMP.match(line, start):
        return True
    end = start + _LIMIT
    return _BRACES.search(line, start, end) is not None and _CODED.search(line, start, end) is not None


# What joins a word, and a number, to what stands before and behind it; a number may have a unit.
_JOINED: Final = {
    False: (re.compile(r"[a-z\d]\Z", re.ASCII), re.compile(r"[a-z\d]", re.ASCII)),
    True: (re.compile(r"(?:[a-z\d]|\d[.,:])\Z", re.ASCII), re.compile(r"[.,:]?\d")),
}


def _says(lower: str, word: str) -> bool:
    """Whether a text holds a word that is no part of a longer word or number."""
    before, behind = _JOINED[word[0].isdigit()][0], _JOINED[word[-1].isdigit()][1]
    at = lower.find(word)
    while at >= 0:
        end = at + len(word)
        if not before.search(lower[max(0, at - 2) : at]) and not behind.match(lower, end):
            return True
        at = lower.find(word, at + 1)
    return False
