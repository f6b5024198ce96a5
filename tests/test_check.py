from __future__ import annotations

import copy
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slidemem.check import ALL, RULES, Provider, Violation, assert_valid, violations

Message = dict[str, Any]

APIS: tuple[Provider, ...] = ("openai", "anthropic", "gemini", "bedrock")
STRICT: tuple[Provider, ...] = ("anthropic", "gemini", "bedrock", "template")
OBJECTS: tuple[Provider, ...] = ("anthropic", "gemini", "bedrock")
WITH_IDS: tuple[Provider, ...] = ("openai", "anthropic", "bedrock")


def system(content: Any = "Be brief.", **more: Any) -> Message:
    """A system message."""
    return {"role": "system", "content": content, **more}


def user(content: Any = "When does the train leave?", **more: Any) -> Message:
    """A user message."""
    return {"role": "user", "content": content, **more}


def answer(content: Any = "At nine.", **more: Any) -> Message:
    """An assistant message."""
    return {"role": "assistant", "content": content, **more}


def call(call_id: Any = "call_1", name: Any = "trains", arguments: Any = '{"to": "Pune"}') -> Message:
    """A call of a tool."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calling(*calls: Any, content: Any = None, **more: Any) -> Message:
    """An assistant message with calls, one if none is given."""
    return {"role": "assistant", "content": content, "tool_calls": list(calls or (call(),)), **more}


def result(call_id: Any = "call_1", content: Any = "9:00", **more: Any) -> Message:
    """A tool message."""
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def text(content: Any = "At nine.") -> Message:
    """A text part."""
    return {"type": "text", "text": content}


def thought(**more: Any) -> Message:
    """A signed thinking part."""
    return {"type": "thinking", "thinking": "Look it up.", "signature": "c2lnbmVk", **more}


def image() -> Message:
    """An image part."""
    return {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


def without(message: Message, key: str) -> Message:
    """A copy of a message that lacks one key."""
    return {name: value for name, value in message.items() if name != key}


def said(found: list[Violation]) -> list[tuple[int, str, tuple[Provider, ...]]]:
    """What a test compares of violations."""
    return [(violation.index, violation.rule, violation.provider) for violation in found]


class Row(NamedTuple):
    name: str
    bad: list[Message]
    mended: list[Message]
    expected: list[tuple[int, str, tuple[Provider, ...]]]


ROWS = [
    Row("no message", [], [user()], [(-1, "empty-list", ALL)]),
    Row("system alone", [system()], [system(), user()], [(-1, "only-system", OBJECTS)]),
    Row(
        "a legacy role",
        [user(), calling(), result(), {"role": "function", "content": "9:00", "name": "trains"}, answer()],
        [user(), calling(), result(), answer()],
        [(3, "unknown-role", ALL)],
    ),
    Row(
        "a role that is no name",
        [user(), {"role": ["user"], "content": "Hello?"}],
        [user()],
        [(1, "unknown-role", ALL)],
    ),
    Row(
        "a key of the host's own",
        [user(id="m-1", seq=3)],
        [user(name="alice")],
        [(0, "unknown-key", ("openai",))],
    ),
    Row(
        "calls by a user",
        [user(tool_calls=[call()])],
        [user()],
        [(0, "unknown-key", ("openai",))],
    ),
    Row(
        "system in the middle",
        [user(), answer(), {"role": "developer", "content": "Be kind."}, user()],
        [{"role": "developer", "content": "Be kind."}, user(), answer(), user()],
        [(2, "system-not-leading", STRICT)],
    ),
    Row(
        "two and three system messages",
        [system(), {"role": "developer", "content": "Be kind."}, system("Be quick."), user()],
        [system("Be kind and quick."), user()],
        [(1, "many-system", ("template",)), (2, "many-system", ("template",))],
    ),
    Row(
        "an answer first",
        [system(), answer(), user()],
        [system(), user(), answer(), user()],
        [(1, "first-not-user", STRICT)],
    ),
    Row(
        "two user messages",
        [user(), user("And back?")],
        [user(), answer(), user("And back?")],
        [(1, "alternation", ("gemini", "bedrock", "template"))],
    ),
    Row(
        "a text before its calls",
        [user(), answer("Let me look."), calling(), result()],
        [user(), calling(content="Let me look."), result()],
        [(2, "alternation", ("gemini", "bedrock", "template"))],
    ),
    Row("a user's null", [user(None)], [user()], [(0, "null-content", APIS)]),
    Row(
        "a result's null",
        [user(), calling(), without(result(), "content")],
        [user(), calling(), result(content="")],
        [(2, "null-content", APIS)],
    ),
    Row(
        "an answer's null",
        [user(), answer(None), user("Well?")],
        [user(), answer(None, refusal="I may not."), user("Well?")],
        [(1, "null-content", APIS)],
    ),
    Row("a number", [user(9)], [user("9")], [(0, "content-shape", APIS)]),
    Row("a string for a part", [user(["9"])], [user([text("9")])], [(0, "content-shape", APIS)]),
    Row(
        "a part without text",
        [user([{"type": "text"}])],
        [user((text("9"),))],
        [(0, "content-shape", APIS)],
    ),
    Row("nothing", [user("")], [user("?")], [(0, "empty-content", OBJECTS)]),
    Row("white space", [user(" \n")], [user("?")], [(0, "empty-content", ("anthropic", "bedrock"))]),
    Row(
        "an empty answer",
        [user(), answer(""), user()],
        [user(), answer(), user()],
        [(1, "empty-content", OBJECTS)],
    ),
    Row(
        "an empty last answer",
        [user(), answer("")],
        [user(), answer("At")],
        [(1, "empty-content", ("gemini", "bedrock"))],
    ),
    Row(
        "no part",
        [user([])],
        [user([text()])],
        [(0, "empty-content", OBJECTS), (0, "empty-content-list", ("openai",))],
    ),
    Row(
        "a result of no part",
        [user(), calling(), result(content=[])],
        [user(), calling(), result(content=[text("9:00")])],
        [(2, "empty-content-list", ("openai",))],
    ),
    Row(
        "an empty part",
        [user([image(), text("")])],
        [user([image(), text("?")])],
        [(0, "empty-text-part", OBJECTS)],
    ),
    Row(
        "a part of white space",
        [user(), answer([text(" "), text()])],
        [user(), answer([text()])],
        [(1, "empty-text-part", ("anthropic", "bedrock"))],
    ),
    Row(
        "a blank at the end",
        [user(), answer("At nine. ")],
        [user(), answer("At nine. "), user()],
        [(1, "trailing-whitespace", ("anthropic",))],
    ),
    Row(
        "a newline after the last part",
        [user(), answer([text("At\n"), text("nine.\n")])],
        [user(), answer([text("At\n"), text("nine.")])],
        [(1, "trailing-whitespace", ("anthropic",))],
    ),
    Row(
        "half an emoji",
        [user("Go \ud83d"), answer([text("\udc4d")])],
        [user("Go \U0001f44d"), answer([text("\U0001f44d")])],
        [(0, "lone-surrogate", APIS), (1, "lone-surrogate", APIS)],
    ),
    Row(
        "half an emoji in a key",
        [user([{"type": "file", "file": {"\ud83d": 1}}])],
        [user([{"type": "file", "file": {"file_id": "f"}}])],
        [(0, "lone-surrogate", APIS)],
    ),
    Row("a full name", [user(name="Alice B")], [user(name="alice.b")], [(0, "participant-name", ("openai",))]),
    Row("a number for a name", [user(name=7)], [user(name=None)], [(0, "participant-name", ("openai",))]),
    Row(
        "calls of a wrong type",
        [user(), answer(tool_calls="trains")],
        [user(), answer(tool_calls=None)],
        [(1, "tool-calls-shape", ("openai",))],
    ),
    Row(
        "arguments already parsed",
        [user(), calling(call(arguments={"to": "Pune"})), result()],
        [user(), calling(call(arguments='{"to": "Pune"}')), result()],
        [(1, "tool-calls-shape", ("openai",))],
    ),
    Row(
        "a call that is a string",
        [user(), calling("trains"), answer()],
        [user(), answer()],
        [
            (1, "tool-calls-shape", ("openai",)),
            (1, "missing-call-id", WITH_IDS),
            (1, "function-name", WITH_IDS),
            (2, "alternation", ("gemini", "bedrock", "template")),
        ],
    ),
    Row(
        "no call",
        [user(), answer(tool_calls=[])],
        [user(), answer()],
        [(1, "empty-tool-calls", ("openai",))],
    ),
    Row(
        "a call without an id, a result without one",
        [user(), calling(without(call(), "id")), without(result(), "tool_call_id")],
        [user(), calling(), result()],
        [(1, "missing-call-id", WITH_IDS), (2, "missing-result-id", WITH_IDS)],
    ),
    Row(
        "empty ids",
        [user(), calling(call("")), result("")],
        [user(), calling(), result()],
        [(1, "missing-call-id", WITH_IDS), (2, "missing-result-id", WITH_IDS)],
    ),
    Row(
        "one id for two calls",
        [user(), calling(call(), call()), result(), result()],
        [user(), calling(call(), call("call_2")), result(), result("call_2")],
        [(1, "duplicate-call-id", WITH_IDS)],
    ),
    Row(
        "an id used again",
        [user(), calling(), result(), calling(), result()],
        [user(), calling(), result(), calling(call("call_2")), result("call_2")],
        [(3, "reused-call-id", ("anthropic",))],
    ),
    Row(
        "an id with a dot",
        [user(), calling(call("call.1")), result("call.1")],
        [user(), calling(call("call-1")), result("call-1")],
        [(1, "call-id-pattern", ("anthropic",))],
    ),
    Row(
        "an id with a bar",
        [user(), calling(call("call|1")), result("call|1")],
        [user(), calling(call("call_1")), result("call_1")],
        [(1, "call-id-pattern", ("anthropic", "bedrock"))],
    ),
    Row(
        "ids of 41 and 65 characters",
        [user(), calling(call("a" * 41), call("b" * 65)), result("a" * 41), result("b" * 65)],
        [user(), calling(call("a" * 40)), result("a" * 40)],
        [(1, "call-id-pattern", ("openai",)), (1, "call-id-pattern", ("openai", "bedrock"))],
    ),
    Row(
        "a name with a dot",
        [user(), calling(call(name="rail.trains")), result()],
        [user(), calling(call(name="rail-trains_2")), result()],
        [(1, "function-name", WITH_IDS)],
    ),
    Row(
        "a name of 65 characters",
        [user(), calling(call(name="t" * 65)), result()],
        [user(), calling(call(name="t" * 64)), result()],
        [(1, "function-name", ("openai", "bedrock"))],
    ),
    Row(
        "a list, no JSON, a bottomless list, and no number for arguments",
        [
            user(),
            calling(
                call("a", arguments="[1]"),
                call("b", arguments='{"to": '),
                call("c", arguments="[" * 10**5),
                call("d", arguments='{"n": NaN}'),
            ),
            *(result("a"), result("b"), result("c"), result("d")),
        ],
        [user(), calling(call(arguments="{}")), result()],
        [(1, "arguments-not-object", OBJECTS)] * 4,
    ),
    Row(
        "an open tail",
        [user(), calling(call(), call("call_2")), result()],
        [user(), calling(call(), call("call_2")), result("call_2"), result()],
        [(1, "unanswered-call", APIS)],
    ),
    Row(
        "a result too late",
        [user(), calling(), user("Well?"), result()],
        [user(), calling(), result(), user("Well?")],
        [(1, "unanswered-call", APIS), (3, "orphan-result", APIS)],
    ),
    Row(
        "a result of nothing",
        [user(), result(), answer()],
        [user(), answer()],
        [(1, "orphan-result", APIS)],
    ),
    Row(
        "the result first",
        [result(), user()],
        [user()],
        [(0, "first-not-user", STRICT), (0, "orphan-result", APIS)],
    ),
    Row(
        "a result for another's call",
        [user(), calling(), result(), result("call_9")],
        [user(), calling(call(), call("call_9")), result(), result("call_9")],
        [(3, "unknown-result-id", APIS)],
    ),
    Row(
        "two results for one call",
        [user(), calling(), result(), result(content="9:05")],
        [user(), calling(), result(content="9:05")],
        [(3, "duplicate-result", APIS)],
    ),
    Row(
        "the first calls of a loop without their thinking",
        [
            *(user(), calling(), result()),
            *(calling(call("call_2"), content=[thought()]), result("call_2")),
        ],
        [
            *(user(), calling(content=[thought(), text("Let me look.")]), result()),
            *(calling(call("call_2")), result("call_2")),
        ],
        [(1, "thinking-not-first", ("anthropic",))],
    ),
    Row(
        "thinking after text",
        [user(), answer([text(), {"type": "redacted_thinking", "data": "ZW5j"}, text()])],
        [user(), answer([{"type": "redacted_thinking", "data": "ZW5j"}, text()])],
        [(1, "thinking-not-first", ("anthropic",))],
    ),
    Row(
        "unsigned thinking",
        [
            user(),
            answer([without(thought(), "signature"), text()]),
            user(),
            answer([thought(signature=""), text()]),
        ],
        [user(), answer([thought(), text()])],
        [(1, "thinking-signature", ("anthropic",)), (3, "thinking-signature", ("anthropic",))],
    ),
    Row(
        "thinking last",
        [user(), answer([thought()])],
        [user(), answer([thought()]), user()],
        [(1, "final-thinking", ("anthropic",))],
    ),
]

GOOD = {
    "a question": [user()],
    "a system message and an answered list": [system(), user(), answer()],
    "parallel calls, answered in another order, then a text": [
        *(system(), user(), calling(call("a"), call("b"), call("c"))),
        *(result("c"), result("a"), result("b"), answer(), user("Thanks"), answer()),
    ],
    "a loop of calls": [
        *(user(), calling(call("a")), result("a"), calling(call("b"), content="And back"), result("b")),
        *(answer(), user("Book it"), calling(call("c")), result("c", content="")),
    ],
    "a user who speaks before the answer": [user(), calling(), result(), user("In the morning"), answer()],
    "images and files": [
        user([text("What is this?"), image(), {"type": "file", "file": {"file_id": "f"}}]),
        answer([text("A ticket.")]),
        user([image()]),
    ],
    "thinking in a loop and in turns before": [
        *(user(), calling(content=[thought()]), result(), calling(call("b")), result("b"), answer()),
        *(user(), answer("No thought.")),
    ],
    "a refusal, a sound, a legacy call": [
        *(user(), answer(None, refusal="I may not."), user(), answer(None, audio={"id": "a-1"})),
        *(user(), answer(None, function_call={"name": "trains", "arguments": "{}"}), user()),
    ],
    "named speakers": [system(name="rules"), user(name="alice"), calling(), result(name="trains")],
}


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_a_bad_list_breaks_its_rule(row: Row) -> None:
    """Each bad list breaks the rules of its row, at their places, for their providers, and no others."""
    found = violations(row.bad)

    assert row.expected == said(found)


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_its_mended_twin_passes(row: Row) -> None:
    """Each bad list's mended twin breaks nothing."""
    expected: list[Violation] = []

    assert expected == violations(row.mended)


