"""What replies report of their prompts reaches the memory, through history and runnable."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.config import RunnableConfig

from langchain_slidemem import SlidingChatMessageHistory, with_sliding_memory
from slidemem import SlideMem

LIMIT = 1000


def memory(*, follows: bool = True) -> SlideMem:
    """A memory that follows what is reported."""
    return SlideMem(max_tokens=LIMIT, counter="approximate", correct_counts=follows)


def told(chat: SlidingChatMessageHistory, messages: list[BaseMessage], factor: float = 1.4) -> AIMessage:
    """An answer that reports more tokens than the memory counts of a prompt."""
    counted = sum(chat.context().costs) if not messages else sum(map(_count, messages))
    usage = {"input_tokens": int(counted * factor), "output_tokens": 5, "total_tokens": int(counted * factor) + 5}
    return AIMessage("Booked.", usage_metadata=usage, response_metadata={"model_name": "m"})


def _count(message: BaseMessage) -> int:
    role = "user" if message.type == "human" else "assistant"
    return memory().count({"role": role, "content": message.text})


def filled(session: str, mem: SlideMem) -> SlidingChatMessageHistory:
    """A history that holds something."""
    chat = SlidingChatMessageHistory(session, memory=mem)
    chat.add_messages([HumanMessage(f"Please book seat {n}A to Pune, by the window.") for n in range(30)])
    return chat


@pytest.mark.parametrize("follows", [True, False])
def test_a_history_hears_of_the_prompt_that_was_read(fresh: str, *, follows: bool) -> None:
    """A reply that is stored is compared with the messages that were read before it."""
    chat = filled(fresh, memory(follows=follows))

    chat.add_messages([told(chat, chat.messages)])

    assert (1.4 if follows else 1.0) == pytest.approx(chat.session.stats().token_factor, abs=0.06 if follows else 0)


def test_a_reply_to_a_prompt_that_nobody_read_says_nothing(fresh: str) -> None:
    """A second reply, and one to a list of the caller's own, are compared with nothing."""
    chat = filled(fresh, memory())
    reply = told(chat, chat.messages, factor=1.0)
    chat.add_messages([reply])

    chat.add_messages([told(chat, chat.transcript, factor=2.0)])

    assert 1.0 == pytest.approx(chat.session.stats().token_factor, abs=0.06)


@pytest.mark.parametrize("mode", ["invoke", "ainvoke", "stream", "astream"])
def test_a_runnable_hears_of_its_own_prompt(fresh: str, mode: str) -> None:
    """Input and window together are what the reply is compared with, in every mode."""
    mem = memory()
    chat = filled(fresh, mem)
    chain: Any = with_sliding_memory(RunnableLambda(lambda messages: told(chat, messages)), mem)
    config: RunnableConfig = {"configurable": {"session_id": fresh}}

    async def run() -> None:
        if mode == "ainvoke":
            await chain.ainvoke("And one back.", config)
        else:
            [chunk async for chunk in chain.astream("And one back.", config)]

    if mode == "invoke":
        chain.invoke("And one back.", config)
    elif mode == "stream":
        list(chain.stream("And one back.", config))
    else:
        asyncio.run(run())

    assert 1.4 == pytest.approx(chat.session.stats().token_factor, abs=0.06)


def test_a_reply_without_usage_says_nothing(fresh: str) -> None:
    """A model that reports nothing changes nothing."""
    mem = memory()
    chain = with_sliding_memory(RunnableLambda(lambda messages: AIMessage("Booked.")), mem)

    chain.invoke("A seat to Pune.", {"configurable": {"session_id": fresh}})

    assert 1.0 == mem.session(fresh).stats().token_factor
