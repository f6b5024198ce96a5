"""The two objects a user holds: what they store, refuse, tell and forget, sync and async."""

from __future__ import annotations

import asyncio
import json
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

import slidemem
from slidemem import (
    AsyncOnly,
    ConfigurationError,
    Event,
    ExtractiveConsolidator,
    InvalidMessage,
    Message,
    OversizeMessage,
    PinBudgetError,
    SlideMem,
    SlidememError,
    SQLiteStore,
    StoreError,
    SummaryRequest,
    to_openai,
)
from slidemem.driver import drive
from slidemem.session import AllFigures
from slidemem.stores.memory import MemoryStore
from slidemem.tokens import resolve_counter


def words(text: str) -> int:
    """Words of a text."""
    return len(text.split())


def turn(at: int, count: int = 10) -> list[dict[str, Any]]:
    """A user message and an answer with a name and a number."""
    filler = " ".join(["word"] * (count // 2 - 2))
    return [{"role": role, "content": f"{filler} Pune {at}"} for role in ("user", "assistant")]


def memory(max_tokens: int = 200, **options: Any) -> SlideMem:
    """A memory that counts words."""
    return SlideMem(max_tokens=max_tokens, **{"counter": words, "recall_share": 0, "archive_share": 0.4, **options})


def test_every_public_name_is_listed_and_sorted() -> None:
    """What `slidemem` exports is what it says it does, in order."""
    assert sorted(slidemem.__all__) == slidemem.__all__
    assert [] == [name for name in slidemem.__all__ if not hasattr(slidemem, name)]


def test_append_takes_one_message_or_several() -> None:
    """A dict, a Message, a list of both, and none at all."""
    chat = memory().session("s")

    chat.append({"role": "user", "content": "a"})
    chat.append(Message("assistant", (slidemem.Part("text", "b"),)))
    chat.append([{"role": "user", "content": "c"}, Message("assistant", (slidemem.Part("text", "d"),))])
    chat.append([])

    assert ["a", "b", "c", "d"] == [message.text for message in chat.transcript()]


def test_a_session_is_found_again_by_its_id() -> None:
    """Two objects with one id are one conversation; another id is another."""
    mem = memory()
    mem.session("a").append(turn(1))

    assert (2, 0) == (len(mem.session("a").transcript()), len(mem.session("b").transcript()))


@pytest.mark.parametrize(
    "session_id", ['it\'s "quoted"', "../../etc/passwd", "line\nbreak\x00", "x" * 10_000, "\ud83d", "日本", " "]
)
def test_any_text_is_a_session_id(session_id: str) -> None:
    """Quotes, slashes, newlines, NUL, surrogates and ten thousand characters are ids like any other."""
    mem = memory()
    chat = mem.session(session_id)

    chat.append(turn(1))

    assert (2, 0) == (len(mem.session(session_id).transcript()), len(mem.session("other").transcript()))
    assert len(repr(chat)) < 120


@pytest.mark.parametrize("session_id", ["", None, 7, b"x"])
def test_no_text_is_no_session_id(session_id: Any) -> None:
    """An empty id, or one that is no text, is refused."""
    with pytest.raises(ConfigurationError, match="session id must be text"):
        memory().session(session_id)


@pytest.mark.parametrize(
    "options, complaint",
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": -5}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_tokens": "4000"}, "max_tokens"),
        ({"max_tokens": 10.5}, "max_tokens"),
        ({"reserve_tokens": -1}, "reserve_tokens"),
        ({"reserve_tokens": 200}, "leaves nothing"),
        ({"archive_share": 1.5}, "archive_share"),
        ({"archive_share": True}, "archive_share"),
        ({"archive_share": 0.6, "recall_share": 0.5}, "leave nothing"),
        ({"compact_to": 0.9, "compact_at": 0.5}, "compact_to"),
        ({"compact_to": 0.0}, "compact_to"),
        ({"keep_turns": 0}, "keep_turns"),
        ({"window_turns": 3, "batch_turns": 5}, "batch_turns"),
        ({"batch_turns": 5}, "batch_turns"),
        ({"oversize": "drop"}, "oversize"),
        ({"mode": "later"}, "mode"),
        ({"max_token": 3}, "max_token"),
        ({"counter": 7}, "counter must be"),
        ({"counter": "gpt-99"}, "knows no model"),
        ({"consolidator": 7}, "consolidator must be"),
    ],
)
def test_wrong_options_raise_when_the_memory_is_made(options: dict[str, Any], complaint: str) -> None:
    """Each wrong option is named in the error, which is a ConfigurationError and a ValueError."""
    with pytest.raises(ConfigurationError, match=complaint) as refused:
        memory(**{"max_tokens": 200, **options})

    assert isinstance(refused.value, ValueError)


