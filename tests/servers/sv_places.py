"""Places for tests on the servers: which servers there are, and an empty prefix on one of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
import redis

from slidemem.stores.postgres import PostgresStore
from slidemem.stores.redis import RedisStore

POSTGRES = os.environ.get("SLIDEMEM_POSTGRES", "postgresql://postgres@127.0.0.1:5432/slidemem")
REDIS = os.environ.get("SLIDEMEM_REDIS", "redis://127.0.0.1:6379/0")
TABLES = ("sessions", "records", "messages", "branches", "segments", "pins", "documents", "postings")
Made = PostgresStore | RedisStore


def run(statement: str, *parameters: Any) -> list[Any]:
    """Rows of a statement on the server."""
    with psycopg.connect(POSTGRES, autocommit=True, connect_timeout=5) as connection:
        cursor = connection.execute(statement.encode(), parameters or None)
        return cursor.fetchall() if cursor.description else []


@contextmanager
def talking() -> Iterator[redis.Redis]:
    """A client of Redis."""
    client = redis.Redis.from_url(REDIS, socket_connect_timeout=5, decode_responses=False)
    try:
        yield client
    finally:
        client.close()


def reached(name: str) -> str:
    """Why a server cannot be reached; "" when it can, and then PostgreSQL has a database of ours."""
    try:
        if name == "redis":
            with talking() as client:
                client.ping()
        else:
            _make_database()
    except (psycopg.Error, redis.RedisError, OSError) as fault:
        return str(fault).partition("\n")[0]
    return ""


def _make_database() -> None:
    base, _, name = POSTGRES.rpartition("/")
    with psycopg.connect(f"{base}/postgres", autocommit=True, connect_timeout=5) as connection:
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone():
            connection.execute(f'CREATE DATABASE "{name}"'.encode())


def needed(name: str) -> None:
    """Skip the test where a server cannot be reached; fail where `SLIDEMEM_SERVERS=required`."""
    reason = _REACHED.setdefault(name, reached(name))
    if reason and os.environ.get("SLIDEMEM_SERVERS") == "required":
        pytest.fail(f"{name} is required and cannot be reached: {reason}")
    if reason:
        pytest.skip(f"no server: {name} ({reason})")


_REACHED: dict[str, str] = {}
MADE: set[str] = set()  # schemas of this process


def prefix(at: int) -> str:
    """A prefix that no other process of the test run has."""
    return f"test_{os.getpid()}_{at}"


def emptied_postgres(name: str) -> None:
    """Delete what a schema holds; one of an earlier run goes altogether, since its functions may be older."""
    if name not in MADE:
        MADE.add(name)
        run(f"SET client_min_messages = warning; DROP SCHEMA IF EXISTS {name} CASCADE")
    elif run("SELECT to_regclass(%s)", f"{name}.version")[0][0]:
        run(";".join(f"DELETE FROM {name}.{table}" for table in TABLES))


def dropped_all() -> None:
    """Take away what this process has made."""
    for name in MADE:
        run(f"SET client_min_messages = warning; DROP SCHEMA IF EXISTS {name} CASCADE")
    if not _REACHED.get("redis", "not asked"):
        emptied_redis(f"test_{os.getpid()}_*")


def emptied_redis(name: str) -> None:
    """Delete all keys that begin with a prefix."""
    with talking() as client:
        keys = list(client.scan_iter(f"{name}:*", count=1000))
        for first in range(0, len(keys), 1000):
            client.unlink(*keys[first : first + 1000])


class Place:
    """Makes stores on one server, each on a prefix of its own, empty at first.

    Args:
        name: `postgres` or `redis`.
    """

    def __init__(self, name: str) -> None:
        needed(name)
        self.name = name
        self.made: list[Made] = []
        self.prefixes = 0

    @property
    def url(self) -> str:
        """Of the server."""
        return POSTGRES if self.name == "postgres" else REDIS

    def fresh(self) -> str:
        """An empty prefix."""
        name = prefix(self.prefixes)
        self.prefixes += 1
        empty: Callable[[str], None] = emptied_postgres if self.name == "postgres" else emptied_redis
        empty(name)
        return name

    def store(self, **options: Any) -> Made:
        """A store on an empty prefix, or on one that is given."""
        options = {"prefix": options.get("prefix") or self.fresh(), **options}
        kind: Callable[..., Made] = PostgresStore if self.name == "postgres" else RedisStore
        self.made.append(kind(options.pop("url", self.url), **options))
        return self.made[-1]

    def close(self) -> None:
        """Let go of all connections."""
        for store in self.made:
            store.close()


def dump(name: str, where: str) -> str:
    """Everything that a server holds under a prefix, as text."""
    if name == "postgres":
        rows = [run(f"SELECT t::text FROM {where}.{table} t") for table in TABLES]
        return "\n".join(str(row) for table in rows for row in table)
    with talking() as client:
        return "\n".join(_told(client, key) for key in client.scan_iter(f"{where}:*", count=1000))


def _told(client: Any, key: bytes) -> str:
    read = {
        b"hash": client.hgetall,
        b"zset": lambda k: client.zrange(k, 0, -1),
        b"list": lambda k: client.lrange(k, 0, -1),
        b"set": client.smembers,
        b"string": client.get,
    }
    return f"{key!r} {read[client.type(key)](key)!r}"
