"""One session, as its users hold it: each method runs a flow, driven for sync callers, awaited by its `a` twin."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from slidemem import export, flow, overview, rewind, settle
from slidemem.archive import Segment
from slidemem.checked import patience, text_or_none, whole_number
from slidemem.compose import Context
from slidemem.driver import drive
from slidemem.due import DueJob
from slidemem.entries import as_shown, read
from slidemem.errors import AsyncOnly
from slidemem.events import Stats
from slidemem.flow import Explanation
from slidemem.leaving import Plan
from slidemem.messages import Message, Role
from slidemem.openai_format import Given
from slidemem.overview import Overview
from slidemem.profile import Profile
from slidemem.rewind import Reconciled
from slidemem.schedule import Background
from slidemem.search import Filter, Hit, search
from slidemem.session import Session
from slidemem.settle import Consolidation
from slidemem.state import Branch, Pin

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.console import Console, ConsoleOptions, RenderableType


class ConversationMemory:
    """One session: append what is said, read the context to send.

    Messages are OpenAI-format dicts or `Message`; one, or a sequence of them.

    Attributes:
        session_id: names it in the memory's store.
        profile: what is known of its user, shared by the user's sessions.
    """

    def __init__(self, sync: Session, awaited: Session, background: Background) -> None:
        self.session_id = sync.id
        self._sync = sync
        self._async = awaited
        self._background = background
        self.profile = Profile(sync, awaited)

    def __repr__(self) -> str:
        return f"ConversationMemory({self.session_id!r:.80})"

    def _repr_html_(self) -> str:
        return self.to_html()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        from slidemem.show.terminal import session_parts  # noqa: PLC0415  # needs an extra

        yield from session_parts(self.session_id, self.overview, console)

    def append(self, messages: Given | Sequence[Given]) -> None:
        """Store messages at the end, all or none; consolidate when that is due.

        Raises:
            InvalidMessage: one cannot be read; nothing was stored.
            OversizeMessage: one is too large and `oversize="raise"`; nothing was stored.
            AsyncOnly: store or summariser have to be awaited.
        """
        self._check_sync("aappend")
        drive(flow.append(self._sync, messages), "aappend")

    async def aappend(self, messages: Given | Sequence[Given]) -> None:
        """Async twin of `append`."""
        await flow.append(self._async, messages)

    def context(
        self,
        pending: Given | Sequence[Given] | None = None,
        *,
        query: str | None = None,
        system: str | Given | Sequence[Given] | None = None,
        reserve: int = 0,
    ) -> Context:
        """What to send now: system, head, window, and quotes for the newest question. Writes nothing.

        Args:
            pending: messages about to be sent but not stored yet: counted, and the question for recall; not returned.
            query: the question for recall when it is another; None for the newest user message that is not
                answered, "" for none.
            system: text or messages shown first.
            reserve: tokens kept free in this call besides `reserve_tokens`.

        Raises:
            BudgetTooSmall: not even the newest message, clamped to its marks, fits.
            ConfigurationError: `reserve` is not a whole number of 0 or more.
            InvalidMessage: `pending` or `system` cannot be read.
        """
        return drive(
            flow.context(self._sync, pending, system, whole_number(reserve), text_or_none(query)), "acontext"
        )

    async def acontext(
        self,
        pending: Given | Sequence[Given] | None = None,
        *,
        query: str | None = None,
        system: str | Given | Sequence[Given] | None = None,
        reserve: int = 0,
    ) -> Context:
        """Async twin of `context`."""
        return await flow.context(self._async, pending, system, whole_number(reserve), text_or_none(query))

    def shown(self, messages: Given | Sequence[Given], *, after: Message | None = None) -> tuple[Message, ...]:
        """Messages as contexts will show them once they are stored: mended, clamped. For `pending`, to be sent so.

        Args:
            messages: nothing is stored of them.
            after: the message that they are sent after. With `alternate`, a first one of the same role is joined to
                it, and stands for both.

        Raises:
            InvalidMessage: one cannot be read.
            OversizeMessage: one is too large and `oversize="raise"`.
        """
        return as_shown(self._sync, messages, after)

    def report(self, input_tokens: int, sent: Given | Sequence[Given], *, beside: int = 0, model: str = "") -> None:
        """Tell what a provider counted of a prompt: with `correct_counts` the budget follows it.

        Args:
            input_tokens: its count of the whole prompt, cached tokens among them.
            sent: the messages of that prompt.
            beside: what we count of the rest of it (tools, say), in tokens.
            model: who counted; each model is learned apart.

        Raises:
            ConfigurationError: a number is no whole one of 0 or more.
            InvalidMessage: what was sent cannot be read.
        """
        flow.report(
            self._sync, whole_number(input_tokens, "input_tokens"), sent, whole_number(beside, "beside"), model
        )

    def consolidate(self, *, force: bool = False) -> Segment | None:
        """Move what is due out of the window into the archive; with `force`, cut down to `compact_to` now.

        Returns:
            The new segment, or None when there was nothing to move.

        Raises:
            AsyncOnly: store or summariser have to be awaited.
        """
        self._check_sync("aconsolidate")
        return drive(flow.consolidate(self._sync, force=force), "aconsolidate")

    async def aconsolidate(self, *, force: bool = False) -> Segment | None:
        """Async twin of `consolidate`."""
        return await flow.consolidate(self._async, force=force)

    def due(self) -> DueJob | None:
        """What would be consolidated, or None; writes nothing.

        For schedulers of your own: `job.run()` asks the summariser, `commit` takes what it made.
        """
        job = drive(settle.due(self._sync), "adue")
        return None if job is None else DueJob(job, self._sync, self._async)

    async def adue(self) -> DueJob | None:
        """Async twin of `due`."""
        job = await settle.due(self._async)
        return None if job is None else DueJob(job, self._sync, self._async)

    def commit(self, made: Consolidation | None) -> bool:
        """Move boundary and archive by what a job's run made; True when that is done.

        False when the session has moved on since the job was planned (or the run made nothing): its work is
        dropped, and nothing has changed.
        """
        return made is not None and drive(flow.commit(self._sync, made), "acommit")

    async def acommit(self, made: Consolidation | None) -> bool:
        """Async twin of `commit`."""
        return made is not None and await flow.commit(self._async, made)

    def flush(self, seconds: float | None = None) -> bool:
        """See to what is due and wait until it is done (`mode="background"`; else there is nothing to wait for).

        Args:
            seconds: how long to wait at most; None for `flush_seconds`.

        Returns:
            Whether nothing is due any more; what was not done in time goes on, what failed stays due.

        Raises:
            AsyncOnly: the summariser has to be awaited, or a task of the event loop that this thread runs is at it.
        """
        options = self._sync.options
        if options.mode != "background":
            return True
        if not self._sync.async_only:
            drive(self._sync.when_due(self._sync), "aflush")
        if not self._background.flush(self.session_id, patience(options, seconds)):
            return False
        left = self.due()
        if left and self._sync.async_only:
            raise AsyncOnly("aflush")
        return not left

    async def aflush(self, seconds: float | None = None) -> bool:
        """Async twin of `flush`."""
        options = self._async.options
        if options.mode != "background":
            return True
        await self._async.when_due(self._async)
        waited = patience(options, seconds)
        return await self._background.aflush(self.session_id, waited) and not await self.adue()

    def plan(self) -> Plan:
        """Where the session stands in its budget, and what would be consolidated; writes nothing."""
        return drive(flow.plan(self._sync), "aplan")

    async def aplan(self) -> Plan:
        """Async twin of `plan`."""
        return await flow.plan(self._async)

    def rewind(self, to: int | str) -> tuple[Message, ...]:
        """Take the newest messages out of the conversation; they are kept as a branch, and the archive before stays.

        Args:
            to: how many messages stay; less than 0, how many leave; or the host's id of the first that leaves.

        Returns:
            The messages that left.

        Raises:
            UnknownReference: there is no such message.
        """
        return drive(rewind.rewind(self._sync, to), "arewind")

    async def arewind(self, to: int | str) -> tuple[Message, ...]:
        """Async twin of `rewind`."""
        return await rewind.rewind(self._async, to)

    def reconcile(self, messages: Given | Sequence[Given], *, replace: bool = False) -> Reconciled:
        """Bring the transcript in line with a list that the host owns, whole or the end of it.

        A list that ends as the transcript does is a trim, or a context handed back: nothing changes. New messages
        after what both share are appended. A difference rewinds to where it begins. Messages that this memory
        made are dropped, and those that it changed stand for what they were.

        Args:
            messages: the host's list.
            replace: go on with the list though it shares nothing with the transcript. System messages at its head
                then take the place of those that are stored, and an empty list means an empty conversation.

        Raises:
            TranscriptMismatch: it shares nothing with the transcript.
            InvalidMessage: one of the messages cannot be read; nothing has changed.
            OversizeMessage: a new one is too large and `oversize="raise"`; nothing has changed.
            AsyncOnly: store or summariser have to be awaited.
        """
        if messages:
            self._check_sync("areconcile")
        return drive(rewind.reconcile(self._sync, messages, replace=replace), "areconcile")

    async def areconcile(self, messages: Given | Sequence[Given], *, replace: bool = False) -> Reconciled:
        """Async twin of `reconcile`."""
        return await rewind.reconcile(self._async, messages, replace=replace)

    def branches(self) -> tuple[Branch, ...]:
        """What rewinds took out of the conversation, oldest first."""
        return drive(flow.branches(self._sync), "abranches")

    async def abranches(self) -> tuple[Branch, ...]:
        """Async twin of `branches`."""
        return await flow.branches(self._async)

    def explain(self, segment: Segment | str) -> Explanation:
        """Where a segment of the archive comes from, down to the messages.

        Args:
            segment: a segment, or its id.

        Raises:
            UnknownReference: the archive has no such segment.
        """
        return drive(flow.explain(self._sync, segment), "aexplain")

    async def aexplain(self, segment: Segment | str) -> Explanation:
        """Async twin of `explain`."""
        return await flow.explain(self._async, segment)

    def count(self, messages: Given | Sequence[Given]) -> int:
        """Tokens of messages, by this memory's counter."""
        return sum(entry.whole_tokens for entry in read(self._sync, messages))

    def pin(self, text: str) -> Pin:
        """Show a fact always, until it is unpinned.

        Raises:
            PinBudgetError: it does not fit into `archive_share` beside what is pinned.
            InvalidMessage: it is blank or no text.
        """
        return drive(flow.pin(self._sync, text), "apin")

    async def apin(self, text: str) -> Pin:
        """Async twin of `pin`."""
        return await flow.pin(self._async, text)

    def unpin(self, pin: Pin | str) -> bool:
        """Show a fact no longer, named by its pin, id or text; False when it was not pinned."""
        return drive(flow.unpin(self._sync, pin), "aunpin")

    async def aunpin(self, pin: Pin | str) -> bool:
        """Async twin of `unpin`."""
        return await flow.unpin(self._async, pin)

    def pins(self) -> tuple[Pin, ...]:
        """What is pinned, oldest first."""
        return drive(flow.pins(self._sync), "apins")

    async def apins(self) -> tuple[Pin, ...]:
        """Async twin of `pins`."""
        return await flow.pins(self._async)

    def transcript(self) -> tuple[Message, ...]:
        """Every message ever appended, as it came, in order."""
        return drive(flow.transcript(self._sync), "atranscript")

    async def atranscript(self) -> tuple[Message, ...]:
        """Async twin of `transcript`."""
        return await flow.transcript(self._async)

    def search(
        self,
        query: str,
        k: int = 5,
        *,
        roles: Collection[Role] | Role | None = None,
        since: float | None = None,
        until: float | None = None,
        tool: str | None = None,
    ) -> tuple[Hit, ...]:
        """What was ever said of something: messages and lines of the archive, best first.

        Args:
            query: any text; the more words of it a message and those around it say, the better.
            k: how many hits at most.
            roles: of messages; None for all, and for lines of the archive.
            since: what was said at this time or later, in seconds since 1970.
            until: what was said before this time.
            tool: name of the tool that asks for a model: the turn that is not answered yet, and what the tool was
                asked and answered before, are no hits then.

        Raises:
            ConfigurationError: an argument is wrong.
        """
        return drive(search(self._sync, query, k, Filter.of(roles, since, until, tool)), "asearch")

    async def asearch(
        self,
        query: str,
        k: int = 5,
        *,
        roles: Collection[Role] | Role | None = None,
        since: float | None = None,
        until: float | None = None,
        tool: str | None = None,
    ) -> tuple[Hit, ...]:
        """Async twin of `search`."""
        return await search(self._async, query, k, Filter.of(roles, since, until, tool))

    def stats(self) -> Stats:
        """The session in figures."""
        return drive(flow.stats(self._sync), "astats")

    async def astats(self) -> Stats:
        """Async twin of `stats`."""
        return await flow.stats(self._async)

    def archive(self) -> tuple[Segment, ...]:
        """The archive's segments, oldest first."""
        return drive(flow.archive(self._sync), "aarchive")

    async def aarchive(self) -> tuple[Segment, ...]:
        """Async twin of `archive`."""
        return await flow.archive(self._async)

    def overview(self) -> Overview:
        """A look at the session, for a notebook's cell or a terminal: nothing is written, told or counted by it."""
        return drive(overview.overview(self._sync), "aoverview")

    async def aoverview(self) -> Overview:
        """Async twin of `overview`."""
        return await overview.overview(self._async)

    def to_html(self) -> str:
        """The overview as a piece of a page, as a notebook shows it; a sentence where it cannot be had."""
        from slidemem.show.session_html import session_html  # noqa: PLC0415  # only who looks needs it

        return session_html(self.session_id, self.overview)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the newest contexts that were read in this process: tokens by zone, the budget, consolidations.

        Args:
            axes: matplotlib's, where to draw; None draws a figure of its own.

        Returns:
            The axes, to be changed further.

        Raises:
            MissingExtra: matplotlib is not installed.
        """
        from slidemem.show.plot import zones  # noqa: PLC0415  # needs an extra

        return zones(tuple(self._sync.figures.readings), axes)

    def export(self) -> dict[str, Any]:
        """The whole session as one JSON object, to be read by eye, kept, and restored by `SlideMem.restore`."""
        return drive(export.export(self._sync), "aexport")

    async def aexport(self) -> dict[str, Any]:
        """Async twin of `export`."""
        return await export.export(self._async)

    def clear(self) -> None:
        """Delete the session for good: transcript, archive, pins, metadata.

        Metadata that this object was given are written again with its next append.
        """
        drive(flow.clear(self._sync), "aclear")

    async def aclear(self) -> None:
        """Async twin of `clear`."""
        await flow.clear(self._async)

    def _check_sync(self, twin: str) -> None:
        """Refuse before anything is stored what could not be finished."""
        if self._sync.async_only:
            raise AsyncOnly(twin)
