# a row of a table is one line; no token here is a password

from __future__ import annotations

import asyncio
import importlib
import logging
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.language_models import BaseLanguageModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.utils import count_tokens_approximately
from pydantic import Field

from langchain_slidemem import ChatModelConsolidator, SlidingChatMessageHistory
from langchain_slidemem.configured import default_store, memory_of
from langchain_slidemem.counting import counter_of, counter_of_model
from slidemem import (
    ConfigurationError,
    ExtractiveConsolidator,
    InvalidMessage,
    MissingExtra,
    SlideMem,
    approximate_counter,
)


class Counted(FakeListChatModel):
    """A model with a window and a counter of its own."""

    profile: Any = Field(default_factory=lambda: {"max_input_tokens": 1000})

    def get_num_tokens_from_messages(self, messages: list[BaseMessage], tools: Any = None) -> int:
        """Four tokens a message, and its words."""
        return sum(4 + len(message.text.split()) for message in messages)


def history(session: str, **given: Any) -> SlidingChatMessageHistory:
    """A history of 400 tokens, in the process-wide store."""
    return SlidingChatMessageHistory(session, **{"max_tokens": 400, "token_counter": "approximate", **given})


def talk(chat: SlidingChatMessageHistory, turns: int) -> list[BaseMessage]:
    """Add turns, and return them."""
    said: list[BaseMessage] = []
    for n in range(turns):
        said += [HumanMessage(f"Please book seat {n}A to Pune."), AIMessage(f"Booked, reference PNR-{n:04}.")]
    chat.add_messages(said)
    return said


# ------------------------------------------------------------------ what LangChain calls


def test_what_is_added_is_read(fresh: str) -> None:
    """Sync members store and return messages, each call a new list."""
    chat = history(fresh)

    chat.add_user_message("hi")
    chat.add_ai_message(AIMessage("hello", id="a"))
    chat.add_message(HumanMessage("again"))
    chat.messages.clear()

    assert [HumanMessage("hi"), AIMessage("hello", id="a"), HumanMessage("again")] == chat.messages
    assert "Human: hi\nAI: hello\nHuman: again" == str(chat)
    assert (f"SlidingChatMessageHistory({fresh!r})", fresh) == (repr(chat), chat.session_id)


def test_messages_are_of_langchains_classes_when_given_whole(fresh: str) -> None:
    """The convenience members take messages as well as text."""
    chat = history(fresh)

    chat.add_user_message(HumanMessage("hi", name="Asha"))
    chat.add_ai_message("hello")

    assert [HumanMessage("hi", name="Asha"), AIMessage("hello")] == chat.messages


