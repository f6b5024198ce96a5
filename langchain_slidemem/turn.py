"""Decides what one run of a runnable with memory is given, and what of it is stored.

Input and answer are stored together. A message that stands at the transcript's end without an answer and is said
again is a second try, and stands once.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, cast

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda, ensure_config
from langchain_core.runnables.utils import ConfigurableFieldSpec

from langchain_slidemem.foreign import session_id_of
from langchain_slidemem.handed import after
from langchain_slidemem.heard import Heard
from langchain_slidemem.history import SlidingChatMessageHistory
from langchain_slidemem.said import CODEC, answered, asked, decoded, neutral
from langchain_slidemem.surely import surely
from langchain_slidemem.usage import report
from slidemem import ConfigurationError, Context, Mark, Message, Part, SlideMem

Memory = SlideMem | Callable[..., SlidingChatMessageHistory]

_LOG: Final = logging.getLogger("langchain_slidemem")


@dataclass(frozen=True, slots=True)
class Keys:
    """Where a runnable's dicts have messages; None where it takes or returns none.

    Attributes:
        input: what is asked.
        output: the answer.
        history: what is remembered.
    """

    input: str | None = None
    output: str | None = None
    history: str | None = None


class Turn:
    """One run: what it is given, what is heard of its answer, and both stored.

    Args:
        history: of the session.
        keys: of the runnable.
        save_on_error: whether what was asked is kept when the run fails.
    """

    def __init__(self, history: SlidingChatMessageHistory, keys: Keys, *, save_on_error: bool) -> None:
        self._history = history
        self._keys = keys
        self._save_on_error = save_on_error
        self._asked: list[BaseMessage] = []
        self._pending: list[Message] = []
        self._given: list[Message] = []
        self._is_again = False
        self._heard = Heard(keys.output)
        self._answer: list[BaseMessage] = []
        self.loading = RunnableLambda(self.load, self.aload).with_config(run_name="load_history")

    # -------------------------------------------------------------- before the run

    def load(self, value: Any) -> Any:
        """The runnable's input: the caller's, with what is remembered."""
        pending = self._begin(value)
        context = self._history.session.context(pending)
        return self._filled(value, context, pending)

    async def aload(self, value: Any) -> Any:
        """Async twin of `load`."""
        pending = self._begin(value)
        context = await self._history.session.acontext(pending)
        return self._filled(value, context, pending)

    def _begin(self, value: Any) -> list[Message]:
        """What is asked as it is sent: mended, and clamped as it will be shown later, so that its bytes stay."""
        _check_dict(value, self._keys.input)
        self._asked = asked(value, self._keys.input)
        self._pending = neutral(self._history.codec, self._asked)
        return list(self._history.session.shown(self._pending))

    def _filled(self, value: Any, context: Context, pending: list[Message]) -> Any:
        window = list(context.messages)
        self._is_again = _ends_with(window, self._pending)
        if self._is_again:
            window = _without_end(window, len(pending), context.head)
        given = value if self._keys.input is None else value[self._keys.input]
        window, pending = self._alternating(window, pending, given)
        self._given = [*window, *pending]
        remembered, sent = decoded(window), self._sent(pending)
        if self._keys.history is not None:
            same = all(one is came for one, came in zip(sent, self._asked, strict=True))
            own = {} if same else {self._keys.input: _in_form(given, sent, pending)}
            return {**value, **own, self._keys.history: remembered}
        messages = [*remembered, *sent]
        return messages if self._keys.input is None else {**value, self._keys.input: messages}

    def _alternating(
        self, window: list[Message], pending: list[Message], given: object
    ) -> tuple[list[Message], list[Message]]:
        """Window and pending messages, what would be equal neighbours as one where the memory alternates.

        A picture cannot be joined to an input that is plain text; then they stay neighbours.
        """
        whole = list(self._history.session.shown(self._pending, after=window[-1])) if window else pending
        is_joined = whole[:1] != pending[:1]
        fits = not isinstance(given, str) or all(part.kind == "text" for one in whole[:1] for part in one.parts)
        return (window[:-1], whole) if is_joined and fits else (window, pending)

    def _sent(self, pending: Sequence[Message]) -> list[BaseMessage]:
        """What is asked as LangChain's messages; those that did not change are the caller's own."""
        return [
            came if one.mark is None else CODEC.decode(one) for one, came in zip(pending, self._asked, strict=True)
        ]

    # -------------------------------------------------------------- its answer

    def hear(self, chunk: Any) -> None:
        """Take the answer, or the next chunk of it."""
        self._heard.take(chunk)

    def finish(self) -> None:
        """Look at the whole answer, so that it can be stored.

        Raises:
            ConfigurationError: it holds no messages.
            InvalidMessage: one of them cannot be stored.
        """
        self._answer = self._answered()
        report(self._history.session, self._answer, self._given)

    # -------------------------------------------------------------- after the run

    def __enter__(self) -> Turn:  # noqa: PYI034  # it has no subclasses
        return self

    def __exit__(self, kind: object, fault: BaseException | None, trace: object) -> None:
        with _told(fault):
            self._history.add_messages(self._to_store(fault))

    async def __aenter__(self) -> Turn:  # noqa: PYI034  # the same
        return self

    async def __aexit__(self, kind: object, fault: BaseException | None, trace: object) -> None:
        with _told(fault):
            await surely(self._history.aadd_messages(self._to_store(fault)))

    def _to_store(self, fault: BaseException | None) -> list[BaseMessage]:
        """What was asked and answered; without the answer of a run that failed, the answer so far of one given up."""
        asked = [] if self._is_again else self._asked
        if fault is None:
            return [*asked, *self._answer]
        answer = [] if isinstance(fault, Exception) else self._so_far()
        return [*asked, *answer] if answer or self._save_on_error else []

    def _so_far(self) -> list[BaseMessage]:
        try:
            return self._answered()
        except ConfigurationError:  # nothing yet, or a dict whose answer is still to come
            return []

    def _answered(self) -> list[BaseMessage]:
        messages = answered(self._heard.value, self._keys.output)
        return [messages[at] for at in after(neutral(self._history.codec, messages), self._given)]


def _in_form(given: object, sent: list[BaseMessage], pending: Sequence[Message]) -> Any:
    """What is sent in the form in which it was given: text, a message, or a list."""
    if isinstance(given, str):
        return pending[0].text
    return sent[0] if isinstance(given, BaseMessage) else sent


def _check_dict(value: object, key: str | None) -> None:
    """Refuse what is no dict where a key says that the chain takes one."""
    if key is not None and not isinstance(value, Mapping):
        raise ConfigurationError(
            f"the chain takes a dict with {key!r}, which input_messages_key names, got {value!r:.80}: "
            f'call with {{"{key}": ...}}'
        )


# ------------------------------------------------------------------ a second try


def _ends_with(window: Sequence[Message], pending: Sequence[Message]) -> bool:
    """Whether what is asked stands at the window's end already, unanswered."""
    end = window[len(window) - len(pending) :] if 0 < len(pending) <= len(window) else ()
    stored = [one.mark.of if one.mark else (one.digest,) for one in end]
    return bool(stored) and stored == [(one.digest,) for one in pending]


