"""Measures what recall brings back: the old messages that a question needs, within the budget.

    python benchmarks/recall.py DIALOGUES [--quick] [--json FILE]

DIALOGUES is a file in the form of LoCoMo's `data/locomo10.json` (Maharana et al., ACL 2024; published in
github.com/snap-research/locomo under CC BY-NC 4.0, so it is no part of this project). Each dialogue is replayed, and
each question of categories 1 to 4 asked at several moments of the window's saw-tooth. Evidence present is the share
of a question's gold messages whose text is in the context word for word, averaged over questions. Times are ratios
within one run, in CPU seconds.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import count, islice
from pathlib import Path
from statistics import mean
from typing import Any, Final

import core
from embedded import Remembering, local_model, memories
from figures import Figure, Wanted, judged, printed
from smalltalk import SMALL_TALK
from speech import Said

import slidemem.recall
import slidemem.terms
from slidemem import Context, ConversationMemory, Message, Part, SlideMem, TokenCounter, from_openai
from slidemem.index import Index
from slidemem.post import post_of
from slidemem.stores.base import Store
from slidemem.stores.memory import MemoryStore
from slidemem.stores.sqlite import SQLiteStore

BUDGETS: Final = (1_000, 2_000, 4_000, 8_000)
PRESETS: Final[Mapping[str, Mapping[str, float]]] = {
    "default": {},
    "recall-heavy": {"archive_share": 0.10, "recall_share": 0.60},
}
GOALS: Final[Mapping[str, Sequence[float]]] = {"default": (74, 82, 87, 91), "recall-heavy": (78, 85, 89, 92)}
CATEGORIES: Final = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop"}
MOMENTS: Final = 5
MORE: Final = 3  # points that a small embedding model is to add
BESIDES: Final = ("All right, noted.", "Sure! Tell me if there is anything else that I can do for you today.")

# ------------------------------------------------------------------ the dialogues


@dataclass(frozen=True)
class Question:
    """A question about a dialogue.

    Attributes:
        text: of it.
        category: of LoCoMo, 1 to 4.
        evidence: texts of the messages that hold the answer.
    """

    text: str
    category: int
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Dialogue:
    """A dialogue between two people; the first is the user, the second the assistant."""

    said: tuple[Said, ...]
    after: tuple[Said, ...]  # small talk, with which the window moves on
    questions: tuple[Question, ...]


def dialogues(path: Path) -> list[Dialogue]:
    """The dialogues of a file."""
    return [_dialogue(one) for one in json.loads(path.read_text(encoding="utf-8"))]


def _dialogue(stored: Mapping[str, Any]) -> Dialogue:
    talk = stored["conversation"]
    texts: dict[str, str] = {}
    said: list[Said] = []
    at = datetime.min  # noqa: DTZ901  # the data have no zone
    for number in count(1):
        if f"session_{number}" not in talk:
            break
        day = talk[f"session_{number}_date_time"]
        at = datetime.strptime(day, "%I:%M %p on %d %B, %Y")  # noqa: DTZ007  # the data have no zone
        for place, turn in enumerate(talk[f"session_{number}"]):
            text = turn["text"] if place else f"[{day}] {turn['text']}"
            texts[turn["dia_id"]] = text
            role = "user" if turn["speaker"] == talk["speaker_a"] else "assistant"
            said.append(_said(role, turn["speaker"], text, at + timedelta(minutes=place)))
    later = at + timedelta(days=1)
    after = [
        _said(role, talk[f"speaker_{who}"], text, later + timedelta(minutes=2 * place))
        for place, remark in enumerate(SMALL_TALK)
        for role, who, text in (("user", "a", remark), ("assistant", "b", BESIDES[place % 2]))
    ]
    return Dialogue(tuple(said), tuple(after), tuple(_questions(stored["qa"], texts)))


def _said(role: str, name: str, text: str, at: datetime) -> Said:
    return {"role": role, "name": name, "content": text, "time": at.isoformat()}


def _questions(asked_: Sequence[Mapping[str, Any]], texts: Mapping[str, str]) -> Iterator[Question]:
    for one in asked_:
        evidence = tuple(texts[key] for key in one["evidence"] if key in texts)
        if one["category"] in CATEGORIES and evidence:
            yield Question(one["question"], one["category"], evidence)


def message_of(said: Said) -> Message:
    """The neutral form of a message, with its time."""
    return Message(said["role"], (Part("text", said["content"]),), name=said["name"], time=said["time"])


# ------------------------------------------------------------------ what recall shows


@dataclass(frozen=True)
class Moment:
    """A session at one moment of its window.

    Attributes:
        chat: the session.
        said: its messages.
    """

    chat: ConversationMemory
    said: Sequence[Message]


@dataclass(frozen=True)
class Found:
    """What one question found at one moment.

    Attributes:
        evidence: share of it that is present, 0 to 1.
        category: of the question.
        verbatim: share of usable tokens that the window takes.
        tokens: of context and block together.
        usable: tokens that there were.
        quotes: how many there are.
    """

    evidence: float
    category: int
    verbatim: float
    tokens: int
    usable: int
    quotes: int


def moments(
    bench: core.Bench, dialogue: Dialogue, budget: int, options: Mapping[str, Any], number: int
) -> Iterator[Moment]:
    """The session after the dialogue, and again while small talk moves its window through one saw-tooth."""
    memory = SlideMem(max_tokens=budget, counter=bench.counter, **options)
    chat, said = memory.session("asked"), [message_of(one) for one in dialogue.said]
    chat.append(said)
    if "embeddings" in options:
        chat.consolidate()  # what one append of so many messages leaves to embed
    period = (memory.options.compact_at - memory.options.compact_to) * memory.options.allotment
    after, spent = iter(map(message_of, dialogue.after)), 0
    for moment in range(number):
        while spent < period * moment / number and (turn := list(islice(after, 2))):
            chat.append(turn)
            said.extend(turn)
            spent += sum(map(bench.counter.count, turn))
        yield Moment(chat, tuple(said))


def measure(counter: TokenCounter, text: str) -> int:
    """Tokens of a text as a user message of its own."""
    return counter.count(Message("user", (Part("text", text),)))


def found(moment: Moment, question: Question) -> Found:
    """Ask one question."""
    context = moment.chat.context(query=question.text)
    whole = "\n".join(message.text for message in context.messages)
    return Found(
        mean(text in whole for text in question.evidence),
        question.category,
        context.zones.window / context.receipt.usable,
        context.tokens,
        context.receipt.usable,
        len(context.receipt.recalled),
    )


def ask(
    bench: core.Bench, data: Sequence[Dialogue], budget: int, options: Mapping[str, Any], number: int
) -> list[Found]:
    """Ask every question of every dialogue."""
    return [
        found(moment, question)
        for dialogue in data
        for moment in moments(bench, dialogue, budget, options, number)
        for question in dialogue.questions
    ]


def present(answers: Sequence[Found]) -> float:
    """Evidence present, in per cent."""
    return 100 * mean(one.evidence for one in answers)


# ------------------------------------------------------------------ 1. evidence


def evidence(
    bench: core.Bench, data: Sequence[Dialogue], number: int, model: Remembering | None = None
) -> Iterator[Figure]:
    """Evidence present with the default options and with the preset that is heavy on recall."""
    beside = {} if model is None else {"embeddings": model, "embedding_seconds": None}
    for preset, options in PRESETS.items():
        for budget, least in zip(BUDGETS, GOALS[preset], strict=True):
            answers = ask(bench, data, budget, {**options, **beside}, number)
            name, goal = f"evidence present, % at {budget:,} tokens, {preset}", least
            if model is not None:
                name, goal = f"{name}, {model.name}", least + MORE
            yield Figure(name, present(answers), Wanted("at least", goal))
            by_category: defaultdict[int, list[Found]] = defaultdict(list)
            for one in answers:
                by_category[one.category].append(one)
            for category, some in sorted(by_category.items()):
                yield Figure(f"of {len(some) // number} {CATEGORIES[category]} questions", present(some))
            yield Figure("verbatim window, % of usable", 100 * mean(one.verbatim for one in answers))
            yield Figure("quotes to a question", mean(one.quotes for one in answers))
            over = sum(one.tokens > one.usable for one in answers)
            yield Figure(f"contexts over the budget, of {len(answers):,}", over, Wanted("exactly", 0), guarantee=True)


# ------------------------------------------------------------------ 2. what each step gains

STEPS: Final[Sequence[tuple[str, Mapping[str, Any]]]] = (
    ("BM25 alone", {"_HELP": (), "_LONG": 10**9, "_NAMED": 1.0, "_STEM": 64}),
    ("and the two next to it", {"_HELP": (0.5, 0.25)}),
    ("and the six next to it", {"_HELP": slidemem.recall._HELP}),  # noqa: SLF001  # a step is what is inside
    ("and words as their first six letters", {"_STEM": slidemem.terms._STEM}),  # noqa: SLF001  # the same
    ("and long messages paying for their length", {"_LONG": slidemem.recall._LONG}),  # noqa: SLF001  # the same
    ("and the speaker named", {"_NAMED": slidemem.recall._NAMED}),  # noqa: SLF001  # the same
)


@contextmanager
def changed(values: Mapping[str, Any]) -> Iterator[None]:
    """Other numbers inside."""
    places = {name: slidemem.terms if hasattr(slidemem.terms, name) else slidemem.recall for name in values}
    before = {name: getattr(place, name) for name, place in places.items()}
    for name, place in places.items():
        setattr(place, name, values[name])
    slidemem.terms._known.cache_clear()  # noqa: SLF001  # its words were cut with other numbers
    try:
        yield
    finally:
        for name, place in places.items():
            setattr(place, name, before[name])
        slidemem.terms._known.cache_clear()  # noqa: SLF001  # the same


def steps(bench: core.Bench, data: Sequence[Dialogue]) -> Iterator[Figure]:
    """Evidence present, default options, as one step is added after the other; two moments."""
    values: dict[str, Any] = {}
    for name, more in STEPS:
        values |= more
        for budget in BUDGETS:
            with changed(values):
                yield Figure(f"{name}, % at {budget:,} tokens", present(ask(bench, data, budget, {}, 2)))


# ------------------------------------------------------------------ 3. peers


def peers(bench: core.Bench, data: Sequence[Dialogue], number: int) -> Iterator[Figure]:
    """What the frameworks' own windows hold, with the same budget and counter, at the same moments."""
    for name, kept in (("trim_messages", trimmed), ("ChatMemoryBuffer", buffered)):
        for budget in BUDGETS:
            shares = [
                mean(text in whole for text in question.evidence)
                for dialogue in data
                for moment in moments(bench, dialogue, budget, {}, number)
                for whole in ["\n".join(kept(bench, moment.said, budget))]
                for question in dialogue.questions
            ]
            yield Figure(f"{name}, % at {budget:,} tokens", 100 * mean(shares))


