"""Decides who writes what is remembered of a span.

A summariser is asked, once more when its answer is refused (not when it did not come in time), and then the
extractive consolidator, which needs no model, so the chain always ends in a text within its target. What is asked is
`request.py`'s, what is accepted `accept.py`'s, and when it is done `settle.py`'s.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, runtime_checkable

from slidemem.accept import refusal
from slidemem.archive import Retention
from slidemem.errors import AsyncOnly, ConfigurationError, told
from slidemem.extract import Span, completed, extracted, most_important
from slidemem.openai_format import to_openai
from slidemem.request import SummaryRequest

Summarize = Callable[[list[dict[str, Any]]], "str | Awaitable[str]"]

_WORTH_A_CALL: Final = 12  # tokens; a smaller target holds no sentence


@runtime_checkable
class Consolidator(Protocol):
    """Writes what is remembered of a span."""

    def summarize(self, request: SummaryRequest) -> str:
        """The notes of the request's span; may raise, which counts as no answer."""
        ...

    async def asummarize(self, request: SummaryRequest) -> str:
        """The same, awaited."""
        ...


def _as_dicts(request: SummaryRequest) -> list[dict[str, Any]]:
    return [to_openai(message, portable=True) for message in request.messages]


class FunctionConsolidator:
    """A plain function `summarize(messages) -> str`, sync or async, as a consolidator.

    Args:
        function: gets the span.
        span: what it gets of a request; a list of OpenAI-format dicts, unless a host wants its own messages.

    Attributes:
        async_only: whether the function can only be awaited.
    """

    def __init__(self, function: Callable[[Any], Any], span: Callable[[SummaryRequest], Any] = _as_dicts) -> None:
        self._function = function
        self._span = span
        called = getattr(type(function), "__call__", None)  # noqa: B004  # of an object whose __call__ is async
        self.async_only = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)

    def called(self, request: SummaryRequest) -> Any:
        """What the function returns for the span; it may have to be awaited."""
        return self._function(self._span(request))

    def summarize(self, request: SummaryRequest) -> str:
        """What the function returns for the span.

        Raises:
            AsyncOnly: the function has to be awaited.
        """
        answer = self.called(request)
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            raise AsyncOnly("asummarize")
        return answer  # type: ignore[no-any-return]  # whatever it is, `write` looks at it

    async def asummarize(self, request: SummaryRequest) -> str:
        """What the function returns for the span, awaited when it is awaitable."""
        answer = self.called(request)
        return await answer if inspect.isawaitable(answer) else answer  # type: ignore[no-any-return]  # as above


class ExtractiveConsolidator:
    """Keeps the span's own sentences, those that state most for their length and not yet; needs no model."""

    def summarize(self, request: SummaryRequest) -> str:
        """The chosen sentences, one a line with its speaker, in the order they were said."""
        return extracted(Span.of(request.spoken(), request.cues), request)

    async def asummarize(self, request: SummaryRequest) -> str:
        """The same; nothing is awaited."""
        return self.summarize(request)


@dataclass(frozen=True, slots=True)
class Written:
    """What the chain came to.

    Attributes:
        text: within the target.
        method: who wrote it.
        retention: facts found and kept.
        refusals: why answers were refused, in order.
        failed: whether there was no answer at all: the summariser raised.
        timed_out: whether an answer did not come in time.
    """

    text: str
    method: str
    retention: Retention
    refusals: tuple[str, ...] = ()
    failed: bool = False
    timed_out: bool = False


def resolve_consolidator(given: Consolidator | Summarize | None) -> Consolidator | None:
    """The consolidator that an option means: None, a function, or a consolidator.

    Raises:
        ConfigurationError: it is none of these.
    """
    if given is None:
        return None
    if isinstance(given, Consolidator) and not isinstance(given, type):
        return given
    if callable(given) and not isinstance(given, type):
        return FunctionConsolidator(given)
    got = f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
    raise ConfigurationError(
        "consolidator must be None, a function summarize(messages) -> str, or an object with summarize(request) "
        "and asummarize(request), for a model its adapter's ChatModelConsolidator or LLMConsolidator; "
        f"got {got}"
    )


