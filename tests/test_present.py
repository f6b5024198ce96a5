"""How one message is shown: mended, joined, headed, or cut to a number of tokens by any counter."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slidemem import present
from slidemem.messages import Mark, Message, Part, ToolCall, digest, marked, origins, system, user
from slidemem.openai_format import from_openai, to_openai
from slidemem.present import (
    EMPTY,
    LEFT_OUT,
    barest,
    clamp,
    headed,
    is_note,
    joined,
    mend,
    oversize,
    shorten,
    without_reasoning,
)
from slidemem.tokens import MessageCounter, TextCounter, resolve_counter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Count = present.Count

IMAGE = Part(
    "image", "", json.dumps({"image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}, "type": "image_url"})
)
THOUGHT = Part(
    "reasoning",
    "Look it up.",
    json.dumps({"signature": "c2lnbmVk", "thinking": "Look it up.", "type": "thinking"}),
)
BLANK = " \n\t\u3000"


def text(said: str) -> Part:
    """A text part."""
    return Part("text", said)


def answer(*parts: Part | str, **more: Any) -> Message:
    """An assistant message."""
    return Message("assistant", tuple(text(part) if isinstance(part, str) else part for part in parts), **more)


def result(said: str) -> Message:
    """A tool message."""
    return Message("tool", (text(said),), tool_call_id="call_1")


def calling(arguments: str, name: str = "trains", **more: Any) -> Message:
    """An assistant message that only calls a tool."""
    return Message("assistant", tool_calls=(ToolCall("call_1", name, arguments, **more),))


def note(said: str) -> Message:
    """A note of ours."""
    return replace(user(said), mark=Mark(("note",)))


def sourced(kind: Any, said: str, **fields: Any) -> Part:
    """A part that a plain string cannot stand for."""
    return Part(kind, said, json.dumps(fields))


# ------------------------------------------------------------------ mend

MENDED: dict[str, tuple[Message, Message]] = {
    "paired halves": (user("a\ud83d\ude00b"), user("a\U0001f600b")),
    "high half": (user("a\ud83db"), user("a\ufffdb")),
    "low half": (user("a\ude00b"), user("a\ufffdb")),
    "half at the end": (user("a\ud83d"), user("a\ufffd")),
    "halves the wrong way round": (user("\ude00\ud83d"), user("\ufffd\ufffd")),
    "two high halves": (user("\ud83d\ud83d\ude00"), user("\ufffd\U0001f600")),
    "halves beside Hindi": (user("पुणे\ud800"), user("पुणे\ufffd")),
    "half in reasoning": (answer(Part("reasoning", "\ud800"), "a"), answer(Part("reasoning", "\ufffd"), "a")),
    "half in a source": (
        answer(sourced("reasoning", "\ud800", thinking="\ud800", signature="s"), "a"),
        answer(sourced("reasoning", "\ufffd", thinking="\ufffd", signature="s"), "a"),
    ),
    "paired halves in a source": (
        Message("user", (Part("text", "\ud83d\ude00", '{"text": "\\ud83d\\ude00"}'),)),
        Message("user", (Part("text", "\U0001f600", '{"text": "\\ud83d\\ude00"}'),)),
    ),
    "half in a source that is not ASCII": (
        Message("user", (Part("image", "", '{"alt": "पुणे\ud800"}'),)),
        Message("user", (sourced("image", "", alt="पुणे\ufffd"),)),
    ),
    "half in a key": (
        Message("user", (sourced("other", "", **{"\udc00": 1}),)),
        Message("user", (sourced("other", "", **{"\ufffd": 1}),)),
    ),
    "half in the name": (replace(user("a"), name="\ud800"), replace(user("a"), name="\ufffd")),
    "half in the id": (replace(user("a"), id="\ud800"), replace(user("a"), id="\ufffd")),
    "half in the id of a result": (
        replace(result("a"), tool_call_id="\ud800"),
        replace(result("a"), tool_call_id="\ufffd"),
    ),
    "half in a call": (
        Message("assistant", tool_calls=(ToolCall("\ud800", "\ud801", '{"a": "\ud802"}'),)),
        Message("assistant", tool_calls=(ToolCall("\ufffd", "\ufffd", '{"a": "\ufffd"}'),)),
    ),
    "half escaped in arguments": (calling('{"a": "\\ud800"}'), calling('{"a": "\\ufffd"}')),
    "half in a custom call": (calling("\ud800", custom=True), calling("\ufffd", custom=True)),
    "blank user": (user(BLANK), user(EMPTY)),
    "empty user": (user(""), user(EMPTY)),
    "user without parts": (Message("user"), user(EMPTY)),
    "blank answer": (answer(BLANK), answer(EMPTY)),
    "answer without parts": (answer(), answer(EMPTY)),
    "answer of nothing but reasoning": (answer(THOUGHT), answer(THOUGHT, EMPTY)),
    "blank result": (result(" "), result(EMPTY)),
    "blank text beside a call": (replace(calling("{}"), parts=(text(" "),)), calling("{}")),
    "blank system": (system(" "), Message("system")),
    "blank text beside an image": (Message("user", (text(" "), IMAGE)), Message("user", (IMAGE,))),
    "blank text beside a text": (Message("user", (text(""), text("a"))), user("a")),
    "blank text with cache_control": (
        Message("user", (sourced("text", " ", text=" "), IMAGE)),
        Message("user", (IMAGE,)),
    ),
    "blank texts": (Message("user", (text(""), text(" "))), user(EMPTY)),
    "no arguments": (calling(""), calling("{}")),
    "blank arguments": (calling(BLANK), calling("{}")),
    "arguments of no JSON": (calling("to Pune"), calling('{"malformed": "to Pune"}')),
    "arguments cut off": (calling('{"to": "Pu'), calling('{"malformed": "{\\"to\\": \\"Pu"}')),
    "arguments a list": (calling('["पुणे"]'), calling('{"malformed": "[\\"पुणे\\"]"}')),
    "arguments a text": (calling('"a"'), calling('{"malformed": "\\"a\\""}')),
    "arguments null": (calling("null"), calling('{"malformed": "null"}')),
    "arguments with NaN": (calling('{"a": NaN}'), calling('{"malformed": "{\\"a\\": NaN}"}')),
    "arguments without end": (calling('{"a": 1e999}'), calling('{"malformed": "{\\"a\\": 1e999}"}')),
    "two objects": (calling("{}{}"), calling('{"malformed": "{}{}"}')),
    "one of two calls": (
        Message("assistant", tool_calls=(ToolCall("1", "f", "{}"), ToolCall("2", "f", ""))),
        Message("assistant", tool_calls=(ToolCall("1", "f", "{}"), ToolCall("2", "f", "{}"))),
    ),
}


@pytest.mark.parametrize("message, expected", MENDED.values(), ids=MENDED.keys())
def test_a_message_is_mended(message: Message, expected: Message) -> None:
    """What some provider refuses is replaced, marked, and mended once for all."""
    mended = mend(message)

    assert marked(expected, "mended", message) == mended
    assert mended is mend(mended)


SOUND: dict[str, Message] = {
    "text": user("Hello"),
    "emoji": user("\U0001f600 पुणे"),
    "system": system("Be brief."),
    "system without parts": Message("system"),
    "image": Message("user", (IMAGE,)),
    "image and emoji": Message("user", (IMAGE, sourced("image", "", alt="\U0001f600"))),
    "text with cache_control": Message(
        "user", (sourced("text", "a", type="text", text="a", cache_control="\u00e9"),)
    ),
    "reasoning": answer(THOUGHT, "a"),
    "call": calling('{"to": "Pune"}'),
    "call in emoji": calling('{"to": "\U0001f600", "or": "\\ud83d\\ude00"}'),
    "call with odd spaces": calling(' {"a":1 ,"a":2}\n'),
    "blank custom call": calling("", custom=True),
    "custom call of no JSON": calling("to Pune", custom=True),
    "answer with raw": from_openai({"role": "assistant", "content": "\U0001f600", "weight": 1}),
    "name": replace(user("a"), name="alice", id="m1"),
}


@pytest.mark.parametrize("message", SOUND.values(), ids=SOUND.keys())
def test_a_sound_message_is_left_alone(message: Message) -> None:
    """What every provider takes is the same object afterwards."""
    assert message is mend(message)


def test_arguments_too_deep_to_read_are_mended() -> None:
    """Arguments on which a parser gives up are no JSON object."""
    endless = '{"a":' * 50_000

    mended = mend(calling(endless))

    expected = {"malformed": endless}
    assert expected == json.loads(mended.tool_calls[0].arguments)


def test_numbers_too_long_to_read_are_mended() -> None:
    """Python refuses a number of 5,000 digits, and so would whoever has to send it."""
    endless = f'{{"a": {"1" * 5_000}}}'

    mended = mend(calling(endless))

    expected = {"malformed": endless}
    assert expected == json.loads(mended.tool_calls[0].arguments)


def test_the_hosts_own_json_is_mended() -> None:
    """A half of a character does not come back with the keys that only the host's own JSON holds."""
    data = {"role": "user", "content": "a\ud800", "metadata": {"from": "\udc00"}, "emoji": "\U0001f600"}
    expected = {"role": "user", "content": "a\ufffd", "metadata": {"from": "\ufffd"}, "emoji": "\U0001f600"}

    mended = to_openai(mend(from_openai(data)))

    assert expected == mended


