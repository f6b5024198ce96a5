"""Decides what is still in a conversation's last prompt: critical facts of the corpus, and evidence of LoCoMo."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Final

from recall import Dialogue
from retention import SHARE, Talk, plain
from speech import Said

from peers.conversations import CORPUS, of_dialogue
from peers.counting import Counter, words_of
from peers.memories import Kind
from peers.protocol import Memory, Setting
from peers.writers import Script, Write, honest, quoting, useless
from slidemem import Embedder

GOES_ON: Final = "Let us go on."
UNBOUNDED: Final = 10**6  # tokens of an honest summary for a memory that asks for no length
EVIDENCE_BUDGET: Final = 2_000


def corpus(folder: Path = CORPUS) -> list[Talk]:
    """The conversations of the retention benchmark."""
    return [Talk.read(path) for path in sorted(folder.glob("*.json"))]


def facts(kind: Kind, talks: Sequence[Talk], count: Counter, *, lies: bool, model: Embedder | None = None) -> float:
    """The share of critical facts in the prompt after each conversation, at a quarter of its tokens.

    Args:
        kind: of memory.
        talks: the corpus.
        count: counts.
        lies: whether the summariser says the same of everything; else it notes each fact that it reads, at any length
            for a memory that does not ask for one.
        model: embeds.
    """
    found: list[bool] = []
    for talk in talks:
        write = useless if lies else honest(talk, count)
        budget = sum(map(count.said, talk.messages)) // SHARE
        memory = kind.make(Setting(count, _script(write, count), budget, model))
        shown = plain(_last(memory, talk.messages))
        memory.close()
        found.extend(all(plain(need) in shown for need in fact.needs) for fact in talk.facts)
    return mean(found)


def _script(write: Write, count: Counter) -> Script:
    return Script(write, count, length=UNBOUNDED)


def _last(memory: Memory, messages: Sequence[Said]) -> str:
    """The prompt after a conversation; one that raises shows nothing."""
    try:
        memory.fill(messages)
        memory.add({"role": "user", "content": GOES_ON})
        return _text(memory.prompt())
    except Exception:  # noqa: BLE001  # each memory's own
        return ""


def _text(prompt: Sequence[Said]) -> str:
    return "\n".join(map(words_of, prompt))


def evidence(kind: Kind, data: Sequence[Dialogue], count: Counter, model: Embedder | None) -> float:
    """Evidence present at the end of LoCoMo's dialogues, word for word, averaged over questions.

    The summariser quotes: what a model would tell in its own words is not evidence here.
    """
    shares: list[float] = []
    for dialogue in data:
        script = Script(quoting(count), count)
        memory = kind.make(Setting(count, script, EVIDENCE_BUDGET, model))
        memory.fill(of_dialogue("asked", dialogue.said).messages)
        for question in dialogue.questions:
            shown = _text(memory.ask(question.text))
            shares.append(mean(text in shown for text in question.evidence))
        memory.close()
    return mean(shares)
