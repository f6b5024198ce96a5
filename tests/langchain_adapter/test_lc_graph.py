"""A plain graph of LangGraph's with the memory in front of its model, and at the end of its runs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("langgraph")

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from lc_agents import MODES, Scripted, config, look_up, run, say, tokens
from lc_scripted import faults
from typing_extensions import TypedDict

from langchain_slidemem import SlidingMemoryNodes, SlidingState, sliding_pre_model_hook
from slidemem import ConfigurationError

LIMIT = 800


class State(MessagesState, SlidingState):
    """A graph's state."""


class Bare(MessagesState):
    """A graph's state without a channel for the record."""

    llm_input_messages: list[AnyMessage]


def hook(**given: Any) -> Any:
    """The memory, of `LIMIT` tokens."""
    return sliding_pre_model_hook(**{"max_tokens": LIMIT, "token_counter": "approximate", **given})


def nodes(**given: Any) -> SlidingMemoryNodes:
    """Both nodes, of `LIMIT` tokens."""
    return SlidingMemoryNodes(**{"max_tokens": LIMIT, "token_counter": "approximate", **given})


def graph(model: Scripted, schema: Any = State, **given: Any) -> Any:
    """A graph of the hook and a model."""
    built = StateGraph(schema)
    built.add_node("memory", hook(**given))
    built.add_node("model", lambda state: {"messages": [model.invoke(state["llm_input_messages"])]})
    built.add_edge(START, "memory")
    built.add_edge("memory", "model")
    return built.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("schema", [State, Bare])
def test_a_graph_is_bounded_and_its_state_keeps_all(fresh: str, mode: str, schema: Any) -> None:
    """Every list is valid and bounded, each message is summarised once, whether or not the state has the record."""
    spans: list[tuple[str | None, ...]] = []

    def summarize(messages: list[BaseMessage]) -> str:
        spans.append(tuple(message.id for message in messages if message.id))
        return f"Seats are booked, from the one of: {str(messages[0].content)[:24]}"

    model = Scripted()
    built = graph(model, schema, summarizer=summarize)

    for n in range(60):
        say(built, f"Please book seat {n}A. " + "word " * 12, fresh, mode)

    values = built.get_state(config(fresh)).values
    assert (120, LIMIT >= max(map(tokens, model.seen))) == (len(values["messages"]), True)
    assert [] == [fault for given in model.seen for fault in faults(given)]
    covered = [id_ for span in set(spans) for id_ in span]
    assert (True, len(set(covered))) == (len(covered) > 60, len(covered))
    assert "Seats are booked" in model.seen[-1][0].text
    assert (schema is State) == ("slidemem" in values)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("schema", [State, Bare])
def test_summaries_are_written_when_the_answer_is_there(fresh: str, mode: str, schema: Any) -> None:
    """With a node at the end no run waits for a summary before its answer, and each message is summarised once."""
    model, answered, covered = Scripted(), [], []

    def summarize(messages: list[BaseMessage]) -> str:
        answered.append(len(model.seen))
        covered.extend(message.id for message in messages if message.id)
        return f"Seats are booked, from the one of: {str(messages[0].content)[:24]}"

    both = nodes(summarizer=summarize)
    built = StateGraph(schema)
    built.add_node("memory", both.before_model)
    built.add_node("model", lambda state: {"messages": [model.invoke(state["llm_input_messages"])]})
    built.add_node("remember", both.after_agent)
    built.add_edge(START, "memory")
    built.add_edge("memory", "model")
    built.add_edge("model", "remember")
    built.add_edge("remember", END)
    compiled = built.compile(checkpointer=InMemorySaver())

    for n in range(60):
        say(compiled, f"Please book seat {n}A. " + "word " * 12, fresh, mode)
        assert set(answered) <= {n + 1}  # the model had answered this run
        answered.clear()

    values = compiled.get_state(config(fresh)).values
    assert (120, LIMIT >= max(map(tokens, model.seen))) == (len(values["messages"]), True)
    assert (True, len(set(covered))) == (len(covered) > 60, len(covered))
    assert "Seats are booked" in model.seen[-1][0].text
    assert (schema is State) == ("slidemem" in values)


