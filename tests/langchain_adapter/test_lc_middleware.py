"""An agent of LangChain's with the memory as its middleware, run with a scripted model."""

from __future__ import annotations

import asyncio
import importlib
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain")

from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    ModelRetryMiddleware,
    ToolRetryMiddleware,
)
from langchain.agents.structured_output import AutoStrategy, ProviderStrategy, ToolStrategy
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command
from lc_agents import MODES, Scripted, config, look_up, run, say, tokens
from lc_scripted import faults
from pydantic import BaseModel, Field
from sv_places import POSTGRES, Place
from sv_places import run as run_statement

from langchain_slidemem import ChatModelConsolidator
from langchain_slidemem.middleware import SlidingMemoryMiddleware
from slidemem import BudgetTooSmall, ConfigurationError, MissingExtra, StoreError

LIMIT = 1500
SYSTEM = "You book trains."
TASK = "Find the cheapest train to Pune, ticket X-4711."


def memory(**given: Any) -> SlidingMemoryMiddleware:
    """The memory, of `LIMIT` tokens."""
    return SlidingMemoryMiddleware(**{"max_tokens": LIMIT, "token_counter": "approximate", **given})


def agent(model: Any, *middleware: Any, saver: Any = None, **given: Any) -> Any:
    """An agent with the memory, or with the given middleware."""
    return create_agent(
        model,
        [look_up],
        system_prompt=SYSTEM,
        middleware=list(middleware) or [memory()],
        checkpointer=saver or InMemorySaver(),
        **given,
    )


def state(built: Any, thread: str) -> dict[str, Any]:
    """The values of a thread."""
    return dict(built.get_state(config(thread)).values)


def boundary(built: Any, thread: str) -> int:
    """How many messages of a thread are archived."""
    return int(state(built, thread).get("slidemem", {"record": {"boundary": 0}})["record"]["boundary"])


def archive(built: Any, thread: str) -> str:
    """What the archive of a thread says."""
    segments = state(built, thread)["slidemem"]["record"]["archive"]
    return "\n".join(segment["text"] for segment in segments)


def summarised(spans: list[tuple[str | None, ...]]) -> Any:
    """A summariser that tells the messages that it was given, by their ids."""

    def summarize(messages: list[BaseMessage]) -> str:
        spans.append(tuple(message.id for message in messages if message.id))  # what is merged has none
        seats = [word for message in messages for word in message.text.split() if word.startswith(("PNR", "X-", "Q"))]
        return f"Booked so far: {', '.join(seats[:8])}. Number {len(spans)}."

    return summarize


# ------------------------------------------------------------------ the budget


@pytest.mark.parametrize("mode", MODES)
def test_every_request_is_within_the_budget_and_the_state_keeps_all(fresh: str, mode: str) -> None:
    """Over forty turns with tools each request is valid and bounded, and not one message leaves the state."""
    model = Scripted(rounds=1)
    built = agent(model)

    for n in range(40):
        say(built, f"Please book seat {n}A to Pune.", fresh, mode)

    tools = tokens([HumanMessage(str(convert_to_openai_tool(look_up)))])
    assert LIMIT >= max(map(tokens, model.seen)) + tools
    assert [] == [fault for given in model.seen for fault in faults(given)]
    assert {SYSTEM} == {given[0].text for given in model.seen}
    assert (160, True) == (len(state(built, fresh)["messages"]), boundary(built, fresh) > 100)
    assert model.seen[-2][-1].text == "Please book seat 39A to Pune."


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
def test_langchain_39261_three_hundred_rounds_after_one_message(fresh: str, mode: str) -> None:
    """langchain#39261: the task stands in each of 301 requests, and real summaries are written on the way."""
    spans: list[Any] = []
    model = Scripted(rounds=300)
    built = agent(model, memory(summarizer=summarised(spans)))

    say(built, TASK, fresh, mode)

    assert (301, 602) == (len(model.seen), len(state(built, fresh)["messages"]))
    assert [] == [at for at, given in enumerate(model.seen) if TASK not in given[1].text]
    assert (LIMIT >= max(map(tokens, model.seen)), []) == (
        True,
        [f for given in model.seen[::9] for f in faults(given)],
    )
    assert 10 < len(set(spans)) < 100
    assert "Booked so far" in archive(built, fresh)
    assert 20_000 > len(str(state(built, fresh)["slidemem"]))


