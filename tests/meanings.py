"""Embedding models for tests: a few words that mean the same, and models that fail."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence

SENSES = (
    {"dog", "hound", "puppy", "terrier"},
    {"car", "automobile", "vehicle"},
    {"physician", "doctor", "surgeon"},
    {"sea", "ocean", "coast"},
)


class Senses:
    """A model that knows some words that mean the same, and counts what it is asked."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.questions: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A vector for each text."""
        self.texts.extend(texts)
        return [vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        self.questions.append(text)
        return vector(text)


class AwaitedSenses(Senses):
    """The same, with async twins, which note the thread they ran on."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[str] = []

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """A vector for each text."""
        self.threads.append(threading.current_thread().name)
        return self.embed_documents(texts)

    async def aembed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        self.threads.append(threading.current_thread().name)
        return self.embed_query(text)


class Failing(Senses):
    """One that raises as long as it is told to."""

    def __init__(self, fault: Exception | None = None) -> None:
        super().__init__()
        self.fault: Exception | None = fault or ConnectionError("the model is away")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A vector for each text, or the fault."""
        if self.fault:
            self.texts.extend(texts)
            raise self.fault
        return super().embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question, or the fault."""
        if self.fault:
            self.questions.append(text)
            raise self.fault
        return super().embed_query(text)


def vector(text: str) -> list[float]:
    """What a text says of each sense, and a little of everything."""
    words = set(re.findall(r"\w+", text.lower()))
    return [float(len(sense & words)) for sense in SENSES] + [0.1]


class OwnIndex:
    """A vector index of a user's own, the simplest there is: it keeps what it is given, without twins."""

    def __init__(self) -> None:
        self.kept: dict[str, list[str]] = {}

    def add(self, session: str, first: int, texts: Sequence[str]) -> None:
        """Keep texts."""
        self.kept[session] = [*self.kept.get(session, [])[:first], *texts]

    def similar(self, session: str, text: str, most: int) -> dict[int, float]:
        """Messages that mean something of a text."""
        asked = vector(text)
        alike = {
            seq: sum(one * two for one, two in zip(vector(said), asked, strict=True))
            for seq, said in enumerate(self.kept.get(session, ()))
        }
        return dict(sorted(alike.items(), key=lambda one: -one[1])[:most])

    def holds(self, session: str, first: int, texts: Sequence[str]) -> bool:
        """Whether messages are kept as these texts."""
        return self.kept.get(session, [])[first : first + len(texts)] == list(texts)

    def cut(self, session: str, keep: int, end: int) -> None:  # what is kept is known
        """Delete messages."""
        self.kept[session] = self.kept.get(session, [])[:keep]
