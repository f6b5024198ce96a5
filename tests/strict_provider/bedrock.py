"""Decides how AWS Bedrock's Converse is read and answered.

The request: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html; errors and the events
of the stream: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html; frames:
https://docs.aws.amazon.com/transcribe/latest/dg/event-stream.html.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from strict_provider.wire import (
    CALL,
    FRAME,
    IMAGE,
    Asked,
    Block,
    Body,
    Message,
    Refused,
    Spoken,
    Usage,
    check,
    compact,
    demand,
    signed,
    words,
)

_BLOCKS = {"text", "image", "document", "video", "toolUse", "toolResult", "reasoningContent", "cachePoint"}


class Bedrock:
    """Bedrock's `POST /model/{id}/converse`, and `/converse-stream`."""

    name = "bedrock"
    automatic = False

    def read(self, body: Body, path: str) -> Asked:
        """The request.

        Raises:
            Refused: it breaks a rule.
        """
        turns = [_turn(message, at) for at, message in enumerate(body.get("messages") or ())]
        system = [block["text"] for block in body.get("system") or () if "text" in block]
        tools = (body.get("toolConfig") or {}).get("tools") or ()
        _rules(body, turns)
        messages = list(_messages(turns))
        check([*({"role": "system", "content": text} for text in system), *messages], "bedrock")
        model, _, kind = path.removeprefix("/model/").rpartition("/")
        return Asked(
            model=unquote(model),
            blocks=tuple(_blocks(tools, body.get("system") or (), turns)),
            messages=tuple(messages),
            tools=tuple(tool["toolSpec"]["name"] for tool in tools if "toolSpec" in tool),
            thinks="thinking" in (body.get("additionalModelRequestFields") or {}),
            streams=kind == "converse-stream",
            body=body,
        )

    def answer(self, asked: Asked, spoken: Spoken, usage: Usage) -> dict[str, Any]:
        """A `ConverseResponse`."""
        message = {"role": "assistant", "content": _content(spoken)}
        metrics = {"latencyMs": 1}
        return {
            "output": {"message": message},
            "stopReason": _reason(spoken),
            "usage": _usage(usage),
            "metrics": metrics,
        }

    def pieces(self, asked: Asked, spoken: Spoken, usage: Usage) -> Iterator[bytes]:
        """The events of a `ConverseStream`, as frames."""
        yield frame("messageStart", {"role": "assistant"})
        for index, block in enumerate(_content(spoken)):
            place = {"contentBlockIndex": index}
            if "toolUse" in block:
                use = {key: block["toolUse"][key] for key in ("toolUseId", "name")}
                yield frame("contentBlockStart", {"start": {"toolUse": use}, **place})
            for delta in _deltas(block):
                yield frame("contentBlockDelta", {"delta": delta, **place})
            yield frame("contentBlockStop", place)
        yield frame("messageStop", {"stopReason": _reason(spoken)})
        yield frame("metadata", {"usage": _usage(usage), "metrics": {"latencyMs": 1}})

    def refusal(self, refused: Refused) -> tuple[dict[str, Any], dict[str, str]]:
        """A `ValidationException`."""
        return {"message": f"{refused.detail} ({refused.rule})"}, {"x-amzn-errortype": "ValidationException"}

    def too_long(self, tokens: int, limit: int) -> Refused:
        """What Bedrock says: https://github.com/langchain-ai/langchain-aws/issues/232."""
        return Refused("context-length", f"Input is too long for requested model: {tokens} > {limit}.")


def frame(event: str, payload: Any) -> bytes:
    """One message of `application/vnd.amazon.eventstream`: prelude, headers, payload, each with its checksum."""
    named = {":event-type": event, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        struct.pack(">B", len(name)) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in named.items()
    )
    said = compact(payload).encode()
    prelude = struct.pack(">II", len(headers) + len(said) + 16, len(headers))
    head = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + said
    return head + struct.pack(">I", zlib.crc32(head))


def _turn(message: Message, at: int) -> Message:
    role = message.get("role")
    demand(role in {"user", "assistant"}, "unknown-role", f"Value at 'messages.{at}.role' must be user or assistant")
    return {"role": role, "content": [dict(block) for block in message.get("content") or ()]}


def _rules(body: Body, turns: Sequence[Message]) -> None:
    """The rules of what stands around a list.

    Blocks: one member each, of those that are known
    https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html
    Tools: "The toolConfig field must be defined when using toolUse and toolResult content blocks."
    https://github.com/langgenius/dify/issues/17545
    Results are a user's, calls an assistant's
    https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolResultBlock.html
    """
    for at, turn in enumerate(turns):
        for place, block in enumerate(turn["content"]):
            where = f"messages.{at}.content.{place}"
            demand(len(set(block) & _BLOCKS) == 1, "block-type", f"{where}: a content block has one known member")
            others = {"user": {"toolUse", "reasoningContent"}, "assistant": {"toolResult"}}[turn["role"]]
            demand(not others & set(block), "block-role", f"{where}: not in a message of role {turn['role']}")
            if {"toolUse", "toolResult"} & set(block):
                demand(
                    (body.get("toolConfig") or {}).get("tools"),
                    "tools-undefined",
                    "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
                )
            thought = block.get("reasoningContent", {}).get("reasoningText")
            if thought:
                genuine = thought.get("signature") == signed(thought["text"])
                demand(genuine, "signature", f"{where}: Invalid `signature` in `thinking` block")