def test_a_message_is_counted_once(fresh: str) -> None:
    """The counter sees each message once, however often a request is made of it."""
    counted: list[str] = []

    def count(message: BaseMessage) -> int:
        counted.append(message.text)
        return len(message.text) // 4 + 4

    built = agent(Scripted(rounds=60), memory(token_counter=count))

    say(built, TASK, fresh)

    found = [text for text in counted if text.startswith("found")]
    assert 60 == len(set(found))
    assert 62 >= len(found)  # and what is clamped or stands at the place of another


def test_tools_and_system_message_are_inside_the_budget(fresh: str) -> None:
    """langchain#34664: twenty tools leave less for the conversation, and a short one is shown whole."""
    spans: list[Any] = []

    def numbered(n: int) -> dict[str, Any]:
        return {"type": "function", "function": {"name": f"tool_{n}", "description": "word " * 30, "parameters": {}}}

    model = Scripted()
    tools = [numbered(n) for n in range(20)]
    built = create_agent(
        model,
        [*tools, {"type": "web_search"}],
        system_prompt=SYSTEM,
        middleware=[memory(max_tokens=3000, summarizer=summarised(spans))],
        checkpointer=InMemorySaver(),
    )

    for n in range(3):
        say(built, f"Please book seat {n}A.", fresh)
    short = list(model.seen)
    for n in range(3, 60):
        say(built, f"Please book seat {n}A.", fresh)

    assert [2, 4, 6] == [len(given) for given in short]
    cost = sum(tokens([HumanMessage(str(one))]) for one in tools)
    assert (True, True) == (cost > 700, max(map(tokens, model.seen)) + cost <= 3100)
    assert bool(spans)


def test_a_request_that_cannot_fit_is_told(fresh: str) -> None:
    """A system prompt larger than the budget is an error with both numbers, and the state is unharmed."""
    built = create_agent(
        Scripted(), [], system_prompt="word " * 3000, middleware=[memory()], checkpointer=InMemorySaver()
    )

    with pytest.raises(BudgetTooSmall):
        say(built, "hi", fresh)

    assert ["hi"] == [message.text for message in state(built, fresh)["messages"]]


def test_metadata_are_shown(fresh: str) -> None:
    """Short facts about the session stand in front of the first message."""
    model = Scripted()

    say(agent(model, memory(metadata={"timezone": "IST"})), "hi", fresh)

    assert "timezone: IST" in model.seen[0][1].text


@pytest.mark.parametrize("oldest", ["ai", "tool", "human"])
def test_langgraph_8925_the_list_is_never_empty(fresh: str, oldest: str) -> None:
    """langgraph#8925: whatever the state begins with, the model gets messages."""
    said: dict[str, BaseMessage] = {
        "ai": AIMessage("hello"),
        "tool": ToolMessage("22", tool_call_id="c"),
        "human": HumanMessage("x" * 100_000),
    }
    model = Scripted()

    run(agent(model), {"messages": [said[oldest]]}, fresh)

    assert (2, SYSTEM) == (len(model.seen[0]), model.seen[0][0].text)


# ------------------------------------------------------------------ when summaries are written


@pytest.mark.parametrize("mode", MODES)
def test_a_summary_waits_for_the_end_of_the_run(fresh: str, mode: str) -> None:
    """In turns that fit, the model's answer comes before the summary, which is in the state when the run is done."""
    order: list[str] = []
    model = Scripted()

    def summarize(messages: list[BaseMessage]) -> str:
        order.append(f"summary after {len(model.seen)}")
        return "Seats are booked, PNR-0001."

    built = agent(model, memory(summarizer=summarize))
    before = 0
    for n in range(60):
        say(built, f"Please book seat {n}A, " + "word " * 10, fresh, mode)
        if order and not before:
            before = n + 1

    assert f"summary after {before}" == order[0]
    assert "Seats are booked" in archive(built, fresh)


