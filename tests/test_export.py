"""A whole session as one JSON object, and back."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from slidemem import ConfigurationError, ConversationMemory, SlideMem
from slidemem.driver import drive
from slidemem.errors import InvalidExport, SessionExists, StoreError
from slidemem.state import Snapshot, Totals, Whole
from slidemem.stores.memory import MemoryStore

Edit = Callable[[dict[str, Any]], object]


def words(text: str) -> int:
    """Words of a text."""
    return len(text.split())


def turn(at: int) -> list[dict[str, Any]]:
    """A question and an answer of five words each, with a name and a number."""
    return [{"role": role, "content": f"word word word Pune {at}"} for role in ("user", "assistant")]


def memory(**options: Any) -> SlideMem:
    """A memory of 200 words."""
    given = {"counter": words, "recall_share": 0, "archive_share": 0.4, "clock": lambda: 5.0, **options}
    return SlideMem(max_tokens=200, **given)


def lived(mem: SlideMem) -> ConversationMemory:
    """The session `s` with all there is: system prompt, pins, metadata, merged segments, branches, live messages."""
    chat = mem.session("s", metadata={"city": "Pune", "floor": 3})
    chat.append([{"role": "system", "content": "be kind"}, {"role": "user", "content": "Remember this: code 4471."}])
    chat.append({"role": "assistant", "content": "lone \ud83d and nul \x00"})
    for at in range(60):
        chat.append(turn(at))
    chat.rewind(-2)
    chat.append({"role": "user", "content": "w " * 150, "id": "large"})
    chat.rewind("large")
    chat.append(turn(60))
    chat.pin("vegan")
    return chat


def whole(mem: SlideMem, session: str = "s") -> Whole:
    """Everything that is kept of a session."""
    return drive(mem.store.whole(session), "")


def snapshot(mem: SlideMem, session: str = "s") -> Snapshot:
    """What a read of the session sees."""
    return drive(mem.store.snapshot(session), "")


def but_revision(kept: Whole) -> Whole:
    """The same, with a revision that all have."""
    return replace(kept, record=replace(kept.record, revision=0))


# ------------------------------------------------------------------ out


def test_an_export_is_json_in_the_order_of_reading() -> None:
    """It is written and read by json as it is, and its keys stand as a person would read them."""
    exported = lived(memory()).export()

    again = json.loads(json.dumps(exported))

    assert exported == again
    assert ["schema", "session", "metadata", "pins", "record", "segments", "transcript", "branches"] == list(exported)
    assert ["seq", "message", "tokens", "whole_tokens", "at", "counter"] == list(exported["transcript"][0])
    assert (1, "s", {"city": "Pune", "floor": "3"}) == (exported["schema"], exported["session"], exported["metadata"])


def test_an_export_holds_everything() -> None:
    """Messages, both branches, pins with their sources, and the parts of merged segments are in it."""
    chat = lived(memory())

    exported = chat.export()

    assert [message.text for message in chat.transcript()] == [
        "\n".join(part[1] for part in one["message"]["parts"]) for one in exported["transcript"]
    ]
    assert [2, 1] == [len(branch["messages"]) for branch in exported["branches"]]
    assert [("code 4471.", 1), ("vegan", None)] == [(pin["text"], pin["source"]) for pin in exported["pins"]]
    kept = {segment["id"]: segment for segment in exported["segments"]}
    merged = [segment for segment in exported["record"]["archive"] if segment["children"]]
    assert merged
    assert [] == [id_ for segment in merged for id_ in segment["children"] if id_ not in kept]


def test_an_export_is_a_read() -> None:
    """It changes nothing, is the same again, and may be changed by who has it."""
    mem = memory()
    chat = lived(mem)
    before = whole(mem), snapshot(mem)

    exported = chat.export()
    exported["record"].clear()
    exported["transcript"].clear()

    assert before == (whole(mem), snapshot(mem))
    assert chat.export() == asyncio.run(chat.aexport())


def test_an_empty_session_is_exported_and_restored_too() -> None:
    """Nothing said, nothing in it, and it comes back as nothing."""
    exported = memory().session("s").export()

    chat = memory().restore(exported)

    assert ([], [], {}) == (exported["transcript"], exported["pins"], exported["metadata"])
    assert ((), ()) == (chat.transcript(), chat.archive())


# ------------------------------------------------------------------ and back


@pytest.mark.parametrize("store", [None, "sqlite://"], ids=["memory", "sqlite"])
@pytest.mark.parametrize("session", [None, "another"])
def test_a_session_comes_back_in_another_memory(store: str | None, session: str | None) -> None:
    """Restored under its own id or another, in this store or that, it holds and shows the same."""
    mem, other = memory(), memory(store=store)
    chat = lived(mem)

    again = other.restore(json.loads(json.dumps(chat.export())), session)

    id_ = session or "s"
    assert id_ == again.session_id
    assert but_revision(whole(mem)) == but_revision(whole(other, id_))
    assert snapshot(mem).totals == snapshot(other, id_).totals
    assert chat.context() == replace(again.context(), receipt=chat.context().receipt)
    assert (chat.pins(), chat.branches()) == (again.pins(), again.branches())


def test_a_restored_session_goes_on_as_the_first_one() -> None:
    """What is said after it leaves both with the same archive and the same live messages."""
    mem, other = memory(), memory()
    chat = lived(mem)
    again = other.restore(chat.export())

    for at in range(61, 100):
        chat.append(turn(at))
        again.append(turn(at))

    assert chat.context().messages == again.context().messages
    assert [one.text for one in chat.archive()] == [one.text for one in again.archive()]
    assert Totals.of(snapshot(other).record, snapshot(other).live, "") == snapshot(other).totals


def test_children_come_back() -> None:
    """A merged segment of a restored session is explained down to its messages, and rewound into its parts."""
    chat = lived(memory())
    merged = max(chat.archive(), key=lambda segment: segment.level)

    again = memory().restore(chat.export(), "t")
    explained, parts = again.explain(merged), chat.explain(merged)
    again.rewind(merged.end - 1)

    assert parts == explained
    assert [child.segment for child in parts.children[:-1]] == list(again.archive())


def test_a_copy_is_a_session_of_its_own() -> None:
    """What is said in the copy is not said in the first one."""
    mem = memory()
    chat = lived(mem)
    before = whole(mem)

    again = mem.restore(chat.export(), "copy")
    again.append(turn(99))
    again.rewind(3)

    assert before == whole(mem)


def test_an_awaited_restore_does_the_same() -> None:
    """The async twins export, restore and list what the sync methods do."""
    mem, other, third = memory(), memory(), memory()
    chat = lived(mem)

    async def talk() -> tuple[tuple[str, ...], bool]:
        again = await other.arestore(await chat.aexport(), "t")
        with pytest.raises(SessionExists):
            await other.arestore(await chat.aexport(), "t")
        await other.arestore(await chat.aexport(), "t", replace=True)
        return await other.asessions(), await again.atranscript() == await chat.atranscript()

    expected = asyncio.run(talk())
    third.restore(chat.export(), "t")

    assert (third.sessions(), True) == expected
    assert but_revision(whole(third, "t")) == but_revision(whole(other, "t"))


def test_what_is_restored_is_not_changed() -> None:
    """The object that was handed in is the same afterwards, and shares nothing with the session."""
    exported = lived(memory()).export()
    before = copy.deepcopy(exported)
    mem = memory()

    chat = mem.restore(exported)
    after = copy.deepcopy(exported)
    exported["metadata"]["city"] = "Delhi"
    exported["transcript"].clear()

    assert before == after
    assert "city: Pune" in chat.context().head


# ------------------------------------------------------------------ over another session


def test_a_session_that_holds_something_is_not_overwritten() -> None:
    """The error names the session and how much it holds, and nothing has changed."""
    mem = memory()
    exported = lived(mem).export()
    before = whole(mem)

    with pytest.raises(SessionExists, match=r"'s' holds 123 messages.*replace=True"):
        mem.restore(exported)

    assert before == whole(mem)


@pytest.mark.parametrize(
    "leave",
    [
        lambda chat: chat.append(turn(0)),
        lambda chat: chat.pin("vegan"),
        lambda chat: (chat.append(turn(0)), chat.rewind(0)),
    ],
    ids=["messages", "pin", "branch"],
)
def test_whatever_a_session_holds_is_kept(leave: Callable[[ConversationMemory], object]) -> None:
    """Messages, a pin, or a branch that a rewind closed: a session that is listed is not overwritten."""
    mem = memory()
    leave(mem.session("t"))
    before = whole(mem, "t")

    with pytest.raises(SessionExists):
        mem.restore(lived(memory()).export(), "t")

    assert (("t",), before) == (mem.sessions(), whole(mem, "t"))


def test_a_session_takes_the_place_of_another_when_told_to() -> None:
    """With replace=True nothing of the other one is left, and the revision goes beyond that of both."""
    mem, other = memory(), memory()
    exported = lived(mem).export()
    there = other.session("s", metadata={"old": "yes"})
    there.append([{"role": "user", "content": "old", "id": "x"}, *turn(7)])
    there.pin("old pin")
    there.rewind(1)
    revision = snapshot(other).record.revision

    again = other.restore(exported, replace=True)

    assert but_revision(whole(mem)) == but_revision(whole(other))
    assert max(revision, snapshot(mem).record.revision) < snapshot(other).record.revision
    assert "old" not in json.dumps(again.context().to_openai())


def test_a_cleared_session_may_be_restored() -> None:
    """After a clear the id is free."""
    mem = memory()
    chat = lived(mem)
    exported, before = chat.export(), whole(mem)
    chat.clear()

    mem.restore(exported)

    assert but_revision(before) == but_revision(whole(mem))


def test_a_message_that_comes_between_is_not_lost() -> None:
    """An append between the look at a session and the restore makes it one that holds something."""

    class Interfering(MemoryStore):
        armed = False

        async def restore(self, *args: Any) -> bool:
            if self.armed:
                self.armed = False
                memory(store=self).session("t").append(turn(9))
            return await super().restore(*args)

    store = Interfering()
    mem = memory(store=store)
    store.armed = True

    with pytest.raises(SessionExists):
        mem.restore(lived(memory()).export(), "t")

    assert 2 == len(mem.session("t").transcript())


def test_a_change_that_comes_between_is_seen() -> None:
    """A rewind between the look and the restore makes it look again; with replace=True the restore comes last."""

    class Interfering(MemoryStore):
        armed = False

        async def restore(self, *args: Any) -> bool:
            if self.armed:
                self.armed = False
                memory(store=self).session("t").rewind(0)
            return await super().restore(*args)

    store = Interfering()
    mem, other = memory(store=store), memory()
    chat = lived(other)
    mem.session("t").append(turn(1))
    store.armed = True

    mem.restore(chat.export(), "t", replace=True)

    assert but_revision(whole(other)) == but_revision(whole(mem, "t"))


# ------------------------------------------------------------------ what cannot be read


def put(*path: Any) -> Edit:
    """An edit that puts the last of its arguments where the others lead."""
    *way, key, value = path

    def edit(exported: dict[str, Any]) -> None:
        place: Any = exported
        for step in way:
            place = place[step]
        place[key] = value

    return edit


def drop(*path: Any) -> Edit:
    """An edit that takes out what its arguments lead to."""
    *way, key = path

    def edit(exported: dict[str, Any]) -> None:
        place: Any = exported
        for step in way:
            place = place[step]
        del place[key]

    return edit


MALFORMED: dict[str, Edit] = {
    "schema 2": put("schema", 2),
    "schema text": put("schema", "1"),
    "no schema": drop("schema"),
    "record schema 9": put("record", "schema", 9),
    **{f"no {key}": drop(key) for key in ("metadata", "pins", "record", "segments", "transcript", "branches")},
    **{f"{key} None": put(key, None) for key in ("metadata", "pins", "record", "segments", "transcript", "branches")},
    "metadata list": put("metadata", []),
    "record list": put("record", []),
    "no boundary": drop("record", "boundary"),
    "no archive": drop("record", "archive"),
    "boundary text": put("record", "boundary", "0"),
    "boundary None": put("record", "boundary", None),
    "boundary beyond": put("record", "boundary", 10**6),
    "boundary before the archive's end": put("record", "boundary", 3),
    "boundary without an archive": put("record", "archive", []),
    "overhead text": put("record", "overhead_tokens", "many"),
    "anchor a number": put("record", "anchor", 7),
    "archive gap": drop("record", "archive", 0),
    "archive gap inside": put("record", "archive", 1, "range", 0, 10**6),
    "range of one": put("record", "archive", 0, "range", [0]),
    "range text": put("record", "archive", 0, "range", 0, "0"),
    "archive text a number": put("record", "archive", 0, "text", 7),
    "archive tokens text": put("record", "archive", 0, "tokens", "many"),
    "archive dates short": put("record", "archive", 0, "dates", [1]),
    "message a number": put("transcript", 3, 7),
    "message None": put("transcript", 3, "message", None),
    "message without role": drop("transcript", -1, "message", "role"),
    "role unknown": put("transcript", -1, "message", "role", "alien"),
    "role a number": put("transcript", -1, "message", "role", 7),
    "parts a number": put("transcript", -1, "message", "parts", 7),
    "part text a number": put("transcript", -1, "message", "parts", [["text", 7, ""]]),
    "part kind unknown": put("transcript", -1, "message", "parts", [["alien", "x", ""]]),
    "part too long": put("transcript", -1, "message", "parts", [["text", "x", "", "y"]]),
    "message id a number": put("transcript", -1, "message", "id", 7),
    "seq gap": put("transcript", 3, "seq", 4),
    "seq missing": drop("transcript", 3),
    "seq text": put("transcript", 3, "seq", "3"),
    "no tokens": drop("transcript", 3, "tokens"),
    "tokens text": put("transcript", -1, "tokens", "many"),
    "tokens None": put("transcript", -1, "tokens", None),
    "at text": put("transcript", -1, "at", "yesterday"),
    "pin a list": put("pins", 0, []),
    "pin without text": drop("pins", 0, "text"),
    "pin text a number": put("pins", 0, "text", 7),
    "pin source text": put("pins", 0, "source", "1"),
    "branch a list": put("branches", 0, []),
    "branch messages None": put("branches", 0, "messages", None),
    "branch revision text": put("branches", 0, "revision", "1"),
    "segment a number": put("segments", 0, 7),
    "segment without id": drop("segments", 0, "id"),
    "segment id a number": put("segments", 0, "id", 7),
}


@pytest.mark.parametrize("edit", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_export_changes_nothing(edit: Edit) -> None:
    """Whatever is missing, of the wrong type or in no order is refused before anything is written."""
    mem = memory()
    mem.session("t").append(turn(1))
    exported = lived(memory()).export()
    edit(exported)
    before = whole(mem, "t"), mem.sessions()

    with pytest.raises(InvalidExport) as refused:
        mem.restore(exported, "t", replace=True)

    assert isinstance(refused.value, ValueError)
    assert before == (whole(mem, "t"), mem.sessions())


@pytest.mark.parametrize("given", [None, [], "text", 7, b"{}"])
def test_what_is_no_object_is_refused(given: Any) -> None:
    """An export is a JSON object, whether an id is given or not, sync or awaited."""
    mem = memory()

    for session in (None, "s"):
        with pytest.raises(InvalidExport):
            mem.restore(given, session)
        with pytest.raises(InvalidExport):
            asyncio.run(mem.arestore(given, session))

    assert () == mem.sessions()


@pytest.mark.parametrize("session", [None, 7, ["s"]])
def test_an_export_without_an_id_needs_one(session: Any) -> None:
    """Where the object does not name its session, the error says to pass an id, and with one it comes back."""
    exported = {**lived(memory()).export(), "session": session}
    mem = memory()

    with pytest.raises(InvalidExport, match="pass session_id"):
        mem.restore(exported)
    mem.restore(exported, "s")

    assert ("s",) == mem.sessions()


@pytest.mark.parametrize("session", ["", 7])
def test_a_wrong_id_to_restore_under_is_refused(session: Any) -> None:
    """The id that is passed is a session id like any other."""
    with pytest.raises(ConfigurationError, match="session id must be text"):
        memory().restore(lived(memory()).export(), session)


# ------------------------------------------------------------------ which sessions there are


def test_sessions_are_listed_in_the_order_in_which_they_began() -> None:
    """Who holds a message, a pin, metadata or a branch is listed; who was only read, or was cleared, is not."""
    mem = memory()
    for name in ("b", "a", "c"):
        mem.session(name).append(turn(1))
    mem.session("pinned").pin("vegan")
    mem.session("read").context()
    mem.session("read").due()
    mem.session("rewound").append(turn(1))
    mem.session("rewound").rewind(0)
    mem.session("a").append(turn(2))
    mem.session("c").clear()

    listed = mem.sessions()

    assert ("b", "a", "pinned", "rewound") == listed == asyncio.run(mem.asessions())


def test_an_export_without_the_parts_of_a_merged_segment_is_refused() -> None:
    """What a merged segment was made from has to be there, or it could not be explained or rewound."""
    exported = lived(memory()).export()
    exported["segments"] = [one for one in exported["segments"] if one["level"]]

    with pytest.raises(InvalidExport, match="was merged from others that are missing"):
        memory().restore(exported, "t")


FORGED: dict[str, Any] = {
    "its own child": lambda one, parts: one.update(children=[one["id"]]),
    "parts that do not meet": lambda one, parts: parts[1].update(
        range=[parts[1]["range"][0] + 1, parts[1]["range"][1]]
    ),
    "a part of nothing": lambda one, parts: parts[0].update(range=[parts[0]["range"][0]] * 2),
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED.keys())
def test_an_archive_that_is_not_made_of_its_parts_is_refused(forge: Any) -> None:
    """A merged segment covers what its parts cover, one after the other, and is none of them."""
    exported = lived(memory()).export()
    archived = {one["id"]: one for one in exported["segments"]}
    merged = next(one for one in exported["record"]["archive"] if one["children"])
    parts = [archived[id_] for id_ in merged["children"]]
    for one in (merged, archived[merged["id"]]):
        forge(one, parts)

    with pytest.raises(InvalidExport, match="are not what it covers"):
        memory().restore(exported, "t")


@pytest.mark.parametrize("field, value", [("raw", "{no json"), ("parts", [["image", "", "{no json"]])])
def test_a_message_that_could_not_be_sent_is_refused(field: str, value: Any) -> None:
    """What is no JSON where a host's own JSON belongs fails at the restore, and not when it is sent."""
    exported = lived(memory()).export()
    exported["transcript"][1]["message"][field] = value

    with pytest.raises(InvalidExport, match="cannot be read"):
        memory().restore(exported, "t")


def test_a_number_that_no_store_can_hold_is_the_stores_error() -> None:
    """SQLite holds 64 bits; more is told as its error, and nothing has changed."""
    exported = lived(memory()).export()
    exported["transcript"][1]["whole_tokens"] = 10**30
    mem = memory(store="sqlite://")

    with pytest.raises(StoreError, match="larger than any that is meant"):
        mem.restore(exported, "t")
    assert () == mem.session("t").transcript()


def test_what_an_export_says_of_tokens_is_counted_anew() -> None:
    """A message that claims to take less than it does cannot push a context over its budget."""
    exported = lived(memory()).export()
    for entry in exported["transcript"]:
        entry["shown"] = {**entry["message"], "parts": [["text", "word " * 90, ""]]}
        entry["tokens"] = 1

    context = memory().restore(exported, "t").context()

    assert sum(words(message.text) for message in context.messages) <= 200
