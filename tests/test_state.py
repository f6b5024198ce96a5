"""The state of a session, as JSON and back, and who may work on it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from slidemem import SlideMem
from slidemem.driver import drive
from slidemem.state import SCHEMA, Entry, Lease, Record, Snapshot
from slidemem.stores.memory import MemoryStore


def busy() -> tuple[MemoryStore, Snapshot]:
    """A session with everything in it: system prompt, cut turn, clamped and mended messages, merged segments."""
    store = MemoryStore()
    mem = SlideMem(
        max_tokens=120,
        counter=lambda text: len(text.split()),
        store=store,
        recall_share=0,
        archive_share=0.4,
        clock=lambda: 7.0,
    )
    chat = mem.session("s")
    chat.append([{"role": "system", "content": "be kind"}, {"role": "user", "content": "Pune 7 \ud83d " + "w " * 90}])
    for at in range(120):
        call: dict[str, Any] = {
            "id": f"c{at}",
            "type": "function",
            "function": {"name": "look", "arguments": f'{{"at": {at}}}'},
        }
        chat.append(
            [
                {"role": "assistant", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"c{at}", "content": f"PNR-{at}"},
            ]
        )
    return store, drive(store.snapshot("s"), "")


def test_a_record_comes_back_from_its_json() -> None:
    """A record with system prompt, anchor, first message and segments survives a trip through JSON text."""
    _, snapshot = busy()

    stored = json.loads(json.dumps(snapshot.record.to_json()))

    assert snapshot.record.anchor is not None
    assert (SCHEMA, snapshot.record) == (stored["schema"], Record.from_json(stored))


def test_an_empty_record_comes_back() -> None:
    """So does one of a session in which nothing was consolidated."""
    assert Record() == Record.from_json(Record().to_json())


def test_entries_come_back_from_their_json() -> None:
    """Messages as they came, and as they are shown, survive too."""
    store, _ = busy()
    entries = drive(store.read("s"), "")

    stored = json.loads(json.dumps([entry.to_json() for entry in entries]))

    assert entries == tuple(Entry.from_json(entry) for entry in stored)
    assert ("shown" in stored[1], "shown" in stored[2]) == (True, False)


def test_the_children_of_merged_segments_are_kept() -> None:
    """Every segment that went into a merged one can be read by its id."""
    store, snapshot = busy()
    parents = [segment for segment in snapshot.record.archive.segments if segment.children]

    children = [drive(store.segment("s", id_), "") for parent in parents for id_ in parent.children]

    assert parents
    assert None not in children
    assert drive(store.segment("nobody", "x"), "") is None


def test_a_lease_keeps_others_out_while_it_lasts() -> None:
    """Not its holder, not once it has ended, and not where a clock ran far ahead when it was taken."""
    mine, yours = Lease("me", 310.0), Lease("you", 400.0)

    assert [True, False, False] == [
        mine.keeps_out(yours, 100.0),
        mine.keeps_out(replace(yours, holder="me"), 100.0),
        mine.keeps_out(yours, 310.0),
    ]
    assert not Lease("me", 5_000.0).keeps_out(yours, 100.0)
