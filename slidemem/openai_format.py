"""Decides how messages come from OpenAI-format dicts and go back to them, and which are refused.

The format is chat completions', with the shapes of its kin that clients really send: parts as responses and
Anthropic spell them, legacy functions, reasoning beside the content.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from pydantic import BaseModel

from slidemem.errors import InvalidMessage
from slidemem.messages import Mark, Message, Part, PartKind, Role, ToolCall

_DEEPEST: Final = 100

_REASONING: Final = ("reasoning_content", "reasoning")

_ROLES: Final[Mapping[str, Role]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}

# The spellings of OpenAI chat completions and responses, and of Anthropic messages.
_KINDS: Final[Mapping[str, PartKind]] = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "refusal": "text",
    "thinking": "reasoning",
    "redacted_thinking": "reasoning",
    "reasoning": "reasoning",
    "image_url": "image",
    "image": "image",
    "input_image": "image",
    "input_audio": "audio",
    "audio": "audio",
    "video_url": "video",
    "video": "video",
    "file": "file",
    "input_file": "file",
    "document": "file",
}

Given = Mapping[str, Any] | Message


def read_openai(given: Given | Iterable[Given]) -> list[Message]:
    """Read one message, or several.

    Raises:
        InvalidMessage: it is neither, or one of them cannot be read.
    """
    if isinstance(given, (Mapping, Message)):
        return [from_openai(cast("Given", given))]
    if isinstance(given, (str, bytes, BaseModel)) or not isinstance(given, Iterable):
        raise InvalidMessage(
            f'expected a message ({{"role": "user", "content": "..."}}) or a sequence of messages, got {_told(given)}'
        )
    return [from_openai(message, index) for index, message in enumerate(given)]


def _told(given: object) -> str:
    """What something is that is no message; of a framework's message, where it goes."""
    framework = isinstance(given, BaseModel)  # LangChain's and LlamaIndex's messages are such
    return type(given).__name__ + (" (a framework's message is encoded by its adapter's codec)" if framework else "")


def from_openai(data: Mapping[str, Any] | Message, index: int = 0) -> Message:
    """Read one message in OpenAI chat-completions format; a `Message` passes through.

    Args:
        data: the dict; it is not changed and not kept.
        index: its position in the caller's list, for the error.

    Raises:
        InvalidMessage: unknown role, content that is missing or neither text nor parts, calls or ids of the wrong
            type, or values that JSON cannot hold.
    """
    if isinstance(data, Message):
        return _checked(data, index)
    if not isinstance(data, Mapping):
        raise InvalidMessage(f"expected a dict with a role and content, got {_told(data)}", index)
    role = data.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        said = repr(role[:80]) if isinstance(role, str) else f"of type {type(role).__name__}"
        raise InvalidMessage(f"unknown role {said}; known: {', '.join(_ROLES)}", index)
    if "content" not in data and role != "assistant":
        raise InvalidMessage(f"a {role} message has no content (its keys: {', '.join(map(str, data))})", index)
    message = Message(
        role=_ROLES[role],
        parts=_reasoning(data, index) + _content(data.get("content"), index) + _refusal(data, index),
        tool_calls=_calls(data, index) if role == "assistant" else (),
        tool_call_id=_text_or_none(data, "tool_call_id", index) if _ROLES[role] == "tool" else None,
        name=_text_or_none(data, "name", index),
        id=_text_or_none(data, "id", index),
    )
    raw = _json(dict(data), index)
    return message if _built(message) == data else replace(message, raw=raw)


def to_openai(message: Message, *, portable: bool = False) -> dict[str, Any]:
    """The message as a new OpenAI chat-completions dict; exactly what came in when we did not change it.

    Args:
        message: to write.
        portable: use the shapes that every provider takes, whatever shape came in: arguments as text, parts as
            dicts, the role `tool` for `function`, and no id, which is the host's.
    """
    written = _written(message, portable=portable)
    if portable:
        written.pop("id", None)
    return written


