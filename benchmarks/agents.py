# ruff: noqa: S106  # no token here is a password
"""Runs one agent of 200 turns with each memory that LangChain has for it and with ours, side by side.

    python benchmarks/agents.py [--turns N]

The model, its tool and the summariser are scripts; the summariser is the same for all: it quotes the sentences with
a reference that it is given, up to 600 characters. What each request costs is counted by one estimate, system prompt
and tool included. Needs the extra `langchain-agents`; no network, no key. Exits 1 when ours is over its budget, sends
what a provider refuses, or loses a task.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from langchain.agents import create_agent
from langchain.agents.middleware import ContextEditingMiddleware, SummarizationMiddleware
from langchain.agents.middleware.context_editing import ClearToolUsesEdit
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field

from langchain_slidemem import LangChainCodec
from langchain_slidemem.middleware import SlidingMemoryMiddleware
from slidemem import approximate_counter
from slidemem.testing import violations

BUDGET: Final = 4000
SYSTEM: Final = "You are a travel agent. Look things up before you answer."
LATER: Final = 15  # turns between what is said and the question about it
REFERENCE: Final = re.compile(r"[^.\n]*\b[A-Z]{3}-\d+\b[^.\n]*")

_COUNTER: Final = approximate_counter()
_CODEC: Final = LangChainCodec()


@tool
def look_up(query: str) -> str:
    """Look up trains, seats and prices."""
    size = 700 if query.endswith("0") and int(query) % 40 == 0 else 12
    return " ".join(f"Train {n} from Mumbai to Pune leaves at {n % 24}:{n % 60:02}." for n in range(size))


class Agent(BaseChatModel):
    """Looks something up after each question, then answers; keeps its requests."""

    seen: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "agent"

    def bind_tools(self, tools: Sequence[Any], **more: Any) -> Any:  # noqa: ARG002  # LangChain's
        """Itself."""
        return self

    def _generate(self, messages: list[BaseMessage], *given: Any, **more: Any) -> ChatResult:  # noqa: ARG002
        self.seen.append(list(messages))
        number = len(self.seen)
        if number % 2:
            calls = [{"name": "look_up", "args": {"query": str(number // 2)}, "id": f"c{number}"}]
            said = AIMessage("", tool_calls=calls)
        else:
            said = AIMessage(f"There is a train at {number % 24}:30, platform {number % 9}.")
        return ChatResult(generations=[ChatGeneration(message=said)])


class Summariser(BaseChatModel):
    """Quotes the sentences with a reference; counts its calls."""

    calls: list[int] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "summariser"

    def quoted(self, messages: Sequence[BaseMessage]) -> str:
        """The summary of messages."""
        self.calls.append(len(messages))
        found = dict.fromkeys(one.strip() for one in REFERENCE.findall("\n".join(one.text for one in messages)))
        return ". ".join(found)[:600] or "Trains from Mumbai to Pune were looked up."

    def _generate(self, messages: list[BaseMessage], *given: Any, **more: Any) -> ChatResult:  # noqa: ARG002
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.quoted(messages)))])


@dataclass(frozen=True)
class Row:
    """What came of a run."""

    memory: str
    over_budget: int
    invalid: int
    tasks_lost: int
    facts_lost: str
    summary_calls: int
    prefix_reuse: str
    left_in_state: str


def question(turn: int) -> str:
    """What the user says in a turn: a fact in every fifth, a question about one later, small talk else."""
    if turn % 5 == 0:
        return f"For later: the booking of traveller {turn} is PNR-{turn * 37 + 1000}."
    if (turn - LATER) % 5 == 1 and turn > LATER:
        return f"What is the booking of traveller {turn - LATER - 1}?"
    return f"And what about the trains on day {turn}, is there one in the morning?"


def measured(name: str, turns: int, middleware: Callable[[Summariser], list[Any]]) -> Row:
    """Run an agent, and look at each of its requests."""
    model, summariser = Agent(), Summariser()
    agent: Any = create_agent(
        model, [look_up], system_prompt=SYSTEM, middleware=middleware(summariser), checkpointer=InMemorySaver()
    )
    config: Any = {"configurable": {"thread_id": "one"}}
    tool_tokens = _COUNTER.count(_CODEC.encode(HumanMessage(json.dumps(convert_to_openai_tool(look_up)))))
    asked: list[str] = []
    for turn in range(turns):
        before = len(model.seen)
        agent.invoke({"messages": [HumanMessage(question(turn))]}, config)
        asked += [question(turn)] * (len(model.seen) - before)
    costs = [sum(_COUNTER.count(_CODEC.encode(one)) for one in given) + tool_tokens for given in model.seen]
    about = [turn for turn in range(turns) if question(turn).startswith("What is")]
    lost = [turn for turn in about if f"PNR-{(turn - LATER - 1) * 37 + 1000}" not in _text(model.seen[2 * turn])]
    state = agent.get_state(config).values["messages"]
    return Row(
        memory=name,
        over_budget=sum(cost > BUDGET for cost in costs),
        invalid=sum(bool(_faults(given)) for given in model.seen),
        tasks_lost=sum(task not in _text(given) for task, given in zip(asked, model.seen, strict=True)),
        facts_lost=f"{len(lost)} of {len(about)}",
        summary_calls=len(summariser.calls),
        prefix_reuse=f"{_reused([_wire(given) for given in model.seen]):.0%}",
        left_in_state=f"{len(state)} of {4 * turns}",
    )


def _text(given: Sequence[BaseMessage]) -> str:
    return "\n".join(message.text for message in given)


def _wire(given: Sequence[BaseMessage]) -> str:
    return json.dumps(convert_to_openai_messages(list(given)))


def _faults(given: Sequence[BaseMessage]) -> list[Any]:
    converted = convert_to_openai_messages(list(given))
    return list(violations(converted, providers=("openai", "anthropic", "gemini", "bedrock")))


def _reused(prompts: Sequence[str]) -> float:
    """The share of all prompts, in characters, that the prompt before began with."""
    same = sum(_common(one, other) for one, other in pairwise(prompts))
    return same / sum(len(prompt) for prompt in prompts[1:])


def _common(one: str, other: str) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


MEMORIES: Final[dict[str, Callable[[Summariser], list[Any]]]] = {
    "slidemem": lambda writer: [
        SlidingMemoryMiddleware(max_tokens=BUDGET, token_counter="approximate", summarizer=writer.quoted)
    ],
    "slidemem, without a model": lambda _: [SlidingMemoryMiddleware(max_tokens=BUDGET, token_counter="approximate")],
    "SummarizationMiddleware": lambda writer: [SummarizationMiddleware(writer, trigger=("tokens", BUDGET))],
    "the same, keep 1,500 tokens": lambda writer: [
        SummarizationMiddleware(writer, trigger=("tokens", BUDGET), keep=("tokens", 1500))
    ],
    "ContextEditingMiddleware": lambda _: [ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=BUDGET)])],
    "none": lambda _: [],
}


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=200)
    turns: int = parser.parse_args().turns
    rows = [measured(name, turns, middleware) for name, middleware in MEMORIES.items()]
    heads = ("memory", "over budget", "invalid", "task lost", "facts lost", "summary calls", "prefix", "in state")
    print(f"{turns} turns, {2 * turns} requests, {BUDGET:,} tokens\n")
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(map(str, vars(row).values())) + " |")
    ours = rows[:2]
    return int(any(row.over_budget or row.invalid or row.tasks_lost for row in ours))


if __name__ == "__main__":
    sys.exit(main())
