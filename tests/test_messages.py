"""What comes in as an OpenAI-format dict comes back exactly, and what cannot be read is refused by name."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import FrozenInstanceError, replace
from datetime import datetime, timezone
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slidemem.errors import InvalidMessage
from slidemem.messages import Mark, Message, Part, ToolCall, digest, from_json, marked, origins, system, to_json, user
from slidemem.openai_format import from_openai, to_openai
from slidemem.present import without_reasoning

if TYPE_CHECKING:
    from collections.abc import Callable

Data = dict[str, Any]

PNG = "data:image/png;base64,iVBORw0KGgo="
DEEP = 100_000


def said(content: Any, role: str = "user", **more: Any) -> Data:
    """A message."""
    return {"role": role, "content": content, **more}


def change(message: Message, kind: str) -> Message:
    """A message that was marked and not changed otherwise."""
    return marked(message, kind, message)


def calling(*calls: Any, content: Any = None, **more: Any) -> Data:
    """An assistant message with calls."""
    return said(content, "assistant", tool_calls=list(calls), **more)


def call(arguments: Any = '{"to": "Pune"}', **more: Any) -> Data:
    """A call of a tool."""
    return {"id": "call_1", "type": "function", "function": {"name": "trains", "arguments": arguments}, **more}


def custom(text: Any = "to Pune") -> Data:
    """A call of a custom tool."""
    return {"id": "call_1", "type": "custom", "custom": {"name": "trains", "input": text}}


def text(said: Any = "At nine.", **more: Any) -> Data:
    """A text part."""
    return {"type": "text", "text": said, **more}


def thought(**more: Any) -> Data:
    """A signed thinking block."""
    return {"type": "thinking", "thinking": "Look it up.", "signature": "c2lnbmVk", **more}


def image() -> Data:
    """An image part."""
    return {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}}


def nested(depth: int) -> list[Any]:
    """A list in a list in a list."""
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


def circle() -> Data:
    """A dict that holds itself."""
    data: Data = {}
    data["self"] = data
    return data


SHAPES: dict[str, Data] = {
    "text": said("When does the train leave?"),
    "empty text": said(""),
    "content None": said(None, "assistant"),
    "content missing": {"role": "assistant"},
    "no parts": said([]),
    "one text part": said([text()]),
    "two text parts": said([text("a"), text("b")]),
    "strings as parts": said(["a", "b"]),
    "text part without text": said([{"type": "text"}]),
    "text part with a number": said([text(5)]),
    "part with cache_control": said([text(cache_control={"type": "ephemeral"})]),
    "message with cache_control": said("Hi", cache_control={"type": "ephemeral"}),
    "image": said([text(), image()]),
    "image alone": said([image()]),
    "sound": said([{"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}]),
    "file": said([{"type": "file", "file": {"file_id": "file-1"}}]),
    "unknown part": said([{"type": "hologram", "x": [1, 2.5, True, None, {"y": "z"}]}]),
    "refusal part": said([{"type": "refusal", "refusal": "No."}], "assistant"),
    "refusal": said(None, "assistant", refusal="No."),
    "refusal None": said("Yes.", "assistant", refusal=None),
    "audio": said(None, "assistant", audio={"id": "audio_1"}),
    "weight": said("Yes.", "assistant", weight=0),
    "whole numbers and truth": said("Hi", zero=0, false=False, one=1, true=True, float=1.0),
    "system": said("Be brief.", "system"),
    "developer": said("Be brief.", "developer"),
    "name": said("Hi", name="alice"),
    "name None": said("Hi", name=None),
    "id": said("Hi", id="msg-1"),
    "calls": calling(call(), call("")),
    "calls and text": calling(call(), content="A moment."),
    "calls and parts": calling(call(), content=[text(), text()]),
    "calls None": said("Hi", "assistant", tool_calls=None, function_call=None),
    "no calls": said("Hi", "assistant", tool_calls=[]),
    "calls of a user": said("Hi", tool_calls="not read"),
    "call with more keys": calling(call(index=0, extra_content={"google": {"thought_signature": "c2ln"}})),
    "call without id": calling({"type": "function", "function": {"name": "trains", "arguments": "{}"}}),
    "call without arguments": calling({"id": "call_1", "type": "function", "function": {"name": "trains"}}),
    "call with a dict of arguments": calling(call({"to": "Pune"})),
    "call with a list of arguments": calling(call(["Pune"])),
    "custom call": calling(custom()),
    "both kinds of calls": calling(call(), custom()),
    "legacy call": said(None, "assistant", function_call={"name": "trains", "arguments": "{}"}),
    "legacy call beside no calls": said(
        None, "assistant", tool_calls=[], function_call={"name": "trains", "arguments": "{}"}
    ),
    "legacy result": said("9:00", "function", name="trains"),
    "result": said("9:00", "tool", tool_call_id="call_1"),
    "result with a name": said("9:00", "tool", tool_call_id="call_1", name="trains"),
    "result without id": said("9:00", "tool"),
    "result with an empty id": said("9:00", "tool", tool_call_id=""),
    "result in parts": said([text("9:00")], "tool", tool_call_id="call_1"),
    "reasoning beside": said("Nine.", "assistant", reasoning_content="Look it up."),
    "reasoning beside parts": said([text(), text()], "assistant", reasoning_content="Look it up."),
    "reasoning empty": said("Nine.", "assistant", reasoning_content=""),
    "reasoning None": said("Nine.", "assistant", reasoning_content=None),
    "reasoning block": said([thought(), text()], "assistant"),
    "reasoning block alone": said([thought()], "assistant"),
    "reasoning redacted": said([{"type": "redacted_thinking", "data": "AAAA"}], "assistant"),
    "reasoning twice": said([thought(), text()], "assistant", reasoning_content="Look it up."),
    "strange characters": said("\x00 \ud800 \udc00 \u2028 \U0001f600 नमस्ते", name="\udfff"),
    "strange characters in parts": said([text("\x00\ud800", cache_control={"\udc00": "\x00"})]),
    "strange characters in calls": calling(call("\x00\ud800")),
}

every_shape = pytest.mark.parametrize("data", SHAPES.values(), ids=SHAPES.keys())


def scramble(value: Any) -> None:
    """Change everything in a value that can be changed."""
    if isinstance(value, dict):
        for inner in value.values():
            scramble(inner)
        value["scrambled"] = True
    elif isinstance(value, list):
        for inner in value:
            scramble(inner)
        value.append("scrambled")


@every_shape
def test_a_dict_comes_back_exactly(data: Data) -> None:
    """Whatever shape a dict has, it comes back with the same keys, values and types."""
    back = to_openai(from_openai(data))

    assert data == back
    assert json.dumps(data, sort_keys=True) == json.dumps(back, sort_keys=True)


@every_shape
def test_a_dict_is_not_changed(data: Data) -> None:
    """Reading a dict leaves it as it was."""
    before = copy.deepcopy(data)

    from_openai(data)

    assert before == data


@every_shape
def test_a_dict_is_not_kept(data: Data) -> None:
    """What a caller does to a dict afterwards does not reach the message."""
    given = copy.deepcopy(data)
    message = from_openai(given)

    scramble(given)

    assert data == to_openai(message)


@every_shape
def test_what_comes_back_is_the_callers(data: Data) -> None:
    """What a caller does to a dict that came back does not reach the next one."""
    message = from_openai(data)

    scramble(to_openai(message))

    assert data == to_openai(message)


@every_shape
def test_a_marked_dict_is_not_shared_either(data: Data) -> None:
    """A dict built for a marked message is new each time."""
    message = change(from_openai(data), "clamp")
    before = copy.deepcopy(to_openai(message))

    scramble(to_openai(message))

    assert before == to_openai(message)


@every_shape
def test_a_marked_dict_reads_the_same(data: Data) -> None:
    """Marking changes the spelling of a dict and not what it says."""
    message = from_openai(data)

    again = from_openai(to_openai(change(message, "clamp")))

    assert digest(message) == digest(again)


@every_shape
def test_a_message_survives_storage(data: Data) -> None:
    """A message comes back from JSON text as it was, its mark included."""
    message = change(replace(from_openai(data), time="2026-01-02T03:04:05Z"), "clamp")

    stored = json.dumps(to_json(message))

    assert message == from_json(json.loads(stored))


def test_storage_leaves_out_what_is_empty() -> None:
    """A plain message is stored in few words."""
    expected = [{"role": "user", "parts": [["text", "Hi", ""]]}, {"role": "assistant"}]

    assert expected == [to_json(user("Hi")), to_json(Message("assistant"))]


def test_storage_keeps_the_places_of_a_mark() -> None:
    """A mark comes back with the messages that it stands for."""
    message = replace(user("Hi"), mark=Mark(("clamp", "joined"), (3, 4)))

    assert message == from_json(json.loads(json.dumps(to_json(message))))


def test_storage_pairs_the_halves_of_a_character() -> None:
    """Two surrogates in a row are one character to JSON, so they are stored as what they mean."""
    message = user("\ud83d\ude00")

    back = from_json(json.loads(json.dumps(to_json(message))))

    assert user("\U0001f600") == back
    assert digest(message) == digest(back)


NEUTRAL: dict[str, tuple[Data, Message]] = {
    "text": (said("Hi"), Message("user", (Part("text", "Hi"),))),
    "content None": (said(None, "assistant"), Message("assistant")),
    "two text parts": (said([text("a"), text("b")]), Message("user", (Part("text", "a"), Part("text", "b")))),
    "calls": (calling(call("{}")), Message("assistant", tool_calls=(ToolCall("call_1", "trains", "{}"),))),
    "custom": (calling(custom()), Message("assistant", tool_calls=(ToolCall("call_1", "trains", "to Pune", True),))),  # noqa: FBT003  # a field of a value
    "result": (
        said("9:00", "tool", tool_call_id="call_1", name="trains"),
        Message("tool", (Part("text", "9:00"),), tool_call_id="call_1", name="trains"),
    ),
    "reasoning": (
        said("Nine.", "assistant", reasoning_content="Look it up."),
        Message("assistant", (Part("reasoning", "Look it up."), Part("text", "Nine."))),
    ),
    "name and id": (said("Hi", name="alice", id="m"), Message("user", (Part("text", "Hi"),), name="alice", id="m")),
    "image": (
        said([text(), image()]),
        Message("user", (Part("text", "At nine."), Part("image", "", json.dumps(image(), sort_keys=True)))),
    ),
}


@pytest.mark.parametrize("data, expected", NEUTRAL.values(), ids=NEUTRAL.keys())
def test_the_neutral_form_says_it_all(data: Data, expected: Message) -> None:
    """What the neutral form can say is not kept a second time as JSON."""
    assert expected == from_openai(data)


READ: dict[str, tuple[Data, dict[str, Any]]] = {
    "developer": (said("Hi", "developer"), {"role": "system"}),
    "legacy result": (
        said("9:00", "function", name="trains"),
        {"role": "tool", "name": "trains", "tool_call_id": None},
    ),
    "legacy call": (SHAPES["legacy call"], {"tool_calls": (ToolCall("", "trains", "{}"),)}),
    "legacy call beside no calls": (
        SHAPES["legacy call beside no calls"],
        {"tool_calls": (ToolCall("", "trains", "{}"),)},
    ),
    "arguments None": (calling(call(None)), {"tool_calls": (ToolCall("call_1", "trains", ""),)}),
    "arguments a dict": (
        calling(call({"to": "पुणे"})),
        {"tool_calls": (ToolCall("call_1", "trains", '{"to": "पुणे"}'),)},
    ),
    "calls of a user": (SHAPES["calls of a user"], {"tool_calls": ()}),
    "call id of a user": (said("Hi", tool_call_id=5), {"tool_call_id": None}),
    "strings as parts": (said(["a", "b"]), {"parts": (Part("text", "a"), Part("text", "b"))}),
    "parts in a tuple": (said((text("a"), "b")), {"parts": (Part("text", "a"), Part("text", "b"))}),
    "refusal": (
        SHAPES["refusal"],
        {"text": "No.", "parts": (Part("text", "No.", '{"refusal": "No.", "type": "refusal"}'),)},
    ),
    "refusal part": (SHAPES["refusal part"], {"text": "No."}),
    "text part without text": (
        SHAPES["text part without text"],
        {"text": "", "parts": (Part("text", "", '{"type": "text"}'),)},
    ),
    "thinking": (
        said([thought(), text()], "assistant"),
        {"text": "At nine.", "reasons": True, "starts_with_reasoning": True},
    ),
    "thinking later": (said([text(), thought()], "assistant"), {"reasons": True, "starts_with_reasoning": False}),
    "no content": (said(None), {"text": "", "reasons": False, "starts_with_reasoning": False}),
    "text alone": (said("Hi"), {"text": "Hi", "reasons": False, "starts_with_reasoning": False}),
    "two texts around an image": (said([text("a"), image(), text("b")]), {"text": "a\nb"}),
}


@pytest.mark.parametrize("data, expected", READ.values(), ids=READ.keys())
def test_a_dict_is_read(data: Data, expected: dict[str, Any]) -> None:
    """Legacy, foreign and sloppy spellings come to the same neutral fields."""
    message = from_openai(data)

    assert expected == {name: getattr(message, name) for name in expected}


@pytest.mark.parametrize(
    "kind, expected",
    [
        ("text", "text"),
        ("input_text", "text"),
        ("output_text", "text"),
        ("refusal", "text"),
        ("thinking", "reasoning"),
        ("redacted_thinking", "reasoning"),
        ("reasoning", "reasoning"),
        ("image_url", "image"),
        ("image", "image"),
        ("input_image", "image"),
        ("input_audio", "audio"),
        ("audio", "audio"),
        ("video_url", "video"),
        ("video", "video"),
        ("file", "file"),
        ("input_file", "file"),
        ("document", "file"),
        ("tool_use", "other"),
        ("", "other"),
    ],
)
def test_a_part_has_a_kind(kind: str, expected: str) -> None:
    """The part types of three providers are sorted into few kinds."""
    part = from_openai(said([{"type": kind, "of": "x"}])).parts[0]

    assert (expected, {"type": kind, "of": "x"}) == (part.kind, json.loads(part.source))


def test_the_hosts_json_is_kept_as_it_was() -> None:
    """What has to be kept as JSON is ASCII and in the order of its keys."""
    data = {"weight": 1, "content": [{"type": "image_url", "image_url": {"url": "पुणे"}}], "role": "user"}

    message = from_openai(data)

    assert json.dumps(data) == message.raw


@pytest.mark.parametrize("value", [user("a"), Part("text"), ToolCall("1", "f", "{}"), Mark(("head",))], ids=repr)
def test_messages_are_values(value: Any) -> None:
    """A message and its pieces can be hashed and cannot be changed."""
    assert hash(value) == hash(copy.copy(value))

    with pytest.raises(FrozenInstanceError):
        setattr(value, next(iter(value.__slots__)), "changed")


def test_any_mapping_is_read() -> None:
    """A mapping that is no dict is read like one, at the top and in its parts."""
    message = from_openai(MappingProxyType(said("Hi")))

    assert user("Hi") == message


def test_a_message_passes_through() -> None:
    """A `Message` is taken as it is."""
    message = user("Hi")

    assert message is from_openai(message)


def test_plain_messages_are_made() -> None:
    """The two short forms make messages of one text."""
    assert [said("a", "system"), said("b")] == [to_openai(system("a")), to_openai(user("b"))]


INVALID: dict[str, tuple[Callable[[], Any], str]] = {
    "no dict": (lambda: "Hi", "expected a dict with a role and content, got str"),
    "None": (lambda: None, "expected a dict with a role and content, got NoneType"),
    "role missing": (lambda: {"content": "Hi"}, "unknown role of type NoneType; known: system, developer, user"),
    "role unknown": (lambda: said("Hi", "human"), "unknown role 'human'; known: system, developer, user"),
    "role endless": (lambda: said("Hi", "x" * 10_000), f"unknown role '{'x' * 80}'; known"),
    "role unhashable": (lambda: {"role": ["user"], "content": "Hi"}, "unknown role of type list"),
    "role nested": (lambda: {"role": nested(DEEP), "content": "Hi"}, "unknown role of type list"),
    "content int": (lambda: said(5), "content must be text, a list of parts or None, got int"),
    "content dict": (lambda: said(text()), "content must be text, a list of parts or None, got dict"),
    "content bytes": (lambda: said(b"Hi"), "content must be text, a list of parts or None, got bytes"),
    "content bytearray": (
        lambda: said(bytearray(b"Hi")),
        "content must be text, a list of parts or None, got bytearray",
    ),
    "part int": (lambda: said([5]), "a content part must be a dict with a type, got int"),
    "part None": (lambda: said([None]), "a content part must be a dict with a type, got NoneType"),
    "part list": (lambda: said([[text()]]), "a content part must be a dict with a type, got list"),
    "part without type": (lambda: said([{"text": "Hi", "x": 1}]), "a content part has no type (its keys: text, x)"),
    "part of no text type": (lambda: said([{"type": 5}]), "a content part has no type (its keys: type)"),
    "calls text": (lambda: said(None, "assistant", tool_calls="x"), "tool_calls must be a list, got str"),
    "calls bytes": (lambda: said(None, "assistant", tool_calls=b"x"), "tool_calls must be a list, got bytes"),
    "calls dict": (lambda: said(None, "assistant", tool_calls=call()), "tool_calls must be a list, got dict"),
    "call text": (lambda: calling("trains"), "a tool call must be a dict, got str"),
    "call without function": (lambda: calling({"id": "call_1"}), "a tool call has no function with a name and arg"),
    "call with a function of text": (lambda: calling({"function": "trains"}), "a tool call has no function with"),
    "call without name": (lambda: calling({"function": {"arguments": "{}"}}), "a tool call has no name"),
    "call with an empty name": (lambda: calling({"function": {"name": ""}}), "a tool call has no name"),
    "call with a name of no text": (lambda: calling({"function": {"name": 5}}), "a tool call has no name"),
    "call with an id of no text": (lambda: calling(call(id=5)), "id must be text, got int"),
    "custom call without input": (lambda: calling({"custom": None}), "a tool call has no function with"),
    "legacy call text": (lambda: said(None, "assistant", function_call="auto"), "a tool call has no function with"),
    "arguments set": (lambda: calling(call({"to": {1}})), "something that JSON cannot hold (Object of type set"),
    "arguments NaN": (lambda: calling(call({"to": float("nan")})), "something that JSON cannot hold (Out of range"),
    "id": (lambda: said("Hi", id=5), "id must be text, got int"),
    "name": (lambda: said("Hi", name=["alice"]), "name must be text, got list"),
    "tool_call_id": (lambda: said("Hi", "tool", tool_call_id=5), "tool_call_id must be text, got int"),
    "reasoning": (lambda: said("Hi", "assistant", reasoning_content=[]), "reasoning_content must be text, got list"),
    "refusal": (lambda: said(None, "assistant", refusal={}), "refusal must be text, got dict"),
    "datetime": (
        lambda: said("Hi", at=datetime(2026, 1, 2, tzinfo=timezone.utc)),
        "something that JSON cannot hold (Object of type datetime",
    ),
    "bytes in a part": (lambda: said([{"type": "image", "data": b"x"}]), "cannot hold (Object of type bytes"),
    "set": (lambda: said("Hi", tags={"a"}), "something that JSON cannot hold (Object of type set"),
    "key of no JSON": (lambda: said([{"type": "x", (1, 2): "x"}]), "something that JSON cannot hold ("),
    "keys of two kinds": (lambda: said([{"type": "x", 1: "x"}]), "something that JSON cannot hold ("),
    "NaN": (lambda: said("Hi", score=float("nan")), "something that JSON cannot hold (Out of range float"),
    "infinite": (
        lambda: said([{"type": "x", "x": float("-inf")}]),
        "something that JSON cannot hold (Out of range float",
    ),
    "endless number": (lambda: said("Hi", n=10**5_000), "something that JSON cannot hold ("),
    "cycle": (lambda: said("Hi", x=circle()), "something that JSON cannot hold (Circular reference"),
    "cycle in a part": (lambda: said([{"type": "x", "x": circle()}]), "JSON cannot hold (Circular reference"),
    "nesting": (lambda: said("Hi", x=nested(DEEP)), "something that JSON cannot hold ("),
    "nesting in a part": (lambda: said([{"type": "x", "x": nested(DEEP)}]), "something that JSON cannot hold ("),
    "nesting in arguments": (lambda: calling(call(nested(DEEP))), "something that JSON cannot hold ("),
}


@pytest.mark.parametrize("make, reason", INVALID.values(), ids=INVALID.keys())
def test_what_cannot_be_read_is_refused(make: Callable[[], Any], reason: str) -> None:
    """The error names the message's place and what is wrong with it, in short."""
    data = make()

    with pytest.raises(InvalidMessage) as caught:
        from_openai(data, 3)

    error = caught.value
    assert (3, f"message 3: {error.reason}") == (error.index, str(error))
    assert reason in error.reason
    assert len(error.reason) < 300


