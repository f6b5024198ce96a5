"""Every way in which a summariser can fail: what stands in, what is told, and when it is asked again."""

# ruff: noqa: RUF001  # several scripts are tested

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from slidemem import ConversationMemory, Event, SlideMem, Stats
from slidemem.asking import asking, asking_async
from slidemem.breaker import Breaker
from slidemem.consolidate import Consolidator, ExtractiveConsolidator, FunctionConsolidator
from slidemem.errors import ConfigurationError
from slidemem.language import differ, language
from slidemem.messages import Message, Part
from slidemem.request import SummaryRequest

Heard = list[Event]

SOURCE = (
    "I am allergic to penicillin, and the insurance number of my daughter Ines is KV-7731-09. We have been with "
    "this practice for years and they know us, so it is enough that you call them before noon."
)
SECRET = "sk-live-51Hx"  # noqa: S105  # what an error tells and no memory may


def words(text: str) -> int:
    """Words of a text."""
    return len(text.split())


def turn(at: int, text: str = SOURCE) -> list[dict[str, Any]]:
    """A question with facts, and an answer."""
    return [
        {"role": "user", "content": f"{text} That is visit {at:03}."},
        {"role": "assistant", "content": "Thank you, that is all that they need to know for now."},
    ]


def memory(consolidator: Any, **options: Any) -> tuple[ConversationMemory, Heard]:
    """A session of few words, and what is told of it."""
    events: Heard = []
    given = {"counter": words, "archive_share": 0.4, "recall_share": 0, "clock": lambda: 0.0, **options}
    mem = SlideMem(max_tokens=300, consolidator=consolidator, on_event=events.append, **given)
    return mem.session("s"), events


def raises(messages: list[dict[str, Any]]) -> str:
    """A client's error."""
    raise ConnectionError(f"401 for key {SECRET}")


def raises_oddly(messages: list[dict[str, Any]]) -> str:
    """An error that cannot be told in words."""
    raise Wordless


class Wordless(Exception):
    """Raises when it is asked for its text."""

    def __str__(self) -> str:
        raise ValueError(SECRET)


def times_out(messages: list[dict[str, Any]]) -> str:
    """A client's own time-out."""
    raise TimeoutError(f"no answer to {SECRET}")


def echoes(messages: list[dict[str, Any]]) -> str:
    """What it was given."""
    return "\n".join(str(message["content"]) for message in messages)


def returns_more(messages: list[dict[str, Any]]) -> str:
    """More than it was given."""
    return f"{echoes(messages)} That was all of it, and there is nothing to add to it."


def of(answer: Any) -> Callable[[list[dict[str, Any]]], Any]:
    """A summariser that always answers this."""
    return lambda messages: answer


class EchoesItsPrompt:
    """A model that repeats what it was asked."""

    def summarize(self, request: SummaryRequest) -> str:
        """The prompt."""
        return request.prompt

    async def asummarize(self, request: SummaryRequest) -> str:
        """The prompt."""
        return request.prompt


FAILURES: list[tuple[str, Any, str]] = [
    ("raises", raises, "raised ConnectionError"),
    ("raises oddly", raises_oddly, "raised Wordless"),
    ("times out", times_out, "raised TimeoutError"),
    ("nothing", of(None), "returned NoneType, not text"),
    ("no text", of({"summary": SECRET}), "returned dict, not text"),
    ("empty", of(""), "empty, though the span holds facts"),
    ("blank", of(" \n\u2003\n"), "empty, though the span holds facts"),
    ("refuses", of("I cannot help with that."), "no summary, but a refusal"),
    ("refuses with a name", of("I'm sorry, but I can't discuss Ines or KV-7731-09."), "no summary, but a refusal"),
    ("refuses in German", of("Es tut mir leid, zu Ines kann ich nichts sagen."), "no summary, but a refusal"),
    ("refuses in Chinese", of("抱歉，Ines 的事情我无法处理。"), "no summary, but a refusal"),
    ("an error as text", of(f"Error code: 429, key {SECRET} of Ines"), "no summary, but a refusal or an error"),
    ("an error as JSON", of(f'{{"error": "Ines {SECRET}"}}'), "no summary, but a refusal or an error"),
    ("an error page", of(f"<html>502 Bad Gateway {SECRET} Ines</html>"), "no summary, but a refusal or an error"),
    ("echoes its prompt", EchoesItsPrompt(), "as long as what it summarises"),
    ("echoes the span", echoes, "over its target"),
    ("returns more", returns_more, "as long as what it summarises"),
    ("over its target", of("Ines " * 190), "over its target"),
    ("says nothing", of("The user and the assistant talked."), "holds none of the span's"),
    (
        "another language",
        of("Die Tochter Ines ist bei der Praxis und das Kind hat eine Allergie, KV-7731-09, mit der sie nicht lebt."),
        "in another language",
    ),
    ("another script", of("Дочь Ines, страховой номер KV-7731-09, аллергия на пенициллин."), "in another language"),
]


