"""Decides what a store must know of the words of its messages: what is found is there, and others do not count."""

# ruff: noqa: S101, SIM300, PLR2004  # tests assert, and write what they expect where they expect it, first

from __future__ import annotations

from dataclasses import replace

from slidemem.contract.base import entry
from slidemem.contract.rewrites import RewritesContract
from slidemem.post import Post
from slidemem.recall import Document, Matches, Posting
from slidemem.state import Entry, Record, Rewrite, Whole
from slidemem.terms import Terms


def posted(seq: int, words: str, speaker: str = "") -> Entry:
    """A message that is found by each of its words, as often as it has it."""
    counts = {word: words.split().count(word) for word in words.split()}
    post = Post(Terms(counts, len(words.split())), 100.5 + seq, speaker)
    return replace(entry(seq, "user", words), post=post)


class PostingsContract(RewritesContract):
    """The tests of `Postings`, and of picking messages."""

    def test_terms_are_found_where_they_were_said(self) -> None:
        """Each term comes with its messages in order, how often each holds it, and how many do."""

        async def body() -> None:
            store = self.store()
            await store.append("s", [posted(0, "tea tea milk", "ann"), posted(1, "milk"), posted(2, "tea")])

            expected = Matches(
                messages=3,
                length=5,
                frequency={"tea": 2, "milk": 2, "rum": 0},
                postings={"tea": (Posting(0, 2), Posting(2, 1)), "milk": (Posting(0, 1), Posting(1, 1)), "rum": ()},
            )
            assert expected == await store.matching("s", ["tea", "milk", "rum", "tea"], 3)
            assert expected == await store.matching("s", ["tea", "milk", "rum"], 2**62)
            known = {0: Document(3, 100.5, "ann"), 2: Document(1, 102.5, "")}
            assert known == dict(await store.documents("s", [2, 0, 9, -1]))
            assert ({}, {}) == (dict(await store.documents("s", [])), dict(await store.documents("nobody", [0])))

        self.run(body())

    def test_what_came_later_counts_for_nothing(self) -> None:
        """Sums, frequencies and places are of the messages before the asked one alone."""

        async def body() -> None:
            store = self.store()
            before = [posted(seq, f"tea word{seq}") for seq in range(4)]
            await store.append("s", before)
            expected = await store.matching("s", ["tea", "word9"], 4)
            await store.append("s", [posted(seq, "tea word9") for seq in range(4, 9)])

            assert expected == await store.matching("s", ["tea", "word9"], 4)
            assert Matches(0, 0, {"tea": 0}, {"tea": ()}) == await store.matching("s", ["tea"], 0)

        self.run(body())

    def test_a_search_reads_no_more_than_it_may(self) -> None:
        """The rarest terms are read whole, the first that does not fit from its newest end, the rest not at all."""

        async def body() -> None:
            store = self.store()
            words = [" ".join(("all", *(["half"] * (seq % 2)), *(["two"] * (seq > 7)))) for seq in range(10)]
            await store.append("s", [posted(seq, text) for seq, text in enumerate(words)])
            found = await store.matching("s", ["all", "half", "two"], 10, most=5)

            assert {"all": 10, "half": 5, "two": 2} == found.frequency
            assert [8, 9] == [posting.seq for posting in found.postings["two"]]
            assert [5, 7, 9] == [posting.seq for posting in found.postings["half"]]
            assert () == found.postings["all"]

        self.run(body())

    def test_other_sessions_count_for_nothing(self) -> None:
        """Whatever they say, a session is found as if it were alone."""

        async def body() -> None:
            store, alone = self.store(), self.store()
            for one in (store, alone):
                await one.append("s", [posted(0, "tea"), posted(1, "milk")])
            await store.append("S", [posted(seq, "tea " * 9) for seq in range(30)])

            assert await alone.matching("s", ["tea", "milk"], 9) == await store.matching("s", ["tea", "milk"], 9)
            assert Matches(0, 0, {"tea": 0}, {"tea": ()}) == await store.matching("nobody", ["tea"], 9)

        self.run(body())

    def test_what_a_rewind_takes_out_is_not_found(self) -> None:
        """The postings of closed messages are gone, and those of what takes their place are there."""

        async def body() -> None:
            store, alone = self.store(), self.store()
            await store.append("s", [posted(0, "tea"), posted(1, "milk rum"), posted(2, "rum")])
            await store.rewrite("s", (0, 3), Rewrite(Record(1), 1, (posted(1, "milk"),)))
            await alone.append("s", [posted(0, "tea"), posted(1, "milk")])

            terms = ["tea", "milk", "rum"]
            assert await alone.matching("s", terms, 9) == await store.matching("s", terms, 9)
            await store.cut("s", 1)
            assert 0 == (await store.matching("s", terms, 9)).frequency["milk"]

        self.run(body())

    def test_what_is_cleared_is_not_found(self) -> None:
        """A cleared session has no postings, and new ones once it goes on."""

        async def body() -> None:
            store = self.store()
            await store.append("s", [posted(0, "tea"), posted(1, "milk")])
            await store.clear("s")
            assert Matches(0, 0, {"tea": 0}, {"tea": ()}) == await store.matching("s", ["tea"], 9)

            await store.append("s", [posted(0, "tea")])
            assert Matches(1, 1, {"tea": 1}, {"tea": (Posting(0, 1),)}) == await store.matching("s", ["tea"], 9)

        self.run(body())

    def test_what_is_restored_is_found(self) -> None:
        """A restored session has the postings that came with its messages, and no others."""

        async def body() -> None:
            store, alone = self.store(), self.store()
            await store.append("s", [posted(0, "rum"), posted(1, "rum")])
            await store.restore("s", (0, 2), Whole(entries=(posted(0, "tea milk"),)))
            await alone.append("s", [posted(0, "tea milk")])

            terms = ["tea", "rum"]
            assert await alone.matching("s", terms, 9) == await store.matching("s", terms, 9)

        self.run(body())

    def test_a_message_sent_twice_is_found_once(self) -> None:
        """What an append leaves out leaves no postings."""

        async def body() -> None:
            store = self.store()
            said = posted(0, "tea")
            named = replace(said, message=replace(said.message, id="1"), shown=replace(said.shown, id="1"))
            await store.append("s", [named, named])
            await store.append("s", [named])

            found = await store.matching("s", ["tea"], 9)
            assert (1, (Posting(0, 1),)) == (found.messages, found.postings["tea"])

        self.run(body())

    def test_messages_are_picked_by_their_places(self) -> None:
        """Each once and in order; a place where nothing is gives nothing."""

        async def body() -> None:
            store = self.store()
            await store.append("s", [posted(seq, f"word{seq}") for seq in range(5)])

            picked = await store.pick("s", [3, 1, 3, 7, -1])
            assert ["word1", "word3"] == [one.message.text for one in picked]
            assert ((), ()) == (await store.pick("s", []), await store.pick("nobody", [0]))
            assert [None, None] == [one.post for one in picked]

        self.run(body())
