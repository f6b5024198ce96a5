"""LangChain's memories behind the protocol: `trim_messages`, the classic buffer, the middleware, langmem."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4

from langchain.agents.middleware import SummarizationMiddleware
from langchain_classic.memory import ConversationSummaryBufferMemory
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    convert_to_messages,
    convert_to_openai_messages,
    trim_messages,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph.message import add_messages
from pydantic import ConfigDict, PrivateAttr
from speech import Said

from peers.counting import Counter
from peers.protocol import Memory, Setting

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it imports from where langgraph has moved on
    from langmem.short_term import RunningSummary, summarize_messages

AHEAD: Final = 3  # budgets of the newest messages that `trim_messages` is given; the older ones it drops in any case


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the deprecations that the classic memories, and langmem's imports, announce at each call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class Model(BaseChatModel):
    """A chat model that is a script, and counts as everything else here does."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    setting: Any
    _costs: Costs = PrivateAttr()

    def model_post_init(self, _: Any) -> None:
        """Make the counter."""
        self._costs = Costs(self.setting.count)

    @property
    def _llm_type(self) -> str:
        return "script"

    def _generate(self, messages: list[BaseMessage], *given: Any, **more: Any) -> ChatResult:  # noqa: ARG002
        answer = self.setting.script("\n".join(message.text for message in messages))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(answer))])

    def get_num_tokens_from_messages(self, messages: list[BaseMessage], tools: Any = None) -> int:  # noqa: ARG002
        """Tokens of messages."""
        return self._costs(messages)


class Costs:
    """The benchmark's counter as LangChain takes it: of a list of messages."""

    def __init__(self, count: Counter) -> None:
        self._count = count

    def __call__(self, messages: Any) -> int:
        """Tokens of messages."""
        return sum(self._count(self._text(message)) for message in messages)

    def _text(self, message: BaseMessage) -> str:
        calls = getattr(message, "tool_calls", None)
        if not calls:
            return message.text
        wire = convert_to_openai_messages(message)
        called = [call["function"] for call in wire["tool_calls"]]
        return message.text + "".join(f" {call['name']} {call['arguments']}" for call in called)


def read(said: Said) -> BaseMessage:
    """A message of LangChain, with an id, as a graph's state gives it one."""
    (message,) = convert_to_messages([{**said, "content": said["content"] or ""}])
    return message.model_copy(update={"id": str(uuid4())})


def written(messages: Sequence[BaseMessage]) -> list[Said]:
    """Messages in OpenAI format."""
    return list(convert_to_openai_messages(list(messages)))


class Trimmed(Memory):
    """A list of messages, trimmed for each prompt as LangChain's page on short-term memory shows."""

    def __init__(self, setting: Setting) -> None:
        self._count = Costs(setting.count)
        self._own = setting.count
        self._budget = setting.budget
        self._log: list[BaseMessage] = []
        self._ends: list[int] = [0]

    def add(self, said: Said) -> None:
        """Keep it."""
        self._log.append(read(said))
        self._ends.append(self._ends[-1] + self._own.said(said))

    def fill(self, messages: Sequence[Said]) -> None:
        """Keep them."""
        for one in messages:
            self.add(one)

    def prompt(self) -> list[Said]:
        """What is left of the list."""
        return self.trimmed(self._log[self._far() :])

    def ask(self, question: str) -> list[Said]:
        """The same with a question at the end."""
        return self.trimmed([*self._log[self._far() :], read({"role": "user", "content": question})])

    def trimmed(self, messages: list[BaseMessage]) -> list[Said]:
        """What is left of messages."""
        cut = trim_messages(
            messages,
            strategy="last",
            token_counter=self._count,
            max_tokens=self._budget,
            start_on="human",
            end_on=("human", "tool"),
            include_system=True,
        )
        return written(cut)

    def _far(self) -> int:
        """Where the newest messages of several budgets begin."""
        at, far = len(self._log), self._ends[-1] - AHEAD * self._budget
        while at and self._ends[at] > far:
            at -= 1
        return at

    def held(self) -> list[str]:
        """The list keeps everything."""
        return [message.text for message in self._log]


class UntouchedTrimmed(Trimmed):
    """The same given its whole list, for times and counts."""

    def _far(self) -> int:
        return 0


class SummaryBuffer(Memory):
    """`ConversationSummaryBufferMemory` as a chain drives it: a turn is stored once it is answered."""

    def __init__(self, setting: Setting) -> None:
        with _quiet():
            self._memory = ConversationSummaryBufferMemory(
                llm=Model(setting=setting), max_token_limit=setting.budget, return_messages=True
            )
        self._open: list[Said] = []

    def add(self, said: Said) -> None:
        """Keep it in the open turn; an answer ends that."""
        self._open.append(said)
        if said["role"] == "assistant" and not said.get("tool_calls"):
            first, self._open = self._open[0], []
            with _quiet():
                self._memory.save_context({"input": first["content"]}, {"output": said["content"]})

    def prompt(self) -> list[Said]:
        """Summary, buffer, and the open turn."""
        return [*written(self._memory.load_memory_variables({})["history"]), *self._open]

    def held(self) -> list[str]:
        """Buffer and summary."""
        kept = [message.text for message in self._memory.chat_memory.messages]
        return [*kept, self._memory.moving_summary_buffer, *(str(one["content"]) for one in self._open)]


class Middleware(Memory):
    """`SummarizationMiddleware` over a graph's state, called as `create_agent` calls it."""

    def __init__(self, setting: Setting) -> None:
        self._middleware = SummarizationMiddleware(
            Model(setting=setting),
            trigger=("tokens", setting.budget),
            keep=("messages", 20),
            token_counter=Costs(setting.count),
        )
        self._state: list[BaseMessage] = []

    def add(self, said: Said) -> None:
        """Keep it in the state."""
        self._state.append(read(said))

    def prompt(self) -> list[Said]:
        """The state after the hook."""
        changed: Any = self._middleware.before_model({"messages": self._state}, None)  # type: ignore[arg-type]
        if changed:
            self._state = list(add_messages(self._state, changed["messages"]))  # type: ignore[arg-type]
        return written(self._state)

    def held(self) -> list[str]:
        """The state, its summary among it."""
        return [message.text for message in self._state]


class LangMem(Memory):
    """langmem's `summarize_messages`, as its guide calls it: the list stays, the running summary is carried along."""

    def __init__(self, setting: Setting) -> None:
        self._model = Model(setting=setting)
        self._count = Costs(setting.count)
        self._budget = setting.budget
        self._log: list[BaseMessage] = []
        self._running: RunningSummary | None = None

    def add(self, said: Said) -> None:
        """Keep it."""
        self._log.append(read(said))

    def prompt(self) -> list[Said]:
        """Summary and what is not summarised."""
        with _quiet():
            made = summarize_messages(
                list(self._log),
                running_summary=self._running,
                model=self._model,
                max_tokens=self._budget,
                token_counter=self._count,
            )
        if made.running_summary:
            self._running = made.running_summary
        return written(made.messages)

    def held(self) -> list[str]:
        """The list keeps everything."""
        return [*(message.text for message in self._log), self._running.summary if self._running else ""]
