"""What compares messages by their meaning: models whose vectors are kept here, and indexes of a user's own."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from meanings import AwaitedSenses, OwnIndex, Senses

from slidemem import ConfigurationError, EmbeddedMessages, Embedder, MissingExtra, SlideMem, VectorIndex
from slidemem.driver import drive
from slidemem.vectors import Known, Vectors, index_of

# ------------------------------------------------------------------ what is an index


def test_a_model_and_an_index_are_told_apart() -> None:
    """A model is wrapped, an index taken as it is, and both are what their protocols say."""
    own = OwnIndex()

    assert isinstance(Senses(), Embedder)
    assert isinstance(own, VectorIndex)
    assert index_of(own) is own
    assert isinstance(index_of(Senses()), EmbeddedMessages)


@pytest.mark.parametrize("wrong", ["all-minilm", 3, Senses, OwnIndex, object()])
def test_what_compares_nothing_is_refused(wrong: Any) -> None:
    """A name, a class or anything else is a configuration error that says what is wanted."""
    with pytest.raises(ConfigurationError, match="embed_documents and embed_query"):
        SlideMem(max_tokens=100, counter=len, embeddings=wrong)


def test_without_numpy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model needs NumPy, and the error names the extra that brings it; an index needs nothing."""
    monkeypatch.setitem(sys.modules, "numpy", None)

    with pytest.raises(MissingExtra, match=r"slidemem\[embeddings\]"):
        SlideMem(max_tokens=100, counter=len, embeddings=Senses())
    SlideMem(max_tokens=100, counter=len, embeddings=OwnIndex())


# ------------------------------------------------------------------ vectors in this process


def test_messages_are_found_by_their_cosine() -> None:
    """The most alike come first, as many as are wanted, and a likeness is 0 to 1."""
    index = EmbeddedMessages(Senses())
    index.add("s", 0, ["a dog", "a car", "the hound and the sea", ""])

    found = index.similar("s", "my puppy", 2)

    assert [0, 2] == list(found)
    assert pytest.approx(1.0) == found[0]
    assert {} == index.similar("other", "my puppy", 2)


def test_a_likeness_below_nothing_is_none() -> None:
    """Vectors that point away from each other, and one of zeros, are alike by 0."""

    class Opposite(Senses):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[-1.0, 0.0], [0.0, 0.0]][: len(texts)]

        def embed_query(self, text: str) -> list[float]:
            return [float(bool(text)), 0.0]

    index = EmbeddedMessages(Opposite())
    index.add("s", 0, ["one", "two"])

    assert {0: 0.0, 1: 0.0} == index.similar("s", "x", 5)


def test_what_is_added_again_takes_the_place() -> None:
    """Messages are added over those that were there; behind a gap they are not kept."""
    index = EmbeddedMessages(Senses())
    index.add("s", 0, ["a dog", "a car"])
    index.add("s", 1, ["a hound", "the sea"])
    index.add("s", 7, ["a surgeon"])
    index.add("gap", 3, ["a surgeon"])

    assert index.holds("s", 0, ["a dog", "a hound", "the sea"])
    assert index.holds("s", 1, ["a hound"])
    assert [False] * 3 == [index.holds("s", *other) for other in ((1, ["a car"]), (3, ["a surgeon"]), (2, ["", ""]))]
    assert not index.holds("gap", 0, ["a surgeon"])
    assert {0, 1} == set(index.similar("s", "puppy", 2))


def test_what_is_cut_is_gone() -> None:
    """A cut keeps the first messages, or none, and a session that is not there is cut to nothing."""
    index = EmbeddedMessages(Senses())
    index.add("s", 0, ["a dog", "a car", "the sea"])

    index.cut("s", 1, 3)
    index.cut("unknown", 0, 3)

    assert [True, False] == [index.holds("s", 0, texts) for texts in (["a dog"], ["a dog", "a car"])]
    assert not index.holds("unknown", 0, ["a dog"])
    index.cut("s", 0, 1)
    assert {} == index.similar("s", "dog", 5)


