"""Decides how what is due in many sessions is done by workers that share them: in which sessions, and when to stop.

Any number of workers may do so at once: the lease of a session keeps two from paying for one summary, and that of
a worker that died ends by itself after `LEASE_SECONDS`. What is not done stays due.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from threading import Event as Flag
from typing import Final, Protocol

from slidemem.config import Options
from slidemem.schedule import everything
from slidemem.session import PROFILES, Session
from slidemem.settle import postpone, settle
from slidemem.stores.base import Loaded, Store

_NEAR: Final = 0.8  # of where consolidation starts: what is read and composed besides is not among a store's sums


async def candidates(store: Store, options: Options) -> tuple[str, ...]:
    """Ids of the sessions in which something may be due: all, where a store does not know better."""
    if isinstance(store, Loaded):
        found = await store.loaded(int(_NEAR * options.compact_at * options.allotment), options.window_turns)
    else:
        found = await store.sessions()
    return tuple(id_ for id_ in found if not id_.startswith(PROFILES))


async def work_off(
    sessions: Iterable[Session], limit: int | None = None, stop: Callable[[], bool] = lambda: False
) -> tuple[str, ...]:
    """Consolidate what is due in sessions; one that fails is told, and the others go on.

    Args:
        sessions: the candidates.
        limit: in how many of them at most; None for all.
        stop: asked before each whether to stop there.

    Returns:
        Ids of those in which something was consolidated.
    """
    done: list[str] = []
    for session in sessions:
        if stop() or (limit is not None and len(done) >= limit):
            break
        try:
            if await settle(session) is not None:
                done.append(session.id)
                await everything(session)
        except Exception as fault:  # noqa: BLE001  # what is due stays due
            postpone(session, fault)
    return tuple(done)


class Working(Protocol):
    """What a worker needs of a memory."""

    def consolidate_due(
        self, limit: int | None = None, *, stop: Callable[[], bool] = lambda: False
    ) -> tuple[str, ...]:
        """See `SlideMem.consolidate_due`."""
        ...


def loop(
    memory: Working, stop: Flag, every: float, limit: int | None, tell: Callable[[str], object], *, once: bool = False
) -> int:
    """Consolidate what is due again and again, until it is told to stop.

    Args:
        memory: whose store is worked on.
        stop: set from outside, by a signal say; what is at work is finished first.
        every: seconds from the end of one round to the next that finds nothing.
        limit: sessions of one round; None for all.
        tell: is given a line for each round in which something was done.
        once: whether to end after one round.

    Returns:
        How many times a session was worked on.
    """
    total = 0
    while not stop.is_set():
        begun = time.monotonic()
        done = memory.consolidate_due(limit, stop=stop.is_set)
        total += len(done)
        if done:
            tell(f"consolidated {len(done)} sessions in {time.monotonic() - begun:.1f} s")
        if once:
            break
        if not done:
            stop.wait(every)
    return total
