"""Decides how OpenAI's chat completions are read and answered, and a model behind a chat template of that shape.

The request: https://platform.openai.com/docs/api-reference/chat/create; its errors:
https://platform.openai.com/docs/guides/error-codes; the stream:
https://platform.openai.com/docs/api-reference/chat-streaming. What a list of messages must be is in
`slidemem.check`; here are the rules of what stands around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from strict_provider.wire import (
    Asked,
    Block,
    Body,
    Refused,
    Spoken,
    Usage,
    blocks_of,
    check,
    compact,
    demand,
    sse,
    texts,
    words,
)

_PARTS: Mapping[str, set[str]] = {
    "system": {"text"},
    "developer": {"text"},
    "user": {"text", "image_url", "input_audio", "file"},
    "assistant": {"text", "refusal"},
    "tool": {"text"},
}


class OpenAIChat:
    """OpenAI's `POST /v1/chat/completions`."""

    name = "openai"
    automatic = True

    def read(self, body: Body, path: str) -> Asked:
        """The request.

        Raises:
            Refused: it breaks a rule.
        """
        messages = [dict(message) for message in body.get("messages") or ()]
        self.rules(body, messages)
        tools = body.get("tools") or ()
        return Asked(
            model=str(body.get("model", "")),
            blocks=(*(Block(compact(tool)) for tool in tools), *blocks_of(messages)),
            messages=tuple(messages),
            tools=tuple(tool["function"]["name"] for tool in tools),
            thinks="reasoning_effort" in body,
            streams=bool(body.get("stream")),
            body=body,
        )

    def rules(self, body: Body, messages: list[dict[str, Any]]) -> None:
        """Hold a request against the rules.

        Parts by role: "Invalid value: 'thinking'. Supported values are: 'text', 'image_url', ..."
        https://github.com/openai/openai-openapi (ChatCompletionRequest*MessageContentPart)
        """
        demand(body.get("model"), "model", "you must provide a model parameter")
        check(messages, "openai")
        for at, message in enumerate(messages):
            content = message.get("content")
            for part in content if isinstance(content, list) else ():
                kind, known = part.get("type"), _PARTS[message["role"]]
                demand(
                    kind in known,
                    "part-type",
                    f"Invalid value: '{kind}' in messages[{at}]. Supported values are: {sorted(known)}.",
                )

    def answer(self, asked: Asked, spoken: Spoken, usage: Usage) -> dict[str, Any]:
        """A `chat.completion`."""
        calls = [_call(call, at) for at, call in enumerate(spoken.calls)]
        message = {
            "role": "assistant",
            "content": spoken.text or None,
            "refusal": None,
            **(
                {"tool_calls": [{key: call[key] for key in ("id", "type", "function")} for call in calls]}
                if calls
                else {}
            ),
        }
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _reason(spoken)}
        return {**_head(asked, spoken, "chat.completion"), "choices": [choice], "usage": _usage(usage)}

    def pieces(self, asked: Asked, spoken: Spoken, usage: Usage) -> Iterator[bytes]:
        """Chunks, the usage last where it was asked for."""
        head = _head(asked, spoken, "chat.completion.chunk")
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas.extend({"content": piece} for piece in words(spoken.text) if piece)
        for at, call in enumerate(spoken.calls):
            whole = _call(call, at)
            arguments = whole["function"]["arguments"]
            half = len(arguments) // 2
            deltas.append({"tool_calls": [{**whole, "function": {"name": call.name, "arguments": ""}}]})
            deltas.extend(
                {"tool_calls": [{"index": at, "function": {"arguments": piece}}]}
                for piece in (arguments[:half], arguments[half:])
            )
        for delta in deltas:
            yield sse({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        yield sse({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": _reason(spoken)}]})
        if (asked.body.get("stream_options") or {}).get("include_usage"):
            yield sse({**head, "choices": [], "usage": _usage(usage)})
        yield sse("[DONE]")

    def refusal(self, refused: Refused) -> tuple[dict[str, Any], dict[str, str]]:
        """OpenAI's error object."""
        error = {
            "message": f"{refused.detail} ({refused.rule})",
            "type": "invalid_request_error",
            "param": "messages",
        }
        return {"error": {**error, "code": None, **refused.beside}}, {}

    def too_long(self, tokens: int, limit: int) -> Refused:
        """OpenAI's `context_length_exceeded`: https://github.com/langchain-ai/langchain/issues/1349."""
        detail = (
            f"This model's maximum context length is {limit} tokens. However, your messages resulted in {tokens}."
        )
        return Refused("context-length", detail, beside={"code": "context_length_exceeded"})


class Template(OpenAIChat):
    """A model behind Gemma's chat template, as an OpenAI-compatible server of open models runs it.

    The template has no system role and no tools, and raises where roles do not alternate:
    https://huggingface.co/google/gemma-2-9b-it/blob/main/tokenizer_config.json ("System role not supported",
    "Conversation roles must alternate user/assistant/user/assistant/..."). The errors are llama.cpp's:
    https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
    """

    name = "template"

    def rules(self, body: Body, messages: list[dict[str, Any]]) -> None:
        """Hold a request against the template."""
        demand(body.get("model"), "model", "model is required")
        for message in messages:
            demand(message.get("role") not in {"system", "developer"}, "system-role", "System role not supported")
            tooled = message.get("role") == "tool" or message.get("tool_calls")
            demand(not tooled, "tool-role", "this template has no tools")
            demand(texts(message.get("content")) or message.get("role") == "assistant", "no-text", "content is empty")
        check(messages, "template")

    def refusal(self, refused: Refused) -> tuple[dict[str, Any], dict[str, str]]:
        """What llama.cpp's server says when a template raises."""
        error = {
            "code": refused.status,
            "message": f"{refused.detail} ({refused.rule})",
            "type": "invalid_request_error",
        }
        return {"error": {**error, **refused.beside}}, {}

    def too_long(self, tokens: int, limit: int) -> Refused:
        """llama.cpp's `exceed_context_size_error`."""
        detail = "the request exceeds the available context size, try increasing it"
        beside = {"type": "exceed_context_size_error", "n_prompt_tokens": tokens, "n_ctx": limit}
        return Refused("context-length", detail, beside=beside)


def _call(call: Any, at: int) -> dict[str, Any]:
    function = {"name": call.name, "arguments": compact(call.arguments)}
    return {"index": at, "id": call.id, "type": "function", "function": function}


def _reason(spoken: Spoken) -> str:
    return "tool_calls" if spoken.calls else "stop"


def _head(asked: Asked, spoken: Spoken, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{spoken.number}", "object": kind, "created": 1_700_000_000, "model": asked.model}


def _usage(usage: Usage) -> dict[str, Any]:
    answer = usage.answer + usage.thought
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": answer,
        "total_tokens": usage.prompt + answer,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.thought, "audio_tokens": 0},
    }
