"""Decides what a store must do: two small protocols, and both together.

Every method is a coroutine. A store for sync callers never suspends in one (it does its work and returns); a
store for async callers may. Session ids are opaque text with any characters. What a method promises holds for
callers on any thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from slidemem.archive import Segment
from slidemem.state import Entry, Pin, Record, Recount, Snapshot, Totals


class Transcript(Protocol):
    """Every message ever appended, in order."""

    async def append(
        self, session: str, entries: Sequence[Entry], metadata: Sequence[tuple[str, str]] | None
    ) -> Totals:
        """Add messages at the end, all or none, and move the session's totals by them.

        Args:
            session: its id; a new one begins empty.
            entries: in order; their `seq` is ignored.
            metadata: the session's metadata from now on; None leaves it.

        Returns:
            The totals with them; the last of them has the `seq` before `next_seq`.
        """
        ...

    async def read(self, session: str, start: int = 0, end: int | None = None) -> tuple[Entry, ...]:
        """The messages with `start <= seq < end`, in order; to the last one when `end` is None."""
        ...


class Records(Protocol):
    """The small state of a session, changed as a whole."""

    async def commit(
        self,
        session: str,
        expected: int,
        record: Record,
        covered: Sequence[Entry],
        segments: Sequence[Segment],
        pins: Sequence[Pin],
    ) -> bool:
        """Replace the record if its revision is still `expected`; all of this, or nothing.

        Args:
            session: its id.
            expected: revision of the record that the new one was made from.
            record: the new one.
            covered: messages that are no longer live; the totals are lowered by them.
            segments: to keep by id, children of merged segments among them.
            pins: to add.

        Returns:
            Whether it was replaced.
        """
        ...

    async def recount(self, session: str, expected: int, counts: Recount) -> None:
        """Store other counts of the live messages, and the sums of them, if the revision is still `expected`.

        Only tokens change, and only of messages that are there; messages appended since keep theirs.
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

    async def clear(self, session: str) -> None:
        """Delete all of a session for good; only its revision lives on, moved by one."""
        ...


class Store(Transcript, Records, Protocol):
    """Both, with what a read needs in one piece."""

    async def snapshot(self, session: str) -> Snapshot:
        """Record, live messages, pins, metadata and totals as of one instant."""
        ...
