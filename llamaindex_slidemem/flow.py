"""Decides what `get` comes to, once for sync and async callers.

Coroutines over a face of the session: the sync face never suspends, so that `run` drives them without an event
loop, in a notebook too.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Any, Final, Protocol, TypeVar

from slidemem import AsyncOnly, BudgetTooSmall, Context, ConversationMemory, Message, SlideMem, drive

Result = TypeVar("Result")

_UNBOUNDED: Final = 10**9  # tokens
_LEFT_OUT: Final = "[…"  # how slidemem's mark of what it cut begins


class Face(Protocol):
    """A session as one kind of caller reaches it."""

    async def context(self, pending: Message | None, reserve: int) -> Context:
        """See `ConversationMemory.context`."""
        ...

    async def transcript(self) -> tuple[Message, ...]:
        """See `ConversationMemory.transcript`."""
        ...


class SyncFace:
    """A session for sync callers; nothing suspends."""

    def __init__(self, session: ConversationMemory) -> None:
        self._session = session

    async def context(self, pending: Message | None, reserve: int) -> Context:
        """See `Face`."""
        return self._session.context(pending, reserve=reserve)

    async def transcript(self) -> tuple[Message, ...]:
        """See `Face`."""
        return self._session.transcript()


class AsyncFace:
    """A session for async callers."""

    def __init__(self, session: ConversationMemory) -> None:
        self._session = session

    async def context(self, pending: Message | None, reserve: int) -> Context:
        """See `Face`."""
        return await self._session.acontext(pending, reserve=reserve)

    async def transcript(self) -> tuple[Message, ...]:
        """See `Face`."""
        return await self._session.atranscript()


def run(flow: Coroutine[Any, Any, Result], twin: str) -> Result:
    """What a flow over a sync face returns; works inside a running event loop too.

    Raises:
        AsyncOnly: something has to be awaited; it names the method `twin`.
    """
    with named(twin):
        return drive(flow, twin)


@contextmanager
def named(twin: str) -> Generator[None, None, None]:
    """Name LlamaIndex's method where slidemem would name its own."""
    try:
        yield
    except AsyncOnly:
        raise AsyncOnly(twin) from None


async def shown(face: Face, asked: Message | None, reserve: int) -> Sequence[Message]:
    """What to send besides `asked`; nothing when that leaves no room.

    Raises:
        BudgetTooSmall: the newest stored message does not fit beside `reserve`.
    """
    context = await face.context(None, reserve)
    if asked is None or is_stored(asked, context):
        return context.messages
    try:
        return (await face.context(asked, reserve)).messages
    except BudgetTooSmall:
        return ()


async def last_turn(face: Face) -> Sequence[Message]:
    """System messages and the newest turn, whatever they take, valid for every provider."""
    messages = await face.transcript()
    system = tuple(takewhile(lambda message: message.role == "system", messages))
    start = max((at for at, message in enumerate(messages) if message.role == "user"), default=len(messages))
    turn = SlideMem(max_tokens=_UNBOUNDED, counter=len, consolidator=None, mode="manual").session("turn")
    turn.append((*system, *messages[start:]))
    return turn.context().messages


def is_stored(asked: Message, context: Context) -> bool:
    """Whether a message about to be sent is the newest user message, stored already and not answered yet.

    Agents store it before they read, most engines after.
    """
    newest = next((message for message in reversed(context.messages) if message.role == "user"), None)
    last = context.messages[-1:]
    if newest is None or (last[0].role == "assistant" and not last[0].tool_calls):
        return False
    if asked.digest in _origins(newest):
        return True
    text = newest.text.removeprefix(f"{context.head}\n\n") if context.head else newest.text
    begin, cut, _ = text.partition(_LEFT_OUT)
    clamped = newest.mark is not None and bool({"clamp", "anchor"}.intersection(newest.mark.kinds)) and bool(cut)
    return asked.text.startswith(begin.rstrip("\n")) if clamped else asked.text == text


def _origins(message: Message) -> tuple[str, ...]:
    return message.mark.of if message.mark else (message.digest,)