def test_langchain_37815_what_left_does_not_leave_again(fresh: str) -> None:
    """langchain#37815: each message is summarised once, however many turns follow."""
    spans: list[Any] = []
    built = agent(Scripted(rounds=1), memory(summarizer=summarised(spans)))

    for n in range(60):
        say(built, f"Please book seat {n}A.", fresh)

    assert boundary(built, fresh) == sum(map(len, set(spans)))


@pytest.mark.parametrize("first", ["memory", "retry"])
@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
def test_a_model_that_raises_is_asked_again_with_the_same_list(fresh: str, first: str, mode: str) -> None:
    """Beside `ModelRetryMiddleware`, in either order, a retry sends the same, and no summary is paid for twice."""
    spans: list[Any] = []
    model = Scripted(fails={30, 31})
    both = [memory(summarizer=summarised(spans)), ModelRetryMiddleware(initial_delay=0, max_retries=3)]
    built = agent(model, *(both if first == "memory" else both[::-1]))

    for n in range(40):
        say(built, f"Please book seat {n}A, " + "word " * 12, fresh, mode)

    sent = [[message.text for message in given] for given in model.seen[29:32]]
    assert sent[0] == sent[1] == sent[2]
    assert boundary(built, fresh) == sum(map(len, set(spans)))


def test_a_turn_that_failed_goes_on(fresh: str) -> None:
    """A run whose model raises keeps what was summarised before, and the next run is right."""
    model = Scripted(rounds=40, fails={30})
    built = agent(model)

    with pytest.raises(ConnectionError):
        say(built, TASK, fresh)
    kept = boundary(built, fresh)
    run(built, None, fresh)

    assert 0 < kept <= boundary(built, fresh)
    assert (82, []) == (len(state(built, fresh)["messages"]), faults(model.seen[-1]))
    assert TASK in model.seen[-1][1].text


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
def test_langchain_38867_a_summariser_that_raises_is_no_ones_fault(fresh: str, mode: str) -> None:
    """langchain#38867: the turn goes on, and extracted lines stand in the archive, no text of the error."""

    def fails(messages: list[BaseMessage]) -> str:
        raise ConnectionError("no summary for you")

    model = Scripted(rounds=60)
    built = agent(model, memory(summarizer=fails))

    say(built, TASK, fresh, mode)

    assert (61, True) == (len(model.seen), boundary(built, fresh) > 0)
    assert "no summary for you" not in archive(built, fresh)


@pytest.mark.parametrize("mode", [["messages"], ["messages", "updates"]])
def test_no_token_of_a_summary_is_streamed(fresh: str, mode: list[str]) -> None:
    """`stream_mode="messages"` shows the model's words and the tools', never the summariser's."""
    writer = FakeListChatModel(responses=["SUMMARY of PNR-0001 and X-4711"])
    model = Scripted(rounds=40)
    built = agent(model, memory(summarizer=ChatModelConsolidator(writer)))

    chunks = list(built.stream({"messages": [HumanMessage(TASK)]}, config(fresh), stream_mode=mode))

    said = [message.text for kind, (message, *_) in ((k, c) for k, c in chunks if k == "messages")]
    assert (True, []) == (len(said) > 40, [text for text in said if "SUMMARY" in text])
    assert "SUMMARY" in archive(built, fresh)


def test_deer_flow_1602_a_stream_without_usage_is_no_fault(fresh: str) -> None:
    """deer-flow#1602: a summariser that streams without usage leaves figures of 0, and a summary."""
    built = agent(Scripted(rounds=40), memory(summarizer=FakeListChatModel(responses=["X-4711 is sought."])))

    list(built.stream({"messages": [HumanMessage(TASK)]}, config(fresh), stream_mode="messages"))

    assert "X-4711 is sought." in archive(built, fresh)


def test_a_summariser_that_is_awaited(fresh: str) -> None:
    """An async function summarises in async runs, and a sync run says so before it does anything."""

    async def summarize(messages: list[BaseMessage]) -> str:
        await asyncio.sleep(0)
        return "X-4711 is sought."

    model = Scripted(rounds=40)
    built = agent(model, memory(summarizer=summarize))

    with pytest.raises(ConfigurationError, match="run the agent with ainvoke or astream"):
        say(built, TASK, f"{fresh}-sync")
    say(built, TASK, fresh, "ainvoke")

    assert "X-4711 is sought." in archive(built, fresh)


