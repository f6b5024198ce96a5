"""Decides what a message costs: the tokens that the tokenizer gives for its text, and a flat price for media.

As ChatMemoryBuffer counts, nothing is added for a message, so that limits keep their meaning. Other than there,
calls with their arguments, thinking, citations and media count too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sized
from functools import partial
from typing import Any, Final, cast

from llama_index.core import utils

from slidemem import Message, Part, approximate_counter

Tokenizer = Callable[[str], Any]

_NOTHING: Final = Message("user")


def default_tokenizer() -> Tokenizer:
    """LlamaIndex's own tokenizer, the one that `set_global_tokenizer` set if that was called."""
    return cast("Tokenizer", cast("Any", utils).get_tokenizer())


class TokenizerCounter:
    """A `TokenCounter` of a LlamaIndex tokenizer.

    Args:
        tokenizer_fn: a text's tokens as a list, or how many they are.
        media_tokens: flat price in tokens by kind (`image`, `audio`, `video`, `file`); what is left out keeps
            slidemem's price.

    Raises:
        ConfigurationError: a price is of no such kind, or no whole number of 0 or more.
    """

    def __init__(self, tokenizer_fn: Tokenizer, media_tokens: Mapping[str, int] | None = None) -> None:
        self._tokenizer_fn = tokenizer_fn
        self._flat = approximate_counter(media_tokens)
        self.fingerprint = f"tokenizer:{_named(tokenizer_fn)}:{self._flat.fingerprint}"

    def count(self, message: Message) -> int:
        """Tokens of one message; the tokenizer is called once."""
        said = [part.text or part.source for part in message.parts if _is_said(part)]
        said.extend(f"{call.name} {call.arguments}" for call in message.tool_calls)
        flat = tuple(part for part in message.parts if not _is_said(part))
        priced = self._flat.count(Message("user", flat)) - self._flat.count(_NOTHING) if flat else 0
        return priced + (self.text("\n".join(said)) if said else 0)

    def text(self, text: str) -> int:
        """Tokens of a text."""
        counted = self._tokenizer_fn(text)
        return len(counted) if isinstance(counted, Sized) else int(counted)


def _is_said(part: Part) -> bool:
    return part.kind in {"text", "reasoning"}


def _named(function: Tokenizer) -> str:
    """A name that tells tokenizers apart: counts stored under another name are counted again."""
    inner: Any = function.func if isinstance(function, partial) else function
    owner = getattr(inner, "__self__", None)
    name = getattr(inner, "__qualname__", type(inner).__qualname__)
    parts = (getattr(inner, "__module__", "") or type(owner).__module__, name, getattr(owner, "name", ""))
    code = getattr(inner, "__code__", None)
    if code is None:
        return ".".join(map(str, parts))
    plain = [value for value in code.co_consts if isinstance(value, (str, int, float))]
    digest = hashlib.blake2b(repr((code.co_names, plain)).encode("utf-8", "replace") + code.co_code, digest_size=6)
    return ".".join((*map(str, parts), digest.hexdigest()))
