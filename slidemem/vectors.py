"""Decides what compares messages by their meaning: an embedding model, or a vector store, of the user's.

A model's vectors are kept in this process; a vector store keeps its own. When what is embedded is `meaning.py`'s,
what a likeness is worth beside the words, `fusion.py`'s.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from threading import Lock
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from slidemem.asking import on_thread, within
from slidemem.breaker import Breaker
from slidemem.errors import ConfigurationError, MissingExtra

_SESSIONS: Final = 64  # whose vectors are kept in this process
_KNOWN: Final = 4096  # sessions of which it is known what was embedded last


@runtime_checkable
class Embedder(Protocol):
    """An embedding model; LangChain's `Embeddings` are ones as they are.

    `aembed_documents` and `aembed_query`, where it has them, are what async callers await.
    """

    def embed_documents(self, texts: list[str]) -> Sequence[Sequence[float]]:
        """A vector for each text, in their order, of one length."""
        ...

    def embed_query(self, text: str) -> Sequence[float]:
        """The vector of a question, to be compared with those of texts."""
        ...


@runtime_checkable
class VectorIndex(Protocol):
    """Where the vectors of sessions' first messages are kept and compared; a message's number is its `seq`.

    `aadd`, `asimilar`, `aholds` and `acut`, where it has them, are what async callers await.
    """

    def add(self, session: str, first: int, texts: Sequence[str]) -> None:
        """Keep the messages from `first` on, in the place of what is there; none of the texts is blank."""
        ...

    def similar(self, session: str, text: str, most: int) -> Mapping[int, float]:
        """The messages of this session that are most like a text, `most` at most: 0 or more, more is more alike."""
        ...

    def holds(self, session: str, first: int, texts: Sequence[str]) -> bool:
        """Whether the messages from `first` on are kept, as these texts."""
        ...

    def cut(self, session: str, keep: int, end: int) -> None:
        """Delete the messages from `keep` on; where it is not known what is kept, those before `end` at least."""
        ...


def index_of(given: object) -> VectorIndex:
    """The index that a memory's `embeddings` mean.

    Raises:
        ConfigurationError: they are neither an `Embedder` nor a `VectorIndex`.
        MissingExtra: an embedder needs NumPy.
    """
    if not isinstance(given, type):
        if isinstance(given, VectorIndex):
            return given
        if isinstance(given, Embedder):
            return EmbeddedMessages(given)
    raise ConfigurationError(
        "embeddings must be an Embedder (embed_documents and embed_query) or a VectorIndex (add, similar, holds and "
        f"cut), see slidemem.vectors; got {given!r:.80}"
    )


class _Kept(NamedTuple):
    """The vectors of a session.

    Attributes:
        rows: messages x dimensions, each of length 1.
        digests: of the messages' texts.
    """

    rows: Any
    digests: list[str]


def text_digest(text: str) -> str:
    """What tells a text from others."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class EmbeddedMessages:
    """The vectors of the latest sessions, in this process; any thread may call it.

    Args:
        embedder: makes the vectors.
        remember: how many sessions; what is forgotten is embedded anew.

    Raises:
        MissingExtra: NumPy is not installed.
    """

    def __init__(self, embedder: Embedder, remember: int = _SESSIONS) -> None:
        try:
            import numpy as np  # noqa: PLC0415  # an extra
        except ImportError:
            raise MissingExtra("comparing embeddings", "embeddings") from None
        self._np: Any = np
        self._embedder = embedder
        self._remember = remember
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._lock = Lock()

    def add(self, session: str, first: int, texts: Sequence[str]) -> None:
        """See `VectorIndex.add`."""
        self._put(session, first, self._embedder.embed_documents(list(texts)), texts)

    async def aadd(self, session: str, first: int, texts: Sequence[str]) -> None:
        """Async twin of `add`."""
        given = await _twin(self._embedder, "aembed_documents", self._embedder.embed_documents, list(texts))
        self._put(session, first, given, texts)

    def similar(self, session: str, text: str, most: int) -> dict[int, float]:
        """See `VectorIndex.similar`; the cosine, 0 where it is below."""
        return self._nearest(session, self._embedder.embed_query(text), most) if self._has(session) else {}

    async def asimilar(self, session: str, text: str, most: int) -> dict[int, float]:
        """Async twin of `similar`."""
        if not self._has(session):
            return {}
        query = await _twin(self._embedder, "aembed_query", self._embedder.embed_query, text)
        return self._nearest(session, query, most)

    def holds(self, session: str, first: int, texts: Sequence[str]) -> bool:
        """See `VectorIndex.holds`."""
        with self._lock:
            kept = self._kept.get(session)
            return kept is not None and kept.digests[first : first + len(texts)] == list(map(text_digest, texts))

    async def aholds(self, session: str, first: int, texts: Sequence[str]) -> bool:
        """Async twin of `holds`; nothing is awaited."""
        return self.holds(session, first, texts)

    def cut(self, session: str, keep: int, end: int) -> None:  # noqa: ARG002  # what is kept is known
        """See `VectorIndex.cut`."""
        with self._lock:
            kept = self._kept.pop(session, None)
            if kept is not None and keep:
                self._kept[session] = _Kept(kept.rows[:keep], kept.digests[:keep])

    async def acut(self, session: str, keep: int, end: int) -> None:
        """Async twin of `cut`; nothing is awaited."""
        self.cut(session, keep, end)

    def _has(self, session: str) -> bool:
        with self._lock:
            return session in self._kept

    def _put(self, session: str, first: int, given: Sequence[Sequence[float]], texts: Sequence[str]) -> None:
        rows = self._rows(given, len(texts))
        with self._lock:
            kept = self._kept.get(session, _Kept(rows[:0], []))
            if kept.digests and kept.rows.shape[1] != rows.shape[1]:
                raise ValueError(f"vectors of {rows.shape[1]} numbers, after vectors of {kept.rows.shape[1]}")
            if first > len(kept.digests):
                return  # what comes before was forgotten meanwhile: all of it is embedded anew
            digests = [*kept.digests[:first], *map(text_digest, texts)]
            self._kept[session] = _Kept(self._np.concatenate((kept.rows[:first], rows)), digests)
            self._kept.move_to_end(session)
            if len(self._kept) > self._remember:
                self._kept.popitem(last=False)

    def _nearest(self, session: str, given: Sequence[float], most: int) -> dict[int, float]:
        query = self._rows([given], 1)[0]
        with self._lock:
            found = self._kept.get(session)
        kept = self._np.empty((0, len(query))) if found is None else found.rows
        if len(kept) and kept.shape[1] != len(query):
            raise ValueError(f"a question of {len(query)} numbers, messages of {kept.shape[1]}")
        alike = (kept @ query).clip(min=0.0)
        best = self._np.argsort(-alike, kind="stable")[:most]
        return {int(seq): float(alike[seq]) for seq in best}

    def _rows(self, given: Sequence[Sequence[float]], number: int) -> Any:
        """Vectors as rows of length 1; one of zeros stays, and is like nothing."""
        try:
            rows = self._np.asarray(given, dtype=self._np.float32)
        except ValueError:
            rows = self._np.empty(0)
        if rows.ndim != 2 or len(rows) != number or not self._np.isfinite(rows).all():  # noqa: PLR2004  # a matrix
            raise ValueError(f"embeddings must be a vector of finite numbers for each of {number} texts")
        lengths = self._np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / self._np.where(lengths > 0, lengths, 1.0)


