"""Decides which rules hold for a list and its roles: who may speak, first, and after whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from slidemem.check.reading import each, is_system, speaks
from slidemem.check.rule import ALL, Finding, Listed, Room

ROLES: Final = Room()


@ROLES.rule("empty-list", *ALL)
def _empty_list(messages: Listed) -> Iterator[Finding]:
    """There is at least one message.

    OpenAI: "Invalid 'messages': empty array. Expected an array with minimum length 1"
    https://github.com/CopilotKit/CopilotKit/issues/529
    Gemini: "GenerateContentRequest.contents: contents is not specified"
    https://github.com/vercel/ai/issues/3775
    Anthropic and Bedrock: https://github.com/Arize-ai/phoenix/issues/11338
    Templates read `messages[0]` first: https://github.com/nomic-ai/gpt4all/issues/3273
    """
    if not messages:
        yield Finding(-1, "no messages")


@ROLES.rule("only-system", "anthropic", "gemini", "bedrock")
def _only_system(messages: Listed) -> Iterator[Finding]:
    """Something is said beside system messages, which these providers take outside of the list.

    Anthropic: a list of system messages alone sends an empty `messages`
    https://docs.latitude.so/guides/prompt-manager/provider-rules/anthropic
    Gemini: "contents is not specified" https://github.com/vercel/ai/issues/3775
    Bedrock: "A conversation must start with a user message"
    https://github.com/langgenius/dify/issues/12340
    """
    if messages and all(is_system(message) for message in messages):
        yield Finding(-1, "nothing but system messages")


@ROLES.rule("unknown-role", *ALL)
def _unknown_role(messages: Listed) -> Iterator[Finding]:
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
        if not speaks(message, *_KEYS):
            yield Finding(index, f"role {message.get('role')!r}")


_NAMED: Final = ("role", "content", "name")

_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "system": _NAMED,
    "developer": _NAMED,
    "user": _NAMED,
    "assistant": (*_NAMED, "tool_calls", "function_call", "refusal", "audio"),
    # `name` is not in the reference for tool messages, but OpenAI's own examples send it.
    "tool": (*_NAMED, "tool_call_id"),
}


@ROLES.rule("unknown-key", "openai")
def _unknown_key(messages: Listed) -> Iterator[Finding]:
    """A message has no keys but those of the format for its role.

    OpenAI: "Additional properties are not allowed ('id' was unexpected) - 'messages.0'"
    https://github.com/transitive-bullshit/agentic/issues/531
    The keys: https://platform.openai.com/docs/api-reference/chat/create
    """
    for index, message in each(messages, *_KEYS):
        unknown = [key for key in message if key not in _KEYS[message["role"]]]
        if unknown:
            yield Finding(index, f"a {message['role']} message has no {', '.join(map(repr, unknown))}")


@ROLES.rule("system-not-leading", "anthropic", "gemini", "bedrock", "template")
def _system_not_leading(messages: Listed) -> Iterator[Finding]:
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
        leading = leading and is_system(message)
        if not leading and is_system(message):
            yield Finding(index, "a system message after others")


@ROLES.rule("many-system", "template")
def _many_system(messages: Listed) -> Iterator[Finding]:
    """One system message leads, not several; the APIs take several, or their adapters join them.

    Templates take `messages[0]` alone for the system message and hold any other to be a turn:
    https://github.com/nomic-ai/gpt4all/issues/3273
    """
    for index in range(1, len(messages)):
        if not is_system(messages[index - 1]):
            return
        if is_system(messages[index]):
            yield Finding(index, "a second leading system message")


@ROLES.rule("first-not-user", "anthropic", "gemini", "bedrock", "template")
def _first_not_user(messages: Listed) -> Iterator[Finding]:
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
    first = next((index for index, message in enumerate(messages) if not is_system(message)), None)
    if first is not None and not speaks(messages[first], "user"):
        yield Finding(first, f"the conversation starts with role {messages[first].get('role')!r}")


@ROLES.rule("alternation", "gemini", "bedrock", "template")
def _alternation(messages: Listed) -> Iterator[Finding]:
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
    for index, message in each(messages, "user", "assistant", "tool"):
        role = message["role"]
        if role == before != "tool":
            yield Finding(index, f"two {role} messages in a row")
        before = role
