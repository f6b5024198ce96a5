"""Where LangChain's own short-term memories fail, as seen by running them: each case with the right value."""

# ruff: noqa: S106  # no token here is a password

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory
from lc_scripted import Echo, faults

from langchain_slidemem import LangChainCodec, SlidingChatMessageHistory, with_sliding_memory
from slidemem import BudgetTooSmall, SlideMem

ignored = pytest.mark.filterwarnings("ignore::langchain_core._api.deprecation.LangChainDeprecationWarning")


def history(session: str, **given: Any) -> SlidingChatMessageHistory:
    """A history of 400 tokens."""
    return SlidingChatMessageHistory(session, **{"max_tokens": 400, "token_counter": "approximate", **given})


def call(id_: str, **args: Any) -> dict[str, Any]:
    """A tool call."""
    return {"name": "look_up", "args": args, "id": id_}


def turns(size: int, words: int = 6) -> list[BaseMessage]:
    """Plain turns."""
    return [
        message
        for n in range(size)
        for message in (HumanMessage(f"question {n} " + "word " * words), AIMessage(f"answer {n} " + "word " * words))
    ]


# ------------------------------------------------------------------ count_tokens_approximately

DATA = "QUJD" * 100_000
ARGUMENTS = {"text": "x " * 2000}
COUNTED: dict[str, tuple[BaseMessage, range]] = {
    "arguments beside text": (AIMessage("", tool_calls=[call("c", **ARGUMENTS)]), range(900, 4500)),
    "arguments beside no blocks": (AIMessage([], tool_calls=[call("c", **ARGUMENTS)]), range(900, 4500)),
    "arguments beside blocks": (
        AIMessage([{"type": "text", "text": "ok"}], tool_calls=[call("c", **ARGUMENTS)]),
        range(900, 4500),
    ),
    "arguments that are said twice, langchain#35558": (
        AIMessage(
            [{"type": "tool_use", "id": "c", "name": "look_up", "input": ARGUMENTS}],
            tool_calls=[call("c", **ARGUMENTS)],
        ),
        range(900, 4500),
    ),
    "a legacy call": (
        AIMessage("", additional_kwargs={"function_call": {"name": "f", "arguments": "x " * 2000}}),
        range(900, 4500),
    ),
    "an invalid call": (
        AIMessage("", invalid_tool_calls=[{"name": "f", "args": "x " * 2000, "id": "c", "error": None}]),
        range(900, 4500),
    ),
    "an artifact, which is not sent": (ToolMessage("22", tool_call_id="c", artifact="x " * 2000), range(1, 40)),
    "1,000 Chinese characters": (HumanMessage("火" * 1000), range(600, 2500)),
    **{
        f"400 kB as {block['type']}": (HumanMessage([block]), range(50, 5000))
        for block in (
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}},
            {"type": "image", "base64": DATA, "mime_type": "image/png"},
            {"type": "input_image", "image_url": f"data:image/png;base64,{DATA}"},
            {"type": "audio", "base64": DATA, "mime_type": "audio/wav"},
            {"type": "input_audio", "input_audio": {"data": DATA, "format": "wav"}},
            {"type": "file", "base64": DATA, "mime_type": "application/pdf"},
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": DATA}},
            {"type": "media", "mime_type": "video/mp4", "data": DATA},
        )
    },
}


@pytest.mark.parametrize("name", COUNTED)
def test_every_message_costs_what_is_sent_of_it(name: str) -> None:
    """Arguments count wherever they stand, media by their kind, and what is not sent costs nothing."""
    message, expected = COUNTED[name]

    tokens = SlideMem(max_tokens=100_000, counter="approximate").count(LangChainCodec().encode(message))

    assert tokens in expected


def test_both_spellings_of_a_call_cost_the_same(fresh: str) -> None:
    """langchain#35558: a call that the content says too is counted once."""
    said = AIMessage([], tool_calls=[call("c", **ARGUMENTS)])
    twice = AIMessage(
        [{"type": "tool_use", "id": "c", "name": "look_up", "input": ARGUMENTS}], tool_calls=said.tool_calls
    )
    chat = history(fresh, max_tokens=100_000)

    chat.add_messages([HumanMessage("look"), said, ToolMessage("22", tool_call_id="c"), twice])

    assert chat.context().costs[1] == chat.context().costs[3]


# ------------------------------------------------------------------ trim_messages


