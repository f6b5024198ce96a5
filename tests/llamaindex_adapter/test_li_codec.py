"""ChatMessages in and out: every block, role and kind of argument comes back, and reads in the neutral form."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import (
    AudioBlock,
    CacheControl,
    CachePoint,
    ChatMessage,
    CitableBlock,
    CitationBlock,
    DocumentBlock,
    ImageBlock,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.schema import ImageDocument

from llamaindex_slidemem import LlamaIndexCodec, RememberedMessage
from slidemem import InvalidMessage, Mark, Message, Part, SlideMem, ToolCall, to_openai

PNG = b"\x89PNG\r\n\x1a\n\x00\xff\xfe"
BLOCKS: dict[str, Any] = {
    "text": TextBlock(text="a"),
    "image": ImageBlock(image=PNG, detail="low"),
    "image at an address": ImageBlock(url="https://example.org/a.png"),
    "audio": AudioBlock(audio=b"ID3\x00\xff", format="mp3"),
    "document": DocumentBlock(data=b"%PDF-1.4\xff", title="t"),
    "document at an address": DocumentBlock(url="https://example.org/a.pdf"),
    "cache": CachePoint(cache_control=CacheControl(type="ephemeral")),
    "citable": CitableBlock(title="t", source="s", content=[TextBlock(text="q"), TextBlock(text="r")]),
    "citable document": CitableBlock(title="t", source="s", content=[DocumentBlock(data=b"%PDF\xff")]),
    "citation": CitationBlock(cited_content="c", source="s", title="t", additional_location_info={"page": 3}),
    "thinking": ThinkingBlock(content="hm", num_tokens=3, additional_information={"signature": "x"}),
    "redacted thinking": ThinkingBlock(additional_information={"data": b"\xff"}),
    "call": ToolCallBlock(tool_call_id="1", tool_name="f", tool_kwargs={"a": [1, {"b": None}]}),
    "call as text": ToolCallBlock(tool_name="f", tool_kwargs='{"a": 1'),
    "call with an id that is empty": ToolCallBlock(tool_call_id="", tool_name="f", tool_kwargs='{"a": 1}'),
}
if hasattr(types, "VideoBlock"):
    BLOCKS["video"] = types.VideoBlock(video=b"\x00\x00\x00\x18ftypmp42\xff", fps=2)


class Usage(BaseModel):
    """A provider's object."""

    tokens: int
    payload: bytes = b"\xff"


class Opaque:
    """A provider's object that says nothing of itself."""


def codec() -> LlamaIndexCodec:
    """A codec of its own."""
    return LlamaIndexCodec()


def through_json(message: ChatMessage) -> ChatMessage:
    """The message as another process reads it."""
    chat = SlideMem(max_tokens=10**6, counter="approximate").session("s")
    chat.append(codec().encode(message))
    copy = SlideMem(max_tokens=10**6, counter="approximate").restore(json.loads(json.dumps(chat.export())))
    return codec().decode(copy.transcript()[0])


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("role", list(MessageRole))
def test_every_block_in_every_role_comes_back(name: str, role: MessageRole) -> None:
    """Whatever the block and whoever says it, another process reads the same message, next to other blocks too."""
    alone = ChatMessage(role=role, blocks=[BLOCKS[name]])
    between = ChatMessage(role=role, blocks=[TextBlock(text="x"), BLOCKS[name], TextBlock(text="y")])

    assert [alone, between] == [through_json(alone), through_json(between)]


