"""Decides what a likeness of meaning is worth beside the words: both scaled, and summed.

Measured on LoCoMo with a small model: sums of scaled scores beat ranks, and half of the neighbours' help that words
get is enough, since a vector knows no rare word. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from slidemem.recall import Document, named_in, near, weighed

MOST_SIMILAR: Final = 200  # messages whose likeness counts
NEXT: Final = 2  # messages before and after one that its likeness helps
_SHARE: Final = 0.7  # of what words are worth


def fused(
    question: str,
    by_words: Sequence[tuple[int, float]],
    alike: Mapping[int, float],
    documents: Mapping[int, Document],
) -> tuple[tuple[int, float], ...]:
    """`seq` and score of the messages that a question needs by word or meaning, best first.

    Args:
        question: any text.
        by_words: what `ranked` found.
        alike: of messages, how much each is like the question, 0 or more.
        documents: of the messages of both, and of those around the ones that are alike.
    """
    named = named_in(question, documents)
    helped: dict[int, float] = {}
    for seq, likeness in alike.items():
        for other, weight in near(seq, documents, NEXT) if seq in documents else ():
            helped[other] = helped.get(other, 0.0) + weight * likeness
    by_meaning = {seq: weighed(score, documents[seq], named) for seq, score in helped.items()}
    scores: dict[int, float] = {}
    for found, share in ((dict(by_words), 1.0), (by_meaning, _SHARE)):
        most = max(found.values(), default=0.0)
        for seq, score in found.items():
            scores[seq] = scores.get(seq, 0.0) + (share * score / most if most else 0.0)
    return tuple(sorted(scores.items(), key=lambda one: (-one[1], -one[0])))
