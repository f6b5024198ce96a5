"""Decides how Anthropic's messages are read and answered.

The request: https://docs.anthropic.com/en/api/messages; errors: https://docs.anthropic.com/en/api/errors; the stream:
https://docs.anthropic.com/en/docs/build-with-claude/streaming. Turns of one role in a row are one turn there, so they
are joined before `slidemem.check` is asked; the rules of what stands around the list are here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
    sse,
    words,
)

_BLOCKS: Mapping[str, set[str]] = {
    "user": {"text", "image", "document", "tool_result", "search_result"},
    "assistant": {"text", "thinking", "redacted_thinking", "tool_use"},
}
_MARKS = 4


class AnthropicMessages:
    """Anthropic's `POST /v1/messages`."""

    name = "anthropic"
    automatic = False

    def read(self, body: Body, path: str) -> Asked:
        """The request.

        Raises:
            Refused: it breaks a rule.
        """
        demand(body.get("model"), "model", "model: Field required")
        demand(isinstance(body.get("max_tokens"), int), "max-tokens", "max_tokens: Field required")
        turns = [_turn(message, at) for at, message in enumerate(body.get("messages") or ())]
        system = _listed(body.get("system") or [], "system")
        thinks = (body.get("thinking") or {}).get("type") in {"enabled", "adaptive"}
        _rules(body, turns, system)
        joined = list(_joined(turns))
        messages = list(_messages(joined))
        check([*({"role": "system", "content": one["text"]} for one in system), *messages], "anthropic")
        if thinks:
            _thinking(joined)
        tools = body.get("tools") or ()
        return Asked(
            model=str(body["model"]),
            blocks=tuple(_blocks(body, system, turns)),
            messages=tuple(messages),
            tools=tuple(tool["name"] for tool in tools),
            thinks=thinks,
            streams=bool(body.get("stream")),
            body=body,
        )

    def answer(self, asked: Asked, spoken: Spoken, usage: Usage) -> dict[str, Any]:
        """A `message`."""
        return {**_head(asked, spoken, usage), "content": _content(spoken), "stop_reason": _reason(spoken)}

    def pieces(self, asked: Asked, spoken: Spoken, usage: Usage) -> Iterator[bytes]:
        """The events of a message."""

        def event(kind: str, **fields: Any) -> bytes:
            return sse({"type": kind, **fields}, kind)

        yield event("message_start", message={**_head(asked, spoken, usage), "content": [], "stop_reason": None})
        yield event("ping")
        for index, block in enumerate(_content(spoken)):
            begun, deltas = _begun(block)
            yield event("content_block_start", index=index, content_block=begun)
            for delta in deltas:
                yield event("content_block_delta", index=index, delta=delta)
            yield event("content_block_stop", index=index)
        delta = {"stop_reason": _reason(spoken), "stop_sequence": None}
        yield event("message_delta", delta=delta, usage=_usage(usage))
        yield event("message_stop")

    def refusal(self, refused: Refused) -> tuple[dict[str, Any], dict[str, str]]:
        """Anthropic's error object."""
        error = {"type": "invalid_request_error", "message": f"{refused.detail} ({refused.rule})"}
        return {"type": "error", "error": error, "request_id": "req_strict"}, {"request-id": "req_strict"}

    def too_long(self, tokens: int, limit: int) -> Refused:
        """What Anthropic says: https://github.com/anthropics/claude-code/issues/6186."""
        return Refused("context-length", f"prompt is too long: {tokens} tokens > {limit} maximum")


def _turn(message: Message, at: int) -> Message:
    demand(
        message.get("role") in _BLOCKS, "unknown-role", f"messages.{at}.role: Input should be 'user' or 'assistant'"
    )
    extra = set(message) - {"role", "content"}
    demand(not extra, "unknown-key", f"messages.{at}.{min(extra, default='')}: Extra inputs are not permitted")
    return {"role": message["role"], "content": _listed(message.get("content"), f"messages.{at}.content")}