def test_the_first_place_is_the_default() -> None:
    """Without a place the error speaks of the first message."""
    with pytest.raises(InvalidMessage, match="message 0: unknown role"):
        from_openai({})


MARKED: dict[str, tuple[Data, Data]] = {
    "plain": (said("Hi", weight=1), said("Hi", weight=1)),
    "developer": (said("Hi", "developer", name="x"), said("Hi", "developer", name="x")),
    "system": (said("Hi", "system", weight=1), said("Hi", "system", weight=1)),
    "legacy call": (
        SHAPES["legacy call"],
        calling({"id": "", "type": "function", "function": {"name": "trains", "arguments": "{}"}}),
    ),
    "legacy result": (said("9:00", "function", name="trains"), said("9:00", "tool", name="trains")),
    "calls None": (SHAPES["calls None"], said("Hi", "assistant")),
    "no calls": (said("Hi", "assistant", tool_calls=[]), said("Hi", "assistant")),
    "refusal": (
        said(None, "assistant", refusal="No."),
        said([{"type": "refusal", "refusal": "No."}], "assistant"),
    ),
    "parts": (said([image(), "a"], weight=1), said([image(), text("a")], weight=1)),
    "arguments a dict": (calling(call({"to": "Pune"})), calling(call('{"to": "Pune"}'))),
    "signed call": (SHAPES["call with more keys"], SHAPES["call with more keys"]),
    "signed call without type": (
        calling({"function": {"name": "trains", "arguments": "{}"}, "extra_content": {"x": 1}}),
        calling(
            {
                "id": "",
                "type": "function",
                "function": {"name": "trains", "arguments": "{}"},
                "extra_content": {"x": 1},
            }
        ),
    ),
    "calls of a user": (said("Hi", tool_calls=5), said("Hi")),
    "content missing": ({"role": "assistant", "audio": {"id": "a"}}, said(None, "assistant", audio={"id": "a"})),
}