@pytest.mark.parametrize("consolidator, cause", [row[1:] for row in FAILURES], ids=[row[0] for row in FAILURES])
def test_extracts_stand_in_for_a_summariser_that_fails(consolidator: Any, cause: str) -> None:
    """The turn goes on within budget, the span's own lines are kept, and each failure is told with its cause."""
    chat, events = memory(consolidator)

    for at in range(8):
        chat.append(turn(at))
        context = chat.context()
        assert context.tokens <= 300

    refused = [event.detail for event in events if event.kind == "refused"]
    segments = [event.segment for event in events if event.kind == "consolidated" and event.segment]
    assert 16 == len(chat.transcript())
    assert {"extractive"} == {segment.method for segment in segments}
    assert "allergic to penicillin" in context.head
    assert [] == [detail for detail in refused if not detail.startswith(cause)]
    assert refused
    assert SECRET not in json.dumps([chat.export(), context.to_openai()])


@pytest.mark.parametrize("consolidator, cause", [row[1:] for row in FAILURES], ids=[row[0] for row in FAILURES])
def test_the_awaited_twin_fails_in_the_same_way(consolidator: Any, cause: str) -> None:
    """Archive and refusals are those of a sync caller."""
    chat, events = memory(consolidator)
    twin, heard = memory(consolidator)

    async def talk() -> None:
        for at in range(8):
            await twin.aappend(turn(at))

    asyncio.run(talk())
    for at in range(8):
        chat.append(turn(at))

    assert chat.archive() == twin.archive()
    assert [(event.kind, event.detail) for event in events] == [(event.kind, event.detail) for event in heard]


@pytest.mark.parametrize(
    "answer", ["Hello there, dear Ines!", "KV-7731-09 and Ines", "Ines: KV-7731-09, penicillin."]
)
def test_a_summary_in_few_words_is_none_of_these(answer: str) -> None:
    """A short text with facts of the span is a summary, in whatever words."""
    chat, events = memory(of(answer))

    chat.append([message for at in range(8) for message in turn(at)])

    assert answer in chat.context().head
    assert [] == [event for event in events if event.kind == "refused"]


def test_what_was_said_is_no_refusal() -> None:
    """A user who cannot do something is quoted so."""
    said = "I cannot do Mondays, Ines has school"
    chat, events = memory(of(said))

    chat.append([message for at in range(8) for message in turn(at, f"{said}. {SOURCE}")])

    assert said in chat.context().head
    assert [] == [event for event in events if event.kind == "refused"]


@pytest.mark.parametrize("answer", ["I had some trouble with the connection to the model today.", "1. 2. 3."])
def test_a_span_without_facts_is_not_summed_up_by_anything(answer: str) -> None:
    """Where there are no facts to hold, a summary has words of its span, and an error as text has not."""
    small_talk = "oh well, it was raining the whole morning and the garden looked lovely afterwards, truly lovely"
    chat, events = memory(of(answer))

    for _ in range(20):
        chat.append(
            [{"role": "user", "content": small_talk}, {"role": "assistant", "content": "lovely, and so it was"}]
        )

    told = [event.detail for event in events if event.kind == "refused"]
    assert {"says nothing that the span says"} == set(told)
    assert answer not in chat.context().head


