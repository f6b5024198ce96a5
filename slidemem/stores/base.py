"""Decides what a store must do: three capabilities that a host may own apart, and a store that has them together.

Every method is a coroutine. A store for sync callers never suspends in one (it does its work and returns); a
store for async callers may, and `for_async` gives the face of a store that its async callers use. Session ids
are opaque text with any characters. What a method promises holds for callers on any thread. Whatever happens
to the process, a call has happened whole or not at all.

A `Transcript` and a `Records` given apart become one store with `stores/joined.py`, which says what is weaker then.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from slidemem.archive import Segment
from slidemem.index import MOST
from slidemem.recall import Document, Matches
from slidemem.state import Branch, Change, Entry, Held, Key, Lease, Pin, Recount, Rewrite, Snapshot, Totals, Whole


@runtime_checkable
class Transcript(Protocol):
    """Every message of the conversation, in order; a message's `seq` is its place, from 0."""

    async def append(self, session: str, entries: Sequence[Entry]) -> object:
        """Add messages at the end, all or none; their `seq` is ignored."""
        ...

    async def read(self, session: str, start: int = 0, end: int | None = None) -> tuple[Entry, ...]:
        """The messages with `start <= seq < end`, in order; to the last one when `end` is None."""
        ...

    async def cut(self, session: str, keep: int) -> None:
        """Take all but the first `keep` messages out of the conversation; who can keeps them as a branch."""
        ...

    async def clear(self, session: str) -> None:
        """Delete all messages for good."""
        ...


@runtime_checkable
class Exchanging(Transcript, Protocol):
    """A transcript that can be rewritten in one step, so that a write that fails leaves what was there."""

    async def exchange(self, session: str, keep: int, entries: Sequence[Entry]) -> None:
        """Put other messages in the place of all but the first `keep`."""
        ...


@runtime_checkable
class Records(Protocol):
    """The small state of a session, changed as a whole."""

    async def held(self, session: str) -> Held:
        """Record, pins and metadata as of one instant; empty ones for a session that is not there."""
        ...

    async def describe(self, session: str, metadata: Sequence[tuple[str, str]]) -> None:
        """Replace the session's metadata."""
        ...

    async def commit(self, session: str, expected: int, change: Change) -> bool:
        """Apply a change if the record's revision is still `expected`; all of it, or nothing.

        Pins are added, or replace the one with their id; segments are kept by id; a lease is gone.

        Returns:
            Whether it was applied.
        """
        ...

    async def segment(self, session: str, id_: str) -> Segment | None:
        """A segment that was kept, top-level or not; None when there is none."""
        ...

    async def pin(self, session: str, pin: Pin) -> None:
        """Add a pin, or replace the one with its id."""
        ...

    async def unpin(self, session: str, id_: str) -> bool:
        """Remove a pin; False when there was none."""
        ...

    async def claim(self, session: str, expected: int, lease: Lease, now: float) -> bool:
        """Take the lease if the revision is `expected` and nobody else has one that keeps it out at `now`.

        Returns:
            Whether `lease.holder` has it now.
        """
        ...

    async def release(self, session: str, holder: str) -> None:
        """Give the lease back, if it is this holder's."""
        ...

    async def clear(self, session: str) -> None:
        """Delete all of a session for good; only its revision lives on, moved by one."""
        ...


@runtime_checkable
class Postings(Protocol):
    """Which terms occur in which messages of a session: written with the message, and gone with it."""

    async def matching(self, session: str, terms: Sequence[str], before: int, most: int = MOST) -> Matches:
        """Where terms occur in the messages with `seq < before`.

        Args:
            session: its id.
            terms: to look for.
            before: what came later counts for nothing, in sums and frequencies too.
            most: occurrences that are read: the rarest terms first, and of the first term that does not fit its
                newest ones; of those that follow only the frequency is told.
        """
        ...

    async def documents(self, session: str, seqs: Collection[int]) -> Mapping[int, Document]:
        """What ranking needs to know of the messages at these places; those that are not there are left out."""
        ...


