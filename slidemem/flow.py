"""The behaviour of a session, once, as coroutines over the store protocols; consolidation is in `settle.py`.

An async caller awaits a flow on a store that may suspend; a sync caller runs it with `drive` on a store that
never does. No thread, no event loop and no copy of anything: what a flow decides is `plan.py`'s and
`compose.py`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from slidemem.archive import Segment
from slidemem.compose import Call, Context, compose
from slidemem.errors import InvalidMessage, OversizeMessage, PinBudgetError
from slidemem.events import Stats
from slidemem.messages import Message, user
from slidemem.openai_format import Given, read_openai
from slidemem.plan import headed_by, pinned_tokens
from slidemem.present import barest, clamp, mend, oversize
from slidemem.session import Session
from slidemem.settle import pin_of, settle
from slidemem.state import Entry, Pin, Recount, Totals, recounted

_EXPORT: Final = 1  # schema of an exported session


# ------------------------------------------------------------------ append and context


async def append(session: Session, given: Given | Sequence[Given]) -> None:
    """Store messages, all or none, and consolidate when that is due (`mode="inline"`).

    The messages are stored first: when it is interrupted while a summariser works, they are there, and nothing
    else has changed.

    Raises:
        InvalidMessage: one of them cannot be read; nothing was stored.
        OversizeMessage: one is too large and `oversize="raise"`; nothing was stored.
    """
    entries = read(session, given)
    if not entries:
        return
    totals = await session.store.append(session.id, entries, session.metadata)
    other = totals.counter != session.tally.fingerprint
    if other:
        await _recount(session)
    if session.options.mode == "inline" and (other or _near(totals, session)):
        await settle(session)


async def context(
    session: Session,
    pending: Given | Sequence[Given] | None = None,
    system: str | Given | Sequence[Given] | None = None,
    reserve: int = 0,
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
    composed = compose(snapshot, layout, session.options, session.tally, call)
    shown = sum(map(session.tally, call.system)) if session.options.count_system else 0
    session.layouts.take(session.id, shown + reserve)
    session.figures.see(composed)
    return composed


async def transcript(session: Session) -> tuple[Message, ...]:
    """Every message ever appended, as it came, in order."""
    return tuple(entry.message for entry in await session.store.read(session.id))


async def clear(session: Session) -> None:
    """Delete the session for good: transcript, archive, pins, metadata, and what this process remembers of it."""
    await session.store.clear(session.id)
    session.forget()


async def export(session: Session) -> dict[str, Any]:
    """The whole session as one JSON object, to be read by eye or kept."""
    snapshot = await session.store.snapshot(session.id)
    entries = await session.store.read(session.id)
    return {
        "schema": _EXPORT,
        "session": session.id,
        "metadata": dict(snapshot.metadata),
        "pins": [pin.to_json() for pin in snapshot.pins],
        "record": snapshot.record.to_json(),
        "transcript": [entry.to_json() for entry in entries],
    }


async def archive(session: Session) -> tuple[Segment, ...]:
    """The archive's segments, oldest first."""
    return (await session.store.snapshot(session.id)).record.archive.segments


async def stats(session: Session) -> Stats:
    """The session in figures."""
    snapshot = await session.store.snapshot(session.id)
    record, totals, figures = snapshot.record, snapshot.totals, session.figures
    return Stats(
        messages=totals.messages,
        live_messages=len(snapshot.live),
        covered_messages=record.boundary,
        live_tokens=sum(entry.tokens for entry in recounted(snapshot.live, session.tally.fingerprint, session.tally)),
        archive_tokens=record.archive.tokens,
        segments=len(record.archive.segments),
        pins=len(snapshot.pins),
        consolidations=figures.consolidations,
        summarizer_calls=figures.summarizer_calls,
        refusals=figures.refusals,
        tokens_in=figures.tokens_in,
        tokens_out=figures.tokens_out,
        facts_found=figures.facts_found,
        facts_kept=figures.facts_kept,
        contexts=figures.contexts,
        prompt_tokens=figures.prompt_tokens,
        prefix_reuse=figures.prefix_reuse,
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
    await session.store.pin(session.id, new)
    return new


async def unpin(session: Session, pinned: Pin | str) -> bool:
    """Show a fact no longer, named by its pin, id or text; False when it was not pinned.

    Raises:
        InvalidMessage: it is neither a pin nor text.
    """
    if not isinstance(pinned, (str, Pin)):
        raise InvalidMessage(f"unpin takes a pin, its id or its text, got {type(pinned).__name__}")
    if isinstance(pinned, Pin):
        return await session.store.unpin(session.id, pinned.id)
    by_id = await session.store.unpin(session.id, pinned)
    return by_id or await session.store.unpin(session.id, pin_of(pinned, None).id)


async def pins(session: Session) -> tuple[Pin, ...]:
    """What is pinned, oldest first."""
    return (await session.store.snapshot(session.id)).pins


# ------------------------------------------------------------------ helpers


def _near(totals: Totals, session: Session) -> bool:
    """Whether consolidation may be due, from the running sums alone; never False when it is."""
    options = session.options
    taken = totals.overhead_tokens + session.layouts.taken(session.id)
    limit = min(options.allotment, options.usable - taken)
    if options.window_turns is not None and totals.live_turns > options.window_turns:
        return True
    return totals.live_tokens + totals.anchor_tokens > options.compact_at * limit


async def _recount(session: Session) -> None:
    """Count what is live with this memory's counter and store that; nothing when the session has moved on."""
    snapshot, tally = await session.store.snapshot(session.id), session.tally
    anchor = snapshot.record.anchor
    counts = Recount(
        counter=tally.fingerprint,
        tokens={entry.seq: entry.tokens for entry in recounted(snapshot.live, tally.fingerprint, tally)},
        anchor_tokens=tally(anchor.message) if anchor else 0,
        overhead_tokens=headed_by(snapshot, session.options, tally),
    )
    await session.store.recount(session.id, snapshot.record.revision, counts)


def read(session: Session, given: Given | Sequence[Given], first: int = 0) -> tuple[Entry, ...]:
    """Messages as entries: read, mended, counted once, clamped where they are too large."""
    messages = read_openai(given)
    return tuple(_entry(session, message, index, first + index) for index, message in enumerate(messages))


def _entry(session: Session, message: Message, index: int, seq: int) -> Entry:
    whole = mend(message)
    tokens = session.tally(whole)
    limit = session.options.unit_tokens
    shown = whole
    if message.role != "system" and oversize(tokens, limit, session.tally):
        if session.options.oversize == "raise":
            raise OversizeMessage(index, tokens, limit)
        shown = (clamp([whole], limit, session.tally) or [barest(whole)])[0]
    return Entry(
        seq=seq,
        message=message,
        shown=shown,
        tokens=tokens if shown is whole else session.tally(shown),
        whole_tokens=tokens,
        at=session.clock(),
        counter=session.tally.fingerprint,
    )


def _system(given: str | Given | Sequence[Given] | None) -> tuple[Message, ...]:
    if given is None:
        return ()
    if isinstance(given, str):
        return (Message("system", user(given).parts),) if given.strip() else ()
    return tuple(map(mend, read_openai(given)))
