"""Decides what a message costs, in tokens.

A counter counts one message, so counts add up. `tiktoken` counts where its vocabulary is at hand, a plain
function counts as it likes, and `estimate.py` serves where there is neither. `Tally` is how the rest of the
core counts: each message and each composed text once, and never an exception.
"""

from __future__ import annotations

import hashlib
import json
import operator
import re
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sized
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, Protocol, SupportsIndex, TypeGuard, TypeVar, cast, runtime_checkable

import tiktoken

from slidemem.errors import ConfigurationError, VocabularyMissing
from slidemem.estimate import estimate_tokens
from slidemem.messages import Message, Part, digest
from slidemem.openai_format import Given, read_openai

Made = TypeVar("Made")
TextMeasure = Callable[[str], "int | Sized"]

# Three tokens frame a message, one names its role, one goes before a name: OpenAI cookbook, "How to count
# tokens with tiktoken". A call's wrapper and id are not published; eight covers the ids of today's providers.
_FRAME: Final = 4
_NAME: Final = 1
_CALL: Final = 8

# Flat prices in tokens. An image of 1024 x 1024 takes 765 at OpenAI ("high" detail) and about 1,400 at
# Anthropic (width x height / 750); the others are a minute of sound, ten seconds of video, a few pages.
MEDIA_TOKENS: Final[Mapping[str, int]] = {"image": 1_000, "audio": 1_500, "video": 2_500, "file": 2_500}

# tiktoken panics on a million spaces (its splitter backtracks) and is slow on one endless word, so runs longer
# than this many characters are counted in pieces. A cut can hide a token (measured on random texts: one in a
# hundred cuts), so each piece costs one more: less than 0.1 tokens per 100 characters of a run.
_RUN: Final = 4_096
_LONG_RUN: Final = re.compile(rf"(?<!\s)\s{{{_RUN + 1},}}|(?<!\S)\S{{{_RUN + 1},}}")

_TURN: Final = 60.0  # seconds that a thread waits for another one's count before it counts itself
_MADE: Final = 256  # composed messages that a tally remembers

# In a part of a kind that is not known, a string like this is taken for a file in base64.
_BLOB: Final = re.compile(r'"[A-Za-z0-9+/=_:;,.-]{1000,}"')

_DEFAULT_ENCODING: Final = "o200k_base"
_PATIENCE: Final = 10.0  # seconds that the default counter waits for a vocabulary


@runtime_checkable
class TokenCounter(Protocol):
    """Counts one message.

    `fingerprint` names the way of counting: counts stored under another fingerprint are counted again. Two
    messages that say the same (role, name, parts, calls) are counted once, so a count depends on nothing else.
    """

    @property
    def fingerprint(self) -> str:
        """A stable name of this way of counting."""
        ...

    def count(self, message: Message) -> int:
        """Tokens of one message, its overhead included; 0 or more."""
        ...


class MessageCounter:
    """Counts role, name, content parts, reasoning, calls and results with a measure of text.

    Args:
        measure: tokens of a text.
        fingerprint: a stable name of the measure.
        media_tokens: flat price in tokens by kind of part (`image`, `audio`, `video`, `file`); what is left
            out keeps its price in `MEDIA_TOKENS`. Media are never counted by their base64 length.

    Raises:
        ConfigurationError: a price is of no such kind, or no whole number of 0 or more.
    """

    def __init__(
        self,
        measure: Callable[[str], int],
        fingerprint: str,
        media_tokens: Mapping[str, int] | None = None,
    ) -> None:
        given = dict(media_tokens or {})
        wrong = {kind: price for kind, price in given.items() if kind not in MEDIA_TOKENS or not _is_count(price)}
        if wrong:
            raise ConfigurationError(
                f"media_tokens maps {', '.join(MEDIA_TOKENS)} to whole numbers of tokens, 0 or more; got {wrong!r}"
            )
        self._measure = measure
        self._media = {**MEDIA_TOKENS, **given}
        prices = ",".join(f"{kind}={price}" for kind, price in sorted(given.items()))
        self.fingerprint = f"{fingerprint}:{prices}" if prices else fingerprint

    def count(self, message: Message) -> int:
        """Tokens of one message, its overhead included."""
        total = _FRAME + sum(self._part(part) for part in message.parts)
        if message.name:
            total += _NAME + self._measure(message.name)
        for call in message.tool_calls:
            total += _CALL + self._measure(call.name) + self._measure(call.arguments)
        return total + (_CALL if message.role == "tool" else 0)

    def _part(self, part: Part) -> int:
        if part.kind == "text":
            return self._measure(part.text)
        if part.kind == "reasoning":
            return self._measure(_readable(part.source) or part.text)
        if part.kind == "other":
            bare, blobs = _BLOB.subn('""', _readable(part.source))
            return self._measure(bare) + blobs * self._media["file"]
        return self._media[part.kind]


