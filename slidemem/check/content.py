"""Decides which rules hold for what a message says: content that is there, its shape, blanks, names, surrogates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from slidemem.check.reading import calls_of, each, items, mapping, needs_no_content, parts_of, speaks, text_of
from slidemem.check.rule import Finding, Listed, Provider, Room

CONTENT: Final = Room()


@CONTENT.rule("null-content", "openai", "anthropic", "gemini", "bedrock")
def _null_content(messages: Listed) -> Iterator[Finding]:
    """Content is there, except where an assistant message calls a tool, refuses, or answers in sound.

    OpenAI: "Invalid value for 'content': expected a string, got null."
    https://github.com/run-llama/llama_index/issues/17555
    Anthropic: a message is "an object with a `role` and `content`" https://docs.anthropic.com/en/api/messages
    Gemini: "contents.parts must not be empty" https://github.com/vercel/ai/issues/3775
    Bedrock: content is required
    https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html
    """
    for index, message in enumerate(messages):
        if message.get("content") is None and not needs_no_content(message):
            yield Finding(index, "content is null or missing")


@CONTENT.rule("content-shape", "openai", "anthropic", "gemini", "bedrock")
def _content_shape(messages: Listed) -> Iterator[Finding]:
    """Content is a string or a list of parts, each an object with a type, and its text a string.

    OpenAI: https://platform.openai.com/docs/api-reference/chat/create
    Anthropic: https://docs.anthropic.com/en/api/messages
    Gemini: https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1beta1/Content
    Bedrock: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html
    """
    for index, message in enumerate(messages):
        content = message.get("content")
        if content is not None and not isinstance(content, (str, list, tuple)):
            yield Finding(index, f"content is of type {type(content).__name__}")
        if not all(_is_part(part) for part in parts_of(message)):
            yield Finding(index, "a part is no object with a type, or its text no string")


def _is_part(part: Mapping[str, Any]) -> bool:
    known = bool(text_of(part.get("type")))
    return known and (part["type"] != "text" or isinstance(part.get("text"), str))


@CONTENT.rule("empty-content", "anthropic", "gemini", "bedrock")
def _empty_content(messages: Listed) -> Iterator[Finding]:
    """A user message, and an assistant message that calls nothing, says something.

    Anthropic: "all messages must have non-empty content except for the optional final assistant message"
    https://github.com/anthropics/claude-code/issues/6774
    and of white space: "text content blocks must contain non-whitespace text"
    https://github.com/crewAIInc/crewAI/pull/4429
    Gemini, of no text at all: "required oneof field 'data' must have one initialized field"
    https://github.com/router-for-me/CLIProxyAPI/issues/1292
    Bedrock: "The text field in the ContentBlock object at messages.28.content.1 is blank."
    https://github.com/OpenHands/OpenHands/issues/5339
    and "The content field in the Message object at messages.N is empty."
    https://github.com/archestra-ai/archestra/pull/4220
    """
    for index, message in each(messages, "user", "assistant"):
        content = message.get("content")
        text = "" if content in ([], ()) else content
        if isinstance(text, str) and not text.strip() and not needs_no_content(message):
            last = index == len(messages) - 1 and speaks(message, "assistant")
            yield Finding(index, "nothing is said", _minding_blank(text, last_answer=last))


@CONTENT.rule("empty-content-list", "openai")
def _empty_content_list(messages: Listed) -> Iterator[Finding]:
    """A list of parts holds at least one.

    OpenAI: `minItems: 1` for the content of every role
    https://github.com/openai/openai-openapi
    """
    for index, message in enumerate(messages):
        if message.get("content") in ([], ()):
            yield Finding(index, "content is an empty list")


@CONTENT.rule("empty-text-part", "anthropic", "gemini", "bedrock")
def _empty_text_part(messages: Listed) -> Iterator[Finding]:
    """A text part holds text.

    Anthropic: "messages: text content blocks must be non-empty"
    https://github.com/anthropics/claude-code/issues/59812
    Gemini, of no text at all: "required oneof field 'data' must have one initialized field"
    https://github.com/router-for-me/CLIProxyAPI/issues/1292
    Bedrock: "The text field in the ContentBlock object at messages.28.content.1 is blank."
    https://github.com/OpenHands/OpenHands/issues/5339
    """
    for index, message in enumerate(messages):
        for place, part in enumerate(parts_of(message)):
            text = part.get("text") if part.get("type") == "text" else None
            if isinstance(text, str) and not text.strip():
                yield Finding(index, f"part {place} is blank", _minding_blank(text))


def _minding_blank(text: str, *, last_answer: bool = False) -> tuple[Provider, ...]:
    """Who refuses a blank text: Gemini takes white space, and Anthropic an empty last assistant message."""
    if text:
        return ("anthropic", "bedrock")
    return ("gemini", "bedrock") if last_answer else ("anthropic", "gemini", "bedrock")


@CONTENT.rule("trailing-whitespace", "anthropic")
def _trailing_whitespace(messages: Listed) -> Iterator[Finding]:
    """A list that ends with an assistant message does not end with white space.

    Anthropic: "messages: final assistant content cannot end with trailing whitespace"
    https://github.com/langchain-ai/langchain/issues/35071
    """
    for message in messages[-1:]:
        text = text_of((parts_of(message) or [{}])[-1].get("text")) or text_of(message.get("content"))
        if speaks(message, "assistant") and not calls_of(message) and text != text.rstrip():
            yield Finding(len(messages) - 1, "the last assistant message ends with white space")


_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@CONTENT.rule("lone-surrogate", "openai", "anthropic", "gemini", "bedrock")
def _lone_surrogate(messages: Listed) -> Iterator[Finding]:
    """Every string can be written as UTF-8, so that the request is JSON.

    Anthropic: "The request body is not valid JSON: no low surrogate in string"
    https://github.com/anthropics/claude-code/issues/2108
    For all, RFC 8259 section 8.1: JSON is exchanged as UTF-8, which has no half of a surrogate pair
    https://www.rfc-editor.org/rfc/rfc8259
    """
    for index, message in enumerate(messages):
        halves = (_SURROGATE.search(text) for text in _strings(message))
        half = next((half.group() for half in halves if half), "")
        if half:
            yield Finding(index, f"lone surrogate {half!a}")


def _strings(value: object) -> Iterator[str]:
    """Every string in a JSON value, keys too."""
    if isinstance(value, str):
        yield value
    for key, inner in mapping(value).items():
        yield from _strings(key)
        yield from _strings(inner)
    for inner in items(value):
        yield from _strings(inner)


_PARTICIPANT: Final = re.compile(r"[^\s<|\\/>]+")


@CONTENT.rule("participant-name", "openai")
def _participant_name(messages: Listed) -> Iterator[Finding]:
    r"""A message's name is without white space and without any of `<|\/>`.

    OpenAI: "Invalid 'messages[0].name': string does not match pattern. Expected a string that matches the
    pattern '^[^\s<|\\/>]+$'." The pattern was narrower once, '^[a-zA-Z0-9_-]+$':
    https://github.com/jekalmin/extended_openai_conversation/issues/251
    """
    for index, message in enumerate(messages):
        name = message.get("name")
        if name is not None and not _PARTICIPANT.fullmatch(text_of(name)):
            yield Finding(index, f"name {name!r}")
