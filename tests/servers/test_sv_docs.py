"""The document of stores runs as it stands, on the servers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sv_places import POSTGRES, REDIS, needed, run

PAGE = Path(__file__).parent.parent.parent / "docs" / "stores.md"


@pytest.mark.usefixtures("vocabulary")
def test_the_document_of_stores_runs() -> None:
    """Every Python block of it, in order."""
    needed("postgres")
    needed("redis")
    run("SET client_min_messages = warning; DROP SCHEMA IF EXISTS slidemem CASCADE")
    text = PAGE.read_text(encoding="utf-8")
    program = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    for shown, here in (
        ("postgresql://postgres@127.0.0.1:5432/slidemem", POSTGRES),
        ("redis://127.0.0.1:6379/0", REDIS),
    ):
        assert f'"{shown}"' in program
        program = program.replace(shown, here)

    exec(compile(program, str(PAGE), "exec"), {"__name__": "stores"})  # noqa: S102  # our own document


def test_the_rights_of_redis_are_those_that_are_tested() -> None:
    """The user of the document is the one that the test of least rights makes."""
    shown = re.search(r"ACL SETUSER chat on >secret ~slidemem:\* (.*)", PAGE.read_text(encoding="utf-8"))
    tested = Path(__file__).with_name("test_sv_stores.py").read_text(encoding="utf-8")

    assert shown is not None
    assert [] == [right for right in shown[1].split() if f'"{right}"' not in tested]
