"""Units: which messages belong together, and what is shown of them."""

from __future__ import annotations

from typing import Any

import pytest

from slidemem import from_openai
from slidemem.check import violations
from slidemem.openai_format import to_openai
from slidemem.present import mend
from slidemem.state import Entry
from slidemem.tokens import Tally, TextCounter
from slidemem.units import NO_RESULT, Unit, fitted, group, silenced

count = Tally(TextCounter(lambda text: len(text.split())), lambda message, fault: None)


def calls(*ids: str, text: str | None = None, arguments: str = "{}") -> dict[str, Any]:
    """An assistant message that calls `look` once for each id."""
    made = [{"id": id_, "type": "function", "function": {"name": "look", "arguments": arguments}} for id_ in ids]
    return {"role": "assistant", "content": text, "tool_calls": made}


def result(id_: str | None, text: str = "found") -> dict[str, Any]:
    """A tool message."""
    return (
        {"role": "tool", "tool_call_id": id_, "content": text}
        if id_ is not None
        else {"role": "tool", "content": text}
    )


def said(role: str, text: str) -> dict[str, Any]:
    """A message of plain text."""
    return {"role": role, "content": text}


def thinking(message: dict[str, Any]) -> dict[str, Any]:
    """The message with a thinking block before its content."""
    block = {"type": "thinking", "thinking": "hm", "signature": "s"}
    text = [{"type": "text", "text": message["content"]}] if message["content"] else []
    return {**message, "content": [block, *text]}


def units(*messages: dict[str, Any], limit: int = 10_000) -> tuple[Unit, ...]:
    """The units of a conversation."""
    entries = []
    for seq, message in enumerate(messages):
        read = from_openai(message)
        shown = mend(read)
        entries.append(Entry(seq, read, shown, count(shown), count(shown), 0.0, "words"))
    return group(tuple(entries), limit, count).units


def outline(made: tuple[Unit, ...]) -> list[list[str]]:
    """For each unit the roles it shows, with the call a result answers."""
    return [
        [
            one.message.role + (f":{one.message.tool_call_id}" if one.message.role == "tool" else "")
            for one in unit.shown
        ]
        for unit in made
    ]


@pytest.mark.parametrize(
    "messages, expected",
    [
        ([said("user", "a"), said("assistant", "b")], [["user"], ["assistant"]]),
        ([calls("x"), result("x"), said("user", "a")], [["assistant", "tool:x"], ["user"]]),
        ([calls("x", "y"), result("y"), result("x")], [["assistant", "tool:y", "tool:x"]]),
        ([calls("x", "y"), result("y"), said("user", "a")], [["assistant", "tool:y", "tool:x"], ["user"]]),
        ([calls("x"), said("user", "a")], [["assistant", "tool:x"], ["user"]]),
        ([calls("x"), result("other"), result("x")], [["assistant", "tool:x", "user"]]),
        ([calls("x"), result("x"), result("x")], [["assistant", "tool:x"], ["user"]]),
        ([calls("x"), said("user", "a"), result("x")], [["assistant", "tool:x"], ["user"], ["user"]]),
        ([result("x"), said("user", "a")], [["user"], ["user"]]),
        ([calls("x", "y"), result(None), result("x")], [["assistant", "tool:y", "tool:x"]]),
        ([calls("x"), calls("y"), result("y")], [["assistant", "tool:x"], ["assistant", "tool:y"]]),
        ([said("user", "a"), said("system", "b")], [["user"], ["user"]]),
    ],
)
def test_grouping(messages: list[dict[str, Any]], expected: list[list[str]]) -> None:
    """Calls and their results are one unit, each call answered once, and the rest stands alone."""
    actual = outline(units(*messages))

    assert expected == actual


@pytest.mark.parametrize(
    "ids, expected",
    [
        (("", ""), ["call_0_0", "call_0_1"]),
        (("same", "same"), ["same", "call_0_1"]),
        (("with space",), ["call_0_0"]),
        (("x" * 41,), ["call_0_0"]),
        (("fine-1",), ["fine-1"]),
    ],
)
def test_ids_that_a_provider_would_refuse_are_made_anew(ids: tuple[str, ...], expected: list[str]) -> None:
    """Empty, doubled and odd ids are shown as ids made from their place, in call and result alike."""
    made = units(calls(*ids), *(result(id_) for id_ in ids))

    shown = made[0].shown

    assert expected == [call.id for call in shown[0].message.tool_calls]
    assert set(expected) == {one.message.tool_call_id for one in shown[1:]}


