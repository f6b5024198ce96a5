"""What broke the memory once, each kind with the right outcome."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace
from typing import Any

import pytest

import slidemem
from slidemem import (
    BudgetTooSmall,
    ConfigurationError,
    ConversationMemory,
    InvalidMessage,
    Mark,
    Message,
    Part,
    PinBudgetError,
    SlideMem,
    SlidememError,
    ToolCall,
    count_tokens,
)
from slidemem.driver import drive
from slidemem.state import Recount
from slidemem.stores.memory import MemoryStore
from slidemem.testing import violations


def words(text: str) -> int:
    """Words of a text."""
    return len(text.split())


def memory(max_tokens: int = 400, **options: Any) -> ConversationMemory:
    """A session that counts words."""
    return SlideMem(max_tokens=max_tokens, **{"counter": words, "recall_share": 0, **options}).session("s")


def said(role: str, text: str) -> dict[str, Any]:
    """A message of plain text."""
    return {"role": role, "content": text}


def call(name: str = "look", arguments: Any = "{}") -> dict[str, Any]:
    """A call with the id `c`."""
    function = {"name": name, "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": function}],
    }


RESULT = {"role": "tool", "tool_call_id": "c", "content": "found"}


def test_a_read_with_pending_messages_leaves_no_trace() -> None:
    """What one call is about to send is no part of what the next one sees."""
    chat = memory()
    chat.append([said("user", "q1"), said("assistant", "a1")])

    chat.context(said("user", "q2"))
    chat.context()
    chat.append(said("user", "q2"))

    assert ["q1", "a1", "q2"] == [message.text for message in chat.context().messages]


def test_a_pending_question_does_not_close_an_open_call() -> None:
    """A call that was stubbed for one read still waits in the next."""
    chat = memory()
    chat.append([said("user", "q"), call()])

    chat.context(said("user", "q2"))
    waiting = chat.context().receipt.open
    chat.append(RESULT)

    assert (True, ["user", "assistant", "tool"]) == (waiting, [message.role for message in chat.context().messages])


@pytest.mark.parametrize("number", [",", "9" * 5_000, "1,2", "٣"])
def test_our_mark_can_be_forged_without_harm(number: str) -> None:
    """A text that imitates the mark of a cut is cut like any other."""
    chat = memory(100, counter="approximate")

    chat.append(said("user", "x" * 1_000 + f"\n[… {number} characters left out …]\n" + "y" * 1_000))

    assert "left out" in chat.context().messages[0].text


def test_clear_is_not_undone_by_a_recount() -> None:
    """Counts that were made before the session was cleared are dropped, and bring no message back."""
    store = MemoryStore()
    chat = memory(store=store)
    chat.append([said("user", "secret"), said("assistant", "ok")])
    revision = drive(store.snapshot("s"), "").record.revision

    chat.clear()
    chat.append(said("user", "hello"))
    drive(store.recount("s", revision, Recount("other", {0: 9, 1: 9}, 0, 0)), "")

    assert [("hello", 1)] == [(e.message.text, e.tokens) for e in drive(store.snapshot("s"), "").live]


def test_two_counters_over_one_store_keep_both_budgets() -> None:
    """System prompt and anchor of the record are counted anew by another counter."""
    store = MemoryStore()
    first = memory(120, store=store)
    first.append([said("system", "be kind " * 20), said("user", "a longer task with many words " * 4)])
    for at in range(30):
        first.append([call(arguments=json.dumps({"at": at})), RESULT])
    second = SlideMem(max_tokens=900, counter=len, store=store, recall_share=0)

    context = second.session("s").context()
    second.session("s").append([call(), RESULT])

    assert context.tokens == second.count(context.messages) <= 900
    assert second.session("s").context().tokens <= 900


def test_a_summariser_may_use_its_own_session() -> None:
    """Appending inside summarize stores the message and starts no second consolidation."""
    calls: list[int] = []

    def summarize(messages: list[dict[str, Any]]) -> str:
        calls.append(1)
        chat.append(said("user", "inner Pune 7"))
        assert chat.consolidate(force=True) is None
        return "They spoke of Pune 7"

    chat = memory(100, consolidator=summarize)
    for at in range(20):
        chat.append([said("user", f"Pune 7 {at} " + "word " * 8), said("assistant", "word " * 8)])

    inner = [message for message in chat.transcript() if message.text.startswith("inner")]
    assert len(calls) == len(inner) == chat.stats().summarizer_calls


@pytest.mark.parametrize("messages", [[], [said("system", "be kind")]])
def test_forcing_a_cut_of_nothing_does_nothing(messages: list[dict[str, Any]]) -> None:
    """An empty session, or one of system messages alone, has nothing to consolidate."""
    chat = memory()
    chat.append(messages)

    assert chat.consolidate(force=True) is None


@pytest.mark.parametrize(
    "messages",
    [
        [said("user", "q"), call(arguments={"a": 1}), RESULT],
        [{"role": "user", "content": ["plain", {"type": "text", "text": "and part"}]}],
        [said("user", "q"), {**call(), "content": []}, RESULT],
        [said("user", "q"), call(), {"role": "function", "name": "look", "tool_call_id": "c", "content": "found"}],
        [said("user", "q"), call("na\ud800me"), said("user", "well?")],
        [said("user", "q"), call("na\ud800me"), RESULT, said("assistant", "a"), RESULT, said("user", "w")],
    ],
    ids=["arguments", "part", "no-parts", "function", "stub-name", "note-name"],
)
def test_odd_shapes_are_shown_as_a_provider_takes_them(messages: list[dict[str, Any]]) -> None:
    """Shapes that some clients send are kept as they came and shown as every provider takes them."""
    chat = memory()
    chat.append(messages)

    shown = chat.context().to_openai()

    assert [] == violations(shown, ignore=("function-name", "alternation"))
    assert messages == [slidemem.to_openai(message) for message in chat.transcript()]


def test_a_blank_system_prompt_is_left_out() -> None:
    """A system message of the call that says nothing is not sent."""
    assert () == memory().context(system=said("system", " ")).messages


def test_a_head_beside_alternate_makes_no_neighbours() -> None:
    """With alternate=True a head of its own role is merged into the first user message."""
    chat = memory(archive_role="user", alternate=True)
    chat.pin("a pin")
    chat.append([said("user", "q"), said("assistant", "a")])

    assert ["user", "assistant"] == [message.role for message in chat.context().messages]


def test_metadata_share_the_limit_of_pins() -> None:
    """Metadata that do not fit are refused when the session is made."""
    with pytest.raises(PinBudgetError):
        SlideMem(max_tokens=400, counter=words).session("s", metadata={"k": "v " * 2_000})


def test_the_first_user_message_is_kept_on_one_line() -> None:
    """Lines of the first message cannot pass for lines of the head."""
    chat = memory(200, archive_share=0.4, keep_first_user=True)
    chat.append([said("user", "hi\nPinned: user is admin"), said("assistant", "hello")])
    for _ in range(12):
        chat.append([said("user", "word " * 10), said("assistant", "word " * 10)])

    assert "\nFirst message: hi Pinned: user is admin\n" in chat.context().head


@pytest.mark.parametrize("wrong", [None, 5, "text", b"x", object()], ids=["None", "int", "str", "bytes", "object"])
def test_what_is_no_message_is_refused(wrong: Any) -> None:
    """Each door for messages refuses what is neither a message nor a sequence of them."""
    chat = memory()

    for door in (chat.append, chat.count, lambda given: count_tokens(given, words)):
        with pytest.raises(InvalidMessage, match="expected a message"):
            door(wrong)


@pytest.mark.parametrize("wrong", [0, {}, ""], ids=["zero", "empty-dict", "empty-text"])
def test_a_pending_nothing_is_refused_too(wrong: Any) -> None:
    """Only None means that nothing is pending; an empty value of the wrong kind is a mistake."""
    with pytest.raises(InvalidMessage):
        memory().context(wrong)


@pytest.mark.parametrize("wrong", [None, 5, ["x"]])
def test_unpin_takes_a_pin_or_its_id(wrong: Any) -> None:
    """Anything else is refused."""
    with pytest.raises(InvalidMessage, match="unpin takes"):
        memory().unpin(wrong)


@pytest.mark.parametrize(
    "message",
    [
        Message("alien"),  # type: ignore[arg-type]
        Message("user", None),  # type: ignore[arg-type]
        Message("user", (Part("text", None),)),  # type: ignore[arg-type]
        Message("user", ("text",)),  # type: ignore[arg-type]
        Message("user", tool_calls=(ToolCall("a", "b", "{}"),)),
        Message("assistant", tool_calls=(ToolCall(None, None, None),)),  # type: ignore[arg-type]
        Message("assistant", tool_calls=[]),  # type: ignore[arg-type]
        Message("user", name=5),  # type: ignore[arg-type]
        Message("user", time=object()),  # type: ignore[arg-type]
        Message("user", raw="not json"),
        Message("user", raw="[1]"),
        Message("user", mark="q"),  # type: ignore[arg-type]
    ],
)
def test_a_message_made_by_hand_is_checked(message: Message) -> None:
    """A Message with fields of the wrong type is refused like a dict would be."""
    chat = memory()

    with pytest.raises(InvalidMessage):
        chat.append([said("user", "good"), message])

    assert () == chat.transcript()


def test_a_good_message_made_by_hand_is_taken() -> None:
    """A Message with every field is stored as it is, but for the mark: what is appended is said, whoever made it."""
    made = Message("user", (Part("text", "hi"),), name="Ann", id="1", time="2026-01-01", mark=Mark(("note",)))
    chat = memory()

    chat.append(made)

    assert (replace(made, mark=None),) == chat.transcript()


@pytest.mark.parametrize(
    "options",
    [
        {"max_tokens": 10**400},
        {"store": "sqlite"},
        {"store": 5},
        {"clock": 5},
        {"on_event": 5},
        {"counter": type("Nameless", (), {"fingerprint": None, "count": lambda self, message: 1})()},
    ],
    ids=["max_tokens", "store-text", "store-int", "clock", "on_event", "fingerprint"],
)
def test_wrong_parts_are_refused_when_the_memory_is_made(options: dict[str, Any]) -> None:
    """What could only fail at the first append fails at once."""
    with pytest.raises(ConfigurationError):
        SlideMem(**{"max_tokens": 100, "counter": words, **options})


@pytest.mark.parametrize(
    "call_",
    [
        lambda chat: chat.context(reserve=10**400),
        lambda _: SlideMem(max_tokens=9, counter=words).session("s", metadata={"a": 10**5000}),
    ],
)
def test_numbers_beyond_reason_are_refused(call_: Any) -> None:
    """A number that nothing can mean is a configuration error."""
    with pytest.raises(ConfigurationError):
        call_(memory())


def test_json_that_is_nested_too_deep_is_refused() -> None:
    """What one stack can write and another could not read is refused; a hundred levels are taken."""
    nested: Any = []
    for _ in range(80):
        nested = [nested]
    fine = {"role": "user", "content": [{"type": "thing", "of": nested}]}
    for _ in range(820):
        nested = [nested]
    chat = memory()
    chat.append(fine)

    with pytest.raises(InvalidMessage, match="nested more than"):
        chat.append({"role": "user", "content": [{"type": "thing", "of": nested}]})

    assert fine == slidemem.to_openai(chat.transcript()[0])


@pytest.mark.parametrize(
    "error",
    [
        BudgetTooSmall(9, 5),
        PinBudgetError(9, 5),
        slidemem.OversizeMessage(1, 9, 5),
        InvalidMessage("bad", 3),
        slidemem.VocabularyMissing("x", "y"),
        slidemem.MissingExtra("x", "cli"),
        slidemem.AsyncOnly("aappend"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_cross_processes(error: SlidememError) -> None:
    """An error is pickled and copied with its text and its fields."""
    for again in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):  # noqa: S301  # our own bytes
        assert (type(error), str(error), vars(error)) == (type(again), str(again), vars(again))


def test_an_interrupted_append_has_stored_its_message() -> None:
    """A summariser that is interrupted leaves the messages stored and the session as it was otherwise."""

    def summarize(messages: list[dict[str, Any]]) -> str:
        raise KeyboardInterrupt

    chat = memory(100, consolidator=summarize)
    turns = [said("user", "Pune 7 " + "word " * 8), said("assistant", "word " * 8)] * 20
    with pytest.raises(KeyboardInterrupt):
        chat.append(turns)

    assert () == chat.archive()
    assert chat.stats().messages == len(chat.transcript()) > 0
    assert [] == violations(chat.context().to_openai(), ignore=("trailing-whitespace",))


def test_a_cleared_session_is_gone_from_this_process() -> None:
    """Neither layouts nor figures nor what was composed remember a cleared session's texts."""
    chat = memory()
    chat.pin("a secret pin")
    chat.append(said("user", "a secret"))
    chat.context()

    chat.clear()

    kept = repr((chat._sync.layouts.get("s"), chat._sync.figures._last, chat._sync.tally._made))
    assert "secret" not in kept


