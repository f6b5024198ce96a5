"""Decides what the framework's dispatcher hears of a memory: what left the window, was written, came back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from llama_index.core.instrumentation.events import BaseEvent
from llama_index_instrumentation import get_dispatcher

from slidemem import Event

_DISPATCHER: Final = get_dispatcher(__name__)


class MemoryEvent(BaseEvent):
    """Something that happened in a memory.

    Attributes:
        kind: slidemem's name of it, see `slidemem.Event`.
        session: the memory's key.
        detail: one sentence.
        start: place in the conversation of the first message that it is about; -1 when none.
        end: place after the last; -1 when none.
    """

    kind: str
    session: str
    detail: str
    start: int = -1
    end: int = -1

    @classmethod
    def class_name(cls) -> str:
        """The event's name."""
        return "MemoryEvent"


class EvictionEvent(MemoryEvent):
    """Messages left the window; `start` and `end` say which."""

    @classmethod
    def class_name(cls) -> str:
        """The event's name."""
        return "EvictionEvent"


class ConsolidationEvent(MemoryEvent):
    """A segment of the archive was written.

    Attributes:
        text: of the segment.
        tokens: of the text.
        method: who wrote it: `summarizer`, `extractive` or `none`.
    """

    text: str
    tokens: int
    method: str

    @classmethod
    def class_name(cls) -> str:
        """The event's name."""
        return "ConsolidationEvent"


class RecallEvent(MemoryEvent):
    """A prompt quotes archived messages; `start` and `end` say between which places they are."""

    @classmethod
    def class_name(cls) -> str:
        """The event's name."""
        return "RecallEvent"


def telling(on_event: Callable[[Event], None] | None) -> Callable[[Event], None]:
    """A listener of slidemem's events that tells them to LlamaIndex's dispatcher, and to the user's own listener."""

    def tell(event: Event) -> None:
        for told in _events(event):
            _DISPATCHER.event(told)
        if on_event is not None:
            on_event(event)

    return tell


def _events(event: Event) -> tuple[MemoryEvent, ...]:
    about = {
        "kind": event.kind,
        "session": event.session,
        "detail": event.detail,
        "start": event.start,
        "end": event.end,
    }
    if event.segment is None:
        kind = RecallEvent if event.kind == "recalled" else MemoryEvent
        return (kind.model_validate(about),)
    segment = event.segment
    written = {**about, "text": segment.text, "tokens": segment.tokens, "method": segment.method}
    consolidation = ConsolidationEvent.model_validate(written)
    if event.kind == "consolidated":
        return (EvictionEvent.model_validate(about), consolidation)
    return (consolidation,)
