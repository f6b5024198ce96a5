"""Decides how LangChain's vector stores compare messages by their meaning.

LangChain's `Embeddings` are what slidemem asks for as they are. What a store holds of a session, and under which
ids, is slidemem's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from slidemem import ConfigurationError, StoredVectors

_SESSION: Final = "slidemem_session"
_ID: Final = "slidemem_id"  # some stores return documents without their ids
_DIGEST: Final = "slidemem_digest"

Found = Sequence[tuple[Document, float]]


class MessageVectors(StoredVectors):
    """A LangChain vector store as the index of messages: pass it as `embeddings`.

    Args:
        vector_store: keeps the vectors, and embeds with the model that it was made with. It may hold other things.
        session_filter: the `filter` with which a search of the store finds one session's documents, by its id; left
            out, what most stores take, `{"slidemem_session": id}`. Documents of others are dropped in any case.

    Raises:
        ConfigurationError: `vector_store` is no `VectorStore`.
    """

    def __init__(self, vector_store: VectorStore, *, session_filter: Callable[[str], Any] | None = None) -> None:
        if not isinstance(vector_store, VectorStore):
            raise ConfigurationError(f"vector_store must be a LangChain VectorStore, got {vector_store!r:.80}")
        wanted = session_filter or (_by_document if isinstance(vector_store, InMemoryVectorStore) else _by_metadata)
        super().__init__(_Sync(vector_store, wanted), _Async(vector_store, wanted))


def embeddings_of(given: object) -> object:
    """What `embeddings` mean to slidemem."""
    return MessageVectors(given) if isinstance(given, VectorStore) else given


def _by_metadata(session: str) -> Mapping[str, str]:
    return {_SESSION: session}


def _by_document(session: str) -> Callable[[Document], bool]:
    return lambda document: document.metadata.get(_SESSION) == session


class _Sync:
    """A vector store for sync callers."""

    def __init__(self, store: VectorStore, wanted: Callable[[str], Any]) -> None:
        self._store = store
        self._wanted = wanted

    async def add(self, session: str, ids: list[str], texts: list[str], digests: list[str]) -> object:
        return self._store.add_texts(texts, _metadatas(session, ids, digests), ids=ids)

    async def search(self, session: str, text: str, most: int) -> Sequence[tuple[str, float]]:
        return _scored(self._store.similarity_search_with_score(text, k=most, filter=self._wanted(session)))

    async def held(self, ids: list[str]) -> dict[str, str]:
        return _digests(self._store.get_by_ids(ids))

    async def delete(self, ids: list[str]) -> object:
        return self._store.delete(ids)


class _Async:
    """A vector store for async callers: its own coroutines, which run sync methods on a thread where it has none."""

    def __init__(self, store: VectorStore, wanted: Callable[[str], Any]) -> None:
        self._store = store
        self._wanted = wanted

    async def add(self, session: str, ids: list[str], texts: list[str], digests: list[str]) -> object:
        return await self._store.aadd_texts(texts, _metadatas(session, ids, digests), ids=ids)

    async def search(self, session: str, text: str, most: int) -> Sequence[tuple[str, float]]:
        found = await self._store.asimilarity_search_with_score(text, k=most, filter=self._wanted(session))
        return _scored(found)

    async def held(self, ids: list[str]) -> dict[str, str]:
        return _digests(await self._store.aget_by_ids(ids))

    async def delete(self, ids: list[str]) -> object:
        return await self._store.adelete(ids)


def _metadatas(session: str, ids: Sequence[str], digests: Sequence[str]) -> list[dict[str, Any]]:
    return [{_SESSION: session, _ID: id_, _DIGEST: digest} for id_, digest in zip(ids, digests, strict=True)]


def _digests(documents: Iterable[Document]) -> dict[str, str]:
    found = (document.metadata for document in documents)
    return {str(metadata.get(_ID)): str(metadata.get(_DIGEST)) for metadata in found}


def _scored(found: Found) -> list[tuple[str, float]]:
    return [(str(document.metadata.get(_ID)), float(score)) for document, score in found]
