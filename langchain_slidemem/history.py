"""Decides how a session of a memory is a LangChain chat message history.

What LangChain reads is what a model is to see now; what it adds goes into the transcript, which keeps everything.
How a run of `RunnableWithMessageHistory` reads and adds is `runs.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, get_buffer_string

from langchain_slidemem import foreign
from langchain_slidemem.configured import memory_of
from langchain_slidemem.counting import Counting
from langchain_slidemem.foreign import Histories, HistoryLog
from langchain_slidemem.runs import Moment, Runs, moment
from langchain_slidemem.said import CODEC, Said, decoded, encoded, neutral
from langchain_slidemem.usage import report, reported
from slidemem import (
    ConfigurationError,
    Context,
    ConversationMemory,
    InvalidMessage,
    Message,
    Receipt,
    SlideMem,
    Zones,
)

if TYPE_CHECKING:
    from langchain_core.chat_history import BaseChatMessageHistory
else:
    try:
        from langchain_core.chat_history import BaseChatMessageHistory
    except ImportError:  # langchain-core 2.0 announces to be without it
        BaseChatMessageHistory = object


_NOT_OVER: Final = {
    "store": "pass what else there is to keep with records=, and leave out store",
    "transcript": "leave out transcript",
    "memory": "pass the options of the memory themselves, and leave out memory",
}


@dataclass(frozen=True, slots=True)
class ChatContext:
    """What a model is to see now.

    Attributes:
        messages: what to send, in order.
        costs: tokens of each of them.
        tokens: of them together.
        zones: the same by zone.
        receipt: what the list is made of, and what it leaves out.
    """

    messages: list[BaseMessage]
    costs: tuple[int, ...]
    tokens: int
    zones: Zones
    receipt: Receipt

    @classmethod
    def of(cls, context: Context) -> ChatContext:
        """The core's context in LangChain's messages."""
        return cls(decoded(context.messages), context.costs, context.tokens, context.zones, context.receipt)


class SlidingChatMessageHistory(BaseChatMessageHistory):
    """A chat message history that never outgrows its token budget, and loses nothing.

    `messages` is the part that fits: the archive of old turns at the head of the first message shown, then the
    newest turns. `transcript` is everything ever said. Two objects with one session id are one conversation: make
    one for each run, as `lambda session_id: SlidingChatMessageHistory(session_id, max_tokens=4000)` does.

    Sessions live in one store of this process, and end with it, unless `store` (or `memory`) says otherwise;
    that is logged once.

    Args:
        session_id: any text that is not empty.
        max_tokens: budget of what `messages` returns, in tokens; left out, three quarters of what `llm` takes in.
        memory: a configured `SlideMem`, in the place of everything that follows.
        llm: a chat model, which sizes (see `max_tokens`) and, where it can, counts.
        summarizer: what writes the archive: a chat model or runnable, a function of a list of messages that
            returns text, sync or async, or a `Consolidator`. None keeps sentences of the conversation itself.
        token_counter: as `trim_messages` takes it: a function of a list of messages or of one message, a model,
            or `"approximate"`.
        metadata: short facts about the session, shown in front of the archive.
        **options: of `SlideMem`: `store`, `reserve_tokens`, `mode`, and so on.

    Attributes:
        codec: reads its messages.

    Raises:
        ConfigurationError: an argument is wrong, or `max_tokens` is missing and cannot be had from `llm`.
    """

    def __init__(  # noqa: PLR0913  # each is named by its caller, and has a default but one
        self,
        session_id: str,
        *,
        max_tokens: int | None = None,
        memory: SlideMem | None = None,
        llm: object = None,
        summarizer: object = None,
        token_counter: Counting | None = None,
        metadata: dict[str, object] | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        resolved = memory_of(
            max_tokens=max_tokens,
            memory=memory,
            llm=llm,
            summarizer=summarizer,
            token_counter=token_counter,
            options=options,
        )
        self._chat = resolved.session(session_id, metadata=metadata)
        self._runs = Runs()
        self._handed: tuple[Message, ...] = ()
        self._home: Histories | None = None
        self.codec = CODEC

    @classmethod
    def over(
        cls,
        get_session_history: Callable[..., BaseChatMessageHistory],
        *,
        max_tokens: int | None = None,
        records: Any = None,
        llm: object = None,
        summarizer: object = None,
        token_counter: Counting | None = None,
        **options: Any,
    ) -> Callable[..., SlidingChatMessageHistory]:
        """A factory of histories that keep their transcript in those of another factory.

        The other history is read whole, appended to and cleared, never rewritten; only what a model sees is
        bounded. What is remembered of it (boundary, archive, pins) lives in `records`. Without them it lives in
        this process: after a restart the whole transcript is live again, so that what fits of it is shown, and
        the next turn consolidates the rest anew, with a model in one long summary.

        Args:
            get_session_history: the factory, with any parameters; it is called once for each history.
            max_tokens: as above; so are `llm`, `summarizer`, `token_counter` and `options`.
            records: a store's URL or a `Records`, one for all sessions.
            llm: as above.
            summarizer: as above.
            token_counter: as above.
            **options: as above.

        Returns:
            A factory with the parameters of the other one.

        Raises:
            ConfigurationError: an option is wrong, or has no meaning here.
        """
        for name, instead in _NOT_OVER.items():
            if name in options:
                raise ConfigurationError(f"over() keeps the messages in your own histories: {instead}")
        homes = Histories(get_session_history)
        memory = memory_of(
            max_tokens=max_tokens,
            memory=None,
            llm=llm,
            summarizer=summarizer,
            token_counter=token_counter,
            options={"transcript": HistoryLog(homes), "records": records, **options},
        )

        @wraps(get_session_history)
        def get(*args: Any, **kwargs: Any) -> SlidingChatMessageHistory:
            history = cls(homes.open(*args, **kwargs), memory=memory)
            history._home, history.codec = homes, foreign.CODEC
            return history

        return get

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_id!r:.80})"

    def _repr_html_(self) -> str:
        return self._chat.to_html()

    def __str__(self) -> str:
        """What a model is to see now, as text."""
        return get_buffer_string(self.messages)

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._chat.session_id

    @property
    def session(self) -> ConversationMemory:
        """The core's session: pins, consolidation, statistics, export."""
        return self._chat

    # -------------------------------------------------------------- what LangChain calls

    @property  # LangChain allows an attribute or a property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        """What a model is to see now: a new list, within the budget.

        Raises:
            BudgetTooSmall: not even the newest message, clamped to its marks, fits.
        """
        at = moment()
        return decoded(self._runs.ending() if at == "end" else self._given(at, self._chat.context()))

    async def aget_messages(self) -> list[BaseMessage]:
        """Async twin of `messages`."""
        at = moment()
        return decoded(self._runs.ending() if at == "end" else self._given(at, await self._chat.acontext()))

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages at the end, all or none, without those of a run that were handed to it.

        Raises:
            InvalidMessage: one of them cannot be stored; nothing was.
            OversizeMessage: one is too large and `oversize="raise"`; nothing was stored.
            AsyncOnly: store or summariser have to be awaited.
        """
        with self._storing(messages, moment()) as new:
            self._chat.append(new)

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Async twin of `add_messages`."""
        with self._storing(messages, moment()) as new:
            await self._chat.aappend(new)

    def clear(self) -> None:
        """Delete the session for good: transcript, archive, pins."""
        self._chat.clear()

    async def aclear(self) -> None:
        """Async twin of `clear`."""
        await self._chat.aclear()

    def add_message(self, message: BaseMessage) -> None:
        """Store one message; see `add_messages`."""
        self.add_messages([message])

    def add_user_message(self, message: HumanMessage | str) -> None:
        """Store what the user said."""
        self.add_message(HumanMessage(message) if isinstance(message, str) else message)

    def add_ai_message(self, message: AIMessage | str) -> None:
        """Store what the model answered."""
        self.add_message(AIMessage(message) if isinstance(message, str) else message)

    # -------------------------------------------------------------- what there is besides

    @property
    def transcript(self) -> list[BaseMessage]:
        """Everything ever said, as it came, in order: for a user interface."""
        return decoded(self._chat.transcript())

    async def aget_transcript(self) -> list[BaseMessage]:
        """Async twin of `transcript`."""
        return decoded(await self._chat.atranscript())

    def context(self, pending: Said | None = None, *, system: Said | None = None, reserve: int = 0) -> ChatContext:
        """What a model is to see now, with its tokens by zone and the receipt.

        Args:
            pending: messages about to be sent but not stored yet: counted, not returned.
            system: text or messages shown first.
            reserve: tokens kept free besides.

        Raises:
            BudgetTooSmall: not even the newest message, clamped to its marks, fits.
        """
        prompt = encoded(system, SystemMessage)
        return ChatContext.of(self._chat.context(encoded(pending), system=prompt, reserve=reserve))

    async def acontext(
        self, pending: Said | None = None, *, system: Said | None = None, reserve: int = 0
    ) -> ChatContext:
        """Async twin of `context`."""
        prompt = encoded(system, SystemMessage)
        return ChatContext.of(await self._chat.acontext(encoded(pending), system=prompt, reserve=reserve))

    # -------------------------------------------------------------- runs

    def _given(self, at: Moment | None, context: Context) -> tuple[Message, ...]:
        """The messages of a context, remembered where a run begins with them."""
        if at == "begin":
            self._runs.begin(context.messages)
        self._handed = context.messages
        return context.messages

    @contextmanager
    def _storing(self, messages: Sequence[BaseMessage], at: Moment | None) -> Generator[list[Message]]:
        """What is new of messages, while it is stored."""
        read = neutral(self.codec, _listed(messages))
        if self._handed and reported(messages):  # of the prompt that was read last, and of no later one
            report(self._chat, messages, self._handed)
            self._handed = ()
        places = range(len(read)) if at is None else self._runs.end(read, partial(_are_one, messages))
        with self._home.receiving([(read[n], messages[n]) for n in places]) if self._home else nullcontext():
            yield [read[n] for n in places]


def _listed(messages: object) -> Sequence[BaseMessage]:
    if isinstance(messages, (str, BaseMessage)) or not isinstance(messages, Sequence):
        raise InvalidMessage(
            f"add_messages takes a list of messages, got {type(messages).__name__}; "
            "one message goes through add_message, text through add_user_message or add_ai_message"
        )
    return cast("Sequence[BaseMessage]", messages)


def _are_one(messages: Sequence[BaseMessage], one: int, other: int) -> bool:
    first, second = messages[one], messages[other]
    return first is second or (first.id is not None and first.id == second.id)
