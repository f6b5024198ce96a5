"""What stores on servers do besides the contract: how they are opened, what they cost, and what breaks."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import redis
from psycopg.conninfo import conninfo_to_dict
from sv_places import POSTGRES, Place, dump, prefix, run, talking
from sv_proxy import proxied

from slidemem import Event, SlideMem
from slidemem.contract.base import entry, full, talk
from slidemem.driver import drive
from slidemem.errors import ConfigurationError, MissingExtra, StoreBusy, StoreError, StoreUnreachable
from slidemem.settle import grown
from slidemem.state import Pin, Record, Snapshot, Totals
from slidemem.stores import postgres_schema
from slidemem.stores.base import awaited
from slidemem.stores.postgres import PostgresStore
from slidemem.stores.redis import RedisStore
from slidemem.stores.url import open_store

# ---------------------------------------------------------------------- opened


@pytest.mark.parametrize(
    "url, shown",
    [
        ("postgresql://ann:secret@db.example:5433/chat", "PostgresStore('db.example:5433/chat')"),
        ("postgres:///chat", "PostgresStore('localhost:5432/chat')"),
        ("redis://ann:secret@cache.example:6380/2", "RedisStore('cache.example:6380/2')"),
        ("rediss://:secret@cache.example", "RedisStore('cache.example:6379/0')"),
    ],
)
def test_a_url_names_a_server_and_shows_no_password(url: str, shown: str) -> None:
    """The scheme chooses the store, nothing is connected yet, and what is shown of it holds no credentials."""
    store = open_store(url)

    assert shown == repr(store)


def test_what_a_url_says_of_tls_reaches_the_driver() -> None:
    """Its parameters are those of libpq and of redis-py, and stay as they are."""
    postgres = PostgresStore("postgresql://h/chat?sslmode=verify-full&sslrootcert=/ca.pem&connect_timeout=7")
    quick = PostgresStore("postgresql://h/chat?sslmode=require", busy_seconds=9)
    plain, secure = RedisStore("redis://h/1"), RedisStore("rediss://h/1?ssl_ca_certs=/ca.pem&ssl_cert_reqs=required")
    pool = secure._sync._client.connection_pool

    assert postgres._sync._server.url.endswith("?sslmode=verify-full&sslrootcert=/ca.pem&connect_timeout=7")
    assert {"sslmode": "require", "connect_timeout": "9"}.items() <= conninfo_to_dict(quick._sync._server.url).items()
    assert (False, True) == (
        issubclass(plain._sync._client.connection_pool.connection_class, redis.SSLConnection),
        issubclass(pool.connection_class, redis.SSLConnection),
    )
    assert {"ssl_ca_certs": "/ca.pem", "ssl_cert_reqs": "required"}.items() <= pool.connection_kwargs.items()


@pytest.mark.parametrize(
    "make, told",
    [
        (lambda: PostgresStore("postgresql://ann:secret@[db/chat"), "the PostgreSQL URL cannot be read"),
        (lambda: PostgresStore("postgresql://db/chat?secret=secret"), "the PostgreSQL URL cannot be read"),
        (lambda: RedisStore("redis://ann:secret@cache:port/0"), "the Redis URL cannot be read"),
        (lambda: RedisStore("cache.example/secret"), "the Redis URL cannot be read"),
        (lambda: PostgresStore(POSTGRES, prefix="a.b; DROP"), "prefix must be 1 to 40 of a-z, 0-9 and _"),
        (lambda: RedisStore("redis://h", prefix=""), "prefix must be 1 to 40 of a-z, 0-9 and _"),
        (lambda: PostgresStore(POSTGRES, ttl=0), "ttl must be above 0 and at most"),
        (lambda: RedisStore("redis://h", busy_seconds=True), "busy_seconds must be above 0"),
        (lambda: PostgresStore(POSTGRES, connections=0), "connections must be a whole number of 1 or more, got 0"),
    ],
)
def test_wrong_arguments_are_refused_and_not_shown(make: Any, told: str) -> None:
    """The error says what is wanted, and neither it nor what stands behind it holds the password."""
    with pytest.raises(ConfigurationError, match=told) as raised:
        make()

    assert "secret" not in f"{raised.value} {raised.value.__context__}"


@pytest.mark.parametrize("name, driver", [("postgres", "psycopg_pool"), ("redis", "redis.asyncio")])
def test_a_missing_extra_is_named(name: str, driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the driver is not installed, the error says what to install."""
    monkeypatch.delitem(sys.modules, f"slidemem.stores.{name}")
    monkeypatch.setitem(sys.modules, driver, None)

    with pytest.raises(MissingExtra, match=rf"{name.title()}Store needs the extra '{name}': pip install"):
        open_store(f"{name}://h/0")


