"""Decides how a plain graph's model node gets what fits: a hook before the model, which is a node as well.

It gives `llm_input_messages` for the model and keeps the record in the state beside the messages, which stay as they
are. What a state means for the memory is `state.py`'s.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableLambda
from typing_extensions import TypedDict

from langchain_slidemem.counting import Counting
from langchain_slidemem.state import KEY, Opened, StateMemory, thread_of_call
from slidemem import ConfigurationError

_REMEMBERED: Final = 64  # threads


class SlidingState(TypedDict, total=False):
    """What the state of a graph has besides its messages: `class State(MessagesState, SlidingState)`.

    Attributes:
        llm_input_messages: what the model is to see.
        slidemem: the record of the messages; None at first.
    """

    llm_input_messages: list[BaseMessage]
    slidemem: dict[str, Any] | None


def sliding_pre_model_hook(  # noqa: PLR0913  # each is named by its caller, and has a default
    *,
    max_tokens: int | None = None,
    summarizer: object = None,
    llm: object = None,
    token_counter: Counting | None = None,
    metadata: Mapping[str, object] | None = None,
    system: str | SystemMessage | None = None,
    messages_key: str = "messages",
    **options: Any,
) -> Runnable[Any, dict[str, Any]]:
    """A `pre_model_hook`, or a node in front of a model: the state's messages as the budget allows.

    The state needs the channels of `SlidingState`. Without `slidemem` among them (as in `create_react_agent` without
    a `state_schema`) the record is kept in this process alone, and made anew after a restart. Old turns are
    summarised when the window is past its limit. The list is never empty where the state's is not.

    Args:
        max_tokens: budget of `llm_input_messages`, in tokens; left out, three quarters of what `llm` takes in.
        summarizer: what writes the archive, as for the middleware.
        llm: a chat model, which sizes and, where it can, counts.
        token_counter: as `trim_messages` takes it.
        metadata: short facts, shown in front of the archive.
        system: the system prompt that the model's node adds by itself: counted, not returned.
        messages_key: where the state has its messages.
        **options: of `SlideMem`: `reserve_tokens` for tools and answer, and so on.

    Raises:
        ConfigurationError: an argument is wrong, or has no meaning here.
    """
    memory = StateMemory(
        max_tokens=max_tokens,
        llm=llm,
        summarizer=summarizer,
        token_counter=token_counter,
        metadata=metadata,
        options=options,
    )
    hook = _Hook(memory, messages_key, SystemMessage(system) if isinstance(system, str) else system)
    return RunnableLambda(hook.run, hook.arun, name="sliding_memory")


class _Hook:
    """What runs before a model.

    Args:
        memory: of the states.
        key: where a state has its messages.
        prompt: counted, not returned.
    """

    def __init__(self, memory: StateMemory, key: str, prompt: SystemMessage | None) -> None:
        self._memory = memory
        self._key = key
        self._prompt = prompt
        self._kept: OrderedDict[str, Any] = OrderedDict()  # for graphs whose state has no channel for it

    def run(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """The update of a state."""
        if self._memory.is_async:
            raise ConfigurationError("the summarizer has to be awaited: run the graph with ainvoke or astream")
        messages = _listed(state, self._key)
        with self._memory.opened(messages, self._record(state)) as opened:
            if opened.presses:
                opened.chat.consolidate()
            return self._update(opened, messages)

    async def arun(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Async twin of `run`."""
        messages = _listed(state, self._key)
        with self._memory.opened(messages, self._record(state)) as opened:
            if opened.presses:
                await opened.chat.aconsolidate()
            return self._update(opened, messages)

    def _record(self, state: Mapping[str, Any]) -> Any:
        return state.get(KEY) or self._kept.get(thread_of_call())

    def _update(self, opened: Opened, messages: Sequence[BaseMessage]) -> dict[str, Any]:
        update = opened.update or {}
        if update:
            self._kept[thread_of_call()] = update[KEY]
            while len(self._kept) > _REMEMBERED:
                self._kept.popitem(last=False)
        return {"llm_input_messages": opened.shown(self._prompt) or list(messages), **update}


def _listed(state: Mapping[str, Any], key: str) -> Sequence[BaseMessage]:
    """The state's messages.

    Raises:
        ConfigurationError: it has none.
    """
    if key not in state:
        raise ConfigurationError(f"the state has no {key!r} (its keys: {', '.join(state)}): pass messages_key")
    return cast("Sequence[BaseMessage]", state[key])