def test_the_async_members_are_native(fresh: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No async member goes through LangChain's executor."""

    async def refused(*given: Any, **more: Any) -> None:
        raise AssertionError("an executor was used")

    monkeypatch.setattr("langchain_core.chat_history.run_in_executor", refused)
    monkeypatch.setattr("asyncio.to_thread", refused)

    async def turn() -> list[Any]:
        chat = history(fresh)
        await chat.aadd_messages([HumanMessage("hi"), AIMessage("hello")])
        read = [await chat.aget_messages(), await chat.aget_transcript(), (await chat.acontext("and?")).messages]
        await chat.aclear()
        return [*read, await chat.aget_messages()]

    both: list[BaseMessage] = [HumanMessage("hi"), AIMessage("hello")]
    assert [both, both, both, []] == asyncio.run(turn())


def test_two_objects_with_one_id_share_it(fresh: str) -> None:
    """An id is a conversation, whatever the configuration, and each read is up to date."""
    one, other, smaller = history(fresh), history(fresh), history(fresh, max_tokens=300)

    assert [] == other.messages
    one.add_user_message("hi")
    assert [HumanMessage("hi")] == other.messages
    other.add_ai_message("hello")

    assert [HumanMessage("hi"), AIMessage("hello")] == one.messages == smaller.messages
    one.clear()
    assert ([], []) == (other.messages, other.transcript)


def test_messages_stay_within_the_budget_and_the_transcript_keeps_all(fresh: str) -> None:
    """What a model sees is bounded, what a user interface shows is everything."""
    chat = history(fresh)

    said = talk(chat, 40)

    assert said == chat.transcript
    assert said[-2:] == chat.messages[-2:]
    assert chat.messages[0].text.startswith("<earlier-conversation>")
    assert 400 >= chat.context().tokens == sum(chat.context().costs)


def test_a_context_tells_zones_and_receipt(fresh: str) -> None:
    """The context counts what is pending and the system prompt, and says what it left out."""
    chat = history(fresh, metadata={"timezone": "IST"})
    talk(chat, 40)

    context = chat.context(HumanMessage("and a snack?"), system="Be brief.", reserve=50)

    assert ("system", "Be brief.") == (context.messages[0].type, context.messages[0].text)
    assert (350, True) == (context.receipt.usable, context.receipt.covered > 0)
    assert min(context.zones.system, context.zones.pinned, context.zones.archive, context.zones.window) > 0
    assert context.tokens + chat.session.count({"role": "user", "content": "and a snack?"}) <= 350


def test_a_chunk_is_stored_whole(fresh: str) -> None:
    """What a stream left behind is an AIMessage for the next reader."""
    chat = history(fresh)

    chat.add_messages([HumanMessage("hi"), AIMessageChunk("hel") + AIMessageChunk("lo")])

    assert [HumanMessage, AIMessage] == [type(message) for message in chat.transcript]


def test_a_message_that_cannot_be_stored_stores_nothing(fresh: str) -> None:
    """Messages are added all or none."""
    chat = history(fresh)

    with pytest.raises(InvalidMessage):
        chat.add_messages([HumanMessage("hi"), RemoveMessage(id="x")])

    assert [] == chat.transcript


@pytest.mark.parametrize(
    "given, said",
    [
        ("hi", "message 0: add_messages takes a list of messages, got str"),
        (HumanMessage("hi"), "message 0: add_messages takes a list of messages, got HumanMessage"),
        ([HumanMessage("hi"), {"role": "user"}], "message 1: expected one of LangChain's messages, got dict"),
    ],
)
def test_what_is_no_list_of_messages_is_named(fresh: str, given: Any, said: str) -> None:
    """The error says what was given, and at which place."""
    with pytest.raises(InvalidMessage) as raised:
        history(fresh).add_messages(given)

    assert str(raised.value).startswith(said)


def test_airas_655_the_list_is_never_empty(fresh: str) -> None:
    """airas#655: one message larger than the budget is shown clamped, where trimming gives an empty list."""
    chat = history(fresh)

    chat.add_user_message("word " * 5000)

    assert 1 == len(chat.messages)
    assert 400 >= chat.context().tokens
    assert "characters left out" in chat.messages[0].text


def test_langchain_33245_five_messages_begin_with_the_users(fresh: str) -> None:
    """langchain#33245: five messages kept by count begin with no tool message, and no pair is torn."""
    chat = history(fresh, max_tokens=5, token_counter=len, recall_share=0.0)
    for n in range(6):
        call = {"name": "f", "args": {}, "id": f"c{n}"}
        tool: dict[str, Any] = {"role": "tool", "tool_call_id": f"c{n}", "content": "1"}
        chat.add_messages([HumanMessage(f"q{n}"), AIMessage("", tool_calls=[call])])
        chat.session.append(tool)
        chat.add_ai_message(f"a{n}")
        kinds = [message.type for message in chat.messages]
        assert "human" == kinds[0]
        assert kinds.count("tool") == sum(len(getattr(message, "tool_calls", ())) for message in chat.messages)
        assert 5 >= len(kinds)


def test_langchain_33856_a_system_message_in_the_list_stays_first(fresh: str) -> None:
    """langchain#33856: the system message of a list is kept, in front, however long the conversation gets."""
    chat = history(fresh)
    chat.add_messages([SystemMessage("Be brief."), HumanMessage("hi"), AIMessage("hello")])

    talk(chat, 40)

    assert SystemMessage("Be brief.") == chat.messages[0]
    assert ["system", "human"] == [message.type for message in chat.messages][:2]


def test_issue_3922_a_lower_limit_is_respected_on_read(fresh: str) -> None:
    """langchain#3922: a history read with a lower limit than it was written with is within the lower one."""
    talk(history(fresh, max_tokens=2000), 40)

    assert 150 >= history(fresh, max_tokens=150).context().tokens
    assert 20 > len(history(fresh, max_tokens=150).messages)


def test_flowise_2297_the_summary_is_no_system_and_no_assistant_message(fresh: str) -> None:
    """Flowise#2297: what is remembered is quoted to the model by the user's side, never as its instructions."""
    chat = history(fresh)
    talk(chat, 40)

    heads = [message.type for message in chat.messages if "earlier-conversation" in message.text]

    assert ["human"] == heads


def test_langchain_17888_a_long_summary_does_not_break_the_limit(fresh: str) -> None:
    """langchain#17888: a summary of 4,000 characters with a limit of 60 tokens costs no token too many."""
    chat = history(fresh, max_tokens=60, summarizer=lambda messages: "blah " * 800, token_counter=count_words)

    talk(chat, 30)

    assert 60 >= chat.context().tokens


def count_words(message: BaseMessage) -> int:
    """Words of a message."""
    return len(message.text.split())


def test_langmem_126_parallel_results_are_never_cut_apart(fresh: str) -> None:
    """langmem#126: whatever the budget, a call and all its results are shown together or not at all."""
    calls = [{"name": "f", "args": {"n": n}, "id": f"c{n}"} for n in range(4)]
    said: list[BaseMessage] = []
    for turn in range(5):
        said += [
            HumanMessage(f"question {turn} " * 5),
            AIMessage("", tool_calls=[{**c, "id": f"{c['id']}{turn}"} for c in calls]),
        ]
        said += [ToolMessage("result " * 10, tool_call_id=f"c{n}{turn}") for n in range(4)]
        said += [AIMessage("done")]
    for budget in range(150, 700, 50):
        chat = history(f"{fresh}-{budget}", max_tokens=budget)
        chat.add_messages(said)
        shown = chat.messages
        called = [call["id"] for message in shown for call in getattr(message, "tool_calls", ())]
        assert called == [message.tool_call_id for message in shown if message.type == "tool"]


def test_langchain_38228_audio_and_files_have_a_price_by_kind(fresh: str) -> None:
    """langchain#38228: sound and files in base64 cost a flat price, not a token for every fourth character."""
    chat = history(fresh, max_tokens=8000)
    data = "QUJD" * 100_000

    chat.add_messages(
        [
            HumanMessage(
                [
                    {"type": "text", "text": "what is this?"},
                    {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}},
                    {"type": "file", "base64": data, "mime_type": "application/pdf"},
                ]
            )
        ]
    )

    assert [HumanMessage, 3] == [type(chat.messages[0]), len(chat.messages[0].content)]
    assert 5_000 > chat.context().tokens