def _readable(source: str) -> str:
    """JSON text without the escapes that would make six characters, and as many tokens, of a Chinese one."""
    return json.dumps(json.loads(source), ensure_ascii=False) if "\\u" in source else source


class TextCounter:
    """Counts with a plain function of the message's text, adding nothing.

    The text is the content, then for each call a space, its name, a space and its arguments as sent. Media
    cost nothing. A function that returns a list (a tokenizer) is counted by its length.

    Args:
        function: `text -> int`, or `text -> list of tokens`; not a tokenizer that returns a mapping (a Hugging
            Face one, called), for which `lambda text: tokenizer(text)["input_ids"]` is right.
    """

    def __init__(self, function: TextMeasure) -> None:
        self._function = function
        name = getattr(function, "__qualname__", type(function).__qualname__)
        self.fingerprint = f"function:{getattr(function, '__module__', '')}.{name}{_code_of(function)}"

    def count(self, message: Message) -> int:
        """What the function says of the message's text."""
        said = "\n".join(part.text for part in message.parts if part.kind in {"text", "reasoning"})
        calls = "".join(f" {call.name} {call.arguments}" for call in message.tool_calls)
        counted = self._function(said + calls)
        if isinstance(counted, (str, Mapping)):
            raise TypeError("a counter must return a whole number or a list of tokens, not a text or a mapping")
        return len(counted) if isinstance(counted, Sized) else counted


def _code_of(function: TextMeasure) -> str:
    """What tells two functions of one name apart, lambdas above all: a hash of their code and of what they hold."""
    held: list[object] = [getattr(function, "__self__", None), getattr(function, "__defaults__", None)]
    code = getattr(function, "__code__", None)
    if code is None:
        held += [function, *getattr(function, "args", ()), getattr(function, "func", None)]
        said = b""
    else:
        plain = [value for value in code.co_consts if isinstance(value, (str, int, float))]
        held += map(_inside, getattr(function, "__closure__", None) or ())
        said = repr((code.co_names, plain)).encode("utf-8", "replace") + code.co_code
    known = repr([_outline(one) for one in held if one is not None]).encode("utf-8", "replace")
    return ":" + hashlib.blake2b(said + known, digest_size=6).hexdigest()


