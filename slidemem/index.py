"""Decides how the terms of one session are kept in this process, and which of them a question reads.

What is found is ranked by `recall.py`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from slidemem.post import Post
from slidemem.recall import Document, Matches, Posting

MOST: Final = 2_000  # occurrences that a question reads

MOST_COUNTED: Final = 1_023  # times that a message says a term; what it says more often counts as often

_COUNTS: Final = (
    MOST_COUNTED + 1
)  # a posting is kept as one number, its seq times this and its count: a third of the time and the memory


class Index:
    """The postings of one session; messages are added in their order."""

    def __init__(self) -> None:
        self._postings: defaultdict[str, list[int]] = defaultdict(list)
        self._documents: dict[int, Document] = {}
        self._seqs: list[int] = []
        self._lengths: list[int] = [0]  # of all messages before each

    def add(self, seq: int, post: Post) -> None:
        """Keep what a message is found by.

        Args:
            seq: of the message, above those that are there.
            post: what it is found by.

        Raises:
            ValueError: a message with this `seq`, or a later one, is there.
        """
        if self._seqs and seq <= self._seqs[-1]:
            raise ValueError(f"message {seq} comes after message {self._seqs[-1]}: cut({seq}) first")
        postings = self._postings
        first = seq * _COUNTS
        for term, count in post.terms.counts.items():
            postings[term].append(first + count if count < _COUNTS else first + _COUNTS - 1)
        self._documents[seq] = Document(post.terms.length, post.at, post.speaker)
        self._seqs.append(seq)
        self._lengths.append(self._lengths[-1] + post.terms.length)

    def cut(self, keep: int) -> None:
        """Drop every message from the `seq` `keep` on."""
        place = bisect_left(self._seqs, keep)
        for seq in self._seqs[place:]:
            del self._documents[seq]
        del self._seqs[place:]
        del self._lengths[place + 1 :]
        for term, posted in list(self._postings.items()):
            if posted[-1] >= keep * _COUNTS:
                del posted[_until(posted, keep) :]
                if not posted:
                    del self._postings[term]

    def matching(self, terms: Sequence[str], before: int, most: int = MOST) -> Matches:
        """See `Postings.matching`."""
        ends = {term: _until(self._postings.get(term, ()), before) for term in terms}
        read = {
            term: tuple([_posting(one) for one in self._postings.get(term, ())[ends[term] - limit : ends[term]]])
            for term, limit in shared(ends, most).items()
        }
        place = bisect_left(self._seqs, before)
        return Matches(place, self._lengths[place], ends, read)

    def documents(self, seqs: Collection[int]) -> dict[int, Document]:
        """See `Postings.documents`."""
        return {seq: self._documents[seq] for seq in seqs if seq in self._documents}


def shared(frequency: Mapping[str, int], most: int) -> dict[str, int]:
    """How many occurrences of each term are read: all of the rarest, in the end the newest of one, no others."""
    limits: dict[str, int] = {}
    for term in sorted(frequency, key=lambda one: (frequency[one], one)):
        limits[term] = min(frequency[term], most)
        most -= limits[term]
    return limits


def _posting(one: int) -> Posting:
    return Posting(one // _COUNTS, one % _COUNTS)


def _until(posted: Sequence[int], before: int) -> int:
    """How many of a term's postings come before a `seq`."""
    return bisect_left(posted, before * _COUNTS)
