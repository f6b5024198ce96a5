from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from slidemem import ConfigurationError, Event, SlideMem
from slidemem.config import Options
from slidemem.usage import Corrections, corrected, learned

USABLE = 1000


@pytest.mark.parametrize(
    "factor, counted, reported, expected",
    [
        pytest.param(1.0, 500, 675, 1.35, id="up at once"),
        pytest.param(1.0, 500, 676, 1.4, id="rounded up, so that the next one fits"),
        pytest.param(1.0, 249, 675, 1.0, id="a small prompt tells of what is sent beside it"),
        pytest.param(1.0, 500, 5000, 2.0, id="no more than twice"),
        pytest.param(1.35, 500, 400, 1.3, id="down by one step"),
        pytest.param(1.35, 500, 660, 1.35, id="not down for less than two steps"),
        pytest.param(1.0, 500, 400, 1.0, id="a smaller count widens nothing"),
        pytest.param(1.2, 500, 0, 1.2, id="nothing was reported"),
        pytest.param(1.2, 0, 100, 1.2, id="nothing was counted"),
    ],
)
def test_the_factor_follows_a_report(factor: float, counted: int, reported: int, expected: float) -> None:
    """The factor goes up at once and down slowly, in steps, between 1 and 2."""
    assert expected == learned(factor, counted, reported, USABLE)


def test_shares_in_tokens_shrink_with_the_budget() -> None:
    """What is configured in tokens is in the provider's tokens; shares stay shares."""
    options = Options.of(max_tokens=2000, reserve_tokens=500, archive_share=300, recall_share=0.2)

    ours = corrected(options, 1.25)

    expected = (1600, 400, 240, 0.2)
    assert expected == (ours.max_tokens, ours.reserve_tokens, ours.archive_share, ours.recall_share)
    assert options is corrected(options, 1)


def test_models_are_learned_apart_and_the_dearest_counts() -> None:
    """One model's reports do not bring another's factor down."""
    corrections = Corrections(Options.of(max_tokens=USABLE))

    changes = [corrections.see("a", 500, 700), corrections.see("b", 500, 500), corrections.see("a", 500, 500)]

    assert [True, False, True] == changes
    assert (1.35, int(USABLE / 1.35)) == (corrections.factor, corrections.options.usable)


def said(turns: int) -> list[dict[str, Any]]:
    """A conversation."""
    return [
        {"role": role, "content": f"message {n} about a seat on the train to Pune, and how long it takes"}
        for n in range(turns)
        for role in ("user", "assistant")
    ]


def bench(**options: Any) -> tuple[Any, list[Event]]:
    """A session with forty turns, and what is told of it."""
    told: list[Event] = []
    memory = SlideMem(max_tokens=USABLE, counter="approximate", on_event=told.append, **options)
    chat = memory.session("s")
    chat.append(said(40))
    return chat, told


def test_the_next_context_fits_what_the_provider_counts() -> None:
    """After a report of 1.35 times as many, a context takes 1.35 times fewer of our tokens, and the event says so."""
    chat, told = bench(correct_counts=True)
    before = chat.context()

    chat.report(int(before.tokens * 1.35), before.messages)
    after = chat.context()

    assert 1.35 == chat.stats().token_factor
    assert int(USABLE / 1.35) == after.receipt.usable >= after.tokens
    assert before.tokens > after.tokens
    assert ["the model counts 1.35 tokens for one of ours: 740 are usable"] == [
        event.detail for event in told if event.kind == "corrected"
    ]


def test_all_sessions_of_a_memory_follow() -> None:
    """What one session learns of a model holds for the others, and for those that are open already."""
    memory = SlideMem(max_tokens=USABLE, counter="approximate", correct_counts=True)
    one, other = memory.session("one"), memory.session("other")
    one.append(said(20))
    prompt = one.context()

    one.report(prompt.tokens * 2, list(prompt.messages), model="m")

    assert USABLE // 2 == other.context().receipt.usable


def test_what_is_sent_beside_is_no_fault_of_the_counter() -> None:
    """Tokens of tools that the caller counted make no factor."""
    chat, _ = bench(correct_counts=True)
    prompt = chat.context()

    chat.report(prompt.tokens + 400, prompt.messages, beside=400)

    assert 1.0 == chat.stats().token_factor


def test_without_the_option_nothing_is_learned() -> None:
    """A report changes nothing where the memory was not asked to follow it."""
    chat, _ = bench()
    prompt = chat.context()

    chat.report(prompt.tokens * 2, prompt.messages)

    assert (1.0, prompt) == (chat.stats().token_factor, chat.context())


def test_a_factor_of_an_earlier_process_is_where_it_begins() -> None:
    """`token_factor` narrows the budget from the first context on, learning or not."""
    chat, _ = bench(token_factor=1.25)

    assert (1.25, 800) == (chat.stats().token_factor, chat.context().receipt.usable)


def test_a_stable_factor_leaves_the_prefix_alone() -> None:
    """Reports that say the same move nothing: a turn's context begins as the one before it did."""
    chat, _ = bench(correct_counts=True, token_factor=1.35, mode="manual")
    before = chat.context()

    for _ in range(3):
        chat.report(round(before.tokens * 1.33), before.messages)

    assert before == chat.context()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda chat: chat.report(-1, []),
        lambda chat: chat.report(1.5, []),
        lambda chat: chat.report(1, [], beside=True),
        lambda chat: SlideMem(max_tokens=10, token_factor=0.5),
        lambda chat: SlideMem(max_tokens=10, token_factor=3),
    ],
)
def test_wrong_numbers_are_refused(wrong: Callable[[Any], object]) -> None:
    """No number of tokens is negative, broken or a truth value, and no factor is outside 1 to 2."""
    chat, _ = bench(correct_counts=True)

    with pytest.raises(ConfigurationError):
        wrong(chat)
