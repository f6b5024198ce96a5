"""Decides what a span leaves for good: pins that its user asked for, and what it tells of the user.

Pins are the session's, or the user's with `pin_scope="user"`; what is told of the user goes into the profile. A pin
of what was asked to be forgotten goes away. When a span is archived is `settle.py`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from slidemem.errors import told
from slidemem.events import Event
from slidemem.leaving import Job
from slidemem.messages import digest, user
from slidemem.openai_format import to_openai
from slidemem.plan import pinned_tokens
from slidemem.present import mend
from slidemem.session import Session, profile_id
from slidemem.state import Entry, Pin, Snapshot, with_profile
from slidemem.wishes import Asked, means, to_forget, to_remember


def asked_to_remember(session: Session, job: Job) -> tuple[tuple[Pin, ...], tuple[Event, ...]]:
    """Pins for what the user asked to remember in the span as far as they fit, and what did not.

    What the user asked to forget later on, in the span or since, is not pinned any more.
    """
    fitting: list[Pin] = []
    left_out: list[Event] = []
    asked = [(entry, _asked_of(session, entry)) for entry in job.snapshot.live if entry.message.role == "user"]
    forgotten = [(entry.seq, text) for entry, what in asked for text in what.forget]
    known = {pin.id.strip() for pin in job.snapshot.pins}
    for entry, text in ((entry, text) for entry, what in asked if entry.seq < job.end for text in what.remember):
        pin = pin_of(text, entry.seq)
        if pin.id in known or any(seq > entry.seq and means(gone, text) for seq, gone in forgotten):
            continue
        after = replace(job.snapshot, record=job.record, pins=(*job.snapshot.pins, *fitting, pin))
        if pinned_tokens(after, session.options, session.tally) <= session.options.archive_tokens:
            fitting.append(pin)
        else:
            left_out.append(Event("pin_left_out", session.id, f"no room for {text!r}", entry.seq, entry.seq + 1))
    return tuple(fitting), tuple(left_out)


async def forget(session: Session, entries: Sequence[Entry]) -> None:
    """Take away the pins that new messages of the user ask to forget."""
    said = [_asked_of(session, entry).forget for entry in entries if entry.message.role == "user"]
    wanted = [text for asked in said for text in asked]
    for pin in (await session.snapshot()).pins if wanted else ():
        if any(means(text, pin.text) for text in wanted) and await session.unpin(pin.id):
            session.happened(Event("unpinned", session.id, f"{pin.text!r}, as the user asked"))


def pin_of(text: str, source: int | None) -> Pin:
    """A pin of a text, on one line; the same text gives the same id."""
    line = mend(user(" ".join(text.split())))
    return Pin(digest(line)[:12], line.text, source)


def told_of_the_user(session: Session, job: Job, snapshot: Snapshot) -> tuple[Pin, ...]:
    """What a host's function finds in the span about the user, as far as it fits; its fault is told."""
    if session.extract_facts is None or session.user is None:
        return ()
    try:
        found = session.extract_facts([to_openai(message, portable=True) for message in job.messages])
        facts = [Pin(_one_line(name), _one_line(value)) for name, value in found.items()]
    except Exception as fault:  # noqa: BLE001  # a host's
        session.happened(Event("hook_failed", session.id, f"extract_facts raised {told(fault)}"))
        return ()
    fitting: dict[str, Pin] = {}
    for fact in facts:
        known = tuple((pin.id, pin.text) for pin in {**fitting, fact.id: fact}.values())
        after = with_profile(snapshot, known)
        if (
            fact.id
            and fact.text
            and pinned_tokens(after, session.options, session.tally) <= session.options.archive_tokens
        ):
            fitting[fact.id] = fact
        else:
            detail = f"no room for {fact.id!r} in the profile"
            session.happened(Event("pin_left_out", session.id, detail, job.start, job.end))
    return tuple(fitting.values())


async def put_into_profile(session: Session, facts: Sequence[Pin]) -> tuple[tuple[Pin, Pin | None], ...]:
    """Keep what a span told of the user; returns what of it was not known, each with what it takes the place of."""
    if not facts:
        return ()
    profile = profile_id(session.user or "")
    known = {pin.id: pin for pin in (await session.store.held(profile)).pins}
    new = tuple((fact, known.get(fact.id)) for fact in facts if known.get(fact.id) != fact)
    for fact, _ in new:
        await session.store.pin(profile, fact)
    return new


async def take_back(session: Session, start: int, new: Sequence[tuple[Pin, Pin | None]]) -> None:
    """Undo what a span from `start` told where nobody else archived it: it was deleted meanwhile.

    What was set since stays; a profile that is empty then goes, and with it the user's id.
    """
    if (await session.store.held(session.id)).record.boundary > start:
        return
    profile = profile_id(session.user or "")
    held = (await session.store.held(profile)).pins
    for fact, before in new:
        if fact in held and before is not None:
            await session.store.pin(profile, before)
        elif fact in held:
            await session.store.unpin(profile, fact.id)
    if not (await session.store.held(profile)).pins:
        await session.store.clear(profile)


def _asked_of(session: Session, entry: Entry) -> Asked:
    """What a user's message asks to remember and to forget, redacted."""
    text = session.redact(entry.shown.text) if session.redact else entry.shown.text
    more = _own(session, text) or Asked()
    return Asked((*to_remember(text), *more.remember), (*to_forget(text), *more.forget))


def _own(session: Session, text: str) -> Asked | None:
    """What a host's own function finds asked; its fault is told, and keeps nothing from being done."""
    try:
        return session.asked(text) if session.asked else None
    except Exception as fault:  # noqa: BLE001  # a host's
        session.happened(Event("hook_failed", session.id, f"asked raised {told(fault)}"))
        return None


def _one_line(value: object) -> str:
    return " ".join(str(value).split())