def memory_of_llama_index(bench: core.Bench, data: Sequence[Dialogue], model: Remembering | None) -> Iterator[Figure]:
    """What LlamaIndex's `Memory` holds at the end of the dialogues, and how often that is over the budget."""
    for budget in BUDGETS:
        shares, over = defaultdict[str, list[float]](list), defaultdict[str, list[bool]](list)
        for dialogue in data:
            said = [message_of(one) for one in dialogue.said]
            texts = [question.text for question in dialogue.questions]
            for name, shown, tokens in memories(said, texts, budget, partial(measure, bench.counter), model):
                over[name].extend(one > budget for one in tokens)
                for question, text in zip(dialogue.questions, shown, strict=True):
                    shares[name].append(mean(one in text for one in question.evidence))
        for name, found_ in shares.items():
            yield Figure(f"{name}, % at {budget:,} tokens", 100 * mean(found_))
            yield Figure("over the budget, % of the questions", 100 * mean(over[name]))


def trimmed(bench: core.Bench, said: Sequence[Message], budget: int) -> list[str]:
    """What LangChain's `trim_messages` keeps of the newest messages."""
    from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, trim_messages  # noqa: PLC0415  # an extra

    kinds = {"user": HumanMessage, "assistant": AIMessage}
    listed = [kinds[one.role](one.text, name=one.name) for one in said[-400:]]
    roles = {"human": "user", "ai": "assistant"}

    def tokens(messages: list[BaseMessage]) -> int:
        return sum(
            bench.counter.count(from_openai({"role": roles[one.type], "name": one.name, "content": one.content}))
            for one in messages
        )

    kept = trim_messages(listed, max_tokens=budget, strategy="last", start_on="human", token_counter=tokens)
    return [str(one.content) for one in kept]


