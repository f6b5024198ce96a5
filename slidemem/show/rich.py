"""Decides how a replay looks in a terminal, and on the one page that is made of it.

Colour only repeats what glyphs and words say, so that a pipe and `NO_COLOR` lose nothing. What people and
tools said is shown as text: no markup of it is obeyed, and no control character reaches the terminal.
Needs the extra `cli`.
"""

from __future__ import annotations

import html
import io
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Final, TextIO

from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from slidemem.compose import Zones
from slidemem.events import Event
from slidemem.messages import Message
from slidemem.replay import Answer, FactCheck, Report, Step, blocks, readable

_ROWS: Final = 24  # about as many prompts are shown unless the caller says how many
_BEGINNING: Final = 100  # characters of a message
_WIDEST_BAR: Final = 80
_BESIDE_BAR: Final = 28  # columns that turn, message and tokens take
_PAGE_WIDTH: Final = 112
_JOINERS: Final = "\u200c\u200d"  # Devanagari and emoji need them

_STYLES: Final = {
    "system": "magenta",
    "pinned": "red",
    "archive": "yellow",
    "window": "green",
    "recall": "cyan",
    "free": "bright_black",
}
_ZONES: Final = {"head": "archive", "recall": "recall", "system": "system"}  # of a row's role; the window is the rest
_KINDS: Final = {"clamp": "clamped", "stub": "stub", "anchor": "anchor", "note": "note", "mended": "mended"}

