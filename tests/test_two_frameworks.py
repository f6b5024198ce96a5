"""One session in two frameworks: written in LangChain, continued in LlamaIndex, and back, on every store."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from llama_index.core.base.llms.types import (
    ChatMessage,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from sv_places import Place

from langchain_slidemem import LangChainCodec, SlidingChatMessageHistory
from llamaindex_slidemem import SlidingChatMemoryBuffer
from slidemem import MemoryStore, SlideMem, SQLiteStore
from slidemem.testing import violations

PNG = b"\x89PNG\r\n\x1a\n\x00\xff"
DATA = base64.b64encode(PNG).decode()
LIMIT = 250
FACT = "allergic to peanuts"
HEADED = "<earlier-conversation>"
SHARED = {"archive_share": 0.3, "media_tokens": {"image": 20}}


@pytest.fixture(params=["memory", "file", "in memory", "joined", "postgres", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Every store there is."""
    if request.param in {"postgres", "redis"}:
        place = Place(request.param)
        yield place.store()
        place.close()
    elif request.param == "joined":
        apart = {"transcript": MemoryStore(), "records": SQLiteStore(tmp_path / "records.db")}
        yield SlideMem(max_tokens=LIMIT, counter="approximate", **apart).store
    else:
        made = {"file": lambda: SQLiteStore(tmp_path / "chat.db"), "in memory": SQLiteStore, "memory": MemoryStore}
        yield made[request.param]()


def by_words(text: str) -> list[str]:
    """LlamaIndex's side counts words."""
    return text.split()


def by_characters(message: BaseMessage) -> int:
    """LangChain's side counts every fourth character, of images nothing."""
    return 3 + len(str(message.text)) // 4


def in_langchain(store: Any, limit: int = LIMIT) -> SlidingChatMessageHistory:
    """The session as a new LangChain object has it."""
    return SlidingChatMessageHistory(
        "s", max_tokens=limit, store=store, token_counter=by_characters, archive_share=0.3
    )


def in_llama_index(store: Any, limit: int = LIMIT, **options: Any) -> SlidingChatMemoryBuffer:
    """The session as a new LlamaIndex object has it."""
    return SlidingChatMemoryBuffer.from_defaults(
        chat_store_key="s", store=store, token_limit=limit, tokenizer_fn=by_words, **SHARED, **options
    )


def langchain_turn(at: int) -> list[BaseMessage]:
    """A turn with an image, a call, its result, thinking and an answer, each with an id."""
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}}
    thinking = {"type": "thinking", "thinking": "A seat.", "signature": "c2ln"}
    return [
        HumanMessage([{"type": "text", "text": f"Which seat is this, {at}?"}, image], id=f"human-{at}"),
        AIMessage([thinking], tool_calls=[{"id": f"c{at}", "name": "look", "args": {"seat": at}}], id=f"call-{at}"),
        ToolMessage(f"Seat {at}A, PNR-{at:04}.", tool_call_id=f"c{at}", name="look", id=f"result-{at}"),
        AIMessage(
            [
                thinking,
                {"type": "text", "text": f"It is seat {at}A."},
            ],
            id=f"answer-{at}",
            usage_metadata={"input_tokens": 5, "output_tokens": 4, "total_tokens": 9},
        ),
    ]


def llama_index_turn(at: int) -> list[ChatMessage]:
    """The same from LlamaIndex."""
    call = ToolCallBlock(tool_call_id=f"c{at}", tool_name="look", tool_kwargs={"seat": at})
    thinking = ThinkingBlock(content="A seat.", additional_information={"signature": "c2ln"})
    return [
        ChatMessage(role="user", blocks=[TextBlock(text=f"Which seat is this, {at}?"), ImageBlock(image=PNG)]),
        ChatMessage(role="assistant", blocks=[thinking, call]),
        ChatMessage(
            role="tool",
            content=f"Seat {at}A, PNR-{at:04}.",
            additional_kwargs={"tool_call_id": f"c{at}", "name": "look"},
        ),
        ChatMessage(role="assistant", blocks=[thinking, TextBlock(text=f"It is seat {at}A.")]),
    ]


def check(store: Any, messages: int) -> None:
    """Both sides see the same session: all of it, within the budget of each by its own counter, and valid."""
    lc, li = in_langchain(store), in_llama_index(store)
    one, other = lc.session.context(), li.session.context()
    assert (messages, messages) == (len(lc.transcript), len(li.get_all()))
    assert lc.session.archive() == li.session.archive()
    for context, session in ((one, lc.session), (other, li.session)):
        assert session.count(context.messages) == context.tokens <= LIMIT
        assert [] == violations(context.to_openai(), ignore=["unknown-key"])  # thinking is none of OpenAI's


@pytest.mark.parametrize("first", ["langchain", "llama_index"])
@pytest.mark.parametrize("twin", [False, True])
def test_a_session_goes_to_and_fro_ten_times(store: Any, first: str, *, twin: bool) -> None:
    """Calls, ids, images, thinking and archive stay intact; each side counts with its own counter."""
    said: list[BaseMessage] = []
    put: list[ChatMessage] = []
    turns = range(20)
    for at in turns:
        if (at % 2 == 0) == (first == "langchain"):
            said.extend(langchain_turn(at))
            if twin:
                asyncio.run(in_langchain(store).aadd_messages(langchain_turn(at)))
            else:
                in_langchain(store).add_messages(langchain_turn(at))
        else:
            put.extend(llama_index_turn(at))
            if twin:
                asyncio.run(in_llama_index(store).aput_messages(llama_index_turn(at)))
            else:
                in_llama_index(store).put_messages(llama_index_turn(at))
        check(store, 4 * (at + 1))

    theirs, ours = in_langchain(store).transcript, in_llama_index(store).get_all()
    ids = [f"{name}-{at}" for at in turns for name in ("human", "call", "result", "answer")]
    assert said == [message for message in theirs if message.id is not None]
    assert [message.id for message in theirs if message.id] == [one for one in ids if one in {m.id for m in said}]
    assert [message for at in turns for message in llama_index_turn(at)] == ours
    assert put == [one for one, other in zip(ours, theirs, strict=True) if other.id is None]
    assert [f"c{at}" for at in turns] == [
        call["id"] for one in theirs if isinstance(one, AIMessage) for call in one.tool_calls
    ]
    assert [PNG] * 20 == [
        base64.b64decode(block.image or b"") for one in ours for block in one.blocks if isinstance(block, ImageBlock)
    ]
    assert len(in_langchain(store).session.archive()) >= 1
    heads = [str(in_langchain(store).messages[0].content), str(in_llama_index(store).get()[0].content)]
    assert [True, True] == [HEADED in head and "PNR-00" in head for head in heads]


