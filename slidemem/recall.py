"""Decides which old messages a question needs.

A message is ranked by what it says and by what is said around it, on the statistics of its own session. Which words
a text is found by is `terms.py`'s, where they are kept the stores'; how messages are quoted is `quote.py`'s.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from slidemem.terms import asked, telling

REACH: Final = 6  # messages before and after one that help it
_HELP: Final = tuple(0.5 / distance for distance in range(1, REACH + 1))
_HOUR: Final = 3600.0  # seconds; messages further apart belong to two conversations
_SATURATION: Final = 1.2  # BM25's k1; its b is 0, since length is paid for below
_LONG: Final = 45  # words, some 60 tokens; a longer message pays for its length
_NAMED: Final = 1.6  # what the messages of a speaker count whom the question names
_SEEDS: Final = 200  # messages that are looked at with their neighbours
_NOTHING: Final[tuple[tuple[int, float], ...]] = ()


class Posting(NamedTuple):
    """A message that says a term.

    Attributes:
        seq: of the message.
        count: how often it says it.
    """

    seq: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody asks a posting


class Document(NamedTuple):
    """What ranking needs to know of a message.

    Attributes:
        length: `Terms.length` of it.
        at: when it was said, in seconds since 1970; 0 when the host did not say.
        speaker: its name in lower case, "" when it has none.
    """

    length: int
    at: float
    speaker: str


@dataclass(frozen=True, slots=True)
class Matches:
    """What a session holds of a question's terms.

    Attributes:
        messages: indexed messages before the question.
        length: sum of their lengths.
        frequency: how many of them say each asked term.
        postings: by term, `seq` ascending.
    """

    messages: int
    length: int
    frequency: Mapping[str, int]
    postings: Mapping[str, tuple[Posting, ...]]


# ------------------------------------------------------------------ ranking


class _Reason(NamedTuple):
    """What it takes to look back, in the weight of words that were said once.

    Attributes:
        least: a single message must say so much of the question,
        share: or this share of it,
        most: unless it says so much.
        score: what a message must reach to be quoted,
        of_best: and this share of what the best one reaches.
    """

    least: float
    share: float
    most: float
    score: float
    of_best: float


_QUESTION: Final = _Reason(0.0, 0.1, 1.0, 0.1, 0.1)
_REMARK: Final = _Reason(1.2, 0.6, 3.0, 0.8, 0.7)


def ranked(
    question: str, matches: Matches, documents: Mapping[int, Document], *, always: bool = False
) -> tuple[tuple[int, float], ...]:
    """`seq` and score of the messages that a question needs, best first; none for "thanks!".

    BM25 in which the terms of a message's neighbours count in part: .5 of the next ones, .25 of those behind them
    and so on, none across an hour. Long messages pay for their length, those of a speaker whom the question names
    count more. A score of 1 is that of a message that says one word nobody else said.

    Args:
        question: any text.
        matches: what the session holds of its `asked` terms.
        documents: of the messages that `looked_at` names.
        always: rank whatever says one of its terms itself, for a search that somebody asked for.
    """
    named = named_in(question, documents)
    sought = _sought(question, matches, named)
    reason = _QUESTION if asks(question) else _REMARK
    own, enough = _own(sought, matches, reason)
    if not own or not (enough or always):
        return _NOTHING
    seeds = _seeds({seq: weight for seq, weight in own.items() if seq in documents})
    scores = _with_help(sought, matches, documents, seeds)
    least = 0.0 if always else reason.score
    wanted = own if always else scores
    found = ((seq, weighed(scores[seq], documents[seq], named)) for seq in wanted if seq in scores)
    return tuple(sorted((one for one in found if one[1] >= least), key=lambda one: (-one[1], -one[0])))


def near_best(question: str, ranking: Sequence[tuple[int, float]]) -> Sequence[tuple[int, float]]:
    """Of a ranking what is worth its place in a prompt: what follows far behind the best is left where it is.

    A remark brings back the few messages that it is about, a question whatever may hold its answer.
    """
    reason = _QUESTION if asks(question) else _REMARK
    least = reason.of_best * ranking[0][1] if ranking else 0.0
    return [one for one in ranking if one[1] >= least]


def looked_at(question: str, matches: Matches, before: int) -> frozenset[int]:
    """The messages that ranking has to know of: those that say most of the question, and those around them."""
    sought = _sought(question, matches, {})
    own, _ = _own(sought, matches, _QUESTION)
    around: set[int] = set()
    for seq in _seeds(own):
        around.update(range(max(0, seq - REACH), min(before, seq + REACH + 1)))
    return frozenset(around)


@dataclass(frozen=True, slots=True)
class _Sought:
    """The terms of a question that are looked for.

    Attributes:
        rarity: of each that is found; 1 for a word that was said once, near 0 for one that all messages say.
        telling: how many of them, the first ones, say what the question is about.
        whole: rarity of all telling terms, those counted in that nobody said.
    """

    rarity: Mapping[str, float]
    telling: int
    whole: float


def _sought(question: str, matches: Matches, named: Mapping[str, frozenset[str]]) -> _Sought:
    names = frozenset(term for said in named.values() for term in said)
    about = telling(question) - names
    terms_ = [term for term in asked(question) if term not in names]
    rarity = {term: _rarity(matches.messages, matches.frequency.get(term, 0)) for term in terms_}
    first = [term for term in terms_ if term in about]
    rest = [term for term in terms_ if term not in about]
    found = [term for term in first if term in matches.postings]
    both = (*found, *(term for term in rest if term in matches.postings))
    return _Sought({term: rarity[term] for term in both}, len(found), sum(rarity[term] for term in first))


def _rarity(messages: int, frequency: int) -> float:
    """BM25's inverse document frequency, as a share of that of a term which one message says."""
    rarest = math.log1p((max(1, messages) - 0.5) / 1.5)
    often = max(1, min(frequency, messages))
    return math.log1p((messages - often + 0.5) / (often + 0.5)) / rarest


