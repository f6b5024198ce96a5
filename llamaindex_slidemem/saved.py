"""Decides how a memory that was written down is read back: our own JSON, and dumps of those whose place it takes.

JSON holds no functions, models and stores. Where the memory had some, it says so, and they are attached again by
argument; a model also from LlamaIndex's `Settings`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import ValidationError
from llama_index.core.settings import Settings

from llamaindex_slidemem.arguments import DEFAULT_LIMIT
from slidemem import InvalidExport

_LOG: Final = logging.getLogger("llamaindex_slidemem")
_THEIRS: Final = frozenset({"ChatMemoryBuffer", "ChatSummaryMemoryBuffer"})
_LOST: Final = {
    "summarizer": "sentences of the conversation stand in for its summaries",
    "embeddings": "recall goes by the words alone",
    "redact": "its archive holds what is said from now on as it was said",
}


@dataclass(frozen=True)
class Saved:
    """A memory that was written down.

    Attributes:
        fields: arguments of the memory.
        session: the conversation as slidemem exports it; None when there is none.
        histories: conversations by key, of another memory's dump.
    """

    fields: dict[str, Any]
    session: Mapping[str, Any] | None = None
    histories: dict[str, list[ChatMessage]] = field(default_factory=dict[str, list[ChatMessage]])


def left_out(**given: object) -> dict[str, str]:
    """What a memory has and JSON cannot hold, by the name of its argument, with what it was."""
    return {name: _told(value) for name, value in given.items() if value is not None}


def parsed(text: object) -> object:
    """The JSON object of a text.

    Raises:
        InvalidExport: it is none.
    """
    try:
        return json.loads(cast("str", text))
    except (TypeError, ValueError, RecursionError) as fault:
        raise InvalidExport(f"a memory is read from JSON text, got {text!r:.80} ({fault})") from fault


def read(data: object, given: Mapping[str, Any]) -> Saved:
    """What an object holds; the object is not changed.

    Args:
        data: what `to_dict` gave, of this memory, of ChatMemoryBuffer or of ChatSummaryMemoryBuffer, today's or the
            old form with `chat_history`.
        given: arguments that are given besides.

    Raises:
        InvalidExport: it cannot be read.
    """
    if not isinstance(data, Mapping):
        raise InvalidExport(f"a memory is read from the object that to_dict gives, got {type(data).__name__}")
    fields = dict(cast("Mapping[str, Any]", data))
    if fields.pop("class_name", None) in _THEIRS or not fields.keys().isdisjoint({"chat_store", "chat_history"}):
        return _theirs(fields, given)
    session: object = fields.pop("session", None)
    without: object = fields.pop("left_out", None)
    if "session" in data and not isinstance(session, Mapping):
        raise InvalidExport(f"the session of a memory is a JSON object, got {type(session).__name__}")
    return Saved({**fields, **_attached(without, given)}, cast("Mapping[str, Any] | None", session))


def _attached(without: object, given: Mapping[str, Any]) -> dict[str, Any]:
    """What is attached again without being given: the model that writes the archive."""
    told: Mapping[str, str] = cast("Mapping[str, str]", without) if isinstance(without, Mapping) else {}
    names = {name: was for name, was in told.items() if name not in given}
    model = getattr(Settings, "_llm", None)  # `Settings.llm` would make one where there is none
    attached = {"summarizer": model} if "summarizer" in names and isinstance(model, BaseLLM) else {}
    for name, was in names.items():
        if name not in attached and name in _LOST:
            _LOG.warning("a memory that had %s %s was read without: %s; pass %s=", name, was, _LOST[name], name)
    return attached


def _theirs(fields: Mapping[str, Any], given: Mapping[str, Any]) -> Saved:
    key = str(fields.get("chat_store_key", "chat_history"))
    taken = {"token_limit": fields.get("token_limit", DEFAULT_LIMIT), "chat_store_key": key}
    store = fields.get("chat_store")
    if "chat_history" in fields:
        histories: Any = {"chat_history": fields["chat_history"]}
    elif isinstance(store, Mapping) and "store" in store:
        histories = cast("Mapping[str, Any]", store)["store"]
    elif store is None or "chat_store" in given:
        histories = {}
    else:
        named = (
            cast("Mapping[str, Any]", store).get("class_name") if isinstance(store, Mapping) else type(store).__name__
        )
        raise InvalidExport(f"the messages of this memory are in its {named}: pass it as chat_store=")
    try:
        return Saved(taken, None, {str(name): _messages(said) for name, said in histories.items()})
    except (AttributeError, TypeError, ValidationError) as fault:
        raise InvalidExport(f"the messages of this memory cannot be read: {fault!s:.200}") from fault


def _messages(said: Any) -> list[ChatMessage]:
    return [one if isinstance(one, ChatMessage) else ChatMessage.model_validate(one) for one in said]


def _told(value: object) -> str:
    if isinstance(value, BaseLLM):
        return value.class_name()
    return str(getattr(value, "__qualname__", type(value).__qualname__))
