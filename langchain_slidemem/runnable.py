"""Decides how a runnable with memory runs: load, run, store, whole or as a stream, sync or async.

LangChain's own runnable with history is not needed. What a run is given and what of it is stored is `turn.py`'s.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, closing
from functools import partial
from typing import Any, Final

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.base import coerce_to_runnable
from langchain_core.runnables.utils import ConfigurableFieldSpec, get_unique_config_specs
from pydantic import RootModel, create_model

from langchain_slidemem.heard import added
from langchain_slidemem.placeholders import check_placeholder
from langchain_slidemem.turn import Keys, Memory, Turn, check_memory, history_of
from slidemem import ConfigurationError

_SESSION: Final = ConfigurableFieldSpec(
    id="session_id",
    annotation=str,
    name="Session ID",
    description="Unique identifier for a session.",
    default="",
    is_shared=True,
)


def with_sliding_memory(  # noqa: PLR0913  # those of LangChain's runnable with history
    runnable: Runnable[Any, Any] | Callable[..., Any],
    memory: Memory,
    *,
    input_messages_key: str | None = None,
    output_messages_key: str | None = None,
    history_messages_key: str | None = None,
    history_factory_config: Sequence[ConfigurableFieldSpec] | None = None,
    save_on_error: bool = True,
) -> RunnableWithSlidingMemory:
    """A runnable that remembers: called with `{"configurable": {"session_id": "..."}}`.

    Input, window and archive are within the budget together. Input and answer are stored together when the run is
    done; the answer so far, when a stream is closed early or its task is cancelled.

    Args:
        runnable: a chain, a chat model, an agent, or a function.
        memory: a `SlideMem`, or a factory of `SlidingChatMessageHistory`, called as LangChain calls one.
        input_messages_key: where a dict has the input: text, a message or messages.
        output_messages_key: where a dict has the output.
        history_messages_key: where the runnable wants what is remembered; left out, that stands in front of the
            input's messages.
        history_factory_config: the fields of the configuration that name a session, in the place of `session_id`.
        save_on_error: whether what the user said is kept when the runnable raises. Said again next, it is taken
            for a second try, and stands once.

    Raises:
        ConfigurationError: the memory is neither, a key is missing, or the prompt at the head of a chain has no
            placeholder for what is remembered.
    """
    if history_messages_key is not None and input_messages_key is None:
        raise ConfigurationError("history_messages_key needs input_messages_key: one dict holds both")
    check_memory(memory)
    bound = coerce_to_runnable(runnable)
    check_placeholder(bound, input_messages_key, history_messages_key)
    return RunnableWithSlidingMemory(
        bound,
        memory,
        Keys(input_messages_key, output_messages_key, history_messages_key),
        tuple(history_factory_config or (_SESSION,)),
        save_on_error=save_on_error,
    )


class RunnableWithSlidingMemory(Runnable[Any, Any]):
    """What `with_sliding_memory` returns."""

    def __init__(
        self,
        bound: Runnable[Any, Any],
        memory: Memory,
        keys: Keys,
        specs: Sequence[ConfigurableFieldSpec],
        *,
        save_on_error: bool,
    ) -> None:
        self.bound = bound
        self._memory = memory
        self._keys = keys
        self._specs = specs
        self._save_on_error = save_on_error

    def __repr__(self) -> str:
        return f"RunnableWithSlidingMemory({self.bound!r})"

    # -------------------------------------------------------------- what it looks like

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The runnable's own fields, and those that name a session."""
        return get_unique_config_specs([*self.bound.config_specs, *self._specs])

    def get_input_schema(self, config: RunnableConfig | None = None) -> Any:
        """What its callers pass: the runnable's input without what the memory adds."""
        said: Any = str | BaseMessage | Sequence[BaseMessage]
        if self._keys.input is None:
            return RootModel[said]
        bound: Any = self.bound.get_input_schema(config)
        own = {self._keys.history, self._keys.input, "root"}
        fields: dict[str, Any] = {
            name: (field.annotation, field) for name, field in bound.model_fields.items() if name not in own
        }
        make: Any = create_model
        return make("RunnableWithSlidingMemoryInput", **fields, **{self._keys.input: (said, ...)})

    def get_output_schema(self, config: RunnableConfig | None = None) -> Any:
        """The runnable's own."""
        return self.bound.get_output_schema(config)

    # -------------------------------------------------------------- whole answers

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002  # LangChain's
        """Run with memory, and store what was said.

        Raises:
            ConfigurationError: the configuration names no session, or input or output hold no messages.
            BudgetTooSmall: not even the input fits.
            InvalidMessage: a message cannot be stored.
        """
        with self._turn(config) as turn:
            run: Any = partial(self._run, turn)
            output: Any = self._call_with_config(run, input, config, **kwargs)
            turn.hear(output)
            turn.finish()
        return output

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002  # the same
        """Async twin of `invoke`."""
        async with self._turn(config) as turn:
            run: Any = partial(self._arun, turn)
            output: Any = await self._acall_with_config(run, input, config, **kwargs)
            turn.hear(output)
            turn.finish()
        return output

    def _run(self, turn: Turn, value: Any, config: RunnableConfig, **kwargs: Any) -> Any:
        return self.bound.invoke(turn.loading.invoke(value, config), config, **kwargs)

    async def _arun(self, turn: Turn, value: Any, config: RunnableConfig, **kwargs: Any) -> Any:
        return await self.bound.ainvoke(await turn.loading.ainvoke(value, config), config, **kwargs)

    # -------------------------------------------------------------- streams

    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:  # noqa: A002  # the same
        """Run with memory, chunk by chunk; what was said is stored when the stream ends, or is closed."""
        yield from self.transform(iter([input]), config, **kwargs)

    async def astream(
        self,
        input: Any,  # noqa: A002  # the same
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """Async twin of `stream`."""
        async with aclosing(self.atransform(_only(input), config, **kwargs)) as chunks:
            async for chunk in chunks:
                yield chunk

    def transform(
        self,
        input: Iterator[Any],  # noqa: A002  # the same
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Iterator[Any]:
        """Take the whole input, then stream."""
        turn = self._turn(config)
        run: Any = partial(self._streamed, turn)
        chunks: Any = self._transform_stream_with_config(input, run, config, **kwargs)
        with turn, closing(chunks):
            for chunk in chunks:
                turn.hear(chunk)
                yield chunk
            turn.finish()

    async def atransform(
        self,
        input: AsyncIterator[Any],  # noqa: A002  # the same
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncGenerator[Any]:
        """Async twin of `transform`."""
        turn = self._turn(config)
        run: Any = partial(self._astreamed, turn)
        chunks: Any = self._atransform_stream_with_config(input, run, config, **kwargs)
        async with turn, aclosing(chunks):
            async for chunk in chunks:
                turn.hear(chunk)
                yield chunk
            turn.finish()

    def _streamed(self, turn: Turn, inputs: Iterator[Any], config: RunnableConfig, **kwargs: Any) -> Iterator[Any]:
        value: Any = None
        for chunk in inputs:
            value = added(value, chunk)
        yield from self.bound.stream(turn.loading.invoke(value, config), config, **kwargs)

    async def _astreamed(
        self, turn: Turn, inputs: AsyncIterator[Any], config: RunnableConfig, **kwargs: Any
    ) -> AsyncIterator[Any]:
        value: Any = None
        async for chunk in inputs:
            value = added(value, chunk)
        async for chunk in self.bound.astream(await turn.loading.ainvoke(value, config), config, **kwargs):
            yield chunk

    def _turn(self, config: RunnableConfig | None) -> Turn:
        history = history_of(self._memory, self._specs, config)
        return Turn(history, self._keys, save_on_error=self._save_on_error)


async def _only(value: Any) -> AsyncIterator[Any]:
    yield value