_PAGE: Final = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="UTF-8">
<meta name="viewport" content="width=device-width">
<title>TITLE</title>
<style>
{stylesheet}
body {{ color: {foreground}; background-color: {background}; }}
pre {{ font-family: Menlo, "DejaVu Sans Mono", Consolas, monospace; line-height: 1.2; }}
</style>
</head>
<body>
<pre><code style="font-family: inherit">{code}</code></pre>
</body>
</html>
"""


@dataclass(frozen=True, slots=True)
class _Glyphs:
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


_UNICODE: Final = _Glyphs("▓", "◆", "▒", "█", "░", "·", "✓", "✗", "└")
_ASCII: Final = _Glyphs("%", "+", "=", "#", "?", ".", "yes", "no", "\\")


class PlainConsole(Console):
    """A console that takes text as text, and leaves a closed pipe to its caller."""

    def __init__(
        self,
        file: TextIO | None = None,
        *,
        width: int | None = None,
        stderr: bool = False,
        record: bool = False,
    ) -> None:
        super().__init__(
            file=file, width=width, stderr=stderr, record=record, markup=False, highlight=False, emoji=False
        )

    def on_broken_pipe(self) -> None:
        """Raise, where rich would end the process."""
        raise BrokenPipeError


def draw(report: Report, console: Console, *, title: str, every: int | None = None) -> None:
    """Print a report.

    Args:
        report: of a replay.
        console: where to.
        title: of the conversation.
        every: show every so many prompts, and those at which something left the window; None shows a screenful
            or two.
    """
    for part in _parts(report, title, every, console):
        console.print(part)


def page(report: Report, *, title: str, every: int | None = None) -> str:
    """A report as one HTML page that fetches nothing; see `draw` for the arguments."""
    console = PlainConsole(io.StringIO(), width=_PAGE_WIDTH, record=True)
    draw(report, console, title=title, every=every)
    name = html.escape(printable(title)).replace("{", "{{").replace("}", "}}")
    return console.export_html(code_format=_PAGE.replace("TITLE", name))


@contextmanager
def progress_bar(messages: int) -> Generator[Callable[[Step], None], None, None]:
    """A bar on stderr while a replay runs.

    Args:
        messages: how many there are to replay.

    Yields:
        What to call with each step.
    """
    with Progress(console=PlainConsole(stderr=True), transient=True) as progress:
        task = progress.add_task("replaying", total=messages)

        def on_step(step: Step) -> None:
            progress.update(task, completed=step.index)

        yield on_step


def printable(text: str) -> str:
    r"""The text in one line, with every control character written out, as `\x1b` for example."""
    line = " ".join(text.split())
    return "".join(char if char.isprintable() or char in _JOINERS else ascii(char)[1:-1] for char in line)


def _parts(report: Report, title: str, every: int | None, console: Console) -> Iterator[RenderableType]:
    glyphs = _glyphs(console)
    steps = _chosen(report.steps, every)
    yield _opening(report, title, len(steps))
    yield Group("", _legend(report, glyphs), "")
    width = min(_WIDEST_BAR, max(8, console.width - _BESIDE_BAR))
    yield _heading(width)
    for step in steps:
        yield _row(step, glyphs, width)
        yield from _markers(step, glyphs)
    yield _final(report)
    yield from _archive(report)
    if report.facts:
        yield _facts(report.facts, glyphs)
    if report.answer:
        yield _answer(report.answer)
    yield _figures(report)


def _glyphs(console: Console) -> _Glyphs:
    return _ASCII if console.options.ascii_only else _UNICODE


def _text(said: str, style: str = "") -> Text:
    return Text(printable(said), style)


# ------------------------------------------------------------------ one row a prompt


def _opening(report: Report, title: str, shown: int) -> Text:
    prompts = len(report.steps)
    which = "All rows are shown." if shown == prompts else f"{shown} of {prompts:,} rows are shown."
    rows = f'Each row is a prompt: what a model is sent to write message "msg". {which}'
    return Text.assemble(
        _text(title, "bold"),
        f"\n{report.messages:,} messages in {report.turns:,} user turns, replayed through a memory of "
        f"{report.usable:,} tokens. ",
        rows if prompts else "At no moment could a model be called: no prompt ends with a user or a result.",
    )


def _legend(report: Report, glyphs: _Glyphs) -> Text:
    used = {name for step in report.steps for name, tokens in _cells(step.zones, step.usable, 1000) if tokens}
    names = [name for name in _STYLES if name in used]
    return Text("  ").join(Text.assemble((getattr(glyphs, name) * 2, _STYLES[name]), f" {name}") for name in names)


def _heading(width: int) -> Text:
    return Text(f" turn   msg  {'the prompt':<{width}}  tokens", "bold")


def _row(step: Step, glyphs: _Glyphs, width: int) -> Text:
    row = Text(f"{step.turn:>5}{step.index:>6}  ")
    for name, cells in _cells(step.zones, step.usable, width):
        row.append(getattr(glyphs, name) * cells, _STYLES[name])
    return row.append(f"  {step.tokens:,}/{step.usable:,}")


def _cells(zones: Zones, usable: int, width: int) -> list[tuple[str, int]]:
    """Cells of a bar by zone, in a prompt's order, then what is free; a zone that holds anything gets a cell."""
    cells: list[tuple[str, int]] = []
    left = width
    for zone in fields(zones):
        tokens: int = getattr(zones, zone.name)
        own = min(left, max(round(tokens * width / usable), tokens > 0))
        cells.append((zone.name, own))
        left -= own
    return [*cells, ("free", left)]


