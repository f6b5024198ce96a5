"""Decides how somebody's own chat message history keeps the transcript of a session.

It is read, appended to and cleared, never rewritten: what it holds is what was said. What it holds when it is read
is the transcript, so what others add to it counts, and where it was edited before the boundary everything in it is
live again. The history of a session is the one that its latest user made.
"""

from __future__ import annotations

import inspect
import json
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from langchain_core.messages import BaseMessage, BaseMessageChunk

from langchain_slidemem.codec import LangChainCodec
from slidemem import ConfigurationError, Message

CODEC: Final = LangChainCodec(lenient=True)
_NEEDED: Final = ("add_messages", "clear")
_REMEMBERED: Final = 256  # sessions; one that is forgotten is made again


class Histories:
    """The histories of sessions, and the messages that are on their way to them.

    Args:
        get_session_history: makes the history of a session, of one argument, of several, or of none.
    """

    def __init__(self, get_session_history: Callable[..., Any]) -> None:
        self._get = get_session_history
        self._open: OrderedDict[str, Any] = OrderedDict()
        self._coming: dict[int, tuple[Message, BaseMessage]] = {}

    def open(self, *args: Any, **kwargs: Any) -> str:
        """Make the history of a session, which is its history from now on; returns the session's id."""
        named = inspect.signature(self._get).bind(*args, **kwargs).arguments
        session = session_id_of(named) if named else "the only session"
        self._take(session, self._get(*args, **kwargs))
        return session

    def of(self, session: str) -> Any:
        """The history of a session, made again where it was forgotten."""
        if session not in self._open:
            parameters = len(inspect.signature(self._get).parameters)
            self._take(session, self._get(session) if parameters == 1 else self._get(**json.loads(session)))
        return self._open[session]

    def _take(self, session: str, history: Any) -> None:
        missing = [name for name in _NEEDED if not hasattr(history, name)]
        if missing:
            raise ConfigurationError(
                f"over() takes a function that returns a chat message history; it returned {history!r:.80}, "
                f"which has no {' and no '.join(missing)}"
            )
        self._open[session] = history
        self._open.move_to_end(session)
        if len(self._open) > _REMEMBERED:
            self._open.popitem(last=False)

    @contextmanager
    def receiving(self, pairs: Sequence[tuple[Message, BaseMessage]]) -> Generator[None]:
        """While messages are stored: theirs is to get each as it came, with what JSON could not hold."""
        self._coming.update({id(neutral): (neutral, came) for neutral, came in pairs})
        try:
            yield
        finally:
            for neutral, _ in pairs:
                self._coming.pop(id(neutral), None)

    def decoded(self, message: Message) -> BaseMessage:
        """A message for a history: the one that came, or one that says the same."""
        _, came = self._coming.get(id(message), (None, None))
        return CODEC.decode(message) if came is None or isinstance(came, BaseMessageChunk) else came


def session_id_of(named: Mapping[str, Any]) -> str:
    """The session id that arguments name: the value of an only one, the JSON of several.

    Raises:
        ConfigurationError: JSON cannot hold one of them.
    """
    if len(named) == 1:
        return str(next(iter(named.values())))
    try:
        return json.dumps(named, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"a session is named by text and numbers, got {named!r:.80}") from error


class HistoryLog:
    """Histories as the core's `MessageLog`, for sync callers.

    Args:
        histories: of the sessions.
    """

    def __init__(self, histories: Histories) -> None:
        self._histories = histories

    def for_async(self) -> AsyncHistoryLog:
        """The face that async callers use: the histories' own async members."""
        return AsyncHistoryLog(self._histories)

    async def messages(self, session: str) -> Sequence[Message]:
        """All messages, in order."""
        return [CODEC.encode(message) for message in self._histories.of(session).messages]

    async def add(self, session: str, messages: Sequence[Message]) -> None:
        """Add messages at the end."""
        self._histories.of(session).add_messages([self._histories.decoded(message) for message in messages])

    async def clear(self, session: str) -> None:
        """Delete all messages."""
        self._histories.of(session).clear()


class AsyncHistoryLog:
    """The same for async callers.

    Args:
        histories: of the sessions.
    """

    def __init__(self, histories: Histories) -> None:
        self._histories = histories

    async def messages(self, session: str) -> Sequence[Message]:
        """All messages, in order."""
        return [CODEC.encode(message) for message in await self._histories.of(session).aget_messages()]

    async def add(self, session: str, messages: Sequence[Message]) -> None:
        """Add messages at the end."""
        await self._histories.of(session).aadd_messages([self._histories.decoded(message) for message in messages])

    async def clear(self, session: str) -> None:
        """Delete all messages."""
        await self._histories.of(session).aclear()
