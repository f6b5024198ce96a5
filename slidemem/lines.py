"""Decides how the lines of the archive are found: as messages are, each by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from slidemem.archive import Archive
from slidemem.recall import REACH, Document, Matches, Posting
from slidemem.remembered import remembered
from slidemem.terms import terms

_APART = 2 * REACH + 1  # places between two lines, so that none stands near another
_terms = remembered(4096)(terms)  # each question looks at the same lines


def lines_of(archive: Archive) -> tuple[str, ...]:
    """The lines of an archive without their signs, oldest first, each once."""
    return tuple(dict.fromkeys(line.removeprefix("- ").strip() for line in archive.text.splitlines() if line.strip()))


def place_of(line: int) -> int:
    """Where a line stands among the messages: before the first, apart from all."""
    return -_APART * (line + 1)


def line_at(place: int) -> int | None:
    """The number of the line that stands at a place; None where a message does."""
    return None if place >= 0 else -place // _APART - 1


def with_lines(
    matches: Matches, documents: Mapping[int, Document], lines: Sequence[str]
) -> tuple[Matches, Mapping[int, Document]]:
    """What a question finds among the messages, and among lines of the archive, which change no statistics."""
    postings = {term: list(found) for term, found in matches.postings.items()}
    known = dict(documents)
    for number, line in enumerate(lines):
        said, place = _terms(line), place_of(number)
        for term in postings.keys() & said.counts.keys():
            postings[term].insert(0, Posting(place, said.counts[term]))
            known[place] = Document(said.length, 0.0, "")
    return replace(matches, postings={term: tuple(found) for term, found in postings.items()}), known
