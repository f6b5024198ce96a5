"""Decides how a LangChain message becomes a `Message`, and how it comes back.

What came in comes back exactly. A message that the memory made or changed says so under
`additional_kwargs["slidemem"]`: LangChain keeps that dict through copies, states and merges, and its clients send
only keys of it that they know (read in langchain-openai 1.7, -anthropic 1.7, -google-genai 4.4, -aws 1.9,
-mistralai 1.1, -groq 1.1 and -ollama 1.1; `langchain_core.messages.add_notification_metadata` promises the same).
Content is `blocks.py`'s, fields are `fields.py`'s.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, cast

from langchain_core.messages import BaseMessage

from langchain_slidemem.blocks import Content, arguments_of, calls_in, content_of, parts_of
from langchain_slidemem.fields import class_of, fields_of, from_text, made, to_text, type_of
from slidemem import Mark, Message, Part, ToolCall

Role = Literal["system", "user", "assistant", "tool"]
Fields = dict[str, Any]

MARKER: Final = "slidemem"
"""The key of `additional_kwargs` under which a message says what the memory did to it."""

_TYPES: Final[Mapping[Role, str]] = {"user": "human", "assistant": "ai", "system": "system", "tool": "tool"}
_SPEAKERS: Final[Mapping[str, Role]] = {
    **{type_: role for role, type_ in _TYPES.items()},
    **{role: role for role in _TYPES},
    "model": "assistant",
    "developer": "system",
    "function": "tool",
}
_SHARED: Final = ("additional_kwargs", "response_metadata")
_BESIDE: Final = ("tool_calls", "function_call", "refusal")


class LangChainCodec:
    """LangChain's messages as the core's, and back: a `MessageCodec[BaseMessage]`.

    Args:
        lenient: leave out what JSON cannot hold instead of refusing the message; for messages whose home is
            elsewhere, so that nothing is lost.
    """

    def __init__(self, *, lenient: bool = False) -> None:
        self._lenient = lenient

    def encode(self, message: BaseMessage) -> Message:
        """The neutral form; a chunk is taken for the whole message that it is by now.

        Raises:
            InvalidMessage: it is no message or a `RemoveMessage`, or JSON cannot hold one of its fields.
        """
        type_ = type_of(message)
        fields, mark = _unmarked(fields_of(message, lenient=self._lenient))
        role = _role(type_, fields)
        neutral = Message(
            role=role,
            parts=_parts(type_, fields),
            tool_calls=_calls(type_, fields),
            tool_call_id=fields.get("tool_call_id"),
            name=fields.get("name"),
            id=fields.get("id"),
            mark=mark,
        )
        own = class_of(message)
        if own is None and type_ == _TYPES[role] and _fields(type_, neutral, {}) == fields:
            return neutral
        raw = {"type": type_, "data": fields} | ({"class": own} if own else {})
        return replace(neutral, raw=to_text(raw))

    def decode(self, message: Message) -> BaseMessage:
        """A new LangChain message: exactly what came in, or what the memory made of it, marked."""
        raw = _raw(message)
        if raw and message.mark is None:
            return made(raw["type"], raw["data"], raw.get("class"))
        type_, came = _came(message, raw)
        fields = _fields(type_, message, came)
        if message.mark:
            marker = {"kinds": list(message.mark.kinds), "of": list(message.mark.of)}
            fields["additional_kwargs"] = {**fields.get("additional_kwargs", {}), MARKER: marker}
        return made(type_, fields, raw.get("class") if type_ == raw.get("type") else None)


# ------------------------------------------------------------------ to the neutral form


def _unmarked(fields: Fields) -> tuple[Fields, Mark | None]:
    """The fields without our mark, and the mark."""
    kwargs = _dict(fields.get("additional_kwargs"))
    marker = _dict(kwargs.get(MARKER))
    kinds, of = _texts(marker.get("kinds")), _texts(marker.get("of"))
    if kinds is None or of is None:
        return fields, None
    kept = {key: value for key, value in kwargs.items() if key != MARKER}
    rest = {name: value for name, value in fields.items() if name != "additional_kwargs"}
    return rest | ({"additional_kwargs": kept} if kept else {}), Mark(kinds, of)


def _texts(value: object) -> tuple[str, ...] | None:
    """The texts of a list of nothing else; None where it is something else."""
    found = cast("list[object]", value) if isinstance(value, list) else [None]
    return tuple(cast("list[str]", found)) if all(isinstance(one, str) for one in found) else None


def _dict(value: object) -> Fields:
    """A dict, empty where there is none."""
    return cast("Fields", value) if isinstance(value, dict) else {}


def _role(type_: str, fields: Fields) -> Role:
    """A `ChatMessage`'s by its own role; one that nobody knows is somebody who speaks to the model."""
    return _SPEAKERS.get(str(fields["role"]).lower(), "user") if type_ == "chat" else _SPEAKERS[type_]