def buffered(bench: core.Bench, said: Sequence[Message], budget: int) -> list[str]:
    """What LlamaIndex's `ChatMemoryBuffer` keeps of the newest messages."""
    from llama_index.core.base.llms.types import ChatMessage  # noqa: PLC0415  # an extra
    from llama_index.core.memory import ChatMemoryBuffer  # noqa: PLC0415  # an extra

    def tokens(text: str) -> list[int]:
        return [0] * measure(bench.counter, text)

    listed = [ChatMessage(role=one.role, content=one.text) for one in said[-400:]]
    kept = ChatMemoryBuffer.from_defaults(listed, token_limit=budget, tokenizer_fn=tokens).get()
    return [str(one.content) for one in kept]


# ------------------------------------------------------------------ 4. small talk


def small_talk(bench: core.Bench, data: Sequence[Dialogue]) -> Iterator[Figure]:
    """How many messages that need nothing draw a quote, and how many of the dialogues' own remarks do."""
    drawn = defaultdict[str, list[bool]](list)
    for dialogue in data:
        chat = next(moments(bench, dialogue, 4_000, {}, 1)).chat
        for remark in SMALL_TALK:
            context = chat.context({"role": "user", "content": remark})
            drawn["small"].append(bool(context.receipt.recalled))
        for question in dialogue.questions:
            drawn["questions"].append(bool(chat.context(query=question.text).receipt.recalled))
        drawn["own"].extend(bool(context.receipt.recalled) for context in prompts(bench, dialogue, None))
    share = {kind: 100 * mean(some) for kind, some in drawn.items()}
    yield Figure(f"small talk that draws a quote, % of {len(SMALL_TALK)}", share["small"], Wanted("at most", 5))
    yield Figure("questions that draw one, %", share["questions"])
    yield Figure("the user's own turns, in the second half of the dialogues, %", share["own"])


