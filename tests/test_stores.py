"""The contract of a store, run for each store that comes with slidemem, and against stores with a planted fault."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from slidemem.contract import RecordsContract, StoreContract
from slidemem.driver import drive
from slidemem.errors import AsyncOnly, StoreError
from slidemem.state import (
    Branch,
    Change,
    Entry,
    Held,
    Key,
    Lease,
    Pin,
    Record,
    Recount,
    Rewrite,
    Snapshot,
    Totals,
    Whole,
)
from slidemem.stores.base import Store
from slidemem.stores.memory import MemoryStore
from slidemem.stores.parsed import Latest, Parsed
from slidemem.stores.sqlite import SQLiteStore
from slidemem.stores.text import TextRecords

Metadata = Sequence[tuple[str, str]]


class TestMemoryStore(StoreContract):
    def store(self) -> Store:
        """A store in this process."""
        return MemoryStore()


class OneText:
    """A host that keeps one text for each session."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    async def load(self, session: str) -> str | None:
        """The text."""
        return self.texts.get(session)

    async def save(self, session: str, text: str) -> None:
        """Replace it."""
        self.texts[session] = text


class TestTextRecords(RecordsContract):
    """Records in the texts of a host."""

    def store(self) -> TextRecords:
        """An empty one."""
        return TextRecords(OneText())


