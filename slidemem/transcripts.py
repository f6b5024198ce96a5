"""Decides how a transcript file is read: which shapes are taken, and what is said of a file that is none of them.

Taken are a JSON list of OpenAI-format messages, an object that holds such a list as `messages`, and JSONL with
one message a line; the content tells which, not the file's name. Every fault is an `InvalidTranscript` of one
line. What a message may look like is `messages.py`'s.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final, cast

from slidemem.errors import InvalidMessage, InvalidTranscript
from slidemem.messages import Message
from slidemem.openai_format import from_openai

_SHAPES: Final = "a JSON list of messages, an object with messages, or one JSON message a line"
_FACT: Final = "an object with said_in, needed_in, text and needle"


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that is said early and needed late; turns are user messages, counted from 1.

    Attributes:
        said_in: the turn in which it is said.
        needed_in: the turn whose answer needs it.
        text: what it is, in a sentence.
        needle: the words by which a context is searched for it, letter case aside.
    """

    said_in: int
    needed_in: int
    text: str
    needle: str


@dataclass(frozen=True, slots=True)
class TranscriptFile:
    """What a transcript file holds.

    Attributes:
        messages: at least one, in order.
        facts: what its author wants looked for; only an object can hold them.
        title: of the conversation, "" when it has none.
    """

    messages: tuple[Message, ...]
    facts: tuple[Fact, ...] = ()
    title: str = ""


def read_transcript(path: str | PathLike[str]) -> TranscriptFile:
    """Read a transcript file.

    Raises:
        InvalidTranscript: it cannot be opened, or is none of the shapes that are taken.
    """
    source = _printable(fspath(path))
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InvalidTranscript(f"{source}: {error.strerror or error}; expected a file with {_SHAPES}") from None
    except ValueError as error:  # a NUL in the name
        raise InvalidTranscript(f"{source}: no file can have this name ({error})") from None
    return parse_transcript(data, source)


def parse_transcript(data: bytes, source: str) -> TranscriptFile:
    """Read the content of a transcript file.

    Args:
        data: UTF-8, with or without a byte order mark.
        source: the file's name, for errors.

    Raises:
        InvalidTranscript: it is none of the shapes that are taken.
    """
    text = _decoded(data, source)
    if not text.strip():
        raise InvalidTranscript(f"{source}: the file is empty; expected {_SHAPES}")
    if _is_jsonl(text):
        return TranscriptFile(tuple(_lines(text, source)))
    return _document(_loaded(text, source), source)