def test_the_core_loads_no_driver() -> None:
    """`import slidemem` brings in neither psycopg nor redis-py."""
    code = "import sys, slidemem; print({'psycopg', 'psycopg_pool', 'redis'} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout  # noqa: S603  # our own code

    assert "set()" == loaded.strip()


def test_a_store_is_shared_by_its_faces_and_by_memories(place: Place) -> None:
    """What a sync caller writes an async one reads, and the other way round, in several event loops."""
    store = place.store()
    drive(store.append("s", talk(3)), "")

    async def goes_on() -> Snapshot:
        await store.for_async().append("s", talk(5)[3:])
        return await store.for_async().snapshot("s")

    seen = [asyncio.run(goes_on()) for _ in range(2)]

    assert [5, 7] == [snapshot.totals.next_seq for snapshot in seen]
    assert seen[1] == drive(store.snapshot("s"), "")
    assert drive(place.store(prefix=prefix(0)).snapshot("s"), "") == seen[1]


def test_a_memory_closes_what_it_opened(place: Place) -> None:
    """A store that a memory opened by a URL is closed with it; a later call says so."""
    with SlideMem(max_tokens=100, counter="approximate", store=place.url) as mem:
        assert isinstance(mem.sessions(), tuple)

    with pytest.raises(StoreError, match="it was closed"):
        mem.sessions()


def test_a_store_lets_go_of_its_connections(place: Place) -> None:
    """`with` closes those of sync callers, `aclose` those of an event loop, which may go on."""

    async def around() -> int:
        face = store.for_async()
        await face.append("s", talk(1))
        await store.aclose()
        await store.aclose()
        return (await face.append("s", talk(1))).next_seq

    with place.store() as store:
        assert 2 == asyncio.run(around())

    with pytest.raises(StoreError, match=r"it was closed.*make another store"):
        drive(store.snapshot("s"), "")


def test_a_loop_that_ended_otherwise_is_forgotten(place: Place) -> None:
    """Where an event loop closed without ending its generators, another one has connections of its own."""
    store = place.store()
    loop = asyncio.new_event_loop()
    loop.run_until_complete(store.for_async().append("s", talk(1)))
    loop.run_until_complete(store.aclose())
    loop.run_until_complete(store.for_async().append("s", talk(1)))
    pools = store._awaited._pools if isinstance(store, PostgresStore) else store._awaited._clients
    loop.run_until_complete(pools._close(pools._values[loop]))
    loop.close()

    assert 3 == asyncio.run(store.for_async().append("s", talk(1))).next_seq
    assert [] == list(pools._values)


# ---------------------------------------------------------------------- schema


def dropped(name: str) -> str:
    """A schema that is not there."""
    run(f"DROP SCHEMA IF EXISTS {name} CASCADE")
    return name


def test_ten_that_start_at_once_make_the_tables_once() -> None:
    """Each finds what the first has made, and none fails."""
    place = Place("postgres")
    name = dropped(prefix(90))
    stores = [place.store(prefix=name) for _ in range(10)]

    with ThreadPoolExecutor(10) as pool:
        totals = list(pool.map(lambda store: drive(store.append("s", talk(1)), ""), stores))
    place.close()

    assert list(range(1, 11)) == sorted(one.next_seq for one in totals)
    assert [(1,)] == run(f"SELECT version FROM {name}.version")
    dropped(name)