def _inside(cell: Any) -> object:
    """What a cell of a closure holds; None before it holds anything."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _outline(held: object) -> object:
    """What is known of a value in every process: itself where it is plain, else its type and what is plain in it."""
    if isinstance(held, tuple):
        return [_outline(one) for one in cast("tuple[object, ...]", held)]
    if isinstance(held, (str, int, float, bytes)):
        return repr(held)
    inside = vars(held) if hasattr(held, "__dict__") else {}
    plain = {name: value for name, value in inside.items() if isinstance(value, (str, int, float))}
    return type(held).__qualname__, sorted(plain.items())


def approximate_counter(media_tokens: Mapping[str, int] | None = None) -> MessageCounter:
    """The offline estimate: needs no vocabulary, over- rather than under-counts."""
    return MessageCounter(estimate_tokens, "estimate:1", media_tokens)


def tiktoken_counter(name: str, media_tokens: Mapping[str, int] | None = None) -> MessageCounter:
    """A counter with tiktoken's vocabulary of a model or encoding, `gpt-4o` or `o200k_base` for example.

    Raises:
        ConfigurationError: tiktoken knows no such model or encoding.
        VocabularyMissing: its vocabulary is neither cached nor reachable.
    """
    encoding = _encoding(name, patience=6 * _PATIENCE)
    return MessageCounter(_measure_with(encoding), f"tiktoken:{encoding.name}", media_tokens)


def resolve_counter(counter: TokenCounter | TextMeasure | str | None) -> TokenCounter:
    """The counter that an option means: None, `"approximate"`, a model, an encoding, a function, or a counter.

    None means tiktoken's `o200k_base`, and where its vocabulary cannot be had the estimate, with one warning.

    Raises:
        ConfigurationError: it is none of these.
        VocabularyMissing: a tokenizer asked for by name has no vocabulary here.
    """
    if counter is None:
        return _default_counter()
    if isinstance(counter, str):
        return approximate_counter() if counter == "approximate" else tiktoken_counter(counter)
    if isinstance(counter, TokenCounter) and not _is_bare_class(counter):
        if not isinstance(counter.fingerprint, str):
            raise ConfigurationError(f"a counter's fingerprint must be text, got {counter.fingerprint!r:.80}")
        return counter
    if callable(counter) and not _is_bare_class(counter):
        return TextCounter(counter)
    raise ConfigurationError(
        f'counter must be "approximate", a model or encoding name, a function text -> int, or an object with '
        f"count(message) and fingerprint; got {counter!r:.80}"
    )


def _is_bare_class(counter: object) -> bool:
    """Whether a counter's class was given in the place of a counter; `list` is a class too, and a tokenizer."""
    return isinstance(counter, type) and not issubclass(counter, Sized)


def count_tokens(
    messages: Given | Iterable[Given],
    counter: TokenCounter | TextMeasure | str | None = None,
) -> int:
    """Tokens of a list of messages (OpenAI-format dicts or `Message`), as a memory would count them.

    Raises:
        InvalidMessage: one of them cannot be read.
        ConfigurationError, VocabularyMissing: see `resolve_counter`.
    """
    resolved = resolve_counter(counter)
    return sum(map(resolved.count, read_openai(messages)))


@lru_cache(maxsize=1)
def _default_counter() -> TokenCounter:
    try:
        encoding = _encoding(_DEFAULT_ENCODING, patience=_PATIENCE)
    except VocabularyMissing as missing:
        warnings.warn(f"counting approximately: {missing}", RuntimeWarning, stacklevel=4)
        return approximate_counter()
    return MessageCounter(_measure_with(encoding), f"tiktoken:{encoding.name}")


def _encoding(name: str, patience: float) -> tiktoken.Encoding:
    """Load a vocabulary in a thread of its own, since tiktoken downloads without a time-out.

    Args:
        name: of a model or an encoding.
        patience: seconds to wait.
    """
    encoding_name = name if name in tiktoken.list_encoding_names() else _model_encoding(name)
    outcome: list[tiktoken.Encoding | str] = [f"no answer within {patience:g} seconds"]

    def load() -> None:
        try:
            outcome[0] = tiktoken.get_encoding(encoding_name)
        except BaseException as error:  # noqa: BLE001  # whatever the network, the cache or a panic raises, it is missing
            outcome[0] = type(error).__name__

    loader = threading.Thread(target=load, name="slidemem-vocabulary", daemon=True)
    loader.start()
    loader.join(patience)
    loaded = outcome[0]
    if isinstance(loaded, str):
        raise VocabularyMissing(name, loaded)
    return loaded


def _model_encoding(name: str) -> str:
    try:
        return tiktoken.encoding_name_for_model(name)
    except KeyError:
        raise ConfigurationError(
            f"tiktoken knows no model or encoding {name!r}; encodings: {', '.join(tiktoken.list_encoding_names())}; "
            'for another model give a function text -> int, or "approximate"'
        ) from None


def _measure_with(encoding: tiktoken.Encoding) -> Callable[[str], int]:
    def measure(text: str) -> int:
        if len(text) <= _RUN or not _LONG_RUN.search(text):
            return len(encoding.encode_ordinary(text))
        return sum(len(encoding.encode_ordinary(piece)) + 1 for piece in _pieces(text) if piece)

    return measure


