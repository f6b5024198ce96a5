"""Decides what is new in the messages of a run: what the memory handed out itself is not said again.

A chain answers with its answer; an agent with the whole list, beginning with what it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from slidemem import Message


def unsaid(messages: Sequence[Message], handed: Sequence[Message], same: Callable[[int, int], bool]) -> list[int]:
    """The places of a run's messages that were not handed to it.

    Args:
        messages: what was asked, then what the run returned.
        handed: what it was given in front of what was asked.
        same: whether the messages at two places are one and the same, whatever they say.
    """
    keys, given = [_key(message) for message in messages], [_key(message) for message in handed]
    asked = next((size for size in range(1, len(keys)) if _is_whole(keys, given, size, same)), 0)
    again = range(asked, 2 * asked + len(given)) if asked else ()
    ours = _names(handed)
    return [at for at in range(len(keys)) if at not in again and _name(messages[at]) not in ours]


def begins_with(messages: Sequence[Message], front: Sequence[Message]) -> bool:
    """Whether messages begin with others."""
    return [_key(message) for message in messages[: len(front)]] == [_key(message) for message in front]


def after(messages: Sequence[Message], given: Sequence[Message]) -> list[int]:
    """The places of a run's answer after what it was given, where that stands in front.

    Args:
        messages: what the run returned.
        given: what it was given, what was asked included.
    """
    keys = [_key(message) for message in given]
    whole = [_key(message) for message in messages[: len(keys)]] == keys
    first = len(keys) if whole else 0
    ours = _names(given)
    return [at for at in range(first, len(messages)) if _name(messages[at]) not in ours]


def _is_whole(
    keys: Sequence[Hashable], given: Sequence[Hashable], size: int, same: Callable[[int, int], bool]
) -> bool:
    """Whether the first `size` messages are what was asked, and the rest begins with all that the run was given."""
    again = size + len(given)
    if keys[size:again] != given or keys[:size] != keys[again : again + size]:
        return False
    return bool(given) or all(same(at, again + at) for at in range(size))


def _key(message: Message) -> Hashable:
    """What tells messages apart by their place in a list: the mark of those that we changed, else what they say."""
    return message.mark or message.digest


def _name(message: Message) -> Hashable:
    """What tells a message apart anywhere: our mark, or its id with what it says; None where it has neither."""
    return message.mark or (None if message.id is None else (message.id, message.digest))


def _names(messages: Sequence[Message]) -> set[Hashable]:
    return {_name(message) for message in messages} - {None}
