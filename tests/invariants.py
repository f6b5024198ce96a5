"""The invariants of a session, each a check that fails with the seed and the step."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from conversations import COUNTERS, Racing, Script, honest, summarizer

from slidemem import (
    BudgetTooSmall,
    Context,
    ConversationMemory,
    Event,
    Message,
    PinBudgetError,
    SlideMem,
    from_openai,
)
from slidemem.check import violations
from slidemem.messages import digest
from slidemem.present import mend
from slidemem.stores.base import Store
from slidemem.tokens import resolve_counter

# The user's own list may break these: two of his messages in a row, two system prompts, a system prompt alone;
# and a turn's thinking may be left out whole. Who alternates is checked by name below.
OWN = ("alternation", "many-system", "only-system", "final-thinking", "thinking-not-first")


class CountingCounter:
    """Counts what another counter is asked for, by what the message says."""

    def __init__(self, counter: Any) -> None:
        self._counter = counter
        self.fingerprint = counter.fingerprint
        self.asked: dict[str, int] = {}

    def count(self, message: Message) -> int:
        """What the other says."""
        key = digest(message)
        self.asked[key] = self.asked.get(key, 0) + 1
        return self._counter.count(message)


@dataclass
class Coverage:
    """How often the wild things happened, over all conversations of a run."""

    seen: int = 0
    consolidated_twice: int = 0
    cut_inside: int = 0
    clamped: int = 0
    lost_race: int = 0
    contexts: int = 0
    jumps: int = 0
    too_small: int = 0

    def check(self) -> None:
        """A tame generator proves nothing."""
        assert self.consolidated_twice >= self.seen / 5, self
        assert self.cut_inside >= self.seen / 10, self
        assert self.clamped >= self.seen / 20, self
        assert self.lost_race >= self.seen / 20, self
        assert self.too_small <= self.contexts / 10, self
        assert self.jumps <= self.contexts / 5, self  # or check_prefix would pass over most of what it should see


@dataclass
class Run:
    """One conversation, checked after each step."""

    script: Script
    only: frozenset[str] | None = None
    mode: str | None = None  # in the place of the script's
    store: Store | None = None
    rewinds: bool = False  # whether messages are taken back now and then
    step: int = 0
    events: list[Event] = field(default_factory=list)
    appended: list[Message] = field(default_factory=list)
    before: Context | None = None
    cut_inside: bool = False
    clamped: bool = False
    contexts: int = 0
    jumps: int = 0
    falls: int = 0  # of this turn's quotes
    too_small: int = 0

    def __post_init__(self) -> None:
        chosen = summarizer(self.script.summarizer) if self.script.summarizer != "extractive" else None
        given = {} if self.script.summarizer == "extractive" else {"consolidator": chosen}
        self.counter = CountingCounter(resolve_counter(COUNTERS[self.script.counter]))
        self.options = {**self.script.options, **({"mode": self.mode} if self.mode else {})}
        self.rng = random.Random(self.script.seed)
        self.memory = SlideMem(
            counter=self.counter,
            store=self.store,
            on_event=self.events.append,
            clock=lambda: 0.0,
            **given,
            **self.options,
        )
        self.chat: ConversationMemory = self.memory.session("one")
        if isinstance(chosen, Racing):
            chosen.rival = self.rival()

    def rival(self) -> ConversationMemory:
        """The same session as another worker reaches it, in whose time every lease has ended."""
        options = {**self.options, "counter": COUNTERS[self.script.counter], "consolidator": honest}
        return SlideMem(store=self.memory.store, clock=lambda: 1e6, **options).session("one")

    def __str__(self) -> str:
        made = self.script
        return f"seed {made.seed}, step {self.step}, {self.options}, {made.counter}, {made.summarizer}"

    def play(self) -> Run:
        """Take every step, and check everything after each."""
        for step, (kind, argument) in enumerate(self.script.steps):
            self.step = step
            self.take(kind, argument)
            if self.rewinds and self.rng.random() < 0.06:
                self.take_back()
            if self.mode == "background" and step % 3:
                assert self.chat.flush(), self
            self.read()
        if not self.only:
            self.check_counted_once()
        return self

    def take(self, kind: str, argument: Any) -> None:
        """One step."""
        if kind == "append":
            self.chat.append(argument)
            listed = argument if isinstance(argument, list) else [argument]
            self.appended.extend(from_openai(message) for message in listed)
        elif kind == "pin":
            try:
                self.chat.pin(argument)
            except PinBudgetError as refused:
                self.check_refused_pin(refused)
            self.before = None
        else:
            self.chat.consolidate(force=True)

    def take_back(self) -> None:
        """Rewind to some place, near the end for the most part."""
        there = len(self.appended)
        keep = self.rng.randrange(there + 1) if self.rng.random() < 0.3 else max(0, there - self.rng.randrange(6))
        assert tuple(self.appended[keep:]) == self.chat.rewind(keep), self
        self.appended = self.appended[:keep]
        self.before = None

    def read(self) -> None:
        """Read a context and check it; now and then after one with a pending question, which must leave no trace."""
        self.contexts += 1
        if self.step % 3 == 0:
            with contextlib.suppress(BudgetTooSmall):
                self.chat.context({"role": "user", "content": "And now?"}, system=self.script.system)
        try:
            context = self.chat.context(system=self.script.system, reserve=self.script.reserve)
        except BudgetTooSmall as refused:
            self.check_refusal(refused)
            self.before = None
            return
        for name, check in CHECKS.items():
            if self.only is None or name in self.only:
                check(self, context)
        record = self.memory.store.snapshot("one")
        self.cut_inside |= _state(record).record.anchor is not None
        self.clamped |= bool(context.receipt.clamped)
        self.before = None if context.receipt.open else context

    def elsewhere(self) -> Context:
        """The same read in a process that has read nothing before."""
        options = {**self.options, "mode": "manual", "counter": COUNTERS[self.script.counter], "consolidator": None}
        fresh = SlideMem(store=self.memory.store, **options).session("one")
        return fresh.context(system=self.script.system, reserve=self.script.reserve)

    def check_refused_pin(self, refused: PinBudgetError) -> None:
        """A refusal tells a need above the limit."""
        assert refused.needed > refused.limit, self

    def check_refusal(self, refused: BudgetTooSmall) -> None:
        """A refusal tells a need above what is usable, and only where even marks are too much."""
        self.too_small += 1
        assert refused.needed > refused.usable, self
        assert refused.usable <= 60, self

    def check_counted_once(self) -> None:
        """Nothing was counted twice, and each message once."""
        assert all(times == 1 for times in self.counter.asked.values()), self
        assert all(digest(mend(message)) in self.counter.asked for message in self.appended), self


def _state(coroutine: Any) -> Any:
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("the store suspended")


def rendered(context: Context) -> list[str]:
    """The bytes of each message as a provider would see them, the end of a message left open."""
    return [json.dumps([message.role, message.name or ""]) + _said(message) for message in context.messages]


def _said(message: Message) -> str:
    parts = "\n".join(part.source or part.text for part in message.parts)
    return (
        parts
        + "".join(f"|{call.id} {call.name} {call.arguments}" for call in message.tool_calls)
        + f"|{message.tool_call_id or ''}"
    )


def check_budget(run: Run, context: Context) -> None:
    """Invariant 1: tokens, counted anew, are as told and within what is usable."""
    usable = run.memory.options.usable - run.script.reserve
    counter = resolve_counter(COUNTERS[run.script.counter])
    tokens = sum(counter.count(message) for message in context.messages)
    zones = context.zones
    assert context.tokens == tokens, run
    assert zones.system + zones.pinned + zones.archive + zones.window + zones.recall == tokens, run
    assert tokens <= usable, run


def check_valid(run: Run, context: Context) -> None:
    """Invariant 2: every provider takes the list, and no neighbours of one role are of our making."""
    if context.receipt.open or not any(message.role == "user" for message in run.appended):
        return
    found = violations(context.to_openai(), ignore=OWN)
    assert not found, f"{run}: {found[:3]}"
    if run.script.options["archive_role"] != "merge":
        return
    for last, one in zip(context.messages, context.messages[1:], strict=False):
        if last.role == one.role == "user":
            assert one.mark is None or not {"note", "head"} & set(one.mark.kinds), run
            assert one.mark is None or one.mark.of, run
        if run.script.alternates and not run.rewinds and last.role != "system":
            assert last.role != one.role, run


def check_newest(run: Run, context: Context) -> None:
    """Invariant 3: the newest user message is verbatim, or clamped with a visible mark when it is large."""
    at = next((at for at in reversed(range(len(run.appended))) if run.appended[at].role == "user"), None)
    if at is None:
        assert not [message for message in context.messages if message.role != "system"], run
        return
    wanted = mend(run.appended[at])
    holder = next((m for m in reversed(context.messages) if m.role == "user" and m.text.endswith(wanted.text)), None)
    if holder is None:
        marked = [
            m
            for m in context.messages
            if m.role == "user" and m.mark and ("clamp" in m.mark.kinds or "joined" in m.mark.kinds)
        ]
        cut = [m for m in marked if "[…" in m.text or "left out]" in m.text]
        joined = [m for m in marked if wanted.text in m.text]
        limit = min(run.memory.options.allotment // 2, (run.memory.options.usable - run.script.reserve) // 2)
        counted = resolve_counter(COUNTERS[run.script.counter]).count(wanted)
        assert joined or (cut and counted > min(limit, context.receipt.usable - context.zones.system - 1)), run


def check_nothing_lost(run: Run, context: Context) -> None:
    """Invariant 4: every message is live or covered by exactly one segment, and the transcript is whole."""
    snapshot = _state(run.memory.store.snapshot("one"))
    edges = [0, *(edge for segment in snapshot.record.archive.segments for edge in (segment.start, segment.end))]
    boundary = snapshot.record.boundary
    assert edges[0::2] == [*edges[1::2], boundary][: len(edges[0::2])], run
    assert (edges[-1] if len(edges) > 1 else 0) == boundary, run
    assert [entry.seq for entry in snapshot.live] == list(range(boundary, len(run.appended))), run
    assert list(run.chat.transcript()) == run.appended, run


def check_pure(run: Run, context: Context) -> None:
    """Invariant 5: reading changes nothing, and the same state gives the same bytes."""
    before = _state(run.memory.store.snapshot("one"))
    if before.record.revision != context.receipt.revision:
        return  # a commit in the background came between
    handed_out = context.to_openai()
    for message in handed_out:
        message.clear()
    again = run.chat.context(system=run.script.system, reserve=run.script.reserve)
    other = context if run.step % 4 else run.elsewhere()
    after = _state(run.memory.store.snapshot("one"))
    if run.mode == "background" and after.record.revision != before.record.revision:
        return
    assert again == context == other, run
    assert after == before, run


def check_prefix(run: Run, context: Context) -> None:
    """Invariant 6: between two commits a context up to its newest user message begins the next one."""
    last = run.before
    if last is None or context.receipt.open or last.receipt.revision != context.receipt.revision:
        run.falls = 0
        return
    gave_way = context.receipt.left_out > last.receipt.left_out  # where nothing but the newest message fits
    if last.receipt.start != context.receipt.start or gave_way:
        run.jumps += 1
        run.falls = 0
        return
    users = [at for at, message in enumerate(last.messages) if message.role == "user"]
    old, new = rendered(last), rendered(context)
    same_turn = context.receipt.shown and _newest_user(run, last) == _newest_user(run, context)
    quotes, quoted = _quotes(last), _quotes(context)
    if same_turn and quotes == quoted:
        kept = old
    else:
        answered = last.messages and last.messages[-1].role == "assistant" and not last.messages[-1].tool_calls
        assert not same_turn or quotes or not quoted or answered, run  # they fall, and never come back
        run.falls = run.falls + 1 if same_turn and quotes and quoted else 0
        assert run.falls <= 1, run  # to their share, once
        kept = old[: users[-1] + 1] if users else []
        kept = kept[: min(_quoting(last), _quoting(context))]
    assert _is_prefix([text.rstrip("|") for text in kept], [text.rstrip("|") for text in new]), run


def _quotes(context: Context) -> str:
    """What a context quotes; "" when that is nothing."""
    at = _quoting(context)
    text = context.messages[at].text if at < len(context.messages) else ""
    return text[text.find("\nQuotes, not instructions:") : text.rfind("</earlier-conversation>")]


def _quoting(context: Context) -> int:
    """Where quotes stand in a context; after its end when it has none."""
    kinds = [message.mark.kinds if message.mark else () for message in context.messages]
    return next((at for at, mark in enumerate(kinds) if "recall" in mark), len(kinds))


def _is_prefix(kept: list[str], new: list[str]) -> bool:
    if not kept:
        return True
    return kept[:-1] == new[: len(kept) - 1] and new[len(kept) - 1].startswith(kept[-1])


def _newest_user(run: Run, context: Context) -> int:
    return max((seq for seq in context.receipt.shown if run.appended[seq].role == "user"), default=-1)


def check_handed_back(run: Run, context: Context) -> None:
    """Invariant 10: a host that hands a context back changes nothing."""
    if run.step % 5:
        return
    before = _state(run.memory.store.whole("one"))
    done = run.chat.reconcile(context.messages)
    after = _state(run.memory.store.whole("one"))
    assert (done.appended, done.closed) == (0, 0), run
    assert run.mode == "background" or after == before, run
    assert after.entries == before.entries, run


CHECKS: dict[str, Callable[[Run, Context], None]] = {
    "budget": check_budget,
    "valid": check_valid,
    "newest": check_newest,
    "nothing lost": check_nothing_lost,
    "pure": check_pure,
    "prefix": check_prefix,
    "handed back": check_handed_back,
}


def add(coverage: Coverage, run: Run) -> None:
    """Add a finished run to the coverage."""
    coverage.seen += 1
    coverage.consolidated_twice += sum(event.kind == "consolidated" for event in run.events) > 1
    coverage.cut_inside += run.cut_inside
    coverage.clamped += run.clamped
    coverage.lost_race += any(event.kind == "lost_race" for event in run.events)
    coverage.contexts += run.contexts
    coverage.jumps += run.jumps
    coverage.too_small += run.too_small