def test_tokens_as_shares_may_be_whole_numbers() -> None:
    """A share that is an int is a number of tokens."""
    options = memory(archive_share=30, recall_share=20).options

    assert (30, 150, 200) == (options.archive_tokens, options.allotment, options.usable)


def test_repr_names_what_was_given() -> None:
    """The representation shows the options that were set."""
    assert "SlideMem(archive_share=0.4, max_tokens=200, recall_share=0)" == repr(memory())


@pytest.mark.parametrize(
    "bad, complaint",
    [
        ({"role": "robot", "content": "x"}, "unknown role 'robot'"),
        ({"content": "x"}, "unknown role of type NoneType"),
        ({"role": "user", "content": 7}, "content must be text"),
        ({"role": "user", "content": [{"text": "x"}]}, "no type"),
        ({"role": "assistant", "tool_calls": [{"function": {}}]}, "no name"),
        ({"role": "tool", "tool_call_id": 7, "content": "x"}, "tool_call_id must be text"),
        ("hello", "expected a dict"),
        (None, "expected a dict"),
    ],
)
def test_a_bad_message_stores_nothing(bad: Any, complaint: str) -> None:
    """The error names the message and the fault, and the good ones beside it are not stored either."""
    chat = memory().session("s")

    with pytest.raises(InvalidMessage, match=f"message 1: .*{complaint}"):
        chat.append([{"role": "user", "content": "good"}, bad])

    assert () == chat.transcript()


@pytest.mark.parametrize("given", [HumanMessage("Hi"), [HumanMessage("Hi")]], ids=["alone", "in a list"])
def test_a_message_of_a_framework_is_told_where_it_goes(given: Any) -> None:
    """Alone or in a list, an object of LangChain or LlamaIndex is named, and its adapter's codec."""
    with pytest.raises(InvalidMessage, match=r"got HumanMessage \(a framework's message is encoded by its adapter"):
        memory().session("s").append(given)


@pytest.mark.parametrize(
    "content", ["nul \x00 here", "lone \ud83d", "<|endoftext|>", "", "   ", "a" * 5_000_000, [], None], ids=range(8)
)
def test_odd_content_is_kept_as_it_came_and_shown_as_a_provider_takes_it(content: Any) -> None:
    """NUL, surrogates, special tokens, blank and five megabytes: verbatim in the transcript, valid when shown."""
    chat = memory(counter="approximate").session("s")
    message = {"role": "user", "content": content}

    chat.append(message)
    context = chat.context()

    assert message == to_openai(chat.transcript()[0])
    assert context.tokens <= 200
    json.dumps(context.to_openai(), ensure_ascii=False).encode()


def test_a_result_without_id_and_arguments_that_are_no_json() -> None:
    """What models and tools really send is stored as it is and mended when shown."""
    chat = memory().session("s")
    call = {"id": "x", "type": "function", "function": {"name": "look", "arguments": "{broken"}}
    chat.append([{"role": "user", "content": "go"}, {"role": "assistant", "tool_calls": [call]}])
    chat.append({"role": "tool", "content": "found"})

    shown = chat.context().to_openai()

    assert '{"malformed": "{broken"}' == shown[1]["tool_calls"][0]["function"]["arguments"]
    assert ("x", "{broken") == (shown[2]["tool_call_id"], chat.transcript()[1].tool_calls[0].arguments)


def test_an_oversize_message_can_be_refused() -> None:
    """With oversize="raise" the error names index, tokens and limit, and nothing is stored."""
    chat = memory(oversize="raise").session("s")

    with pytest.raises(OversizeMessage) as refused:
        chat.append([*turn(1), {"role": "user", "content": "w " * 150}])

    assert (2, 150, 100) == (refused.value.index, refused.value.tokens, refused.value.limit)
    assert () == chat.transcript()


