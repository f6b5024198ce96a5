"""Decides what is measured when a conversation is replayed through a memory, one message at a time.

A context is read at the moments when a model would be called. Beside it stands what a window that slides one
turn at a time would have sent, under the same budget and counter. How a report looks is `show`'s.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from slidemem.archive import Segment
from slidemem.blocks import blocks, readable
from slidemem.compose import Context, Zones
from slidemem.conversation import ConversationMemory
from slidemem.events import Event
from slidemem.memory import SlideMem
from slidemem.messages import Message
from slidemem.openai_format import from_openai
from slidemem.search import Hit
from slidemem.state import Pin
from slidemem.transcripts import Fact

Place = Literal["window", "recall", "pinned", "archive", "system"]

_SESSION: Final = "replay"
_HITS: Final = 10  # that a question is shown with


@dataclass(frozen=True, slots=True)
class Prefix:
    """How much of a prompt the prompt before it began with, in tokens: what a provider's cache could serve.

    Attributes:
        tokens: of the whole prompt.
        reused: of the common prefix in rendered text; the message in which it ends counts in part.
        reused_whole: of those, tokens of whole messages.
    """

    tokens: int
    reused: int
    reused_whole: int


@dataclass(frozen=True, slots=True)
class Step:
    """One prompt.

    Attributes:
        index: `seq` of the message that the model would write.
        turn: the user turn that it belongs to, from 1.
        zones: tokens by zone.
        tokens: of the context.
        usable: tokens that there were.
        shown: messages of the transcript that it shows.
        left_out: live messages that it does not show.
        covered: messages that the archive stands for.
        left: `seq` of each message that the prompt before showed and this one does not.
        events: what happened since the prompt before.
        prefix: what the prompt before began with.
        slide: the same of a window that slides one turn at a time.
        slide_shown: messages that this window shows, system messages left out; 0 when not even the newest
            turn fits, so that the user's message is missing.
    """

    index: int
    turn: int
    zones: Zones
    tokens: int
    usable: int
    shown: int
    left_out: int
    covered: int
    left: tuple[int, ...]
    events: tuple[Event, ...]
    prefix: Prefix
    slide: Prefix
    slide_shown: int


@dataclass(frozen=True, slots=True)
class FactCheck:
    """Whether a fact was in the prompt when it was needed: the first one of its turn.

    Attributes:
        fact: what was looked for.
        index: `Step.index` of the prompt.
        place: where it stood; None when it was missing.
        in_slide: whether the window that slides one turn at a time held it.
    """

    fact: Fact
    index: int
    place: Place | None
    in_slide: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question finds at the end of a replay.

    Attributes:
        query: the question.
        hits: what a search for it finds, best first.
        context: the context that is asked it.
    """

    query: str
    hits: tuple[Hit, ...]
    context: Context

    def place(self, hit: Hit) -> Place | None:
        """Where the context shows what was found; None where it does not."""
        if hit.seq in self.context.receipt.shown:
            return "window"
        if hit.seq in self.context.receipt.recalled:
            return "recall"
        texts = [blocks(message) for message in self.context.messages] if hit.message is None else []
        if any(hit.text in said.head for said in texts):
            return "archive"
        return "recall" if any(hit.text in said.quotes for said in texts) else None


@dataclass(frozen=True, slots=True)
class Report:
    """A replay in figures.

    Attributes:
        messages: replayed.
        turns: user messages among them.
        usable: tokens that each prompt could take.
        steps: the prompts.
        consolidations: times that messages left the window for good.
        facts: what became of each fact whose turn came to a prompt.
        final: the context at the end.
        archive: its segments at the end.
        pins: what is pinned at the end.
        answer: what a question finds then; None when none was asked.
    """

    messages: int
    turns: int
    usable: int
    consolidations: int
    steps: tuple[Step, ...]
    facts: tuple[FactCheck, ...]
    final: Context
    archive: tuple[Segment, ...]
    pins: tuple[Pin, ...]
    answer: Answer | None = None

    @property
    def worst_tokens(self) -> int:
        """Tokens of the largest prompt."""
        return max((step.tokens for step in self.steps), default=0)

    @property
    def over_budget(self) -> int:
        """Prompts that took more than was usable."""
        return sum(1 for step in self.steps if step.tokens > step.usable)

    @property
    def reuse(self) -> float:
        """Share of all prompt tokens that the prompt before began with, 0 to 1."""
        return _share([step.prefix for step in self.steps])

    @property
    def slide_reuse(self) -> float:
        """The same of a window that slides one turn at a time."""
        return _share([step.slide for step in self.steps])

    @property
    def slide_starved(self) -> int:
        """Prompts in which that window holds no user message, since not even the newest turn fits."""
        return sum(1 for step in self.steps if not step.slide_shown)

    @property
    def facts_held(self) -> int:
        """Facts that were in the prompt when they were needed."""
        return sum(1 for check in self.facts if check.place)

    @property
    def slide_facts_held(self) -> int:
        """Facts that were in the sliding window's prompt when they were needed."""
        return sum(1 for check in self.facts if check.in_slide)

    def to_json(self) -> dict[str, Any]:
        """The report as one JSON object: totals, then every prompt, fact and segment, and the last context."""
        return {
            "messages": self.messages,
            "turns": self.turns,
            "usable_tokens": self.usable,
            "prompts": len(self.steps),
            "prompts_over_budget": self.over_budget,
            "worst_tokens": self.worst_tokens,
            "final_tokens": self.final.tokens,
            "prompt_tokens": sum(step.prefix.tokens for step in self.steps),
            "consolidations": self.consolidations,
            "verbatim_messages": len(self.final.receipt.shown),
            "archived_messages": self.final.receipt.covered,
            "archive_tokens": self.final.zones.archive,
            "prefix_reuse": round(self.reuse, 4),
            "facts_needed": len(self.facts),
            "facts_held": self.facts_held,
            "one_turn_slide": {
                "prompt_tokens": sum(step.slide.tokens for step in self.steps),
                "prefix_reuse": round(self.slide_reuse, 4),
                "facts_held": self.slide_facts_held,
                "prompts_without_user_message": self.slide_starved,
            },
            "facts": [asdict(check) for check in self.facts],
            "steps": [asdict(step) for step in self.steps],
            "archive": [segment.to_json() for segment in self.archive],
            "pins": [pin.to_json() for pin in self.pins],
            "final": {
                "zones": asdict(self.final.zones),
                "receipt": asdict(self.final.receipt),
                "messages": self.final.to_openai(),
            },
            **({} if self.answer is None else {"query": _answered(self.answer)}),
        }


