"""Decides how a message that a memory hands out behaves: it has been said, so nothing in it is a template.

Context engines put the history into a prompt template and estimate its size. Of a plain ChatMessage the text
`{context_str}` would be replaced and the image at an address fetched. The mark of what slidemem changed is a
private attribute and not an entry of `additional_kwargs`, since many integrations send all of those to the
provider (`message_dict.update(message.additional_kwargs)`), and providers refuse a field that they do not know.
"""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import PrivateAttr

from llamaindex_slidemem.counter import TokenizerCounter, default_tokenizer
from llamaindex_slidemem.neutral import calls_of, parts_of
from slidemem import Mark, Message


class RememberedMessage(ChatMessage):
    """A ChatMessage that has been said: never a template, never fetched; equal to the ChatMessage it stands for."""

    _mark: Mark | None = PrivateAttr(default=None)

    @property
    def mark(self) -> Mark | None:
        """What slidemem changed of the message; None when nothing."""
        return self._mark

    def marked(self, mark: Mark | None) -> RememberedMessage:
        """The message itself, with a mark."""
        self._mark = mark
        return self

    def get_template_vars(self) -> list[str]:
        """None: text in braces was said as it stands."""
        return []

    def format_vars(self, **kwargs: Any) -> RememberedMessage:  # noqa: ARG002  # the base's signature
        """A copy; nothing is replaced."""
        return self.model_copy(deep=True)

    def estimate_tokens(self, tokenizer: Any | None = None) -> int:
        """Tokens of the message; media at a flat price, without fetching them, and without an event loop."""
        said = Message("user", parts_of(self), calls_of(self))
        return TokenizerCounter(tokenizer or default_tokenizer()).count(said)

    async def aestimate_tokens(self, tokenizer: Any | None = None) -> int:
        """Async twin of `estimate_tokens`."""
        return self.estimate_tokens(tokenizer)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ChatMessage):
            return NotImplemented
        mine, theirs = self.__dict__, other.__dict__
        return all(mine[name] == theirs[name] for name in ("role", "blocks", "additional_kwargs"))

    __hash__ = None  # type: ignore[assignment]  # as ChatMessage: it can be changed