# ------------------------------------------------------------------ where the record lives


@pytest.fixture(params=["a file", "a server"])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Any]]:
    """Opens a checkpointer anew on what an earlier one wrote."""
    if request.param == "a file":
        yield lambda: SqliteSaver.from_conn_string(str(tmp_path / "graph.db"))
        return
    schema = Place("postgres").fresh()
    run_statement(f"CREATE SCHEMA {schema}")
    yield lambda: PostgresSaver.from_conn_string(f"{POSTGRES}?options=-csearch_path%3D{schema}")
    run_statement(f"SET client_min_messages = warning; DROP SCHEMA {schema} CASCADE")


def test_a_checkpointer_keeps_the_record(fresh: str, saver: Callable[[], Any]) -> None:
    """Another process's agent goes on with the archive, and summarises nothing again."""
    spans: list[Any] = []
    for start in (0, 40):
        model = Scripted()
        with saver() as opened:
            opened.setup()
            built = agent(model, memory(summarizer=summarised(spans)), saver=opened)
            for n in range(start, start + 40):
                say(built, f"Please book seat {n}A, " + "word " * 12, fresh)
            said, covered = state(built, fresh)["messages"], boundary(built, fresh)

    assert (160, covered) == (len(said), sum(map(len, set(spans))))
    assert "Booked so far" in model.seen[0][1].text


def test_a_process_that_is_killed_is_resumed(fresh: str, tmp_path: Path) -> None:
    """A run that is killed in the middle of its tools goes on where it was, task and archive in its requests."""
    code = f"""
import os, signal, sqlite3, sys
sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[1] / "servers")]!r}
from test_lc_middleware import *
class Killed(Scripted):
    def answer(self, messages):
        if len(self.seen) == 30:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().answer(messages)
file = sqlite3.connect({str(tmp_path / "graph.db")!r}, check_same_thread=False)
built = agent(Killed(rounds=50), saver=SqliteSaver(file))
built.invoke({{"messages": [HumanMessage(TASK)]}}, config({fresh!r}), durability="sync")
"""
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603  # our own code
    file = sqlite3.connect(tmp_path / "graph.db", check_same_thread=False)
    model = Scripted(rounds=20)
    built = agent(model, saver=SqliteSaver(file))

    before = boundary(built, fresh)
    run(built, None, fresh)
    said = state(built, fresh)["messages"]
    file.close()

    assert (-9, "", True) == (killed.returncode, killed.stderr, before > 0)
    assert (102, []) == (len(said), faults(model.seen[-1]))
    assert [] == [given for given in model.seen if TASK not in given[1].text]


def test_a_fork_has_the_record_of_its_own_messages(fresh: str) -> None:
    """From an older checkpoint the conversation goes on with what was archived then; the other branch stays."""
    model = Scripted()
    built = agent(model)
    for n in range(60):
        say(built, f"Please book seat {n}A, " + "word " * 12, fresh)
    ended = [one for one in built.get_state_history(config(fresh)) if not one.next]
    old = next(one for one in ended if len(one.values["messages"]) == 70)

    forked = built.invoke({"messages": [HumanMessage("And now?")]}, old.config)

    kept = old.values["slidemem"]["record"]
    assert (72, 0 < kept["boundary"] < 70) == (len(forked["messages"]), True)
    assert "seat 50A" not in "".join(message.text for message in model.seen[-1])
    assert shown_of_archive(model.seen[-1][1].text) <= set(archive_text(kept).splitlines())
    assert 120 == len(ended[0].values["messages"])


def shown_of_archive(text: str) -> set[str]:
    """The lines of an archive that a message shows; there are some."""
    lines = {line for line in text.splitlines() if line.startswith("- ")}
    assert lines
    return lines


def archive_text(record: dict[str, Any]) -> str:
    """The archive of a record."""
    return "\n".join(segment["text"] for segment in record["archive"])


def test_the_record_is_private(fresh: str) -> None:
    """What a run returns has no record, and what it is given cannot set one."""
    built = agent(Scripted(rounds=40))

    ended = run(built, {"messages": [HumanMessage(TASK)], "slidemem": {"record": "nonsense"}}, fresh)

    assert ["messages"] == list(ended)
    assert boundary(built, fresh) > 0