@pytest.mark.parametrize("reserve", [-1, True, 1.5, "7"])
def test_a_wrong_reserve_is_refused(reserve: Any) -> None:
    """A reserve is a whole number of tokens."""
    with pytest.raises(ConfigurationError, match="reserve must be a whole number"):
        memory().session("s").context(reserve=reserve)


def test_metadata_stand_in_the_pinned_zone_and_are_stored_with_an_append() -> None:
    """What a session is given is shown at once, and to others once something was appended."""
    mem = memory()
    chat = mem.session("s", metadata={"timezone": "IST\n+5:30", "floor": 3})
    chat.append(turn(1))

    shown, other = chat.context(), mem.session("s").context()

    assert "timezone: IST +5:30\nfloor: 3" in shown.messages[0].text
    assert (shown.messages, True) == (other.messages, shown.zones.pinned > 0)


@pytest.mark.parametrize("metadata", [["x"], {"a": [1]}, {"a": None}])
def test_metadata_are_names_and_short_values(metadata: Any) -> None:
    """Anything else is refused when the session is made."""
    with pytest.raises(ConfigurationError, match="metadata"):
        memory().session("s", metadata=metadata)


def test_pins() -> None:
    """A pin is shown until it is unpinned; the same text is one pin."""
    chat = memory().session("s")
    chat.append(turn(1))

    pin = chat.pin("allergic to\n peanuts")
    again = chat.pin("allergic to peanuts")
    shown = chat.context().messages[0].text

    assert (pin, (pin,)) == (again, chat.pins())
    assert "Pinned: allergic to peanuts\n" in shown
    assert (True, False, ()) == (chat.unpin(pin), chat.unpin(pin.id), chat.pins())
    assert "peanuts" not in chat.context().messages[0].text


def test_a_pin_that_does_not_fit_is_refused_with_both_numbers() -> None:
    """Pins share the archive's part of the budget."""
    chat = memory().session("s")
    chat.pin("word " * 40)

    with pytest.raises(PinBudgetError) as refused:
        chat.pin("more " * 40)

    assert (True, 80, 1) == (refused.value.needed > 80, refused.value.limit, len(chat.pins()))


@pytest.mark.parametrize("text", ["", "  ", None, 7])
def test_a_blank_pin_is_refused(text: Any) -> None:
    """A pin is text that says something."""
    with pytest.raises(InvalidMessage, match="pin must be text"):
        memory().session("s").pin(text)


def test_remember_this_is_pinned_when_its_source_is_archived() -> None:
    """The pin appears with the commit that takes the message out of the window, not before."""
    chat = memory().session("s")
    chat.append([{"role": "user", "content": "Hello. Remember this: my gate code is 4471."}, turn(0)[1]])
    before = chat.pins()
    for at in range(20):
        chat.append(turn(at))

    assert ((), ["my gate code is 4471."]) == (before, [pin.text for pin in chat.pins()])
    assert "Pinned: my gate code is 4471." in chat.context().messages[0].text


def test_a_thing_to_remember_that_does_not_fit_is_told() -> None:
    """When the pinned zone is full, an event says what was left out, and the turn goes on."""
    events: list[Event] = []
    chat = memory(on_event=events.append).session("s")
    chat.pin("word " * 50)
    chat.append([{"role": "user", "content": "Remember this: " + "code " * 30}, turn(0)[1]])
    for at in range(20):
        chat.append(turn(at))

    assert [(0, 1)] == [(event.start, event.end) for event in events if event.kind == "pin_left_out"]


def test_a_function_summarises() -> None:
    """`summarize(messages) -> str` gets OpenAI dicts and writes the archive."""
    asked: list[list[dict[str, Any]]] = []

    def summarize(messages: list[dict[str, Any]]) -> str:
        asked.append(messages)
        return f"They spoke of Pune {len(asked)}"

    chat = memory(consolidator=summarize).session("s")
    for at in range(20):
        chat.append(turn(at))

    assert {"role": "user", "content": "word word word Pune 0"} == asked[0][0]
    assert "They spoke of Pune 1" in chat.archive()[0].text
    assert "They spoke of Pune 1" in chat.context().messages[0].text
    assert "summarizer" == chat.archive()[0].method


