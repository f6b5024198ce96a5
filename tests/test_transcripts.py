import json
from pathlib import Path
from typing import Any

import pytest

from slidemem import InvalidTranscript, Message, Part
from slidemem.transcripts import Fact, TranscriptFile, parse_transcript, read_transcript

HI = {"role": "user", "content": "Hi"}
HELLO = {"role": "assistant", "content": "नमस्ते"}
MESSAGES = (Message("user", (Part("text", "Hi"),)), Message("assistant", (Part("text", "नमस्ते"),)))
FACT = {"said_in": 1, "needed_in": 1, "text": "She says hi.", "needle": "hi"}
SHAPES = "expected a JSON list of messages, an object with messages, or one JSON message a line"


def as_json(value: Any) -> bytes:
    """Return a value as UTF-8 JSON text."""
    return json.dumps(value, ensure_ascii=False).encode()


def refusal(data: bytes) -> str:
    """Return what is said of a file's content that is refused."""
    with pytest.raises(InvalidTranscript) as caught:
        parse_transcript(data, "chat.json")
    return str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(as_json([HI, HELLO]), id="list"),
        pytest.param(json.dumps([HI, HELLO], indent=2).encode(), id="list-over-lines"),
        pytest.param(b"\xef\xbb\xbf" + as_json([HI, HELLO]), id="byte-order-mark"),
        pytest.param(as_json({"messages": [HI, HELLO]}), id="object"),
        pytest.param(json.dumps({"messages": [HI, HELLO]}, indent=2).encode(), id="object-over-lines"),
        pytest.param(as_json(HI) + b"\n" + as_json(HELLO), id="jsonl"),
        pytest.param(b"\n" + as_json(HI) + b"\r\n \r\n" + as_json(HELLO) + b"\n\n", id="jsonl-blank-lines"),
        pytest.param(b"\xef\xbb\xbf" + as_json(HI) + b"\n" + as_json(HELLO), id="jsonl-byte-order-mark"),
    ],
)
def test_takes_each_shape(data: bytes) -> None:
    """A list, an object and one message a line come to the same messages."""
    actual = parse_transcript(data, "chat.json")
    expected = TranscriptFile(MESSAGES)

    assert expected == actual


def test_one_message_alone_is_a_line() -> None:
    """A file that is one message is JSONL of one line."""
    actual = parse_transcript(as_json(HI), "chat.jsonl")
    expected = TranscriptFile(MESSAGES[:1])

    assert expected == actual


def test_line_separators_inside_json_split_no_line() -> None:
    """U+2028 and U+0085 stand in JSON text unescaped, and only a line feed ends a line."""
    said = "one\u2028two\u0085three"
    data = as_json({"role": "user", "content": said}) + b"\n" + as_json(HELLO)
    actual = [message.text for message in parse_transcript(data, "chat.jsonl").messages]
    expected = [said, "नमस्ते"]

    assert expected == actual


def test_an_object_may_hold_title_and_facts() -> None:
    """Title and facts are read, and keys that mean nothing here are passed over."""
    data = as_json({"title": "T", "about": 1, "messages": [HI, HELLO], "facts": [{**FACT, "more": 1}]})
    actual = parse_transcript(data, "chat.json")
    expected = TranscriptFile(MESSAGES, (Fact(1, 1, "She says hi.", "hi"),), "T")

    assert expected == actual


def test_reads_a_file(tmp_path: Path) -> None:
    """A path, as text or as a `Path`, is read from disk."""
    path = tmp_path / "chat.json"
    path.write_bytes(as_json([HI, HELLO]))
    actual = [read_transcript(path), read_transcript(str(path))]
    expected = [TranscriptFile(MESSAGES)] * 2

    assert expected == actual


