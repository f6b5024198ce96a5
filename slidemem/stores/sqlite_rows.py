"""Decides how what a store keeps of a session becomes rows of an SQLite database, and comes back.

Every function works within a transaction that its caller has begun; which changes belong together, and when they
are refused, is `sqlite.py`'s.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from random import getrandbits
from typing import Any, Final, NamedTuple

from slidemem.archive import Segment
from slidemem.messages import Message, digest, from_json, to_json
from slidemem.state import Branch, Change, Entry, Key, Lease, Pin, Record, Recount, Totals, key_of
from slidemem.stores import sqlite_postings as postings

LAST: Final = 2**63 - 1  # SQLite's largest number

_CONVERSATION: Final = 0  # the number of the branch that is not closed


class Row(NamedTuple):
    """A session's row; one that is not there has the number 0, by which nothing is found.

    Attributes:
        n: its number, in the order in which sessions began.
        epoch: moved by whatever is not an append.
        revision: of its record.
        boundary: of its record.
        totals: its sums.
        lease: who pays for its next summary, if anyone does.
        metadata: as name and text.
    """

    n: int = 0
    epoch: int = 0
    revision: int = 0
    boundary: int = 0
    totals: Totals = Totals()
    lease: Lease | None = None
    metadata: tuple[tuple[str, str], ...] = ()


# ---------------------------------------------------------------------- the session's row


def there(db: sqlite3.Connection, session: str) -> Row:
    """The row of a session, or that of none."""
    found = db.execute(
        "SELECT n, epoch, revision, boundary, next_seq, live_tokens, live_turns, anchor_tokens, overhead_tokens,"
        " counter, holder, until, metadata FROM sessions WHERE id IN (?, ?)",
        (_blob(session), _buried(session)),
    ).fetchone()
    if found is None:
        return Row()
    n, epoch, revision, boundary, next_seq, live, turns, anchor, overhead, counter, holder, until, metadata = found
    return Row(
        n,
        epoch,
        revision,
        boundary,
        Totals(next_seq, live, turns, anchor, overhead, _text(counter)),
        None if holder is None else Lease(_text(holder), until),
        tuple((name, text) for name, text in json.loads(metadata)),
    )


def begun(db: sqlite3.Connection, session: str) -> Row:
    """The row of a session, which begins now if it is not there.

    Its first epoch is drawn by lot: a session of another file in this one's place is not taken for it.
    """
    row = there(db, session)
    if row.n:
        if not row.metadata and not row.totals.next_seq:
            db.execute("UPDATE sessions SET id = ? WHERE n = ?", (_blob(session), row.n))  # it may be buried
        return row
    db.execute("INSERT INTO sessions(id, epoch) VALUES(?, ?)", (_blob(session), getrandbits(48)))
    return there(db, session)


def moved(db: sqlite3.Connection, n: int) -> None:
    """Begin another epoch."""
    db.execute("UPDATE sessions SET epoch = epoch + 1 WHERE n = ?", (n,))


def describe(db: sqlite3.Connection, n: int, metadata: Sequence[tuple[str, str]]) -> None:
    """Store metadata."""
    db.execute("UPDATE sessions SET metadata = ? WHERE n = ?", (json.dumps(list(metadata)), n))


def tell(db: sqlite3.Connection, n: int, metadata: Sequence[tuple[str, str]] | None, user: str | None) -> None:
    """Store metadata, and whose session it is, where they are given."""
    if metadata is not None:
        describe(db, n, metadata)
    if user is not None:
        db.execute("UPDATE sessions SET user = ? WHERE n = ?", (_blob(user), n))


def bury(db: sqlite3.Connection, n: int, session: str) -> None:
    """Put a digest in the place of a session's id, and forget whose it is: only the revision is left to be found."""
    db.execute("UPDATE sessions SET id = ?, user = NULL WHERE n = ?", (_buried(session), n))


def sum_up(db: sqlite3.Connection, n: int, totals: Totals) -> Totals:
    """Store the sums of a session."""
    db.execute(
        "UPDATE sessions SET next_seq = ?, live_tokens = ?, live_turns = ?, anchor_tokens = ?, overhead_tokens = ?,"
        " counter = ? WHERE n = ?",
        (
            totals.next_seq,
            totals.live_tokens,
            totals.live_turns,
            totals.anchor_tokens,
            totals.overhead_tokens,
            _blob(totals.counter),
            n,
        ),
    )
    return totals


