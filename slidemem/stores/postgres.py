"""Keeps sessions in PostgreSQL: for threads, processes and machines that share them.

Decides how a call reaches the server and what is done when it does not: connections come from psycopg's pools, one
for the sync callers of a process and one for each event loop. What is asked is `served.py`'s, what it does there
`postgres.sql`'s. Needs no more than plain statements in autocommit, so it works behind a pooler such as PgBouncer.
"""

from __future__ import annotations

import json
import os
import selectors
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any, Final
from weakref import finalize

from slidemem.errors import ConfigurationError, MissingExtra, StoreBusy, StoreError, StoreUnreachable
from slidemem.stores.loops import PerLoop
from slidemem.stores.postgres_schema import Run, prepare
from slidemem.stores.served import ServerStore, checked_connections, checked_prefix, checked_seconds

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
    from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolClosed, PoolTimeout
except ImportError as missing:
    raise MissingExtra("PostgresStore", "postgres") from missing

_ADVICE: Final = {
    "28": "see to user and password",
    "3D": "create the database, or name one that is there",
    "42501": "grant the role what docs/stores.md lists",
    "42": "was the schema changed by hand? drop it, or give slidemem another prefix",
    "53": "make room on the server, or let it take more connections",
    "25": "connect to a server that may be written to",
}
_REFUSALS: Final = (  # of a connection, for which libpq gives no code
    ("authentication failed", _ADVICE["28"]),
    ("role", _ADVICE["28"]),
    ("database", _ADVICE["3D"]),
)
_FOR_GOOD: Final = ("does not exist", '"')  # a server that starts or ends says something else
_DROPPED: Final = ("08", "57P")  # a connection that broke, a server that ends
_SESSION: Final = {"autocommit": True, "prepare_threshold": None}  # a pooler may give each statement another server


class PostgresStore(ServerStore):
    """A store on PostgreSQL; its methods never suspend, and any thread and process may call them.

    Async callers reach the same tables through `for_async`, which awaits the server and needs no thread. `with` the
    store, or `close` it, when its connections are to be let go before the process ends.

    Args:
        url: `postgresql://user:password@host:port/database?sslmode=verify-full&...`, whatever libpq takes
            (https://www.postgresql.org/docs/current/libpq-connect.html). It is shown nowhere.
        prefix: name of the schema that holds the tables; made if need be.
        ttl: seconds after its last write that a session is gone, whole; None for never.
        busy_seconds: how long a call waits for a free connection before it raises `StoreBusy`.
        connections: at most, of this process, and of each event loop.

    Raises:
        ConfigurationError: an argument is wrong.
        MissingExtra: psycopg is not installed.
        StoreError: of methods: the server cannot be reached, or refuses.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "slidemem",
        ttl: float | None = None,
        busy_seconds: float = 30.0,
        connections: int = 8,
    ) -> None:
        server = _Server(
            url,
            checked_prefix(prefix),
            checked_seconds("busy_seconds", busy_seconds),
            checked_connections(connections),
        )
        super().__init__(server.where, _SyncLink(server), _AsyncLink(server), ttl)


class _Server:
    """Which server it is, and what is the same for sync and async: statements, and what faults mean."""

    def __init__(self, url: str, prefix: str, busy_seconds: float, connections: int) -> None:
        try:
            parts = conninfo_to_dict(url)
        except psycopg.Error:
            parts = None
        if parts is None:  # outside of the clause: the fault shows a part of the URL, and passwords stand there
            raise ConfigurationError(
                "the PostgreSQL URL cannot be read: postgresql://user:password@host:port/database"
            )
        self.url = (
            url if "connect_timeout" in parts else make_conninfo(url, connect_timeout=max(2, int(busy_seconds)))
        )
        self.prefix = prefix
        self.busy_seconds = busy_seconds
        self.connections = connections
        self.where = f"{parts.get('host', 'localhost')}:{parts.get('port', 5432)}/{parts.get('dbname', '')}"
        self.prepared = False

    async def prepare(self, run: Run) -> None:
        """Bring the schema to the newest version, once for each process."""
        await prepare(run, self.prefix, self.where)
        self.prepared = True

    async def ask(self, run: Run, procedure: str, key: str, arguments: Mapping[str, Any]) -> Any:
        """The answer of a procedure, in one statement."""
        statement = f"SELECT {self.prefix}.{procedure}(%s, %s::jsonb)::text"
        ((answer,),) = await run(statement, (key, json.dumps(arguments)))
        return None if answer is None else json.loads(answer)

    def pooled(self) -> dict[str, Any]:
        """How a pool is made."""
        return {
            "conninfo": self.url,
            "kwargs": _SESSION,
            "min_size": 0,
            "max_size": self.connections,
            "timeout": self.busy_seconds,
            "open": False,
        }

    def told(self, fault: psycopg.Error) -> StoreError:
        """A fault as ours; what it quotes of rows and statements is left out."""
        if isinstance(fault, PoolClosed):
            return StoreError(self.where, "it was closed", "make another store")
        code, reason = fault.sqlstate or "", fault.diag.message_primary or _first_line(fault)
        refusal = reason.partition("FATAL:")[2]
        advice = [advice for sign, advice in _ADVICE.items() if code.startswith(sign)]
        advice += [advice for sign, advice in _REFUSALS if sign in refusal and refusal.endswith(_FOR_GOOD)]
        if isinstance(fault, psycopg.OperationalError) and (code.startswith(_DROPPED) or not (code or advice)):
            return StoreUnreachable(self.where, reason)
        return StoreError(self.where, reason, advice[0] if advice else "the cause is the server's")


class _SyncLink:
    """The way of sync callers, which never suspends: a pool for each process, since a fork shares no connections."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._pools: dict[int, ConnectionPool[psycopg.Connection[Any]]] = {}
        self._closed = False
        self._lock = Lock()
        finalize(self, _close_mine, self._pools)

    async def call(self, procedure: str, key: str, arguments: Mapping[str, Any]) -> Any:
        """See `Link.call`."""
        server = self._server
        try:
            pool = self._pool()
            if not server.prepared:
                with psycopg.connect(server.url, autocommit=True) as connection:
                    await server.prepare(_running(connection))
            while True:
                with pool.connection() as connection:
                    if not _is_over(connection.fileno()):
                        return await server.ask(_running(connection), procedure, key, arguments)
                    connection.close()  # so that the pool makes another in its place
        except PoolTimeout:
            self._reach()
            raise StoreBusy(server.where, server.busy_seconds) from None
        except psycopg.Error as fault:
            raise server.told(fault) from None  # the fault's own text may quote rows

    def _reach(self) -> None:
        """Raise what keeps a pool from getting connections, if that is not that all are in use."""
        try:
            psycopg.connect(self._server.url, autocommit=True).close()
        except psycopg.Error as fault:
            raise self._server.told(fault) from None

    def close(self) -> None:
        """Close the connections of this process."""
        self._closed = True
        _close_mine(self._pools)

    def _pool(self) -> ConnectionPool[psycopg.Connection[Any]]:
        with self._lock:
            if self._closed:
                raise PoolClosed
            pool = self._pools.get(os.getpid())
            if pool is None:
                pool = self._pools[os.getpid()] = ConnectionPool(**self._server.pooled())
                pool.open()
            return pool


