"""The two objects that users hold: `SlideMem`, a configured memory, and `ConversationMemory`, one session.

Sync methods have `a`-prefixed async twins; both run the flows of `flow.py`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from slidemem import flow, settle
from slidemem.archive import Segment
from slidemem.compose import Context
from slidemem.config import MOST, Options
from slidemem.consolidate import (
    Consolidator,
    ExtractiveConsolidator,
    FunctionConsolidator,
    Summarize,
    SummaryRequest,
    resolve_consolidator,
)
from slidemem.errors import AsyncOnly, ConfigurationError, PinBudgetError
from slidemem.events import Event, Figures, Stats
from slidemem.messages import Message
from slidemem.openai_format import Given
from slidemem.plan import pinned_tokens
from slidemem.session import Layouts, Session, drive
from slidemem.state import Pin, Snapshot
from slidemem.stores.base import Store
from slidemem.stores.memory import MemoryStore
from slidemem.tokens import Tally, TextMeasure, TokenCounter, resolve_counter

_LOG = logging.getLogger("slidemem")
_EXTRACTIVE = ExtractiveConsolidator()


class SlideMem:
    """A configured memory; its sessions share store, counter and consolidator.

    Args:
        max_tokens: budget of everything a context returns, in tokens.
        counter: what counts them: None (tiktoken's `o200k_base`, or the offline estimate where its vocabulary
            cannot be had), `"approximate"`, a model or encoding name, a function `text -> int`, or a
            `TokenCounter`.
        store: where sessions are kept; None keeps them in this process.
        consolidator: what writes the archive: a function `summarize(messages) -> str`, sync or async, a
            `Consolidator`, or None to keep nothing of what leaves the window (it stays in the transcript).
            Left out, the extractive one, which needs no model.
        on_event: called with each `Event`.
        clock: seconds since 1970; for tests.
        **options: see `Options`.

    Raises:
        ConfigurationError: an option, the counter or the consolidator is wrong.
        VocabularyMissing: the tokenizer asked for by name has no vocabulary here.
    """

    def __init__(
        self,
        *,
        max_tokens: int,
        counter: TokenCounter | TextMeasure | str | None = None,
        store: Store | None = None,
        consolidator: Consolidator | Summarize | None = _EXTRACTIVE,
        on_event: Callable[[Event], None] | None = None,
        clock: Callable[[], float] = time.time,
        **options: Any,
    ) -> None:
        self.options = Options.of(max_tokens=max_tokens, **options)
        self.consolidator = resolve_consolidator(consolidator)
        self.store: Store = MemoryStore() if store is None else _checked(store)
        if not callable(clock) or not (on_event is None or callable(on_event)):
            raise ConfigurationError("clock and on_event must be functions")
        self._on_event = on_event
        self._clock = clock
        self._told = False
        self._layouts = Layouts()
        self._tally = Tally(resolve_counter(counter), self._counter_failed)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={getattr(self.options, name)!r}" for name in sorted(self.options.model_fields_set))
        return f"SlideMem({given})"

    def session(self, session_id: str, *, metadata: Mapping[str, object] | None = None) -> ConversationMemory:
        """One session; the same id is the same conversation.

        Args:
            session_id: any text that is not empty.
            metadata: short facts about the session (`{"timezone": "IST"}`), shown in the pinned zone and
                stored with the next append; None leaves what is stored.

        Raises:
            ConfigurationError: the id is no text or empty, or the metadata do not map names to short values.
            PinBudgetError: the metadata alone do not fit into `archive_share`.
        """
        if not isinstance(session_id, str) or not session_id:
            raise ConfigurationError(f"a session id must be text that is not empty, got {session_id!r:.80}")
        pairs = _pairs(metadata)
        needed = pinned_tokens(Snapshot(metadata=pairs or ()), self.options, self._tally)
        if needed > self.options.archive_tokens:
            raise PinBudgetError(needed, self.options.archive_tokens, "these metadata")
        return ConversationMemory(self, session_id, pairs)

    def count(self, messages: Given | Sequence[Given]) -> int:
        """Tokens of messages, by this memory's counter."""
        return sum(entry.whole_tokens for entry in flow.read(self.reach("", None), messages))

    def reach(self, session_id: str, metadata: tuple[tuple[str, str], ...] | None) -> Session:
        """What a flow needs for a session, but for the summariser, which differs for sync and async callers."""
        return Session(
            id=session_id,
            options=self.options,
            store=self.store,
            ask=None,
            extractive=isinstance(self.consolidator, ExtractiveConsolidator),
            tally=self._tally,
            figures=Figures(),
            emit=self._emit,
            clock=self._clock,
            metadata=metadata,
            layouts=self._layouts,
        )

    def _counter_failed(self, message: Message, fault: BaseException) -> None:
        detail = (
            f"one {message.role} message is counted approximately: the counter raised {type(fault).__name__}: {fault}"
        )
        self._emit(Event("counter_failed", "", detail))

    def _emit(self, event: Event) -> None:
        if event.kind == "refused" and not self._told:
            self._told = True
            _LOG.warning("a summary was refused, extracts stand in its place (told once): %s", event.detail)
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception as error:  # noqa: BLE001  # a listener's fault must not reach the turn it listens to
            _LOG.warning("on_event raised %s: %s", type(error).__name__, error)