# ------------------------------------------------------------------ configuration


def test_a_memory_of_ones_own_is_used(fresh: str) -> None:
    """A configured SlideMem keeps its sessions where it does, apart from the process-wide store."""
    mem = SlideMem(max_tokens=300, counter="approximate")

    SlidingChatMessageHistory(fresh, memory=mem).add_user_message("hi")

    assert (fresh,) == mem.sessions()
    assert [] == history(fresh).messages


def test_options_of_the_core_are_passed_on(fresh: str) -> None:
    """A counter of the core's, a reserve and the rest mean what they mean there."""
    chat = SlidingChatMessageHistory(fresh, max_tokens=300, counter="approximate", reserve_tokens=100)

    chat.add_user_message("hi")

    assert 200 == chat.context().receipt.usable


@pytest.mark.parametrize(
    "given, said",
    [
        ({"max_tokens": None}, "max_tokens is missing: pass it, or llm="),
        ({"max_tokens": None, "llm": FakeListChatModel(responses=[""])}, "FakeListChatModel does not say"),
        ({"memory": SlideMem(max_tokens=10, counter="approximate")}, "leave out max_tokens, token_counter"),
        ({"memory": "mem", "max_tokens": None, "token_counter": None}, "memory must be a SlideMem, got 'mem'"),
        ({"token_counter": 7}, "token_counter must be a function"),
        ({"summarizer": 7}, "summarizer must be a chat model"),
        ({"summarizer": ExtractiveConsolidator}, "summarizer must be a chat model"),
        ({"compact_att": 0.5}, "compact_att"),
        ({"counter": "approximate"}, "token_counter and counter say the same: pass one of them"),
        ({"summarizer": len, "consolidator": None}, "summarizer and consolidator say the same"),
        ({"max_tokens": None, "max_token": 400}, "there is no option max_token, and max_tokens is missing"),
        ({"max_tokens": None, "mode": "manual"}, "max_tokens is missing: pass it, or llm="),
    ],
)
def test_a_wrong_configuration_raises_when_the_object_is_made(given: dict[str, Any], said: str) -> None:
    """Each mistake is named, with what to do."""
    with pytest.raises(ConfigurationError) as raised:
        history("s", **given)

    assert said in str(raised.value)


def test_a_model_sizes_and_counts(fresh: str) -> None:
    """`llm=` alone gives three quarters of its window, in its own tokens."""
    chat = SlidingChatMessageHistory(fresh, llm=Counted(responses=[""]))

    chat.add_user_message("one two three")

    assert (750, 7) == (chat.context().receipt.usable, chat.context().tokens)


