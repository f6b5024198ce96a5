"""Decides what in a span of conversation must survive a summary, and what of it did.

A text is cut into statements, each with the facts it holds and the cues it gives (`facts.py`), and each weighed
by who says it, and whether it is a question, a log or JSON.
"""

# ruff: noqa: RUF001  # the signs of several scripts are what it looks for
from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from slidemem.clauses import cuts, without_opening
from slidemem.cues import ALONE, PROMISES, STRONG, TELLS, Cue, cues_at, place, strength
from slidemem.facts import ABBREVIATIONS, CLOSERS, Fact, facts_at, is_month
from slidemem.messages import Role
from slidemem.remembered import remembered

_NO_CUES: Final[Mapping[int, int]] = {}
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
    rf"[.!?…。！？।॥](?:(?<=[。！？।॥])[。！？।॥{re.escape(CLOSERS)}]*\s*|[{re.escape(CLOSERS)}]*\s+)"
)
_NUMBERED: Final = frozenset(("no", "nr", "p", "art"))  # abbreviations only before a number
_ORDINAL, _MONTH = 2, 16  # digits before the full stop of a date such as 17. Juli, and characters of its month
QUESTION_MARKS: Final = ("?", "？", "؟")
_ASKING: Final = re.compile(  # a question that is typed without its mark
    r"(?:(?:and|but|ok|right|so)[,\s]+){0,3}(?:(?:what|where|who|how)s\b|(?:can|could|do|did|are)\s(?:u|you)\b|is\s(?:it|that)\b"
    r"|(?:wh\w{1,3}|how)\s(?:\w+\s)?(?:is|are|was|were|do|does|did|can|could|should|will|would)\b)[^.!]*\Z",
    re.IGNORECASE,
)
LONGEST: Final = 300  # characters of a sentence
_FRAGMENT: Final = 24  # characters and
_MANY: Final = 12  # clauses of a sentence; one of more is a list
_TRAILING: Final = " ,;，；–—-"
_INTRODUCES: Final = (":", "：")  # how a line ends that says what comes, and nothing itself
_FEW: Final = 3  # words that are no sentence of their own
_ASKS, _DUMPS = 0.25, 0.1  # what questions, and logs, JSON and code count
REPLACED: Final = " (replaced)"  # ends a line whose value a later one corrects
_STALE: Final = 0.2  # of its worth that counts then
_SPEAKERS: Final = {"user": 4.5, "assistant": 2.0, "tool": 0.5, "system": 0.5}
_MORE: Final = 0.14  # of its weight that each further number or code of a sentence adds
_BRIEF: Final = 24  # characters of a statement without a fact that says little by itself; a third without spaces
_TINY: Final = 0.5  # what it counts
_FRAME: Final = 110  # characters that any line costs besides its text
_NOTED: Final = 5000.0  # what a summariser's own line is worth besides: it was chosen by whoever read all of the span
_STRONGLY: Final = 1.5  # times that, where it states a preference, a prohibition or a decision
_FADING: Final = 128  # lines after which an archive line counts half
_SLOWER: Final = 4  # times that one with a cue fades slower


HEADINGS: Final = (  # of a summary
    "User and preferences",
    "Facts and identifiers",
    "Decisions",
    "Open questions",
)
_STEM: Final = 5  # letters by which two words are the same one
_LONGER: Final = re.compile(
    "(?:[^\\W\\d_]|[\u0900-\u0963\u0972-\u0dff]){4,}"
)  # with the vowel signs of Indic scripts
_SPACELESS: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")


