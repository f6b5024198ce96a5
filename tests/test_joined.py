"""A transcript and records that are kept apart: what still holds, and what a host may do behind our back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from slidemem import ConfigurationError, ConversationMemory, SlideMem, from_openai, to_openai
from slidemem.check import violations
from slidemem.contract.base import talk
from slidemem.driver import drive
from slidemem.errors import SessionExists, UnknownReference
from slidemem.rewind import Reconciled
from slidemem.state import Entry, Record, Rewrite, Snapshot, Whole
from slidemem.stores.joined import JoinedStore
from slidemem.stores.memory import MemoryStore


class HostList:
    """A host's own history: OpenAI-format dicts in a Python list, by session; it keeps no branches."""

    def __init__(self, **lists: list[dict[str, Any]]) -> None:
        self.lists = lists
        self.read_messages = 0

    async def append(self, session: str, entries: Sequence[Entry]) -> None:
        """Add messages at the end."""
        self.lists.setdefault(session, []).extend(to_openai(entry.message) for entry in entries)

    async def read(self, session: str, start: int = 0, end: int | None = None) -> tuple[Entry, ...]:
        """The messages of a range, not counted yet."""
        listed = list(enumerate(self.lists.get(session, [])))[start:end]
        self.read_messages += len(listed)
        messages = [(seq, from_openai(data)) for seq, data in listed]
        return tuple(Entry(seq, message, message, 0, 0, 0.0, "") for seq, message in messages)

    async def cut(self, session: str, keep: int) -> None:
        """Take the newest messages out."""
        del self.lists.get(session, [])[keep:]

    async def clear(self, session: str) -> None:
        """Delete all."""
        self.lists.pop(session, None)


def words(text: str) -> int:
    """Words of a text."""
    return len(text.split())


def said(role: str, text: str, **fields: Any) -> dict[str, Any]:
    """A message of plain text."""
    return {"role": role, "content": text, **fields}


def turn(at: int) -> list[dict[str, Any]]:
    """A question and an answer of five words each, with a name and a number."""
    return [said(role, f"word word word Pune {at}") for role in ("user", "assistant")]


def memory(transcript: Any, records: Any = None, **options: Any) -> SlideMem:
    """A memory of 200 words over a transcript and records."""
    given = {"counter": words, "recall_share": 0, "archive_share": 0.4, "clock": lambda: 0.0, **options}
    return SlideMem(max_tokens=200, transcript=transcript, records=records, **given)


@pytest.fixture(params=["host list", "two stores"])
def transcript(request: pytest.FixtureRequest) -> Any:
    """A transcript of a host's, and one of ours."""
    return HostList() if request.param == "host list" else MemoryStore()


def filled(mem: SlideMem, turns: int = 30) -> ConversationMemory:
    """The session `s` with as many turns."""
    chat = mem.session("s")
    for at in range(turns):
        chat.append(turn(at))
    return chat


def whole(mem: SlideMem, session: str = "s") -> Whole:
    """Everything that is kept of a session."""
    return drive(mem.store.whole(session), "")


def snapshot(mem: SlideMem, session: str = "s") -> Snapshot:
    """What a read of the session sees."""
    return drive(mem.store.snapshot(session), "")


def check(mem: SlideMem, chat: ConversationMemory, messages: int) -> None:
    """All messages are there, each live or covered once, and a context is valid, within budget, with the newest."""
    seen, context = snapshot(mem), chat.context()
    edges = [
        0,
        *(edge for one in seen.record.archive.segments for edge in (one.start, one.end)),
        seen.record.boundary,
    ]
    users = [message.text for message in chat.transcript() if message.role == "user"]
    assert edges[0::2] == edges[1::2]
    assert list(range(seen.record.boundary, messages)) == [entry.seq for entry in seen.live]
    assert messages == len(chat.transcript())
    assert [] == violations(context.to_openai(), ignore=("alternation",))
    assert mem.count(context.messages) == context.tokens <= 200
    assert any(message.text.endswith(users[-1]) for message in context.messages)


# ------------------------------------------------------------------ the same as one store


