"""The invariants over each scheduler, with messages taken back now and then, in this process and in SQLite."""

from __future__ import annotations

import os

import pytest
from conversations import script
from invariants import Run

from slidemem import SQLiteStore

CONVERSATIONS = int(os.environ.get("SLIDEMEM_CONVERSATIONS", "320"))


@pytest.mark.parametrize("mode", ["inline", "background", "manual"])
@pytest.mark.parametrize("first", range(0, CONVERSATIONS // 4, 20))
def test_every_invariant_holds_over_each_scheduler(first: int, mode: str) -> None:
    """The same hold whoever consolidates, while messages are taken back now and then, in SQLite too."""
    taken_back = 0
    for seed in range(first, first + 20):
        with SQLiteStore() as store:
            run = Run(script(seed), mode=mode, store=store if seed % 2 else None, rewinds=True).play()
        taken_back += sum(event.kind == "rewound" for event in run.events)

    assert taken_back > 5
