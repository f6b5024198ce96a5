"""Decides what a turn takes: beside ours in one process, turn about; and how long one pauses for a summariser."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from speech import Said, chat_of, remark

from peers.conversations import asks
from peers.counting import Counter
from peers.memories import DEFAULTS, Kind
from peers.protocol import Memory, Setting
from peers.writers import Script, quoting
from slidemem import Embedder

PAUSE: Final = 0.3  # seconds of a summary
FILLING: Final = 240.0  # seconds that a memory may take to be filled


@dataclass(frozen=True)
class Ratio:
    """How much longer a turn takes than ours.

    Attributes:
        value: the ratio of the medians; None when the memory could not be filled in time.
        least: whether it is a lower bound: the turn was not waited for any longer.
    """

    value: float | None
    least: bool = False


def ratio(
    kind: Kind, size: int, turns: int, encode: Callable[[str], Sequence[int]], model: Embedder | None, patience: float
) -> Ratio:
    """The time of a turn in a session of so many messages, over the same with our defaults.

    Both sessions live in one child process and take turns, so that what else the machine does hits both. Times are
    CPU seconds, each text is tokenised as often as it is counted.

    Args:
        kind: of memory.
        size: messages in the session before.
        turns: that are timed.
        encode: the tokenizer.
        model: embeds.
        patience: seconds that the timed turns may take together.
    """
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    child = context.Process(target=_turns, args=(sending, kind, size, turns, encode, model), daemon=True)
    child.start()
    try:
        return _heard(receiving, turns, patience)
    finally:
        child.kill()
        child.join()


def _heard(receiving: Any, turns: int, patience: float) -> Ratio:
    if not receiving.poll(FILLING):
        return Ratio(None)
    receiving.recv()
    pairs: list[tuple[float, float]] = []
    deadline, begun, own = time.monotonic() + patience, time.monotonic(), 0.0
    while len(pairs) < turns and receiving.poll(max(0.0, deadline - time.monotonic())):
        who, seconds = receiving.recv()
        begun = time.monotonic()
        if who == "ours":
            own = seconds
        else:
            pairs.append((own, seconds))
    if pairs:
        return Ratio(median(theirs for _, theirs in pairs) / median(ours for ours, _ in pairs))
    return Ratio((time.monotonic() - begun) / own, least=True) if own else Ratio(None)


def _turns(
    sending: Any, kind: Kind, size: int, turns: int, encode: Callable[[str], Sequence[int]], model: Embedder | None
) -> None:
    """The child: fill both, then one turn each, in turn."""
    chat = chat_of(61, size + 2 * turns + 2, remark)
    count = Counter(encode, keep=False)
    both: list[tuple[str, Memory]] = []
    for name, make in (("ours", DEFAULTS.make), ("theirs", kind.whole)):
        memory = make(Setting(count, Script(quoting(count), count), model=model))
        memory.fill(chat[:size])
        _turn(memory, chat[size : size + 2])
        both.append((name, memory))
    sending.send("filled")
    for at in range(size + 2, size + 2 + 2 * turns, 2):
        for name, memory in both:
            started = time.process_time()
            _turn(memory, chat[at : at + 2])
            sending.send((name, time.process_time() - started))


def _turn(memory: Memory, messages: Sequence[Said]) -> None:
    memory.add(messages[0])
    memory.prompt()
    memory.add(messages[1])


def longest_pause(kind: Kind, turns: int, runs: int, count: Counter, model: Embedder | None) -> float:
    """Seconds of the longest turn of a chat, with a summariser that takes `PAUSE` seconds; the best of some runs."""
    return min(_longest(kind, turns, count, model) for _ in range(runs))


def _longest(kind: Kind, turns: int, count: Counter, model: Embedder | None) -> float:
    chat = chat_of(62, 2 * turns, remark)
    memory = kind.make(Setting(count, Script(quoting(count), count, pause=PAUSE), model=model))
    longest = 0.0
    for at in range(0, len(chat), 2):
        started = time.perf_counter()
        _turn(memory, chat[at : at + 2])
        longest = max(longest, time.perf_counter() - started)
    memory.close()
    return longest


def counted(kind: Kind, messages: Sequence[Said], count: Counter, model: Embedder | None) -> tuple[float, float]:
    """How often each of some tagged messages goes through the counter in a conversation, in the mean.

    Returns:
        How often alone or as a part of a longer text, and how often alone.
    """
    count.listening, count.times, count.alone = True, 0, 0
    memory = kind.whole(Setting(count, Script(quoting(count), count), model=model))
    for at, called in asks(messages):
        memory.add(messages[at])
        if called:
            memory.prompt()
    memory.close()
    count.listening = False
    return count.times / len(messages), count.alone / len(messages)
