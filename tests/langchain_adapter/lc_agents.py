"""What the tests of agents run: a chat model that follows a script, and ways to run an agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
from pydantic import Field

from langchain_slidemem import LangChainCodec
from slidemem import SlideMem

CODEC = LangChainCodec()
COUNTER = SlideMem(max_tokens=1000, counter="approximate")
MODES = ["invoke", "stream", "ainvoke", "astream"]


@tool
def look_up(query: str) -> str:
    """Look something up."""
    return f"found {query}: " + "platform 4, seat 12A, " * 8


class Scripted(BaseChatModel):
    """Calls tools for so many rounds after each user message, then answers; keeps the lists that it was given.

    Attributes:
        rounds: of tools.
        at_once: calls of a round.
        fails: at which of its calls it raises.
        seen: the lists.
    """

    rounds: int = 0
    at_once: int = 1
    fails: set[int] = Field(default_factory=set)
    called: str = "look_up"
    seen: list[list[BaseMessage]] = Field(default_factory=list)
    turns: list[int] = Field(default_factory=lambda: [0])

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **more: Any) -> Any:
        """Itself: the script knows the tools."""
        return self

    def answer(self, messages: list[BaseMessage]) -> AIMessage:
        """The next message of the script."""
        self.seen.append(list(messages))
        number = len(self.seen)
        if number in self.fails:
            raise ConnectionError("the model is not there")
        if self.turns[0] < self.rounds:
            self.turns[0] += 1
            calls = [
                {"name": self.called, "args": {"query": f"Q{number}-{n}"}, "id": f"c{number}-{n}"}
                for n in range(self.at_once)
            ]
            return AIMessage(f"Looking, {number}.", tool_calls=calls)
        self.turns[0] = 0
        return AIMessage(f"Answer {number}: seat {number}A is booked, PNR-{number:04}.")

    def _generate(self, messages: list[BaseMessage], *given: Any, **more: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.answer(messages))])

    def _stream(self, messages: list[BaseMessage], *given: Any, **more: Any) -> Iterator[ChatGenerationChunk]:
        said = self.answer(messages)
        chunk = AIMessageChunk(said.content, tool_calls=said.tool_calls)
        yield ChatGenerationChunk(message=chunk)

    async def _astream(
        self, messages: list[BaseMessage], *given: Any, **more: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream(messages):
            yield chunk


def config(thread: str) -> Any:
    """For a thread."""
    return {"configurable": {"thread_id": thread}, "recursion_limit": 5000}


def say(agent: Any, text: str, thread: str, mode: str = "invoke") -> Any:
    """Say something in a thread; the final state, or the chunks."""
    return run(agent, {"messages": [HumanMessage(text)]}, thread, mode)


def run(agent: Any, given: Any, thread: str, mode: str = "invoke") -> Any:
    """Run an agent."""
    runs: dict[str, Callable[[], Any]] = {
        "invoke": lambda: agent.invoke(given, config(thread)),
        "stream": lambda: list(agent.stream(given, config(thread))),
        "ainvoke": lambda: asyncio.run(agent.ainvoke(given, config(thread))),
        "astream": lambda: asyncio.run(_all(agent.astream(given, config(thread)))),
    }
    return runs[mode]()


async def _all(chunks: AsyncIterator[Any]) -> list[Any]:
    return [chunk async for chunk in chunks]


def tokens(messages: Sequence[BaseMessage]) -> int:
    """Tokens of a list."""
    return sum(COUNTER.count(CODEC.encode(message)) for message in messages)
