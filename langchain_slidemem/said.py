"""Decides which messages a chain's input or output stands for, as LangChain's users know it.

Text is what the user said, or what the model answered; a dict has the messages under its key, under its only key,
or under `input` or `output`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langchain_slidemem.codec import LangChainCodec
from slidemem import ConfigurationError, InvalidMessage, Message

Said = str | BaseMessage | Sequence[BaseMessage]
Speaker = type[HumanMessage] | type[AIMessage] | type[SystemMessage]

CODEC: Final = LangChainCodec()


def asked(value: object, key: str | None) -> list[BaseMessage]:
    """The messages of a chain's input.

    Raises:
        ConfigurationError: it has none.
    """
    return _messages(_picked(value, key, "input"), HumanMessage, f"the input{_under(key)}", "input_messages_key")


def answered(value: object, key: str | None) -> list[BaseMessage]:
    """The messages of a chain's output.

    Raises:
        ConfigurationError: it has none.
    """
    return _messages(_picked(value, key, "output"), AIMessage, f"the output{_under(key)}", "output_messages_key")


def encoded(said: Said | None, speaker: Speaker = HumanMessage) -> list[Message] | None:
    """Messages of the core's; text is spoken by the given class, and None stays None."""
    if said is None:
        return None
    return neutral(CODEC, _messages(said, speaker, "what was given", ""))


def neutral(codec: LangChainCodec, messages: Sequence[BaseMessage]) -> list[Message]:
    """Messages as the core's, all or none.

    Raises:
        InvalidMessage: one of them cannot be read; it names its place.
    """
    read: list[Message] = []
    for index, message in enumerate(messages):
        try:
            read.append(codec.encode(message))
        except InvalidMessage as invalid:  # noqa: PERF203  # none, mostly
            raise InvalidMessage(invalid.reason, index) from None
    return read


def decoded(messages: Sequence[Message]) -> list[BaseMessage]:
    """New LangChain messages."""
    return [CODEC.decode(message) for message in messages]


def _picked(value: object, key: str | None, usual: str) -> object:
    if not isinstance(value, Mapping):
        return value
    found = cast("Mapping[str, Any]", value)
    name = key or (next(iter(found)) if len(found) == 1 else usual)
    if name not in found:
        raise ConfigurationError(
            f"the {usual} has no {name!r} (its keys: {', '.join(map(str, found))}): pass {usual}_messages_key"
        )
    return found[name]


def _messages(value: object, speaker: Speaker, where: str, option: str) -> list[BaseMessage]:
    if isinstance(value, str):
        return [speaker(content=value)]
    if isinstance(value, BaseMessage):
        return [value]
    if isinstance(value, (list, tuple)):
        listed = cast("Sequence[object]", value)
        if all(isinstance(one, BaseMessage) for one in listed):
            return list(cast("Sequence[BaseMessage]", listed))
    advice = f": name its key with {option}" if option else ""
    raise ConfigurationError(f"{where} must be text, a message or a list of messages, got {value!r:.80}{advice}")


def _under(key: str | None) -> str:
    return f" under {key!r}" if key else ""
