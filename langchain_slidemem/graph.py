"""Decides how a plain graph's model node gets what fits: nodes before the model, and at the end of a run.

The one before gives `llm_input_messages` for the model, and is a `pre_model_hook` as well; the one at the end writes
what is due of old turns when the answer is there. Both keep the record in the state beside the messages, which stay
as they are. What a state means for the memory is `state.py`'s.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, TypeAlias, cast

from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableLambda
from typing_extensions import TypedDict

from langchain_slidemem.counting import Counting
from langchain_slidemem.state import KEY, Opened, StateMemory, thread_of_call
from slidemem import ConfigurationError

_REMEMBERED: Final = 64  # threads
Node: TypeAlias = Runnable[Any, dict[str, Any]]


class SlidingState(TypedDict, total=False):
    """What the state of a graph has besides its messages: `class State(MessagesState, SlidingState)`.

    Attributes:
        llm_input_messages: what the model is to see.
        slidemem: the record of the messages; None at first.
    """

    llm_input_messages: list[BaseMessage]
    slidemem: dict[str, Any] | None


class SlidingMemoryNodes:
    """Two nodes of a graph that share one memory: `before_model`, and `after_agent` of a run.

    The state needs the channels of `SlidingState`. Without `slidemem` among them (as in `create_react_agent` without
    a `state_schema`) the record is kept in this process alone, and made anew after a restart.

    Args:
        max_tokens: budget of `llm_input_messages`, in tokens; left out, three quarters of what `llm` takes in.
        summarizer: what writes the archive, as for the middleware.
        llm: a chat model, which sizes and, where it can, counts.
        token_counter: as `trim_messages` takes it.
        metadata: short facts, shown in front of the archive.
        system: the system prompt that the model's node adds by itself: counted, not returned.
        messages_key: where the state has its messages.
        **options: of `SlideMem`: `reserve_tokens` for tools and answer, and so on.

    Attributes:
        before_model: gives `llm_input_messages`, never empty where the state's messages are not. Old turns are
            summarised here when the window is past its limit, so that nothing overflows without the other node.
        after_agent: summarises what is due, after the answer, so that the next run seldom waits for a summary; it may
            stand behind each model call too (a `post_model_hook`).

    Raises:
        ConfigurationError: an argument is wrong, or has no meaning here.
    """

    def __init__(  # noqa: PLR0913  # each is named by its caller, and has a default
        self,
        *,
        max_tokens: int | None = None,
        summarizer: object = None,
        llm: object = None,
        token_counter: Counting | None = None,
        metadata: Mapping[str, object] | None = None,
        system: str | SystemMessage | None = None,
        messages_key: str = "messages",
        **options: Any,
    ) -> None:
        self._memory = StateMemory(
            max_tokens=max_tokens,
            llm=llm,
            summarizer=summarizer,
            token_counter=token_counter,
            metadata=metadata,
            options=options,
        )
        self._key = messages_key
        self._prompt = SystemMessage(system) if isinstance(system, str) else system
        self._kept: OrderedDict[str, Any] = OrderedDict()  # for graphs whose state has no channel for it
        self.before_model: Node = RunnableLambda(self._fit, self._afit, name="sliding_memory")
        self.after_agent: Node = RunnableLambda(self._write, self._awrite, name="sliding_memory_summary")

    def _fit(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """What the model is to see, and the record where it changes."""
        self._check_sync()
        with self._opened(state) as opened:
            if opened.presses:
                opened.chat.consolidate()
            return {"llm_input_messages": self._shown(opened, state), **self._record(opened)}

    async def _afit(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Async twin of `_fit`."""
        with self._opened(state) as opened:
            if opened.presses:
                await opened.chat.aconsolidate()
            return {"llm_input_messages": self._shown(opened, state), **self._record(opened)}

    def _write(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """The record, where something was due."""
        self._check_sync()
        with self._opened(state) as opened:
            opened.chat.consolidate()
            return self._record(opened)

    async def _awrite(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Async twin of `_write`."""
        with self._opened(state) as opened:
            await opened.chat.aconsolidate()
            return self._record(opened)

    def _opened(self, state: Mapping[str, Any]) -> AbstractContextManager[Opened]:
        return self._memory.opened(_listed(state, self._key), state.get(KEY) or self._kept.get(thread_of_call()))

    def _shown(self, opened: Opened, state: Mapping[str, Any]) -> list[BaseMessage]:
        return opened.shown(self._prompt) or list(state[self._key])

    def _record(self, opened: Opened) -> dict[str, Any]:
        """The update of the state; remembered here too, since the state may have no place for it."""
        update = opened.update or {}
        if update:
            self._kept[thread_of_call()] = update[KEY]
            while len(self._kept) > _REMEMBERED:
                self._kept.popitem(last=False)
        return update

    def _check_sync(self) -> None:
        if self._memory.is_async:
            raise ConfigurationError("the summarizer has to be awaited: run the graph with ainvoke or astream")


def sliding_pre_model_hook(**options: Any) -> Node:
    """A `pre_model_hook`, or a node in front of a model: the state's messages as the budget allows.

    Args:
        **options: of `SlidingMemoryNodes`, whose `before_model` this is.

    Raises:
        ConfigurationError: an argument is wrong, or has no meaning here.
    """
    return SlidingMemoryNodes(**options).before_model


def _listed(state: Mapping[str, Any], key: str) -> Sequence[BaseMessage]:
    """The state's messages.

    Raises:
        ConfigurationError: it has none.
    """
    if key not in state:
        raise ConfigurationError(f"the state has no {key!r} (its keys: {', '.join(state)}): pass messages_key")
    return cast("Sequence[BaseMessage]", state[key])