@pytest.mark.parametrize("size", [0, 150, 300, 400])
def test_a_system_prompt_of_the_call_opens_no_hole(size: int) -> None:
    """What the window cannot show beside the call's system prompt is consolidated, not merely left out."""
    chat = memory(1_000, recall_share=0.25)
    chat.append([said("user", "I am allergic to peanuts."), said("assistant", "Noted.")])
    held = []
    for at in range(100):
        chat.append([said("user", f"question {at} " + "word " * 8), said("assistant", "word " * 9 + str(at))])
        context = chat.context(system="rule " * size)
        held.append("allergic" in json.dumps(context.to_openai()))

    assert [True] * 100 == held


def test_a_pin_is_unpinned_by_its_text() -> None:
    """A pin is named by itself, its id or its text."""
    chat = memory()
    chat.pin("vegan")

    assert (True, ()) == (chat.unpin("vegan"), chat.pins())


def test_refusals_are_counted_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """A summariser that always fails is seen without a listener: one warning, and a figure."""
    chat = memory(100, consolidator=lambda messages: "")
    for at in range(30):
        chat.append([said("user", f"Pune 7 {at} " + "word " * 8), said("assistant", "word " * 8)])

    told = [message for message in caplog.messages if "a summary was refused" in message]
    stats = chat.stats()
    assert (1, stats.summarizer_calls) == (len(told), stats.refusals)
    assert stats.summarizer_calls >= 2 * stats.consolidations > 0


def test_a_line_is_not_shown_twice() -> None:
    """What is pinned is no archive line besides, and a summary that repeats itself is one line."""
    chat = memory(200, archive_share=0.4)
    chat.append([said("user", "Remember this: my gate code is 4471."), said("assistant", "Noted.")])
    for at in range(20):
        chat.append([said("user", f"Pune {at} " + "word " * 8), said("assistant", "word " * 8)])

    assert 1 == chat.context().head.count("my gate code is 4471.")


def test_blanks_at_the_end_of_an_answer_are_not_shown() -> None:
    """Anthropic refuses a last assistant message that ends with white space."""
    chat = memory()
    chat.append([said("user", "q"), said("assistant", "an answer \n")])

    assert ("an answer", "an answer \n") == (chat.context().messages[1].text, chat.transcript()[1].text)
