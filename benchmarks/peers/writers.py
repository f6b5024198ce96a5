"""Decides what a summariser writes: scripts that are the same for every memory, and count what they read.

No language model is asked: a figure would be that model's. A script gets the whole prompt that a memory would send to
its model, and its answer goes back the way a model's would.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any, Final

from retention import EMPTY, Talk, note, plain

from peers.counting import Counter

SENTENCE: Final = re.compile(r"[^.!?\n。！？]+(?:[.!?。！？]+(?=\s|$|[^\x00-\x7f])|\n|$)")
SHORT: Final = 80  # characters of a sentence in a summary
LENGTH: Final = 200  # tokens of a summary, unless its memory asks for less

Write = Callable[[str, int], str]


class Script:
    """A summariser: counts its calls, and fails or takes its time where it is told to.

    Args:
        write: what it answers, from what it read and the tokens that it may take.
        count: counts what it reads.
        fails: every so many calls it raises; 0 for never.
        pause: seconds that it takes.
        marks: whether each answer begins with its number, by which what became of it is found again.
        length: tokens that it may take where its memory says nothing of that.

    Attributes:
        calls: how often it was asked.
        read: tokens that it was given.
        sources: what it had read for each of its answers, by their numbers.
    """

    def __init__(
        self,
        write: Write,
        count: Counter,
        *,
        fails: int = 0,
        pause: float = 0.0,
        marks: bool = False,
        length: int = LENGTH,
    ) -> None:
        self._write = write
        self._count = count
        self._fails = fails
        self._pause = pause
        self._length = length
        self._marks = marks
        self.calls = 0
        self.read = 0
        self.sources: dict[int, str] = {}

    def __call__(self, prompt: str, said: str | None = None, limit: int | None = None) -> str:
        """A summary.

        Args:
            prompt: the whole of what a model would be given.
            said: what of it is conversation and earlier summary, where the memory says so; None for all of it.
            limit: tokens that it may take; None for its own length.

        Raises:
            ConnectionError: when it is its turn to fail.
        """
        self.calls += 1
        self.read += self._count.tokens(prompt)
        time.sleep(self._pause)
        if self._fails and self.calls % self._fails == 0:
            raise ConnectionError("the summariser could not be reached")
        source = prompt if said is None else said
        self.sources[self.calls] = source
        mark = f"Summary {self.calls}: " if self._marks else ""
        answer = mark + self._write(source, (limit or self._length) - (8 if mark else 0))
        return f"<facts>{_facts(answer)}</facts>" if "<existing_facts>" in prompt else answer


def _facts(answer: str) -> str:
    """An answer in the form that LlamaIndex's fact block asks for."""
    return "".join(f"<fact>{line.removeprefix('- ')}</fact>" for line in answer.splitlines() if line.strip())


def quoting(count: Counter) -> Write:
    """Quotes the newest sentences that hold a number, or the newest of all, within its limit."""

    def write(said: str, limit: int) -> str:
        sentences = [one.strip(" \n-") for one in SENTENCE.findall(said)]
        sentences = list(dict.fromkeys(one[:SHORT] for one in sentences if len(one) > 3))
        telling = [one for one in sentences if any(letter.isdigit() for letter in one)] or sentences
        kept: list[str] = []
        for one in reversed(telling):
            if count.tokens("\n".join([one, *kept])) > limit:
                break
            kept.insert(0, one)
        return "\n".join(kept) or EMPTY

    return write


def useless(said: str, limit: int) -> str:
    """A summary of anything."""
    del said, limit
    return EMPTY


def honest(talk: Talk, count: Counter) -> Write:
    """Notes each fact of a conversation of the corpus that it reads, as briefly as it can be said."""

    def write(said: str, limit: int) -> str:
        text, kept = plain(said), list[str]()
        notes = [note(fact) for fact in talk.facts if all(plain(need) in text for need in fact.needs)]
        for one in notes:
            if count.tokens("\n".join([*kept, one])) <= limit:
                kept.append(one)
        return "\n".join(kept) or EMPTY

    return write


class Consolidating:
    """A script as a consolidator of ours."""

    def __init__(self, script: Callable[[str, str, int], str]) -> None:
        self._script = script

    def summarize(self, request: Any) -> str:
        """The script's answer."""
        said = "\n".join(text for _, text in request.spoken())
        return self._script(request.prompt, said, request.asked_tokens)

    async def asummarize(self, request: Any) -> str:
        """The same; nothing is awaited."""
        return self.summarize(request)
