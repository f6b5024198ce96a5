"""Decides how a LlamaIndex chat store is the home of a conversation's messages.

Read whole, appended to, and replaced as a whole. Its deletes are not used: what they do differs from store to
store.
"""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.storage.chat_store import SimpleChatStore
from llama_index.core.storage.chat_store.base import BaseChatStore

from llamaindex_slidemem.codec import LlamaIndexCodec
from slidemem import Message


class ChatStoreLog:
    """A chat store as slidemem's `RewritableLog`; a session's id is the store's key.

    Args:
        store: the chat store.
        codec: reads and writes its messages.
    """

    def __init__(self, store: BaseChatStore, codec: LlamaIndexCodec) -> None:
        self._store = store
        self._codec = codec

    def for_async(self) -> ChatStoreLog | AsyncChatStoreLog:
        """The face that async callers use: the store's own async methods.

        LlamaIndex's store in this process has none; sent to threads, its calls would overtake each other.
        """
        return self if type(self._store) is SimpleChatStore else AsyncChatStoreLog(self._store, self._codec)

    async def messages(self, session: str) -> Sequence[Message]:
        """All messages of a key, in order."""
        return self._codec.encode_all(self._store.get_messages(session) or ())

    async def add(self, session: str, messages: Sequence[Message]) -> None:
        """Add messages at the end."""
        for message in messages:
            self._store.add_message(session, self._codec.decode(message))

    async def replace(self, session: str, messages: Sequence[Message]) -> None:
        """Put a list in the place of the one that is there."""
        self._store.set_messages(session, [self._codec.decode(message) for message in messages])

    async def clear(self, session: str) -> None:
        """Leave no message under the key."""
        self._store.set_messages(session, [])


class AsyncChatStoreLog:
    """A chat store as `RewritableLog`, awaited.

    Args:
        store: the chat store.
        codec: reads and writes its messages.
    """

    def __init__(self, store: BaseChatStore, codec: LlamaIndexCodec) -> None:
        self._store = store
        self._codec = codec

    async def messages(self, session: str) -> Sequence[Message]:
        """All messages of a key, in order."""
        return self._codec.encode_all(await self._store.aget_messages(session) or ())

    async def add(self, session: str, messages: Sequence[Message]) -> None:
        """Add messages at the end."""
        for message in messages:
            await self._store.async_add_message(session, self._codec.decode(message))

    async def replace(self, session: str, messages: Sequence[Message]) -> None:
        """Put a list in the place of the one that is there."""
        await self._store.aset_messages(session, [self._codec.decode(message) for message in messages])

    async def clear(self, session: str) -> None:
        """Leave no message under the key."""
        await self._store.aset_messages(session, [])
