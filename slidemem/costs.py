"""Decides what a session cost and saved, from tokens and prices, beside sending everything each time.

Prompts that begin as the one before them are taken to hit the provider's cache with what they share; so is a
conversation sent whole, which only grows. So the comparison is with the cheapest way of sending everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_MILLION: Final = 1_000_000


class Prices(BaseModel):
    """What tokens cost, for a million of them, in any currency.

    Attributes:
        input: of a prompt, new to the provider's cache.
        cached: of a prompt, served by the cache; None for the price of `input`.
        summary_input: that the summariser's model reads; None for the price of `input`.
        summary_output: that the summariser's model writes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: Price
    cached: Price | None = None
    summary_input: Price | None = None
    summary_output: Price = 0.0


@dataclass(frozen=True, slots=True)
class Used:
    """Tokens that a session used in this process.

    Attributes:
        prompts: of all contexts.
        reused: of those, what the context before began with.
        read: that the summariser's model read.
        wrote: that it wrote.
        everything: of all contexts, had each held the whole conversation.
        everything_reused: of those, what the one before began with.
    """

    prompts: int
    reused: int
    read: int
    wrote: int
    everything: int
    everything_reused: int


@dataclass(frozen=True, slots=True)
class Money:
    """What a session cost, in the currency of the prices; answers are left out, as they cost the same either way.

    Attributes:
        prompts: the contexts that were handed out.
        summaries: what the summariser's model read and wrote.
        everything: the same contexts, had each held the whole conversation.
    """

    prompts: float
    summaries: float
    everything: float

    @property
    def saved(self) -> float:
        """What remains of the saving once summaries are paid; less than 0 when sending everything is cheaper."""
        return self.everything - self.prompts - self.summaries

    @property
    def line(self) -> str:
        """It in one sentence, whichever way it went."""
        spent = f"{self.prompts + self.summaries:.4f} spent, {self.summaries:.4f} of it on summaries"
        if self.saved >= 0:
            return f"{spent}; sending everything would have cost {self.everything:.4f}: {self.saved:.4f} saved"
        return (
            f"{spent}; sending everything would have cost {self.everything:.4f}: at this budget that is cheaper, by "
            f"{-self.saved:.4f}"
        )


def money(used: Used, prices: Prices) -> Money:
    """What tokens cost at these prices."""
    cached = prices.input if prices.cached is None else prices.cached
    reads = prices.input if prices.summary_input is None else prices.summary_input

    def prompts(tokens: int, reused: int) -> float:
        return ((tokens - reused) * prices.input + reused * cached) / _MILLION

    return Money(
        prompts=prompts(used.prompts, used.reused),
        summaries=(used.read * reads + used.wrote * prices.summary_output) / _MILLION,
        everything=prompts(used.everything, used.everything_reused),
    )