@pytest.mark.usefixtures("vocabulary")
def test_a_model_without_a_counter_of_its_own_does_not_count(fresh: str) -> None:
    """LangChain's GPT-2 stand-in needs a package that nobody has, so the default counter counts."""
    chat = SlidingChatMessageHistory(fresh, llm=FakeListChatModel(responses=[""]), max_tokens=500)

    chat.add_user_message("hi there")

    assert chat.session.count({"role": "user", "content": "hi there"}) == chat.context().tokens
    assert counter_of_model(FakeListChatModel(responses=[""])) is None
    assert counter_of_model(FakeListChatModel(responses=[""], custom_get_token_ids=list)) is not None
    assert counter_of_model(Counted(responses=[""]).bind(stop=["x"])) is not None


def by_message(message: BaseMessage) -> int:
    """Says what it takes, in a module whose annotations are texts."""
    return len(message.text)


def by_list(messages: list[BaseMessage]) -> int:
    """Counts a list."""
    return sum(len(message.text) for message in messages)


class Callable7:
    """An object that counts."""

    def __call__(self, message: BaseMessage) -> int:
        """Seven, if it is a message."""
        return 7 if isinstance(message, BaseMessage) else -1


def untyped(said):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201  # as users write them
    """Counts one message and does not say so."""
    return len(said.content)


def unknown(said: Nowhere) -> int:  # type: ignore[name-defined]  # noqa: F821  # what only type checkers can import
    """Counts a list, annotated with what cannot be found."""
    return 9 * len(said)


def fails(messages: list[BaseMessage]) -> int:
    """Fails of its own."""
    raise TypeError("mine")


@pytest.mark.parametrize(
    "counter, tokens",
    [
        (by_message, 5),
        (by_list, 5),
        (len, 1),
        (lambda messages: sum(3 for _ in messages), 3),
        (lambda message: len(message.content), 5),
        (untyped, 5),
        (unknown, 9),
        (Callable7(), 7),
        (count_tokens_approximately, 6),
        (Counted(responses=[""]), 5),
    ],
)
def test_whatever_trim_messages_counts_with_counts(counter: Any, tokens: int) -> None:
    """Functions of a list or of one message, annotated or not, objects and models count one message."""
    mem = SlideMem(max_tokens=1000, counter=counter_of(counter))

    assert [tokens, tokens] == [mem.count({"role": "user", "content": "hello"}) for _ in range(2)]


def test_what_the_core_counts_with_stays_as_it_is() -> None:
    """Names, the core's counters and functions of a text are the core's own business."""

    def of_text(text: str) -> int:
        return len(text)

    own = approximate_counter()

    assert [None, "gpt-4o", own, of_text] == [counter_of(given) for given in (None, "gpt-4o", own, of_text)]


def test_a_counter_is_called_once_for_each_message(fresh: str) -> None:
    """Reading again and again counts nothing again."""
    calls: list[int] = []

    def counting(messages: list[BaseMessage]) -> int:
        calls.append(len(messages))
        return sum(len(message.text) for message in messages)

    chat = history(fresh, max_tokens=10_000, token_counter=counting)
    talk(chat, 10)

    _ = [chat.messages for _ in range(5)]

    assert [1] * 20 == calls


def test_a_counter_that_fails_costs_an_estimate(fresh: str) -> None:
    """A failing counter never fails a turn; one that is known to take a list is not tried with a message."""
    counter = counter_of(fails)
    events: list[Any] = []
    chat = SlidingChatMessageHistory(fresh, memory=SlideMem(max_tokens=400, counter=counter, on_event=events.append))

    chat.add_user_message("hi")

    assert (["counter_failed"], [HumanMessage("hi")]) == ([event.kind for event in events], chat.messages)


def test_two_counters_of_one_name_are_told_apart() -> None:
    """Counts that are stored under one counter's name are not taken for another's."""
    counters: list[Callable[[Any], int]] = [lambda messages: 5 * len(messages), lambda messages: 7 * len(messages)]

    one, other = (counter_of(counter).fingerprint for counter in counters)

    assert one != other
    assert counter_of(counters[0]).fingerprint == one


def test_the_same_configuration_is_one_memory() -> None:
    """A factory that makes an object for each run makes one memory; another function is another configuration."""

    def memory(**given: Any) -> SlideMem:
        full = {"max_tokens": 400, "memory": None, "llm": None, "summarizer": None, "token_counter": "approximate"}
        options = {key: value for key, value in given.items() if key not in full}
        return memory_of(**{**full, **{k: v for k, v in given.items() if k in full}, "options": options})

    first = memory()

    assert first is memory()
    assert first.store is memory(max_tokens=500).store is default_store()
    assert first is not memory(alternate=True)
    assert first is not memory(summarizer=lambda messages: "")
    assert default_store() is not memory(store="sqlite://").store
    for budget in range(1000, 1100):
        memory(max_tokens=budget)
    assert first is not memory()