def test_a_newer_schema_is_left_alone() -> None:
    """What a newer version made says so, and is not touched."""
    place = Place("postgres")
    name = dropped(prefix(91))
    run(f"CREATE SCHEMA {name}; CREATE TABLE {name}.version(version int); INSERT INTO {name}.version VALUES (99)")
    store = place.store(prefix=name)

    with pytest.raises(StoreError, match=r"version 99 and this slidemem knows versions up to 1.*upgrade slidemem"):
        drive(store.snapshot("s"), "")
    with pytest.raises(StoreError, match="version 99"):
        asyncio.run(store.for_async().snapshot("s"))
    place.close()
    dropped(name)


def test_functions_change_with_their_version() -> None:
    """Whoever changes them adds a version, so that schemas that are there get them: a new digest goes with it."""
    known = {1: "57dbc87266d32d75"}
    text = (Path(postgres_schema.__file__).parent / postgres_schema._FUNCTIONS).read_bytes()

    assert known[len(postgres_schema._TABLES)] == sha256(text).hexdigest()[:16]


def test_an_upgrade_that_fails_leaves_nothing() -> None:
    """Tables of another program under our names are left as they are, and the error says what to do."""
    place = Place("postgres")
    name = dropped(prefix(92))
    run(f"CREATE SCHEMA {name}; CREATE TABLE {name}.pins(theirs int)")

    with pytest.raises(StoreError, match=r"already exists.*give slidemem another prefix"):
        drive(place.store(prefix=name).snapshot("s"), "")
    place.close()

    assert [("pins",)] == run("SELECT tablename FROM pg_tables WHERE schemaname = %s", name)
    dropped(name)


def test_a_role_needs_little() -> None:
    """Once the tables are there, a role with the documented rights works, and one without is told of them."""
    place = Place("postgres")
    name, role = dropped(prefix(93)), f"{prefix(93)}_role"
    run(f"DROP ROLE IF EXISTS {role}")
    run(f"CREATE ROLE {role} LOGIN")
    drive(place.store(prefix=name).append("s", talk(1)), "")
    url = POSTGRES.replace("postgres@", f"{role}@")
    with pytest.raises(StoreError, match=r"permission denied.*docs/stores.md"):
        drive(place.store(prefix=name, url=url).append("s", talk(1)), "")

    run(
        f"GRANT USAGE ON SCHEMA {name} TO {role};"
        f"GRANT SELECT ON {name}.version TO {role};"
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {name} TO {role}"
    )
    store = place.store(prefix=name, url=url)
    drive(full(store, "t"), "")
    drive(store.clear("t"), "")
    place.close()

    assert ("s",) == drive(place.store(prefix=name).sessions(), "")
    place.close()
    dropped(name)
    run(f"DROP OWNED BY {role}; DROP ROLE {role}")


# ---------------------------------------------------------------------- time


def test_a_session_not_written_for_long_is_gone(place: Place) -> None:
    """After `ttl` seconds nothing of it is read, listed or in the way; one that was written since is there."""
    store = place.store(ttl=1.0)
    name = prefix(0)
    drive(full(store, "old"), "")
    if place.name == "postgres":
        run(f"UPDATE {name}.sessions SET written = now() - interval '2 seconds'")
    else:
        time.sleep(1.1)  # Redis has no other clock
    drive(full(store, "new"), "")

    assert ("new",) == drive(store.sessions(), "")
    assert () == drive(store.snapshot("old"), "").live
    assert () == drive(store.snapshot("old"), "").pins
    assert 1 == drive(store.append("old", talk(1)), "").next_seq
    assert (1, ()) == (len(drive(store.whole("old"), "").entries), drive(store.branches("old"), ""))
    assert ("old", "new") == tuple(sorted(drive(store.sessions(), ""), reverse=True))


