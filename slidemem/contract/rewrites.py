"""Decides what a store must do when messages leave the conversation: keep them as branches, all or none."""

# ruff: noqa: S101, SIM300  # tests assert, and write what they expect where they expect it, first

from __future__ import annotations

from slidemem.contract.appends import AppendsContract
from slidemem.contract.base import covering, entry, full, talk
from slidemem.state import (
    Branch,
    Lease,
    Pin,
    Record,
    Rewrite,
    Snapshot,
    Totals,
    Whole,
)


class RewritesContract(AppendsContract):
    """The tests of rewrites and branches of a `Store`."""

    # -------------------------------------------------------------- rewrite

    def test_a_rewrite_closes_and_adds(self) -> None:
        """What leaves becomes a branch, what is added takes its place, pins and metadata change with them."""

        async def body() -> None:
            store, messages, new = self.store(), talk(6), entry(4, "assistant", "instead", id_="n")
            await store.append("s", messages, [("a", "1")])
            await store.pin("s", Pin("p", "tea", 5))
            await store.pin("s", Pin("q", "tea", 1))
            record = Record(1, overhead_tokens=7)
            totals = await store.rewrite("s", (0, 6), Rewrite(record, 4, (new, new), ("p", "nobody")), [("b", "2")])

            left, sums = (*messages[:4], new), Totals.of(record, (*messages[:4], new), "")
            assert sums == totals
            assert (Branch(0, tuple(messages[4:])),) == await store.branches("s")
            assert Snapshot(record, left, (Pin("q", "tea", 1),), (("b", "2"),), sums) == await store.snapshot("s")

        self.run(body())

    def test_a_rewrite_may_only_close(self) -> None:
        """Nothing is added; a boundary that moves back makes messages live again."""

        async def body() -> None:
            store, messages = self.store(), talk(6)
            await store.append("s", messages)
            await store.commit("s", 0, covering(4, tuple(messages), Record()))
            totals = await store.rewrite("s", (1, 6), Rewrite(Record(2), 2))

            assert Totals.of(Record(2), messages[:2], "words") == totals
            assert tuple(messages[:2]) == (await store.snapshot("s")).live

            assert Totals(counter="words") == await store.rewrite("s", (2, 2), Rewrite(Record(3), 0))

        self.run(body())

    def test_a_rewrite_may_only_add(self) -> None:
        """Without a record nothing is closed, whatever it says to keep, and the revision stays."""

        async def body() -> None:
            store, messages = self.store(), talk(4)
            first = await store.rewrite("s", (0, 0), Rewrite(None, 0, tuple(messages[:2])))
            await store.claim("s", 0, Lease("me", 10.0), 0.0)
            second = await store.rewrite("s", (0, 2), Rewrite(None, 0, tuple(messages[2:])))

            assert [Totals.of(Record(), messages[:end], "") for end in (2, 4)] == [first, second]
            assert (tuple(messages), ()) == (await store.read("s"), await store.branches("s"))
            assert not await store.claim("s", 0, Lease("you", 10.0), 0.0)

        self.run(body())

    def test_a_rewrite_of_a_session_that_moved_on_changes_nothing(self) -> None:
        """Another revision, or another number of messages, than it was planned on: None, and all is as it was."""

        async def body() -> None:
            store = self.store()
            await full(store, "s")
            before = await store.whole("s")
            rewrite = Rewrite(Record(4), 1, tuple(talk(1)), ("a", "b"))

            for session, expected in (("s", (2, 5)), ("s", (4, 5)), ("s", (3, 4)), ("s", (3, 6)), ("t", (0, 1))):
                assert None is await store.rewrite(session, expected, rewrite, [("k", "v")])
            assert (before, Whole()) == (await store.whole("s"), await store.whole("t"))

        self.run(body())

    def test_a_rewrite_ends_the_lease(self) -> None:
        """A record that changes takes its lease with it."""

        async def body() -> None:
            store = self.store()
            await store.append("s", talk(2))
            await store.claim("s", 0, Lease("me", 10.0), 0.0)
            await store.rewrite("s", (0, 2), Rewrite(Record(1), 1))

            assert await store.claim("s", 1, Lease("you", 10.0), 0.0)

        self.run(body())

    def test_of_threads_that_rewrite_one_wins(self) -> None:
        """Of eight rewrites that were planned on the same state one is applied."""
        store = self.store()
        self.run(store.append("s", talk(3)))

        async def rewind(who: int) -> Totals | None:
            return await store.rewrite("s", (0, 3), Rewrite(Record(1), 1, (entry(1, "user", f"{who}"),)))

        won = [totals for totals in self.at_once(rewind) if totals]

        assert [2] == [totals.next_seq for totals in won]
        assert [3] == [1 + len(branch.entries) for branch in self.run(store.branches("s"))]

    def test_branches_stand_in_the_order_in_which_they_were_closed(self) -> None:
        """Each is named by the revision before it, with the places that its messages had; none for nobody."""

        async def body() -> None:
            store, messages = self.store(), talk(4)
            await store.append("s", messages)
            for revision, keep in enumerate((3, 1, 1, 0)):
                length = (await store.snapshot("s")).totals.next_seq
                await store.rewrite("s", (revision, length), Rewrite(Record(revision + 1), keep))
            await store.append("s", messages)
            await store.cut("s", 1)
            await store.cut("s", 0)

            spans = ((0, 3, 4), (1, 1, 3), (3, 0, 1), (4, 1, 4), (4, 0, 1))
            expected = tuple(Branch(revision, tuple(messages[start:end])) for revision, start, end in spans)
            assert (expected, ()) == (await store.branches("s"), await store.branches("t"))

        self.run(body())