def _listed(content: Any, where: str) -> list[Message]:
    """Content as blocks; an empty text stays one, which `slidemem.check` refuses."""
    demand(isinstance(content, (str, list)), "null-content", f"{where}: Input should be a valid list")
    return [{"type": "text", "text": content}] if isinstance(content, str) else [dict(block) for block in content]


def _rules(body: Body, turns: Sequence[Message], system: Sequence[Message]) -> None:
    """The rules of what stands around a list.

    Blocks by role: https://docs.anthropic.com/en/api/messages
    Results first: "In the user message containing tool results, the tool_result blocks must come first in the content
    array. Any text must come after all tool results."
    https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use
    Tools: "Requests which include `tool_use` or `tool_result` blocks must define tools."
    https://github.com/crewAIInc/crewAI/issues/3107
    Marks: "A maximum of 4 blocks with cache_control may be provided."
    https://github.com/cline/cline/issues/10098
    Signatures: "messages.1.content.0: Invalid `signature` in `thinking` block"
    https://github.com/ding113/claude-code-hub/issues/518
    """
    marks = [block for block in [*system, *(body.get("tools") or ())] if block.get("cache_control")]
    for at, turn in enumerate(turns):
        kinds = [block.get("type") for block in turn["content"]]
        for place, kind in enumerate(kinds):
            where = f"messages.{at}.content.{place}"
            demand(
                kind in _BLOCKS[turn["role"]], "block-type", f"{where}: '{kind}' is no block of role {turn['role']}"
            )
        if "tool_result" in kinds:
            last = max(place for place, kind in enumerate(kinds) if kind == "tool_result")
            first = all(kind == "tool_result" for kind in kinds[:last])
            demand(first, "results-first", f"messages.{at}: `tool_result` blocks must come first")
        if {"tool_use", "tool_result"} & set(kinds):
            demand(
                body.get("tools"), "tools-undefined", "Requests which include `tool_use` blocks must define tools."
            )
        marks.extend(block for block in turn["content"] if block.get("cache_control"))
        for place, block in enumerate(turn["content"]):
            if block.get("type") == "thinking":
                where = f"messages.{at}.content.{place}"
                genuine = block.get("signature") == signed(block.get("thinking", ""))
                demand(genuine, "signature", f"{where}: Invalid `signature` in `thinking` block")
    demand(
        len(marks) <= _MARKS,
        "marks",
        f"A maximum of 4 blocks with cache_control may be provided. Found {len(marks)}.",
    )


def _thinking(joined: Sequence[Message]) -> None:
    """In a tool loop that thought, the last assistant turn starts with its thought.

    "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant`
    message must start with a thinking block" https://github.com/anomalyco/opencode/issues/3077
    A loop whose thoughts were all left out is taken for one that did not think.
    https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking
    """
    asked = max((at for at, turn in enumerate(joined) if _asks(turn)), default=-1)
    loop = [turn for turn in joined[asked + 1 :] if turn["role"] == "assistant"]
    thought = [turn["content"][0]["type"] in {"thinking", "redacted_thinking"} for turn in loop if turn["content"]]
    if any(thought):
        found = loop[-1]["content"][0]["type"]
        demand(thought[-1], "thinking-first", f"Expected `thinking` or `redacted_thinking`, but found `{found}`.")


def _asks(turn: Message) -> bool:
    return turn["role"] == "user" and all(block.get("type") != "tool_result" for block in turn["content"])


def _joined(turns: Sequence[Message]) -> Iterator[Message]:
    """Turns of one role in a row as one: https://docs.anthropic.com/en/api/messages."""
    last: Message | None = None
    for turn in turns:
        if last and last["role"] == turn["role"]:
            last = {"role": last["role"], "content": [*last["content"], *turn["content"]]}
            continue
        if last:
            yield last
        last = turn
    if last:
        yield last


