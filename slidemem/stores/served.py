"""Decides what a store asks of a server, and what the answers mean: once, for every server, sync and async.

Each method is one call of a procedure that the server holds (`postgres.sql`, `redis.lua`), so each is one round trip
and has happened whole or not at all. A call has the session's key, arguments as one JSON object, and a JSON answer;
how it gets there, and what may be sent again when a connection breaks, is the link's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from random import getrandbits
from threading import Lock
from typing import Any, Final, Protocol

from slidemem.archive import Segment
from slidemem.errors import ConfigurationError, StoreUnreachable
from slidemem.index import MOST
from slidemem.recall import Document, Matches, Posting
from slidemem.state import (
    Branch,
    Change,
    Entry,
    Held,
    Key,
    Lease,
    Pin,
    Recount,
    Rewrite,
    Snapshot,
    Totals,
    Whole,
)
from slidemem.stores import wire
from slidemem.stores.parsed import Latest, Parsed

_FIRST_EPOCHS: Final = 48  # bits; Lua counts up to 53
_PREFIX: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")
_LONGEST: Final = 10 * 366 * 86_400


def checked_prefix(prefix: str) -> str:
    """The prefix, if it can stand in names of tables and keys as it is.

    Raises:
        ConfigurationError: it cannot.
    """
    if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix):
        raise ConfigurationError(
            f"prefix must be 1 to 40 of a-z, 0-9 and _, and begin with a letter, got {prefix!r:.80}"
        )
    return prefix


def checked_seconds(name: str, seconds: float) -> float:
    """A time in seconds.

    Raises:
        ConfigurationError: it is none, or not above 0.
    """
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool) or not 0 < seconds <= _LONGEST:
        raise ConfigurationError(f"{name} must be above 0 and at most {_LONGEST} seconds, got {seconds!r:.80}")
    return seconds


def checked_connections(connections: int) -> int:
    """How many connections, if that is a number of them.

    Raises:
        ConfigurationError: it is not.
    """
    if not isinstance(connections, int) or connections < 1:
        raise ConfigurationError(f"connections must be a whole number of 1 or more, got {connections!r:.80}")
    return connections


class Link(Protocol):
    """The way to a server; one for sync callers never suspends."""

    async def call(self, procedure: str, key: str, arguments: Mapping[str, Any]) -> Any:
        """The answer of a procedure.

        Args:
            procedure: its name.
            key: the session's, or "" where it is about all of them.
            arguments: what JSON holds.

        Raises:
            StoreUnreachable: the connection broke, or none can be had.
            StoreError: the server cannot do it.
        """
        ...


class SyncLink(Link, Protocol):
    """The way of sync callers."""

    def close(self) -> None:
        """Close the connections of this process."""
        ...


class AsyncLink(Link, Protocol):
    """The way of async callers."""

    async def aclose(self) -> None:
        """Close the connections of the running event loop; a later call opens others."""
        ...


def _of(user: str | None) -> dict[str, str]:
    """Whose session it is, as an argument; a server knows users by their digests."""
    return {} if user is None else {"owner": wire.fingerprint(user)}


class Remembered:
    """What one process remembers of a store, for all of its faces.

    Attributes:
        latest: the sessions that were read last.
        rows_read: entries handed out so far.
    """

    def __init__(self) -> None:
        self.latest = Latest()
        self.rows_read = 0
        self._lock = Lock()

    def handed(self, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        """The entries, counted."""
        with self._lock:
            self.rows_read += len(entries)
        return entries


class Served:
    """A store on a server.

    Args:
        link: the way there.
        remembered: shared by the faces of one store.
        ttl: seconds after its last write that a session is gone; None for never.
    """

    def __init__(self, link: Link, remembered: Remembered, ttl: float | None = None) -> None:
        self._link = link
        self._remembered = remembered
        self._ttl = ttl

    @property
    def rows_read(self) -> int:
        """Entries handed out so far, for those who measure."""
        return self._remembered.rows_read

    # -------------------------------------------------------------- transcript

    async def append(
        self,
        session: str,
        entries: Sequence[Entry],
        metadata: Sequence[tuple[str, str]] | None = None,
        user: str | None = None,
    ) -> Totals:
        """See `Store.append`."""
        sent = {"entries": wire.entries_sent(entries), "metadata": wire.metadata_sent(metadata), **_of(user)}
        return wire.totals_of(await self._write("append", session, sent))

    async def read(self, session: str, start: int = 0, end: int | None = None) -> tuple[Entry, ...]:
        """See `Transcript.read`."""
        answer = await self._read("read", session, {"start": start, "end": end})
        return self._remembered.handed(wire.entries_of(answer))

    async def pick(self, session: str, seqs: Sequence[int]) -> tuple[Entry, ...]:
        """See `Store.pick`."""
        if not seqs:
            return ()
        answer = await self._read("pick", session, {"seqs": sorted(set(seqs))})
        return self._remembered.handed(wire.entries_of(answer))

    async def matching(self, session: str, terms: Sequence[str], before: int, most: int = MOST) -> Matches:
        """See `Postings.matching`."""
        asked = sorted(set(terms))  # the server breaks ties by this order
        sent = {"terms": [wire.name_of(term) for term in asked], "before": before, "most": most}
        messages, length, found = await self._read("matching", session, sent)
        by_term = dict(zip(asked, found, strict=True))
        return Matches(
            messages,
            length,
            {term: by_term[term][0] for term in dict.fromkeys(terms)},
            {term: tuple(Posting(seq, count) for seq, count in by_term[term][1]) for term in dict.fromkeys(terms)},
        )

    async def documents(self, session: str, seqs: Collection[int]) -> Mapping[int, Document]:
        """See `Postings.documents`."""
        if not seqs:
            return {}
        return wire.documents_of(await self._read("documents", session, {"seqs": list(seqs)}))

    async def keys(self, session: str) -> tuple[Key, ...]:
        """See `Store.keys`."""
        return tuple(Key(*columns) for columns in await self._read("keys", session, {}))

    async def cut(self, session: str, keep: int) -> None:
        """See `Transcript.cut`."""
        await self._write("cut", session, {"keep": keep})

    async def branches(self, session: str) -> tuple[Branch, ...]:
        """See `Store.branches`."""
        return wire.branches_of(await self._read("branches", session, {}))

    # -------------------------------------------------------------- records

    async def held(self, session: str) -> Held:
        """See `Records.held`."""
        revision, record, pins, metadata = await self._read("held", session, {})
        return Held(wire.record_of(record, revision), wire.pins_of(pins), wire.pairs_of(metadata))

    async def describe(self, session: str, metadata: Sequence[tuple[str, str]]) -> None:
        """See `Records.describe`."""
        await self._write("describe", session, {"metadata": wire.metadata_sent(metadata)})

    async def commit(self, session: str, expected: int, change: Change) -> bool:
        """See `Records.commit`."""
        covered = change.covered
        sent = {
            "expected": expected,
            "record": wire.record_sent(change.record),
            "start": covered[0].seq if covered else 0,
            "end": covered[-1].seq + 1 if covered else 0,
            "segments": wire.named(change.segments),
            "pins": wire.named(change.pins),
        }
        return bool(await self._write("commit", session, sent))

    async def segment(self, session: str, id_: str) -> Segment | None:
        """See `Records.segment`."""
        answer = await self._read("segment", session, {"name": wire.name_of(id_)})
        return None if answer is None else Segment.from_json(answer)

    async def pin(self, session: str, pin: Pin, user: str | None = None) -> None:
        """See `Records.pin`."""
        await self._write("pin", session, {"pins": wire.named([pin]), **_of(user)})

    async def unpin(self, session: str, id_: str) -> bool:
        """See `Records.unpin`."""
        return bool(await self._write("unpin", session, {"names": [wire.name_of(id_)]}))

    async def claim(self, session: str, expected: int, lease: Lease, now: float) -> bool:
        """See `Records.claim`."""
        sent = {"expected": expected, "holder": wire.literal(lease.holder), "until": lease.until, "now": now}
        return bool(await self._write("claim", session, sent))

    async def release(self, session: str, holder: str) -> None:
        """See `Records.release`."""
        await self._write("release", session, {"holder": wire.literal(holder)})

    async def clear(self, session: str) -> None:
        """See `Records.clear`; the revision lives on for a day, under the digest of the id."""
        await self._write("clear", session, {})
        self._remembered.latest.drop(session)

    # -------------------------------------------------------------- all together

    async def snapshot(self, session: str) -> Snapshot:
        """See `Store.snapshot`; what this process has read before is not sent again."""
        return (await self._snapshot(session, {}))[0]

    async def snapshot_beside(self, session: str, other: str) -> tuple[Snapshot, tuple[Pin, ...]]:
        """See `Together.snapshot_beside`."""
        return await self._snapshot(session, {"beside": wire.fingerprint(other)})

    async def _snapshot(self, session: str, more: Mapping[str, str]) -> tuple[Snapshot, tuple[Pin, ...]]:
        known = self._remembered.latest.last(session)
        sent = {"epoch": known.epoch, "known": known.record.boundary + len(known.live)} if known else {"epoch": -1}
        answer = await self._read("snapshot", session, {**sent, **more})
        epoch, revision, boundary, sums, metadata, record, entries, pins, beside = answer
        totals = wire.totals_of(sums)
        if known is None or known.epoch != epoch:
            known = Parsed(epoch, wire.record_of(record, revision))
        parsed = replace(known, live=known.live + wire.entries_of(entries))
        if epoch:
            self._remembered.latest.put(session, parsed)
        live = self._remembered.handed(parsed.live[: totals.next_seq - boundary])
        snapshot = Snapshot(parsed.record, live, wire.pins_of(pins), wire.pairs_of(metadata), totals)
        return snapshot, wire.pins_of(beside)

    async def recount(self, session: str, expected: int, counts: Recount) -> None:
        """See `Store.recount`."""
        sent = {
            "expected": expected,
            "tokens": [[seq, tokens] for seq, tokens in counts.tokens.items()],
            "counter": wire.literal(counts.counter),
            "anchor_tokens": counts.anchor_tokens,
            "overhead_tokens": counts.overhead_tokens,
        }
        await self._write("recount", session, sent)

    async def rewrite(
        self,
        session: str,
        expected: tuple[int, int],
        rewrite: Rewrite,
        metadata: Sequence[tuple[str, str]] | None = None,
        user: str | None = None,
    ) -> Totals | None:
        """See `Store.rewrite`."""
        sent = {
            "expected": list(expected),
            "record": wire.record_sent(rewrite.record) if rewrite.record else None,
            "keep": rewrite.keep,
            "entries": wire.entries_sent(rewrite.entries),
            "unpinned": [wire.name_of(id_) for id_ in rewrite.unpinned],
            "metadata": wire.metadata_sent(metadata),
            **_of(user),
        }
        answer = await self._write("rewrite", session, sent)
        return None if answer is None else wire.totals_of(answer)

    async def whole(self, session: str) -> Whole:
        """See `Store.whole`."""
        revision, record, entries, branches, segments, pins, metadata = await self._read("whole", session, {})
        return Whole(
            record=wire.record_of(record, revision),
            entries=wire.entries_of(entries),
            branches=wire.branches_of(branches),
            segments=wire.segments_of(segments),
            pins=wire.pins_of(pins),
            metadata=wire.pairs_of(metadata),
        )

    async def restore(self, session: str, expected: tuple[int, int], whole: Whole) -> bool:
        """See `Store.restore`."""
        record = replace(whole.record, revision=max(expected[0], whole.record.revision) + 1)
        sent = {
            "expected": list(expected),
            "record": wire.record_sent(record),
            "entries": wire.entries_sent(whole.entries),
            "branches": wire.branches_sent(whole.branches),
            "segments": wire.named(whole.segments),
            "pins": wire.named(whole.pins),
            "metadata": wire.metadata_sent(whole.metadata),
            "counter": wire.literal(whole.entries[-1].counter if whole.entries else ""),
        }
        return bool(await self._write("restore", session, sent))

    async def sessions(self, user: str | None = None) -> tuple[str, ...]:
        """See `Store.sessions`."""
        return tuple(await self._again("sessions", "", {**_of(user), "ttl": self._ttl}))

    async def loaded(self, tokens: int, turns: int | None) -> tuple[str, ...]:
        """See `Loaded.loaded`."""
        return tuple(await self._again("loaded", "", {"tokens": tokens, "turns": turns, "ttl": self._ttl}))

    async def _read(self, procedure: str, session: str, sent: Mapping[str, Any]) -> Any:
        return await self._again(procedure, wire.fingerprint(session), {**sent, "ttl": self._ttl})

    async def _again(self, procedure: str, key: str, sent: Mapping[str, Any]) -> Any:
        """What a procedure that changes nothing answers; it is asked once more where a connection breaks."""
        try:
            return await self._link.call(procedure, key, sent)
        except StoreUnreachable:
            return await self._link.call(procedure, key, sent)

    async def _write(self, procedure: str, session: str, sent: Mapping[str, Any]) -> Any:
        begun = {"id": wire.literal(session), "epoch": 1 + getrandbits(_FIRST_EPOCHS), "ttl": self._ttl}
        return await self._link.call(procedure, wire.fingerprint(session), {**sent, **begun})


class ServerStore(Served):
    """The face of a store on a server for sync callers, which has that for async ones.

    Args:
        where: the server, without credentials.
        sync: the way of sync callers.
        awaited: the way of async callers.
        ttl: seconds after its last write that a session is gone; None for never.
    """

    def __init__(self, where: str, sync: SyncLink, awaited: AsyncLink, ttl: float | None) -> None:
        remembered, seconds = Remembered(), None if ttl is None else checked_seconds("ttl", ttl)
        super().__init__(sync, remembered, seconds)
        self._where = where
        self._sync = sync
        self._awaited = awaited
        self._face = Served(awaited, remembered, seconds)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._where!r})"

    def __enter__(self) -> ServerStore:  # noqa: PYI034  # typing.Self is of Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def for_async(self) -> Served:
        """The face for async callers: the same store, awaited."""
        return self._face

    def close(self) -> None:
        """Close the connections of sync callers; those of an event loop are closed when it ends."""
        self._sync.close()

    async def aclose(self) -> None:
        """Close the connections of the running event loop; a later call opens others."""
        await self._awaited.aclose()
