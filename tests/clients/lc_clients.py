"""LangChain's clients of the strict provider, and the surfaces of ours that a session goes through."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from client_script import BUDGET, PIXEL, SYSTEM, TOOLS, Line
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from strict_provider import StrictProvider

from langchain_slidemem import SlidingChatMessageHistory, with_sliding_memory
from langchain_slidemem.middleware import SlidingMemoryMiddleware

Model = Any
ROUNDS = 150  # tokens that an agent's calls and results add in a run: a history cannot see them come
BROKEN = [False]  # whether the tool raises

CALLS_TOOLS = {"openai", "responses", "anthropic", "gemini", "bedrock"}
THINKS = {"responses", "anthropic", "gemini", "bedrock"}
ALTERNATES = {"gemini", "template"}  # whose client sends two user messages in a row, and who refuses them


class Interrupted(Exception):  # what happened
    """The run was broken off."""


@tool
def look_up(query: str) -> str:
    """Look a train up in the timetable."""
    if BROKEN[0]:
        raise Interrupted
    return f"found {query}: platform 4, coach B, two hours and ten minutes, 340 rupees"


def model_of(name: str, provider: StrictProvider) -> Model:  # one client each
    """A client by its provider's name."""
    url = provider.url
    if name in {"openai", "responses", "template"}:
        from langchain_openai import ChatOpenAI  # noqa: PLC0415  # a second each to import

        plain = {"api_key": "k", "max_retries": 0, "stream_usage": True}
        if name == "openai":
            return ChatOpenAI(model="gpt-4o", base_url=f"{url}/v1", **plain)
        if name == "template":
            return ChatOpenAI(model="gemma", base_url=f"{url}/template/v1", **plain)
        reasoning = {"reasoning": {"effort": "low", "summary": "auto"}, "include": ["reasoning.encrypted_content"]}
        return ChatOpenAI(
            model="gpt-5", base_url=f"{url}/v1", use_responses_api=True, store=False, **reasoning, **plain
        )
    if name == "anthropic":
        from langchain_anthropic import ChatAnthropic  # noqa: PLC0415

        thinking = {"type": "enabled", "budget_tokens": 1024}
        return ChatAnthropic(
            model="claude-sonnet-4-20250514",
            base_url=url,
            api_key="k",
            max_retries=0,
            thinking=thinking,
            max_tokens=2048,
        )
    if name == "gemini":
        from langchain_google_genai import ChatGoogleGenerativeAI  # noqa: PLC0415

        return ChatGoogleGenerativeAI(
            model="gemini-2.5-flash", base_url=url, google_api_key="k", max_retries=1, include_thoughts=True
        )
    from langchain_aws import ChatBedrockConverse  # noqa: PLC0415

    return ChatBedrockConverse(
        model="anthropic.claude-3-7-sonnet-20250219-v1:0",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="k",
        aws_secret_access_key="s",  # noqa: S106  # nobody's
        additional_model_request_fields={"thinking": {"type": "enabled", "budget_tokens": 1024}},
        max_tokens=2048,
    )