@pytest.mark.parametrize("data, expected", MARKED.values(), ids=MARKED.keys())
def test_a_marked_message_is_built_anew(data: Data, expected: Data) -> None:
    """A marked message speaks from its neutral fields, and what they do not say stays the host's."""
    assert expected == to_openai(change(from_openai(data), "mended"))


def test_reasoning_that_was_taken_out_does_not_come_back() -> None:
    """The host's own JSON does not bring back what a marked message no longer has."""
    message = from_openai(said("Nine.", "assistant", reasoning_content="Look it up.", weight=1))

    silent = marked(replace(message, parts=message.parts[1:]), "mended", message)

    assert said("Nine.", "assistant", weight=1) == to_openai(silent)


def test_a_message_without_json_is_built() -> None:
    """Without the host's own JSON a marked message is built from its neutral fields alone."""
    message = change(Message("tool", (Part("text", "9:00"),), tool_call_id="c", name="t", id="m"), "mended")

    assert said("9:00", "tool", tool_call_id="c", name="t", id="m") == to_openai(message)


def test_marking_collects_kinds() -> None:
    """A mark lists each kind once, in order, and keeps the digest of what the message was at first."""
    before = user("Hi there")
    first = marked(user("Hi"), "clamp", before)

    second = change(change(first, "head"), "clamp")

    assert Mark(("clamp", "head"), (digest(before),)) == second.mark
    assert second is change(second, "head")
    assert (digest(before),) == origins(second)
    assert (digest(before),) == origins(before)


