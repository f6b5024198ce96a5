"""Decides how one context, and one session, look in a terminal.

Colour only repeats what glyphs and words say, so that a pipe and `NO_COLOR` lose nothing. Needs rich, which is in
the extra `cli`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from slidemem.blocks import blocks
from slidemem.compose import Context, Zones
from slidemem.overview import Overview
from slidemem.show.html import older_rows
from slidemem.show.rows import Row, printable, receipt_lines, rows, shortened, used
from slidemem.show.tell import segment_line, sentences, title_of, unseen

STYLES: Final = {
    "system": "magenta",
    "pinned": "red",
    "archive": "yellow",
    "window": "green",
    "recall": "cyan",
    "free": "bright_black",
}
_BEGINNING: Final = 100  # characters of a message
_WIDEST_BAR: Final = 80
_ROWS: Final = 30  # the newest rows of a context


@dataclass(frozen=True, slots=True)
class Glyphs:
    """What is drawn with: one glyph a zone, distinct without colour."""

    system: str
    pinned: str
    archive: str
    window: str
    recall: str
    free: str
    yes: str
    no: str
    below: str


_UNICODE: Final = Glyphs("▓", "◆", "▒", "█", "░", "·", "✓", "✗", "└")
_ASCII: Final = Glyphs("%", "+", "=", "#", "?", ".", "yes", "no", "\\")


def glyphs_of(console: Console) -> Glyphs:
    """What a console can draw with."""
    return _ASCII if console.options.ascii_only else _UNICODE


def text(said: str, style: str = "") -> Text:
    """What people and tools said, in one line, as text."""
    return Text(printable(said), style)


def section(title: str, body: RenderableType) -> RenderableType:
    """A part of a page, below an empty line and its title."""
    return Group("", Text(title, "bold"), body)


def cells(zones: Zones, usable: int, width: int) -> list[tuple[str, int]]:
    """Cells of a bar by zone, in a prompt's order, then what is free; a zone that holds anything gets a cell."""
    made: list[tuple[str, int]] = []
    left = width
    for name, tokens in asdict(zones).items():
        own = min(left, max(round(tokens * width / usable), tokens > 0))
        made.append((name, own))
        left -= own
    return [*made, ("free", left)]


def context_table(held: Sequence[Row]) -> Table:
    """A table of what a context holds."""
    table = Table(box=None, padding=(0, 1, 0, 0), expand=True, header_style="bold")
    table.add_column("msg", justify="right", no_wrap=True)
    table.add_column("role", no_wrap=True)
    table.add_column("tokens", justify="right", no_wrap=True)
    table.add_column("shown", no_wrap=True)
    table.add_column("text", no_wrap=True, overflow="ellipsis", ratio=1)
    for row in held:
        beginning = text(row.text[: 2 * _BEGINNING])
        beginning.truncate(_BEGINNING, overflow="ellipsis")
        role = Text(row.role, STYLES[row.zone])
        table.add_row(Text(row.number), role, Text(f"{row.tokens:,}"), Text(row.how), beginning)
    return table


def head_panel(context: Context) -> Iterator[RenderableType]:
    """The head as the model reads it; nothing where a context has none."""
    head = "\n".join(filter(None, (blocks(message).head for message in context.messages)))
    if not head:
        return
    lines = Text("\n").join(text(line) for line in head.split("\n"))
    zones = context.zones
    title = (
        f"The head, as the model reads it: {zones.pinned:,} tokens pinned, {zones.archive:,} archived "
        f"for {context.receipt.covered:,} messages"
    )
    yield section(title, Panel(lines, box=box.HORIZONTALS, padding=(0, 1), border_style=STYLES["archive"]))


def show(context: Context, console: Console | None = None) -> None:
    """Print a context; a session is printed by `rich.print` itself.

    Args:
        context: what a read returned.
        console: where to; None prints to the terminal.
    """
    where = console or Console()
    for part in context_parts(context, where):
        where.print(part)


def context_parts(context: Context, console: Console, title: str = "Context") -> Iterator[RenderableType]:
    """A context as a bar, a table and sentences."""
    usable = context.receipt.usable
    glyphs = glyphs_of(console)
    yield Text.assemble(text(title, "bold"), f": {context.tokens:,} of {usable:,} tokens")
    width = min(_WIDEST_BAR, max(8, console.width - 4))
    bar = Text()
    for name, count in cells(context.zones, usable, width):
        bar.append(getattr(glyphs, name) * count, STYLES[name])
    yield bar
    yield Text("  ").join(
        Text.assemble((getattr(glyphs, name) * 2, STYLES[name]), f" {name} {tokens:,}")
        for name, tokens in [*used(context.zones), ("free", max(0, usable - context.tokens))]
    )
    held = list(rows(context))
    yield from map(Text, older_rows(len(held) - _ROWS))
    yield context_table(held[-_ROWS:])
    yield from map(Text, receipt_lines(context))


def session_parts(session_id: str, look: Callable[[], Overview], console: Console) -> Iterator[RenderableType]:
    """A session as its context, its archive as a tree, and its figures, or a sentence why it cannot be looked at."""
    try:
        yield from list(_session_parts(look(), console))
    except Exception as fault:  # noqa: BLE001  # whatever it is, showing must not end in it
        yield Text.assemble((title_of(session_id), "bold"), f": {unseen(fault)}")


def _session_parts(overview: Overview, console: Console) -> Iterator[RenderableType]:
    title = title_of(overview.session)
    if overview.context is None:
        yield Text.assemble((title, "bold"), f": {printable(overview.fault)}")
    else:
        yield from context_parts(overview.context, console, title)
    if overview.archive:
        yield _archive(overview)
    yield from map(text, sentences(overview))


def _archive(overview: Overview) -> Tree:
    """The top of the archive; a notebook opens it down to the messages, and so does `explain`."""
    tree = Tree(Text("Archive", "bold"))
    for traced in overview.archive:
        branch = tree.add(text(segment_line(traced.segment), STYLES["archive"]))
        for line in traced.segment.text.splitlines():
            branch.add(text(shortened(line, _BEGINNING), "italic"))
    return tree