def message_of(line: Line) -> HumanMessage:
    """What the user says."""
    if not line.picture:
        return HumanMessage(line.text)
    url = f"data:image/png;base64,{PIXEL}"
    return HumanMessage([{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": line.text}])


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """One event loop for all: clients keep their connections, which belong to a loop."""
    return asyncio.new_event_loop()


class Calls:
    """How a runnable is called: whole or as a stream, sync or async, always on one event loop."""

    def __init__(self, mode: str) -> None:
        self.mode = mode

    def wait(self, coroutine: Any) -> Any:
        """What a coroutine returns."""
        return _loop().run_until_complete(coroutine)

    def __call__(self, runnable: Any, given: Any, config: Any = None) -> Any:
        """The answer, chunks added up."""
        if self.mode == "invoke":
            return runnable.invoke(given, config)
        if self.mode == "ainvoke":
            return self.wait(runnable.ainvoke(given, config))
        if self.mode == "stream":
            return _added(list(runnable.stream(given, config)))
        return self.wait(_astreamed(runnable, given, config))

    def broken_off(self, runnable: Any, given: Any, config: Any = None) -> None:
        """Call, and go away after the first chunk."""
        if self.mode in {"invoke", "stream"}:
            chunks = runnable.stream(given, config)
            next(chunks)
            chunks.close()
        else:
            self.wait(_first(runnable, given, config))


def _added(chunks: list[Any]) -> Any:
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole = whole + chunk if isinstance(chunk, BaseMessage) else chunk
    return whole


async def _astreamed(runnable: Any, given: Any, config: Any) -> Any:
    return _added([chunk async for chunk in runnable.astream(given, config)])


async def _first(runnable: Any, given: Any, config: Any) -> None:
    chunks = runnable.astream(given, config)
    await anext(chunks)
    await chunks.aclose()


class Surface:
    """A surface of ours, with a client behind it.

    Args:
        name: of the client.
        provider: what it talks to.
        mode: how it is called.
        home: a folder for what outlives a restart.
    """

    def __init__(self, name: str, provider: StrictProvider, mode: str, home: Path) -> None:
        self.name = name
        self.model = model_of(name, provider)
        self.calls = Calls(mode)
        self.home = home
        self.options: dict[str, Any] = {"max_tokens": BUDGET, "alternate": name in ALTERNATES}
        self.open()

    def open(self) -> None:
        """Make what a process makes when it starts."""

    def say(self, line: Line) -> None:
        """One turn."""
        raise NotImplementedError

    def break_off(self, line: Line) -> None:
        """A turn that is broken off."""
        raise NotImplementedError

    @property
    def consolidations(self) -> int:
        """How often old turns have left the window."""
        raise NotImplementedError

    @property
    def said(self) -> list[BaseMessage]:
        """The transcript."""
        raise NotImplementedError


class History(Surface):
    """A chat message history, with a tool loop written by hand."""

    history: SlidingChatMessageHistory

    def open(self) -> None:
        """A history over a file."""
        store = f"sqlite:///{self.home / 'history.db'}"
        self.history = SlidingChatMessageHistory("s", store=store, reserve_tokens=TOOLS, **self.options)
        tooled = self.name in CALLS_TOOLS
        self.bound = self.model.bind_tools([look_up]) if tooled else self.model
        self.system = [] if self.name == "template" else [SystemMessage(SYSTEM)]

    def say(self, line: Line) -> None:
        """One turn, its rounds of tools in it."""
        self.history.add_messages([message_of(line)])
        while self._round():
            pass

    def _round(self) -> bool:
        answer = self.calls(self.bound, [*self.system, *self.history.messages])
        self.history.add_messages([answer])
        results = [
            ToolMessage(look_up.invoke(call["args"]), tool_call_id=call["id"], name=call["name"])
            for call in answer.tool_calls
        ]
        self.history.add_messages(results)
        return bool(results)

    def break_off(self, line: Line) -> None:
        """A turn whose calls get no results."""
        self.history.add_messages([message_of(line)])
        answer = self.calls(self.bound, [*self.system, *self.history.messages])
        self.history.add_messages([answer])

    @property
    def consolidations(self) -> int:
        """Segments ever written."""
        return self.history.session.stats().consolidations

    @property
    def said(self) -> list[BaseMessage]:
        """The transcript."""
        return self.history.transcript


class Runnable(Surface):
    """A chain with memory: a client, or an agent where it calls tools."""

    chain: Any

    def open(self) -> None:
        """A chain over a history in a file."""
        store = f"sqlite:///{self.home / 'runnable.db'}"
        inner = create_agent(self.model, [look_up], system_prompt=SYSTEM) if self.name in CALLS_TOOLS else self.model
        self.factory: Callable[[str], SlidingChatMessageHistory] = lambda session_id: SlidingChatMessageHistory(
            session_id, store=store, reserve_tokens=TOOLS + ROUNDS, **self.options
        )
        keys = {"input_messages_key": "messages", "output_messages_key": "messages"}
        self.chain = with_sliding_memory(inner, self.factory, **(keys if self.name in CALLS_TOOLS else {}))
        self.config = {"configurable": {"session_id": "s"}}

    def _given(self, line: Line) -> Any:
        said = [message_of(line)]
        return {"messages": said} if self.name in CALLS_TOOLS else said

    def say(self, line: Line) -> None:
        """One turn; an agent streams its state."""
        self.calls(self.chain, self._given(line), self.config)

    def break_off(self, line: Line) -> None:
        """A turn that its caller leaves."""
        self.calls.broken_off(self.chain, self._given(line), self.config)

    @property
    def consolidations(self) -> int:
        """Segments ever written."""
        return self.factory("s").session.stats().consolidations

    @property
    def said(self) -> list[BaseMessage]:
        """The transcript."""
        return self.factory("s").transcript


class Middleware(Surface):
    """An agent whose requests the middleware keeps small."""

    saver: InMemorySaver | None = None

    def open(self) -> None:
        """An agent over a checkpointer, which outlives it."""
        self.saver = self.saver or InMemorySaver()
        self.written: set[str] = getattr(self, "written", set())
        self.agent = create_agent(
            self.model,
            [look_up] if self.name in CALLS_TOOLS else [],
            system_prompt=None if self.name == "template" else SYSTEM,
            middleware=[SlidingMemoryMiddleware(on_event=self._heard, **self.options)],
            checkpointer=self.saver,
        )
        self.config = {"configurable": {"thread_id": "t"}, "recursion_limit": 200}

    def _heard(self, event: Any) -> None:
        if event.kind == "consolidated":
            self.written.add(event.segment.id)

    def say(self, line: Line) -> None:
        """One turn."""
        self.calls(self.agent, {"messages": [message_of(line)]}, self.config)

    def break_off(self, line: Line) -> None:
        """A turn whose tool raises."""
        BROKEN[0] = True
        try:
            self.calls(self.agent, {"messages": [message_of(line)]}, self.config)
        except Interrupted:
            pass
        finally:
            BROKEN[0] = False

    @property
    def consolidations(self) -> int:
        """Segments ever written."""
        return len(self.written)

    @property
    def said(self) -> list[BaseMessage]:
        """The state's messages."""
        messages: list[BaseMessage] = self.agent.get_state(self.config).values["messages"]
        return messages


SURFACES: dict[str, type[Surface]] = {"history": History, "runnable": Runnable, "middleware": Middleware}