def test_without_a_checkpointer_each_run_starts_from_what_it_is_given() -> None:
    """A list of a user's own is bounded in each run."""
    model = Scripted()
    built = create_agent(model, [], system_prompt=SYSTEM, middleware=[memory()])
    said: list[BaseMessage] = []
    for n in range(40):
        said = built.invoke({"messages": [*said, HumanMessage(f"seat {n}A, " + "word " * 12)]})["messages"]

    assert (80, True) == (len(said), LIMIT >= max(map(tokens, model.seen)))


# ------------------------------------------------------------------ a state that is changed


def long(thread: str, **given: Any) -> tuple[Scripted, Any]:
    """An agent with a thread of 60 turns, most of them archived."""
    model = Scripted()
    built = agent(model, memory(**given))
    for n in range(60):
        say(built, f"Please book seat {n}A, " + "word " * 12, thread)
    return model, built


@pytest.mark.parametrize("at", [2, 20, 60])
def test_a_message_that_was_edited_is_archived_no_more(fresh: str, at: int) -> None:
    """Where an archived message is replaced by its id, no prompt quotes what it said; the archive before it stays."""
    model, built = long(fresh)
    old = state(built, fresh)["messages"][at]
    segments = state(built, fresh)["slidemem"]["record"]["archive"]
    built.update_state(config(fresh), {"messages": [HumanMessage("Please book seat 99Z.", id=old.id)]})

    say(built, "And now?", fresh)

    now = state(built, fresh)["slidemem"]["record"]
    text = f"Please book seat {at // 2}A"
    assert [] == [one for one in now["archive"] if text in one["text"]]
    assert text not in model.seen[-1][1].text
    stayed = [one["id"] for one in segments if one["range"][1] <= at]
    assert stayed[:1] == [one["id"] for one in now["archive"]][: len(stayed[:1])]
    assert ([], True) == (faults(model.seen[-1]), LIMIT >= tokens(model.seen[-1]))


def test_a_message_that_was_removed_is_archived_no_more(fresh: str) -> None:
    """`RemoveMessage` takes what an archived message said out of the prompts, and nothing else."""
    model, built = long(fresh)
    said = state(built, fresh)["messages"]
    gone = next(one for one in said[:10:-1] if one.text in archive(built, fresh))
    built.update_state(config(fresh), {"messages": [RemoveMessage(id=gone.id)]})

    say(built, "And now?", fresh)

    assert (False, False) == (gone.text in archive(built, fresh), gone.text in model.seen[-1][1].text)
    assert 121 == len(state(built, fresh)["messages"])


def test_messages_taken_off_the_front_stay_archived(fresh: str) -> None:
    """A host that trims what is archived already saves room, and the archive still stands for it."""
    model, built = long(fresh)
    before, says = boundary(built, fresh), archive(built, fresh)
    front = state(built, fresh)["messages"][: before - 4]
    built.update_state(config(fresh), {"messages": [RemoveMessage(id=one.id) for one in front]})

    for n in range(30):
        say(built, f"Please book seat {n}B, " + "word " * 12, fresh)

    assert shown_of_archive(model.seen[60][1].text) & set(says.splitlines())
    assert (True, 120 - len(front) + 60) == (boundary(built, fresh) > before, len(state(built, fresh)["messages"]))
    assert ([], True) == (
        [f for given in model.seen[60:] for f in faults(given)],
        LIMIT >= max(map(tokens, model.seen)),
    )


def test_another_conversation_in_the_place_of_one_starts_anew(fresh: str) -> None:
    """Where nothing of the list is left, nothing is remembered of it."""
    model, built = long(fresh)
    everything = [RemoveMessage(id="__remove_all__"), HumanMessage("Hello, I am somebody else.")]
    built.update_state(config(fresh), {"messages": everything})

    run(built, None, fresh)
    say(built, "And now?", fresh)

    assert "seat" not in "".join(message.text for message in model.seen[-1] if message.type == "human")
    assert "earlier-conversation" not in model.seen[-1][1].text