any_text = st.text(st.characters(exclude_categories=()), max_size=8) | st.sampled_from(["", " ", "\ud83d", "\ude00a"])
any_part = st.builds(Part, st.sampled_from(["text", "reasoning"]), any_text) | st.builds(
    lambda kind, said: sourced(kind, said if kind == "text" else "", type=kind, x=said),
    st.sampled_from(["text", "image", "other"]),
    any_text,
)
any_call = st.builds(
    ToolCall, any_text, any_text, any_text | st.sampled_from(["{}", "[]", '{"a": "\\ud800"}']), st.booleans()
)
any_message = st.builds(
    Message,
    st.sampled_from(["user", "assistant", "tool"]),
    st.lists(any_part, max_size=3).map(tuple),
    st.lists(any_call, max_size=2).map(tuple),
    tool_call_id=st.none() | any_text,
    name=st.none() | any_text,
)


@settings(max_examples=300)
@given(any_message)
def test_a_mended_message_is_sound(message: Message) -> None:
    """Any message is mended to something that UTF-8 can hold, that says something, and whose calls are objects."""
    mended = mend(message)

    json.dumps(to_openai(mended), ensure_ascii=False).encode("utf-8")
    arguments = [json.loads(call.arguments) for call in mended.tool_calls if not call.custom]
    said = [part for part in mended.parts if part.kind != "reasoning"]
    assert said or mended.tool_calls
    assert all(part.text.strip() for part in said if part.kind == "text")
    assert all(isinstance(one, dict) for one in arguments)
    assert mended is mend(mended)


