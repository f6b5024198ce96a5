"""Whether a tag may be released: it names the version, and the changelog has a dated heading for it.

python tests/packaging/released.py v0.1.0
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def faults(tag: str, module: str, changelog: str) -> list[str]:
    """What stands against it, a line each.

    Args:
        tag: the tag, `v` in front.
        module: the text of `slidemem/__init__.py`.
        changelog: the text of `CHANGELOG.md`.
    """
    version = re.search(r'^__version__ = "(.+)"$', module, re.MULTILINE)
    found = []
    if version is None or tag != f"v{version[1]}":
        found.append(f"the tag is {tag}, the version is {version[1] if version else 'nowhere'}")
    if not re.search(rf"^## {re.escape(tag[1:])} \(\d{{4}}-\d\d-\d\d\)$", changelog, re.MULTILINE):
        found.append(f"CHANGELOG.md has no heading '## {tag[1:]} (YYYY-MM-DD)'")
    return found


if __name__ == "__main__":
    read = [(ROOT / name).read_text(encoding="utf-8") for name in ("slidemem/__init__.py", "CHANGELOG.md")]
    sys.exit("\n".join(faults(sys.argv[1], *read)) or 0)