def lease(db: sqlite3.Connection, n: int, given: Lease | None) -> None:
    """Store a lease, or none."""
    holder, until = (None, None) if given is None else (_blob(given.holder), given.until)
    db.execute("UPDATE sessions SET holder = ?, until = ? WHERE n = ?", (holder, until, n))


def sessions(db: sqlite3.Connection, user: str | None = None) -> tuple[str, ...]:
    """Ids of the sessions that hold anything, or of all that are a user's, as they began."""
    if user is not None:
        found = db.execute("SELECT id FROM sessions WHERE user = ? ORDER BY n", (_blob(user),))
        return tuple(_text(id_) for (id_,) in found)
    found = db.execute(
        "SELECT id FROM sessions WHERE segments > 0 OR metadata <> '[]'"
        " OR EXISTS (SELECT 1 FROM messages WHERE session = sessions.n)"
        " OR EXISTS (SELECT 1 FROM pins WHERE session = sessions.n) ORDER BY n"
    )
    return tuple(_text(id_) for (id_,) in found)


# ---------------------------------------------------------------------- the record


def record(db: sqlite3.Connection, row: Row) -> Record:
    """The record of a session; an empty one has no row but its revision."""
    found = db.execute("SELECT record FROM records WHERE session = ?", (row.n,)).fetchone()
    return Record(revision=row.revision) if found is None else Record.from_json(json.loads(found[0]))


def put_record(db: sqlite3.Connection, n: int, new: Record) -> None:
    """Store another record: its lease is gone, and an epoch begins."""
    db.execute(
        "UPDATE sessions SET revision = ?, boundary = ?, segments = ?, holder = NULL, until = NULL WHERE n = ?",
        (new.revision, new.boundary, len(new.archive.segments), n),
    )
    db.execute("REPLACE INTO records(session, record) VALUES(?, ?)", (n, json.dumps(new.to_json())))
    moved(db, n)


def live_sums(db: sqlite3.Connection, n: int, new: Record, counter: str) -> Totals:
    """The sums of a session that has this record and the messages that are there."""
    return Totals.of(new, _outlines(db, n, new.boundary), counter)


def covered(db: sqlite3.Connection, row: Row, change: Change) -> Totals:
    """The sums of a session once a change covers messages; those that are not there count for nothing."""
    span = [change.covered[0].seq, change.covered[-1].seq + 1] if change.covered else [0, 0]
    return row.totals.less(_outlines(db, row.n, *span), change.record)


# ---------------------------------------------------------------------- messages


def add(db: sqlite3.Connection, n: int, totals: Totals, given: Iterable[Entry]) -> Totals:
    """Store messages at the end, but for those that are there already, with the sums that follow."""
    new: list[Entry] = []
    for entry in given:
        if not _said(db, n, entry.message):
            new.append(replace(entry, seq=totals.next_seq + len(new)))
            _put(db, n, _CONVERSATION, new[-1])
    return sum_up(db, n, totals.plus(new)) if new else totals


def fill(db: sqlite3.Connection, n: int, given: Iterable[Entry]) -> None:
    """Store the messages of a session that holds none, one said twice with its id twice."""
    for seq, entry in enumerate(given):
        _put(db, n, _CONVERSATION, replace(entry, seq=seq))


def _said(db: sqlite3.Connection, n: int, message: Message) -> bool:
    """Whether the latest message with this one's id says what it says."""
    if message.id is None:
        return False
    found = db.execute(
        "SELECT digest FROM messages WHERE session = ? AND branch = 0 AND host_id = ? ORDER BY seq DESC LIMIT 1",
        (n, _blob(message.id)),
    ).fetchone()
    return found is not None and found[0] == digest(message)


def _put(db: sqlite3.Connection, n: int, branch: int, entry: Entry) -> None:
    key = key_of(entry)
    db.execute(
        "INSERT INTO messages VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            n,
            branch,
            entry.seq,
            None if key.id is None else _blob(key.id),
            key.digest,
            key.role,
            key.shown,
            entry.tokens,
            entry.whole_tokens,
            entry.at,
            _blob(entry.counter),
            json.dumps(to_json(entry.message)),
            None if entry.shown == entry.message else json.dumps(to_json(entry.shown)),
        ),
    )
    if branch == _CONVERSATION:
        postings.put(db, n, entry.seq, entry.post)


