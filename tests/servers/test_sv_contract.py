"""The contract of a store, run for those on servers, sync and async."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sv_places import Place

from slidemem.contract import StoreContract
from slidemem.stores.base import Store


class OnAServer(StoreContract):
    name = "postgres"

    @pytest.fixture(autouse=True)
    def at(self) -> Iterator[None]:
        """Let go of the connections afterwards."""
        self.place = Place(self.name)
        yield
        self.place.close()


class TestPostgres(OnAServer):
    def store(self) -> Store:
        """Tables of their own."""
        return self.place.store()


class TestPostgresAwaited(OnAServer):
    awaited = True

    def store(self) -> Store:
        """The face that async callers use."""
        return self.place.store().for_async()


class TestRedis(OnAServer):
    name = "redis"

    def store(self) -> Store:
        """Keys of their own."""
        return self.place.store()


class TestRedisAwaited(TestRedis):
    awaited = True

    def store(self) -> Store:
        """The face that async callers use."""
        return self.place.store().for_async()


class TestWithATime(OnAServer):
    """A session whose time is not over is like any other."""

    def store(self) -> Store:
        """One that forgets in an hour."""
        return self.place.store(ttl=3600)


class TestRedisWithATime(TestWithATime):
    name = "redis"
