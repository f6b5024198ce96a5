"""Decides how a test of the contract reaches a store, and what messages and segments it keeps there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any, Final, TypeVar

from slidemem.archive import Retention, Segment
from slidemem.driver import drive
from slidemem.messages import Mark, Message, Part, Role, ToolCall
from slidemem.state import Change, Entry, Kept, Pin, Record, Rewrite
from slidemem.stores.base import Store

T = TypeVar("T")

THREADS: Final = 8

ODD_TEXTS: Final = (
    "",
    "nul \0 in the middle",
    "a lone surrogate \ud83d and the other \ude00",
    "emoji \U0001f680, e\u0301, \u0939\u093f\u0928\u094d\u0926\u0940, \u200b\u2028\u202e",
    "quotes ' \" ` \\ % _ ; -- /* */ $1 {} :x",
    '{"json": [null]}',
    "\r\n\t\x01\x7f",
    "huge " * 200_000,
)
ODD_IDS: Final = (
    "s",
    "S",
    "s ",
    "s\0",
    "s\0s",
    "'; DROP TABLE sessions; --",
    "%",
    "_",
    "*",
    "s:s",
    "s/../s",
    "{s}",
    "\ud83d",
    "\ude00",
    "\U0001f680",
    "e\u0301",
    "\u00e9",
    "\n",
    "1",
    "s" * 2000,
)


class Contract:
    """Runs the bodies of tests: as they are, or awaited in an event loop.

    Attributes:
        awaited: set it to True for a store that suspends: each test then runs in an event loop of its own.
    """

    awaited = False

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """What a call returns."""
        return asyncio.run(call) if self.awaited else drive(call, "asyncio.run (set awaited = True)")

    def at_once(self, call: Callable[[int], Coroutine[Any, Any, T]]) -> list[T]:
        """What a call returns to each of eight threads that make it at the same time."""
        start = Barrier(THREADS)

        def one(who: int) -> T:
            start.wait()
            return self.run(call(who))

        with ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(one, range(THREADS)))


def entry(seq: int, role: Role, text: str, *, id_: str | None = None, shown: str | None = None) -> Entry:
    """A message of a transcript; its tokens are the words that are shown, its counter is `words`.

    Args:
        seq: its place.
        role: whose it is.
        text: what it says.
        id_: the host's id.
        shown: what contexts show of it; None for all of it.
    """
    message = Message(role, (Part("text", text),), id=id_)
    kept = message if shown is None else Message(role, (Part("text", shown),), id=id_, mark=Mark(("clamp",)))
    return Entry(seq, message, kept, len(kept.text.split()), len(text.split()), 1_700_000_000.25 + seq, "words")


def talk(count: int) -> list[Entry]:
    """A conversation: user and assistant in turn, each message of another length."""
    roles: tuple[Role, Role] = ("user", "assistant")
    return [entry(seq, roles[seq % 2], f"message {seq}" + " word" * (seq % 5)) for seq in range(count)]


def odd_entries() -> list[Entry]:
    """Messages with everything in them that a message can hold."""
    call = ToolCall("c\0\ud83d", "look \U0001f680", '{"at": "\\u0000"}')
    whole = Message(
        "assistant",
        (Part("text", "said"), Part("image", "", '{"type": "image"}'), Part("reasoning", "so \ud83d")),
        (call, ToolCall("", "free", "not json {", custom=True)),
        name="n\0",
        id="id \ud83d '",
        time="2026-01-02T03:04:05+05:30",
        raw='{"content": "\\ud83d"}',
    )
    answer = Message("tool", (), tool_call_id="", name="", id="", raw="")
    shown = Message("tool", (Part("text", ""),), mark=Mark(("mended", "clamp"), ("0" * 32,)))
    texts = [entry(seq, "user", text, id_=text[:40]) for seq, text in enumerate(ODD_TEXTS)]
    at = len(texts)
    return [*texts, Entry(at, whole, whole, 3, 3, 0.1, "\ud83d"), Entry(at + 1, answer, shown, 0, 7, 1e12, "c'")]


def segment(start: int, end: int, text: str = "- user: Pune", children: Sequence[str] = ()) -> Segment:
    """A segment of an archive; its tokens are its words."""
    return Segment(
        id=f"{start}-{end}",
        start=start,
        end=end,
        level=1 if children else 0,
        text=text,
        tokens=len(text.split()),
        method="extractive",
        retention=Retention(found=2, kept=1),
        children=tuple(children),
        first_at=1_700_000_000.25 + start,
        last_at=1_700_000_000.25 + end,
    )


def covering(end: int, live: tuple[Entry, ...], record: Record) -> Change:
    """A change that moves the boundary of a record to a place."""
    kept = segment(record.boundary, end)
    moved = replace(
        record,
        revision=record.revision + 1,
        boundary=end,
        archive=record.archive.appended(kept),
        anchor=Kept(record.boundary, live[0].shown, 5, "words"),
        overhead_tokens=10 * end,
    )
    return Change(moved, live[: end - record.boundary], (kept,))


async def full(store: Store, session: str) -> None:
    """Give a session something of everything: archive, live messages, branches, pins, metadata."""
    await store.append(session, talk(6), [("zone", "IST"), ("n", "\ud83d")])
    snapshot = await store.snapshot(session)
    await store.commit(session, 0, covering(3, snapshot.live, snapshot.record))
    record = (await store.held(session)).record
    for text in ("instead", "at last"):
        record = replace(record, revision=record.revision + 1)
        rewrite = Rewrite(record, 4, (entry(4, "user", text, id_="m", shown="cut"),))
        await store.rewrite(session, (record.revision - 1, (await store.snapshot(session)).totals.next_seq), rewrite)
    for pin in (Pin("b", "tea", 2), Pin("a", "no nuts")):
        await store.pin(session, pin)