@pytest.mark.parametrize("messages", GOOD.values(), ids=GOOD)
def test_a_good_transcript_passes(messages: list[Message]) -> None:
    """A transcript as providers document it breaks nothing, and is not changed by the question."""
    before = copy.deepcopy(messages)

    assert_valid(messages)

    assert before == messages


@pytest.mark.parametrize("name", RULES)
def test_each_rule_has_a_row(name: str) -> None:
    """The rows above break every rule, for every provider that the table names for it."""
    blamed = {
        provider for row in ROWS for _, rule, providers in row.expected if rule == name for provider in providers
    }

    assert set(RULES[name].providers) == blamed


@pytest.mark.parametrize("name", RULES)
def test_each_rule_names_its_source(name: str) -> None:
    """The table gives each rule a sentence, a public page for its source, and providers in one order."""
    rule = RULES[name]

    assert name == rule.name
    assert rule.says.endswith(".")
    assert "https://" in rule.source
    assert [provider for provider in ALL if provider in rule.providers] == list(rule.providers)


def test_the_table_cannot_be_changed() -> None:
    """The table of rules is read-only."""
    with pytest.raises(TypeError):
        RULES["empty-list"] = RULES["only-system"]  # type: ignore[index]


def test_only_the_asked_providers_count() -> None:
    """A provider that is not asked about is not blamed, and a rule that only others have is not broken."""
    messages = [system(), system(), answer(""), user()]
    expected = [(2, "first-not-user", ("bedrock",)), (2, "empty-content", ("bedrock",))]

    found = violations(messages, providers={"openai", "bedrock"})

    assert expected == said(found)