# ------------------------------------------------------------------ without_reasoning, headed, joined

SILENT: dict[str, tuple[Message, Message]] = {
    "beside a text": (answer(THOUGHT, "a"), answer("a")),
    "in the middle": (answer("a", THOUGHT, "b"), answer("a", "b")),
    "alone": (answer(THOUGHT), answer(EMPTY)),
    "beside a call": (replace(calling("{}"), parts=(THOUGHT,)), calling("{}")),
    "beside a blank text": (answer(THOUGHT, " "), answer(EMPTY)),
    "plain": (answer(Part("reasoning", "Hm."), "a"), answer("a")),
}


@pytest.mark.parametrize("message, expected", SILENT.values(), ids=SILENT.keys())
def test_reasoning_is_taken_out(message: Message, expected: Message) -> None:
    """A message without its reasoning keeps the rest, and a placeholder where nothing is left."""
    silent = without_reasoning(message)

    assert marked(expected, "mended", message) == silent
    assert silent is without_reasoning(silent)


def test_a_message_without_reasoning_is_left_alone() -> None:
    """There is nothing to take out of a message that does not reason."""
    message = answer("a", IMAGE)

    assert message is without_reasoning(message)


HEADED: dict[str, tuple[Message, tuple[Part, ...]]] = {
    "text": (user("Hi"), (text("head\n\nHi"),)),
    "text and image": (Message("user", (text("Hi"), IMAGE)), (text("head\n\nHi"), IMAGE)),
    "image": (Message("user", (IMAGE,)), (text("head"), IMAGE)),
    "text with cache_control": (
        Message("user", (sourced("text", "Hi", type="text"),)),
        (text("head"), sourced("text", "Hi", type="text")),
    ),
    "nothing": (Message("user"), (text("head"),)),
}


