"""What a graph streams is heard as the messages in it, whatever its mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.runnables import RunnableGenerator

from langchain_slidemem import SlidingChatMessageHistory, with_sliding_memory
from langchain_slidemem.heard import Heard
from slidemem import SlideMem

CALL = AIMessage("", tool_calls=[{"name": "look_up", "args": {}, "id": "c1"}], id="m1")
RESULT = ToolMessage("9:00", tool_call_id="c1", id="m2")
ANSWER = AIMessage("At nine.", id="m3")
SAID: list[BaseMessage] = [CALL, RESULT, ANSWER]

UPDATES: list[Any] = [
    {"before_model": None},
    {"model": {"messages": [CALL]}},
    {"tools": {"messages": [RESULT]}},
    {"after_model": {"slidemem": {"record": 1}}},
    {"model": {"messages": ANSWER}},
    {"after_agent": None},
]
PIECES: list[Any] = [
    (CALL, {"langgraph_node": "model"}),
    (RESULT, {"langgraph_node": "tools"}),
    (AIMessageChunk("At ", id="m3"), {"langgraph_node": "model"}),
    (AIMessageChunk("nine.", id="m3"), {"langgraph_node": "model"}),
]
VALUES: list[Any] = [{"messages": SAID[:1]}, {"messages": SAID[:2]}, {"messages": SAID}]


def heard(chunks: list[Any], key: str | None = None) -> list[str]:
    """What chunks come to, as texts."""
    ear = Heard(key)
    for chunk in chunks:
        ear.take(chunk)
    return [
        f"{message.type.removesuffix('MessageChunk').lower()}: {message.text}" for message in ear.value["messages"]
    ]


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param(UPDATES, id="updates"),
        pytest.param(PIECES, id="messages"),
        pytest.param(VALUES, id="values"),
        pytest.param([("updates", chunk) for chunk in UPDATES], id="named updates"),
        pytest.param([("values", chunk) for chunk in VALUES], id="named values"),
        pytest.param([*(("messages", one) for one in PIECES), *(("updates", one) for one in UPDATES)], id="both"),
    ],
)
def test_each_mode_comes_to_the_same(chunks: list[Any]) -> None:
    """Updates, pieces and states of one run are the same messages, each once."""
    assert ["ai: ", "tool: 9:00", "ai: At nine."] == heard(chunks)


def test_what_a_node_takes_away_is_not_said() -> None:
    """A message that removes another one is no answer."""
    assert ["ai: At nine."] == heard([{"model": {"messages": [RemoveMessage("m0"), ANSWER]}}])


def test_messages_without_ids_stay_apart() -> None:
    """Two messages that have no id are two."""
    assert ["ai: a", "ai: b"] == heard([{"model": {"messages": [AIMessage("a"), AIMessage("b")]}}])


@pytest.mark.parametrize("chunk", [{"answer": "done"}, {"answer": {"text": "done"}}, ("a", "b", "c"), "done"])
def test_what_is_no_update_is_the_answer(chunk: Any) -> None:
    """A chunk of a chain that is no graph stays what it is."""
    ear = Heard(None)

    ear.take(chunk)

    assert chunk == ear.value


def test_a_streamed_graph_is_stored(fresh: str) -> None:
    """What nodes wrote in a stream stands in the transcript, behind the question."""

    def streamed(given: Iterator[Any]) -> Iterator[Any]:
        for _ in given:
            yield from UPDATES

    memory = SlideMem(max_tokens=1000, counter="approximate")
    keys = {"input_messages_key": "messages", "output_messages_key": "messages"}
    chain = with_sliding_memory(RunnableGenerator(streamed), memory, **keys)

    list(chain.stream({"messages": [HumanMessage("When?")]}, {"configurable": {"session_id": fresh}}))

    told = SlidingChatMessageHistory(fresh, memory=memory).transcript
    assert [HumanMessage("When?"), *SAID] == told
