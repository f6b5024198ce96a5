# ruff: noqa: E501  # a row of a table is one line

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    ChatMessageChunk,
    FunctionMessage,
    FunctionMessageChunk,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    SystemMessageChunk,
    ToolMessage,
    ToolMessageChunk,
)

from langchain_slidemem import LangChainCodec
from langchain_slidemem.codec import MARKER
from slidemem import InvalidMessage, Mark, Message, Part, SlideMem, ToolCall

CODEC = LangChainCodec()
BYTES = "QUJD" * 40
CALL = {"name": "look_up", "args": {"city": "Pune", "n": 1}, "id": "call_1"}
USAGE = {
    "input_tokens": 5,
    "output_tokens": 7,
    "total_tokens": 12,
    "input_token_details": {"cache_read": 3},
    "output_token_details": {"reasoning": 2},
}


class Note(HumanMessage):
    """A class of somebody's own."""

    importance: int = 0


MESSAGES: dict[str, BaseMessage] = {
    "human": HumanMessage("hi"),
    "human named": HumanMessage("hi", id="h1", name="Asha"),
    "human empty": HumanMessage(""),
    "human with more fields": HumanMessage("hi", example=True, timestamp="2026-01-01"),
    "human with kwargs": HumanMessage("hi", additional_kwargs={"lc_source": "async_subagent", "lc_data": {"a": [1]}}),
    "human lone surrogate": HumanMessage("\ud83d lone, नमस्ते 🚆"),
    "own class": Note("mind", importance=3),
    "system": SystemMessage("Be brief.", id="s1"),
    "developer": SystemMessage("Be brief.", additional_kwargs={"__openai_role__": "developer"}),
    "chat": ChatMessage("hi", role="user"),
    "chat assistant": ChatMessage("hi", role="Assistant"),
    "chat unknown": ChatMessage("hi", role="critic"),
    "ai": AIMessage("hello", id="run-1"),
    "ai metadata": AIMessage(
        "hello",
        id="run-1",
        usage_metadata=USAGE,
        response_metadata={"model_name": "m", "logprobs": None, "finish_reason": "stop", "n": 0.25},
    ),
    "ai call": AIMessage("", tool_calls=[CALL]),
    "ai calls without ids": AIMessage("", tool_calls=[{**CALL, "id": None}, {**CALL, "id": ""}]),
    "ai invalid call": AIMessage(
        "", invalid_tool_calls=[{"name": "f", "args": "{bad", "id": "c2", "error": "no JSON"}], tool_calls=[CALL]
    ),
    "ai invalid call of nothing": AIMessage("", invalid_tool_calls=[{"name": None, "args": None, "id": None, "error": None}]),
    "ai openai calls": AIMessage(
        "",
        additional_kwargs={
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": '{"city":"Pune","n":1}'}}
            ]
        },
    ),
    "ai function_call": AIMessage("", additional_kwargs={"function_call": {"name": "f", "arguments": '{"a":1}'}}),
    "ai reasoning text": AIMessage("so", additional_kwargs={"reasoning_content": "because"}),
    "ai reasoning block": AIMessage(
        "so", additional_kwargs={"reasoning": {"id": "rs_1", "summary": [{"type": "summary_text", "text": "because"}]}}
    ),
    "ai reasoning empty": AIMessage("so", additional_kwargs={"reasoning_content": "", "reasoning": None}),
    "ai refusal": AIMessage("", additional_kwargs={"refusal": "I cannot."}),
    "ai speech": AIMessage("", additional_kwargs={"audio": {"id": "au", "data": BYTES, "transcript": "good day"}}),
    "ai thinking": AIMessage(
        [
            {"type": "thinking", "thinking": "first", "signature": "sig1"},
            {"type": "tool_use", "id": "call_1", "name": "look_up", "input": {"city": "Pune", "n": 1}},
            {"type": "redacted_thinking", "data": "xyz"},
            {"type": "text", "text": "and"},
        ],
        tool_calls=[CALL],
    ),
    "ai responses": AIMessage(
        [
            {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "why"}], "encrypted_content": "e"},
            {"type": "text", "text": "hi", "annotations": [{"type": "url_citation", "url": "https://e.org"}], "id": "msg"},
            {"type": "function_call", "name": "look_up", "arguments": '{"city":"Pune","n":1}', "call_id": "call_1", "id": "fc"},
            {"type": "web_search_call", "id": "ws", "status": "completed"},
            {"type": "refusal", "refusal": "no"},
        ],
        tool_calls=[CALL],
        response_metadata={"id": "resp_1"},
    ),
    "ai v1": AIMessage(
        content_blocks=[
            {"type": "reasoning", "reasoning": "why", "extras": {"signature": "s"}},
            {"type": "text", "text": "hi", "annotations": [{"type": "citation", "url": "https://e.org"}]},
            {"type": "tool_call", **CALL, "extras": {"signature": "g"}},
            {"type": "server_tool_call", "id": "srv", "name": "search", "args": {"q": "x"}},
            {"type": "server_tool_result", "tool_call_id": "srv", "status": "success", "output": ["a"]},
            {"type": "non_standard", "value": {"any": ["thing"]}},
        ],
        response_metadata={"output_version": "v1"},
    ),
    "ai tool_use alone": AIMessage([{"type": "tool_use", "id": "tu", "name": "f", "input": {"a": 1}}]),
    "tool": ToolMessage("22 degrees", tool_call_id="call_1", name="look_up", id="t1"),
    "tool error": ToolMessage("no such city", tool_call_id="call_1", status="error"),
    "tool artifact": ToolMessage("two", tool_call_id="c", artifact={"rows": [1, None, "x"]}),
    "tool documents": ToolMessage(
        "two", tool_call_id="c", artifact=[Document("a", metadata={"page": 1}), Document("b", id="d2")]
    ),
    "tool blocks": ToolMessage(["text", {"type": "image", "base64": BYTES, "mime_type": "image/png"}], tool_call_id="c"),
    "function": FunctionMessage("22", name="f"),
}  # fmt: skip

