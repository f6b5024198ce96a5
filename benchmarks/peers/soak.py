"""Stores a million messages of a thousand sessions in one SQLite file, and looks whether anything grows.

    PYTHONPATH=benchmarks python -m peers.soak [--messages N] [--sessions N] [--out FOLDER]

One session after the other is filled, in batches. At the looks between, some sessions that are full, drawn by lot,
take a turn, and the process's resident memory is read. Time is the median of those turns, over that of the first
looks. Exits 1 when the memory grew by more than half from the first third of the looks to the last.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from figures import Figure, Wanted, judged
from speech import Said, chat_of, remark

from peers import plots
from slidemem import SlideMem, __version__
from slidemem.stores.sqlite import SQLiteStore

BUDGET: Final = 3_000
BATCH: Final = 20  # messages of one append
TURNS: Final = 25  # sessions that take a turn at a look
RESULTS: Final = Path(__file__).parent.parent / "results"

Look = dict[str, float]


def soak(messages: int, sessions: int, looks: int, folder: Path) -> Iterator[Look]:
    """Fill one file, and look at it now and then.

    Yields:
        Messages stored so far, megabytes resident and of the file, median seconds of a turn.
    """
    rng, said = random.Random(71), chat_of(72, 4_000, remark)
    with SQLiteStore(folder / "soak.db", synchronous="normal") as store:
        memory = SlideMem(max_tokens=BUDGET, counter="approximate", store=store)
        stored, spoken, due = 0, 0, 0.0
        for number in range(sessions):
            for _ in range(0, messages // sessions, BATCH):
                memory.session(f"s{number}").append(_next(said, spoken, BATCH))
                spoken += BATCH
                stored += BATCH
            if stored >= due:
                turns = [_turn(memory, f"s{rng.randrange(number + 1)}", said, spoken + 2 * at) for at in range(TURNS)]
                spoken += 2 * TURNS
                stored += 2 * TURNS
                file = (folder / "soak.db").stat().st_size / 2**20
                yield {"messages": stored, "megabytes": resident(), "file": file, "seconds": median(turns)}
                due += messages / looks


def _next(said: Sequence[Said], at: int, number: int) -> list[Said]:
    """The next messages, a user's first; each ends with its number, so that no two are the same."""
    return [
        {**said[place % len(said)], "content": f"{said[place % len(said)]['content']} Item {place:07d}."}
        for place in range(at, at + number)
    ]


def _turn(memory: SlideMem, session: str, said: Sequence[Said], at: int) -> float:
    """Seconds of CPU time of one turn of a session: question, context, answer."""
    user, assistant = _next(said, at - at % 2, 2)
    started = time.process_time()
    chat = memory.session(session)
    chat.append(user)
    chat.context()
    chat.append(assistant)
    return time.process_time() - started


def resident() -> float:
    """Megabytes resident now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def relative(looks: Sequence[Look]) -> list[Mapping[str, float]]:
    """The looks with the time of a turn as a ratio: to the median of the first tenth of them."""
    first = median(look["seconds"] for look in looks[: max(1, len(looks) // 10)])
    return [{**look, "relative": look["seconds"] / first} for look in looks]


def growth(looks: Sequence[Look], key: str) -> float:
    """How a figure changed: its median over the last third of the looks, over that of the first third."""
    third = max(1, len(looks) // 3)
    return median(look[key] for look in looks[-third:]) / median(look[key] for look in looks[:third])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, draw and judge; returns the exit status."""
    parser = argparse.ArgumentParser(description="One SQLite file under many messages: does anything grow?")
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--sessions", type=int, default=1_000)
    parser.add_argument("--looks", type=int, default=100)
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FOLDER")
    given = parser.parse_args(arguments)
    looks: list[Look] = []
    with tempfile.TemporaryDirectory() as folder:
        for look in soak(given.messages, given.sessions, given.looks, Path(folder)):
            looks.append(look)
            print(" ".join(f"{key} {value:,.4g}" for key, value in look.items()), flush=True)
    drawn = relative(looks)
    given.out.mkdir(parents=True, exist_ok=True)
    plots.soak(drawn, given.out / "soak.svg")
    told: dict[str, Any] = {
        "slidemem": __version__,
        "messages": looks[-1]["messages"],
        "sessions": given.sessions,
        "growth_memory": growth(looks, "megabytes"),
        "growth_time": growth(looks, "seconds"),
        "looks": [{key: value for key, value in look.items() if key != "seconds"} for look in drawn],
    }
    (given.out / "soak.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    near, size = Wanted("at most", 1.5), f"{looks[-1]['messages']:,.0f} messages of {given.sessions:,} sessions"
    figures = [
        Figure(f"resident memory, last third over first, {size}", told["growth_memory"], near, guarantee=True),
        Figure(f"time per turn, last third over first, {size}", told["growth_time"], near),
    ]
    for figure in figures:
        print(figure.row)
    return judged(figures)


if __name__ == "__main__":
    sys.exit(main())
