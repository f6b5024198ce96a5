"""Decides how what LangChain's users count with counts for the core: one message at a time, each once.

Whatever `trim_messages` takes is taken: a function of a list or of one message, a model, `"approximate"`; and what
the core takes besides: its own counters, the name of a model or an encoding, a function of text.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final, cast, get_type_hints

from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import BaseMessage

from langchain_slidemem.codec import LangChainCodec
from slidemem import ConfigurationError, Message, TokenCounter

Counting = (
    Callable[[list[BaseMessage]], int] | Callable[[BaseMessage], int] | BaseLanguageModel[Any] | TokenCounter | str
)

_CODEC: Final = LangChainCodec()


class MessagesCounter:
    """Counts with a function of a list of messages, or of one; a list has one message, so counts add up.

    Args:
        function: the counter.
        fingerprint: a name of it that stays the same.
        single: whether it takes one message; None where it does not say, and the first call finds out.
    """

    def __init__(self, function: Callable[[Any], int], fingerprint: str, *, single: bool | None) -> None:
        self.fingerprint = fingerprint
        self._function = function
        self._single = single

    def count(self, message: Message) -> int:
        """Tokens of one message."""
        decoded = _CODEC.decode(message)
        if self._single:
            return self._function(decoded)
        try:
            tokens = self._function([decoded])
        except (AttributeError, TypeError):
            if self._single is False:
                raise
            tokens = self._function(decoded)
            self._single = True
        else:
            self._single = False
        return tokens


def counter_of(given: Any) -> Any:
    """The core's counter of what LangChain's users count with; what the core knows itself stays as it is.

    Raises:
        ConfigurationError: it counts nothing.
    """
    if given is None or isinstance(given, (str, TokenCounter)):
        return given
    from_messages = getattr(given, "get_num_tokens_from_messages", None)
    if from_messages is not None:
        return MessagesCounter(from_messages, f"langchain:{_model_name(given)}", single=False)
    if not callable(given):
        raise ConfigurationError(
            "token_counter must be a function of a list of messages or of one message, a model, "
            f'"approximate", or a counter of slidemem; got {given!r:.80}'
        )
    takes = _first_parameter(given)
    if takes is str:
        return given
    single = None if takes is None else isinstance(takes, type) and issubclass(takes, BaseMessage)
    return MessagesCounter(cast("Callable[[Any], int]", given), f"langchain:{_function_name(given)}", single=single)


def counter_of_model(llm: object) -> Any:
    """The counter of a model that has one of its own; None where it would be LangChain's GPT-2 stand-in."""
    model = cast("Any", getattr(llm, "bound", llm))
    kind: Any = model.__class__
    own = getattr(model, "custom_get_token_ids", None) is not None or any(
        getattr(kind, name, None) is not getattr(BaseLanguageModel, name)
        for name in ("get_num_tokens_from_messages", "get_num_tokens", "get_token_ids")
    )
    return counter_of(llm) if own else None


def window_of(llm: object) -> int:
    """Tokens that a model takes in, as its profile says.

    Raises:
        ConfigurationError: it does not say.
    """
    profile = cast("dict[str, Any]", getattr(llm, "profile", None) or {})
    window = profile.get("max_input_tokens")
    if not isinstance(window, int):
        raise ConfigurationError(
            f"max_tokens is missing, and {type(llm).__name__} does not say how much it takes "
            '(profile["max_input_tokens"]): pass max_tokens'
        )
    return window


def _first_parameter(function: Callable[..., object]) -> object:
    """What a function's first parameter is annotated with; None where it is not, or nobody can tell."""
    try:
        name = next(iter(inspect.signature(function).parameters))
        called = function if inspect.isroutine(function) else type(function).__call__
        return get_type_hints(called).get(name)
    except (ValueError, TypeError, NameError, StopIteration, AttributeError):
        return None


def _model_name(model: object) -> str:
    names: Sequence[object] = [getattr(model, name, None) for name in ("model_name", "model")]
    return f"{type(model).__qualname__}:{next((name for name in names if isinstance(name, str)), '')}"


def _function_name(function: object) -> str:
    """Module, name, and where there is code a hash of it, which tells two lambdas apart."""
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__qualname__)}"
    code = getattr(function, "__code__", None)
    if code is None:
        return name
    said = repr((code.co_names, [one for one in code.co_consts if isinstance(one, (str, int, float))]))
    return f"{name}:{hashlib.blake2b(said.encode() + code.co_code, digest_size=6).hexdigest()}"
