"""Decides how a store is compared with the one in memory: the same calls at random, the same answers and state."""

# ruff: noqa: S101  # tests assert, and write what they expect where they expect it, first

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any, Final

from slidemem.contract.base import entry, segment
from slidemem.post import post_of
from slidemem.state import Change, Entry, Kept, Lease, Pin, Record, Recount, Rewrite, Snapshot, Totals, Whole
from slidemem.stores.base import Store
from slidemem.stores.memory import MemoryStore

SESSIONS: Final = ("s", "S", "s\0")
OFTEN: Final = ("append", "append", "append", "append", "commit", "commit", "rewind")

Call = tuple[Any, ...]  # name of the method, and its arguments after the session


async def walk(store: Store, seed: int, calls: int) -> None:
    """Call a store and the model alike, and compare what they return and what they hold then.

    Args:
        store: an empty one.
        seed: of the random numbers; the same one makes the same calls.
        calls: how many.

    Raises:
        AssertionError: they differ; it names the call.
    """
    chance, model = Chance(seed), MemoryStore()
    for session in SESSIONS:
        await _both(store, model, session, ("append", chance.entries(1), None))
    for at in range(calls):
        session = chance.one(*SESSIONS)
        call = chance.call(await model.snapshot(session), await model.whole(chance.one(*SESSIONS)))
        try:
            await _both(store, model, session, call)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, call {at}, of {session!r}: {call!r:.500}") from error


async def _both(store: Store, model: Store, session: str, call: Call) -> None:
    method, *arguments = call
    expected = await getattr(model, method)(session, *arguments)
    assert expected == await getattr(store, method)(session, *arguments)
    snapshot = await store.snapshot(session)
    assert await model.snapshot(session) == snapshot
    assert await model.whole(session) == await store.whole(session)
    assert await model.keys(session) == await store.keys(session)
    assert await model.sessions() == await store.sessions()
    asked = ["a", "b", "c", "d"]
    assert await model.matching(session, asked, 5, 4) == await store.matching(session, asked, 5, 4)
    scratch = Totals.of(snapshot.record, snapshot.live, "")
    for name in ("next_seq", "live_tokens", "live_turns"):
        assert getattr(scratch, name) == getattr(snapshot.totals, name), name


class Chance:
    """Makes up calls that a flow could make, and some that come too late.

    Args:
        seed: the same one makes the same calls.
    """

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311  # test data

    def one(self, *options: Any) -> Any:
        """One of several."""
        return self._random.choice(options)

    def entries(self, least: int = 0) -> list[Entry]:
        """A few messages, some of which were said before, under the same id or none."""
        return [self._entry() for _ in range(self._random.randint(least, 4))]

    def call(self, now: Snapshot, other: Whole) -> Call:
        """The next call.

        Args:
            now: what the session holds.
            other: any session.
        """
        revision, length = now.record.revision + self.one(0, 0, 0, 1), now.totals.next_seq
        id_, holder, metadata = self.one("a", "b", "0-1", "1-2"), self.one("me", "you"), self._metadata()
        calls: dict[str, Callable[[], Call]] = {
            "append": lambda: ("append", self.entries(), self.one(None, None, metadata)),
            "read": lambda: ("read", *self.one((), (1,), (0, 3), (2, None), (3, 9))),
            "describe": lambda: ("describe", metadata),
            "pin": lambda: ("pin", self._pin()),
            "unpin": lambda: ("unpin", id_),
            "segment": lambda: ("segment", id_),
            "claim": lambda: ("claim", revision, Lease(holder, self.one(1.0, 2.0)), self.one(0.5, 1.5)),
            "release": lambda: ("release", holder),
            "commit": lambda: ("commit", revision, self._change(now)),
            "recount": lambda: ("recount", revision, self._recount(now)),
            "rewind": lambda: ("rewrite", (revision, length), self._rewind(now), self.one(None, metadata)),
            "extend": lambda: ("rewrite", (revision, self.one(1, length)), Rewrite(None, 0, tuple(self.entries()))),
            "cut": lambda: ("cut", self._random.randint(now.record.boundary, length)),
            "restore": lambda: ("restore", (revision, self.one(1, length, length)), other),
            "clear": lambda: ("clear",),
        }
        return calls[self.one(*calls, *OFTEN)]()

    def _entry(self) -> Entry:
        said = self.one("a", "b c", "d\0 e f")
        made = entry(0, self.one("user", "assistant"), said, id_=self.one(None, "1", "2"), shown=self.one(None, "a"))
        made = replace(made, post=self.one(None, post_of(made.message, self._random.random())))
        return replace(made, tokens=self._random.randrange(9), counter=self.one("words", "words", "words", "other"))

    def _metadata(self) -> list[tuple[str, str]]:
        return self.one([], [("k", "v")], [("l", "w"), ("k", "v")])  # type: ignore[no-any-return]  # one of these

    def _pin(self) -> Pin:
        return Pin(self.one("a", "b", "c"), self.one("tea", "milk"), self.one(None, 0, 1))

    def _change(self, now: Snapshot) -> Change:
        """What moves the boundary over some of the live messages, or over none."""
        was, covered = now.record, now.live[: self._random.randint(0, len(now.live))]
        segments = tuple(segment(one.seq, one.seq + 1, one.message.text) for one in covered)
        record = replace(
            was,
            revision=was.revision + 1,
            boundary=was.boundary + len(covered),
            archive=replace(was.archive, segments=(*was.archive.segments, *segments)),
            anchor=self.one(was.anchor, *(Kept(one.seq, one.shown, one.tokens, one.counter) for one in covered)),
            overhead_tokens=self._random.randrange(9),
        )
        return Change(record, covered, segments, self.one((), (self._pin(), self._pin())))

    def _recount(self, now: Snapshot) -> Recount:
        tokens = {one.seq: self._random.randrange(9) for one in now.live}
        return Recount("other", tokens, self._random.randrange(9), self._random.randrange(9))

    def _rewind(self, now: Snapshot) -> Rewrite:
        """What closes messages, and makes all others live again where some were covered."""
        keep, was = self._random.randint(0, now.totals.next_seq), now.record
        kept = replace(was, revision=was.revision + 1)
        record = kept if keep >= was.boundary else Record(revision=was.revision + 1)
        return Rewrite(record, keep, tuple(self.entries()), self.one((), ("a", "b")))
