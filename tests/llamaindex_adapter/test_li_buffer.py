"""The memory itself: ChatMemoryBuffer's arguments, defaults, errors and methods, and what it does better."""

from __future__ import annotations

import copy
import json
import pickle
import re
from typing import Any

import pytest
from li_models import FACT, FENCE, LIMIT, ScriptedLLM, awaited, cost, filled, history, texts, turn, words
from llama_index.core.base.llms.types import (
    ChatMessage,
    CitableBlock,
    DocumentBlock,
    ImageBlock,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.bridge.pydantic import ValidationError
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.storage.chat_store import SimpleChatStore
from llama_index.core.utils import get_tokenizer

from llamaindex_slidemem import RememberedMessage, SlidingChatMemoryBuffer
from slidemem import (
    AsyncOnly,
    BudgetTooSmall,
    ConfigurationError,
    ConversationMemory,
    Event,
    ExtractiveConsolidator,
    InvalidMessage,
    SlideMem,
)
from slidemem.stores.memory import MemoryStore

USER = ChatMessage(role="user", content="first message")
ANSWER = ChatMessage(role="assistant", content="first answer")
POSITIVE = "Token limit must be set and greater than 0."


def memory(chat_history: list[ChatMessage] | None = None, **options: Any) -> SlidingChatMemoryBuffer:
    """A memory that counts words."""
    return SlidingChatMemoryBuffer.from_defaults(chat_history, **{"tokenizer_fn": words, **options})


# ------------------------------------------------------------------ ChatMemoryBuffer's own tests, in meaning


def test_what_was_put_is_got() -> None:
    """One message in a memory of default size comes back."""
    assert [USER] == SlidingChatMemoryBuffer.from_defaults(chat_history=[USER]).get()


def test_a_prefix_below_the_limit_leaves_the_history() -> None:
    """A message beside a small prefix comes back as it was."""
    assert [USER] == memory([USER], token_limit=1000).get(initial_token_count=5)


def test_a_prefix_above_the_limit_raises() -> None:
    """With ChatMemoryBuffer's own text, an empty memory too."""
    for chat_history in ([], [USER]):
        with pytest.raises(ValueError, match=r"^Initial token count exceeds token limit$"):
            memory(chat_history, token_limit=49).get(initial_token_count=50)


def test_a_prefix_as_large_as_the_limit_leaves_room_for_nothing() -> None:
    """An empty memory gives nothing; one with a message says what is missing, and nothing is over the budget."""
    with pytest.raises(BudgetTooSmall) as raised:
        memory([USER], token_limit=5).get(initial_token_count=5)

    assert (1, 0) == (raised.value.needed, raised.value.usable)
    assert [] == memory(token_limit=5).get(initial_token_count=5)


def test_answers_at_the_start_are_left_out() -> None:
    """run-llama/llama_index 17845, 20256: where room is for an answer alone, its question stands first."""
    kept = memory([USER, ANSWER], token_limit=20)

    got = [kept.get(initial_token_count=count) for count in (18, 17, 16)]

    assert [[USER], USER, [USER, ANSWER]] == [got[0], got[1][0], got[2]]
    assert 3 >= cost(got[1])


def test_room_for_one_turn_shows_the_newest() -> None:
    """Two turns and room for one: the second, question and answer."""
    second = [
        ChatMessage(role="user", content="second message"),
        ChatMessage(role="assistant", content="second answer"),
    ]
    kept = memory([USER, ANSWER, *second], token_limit=100)

    assert [second, second] == [kept.get(initial_token_count=count) for count in (96, 93)]


def test_set_puts_a_list_in_the_place_of_what_is_there() -> None:
    """Two messages, then one."""
    kept = memory([USER])
    kept.put(ChatMessage("other"))

    kept.set([USER])

    assert ([USER], [USER]) == (kept.get(), kept.get_all())


def test_a_limit_of_five_shows_two_of_four() -> None:
    """Two tokens a message and a limit of five: two are shown, all four are there, and the newest is last."""
    kept = SlidingChatMemoryBuffer.from_defaults(chat_history=[USER], token_limit=5)
    for _ in range(3):
        kept.put(USER)

    assert (2, 4) == (len(kept.get()), len(kept.get_all()))
    kept.put(ChatMessage("test message2"))
    assert "test message2" == kept.get()[-1].content


def test_a_memory_comes_back_from_text_and_dict() -> None:
    """Limit, messages and archive are in both, and the dict that was read is not changed."""
    kept = filled()
    data = kept.to_dict()
    before = json.dumps(data)

    again = SlidingChatMemoryBuffer.from_dict(data, tokenizer_fn=words)
    read = SlidingChatMemoryBuffer.from_string(kept.to_string(), tokenizer_fn=words)
    bare = SlidingChatMemoryBuffer.from_dict({"token_limit": 7, "class_name": "SlidingChatMemoryBuffer"})

    assert before == json.dumps(data)
    assert [kept.get(), kept.get()] == [again.get(), read.get()]
    assert (LIMIT, {"archive_share": 0.3}, 7) == (again.token_limit, again.options, bare.token_limit)


@pytest.mark.parametrize("tokenizer", [words, lambda text: text.split(), None])
def test_a_memory_is_pickled_and_copied_without_harm(tokenizer: Any) -> None:
    """A tokenizer that cannot be pickled is LlamaIndex's own there; the original works on, and is apart."""
    kept = filled(tokenizer_fn=tokenizer) if tokenizer else SlidingChatMemoryBuffer.from_defaults(history())

    copies = [pickle.loads(pickle.dumps(kept)), copy.deepcopy(kept), kept.model_copy(deep=True)]  # noqa: S301  # our own
    for one in copies:
        one.put(USER)

    assert [81, 81, 81, 80] == [len(one.get_all()) for one in (*copies, kept)]
    assert kept.get() == copies[1].model_copy().get()[:-1] or FENCE in texts(kept.get())[0]
    assert isinstance(copies[0], SlidingChatMemoryBuffer)


# ------------------------------------------------------------------ arguments


@pytest.mark.parametrize(
    "arguments, limit",
    [
        ({}, 3000),
        ({"llm": ScriptedLLM(window=8000)}, 6000),
        ({"llm": ScriptedLLM(window=8000), "token_limit": 50}, 50),
        ({"llm": ScriptedLLM(window=8000), "token_limit": 0}, 6000),
        ({"token_limit": 1}, 1),
    ],
)
def test_the_limit_is_that_of_chat_memory_buffer(arguments: dict[str, Any], limit: int) -> None:
    """Three quarters of the model's window, else 3,000; the model is not kept."""
    ours, theirs = (kind.from_defaults(**arguments) for kind in (SlidingChatMemoryBuffer, ChatMemoryBuffer))

    assert (limit, limit) == (ours.token_limit, theirs.token_limit)
    assert None is ours.summarizer


def test_wrong_arguments_are_refused_as_there() -> None:
    """A limit below one, an unknown argument, and no limit at all where the class itself is called."""
    for wrong in (
        lambda: memory(token_limit=0),
        lambda: SlidingChatMemoryBuffer(token_limit=-1),
        SlidingChatMemoryBuffer,
        lambda: SlidingChatMemoryBuffer(token_limit=None),
    ):
        with pytest.raises(ValidationError, match=re.escape(POSITIVE)):
            wrong()
    with pytest.raises(ValueError, match=r"^Unexpected kwargs: \{'tokens': 5\}"):
        memory(tokens=5)
    with pytest.raises(ConfigurationError, match="archive_share"):
        memory(archive_share=7.5)
    with pytest.raises(ConfigurationError, match="media_tokens"):
        memory(media_tokens={"smell": 1})
    with pytest.raises(ValidationError, match="on_overflow"):
        memory(on_overflow="explode")
    with pytest.raises(ConfigurationError, match=r"summarizer must be None, a LlamaIndex LLM.*; got int"):
        memory(summarizer=3)
    with pytest.raises(ConfigurationError, match=r"summarizer must be .* got the class ScriptedLLM"):
        memory(summarizer=ScriptedLLM)
    with pytest.raises(ConfigurationError, match="not both"):
        memory(chat_store=SimpleChatStore(), store=MemoryStore())
    with pytest.raises(ConfigurationError, match="records keeps the archive beside a chat_store"):
        memory(records=MemoryStore())
    with pytest.raises(ConfigurationError, match=r"metadata\.context_window, got str: pass token_limit"):
        memory(llm="gpt-4o")


@pytest.mark.parametrize(
    "core, ours",
    [("max_tokens", "token_limit"), ("counter", "tokenizer_fn"), ("consolidator", "summarizer")],
)
def test_an_argument_by_its_name_in_slidemem_is_told_its_name_here(core: str, ours: str) -> None:
    """As an argument, and among the options of the class; what nobody knows is told what is known."""
    with pytest.raises(ValueError, match=f"Unexpected kwargs.*{core} is {ours} here"):
        memory(**{core: 5})
    with pytest.raises(ConfigurationError, match=f"Unexpected kwargs.*{core} is {ours} here"):
        SlidingChatMemoryBuffer(token_limit=5, options={core: 5})
    with pytest.raises(ConfigurationError, match=r"known are on_overflow.*redact.*archive_share"):
        memory(max_token=5)


@pytest.mark.parametrize("count", [-1, 2.5, "5", None])
def test_a_prefix_that_is_no_number_of_tokens_says_so(count: Any) -> None:
    """Named as the caller named it, sync and async."""
    with pytest.raises(ConfigurationError, match="initial_token_count must be a whole number"):
        memory([USER]).get(initial_token_count=count)
    with pytest.raises(ConfigurationError, match="initial_token_count must be a whole number"):
        awaited(memory([USER]).aget(initial_token_count=count))


@pytest.mark.parametrize("given", [None, 5, "text", USER, {"role": "user"}])
def test_what_is_no_list_of_messages_is_refused(given: Any) -> None:
    """By every method that takes one, and nothing has changed."""
    kept = memory([USER])

    for write in (kept.set, kept.put_messages, lambda one: awaited(kept.aset(one))):
        with pytest.raises(InvalidMessage, match=f"expected a list of ChatMessages, got {type(given).__name__}"):
            write(given)

    assert [USER] == kept.get_all()
    kept.put_messages(iter((ANSWER,)))  # type: ignore[arg-type]  # not a list, and readable
    assert [USER, ANSWER] == kept.get_all()


def test_secrets_are_kept_out_of_the_archive() -> None:
    """`redact` is slidemem's: what was said stays in `get_all`, and is in no archive."""
    kept = filled(redact=lambda text: text.replace("peanuts", "[secret]"))

    shown = "\n".join(texts(kept.get()))
    assert (False, True) == (FACT in shown, "allergic to [secret]" in shown)
    assert FACT in (kept.get_all()[0].content or "")


def test_the_limit_can_be_assigned() -> None:
    """A smaller limit holds at once, a wrong one changes nothing, and what is stored stays."""
    kept = filled()
    before = kept.get()

    with pytest.raises(ValidationError, match=re.escape(POSITIVE)):
        kept.token_limit = 0
    with pytest.raises(ConfigurationError, match="max_tokens"):
        kept.token_limit = 10**15
    assert (LIMIT, before) == (kept.token_limit, kept.get())
    kept.token_limit = 100

    assert (100, 80, True) == (kept.token_limit, len(kept.get_all()), cost(kept.get()) <= 100)


def test_key_and_home_can_be_assigned() -> None:
    """Another key is another conversation, another home has what it holds, and two homes at once change nothing."""
    kept = filled()
    there = SimpleChatStore(store={"mine": [USER]})

    kept.chat_store_key = "mine"
    other = kept.get_all()
    kept.chat_store = there
    with pytest.raises(ConfigurationError, match="not both"):
        kept.store = MemoryStore()

    assert ([], [USER], None) == (other, kept.get_all(), kept.store)


def test_options_of_slidemem_pass_through() -> None:
    """Any of its options, a store of its own, and a listener."""
    events: list[Event] = []
    store = MemoryStore()
    kept = memory(token_limit=200, mode="manual", store=store, on_event=events.append, chat_store_key="mine")
    kept.put_messages(history())

    assert [] == events
    assert ("manual", 1) == (kept.options["mode"], len(events) + (kept.session.consolidate() is not None))
    assert [80] == [
        len(SlideMem(max_tokens=9, counter="approximate", store=store).session(kept.chat_store_key).transcript())
    ]
    assert "consolidated" in {event.kind for event in events}


def test_a_store_by_its_address_keeps_what_was_said(tmp_path: Any) -> None:
    """A second object with the same address and key goes on where the first was, limit changed or not."""
    where = f"sqlite:///{tmp_path / 'chat.db'}"
    first = memory(history(), token_limit=LIMIT, store=where, chat_store_key="meera")
    first.token_limit = LIMIT + 1

    second = memory(token_limit=LIMIT + 1, store=where, chat_store_key="meera")

    assert (first.get(), 80) == (second.get(), len(second.get_all()))
    assert [] == memory(store=where, chat_store_key="somebody else").get_all()


def test_two_memories_share_nothing() -> None:
    """Everyone's key is "chat_history", and everyone's messages are their own."""
    first, second = memory([USER]), memory()

    assert ("chat_history", "chat_history") == (first.chat_store_key, second.chat_store_key)
    assert ([USER], [], []) == (first.get_all(), second.get_all(), second.chat_store.get_keys())


def test_a_memory_is_never_falsy() -> None:
    """run-llama/llama_index 20139: an empty one is there, without a database, and has no length."""
    kept = SlidingChatMemoryBuffer.from_defaults()

    assert (True, False, "SlidingChatMemoryBuffer") == (bool(kept), hasattr(kept, "__len__"), kept.class_name())
    with pytest.raises(ValidationError, match="no attribute"):
        kept.tokenlimit = 3  # type: ignore[attr-defined]  # a slip that says so


# ------------------------------------------------------------------ get


def test_get_is_pure() -> None:
    """The same state gives the same messages, however often it is read, and nothing is stored."""
    kept = filled()
    before = kept.session.export()

    got = [kept.get() for _ in range(3)]
    awaited(kept.aget("hello", initial_token_count=3, more="ignored"))

    assert (got[:1] * 3, before) == (got, kept.session.export())


def test_callers_may_change_what_they_get_and_what_they_gave() -> None:
    """run-llama/llama_index 22345, 22248: stored messages stay as they are, and a caller's list keeps its length."""
    given = history()
    kept = filled(turns=0)
    kept.set(given)
    before = kept.get(), kept.get_all()

    for messages in (kept.get(), kept.get_all(), given):
        messages[-1].blocks.append(TextBlock(text="Current state: x"))
        messages[-1].additional_kwargs["x"] = 1
        messages[0].content = "other"
    fresh = history()
    kept.set(fresh)

    assert before == (kept.get(), kept.get_all())
    assert 80 == len(fresh)


def test_no_message_is_handed_out_twice() -> None:
    """Two reads share no block."""
    first, second = filled().get(), filled().get()
    kept = filled()
    one, two = kept.get(), kept.get()

    assert first == second
    assert set() == {id(block) for message in one for block in message.blocks} & {
        id(block) for message in two for block in message.blocks
    }


@pytest.mark.parametrize("count", [0, 100, 250])
@pytest.mark.parametrize("said", [None, "", "word " * 60, ChatMessage("word " * 60)])
def test_the_budget_holds_with_prefix_and_input(count: int, said: Any) -> None:
    """What is handed out, the prefix and the message about to be sent are together within the limit."""
    got = filled().get(said, initial_token_count=count)

    sent = ChatMessage(said) if isinstance(said, str) else said
    assert LIMIT >= cost(got) + count + (cost([sent]) if sent else 0)
    assert FENCE in (got[0].content or "") or count


def test_an_input_that_is_stored_and_waits_is_not_counted_again() -> None:
    """Agents store the question before they read; the same words said again after an answer are another question."""
    question = "word " * 60
    kept = filled()
    kept.put(ChatMessage(question))
    stored = kept.get()

    assert stored == kept.get(question) == kept.get(ChatMessage(question))
    assert question == kept.get(question)[-1].content
    kept.put(ANSWER)
    assert LIMIT >= cost(kept.get(question)) + 60


def test_an_oversize_input_that_is_stored_is_shown_clamped() -> None:
    """An agent's question of more than half the budget stays visible through its tool rounds, cut with a mark."""
    question = " ".join(f"word{at}" for at in range(LIMIT))
    kept = filled()
    kept.put(ChatMessage(role="user", blocks=[TextBlock(text=question), TextBlock(text="and this")]))

    got = kept.get(f"{question}\nand this")

    assert MessageRole.USER == got[-1].role
    assert ("[…" in (got[-1].content or ""), LIMIT >= cost(got)) == (True, True)


def test_an_input_that_was_joined_to_the_message_before_it_is_stored() -> None:
    """With `alternate=True` two questions in a row are shown as one; the second waits in it."""
    kept = memory([USER, ChatMessage("word " * 60)], token_limit=100, alternate=True)

    assert (kept.get(), 1) == (kept.get("word " * 60), len(kept.get()))


def test_an_input_in_a_memory_without_a_question_is_counted() -> None:
    """Where only answers are stored, or another question waits, the input is about to be sent."""
    kept = memory([ChatMessage(role="assistant", content="hello")], token_limit=50)
    waiting = memory([USER], token_limit=50)

    assert ([], [USER]) == (kept.get("hello"), waiting.get("other"))


def test_a_wrong_input_says_so() -> None:
    """A number, say, is neither text nor a message."""
    with pytest.raises(InvalidMessage, match="expected a ChatMessage, got int"):
        memory().get(5)  # type: ignore[arg-type]  # a wrong call


@pytest.mark.parametrize("count", [LIMIT - 3, LIMIT, LIMIT + 1, 10 * LIMIT])
def test_with_on_overflow_the_last_turn_is_left(count: int) -> None:
    """Beside a prefix that leaves no room stand the system prompt and the newest turn, its calls answered."""
    system = ChatMessage(role="system", content="You are kind.")
    call = ToolCallBlock(tool_call_id="1", tool_name="weather", tool_kwargs={})
    last = [ChatMessage("What is the weather in Pune on the train?"), ChatMessage(role="assistant", blocks=[call])]
    kept = filled(turns=0, on_overflow="last_turn")
    kept.put_messages([system, *history(), *last])

    got, awaited_too = kept.get(initial_token_count=count), awaited(kept.aget(initial_token_count=count))

    assert ([system, *last], got) == (got[:3], awaited_too)
    assert [] == memory(on_overflow="last_turn", token_limit=5).get(initial_token_count=6)


def test_the_newest_user_message_is_always_there() -> None:
    """run-llama/llama_index 9714, 20729: whatever was said before, and however large the answer after it."""
    kept = memory(token_limit=60)
    for at in range(20):
        kept.put(ChatMessage(f"question {at} " + "word " * (at * 2)))
        assert f"question {at} " in "\n".join(texts(kept.get()))
        kept.put(ChatMessage(role="assistant", content="word " * (at * 7)))
        assert f"question {at} " in "\n".join(texts(kept.get()))
        assert (MessageRole.USER, True) == (kept.get()[0].role, cost(kept.get()) <= 60)


def test_a_system_message_is_pinned_and_alone() -> None:
    """run-llama/llama_index 23144, 9371, 19509: the first stays first, and nothing of ours is a second."""
    system = ChatMessage(role="system", content="You are kind.")
    kept = filled(turns=0)
    kept.put_messages([system, *history()])
    while kept.session.consolidate():
        pass

    got = kept.get()

    assert (system, True) == (got[0], FENCE in (got[1].content or ""))
    assert ["user"] == [message.role.value for message in got[1:2]]
    assert 1 == sum(message.role == "system" for message in got)


BLOCKS: list[tuple[Any, int]] = [
    (TextBlock(text="two words"), 2),
    (ToolCallBlock(tool_name="weather", tool_kwargs={"city": "word " * 500}), 503),
    (ThinkingBlock(content="word " * 500, additional_information={"signature": "x y"}), 500),
    (CitableBlock(title="title", source="source", content=[TextBlock(text="word " * 500)]), 502),
    (ImageBlock(image=b"\xff" * 30_000), 1_000),
    (DocumentBlock(data=b"\xff" * 30_000), 2_500),
]


@pytest.mark.parametrize("block, tokens", BLOCKS)
def test_every_block_is_counted(block: Any, tokens: int) -> None:
    """run-llama/llama_index 21950, 21529: calls with arguments, thinking and sources by their text, media flat."""
    assert tokens + 1 == cost([ChatMessage(role="assistant", blocks=[block, TextBlock(text="said")])])


def test_calls_beside_the_content_are_counted() -> None:
    """run-llama/llama_index 10493: `additional_kwargs["tool_calls"]` cost what their arguments do."""
    call = {
        "id": "1",
        "type": "function",
        "function": {"name": "weather", "arguments": json.dumps({"city": "word " * 500})},
    }

    assert 503 == cost([ChatMessage(role="assistant", additional_kwargs={"tool_calls": [call]})])


def test_the_tokenizer_is_called_once_a_message() -> None:
    """run-llama/llama_index 12264: a thousand messages, a limit of 16,000, and reads that count nothing again."""
    calls: list[str] = []

    def counting(text: str) -> list[str]:
        calls.append(text)
        return text.split()

    kept = SlidingChatMemoryBuffer.from_defaults(token_limit=16_000, tokenizer_fn=counting)
    kept.put_messages([message for at in range(500) for message in turn(at)])
    stored = len(calls)
    for _ in range(10):
        kept.get()

    assert (1000, 1000) == (stored, len(calls))


# ------------------------------------------------------------------ put, set, reset


def test_an_empty_list_is_no_operation() -> None:
    """run-llama/llama_index 23184, 23185: sync and async."""
    kept = memory([USER])

    kept.put_messages([])
    awaited(kept.aput_messages([]))

    assert [USER] == kept.get_all()


def test_put_messages_stores_all_or_none() -> None:
    """One that cannot be read stops the whole batch, and says which it was."""
    kept = memory([USER])

    with pytest.raises(InvalidMessage, match="message 1: expected a ChatMessage, got dict"):
        kept.put_messages([USER, {"role": "user", "content": "x"}])  # type: ignore[list-item]  # a wrong call

    assert [USER] == kept.get_all()


def test_set_with_more_of_the_same_keeps_the_archive() -> None:
    """The whole conversation, the end of it, or what `get` gave, with a new message: the archive stays."""
    for given in (lambda kept: kept.get_all(), lambda kept: kept.get_all()[-6:], lambda kept: kept.get()):
        kept = filled()
        archive = kept.session.archive()
        kept.set([*given(kept), ChatMessage("new")])

        assert (archive, 81, "new") == (kept.session.archive(), len(kept.get_all()), kept.get()[-1].content)


def test_set_of_messages_that_went_through_json_keeps_the_archive() -> None:
    """A client that keeps what `get` gave as JSON brings back no mark; the block of ours is known all the same."""
    kept = filled()
    archive = kept.session.archive()
    client = [ChatMessage.model_validate(json.loads(message.model_dump_json())) for message in kept.get()]

    kept.set(client)

    assert (archive, texts(history())) == (kept.session.archive(), texts(kept.get_all()))


def test_set_of_another_conversation_begins_anew() -> None:
    """A list that shares nothing takes its place, an empty one ends it, and nothing of the old archive is shown."""
    kept = filled()

    kept.set([USER, ANSWER])
    assert ([USER, ANSWER], [USER, ANSWER], ()) == (kept.get(), kept.get_all(), kept.session.archive())
    kept.set([])
    assert [] == kept.get_all()


def test_set_with_a_system_message_that_is_new_keeps_the_archive() -> None:
    """It is shown first and is in `get_all`, whether the memory was empty, or held the rest of the list before."""
    system, other = (ChatMessage(role="system", content=f"You are {how}.") for how in ("kind", "brief"))
    kept, empty = filled(), memory()
    archived = kept.session.archive()[0].text

    empty.set([system, USER, ANSWER])
    kept.set([system, *history()])
    awaited(kept.aset([other, *history(), USER]))

    assert [system, USER, ANSWER] == empty.get_all() == empty.get()
    assert ([other, *history(), USER], archived) == (kept.get_all(), kept.session.archive()[0].text)
    assert (other, True) == (kept.get()[0], FENCE in (kept.get()[1].content or ""))


def test_set_of_a_system_message_alone_begins_anew() -> None:
    """A client that keeps nothing but its prompt starts another conversation."""
    system = ChatMessage(role="system", content="You are kind.")
    for stored in ([], [system]):
        kept = filled(turns=0)
        kept.put_messages([*stored, *history()])

        kept.set([system])

        assert ([system], [system], ()) == (kept.get(), kept.get_all(), kept.session.archive())


def test_a_history_takes_the_place_of_what_a_store_holds() -> None:
    """Given with a store, even an empty list does; left out, the store's messages are picked up."""
    store = SimpleChatStore(store={"chat_history": [USER, ANSWER]})

    assert [USER, ANSWER] == memory(chat_store=store).get_all()
    assert [ChatMessage("other")] == memory([ChatMessage("other")], chat_store=store).get_all()
    assert [] == memory([], chat_store=store).get_all()
    assert [] == store.get_messages("chat_history")


def test_reset_deletes_archive_and_pins_too() -> None:
    """Sync and async."""
    for sync in (True, False):
        kept = filled()
        kept.session.pin("allergic to nuts")
        if sync:
            kept.reset()
        else:
            awaited(kept.areset())

        assert ([], [], (), ()) == (kept.get(), kept.get_all(), kept.session.archive(), kept.session.pins())


def test_every_async_twin_is_native() -> None:
    """The same calls, awaited, come to the same, and none of them leaves the thread."""
    sync, twin = memory(token_limit=100), memory(token_limit=100)
    for at in range(10):
        sync.put_messages(turn(at))
    sync.put(USER)
    sync.set([*sync.get_all(), ANSWER])

    async def same(monkey: pytest.MonkeyPatch) -> None:
        monkey.setattr("asyncio.to_thread", None)
        for at in range(10):
            await twin.aput_messages(turn(at))
        await twin.aput(USER)
        await twin.aset([*await twin.aget_all(), ANSWER])
        assert (sync.get("x"), sync.get_all()) == (await twin.aget("x"), await twin.aget_all())
        assert sync.stats().messages == (await twin.astats()).messages
        await twin.areset()

    with pytest.MonkeyPatch.context() as monkey:
        awaited(same(monkey))

    assert [] == twin.get_all()


def test_the_session_is_the_way_to_everything_else() -> None:
    """Pins, archive and figures are slidemem's own object."""
    kept = filled()
    kept.session.pin("allergic to cashews")

    assert isinstance(kept.session, ConversationMemory)
    assert "allergic to cashews" in (kept.get()[0].content or "")


# ------------------------------------------------------------------ summarizers


def test_without_a_summarizer_the_conversation_speaks_for_itself() -> None:
    """Sentences of it are kept; a consolidator of slidemem's and a plain function do as well."""
    asked: list[Any] = []

    def summarize(messages: list[dict[str, Any]]) -> str:
        asked.append(messages)
        return f"Meera is {FACT}; seats up to 39A on the train to Pune."

    assert FACT in (filled().get()[0].content or "")
    assert FACT in (filled(summarizer=ExtractiveConsolidator()).get()[0].content or "")
    assert FACT in (filled(summarizer=summarize).get()[0].content or "")
    assert "user" == asked[0][0]["role"]


def test_consolidations_are_counted() -> None:
    """run-llama/llama_index 14958: how often turns left the window can be seen."""
    kept = memory(token_limit=LIMIT)
    before = kept.stats().consolidations
    kept.put_messages(history())
    kept.session.consolidate(force=True)

    assert (0, True) == (before, kept.stats().consolidations > 0)


def test_a_summarizer_that_has_to_be_awaited_names_the_method() -> None:
    """A sync write says which twin to use, before anything is stored; the twin works."""

    async def summarize(messages: list[dict[str, Any]]) -> str:
        return "Meera is going to Pune, PNR-0000 and following."

    kept = memory(token_limit=LIMIT, summarizer=summarize)
    for write, twin in (
        (lambda: kept.put(USER), "aput"),
        (lambda: kept.put_messages([USER]), "aput_messages"),
        (lambda: kept.set([USER]), "aset"),
    ):
        with pytest.raises(AsyncOnly, match=f"await {twin}\\(\\)"):
            write()
    assert [] == kept.get_all()
    awaited(kept.aput_messages(history()))

    assert 80 == len(kept.get_all())


def test_the_default_tokenizer_is_llama_indexs() -> None:
    """None asks for it, and what it counts is what ChatMemoryBuffer counts of text."""
    kept = SlidingChatMemoryBuffer(token_limit=10, tokenizer_fn=None)

    assert len(get_tokenizer()("one two three")) == len(kept.tokenizer_fn("one two three"))


def test_a_message_that_was_handed_out_says_what_it_is() -> None:
    """Each is a RememberedMessage, the first of an archived conversation with its mark."""
    got = filled().get()

    assert {True} == {isinstance(message, RememberedMessage) for message in got}
    assert ["head", None] == [message.mark and message.mark.kinds[0] for message in got[:2]]  # type: ignore[attr-defined]


def test_a_notebook_shows_the_session() -> None:
    """A memory is shown as its session is: the budget, the rows, and nothing is changed by it."""
    memory = SlidingChatMemoryBuffer.from_defaults(token_limit=500)
    memory.put(ChatMessage(role="user", content="Is <b>this</b> text?"))
    before = memory.to_dict()

    page = memory._repr_html_()

    assert "Session chat_history" in page
    assert "Is &lt;b&gt;this&lt;/b&gt; text?" in page
    assert before == memory.to_dict()