def test_the_last_answer_is_made_again(fresh: str) -> None:
    """An answer that is removed is answered again, from the same prompt."""
    model, built = long(fresh)
    built.update_state(
        config(fresh), {"messages": [RemoveMessage(id=state(built, fresh)["messages"][-1].id)]}, as_node="__start__"
    )

    run(built, None, fresh)

    assert (120, "human") == (len(state(built, fresh)["messages"]), model.seen[-1][-1].type)


def test_langgraph_4289_an_interrupted_run_leaves_no_half_pair(fresh: str) -> None:
    """langgraph#4289: calls that were never answered get a stub, and the next question is answered."""
    model = Scripted()
    built = agent(model)
    call = {"name": "look_up", "args": {}, "id": "c1"}
    built.update_state(
        config(fresh), {"messages": [HumanMessage("look it up"), AIMessage("", tool_calls=[call])]}, as_node="model"
    )

    say(built, "never mind", fresh)

    assert ([], ["system", "human", "ai", "tool", "human"]) == (
        faults(model.seen[-1]),
        [message.type for message in model.seen[-1]],
    )


# ------------------------------------------------------------------ beside others


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
def test_deepagents_270_ten_calls_at_once(fresh: str, mode: str) -> None:
    """deepagents#270: ten parallel calls a round, each shown with all of its results or not at all."""
    model = Scripted(rounds=12, at_once=10)
    built = agent(model, memory(max_tokens=3000))

    say(built, TASK, fresh, mode)

    assert ([], True) == ([f for given in model.seen for f in faults(given)], 3000 >= max(map(tokens, model.seen)))
    for given in model.seen:
        called = [call["id"] for message in given for call in getattr(message, "tool_calls", ())]
        assert called == [message.tool_call_id for message in given if isinstance(message, ToolMessage)]


class Seat(BaseModel):
    """A seat that was booked."""

    number: str


@pytest.mark.parametrize("strategy", [ToolStrategy, AutoStrategy])
def test_a_structured_answer(fresh: str, strategy: Any) -> None:
    """The schema of the answer is inside the budget, and the answer is what it is without a memory."""

    class Answers(Scripted):
        def answer(self, messages: list[BaseMessage]) -> AIMessage:
            number = len(super().answer(messages).content)
            call = {"name": "Seat", "args": {"number": f"{number}A"}, "id": f"s{len(self.seen)}"}
            return AIMessage("", tool_calls=[call])

    model = Answers()
    built = agent(model, response_format=strategy(Seat))

    seats = [say(built, f"Please book seat {n}A. " + "word " * 12, fresh)["structured_response"] for n in range(30)]

    assert {Seat} == {type(seat) for seat in seats}
    assert ([], True) == ([f for given in model.seen for f in faults(given)], LIMIT >= max(map(tokens, model.seen)))
    assert boundary(built, fresh) > 0


def test_a_providers_own_schema_is_counted(fresh: str) -> None:
    """What a provider is told of the answer takes its tokens from the conversation."""
    seen = []
    for given in ({}, {"response_format": ProviderStrategy(Seat)}):
        middleware = memory(max_tokens=400)

        class Answers(Scripted):
            def answer(self, messages: list[BaseMessage]) -> AIMessage:
                super().answer(messages)
                return AIMessage('{"number": "1A"}')

        model = Answers()
        for n in range(20):
            say(agent(model, middleware, **given), f"seat {n}A " + "word " * 12, f"{fresh}-{n}")
        seen.append(middleware._memory._told)

    assert [1, 2] == [len(told) for told in seen]


@pytest.mark.parametrize("first", ["memory", "approval"])
def test_an_interrupt_is_resumed(fresh: str, first: str) -> None:
    """Beside human-in-the-loop, in either order, each call waits for approval, and goes on with archive and task."""
    model = Scripted(rounds=30)
    both = [memory(), HumanInTheLoopMiddleware(interrupt_on={"look_up": True})]
    built = agent(model, *(both if first == "memory" else both[::-1]))

    say(built, TASK, fresh)
    for _ in range(30):
        run(built, Command(resume={"decisions": [{"type": "approve"}]}), fresh)

    assert (31, 62) == (len(model.seen), len(state(built, fresh)["messages"]))
    assert ([], []) == (faults(model.seen[-1]), [given for given in model.seen if TASK not in given[1].text])
    assert boundary(built, fresh) > 0


