"""Decides how records are kept by a host that keeps nothing but a text under a name: as one JSON text a session.

Such a host compares nothing before it writes. Sync callers of one object take turns; of others the last one wins,
and what is lost then is a consolidation or a pin, never a message: the boundary is checked whenever it is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, Protocol, TypeVar, runtime_checkable

from slidemem.archive import Segment
from slidemem.errors import StoreError
from slidemem.state import SCHEMA, Change, Held, Lease, Pin, Record
from slidemem.stores.base import awaited

Result = TypeVar("Result")


@runtime_checkable
class Texts(Protocol):
    """One text for each session, kept by a host."""

    async def load(self, session: str) -> str | None:
        """The text; None when there is none."""
        ...

    async def save(self, session: str, text: str) -> None:
        """Put a text in the place of the one that is there."""
        ...


@dataclass(frozen=True, slots=True)
class _Kept:
    """What the text of a session holds."""

    held: Held = field(default_factory=Held)
    segments: tuple[Segment, ...] = ()
    lease: Lease | None = None

    def to_text(self) -> str:
        """As JSON text, ASCII alone."""
        return json.dumps(
            {
                "schema": SCHEMA,
                "record": self.held.record.to_json(),
                "pins": [pin.to_json() for pin in self.held.pins],
                "metadata": [list(pair) for pair in self.held.metadata],
                "segments": [segment.to_json() for segment in self.segments],
                "lease": self.lease and [self.lease.holder, self.lease.until],
            }
        )

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> _Kept:
        """What a text's object holds."""
        return cls(
            Held(
                Record.from_json(stored["record"]),
                tuple(Pin.from_json(pin) for pin in stored["pins"]),
                tuple((str(name), str(value)) for name, value in stored["metadata"]),
            ),
            tuple(Segment.from_json(segment) for segment in stored["segments"]),
            Lease(*stored["lease"]) if stored["lease"] else None,
        )


class TextRecords:
    """A `Records` in a host's texts.

    Args:
        texts: the host's.
    """

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._lock: Lock | nullcontext[None] = Lock()

    def __repr__(self) -> str:
        return f"TextRecords({type(self._texts).__name__})"

    def for_async(self) -> TextRecords:
        """See `Blocking.for_async`; where the host suspends, nobody can hold a lock."""
        face = TextRecords(awaited(self._texts))
        if face._texts is self._texts:
            return self
        face._lock = nullcontext()
        return face

    async def held(self, session: str) -> Held:
        """See `Records.held`."""
        return (await self._kept(session)).held

    async def describe(self, session: str, metadata: Sequence[tuple[str, str]]) -> None:
        """See `Records.describe`."""
        await self._changed(session, lambda kept: (_holding(kept, metadata=tuple(metadata)), None))

    async def commit(self, session: str, expected: int, change: Change) -> bool:
        """See `Records.commit`."""

        def committed(kept: _Kept) -> tuple[_Kept, bool]:
            if kept.held.record.revision != expected:
                return kept, False
            new = {segment.id: segment for segment in change.segments}
            segments = (*(one for one in kept.segments if one.id not in new), *new.values())
            held = replace(kept.held, record=change.record, pins=_pinned(kept.held.pins, change.pins))
            return _Kept(held, segments), True

        return await self._changed(session, committed)

    async def segment(self, session: str, id_: str) -> Segment | None:
        """See `Records.segment`."""
        return next((one for one in (await self._kept(session)).segments if one.id == id_), None)

    async def pin(self, session: str, pin: Pin) -> None:
        """See `Records.pin`."""
        await self._changed(session, lambda kept: (_holding(kept, pins=_pinned(kept.held.pins, (pin,))), None))

    async def unpin(self, session: str, id_: str) -> bool:
        """See `Records.unpin`."""

        def unpinned(kept: _Kept) -> tuple[_Kept, bool]:
            left = tuple(pin for pin in kept.held.pins if pin.id != id_)
            return _holding(kept, pins=left), left != kept.held.pins

        return await self._changed(session, unpinned)

    async def claim(self, session: str, expected: int, lease: Lease, now: float) -> bool:
        """See `Records.claim`."""

        def claimed(kept: _Kept) -> tuple[_Kept, bool]:
            taken = kept.lease is not None and kept.lease.keeps_out(lease, now)
            if kept.held.record.revision != expected or taken:
                return kept, False
            return replace(kept, lease=lease), True

        return await self._changed(session, claimed)

    async def release(self, session: str, holder: str) -> None:
        """See `Records.release`."""

        def released(kept: _Kept) -> tuple[_Kept, None]:
            mine = kept.lease is not None and kept.lease.holder == holder
            return (replace(kept, lease=None) if mine else kept), None

        await self._changed(session, released)

    async def clear(self, session: str) -> None:
        """See `Records.clear`; the text that is left holds the revision alone."""

        def cleared(kept: _Kept) -> tuple[_Kept, None]:
            return _Kept(Held(Record(revision=kept.held.record.revision + 1))), None

        await self._changed(session, cleared)

    async def _kept(self, session: str) -> _Kept:
        text = await self._texts.load(session)
        if text is None:
            return _Kept()
        try:
            return _Kept.of(json.loads(text))
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as fault:
            advice = "its messages are in the transcript: delete the text, and the archive is made anew"
            raise StoreError(
                repr(self), f"the text of {session!r:.80} holds no records: {fault!r:.80}", advice
            ) from fault

    async def _changed(self, session: str, change: Callable[[_Kept], tuple[_Kept, Result]]) -> Result:
        with self._lock:
            before = await self._kept(session)
            after, result = change(before)
            if after != before:
                await self._texts.save(session, after.to_text())
            return result


def _holding(kept: _Kept, **fields: Any) -> _Kept:
    return replace(kept, held=replace(kept.held, **fields))


def _pinned(pins: Sequence[Pin], new: Sequence[Pin]) -> tuple[Pin, ...]:
    """The pins with others, each at the place of the one with its id."""
    return tuple({pin.id: pin for pin in (*pins, *new)}.values())
