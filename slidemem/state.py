"""Decides what the state of a session is: entries of the transcript, the record, pins, totals.

All of it is frozen and made of what JSON holds. Who changes it, and when, is `flow.py`'s; where it is kept is
the stores'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from slidemem.archive import Archive, Segment
from slidemem.messages import Message, digest, from_json, to_json
from slidemem.post import Post

SCHEMA: Final = 1
SEVERAL: Final = "several"  # in the place of a counter's fingerprint


@dataclass(frozen=True, slots=True)
class Entry:
    """One message of a transcript.

    Attributes:
        seq: its place in the transcript, from 0.
        message: as it was appended.
        shown: as contexts show it: the message itself unless it had to be mended or clamped.
        tokens: of `shown`, by the counter of `counter`.
        whole_tokens: of the message before it was clamped.
        at: when it was said, by its own time, else when it was appended; in seconds since 1970.
        counter: fingerprint of the counter.
        post: what it is found by, on its way into a store; a store hands it out without.
    """

    seq: int
    message: Message
    shown: Message
    tokens: int
    whole_tokens: int
    at: float
    counter: str
    post: Post | None = field(default=None, repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """The entry as a JSON object."""
        stored = {
            "seq": self.seq,
            "message": to_json(self.message),
            "tokens": self.tokens,
            "whole_tokens": self.whole_tokens,
            "at": self.at,
            "counter": self.counter,
        }
        return stored if self.shown == self.message else {**stored, "shown": to_json(self.shown)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Entry:
        """The entry of `to_json`'s object."""
        message = from_json(stored["message"])
        return cls(
            seq=stored["seq"],
            message=message,
            shown=from_json(stored["shown"]) if "shown" in stored else message,
            tokens=stored["tokens"],
            whole_tokens=stored["whole_tokens"],
            at=stored["at"],
            counter=stored["counter"],
        )


class Key(NamedTuple):
    """What tells a message of the transcript from others.

    Attributes:
        digest: of what it says.
        id: the host's id, if any.
        role: of the message.
        shown: digest of what contexts show of it; the same as `digest` for most.
    """

    digest: str
    id: str | None
    role: str
    shown: str


def key_of(entry: Entry) -> Key:
    """The key of an entry."""
    said = digest(entry.message)
    shown = said if entry.shown is entry.message else digest(entry.shown)
    return Key(said, entry.message.id, entry.message.role, shown)


@dataclass(frozen=True, slots=True)
class Kept:
    """A message that the record keeps though the boundary has passed it: the anchor, a system prompt.

    Attributes:
        seq: its place in the transcript.
        message: as it is shown.
        tokens: of it, by the counter of `counter`.
        counter: fingerprint of the counter.
    """

    seq: int
    message: Message
    tokens: int
    counter: str

    def recounted(self, counter: str, count: Callable[[Message], int]) -> Kept:
        """The same with the count of another counter."""
        return self if self.counter == counter else replace(self, tokens=count(self.message), counter=counter)

    def to_json(self) -> dict[str, Any]:
        """The kept message as a JSON object."""
        return {"seq": self.seq, "message": to_json(self.message), "tokens": self.tokens, "counter": self.counter}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Kept:
        """The kept message of `to_json`'s object."""
        return cls(stored["seq"], from_json(stored["message"]), stored["tokens"], stored["counter"])


@dataclass(frozen=True, slots=True)
class Pin:
    """A fact that is always shown.

    Attributes:
        id: names it within the session.
        text: what is shown.
        source: the message it was taken from ("remember this: …"); None when it was pinned by a call. A pin
            with a source is shown once its source has left the window.
    """

    id: str
    text: str
    source: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The pin as a JSON object."""
        return {"id": self.id, "text": self.text, "source": self.source}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Pin:
        """The pin of `to_json`'s object."""
        return cls(stored["id"], stored["text"], stored["source"])


def of_user(pin: Pin) -> Pin:
    """A pin as a user's profile keeps it: no place in one session, and an id that no name in a profile can have."""
    return pin if is_of_user(pin) else Pin(f" {pin.id}", pin.text)


def is_of_user(pin: Pin) -> bool:
    """Whether an entry of a profile is a pin; a name never begins with a blank."""
    return pin.id.startswith(" ")


