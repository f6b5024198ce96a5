"""Fixtures of the tests that need a server."""

from collections.abc import Iterator

import pytest
from sv_places import Place


@pytest.fixture(params=["postgres", "redis"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A place for stores on each server."""
    made = Place(request.param)
    yield made
    made.close()
