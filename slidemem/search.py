"""Carries out a search that somebody asked for: messages and lines of the archive, best first."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import chain
from typing import Final

from slidemem.archive import Archive, Segment
from slidemem.errors import ConfigurationError
from slidemem.lines import line_at, lines_of
from slidemem.messages import Message, Role
from slidemem.recollect import EVERYTHING, Found, elsewhere, picked_in, places, quote_of
from slidemem.session import Session
from slidemem.state import Entry

_BATCH: Final = 64  # messages that are read at once
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
    """

    roles: frozenset[Role] | None = None
    since: float | None = None
    until: float | None = None

    @classmethod
    def of(cls, roles: Collection[Role] | Role | None, since: float | None, until: float | None) -> Filter:
        """Check what a caller gave.

        Raises:
            ConfigurationError: a role that there is none of, or a time that is no number.
        """
        wanted = frozenset((roles,) if isinstance(roles, str) else roles) if roles is not None else None
        if wanted is not None and not wanted <= _ROLES:
            raise ConfigurationError(f"roles must be among {', '.join(sorted(_ROLES))}, got {roles!r:.80}")
        for name, time in (("since", since), ("until", until)):
            if time is not None and (isinstance(time, bool) or not isinstance(time, (int, float))):
                raise ConfigurationError(f"{name} must be seconds since 1970, got {time!r:.80}")
        return cls(wanted, since, until)

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
            elif found.place in entries[found.session]:  # else it was rewound since
                hits.append(_message_hit(session, entries[found.session][found.place], query, found))
        hits = [hit for hit in hits if wanted.passes(hit)]
        if len(hits) >= k:
            break
    return tuple(hits[:k])


def _message_hit(session: Session, entry: Entry, query: str, found: Found) -> Hit:
    text = quote_of(session, [entry], query).text
    return Hit(text, found.score, found.session, entry.seq, entry.message, None, entry.at)


def _line_hit(session: Session, archive: Archive, line: str, score: float) -> Hit:
    holder = next(segment for segment in archive.segments if line in segment.text)
    return Hit(line, score, session.id, None, None, holder, holder.last_at)
