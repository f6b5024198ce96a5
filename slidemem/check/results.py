"""Decides which rules hold for results of tools: which call each answers, and that all are answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from slidemem.check.reading import call_ids, each, result_id, rounds
from slidemem.check.rule import Finding, Listed, Room

RESULTS: Final = Room()


@RESULTS.rule("unanswered-call", "openai", "anthropic", "gemini", "bedrock")
def _unanswered_call(messages: Listed) -> Iterator[Finding]:
    """Each tool call is answered by one of the tool messages directly after it.

    OpenAI: "An assistant message with 'tool_calls' must be followed by tool messages responding to each
    'tool_call_id'." https://github.com/aliasrobotics/cai/issues/111
    Anthropic: "`tool_use` ids were found without `tool_result` blocks immediately after"
    https://github.com/anthropics/claude-code/issues/7929
    Gemini: "Please ensure that the number of function response parts is equal to the number of function call
    parts of the function call turn." https://github.com/google-gemini/gemini-cli/issues/4217
    Bedrock: "Expected toolResult blocks at messages.22.content for the following Ids"
    https://github.com/NousResearch/hermes-agent/issues/108584
    """
    for owner, results in rounds(messages):
        answered = {result_id(messages[index]) for index in results}
        waiting = [call_id for call_id in call_ids(messages[owner]) if call_id not in answered]
        if waiting:
            yield Finding(owner, f"no result directly after for {', '.join(map(repr, waiting))}")


@RESULTS.rule("orphan-result", "openai", "anthropic", "gemini", "bedrock")
def _orphan_result(messages: Listed) -> Iterator[Finding]:
    """A tool message follows an assistant message with calls, with nothing but tool messages between.

    OpenAI: "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'"
    https://github.com/prism-php/prism/issues/175
    Anthropic: "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
    https://github.com/anthropics/claude-code/issues/18947
    Gemini: "Please ensure that function response turn comes immediately after a function call turn"
    https://github.com/BerriAI/litellm/issues/26755
    Bedrock: "The number of toolResult blocks at messages.2.content exceeds the number of toolUse blocks of
    previous turn" https://github.com/Just-Curieous/Curie/issues/16
    """
    owned = {index for _, results in rounds(messages) for index in results}
    for index, message in each(messages, "tool"):
        if index not in owned:
            yield Finding(index, f"the result for {result_id(message)!r} follows no call")


@RESULTS.rule("missing-result-id", "openai", "anthropic", "bedrock")
def _missing_result_id(messages: Listed) -> Iterator[Finding]:
    """A tool message names the call that it answers.

    OpenAI: "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'."
    https://github.com/langchain-ai/langchain/issues/22600
    Anthropic: https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls
    Bedrock: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolResultBlock.html
    """
    for index, message in each(messages, "tool"):
        if not result_id(message):
            yield Finding(index, "no tool_call_id")


@RESULTS.rule("unknown-result-id", "openai", "anthropic", "gemini", "bedrock")
def _unknown_result_id(messages: Listed) -> Iterator[Finding]:
    """A tool message answers a call of the assistant message that it follows, not another's.

    OpenAI: "'tool_call_id' of 'call_X' not found in 'tool_calls' of previous message."
    https://github.com/dapr/dapr-agents/issues/145
    Anthropic: "unexpected `tool_use_id` found in `tool_result` blocks"
    https://github.com/anthropics/claude-code/issues/18947
    Gemini, of one too many: "the number of function response parts is equal to the number of function call
    parts" https://github.com/google-gemini/gemini-cli/issues/4217
    Bedrock: "Expected toolResult blocks at messages.22.content for the following Ids"
    https://github.com/NousResearch/hermes-agent/issues/108584
    """
    for owner, results in rounds(messages):
        asked = {"", *call_ids(messages[owner])}
        for index in results:
            if result_id(messages[index]) not in asked:
                yield Finding(index, f"{result_id(messages[index])!r} is no call of messages[{owner}]")


@RESULTS.rule("duplicate-result", "openai", "anthropic", "gemini", "bedrock")
def _duplicate_result(messages: Listed) -> Iterator[Finding]:
    """A call has one result.

    OpenAI: "Duplicate value for 'tool_call_id' of 'tool_0_glob', in messages[8] and messages[9]."
    https://github.com/anomalyco/opencode/issues/1211
    Anthropic: "each tool_use must have a single result. Found multiple `tool_result` blocks with id"
    https://github.com/BerriAI/litellm/pull/20049
    Gemini: "the number of function response parts is equal to the number of function call parts"
    https://github.com/google-gemini/gemini-cli/issues/4217
    Bedrock: "The toolResult blocks at messages.X.content contain duplicate Ids"
    https://github.com/BerriAI/litellm/issues/20047
    """
    for owner, results in rounds(messages):
        open_calls = Counter(call_ids(messages[owner]))
        for index in results:
            call_id = result_id(messages[index])
            if call_id in open_calls and not open_calls[call_id]:
                yield Finding(index, f"another result for {call_id!r}")
            open_calls[call_id] -= call_id in open_calls