@dataclass(frozen=True, slots=True)
class Branch:
    """Messages that a rewind took out of the conversation; kept, and never shown again.

    Attributes:
        revision: of the record before the rewind; names the branch within the session.
        entries: the messages, with the places they had.
    """

    revision: int
    entries: tuple[Entry, ...]

    def to_json(self) -> dict[str, Any]:
        """The branch as a JSON object."""
        return {"revision": self.revision, "messages": [entry.to_json() for entry in self.entries]}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Branch:
        """The branch of `to_json`'s object."""
        return cls(stored["revision"], tuple(map(Entry.from_json, stored["messages"])))


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to pay for the next summary of a session; it ends with the revision that it was taken on.

    Attributes:
        holder: who has it: any text that nobody else uses.
        until: when it ends by itself, in seconds since 1970.
    """

    holder: str
    until: float

    def keeps_out(self, other: Lease, now: float) -> bool:
        """Whether another holder has to wait; not where a clock ran so far ahead that the lease would hardly end."""
        return self.holder != other.holder and now < self.until <= now + 2 * (other.until - now)


@dataclass(frozen=True, slots=True)
class Record:
    """A session's small state; replaced as a whole, by compare-and-swap on `revision`.

    Attributes:
        revision: moves when boundary, archive or branch change, and never goes back.
        boundary: the first `seq` that is live; everything before it is covered by the archive.
        boundary_id: host's id of the message at the boundary when it was committed, if any.
        boundary_digest: digest of that message, "" when there was none yet.
        system: the leading system messages, once the boundary has passed them.
        first_user: the conversation's first user message, once the boundary has passed it.
        anchor: the user message of the turn that the boundary cuts through.
        archive: what is remembered of the messages before the boundary.
        overhead_tokens: of system messages and head when the record was committed.
    """

    revision: int = 0
    boundary: int = 0
    boundary_id: str | None = None
    boundary_digest: str = ""
    system: tuple[Kept, ...] = ()
    first_user: Kept | None = None
    anchor: Kept | None = None
    archive: Archive = field(default_factory=Archive)
    overhead_tokens: int = 0

    def to_json(self) -> dict[str, Any]:
        """The record as a JSON object with its schema version."""
        return {
            "schema": SCHEMA,
            "revision": self.revision,
            "boundary": self.boundary,
            "boundary_id": self.boundary_id,
            "boundary_digest": self.boundary_digest,
            "system": [kept.to_json() for kept in self.system],
            "first_user": self.first_user and self.first_user.to_json(),
            "anchor": self.anchor and self.anchor.to_json(),
            "archive": self.archive.to_json(),
            "overhead_tokens": self.overhead_tokens,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Record:
        """The record of `to_json`'s object."""
        return cls(
            revision=stored["revision"],
            boundary=stored["boundary"],
            boundary_id=stored["boundary_id"],
            boundary_digest=stored["boundary_digest"],
            system=tuple(Kept.from_json(kept) for kept in stored["system"]),
            first_user=Kept.from_json(stored["first_user"]) if stored["first_user"] else None,
            anchor=Kept.from_json(stored["anchor"]) if stored["anchor"] else None,
            archive=Archive.from_json(stored["archive"]),
            overhead_tokens=stored["overhead_tokens"],
        )


@dataclass(frozen=True, slots=True)
class Totals:
    """Running sums of a session, moved by increments.

    Attributes:
        next_seq: the `seq` of the next message: how many there are in the transcript.
        live_tokens: of the live messages, as shown.
        live_turns: user messages among them.
        anchor_tokens: of the record's anchor.
        overhead_tokens: of the record.
        counter: fingerprint of the counter that the tokens were counted with.
    """

    next_seq: int = 0
    live_tokens: int = 0
    live_turns: int = 0
    anchor_tokens: int = 0
    overhead_tokens: int = 0
    counter: str = ""

    def plus(self, entries: Sequence[Entry]) -> Totals:
        """The sums with these entries appended."""
        return replace(
            self,
            next_seq=self.next_seq + len(entries),
            live_tokens=self.live_tokens + sum(entry.tokens for entry in entries),
            live_turns=self.live_turns + _turns(entries),
            counter=self.counter or (entries[-1].counter if entries else ""),
        )

    @classmethod
    def of(cls, record: Record, live: Sequence[Entry], counter: str) -> Totals:
        """The sums of a session with this record and these live messages.

        Args:
            record: the record.
            live: the messages from the boundary on.
            counter: fingerprint of a counter, for a session where nothing is live. What was counted with
                different ones says so, and is counted anew by the next append.
        """
        counters = {kept.counter for kept in (*live, record.anchor) if kept}
        return cls(
            next_seq=record.boundary + len(live),
            live_tokens=sum(entry.tokens for entry in live),
            live_turns=_turns(live),
            anchor_tokens=record.anchor.tokens if record.anchor else 0,
            overhead_tokens=record.overhead_tokens,
            counter=counter if not counters else SEVERAL if len(counters) > 1 else counters.pop(),
        )

    def less(self, covered: Sequence[Entry], record: Record) -> Totals:
        """The sums with these entries no longer live, and a new record."""
        return replace(
            self,
            anchor_tokens=record.anchor.tokens if record.anchor else 0,
            overhead_tokens=record.overhead_tokens,
            live_tokens=self.live_tokens - sum(entry.tokens for entry in covered),
            live_turns=self.live_turns - _turns(covered),
        )