def test_an_ignored_rule_does_not_count() -> None:
    """A rule can be left out by its name, as for a user's own transcript with two user messages in a row."""
    messages = [user(), user("And back?"), answer(None)]
    expected = [(2, "null-content", APIS)]

    found = violations(messages, ignore=["alternation"])

    assert expected == said(found)


def test_violations_come_by_position() -> None:
    """Violations are in the order of the messages, those of the whole list first."""
    messages = [system(name="the rules"), {"role": "developer", "content": None}]
    expected = [-1, 0, 1, 1]

    found = violations(messages)

    assert expected == [violation.index for violation in found]


@pytest.mark.parametrize(
    "wrong, message",
    [
        (
            {"providers": ["openai", "mistral"]},
            "unknown provider 'mistral': choose from openai, anthropic, gemini",
        ),
        ({"providers": "openai"}, "unknown provider 'o'"),
        ({"ignore": ["alternate"]}, "unknown rule 'alternate': choose from empty-list, only-system"),
    ],
)
def test_an_unknown_name_is_refused(wrong: dict[str, Any], message: str) -> None:
    """A misspelt provider or rule raises at once, and the error says what there is."""
    with pytest.raises(ValueError, match=message):
        assert_valid([user()], **wrong)


def test_the_assertion_draws_the_list() -> None:
    """The error draws roles and ids in one line, and below it every violation."""
    messages = [system(), user(), calling(call("a"), call("b")), result("a"), user(""), answer()]

    with pytest.raises(AssertionError) as error:
        assert_valid(messages)

    expected = (
        "rules broken: 2 in [0 system | 1 user | 2 assistant(a, b) | 3 tool(a) | 4 user | 5 assistant]\n"
        "  messages[2]: unanswered-call (openai, anthropic, gemini, bedrock): "
        "no result directly after for 'b'\n"
        "  messages[4]: empty-content (anthropic, gemini, bedrock): nothing is said"
    )
    assert expected == str(error.value)


