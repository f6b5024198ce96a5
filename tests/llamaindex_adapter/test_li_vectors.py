"""LlamaIndex's embedding models and vector stores beside the words of recall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from li_models import awaited, words
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.schema import BaseNode, TextNode
from llama_index.core.settings import Settings
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryResult
from meanings import vector

from llamaindex_slidemem import MessageVectors, SlidingChatMemoryBuffer
from slidemem import ConfigurationError

ASKED = "Which hound do I own?"
FACT = "My terrier snores."


class Model(BaseEmbedding):
    """A model as LlamaIndex has them."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return vector(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return vector(query)


class Telling(SimpleVectorStore):
    """A store that tells what it holds, answers with nodes, and deletes by document alone."""

    probes: int = 0

    def get_nodes(self, node_ids: list[str] | None = None, filters: Any = None) -> list[BaseNode]:
        """The nodes with these ids."""
        del filters
        self.probes += 1
        return [TextNode(id_=id_) for id_ in node_ids or () if id_ in self.data.embedding_dict]

    def delete_nodes(self, node_ids: list[str] | None = None, filters: Any = None, **_: Any) -> None:
        """Not here."""
        raise NotImplementedError

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Nodes without likenesses, best first."""
        found = super().query(query, **kwargs)
        return VectorStoreQueryResult(nodes=[TextNode(id_=id_) for id_ in found.ids or ()])


def memory_of(embeddings: Any, **options: Any) -> SlidingChatMemoryBuffer:
    """A memory of 200 words."""
    return SlidingChatMemoryBuffer.from_defaults(
        token_limit=200, tokenizer_fn=words, chat_store_key="meera-1", embeddings=embeddings, **options
    )


def turns() -> Sequence[list[ChatMessage]]:
    """A fact, and then other things until it has left the window."""
    first = [ChatMessage(FACT), ChatMessage(role="assistant", content="Funny.")]
    return [
        first,
        *(
            [
                ChatMessage(f"Tell me about {turn} " + "please " * 10),
                ChatMessage(role="assistant", content=f"Subject {turn} " + "really " * 10),
            ]
            for turn in range(10)
        ),
    ]


def told(memory: SlidingChatMemoryBuffer) -> SlidingChatMemoryBuffer:
    """Tell all of it."""
    for turn in turns():
        memory.put_messages(turn)
    return memory


def found(memory: SlidingChatMemoryBuffer) -> bool:
    """Whether the question brings the fact back."""
    return FACT in "".join(message.content or "" for message in memory.get(ASKED)) or any(
        hit.text == FACT for hit in memory.search("hound", 1)
    )


def test_an_embedding_model_is_asked() -> None:
    """A LlamaIndex model finds what means the same; without it only words do."""
    assert found(told(memory_of(Model())))
    assert not found(told(memory_of(None)))


@pytest.mark.parametrize("kind", [SimpleVectorStore, Telling])
def test_a_vector_store_is_an_index(kind: type[SimpleVectorStore], monkeypatch: pytest.MonkeyPatch) -> None:
    """A store is asked for this session's messages, with the model of `Settings`, and left empty by a reset."""
    monkeypatch.setattr(Settings, "_embed_model", Model())
    store = kind()
    store.add([TextNode(id_="handbook", text="x", embedding=vector("hound puppy terrier"), metadata={"a": "b"})])
    memory = told(memory_of(store))

    assert found(memory)
    assert len(store.data.embedding_dict) > 5
    memory.reset()
    assert ["handbook"] == list(store.data.embedding_dict)


@pytest.mark.parametrize("kind", [SimpleVectorStore, Telling])
def test_async_callers_await_store_and_model(kind: type[SimpleVectorStore]) -> None:
    """The async twins keep, find and delete the same."""
    store = kind()
    memory = memory_of(MessageVectors(store, Model()))

    async def go() -> tuple[list[ChatMessage], int]:
        for turn in turns():
            await memory.aput_messages(turn)
        shown, kept = await memory.aget(ASKED), len(store.data.embedding_dict)
        await memory.areset()
        return shown, kept

    shown, kept = awaited(go())

    assert FACT in "".join(message.content or "" for message in shown)
    assert kept > 5
    assert {} == store.data.embedding_dict


def test_async_callers_await_a_model() -> None:
    """A model alone is asked by its coroutines."""
    memory = memory_of(Model())

    async def go() -> list[ChatMessage]:
        for turn in turns():
            await memory.aput_messages(turn)
        return await memory.aget(ASKED)

    assert FACT in "".join(message.content or "" for message in awaited(go()))


def test_what_is_put_again_is_there_once() -> None:
    """A store in which a node can stand twice is put the same message once."""
    store = SimpleVectorStore()
    index = MessageVectors(store, Model())

    index.add("s", 0, ["a dog", "a car"])
    index.add("s", 1, ["a hound"])

    assert 2 == len(store.data.embedding_dict)
    assert [1, 0] == sorted(index.similar("s", "hound", 5), reverse=True)


def test_embeddings_are_attached_again(caplog: pytest.LogCaptureFixture) -> None:
    """What was written down says that it had embeddings, and is read back with them or without."""
    memory = told(memory_of(Model()))
    text = memory.to_string()

    without = SlidingChatMemoryBuffer.from_string(text, tokenizer_fn=words)
    again = SlidingChatMemoryBuffer.from_string(text, tokenizer_fn=words, embeddings=Model())
    for one in (without, again):
        one.put(ChatMessage("Go on."))

    assert "recall goes by the words alone; pass embeddings=" in caplog.text
    assert [True, False] == [found(one) for one in (again, without)]
    memory.embeddings = None
    assert not found(memory)


@pytest.mark.parametrize(
    "given, told_",
    [
        (("qdrant", Model()), "vector_store must be a LlamaIndex vector store"),
        ((SimpleVectorStore(), "small"), "embed_model must be a LlamaIndex embedding model"),
    ],
)
def test_what_is_neither_is_refused(given: tuple[Any, Any], told_: str) -> None:
    """Anything else is an error that names what is wanted."""
    with pytest.raises(ConfigurationError, match=told_):
        MessageVectors(*given)


@pytest.mark.parametrize("given", [SimpleVectorStore(), MessageVectors(SimpleVectorStore(), Model())])
def test_a_vector_store_needs_a_key(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memories that nobody named share a key, so a store that serves several cannot tell them apart."""
    monkeypatch.setattr(Settings, "_embed_model", Model())

    with pytest.raises(ConfigurationError, match="pass a chat_store_key of this conversation's own"):
        SlidingChatMemoryBuffer.from_defaults(token_limit=200, tokenizer_fn=words, embeddings=given)
    SlidingChatMemoryBuffer.from_defaults(token_limit=200, tokenizer_fn=words, embeddings=Model())
