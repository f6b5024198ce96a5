"""Decides what a message costs, for every memory alike: the tokens of its text, and nothing for being a message.

LlamaIndex's memories can count only text, so an overhead for each message would put them over a budget that they
cannot see. LangChain's and ours get the same counter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from speech import Said

TAGGED: Final = re.compile(r"\[(\d{6}): [^\[]*? :\1\]")
"""A whole message of a tagged conversation, see `conversations.tagged`."""


def text_of(said: Said) -> str:
    """What a message costs tokens for: its content, and name and arguments of each call."""
    calls = "".join(
        f" {call['function']['name']} {call['function']['arguments']}" for call in said.get("tool_calls") or ()
    )
    return f"{words_of(said)}{calls}"


def words_of(said: Said) -> str:
    """A message's content as one text."""
    content = said.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content if part.get("type") == "text")


class Counter:
    """Counts texts; what is counted again is remembered, by its length and hash.

    Args:
        encode: a tokenizer.
        keep: whether to remember; not for times, in which what is counted twice is paid twice.

    Attributes:
        times: how often a whole tagged message went through it, alone or in a longer text; the messages are told
            apart by their tags.
        alone: how often one did so by itself.
        listening: whether to look for tags.
    """

    def __init__(self, encode: Callable[[str], Sequence[int]], *, keep: bool = True) -> None:
        self._encode = encode
        self._keep = keep
        self._known: dict[tuple[int, int], int] = {}
        self.times = 0
        self.alone = 0
        self.listening = False

    def __call__(self, text: str) -> int:
        """Tokens of a text."""
        if self.listening:
            self.times += len(TAGGED.findall(text))
            self.alone += TAGGED.fullmatch(text) is not None
        return self.tokens(text)

    def tokens(self, text: str) -> int:
        """The same for the benchmark's own use: not listened to."""
        key = (len(text), hash(text))
        known = self._known.get(key)
        if known is None:
            known = len(self._encode(text))
            if self._keep:
                self._known[key] = known
        return known

    def said(self, said: Said) -> int:
        """Tokens of a message, for the benchmark's own use."""
        return self.tokens(text_of(said))