class Statement(NamedTuple):
    """A sentence that holds a fact or a cue, a fragment beside it included.

    Attributes:
        text: as it was said, without list marks.
        role: of who said it, when the line of an archive names it; else "".
        facts: in it, by key.
        cues: in it, as bits of `cues.py`.
        share: of its worth that counts: less for questions, fragments, and logs, JSON and code.
        own: what a user's own cues multiply its worth by; 1 without.
    """

    text: str
    role: str
    facts: Mapping[str, Fact]
    cues: int
    share: float
    own: float = 1.0

    def worth(self, known: Container[str] = (), role: str = "user") -> float:
        """How much it matters when this role says it; facts with a key that is known do not count."""
        user = role == "user"
        new = sorted((fact.weight for key, fact in self.facts.items() if key not in known), reverse=True)
        alone = self.cues & (ALONE if user else PROMISES) or self.own > 1
        if not new and (not alone or self.text.endswith(_INTRODUCES)):
            return 0.0
        said = new[0] + _MORE * sum(new[1:]) if new else 1.0
        if not self.facts and len(self.text) < (_BRIEF // 3 if _SPACELESS.search(self.text) else _BRIEF):
            said *= _TINY
        return self.share * said * strength(self.cues, user=user) * self.own

    def density(self, role: str, known: Container[str] = ()) -> float:
        """What it is worth for its length, when this role says it."""
        return self.worth(known, role) * _SPEAKERS[role] / (_FRAME + len(self.text))


def facts(text: str) -> frozenset[Fact]:
    """The facts in a text, by their form; of logs, JSON and code only addresses, paths and identifiers."""
    return frozenset(fact for stated in statements(text) for fact in stated.facts.values())


def held(wanted: Iterable[Fact], text: str) -> frozenset[Fact]:
    """Those of the facts whose every word a text holds."""
    lower = text.lower()
    return frozenset(fact for fact in wanted if all(_says(lower, word) for word in fact.key.split()))


def importance(line: str, age: int, cues: tuple[Cue, ...] = ()) -> float:
    """How much an archive line matters, fading with the number of lines after it; a cue fades a quarter as fast.

    Args:
        line: of the archive.
        age: lines that came after it.
        cues: a user's own.
    """
    worth, fades_slowly = _standing(line, cues)
    fading = age / _SLOWER if fades_slowly else age
    counts = _STALE if line.endswith(REPLACED) else 1.0
    return counts * (1 + worth) / (_FRAME + len(line)) / (1 + fading / _FADING)


def states(line: str, cues: tuple[Cue, ...] = ()) -> bool:
    """Whether an archive line states something."""
    return _standing(line, cues)[0] > 0


@remembered(4096)
def _standing(line: str, cues: tuple[Cue, ...]) -> tuple[float, bool]:
    """Worth of an archive line, and whether it holds a strong cue; remembered, as every read asks again."""
    said = statements(line, cues)
    worth = sum(one.worth(role=one.role or "user") * _SPEAKERS[one.role or "user"] for one in said)
    strong = any(one.cues & STRONG or one.own > 1 for one in said)
    if not _is_note(line):
        return worth, strong
    return worth + _NOTED * (_STRONGLY if strong else 1.0), True


def _is_note(line: str) -> bool:
    """Whether a line is a summariser's own, which names no speaker; a heading is none."""
    text = line.removeprefix("- ").rstrip()
    return not _ROLE.match(line) and not text.endswith(_INTRODUCES) and text not in HEADINGS


def stems(text: str) -> frozenset[str]:
    """The beginnings of the longer words; of a script without spaces its characters."""
    lower = text.lower()
    return frozenset((*(word[:_STEM] for word in _LONGER.findall(lower)), *_SPACELESS.findall(lower)))


def statements(text: str, cues: tuple[Cue, ...] = (), speaker: Role | None = None) -> list[Statement]:
    """What a text states, in order; sentences without a fact or a cue are left out.

    Args:
        text: of a message, or lines of an archive.
        cues: a user's own.
        speaker: who said it: then long sentences are cut to their densest clauses. None leaves them whole.
    """
    made: list[Statement] = []
    fenced = False
    for line in text.splitlines():
        role = _ROLE.match(line)
        start = role.end() if role else 0
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif line and not _STACK.match(line, start):
            data = fenced or _is_data(line, start)
            stated = _stated(line, _starts(line, start), role[1] if role else "", cues, speaker, data=data)
            made.extend(stated)
    return made


def sentences(text: str) -> list[str]:
    """The sentences of a text, without list marks; one that is longer than 300 characters comes in pieces."""
    lines = [(line, _starts(line, 0)) for line in text.splitlines() if line]
    pieces = [line[start:end].strip() for line, starts in lines for start, end in pairwise((*starts, len(line)))]
    return [piece for piece in pieces if piece]


@dataclass(frozen=True, slots=True)
class _Found:
    """What a line holds, by the places of its clauses, or of its sentences where those are not cut."""

    line: str
    starts: Sequence[int]
    facts: Mapping[int, dict[str, Fact]]
    cues: Mapping[int, int]
    boosts: Mapping[int, float]

    def places(self) -> list[int]:
        """Those that hold a fact or a cue, in order."""
        cues = {at for at, bits in self.cues.items() if bits & ~TELLS}
        return sorted(self.facts.keys() | cues | self.boosts.keys())

    def text(self, first: int, last: int) -> str:
        """From one place to another."""
        end = self.starts[last + 1] if last + 1 < len(self.starts) else len(self.line)
        text = self.line[self.starts[first] : end].strip()
        return _BOLD.sub("", text) if "**" in text else text

    def statement(self, first: int, last: int, role: str, share: float) -> Statement:
        """What is stated from one place to another."""
        bits, boost = 0, 1.0
        known: dict[str, Fact] = {}
        for at in range(first, last + 1):
            bits |= self.cues.get(at, 0)
            known |= self.facts.get(at, {})
            boost = max(boost, self.boosts.get(at, 1.0))
        return Statement(self.text(first, last), role, known, bits, share, boost)

    def clauses(self, first: int, last: int, speaker: Role, share: float) -> Iterator[Statement]:
        """The densest run of clauses, then those of what is before and behind it, as far as they state something."""
        if not any(first <= at <= last for at in self.places()):
            return
        runs = [(one, other) for one in range(first, last + 1) for other in range(one, last + 1)]
        made = {run: self.statement(*run, "", share) for run in runs}
        best = max(runs, key=lambda run: (made[run].density(speaker), run[1] - run[0]))
        yield from self.clauses(first, best[0] - 1, speaker, share)
        yield made[best]._replace(text=without_opening(made[best].text).rstrip(_TRAILING))
        yield from self.clauses(best[1] + 1, last, speaker, share)


def _stated(
    line: str, starts: Sequence[int], role: str, own: tuple[Cue, ...], speaker: Role | None, *, data: bool
) -> Iterator[Statement]:
    """The statements of a line whose sentences start there; an archive line, which has a role, is one."""
    cut = cuts(line, starts) if speaker and not data and not role else starts
    found = _Found(
        line,
        cut,
        facts_at(line, cut, starts, data=data),
        _NO_CUES if data else cues_at(line, cut),
        _boosts(line, cut, own),
    )
    places = found.places()
    sentences_of = sorted({place(starts, cut[at]) for at in places})
    edges = [bisect_left(cut, start) for start in starts] + [len(cut)]
    runs = [(0, len(starts) - 1)] if role else _runs(line, starts, sentences_of)
    for one, other in runs if places else ():
        first, last = edges[one], edges[other + 1] - 1
        share = _share(found.text(first, last), data=data)
        if speaker and not role and last - first < _MANY:
            yield from found.clauses(first, last, speaker, share)
        else:
            yield found.statement(first, last, role, share)


def _share(text: str, *, data: bool) -> float:
    """How much of a statement's worth counts, by its shape."""
    if data:
        return _DUMPS
    asks = text.rstrip(CLOSERS).endswith(QUESTION_MARKS) or _ASKING.match(text)
    return _ASKS if asks else 1.0


def _boosts(line: str, starts: Sequence[int], own: tuple[Cue, ...]) -> dict[int, float]:
    """What a user's own cues multiply the worth of sentences by."""
    boosts: dict[int, float] = {}
    for cue in own:
        for match in cue.pattern.finditer(line):
            at = place(starts, match.start())
            boosts[at] = max(cue.weight, boosts.get(at, 1.0))
    return boosts


def _runs(line: str, starts: Sequence[int], places: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of the sentences that stand together: neighbours of which one is a fragment."""
    runs: list[tuple[int, int]] = []
    edges = (*starts, len(line))
    for at in places:
        if runs and runs[-1][1] == at - 1 and edges[at + 1] - edges[runs[-1][0]] <= LONGEST:
            first = runs[-1][0]
            if _is_fragment(line, edges[first], edges[at]) or _is_fragment(line, edges[at], edges[at + 1]):
                runs[-1] = first, at
                continue
        runs.append((at, at))
    return runs


def _is_fragment(line: str, start: int, end: int) -> bool:
    return end - start < _FRAGMENT and line.count(" ", start, end) <= _FEW


def _starts(line: str, start: int) -> list[int]:
    """Where the sentences of a line start; a long one starts again every 300 characters or less."""
    marker = _MARKER.match(line, start)
    starts = [marker.end() if marker else start]
    for end in _END.finditer(line, starts[0]):
        if line[end.start()] != "." or not _abbreviates(line, starts[-1], end):
            starts.append(end.end())
    return starts if len(line) <= LONGEST else list(_cut(line, starts))


def _cut(line: str, starts: Sequence[int]) -> Iterator[int]:
    for start, end in pairwise((*starts, len(line))):
        at = start
        yield at
        while end - at > LONGEST:
            space = line.rfind(" ", at + LONGEST // 2, at + LONGEST)
            at = space + 1 if space >= 0 else at + LONGEST
            yield at


def _abbreviates(line: str, start: int, end: re.Match[str]) -> bool:
    """Whether a full stop belongs to an abbreviation, an initial, or the day of a date."""
    word = line[max(start, end.start() - 8) : end.start()].rpartition(" ")[2].lstrip("(")
    after = line[end.end() : end.end() + _MONTH]
    numbered = word.lower() in _NUMBERED and after[:1].isdigit()
    ordinal = word.isdigit() and len(word) <= _ORDINAL and (after[:1].islower() or is_month(after))
    return numbered or ordinal or word.lower() in ABBREVIATIONS or (len(word) == 1 and word.isupper())


def _is_data(line: str, start: int) -> bool:
    """Whether a line is of a log, JSON or code."""
    if _DUMP.match(line, start):
        return True
    end = start + LONGEST
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
