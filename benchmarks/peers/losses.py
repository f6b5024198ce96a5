"""Decides which messages a failing summariser loses for good: in no store, and read by no summary that is left."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from peers.conversations import Talk, asks, tagged
from peers.counting import TAGGED, Counter
from peers.memories import Kind
from peers.protocol import Memory, Setting
from peers.writers import Script, quoting
from slidemem import Embedder

FAILS: Final = 3  # every so many calls of the summariser
NUMBERED: Final = re.compile(r"Summary (\d+):")
BEGUN: Final = re.compile(r"\[(\d{6}): ")


def lost(kind: Kind, talk: Talk, count: Counter, model: Embedder | None = None) -> tuple[int, int, int]:
    """Play a conversation with a summariser that fails, under a host that shows its user an error and goes on.

    Returns:
        Messages that are lost, the summariser's failures, and turns that ended in an error.
    """
    script = Script(quoting(count), count, fails=FAILS, marks=True)
    memory = kind.make(Setting(count, script, model=model))
    marked = replace(talk, messages=tagged(talk.messages))
    errors = _played(memory, marked)
    there = kept(memory.held(), script)
    memory.close()
    return len(set(range(len(marked.messages))) - there), script.calls // FAILS, errors


def _played(memory: Memory, talk: Talk) -> int:
    """Play it; returns how many turns ended in an error."""
    errors = 0
    for at, called in asks(talk.messages):
        errors += not _went_well(memory, talk, at, called=called)
    return errors


def _went_well(memory: Memory, talk: Talk, at: int, *, called: bool) -> bool:
    try:
        memory.add(talk.messages[at])
        if called:
            memory.prompt()
    except Exception:  # noqa: BLE001  # each memory's own
        return False
    return True


def kept(held: Sequence[str], script: Script) -> set[int]:
    """The messages that are whole in a text, or were read for a summary that is in a text, however far back."""
    texts = "\n".join(held)
    there = {int(number) for number in TAGGED.findall(texts)}
    waiting, known = {int(number) for number in NUMBERED.findall(texts)}, set[int]()
    while waiting:
        number = waiting.pop()
        known.add(number)
        source = script.sources.get(number, "")
        there |= {int(one) for one in BEGUN.findall(source)}
        waiting |= {int(one) for one in NUMBERED.findall(source)} - known
    return there
