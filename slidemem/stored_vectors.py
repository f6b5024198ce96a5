"""Decides how a vector store that knows nothing of conversations holds the messages of sessions.

Each message has an id that is made of its session and place: so what is there can be asked for, put again and
deleted, and what a search finds is read off its ids. Its text's digest stands beside it, so that another conversation
under the same name is told from it. Ids have the form of UUIDs, since many stores take no others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Final, Protocol
from uuid import UUID

from slidemem.driver import drive
from slidemem.vectors import text_digest

_BATCH: Final = 500  # messages that are asked for, or deleted, at once
_KNOWN: Final = 4_096  # sessions of which it is known what was put
_HASH: Final = 12  # bytes of an id that name the session; the other four are the place


class VectorReach(Protocol):
    """A vector store as sync callers reach it (then no method suspends), or as async ones do.

    Where it cannot tell what it holds, `held` raises a `NotImplementedError`.
    """

    async def add(self, session: str, ids: list[str], texts: list[str], digests: list[str]) -> object:
        """Embed texts and keep them under these ids, of which none is there, with their digests beside."""
        ...

    async def search(self, session: str, text: str, most: int) -> Sequence[tuple[str, float]]:
        """The ids most like a text, best first, each with the store's score of it, a likeness or a distance."""
        ...

    async def held(self, ids: list[str]) -> Mapping[str, str]:
        """Those of these ids that are there, with their digests."""
        ...

    async def delete(self, ids: list[str]) -> object:
        """Delete these ids, which are there."""
        ...


class StoredVectors:
    """A vector store as a `VectorIndex`, which sessions share; it may hold other things.

    Args:
        sync: the store as sync callers reach it.
        awaited: as async ones do.
    """

    def __init__(self, sync: VectorReach, awaited: VectorReach) -> None:
        self._sync = sync
        self._async = awaited
        self._put: OrderedDict[str, list[str]] = OrderedDict()  # digests, for stores that do not tell what they hold

    def add(self, session: str, first: int, texts: Sequence[str]) -> None:
        """See `VectorIndex.add`."""
        drive(self._add(self._sync, session, first, texts), "aadd")

    async def aadd(self, session: str, first: int, texts: Sequence[str]) -> None:
        """Async twin of `add`."""
        await self._add(self._async, session, first, texts)

    def similar(self, session: str, text: str, most: int) -> dict[int, float]:
        """See `VectorIndex.similar`."""
        return drive(self._similar(self._sync, session, text, most), "asimilar")

    async def asimilar(self, session: str, text: str, most: int) -> dict[int, float]:
        """Async twin of `similar`."""
        return await self._similar(self._async, session, text, most)

    def holds(self, session: str, first: int, texts: Sequence[str]) -> bool:
        """See `VectorIndex.holds`."""
        return drive(self._holds(self._sync, session, first, texts), "aholds")

    async def aholds(self, session: str, first: int, texts: Sequence[str]) -> bool:
        """Async twin of `holds`."""
        return await self._holds(self._async, session, first, texts)

    def cut(self, session: str, keep: int, end: int) -> None:
        """See `VectorIndex.cut`."""
        drive(self._cut(self._sync, session, keep, end), "acut")

    async def acut(self, session: str, keep: int, end: int) -> None:
        """Async twin of `cut`."""
        await self._cut(self._async, session, keep, end)

    async def _add(self, reach: VectorReach, session: str, first: int, texts: Sequence[str]) -> None:
        seqs = range(first, first + len(texts))
        await self._delete(reach, session, seqs)
        digests = list(map(text_digest, texts))
        await reach.add(session, message_ids(session, seqs), list(texts), digests)
        known = self._put.get(session, [])
        self._put[session] = [*known[:first], *[""] * (first - len(known)), *digests]
        self._put.move_to_end(session)
        if len(self._put) > _KNOWN:
            self._put.popitem(last=False)

    async def _similar(self, reach: VectorReach, session: str, text: str, most: int) -> dict[int, float]:
        found = await reach.search(session, text, most)
        scores = likenesses([score for _, score in found])
        places = (place_of(session, id_) for id_, _ in found)
        return {place: score for place, score in zip(places, scores, strict=True) if place is not None}

    async def _holds(self, reach: VectorReach, session: str, first: int, texts: Sequence[str]) -> bool:
        ids, digests = message_ids(session, range(first, first + len(texts))), list(map(text_digest, texts))
        try:
            there = await reach.held(ids)
        except NotImplementedError:
            return self._put.get(session, [])[first : first + len(texts)] == digests
        return [there.get(id_) for id_ in ids] == digests

    async def _cut(self, reach: VectorReach, session: str, keep: int, end: int) -> None:
        end = max(end, len(self._put.get(session, ())))
        first = keep
        while await self._delete(reach, session, range(first, first + _BATCH)) or first + _BATCH < end:
            first += _BATCH
        if session in self._put:
            del self._put[session][keep:]

    async def _delete(self, reach: VectorReach, session: str, seqs: range) -> bool:
        """Delete what is there of these messages; whether anything was. Stores may refuse an id that is not there."""
        try:
            there = list(await reach.held(message_ids(session, seqs)))
        except NotImplementedError:
            there = message_ids(session, range(seqs.start, min(seqs.stop, len(self._put.get(session, ())))))
        if there:
            await reach.delete(there)
        return bool(there)


def message_ids(session: str, seqs: Iterable[int]) -> list[str]:
    """The ids of a session's messages in a vector store."""
    name = _name(session)
    return [str(UUID(bytes=name + seq.to_bytes(16 - _HASH, "big"))) for seq in seqs]


def place_of(session: str, id_: str) -> int | None:
    """The `seq` of the message with an id; None when it is none of this session's."""
    try:
        given = UUID(id_).bytes
    except (ValueError, AttributeError, TypeError):
        return None
    return int.from_bytes(given[_HASH:], "big") if given[:_HASH] == _name(session) else None


def _name(session: str) -> bytes:
    return blake2b(session.encode("utf-8", "surrogatepass"), digest_size=_HASH, person=b"slidemem").digest()


def likenesses(scores: Sequence[float]) -> list[float]:
    """Likenesses of 0 or more, of a store's scores of what it found, best first.

    Stores give likenesses or distances, and do not say which: their order does. Distances have no common scale, so
    the farthest counts 0.
    """
    if not scores or scores[0] >= scores[-1]:
        return [max(0.0, float(score)) for score in scores]
    return [(scores[-1] - score) / (scores[-1] - scores[0]) for score in scores]