def test_what_is_over_is_swept_away() -> None:
    """When other sessions begin, rows of those whose time is over are deleted, and of those cleared a day ago."""
    place = Place("postgres")
    store, name = place.store(ttl=86_400.0), prefix(0)
    for id_ in ("old", "cleared"):
        drive(full(store, id_), "")
    drive(store.clear("cleared"), "")
    run(f"UPDATE {name}.sessions SET written = now() - interval '3 days', day = day - 3")
    drive(store.append("new", talk(1)), "")
    place.close()

    assert '"new"' in dump("postgres", name)
    assert [(1, 1)] == run(f"SELECT count(*), (SELECT count(*) FROM {name}.messages) FROM {name}.sessions")


def test_redis_forgets_by_itself() -> None:
    """Every key of a session has the same time to live, and after it there is none but the list of sessions."""
    place = Place("redis")
    store, name = place.store(ttl=1.0), prefix(0)
    drive(full(store, "s"), "")
    with talking() as client:
        left = {client.pttl(key) for key in client.scan_iter(f"{name}:*:*")}
        assert all(0 < one <= 1000 for one in left)
        time.sleep(1.1)
        assert [] == list(client.scan_iter(f"{name}:*:*"))
    place.close()


# ---------------------------------------------------------------------- cost


def turn(mem: SlideMem, at: int) -> None:
    """One turn: what is said, and what to send next."""
    chat = mem.session("s", user_id="ann")
    chat.append([{"role": "user", "content": f"question {at}"}, {"role": "assistant", "content": f"answer {at}"}])
    assert "city: Pune" in chat.context().to_openai()[0]["content"]


async def aturn(mem: SlideMem, at: int) -> None:
    """The same, awaited."""
    chat = mem.session("s", user_id="ann")
    await chat.aappend(
        [{"role": "user", "content": f"question {at}"}, {"role": "assistant", "content": f"answer {at}"}]
    )
    assert "city: Pune" in (await chat.acontext()).to_openai()[0]["content"]


def test_a_turn_takes_two_round_trips(place: Place) -> None:
    """An append of two messages and a context, profile and all, wait for the server twice, counted on the wire."""
    with proxied(place.url) as proxy:
        mem = SlideMem(max_tokens=4000, counter="approximate", store=place.store(url=proxy.url))

        async def turns() -> int:
            await aturn(mem, 0)  # connects
            before = proxy.trips
            for at in range(5):
                await aturn(mem, at)
            return proxy.trips - before

        mem.session("s", user_id="ann").profile.set("city", "Pune")
        turn(mem, 0)
        before = proxy.trips
        for at in range(5):
            turn(mem, at)

        assert (10, 10) == (proxy.trips - before, asyncio.run(turns()))


# ---------------------------------------------------------------------- what breaks


