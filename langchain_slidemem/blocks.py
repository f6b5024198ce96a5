"""Decides which content block of LangChain is which part of a message, and how parts become content again.

The spellings are those of langchain-core's standard blocks (v1 and v0) and of what OpenAI, Anthropic, Bedrock,
Gemini and Mistral send. A block that calls a tool is no part: the message's calls say it already.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, cast

from slidemem import Part, ToolCall

Block = str | dict[str, Any]
Content = str | list[Block]
PartKind = Literal["text", "reasoning", "image", "audio", "video", "file", "other"]

_SPELLINGS: Final[Mapping[PartKind, tuple[str, ...]]] = {
    "text": ("text", "input_text", "output_text", "refusal", "text-plain"),
    "reasoning": ("thinking", "redacted_thinking", "reasoning", "reasoning_content", "reasoningContent"),
    "image": ("image", "image_url", "input_image"),
    "audio": ("audio", "input_audio"),
    "video": ("video", "video_url"),
    "file": ("file", "input_file", "document"),
}
_KINDS: Final[Mapping[str, PartKind]] = {name: kind for kind, names in _SPELLINGS.items() for name in names}
_CALLS: Final = frozenset(
    {"tool_call", "tool_call_chunk", "invalid_tool_call", "tool_use", "function_call", "custom_tool_call"}
)
_TEXTS: Final = ("text", "thinking", "reasoning", "refusal")
_NESTED: Final = ("summary", "thinking", "reasoning_content", "reasoningContent", "reasoningText")
_ARGUMENTS: Final = ("args", "input", "arguments")


def parts_of(content: Content, *, calling: bool = False) -> tuple[Part, ...]:
    """The parts of a content; "" has none.

    Args:
        content: text, or blocks.
        calling: whether a block that calls a tool is left out, as the model's own message says it in its calls.
    """
    if isinstance(content, str):
        return (Part("text", content),) if content else ()
    return tuple(_part(block) for block in content if not (calling and is_call(block)))


def calls_in(content: Content, known: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """The calls that only a block of the content says: most models say them there and in `tool_calls`."""
    said = {call.id or call.name for call in known}
    blocks = cast("list[dict[str, Any]]", [block for block in content if is_call(block)])
    calls = {call.id or call.name: call for call in map(_call, blocks)}
    return tuple(call for key, call in calls.items() if key not in said)


def content_of(parts: Sequence[Part], came: Content, calls: Mapping[str, ToolCall]) -> Content:
    """Content that says the parts.

    Args:
        parts: to be said; a reasoning or media part without a source stands elsewhere in the message.
        came: the content before it was changed, for its form and its blocks that call a tool.
        calls: what became of each call, by the id that it came with.
    """
    aloud = [part for part in parts if part.source or part.kind == "text"]
    if not isinstance(came, str):
        return list(_in_place([_block(part) for part in aloud], came, calls))
    if len(aloud) > 1 or any(part.source for part in aloud):
        return [_block(part) for part in aloud]
    return aloud[0].text if aloud else ""


def is_call(block: Block) -> bool:
    """Whether a block calls a tool."""
    return not isinstance(block, str) and block.get("type") in _CALLS and isinstance(block.get("name"), str)


def arguments_of(args: object) -> str:
    """Arguments as JSON text, as LangChain's OpenAI client writes them; text stays as it is."""
    return args if isinstance(args, str) else json.dumps(args, ensure_ascii=False)


def _in_place(blocks: Sequence[Block], came: Sequence[Block], calls: Mapping[str, ToolCall]) -> Iterator[Block]:
    """Blocks with those that call a tool among them: where they stood when nothing came or went, else at the end.

    Anthropic and Gemini take thinking back only at its place between the calls.
    """
    before = list(came)
    if sum(not is_call(block) for block in before) != len(blocks):
        yield from blocks
        before = [block for block in before if is_call(block)]
    left = iter(blocks)
    for block in before:
        yield _called(cast("dict[str, Any]", block), calls) if is_call(block) else next(left)


def _call(block: Mapping[str, Any]) -> ToolCall:
    args: object = next((block[key] for key in _ARGUMENTS if block.get(key) is not None), "")
    return ToolCall(_id_of(block), block["name"], arguments_of(args))


def _called(block: Mapping[str, Any], calls: Mapping[str, ToolCall]) -> dict[str, Any]:
    """A block that calls a tool, with the id and the arguments that its call has now."""
    call = calls.get(_id_of(block))
    if call is None:
        return dict(block)
    key = "call_id" if "call_id" in block else "id"
    changed = {name: _like(block[name], call.arguments) for name in _ARGUMENTS if name in block}
    return {**block, key: call.id, **changed}


def _like(came: object, arguments: str) -> object:
    """Arguments in the form in which they came: text, or an object."""
    return arguments if isinstance(came, str) else json.loads(arguments)


def _id_of(block: Mapping[str, Any]) -> str:
    return str(block.get("call_id") or block.get("id") or "")


def _part(block: Block) -> Part:
    if isinstance(block, str):
        return Part("text", block)
    kind, source = _kind(block), json.dumps(block, sort_keys=True)
    if kind not in {"text", "reasoning"}:
        return Part(kind, "", source)
    text = _text(block)
    if block.get("type") == "text-plain" and not text:
        return Part("file", "", source)  # a text by its address or id
    return Part(kind, text, "" if block == {"type": "text", "text": text} else source)


def _kind(block: Mapping[str, Any]) -> PartKind:
    named: object = block.get("type")
    if named == "media":
        return _KINDS.get(str(block.get("mime_type")).partition("/")[0], "file")
    if isinstance(named, str):
        return _KINDS.get(named, "other")
    keyed: list[PartKind] = [_KINDS[key] for key in block if key in _KINDS]  # Bedrock's have a key, and no type
    return keyed[0] if keyed else "other"


def _text(block: Mapping[str, Any]) -> str:
    """The readable text of a block, wherever its maker puts it; "" where it has none."""
    plain: object = next((block[key] for key in _TEXTS if isinstance(block.get(key), str)), None)
    if plain is not None:
        return str(plain)
    inner: object = next((block[key] for key in _NESTED if isinstance(block.get(key), (list, dict))), None)
    pieces = cast("list[object]", inner) if isinstance(inner, list) else [inner]
    return "\n".join(_text(cast("Mapping[str, Any]", piece)) for piece in pieces if isinstance(piece, dict))


def _block(part: Part) -> Block:
    return cast("dict[str, Any]", json.loads(part.source)) if part.source else {"type": "text", "text": part.text}
