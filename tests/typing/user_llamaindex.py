"""The types that a user of the LlamaIndex adapter sees; checked by `make types`, never run."""

from __future__ import annotations

from llama_index.core.base.llms.types import ChatMessage
from typing_extensions import assert_type

from llamaindex_slidemem import SlidingChatMemoryBuffer
from slidemem import ConversationMemory, Hit, Stats


def a_buffer() -> None:
    """What a memory returns, as ChatMemoryBuffer does."""
    memory = SlidingChatMemoryBuffer.from_defaults(token_limit=400, archive_share=0.3)

    assert_type(memory, SlidingChatMemoryBuffer)
    assert_type(memory.put(ChatMessage(content="Hi")), None)
    assert_type(memory.get("And now?", initial_token_count=10), list[ChatMessage])
    assert_type(memory.get_all(), list[ChatMessage])
    assert_type(memory.session, ConversationMemory)
    assert_type(memory.stats(), Stats)
    assert_type(memory.search("peanuts"), tuple[Hit, ...])
    assert_type(memory.to_string(), str)
    assert_type(SlidingChatMemoryBuffer.from_string("{}"), SlidingChatMemoryBuffer)


async def a_buffer_awaited(memory: SlidingChatMemoryBuffer) -> None:
    """The twins return the same."""
    assert_type(await memory.aget(), list[ChatMessage])
    assert_type(await memory.aget_all(), list[ChatMessage])
    assert_type(await memory.aput(ChatMessage(content="Hi")), None)