class ConversationMemory:
    """One session: append what is said, read the context to send.

    Messages are OpenAI-format dicts or `Message`; one, or a sequence of them.
    """

    def __init__(self, memory: SlideMem, session_id: str, metadata: tuple[tuple[str, str], ...] | None) -> None:
        self.session_id = session_id
        self.memory = memory
        base = memory.reach(session_id, metadata)
        consolidator = memory.consolidator
        self._sync = replace(base, ask=_asking(consolidator) if consolidator else None)
        self._async = replace(base, ask=_asking_async(consolidator) if consolidator else None)

    def __repr__(self) -> str:
        return f"ConversationMemory({self.session_id!r:.80})"

    def append(self, messages: Given | Sequence[Given]) -> None:
        """Store messages at the end, all or none; consolidate when that is due.

        Raises:
            InvalidMessage: one cannot be read; nothing was stored.
            OversizeMessage: one is too large and `oversize="raise"`; nothing was stored.
            AsyncOnly: store or summariser have to be awaited.
        """
        self._check_sync("aappend")
        drive(flow.append(self._sync, messages), "aappend")

    async def aappend(self, messages: Given | Sequence[Given]) -> None:
        """Async twin of `append`."""
        await flow.append(self._async, messages)

    def context(
        self,
        pending: Given | Sequence[Given] | None = None,
        *,
        system: str | Given | Sequence[Given] | None = None,
        reserve: int = 0,
    ) -> Context:
        """What to send now: system, head, window. Writes nothing.

        Args:
            pending: messages about to be sent but not stored yet: counted, not returned.
            system: text or messages shown first.
            reserve: tokens kept free in this call besides `reserve_tokens`.

        Raises:
            BudgetTooSmall: not even the newest message, clamped to its marks, fits.
            ConfigurationError: `reserve` is not a whole number of 0 or more.
            InvalidMessage: `pending` or `system` cannot be read.
        """
        return drive(flow.context(self._sync, pending, system, _whole_number(reserve)), "acontext")

    async def acontext(
        self,
        pending: Given | Sequence[Given] | None = None,
        *,
        system: str | Given | Sequence[Given] | None = None,
        reserve: int = 0,
    ) -> Context:
        """Async twin of `context`."""
        return await flow.context(self._async, pending, system, _whole_number(reserve))

    def consolidate(self, *, force: bool = False) -> Segment | None:
        """Move what is due out of the window into the archive; with `force`, cut down to `compact_to` now.

        Returns:
            The new segment, or None when there was nothing to move.

        Raises:
            AsyncOnly: store or summariser have to be awaited.
        """
        self._check_sync("aconsolidate")
        return drive(settle.consolidate(self._sync, force=force), "aconsolidate")

    async def aconsolidate(self, *, force: bool = False) -> Segment | None:
        """Async twin of `consolidate`."""
        return await settle.consolidate(self._async, force=force)

    def pin(self, text: str) -> Pin:
        """Show a fact always, until it is unpinned.

        Raises:
            PinBudgetError: it does not fit into `archive_share` beside what is pinned.
            InvalidMessage: it is blank or no text.
        """
        return drive(flow.pin(self._sync, text), "apin")

    async def apin(self, text: str) -> Pin:
        """Async twin of `pin`."""
        return await flow.pin(self._async, text)

    def unpin(self, pin: Pin | str) -> bool:
        """Show a fact no longer, named by its pin, id or text; False when it was not pinned."""
        return drive(flow.unpin(self._sync, pin), "aunpin")

    async def aunpin(self, pin: Pin | str) -> bool:
        """Async twin of `unpin`."""
        return await flow.unpin(self._async, pin)

    def pins(self) -> tuple[Pin, ...]:
        """What is pinned, oldest first."""
        return drive(flow.pins(self._sync), "apins")

    async def apins(self) -> tuple[Pin, ...]:
        """Async twin of `pins`."""
        return await flow.pins(self._async)

    def transcript(self) -> tuple[Message, ...]:
        """Every message ever appended, as it came, in order."""
        return drive(flow.transcript(self._sync), "atranscript")

    async def atranscript(self) -> tuple[Message, ...]:
        """Async twin of `transcript`."""
        return await flow.transcript(self._async)

    def stats(self) -> Stats:
        """The session in figures."""
        return drive(flow.stats(self._sync), "astats")

    async def astats(self) -> Stats:
        """Async twin of `stats`."""
        return await flow.stats(self._async)

    def archive(self) -> tuple[Segment, ...]:
        """The archive's segments, oldest first."""
        return drive(flow.archive(self._sync), "aarchive")

    async def aarchive(self) -> tuple[Segment, ...]:
        """Async twin of `archive`."""
        return await flow.archive(self._async)

    def export(self) -> dict[str, Any]:
        """The whole session as one JSON object, to be read by eye or kept."""
        return drive(flow.export(self._sync), "aexport")

    async def aexport(self) -> dict[str, Any]:
        """Async twin of `export`."""
        return await flow.export(self._async)

    def clear(self) -> None:
        """Delete the session for good: transcript, archive, pins, metadata.

        Metadata that this object was given are written again with its next append.
        """
        drive(flow.clear(self._sync), "aclear")

    async def aclear(self) -> None:
        """Async twin of `clear`."""
        await flow.clear(self._async)

    def _check_sync(self, twin: str) -> None:
        """Refuse before anything is stored what could not be finished."""
        if getattr(self.memory.consolidator, "async_only", False):
            raise AsyncOnly(twin)