def entries(db: sqlite3.Connection, n: int, start: int = 0, end: int = LAST) -> tuple[Entry, ...]:
    """Messages of the conversation, in order."""
    found = db.execute(
        "SELECT seq, message, shown, tokens, whole_tokens, at, counter FROM messages"
        " WHERE session = ? AND branch = 0 AND seq >= ? AND seq < ? ORDER BY seq",
        (n, start, end),
    )
    return tuple(_entry(*columns) for columns in found)


def picked(db: sqlite3.Connection, n: int, seqs: Iterable[int]) -> tuple[Entry, ...]:
    """Messages of the conversation at some places, in order."""
    found = db.execute(
        "SELECT m.seq, message, shown, tokens, whole_tokens, at, counter"
        " FROM json_each(?) wanted CROSS JOIN messages m"  # in this order
        " ON m.session = ? AND m.branch = 0 AND m.seq = wanted.value ORDER BY m.seq",
        (json.dumps(sorted(set(seqs))), n),
    )
    return tuple(_entry(*columns) for columns in found)


def _entry(seq: int, message: str, shown: str | None, *counts: Any) -> Entry:
    said, (tokens, whole_tokens, at, counter) = from_json(json.loads(message)), counts
    kept = said if shown is None else from_json(json.loads(shown))
    return Entry(seq, said, kept, tokens, whole_tokens, at, _text(counter))


def _outlines(db: sqlite3.Connection, n: int, start: int, end: int = LAST) -> list[Entry]:
    """Messages with their roles and counts, which is what sums are made of, without what they say."""
    found = db.execute(
        "SELECT seq, role, tokens, whole_tokens, at, counter FROM messages"
        " WHERE session = ? AND branch = 0 AND seq >= ? AND seq < ? ORDER BY seq",
        (n, start, end),
    )
    return [
        Entry(seq, Message(role), Message(role), tokens, whole_tokens, at, _text(counter))
        for seq, role, tokens, whole_tokens, at, counter in found
    ]


def keys(db: sqlite3.Connection, n: int) -> tuple[Key, ...]:
    """The keys of all messages of the conversation."""
    found = db.execute(
        "SELECT digest, host_id, role, shown_digest FROM messages WHERE session = ? AND branch = 0 ORDER BY seq", (n,)
    )
    return tuple(
        Key(said, None if id_ is None else _text(id_), role, shown) for said, id_, role, shown in found.fetchall()
    )


def recount(db: sqlite3.Connection, row: Row, counts: Recount) -> None:
    """Store other counts, with the sums that follow, and begin an epoch."""
    db.executemany(
        "UPDATE messages SET tokens = ?, counter = ? WHERE session = ? AND branch = 0 AND seq = ?",
        [(tokens, _blob(counts.counter), row.n, seq) for seq, tokens in counts.tokens.items()],
    )
    live = _outlines(db, row.n, row.boundary)
    totals = replace(
        row.totals,
        live_tokens=sum(entry.tokens for entry in live),
        anchor_tokens=counts.anchor_tokens,
        overhead_tokens=counts.overhead_tokens,
        counter=counts.counter,
    )
    sum_up(db, row.n, totals)
    moved(db, row.n)


# ---------------------------------------------------------------------- branches


def cut(db: sqlite3.Connection, row: Row, keep: int) -> None:
    """Take the messages from a place on out of the conversation, as the newest branch."""
    branch = _next_branch(db, row.n)
    closed = db.execute(
        "UPDATE messages SET branch = ? WHERE session = ? AND branch = 0 AND seq >= ?", (branch, row.n, keep)
    )
    postings.cut(db, row.n, keep)
    if closed.rowcount:
        db.execute("INSERT INTO branches VALUES(?, ?, ?)", (row.n, branch, row.revision))
    moved(db, row.n)


def put_branch(db: sqlite3.Connection, n: int, branch: Branch) -> None:
    """Store a branch as the newest."""
    number = _next_branch(db, n)
    db.execute("INSERT INTO branches VALUES(?, ?, ?)", (n, number, branch.revision))
    for entry in branch.entries:
        _put(db, n, number, entry)


