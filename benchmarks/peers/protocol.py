"""Decides what a memory is to this benchmark: what every one of them is asked to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from speech import Said

from peers.counting import Counter
from peers.writers import Script
from slidemem import Embedder

BUDGET: Final = 3_000


@dataclass(frozen=True)
class Setting:
    """What a memory is made with.

    Attributes:
        count: the counter.
        script: the summariser.
        budget: tokens.
        model: embeds, for memories that have a use for it; None where no model is installed.
    """

    count: Counter
    script: Script
    budget: int = BUDGET
    model: Embedder | None = None


class Memory:
    """One conversation in one memory."""

    def add(self, said: Said) -> None:
        """Take a message."""
        raise NotImplementedError

    def fill(self, messages: Sequence[Said]) -> None:
        """Take many messages, in the way that is quickest: here with a prompt at each turn, as a conversation has."""
        for one in messages:
            self.add(one)
            if one["role"] == "user":
                self.prompt()

    def prompt(self) -> list[Said]:
        """What would be sent now, in OpenAI format."""
        raise NotImplementedError

    def ask(self, question: str) -> list[Said]:
        """What would be sent if this were asked now; here the prompt does not depend on it. Nothing is kept."""
        return [*self.prompt(), {"role": "user", "content": question}]

    def held(self) -> list[str]:
        """Every text that is still there: messages in its store, whole or archived, and its summary."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of what it holds open; here nothing."""