def _messages(turns: Sequence[Message]) -> Iterator[Message]:
    """Turns as OpenAI-format messages, results as messages of their own."""
    for turn in turns:
        said = [part for block in turn["content"] for part in _part(block)]
        if turn["role"] == "assistant":
            calls = [
                {
                    "id": block["toolUse"]["toolUseId"],
                    "type": "function",
                    "function": {"name": block["toolUse"]["name"], "arguments": compact(block["toolUse"]["input"])},
                }
                for block in turn["content"]
                if "toolUse" in block
            ]
            empty = [] if not calls else None
            yield {"role": "assistant", "content": said or empty, **({"tool_calls": calls} if calls else {})}
            continue
        results = [block["toolResult"] for block in turn["content"] if "toolResult" in block]
        for result in results:
            text = "".join(one.get("text") or compact(one.get("json")) for one in result["content"])
            yield {"role": "tool", "tool_call_id": result["toolUseId"], "content": text}
        if said or not results:
            yield {"role": "user", "content": said}


def _part(block: Message) -> Iterator[Message]:
    if "text" in block:
        yield {"type": "text", "text": block["text"]}
    elif "image" in block:
        yield {"type": "image_url", "image_url": {"url": "image"}}
    elif {"document", "video"} & set(block):
        yield {"type": "file", "file": {}}
    elif "reasoningContent" in block:
        thought = block["reasoningContent"].get("reasoningText") or {}
        yield {"type": "thinking", "thinking": thought.get("text", ""), "signature": thought.get("signature")}


def _blocks(tools: Sequence[Message], system: Sequence[Message], turns: Sequence[Message]) -> Iterator[Block]:
    """The prompt; a cache point marks what stands before it."""
    pieces: list[Block | None] = [None if "cachePoint" in tool else Block(compact(tool)) for tool in tools]
    pieces.extend(None if "cachePoint" in one else Block(one["text"], FRAME, "system") for one in system)
    for turn in turns:
        for at, block in enumerate(turn["content"]):
            frame_ = FRAME if at == 0 else 0
            said = Block(_said(block), frame_ + _flat(block), turn["role"])
            pieces.append(None if "cachePoint" in block else said)
    for piece, after in zip(pieces, [*pieces[1:], Block("")], strict=True):
        if piece:
            yield replace(piece, marked=after is None)


def _said(block: Message) -> str:
    if "toolUse" in block:
        return f"{block['toolUse']['name']}{compact(block['toolUse']['input'])}"
    if "toolResult" in block:
        return "".join(one.get("text") or compact(one.get("json")) for one in block["toolResult"]["content"])
    thought = block.get("reasoningContent", {}).get("reasoningText") or {}
    return str(block.get("text") or thought.get("text") or "")


def _flat(block: Message) -> int:
    return CALL if "toolUse" in block else IMAGE if "image" in block else 0


def _content(spoken: Spoken) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    if spoken.thought:
        thought = {"text": spoken.thought, "signature": signed(spoken.thought)}
        content.append({"reasoningContent": {"reasoningText": thought}})
    if spoken.text:
        content.append({"text": spoken.text})
    content.extend(
        {"toolUse": {"toolUseId": f"tooluse_{call.id}", "name": call.name, "input": call.arguments}}
        for call in spoken.calls
    )
    return content


def _deltas(block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "text" in block:
        yield from ({"text": piece} for piece in words(block["text"]))
    elif "toolUse" in block:
        said = compact(block["toolUse"]["input"])
        half = len(said) // 2
        yield from ({"toolUse": {"input": piece}} for piece in (said[:half], said[half:]))
    else:
        thought = block["reasoningContent"]["reasoningText"]
        yield {"reasoningContent": {"text": thought["text"]}}
        yield {"reasoningContent": {"signature": thought["signature"]}}


def _reason(spoken: Spoken) -> str:
    return "tool_use" if spoken.calls else "end_turn"


def _usage(usage: Usage) -> dict[str, Any]:
    answer = usage.answer + usage.thought
    return {
        "inputTokens": usage.prompt - usage.cached - usage.written,
        "outputTokens": answer,
        "totalTokens": usage.prompt + answer,
        "cacheReadInputTokens": usage.cached,
        "cacheWriteInputTokens": usage.written,
    }
