"""Decides what a prompt costs at the server, and how much of it an earlier one began with.

Kept prefixes, as their providers publish them: OpenAI keeps prefixes of 1,024 tokens or more by itself, in steps of
128 (https://platform.openai.com/docs/guides/prompt-caching); Gemini by itself from 1,024 tokens on
(https://ai.google.dev/gemini-api/docs/caching); Anthropic and Bedrock what ends at a mark (`cache_control`,
`cachePoint`) and takes 1,024 tokens or more, found again up to 20 blocks before a mark of a later prompt
(https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching,
https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from zlib import crc32

import tiktoken

from strict_provider.wire import Asked, Block, Spoken, Usage

_LEAST = 1024
_STEP = 128
_LOOKBACK = 20
_KEPT = 16  # prompts


@lru_cache(maxsize=65_536)
def _encoded(text: str) -> tuple[int, ...]:
    return tuple(tiktoken.get_encoding("o200k_base").encode_ordinary(text))


@dataclass(frozen=True)
class Prompt:
    """A prompt as the server keeps it.

    Attributes:
        tokens: of the tokenizer, flat ones as negative numbers.
        ends: where each block ends.
        marks: those ends that are marked.
    """

    tokens: tuple[int, ...]
    ends: tuple[int, ...]
    marks: tuple[int, ...]

    @classmethod
    def of(cls, blocks: Sequence[Block], factor: float) -> Prompt:
        """The prompt of some blocks, each token standing for `factor` of the tokenizer's."""
        pieces = [
            (-crc32(block.role.encode()),) * block.flat + _stretched(_encoded(block.text), factor) for block in blocks
        ]
        ends = tuple(accumulate(map(len, pieces)))
        marks = tuple(end for end, block in zip(ends, blocks, strict=True) if block.marked)
        return cls(tuple(token for piece in pieces for token in piece), ends, marks)

    def shared(self, other: Prompt) -> int:
        """Tokens that both begin with."""
        least = min(len(self.tokens), len(other.tokens))
        if self.tokens[:least] == other.tokens[:least]:
            return least
        same, differs = 0, least
        while differs - same > 1:
            middle = (same + differs) // 2
            same, differs = (middle, differs) if self.tokens[:middle] == other.tokens[:middle] else (same, middle)
        return same


def _stretched(tokens: tuple[int, ...], factor: float) -> tuple[int, ...]:
    """Tokens of a tokenizer that makes more of the same text."""
    more = round(len(tokens) * factor) - len(tokens)
    return tokens + (-2,) * more


class Ledger:
    """The prompts that a server has seen, and their costs.

    Args:
        factor: how many tokens this model's tokenizer makes of one of `o200k_base`'s.
        exact: count shared prefixes to the token, whatever a provider's steps and marks are.
    """

    def __init__(self, factor: float = 1.0, *, exact: bool = False) -> None:
        self.factor = factor
        self._exact = exact
        self._seen: deque[tuple[str, Prompt]] = deque(maxlen=_KEPT)
        self._lock = threading.Lock()

    def prompt(self, asked: Asked) -> Prompt:
        """The prompt of a request."""
        return Prompt.of(asked.blocks, self.factor)

    def enter(self, dialect: str, prompt: Prompt, spoken: Spoken, *, automatic: bool) -> Usage:
        """What a prompt and its answer cost, kept for the next one."""
        with self._lock:
            earlier = [kept for name, kept in self._seen if name == dialect]
            self._seen.append((dialect, prompt))
        cached = max((self._cached(prompt, kept, automatic=automatic) for kept in earlier), default=0)
        written = max((mark for mark in prompt.marks if mark >= _LEAST), default=0)
        said = spoken.text + "".join(call.name + str(call.arguments) for call in spoken.calls)
        return Usage(
            prompt=len(prompt.tokens),
            cached=cached,
            written=max(0, written - cached) if not automatic else 0,
            answer=len(_encoded(said)) + 1,
            thought=len(_encoded(spoken.thought)),
        )

    def _cached(self, prompt: Prompt, kept: Prompt, *, automatic: bool) -> int:
        shared = prompt.shared(kept)
        if self._exact:
            return shared
        if automatic:
            return shared // _STEP * _STEP if shared >= _LEAST else 0
        near = {end for mark in prompt.marks for end in prompt.ends[: prompt.ends.index(mark) + 1][-_LOOKBACK:]}
        return max((mark for mark in kept.marks if _LEAST <= mark <= shared and mark in near), default=0)