def test_the_latest_sessions_are_kept() -> None:
    """More sessions than are remembered push out the one that was added to longest ago."""
    index = EmbeddedMessages(Senses(), remember=2)
    for session in ("a", "b", "a", "c"):
        index.add(session, 0, ["a dog"])

    assert [True, False, True] == [index.holds(session, 0, ["a dog"]) for session in ("a", "b", "c")]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param([[1.0, 2.0]], id="too few"),
        pytest.param([[1.0], [1.0, 2.0]], id="of two lengths"),
        pytest.param([1.0, 2.0], id="no vectors"),
        pytest.param([[1.0], [float("nan")]], id="no number"),
    ],
)
def test_what_is_no_vector_is_refused(given: Any) -> None:
    """A model that gives anything but one vector of finite numbers for each text is at fault, and nothing is kept."""
    model = Senses()
    model.embed_documents = lambda _: given  # type: ignore[method-assign]  # a model that is wrong
    index = EmbeddedMessages(model)

    with pytest.raises(ValueError, match="a vector of finite numbers for each of 2 texts"):
        index.add("s", 0, ["one", "two"])
    assert {} == index.similar("s", "one", 9)


class Short(Senses):
    """A model whose vectors are shorter."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A vector for each text."""
        return [[1.0] for _ in texts]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        return [float(len(text))]


def test_vectors_of_another_model_are_refused() -> None:
    """Messages, and questions, of another length than what is there cannot be compared."""
    index = EmbeddedMessages(Senses())
    index.add("s", 0, ["a dog"])
    index._embedder = Short()  # another model

    with pytest.raises(ValueError, match="vectors of 1 numbers, after vectors of 5"):
        index.add("s", 1, ["a car"])
    with pytest.raises(ValueError, match="a question of 1 numbers, messages of 5"):
        index.similar("s", "dog", 1)


# ------------------------------------------------------------------ faces


def test_an_async_caller_awaits_the_twins_of_a_model() -> None:
    """A model's own coroutines are awaited on the caller's thread."""
    model = AwaitedSenses()
    face = Vectors.for_async(EmbeddedMessages(model), Known(), 5.0)

    async def go() -> Any:
        await face.add("s", 0, ["a dog", "a car"])
        assert {} == await face.similar("other", "hound", 1)
        return await face.similar("s", "hound", 1), await face.holds("s", 0, ["a dog"]), await face.cut("s", 1, 2)

    found, held, _ = asyncio.run(go())

    assert [0] == list(found)
    assert held
    assert {threading.current_thread().name} == set(model.threads)


def test_what_has_no_twin_runs_on_a_thread() -> None:
    """A sync model, and a sync index, do not hold the event loop of an async caller."""
    seen: list[str] = []

    class Watched(OwnIndex):
        def holds(self, session: str, first: int, texts: Sequence[str]) -> bool:
            seen.append(threading.current_thread().name)
            return super().holds(session, first, texts)

    class Watching(Senses):
        def embed_query(self, text: str) -> list[float]:
            seen.append(threading.current_thread().name)
            return super().embed_query(text)

    async def go() -> None:
        index = EmbeddedMessages(Watching())
        face = Vectors.for_async(index, Known(), None)
        await face.add("s", 0, ["x"])
        await face.similar("s", "y", 1)
        await Vectors.for_async(Watched(), Known(), 5.0).holds("s", 4, [])

    asyncio.run(go())

    assert 2 == len(seen)
    assert threading.current_thread().name not in seen


@pytest.mark.parametrize("awaited", [False, True])
def test_an_index_that_takes_too_long_is_left_behind(*, awaited: bool) -> None:
    """Both faces raise a TimeoutError that names the limit."""
    going = threading.Event()

    class Slow(OwnIndex):
        def holds(self, session: str, first: int, texts: Sequence[str]) -> bool:
            going.wait(20)
            return super().holds(session, first, texts)

    make = Vectors.for_async if awaited else Vectors.for_sync
    face = make(Slow(), Known(), 0.02)
    try:
        with pytest.raises(TimeoutError, match=r"no embedding within 0\.02 seconds"):
            asyncio.run(face.holds("s", 1, [])) if awaited else drive(face.holds("s", 1, []), "x")
    finally:
        going.set()


def test_what_is_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this process knows of sessions is forgotten by age, and of one when it is told so."""
    monkeypatch.setattr("slidemem.vectors._KNOWN", 2)
    known = Known()
    for session in ("a", "b", "c"):
        known.reach(session, 3)

    known.reach("c", None)

    assert [None, 3, None] == [known.reached(session) for session in ("a", "b", "c")]
