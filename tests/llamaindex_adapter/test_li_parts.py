"""What stands around the memory: counting, chat stores, foreign parts, and importing without the framework."""

from __future__ import annotations

import base64
import copy
import json
import pickle
import subprocess
import sys
from functools import partial
from typing import Any

import pytest
from li_models import FENCE, LIMIT, awaited, cost, filled, history, texts, words
from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import (
    AudioBlock,
    CacheControl,
    CachePoint,
    ChatMessage,
    CitableBlock,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.storage.chat_store import SimpleChatStore
from llama_index.core.storage.chat_store.loading import load_chat_store

import llamaindex_slidemem
from llamaindex_slidemem import LlamaIndexCodec, RememberedMessage, SlidingChatMemoryBuffer, TokenizerCounter
from slidemem import InvalidMessage, Message, Part
from slidemem.stores.memory import MemoryStore


def test_every_public_name_is_listed_and_sorted() -> None:
    """What `llamaindex_slidemem` exports is what it says it does, in order."""
    assert sorted(llamaindex_slidemem.__all__) == llamaindex_slidemem.__all__
    assert [] == [name for name in llamaindex_slidemem.__all__ if not hasattr(llamaindex_slidemem, name)]


@pytest.mark.parametrize(
    "hidden, error",
    [
        (
            "llama_index",
            "MissingExtra llamaindex_slidemem needs the extra 'llamaindex': pip install 'slidemem[llamaindex]'",
        )
    ],
)
def test_without_the_framework_the_import_says_what_to_install(hidden: str, error: str) -> None:
    """One sentence with the pip command; what else is missing is told as Python tells it."""
    code = (
        "import sys\n"
        f"sys.modules[{hidden!r}] = None\n"
        "try:\n    import llamaindex_slidemem\n"
        "except ImportError as error:\n    print(type(error).__name__, error)"
    )

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout  # noqa: S603  # our own code

    assert error == said.strip()


def test_another_module_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is blamed for nothing that it does not bring."""
    for name in [name for name in sys.modules if name.startswith("llamaindex_slidemem")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pydantic_core", None)

    with pytest.raises(ModuleNotFoundError, match="pydantic_core"):
        __import__("llamaindex_slidemem")


def test_the_framework_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same in this process, so that it is measured."""
    for name in [name for name in sys.modules if name.startswith("llamaindex_slidemem")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.startswith("llama_index.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "llama_index", None)

    with pytest.raises(ImportError, match=r"pip install 'slidemem\[llamaindex\]'"):
        __import__("llamaindex_slidemem")


# ------------------------------------------------------------------ counting


class Encoding:
    """A tokenizer with a name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def encode(self, text: str, *, upper: bool = False) -> list[str]:
        """Words."""
        return text.split()


def test_tokenizers_are_told_apart_by_name_or_code() -> None:
    """Counts stored with one are not taken for another's: bound methods, partials, lambdas and built-ins differ."""
    tokenizers: list[Any] = [
        words,
        lambda text: text.split(" "),
        lambda text: text.split("-"),
        Encoding("a").encode,
        partial(Encoding("b").encode, upper=True),
        len,
        Encoding,
    ]

    names = [TokenizerCounter(tokenizer).fingerprint for tokenizer in tokenizers]

    assert len(names) == len(set(names))
    assert TokenizerCounter(words).fingerprint == TokenizerCounter(words).fingerprint
    assert TokenizerCounter(words, {"image": 1}).fingerprint != TokenizerCounter(words).fingerprint


def test_a_tokenizer_may_return_a_number() -> None:
    """A list is counted by its length."""
    message = Message("user", (Part("text", "one two"),))

    assert [7, 2] == [TokenizerCounter(tokenizer).count(message) for tokenizer in (len, words)]


def test_a_message_without_text_asks_no_tokenizer() -> None:
    """Media and nothing at all are priced without it; a block of another kind by its JSON."""
    counter = TokenizerCounter(lambda text: 1 // 0)
    cache = LlamaIndexCodec().encode(
        ChatMessage(role="user", blocks=[CachePoint(cache_control=CacheControl(type="ephemeral"))])
    )

    assert (0, 1_000) == (counter.count(Message("user")), counter.count(Message("user", (Part("image", ""),))))
    assert 0 < counter.count(cache) < 40


def test_a_remembered_message_is_estimated_without_fetching() -> None:
    """Prompt helpers ask for a size: text by the tokenizer, media flat, without a network or an event loop."""
    message = LlamaIndexCodec().remembered(
        Message("user", (Part("text", "one two"), Part("image", "", '{"image_url": {"url": "http://127.0.0.1:9/"}}')))
    )

    assert (1_002, 1_002) == (message.estimate_tokens(words), awaited(message.aestimate_tokens(words)))
    assert message.estimate_tokens() == message.estimate_tokens(words)


# ------------------------------------------------------------------ parts


def decoded(part: Part) -> Any:
    """The block of a part."""
    return LlamaIndexCodec().decode(Message("user", (part,))).blocks[0]


@pytest.mark.parametrize(
    "block",
    [
        ImageBlock(image=b"\x89PNG\r\n\x1a\n\xff", detail="low"),
        ImageBlock(url="https://example.org/a.png"),
        AudioBlock(audio=b"ID3\xff", format="mp3"),
        AudioBlock(url="https://example.org/a.mp3"),
        DocumentBlock(data=b"%PDF-1.4\xff", title="t"),
        DocumentBlock(url="https://example.org/a.pdf", title="t"),
        CachePoint(cache_control=CacheControl(type="ephemeral")),
        CitableBlock(
            title="t", source="s", content=[ImageBlock(url="https://example.org/a.png"), TextBlock(text="x")]
        ),
        *([types.VideoBlock(url="https://example.org/a.mp4")] if hasattr(types, "VideoBlock") else []),
        *([types.VideoBlock(video=b"\x00\xff")] if hasattr(types, "VideoBlock") else []),
    ],
)
def test_a_block_survives_as_a_part_alone(block: Any) -> None:
    """Where a message was changed, the block is made of its part: the same bytes, or the same address."""
    part = LlamaIndexCodec().encode(ChatMessage(role="user", blocks=[block])).parts[0]

    made = decoded(part)

    expected = block.content[0] if isinstance(block, CitableBlock) else block
    known = {"image", "audio", "video", "data", "url", "cache_control"} & set(type(expected).model_fields)
    assert type(expected) is type(made)
    assert [getattr(expected, name) for name in sorted(known)] == [getattr(made, name) for name in sorted(known)]


@pytest.mark.parametrize(
    "part, text",
    [
        (Part("image", "", '{"type": "image", "source": {}}'), "[image]"),
        (Part("audio", "", '{"type": "audio", "url": "no address"}'), "[audio]"),
        (Part("image", "", '{"type": "image_url", "image_url": "no address"}'), "[image]"),
        (Part("file", "", '{"type": "file", "file": {"file_id": "1"}}'), "[file]"),
        (Part("other", "", '{"type": "hologram"}'), "[other]"),
        (Part("video", "", '{"type": "video"}'), "[video]"),
        (Part("text", "said", '{"type": "output_text", "text": "said"}'), "said"),
    ],
)
def test_a_part_of_an_unknown_shape_is_named(part: Part, text: str) -> None:
    """It is a text with what can be read of it, and no error."""
    assert TextBlock(text=text) == decoded(part)


PNG, MP3 = base64.b64encode(b"\x89PNG"), base64.b64encode(b"ID3\xff")


@pytest.mark.parametrize(
    "kind, source, block",
    [
        (
            "image",
            {"type": "image", "base64": PNG.decode(), "mime_type": "image/png"},
            ImageBlock.model_construct(image=PNG, image_mimetype="image/png"),
        ),
        (
            "image",
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
            ImageBlock(url="https://example.org/a.png"),
        ),
        (
            "audio",
            {"type": "audio", "base64": MP3.decode(), "mime_type": "audio/mp3"},
            AudioBlock.model_construct(audio=MP3, format="mp3"),
        ),
        ("audio", {"type": "audio", "source": {"url": "https://e.org/a"}}, AudioBlock(url="https://e.org/a")),
        (
            "file",
            {"type": "file", "base64": "JVBE", "mime_type": "application/pdf"},
            DocumentBlock.model_construct(data=b"JVBE", document_mimetype="application/pdf", title=None),
        ),
        (
            "file",
            {"type": "file", "url": "https://example.org/a.pdf"},
            DocumentBlock(url="https://example.org/a.pdf"),
        ),
        (
            "reasoning",
            {"type": "redacted_thinking", "data": "x"},
            ThinkingBlock(content="", additional_information={"type": "redacted_thinking", "data": "x"}),
        ),
        *(
            [
                (
                    "video",
                    {"type": "video", "url": "https://example.org/a.mp4"},
                    types.VideoBlock(url="https://example.org/a.mp4"),
                )
            ]
            if hasattr(types, "VideoBlock")
            else []
        ),
    ],
)
def test_media_in_another_frameworks_shape_are_blocks(kind: Any, source: dict[str, Any], block: Any) -> None:
    """Anthropic's, Gemini's and LangChain's shapes are read by where the media are."""
    assert block == decoded(Part(kind, "", json.dumps(source)))


def test_a_version_without_video_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """An older LlamaIndex reads a session with a video as far as it can."""
    monkeypatch.delattr(types, "VideoBlock", raising=False)

    assert TextBlock(text="[video]") == decoded(Part("video", "", '{"video_url": {"url": "https://example.org/a"}}'))


class Loud(TextBlock):
    """A text block of somebody's own."""


def test_a_block_of_somebodys_own_kind_is_read_as_what_it_extends() -> None:
    """A class of one's own over a block is that block."""
    message = LlamaIndexCodec().encode(ChatMessage(role="user", blocks=[Loud(text="hey")]))

    assert ("hey", TextBlock(text="hey")) == (message.text, LlamaIndexCodec().decode(message).blocks[0])


@pytest.mark.parametrize("arguments, text", [([1], "[1]"), (b"\xff", '{"$slidemem": "base64", "as": "/w=="}')])
def test_arguments_that_are_no_object_are_written_as_they_are(arguments: Any, text: str) -> None:
    """A list, or bytes, in the place of arguments."""
    call = {"id": "1", "name": "f", "args": arguments}
    message = LlamaIndexCodec().encode(ChatMessage(role="assistant", additional_kwargs={"tool_calls": [call]}))

    assert text == message.tool_calls[0].arguments


# ------------------------------------------------------------------ chat stores


class Recording(SimpleChatStore):
    """A chat store whose async methods are its own, and whose deletes fail."""

    async def aget_messages(self, key: str) -> list[ChatMessage]:
        """The messages."""
        return self.get_messages(key)

    async def async_add_message(self, key: str, message: ChatMessage) -> None:
        """Add one."""
        self.add_message(key, message)

    async def aset_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Replace them."""
        self.set_messages(key, messages)

    def delete_messages(self, key: str) -> Any:
        """Never called."""
        raise AssertionError("deletes differ from store to store")


@pytest.mark.parametrize("twin", [False, True])
def test_a_chat_store_can_be_the_home_of_the_messages(*, twin: bool) -> None:
    """Put, get, set and reset through it, sync and async, its messages word for word and an archive beside."""
    store, records = Recording(), MemoryStore()
    memory = filled(turns=0, chat_store=store, chat_store_key="meera", records=records)

    async def through() -> None:
        for message in history():
            await memory.aput(message)
        await memory.aset([*await memory.aget_all(), ChatMessage("more")])
        await memory.aset((await memory.aget_all())[:-1])

    if twin:
        awaited(through())
    else:
        memory.put_messages(history())
        memory.set([*memory.get_all(), ChatMessage("more")])
        memory.set(memory.get_all()[:-1])
        while memory.session.consolidate():
            pass

    assert history() == store.get_messages("meera") == memory.get_all()
    assert (True, True) == (FENCE in texts(memory.get())[0], memory.chat_store is store)
    again = filled(turns=0, chat_store=store, chat_store_key="meera", records=records)
    memory.token_limit = LIMIT
    assert again.get() == memory.get()
    if twin:
        awaited(memory.areset())
    else:
        memory.reset()
    assert ([], []) == (store.get_messages("meera"), memory.get())


class Failing(SimpleChatStore):
    """A chat store that counts its writes, and fails when it is told to."""

    writes: list[str] = []  # noqa: RUF012  # pydantic copies it
    failing: bool = False

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Replace them."""
        self.writes.append("set")
        if self.failing:
            raise OSError("no space")
        super().set_messages(key, messages)

    def add_message(self, key: str, message: ChatMessage, idx: int | None = None) -> None:
        """Add one."""
        self.writes.append("add")
        if self.failing:
            raise OSError("no space")
        super().add_message(key, message, idx)


@pytest.mark.parametrize("twin", [False, True])
@pytest.mark.parametrize("given", ["other", "edited", "prompted"])
def test_a_set_that_fails_leaves_the_history(given: str, *, twin: bool) -> None:
    """It is one write of the store: where that fails, all messages are there, and where it does not, all new ones."""
    store = Failing()
    memory = filled(chat_store=store)
    lists = {
        "other": [ChatMessage("other"), ChatMessage(role="assistant", content="answer")],
        "edited": [*history()[:70], ChatMessage("edited"), ChatMessage(role="assistant", content="answer")],
        "prompted": [ChatMessage(role="system", content="You are kind."), *history()],
    }

    def put() -> None:
        if twin:
            awaited(memory.aset(lists[given]))
        else:
            memory.set(lists[given])

    store.failing, store.writes = True, []
    with pytest.raises(OSError, match="no space"):
        put()
    assert (history(), history(), ["set"]) == (store.get_messages("chat_history"), memory.get_all(), store.writes)
    assert history()[-1] == memory.get()[-1]
    store.failing, store.writes = False, []
    put()

    assert (lists[given], ["set"]) == (memory.get_all(), store.writes)


def test_a_set_of_a_message_that_cannot_be_stored_changes_nothing() -> None:
    """History and archive stay, wherever they are kept."""
    for options in ({}, {"chat_store": SimpleChatStore()}):
        memory = filled(**options)
        before = memory.get(), memory.session.archive()

        with pytest.raises(InvalidMessage, match="message 1"):
            memory.set(
                [ChatMessage("other"), ChatMessage(role="user", content="x", additional_kwargs={"a": 10**5000})]
            )

        assert before == (memory.get(), memory.session.archive())
        assert history() == memory.get_all()


class Rows(SimpleChatStore):
    """A chat store as databases are: messages as JSON text, read anew each time, its deletes not to be called."""

    rows: dict[str, list[str]] = {}  # noqa: RUF012  # pydantic copies it

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Replace them."""
        self.rows[key] = [message.model_dump_json() for message in messages]

    def get_messages(self, key: str) -> list[ChatMessage]:
        """New ones each time."""
        return [ChatMessage.model_validate_json(row) for row in self.rows.get(key, [])]

    def add_message(self, key: str, message: ChatMessage, idx: int | None = None) -> None:
        """Add one."""
        self.rows.setdefault(key, []).append(message.model_dump_json())

    def delete_messages(self, key: str) -> Any:
        """Never called."""
        raise AssertionError("deletes differ from store to store")

    delete_message = delete_last_message = delete_messages  # type: ignore[assignment]  # never called

    def get_keys(self) -> Any:
        """Never called: some stores list their whole database."""
        raise AssertionError("the keys are the user's")


@pytest.mark.parametrize("twin", [False, True])
def test_a_filled_store_is_picked_up_as_it_is(tmp_path: Any, *, twin: bool) -> None:
    """run-llama/llama_index 13308, 9928: by its key, within the limit at once, archived with the next message."""
    store = Rows(rows={"meera": [message.model_dump_json() for message in history()]})
    given: dict[str, Any] = {"chat_store": store, "records": f"sqlite:///{tmp_path / 'records.db'}"}

    memory = filled(turns=0, chat_store_key="meera", **given)
    first = memory.get()
    said = [ChatMessage("And the last one?"), ChatMessage(role="assistant", content="PNR-0039.")]
    if twin:
        awaited(memory.aput_messages(said))
    else:
        memory.put_messages(said)
    again = filled(turns=0, chat_store_key="meera", **given)

    assert (history()[-1], True) == (first[-1], cost(first) <= LIMIT)
    assert (FENCE in texts(again.get())[0], 82) == (True, len(again.get_all()))
    assert memory.get() == again.get()
    assert [] == filled(turns=0, chat_store_key="other", **given).get_all()


class Adding(SimpleChatStore):
    """A chat store that adds what it is to set, and refuses an empty list: LlamaIndex's SQLiteChatStore does."""

    stuck: bool = False

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Add them."""
        if not messages:
            raise ValueError("no rows")
        self.store.setdefault(key, []).extend(messages)

    def delete_messages(self, key: str) -> Any:
        """Delete them, and say nothing."""
        if not self.stuck:
            self.store.pop(key, None)


class Silent(Adding):
    """One that takes an empty list, and does nothing."""

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Add them."""
        self.store.setdefault(key, []).extend(messages)


@pytest.mark.parametrize("kind", [Adding, Silent])
@pytest.mark.parametrize("twin", [False, True])
def test_a_chat_store_that_adds_what_it_is_to_set_is_emptied_first(kind: Any, *, twin: bool) -> None:
    """An edit, another conversation and a reset leave what they say, once."""
    store = kind()
    memory = filled(chat_store=store)

    async def through() -> list[list[ChatMessage]]:
        seen = []
        for given in ([*history()[:78], ChatMessage("edited")], [ChatMessage("other")], []):
            await memory.aset(given)
            seen.append(await memory.aget_all())
        await memory.aput(ChatMessage("again"))
        await memory.areset()
        return [*seen, await memory.aget_all()]

    def sync() -> list[list[ChatMessage]]:
        seen = []
        for given in ([*history()[:78], ChatMessage("edited")], [ChatMessage("other")], []):
            memory.set(given)
            seen.append(memory.get_all())
        memory.put(ChatMessage("again"))
        memory.reset()
        return [*seen, memory.get_all()]

    seen = awaited(through()) if twin else sync()

    assert [[*history()[:78], ChatMessage("edited")], [ChatMessage("other")], [], []] == seen


def test_a_chat_store_that_cannot_be_emptied_says_so() -> None:
    """Its own error comes through, and the messages are there."""
    store = Adding(stuck=True)
    memory = filled(turns=1, chat_store=store)

    with pytest.raises(ValueError, match="no rows"):
        memory.reset()

    assert history(1) == memory.get_all()


@pytest.mark.parametrize("twin", [False, True])
def test_records_can_be_kept_in_the_chat_store(*, twin: bool) -> None:
    """Only when asked, since its keys are the user's list of sessions; archive and pins survive a restart there."""
    store = Adding()  # the hardest one
    given: dict[str, Any] = {"chat_store": store, "chat_store_key": "meera", "records": "chat_store"}
    memory = filled(turns=0, **given)
    if twin:
        awaited(memory.aput_messages(history()))
    else:
        memory.put_messages(history())
    memory.session.pin("likes tea")
    again = filled(turns=0, **given)

    assert (memory.get(), history()) == (again.get(), again.get_all())
    assert all(text in (again.get()[0].content or "") for text in (FENCE, "likes tea"))
    assert (["meera", "meera.slidemem"], history()) == (store.get_keys(), store.get_messages("meera"))
    assert 1 == len(store.get_messages("meera.slidemem"))
    memory.reset()
    assert ([], []) == (filled(turns=0, **given).get_all(), filled(turns=0, **given).get())
    asked_for_nothing = SimpleChatStore()
    filled(chat_store=asked_for_nothing, chat_store_key="meera")
    assert ["meera"] == asked_for_nothing.get_keys()


def test_messages_that_have_left_the_window_can_be_read() -> None:
    """run-llama/llama_index 19751: all of them, from the memory and from its chat store, archived or not."""
    memory = filled()

    assert len(memory.get()) < 80
    assert history() == memory.get_all() == memory.chat_store.get_messages("chat_history")


def test_one_object_may_serve_two_sessions() -> None:
    """run-llama/llama_index 22701: by its key, each with messages, archive and pins of its own."""
    for options in ({}, {"chat_store": SimpleChatStore()}):
        memory = filled(**options)
        memory.session.pin("likes tea")

        memory.chat_store_key = "second"
        memory.put(ChatMessage("Who am I?"))
        second = texts(memory.get()), memory.session.pins()
        memory.chat_store_key = "chat_history"

        assert (["user: Who am I?"], ()) == second
        assert (history(), True) == (memory.get_all(), "likes tea" in (memory.get()[0].content or ""))


def test_what_a_chat_store_holds_is_apart_from_what_is_handed_out() -> None:
    """A caller who changes a message changes nothing in the store; two keys are two conversations."""
    store = SimpleChatStore()
    first, second = (SlidingChatMemoryBuffer.from_defaults(chat_store=store, chat_store_key=key) for key in "ab")
    message = ChatMessage("hello")
    first.put(message)

    message.blocks.append(TextBlock(text="x"))
    first.get()[0].blocks.append(TextBlock(text="y"))
    first.get_all()[0].blocks.append(TextBlock(text="z"))

    assert ([ChatMessage("hello")], []) == (store.get_messages("a"), second.get_all())


def test_a_handed_out_message_is_no_template_though_a_plain_one_is() -> None:
    """The same words in a plain ChatMessage would be replaced."""
    plain = ChatMessage(role="user", blocks=[TextBlock(text="{x}"), ToolCallBlock(tool_name="f")])
    remembered = LlamaIndexCodec().remembered(LlamaIndexCodec().encode(plain))

    assert (["x"], []) == (plain.get_template_vars(), remembered.get_template_vars())
    formatted = remembered.format_vars(x="y")
    assert (plain, RememberedMessage, True) == (formatted, type(formatted), formatted is not remembered)


# ------------------------------------------------------------------ the memory's own


def test_the_chat_store_of_a_memory_is_there_as_in_chat_memory_buffer() -> None:
    """Its users read, fill and shorten it; what they do there is in the memory."""
    memory = filled()
    store = memory.chat_store

    store.add_message("chat_history", ChatMessage("hello"))
    store.add_message("other", ChatMessage("somebody else"))
    assert (["chat_history", "other"], "hello", 81) == (
        store.get_keys(),
        memory.get()[-1].content,
        len(store.get_messages("chat_history")),
    )
    assert (ChatMessage("hello"), history()[3]) == (
        store.delete_last_message("chat_history"),
        store.delete_message("chat_history", 3),
    )
    assert [*history()[:3], *history()[4:]] == memory.get_all()
    assert [None, None, None] == [
        store.delete_message("chat_history", 500),
        store.delete_last_message("unknown"),
        store.delete_messages("unknown"),
    ]
    store.set_messages("chat_history", [ChatMessage("new")])
    assert [ChatMessage("new")] == memory.get_all() == store.delete_messages("chat_history")
    assert ([], ["other"]) == (memory.get_all(), store.get_keys())


def test_the_chat_store_of_a_memory_has_native_twins(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of them leaves the thread."""
    memory = filled(turns=1)
    monkeypatch.setattr("asyncio.to_thread", None)

    async def through() -> list[Any]:
        store, key = memory.chat_store, "chat_history"
        await store.async_add_message(key, ChatMessage("hello"))
        deleted = [await store.adelete_last_message(key), await store.adelete_message(key, 7)]
        await store.aset_messages(key, [*await store.aget_messages(key), ChatMessage("more")])
        return [*deleted, await store.aget_keys(), await store.adelete_messages(key), await store.aget_keys()]

    assert [ChatMessage("hello"), None, ["chat_history"], [*history(1), ChatMessage("more")], []] == awaited(
        through()
    )


def test_the_chat_store_of_a_memory_is_persisted_for_llama_index(tmp_path: Any) -> None:
    """SimpleChatStore reads the file, in a folder that is made, and a new memory goes on with it."""
    memory, path = filled(), tmp_path / "new" / "store.json"
    image = ImageBlock(image=b"\x89PNG\r\n\x1a\n\xff")
    kwargs = {"bytes": b"\xff", "tuple": (1,), "model": TextBlock(text="x"), "object": Encoding}
    memory.put(ChatMessage(role="user", blocks=[TextBlock(text="look"), image], additional_kwargs=kwargs))

    memory.chat_store.persist(str(path))  # type: ignore[attr-defined]  # as SimpleChatStore has it
    memory.chat_store.persist(str(path))  # type: ignore[attr-defined]  # over itself
    read = SimpleChatStore.from_persist_path(str(path))

    again = filled(turns=0, chat_store=read)
    assert history() == again.get_all()[:80]
    assert (["store.json"], image) == ([one.name for one in path.parent.iterdir()], again.get_all()[80].blocks[1])
    said = again.get_all()[80].additional_kwargs
    assert ("/w==", [1], "x") == (said["bytes"], said["tuple"], said["model"]["text"])


def test_a_copy_of_the_chat_store_of_a_memory_is_a_simple_chat_store() -> None:
    """Copied, pickled, and loaded from its dump or its JSON by LlamaIndex's own loader."""
    store = filled(turns=2).chat_store

    copies = [
        copy.deepcopy(store),
        pickle.loads(pickle.dumps(store)),  # noqa: S301  # our own
        load_chat_store(store.to_dict()),
        load_chat_store(json.loads(store.json())),
    ]

    assert [SimpleChatStore] * 4 == [type(one) for one in copies]
    assert [{"chat_history": history(2)}] * 4 == [one.store for one in copies]  # type: ignore[attr-defined]  # all are


def test_two_memories_may_share_one_chat_store() -> None:
    """The one of a memory, given to another with a key of its own; and None leaves a memory its own."""
    first = filled(turns=1)
    second = SlidingChatMemoryBuffer.from_defaults(chat_store=first.chat_store, chat_store_key="second")

    second.put(ChatMessage("hello"))
    first.chat_store = None  # type: ignore[assignment]  # as ChatMemoryBuffer's argument

    assert (history(1), [ChatMessage("hello")]) == (first.get_all(), first.chat_store.get_messages("second"))
    assert ["chat_history", "second"] == second.chat_store.get_keys()
    assert second.get() == copy.deepcopy(second).get()


def test_a_memory_may_leave_the_chat_store_that_it_was_given() -> None:
    """It goes on with one of its own, and the store keeps what it has."""
    store = SimpleChatStore()
    memory = SlidingChatMemoryBuffer.from_defaults(history(1), chat_store=store)

    memory.chat_store = None  # type: ignore[assignment]  # as ChatMemoryBuffer's argument

    assert ([], history(1), []) == (
        memory.get_all(),
        store.get_messages("chat_history"),
        memory.chat_store.get_keys(),
    )
