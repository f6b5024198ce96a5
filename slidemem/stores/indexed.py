"""Decides how a transcript without postings is searched: by an index that this process makes of it as it is read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

from slidemem.index import Index
from slidemem.messages import digest
from slidemem.post import post_of
from slidemem.recall import Document, Matches
from slidemem.state import Entry
from slidemem.stores.base import Transcript


@dataclass(slots=True)
class _Indexed:
    index: Index = field(default_factory=Index)
    messages: int = 0
    last: str = ""  # digest of the last message in it

    def goes_on(self, entries: Sequence[Entry]) -> bool:
        """Whether the transcript from the last message on goes on from what was indexed."""
        return not self.messages or (bool(entries) and digest(entries[0].message) == self.last)


class Indexes:
    """The indexes of the latest sessions; any thread may call it.

    Args:
        remember: how many sessions.
    """

    def __init__(self, remember: int = 64) -> None:
        self._remember = remember
        self._kept: OrderedDict[str, _Indexed] = OrderedDict()
        self._lock = Lock()

    async def matching(
        self, transcript: Transcript, session: str, terms: Sequence[str], before: int, most: int
    ) -> Matches:
        """See `Postings.matching`; what was added to the transcript since the last call is indexed first."""
        with self._lock:
            known = self._kept.get(session, _Indexed())
        first = max(0, known.messages - 1)
        entries = await transcript.read(session, first)
        if not known.goes_on(entries):
            known, first, entries = _Indexed(), 0, await transcript.read(session)
        with self._lock:
            for entry in entries[known.messages - first :]:
                known.index.add(known.messages, entry.post or post_of(entry.message, entry.at))
                known.messages, known.last = known.messages + 1, digest(entry.message)
            self._kept[session] = known
            self._kept.move_to_end(session)
            if len(self._kept) > self._remember:
                self._kept.popitem(last=False)
            return known.index.matching(terms, before, most)

    def documents(self, session: str, seqs: Collection[int]) -> Mapping[int, Document]:
        """See `Postings.documents`; of what `matching` has indexed."""
        with self._lock:
            return self._kept.get(session, _Indexed()).index.documents(seqs)

    def drop(self, session: str) -> None:
        """Forget a session."""
        with self._lock:
            self._kept.pop(session, None)
