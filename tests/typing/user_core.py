"""The types that a user of the core sees; checked by `make types`, never run."""

from __future__ import annotations

from typing import Any

from typing_extensions import assert_type

from slidemem import (
    BudgetTooSmall,
    Context,
    ConversationMemory,
    Event,
    Explanation,
    Hit,
    Message,
    Money,
    Pin,
    Reconciled,
    Segment,
    SlideMem,
    count_tokens,
)


def summarize(messages: list[dict[str, Any]]) -> str:
    """A summariser, as a user writes it."""
    return str(len(messages))


async def asummarize(messages: list[dict[str, Any]]) -> str:
    """An async one."""
    return str(len(messages))


def heard(event: Event) -> None:
    """A listener."""
    assert_type(event.session, str)
    assert_type(event.segment, Segment | None)


def a_session() -> None:
    """What the methods of a session return."""
    mem = SlideMem(max_tokens=400, counter=len, consolidator=summarize, on_event=heard, archive_share=0.3)
    SlideMem(max_tokens=400, consolidator=asummarize, redact=str.lower, store="sqlite:///chat.db")
    chat = mem.session("s", metadata={"timezone": "IST"}, user_id="meera")

    assert_type(chat, ConversationMemory)
    assert_type(chat.append({"role": "user", "content": "Hi"}), None)
    chat.append([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hi"}])
    assert_type(chat.context(system="You are kind."), Context)
    assert_type(chat.context({"role": "user", "content": "Hi"}).to_openai(), list[dict[str, Any]])
    assert_type(chat.context().tokens, int)
    assert_type(chat.context().zones.window, int)
    assert_type(chat.context().receipt.recalled, tuple[int, ...])
    assert_type(chat.transcript(), tuple[Message, ...])
    assert_type(chat.archive(), tuple[Segment, ...])
    assert_type(chat.explain(chat.archive()[0]), Explanation)
    assert_type(chat.pin("allergic to peanuts"), Pin)
    assert_type(chat.search("peanuts", k=3, roles="user"), tuple[Hit, ...])
    assert_type(chat.rewind(-1), tuple[Message, ...])
    assert_type(chat.reconcile([]), Reconciled)
    assert_type(chat.stats().money, Money | None)
    assert_type(mem.sessions(), tuple[str, ...])
    assert_type(mem.delete_user("meera"), tuple[str, ...])
    assert_type(count_tokens([{"role": "user", "content": "Hi"}], "approximate"), int)


async def a_session_awaited() -> None:
    """The twins return the same."""
    chat = SlideMem(max_tokens=400).session("s")
    assert_type(await chat.aappend({"role": "user", "content": "Hi"}), None)
    assert_type(await chat.acontext(), Context)
    assert_type(await chat.atranscript(), tuple[Message, ...])
    assert_type(await chat.aconsolidate(), Segment | None)


def an_error(chat: ConversationMemory) -> int:
    """An error carries its numbers."""
    try:
        return chat.context().tokens
    except BudgetTooSmall as error:
        return assert_type(error.needed, int) - assert_type(error.usable, int)
