"""Carries out recall: asks a store where a question's words occur, and reads the messages that are worth quoting.

What a question is, and where quotes stand, is `question.py`'s; what they are worth and how they read, `recall.py`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Final, NamedTuple

from slidemem.compose import Composition, Context
from slidemem.events import Event
from slidemem.fusion import NEXT, fused
from slidemem.lines import line_at, lines_of, with_lines
from slidemem.meaning import notice, similar
from slidemem.messages import Message
from slidemem.present import mend, without_secrets
from slidemem.question import Question, quoted
from slidemem.quote import Quote, excerpt, packed
from slidemem.recall import asks, looked_at, near_best, ranked
from slidemem.session import Session
from slidemem.state import Entry
from slidemem.terms import asked, telling
from slidemem.units import runs

_AROUND: Final = 16  # messages before and after one of a tool's, among which its call and results are looked for
_MOST: Final = 400  # messages that are read for a question
_EXCERPT: Final = 100  # words of a long message that are quoted
_OTHERS: Final = 50  # of the user's other sessions that are looked through, the latest
EVERYTHING: Final = 2**62  # beyond every `seq`
_FRAME: Final = 3  # words that a quote takes besides
_SPARE: Final = 1.2  # words that are read for each token that there is: some quotes do not fit, or say nothing new


async def recollected(session: Session, composition: Composition, question: Question) -> Context:
    """The context with the old messages quoted that the question needs; as it was when there are none that fit."""
    receipt = composition.context.receipt
    notice(session, receipt.boundary)
    shown = tuple(seq for seq in receipt.shown if seq < question.before)
    key = (receipt.revision, composition.context.head, question.text, question.before, shown, question.allotments[0])
    known = session.layouts.found(session.id, key)
    candidates = known if known is not None else await _candidates(session, composition, question)
    session.layouts.find(session.id, key, candidates)
    for allotment in question.allotments:
        context = _quoting(session, composition, question, candidates, allotment)
        if context is not None and context.zones.recall <= composition.free:
            if known is None:
                _tell(session, context)
            return context
    return composition.context


def _quoting(
    session: Session, composition: Composition, question: Question, candidates: Sequence[Quote], allotment: int
) -> Context | None:
    """The context with quotes that take what they are allotted; packed anew where they cost more in their place."""

    def within(limit: int) -> Context | None:
        block = packed(candidates, limit, session.tally.text)
        return quoted(composition, question, block, session.tally) if block.text else None

    context = within(allotment)
    over = context.zones.recall - allotment if context else 0
    return context if over <= 0 else within(allotment - over)


async def _candidates(session: Session, composition: Composition, question: Question) -> tuple[Quote, ...]:
    """What may be quoted, best first: messages before the question that the context does not show, and lines."""
    receipt = composition.context.receipt
    lines = tuple(line for line in lines_of(composition.archive) if line not in composition.context.head)
    own = await places(session, question.text, question.before, lines)
    shown = set(receipt.shown)
    ranking = [found for found in own if found.place not in shown]
    sittings = await elsewhere(session, question.text)
    if sittings:
        ranking = sorted([*ranking, *chain.from_iterable(sittings.values())], key=lambda found: -found.score)
    hidden = list(_enough(ranking, question.allotments[0]))
    picked = {id_: await picked_in(session, id_, hidden) for id_ in {found.session for found in hidden}}
    order = {id_: at - len(sittings) for at, id_ in enumerate(sittings)}
    quotes: dict[tuple[str, int], Quote] = {}
    words = 0  # of the quotes: with a call its results are quoted, which the call's own words do not tell
    for place, _, _, id_ in hidden:
        if words > question.allotments[0] * _SPARE:
            break
        line = line_at(place)
        if line is not None:
            quotes["", place] = Quote(place, "note", "", lines[line])
        elif place in picked[id_]:
            before = question.before if id_ == session.id else picked[id_][place].seq + _AROUND
            run = await _run(session, id_, picked[id_][place], before)
            if (id_, run[0].seq) not in quotes:
                quote = quote_of(session, run, question.text)
                quotes[id_, run[0].seq] = replace(quote, sitting=order.get(id_, 0))
                words += len(quote.text.split()) + _FRAME
    return tuple(quotes.values())


async def picked_in(session: Session, id_: str, wanted: Iterable[Found]) -> dict[int, Entry]:
    """The messages of a session at the places that were found there."""
    seqs = [found.place for found in wanted if found.session == id_ and found.place >= 0]
    return {entry.seq: entry for entry in await session.store.pick(id_, seqs)}


def _enough(ranking: Iterable[Found], allotment: int) -> Iterator[Found]:
    """The best places, until what stands there fills an allotment with some to spare."""
    words = 0
    for found in islice(ranking, _MOST):
        yield found
        words += min(found.words, _EXCERPT) + _FRAME
        if words > allotment * _SPARE:
            return


class Found(NamedTuple):
    """Where a question is answered.

    Attributes:
        place: the `seq` of a message, or the place of a line.
        score: how well.
        words: how many stand there.
        session: in which.
    """

    place: int
    score: float
    words: int
    session: str


async def elsewhere(session: Session, text: str, *, always: bool = False) -> dict[str, list[Found]]:
    """Where the other sessions of the user answer a question, by session in the order in which they began.

    Each is ranked on its own statistics, the latest ones alone. Nothing where recall keeps to one session.

    Args:
        session: the session that asks.
        text: the question.
        always: rank whatever matches, for a search that somebody asked for.
    """
    if session.scope is None:
        return {}
    others = [id_ for id_ in await session.store.sessions(session.scope) if id_ != session.id][-_OTHERS:]
    found = [await places(replace(session, id=id_), text, EVERYTHING, (), always=always) for id_ in others]
    return {id_: some for id_, some in zip(others, found, strict=True) if some}


async def places(
    session: Session, text: str, before: int, lines: Sequence[str], *, always: bool = False
) -> list[Found]:
    """Where a question is answered in one session, best first.

    Args:
        session: the session.
        text: the question.
        before: messages from this `seq` on are not looked at.
        lines: of the archive, that are looked at too.
        always: rank whatever matches, for a search that somebody asked for.
    """
    terms = asked(text)
    if not terms:
        return []
    matches = await session.store.matching(session.id, terms, before)
    known = await session.store.documents(session.id, looked_at(text, matches, before))
    matches, known = with_lines(matches, known, lines)
    ranking = ranked(text, matches, known, always=always)
    if ranking or always or (asks(text) and telling(text)):
        alike = {seq: score for seq, score in (await similar(session, text)).items() if seq < before}
        if alike:
            around = {seq + step for seq in alike for step in range(-NEXT, NEXT + 1)}
            known = {**known, **await session.store.documents(session.id, [at for at in around if 0 <= at < before])}
            ranking = fused(text, ranking, alike, known)
    worth = ranking if always else near_best(text, ranking)
    return [Found(place, score, known[place].length, session.id) for place, score in worth]


async def _run(session: Session, id_: str, entry: Entry, before: int) -> list[Entry]:
    """A message with what belongs to it: a call with all of its results."""
    if entry.message.role != "tool" and not entry.message.tool_calls:
        return [entry]
    start, end = max(0, entry.seq - _AROUND), min(before, entry.seq + _AROUND)
    around = await session.store.read(id_, start, end)
    return next((run for run in runs(around) if any(one.seq == entry.seq for one in run)), [entry])


def quote_of(session: Session, run: Sequence[Entry], question: str) -> Quote:
    """Messages that belong together as they are quoted for a question: mended, redacted, calls written out, short."""
    messages = [one.shown if one.tokens == one.whole_tokens else mend(one.message) for one in run]
    if session.redact:
        messages = [without_secrets(message, session.redact) for message in messages]
    first = messages[0]
    text = excerpt("\n".join(_lines(messages)), question)
    return Quote(run[0].seq, first.role, first.name or "", text, first.time or "")


def _lines(messages: Sequence[Message]) -> Iterator[str]:
    """What a message says, its calls, and what they gave."""
    first, *results = messages
    if first.text:
        yield first.text
    for call in first.tool_calls:
        yield f"called {call.name}({call.arguments})"
    for result in results:
        yield f"{result.name or 'result'}: {result.text}"


def _tell(session: Session, context: Context) -> None:
    """Tell that something was quoted that the window no longer holds, when it was archived already."""
    receipt = context.receipt
    archived = [seq for seq in receipt.recalled if seq < receipt.boundary]
    if archived:
        detail = f"{len(archived)} archived messages are quoted, in {context.zones.recall} tokens"
        session.happened(Event("recalled", session.id, detail, archived[0], archived[-1] + 1))
