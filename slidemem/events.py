"""Decides what a memory tells of itself: events as they happen, and figures that add up."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import takewhile
from operator import eq
from typing import Final, Literal

from slidemem.archive import Segment
from slidemem.compose import Context, Zones
from slidemem.costs import Money, Used
from slidemem.messages import Message, digest

READINGS: Final = 256  # that are remembered of a session


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a session.

    Attributes:
        kind: `summarizing` (a span in several pieces: so many are written), `consolidated`, `merged`, `refused` (a
            summary was not accepted), `paused` (the summariser fails, and is not asked for a while), `resumed` (it
            answers again), `lost_race` (another commit came first), `busy` (another worker has the lease), `rewound`,
            `recalled` (a context quotes what is archived), `postponed` (a fault came between: what was due stays
            due), `crowded` (little is left for the conversation; told once), `counter_failed`, `pin_left_out`,
            `unpinned` (the user asked to forget it), `hook_failed` (a function of the host raised),
            `embedding_failed` (recall goes by the words alone), `corrected` (the budget follows what a provider
            counted).
        session: the session's id; "" for a counter's fault, which belongs to none.
        detail: one sentence.
        start: first `seq` it is about; -1 when none.
        end: `seq` after the last; -1 when none.
        segment: what was written, when something was.
        done: pieces that are written, where a span is summarised in pieces.
        of: how many there are; 0 elsewhere.
    """

    kind: Literal[
        "summarizing",
        "consolidated",
        "merged",
        "refused",
        "paused",
        "resumed",
        "lost_race",
        "recalled",
        "busy",
        "rewound",
        "postponed",
        "crowded",
        "counter_failed",
        "pin_left_out",
        "unpinned",
        "hook_failed",
        "embedding_failed",
        "corrected",
    ]
    session: str
    detail: str
    start: int = -1
    end: int = -1
    segment: Segment | None = None
    done: int = 0
    of: int = 0


@dataclass(frozen=True, slots=True)
class Reading:
    """A context that was handed out, in figures.

    Attributes:
        index: messages in the transcript, with those about to be sent.
        zones: tokens by zone.
        usable: tokens that there were.
        covered: messages that the archive stood for.
    """

    index: int
    zones: Zones
    usable: int
    covered: int


def _newest() -> deque[Reading]:
    return deque(maxlen=READINGS)


@dataclass(slots=True)
class Figures:
    """Running figures of one session, in one memory of this process.

    Attributes:
        consolidations: commits that moved the boundary.
        summarizer_calls: times the summariser was asked.
        summarizer_read: tokens that its model read, where it tells.
        summarizer_wrote: tokens that its model wrote, where it tells.
        refusals: answers of it that were not accepted.
        tokens_in: tokens of the spans that were consolidated.
        tokens_out: tokens of the segments written of them.
        facts_found: facts in those spans.
        facts_kept: of those, facts in the segments.
        contexts: contexts handed out.
        prompt_tokens: tokens of all of them.
        reused_tokens: of those, tokens of messages that the context before began with, unchanged.
        everything: tokens of all contexts, had each held the whole conversation.
        everything_reused: of those, tokens that the one before began with.
        crowded: whether it was told that little is left for the conversation.
        readings: the newest contexts that were handed out.
    """

    consolidations: int = 0
    summarizer_calls: int = 0
    summarizer_read: int = 0
    summarizer_wrote: int = 0
    refusals: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    facts_found: int = 0
    facts_kept: int = 0
    contexts: int = 0
    prompt_tokens: int = 0
    reused_tokens: int = 0
    everything: int = 0
    everything_reused: int = 0
    crowded: bool = False
    readings: deque[Reading] = field(default_factory=_newest, repr=False)
    _whole: int = 0
    _last: tuple[Message, ...] = field(default=(), repr=False)

    @property
    def used_tokens(self) -> Used:
        """The tokens that cost money; those of spans and segments where the summariser's model tells none."""
        told = self.summarizer_read or not self.summarizer_calls
        return Used(
            prompts=self.prompt_tokens,
            reused=self.reused_tokens,
            read=self.summarizer_read if told else self.tokens_in,
            wrote=self.summarizer_wrote if told else self.tokens_out,
            everything=self.everything,
            everything_reused=self.everything_reused,
        )

    @property
    def last(self) -> tuple[Message, ...]:
        """The messages of the latest context."""
        return self._last

    @property
    def prefix_reuse(self) -> float:
        """Share of prompt tokens that a prefix cache could serve, 0 to 1."""
        return self.reused_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    def consolidated(self, segment: Segment, tokens_in: int) -> None:
        """Add a commit that moved the boundary."""
        self.consolidations += 1
        self.tokens_in += tokens_in
        self.tokens_out += segment.tokens
        self.facts_found += segment.retention.found
        self.facts_kept += segment.retention.kept

    def used(self, read: int, written: int) -> None:
        """Add what the summariser's model read and wrote, in tokens."""
        self.summarizer_read += read
        self.summarizer_wrote += written

    def forget(self) -> None:
        """Drop the last context."""
        self._last, self._whole = (), 0
        self.readings.clear()

    def see(self, context: Context, live: int, index: int) -> None:
        """Add a context that was handed out.

        Args:
            context: the context.
            live: tokens of the live messages, whole.
            index: messages in the transcript, with those about to be sent.
        """
        receipt = context.receipt
        self.readings.append(Reading(index, context.zones, receipt.usable, receipt.covered))
        whole = self.tokens_in + live + context.zones.system
        self.everything += whole
        self.everything_reused += min(self._whole, whole)
        self._whole = whole
        same = map(eq, map(digest, self._last), map(digest, context.messages))
        shared = sum(1 for _ in takewhile(bool, same))
        self.contexts += 1
        self.prompt_tokens += sum(context.costs)
        self.reused_tokens += sum(context.costs[:shared])
        self._last = context.messages


@dataclass(frozen=True, slots=True)
class Stats:
    """A session in figures.

    Attributes:
        messages: in the transcript.
        live_messages: after the boundary.
        covered_messages: that the archive stands for.
        live_tokens: of the live messages, as shown.
        archive_tokens: of the archive's texts as they are kept; a context shows what its share holds of them.
        segments: top-level segments of the archive.
        pins: pinned facts.
        consolidations: since this memory was made, in this process; so are the figures below.
        summarizer_calls: times the summariser was asked.
        summarizer_read: tokens that its model read, where it tells.
        summarizer_wrote: tokens that its model wrote, where it tells.
        refusals: answers of it that were not accepted.
        tokens_in: tokens of the spans that were consolidated.
        tokens_out: tokens of the segments written of them.
        facts_found: facts in those spans.
        facts_kept: of those, facts in the segments.
        contexts: contexts handed out.
        prompt_tokens: tokens of all of them.
        prefix_reuse: share of those that the context before began with, 0 to 1.
        token_factor: how many of the provider's tokens one of ours is, as far as it is known; see `correct_counts`.
        money: what they cost beside sending everything, where `prices` are given.
    """

    messages: int
    live_messages: int
    covered_messages: int
    live_tokens: int
    archive_tokens: int
    segments: int
    pins: int
    consolidations: int
    summarizer_calls: int
    summarizer_read: int
    summarizer_wrote: int
    refusals: int
    tokens_in: int
    tokens_out: int
    facts_found: int
    facts_kept: int
    contexts: int
    prompt_tokens: int
    prefix_reuse: float
    token_factor: float = 1.0
    money: Money | None = None
