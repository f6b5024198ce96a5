"""Decides when old turns leave the window, and carries it out: plan, write the segment, commit.

The segment is written holding nothing; boundary and archive are committed together, by compare-and-swap, so a
lost race or a crash leaves the session as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace

from slidemem.archive import Segment
from slidemem.consolidate import SummaryRequest, Written, write
from slidemem.events import Event
from slidemem.merge import merge
from slidemem.messages import digest, user
from slidemem.plan import (
    Job,
    Layout,
    advanced,
    headed_by,
    is_due,
    is_pressing,
    merge_target,
    narrowed,
    pinned_tokens,
    plan_job,
)
from slidemem.present import mend
from slidemem.retention import to_remember
from slidemem.session import Session
from slidemem.state import Pin, Record, Snapshot


async def consolidate(session: Session, *, force: bool = False) -> Segment | None:
    """Move what is due out of the window into the archive.

    Args:
        session: the session.
        force: cut down to `compact_to` now, whether it is due or not.

    Returns:
        The new segment; None when nothing was due, a cut would free nothing, or another commit came first.
    """
    snapshot = await session.snapshot()
    layout = narrowed(session.lay_out(snapshot), session.layouts.taken(session.id))
    if not force and not is_due(layout, session.options):
        return None
    return await _carry_out(session, snapshot, layout)


async def settle(session: Session) -> None:
    """Consolidate after an append: when the turn is answered, or at once when the window is past its limit."""
    snapshot = await session.snapshot()
    layout = narrowed(session.lay_out(snapshot), session.layouts.taken(session.id))
    answered = bool(layout.units) and layout.units[-1].answers
    if is_due(layout, session.options) and (answered or is_pressing(layout)):
        await _carry_out(session, snapshot, layout)


@dataclass(frozen=True, slots=True)
class _Work:
    """What a commit writes.

    Attributes:
        segment: of the span.
        record: with the segment in its archive, merged where that was due.
        children: segments that went into merged ones.
        pins: what the user asked to remember in the span.
        events: to tell once it is committed.
    """

    segment: Segment
    record: Record
    children: tuple[Segment, ...]
    pins: tuple[Pin, ...]
    events: tuple[Event, ...]


_WRITING: ContextVar[frozenset[tuple[int, str]]] = ContextVar("slidemem_writing", default=frozenset())


async def _carry_out(session: Session, snapshot: Snapshot, layout: Layout) -> Segment | None:
    """Plan, write, commit; nothing when it is the summariser of this very session that asks for it."""
    writing, me = _WRITING.get(), (id(session.store), session.id)
    if me in writing:
        return None
    token = _WRITING.set(writing | {me})
    try:
        return await _committed(session, snapshot, layout)
    finally:
        _WRITING.reset(token)


async def _committed(session: Session, snapshot: Snapshot, layout: Layout) -> Segment | None:
    job = plan_job(snapshot, layout, session.options, session.tally)
    if job is None:
        return None
    work = await _work(session, snapshot, job)
    won = await session.store.commit(
        session.id, job.revision, work.record, job.covered, (*work.children, *work.record.archive.segments), work.pins
    )
    if not won:
        detail = f"messages {job.start} to {job.end - 1}: the session moved on, this work is dropped"
        session.happened(Event("lost_race", session.id, detail, job.start, job.end))
        return None
    session.figures.consolidated(work.segment, sum(entry.tokens for entry in job.covered))
    for event in work.events:
        session.happened(event)
    return work.segment


async def _work(session: Session, snapshot: Snapshot, job: Job) -> _Work:
    segment = await _segment(session, job)
    record, children, merges = await _merged(session, advanced(job, segment))
    pins, left_out = _asked_to_remember(session, snapshot, job)
    after = replace(snapshot, record=record, pins=(*snapshot.pins, *pins))
    detail = f"messages {job.start} to {job.end - 1} into {segment.tokens} tokens ({segment.method})"
    done = Event("consolidated", session.id, detail, job.start, job.end, segment)
    return _Work(
        segment=segment,
        record=replace(record, overhead_tokens=headed_by(after, session.options, session.tally)),
        children=children,
        pins=pins,
        events=(done, *merges, *left_out),
    )


class _Asking:
    """The session's summariser, its calls counted and its refusals told."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def __call__(self, request: SummaryRequest) -> str:
        self._session.figures.summarizer_calls += 1
        return await self._session.ask(request) if self._session.ask else ""

    def report(self, written: Written, start: int, end: int) -> None:
        """Tell why answers were refused."""
        self._session.figures.refusals += len(written.refusals)
        for refusal in written.refusals:
            self._session.happened(Event("refused", self._session.id, refusal, start, end))


async def _segment(session: Session, job: Job) -> Segment:
    request = SummaryRequest(job.messages, job.earlier, job.target_tokens, session.tally.text)
    ask = _Asking(session)
    written = await write(ask if session.ask else None, request, extractive=session.extractive)
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
    summariser = None if session.extractive or session.ask is None else ask
    written = await merge(summariser, texts, target, session.tally.text)
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


def _asked_to_remember(session: Session, snapshot: Snapshot, job: Job) -> tuple[tuple[Pin, ...], tuple[Event, ...]]:
    """Pins for what the user asked to remember in the span as far as they fit, and what did not."""
    fitting: list[Pin] = []
    left_out: list[Event] = []
    asked = (
        (entry, text)
        for entry in job.covered
        if entry.message.role == "user"
        for text in to_remember(entry.shown.text)
    )
    for entry, text in asked:
        pin = pin_of(text, entry.seq)
        after = replace(snapshot, record=job.record, pins=(*snapshot.pins, *fitting, pin))
        if pinned_tokens(after, session.options, session.tally) <= session.options.archive_tokens:
            fitting.append(pin)
        else:
            left_out.append(Event("pin_left_out", session.id, f"no room for {text!r}", entry.seq, entry.seq + 1))
    return tuple(fitting), tuple(left_out)


def pin_of(text: str, source: int | None) -> Pin:
    """A pin of a text, on one line; the same text gives the same id."""
    line = mend(user(" ".join(text.split())))
    return Pin(digest(line)[:12], line.text, source)
