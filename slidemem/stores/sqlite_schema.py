"""Decides which tables an SQLite database of sessions has, and how an older one becomes a newer one.

A session's row is small, since every append writes it anew: the record stands in a table of its own. Messages are
clustered by session and branch, so that the live ones lie together; what keys need stands before their texts. Ids
and other text of hosts are UTF-8 blobs in which lone surrogates pass; values are JSON of ASCII characters.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from slidemem.errors import StoreError
from slidemem.messages import from_json
from slidemem.post import post_of
from slidemem.stores import sqlite_postings as postings

_APPLICATION: Final = 0x736C6D6D  # "slmm": tells a database of ours from another program's

_FIRST: Final = (
    """
    CREATE TABLE sessions(
        n INTEGER PRIMARY KEY,
        id BLOB NOT NULL UNIQUE,
        epoch INTEGER NOT NULL,
        revision INTEGER NOT NULL DEFAULT 0,
        boundary INTEGER NOT NULL DEFAULT 0,
        segments INTEGER NOT NULL DEFAULT 0,
        next_seq INTEGER NOT NULL DEFAULT 0,
        live_tokens INTEGER NOT NULL DEFAULT 0,
        live_turns INTEGER NOT NULL DEFAULT 0,
        anchor_tokens INTEGER NOT NULL DEFAULT 0,
        overhead_tokens INTEGER NOT NULL DEFAULT 0,
        counter BLOB NOT NULL DEFAULT x'',
        holder BLOB,
        until REAL,
        metadata TEXT NOT NULL DEFAULT '[]'
    )
    """,
    """
    CREATE TABLE records(
        session INTEGER PRIMARY KEY,
        record TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE messages(
        session INTEGER NOT NULL,
        branch INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        host_id BLOB,
        digest TEXT NOT NULL,
        role TEXT NOT NULL,
        shown_digest TEXT NOT NULL,
        tokens INTEGER NOT NULL,
        whole_tokens INTEGER NOT NULL,
        at REAL NOT NULL,
        counter BLOB NOT NULL,
        message TEXT NOT NULL,
        shown TEXT,
        PRIMARY KEY(session, branch, seq)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX messages_by_host_id ON messages(session, host_id) WHERE branch = 0 AND host_id IS NOT NULL",
    """
    CREATE TABLE branches(
        session INTEGER NOT NULL,
        branch INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        PRIMARY KEY(session, branch)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE segments(
        n INTEGER PRIMARY KEY,
        session INTEGER NOT NULL,
        id BLOB NOT NULL,
        segment TEXT NOT NULL,
        UNIQUE(session, id)
    )
    """,
    """
    CREATE TABLE pins(
        n INTEGER PRIMARY KEY,
        session INTEGER NOT NULL,
        id BLOB NOT NULL,
        pin TEXT NOT NULL,
        UNIQUE(session, id)
    )
    """,
)

_SECOND: Final = (
    """
    CREATE TABLE documents(
        session INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        length INTEGER NOT NULL,
        at REAL NOT NULL,
        speaker BLOB NOT NULL,
        terms TEXT NOT NULL,
        upto INTEGER NOT NULL,
        PRIMARY KEY(session, seq)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE postings(
        session INTEGER NOT NULL,
        term BLOB NOT NULL,
        seq INTEGER NOT NULL,
        count INTEGER NOT NULL,
        PRIMARY KEY(session, term, seq)
    ) WITHOUT ROWID
    """,
)


def _first(db: sqlite3.Connection) -> None:
    """Sessions, their records, messages, branches, segments and pins."""
    for statement in _FIRST:
        db.execute(statement)


def _second(db: sqlite3.Connection) -> None:
    """What messages are found by; those that are there are found by all that they say."""
    for statement in _SECOND:
        db.execute(statement)
    there = db.execute("SELECT session, seq, message, at FROM messages WHERE branch = 0 ORDER BY session, seq")
    for n, seq, message, at in there.fetchall():
        postings.put(db, n, seq, post_of(from_json(json.loads(message)), at))


def _third(db: sqlite3.Connection) -> None:
    """Whose a session is; of those that are there nobody knows."""
    db.execute("ALTER TABLE sessions ADD COLUMN user BLOB")
    db.execute("CREATE INDEX sessions_by_user ON sessions(user) WHERE user IS NOT NULL")


_UPGRADES: tuple[Callable[[sqlite3.Connection], None], ...] = (
    _first,
    _second,
    _third,
)  # each makes version n + 1 of version n


@contextmanager
def transaction(db: sqlite3.Connection, begin: str) -> Generator[None, None, None]:
    """One transaction: committed at the end, and undone whatever ends it before."""
    try:
        db.execute(begin)
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk, say, has ended it already
            db.execute("ROLLBACK")
        raise


def version(db: sqlite3.Connection, where: str) -> int:
    """The schema version of a database; 0 when it is empty.

    Raises:
        StoreError: it is another program's, or of a newer slidemem.
    """
    with transaction(db, "BEGIN"):
        application, found = _number(db, "PRAGMA application_id"), _number(db, "PRAGMA user_version")
        tables = _number(db, "SELECT COUNT(*) FROM sqlite_master")
    if tables and application != _APPLICATION:
        raise StoreError(where, "it is the database of another program", "give slidemem a file of its own")
    if found > len(_UPGRADES):
        reason = f"its schema is version {found} and this slidemem knows versions up to {len(_UPGRADES)}"
        raise StoreError(where, reason, "upgrade slidemem, or give it another file")
    return found


def upgrade(db: sqlite3.Connection) -> None:
    """Bring a database to the newest version; whoever comes second finds it done."""
    with transaction(db, "BEGIN EXCLUSIVE"):
        for step in _UPGRADES[_number(db, "PRAGMA user_version") :]:
            step(db)
        db.execute(f"PRAGMA user_version = {len(_UPGRADES)}")
        db.execute(f"PRAGMA application_id = {_APPLICATION}")


def newest() -> int:
    """The schema version that this slidemem writes."""
    return len(_UPGRADES)


def _number(db: sqlite3.Connection, statement: str) -> int:
    number: int = db.execute(statement).fetchone()[0]
    return number
