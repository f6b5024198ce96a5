"""Decides how a host's own list of messages serves as the transcript: read whole, appended to, never rewritten.

The host keeps messages; what an entry has besides (what is shown of it, its tokens) is worked out anew, and each
message is counted once as long as this process remembers its count.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import takewhile
from threading import Lock
from typing import Protocol, runtime_checkable

from slidemem.errors import StoreError
from slidemem.messages import Message
from slidemem.state import Entry
from slidemem.stores.base import awaited


@runtime_checkable
class MessageLog(Protocol):
    """A list of messages for each session that somebody else keeps: a chat history, a chat store."""

    async def messages(self, session: str) -> Sequence[Message]:
        """All messages, in order."""
        ...

    async def add(self, session: str, messages: Sequence[Message]) -> None:
        """Add messages at the end."""
        ...

    async def clear(self, session: str) -> None:
        """Delete all messages."""
        ...


@runtime_checkable
class RewritableLog(MessageLog, Protocol):
    """A log whose list can be replaced as a whole, so that a rewind can shorten it."""

    async def replace(self, session: str, messages: Sequence[Message]) -> None:
        """Put a list in the place of the one that is there."""
        ...


class LoggedTranscript:
    """A host's log as a `Transcript`.

    Args:
        log: the host's.
        entries: makes entries of messages, numbered from the given place on.
        remember: how many sessions' entries are kept, so that a read makes only those that are new.
    """

    def __init__(
        self,
        log: MessageLog,
        entries: Callable[[Sequence[Message], int], tuple[Entry, ...]],
        remember: int = 64,
    ) -> None:
        self._log = log
        self._entries = entries
        self._remember = remember
        self._made: OrderedDict[str, tuple[Entry, ...]] = OrderedDict()
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"LoggedTranscript({type(self._log).__name__})"

    def for_async(self) -> LoggedTranscript:
        """See `Blocking.for_async`; what one face has made the other need not make again."""
        face = LoggedTranscript(awaited(self._log), self._entries, self._remember)
        face._made, face._lock = self._made, self._lock
        return face

    async def append(self, session: str, entries: Sequence[Entry]) -> None:
        """See `Transcript.append`; all or none is the host's to keep."""
        if entries:
            await self._log.add(session, [entry.message for entry in entries])

    async def read(self, session: str, start: int = 0, end: int | None = None) -> tuple[Entry, ...]:
        """See `Transcript.read`; a message's time is when this process first saw it."""
        messages = await self._log.messages(session)
        with self._lock:
            made = self._made.get(session, ())
        same = sum(
            1 for _ in takewhile(bool, (entry.message == one for entry, one in zip(made, messages, strict=False)))
        )
        entries = (*made[:same], *self._entries(messages[same:], same))
        with self._lock:
            self._made[session] = entries
            self._made.move_to_end(session)
            if len(self._made) > self._remember:
                self._made.popitem(last=False)
        return entries[start:end]

    async def cut(self, session: str, keep: int) -> None:
        """See `Transcript.cut`.

        Raises:
            StoreError: the log cannot be rewritten.
        """
        messages = await self._log.messages(session)
        if keep >= len(messages):
            return
        if not isinstance(self._log, RewritableLog):
            raise StoreError(
                repr(self),
                f"it can be read, appended to and cleared, and {len(messages) - keep} messages were to leave it",
                "shorten the list where it is kept",
            )
        await self._log.replace(session, list(messages[:keep]))

    async def exchange(self, session: str, keep: int, entries: Sequence[Entry]) -> None:
        """Put other messages in the place of all but the first `keep`: in one write, where the log can.

        Raises:
            StoreError: the log cannot be rewritten.
        """
        messages = await self._log.messages(session)
        if not isinstance(self._log, RewritableLog) or keep >= len(messages):
            await self.cut(session, keep)
            await self.append(session, entries)
            return
        await self._log.replace(session, [*messages[:keep], *(entry.message for entry in entries)])

    async def clear(self, session: str) -> None:
        """See `Transcript.clear`."""
        with self._lock:
            self._made.pop(session, None)
        await self._log.clear(session)
