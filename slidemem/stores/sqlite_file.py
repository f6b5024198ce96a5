"""Decides how an SQLite database is opened and shared, and what its faults are called.

On a file each thread has a connection of its own, closed when the thread ends; in memory there is one, which the
threads take in turns. A forked child touches nothing that it inherited: SQLite forbids it. Writers of one process
queue at a lock, since SQLite's own waiting is a poll that sleeps; only writers of other processes are waited for
there. What was deleted is overwritten.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from threading import Lock, local
from typing import Final, Literal
from weakref import WeakSet, finalize

from slidemem.errors import StoreBusy, StoreError
from slidemem.stores.sqlite_schema import newest, transaction, upgrade, version

Synchronous = Literal["full", "normal"]

_PAUSE: Final = 0.01  # seconds between two tries at what SQLite itself does not wait for
_ADVICE: Final = (
    ("unable to open", "see that its folder is there, and that it is a file that may be read and written"),
    ("not a database", "move the file away, or give slidemem one of its own"),
    ("malformed", "it is damaged: restore a copy of it, or salvage it with sqlite3's .recover"),
    ("readonly", "make the file and its folder writable"),
    ("full", "make room on its disk"),
    ("closed", "it was closed: make another store"),
)
_INHERITED: list[sqlite3.Connection] = []  # kept from being closed


class _Connection:
    """A connection, used by one call at a time; closed with its last reference, and at exit."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.lock = Lock()
        self.close = finalize(self, _closed, db, os.getpid())


def _closed(db: sqlite3.Connection, pid: int) -> None:
    if pid == os.getpid():
        db.close()
    else:
        _INHERITED.append(db)


class Connections:
    """What one process has open of a database.

    Args:
        path: of the file; None in memory.
        busy_seconds: how long a writer waits for others.
        synchronous: `full` writes each commit through to the disk, `normal` leaves the last ones to the system.
    """

    def __init__(self, path: str | None, busy_seconds: float, synchronous: Synchronous) -> None:
        self._path = path
        self._where = path or "in memory"
        self._busy_seconds = busy_seconds
        self._synchronous = synchronous
        self._queue = Lock()
        self._local = local()
        self._lock = Lock()
        self._all: WeakSet[_Connection] = WeakSet()
        self._gone = False
        self._only = None if path else self._opened()

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection, None, None]:
        """A transaction that reads, as of one instant."""
        with self._using() as db, transaction(db, "BEGIN"):
            yield db

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection, None, None]:
        """A transaction that writes: all of it, or nothing."""
        if not self._queue.acquire(timeout=self._busy_seconds):
            raise StoreBusy(self._where, self._busy_seconds)
        try:
            with self._using() as db, transaction(db, "BEGIN IMMEDIATE"):
                yield db
        finally:
            self._queue.release()

    def settle(self) -> None:
        """Move the log into the file and empty it, if nobody is in the way: otherwise a later write does."""
        with self._using() as db:
            db.execute("PRAGMA busy_timeout = 0")
            try:
                with suppress(sqlite3.Error):  # the change that comes before is committed, and must not seem to fail
                    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                db.execute(f"PRAGMA busy_timeout = {int(self._busy_seconds * 1000)}")

    def touch(self) -> None:
        """Open the database, or raise what is wrong with it."""
        with self._using():
            pass

    def close(self) -> None:
        """Close every connection, each once its call is done; later calls raise `StoreError`."""
        self._gone = True
        with self._lock:
            connections = list(self._all)
        for connection in connections:
            with connection.lock:
                connection.close()

    @contextmanager
    def _using(self) -> Generator[sqlite3.Connection, None, None]:
        """This thread's connection for one call, with SQLite's errors as ours."""
        try:
            connection = self._mine()
            with connection.lock:
                if self._gone:
                    connection.close()
                yield connection.db
        except sqlite3.Error as error:
            raise self._told(error) from error
        except json.JSONDecodeError as error:
            raise StoreError(self._where, f"a row is no JSON: {error}", "restore a copy of it") from error
        except OverflowError as error:
            raise StoreError(self._where, f"{error}", "a number is larger than any that is meant") from error

    def _mine(self) -> _Connection:
        mine: _Connection | None = self._only or getattr(self._local, "mine", None)
        if mine is None:
            mine = self._local.mine = self._opened()
        return mine

    def _opened(self) -> _Connection:
        db = sqlite3.connect(
            self._path or ":memory:", timeout=self._busy_seconds, isolation_level=None, check_same_thread=False
        )
        connection = _Connection(db)
        try:
            self._set_up(db)
        except BaseException:
            connection.close()
            raise
        with self._lock:
            self._all.add(connection)
        return connection

    def _set_up(self, db: sqlite3.Connection) -> None:
        db.execute(f"PRAGMA synchronous = {self._synchronous}")
        db.execute("PRAGMA secure_delete = ON")
        found = version(db, self._where)
        if self._path is not None:
            self._keep_log(db)
        if found < newest():
            upgrade(db)

    def _keep_log(self, db: sqlite3.Connection) -> None:
        """Have readers and a writer not wait for each other; SQLite does not wait where two ask for it at once."""
        deadline = time.monotonic() + self._busy_seconds
        while not _logs(db, deadline):
            time.sleep(_PAUSE)

    def _told(self, error: sqlite3.Error) -> StoreError:
        if _locked(error):
            return StoreBusy(self._where, self._busy_seconds)
        advice = (advice for sign, advice in _ADVICE if sign in str(error))
        return StoreError(self._where, str(error), next(advice, "the cause is SQLite's"))


def _locked(error: sqlite3.Error) -> bool:
    return "is locked" in str(error)


def _logs(db: sqlite3.Connection, deadline: float) -> bool:
    """Whether the database keeps a write-ahead log now; raises when somebody is in the way after the deadline."""
    try:
        db.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as error:
        if not _locked(error) or time.monotonic() > deadline:
            raise
        return False
    return True