# ------------------------------------------------------------------ 5. the prefix


def prompts(bench: core.Bench, dialogue: Dialogue, asked: Iterator[str] | None) -> Iterator[Context]:
    """A prompt for each of the user's turns once something is out of sight; for each with a question where given."""
    chat = SlideMem(max_tokens=4_000, counter=bench.counter).session("turns")
    for message in dialogue.said:
        chat.append(message_of(message))
        if message["role"] == "user":
            context = chat.context(query=None if asked is None else next(asked))
            if context.receipt.covered:
                yield context


def prefix(bench: core.Bench, data: Sequence[Dialogue]) -> Iterator[Figure]:
    """What of a prompt the prompt before began with, by characters, with a question at every turn and without."""
    every, before, ordinary = [], [], []
    for dialogue in data:
        questions = itertools.cycle(question.text for question in dialogue.questions)
        texts = [_parted(context) for context in prompts(bench, dialogue, questions)]
        every.append([first + rest for first, rest in texts])
        before.append([first for first, _ in texts])
        ordinary.append(["".join(_parted(context)) for context in prompts(bench, dialogue, None)])
    yield Figure("prefix re-used before the quotes, a question every turn", _reused(before), Wanted("at least", 0.90))
    yield Figure("of the whole prompt", _reused(every), Wanted("at least", 0.50))
    yield Figure("of the whole prompt, in chat as it is", _reused(ordinary), Wanted("at least", 0.80))


def _parted(context: Context) -> tuple[str, str]:
    """A prompt up to its quotes (or to its newest user message, where there are none), and from there on."""
    texts = [json.dumps([message.role, message.text]) for message in context.messages]
    place = next((at for at in reversed(range(len(texts))) if context.messages[at].role == "user"), len(texts))
    text = context.messages[place].text
    head = context.head if text.startswith(context.head) else ""
    return "".join((*texts[:place], head)), "".join((text[len(head) :], *texts[place + 1 :]))


def _reused(runs: Sequence[Sequence[str]]) -> float:
    shared = sum(core.shared(one, two) for texts in runs for one, two in itertools.pairwise(texts))
    return shared / sum(len(text) for texts in runs for text in texts)


# ------------------------------------------------------------------ 6. times


def times(bench: core.Bench, data: Sequence[Dialogue], large: int) -> Iterator[Figure]:
    """Asking and feeding beside tokenising, and asking in a long session beside a short one."""
    if bench.encode is None:
        return
    yield from _asking(bench, bench.encode, max(data, key=lambda one: len(one.said)))
    said = [message_of(one) for dialogue in data for one in dialogue.said]
    questions = [question.text for question in data[0].questions][:40]
    for name, store in (("in memory", MemoryStore), ("in SQLite", SQLiteStore)):
        chats = [_long(bench, store(), said, size) for size in (1_000, large)]
        short, long = (min(_answering(chat, questions) for _ in range(5)) for chat in chats)
        yield Figure(f"time per question {name}, {large:,} messages over 1,000", long / short, Wanted("at most", 10))
        yield Figure("milliseconds of it at 1,000", 1_000 * short)
    yield from _feeding(bench.encode, said)


