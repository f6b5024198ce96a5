"""A vector store that knows nothing of conversations, as an index of messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from meanings import vector

from slidemem import SlideMem, StoredVectors
from slidemem.stored_vectors import likenesses, message_ids, place_of

NAMES = ["s", "s:1", "日本", "\ud800", "", "a\0b"]


class Reach:
    """A store that is asked by id, and counts how often."""

    def __init__(self, *, tells: bool = True, far: bool = False) -> None:
        self.kept: dict[str, str] = {}
        self.digests: dict[str, str] = {}
        self.probes = 0
        self.tells = tells
        self.far = far

    async def add(self, session: str, ids: list[str], texts: list[str], digests: list[str]) -> None:
        """Keep texts; as some stores do, an id that is there is an error."""
        assert not self.kept.keys() & ids, session
        self.kept |= dict(zip(ids, texts, strict=True))
        self.digests |= dict(zip(ids, digests, strict=True))

    async def search(self, session: str, text: str, most: int) -> Sequence[tuple[str, float]]:
        """Likenesses, or distances, of everything that there is, whosever it is."""
        del session
        asked = vector(text)
        scores = {
            id_: sum(one * two for one, two in zip(vector(said), asked, strict=True))
            for id_, said in self.kept.items()
        }
        best = sorted(scores.items(), key=lambda one: -one[1])[:most]
        return [(id_, 10 - score) for id_, score in best] if self.far else best

    async def held(self, ids: list[str]) -> dict[str, str]:
        """Those that are there, with their digests."""
        self.probes += 1
        if not self.tells:
            raise NotImplementedError
        return {id_: self.digests[id_] for id_ in ids if id_ in self.kept}

    async def delete(self, ids: list[str]) -> None:
        """Delete them; as some stores do, one that is not there is an error."""
        for id_ in ids:
            del self.kept[id_]


class Face:
    """An index for sync callers, or by its async twins."""

    def __init__(self, index: StoredVectors, *, awaited: bool) -> None:
        self._index = index
        self._awaited = awaited

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._index, f"a{name}" if self._awaited else name)
        return (lambda *given: asyncio.run(method(*given))) if self._awaited else method


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def face(request: pytest.FixtureRequest) -> Callable[[Reach], Any]:
    """Makes an index of a reach."""
    return lambda reach: Face(StoredVectors(reach, reach), awaited=request.param)


@pytest.mark.parametrize("name", NAMES)
def test_an_id_is_a_uuid_of_session_and_place(name: str) -> None:
    """Ids are read back as places of their own session, and of no other."""
    ids = message_ids(name, [0, 7, 2**31])

    assert [0, 7, 2**31] == [place_of(name, id_) for id_ in ids]
    assert [None] * 3 == [place_of("other", id_) for id_ in ids]
    assert {36} == set(map(len, ids))


@pytest.mark.parametrize("other", ["", "no-uuid", "None", 7, None])
def test_an_id_of_something_else_is_no_place(other: Any) -> None:
    """A store may hold what is not ours."""
    assert place_of("s", other) is None


@pytest.mark.parametrize(
    "scores, alike",
    [
        ([], []),
        ([0.9, 0.5, -0.1], [0.9, 0.5, 0.0]),
        ([0.2, 0.6, 1.0], [1.0, 0.5, 0.0]),
        ([0.4, 0.4], [0.4, 0.4]),
        ([3], [3.0]),
    ],
)
def test_scores_are_read_by_their_order(scores: list[float], alike: list[float]) -> None:
    """Scores that fall from the best on are likenesses, scores that rise are distances."""
    assert pytest.approx(alike) == likenesses(scores)


@pytest.mark.parametrize("far", [False, True], ids=["likenesses", "distances"])
def test_a_session_finds_its_own(face: Callable[[Reach], Any], *, far: bool) -> None:
    """A search finds this session's messages by their place, and drops those of others and of strangers."""
    reach = Reach(far=far)
    index = face(reach)
    index.add("s", 0, ["a car", "a dog"])
    index.add("other", 0, ["a hound", "a hound"])
    reach.kept["not ours"] = "a puppy"

    found = index.similar("s", "puppy", 10)

    assert {0, 1} == set(found)
    assert found[1] > found[0] >= 0


def test_what_is_held_is_known_by_its_texts(face: Callable[[Reach], Any]) -> None:
    """A new process asks once whether messages are there, as the texts they have now, and all of them."""
    reach = Reach()
    face(reach).add("s", 0, ["a", "b", "c"])
    anew = face(reach)  # as in a new process
    reach.probes = 0

    assert anew.holds("s", 1, ["b", "c"])
    assert 1 == reach.probes
    assert [False] * 3 == [anew.holds("s", 1, texts) for texts in (["b", "x"], ["a"], ["b", "c", "d"])]
    assert not anew.holds("other", 0, ["a"])


def test_a_store_that_does_not_tell_is_known_by_what_was_put(face: Callable[[Reach], Any]) -> None:
    """Then this process goes by what it put itself, and a new one begins anew."""
    reach = Reach(tells=False)
    index = face(reach)
    index.add("s", 0, ["x"] * 10)

    assert [True, False] == [index.holds("s", 4, ["x"] * number) for number in (6, 7)]
    index.cut("s", 3, 5)
    assert [True, False] == [index.holds("s", 0, ["x"] * number) for number in (3, 4)]
    assert 3 == len(reach.kept)
    index.cut("unknown", 0, 2)
    assert not face(reach).holds("s", 0, ["x"])


def test_a_cut_goes_beyond_what_is_known(face: Callable[[Reach], Any]) -> None:
    """What another process put is deleted too, in steps, and what is kept stays."""
    reach = Reach()
    face(reach).add("s", 0, ["x"] * 1700)
    face(reach).add("other", 0, ["x"] * 3)

    face(reach).cut("s", 2, 5)

    assert {*message_ids("s", [0, 1]), *message_ids("other", [0, 1, 2])} == set(reach.kept)


def test_what_is_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was put is remembered of the latest sessions alone."""
    monkeypatch.setattr("slidemem.stored_vectors._KNOWN", 2)
    reach = Reach(tells=False)
    index = StoredVectors(reach, reach)
    for session in ("a", "b", "a", "c"):
        index.add(session, 0, ["x"])

    assert [True, False, True] == [index.holds(session, 0, ["x"]) for session in ("a", "b", "c")]


def test_a_memory_recalls_through_it() -> None:
    """A memory with such an index quotes what means the same, in another process too, and clears all of it."""
    reach = Reach()

    def memory(store: Any = None) -> SlideMem:
        return SlideMem(
            max_tokens=200,
            counter=lambda text: len(text.split()),
            store=store,
            consolidator=None,
            embeddings=StoredVectors(reach, reach),
        )

    first = memory()
    chat = first.session("s")
    chat.append([{"role": "user", "content": "My terrier snores."}, {"role": "assistant", "content": "Funny."}])
    for turn in range(10):
        chat.append([{"role": "user", "content": f"Tell me about {turn} " + "please " * 10}])
        chat.append([{"role": "assistant", "content": f"Subject {turn} " + "really " * 10}])
    again = memory(first.store).session("s")

    recalled = again.context({"role": "user", "content": "Which hound do I own?"}).receipt.recalled

    assert 0 in recalled
    again.clear()
    assert {} == reach.kept