def test_the_default_store_says_once_that_it_ends_with_the_process(caplog: pytest.LogCaptureFixture) -> None:
    """One sentence, once, names the way to keep sessions."""
    kept = default_store()
    default_store.cache_clear()
    with caplog.at_level(logging.WARNING):
        default_store()
        default_store()
    default_store.cache_clear()

    assert 1 == len(caplog.records)
    assert 'store="sqlite:///chat.db"' in caplog.text
    assert kept is not None


@pytest.mark.parametrize("summarizer", ["function", "model", "as the core names it"])
def test_a_summarizer_writes_the_archive(fresh: str, summarizer: str) -> None:
    """A function of LangChain messages or a model summarises what leaves the window."""
    seen: list[type] = []

    def summarize(messages: list[BaseMessage]) -> str:
        seen.extend(type(message) for message in messages)
        return "Seats 0A and following are booked, PNR-0000."

    model = FakeListChatModel(responses=["Seats 0A and following are booked, PNR-0000."])
    option = "consolidator" if summarizer == "as the core names it" else "summarizer"
    chat = history(fresh, **{option: summarize if summarizer == "function" else model})

    talk(chat, 20)

    assert {"summarizer"} == {segment.method for segment in chat.session.archive()}
    assert (summarizer == "function") == ({HumanMessage, AIMessage} == set(seen))


def test_a_consolidator_is_taken_as_it_is(fresh: str) -> None:
    """An object that the core knows summarises as it does there."""
    chat = history(fresh, summarizer=ExtractiveConsolidator())

    talk(chat, 20)

    assert {"extractive"} == {segment.method for segment in chat.session.archive()}


# ------------------------------------------------------------------ what importing does


def test_importing_says_nothing_of_deprecation() -> None:
    """No warning of LangChain's is raised by importing the adapter, or by making a history."""
    code = (
        "import langchain_slidemem as l;"
        "l.SlidingChatMessageHistory('s', max_tokens=100, token_counter='approximate').messages"
    )

    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)  # noqa: S603  # our own code

    assert (0, True) == (done.returncode, "told once" in done.stderr)


def test_without_langchain_core_the_extra_is_named() -> None:
    """Importing the adapter without its framework says what to install."""
    code = "import sys; sys.modules['langchain_core'] = None; import langchain_slidemem"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603  # our own code

    assert (
        "MissingExtra: langchain_slidemem needs the extra 'langchain': pip install 'slidemem[langchain]'"
        in done.stderr
    )


@pytest.mark.parametrize(
    "name", ["langchain_core", "langchain_core.chat_history", "langchain_core.runnables.history"]
)
def test_modules_that_may_be_absent_are_looked_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the framework an import is refused in one sentence; without its histories ours is one by itself."""
    for known in [known for known in sys.modules if known.startswith("langchain_slidemem")]:
        monkeypatch.delitem(sys.modules, known)
    monkeypatch.setitem(sys.modules, name, None)
    if name == "langchain_core":
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        with pytest.raises(MissingExtra, match="langchain_slidemem needs the extra 'langchain'"):
            importlib.import_module("langchain_slidemem")
        return

    alone = importlib.import_module("langchain_slidemem").SlidingChatMessageHistory

    assert (name == "langchain_core.chat_history") == (object is alone.__mro__[1])
    assert (name == "langchain_core.runnables.history") == (
        not importlib.import_module("langchain_slidemem.runs")._CODES
    )


def test_what_is_exported_is_complete_and_sorted() -> None:
    """`__all__` names everything public, in order."""
    import langchain_slidemem  # noqa: PLC0415  # the module itself

    names = langchain_slidemem.__all__

    assert sorted(names) == names
    assert ChatModelConsolidator is langchain_slidemem.ChatModelConsolidator
    assert set(names) == {
        n
        for n, v in vars(langchain_slidemem).items()
        if getattr(v, "__module__", "").startswith("langchain_slidemem.")
    }
    assert issubclass(Counted, BaseLanguageModel)


def test_a_notebook_shows_the_session() -> None:
    """A history is shown as its session is: the budget, the rows, and nothing is changed by it."""
    history = SlidingChatMessageHistory("shown", max_tokens=500, token_counter=len, memory=None)
    history.add_user_message("Is <b>this</b> text?")
    before = history.session.export()

    page = history._repr_html_()

    assert "Session shown" in page
    assert "Is &lt;b&gt;this&lt;/b&gt; text?" in page
    assert before == history.session.export()
    history.clear()
