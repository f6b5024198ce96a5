"""LlamaIndex's clients of the strict provider, and the engines and agents that a session goes through."""

from __future__ import annotations

import asyncio
import contextlib
from functools import cache
from pathlib import Path
from typing import Any

import tiktoken
from client_script import BUDGET, PIXEL, SYSTEM, TOOLS, Line
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock
from llama_index.core.chat_engine import CondensePlusContextChatEngine, ContextChatEngine, SimpleChatEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context
from strict_provider import StrictProvider

from llamaindex_slidemem import SlidingChatMemoryBuffer

FRAMES = 250  # tokens of the frames of a window's messages, which LlamaIndex's counters do not count
ROUNDS = 350  # tokens of calls and results that an agent holds until it has answered
THINKS = {"responses", "anthropic", "gemini"}
ALTERNATES = {"gemini", "template"}
MODES = ["chat", "achat", "stream_chat", "astream_chat"]


def look_up(query: str) -> str:
    """Look a train up in the timetable."""
    return f"found {query}: platform 4, coach B, two hours and ten minutes, 340 rupees"


def llm_of(name: str, provider: StrictProvider) -> Any:
    """A client by its provider's name."""
    url, plain = provider.url, {"api_key": "k", "max_retries": 0}
    if name in {"openai", "responses"}:
        from llama_index.llms.openai import OpenAI, OpenAIResponses  # noqa: PLC0415  # a second each to import

        if name == "openai":
            return OpenAI(model="gpt-4o", api_base=f"{url}/v1", **plain)
        reasoning = {
            "reasoning_options": {"effort": "low", "summary": "auto"},
            "include": ["reasoning.encrypted_content"],
        }
        return OpenAIResponses(model="gpt-5", api_base=f"{url}/v1", store=False, **reasoning, **plain)
    if name in {"like", "template"}:
        from llama_index.llms.openai_like import OpenAILike  # noqa: PLC0415

        base, tooled = (f"{url}/v1", True) if name == "like" else (f"{url}/template/v1", False)
        return OpenAILike(model="m", api_base=base, is_chat_model=True, is_function_calling_model=tooled, **plain)
    if name == "anthropic":
        return _anthropic(url)
    from google.genai.types import GenerateContentConfig, HttpOptions, ThinkingConfig  # noqa: PLC0415
    from llama_index.llms.google_genai import GoogleGenAI  # noqa: PLC0415

    return GoogleGenAI(
        model="gemini-2.5-flash",
        http_options=HttpOptions(base_url=url),
        generation_config=GenerateContentConfig(thinking_config=ThinkingConfig(include_thoughts=True)),
        **plain,
    )


def _anthropic(url: str) -> Any:
    """Anthropic's client, which llama-index-llms-anthropic 0.12.3 does not know by its version 2.

    There `MessageParam` is a union, which cannot be called, and `create` takes no temperature. Both are upstream's.
    """
    from llama_index.llms.anthropic import Anthropic, utils  # noqa: PLC0415

    class Fitting(Anthropic):
        def _get_all_kwargs(self, **kwargs: Any) -> dict[str, Any]:
            known = super()._get_all_kwargs(**kwargs)
            return {key: value for key, value in known.items() if key != "temperature"}

    utils.MessageParam = dict
    thinking = {"type": "enabled", "budget_tokens": 1024}
    return Fitting(
        model="claude-sonnet-4-20250514",
        base_url=url,
        api_key="k",
        max_retries=0,
        thinking_dict=thinking,
        max_tokens=2048,
    )


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """One event loop for all: clients keep their connections, which belong to a loop."""
    return asyncio.new_event_loop()