@pytest.mark.filterwarnings("ignore::langgraph.warnings.LangGraphDeprecatedSinceV10")
def test_it_is_a_post_model_hook_too(fresh: str) -> None:
    """Between the rounds of a long run of tools too, what is due is written, and the task stays."""
    from langgraph.prebuilt import create_react_agent  # noqa: PLC0415  # deprecated, and needed here alone

    both = nodes()
    model = Scripted(rounds=40)
    built = create_react_agent(model, [look_up], pre_model_hook=both.before_model, post_model_hook=both.after_agent)

    values = say(built, "Find ticket X-4711.", fresh)

    assert 82 == len(values["messages"])
    assert [] == [given for given in model.seen if "X-4711" not in given[0].text]
    assert ([], True) == ([f for given in model.seen for f in faults(given)], LIMIT >= max(map(tokens, model.seen)))


@pytest.mark.filterwarnings("ignore::langgraph.warnings.LangGraphDeprecatedSinceV10")
@pytest.mark.parametrize("own", [False, True])
def test_it_is_a_pre_model_hook(fresh: str, *, own: bool) -> None:
    """In `create_react_agent` the task stands in each request of a long run of tools."""
    from langgraph.prebuilt import create_react_agent  # noqa: PLC0415  # deprecated, and needed here alone
    from langgraph.prebuilt.chat_agent_executor import AgentState  # noqa: PLC0415

    class Own(AgentState, SlidingState):
        """The agent's state with the record."""

    model = Scripted(rounds=40)
    built = create_react_agent(
        model,
        [look_up],
        prompt="You book trains.",
        pre_model_hook=hook(system="You book trains."),
        checkpointer=InMemorySaver(),
        **({"state_schema": Own} if own else {}),
    )

    say(built, "Find ticket X-4711.", fresh)

    values = built.get_state(config(fresh)).values
    assert (82, own) == (len(values["messages"]), "slidemem" in values)
    assert [] == [given for given in model.seen if "X-4711" not in given[1].text]
    assert ([], True) == ([f for given in model.seen for f in faults(given)], LIMIT >= max(map(tokens, model.seen)))


def test_the_list_is_never_empty(fresh: str) -> None:
    """langgraph#8925: where nothing of the state begins a conversation, the model gets it as it is."""
    model = Scripted()

    run(graph(model, system=SystemMessage("Be brief.")), {"messages": [AIMessage("hello")]}, fresh)

    assert ["hello"] == [message.text for message in model.seen[0]]


def test_many_threads_are_forgotten_and_made_again(fresh: str) -> None:
    """What a process keeps for states without a record is bounded; a forgotten thread is summarised anew."""
    model = Scripted()
    built = graph(model, Bare)
    said = [HumanMessage(f"seat {n}A " + "word " * 12) for n in range(60)]

    for n in range(70):
        run(built, {"messages": said}, f"{fresh}-{n}")
    say(built, "And now?", f"{fresh}-0")

    assert LIMIT >= tokens(model.seen[-1])
    assert "earlier-conversation" in model.seen[-1][0].text


class Other(TypedDict):
    """A state with another key."""

    said: list[AnyMessage]


def test_another_key_is_named() -> None:
    """A state that has its messages elsewhere says so."""
    with pytest.raises(
        ConfigurationError, match=r"the state has no 'messages' \(its keys: said\): pass messages_key"
    ):
        hook().invoke({"said": [HumanMessage("hi")]})

    assert ["hi"] == [
        one.text for one in hook(messages_key="said").invoke(Other(said=[HumanMessage("hi")]))["llm_input_messages"]
    ]


def test_a_summariser_that_is_awaited() -> None:
    """An async function summarises in async runs, and a sync run says so."""

    async def summarize(messages: list[BaseMessage]) -> str:
        await asyncio.sleep(0)
        return "Seat 0A and seat 1A are wanted."

    said = {"messages": [HumanMessage(f"seat {n}A " + "word " * 12) for n in range(60)]}

    for made in (nodes(summarizer=summarize).before_model, nodes(summarizer=summarize).after_agent):
        with pytest.raises(ConfigurationError, match="ainvoke"):
            made.invoke(said)
        given = asyncio.run(made.ainvoke(said))

        assert "Seat 0A and seat 1A are wanted." in given["slidemem"]["record"]["archive"][0]["text"]
