"""Decides how LlamaIndex's messages become slidemem's and come back as they were.

A message that its neutral form says wholly is kept in that alone, so that another framework reads it too; any
other keeps its own JSON beside it. What comes back is built, not validated: validation would encode media anew,
ask whether a file is still there, and double what `additional_kwargs["images"]` holds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeVar, cast

from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import ChatMessage, ContentBlock, MessageRole, TextBlock, ToolCallBlock
from llama_index.core.bridge.pydantic import BaseModel, TypeAdapter, ValidationError

from llamaindex_slidemem.neutral import ROLES, calls_of, parts_of
from llamaindex_slidemem.parts import block_of, fields_of, part_of
from llamaindex_slidemem.remembered import RememberedMessage
from llamaindex_slidemem.values import Values
from slidemem import InvalidMessage, Message, Part, ToolCall

Kind = TypeVar("Kind", bound=ChatMessage)
Given = TypeVar("Given")
Made = TypeVar("Made")

_BLOCKS: Final[TypeAdapter[Any]] = TypeAdapter(ContentBlock)
_MEDIA: Final[Mapping[str, type[BaseModel]]] = {
    kind: getattr(types, name)
    for kind, name in {
        "image": "ImageBlock",
        "audio": "AudioBlock",
        "video": "VideoBlock",
        "document": "DocumentBlock",
    }.items()
    if hasattr(types, name)
}
_KEY: Final = "llama_index"  # of our own JSON in `Message.raw`, which no other host takes for its own
_SAID_BESIDE: Final = ("tool_calls", "function_call", "tool_call_id", "name")


class _Unwritable(Exception):
    """A field that cannot be written as JSON; the text names it."""


class _Came(NamedTuple):
    """A message as it came."""

    role: MessageRole
    blocks: list[BaseModel]
    kwargs: dict[str, Any]


class LlamaIndexCodec:
    """A `MessageCodec` of `ChatMessage`.

    One codec gives provider objects in `additional_kwargs` back as they were; another one gives their JSON.
    """

    def __init__(self) -> None:
        self._values = Values()

    def forget(self) -> None:
        """Drop the provider objects of messages that are gone."""
        self._values.forget()

    def encode(self, message: ChatMessage, index: int = 0) -> Message:
        """The neutral form of a message.

        Args:
            message: it may be changed afterwards.
            index: its position in the caller's list, for the error.

        Raises:
            InvalidMessage: it is no ChatMessage, or a field of it cannot be read or written as JSON: it holds
                itself, say.
        """
        if not isinstance(message, ChatMessage):
            raise InvalidMessage(f"expected a ChatMessage, got {type(message).__name__}", index)
        try:
            return self._encoded(message)
        except _Unwritable as unwritable:
            raise InvalidMessage(str(unwritable), index) from unwritable
        except (AttributeError, KeyError, TypeError, ValueError) as fault:  # built without validation
            raise InvalidMessage(f"no valid ChatMessage ({type(fault).__name__}: {fault!s:.200})", index) from fault

    def _encoded(self, message: ChatMessage) -> Message:
        said = message.additional_kwargs
        role = ROLES[message.role]
        neutral = Message(
            role=role,
            parts=_read("blocks", parts_of, message),
            tool_calls=_read("its tool calls", calls_of, message),
            tool_call_id=_text_or_none(said.get("tool_call_id")) if role == "tool" else None,
            name=_text_or_none(said.get("name")),
            mark=message.mark if isinstance(message, RememberedMessage) else None,
        )
        if self._rebuilt(neutral, _Came(MessageRole(role), [], {}), ChatMessage) == message:
            return neutral
        return replace(neutral, raw=json.dumps({_KEY: self._raw(message)}))

    def encode_all(self, messages: Sequence[ChatMessage]) -> list[Message]:
        """The neutral forms of messages.

        Raises:
            InvalidMessage: one of them cannot be read; its `index` says which. Or they are no list.
        """
        if isinstance(messages, (str, bytes, Mapping, BaseModel)) or not isinstance(messages, Iterable):
            raise InvalidMessage(f"expected a list of ChatMessages, got {type(messages).__name__}")
        return [self.encode(message, index) for index, message in enumerate(messages)]

    def decode(self, message: Message) -> ChatMessage:
        """The message of a neutral one; a `RememberedMessage` with its mark where slidemem changed it."""
        if message.mark is not None:
            return self.remembered(message)
        return self._built(message, ChatMessage)

    def remembered(self, message: Message) -> RememberedMessage:
        """The message as a memory hands it out."""
        return self._built(message, RememberedMessage).marked(message.mark)

    def _raw(self, message: ChatMessage) -> dict[str, Any]:
        said = message.additional_kwargs
        return {
            "role": message.role.value,
            "blocks": [_read("blocks", self._values.pack, fields_of(block)) for block in message.blocks],
            "additional_kwargs": {
                key: _read(f"additional_kwargs[{key!r}]", self._values.pack, value) for key, value in said.items()
            },
        }

    def _built(self, message: Message, kind: type[Kind]) -> Kind:
        came = self._came(message)
        if came is None or message.mark is not None:
            return self._rebuilt(message, came or _Came(MessageRole(message.role), [], {}), kind)
        return _constructed(kind, *came)

    def _came(self, message: Message) -> _Came | None:
        """The message as it came; None where another codec, or nobody, wrote its JSON, or it is damaged."""
        own = _own(message.raw)
        if not own:
            return None
        try:
            blocks = [_block(self._values.unpack(block)) for block in own["blocks"]]
            kwargs = {key: self._values.unpack(value) for key, value in own["additional_kwargs"].items()}
            return _Came(MessageRole(own["role"]), blocks, kwargs)
        except (AttributeError, KeyError, TypeError, ValueError):
            return None

    def _rebuilt(self, message: Message, came: _Came, kind: type[Kind]) -> Kind:
        """The message of its neutral fields, with what they do not say taken from how it came."""
        role = came.role if ROLES[came.role] == message.role else MessageRole(message.role)
        kwargs = {key: value for key, value in came.kwargs.items() if key not in _SAID_BESIDE}
        if message.name is not None:
            kwargs["name"] = message.name
        if message.tool_call_id is not None:
            kwargs["tool_call_id"] = message.tool_call_id
        calls = [block for block in came.blocks if isinstance(block, ToolCallBlock)]
        older = not calls and not came.kwargs.keys().isdisjoint({"tool_calls", "function_call"})
        if message.tool_calls and (older or "tool_calls" in came.kwargs):
            kwargs["tool_calls"] = [_openai_call(call) for call in message.tool_calls]
        blocks = _blocks(message.parts, came.blocks)
        if not older:
            blocks.extend(_call_blocks(message.tool_calls, calls))
        return _constructed(kind, role, blocks, kwargs)


def _constructed(kind: type[Kind], role: MessageRole, blocks: list[BaseModel], kwargs: dict[str, Any]) -> Kind:
    return kind.model_construct(role=role, blocks=blocks, additional_kwargs=kwargs)


def _read(name: str, read: Callable[[Given], Made], given: Given) -> Made:
    try:
        return read(given)
    except (RecursionError, ValueError) as fault:
        raise _Unwritable(f"{name} cannot be written as JSON ({type(fault).__name__}: {fault})") from fault


def _own(raw: str | None) -> dict[str, Any]:
    """The JSON that this codec wrote; empty when another framework's codec wrote it, or none."""
    loaded: object = json.loads(raw) if raw else None
    fields = cast("dict[str, Any]", loaded).get(_KEY) if isinstance(loaded, dict) else None
    return cast("dict[str, Any]", fields) if isinstance(fields, dict) else {}


