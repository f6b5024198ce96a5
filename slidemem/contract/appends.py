"""Decides what a store must do with messages that come and go: one transcript, its sums moving with it."""

# ruff: noqa: S101, SIM300  # tests assert, and write what they expect where they expect it, first

from __future__ import annotations

from abc import abstractmethod

from slidemem.contract.base import covering, entry, full, odd_entries, talk
from slidemem.contract.records import RecordsContract
from slidemem.contract.transcript import TranscriptContract
from slidemem.state import (
    Record,
    Recount,
    Snapshot,
    Totals,
    key_of,
)
from slidemem.stores.base import Store


class AppendsContract(TranscriptContract, RecordsContract):
    """The tests of appends, snapshots, commits and recounts of a `Store`."""

    @abstractmethod
    def store(self) -> Store:
        """Make an empty one; nothing of others that were made may be in it."""

    # -------------------------------------------------------------- append

    def test_an_append_moves_the_totals(self) -> None:
        """Each append returns the sums of all live messages, as if they were summed anew."""

        async def body() -> None:
            store, messages = self.store(), talk(9)
            for end in range(10):
                totals = await store.append("s", messages[end - 1 : end] if end else [])

                expected = Totals.of(Record(), messages[:end], "")
                assert (expected, expected) == (totals, (await store.snapshot("s")).totals)

        self.run(body())

    def test_an_append_may_bring_metadata(self) -> None:
        """Metadata given with messages replace those that are stored; None leaves them, an empty list does not."""

        async def body() -> None:
            store = self.store()
            for given, expected in (
                (None, ()),
                ([("a", "1"), ("b", "2")], (("a", "1"), ("b", "2"))),
                (None, (("a", "1"), ("b", "2"))),
                ([], ()),
            ):
                await store.append("s", talk(1), given)
                assert expected == (await store.snapshot("s")).metadata

        self.run(body())

    def test_a_message_that_is_sent_twice_is_kept_once(self) -> None:
        """The same id with the same content is one message, within a call and across calls."""

        async def body() -> None:
            store, first, second = self.store(), entry(0, "user", "a", id_="1"), entry(1, "assistant", "b", id_="2")
            await store.append("s", [first, first])
            totals = await store.append("s", [first, second, first, second])

            assert (first, second) == await store.read("s")
            assert Totals.of(Record(), (first, second), "") == totals
            assert totals == await store.append("s", [second])

        self.run(body())

    def test_an_id_with_other_content_is_another_message(self) -> None:
        """What an id says anew is kept; and so is what others say under no id, another id, in another session."""

        async def body() -> None:
            store = self.store()
            said = [("a", "1"), ("b", "1"), ("a", None), ("a", None), ("a", "2"), ("a", "\ud83d\0"), ("a", "")]
            messages = [entry(at, "user", text, id_=id_) for at, (text, id_) in enumerate(said)]
            await store.append("s", messages)
            await store.append("t", messages[:1])

            assert tuple(messages) == await store.read("s")
            assert tuple(messages[:1]) == await store.read("t")

        self.run(body())

    def test_an_id_is_free_again_once_its_message_is_closed(self) -> None:
        """A message that was closed or cleared may be said again; one that stayed may not."""

        async def body() -> None:
            store = self.store()
            messages = [entry(at, "user", text, id_=text) for at, text in enumerate("abc")]
            await store.append("s", messages)
            await store.cut("s", 1)
            await store.append("s", messages)
            assert tuple(messages) == await store.read("s")

            await store.clear("s")
            await store.append("s", messages)
            assert tuple(messages) == await store.read("s")

        self.run(body())

    def test_keys_are_those_of_the_messages(self) -> None:
        """The key of each message tells digest, id, role, and what is shown of it."""

        async def body() -> None:
            store, messages = self.store(), [*odd_entries(), entry(10, "user", "long", id_="k", shown="l")]
            await store.append("s", messages)

            assert tuple(map(key_of, messages)) == await store.keys("s")
            assert () == await store.keys("t")

        self.run(body())

    # -------------------------------------------------------------- snapshot and commit

    def test_a_snapshot_holds_everything_that_a_read_needs(self) -> None:
        """Record, live messages, pins, metadata and totals; nothing at all for nobody."""

        async def body() -> None:
            store = self.store()
            await full(store, "s")

            snapshot, held, entries = await store.snapshot("s"), await store.held("s"), await store.read("s", 3)
            totals = Totals.of(held.record, entries, "")
            assert Snapshot(held.record, entries, held.pins, held.metadata, totals) == snapshot
            assert (5, 2, 2, 2) == (totals.next_seq, len(entries), len(held.pins), len(held.metadata))
            assert Snapshot() == await store.snapshot("t")

        self.run(body())

    def test_a_commit_takes_what_it_covers_from_the_totals(self) -> None:
        """The boundary moves; messages that were appended meanwhile stay live, and are counted."""

        async def body() -> None:
            store, messages = self.store(), talk(8)
            await store.append("s", messages[:6])
            seen = await store.snapshot("s")
            await store.append("s", messages[6:])
            change = covering(4, seen.live, seen.record)
            assert await store.commit("s", 0, change)

            snapshot = await store.snapshot("s")
            assert tuple(messages[4:]) == snapshot.live
            assert Totals.of(change.record, messages[4:], "") == snapshot.totals
            assert tuple(messages) == await store.read("s")
            assert snapshot.totals.plus(messages[:1]) == await store.append("s", messages[:1])

        self.run(body())

    def test_a_recount_changes_tokens_and_sums(self) -> None:
        """Other counts of live messages are stored, of none that is not there; one appended since keeps its own."""

        async def body() -> None:
            store, messages = self.store(), talk(4)
            await store.append("s", messages[:3])
            await store.commit("s", 0, covering(1, tuple(messages), Record()))
            await store.append("s", messages[3:])
            await store.recount("s", 1, Recount("new", {1: 100, 2: 200, 9: 900}, 30, 40))

            snapshot = await store.snapshot("s")
            assert [100, 200, messages[3].tokens] == [kept.tokens for kept in snapshot.live]
            assert ["new", "new", "words"] == [kept.counter for kept in snapshot.live]
            expected = Totals(4, 300 + messages[3].tokens, 1, 30, 40, "new")
            assert expected == snapshot.totals
            assert [kept.message for kept in messages] == [kept.message for kept in await store.read("s")]
            assert expected.plus(messages[:1]) == await store.append("s", messages[:1])

        self.run(body())

    def test_a_stale_recount_changes_nothing(self) -> None:
        """Counts that were made for another revision are dropped."""

        async def body() -> None:
            store = self.store()
            await store.append("s", talk(2))
            before = await store.snapshot("s")
            await store.recount("s", 1, Recount("new", {0: 100}, 30, 40))
            await store.recount("t", 1, Recount("new", {}, 30, 40))

            assert (before, Snapshot()) == (await store.snapshot("s"), await store.snapshot("t"))

        self.run(body())
