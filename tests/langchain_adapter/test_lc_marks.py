"""The marks of a prompt's stable part, for providers that keep only what is marked."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_slidemem import mark_prefix

CALL = AIMessage("", tool_calls=[{"name": "look_up", "args": {}, "id": "c1"}])
RESULT = ToolMessage("9:00", tool_call_id="c1")
ASKED = HumanMessage("When?")
TOLD = AIMessage([{"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": "At nine."}])


def marks(messages: list[BaseMessage]) -> list[int]:
    """The places of messages whose last block is marked."""
    marked = mark_prefix(messages)
    return [
        at for at, one in enumerate(marked) if isinstance(one.content, list) and "cache_control" in one.content[-1]
    ]


@pytest.mark.parametrize(
    "messages, expected",
    [
        pytest.param([], [], id="nothing"),
        pytest.param([ASKED], [0], id="the first question"),
        pytest.param([SystemMessage("Be brief."), ASKED], [0, 1], id="behind a system message"),
        pytest.param([ASKED, TOLD, ASKED], [1, 2], id="before the newest question, and at the end"),
        pytest.param([ASKED, TOLD, ASKED, CALL, RESULT], [1, 4], id="in a round of tools"),
        pytest.param([ASKED, CALL, RESULT, CALL], [2], id="a message without text is passed over"),
        pytest.param([CALL], [], id="nothing has text"),
        pytest.param([TOLD], [0], id="nobody asked"),
    ],
)
def test_the_stable_part_and_the_end_are_marked(messages: list[BaseMessage], expected: list[int]) -> None:
    """Marks stand before the newest user message and at the end, on blocks of text."""
    assert expected == marks(messages)


def test_nothing_of_the_callers_is_changed() -> None:
    """The list and its messages stay as they were; blocks, texts in lists among them, keep their order."""
    given: list[BaseMessage] = [ASKED, AIMessage(["At ", "nine."]), ASKED]

    marked = mark_prefix(given, {"mark": 1})

    text = {"type": "text", "text": "nine."}
    assert [{"type": "text", "text": "At "}, {**text, "mark": 1}] == marked[1].content
    assert ["When?", ["At ", "nine."], "When?"] == [message.content for message in given]
    assert "When?" == marked[0].content
