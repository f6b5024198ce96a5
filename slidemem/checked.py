"""Decides which arguments of a session's methods are taken, and what is said of those that are not."""

from __future__ import annotations

from slidemem.config import MOST, Options
from slidemem.errors import ConfigurationError


def whole_number(tokens: int, name: str = "reserve") -> int:
    """A number of tokens.

    Raises:
        ConfigurationError: it is no whole number of 0 or more.
    """
    if isinstance(tokens, bool) or not isinstance(tokens, int) or not 0 <= tokens <= MOST:
        raise ConfigurationError(f"{name} must be a whole number of tokens, 0 or more, got {tokens!r}")
    return tokens


def text_or_none(query: str | None) -> str | None:
    """A question, or none.

    Raises:
        ConfigurationError: it is no text.
    """
    if query is not None and not isinstance(query, str):
        raise ConfigurationError(f"a query is text, got {type(query).__name__}")
    return query


def patience(options: Options, seconds: float | None) -> float:
    """How long to wait, in seconds; `flush_seconds` where it is not said.

    Raises:
        ConfigurationError: it is no number of 0 or more.
    """
    if seconds is None:
        return options.flush_seconds
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds >= 0:
        raise ConfigurationError(f"flush waits for 0 seconds or more, got {seconds!r:.80}")
    return seconds