@pytest.mark.parametrize("message, expected", HEADED.values(), ids=HEADED.keys())
def test_a_text_heads_a_message(message: Message, expected: tuple[Part, ...]) -> None:
    """The head joins a plain text, and stands before anything else; the rest of the message stays."""
    before = replace(message, id="m1", name="alice", raw="{}", mark=Mark(("clamp",), (3,)))

    after = headed(before, "head", "head")

    assert replace(before, parts=expected, mark=Mark(("clamp", "head"), (3,))) == after


JOINED: dict[str, tuple[Message, Message, Message]] = {
    "texts": (user("a"), user("b"), user("a\n\nb")),
    "text and image": (user("a"), Message("user", (IMAGE,)), Message("user", (text("a"), IMAGE))),
    "image and text": (Message("user", (IMAGE,)), user("b"), Message("user", (IMAGE, text("b")))),
    "texts that meet": (
        Message("user", (IMAGE, text("a"))),
        Message("user", (text("b"), IMAGE)),
        Message("user", (IMAGE, text("a\n\nb"), IMAGE)),
    ),
    "text with cache_control": (
        user("a"),
        Message("user", (sourced("text", "b", type="text"),)),
        Message("user", (text("a"), sourced("text", "b", type="text"))),
    ),
    "nothing before": (Message("user"), Message("user", (text("b"), IMAGE)), Message("user", (text("b"), IMAGE))),
    "nothing after": (Message("user", (IMAGE, text("a"))), Message("user"), Message("user", (IMAGE, text("a")))),
    "nothing at all": (Message("user"), Message("user"), Message("user")),
    "calls": (
        replace(calling("{}"), parts=(text("a"),)),
        calling('{"b": 1}'),
        Message(
            "assistant",
            (text("a"),),
            (ToolCall("call_1", "trains", "{}"), ToolCall("call_1", "trains", '{"b": 1}')),
        ),
    ),
    "reasoning": (answer("a"), answer(THOUGHT, "b"), answer("a", THOUGHT, "b")),
}


@pytest.mark.parametrize("first, second, expected", JOINED.values(), ids=JOINED.keys())
def test_two_messages_are_joined(first: Message, second: Message, expected: Message) -> None:
    """Texts that meet become one, and everything else keeps its order."""
    of = (digest(first), digest(second))
    assert replace(expected, mark=Mark(("joined",), of)) == joined(first, second)


@pytest.mark.parametrize(
    "first, second, expected",
    [
        ((), (), ("joined",)),
        (("clamp",), ("mended", "clamp"), ("clamp", "mended", "joined")),
        (("note",), (), ("joined",)),
        ((), ("note", "clamp"), ("clamp", "joined")),
        (("note",), ("note",), ("note", "joined")),
        (("note", "joined"), ("mended",), ("joined", "mended")),
    ],
)
def test_marks_are_joined(first: tuple[str, ...], second: tuple[str, ...], expected: tuple[str, ...]) -> None:
    """A joined message has the kinds of both and stands for both, and is a note only when both are."""
    one, other = (replace(user("a"), mark=Mark(kinds, ("d",)) if kinds else None) for kinds in (first, second))

    assert Mark(expected, (*origins(one), *origins(other))) == joined(one, other).mark


def test_a_joined_message_is_the_users_and_not_the_notes() -> None:
    """Name, id and the host's own JSON come from the first message, or from that which is no note."""
    alice = replace(user("Hi"), name="alice", id="m1", time="2026", raw='{"role": "user"}')
    bob = replace(user("Ho"), name="bob", id="m2")

    both = [joined(alice, bob), joined(note("n"), alice), joined(alice, note("n")), joined(note("n"), note("n"))]

    ids = ["m1", "m1", "m1", None]
    texts = ["Hi\n\nHo", "n\n\nHi", "Hi\n\nn", "n\n\nn"]
    assert list(zip(ids, texts, strict=True)) == [(one.id, one.text) for one in both]
    assert [alice.raw] * 3 == [one.raw for one in both[:3]]


@pytest.mark.parametrize(
    "message, expected",
    [
        (user("a"), False),
        (marked(user("a"), "head", user("a")), False),
        (note("a"), True),
        (marked(note("a"), "clamp", note("a")), True),
        (joined(note("a"), user("b")), False),
    ],
)
def test_a_note_is_known_by_its_mark(message: Message, expected: bool) -> None:  # noqa: FBT001  # a row's expected value
    """A message is a note when its mark says so."""
    assert expected is is_note(message)


