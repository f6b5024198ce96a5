"""Decides how the messages of a graph's state, with the record beside them, become what a model is to see.

The state keeps every message, and under one key the record: boundary, archive, pins. So a checkpointer stores both,
and a fork or an older checkpoint has the record of its own messages. What this process remembers of a thread are
counts, and only so that nothing is counted twice. Which hook does what is `middleware.py`'s and `graph.py`'s.
"""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Any, Final, cast

from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.runnables.config import ensure_config

from langchain_slidemem.codec import LangChainCodec
from langchain_slidemem.configured import made
from langchain_slidemem.said import neutral
from langchain_slidemem.usage import report
from slidemem import Carried, CarriedRecords, ConfigurationError, ConversationMemory, Mark, Message

KEY: Final = "slidemem"
"""The key of the state that holds the record."""

_CODEC: Final = LangChainCodec(lenient=True)
_REMEMBERED: Final = 64  # threads, and tools
_OF_THE_CALL: Final = Mark(("system",))
_RUN: Final = re.compile(r":[^|]*")
_NOT_HERE: Final = {
    "store": "the record lives in the graph's state, and its checkpointer keeps it",
    "transcript": "the graph's state has the messages",
    "records": "the record lives in the graph's state, and its checkpointer keeps it",
    "memory": "pass its options themselves",
}

Pair = tuple[BaseMessage, Message]


class StateMemory:
    """One configured memory for the states of a graph's threads.

    Args:
        max_tokens: budget of a request, in tokens.
        llm: a chat model, which sizes and counts.
        summarizer: what writes the archive.
        token_counter: as `trim_messages` takes it.
        metadata: short facts, shown in front of the archive.
        options: of `SlideMem`.

    Raises:
        ConfigurationError: an argument is wrong, or has no meaning here.
    """

    def __init__(
        self,
        *,
        max_tokens: int | None,
        llm: object,
        summarizer: object,
        token_counter: object,
        metadata: Mapping[str, object] | None,
        options: Mapping[str, Any],
    ) -> None:
        for name, reason in _NOT_HERE.items():
            if name in options:
                raise ConfigurationError(f"leave out {name}: {reason}")
        if options.get("mode", "inline") != "inline":
            raise ConfigurationError(
                f"mode={options['mode']!r} cannot work here: what runs behind a graph's back cannot write its state, "
                "so leave it out; summaries are written after the answer has been streamed"
            )
        self._carried = CarriedRecords()
        homes = {"transcript": self._carried, "records": self._carried}
        self.memory = made(max_tokens, llm, summarizer, token_counter, {**options, **homes})
        self.memory.session("x", metadata=metadata)  # raises now what it would raise later
        self._metadata = metadata
        self._read: OrderedDict[str, list[Pair]] = OrderedDict()
        self._told: dict[int, tuple[object, int]] = {}  # the object too, so that no id is used again
        self._lock = threading.Lock()

    @property
    def is_async(self) -> bool:
        """Whether the summariser has to be awaited."""
        return bool(getattr(self.memory.consolidator, "async_only", False))

    @contextmanager
    def opened(self, messages: Sequence[BaseMessage], state: Mapping[str, Any] | None) -> Generator[Opened]:
        """A state, for the time of a call.

        Raises:
            InvalidMessage: one of the messages cannot be read.
        """
        thread = thread_of_call()
        pairs = self._paired(thread, messages)
        with self._carried.carrying(Carried([one for _, one in pairs], state)) as carried:
            chat = self.memory.session(thread, metadata=self._metadata)
            yield Opened(chat, carried, {id(one): came for came, one in pairs})

    def tokens_of(self, thing: object, told: Callable[[object], object]) -> int:
        """Tokens of what a model is told of a tool or a format; each object is counted once."""
        if id(thing) not in self._told:
            if len(self._told) > _REMEMBERED:
                self._told.clear()
            text = json.dumps(told(thing), default=str)
            self._told[id(thing)] = (thing, self.memory.count({"role": "user", "content": text}))
        return self._told[id(thing)][1]

    def _paired(self, thread: str, messages: Sequence[BaseMessage]) -> list[Pair]:
        """Each message with the core's; one that is the same object as at the latest call is not read again."""
        with self._lock:
            known = self._read.get(thread, [])
        same = sum(1 for _ in takewhile(bool, (one[0] is new for one, new in zip(known, messages, strict=False))))
        read = [*known[:same], *zip(messages[same:], neutral(_CODEC, messages[same:]), strict=True)]
        with self._lock:
            self._read[thread] = read
            self._read.move_to_end(thread)
            if len(self._read) > _REMEMBERED:
                self._read.popitem(last=False)
        return read


class Opened:
    """A state that is worked with.

    Attributes:
        chat: the core's session over it.
    """

    def __init__(self, chat: ConversationMemory, carried: Carried, came: Mapping[int, BaseMessage]) -> None:
        self.chat = chat
        self._carried = carried
        self._came = came
        self._sent: Sequence[Message] = ()

    @property
    def presses(self) -> bool:
        """Whether the window is past its limit, so that a summary cannot wait for the end of the turn."""
        plan = self.chat.plan()
        return plan.window_tokens > plan.limit

    @property
    def update(self) -> dict[str, Any] | None:
        """What the graph is to write into its state; None for nothing."""
        state = self._carried.state
        return None if state is None else {KEY: state}

    def hear(self, answer: Sequence[BaseMessage], beside: int) -> None:
        """Tell the memory what an answer reports of the prompt that was shown last.

        Args:
            answer: of the model.
            beside: tokens of the tools and the rest that were sent with it.
        """
        report(self.chat, answer, self._sent, beside)

    def shown(self, system: SystemMessage | None = None, reserve: int = 0) -> list[BaseMessage]:
        """What a model is to see, within the budget together with a system message; that is left out.

        Raises:
            BudgetTooSmall: not even the newest message, clamped to its marks, fits.
        """
        prompt = [] if system is None else neutral(_CODEC, [system])
        context = self.chat.context(system=prompt, reserve=reserve)
        self._sent = context.messages
        shown = [one for one in context.messages if one.mark != _OF_THE_CALL]
        return [self._came.get(id(one)) or _CODEC.decode(one) for one in shown]


def requested(messages: Sequence[BaseMessage], state: Mapping[str, Any]) -> Sequence[BaseMessage]:
    """A request's messages behind those of the state that are archived, where somebody has changed the request."""
    stored = cast("Sequence[BaseMessage]", state["messages"])
    carried = cast("Mapping[str, Any]", state.get(KEY) or {"record": {"boundary": 0}, "gone": 0})
    boundary: int = carried["record"]["boundary"] - carried["gone"]
    if messages is stored or not 0 < boundary < len(stored):
        return messages
    first = next((at for at, one in enumerate(messages) if one.id == stored[boundary].id), None)
    return messages if first is None else [*stored[:boundary], *messages[first:]]


def thread_of_call() -> str:
    """The thread and the graph that a call belongs to, for what is remembered of them."""
    named = cast("Mapping[str, Any]", ensure_config().get("configurable", {}))
    graph = str(named.get("checkpoint_ns", "")).rpartition("|")[0]  # without the node
    return f"thread {named.get('thread_id', '')}/{_RUN.sub('', graph)}"
