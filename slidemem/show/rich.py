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
from typing import Final, TextIO

from rich.console import Console, Group, RenderableType
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from slidemem.events import Event
from slidemem.replay import Answer, FactCheck, Report, Step
from slidemem.show.rows import printable, rows
from slidemem.show.terminal import STYLES, Glyphs, cells, context_table, glyphs_of, head_panel, section, text

_ROWS: Final = 24  # about as many prompts are shown unless the caller says how many
_BEGINNING: Final = 100  # characters of a message
_WIDEST_BAR: Final = 80
_BESIDE_BAR: Final = 28  # columns that turn, message and tokens take
_PAGE_WIDTH: Final = 112

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


def _parts(report: Report, title: str, every: int | None, console: Console) -> Iterator[RenderableType]:
    glyphs = glyphs_of(console)
    steps = _chosen(report.steps, every)
    yield _opening(report, title, len(steps))
    yield Group("", _legend(report, glyphs), "")
    width = min(_WIDEST_BAR, max(8, console.width - _BESIDE_BAR))
    yield _heading(width)
    for step in steps:
        yield _row(step, glyphs, width)
        yield from _markers(step, glyphs)
    yield _final(report)
    yield from head_panel(report.final)
    if report.facts:
        yield _facts(report.facts, glyphs)
    if report.answer:
        yield _answer(report.answer)
    yield _figures(report)


# ------------------------------------------------------------------ one row a prompt


def _opening(report: Report, title: str, shown: int) -> Text:
    prompts = len(report.steps)
    which = "All rows are shown." if shown == prompts else f"{shown} of {prompts:,} rows are shown."
    rows = f'Each row is a prompt: what a model is sent to write message "msg". {which}'
    return Text.assemble(
        text(title, "bold"),
        f"\n{report.messages:,} messages in {report.turns:,} user turns, replayed through a memory of "
        f"{report.usable:,} tokens. ",
        rows if prompts else "At no moment could a model be called: no prompt ends with a user or a result.",
    )


def _legend(report: Report, glyphs: Glyphs) -> Text:
    used = {name for step in report.steps for name, tokens in cells(step.zones, step.usable, 1000) if tokens}
    names = [name for name in STYLES if name in used]
    return Text("  ").join(Text.assemble((getattr(glyphs, name) * 2, STYLES[name]), f" {name}") for name in names)


def _heading(width: int) -> Text:
    return Text(f" turn   msg  {'the prompt':<{width}}  tokens", "bold")


def _row(step: Step, glyphs: Glyphs, width: int) -> Text:
    row = Text(f"{step.turn:>5}{step.index:>6}  ")
    for name, count in cells(step.zones, step.usable, width):
        row.append(getattr(glyphs, name) * count, STYLES[name])
    return row.append(f"  {step.tokens:,}/{step.usable:,}")


def _chosen(steps: Sequence[Step], every: int | None) -> list[Step]:
    """Every so many steps, the last, and those at which something happened, unless all of these are too many."""
    stride = every or max(1, len(steps) // _ROWS)
    last = len(steps) - 1
    eventful = {at for at, step in enumerate(steps) if step.left or step.events}
    if every is None and len(eventful) > 2 * _ROWS:
        eventful.clear()
    return [step for at, step in enumerate(steps) if at % stride == 0 or at == last or at in eventful]


def _markers(step: Step, glyphs: Glyphs) -> Iterator[Text]:
    archived = {seq for event in step.events for seq in range(event.start, event.end)}
    hidden = [seq for seq in step.left if seq not in archived]
    told = [_told(event) for event in step.events]
    if hidden:
        told.append(f"left out for now: {_span(hidden[0], hidden[-1])}")
    for line in told:
        yield Text.assemble(" " * 11, f"{glyphs.below} ", text(line, "italic"))


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
    waits = ", waiting for results" if context.receipt.open else ""
    title = f"The last context: {context.tokens:,} of {report.usable:,} tokens{waits}"
    return section(title, context_table(list(rows(context))))


# ------------------------------------------------------------------ figures


def _facts(checks: Sequence[FactCheck], glyphs: Glyphs) -> RenderableType:
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
            text(check.fact.text),
            _tick(glyphs, held=check.place is not None).append(f" {check.place}" if check.place else ""),
            _tick(glyphs, held=check.in_slide),
        )
    return section("Facts needed later: were they in the prompt? (slide: see the figures below)", table)


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
            text(place or "no", STYLES[place] if place else "dim"),
            text(hit.text[:_BEGINNING]),
        )
    quoted = answer.context.zones.recall
    title = f"Asked: {' '.join(answer.query.split())[:_BEGINNING]} ({quoted:,} tokens are quoted for it)"
    return Group("", text(title, "bold"), table if answer.hits else text("Nothing was found."))


def _tick(glyphs: Glyphs, *, held: bool) -> Text:
    return Text(glyphs.yes, "green") if held else Text(glyphs.no, "red")


def _figures(report: Report) -> RenderableType:
    return section("In figures", Group(_sentences(report), "", _comparison(report)))


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