def test_apart_or_together_a_conversation_is_the_same(transcript: Any) -> None:
    """Every context and every segment is what one store would have given."""
    apart, together = memory(transcript), memory(None, MemoryStore())
    one = SlideMem(
        max_tokens=200, counter=words, recall_share=0, archive_share=0.4, clock=lambda: 0.0, store=MemoryStore()
    )
    chats = [mem.session("s", metadata={"city": "Pune"}) for mem in (apart, together, one)]

    for at in range(60):
        for chat in chats:
            chat.append(turn(at))
        contexts = [chat.context().to_openai() for chat in chats]

        assert contexts[2] == contexts[0] == contexts[1], at
    assert chats[2].archive() == chats[0].archive() == chats[1].archive()
    assert snapshot(one).record.overhead_tokens == snapshot(apart).record.overhead_tokens
    check(apart, chats[0], 120)


def test_awaited_apart_a_conversation_is_the_same(transcript: Any) -> None:
    """The async twins work on a joined store too."""

    async def talk() -> ConversationMemory:
        chat = mem.session("s")
        for at in range(30):
            await chat.aappend(turn(at))
        await chat.arewind(-2)
        await chat.areconcile([*(await chat.acontext()).messages, said("user", "new")])
        return chat

    mem, sync = memory(transcript), memory(HostList())
    chat = asyncio.run(talk())
    other = filled(sync)
    other.rewind(-2)
    other.append(said("user", "new"))

    assert other.transcript() == chat.transcript()
    assert other.context() == chat.context()


def test_pins_and_metadata_are_the_records() -> None:
    """The host's list holds messages and nothing else; the rest is where the records are."""
    host, records = HostList(), MemoryStore()
    chat = memory(host, records).session("s", metadata={"city": "Pune"})
    chat.pin("vegan")
    chat.append(turn(0))

    again = memory(host, records).session("s")

    assert {"s": turn(0)} == host.lists
    assert (chat.context().head, ["vegan"]) == (again.context().head, [pin.text for pin in again.pins()])
    assert again.unpin("vegan")


@pytest.mark.parametrize("given", [{"transcript": HostList()}, {"records": MemoryStore()}])
def test_a_store_beside_a_transcript_is_refused(given: dict[str, Any]) -> None:
    """A store is both: it is given alone."""
    with pytest.raises(ConfigurationError, match="not both"):
        SlideMem(max_tokens=200, counter=words, store=MemoryStore(), **given)


@pytest.mark.parametrize("given", [{"transcript": object()}, {"records": 7}, {"transcript": HostList}])
def test_what_is_no_transcript_is_refused_when_the_memory_is_made(given: dict[str, Any]) -> None:
    """An object without a transcript's or a record's methods fails at once, as a store would."""
    with pytest.raises(ConfigurationError):
        SlideMem(max_tokens=200, counter=words, **given)


# ------------------------------------------------------------------ a list that was there before


def test_a_filled_list_is_live_as_it_is() -> None:
    """A history that a host kept before is shown at once, and consolidated by the next append."""
    host = HostList(s=[message for at in range(30) for message in turn(at)])
    mem = memory(host)
    chat = mem.session("s")

    before = chat.context()
    chat.append(turn(30))

    assert before.messages[-1].text.endswith("Pune 29")
    assert before.tokens <= 200
    assert len(chat.archive()) > 0
    check(mem, chat, 62)


def test_the_tokens_of_a_job_are_counted_where_the_host_has_none() -> None:
    """A span of messages that no counter of ours has seen tells what it takes."""
    mem = memory(HostList(s=[message for at in range(30) for message in turn(at)]), mode="manual")
    chat = mem.session("s")

    job, plan = chat.due(), chat.plan()

    assert job is not None
    assert (5 * job.end, 5 * job.end) == (job.tokens, plan.due_tokens)


def test_the_figures_count_what_was_consolidated() -> None:
    """`tokens_in` of the stats is the size of the spans, whoever kept the messages."""
    chat = filled(memory(HostList()))

    stats = chat.stats()

    assert 5 * stats.covered_messages == stats.tokens_in


def test_a_large_message_of_a_host_is_clamped_when_shown() -> None:
    """Though nobody clamped it when it was stored, a context keeps its budget and says so."""
    host = HostList(s=[said("user", "word " * 500 + "end"), said("assistant", "ok")])
    chat = memory(host).session("s")

    context = chat.context()

    assert context.tokens <= 200
    assert ("left out" in context.messages[0].text, True) == (True, context.messages[0].text.endswith("end"))


