"""The sample conversation that ships with slidemem holds what the demo and the benchmarks rely on."""

import json
import re
from collections import Counter
from importlib.resources import files
from typing import Any

import pytest

Message = dict[str, Any]

SAMPLE: dict[str, Any] = json.loads((files("slidemem") / "data" / "travel_support.json").read_text(encoding="utf-8"))
MESSAGES: list[Message] = SAMPLE["messages"]
FACTS: list[dict[str, Any]] = SAMPLE["facts"]
PORTUGUESE = {"até", "com", "está", "minha", "muito", "não", "nossa", "os", "para", "por", "que", "se", "uma"}


def split_turns() -> list[list[Message]]:
    """Return the messages grouped by user turn; group 0 is what comes before the first one."""
    turns: list[list[Message]] = [[]]
    for message in MESSAGES:
        if message["role"] == "user":
            turns.append([])
        turns[-1].append(message)
    return turns


TURNS = split_turns()
TRACE_TURN = max(range(1, len(TURNS)), key=lambda turn: len(TURNS[turn][0]["content"]))
TRACE = TURNS[TRACE_TURN][0]["content"]


def text_of(message: Message) -> str:
    """Return what a message says: its content, then the arguments of its calls."""
    calls = message.get("tool_calls", [])
    return "\n".join([message["content"] or "", *(call["function"]["arguments"] for call in calls)])


def chatter() -> list[str]:
    """Return the texts of the user and the assistant, the stack trace left out."""
    spoken = (m["content"] for m in MESSAGES if m["role"] in {"user", "assistant"} and m["content"])
    return [text for text in spoken if text != TRACE]


def call_ids(message: Message) -> list[str]:
    """Return the ids of a message's tool calls, in their order."""
    return [call["id"] for call in message.get("tool_calls", [])]


def answers_after(index: int) -> list[str]:
    """Return the call ids of the tool results that directly follow the message at an index."""
    ids: list[str] = []
    for message in MESSAGES[index + 1 :]:
        if message["role"] != "tool":
            break
        ids.append(message["tool_call_id"])
    return ids


def late_calls() -> list[int]:
    """Return the indices of messages whose calls are not all answered directly after them."""
    return [i for i, m in enumerate(MESSAGES) if set(call_ids(m)) != set(answers_after(i)) and call_ids(m)]


def test_has_the_documented_keys() -> None:
    """The file is one object with a title, a sentence about it, messages and facts."""
    actual = list(SAMPLE)
    expected = ["title", "about", "messages", "facts"]

    assert expected == actual


def test_is_long_enough_to_consolidate() -> None:
    """The conversation has 170 to 230 messages, at least 75 user turns and some 40,000 characters or more."""
    size = sum(len(text_of(m)) for m in MESSAGES if m["content"] != TRACE)
    actual = (170 <= len(MESSAGES) <= 230, len(TURNS) - 1 >= 75, 40_000 <= size <= 70_000)
    expected = (True, True, True)

    assert expected == actual


def test_starts_with_a_system_prompt_and_a_user() -> None:
    """A system prompt of 60 to 120 words leads, it is the only one, and a user message follows."""
    words = len(MESSAGES[0]["content"].split())
    systems = sum(m["role"] == "system" for m in MESSAGES)
    actual = (MESSAGES[0]["role"], MESSAGES[1]["role"], systems, 60 <= words <= 120)
    expected = ("system", "user", 1, True)

    assert expected == actual


def test_messages_have_the_keys_of_their_role() -> None:
    """Each message has just the keys that the chat-completions format gives its role."""
    plain, calling, result = (
        {"role", "content"},
        {"role", "content", "tool_calls"},
        {"role", "content", "tool_call_id"},
    )
    allowed = {"system": [plain], "user": [plain], "assistant": [plain, calling], "tool": [result]}
    actual = [m for m in MESSAGES if set(m) not in allowed[m["role"]]]
    expected: list[Message] = []

    assert expected == actual


def test_call_arguments_are_json_objects() -> None:
    """The arguments of each call are the JSON text of an object."""
    calls = [call for m in MESSAGES for call in m.get("tool_calls", [])]
    actual = {(call["type"], type(json.loads(call["function"]["arguments"]))) for call in calls}
    expected = {("function", dict)}

    assert expected == actual