def test_it_may_fail_on_certain_spans_alone() -> None:
    """A span that its summariser cannot take is extracted, those before and after it are summarised."""

    def summarize(messages: list[dict[str, Any]]) -> str:
        if any("visit 007" in str(message["content"]) for message in messages):
            raise ValueError("cannot encode visit 007")
        return f"Ines: KV-7731-09, penicillin allergy, {messages[0]['content'][-10:]}"

    chat, events = memory(summarize, summary_seconds=None)
    for at in range(20):
        chat.append(turn(at))

    methods = [event.segment.method for event in events if event.kind == "consolidated" and event.segment]
    assert 1 == methods.count("extractive")
    assert methods.count("summarizer") == len(methods) - 1 > 2
    assert [] == [event for event in events if event.kind == "paused"]


def test_the_second_ask_is_tighter_and_the_last() -> None:
    """Two answers that are too long, and the extract is made; a time-out is not asked again."""
    asked: list[int] = []

    class Long:
        def summarize(self, request: SummaryRequest) -> str:
            asked.append(request.asked_tokens)
            return "Ines " * 190

        async def asummarize(self, request: SummaryRequest) -> str:
            return self.summarize(request)

    chat, _ = memory(Long())
    chat.append([message for at in range(8) for message in turn(at)])
    late, events = memory(times_out)
    late.append([message for at in range(8) for message in turn(at)])

    assert 2 == len(asked)
    assert asked[0] > asked[1]
    assert 1 == len([event for event in events if event.kind == "refused"])


# ------------------------------------------------------------------ one that never answers


class Hangs:
    """A summariser that answers when the test is over."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.asked = 0

    def __call__(self, messages: list[dict[str, Any]]) -> str:
        """Nothing, late."""
        self.asked += 1
        self.over.wait(60)
        return f"{SECRET} Ines"


@pytest.fixture
def hangs() -> Any:
    """One that hangs until the end of the test."""
    made = Hangs()
    yield made
    made.over.set()


@pytest.mark.parametrize("twin", [False, True])
@pytest.mark.parametrize("mode", ["inline", "background"])
def test_nobody_waits_for_one_that_hangs(hangs: Hangs, mode: str, *, twin: bool) -> None:
    """After `summary_seconds` extracts stand in, and it is left alone at once."""
    chat, events = memory(hangs, summary_seconds=0.01, mode=mode)

    async def talk() -> None:
        for at in range(10):
            await chat.aappend(turn(at))
            await chat.aflush()

    for at in range(0 if twin else 10):
        chat.append(turn(at))
        chat.flush()
    if twin:
        asyncio.run(talk())

    told = [(event.kind, event.detail) for event in events if event.kind in {"refused", "paused"}]
    assert 1 == hangs.asked
    assert [
        ("refused", "raised TimeoutError: no summary within 0.01 seconds"),
        (
            "paused",
            "the summariser is not asked for 60 seconds: raised TimeoutError: no summary within 0.01 seconds",
        ),
    ] == told
    assert chat.stats().consolidations > 1
    assert "allergic to penicillin" in chat.context().head


def test_an_awaited_one_that_hangs_is_cancelled() -> None:
    """A coroutine is not left behind."""
    ended: list[str] = []

    async def hang(messages: list[dict[str, Any]]) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")
        return ""

    chat, events = memory(hang, summary_seconds=0.01)

    asyncio.run(chat.aappend([message for at in range(8) for message in turn(at)]))

    assert ["cancelled"] == ended
    assert ["refused", "paused", "consolidated"] == [event.kind for event in events]


def test_a_time_out_of_a_coroutine_of_its_own_is_told() -> None:
    """Without a limit of ours, what a client's time-out says is kept; on Python 3.10 it has a type of its own."""

    async def late(messages: list[dict[str, Any]]) -> str:
        raise asyncio.TimeoutError("the client gave up")

    chat, events = memory(late, summary_seconds=None)

    asyncio.run(chat.aappend([message for at in range(8) for message in turn(at)]))

    assert "raised TimeoutError: the client gave up" == events[0].detail