@pytest.mark.parametrize("first", ["memory", "retry"])
def test_a_tool_that_raises_is_tried_again(fresh: str, first: str) -> None:
    """Beside `ToolRetryMiddleware`, in either order, each call has one result."""
    tries: list[str] = []

    @tool
    def flaky(query: str) -> str:
        """Fail at first."""
        tries.append(query)
        if tries.count(query) < 2:
            raise ConnectionError("not yet")
        return f"found {query} " + "word " * 20

    both = [memory(), ToolRetryMiddleware(initial_delay=0)]
    model = Scripted(rounds=20, called="flaky")
    built = create_agent(
        model, [flaky], middleware=both if first == "memory" else both[::-1], checkpointer=InMemorySaver()
    )

    say(built, TASK, fresh)

    assert (40, 42, []) == (len(tries), len(state(built, fresh)["messages"]), faults(model.seen[-1]))


@pytest.mark.parametrize("first", ["memory", "editing"])
def test_a_request_that_another_middleware_changed(fresh: str, first: str) -> None:
    """Beside `ContextEditingMiddleware`, in either order, archive and task are in every request."""
    both = [memory(), ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=300, keep=1)])]
    model = Scripted(rounds=60)
    built = agent(model, *(both if first == "memory" else both[::-1]))

    say(built, TASK, fresh)

    assert ([], True) == ([f for given in model.seen for f in faults(given)], LIMIT >= max(map(tokens, model.seen)))
    assert [] == [given for given in model.seen if TASK not in given[1].text]
    assert "earlier-conversation" in model.seen[-1][1].text
    assert any("[cleared]" in message.text for message in model.seen[-1])


def test_a_request_of_another_middlewares_own(fresh: str) -> None:
    """A middleware that asks something else altogether gets that answered."""

    class Asks(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(messages=[HumanMessage("Only this.")]))

    model = Scripted(rounds=40)

    say(agent(model, Asks(), memory()), TASK, fresh)

    assert [SYSTEM, "Only this."] == [message.text for message in model.seen[-1]]


def test_an_agent_inside_an_agent(fresh: str) -> None:
    """A sub-agent with the same memory as its middleware keeps its own record, and both stay bounded."""
    shared = memory()
    inner_model = Scripted(rounds=30)
    inner = create_agent(inner_model, [look_up], middleware=[shared])

    @tool
    def ask(query: str) -> str:
        """Ask another agent."""
        return str(inner.invoke({"messages": [HumanMessage(f"Sub-task {query}")]})["messages"][-1].text)

    model = Scripted(rounds=8, called="ask")
    built = create_agent(model, [ask], middleware=[shared], checkpointer=InMemorySaver())

    say(built, TASK, fresh)

    assert (18, 8 * 31) == (len(state(built, fresh)["messages"]), len(inner_model.seen))
    assert [] == [given for given in inner_model.seen if TASK in str(given) or "Sub-task" not in given[0].text]
    assert LIMIT >= max(map(tokens, [*model.seen, *inner_model.seen]))


def test_threads_at_once(fresh: str) -> None:
    """Eight threads of one agent at once keep their records apart."""
    model = Echoing()
    built = agent(model)

    async def talk(thread: str) -> None:
        for n in range(25):
            await built.ainvoke({"messages": [HumanMessage(f"{thread} seat {n}A " + "word " * 60)]}, config(thread))

    async def all_of_them() -> None:
        await asyncio.gather(*(talk(f"{fresh}-{n}") for n in range(8)))

    asyncio.run(all_of_them())

    for n in range(8):
        thread = f"{fresh}-{n}"
        assert 50 == len(state(built, thread)["messages"])
        assert [] == [line for line in archive(built, thread).splitlines() if fresh in line and thread not in line]


class Echoing(Scripted):
    """Answers by what it was asked."""

    def answer(self, messages: list[BaseMessage]) -> AIMessage:
        """Its first words."""
        return AIMessage("Booked: " + messages[-1].text.rpartition("\n")[2][:30])


# ------------------------------------------------------------------ configuration


