"""Decides how the archive is kept: segments in order, appended, and merged upwards, four of a level into one.

Which lines of it a context can afford is `head.py`'s, where the archive's share is enforced; what a segment says
is `consolidate.py`'s, and what is left of merged ones `merge.py`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

FAN: Final = 4  # segments of one level that merge into one of the next


@dataclass(frozen=True, slots=True)
class Retention:
    """What of a span survived its summary, in facts.

    Attributes:
        found: facts in the span.
        kept: of those, facts that the segment's text holds.
    """

    found: int = 0
    kept: int = 0


@dataclass(frozen=True, slots=True)
class Segment:
    """One entry of the archive.

    Attributes:
        id: names it within the session.
        start: `seq` of the first message it covers.
        end: `seq` after the last one.
        level: 0 when it was made from messages, one more than its children's highest when it was merged.
        text: what is remembered; may be empty.
        tokens: of the text.
        method: who wrote it: `summarizer`, `extractive`, or `none` when nothing is kept.
        retention: facts found and kept.
        children: ids of the segments it was merged from; the store keeps them.
        first_at: when its first message was said, as its time tells, or else appended; seconds since 1970.
        last_at: the same of its last message.
    """

    id: str
    start: int
    end: int
    level: int
    text: str
    tokens: int
    method: str
    retention: Retention
    children: tuple[str, ...]
    first_at: float
    last_at: float

    def to_json(self) -> dict[str, Any]:
        """The segment as a JSON object."""
        return {
            "id": self.id,
            "range": [self.start, self.end],
            "level": self.level,
            "text": self.text,
            "tokens": self.tokens,
            "method": self.method,
            "retention": {"found": self.retention.found, "kept": self.retention.kept},
            "children": list(self.children),
            "dates": [self.first_at, self.last_at],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Segment:
        """The segment of `to_json`'s object."""
        return cls(
            id=stored["id"],
            start=stored["range"][0],
            end=stored["range"][1],
            level=stored["level"],
            text=stored["text"],
            tokens=stored["tokens"],
            method=stored["method"],
            retention=Retention(**stored["retention"]),
            children=tuple(stored["children"]),
            first_at=stored["dates"][0],
            last_at=stored["dates"][1],
        )


@dataclass(frozen=True, slots=True)
class Archive:
    """The segments that cover everything before the boundary, oldest first, without gap or overlap.

    Attributes:
        segments: the top-level segments.
    """

    segments: tuple[Segment, ...] = ()

    @property
    def tokens(self) -> int:
        """Tokens of all texts."""
        return sum(segment.tokens for segment in self.segments)

    @property
    def text(self) -> str:
        """All texts, oldest first."""
        return "\n".join(segment.text for segment in self.segments if segment.text)

    def appended(self, segment: Segment) -> Archive:
        """The archive with one more segment, which starts where the last one ends.

        Raises:
            ValueError: it starts anywhere else.
        """
        end = self.segments[-1].end if self.segments else 0
        if segment.start != end:
            raise ValueError(
                f"a segment must start at {end}, where the archive ends; this one starts at {segment.start}"
            )
        return replace(self, segments=(*self.segments, segment))

    def mergeable(self) -> tuple[Segment, ...]:
        """The oldest `FAN` neighbouring segments of one level, which should become one; none when there are fewer."""
        for at in range(len(self.segments) - FAN + 1):
            if len({segment.level for segment in self.segments[at : at + FAN]}) == 1:
                return self.segments[at : at + FAN]
        return ()

    def merged(self, children: Sequence[Segment], parent: Segment) -> Archive:
        """The archive with one segment in the place of its children."""
        at = self.segments.index(children[0])
        return replace(self, segments=(*self.segments[:at], parent, *self.segments[at + len(children) :]))

    def to_json(self) -> list[dict[str, Any]]:
        """The segments as JSON objects."""
        return [segment.to_json() for segment in self.segments]

    @classmethod
    def from_json(cls, stored: Sequence[Mapping[str, Any]]) -> Archive:
        """The archive of `to_json`'s list."""
        return cls(tuple(Segment.from_json(segment) for segment in stored))
