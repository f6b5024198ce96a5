"""Decides when old turns leave the window, and carries it out in three steps: due, run, commit.

`due` plans and writes nothing; `run` asks the summariser and holds nothing but a lease, which keeps two workers
from paying for the same summary; `commit` replaces boundary and archive together, by compare-and-swap. So a lost
race or a crash at any point leaves the session as it was, and what is appended meanwhile stays live. `settle` is
the three in a row; who calls it, and on which thread, is `schedule.py`'s.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import Final

from slidemem.archive import Segment
from slidemem.consolidate import Written, write
from slidemem.errors import UnknownReference, told
from slidemem.events import Event
from slidemem.leaving import Job, advanced, merge_target, plan_job
from slidemem.meaning import is_behind
from slidemem.merge import merge
from slidemem.pinned import asked_to_remember, forget, put_into_profile, take_back, told_of_the_user
from slidemem.plan import headed_by, narrowed
from slidemem.present import without_secrets
from slidemem.request import SummaryRequest
from slidemem.session import Session
from slidemem.state import (
    Change,
    Entry,
    Kept,
    Lease,
    Pin,
    Record,
    Recount,
    Totals,
    of_user,
    recounted,
)
from slidemem.tokens import Tally

_LOG: Final = logging.getLogger("slidemem")
_CROWDED: Final = 4

LEASE_SECONDS: Final = 300.0  # after which a worker that was killed no longer keeps others from the work


@dataclass(frozen=True, slots=True)
class Consolidation:
    """What was written of a span that is due, and is not committed yet.

    Attributes:
        session: the session's id.
        segment: of the span.
        merged: archive segments that were merged on the way, the newest last.
        revision: of the record that it can be committed on.
        change: what the commit writes.
        events: to tell once it is committed.
        tokens_in: of the span, as it was shown.
        profile: what the span tells of the user, for the profile, and the user's pins.
        holder: of the lease that was taken for it; "" when none was.
    """

    session: str
    segment: Segment
    merged: tuple[Segment, ...]
    revision: int
    change: Change
    events: tuple[Event, ...]
    tokens_in: int
    profile: tuple[Pin, ...] = ()
    holder: str = ""


async def due(session: Session, *, now: bool = False, force: bool = False, waits: bool = False) -> Job | None:
    """What would leave the window; writes nothing.

    Args:
        session: the session.
        now: take the newest message for the end of a turn.
        force: cut down to `compact_to`, whether it is due or not.
        waits: leave it for the end of the turn, unless the window is past its limit.
    """
    snapshot = await session.snapshot()
    layout = narrowed(session.lay_out(snapshot), session.layouts.taken(session.id))
    if waits and layout.window_tokens <= layout.limit and not (layout.units and layout.units[-1].answers):
        return None
    job = plan_job(snapshot, layout, session.options, session.tally, now=now, force=force)
    return job if job is None or session.redact is None else _without_secrets(job, session.redact, session.tally)


async def run(session: Session, job: Job) -> Consolidation | None:
    """Write the segment of a job; None when another worker is writing it, or the session has moved on."""
    lease = Lease(token_hex(8), session.clock() + LEASE_SECONDS)
    costs = session.ask is not None and not session.extractive
    holder = lease.holder if costs else ""
    async with _released_by_a_fault(session, holder):
        if costs and not await session.store.claim(session.id, job.revision, lease, session.clock()):
            detail = f"messages {job.start} to {job.end - 1}: another worker is at it, or the session moved on"
            session.happened(Event("busy", session.id, detail, job.start, job.end))
            return None
        return replace(await _consolidation(session, job), holder=holder)


async def commit(session: Session, made: Consolidation) -> bool:
    """Move boundary and archive; False when the session has moved on since the job was planned.

    Raises:
        UnknownReference: the work is of another session.
    """
    if made.session != session.id:
        raise UnknownReference(f"this work is of session {made.session!r:.80}, not of {session.id!r:.80}")
    start, end = made.segment.start, made.segment.end
    async with _released_by_a_fault(session, made.holder):
        new = await put_into_profile(session, made.profile)  # first: a crash must not lose it
        won = await session.store.commit(session.id, made.revision, made.change)
        if new and not won:
            await take_back(session, start, new)
    if not won:
        detail = f"messages {start} to {end - 1}: the session moved on, this work is dropped"
        session.happened(Event("lost_race", session.id, detail, start, end))
        return False
    session.figures.consolidated(made.segment, made.tokens_in)
    for event in made.events:
        session.happened(event)
    return True


@asynccontextmanager
async def _released_by_a_fault(session: Session, holder: str) -> AsyncGenerator[None, None]:
    """Give the lease back when the work cannot be finished, so that it can be taken up at once."""
    try:
        yield
    except GeneratorExit:  # closed from outside: nothing may be awaited any more, and the lease ends by itself
        raise
    except BaseException:
        if holder:
            with suppress(Exception):  # where the store is gone too, the lease ends by itself
                await session.store.release(session.id, holder)
        raise


async def settle(session: Session, *, now: bool = False, force: bool = False, waits: bool = False) -> Segment | None:
    """Due, run, commit; returns the new segment, None when nothing was due or another worker came first."""
    job = await due(session, now=now, force=force, waits=waits)
    if job is not None:
        _tell_if_crowded(session)
    made = None if job is None else await run(session, job)
    return made.segment if made and await commit(session, made) else None


async def grown(session: Session, totals: Totals, entries: Sequence[Entry] = ()) -> None:
    """What follows an append: pins to forget, counts in this counter, and the scheduler, when something may be due.

    The messages are stored: whatever fails from here on is told and not raised, or the caller would store them again.
    """
    try:
        await forget(session, entries)
        other = totals.counter != session.tally.fingerprint
        if other:
            await _recount(session)
        if other or _near(session, totals) or is_behind(session):
            await session.when_due(session)
    except Exception as fault:  # noqa: BLE001  # the next append tries again
        postpone(session, fault)


def postpone(session: Session, fault: BaseException) -> None:
    """Tell that a fault kept what is due from being consolidated."""
    detail = f"what is due was not consolidated, and stays due: {told(fault)}"
    _LOG.warning("session %.80r: %s", session.id, detail)
    session.happened(Event("postponed", session.id, detail))


def _tell_if_crowded(session: Session) -> None:
    """Tell once that system prompt, pins and what is kept free leave less than a quarter of the window."""
    layout, options = session.layouts.get(session.id), session.options
    if layout is None or session.figures.crowded:
        return
    left = narrowed(layout, session.layouts.taken(session.id)).room
    if left < options.allotment // _CROWDED:
        session.figures.crowded = True
        detail = (
            f"system prompt, pins, archive and reserve leave {left} of {options.usable} tokens for the conversation, "
            f"where {options.allotment} were planned: raise max_tokens, or send less besides"
        )
        _LOG.warning("session %.80r: %s", session.id, detail)
        session.happened(Event("crowded", session.id, detail))


def _near(session: Session, totals: Totals) -> bool:
    """Whether consolidation may be due, from the running sums and what the latest layout added to the messages.

    Where that is out of date the work is seen to an append later; what it does is the same.
    """
    options, layout = session.options, session.layouts.get(session.id)
    taken = totals.overhead_tokens + session.layouts.taken(session.id)
    limit = min(options.allotment, options.usable - taken)
    if options.window_turns is not None and totals.live_turns > options.window_turns:
        return True
    shown = totals.live_tokens + totals.anchor_tokens + (layout.added_tokens if layout else 0)
    return shown > options.compact_at * limit


async def _recount(session: Session) -> None:
    """Count what is live with this memory's counter and store that; nothing when the session has moved on."""
    snapshot, tally = await session.snapshot(), session.tally
    anchor = snapshot.record.anchor
    counts = Recount(
        counter=tally.fingerprint,
        tokens={entry.seq: entry.tokens for entry in recounted(snapshot.live, tally.fingerprint, tally)},
        anchor_tokens=tally(anchor.message) if anchor else 0,
        overhead_tokens=headed_by(snapshot, session.options, tally),
    )
    await session.store.recount(session.id, snapshot.record.revision, counts)


