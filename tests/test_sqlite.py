"""What is SQLite's own: files, processes, threads, faults, versions, and how a store is asked for by URL."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Barrier, Thread, current_thread
from typing import IO, Any, TypeVar

import pytest

from slidemem import ConfigurationError, SlideMem, StoreBusy, StoreError
from slidemem.contract import entry, segment
from slidemem.driver import drive
from slidemem.errors import AsyncOnly
from slidemem.state import Change, Entry, Pin, Record, Recount, Rewrite, Snapshot, Whole
from slidemem.stores import sqlite_file, sqlite_rows, sqlite_schema
from slidemem.stores.base import Blocking, Store
from slidemem.stores.memory import MemoryStore
from slidemem.stores.parsed import Latest, Parsed
from slidemem.stores.sqlite import SQLiteStore
from slidemem.stores.threaded import Threaded
from slidemem.stores.url import open_store

T = TypeVar("T")

Making = Callable[..., SQLiteStore]

APPENDING = """
import sys
from slidemem.contract import entry
from slidemem.driver import drive
from slidemem.stores.sqlite import SQLiteStore

path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = SQLiteStore(path)
print("open", flush=True)
sys.stdin.readline()
for at in range(count):
    totals = drive(store.append("s", [entry(0, "user", f"{name} {at}")]), "")
    print(totals.next_seq - 1, f"{name} {at}", flush=True)
"""

FORKING = """
import asyncio, os, sys
from slidemem.contract import entry
from slidemem.driver import drive
from slidemem.stores.sqlite import SQLiteStore

store = SQLiteStore(sys.argv[1])
face = store.for_async()
say = lambda text: [entry(0, "user", text)]
drive(store.append("s", say("parent")), "")
asyncio.run(face.append("s", say("parent's thread")))
pid = os.fork()
if not pid:
    drive(store.append("s", say("child")), "")
    asyncio.run(face.append("s", say("child's thread")))
    store.close()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
drive(store.append("s", say("parent again")), "")
asyncio.run(face.append("s", say("parent's thread again")))
"""


def do(call: Coroutine[Any, Any, T]) -> T:
    """What a store's method returns, which never suspends."""
    return drive(call, "")


def say(store: Store, *texts: str, session: str = "s") -> None:
    """Append messages."""
    do(store.append(session, [entry(0, "user", text) for text in texts]))


def said(store: Store, session: str = "s") -> list[str]:
    """What the messages of a session say."""
    return [kept.message.text for kept in do(store.read(session))]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that is not there."""
    return tmp_path / "chat.db"


@pytest.fixture
def make(path: Path) -> Iterator[Making]:
    """What makes stores on the file, and lets them go afterwards."""
    made: list[SQLiteStore] = []

    def store(**options: Any) -> SQLiteStore:
        made.append(SQLiteStore(path, **options))
        return made[-1]

    yield store
    for one in made:
        one.close()


@pytest.fixture
def other(path: Path) -> Iterator[sqlite3.Connection]:
    """Another program's connection to the file."""
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0)
    yield db
    db.close()


@contextmanager
def hear(store: SQLiteStore) -> Generator[list[str], None, None]:
    """The statements of this thread's calls."""
    heard: list[str] = []
    with store._here.connections.reading() as db:
        db.set_trace_callback(heard.append)
    yield heard
    db.set_trace_callback(None)


# ---------------------------------------------------------------------- arguments


def test_a_store_says_where_it_is(path: Path, make: Making) -> None:
    """Its representation names the file, or that there is none."""
    assert f"SQLiteStore({str(path)!r})" == repr(make())
    assert "SQLiteStore(None)" == repr(SQLiteStore(":memory:"))


@pytest.mark.parametrize("wrong", ["", 7, b"chat.db", "a\0b"])
def test_a_path_must_name_a_file(wrong: Any) -> None:
    """An empty path, or something that is no path, is refused."""
    with pytest.raises(ConfigurationError, match="path must name a file"):
        SQLiteStore(wrong)


@pytest.mark.parametrize("wrong", [-1, float("nan"), 1e9, "30"])
def test_busy_seconds_are_from_nothing_to_a_day(wrong: Any) -> None:
    """Other values are refused, since they would mean something else to SQLite."""
    with pytest.raises(ConfigurationError, match="busy_seconds must be from 0 to 86400 seconds"):
        SQLiteStore(busy_seconds=wrong)


