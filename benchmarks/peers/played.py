"""Decides what is seen of a prompt: whether it fits, is valid and holds the question, and what a cache saves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from core import shared
from speech import Said

from peers.conversations import Talk, asks
from peers.counting import Counter, words_of
from peers.protocol import BUDGET, Memory
from slidemem.testing import violations

SLACK: Final = 1.01  # of the budget: LlamaIndex counts texts joined, which is not to the token what they are apart
READ: Final = 0.1  # of a token's price, when it is read from a cache
WRITE: Final = 1.25  # and when it is written there
BEGINNING: Final = 100  # characters of a question over half of the budget that must be there
MENDED: Final = frozenset({"alternation"})  # what the frameworks' clients mend themselves


@dataclass
class Seen:
    """What was seen of the prompts of one conversation in one memory.

    Attributes:
        prompts: how many there were.
        over: of them, above the budget.
        worst: tokens of the largest.
        invalid: of them, what some provider refuses.
        missing: of them, without the newest user message; those that ended in an error are counted in.
        failed: turns that ended in an error.
        needed: of the texts that an answer needed, how many of them there were.
        wanted: how many were needed.
        tokens: of all prompts.
        reused: of those, what the prompt before began with.
        verbatim: share of the budget that messages of the conversation take word for word, quotes among them; the
            mean over prompts once the conversation is larger than the budget.
        rules: names of the rules that were broken.
        sizes: tokens and re-used tokens of each prompt.
    """

    prompts: int = 0
    over: int = 0
    worst: int = 0
    invalid: int = 0
    missing: int = 0
    failed: int = 0
    needed: int = 0
    wanted: int = 0
    tokens: int = 0
    reused: float = 0
    verbatim: list[float] = field(default_factory=list)
    rules: dict[str, int] = field(default_factory=dict)
    sizes: list[tuple[int, float]] = field(default_factory=list)

    @property
    def cost(self) -> float:
        """What reading the prompts costs, in tokens at the plain price: what is new is also written to the cache."""
        return READ * self.reused + WRITE * (self.tokens - self.reused)


def watched(memory: Memory, talk: Talk, count: Counter, budget: int = BUDGET, *, stop: int | None = None) -> Seen:
    """Play a conversation, and look at each prompt.

    Args:
        memory: an empty one.
        talk: what is said.
        count: counts, for the benchmark's own use.
        budget: tokens of a prompt.
        stop: messages after which it is given up; None for none.
    """
    seen, before, newest, total = Seen(), list[Said](), Said(), 0
    messages = talk.messages[:stop]
    for at, called in asks(messages):
        said = messages[at]
        newest = said if said["role"] == "user" else newest
        total += count.said(said)
        try:
            memory.add(said)
            prompt = memory.prompt() if called else None
        except Exception:  # noqa: BLE001  # each memory's own: a host would show its user an error
            seen.failed += 1
            if called:
                seen.prompts += 1
                seen.missing += 1
            continue
        if prompt is None:
            continue
        look(seen, prompt, newest, count, budget)
        _needs(seen, prompt, talk.needed.get(at, ()))
        if not talk.tools and total > budget:
            seen.verbatim.append(_verbatim(prompt, messages[max(0, at - 400) : at + 1], count) / budget)
        same = reused(before, prompt, count)
        tokens = sum(map(count.said, prompt))
        seen.tokens += tokens
        seen.reused += same
        seen.sizes.append((tokens, same))
        before = prompt
    return seen


def look(seen: Seen, prompt: Sequence[Said], newest: Said, count: Counter, budget: int) -> None:
    """Judge one prompt."""
    tokens = sum(map(count.said, prompt))
    seen.prompts += 1
    seen.worst = max(seen.worst, tokens)
    seen.over += tokens > SLACK * budget
    broken = {one.rule for one in violations(prompt, ignore=MENDED)}
    seen.invalid += bool(broken)
    for rule in broken:
        seen.rules[rule] = seen.rules.get(rule, 0) + 1
    question = words_of(newest)
    if count.tokens(question) > budget / 2:
        question = question[:BEGINNING]
    seen.missing += not any(question in words_of(one) for one in prompt)


def _needs(seen: Seen, prompt: Sequence[Said], texts: Sequence[str]) -> None:
    """Look for what an answer needs, case aside."""
    if texts:
        whole = "\n".join(map(words_of, prompt)).casefold()
        seen.needed += sum(text.casefold() in whole for text in texts)
        seen.wanted += len(texts)


def _verbatim(prompt: Sequence[Said], messages: Sequence[Said], count: Counter) -> int:
    """Tokens of the messages that a prompt holds word for word."""
    whole = "\n".join(map(words_of, prompt))
    return sum(count.said(one) for one in messages if words_of(one) in whole)


def reused(before: Sequence[Said], prompt: Sequence[Said], count: Counter) -> float:
    """Tokens of a prompt that the one before began with; the message in which that ends counts in part."""
    tokens = 0.0
    for one, other in zip(before, prompt, strict=False):
        if one == other:
            tokens += count.said(other)
            continue
        if one["role"] == other["role"]:
            first, second = _wire(one), _wire(other)
            tokens += count.said(other) * shared(first, second) / max(1, len(second))
        break
    return tokens


def _wire(said: Said) -> str:
    """What is sent of a message, without its role."""
    return json.dumps([words_of(said), said.get("tool_calls")], ensure_ascii=False)
