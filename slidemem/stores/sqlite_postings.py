"""Decides how what messages are found by becomes rows of an SQLite database, and how it is asked.

A document is a message as recall sees it. Its row holds its terms too, so that they can be taken out again without
a search through all others, and the sum of all lengths up to it, so that those before a place need not be added up.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence

from slidemem.index import MOST_COUNTED, shared
from slidemem.post import NOTHING, Post
from slidemem.recall import Document, Matches, Posting


def put(db: sqlite3.Connection, n: int, seq: int, post: Post | None) -> None:
    """Store what the newest message is found by."""
    said = post or NOTHING
    terms = said.terms
    db.execute(
        "INSERT INTO documents SELECT ?, ?, ?, ?, ?, ?, COALESCE(MAX(upto), 0) + ? FROM"
        " (SELECT upto FROM documents WHERE session = ? ORDER BY seq DESC LIMIT 1)",
        (n, seq, terms.length, said.at, _blob(said.speaker), json.dumps(list(terms.counts)), terms.length, n),
    )
    db.executemany(
        "INSERT INTO postings VALUES(?, ?, ?, ?)",
        [(n, _blob(term), seq, min(count, MOST_COUNTED)) for term, count in terms.counts.items()],
    )


def cut(db: sqlite3.Connection, n: int, keep: int) -> None:
    """Take out what the messages from a place on are found by."""
    gone = db.execute("SELECT seq, terms FROM documents WHERE session = ? AND seq >= ?", (n, keep)).fetchall()
    db.executemany(
        "DELETE FROM postings WHERE session = ? AND term = ? AND seq = ?",
        [(n, _blob(term), seq) for seq, terms in gone for term in json.loads(terms)],
    )
    db.execute("DELETE FROM documents WHERE session = ? AND seq >= ?", (n, keep))


def matching(db: sqlite3.Connection, n: int, terms: Sequence[str], before: int, most: int) -> Matches:
    """Where terms occur in the messages before a place."""
    last = db.execute(
        "SELECT seq + 1, upto FROM documents WHERE session = ? AND seq < ? ORDER BY seq DESC LIMIT 1", (n, before)
    ).fetchone()
    messages, length = last or (0, 0)
    frequency = {
        term: db.execute(
            "SELECT COUNT(*) FROM postings WHERE session = ? AND term = ? AND seq < ?", (n, _blob(term), before)
        ).fetchone()[0]
        for term in dict.fromkeys(terms)
    }
    found = {term: tuple(_newest(db, n, term, before, limit)) for term, limit in shared(frequency, most).items()}
    return Matches(messages, length, frequency, found)


def _newest(db: sqlite3.Connection, n: int, term: str, before: int, limit: int) -> list[Posting]:
    """The newest messages before a place that say a term, in order."""
    found = db.execute(
        "SELECT seq, count FROM postings WHERE session = ? AND term = ? AND seq < ? ORDER BY seq DESC LIMIT ?",
        (n, _blob(term), before, limit),
    ).fetchall()
    return [Posting(seq, count) for seq, count in reversed(found)]


def documents(db: sqlite3.Connection, n: int, seqs: Collection[int]) -> dict[int, Document]:
    """What ranking needs to know of messages at some places."""
    found = db.execute(
        "SELECT d.seq, d.length, d.at, d.speaker FROM json_each(?) wanted CROSS JOIN documents d"  # in this order
        " ON d.session = ? AND d.seq = wanted.value",
        (json.dumps(list(seqs)), n),
    )
    return {seq: Document(length, at, _text(speaker)) for seq, length, at, speaker in found}


def _blob(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(blob: bytes) -> str:
    return blob.decode("utf-8", "surrogatepass")