def test_synchronous_is_full_or_normal(make: Making) -> None:
    """Each is what SQLite calls so; anything else is refused."""
    kept: list[int] = []
    for synchronous in ("full", "normal"):
        with make(synchronous=synchronous)._here.connections.reading() as db:
            kept.append(db.execute("PRAGMA synchronous").fetchone()[0])
    assert [2, 1] == kept

    with pytest.raises(ConfigurationError, match='synchronous must be "full" or "normal", got \'off\''):
        make(synchronous="off")


def test_a_relative_path_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that comes after the process changed its folder finds the same file."""
    monkeypatch.chdir(tmp_path)
    with SQLiteStore("chat.db") as store:
        monkeypatch.chdir("/")
        with ThreadPoolExecutor(1) as pool:
            pool.submit(say, store, "hello").result()

        assert ["hello"] == said(store)


# ---------------------------------------------------------------------- URLs


def test_nothing_asked_for_is_in_this_process() -> None:
    """None opens a store in memory."""
    assert MemoryStore is type(open_store(None))


def test_an_object_is_the_store_itself() -> None:
    """A store is taken as it is."""
    store = SQLiteStore()

    assert store is open_store(store)


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite:///:memory:"])
def test_a_url_without_a_file_is_in_memory(url: str) -> None:
    """Three ways of saying so."""
    assert "SQLiteStore(None)" == repr(open_store(url))


def test_a_url_names_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three strokes and a path are relative to the process's folder, four are absolute; nothing is decoded."""
    monkeypatch.chdir(tmp_path)
    stores = [open_store("sqlite:///a%20b.db"), open_store(f"sqlite:///{tmp_path}/c.db")]

    assert [f"SQLiteStore('{tmp_path}/{name}')" for name in ("a%20b.db", "c.db")] == [repr(store) for store in stores]
    assert {"a%20b.db", "c.db"} <= {file.name for file in tmp_path.iterdir()}


@pytest.mark.parametrize(
    "url, told",
    [
        ("chat.db", "this text is no URL"),
        ("me:secret@host/db", "this text is no URL"),
        ("me:secret://host", "this text is no URL"),
        ("mysql://me:secret@host/0", "store mysql://… is not known"),
        ("mysql://me:sec/ret@host?password=secret", "store mysql://… is not known"),
        ("sqlite://chat.db", "a sqlite URL has a path and nothing else"),
        ("sqlite:///chat.db?secret", "a sqlite URL has a path and nothing else"),
    ],
)
def test_a_url_that_is_not_known_is_refused(url: str, told: str) -> None:
    """The error lists those that are, and shows no password."""
    with pytest.raises(ConfigurationError) as caught:
        open_store(url)

    assert told in str(caught.value)
    assert "sqlite:///chat.db (a file beside the process)" in str(caught.value)
    assert "sec" not in str(caught.value)


def test_an_object_that_is_no_store_is_refused() -> None:
    """The error names the methods that it lacks; a class is no store either."""

    class Half:
        append = read = pick = matching = documents = keys = cut = branches = held = MemoryStore.append
        describe = commit = segment = pin = unpin = claim = release = clear = MemoryStore.append
        snapshot = recount = rewrite = whole = MemoryStore.append
        restore = None

    with pytest.raises(ConfigurationError, match=r"Half has no restore, sessions$"):
        open_store(Half())  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="not its class: make one with MemoryStore"):
        open_store(MemoryStore)  # type: ignore[arg-type]


# ---------------------------------------------------------------------- schema


def number(db: sqlite3.Connection, statement: str) -> int:
    """The number that a statement gives."""
    found: int = db.execute(statement).fetchone()[0]
    return found


def steps(*statements: str) -> Callable[[sqlite3.Connection], None]:
    """An upgrade that runs statements."""

    def upgrade(db: sqlite3.Connection) -> None:
        for statement in statements:
            db.execute(statement)

    return upgrade