def _long(bench: core.Bench, store: Store, said: Sequence[Message], size: int) -> ConversationMemory:
    """A session of so many messages, the same ones again and again."""
    chat = SlideMem(max_tokens=4_000, counter=bench.counter, store=store, consolidator=None).session("long")
    repeated = itertools.cycle(replace(message, time=None) for message in said)
    while (left := size - chat.stats().messages) > 0:
        chat.append(list(islice(repeated, min(left, 1_000))))
    return chat


def _answering(chat: ConversationMemory, questions: Sequence[str]) -> float:
    """Seconds that a question adds to a context."""
    asked_ = core.timed(lambda: [chat.context(query=question) for question in questions])
    return (asked_ - core.timed(lambda: [chat.context(query="") for _ in questions])) / len(questions)


def _asking(bench: core.Bench, encode: Callable[[str], list[int]], dialogue: Dialogue) -> Iterator[Figure]:
    chat = next(moments(bench, dialogue, 4_000, {}, 1)).chat
    questions = [question.text for question in dialogue.questions]
    context = max((chat.context(query=one) for one in questions[:9]), key=lambda one: one.tokens)
    texts = [message.text for message in context.messages]
    tokenising = min(core.timed(lambda: [encode(text) for _ in range(20) for text in texts]) / 20 for _ in range(5))
    asking = min(_answering(chat, questions) for _ in range(5))
    at = f"a question at {len(dialogue.said)} messages over tokenising the context of {context.tokens:,} tokens"
    yield Figure(at, asking / tokenising, Wanted("at most", 3))
    yield Figure("milliseconds of it", 1_000 * asking)


def _feeding(encode: Callable[[str], list[int]], said: Sequence[Message]) -> Iterator[Figure]:
    runs: list[tuple[float, float]] = []
    for _ in range(5):
        index = Index()
        feeding = core.timed(lambda: [index.add(seq, post_of(one, 0.0)) for seq, one in enumerate(said)])  # noqa: B023
        runs.append((feeding, core.timed(lambda: [encode(one.text) for one in said])))
    ratio = min(run[0] for run in runs) / min(run[1] for run in runs)
    yield Figure("feeding a message over tokenising it", ratio, Wanted("at most", 2))
    yield Figure("milliseconds of it", 1_000 * min(run[0] for run in runs) / len(said))


# ------------------------------------------------------------------ the run


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and judge; returns the exit status."""
    parser = argparse.ArgumentParser(
        description="Evidence present in the context, small talk, and times as ratios within one run.",
        epilog="LoCoMo is published in github.com/snap-research/locomo, data/locomo10.json, under CC BY-NC 4.0.",
    )
    parser.add_argument("dialogues", type=Path, help="a file in the form of LoCoMo's data/locomo10.json")
    parser.add_argument("--quick", action="store_true", help="one moment, no steps, a shorter long session")
    parser.add_argument("--moments", type=int, default=MOMENTS, help="of the window's saw-tooth (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    given = parser.parse_args(arguments)
    started = time.monotonic()
    bench = core.prepared(core.QUICK)
    data = dialogues(given.dialogues)
    model = local_model()
    number, large = (1, 10_000) if given.quick else (given.moments, 100_000)
    measures: list[Callable[[], Iterator[Figure]]] = [
        partial(small_talk, bench, data),
        partial(prefix, bench, data),
        partial(times, bench, data, large),
        partial(evidence, bench, data, number),
        *([partial(evidence, bench, data, number, model)] if model else []),
        partial(peers, bench, data, number),
        partial(memory_of_llama_index, bench, data, model),
    ]
    if not given.quick:
        measures.append(partial(steps, bench, data))
    figures = list(printed(measures))
    used = f"embedded by {model.name}" if model else "no embedding model is installed"
    print(f"\n{time.monotonic() - started:.0f} seconds, counted with {bench.counter.fingerprint}, {used}")
    if given.json:
        rows = [{"name": one.name, "measured": one.measured, "verdict": one.verdict} for one in figures]
        given.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return judged(figures)


if __name__ == "__main__":
    sys.exit(main())
