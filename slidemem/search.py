"""Carries out a search that somebody asked for: messages and lines of the archive, best first."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

from slidemem.archive import Archive, Segment
from slidemem.errors import ConfigurationError
from slidemem.lines import line_at, lines_of
from slidemem.messages import Message, Role
from slidemem.recollect import EVERYTHING, Found, elsewhere, picked_in, places, quote_of
from slidemem.session import Session
from slidemem.state import Entry, Snapshot

_BATCH: Final = 64  # messages that are read at once
_NEAR: Final = 64  # messages before a tool's answer among which its call is
_ROLES: Final[frozenset[Role]] = frozenset(("system", "user", "assistant", "tool"))


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that a search found.

    Attributes:
        text: of the message or the line, as it would be quoted: redacted, calls written out, of a long one what is
            around the match.
        score: how well it fits, for a comparison with others of this search; 0 or more.
        session: id of the session.
        seq: of the message; None for a line of the archive.
        message: the message as it was said; None for a line of the archive.
        segment: the segment that holds the line; None for a message.
        at: when the message was said, or the last one that the segment covers, in seconds since 1970.
    """

    text: str
    score: float
    session: str
    seq: int | None
    message: Message | None
    segment: Segment | None
    at: float


@dataclass(frozen=True, slots=True)
class Filter:
    """What a search is to find.

    Attributes:
        roles: of messages; None for all, and for lines of the archive.
        since: what was said at this time or later, in seconds since 1970; None for no limit.
        until: what was said before this time; None for no limit.
        tool: name of the tool that asks for a model; what is being asked and its own answers are none. None for none.
    """

    roles: frozenset[Role] | None = None
    since: float | None = None
    until: float | None = None
    tool: str | None = None

    @classmethod
    def of(
        cls, roles: Collection[Role] | Role | None, since: float | None, until: float | None, tool: str | None
    ) -> Filter:
        """Check what a caller gave.

        Raises:
            ConfigurationError: a role that there is none of, a time that is no number, or a tool that has no name.
        """
        if tool is not None and not (isinstance(tool, str) and tool):
            raise ConfigurationError(f"tool must be the name of the tool that searches, got {tool!r:.80}")
        wanted = frozenset((roles,) if isinstance(roles, str) else roles) if roles is not None else None
        if wanted is not None and not wanted <= _ROLES:
            raise ConfigurationError(f"roles must be among {', '.join(sorted(_ROLES))}, got {roles!r:.80}")
        for name, time in (("since", since), ("until", until)):
            if time is not None and (isinstance(time, bool) or not isinstance(time, (int, float))):
                raise ConfigurationError(f"{name} must be seconds since 1970, got {time!r:.80}")
        return cls(wanted, since, until, tool)

    def passes(self, hit: Hit) -> bool:
        """Whether a hit is what was asked for."""
        if self.roles is not None and (hit.message is None or hit.message.role not in self.roles):
            return False
        return not (self.since is not None and hit.at < self.since) and not (
            self.until is not None and hit.at >= self.until
        )


async def search(session: Session, query: str, k: int, wanted: Filter) -> tuple[Hit, ...]:
    """What a session, or with `recall_scope="user"` any of its user's, holds of a query, best first.

    Args:
        session: the session.
        query: what to look for; text, never syntax.
        k: how many hits at most.
        wanted: which of them.

    Raises:
        ConfigurationError: the query is no text, or `k` no whole number of 1 or more.
    """
    if not isinstance(query, str):
        raise ConfigurationError(f"a query is text, got {type(query).__name__}")
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ConfigurationError(f"k must be a whole number of 1 or more, got {k!r:.80}")
    archive = (await session.store.held(session.id)).record.archive
    asked_from = _asked_from(await session.store.snapshot(session.id)) if wanted.tool else None
    lines = lines_of(archive)
    ranking = await places(session, query, EVERYTHING, lines, always=True)
    others = await elsewhere(session, query, always=True)
    if others:
        ranking = sorted([*ranking, *chain.from_iterable(others.values())], key=lambda found: -found.score)
    hits: list[Hit] = []
    for start in range(0, len(ranking), _BATCH):
        batch = ranking[start : start + _BATCH]
        entries = {id_: await picked_in(session, id_, batch) for id_ in {found.session for found in batch}}
        for found in batch:
            line = line_at(found.place)
            if line is not None:
                hits.append(_line_hit(session, archive, lines[line], found.score))
            elif found.place not in entries[found.session]:  # it was rewound since
                continue
            elif not await _is_beside(session, entries[found.session][found.place], found, asked_from, wanted.tool):
                hits.append(_message_hit(session, entries[found.session][found.place], query, found))
        hits = [hit for hit in hits if wanted.passes(hit)]
        if len(hits) >= k:
            break
    return tuple(hits[:k])


def _asked_from(snapshot: Snapshot) -> int:
    """Where the turn begins that is not answered yet; behind all messages where there is none."""
    for entry in reversed(snapshot.live):
        if entry.message.role == "user":
            return entry.seq
        if entry.message.role == "assistant" and not entry.message.tool_calls:
            return snapshot.totals.next_seq
    return snapshot.record.anchor.seq if snapshot.record.anchor else snapshot.totals.next_seq


async def _is_beside(session: Session, entry: Entry, found: Found, asked_from: int | None, tool: str | None) -> bool:
    """Whether a message is no answer for a tool: of the turn that calls it, or a call or an answer of its own."""
    if asked_from is None:
        return False
    if found.session == session.id and entry.seq >= asked_from:
        return True
    calls = entry.message.tool_calls
    if entry.message.role == "tool":
        before = await session.store.read(found.session, max(0, entry.seq - _NEAR), entry.seq)
        made = (call for one in reversed(before) for call in one.message.tool_calls)
        calls = tuple(islice((call for call in made if call.id == entry.message.tool_call_id), 1))
    return bool(calls) and all(call.name == tool for call in calls)


def _message_hit(session: Session, entry: Entry, query: str, found: Found) -> Hit:
    text = quote_of(session, [entry], query).text
    return Hit(text, found.score, found.session, entry.seq, entry.message, None, entry.at)


def _line_hit(session: Session, archive: Archive, line: str, score: float) -> Hit:
    holder = next(segment for segment in archive.segments if line in segment.text)
    return Hit(line, score, session.id, None, None, holder, holder.last_at)
