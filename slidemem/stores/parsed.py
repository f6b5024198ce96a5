"""Decides what a store on a disk need not read and parse again: the live messages of the latest sessions."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock

from slidemem.state import Entry, Record


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a session held at an epoch: whatever is not an append begins another, so more may have come after it.

    Attributes:
        epoch: of the session when it was read.
        record: its record.
        live: messages from the boundary on, without gap.
    """

    epoch: int
    record: Record
    live: tuple[Entry, ...] = ()


class Latest:
    """The latest sessions that were read; any thread may call it.

    Args:
        remember: how many sessions.
    """

    def __init__(self, remember: int = 64) -> None:
        self._remember = remember
        self._kept: OrderedDict[str, Parsed] = OrderedDict()
        self._lock = Lock()

    def get(self, session: str, epoch: int) -> Parsed | None:
        """What a session held, if it is remembered and of this epoch."""
        with self._lock:
            parsed = self._kept.get(session)
            return parsed if parsed is not None and parsed.epoch == epoch else None

    def last(self, session: str) -> Parsed | None:
        """What a session held when it was read last, if it is remembered."""
        with self._lock:
            return self._kept.get(session)

    def put(self, session: str, parsed: Parsed) -> None:
        """Remember what a session held."""
        with self._lock:
            self._kept[session] = parsed
            self._kept.move_to_end(session)
            if len(self._kept) > self._remember:
                self._kept.popitem(last=False)

    def drop(self, session: str) -> None:
        """Forget a session."""
        with self._lock:
            self._kept.pop(session, None)
