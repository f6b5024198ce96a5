"""Decides how many of a provider's tokens one of ours is, from the usage that replies report.

A model without a public tokenizer is counted by another one's. What its provider counts of a prompt is the truth, so
the budget shrinks by how much that is more. Counts, and what is stored, stay as they are. A report is compared with
the one prompt that it is of, never with what the session holds later: after a consolidation it would say nothing.
"""

from __future__ import annotations

import math
import threading
from typing import Final

from slidemem.config import MOST_FACTOR, Options

_STEP: Final = 0.05  # a budget that moved with each reply would move the window's start, and with it the prefix
_TELLING: Final = 0.25  # share of usable: in a smaller prompt, what is sent beside the conversation tells most


def learned(factor: float, counted: int, reported: int, usable: int) -> float:
    """The next factor: up at once, so that the next prompt fits; down by one step at a time.

    Args:
        factor: the provider's tokens for one of ours, as known so far.
        counted: what we counted of a prompt, in tokens.
        reported: what the provider counted of it, in tokens.
        usable: tokens that a context may take.

    Returns:
        1 to 2, in steps of 0.05: a report below our count widens nothing, one beyond twice is of something else.
    """
    if counted < _TELLING * usable or reported <= 0:
        return factor
    seen = min(max(reported / counted, 1.0), MOST_FACTOR)
    steps, known = math.ceil(round(seen / _STEP, 6)), round(factor / _STEP)
    if steps < known - 1:
        steps = known - 1
    elif steps < known:
        return factor
    return round(steps * _STEP, 2)


class Corrections:
    """What a memory has learned of its models, and the options that follow from it.

    Args:
        options: as they were configured.

    Attributes:
        options: with the budget in our tokens.
        factor: the largest of any model's: who answers next is not known when a context is read.
    """

    def __init__(self, options: Options) -> None:
        self._configured = options
        self._factors: dict[str, float] = {}
        self._lock = threading.Lock()
        self.factor = options.token_factor
        self.options = corrected(options, self.factor)

    def see(self, model: str, counted: int, reported: int) -> bool:
        """Take a report, and tell whether it changed the budget.

        Args:
            model: who reports; each is learned apart.
            counted: what we counted of the prompt, in tokens.
            reported: what the provider counted of it, in tokens.
        """
        with self._lock:
            known = self._factors.get(model, self._configured.token_factor)
            self._factors[model] = learned(known, counted, reported, self.options.usable)
            before, self.factor = self.factor, max(self._factors.values())
            if before != self.factor:
                self.options = corrected(self._configured, self.factor)
            return before != self.factor


def corrected(options: Options, factor: float) -> Options:
    """Options whose tokens are ours, where a provider makes `factor` of one; themselves for 1."""
    if factor == 1:
        return options
    fewer = {name: _fewer(getattr(options, name), factor) for name in ("archive_share", "recall_share")}
    fewer |= {
        "max_tokens": max(1, int(options.max_tokens / factor)),
        "reserve_tokens": int(options.reserve_tokens / factor),
    }
    return Options.of(**{**{name: getattr(options, name) for name in options.model_fields_set}, **fewer})


def _fewer(share: float, factor: float) -> float:
    """A share as it is; tokens by the factor."""
    return int(share / factor) if isinstance(share, int) else share