# ------------------------------------------------------------------ what is lost, or edited behind our back


def test_without_its_records_a_conversation_is_live_again(transcript: Any) -> None:
    """Records that were lost cost the archive, not one message."""
    mem = memory(transcript, MemoryStore())
    filled(mem)
    there = memory(transcript, MemoryStore())
    chat = there.session("s")

    lost = chat.archive()
    check(there, chat, 60)
    chat.append(turn(30))

    assert () == lost
    assert len(chat.archive()) > 0
    check(there, chat, 62)


def edited(host: HostList, at: int) -> None:
    """Change a message as a host may do without telling."""
    host.lists["s"][at] = {**host.lists["s"][at], "content": "edited by the host"}


def test_an_edit_at_the_boundary_makes_everything_live() -> None:
    """When the message at the boundary is another one, the record says nothing, and nothing is lost."""
    host = HostList()
    mem = memory(host)
    chat = filled(mem)
    boundary = snapshot(mem).record.boundary

    edited(host, boundary)

    assert ((), 0, 60) == (chat.archive(), snapshot(mem).record.boundary, len(snapshot(mem).live))
    check(mem, chat, 60)
    chat.append(turn(30))
    assert len(chat.archive()) > 0
    check(mem, chat, 62)


@pytest.mark.parametrize("shift", [-2, -1, 1, 2])
def test_a_list_that_moved_makes_everything_live(shift: int) -> None:
    """Messages put in or taken out before the boundary leave another one there."""
    host = HostList()
    mem = memory(host)
    chat = filled(mem)
    assert snapshot(mem).record.boundary > 4

    if shift < 0:
        del host.lists["s"][3 : 3 - shift]
    else:
        host.lists["s"][3:3] = [said("assistant", f"put in {at}") for at in range(shift)]

    assert ((), 60 + shift) == (chat.archive(), len(snapshot(mem).live))
    check(mem, chat, 60 + shift)


@pytest.mark.parametrize("length", [0, 1, 7, -1])
def test_a_list_cut_shorter_than_the_boundary_makes_the_rest_live(length: int) -> None:
    """What the host left is shown, an empty list too, and what is said next follows it."""
    host = HostList()
    mem = memory(host)
    chat = filled(mem)
    stays = length if length >= 0 else snapshot(mem).record.boundary - 1

    del host.lists["s"][stays:]

    assert ((), stays) == (chat.archive(), len(snapshot(mem).live))
    chat.append(turn(99))
    check(mem, chat, stays + 2)


def test_a_list_cut_at_the_boundary_is_archived_until_it_goes_on_otherwise() -> None:
    """With exactly the live messages gone the archive stands; another message in their place makes all live."""
    host, records = HostList(), MemoryStore()
    filled(memory(host, records))
    mem = memory(host, records, mode="manual")
    chat, before = mem.session("s"), snapshot(mem).record

    del host.lists["s"][before.boundary :]
    cut = snapshot(mem).record
    chat.append(said("user", "Something else"))

    assert before == cut
    assert (0, before.boundary + 1) == (snapshot(mem).record.boundary, len(snapshot(mem).live))
    check(mem, chat, before.boundary + 1)


def test_an_edit_in_the_live_part_is_shown() -> None:
    """The host's word counts: what it changed behind the boundary is what the next context shows."""
    host = HostList()
    mem = memory(host)
    chat = filled(mem)
    before = chat.archive()

    edited(host, 58)

    assert "edited by the host" == chat.context().messages[-2].text
    assert before == chat.archive()
    check(mem, chat, 60)


def test_work_in_flight_over_a_list_that_was_edited() -> None:
    """An edit that comes while a summary is written loses no message: what is wrong then is not believed."""

    def summarize(messages: list[dict[str, Any]]) -> str:
        del host.lists["s"][2:4]
        return "They spoke of Pune 0"

    host = HostList()
    mem = memory(host, consolidator=summarize)
    chat = mem.session("s")

    chat.append([message for at in range(20) for message in turn(at)])

    check(mem, chat, 38)


# ------------------------------------------------------------------ what a session can do


