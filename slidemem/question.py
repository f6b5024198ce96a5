"""Decides what a context is asked, what room there is for old messages that answer it, and where they stand.

The question belongs to the newest user message: what may be quoted for it, and the room for that, are those of
the moment when it was said, so that the quotes stay the same bytes through the tool calls that it leads to. When
they no longer fit beside those, they fall to the share that is kept for them, and then away. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from slidemem.compose import Call, Composition, Context
from slidemem.config import Options
from slidemem.messages import Mark, Message, Part
from slidemem.plan import Layout
from slidemem.present import Shown, headed
from slidemem.quote import Recalled
from slidemem.recall import asks
from slidemem.state import Entry, Snapshot
from slidemem.terms import telling
from slidemem.tokens import Tally

KIND: Final = "recall"

_LATEST: Final = 8  # messages among which the last exchange is looked for
_REFERS: Final = re.compile(
    r"\b(?:it|its|that|this|those|these|they|them|their|he|she|him|her|his|ones?|same|other|else|first|second|third"
    r"|last|former|latter|there|then)\b|^\W*(?:and|what about|how about)\b",
    re.IGNORECASE,
)
_IDIOMS: Final = re.compile(  # that refer to nothing
    r"\bhow(?:['\u2019]s|\sis)\sit\sgoing\b|\bwhat\s(?:time|day)\sis\sit\b|\bsay\s(?:that|it)\sagain\b|\byou\sthere\b"
    r"|\bis\s(?:that|it)\s(?:right|true|so|ok|okay)\b|\bdoes\s(?:that|it|this)\smean\b"
    r"|,\s*\w{1,8}n['\u2019]t\s(?:it|that|they|he|she)\s*\?",
    re.IGNORECASE,
)
_EXCHANGE: Final = 500  # characters of each message of the last exchange


@dataclass(frozen=True, slots=True)
class Question:
    """What a context is asked.

    Attributes:
        text: the question.
        before: only messages before this `seq` may be quoted.
        place: of the message that the quotes head, among the context's own; None for a message of theirs at the end.
        allotments: tokens that quotes may take, the first that leads to something that fits.
    """

    text: str
    before: int
    place: int | None
    allotments: tuple[int, ...]


def question_of(  # noqa: PLR0913  # what a context is made of
    snapshot: Snapshot,
    layout: Layout,
    composition: Composition,
    call: Call,
    query: str | None,
    options: Options,
    *,
    others: bool = False,
) -> Question | None:
    """What is asked; None when nothing is, or nothing is out of sight, or recall is off.

    Args:
        snapshot: the session.
        layout: of the snapshot.
        composition: the context without quotes.
        call: arguments of the read.
        query: the question where it is another than the newest user message; "" for none.
        options: of the memory.
        others: whether other sessions may hold an answer, which are always out of sight.
    """
    receipt = composition.context.receipt
    hidden = receipt.covered or receipt.left_out or others
    if query == "" or not hidden or not options.recall_tokens:
        return None
    stored = snapshot.totals.next_seq
    if any(entry.message.role == "user" for entry in call.pending):
        last = stored + len(call.pending)
        text = query or _said(snapshot, last, call.pending)
        return Question(text, stored, _last_place(composition, options), (composition.free,))
    newest = _newest_user(layout)
    place = None if newest is None or _answered(layout) else _place(composition.body, newest)
    if newest is None or place is None:
        return Question(query, stored, _last_place(composition, options), (composition.free,)) if query else None
    then = _free_then(layout, composition, newest, place)
    return Question(
        query or _said(snapshot, newest),
        newest,
        place,
        (then, min(then, options.recall_tokens)),
    )


def quoted(composition: Composition, question: Question, block: Recalled, tally: Tally) -> Context:
    """The context with old messages quoted, whatever they take."""
    body = list(composition.body)
    if question.place is not None:
        headed_one = body[question.place]
        under = composition.context.head if question.place == 0 else ""
        message = headed(headed_one.message, block.text, KIND, under)
        body[question.place] = Shown(message, tally(message), headed_one.seqs)
    else:
        own = Message("user", (Part("text", block.text),), mark=Mark((KIND,)))
        body.append(Shown(own, tally(own), ()))
    taken = sum(shown.tokens for shown in body) - sum(shown.tokens for shown in composition.body)
    return composition.showing(body, taken, tuple(seq for seq in block.seqs if seq >= 0))


def _last_place(composition: Composition, options: Options) -> int | None:
    """Where quotes stand for a question that is not in the list: at its end; or, to alternate, at its last user's."""
    roles = [shown.message.role for shown in composition.body]
    return len(roles) - 1 - roles[::-1].index("user") if options.alternate and "user" in roles else None


def _free_then(layout: Layout, composition: Composition, newest: int, place: int) -> int:
    """Tokens that were free when the newest user message was said, whatever has come after it or joined it since."""
    body = composition.body
    own = sum(
        shown.tokens
        for unit in layout.units
        for shown in unit.shown
        if shown.seqs and shown.seqs[0] in body[place].seqs and shown.seqs[-1] <= newest
    )
    kept = layout.anchor.tokens if layout.anchor and layout.anchor.seq in body[place].seqs else 0
    before = sum(shown.tokens for shown in body[:place]) + (0 if place else layout.head.tokens)
    return max(0, composition.free + sum(shown.tokens for shown in body) - before - own - kept)


def _newest_user(layout: Layout) -> int | None:
    newest = next((unit.start for unit in reversed(layout.units) if unit.opens_turn), None)
    return layout.anchor.seq if newest is None and layout.anchor else newest


def _answered(layout: Layout) -> bool:
    """Whether the newest turn ends with an answer."""
    return bool(layout.units) and layout.units[-1].answers


def _place(body: Sequence[Shown], seq: int) -> int | None:
    return next((at for at in reversed(range(len(body))) if seq in body[at].seqs), None)


def _said(snapshot: Snapshot, newest: int, pending: Sequence[Entry] = ()) -> str:
    """The user message at a place as a question, with what was said before where it says little by itself."""
    anchor = snapshot.record.anchor
    if anchor and anchor.seq == newest:
        return said_in([anchor.message])
    end = newest + 1 - snapshot.record.boundary
    return said_in([entry.message for entry in (*snapshot.live[max(0, end - _LATEST) : end], *pending)])


def said_in(newest: Sequence[Message]) -> str:
    """What to look for: the newest user message, behind the last exchange when it only refers to that.

    "And what about the second one?" refers; "thanks!" asks for nothing, so nothing is put before it.

    Args:
        newest: the newest messages, oldest first; an exchange or two are enough.
    """
    places = [at for at, message in enumerate(newest) if message.role == "user"]
    if not places:
        return ""
    text = newest[places[-1]].text
    if telling(text) or not asks(text) or not _REFERS.search(_IDIOMS.sub("", text[:_EXCHANGE])):
        return text
    before = newest[places[-2] : places[-1]] if len(places) > 1 else ()
    said = (message.text[:_EXCHANGE] for message in before if message.role in {"user", "assistant"})
    return "\n".join((*filter(None, said), text))