SAME: dict[str, tuple[Message, Message]] = {
    "text and part": (from_openai(said("a")), from_openai(said([text("a")]))),
    "ids": (from_openai(said("a", id="m1")), from_openai(said("a", id="m2"))),
    "times and marks": (user("a"), change(replace(user("a"), time="2026"), "head")),
    "other keys": (from_openai(said("a")), from_openai(said("a", weight=1))),
    "developer and system": (system("a"), from_openai(said("a", "developer"))),
    "order of keys": (from_openai(said([image()])), from_openai(said([dict(reversed(image().items()))]))),
    "order of keys within": (
        from_openai(said([{"type": "x", "x": {"a": 1, "b": 2}}])),
        from_openai(said([{"x": {"b": 2, "a": 1}, "type": "x"}])),
    ),
    "no name": (user("a"), replace(user("a"), name="", tool_call_id="")),
}


@pytest.mark.parametrize("one, other", SAME.values(), ids=SAME.keys())
def test_equal_content_has_equal_digests(one: Message, other: Message) -> None:
    """Ids, times, marks and spelling do not count for a digest."""
    assert digest(one) == digest(other)
    assert re.fullmatch("[0-9a-f]{32}", digest(one))


DIFFERENT: dict[str, Message] = {
    "text": user("a"),
    "no content": Message("user"),
    "role": system("a"),
    "name": replace(user("a"), name="alice"),
    "call id of a result": Message("tool", (Part("text", "a"),), tool_call_id="c1"),
    "another call id of a result": Message("tool", (Part("text", "a"),), tool_call_id="c2"),
    "kind": Message("user", (Part("reasoning", "a"),)),
    "media": Message("user", (Part("image", "", '{"type": "image_url", "image_url": {"url": "https://a.org/a"}}'),)),
    "other media": Message("user", (Part("image", "", '{"type": "image", "data": "iVBO"}'),)),
    "media that do not say where": Message("user", (Part("image", "", '{"type": "image"}'),)),
    "thinking that cannot be read": Message("user", (Part("reasoning", "", '{"type": "redacted_thinking"}'),)),
    "text like a source": user('{"text": "a", "type": "input_text"}'),
    "two parts": Message("user", (Part("text", "a"), Part("text", "b"))),
    "two parts in one text": user("a\x00text:b"),
    "calls": Message("assistant", tool_calls=(ToolCall("1", "f", "{}"),)),
    "two calls": Message("assistant", tool_calls=(ToolCall("1", "f", "{}"), ToolCall("1", "f", "{}"))),
    "id of a call": Message("assistant", tool_calls=(ToolCall("2", "f", "{}"),)),
    "name of a call": Message("assistant", tool_calls=(ToolCall("1", "g", "{}"),)),
    "arguments of a call": Message("assistant", tool_calls=(ToolCall("1", "f", '{"a": 1}'),)),
    "arguments that are no JSON": Message("assistant", tool_calls=(ToolCall("1", "f", "{a"),)),
    "spaces of a custom call": Message("assistant", tool_calls=(ToolCall("1", "f", "{ }", custom=True),)),
    "custom call": Message("assistant", tool_calls=(ToolCall("1", "f", "{}", custom=True),)),
    "a colon in the id": Message("assistant", tool_calls=(ToolCall("1:f", "g", "{}"),)),
    "a colon in the name": Message("assistant", tool_calls=(ToolCall("1", "f:g", "{}"),)),
    "a call in the text": Message("assistant", (Part("text", "\x00call:1:f:{}"),)),
    "lone surrogate": user("\ud800"),
    "what a lone surrogate is mended to": user("\ufffd"),
}