def test_the_summary_is_summarised_again_past_its_share() -> None:
    """Four segments pass the archive's share and become one, written from their texts; what is shown keeps it."""
    asked: list[str] = []

    def summarize(messages: list[dict[str, Any]]) -> str:
        asked.append(str(messages[0]["content"]))
        return " ".join([f"Pune {len(asked)}", *["fact"] * 14])

    chat = memory(consolidator=summarize, archive_share=0.25).session("s")
    for at in range(80):
        chat.append(turn(at))

    assert any(text.startswith("Pune") for text in asked)
    assert 1 <= max(segment.level for segment in chat.archive())
    assert 0 < chat.context().zones.archive <= 50


def test_without_consolidator_nothing_is_kept_but_the_transcript() -> None:
    """With consolidator=None the boundary moves, the archive stays empty, and its segments stay few."""
    chat = memory(consolidator=None).session("s")
    for at in range(200):
        chat.append(turn(at))

    assert ({""}, 400) == ({segment.text for segment in chat.archive()}, len(chat.transcript()))
    assert len(chat.archive()) < 12
    assert chat.context().messages[0].text.partition("\n\n")[2].startswith("word")


@pytest.mark.parametrize("answer", ["", "x" * 100_000, None, 7, "nothing of note"])
def test_a_bad_summariser_never_fails_the_turn(answer: Any) -> None:
    """Whatever it returns, the extractive consolidator writes the segment and an event tells why."""
    events: list[Event] = []
    chat = memory(consolidator=lambda messages: answer, on_event=events.append).session("s")
    for at in range(20):
        chat.append(turn(at))

    assert "extractive" == chat.archive()[0].method
    assert {"consolidated", "refused"} <= {event.kind for event in events}
    assert {"s"} == {event.session for event in events}


def test_a_raising_summariser_is_asked_twice_and_its_error_never_remembered() -> None:
    """The cause is in the event, not in the archive."""
    events: list[Event] = []

    def summarize(messages: list[dict[str, Any]]) -> str:
        raise ConnectionError("no answer from Delhi")

    chat = memory(consolidator=summarize, on_event=events.append).session("s")
    for at in range(20):
        chat.append(turn(at))

    refusals = [event.detail for event in events if event.kind == "refused"]
    assert "raised ConnectionError: no answer from Delhi" == refusals[0]
    assert 2 * min(3, chat.stats().consolidations) == len(refusals)
    assert "Delhi" not in json.dumps(chat.context().to_openai())


def test_an_async_summariser_needs_the_async_twins() -> None:
    """A sync call is refused before anything is stored, and the awaited one works."""

    async def summarize(messages: list[dict[str, Any]]) -> str:
        await asyncio.sleep(0)
        return "They spoke of Pune 1"

    chat = memory(consolidator=summarize).session("s")

    async def talk() -> str:
        for at in range(20):
            await chat.aappend(turn(at))
        return (await chat.aarchive())[0].text

    with pytest.raises(AsyncOnly, match=r"await aappend\(\)"):
        chat.append(turn(0))
    with pytest.raises(AsyncOnly, match=r"await aconsolidate\(\)"):
        chat.consolidate()
    assert () == chat.transcript()
    assert asyncio.run(talk()).startswith("They spoke of Pune 1")


def test_a_consolidator_object_works_both_ways() -> None:
    """An object with summarize and asummarize is used as it is."""

    class Mine:
        def summarize(self, request: SummaryRequest) -> str:
            return "Pune, sync"

        async def asummarize(self, request: SummaryRequest) -> str:
            await asyncio.sleep(0)
            return "Pune, async"

    sync, awaited = (memory(consolidator=Mine()).session("s") for _ in range(2))
    for at in range(20):
        sync.append(turn(at))
        asyncio.run(awaited.aappend(turn(at)))

    assert ("Pune, sync", "Pune, async") == tuple(c.archive()[0].text.splitlines()[0] for c in (sync, awaited))


def test_a_sync_function_does_not_hold_the_event_loop() -> None:
    """An async caller's sync summariser runs beside the loop, which goes on meanwhile."""
    ticks: list[int] = []

    async def talk() -> None:
        loop = asyncio.get_running_loop()

        def summarize(messages: list[dict[str, Any]]) -> str:
            asyncio.run_coroutine_threadsafe(tick(), loop).result(timeout=30)
            return "They spoke of Pune"

        async def tick() -> None:
            ticks.append(1)

        chat = memory(consolidator=summarize).session("s")
        for at in range(20):
            await chat.aappend(turn(at))

    asyncio.run(talk())

    assert ticks


