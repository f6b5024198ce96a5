"""Decides what the chunks of a run have said so far.

Chunks add up, as LangChain's do. A graph streams otherwise: the whole state again and again, or what each node wrote,
or pieces of messages beside what is known of them; of the last two the messages are taken, each by its id once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from langchain_core.messages import BaseMessage, RemoveMessage

_USUAL: Final = "messages"  # where LangGraph's states have them
_PAIR: Final = 2


class Heard:
    """The answer of a run, as far as it has come.

    Args:
        key: where a state has its messages; None for `messages`.

    Attributes:
        value: the answer; None before anything came.
    """

    def __init__(self, key: str | None) -> None:
        self.value: Any = None
        self._key = key or _USUAL
        self._said: dict[object, BaseMessage] = {}

    def take(self, chunk: Any) -> None:
        """Take the answer, or the next chunk of it."""
        told = _without_mode(chunk)
        if _is_piece(told):
            self._add(told[0])
        elif self._is_update(told):
            for message in self._written(told):
                self._said[message.id or len(self._said)] = message
        else:
            self.value = added(self.value, told)
            return
        self.value = {self._key: list(self._said.values())}

    def _add(self, piece: BaseMessage) -> None:
        key = piece.id or len(self._said)
        self._said[key] = added(self._said.get(key), piece)

    def _is_update(self, chunk: object) -> bool:
        """Whether a chunk is what nodes of a graph wrote: one of them messages, or others after such a one."""
        if not isinstance(chunk, Mapping) or self._key in chunk:
            return False
        writes: list[object] = list(cast("Mapping[str, object]", chunk).values())
        nodes = all(write is None or isinstance(write, Mapping) for write in writes)
        return nodes and (bool(self._said) or any(True for _ in self._written(cast("Mapping[str, Any]", chunk))))

    def _written(self, update: Mapping[str, Any]) -> Iterator[BaseMessage]:
        for write in update.values():
            listed: Any = cast("Mapping[str, Any]", write).get(self._key) if isinstance(write, Mapping) else ()
            said = cast("Sequence[object]", listed if isinstance(listed, (list, tuple)) else (listed,))
            for one in said:
                if isinstance(one, BaseMessage) and not isinstance(one, RemoveMessage):
                    yield one


def added(before: Any, chunk: Any) -> Any:
    """Chunks added up, as LangChain does: one that does not add up takes the place of what was before."""
    if before is None:
        return chunk
    try:
        return before + chunk
    except TypeError:
        return chunk


def _without_mode(chunk: Any) -> Any:
    """A graph's chunk without the name of its mode, which stands there when there are several."""
    pair = _pair(chunk)
    return pair[1] if pair and isinstance(pair[0], str) else chunk


def _is_piece(chunk: Any) -> bool:
    """Whether a chunk is a message, or a piece of one, beside what is known of it."""
    pair = _pair(chunk)
    return pair is not None and isinstance(pair[0], BaseMessage) and isinstance(pair[1], Mapping)


def _pair(chunk: object) -> Sequence[Any] | None:
    pair = cast("Sequence[Any]", chunk) if isinstance(chunk, tuple) else ()
    return pair if len(pair) == _PAIR else None