def _without_end(window: Sequence[Message], size: int, head: str) -> list[Message]:
    """The window without its last messages; a head that stood in the first of them stands by itself."""
    end = window[-size:]
    headed = any(one.mark is not None and "head" in one.mark.kinds for one in end)
    alone = Message("user", (Part("text", head),), mark=Mark(("head",)))
    return [*window[:-size], *([alone] if headed else [])]


@contextmanager
def _told(fault: BaseException | None) -> Generator[None]:
    """Log what storing raises where a run has failed: its own fault is the one that the caller hears of."""
    try:
        yield
    except Exception as second:
        if not isinstance(fault, Exception):
            raise
        _LOG.warning("what was asked could not be stored when its run failed: %s: %s", type(second).__name__, second)


# ------------------------------------------------------------------ whose turn it is


def check_memory(memory: object) -> None:
    """Raise a `ConfigurationError` for what is no memory."""
    if not isinstance(memory, SlideMem) and not callable(memory):
        raise ConfigurationError(
            f"memory must be a SlideMem, or a function that returns a SlidingChatMessageHistory; got {memory!r:.80}"
        )


def history_of(
    memory: Memory, specs: Sequence[ConfigurableFieldSpec], config: RunnableConfig | None
) -> SlidingChatMessageHistory:
    """The history of the session that a configuration names.

    Raises:
        ConfigurationError: it names none, or the factory returned something else.
    """
    found = _named(specs, config)
    if isinstance(memory, SlideMem):
        return SlidingChatMessageHistory(session_id_of(found), memory=memory)
    history: object = _called(memory, found)
    if not isinstance(history, SlidingChatMessageHistory):
        instead = "wrap a factory of other histories with SlidingChatMessageHistory.over(...)"
        if inspect.iscoroutine(history):
            history.close()
            instead = "make it a function that is not async"
        raise ConfigurationError(
            f"memory must return a SlidingChatMessageHistory, got {type(history).__name__}: {instead}"
        )
    return history


def _named(specs: Sequence[ConfigurableFieldSpec], config: RunnableConfig | None) -> dict[str, Any]:
    configurable = cast("Mapping[str, Any]", ensure_config(config).get("configurable", {}))
    ids = [spec.id for spec in specs]
    missing = [id_ for id_ in ids if configurable.get(id_) is None]
    if missing:
        example = ", ".join(f'"{id_}": "..."' for id_ in ids)
        raise ConfigurationError(
            f"the configuration does not name a session (missing: {', '.join(missing)}): "
            f'call with {{"configurable": {{{example}}}}}'
        )
    return {id_: configurable[id_] for id_ in ids}


def _called(factory: Callable[..., object], named: Mapping[str, Any]) -> object:
    """What a factory returns, called as LangChain calls it."""
    if not inspect.signature(factory).parameters:
        return factory()
    return factory(*named.values()) if len(named) == 1 else factory(**named)