def _answered(answer: Answer) -> dict[str, Any]:
    found = [
        {"seq": hit.seq, "score": round(hit.score, 4), "shown": answer.place(hit), "text": hit.text}
        for hit in answer.hits
    ]
    context = answer.context
    return {"text": answer.query, "found": found, "tokens": context.tokens, "messages": context.to_openai()}


def replay(
    messages: Sequence[Mapping[str, Any] | Message],
    facts: Sequence[Fact] = (),
    *,
    query: str | None = None,
    on_step: Callable[[Step], None] | None = None,
    **options: Any,
) -> Report:
    """Append messages to a new session one at a time, and measure each prompt on the way.

    A context is read whenever the next message is the assistant's, and at the end. One that is no prompt,
    because calls still wait for results or no user has spoken, is passed over.

    Args:
        messages: OpenAI-format dicts or `Message`.
        facts: what to look for, and when.
        query: a question to ask at the end; None asks none.
        on_step: called with each step as it happens.
        **options: of `SlideMem`, `max_tokens` first of all; `on_event` is taken.

    Raises:
        ConfigurationError, VocabularyMissing: see `SlideMem`.
        InvalidMessage: a message cannot be read; nothing is replayed.
        BudgetTooSmall: a context does not fit, even clamped to its marks.
    """
    given = tuple(from_openai(message, index) for index, message in enumerate(messages))
    events: list[Event] = []
    memory = SlideMem(on_event=events.append, **options)
    run = _Run(memory.session(_SESSION), events, _Slide(memory.options.usable), list(facts))
    for index, message in enumerate(given, 1):
        run.append(message)
        if index < len(given) and given[index].role == "assistant":
            run.read(index, on_step)
    final = run.read(len(given), on_step)
    return Report(
        messages=len(given),
        turns=run.turn,
        usable=memory.options.usable,
        consolidations=run.session.stats().consolidations,
        steps=tuple(run.steps),
        facts=tuple(run.checks),
        final=final,
        archive=run.session.archive(),
        pins=run.session.pins(),
        answer=None if query is None else _asked(run.session, query),
    )


def _asked(session: ConversationMemory, query: str) -> Answer:
    return Answer(query, session.search(query, _HITS), session.context(query=query))


class _Prefixes:
    """Compares each prompt with the one before."""

    def __init__(self) -> None:
        self._last: tuple[str, ...] = ()

    def see(self, messages: Sequence[Message], costs: Sequence[int]) -> Prefix:
        """How much of this prompt the last one began with."""
        now = tuple(map(_rendered, messages))
        whole = _common(self._last, now)
        tokens = sum(costs[:whole])
        part = 0
        if whole < min(len(self._last), len(now)):
            part = costs[whole] * _common(self._last[whole], now[whole]) // len(now[whole])
        self._last = now
        return Prefix(sum(costs), tokens + part, tokens)


