"""Decides how an agent's requests are kept inside a budget, and when its old turns leave them.

Before each model call the request's messages become the context; the state keeps every message. What is written of
old turns is committed at the end of the run, when the answer has been streamed, or before a model call when the
window is past its limit, never in the call itself: what is written there is lost when the model raises, and done
again by each retry. What a state and a request mean for the memory is `state.py`'s.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, cast

from slidemem.errors import MissingExtra

if find_spec("langchain") is None:
    raise MissingExtra("langchain_slidemem.middleware", "langchain-agents")

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest
from langchain.agents.middleware.types import ModelCallResult, ModelResponse, PrivateStateAttr
from langchain.agents.structured_output import AutoStrategy, ToolStrategy
from langchain_core.utils.function_calling import convert_to_openai_tool
from typing_extensions import NotRequired

from langchain_slidemem.counting import Counting
from langchain_slidemem.state import KEY, Opened, StateMemory, requested
from slidemem import ConfigurationError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from langgraph.runtime import Runtime

    State = AgentState[Any]


class SlidingMemoryState(AgentState[Any]):
    """An agent's state with the record of its messages, which neither input nor output of a run shows."""

    slidemem: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]


class SlidingMemoryMiddleware(AgentMiddleware[Any, Any, Any]):
    """Keeps each request of an agent inside a token budget; the agent's state keeps every message.

    Archive, newest turns, system message, tools and the schema of a structured answer are inside the budget
    together. A checkpointer keeps what is remembered with the messages, so that it lives as long as they do, and
    forks and goes back with them. Without one each run starts from what it is given.

    Args:
        max_tokens: budget of a request, in tokens; left out, three quarters of what `llm` takes in.
        summarizer: what writes the archive: a chat model or runnable, a function of a list of messages that
            returns text, sync or async, or a `Consolidator`. None keeps sentences of the conversation itself.
        llm: a chat model, which sizes (see `max_tokens`) and, where it can, counts.
        token_counter: as `trim_messages` takes it.
        metadata: short facts, shown in front of the archive.
        **options: of `SlideMem`, but for those that say where it is kept: `reserve_tokens` for the answer, and so on.

    Raises:
        ConfigurationError: an argument is wrong, or has no meaning here (`mode="background"`, `store`).
    """

    state_schema = SlidingMemoryState

    def __init__(
        self,
        *,
        max_tokens: int | None = None,
        summarizer: object = None,
        llm: object = None,
        token_counter: Counting | None = None,
        metadata: Mapping[str, object] | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.tools = []
        self._memory = StateMemory(
            max_tokens=max_tokens,
            llm=llm,
            summarizer=summarizer,
            token_counter=token_counter,
            metadata=metadata,
            options=options,
        )

    def before_model(self, state: State, runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ARG002  # the host's
        """Make room when the window is past its limit; most calls change nothing."""
        self._check_sync()
        with self._opened(state) as opened:
            if opened.presses:
                opened.chat.consolidate()
            return opened.update

    async def abefore_model(self, state: State, runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ARG002
        """Async twin of `before_model`."""
        with self._opened(state) as opened:
            if opened.presses:
                await opened.chat.aconsolidate()
            return opened.update

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelCallResult[Any]:
        """Call the model with what it is to see.

        Raises:
            BudgetTooSmall: system message, tools and the newest message alone are larger than the budget.
        """
        small, opened, reserve = self._within_budget(request)
        answer = handler(small)
        opened.hear(answer.result, reserve)
        return answer

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelCallResult[Any]:
        """Async twin of `wrap_model_call`."""
        small, opened, reserve = self._within_budget(request)
        answer = await handler(small)
        opened.hear(answer.result, reserve)
        return answer

    def after_agent(self, state: State, runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ARG002
        """Write what is due of old turns, when the answer is there."""
        self._check_sync()
        with self._opened(state) as opened:
            opened.chat.consolidate()
            return opened.update

    async def aafter_agent(self, state: State, runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ARG002
        """Async twin of `after_agent`."""
        with self._opened(state) as opened:
            await opened.chat.aconsolidate()
            return opened.update

    def _within_budget(self, request: ModelRequest[Any]) -> tuple[ModelRequest[Any], Opened, int]:
        """The request as it is sent, what it was made of, and the tokens of what is sent beside messages."""
        state = cast("Mapping[str, Any]", request.state)
        reserve = sum(self._memory.tokens_of(tool, _tool) for tool in request.tools)
        if request.response_format is not None:
            reserve += self._memory.tokens_of(request.response_format, _format)
        with self._memory.opened(requested(request.messages, state), state.get(KEY)) as opened:
            shown = opened.shown(request.system_message, reserve)
        return request.override(messages=cast("Any", shown)) if shown else request, opened, reserve

    def _opened(self, state: State) -> AbstractContextManager[Opened]:
        whole = cast("Mapping[str, Any]", state)
        return self._memory.opened(whole["messages"], whole.get(KEY))

    def _check_sync(self) -> None:
        if self._memory.is_async:
            raise ConfigurationError(
                "the summarizer has to be awaited: run the agent with ainvoke or astream, or pass a sync one"
            )


def _tool(tool: object) -> object:
    """What a model is told of a tool; as it is where its provider runs it."""
    given = cast("dict[str, Any]", tool)
    is_providers = isinstance(tool, dict) and "function" not in tool
    return given if is_providers else convert_to_openai_tool(given)


def _format(response_format: object) -> object:
    """What a model is told of the answer that is wanted."""
    strategy: Any = response_format
    if isinstance(response_format, AutoStrategy):
        strategy = ToolStrategy(strategy.schema)
    specs = getattr(strategy, "schema_specs", None) or [strategy.schema_spec]
    return [{"name": spec.name, "description": spec.description, "schema": spec.json_schema} for spec in specs]
