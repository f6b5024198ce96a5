"""Measures what the core promises: counts, and times as ratios within one run.

    python benchmarks/core.py [--quick] [--json FILE]

A time is never judged by itself: two things are timed side by side in one process, in CPU seconds, and their
ratio is the figure. All texts are generated from seeds; no network, no key. Exits 1 when a figure that the
design guarantees is missed; a missed goal is printed as missed and leaves the exit at 0.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import math
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import tiktoken
from figures import Figure, Wanted, judged, printed
from speech import Said, agent_of, chat_of, letter, remark

from slidemem import (
    BudgetTooSmall,
    ConversationMemory,
    Event,
    Message,
    SlideMem,
    TokenCounter,
    __version__,
    approximate_counter,
    from_openai,
    tiktoken_counter,
)
from slidemem.stores.memory import MemoryStore
from slidemem.testing import violations

ENCODING: Final = "o200k_base"
BUDGET: Final = 4000

# ------------------------------------------------------------------ what is measured


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    counted: tuple[int, ...]  # messages at which the counter's calls are looked at
    small: int  # messages of the short session
    large: int  # messages of the long one
    turns: int  # that are timed on each
    passes: int  # repetitions of a timed run
    seeds: tuple[int, ...]
    chat_turns: int
    rounds: int  # of tools


FULL: Final = Sizes((100, 1_000, 10_000), 1_000, 100_000, 400, 5, (1, 2, 3), 500, 2_000)
QUICK: Final = Sizes((100, 1_000), 1_000, 10_000, 100, 3, (1,), 200, 200)


@dataclass(frozen=True)
class Bench:
    """What every figure is measured with.

    Attributes:
        sizes: how much.
        counter: counts tokens.
        encode: tiktoken itself; None where its vocabulary is not at hand.
    """

    sizes: Sizes
    counter: TokenCounter
    encode: Callable[[str], list[int]] | None


# ------------------------------------------------------------------ 1. counter calls


class CountingCounter:
    """Counts how often another counter is asked about each message, told apart by what it says."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self.fingerprint = counter.fingerprint
        self.asked: Counter[object] = Counter()

    def count(self, message: Message) -> int:
        """What the other counter says."""
        self.asked[said(message)] += 1
        return self._counter.count(message)


def said(message: Message) -> object:
    """What a message says, without what we mark it with."""
    return message.role, message.parts, message.tool_calls, message.tool_call_id


def counter_calls(bench: Bench) -> Iterator[Figure]:
    """Each appended message is counted once, however many contexts show it."""
    chat = chat_of(10, bench.sizes.counted[-1], letter)
    yield from _calls(bench.counter, chat, bench.sizes.counted, "chat")
    agent = [message for message, _ in itertools.islice(agent_of(11, 1_000, (10, 2_000)), 1_000)]
    yield from _calls(bench.counter, agent, (len(agent),), "agent")


def _calls(counter: TokenCounter, messages: Sequence[Said], sizes: Sequence[int], kind: str) -> Iterator[Figure]:
    """Appends one by one with a context after each, and looks at the calls when there are `sizes` messages."""
    counting = CountingCounter(counter)
    session = SlideMem(max_tokens=BUDGET, counter=counting).session("calls")
    keys: list[object] = []
    for message in messages[: sizes[-1]]:
        session.append(message)
        session.context()
        keys.append(said(from_openai(message)))
        if len(keys) in sizes:
            assert len(set(keys)) == len(keys), "two messages say the same, so their calls cannot be told apart"
            calls = [counting.asked[key] for key in keys]
            furthest = max(calls, key=lambda asked: abs(asked - 1))
            name = f"counter calls for each of {len(keys):,} messages, {kind}"
            yield Figure(name, furthest, Wanted("exactly", 1), guarantee=True)
            composed = counting.asked.total() - sum(calls)
            yield Figure("calls for composed texts, per message", composed / len(keys))


# ------------------------------------------------------------------ 2. and 3. a long session


