"""What other memories were reported to do wrong, each report as a test with the right outcome."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from slidemem import ConversationMemory, Event, SlideMem, from_openai, to_openai
from slidemem.check import violations
from slidemem.driver import drive
from slidemem.request import SummaryRequest
from slidemem.state import Entry, Snapshot
from slidemem.stores.memory import MemoryStore


def words(text: str) -> int:
    """Words of a text."""
    return len(text.split())


def said(role: str, text: str) -> dict[str, Any]:
    """A message of plain text."""
    return {"role": role, "content": text}


def turn(at: int) -> list[dict[str, Any]]:
    """A question and an answer of five words each, with a name and a number that no other turn has."""
    return [said(role, f"word word word Pune {at:03}") for role in ("user", "assistant")]


def tool_round(at: int, found: str = "short") -> list[dict[str, Any]]:
    """A call and its result."""
    call = {"id": f"c{at}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{at}", "content": f"{found} {at:03}"},
    ]


def memory(max_tokens: int = 200, **options: Any) -> SlideMem:
    """A memory that counts words."""
    given = {"counter": words, "recall_share": 0, "archive_share": 0.4, "clock": lambda: 0.0, **options}
    return SlideMem(max_tokens=max_tokens, **given)


def snapshot(mem: SlideMem, session: str = "s") -> Snapshot:
    """What a read of the session sees."""
    return drive(mem.store.snapshot(session), "")


def summary(messages: list[dict[str, Any]]) -> str:
    """A fact of the span."""
    return f"They spoke of {' '.join(str(messages[0]['content']).split()[3:])}"


# ------------------------------------------------------------------ openai-agents-python#3116, #5010


class FailingStore(MemoryStore):
    """A store whose commit fails as often as it is told to."""

    fails = 0

    async def commit(self, *args: Any) -> bool:
        """Apply a change, or fail."""
        if self.fails:
            self.fails -= 1
            raise OSError("the connection was reset")
        return await super().commit(*args)


@pytest.mark.parametrize("apart", [False, True], ids=["one store", "transcript and records apart"])
@pytest.mark.parametrize("summarize", [None, summary], ids=["extractive", "function"])
def test_a_store_that_fails_at_the_summary_keeps_the_history(apart: bool, summarize: Any) -> None:  # noqa: FBT001  # a row
    """openai/openai-agents-python#3116: the history was cleared before what replaces it was stored, and was lost."""
    store = FailingStore()
    where = {"transcript": MemoryStore(), "records": store} if apart else {"store": store}
    events: list[Event] = []
    mem = memory(**where, **({"consolidator": summarize} if summarize else {}), on_event=events.append)
    chat = mem.session("s")
    messages = [message for at in range(20) for message in turn(at)]
    store.fails = 1

    chat.append(messages)
    told = [event.kind for event in events]
    kept, archive, context = chat.transcript(), chat.archive(), chat.context()
    chat.append(turn(20))

    assert ([*map(from_openai, messages)], ()) == (list(kept), archive)
    assert "Pune 019" in context.messages[-1].text
    assert 1 == len(chat.archive())
    assert 42 == len(chat.transcript())
    assert ["postponed"] == told


def test_only_what_was_summarised_leaves_the_window() -> None:
    """openai/openai-agents-python#5010: a part of the history was summarised, and all of it was deleted."""
    asked: list[str] = []

    def summarize(messages: list[dict[str, Any]]) -> str:
        if not str(messages[0]["content"]).startswith("They"):  # a merge reads summaries, not messages
            asked.extend(str(message["content"]) for message in messages)
        return summary(messages)

    mem = memory(consolidator=summarize)
    chat = mem.session("s")
    for at in range(40):
        chat.append(turn(at))

        boundary = snapshot(mem).record.boundary
        assert [message.text for message in chat.transcript()[:boundary]] == asked
        assert list(range(boundary, 2 * at + 2)) == [entry.seq for entry in snapshot(mem).live]
    assert len(asked) > 40


# ------------------------------------------------------------------ agent-framework#7943


def test_a_summary_is_there_exactly_when_its_sources_are_gone() -> None:
    """microsoft/agent-framework#7943: the summary was dropped while the messages that it stood for were left out."""

    def summarize(messages: list[dict[str, Any]]) -> str:
        said_ = " ".join(str(message["content"]) for message in messages)
        return "Pune " + " ".join(sorted(set(re.findall(r"\d{3}", said_))))

    chat = memory(600, consolidator=summarize, archive_share=0.5).session("s")
    boundaries = set()
    for at in range(150):
        for message in turn(at):
            chat.append(message)
            context = chat.context()
            boundaries.add(context.receipt.covered)

            lines = [line for line in context.head.splitlines() if line.startswith("- Pune ")]
            gone = {f"{seq // 2:03}" for seq in range(context.receipt.covered)}
            shown = {f"{seq // 2:03}" for seq in context.receipt.shown}
            assert gone == set(re.findall(r"\d{3}", " ".join(lines))), at
            assert set() == gone & shown, at
    assert len(boundaries) > 6


