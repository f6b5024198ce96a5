"""A check of the site that `make docs` built: every public name is in the reference, every page is there.

python tests/docs/built.py build/site
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

from pages import DOCS, PAGES

REFERENCE = {
    "core": "slidemem",
    "langchain": "langchain_slidemem",
    "llamaindex": "llamaindex_slidemem",
    "testing": "slidemem.testing",
}


def missing(site: Path) -> list[str]:
    """What the site lacks, a line each."""
    lacking = [f"page {page.name}" for page in PAGES if not (site / _address(page)).exists()]
    for page, module in REFERENCE.items():
        html = (site / "api" / page / "index.html").read_text(encoding="utf-8")
        shown = set(re.findall(r'id="([\w.]+)"', html))
        lacking += [
            f"{module}.{name} in api/{page}"
            for name in import_module(module).__all__
            if f"{module}.{name}" not in shown
        ]
    return lacking


def _address(page: Path) -> Path:
    place = page.relative_to(DOCS).with_suffix("")
    return (place.parent if place.name == "index" else place) / "index.html"


if __name__ == "__main__":
    lacking = missing(Path(sys.argv[1]))
    sys.exit("the site lacks:\n  " + "\n  ".join(lacking) if lacking else 0)
