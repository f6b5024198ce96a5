"""Decides what is said of a session in words: one line a segment, one a source, its figures in sentences."""

from __future__ import annotations

from slidemem.archive import Segment
from slidemem.blocks import readable
from slidemem.errors import AsyncOnly
from slidemem.overview import Overview
from slidemem.show.rows import printable, shortened
from slidemem.state import Entry


def title_of(session_id: str) -> str:
    """The session's name, in one line."""
    return f"Session {shortened(printable(session_id[:400]), 80)}"


def unseen(fault: Exception) -> str:
    """Why a session cannot be looked at."""
    if isinstance(fault, AsyncOnly):
        return "its store can only be awaited: show `await chat.aoverview()`, or a context."
    return f"it cannot be shown: {shortened(printable(repr(fault)[:1200]), 300)}"


def segment_line(segment: Segment) -> str:
    """What a segment covers, who wrote it, and what of the facts survived."""
    last, kept = segment.end - 1, segment.retention
    covers = f"messages {segment.start} to {last}" if last > segment.start else f"message {segment.start}"
    facts = f", {kept.kept:,} of {kept.found:,} facts kept" if kept.found else ""
    merged = f"merged from {len(segment.children)}" if segment.children else segment.method
    return f"{covers}: {segment.tokens:,} tokens, {merged}{facts}"


def source_line(entry: Entry) -> str:
    """A message of the archive's sources, in one line."""
    return f"{entry.seq} {entry.message.role}: {printable(readable(entry.message)[:400])}"


def sentences(overview: Overview) -> list[str]:
    """A session's figures in sentences."""
    stats = overview.stats
    archived = f"{stats.covered_messages:,} archived in {_of(stats.segments, 'segment')}"
    live = f"{stats.live_messages:,} live ({stats.live_tokens:,} tokens)"
    held = f"{archived} ({stats.archive_tokens:,} tokens); {_of(stats.pins, 'pin')}."
    told = [f"The transcript has {_of(stats.messages, 'message')}: {live}, {held}"]
    if stats.consolidations:
        told.append(
            f"In this process: {_of(stats.consolidations, 'consolidation')} of {stats.tokens_in:,} tokens into "
            f"{stats.tokens_out:,}, {stats.facts_kept:,} of {stats.facts_found:,} facts kept; "
            f"{_of(stats.summarizer_calls, 'call')} of the summariser, {_of(stats.refusals, 'refusal')}."
        )
    if stats.contexts:
        told.append(
            f"In this process: {_of(stats.contexts, 'context')} read, {stats.prompt_tokens:,} tokens, "
            f"{stats.prefix_reuse:.0%} of them re-used from the context before."
        )
    if not overview.quotes:
        told.append("Quotes of old messages are left out here: finding them would ask the embedding model.")
    if overview.older:
        told.append(f"{_of(overview.older, 'older segment')} not shown.")
    return told


def _of(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count:,} {what}s"