def _chosen(steps: Sequence[Step], every: int | None) -> list[Step]:
    """Every so many steps, the last, and those at which something happened, unless all of these are too many."""
    stride = every or max(1, len(steps) // _ROWS)
    last = len(steps) - 1
    eventful = {at for at, step in enumerate(steps) if step.left or step.events}
    if every is None and len(eventful) > 2 * _ROWS:
        eventful.clear()
    return [step for at, step in enumerate(steps) if at % stride == 0 or at == last or at in eventful]


def _markers(step: Step, glyphs: _Glyphs) -> Iterator[Text]:
    archived = {seq for event in step.events for seq in range(event.start, event.end)}
    hidden = [seq for seq in step.left if seq not in archived]
    told = [_told(event) for event in step.events]
    if hidden:
        told.append(f"left out for now: {_span(hidden[0], hidden[-1])}")
    for line in told:
        yield Text.assemble(" " * 11, f"{glyphs.below} ", _text(line, "italic"))


def _told(event: Event) -> str:
    if event.kind == "consolidated" and event.segment and event.segment.method == "none":
        return f"left the window: {_span(event.start, event.end - 1)}; nothing of it is archived"
    names = {"consolidated": "archived", "merged": "archive merged"}
    return f"{names.get(event.kind, event.kind.replace('_', ' '))}: {event.detail}"


def _span(first: int, last: int) -> str:
    return f"message {first}" if first == last else f"messages {first} to {last}"


# ------------------------------------------------------------------ the last context


def _final(report: Report) -> RenderableType:
    context = report.final
    table = Table(box=None, padding=(0, 1, 0, 0), expand=True, header_style="bold")
    table.add_column("msg", justify="right", no_wrap=True)
    table.add_column("role", no_wrap=True)
    table.add_column("tokens", justify="right", no_wrap=True)
    table.add_column("shown", no_wrap=True)
    table.add_column("text", no_wrap=True, overflow="ellipsis", ratio=1)
    for row in _final_rows(report):
        table.add_row(*row)
    waits = ", waiting for results" if context.receipt.open else ""
    return _section(f"The last context: {context.tokens:,} of {report.usable:,} tokens{waits}", table)


def _final_rows(report: Report) -> Iterator[tuple[Text, ...]]:
    """A row a message; head and quotes, which stand in front of a message's text, have their own."""
    context = report.final
    seqs = iter(context.receipt.shown)
    for message, tokens in zip(context.messages, context.costs, strict=True):
        said, zones = blocks(message), context.zones
        ours = (("head", said.head, zones.pinned + zones.archive), ("recall", said.quotes, zones.recall))
        for role, block, composed in ours:
            if block:
                yield _final_row("", role, composed, "composed", block.partition("\n")[2])
                tokens -= composed  # noqa: PLW2901  # the rest is the message's own
        own = _own(message, seqs)
        if own or not (said.head or said.quotes):
            yield _final_row(_numbered(own), message.role, tokens, _how(message), readable(message))


def _own(message: Message, seqs: Iterator[int]) -> list[int]:
    """The messages of the transcript that a context's message stands for."""
    if message.mark is None:
        return [] if message.role == "system" else [next(seqs)]
    return [next(seqs) for _ in message.mark.of]


def _final_row(number: str, role: str, tokens: int, how: str, said: str) -> tuple[Text, ...]:
    style = _STYLES[_ZONES.get(role, "window")]
    beginning = _text(said[: 2 * _BEGINNING])
    beginning.truncate(_BEGINNING, overflow="ellipsis")
    return Text(number), Text(role, style), Text(f"{tokens:,}"), Text(how), beginning


def _numbered(seqs: Sequence[int]) -> str:
    return "" if not seqs else str(seqs[0]) if len(seqs) == 1 else f"{seqs[0]}-{seqs[-1]}"


def _how(message: Message) -> str:
    kinds = message.mark.kinds if message.mark else ()
    return ", ".join(_KINDS[kind] for kind in kinds if kind in _KINDS) or "kept"


def _archive(report: Report) -> Iterator[RenderableType]:
    head = "\n".join(filter(None, (blocks(message).head for message in report.final.messages)))
    if not head:
        return
    text = Text("\n").join(_text(line) for line in head.split("\n"))
    zones = report.final.zones
    title = (
        f"The head, as the model reads it: {zones.pinned:,} tokens pinned, {zones.archive:,} archived "
        f"for {report.final.receipt.covered:,} messages"
    )
    yield _section(title, Panel(text, box=box.HORIZONTALS, padding=(0, 1), border_style=_STYLES["archive"]))


# ------------------------------------------------------------------ figures


def _facts(checks: Sequence[FactCheck], glyphs: _Glyphs) -> RenderableType:
    table = Table(box=None, padding=(0, 1, 0, 0), expand=True, header_style="bold")
    table.add_column("said", justify="right")
    table.add_column("needed", justify="right")
    table.add_column("fact, by user turn", no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column("slidemem", no_wrap=True)
    table.add_column("slide", no_wrap=True)
    for check in checks:
        table.add_row(
            str(check.fact.said_in),
            str(check.fact.needed_in),
            _text(check.fact.text),
            _tick(glyphs, held=check.place is not None).append(f" {check.place}" if check.place else ""),
            _tick(glyphs, held=check.in_slide),
        )
    return _section("Facts needed later: were they in the prompt? (slide: see the figures below)", table)


def _answer(answer: Answer) -> RenderableType:
    """What a question finds, and where the context that is asked it shows that."""
    table = Table(box=None, padding=(0, 1, 0, 0), expand=True, header_style="bold")
    table.add_column("msg", justify="right", no_wrap=True)
    table.add_column("role", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("shown", no_wrap=True)
    table.add_column("text", no_wrap=True, overflow="ellipsis", ratio=1)
    for hit in answer.hits:
        place = answer.place(hit)
        table.add_row(
            "" if hit.seq is None else str(hit.seq),
            hit.message.role if hit.message else "archive",
            f"{hit.score:.2f}",
            _text(place or "no", _STYLES[place] if place else "dim"),
            _text(hit.text[:_BEGINNING]),
        )
    quoted = answer.context.zones.recall
    title = f"Asked: {' '.join(answer.query.split())[:_BEGINNING]} ({quoted:,} tokens are quoted for it)"
    return Group("", _text(title, "bold"), table if answer.hits else _text("Nothing was found."))


def _tick(glyphs: _Glyphs, *, held: bool) -> Text:
    return Text(glyphs.yes, "green") if held else Text(glyphs.no, "red")


def _figures(report: Report) -> RenderableType:
    return _section("In figures", Group(_sentences(report), "", _comparison(report)))


def _sentences(report: Report) -> Text:
    receipt = report.final.receipt
    over = f"{report.over_budget:,}" if report.over_budget else "none"
    left_out = f", {receipt.left_out:,} left out for now" if receipt.left_out else ""
    return Text(
        f"{len(report.steps):,} prompts, {over} over {report.usable:,} tokens; "
        f"the largest took {report.worst_tokens:,}, the last {report.final.tokens:,}.\n"
        f"{len(receipt.shown):,} messages are verbatim in the last, {receipt.covered:,} archived by "
        f"{report.consolidations:,} consolidations{left_out}.\n"
        f"The slide drops its oldest turn whenever it is full{_starved(report)}."
    )


def _starved(report: Report) -> str:
    if not report.slide_starved:
        return ""
    prompts = "1 prompt" if report.slide_starved == 1 else f"{report.slide_starved:,} prompts"
    return f"; {prompts} of it held no user message, as not even the newest turn fits"


def _comparison(report: Report) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("")
    table.add_column("slidemem", justify="right")
    table.add_column("one-turn slide", justify="right")
    both = [[step.prefix for step in report.steps], [step.slide for step in report.steps]]
    sent = [sum(prefix.tokens for prefix in prefixes) for prefixes in both]
    fresh = [sum(prefix.tokens - prefix.reused for prefix in prefixes) for prefixes in both]
    table.add_row("prompt tokens in all", *(f"{tokens:,}" for tokens in sent))
    table.add_row("re-used from the prompt before", f"{report.reuse:.0%}", f"{report.slide_reuse:.0%}")
    table.add_row("tokens that are new to a cache", *(f"{tokens:,}" for tokens in fresh))
    if report.facts:
        held = (report.facts_held, report.slide_facts_held)
        table.add_row("facts there when needed", *(f"{facts} of {len(report.facts)}" for facts in held))
    return table


def _section(title: str, body: RenderableType) -> RenderableType:
    return Group("", Text(title, "bold"), body)