def test_a_rewind_changes_both(transcript: Any) -> None:
    """Messages leave the transcript, and the record keeps the archive before the place."""
    mem = memory(transcript)
    chat = filled(mem, 60)
    parts = chat.archive()

    left = chat.rewind(parts[1].end + 3)

    assert (120 - parts[1].end - 3, parts[:2]) == (len(left), chat.archive())
    check(mem, chat, parts[1].end + 3)
    chat.append(turn(99))
    check(mem, chat, parts[1].end + 5)


def test_a_rewind_to_nothing(transcript: Any) -> None:
    """Nothing is left of the conversation, and another one begins."""
    mem = memory(transcript)
    chat = filled(mem)

    chat.rewind(0)
    chat.append(turn(7))

    assert ((), 2) == (chat.archive(), len(chat.transcript()))
    check(mem, chat, 2)


def test_a_rewind_by_an_id_of_the_host() -> None:
    """Ids are the host's own, and an unknown one changes nothing."""
    host = HostList(s=[said("user", "a", id="1"), said("assistant", "b", id="2"), said("user", "c", id="3")])
    chat = memory(host).session("s")

    with pytest.raises(UnknownReference):
        chat.rewind("4")
    chat.rewind("2")

    assert [said("user", "a", id="1")] == host.lists["s"]


def test_branches_are_the_hosts() -> None:
    """A list that keeps none has none to tell."""
    chat = filled(memory(HostList()), 5)
    chat.rewind(2)

    assert () == chat.branches()


def test_pins_of_what_left_go(transcript: Any) -> None:
    """A pin taken from a message that left is taken out of the records."""
    chat = memory(transcript).session("s")
    chat.append([said("user", "Hello."), said("assistant", "Hi.")])
    chat.append([said("user", "Remember this: gate code 4471."), said("assistant", "Noted.")])
    for at in range(30):
        chat.append(turn(at))
    before = [pin.text for pin in chat.pins()]

    chat.rewind(2)

    assert (["gate code 4471."], ()) == (before, chat.pins())


def test_a_reconcile_changes_both(transcript: Any) -> None:
    """A context handed back changes nothing; an edit and what is new are taken over."""
    mem = memory(transcript)
    chat = filled(mem)
    before = whole(mem)

    same = chat.reconcile(chat.context().messages)
    after = whole(mem)
    grown = chat.reconcile([*chat.context().messages, said("user", "new")])
    edit = chat.reconcile([*[to_openai(one) for one in chat.transcript()[:10]], said("user", "edited")])

    assert (Reconciled(60, 0, 0), before) == (same, after)
    assert (Reconciled(60, 1, 0), Reconciled(10, 1, 51)) == (grown, edit)
    assert "edited" == chat.transcript()[-1].text
    check(mem, chat, 11)


def test_a_clear_deletes_both(transcript: Any) -> None:
    """Neither messages nor pins nor archive are left, and work in flight is dropped."""
    mem = memory(transcript, consolidator=None)
    chat = filled(mem)
    chat.pin("vegan")
    job = chat.due() or filled(mem, 20).due()
    revision = snapshot(mem).record.revision

    chat.clear()

    assert job is None or not chat.commit(job.run())
    assert ((), (), ()) == (chat.transcript(), chat.pins(), chat.archive())
    assert revision < snapshot(mem).record.revision
    chat.append(turn(1))
    check(mem, chat, 2)


def test_an_export_goes_both_ways(transcript: Any) -> None:
    """A joined session comes back in one store, and one store's in a joined one, its merged segments whole."""
    mem, target = memory(transcript), memory(HostList())
    one = SlideMem(max_tokens=200, counter=words, recall_share=0, archive_share=0.4, clock=lambda: 0.0)
    chat = filled(mem, 60)

    single = one.restore(chat.export())
    joined = target.restore(single.export())

    assert chat.transcript() == single.transcript() == joined.transcript()
    assert chat.archive() == single.archive() == joined.archive()
    assert chat.context().messages == single.context().messages == joined.context().messages
    merged = max(chat.archive(), key=lambda segment: segment.level)
    assert chat.explain(merged) == single.explain(merged) == joined.explain(merged)
    check(target, joined, 120)


