"""Lets tests import the benchmarks, and gives them what every memory is made with."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))


def letters(text: str) -> list[int]:
    """A tokenizer: a token for each character, so that a test can say what a text costs."""
    return [0] * len(text)


@pytest.fixture
def count() -> object:
    """The benchmark's counter over that tokenizer."""
    from peers.counting import Counter  # noqa: PLC0415  # from where the line above says

    return Counter(letters)
