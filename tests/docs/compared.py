"""Puts the short table of the comparison into the README, after `benchmarks/results/peers.md` has been made anew.

python tests/docs/compared.py
"""

from __future__ import annotations

import re

from pages import ROOT

PEERS = ROOT / "benchmarks" / "results" / "peers.md"
README = ROOT / "README.md"
_BETWEEN = re.compile(r"(?<=<!-- short -->\n).*?(?=<!-- /short -->)", re.DOTALL)


def short(text: str) -> str:
    """What stands between the marks of a document."""
    found = _BETWEEN.search(text)
    if found is None:
        raise LookupError("no <!-- short --> and <!-- /short -->, each on a line of its own")
    return found[0]


def with_short(text: str, table: str) -> str:
    """The document with another table between its marks."""
    return _BETWEEN.sub(lambda _: table, text)


if __name__ == "__main__":
    table = short(PEERS.read_text(encoding="utf-8"))
    README.write_text(with_short(README.read_text(encoding="utf-8"), table), encoding="utf-8")
