"""Measures stores on servers: appends beside bare inserts, long sessions beside short ones, and what others take.

    python benchmarks/stores.py [--quick]

A time is never judged by itself: two things are timed in one run, and their ratio is the figure. It needs the servers
of the tests (CONTRIBUTING.md), and measures beside the chat histories of langchain-community, langchain-postgres
and llama-index where they are installed. Exits 1 when a figure that the design guarantees is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from figures import Figure, Wanted, judged, printed
from speech import Writer

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "servers"))

import psycopg
import redis
from sv_places import POSTGRES, REDIS, emptied_postgres, emptied_redis, reached
from sv_proxy import proxied

from slidemem import SlideMem
from slidemem.contract import entry
from slidemem.driver import drive
from slidemem.post import post_of
from slidemem.state import Change, Entry
from slidemem.stores import wire
from slidemem.stores.postgres import PostgresStore
from slidemem.stores.redis import RedisStore

PREFIX: Final = "bench"
PROCESSES: Final = 8
BUDGET: Final = 2_000


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    appends: int  # of each process
    few: int  # messages of the short session
    many: int  # of the long one
    turns: int  # timed in each
    beside: int  # messages of a session that others keep too


FULL: Final = Sizes(150, 1_000, 100_000, 40, 10_000)
QUICK: Final = Sizes(30, 1_000, 10_000, 15, 2_000)


def said(writer: Writer, count: int) -> list[Entry]:
    """Messages with what they are found by, and no ids."""
    made = [entry(at, ("user", "assistant")[at % 2], writer.prose(20)) for at in range(count)]
    return [replace(one, post=post_of(one.message, one.at)) for one in made]


def opened(name: str, url: str = "") -> Any:
    """A store on a server."""
    return (
        PostgresStore(url or POSTGRES, prefix=PREFIX)
        if name == "postgres"
        else RedisStore(url or REDIS, prefix=PREFIX)
    )


def emptied(name: str) -> None:
    """Delete what earlier runs have left."""
    (emptied_postgres if name == "postgres" else emptied_redis)(PREFIX)
    drive(opened(name).sessions(), "")


# ------------------------------------------------------------------ 1. appends beside bare inserts


def ours(name: str, who: int, entries: Sequence[Entry], start: Any) -> None:
    """Append two messages at a time."""
    store = opened(name)
    drive(store.append(f"s{who}", []), "")
    start.wait()
    for at in range(0, len(entries), 2):
        drive(store.append(f"s{who}", entries[at : at + 2]), "")
    store.close()


BARE: Final = f"""
WITH m AS (INSERT INTO {PREFIX}.messages SELECT %(n)s, 0, seq, NULL, 'null', digest, role, digest, 20, '"words"', body
        FROM unnest(%(seqs)s::bigint[], %(digests)s::text[], %(roles)s::text[], %(bodies)s::json[])
            AS u(seq, digest, role, body)),
    d AS (INSERT INTO {PREFIX}.documents SELECT %(n)s, seq, doc, terms, 20
        FROM unnest(%(seqs)s::bigint[], %(docs)s::json[], %(terms)s::jsonb[]) AS u(seq, doc, terms)),
    p AS (INSERT INTO {PREFIX}.postings SELECT %(n)s, term, seq, count, 1
        FROM unnest(%(said)s::text[], %(places)s::bigint[], %(counts)s::int[]) AS u(term, seq, count))
