"""Carries out what is done with embeddings: messages embedded once they left the window, and found by their meaning.

Never in the way of a turn: what fails, or takes too long, is told, and recall goes by the words alone meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

from slidemem.errors import told
from slidemem.events import Event
from slidemem.fusion import MOST_SIMILAR
from slidemem.messages import digest
from slidemem.session import Session
from slidemem.state import Entry
from slidemem.vectors import Vectors

T = TypeVar("T")

_LOG: Final = logging.getLogger("slidemem")
_BATCH: Final = 64  # messages that are embedded at once
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
    vectors.known.reach(session.id, None)
    boundary = (await session.store.held(session.id)).record.boundary
    until = await _until(session, vectors, boundary)
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
    """Delete the vectors of a session; what fails is raised, since they would stay."""
    if session.vectors is not None:
        session.vectors.known.drop(session.id)
        await session.vectors.cut(session.id, 0, (await session.store.held(session.id)).record.boundary)


async def rewound(session: Session, keep: int, end: int) -> None:
    """Delete the vectors of messages that left the conversation; what cannot be deleted is embedded over later."""
    vectors = session.vectors
    if vectors is not None:
        vectors.known.drop(session.id)
        await _tried(session, vectors, lambda: vectors.cut(session.id, keep, end))


async def _until(session: Session, vectors: Vectors, boundary: int) -> int:
    """How many messages are embedded; those of a conversation that was rewound since are not."""
    last = vectors.known.last(session.id)
    if last is None:
        return await vectors.until(session.id, boundary)
    entries = await session.store.read(session.id, last[0] - 1, last[0]) if last[0] <= boundary else ()
    if [digest(entry.message) for entry in entries] == [last[1]]:
        return await vectors.until(session.id, boundary)
    await vectors.cut(session.id, 0, last[0])
    vectors.known.drop(session.id)
    return 0


async def _added(session: Session, vectors: Vectors, first: int, boundary: int) -> int:
    """How many messages are embedded, with some more."""
    entries = await session.store.read(session.id, first, min(boundary, first + _BATCH))
    if not entries:
        return boundary  # the session was rewound or cleared meanwhile
    await vectors.add(session.id, first, [_text(session, entry) for entry in entries])
    until = first + len(entries)
    vectors.known.keep(session.id, until, digest(entries[-1].message))
    return until


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
