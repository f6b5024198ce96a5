"""What a session cost and saved, beside sending everything."""

from __future__ import annotations

from typing import Any

import pytest

from slidemem import Money, Prices, SlideMem
from slidemem.costs import Used, money
from slidemem.errors import ConfigurationError

USED = Used(prompts=1_000, reused=800, read=300, wrote=40, everything=5_000, everything_reused=4_500)


def words(text: str) -> int:
    """Words of a text."""
    return len(text.split())


def talked(turns: int, **options: Any) -> Any:
    """The figures of a talk of twenty words a turn, each read once, in 200 words."""
    mem = SlideMem(max_tokens=200, counter=words, archive_share=0.2, recall_share=0, **options)
    chat = mem.session("s")
    for at in range(turns):
        chat.append({"role": "user", "content": f"Is seat {at} to Pune free, or is it taken?"})
        chat.context()
        chat.append({"role": "assistant", "content": f"It is free, and I have booked {at} for you now."})
    return chat.stats()


def test_tokens_become_money() -> None:
    """Cached tokens at their own price, the summariser's at theirs, and the saving net of them."""
    paid = money(USED, Prices(input=10, cached=1, summary_input=2, summary_output=5))

    assert Money(prompts=0.0028, summaries=0.0008, everything=0.0095) == paid
    assert 0.0059 == pytest.approx(paid.saved)


def test_prices_that_are_left_out() -> None:
    """Without a cache its tokens cost what others do, and a summariser reads at the price of prompts."""
    assert Money(prompts=0.01, summaries=0.003, everything=0.05) == money(USED, Prices(input=10))


def test_the_line_is_honest_either_way() -> None:
    """It says what was saved, and by how much sending everything would have been cheaper."""
    saved, lost = Money(1.0, 0.5, 4.0), Money(1.0, 0.5, 1.25)

    assert (
        "1.5000 spent, 0.5000 of it on summaries; sending everything would have cost 4.0000: 2.5000 saved"
        == saved.line
    )
    assert (
        "1.5000 spent, 0.5000 of it on summaries; sending everything would have cost 1.2500: at this budget that is "
        "cheaper, by 0.2500"
    ) == lost.line
    assert -0.25 == lost.saved


def test_a_session_tells_its_money() -> None:
    """A long talk without a cache saves, one that fits its budget costs what sending everything does."""
    long, short = talked(100, prices={"input": 1}).money, talked(5, prices={"input": 1}).money

    assert long.saved > long.prompts
    assert sum(21 * turns + 10 for turns in range(100)) == pytest.approx(long.everything * 1_000_000)
    assert (0.0, 0.0) == (short.saved, short.summaries)


def test_a_cheap_cache_may_make_everything_cheaper() -> None:
    """With summaries that cost more than they save the line says so."""
    paid = talked(
        40,
        prices={"input": 1, "cached": 0.01, "summary_output": 500},
        consolidator=lambda messages: str(messages[0]["content"]),
    ).money

    assert paid.saved < 0
    assert "at this budget that is cheaper" in paid.line


def test_without_prices_there_is_no_money() -> None:
    """Nothing is made up."""
    assert talked(3).money is None


def test_a_summariser_that_tells_its_tokens_is_paid_for_those() -> None:
    """What its provider counted, not what we did; the extractive one costs nothing."""

    class Tells:
        def summarize(self, request: Any) -> str:
            request.used(1_000, 10)
            return request.messages[0].text

        async def asummarize(self, request: Any) -> str:
            return self.summarize(request)

    stats = talked(40, prices={"input": 1, "summary_output": 10}, consolidator=Tells())

    assert stats.summarizer_calls * (1_000 + 100) == pytest.approx(stats.money.summaries * 1_000_000)
    assert 0 == talked(40, prices={"input": 1}).money.summaries


@pytest.mark.parametrize("wrong", [{}, {"input": -1}, {"input": "much"}, {"inputs": 1}, {"input": 1, "x": 2}, 3])
def test_wrong_prices_are_wrong_options(wrong: Any) -> None:
    """Each is a number of 0 or more, under a name that there is."""
    with pytest.raises(ConfigurationError, match="prices"):
        SlideMem(max_tokens=300, prices=wrong)


def test_presets_are_as_documented() -> None:
    """The shares of the documents' table are what the options come to."""
    presets = {
        (): (28, 50),
        (("archive_share", 0.35), ("recall_share", 0.15)): (25, 45),
        (("archive_share", 0.1), ("recall_share", 0.1), ("compact_to", 0.4)): (32, 72),
        (("archive_share", 0.15), ("recall_share", 0.45)): (20, 36),
    }

    for preset, window in presets.items():
        options = SlideMem(max_tokens=10_000, counter=words, **dict(preset)).options
        ends = (options.compact_to * options.allotment, options.compact_at * options.allotment)
        assert window == tuple(round(end / 100) for end in ends)
