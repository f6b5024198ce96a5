"""Fixtures of the LangChain adapter's tests."""

import itertools

import pytest

_numbers = itertools.count()


@pytest.fixture
def fresh() -> str:
    """A session id that no other test uses: histories of one process share their store."""
    return f"session-{next(_numbers)}"
