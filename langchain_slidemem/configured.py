"""Decides which memory stands behind a history: the same for the same configuration, and one store for all.

LangChain's users make a history object for each run. So the memory of a configuration is kept, and sessions whose
store nobody named live in one store in this process, whatever the configuration: an id is a conversation.
"""

from __future__ import annotations

import inspect
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache
from typing import Any, Final

from langchain_core.runnables import Runnable

from langchain_slidemem.consolidator import consolidator_of
from langchain_slidemem.counting import counter_of, counter_of_model, window_of
from langchain_slidemem.vectors import embeddings_of
from slidemem import ConfigurationError, Options, SlideMem

_LOG: Final = logging.getLogger("langchain_slidemem")
_SHARE: Final = 0.75  # of a model's window; the rest is for tools, the system prompt and the answer
_KEPT: Final = 64  # configurations; a factory that makes a new function for each run makes a new one each time
_HOMES: Final = ("store", "transcript", "records")
_KNOWN: Final = frozenset({*inspect.signature(SlideMem).parameters, *Options.model_fields})

_memories: OrderedDict[Hashable, tuple[SlideMem, object]] = OrderedDict()
_lock = threading.Lock()


def memory_of(  # the arguments of a history
    *,
    max_tokens: int | None,
    memory: SlideMem | None,
    llm: object,
    summarizer: object,
    token_counter: object,
    options: Mapping[str, Any],
) -> SlideMem:
    """The memory of these arguments, made once.

    Raises:
        ConfigurationError: they contradict each other, or one of them is wrong.
    """
    given: dict[str, object] = dict(options)
    given |= {"max_tokens": max_tokens, "llm": llm, "summarizer": summarizer, "token_counter": token_counter}
    if memory is not None:
        besides = [name for name, value in given.items() if value is not None]
        if besides or not isinstance(memory, SlideMem):
            raise ConfigurationError(
                f"memory is a SlideMem that has all options already: leave out {', '.join(besides)}"
                if besides
                else f"memory must be a SlideMem, got {memory!r:.80}"
            )
        return memory
    return _kept(given, lambda: made(max_tokens, llm, summarizer, token_counter, options))


@lru_cache(maxsize=1)
def default_store() -> Any:
    """The store of every session that nobody named a store for; says once that it ends with the process."""
    _LOG.warning(
        "sessions of which the store is not named are kept in one store in this process, and end with it: "
        'pass store="sqlite:///chat.db", say, to keep them (told once)'
    )
    return SlideMem(max_tokens=1000, counter="approximate").store


def made(
    max_tokens: int | None, llm: object, summarizer: object, token_counter: object, options: Mapping[str, Any]
) -> SlideMem:
    """The memory of these arguments, a new one.

    Raises:
        ConfigurationError: they contradict each other, or one of them is wrong.
    """
    taken = dict(options)
    for ours, cores, given in (
        ("token_counter", "counter", token_counter),
        ("summarizer", "consolidator", summarizer),
    ):
        if given is not None and cores in options:
            raise ConfigurationError(f"{ours} and {cores} say the same: pass one of them")
    if isinstance(options.get("consolidator"), Runnable):
        taken["consolidator"] = consolidator_of(options["consolidator"])
    if token_counter is not None:
        taken["counter"] = counter_of(token_counter)
    elif llm is not None:
        taken.setdefault("counter", counter_of_model(llm))
    if summarizer is not None:
        taken["consolidator"] = consolidator_of(summarizer)
    if "embeddings" in options:
        taken["embeddings"] = embeddings_of(options["embeddings"])
    if not any(taken.get(home) is not None for home in _HOMES):
        taken["store"] = default_store()
    return SlideMem(max_tokens=_budget(llm, options) if max_tokens is None else max_tokens, **taken)


def _budget(llm: object, options: Mapping[str, Any]) -> int:
    if llm is not None:
        return int(_SHARE * window_of(llm))
    unknown = [name for name in options if name not in _KNOWN]
    told = f"there is no option {' and none '.join(unknown)}, and " if unknown else ""
    raise ConfigurationError(
        f"{told}max_tokens is missing: pass it, or llm= to take three quarters of a model's window"
    )


def _kept(given: Mapping[str, object], make: Callable[[], SlideMem]) -> SlideMem:
    key = tuple((name, _key(value)) for name, value in sorted(given.items()))
    with _lock:
        if key in _memories:
            _memories.move_to_end(key)
            return _memories[key][0]
    new = make()
    with _lock:
        _memories.setdefault(key, (new, given))  # what was given stays, so that no id in the key is used again
        if len(_memories) > _KEPT:
            _memories.popitem(last=False)
        return _memories[key][0] if key in _memories else new


def _key(value: object) -> Hashable:
    plain = value is None or isinstance(value, (str, int, float, bool))
    return (type(value), value if plain else id(value))
