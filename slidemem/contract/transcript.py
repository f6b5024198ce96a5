"""Decides what a transcript must do: keep every message in order, and give back what it was given."""

# ruff: noqa: S101, SIM300  # tests assert, and write what they expect where they expect it, first

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any

from slidemem.contract.base import ODD_IDS, THREADS, Contract, entry, odd_entries, talk
from slidemem.stores.base import Transcript


class TranscriptContract(Contract, ABC):
    """The tests of a `Transcript`."""

    @abstractmethod
    def store(self) -> Transcript:
        """Make an empty one; its messages need not be apart from those of others that were made."""

    def test_messages_come_back_in_order(self) -> None:
        """What was appended in several calls is read whole, its places counted from 0."""

        async def body() -> None:
            store, messages = self.store(), talk(7)
            for start, end in ((0, 1), (1, 1), (1, 5), (5, 7)):
                await store.append("s", messages[start:end])

            assert tuple(messages) == await store.read("s")

        self.run(body())

    def test_places_are_given_by_the_store(self) -> None:
        """The `seq` that an appended message brings is ignored."""

        async def body() -> None:
            store = self.store()
            await store.append("s", [entry(9, "user", "a"), entry(9, "assistant", "b")])
            await store.append("s", [entry(0, "user", "c")])

            assert [0, 1, 2] == [kept.seq for kept in await store.read("s")]

        self.run(body())

    def test_a_range_is_read(self) -> None:
        """A range holds the messages from its start up to, and without, its end."""

        async def body() -> None:
            store, messages = self.store(), tuple(talk(6))
            await store.append("s", messages)

            for start, end in ((0, 6), (0, 0), (2, 4), (5, 6), (4, 99), (6, 9), (4, 2)):
                assert messages[start:end] == await store.read("s", start, end)
            assert messages[3:] == await store.read("s", 3)
            assert () == await store.read("s", 7)

        self.run(body())

    def test_nobody_has_said_anything(self) -> None:
        """A session that was never begun has no messages, and neither does one to which none were appended."""

        async def body() -> None:
            store = self.store()
            await store.append("s", [])

            assert ((), ()) == (await store.read("s"), await store.read("t"))

        self.run(body())

    def test_an_append_that_fails_adds_nothing(self) -> None:
        """A call with something in it that is no message leaves the transcript as it was."""

        async def body() -> None:
            store, messages, wrong = self.store(), talk(3), [None]
            torn: list[Any] = [*messages[1:], *wrong]
            await store.append("s", messages[:1])
            with suppress(Exception):
                await store.append("s", torn)
            assert tuple(messages[:1]) == await store.read("s")

            await store.append("s", messages[1:])
            assert tuple(messages) == await store.read("s")

        self.run(body())

    def test_messages_of_any_content_come_back_equal(self) -> None:
        """NUL, lone surrogates, emoji, a million characters, calls, media, marks: all of it survives."""

        async def body() -> None:
            store, messages = self.store(), odd_entries()
            await store.append("s", messages)

            assert tuple(messages) == await store.read("s")

        self.run(body())

    def test_session_ids_of_any_characters_stay_apart(self) -> None:
        """What is appended under one id is read under that id, and under no other that looks like it."""

        async def body() -> None:
            store = self.store()
            for id_ in ODD_IDS:
                await store.append(id_, [entry(0, "user", f"to {id_}")])
            await store.clear(ODD_IDS[0])

            said = [[kept.message.text for kept in await store.read(id_)] for id_ in ODD_IDS]
            assert [[], *([f"to {id_}"] for id_ in ODD_IDS[1:])] == said

        self.run(body())

    def test_closed_messages_are_no_longer_there(self) -> None:
        """After a close the first messages stay, and the next one takes the place of the first that left."""

        async def body() -> None:
            store, messages = self.store(), talk(5)
            await store.append("s", messages)
            await store.cut("s", 3)
            assert tuple(messages[:3]) == await store.read("s")

            await store.append("s", [entry(3, "user", "instead")])
            assert (*messages[:3], entry(3, "user", "instead")) == await store.read("s")

            await store.cut("s", 0)
            assert () == await store.read("s")

        self.run(body())

    def test_closing_nothing_changes_nothing(self) -> None:
        """A close that keeps as many messages as there are, or more, leaves them."""

        async def body() -> None:
            store, messages = self.store(), talk(2)
            await store.append("s", messages)
            await store.cut("s", 2)
            await store.cut("s", 9)
            await store.cut("t", 0)

            assert tuple(messages) == await store.read("s")

        self.run(body())

    def test_cleared_messages_are_gone(self) -> None:
        """After a clear nothing is read, and the next message is the first."""

        async def body() -> None:
            store = self.store()
            await store.append("s", talk(3))
            await store.clear("s")
            await store.clear("t")
            assert () == await store.read("s")

            await store.append("s", [entry(0, "user", "again")])
            assert (entry(0, "user", "again"),) == await store.read("s")

        self.run(body())

    def test_threads_that_append_lose_nothing(self) -> None:
        """Of eight threads each message is there once, in the order of its thread, its call's beside each other."""
        store, rounds = self.store(), 12

        async def speak(who: int) -> None:
            for at in range(rounds):
                await store.append("s", [entry(0, "user", f"{who} {at} a"), entry(0, "assistant", f"{who} {at} b")])

        self.at_once(speak)

        kept = self.run(store.read("s"))
        said = [one.message.text.split() for one in kept]
        assert list(range(2 * THREADS * rounds)) == [one.seq for one in kept]
        assert [[*words[:2], "b"] for words in said[::2]] == said[1::2]
        for who in range(THREADS):
            assert [str(at) for at in range(rounds)] == [words[1] for words in said[::2] if words[0] == str(who)]