# ------------------------------------------------------------------ what a commit writes


async def _consolidation(session: Session, job: Job) -> Consolidation:
    segment = await _segment(session, job)
    record, children, merges = await _merged(session, advanced(job, segment))
    pins, left_out = asked_to_remember(session, job)
    after = replace(job.snapshot, record=record, pins=(*job.snapshot.pins, *pins))
    own, users = ((), tuple(map(of_user, pins))) if session.pins_of_user else (pins, ())
    record = replace(record, overhead_tokens=headed_by(after, session.options, session.tally))
    detail = f"messages {job.start} to {job.end - 1} into {segment.tokens} tokens ({segment.method})"
    done = Event("consolidated", session.id, detail, job.start, job.end, segment)
    return Consolidation(
        session=session.id,
        segment=segment,
        merged=tuple(event.segment for event in merges if event.segment),
        revision=job.revision,
        change=Change(record, job.covered, (*children, *record.archive.segments), own),
        events=(done, *merges, *left_out),
        tokens_in=job.tokens,
        profile=(*users, *told_of_the_user(session, job, after)),
    )


class _Asking:
    """The session's summariser, its calls counted, its refusals told, and its health noted.

    Attributes:
        asks: whether there is one that may be asked now.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        apart = session.ask is None or session.extractive
        self.asks = not apart and session.breaker.lets(session.clock())

    async def __call__(self, request: SummaryRequest) -> str:
        self._session.figures.summarizer_calls += 1
        asked = replace(request, used=self._session.figures.used)
        return await self._session.ask(asked) if self._session.ask else ""

    def report(self, written: Written, start: int, end: int) -> None:
        """Tell why answers were refused, and whether the summariser is left alone from now on."""
        session = self._session
        session.figures.refusals += len(written.refusals)
        for refusal in written.refusals:
            session.happened(Event("refused", session.id, refusal, start, end))
        if written.failed:
            pause = session.breaker.failed(session.clock(), timed_out=written.timed_out)
            if pause:
                detail = f"the summariser is not asked for {pause:g} seconds: {written.refusals[-1]}"
                session.happened(Event("paused", session.id, detail, start, end))
        elif (written.refusals or written.method == "summarizer") and session.breaker.answered():
            session.happened(Event("resumed", session.id, "the summariser answers again", start, end))


async def _segment(session: Session, job: Job) -> Segment:
    request = SummaryRequest(
        job.messages,
        job.earlier,
        job.target_tokens,
        session.tally.text,
        cues=session.options.signs,
        input_tokens=session.options.summary_input_tokens,
        prefix=() if session.redact else session.figures.last,  # what was redacted must not be shown after all
    )
    ask = _Asking(session)

    def on_piece(done: int, of: int) -> None:
        if of > 1:
            detail = f"{done} of {of} pieces of messages {job.start} to {job.end - 1} are summarised"
            session.happened(Event("summarizing", session.id, detail, job.start, job.end, done=done, of=of))

    written = await write(ask if session.ask else None, request, extractive=not ask.asks, on_piece=on_piece)
    ask.report(written, job.start, job.end)
    archived = job.record.archive.segments
    return Segment(
        id=f"{job.start}-{job.end}.{job.revision + 1}",
        start=archived[-1].end if archived else 0,
        end=job.end,
        level=0,
        text=written.text,
        tokens=session.tally.text(written.text) if written.text else 0,
        method=written.method,
        retention=written.retention,
        children=(),
        first_at=job.covered[0].at,
        last_at=job.covered[-1].at,
    )


def _without_secrets(job: Job, redact: Callable[[str], str], tally: Tally) -> Job:
    """The job with all that outlives the window redacted: what is summarised, and the first user message."""

    def redacted(kept: Kept) -> Kept:
        message = without_secrets(kept.message, redact)
        return Kept(kept.seq, message, tally(message), tally.fingerprint)

    first = job.record.first_user
    return replace(
        job,
        messages=tuple(without_secrets(message, redact) for message in job.messages),
        record=replace(job.record, first_user=first and redacted(first)),
    )


async def _merged(session: Session, record: Record) -> tuple[Record, tuple[Segment, ...], tuple[Event, ...]]:
    """The record with its archive merged upwards as far as that is due, the children, and what happened."""
    merged: list[Segment] = []
    events: list[Event] = []
    while children := record.archive.mergeable():
        parent = await _parent(session, children, merge_target(record, children, session.options, session.tally))
        record = replace(record, archive=record.archive.merged(children, parent))
        merged.extend(children)
        detail = f"{len(children)} segments into {parent.tokens} tokens ({parent.method})"
        events.append(Event("merged", session.id, detail, parent.start, parent.end, parent))
    return record, tuple(merged), tuple(events)


async def _parent(session: Session, children: Sequence[Segment], target: int) -> Segment:
    first, last = children[0], children[-1]
    texts = [child.text for child in children if child.text]
    ask = _Asking(session)
    written = await merge(ask if ask.asks else None, texts, target, session.tally.text, session.options.signs)
    ask.report(written, first.start, last.end)
    return Segment(
        id=f"{first.start}-{last.end}.{last.id.rpartition('.')[2]}m",
        start=first.start,
        end=last.end,
        level=max(child.level for child in children) + 1,
        text=written.text,
        tokens=session.tally.text(written.text) if written.text else 0,
        method=written.method if texts else "none",
        retention=written.retention,
        children=tuple(child.id for child in children),
        first_at=first.first_at,
        last_at=last.last_at,
    )