@pytest.mark.parametrize("side", ["langchain", "llama_index"])
def test_what_one_side_archived_the_other_explains(store: Any, side: str) -> None:
    """The archive that one side made is shown, explained and rewound by the other, and pins are everybody's."""
    fact = f"I am {FACT}."
    if side == "langchain":
        in_langchain(store).add_messages([HumanMessage(fact, id="1"), AIMessage("Noted.", id="2")])
        for at in range(12):
            in_langchain(store).add_messages(langchain_turn(at))
        made, other = in_langchain(store).session, in_llama_index(store).session
    else:
        in_llama_index(store).put_messages([ChatMessage(fact), ChatMessage(role="assistant", content="Noted.")])
        for at in range(12):
            in_llama_index(store).put_messages(llama_index_turn(at))
        made, other = in_llama_index(store).session, in_langchain(store).session

    made.pin("likes the window seat")

    segment = other.archive()[0]
    assert fact == _sources(other, segment)[0].text
    assert all(text in other.context().head for text in (FACT, "likes the window seat"))
    assert "PNR-0011" in other.rewind(-4)[2].text
    assert 46 == len(made.transcript()) == len(other.transcript())


def _sources(session: Any, segment: Any) -> list[Any]:
    left, found = [session.explain(segment)], []
    while left:
        one = left.pop(0)
        found.extend(one.messages)
        left = [*one.children, *left]
    return found


# ------------------------------------------------------------------ lists that a framework owns


LINK = "https://example.org/a.png"
SHAPES: dict[str, list[dict[str, Any]]] = {
    "LangChain v1": [{"type": "image", "base64": DATA, "mime_type": "image/png"}],
    "LangChain v1, at an address": [{"type": "image", "url": LINK}],
    "LangChain v0": [{"type": "image", "source_type": "base64", "data": DATA, "mime_type": "image/png"}],
    "Anthropic": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}}],
    "OpenAI": [{"type": "image_url", "image_url": {"url": LINK, "detail": "low"}}],
    "Gemini": [{"type": "media", "mime_type": "image/png", "data": DATA}],
    "a sound": [{"type": "audio", "base64": DATA, "mime_type": "audio/mp3"}],
    "a file": [{"type": "file", "base64": DATA, "mime_type": "application/pdf"}],
    "a text with a cache point": [{"type": "text", "text": "hello", "cache_control": {"type": "ephemeral"}}],
    "a plain text": [{"type": "text-plain", "text": "hello", "mime_type": "text/plain"}],
}


@pytest.mark.parametrize("through_json", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_list_of_llama_indexs_changes_nothing_of_langchains_messages(shape: str, *, through_json: bool) -> None:
    """`set` with what `get_all` gave, through JSON too, keeps each message as LangChain wrote it, id and all."""
    store = MemoryStore()
    said = [SystemMessage("Be kind.", id="0"), HumanMessage(SHAPES[shape], id="1"), AIMessage("ok", id="2")]
    in_langchain(store, 100_000).add_messages(said)
    memory = in_llama_index(store, 100_000)
    listed = memory.get_all()
    if through_json:
        listed = [ChatMessage.model_validate_json(message.model_dump_json()) for message in listed]

    memory.set([*listed, ChatMessage("new")])

    assert said == in_langchain(store, 100_000).transcript[:-1]
    assert (4, ()) == (len(memory.get_all()), memory.session.branches())
    assert [] == [message for message in listed if (message.content or "").startswith("[")]


BLOCKS: dict[str, ChatMessage] = {
    "image": ChatMessage(role="user", blocks=[ImageBlock(image=PNG, detail="low")]),
    "document": ChatMessage(role="user", blocks=[DocumentBlock(data=PNG, title="t")]),
    "call with text": ChatMessage(
        role="assistant", blocks=[ToolCallBlock(tool_call_id="c", tool_name="f", tool_kwargs='{"a":1}')]
    ),
    "older call": ChatMessage(
        role="assistant",
        additional_kwargs={
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
        },
    ),
    "nothing": ChatMessage(role="assistant", content=""),
    "provider's field": ChatMessage(role="user", content="x", additional_kwargs={"name": "bob", "x": [1]}),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_a_list_of_langchains_changes_nothing_of_llama_indexs_messages(name: str) -> None:
    """A reconcile with what LangChain read keeps each message as LlamaIndex wrote it."""
    store = MemoryStore()
    put = [ChatMessage("Which?"), BLOCKS[name]]
    in_llama_index(store, 100_000).put_messages(put)
    history = in_langchain(store, 100_000)
    listed = [LangChainCodec().encode(message) for message in history.transcript]

    history.session.reconcile([*listed, {"role": "user", "content": "new"}])

    assert put == in_llama_index(store, 100_000).get_all()[:-1]
    assert () == history.session.branches()
