"""Decides whether a summariser that failed is asked again, or left alone for a while.

Shared by the sessions of a memory, since their summariser is one; so what counts says something of all of them: an
answer that is refused for what it says is an answer. Three spans in a row for which it raised, or one time-out, and
it is left alone for a minute, and twice as long each time that it fails again, up to an hour. Then one span tries it,
while the others still do without.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import Final

_FAILURES: Final = 3  # spans in a row
_PAUSE: Final = 60.0  # seconds
_LONGEST: Final = 3600.0


@dataclass(slots=True)
class Breaker:
    """What is known of a summariser's health.

    Attributes:
        failures: spans in a row for which it raised.
        pause: seconds that it is left alone for; 0 while it is asked.
        until: when it is tried again, in seconds since 1970.
    """

    failures: int = 0
    pause: float = 0.0
    until: float = 0.0
    _lock: Lock = field(default_factory=Lock, repr=False)

    def lets(self, now: float) -> bool:
        """Whether it may be asked for a span now; after a pause the first who asks tries it, the others wait on."""
        with self._lock:
            if not self.pause:
                return True
            if now < self.until <= now + self.pause:  # else the clock was set back
                return False
            self.until = now + self.pause
            return True

    def failed(self, now: float, *, timed_out: bool) -> float:
        """Note a span for which it raised.

        Returns:
            Seconds that it is left alone from now on; 0 when it is asked again for the next span.
        """
        with self._lock:
            self.failures += 1
            if not (self.pause or timed_out or self.failures >= _FAILURES):
                return 0.0
            self.pause = min(2 * self.pause or _PAUSE, _LONGEST)
            self.until = now + self.pause
            return self.pause

    def answered(self) -> bool:
        """Note an answer; whether it was given up before."""
        with self._lock:
            was = self.pause > 0
            self.failures, self.pause, self.until = 0, 0.0, 0.0
            return was
