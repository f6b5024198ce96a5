"""Decides how messages that a caller hands in become entries of the transcript.

Each is read, mended where a provider would refuse it, counted once, and clamped where it is too large. What is
shown of it is fixed here, from the configuration alone; the message itself is kept as it came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone

from slidemem.errors import OversizeMessage
from slidemem.messages import Message
from slidemem.openai_format import Given, read_openai
from slidemem.post import post_of
from slidemem.present import barest, clamp, joined, mend, oversize
from slidemem.session import Session
from slidemem.state import Entry


def read(session: Session, given: Given | Sequence[Given], first: int = 0) -> tuple[Entry, ...]:
    """Messages as entries, numbered from `first` on.

    Raises:
        InvalidMessage: one of them cannot be read.
        OversizeMessage: one is too large and `oversize="raise"`.
    """
    messages = read_openai(given)
    return tuple(_entry(session, message, index, first + index) for index, message in enumerate(messages))


def as_shown(session: Session, given: Given | Sequence[Given], after: Message | None = None) -> tuple[Message, ...]:
    """Messages as a context would show them, for a caller who sends them before they are stored.

    Args:
        session: the session.
        given: the messages.
        after: what they are sent after. With `alternate`, a first one of its role is joined to it, and stands for
            both.

    Raises:
        InvalidMessage: one of them cannot be read.
        OversizeMessage: one is too large and `oversize="raise"`.
    """
    shown = tuple(entry.shown for entry in read(session, given))
    if after and shown and session.options.alternate and after.role == shown[0].role != "tool":
        return (joined(after, shown[0]), *shown[1:])
    return shown


def findable(session: Session, entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The entries with what they are found by, on their way into a store."""
    return tuple(replace(entry, post=post_of(entry.message, entry.at, session.redact)) for entry in entries)


def said_at(time: str | None, otherwise: float) -> float:
    """When a message was said, in seconds since 1970: by its own time where that is ISO 8601, without a zone UTC."""
    try:
        said = datetime.fromisoformat((time or "").replace("Z", "+00:00"))  # Python 3.10 reads no Z
        return (said if said.tzinfo else said.replace(tzinfo=timezone.utc)).timestamp()
    except (ValueError, OverflowError):
        return otherwise


def _entry(session: Session, given: Message, index: int, seq: int) -> Entry:
    message = replace(given, mark=None) if given.mark else given  # what is appended is said, whoever made it
    whole = mend(message)
    tokens = session.tally(whole)
    limit = session.options.unit_tokens
    shown = whole
    if message.role != "system" and oversize(tokens, limit, session.tally):
        if session.options.oversize == "raise":
            raise OversizeMessage(index, tokens, limit)
        shown = (clamp([whole], limit, session.tally) or [barest(whole)])[0]
    return Entry(
        seq=seq,
        message=message,
        shown=shown,
        tokens=tokens if shown is whole else session.tally(shown),
        whole_tokens=tokens,
        at=said_at(given.time, session.clock()),
        counter=session.tally.fingerprint,
    )
