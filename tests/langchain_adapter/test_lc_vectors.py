"""LangChain's embeddings and vector stores beside the words of recall."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from meanings import Senses

from langchain_slidemem import MessageVectors, SlidingChatMessageHistory
from slidemem import ConfigurationError, MemoryStore

ASKED = "Which hound do I own?"
FACT = "My terrier snores."


class Model(Senses, Embeddings):
    """A model as LangChain has them."""


class Distances(VectorStore):
    """A store as most are: filters are metadata, scores distances, and it tells nothing of what it holds."""

    def __init__(self, embedding: Embeddings) -> None:
        self._inner = InMemoryVectorStore(embedding)
        self.store = self._inner.store

    @classmethod
    def from_texts(cls, texts: list[str], embedding: Embeddings, *_: Any, **__: Any) -> Distances:
        """A store of texts."""
        made = cls(embedding)
        made.add_texts(texts)
        return made

    def add_texts(self, texts: Any, metadatas: Any = None, *, ids: Any = None, **_: Any) -> list[str]:
        """Keep texts."""
        return self._inner.add_texts(texts, metadatas, ids=ids)

    def similarity_search(self, query: str, k: int = 4, **wanted: Any) -> list[Document]:
        """What is near."""
        return [document for document, _ in self.similarity_search_with_score(query, k, **wanted)]

    def similarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        filter: Any = None,  # noqa: A002  # LangChain's name for it
    ) -> list[tuple[Document, float]]:
        """Distances of what has these metadata."""

        def wanted(document: Document) -> bool:
            return all(document.metadata.get(name) == value for name, value in filter.items())

        found = self._inner.similarity_search_with_score(query, k, filter=wanted)
        return [(document, 1 - score) for document, score in found]

    def delete(self, ids: list[str] | None = None, **_: Any) -> None:
        """Delete documents."""
        self._inner.delete(ids)


def history(embeddings: Any, session: str = "s", **options: Any) -> SlidingChatMessageHistory:
    """A history of 200 words."""
    given: dict[str, Any] = {"store": MemoryStore(), "consolidator": None, **options}
    return SlidingChatMessageHistory(
        session,
        max_tokens=200,
        token_counter=lambda message: len(message.text.split()),
        embeddings=embeddings,
        **given,
    )


def told(chat: SlidingChatMessageHistory, fact: str = FACT) -> SlidingChatMessageHistory:
    """Tell a fact, and then of other things until it has left the window."""
    chat.add_messages([HumanMessage(fact), AIMessage("Funny.")])
    for turn in range(10):
        asked, answered = f"Tell me about {turn} " + "please " * 10, f"Subject {turn} " + "really " * 10
        chat.add_messages([HumanMessage(asked), AIMessage(answered)])
    return chat


def recalled(chat: SlidingChatMessageHistory) -> tuple[int, ...]:
    """What the question brings back."""
    return chat.session.context({"role": "user", "content": ASKED}).receipt.recalled


def test_embeddings_are_taken_as_they_are() -> None:
    """A LangChain model finds what means the same; without it only words do."""
    assert 0 in recalled(told(history(Model())))
    assert 0 not in recalled(told(history(None)))


@pytest.mark.parametrize("kind", [InMemoryVectorStore, Distances])
def test_a_vector_store_is_an_index(kind: Any) -> None:
    """A store is asked for this session's messages, whatever else it holds and however it scores."""
    store = kind(Model())
    store.add_texts(["A hound, a puppy and a terrier."], [{"source": "handbook"}])
    one, other = told(history(store)), told(history(MessageVectors(store), "other"), "My ocean is blue.")

    assert 0 in recalled(one)
    assert ("s", 0) == next((hit.session, hit.seq) for hit in one.session.search("hound", 1))
    one.clear()
    assert 1 + other.session.context().receipt.boundary == len(store.store)


@pytest.mark.parametrize("kind", [InMemoryVectorStore, Distances])
def test_async_callers_await_the_store(kind: Any) -> None:
    """The async twins keep, find and delete the same."""
    store = kind(Model())

    async def go() -> tuple[tuple[int, ...], int]:
        chat = history(store)
        for start in range(0, 24, 2):
            texts = [FACT, "Funny."] if not start else [f"Tell me {start} " + "so " * 10, "Subject " + "so " * 10]
            await chat.aadd_messages([HumanMessage(texts[0]), AIMessage(texts[1])])
        asked = {"role": "user", "content": ASKED}
        found = (await chat.session.acontext(asked)).receipt.recalled
        kept = len(store.store)
        await chat.aclear()
        return found, kept

    found, kept = asyncio.run(go())

    assert 0 in found
    assert kept > 5
    assert {} == store.store


def test_a_filter_of_ones_own_is_used() -> None:
    """A store with another language of filters is given the one that finds a session."""
    asked: list[str] = []

    def wanted(session: str) -> Any:
        asked.append(session)
        return lambda document: document.metadata["slidemem_session"] == session

    chat = told(history(MessageVectors(InMemoryVectorStore(Model()), session_filter=wanted)))

    assert 0 in recalled(chat)
    assert {"s"} == set(asked)


def test_what_is_no_vector_store_is_refused() -> None:
    """Anything else is an error that names what is wanted."""
    with pytest.raises(ConfigurationError, match="must be a LangChain VectorStore"):
        MessageVectors("chroma")  # type: ignore[arg-type]  # what a user may try
    with pytest.raises(ConfigurationError, match="embeddings must be an Embedder"):
        history("text-embedding-3-small")
