"""Every error that a user of slidemem can meet.

    SlidememError
    ├── ConfigurationError      a wrong option, counter or store (also a ValueError)
    ├── InvalidMessage          a message that cannot be read (also a ValueError)
    ├── InvalidTranscript       a transcript file that cannot be read (also a ValueError)
    ├── InvalidExport           an exported session that cannot be read (also a ValueError)
    ├── TranscriptMismatch      a list to reconcile that begins nowhere in the transcript (also a ValueError)
    ├── UnknownReference        a message or a segment that is not there (also a LookupError)
    ├── SessionExists           a session to restore over one that holds something
    ├── BudgetError             something does not fit
    │   ├── BudgetTooSmall      the newest message does not fit, even clamped
    │   ├── OversizeMessage     one message is larger than `oversize="raise"` allows
    │   └── PinBudgetError      a pin does not fit beside the other pins
    ├── StoreError              a store cannot do what it was asked
    │   ├── StoreBusy           it waited for another writer for too long
    │   └── StoreUnreachable    the connection to its server broke, or none can be had
    ├── VocabularyMissing       a tokenizer asked for by name has no vocabulary here
    ├── MissingExtra            an optional dependency is not installed (also an ImportError)
    └── AsyncOnly               a sync call reached something that only works when awaited

Each message says what happened, with the numbers, and what to do.
"""

from __future__ import annotations

from typing import Any


class SlidememError(Exception):
    """Root of the tree: catch it to catch everything that slidemem raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as it is, so that an error crosses processes."""
        return _revived, (type(self), self.args, self.__dict__)


def _revived(kind: type[SlidememError], args: tuple[Any, ...], state: dict[str, Any]) -> SlidememError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


def told(fault: BaseException) -> str:
    """Name and text of any exception, one that cannot be told in words among them."""
    try:
        return f"{type(fault).__name__}: {fault}"
    except Exception:  # noqa: BLE001  # its own __str__ raises
        return type(fault).__name__


class ConfigurationError(SlidememError, ValueError):
    """An option, a counter or a store is wrong; raised when the object is made."""


class InvalidMessage(SlidememError, ValueError):
    """A message that cannot be read; nothing of the call that held it was stored.

    Attributes:
        index: position of the message in the list that was handed in.
        reason: what is wrong with it.
    """

    def __init__(self, reason: str, index: int = 0) -> None:
        self.reason = reason
        self.index = index
        super().__init__(f"message {index}: {reason}")


class InvalidTranscript(SlidememError, ValueError):
    """A transcript file that cannot be read; the text names the file, the line and the fault."""


class InvalidExport(SlidememError, ValueError):
    """An exported session that cannot be read; nothing was restored."""


class TranscriptMismatch(SlidememError, ValueError):
    """A list of messages that begins nowhere in the session's transcript; nothing has changed.

    Attributes:
        given: messages in the list.
        stored: messages in the transcript.
    """

    def __init__(self, given: int, stored: int) -> None:
        self.given = given
        self.stored = stored
        super().__init__(
            f"the {given} messages given begin with one that is not among the {stored} of the transcript, by id or "
            "by content: is it another session? "
            "To go on with the list instead, pass replace=True (the transcript is kept as a closed branch)"
        )


class UnknownReference(SlidememError, LookupError):
    """A message, or a segment of the archive, that the session does not have."""


class SessionExists(SlidememError):
    """A session to restore over one that holds something; nothing has changed."""

    def __init__(self, session: str, messages: int) -> None:
        super().__init__(
            f"session {session!r:.80} holds {messages} messages, or closed branches, pins or metadata: "
            "restore under another id, clear it first, or pass replace=True"
        )


class BudgetError(SlidememError):
    """Something does not fit into its share of the token budget."""


class BudgetTooSmall(BudgetError):
    """Even the newest message, clamped to its marks, does not fit.

    Attributes:
        needed: tokens that the smallest possible context takes.
        usable: tokens that there are (`max_tokens` less what is reserved).
    """

    def __init__(self, needed: int, usable: int) -> None:
        self.needed = needed
        self.usable = usable
        super().__init__(
            f"the smallest possible context takes {needed} tokens and {usable} are usable: "
            f"raise max_tokens by at least {needed - usable}, or reserve less"
        )


class OversizeMessage(BudgetError):
    """One message is larger than half of usable and `oversize="raise"` forbids clamping it.

    Attributes:
        index: position of the message in the list that was handed in.
        tokens: what it takes.
        limit: what one message may take.
    """

    def __init__(self, index: int, tokens: int, limit: int) -> None:
        self.index = index
        self.tokens = tokens
        self.limit = limit
        super().__init__(
            f"message {index} takes {tokens} tokens and one message may take {limit} (half of usable): "
            'shorten it, raise max_tokens, or let it be clamped with oversize="clamp"'
        )


class PinBudgetError(BudgetError):
    """A pin, or a session's metadata, do not fit into `archive_share` beside the pins and metadata already there.

    Attributes:
        needed: tokens that all pins and metadata would take with the new one.
        limit: tokens that `archive_share` allows.
    """

    def __init__(self, needed: int, limit: int, what: str = "this pin") -> None:
        self.needed = needed
        self.limit = limit
        super().__init__(
            f"with {what} the pinned zone takes {needed} tokens and archive_share allows {limit}: "
            "shorten it, unpin something, or raise archive_share or max_tokens"
        )


class StoreError(SlidememError):
    """A store cannot do what it was asked: it is damaged, full, or out of reach; the call has changed nothing.

    Attributes:
        where: the store's file or address.
        reason: what went wrong.
    """

    def __init__(self, where: str, reason: str, advice: str) -> None:
        self.where = where
        self.reason = reason
        super().__init__(f"the store {where} cannot be used ({reason}): {advice}")


class StoreBusy(StoreError):
    """A store waited for another writer, and gave up; the call has changed nothing and may be made again.

    Attributes:
        seconds: how long it waited.
    """

    def __init__(self, where: str, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(
            where,
            f"another writer held it for more than {seconds:g} seconds",
            "call again, give the store more busy_seconds, or look for a program that keeps a transaction open",
        )


class StoreUnreachable(StoreError):
    """The connection to a store's server broke, or none can be had; a change may have happened, whole, or not at all.

    What is appended again is kept once where each message has an `id`.
    """

    def __init__(self, where: str, reason: str) -> None:
        advice = (
            "see that the server runs and can be reached, and call again: whether this call has happened is not "
            "known, and messages that have an id are kept once however often they are sent"
        )
        super().__init__(where, reason, advice)


class VocabularyMissing(SlidememError):
    """A tokenizer was asked for by name and its vocabulary is neither cached nor reachable."""

    def __init__(self, name: str, cause: str) -> None:
        super().__init__(
            f"the tiktoken vocabulary of {name!r} could not be loaded ({cause}): run once with network access, "
            "or point TIKTOKEN_CACHE_DIR at a folder that holds it, "
            'or count with counter="approximate", which needs no vocabulary'
        )


class MissingExtra(SlidememError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra {extra!r}: pip install 'slidemem[{extra}]'")


class AsyncOnly(SlidememError):
    """A sync call reached a store or summariser that has to be awaited."""

    def __init__(self, twin: str) -> None:
        super().__init__(f"this session uses something that only works when awaited: await {twin}() instead")
