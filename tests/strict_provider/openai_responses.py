"""Decides how OpenAI's responses are read and answered: a list of items, each call and each thought one of its own.

The request: https://platform.openai.com/docs/api-reference/responses/create; the stream:
https://platform.openai.com/docs/api-reference/responses-streaming. Calls and results are paired by `call_id`
wherever they stand, which chat completions do not do, so the rules of pairing are here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from strict_provider.wire import (
    Asked,
    Block,
    Body,
    Message,
    Refused,
    Spoken,
    Usage,
    blocks_of,
    check,
    compact,
    demand,
    signed,
    sse,
    words,
)

_PARTS: Mapping[str, set[str]] = {
    "system": {"input_text"},
    "developer": {"input_text"},
    "user": {"input_text", "input_image", "input_file", "input_audio"},
    "assistant": {"output_text", "refusal"},
}
_KINDS = {"message", "function_call", "function_call_output", "reasoning"}
_ORDER = (
    "unanswered-call",
    "orphan-result",
    "unknown-result-id",
    "duplicate-result",
    "content-shape",
    "null-content",
)
# what this dialect pairs in its own way, or shapes in its own


class OpenAIResponses:
    """OpenAI's `POST /v1/responses`."""

    name = "responses"
    automatic = True

    def read(self, body: Body, path: str) -> Asked:
        """The request.

        Raises:
            Refused: it breaks a rule.
        """
        demand(body.get("model"), "model", "you must provide a model parameter")
        demand(not body.get("previous_response_id"), "stored", "Previous response not found: nothing is stored here")
        given = body.get("input")
        items = (
            [{"role": "user", "content": given}] if isinstance(given, str) else [dict(item) for item in given or ()]
        )
        _rules(items)
        system = [{"role": "system", "content": body["instructions"]}] if body.get("instructions") else []
        messages = [*system, *_messages(items)]
        check(messages, "openai", ignore=_ORDER)
        tools = body.get("tools") or ()
        return Asked(
            model=str(body["model"]),
            blocks=(*(Block(compact(tool)) for tool in tools), *blocks_of(messages)),
            messages=tuple(messages),
            tools=tuple(tool["name"] for tool in tools if tool.get("type") == "function"),
            thinks=bool(body.get("reasoning")),
            streams=bool(body.get("stream")),
            body=body,
        )

    def answer(self, asked: Asked, spoken: Spoken, usage: Usage) -> dict[str, Any]:
        """A `response`."""
        return _response(asked, spoken, _output(spoken), usage, "completed")

    def pieces(self, asked: Asked, spoken: Spoken, usage: Usage) -> Iterator[bytes]:
        """The events of a response."""
        at = 0

        def event(kind: str, **fields: Any) -> bytes:
            nonlocal at
            at += 1
            return sse({"type": kind, "sequence_number": at, **fields}, kind)

        yield event("response.created", response=_response(asked, spoken, [], None, "in_progress"))
        output = _output(spoken)
        for index, item in enumerate(output):
            place = {"output_index": index, "item_id": item["id"]}
            yield event("response.output_item.added", output_index=index, item={**item, **_bare(item)})
            for kind, fields in _deltas(item):
                yield event(kind, **place, **fields)
            yield event("response.output_item.done", output_index=index, item=item)
        yield event("response.completed", response=_response(asked, spoken, output, usage, "completed"))

    def refusal(self, refused: Refused) -> tuple[dict[str, Any], dict[str, str]]:
        """OpenAI's error object."""
        error = {"message": f"{refused.detail} ({refused.rule})", "type": "invalid_request_error", "param": "input"}
        return {"error": {**error, "code": None, **refused.beside}}, {}

    def too_long(self, tokens: int, limit: int) -> Refused:
        """What responses say: https://github.com/openai/codex/issues/4292."""
        detail = "Your input exceeds the context window of this model. Please adjust your input and try again."
        return Refused("context-length", f"{detail} {tokens} > {limit}", beside={"code": "context_length_exceeded"})