# ------------------------------------------------------------------ shorten

SHORTENED = [
    ("", 0, ""),
    ("abc", 0, "abc"),
    ("abcd", 0, "[…]"),
    ("abcdef", 3, "abcdef"),
    ("abcdefg", 3, "ab[…]g"),
    ("abcdefg", 7, "abcdefg"),
    ("abcdefg", 100, "abcdefg"),
    ("a" * 50 + "b" * 50, 63, "a" * 42 + "[…]" + "b" * 21),
    ("a" * 500 + "b" * 1_000, 90, "a" * 60 + "\n[… 1,410 characters left out …]\n" + "b" * 30),
    ("a" * 94, 64, "a" * 94),
    ("a" * 96, 64, "a" * 43 + "\n[… 32 characters left out …]\n" + "a" * 21),
    ("पुणे" * 50, 10, "पुणेपुण[…]ुणे"),
]


@pytest.mark.parametrize("whole, length, expected", SHORTENED)
def test_a_text_is_shortened(whole: str, length: int, expected: str) -> None:
    """Two thirds of what is kept are the head, one the tail; nothing is cut for less than its mark takes."""
    assert expected == shorten(whole, length)


@settings(max_examples=200)
@given(st.integers(0, 3_000), st.integers(0, 3_000))
def test_a_mark_tells_the_truth(size: int, length: int) -> None:
    """A shortened text is shorter, starts and ends like the whole, and the mark says what is missing."""
    whole = "".join(chr(0x4E00 + at) for at in range(size))

    short = shorten(whole, length)

    said = re.search(r"\[… ([\d,]+) characters left out …\]", short)
    kept = re.sub(r"\n?\[…[^\]]*\]\n?", "", short)
    head = next((at for at in range(len(kept)) if kept[at] != whole[at]), len(kept))
    assert short == whole or len(short) < len(whole)
    assert short == whole or LEFT_OUT in short or (said and int(said[1].replace(",", "")) == size - length)
    assert whole.endswith(kept[head:])
    assert (short == whole) or length == len(kept)


# ------------------------------------------------------------------ oversize


@pytest.mark.parametrize(
    "tokens, expected", [(99, False), (100, False), (101, False), (131, False), (132, True), (9_999, True)]
)
def test_a_message_is_not_cut_for_less_than_a_mark(tokens: int, expected: bool) -> None:  # noqa: FBT001  # a row's expected value
    """A message is oversize when it is past the limit by more than the mark of a cut takes: here 31 characters."""
    counter = TextCounter(len)

    assert expected is oversize(tokens, 100, counter.count)


def test_what_fits_is_known_without_counting() -> None:
    """The mark is not counted for a message within the limit."""

    def count(message: Message) -> int:
        raise AssertionError

    assert not oversize(100, 100, count)


# ------------------------------------------------------------------ clamp


def words(text: str) -> int:
    """A counter that is blind to the length of words."""
    return len(text.split())


def quarters(text: str) -> int:
    """The rule of thumb of four characters a token."""
    return len(text) // 4


COUNTERS: dict[str, Callable[[], Count]] = {
    "words": lambda: TextCounter(words).count,
    "characters": lambda: TextCounter(len).count,
    "quarters": lambda: TextCounter(quarters).count,
    "bytes": lambda: MessageCounter(lambda text: len(text.encode()), "bytes").count,
    "approximate": lambda: resolve_counter("approximate").count,
    "o200k_base": lambda: resolve_counter("o200k_base").count,
    "cl100k_base": lambda: resolve_counter("cl100k_base").count,
}


@pytest.fixture(params=COUNTERS.keys())
def count(request: pytest.FixtureRequest, vocabulary: Path) -> Count:
    """Any counter."""
    return COUNTERS[request.param]()


def total(messages: Any, count: Count) -> int:
    """Tokens of messages together."""
    return sum(count(message) for message in messages)


