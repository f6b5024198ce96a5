"""Decides how a LangChain model, runnable or function writes the archive.

Its calls are runs of their own, with a name and tags to be filtered by, apart from the run that they happen in: no
token of a summary reaches the stream of an answer. What is asked for, and what is accepted, are the core's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, cast

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import Runnable, RunnableConfig

from langchain_slidemem.codec import LangChainCodec
from slidemem import ConfigurationError, Consolidator, FunctionConsolidator, SummaryRequest, within

Summarize = Callable[[list[BaseMessage]], "str | Awaitable[str]"]

RUN_NAME: Final = "slidemem_summary"
TAGS: Final = ("slidemem", "nostream")
"""`nostream` is what LangGraph keeps out of its message stream."""

_CODEC: Final = LangChainCodec()


class ChatModelConsolidator:
    """Summaries by a chat model, or by any runnable that takes a text and answers with a message or a text.

    Args:
        model: is given the whole request as one text.
        timeout: seconds that one summary may take, tries included; None waits for ever. A sync call that takes
            longer goes on in a thread of its own, and its answer is dropped.
        retries: further tries after a failure, with growing pauses.
        redact: changes the text that the model is given, to take out what it must not see.
        tags: of the runs, besides `slidemem` and `nostream`.
        callbacks: hear of the runs; those of the run that a summary happens in do not.

    Raises:
        ConfigurationError: the model is no runnable, or a number is out of range.
    """

    keeps_time = True

    def __init__(  # each is named by its caller, and has a default but one
        self,
        model: Runnable[Any, Any],
        *,
        timeout: float | None = 60.0,
        retries: int = 1,
        redact: Callable[[str], str] | None = None,
        tags: Sequence[str] = (),
        callbacks: Sequence[BaseCallbackHandler] = (),
    ) -> None:
        if not isinstance(model, Runnable):
            raise ConfigurationError(f"ChatModelConsolidator takes a chat model or a runnable, got {model!r:.80}")
        if (timeout is not None and timeout <= 0) or retries < 0:
            raise ConfigurationError(f"timeout is above 0 seconds and retries 0 or more, got {timeout} and {retries}")
        self._asked = (
            model.with_retry(stop_after_attempt=retries + 1, exponential_jitter_params={"max": 4.0, "jitter": 0.5})
            if retries
            else model
        )
        self._timeout = timeout
        self._redact = redact
        self._tags = [*TAGS, *tags]
        self._callbacks = callbacks

    def summarize(self, request: SummaryRequest) -> str:
        """The model's notes of the span.

        Raises:
            TimeoutError: it took too long.
        """
        usage = _Usage()
        prompt, config = self._prompt(request), self._config(usage)
        try:
            return _text(within(self._timeout, lambda: self._asked.invoke(prompt, config)))
        finally:
            usage.tell(request)

    async def asummarize(self, request: SummaryRequest) -> str:
        """Async twin of `summarize`."""
        usage = _Usage()
        asked = self._asked.ainvoke(self._prompt(request), self._config(usage))
        try:
            return _text(await asyncio.wait_for(asked, self._timeout))
        finally:
            usage.tell(request)

    def _prompt(self, request: SummaryRequest) -> str:
        return self._redact(request.prompt) if self._redact else request.prompt

    def _config(self, usage: _Usage) -> RunnableConfig:
        return {
            "run_name": RUN_NAME,
            "tags": self._tags,
            "metadata": {"lc_source": "slidemem"},
            "callbacks": [usage, *self._callbacks],
        }


def consolidator_of(summarizer: Any) -> Consolidator:
    """The consolidator of what LangChain's users summarise with.

    Raises:
        ConfigurationError: it summarises nothing.
    """
    if isinstance(summarizer, Runnable):
        return ChatModelConsolidator(cast("Any", summarizer))
    if isinstance(summarizer, Consolidator) and not isinstance(summarizer, type):
        return summarizer
    if callable(summarizer) and not isinstance(summarizer, type):
        return FunctionConsolidator(cast("Summarize", summarizer), _span)
    raise ConfigurationError(
        "summarizer must be a chat model, a runnable, a function summarize(messages) -> str, or a consolidator; "
        f"got {summarizer!r:.80}"
    )


class _Usage(BaseCallbackHandler):
    """Adds up what the models of one summary read and wrote."""

    run_inline = True

    def __init__(self) -> None:
        self._read = 0
        self._wrote = 0

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:  # noqa: ARG002  # LangChain's
        """Take a model's usage."""
        for generation in (one for several in response.generations for one in several):
            message = generation.message if isinstance(generation, ChatGeneration) else None
            if isinstance(message, AIMessage) and message.usage_metadata:
                self._read += message.usage_metadata["input_tokens"]
                self._wrote += message.usage_metadata["output_tokens"]

    def tell(self, request: SummaryRequest) -> None:
        """Hand it to the session's figures."""
        if self._read or self._wrote:
            request.used(self._read, self._wrote)


def _text(answer: object) -> str:
    if isinstance(answer, BaseMessage):
        return _CODEC.encode(answer).text
    if isinstance(answer, str):
        return answer
    raise TypeError(f"a summariser must answer with a message or a text, got {type(answer).__name__}")


def _span(request: SummaryRequest) -> list[BaseMessage]:
    return [_CODEC.decode(message) for message in request.messages]