def _turns(entries: Sequence[Entry]) -> int:
    return sum(1 for entry in entries if entry.message.role == "user")


@dataclass(frozen=True, slots=True)
class Recount:
    """Counts of a session by another counter.

    Attributes:
        counter: its fingerprint.
        tokens: of live messages, by `seq`.
        anchor_tokens: of the record's anchor.
        overhead_tokens: of system messages and head.
    """

    counter: str
    tokens: Mapping[int, int]
    anchor_tokens: int
    overhead_tokens: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that a read needs, taken in one piece.

    Attributes:
        record: the session's record.
        live: the messages from the boundary on.
        pins: what is pinned, the user's pins first.
        metadata: the session's metadata, as name and text, and what is known of its user.
        totals: the running sums.
    """

    record: Record = field(default_factory=Record)
    live: tuple[Entry, ...] = ()
    pins: tuple[Pin, ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()
    totals: Totals = field(default_factory=Totals)


def with_profile(snapshot: Snapshot, profile: tuple[tuple[str, str], ...]) -> Snapshot:
    """The snapshot with what is known of its user beside its metadata, whose names come first where both have one."""
    names = {name for name, _ in snapshot.metadata}
    known = tuple(pair for pair in profile if pair[0] not in names)
    return replace(snapshot, metadata=(*snapshot.metadata, *known)) if known else snapshot


def with_users_pins(snapshot: Snapshot, pins: tuple[Pin, ...]) -> Snapshot:
    """The snapshot with its user's pins before its own, none twice."""
    own = tuple(pin for pin in snapshot.pins if of_user(pin).id not in {one.id for one in pins})
    return replace(snapshot, pins=(*pins, *own)) if pins else snapshot


@dataclass(frozen=True, slots=True)
class Change:
    """What a consolidation changes, all of it or nothing.

    Attributes:
        record: the new one, its revision moved by one.
        covered: messages that are no longer live.
        segments: to keep by id, children of merged ones among them.
        pins: to add.
    """

    record: Record
    covered: tuple[Entry, ...] = ()
    segments: tuple[Segment, ...] = ()
    pins: tuple[Pin, ...] = ()


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What a rewind or a reconcile changes, all of it or nothing.

    Attributes:
        record: the new one, its revision moved by one where messages leave; None when messages are only added.
        keep: how many messages stay; the rest are closed, as one branch.
        entries: messages to add after them.
        unpinned: ids of pins whose source is closed.
    """

    record: Record | None
    keep: int
    entries: tuple[Entry, ...] = ()
    unpinned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Whole:
    """Everything that is kept of a session.

    Attributes:
        record: its record.
        entries: the transcript.
        branches: what rewinds closed, oldest first.
        segments: all that were ever kept, children of merged ones among them.
        pins: oldest first.
        metadata: as name and text.
    """

    record: Record = field(default_factory=Record)
    entries: tuple[Entry, ...] = ()
    branches: tuple[Branch, ...] = ()
    segments: tuple[Segment, ...] = ()
    pins: tuple[Pin, ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Held:
    """What a session's records hold.

    Attributes:
        record: the record.
        pins: what is pinned, oldest first.
        metadata: as name and text.
    """

    record: Record = field(default_factory=Record)
    pins: tuple[Pin, ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()


def recounted(entries: tuple[Entry, ...], counter: str, count: Callable[[Message], int]) -> tuple[Entry, ...]:
    """The entries with the counts of another counter; those that have them are the same objects."""
    if all(entry.counter == counter for entry in entries):
        return entries
    return tuple(
        entry if entry.counter == counter else replace(entry, tokens=count(entry.shown), counter=counter)
        for entry in entries
    )
