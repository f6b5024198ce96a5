"""Decides what a home of records must do: change them as a whole, once, or not at all."""

# ruff: noqa: S101, SIM300  # tests assert, and write what they expect where they expect it, first

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

from slidemem.archive import Archive
from slidemem.contract.base import ODD_IDS, ODD_TEXTS, THREADS, Contract, odd_entries, segment
from slidemem.state import Change, Held, Kept, Lease, Pin, Record
from slidemem.stores.base import Records

NEXT = Record(revision=1)  # what the first change of a session makes


class RecordsContract(Contract, ABC):
    """The tests of a `Records`."""

    @abstractmethod
    def store(self) -> Records:
        """Make an empty one; its sessions need not be apart from those of others that were made."""

    def test_nobody_has_an_empty_record(self) -> None:
        """A session that is not there has an empty record, no pins, no metadata, no segments."""

        async def body() -> None:
            store = self.store()

            assert (Held(), None) == (await store.held("s"), await store.segment("s", "0-1"))

        self.run(body())

    # -------------------------------------------------------------- metadata

    def test_metadata_are_replaced(self) -> None:
        """The latest metadata stand, in their order; none at all is an order too."""

        async def body() -> None:
            store = self.store()
            for metadata in ((("b", "1"), ("a", "2")), (("a", "3"),), (), tuple(("k", odd) for odd in ODD_TEXTS)):
                await store.describe("s", list(metadata))
                assert Held(metadata=metadata) == await store.held("s")

        self.run(body())

    # -------------------------------------------------------------- commits

    def test_a_commit_changes_record_and_pins(self) -> None:
        """A commit on the present revision stores the new record, its pins and its segments."""

        async def body() -> None:
            store, kept, pin = self.store(), segment(0, 2), Pin("p", "tea", 1)
            record = Record(1, boundary=2, archive=Archive((kept,)))

            assert await store.commit("s", 0, Change(record, (), (kept,), (pin,)))
            assert Held(record, (pin,)) == await store.held("s")
            assert kept == await store.segment("s", "0-2")

        self.run(body())

    def test_a_stale_commit_changes_nothing(self) -> None:
        """A commit on another revision is refused, whether that is past, to come, or of no session."""

        async def body() -> None:
            store, change = self.store(), Change(replace(NEXT, revision=9), (), (segment(0, 2),), (Pin("p", "tea"),))
            await store.commit("s", 0, Change(NEXT))

            refused = [await store.commit(id_, expected, change) for id_, expected in (("s", 0), ("s", 2), ("t", 1))]
            assert [False, False, False] == refused
            assert (Held(NEXT), Held()) == (await store.held("s"), await store.held("t"))
            assert None is await store.segment("s", "0-2")

        self.run(body())

    def test_a_record_of_any_content_comes_back_equal(self) -> None:
        """System messages, anchor, first user message and segments with any text survive."""

        async def body() -> None:
            store = self.store()
            kept = tuple(Kept(one.seq, one.shown, one.tokens, one.counter) for one in odd_entries())
            archive = Archive(tuple(segment(at, at + 1, text) for at, text in enumerate(ODD_TEXTS)))
            record = Record(1, len(ODD_TEXTS), "id \ud83d\0", "0" * 32, kept, kept[2], kept[3], archive, 77)
            await store.commit("s", 0, Change(record, (), archive.segments))

            assert record == (await store.held("s")).record
            assert archive.segments[2] == await store.segment("s", "2-3")

        self.run(body())

    def test_of_threads_that_commit_one_wins(self) -> None:
        """Of eight commits on one revision one is applied, whole."""
        store = self.store()

        async def settle(who: int) -> bool:
            return await store.commit(
                "s", 0, Change(replace(NEXT, overhead_tokens=who), (), (), (Pin("p", f"{who}"),))
            )

        won = self.at_once(settle)

        held = self.run(store.held("s"))
        assert (1, THREADS) == (sum(won), len(won))
        assert (won.index(True), str(won.index(True))) == (held.record.overhead_tokens, held.pins[0].text)

    def test_segments_outlive_the_record_that_held_them(self) -> None:
        """A segment can be read by its id after it was merged; the latest with an id stands."""

        async def body() -> None:
            store, first, second = self.store(), segment(0, 2), segment(2, 4)
            parent = segment(0, 4, "both", (first.id, second.id))
            await store.commit("s", 0, Change(Record(1, archive=Archive((first,))), (), (first, second)))
            await store.commit("s", 1, Change(Record(2, archive=Archive((parent,))), (), (parent,)))
            assert [first, second, parent] == [await store.segment("s", id_) for id_ in ("0-2", "2-4", "0-4")]

            again = replace(first, text="said otherwise")
            await store.commit("s", 2, Change(Record(3), (), (again,)))
            assert [again, None] == [await store.segment("s", "0-2"), await store.segment("t", "0-2")]

        self.run(body())

    # -------------------------------------------------------------- pins

    def test_pins_stand_in_the_order_they_came(self) -> None:
        """A pin is added at the end; one whose id is there takes that one's place."""

        async def body() -> None:
            store = self.store()
            for pin in (Pin("b", "one"), Pin("a", "two", 4), Pin("c", "three")):
                await store.pin("s", pin)
            await store.pin("s", Pin("a", "two again"))
            await store.commit("s", 0, Change(NEXT, (), (), (Pin("d", "four"), Pin("b", "one again", 0))))

            expected = (Pin("b", "one again", 0), Pin("a", "two again"), Pin("c", "three"), Pin("d", "four"))
            assert expected == (await store.held("s")).pins

        self.run(body())

    def test_a_pin_is_removed_once(self) -> None:
        """Unpinning says whether there was such a pin; pinned anew it stands at the end."""

        async def body() -> None:
            store = self.store()
            await store.pin("s", Pin("a", "one"))
            await store.pin("s", Pin("b", "two"))

            assert [True, False] == [await store.unpin("s", "a"), await store.unpin("s", "a")]
            assert [False, False] == [await store.unpin("s", "c"), await store.unpin("t", "b")]
            await store.pin("s", Pin("a", "one"))
            assert (Pin("b", "two"), Pin("a", "one")) == (await store.held("s")).pins

        self.run(body())

    def test_pins_of_any_content_come_back_equal(self) -> None:
        """Ids and texts of any characters survive."""

        async def body() -> None:
            store, pins = self.store(), tuple(Pin(text[:99], text, at) for at, text in enumerate(ODD_TEXTS))
            for pin in pins:
                await store.pin("s", pin)

            assert pins == (await store.held("s")).pins

        self.run(body())

    # -------------------------------------------------------------- leases

    def test_a_lease_is_one_holder_s(self) -> None:
        """Whoever has it may take it again; another gets it once it is given back."""

        async def body() -> None:
            store, mine, yours = self.store(), Lease("me\0\ud83d", 10.0), Lease("you", 10.0)

            assert await store.claim("s", 0, mine, 0.0)
            assert not await store.claim("s", 0, yours, 0.0)
            assert await store.claim("s", 0, replace(mine, until=20.0), 5.0)
            later = replace(yours, until=30.0)
            assert not await store.claim("s", 0, later, 19.9)
            await store.release("s", yours.holder)
            assert not await store.claim("s", 0, later, 19.9)
            await store.release("s", mine.holder)
            await store.release("t", mine.holder)
            assert await store.claim("s", 0, later, 19.9)

        self.run(body())

    def test_a_lease_ends_by_itself(self) -> None:
        """From the second of its end on, another holder gets it, and the first one no longer does."""

        async def body() -> None:
            store, mine, yours = self.store(), Lease("me", 10.0), Lease("you", 30.0)
            await store.claim("s", 0, mine, 0.0)

            assert await store.claim("s", 0, yours, 10.0)
            assert not await store.claim("s", 0, replace(mine, until=30.0), 10.0)

        self.run(body())

    def test_a_lease_of_a_clock_that_ran_ahead_is_void(self) -> None:
        """One that ends later than twice what is asked for now does not keep anybody out."""

        async def body() -> None:
            store = self.store()
            await store.claim("s", 0, Lease("me", 1_000.0), 990.0)

            assert not await store.claim("s", 0, Lease("you", 600.0), 500.0 - 400.0)
            assert await store.claim("s", 0, Lease("you", 110.0), 100.0)

        self.run(body())

    def test_a_lease_is_of_one_revision(self) -> None:
        """It is refused on another revision, and gone once the record has moved."""

        async def body() -> None:
            store, mine, yours = self.store(), Lease("me", 10.0), Lease("you", 10.0)
            assert not await store.claim("s", 1, mine, 0.0)
            await store.claim("s", 0, mine, 0.0)
            await store.commit("s", 0, Change(NEXT))

            assert not await store.claim("s", 0, mine, 0.0)
            assert await store.claim("s", 1, yours, 0.0)

        self.run(body())

    def test_a_refused_commit_leaves_the_lease(self) -> None:
        """Only a commit that is applied ends a lease."""

        async def body() -> None:
            store = self.store()
            await store.claim("s", 0, Lease("me", 10.0), 0.0)
            await store.commit("s", 5, Change(NEXT))

            assert not await store.claim("s", 0, Lease("you", 10.0), 0.0)

        self.run(body())

    def test_of_threads_that_claim_one_wins(self) -> None:
        """Of eight holders that ask at the same time one gets the lease."""
        store = self.store()

        async def ask(who: int) -> bool:
            return await store.claim("s", 0, Lease(f"holder {who}", 10.0), 0.0)

        assert [False] * (THREADS - 1) + [True] == sorted(self.at_once(ask))

    # -------------------------------------------------------------- clear

    def test_clear_leaves_the_revision_moved_by_one(self) -> None:
        """Pins, metadata, segments and lease are gone; what was in flight is dropped."""

        async def body() -> None:
            store = self.store()
            await store.describe("s", [("k", "v")])
            await store.pin("s", Pin("p", "tea"))
            await store.commit("s", 0, Change(Record(1, archive=Archive((segment(0, 2),))), (), (segment(0, 2),)))
            await store.claim("s", 1, Lease("me", 10.0), 0.0)
            await store.clear("s")
            await store.clear("t")

            assert Held(Record(revision=2)) == await store.held("s")
            assert Held(Record(revision=1)) == await store.held("t")
            assert None is await store.segment("s", "0-2")
            assert not await store.commit("s", 1, Change(Record(2)))
            assert await store.claim("s", 2, Lease("you", 10.0), 0.0)

        self.run(body())

    def test_records_under_any_id_stay_apart(self) -> None:
        """What is stored under one id is read under that id, and under no other that looks like it."""

        async def body() -> None:
            store = self.store()
            for at, id_ in enumerate(ODD_IDS):
                await store.describe(id_, [("at", str(at))])
                await store.pin(id_, Pin("p", f"to {at}"))
            await store.clear(ODD_IDS[0])

            held = [await store.held(id_) for id_ in ODD_IDS]
            expected = [Held(Record(), (Pin("p", f"to {at}"),), (("at", str(at)),)) for at in range(len(ODD_IDS))]
            assert [Held(NEXT), *expected[1:]] == held

        self.run(body())