def test_a_violation_of_the_whole_list_reads_well() -> None:
    """A violation without a message says that it is the list's."""
    expected = "list: empty-list (openai, anthropic, gemini, bedrock, template): no messages"

    (violation,) = violations([])

    assert expected == str(violation)


@st.composite
def transcripts(draw: st.DrawFn) -> list[Message]:
    """A valid transcript: turns of a question, rounds of parallel calls and their results, and an answer."""
    messages = [system()] if draw(st.booleans()) else []
    for turn in range(draw(st.integers(1, 4))):
        messages.append(user(f"Question {turn}?"))
        for lap in range(draw(st.integers(0, 3))):
            ids = [f"call_{turn}_{lap}_{number}" for number in range(draw(st.integers(1, 3)))]
            messages += [calling(*map(call, ids)), *map(result, draw(st.permutations(ids)))]
        messages.append(answer(f"Answer {turn}."))
    return messages


@given(transcripts())
def test_a_valid_transcript_passes_whole(messages: list[Message]) -> None:
    """No transcript of whole turns breaks a rule."""
    expected: list[Violation] = []

    assert expected == violations(messages)


@given(transcripts(), st.data())
def test_a_torn_round_is_noticed(messages: list[Message], data: st.DataObject) -> None:
    """A transcript that lost a message with calls, or a result, is valid for no provider's API."""
    rounds = [index for index, message in enumerate(messages) if "tool_calls" in message or message["role"] == "tool"]
    lost = data.draw(st.sampled_from(rounds or [0]))

    found = violations(messages[:lost] + messages[lost + 1 :], ignore=["first-not-user"])

    assert bool(rounds) == any(violation.provider == APIS for violation in found)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["", " ", "text", "a", "b|c", "[", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "text", "id"]), inner),
    max_leaves=6,
)
wild_messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"]) | json_values},
    optional=dict.fromkeys(("content", "tool_calls", "tool_call_id", "name"), json_values),
)


@given(st.lists(wild_messages, max_size=5))
def test_any_json_can_be_asked_about(messages: list[Message]) -> None:
    """Whatever JSON the messages hold, there is an answer, and it can be written down as UTF-8."""
    found = violations(messages)

    assert all(str(violation).encode() for violation in found)