@runtime_checkable
class Store(Transcript, Records, Postings, Protocol):
    """All capabilities, each change atomic over all of them."""

    async def append(
        self,
        session: str,
        entries: Sequence[Entry],
        metadata: Sequence[tuple[str, str]] | None = None,
        user: str | None = None,
    ) -> Totals:
        """Add messages at the end, all or none, and move the session's totals by them.

        A message with an id that says what the latest one with that id says is that message, and is left out.

        Args:
            session: its id; a new one begins empty.
            entries: in order; their `seq` is ignored.
            metadata: the session's metadata from now on; None leaves it.
            user: whose session it is from now on; None leaves it.

        Returns:
            The totals with them; the last of them has the `seq` before `next_seq`.
        """
        ...

    async def pin(self, session: str, pin: Pin, user: str | None = None) -> None:
        """See `Records.pin`; whose session it is from now on, None leaves it."""
        ...

    async def keys(self, session: str) -> tuple[Key, ...]:
        """The keys of all messages of the transcript, in order."""
        ...

    async def pick(self, session: str, seqs: Sequence[int]) -> tuple[Entry, ...]:
        """The messages at these places, in order; those that are not there are left out."""
        ...

    async def snapshot(self, session: str) -> Snapshot:
        """Record, live messages, pins, metadata and totals as of one instant."""
        ...

    async def recount(self, session: str, expected: int, counts: Recount) -> None:
        """Store other counts of the live messages, and the sums of them, if the revision is still `expected`.

        Only tokens change, and only of messages that are there; messages appended since keep theirs.
        """
        ...

    async def rewrite(
        self,
        session: str,
        expected: tuple[int, int],
        rewrite: Rewrite,
        metadata: Sequence[tuple[str, str]] | None = None,
        user: str | None = None,
    ) -> Totals | None:
        """Close the messages from `rewrite.keep` on, as one branch, and add others in their place.

        The totals are those of what is live then. A lease is gone when the record changes.

        Args:
            session: its id.
            expected: revision of the record, and number of messages, that the rewrite was planned on.
            rewrite: what changes; all of it, or nothing.
            metadata: the session's metadata from now on; None leaves it.
            user: whose session it is from now on; None leaves it.

        Returns:
            The totals with it; None when the session has moved on and nothing was changed.
        """
        ...

    async def branches(self, session: str) -> tuple[Branch, ...]:
        """What rewinds took out of the conversation, oldest first."""
        ...

    async def whole(self, session: str) -> Whole:
        """Everything that is kept of a session, as of one instant."""
        ...

    async def restore(self, session: str, expected: tuple[int, int], whole: Whole) -> bool:
        """Put a whole session in the place of what is there, if that is still of this revision and length.

        The record is stored with a revision beyond both, so that whatever is in flight is dropped.

        Returns:
            Whether it was put there.
        """
        ...

    async def sessions(self, user: str | None = None) -> tuple[str, ...]:
        """Ids of sessions, in the order in which they began.

        Args:
            user: None for all that hold anything; else those that are this user's, whatever they hold.
        """
        ...


Part = TypeVar("Part")


@runtime_checkable
class Blocking(Protocol):
    """A store, or a part of one, whose methods never suspend but take a while: on a disk, say."""

    def for_async(self) -> Any:
        """The face that async callers use, which does the same work without holding their event loop."""
        ...


@runtime_checkable
class Together(Protocol):
    """A store that reads a session and the pins of another, its user's profile, in one go."""

    async def snapshot_beside(self, session: str, other: str) -> tuple[Snapshot, tuple[Pin, ...]]:
        """The session's snapshot, and the pins of the other, as of one instant."""
        ...


@runtime_checkable
class Loaded(Protocol):
    """A store that knows which sessions hold much, without reading each."""

    async def loaded(self, tokens: int, turns: int | None) -> tuple[str, ...]:
        """Ids of the sessions whose live messages, with what the record adds, take so many tokens or more.

        Args:
            tokens: by the sums of the store.
            turns: those with more live turns are told too; None for no such limit.
        """
        ...


@runtime_checkable
class Closing(Protocol):
    """A store that holds something open: a file, or connections."""

    def close(self) -> None:
        """Let go of what sync callers and worker threads hold open."""
        ...


def awaited(part: Part) -> Part:
    """A store, or a part of one, as async callers reach it."""
    return cast("Part", part.for_async()) if isinstance(part, Blocking) else part