def prose(length: int, seed: int = 0) -> str:
    """Some words, numbers and signs of three scripts."""
    chosen = random.Random(seed).choices(["the train", "leaves", "9:00,", "पुणे", "火车", "x1f3", "\n"], k=length // 4)
    return " ".join(chosen)[:length]


LARGE: dict[str, tuple[Message, ...]] = {
    "one text": (user(prose(20_000)),),
    "one endless word": (user("x" * 20_000),),
    "Chinese": (user("火车几点开" * 2_000),),
    "two texts": (Message("user", (text(prose(8_000, 1)), text(prose(4_000, 2)))),),
    "a call and its result": (calling(json.dumps({"query": prose(6_000, 3)})), result(prose(9_000, 4))),
    "free input": (calling(prose(9_000, 5), custom=True), result("ok")),
    "reasoning": (answer(THOUGHT, prose(9_000, 6)),),
    "refusal": (answer(sourced("text", prose(9_000, 7), type="refusal", refusal=prose(9_000, 7))),),
}


@pytest.mark.parametrize("messages", LARGE.values(), ids=LARGE.keys())
@pytest.mark.parametrize("limit", [150, 400, 1_000])
def test_what_is_clamped_fits(messages: tuple[Message, ...], limit: int, count: Count) -> None:
    """Whatever counts, what is shown takes at most the limit, most of it, and each cut has a visible mark."""
    clamped = clamp(messages, limit, count)

    assert clamped is not None
    assert len(messages) == len(clamped)
    if total(messages, count) <= limit:
        assert messages == clamped
        return
    assert 0.5 * limit < total(clamped, count) <= limit
    for before, after in zip(messages, clamped, strict=True):
        cut = after.text + "".join(call.arguments for call in after.tool_calls)
        assert before is after or ("clamp" in (after.mark or Mark(())).kinds and "[…" in cut)


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 5, 8, 13, 20, 30])
def test_what_does_not_fit_at_all_is_none(limit: int, count: Count) -> None:
    """Where not even the marks fit there is nothing to show, and where they do something is shown."""
    messages = (calling(json.dumps({"query": "x" * 500})), result("y" * 500))
    least = total(map(barest, messages), count)

    clamped = clamp(messages, limit, count)

    assert (clamped is None) is (least > limit)
    assert clamped is None or total(clamped, count) <= limit


def test_the_bare_marks_are_the_least() -> None:
    """All that is said gives way to one mark, and free input to its own; reasoning and short arguments stay."""
    calls = (ToolCall("1", "f", '{"a": 1}'), ToolCall("2", "f", "abcd", custom=True))
    message = answer(THOUGHT, "abcd", "abc", IMAGE, tool_calls=calls)

    bare = barest(message)

    parts = (THOUGHT, text(LEFT_OUT))
    expected = replace(message, parts=parts, tool_calls=(calls[0], replace(calls[1], arguments=LEFT_OUT)))
    assert marked(expected, "clamp", message) == bare


def test_what_fits_is_left_alone(count: Count) -> None:
    """Messages that fit are the same objects, and so is a list of none."""
    messages = (user("Hello"), Message("user", (IMAGE,)), answer(THOUGHT, "a"), calling("{}"))

    clamped = clamp(messages, total(messages, count), count)

    assert clamped is not None
    assert [id(message) for message in messages] == [id(message) for message in clamped]
    assert clamp((), 0, count) == ()


def test_a_word_is_not_cut_to_a_dearer_mark(count: Count) -> None:
    """Small members stay verbatim beside a large one even where a mark takes more than they do."""
    small = tuple(user(word) for word in ("Hello", "Thanks", "Goodbye", "Tomorrow") * 5)
    room = total(small, count) + count(user("x" * 200))

    clamped = clamp((*small, user("x" * 5_000)), room, count)

    assert clamped is not None
    assert total(clamped, count) <= room
    assert all(before is after for before, after in zip(small, clamped, strict=False))


def test_a_second_cut_says_all_that_is_left_out() -> None:
    """The mark of a text that was cut before counts what both cuts took."""
    once = shorten("x" * 10_000, 1_000)

    twice = shorten(once, 500)

    assert "9,000 characters left out" in once
    assert "9,5" in twice
    assert 10_000 - 500 == int(re.findall(r"([\d,]+) characters", twice)[0].replace(",", ""))


