"""Fixtures of the tests that need a server."""

from collections.abc import Iterator

import pytest
from sv_places import Place, dropped_all


@pytest.fixture(scope="session", autouse=True)
def _swept() -> Iterator[None]:
    """Leave nothing on the servers."""
    yield
    dropped_all()


@pytest.fixture(params=["postgres", "redis"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A place for stores on each server."""
    made = Place(request.param)
    yield made
    made.close()