# ------------------------------------------------------------------ SynapseKit#551


@pytest.mark.parametrize("fault", [RuntimeError("rate limit"), ConnectionError(), KeyboardInterrupt()], ids=repr)
def test_a_summariser_that_raises_at_first_loses_nothing(fault: BaseException) -> None:
    """SynapseKit/SynapseKit#551: messages were taken out before the summariser was asked, and it raised."""
    calls: list[int] = []

    def summarize(messages: list[dict[str, Any]]) -> str:
        calls.append(len(messages))
        if len(calls) == 1:
            raise fault
        return summary(messages)

    mem = memory(consolidator=summarize)
    chat = mem.session("s")
    raised = 0
    for at in range(25):
        try:
            chat.append(turn(at))
        except KeyboardInterrupt:
            raised += 1
            assert (len(chat.transcript()), ()) == (len(snapshot(mem).live), chat.archive())

        assert [f"Pune {turn:03}" for turn in range(at + 1) for _ in range(2)] == [
            message.text[15:] for message in chat.transcript()
        ]
    assert isinstance(fault, KeyboardInterrupt) == raised
    assert (True, "summarizer") == (len(calls) > 1, chat.archive()[0].method)
    assert calls[0] <= calls[1]


def test_a_summariser_that_always_raises_loses_nothing() -> None:
    """SynapseKit/SynapseKit#551: on each retry the next two messages were lost in the same way."""

    def summarize(messages: list[dict[str, Any]]) -> str:
        raise RuntimeError("rate limit")

    mem = memory(consolidator=summarize)
    chat = mem.session("s")
    for at in range(60):
        chat.append(turn(at))

    explained = [message for one in chat.archive() for message in sources(chat, one.id)]
    live = [entry.message for entry in snapshot(mem).live]
    assert list(chat.transcript()) == [*explained, *live]
    assert {"extractive"} == {one.method for one in chat.archive() if one.level == 0}


def sources(chat: ConversationMemory, segment: str) -> list[Any]:
    """The messages that a segment stands for."""
    explanation = chat.explain(segment)
    if not explanation.children:
        return list(explanation.messages)
    return [message for child in explanation.children for message in sources(chat, child.segment.id)]


# ------------------------------------------------------------------ kimi-code#2325


@pytest.mark.parametrize("how", ["system of the call", "reserve of the call", "stored system prompt"])
@pytest.mark.parametrize("overhead", [910, 950, 990, 999])
def test_an_overhead_above_the_threshold_starts_no_loop(how: str, overhead: int) -> None:
    """MoonshotAI/kimi-code#2325: fixed overhead alone passed the threshold, and every step compacted again."""
    paid: list[int] = []
    events: list[Event] = []

    def summarize(messages: list[dict[str, Any]]) -> str:
        paid.append(len(messages))
        return summary(messages)

    mem = memory(1_000, consolidator=summarize, archive_share=0.15, on_event=events.append)
    chat = mem.session("s")
    if how == "stored system prompt":
        chat.append(said("system", "rule " * overhead))
    call = {
        "system of the call": {"system": "rule " * overhead},
        "reserve of the call": {"reserve": overhead},
    }.get(how, {})
    per_append = []
    for at in range(30):
        for message in turn(at):
            chat.context(said("user", "hm"), **call) if overhead < 990 else None
            before = count(events, "consolidated")
            chat.append(message)
            per_append.append(count(events, "consolidated") - before)

            assert chat.plan().due is None or message["role"] == "user", at

    seen = how == "stored system prompt" or overhead < 990  # what no read has shown cannot be told
    assert int(seen) == count(events, "crowded")
    per_turn = [question + answer for question, answer in zip(per_append[0::2], per_append[1::2], strict=True)]
    assert max(per_turn) <= 1
    assert len(paid) <= 10


def count(events: list[Event], kind: str) -> int:
    """How many of a kind."""
    return sum(event.kind == kind for event in events)


# ------------------------------------------------------------------ langmem#118


