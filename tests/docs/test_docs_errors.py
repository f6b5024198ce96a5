"""Every error that a user can meet is on its page, and within reach."""

from __future__ import annotations

import inspect
import re

import pytest
from pages import text

import slidemem
from slidemem import errors

PAGE = text("docs/errors.md")
HEADINGS = re.findall(r"^## (\w+)$", PAGE, re.MULTILINE)
ERRORS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.SlidememError)]


def test_the_page_has_every_error_and_no_other() -> None:
    """Each error has a heading of its own."""
    assert sorted(kind.__name__ for kind in ERRORS) == sorted(HEADINGS)


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_each_error_says_what_to_do(kind: type[Exception]) -> None:
    """Under its heading, and with the base that the table names for it."""
    said = re.search(rf"^## {kind.__name__}\n\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    row = re.search(rf"^\| \[`{kind.__name__}`\].*\| (?:`(\w+)` )?\|$", PAGE, re.MULTILINE)

    assert said is not None
    assert len(said[1].split()) > 8
    if row is not None and row[1] is not None:
        assert row[1] in {base.__name__ for base in kind.__mro__}


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_each_error_is_public(kind: type[Exception]) -> None:
    """It can be caught by a name of `slidemem`, and the tree in the module's docstring draws it."""
    assert kind is getattr(slidemem, kind.__name__, None)
    assert kind.__name__ in slidemem.__all__
    assert kind.__name__ in (errors.__doc__ or "")
