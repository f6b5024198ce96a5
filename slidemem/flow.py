"""The behaviour of a session, once, as coroutines over the store protocols.

An async caller awaits a flow on a store that may suspend; a sync caller runs it with `drive` on a store that
never does. No thread, no event loop and no copy of anything: what a flow decides is `plan.py`'s and
`compose.py`'s. Consolidation is in `settle.py`, rewind and reconcile in `rewind.py`, whole sessions in
`export.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from slidemem import meaning, settle
from slidemem.archive import Segment
from slidemem.compose import Call, Context, compose
from slidemem.costs import money
from slidemem.entries import findable, read
from slidemem.errors import InvalidMessage, PinBudgetError, UnknownReference
from slidemem.events import Event, Stats
from slidemem.leaving import Plan, planned
from slidemem.messages import Message, user
from slidemem.openai_format import Given, read_openai
from slidemem.pinned import pin_of
from slidemem.plan import narrowed, pinned_tokens
from slidemem.present import mend
from slidemem.question import question_of
from slidemem.recollect import recollected
from slidemem.session import Session, profile_id
from slidemem.settle import Consolidation, grown
from slidemem.state import Branch, Pin, recounted
from slidemem.stores.base import Store

# ------------------------------------------------------------------ append and context


async def append(session: Session, given: Given | Sequence[Given]) -> None:
    """Store messages, all or none, and see to what is due then.

    The messages are stored first: when it is interrupted while a summariser works, they are there, and nothing
    else has changed.

    Raises:
        InvalidMessage: one of them cannot be read; nothing was stored.
        OversizeMessage: one is too large and `oversize="raise"`; nothing was stored.
    """
    entries = findable(session, read(session, given))
    if not entries:
        return
    await grown(session, await session.store.append(session.id, entries, session.metadata, session.user), entries)


async def context(
    session: Session,
    pending: Given | Sequence[Given] | None = None,
    system: str | Given | Sequence[Given] | None = None,
    reserve: int = 0,
    query: str | None = None,
) -> Context:
    """What to send now; never writes.

    Raises:
        BudgetTooSmall: not even the newest message fits.
        InvalidMessage: `pending` or `system` cannot be read.
    """
    snapshot = await session.snapshot()
    waiting = read(session, () if pending is None else pending, first=snapshot.totals.next_seq)
    call = Call(
        pending=tuple(replace(entry, tokens=entry.whole_tokens) for entry in waiting),
        system=_system(system),
        reserve=reserve,
    )
    layout = session.lay_out(snapshot, call.pending)
    composition = compose(snapshot, layout, session.options, session.tally, call)
    others = bool(session.scope)
    question = question_of(snapshot, layout, composition, call, query, session.options, others=others)
    composed = await recollected(session, composition, question) if question else composition.context
    shown = sum(map(session.tally, call.system)) if session.options.count_system else 0
    session.layouts.take(session.id, shown + reserve)
    whole = sum(entry.whole_tokens for entry in snapshot.live)
    session.figures.see(composed, whole, snapshot.totals.next_seq + len(waiting))
    return composed


def report(session: Session, tokens: int, sent: Given | Sequence[Given], beside: int, model: str) -> None:
    """Take what a provider counted of a prompt, where the memory corrects its budget by it.

    Raises:
        InvalidMessage: what was sent cannot be read.
    """
    if not session.options.correct_counts:
        return
    counted = beside + sum(map(session.tally, read_openai(sent)))
    if session.corrections.see(model, counted, tokens):
        session.layouts.clear()
        factor = session.corrections.factor
        detail = (
            f"{model or 'the model'} counts {factor:g} tokens for one of ours: {session.options.usable} are usable"
        )
        session.happened(Event("corrected", session.id, detail))


async def transcript(session: Session) -> tuple[Message, ...]:
    """Every message ever appended, as it came, in order."""
    return tuple(entry.message for entry in await session.store.read(session.id))


async def clear(session: Session) -> None:
    """Delete the session for good: transcript, archive, pins, metadata, and what this process remembers of it."""
    await meaning.forget(session)
    await session.store.clear(session.id)
    session.forget()


async def erase(store: Store, user_id: str, reach: Callable[[str], Session]) -> tuple[str, ...]:
    """Delete all sessions of a user for good, and what is known of the user; returns their ids.

    Sessions that are written meanwhile are deleted too, as often as there are some.
    """
    gone: list[str] = []
    while found := await store.sessions(user_id):
        for id_ in found:
            await clear(reach(id_))
        gone.extend(found)
    await store.clear(profile_id(user_id))
    return tuple(dict.fromkeys(gone))


async def branches(session: Session) -> tuple[Branch, ...]:
    """What rewinds took out of the conversation, oldest first."""
    return await session.store.branches(session.id)


async def plan(session: Session) -> Plan:
    """Where the session stands in its budget, and what would be consolidated."""
    snapshot = await session.snapshot()
    layout = narrowed(session.lay_out(snapshot), session.layouts.taken(session.id))
    return planned(snapshot, layout, session.options, session.tally)


# ------------------------------------------------------------------ archive


async def consolidate(session: Session, *, force: bool = False) -> Segment | None:
    """Move what is due out of the window, and embed it; returns the new segment, None when nothing was due."""
    segment = await settle.settle(session, now=True, force=force)
    await meaning.catch_up(session)
    return segment


async def commit(session: Session, made: Consolidation) -> bool:
    """Commit what a worker of a host's own has written, and embed what left the window; False for a lost race."""
    done = await settle.commit(session, made)
    await meaning.catch_up(session)
    return done


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where a segment of the archive comes from.

    Attributes:
        segment: the segment.
        children: explanations of the segments it was merged from, oldest first.
        messages: what it was made from, when it was made from messages.
    """

    segment: Segment
    children: tuple[Explanation, ...]
    messages: tuple[Message, ...]


async def archive(session: Session) -> tuple[Segment, ...]:
    """The archive's segments, oldest first."""
    return (await session.store.held(session.id)).record.archive.segments


