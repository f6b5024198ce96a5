"""Keeps sessions in Redis: for threads, processes and machines that share them.

Decides how a call reaches the server and what is done when it does not. What is asked is `served.py`'s, what it does
there `redis.lua`'s: each call is one script, which Redis runs whole. The keys of a session are not in one slot of
a cluster: Redis Cluster is not supported.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha1
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from typing import Any, Final, cast
from urllib.parse import urlsplit

from slidemem.errors import ConfigurationError, MissingExtra, StoreBusy, StoreError, StoreUnreachable
from slidemem.stores.loops import PerLoop
from slidemem.stores.served import ServerStore, checked_connections, checked_prefix, checked_seconds

try:
    import redis
    import redis.asyncio
    from redis.asyncio.retry import Retry as AsyncRetry
    from redis.backoff import NoBackoff
    from redis.exceptions import NoScriptError, RedisError
    from redis.retry import Retry
except ImportError as missing:
    raise MissingExtra("RedisStore", "redis") from missing

# With them a client of redis-py 8 takes an idle connection that its server has ended for one that works.
_NOTIFICATIONS: Final = "redis.maint_notifications"  # of redis-py 7 and newer
_QUIET: Final[dict[str, Any]] = (
    {"maint_notifications_config": import_module(_NOTIFICATIONS).MaintNotificationsConfig(enabled=False)}
    if find_spec(_NOTIFICATIONS)
    else {}
)
_UNTYPED: Final = cast("Any", redis)  # some of redis-py's methods have no types
_ASYNC: Final = cast("Any", redis.asyncio)
_PARTS: Final = ("head", "messages", "ids", "documents", "postings", "branches", "segments", "pins")
_ADVICE: Final = (
    ("OOM", "give it more maxmemory, and let it evict nothing"),
    ("READONLY", "connect to the server that may be written to"),
    ("NOPERM", "grant the user what docs/stores.md lists"),
    ("no permissions", "grant the user what docs/stores.md lists"),
    ("AUTH", "see to user and password"),
    ("Authentication", "see to user and password"),
    ("invalid username-password", "see to user and password"),
    ("MISCONF", "see why the server cannot write to its disk"),
)


class RedisStore(ServerStore):
    """A store on Redis; its methods never suspend, and any thread and process may call them.

    Async callers reach the same keys through `for_async`, which awaits the server and needs no thread. What was
    written outlives the server if it keeps an append-only file. `with` the store, or `close` it, when its connections
    are to be let go before the process ends.

    Args:
        url: `redis://user:password@host:port/0`, or `rediss://...?ssl_ca_certs=...`, whatever redis-py takes
            (https://redis.readthedocs.io/en/stable/connections.html). It is shown nowhere.
        prefix: begins the names of all keys, with a colon after it.
        ttl: seconds after its last write that a session is gone, whole; None for never.
        busy_seconds: how long a call waits for a free connection before it raises `StoreBusy`, and for an answer,
            unless the URL has a `socket_timeout`, before it raises `StoreUnreachable`.
        connections: at most, of this process, and of each event loop.

    Raises:
        ConfigurationError: an argument is wrong.
        MissingExtra: redis-py is not installed.
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
    """Which server it is, and what is the same for sync and async: keys, arguments, and what faults mean."""

    def __init__(self, url: str, prefix: str, busy_seconds: float, connections: int) -> None:
        self.url = url
        self.prefix = prefix
        self.busy_seconds = busy_seconds
        self.connections = connections
        try:
            parts, made = urlsplit(url), _UNTYPED.ConnectionPool.from_url(url)
            self.where = f"{parts.hostname or 'localhost'}:{parts.port or 6379}/{made.connection_kwargs.get('db', 0)}"
        except (ValueError, TypeError):
            self.where = ""
        if not self.where:  # outside of the clause: the fault shows a part of the URL, and passwords stand there
            raise ConfigurationError("the Redis URL cannot be read: redis://user:password@host:port/0")
        self.script = (files("slidemem.stores") / "redis.lua").read_bytes()
        self.sha = sha1(self.script, usedforsecurity=False).hexdigest()

    def pooled(self, retry: Any) -> dict[str, Any]:
        """How a pool is made. What failed is never sent again by the client: it may have happened."""
        return {
            "max_connections": self.connections,
            "timeout": self.busy_seconds,
            "retry": retry,
            "retry_on_error": [],
            "socket_timeout": self.busy_seconds,
            "socket_connect_timeout": self.busy_seconds,
            **_QUIET,
        }

    def asked(self, procedure: str, key: str, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        """What follows the script: its keys and arguments."""
        keys = [f"{self.prefix}:{key}:{part}" for part in _PARTS]
        keys += [f"{self.prefix}:all", f"{self.prefix}:count"]
        return (len(keys), *keys, procedure, key, json.dumps(arguments), f"{self.prefix}:")

    def told(self, fault: RedisError | OSError) -> StoreError:
        """A fault as ours."""
        reason = str(fault).partition("\n")[0] or type(fault).__name__
        advice = next((advice for sign, advice in _ADVICE if sign.lower() in reason.lower()), None)
        if "No connection available" in reason:
            return StoreBusy(self.where, self.busy_seconds)
        dropped = isinstance(fault, (redis.ConnectionError, redis.TimeoutError, OSError))
        if dropped and advice is None:
            return StoreUnreachable(self.where, reason)
        return StoreError(self.where, reason, advice or "the cause is the server's")


class _SyncLink:
    """The way of sync callers, which never suspends; redis-py sees to it that a fork shares no connections."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        pooled = server.pooled(Retry(NoBackoff(), 0))
        self._client = _UNTYPED.Redis(connection_pool=_UNTYPED.BlockingConnectionPool.from_url(server.url, **pooled))
        self._closed = False

    async def call(self, procedure: str, key: str, arguments: Mapping[str, Any]) -> Any:
        """See `Link.call`."""
        asked = self._server.asked(procedure, key, arguments)
        server = self._server
        execute = self._client.execute_command
        if self._closed:
            raise StoreError(server.where, "it was closed", "make another store")
        try:
            try:
                return json.loads(execute("EVALSHA", server.sha, *asked))
            except NoScriptError:
                return json.loads(execute("EVAL", server.script, *asked))
        except (RedisError, OSError) as fault:
            raise server.told(fault) from fault

    def close(self) -> None:
        """Close the connections of this process."""
        self._closed = True
        self._client.connection_pool.disconnect()


class _AsyncLink:
    """The way of async callers: a client for each event loop."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._clients: PerLoop[Any] = PerLoop(self._made, _closed)

    async def call(self, procedure: str, key: str, arguments: Mapping[str, Any]) -> Any:
        """See `Link.call`."""
        asked = self._server.asked(procedure, key, arguments)
        server = self._server
        execute = (await self._clients.get()).execute_command
        try:
            try:
                return json.loads(await execute("EVALSHA", server.sha, *asked))
            except NoScriptError:
                return json.loads(await execute("EVAL", server.script, *asked))
        except (RedisError, OSError) as fault:
            raise server.told(fault) from fault

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._clients.aclose()

    def _made(self) -> Any:
        pooled = self._server.pooled(AsyncRetry(NoBackoff(), 0))
        pool = _ASYNC.BlockingConnectionPool.from_url(self._server.url, **pooled)
        return _ASYNC.Redis.from_pool(pool)


async def _closed(client: Any) -> None:
    await client.aclose()