def _asking(consolidator: Consolidator) -> Callable[[SummaryRequest], Awaitable[str]]:
    async def ask(request: SummaryRequest) -> str:
        return consolidator.summarize(request)

    return ask


def _asking_async(consolidator: Consolidator) -> Callable[[SummaryRequest], Awaitable[str]]:
    """A sync function is called in a thread, so that a slow one does not hold the event loop."""

    async def ask(request: SummaryRequest) -> str:
        if isinstance(consolidator, FunctionConsolidator) and not consolidator.async_only:
            return await asyncio.to_thread(consolidator.summarize, request)
        return await consolidator.asummarize(request)

    return ask


def _checked(store: Store) -> Store:
    missing = [
        name for name in ("append", "read", "snapshot", "commit", "recount", "clear") if not hasattr(store, name)
    ]
    if missing:
        raise ConfigurationError(
            f"store must follow slidemem.stores.base.Store; {type(store).__name__} has no {', '.join(missing)}"
        )
    return store


def _pairs(metadata: Mapping[str, object] | None) -> tuple[tuple[str, str], ...] | None:
    if metadata is None:
        return None
    if not isinstance(metadata, Mapping):
        raise ConfigurationError(f"metadata must map names to values, got {type(metadata).__name__}")
    wrong = [name for name, value in metadata.items() if not isinstance(value, (str, int, float))]
    if wrong:
        raise ConfigurationError(
            f"metadata values must be text or numbers; these are not: {', '.join(map(str, wrong))}"
        )
    try:
        return tuple((_line(name), _line(value)) for name, value in metadata.items())
    except ValueError as error:  # a whole number of thousands of digits
        raise ConfigurationError(f"metadata hold a value that cannot be written: {error}") from error


def _line(value: object) -> str:
    return " ".join(str(value).encode("utf-8", "replace").decode().split())


def _whole_number(reserve: int) -> int:
    if isinstance(reserve, bool) or not isinstance(reserve, int) or not 0 <= reserve <= MOST:
        raise ConfigurationError(f"reserve must be a whole number of tokens, 0 or more, got {reserve!r}")
    return reserve
