"""One session from several threads and tasks at once."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from slidemem import SlideMem
from slidemem.driver import drive
from slidemem.testing import violations

THREADS, ROUNDS = 8, 60


def memory() -> SlideMem:
    """A memory that consolidates often."""
    return SlideMem(max_tokens=300, counter=lambda text: len(text.split()), recall_share=0)


def said(who: int, at: int) -> list[dict[str, Any]]:
    """A turn that no other thread says."""
    return [
        {"role": role, "content": f"{role} {who} says PNR-{who}-{at}" + " word" * 6} for role in ("user", "assistant")
    ]


def check(mem: SlideMem) -> None:
    """Every turn is there once, whole and in its thread's order, and the archive covers what the window does not."""
    chat = mem.session("s")
    texts = [message.text for message in chat.transcript()]
    snapshot = drive(mem.store.snapshot("s"), "")
    edges = [(segment.start, segment.end) for segment in snapshot.record.archive.segments]
    expected = [said(who, at)[0]["content"] for who in range(THREADS) for at in range(ROUNDS)]

    assert sorted(expected) == sorted(texts[::2])
    assert all(b.startswith("assistant" + a[4:20]) for a, b in zip(texts[::2], texts[1::2], strict=True))
    assert [0, *(end for _, end in edges)] == [*(start for start, _ in edges), snapshot.record.boundary]
    assert snapshot.totals.live_tokens == sum(entry.tokens for entry in snapshot.live)
    assert [] == violations(chat.context().to_openai())


def test_threads_append_and_read_one_session() -> None:
    """Eight threads that append and read at once lose nothing, and every context is valid and within budget."""
    mem, start = memory(), Barrier(THREADS)

    def talk(who: int) -> int:
        chat, largest = mem.session("s"), 0
        start.wait()
        for at in range(ROUNDS):
            chat.append(said(who, at))
            context = chat.context()
            largest = max(largest, context.tokens, *(300 for _ in violations(context.to_openai())), 0)
        return largest

    with ThreadPoolExecutor(THREADS) as pool:
        largest = max(pool.map(talk, range(THREADS)))

    assert largest < 300
    check(mem)


def test_tasks_append_and_read_one_session() -> None:
    """The same with tasks in one event loop, and a summariser that lets others go first."""

    async def summarize(messages: list[dict[str, Any]]) -> str:
        await asyncio.sleep(0)
        return "They spoke of " + str(messages[0]["content"]).split()[3]

    mem = SlideMem(max_tokens=300, counter=lambda text: len(text.split()), recall_share=0, consolidator=summarize)

    async def talk(who: int) -> int:
        chat, largest = mem.session("s"), 0
        for at in range(ROUNDS):
            await chat.aappend(said(who, at))
            largest = max(largest, (await chat.acontext()).tokens)
        return largest

    async def everybody() -> list[int]:
        return await asyncio.gather(*(talk(who) for who in range(THREADS)))

    assert max(asyncio.run(everybody())) <= 300
    check(mem)