class _AsyncLink:
    """The way of async callers: a pool for each event loop."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._pools: PerLoop[AsyncConnectionPool[psycopg.AsyncConnection[Any]]] = PerLoop(self._made, _close)

    async def call(self, procedure: str, key: str, arguments: Mapping[str, Any]) -> Any:
        """See `Link.call`."""
        server = self._server
        try:
            pool = await self._pools.get()
            if not server.prepared:
                async with await psycopg.AsyncConnection.connect(server.url, autocommit=True) as connection:
                    await server.prepare(_awaiting(connection))
            if pool.closed:
                await pool.open()
            while True:
                async with pool.connection() as connection:
                    if not _is_over(connection.fileno()):
                        return await server.ask(_awaiting(connection), procedure, key, arguments)
                    await connection.close()  # so that the pool makes another in its place
        except PoolTimeout:
            await self._reach()
            raise StoreBusy(server.where, server.busy_seconds) from None
        except psycopg.Error as fault:
            raise server.told(fault) from None  # the fault's own text may quote rows

    async def _reach(self) -> None:
        """Raise what keeps a pool from getting connections, if that is not that all are in use."""
        try:
            await (await psycopg.AsyncConnection.connect(self._server.url, autocommit=True)).close()
        except psycopg.Error as fault:
            raise self._server.told(fault) from None

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._pools.aclose()

    def _made(self) -> AsyncConnectionPool[psycopg.AsyncConnection[Any]]:
        return AsyncConnectionPool(**self._server.pooled())


def _running(connection: psycopg.Connection[Any]) -> Run:
    async def run(statement: str, parameters: Sequence[Any] | None = None) -> Sequence[Sequence[Any]]:
        cursor = connection.execute(statement.encode(), parameters)
        return cursor.fetchall() if cursor.description else ()

    return run


def _awaiting(connection: psycopg.AsyncConnection[Any]) -> Run:
    async def run(statement: str, parameters: Sequence[Any] | None = None) -> Sequence[Sequence[Any]]:
        cursor = await connection.execute(statement.encode(), parameters)
        return await cursor.fetchall() if cursor.description else ()

    return run


def _is_over(socket: int) -> bool:
    """Whether an idle connection was ended, without asking the server: from one that is alive nothing can be read.

    A pool could be given this to check by, but it waits a second after each that fails, and longer each time.
    """
    with selectors.DefaultSelector() as selector:
        selector.register(socket, selectors.EVENT_READ)
        return bool(selector.select(0))


async def _close(pool: AsyncConnectionPool[Any]) -> None:
    await pool.close()


def _close_mine(pools: dict[int, ConnectionPool[Any]]) -> None:
    """Close the pool of this process; those of a parent are the parent's."""
    pool = pools.get(os.getpid())
    if pool is not None:
        pool.close()


def _first_line(fault: psycopg.Error) -> str:
    return str(fault).partition("\n")[0] or type(fault).__name__