def test_who_is_waited_for_without_limit() -> None:
    """The extractive consolidator, and one that keeps its own time, are called on the caller's thread."""
    request = SummaryRequest((Message("user", (Part("text", SOURCE),)),), "", 40, words)
    seen: list[threading.Thread] = []

    class Keeps(FunctionConsolidator):
        keeps_time = True

    def summarize(messages: list[dict[str, Any]]) -> str:
        seen.append(threading.current_thread())
        return "Ines"

    def asked(consolidator: Consolidator) -> None:
        with pytest.raises(StopIteration):
            asking(consolidator, 9.0)(request).__await__().send(None)

    asked(Keeps(summarize))
    asked(ExtractiveConsolidator())

    assert [threading.current_thread()] == seen


def test_a_thread_of_ours_knows_its_callers_context() -> None:
    """Context variables, by which tracers know where they are, are there; so is what the function raises."""
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name")
    name.set("run 7")
    request = SummaryRequest((), "", 40, words)
    consolidator = FunctionConsolidator(lambda messages: name.get())

    assert "run 7" == asyncio.run(_answer(asking_async(consolidator, 9.0), request))
    with pytest.raises(ConnectionError):
        asyncio.run(_answer(asking_async(FunctionConsolidator(raises), 9.0), request))


async def _answer(ask: Callable[[SummaryRequest], Any], request: SummaryRequest) -> Any:
    return await ask(request)


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), "soon"])
def test_a_wrong_limit_is_a_wrong_option(wrong: Any) -> None:
    """It is a number of seconds above 0, or None."""
    with pytest.raises(ConfigurationError, match="summary_seconds"):
        SlideMem(max_tokens=300, summary_seconds=wrong)


# ------------------------------------------------------------------ the breaker


def test_a_dead_model_is_left_alone_and_tried_again() -> None:
    """Three spans, then a pause; one try after it, a longer pause; when it answers, all is as before."""
    now, dead, asked = [0.0], [True], [0]

    def summarize(messages: list[dict[str, Any]]) -> str:
        asked[0] += 1
        if dead[0]:
            raise ConnectionError("no route")
        return f"Ines: KV-7731-09, penicillin allergy, call {asked[0]}."

    chat, events = memory(summarize, clock=lambda: now[0], summary_seconds=None)

    def talk(turns: int) -> int:
        before = asked[0]
        for at in range(turns):
            chat.append(turn(at))
        return asked[0] - before

    assert 6 == talk(40)
    now[0] = 59.0
    assert 0 == talk(20)
    now[0] = 60.0
    assert 2 == talk(20)
    now[0] = 179.0
    assert 0 == talk(20)
    now[0] = 180.0
    dead[0] = False
    assert talk(20) > 3
    told = [event.detail for event in events if event.kind in {"paused", "resumed"}]
    assert [
        "the summariser is not asked for 60 seconds: raised ConnectionError: no route",
        "the summariser is not asked for 120 seconds: raised ConnectionError: no route",
        "the summariser answers again",
    ] == told


def test_an_answer_that_is_refused_is_an_answer() -> None:
    """A model whose summaries are refused for what they say is asked for each span, by every session."""
    asked: list[str] = []

    def summarize(messages: list[dict[str, Any]]) -> str:
        asked.append(str(messages[0]["content"]))
        return "The user and the assistant talked."

    chat, events = memory(summarize, clock=lambda: 0.0, summary_seconds=None)
    for at in range(40):
        chat.append(turn(at))

    spans = sum(event.kind == "consolidated" for event in events)
    assert 2 * spans <= len(asked)
    assert spans > 4
    assert [] == [event for event in events if event.kind == "paused"]


def test_sessions_of_a_memory_share_what_is_known_of_their_model() -> None:
    """A model that is dead for one session is not asked by another; another memory asks its own."""
    asked: list[str] = []

    def summarize(messages: list[dict[str, Any]]) -> str:
        asked.append(str(messages[0]["content"]))
        raise ConnectionError("no route")

    options: dict[str, Any] = {"counter": words, "archive_share": 0.4, "recall_share": 0, "clock": lambda: 0.0}
    one = SlideMem(max_tokens=300, consolidator=summarize, **options)
    for name in "abcdef":
        one.session(name).append([message for at in range(8) for message in turn(at)])
    other = SlideMem(max_tokens=300, consolidator=summarize, **options)
    other.session("a").append([message for at in range(8) for message in turn(at)])

    assert 6 + 2 == len(asked)


