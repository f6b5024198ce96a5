"""Decides which rules hold for calls of tools: their shape, ids, names and arguments."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from slidemem.check.reading import call_ids, calls_of, each, each_call, function_of, refusing, text_of
from slidemem.check.rule import Finding, Listed, Provider, Room

CALLS: Final = Room()


@CALLS.rule("tool-calls-shape", "openai")
def _tool_calls_shape(messages: Listed) -> Iterator[Finding]:
    """Tool calls are a list of functions, each with a name, and with its arguments as JSON text.

    OpenAI: https://platform.openai.com/docs/api-reference/chat/create
    and "Invalid 'messages[69].tool_calls[0].function.name': empty string."
    https://github.com/continuedev/continue/issues/11645
    """
    for index, message in each(messages, "assistant"):
        calls = message.get("tool_calls")
        if calls is not None and not isinstance(calls, (list, tuple)):
            yield Finding(index, f"tool_calls is of type {type(calls).__name__}")
        if not all(_is_function_call(call) for call in calls_of(message)):
            yield Finding(index, "a call is no function with a name and arguments as JSON text")


def _is_function_call(call: Mapping[str, Any]) -> bool:
    function = function_of(call)
    named = call.get("type") == "function" and bool(text_of(function.get("name")))
    return named and isinstance(function.get("arguments"), str)


@CALLS.rule("empty-tool-calls", "openai")
def _empty_tool_calls(messages: Listed) -> Iterator[Finding]:
    """A list of tool calls holds at least one.

    OpenAI: "Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum length 1"
    https://github.com/openai/openai-node/pull/1341
    """
    for index, message in each(messages, "assistant"):
        if message.get("tool_calls") in ([], ()):
            yield Finding(index, "tool_calls is an empty list")


@CALLS.rule("missing-call-id", "openai", "anthropic", "bedrock")
def _missing_call_id(messages: Listed) -> Iterator[Finding]:
    """Each tool call has an id.

    OpenAI: https://platform.openai.com/docs/api-reference/chat/create
    Anthropic, of an empty id: "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
    https://github.com/anomalyco/opencode/issues/1279
    Bedrock: required, minimum length of 1
    https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolUseBlock.html
    """
    for index, call in each_call(messages):
        if not text_of(call.get("id")):
            yield Finding(index, f"the call of {function_of(call).get('name')!r} has no id")


@CALLS.rule("duplicate-call-id", "openai", "anthropic", "bedrock")
def _duplicate_call_id(messages: Listed) -> Iterator[Finding]:
    """No two calls of one message have the same id.

    OpenAI, of the results: "Duplicate value for 'tool_call_id' of 'call_X', in messages[7] and messages[8]."
    https://github.com/agno-agi/agno/issues/5116
    Anthropic: "messages.1.content.1: `tool_use` ids must be unique"
    https://github.com/anthropics/claude-code/issues/20901
    Bedrock: "The toolUse blocks at messages.10.content contain duplicate Ids"
    https://github.com/BerriAI/litellm/pull/20049
    """
    for index, message in enumerate(messages):
        for call_id, times in Counter(call_ids(message)).items():
            if times > 1:
                yield Finding(index, f"{times} calls have the id {call_id!r}")


@CALLS.rule("reused-call-id", "anthropic")
def _reused_call_id(messages: Listed) -> Iterator[Finding]:
    """No call has the id of a call in an earlier message.

    Anthropic: "messages.43.content.2: tool_use ids must be unique"
    https://github.com/anthropics/claude-code/issues/28515
    """
    seen: set[str] = set()
    for index, message in enumerate(messages):
        ids = dict.fromkeys(call_ids(message))
        yield from (Finding(index, f"id {call_id!r} was used before") for call_id in ids if call_id in seen)
        seen.update(ids)


_CALL_IDS: Final[Mapping[Provider, re.Pattern[str]]] = {
    "openai": re.compile(r".{0,40}", re.DOTALL),
    "anthropic": re.compile(r"[a-zA-Z0-9_-]+"),
    "bedrock": re.compile(r"[a-zA-Z0-9_.:-]{1,64}"),
}


@CALLS.rule("call-id-pattern", "openai", "anthropic", "bedrock")
def _call_id_pattern(messages: Listed) -> Iterator[Finding]:
    """A call's id is of the provider's alphabet and length.

    OpenAI: "Invalid 'messages[36].tool_calls[0].id': string too long. Expected a string with maximum length
    40" https://github.com/vercel/ai/issues/8132
    Anthropic: "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
    https://github.com/anomalyco/opencode/issues/1279
    Bedrock: `[a-zA-Z0-9_.:-]+`, 1 to 64 characters
    https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolUseBlock.html
    """
    for index, message in enumerate(messages):
        for call_id in call_ids(message):
            yield Finding(index, f"id {call_id!r}", refusing(_CALL_IDS, call_id))


_FUNCTION_NAMES: Final[Mapping[Provider, re.Pattern[str]]] = {
    "openai": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    "anthropic": re.compile(r"[a-zA-Z0-9_-]{1,128}"),
    "bedrock": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
}


@CALLS.rule("function-name", "openai", "anthropic", "bedrock")
def _function_name(messages: Listed) -> Iterator[Finding]:
    """The name of a called function is of letters, digits, `_` and `-`, and short.

    OpenAI: "Must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64."
    https://platform.openai.com/docs/api-reference/chat/create
    Anthropic, up to 128 characters: https://github.com/aws-samples/sample-apj-sup-sa/pull/137
    Bedrock: "toolUse.name' failed to satisfy constraint: Member must have length less than or equal to 64"
    https://github.com/openclaw/openclaw/issues/12892
    """
    for index, call in each_call(messages):
        name = text_of(function_of(call).get("name"))
        yield Finding(index, f"function {name!r}", refusing(_FUNCTION_NAMES, name))


@CALLS.rule("arguments-not-object", "anthropic", "gemini", "bedrock")
def _arguments_not_object(messages: Listed) -> Iterator[Finding]:
    """A call's arguments are the text of a JSON object, which is what these providers are sent.

    Anthropic: "tool_use.input: Input should be a valid dictionary"
    https://github.com/anthropics/claude-code/issues/6696
    Gemini: args are "parameters and their values", a Struct
    https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1beta1/Content
    Bedrock: "toolUse.input is invalid. Provide a json object." is its error for the field of
    https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolUseBlock.html
    """
    for index, call in each_call(messages):
        arguments = function_of(call).get("arguments")
        if isinstance(arguments, str) and not _is_object(arguments):
            yield Finding(index, f"arguments {arguments[:80]!r}")


def _is_object(text: str) -> bool:
    try:
        loaded: object = json.loads(text)
        json.dumps(loaded, allow_nan=False)  # NaN is Python's JSON and no provider's
    except (ValueError, RecursionError):
        return False
    return isinstance(loaded, dict)