BLOCKS: dict[str, tuple[Any, str]] = {
    "text with cache_control": ({"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}, "text"),
    "input_text": ({"type": "input_text", "text": "hi"}, "text"),
    "bedrock text": ({"text": "hi"}, "text"),
    "text-plain": ({"type": "text-plain", "text": "hi", "mime_type": "text/plain", "title": "T"}, "text"),
    "text-plain by id": ({"type": "text-plain", "file_id": "f", "mime_type": "text/plain"}, "file"),
    "image v1 url": ({"type": "image", "url": "https://e.org/a.png"}, "image"),
    "image v1 base64": ({"type": "image", "base64": BYTES, "mime_type": "image/png"}, "image"),
    "image v0": ({"type": "image", "source_type": "base64", "data": BYTES, "mime_type": "image/png"}, "image"),
    "image_url": ({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{BYTES}", "detail": "low"}}, "image"),
    "image_url text": ({"type": "image_url", "image_url": "https://e.org/a.png"}, "image"),
    "input_image": ({"type": "input_image", "image_url": "https://e.org/a.png"}, "image"),
    "anthropic image": ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": BYTES}}, "image"),
    "bedrock image": ({"image": {"format": "png", "source": {"bytes": BYTES}}}, "image"),
    "gemini media": ({"type": "media", "mime_type": "image/png", "data": BYTES}, "image"),
    "audio v1": ({"type": "audio", "base64": BYTES, "mime_type": "audio/wav"}, "audio"),
    "input_audio": ({"type": "input_audio", "input_audio": {"data": BYTES, "format": "wav"}}, "audio"),
    "gemini audio": ({"type": "media", "mime_type": "audio/mpeg", "file_uri": "gs://b/a"}, "audio"),
    "video v1": ({"type": "video", "url": "https://e.org/a.mp4"}, "video"),
    "file v1": ({"type": "file", "base64": BYTES, "mime_type": "application/pdf"}, "file"),
    "file openai": ({"type": "file", "file": {"filename": "a.pdf", "file_data": BYTES}}, "file"),
    "input_file": ({"type": "input_file", "file_id": "f"}, "file"),
    "document": ({"type": "document", "source": {"type": "text", "data": "hello"}}, "file"),
    "gemini pdf": ({"type": "media", "mime_type": "application/pdf", "data": BYTES}, "file"),
    "media of no kind": ({"type": "media", "file_uri": "gs://b/a"}, "file"),
    "tool_result": ({"type": "tool_result", "tool_use_id": "tu", "content": "22"}, "other"),
    "of no type": ({"cachePoint": {"type": "default"}}, "other"),
    "unknown": ({"type": "hologram", "data": [1, 2]}, "other"),
    "type that is no text": ({"type": 7, "x": 1}, "other"),
}  # fmt: skip


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_comes_back_exactly(name: str) -> None:
    """Every class with every field comes back equal, of its class, and through the store's JSON."""
    message = MESSAGES[name]

    back = CODEC.decode(CODEC.encode(message))

    assert (type(message), message) == (type(back), back)
    assert message.model_dump() == back.model_dump()


@pytest.mark.parametrize("name", MESSAGES)
def test_what_comes_back_can_be_changed_without_harm(name: str) -> None:
    """A decoded message shares nothing with the one that was encoded, or with the next one decoded."""
    neutral = CODEC.encode(MESSAGES[name])

    first = CODEC.decode(neutral)
    first.additional_kwargs["mine"] = 1
    first.response_metadata["mine"] = 1

    assert MESSAGES[name] == CODEC.decode(neutral)


@pytest.mark.parametrize("name", MESSAGES)
def test_a_marked_message_keeps_its_mark_through_langchain(name: str) -> None:
    """A message that the memory changed carries the mark as LangChain's own metadata, and gives it back."""
    neutral = CODEC.encode(MESSAGES[name])
    marked = replace(neutral, mark=Mark(("clamp", "head"), ("a" * 32,)))

    back = CODEC.encode(CODEC.decode(marked))

    assert {"kinds": ["clamp", "head"], "of": ["a" * 32]} == CODEC.decode(marked).additional_kwargs[MARKER]
    assert (marked.mark, marked.role, marked.text) == (back.mark, back.role, back.text)
    assert [call.id for call in marked.tool_calls] == [call.id for call in back.tool_calls]
    assert [part.kind for part in marked.parts] == [part.kind for part in back.parts]
    assert CODEC.decode(marked) == CODEC.decode(back)


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_of_every_spelling_is_read(name: str) -> None:
    """A content block is a part of its kind, comes back exactly, and never costs its base64 length."""
    block, kind = BLOCKS[name]
    message = HumanMessage(["look", block])

    neutral = CODEC.encode(message)

    assert ["text", kind] == [part.kind for part in neutral.parts]
    assert message == CODEC.decode(neutral)
    assert block == CODEC.decode(replace(neutral, mark=Mark(("head",)))).content[1]
    assert 3_000 > SlideMem(max_tokens=100, counter="approximate").count(neutral)


def test_a_plain_message_needs_no_raw_json() -> None:
    """What the neutral form says whole is stored once."""
    plain = ["human", "human named", "system", "ai", "ai call", "ai reasoning text", "tool"]

    assert [None] * len(plain) == [CODEC.encode(MESSAGES[name]).raw for name in plain]


@pytest.mark.parametrize(
    "name, text, kinds",
    [
        ("ai thinking", "and", ["reasoning", "reasoning", "text"]),
        ("ai responses", "hi\nno", ["reasoning", "text", "other", "text"]),
        ("ai v1", "hi", ["reasoning", "text", "other", "other", "other"]),
        ("ai reasoning text", "so", ["reasoning", "text"]),
        ("ai reasoning block", "so", ["reasoning", "text"]),
        ("ai reasoning empty", "so", ["text"]),
        ("ai refusal", "I cannot.", ["text"]),
        ("ai speech", "", ["audio"]),
        ("tool blocks", "text", ["text", "image"]),
        ("human empty", "", []),
    ],
)
def test_a_message_is_readable(name: str, text: str, kinds: list[str]) -> None:
    """Text, reasoning and media stand in the neutral form, wherever their maker puts them."""
    neutral = CODEC.encode(MESSAGES[name])

    assert (text, kinds) == (neutral.text, [part.kind for part in neutral.parts])


@pytest.mark.parametrize(
    "block, text",
    [
        ({"type": "thinking", "thinking": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\nb"),
        ({"type": "reasoning_content", "reasoning_content": {"text": "a", "signature": "s"}}, "a"),
        ({"reasoningContent": {"reasoningText": {"text": "a", "signature": "s"}}}, "a"),
        ({"type": "reasoning", "extras": {"signature": "s"}}, ""),
    ],
)
def test_reasoning_is_read_as_each_provider_spells_it(block: dict[str, Any], text: str) -> None:
    """Mistral's, Bedrock's and signatures alone are reasoning."""
    parts = CODEC.encode(AIMessage([block, "so"])).parts

    assert [("reasoning", text), ("text", "so")] == [(part.kind, part.text) for part in parts]


@pytest.mark.parametrize(
    "name, role", [("chat", "user"), ("chat assistant", "assistant"), ("chat unknown", "user"), ("function", "tool")]
)
def test_a_role_of_ones_own_is_understood(name: str, role: str) -> None:
    """A `ChatMessage` has the role that its own role means."""
    assert role == CODEC.encode(MESSAGES[name]).role


@pytest.mark.parametrize(
    "name",
    ["ai call", "ai openai calls", "ai thinking", "ai responses", "ai v1"],
)
def test_a_call_is_counted_once(name: str) -> None:
    """langchain#35558: a call said in `tool_calls` and in a block of the content is one call."""
    calls = CODEC.encode(MESSAGES[name]).tool_calls

    assert (ToolCall("call_1", "look_up", '{"city": "Pune", "n": 1}'),) == calls


def test_a_call_that_only_the_content_says_is_a_call() -> None:
    """A message with a tool_use block and no `tool_calls` still waits for its result."""
    calls = CODEC.encode(MESSAGES["ai tool_use alone"]).tool_calls

    assert (ToolCall("tu", "f", '{"a": 1}'),) == calls


def test_calls_that_cannot_be_parsed_are_calls() -> None:
    """Invalid calls are sent to the model too, so they stand behind the valid ones."""
    calls = CODEC.encode(MESSAGES["ai invalid call"]).tool_calls

    assert [("look_up", '{"city": "Pune", "n": 1}'), ("f", "{bad")] == [(call.name, call.arguments) for call in calls]


def test_a_legacy_function_call_is_a_call() -> None:
    """A function_call is a call without an id, and a function's message its result."""
    call, result = CODEC.encode(MESSAGES["ai function_call"]), CODEC.encode(MESSAGES["function"])

    assert (ToolCall("", "f", '{"a":1}'),) == call.tool_calls
    assert (None, "f") == (result.tool_call_id, result.name)


def test_a_legacy_function_goes_to_the_model_as_a_tool() -> None:
    """Where the memory gives a legacy call an id, call and result become those of a tool."""
    chat = SlideMem(max_tokens=1000, counter="approximate").session("s")
    said = [HumanMessage("22?"), MESSAGES["ai function_call"], MESSAGES["function"]]
    chat.append([CODEC.encode(message) for message in said])

    _, call, result = (CODEC.decode(message) for message in chat.context().messages)

    assert isinstance(call, AIMessage)
    assert isinstance(result, ToolMessage)
    assert [("f", {"a": 1}, result.tool_call_id)] == [
        (one["name"], one["args"], one["id"]) for one in call.tool_calls
    ]
    assert "function_call" not in call.additional_kwargs
    assert said == [CODEC.decode(message) for message in chat.transcript()]


def test_changed_calls_change_wherever_they_stand() -> None:
    """An id and arguments that the memory changed are the same in `tool_calls` and in the blocks of the content."""
    neutral = CODEC.encode(MESSAGES["ai thinking"])
    changed = replace(
        neutral,
        tool_calls=(ToolCall("call_9", "look_up", '{"truncated": "P"}'),),
        mark=Mark(("mended",), (neutral.digest,)),
    )

    back = CODEC.decode(changed)

    assert isinstance(back, AIMessage)
    assert [("call_9", {"truncated": "P"})] == [(call["id"], call["args"]) for call in back.tool_calls]
    assert ["thinking", "tool_use", "redacted_thinking", "text"] == [block["type"] for block in back.content]
    assert {"type": "tool_use", "id": "call_9", "name": "look_up", "input": {"truncated": "P"}} == back.content[1]


def test_changed_calls_of_openai_keep_their_form() -> None:
    """A responses block has its arguments as text and its call's id under `call_id`."""
    neutral = CODEC.encode(MESSAGES["ai responses"])
    calls = (ToolCall("call_9", "look_up", "{}"),)

    back = CODEC.decode(replace(neutral, tool_calls=calls, mark=Mark(("mended",))))

    assert ("call_9", "{}", "fc") == tuple(back.content[2][key] for key in ("call_id", "arguments", "id"))


def test_calls_stand_last_where_parts_were_left_out() -> None:
    """Without its thinking a message says its text, then its calls, as Anthropic wants it."""
    neutral = CODEC.encode(MESSAGES["ai thinking"])
    parts = tuple(part for part in neutral.parts if part.kind != "reasoning")

    back = CODEC.decode(replace(neutral, parts=parts, mark=Mark(("mended",))))

    assert ["text", "tool_use"] == [block["type"] for block in back.content]


def test_a_block_of_a_call_that_is_not_there_stays_as_it_is() -> None:
    """Where a message lost its calls on the way, the blocks that say them are left alone."""
    neutral = CODEC.encode(MESSAGES["ai thinking"])

    back = CODEC.decode(replace(neutral, tool_calls=(), mark=Mark(("mended",))))

    assert MESSAGES["ai thinking"].content[1] == back.content[1]


@pytest.mark.parametrize("name", ["ai reasoning text", "ai reasoning block", "ai speech"])
def test_what_was_left_out_beside_the_content_is_gone(name: str) -> None:
    """Reasoning or speech that the memory left out does not come back through `additional_kwargs`."""
    neutral = CODEC.encode(MESSAGES[name])

    back = CODEC.decode(replace(neutral, parts=(Part("text", "so"),), mark=Mark(("mended",))))

    assert ("so", [MARKER]) == (back.content, list(back.additional_kwargs))


def test_arguments_mended_to_an_object_make_a_valid_call() -> None:
    """A call with broken arguments is shown to the model as one that a provider takes."""
    chat = SlideMem(max_tokens=1000, counter="approximate").session("s")
    chat.append([CODEC.encode(message) for message in (HumanMessage("go"), MESSAGES["ai invalid call"])])

    back = CODEC.decode(chat.context().messages[1])

    assert isinstance(back, AIMessage)
    assert ([{"city": "Pune", "n": 1}, {"malformed": "{bad"}], []) == (
        [call["args"] for call in back.tool_calls],
        back.invalid_tool_calls,
    )


def test_text_in_front_of_a_message_stands_in_its_content() -> None:
    """A head merged into a message is its first text, whether the content was text or blocks."""
    text, blocks = CODEC.encode(HumanMessage("hi")), CODEC.encode(HumanMessage(["hi", BLOCKS["image v1 url"][0]]))
    mark = Mark(("head",))

    plain = CODEC.decode(replace(text, parts=(Part("text", "notes\n\nhi"),), mark=mark))
    split = CODEC.decode(replace(text, parts=(Part("text", "notes"), Part("text", "hi")), mark=mark))
    listed = CODEC.decode(replace(blocks, parts=(Part("text", "notes\n\nhi"), blocks.parts[1]), mark=mark))

    assert "notes\n\nhi" == plain.content
    assert [{"type": "text", "text": "notes"}, {"type": "text", "text": "hi"}] == split.content
    assert [{"type": "text", "text": "notes\n\nhi"}, BLOCKS["image v1 url"][0]] == listed.content


@pytest.mark.parametrize(
    "chunk, whole",
    [
        (AIMessageChunk("hel") + AIMessageChunk("lo", id="a"), AIMessage("hello", id="a")),
        (
            AIMessageChunk(
                "", tool_call_chunks=[{"name": "look_up", "args": '{"city": "Pune", "n": 1}', "id": "call_1", "index": 0}]
            ),
            MESSAGES["ai call"],
        ),
        (HumanMessageChunk("hi"), HumanMessage("hi")),
        (SystemMessageChunk("hi"), SystemMessage("hi")),
        (ToolMessageChunk("hi", tool_call_id="c", artifact=[1]), ToolMessage("hi", tool_call_id="c", artifact=[1])),
        (FunctionMessageChunk("hi", name="f"), FunctionMessage("hi", name="f")),
        (ChatMessageChunk("hi", role="critic"), ChatMessage("hi", role="critic")),
    ],
)  # fmt: skip
def test_a_chunk_becomes_a_whole_message(chunk: BaseMessage, whole: BaseMessage) -> None:
    """langchain#14511: what a stream leaves is stored as the message that it is, of a class that can be read again."""
    back = CODEC.decode(CODEC.encode(chunk))

    assert (type(whole), whole) == (type(back), back)


def test_a_class_that_is_not_there_becomes_langchains_own() -> None:
    """A stored class name imports nothing: where this process has no such class, the base is taken."""
    neutral = CODEC.encode(Note("mind", importance=3))
    assert neutral.raw is not None
    raw = {**json.loads(neutral.raw), "class": "os:system"}

    back = CODEC.decode(replace(neutral, raw=json.dumps(raw)))

    assert (HumanMessage, "mind", 3) == (type(back), back.content, back.importance)


class Opaque:
    """What JSON cannot hold."""


DOCUMENT = ["langchain", "schema", "document", "Document"]
DEEP: list[Any] = []
for _ in range(200):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "message, field",
    [
        (ToolMessage("x", tool_call_id="c", artifact=Opaque()), "artifact"),
        (ToolMessage("x", tool_call_id="c", artifact={1, 2}), "artifact"),
        (ToolMessage("x", tool_call_id="c", artifact=DEEP), "artifact"),
        (ToolMessage("x", tool_call_id="c", artifact=(1, 2)), "artifact"),
        (ToolMessage("x", tool_call_id="c", artifact=[Note("x")]), "artifact"),
        (
            ToolMessage("x", tool_call_id="c", artifact={"lc": 1, "id": DOCUMENT, "kwargs": {"page_content": "x"}}),
            "artifact",
        ),
        (ToolMessage("x", tool_call_id="c", artifact={"lc": 1, "id": DOCUMENT, "kwargs": {}}), "artifact"),
        (AIMessage("x", response_metadata={1: "one"}), "response_metadata"),
        (AIMessage("x", response_metadata={"score": float("nan")}), "response_metadata"),
        (HumanMessage([{"type": "image", "data": b"raw"}]), "content"),
        (HumanMessage("x", more=Opaque()), "more"),
    ],
)
def test_what_json_cannot_hold_is_refused_by_name(message: BaseMessage, field: str) -> None:
    """A field that would not come back from a store is refused before anything is stored, and named."""
    with pytest.raises(InvalidMessage, match=f"its field {field} "):
        CODEC.encode(message)


@pytest.mark.parametrize("message", [RemoveMessage(id="x"), {"role": "user"}, "hi", None])
def test_what_is_no_message_is_refused(message: Any) -> None:
    """A RemoveMessage says nothing, and anything else is none of LangChain's messages."""
    with pytest.raises(InvalidMessage, match=r"takes messages away|got (dict|str|NoneType)"):
        CODEC.encode(message)


def test_a_lenient_codec_leaves_out_what_json_cannot_hold() -> None:
    """Messages whose home is elsewhere are read whatever they hold."""
    codec = LangChainCodec(lenient=True)
    tool = ToolMessage([{"type": "image", "data": b"raw"}], tool_call_id="c", artifact=Opaque(), name="f")

    back = codec.decode(codec.encode(tool))

    assert ToolMessage([{"type": "image", "data": "[bytes]"}], tool_call_id="c", name="f") == back


@pytest.mark.parametrize("marker", [7, {"kinds": ["head"]}, {"kinds": "head", "of": []}, {"kinds": [1], "of": []}])
def test_a_marker_that_is_not_ours_is_left_alone(marker: Any) -> None:
    """Metadata of the same name but another form are the user's, and come back."""
    message = HumanMessage("hi", additional_kwargs={MARKER: marker})

    neutral = CODEC.encode(message)

    assert (None, message) == (neutral.mark, CODEC.decode(neutral))


def test_messages_that_came_as_dicts_become_langchains() -> None:
    """A session that was begun with OpenAI-format dicts goes on in LangChain."""
    chat = SlideMem(max_tokens=1000, counter="approximate").session("s")
    chat.append(
        [
            {"role": "user", "content": [{"type": "text", "text": "hi", "x": 1}]},
            {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "d", "type": "custom", "custom": {"name": "g", "input": "free text"}},
            ]},
            {"role": "tool", "tool_call_id": "c", "content": "1"},
            {"role": "tool", "content": "2"},
        ]
    )  # fmt: skip

    human, ai, *tools = (CODEC.decode(message) for message in chat.transcript())

    assert HumanMessage([{"type": "text", "text": "hi", "x": 1}]) == human
    assert isinstance(ai, AIMessage)
    assert [("f", {}), ("g", {"__arg1": "free text"})] == [(call["name"], call["args"]) for call in ai.tool_calls]
    assert {"reasoning_content": "hm"} == ai.additional_kwargs
    assert [ToolMessage("1", tool_call_id="c"), ToolMessage("2", tool_call_id="")] == tools


def test_a_message_that_changed_its_role_keeps_what_both_have() -> None:
    """Where a message is shown in another role, metadata come along and the fields of its old class do not."""
    neutral = CODEC.encode(MESSAGES["tool artifact"])
    note = Message("user", neutral.parts, raw=neutral.raw, mark=Mark(("note",)))

    assert HumanMessage("two", additional_kwargs={MARKER: {"kinds": ["note"], "of": []}}) == CODEC.decode(note)