async def explain(session: Session, segment: Segment | str) -> Explanation:
    """Where a segment comes from, down to the messages.

    Raises:
        UnknownReference: the archive has no such segment, nor has one of its merged ones.
    """
    wanted = segment.id if isinstance(segment, Segment) else segment
    left = list(await archive(session))
    while left:
        one = left.pop(0)
        if one.id == wanted:
            return await _explained(session, one)
        left.extend(await _children(session, one))
    raise UnknownReference(f"the archive has no segment {wanted!r:.80}; `archive()` lists the top-level ones")


async def _explained(session: Session, segment: Segment) -> Explanation:
    if segment.children:
        parts = [await _explained(session, child) for child in await _children(session, segment)]
        return Explanation(segment, tuple(parts), ())
    source = await session.store.read(session.id, segment.start, segment.end)
    return Explanation(segment, (), tuple(entry.message for entry in source))


async def _children(session: Session, segment: Segment) -> list[Segment]:
    children = [await session.store.segment(session.id, id_) for id_ in segment.children]
    return [child for child in children if child]


# ------------------------------------------------------------------ figures


async def stats(session: Session) -> Stats:
    """The session in figures."""
    snapshot = await session.snapshot()
    record, totals, figures = snapshot.record, snapshot.totals, session.figures
    return Stats(
        messages=totals.next_seq,
        live_messages=len(snapshot.live),
        covered_messages=record.boundary,
        live_tokens=sum(entry.tokens for entry in recounted(snapshot.live, session.tally.fingerprint, session.tally)),
        archive_tokens=record.archive.tokens,
        segments=len(record.archive.segments),
        pins=len(snapshot.pins),
        consolidations=figures.consolidations,
        summarizer_calls=figures.summarizer_calls,
        summarizer_read=figures.summarizer_read,
        summarizer_wrote=figures.summarizer_wrote,
        refusals=figures.refusals,
        tokens_in=figures.tokens_in,
        tokens_out=figures.tokens_out,
        facts_found=figures.facts_found,
        facts_kept=figures.facts_kept,
        contexts=figures.contexts,
        prompt_tokens=figures.prompt_tokens,
        prefix_reuse=figures.prefix_reuse,
        token_factor=session.corrections.factor,
        money=money(figures.used_tokens, session.options.prices) if session.options.prices else None,
    )


# ------------------------------------------------------------------ pins


async def pin(session: Session, text: str) -> Pin:
    """Show a fact always.

    Raises:
        PinBudgetError: it does not fit into `archive_share` beside what is pinned.
        InvalidMessage: it is blank or no text.
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidMessage("a pin must be text that is not blank")
    snapshot = await session.snapshot()
    new = pin_of(text, None)
    after = replace(snapshot, pins=(*snapshot.pins, new))
    needed = pinned_tokens(after, session.options, session.tally)
    if needed > session.options.archive_tokens:
        raise PinBudgetError(needed, session.options.archive_tokens)
    return await session.pin(new)


async def unpin(session: Session, pinned: Pin | str) -> bool:
    """Show a fact no longer, named by its pin, id or text; False when it was not pinned.

    Raises:
        InvalidMessage: it is neither a pin nor text.
    """
    if not isinstance(pinned, (str, Pin)):
        raise InvalidMessage(f"unpin takes a pin, its id or its text, got {type(pinned).__name__}")
    if isinstance(pinned, Pin):
        return await session.unpin(pinned.id)
    return await session.unpin(pinned) or await session.unpin(pin_of(pinned, None).id)


async def pins(session: Session) -> tuple[Pin, ...]:
    """What is pinned, the user's first, each oldest first."""
    return (await session.snapshot()).pins


def _system(given: str | Given | Sequence[Given] | None) -> tuple[Message, ...]:
    if given is None:
        return ()
    if isinstance(given, str):
        return (Message("system", user(given).parts),) if given.strip() else ()
    return tuple(map(mend, read_openai(given)))