@dataclass(slots=True)
class _Slide:
    """The baseline: leading system messages and the newest whole turns that fit, chosen anew for each prompt.

    So do LangChain's `trim_messages(strategy="last", start_on="human", include_system=True)` and, but for the
    system prompt, LlamaIndex's `ChatMemoryBuffer`.
    """

    usable: int
    system: list[Message] = field(default_factory=list[Message])
    rest: list[Message] = field(default_factory=list[Message])
    costs: list[int] = field(default_factory=list[int])
    openers: list[int] = field(default_factory=list[int])
    sums: list[int] = field(default_factory=lambda: [0])
    prefixes: _Prefixes = field(default_factory=_Prefixes)

    def append(self, message: Message, tokens: int) -> None:
        """Add a message at the end."""
        self.costs.append(tokens)
        if message.role == "system" and not self.rest:
            self.system.append(message)
            return
        if message.role == "user":
            self.openers.append(len(self.rest))
        self.rest.append(message)
        self.sums.append(self.sums[-1] + tokens)

    def prompt(self) -> tuple[list[Message], Prefix, int]:
        """What it would send, how much of that it sent before, and how many messages besides the system's."""
        led = len(self.system)
        over = self.sums[-1] + sum(self.costs[:led]) - self.usable
        # The first opener with at least `over` tokens before it.
        place = bisect_left(self.openers, over, key=self.sums.__getitem__)
        start = self.openers[place] if place < len(self.openers) else len(self.rest)
        shown = [*self.system, *self.rest[start:]]
        prefix = self.prefixes.see(shown, [*self.costs[:led], *self.costs[led + start :]])
        return shown, prefix, len(shown) - led


@dataclass(slots=True)
class _Run:
    """A replay under way."""

    session: ConversationMemory
    events: list[Event]
    slide: _Slide
    waiting: list[Fact]
    turn: int = 0
    shown: tuple[int, ...] = ()
    steps: list[Step] = field(default_factory=list[Step])
    checks: list[FactCheck] = field(default_factory=list[FactCheck])
    prefixes: _Prefixes = field(default_factory=_Prefixes)

    def append(self, message: Message) -> None:
        """Give both the next message."""
        self.session.append(message)
        self.slide.append(message, self.session.count(message))
        self.turn += message.role == "user"

    def read(self, index: int, on_step: Callable[[Step], None] | None) -> Context:
        """Read the context; a step is made of it when it is a prompt."""
        context = self.session.context()
        if context.receipt.open or not context.receipt.shown:
            return context
        in_slide, prefix, slide_shown = self.slide.prompt()
        step = self._step(index, context, prefix, slide_shown)
        self._check(index, context, in_slide)
        self.shown = context.receipt.shown
        self.events.clear()
        self.steps.append(step)
        if on_step:
            on_step(step)
        return context

    def _step(self, index: int, context: Context, slide: Prefix, slide_shown: int) -> Step:
        receipt = context.receipt
        still = set(receipt.shown)
        return Step(
            index=index,
            turn=self.turn,
            zones=context.zones,
            tokens=context.tokens,
            usable=receipt.usable,
            shown=len(receipt.shown),
            left_out=receipt.left_out,
            covered=receipt.covered,
            left=tuple(seq for seq in self.shown if seq not in still),
            events=tuple(self.events),
            prefix=self.prefixes.see(context.messages, context.costs),
            slide=slide,
            slide_shown=slide_shown,
        )

    def _check(self, index: int, context: Context, in_slide: Sequence[Message]) -> None:
        """Look for the facts that are needed now; a turn without a prompt is answered by the next one."""
        needed = [fact for fact in self.waiting if fact.needed_in <= self.turn]
        for fact in needed:
            self.waiting.remove(fact)
            found = any(_says(readable(message), fact) for message in in_slide)
            self.checks.append(FactCheck(fact, index, self._place(fact, context), found))

    def _place(self, fact: Fact, context: Context) -> Place | None:
        """Where a context holds a fact: verbatim before second-hand, what was said before what was prescribed."""
        spoken = [message for message in context.messages if message.role != "system"]
        if any(_says(readable(message), fact) for message in spoken):
            return "window"
        if any(_says(blocks(message).quotes, fact) for message in context.messages):
            return "recall"
        if any(_says(blocks(message).head, fact) for message in context.messages):
            return "pinned" if any(_says(pin.text, fact) for pin in self.session.pins()) else "archive"
        return "system" if any(_says(readable(message), fact) for message in context.messages) else None


def _common(before: Sequence[str], now: Sequence[str]) -> int:
    """How many items (of a text: characters) two sequences begin with alike."""
    pairs = enumerate(zip(before, now, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(before), len(now)))


def _says(text: str, fact: Fact) -> bool:
    return fact.needle.casefold() in text.casefold()


def _rendered(message: Message) -> str:
    """A message as one text, field after field, so that equal prefixes of prompts are equal prefixes of texts."""
    parts = (part.source or part.text for part in message.parts)
    calls = (f"{call.id} {call.name} {call.arguments}" for call in message.tool_calls)
    head = f"{message.role} {message.name or ''} {message.tool_call_id or ''}"
    return "\n".join((head, *parts, *calls))


def _share(prefixes: Sequence[Prefix]) -> float:
    tokens = sum(prefix.tokens for prefix in prefixes)
    return sum(prefix.reused for prefix in prefixes) / tokens if tokens else 0.0
