"""Every option of a memory is on its page, with its default."""

from __future__ import annotations

import inspect
import re

import pytest
from pages import text

from slidemem import Options, SlideMem

ROWS = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", text("docs/options.md"), re.MULTILINE))
ARGUMENTS = {name for name in inspect.signature(SlideMem).parameters if name != "options"}


@pytest.mark.parametrize("name", [name for name, field in Options.model_fields.items() if not field.is_required()])
def test_an_option_is_there_with_its_default(name: str) -> None:
    """The page says what an option is when it is left out."""
    expected = f"`{Options(max_tokens=1).__getattribute__(name)!r}`"

    assert expected == ROWS[name]


def test_the_page_has_every_argument_and_no_other() -> None:
    """What SlideMem takes is what the page lists."""
    assert ARGUMENTS | set(Options.model_fields) == set(ROWS)
