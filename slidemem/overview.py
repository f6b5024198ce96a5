"""Decides what of a session is looked at to show it: what a model would see now, and where the archive comes from.

A look changes nothing: nothing is written, no event told, no figure moved, no model asked. It reads a bounded part of
a session however long that is. How it looks is `show`'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from slidemem import flow
from slidemem.archive import Segment
from slidemem.compose import Context
from slidemem.errors import BudgetTooSmall
from slidemem.events import Event, Figures, Stats
from slidemem.session import Layouts, Session
from slidemem.state import Entry

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

_SEGMENTS: Final = 40  # that are looked at, the newest first
_SOURCES: Final = 6  # messages of each that are read


@dataclass(frozen=True, slots=True)
class Traced:
    """A segment of the archive with where it comes from, as far as that is read.

    Attributes:
        segment: the segment.
        children: those that it was merged from, oldest first; those that were not looked at are left out.
        sources: the first messages that it was made from.
        more: how many messages it covers that neither `children` nor `sources` show.
    """

    segment: Segment
    children: tuple[Traced, ...] = ()
    sources: tuple[Entry, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class Overview:
    """A session at one look; the last line of a notebook's cell shows it, and so does rich in a terminal.

    Attributes:
        session: its id.
        context: what a model would see now, without a system prompt of the call's; None where there is none.
        fault: why there is none, "" where there is one.
        quotes: whether quotes were looked for: not where that asks an embedding model.
        archive: its newest segments, oldest first, with where they come from.
        older: segments before those.
        stats: its figures.
    """

    session: str
    context: Context | None
    fault: str
    quotes: bool
    archive: tuple[Traced, ...]
    older: int
    stats: Stats

    def _repr_html_(self) -> str:
        from slidemem.show.session_html import session_html  # noqa: PLC0415  # only who looks needs it

        return session_html(self.session, lambda: self)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        from slidemem.show.terminal import session_parts  # noqa: PLC0415  # needs an extra

        yield from session_parts(self.session, lambda: self, console)


async def overview(session: Session) -> Overview:
    """A look at a session."""
    stats = await flow.stats(session)
    quotes = session.vectors is None
    context, fault = None, ""
    try:
        context = await flow.context(_unheard(session), query=None if quotes else "")
    except BudgetTooSmall as refused:
        fault = str(refused)
    segments = await flow.archive(session)
    newest = segments[-_SEGMENTS:]
    return Overview(
        session=session.id,
        context=context,
        fault=fault,
        quotes=quotes,
        archive=await _traced(session, newest),
        older=len(segments) - len(newest),
        stats=stats,
    )


def _unheard(session: Session) -> Session:
    """The session for a look of which nothing is told or remembered, and for which no model is asked."""
    return replace(session, figures=Figures(), layouts=Layouts(), emit=_unsaid, vectors=None)


def _unsaid(event: Event) -> None:
    """Tell nobody."""


async def _traced(session: Session, newest: tuple[Segment, ...]) -> tuple[Traced, ...]:
    """Segments with what they come from: level by level, until enough segments are looked at."""
    known: dict[str, list[Segment]] = {}
    level, looked = list(reversed(newest)), len(newest)
    while level:
        below: list[Segment] = []
        for segment in level:
            if segment.children and looked + len(segment.children) <= _SEGMENTS:
                found = [await session.store.segment(session.id, id_) for id_ in segment.children]
                known[segment.id] = [child for child in found if child]
                looked += len(known[segment.id])
                below.extend(reversed(known[segment.id]))
        level = below
    leaves = chain.from_iterable(_leaves(segment, known) for segment in newest)
    wanted = [seq for leaf in leaves for seq in range(leaf.start, min(leaf.end, leaf.start + _SOURCES))]
    sources = {entry.seq: entry for entry in await session.store.pick(session.id, wanted)} if wanted else {}
    return tuple(_with_sources(segment, known, sources) for segment in newest)


def _leaves(segment: Segment, known: dict[str, list[Segment]]) -> Iterator[Segment]:
    if segment.id in known:
        for child in known[segment.id]:
            yield from _leaves(child, known)
    else:
        yield segment


def _with_sources(segment: Segment, known: dict[str, list[Segment]], sources: dict[int, Entry]) -> Traced:
    children = tuple(_with_sources(child, known, sources) for child in known.get(segment.id, ()))
    if children:
        covered = sum(child.segment.end - child.segment.start for child in children)
        return Traced(segment, children, (), segment.end - segment.start - covered)
    own = tuple(sources[seq] for seq in range(segment.start, segment.end) if seq in sources)
    return Traced(segment, (), own, segment.end - segment.start - len(own))
