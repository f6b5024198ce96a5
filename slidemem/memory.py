"""Decides how a memory is configured, and that its sessions share store, counter and consolidator.

What a session does is `conversation.py`'s.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from slidemem import export, flow, schedule
from slidemem.asking import asking, asking_async
from slidemem.breaker import Breaker
from slidemem.config import Options
from slidemem.consolidate import Consolidator, ExtractiveConsolidator, Summarize, resolve_consolidator
from slidemem.conversation import ConversationMemory
from slidemem.driver import drive
from slidemem.entries import findable, read
from slidemem.errors import AsyncOnly, ConfigurationError, InvalidExport, PinBudgetError, told
from slidemem.events import Event
from slidemem.messages import Message
from slidemem.openai_format import Given
from slidemem.plan import pinned_tokens
from slidemem.session import PROFILES, AllFigures, Layouts, Session
from slidemem.state import Entry, Snapshot
from slidemem.stores.base import Closing, Records, Store, Transcript, awaited
from slidemem.stores.joined import JoinedStore
from slidemem.stores.log import LoggedTranscript, MessageLog
from slidemem.stores.memory import MemoryStore
from slidemem.stores.url import open_store
from slidemem.tokens import Tally, TextMeasure, TokenCounter, resolve_counter
from slidemem.usage import Corrections
from slidemem.vectors import Embedder, Known, VectorIndex, Vectors, index_of
from slidemem.wishes import Asked
from slidemem.worker import candidates, work_off

_LOG = logging.getLogger("slidemem")
_EXTRACTIVE = ExtractiveConsolidator()
_TOLD_ONCE = {
    "refused": "a summary was refused, extracts stand in its place",
    "paused": "the summariser fails, and is left alone for a while",
    "counter_failed": "the counter failed, the estimate stands in",
    "embedding_failed": "embeddings fail, recall goes by the words alone",
}


class SlideMem:
    """A configured memory; its sessions share store, counter and consolidator.

    Args:
        max_tokens: budget of everything a context returns, in tokens.
        counter: what counts them: None (tiktoken's `o200k_base`, or the offline estimate where its vocabulary
            cannot be had), `"approximate"`, a model or encoding name, a function `text -> int`, or a
            `TokenCounter`.
        store: where sessions are kept: a `Store`, or a URL (`sqlite:///chat.db`, `postgresql://…`, `redis://…`);
            None keeps them in this process.
        transcript: the home of the messages, where it is apart from the rest, in the place of `store`: a
            `Transcript`, or a host's `MessageLog`.
        records: the home of the rest then, a `Records` or a store's URL; None keeps it in this process.
        consolidator: what writes the archive: a function `summarize(messages) -> str`, sync or async, a
            `Consolidator`, or None to keep nothing of what leaves the window (it stays in the transcript).
            Left out, the extractive one, which needs no model.
        embeddings: what compares old messages with a question by their meaning, besides the words: an `Embedder`
            (LangChain's `Embeddings` are ones), whose vectors are kept in this process, or a `VectorIndex`.
        redact: changes each text of a span before anything is made of it that outlives the window: summary,
            extracted lines, pins of "remember this", the first user message. The transcript keeps what was said.
        asked: called with the text of each user message: what it asks to remember and to forget, as an `Asked`, or
            None; besides what is found in any case ("remember that ...", "forget that ...").
        extract_facts: called with each span before it leaves the window, as OpenAI-format dicts: what it tells of the
            user, by name, which goes into the profile of the session's user; not called where it has none.
        on_event: called with each `Event`.
        clock: seconds since 1970; for tests.
        **options: see `Options`.

    Raises:
        ConfigurationError: an option, the counter or the consolidator is wrong.
        VocabularyMissing: the tokenizer asked for by name has no vocabulary here.
    """

    def __init__(  # noqa: PLR0913  # each is named by its caller, and has a default but one
        self,
        *,
        max_tokens: int,
        counter: TokenCounter | TextMeasure | str | None = None,
        store: Store | str | None = None,
        transcript: Transcript | MessageLog | None = None,
        records: Records | str | None = None,
        consolidator: Consolidator | Summarize | None = _EXTRACTIVE,
        embeddings: Embedder | VectorIndex | None = None,
        redact: Callable[[str], str] | None = None,
        asked: Callable[[str], Asked | None] | None = None,
        extract_facts: Callable[[list[dict[str, Any]]], Mapping[str, object]] | None = None,
        on_event: Callable[[Event], None] | None = None,
        clock: Callable[[], float] = time.time,
        **options: Any,
    ) -> None:
        self.options = Options.of(max_tokens=max_tokens, **options)
        self.consolidator = resolve_consolidator(consolidator)
        self._corrections = Corrections(self.options)
        self._background = schedule.Background(self.options.flush_seconds)
        if not callable(clock) or not all(
            given is None or callable(given) for given in (asked, extract_facts, on_event, redact)
        ):
            raise ConfigurationError("clock, asked, extract_facts, on_event and redact must be functions")
        self._redact = redact
        self._asked = asked
        self._extract_facts = extract_facts
        self._on_event = on_event
        self._clock = clock
        self._told: set[str] = set()
        self._layouts = Layouts()
        self._breaker = Breaker()
        self._index = None if embeddings is None else index_of(embeddings)
        self._known = Known()
        self._figures = AllFigures()
        self._tally = Tally(resolve_counter(counter), self._counter_failed)
        self._own: list[Closing] = []  # stores that were opened here
        self.store = self._opened(store, transcript, records)
        if self.options.recall_scope == "user" and isinstance(self.store, JoinedStore):
            raise ConfigurationError(
                'recall_scope="user" needs a store that knows whose a session is: give a store, not parts of one'
            )
        self._awaited = awaited(self.store)

    def __enter__(self) -> SlideMem:  # noqa: PYI034  # typing.Self is of Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Wait for what runs in the background, `flush_seconds` at most, and close the store that was given as a URL.

        A store that was given as an object is its giver's to close: other memories may use it.
        """
        self._background.drain()
        for opened in self._own:
            opened.close()

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={getattr(self.options, name)!r}" for name in sorted(self.options.model_fields_set))
        return f"SlideMem({given})"

    def session(
        self, session_id: str, *, user_id: str | None = None, metadata: Mapping[str, object] | None = None
    ) -> ConversationMemory:
        """One session; the same id is the same conversation.

        Args:
            session_id: any text that is not empty.
            user_id: whose it is: what `profile` knows of a user is shown in all sessions of the user; None for
                nobody's.
            metadata: short facts about the session (`{"timezone": "IST"}`), shown in the pinned zone and
                stored with the next append; None leaves what is stored.

        Raises:
            ConfigurationError: an id is no text or empty, or the metadata do not map names to short values.
            PinBudgetError: the metadata alone do not fit into `archive_share`.
        """
        if not isinstance(session_id, str) or not session_id:
            raise ConfigurationError(f"a session id must be text that is not empty, got {session_id!r:.80}")
        if session_id.startswith(PROFILES):
            raise ConfigurationError(
                f"a session id must not begin with {PROFILES!r}: profiles of users are kept there"
            )
        if user_id is not None:
            _checked_user(user_id)
        pairs = _pairs(metadata)
        needed = pinned_tokens(Snapshot(metadata=pairs or ()), self.options, self._tally)
        if needed > self.options.archive_tokens:
            raise PinBudgetError(needed, self.options.archive_tokens, "these metadata")
        return ConversationMemory(*self._reach(session_id, pairs, user_id), self._background)

    def count(self, messages: Given | Sequence[Given]) -> int:
        """Tokens of messages, by this memory's counter."""
        return sum(entry.whole_tokens for entry in read(self._reach("", None)[0], messages))

    def sessions(self) -> tuple[str, ...]:
        """Ids of the sessions that hold anything, in the order in which they began."""
        return _talks(drive(self.store.sessions(), "asessions"))

    async def asessions(self) -> tuple[str, ...]:
        """Async twin of `sessions`."""
        return _talks(await self._awaited.sessions())

    def consolidate_due(
        self, limit: int | None = None, *, stop: Callable[[], bool] = lambda: False
    ) -> tuple[str, ...]:
        """Consolidate whatever is due in the sessions of the store: the work of a task or of a worker of your own.

        Several may do so at once, on any machine. It needs the options that the sessions are used with. A session
        that fails is told by a `postponed` event, and stays due.

        Args:
            limit: in how many sessions at most; None for all.
            stop: asked before each session whether to stop there.

        Returns:
            Ids of the sessions in which something was consolidated.

        Raises:
            AsyncOnly: the consolidator has to be awaited.
            ConfigurationError: the limit is no whole number of 1 or more.
        """
        self._check_limit(limit)
        if getattr(self.consolidator, "async_only", False):
            raise AsyncOnly("aconsolidate_due")
        ids = drive(candidates(self.store, self.options), "aconsolidate_due")
        return drive(work_off((self._reach(id_, None)[0] for id_ in ids), limit, stop), "aconsolidate_due")

    async def aconsolidate_due(
        self, limit: int | None = None, *, stop: Callable[[], bool] = lambda: False
    ) -> tuple[str, ...]:
        """Async twin of `consolidate_due`."""
        self._check_limit(limit)
        ids = await candidates(self._awaited, self.options)
        return await work_off((self._reach(id_, None)[1] for id_ in ids), limit, stop)

    def delete_user(self, user_id: str) -> tuple[str, ...]:
        """Delete all sessions of a user for good, and what is known of the user.

        A session is the user's who was named when it was last written. The user's sessions that are open go on as
        new ones when something is appended to them.

        Returns:
            Their ids.

        Raises:
            ConfigurationError: the id is no text or empty.
            StoreError: the store does not know whose a session is: transcript and records are apart.
        """
        user = _checked_user(user_id)
        return drive(flow.erase(self.store, user, lambda id_: self._reach(id_, None)[0]), "adelete_user")

    async def adelete_user(self, user_id: str) -> tuple[str, ...]:
        """Async twin of `delete_user`."""
        user = _checked_user(user_id)
        return await flow.erase(self._awaited, user, lambda id_: self._reach(id_, None)[1])

    def restore(
        self,
        exported: Mapping[str, Any],
        session_id: str | None = None,
        *,
        user_id: str | None = None,
        replace: bool = False,
    ) -> ConversationMemory:
        """Bring back a session from what `export` gave.

        Args:
            exported: the object; it is not changed.
            session_id: of the session that it becomes; None for the one that it was.
            user_id: whose it becomes: an export does not say whose it was, and without it `delete_user` does not find
                the session before its next append. None leaves whose it is.
            replace: whether it may take the place of a session that holds something.

        Raises:
            InvalidExport: it cannot be read.
            SessionExists: the session holds something, and `replace` is False.
        """
        chat = self.session(_exported_id(exported) if session_id is None else session_id, user_id=user_id)
        drive(export.restore(self._reach(chat.session_id, None, user_id)[0], exported, replace=replace), "arestore")
        return chat

    async def arestore(
        self,
        exported: Mapping[str, Any],
        session_id: str | None = None,
        *,
        user_id: str | None = None,
        replace: bool = False,
    ) -> ConversationMemory:
        """Async twin of `restore`."""
        chat = self.session(_exported_id(exported) if session_id is None else session_id, user_id=user_id)
        await export.restore(self._reach(chat.session_id, None, user_id)[1], exported, replace=replace)
        return chat

    def _reach(
        self, session_id: str, metadata: tuple[tuple[str, str], ...] | None, user: str | None = None
    ) -> tuple[Session, Session]:
        """What flows need for a session: as a sync caller reaches it, and as an async one does."""
        base = replace(self._base(session_id, metadata), user=user)
        consolidator, background, index = self.consolidator, self._background, self._index
        patience = self.options.embedding_seconds
        behind = self.options.mode == "background"
        at_once = schedule.inline if self.options.mode == "inline" else schedule.manual
        return (
            replace(
                base,
                ask=asking(consolidator, self.options.summary_seconds) if consolidator else None,
                vectors=Vectors.for_sync(index, self._known, patience) if index else None,
                when_due=background.on_thread if behind else at_once,
            ),
            replace(
                base,
                store=self._awaited,
                ask=asking_async(consolidator, self.options.summary_seconds) if consolidator else None,
                vectors=Vectors.for_async(index, self._known, patience) if index else None,
                when_due=background.in_task if behind else at_once,
            ),
        )

    @staticmethod
    def _check_limit(limit: int | None) -> None:
        if limit is not None and (not isinstance(limit, int) or limit < 1):
            raise ConfigurationError(f"limit must be a whole number of 1 or more, got {limit!r:.80}")

    def _base(self, session_id: str, metadata: tuple[tuple[str, str], ...] | None) -> Session:
        return Session(
            id=session_id,
            corrections=self._corrections,
            store=self.store,
            ask=None,
            extractive=isinstance(self.consolidator, ExtractiveConsolidator),
            tally=self._tally,
            figures=self._figures.of(session_id),
            emit=self._emit,
            clock=self._clock,
            metadata=metadata,
            layouts=self._layouts,
            when_due=schedule.manual,
            redact=self._redact,
            breaker=self._breaker,
            asked=self._asked,
            extract_facts=self._extract_facts,
            async_only=bool(getattr(self.consolidator, "async_only", False)),
        )

    def _opened(
        self,
        store: Store | str | None,
        transcript: Transcript | MessageLog | None,
        records: Records | str | None,
    ) -> Store:
        if transcript is None and records is None:
            return self._store_of(store)
        if store is not None:
            raise ConfigurationError("give a store, or a transcript and records apart, not both")
        for part, kinds in ((transcript, (Transcript, MessageLog)), (records, (Records, str))):
            if part is not None and (isinstance(part, type) or not isinstance(part, kinds)):
                raise ConfigurationError(f"this is no {kinds[0].__name__}, see slidemem.stores.base: {part!r:.80}")
        home = LoggedTranscript(transcript, self._found) if isinstance(transcript, MessageLog) else transcript
        rest = self._store_of(records) if isinstance(records, str) else records
        return JoinedStore(home or MemoryStore(), rest or MemoryStore())

    def _store_of(self, given: Store | str | None) -> Store:
        store = open_store(given)
        if isinstance(given, str) and isinstance(store, Closing):
            self._own.append(store)
        return store

    def _found(self, messages: Sequence[Message], first: int) -> tuple[Entry, ...]:
        """Entries of messages that a host has kept; what is too large there was not ours to refuse."""
        base = self._base("", None)
        clamping = Corrections(base.options.model_copy(update={"oversize": "clamp", "token_factor": 1.0}))
        lenient = replace(base, corrections=clamping)
        return findable(lenient, read(lenient, messages, first))

    def _counter_failed(self, message: Message, fault: BaseException) -> None:
        detail = f"one {message.role} message is counted approximately: the counter raised {told(fault)}"
        self._emit(Event("counter_failed", "", detail))

    def _emit(self, event: Event) -> None:
        if event.kind in _TOLD_ONCE and event.kind not in self._told:
            self._told.add(event.kind)
            _LOG.warning("%s (told once): %s", _TOLD_ONCE[event.kind], event.detail)
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception as error:  # noqa: BLE001  # a listener's fault must not reach the turn it listens to
            _LOG.warning("on_event raised %s", told(error))


def _talks(ids: Sequence[str]) -> tuple[str, ...]:
    """The ids of sessions, those of profiles left out."""
    return tuple(id_ for id_ in ids if not id_.startswith(PROFILES))


def _checked_user(user_id: str) -> str:
    if not isinstance(user_id, str) or not user_id:
        raise ConfigurationError(f"a user id must be text that is not empty, got {user_id!r:.80}")
    return user_id


def _exported_id(exported: Mapping[str, Any]) -> str:
    id_ = exported.get("session") if isinstance(exported, Mapping) else None
    if not isinstance(id_, str):
        raise InvalidExport("the exported session has no id: pass session_id")
    return id_


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