@pytest.mark.parametrize(
    "data, expected",
    [
        pytest.param(b"", f"chat.json: the file is empty; {SHAPES}", id="empty"),
        pytest.param(b" \n\t\n", f"chat.json: the file is empty; {SHAPES}", id="blank"),
        pytest.param(
            b"\x89PNG\r\n\x1a\n\0\0",
            f"chat.json: a binary file, or text in UTF-16; {SHAPES}, in UTF-8",
            id="binary",
        ),
        pytest.param(
            "[]".encode("utf-16"),
            f"chat.json: a binary file, or text in UTF-16; {SHAPES}, in UTF-8",
            id="utf-16",
        ),
        pytest.param(
            b'[{"role": "user",\n"content": "caf\xe9"}]',
            "chat.json, line 2: not UTF-8 (byte 0xe9); save the file as UTF-8",
            id="latin-1",
        ),
        pytest.param(
            as_json([HI, HELLO])[:-5],
            "chat.json, line 1: truncated: it ends inside a character",
            id="truncated-character",
        ),
        pytest.param(
            b'[\n{"role": "user", "content": "a"},\n{"role": "user"',
            f"chat.json, line 3: truncated JSON: it ends before it is complete; {SHAPES}",
            id="truncated-list",
        ),
        pytest.param(
            b'[{"role": "user", "content": "and th',
            f"chat.json, line 1: truncated JSON: the text that opens in column 30 never ends; {SHAPES}",
            id="truncated-text",
        ),
        pytest.param(
            b"Hello there,\nhow are you?",
            f"chat.json, line 1: not JSON (Expecting value, column 1); {SHAPES}",
            id="prose",
        ),
        pytest.param(
            b'["a"]\n["b"]',
            f"chat.json, line 2: not JSON (Extra data, column 1); {SHAPES}",
            id="two-lists",
        ),
        pytest.param(
            as_json(HI) + b"\n\n" + b"{oops}",
            "chat.json, line 3: not JSON (Expecting property name enclosed in double quotes, column 2); " + SHAPES,
            id="jsonl-bad-line",
        ),
        pytest.param(
            as_json(HI) + b"\n" + as_json(HI)[:-3],
            f"chat.json, line 2: truncated JSON: the text that opens in column 29 never ends; {SHAPES}",
            id="jsonl-truncated",
        ),
        pytest.param(
            as_json(HI) + b"\n[1]",
            "chat.json, line 2: expected a message with role and content, got a list",
            id="jsonl-list",
        ),
        pytest.param(
            as_json(HI) + b'\n{"role": "robot", "content": "x"}',
            "chat.json, line 2: unknown role 'robot'; known: system, developer, user, assistant, tool, function",
            id="jsonl-unknown-role",
        ),
        pytest.param(
            as_json({"messages": [HI]}) + b"\n" + as_json({"messages": [HI]}),
            "chat.json, line 1: a whole conversation; expected one message a line, "
            "so give each conversation a file of its own",
            id="jsonl-conversations",
        ),
        pytest.param(
            as_json(HI) + b"\n" + b"9" * 5000,
            "chat.json, line 2: JSON that cannot be read (",
            id="jsonl-endless-number",
        ),
        pytest.param(b"[" * 100_000, "chat.json: JSON that cannot be read (", id="nested-too-deeply"),
        pytest.param(b'"hi"', f"chat.json: the file holds text; {SHAPES}", id="text"),
        pytest.param(b"17", f"chat.json: the file holds a number; {SHAPES}", id="number"),
        pytest.param(b"true", f"chat.json: the file holds true or false; {SHAPES}", id="boolean"),
        pytest.param(b"null", f"chat.json: the file holds null; {SHAPES}", id="null"),
        pytest.param(
            b"[]", "chat.json: the list of messages is empty; expected at least one message", id="no-messages"
        ),
        pytest.param(
            b'{"messages": []}',
            "chat.json: the list of messages is empty; expected at least one message",
            id="object-no-messages",
        ),
        pytest.param(
            b'["Hi", "Hello"]',
            "chat.json: messages[0]: expected a message with role and content, got text",
            id="list-of-texts",
        ),
        pytest.param(
            as_json([HI, {"role": "robot"}]),
            "chat.json: messages[1]: unknown role 'robot'; known: system, developer, user, assistant, tool, function",
            id="unknown-role",
        ),
        pytest.param(as_json([HI, {"content": "x"}]), "chat.json: messages[1]: unknown role", id="no-role"),
        pytest.param(
            as_json([{"role": "user", "content": 5}]),
            "chat.json: messages[0]: content must be text, a list of parts or None, got int",
            id="bad-content",
        ),
        pytest.param(
            b'{"chat": [], "n": 1}',
            f'chat.json: an object without messages (its keys: "chat", "n"); {SHAPES}',
            id="object-without-messages",
        ),
        pytest.param(b"{}", f"chat.json: an object without messages (its keys: none); {SHAPES}", id="empty-object"),
        pytest.param(
            b'{"messages": {"role": "user"}}',
            "chat.json: messages must be a list, got an object",
            id="messages-no-list",
        ),
        pytest.param(
            as_json({"messages": [HI], "title": 5}),
            "chat.json: title must be text, got a number",
            id="title-no-text",
        ),
        pytest.param(
            as_json({"messages": [HI], "facts": "x"}),
            "chat.json: facts must be a list, got text",
            id="facts-no-list",
        ),
        pytest.param(
            as_json({"messages": [HI], "facts": [FACT, 5]}),
            "chat.json: facts[1]: expected an object with said_in, needed_in, text and needle, got a number",
            id="fact-no-object",
        ),
        pytest.param(
            as_json({"messages": [HI], "facts": [{**FACT, "said_in": 2}]}),
            "chat.json: facts[0]: said_in must be a user turn from 1 to 1, got 2",
            id="fact-beyond-the-end",
        ),
        pytest.param(
            as_json({"messages": [HI, HI, HI], "facts": [{**FACT, "said_in": 2}]}),
            "chat.json: facts[0]: needed_in must be a user turn from 2 to 3, got 1",
            id="fact-needed-before-said",
        ),
        pytest.param(
            as_json({"messages": [HI], "facts": [{**FACT, "said_in": True}]}),
            "chat.json: facts[0]: said_in must be a user turn from 1 to 1, got true",
            id="fact-turn-no-number",
        ),
        pytest.param(
            as_json({"messages": [HI], "facts": [{**FACT, "needle": " "}]}),
            'chat.json: facts[0]: needle must be text that is not blank, got " "',
            id="fact-blank-needle",
        ),
        pytest.param(
            as_json({"messages": [HI], "facts": [{**FACT, "text": None}]}),
            "chat.json: facts[0]: text must be text that is not blank, got null",
            id="fact-no-text",
        ),
    ],
)
def test_refuses_in_one_clear_line(data: bytes, expected: str) -> None:
    """What is refused is named in one line: the file, the place, what is wrong and what was expected."""
    said = refusal(data)
    actual = (said[: len(expected)], said.count("\n"))

    assert (expected, 0) == actual


@pytest.mark.parametrize(
    "name, expected",
    [
        pytest.param(
            "none.json", f"{{}}/none.json: No such file or directory; expected a file with {SHAPES[9:]}", id="missing"
        ),
        pytest.param(".", f"{{}}: Is a directory; expected a file with {SHAPES[9:]}", id="directory"),
    ],
)
def test_refuses_what_cannot_be_opened(tmp_path: Path, name: str, expected: str) -> None:
    """A path that no file can be read from is refused with the system's reason."""
    with pytest.raises(InvalidTranscript) as caught:
        read_transcript(tmp_path / name)
    actual = str(caught.value)

    assert expected.format(tmp_path) == actual


@pytest.mark.parametrize(
    "name, expected",
    [
        pytest.param("a\0b", r"'a\x00b': no file can have this name (", id="nul"),
        pytest.param("\x1b[31m", r"'\x1b[31m': No such file or directory; expected", id="escape"),
    ],
)
def test_a_strange_name_is_quoted(name: str, expected: str) -> None:
    """A name with control characters is quoted, so that no terminal obeys it."""
    with pytest.raises(InvalidTranscript) as caught:
        read_transcript(name)
    actual = str(caught.value)[: len(expected)]

    assert expected == actual