def test_a_restore_takes_a_place_only_when_told_to(transcript: Any) -> None:
    """A joined session that holds messages is not overwritten; with replace=True nothing of it is left."""
    mem = memory(transcript)
    chat = filled(mem)
    chat.pin("old pin")
    one = SlideMem(max_tokens=200, counter=words, recall_share=0, archive_share=0.4)
    other = one.session("s", metadata={"city": "Pune"})
    other.append(turn(1))

    with pytest.raises(SessionExists):
        mem.restore(other.export())
    kept = len(chat.transcript())
    mem.restore(other.export(), replace=True)

    assert (60, 2, (), ()) == (kept, len(chat.transcript()), chat.pins(), chat.archive())
    check(mem, chat, 2)


def test_a_message_said_twice_with_its_id_is_exported_as_it_stands() -> None:
    """A transcript that holds a message twice, archived both times, comes back in one store with every message."""
    mem, one = memory(HostList()), SlideMem(max_tokens=200, counter=words, recall_share=0, archive_share=0.4)
    chat = mem.session("s")
    for first in (0, 30):
        chat.append([said("user", "hello", id="1"), said("assistant", "Hi.")])
        for at in range(first, first + 30):
            chat.append(turn(at))

    again = one.restore(chat.export())

    assert chat.transcript() == again.transcript()
    check(one, again, 124)


def test_a_message_with_an_id_that_is_live_is_not_stored_again(transcript: Any) -> None:
    """Handed over again with the same content it is the same message, in one call and in two."""
    chat = memory(transcript).session("s")
    chat.append([said("user", "hello", id="1"), said("user", "hello", id="1")])
    chat.append([said("user", "hello", id="1"), said("user", "hello again", id="1")])

    assert ["hello", "hello again"] == [message.text for message in chat.transcript()]


def test_who_owns_the_transcript_knows_its_sessions(transcript: Any) -> None:
    """A joined memory lists none."""
    mem = memory(transcript)
    filled(mem, 1)

    assert () == mem.sessions() == asyncio.run(mem.asessions())


def test_another_counter_over_a_hosts_list() -> None:
    """Two memories with two counters over one list keep each its own budget."""
    host, records = HostList(), MemoryStore()
    filled(memory(host, records))
    other = SlideMem(max_tokens=900, counter=len, transcript=host, records=records, recall_share=0)
    chat = other.session("s")

    before = chat.context()
    chat.append(turn(31))
    after = chat.context()

    assert (before.tokens, after.tokens) == (other.count(before.messages), other.count(after.messages))
    assert max(before.tokens, after.tokens) <= 900


def test_an_append_reads_what_is_live_and_no_more() -> None:
    """The cost of a call does not grow with what is archived."""
    host = HostList()
    chat = filled(memory(host, records := MemoryStore()), 400)
    host.read_messages = 0

    chat.append(turn(400))
    chat.context()

    live = 802 - drive(records.held("s"), "").record.boundary
    assert host.read_messages <= 8 * (live + 1)


# ------------------------------------------------------------------ who comes between


class Slower(MemoryStore):
    """Records that another worker changes before a commit of the test's choice."""

    armed = False

    async def commit(self, session: str, expected: int, change: Any) -> bool:
        """Apply a change, after the other one when its time has come."""
        if self.armed:
            self.armed = False
            await super().commit(session, expected, replace(change, record=Record(revision=expected + 1)))
        return await super().commit(session, expected, change)


@pytest.mark.parametrize("move", [lambda chat: chat.rewind(8), lambda chat: chat.consolidate(force=True)])
def test_a_lost_race_changes_nothing_or_is_made_again(move: Any) -> None:
    """A rewind is planned anew, and a consolidation is dropped, when the record moved on in between."""
    host, records = HostList(), Slower()
    mem = memory(host, records, mode="manual")
    chat = filled(mem, 5)
    records.armed = True

    done = move(chat)

    assert (2, 8) == (len(done), len(host.lists["s"])) if isinstance(done, tuple) else done is None
    check(mem, chat, len(host.lists["s"]))


