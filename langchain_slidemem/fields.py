"""Decides how the fields of a LangChain message become JSON and come back equal, and what is refused.

What JSON cannot hold would not come back from a store, so it is refused with the field's name. A retriever's
documents, which tools hand over as their artifact, are written as LangChain itself writes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, cast

from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    BaseMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

from slidemem import InvalidMessage

_DEEPEST: Final = 100
_ALWAYS: Final = ("content", "type")
_CLASSES: Final[Mapping[str, type[BaseMessage]]] = {
    "human": HumanMessage,
    "ai": AIMessage,
    "system": SystemMessage,
    "tool": ToolMessage,
    "function": FunctionMessage,
    "chat": ChatMessage,
}
_DOCUMENT: Final = ["langchain", "schema", "document", "Document"]


def type_of(message: object) -> str:
    """Which of LangChain's classes a message is of, as its JSON names it.

    Raises:
        InvalidMessage: it is none of them, or a `RemoveMessage`.
    """
    if isinstance(message, RemoveMessage):
        raise InvalidMessage("a RemoveMessage takes messages away and says nothing: rewind the session, or clear it")
    found = next((type_ for type_, known in _CLASSES.items() if isinstance(message, known)), None)
    if found is None:
        raise InvalidMessage(f"expected one of LangChain's messages, got {type(message).__name__}")
    return found


def class_of(message: BaseMessage) -> str | None:
    """The name of a class of somebody's own, a chunk's being that of the whole message; None for LangChain's."""
    whole = _whole(type(message))
    return None if whole in _CLASSES.values() else _name(whole)


def fields_of(message: BaseMessage, *, lenient: bool = False) -> dict[str, Any]:
    """The content, the other fields that are not what they are by default, and what is no field.

    Args:
        message: to be read; it is not changed.
        lenient: leave out what JSON cannot hold.

    Raises:
        InvalidMessage: JSON cannot hold one of them.
    """
    fields: dict[str, Any] = {"content": message.content}
    for name, default in _defaults(_whole(type(message))).items():
        value = getattr(message, name)
        if value != default:
            fields[name] = value
    fields.update(message.model_extra or {})
    faults = {name: fault for name, value in fields.items() if (fault := _fault(value))}
    if faults and not lenient:
        name, fault = next(iter(faults.items()))
        raise InvalidMessage(f"its field {name} {fault}; keep that elsewhere, and in the message an id or a path")
    if "content" in faults:
        fields["content"] = _spelled(message.content)
    return {name: value for name, value in fields.items() if name == "content" or name not in faults}


def made(type_: str, fields: Mapping[str, Any], name: str | None = None) -> BaseMessage:
    """A message of these fields, unchecked and unchanged: they are another message's, or the core's.

    Args:
        type_: one of LangChain's own.
        fields: of it.
        name: of a class of somebody's own; where this process has none of that name, LangChain's is taken.
    """
    return _class(_CLASSES[type_], name).model_construct(**fields)


def to_text(value: object) -> str:
    """JSON text."""
    return json.dumps(value, allow_nan=False, default=_document)


def from_text(text: str) -> Any:
    """What `to_text` wrote."""
    return json.loads(text, object_hook=_restored)


@lru_cache(maxsize=256)
def _defaults(kind: type[BaseMessage]) -> dict[str, Any]:
    """What the fields of a class are by default, content and type aside."""
    fields = kind.model_fields.items()
    return {name: field.get_default(call_default_factory=True) for name, field in fields if name not in _ALWAYS}


def _fault(value: object) -> str | None:
    """Why JSON cannot hold a value; None when it can."""
    if isinstance(value, str):
        return None
    if _is_deeper(value, _DEEPEST):
        return f"is nested more than {_DEEPEST} levels deep"
    try:
        back = from_text(to_text(value))
    except (TypeError, ValueError) as error:
        return f"holds something that JSON cannot hold ({error})"
    return None if back == value else "holds something that JSON would change (a tuple, or keys that are no text)"


def _is_deeper(value: object, levels: int) -> bool:
    layer = [value]
    for _ in range(levels):
        layer = [inner for outer in layer for inner in _inside(outer)]
        if not layer:
            return False
    return True


def _inside(value: object) -> Sequence[object]:
    if isinstance(value, Mapping):
        return list(cast("Mapping[object, object]", value).values())
    return cast("Sequence[object]", value) if isinstance(value, (list, tuple)) else ()


def _spelled(content: object) -> Any:
    """Content with the name of its type in the place of what JSON cannot hold."""
    return json.loads(json.dumps(content, default=lambda value: f"[{type(value).__name__}]", skipkeys=True))


def _document(value: object) -> dict[str, Any]:
    if type(value) is Document:
        return {"lc": 1, "type": "constructor", "id": _DOCUMENT, "kwargs": value.model_dump(exclude={"type"})}
    raise TypeError(f"a value of type {type(value).__name__}")


def _restored(found: dict[str, Any]) -> object:
    is_document = found.get("lc") == 1 and found.get("id") == _DOCUMENT and isinstance(found.get("kwargs"), dict)
    return Document(**found["kwargs"]) if is_document else found


def _whole(kind: type[BaseMessage]) -> type[BaseMessage]:
    """The class of the whole message that a chunk becomes; any other class is its own."""
    return next(one for one in kind.__mro__ if issubclass(one, BaseMessage) and not issubclass(one, BaseMessageChunk))


def _class(base: type[BaseMessage], name: str | None) -> type[BaseMessage]:
    """The class of a name among those that this process has already: a name from a store imports nothing."""
    left = [base] if name else []
    for one in left:
        if _name(one) == name:
            return one
        left.extend(one.__subclasses__())
    return base


def _name(kind: type[BaseMessage]) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"