@pytest.mark.parametrize(
    "kwargs",
    [
        {"tool_call_id": "1"},
        {"name": "weather", "tool_call_id": None},
        {"tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"function_call": {"name": "f", "arguments": "{}"}},
        {
            "refusal": None,
            "n": 1.5,
            "deep": {"a": [True, None]},
            "b": b"\xff",
            "p": Path("x"),
            "$slidemem": "mine",
            "in": {"$slidemem": 1, "b": b"\xff"},
        },
    ],
)
@pytest.mark.parametrize("content", [None, "", "said", "\ud83d lone", "日本 {context_str}"])
def test_arguments_beside_the_content_come_back(content: str | None, kwargs: dict[str, Any]) -> None:
    """`additional_kwargs` of any integration come back exactly, with content that is None, empty or odd."""
    message = ChatMessage(role="assistant", content=content, additional_kwargs=kwargs)

    assert message == through_json(message)


def test_a_message_that_its_neutral_form_says_keeps_no_json_beside_it() -> None:
    """Plain text, calls and results need no JSON of their own, so that another framework reads them."""
    calling = ChatMessage(role="assistant", blocks=[TextBlock(text="a"), BLOCKS["call"]])
    result = ChatMessage(role="tool", content="r", additional_kwargs={"tool_call_id": "1"})

    raws = [codec().encode(message).raw for message in (ChatMessage("hi"), calling, result)]

    assert [None, None, None] == raws


@pytest.mark.parametrize(
    "name, kind, text",
    [
        ("text", "text", "a"),
        ("image", "image", ""),
        ("audio", "audio", ""),
        ("document", "file", ""),
        ("cache", "other", ""),
        ("citable", "text", "t (s)\nq\nr"),
        ("citable document", "file", ""),
        ("citation", "text", "t (s)\nc"),
        ("thinking", "reasoning", "hm"),
    ],
)
def test_every_block_reads_in_the_neutral_form(name: str, kind: str, text: str) -> None:
    """Media are named by kind; thinking, sources and citations have their text."""
    part = codec().encode(ChatMessage(role="user", blocks=[BLOCKS[name]])).parts[0]

    assert (kind, text) == (part.kind, part.text)


@pytest.mark.parametrize(
    "role, neutral",
    [
        ("system", "system"),
        ("developer", "system"),
        ("user", "user"),
        ("assistant", "assistant"),
        ("chatbot", "assistant"),
        ("model", "assistant"),
        ("tool", "tool"),
        ("function", "tool"),
    ],
)
def test_every_role_reads_in_the_neutral_form(role: str, neutral: str) -> None:
    """Eight roles are four."""
    assert neutral == codec().encode(ChatMessage(role=MessageRole(role), content="x")).role


class OpenAIFunction(BaseModel):
    """As an older integration left it."""

    name: str = "f"
    arguments: str = '{"a": 1}'


class OpenAICall(BaseModel):
    """As an older integration left it."""

    id: str = "1"
    function: OpenAIFunction = OpenAIFunction()


class GeminiCall:
    """As Vertex's integration leaves it."""

    name = "f"
    args = {"a": 1}  # noqa: RUF012  # stands for a provider's object


@pytest.mark.parametrize(
    "kwargs, call",
    [
        ({"tool_calls": [{"id": "1", "function": {"name": "f", "arguments": '{"a": 1}'}}]}, ("1", "f", '{"a": 1}')),
        ({"tool_calls": [{"id": "1", "name": "f", "input": {"a": 1}}]}, ("1", "f", '{"a": 1}')),
        ({"tool_calls": [OpenAICall()]}, ("1", "f", '{"a": 1}')),
        ({"tool_calls": (GeminiCall(),)}, ("", "f", '{"a": 1}')),
        ({"function_call": {"name": "f", "arguments": '{"a": 1}'}}, ("", "f", '{"a": 1}')),
        ({"function_call": {"name": "f"}}, ("", "f", "")),
    ],
)
def test_calls_beside_the_content_are_calls(kwargs: dict[str, Any], call: tuple[str, str, str]) -> None:
    """run-llama/llama_index 10493, 13715: calls in `additional_kwargs`, dicts or objects, are paired as calls."""
    encoded = codec().encode(ChatMessage(role="assistant", additional_kwargs=kwargs))

    assert (ToolCall(*call),) == encoded.tool_calls


@pytest.mark.parametrize("kwargs", [{"tool_calls": "none"}, {"tool_calls": None}, {}])
def test_what_is_no_list_of_calls_calls_nothing(kwargs: dict[str, Any]) -> None:
    """Nor does a user's message that carries a call."""
    said = ChatMessage(role="assistant", content="x", additional_kwargs=kwargs)
    asked = ChatMessage(role="user", blocks=[BLOCKS["call"]], additional_kwargs={"tool_calls": [{}]})

    assert [(), ()] == [codec().encode(message).tool_calls for message in (said, asked)]


def test_calls_that_stand_twice_are_counted_once() -> None:
    """An integration that writes blocks and, for older readers, `additional_kwargs` made one call."""
    older = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    message = ChatMessage(role="assistant", blocks=[BLOCKS["call"]], additional_kwargs={"tool_calls": older})

    assert ["f"] == [call.name for call in codec().encode(message).tool_calls]
    assert message == through_json(message)


def test_provider_objects_come_back_in_this_process() -> None:
    """What JSON cannot hold is the same to its own codec, and to another one what LlamaIndex's stores would write."""
    own = codec()
    kwargs = {"usage": Usage(tokens=3), "pair": (1, b"\xff"), "nan": float("inf"), "by number": {1: 2}}
    message = ChatMessage(role="assistant", content="x", additional_kwargs=kwargs)
    encoded = own.encode(message)

    elsewhere = {
        "usage": {"tokens": 3, "payload": b"\xff"},
        "pair": [1, b"\xff"],
        "nan": "Infinity",
        "by number": {"1": 2},
    }
    assert message == own.decode(encoded)
    assert elsewhere == codec().decode(encoded).additional_kwargs


def test_provider_objects_are_copies() -> None:
    """Changing what was put in, or what was got, changes nothing that is kept."""
    own = codec()
    message = ChatMessage(role="assistant", content="x", additional_kwargs={"usage": Usage(tokens=3)})
    encoded = own.encode(message)

    message.additional_kwargs["usage"].tokens = 4
    own.decode(encoded).additional_kwargs["usage"].tokens = 5

    assert 3 == own.decode(encoded).additional_kwargs["usage"].tokens


def test_an_object_that_cannot_be_copied_is_handed_out_as_it_is() -> None:
    """A client or a lock is the same object, and elsewhere the name of its kind."""
    own = codec()
    stream = io.BytesIO(b"x")
    opaque, lock = Opaque(), (stream.getbuffer(),)
    message = ChatMessage(role="user", content="x", additional_kwargs={"a": opaque, "b": lock})
    encoded = own.encode(message)

    there = codec().decode(encoded).additional_kwargs
    assert lock is own.decode(encoded).additional_kwargs["b"]
    assert f"<{__name__}.Opaque>" == there["a"]
    assert encoded == own.encode(message)


def test_a_codec_that_was_told_to_forget_gives_the_json() -> None:
    """After a reset no provider object is held any more."""
    own = codec()
    encoded = own.encode(ChatMessage(role="user", content="x", additional_kwargs={"usage": Usage(tokens=3)}))

    own.forget()

    assert {"tokens": 3, "payload": b"\xff"} == own.decode(encoded).additional_kwargs["usage"]


def test_arguments_that_hold_themselves_are_refused_by_name() -> None:
    """The error says which field cannot be written, and which message of the list it was."""
    loop: dict[str, Any] = {}
    loop["loop"] = loop

    with pytest.raises(InvalidMessage, match=r"message 1: additional_kwargs\['loop'\] cannot be written"):
        codec().encode_all([ChatMessage("a"), ChatMessage(role="user", content="x", additional_kwargs=loop)])


def test_what_is_no_chat_message_is_refused() -> None:
    """A text in the place of a message says so."""
    with pytest.raises(InvalidMessage, match="expected a ChatMessage, got str"):
        codec().encode("hello")  # type: ignore[arg-type]  # a wrong call


def test_a_stream_is_kept_as_its_bytes() -> None:
    """An image given as an open file comes back as what was in it."""
    message = ChatMessage(role="user", blocks=[ImageBlock(image=io.BytesIO(PNG))])

    image = through_json(message).blocks[0]

    assert isinstance(image, ImageBlock)
    assert PNG == image.resolve_image().read()


def test_a_file_that_is_gone_does_not_stop_the_reading(tmp_path: Path) -> None:
    """A block that names a file is read though the file was deleted since."""
    file = tmp_path / "a.png"
    file.write_bytes(PNG)
    message = ChatMessage(
        role="user",
        blocks=[ImageBlock(path=file), CitableBlock(title="t", source="s", content=[ImageBlock(path=file)])],
    )
    encoded = codec().encode(message)

    file.unlink()

    assert message == codec().decode(encoded)


def test_images_in_the_older_place_are_not_doubled() -> None:
    """A message with `images` in `additional_kwargs` has as many image blocks when it comes back."""
    own = codec()
    document = ImageDocument(image="iVBORw0KGgo=")
    message = ChatMessage(role="user", content="x", additional_kwargs={"images": [document]})

    decoded = own.decode(own.encode(message))

    assert (2, message) == (len(decoded.blocks), decoded)


def test_a_block_of_a_newer_version_is_named() -> None:
    """A kind that this LlamaIndex does not know is a text that names it, and stays in what is kept."""
    raw = {"role": "user", "blocks": [{"block_type": "hologram", "x": 1}], "additional_kwargs": {}}
    kept = json.dumps({"llama_index": raw})
    message = Message("user", (Part("other", "", '{"block_type": "hologram"}'),), raw=kept)

    assert ["[hologram]", "[other]"] == [
        codec().decode(message).content,
        codec().decode(Message("user", message.parts)).content,
    ]


@pytest.mark.parametrize(
    "part, block",
    [
        (Part("text", "x", '{"type": "output_text", "text": "x", "annotations": []}'), TextBlock(text="x")),
        (Part("reasoning", "hm"), ThinkingBlock(content="hm")),
        (
            Part("image", "", '{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}'),
            ImageBlock(url="https://example.org/a.png"),
        ),
        (
            Part("image", "", '{"type": "input_image", "image_url": "https://example.org/a.png"}'),
            ImageBlock(url="https://example.org/a.png"),
        ),
        (Part("audio", "", '{"type": "input_audio"}'), TextBlock(text="[audio]")),
    ],
)
def test_a_part_of_another_framework_is_read(part: Part, block: Any) -> None:
    """Text, thinking and images that came in OpenAI's shapes are blocks; what has none is named."""
    for raw in (None, '{"role": "user", "content": []}', "[]", '{"llama_index": []}'):
        decoded = codec().decode(Message("assistant", (part,), raw=raw))

        assert [block] == decoded.blocks


@pytest.mark.parametrize("arguments, kept", [('{"a": 1}', {"a": 1}), ("[1]", "[1]"), ("{", "{")])
def test_a_call_of_another_framework_is_a_block(arguments: str, kept: object) -> None:
    """Arguments that are a JSON object are a dict, and others the text that they were."""
    message = Message("assistant", tool_calls=(ToolCall("1", "f", arguments),))

    assert [ToolCallBlock(tool_call_id="1", tool_name="f", tool_kwargs=kept)] == codec().decode(message).blocks


def test_nothing_of_ours_is_sent_where_openai_dicts_are() -> None:
    """What LlamaIndex's message has besides stays in what is kept: a provider refuses keys that it does not know."""
    message = ChatMessage(role="developer", content="a", additional_kwargs={"trace": "t1"})
    encoded = codec().encode(message)

    sent = to_openai(encoded, portable=True)

    assert encoded.raw is not None
    assert {"role": "system", "content": "a"} == sent


def changed(message: ChatMessage, **fields: Any) -> Message:
    """A message as slidemem shows it, changed and marked."""
    encoded = codec().encode(message)
    return Message(
        **{
            "role": encoded.role,
            "parts": encoded.parts,
            "tool_calls": encoded.tool_calls,
            "tool_call_id": encoded.tool_call_id,
            "name": encoded.name,
            "raw": encoded.raw,
            **fields,
        },
        mark=Mark(("clamp",), (encoded.digest,)),
    )


def test_a_changed_message_is_shown_changed_with_the_rest_as_it_was() -> None:
    """Text and role come from the neutral form, blocks that were not cut and arguments from what was kept."""
    message = ChatMessage(
        role="chatbot",
        blocks=[TextBlock(text="long"), BLOCKS["thinking"], BLOCKS["image"], BLOCKS["call as text"]],
        additional_kwargs={"name": "n", "x": 1},
    )
    encoded = codec().encode(message)
    shown = changed(message, parts=(Part("text", "l…"), *encoded.parts[1:]))

    decoded = codec().decode(shown)

    blocks = [TextBlock(text="l…"), BLOCKS["thinking"], BLOCKS["image"], BLOCKS["call as text"]]
    assert ChatMessage(role="chatbot", blocks=blocks, additional_kwargs={"name": "n", "x": 1}) == decoded


def test_a_changed_call_is_changed_wherever_it_stands() -> None:
    """A call in a block, in `additional_kwargs`, in both, or in the oldest form is shown with its new id."""
    older = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    new = {"id": "2", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    block, new_block = (ToolCallBlock(tool_call_id=id_, tool_name="f", tool_kwargs={}) for id_ in "12")
    came: list[tuple[list[Any], dict[str, Any]]] = [
        ([block], {"x": 1}),
        ([], {"tool_calls": [older]}),
        ([block], {"tool_calls": [older]}),
        ([], {"function_call": older["function"]}),
    ]

    shown = [
        codec().decode(
            changed(
                ChatMessage(role="assistant", blocks=list(blocks), additional_kwargs=kwargs),
                tool_calls=(ToolCall("2", "f", "{}"),),
            )
        )
        for blocks, kwargs in came
    ]

    assert [
        ([new_block], {"x": 1}),
        ([], {"tool_calls": [new]}),
        ([new_block], {"tool_calls": [new]}),
        ([], {"tool_calls": [new]}),
    ] == [(message.blocks, message.additional_kwargs) for message in shown]


def test_a_message_shown_in_another_role_has_that_role() -> None:
    """A result that is shown as a user's note is a user's."""
    result = ChatMessage(role="function", content="r", additional_kwargs={"name": "f", "x": 1})

    note = codec().decode(changed(result, role="user", name=None))

    assert (MessageRole.USER, {"x": 1}) == (note.role, note.additional_kwargs)


def test_the_mark_travels_where_no_provider_sees_it() -> None:
    """What slidemem changed is told by the message itself: not in its arguments, and not in its JSON."""
    decoded = codec().decode(changed(ChatMessage("hello"), parts=(Part("text", "h"),)))

    assert isinstance(decoded, RememberedMessage)
    assert decoded.mark == codec().encode(decoded).mark
    assert ({}, False) == (decoded.additional_kwargs, "mark" in decoded.model_dump_json())


@pytest.mark.parametrize(
    "fields, told",
    [
        ({"additional_kwargs": {"a": 10**5000}}, r"additional_kwargs\['a'\] cannot be written as JSON"),
        ({"blocks": None}, "no valid ChatMessage"),
        ({"blocks": [5]}, "no valid ChatMessage"),
        ({"additional_kwargs": None}, "no valid ChatMessage"),
        ({"role": "hologram"}, "no valid ChatMessage .KeyError: 'hologram'"),
        ({"role": MessageRole.ASSISTANT, "blocks": [ToolCallBlock.model_construct(tool_name=None)]}, "ChatMessage"),
    ],
)
def test_a_message_that_no_validation_has_seen_is_refused(fields: dict[str, Any], told: str) -> None:
    """A subclass, or `model_construct`, may hold anything; what cannot be read or written names its place."""
    given = {"role": MessageRole.USER, "blocks": [TextBlock(text="x")], "additional_kwargs": {}, **fields}
    message = ChatMessage.model_construct(**given)

    with pytest.raises(InvalidMessage, match=f"message 1: .*{told}"):
        codec().encode_all([ChatMessage("fine"), message])


@pytest.mark.parametrize(
    "own",
    [
        {"blocks": 5},
        {"role": "hologram", "blocks": [], "additional_kwargs": {}},
        {"role": "user", "blocks": [[1]], "additional_kwargs": {}},
        {"role": "user", "blocks": [], "additional_kwargs": 7},
        {"role": "user", "blocks": [{"$slidemem": "base64", "as": "!"}], "additional_kwargs": {}},
    ],
)
def test_a_message_whose_own_json_is_damaged_is_read_by_its_neutral_form(own: Any) -> None:
    """An export may come from anywhere: what it says is shown, whatever stands beside."""
    message = Message("user", (Part("text", "hello"),), raw=json.dumps({"llama_index": own}))

    assert ChatMessage("hello") == codec().decode(message)
    assert ChatMessage("hello") == codec().decode(replace(message, mark=Mark(("clamp",))))


def test_a_long_number_comes_back() -> None:
    """One that Python still writes."""
    message = ChatMessage(role="user", content="x", additional_kwargs={"a": 10**4000})

    assert message == codec().decode(codec().encode(message))


def test_a_remembered_message_equals_what_it_stands_for() -> None:
    """From both sides, by role, blocks and arguments; and nothing that is no ChatMessage."""
    plain, other = ChatMessage("hi"), ChatMessage("ho")
    remembered = codec().remembered(codec().encode(plain))

    assert (True, True, False, False) == (
        plain == remembered,
        remembered == plain,
        remembered == other,
        remembered == "hi",
    )
