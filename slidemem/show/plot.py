"""Decides how prompts are drawn: tokens by zone against the budget, and what of them is new to a prompt cache.

Needs matplotlib, which is in the extra `notebooks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, Final, Protocol

from slidemem.compose import Zones
from slidemem.errors import MissingExtra
from slidemem.replay import Report
from slidemem.show.rows import COLORS, ZONES

try:
    from matplotlib import pyplot as plt
    from matplotlib.axes import Axes
except ImportError as missing:
    raise MissingExtra("drawing", "notebooks") from missing

_SIZE: Final = (9, 3.2)  # inches
_SLIDE: Final = "#808080"


class Prompt(Protocol):
    """What is drawn of a prompt: a step of a replay, or a context that a session remembers."""

    @property
    def index(self) -> int:
        """Messages in the transcript."""
        ...

    @property
    def zones(self) -> Zones:
        """Tokens by zone."""
        ...

    @property
    def usable(self) -> int:
        """Tokens that there were."""
        ...

    @property
    def covered(self) -> int:
        """Messages that the archive stood for."""
        ...


def zones(prompts: Sequence[Prompt], axes: Axes | None = None) -> Axes:
    """Draw prompts as bars of their zones below the budget; a dotted line where messages left for the archive.

    Args:
        prompts: in order: `Report.steps` of a replay, say.
        axes: where to draw; None draws a figure of its own.

    Returns:
        The axes.
    """
    drawn: Any = axes or _own()  # matplotlib's own types leave its arguments open
    places = range(1, len(prompts) + 1)
    floor = [0] * len(prompts)
    for name in ZONES:
        tokens = [getattr(prompt.zones, name) for prompt in prompts]
        if any(tokens):
            drawn.bar(places, tokens, bottom=floor, width=1.0, color=COLORS[name], label=name)
        floor = [below + own for below, own in zip(floor, tokens, strict=True)]
    if prompts:
        drawn.step([*places], [prompt.usable for prompt in prompts], where="mid", color=_SLIDE, label="budget")
    moved = [at for at, (one, two) in enumerate(pairwise(prompts), 1) if two.covered > one.covered]
    for nth, at in enumerate(moved):
        drawn.axvline(at + 0.5, color=_SLIDE, linestyle=":", label=None if nth else "consolidated")
    drawn.set_xlabel(_which(prompts))
    drawn.set_ylabel("tokens")
    if prompts:
        drawn.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return axes or drawn


def new_tokens(report: Report, axes: Axes | None = None) -> Axes:
    """Draw the tokens that a prompt cache has not seen, added up, beside those of a window that slides turn by turn.

    Args:
        report: of a replay.
        axes: where to draw; None draws a figure of its own.

    Returns:
        The axes.
    """
    drawn: Any = axes or _own()
    lines = (
        ("slidemem", COLORS["window"], "-", [step.prefix for step in report.steps]),
        ("one-turn slide", _SLIDE, "--", [step.slide for step in report.steps]),
    )
    for name, color, style, prefixes in lines:
        new = [*accumulate(prefix.tokens - prefix.reused for prefix in prefixes)]
        drawn.plot(range(1, len(new) + 1), new, color=color, linestyle=style, label=name)
    drawn.set_xlabel("prompt")
    drawn.set_ylabel("tokens new to a cache")
    drawn.legend(frameon=False)
    return axes or drawn


def _own() -> Axes:
    _, axes = plt.subplots(figsize=_SIZE, layout="constrained")  # pyright: ignore[reportUnknownMemberType]
    return axes


def _which(prompts: Sequence[Prompt]) -> str:
    if not prompts:
        return "no context has been read in this process yet"
    first, last = prompts[0].index, prompts[-1].index
    return f"prompt: the first after {first:,} messages, the last after {last:,}"
