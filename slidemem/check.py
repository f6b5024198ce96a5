"""Decides whether a provider would take a list of messages, by the providers' own published rules.

The list is in OpenAI chat-completions format. Each rule is one function, and its docstring says who published
it and where. Nothing here knows how slidemem makes a list: a checker that shared code with what it checks
would share its faults. Mending a list is left to others.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import cleandoc
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, cast

__all__ = ["ALL", "RULES", "Provider", "Rule", "Violation", "assert_valid", "violations"]

Provider = Literal["openai", "anthropic", "gemini", "bedrock", "template"]

ALL: Final[tuple[Provider, ...]] = ("openai", "anthropic", "gemini", "bedrock", "template")
"""Everyone whose rules are known here.

OpenAI chat completions, Anthropic Messages, Gemini generateContent, AWS Bedrock Converse, and chat templates
that demand strictly alternating roles (Mistral's, Llama 2's, Gemma's).
"""

_Message = Mapping[str, Any]
_Messages = Sequence[_Message]


@dataclass(frozen=True)
class Violation:
    """One rule that one message breaks.

    Attributes:
        index: the message's position in the list, -1 when it is the list as a whole.
        rule: the rule's name, a key of `RULES`.
        provider: who would refuse the list for it, in the order of `ALL`; never empty.
        detail: what is wrong, with the ids or values at fault.
    """

    index: int
    rule: str
    provider: tuple[Provider, ...]
    detail: str

    def __str__(self) -> str:
        place = "list" if self.index < 0 else f"messages[{self.index}]"
        return f"{place}: {self.rule} ({', '.join(self.provider)}): {self.detail}"


class _Finding(NamedTuple):
    """What a rule's function yields: where, what, and who minds if not everyone the rule names."""

    at: int
    detail: str
    providers: Collection[Provider] = ALL


_Check = Callable[[_Messages], Iterator[_Finding]]


@dataclass(frozen=True)
class Rule:
    """One published rule.

    Attributes:
        name: its stable name, which `ignore` takes.
        providers: who refuses a list that breaks it.
        says: the rule in one sentence.
        source: the public pages and bug reports that state it, with the errors' own words.
        check: yields each place in a list of messages that breaks it.
    """

    name: str
    providers: tuple[Provider, ...]
    says: str
    source: str
    check: _Check = field(repr=False)


_rules: Final[dict[str, Rule]] = {}

RULES: Final[Mapping[str, Rule]] = MappingProxyType(_rules)
"""Every rule by its name, in the order in which a list is checked."""


def violations(
    messages: Sequence[Mapping[str, Any]],
    *,
    providers: Collection[str] = ALL,
    ignore: Collection[str] = (),
) -> list[Violation]:
    """Every rule that a list of messages breaks.

    Args:
        messages: dicts in OpenAI chat-completions format; read, never changed.
        providers: whose rules count, names from `ALL`.
        ignore: names of rules that do not count. A user's own transcript may hold two user messages in a
            row, for instance; `ignore=["alternation"]` then asks about everything else.

    Returns:
        The violations by position, those of the list as a whole first; empty when all would take it.

    Raises:
        ValueError: for a provider or a rule that is not known.
    """
    _refuse_unknown("provider", providers, ALL)
    _refuse_unknown("rule", ignore, RULES)
    counted = [rule for rule in RULES.values() if rule.name not in ignore]
    found = [violation for rule in counted for violation in _broken(rule, messages, providers)]
    return sorted(found, key=lambda violation: violation.index)


def assert_valid(
    messages: Sequence[Mapping[str, Any]],
    *,
    providers: Collection[str] = ALL,
    ignore: Collection[str] = (),
) -> None:
    """Assert that every provider would take a list of messages.

    Args:
        messages: dicts in OpenAI chat-completions format; read, never changed.
        providers: whose rules count, names from `ALL`.
        ignore: names of rules that do not count.

    Raises:
        AssertionError: with the roles drawn in one line and every violation below it.
        ValueError: for a provider or a rule that is not known.
    """
    found = violations(messages, providers=providers, ignore=ignore)
    if found:
        lines = "".join(f"\n  {violation}" for violation in found)
        raise AssertionError(f"rules broken: {len(found)} in [{_drawn(messages)}]{lines}")


def _refuse_unknown(kind: str, names: Collection[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"unknown {kind} {name!r}: choose from {', '.join(known)}")


def _broken(rule: Rule, messages: _Messages, providers: Collection[str]) -> Iterator[Violation]:
    for finding in rule.check(messages):
        minding = set(finding.providers).intersection(rule.providers, providers)
        if minding:
            blamed = tuple(sorted(minding, key=ALL.index))
            yield Violation(finding.at, rule.name, blamed, finding.detail)


def _drawn(messages: _Messages) -> str:
    return " | ".join(f"{index} {_portrait(message)}" for index, message in enumerate(messages))


def _portrait(message: _Message) -> str:
    ids = [_result_id(message)] if _is(message, "tool") else _call_ids(message)
    return f"{message.get('role')}({', '.join(ids)})" if ids else str(message.get("role"))


def _rule(name: str, *providers: Provider) -> Callable[[_Check], _Check]:
    """Enter a function into `RULES`; what the table says of it is the function's docstring."""

    def enter(check: _Check) -> _Check:
        says, _, source = cleandoc(check.__doc__ or "").partition("\n\n")
        _rules[name] = Rule(name, providers, says, " ".join(source.split()), check)
        return check

    return enter


# Reading a message: whatever is not of the format reads as absent, and a rule of its own reports it.


def _is(message: _Message, *roles: str) -> bool:
    return message.get("role") in roles


def _is_system(message: _Message) -> bool:
    return _is(message, "system", "developer")


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _items(value: object) -> list[Any]:
    return list(cast("Sequence[Any]", value)) if isinstance(value, (list, tuple)) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _parts(message: _Message) -> list[Mapping[str, Any]]:
    return [_mapping(part) for part in _items(message.get("content"))]


def _calls(message: _Message) -> list[Mapping[str, Any]]:
    calls = _items(message.get("tool_calls")) if _is(message, "assistant") else []
    return [_mapping(call) for call in calls]


def _function(call: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(call.get("function"))


def _call_ids(message: _Message) -> list[str]:
    ids = (_text(call.get("id")) for call in _calls(message))
    return [call_id for call_id in ids if call_id]


def _result_id(message: _Message) -> str:
    return _text(message.get("tool_call_id"))


def _each(messages: _Messages, *roles: str) -> Iterator[tuple[int, _Message]]:
    return ((index, message) for index, message in enumerate(messages) if _is(message, *roles))


def _each_call(messages: _Messages) -> Iterator[tuple[int, Mapping[str, Any]]]:
    return ((index, call) for index, message in enumerate(messages) for call in _calls(message))


def _results(messages: _Messages, owner: int) -> range:
    """The positions of the tool messages directly after the message at `owner`."""
    end = owner + 1
    while end < len(messages) and _is(messages[end], "tool"):
        end += 1
    return range(owner + 1, end)


def _rounds(messages: _Messages) -> Iterator[tuple[int, range]]:
    """Each assistant message with calls, and the positions of the tool messages directly after it."""
    for index, message in enumerate(messages):
        if _calls(message):
            yield index, _results(messages, index)


def _speaks_without_content(message: _Message) -> bool:
    """Whether an assistant message needs no content: it calls a tool, refuses, or answers in sound."""
    others = ("tool_calls", "function_call", "refusal", "audio")
    return _is(message, "assistant") and any(message.get(key) for key in others)


def _refusing(patterns: Mapping[Provider, re.Pattern[str]], value: str) -> list[Provider]:
    return [provider for provider, pattern in patterns.items() if not pattern.fullmatch(value)]


# The list and its roles


@_rule("empty-list", *ALL)
def _empty_list(messages: _Messages) -> Iterator[_Finding]:
    """There is at least one message.

    OpenAI: "Invalid 'messages': empty array. Expected an array with minimum length 1"
    https://github.com/CopilotKit/CopilotKit/issues/529
    Gemini: "GenerateContentRequest.contents: contents is not specified"
    https://github.com/vercel/ai/issues/3775
    Anthropic and Bedrock: https://github.com/Arize-ai/phoenix/issues/11338
    Templates read `messages[0]` first: https://github.com/nomic-ai/gpt4all/issues/3273
    """
    if not messages:
        yield _Finding(-1, "no messages")


@_rule("only-system", "anthropic", "gemini", "bedrock")
def _only_system(messages: _Messages) -> Iterator[_Finding]:
    """Something is said beside system messages, which these providers take outside of the list.

    Anthropic: a list of system messages alone sends an empty `messages`
    https://docs.latitude.so/guides/prompt-manager/provider-rules/anthropic
    Gemini: "contents is not specified" https://github.com/vercel/ai/issues/3775
    Bedrock: "A conversation must start with a user message"
    https://github.com/langgenius/dify/issues/12340
    """
    if messages and all(_is_system(message) for message in messages):
        yield _Finding(-1, "nothing but system messages")


@_rule("unknown-role", *ALL)
def _unknown_role(messages: _Messages) -> Iterator[_Finding]:
    """Each role is system, developer, user, assistant or tool.

    OpenAI: https://platform.openai.com/docs/api-reference/chat/create
    Anthropic: "Unexpected role" https://github.com/ianarawjo/ChainForge/issues/271
    Gemini: a role "must be either 'user' or 'model'"
    https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1beta1/Content
    Bedrock: valid values user, assistant
    https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html
    Templates: "Only user and assistant roles are supported, with the exception of an initial optional system
    message!" https://huggingface.co/ogflash/mistral-lora-qa-1bit/blob/main/chat_template.jinja
    """
    for index, message in enumerate(messages):
        if not _is(message, *_KEYS):
            yield _Finding(index, f"role {message.get('role')!r}")


_NAMED: Final = ("role", "content", "name")

_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "system": _NAMED,
    "developer": _NAMED,
    "user": _NAMED,
    "assistant": (*_NAMED, "tool_calls", "function_call", "refusal", "audio"),
    # `name` is not in the reference for tool messages, but OpenAI's own examples send it.
    "tool": (*_NAMED, "tool_call_id"),
}


@_rule("unknown-key", "openai")
def _unknown_key(messages: _Messages) -> Iterator[_Finding]:
    """A message has no keys but those of the format for its role.

    OpenAI: "Additional properties are not allowed ('id' was unexpected) - 'messages.0'"
    https://github.com/transitive-bullshit/agentic/issues/531
    The keys: https://platform.openai.com/docs/api-reference/chat/create
    """
    for index, message in _each(messages, *_KEYS):
        unknown = [key for key in message if key not in _KEYS[message["role"]]]
        if unknown:
            yield _Finding(index, f"a {message['role']} message has no {', '.join(map(repr, unknown))}")


@_rule("system-not-leading", "anthropic", "gemini", "bedrock", "template")
def _system_not_leading(messages: _Messages) -> Iterator[_Finding]:
    """System messages stand before all others.

    Anthropic: "role 'system' is not supported on this model" of every model before Claude Opus 4.8
    https://docs.rs/gproxy-transform/2.5.2/gproxy_transform/transform/common/claude_mid_conv_system/index.html
    and LangChain's adapter of any: "Received multiple non-consecutive system messages."
    https://github.com/JoshuaC215/agent-service-toolkit/issues/280
    Gemini: https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1beta1/Content
    Bedrock: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html
    Templates: "with the exception of an initial optional system message!"
    https://huggingface.co/ogflash/mistral-lora-qa-1bit/blob/main/chat_template.jinja
    """
    leading = True
    for index, message in enumerate(messages):
        leading = leading and _is_system(message)
        if not leading and _is_system(message):
            yield _Finding(index, "a system message after others")


@_rule("many-system", "template")
def _many_system(messages: _Messages) -> Iterator[_Finding]:
    """One system message leads, not several; the APIs take several, or their adapters join them.

    Templates take `messages[0]` alone for the system message and hold any other to be a turn:
    https://github.com/nomic-ai/gpt4all/issues/3273
    """
    for index in range(1, len(messages)):
        if not _is_system(messages[index - 1]):
            return
        if _is_system(messages[index]):
            yield _Finding(index, "a second leading system message")


@_rule("first-not-user", "anthropic", "gemini", "bedrock", "template")
def _first_not_user(messages: _Messages) -> Iterator[_Finding]:
    """The first message after the system messages is a user message.

    Anthropic: 'messages: first message must use the "user" role'
    https://github.com/mckaywrigley/chatbot-ui/issues/1656
    Gemini: "First content should be with role 'user', got model"
    https://github.com/hariiprasad/interviewcopilot/issues/1
    Bedrock: "A conversation must start with a user message."
    https://github.com/langgenius/dify/issues/12340
    Templates: "After the optional system message, conversation roles must alternate user/assistant/..."
    https://github.com/nomic-ai/gpt4all/issues/3273
    """
    first = next((index for index, message in enumerate(messages) if not _is_system(message)), None)
    if first is not None and not _is(messages[first], "user"):
        yield _Finding(first, f"the conversation starts with role {messages[first].get('role')!r}")


@_rule("alternation", "gemini", "bedrock", "template")
def _alternation(messages: _Messages) -> Iterator[_Finding]:
    """User and assistant messages take turns; tool results, and a user message directly after, are one turn.

    Gemini: "Please ensure that multiturn requests alternate between user and model"
    https://github.com/NousResearch/hermes-agent/pull/55623
    and of an assistant text before calls: "Please ensure that function call turn comes immediately after a
    user turn or after a function response turn." https://github.com/google-gemini/gemini-cli/issues/11814
    Bedrock: "A conversation must alternate between user and assistant roles."
    https://github.com/langchain-ai/langchain-aws/issues/130
    Templates: "Conversation roles must alternate user/assistant/user/assistant/..."
    https://github.com/unslothai/unsloth/issues/334
    Not Anthropic: "Consecutive `user` or `assistant` turns in your request will be combined into a single
    turn." https://docs.anthropic.com/en/api/messages
    """
    before: object = None
    for index, message in _each(messages, "user", "assistant", "tool"):
        role = message["role"]
        if role == before != "tool":
            yield _Finding(index, f"two {role} messages in a row")
        before = role


# Content


@_rule("null-content", "openai", "anthropic", "gemini", "bedrock")
def _null_content(messages: _Messages) -> Iterator[_Finding]:
    """Content is there, except where an assistant message calls a tool, refuses, or answers in sound.

    OpenAI: "Invalid value for 'content': expected a string, got null."
    https://github.com/run-llama/llama_index/issues/17555
    Anthropic: a message is "an object with a `role` and `content`" https://docs.anthropic.com/en/api/messages
    Gemini: "contents.parts must not be empty" https://github.com/vercel/ai/issues/3775
    Bedrock: content is required
    https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html
    """
    for index, message in enumerate(messages):
        if message.get("content") is None and not _speaks_without_content(message):
            yield _Finding(index, "content is null or missing")


@_rule("content-shape", "openai", "anthropic", "gemini", "bedrock")
def _content_shape(messages: _Messages) -> Iterator[_Finding]:
    """Content is a string or a list of parts, each an object with a type, and its text a string.

    OpenAI: https://platform.openai.com/docs/api-reference/chat/create
    Anthropic: https://docs.anthropic.com/en/api/messages
    Gemini: https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1beta1/Content
    Bedrock: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html
    """
    for index, message in enumerate(messages):
        content = message.get("content")
        if content is not None and not isinstance(content, (str, list, tuple)):
            yield _Finding(index, f"content is of type {type(content).__name__}")
        if not all(_is_part(part) for part in _parts(message)):
            yield _Finding(index, "a part is no object with a type, or its text no string")


def _is_part(part: Mapping[str, Any]) -> bool:
    known = bool(_text(part.get("type")))
    return known and (part["type"] != "text" or isinstance(part.get("text"), str))


@_rule("empty-content", "anthropic", "gemini", "bedrock")
def _empty_content(messages: _Messages) -> Iterator[_Finding]:
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
    for index, message in _each(messages, "user", "assistant"):
        content = message.get("content")
        text = "" if content in ([], ()) else content
        if isinstance(text, str) and not text.strip() and not _speaks_without_content(message):
            last = index == len(messages) - 1 and _is(message, "assistant")
            yield _Finding(index, "nothing is said", _minding_blank(text, last_answer=last))


@_rule("empty-content-list", "openai")
def _empty_content_list(messages: _Messages) -> Iterator[_Finding]:
    """A list of parts holds at least one.

    OpenAI: `minItems: 1` for the content of every role
    https://github.com/openai/openai-openapi
    """
    for index, message in enumerate(messages):
        if message.get("content") in ([], ()):
            yield _Finding(index, "content is an empty list")


@_rule("empty-text-part", "anthropic", "gemini", "bedrock")
def _empty_text_part(messages: _Messages) -> Iterator[_Finding]:
    """A text part holds text.

    Anthropic: "messages: text content blocks must be non-empty"
    https://github.com/anthropics/claude-code/issues/59812
    Gemini, of no text at all: "required oneof field 'data' must have one initialized field"
    https://github.com/router-for-me/CLIProxyAPI/issues/1292
    Bedrock: "The text field in the ContentBlock object at messages.28.content.1 is blank."
    https://github.com/OpenHands/OpenHands/issues/5339
    """
    for index, message in enumerate(messages):
        for place, part in enumerate(_parts(message)):
            text = part.get("text") if part.get("type") == "text" else None
            if isinstance(text, str) and not text.strip():
                yield _Finding(index, f"part {place} is blank", _minding_blank(text))


def _minding_blank(text: str, *, last_answer: bool = False) -> tuple[Provider, ...]:
    """Who refuses a blank text: Gemini takes white space, and Anthropic an empty last assistant message."""
    if text:
        return ("anthropic", "bedrock")
    return ("gemini", "bedrock") if last_answer else ("anthropic", "gemini", "bedrock")


@_rule("trailing-whitespace", "anthropic")
def _trailing_whitespace(messages: _Messages) -> Iterator[_Finding]:
    """A list that ends with an assistant message does not end with white space.

    Anthropic: "messages: final assistant content cannot end with trailing whitespace"
    https://github.com/langchain-ai/langchain/issues/35071
    """
    for message in messages[-1:]:
        text = _text((_parts(message) or [{}])[-1].get("text")) or _text(message.get("content"))
        if _is(message, "assistant") and not _calls(message) and text != text.rstrip():
            yield _Finding(len(messages) - 1, "the last assistant message ends with white space")


_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@_rule("lone-surrogate", "openai", "anthropic", "gemini", "bedrock")
def _lone_surrogate(messages: _Messages) -> Iterator[_Finding]:
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
            yield _Finding(index, f"lone surrogate {half!a}")


def _strings(value: object) -> Iterator[str]:
    """Every string in a JSON value, keys too."""
    if isinstance(value, str):
        yield value
    for key, inner in _mapping(value).items():
        yield from _strings(key)
        yield from _strings(inner)
    for inner in _items(value):
        yield from _strings(inner)


_PARTICIPANT: Final = re.compile(r"[^\s<|\\/>]+")


@_rule("participant-name", "openai")
def _participant_name(messages: _Messages) -> Iterator[_Finding]:
    r"""A message's name is without white space and without any of `<|\/>`.

    OpenAI: "Invalid 'messages[0].name': string does not match pattern. Expected a string that matches the
    pattern '^[^\s<|\\/>]+$'." The pattern was narrower once, '^[a-zA-Z0-9_-]+$':
    https://github.com/jekalmin/extended_openai_conversation/issues/251
    """
    for index, message in enumerate(messages):
        name = message.get("name")
        if name is not None and not _PARTICIPANT.fullmatch(_text(name)):
            yield _Finding(index, f"name {name!r}")


# Tool calls


@_rule("tool-calls-shape", "openai")
def _tool_calls_shape(messages: _Messages) -> Iterator[_Finding]:
    """Tool calls are a list of functions, each with a name, and with its arguments as JSON text.

    OpenAI: https://platform.openai.com/docs/api-reference/chat/create
    and "Invalid 'messages[69].tool_calls[0].function.name': empty string."
    https://github.com/continuedev/continue/issues/11645
    """
    for index, message in _each(messages, "assistant"):
        calls = message.get("tool_calls")
        if calls is not None and not isinstance(calls, (list, tuple)):
            yield _Finding(index, f"tool_calls is of type {type(calls).__name__}")
        if not all(_is_function_call(call) for call in _calls(message)):
            yield _Finding(index, "a call is no function with a name and arguments as JSON text")


def _is_function_call(call: Mapping[str, Any]) -> bool:
    function = _function(call)
    named = call.get("type") == "function" and bool(_text(function.get("name")))
    return named and isinstance(function.get("arguments"), str)


@_rule("empty-tool-calls", "openai")
def _empty_tool_calls(messages: _Messages) -> Iterator[_Finding]:
    """A list of tool calls holds at least one.

    OpenAI: "Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum length 1"
    https://github.com/openai/openai-node/pull/1341
    """
    for index, message in _each(messages, "assistant"):
        if message.get("tool_calls") in ([], ()):
            yield _Finding(index, "tool_calls is an empty list")


@_rule("missing-call-id", "openai", "anthropic", "bedrock")
def _missing_call_id(messages: _Messages) -> Iterator[_Finding]:
    """Each tool call has an id.

    OpenAI: https://platform.openai.com/docs/api-reference/chat/create
    Anthropic, of an empty id: "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
    https://github.com/anomalyco/opencode/issues/1279
    Bedrock: required, minimum length of 1
    https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolUseBlock.html
    """
    for index, call in _each_call(messages):
        if not _text(call.get("id")):
            yield _Finding(index, f"the call of {_function(call).get('name')!r} has no id")


@_rule("duplicate-call-id", "openai", "anthropic", "bedrock")
def _duplicate_call_id(messages: _Messages) -> Iterator[_Finding]:
    """No two calls of one message have the same id.

    OpenAI, of the results: "Duplicate value for 'tool_call_id' of 'call_X', in messages[7] and messages[8]."
    https://github.com/agno-agi/agno/issues/5116
    Anthropic: "messages.1.content.1: `tool_use` ids must be unique"
    https://github.com/anthropics/claude-code/issues/20901
    Bedrock: "The toolUse blocks at messages.10.content contain duplicate Ids"
    https://github.com/BerriAI/litellm/pull/20049
    """
    for index, message in enumerate(messages):
        for call_id, times in Counter(_call_ids(message)).items():
            if times > 1:
                yield _Finding(index, f"{times} calls have the id {call_id!r}")


@_rule("reused-call-id", "anthropic")
def _reused_call_id(messages: _Messages) -> Iterator[_Finding]:
    """No call has the id of a call in an earlier message.

    Anthropic: "messages.43.content.2: tool_use ids must be unique"
    https://github.com/anthropics/claude-code/issues/28515
    """
    seen: set[str] = set()
    for index, message in enumerate(messages):
        ids = dict.fromkeys(_call_ids(message))
        yield from (_Finding(index, f"id {call_id!r} was used before") for call_id in ids if call_id in seen)
        seen.update(ids)


_CALL_IDS: Final[Mapping[Provider, re.Pattern[str]]] = {
    "openai": re.compile(r".{0,40}", re.DOTALL),
    "anthropic": re.compile(r"[a-zA-Z0-9_-]+"),
    "bedrock": re.compile(r"[a-zA-Z0-9_.:-]{1,64}"),
}


@_rule("call-id-pattern", "openai", "anthropic", "bedrock")
def _call_id_pattern(messages: _Messages) -> Iterator[_Finding]:
    """A call's id is of the provider's alphabet and length.

    OpenAI: "Invalid 'messages[36].tool_calls[0].id': string too long. Expected a string with maximum length
    40" https://github.com/vercel/ai/issues/8132
    Anthropic: "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
    https://github.com/anomalyco/opencode/issues/1279
    Bedrock: `[a-zA-Z0-9_.:-]+`, 1 to 64 characters
    https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolUseBlock.html
    """
    for index, message in enumerate(messages):
        for call_id in _call_ids(message):
            yield _Finding(index, f"id {call_id!r}", _refusing(_CALL_IDS, call_id))


_FUNCTION_NAMES: Final[Mapping[Provider, re.Pattern[str]]] = {
    "openai": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    "anthropic": re.compile(r"[a-zA-Z0-9_-]{1,128}"),
    "bedrock": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
}


@_rule("function-name", "openai", "anthropic", "bedrock")
def _function_name(messages: _Messages) -> Iterator[_Finding]:
    """The name of a called function is of letters, digits, `_` and `-`, and short.

    OpenAI: "Must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64."
    https://platform.openai.com/docs/api-reference/chat/create
    Anthropic, up to 128 characters: https://github.com/aws-samples/sample-apj-sup-sa/pull/137
    Bedrock: "toolUse.name' failed to satisfy constraint: Member must have length less than or equal to 64"
    https://github.com/openclaw/openclaw/issues/12892
    """
    for index, call in _each_call(messages):
        name = _text(_function(call).get("name"))
        yield _Finding(index, f"function {name!r}", _refusing(_FUNCTION_NAMES, name))


@_rule("arguments-not-object", "anthropic", "gemini", "bedrock")
def _arguments_not_object(messages: _Messages) -> Iterator[_Finding]:
    """A call's arguments are the text of a JSON object, which is what these providers are sent.

    Anthropic: "tool_use.input: Input should be a valid dictionary"
    https://github.com/anthropics/claude-code/issues/6696
    Gemini: args are "parameters and their values", a Struct
    https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1beta1/Content
    Bedrock: "toolUse.input is invalid. Provide a json object." is its error for the field of
    https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolUseBlock.html
    """
    for index, call in _each_call(messages):
        arguments = _function(call).get("arguments")
        if isinstance(arguments, str) and not _is_object(arguments):
            yield _Finding(index, f"arguments {arguments[:80]!r}")


def _is_object(text: str) -> bool:
    try:
        loaded: object = json.loads(text)
        json.dumps(loaded, allow_nan=False)  # NaN is Python's JSON and no provider's
    except (ValueError, RecursionError):
        return False
    return isinstance(loaded, dict)


# Tool results


@_rule("unanswered-call", "openai", "anthropic", "gemini", "bedrock")
def _unanswered_call(messages: _Messages) -> Iterator[_Finding]:
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
    for owner, results in _rounds(messages):
        answered = {_result_id(messages[index]) for index in results}
        waiting = [call_id for call_id in _call_ids(messages[owner]) if call_id not in answered]
        if waiting:
            yield _Finding(owner, f"no result directly after for {', '.join(map(repr, waiting))}")


@_rule("orphan-result", "openai", "anthropic", "gemini", "bedrock")
def _orphan_result(messages: _Messages) -> Iterator[_Finding]:
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
    owned = {index for _, results in _rounds(messages) for index in results}
    for index, message in _each(messages, "tool"):
        if index not in owned:
            yield _Finding(index, f"the result for {_result_id(message)!r} follows no call")


@_rule("missing-result-id", "openai", "anthropic", "bedrock")
def _missing_result_id(messages: _Messages) -> Iterator[_Finding]:
    """A tool message names the call that it answers.

    OpenAI: "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'."
    https://github.com/langchain-ai/langchain/issues/22600
    Anthropic: https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls
    Bedrock: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolResultBlock.html
    """
    for index, message in _each(messages, "tool"):
        if not _result_id(message):
            yield _Finding(index, "no tool_call_id")


@_rule("unknown-result-id", "openai", "anthropic", "gemini", "bedrock")
def _unknown_result_id(messages: _Messages) -> Iterator[_Finding]:
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
    for owner, results in _rounds(messages):
        asked = {"", *_call_ids(messages[owner])}
        for index in results:
            if _result_id(messages[index]) not in asked:
                yield _Finding(index, f"{_result_id(messages[index])!r} is no call of messages[{owner}]")


@_rule("duplicate-result", "openai", "anthropic", "gemini", "bedrock")
def _duplicate_result(messages: _Messages) -> Iterator[_Finding]:
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
    for owner, results in _rounds(messages):
        open_calls = Counter(_call_ids(messages[owner]))
        for index in results:
            call_id = _result_id(messages[index])
            if call_id in open_calls and not open_calls[call_id]:
                yield _Finding(index, f"another result for {call_id!r}")
            open_calls[call_id] -= call_id in open_calls


# Thinking

_THINKING: Final = ("thinking", "redacted_thinking")


@_rule("thinking-not-first", "anthropic")
def _thinking_not_first(messages: _Messages) -> Iterator[_Finding]:
    """Where an answer to the last user message thinks, its first assistant message starts with thinking.

    Anthropic: "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled,
    a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use`
    and `tool_result` blocks)." https://github.com/anomalyco/opencode/issues/3077
    """
    asked = max((index for index, _ in _each(messages, "user")), default=-1)
    answers = [(index, message) for index, message in _each(messages, "assistant") if index > asked]
    kinds = [[part.get("type") for part in _parts(message)] for _, message in answers]
    thinks = any(kind in _THINKING for part_kinds in kinds for kind in part_kinds)
    if thinks and not any(kind in _THINKING for kind in kinds[0][:1]):
        yield _Finding(answers[0][0], "the answer thinks later, but does not start with a thinking block")


@_rule("thinking-signature", "anthropic")
def _thinking_signature(messages: _Messages) -> Iterator[_Finding]:
    """A thinking block carries its signature.

    Anthropic: "thinking.signature: Field required"
    https://github.com/WordPress/ai-provider-for-anthropic/pull/27
    """
    for index, message in enumerate(messages):
        thinking = (part for part in _parts(message) if part.get("type") == "thinking")
        if not all(_text(part.get("signature")) for part in thinking):
            yield _Finding(index, "a thinking block without signature")


@_rule("final-thinking", "anthropic")
def _final_thinking(messages: _Messages) -> Iterator[_Finding]:
    """A list does not end with a thinking block.

    Anthropic: "messages.N: The final block in an assistant message cannot be `thinking`."
    https://github.com/router-for-me/CLIProxyAPI/issues/5321
    """
    for message in messages[-1:]:
        last = [part.get("type") for part in _parts(message)[-1:]]
        if not _calls(message) and any(kind in _THINKING for kind in last):
            yield _Finding(len(messages) - 1, "the last block is thinking")
