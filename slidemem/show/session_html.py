"""Decides how a session looks in a notebook: its context, its archive as a tree, its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from slidemem.overview import Overview, Traced
from slidemem.show.html import context_pieces, escaped, framed, opened, said
from slidemem.show.tell import segment_line, sentences, source_line, title_of, unseen

_INDENT: Final = "margin:2px 0 6px 1.4em"
_TEXT: Final = 1000  # characters of a segment's text


def session_html(session_id: str, look: Callable[[], Overview]) -> str:
    """A session as a piece of a page, or a sentence that says why it cannot be looked at: showing never raises.

    Args:
        session_id: of the session.
        look: takes the look.
    """
    try:
        return framed(_pieces(look()))
    except Exception as fault:  # noqa: BLE001  # whatever it is, a notebook's cell must not end in it
        return framed([f"<p><b>{escaped(title_of(session_id), 120)}</b>: {escaped(unseen(fault), 400)}</p>"])


def _pieces(overview: Overview) -> Iterator[str]:
    if overview.context is None:
        yield f"<p><b>{escaped(title_of(overview.session), 120)}</b>: {escaped(overview.fault, 400)}</p>"
    else:
        yield from context_pieces(overview.context, title_of(overview.session))
    if overview.archive:
        quoted = frozenset(overview.context.receipt.recalled if overview.context else ())
        tree = "".join(_segment(traced, quoted) for traced in overview.archive)
        yield opened("<b>Archive</b>", f'<div style="{_INDENT}">{tree}</div>')
    for line in sentences(overview):
        yield f"<p>{escaped(line, 600)}</p>"


def _segment(traced: Traced, quoted: frozenset[int]) -> str:
    """A segment, which opens to its text, and to what it was made from."""
    text = traced.segment.text
    lines = "".join(f"<div><i>{escaped(line, 300)}</i></div>" for line in text[:_TEXT].splitlines())
    parts = [_segment(child, quoted) for child in traced.children]
    for entry in traced.sources:
        how = "archived, quoted now" if entry.seq in quoted else "archived"
        line = source_line(entry)
        parts.append(f"<div>{said(line)} ({entry.tokens:,} tokens, {how})</div>")
    if traced.more:
        parts.append(f"<div>{traced.more:,} more messages</div>")
    return opened(escaped(segment_line(traced.segment), 300), f'<div style="{_INDENT}">{lines}{"".join(parts)}</div>')