def named_in(question: str, documents: Mapping[int, Document]) -> Mapping[str, frozenset[str]]:
    """The speakers whom a question names, with the terms of their names."""
    words = frozenset(asked(question))
    speakers = {document.speaker for document in documents.values()}
    names = {speaker: frozenset(asked(speaker)) for speaker in speakers if speaker}
    return {speaker: name for speaker, name in names.items() if name and name <= words}


def asks(text: str) -> bool:
    """Whether a text is a question, or asks to be told something."""
    text = text.rstrip()
    opening = _OPENING.match(text, text.rfind("\n") + 1)
    return text.endswith(("?", "？", "؟")) or opening is not None


_OPENING: Final = re.compile(
    r"\W{0,3}(?:(?:and|but|so|ok|okay|please|hey)\W{1,3}){0,3}(?:wh(?:o|om|ose|ich|at(?!\sa\b)|en|ere|y)|how|am|is|are|was|were|do"
    r"|does|did|has|have|had|can|could|will|would|shall|should|may|might|must|remind|remember|recall|tell|show|find"
    r"|list|name)\b",
    re.IGNORECASE,
)


def _own(sought: _Sought, matches: Matches, reason: _Reason) -> tuple[dict[int, float], bool]:
    """How much of the question each message says itself, and whether one says enough to look back."""
    own: dict[int, float] = {}
    best = 0.0
    for place, (term, rarity) in enumerate(sought.rarity.items()):
        if place == sought.telling:
            best = max(own.values(), default=0.0)
        for seq, _ in matches.postings[term]:
            own[seq] = own.get(seq, 0.0) + rarity
    if sought.telling == len(sought.rarity):
        best = max(own.values(), default=0.0)
    return own, best > 0 and best >= max(reason.least, min(reason.most, reason.share * sought.whole))


def _seeds(own: Mapping[int, float]) -> Collection[int]:
    """The messages that say most; their number is bounded, and with it the time in a session of any size."""
    if len(own) <= _SEEDS:
        return own
    return {seq for _, seq in heapq.nlargest(_SEEDS, ((weight, seq) for seq, weight in own.items()))}


def _with_help(
    sought: _Sought, matches: Matches, documents: Mapping[int, Document], seeds: Collection[int]
) -> dict[int, float]:
    """BM25 with the neighbours' terms counted in before saturation.

    A term is as rare as it is said, and as it helps: what is said once in many places helps everywhere, what is said
    often in one place helps there.
    """
    around = {seq: near(seq, documents) for seq in seeds}
    scores: dict[int, float] = {}
    for term, rarity in sought.rarity.items():
        said: dict[int, float] = {}
        helping = 0
        for seq, count in matches.postings[term]:
            if seq in around:
                helping += 1
                for other, weight in around[seq]:
                    said[other] = said.get(other, 0.0) + weight * count
        reached = matches.frequency[term] * len(said) // max(1, helping)
        most = (rarity + _rarity(matches.messages, reached)) / 2 * (_SATURATION + 1)
        for seq, helped in said.items():
            scores[seq] = scores.get(seq, 0.0) + most * helped / (helped + _SATURATION)
    return scores


def near(seq: int, documents: Mapping[int, Document], reach: int = REACH) -> list[tuple[int, float]]:
    """Who is helped by a message, itself first, and by how much.

    Args:
        seq: of the message.
        documents: of it and of those around it; who is missing there is not helped.
        reach: messages before and after it that are.
    """
    at = documents[seq].at
    get = documents.get
    helped = [(seq, 1.0)]
    for distance, weight in enumerate(_HELP[:reach], 1):
        for other in (seq - distance, seq + distance):
            document = get(other)
            if document and not (at and document.at and abs(document.at - at) > _HOUR):
                helped.append((other, weight))
    return helped


def weighed(score: float, document: Document, named: Collection[str]) -> float:
    """A score after what the message pays for its length, and gains where the question names its speaker."""
    if document.length > _LONG:
        score /= math.sqrt(document.length / _LONG)
    return score * _NAMED if document.speaker in named else score