def _messages(turns: Sequence[Message]) -> Iterator[Message]:
    """Turns as OpenAI-format messages, results as messages of their own."""
    for turn in turns:
        blocks = turn["content"]
        if turn["role"] == "assistant":
            yield _assistant(blocks)
            continue
        results = [block for block in blocks if block.get("type") == "tool_result"]
        for block in results:
            content = block.get("content")
            said = content if isinstance(content, str) else [_part(part) for part in content or ()]
            yield {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": said or ""}
        rest = [_part(block) for block in blocks if block.get("type") != "tool_result"]
        if rest or not results:
            yield {"role": "user", "content": rest}


def _assistant(blocks: Sequence[Message]) -> Message:
    said = [_part(block) for block in blocks if block.get("type") != "tool_use"]
    calls = [
        {
            "id": block.get("id"),
            "type": "function",
            "function": {"name": block.get("name"), "arguments": compact(block.get("input"))},
        }
        for block in blocks
        if block.get("type") == "tool_use"
    ]
    return {"role": "assistant", "content": said or None, **({"tool_calls": calls} if calls else {})}


def _part(block: Message) -> Message:
    if block.get("type") == "image":
        return {"type": "image_url", "image_url": {"url": "image"}}
    if block.get("type") == "document":
        return {"type": "file", "file": {}}
    return {key: value for key, value in block.items() if key != "cache_control"}


def _blocks(body: Body, system: Sequence[Message], turns: Sequence[Message]) -> Iterator[Block]:
    """The prompt: tools, system, messages, in the order in which Anthropic keeps prefixes of it."""
    for tool in body.get("tools") or ():
        yield Block(
            compact({key: tool[key] for key in tool if key != "cache_control"}), marked="cache_control" in tool
        )
    for block in system:
        yield Block(block["text"], FRAME, "system", marked="cache_control" in block)
    places = [(turn, at) for turn in turns for at in range(len(turn["content"]))]
    for number, (turn, at) in enumerate(places):
        block = turn["content"][at]
        frame = FRAME if at == 0 else 0
        automatic = bool(body.get("cache_control")) and number == len(places) - 1
        marked = automatic or "cache_control" in block
        yield Block(_said(block), frame + _flat(block), turn["role"], marked=marked)


def _said(block: Message) -> str:
    kind = block.get("type")
    if kind == "tool_use":
        return f"{block['name']}{compact(block['input'])}"
    if kind == "tool_result":
        content = block.get("content") or ""
        return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    return str(block.get("text") or block.get("thinking") or "")


def _flat(block: Message) -> int:
    kind = block.get("type")
    return CALL if kind == "tool_use" else IMAGE if kind == "image" else 0


def _content(spoken: Spoken) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    if spoken.thought:
        content.append({"type": "thinking", "thinking": spoken.thought, "signature": signed(spoken.thought)})
    if spoken.text:
        content.append({"type": "text", "text": spoken.text})
    content.extend(
        {"type": "tool_use", "id": f"toolu_{call.id}", "name": call.name, "input": call.arguments}
        for call in spoken.calls
    )
    return content


def _begun(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """How a block begins, and what is added to it."""
    if block["type"] == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": piece} for piece in words(block["text"])]
    if block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in words(block["thinking"])]
        signature = {"type": "signature_delta", "signature": block["signature"]}
        return {**block, "thinking": "", "signature": ""}, [*deltas, signature]
    said = compact(block["input"])
    half = len(said) // 2
    return {**block, "input": {}}, [
        {"type": "input_json_delta", "partial_json": piece} for piece in ("", said[:half], said[half:])
    ]


def _head(asked: Asked, spoken: Spoken, usage: Usage) -> dict[str, Any]:
    return {
        "id": f"msg_{spoken.number:08}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "stop_sequence": None,
        "usage": _usage(usage),
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt - usage.cached - usage.written,
        "cache_creation_input_tokens": usage.written,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.answer + usage.thought,
    }


def _reason(spoken: Spoken) -> str:
    return "tool_use" if spoken.calls else "end_turn"
