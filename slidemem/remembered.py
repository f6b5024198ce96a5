"""Decides what pure functions remember of the texts they were given, and that all of it can be forgotten.

The same lines and words are asked of again and again, so their answers are kept in this process, for all sessions
together. Where a session is deleted nothing of it may stay, so all is forgotten, and found again as it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

_KEPT: Final[list[Any]] = []


def remembered(most: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Keep the answers of a pure function of hashable arguments, `most` of them, the latest asked for."""

    def kept(function: Callable[P, R]) -> Callable[P, R]:
        answers: Any = lru_cache(maxsize=most)(function)
        _KEPT.append(answers)
        return cast("Callable[P, R]", answers)

    return kept


def forget_texts() -> None:
    """Let go of all that is remembered of texts."""
    for answers in _KEPT:
        answers.cache_clear()