class Growing:
    """A session whose turns come back every ten, so that its window rises and falls alike at every size.

    Each text ends with its number in six digits, which take the same tokens: no two messages are equal, and
    equal places of two periods cost the same.
    """

    def __init__(self, counter: TokenCounter) -> None:
        self._store = MemoryStore()
        memory = SlideMem(
            max_tokens=BUDGET, counter=counter, store=self._store, on_event=self._happened, recall_share=0
        )
        self._chat = memory.session("growing")
        self._period = chat_of(20, 20, letter)
        self._said = 0
        self._cuts: list[int] = []
        self._seconds: list[float] = []
        self.rows: list[int] = []

    def grow(self, to: int, batch: int) -> None:
        """Append up to `to` messages, `batch` at a time."""
        while self._said < to:
            self._chat.append([self._next() for _ in range(min(batch, to - self._said))])

    def turn(self) -> None:
        """One timed turn: the user's message, the context to send, the answer."""
        user, assistant = self._next(), self._next()
        seconds = timed(partial(self._chat.append, user))
        before = self._store.rows_read
        seconds += timed(self._chat.context)
        self.rows.append(self._store.rows_read - before)
        self._seconds.append(seconds + timed(partial(self._chat.append, assistant)))

    def median(self) -> float:
        """Seconds of the middle turn."""
        return statistics.median(self._seconds)

    def mean(self) -> float:
        """Seconds of a turn over whole saw-teeth of the window: from one consolidation to a later one."""
        cuts = [turn for turn in self._cuts if turn]
        return statistics.mean(self._seconds[cuts[0] + 1 : cuts[-1] + 1])

    def _happened(self, event: Event) -> None:
        """Note the turn that a consolidation belongs to; 0 while nothing is timed yet."""
        if event.kind == "consolidated":
            self._cuts.append(len(self._seconds))

    def _next(self) -> Said:
        message = self._period[self._said % len(self._period)]
        self._said += 1
        return {**message, "content": f"{message['content']} Item {self._said:06d}."}


def timed(action: Callable[[], object]) -> float:
    """CPU seconds of a call: other work on the machine is left out."""
    start = time.process_time()
    action()
    return time.process_time() - start


