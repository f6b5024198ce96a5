"""Decides how a long consolidation shows that it goes on: a bar for each session, in a notebook and in a terminal.

Needs tqdm, which is in the extra `notebooks`.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

from slidemem.errors import MissingExtra
from slidemem.events import Event

try:
    from tqdm.auto import tqdm
except ImportError as missing:
    raise MissingExtra("a bar of progress", "notebooks") from missing


class ProgressBars:
    """What to give as `on_event`: draws a bar while a span is summarised in pieces (`summary_input_tokens`).

    Args:
        then: hears of each event besides.
        bar: makes a bar, as `tqdm` does; for tests, or for a bar of your own.
    """

    def __init__(self, then: Callable[[Event], None] | None = None, bar: Callable[..., Any] = tqdm) -> None:
        self._then = then
        self._bar = bar
        self._bars: dict[str, Any] = {}
        self._lock = Lock()

    def __call__(self, event: Event) -> None:
        """Draw what an event says."""
        with self._lock:
            if event.kind == "summarizing":
                self._draw(event)
            elif event.kind in {"consolidated", "refused", "postponed", "lost_race"}:
                self._end(event.session)
        if self._then:
            self._then(event)

    def _draw(self, event: Event) -> None:
        if event.done == 0:
            self._end(event.session)
            span = f"messages {event.start} to {event.end - 1} of {event.session!r:.40}"
            self._bars[event.session] = self._bar(total=event.of, desc=span, unit="piece")
        elif event.session in self._bars:
            self._bars[event.session].update(1)
        if event.done == event.of:
            self._end(event.session)

    def _end(self, session: str) -> None:
        bar = self._bars.pop(session, None)
        if bar is not None:
            bar.close()