def test_each_call_has_one_result() -> None:
    """Call ids are unique, and each of them has exactly one result."""
    asked = [call_id for m in MESSAGES for call_id in call_ids(m)]
    answered = [m["tool_call_id"] for m in MESSAGES if m["role"] == "tool"]
    actual = (sorted(answered), len(set(asked)))
    expected = (sorted(asked), len(asked))

    assert expected == actual


def test_one_result_comes_late() -> None:
    """One call alone is not answered directly: the user speaks before its result arrives, near turn 50."""
    late = late_calls()
    turn = sum(m["role"] == "user" for m in MESSAGES[: late[0]])
    same = call_ids(MESSAGES[late[0]]) == [MESSAGES[late[0] + 2].get("tool_call_id")]
    roles = [m["role"] for m in MESSAGES[late[0] : late[0] + 4]]
    actual = (len(late), 44 <= turn <= 56, same, roles)
    expected = (1, True, True, ["assistant", "user", "tool", "assistant"])

    assert expected == actual


def test_holds_parallel_calls_answered_out_of_order() -> None:
    """Several messages make two to four calls at once, and some are answered in another order."""
    parallel = [i for i, m in enumerate(MESSAGES) if len(call_ids(m)) > 1]
    swapped = [i for i in parallel if call_ids(MESSAGES[i]) != answers_after(i)]
    widest = max(len(call_ids(MESSAGES[i])) for i in parallel)
    actual = (len(parallel) >= 4, len(swapped) >= 1, widest in {3, 4})
    expected = (True, True, True)

    assert expected == actual


def test_holds_a_long_tool_loop() -> None:
    """Under one user message the assistant calls tools in at least eight rounds."""
    rounds = max(sum(bool(call_ids(m)) for m in turn) for turn in TURNS)
    actual = rounds >= 8
    expected = True

    assert expected == actual


def test_holds_one_failed_call() -> None:
    """One tool result is an error text, and the assistant calls again after it."""
    failed = [i for i, m in enumerate(MESSAGES) if m["role"] == "tool" and m["content"].startswith("Error:")]
    actual = (len(failed), bool(call_ids(MESSAGES[failed[0] + 1])))
    expected = (1, True)

    assert expected == actual


def test_pastes_a_long_stack_trace() -> None:
    """Between user turns 30 and 40 a trace of 3,000 lines or more is pasted, no line above 160 characters."""
    lines = TRACE.splitlines()
    frames = sum(line.startswith("\tat ") for line in lines)
    causes = sum(line.startswith("Caused by: ") for line in lines)
    long = len(lines) >= 3_000 and frames >= 2_500 and causes >= 100
    actual = (30 <= TRACE_TURN <= 40, long, max(map(len, lines)) <= 160)
    expected = (True, True, True)

    assert expected == actual


def test_stack_trace_hides_a_needle_at_each_end() -> None:
    """Two error codes occur once each in the trace: one near its head, the other near its end."""
    lines = TRACE.splitlines()
    first = [i for i, line in enumerate(lines) if "BKG-7731" in line]
    last = [len(lines) - i for i, line in enumerate(lines) if "PAY-5096" in line]
    actual = (len(first), first[0] < 40, len(last), last[0] < 40)
    expected = (1, True, 1, True)

    assert expected == actual


def test_speaks_hindi_and_marathi() -> None:
    """At least twelve messages are written in Devanagari."""
    found = [text for text in chatter() if len(re.findall(r"[\u0900-\u097f]", text)) >= 40]
    actual = len(found) >= 12
    expected = True

    assert expected == actual


def test_speaks_portuguese() -> None:
    """At least six messages hold several of the commonest Portuguese words."""
    found = [text for text in chatter() if len(PORTUGUESE & set(re.findall(r"\w+", text.lower()))) >= 4]
    actual = len(found) >= 6
    expected = True

    assert expected == actual