def _written(message: Message, *, portable: bool) -> dict[str, Any]:
    raw = cast("dict[str, Any]", json.loads(message.raw or "{}"))
    if "role" not in raw:  # none, or another host's own JSON
        return _built(message)
    if message.mark is None and not portable:
        return raw
    called = cast("list[dict[str, Any]]", (message.tool_calls and raw.get("tool_calls")) or [])
    for key in ("function_call", *_REASONING, "refusal", "tool_calls", "tool_call_id"):
        raw.pop(key, None)
    built = _built(message)
    if raw.get("role") == "developer" and message.role == "system":
        built["role"] = "developer"
    # Gemini refuses a call that comes back without its `extra_content` (thought signature).
    for call, came in zip(built.get("tool_calls", ()), called, strict=False):
        call.update({key: value for key, value in came.items() if key not in call})
    return {**raw, **built}


def _built(message: Message) -> dict[str, Any]:
    built: dict[str, Any] = {"role": message.role}
    if message.name is not None:
        built["name"] = message.name
    if message.id is not None:
        built["id"] = message.id
    aloud = [part for part in message.parts if part.kind != "reasoning" or part.source]
    if len(aloud) == 1 and aloud[0].kind == "text" and not aloud[0].source:
        built["content"] = aloud[0].text
    else:
        built["content"] = [_part_dict(part) for part in aloud] or None
    silent = [part.text for part in message.parts if part.kind == "reasoning" and not part.source]
    if silent:
        built["reasoning_content"] = "\n".join(silent)
    if message.tool_calls:
        built["tool_calls"] = [_call_dict(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        built["tool_call_id"] = message.tool_call_id
    return built


def _call_dict(call: ToolCall) -> dict[str, Any]:
    kind, field = ("custom", "input") if call.custom else ("function", "arguments")
    return {"id": call.id, "type": kind, kind: {"name": call.name, field: call.arguments}}


def _part_dict(part: Part) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(part.source)) if part.source else {"type": "text", "text": part.text}


def _checked(message: Message, index: int) -> Message:
    """A message that a caller made himself, refused where a field holds what it cannot."""
    texts = [message.tool_call_id, message.name, message.id, message.time, message.raw]
    wrong = next((text for text in texts if text is not None and not isinstance(text, str)), None)
    if wrong is not None:
        raise InvalidMessage(f"a field of the message must be text or None, got {type(wrong).__name__}", index)
    if message.role not in _ROLES.values():
        raise InvalidMessage(f"unknown role {message.role!r:.80}", index)
    if message.tool_calls and message.role != "assistant":
        raise InvalidMessage(f"only an assistant message calls tools, this one is {message.role}", index)
    parts: object = message.parts
    if not isinstance(parts, tuple) or not all(map(_is_part, cast("tuple[object, ...]", parts))):
        raise InvalidMessage("parts must be a tuple of Part, each with texts", index)
    calls: object = message.tool_calls
    if not isinstance(calls, tuple) or not all(map(_is_call, cast("tuple[object, ...]", calls))):
        raise InvalidMessage("tool_calls must be a tuple of ToolCall, each with texts", index)
    if message.mark is not None and not isinstance(message.mark, Mark):
        raise InvalidMessage(f"mark must be a Mark or None, got {type(message.mark).__name__}", index)
    for source in (message.raw, *(part.source for part in message.parts)):
        _loaded(source, index)
    return message


def _is_part(part: object) -> bool:
    return isinstance(part, Part) and all(isinstance(text, str) for text in (part.kind, part.text, part.source))


def _is_call(call: object) -> bool:
    return isinstance(call, ToolCall) and all(isinstance(text, str) for text in (call.id, call.name, call.arguments))


def _loaded(source: str | None, index: int) -> None:
    try:
        loaded: object = json.loads(source) if source else {}
    except (ValueError, RecursionError) as error:
        raise InvalidMessage(f"raw and the source of a part must be JSON ({error})", index) from error
    if not isinstance(loaded, dict):
        raise InvalidMessage("raw and the source of a part must be a JSON object", index)


def _reasoning(data: Mapping[str, Any], index: int) -> tuple[Part, ...]:
    """Reasoning beside the content: `reasoning_content` of DeepSeek and vLLM, `reasoning` of OpenRouter."""
    plain = data.get("reasoning")
    text = _text_or_none(data, "reasoning_content", index) or (plain if isinstance(plain, str) else "")
    return (Part("reasoning", text),) if text else ()


def _refusal(data: Mapping[str, Any], index: int) -> tuple[Part, ...]:
    """The assistant's `refusal`, which stands in the place of content."""
    text = _text_or_none(data, "refusal", index)
    return (_part({"type": "refusal", "refusal": text}, index),) if text else ()


def _content(content: object, index: int) -> tuple[Part, ...]:
    if content is None:
        return ()
    if isinstance(content, str):
        return (Part("text", content),)
    if isinstance(content, Sequence) and not isinstance(content, (bytes, bytearray)):
        return tuple(_part(item, index) for item in cast("Sequence[object]", content))
    raise InvalidMessage(f"content must be text, a list of parts or None, got {type(content).__name__}", index)


def _part(item: object, index: int) -> Part:
    if isinstance(item, str):
        return Part("text", item)
    if not isinstance(item, Mapping):
        raise InvalidMessage(f"a content part must be a dict with a type, got {type(item).__name__}", index)
    part = cast("Mapping[str, Any]", item)
    kind = part.get("type")
    if not isinstance(kind, str):
        raise InvalidMessage(f"a content part has no type (its keys: {', '.join(map(str, part))})", index)
    source = _json(dict(part), index, sort_keys=True)
    known: PartKind = _KINDS.get(kind, "other")
    if known not in {"text", "reasoning"}:
        return Part(known, "", source)
    text = next((part[key] for key in ("text", "thinking", "refusal") if isinstance(part.get(key), str)), "")
    plain = dict(part) == {"type": "text", "text": text}
    return Part(known, text, "" if plain else source)


def _calls(data: Mapping[str, Any], index: int) -> tuple[ToolCall, ...]:
    given: object = data.get("tool_calls")
    if given is None or given == []:
        legacy: object = data.get("function_call")
        return () if legacy is None else (_call({"function": legacy}, index),)
    if not isinstance(given, Sequence) or isinstance(given, (str, bytes)):
        raise InvalidMessage(f"tool_calls must be a list, got {type(given).__name__}", index)
    return tuple(_call(item, index) for item in cast("Sequence[object]", given))


def _call(item: object, index: int) -> ToolCall:
    if not isinstance(item, Mapping):
        raise InvalidMessage(f"a tool call must be a dict, got {type(item).__name__}", index)
    call = cast("Mapping[str, Any]", item)
    custom = "custom" in call
    body: object = call.get("custom" if custom else "function")
    if not isinstance(body, Mapping):
        raise InvalidMessage("a tool call has no function with a name and arguments", index)
    function = cast("Mapping[str, Any]", body)
    name: object = function.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidMessage("a tool call has no name", index)
    arguments: object = function.get("input" if custom else "arguments")
    if arguments is None:
        arguments = ""
    if not isinstance(arguments, str):
        arguments = _json(arguments, index, readable=True)
    return ToolCall(_text_or_none(call, "id", index) or "", name, arguments, custom)


def _text_or_none(data: Mapping[str, Any], key: str, index: int) -> str | None:
    value = data.get(key)
    if value is None or isinstance(value, str):
        return value
    raise InvalidMessage(f"{key} must be text, got {type(value).__name__}", index)


def _json(value: object, index: int, *, sort_keys: bool = False, readable: bool = False) -> str:
    try:
        text = json.dumps(value, allow_nan=False, sort_keys=sort_keys, ensure_ascii=not readable)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidMessage(f"it holds something that JSON cannot hold ({error})", index) from error
    if _is_deeper(value, _DEEPEST):
        raise InvalidMessage(f"it is nested more than {_DEEPEST} levels deep", index)
    return text


def _is_deeper(value: object, levels: int) -> bool:
    """Whether JSON is nested deeper than that: what one stack can write, a deeper one could not read again."""
    layer = [value]
    for _ in range(levels):
        layer = [inner for outer in layer for inner in _inside(outer)]
        if not layer:
            return False
    return True


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return cast("Mapping[str, object]", value).values()
    return cast("Sequence[object]", value) if isinstance(value, (list, tuple)) else ()
