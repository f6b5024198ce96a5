"""Decides how LlamaIndex's embedding models and vector stores compare messages by their meaning.

What a store holds of a session, and under which ids, is slidemem's.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.memory.types import DEFAULT_CHAT_STORE_KEY
from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.settings import Settings
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    ExactMatchFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)

from slidemem import ConfigurationError, StoredVectors

_SESSION: Final = "slidemem_session"
_DIGEST: Final = "slidemem_digest"


class EmbeddingModel:
    """A LlamaIndex embedding model as slidemem asks one.

    Args:
        model: the model.
    """

    def __init__(self, model: BaseEmbedding) -> None:
        self._model = model

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """See `slidemem.Embedder.embed_documents`."""
        return self._model.get_text_embedding_batch(texts)

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """Async twin of `embed_documents`."""
        return await self._model.aget_text_embedding_batch(texts)

    def embed_query(self, text: str) -> list[float]:
        """See `slidemem.Embedder.embed_query`."""
        return self._model.get_query_embedding(text)

    async def aembed_query(self, text: str) -> list[float]:
        """Async twin of `embed_query`."""
        return await self._model.aget_query_embedding(text)


class MessageVectors(StoredVectors):
    """A LlamaIndex vector store as the index of messages: pass it as `embeddings`.

    Args:
        vector_store: keeps the vectors; it may hold other things.
        embed_model: makes them; None for the one of LlamaIndex's `Settings`.

    Raises:
        ConfigurationError: `vector_store` or `embed_model` is none of LlamaIndex's.
    """

    def __init__(self, vector_store: BasePydanticVectorStore, embed_model: BaseEmbedding | None = None) -> None:
        if not isinstance(vector_store, BasePydanticVectorStore):
            raise ConfigurationError(f"vector_store must be a LlamaIndex vector store, got {vector_store!r:.80}")
        model = Settings.embed_model if embed_model is None else embed_model
        if not isinstance(model, BaseEmbedding):
            raise ConfigurationError(f"embed_model must be a LlamaIndex embedding model, got {model!r:.80}")
        super().__init__(_Sync(vector_store, EmbeddingModel(model)), _Async(vector_store, EmbeddingModel(model)))


def embeddings_of(given: object, key: str) -> Any:
    """What `embeddings` mean to slidemem, in a memory whose conversation has this key.

    Raises:
        ConfigurationError: a vector store would take all conversations of memories without a key for one.
    """
    index = MessageVectors(given) if isinstance(given, BasePydanticVectorStore) else given
    if isinstance(index, StoredVectors) and key == DEFAULT_CHAT_STORE_KEY:
        raise ConfigurationError(
            f"a vector store tells conversations by their key, and {key!r} is everyone's: pass a chat_store_key of "
            "this conversation's own"
        )
    return EmbeddingModel(index) if isinstance(index, BaseEmbedding) else index


class _Sync:
    """A vector store for sync callers."""

    def __init__(self, store: BasePydanticVectorStore, model: EmbeddingModel) -> None:
        self._store = store
        self._model = model

    async def add(self, session: str, ids: list[str], texts: list[str], digests: list[str]) -> object:
        return self._store.add(_nodes(session, ids, texts, digests, self._model.embed_documents(texts)))

    async def search(self, session: str, text: str, most: int) -> Sequence[tuple[str, float]]:
        return _scored(self._store.query(_query(session, self._model.embed_query(text), most)))

    async def held(self, ids: list[str]) -> dict[str, str]:
        with _untold():
            return _digests(self._store.get_nodes(ids))

    async def delete(self, ids: list[str]) -> None:
        with suppress(NotImplementedError):
            self._store.delete_nodes(ids)
            return
        for id_ in ids:
            self._store.delete(id_)


class _Async:
    """A vector store for async callers: its own coroutines, which call its sync methods where it has none."""

    def __init__(self, store: BasePydanticVectorStore, model: EmbeddingModel) -> None:
        self._store = store
        self._model = model

    async def add(self, session: str, ids: list[str], texts: list[str], digests: list[str]) -> object:
        vectors = await self._model.aembed_documents(texts)
        return await self._store.async_add(_nodes(session, ids, texts, digests, vectors))

    async def search(self, session: str, text: str, most: int) -> Sequence[tuple[str, float]]:
        return _scored(await self._store.aquery(_query(session, await self._model.aembed_query(text), most)))

    async def held(self, ids: list[str]) -> dict[str, str]:
        with _untold():
            return _digests(await self._store.aget_nodes(ids))

    async def delete(self, ids: list[str]) -> None:
        with suppress(NotImplementedError):
            await self._store.adelete_nodes(ids)
            return
        for id_ in ids:
            await self._store.adelete(id_)


@contextmanager
def _untold() -> Generator[None, None, None]:
    """Take any fault for a store that cannot tell: many make their collection when they are first added to."""
    try:
        yield
    except Exception as fault:
        raise NotImplementedError from fault


def _nodes(
    session: str, ids: Sequence[str], texts: Sequence[str], digests: Sequence[str], vectors: Sequence[Sequence[float]]
) -> list[TextNode]:
    """A node for each message, each of a document of its own: every store deletes by document, few by node."""
    return [
        TextNode(
            id_=id_,
            text=text,
            embedding=list(vector),
            metadata={_SESSION: session, _DIGEST: digest},
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=id_)},
        )
        for id_, text, digest, vector in zip(ids, texts, digests, vectors, strict=True)
    ]


def _digests(nodes: Sequence[BaseNode]) -> dict[str, str]:
    return {node.node_id: str(node.metadata.get(_DIGEST)) for node in nodes}


def _query(session: str, vector: list[float], most: int) -> VectorStoreQuery:
    one_session = MetadataFilters(filters=[ExactMatchFilter(key=_SESSION, value=session)])
    return VectorStoreQuery(query_embedding=vector, similarity_top_k=most, filters=one_session)


def _scored(found: VectorStoreQueryResult) -> list[tuple[str, float]]:
    ids = found.ids or [node.node_id for node in found.nodes or ()]
    by_rank = [1 - place / len(ids) for place in range(len(ids))]  # where the store gives no likenesses
    return list(zip(ids, found.similarities or by_rank, strict=True))
