import json
from dataclasses import replace
from importlib.resources import files
from itertools import pairwise, takewhile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slidemem import BudgetTooSmall, ConfigurationError, Context, Hit, InvalidMessage, Mark, Message, Part
from slidemem.replay import FactCheck, Prefix, Report, Step, blocks, readable, replay
from slidemem.transcripts import Fact, TranscriptFile, parse_transcript

SAMPLE = "travel_support.json"
BUDGET = 4000


def said(role: str, text: str, **more: Any) -> dict[str, Any]:
    """Return a message."""
    return {"role": role, "content": text, **more}


def calling(*ids: str) -> dict[str, Any]:
    """Return an assistant message that calls the tool `look` once for each id."""
    calls = [{"id": i, "type": "function", "function": {"name": "look", "arguments": '{"at": "sky"}'}} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(call_id: str, text: str = "blue") -> dict[str, Any]:
    """Return the result of a call."""
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def chat(turns: int, words: int = 10) -> list[dict[str, Any]]:
    """Return a conversation of short turns, no two messages alike."""
    filler = " word" * words
    return [
        said(role, f"{role} says {turn}-{role[0] * 3}{filler}")
        for turn in range(turns)
        for role in ("user", "assistant")
    ]


def run(messages: list[dict[str, Any]], *facts: Fact, **options: Any) -> Report:
    """Replay under 10,000 characters unless told otherwise, a token being a character."""
    return replay(messages, facts, **{"max_tokens": 10_000, "counter": len, "clock": lambda: 0.0, **options})


def fact(needle: str, needed_in: int, said_in: int = 1) -> Fact:
    """Return a fact."""
    return Fact(said_in, needed_in, f"It is {needle}.", needle)


@pytest.fixture(scope="module")
def sample() -> TranscriptFile:
    """The conversation that ships with slidemem."""
    return parse_transcript((files("slidemem") / "data" / SAMPLE).read_bytes(), SAMPLE)


@pytest.fixture(scope="module")
def demo(sample: TranscriptFile) -> Report:
    """The report of the demo."""
    return replay(sample.messages, sample.facts, max_tokens=BUDGET, counter="approximate", clock=lambda: 0.0)


# ------------------------------------------------------------------ when a context is read


@pytest.mark.parametrize(
    "messages, expected",
    [
        pytest.param(chat(2), [(1, 1), (3, 2), (4, 2)], id="turns"),
        pytest.param(chat(2)[:3], [(1, 1), (3, 2)], id="ends-with-the-user"),
        pytest.param(
            [said("user", "a"), calling("x", "y"), result("y"), result("x"), said("assistant", "b")],
            [(1, 1), (4, 1), (5, 1)],
            id="parallel-calls",
        ),
        pytest.param(
            [said("user", "a"), calling("x"), said("user", "b"), result("x"), said("assistant", "c")],
            [(1, 1), (4, 2), (5, 2)],
            id="late-result",
        ),
        pytest.param([said("user", "a"), calling("x")], [(1, 1)], id="waits-at-the-end"),
        pytest.param([said("user", "a"), calling("x"), said("assistant", "b")], [(1, 1), (3, 1)], id="waits"),
        pytest.param([said("system", "s"), said("assistant", "hi"), said("user", "a")], [(3, 1)], id="greeting"),
        pytest.param([said("assistant", "a"), said("assistant", "b")], [], id="no-user"),
        pytest.param([], [], id="nothing"),
    ],
)
def test_reads_a_context_when_a_model_would_be_called(
    messages: list[dict[str, Any]], expected: list[tuple[int, int]]
) -> None:
    """Prompts stand before the assistant's messages and at the end, where nothing waits and a user has spoken."""
    actual = [(step.index, step.turn) for step in run(messages).steps]

    assert expected == actual


def test_tells_each_step_as_it_happens() -> None:
    """The callback gets the steps that the report holds, in order."""
    told: list[Step] = []
    report = run(chat(5), on_step=told.append)
    actual = tuple(told)
    expected = report.steps

    assert expected == actual


def test_a_bad_message_stops_it_before_it_starts() -> None:
    """A message that cannot be read is named by its place, and no step is told."""
    told: list[Step] = []
    with pytest.raises(InvalidMessage) as caught:
        run([*chat(1), said("robot", "x")], on_step=told.append)
    actual = (caught.value.index, told)
    expected = (2, [])

    assert expected == actual


@pytest.mark.parametrize(
    "options, error",
    [
        pytest.param({"max_tokens": 5}, BudgetTooSmall, id="budget"),
        pytest.param({"max_tokens": 0}, ConfigurationError, id="max_tokens"),
        pytest.param({"bogus": 1}, ConfigurationError, id="unknown"),
        pytest.param({"counter": 5}, ConfigurationError, id="counter"),
    ],
)
def test_wrong_options_raise(options: dict[str, Any], error: type[Exception]) -> None:
    """What `SlideMem` refuses, and what does not fit, reaches the caller."""
    with pytest.raises(error) as caught:
        run([said("system", "too long for five"), *chat(1)], **options)
    actual = type(caught.value)
    expected = error

    assert expected == actual


# ------------------------------------------------------------------ what left, and what happened


def test_tells_what_left_and_what_happened() -> None:
    """What a prompt shows no longer is what was consolidated since the one before."""
    report = run(chat(30), max_tokens=1000)
    actual = [list(step.left) for step in report.steps if step.left]
    events = [event for step in report.steps for event in step.events if event.kind == "consolidated"]
    expected = [list(range(event.start, event.end)) for event in events]

    assert (expected, len(events) > 2, report.consolidations) == (actual, True, len(events))


def test_what_is_left_out_for_now_is_told_too() -> None:
    """In manual mode nothing is consolidated, and what the window shows no longer is counted as left out."""
    report = run(chat(30), max_tokens=1000, mode="manual")
    last = report.steps[-1]
    actual = (report.consolidations, last.covered, last.left_out + last.shown, any(s.left for s in report.steps))
    expected = (0, 0, 60, True)

    assert expected == actual


def test_figures_of_a_prompt_add_up() -> None:
    """Every prompt's zones add up to its tokens, and its messages to all that were said so far."""
    report = run([said("system", "Be kind."), *chat(30)], max_tokens=1000)
    actual = [
        (z.system + z.pinned + z.archive + z.window + z.recall, s.shown + s.left_out + s.covered + (not s.covered))
        for s in report.steps
        for z in [s.zones]
    ]
    expected = [(s.tokens, s.index) for s in report.steps]

    assert expected == actual


# ------------------------------------------------------------------ prefixes


def test_a_growing_list_is_a_prefix_of_the_next() -> None:
    """While nothing leaves, a prompt begins with all of the prompt before, for both windows."""
    report = run([said("user", "a" * 10), said("assistant", "b" * 20), said("user", "c" * 5)])
    actual = [(step.prefix, step.slide) for step in report.steps]
    expected = [(Prefix(10, 0, 0),) * 2, (Prefix(35, 10, 10),) * 2]

    assert expected == actual


def test_a_message_that_differs_inside_counts_in_part() -> None:
    """The characters that two first messages share count, by their part of the message's tokens."""
    messages = [said("user", "x" * 60 + "1" * 40), said("assistant", "b" * 30), said("user", "x" * 60 + "2" * 40)]
    step = run(messages, max_tokens=165).steps[-1]
    rendered = len("user  \n") + 100
    actual = (step.slide, step.slide_shown)
    expected = (Prefix(100, 100 * (rendered - 40) // rendered, 0), 1)

    assert expected == actual


def alike(before: str, now: str) -> int:
    """Return how many characters two texts begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, now, strict=False)))


def test_re_use_is_that_of_whole_prompts_as_texts(demo: Report, sample: TranscriptFile) -> None:
    """Message by message comes to what the common prefix of two whole prompts comes to, within three points."""
    prompts = [json.dumps(newest(list(sample.messages[: step.index]), step.slide_shown)) for step in demo.steps]
    shared = sum(alike(before, now) for before, now in pairwise(prompts))
    actual = abs(shared / sum(map(len, prompts)) - demo.slide_reuse) < 0.03
    expected = True

    assert expected == actual


def newest(messages: list[Message], count: int) -> list[list[str]]:
    """Return role and text of the system prompt and the newest messages."""
    system = [message for message in messages[:1] if message.role == "system"]
    window = messages[len(messages) - count :]
    return [[message.role, readable(message)] for message in (*system, *window)]


# ------------------------------------------------------------------ the one-turn slide


def slid(turns: list[list[int]], room: int) -> list[int]:
    """Return the costs that are left when whole turns are dropped, oldest first, until the rest fits."""
    while turns and sum(map(sum, turns)) > room:
        turns = turns[1:]
    return [cost for turn in turns for cost in turn]


@settings(max_examples=60)
@given(
    st.integers(0, 30),
    st.lists(st.lists(st.integers(5, 60), min_size=2, max_size=5), min_size=1, max_size=12),
    st.integers(150, 300),
)
def test_the_slide_drops_whole_turns_until_the_rest_fits(system: int, turns: list[list[int]], usable: int) -> None:
    """The sliding window is what dropping turns one by one leaves, for every prompt of any conversation."""
    messages = [said("system", "s" * system)] if system else []
    for user, *answers in turns:
        messages += [said("user", "u" * user), *(said("assistant", "a" * answer) for answer in answers)]
    expected = [
        (system + sum(left), len(left))
        for at, turn in enumerate(turns)
        for rounds in range(1, len(turn) + (at == len(turns) - 1))
        for left in [slid([*turns[:at], turn[:rounds]], usable - system)]
    ]
    actual = [(step.slide.tokens, step.slide_shown) for step in run(messages, max_tokens=usable).steps]

    assert expected == actual


def test_a_later_system_message_slides_with_its_turn() -> None:
    """Only leading system messages always stay; one that comes later leaves with the turn it stands in."""
    messages = [said("system", "s" * 10), said("user", "u" * 50), said("system", "late" * 5), *chat(2)[1:3]]
    report = run([*messages, said("user", "v" * 100)], max_tokens=210)
    actual = [(step.slide.tokens, step.slide_shown) for step in report.steps]
    words = len(chat(1)[0]["content"])
    expected = [(80, 2), (110 + words, 2)]

    assert expected == actual


def test_a_turn_that_does_not_fit_starves_the_slide() -> None:
    """Where not even the newest turn fits, the sliding window is empty, also in the rounds that follow."""
    long = [said("user", "long " * 100), calling("x"), result("x"), said("assistant", "Well.")]
    report = run([*chat(1), *long, *chat(2)[2:]], max_tokens=400)
    actual = [step.slide_shown for step in report.steps]
    expected = [1, 0, 0, 1, 2]

    assert (expected, 2) == (actual, report.slide_starved)


# ------------------------------------------------------------------ facts


def test_finds_a_fact_in_the_window() -> None:
    """What is still verbatim is found, letter case aside, in both windows."""
    messages = [said("user", "Call me STRASSE."), *chat(2)[1:]]
    report = run(messages, fact("Straße", 2))
    actual = report.facts
    expected = (FactCheck(fact("Straße", 2), 3, "window", in_slide=True),)

    assert expected == actual


def test_finds_a_fact_in_a_call() -> None:
    """The arguments of a call are what a model reads, too."""
    messages = [said("user", "a"), calling("x"), result("x"), said("assistant", "b"), said("user", "c")]
    report = run(messages, fact('"sky"', 2))
    actual = [(check.place, check.in_slide) for check in report.facts]
    expected = [("window", True)]

    assert expected == actual


def test_finds_a_fact_in_the_archive() -> None:
    """What a summary holds of a message that has left the window is found there, and the slide has lost it."""
    idle = [said(role, "and so on and so forth, as ever, and then some") for role in ("assistant", "user")]
    messages = [said("user", "My code is QX-4471."), *idle * 50]
    report = run(messages, fact("qx-4471", 51), max_tokens=4000, consolidator=lambda _: "code: QX-4471")
    actual = [(check.place, check.in_slide) for check in report.facts]
    expected = [("archive", False)]

    assert expected == actual


def test_finds_a_fact_among_the_pins() -> None:
    """What the user asked to remember is found pinned."""
    messages = [said("user", "Remember this: the code is QX-4471."), *chat(30)]
    report = run(messages, fact("QX-4471", 31), max_tokens=1000, consolidator=None)
    actual = ([(check.place, check.in_slide) for check in report.facts], [pin.text for pin in report.pins])
    expected = ([("pinned", False)], ["the code is QX-4471."])

    assert expected == actual


def test_finds_a_fact_in_the_system_prompt() -> None:
    """What only the system prompt says is found there, and so it is by the slide."""
    report = run([said("system", "You are Disha."), *chat(2)], fact("Disha", 2))
    actual = [(check.place, check.in_slide) for check in report.facts]
    expected = [("system", True)]

    assert expected == actual


def test_misses_a_fact_that_is_gone() -> None:
    """What left both windows and is not archived is missing."""
    messages = [said("user", "My code is QX-4471."), *chat(30)]
    report = run(messages, fact("QX-4471", 31), max_tokens=1000, consolidator=None)
    actual = [(check.place, check.in_slide) for check in report.facts]
    expected = [(None, False)]

    assert expected == actual


def test_a_turn_without_a_prompt_is_answered_by_the_next_one() -> None:
    """Two user messages in a row are answered at once, so the prompt of the second is searched."""
    messages = [said("user", "It is blue."), said("user", "And?"), said("user", "Well?"), said("assistant", "Yes.")]
    report = run(messages, fact("blue", 2))
    actual = [check.index for check in report.facts]
    expected = [3]

    assert expected == actual


def test_a_fact_whose_turn_comes_to_no_prompt_is_not_judged() -> None:
    """A fact that is needed after the last prompt is left out of the report."""
    report = run([said("assistant", "Blue.")], fact("blue", 1))
    actual = report.facts
    expected = ()

    assert expected == actual


# ------------------------------------------------------------------ a context's text


HEAD = "<earlier-conversation>\nNotes\n</earlier-conversation>"
QUOTES = "<earlier-conversation>\nQuotes\n</earlier-conversation>"


@pytest.mark.parametrize(
    "parts, kinds, expected",
    [
        pytest.param(["Hi"], None, ("", "", "Hi"), id="no-mark"),
        pytest.param([f"{HEAD}\n\nHi"], ("clamp",), ("", "", f"{HEAD}\n\nHi"), id="said-by-the-user"),
        pytest.param([f"{HEAD}\n\nHi\nyou"], ("head",), (HEAD, "", "Hi\nyou"), id="merged"),
        pytest.param([HEAD, "Hi"], ("head",), (HEAD, "", "Hi"), id="part"),
        pytest.param([HEAD], ("head",), (HEAD, "", ""), id="own-message"),
        pytest.param([f"{HEAD}\n\n{HEAD}"], ("head",), (HEAD, "", HEAD), id="quoted-again"),
        pytest.param([f"{HEAD}\n\n{QUOTES}\n\nHi"], ("head", "recall"), (HEAD, QUOTES, "Hi"), id="both"),
        pytest.param([f"{QUOTES}\n\nHi"], ("recall",), ("", QUOTES, "Hi"), id="quotes"),
    ],
)
def test_splits_what_is_ours_and_own_text(
    parts: list[str], kinds: tuple[str, ...] | None, expected: tuple[str, str, str]
) -> None:
    """Head and quotes are what we put in front of a message, however it was put there."""
    mark = None if kinds is None else Mark(kinds)
    actual = blocks(Message("user", tuple(Part("text", text) for text in parts), mark=mark))

    assert expected == actual


# ------------------------------------------------------------------ the report


def test_a_report_of_no_prompt_has_figures_too() -> None:
    """Without a single prompt all figures are zero."""
    report = run([])
    actual = (report.worst_tokens, report.over_budget, report.reuse, report.slide_reuse, report.facts_held)
    expected = (0, 0, 0.0, 0.0, 0)

    assert expected == actual


def test_a_report_becomes_json(demo: Report) -> None:
    """The JSON object holds every step and the totals, and survives a round trip."""
    actual = json.loads(json.dumps(demo.to_json()))
    expected = {
        "prompts": len(demo.steps),
        "prefix_reuse": round(demo.reuse, 4),
        "facts_held": demo.facts_held,
        "steps": len(demo.steps),
        "last": demo.final.to_openai()[-1],
    }
    picked = {
        **{key: actual[key] for key in ("prompts", "prefix_reuse", "facts_held")},
        "steps": len(actual["steps"]),
        "last": actual["final"]["messages"][-1],
    }

    assert expected == picked


def test_the_demo_never_passes_its_budget(demo: Report) -> None:
    """No prompt of the sample conversation takes more than 4,000 tokens, and the largest uses most of them."""
    actual = (demo.over_budget, 3_000 < demo.worst_tokens <= BUDGET, max(s.tokens for s in demo.steps) <= BUDGET)
    expected = (0, True, True)

    assert expected == actual


def test_the_demo_consolidates_and_loses_nothing(demo: Report) -> None:
    """Every message but the system prompt is shown, left out or archived at the end."""
    receipt = demo.final.receipt
    actual = (demo.consolidations >= 5, len(receipt.shown) + receipt.left_out + receipt.covered)
    expected = (True, demo.messages)

    assert expected == actual


def test_the_demo_re_uses_more_than_the_slide(demo: Report) -> None:
    """Batches leave a longer prefix than turns do, at fewer tokens in all."""
    actual = (
        demo.reuse > demo.slide_reuse + 0.05,
        sum(step.tokens for step in demo.steps) < sum(step.slide.tokens for step in demo.steps),
        all(step.prefix.reused_whole <= step.prefix.reused <= step.prefix.tokens for step in demo.steps),
    )
    expected = (True, True, True)

    assert expected == actual


def test_the_demo_judges_every_fact(demo: Report, sample: TranscriptFile) -> None:
    """Each fact is judged once, at the first prompt of its turn, and what was to be remembered is pinned."""
    first = {turn: min(s.index for s in demo.steps if s.turn == turn) for turn in range(1, demo.turns + 1)}
    pinned = [check.fact.needle for check in demo.facts if check.place == "pinned"]
    actual = (sorted(check.fact.text for check in demo.facts), {c.fact.text: c.index for c in demo.facts}, pinned)
    expected = (
        sorted(fact.text for fact in sample.facts),
        {fact.text: first[fact.needed_in] for fact in sample.facts},
        ["MA-5583-2071"],
    )

    assert expected == actual


def test_a_question_at_the_end_changes_no_step() -> None:
    """What a question finds is told besides: hits with their place, and the context that is asked it."""
    said = [
        {"role": role, "content": f"{text} {turn}"}
        for turn, pair in enumerate([("The key is green", "I see"), *[("Tell me of it " * 9, "well " * 30)] * 40])
        for role, text in zip(("user", "assistant"), pair, strict=True)
    ]

    plain, asked = (run(said, query=query) for query in (None, "What colour is the key, green?"))

    told = asked.to_json()["query"]
    assert "query" not in plain.to_json()
    assert plain.steps == asked.steps
    assert [0, "recall"] == [told["found"][0][name] for name in ("seq", "shown")]
    assert {"seq", "score", "shown", "text"} == told["found"][0].keys()
    assert told["tokens"] == asked.answer.context.tokens if asked.answer else False
    assert "The key is green 0" in "".join(str(message["content"]) for message in told["messages"])


def test_a_line_of_the_archive_is_found_where_it_stands() -> None:
    """A line is shown by the head, by the quotes, or not at all."""
    said = [
        {"role": role, "content": f"{text} {turn}"}
        for turn in range(60)
        for role, text in (("user", f"My locker number {turn} has the code {turn * 7919}."), ("assistant", "ok " * 9))
    ]

    answer = run(said, query="Which lockers have a code?", max_tokens=3000).answer
    assert answer
    line = Hit("", 1.0, "replay", None, None, None, 0.0)
    texts = [answer.context.head.splitlines()[2].removeprefix("- "), quoted(answer.context), "user: nobody said so"]

    assert ["archive", "recall", None] == [answer.place(replace(line, text=text)) for text in texts]


def quoted(context: Context) -> str:
    """The last line that a context quotes."""
    quotes = next(blocks(message).quotes for message in reversed(context.messages) if blocks(message).quotes)
    return quotes.splitlines()[-2]