UPDATE {PREFIX}.sessions SET next_seq = next_seq + 2 WHERE n = %(n)s
"""


def bare_postgres(who: int, entries: Sequence[Entry], start: Any) -> None:
    """Insert the same rows, two messages in one statement and one transaction."""
    with psycopg.connect(POSTGRES, autocommit=True) as db:
        n = 1_000_000 + who
        db.execute(
            f"INSERT INTO {PREFIX}.sessions(n, key, epoch) OVERRIDING SYSTEM VALUE VALUES (%s, %s, 1)", (n, str(n))
        )
        start.wait()
        for at in range(0, len(entries), 2):
            rows = wire.entries_sent(entries[at : at + 2])
            words = [
                (term, at + i, count)
                for i, row in enumerate(rows)
                for term, count in zip(row[11], row[12], strict=True)
            ]
            columns: dict[str, Any] = {
                "n": n,
                "seqs": [at, at + 1],
                "digests": [row[3] for row in rows],
                "roles": [row[4] for row in rows],
                "bodies": [row[8] for row in rows],
                "docs": [row[9] for row in rows],
                "terms": [json.dumps(row[11]) for row in rows],
                "said": [term for term, _, _ in words],
                "places": [seq for _, seq, _ in words],
                "counts": [count for _, _, count in words],
            }
            db.execute(BARE, columns)


def bare_redis(who: int, entries: Sequence[Entry], start: Any) -> None:
    """Set the same fields and members, two messages in one transaction."""
    client, key = redis.Redis.from_url(REDIS), f"{PREFIX}:bare{who}"
    client.ping()
    start.wait()
    for at in range(0, len(entries), 2):
        pipe = client.pipeline()
        for i, row in enumerate(wire.entries_sent(entries[at : at + 2])):
            seq = at + i
            pipe.hset(
                f"{key}:messages",
                str(seq),
                "\n".join([str(row[6]), row[7], row[4], row[3], row[5], "", row[2], row[8]]),
            )
            pipe.hset(f"{key}:documents", str(seq), f"{seq}\n{row[9]}\n{json.dumps(row[11])}")
            pipe.zadd(
                f"{key}:postings", {f"{len(t)}:{t}{seq:010}{c}": 0 for t, c in zip(row[11], row[12], strict=True)}
            )
        pipe.hset(f"{key}:head", mapping={"next_seq": at, "live_tokens": at})
        pipe.execute()
    client.close()


def paced(work: Callable[..., None], sizes: Sizes) -> float:
    """Appends per second of all processes together."""
    context = multiprocessing.get_context("fork")
    start = context.Barrier(PROCESSES + 1)
    entries = [said(Writer(who), 2 * sizes.appends) for who in range(PROCESSES)]
    processes = [context.Process(target=work, args=(who, entries[who], start)) for who in range(PROCESSES)]
    for process in processes:
        process.start()
    start.wait()
    begun = time.perf_counter()
    for process in processes:
        process.join()
    taken = time.perf_counter() - begun
    assert all(process.exitcode == 0 for process in processes)
    return PROCESSES * sizes.appends / taken


def appends(name: str, sizes: Sizes) -> Iterator[Figure]:
    """Appends of the store over bare inserts of the same rows, in turn."""
    ratios: list[float] = []
    for _ in range(3):
        emptied(name)
        mine = paced(partial(ours, name), sizes)
        emptied(name)
        ratios.append(mine / paced(bare_postgres if name == "postgres" else bare_redis, sizes))
    wanted = Wanted("at least", 0.5)
    yield Figure(f"{name}: appends/s of {PROCESSES} processes over bare inserts", statistics.median(ratios), wanted)


# ------------------------------------------------------------------ 2. long sessions beside short ones


def filled(store: Any, session: str, messages: int) -> None:
    """A session of so many messages, all but the last twenty archived."""
    writer = Writer(messages)
    for first in range(0, messages, 500):
        drive(store.append(session, said(writer, min(500, messages - first))), "")
    now = drive(store.snapshot(session), "")
    record = replace(now.record, revision=1, boundary=messages - 20)
    assert drive(store.commit(session, 0, Change(record, now.live[:-20])), "")


def turn(mem: SlideMem, session: str, at: int) -> None:
    """What is said, and what to send then."""
    chat = mem.session(session)
    chat.append(
        [{"role": "user", "content": f"Where is parcel {at}?"}, {"role": "assistant", "content": "On its way."}]
    )
    chat.context()


def timed(action: Callable[[], object]) -> float:
    """Seconds."""
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun


def lengths(name: str, sizes: Sizes) -> Iterator[Figure]:
    """A turn of a long session over one of a short session, in turn."""
    emptied(name)
    store = opened(name)
    mem = SlideMem(max_tokens=BUDGET, counter=lambda text: len(text.split()), store=store)
    for session, messages in (("short", sizes.few), ("long", sizes.many)):
        filled(store, session, messages)
        turn(mem, session, 0)
    taken: dict[str, list[float]] = {"short": [], "long": []}
    for at in range(sizes.turns):
        for session, times in taken.items():
            times.append(timed(partial(turn, mem, session, at)))
    ratio = statistics.median(taken["long"]) / statistics.median(taken["short"])
    yield Figure(
        f"{name}: a turn at {sizes.many:,} messages over one at {sizes.few:,}", ratio, Wanted("at most", 1.3)
    )


# ------------------------------------------------------------------ 3. round trips


def trips(name: str, _: Sizes) -> Iterator[Figure]:
    """Round trips of a turn, counted on the wire."""
    emptied(name)
    with proxied(POSTGRES if name == "postgres" else REDIS) as proxy:
        store = opened(name, proxy.url)
        mem = SlideMem(max_tokens=BUDGET, counter="approximate", store=store)
        turn(mem, "s", 0)
        before = proxy.trips
        for at in range(10):
            turn(mem, "s", at)
        counted = (proxy.trips - before) / 10
        yield Figure(f"{name}: round trips of a turn", counted, Wanted("at most", 2), guarantee=True)
        filled(store, "archived", 400)
        chat = mem.session("archived")
        before = proxy.trips
        chat.append({"role": "user", "content": "Which hotel was there in the story about the winter journey?"})
        chat.context()
        yield Figure(f"{name}: the same with a question that recalls", proxy.trips - before)
        store.close()


# ------------------------------------------------------------------ 4. beside others


Reading = Callable[[list[tuple[str, str]]], object]  # adds messages, as role and text, and reads what to send then


def others(name: str) -> Iterator[tuple[str, Callable[[], Reading]]]:
    """The chat histories that others keep on a server."""
    if name == "redis":
        yield "langchain-community RedisChatMessageHistory", _community_redis
        return
    yield "langchain-community SQLChatMessageHistory", _community_sql
    yield "langchain-postgres PostgresChatMessageHistory", _postgres_history
    yield "llama-index SQLAlchemyChatStore", _chat_store


def _through(history: Any) -> Reading:
    from langchain_core.messages import AIMessage, HumanMessage  # noqa: PLC0415  # may be missing

    def read(messages: list[tuple[str, str]]) -> object:
        kinds = {"user": HumanMessage, "assistant": AIMessage}
        history.add_messages([kinds[role](text) for role, text in messages])
        return history.messages

    return read


def _community_redis() -> Reading:
    from langchain_community.chat_message_histories import RedisChatMessageHistory  # noqa: PLC0415

    return _through(RedisChatMessageHistory("s", url=REDIS, key_prefix=f"{PREFIX}:theirs:"))


def _community_sql() -> Reading:
    from langchain_community.chat_message_histories import SQLChatMessageHistory  # noqa: PLC0415

    with psycopg.connect(POSTGRES, autocommit=True) as db:
        db.execute("DROP TABLE IF EXISTS bench_sql")
    url = POSTGRES.replace("postgresql://", "postgresql+psycopg://")
    return _through(SQLChatMessageHistory("s", connection=url, table_name="bench_sql"))


def _postgres_history() -> Reading:
    from langchain_postgres import PostgresChatMessageHistory  # noqa: PLC0415

    connection = psycopg.connect(POSTGRES)
    connection.execute("DROP TABLE IF EXISTS bench_history")
    PostgresChatMessageHistory.create_tables(connection, "bench_history")
    session = "8a3f1c9e-0000-4000-8000-000000000001"
    return _through(PostgresChatMessageHistory("bench_history", session, sync_connection=connection))


def _chat_store() -> Reading:
    from llama_index.core.llms import ChatMessage  # noqa: PLC0415
    from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore  # noqa: PLC0415

    with psycopg.connect(POSTGRES, autocommit=True) as db:
        db.execute("DROP TABLE IF EXISTS bench_chat")
    url = POSTGRES.replace("postgresql://", "postgresql+psycopg://")
    store = SQLAlchemyChatStore(table_name="bench_chat", async_database_uri=url)
    loop = asyncio.new_event_loop()

    async def one(messages: list[tuple[str, str]]) -> object:
        await store.add_messages("s", [ChatMessage(role=role, content=text) for role, text in messages])
        return await store.get_messages("s")

    return lambda messages: loop.run_until_complete(one(messages))


def beside(name: str, sizes: Sizes) -> Iterator[Figure]:
    """A turn of ours over a turn of theirs, both in a session of many messages, in turn."""
    emptied(name)
    store = opened(name)
    mem = SlideMem(max_tokens=BUDGET, counter=lambda text: len(text.split()), store=store)
    filled(store, "s", sizes.beside)
    turn(mem, "s", 0)
    said_there = [(one.message.role, one.message.text) for one in said(Writer(1), sizes.beside)]
    for theirs, make in others(name):
        label = f"{name}: a turn at {sizes.beside:,} messages over {theirs}"
        ratio: float | None = None
        with suppress(ImportError):
            read = make()
            for first in range(0, len(said_there), 1000):
                read(said_there[first : first + 1000])
            pairs = [
                (timed(partial(turn, mem, "s", at)), timed(partial(read, said_there[:2])))
                for at in range(max(5, sizes.turns // 4))
            ]
            ratio = statistics.median(mine for mine, _ in pairs) / statistics.median(other for _, other in pairs)
        yield Figure(label, ratio, Wanted("at most", 0.1))


# ------------------------------------------------------------------ all


def weight(name: str, _: Sizes) -> Iterator[Figure]:
    """Memory of Redis for a message."""
    emptied(name)
    if name == "redis":
        filled(opened(name), "weighed", 1_000)
        with redis.Redis.from_url(REDIS) as client:
            used = sum(client.memory_usage(key, samples=0) or 0 for key in client.scan_iter(f"{PREFIX}:*"))
        yield Figure("redis: bytes of memory for a message of 20 words, its postings with it", used / 1_000)
        emptied(name)


def measures(sizes: Sizes) -> Iterator[Callable[[], Iterator[Figure]]]:
    """What is measured, on each server that can be reached."""
    for name in ("postgres", "redis"):
        reason = reached(name)
        if reason:
            print(f"{name} is not measured: {reason}")
            continue
        for part in (trips, appends, lengths, beside, weight):
            yield partial(part, name, sizes)


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    sizes = QUICK if parser.parse_args().quick else FULL
    return judged(list(printed(measures(sizes))))


if __name__ == "__main__":
    sys.exit(main())
