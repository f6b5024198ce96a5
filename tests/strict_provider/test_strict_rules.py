"""The strict provider: each rule has a request that is refused for it, and one beside it that is answered."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from strict_provider import Ledger, StrictProvider, directive, running
from strict_provider.anthropic_messages import AnthropicMessages
from strict_provider.bedrock import Bedrock
from strict_provider.gemini import Gemini
from strict_provider.openai_chat import OpenAIChat, Template
from strict_provider.openai_responses import OpenAIResponses
from strict_provider.wire import Dialect, Refused, signed

Body = dict[str, Any]

ARGS = {"to": "Pune"}


# ------------------------------------------------------------------ OpenAI


def chat(*messages: Body, **more: Any) -> Body:
    """A request of chat completions."""
    return {"model": "gpt-4o", "messages": list(messages), **more}


def user(content: Any = "When does it leave?", **more: Any) -> Body:
    """A user message, of OpenAI and of Anthropic."""
    return {"role": "user", "content": content, **more}


def said(content: Any = "At nine.") -> Body:
    """An assistant message, of OpenAI and of Anthropic."""
    return {"role": "assistant", "content": content}


def calling(*ids: str, content: Any = None) -> Body:
    """An assistant message that calls."""
    function = {"name": "trains", "arguments": json.dumps(ARGS)}
    return {**said(content), "tool_calls": [{"id": id_, "type": "function", "function": function} for id_ in ids]}


def result(id_: str = "c1", content: Any = "9:00") -> Body:
    """A tool message."""
    return {"role": "tool", "tool_call_id": id_, "content": content}


SYSTEM = {"role": "system", "content": "Be brief."}

CHAT: list[tuple[str, Body]] = [
    ("empty-list", chat()),
    ("model", {"messages": [user()]}),
    ("unknown-role", chat(user(), {"role": "model", "content": "At nine."})),
    ("unknown-key", chat(user(id="m1"))),
    ("null-content", chat(user(None))),
    ("empty-content-list", chat(user([]))),
    ("part-type", chat(user(), said([{"type": "thinking", "thinking": "Hm."}]))),
    ("part-type", chat(user([{"type": "image", "source": {}}]))),
    ("unanswered-call", chat(user(), calling("c1"), user("And?"))),
    ("unanswered-call", chat(user(), calling("c1", "c2"), result("c1"))),
    ("orphan-result", chat(user(), result())),
    ("unknown-result-id", chat(user(), calling("c1"), result("c1"), result("c9"))),
    ("duplicate-result", chat(user(), calling("c1"), result("c1"), result("c1"))),
    ("empty-tool-calls", chat(user(), {**said(), "tool_calls": []})),
    ("call-id-pattern", chat(user(), calling("c" * 41), result("c" * 41))),
    ("participant-name", chat(user(name="A B"))),
]
TEMPLATE: list[tuple[str, Body]] = [
    ("model", {"messages": [user()]}),
    ("empty-list", chat()),
    ("system-role", chat(SYSTEM, user())),
    ("tool-role", chat(user(), calling("c1"), result())),
    ("no-text", chat(user(""))),
    ("first-not-user", chat(said(), user())),
    ("alternation", chat(user(), user("And?"))),
    ("alternation", chat(user(), said(), said("Or ten."), user())),
]

# ------------------------------------------------------------------ responses


def responses(*items: Body, **more: Any) -> Body:
    """A request of responses."""
    return {"model": "gpt-5", "input": list(items), **more}


def item_call(id_: str = "c1", **more: Any) -> Body:
    """A call as an item."""
    return {"type": "function_call", "call_id": id_, "name": "trains", "arguments": json.dumps(ARGS), **more}


def item_output(id_: str = "c1") -> Body:
    """Its output."""
    return {"type": "function_call_output", "call_id": id_, "output": "9:00"}


def item_thought(**more: Any) -> Body:
    """A thought as an item."""
    return {"type": "reasoning", "id": "rs_7", "summary": [], **more}


RESPONSES: list[tuple[str, Body]] = [
    ("model", {"input": "hi"}),
    ("stored", responses(user(), previous_response_id="resp_1")),
    ("empty-list", responses()),
    ("item-type", responses(user(), {"type": "thinking"})),
    ("part-type", responses(user([{"type": "text", "text": "hi"}]))),
    ("part-type", responses(user(), said([{"type": "input_text", "text": "At nine."}]), user())),
    ("missing-output", responses(user(), item_call(), user("And?"))),
    ("orphan-output", responses(user(), item_output())),
    ("duplicate-output", responses(user(), item_call(), item_output(), item_output())),
    ("duplicate-item", responses(user(), item_thought(), item_thought(), item_call(), item_output())),
    ("reasoning-without-item", responses(user(), item_thought())),
    ("reasoning-without-item", responses(user(), item_thought(), user("And?"))),
    ("item-without-reasoning", responses(user(), item_call(id="fc_7_0_thought"), item_output())),
    ("encrypted-content", responses(user(), item_thought(encrypted_content="x"), item_call(), item_output())),
]

# ------------------------------------------------------------------ Anthropic

TOOLS = [{"name": "trains", "description": "Trains.", "input_schema": {"type": "object"}}]


def claude(*messages: Body, **more: Any) -> Body:
    """A request of messages."""
    return {"model": "claude", "max_tokens": 64, "messages": list(messages), "tools": TOOLS, **more}


def use(id_: str = "t1", **more: Any) -> Body:
    """A call as a block."""
    return {"type": "tool_use", "id": id_, "name": "trains", "input": ARGS, **more}


def used(id_: str = "t1", **more: Any) -> Body:
    """Its result."""
    return {"type": "tool_result", "tool_use_id": id_, "content": "9:00", **more}


def thought(**more: Any) -> Body:
    """A signed thought."""
    return {"type": "thinking", "thinking": "Hm.", "signature": signed("Hm."), **more}


TEXT = {"type": "text", "text": "And?"}
THINKING = {"type": "enabled", "budget_tokens": 1024}
MARK = {"cache_control": {"type": "ephemeral"}}

CLAUDE: list[tuple[str, Body]] = [
    ("model", {"max_tokens": 1, "messages": [user()]}),
    ("max-tokens", {"model": "claude", "messages": [user()]}),
    ("empty-list", claude()),
    ("only-system", claude(system="Be brief.")),
    ("unknown-role", claude(SYSTEM, user())),
    ("unknown-key", claude(user(name="Asha"))),
    ("null-content", claude(user(None))),
    ("empty-text-part", claude(user(" "))),
    ("empty-content", claude(user([]))),
    ("first-not-user", claude(said(), user())),
    ("block-type", claude(user([use()]))),
    ("block-type", claude(user(), said([{"type": "image_url"}]))),
    ("unanswered-call", claude(user(), said([use()]), user())),
    ("unanswered-call", claude(user(), said([use(), use("t2")]), user([used()]))),
    ("orphan-result", claude(user(), said(), user([used()]))),
    ("duplicate-result", claude(user(), said([use()]), user([used(), used()]))),
    ("duplicate-call-id", claude(user(), said([use(), use()]), user([used()]))),
    ("reused-call-id", claude(user(), said([use()]), user([used()]), said([use()]), user([used()]))),
    ("call-id-pattern", claude(user(), said([use("t 1")]), user([used("t 1")]))),
    ("results-first", claude(user(), said([use()]), user([TEXT, used()]))),
    ("tools-undefined", claude(user(), said([use()]), user([used()]), tools=[])),
    ("arguments-not-object", claude(user(), said([use(input="Pune")]), user([used()]))),
    ("signature", claude(user(), said([thought(signature="x"), use()]), user([used()]), thinking=THINKING)),
    ("signature", claude(user(), said([thought(thinking="Ho."), use()]), user([used()]))),
    (
        "thinking-not-first",
        claude(user(), said([use()]), user([used()]), said([thought(), use("t2")]), user([used("t2")])),
    ),
    (
        "thinking-first",
        claude(
            user(),
            said([thought(), use()]),
            user([used()]),
            said([use("t2")]),
            user([used("t2")]),
            thinking=THINKING,
        ),
    ),
    ("final-thinking", claude(user(), said([thought(), TEXT, thought()]))),
    ("trailing-whitespace", claude(user(), said("At "))),
    ("marks", claude(*(user([{**TEXT, **MARK}]) for _ in range(5)))),
]

# ------------------------------------------------------------------ Gemini


def gemini(*contents: Body, **more: Any) -> Body:
    """A request of generateContent."""
    return {"contents": list(contents), **more}


def content(role: str, *parts: Body) -> Body:
    """A content."""
    return {"role": role, "parts": list(parts)}


def function(**more: Any) -> Body:
    """A call as a part, with its signature."""
    return {
        "functionCall": {"name": "trains", "args": ARGS},
        "thoughtSignature": signed("trains" + json.dumps(ARGS, separators=(",", ":"))),
        **more,
    }


RESPONSE = {"functionResponse": {"name": "trains", "response": {"output": "9:00"}}}
OTHER = {"functionResponse": {"name": "planes", "response": {}}}
HI = content("user", {"text": "When?"})

GEMINI: list[tuple[str, Body]] = [
    ("empty-list", gemini()),
    ("only-system", gemini(systemInstruction={"parts": [{"text": "Be brief."}]})),
    ("unknown-role", gemini(content("assistant", {"text": "hi"}))),
    ("empty-parts", gemini(content("user"))),
    ("part-data", gemini(content("user", {"text": ""}))),
    ("first-not-user", gemini(content("model", {"text": "hi"}), HI)),
    ("alternation", gemini(HI, HI)),
    ("unanswered-call", gemini(HI, content("model", function()), HI)),
    ("unanswered-call", gemini(HI, content("model", function(), function()), content("user", RESPONSE))),
    ("orphan-result", gemini(HI, content("model", {"text": "hi"}), content("user", RESPONSE))),
    ("response-turn", gemini(HI, content("model", function()), content("user", RESPONSE, OTHER))),
    (
        "thought-signature",
        gemini(HI, content("model", function(thoughtSignature=None)), content("user", RESPONSE)),
    ),
    (
        "corrupt-signature",
        gemini(HI, content("model", function(thoughtSignature="x")), content("user", RESPONSE)),
    ),
]

# ------------------------------------------------------------------ Bedrock

CONFIG = {"tools": [{"toolSpec": {"name": "trains", "inputSchema": {"json": {}}}}]}


def converse(*messages: Body, **more: Any) -> Body:
    """A request of converse."""
    return {"messages": list(messages), "toolConfig": CONFIG, **more}


def turn(role: str, *blocks: Body) -> Body:
    """A message."""
    return {"role": role, "content": list(blocks)}


def tool_use(id_: str = "t1") -> Body:
    """A call as a block."""
    return {"toolUse": {"toolUseId": id_, "name": "trains", "input": ARGS}}


def tool_result(id_: str = "t1") -> Body:
    """Its result."""
    return {"toolResult": {"toolUseId": id_, "content": [{"text": "9:00"}]}}


ASK, TELL = turn("user", {"text": "When?"}), turn("assistant", {"text": "At nine."})
FORGED = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "x"}}}

BEDROCK: list[tuple[str, Body]] = [
    ("empty-list", converse()),
    ("only-system", converse(system=[{"text": "Be brief."}])),
    ("unknown-role", converse(turn("system", {"text": "Be brief."}))),
    ("empty-content", converse(turn("user"))),
    ("empty-text-part", converse(turn("user", {"text": " "}))),
    ("first-not-user", converse(TELL, ASK)),
    ("alternation", converse(ASK, ASK)),
    ("block-type", converse(turn("user", {"type": "text", "words": "hi"}))),
    ("block-role", converse(turn("user", tool_use()))),
    ("block-role", converse(ASK, turn("assistant", tool_result()))),
    ("unanswered-call", converse(ASK, turn("assistant", tool_use()), ASK)),
    ("orphan-result", converse(ASK, TELL, turn("user", tool_result()))),
    (
        "unknown-result-id",
        converse(ASK, turn("assistant", tool_use()), turn("user", tool_result(), tool_result("t9"))),
    ),
    ("duplicate-result", converse(ASK, turn("assistant", tool_use()), turn("user", tool_result(), tool_result()))),
    ("duplicate-call-id", converse(ASK, turn("assistant", tool_use(), tool_use()), turn("user", tool_result()))),
    ("call-id-pattern", converse(ASK, turn("assistant", tool_use("t" * 65)), turn("user", tool_result("t" * 65)))),
    ("tools-undefined", converse(ASK, turn("assistant", tool_use()), turn("user", tool_result()), toolConfig={})),
    ("signature", converse(ASK, turn("assistant", FORGED, tool_use()), turn("user", tool_result()))),
]

# ------------------------------------------------------------------ the tests

PATHS = {
    "openai": "/v1/chat/completions",
    "template": "/template/v1/chat/completions",
    "responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/gemini-2.5-flash:generateContent",
    "bedrock": "/model/claude-v1:0/converse",
}
DIALECTS: dict[str, Dialect] = {
    "openai": OpenAIChat(),
    "template": Template(),
    "responses": OpenAIResponses(),
    "anthropic": AnthropicMessages(),
    "gemini": Gemini(),
    "bedrock": Bedrock(),
}
BROKEN = {
    "openai": CHAT,
    "template": TEMPLATE,
    "responses": RESPONSES,
    "anthropic": CLAUDE,
    "gemini": GEMINI,
    "bedrock": BEDROCK,
}
THOUGHTFUL = [said([thought(), use()]), user([used(), TEXT]), said([thought(), use("t2")]), user([used("t2")])]
TWICE = [turn("assistant", tool_use(), tool_use("t2")), turn("user", tool_result("t2"), tool_result())]
WHOLE: dict[str, list[Body]] = {
    "openai": [chat(SYSTEM, user(), calling("c1", "c2"), result(), result("c2"), said(), user(), user("And?"))],
    "template": [chat(user(), said(), user())],
    "responses": [
        responses(user(), item_call(), item_call("c2"), item_output("c2"), item_output(), user("And?")),
        responses(
            user(),
            item_thought(encrypted_content=signed("")),
            item_call(id="fc_7_0_thought"),
            item_output(),
        ),
    ],
    "anthropic": [
        claude(user(), *THOUGHTFUL, thinking=THINKING),
        claude(user(), user("And?"), said([use()]), user([used()]), thinking=THINKING),
    ],
    "gemini": [
        gemini(
            HI,
            content("model", function(), function(thoughtSignature=None)),
            content("user", RESPONSE, RESPONSE),
        )
    ],
    "bedrock": [converse(ASK, *TWICE)],
}


@pytest.mark.parametrize(
    "dialect, rule, body",
    [(name, rule, body) for name, rows in BROKEN.items() for rule, body in rows],
)
def test_a_request_that_breaks_a_rule_is_refused_for_it(dialect: str, rule: str, body: Body) -> None:
    """The rule that a request breaks is the one that its refusal names."""
    with pytest.raises(Refused) as refused:
        DIALECTS[dialect].read(body, PATHS[dialect])

    assert rule == refused.value.rule


@pytest.mark.parametrize("dialect, body", [(name, body) for name, rows in WHOLE.items() for body in rows])
def test_a_request_that_breaks_none_is_read(dialect: str, body: Body) -> None:
    """A request beside them, with everything in its place, is taken."""
    asked = DIALECTS[dialect].read(body, PATHS[dialect])

    assert "user" in {message["role"] for message in asked.messages}
    assert asked.blocks


@pytest.fixture(scope="module")
def served(vocabulary: object) -> Iterator[StrictProvider]:
    """A server for the tests of this file."""
    with running() as provider:
        yield provider


@pytest.fixture
def provider(served: StrictProvider) -> StrictProvider:
    """The server, as new."""
    served.clear(limit=8000)
    return served


def post(provider: StrictProvider, path: str, body: Body) -> tuple[int, Any, dict[str, str]]:
    """Send a request: the status, the answer, and its headers."""
    request = urllib.request.Request(  # noqa: S310  # loopback
        provider.url + path, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310  # loopback
            return answer.status, json.load(answer), dict(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error), dict(error.headers)


@pytest.mark.parametrize(
    "dialect, error",
    [
        ("openai", ["error", "message"]),
        ("template", ["error", "message"]),
        ("responses", ["error", "message"]),
        ("anthropic", ["error", "message"]),
        ("gemini", ["error", "message"]),
        ("bedrock", ["message"]),
    ],
)
def test_a_refusal_has_the_providers_own_body(provider: StrictProvider, dialect: str, error: list[str]) -> None:
    """Over HTTP a refusal is a 400 with the dialect's own error object, and is noted."""
    rule, body = BROKEN[dialect][-1]

    status, told, _ = post(provider, PATHS[dialect], body)

    for key in error:
        told = told[key]
    assert 400 == status
    assert told.endswith(f"({rule})")
    assert [rule] == [line.split(": ")[1] for line in provider.refused]


