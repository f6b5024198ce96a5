"""Decides what is told of a context, a row for each thing that it holds; how a row looks is others'.

What people and tools said stays text: what a terminal or a page would obey is written out. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from slidemem.blocks import blocks, readable
from slidemem.compose import Context, Zones
from slidemem.messages import Message

ZONES: Final = ("system", "pinned", "archive", "window", "recall")  # in the order of a prompt
COLORS: Final = {  # each stands out from white and from black at three to one or more
    "system": "#8e6bbf",
    "pinned": "#d1495b",
    "archive": "#b07d12",
    "window": "#2e8b57",
    "recall": "#2a8fbd",
}
_JOINERS: Final = "\u200c\u200d"  # Devanagari and emoji need them
_ROLES: Final = {"head": "archive", "recall": "recall", "system": "system"}
_KINDS: Final = {"clamp": "clamped", "stub": "stub", "anchor": "anchor", "note": "note", "mended": "mended"}


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that a context holds.

    Attributes:
        number: `seq` of the messages that it stands for, "" for none.
        role: of the message; `head` and `recall` are blocks of ours in front of one.
        tokens: of it.
        how: `kept`, or what was done to it.
        text: what it says, unshortened, as it came.
    """

    number: str
    role: str
    tokens: int
    how: str
    text: str

    @property
    def zone(self) -> str:
        """Where it stands."""
        return _ROLES.get(self.role, "window")


def rows(context: Context) -> Iterator[Row]:
    """A row a message, in order; head and quotes, which stand in front of a message's text, have their own."""
    seqs = iter(context.receipt.shown)
    zones = context.zones
    for message, tokens in zip(context.messages, context.costs, strict=True):
        said, own_tokens = blocks(message), tokens
        ours = (("head", said.head, zones.pinned + zones.archive), ("recall", said.quotes, zones.recall))
        for role, block, composed in ours:
            if block:
                yield Row("", role, composed, "composed", block.partition("\n")[2])
                own_tokens -= composed
        own = _own(message, seqs)
        if own or not (said.head or said.quotes):
            yield Row(numbered(own), message.role, own_tokens, _how(message), readable(message))


def numbered(seqs: Sequence[int]) -> str:
    """The first and the last of some places, as `3-5`; "" for none."""
    return "" if not seqs else str(seqs[0]) if len(seqs) == 1 else f"{seqs[0]}-{seqs[-1]}"


def used(zones: Zones) -> list[tuple[str, int]]:
    """The zones that hold anything, in the order of a prompt, with their tokens."""
    return [(name, tokens) for name, tokens in asdict(zones).items() if tokens]


def printable(text: str) -> str:
    r"""The text in one line, with every control character written out, as `\x1b` for example."""
    return written_out(" ".join(text.split()))


def written_out(text: str, but: str = "") -> str:
    """The text with every control character written out, but some; those that turn its direction among them."""
    kept = _JOINERS + but
    return "".join(char if char.isprintable() or char in kept else ascii(char)[1:-1] for char in text)


def shortened(text: str, length: int) -> str:
    """The beginning of a text, an ellipsis at its end where it is longer than so many characters."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def receipt_lines(context: Context) -> list[str]:
    """What a context is made of, and what it leaves out, in sentences."""
    receipt = context.receipt
    lines = [f"Record revision {receipt.revision}; {_are(receipt.covered, 'archived')}."]
    shown = f"{_are(len(receipt.shown), 'shown')}{f' ({numbered(receipt.shown)})' if receipt.shown else ''}"
    parts = [
        shown,
        f"{len(receipt.clamped):,} of them clamped" if receipt.clamped else "",
        f"{len(receipt.recalled):,} old ones quoted" if receipt.recalled else "",
        f"{receipt.left_out:,} left out for now" if receipt.left_out else "",
        f"{receipt.dropped_lines:,} archive lines did not fit" if receipt.dropped_lines else "",
    ]
    lines.append("; ".join(part for part in parts if part) + ".")
    if receipt.open:
        lines.append("It waits for results of tools, so it is no prompt yet.")
    return lines


def _are(count: int, what: str) -> str:
    return f"1 message is {what}" if count == 1 else f"{count:,} messages are {what}"


def _own(message: Message, seqs: Iterator[int]) -> list[int]:
    """The messages of the transcript that a context's message stands for."""
    if message.mark is None:
        return [] if message.role == "system" else [next(seqs)]
    return [next(seqs) for _ in message.mark.of]


def _how(message: Message) -> str:
    kinds = message.mark.kinds if message.mark else ()
    return ", ".join(_KINDS[kind] for kind in kinds if kind in _KINDS) or "kept"
