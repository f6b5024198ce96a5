"""What a flow works with: one session as a caller reaches it, and what this process remembers of the latest ones."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, Final

from slidemem.breaker import Breaker
from slidemem.config import Options
from slidemem.events import Event, Figures
from slidemem.plan import Layout, lay_out
from slidemem.quote import Quote
from slidemem.remembered import forget_texts
from slidemem.request import SummaryRequest
from slidemem.state import Entry, Pin, Snapshot, is_of_user, of_user, with_profile, with_users_pins
from slidemem.stores.base import Store, Together
from slidemem.tokens import Tally
from slidemem.usage import Corrections
from slidemem.vectors import Vectors
from slidemem.wishes import Asked

PROFILES: Final = "slidemem:profile:"  # begins the ids under which stores keep profiles; no session may have one


def profile_id(user: str) -> str:
    """The id under which a store keeps what is known of a user."""
    return f"{PROFILES}{user}"


class Layouts:
    """The latest layouts of the latest sessions, what their reads took, and what their questions found.

    What is forgotten is made anew.

    Args:
        remember: how many sessions.
    """

    def __init__(self, remember: int = 256) -> None:
        self._remember = remember
        self._kept: OrderedDict[str, Layout] = OrderedDict()
        self._taken: OrderedDict[str, int] = OrderedDict()
        self._found: OrderedDict[str, tuple[Hashable, tuple[Quote, ...]]] = OrderedDict()
        self._lock = Lock()

    def get(self, session: str) -> Layout | None:
        """The latest layout of a session, if it is remembered."""
        with self._lock:
            return self._kept.get(session)

    def put(self, session: str, layout: Layout) -> None:
        """Remember a layout."""
        with self._lock:
            self._kept[session] = layout
            self._kept.move_to_end(session)
            if len(self._kept) > self._remember:
                self._kept.popitem(last=False)

    def taken(self, session: str) -> int:
        """Tokens that the latest read of a session showed or kept free besides what is stored."""
        with self._lock:
            return self._taken.get(session, 0)

    def take(self, session: str, tokens: int) -> None:
        """Remember what a read took besides: its system prompt and its reserve."""
        with self._lock:
            self._taken[session] = tokens
            self._taken.move_to_end(session)
            if len(self._taken) > self._remember:
                self._taken.popitem(last=False)

    def found(self, session: str, asked: Hashable) -> tuple[Quote, ...] | None:
        """What the latest question of a session found, if it is this one."""
        with self._lock:
            known, candidates = self._found.get(session, (None, ()))
            return candidates if known == asked else None

    def find(self, session: str, asked: Hashable, candidates: tuple[Quote, ...]) -> None:
        """Remember what a question found."""
        with self._lock:
            self._found[session] = asked, candidates
            self._found.move_to_end(session)
            if len(self._found) > self._remember:
                self._found.popitem(last=False)

    def clear(self) -> None:
        """Forget all layouts, which were made under another budget; what reads took stays true."""
        with self._lock:
            self._kept.clear()
            self._found.clear()

    def drop(self, session: str) -> None:
        """Forget a session."""
        with self._lock:
            for remembered in (self._kept, self._taken, self._found):
                remembered.pop(session, None)


class AllFigures:
    """The figures of the latest sessions of one memory.

    Args:
        remember: how many sessions.
    """

    def __init__(self, remember: int = 1024) -> None:
        self._remember = remember
        self._kept: OrderedDict[str, Figures] = OrderedDict()
        self._lock = Lock()

    def of(self, session: str) -> Figures:
        """The running figures of a session."""
        with self._lock:
            figures = self._kept.setdefault(session, Figures())
            self._kept.move_to_end(session)
            if len(self._kept) > self._remember:
                self._kept.popitem(last=False)
            return figures


@dataclass(frozen=True)
class Session:
    """What a flow works with: one session, as one caller reaches it.

    Attributes:
        id: of the session.
        corrections: what was learned of the memory's models, with the options that follow from it.
        store: where it is kept.
        ask: the summariser; None keeps nothing of what leaves the window.
        extractive: whether that is the extractive consolidator.
        tally: counts.
        figures: running figures.
        emit: hears of events.
        clock: seconds since 1970.
        metadata: of the session, written with the next append; None leaves it.
        layouts: the latest layouts by session, so that a read does not do again what an earlier one did.
        when_due: what is called when consolidation may be due.
        redact: changes the texts of a span before it is summarised; None leaves them.
        user: whose session it is; None for nobody's.
        asked: what a user asks to remember and to forget besides what is found in any case.
        extract_facts: what a span tells of its user, by name, for the user's profile.
        breaker: knows whether the summariser is asked at all; shared by all sessions of a memory.
        vectors: compare messages by their meaning; None goes by the words alone.
        async_only: whether the summariser has to be awaited, so that a sync append is refused.
    """

    id: str
    corrections: Corrections
    store: Store
    ask: Callable[[SummaryRequest], Awaitable[str]] | None
    extractive: bool
    tally: Tally
    figures: Figures
    emit: Callable[[Event], None]
    clock: Callable[[], float]
    metadata: tuple[tuple[str, str], ...] | None
    layouts: Layouts
    when_due: Callable[[Session], Coroutine[Any, Any, object]]
    async_only: bool
    redact: Callable[[str], str] | None = None
    breaker: Breaker = field(default_factory=Breaker)
    user: str | None = None
    asked: Callable[[str], Asked | None] | None = None
    extract_facts: Callable[[list[dict[str, Any]]], Mapping[str, object]] | None = None
    vectors: Vectors | None = None

    @property
    def scope(self) -> str | None:
        """The user whose sessions recall looks through; None for this session alone."""
        return self.user if self.options.recall_scope == "user" else None

    @property
    def options(self) -> Options:
        """Of the memory, as of now."""
        return self.corrections.options

    def lay_out(self, snapshot: Snapshot, pending: Sequence[Entry] = ()) -> Layout:
        """The layout of a snapshot."""
        layout = lay_out(snapshot, self.options, self.tally, pending, self.layouts.get(self.id))
        if not pending:  # what one call is about to send is no part of the session
            self.layouts.put(self.id, layout)
        return layout

    def forget(self) -> None:
        """Drop what this process remembers of the session's texts."""
        forget_texts()
        self.layouts.drop(self.id)
        self.tally.forget()
        self.figures.forget()

    def happened(self, event: Event) -> None:
        """Tell an event, with this session's id."""
        self.emit(replace(event, session=self.id))

    async def snapshot(self) -> Snapshot:
        """The session as of now, with the metadata that this caller gave."""
        snapshot, profile = await self._stored()
        if self.metadata is not None:
            snapshot = replace(snapshot, metadata=self.metadata)
        named = tuple((pin.id, pin.text) for pin in profile if not is_of_user(pin))
        return with_users_pins(with_profile(snapshot, named), tuple(filter(is_of_user, profile)))

    @property
    def pins_of_user(self) -> bool:
        """Whether what is pinned from now on is the user's."""
        return self.options.pin_scope == "user" and self.user is not None

    async def pin(self, pin: Pin) -> Pin:
        """Keep a pin where they belong, and return it as it is kept."""
        if not self.pins_of_user or self.user is None:
            await self.store.pin(self.id, pin, self.user)
            return pin
        await self.store.pin(profile_id(self.user), of_user(pin))
        return of_user(pin)

    async def unpin(self, id_: str) -> bool:
        """Take away a pin of the session's, or of its user's; False when there is none of this id."""
        pin = Pin(id_, "")
        gone = not is_of_user(pin) and await self.store.unpin(self.id, id_)
        users = self.user is not None and await self.store.unpin(profile_id(self.user), of_user(pin).id)
        return gone or users

    async def _stored(self) -> tuple[Snapshot, tuple[Pin, ...]]:
        """The session as it is stored, and what is known of its user."""
        if self.user is None:
            return await self.store.snapshot(self.id), ()
        profile = profile_id(self.user)
        if isinstance(self.store, Together):
            return await self.store.snapshot_beside(self.id, profile)
        return await self.store.snapshot(self.id), (await self.store.held(profile)).pins