def _block(fields: dict[str, Any]) -> BaseModel:
    """A block of its fields; where this version of LlamaIndex has no such block, a text that names it."""
    kind = str(fields.get("block_type", "block"))
    if kind in _MEDIA:
        return _MEDIA[kind].model_construct(**fields)
    for name in ("content", "cited_content"):
        nested = fields.get(name)
        if isinstance(nested, list):
            fields = {**fields, name: [_block(inner) for inner in cast("list[dict[str, Any]]", nested)]}
        elif isinstance(nested, dict):
            fields = {**fields, name: _block(cast("dict[str, Any]", nested))}
    try:
        return cast("BaseModel", _BLOCKS.validate_python(fields))
    except ValidationError:
        return TextBlock(text=f"[{kind}]")


def _blocks(parts: Sequence[Part], there: Sequence[BaseModel]) -> list[BaseModel]:
    """Parts as blocks: the one that came where the part still says what it said."""
    came = [(part_of(block), block) for block in there]
    blocks: list[BaseModel] = []
    for part in parts:
        at = next((at for at, (said, _) in enumerate(came) if said == part), None)
        blocks.append(block_of(part) if at is None else came.pop(at)[1])
    return blocks


def _call_blocks(calls: Sequence[ToolCall], came: Sequence[ToolCallBlock]) -> list[BaseModel]:
    """Calls as blocks; arguments are text where they came as text, or are no JSON object."""
    as_text = [isinstance(block.tool_kwargs, str) for block in came]
    as_text.extend(False for _ in calls[len(as_text) :])
    return [
        ToolCallBlock(
            tool_call_id=call.id or None,
            tool_name=call.name,
            tool_kwargs=call.arguments if text else _arguments(call.arguments),
        )
        for call, text in zip(calls, as_text, strict=False)
    ]


def _arguments(text: str) -> dict[str, Any] | str:
    try:
        loaded: object = json.loads(text)
    except ValueError:
        return text
    return cast("dict[str, Any]", loaded) if isinstance(loaded, dict) else text


def _openai_call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None