@pytest.mark.parametrize("dialect", PATHS)
def test_a_prompt_over_the_limit_is_refused(provider: StrictProvider, dialect: str) -> None:
    """A prompt of more tokens than the model takes in is refused, one at the limit is not."""
    body = WHOLE[dialect][0]
    _, _, _ = post(provider, PATHS[dialect], body)
    tokens = provider.served[-1].usage.prompt

    provider.clear(limit=tokens)
    at_limit = post(provider, PATHS[dialect], body)[0]
    provider.clear(limit=tokens - 1)
    over = post(provider, PATHS[dialect], body)[0]

    assert (200, 400) == (at_limit, over)
    assert ["context-length"] == [line.split(": ")[1] for line in provider.refused]


def long(words: int) -> str:
    """A text of some tokens."""
    return " ".join(f"word{n}" for n in range(words))


def test_openai_keeps_prefixes_by_itself(provider: StrictProvider) -> None:
    """What an earlier prompt began with is reported, from 1,024 tokens on, in steps of 128."""
    first = chat(user(long(700)))
    _, told, _ = post(provider, PATHS["openai"], first)
    _, again, _ = post(provider, PATHS["openai"], chat(user(long(700)), said(), user("And back?")))

    shared = told["usage"]["prompt_tokens"] // 128 * 128
    assert 0 == told["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert shared == again["usage"]["prompt_tokens_details"]["cached_tokens"] > 1024


@pytest.mark.parametrize("marked", [False, True])
def test_anthropic_keeps_what_is_marked(provider: StrictProvider, *, marked: bool) -> None:
    """A prefix is read again where an earlier prompt marked its end, and only there."""
    block = {"type": "text", "text": long(700), **(MARK if marked else {})}
    last = {**TEXT, **MARK} if marked else TEXT
    _, first, _ = post(provider, PATHS["anthropic"], claude(user([block])))
    _, again, _ = post(provider, PATHS["anthropic"], claude(user([block]), said(), user([last])))

    written = first["usage"]["cache_creation_input_tokens"]
    assert marked == (written > 1024)
    assert written == again["usage"]["cache_read_input_tokens"]


def test_another_tokenizer_counts_more(provider: StrictProvider) -> None:
    """A server whose tokenizer makes 1.35 tokens of one counts so, frames left as they are."""
    body = chat(user(long(700)))
    _, plain, _ = post(provider, PATHS["openai"], body)
    provider.clear(ledger=Ledger(1.35))
    _, dear, _ = post(provider, PATHS["openai"], body)

    words = plain["usage"]["prompt_tokens"] - 4
    assert round(words * 1.35) + 4 == dear["usage"]["prompt_tokens"]


def test_the_last_directive_counts(provider: StrictProvider) -> None:
    """What is quoted before the newest message's own directive asks for nothing."""
    tools = [{"type": "function", "function": {"name": "trains", "parameters": {}}}]
    quoted = f"earlier: {directive(tools=3, rounds=1)} now: {directive()}"
    _, plain, _ = post(provider, PATHS["openai"], chat(user(quoted), tools=tools))
    _, called, _ = post(provider, PATHS["openai"], chat(user(directive(tools=2, rounds=1)), tools=tools))

    assert "tool_calls" not in plain["choices"][0]["message"]
    assert 2 == len(called["choices"][0]["message"]["tool_calls"])
