"""Decides what becomes of a session whose host begins its list with other system messages than are stored.

They stand at the head of the transcript, so that every place in the session moves; archive, pins and what is live
stay what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from slidemem.archive import Archive, Segment
from slidemem.plan import kept_of
from slidemem.state import Branch, Entry, Kept, Pin, Record, Whole


def leading(entries: Sequence[Entry]) -> int:
    """How many system messages a transcript begins with."""
    return sum(1 for _ in takewhile(lambda entry: entry.message.role == "system", entries))


def reprompted(whole: Whole, record: Record, keep: int, prompts: Sequence[Entry], new: Sequence[Entry]) -> Whole:
    """A session with other leading system messages; those that were there are closed as a branch.

    Args:
        whole: the session.
        record: of its first `keep` messages.
        keep: how many messages stay, the leading system messages counted though they leave.
        prompts: what it begins with from now on.
        new: messages to add at the end.
    """
    begin = leading(whole.entries)
    keep = max(keep, begin)
    by = len(prompts) - begin
    closed = (*whole.entries[:begin], *whole.entries[keep:])
    entries = (*prompts, *whole.entries[begin:keep], *new)
    return replace(
        whole,
        record=_moved_record(record, prompts, by),
        entries=tuple(replace(entry, seq=at) for at, entry in enumerate(entries)),
        branches=(*whole.branches, Branch(whole.record.revision, closed)) if closed else whole.branches,
        segments=tuple(_moved_segment(segment, by) for segment in whole.segments),
        pins=tuple(_moved_pin(pin, by) for pin in whole.pins),
    )


def _moved_record(record: Record, prompts: Sequence[Entry], by: int) -> Record:
    if not record.boundary:
        return record
    return replace(
        record,
        boundary=record.boundary + by,
        system=tuple(kept_of(replace(entry, seq=at)) for at, entry in enumerate(prompts)),
        first_user=_moved_kept(record.first_user, by),
        anchor=_moved_kept(record.anchor, by),
        archive=Archive(tuple(_moved_segment(segment, by) for segment in record.archive.segments)),
    )


def _moved_segment(segment: Segment, by: int) -> Segment:
    """The segment, the first of an archive still covering the leading system messages."""
    return replace(segment, start=segment.start + by if segment.start else 0, end=segment.end + by)


def _moved_kept(kept: Kept | None, by: int) -> Kept | None:
    return kept and replace(kept, seq=kept.seq + by)


def _moved_pin(pin: Pin, by: int) -> Pin:
    return pin if pin.source is None else replace(pin, source=pin.source + by)