def test_sync_calls_work_inside_a_running_loop() -> None:
    """No sync method starts an event loop, so all work in a notebook."""

    async def cell() -> int:
        chat = memory().session("s")
        for at in range(20):
            chat.append(turn(at))
        return chat.context().tokens

    assert 0 < asyncio.run(cell()) <= 200


def test_a_flow_that_suspends_names_the_twin() -> None:
    """A store that has to be awaited cannot be reached from a sync call."""

    class Slow(MemoryStore):
        async def read(self, session: str, start: int = 0, end: int | None = None) -> Any:
            await asyncio.sleep(0)
            return await super().read(session, start, end)

    chat = memory(store=Slow()).session("s")

    with pytest.raises(AsyncOnly, match=r"await atranscript\(\)"):
        chat.transcript()
    assert () == asyncio.run(chat.atranscript())


def test_drive_returns_what_the_flow_returns() -> None:
    """A flow that never suspends is run to its end."""

    async def flow() -> int:
        return 7

    assert 7 == drive(flow(), "twin")


def test_every_async_twin() -> None:
    """Each async method does what its sync one does."""

    async def talk() -> tuple[Any, ...]:
        chat = memory(mode="manual").session("s")
        for at in range(20):
            await chat.aappend(turn(at))
        pin = await chat.apin("a pin")
        pins = await chat.apins()
        await chat.aunpin(pin)
        segment = await chat.aconsolidate(force=True)
        context = await chat.acontext(system="be kind")
        figures, exported = await chat.astats(), await chat.aexport()
        await chat.aclear()
        return pins, segment, context.tokens, figures.messages, len(exported["transcript"]), await chat.atranscript()

    pins, segment, tokens, messages, exported, after = asyncio.run(talk())

    assert (1, True, True, 40, 40, ()) == (
        len(pins),
        segment is not None,
        0 < tokens <= 200,
        messages,
        exported,
        after,
    )


def test_clear_deletes_everything() -> None:
    """Transcript, archive, pins and metadata are gone, and the session can be used again."""
    chat = memory().session("s", metadata={"city": "Pune"})
    chat.pin("a pin")
    for at in range(20):
        chat.append(turn(at))

    chat.clear()
    exported = memory().session("s").export()
    chat.append(turn(7))

    assert ([], [], {}) == (exported["transcript"], exported["pins"], exported["metadata"])
    assert (2, (), ()) == (len(chat.transcript()), chat.pins(), chat.archive())


def test_clear_kills_work_in_flight() -> None:
    """A consolidation that was writing while the session was cleared is dropped."""
    events: list[Event] = []
    cleared: list[bool] = []

    def summarize(messages: list[dict[str, Any]]) -> str:
        if not cleared:
            cleared.append(True)
            chat.clear()
        return "They spoke of Pune"

    chat = memory(consolidator=summarize, on_event=events.append).session("s")
    for at in range(13):
        chat.append(turn(at, 16))

    assert 1 == sum(event.kind == "lost_race" for event in events)
    assert () == chat.archive()


def test_stats() -> None:
    """The figures of a session add up."""
    chat = memory().session("s")
    for at in range(40):
        chat.append(turn(at))
        chat.context()

    stats = chat.stats()

    assert (80, 80, 40) == (stats.messages, stats.live_messages + stats.covered_messages, stats.contexts)
    assert stats.consolidations > 1
    assert stats.archive_tokens == sum(segment.tokens for segment in chat.archive())
    assert 0 < stats.facts_kept <= stats.facts_found
    assert 0.5 < stats.prefix_reuse < 1
    assert 0 == memory().session("x").stats().prefix_reuse


def test_export_is_plain_json() -> None:
    """A session with everything in it is one JSON object that says what it is."""
    chat = memory(keep_first_user=True).session("s", metadata={"city": "Pune"})
    chat.append([{"role": "system", "content": "be kind"}, {"role": "user", "content": "lone \ud83d \x00"}])
    for at in range(40):
        chat.append(turn(at))
    chat.pin("a pin")

    exported = json.loads(json.dumps(chat.export()))

    assert ("s", 1, {"city": "Pune"}) == (exported["session"], exported["schema"], exported["metadata"])
    assert chat.archive()[0].text == exported["record"]["archive"][0]["text"]
    assert 82 == len(exported["transcript"])


