"""What a worker process does in the tests of many at once: speaks, notes what was acknowledged, and looks around."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from slidemem import SlideMem
from slidemem.driver import drive
from slidemem.errors import StoreBusy, StoreUnreachable
from slidemem.state import Snapshot, Whole
from slidemem.stores.base import Store
from slidemem.stores.postgres import PostgresStore
from slidemem.stores.redis import RedisStore
from slidemem.stores.sqlite import SQLiteStore
from slidemem.testing import violations

KINDS: dict[str, Any] = {"postgres": PostgresStore, "redis": RedisStore, "sqlite": SQLiteStore}
BUDGET = 200  # words
PATIENCE = 200  # tries of one call
Spec = tuple[str, str, dict[str, Any]]  # of a store: its kind, where it is, its options


def words(text: str) -> int:
    """Counts."""
    return len(text.split())


def opened(spec: Spec) -> Any:
    """The store that a spec names."""
    kind, where, options = spec
    return KINDS[kind](where, **options)


def memory(store: Store) -> SlideMem:
    """A memory that consolidates often."""
    return SlideMem(max_tokens=BUDGET, counter=words, store=store, recall_share=0)


def turn(session: str, who: int, at: int) -> list[dict[str, Any]]:
    """A turn that nobody else says, with ids, so that it may be sent again."""
    return [
        {"role": role, "id": f"{who}-{at}-{role}", "content": f"{session} {who} {at} {role} said" + " word" * 6}
        for role in ("user", "assistant")
    ]


def acknowledged(log: Path) -> int:
    """How many turns of a worker were acknowledged."""
    return len(log.read_text().split()) if log.exists() else 0


def speak(spec: Spec, who: int, session: str, rounds: int, log: Path) -> None:
    """Say turns one after the other, go on where an earlier process of this worker was, and check what is seen.

    Raises:
        AssertionError: a read has seen what must not be.
    """
    store = opened(spec)
    mem = memory(store)
    chat = mem.session(session, user_id=f"user of {session}")
    surely(lambda: chat.profile.set("home", session))
    with log.open("a") as file:
        for at in range(acknowledged(log), rounds):
            surely(partial(chat.append, turn(session, who, at)))
            file.write(f"{at}\n")
            file.flush()
            look(session, surely(lambda: drive(store.snapshot(session), "")))
            context = surely(chat.context)
            assert context.tokens <= BUDGET
            found = violations(context.to_openai())
            assert [] == found, (found, context.to_openai())
            assert {"home": session} == surely(chat.profile.all)
    store.close()


def surely(call: Any) -> Any:
    """What a call returns, made again as its errors say where a connection broke or others were in the way."""
    for _ in range(PATIENCE):
        with suppress(StoreBusy, StoreUnreachable):
            return call()
        time.sleep(0.05)
    return call()


def look(session: str, seen: Snapshot) -> None:
    """Check that every message of a snapshot is live or covered by one segment, and none is another session's."""
    edges = [(segment.start, segment.end) for segment in seen.record.archive.segments]
    covered = [seq for start, end in edges for seq in range(start, end)]
    assert list(range(seen.record.boundary)) == covered
    assert list(range(seen.record.boundary, seen.totals.next_seq)) == [entry.seq for entry in seen.live]
    assert {session} >= {entry.message.text.split()[0] for entry in seen.live}
    assert sum(entry.tokens for entry in seen.live) == seen.totals.live_tokens


def settled(whole: Whole, session: str, workers: Sequence[int], rounds: int) -> None:
    """Check that each turn is there once, whole and in its worker's order, and each span was archived once."""
    texts = [entry.message.text for entry in whole.entries]
    expected = {turn(session, who, at)[0]["content"] for who in workers for at in range(rounds)}
    assert sorted(expected) == sorted(texts[::2])
    assert [text.replace(" user ", " assistant ") for text in texts[::2]] == texts[1::2]
    for who in workers:
        assert list(range(rounds)) == [int(at) for _, by, at, *_ in map(str.split, texts[::2]) if int(by) == who]
    assert whole.record.boundary > 0
    spans = sorted((segment.start, segment.end) for segment in whole.segments if not segment.children)
    assert list(range(whole.record.boundary)) == [seq for start, end in spans for seq in range(start, end)]


def sessions_of(spec: Spec) -> Iterator[str]:
    """The sessions that a store lists, those of profiles left out."""
    store = opened(spec)
    yield from memory(store).sessions()
    store.close()
