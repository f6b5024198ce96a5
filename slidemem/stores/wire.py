"""Decides how what a store keeps of a session is written for a server, and read from its answers.

Texts of hosts (ids, names, terms) go as JSON literals of ASCII characters, so that a server compares and keeps them
and never looks inside: NUL and lone surrogates, which PostgreSQL's text cannot hold, are characters of an escape
there. Where one stands in an index it is short: a long one is named by its digest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from slidemem.archive import Segment
from slidemem.index import MOST_COUNTED
from slidemem.messages import from_json, to_json
from slidemem.post import NOTHING
from slidemem.recall import Document
from slidemem.state import Branch, Entry, Pin, Record, Totals, key_of

_LONGEST: Final = 200  # characters of a literal in an index; PostgreSQL's take 2,704 bytes for all columns


def literal(text: str) -> str:
    """A text as a JSON literal."""
    return json.dumps(text)


def name_of(text: str) -> str:
    """What an index knows a text by: its literal, or `#` and its digest where that is long."""
    told = literal(text)
    return told if len(told) <= _LONGEST else "#" + fingerprint(text)


def fingerprint(text: str) -> str:
    """SHA-256 of a text, as 64 hexadecimal digits: what keys are made of, and what is left of a cleared session."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# ---------------------------------------------------------------------- sent


def entries_sent(entries: Iterable[Entry]) -> list[list[Any]]:
    """Messages with what they are found by."""
    return [_sent(entry) for entry in entries]


def _sent(entry: Entry) -> list[Any]:
    key, post = key_of(entry), entry.post or NOTHING
    body = {"message": to_json(entry.message), "whole": entry.whole_tokens, "at": entry.at}
    if entry.shown != entry.message:
        body["shown"] = to_json(entry.shown)
    counts = [min(count, MOST_COUNTED) for count in post.terms.counts.values()]
    return [
        entry.seq,
        None if key.id is None else fingerprint(key.id),
        json.dumps(key.id),
        key.digest,
        key.role,
        key.shown,
        entry.tokens,
        literal(entry.counter),
        json.dumps(body),
        json.dumps([post.terms.length, post.at, post.speaker]),
        post.terms.length,
        [name_of(term) for term in post.terms.counts],
        counts,
    ]


def record_sent(record: Record) -> dict[str, Any]:
    """A record, with what a server has to know of it beside it."""
    anchor = record.anchor
    return {
        "record": json.dumps(record.to_json()),
        "revision": record.revision,
        "boundary": record.boundary,
        "segments": len(record.archive.segments),
        "anchor_tokens": anchor.tokens if anchor else 0,
        "anchor_counter": literal(anchor.counter) if anchor else None,
        "overhead_tokens": record.overhead_tokens,
    }


def named(kept: Iterable[Pin] | Iterable[Segment]) -> list[list[str]]:
    """Pins or segments, each under its name."""
    return [[name_of(one.id), json.dumps(one.to_json())] for one in kept]


def branches_sent(branches: Iterable[Branch]) -> list[list[Any]]:
    """Closed branches."""
    return [[branch.revision, entries_sent(branch.entries)] for branch in branches]


def metadata_sent(metadata: Sequence[tuple[str, str]] | None) -> str | None:
    """Metadata as JSON text; None for none given."""
    return None if metadata is None else json.dumps(list(metadata))


# ---------------------------------------------------------------------- answered


def entries_of(answer: Iterable[Sequence[Any]]) -> tuple[Entry, ...]:
    """Messages, in the order in which they come."""
    return tuple(_entry(*columns) for columns in answer)


def _entry(seq: int, tokens: int, counter: str, body: Mapping[str, Any]) -> Entry:
    said = from_json(body["message"])
    shown = from_json(body["shown"]) if "shown" in body else said
    return Entry(seq, said, shown, tokens, body["whole"], body["at"], counter)


def branches_of(answer: Iterable[Sequence[Any]]) -> tuple[Branch, ...]:
    """Closed branches, in the order in which they come."""
    return tuple(Branch(revision, entries_of(entries)) for revision, entries in answer)


def pins_of(answer: Iterable[Mapping[str, Any]]) -> tuple[Pin, ...]:
    """Pins, in the order in which they come."""
    return tuple(map(Pin.from_json, answer))


def segments_of(answer: Iterable[Mapping[str, Any]]) -> tuple[Segment, ...]:
    """Segments, in the order in which they come."""
    return tuple(map(Segment.from_json, answer))


def pairs_of(answer: Iterable[Sequence[str]]) -> tuple[tuple[str, str], ...]:
    """Metadata."""
    return tuple((name, value) for name, value in answer)


def totals_of(answer: Sequence[Any]) -> Totals:
    """Sums of a session."""
    return Totals(*answer)


def record_of(answer: Mapping[str, Any] | None, revision: int) -> Record:
    """A record; an empty one is nothing but its revision."""
    return Record(revision=revision) if answer is None else Record.from_json(answer)


def documents_of(answer: Iterable[Sequence[Any]]) -> dict[int, Document]:
    """What ranking needs to know of messages."""
    return {seq: Document(*document) for seq, document in answer}