async def write(
    ask: Callable[[SummaryRequest], Awaitable[str]] | None,
    request: SummaryRequest,
    *,
    extractive: bool = False,
    on_piece: Callable[[int, int], None] | None = None,
) -> Written:
    """Ask for a summary until one is accepted; the extractive consolidator has the last word.

    Args:
        ask: the summariser; None keeps nothing.
        request: the span and its target.
        extractive: whether `ask` is the extractive consolidator itself, which is not asked twice.
        on_piece: hears before each piece of the span, and after the last, how many are written, of how many.
    """
    span = Span.of(request.spoken(), request.cues)
    if ask is None or request.target_tokens < _WORTH_A_CALL:
        return Written("", "none", span.retention(""))
    answers: list[_Answers] = []
    pieces = [] if extractive else request.pieces()
    hear = on_piece or _unheard
    for piece in pieces:
        hear(len(answers), len(pieces))
        answers.append(await _answered(ask, piece, Span.of(piece.spoken(), piece.cues)))
        if answers[-1].text is None:  # the extract is made of the whole span
            break
    else:
        hear(len(pieces), len(pieces))
    refusals = tuple(refusal for answer in answers for refusal in answer.refusals)
    failed, timed_out = any(answer.failed for answer in answers), any(answer.timed_out for answer in answers)
    if not answers or any(answer.text is None for answer in answers):
        text = extracted(span, request)
        return Written(text, "extractive", span.retention(text), refusals, failed, timed_out)
    said = "\n".join(answer.text for answer in answers if answer.text)
    if len(answers) > 1:  # each may fill the target, and together they may not
        said = "\n".join(most_important(said.splitlines(), lambda lines: _fit(lines, request), request.cues))
    text = completed(said, span, request)
    return Written(text, "summarizer", span.retention(text), refusals)


def _unheard(_done: int, _of: int) -> None:
    """Tell nobody of a piece."""


def _fit(lines: Sequence[str], request: SummaryRequest) -> bool:
    return request.count("\n".join(lines)) <= request.target_tokens


@dataclass(frozen=True, slots=True)
class _Answers:
    """What a summariser said of a piece; None when none of its answers was accepted."""

    text: str | None
    refusals: tuple[str, ...]
    failed: bool = False
    timed_out: bool = False


async def _answered(ask: Callable[[SummaryRequest], Awaitable[str]], request: SummaryRequest, span: Span) -> _Answers:
    """The answer that is accepted, after one more try where the first is not."""
    refusals: list[str] = []
    answer = _Answer("", "")
    for attempt in range(2):
        answer = await _answer(ask, replace(request, attempt=attempt), span)
        if not answer.refusal:
            return _Answers(answer.text, tuple(refusals))
        refusals.append(answer.refusal)
        if answer.timed_out:  # whoever waited for it has waited enough
            break
    return _Answers(None, tuple(refusals), answer.failed, answer.timed_out)


@dataclass(frozen=True, slots=True)
class _Answer:
    """A summariser's answer, and why it is refused, if it is."""

    text: str
    refusal: str
    failed: bool = False
    timed_out: bool = False


async def _answer(ask: Callable[[SummaryRequest], Awaitable[str]], request: SummaryRequest, span: Span) -> _Answer:
    try:
        answer: object = await ask(request)
    except Exception as error:  # noqa: BLE001  # whatever a summariser raises is no answer; the cause goes into the event
        return _Answer("", f"raised {told(error)}", failed=True, timed_out=isinstance(error, TimeoutError))
    if not isinstance(answer, str):
        if inspect.iscoroutine(answer):
            answer.close()  # or Python warns that nobody awaited it
        return _Answer("", f"returned {type(answer).__name__}, not text")
    whole = answer.encode("utf-8", "replace").decode()
    text = "\n".join(line.rstrip() for line in whole.splitlines() if line.strip())
    return _Answer(text, refusal(text, request, span))