def _parts(type_: str, fields: Fields) -> tuple[Part, ...]:
    """The parts of the content, with what models say beside it: reasoning, a refusal, speech."""
    parts = parts_of(cast("Content", fields["content"]), calling=type_ == "ai")
    kwargs = _dict(fields.get("additional_kwargs"))
    if type_ != "ai" or not kwargs:
        return parts
    reasoning = () if any(part.kind == "reasoning" for part in parts) else _reasoning(kwargs)
    refusal, audio = kwargs.get("refusal"), kwargs.get("audio")
    refused = (Part("text", refusal),) if isinstance(refusal, str) and refusal else ()
    spoken = (Part("audio", str(_dict(audio).get("transcript", ""))),) if audio else ()
    return (*reasoning, *parts, *refused, *spoken)


def _reasoning(kwargs: Fields) -> tuple[Part, ...]:
    """Reasoning beside the content: text of DeepSeek, Ollama and others, the block of OpenAI's older clients."""
    plain, block = kwargs.get("reasoning_content"), _dict(kwargs.get("reasoning"))
    if isinstance(plain, str) and plain:
        return (Part("reasoning", plain),)
    if not block:
        return ()
    return tuple(Part("reasoning", part.text) for part in parts_of([{**block, "type": "reasoning"}]))


def _calls(type_: str, fields: Fields) -> tuple[ToolCall, ...]:
    """The calls: those that LangChain could read, those it could not, those that only the content says."""
    if type_ != "ai":
        return ()
    said = tuple(
        ToolCall(call.get("id") or "", call.get("name") or "", arguments_of(call.get("args") or {}))
        for call in _called(fields)
    )
    calls = (*said, *calls_in(cast("Content", fields["content"]), said))
    legacy = _dict(_dict(fields.get("additional_kwargs")).get("function_call"))
    if calls or not legacy:
        return calls
    return (ToolCall("", str(legacy.get("name", "")), arguments_of(legacy.get("arguments", ""))),)


def _called(fields: Mapping[str, Any]) -> list[Fields]:
    return [*fields.get("tool_calls", ()), *fields.get("invalid_tool_calls", ())]


# ------------------------------------------------------------------ and back


def _raw(message: Message) -> Fields:
    """LangChain's JSON of a message; empty where it came from elsewhere."""
    raw: Fields = from_text(message.raw) if message.raw else {}
    return raw if isinstance(raw.get("type"), str) and isinstance(raw.get("data"), dict) else {}


def _came(message: Message, raw: Fields) -> tuple[str, Fields]:
    """The class that a message has now, and the fields that it came with as far as that class has them."""
    own = _TYPES[message.role]
    if not raw:
        return own, {}
    type_, fields = str(raw["type"]), cast("Fields", raw["data"])
    if type_ == "function" and message.tool_call_id is not None:
        return own, fields  # a legacy function's call has no id; where it got one, it has become a tool's
    if _role(type_, fields) == message.role:
        return type_, fields
    return own, {name: fields[name] for name in _SHARED if name in fields}


def _fields(type_: str, message: Message, came: Fields) -> Fields:
    """The fields of a message: what the neutral form says, and the rest as they came."""
    before = _calls(type_, {"content": "", **came})
    now = dict(zip((call.id for call in before), message.tool_calls, strict=False))
    fields: Fields = {
        **came,
        **_spoken(message, came, calling=type_ == "ai"),
        "content": content_of(message.parts, cast("Content", came.get("content", "")), now),
        "name": message.name,
        "id": message.id,
        "tool_call_id": (message.tool_call_id or "") if type_ == "tool" else None,
        **_calling(message.tool_calls, _called(came)),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _spoken(message: Message, came: Fields, *, calling: bool) -> Fields:
    """What stands beside the content: what of it was left out of the parts is left out here too."""
    kwargs = _dict(came.get("additional_kwargs"))
    silent = [part.text for part in message.parts if part.kind == "reasoning" and not part.source]
    if calling:
        kwargs = {key: value for key, value in kwargs.items() if key not in _BESIDE}
        if not any(part.kind == "audio" and not part.source for part in message.parts):
            kwargs.pop("audio", None)
        block = kwargs.pop("reasoning", None)
        kwargs.pop("reasoning_content", None)
        if silent:
            kwargs |= {"reasoning": block} if block else {"reasoning_content": "\n".join(silent)}
    return {"additional_kwargs": kwargs or None}


def _calling(calls: Sequence[ToolCall], came: Sequence[Fields]) -> Fields:
    """The calls as LangChain has them: apart those whose arguments are no JSON object."""
    fields: Fields = {"tool_calls": [], "invalid_tool_calls": []}
    for at, call in enumerate(calls):
        before = came[at] if at < len(came) else {}
        said = {**before, "name": call.name or before.get("name"), "id": call.id or before.get("id")}
        args = {"__arg1": call.arguments} if call.custom else _object(call.arguments)
        if args is None:
            error = {"error": before.get("error")}
            fields["invalid_tool_calls"].append(
                {**said, "args": call.arguments, **error, "type": "invalid_tool_call"}
            )
        else:
            said.pop("error", None)
            fields["tool_calls"].append({**said, "args": args, "type": "tool_call"})
    return {name: found or None for name, found in fields.items()}


def _object(arguments: str) -> Fields | None:
    try:
        loaded: object = json.loads(arguments)
    except ValueError:
        return None
    return cast("Fields", loaded) if isinstance(loaded, dict) else None