def test_an_id_used_again_later_is_shown_as_another() -> None:
    """The second use of an id gets one of its own, even when that one is taken too."""
    made = units(calls("call_4_0"), result("call_4_0"), calls("x"), result("x"), calls("x"), result("x"))

    assert ["call_4_0", "x", "call_4_0_"] == [unit.shown[0].message.tool_calls[0].id for unit in made]


def test_the_newest_unit_waits_and_is_not_stubbed() -> None:
    """Calls that may still be answered get no stub; as soon as somebody speaks they do."""
    waiting, closed = units(calls("x", "y"), result("x")), units(calls("x", "y"), result("x"), said("user", "well?"))

    assert (True, 2) == (waiting[-1].waits, len(waiting[-1].shown))
    assert (False, NO_RESULT) == (closed[0].waits, closed[0].shown[-1].message.text)


def test_a_note_names_its_call_and_quotes_the_result() -> None:
    """A late result says which tool and call it belongs to, quoted line by line."""
    made = units(calls("x"), said("user", "well?"), result("x", "one\ntwo"))

    assert "[result of look, call x, out of its place]\n> one\n> two" == made[-1].shown[0].message.text


def test_a_note_of_a_result_without_id_says_so() -> None:
    """A result that names no call and follows none is still shown."""
    made = units(said("user", "hi"), result(None, "found"))

    assert "[result of a tool, call of unknown id, out of its place]\n> found" == made[-1].shown[0].message.text


def test_what_is_shown_unchanged_is_the_message_itself() -> None:
    """A clean unit shows the stored messages with the stored counts."""
    made = units(calls("x"), result("x", "three words here"))

    assert made[0].entries[1].shown is made[0].shown[1].message
    assert [3 - 1, 3] == [one.tokens for one in made[0].shown]


def test_a_large_unit_is_clamped_largest_member_first() -> None:
    """The long result is cut, the short one stays as it is, and the unit keeps its limit."""
    made = units(calls("x", "y"), result("x", "word " * 300), result("y", "short one"), limit=60)

    texts = [one.message.text for one in made[0].shown[1:]]
    assert made[0].tokens <= 60
    assert ("left out" in texts[0], "short one") == (True, texts[1])


def test_a_unit_whose_marks_do_not_fit_is_left_with_them() -> None:
    """When not even the marks fit, the marks are what is left; the plan decides what becomes of the unit."""
    made = units(
        calls(*"abcdefgh", arguments='{"q": "' + "w " * 50 + '"}'),
        *(result(i, "w " * 50) for i in "abcdefgh"),
        limit=3,
    )

    assert {"[…]"} == {one.message.text for one in made[0].shown[1:]}


def test_reasoning_goes_before_marks_do() -> None:
    """A unit whose reasoning alone is too much is fitted without it."""
    unit = units(thinking(said("assistant", "an answer of five words")))[0]
    heavy = units(
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "w " * 90}, {"type": "text", "text": "so"}],
        }
    )[0]

    fitting = fitted(heavy, 5, count)

    assert fitting is not None
    assert (False, "so") == (fitting.reasons, fitting.shown[0].message.text)
    assert unit is fitted(unit, 100, count)


def test_silenced_units_show_no_reasoning() -> None:
    """Reasoning is left out of a unit that has some, and one that has none is returned as it is."""
    made = units(thinking(calls("x")), result("x"), said("user", "a"))

    quiet = silenced(made[0], count)

    assert (True, True, False) == (made[0].reasons, made[0].starts_with_reasoning, quiet.reasons)
    assert made[1] is silenced(made[1], count)


def test_answers_and_ranges() -> None:
    """A unit knows its range, and whether it ends a turn."""
    made = units(said("user", "a"), calls("x"), result("x"), said("assistant", "b"))

    assert [(0, 1, False), (1, 3, False), (3, 4, True)] == [(u.start, u.end, u.answers) for u in made]


def test_a_thousand_calls_in_one_message_are_paired() -> None:
    """Many parallel calls answered in reverse order come out complete and valid."""
    ids = [f"c{at}" for at in range(1_000)]

    made = units(said("user", "go"), calls(*ids), *(result(id_) for id_ in reversed(ids)))

    shown = [to_openai(one.message) for unit in made for one in unit.shown]
    assert (2, []) == (len(made), violations(shown))