def _decoded(data: bytes, source: str) -> str:
    if b"\0" in data:
        raise InvalidTranscript(f"{source}: a binary file, or text in UTF-16; expected {_SHAPES}, in UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        if error.reason == "unexpected end of data":
            raise InvalidTranscript(f"{source}, line {line}: truncated: it ends inside a character") from None
        raise InvalidTranscript(
            f"{source}, line {line}: not UTF-8 (byte 0x{data[error.start]:02x}); save the file as UTF-8"
        ) from None


def _is_jsonl(text: str) -> bool:
    """Whether the first line that is not blank is a whole object, and no conversation that ends there."""
    lines = (line for line in text.split("\n") if line.strip())
    try:
        first = json.loads(next(lines))
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and ("role" in first or next(lines, None) is not None)


def _lines(text: str, source: str) -> Iterator[Message]:
    """The messages of JSONL; lines end with a line feed only, since JSON text may hold other separators."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        item = _loaded(line, source, number)
        if _is_conversation(item):
            raise InvalidTranscript(
                f"{source}, line {number}: a whole conversation; expected one message a line, "
                "so give each conversation a file of its own"
            )
        yield _message(item, f"{source}, line {number}")


def _is_conversation(item: object) -> bool:
    return isinstance(item, dict) and "messages" in item and "role" not in item


def _document(document: object, source: str) -> TranscriptFile:
    if isinstance(document, list):
        return TranscriptFile(_messages(cast("list[object]", document), source))
    if not isinstance(document, dict):
        raise InvalidTranscript(f"{source}: the file holds {_kind(document)}; expected {_SHAPES}")
    fields = cast("dict[str, object]", document)
    if "messages" not in fields:
        raise InvalidTranscript(
            f"{source}: an object without messages (its keys: {_keys(fields)}); expected {_SHAPES}"
        )
    listed, title = fields["messages"], fields.get("title", "")
    if not isinstance(listed, list):
        raise InvalidTranscript(f"{source}: messages must be a list, got {_kind(listed)}")
    if not isinstance(title, str):
        raise InvalidTranscript(f"{source}: title must be text, got {_kind(title)}")
    messages = _messages(cast("list[object]", listed), source)
    return TranscriptFile(messages, _facts(fields.get("facts", []), messages, source), title)


def _messages(listed: Sequence[object], source: str) -> tuple[Message, ...]:
    if not listed:
        raise InvalidTranscript(f"{source}: the list of messages is empty; expected at least one message")
    return tuple(_message(item, f"{source}: messages[{index}]") for index, item in enumerate(listed))


def _message(item: object, place: str) -> Message:
    if not isinstance(item, dict):
        raise InvalidTranscript(f"{place}: expected a message with role and content, got {_kind(item)}")
    try:
        return from_openai(cast("dict[str, Any]", item))
    except InvalidMessage as error:
        raise InvalidTranscript(f"{place}: {error.reason}") from None


def _facts(listed: object, messages: Sequence[Message], source: str) -> tuple[Fact, ...]:
    if not isinstance(listed, list):
        raise InvalidTranscript(f"{source}: facts must be a list, got {_kind(listed)}")
    turns = sum(1 for message in messages if message.role == "user")
    return tuple(
        _fact(item, turns, f"{source}: facts[{index}]") for index, item in enumerate(cast("list[object]", listed))
    )


def _fact(item: object, turns: int, place: str) -> Fact:
    if not isinstance(item, dict):
        raise InvalidTranscript(f"{place}: expected {_FACT}, got {_kind(item)}")
    fields = cast("dict[str, object]", item)
    said_in = _turn(fields, "said_in", 1, turns, place)
    needed_in = _turn(fields, "needed_in", said_in, turns, place)
    return Fact(said_in, needed_in, _words(fields, "text", place), _words(fields, "needle", place))


def _turn(fields: Mapping[str, object], name: str, first: int, last: int, place: str) -> int:
    value = fields.get(name)
    if type(value) is not int or not first <= value <= last:
        raise InvalidTranscript(
            f"{place}: {name} must be a user turn from {first} to {last}, got {json.dumps(value):.40}"
        )
    return value


def _words(fields: Mapping[str, object], name: str, place: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InvalidTranscript(f"{place}: {name} must be text that is not blank, got {json.dumps(value):.40}")
    return value


def _loaded(text: str, source: str, line: int | None = None) -> object:
    """The value of a JSON text.

    Args:
        text: the JSON text.
        source: the file's name.
        line: of the file, when the text is this line of it; None when it is the whole file.
    """
    try:
        return cast("object", json.loads(text))
    except json.JSONDecodeError as error:
        place = f"{source}, line {line or error.lineno}"
        raise InvalidTranscript(f"{place}: {_fault(error, text)}; expected {_SHAPES}") from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, lists in lists in lists
        place = source if line is None else f"{source}, line {line}"
        raise InvalidTranscript(f"{place}: JSON that cannot be read ({error})") from None


def _fault(error: json.JSONDecodeError, text: str) -> str:
    if error.msg.startswith("Unterminated string"):
        return f"truncated JSON: the text that opens in column {error.colno} never ends"
    if error.pos >= len(text.rstrip()):
        return "truncated JSON: it ends before it is complete"
    return f"not JSON ({error.msg}, column {error.colno})"


def _kind(value: object) -> str:
    """What JSON calls a value."""
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (bool, "true or false"),
        ((int, float), "a number"),
        (str, "text"),
        (list, "a list"),
        (dict, "an object"),
    )
    return next((name for kind, name in kinds if isinstance(value, kind)), "null")


def _keys(fields: Mapping[str, object]) -> str:
    return f"{', '.join(map(json.dumps, fields)) or 'none'}"[:80]


def _printable(name: str) -> str:
    """A file's name as it is, or quoted when a terminal could take it for more than a name."""
    return name if name.isprintable() else ascii(name)
