"""Where the documents are, and what of them the tests read."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


def text(path: str | Path) -> str:
    """A document, by its path from the root."""
    return (ROOT / path).read_text(encoding="utf-8")


def program(path: str | Path) -> str:
    """The Python blocks of a document, as one program."""
    return "\n".join(re.findall(r"```python\n(.*?)```", text(path), re.DOTALL))


def named(path: Path) -> str:
    """A page's path from the root, as test ids show it."""
    return path.relative_to(ROOT).as_posix()
