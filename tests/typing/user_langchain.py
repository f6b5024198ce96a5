"""The types that a user of the LangChain adapter sees; checked by `make types`, never run."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from typing_extensions import assert_type

from langchain_slidemem import (
    ChatContext,
    RunnableWithSlidingMemory,
    SlidingChatMessageHistory,
    SlidingMemoryRetriever,
    recall_tool,
    with_sliding_memory,
)
from langchain_slidemem.middleware import SlidingMemoryMiddleware
from slidemem import ConversationMemory, SlideMem


def a_history() -> None:
    """What a history returns."""
    history = SlidingChatMessageHistory("s", max_tokens=400, token_counter="approximate", reserve_tokens=50)

    assert_type(history.messages, list[BaseMessage])
    assert_type(history.transcript, list[BaseMessage])
    assert_type(history.context(), ChatContext)
    assert_type(history.session, ConversationMemory)
    assert_type(recall_tool(history, k=3), BaseTool)
    assert_type(SlidingMemoryRetriever(memory=history, k=3).invoke("peanuts"), list[Document])


def a_chain(chain: Runnable[dict[str, Any], str]) -> None:
    """A chain keeps what it takes and gives."""
    after = with_sliding_memory(chain, SlideMem(max_tokens=400), input_messages_key="question")

    assert_type(after, RunnableWithSlidingMemory)


def an_agent() -> SlidingMemoryMiddleware:
    """Middleware is made by keywords alone."""
    return SlidingMemoryMiddleware(max_tokens=400, token_counter="approximate", metadata={"timezone": "IST"})