def test_the_task_of_a_long_tool_loop_is_kept(fresh: str) -> None:
    """Where the documented recipe keeps the system message alone, task and newest results are shown."""
    chat = history(fresh, max_tokens=200)
    chat.add_messages([SystemMessage("Be brief."), HumanMessage("Find the cheapest train to Pune.")])
    for n in range(6):
        chat.add_messages(
            [AIMessage("", tool_calls=[call(f"c{n}")]), ToolMessage(f"result {n} " * 12, tool_call_id=f"c{n}")]
        )

    shown = chat.messages

    assert ["system", "human"] == [message.type for message in shown[:2]]
    assert shown[1].text.endswith("Find the cheapest train to Pune.")
    assert "result 5" in shown[-1].text
    assert ([], True) == (faults(shown), chat.context().tokens <= 200)


def test_a_system_message_larger_than_the_budget_is_told(fresh: str) -> None:
    """1,005 tokens for a budget of 100 are an error with both numbers, not a prompt."""
    chat = history(fresh, max_tokens=100)
    chat.add_messages([SystemMessage("word " * 1000), HumanMessage("hi")])

    with pytest.raises(BudgetTooSmall) as raised:
        _ = chat.messages

    assert (True, 100) == (raised.value.needed > 1000, raised.value.usable)


def test_every_system_message_is_shown(fresh: str) -> None:
    """Two in front stay in front, and one in the middle is said where it stands."""
    chat = history(fresh, max_tokens=1000)
    front: list[BaseMessage] = [SystemMessage("Be brief."), SystemMessage("Be kind.")]
    chat.add_messages(
        [*front, HumanMessage("hi"), AIMessage("hello"), SystemMessage("Be quick."), HumanMessage("so?")]
    )

    shown = chat.messages

    assert front == shown[:2]
    assert any("Be quick." in message.text for message in shown[2:])
    assert [] == faults(shown)


@pytest.mark.parametrize("words", [10, 100, 1000, 10_000])
def test_a_newest_message_of_any_size_is_shown(fresh: str, words: int) -> None:
    """Where trimming gives an empty list, the newest message is there, clamped where it is larger than the budget."""
    chat = history(fresh)
    chat.add_messages([*turns(10), HumanMessage("begin " + "word " * words + "end")])

    newest = chat.messages[-1].text

    assert (True, True) == ("begin word" in newest, newest.endswith("word end"))
    assert 400 >= chat.context().tokens


# ------------------------------------------------------------------ RunnableWithMessageHistory


class Tuples(BaseChatMessageHistory):
    """A user's history that hands out a tuple."""

    kept: tuple[BaseMessage, ...]

    def __init__(self, kept: Sequence[BaseMessage] = ()) -> None:
        super().__init__()
        self.kept = tuple(kept)

    @property
    def messages(self) -> Any:
        """A tuple."""
        return self.kept

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append."""
        self.kept = (*self.kept, *messages)

    def clear(self) -> None:
        """Forget."""
        self.kept = ()


@ignored
def test_a_history_that_returns_a_tuple_is_no_fault() -> None:
    """Over a history of tuples LangChain's runnable gets the list that it copies."""
    theirs = Tuples(turns(2))
    get = SlidingChatMessageHistory.over(lambda session_id: theirs, max_tokens=400, token_counter="approximate")
    runnable = RunnableWithMessageHistory(Echo(), get)

    runnable.invoke("and now?", {"configurable": {"session_id": "s"}})

    assert ["and now?", "re: and now?"] == [message.text for message in theirs.kept[4:]]


@ignored
def test_langchain_14511_a_stream_is_stored_once(fresh: str) -> None:
    """langchain#14511: of two streams each question and answer is there once, the answer as a whole message."""
    runnable = RunnableWithMessageHistory(Echo(), history)

    for text in ("one more", "and again"):
        list(runnable.stream(text, {"configurable": {"session_id": fresh}}))

    assert [
        (HumanMessage, "one more"),
        (AIMessage, "re: one more"),
        (HumanMessage, "and again"),
        (AIMessage, "re: and again"),
    ] == [(type(message), message.text) for message in history(fresh).transcript]


