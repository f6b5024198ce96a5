"""Decides what a message is: one neutral, frozen form, and the form in which it is stored.

What a host sent is kept whole (`Message.raw`), so that it comes back exactly; what we change or make carries
a `Mark`. Its way from and to OpenAI-format dicts is `openai_format.py`'s, pairing of calls and results is
`units.py`'s, counting is `tokens.py`'s.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar

from slidemem.media import address_of

Role = Literal["system", "user", "assistant", "tool"]
"""Who speaks in a message."""

PartKind = Literal["text", "reasoning", "image", "audio", "video", "file", "other"]
"""What a part of a message is; `other` is kept as it came."""

Host = TypeVar("Host")


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a message's content.

    Attributes:
        kind: what it is; `text` is the only kind that is cut when a message is clamped.
        text: its readable text, empty for media.
        source: the part as JSON text, its keys sorted, when a plain string cannot stand for it; else empty.
    """

    kind: PartKind
    text: str = ""
    source: str = ""

    @property
    def address(self) -> str:
        """Where media are: an address, or `data:image/png;base64,…`; "" where `source` does not say."""
        return address_of(self.source, self.kind)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool by the assistant.

    Attributes:
        id: the provider's id; may be empty or used again later.
        name: the tool's name.
        arguments: the arguments as sent: JSON text, or whatever the model wrote.
        custom: whether it is a custom tool, whose input is free text.
    """

    id: str
    name: str
    arguments: str
    custom: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """Says that we made or changed a message.

    Attributes:
        kinds: what was done: `head`, `note`, `stub`, `clamp`, `anchor`, `mended`, `joined`, `system`,
            `recall`.
        of: digests of the transcript's messages that it stands for; empty when we made it of none.
    """

    kinds: tuple[str, ...]
    of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message in the neutral form.

    Attributes:
        role: `system`, `user`, `assistant` or `tool`.
        parts: the content in order; empty for an assistant message that only calls tools.
        tool_calls: the calls of an assistant message.
        tool_call_id: the call that a tool message answers; None when the host did not say.
        name: the speaker's or the tool's name.
        id: the host's id of the message.
        time: when it was said, ISO 8601; None when the host did not say.
        raw: the host's own message as a JSON object (ASCII text), or None when the neutral form says it all; an
            OpenAI-format one has a `role`, one of another host has none.
        mark: set when we made the message or changed what is shown of it.
    """

    role: Role
    parts: tuple[Part, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    id: str | None = None
    time: str | None = None
    raw: str | None = None
    mark: Mark | None = None
    _digest: str = field(default="", init=False, repr=False, compare=False)

    @property
    def digest(self) -> str:
        """See the function `digest`; worked out once, since the message is frozen."""
        if not self._digest:
            object.__setattr__(self, "_digest", _digested(self))
        return self._digest

    @property
    def text(self) -> str:
        """The readable text of the content, without reasoning."""
        return "\n".join(part.text for part in self.parts if part.kind == "text")

    @property
    def reasons(self) -> bool:
        """Whether the content holds a reasoning block."""
        return any(part.kind == "reasoning" for part in self.parts)

    @property
    def starts_with_reasoning(self) -> bool:
        """Whether the first block of the content is reasoning."""
        return bool(self.parts) and self.parts[0].kind == "reasoning"


class MessageCodec(Protocol[Host]):
    """How an adapter turns its framework's messages into ours and back.

    `decode(encode(x))` equals `x`. A message with a `mark` is decoded from its neutral fields, with what
    they do not say taken from `raw`.
    """

    def encode(self, message: Host) -> Message:
        """The neutral form of a framework's message; raises `InvalidMessage`."""
        ...

    def decode(self, message: Message) -> Host:
        """The framework's message of a neutral one."""
        ...


def system(text: str) -> Message:
    """A system message of plain text."""
    return Message("system", (Part("text", text),))


def user(text: str) -> Message:
    """A user message of plain text."""
    return Message("user", (Part("text", text),))


def marked(changed: Message, kind: str, before: Message) -> Message:
    """A changed message with one more kind in its mark, which says what it was before it was first changed."""
    kinds = before.mark.kinds if before.mark else ()
    mark = Mark(kinds if kind in kinds else (*kinds, kind), origins(before))
    return changed if changed.mark == mark else replace(changed, mark=mark)


def origins(message: Message) -> tuple[str, ...]:
    """Digests of the messages that one stands for: its own, or those that its mark names."""
    return message.mark.of if message.mark else (digest(message),)


def digest(message: Message) -> str:
    """A short fingerprint of what a message says: 32 hexadecimal digits; ids, times and marks left out.

    The same in every framework's shape: of readable text the text, of media where they are, of arguments their JSON.
    """
    return message.digest


def _digested(message: Message) -> str:
    said = (
        message.role,
        message.name or "",
        message.tool_call_id or "",
        [_said(part) for part in message.parts if part.text or part.source],
        [(call.id, call.name, _arguments(call), call.custom) for call in message.tool_calls],
    )
    return hashlib.blake2b(json.dumps(said).encode("ascii"), digest_size=16).hexdigest()


def _said(part: Part) -> tuple[str, str]:
    if part.text and part.kind in {"text", "reasoning"}:
        return part.kind, part.text
    address = part.address
    return part.kind, address.partition(";base64,")[2] or address or part.source or part.text


def _arguments(call: ToolCall) -> str:
    if call.custom:
        return call.arguments
    try:
        return json.dumps(json.loads(call.arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return call.arguments


def to_json(message: Message) -> dict[str, Any]:
    """The message as a small JSON object; empty fields are left out."""
    stored: dict[str, Any] = {"role": message.role}
    if message.parts:
        stored["parts"] = [[part.kind, part.text, part.source] for part in message.parts]
    if message.tool_calls:
        stored["tool_calls"] = [[call.id, call.name, call.arguments, call.custom] for call in message.tool_calls]
    for key in ("tool_call_id", "name", "id", "time", "raw"):
        if getattr(message, key) is not None:
            stored[key] = getattr(message, key)
    if message.mark:
        stored["mark"] = [list(message.mark.kinds), list(message.mark.of)]
    return stored


def from_json(stored: Mapping[str, Any]) -> Message:
    """The message of `to_json`'s object."""
    mark = stored.get("mark")
    return Message(
        role=stored["role"],
        parts=tuple(Part(*part) for part in stored.get("parts", ())),
        tool_calls=tuple(ToolCall(*call) for call in stored.get("tool_calls", ())),
        tool_call_id=stored.get("tool_call_id"),
        name=stored.get("name"),
        id=stored.get("id"),
        time=stored.get("time"),
        raw=stored.get("raw"),
        mark=Mark(tuple(mark[0]), tuple(mark[1])) if mark else None,
    )