class Timetable(BaseRetriever):
    """Finds the same text for every question."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(text="Trains to Pune leave from platform 4."), score=1.0)]


class Surface:
    """A memory in an engine or an agent, with a client behind it.

    Args:
        name: of the client.
        provider: what it talks to.
        mode: how it is called.
        home: a folder for what outlives a restart.
    """

    tools = False
    pictures = False
    beside = TOOLS + FRAMES
    takes_paste = True

    def __init__(self, name: str, provider: StrictProvider, mode: str, home: Path) -> None:
        self.name = name
        self.llm = llm_of(name, provider)
        self.mode = mode
        self.home = home
        self.written = 0
        self.open()

    def open(self) -> None:
        """Make what a process makes when it starts."""
        self.memory = SlidingChatMemoryBuffer.from_defaults(
            token_limit=BUDGET,
            store=f"sqlite:///{self.home / 'memory.db'}",
            tokenizer_fn=tiktoken.get_encoding("o200k_base").encode_ordinary,
            reserve_tokens=self.beside,
            alternate=self.name in ALTERNATES,
            on_event=self._heard,
        )

    def _heard(self, event: Any) -> None:
        self.written += event.kind == "consolidated"

    def say(self, line: Line) -> None:
        """One turn."""
        raise NotImplementedError

    def break_off(self, line: Line) -> None:
        """A turn that is broken off."""
        raise NotImplementedError


class Engine(Surface):
    """A chat engine."""

    engine: Any

    def open(self) -> None:
        """An engine over a memory in a file."""
        super().open()
        self.engine = self.made()

    def made(self) -> Any:
        """The engine."""
        prompt = {} if self.name == "template" else {"system_prompt": SYSTEM}
        return SimpleChatEngine.from_defaults(llm=self.llm, memory=self.memory, **prompt)

    def say(self, line: Line) -> None:
        """One turn, its stream read to the end."""
        if self.mode == "chat":
            self.engine.chat(line.text)
        elif self.mode == "stream_chat":
            list(self.engine.stream_chat(line.text).response_gen)
        elif self.mode == "achat":
            _loop().run_until_complete(self.engine.achat(line.text))
        else:
            _loop().run_until_complete(self._astreamed(line.text))

    async def _astreamed(self, text: str) -> None:
        async for _ in (await self.engine.astream_chat(text)).async_response_gen():
            pass

    def break_off(self, line: Line) -> None:
        """A turn that is cancelled before its answer."""
        _loop().run_until_complete(_cancelled(self.engine.achat(line.text)))


async def _cancelled(run: Any) -> None:
    task = asyncio.ensure_future(run)
    for _ in range(20):
        await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


class WithContext(Engine):
    """An engine that retrieves, and sends the question past its memory."""

    takes_paste = False

    def made(self) -> Any:
        """The engine."""
        return ContextChatEngine.from_defaults(retriever=Timetable(), llm=self.llm, memory=self.memory)


class Condensing(Engine):
    """An engine that asks the model for a question first."""

    takes_paste = False

    def made(self) -> Any:
        """The engine."""
        return CondensePlusContextChatEngine.from_defaults(retriever=Timetable(), llm=self.llm, memory=self.memory)


class Agent(Surface):
    """An agent with tools."""

    tools = True
    pictures = True
    beside = TOOLS + FRAMES + ROUNDS

    def open(self) -> None:
        """An agent over a memory in a file."""
        super().open()
        self.agent = self.made()

    def made(self) -> Any:
        """The agent."""
        return FunctionAgent(
            tools=[FunctionTool.from_defaults(look_up)],
            llm=self.llm,
            system_prompt=SYSTEM,
            streaming=self.mode == "astream_chat",
        )

    def say(self, line: Line) -> None:
        """One turn, its rounds of tools in it."""
        _loop().run_until_complete(self._run(line))

    async def _run(self, line: Line) -> None:
        await self.agent.run(_message(line), memory=self.memory, ctx=Context(self.agent))

    def break_off(self, line: Line) -> None:
        """A turn that is cancelled while it runs."""
        _loop().run_until_complete(self._broken(line))

    async def _broken(self, line: Line) -> None:
        handler = self.agent.run(_message(line), memory=self.memory, ctx=Context(self.agent))
        async for _ in handler.stream_events():
            await handler.cancel_run()
            break
        with contextlib.suppress(Exception, asyncio.CancelledError):
            await handler


class Team(Agent):
    """A workflow of agents."""

    def made(self) -> Any:
        """The workflow."""
        return AgentWorkflow(agents=[Agent.made(self)])


def _message(line: Line) -> ChatMessage:
    """What the user says."""
    picture = [ImageBlock(image=PIXEL.encode(), image_mimetype="image/png")] if line.picture else []
    return ChatMessage(role=MessageRole.USER, blocks=[*picture, TextBlock(text=line.text)])


SURFACES: dict[str, type[Surface]] = {
    "simple": Engine,
    "context": WithContext,
    "condense": Condensing,
    "agent": Agent,
    "team": Team,
}