def test_different_content_has_different_digests() -> None:
    """No two of many messages that differ in one thing have the same digest."""
    digests = {name: digest(message) for name, message in DIFFERENT.items()}

    assert len(DIFFERENT) == len(set(digests.values()))


IMAGES = [
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO", "detail": "low"}},
    {"type": "image", "base64": "iVBO", "mime_type": "image/png"},
    {"type": "image", "source_type": "base64", "data": "iVBO", "mime_type": "image/png"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}},
    {"type": "media", "mime_type": "image/png", "data": "iVBO"},
    {"type": "image", "format": "png", "data": "iVBO"},
]
LINKS = [
    {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
    {"type": "image_url", "image_url": "https://example.org/a.png"},
    {"type": "image", "url": "https://example.org/a.png"},
    {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
]


@pytest.mark.parametrize(
    "blocks, address", [(IMAGES, "data:image/png;base64,iVBO"), (LINKS, "https://example.org/a.png")]
)
def test_media_are_the_same_in_every_shape(blocks: list[dict[str, Any]], address: str) -> None:
    """OpenAI's, Anthropic's, Gemini's and LangChain's shapes of one image have one address and one digest."""
    parts = [Part("image", "", json.dumps(block)) for block in blocks]

    assert {address} == {part.address for part in parts}
    assert 1 == len({digest(Message("user", (part,))) for part in parts})


@pytest.mark.parametrize("source", ["", "no JSON", "[1]", '{"data": 5}', '{"url": ""}', "[" * 100_000])
def test_media_that_do_not_say_where_they_are_have_no_address(source: str) -> None:
    """Whatever the source is."""
    assert "" == Part("image", "", source).address


def test_the_type_of_media_may_be_missing() -> None:
    """Then the address does without; one that is an address already stays."""
    found = [
        Part("audio", "", json.dumps(block)).address
        for block in ({"data": "SUQz"}, {"file_data": "data:audio/mp3;base64,SUQz"}, {"data": "data:;base64,SUQz"})
    ]

    assert ["data:;base64,SUQz", "data:audio/mp3;base64,SUQz", "data:;base64,SUQz"] == found


def test_the_same_said_in_another_shape_has_one_digest() -> None:
    """Text with what stands beside it, nothing and an empty text, and arguments however they are written."""
    pairs = [
        (user("a"), Message("user", (Part("text", "a", '{"text": "a", "type": "input_text"}'),))),
        (Message("user"), user("")),
        (
            Message("assistant", tool_calls=(ToolCall("1", "f", '{"a": 1, "b": 2}'),)),
            Message("assistant", tool_calls=(ToolCall("1", "f", '{"b":2,"a":1}'),)),
        ),
    ]

    assert [True] * 3 == [digest(one) == digest(other) for one, other in pairs]


# Halves of a character that meet are one character to JSON, so no generated text has them side by side.
halves_meet = re.compile("[\ud800-\udbff][\udc00-\udfff]")
texts = st.text(st.characters(exclude_categories=()), max_size=12).filter(lambda text: not halves_meet.search(text))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
part_types = st.sampled_from(["text", "refusal", "thinking", "image_url", "input_audio", "file", "reasoning"]) | texts
parts = texts | st.builds(
    lambda kind, more, spoken: {**more, **spoken, "type": kind},
    part_types,
    st.dictionaries(texts, json_values, max_size=2),
    st.dictionaries(st.sampled_from(["text", "thinking", "refusal"]), texts | st.none(), max_size=2),
)
bodies = st.fixed_dictionaries(
    {"name": texts.filter(bool)}, optional={"arguments": json_values, "input": json_values}
)
calls = st.fixed_dictionaries(
    {}, optional={"id": texts | st.none(), "type": texts, "extra_content": json_values}
).flatmap(
    lambda call: st.sampled_from(["function", "custom"]).flatmap(
        lambda kind: bodies.map(lambda body: {**call, kind: body})
    )
)
dicts = st.builds(
    lambda more, known: {**more, **known},
    st.dictionaries(texts, json_values, max_size=2),
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "developer", "user", "assistant", "tool", "function"])},
        optional={
            "content": st.none() | texts | st.lists(parts, max_size=4),
            "tool_calls": st.none() | st.lists(calls, max_size=3),
            "function_call": st.none() | bodies,
            "tool_call_id": st.none() | texts,
            "reasoning_content": st.none() | texts,
            "refusal": st.none() | texts,
            "name": st.none() | texts,
            "id": st.none() | texts,
        },
    ),
)