def _rules(items: Sequence[Message]) -> None:
    """The rules of a list of items."""
    for at, item in enumerate(items):
        kind = item.get("type", "message")
        demand(kind in _KINDS, "item-type", f"Invalid value: '{kind}' of input[{at}].type")
        content = item.get("content") if kind == "message" else None
        for part in content if isinstance(content, list) else ():
            known = _PARTS.get(str(item.get("role")), set())
            demand(
                part.get("type") in known,
                "part-type",
                f"Invalid value: '{part.get('type')}' of input[{at}]. Supported values are: {sorted(known)}.",
            )
    _ids(items)
    _pairs(items)
    _reasoning(items)


def _ids(items: Sequence[Message]) -> None:
    """No two items share an id: "Duplicate item found with id rs_..." https://github.com/openai/openai-agents-python/issues/1660."""
    for id_, times in Counter(item["id"] for item in items if item.get("id")).items():
        demand(
            times == 1, "duplicate-item", f"Duplicate item found with id {id_}. Remove duplicate items and try again."
        )


def _pairs(items: Sequence[Message]) -> None:
    """Each call has its output and each output its call, earlier in the list.

    "No tool output found for function call call_X." https://github.com/bytedance/trae-agent/issues/245
    "No tool call found for function call output with call_id call_X."
    https://github.com/continuedev/continue/issues/10092
    """
    calls: dict[str, bool] = {}
    for item in items:
        if item.get("type") == "function_call":
            calls[item["call_id"]] = False
        elif item.get("type") == "function_call_output":
            id_ = item["call_id"]
            demand(id_ in calls, "orphan-output", f"No tool call found for function call output with call_id {id_}.")
            demand(not calls[id_], "duplicate-output", f"Duplicate function call output for call_id {id_}.")
            calls[id_] = True
    for id_, answered in calls.items():
        demand(answered, "missing-output", f"No tool output found for function call {id_}.")


def _reasoning(items: Sequence[Message]) -> None:
    """A thought stands before what it led to, and what a thought led to stands behind it.

    "Item 'rs_X' of type 'reasoning' was provided without its required following item."
    https://github.com/vercel/ai/issues/7099
    "Item 'fc_X' of type 'function_call' was provided without its required 'reasoning' item: 'rs_X'."
    https://github.com/VRSEN/agency-swarm/issues/367
    An item that is sent without its id is held to nothing, and the content that is encrypted must be its own.
    """
    thoughts = {_root(item["id"]) for item in items if item.get("type") == "reasoning" and item.get("id")}
    for at, item in enumerate(items):
        if item.get("type") == "reasoning":
            after = items[at + 1].get("type", "message") if at + 1 < len(items) else ""
            led = after in {"function_call", "reasoning"} or (
                after == "message" and items[at + 1]["role"] == "assistant"
            )
            demand(
                led,
                "reasoning-without-item",
                f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item.",
            )
            said = "".join(part.get("text", "") for part in item.get("summary") or ())
            encrypted = item.get("encrypted_content")
            demand(
                encrypted in (None, signed(said)),
                "encrypted-content",
                f"The encrypted content for item {item.get('id')} could not be verified.",
            )
        id_ = str(item.get("id") or "")
        if id_.startswith("fc_") and id_.endswith("_thought"):
            demand(
                _root(id_) in thoughts,
                "item-without-reasoning",
                f"Item '{id_}' of type 'function_call' was provided without its required 'reasoning' item: "
                f"'rs_{_root(id_)}'.",
            )


def _root(id_: str) -> str:
    """What the ids of one answer have in common."""
    return id_.split("_")[1]