def test_a_listener_that_raises_does_not_reach_the_turn(caplog: pytest.LogCaptureFixture) -> None:
    """A fault in on_event is logged."""

    def listen(event: Event) -> None:
        raise RuntimeError("no")

    chat = memory(on_event=listen).session("s")

    chat.append([message for at in range(20) for message in turn(at)])

    assert "on_event raised RuntimeError: no" == caplog.messages[0]
    assert 40 == len(chat.transcript())


def test_a_counter_that_raises_costs_the_estimate() -> None:
    """One message that cannot be counted is estimated, and an event names the fault."""
    events: list[Event] = []

    def count(text: str) -> int:
        if "poison" in text:
            raise UnicodeError("cannot")
        return words(text)

    chat = memory(counter=count, on_event=events.append).session("s")
    chat.append([{"role": "user", "content": "poison in it"}, {"role": "assistant", "content": "fine"}])

    assert 2 == len(chat.context().messages)
    assert ["counter_failed"] == [event.kind for event in events]
    assert "counter raised UnicodeError: cannot" in events[0].detail


def test_another_counter_counts_the_live_part_again() -> None:
    """A session continued with another counter keeps its new budget, and the counts are stored."""
    store = MemoryStore()
    first = memory(store=store).session("s")
    for at in range(12):
        first.append(turn(at))
    second = SlideMem(max_tokens=600, counter=len, store=store, recall_share=0, consolidator=None).session("s")

    before = second.context()
    second.append(turn(12))
    totals = drive(store.snapshot("s"), "").totals

    assert before.tokens <= 600
    assert (totals.counter, totals.live_tokens) == (
        resolve_counter(len).fingerprint,
        second.stats().live_tokens,
    )


def test_forgotten_layouts_are_made_again() -> None:
    """More sessions than are remembered read the same as before."""
    mem = memory()
    for at in range(300):
        mem.session(str(at)).append(turn(at))
        mem.session(str(at)).context()

    assert ["word word word Pune 0", "word word word Pune 0"] == [m.text for m in mem.session("0").context().messages]


def test_count_is_a_plain_function_of_messages() -> None:
    """A memory counts what it is given, as `count_tokens` does."""
    given = turn(1)

    assert 10 == memory().count(given) == slidemem.count_tokens(given, words)


