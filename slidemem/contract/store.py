"""Decides what a store of everything must do: transcript, records and postings, each change atomic over all."""

# ruff: noqa: S101, SIM300, PLR2004  # tests assert, and write what they expect where they expect it, first

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from slidemem.archive import Archive, Segment
from slidemem.contract.base import ODD_IDS, THREADS, entry, full, segment, talk
from slidemem.contract.model import walk
from slidemem.contract.postings import PostingsContract
from slidemem.state import (
    Branch,
    Change,
    Entry,
    Lease,
    Pin,
    Record,
    Rewrite,
    Snapshot,
    Totals,
    Whole,
)


class StoreContract(PostingsContract):
    """The tests of a `Store`; those of a `Transcript` and a `Records` are among them."""

    # -------------------------------------------------------------- whole, restore, clear

    def test_a_whole_session_comes_back(self) -> None:
        """What `whole` returns, taken through JSON text, is restored as another session, but for its revision."""

        async def body() -> None:
            store = self.store()
            await full(store, "s")
            whole = await store.whole("s")
            assert (5, 2, 1, 2, 2) == tuple(
                map(len, (whole.entries, whole.branches, whole.segments, whole.pins, whole.metadata))
            )

            assert await store.restore("t", (0, 0), _through_json(whole))
            assert replace(whole, record=replace(whole.record, revision=4)) == await store.whole("t")
            snapshot = await store.snapshot("t")
            assert Totals.of(snapshot.record, snapshot.live, "") == snapshot.totals
            assert (whole, Whole()) == (await store.whole("s"), await store.whole("nobody"))

        self.run(body())

    def test_a_restored_session_goes_on(self) -> None:
        """Messages, ids, pins, segments and branches that were restored are as good as new ones."""

        async def body() -> None:
            store = self.store()
            await full(store, "s")
            await store.restore("t", (0, 0), await store.whole("s"))
            said = (await store.read("t"))[-1]

            assert 5 == (await store.append("t", [said])).next_seq
            assert 6 == (await store.append("t", [replace(said, message=talk(1)[0].message)])).next_seq
            assert segment(0, 3) == await store.segment("t", "0-3")
            assert await store.unpin("t", "b")
            await store.rewrite("t", (4, 6), Rewrite(Record(5), 5))
            assert [1, 2, 4] == [branch.revision for branch in await store.branches("t")]

        self.run(body())

    def test_a_restore_takes_the_place_of_what_is_there(self) -> None:
        """Nothing of the session before is left; a lease is gone, and what was in flight is dropped."""

        async def body() -> None:
            store = self.store()
            await full(store, "s")
            await store.claim("s", 3, Lease("me", 10.0), 0.0)
            fresh = Whole(Record(70), tuple(talk(1)), (), (), (Pin("x", "y"),))
            assert await store.restore("s", (3, 5), fresh)

            assert replace(fresh, record=Record(71)) == await store.whole("s")
            assert await store.claim("s", 71, Lease("you", 10.0), 0.0)
            assert not await store.commit("s", 3, Change(Record(4)))

        self.run(body())

    def test_a_restore_of_a_session_that_moved_on_changes_nothing(self) -> None:
        """On another revision or length than expected it says so, and all is as it was."""

        async def body() -> None:
            store = self.store()
            await full(store, "s")
            before = await store.whole("s")

            wrong = (("s", (2, 5)), ("s", (3, 4)), ("t", (2, 0)), ("t", (0, 1)))
            assert [False] * 4 == [await store.restore(id_, expected, Whole()) for id_, expected in wrong]
            assert (before, Whole()) == (await store.whole("s"), await store.whole("t"))

        self.run(body())

    def test_clear_deletes_everything_for_good(self) -> None:
        """Nothing of a session can be read any more, by any method; only its revision is one further."""

        async def body() -> None:
            store = self.store()
            await full(store, "s")
            await store.snapshot("s")
            await store.clear("s")

            record = Record(revision=4)
            assert (Whole(record), Snapshot(record)) == (await store.whole("s"), await store.snapshot("s"))
            assert ((), (), None) == (
                await store.keys("s"),
                await store.branches("s"),
                await store.segment("s", "0-3"),
            )
            assert () == await store.sessions()
            assert Totals.of(record, talk(2), "") == await store.append("s", talk(2))
            assert tuple(talk(2)) == (await store.snapshot("s")).live

        self.run(body())

    # -------------------------------------------------------------- sessions

    def test_sessions_that_hold_anything_are_listed_as_they_began(self) -> None:
        """One message, branch, pin, segment or fact is enough; a session that was emptied keeps its place."""

        async def body() -> None:
            store = self.store()
            assert () == await store.sessions()

            await store.append("message", talk(1))
            await store.append("branch", talk(1))
            await store.cut("branch", 0)
            await store.pin("pin", Pin("p", "tea"))
            await store.describe("fact", [("k", "v")])
            await store.commit("segment", 0, Change(Record(1, archive=Archive((segment(0, 1),)))))
            await store.restore("restored", (0, 0), Whole(entries=tuple(talk(1))))
            await store.append("nothing", [])
            await store.claim("leased", 0, Lease("me", 10.0), 0.0)
            assert ("message", "branch", "pin", "fact", "segment", "restored") == await store.sessions()

            await store.clear("message")
            await store.unpin("pin", "p")
            assert ("branch", "fact", "segment", "restored") == await store.sessions()
            await store.append("message", talk(1))
            assert ("message", "branch", "fact", "segment", "restored") == await store.sessions()

        self.run(body())

    def test_ids_of_any_characters_are_listed(self) -> None:
        """Each comes back as it was given."""

        async def body() -> None:
            store = self.store()
            for id_ in ODD_IDS:
                await store.append(id_, talk(1))

            assert ODD_IDS == await store.sessions()

        self.run(body())

    def test_sessions_of_a_user_are_told(self) -> None:
        """Who was named last by an append, a pin or a rewrite has the session; who is not named changes nothing."""

        async def body() -> None:
            store = self.store()
            await store.append("a", talk(1), None, "ann '\0\ud83d")
            await store.pin("b", Pin("p", "tea"), "ann '\0\ud83d")
            await store.append("c", talk(1))
            await store.rewrite("c", (0, 1), Rewrite(None, 1, tuple(talk(1))), None, "bob")
            await store.append("d", talk(1), [], "ann '\0\ud83d")
            await store.append("d", talk(1), None, "bob")
            for id_ in "abcd":
                await store.append(id_, talk(2)[1:])
                await store.pin(id_, Pin("q", "milk"))

            assert ("a", "b") == await store.sessions("ann '\0\ud83d")
            assert ("c", "d") == await store.sessions("bob")
            assert () == await store.sessions("ann")
            assert ("a", "b", "c", "d") == await store.sessions()

        self.run(body())

    def test_a_cleared_session_is_nobodys(self) -> None:
        """It is the user's of whoever goes on with it; one that holds nothing but is a user's is told too."""

        async def body() -> None:
            store = self.store()
            for id_ in "ab":
                await store.append(id_, talk(1), None, "ann")
            await store.append("c", [], None, "ann")
            await store.clear("a")
            assert ("b", "c") == await store.sessions("ann")

            await store.append("a", talk(1), None, "bob")
            assert (("a",), ("b", "c")) == (await store.sessions("bob"), await store.sessions("ann"))
            await store.restore("b", (0, 1), Whole())
            assert ("b", "c") == await store.sessions("ann")

        self.run(body())

    # -------------------------------------------------------------- everybody at once

    def test_a_snapshot_is_of_one_instant(self) -> None:
        """While others append, commit and rewind, record, messages and sums of every snapshot agree."""
        store, rounds = self.store(), 15

        async def change(who: int) -> int:
            for at in range(rounds):
                await store.append("s", [entry(0, "user", f"{who} {at}"), entry(0, "assistant", "well " * at)])
                seen = await store.snapshot("s")
                revision, length = seen.record.revision, seen.totals.next_seq
                if at % 5 < 4:
                    moved = replace(seen.record, revision=revision + 1, boundary=length, overhead_tokens=at)
                    await store.commit("s", revision, Change(moved, seen.live))
                else:
                    await store.rewrite("s", (revision, length), Rewrite(Record(revision + 1), length // 2))
            return 0

        async def look(_: int) -> int:
            for _ in range(rounds):
                seen = await store.snapshot("s")
                assert [*range(seen.record.boundary, seen.totals.next_seq)] == [kept.seq for kept in seen.live]
                assert Totals.of(seen.record, seen.live, seen.totals.counter) == seen.totals
                whole = await store.whole("s")
                assert [*range(len(whole.entries))] == [kept.seq for kept in whole.entries]
            return rounds

        looked = self.at_once(lambda who: look(who) if who % 2 else change(who))

        assert rounds * THREADS // 2 == sum(looked)

    def test_any_sequence_of_calls_gives_what_the_model_gives(self) -> None:
        """Two hundred calls at random return, and leave behind, what they do with the store in memory."""
        for seed in range(2):
            self.run(walk(self.store(), seed, 200))


def _through_json(whole: Whole) -> Whole:
    """The same with each of its values written as JSON text and read again."""
    return Whole(
        Record.from_json(_read(whole.record)),
        tuple(Entry.from_json(_read(one)) for one in whole.entries),
        tuple(Branch.from_json(_read(one)) for one in whole.branches),
        tuple(Segment.from_json(_read(one)) for one in whole.segments),
        tuple(Pin.from_json(_read(one)) for one in whole.pins),
        whole.metadata,
    )


def _read(value: Record | Entry | Branch | Segment | Pin) -> Any:
    return json.loads(json.dumps(value.to_json()))
