"""Decides what a scheduler of its own gets to hold: a span that is due, to be summarised where and when it likes."""

from __future__ import annotations

from dataclasses import replace

from slidemem import settle
from slidemem.driver import drive
from slidemem.errors import AsyncOnly
from slidemem.leaving import Job
from slidemem.messages import Message
from slidemem.session import Session
from slidemem.settle import Consolidation


class DueJob:
    """A span that is due to leave the window.

    Attributes:
        start: `seq` of its first message.
        end: `seq` after its last message.
        tokens: of it, as it is shown.
        target_tokens: what its segment may take.
        messages: the span as a summariser is shown it.
    """

    def __init__(self, job: Job, sync: Session, awaited: Session) -> None:
        self.start: int = job.start
        self.end: int = job.end
        self.tokens: int = job.tokens
        self.target_tokens: int = job.target_tokens
        self.messages: tuple[Message, ...] = tuple(replace(message, mark=None) for message in job.messages)
        self._job = job
        self._sync = sync
        self._awaited = awaited

    def __repr__(self) -> str:
        return f"DueJob(messages {self.start} to {self.end - 1}, {self.tokens} tokens into {self.target_tokens})"

    def run(self) -> Consolidation | None:
        """Ask the summariser, which may take a while; holds no lock, and writes nothing but a lease.

        Returns:
            What `commit` takes; None when another worker is at it, or the session has moved on.

        Raises:
            AsyncOnly: store or summariser have to be awaited.
        """
        if self._sync.async_only:
            raise AsyncOnly("arun")
        return drive(settle.run(self._sync, self._job), "arun")

    async def arun(self) -> Consolidation | None:
        """Async twin of `run`."""
        return await settle.run(self._awaited, self._job)
