"""Order and completeness under threads and tasks, and calls that need no event loop."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from li_models import FENCE, LIMIT, ScriptedLLM, awaited, cost, filled, history, texts, words
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.storage.chat_store import SimpleChatStore

from llamaindex_slidemem import SlidingChatMemoryBuffer, flow
from slidemem import AsyncOnly


def numbered(count: int, start: int = 0) -> list[ChatMessage]:
    """User messages that tell their place."""
    return [ChatMessage(f"message {at}") for at in range(start, start + count)]


def test_twenty_one_of_twenty_one_a_hundred_times() -> None:
    """run-llama/llama_index 19389, 17754: one put, then twenty at once, all there and in call order each time."""

    async def once() -> list[str]:
        memory = SlidingChatMemoryBuffer.from_defaults(tokenizer_fn=words)
        await memory.aput(numbered(1)[0])
        await asyncio.gather(*(memory.aput(message) for message in numbered(20, 1)))
        return texts(await memory.aget_all())

    async def often() -> list[list[str]]:
        return [await once() for _ in range(100)]

    assert [texts(numbered(21))] * 100 == awaited(often())


def test_a_chat_store_in_this_process_keeps_the_order_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A SimpleChatStore that was given is not sent to threads, where puts would overtake each other."""
    store = SimpleChatStore()

    monkeypatch.setattr(asyncio, "to_thread", None)

    async def at_once() -> None:
        memory = SlidingChatMemoryBuffer.from_defaults(tokenizer_fn=words, chat_store=store)
        await asyncio.gather(*(memory.aput(message) for message in numbered(20)))

    awaited(at_once())

    assert numbered(20) == store.get_messages("chat_history")


def test_five_tasks_may_use_a_memory_first() -> None:
    """Its first use needs no set-up that tasks could race for."""

    async def first() -> tuple[list[str], list[list[ChatMessage]]]:
        memory = SlidingChatMemoryBuffer.from_defaults(tokenizer_fn=words)
        read = await asyncio.gather(*(memory.aget("hello") for _ in range(5)))
        await asyncio.gather(*(memory.aput(message) for message in numbered(5)))
        return texts(await memory.aget_all()), list(read)

    assert (texts(numbered(5)), [[]] * 5) == awaited(first())


@pytest.mark.parametrize("mode", ["inline", "background"])
def test_puts_of_many_threads_are_all_there_and_in_each_threads_order(mode: str) -> None:
    """Eight threads, a hundred messages each, with consolidations among them, and reads all the while."""
    memory = SlidingChatMemoryBuffer.from_defaults(token_limit=LIMIT, tokenizer_fn=words, mode=mode)
    start = threading.Barrier(8)

    def put(thread: int) -> int:
        start.wait()
        most = 0
        for at in range(100):
            memory.put(ChatMessage(role="user" if at % 2 == 0 else "assistant", content=f"{thread} says {at} now"))
            most = max(most, cost(memory.get()) if at % 10 == 0 else 0)
        return most

    with ThreadPoolExecutor(8) as pool:
        most = list(pool.map(put, range(8)))

    said = [str(message.content) for message in memory.get_all()]
    assert (True, True) == (min(most) > 0, max(most) <= LIMIT)
    assert [[f"{thread} says {at} now" for at in range(100)] for thread in range(8)] == [
        [text for text in said if text.startswith(f"{thread} ")] for thread in range(8)
    ]
    assert memory.session.flush()
    assert FENCE in texts(memory.get())[0] or memory.stats().consolidations


def test_a_slow_summarizer_holds_nobody() -> None:
    """While one task's model is asked, other tasks put and read; all is there, and the summary is committed."""
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def summarize(messages: list[dict[str, Any]]) -> str:
        asked.set()
        await go_on.wait()
        return "Meera takes the train to Pune, PNR-0000 and following."

    async def both() -> tuple[list[str], int]:
        memory = SlidingChatMemoryBuffer.from_defaults(token_limit=LIMIT, tokenizer_fn=words, summarizer=summarize)
        slow = asyncio.create_task(memory.aput_messages(history()))
        await asked.wait()
        await memory.aput(ChatMessage("meanwhile"))
        shown = await memory.aget()
        go_on.set()
        await slow
        assert (texts(shown)[-1], cost(shown) <= LIMIT) == ("user: meanwhile", True)
        return texts(await memory.aget_all()), memory.stats().consolidations

    said, consolidations = awaited(both())

    assert (texts([*history(), ChatMessage("meanwhile")]), True) == (said, consolidations > 0)


def test_no_method_starts_an_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sync methods work where no loop can be made, and inside a running one."""
    memory = filled()

    def none(*_: Any, **__: Any) -> None:
        raise AssertionError("an event loop was started")

    def everything() -> list[ChatMessage]:
        memory.put(ChatMessage("one"))
        memory.put_messages(numbered(2))
        memory.set([*memory.get_all(), ChatMessage("two")])
        return memory.get("hello")

    async def cell() -> list[ChatMessage]:
        return everything()

    inside = awaited(cell())
    monkeypatch.setattr(asyncio, "run", none)
    monkeypatch.setattr(asyncio, "new_event_loop", none)

    assert (True, True) == (bool(inside), bool(everything()))
    memory.reset()


def test_a_flow_that_suspends_names_the_twin() -> None:
    """What truly has to be awaited is refused by a sync call, with the method to use instead."""

    async def suspends() -> None:
        await asyncio.sleep(0)

    with pytest.raises(AsyncOnly, match=r"await aget\(\) instead"):
        flow.run(suspends(), "aget")


def test_a_stream_that_stores_from_its_thread_keeps_the_order() -> None:
    """Two streams one after the other, the first not read before the second begins: all four messages are there."""
    memory = SlidingChatMemoryBuffer.from_defaults(tokenizer_fn=words)
    engine = SimpleChatEngine.from_defaults(llm=ScriptedLLM(), memory=memory)

    before = set(threading.enumerate())
    first = engine.stream_chat("first")
    for thread in set(threading.enumerate()) - before:  # the one that stores the answer
        thread.join(30)
    second = engine.stream_chat("second")
    "".join(second.response_gen)
    "".join(first.response_gen)

    assert ["user: first", "assistant: answer 1", "user: second", "assistant: answer 2"] == texts(memory.get_all())