def _pieces(text: str) -> Iterable[str]:
    """The text in order, its long runs cut into pieces of `_RUN` characters; some between them are empty."""
    at = 0
    for run in _LONG_RUN.finditer(text):
        yield text[at : run.start()]
        for start in range(run.start(), run.end(), _RUN):
            yield text[start : min(start + _RUN, run.end())]
        at = run.end()
    yield text[at:]


def _exactly(message: Message) -> str:
    """What tells a message from others as a counter sees it: its shape too, which its digest leaves out."""
    shape = hash((*(part.source for part in message.parts), *(call.arguments for call in message.tool_calls)))
    return f"{digest(message)}{shape}"


class Tally:
    """Counts for one memory: each message or composed text once, never with an exception.

    A counter that raises on a message, or returns no whole number of 0 or more, costs that message the
    estimate, and `on_failure` hears of it.

    Args:
        counter: the counter.
        on_failure: called with the message and the fault.
        remember: how many of the latest counts are kept, by digest.
    """

    def __init__(
        self,
        counter: TokenCounter,
        on_failure: Callable[[Message, BaseException], None],
        remember: int = 4096,
    ) -> None:
        self.fingerprint = counter.fingerprint
        self._counter = counter
        self._on_failure = on_failure
        self._remember = remember
        self._known: OrderedDict[str, int] = OrderedDict()
        self._made: OrderedDict[Hashable, Any] = OrderedDict()
        self._counting: dict[str, tuple[int, threading.Event]] = {}  # by whom, so that two threads count once
        self._lock = threading.Lock()
        self._estimate = approximate_counter()

    def __call__(self, message: Message) -> int:
        """Tokens of the message."""
        key, me = _exactly(message), threading.get_ident()
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
            other, done = self._counting.get(key, (me, None))
            if done is None:
                self._counting[key] = me, threading.Event()
        # a counter that asks for what it counts must not wait for itself, nor a forked process for a thread it lacks
        if done is not None and other != me and done.wait(_TURN):
            return self(message)
        try:
            tokens = self._count(message)
            with self._lock:
                self._known[key] = tokens
                if len(self._known) > self._remember:
                    self._known.popitem(last=False)
        finally:
            with self._lock:
                _, counted = self._counting.pop(key, (me, threading.Event()))
            counted.set()
        return tokens

    def text(self, text: str) -> int:
        """Tokens of a text shown as a user message of its own."""
        return self(Message("user", (Part("text", text),)))

    def once(self, make: Callable[..., Made], *arguments: Hashable) -> Made:
        """What a pure function makes of its arguments and this tally; remembered, since reads ask again and again."""
        key = (make, arguments)
        with self._lock:
            if key in self._made:
                self._made.move_to_end(key)
                return cast("Made", self._made[key])
        made = make(*arguments, self)
        with self._lock:
            self._made[key] = made
            if len(self._made) > _MADE:
                self._made.popitem(last=False)
        return made

    def forget(self) -> None:
        """Drop what was made of messages; counts stay, which hold no text."""
        with self._lock:
            self._made.clear()

    def _count(self, message: Message) -> int:
        try:
            tokens: object = self._counter.count(message)
            if not _is_count(tokens):
                raise TypeError(f"a counter must return a whole number of 0 or more, got {tokens!r:.80}")  # noqa: TRY301  # handled like the counter's own faults
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as fault:  # noqa: BLE001  # tiktoken's panic is no Exception
            self._on_failure(replace(message, mark=None), fault)
            return self._estimate.count(message)
        return operator.index(tokens)


def _is_count(tokens: object) -> TypeGuard[SupportsIndex]:
    """Whether something is a whole number of 0 or more; numpy's whole numbers are."""
    if type(tokens) is int:  # by far the most, and asking for a protocol is slow
        return tokens >= 0
    return isinstance(tokens, SupportsIndex) and not isinstance(tokens, bool) and operator.index(tokens) >= 0
