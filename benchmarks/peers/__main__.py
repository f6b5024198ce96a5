"""Runs the comparison, prints and writes its tables, and judges what ours must show.

    PYTHONPATH=benchmarks python -m peers [--quick] [--locomo FILE] [--out FOLDER]

No network, no key. Exits 1 when ours misses a guarantee.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import core
from embedded import local_model
from figures import Figure, Wanted, judged
from recall import dialogues

from peers import memories, plots, run, table

RESULTS: Final = Path(__file__).parent.parent / "results"
_SHARED: dict[str, run.Bench] = {}


def measured(bench: run.Bench, jobs: int) -> dict[str, run.Record]:
    """Shares and counts of every memory, measured side by side."""
    kinds = [kind for kind in memories.KINDS if bench.model is not None or not kind.embeds]
    records: dict[str, run.Record] = {kind.name: {} for kind in kinds}
    _SHARED["bench"] = bench
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        work = [(kind.name, section) for section in run.SECTIONS for kind in kinds]
        for (name, section), found in zip(work, pool.map(_one, *zip(*work, strict=True)), strict=True):
            records[name] |= found
            print(f"{section}: {name}", file=sys.stderr, flush=True)
    return records


def timed(bench: run.Bench, records: dict[str, run.Record]) -> None:
    """Add the times, one memory after the other."""
    kinds = [kind for kind in memories.KINDS if kind.name in records]
    for section, measure in run.TIMED.items():
        for kind in (*kinds, memories.BACKGROUND) if section == "pause" else kinds:
            records.setdefault(kind.name, {"conversations": {}})
            records[kind.name] |= measure(bench, kind)
            print(f"{section}: {kind.name}", file=sys.stderr, flush=True)


def _one(name: str, section: str) -> run.Record:
    """One section of one memory, in a process of the pool."""
    logging.getLogger("slidemem").setLevel(logging.ERROR)  # refusals are what is measured
    kind = next(kind for kind in memories.KINDS if kind.name == name)
    return run.SECTIONS[section](_SHARED["bench"], kind)


def wanted(records: Mapping[str, run.Record]) -> Iterator[Figure]:
    """What ours must show, and what it should."""
    none = Wanted("exactly", 0)
    for kind in memories.KINDS:
        record = records[kind.name]
        if not kind.ours:
            continue
        yield Figure(
            f"worst prompt, of the budget: {kind.name}", record["worst"], Wanted("at most", 1), guarantee=True
        )
        for key in ("invalid", "invalid_tools", "missing", "failed", "lost", "errors"):
            yield Figure(f"{key}: {kind.name}", record[key], none, guarantee=True)
        alone = record["counted_alone"]
        yield Figure(f"counter calls per message: {kind.name}", alone, Wanted("exactly", 1), guarantee=True)
    chats = {name: one["conversations"]["chat"] for name, one in records.items() if "chat" in one["conversations"]}
    ours = chats[memories.WITHOUT_RECALL.name]
    yield Figure("prefix re-used in chat, recall off", ours["reuse"], Wanted("at least", 0.92))
    yield Figure("its verbatim share of the budget", ours["verbatim"])
    for name in ("trim_messages", "ChatMemoryBuffer"):
        yield Figure(
            f"cost per turn over {name}'s, recall off", ours["cost"] / chats[name]["cost"], Wanted("at most", 0.2)
        )
    own, theirs = (records[name].get("time_1000") for name in (memories.WITHOUT_RECALL.name, "ChatMemoryBuffer"))
    if own and theirs:
        yield Figure(
            "ChatMemoryBuffer's turn at 1,000 messages over ours, recall off", theirs / own, Wanted("at least", 1_000)
        )
    background = records.get(memories.BACKGROUND.name, {}).get("pause")
    yield Figure(
        "longest pause with a summariser in the background, in summaries", background, Wanted("at most", 0.5)
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write and judge; returns the exit status."""
    parser = argparse.ArgumentParser(description="Our memory beside those that LangChain and LlamaIndex have.")
    parser.add_argument("--quick", action="store_true", help="smaller sizes; written nowhere unless --out says so")
    parser.add_argument("--locomo", type=Path, metavar="FILE", help="dialogues in the form of LoCoMo's locomo10.json")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where to write (benchmarks/results)")
    parser.add_argument(
        "--chat", type=int, help="turns of the chats, in the place of the plan's, which the page says"
    )
    parser.add_argument("--rounds", type=int, help="of tools in the agent's session, the same")
    parser.add_argument("--corpus", type=int, help="conversations of the retention corpus, the same")
    parser.add_argument(
        "--timed", type=int, nargs="*", help="messages of the sessions whose turns are timed, the same"
    )
    parser.add_argument("--dialogues", type=int, help="how many of LoCoMo's dialogues (all)")
    parser.add_argument("--again", action="store_true", help="only write page and plot anew, from peers.json")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes for what is not timed")
    given = parser.parse_args(arguments)
    started = time.monotonic()
    if given.again:
        whole = json.loads(((given.out or RESULTS) / "peers.json").read_text(encoding="utf-8"))
        write(whole, table.markdown(whole), given.out or RESULTS)
        return _judged(whole)
    plan = run.QUICK if given.quick else run.FULL
    sizes = replace(plan.sizes, chat=given.chat or plan.sizes.chat, rounds=given.rounds or plan.sizes.rounds)
    plan = replace(plan, sizes=sizes, corpus=given.corpus or plan.corpus, timed=tuple(given.timed or plan.timed))
    prepared, model = core.prepared(core.QUICK), local_model()
    if prepared.encode is None:
        parser.error("no vocabulary of o200k_base at hand: pip install llama-index-core")
    bench = run.Bench(
        plan, prepared.encode, model, tuple(dialogues(given.locomo)[: given.dialogues]) if given.locomo else ()
    )
    records = measured(bench, given.jobs)
    whole: dict[str, Any] = {
        "plan": asdict(plan),
        "versions": versions(),
        "counter": core.ENCODING,
        "embeddings": model.name if model else None,
        "dialogues": len(bench.dialogues),
        "replayed": len(bench.dialogues[: run.REPLAYED]),
        "memories": records,
    }
    folder = given.out or (None if given.quick else RESULTS)
    if folder:
        write(whole, table.markdown(whole), folder)  # what there is, before the times
    timed(bench, records)
    page = table.markdown(whole)
    print(page)
    if folder:
        write(whole, page, folder)
    print(f"\n{time.monotonic() - started:.0f} seconds")
    return _judged(whole)


def _judged(whole: Mapping[str, Any]) -> int:
    """Print what recall costs and buys, and whether ours shows what it must."""
    print(f"{table.told(whole)}\n")
    figures = list(wanted(whole["memories"]))
    for figure in figures:
        print(figure.row)
    return judged(figures)


def versions() -> dict[str, str]:
    """What was compared, by package."""
    packages = dict.fromkeys(kind.package for kind in memories.KINDS if kind.package)
    return {**{name: version(name) for name in packages}, "python": platform.python_version()}


def write(whole: Mapping[str, Any], page: str, folder: Path) -> None:
    """Write table, figures and plot."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(whole, ensure_ascii=False, indent=1, default=float)
    (folder / "peers.json").write_text(text + "\n", encoding="utf-8")
    (folder / "peers.md").write_text(page, encoding="utf-8")
    plots.reuse(whole["memories"], folder / "reuse.svg")


if __name__ == "__main__":
    sys.exit(main())
