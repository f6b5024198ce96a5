"""What a message costs, by every counter, and what becomes of a counter that fails."""

from __future__ import annotations

import base64
import json
import random
import threading
import warnings
from collections import UserDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from slidemem import tokens
from slidemem.errors import ConfigurationError, InvalidMessage, VocabularyMissing
from slidemem.estimate import estimate_tokens
from slidemem.messages import Mark, Message, Part, ToolCall, user
from slidemem.openai_format import from_openai
from slidemem.tokens import (
    MEDIA_TOKENS,
    MessageCounter,
    Tally,
    TextCounter,
    TokenCounter,
    approximate_counter,
    count_tokens,
    resolve_counter,
    tiktoken_counter,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Data = dict[str, Any]

FRAME, NAME, CALL = 4, 1, 8  # what a message, a name, and a call or its result cost beside their text
BASE64 = base64.b64encode(random.Random(1).randbytes(300_000)).decode()
PICTURE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{BASE64}"}}
ARGUMENTS = '{"to": "Pune"}'
CALLS = [{"id": "call_1", "type": "function", "function": {"name": "trains", "arguments": ARGUMENTS}}]
THOUGHT = {"type": "thinking", "thinking": "Look it up.", "signature": "c2lnbmVk"}


def said(content: Any, role: str = "user", **more: Any) -> Data:
    """A message."""
    return {"role": role, "content": content, **more}


def other(text: str) -> Data:
    """A part of no known type."""
    return {"type": "hologram", "of": text}


def characters(text: str) -> int:
    """A measure that is easy to foretell."""
    return len(text)


def spaced(source: Data) -> int:
    """Characters of a part as readable JSON."""
    return len(json.dumps(source, ensure_ascii=False))


# ------------------------------------------------------------------ MessageCounter

COSTS: dict[str, tuple[Data, int]] = {
    "nothing": (said(None), FRAME),
    "text": (said("abc"), FRAME + 3),
    "text in a part": (said([{"type": "text", "text": "abc"}]), FRAME + 3),
    "text in two parts": (said([{"type": "text", "text": "abc"}, "de"]), FRAME + 5),
    "text with cache_control": (said([{"type": "text", "text": "abc", "cache_control": {"x": "y"}}]), FRAME + 3),
    "refusal": (said(None, "assistant", refusal="No."), FRAME + 3),
    "name": (said("abc", name="alice"), FRAME + 3 + NAME + 5),
    "empty name": (said("abc", name=""), FRAME + 3),
    "id": (said("abc", id="msg-1"), FRAME + 3),
    "calls": (said(None, "assistant", tool_calls=CALLS), FRAME + CALL + 6 + len(ARGUMENTS)),
    "calls twice": (said(None, "assistant", tool_calls=CALLS * 2), FRAME + 2 * (CALL + 6 + len(ARGUMENTS))),
    "calls and text": (said("abc", "assistant", tool_calls=CALLS), FRAME + 3 + CALL + 6 + len(ARGUMENTS)),
    "calls and parts": (said(["abc"], "assistant", tool_calls=CALLS), FRAME + 3 + CALL + 6 + len(ARGUMENTS)),
    "calls and no parts": (said([], "assistant", tool_calls=CALLS), FRAME + CALL + 6 + len(ARGUMENTS)),
    "legacy call": (said(None, "assistant", function_call=CALLS[0]["function"]), FRAME + CALL + 6 + len(ARGUMENTS)),
    "custom call": (said(None, "assistant", tool_calls=[{"custom": {"name": "f", "input": "xy"}}]), FRAME + CALL + 3),
    "result": (said("9:00", "tool", tool_call_id="call_1"), FRAME + 4 + CALL),
    "result in parts": (said(["9:00"], "tool", tool_call_id="call_1"), FRAME + 4 + CALL),
    "legacy result": (said("9:00", "function", name="trains"), FRAME + 4 + CALL + NAME + 6),
    "reasoning beside": (said("abc", "assistant", reasoning_content="Look it up."), FRAME + 3 + 11),
    "reasoning block": (said([THOUGHT, "abc"], "assistant"), FRAME + 3 + spaced(THOUGHT)),
    "reasoning in Chinese": (
        said([{**THOUGHT, "thinking": "查一下火车"}], "assistant"),
        FRAME + spaced({**THOUGHT, "thinking": "查一下火车"}),
    ),
    "image": (said([PICTURE]), FRAME + 1_000),
    "image and text": (said([PICTURE, "abc"]), FRAME + 1_000 + 3),
    "two images": (said([PICTURE, PICTURE]), FRAME + 2_000),
    "audio": (said([{"type": "input_audio", "input_audio": {"data": BASE64}}]), FRAME + 1_500),
    "video": (said([{"type": "video_url", "video_url": {"url": BASE64}}]), FRAME + 2_500),
    "file": (said([{"type": "file", "file": {"file_data": BASE64}}]), FRAME + 2_500),
    "document": (said([{"type": "document", "source": {"data": BASE64}}]), FRAME + 2_500),
    "unknown part": (said([other("abc")]), FRAME + spaced(other("abc"))),
    "unknown part in Chinese": (said([other("火车")]), FRAME + spaced(other("火车"))),
    "large unknown part": (said([other(BASE64)]), FRAME + spaced(other("")) + 2_500),
}


@pytest.mark.parametrize("data, expected", COSTS.values(), ids=COSTS.keys())
def test_a_message_costs_what_it_says(data: Data, expected: int) -> None:
    """Role, name, content, reasoning, calls and results count however they are spelled; media cost a flat price."""
    counter = MessageCounter(characters, "characters")

    assert expected == counter.count(from_openai(data))


def test_prices_of_media_can_be_set() -> None:
    """A price that is set is used, and the others stay."""
    counter = MessageCounter(characters, "characters", {"image": 85, "file": 20})
    parts = [PICTURE, {"type": "input_audio", "input_audio": {}}, {"type": "file"}, other("a" * 2_000)]

    counted = [counter.count(from_openai(said([part]))) for part in parts]

    assert [
        FRAME + 85,
        FRAME + MEDIA_TOKENS["audio"],
        FRAME + 20,
        FRAME + len(json.dumps(other(""), sort_keys=True)) + 20,
    ] == counted


def test_prices_of_media_can_be_nothing() -> None:
    """Media may cost nothing."""
    counter = approximate_counter({"image": 0})

    assert counter.count(from_openai(said(None))) == counter.count(from_openai(said([PICTURE])))


@pytest.mark.parametrize(
    "prices, expected",
    [
        (None, "characters"),
        ({}, "characters"),
        ({"image": 85}, "characters:image=85"),
        ({"video": 1, "audio": 2}, "characters:audio=2,video=1"),
    ],
)
def test_prices_are_in_the_fingerprint(prices: dict[str, int] | None, expected: str) -> None:
    """Counts with other prices are other counts."""
    counter = MessageCounter(characters, "characters", prices)

    assert expected == counter.fingerprint


@pytest.mark.parametrize(
    "prices", [{"picture": 85}, {"image": -1}, {"image": 8.5}, {"image": "85"}, {"image": True}, {"other": 1}]
)
def test_wrong_prices_are_refused(prices: Any) -> None:
    """A price that would be overlooked or would break a count raises when the counter is made."""
    with pytest.raises(ConfigurationError, match="media_tokens maps image, audio, video, file to whole numbers"):
        MessageCounter(characters, "characters", prices)


# ------------------------------------------------------------------ TextCounter

TEXTS: dict[str, tuple[Data, str]] = {
    "nothing": (said(None), ""),
    "text": (said("abc"), "abc"),
    "parts": (said(["abc", "de"]), "abc\nde"),
    "name": (said("abc", name="alice"), "abc"),
    "call": (said(None, "assistant", tool_calls=CALLS), f" trains {ARGUMENTS}"),
    "calls and text": (
        said("abc", "assistant", tool_calls=CALLS * 2),
        f"abc trains {ARGUMENTS} trains {ARGUMENTS}",
    ),
    "arguments as sent": (
        said(None, "assistant", tool_calls=[{"function": {"name": "f", "arguments": "not { JSON"}}]),
        " f not { JSON",
    ),
    "custom call": (said(None, "assistant", tool_calls=[{"custom": {"name": "f", "input": "xy"}}]), " f xy"),
    "result": (said("9:00", "tool", tool_call_id="call_1"), "9:00"),
    "media": (said([PICTURE, {"type": "file"}]), ""),
    "media between texts": (said(["abc", PICTURE, "de"]), "abc\nde"),
    "unknown part": (said([other("abc")]), ""),
    "reasoning": (said("abc", "assistant", reasoning_content="Hm."), "Hm.\nabc"),
    "thinking": (said([THOUGHT, "abc"], "assistant"), "Look it up.\nabc"),
}


@pytest.mark.parametrize("data, expected", TEXTS.values(), ids=TEXTS.keys())
def test_a_function_is_asked_once_for_the_whole_text(data: Data, expected: str) -> None:
    """A plain function gets content and calls as one text, and its answer is the cost."""
    asked: list[str] = []

    def measure(text: str) -> int:
        asked.append(text)
        return 7

    tokens_of = TextCounter(measure).count(from_openai(data))

    assert ([expected], 7) == (asked, tokens_of)


@pytest.mark.parametrize("function", [list, str.split, lambda text: tuple(text.split()), lambda text: {1: 1}.keys()])
def test_a_tokenizer_is_counted_by_its_length(function: Callable[[str], Any]) -> None:
    """A function that returns tokens costs as many as it returns."""
    counter = TextCounter(function)

    assert len(function("a b c")) == counter.count(user("a b c"))


@pytest.mark.parametrize("answer", ["abc", {"input_ids": [1, 2]}, UserDict(input_ids=[1, 2])])
def test_an_answer_that_has_another_length_is_refused(answer: Any) -> None:
    """The length of a text, or of what a Hugging Face tokenizer returns, is no number of tokens."""
    counter = TextCounter(lambda text: answer)

    with pytest.raises(TypeError, match="a whole number or a list of tokens, not a text or a mapping"):
        counter.count(user("abc"))


class Callable_:  # noqa: N801  # its name is looked at
    """An object that can be called."""

    def __call__(self, text: str) -> int:
        """Characters."""
        return len(text)


@pytest.mark.parametrize(
    "function, expected",
    [
        (characters, f"function:{__name__}.characters"),
        (str.split, "function:.str.split"),
        (Callable_(), f"function:{__name__}.Callable_"),
    ],
)
def test_a_function_is_known_by_its_name(function: Any, expected: str) -> None:
    """The fingerprint of a function is where it is defined."""
    assert TextCounter(function).fingerprint.startswith(expected)


# ------------------------------------------------------------------ tiktoken

ORDINARY = (
    "",
    " ",
    "Hello, world!",
    "The 9:00 train to Pune leaves from platform 12.\n\nIt is late, as ever.",
    "def f(x):\n    return {'a': x ** 2}  # squared\n\n\tif x:\r\n",
    "पुणे की ट्रेन कब है? 火车几点开？ 기차는 언제? Поезд в девять 🚆👩‍👩‍👧",
    "<|endoftext|>",
    "a <|endoftext|> b <|fim_prefix|><|im_start|>",
    "\x00\x01\x1c\u2028\ufeff",
    "word " * 3_000,
    "a" * 4_096,
    " " * 4_096,
    "\u3000" * 4_096 + "a" * 4_096,
)


@pytest.fixture(params=["o200k_base", "cl100k_base"])
def encoding(request: pytest.FixtureRequest, vocabulary: Path) -> tiktoken.Encoding:
    """A vocabulary."""
    return tiktoken.get_encoding(request.param)


@pytest.mark.parametrize("text", ORDINARY, ids=range(len(ORDINARY)))
def test_ordinary_text_is_counted_exactly(encoding: tiktoken.Encoding, text: str) -> None:
    """Text without an endless run costs what tiktoken says and the frame, special tokens being ordinary text."""
    counter = tiktoken_counter(encoding.name)

    assert FRAME + len(encoding.encode_ordinary(text)) == counter.count(user(text))


def test_a_whole_message_is_counted_exactly(encoding: tiktoken.Encoding) -> None:
    """Name, calls and reasoning cost what tiktoken says of each, and their documented overhead."""
    counter = tiktoken_counter(encoding.name)
    data = said("At nine.", "assistant", name="bot", tool_calls=CALLS, reasoning_content="Look it up.")

    texts = ("At nine.", "bot", "trains", ARGUMENTS, "Look it up.")
    expected = FRAME + NAME + CALL + sum(len(encoding.encode_ordinary(text)) for text in texts)

    assert expected == counter.count(from_openai(data))


def test_lone_surrogates_are_counted(encoding: tiktoken.Encoding) -> None:
    """Half a character costs what the sign that replaces it costs."""
    counter = tiktoken_counter(encoding.name)

    assert counter.count(user("a\ufffdb")) == counter.count(user("a\ud800b"))


@pytest.mark.parametrize("space", [" ", "\t", "\u3000", "\n"])
def test_a_million_spaces_do_not_panic(encoding: tiktoken.Encoding, space: str) -> None:
    """White space on which tiktoken panics costs as much as tiktoken says of less of it, times the length."""
    counter = tiktoken_counter(encoding.name)
    exact = 20 * len(encoding.encode_ordinary(space * 50_000))

    actual = counter.count(user(space * 1_000_000))

    assert 0.999 * exact <= actual <= 1.05 * exact


RUNS: dict[str, str] = {
    "one letter": "a" * 150_000,
    "base64": BASE64[:150_000],
    "digits": "1" * 150_000,
    "Han": "".join(random.Random(2).choices("漢字仮名交文例", k=50_000)),
    "dashes": "-" * 150_000,
    "between words": f"before {'x' * 50_000} between {BASE64[:50_000]}\n\nafter",
}


@pytest.mark.parametrize("text", RUNS.values(), ids=RUNS.keys())
def test_an_endless_run_is_counted_closely(encoding: tiktoken.Encoding, text: str) -> None:
    """A run that is counted in pieces costs up to 2 % more than by tiktoken, and never less."""
    counter = tiktoken_counter(encoding.name)
    exact = FRAME + len(encoding.encode_ordinary(text))

    actual = counter.count(user(text))

    assert exact <= actual <= 1.02 * exact


@pytest.mark.parametrize("sign", ["a", " "])
def test_a_run_is_cut_where_it_becomes_endless(sign: str) -> None:
    """A run of 4,096 characters is one piece, and one more makes two."""
    pieces = [[len(piece) for piece in tokens._pieces(sign * length) if piece] for length in (4_096, 4_097, 9_000)]

    expected = [[4_096], [4_096, 1], [4_096, 4_096, 808]]
    assert expected == pieces
    assert not tokens._LONG_RUN.search(sign * 4_096)
    assert tokens._LONG_RUN.search(sign * 4_097)


runs = st.tuples(
    st.sampled_from(["a", "ab", "-=", " ", "\t ", "漢字", "0", "नमस्ते", "xY3/", "\u3000", "\x1c", "é"]),
    st.sampled_from([1, 50, 4_096, 4_097, 6_000, 9_000]),
)


@settings(max_examples=60)
@given(st.lists(runs, max_size=4))
def test_pieces_cost_at_least_the_whole(vocabulary: Path, drawn: list[tuple[str, int]]) -> None:
    """Whatever runs meet, none of the text is left out, no piece is endless, and no count is below tiktoken's."""
    text = "".join((unit * length)[:length] for unit, length in drawn)
    encoding = tiktoken.get_encoding("o200k_base")

    pieces = list(tokens._pieces(text))

    assert text == "".join(pieces)
    assert not any(tokens._LONG_RUN.search(piece) for piece in pieces)
    assert FRAME + len(encoding.encode_ordinary(text)) <= tiktoken_counter("o200k_base").count(user(text))


@pytest.mark.parametrize(
    "name, expected",
    [
        ("o200k_base", "tiktoken:o200k_base"),
        ("gpt-4o", "tiktoken:o200k_base"),
        ("gpt-4o-mini-2024-07-18", "tiktoken:o200k_base"),
        ("gpt-4", "tiktoken:cl100k_base"),
    ],
)
def test_models_and_encodings_have_a_counter(vocabulary: Path, name: str, expected: str) -> None:
    """A model's name means the vocabulary of that model."""
    assert expected == tiktoken_counter(name).fingerprint


@pytest.mark.parametrize("name", ["", "claude-sonnet", "o200k", "GPT-4o"])
def test_unknown_names_are_refused(name: str) -> None:
    """A name that tiktoken does not know raises, and the error lists what there is instead."""
    with pytest.raises(ConfigurationError) as caught:
        tiktoken_counter(name)

    assert f"no model or encoding {name!r}; encodings: " in str(caught.value)
    assert "cl100k_base" in str(caught.value)
    assert '"approximate"' in str(caught.value)


# ------------------------------------------------------------------ a vocabulary that is missing


@pytest.fixture
def fresh() -> Iterator[None]:
    """A process that has not looked for its default vocabulary yet."""
    tokens._default_counter.cache_clear()
    yield
    tokens._default_counter.cache_clear()


class Panic(BaseException):
    """What a fault in tiktoken's own code raises is no `Exception`."""


def failing(fault: BaseException) -> Callable[[str], tiktoken.Encoding]:
    """A `tiktoken.get_encoding` that raises."""

    def get_encoding(name: str) -> tiktoken.Encoding:
        raise fault

    return get_encoding


@pytest.mark.parametrize("fault", [ConnectionError("no route"), ValueError("bad hash"), Panic("unwrap")], ids=repr)
def test_a_missing_vocabulary_says_what_to_do(monkeypatch: pytest.MonkeyPatch, fault: BaseException) -> None:
    """A tokenizer asked for by name whose vocabulary cannot be loaded raises with cause and remedy."""
    monkeypatch.setattr(tiktoken, "get_encoding", failing(fault))

    with pytest.raises(VocabularyMissing) as caught:
        resolve_counter("gpt-4o")

    assert f"'gpt-4o' could not be loaded ({type(fault).__name__})" in str(caught.value)
    assert "TIKTOKEN_CACHE_DIR" in str(caught.value)
    assert 'counter="approximate"' in str(caught.value)


def test_a_vocabulary_is_not_waited_for_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    """A download that hangs is given up after the patience that there is, and does not keep a program alive."""
    released = threading.Event()

    def get_encoding(name: str) -> tiktoken.Encoding:
        released.wait()
        raise ConnectionError

    monkeypatch.setattr(tiktoken, "get_encoding", get_encoding)
    monkeypatch.setattr(tokens, "_PATIENCE", 0.001)
    with pytest.raises(
        VocabularyMissing, match=r"'o200k_base' could not be loaded \(no answer within 0.006 seconds\)"
    ):
        tiktoken_counter("o200k_base")

    hanging = [thread for thread in threading.enumerate() if thread.name == "slidemem-vocabulary"]
    released.set()
    for thread in hanging:
        thread.join()
    daemons = [thread.daemon for thread in hanging]
    assert daemons
    assert all(daemons)


def test_the_default_counter_estimates_without_vocabulary(monkeypatch: pytest.MonkeyPatch, fresh: None) -> None:
    """Where the vocabulary is missing, the default counter warns the caller once and estimates from then on."""
    monkeypatch.setattr(tiktoken, "get_encoding", failing(ConnectionError()))
    messages = [user("When does the train leave?")]

    with pytest.warns(RuntimeWarning, match=r"counting approximately: .*'o200k_base'.*ConnectionError") as warned:
        first = count_tokens(messages)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        second = count_tokens(messages)

    expected = approximate_counter().count(messages[0])
    assert [expected, expected] == [first, second]
    assert [__file__] == [warning.filename for warning in warned]


def test_the_default_counter_is_tiktoken_where_it_can(vocabulary: Path, fresh: None) -> None:
    """Where the vocabulary is at hand, the default counter is exact and silent."""
    expected = ("tiktoken:o200k_base", FRAME + 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        counter = resolve_counter(None)

    assert counter is resolve_counter(None)
    assert expected == (counter.fingerprint, counter.count(user("Hello world")))


# ------------------------------------------------------------------ options


class Words:
    """A counter of a user's own."""

    fingerprint = "words"

    def count(self, message: Message) -> int:
        """Words of the text."""
        return len(message.text.split())


def test_counters_are_resolved(vocabulary: Path) -> None:
    """Each way to name a counter comes to that counter."""
    own = Words()
    given = ["approximate", "o200k_base", "gpt-4", characters, list, own]

    fingerprints = [resolve_counter(counter).fingerprint for counter in given]

    expected = ["estimate:1", "tiktoken:o200k_base", "tiktoken:cl100k_base", TextCounter(characters).fingerprint]
    assert [*expected, TextCounter(list).fingerprint, "words"] == fingerprints
    assert own is resolve_counter(own)


@pytest.mark.parametrize(
    "counter",
    [5, b"gpt-4o", ["gpt-4o"], object(), Words, MessageCounter],
    ids=["number", "bytes", "list", "object", "class", "other-class"],
)
def test_what_is_no_counter_is_refused(counter: Any) -> None:
    """An object of the wrong kind, or a counter's class in the place of a counter, raises and is named."""
    with pytest.raises(ConfigurationError, match='counter must be "approximate", a model or encoding name') as caught:
        resolve_counter(counter)

    assert f"got {counter!r:.80}" in str(caught.value)


def test_counters_are_of_the_protocol() -> None:
    """The counters that we make are what a user's own has to be."""
    counters = (approximate_counter(), TextCounter(characters), Words())

    assert all(isinstance(counter, TokenCounter) for counter in counters)


def test_the_estimate_measures_texts() -> None:
    """The offline counter adds the same overhead to the estimate of each text."""
    data = said("When does the train leave?", name="alice")

    expected = FRAME + NAME + estimate_tokens("When does the train leave?") + estimate_tokens("alice")

    assert expected == approximate_counter().count(from_openai(data))


def test_a_list_is_counted() -> None:
    """Messages of both forms add up."""
    listed = [said("abc"), user("de"), said(None, "assistant")]
    expected = [len("abcde"), 0]

    assert expected == [count_tokens(listed, characters), count_tokens([], characters)]


def test_a_list_with_a_wrong_message_is_refused() -> None:
    """The error names the place of the message that cannot be read."""
    with pytest.raises(InvalidMessage, match="message 1: unknown role"):
        count_tokens([said("abc"), said("de", "human")], characters)


# ------------------------------------------------------------------ Tally


class Answering:
    """A counter that gives, or raises, one answer and remembers what it was asked."""

    fingerprint = "answering"

    def __init__(self, answer: Any = 7) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def count(self, message: Message) -> Any:
        """The answer."""
        self.asked.append(message.text)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


class WholeNumber:
    """A whole number that is no `int`, as numpy's are."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __index__(self) -> int:
        return self.number


def never(message: Message, fault: BaseException) -> None:
    """Fails the test."""
    raise AssertionError from fault


def test_a_tally_counts_each_message_once() -> None:
    """A message is counted once, whatever its id, time and mark, and a text is a user message."""
    counter = Answering()
    tally = Tally(counter, never)
    message = user("abc")

    counted = [
        tally(message),
        tally(user("abc")),
        tally(replace(message, id="m", time="2026", mark=Mark(("head",), (1,)))),
        tally.text("abc"),
        tally(user("de")),
    ]

    expected = ([counter.answer] * 5, ["abc", "de"])
    assert expected == (counted, counter.asked)
    assert counter.fingerprint == tally.fingerprint


def test_a_tally_tells_messages_apart() -> None:
    """Messages that say different things are counted apart."""
    counter = Answering()
    tally = Tally(counter, never)
    messages = [
        user("a"),
        Message("assistant", (Part("text", "a"),)),
        replace(user("a"), name="b"),
        Message("assistant", (Part("text", "a"),), (ToolCall("1", "f", "{}"),)),
        Message("assistant", (Part("text", "a"),), (ToolCall("1", "f", "{ }"),)),
        Message("user", (Part("text", "a"), Part("image", "", '{"type": "image"}'))),
    ]

    for message in messages * 2:
        tally(message)

    assert len(messages) == len(counter.asked)


@pytest.mark.parametrize(
    "remember, said_in_turn, expected",
    [
        (2, "abab", "ab"),
        (2, "abcab", "abcab"),
        (2, "abacab", "abcb"),
        (1, "aabba", "aba"),
        (0, "aab", "aab"),
    ],
)
def test_a_tally_forgets_what_was_not_asked_for_longest(remember: int, said_in_turn: str, expected: str) -> None:
    """The memory of counts is bounded, and what is asked for again stays in it."""
    counter = Answering()
    tally = Tally(counter, never, remember)

    for text in said_in_turn:
        tally.text(text)

    assert list(expected) == counter.asked
    assert len(tally._known) <= remember


@pytest.mark.parametrize("answer, expected", [(0, 0), (7, 7), (WholeNumber(7), 7)])
def test_a_tally_takes_whole_numbers(answer: Any, expected: int) -> None:
    """Nothing is a count too, and numpy's whole numbers become plain ones."""
    counted = Tally(Answering(answer), never)(user("abc"))

    assert (expected, int) == (counted, type(counted))


FAULTS: dict[str, tuple[Any, type[BaseException], str]] = {
    "raises": (RuntimeError("no"), RuntimeError, "no"),
    "panics": (Panic("unwrap"), Panic, "unwrap"),
    "bool": (True, TypeError, "a counter must return a whole number of 0 or more, got True"),
    "negative": (-1, TypeError, "a counter must return a whole number of 0 or more, got -1"),
    "negative and no int": (WholeNumber(-1), TypeError, "a counter must return a whole number of 0 or more"),
    "float": (7.0, TypeError, "a counter must return a whole number of 0 or more, got 7.0"),
    "None": (None, TypeError, "a counter must return a whole number of 0 or more, got None"),
    "text": ("7", TypeError, "a counter must return a whole number of 0 or more, got '7'"),
    "endless text": ("7" * 5_000, TypeError, f"got '{'7' * 79}"),
}


@pytest.mark.parametrize("answer, kind, reason", FAULTS.values(), ids=FAULTS.keys())
def test_a_failing_counter_costs_the_estimate(answer: Any, kind: type[BaseException], reason: str) -> None:
    """A message that its counter fails on costs the estimate, and that is told once."""
    told: list[tuple[Message, BaseException]] = []
    counter = Answering(answer)
    tally = Tally(counter, lambda message, fault: told.append((message, fault)))
    message = user("When does the train leave?")

    counted = [tally(replace(message, mark=Mark(("clamp",)))), tally(message)]

    assert [approximate_counter().count(message)] * 2 == counted
    assert [(message, kind)] == [(about, type(fault)) for about, fault in told]
    assert reason in str(told[0][1])
    assert len(str(told[0][1])) < 200
    assert [message.text] == counter.asked


def test_a_counter_fails_on_one_message_only() -> None:
    """A fault on one message does not touch the count of another."""
    told: list[str] = []

    def measure(text: str) -> int:
        if text == "bad":
            raise ValueError(text)
        return len(text)

    tally = Tally(TextCounter(measure), lambda message, fault: told.append(message.text))
    expected = ([1, approximate_counter().count(user("bad")), 4], ["bad"])

    assert expected == ([tally.text(text) for text in ("a", "bad", "good")], told)


@pytest.mark.parametrize("fault", [KeyboardInterrupt, SystemExit])
def test_a_tally_lets_the_user_stop(fault: type[BaseException]) -> None:
    """What ends a program is no fault of the counter, and nothing is remembered of it."""
    counter = Answering(fault())
    tally = Tally(counter, never)

    with pytest.raises(fault):
        tally(user("abc"))
    counter.answer = 7

    assert tally.text("abc") == counter.answer


def test_a_tally_serves_many_threads() -> None:
    """Eight threads that count the same messages, through a memory too small for them, get the right counts."""
    together = threading.Barrier(8)
    tally = Tally(TextCounter(characters), never, remember=20)
    texts = ["x" * length for length in range(50)]

    def count(seed: int) -> list[tuple[int, int]]:
        mine = random.Random(seed).choices(texts, k=400)
        together.wait()
        return [(len(text), tally.text(text)) for text in mine]

    with ThreadPoolExecutor(8) as threads:
        counted = [pair for pairs in threads.map(count, range(8)) for pair in pairs]

    assert [expected for expected, _ in counted] == [actual for _, actual in counted]
    assert len(tally._known) <= 20


def test_two_lambdas_of_one_place_are_two_counters() -> None:
    """Functions of one name with other code have other fingerprints; the same code has the same one."""
    quarters, thirds, again = (
        TextCounter(function).fingerprint
        for function in (lambda text: len(text) // 4, lambda text: len(text) // 3, lambda text: len(text) // 4)
    )

    assert quarters != thirds
    assert quarters == again


def test_what_is_made_once_is_remembered() -> None:
    """A pure function is asked once for the same arguments, and what was made longest ago is forgotten."""
    asked: list[int] = []
    tally = Tally(TextCounter(len), lambda message, fault: None)

    def make(number: int, given: Tally) -> int:
        asked.append(number)
        return number * 2

    made = [tally.once(make, number) for number in (*range(300), 299, 0)]

    assert (600 - 2, 0) == (made[-2], made[-1])
    assert [*range(300), 0] == asked


def test_functions_that_hold_different_things_have_different_fingerprints() -> None:
    """Closures, defaults, partial functions, bound methods and objects are told apart by what they hold."""

    def times(k: int) -> Any:
        return lambda text: k * len(text)

    class Tokenizer:
        def __init__(self, name: str) -> None:
            self.name = name

        def __call__(self, text: str) -> int:
            return len(text)

        def encode(self, text: str) -> list[str]:
            return list(text)

    def each(k: int, text: str) -> int:
        return k * len(text)

    def default(k: int) -> Any:
        return lambda text, by=k: by * len(text)

    pairs = [
        (times(one), default(one), partial(each, one), Tokenizer(str(one)), Tokenizer(str(one)).encode)
        for one in (1, 3, 1)
    ]
    prints = [[resolve_counter(one).fingerprint for one in row] for row in pairs]

    assert prints[0] == prints[2]
    assert all(first != second for first, second in zip(prints[0], prints[1], strict=True))


def test_a_function_whose_closure_is_still_empty_is_a_counter() -> None:
    """What it will hold is not known yet; its code alone tells it from others."""

    def early() -> Any:
        counter = resolve_counter(lambda text: len(text) * weight)
        weight = 2
        return counter, weight

    counter, weight = early()

    assert 4 == counter.count(user("ab"))
    assert 2 == weight


# ------------------------------------------------------------------ threads


class Gate:
    """A counter that waits until it is let go on, and counts how often it was asked."""

    fingerprint = "gate"

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self.going = threading.Event()
        self.times = 0

    def count(self, message: Message) -> int:
        """Characters."""
        self.times += 1
        self.asked.release()
        assert self.going.wait(30)
        return len(message.text)


def test_two_threads_count_a_message_once() -> None:
    """Who comes while another thread counts the same message waits for what it finds."""
    gate = Gate()
    tally = Tally(gate, never)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(tally, user("abc"))
        assert gate.asked.acquire(timeout=30)
        second = pool.submit(tally, user("abc"))
        gate.going.set()
        counts = [first.result(30), second.result(30)]

    assert [3, 3] == counts
    assert 1 == gate.times


def test_a_thread_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """What another thread never finishes is counted after a while, as in a process forked meanwhile."""
    monkeypatch.setattr("slidemem.tokens._TURN", 0.01)
    gate = Gate()
    tally = Tally(gate, never)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(tally, user("abc"))
        assert gate.asked.acquire(timeout=30)
        second = pool.submit(tally, user("abc"))
        assert gate.asked.acquire(timeout=30)
        gate.going.set()
        counts = [first.result(30), second.result(30)]

    assert [3, 3] == counts
    assert 2 == gate.times


def test_a_counter_may_ask_for_what_it_counts() -> None:
    """A counter that asks the tally for the same message does not wait for itself."""
    deep: list[int] = []

    class Asking:
        fingerprint = "asking"

        def count(self, message: Message) -> int:
            deep.append(1)
            return tally(message) if len(deep) < 3 else 7

    tally = Tally(Asking(), never)

    assert 7 == tally(user("abc"))
    assert 3 == len(deep)