def test_a_context_belongs_to_its_reader() -> None:
    """Changing what was handed out changes nothing that is kept."""
    chat = memory().session("s")
    chat.append({"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]})

    handed_out = chat.context().to_openai()
    handed_out[0]["content"][0]["cache_control"]["type"] = "changed"

    assert "ephemeral" == chat.context().to_openai()[0]["content"][0]["cache_control"]["type"]


def test_errors_are_one_tree() -> None:
    """Everything raised on purpose is a SlidememError."""
    named = [getattr(slidemem.errors, name) for name in dir(slidemem.errors)]
    errors = [error for error in named if isinstance(error, type) and issubclass(error, Exception)]

    assert [] == [error for error in errors if not issubclass(error, SlidememError)]


def test_what_a_model_used_is_in_the_figures() -> None:
    """A consolidator that tells tokens read and written adds to the session's figures, whichever object asks."""

    class Telling(ExtractiveConsolidator):
        def summarize(self, request: SummaryRequest) -> str:
            request.used(100, 7)
            return super().summarize(request)

    class Wrapped:
        def summarize(self, request: SummaryRequest) -> str:
            return Telling().summarize(request)

        async def asummarize(self, request: SummaryRequest) -> str:
            return self.summarize(request)

    mem = memory(consolidator=Wrapped())
    for at in range(40):
        mem.session("s").append(turn(at))
    stats = mem.session("s").stats()

    assert stats.summarizer_calls > 0
    assert (100 * stats.summarizer_calls, 7 * stats.summarizer_calls) == (
        stats.summarizer_read,
        stats.summarizer_wrote,
    )


def test_figures_of_many_sessions_are_bounded() -> None:
    """The figures of the sessions that were used least lately are forgotten."""
    figures = AllFigures(remember=2)
    first = figures.of("a")

    kept = figures.of("b"), figures.of("a"), figures.of("c")

    assert first is kept[1]
    assert figures.of("b") is not kept[0]


def test_an_empty_list_asks_for_nothing() -> None:
    """Reconciling with no message needs no summariser, even where the one there is has to be awaited."""

    async def summarize(messages: list[dict[str, Any]]) -> str:
        return ""

    chat = memory(consolidator=summarize).session("s")

    assert (0, 0, 0) == astuple(chat.reconcile([], replace=True))
    assert chat.flush()


def test_a_failing_counter_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """Counts that are estimates because the counter raises are logged once, not in silence and not each time."""

    def raises(text: str) -> int:
        raise RuntimeError("no tokenizer")

    chat = memory(counter=raises).session("s")
    chat.append([*turn(0), *turn(1)])

    assert 1 == len([record for record in caplog.records if "the counter failed" in record.message])


def test_a_memory_lets_go_of_its_store(tmp_path: Path) -> None:
    """Leaving the block closes the file that it opened; a store that was handed in is its giver's."""
    url, given = f"sqlite:///{tmp_path / 'chat.db'}", SQLiteStore()
    with (
        memory(store=url) as mem,
        memory(transcript=MemoryStore(), records=url) as apart,
        memory(store=given) as other,
    ):
        for one in (mem, apart, other):
            one.session("s").append(turn(0))

    for one in (mem, apart):
        with pytest.raises(StoreError, match="it was closed"):
            one.session("s").archive()
    assert 2 == len(other.session("s").transcript())
    given.close()


WRONG_OPTIONS = {
    "unknown": ({"max_turns": 3}, r"max_turns: there is no such option \(known: max_tokens, "),
    "mistyped": (
        {"archive_shares": 0.3},
        r"archive_shares: there is no such option, did you mean archive_share\? \(known",
    ),
    "of a framework": ({"summarizer": print}, r"summarizer: there is no such option, did you mean consolidator\?"),
    "inside another": ({"prices": {"in": 2}}, r"prices: .*it has no 'in' \(known: input, cached, "),
    "type": ({"keep_turns": "x"}, r"keep_turns: Input should be a valid integer, got 'x'$"),
    "share": ({"archive_share": 2.0}, r"got 2.0, or Input should be a valid integer, got 2.0$"),
    "together": ({"batch_turns": 5}, r"batch_turns \(5\) needs window_turns of that or more, got None$"),
}


@pytest.mark.parametrize("options, expected", WRONG_OPTIONS.values(), ids=WRONG_OPTIONS.keys())
def test_a_wrong_option_is_told_with_its_value(options: dict[str, Any], expected: str) -> None:
    """The sentence has the value that was given, and the known names only where the name is not one."""
    with pytest.raises(ConfigurationError, match=expected):
        memory(**options)


def test_a_function_that_returns_something_to_await_is_awaited() -> None:
    """A lambda around a coroutine is no coroutine function; async callers get what it comes to all the same."""

    async def later(messages: list[dict[str, Any]]) -> str:
        return f"They spoke of {messages[0]['content']}"[:40]

    async def talk() -> str:
        chat = memory(consolidator=lambda messages: later(messages[:1])).session("s")
        for at in range(40):
            await chat.aappend(turn(at))
        return (await chat.aarchive())[-1].method

    assert "summarizer" == asyncio.run(talk())


def test_shown_is_what_a_context_shows_later() -> None:
    """Messages are mended and clamped as they will be once they are stored, and nothing is stored."""
    chat = SlideMem(max_tokens=400, counter="approximate").session("s")
    paste = [{"role": "user", "content": "word " * 2000}, {"role": "assistant", "content": "ok \ud800"}]

    shown = chat.shown(paste)
    before = chat.transcript()
    chat.append(paste)

    assert () == before
    assert shown == chat.context().messages


@pytest.mark.parametrize("alternate", [True, False])
def test_shown_joins_equal_neighbours_where_the_memory_does(*, alternate: bool) -> None:
    """With `alternate` a message and the one that it follows become one; without, and of other roles, they stay."""
    chat = SlideMem(max_tokens=400, counter="approximate", alternate=alternate).session("s")
    after = chat.shown({"role": "user", "content": "are you there?"})[0]

    joined = chat.shown({"role": "user", "content": "what now?"}, after=after)
    other = chat.shown({"role": "assistant", "content": "yes"}, after=after)

    assert ["are you there?\n\nwhat now?" if alternate else "what now?"] == [one.text for one in joined]
    assert ["yes"] == [one.text for one in other]