class Slow:
    """A host with a face of its own for async callers, which suspends."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts

    def for_async(self) -> Slow:
        """Another object on the same texts."""
        return Slow(self.texts)

    async def load(self, session: str) -> str | None:
        """The text, in a while."""
        await asyncio.sleep(0)
        return self.texts.get(session)

    async def save(self, session: str, text: str) -> None:
        """Replace it, in a while."""
        await asyncio.sleep(0)
        self.texts[session] = text


def test_text_records_have_a_face_where_their_host_has_one() -> None:
    """One host without is the same for both; one with is awaited, and both read the same."""
    plain = TextRecords(OneText())
    slow = TextRecords(Slow({}))

    async def pinned() -> tuple[Pin, ...]:
        face = slow.for_async()
        await face.pin("s", Pin("p", "tea"))
        return (await face.held("s")).pins

    assert (True, False) == (plain.for_async() is plain, slow.for_async() is slow)
    assert (Pin("p", "tea"),) == asyncio.run(pinned())
    assert "TextRecords(Slow)" == repr(slow)


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "{}", '{"record": null}', "5"])
def test_a_text_that_holds_no_records_says_so(text: str) -> None:
    """Somebody else wrote it; the error says what to do, and it is not overwritten."""
    host = OneText()
    host.texts["s"] = text
    records = TextRecords(host)

    with pytest.raises(StoreError, match=r"the text of 's' holds no records.*delete the text"):
        drive(records.held("s"), "")
    with pytest.raises(StoreError, match="holds no records"):
        drive(records.pin("s", Pin("p", "tea")), "")

    assert {"s": text} == host.texts


class TestSQLiteInMemory(StoreContract):
    def store(self) -> Store:
        """A database in memory."""
        return SQLiteStore()


class TestSQLiteOnAFile(StoreContract):
    @pytest.fixture(autouse=True)
    def place(self, tmp_path: Path) -> Iterator[None]:
        """A folder for files, which are let go afterwards."""
        self.folder = tmp_path
        self.made: list[SQLiteStore] = []
        yield
        for store in self.made:
            store.close()

    def make(self) -> SQLiteStore:
        """A store on a new file."""
        self.made.append(SQLiteStore(self.folder / f"{len(self.made)}.db"))
        return self.made[-1]

    def store(self) -> Store:
        """A database on a file."""
        return self.make()


class TestSQLiteAwaited(TestSQLiteOnAFile):
    awaited = True

    def store(self) -> Store:
        """The face that async callers use."""
        return self.make().for_async()


def test_the_sessions_read_last_are_remembered() -> None:
    """What a session held is known by its id, whatever its epoch, until more have been read than are remembered."""
    latest = Latest(remember=2)
    for at, id_ in enumerate("abc"):
        latest.put(id_, Parsed(at, Record(at)))

    assert [None, Parsed(1, Record(1)), Parsed(2, Record(2))] == [latest.last(id_) for id_ in "abc"]
    assert [None, Parsed(2, Record(2))] == [latest.get("c", 1), latest.get("c", 2)]


# ---------------------------------------------------------------------- planted faults


class Adding(MemoryStore):
    """Keeps what is sent twice twice."""

    async def append(
        self, session: str, entries: Sequence[Entry], metadata: Metadata | None = None, user: str | None = None
    ) -> Totals:
        """Each message without its id, and then with it."""
        bare = [replace(entry, message=replace(entry.message, id=None)) for entry in entries]
        return await super().append(session, bare, metadata, user)


class Describing(MemoryStore):
    """Forgets the metadata of an append that brings none."""

    async def append(
        self, session: str, entries: Sequence[Entry], metadata: Metadata | None = None, user: str | None = None
    ) -> Totals:
        """Metadata are always replaced."""
        return await super().append(session, entries, metadata or (), user)


class Trimming(MemoryStore):
    """Takes ids that differ in their blanks for one."""

    async def read(self, session: str, start: int = 0, end: int | None = None) -> tuple[Entry, ...]:
        """The messages of a session of about that name."""
        return await super().read(session.strip(), start, end)


class Overwriting(MemoryStore):
    """Commits whatever the revision is."""

    async def commit(self, session: str, expected: int, change: Change) -> bool:
        """The latest writer wins."""
        return await super().commit(session, (await self.held(session)).record.revision, change)


class Tearing(MemoryStore):
    """Keeps pins of a commit that it refuses."""

    async def commit(self, session: str, expected: int, change: Change) -> bool:
        """The pins, and then perhaps the rest."""
        for pin in change.pins:
            await self.pin(session, pin)
        return await super().commit(session, expected, change)


class Leasing(MemoryStore):
    """Gives a lease to everybody."""

    async def claim(self, session: str, expected: int, lease: Lease, now: float) -> bool:
        """Whoever asks gets it, though somebody else has it."""
        return await super().claim(session, expected, lease, float("inf"))


class Releasing(MemoryStore):
    """Takes a lease from whoever has it."""

    async def release(self, session: str, holder: str) -> None:
        """It is gone, whose it was."""
        await super().claim(session, (await self.held(session)).record.revision, Lease("", 0.0), float("inf"))


class Reordering(MemoryStore):
    """Moves a pin that is replaced to the end."""

    async def pin(self, session: str, pin: Pin, user: str | None = None) -> None:
        """The old one goes, the new one comes."""
        await self.unpin(session, pin.id)
        await super().pin(session, pin, user)


class Counting(MemoryStore):
    """Stores counts that were made for another revision."""

    async def recount(self, session: str, expected: int, counts: Recount) -> None:
        """Whatever the revision is."""
        await super().recount(session, (await self.held(session)).record.revision, counts)


class Rewriting(MemoryStore):
    """Rewrites a session to which messages were appended meanwhile."""

    async def rewrite(
        self,
        session: str,
        expected: tuple[int, int],
        rewrite: Rewrite,
        metadata: Metadata | None = None,
        user: str | None = None,
    ) -> Totals | None:
        """Only the revision is looked at."""
        length = (await self.snapshot(session)).totals.next_seq
        return await super().rewrite(session, (expected[0], length), rewrite, metadata, user)


class Clinging(MemoryStore):
    """Keeps pins whose source is closed."""

    async def rewrite(
        self,
        session: str,
        expected: tuple[int, int],
        rewrite: Rewrite,
        metadata: Metadata | None = None,
        user: str | None = None,
    ) -> Totals | None:
        """Nothing is unpinned."""
        return await super().rewrite(session, expected, replace(rewrite, unpinned=()), metadata, user)


class Reviving(MemoryStore):
    """Begins a cleared session anew, so that what is in flight is applied to it."""

    async def clear(self, session: str) -> None:
        """The revision is forgotten too."""
        self._sessions.pop(session, None)


class Forgetting(MemoryStore):
    """Drops the branches of what it restores."""

    async def restore(self, session: str, expected: tuple[int, int], whole: Whole) -> bool:
        """All but those."""
        return await super().restore(session, expected, replace(whole, branches=()))


class Rewinding(MemoryStore):
    """Restores a session with the revision that it had."""

    async def restore(self, session: str, expected: tuple[int, int], whole: Whole) -> bool:
        """The record as it was."""
        done = await super().restore(session, expected, whole)
        now = (await self.snapshot(session)).record.revision
        return done and await super().commit(session, now, Change(whole.record))


class Listing(MemoryStore):
    """Lists sessions that hold nothing."""

    async def sessions(self, user: str | None = None) -> tuple[str, ...]:
        """Every id that was ever used."""
        return tuple(self._sessions)


class Lagging(MemoryStore):
    """Shows a session as it was at its latest change but one."""

    async def snapshot(self, session: str) -> Snapshot:
        """All but the newest live message."""
        snapshot = await super().snapshot(session)
        return replace(snapshot, live=snapshot.live[:-1])


class Blind(MemoryStore):
    """Says of each message that all of it is shown."""

    async def keys(self, session: str) -> tuple[Key, ...]:
        """The digest twice."""
        return tuple(key._replace(shown=key.digest) for key in await super().keys(session))


class Shuffling(MemoryStore):
    """Tells the newest branch first."""

    async def branches(self, session: str) -> tuple[Branch, ...]:
        """In the wrong order."""
        return (await super().branches(session))[::-1]


class Renewing(MemoryStore):
    """Forgets the revision of a record."""

    async def held(self, session: str) -> Held:
        """An empty record for one that has no segments."""
        held = await super().held(session)
        return held if held.record.archive.segments else replace(held, record=Record())


FAULTS: list[type[MemoryStore]] = [
    *(Adding, Describing, Trimming, Overwriting, Tearing, Leasing, Releasing, Reordering, Counting, Rewriting),
    *(Clinging, Reviving, Forgetting, Rewinding, Listing, Lagging, Blind, Shuffling, Renewing),
]


AT_RANDOM = "test_any_sequence_of_calls_gives_what_the_model_gives"
TESTS = [name for name in dir(StoreContract) if name.startswith("test_")]


def contract(make: Callable[[], Store], *, suspends: bool = False) -> StoreContract:
    """The contract of the stores that a function makes."""

    class Mine(StoreContract):
        awaited = suspends

        def store(self) -> Store:
            return make()

    return Mine()


def fails(make: Callable[[], Store], test: str) -> bool:
    """Whether a test of the contract notices that something is wrong."""
    try:
        getattr(contract(make), test)()
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize("fault", FAULTS)
def test_a_store_with_a_fault_fails_the_contract(fault: type[MemoryStore]) -> None:
    """For each promise there is a test, besides the calls at random, that notices when it is broken."""
    assert any(fails(fault, test) for test in TESTS if test != AT_RANDOM)


def test_calls_at_random_tell_where_a_store_differs() -> None:
    """Where they go another way than the model, the error names seed, call and arguments."""
    with pytest.raises(AssertionError, match=r"seed 0, call \d+, of '.*': \('rewrite', "):
        getattr(contract(Clinging), AT_RANDOM)()


def test_a_store_that_suspends_is_awaited() -> None:
    """The contract says so to one that is not, and passes once it is."""

    class Suspending(MemoryStore):
        async def read(self, session: str, start: int = 0, end: int | None = None) -> tuple[Entry, ...]:
            await asyncio.sleep(0)
            return await super().read(session, start, end)

    with pytest.raises(AsyncOnly, match="awaited = True"):
        contract(Suspending).test_messages_come_back_in_order()
    contract(Suspending, suspends=True).test_messages_come_back_in_order()
    contract(Suspending, suspends=True).test_threads_that_append_lose_nothing()