def _messages(items: Sequence[Message]) -> Iterator[Message]:
    """The items as chat messages: calls and texts of one answer are one message."""
    assistant: Message | None = None
    for item in items:
        kind = item.get("type", "message")
        if kind == "reasoning":
            continue
        if kind == "function_call":
            call = {"id": item["call_id"], "type": "function"}
            call["function"] = {"name": item["name"], "arguments": item["arguments"]}
            assistant = assistant or {"role": "assistant", "content": None}
            assistant.setdefault("tool_calls", []).append(call)
            continue
        if assistant:
            yield assistant
            assistant = None
        if kind == "function_call_output":
            yield {"role": "tool", "tool_call_id": item["call_id"], "content": _content(item["output"])}
        elif item["role"] == "assistant":
            assistant = {"role": "assistant", "content": _content(item["content"])}
        else:
            yield {"role": item["role"], "content": _content(item["content"])}
    if assistant:
        yield assistant


def _content(content: Any) -> Any:
    if not isinstance(content, list):
        return content
    return [_part(part) for part in content]


def _part(part: Message) -> Message:
    if part["type"] == "input_image":
        return {"type": "image_url", "image_url": {"url": part.get("image_url")}}
    return {"type": "text", "text": part.get("text") or part.get("refusal") or f"[{part['type']}]"}


def _output(spoken: Spoken) -> list[dict[str, Any]]:
    root, output = f"{spoken.number:08}", []
    suffix = "_thought" if spoken.thought else ""
    if spoken.thought:
        summary = [{"type": "summary_text", "text": spoken.thought}]
        output.append(
            {"type": "reasoning", "id": f"rs_{root}", "summary": summary, "encrypted_content": signed(spoken.thought)}
        )
    if spoken.text:
        text = {"type": "output_text", "text": spoken.text, "annotations": [], "logprobs": []}
        message = {"type": "message", "id": f"msg_{root}", "role": "assistant", "status": "completed"}
        output.append({**message, "content": [text]})
    output.extend(
        {
            "type": "function_call",
            "id": f"fc_{root}_{at}{suffix}",
            "call_id": call.id,
            "name": call.name,
            "arguments": compact(call.arguments),
            "status": "completed",
        }
        for at, call in enumerate(spoken.calls)
    )
    return output


def _bare(item: dict[str, Any]) -> dict[str, Any]:
    """What an item is before anything of it has come."""
    bare = {"message": {"content": []}, "function_call": {"arguments": ""}, "reasoning": {"summary": []}}
    return {**bare[item["type"]], **({"status": "in_progress"} if "status" in item else {})}


def _deltas(item: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    if item["type"] == "reasoning":
        part, text = item["summary"][0], item["summary"][0]["text"]
        place = {"summary_index": 0}
        yield "response.reasoning_summary_part.added", {**place, "part": {**part, "text": ""}}
        yield "response.reasoning_summary_text.delta", {**place, "delta": text}
        yield "response.reasoning_summary_text.done", {**place, "text": text}
        yield "response.reasoning_summary_part.done", {**place, "part": part}
    elif item["type"] == "message":
        part, text = item["content"][0], item["content"][0]["text"]
        place = {"content_index": 0}
        yield "response.content_part.added", {**place, "part": {**part, "text": ""}}
        for piece in words(text):
            yield "response.output_text.delta", {**place, "delta": piece, "logprobs": []}
        yield "response.output_text.done", {**place, "text": text, "logprobs": []}
        yield "response.content_part.done", {**place, "part": part}
    else:
        yield "response.function_call_arguments.delta", {"delta": item["arguments"]}
        yield "response.function_call_arguments.done", {"arguments": item["arguments"], "name": item["name"]}


def _response(
    asked: Asked, spoken: Spoken, output: list[dict[str, Any]], usage: Usage | None, status: str
) -> dict[str, Any]:
    return {
        "id": f"resp_{spoken.number:08}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": status,
        "model": asked.model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": list(asked.body.get("tools") or ()),
        "temperature": 1.0,
        "top_p": 1.0,
        "error": None,
        "incomplete_details": None,
        "instructions": asked.body.get("instructions"),
        "metadata": {},
        "usage": _usage(usage) if usage else None,
    }


def _usage(usage: Usage) -> dict[str, Any]:
    answer = usage.answer + usage.thought
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": answer,
        "output_tokens_details": {"reasoning_tokens": usage.thought},
        "total_tokens": usage.prompt + answer,
    }
