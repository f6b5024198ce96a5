"""Values that were read from outside, held against what their fields say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from slidemem.shape import misfit


@dataclass(frozen=True)
class Inner:
    """A value within another."""

    at: float
    kind: Literal["a", "b"] = "a"


@dataclass(frozen=True)
class Outer:
    """A value with a field of each sort."""

    name: str
    count: int = 0
    flag: bool = False
    inner: Inner | None = None
    many: tuple[Inner, ...] = ()
    pair: tuple[str, int] = ("x", 1)


WRONG: dict[str, tuple[Any, str]] = {
    "text": (Outer(7), "name is 7"),  # type: ignore[arg-type]
    "number": (Outer("n", "1"), "count is '1'"),  # type: ignore[arg-type]
    "truth for a number": (Outer("n", True), "count is True"),  # noqa: FBT003  # the row's subject
    "number for a truth": (Outer("n", 1, 0), "flag is 0"),  # type: ignore[arg-type]
    "none of a union": (Outer("n", inner="i"), "inner is 'i'"),  # type: ignore[arg-type]
    "within": (Outer("n", inner=Inner("late")), "inner.at is 'late'"),  # type: ignore[arg-type]
    "literal": (Outer("n", many=(Inner(1.0), Inner(1.0, "c"))), "many[1].kind is 'c'"),  # type: ignore[arg-type]
    "list for a tuple": (Outer("n", many=[Inner(1.0)]), "many is [Inner(at=1.0, kind='a')]"),  # type: ignore[arg-type]
    "length": (Outer("n", pair=("x", 1, 2)), "pair is ('x', 1, 2)"),  # type: ignore[arg-type]
    "place": (Outer("n", pair=("x", "y")), "pair[1] is 'y'"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("value, expected", WRONG.values(), ids=WRONG.keys())
def test_the_first_misfit_is_named(value: Any, expected: str) -> None:
    """What a field holds wrongly is told with its place and its value."""
    assert expected == misfit(value)


def test_what_fits_is_told_by_silence() -> None:
    """Whole numbers are numbers, and every field of its own type is right."""
    value = Outer("n", 1, flag=True, inner=Inner(1), many=(Inner(2.5, "b"),), pair=("x", 2))

    assert "" == misfit(value)