@pytest.mark.parametrize("found", ["short", "long " * 20])
def test_a_message_of_a_tool_loop_is_shown_or_summarised_never_neither(found: str) -> None:
    """langchain-ai/langmem#118: in tool loops short messages were in neither the summary nor the list."""
    asked: list[str] = []

    def summarize(messages: list[dict[str, Any]]) -> str:
        asked.extend(str(message["content"]) for message in messages)
        return f"They found {str(messages[-1]['content']).split()[-1]}"

    mem = memory(consolidator=summarize)
    chat = mem.session("s")
    boundaries = set()
    for at in range(30):
        chat.append(said("user", f"question {at:03}"))
        for step in range(3):
            chat.append(tool_round(3 * at + step, found))

            assert [] == neither(chat), (at, step)
        chat.append(said("assistant", f"answer {at:03}"))
        boundaries.add(snapshot(mem).record.boundary)

        assert [] == neither(chat), at
        covered = [message.text for message in chat.transcript()[: max(boundaries)]]
        assert [] == [text for text in covered if text and text not in asked], at
    assert len(boundaries) > 4


@pytest.mark.parametrize("archive_share", [0.15, 0.25, 0.4])
@pytest.mark.parametrize("recall_share", [0, 0.25])
def test_a_message_is_shown_or_summarised_never_neither(archive_share: float, recall_share: float) -> None:
    """langchain-ai/langmem#118: what the list had no room for was not in the summary yet, turn after turn."""
    chat = memory(400, archive_share=archive_share, recall_share=recall_share).session("s")

    missing = []
    for at in range(80):
        for message in turn(at):
            chat.append(message)
            missing.append(len(neither(chat)))

    assert [0] * len(missing) == missing
    assert len(chat.archive()) > 0


def neither(chat: ConversationMemory) -> list[int]:
    """Messages that are neither shown nor covered by the archive."""
    receipt = chat.context().receipt
    return sorted({*range(len(chat.transcript()))} - {*range(receipt.covered), *receipt.shown})


# ------------------------------------------------------------------ adk-python#7236


@pytest.mark.parametrize("where", ["first", "later"])
@pytest.mark.parametrize(
    "goes_on", [said("user", "hello?"), said("assistant", "It did not answer.")], ids=["user", "assistant"]
)
def test_a_call_that_is_never_answered_does_not_stop_consolidation(where: str, goes_on: dict[str, Any]) -> None:
    """google/adk-python#7236: a call without a result stood at the head of every window, and nothing left it."""
    mem = memory()
    chat = mem.session("s")
    if where == "later":
        for at in range(30):
            chat.append(turn(at))
    there = len(chat.transcript())
    chat.append([said("user", "Look it up in Pune 7"), tool_round(0)[0]])
    waiting = chat.context().receipt.open
    chat.append(goes_on)
    boundaries = []
    for at in range(100, 160):
        chat.append(turn(at))
        boundaries.append(snapshot(mem).record.boundary)
        context = chat.context()

        assert [] == violations(context.to_openai(), ignore=("alternation",)), at
        assert context.tokens <= 200

    assert waiting
    assert boundaries[-1] > there + 80
    assert len(set(boundaries)) > 4
    assert chat.stats().live_messages <= 40


# ------------------------------------------------------------------ llama_index#13308


class HostList:
    """A chat store of a host's: OpenAI-format dicts in a Python list, by session."""

    def __init__(self, **lists: list[dict[str, Any]]) -> None:
        self.lists = lists

    async def append(self, session: str, entries: Sequence[Entry]) -> None:
        """Add messages at the end."""
        self.lists.setdefault(session, []).extend(to_openai(entry.message) for entry in entries)

    async def read(self, session: str, start: int = 0, end: int | None = None) -> tuple[Entry, ...]:
        """The messages of a range."""
        listed = list(enumerate(self.lists.get(session, [])))[start:end]
        messages = [(seq, from_openai(data)) for seq, data in listed]
        return tuple(Entry(seq, message, message, 0, 0, 0.0, "") for seq, message in messages)

    async def cut(self, session: str, keep: int) -> None:
        """Take the newest messages out."""
        del self.lists.get(session, [])[keep:]

    async def clear(self, session: str) -> None:
        """Delete all."""
        self.lists.pop(session, None)


def test_a_filled_store_is_picked_up_as_it_is() -> None:
    """run-llama/llama_index#13308: a memory made over a filled store erased what was there."""
    first = memory()
    chat = first.session("s", metadata={"city": "Pune"})
    chat.pin("vegan")
    for at in range(30):
        chat.append(turn(at))
    before = drive(first.store.whole("s"), "")

    again = memory(store=first.store).session("s")
    read = again.context()
    after = drive(first.store.whole("s"), "")
    again.append(turn(30))

    assert (before, chat.archive()) == (after, again.archive())
    assert (True, "Pune 029") == ("vegan" in read.head, read.messages[-1].text[-8:])
    assert 62 == len(again.transcript()) == len(chat.transcript())