def test_no_text_is_said_twice() -> None:
    """The texts of user and assistant are all distinct, and so are their longer lines."""
    texts = Counter(" ".join(text.lower().split()) for text in chatter())
    lines = Counter(line.strip() for text in chatter() for line in text.splitlines() if len(line.split()) > 7)
    actual = [said for said, count in (texts | lines).items() if count > 1]
    expected: list[str] = []

    assert expected == actual


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(r"\bI meant the 14th, not the 12th\b", id="correction"),
        pytest.param(r"\bRemember this: ", id="remember-this"),
        pytest.param(r"\bDecided: ", id="decision"),
        pytest.param(r"\bI promise: ", id="promise"),
        pytest.param(r"\b[\w.]+@[\w-]+\.example\b", id="e-mail"),
        pytest.param(r"https://[\w.]+\.example/\S+", id="url"),
        pytest.param(r"/home/\w+/\S+\.log\b", id="file-path"),
        pytest.param(r"₹\d,\d\d,\d{3}", id="price-in-rupees"),
        pytest.param(r"€\d+\.\d\d", id="price-in-euros"),
        pytest.param(r"\b\d{1,2} February\b", id="date"),
        pytest.param(r"(?m)^\|(?:---\|)+$", id="table"),
        pytest.param(r"```java\n", id="java-code"),
        pytest.param(r"```bash\n", id="shell-code"),
        pytest.param(r"(?m)^- ", id="list"),
    ],
)
def test_holds_one_of_each_kind(pattern: str) -> None:
    """The chatter holds each kind of detail that a memory must not lose."""
    actual = any(re.search(pattern, text) for text in chatter())
    expected = True

    assert expected == actual


def test_holds_long_and_short_replies() -> None:
    """Three replies or more are plans of 150 to 250 words, none is longer, and some need under 20."""
    words = [len(m["content"].split()) for m in MESSAGES if m["role"] == "assistant" and m["content"]]
    plans = sum(150 <= count <= 250 for count in words)
    actual = (plans >= 3, max(words) <= 250, min(words) < 20)
    expected = (True, True, True)

    assert expected == actual


def test_lists_facts_over_the_whole_conversation() -> None:
    """There are 14 to 20 facts with distinct needles, said from the start until beyond user turn 60."""
    needles = {fact["needle"].casefold() for fact in FACTS}
    turns = [fact["said_in"] for fact in FACTS]
    actual = (14 <= len(FACTS) <= 20, len(needles), sorted(turns), min(turns) <= 3, max(turns) >= 60)
    expected = (True, len(FACTS), turns, True, True)

    assert expected == actual


def test_a_preference_of_turn_3_is_needed_after_turn_60() -> None:
    """What she said about herself in user turn 3 is needed in user turn 60 or later."""
    actual = [fact["needle"] for fact in FACTS if fact["said_in"] == 3 and fact["needed_in"] >= 60]
    expected = ["peanut", "aisle seat"]

    assert expected == actual


def test_what_to_remember_is_needed_after_40_turns() -> None:
    """The fact of the sentence "Remember this: ..." is needed more than 40 user turns later."""
    facts = [fact for fact in FACTS if "Remember this: " in TURNS[fact["said_in"]][0]["content"]]
    actual = [fact["needed_in"] - fact["said_in"] > 40 for fact in facts]
    expected = [True]

    assert expected == actual


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact["needle"].encode("ascii", "replace").decode())
def test_fact_is_said_by_the_user(fact: dict[str, Any]) -> None:
    """The needle stands verbatim in the user message that says the fact, and nowhere before it."""
    earlier = [text_of(m) for turn in TURNS[: fact["said_in"]] for m in turn]
    actual = (
        fact["needle"] in TURNS[fact["said_in"]][0]["content"],
        any(fact["needle"] in text for text in earlier),
    )
    expected = (True, False)

    assert expected == actual


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact["needle"].encode("ascii", "replace").decode())
def test_fact_is_used_by_the_assistant(fact: dict[str, Any]) -> None:
    """The reply uses the fact twelve turns on or later, and no message of the nine turns before holds it."""
    needle, needed = fact["needle"].casefold(), fact["needed_in"]
    reply = text_of(TURNS[needed][-1]).casefold()
    nearby = [text_of(m) for turn in TURNS[needed - 9 : needed] for m in turn] + [TURNS[needed][0]["content"]]
    actual = (
        needed - fact["said_in"] >= 12,
        needle in reply,
        any(needle in text.casefold() for text in nearby),
    )
    expected = (True, True, False)

    assert expected == actual
