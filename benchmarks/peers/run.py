"""Decides what one run measures of a memory: every figure of every column, as one flat record by memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any, Final

from recall import Dialogue
from speech import chat_of, remark

from peers import conversations, kept, losses, times
from peers.conversations import Talk
from peers.counting import Counter
from peers.memories import REFERENCE, Kind
from peers.played import Seen, watched
from peers.protocol import BUDGET, Setting
from peers.writers import Script, quoting
from slidemem import Embedder

Record = dict[str, Any]

REPLAYED: Final = 2  # dialogues of LoCoMo that are replayed turn by turn; all of them are asked their questions


@dataclass(frozen=True)
class Plan:
    """How much is measured.

    Attributes:
        sizes: of the conversations.
        lossy: turns of the chat whose summariser fails.
        counted: messages of the chat in which the counter's calls are looked at.
        timed: sizes of the sessions whose turns are timed.
        turns: that are timed on each.
        patience: seconds that they may take together.
        paused: turns of the chat whose summariser takes its time.
        runs: of it.
        corpus: conversations of the retention corpus.
    """

    sizes: conversations.Sizes
    lossy: int
    counted: int
    timed: tuple[int, ...]
    turns: int
    patience: float
    paused: int
    runs: int
    corpus: int


FULL: Final = Plan(conversations.FULL, 250, 300, (1_000, 10_000), 9, 45.0, 100, 2, 30)
QUICK: Final = Plan(conversations.QUICK, 100, 100, (400,), 3, 10.0, 75, 1, 4)


@dataclass(frozen=True)
class Bench:
    """What everything is measured with.

    Attributes:
        plan: how much.
        encode: the tokenizer.
        model: embeds; None where none is installed.
        dialogues: LoCoMo's, where a path was given.
    """

    plan: Plan
    encode: Callable[[str], Sequence[int]]
    model: Embedder | None
    dialogues: tuple[Dialogue, ...] = ()


def talks(bench: Bench) -> list[Talk]:
    """Every conversation."""
    replayed = bench.dialogues[:REPLAYED]
    locomo = [conversations.of_dialogue(f"locomo {at}", one.said) for at, one in enumerate(replayed)]
    return [*conversations.generated(bench.plan.sizes), *locomo]


def prompts(bench: Bench, kind: Kind) -> Record:
    """What is seen of the prompts of every conversation."""
    count = Counter(bench.encode)
    stop = bench.plan.sizes.whole if kind is REFERENCE else None
    by_talk: dict[str, Record] = {}
    seen: list[tuple[Talk, Seen]] = []
    for talk in talks(bench):
        script = Script(quoting(count), count)
        memory = kind.make(Setting(count, script, model=bench.model))
        one = watched(memory, talk, count, stop=stop)
        memory.close()
        turns = sum(said["role"] == "user" for said in talk.messages[:stop])
        by_talk[talk.name] = _played(one, script, turns)
        seen.append((talk, one))
    return {
        "prompts": sum(one.prompts for _, one in seen),
        "over": _share(seen, lambda one: one.over),
        "worst": max(one.worst for _, one in seen) / BUDGET,
        "invalid": _share([(talk, one) for talk, one in seen if not talk.tools], lambda one: one.invalid),
        "invalid_tools": _share([(talk, one) for talk, one in seen if talk.tools], lambda one: one.invalid),
        "missing": _share(seen, lambda one: one.missing),
        "failed": sum(one.failed for _, one in seen),
        "conversations": by_talk,
        "sizes": next(one.sizes for talk, one in seen if talk.name == "chat"),
    }


def _share(seen: Sequence[tuple[Talk, Seen]], of: Callable[[Seen], int]) -> float:
    """A share of the prompts, the mean over conversations, so that a long one does not hide a short one."""
    return mean(of(one) / max(1, one.prompts) for _, one in seen)


def _played(one: Seen, script: Script, turns: int) -> Record:
    return {
        "prompts": one.prompts,
        "over": one.over / one.prompts,
        "worst": one.worst / BUDGET,
        "invalid": one.invalid / one.prompts,
        "rules": one.rules,
        "missing": one.missing / one.prompts,
        "failed": one.failed,
        "needed": one.needed / one.wanted if one.wanted else None,
        "reuse": one.reused / max(1, one.tokens),
        "cost": (one.cost + script.read) / turns,
        "cost_summaries": script.read / turns,
        "verbatim": mean(one.verbatim) if one.verbatim else None,
        "least": min(one.verbatim, default=None),
        "calls": 100 * script.calls / turns,
    }


def lossy(bench: Bench, kind: Kind) -> Record:
    """What a failing summariser loses."""
    talk = Talk("lossy", tuple(chat_of(64, 2 * bench.plan.lossy, remark)))
    lost, failures, errors = losses.lost(kind, talk, Counter(bench.encode), bench.model)
    return {"lost": lost, "lost_of": len(talk.messages), "failures": failures, "errors": errors}


def facts(bench: Bench, kind: Kind) -> Record:
    """Critical facts of the corpus, with an honest summariser and with one that says nothing."""
    corpus = kept.corpus()
    some = corpus[:: max(1, len(corpus) // bench.plan.corpus)][: bench.plan.corpus]
    count = Counter(bench.encode)
    return {
        f"facts_{name}": kept.facts(kind, some, count, lies=lies, model=bench.model)
        for name, lies in (("honest", False), ("useless", True))
    }


def evidence(bench: Bench, kind: Kind) -> Record:
    """Evidence of LoCoMo's questions, where its dialogues are given."""
    if not bench.dialogues:
        return {}
    return {"evidence": kept.evidence(kind, bench.dialogues, Counter(bench.encode), bench.model)}


def calls(bench: Bench, kind: Kind) -> Record:
    """How often each message is counted."""
    chat = conversations.tagged(chat_of(63, bench.plan.counted, remark))
    times_, alone = times.counted(kind, chat, Counter(bench.encode, keep=False), bench.model)
    return {"counted": times_, "counted_alone": alone}


def seconds(bench: Bench, kind: Kind) -> Record:
    """What a turn takes beside ours."""
    record: Record = {}
    for size in bench.plan.timed:
        found = times.ratio(kind, size, bench.plan.turns, bench.encode, bench.model, bench.plan.patience)
        record |= {f"time_{size}": found.value, f"time_{size}_least": found.least}
    return record


def pauses(bench: Bench, kind: Kind) -> Record:
    """How long a turn stands still for a slow summariser."""
    longest = times.longest_pause(kind, bench.plan.paused, bench.plan.runs, Counter(bench.encode), bench.model)
    return {"pause": longest / times.PAUSE}


SECTIONS: Final[Mapping[str, Callable[[Bench, Kind], Record]]] = {
    "prompts": prompts,
    "counting": calls,
    "lost": lossy,
    "facts": facts,
    "evidence": evidence,
}
"""What may run beside other work: shares and counts."""

TIMED: Final[Mapping[str, Callable[[Bench, Kind], Record]]] = {"time": seconds, "pause": pauses}
"""What is timed, and runs alone."""