def test_a_filled_list_of_a_host_is_picked_up_as_it_is() -> None:
    """run-llama/llama_index#13308: the same for a history that this memory has never seen."""
    there = [message for at in range(30) for message in turn(at)]
    host = HostList(s=[*there])

    chat = memory(transcript=host).session("s")
    read = chat.context()
    before = [*host.lists["s"]]
    chat.append(turn(30))

    assert (there, [*there, *turn(30)]) == (before, host.lists["s"])
    assert (True, "Pune 029") == (read.tokens <= 200, read.messages[-1].text[-8:])
    assert "Pune 030" in chat.context().messages[-1].text
    assert len(chat.archive()) > 0


# ------------------------------------------------------------------ summaries and what they cost


def test_a_summary_longer_than_the_limit_costs_no_token_too_many() -> None:
    """langchain-ai/langchain#17888: a summary was counted nowhere, and the prompt grew past the limit."""
    chat = memory(160, consolidator=lambda messages: "Pune 007 " * 2_000).session("s")
    for at in range(60):
        chat.append(turn(at))
        assert chat.context().tokens <= 160

    assert {"extractive", "joined"} >= {segment.method for segment in chat.archive()}
    stats = chat.stats()
    assert stats.refusals == stats.summarizer_calls > 2 * stats.consolidations


@pytest.mark.parametrize("large", range(5))
def test_the_next_result_is_cut_when_the_first_cannot_shrink(large: int) -> None:
    """strands-agents/harness-sdk#4341: only the oldest tool result was looked at, and messages were dropped."""
    chat = memory(200).session("s")
    chat.append(said("user", "look at all of them"))
    calls = [{"id": f"c{at}", "type": "function", "function": {"name": "look", "arguments": "{}"}} for at in range(5)]
    chat.append({"role": "assistant", "content": None, "tool_calls": calls})
    found = ["word " * 400 if at == large else f"short {at}" for at in range(5)]
    chat.append([{"role": "tool", "tool_call_id": f"c{at}", "content": found[at]} for at in range(5)])

    context = chat.context()

    shown = [message.text for message in context.messages if message.role == "tool"]
    assert ["left out" in text for text in shown] == [at == large for at in range(5)]
    assert [found[at] for at in range(5) if at != large] == [text for text in shown if "left out" not in text]
    assert "look at all of them" == context.messages[0].text
    assert context.tokens <= 200


@pytest.mark.parametrize("budget", [8, 12, 20, 40])
def test_a_window_of_nothing_is_still_a_prompt(budget: int) -> None:
    """vstorm-co/summarization-pydantic-ai#40: with nothing to keep the whole history stayed, or an empty list."""
    chat = memory(budget, archive_share=0, compact_to=0.01).session("s")
    for at in range(30):
        chat.append(turn(at))
        chat.append(said("user", f"and now {at}?"))
        chat.consolidate(force=True)

        context = chat.context()

        assert f"and now {at}?" == context.messages[-1].text
        assert [] == violations(context.to_openai())
        assert context.tokens <= budget
    assert 1 == len(context.messages)


def test_each_message_is_summarised_once_and_the_summary_covers_what_was_there() -> None:
    """FlowiseAI/Flowise#5873, run-llama/llama_index#14958: a summary was made of the whole history, or forgot it."""
    read: list[str] = []
    earlier: list[str] = []

    class Reads:
        def summarize(self, request: SummaryRequest) -> str:
            if request.earlier or not read:  # a merge has no earlier notes
                read.extend(message.text for message in request.messages)
            earlier.append(request.earlier)
            return f"They spoke of {request.messages[0].text[-8:]}."

        async def asummarize(self, request: SummaryRequest) -> str:
            return self.summarize(request)

    chat = memory(consolidator=Reads()).session("s")
    for at in range(60):
        chat.append(turn(at))

    covered = chat.context().receipt.covered
    whole = [message.text for message in chat.transcript()]
    assert whole[:covered] == read
    assert (0, covered) == (chat.archive()[0].start, chat.archive()[-1].end)
    assert "" == earlier[0]
    assert all("They spoke of" in notes for notes in earlier[1:] if notes)


@pytest.mark.parametrize(
    "said_", ["このメッセージは日本語で書かれています", "这条消息是用中文写的", "이 메시지는 한국어로"]
)
def test_a_script_without_spaces_fills_the_budget_no_earlier(said_: str) -> None:
    """openclaw/openclaw#70052: CJK was counted at a quarter, so nothing was compacted and the context overflowed."""
    chat = SlideMem(max_tokens=600, counter="approximate").session("s")
    for at in range(60):
        chat.append([said("user", f"{said_}{at}。" * 3), said("assistant", f"{said_}{at}")])
        context = chat.context()
        characters = sum(len(message.text) for message in context.messages)
        assert context.tokens <= 600
        assert characters <= 800  # at a token a character and a few for the frame, not four characters a token

    assert chat.stats().consolidations > 3
