"""Decides how a memory's own messages read as a LlamaIndex chat store, where no other one was given.

ChatMemoryBuffer always has a `chat_store`, and its users read, fill and persist it. Keys are the sessions of the
memory's store. What is written down is what SimpleChatStore reads.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import PurePath
from typing import Any, Final
from uuid import uuid4

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import PrivateAttr, model_serializer
from llama_index.core.storage.chat_store import SimpleChatStore
from llama_index.core.storage.chat_store.base import BaseChatStore

from llamaindex_slidemem.codec import LlamaIndexCodec
from llamaindex_slidemem.values import bare
from slidemem import ConversationMemory, SlideMem

_FSSPEC: Final[Any] = import_module("fsspec")  # it has no types


class OwnChatStore(BaseChatStore):
    """The messages of a memory, and of its neighbours in the same store, as a chat store.

    What is written here is in the memory, as what is put there; copies and pickles are SimpleChatStores.
    """

    _memory: SlideMem = PrivateAttr()
    _codec: LlamaIndexCodec = PrivateAttr()

    def __init__(self, memory: SlideMem, codec: LlamaIndexCodec) -> None:
        super().__init__()
        self._memory, self._codec = memory, codec

    @classmethod
    def class_name(cls) -> str:
        """The name of what reads it when it is written down."""
        return "SimpleChatStore"

    @property
    def home(self) -> Any:
        """The slidemem store of all of it."""
        return self._memory.store

    @property
    def store(self) -> dict[str, list[ChatMessage]]:
        """All messages by key; new ones, which the caller may change."""
        return {key: self.get_messages(key) for key in self.get_keys()}

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Make a list the conversation of a key; see `SlidingChatMemoryBuffer.set`."""
        self._session(key).reconcile(self._codec.encode_all(messages), replace=True)

    async def aset_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Async twin of `set_messages`."""
        await self._session(key).areconcile(self._codec.encode_all(messages), replace=True)

    def get_messages(self, key: str) -> list[ChatMessage]:
        """Everything that was said, word for word; nothing for a key that is not there."""
        return [self._codec.decode(message) for message in self._session(key).transcript()]

    async def aget_messages(self, key: str) -> list[ChatMessage]:
        """Async twin of `get_messages`."""
        return [self._codec.decode(message) for message in await self._session(key).atranscript()]

    def add_message(self, key: str, message: ChatMessage) -> None:
        """Store a message at the end."""
        self._session(key).append(self._codec.encode(message))

    async def async_add_message(self, key: str, message: ChatMessage) -> None:
        """Async twin of `add_message`."""
        await self._session(key).aappend(self._codec.encode(message))

    def delete_messages(self, key: str) -> list[ChatMessage] | None:
        """Delete a conversation for good, archive and pins too.

        Returns:
            What was deleted; None for a key that is not there.
        """
        messages = self.get_messages(key)
        self._session(key).clear()
        return messages or None

    async def adelete_messages(self, key: str) -> list[ChatMessage] | None:
        """Async twin of `delete_messages`."""
        messages = await self.aget_messages(key)
        await self._session(key).aclear()
        return messages or None

    def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Take one message out: a rewind to it, then what came after it is stored again.

        Returns:
            The message; None where there is none.
        """
        session = self._session(key)
        left = self._left(session.transcript(), idx)
        if left is None:
            return None
        first, *rest = session.rewind(left)
        session.append(rest)
        return self._codec.decode(first)

    async def adelete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Async twin of `delete_message`."""
        session = self._session(key)
        left = self._left(await session.atranscript(), idx)
        if left is None:
            return None
        first, *rest = await session.arewind(left)
        await session.aappend(rest)
        return self._codec.decode(first)

    def delete_last_message(self, key: str) -> ChatMessage | None:
        """Take the newest message out; None where there is none."""
        return self.delete_message(key, -1)

    async def adelete_last_message(self, key: str) -> ChatMessage | None:
        """Async twin of `delete_last_message`."""
        return await self.adelete_message(key, -1)

    def get_keys(self) -> list[str]:
        """The sessions of the memory's store."""
        return list(self._memory.sessions())

    async def aget_keys(self) -> list[str]:
        """Async twin of `get_keys`."""
        return list(await self._memory.asessions())

    # ------------------------------------------------------------------ written down

    def persist(self, persist_path: str = "chat_store.json", fs: Any = None) -> None:
        """Write all messages to a file that `SimpleChatStore.from_persist_path` reads; the whole file, or none.

        Args:
            persist_path: of the file; its folder is made.
            fs: an fsspec file system; None for this machine's.
        """
        fs = fs or _FSSPEC.filesystem("file")
        fs.makedirs(PurePath(persist_path).parent.as_posix(), exist_ok=True)
        beside = f"{persist_path}.{uuid4().hex}"
        with fs.open(beside, "w", encoding="utf-8") as file:
            json.dump(self.to_dict(), file)
        fs.mv(beside, persist_path)

    @model_serializer(mode="wrap")
    def custom_model_dump(self, handler: Any, info: Any) -> dict[str, Any]:  # noqa: ARG002  # the base's name for it
        """As SimpleChatStore's."""
        said = {key: list(map(_json, messages)) for key, messages in self.store.items()}
        return {"store": said, "class_name": self.class_name()}

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Any:
        return SimpleChatStore(store=self.store)

    def __reduce__(self) -> tuple[Any, ...]:
        return SimpleChatStore.model_validate, (self.to_dict(),)

    def _session(self, key: str) -> ConversationMemory:
        return self._memory.session(key)

    def _left(self, messages: Sequence[object], idx: int) -> int | None:
        """How many messages stand before one; None when it is not there."""
        at = idx + len(messages) if idx < 0 else idx
        return at if 0 <= at < len(messages) else None


def _json(message: ChatMessage) -> dict[str, Any]:
    return {
        "role": message.role.value,
        "additional_kwargs": bare(message.additional_kwargs),
        "blocks": [block.model_dump(mode="json") for block in message.blocks],
    }