@ignored
def test_what_came_with_a_message_stays_with_it(fresh: str) -> None:
    """Ids, usage and classes of one's own pass through LangChain's runnable and ours."""

    class Urgent(HumanMessage):
        """A user's."""

    usage: Any = {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13}
    answer = AIMessage("done", id="a", usage_metadata=usage)
    asked = Urgent("now!", id="q", additional_kwargs={"priority": 1})
    mem = SlideMem(max_tokens=400, counter="approximate")

    with_sliding_memory(RunnableLambda(lambda messages: answer), mem).invoke(
        [asked], {"configurable": {"session_id": fresh}}
    )

    said = SlidingChatMessageHistory(fresh, memory=mem).transcript
    assert [asked, answer] == said
    assert [Urgent, AIMessage] == [type(message) for message in said]


def test_a_list_that_was_handed_out_is_the_callers(fresh: str) -> None:
    """Whatever is done to a list, and to the messages in it, the session stays as it was."""
    chat = history(fresh)
    chat.add_messages([HumanMessage([{"type": "text", "text": "hi"}]), AIMessage("hello")])

    handed = chat.messages
    handed[0].content[0]["text"] = "changed"  # type: ignore[index]
    handed.append(HumanMessage("more"))

    assert [HumanMessage([{"type": "text", "text": "hi"}]), AIMessage("hello")] == chat.messages == chat.transcript


# ------------------------------------------------------------------ the classic memories


def test_a_newest_answer_over_the_limit_loses_nothing(fresh: str) -> None:
    """Where the token buffer empties itself, question and answer are shown, clamped, and kept whole."""
    chat = history(fresh)
    answer = AIMessage("word " * 2000)

    chat.add_messages([HumanMessage("tell me all"), answer])

    assert ["human", "ai"] == [message.type for message in chat.messages]
    assert (400 >= chat.context().tokens, answer) == (True, chat.transcript[-1])


@pytest.mark.parametrize("awaited", [False, True])
def test_a_summariser_that_raises_loses_nothing(fresh: str, *, awaited: bool) -> None:
    """Where the summary buffer has popped the messages already, all are in the transcript or the archive."""
    tries: list[int] = []

    def fails(messages: list[BaseMessage]) -> str:
        tries.append(len(messages))
        raise ConnectionError("no model")

    chat, said = history(fresh, summarizer=fails), turns(30)
    if awaited:
        asyncio.run(chat.aadd_messages(said))
    else:
        chat.add_messages(said)

    assert said == chat.transcript
    assert {"extractive", "none"} >= {segment.method for segment in chat.session.archive()}
    assert (True, 400) >= (bool(tries), chat.context().tokens)
    receipt = chat.context().receipt
    assert len(said) == receipt.covered + receipt.left_out + len(
        [seq for seq in receipt.shown if seq >= receipt.boundary]
    )


def test_langchain_40725_secrets_are_out_before_anything_is_summarised(fresh: str) -> None:
    """langchain#40725: with `redact=` no secret reaches summariser, archive or pins; the transcript keeps it."""
    seen: list[str] = []

    def summarize(messages: list[BaseMessage]) -> str:
        seen.extend(message.text for message in messages)
        return ""  # refused, so that extracted lines stand in

    chat = history(fresh, summarizer=summarize, redact=lambda text: text.replace("4111-1111", "****"))
    for n in range(20):
        chat.add_user_message(f"Remember this: my card number {n} is 4111-1111 and I sit in seat {n}A.")
        chat.add_ai_message(f"Noted, card 4111-1111, reference PNR-{n:04}.")

    assert (True, []) == (bool(seen), [text for text in seen if "4111-1111" in text])
    kept = [*(segment.text for segment in chat.session.archive()), *(pin.text for pin in chat.session.pins())]
    assert (True, []) == (bool(kept), [text for text in kept if "4111-1111" in text])
    assert 40 == sum("4111-1111" in message.text for message in chat.transcript)


def test_a_read_costs_no_count_and_an_append_one_each(fresh: str) -> None:
    """200 messages, read once a turn, are 200 counts, where trimming the whole log counts it at each read."""
    counted: list[int] = []

    def count(messages: list[BaseMessage]) -> int:
        counted.append(len(messages))
        return sum(len(message.text) // 4 + 4 for message in messages)

    chat = history(fresh, max_tokens=100_000, token_counter=count)
    for n in range(100):
        chat.add_messages([HumanMessage(f"question {n}"), AIMessageChunk(f"answer {n}")])
        _ = chat.messages

    assert [1] * 200 == counted