def test_one_tries_while_the_others_wait() -> None:
    """After a pause one span is let through until it has failed or the pause has passed again."""
    breaker = Breaker()
    pauses = [breaker.failed(0.0, timed_out=False) for _ in range(3)]

    let = [breaker.lets(now) for now in (59.9, 60.0, 60.1, 120.0)]

    assert [0.0, 0.0, 60.0] == pauses
    assert [False, True, False, True] == let


def test_pauses_end() -> None:
    """They grow to an hour and no further, and a clock that is set back does not make them longer."""
    breaker = Breaker()

    pauses = [breaker.failed(1e9, timed_out=True) for _ in range(9)]

    assert [60.0, 120.0, 3600.0] == [*pauses[:2], pauses[-1]]
    assert breaker.lets(0.0)
    assert (True, False) == (breaker.answered(), breaker.answered())
    assert breaker.lets(1e9)


def test_figures_tell_of_it() -> None:
    """Calls and refusals are counted as they were, the pause included."""
    chat, _ = memory(raises, summary_seconds=None)
    for at in range(40):
        chat.append(turn(at))

    stats: Stats = chat.stats()
    assert (6, 6) == (stats.summarizer_calls, stats.refusals)
    assert stats.consolidations > 3


# ------------------------------------------------------------------ languages

ENGLISH = "The train to Pune is at seven and it is the one that they have for this."
GERMAN = "Der Zug nach Pune ist um sieben, und das ist nicht der, mit dem sie auch für uns fahren."
FRENCH = "Le train pour Pune est dans une heure et les places ne sont pas avec vous sur la liste des places."
SPANISH = "El tren para los viajes es por las mañanas, pero está muy lleno y con la lluvia se para en las vías."


@pytest.mark.parametrize(
    "text, name",
    [
        (ENGLISH, "English"),
        (GERMAN, "German"),
        (FRENCH, "French"),
        (SPANISH, "Spanish"),
        ("QZ7M2L, KV-7731-09", ""),
        ("The train", ""),
        ("我对花生过敏", ""),
        ("", ""),
    ],
)
def test_a_language_is_named_where_it_is_clear(text: str, name: str) -> None:
    """A handful of small words tell it; codes and names do not."""
    assert name == language(text)


@pytest.mark.parametrize(
    "source, text, expected",
    [
        (ENGLISH, GERMAN, True),
        (GERMAN, FRENCH, True),
        (ENGLISH, ENGLISH, False),
        (ENGLISH, "Pune 7:00", False),
        (ENGLISH, "火车七点去浦那。", True),
        ("火车七点去浦那，我对花生过敏。", "The train to Pune goes at seven.", True),
        ("火车七点去浦那。BKG-7731", "BKG-7731, 浦那七点", False),
        ("電車は七時に出ます", "七時の電車、花生", False),
        ("電車は七時に出ます", "火车七点去浦那", True),
        ("ट्रेन सात बजे पुणे जाती है", "The train to Pune goes at seven.", True),
        ("Meet me at кафе Пушкин, they said, and bring Ines", "кафе Пушкин", False),
        ("1234", "5678", False),
        ("1234", "The train", False),
    ],
)
def test_a_summary_keeps_the_language(source: str, text: str, expected: bool) -> None:  # noqa: FBT001  # a row
    """Another script, or other small words, are another language; names and numbers are not."""
    assert expected == differ(source, text)


@pytest.mark.parametrize(
    "note", ["- phone: 0431-8850", "- दादी पानी नहीं पीतीं और पैदल चलती हैं", "- prohibition: 不能跑不能跳也不能提重物"]
)
def test_a_note_made_of_what_was_said_is_a_summary(note: str) -> None:
    """Without a fact's form, with a label in another language, in any script: what it says was said."""
    said = "दादी पानी नहीं पीतीं और पैदल चलती हैं, 不能跑不能跳也不能提重物, phone 0431-8850, Nikhil in Pune 99"
    chat, events = memory(of(note))

    for at in range(16):
        chat.append(turn(at, f"{said} today."))

    assert {"repeats an earlier segment"} >= {event.detail for event in events if event.kind == "refused"}
    assert note in chat.context().head