@pytest.mark.parametrize("url", ["postgresql://ann:secret@127.0.0.1:1/chat", "redis://ann:secret@127.0.0.1:1/0"])
def test_a_server_that_is_not_there_is_named(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """The error names address and cause, and says what to do; no error, event, log or `repr` shows the password."""
    caplog.set_level("DEBUG")
    store = open_store(url)
    events: list[Event] = []
    mem = SlideMem(max_tokens=100, counter="approximate", store=store, on_event=events.append)

    with pytest.raises(StoreUnreachable, match=r"127\.0\.0\.1:1/.*call again") as raised:
        drive(store.snapshot("s"), "")
    with pytest.raises(StoreUnreachable, match=r"127\.0\.0\.1:1/.*call again"):
        asyncio.run(awaited(store).snapshot("s"))

    with pytest.raises(StoreUnreachable):
        mem.session("s").append({"role": "user", "content": "hello"})
    drive(grown(mem._reach("s", None)[0], Totals(live_tokens=1000)), "")
    assert ["postponed"] == [event.kind for event in events]
    told = f"{raised.value!r} {raised.value.__cause__!r} {store!r} {mem!r} {events!r} {caplog.text}"
    assert "127.0.0.1:1" in told
    assert "secret" not in told


def test_connections_that_broke_while_idle_are_replaced(place: Place) -> None:
    """Where the server ended them between two calls, neither call notices."""
    with proxied(place.url) as proxy:
        store = place.store(url=proxy.url)

        async def twice() -> int:
            await store.for_async().append("s", talk(1))
            proxy.cut()
            await asyncio.sleep(0.05)
            return (await store.for_async().append("s", talk(1))).next_seq

        drive(store.append("s", talk(1)), "")
        proxy.cut()
        time.sleep(0.05)

        assert 2 == drive(store.append("s", talk(1)), "").next_seq
        assert 4 == asyncio.run(twice())


def test_an_answer_that_is_lost_is_told(place: Place) -> None:
    """A write whose connection breaks raises and is kept once when it is sent again; a read is asked again."""
    said = [entry(at, "user", f"m{at}", id_=f"{at}") for at in range(3)]
    with proxied(place.url) as proxy:
        store = place.store(url=proxy.url)
        drive(store.append("s", said[:1]), "")

        async def again() -> int:
            await store.for_async().snapshot("s")
            proxy.cut_after = 0
            with pytest.raises(StoreUnreachable, match="kept once"):
                await store.for_async().append("s", said[2:])
            proxy.cut_after = 0
            assert 3 == (await store.for_async().snapshot("s")).totals.next_seq
            return (await store.for_async().append("s", said[2:])).next_seq

        proxy.cut_after = 0
        with pytest.raises(StoreUnreachable, match="kept once"):
            drive(store.append("s", said[1:2]), "")
        proxy.cut_after = 0
        assert 2 == drive(store.snapshot("s"), "").totals.next_seq
        assert 2 == drive(store.append("s", said[1:2]), "").next_seq
        assert 3 == asyncio.run(again())


def test_too_few_connections_are_told() -> None:
    """Who waits too long for one gets `StoreBusy`, and `StoreUnreachable` where there is no server any more."""
    place = Place("postgres")
    store = place.store(busy_seconds=0.2, connections=1)
    drive(store.append("s", talk(1)), "")
    pool = store._sync._pools[os.getpid()]

    async def waiting(url: str) -> StoreError:
        face = place.store(url=url, busy_seconds=0.2, connections=1, prefix=prefix(0))
        await face.for_async().snapshot("s")
        taken = await face._awaited._pools.get()
        async with taken.connection():
            with pytest.raises(StoreError) as raised:
                await face.for_async().snapshot("s")
        return raised.value

    with pool.connection(), pytest.raises(StoreBusy, match=r"more than 0.2 seconds"):
        drive(store.append("s", talk(1)), "")
    assert isinstance(asyncio.run(waiting(place.url)), StoreBusy)

    with proxied(place.url) as proxy:
        gone = place.store(url=proxy.url, busy_seconds=2, connections=1, prefix=prefix(0))
        drive(gone.snapshot("s"), "")
    with pytest.raises(StoreUnreachable):
        drive(gone.snapshot("s"), "")
    place.close()


async def lost(store: PostgresStore, proxy: Any) -> None:
    """Ask a store whose server is no longer there."""
    await store.for_async().snapshot("s")
    proxy.close()
    await store.for_async().snapshot("s")


def test_a_server_that_went_away_is_told_to_async_callers() -> None:
    """Where no connection can be had any more, the cause is named."""
    place = Place("postgres")
    with proxied(place.url) as proxy:
        store = place.store(url=proxy.url, busy_seconds=2, connections=1)
        with pytest.raises(StoreUnreachable, match=r"127\.0\.0\.1"):
            asyncio.run(lost(store, proxy))
    place.close()


def test_a_server_that_has_just_started_is_called_again() -> None:
    """While Redis reads its file it answers nothing, and nothing has happened."""
    told = RedisStore("redis://h/0")._sync._server.told(redis.BusyLoadingError("Redis is loading the dataset"))

    assert isinstance(told, StoreUnreachable)
    assert "Redis is loading the dataset" in str(told)


def test_too_few_connections_of_redis_are_told() -> None:
    """Who waits too long for one gets `StoreBusy`."""
    place = Place("redis")
    store = place.store(busy_seconds=0.2, connections=1)
    drive(store.append("s", talk(1)), "")
    pool = store._sync._client.connection_pool
    taken = pool.get_connection()

    with pytest.raises(StoreBusy, match=r"more than 0.2 seconds"):
        drive(store.append("s", talk(1)), "")
    pool.release(taken)
    assert 2 == drive(store.append("s", talk(1)), "").next_seq
    place.close()


def test_a_server_that_forgot_the_script_is_given_it_again() -> None:
    """After SCRIPT FLUSH, sync and async calls work as before."""
    place = Place("redis")
    store = place.store()
    drive(store.append("s", talk(1)), "")

    async def again() -> int:
        with talking() as client:
            client.script_flush()
        return (await store.for_async().append("s", talk(1))).next_seq

    with talking() as client:
        client.script_flush()

    assert 2 == drive(store.append("s", talk(1)), "").next_seq
    assert 3 == asyncio.run(again())
    place.close()


def test_what_a_server_refuses_is_told(place: Place) -> None:
    """A fault of the server is an error of ours, with what to do, and holds nothing of what was said."""
    store, name = place.store(), prefix(0)
    drive(store.append("s", talk(1)), "")
    if place.name == "postgres":
        run(f"ALTER TABLE {name}.pins RENAME TO gone")
    else:
        with talking() as client:
            for key in client.scan_iter(f"{name}:*:head"):
                client.delete(key.replace(b"head", b"pins"))
                client.set(key.replace(b"head", b"pins"), "no hash")

    with pytest.raises(StoreError, match=r"cannot be used") as raised:
        drive(store.pin("s", Pin("p", "a secret")), "")
    with pytest.raises(StoreError, match=r"cannot be used"):
        asyncio.run(store.for_async().pin("s", Pin("p", "a secret")))
    if place.name == "postgres":
        run(f"ALTER TABLE {name}.gone RENAME TO pins")

    assert "secret" not in str(raised.value)
    assert Record() == drive(store.snapshot("s"), "").record if place.name == "postgres" else True


@pytest.mark.parametrize(
    "url, told",
    [
        (POSTGRES.rpartition("/")[0] + "/no_such_database", "create the database"),
        (POSTGRES.replace("postgres@", "nobody_here@"), "see to user and password"),
    ],
)
def test_a_refused_connection_says_what_to_do(url: str, told: str) -> None:
    """A database or a user that is not there is told from a server that is not."""
    place = Place("postgres")

    with pytest.raises(StoreError, match=told):
        drive(place.store(url=url).snapshot("s"), "")


def test_a_user_of_redis_needs_little() -> None:
    """One with the documented rights works on our keys alone; a wrong password and missing rights are told."""
    place = Place("redis")
    name = place.fresh()
    rights = ["reset", "on", ">right", f"~{name}:*", "+eval", "+evalsha", "+@hash", "+@sortedset", "+@list"]
    with talking() as client:
        client.execute_command(
            "ACL", "SETUSER", name, *rights, "+@keyspace", "-@dangerous", "+incr", "+client", "+hello"
        )

    def store(password: str, prefix: str) -> RedisStore:
        return RedisStore(place.url.replace("redis://", f"redis://{name}:{password}@"), prefix=prefix)

    with store("secret", name) as wrong, pytest.raises(StoreError, match="see to user and password") as raised:
        drive(wrong.snapshot("s"), "")
    with store("right", "others") as other, pytest.raises(StoreError, match=r"docs/stores\.md"):
        drive(other.append("s", talk(1)), "")
    with store("right", name) as right:
        drive(full(right, "s"), "")
        drive(right.clear("s"), "")
        drive(right.append("t", talk(1)), "")
        assert ("t",) == drive(right.sessions(), "")
    with talking() as client:
        client.execute_command("ACL", "DELUSER", name)
    place.close()

    assert "secret" not in str(raised.value)


def test_a_cancelled_call_leaves_a_session_whole(place: Place) -> None:
    """A call whose task is cancelled has happened or has not, and the next one finds a connection that works."""
    store = place.store()

    async def body() -> tuple[int, int]:
        face = store.for_async()
        await face.append("s", talk(2))
        for _ in range(10):
            task = asyncio.ensure_future(face.append("s", talk(2)))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        snapshot = await face.snapshot("s")
        return snapshot.totals.next_seq % 2, len(snapshot.live) - snapshot.totals.next_seq

    assert (0, 0) == asyncio.run(body())


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_has_connections_of_its_own(place: Place) -> None:
    """What a child writes is there, and the parent's connection still works."""
    store = place.store()
    drive(store.append("s", talk(1)), "")
    child = os.fork()
    if not child:
        try:
            drive(store.append("s", talk(1)), "")
            os._exit(0)
        finally:
            os._exit(1)

    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert 3 == drive(store.append("s", talk(1)), "").next_seq


def test_rows_read_are_counted(place: Place) -> None:
    """A process is sent each live message once."""
    store = place.store()
    drive(store.append("s", talk(4)), "")
    for _ in range(3):
        drive(store.snapshot("s"), "")

    assert 12 == store.rows_read


# ---------------------------------------------------------------------- workers


def manual(store: Any, **options: Any) -> SlideMem:
    """A memory that leaves its work to workers."""
    options = {"counter": lambda text: len(text.split()), "recall_share": 0, **options}
    return SlideMem(max_tokens=100, store=store, mode="manual", **options)


def test_a_server_tells_where_something_may_be_due(place: Place) -> None:
    """Only sessions that hold much, or many turns, are read by a worker; the work is shared by those who ask."""
    store = place.store()
    for session, turns in (("a", 6), ("idle", 1), ("b", 6)):
        for at in range(turns):
            manual(store).session(session, user_id="ann").append(
                [{"role": role, "content": f"{session} {at}" + " word" * 8} for role in ("user", "assistant")]
            )

    assert ("a", "b") == drive(store.loaded(60, None), "") == asyncio.run(store.for_async().loaded(60, 99))
    assert ("a", "idle", "b") == drive(store.loaded(10_000, 0), "")
    before = store.rows_read
    assert ("a",) == manual(store).consolidate_due(1)
    assert 30 > store.rows_read - before
    assert ("b",) == asyncio.run(manual(store).aconsolidate_due())
    assert () == manual(store).consolidate_due()


def test_pins_and_recall_reach_all_sessions_of_a_user(place: Place) -> None:
    """Another session of the user shows what was pinned and said in the first, and nobody else's does."""
    mem = SlideMem(max_tokens=1000, counter="approximate", store=place.store(), pin_scope="user", recall_scope="user")
    old = mem.session("old", user_id="ann")
    old.pin("Ann is allergic to peanuts.")
    old.append({"role": "user", "content": "The boathouse key hangs behind the barometer."})
    asked = {"role": "user", "content": "Where is the boathouse key?"}
    shown: dict[str, str] = {}
    for session, owner in (("new", "ann"), ("other", "ben")):
        chat = mem.session(session, user_id=owner)
        chat.append(asked)
        shown[owner] = "".join(message.text for message in chat.context().messages)
    asked_later = asyncio.run(mem.session("new", user_id="ann").acontext()).messages[-1].text

    assert "allergic to peanuts" in shown["ann"]
    assert "behind the barometer" in shown["ann"]
    assert "behind the barometer" in asked_later
    assert shown["ben"] == "Where is the boathouse key?"
    assert mem.session("third", user_id="ann").unpin("Ann is allergic to peanuts.")
    assert () == mem.session("old", user_id="ann").pins()
