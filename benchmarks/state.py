"""Measures what the state promises: slow summaries out of the way, flat memory on a file, one pass to reconcile.

    python benchmarks/state.py [--quick]

A time is never judged by itself: two things are timed in one run, and their ratio is the figure. All texts are
generated from seeds; no network, no key. Exits 1 when a figure that the design guarantees is missed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from figures import Figure, Wanted, judged, printed
from speech import Said, chat_of, letter, remark

from slidemem import ConversationMemory, Message, SlideMem, approximate_counter
from slidemem.head import TAG
from slidemem.messages import digest
from slidemem.openai_format import read_openai
from slidemem.stores.memory import MemoryStore
from slidemem.stores.sqlite import SQLiteStore

BUDGET: Final = 4000


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    pairs: int  # runs of each kind, in turn
    turns: int  # of a run with a slow summariser
    pause: float  # seconds that a summary takes
    few: int  # messages on the file at the first look
    many: int  # and at the second
    listed: int  # messages of a host's list


FULL: Final = Sizes(5, 300, 3.0, 10_000, 100_000, 10_000)
QUICK: Final = Sizes(2, 150, 0.5, 4_000, 20_000, 4_000)


# ------------------------------------------------------------------ 1. a slow summariser in the background


@dataclass(frozen=True)
class Paced:
    """One run in background mode.

    Attributes:
        slowest: seconds of append and context, 99th percentile over the turns.
        covered: messages that the archive covers after `flush`.
        calls: of the summariser.
    """

    slowest: float
    covered: int
    calls: int


def background(sizes: Sizes) -> Iterator[Figure]:
    """Append and context with a summary that takes seconds, beside one that takes none."""
    chat = chat_of(3, 2 * sizes.turns, remark)
    runs = [(_paced(chat, 0.0), _paced(chat, sizes.pause)) for _ in range(sizes.pairs)]
    ratios = sorted(slow.slowest / quick.slowest for quick, slow in runs)
    name = f"append + context, p99, summaries of {sizes.pause:g} s over 0 s in the background"
    yield Figure(name, ratios[len(ratios) // 2], Wanted("at most", 1.5))
    yield Figure(f"the largest of {sizes.pairs} pairs", ratios[-1])
    yield Figure("the slow one's p99 over one summary's time", max(slow.slowest for _, slow in runs) / sizes.pause)
    apart = max(abs(slow.covered - quick.covered) for quick, slow in runs)
    yield Figure(
        "messages that one archive covers and the other does not", apart, Wanted("exactly", 0), guarantee=True
    )
    yield Figure("messages that both cover", runs[0][0].covered)
    yield Figure("summariser calls, 0 s", runs[0][0].calls)
    yield Figure("summariser calls, slow", runs[0][1].calls)


def _paced(chat: Sequence[Said], pause: float) -> Paced:
    calls: list[int] = []

    def summarize(messages: list[dict[str, Any]]) -> str:
        calls.append(len(messages))
        time.sleep(pause)
        said = " ".join(str(message["content"]) for message in messages)
        return "They spoke of " + ", ".join(dict.fromkeys(re.findall(r"\b[A-Z][a-z]+\b|\d+", said)))[:150]

    mem = SlideMem(
        max_tokens=BUDGET // 2, counter="approximate", mode="background", consolidator=summarize, flush_seconds=600
    )
    session = mem.session("s")
    taken = [_timed(partial(_turn, session, chat[at : at + 2])) for at in range(0, len(chat), 2)]
    if not session.flush():
        raise RuntimeError("the background work did not end")
    return Paced(sorted(taken)[int(0.99 * len(taken))], session.stats().covered_messages, len(calls))


def _turn(session: ConversationMemory, messages: Sequence[Said]) -> None:
    session.append(messages[0])
    session.context()
    session.append(messages[1])


def _timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


# ------------------------------------------------------------------ 2. a long session on a file


def resident(sizes: Sizes) -> Iterator[Figure]:
    """Memory of a process that keeps one long session on a file, in a process of its own."""
    code = f"import state; state.grow({sizes.few}, {sizes.many})"
    here = Path(__file__).parent
    ran = subprocess.run([sys.executable, "-c", code], cwd=here, capture_output=True, text=True, check=True)  # noqa: S603  # this file
    few, many, file = map(float, ran.stdout.split())
    yield Figure(
        f"resident memory, {sizes.many:,} messages on a file over {sizes.few:,}",
        many / few,
        Wanted("at most", 1.1),
    )
    yield Figure("megabytes at the second look", many)
    yield Figure("megabytes of the file", file)


def grow(few: int, many: int) -> None:
    """Grow a session on a file; prints megabytes resident at both looks, and of the file."""
    with tempfile.TemporaryDirectory() as folder, SQLiteStore(Path(folder, "chat.db"), synchronous="normal") as store:
        session = SlideMem(max_tokens=BUDGET, counter="approximate", store=store).session("s")
        chat = chat_of(5, 1_000, remark)
        for at in range(0, many, 2):
            if at == few:
                print(_resident())
            session.append([{**message, "id": f"m{at}-{message['role']}"} for message in chat[at % 1_000 :][:2]])
            if at % 20 == 0:
                session.context()
        print(_resident())
        print(Path(folder, "chat.db").stat().st_size / 2**20)


def _resident() -> float:
    """Megabytes resident now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


# ------------------------------------------------------------------ 3. a host's whole list


class Counted:
    """Counts how often a counter is asked for a message; a block that is composed is none."""

    def __init__(self) -> None:
        self._counter = approximate_counter()
        self.fingerprint = self._counter.fingerprint
        self.calls = 0

    def count(self, message: Message) -> int:
        """What the estimate says."""
        self.calls += not message.text.startswith(f"<{TAG}>")
        return self._counter.count(message)


class Watched(MemoryStore):
    """Counts the passes over a session's keys."""

    def __init__(self) -> None:
        super().__init__()
        self.passes = 0

    async def keys(self, session: str) -> Any:
        """The keys."""
        self.passes += 1
        return await super().keys(session)


def listed(sizes: Sizes) -> Iterator[Figure]:
    """Reconcile with a long list that grew by two."""
    counter, store = Counted(), Watched()
    session = SlideMem(max_tokens=BUDGET, counter=counter, store=store, consolidator=None).session("s")
    chat = chat_of(7, sizes.listed, letter)
    session.append(chat)
    session.context()
    grown = [*chat, *chat_of(8, 2, letter)]
    counter.calls = store.passes = store.rows_read = 0
    taken = _timed(partial(session.reconcile, grown))
    name = f"reconcile of {sizes.listed:,} messages that grew by two"
    yield Figure(f"{name}: counter calls", counter.calls, Wanted("exactly", 2), guarantee=True)
    yield Figure("passes over the keys", store.passes, Wanted("exactly", 1), guarantee=True)
    yield Figure("messages read from the store", store.rows_read)
    reading = _timed(lambda: [digest(message) for message in read_openai(grown)])
    yield Figure("time, over reading the list and taking its digests", taken / reading)
    yield Figure("messages in the transcript", session.stats().messages)


# ------------------------------------------------------------------ run

MEASURES: Final = (listed, background, resident)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and judge; returns the exit status."""
    parser = argparse.ArgumentParser(description="The state's figures, as ratios within one run.")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, for a look in between")
    sizes = QUICK if parser.parse_args(arguments).quick else FULL
    started = time.monotonic()
    figures = list(printed(partial(measure, sizes) for measure in MEASURES))
    print(f"\n{time.monotonic() - started:.0f} seconds")
    return judged(figures)


if __name__ == "__main__":
    sys.exit(main())