def test_a_change_planned_on_another_state_is_refused(transcript: Any) -> None:
    """A rewrite and a restore that expect what is not so any more change nothing."""
    mem = memory(transcript)
    filled(mem, 5)
    before = whole(mem)

    for expected in ((7, 10), (0, 9)):
        assert drive(mem.store.rewrite("s", expected, Rewrite(None, 10)), "") is None
        assert not drive(mem.store.restore("s", expected, Whole()), "")

    assert before == whole(mem)


def test_a_joined_store_is_a_transcript_and_records_too(transcript: Any) -> None:
    """Each of its methods does what the home of its half does."""
    mem = memory(transcript)
    chat = filled(mem, 5)

    drive(mem.store.cut("s", 4), "")
    drive(mem.store.describe("s", [("city", "Pune")]), "")

    assert 4 == len(chat.transcript())
    assert "city: Pune" in chat.context().head
    assert (("city", "Pune"),) == drive(mem.store.held("s"), "").metadata


# ------------------------------------------------------------------ a crash between the two


class Crash(Exception):
    """The process ends here, as far as a test can tell."""


class CrashingList(HostList):
    """A list that fails at a method of its choice."""

    at = ""

    async def cut(self, session: str, keep: int) -> None:
        """Take the newest messages out, or crash."""
        if self.at == "cut":
            raise Crash
        await super().cut(session, keep)

    async def append(self, session: str, entries: Sequence[Entry]) -> None:
        """Add messages at the end, or crash."""
        if self.at == "append" and entries:
            raise Crash
        await super().append(session, entries)


class CrashingRecords(MemoryStore):
    """Records that fail when they are to be changed."""

    fails = False

    async def commit(self, session: str, expected: int, change: Any) -> bool:
        """Apply a change, or crash."""
        if self.fails:
            raise Crash
        return await super().commit(session, expected, change)


@pytest.mark.parametrize("place", [0, 7, 30, 45, 59])
def test_a_crash_between_record_and_transcript_keeps_every_message(place: int) -> None:
    """A rewind whose second half never came leaves the messages there, a valid context, and a session that works."""
    host, records = CrashingList(), MemoryStore()
    chat = filled(memory(host, records))
    before = chat.transcript()
    host.at = "cut"

    with pytest.raises(Crash):
        chat.rewind(place)
    host.at = ""
    mem = memory(host, records)
    again = mem.session("s")

    assert before == again.transcript()
    check(mem, again, 60)
    assert before[place:] == again.rewind(place)
    again.append(turn(99))
    check(mem, again, place + 2)


@pytest.mark.parametrize("step", ["cut", "append"])
@pytest.mark.parametrize("place", [5, 50])
def test_a_crash_inside_a_reconcile_keeps_every_message_that_was_to_stay(step: str, place: int) -> None:
    """Whichever half of an edit is missing, what it kept is there, and the host's next list puts it right."""
    host, records = CrashingList(), MemoryStore()
    chat = filled(memory(host, records))
    before = [to_openai(message) for message in chat.transcript()]
    given = [*before[:place], said("user", "edited")]
    host.at = step

    with pytest.raises(Crash):
        chat.reconcile(given)
    host.at = ""
    mem = memory(host, records)
    again = mem.session("s")

    assert before[:place] == [to_openai(message) for message in again.transcript()[:place]]
    check(mem, again, len(again.transcript()))
    again.reconcile(given)
    assert given == [to_openai(message) for message in again.transcript()]
    check(mem, again, place + 1)


def test_a_crash_of_the_records_keeps_the_transcript() -> None:
    """A rewind, and a commit, that the records refuse with an error change nothing of either."""
    host, records = HostList(), CrashingRecords()
    mem = memory(host, records, mode="manual")
    chat = filled(mem)
    before = whole(mem)
    records.fails = True

    for change in (lambda: chat.rewind(3), lambda: chat.consolidate(force=True)):
        with pytest.raises(Crash):
            change()

    records.fails = False
    assert before == whole(mem)
    assert chat.consolidate(force=True)
    check(mem, chat, 60)


def test_messages_are_picked_from_a_hosts_list() -> None:
    """Those at the places asked for, in order; none where none is asked for."""
    store = JoinedStore(HostList(), MemoryStore())
    drive(store.append("s", talk(5)), "append")

    assert [1, 3] == [entry.seq for entry in drive(store.pick("s", [3, 1, 9]), "pick")]
    assert () == drive(store.pick("s", []), "pick")