async def _twin(of: object, name: str, function: Callable[..., Any], *arguments: object) -> Any:
    """What an async twin gives, or, where there is none, the function on a thread."""
    twin = getattr(of, name, None)
    if twin is not None:
        return await twin(*arguments)
    return await asyncio.wrap_future(on_thread(partial(function, *arguments)))


# ------------------------------------------------------------------ as callers reach an index


class Known:
    """What this process knows of an index: its health, and up to where the latest sessions are embedded.

    Attributes:
        breaker: whether it is asked at all.
    """

    def __init__(self) -> None:
        self.breaker = Breaker()
        self._reached: OrderedDict[str, int] = OrderedDict()
        self._lock = Lock()

    def reached(self, session: str) -> int | None:
        """The boundary up to which all is embedded; None when some may not be."""
        with self._lock:
            return self._reached.get(session)

    def reach(self, session: str, boundary: int | None) -> None:
        """Note up to where all is embedded; None when some is not."""
        with self._lock:
            self._reached.pop(session, None)
            if boundary is not None:
                self._reached[session] = boundary
                if len(self._reached) > _KNOWN:
                    self._reached.popitem(last=False)


class Vectors:
    """An index as sync callers, or async ones, reach it: as coroutines with a limit of time.

    Args:
        index: the index.
        known: what is known of it, shared by both faces.
        call: calls a method of it by name.
    """

    def __init__(self, index: VectorIndex, known: Known, call: Callable[..., Awaitable[Any]]) -> None:
        self.known = known
        self._index = index
        self._call = call

    @classmethod
    def for_sync(cls, index: VectorIndex, known: Known, seconds: float | None) -> Vectors:
        """The face that sync callers use; it never suspends."""

        async def call(name: str, *arguments: object) -> Any:
            return within(seconds, partial(getattr(index, name), *arguments), "embedding")

        return cls(index, known, call)

    @classmethod
    def for_async(cls, index: VectorIndex, known: Known, seconds: float | None) -> Vectors:
        """The face that async callers use; what has no twin runs on a thread."""

        async def call(name: str, *arguments: object) -> Any:
            answer = _twin(index, f"a{name}", getattr(index, name), *arguments)
            try:
                return await asyncio.wait_for(answer, seconds)
            except asyncio.TimeoutError as fault:  # until Python 3.11 not the TimeoutError that all others raise
                raise TimeoutError(str(fault) or f"no embedding within {seconds} seconds") from None

        return cls(index, known, call)

    async def add(self, session: str, first: int, texts: Sequence[str]) -> None:
        """See `VectorIndex.add`."""
        await self._call("add", session, first, texts)

    async def similar(self, session: str, text: str, most: int) -> Mapping[int, float]:
        """See `VectorIndex.similar`."""
        return await self._call("similar", session, text, most)  # type: ignore[no-any-return]  # as the protocol says

    async def holds(self, session: str, first: int, texts: Sequence[str]) -> bool:
        """See `VectorIndex.holds`."""
        return await self._call("holds", session, first, texts)  # type: ignore[no-any-return]  # as above

    async def cut(self, session: str, keep: int, end: int) -> None:
        """See `VectorIndex.cut`."""
        await self._call("cut", session, keep, end)
