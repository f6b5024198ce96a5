"""The invariants over generated conversations; `SLIDEMEM_CONVERSATIONS` says how many (2,000 for a full run)."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import replace

import pytest
from conversations import COUNTERS, Script, script, summarizer
from invariants import CHECKS, Coverage, Run, add, rendered

from slidemem import BudgetTooSmall, PinBudgetError, SlideMem

CONVERSATIONS = int(os.environ.get("SLIDEMEM_CONVERSATIONS", "320"))
BATCH = 40


@pytest.fixture(scope="module")
def coverage() -> Coverage:
    """What the conversations of this module came to."""
    return Coverage()


@pytest.mark.parametrize("first", range(0, CONVERSATIONS, BATCH))
def test_every_invariant_holds_at_every_step(first: int, coverage: Coverage) -> None:
    """Budget, validity, newest message, nothing lost, purity, prefix and single counting hold."""
    for seed in range(first, first + BATCH):
        add(coverage, Run(script(seed)).play())

    assert coverage.seen >= BATCH


def test_the_conversations_were_wild_enough(coverage: Coverage) -> None:
    """The generator met consolidations, cuts inside loops, clamps and lost races often enough."""
    coverage.check()

    assert coverage.seen >= CONVERSATIONS, "run this test with the ones before it: it judges what they met"
    assert set(CHECKS) == {"budget", "valid", "newest", "nothing lost", "pure", "prefix", "handed back"}


@pytest.mark.parametrize("mode", [None, "background"])
@pytest.mark.parametrize("seed", range(0, 120, 3))
def test_async_says_the_same_as_sync(seed: int, mode: str | None) -> None:
    """The async twins give the same contexts, byte for byte, whether tasks consolidate or the callers."""
    made = script(seed)
    given = replace(made, options={**made.options, **({"mode": mode} if mode else {})})

    expected, actual = _sync(given), asyncio.run(_async(given))

    assert expected == actual


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_other_sessions_do_not_matter(seed: int) -> None:
    """A session reads the same when another one in the same store is busy."""
    given = script(seed)

    expected, actual = _sync(given), _sync(given, neighbour=script(seed + 1))

    assert expected == actual


def _memory(given: Script) -> SlideMem:
    name = "honest" if given.summarizer == "racing" else given.summarizer
    chosen = {} if name == "extractive" else {"consolidator": summarizer(name)}
    return SlideMem(counter=COUNTERS[given.counter], clock=lambda: 0.0, **chosen, **given.options)


def _sync(given: Script, neighbour: Script | None = None) -> list[list[str]]:
    memory = _memory(given)
    chat, other = memory.session("one"), memory.session("two")
    noise = iter(neighbour.steps if neighbour else ())
    read: list[list[str]] = []
    for kind, argument in given.steps:
        if kind == "append":
            chat.append(argument)
        elif kind == "consolidate":
            chat.consolidate(force=True)
        else:
            with contextlib.suppress(PinBudgetError):
                chat.pin(argument)
        assert chat.flush()
        step = next(noise, None)
        if step and step[0] == "append":
            other.append(step[1])
        try:
            read.append(rendered(chat.context(system=given.system, reserve=given.reserve)))
        except BudgetTooSmall as refused:
            read.append([str(refused)])
    return read


async def _async(given: Script) -> list[list[str]]:
    chat = _memory(given).session("one")
    read: list[list[str]] = []
    for kind, argument in given.steps:
        if kind == "append":
            await chat.aappend(argument)
        elif kind == "consolidate":
            await chat.aconsolidate(force=True)
        else:
            with contextlib.suppress(PinBudgetError):
                await chat.apin(argument)
        assert await chat.aflush()
        try:
            read.append(rendered(await chat.acontext(system=given.system, reserve=given.reserve)))
        except BudgetTooSmall as refused:
            read.append([str(refused)])
    return read