@settings(max_examples=300)
@given(dicts)
def test_any_dict_comes_back(data: Data) -> None:
    """Any message comes back exactly, straight and through storage, and a marked one says the same."""
    if data["role"] != "assistant":
        data = {"content": None, **data}
    message = from_openai(data)
    stored = from_json(json.loads(json.dumps(to_json(message))))

    assert data == to_openai(message)
    assert message == stored
    assert data == to_openai(stored)
    assert digest(message) == digest(from_openai(to_openai(change(message, "mended"))))


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning_beside_the_content(key: str) -> None:
    """Reasoning under either key is read, comes back as it came, and is gone when it is left out."""
    data = {"role": "assistant", "content": "so", key: "hm"}

    message = from_openai(data)

    assert (True, data) == (message.reasons, to_openai(message))
    assert {"role": "assistant", "content": "so"} == to_openai(without_reasoning(message))


def test_reasoning_that_is_no_text_is_an_extra() -> None:
    """A structured `reasoning` is kept like any key that is not known."""
    data = {"role": "assistant", "content": "so", "reasoning": {"effort": "low"}}

    assert (False, data) == (from_openai(data).reasons, to_openai(from_openai(data)))


@pytest.mark.parametrize("role", ["user", "system", "developer", "tool", "function"])
def test_a_message_without_content_is_refused(role: str) -> None:
    """A misspelt key is told with the keys that are there, and not stored as an empty message."""
    with pytest.raises(InvalidMessage, match=rf"a {role} message has no content \(its keys: role, contents\)"):
        from_openai({"role": role, "contents": "typo"})
