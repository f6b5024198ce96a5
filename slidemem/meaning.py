"""Carries out what is done with embeddings: messages embedded once they left the window, and found by their meaning.

Never in the way of a turn: what fails, or takes too long, is told, and recall goes by the words alone meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

from slidemem.errors import StoreError, told
from slidemem.events import Event
from slidemem.fusion import MOST_SIMILAR
from slidemem.session import Session
from slidemem.state import Entry
from slidemem.vectors import Vectors

T = TypeVar("T")

_LOG: Final = logging.getLogger("slidemem")
_BATCH: Final = 64  # messages that are embedded at once
_ALIKE: Final = 8  # messages in a row that are not the same in two conversations
_BATCHES: Final = 4  # that one call embeds at most, since a user may wait for it
_CHARACTERS: Final = 4_000  # of a message that are embedded; models read some hundred words


async def keep_up(session: Session) -> bool:
    """Embed messages that left the window, some hundred at most; whether there are more, and they can be had now."""
    vectors = session.vectors
    return vectors is not None and bool(await _tried(session, vectors, lambda: _kept_up(session, vectors)))


async def catch_up(session: Session) -> None:
    """Embed all messages that left the window, as far as that can be done now."""
    while await keep_up(session):
        pass


async def _kept_up(session: Session, vectors: Vectors) -> bool:
    reached = vectors.known.reached(session.id)
    vectors.known.reach(session.id, None)
    boundary = (await session.store.held(session.id)).record.boundary
    until = await _until(session, vectors, boundary, reached)
    for _ in range(_BATCHES):
        if until >= boundary:
            break
        until = await _added(session, vectors, until, boundary)
    if until >= boundary:
        vectors.known.reach(session.id, boundary)
    return until < boundary


def is_behind(session: Session) -> bool:
    """Whether messages that left the window may not be embedded yet, as far as this process knows."""
    return session.vectors is not None and session.vectors.known.reached(session.id) is None


def notice(session: Session, boundary: int) -> None:
    """Note how far a session has been archived, by whomever: what is embedded is to follow."""
    if session.vectors is not None and session.vectors.known.reached(session.id) != boundary:
        session.vectors.known.reach(session.id, None)


async def similar(session: Session, text: str) -> Mapping[int, float]:
    """The messages most like a text; none where nothing compares them, or it fails."""
    vectors = session.vectors
    if vectors is None:
        return {}
    alike = await _tried(session, vectors, lambda: vectors.similar(session.id, text, MOST_SIMILAR))
    return {} if alike is None else alike


async def forget(session: Session) -> None:
    """Delete the vectors of a session.

    Raises:
        StoreError: they cannot be deleted.
    """
    if session.vectors is None:
        return
    session.vectors.known.reach(session.id, None)
    boundary = (await session.store.held(session.id)).record.boundary
    try:
        await session.vectors.cut(session.id, 0, boundary)
    except Exception as fault:
        reason = f"the vectors of session {session.id!r:.80} could not be deleted ({told(fault)})"
        raise StoreError("embeddings", reason, "nothing was deleted: try again when they can be reached") from fault


async def rewound(session: Session, keep: int, end: int) -> None:
    """Delete the vectors of messages that left the conversation; what cannot be deleted is embedded over later."""
    vectors = session.vectors
    if vectors is not None:
        vectors.known.reach(session.id, None)
        await _tried(session, vectors, lambda: vectors.cut(session.id, keep, end))


async def _until(session: Session, vectors: Vectors, boundary: int, reached: int | None) -> int:
    """How many messages are embedded as they read now; found by halving, since they are embedded in order.

    A conversation that was rewound, or began anew under its id, holds others there, which are deleted.
    """
    if reached is not None and reached <= boundary and await _holds(session, vectors, reached):
        return reached
    low, high, probe = 0, boundary, boundary
    while low < high:
        if await _holds(session, vectors, probe):
            low = probe
        else:
            high = probe - 1
        probe = (low + high + 1) // 2
    end = max(boundary, reached or 0)
    if low < end:
        await vectors.cut(session.id, low, end)
    return low


async def _holds(session: Session, vectors: Vectors, end: int) -> bool:
    """Whether the messages before a place are embedded as they read now."""
    first = max(0, end - _ALIKE)
    entries = await session.store.read(session.id, first, end)
    texts = [_text(session, entry) for entry in entries]
    return bool(texts) and await vectors.holds(session.id, first, texts)


async def _added(session: Session, vectors: Vectors, first: int, boundary: int) -> int:
    """How many messages are embedded, with some more."""
    entries = await session.store.read(session.id, first, min(boundary, first + _BATCH))
    if not entries:
        return boundary  # the session was rewound or cleared meanwhile
    await vectors.add(session.id, first, [_text(session, entry) for entry in entries])
    return first + len(entries)


def _text(session: Session, entry: Entry) -> str:
    """What is embedded of a message: what it says, and its calls, redacted; never blank."""
    message = entry.shown
    calls = (f"called {call.name}({call.arguments})" for call in message.tool_calls)
    text = "\n".join(filter(None, (message.text, *calls)))
    if session.redact:
        text = session.redact(text)
    return text[:_CHARACTERS].strip() or message.role


async def _tried(session: Session, vectors: Vectors, call: Callable[[], Awaitable[T]]) -> T | None:
    """What a call of the index gives; None where it fails, which is told, or is left alone for a while."""
    breaker = vectors.known.breaker
    if not breaker.lets(session.clock()):
        return None
    try:
        given = await call()
    except Exception as fault:  # noqa: BLE001  # a model's or a store's, whatever it is
        pause = breaker.failed(session.clock(), timed_out=isinstance(fault, TimeoutError))
        detail = f"recall goes by the words alone{f' for {pause:g} seconds' if pause else ''}: {told(fault)}"
        session.happened(Event("embedding_failed", session.id, detail))
        return None
    breaker.answered()
    return given