@pytest.mark.parametrize(
    "given, said",
    [
        ({"mode": "background"}, "mode='background' cannot work here"),
        ({"mode": "manual"}, "mode='manual' cannot work here"),
        ({"store": "sqlite://"}, "leave out store: the record lives in the graph's state"),
        ({"records": None}, "leave out records"),
        ({"memory": None}, "leave out memory: pass its options themselves"),
        ({"max_tokens": None}, "max_tokens is missing"),
        ({"max_tokenz": 5}, "there is no such option"),
        ({"summarizer": 7}, "summarizer must be a chat model"),
        ({"metadata": {"a": []}}, "metadata values must be text or numbers"),
    ],
)
def test_a_wrong_configuration_raises_when_it_is_made(given: dict[str, Any], said: str) -> None:
    """Each mistake is named, with what to do."""
    with pytest.raises(ConfigurationError) as raised:
        memory(**given)

    assert said in str(raised.value)


def test_without_langchain_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The middleware needs langchain, the rest of the adapter does not; one sentence has the pip command."""
    monkeypatch.delitem(sys.modules, "langchain_slidemem.middleware")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    with pytest.raises(MissingExtra, match=r"pip install .?slidemem\[langchain-agents\]"):
        importlib.import_module("langchain_slidemem.middleware")


def test_what_is_remembered_of_threads_and_tools_is_bounded(fresh: str) -> None:
    """A process forgets the oldest threads' readings and its tools' counts, and reads and counts them again."""
    middleware = memory()
    model = Scripted()

    def numbered(n: int) -> dict[str, Any]:
        return {"type": "function", "function": {"name": f"tool_{n}", "description": "", "parameters": {}}}

    for n in range(70):
        built = create_agent(model, [numbered(n)], middleware=[middleware], checkpointer=InMemorySaver())
        say(built, "hi", f"{fresh}-{n}")

    assert (64, 70) == (len(middleware._memory._read), len(model.seen))
    assert 65 >= len(middleware._memory._told)


def test_a_damaged_record_is_told_and_can_be_taken_out(fresh: str) -> None:
    """What somebody else wrote under our key is an error that keeps every message; the advice of the docs helps."""
    built = agent(Scripted())
    say(built, "hi", fresh)
    built.update_state(config(fresh), {"slidemem": {"nonsense": 1}})

    with pytest.raises(StoreError, match="take the record out of the state"):
        say(built, "and now?", fresh)
    built.update_state(config(fresh), {"slidemem": None}, as_node="model")
    say(built, "again", fresh)

    assert ["hi", "and now?", "again"] == [
        message.text for message in state(built, fresh)["messages"] if message.type == "human"
    ]


class Tasked(Scripted):
    """Looks up thirty things for the sub-task that it finds in its request, then says so; runs may overlap."""

    looked: dict[str, int] = Field(default_factory=dict)

    def answer(self, messages: list[BaseMessage]) -> AIMessage:
        """By the task."""
        self.seen.append(list(messages))
        task = next(one.text for one in messages if "Sub-task" in one.text).rpartition("Sub-task ")[2]
        number = self.looked[task] = self.looked.get(task, 0) + 1
        call = {"name": "look_up", "args": {"query": f"{task}-{number}"}, "id": f"{task}-{number}"}
        return AIMessage("", tool_calls=[call]) if number <= 30 else AIMessage(f"done {task}")


def test_sub_agents_at_once(fresh: str) -> None:
    """Four sub-agents that share middleware and thread see their own task, results and archive alone."""
    shared, inner_model = memory(), Tasked()
    inner = create_agent(inner_model, [look_up], middleware=[shared])

    @tool
    def ask(query: str) -> str:
        """Ask another agent."""
        return str(inner.invoke({"messages": [HumanMessage(f"Sub-task {query}")]})["messages"][-1].text)

    built = create_agent(
        Scripted(rounds=1, at_once=4, called="ask"), [ask], middleware=[shared], checkpointer=InMemorySaver()
    )

    ended = say(built, TASK, fresh)

    assert [f"done Q1-{n}" for n in range(4)] == [one.text for one in ended["messages"] if one.type == "tool"]
    assert (124, True) == (len(inner_model.seen), LIMIT >= max(map(tokens, inner_model.seen)))
    for given in inner_model.seen:
        text = "\n".join(message.text for message in given)
        assert 1 == len(set(re.findall(r"Q1-\d", text)))