def test_the_largest_is_cut_first() -> None:
    """A small member stays verbatim, and the same object, while the large one is cut."""
    small, large = calling('{"to": "Pune"}'), result("head " * 1_000 + "tail " * 1_000)

    clamped = clamp((small, large), 1_000, TextCounter(len).count)

    assert clamped is not None
    assert small is clamped[0]
    assert re.fullmatch(r"(head ){5}.*\[… [\d,]+ characters left out …\].*(tail ){5}", clamped[1].text, re.DOTALL)
    assert Mark(("clamp",), (digest(large),)) == clamped[1].mark
    assert replace(large, parts=clamped[1].parts, mark=clamped[1].mark) == clamped[1]


def test_two_large_members_are_cut_to_one_length() -> None:
    """Of two large members neither is spared at the cost of the other."""
    clamped = clamp((result("x" * 5_000), result("z" * 50_000)), 1_000, TextCounter(len).count)

    assert clamped is not None
    assert clamped[0].text.count("x") == clamped[1].text.count("z")


def test_media_are_kept_while_marks_fit() -> None:
    """An image stays beside a cut text, and gives way to a mark where not even that fits."""
    message = Message("user", (text("a" * 5_000), IMAGE))
    count = MessageCounter(len, "characters", {"image": 100}).count

    beside, alone = clamp([message], 300, count), clamp([message], 100, count)

    assert beside is not None
    assert alone is not None
    assert IMAGE is beside[0].parts[1]
    assert Part("text", "[image left out]") == alone[0].parts[1]
    assert alone[0].parts[0].text.startswith("aaaa")


@pytest.mark.parametrize("kind", ["image", "audio", "video", "file", "other"])
def test_media_that_do_not_fit_are_named(kind: Any) -> None:
    """The mark in the place of media says what it was; the bare marks are the least there is."""
    message = Message("user", (Part(kind, "", json.dumps({"type": kind, "data": "x" * 5_000})),))

    clamped = clamp([message], 50, MessageCounter(len, "characters").count)

    assert (marked(user(f"[{kind} left out]"), "clamp", message),) == clamped
    assert (barest(message),) == clamped


@pytest.mark.parametrize("part", [text("word"), IMAGE])
def test_ten_thousand_parts_become_one_text(part: Part) -> None:
    """Where not even the marks of all parts fit, they are one text, which is cut in the middle."""
    count = MessageCounter(len, "characters", {"image": 100}).count

    clamped = clamp([answer(THOUGHT, *[part] * 10_000)], 300, count)

    assert clamped is not None
    thought, said = clamped[0].parts
    assert (THOUGHT, True) == (thought, count(clamped[0]) <= 300)
    assert said.text.startswith(part.text or "[image left out]")
    assert "characters left out" in said.text


def test_many_texts_whose_marks_do_not_fit_become_one() -> None:
    """Ten thousand of them are one text around one mark, media named in it, after the reasoning."""
    parts = [part for at in range(5_000) for part in (text(f"part {at}"), IMAGE)]
    message = answer(THOUGHT, *parts)
    count = MessageCounter(len, "characters").count

    clamped = clamp([message], 300, count)

    assert clamped is not None
    assert ([THOUGHT.kind, "text"], True) == ([part.kind for part in clamped[0].parts], count(clamped[0]) <= 300)
    assert ("part 0\n[image left out]\npart 1", "characters left out", "[image left out]") == (
        clamped[0].text[:30],
        clamped[0].text[clamped[0].text.index("characters") :][:19],
        clamped[0].text[-16:],
    )
    assert marked(clamped[0], "clamp", message) == clamped[0]


def test_reasoning_is_never_cut() -> None:
    """A signed block is whole in what is shown, or there is nothing to show."""
    block = sourced("reasoning", "x" * 500, type="thinking", thinking="x" * 500, signature="s")
    message = answer(block, "y" * 5_000)
    count = MessageCounter(len, "characters").count

    fitting, none = clamp([message], 700, count), clamp([message], 400, count)

    assert fitting is not None
    assert block is fitting[0].parts[0]
    assert none is None


def test_a_cut_part_is_plain_text() -> None:
    """A text that was cut no longer is what its own JSON says."""
    message = Message("user", (sourced("text", "a" * 5_000, type="text", text="a" * 5_000, cache_control={}),))

    clamped = clamp([message], 200, TextCounter(len).count)

    assert clamped is not None
    assert (Part("text", clamped[0].text),) == clamped[0].parts


