"""Decides how a LlamaIndex chat store is the home of a conversation's messages.

Read whole, appended to, and replaced as a whole. Its deletes differ from store to store, and are used only where a
store cannot replace: LlamaIndex's SQLiteChatStore adds what it is to set, and takes no empty list.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.storage.chat_store import SimpleChatStore
from llama_index.core.storage.chat_store.base import BaseChatStore

from llamaindex_slidemem.codec import LlamaIndexCodec
from slidemem import Message

_BESIDE: Final = ".slidemem"  # behind a session's key, where its records are kept in the same store


class _Log(ABC):
    """A chat store as slidemem's `RewritableLog`, and its `Texts`; a session's id is the store's key.

    Args:
        store: the chat store.
        codec: reads and writes its messages.
    """

    def __init__(self, store: BaseChatStore, codec: LlamaIndexCodec) -> None:
        self._store = store
        self._codec = codec

    async def messages(self, session: str) -> Sequence[Message]:
        """All messages of a key, in order."""
        return self._codec.encode_all(await self._get(session))

    async def add(self, session: str, messages: Sequence[Message]) -> None:
        """Add messages at the end."""
        for message in messages:
            await self._add(session, self._codec.decode(message))

    async def replace(self, session: str, messages: Sequence[Message]) -> None:
        """Put a list in the place of the one that is there."""
        if not messages:
            await self.clear(session)
            return
        await self._put(session, [self._codec.decode(message) for message in messages])

    async def _put(self, key: str, said: list[ChatMessage]) -> None:
        await self._set(key, said)
        if len(await self._get(key)) != len(said):
            await self._delete(key)
            await self._set(key, said)

    async def clear(self, session: str) -> None:
        """Leave no message under the key."""
        try:
            await self._set(session, [])
        except Exception:  # each store raises its own error
            await self._delete(session)
            if await self._get(session):
                raise
            return
        if await self._get(session):
            await self._delete(session)

    async def load(self, session: str) -> str | None:
        """See `slidemem.Texts`: the text under the key beside the session's."""
        kept = await self._get(f"{session}{_BESIDE}")
        return kept[0].content if kept else None

    async def save(self, session: str, text: str) -> None:
        """See `slidemem.Texts`."""
        await self._put(f"{session}{_BESIDE}", [ChatMessage(role=MessageRole.SYSTEM, content=text)])

    @abstractmethod
    async def _get(self, key: str) -> Sequence[ChatMessage]:
        """The messages of a key."""

    @abstractmethod
    async def _add(self, key: str, message: ChatMessage) -> None:
        """Add one."""

    @abstractmethod
    async def _set(self, key: str, messages: list[ChatMessage]) -> None:
        """Replace them."""

    @abstractmethod
    async def _delete(self, key: str) -> None:
        """Delete them."""


class ChatStoreLog(_Log):
    """A chat store as a `RewritableLog`, by its sync methods."""

    def for_async(self) -> ChatStoreLog | AsyncChatStoreLog:
        """The face that async callers use: the store's own async methods.

        LlamaIndex's store in this process has none; sent to threads, its calls would overtake each other.
        """
        return self if type(self._store) is SimpleChatStore else AsyncChatStoreLog(self._store, self._codec)

    async def _get(self, key: str) -> Sequence[ChatMessage]:
        return self._store.get_messages(key) or ()

    async def _add(self, key: str, message: ChatMessage) -> None:
        self._store.add_message(key, message)

    async def _set(self, key: str, messages: list[ChatMessage]) -> None:
        self._store.set_messages(key, messages)

    async def _delete(self, key: str) -> None:
        self._store.delete_messages(key)


class AsyncChatStoreLog(_Log):
    """A chat store as a `RewritableLog`, awaited."""

    async def _get(self, key: str) -> Sequence[ChatMessage]:
        return await self._store.aget_messages(key) or ()

    async def _add(self, key: str, message: ChatMessage) -> None:
        await self._store.async_add_message(key, message)

    async def _set(self, key: str, messages: list[ChatMessage]) -> None:
        await self._store.aset_messages(key, messages)

    async def _delete(self, key: str) -> None:
        await self._store.adelete_messages(key)