def long_session(bench: Bench) -> Iterator[Figure]:
    """What a turn reads and takes does not grow with the session; what recall adds is `recall.py`'s."""
    sizes = bench.sizes
    # Both start their timed turns after a batch that ends at the same place of the period, so that their
    # windows are cut at the same places.
    batch = sizes.small - sizes.turns
    short, long = Growing(bench.counter), Growing(bench.counter)
    short.grow(batch, batch)
    long.grow((sizes.large - sizes.turns) // batch * batch, batch)
    for at in range(sizes.turns):
        for session in (short, long) if at % 2 else (long, short):
            session.turn()
    span = f"{sizes.large:,} messages over {sizes.small:,}"
    most, fewest = max(long.rows), max(short.rows)
    yield Figure(
        f"store rows per context, most, at {sizes.large:,} messages", most, Wanted("exactly", fewest), guarantee=True
    )
    yield Figure(f"at {sizes.small:,} messages", fewest)
    yield Figure(f"rows over {sizes.turns} contexts, {span}", sum(long.rows) / sum(short.rows))
    near = Wanted("at most", 1.3)
    yield Figure(f"time per turn, median, {span}", long.median() / short.median(), near)
    yield Figure(f"time per turn, mean with consolidation, {span}", long.mean() / short.mean(), near)


# ------------------------------------------------------------------ 4. cost beside tokenising


@dataclass(frozen=True)
class Spent:
    """CPU seconds of one run over a conversation."""

    append: float
    consolidation: float
    context: float

    @property
    def total(self) -> float:
        """All of them."""
        return self.append + self.consolidation + self.context


def cost(bench: Bench) -> Iterator[Figure]:
    """What a memory costs beside tokenising the same texts once."""
    messages = 1_000
    agent = (message for message, _ in agent_of(41, messages, (50, 1_000)))
    conversations = {"chat": chat_of(40, messages, letter), "agent": list(itertools.islice(agent, messages))}
    taken: dict[str, list[tuple[float, Spent]]] = {kind: [] for kind in conversations}
    for _ in range(bench.sizes.passes):
        for kind, listed in conversations.items():
            taken[kind].append((_tokenising(bench, listed), spend(listed, bench.counter)))
    for kind, passes in taken.items():
        yield from _costs(kind, conversations[kind], passes)


def _tokenising(bench: Bench, messages: Sequence[Said]) -> float:
    """Seconds of tokenising each text once, the middle of five passes; not a number without a tokenizer."""
    if bench.encode is None:
        return math.nan
    texts = [text for message in messages for text in texts_of(message)]
    return statistics.median(timed(partial(_encode_all, bench.encode, texts)) for _ in range(5))


def _encode_all(encode: Callable[[str], list[int]], texts: Sequence[str]) -> None:
    for text in texts:
        encode(text)


def texts_of(message: Said) -> list[str]:
    """Every text of a message that costs tokens."""
    calls = [call["function"] for call in message.get("tool_calls", ())]
    return [message["content"] or "", *(text for call in calls for text in (call["name"], call["arguments"]))]


def spend(messages: Sequence[Said], counter: TokenCounter) -> Spent:
    """Append each message and read a context after it; an append's consolidation is what it takes above the usual."""
    events: list[Event] = []
    session = SlideMem(max_tokens=BUDGET, counter=counter, on_event=events.append).session("cost")
    plain: list[float] = []
    cutting: list[float] = []
    reading = 0.0
    for message in messages:
        happened = len(events)
        seconds = timed(partial(session.append, message))
        (plain if len(events) == happened else cutting).append(seconds)
        reading += timed(session.context)
    usual = statistics.median(plain)
    return Spent(sum(plain) + usual * len(cutting), sum(cutting) - usual * len(cutting), reading)


def _costs(kind: str, messages: Sequence[Said], passes: Sequence[tuple[float, Spent]]) -> Iterator[Figure]:
    """The rows of one conversation: medians of the passes' ratios."""

    def ratio(part: Callable[[Spent], float]) -> float | None:
        middle = statistics.median(part(spent) / alone for alone, spent in passes)
        return None if math.isnan(middle) else middle

    name = f"append and context of {len(messages):,} messages over tokenising them, {kind}"
    yield Figure(name, ratio(lambda spent: spent.total), Wanted("at most", 5))
    yield Figure("of it append", ratio(lambda spent: spent.append))
    yield Figure("of it consolidation", ratio(lambda spent: spent.consolidation))
    yield Figure("of it context", ratio(lambda spent: spent.context))
    characters = sum(len(text) for message in messages for text in texts_of(message))
    yield Figure("characters per message", characters / len(messages))
    speed = ratio(lambda _: characters / 1e6)
    yield Figure("tokenising, million characters per second of this machine", speed)


# ------------------------------------------------------------------ 5. prefix re-use


@dataclass(frozen=True)
class Prompt:
    """What is sent for one user message.

    Attributes:
        text: rendered.
        verbatim: share of the budget that holds messages as they were said.
    """

    text: str
    verbatim: float


PromptsOf = Callable[[Sequence[Said], TokenCounter], Iterable[Prompt]]
CHAT_BUDGET: Final = 3000


def prefix(bench: Bench) -> Iterator[Figure]:
    """How much of a prompt the one before it began with, and how much of the budget is verbatim."""
    chats = [chat_of(50 + seed, 2 * bench.sizes.chat_turns, remark) for seed in bench.sizes.seeds]
    ways: dict[str, tuple[PromptsOf, Wanted | None]] = {
        "recall_share=0": (partial(_remembered, recall_share=0), Wanted("at least", 0.92)),
        "default options": (_remembered, None),
        "one-turn slide": (_sliding, None),
    }
    for way, (prompts_of, wanted) in ways.items():
        runs = [list(prompts_of(chat, bench.counter)) for chat in chats]
        reused = [_reuse(prompts) for prompts in runs]
        shares = [statistics.mean(prompt.verbatim for prompt in prompts) for prompts in runs]
        name = f"prefix re-use, {bench.sizes.chat_turns} turns at {CHAT_BUDGET:,} tokens, {way}"
        yield Figure(f"{name}, mean", statistics.mean(reused), wanted)
        yield Figure(f"{name}, worst", min(reused), wanted)
        yield Figure("verbatim share of the budget, mean", statistics.mean(shares))
        yield Figure("the least", min(shares))
    letters = chat_of(50, 2 * bench.sizes.chat_turns, letter)
    reused_letters = _reuse(list(_remembered(letters, bench.counter, recall_share=0)))
    yield Figure("recall_share=0 with messages of about 300 characters", reused_letters)
    said_in_all = [from_openai(message) for chat in chats for message in chat]
    yield Figure("chats", len(chats))
    yield Figure("characters per message", statistics.mean(len(message.text) for message in said_in_all))
    yield Figure("tokens per message", statistics.mean(bench.counter.count(message) for message in said_in_all))


def _remembered(chat: Sequence[Said], counter: TokenCounter, **options: Any) -> Iterator[Prompt]:
    """The prompts of a memory."""
    session = SlideMem(max_tokens=CHAT_BUDGET, counter=counter, **options).session("prefix")
    for message in chat:
        session.append(message)
        if message["role"] == "user":
            context = session.context()
            yield Prompt(_rendered(context.messages), context.zones.window / context.receipt.usable)


def _sliding(chat: Sequence[Said], counter: TokenCounter) -> Iterator[Prompt]:
    """The prompts of a window that drops its oldest turn until it fits."""
    turns: list[list[Message]] = []
    for message in map(from_openai, chat):
        if message.role == "user":
            turns.append([])
        turns[-1].append(message)
        if message.role == "user":
            while (tokens := sum(counter.count(one) for turn in turns for one in turn)) > CHAT_BUDGET:
                del turns[0]
            yield Prompt(_rendered([one for turn in turns for one in turn]), tokens / CHAT_BUDGET)


def _rendered(messages: Sequence[Message]) -> str:
    """Role, content and calls of each message, in one text."""
    return "".join(
        f"\n{message.role}: {message.text}"
        + "".join(f" {call.id} {call.name} {call.arguments}" for call in message.tool_calls)
        for message in messages
    )


def _reuse(prompts: Sequence[Prompt]) -> float:
    """Characters that the prompt before began with, over all characters."""
    common = sum(shared(one.text, two.text) for one, two in itertools.pairwise(prompts))
    return common / sum(len(prompt.text) for prompt in prompts)


def shared(one: str, two: str) -> int:
    """Characters with which both begin."""
    places = range(min(len(one), len(two)))
    return bisect_left(places, 1, key=lambda at: not two.startswith(one[: at + 1]))


# ------------------------------------------------------------------ 6. budget and validity


@dataclass
class Prompts:
    """What was seen of a session's prompts.

    Attributes:
        seen: how many.
        over: of them, over the budget.
        invalid: of them, what a provider would refuse.
        clamped: of them, with a message cut to fit.
        fullest: tokens of the largest.
    """

    seen: int = 0
    over: int = 0
    invalid: int = 0
    clamped: int = 0
    fullest: int = 0

    def look(self, session: ConversationMemory, counter: TokenCounter) -> None:
        """Read the session's prompt and judge it, its tokens counted anew by the counter itself."""
        self.seen += 1
        try:
            context = session.context()
        except BudgetTooSmall:
            self.over += 1
            return
        tokens = sum(counter.count(message) for message in context.messages)
        self.fullest = max(self.fullest, tokens)
        self.over += tokens > BUDGET
        self.invalid += context.receipt.open or bool(violations(context.to_openai()))
        self.clamped += bool(context.receipt.clamped)


def agent_session(bench: Bench) -> Iterator[Figure]:
    """No prompt of a long agent session is over its budget or one that a provider would refuse.

    Once with the default options, whose prompts keep room for recall, and once as full as prompts get: nothing
    kept for recall, and consolidation only after a turn's answer, so that long turns outgrow the window.
    """
    yield from _agent_prompts(bench, "default options")
    yield from _agent_prompts(bench, "no recall, late", recall_share=0, mode="manual")


def _agent_prompts(bench: Bench, way: str, **options: Any) -> Iterator[Figure]:
    """One session, its prompts read after each user message and each round of tools."""
    session = SlideMem(max_tokens=BUDGET, counter=bench.counter, **options).session("agent")
    prompts, manual = Prompts(), options.get("mode") == "manual"
    for message, is_prompt in agent_of(60, bench.sizes.rounds, (10, 20_000)):
        session.append(message)
        if is_prompt:
            prompts.look(session, bench.counter)
        elif manual and message["role"] == "assistant" and "tool_calls" not in message:
            session.consolidate()
    none, name = Wanted("exactly", 0), f"{bench.sizes.rounds:,} tool rounds, {way}"
    yield Figure(
        f"share of prompts over {BUDGET:,} tokens, {name}", prompts.over / prompts.seen, none, guarantee=True
    )
    yield Figure(f"share of prompts that are invalid, {name}", prompts.invalid / prompts.seen, none, guarantee=True)
    yield Figure("prompts", prompts.seen)
    yield Figure("the fullest, in tokens", prompts.fullest)
    yield Figure("share of them with a clamped message", prompts.clamped / prompts.seen)
    yield Figure("consolidations", session.stats().consolidations)


# ------------------------------------------------------------------ 7. a failing summariser


class Faulty:
    """A summariser whose every third call fails, each time in another way."""

    def __init__(self) -> None:
        self.calls = 0
        self.failed = 0

    def __call__(self, messages: list[Said]) -> str:
        """Notes of the span: the beginnings of its first messages."""
        self.calls += 1
        if self.calls % 3:
            return "\n".join(str(message["content"])[:60] for message in messages[:4])
        self.failed += 1
        if self.failed % 3 == 0:
            raise TimeoutError("no answer")
        return "" if self.failed % 3 == 1 else "\n".join(str(message["content"]) for message in messages) * 2


def failing_summarizer(bench: Bench) -> Iterator[Figure]:
    """A summariser that fails loses no message."""
    summarize, events = Faulty(), list[Event]()
    memory = SlideMem(max_tokens=BUDGET, counter=bench.counter, consolidator=summarize, on_event=events.append)
    session = memory.session("faulty")
    chat = chat_of(70, 2 * bench.sizes.chat_turns, letter)
    sent: list[Message] = []
    lost = looked = 0
    for message in chat:
        session.append(message)
        sent.append(from_openai(message))
        if len(events) > looked or len(sent) == len(chat):
            looked = len(events)
            covered = [(segment.start, segment.end) for segment in session.archive()]
            live = (session.context().receipt.boundary, session.stats().messages)
            lost += _lost(sent, session.transcript(), [*covered, live])
    yield Figure(
        f"messages lost of {len(sent):,}, every third summary failing", lost, Wanted("exactly", 0), guarantee=True
    )
    kinds = Counter(event.kind for event in events)
    yield Figure("consolidations", kinds["consolidated"])
    yield Figure("merges of segments", kinds["merged"])
    yield Figure("summariser calls", summarize.calls)
    yield Figure("of them failed", summarize.failed)
    yield Figure("answers refused, the failed ones counted in", kinds["refused"])


def _lost(sent: Sequence[Message], kept: Sequence[Message], ranges: Sequence[tuple[int, int]]) -> int:
    """How many messages are not in exactly one of the ranges, or not kept as they were sent."""
    places = Counter(at for start, end in ranges for at in range(start, end))
    return sum(
        places[at] != 1 or at >= len(kept) or said(kept[at]) != said(message) for at, message in enumerate(sent)
    )


# ------------------------------------------------------------------ the run

MEASURES: Final[Sequence[Callable[[Bench], Iterator[Figure]]]] = (
    counter_calls,
    long_session,
    cost,
    prefix,
    agent_session,
    failing_summarizer,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and judge; returns the exit status."""
    parser = argparse.ArgumentParser(description="The core's figures, as ratios within one run.")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, for a look in between")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    given = parser.parse_args(arguments)
    started = time.monotonic()
    bench = prepared(QUICK if given.quick else FULL)
    figures = list(printed(partial(measure, bench) for measure in MEASURES))
    print(f"\n{time.monotonic() - started:.0f} seconds, counted with {bench.counter.fingerprint}")
    if given.json:
        given.json.write_text(json.dumps(_report(bench, figures), indent=2) + "\n", encoding="utf-8")
    return judged(figures)


def prepared(sizes: Sizes) -> Bench:
    """A bench that counts with tiktoken where its vocabulary is at hand, and with the estimate elsewhere."""
    source = _vocabulary()
    if source is None:
        print(f'No vocabulary of {ENCODING} at hand (llama-index-core has one): counter="approximate".\n')
        return Bench(sizes, approximate_counter(), None)
    with tempfile.TemporaryDirectory() as folder:
        # A copy, since tiktoken deletes a file whose hash is not what it expects.
        shutil.copy(source, folder)
        os.environ["TIKTOKEN_CACHE_DIR"] = folder
        return Bench(sizes, tiktoken_counter(ENCODING), tiktoken.get_encoding(ENCODING).encode_ordinary)


def _vocabulary() -> Path | None:
    """The file in tiktoken's own format that llama-index-core ships; llama_index itself is not imported."""
    url = f"https://openaipublic.blob.core.windows.net/encodings/{ENCODING}.tiktoken"
    name = hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
    package = find_spec("llama_index")
    folders = (package.submodule_search_locations or []) if package else []
    files = (Path(folder, "core", "_static", "tiktoken_cache", name) for folder in folders)
    return next((file for file in files if file.is_file()), None)


def _report(bench: Bench, figures: Sequence[Figure]) -> dict[str, Any]:
    """The run as a JSON object."""
    return {
        "slidemem": __version__,
        "python": platform.python_version(),
        "counter": bench.counter.fingerprint,
        "sizes": asdict(bench.sizes),
        "figures": [{**asdict(figure), "verdict": figure.verdict} for figure in figures],
    }


if __name__ == "__main__":
    sys.exit(main())