def test_oversize_arguments_stay_an_object() -> None:
    """Arguments that are cut become an object that holds head and tail, quotes and scripts kept."""
    arguments = json.dumps({"query": 'say "पुणे"\n' * 500}, ensure_ascii=False)

    clamped = clamp([calling(arguments)], 500, TextCounter(len).count)

    assert clamped is not None
    held = json.loads(clamped[0].tool_calls[0].arguments)
    assert held == {"truncated": held["truncated"]}
    assert held["truncated"].startswith('{"query": "say')
    assert held["truncated"].endswith('"}')
    assert "पुणे" in clamped[0].tool_calls[0].arguments
    assert len(clamped[0].tool_calls[0].arguments) > 350


def test_free_input_is_cut_as_text() -> None:
    """The input of a custom tool is no JSON, and is none after a cut."""
    clamped = clamp([calling("a" * 5_000, custom=True)], 500, TextCounter(len).count)

    assert clamped is not None
    assert re.fullmatch(r"a+\n\[… [\d,]+ characters left out …\]\na+", clamped[0].tool_calls[0].arguments)


@pytest.mark.parametrize("arguments", ["{}", '{"a": 1}', '{"to": "Pune"}', json.dumps({'"': '"' * 30})])
def test_arguments_are_not_cut_to_something_longer(arguments: str) -> None:
    """Short arguments stay what they are: the object that says they are truncated would be longer."""
    message = calling(arguments)

    for length in range(len(arguments)):
        cut = present._cut(message, length, media=True).tool_calls[0].arguments
        assert cut == arguments or len(cut) < len(arguments)


def test_the_host_gets_what_was_cut() -> None:
    """A clamped dict is shown cut, with the keys that only the host knows."""
    message = from_openai({"role": "tool", "tool_call_id": "c", "content": "a" * 5_000, "cache_control": {"x": 1}})

    clamped = clamp([message], 100, TextCounter(len).count)

    assert clamped is not None
    expected = {"role": "tool", "tool_call_id": "c", "content": clamped[0].text, "cache_control": {"x": 1}}
    assert expected == to_openai(clamped[0])


@pytest.mark.parametrize("limit", [20, 500, 20_000, 500_000])
@pytest.mark.parametrize("name", ["words", "characters", "quarters"])
def test_a_search_is_short(limit: int, name: str) -> None:
    """However long a text and whatever the limit, a few dozen counts find what fits."""
    counted = COUNTERS[name]()
    asked: list[int] = []

    def count(message: Message) -> int:
        asked.append(len(message.text))
        return counted(message)

    clamped = clamp([user("the train leaves " * 300_000)], limit, count)

    assert clamped is not None
    assert min(0.9 * limit, limit - 10) <= counted(clamped[0]) <= limit
    assert len(asked) <= 40


any_size = st.integers(0, 60) | st.integers(0, 5_000)
members = st.lists(
    st.builds(lambda size: user(prose(size)), any_size)
    | st.builds(lambda size: calling(json.dumps({"q": "x" * size})), any_size)
    | st.builds(lambda size: Message("user", (text("y" * size), IMAGE)), any_size),
    min_size=1,
    max_size=4,
)


@settings(max_examples=300)
@given(members, st.integers(0, 6_000), st.sampled_from([0, 30, 1_000]))
def test_a_cut_is_as_long_as_fits(messages: list[Message], limit: int, price: int) -> None:
    """The result fits; one that was cut clearly less would not have, and media do not give way without need."""
    count = MessageCounter(len, "characters", {"image": price}).count

    def cost(length: int, *, media: bool = True) -> int:
        return sum(count(present._cut(message, length, media=media)) for message in messages)

    clamped = clamp(messages, limit, count)

    if clamped is None:
        assert min(cost(0), cost(0, media=False), cost(5_000)) > limit
        return
    media = min(cost(0), cost(present._WORDS), cost(9_000)) <= limit
    length = present._greatest_length(messages, limit, count, media=media)
    longest = max(len(piece) for message in messages for piece in present._pieces(message))
    longer = min((length or 0) + (length or 0) // 16 + 64, longest)
    assert total(clamped, count) <= limit
    assert media or IMAGE not in [part for message in clamped for part in message.parts]
    assert length == longest or cost(longer, media=media) > limit
    assert all(before is after or after.mark is not None for before, after in zip(messages, clamped, strict=True))
