"""Decides how the records of a session travel in the state of a host: a graph's state, say, next to the messages.

The host keeps one JSON value with its list of messages, and hands both over at each call. So they are stored, forked
and taken back together, whoever does so. Beside the record the value holds what tells the messages that each segment
covers from others. Where the host has changed the list before the boundary, the segments before the change stay,
back to the beginning of a turn, and what comes after them is live again. Messages that the host has taken off the
front are gone from the list alone: the archive still stands for them.

Kept small: children of merged segments are left out, so that a segment is given up as a whole, and metadata, which
the host says at each call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Final

from slidemem.archive import Archive, Segment
from slidemem.driver import drive
from slidemem.errors import StoreError, told
from slidemem.messages import Message, Part, digest
from slidemem.state import Change, Held, Lease, Pin, Record
from slidemem.stores.memory import MemoryStore

GONE: Final = Message("user", (Part("text", "[gone]"),))
"""What stands for a message that its host has taken off the front of its list."""


class Carried:
    """A host's list and state, as they are worked with.

    Args:
        messages: of the host, in order.
        state: what `state` gave before; None at first.

    Raises:
        StoreError: the state is not what `state` gave.

    Attributes:
        messages: those that there are, behind one for each that is gone.
    """

    def __init__(self, messages: Sequence[Message], state: Mapping[str, Any] | None) -> None:
        found = _found(messages, state) if state else _Found(Held(), 0)
        self.messages: Sequence[Message] = (*[GONE] * found.gone, *messages) if found.gone else messages
        self._gone = found.gone
        self._read = found.held
        self._records = MemoryStore()
        drive(self._records.commit("", 0, _all_of(found.held)), "")

    @property
    def records(self) -> MemoryStore:
        """What is known of the session, under an empty id."""
        return self._records

    @property
    def state(self) -> dict[str, Any] | None:
        """What the host is to keep, as JSON; None where nothing has changed."""
        held = drive(self._records.held(""), "")
        if held == self._read:
            return None
        segments = held.record.archive.segments
        return {
            "record": held.record.to_json(),
            "pins": [pin.to_json() for pin in held.pins],
            "covers": [_covered(self.messages, segment) for segment in segments],
            "first": _name(self.messages[self._gone]) if len(self.messages) > self._gone else "",
            "gone": self._gone,
        }


class CarriedRecords:
    """A `Records` and a `MessageLog` of what a host hands over, for the time of a call."""

    def __init__(self) -> None:
        self._now: ContextVar[Carried] = ContextVar("slidemem_carried")

    @contextmanager
    def carrying(self, carried: Carried) -> Generator[Carried]:
        """While this is what the sessions of this thread or task work with."""
        token = self._now.set(carried)
        try:
            yield carried
        finally:
            self._now.reset(token)

    async def messages(self, session: str) -> Sequence[Message]:  # noqa: ARG002  # the protocol's, as below
        """See `MessageLog.messages`."""
        return self._now.get().messages

    async def add(self, session: str, messages: Sequence[Message]) -> None:
        """Refused: the host adds to its list itself."""
        reason = f"the {len(messages)} messages of session {session!r:.80} are their host's to add"
        raise StoreError(repr(self), reason, "add them to its list, and hand that over")

    async def held(self, session: str) -> Held:  # noqa: ARG002
        """See `Records.held`."""
        return await self._now.get().records.held("")

    async def describe(self, session: str, metadata: Sequence[tuple[str, str]]) -> None:  # noqa: ARG002
        """See `Records.describe`."""
        await self._now.get().records.describe("", metadata)

    async def commit(self, session: str, expected: int, change: Change) -> bool:  # noqa: ARG002
        """See `Records.commit`."""
        return await self._now.get().records.commit("", expected, replace(change, covered=()))

    async def segment(self, session: str, id_: str) -> Segment | None:  # noqa: ARG002
        """See `Records.segment`."""
        return await self._now.get().records.segment("", id_)

    async def pin(self, session: str, pin: Pin) -> None:  # noqa: ARG002
        """See `Records.pin`."""
        await self._now.get().records.pin("", pin)

    async def unpin(self, session: str, id_: str) -> bool:  # noqa: ARG002
        """See `Records.unpin`."""
        return await self._now.get().records.unpin("", id_)

    async def claim(self, session: str, expected: int, lease: Lease, now: float) -> bool:  # noqa: ARG002
        """See `Records.claim`."""
        return await self._now.get().records.claim("", expected, lease, now)

    async def release(self, session: str, holder: str) -> None:  # noqa: ARG002
        """See `Records.release`."""
        await self._now.get().records.release("", holder)

    async def clear(self, session: str) -> None:  # noqa: ARG002
        """See `Records.clear`."""
        await self._now.get().records.clear("")


# ------------------------------------------------------------------ what a state says of a list


@dataclass(frozen=True, slots=True)
class _Found:
    """What of a state holds for a list, and how many messages are gone from its front."""

    held: Held
    gone: int


def _found(messages: Sequence[Message], state: Mapping[str, Any]) -> _Found:
    try:
        held, gone = _read(state), _gone(messages, state)
        covers = list(map(str, state["covers"]))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as damage:
        raise StoreError(
            "in the host's state",
            f"it is not what this version wrote: {told(damage)}",
            "take the record out of the state; the messages are remembered anew",
        ) from damage
    if gone is None:
        return _Found(Held(Record(revision=held.record.revision)), 0)
    there = (*[GONE] * gone, *messages)
    segments = held.record.archive.segments
    true = [
        segment.end <= len(there) and (segment.start < gone or covered == _covered(there, segment))
        for segment, covered in zip(segments, covers, strict=False)
    ]
    kept = next((at for at, stands in enumerate(true) if not stands), len(true))
    record = held.record if kept == len(segments) else _back_to(held.record, kept, there)
    first = there[record.boundary] if 0 < record.boundary < len(there) else None
    if first is not None:
        record = replace(record, boundary_id=first.id, boundary_digest=digest(first))
    pins = tuple(pin for pin in held.pins if pin.source is None or pin.source < record.boundary)
    return _Found(Held(record, pins), gone)


def _read(state: Mapping[str, Any]) -> Held:
    return Held(Record.from_json(state["record"]), tuple(map(Pin.from_json, state["pins"])))


def _gone(messages: Sequence[Message], state: Mapping[str, Any]) -> int | None:
    """How many messages are gone from the front; None where the list is another conversation's."""
    before, record = int(state["gone"]), state["record"]
    if not messages or _name(messages[0]) == state["first"]:
        return before
    id_, said = record["boundary_id"], record["boundary_digest"]
    place = next((at for at, one in enumerate(messages) if (id_ and one.id == id_) or digest(one) == said), None)
    return None if place is None else max(0, int(record["boundary"]) - place)


def _back_to(record: Record, kept: int, there: Sequence[Message]) -> Record:
    """The record with the first segments alone, as many of them as end where a turn begins."""
    segments = record.archive.segments
    while kept and not (segments[kept - 1].end < len(there) and there[segments[kept - 1].end].role == "user"):
        kept -= 1
    if not kept:
        return Record(revision=record.revision)
    boundary = segments[kept - 1].end
    return replace(
        record,
        boundary=boundary,
        anchor=None,
        first_user=record.first_user if record.first_user and record.first_user.seq < boundary else None,
        archive=Archive(segments[:kept]),
    )


def _covered(messages: Sequence[Message], segment: Segment) -> str:
    """A short fingerprint of the messages that a segment covers."""
    told = "".join(digest(message) for message in messages[segment.start : segment.end])
    return hashlib.blake2b(told.encode(), digest_size=8).hexdigest()


def _name(message: Message) -> str:
    """What tells the first message of a list from others."""
    return message.id or digest(message)


def _all_of(held: Held) -> Change:
    return Change(held.record, (), held.record.archive.segments, held.pins)