def test_an_empty_file_becomes_a_database(path: Path, make: Making, other: sqlite3.Connection) -> None:
    """A file of no bytes is of version 0, and is brought to the newest; opened again it is as it was."""
    assert 0 == path.stat().st_size
    say(make(), "hello")

    assert 3 == number(other, "PRAGMA user_version")
    assert 0x736C6D6D == number(other, "PRAGMA application_id")
    assert ["hello"] == said(make())


def test_an_older_database_is_upgraded_once(
    make: Making, other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of eight stores that are opened at once on a database of an older version, one upgrades it."""
    say(make(), "hello")
    step = steps("CREATE TABLE upgraded(n INTEGER)", "INSERT INTO upgraded VALUES(1)")
    monkeypatch.setattr(sqlite_schema, "_UPGRADES", (*sqlite_schema._UPGRADES, step))
    start = Barrier(8)

    def open_() -> list[str]:
        start.wait()
        return said(make())

    with ThreadPoolExecutor(8) as pool:
        heard = [found.result() for found in [pool.submit(open_) for _ in range(8)]]

    assert [["hello"]] * 8 == heard
    assert (4, 1) == (number(other, "PRAGMA user_version"), number(other, "SELECT COUNT(*) FROM upgraded"))


def test_messages_of_the_first_schema_are_indexed(path: Path, make: Making, other: sqlite3.Connection) -> None:
    """A database that was made before there was recall is searched as a new one is."""
    first = SlideMem(max_tokens=900, counter=len, store=make()).session("s")
    first.append([{"role": "user", "content": "The barometer fell."}, {"role": "assistant", "content": "Indeed."}])
    expected = [(hit.seq, hit.score) for hit in first.search("barometer")]
    other.executescript(
        "DROP TABLE documents; DROP TABLE postings; DROP INDEX sessions_by_user;"
        " ALTER TABLE sessions DROP COLUMN user; PRAGMA user_version = 1"
    )

    again = SlideMem(max_tokens=900, counter=len, store=SQLiteStore(path)).session("s")
    assert expected == [(hit.seq, hit.score) for hit in again.search("barometer")]
    assert 1 == len(expected)


def test_an_upgrade_that_fails_leaves_the_older_database(
    make: Making, other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of its steps are done, or none."""
    say(make(), "hello")
    with monkeypatch.context() as patch:
        step = steps("CREATE TABLE upgraded(n INTEGER)", "INSERT INTO nowhere VALUES(1)")
        patch.setattr(sqlite_schema, "_UPGRADES", (*sqlite_schema._UPGRADES, step))
        with pytest.raises(StoreError, match="no such table: nowhere"):
            make()

    assert 0 == number(other, "SELECT COUNT(*) FROM sqlite_master WHERE name = 'upgraded'")
    assert ["hello"] == said(make())


def test_a_newer_database_is_refused(make: Making, other: sqlite3.Connection) -> None:
    """The error tells both versions and what to do, and the file is left as it is."""
    say(make(), "hello")
    other.execute("PRAGMA user_version = 7")

    with pytest.raises(
        StoreError, match=r"its schema is version 7 and this slidemem knows versions up to 3.*upgrade"
    ):
        make()
    assert 7 == number(other, "PRAGMA user_version")


def test_the_database_of_another_program_is_refused(make: Making, other: sqlite3.Connection) -> None:
    """Tables that are not ours are not touched, even if they have the names of ours."""
    other.execute("CREATE TABLE messages(text TEXT)")

    with pytest.raises(StoreError, match=r"it is the database of another program.*a file of its own"):
        make()
    assert 1 == number(other, "SELECT COUNT(*) FROM sqlite_master")
    assert "delete" == other.execute("PRAGMA journal_mode").fetchone()[0]


# ---------------------------------------------------------------------- threads


def test_connections_of_finished_threads_are_closed(make: Making) -> None:
    """However many threads came and went, as many connections are open as before."""
    store = make()
    used: list[sqlite3.Connection] = []

    def work() -> None:
        say(store, "hello")
        used.append(store._here.connections._local.mine.db)

    for _ in range(300):
        thread = Thread(target=work)
        thread.start()
        thread.join()

    assert (300, 1) == (len(said(store)), len(store._here.connections._all))
    for db in used:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            db.execute("SELECT 1")


def test_a_closed_store_is_of_no_use(path: Path, make: Making) -> None:
    """Calls raise, in threads that had a connection, in new ones and on the async face; the log is gone."""
    with make() as store:
        say(store, "hello")
        asyncio.run(store.for_async().read("s"))
    assert {} == store._face._workers
    store.close()

    with pytest.raises(StoreError, match="it was closed: make another store"):
        said(store)
    with ThreadPoolExecutor(1) as pool, pytest.raises(StoreError, match="it was closed"):
        pool.submit(said, store).result()
    with pytest.raises(StoreError, match="it was closed"):
        asyncio.run(store.for_async().read("s"))
    assert ["chat.db"] == [file.name for file in path.parent.iterdir()]
    assert ["hello"] == said(make())


def test_a_store_that_is_let_go_closes_its_connections(path: Path) -> None:
    """Without a call of `close`, the last reference is enough."""
    connections = sqlite_file.Connections(str(path), 1.0, "full")
    connections.touch()
    db = connections._local.mine.db
    del connections

    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        db.execute("SELECT 1")


# ---------------------------------------------------------------------- processes


@contextmanager
def program(*arguments: object) -> Generator[tuple[subprocess.Popen[str], IO[str], IO[str]], None, None]:
    """A Python process, what it reads and what it says; killed at the end if it is still there."""
    with subprocess.Popen(  # noqa: S603  # our own code
        [sys.executable, "-c", *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process, process.stdin, process.stdout
        finally:
            process.kill()


def test_processes_share_a_file(path: Path, make: Making) -> None:
    """Three processes that make the file at once, and append to one session at once, lose nothing."""
    count, told = 40, dict[str, str]()
    with ExitStack() as stack:
        running = [stack.enter_context(program(APPENDING, path, name, count)) for name in "abc"]
        assert ["open\n"] * 3 == [out.readline() for _, _, out in running]
        for _, into, _ in running:
            into.write("\n")
            into.flush()
        for process, _, out in running:
            told.update((line.split(" ")[0], line.rstrip("\n").split(" ", 1)[1]) for line in out)
            assert 0 == process.wait()

    texts = said(make())
    assert 3 * count == len(texts)
    assert {str(seq): text for seq, text in enumerate(texts)} == told
    for name in "abc":
        assert [f"{name} {at}" for at in range(count)] == [text for text in texts if text[0] == name]


def test_what_was_acknowledged_outlives_a_killed_process(path: Path, make: Making) -> None:
    """A process that is killed while it writes leaves every message that it was told is there, and no half."""
    with program(APPENDING, path, "a", 1_000_000) as (process, into, out):
        into.write("\n")
        into.flush()
        lines = [out.readline() for _ in range(26)]
        process.send_signal(signal.SIGKILL)
        lines += out.readlines()
    acknowledged = [line for line in lines[1:] if line.endswith("\n")]

    store = make()
    entries = do(store.read("s"))
    assert -signal.SIGKILL == process.returncode
    assert 25 <= len(acknowledged) <= len(entries)
    assert [f"{at} a {at}\n" for at in range(len(acknowledged))] == acknowledged
    assert [(at, f"a {at}") for at in range(len(entries))] == [(kept.seq, kept.message.text) for kept in entries]
    say(store, "on")
    assert len(entries) + 1 == do(store.snapshot("s")).totals.next_seq


def test_a_forked_child_has_connections_of_its_own(path: Path, make: Making) -> None:
    """Parent and child go on with the store that was made before the fork, and so do their event loops."""
    with program(FORKING, path) as (process, _, out):
        assert "" == out.read()
        assert 0 == process.wait()

    expected = ["parent", "parent's thread", "child", "child's thread", "parent again", "parent's thread again"]
    assert expected == said(make())


def test_what_a_child_inherits_is_left_alone(make: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    """In another process than it was made in, a connection is neither used nor closed."""
    store = make()
    db = store._here.connections._local.mine.db
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)
        say(store, "hello")
        assert db is not store._here.connections._local.mine.db
        store._here.connections.close()
        store._places.clear()

    kept = sqlite_file._INHERITED.pop()
    assert db is kept
    kept.execute("SELECT 1")
    kept.close()


# ---------------------------------------------------------------------- faults


def test_a_writer_that_waits_too_long_says_so(path: Path, make: Making, other: sqlite3.Connection) -> None:
    """While another program writes, reads go on; a write gives up after `busy_seconds`, and may be made again."""
    store = make(busy_seconds=0.05)
    say(store, "hello")
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreBusy, match=r"for more than 0\.05 seconds.*busy_seconds") as caught:
        say(store, "not now")
    assert (str(path), 0.05) == (caught.value.where, caught.value.seconds)
    assert ["hello"] == said(store)

    other.execute("COMMIT")
    say(store, "now")
    assert ["hello", "now"] == said(store)


def test_writers_of_one_process_queue(make: Making) -> None:
    """A writer that waits for another thread for too long says the same."""
    store = make(busy_seconds=0.05)
    with store._here.connections.writing(), ThreadPoolExecutor(1) as pool, pytest.raises(StoreBusy):
        pool.submit(say, store, "not now").result()
    say(store, "now")

    assert ["now"] == said(store)


def test_the_log_is_asked_for_until_nobody_is_in_the_way(
    path: Path, make: Making, other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader of a file without a log is waited for, which SQLite itself may not do."""
    make().close()
    other.execute("PRAGMA journal_mode = DELETE")
    other.execute("BEGIN")
    other.execute("SELECT * FROM sessions").fetchall()
    with pytest.raises(StoreBusy):
        make(busy_seconds=0)

    def leave(_: float) -> None:
        other.execute("COMMIT")

    monkeypatch.setattr(time, "sleep", leave)
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    say(make(busy_seconds=0.05), "hello")
    assert not other.in_transaction
    assert path.with_name("chat.db-wal").stat().st_size > 0


def test_a_file_that_is_no_database_is_told(path: Path, make: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the file, the cause and what to do, and the file is let go."""
    path.write_bytes(b"no database" * 1000)
    connect, made = sqlite3.connect, list[sqlite3.Connection]()

    def noting(path: str, **options: Any) -> sqlite3.Connection:
        made.append(connect(path, **options))
        return made[-1]

    monkeypatch.setattr(sqlite3, "connect", noting)
    with pytest.raises(StoreError, match=r"chat\.db cannot be used.*not a database.*move the file away") as caught:
        make()
    assert (str(path), "file is not a database") == (caught.value.where, caught.value.reason)
    assert isinstance(caught.value.__cause__, sqlite3.DatabaseError)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        made[0].execute("SELECT 1")


def test_a_damaged_file_is_told(path: Path, make: Making) -> None:
    """Pages that were overwritten are found when they are read."""
    with make() as store:
        say(store, *(f"{at} " * 500 for at in range(40)))
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))

    with pytest.raises(StoreError, match=r"malformed.*restore a copy"):
        said(make())


@pytest.mark.parametrize("place", [".", "file/chat.db", "nowhere/chat.db"])
def test_a_place_where_no_file_can_be_is_told(tmp_path: Path, place: str) -> None:
    """A folder, a path through a file, a folder that is not there."""
    (tmp_path / "file").touch()

    with pytest.raises(StoreError, match=r"unable to open database file.*see that its folder is there"):
        SQLiteStore(tmp_path / place)


def test_a_file_that_may_not_be_written_is_told(make: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    """It can be read, and a write raises."""
    connect = sqlite3.connect

    def read_only(path: str, **options: Any) -> sqlite3.Connection:
        db: sqlite3.Connection = connect(f"file:{path}?mode=ro", uri=True, **options)
        return db

    first = make()
    say(first, "hello")
    monkeypatch.setattr(sqlite3, "connect", read_only)
    store = make()

    with pytest.raises(StoreError, match=r"readonly.*make the file and its folder writable"):
        say(store, "more")
    assert ["hello"] == said(store) == said(first)


def test_a_full_disk_changes_nothing(make: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call for which there is no room raises and leaves all as it was; what still fits is stored."""
    connect = sqlite3.connect

    def small(path: str, **options: Any) -> sqlite3.Connection:
        db: sqlite3.Connection = connect(path, **options)
        db.execute("PRAGMA max_page_count = 60")
        return db

    monkeypatch.setattr(sqlite3, "connect", small)
    store = make()
    say(store, "hello")
    before = do(store.whole("s"))

    with pytest.raises(StoreError, match=r"full.*make room on its disk"):
        do(store.append("s", [entry(0, "user", "a"), entry(0, "user", "b" * 500_000)], [("k", "v")]))
    assert before == do(store.whole("s"))
    say(store, "on")
    assert ["hello", "on"] == said(store)


def test_other_faults_name_their_cause(make: Making, other: sqlite3.Connection) -> None:
    """What SQLite says that nothing is known about is told as it is."""
    store = make()
    other.execute("DROP TABLE pins")

    with pytest.raises(StoreError, match=r"no such table: pins.*the cause is SQLite's"):
        do(store.pin("s", Pin("p", "tea")))


@pytest.mark.parametrize("fault", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_a_call_that_is_interrupted_changes_nothing(make: Making, fault: type[BaseException]) -> None:
    """Whatever ends it in the middle, the transaction is undone, and the store goes on."""
    store = make()

    def torn() -> Iterator[Entry]:
        yield entry(0, "user", "half", id_="1")
        raise fault

    with pytest.raises(fault):
        do(store.append("s", torn(), [("k", "v")]))  # type: ignore[arg-type]
    assert Whole() == do(store.whole("s"))
    do(store.append("s", [entry(0, "user", "half", id_="1")]))
    assert ["half"] == said(store)


# ---------------------------------------------------------------------- what is deleted, what is read


def test_what_was_cleared_is_in_no_file(path: Path, make: Making) -> None:
    """Texts of messages, segments, pins and metadata are overwritten, in the log too."""
    store = make()
    do(store.append("s", [entry(0, "user", "SECRET " * 500, id_="SECRET")], [("k", "SECRET")]))
    record = Record(1, boundary=1)
    do(store.commit("s", 0, Change(record, (), (segment(0, 1, "SECRET"),), (Pin("SECRET", "SECRET"),))))
    do(store.rewrite("s", (1, 1), Rewrite(Record(2), 0)))
    say(store, "SECRET")
    do(store.snapshot("s"))
    files = [file for file in path.parent.iterdir() if b"SECRET" in file.read_bytes()]
    assert files
    do(store.clear("s"))

    assert [] == [file.name for file in path.parent.iterdir() if b"SECRET" in file.read_bytes()]
    assert {} == store._here.latest._kept


def test_a_clear_waits_for_no_reader(make: Making, other: sqlite3.Connection) -> None:
    """While somebody reads, the log is left to a later write, and the session is gone all the same."""
    store = make()
    say(store, "hello")
    other.execute("BEGIN")
    other.execute("SELECT * FROM sessions").fetchall()
    with hear(store) as heard:
        do(store.clear("s"))

    expected = ["busy_timeout = 0", "wal_checkpoint(TRUNCATE)", "busy_timeout = 30000"]
    assert [f"PRAGMA {pragma}" for pragma in expected] == heard[-3:]
    assert Snapshot(Record(1)) == do(store.snapshot("s"))
    say(store, "again")
    assert ["again"] == said(store)


def test_an_append_does_not_read_the_transcript(make: Making) -> None:
    """Its queries find their rows by key: none goes over the messages."""
    store, given = make(), [entry(0, "user", "a", id_="1"), entry(0, "user", "b", id_="2")]
    with hear(store) as heard:
        do(store.append("s", given, [("k", "v")]))

    queries = [query for query in heard if query.startswith("SELECT")]
    with store._here.connections.reading() as db:
        plans = [row[3] for query in queries for row in db.execute(f"EXPLAIN QUERY PLAN {query}")]
    assert [] == [plan for plan in plans if not plan.startswith("SEARCH")]
    assert any("messages_by_host_id" in plan for plan in plans)


def test_keys_are_read_without_the_messages(make: Making) -> None:
    """The query of the keys does not name the columns that hold texts."""
    store = make()
    say(store, "hello")
    with hear(store) as heard:
        do(store.keys("s"))

    asked = [query.partition(" FROM ")[0] for query in heard if "FROM messages" in query]
    assert ["SELECT digest, host_id, role, shown_digest"] == asked


def test_a_snapshot_reads_what_is_live(make: Making) -> None:
    """As many entries are handed out however long the transcript is; texts that are known are not read again."""
    store, handed = make(), list[int]()
    for at in range(6):
        say(store, *(f"{at} {n}" for n in range(10)))
        now = do(store.snapshot("s"))
        record = Record(at + 1, boundary=now.totals.next_seq - 4)
        do(store.commit("s", at, Change(record, now.live[:-4])))
        before = store.rows_read
        do(store.snapshot("s"))
        handed.append(store.rows_read - before)
    assert [4] * 6 == handed

    with hear(store) as heard:
        do(store.snapshot("s"))
    assert [] == [query for query in heard if "FROM messages" in query or "FROM records" in query]


# ---------------------------------------------------------------------- what is parsed once


def test_messages_that_are_known_are_the_same_objects(make: Making) -> None:
    """After an append of another store the earlier messages are not parsed again, and the new one is there."""
    store, elsewhere = make(), make()
    say(store, "a", "b")
    before = do(store.snapshot("s")).live
    say(elsewhere, "c")
    after = do(store.snapshot("s")).live

    assert [True, True] == [one is two for one, two in zip(before, after, strict=False)]
    assert ["a", "b", "c"] == [kept.message.text for kept in after]
    assert after is do(store.snapshot("s")).live


CHANGES: list[Callable[[Store], Coroutine[Any, Any, Any]]] = [
    lambda store: store.append("s", [entry(0, "user", "more")], [("k", "v")]),
    lambda store: store.commit("s", 0, Change(Record(1, boundary=1), (entry(0, "user", "a"),), (), (Pin("p", "t"),))),
    lambda store: store.rewrite("s", (0, 3), Rewrite(Record(1), 1, (entry(0, "user", "x"), entry(0, "user", "y")))),
    lambda store: store.rewrite("s", (0, 3), Rewrite(None, 0, (entry(0, "user", "z"),), ("p",))),
    lambda store: store.recount("s", 0, Recount("other", {1: 100}, 0, 0)),
    lambda store: store.cut("s", 2),
    lambda store: store.clear("s"),
    lambda store: store.restore(
        "s", (0, 3), Whole(entries=tuple(entry(at, "user", text) for at, text in enumerate("xyz")))
    ),
    lambda store: store.pin("s", Pin("p", "tea")),
    lambda store: store.unpin("s", "p"),
    lambda store: store.describe("s", [("l", "w")]),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_another_store_is_seen(make: Making, change: Callable[[Store], Coroutine[Any, Any, Any]]) -> None:
    """Whatever another store does, the next snapshot is what a new store reads, though as many messages are there."""
    store, elsewhere = make(), make()
    say(store, "a", "b", "c")
    do(store.pin("s", Pin("p", "milk")))
    before = do(store.snapshot("s"))
    do(change(elsewhere))
    assert before != do(store.snapshot("s"))
    assert do(make().snapshot("s")) == do(store.snapshot("s"))

    do(elsewhere.cut("s", 0))
    say(elsewhere, "1", "2", "3")
    assert do(make().snapshot("s")) == do(store.snapshot("s"))


def test_a_session_of_another_file_is_not_taken_for_it(path: Path, make: Making) -> None:
    """A file that was put in the place of this one has other epochs, though it went through as many changes."""
    store = make()
    say(store, "a", "b")
    do(store.snapshot("s"))
    for file in path.parent.iterdir():
        file.unlink()
    with make() as elsewhere:
        say(elsewhere, "c", "d")

    with ThreadPoolExecutor(1) as pool:
        live = pool.submit(do, store.snapshot("s")).result().live
    assert ["c", "d"] == [kept.message.text for kept in live]


def test_a_snapshot_holds_nothing_of_later(make: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages that another thread read and remembered while a snapshot was on its way are not in it."""
    store, there = make(), sqlite_rows.there
    say(store, "a")
    do(store.snapshot("s"))

    def meanwhile() -> None:
        say(store, "b")
        do(store.snapshot("s"))

    def slow(db: sqlite3.Connection, session: str) -> sqlite_rows.Row:
        row = there(db, session)
        monkeypatch.setattr(sqlite_rows, "there", there)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(meanwhile).result()
        return row

    monkeypatch.setattr(sqlite_rows, "there", slow)
    early, late = do(store.snapshot("s")), do(store.snapshot("s"))

    assert (["a"], 1) == ([kept.message.text for kept in early.live], early.totals.next_seq)
    assert (["a", "b"], 2) == ([kept.message.text for kept in late.live], late.totals.next_seq)


@pytest.mark.parametrize("method", ["snapshot", "whole", "held", "branches", "keys"])
def test_what_is_read_is_of_one_instant(make: Making, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """A change that another thread makes in the middle of a read is in no part of what it returns."""
    store, there = make(), sqlite_rows.there
    say(store, "a", "b", "c")
    do(store.rewrite("s", (0, 3), Rewrite(Record(1, overhead_tokens=1), 2)))
    do(store.pin("s", Pin("p", "tea")))

    def meanwhile() -> None:
        do(store.pin("s", Pin("q", "milk")))
        do(store.rewrite("s", (1, 2), Rewrite(Record(2, overhead_tokens=2), 1, (entry(1, "user", "d"),))))

    def slow(db: sqlite3.Connection, session: str) -> sqlite_rows.Row:
        row = there(db, session)
        monkeypatch.setattr(sqlite_rows, "there", there)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(meanwhile).result()
        return row

    before = do(getattr(store, method)("s"))
    store._here.latest.drop("s")
    monkeypatch.setattr(sqlite_rows, "there", slow)

    assert before == do(getattr(store, method)("s"))
    assert before != do(getattr(store, method)("s"))


def test_nobody_is_not_remembered(make: Making) -> None:
    """A session that is not there takes no place among those that are."""
    store = make()
    do(store.snapshot("nobody"))
    say(store, "hello")
    do(store.snapshot("s"))

    assert ["s"] == list(store._here.latest._kept)


def test_the_latest_sessions_are_remembered() -> None:
    """The one that was put longest ago goes first; another epoch is another state."""
    latest = Latest(2)
    for session in "abac":
        latest.put(session, Parsed(1, Record()))
    latest.drop("nobody")

    assert [True, False, True] == [latest.get(session, 1) is not None for session in "abc"]
    assert None is latest.get("a", 2)
    latest.drop("a")
    assert None is latest.get("a", 1)


# ---------------------------------------------------------------------- event loops


def test_the_face_for_async_callers_is_one(make: Making) -> None:
    """Each call gives the same, which says what it stands for."""
    store = make()

    assert isinstance(store, Blocking)
    assert store.for_async() is store.for_async()
    assert f"Threaded({store!r})" == repr(store.for_async())


def test_the_face_works_on_one_thread_of_its_own() -> None:
    """Calls of several tasks and event loops, one of them closed by then, run on one thread that is not theirs."""

    class Noting(MemoryStore):
        async def read(self, session: str, start: int = 0, end: int | None = None) -> tuple[Entry, ...]:
            threads.append(current_thread())
            return ()

    async def many() -> None:
        await asyncio.gather(*(face.read("s") for _ in range(5)))

    threads: list[Thread] = []
    face = Threaded(Noting())
    asyncio.run(many())
    with ThreadPoolExecutor(2) as pool:
        for loop in [pool.submit(asyncio.run, many()) for _ in range(2)]:
            loop.result()

    assert (15, 1) == (len(threads), len(set(threads)))
    assert current_thread() not in threads
    face.close()
    assert not threads[0].is_alive()


def test_the_face_is_for_stores_that_do_not_suspend() -> None:
    """One that does is refused, with the name of the method."""

    class Suspending(MemoryStore):
        async def sessions(self, user: str | None = None) -> tuple[str, ...]:
            await asyncio.sleep(0)
            return ()

    face = Threaded(Suspending())

    with pytest.raises(AsyncOnly, match="await sessions"):
        asyncio.run(face.sessions())
    face.close()
    face.close()


def test_a_row_that_is_no_json_is_damage(make: Making, other: sqlite3.Connection) -> None:
    """A record that something else has written over is told as the store's fault."""
    store = make()
    do(store.append("s", [entry(0, "user", "a")]))
    do(store.commit("s", 0, Change(Record(1))))
    other.execute("UPDATE records SET record = '{'")

    with pytest.raises(StoreError, match="a row is no JSON"):
        do(store.whole("s"))