def _next_branch(db: sqlite3.Connection, n: int) -> int:
    newest: int = db.execute("SELECT COALESCE(MAX(branch), 0) FROM branches WHERE session = ?", (n,)).fetchone()[0]
    return newest + 1


def branches(db: sqlite3.Connection, n: int) -> tuple[Branch, ...]:
    """The closed branches, oldest first."""
    found = db.execute("SELECT branch, revision FROM branches WHERE session = ? ORDER BY branch", (n,)).fetchall()
    closed: dict[int, list[Entry]] = {branch: [] for branch, _ in found}
    rows = db.execute(
        "SELECT branch, seq, message, shown, tokens, whole_tokens, at, counter FROM messages"
        " WHERE session = ? AND branch > 0 ORDER BY branch, seq",
        (n,),
    )
    for branch, *columns in rows:
        closed[branch].append(_entry(*columns))
    return tuple(Branch(revision, tuple(closed[branch])) for branch, revision in found)


# ---------------------------------------------------------------------- segments and pins


def put_segments(db: sqlite3.Connection, n: int, given: Iterable[Segment]) -> None:
    """Store segments; one whose id is there takes its place."""
    db.executemany(
        "INSERT INTO segments(session, id, segment) VALUES(?, ?, ?)"
        " ON CONFLICT(session, id) DO UPDATE SET segment = excluded.segment",
        [(n, _blob(segment.id), json.dumps(segment.to_json())) for segment in given],
    )


def segments(db: sqlite3.Connection, n: int) -> tuple[Segment, ...]:
    """All segments that were kept, in the order in which they came."""
    found = db.execute("SELECT segment FROM segments WHERE session = ? ORDER BY n", (n,))
    return tuple(Segment.from_json(stored) for stored in _stored(found))


def segment(db: sqlite3.Connection, n: int, id_: str) -> Segment | None:
    """One segment."""
    found = db.execute("SELECT segment FROM segments WHERE session = ? AND id = ?", (n, _blob(id_)))
    return next((Segment.from_json(stored) for stored in _stored(found)), None)


def put_pins(db: sqlite3.Connection, n: int, given: Iterable[Pin]) -> None:
    """Store pins; one whose id is there takes its place."""
    db.executemany(
        "INSERT INTO pins(session, id, pin) VALUES(?, ?, ?)"
        " ON CONFLICT(session, id) DO UPDATE SET pin = excluded.pin",
        [(n, _blob(pin.id), json.dumps(pin.to_json())) for pin in given],
    )


def pins(db: sqlite3.Connection, n: int) -> tuple[Pin, ...]:
    """The pins, oldest first."""
    found = db.execute("SELECT pin FROM pins WHERE session = ? ORDER BY n", (n,))
    return tuple(Pin.from_json(stored) for stored in _stored(found))


def unpin(db: sqlite3.Connection, n: int, ids: Collection[str]) -> bool:
    """Remove pins, and say whether there were any."""
    gone = [db.execute("DELETE FROM pins WHERE session = ? AND id = ?", (n, _blob(id_))).rowcount for id_ in ids]
    return any(gone)


def _stored(found: sqlite3.Cursor) -> Iterator[Any]:
    return (json.loads(text) for (text,) in found.fetchall())


# ---------------------------------------------------------------------- all of it


def empty(db: sqlite3.Connection, n: int) -> None:
    """Delete all that a session holds; the record that takes its place begins an epoch."""
    for statement in (
        "DELETE FROM messages WHERE session = ?",
        "DELETE FROM branches WHERE session = ?",
        "DELETE FROM segments WHERE session = ?",
        "DELETE FROM pins WHERE session = ?",
        "DELETE FROM records WHERE session = ?",
        "DELETE FROM postings WHERE session = ?",
        "DELETE FROM documents WHERE session = ?",
        "UPDATE sessions SET boundary = 0, segments = 0, holder = NULL, until = NULL, metadata = '[]' WHERE n = ?",
    ):
        db.execute(statement, (n,))
    sum_up(db, n, Totals())


def _buried(session: str) -> bytes:
    """What stands for the id of a cleared session: no text, which has no such first byte."""
    return b"\xff" + sha256(_blob(session)).digest()


def _blob(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(blob: bytes) -> str:
    return blob.decode("utf-8", "surrogatepass")
