"""Decides how a memory fits where LlamaIndex has ChatMemoryBuffer: the same arguments, defaults, errors and methods.

What is remembered, what is shown, and what it costs is slidemem's.
"""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable, Collection, Mapping, Sequence
from inspect import isfunction
from typing import Any, Final, Literal, cast

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr, field_validator
from llama_index.core.llms.llm import LLM
from llama_index.core.memory.types import DEFAULT_CHAT_STORE_KEY, BaseMemory
from llama_index.core.storage.chat_store.base import BaseChatStore

from llamaindex_slidemem.arguments import check_known, consolidator_of, limit_of, reserve_of
from llamaindex_slidemem.chat_store import ChatStoreLog
from llamaindex_slidemem.codec import LlamaIndexCodec
from llamaindex_slidemem.counter import Tokenizer, TokenizerCounter, default_tokenizer
from llamaindex_slidemem.flow import AsyncFace, Face, SyncFace, last_turn, named, run, shown
from llamaindex_slidemem.instrumentation import telling
from llamaindex_slidemem.own_store import OwnChatStore
from llamaindex_slidemem.saved import left_out, parsed, read
from llamaindex_slidemem.vectors import embeddings_of
from slidemem import (
    BudgetTooSmall,
    ConfigurationError,
    ConversationMemory,
    Event,
    Hit,
    MemoryStore,
    Message,
    Part,
    Role,
    SlideMem,
    Stats,
    TextRecords,
)

_BESIDE: Final = ("on_overflow", "media_tokens", "store", "records", "embeddings", "redact", "on_event")
_IN_CHAT_STORE: Final = "chat_store"
_HOMES: Final = frozenset({"chat_store", "store", "records"})
_ANEW: Final = _HOMES | {
    *("token_limit", "tokenizer_fn", "chat_store_key", "summarizer", "media_tokens", "options", "redact", "on_event"),
    "embeddings",
}


