"""Decides what every dialect has in common: what is asked, what is answered, what is refused, and what it costs."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from slidemem.testing import Provider, violations

Body = Mapping[str, Any]
Message = dict[str, Any]


@dataclass(eq=False)
class Refused(Exception):
    """A request that breaks a rule.

    Attributes:
        rule: the rule's name: one of `slidemem.testing.RULES`, or of the dialect's own.
        detail: what is wrong with it, for its sender.
        status: of HTTP.
        beside: fields of the error's body that only some errors have.
    """

    rule: str
    detail: str
    status: int = 400
    beside: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Block:
    """A piece of a prompt, in the order in which a model reads it.

    Attributes:
        text: what is tokenised.
        flat: tokens besides: of a frame, of an image.
        role: who says it; tells frames apart.
        marked: whether the sender marks the end of this piece as the end of a prefix to keep.
    """

    text: str
    flat: int = 0
    role: str = ""
    marked: bool = False


@dataclass(frozen=True)
class Asked:
    """A request that a dialect has read.

    Attributes:
        model: whom is asked.
        blocks: the prompt.
        messages: the same as OpenAI-format messages.
        tools: names of the tools that may be called.
        thinks: whether thinking is wanted.
        streams: whether the answer is to come in pieces.
        body: as it came.
    """

    model: str
    blocks: tuple[Block, ...]
    messages: tuple[Message, ...]
    tools: tuple[str, ...]
    thinks: bool
    streams: bool
    body: Body


@dataclass(frozen=True)
class Call:
    """A call of a tool in an answer."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Spoken:
    """What the model answers.

    Attributes:
        text: said aloud.
        calls: of tools.
        thought: before it; empty for none.
        number: of the answer, for ids.
    """

    text: str
    calls: tuple[Call, ...]
    thought: str
    number: int


@dataclass(frozen=True)
class Usage:
    """Tokens of one request and its answer."""

    prompt: int
    cached: int
    written: int
    answer: int
    thought: int


class Dialect(Protocol):
    """How one provider's wire is read and written."""

    name: str
    automatic: bool
    """Whether prefixes are kept without being marked."""

    def read(self, body: Body, path: str) -> Asked:
        """The request; raises `Refused`."""
        ...

    def answer(self, asked: Asked, spoken: Spoken, usage: Usage) -> dict[str, Any]:
        """The whole answer."""
        ...

    def pieces(self, asked: Asked, spoken: Spoken, usage: Usage) -> Iterator[bytes]:
        """The answer as a stream."""
        ...

    def refusal(self, refused: Refused) -> tuple[dict[str, Any], dict[str, str]]:
        """The error's body and headers."""
        ...

    def too_long(self, tokens: int, limit: int) -> Refused:
        """A prompt of more tokens than the model takes in."""
        ...


def check(messages: Sequence[Message], provider: Provider, ignore: Sequence[str] = ()) -> None:
    """Hold messages against the published rules of a provider.

    Raises:
        Refused: one is broken.
    """
    for found in violations(messages, providers=[provider], ignore=ignore):
        raise Refused(found.rule, f"messages.{found.index}: {found.detail}")


def demand(met: object, rule: str, detail: str) -> None:
    """Refuse a request that does not meet a rule of the dialect's own."""
    if not met:
        raise Refused(rule, detail)


def signed(thought: str) -> str:
    """The signature of a thought; nobody else can sign another."""
    mac = hashlib.blake2b(thought.encode("utf-8", "replace"), key=b"strict provider", digest_size=48)
    return base64.b64encode(mac.digest()).decode("ascii")


def sse(data: Any, event: str = "") -> bytes:
    """One server-sent event."""
    named = f"event: {event}\n" if event else ""
    said = data if isinstance(data, str) else json.dumps(data)
    return f"{named}data: {said}\n\n".encode()


def words(text: str) -> Iterator[str]:
    """A text in pieces of some words, as a model says it."""
    split = text.split(" ")
    for at in range(0, len(split), 6):
        yield " ".join(split[at : at + 6]) + (" " if at + 6 < len(split) else "")


def compact(value: Any) -> str:
    """JSON text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def texts(content: Any) -> str:
    """The readable text of an OpenAI-format content."""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or () if isinstance(part, dict) and part.get("text"))


FRAME = 4  # OpenAI cookbook, "How to count tokens with tiktoken": three for a message and one for its role
CALL = 6
IMAGE = 765


def blocks_of(messages: Sequence[Message]) -> Iterator[Block]:
    """OpenAI-format messages as a model reads them: one piece each, images at a flat price."""
    for message in messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else []
        images = sum(part.get("type") in {"image_url", "image"} for part in parts)
        thought = "".join(part.get("thinking") or "" for part in parts)
        calls = message.get("tool_calls") or ()
        said = "".join(f"{call['function']['name']}{call['function']['arguments']}" for call in calls)
        flat = FRAME + CALL * len(calls) + IMAGE * images
        yield Block(f"{thought}{texts(content)}{said}", flat, message["role"])
