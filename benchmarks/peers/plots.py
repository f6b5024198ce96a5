"""Decides what is drawn: the tokens of each prompt, re-used and new, ours beside a one-turn slide; and the soak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "slidemem"  # the same figures give the same file
mpl.rcParams["svg.fonttype"] = "none"
from matplotlib import pyplot as plt  # noqa: E402  # after its backend is chosen

from peers.memories import WITHOUT_RECALL  # noqa: E402  # the same

SLIDE: Final = "trim_messages"
REUSED: Final = "#9ecae1"
NEW: Final = "#d94801"
PROMPTS: Final = 200


def reuse(records: Mapping[str, Any], path: Path) -> None:
    """Tokens of the newest prompts of the chat, stacked: what a cache serves, and what is new."""
    figure, axes = plt.subplots(2, 1, figsize=(8, 4.6), sharex=True, sharey=True, layout="constrained")
    for axis, name in zip(axes, (WITHOUT_RECALL.name, SLIDE), strict=True):
        sizes: Sequence[tuple[int, float]] = records[name]["sizes"][:PROMPTS]
        turns = range(1, len(sizes) + 1)
        old = [same for _, same in sizes]
        new = [tokens - same for tokens, same in sizes]
        axis.stackplot(turns, old, new, colors=[REUSED, NEW], labels=["re-used", "new"], step="mid")
        share = records[name]["conversations"]["chat"]["reuse"]
        axis.set_title(f"{name}: {share:.0%} of all prompt tokens re-used", loc="left", fontsize=10)
        axis.set_ylabel("tokens")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(loc="upper left", frameon=False)
    axes[1].set_xlabel("turn")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def soak(looks: Sequence[Mapping[str, float]], path: Path) -> None:
    """Memory of the process, and time of a turn, over the messages that were stored."""
    figure, axes = plt.subplots(2, 1, figsize=(8, 4.6), sharex=True, layout="constrained")
    stored = [look["messages"] / 1_000 for look in looks]
    for axis, key, label in zip(
        axes, ("megabytes", "relative"), ("resident, MB", "time per turn,\nfirst look = 1"), strict=True
    ):
        axis.plot(stored, [look[key] for look in looks], color=NEW)
        axis.set_ylim(0, 1.3 * max(look[key] for look in looks))
        axis.set_ylabel(label)
        axis.spines[["top", "right"]].set_visible(False)
    axes[1].set_xlabel("thousand messages stored")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
