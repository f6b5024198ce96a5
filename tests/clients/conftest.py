"""Fixtures of the clients' tests."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """Collect what a client leaves behind while the warnings of its test are ignored, and not in a later test."""
    yield
    gc.collect()
