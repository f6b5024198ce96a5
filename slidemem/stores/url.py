"""Decides which store a `store=` argument means: an object as it is, a URL by its scheme, nothing in memory."""

from __future__ import annotations

import re
from typing import Final

from slidemem.errors import ConfigurationError
from slidemem.stores.base import Postings, Records, Store, Transcript
from slidemem.stores.memory import MemoryStore

_KNOWN: Final = (
    "sqlite:///chat.db (a file beside the process), sqlite:////var/lib/chat.db (an absolute path), "
    "sqlite:// (in memory), postgresql://user:password@host:port/database, redis://host:port/0 and rediss://"
)


def open_store(given: Store | str | None) -> Store:
    """The store that was asked for.

    Args:
        given: None for one in this process, a `Store`, or a URL: `sqlite:///relative.db`, `sqlite:////absolute.db`,
            and in memory `sqlite://` or `sqlite:///:memory:`, the path as it is, not encoded; `postgresql://` as
            libpq takes it, `redis://` and `rediss://` as redis-py does.

    Raises:
        ConfigurationError: the object lacks methods of a store, or the URL names none that is known.
        MissingExtra: what the URL's store needs is not installed.
        StoreError: the URL's file cannot be used.
    """
    if given is None:
        return MemoryStore()
    return _of_url(given) if isinstance(given, str) else _checked(given)


def _checked(store: Store) -> Store:
    if isinstance(store, type):
        raise ConfigurationError(f"store must be a store, not its class: make one with {store.__name__}(...)")
    missing = [name for name in _methods() if not callable(getattr(store, name, None))]
    if missing:
        raise ConfigurationError(
            f"store must follow slidemem.stores.base.Store; {type(store).__name__} has no {', '.join(missing)}"
        )
    return store


def _methods() -> list[str]:
    """Names of the methods that the protocols ask for, each once."""
    named = [name for part in (Transcript, Records, Postings, Store) for name in vars(part)]
    return [name for name in dict.fromkeys(named) if not name.startswith("_")]


def _of_url(url: str) -> Store:
    scheme, found, place = url.partition("://")
    if not found or not re.fullmatch(r"[a-z][a-z0-9+.-]*", scheme):
        raise ConfigurationError(f"store must be a Store or a URL, and this text is no URL; known are {_KNOWN}")
    if scheme in {"postgresql", "postgres"}:
        return _postgres(url)
    if scheme in {"redis", "rediss"}:
        return _redis(url)
    if scheme != "sqlite":  # the rest is not shown: passwords stand there
        raise ConfigurationError(f"store {scheme}://… is not known; known are {_KNOWN}")
    if place in {"", "/", "/:memory:"}:
        return _sqlite(None)
    if not place.startswith("/") or "?" in place:
        raise ConfigurationError(f"a sqlite URL has a path and nothing else; known are {_KNOWN}")
    return _sqlite(place[1:])


def _sqlite(path: str | None) -> Store:
    from slidemem.stores.sqlite import SQLiteStore  # noqa: PLC0415  # a Python may come without its sqlite3

    return SQLiteStore(path)


def _postgres(url: str) -> Store:
    from slidemem.stores.postgres import PostgresStore  # noqa: PLC0415  # needs an extra

    return PostgresStore(url)


def _redis(url: str) -> Store:
    from slidemem.stores.redis import RedisStore  # noqa: PLC0415  # needs an extra

    return RedisStore(url)