class SlidingChatMemoryBuffer(BaseMemory):
    """Chat memory for every LlamaIndex engine and agent: in the place of `ChatMemoryBuffer`, by changing one name.

    What leaves the window becomes an archive at the head of the first message shown; `get` never takes more than
    `token_limit` less `initial_token_count`, and never changes anything.

    Its messages are private to the object, as ChatMemoryBuffer's are: everyone's key is `"chat_history"`. A
    conversation that is to be found again by its key needs a store (`chat_store=` or `store=`), and a key of its own.

    Attributes:
        token_limit: budget of what `get` returns, in tokens; may be assigned.
        tokenizer_fn: a text's tokens as a list.
        chat_store: a LlamaIndex chat store that is the home of the messages; where none is given, they are in
            `store`, and this reads and persists them all the same.
        chat_store_key: name of the conversation in its store.
        summarizer: what writes the archive: a LlamaIndex `LLM`, a function `summarize(messages) -> str` (messages as
            OpenAI-format dicts), sync or async, or a slidemem `Consolidator`. None takes sentences from the
            conversation itself, which needs no model.
        on_overflow: what `get` does when `initial_token_count` leaves no room for the newest message: `"raise"`, or
            `"last_turn"`, which hands out the newest user message with what follows it, whatever that takes.
        media_tokens: flat price in tokens by kind (`image`, `audio`, `video`, `file`).
        store: where everything is kept without `chat_store`: a slidemem store, or its URL.
        records: where archive and pins are kept beside a `chat_store`: a slidemem store, or its URL; or
            `"chat_store"`, in that store, under the key with `.slidemem` behind it.
        embeddings: compare old messages with a question by their meaning, besides the words: a LlamaIndex embedding
            model, a vector store (then with the embedding model of `Settings`), or a `MessageVectors` of both.
        redact: changes texts before anything is made of them that outlives the window, see `slidemem.SlideMem`.
        on_event: called with each `slidemem.Event`, which LlamaIndex's dispatcher hears of too.
        options: slidemem's options, see `slidemem.Options`.
    """

    model_config = ConfigDict(validate_assignment=True, arbitrary_types_allowed=True, extra="forbid")

    token_limit: int = Field(default=-1, validate_default=True)
    tokenizer_fn: Tokenizer = Field(default_factory=default_tokenizer, exclude=True)
    chat_store: BaseChatStore = Field(default=cast("BaseChatStore", None), exclude=True)  # one's own from then on
    chat_store_key: str = DEFAULT_CHAT_STORE_KEY
    summarizer: Any = Field(default=None, exclude=True)
    on_overflow: Literal["raise", "last_turn"] = "raise"
    media_tokens: dict[str, int] | None = None
    store: Any = Field(default=None, exclude=True)
    records: Any = Field(default=None, exclude=True)
    embeddings: Any = Field(default=None, exclude=True)
    redact: Callable[[str], str] | None = Field(default=None, exclude=True)
    on_event: Callable[[Event], None] | None = Field(default=None, exclude=True)
    options: dict[str, Any] = Field(default_factory=dict)

    _codec: LlamaIndexCodec = PrivateAttr(default_factory=LlamaIndexCodec)
    _home: dict[str, Any] = PrivateAttr(default_factory=dict)
    _own: OwnChatStore | None = PrivateAttr(default=None)
    _memory: SlideMem = PrivateAttr()
    _session: ConversationMemory = PrivateAttr()

    def __init__(self, **data: Any) -> None:
        super().__init__(**data)
        self._home = self._opened()
        self._configure()

    def _repr_html_(self) -> str:
        return self._session.to_html()

    @classmethod
    def class_name(cls) -> str:
        """The name under which LlamaIndex serialises it."""
        return "SlidingChatMemoryBuffer"

    @field_validator("token_limit", mode="before")
    @classmethod
    def _positive(cls, limit: Any) -> Any:
        if limit is None or isinstance(limit, bool) or (isinstance(limit, int) and limit < 1):
            raise ValueError("Token limit must be set and greater than 0.")
        return limit

    @field_validator("chat_store", mode="wrap")
    @classmethod
    def _given_or_own(cls, chat_store: Any, read: Callable[[Any], BaseChatStore]) -> BaseChatStore | None:
        return None if chat_store is None else read(chat_store)

    @field_validator("tokenizer_fn", mode="before")
    @classmethod
    def _given_or_default(cls, tokenizer_fn: Any) -> Any:
        return default_tokenizer() if tokenizer_fn is None else tokenizer_fn

    @classmethod
    def from_defaults(  # noqa: PLR0913  # ChatMemoryBuffer's signature
        cls,
        chat_history: list[ChatMessage] | None = None,
        llm: LLM | None = None,
        chat_store: BaseChatStore | None = None,
        chat_store_key: str = DEFAULT_CHAT_STORE_KEY,
        token_limit: int | None = None,
        tokenizer_fn: Tokenizer | None = None,
        *,
        summarizer: Any = None,
        **options: Any,
    ) -> SlidingChatMemoryBuffer:
        """A memory with ChatMemoryBuffer's defaults.

        Args:
            chat_history: the conversation so far; takes the place of what a given store holds under the key.
            llm: gives the limit, three quarters of its context window; it is asked nothing, and not kept.
            chat_store: home of the messages; None keeps them in this object.
            chat_store_key: name of the conversation in its store.
            token_limit: budget in tokens; left out, the model's, and without a model 3,000.
            tokenizer_fn: a text's tokens as a list; left out, LlamaIndex's own.
            summarizer: what writes the archive, see the class.
            **options: `on_overflow`, `media_tokens`, `store`, `records`, `embeddings`, `redact`,
                `on_event`, and any of
                `slidemem.Options`.

        Raises:
            ValueError: an option is unknown, or the limit is less than 1.
            ConfigurationError: an option is wrong; a ValueError too.
        """
        check_known(_BESIDE, options)
        memory = cls(
            token_limit=limit_of(llm, token_limit),
            tokenizer_fn=tokenizer_fn,
            chat_store=chat_store,
            chat_store_key=chat_store_key,
            summarizer=summarizer,
            options={key: value for key, value in options.items() if key not in _BESIDE},
            **{key: value for key, value in options.items() if key in _BESIDE},
        )
        if chat_history is not None:
            memory.set(chat_history)
        return memory

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _ANEW:
            super().__setattr__(name, value)
            return
        before, home = getattr(self, name), self._home
        if name == "chat_store" and value is None and before is self._own:
            return  # it is private already
        super().__setattr__(name, value)
        try:
            self._home = self._opened() if name in _HOMES else home
            self._configure()
        except ValueError:  # the memory goes on as it was
            super().__setattr__(name, before)
            self._home = home
            raise

    # ------------------------------------------------------------------ what it stands on

    @property
    def session(self) -> ConversationMemory:
        """The conversation as slidemem has it: pins, archive, figures, rewind and the rest."""
        return self._session

    def stats(self) -> Stats:
        """The memory in figures; consolidations among them."""
        return self._session.stats()

    async def astats(self) -> Stats:
        """Async twin of `stats`."""
        return await self._session.astats()

    def _opened(self) -> dict[str, Any]:
        """Where messages and the rest are kept; opened once, however often the limit changes."""
        given = None if self.chat_store is self._own else self.chat_store
        if given is not None and self.store is not None:
            raise ConfigurationError("chat_store and store are both a home of the messages: give one, not both")
        if isinstance(given, OwnChatStore):  # another memory's
            return {"store": given.home}
        if given is None and self.records is not None:
            raise ConfigurationError("records keeps the archive beside a chat_store: give that too, or store instead")
        if given is None:
            return {"store": MemoryStore() if self.store is None else self.store}
        log = ChatStoreLog(given, self._codec)
        if self.records == _IN_CHAT_STORE:
            return {"transcript": log, "records": TextRecords(log)}
        return {"transcript": log, "records": MemoryStore() if self.records is None else self.records}

    def _configure(self) -> None:
        check_known((), self.options)
        self._memory = SlideMem(
            **self._home,
            **self.options,
            max_tokens=self.token_limit,
            counter=TokenizerCounter(self.tokenizer_fn, self.media_tokens),
            embeddings=embeddings_of(self.embeddings, self.chat_store_key),
            redact=self.redact,
            on_event=telling(self.on_event),
            **consolidator_of(self.summarizer),
        )
        self._session = self._memory.session(self.chat_store_key)
        if "store" in self._home:
            self._own = OwnChatStore(self._memory, self._codec)
            super().__setattr__("chat_store", self._own)

    # ------------------------------------------------------------------ read

    def get(
        self,
        input: str | ChatMessage | None = None,  # noqa: A002  # BaseMemory's name for it
        initial_token_count: int = 0,
        **kwargs: Any,  # noqa: ARG002  # taken and ignored, as ChatMemoryBuffer does
    ) -> list[ChatMessage]:
        """What to send now: new messages, which the caller may change. Writes nothing.

        Args:
            input: the message about to be sent, its text or itself. It is counted and not returned, unless it is
                stored already and waits for its answer. One that takes the whole budget leaves room for nothing.
            initial_token_count: tokens that the caller sends besides.
            **kwargs: ignored, as ChatMemoryBuffer does.

        Raises:
            ValueError: `initial_token_count` is larger than the limit, and `on_overflow` is `"raise"`.
            BudgetTooSmall: it leaves no room for the newest message, and `on_overflow` is `"raise"`.
            ConfigurationError: `initial_token_count` is no whole number of 0 or more.
        """
        return run(self._got(SyncFace(self._session), input, initial_token_count), "aget")

    async def aget(
        self,
        input: str | ChatMessage | None = None,  # noqa: A002  # BaseMemory's name for it
        initial_token_count: int = 0,
        **kwargs: Any,  # noqa: ARG002  # taken and ignored, as ChatMemoryBuffer does
    ) -> list[ChatMessage]:
        """Async twin of `get`."""
        return await self._got(AsyncFace(self._session), input, initial_token_count)

    async def _got(self, face: Face, said: str | ChatMessage | None, reserve: int) -> list[ChatMessage]:
        asked, tokens = self._asked(said), reserve_of(reserve)
        if tokens > self.token_limit and self.on_overflow == "raise":
            raise ValueError("Initial token count exceeds token limit")
        try:
            messages = await shown(face, asked, min(tokens, self.token_limit))
        except BudgetTooSmall:
            if self.on_overflow == "raise":
                raise
            messages = await last_turn(face)
        return [self._codec.remembered(message) for message in messages]

    def _asked(self, said: str | ChatMessage | None) -> Message | None:
        if said is None or said == "":
            return None
        return Message("user", (Part("text", said),)) if isinstance(said, str) else self._codec.encode(said)

    def get_all(self) -> list[ChatMessage]:
        """Everything that was ever put, word for word, in order; new messages, which the caller may change."""
        return [self._codec.decode(message) for message in self._session.transcript()]

    async def aget_all(self) -> list[ChatMessage]:
        """Async twin of `get_all`."""
        return [self._codec.decode(message) for message in await self._session.atranscript()]

    def search(
        self,
        query: str,
        k: int = 5,
        *,
        roles: Collection[Role] | Role | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> tuple[Hit, ...]:
        """What was ever said of something, best first: see `slidemem.ConversationMemory.search`.

        Args:
            query: any text.
            k: how many hits at most.
            roles: of messages; None for all, and for lines of the archive.
            since: what was said at this time or later, in seconds since 1970.
            until: what was said before this time.

        Returns:
            Hits, each with `text`, `score`, `seq` and slidemem's `message`, or `segment` for a line of the archive.
            Their texts are as they would be quoted, `redact` applied; their messages are as they were said.

        Raises:
            ConfigurationError: an argument is wrong.
        """
        with named("asearch"):
            return self._session.search(query, k, roles=roles, since=since, until=until)

    async def asearch(
        self,
        query: str,
        k: int = 5,
        *,
        roles: Collection[Role] | Role | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> tuple[Hit, ...]:
        """Async twin of `search`."""
        return await self._session.asearch(query, k, roles=roles, since=since, until=until)

    # ------------------------------------------------------------------ write

    def put(self, message: ChatMessage) -> None:
        """Store a message at the end; what is due then leaves the window.

        Raises:
            InvalidMessage: it cannot be read; nothing was stored.
            AsyncOnly: the summarizer has to be awaited: use `aput`.
        """
        with named("aput"):
            self._session.append(self._codec.encode(message))

    async def aput(self, message: ChatMessage) -> None:
        """Async twin of `put`."""
        await self._session.aappend(self._codec.encode(message))

    def put_messages(self, messages: Sequence[ChatMessage]) -> None:
        """Store messages at the end, all or none; an empty list changes nothing.

        Raises:
            InvalidMessage: one of them cannot be read; nothing was stored.
            AsyncOnly: the summarizer has to be awaited: use `aput_messages`.
        """
        with named("aput_messages"):
            self._session.append(self._codec.encode_all(messages))

    async def aput_messages(self, messages: Sequence[ChatMessage]) -> None:
        """Async twin of `put_messages`."""
        await self._session.aappend(self._codec.encode_all(messages))

    def set(self, messages: Sequence[ChatMessage]) -> None:
        """Make a list the conversation; an empty one ends it.

        A list that goes on from what is stored, or is the end of it, keeps the archive of what came before; one
        that differs keeps it up to the difference; one that shares nothing begins anew. System messages at its head
        take the place of those that are stored.

        Raises:
            InvalidMessage: one of the messages cannot be read; nothing has changed.
            AsyncOnly: the summarizer has to be awaited: use `aset`.
        """
        with named("aset"):
            self._session.reconcile(self._codec.encode_all(messages), replace=True)

    async def aset(self, messages: Sequence[ChatMessage]) -> None:
        """Async twin of `set`."""
        await self._session.areconcile(self._codec.encode_all(messages), replace=True)

    def reset(self) -> None:
        """Delete the conversation for good: messages, archive, pins."""
        self._session.clear()
        self._codec.forget()

    async def areset(self) -> None:
        """Async twin of `reset`."""
        await self._session.aclear()
        self._codec.forget()

    # ------------------------------------------------------------------ written down

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """The memory with its conversation as JSON; without functions, models and stores."""
        without = left_out(summarizer=self.summarizer, embeddings=self.embeddings, redact=self.redact)
        return {**super().to_dict(**kwargs), "left_out": without, "session": self._session.export()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], **kwargs: Any) -> SlidingChatMemoryBuffer:
        """The memory of `to_dict`'s object, which is not changed.

        Args:
            data: the object; or what `to_dict` gave of a ChatMemoryBuffer or a ChatSummaryMemoryBuffer, of which
                this memory takes over limit, key and messages.
            **kwargs: what it does not hold (`tokenizer_fn`, `summarizer`, `embeddings`, `redact`, stores,
                `on_event`), or holds otherwise. A model that wrote the archive is LlamaIndex's `Settings.llm` when
                none is given.

        Raises:
            InvalidExport: it cannot be read.
        """
        saved = read(data, kwargs)
        memory = cls(**{**saved.fields, **kwargs})
        if saved.session is not None:
            memory.restore(saved.session)
        for key, messages in saved.histories.items():
            memory.chat_store.set_messages(key, messages)
        return memory

    def to_string(self) -> str:
        """The memory with its conversation as JSON text."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_string(cls, json_str: str, **kwargs: Any) -> SlidingChatMemoryBuffer:
        """The memory of `to_string`'s text; see `from_dict`."""
        return cls.from_dict(cast("Mapping[str, Any]", parsed(json_str)), **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        functions = {"summarizer": self.summarizer, "redact": self.redact, "on_event": self.on_event}
        kept = {name: value for name, value in functions.items() if isfunction(value) and _picklable(value)}
        return {"memory": self.to_dict(), "given": {"tokenizer_fn": _picklable(self.tokenizer_fn), **kept}}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        saved = read(state["memory"], state["given"])
        self.__init__(**{**saved.fields, **state["given"]})  # type: ignore[misc]  # as BaseComponent does
        self.restore(saved.session or {})

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> SlidingChatMemoryBuffer:
        again = {name: getattr(self, name) for name in type(self).model_fields if name not in _HOMES}
        given = None if self.chat_store is self._own else copy.deepcopy(self.chat_store, memo)
        copied = type(self)(**again, chat_store=given)
        copied.restore(self._session.export())
        return copied

    def restore(self, session: Mapping[str, Any]) -> None:
        """Put a conversation, as `session.export()` gives it, in the place of what is there."""
        self._memory.restore(session, self.chat_store_key, replace=True)


def _picklable(function: Tokenizer) -> Tokenizer | None:
    """A function where it can be pickled; of a tokenizer None means LlamaIndex's own.

    Models are not tried: LlamaIndex deletes what cannot be pickled from the model itself.
    """
    try:
        pickle.dumps(function)
    except Exception:  # noqa: BLE001  # a lambda, a tokenizer with a lock: each raises its own error
        return None
    return function
