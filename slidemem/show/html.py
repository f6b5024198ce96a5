"""Decides how a context looks in a notebook: a bar of its zones, a row a message, and what it leaves out.

The page needs no script, no stylesheet and nothing from elsewhere; it has styles at its elements alone, so that it
reads the same where a notebook is not trusted. Text takes the notebook's own colour, light or dark. What people and
tools said is escaped, cut to a bounded length, and its control characters are written out. Pure.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from slidemem.compose import Context
from slidemem.show.rows import COLORS, Row, printable, receipt_lines, rows, shortened, used, written_out

_ROWS: Final = 30  # the newest
_BEGINNING: Final = 100  # characters of a message that its row shows
_LONGEST: Final = 2000  # characters that it opens to
_FREE: Final = "rgba(128,128,128,.25)"
_LINE: Final = "border-bottom:1px solid rgba(128,128,128,.3)"
_CELL: Final = f"padding:2px 8px 2px 0;text-align:left;vertical-align:top;background:transparent;{_LINE}"
_NUMBER: Final = f"{_CELL};text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap"
_WHOLE: Final = "white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere;margin:4px 0;font-size:12px"


def context_html(context: Context) -> str:
    """A context as a piece of a page."""
    return framed(context_pieces(context, "Context"))


def safely(page: Callable[[], str]) -> str:
    """What `page` makes, or one sentence that says why there is nothing to see: showing never raises."""
    try:
        return page()
    except Exception as fault:  # noqa: BLE001  # whatever it is, a notebook's cell must not end in it
        return framed([f"<p>It cannot be shown: {escaped(repr(fault), 300)}</p>"])


def framed(pieces: Iterable[str]) -> str:
    """Pieces as one element."""
    return f'<div style="max-width:60em;font-size:13px;line-height:1.45">{"".join(pieces)}</div>'


def context_pieces(context: Context, title: str) -> Iterator[str]:
    """Title, bar, legend, rows and receipt of a context."""
    usable = context.receipt.usable
    yield f"<p><b>{escaped(title, 120)}</b>: {context.tokens:,} of {usable:,} tokens</p>"
    yield _bar(context)
    yield _legend(context)
    held = list(rows(context))
    for line in older_rows(len(held) - _ROWS):
        yield f"<p>{line}</p>"
    yield _table(held[-_ROWS:])
    yield f"<p>{escaped(' '.join(receipt_lines(context)), 1000)}</p>"


def older_rows(left_out: int) -> list[str]:
    """What is said of rows that are not shown; nothing where all are."""
    return [f"{left_out:,} rows before these are not shown."] if left_out > 0 else []


def opened(summary: str, body: str) -> str:
    """A line that opens to more; both are pieces of a page."""
    return f"<details><summary>{summary}</summary>{body}</details>"


def said(text: str) -> str:
    """A text that opens to all that is shown of it, or the line that it is."""
    line = escaped(text, _BEGINNING)
    if len(text) <= _BEGINNING and "\n" not in text.strip():
        return line
    more = f"\n({len(text) - _LONGEST:,} more characters)" if len(text) > _LONGEST else ""
    return opened(line, f'<pre style="{_WHOLE}">{_whole(text[:_LONGEST])}{more}</pre>')


def escaped(text: str, length: int) -> str:
    """The beginning of a text, in one line, as text of a page."""
    return html.escape(shortened(printable(text[: 4 * length]), length))


def _whole(text: str) -> str:
    return html.escape(written_out(text.replace("\r\n", "\n"), "\n\t"))


def _bar(context: Context) -> str:
    """The budget as one bar; where the system prompt is not counted, as wide as what is sent."""
    held = used(context.zones)
    wide = max(context.receipt.usable, sum(tokens for _, tokens in held), 1)
    parts = [
        f'<div title="{name}: {tokens:,} tokens" style="width:{tokens * 100 / wide:.2f}%;min-width:2px;'
        f'background:{COLORS[name]}"></div>'
        for name, tokens in held
    ]
    return f'<div style="display:flex;height:16px;background:{_FREE}">{"".join(parts)}</div>'


def _legend(context: Context) -> str:
    names = [
        f'<span style="white-space:nowrap;margin-right:1em">{_swatch(COLORS[name])} {name} {tokens:,}</span> '
        for name, tokens in used(context.zones)
    ]
    free = max(0, context.receipt.usable - context.tokens)
    return f'<p>{"".join(names)}<span style="white-space:nowrap">{_swatch(_FREE)} free {free:,}</span></p>'


def _swatch(color: str) -> str:
    return f'<span style="display:inline-block;width:.8em;height:.8em;background:{color}"></span>'


def _table(held: list[Row]) -> str:
    heads = "".join(
        f'<th style="{style}">{name}</th>'
        for name, style in (
            ("msg", f"{_NUMBER};width:1%"),  # as narrow as what stands in it
            ("role", f"{_CELL};width:1%"),
            ("tokens", f"{_NUMBER};width:1%"),
            ("shown", f"{_CELL};width:1%"),
            ("text", _CELL),
        )
    )
    body = "".join(
        f'<tr style="background:transparent"><td style="{_NUMBER}">{row.number}</td>'
        f'<td style="{_CELL};white-space:nowrap">{_swatch(COLORS[row.zone])} {row.role}</td>'
        f'<td style="{_NUMBER}">{row.tokens:,}</td><td style="{_CELL};white-space:nowrap">{row.how}</td>'
        f'<td style="{_CELL};overflow-wrap:anywhere">{said(row.text)}</td></tr>'
        for row in held
    )
    return (
        '<table style="border-collapse:collapse;table-layout:auto;width:100%;font-size:inherit">'
        f'<thead><tr style="background:transparent">{heads}</tr></thead><tbody>{body}</tbody></table>'
    )
