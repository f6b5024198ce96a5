"""Two operations on one session, stopped at every store call, in every order, and killed at every call.

All orders are played, on threads that block and on tasks that wait: none is hand-picked, and none is left to luck.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import re
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from itertools import combinations_with_replacement, pairwise, permutations, product
from typing import Any, Final

import pytest
from invariants import OWN

from slidemem import Context, ConversationMemory, Segment, SlideMem, SlidememError
from slidemem.driver import drive
from slidemem.messages import digest
from slidemem.session import Session
from slidemem.settle import LEASE_SECONDS
from slidemem.state import Change, Entry, Lease, Record, Rewrite, Snapshot, Totals, Whole
from slidemem.stores.base import Store
from slidemem.stores.memory import MemoryStore
from slidemem.testing import Choose, GatedStore, TaskGate, ThreadGate, every_order, violations

BUDGET, ALLOTMENT = 165, 99  # words; of a context, and of its window once something is archived
OPERATIONS: Final = ("append", "context", "consolidate", "reconcile", "rewind", "clear", "pin")
READS: Final = {"snapshot", "read", "keys", "held", "segment"}
CODE: Final = re.compile(r"PNR-\w+")

# ------------------------------------------------------------------ a small world


def say(role: str, code: str, text: str = "", words: int = 16, **more: Any) -> dict[str, Any]:
    """A message of so many words; no other one holds its code."""
    said = f"{text} PNR-7{code}.".strip()
    return {"role": role, "content": said + " word" * (words - len(said.split())), **more}


def turn(at: int | str) -> list[dict[str, Any]]:
    """A turn of thirty-two words; one of them calls a tool, and two ask to remember something."""
    if at == 5:
        call = {"id": "call_5", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        asked = say("user", "u5", words=10), say("assistant", "c5", words=4, tool_calls=[call])
        return [*asked, say("tool", "r5", words=6, tool_call_id="call_5"), say("assistant", "a5", words=10)]
    asks = "Remember that my seat is" if at in {1, 4} else ""
    return [say("user", f"u{at}", asks), say("assistant", f"a{at}")]


def codes(texts: Iterable[str]) -> list[str]:
    """The codes that texts hold."""
    return [code for text in texts for code in CODE.findall(text)]


def summarize(messages: list[dict[str, Any]]) -> str:
    """Tells the codes."""
    return " ".join(("They spoke of", *codes(str(message["content"]) for message in messages)))


async def asummarize(messages: list[dict[str, Any]]) -> str:
    """Async twin of `summarize`."""
    return summarize(messages)


def count(text: str) -> int:
    """Words."""
    return len(text.split())


@dataclass(frozen=True, eq=False)
class World:
    """A session as operations find it: something archived, and a window that the next turn brings over its limit.

    Attributes:
        turns: how many were appended.
        extractive: whether no summariser is asked, so that no lease is taken.
        rewound: whether a rewind into the archive came last, and another turn after it.
        leaving: messages that a rewind or a reconcile takes out.
        store: holds it.
    """

    turns: int = 6
    extractive: bool = False
    rewound: bool = False
    leaving: int = 3
    store: MemoryStore = field(default_factory=MemoryStore)

    def __post_init__(self) -> None:
        chat = self.memory(self.store).session("s")
        for at in range(self.turns):
            chat.append(turn(at))
            if at == 2:
                chat.consolidate(force=True)
        if self.rewound:
            chat.rewind(-6)
            chat.append(turn("x"))

    def memory(self, store: Store, *, tasks: bool = False, now: float = 0, mode: str = "inline") -> SlideMem:
        """A memory as a new process would make it."""
        asked = asummarize if tasks else summarize
        given: dict[str, Any] = {} if self.extractive else {"consolidator": asked}
        given.update(store=store, counter=count, clock=lambda: now, mode=mode)
        return SlideMem(max_tokens=BUDGET, archive_share=BUDGET - ALLOTMENT, recall_share=0, **given)

    def call(self, chat: ConversationMemory, operation: str, who: str, *, tasks: bool = False) -> Callable[[], Any]:
        """An operation of somebody's on the session, or its twin for tasks."""
        name = operation.removesuffix("_to")
        method = getattr(chat, f"a{name}" if tasks else name)
        kept = [entry.message for entry in self.store._sessions["s"].entries[: -self.leaving]]
        calls: dict[str, Callable[[], Any]] = {
            "append": lambda: method(says(operation, who)),
            "consolidate": lambda: method(force=True),
            "reconcile": lambda: method([*kept, *says(operation, who)]),
            "rewind": lambda: method(-self.leaving),
            "rewind_to": lambda: method("id_a"),  # what "a" appends
            "pin": lambda: method(f"fact PNR-{who}"),
        }
        return calls.get(operation) or partial(method)


def says(operation: str, who: str) -> list[dict[str, Any]]:
    """What an operation adds to the transcript."""
    asked, answered = turn(who)
    added = {
        "append": [{**asked, "id": f"id_{who}"}, answered],
        "reconcile": [say("assistant", f"edited_{who}")],
    }
    return added.get(operation, [])


WORLDS: Final = {
    "plain": World(),
    "extractive": World(extractive=True),
    "rewound": World(turns=7, rewound=True),
    "merging": World(turns=8),  # the next segment is the fourth of its level
    "merged": World(turns=10, leaving=9),  # a rewind goes into a merged segment
}


def copied(store: MemoryStore) -> MemoryStore:
    """The store once more, to be changed."""
    new, kept = MemoryStore(), store._there("s")
    parts = {one.name: copy.copy(getattr(kept, one.name)) for one in fields(kept)}
    new._sessions["s"] = replace(kept, **{**parts, "index": copy.deepcopy(kept.index)})
    return new


def whole_of(store: MemoryStore) -> Whole:
    """All that is stored."""
    return drive(store.whole("s"), "")


def texts_of(entries: Iterable[Entry]) -> list[str]:
    """What messages say."""
    return [entry.message.text for entry in entries]


# ------------------------------------------------------------------ what must hold


def check_state(store: MemoryStore) -> None:
    """Invariant 4: each message is live or covered by one segment, and the sums are those of what is there."""
    whole, snapshot = whole_of(store), drive(store.snapshot("s"), "")
    record, segments = whole.record, whole.record.archive.segments
    texts = texts_of(whole.entries)

    assert list(range(len(texts))) == [entry.seq for entry in whole.entries]
    assert [0, *(segment.end for segment in segments)] == [*(segment.start for segment in segments), record.boundary]
    assert record.boundary <= len(texts)
    assert whole.entries[record.boundary :] == snapshot.live
    assert Totals.of(record, snapshot.live, snapshot.totals.counter) == snapshot.totals
    assert all(pin.source is None or pin.text in texts[pin.source] for pin in whole.pins)
    for segment in segments:
        check_segment(segment, texts, {kept.id: kept for kept in whole.segments})
    check_record(record, whole)


def check_segment(segment: Segment, texts: list[str], kept: dict[str, Segment]) -> None:
    """A segment tells of the messages that it covers, and what it was merged from is there and covers the same."""
    told, children = set(codes([segment.text])), [kept[id_] for id_ in segment.children]

    assert told
    assert told <= set(codes(texts[segment.start : segment.end]))
    assert all(left.end == right.start for left, right in pairwise(children))
    assert not children or (segment.start, segment.end) == (children[0].start, children[-1].end)
    for child in children:
        check_segment(child, texts, kept)


def check_record(record: Record, whole: Whole) -> None:
    """The messages that a record keeps are those of the transcript, and it knows the one at its boundary."""
    texts, live = texts_of(whole.entries), whole.entries[record.boundary :]
    kept = [one for one in (record.first_user, record.anchor) if one]
    users = [entry.seq for entry in whole.entries[: record.boundary] if entry.message.role == "user"]
    cut = bool(users and live and live[0].message.role != "user")

    assert [texts[one.seq] for one in kept] == [one.message.text for one in kept]
    assert record.first_user is None or users[0] == record.first_user.seq
    assert users[-1:] == [record.anchor.seq] if record.anchor else not cut
    assert record.boundary_digest in {"", digest(live[0].message) if live else ""}


def check_context(context: Context, whole: Whole) -> None:
    """Invariant 5: a context is of the state that it was read from, valid, within budget, and lacks nothing."""
    record, receipt, texts = whole.record, context.receipt, texts_of(whole.entries)
    live = range(record.boundary, len(texts))
    shown = [seq for seq in receipt.shown if seq in live]
    anchors = {record.anchor.seq} if record.anchor else set[int]()
    seen = set(codes(message.text for message in context.messages))

    assert (record.revision, record.boundary) == (receipt.revision, receipt.covered)
    assert list(live)[len(live) - len(shown) :] == shown
    assert len(live) - len(shown) == receipt.left_out
    assert set(receipt.shown) - set(live) <= anchors
    assert shown == list(live) or sum(entry.tokens for entry in whole.entries[record.boundary :]) > ALLOTMENT
    assert context.tokens <= BUDGET
    assert set(codes(texts[seq] for seq in shown)) <= seen
    assert seen <= set(codes((*texts, *(pin.text for pin in whole.pins))))
    assert not shown or receipt.open or [] == violations(context.to_openai(), ignore=OWN)


def check_goes_on(world: World, store: MemoryStore) -> None:
    """Invariant 9: the next process appends at once, and consolidates when a lease that was left there has ended."""
    before = whole_of(store)
    world.memory(store).session("s").append(turn("next"))
    check_state(store)
    after = [*texts_of(before.entries), *(message["content"] for message in turn("next"))]
    assert after == texts_of(whole_of(store).entries)

    later = world.memory(store, now=LEASE_SECONDS).session("s")
    for at in range(5):
        later.append(turn(f"later_{at}"))

    check_state(store)
    assert before.record.boundary < whole_of(store).record.boundary
    assert later.plan().due is None


# ------------------------------------------------------------------ what is legal

Outcome = tuple[list[str], list[list[str]], list[str], dict[str, Any]]
Named = tuple[tuple[str, str], ...]  # who does what


def outcome(whole: Whole, results: dict[str, Any]) -> Outcome:
    """What must be as after some serial order: all but when a window was cut."""
    pinned = sorted(pin.text for pin in whole.pins if pin.source is None)
    return texts_of(whole.entries), [texts_of(branch.entries) for branch in whole.branches], pinned, results


def attempt(call: Callable[[], Any]) -> Any:
    """What a call returns, or the error that it raises."""
    try:
        return call()
    except SlidememError as refused:
        return refused


def told(result: Any) -> Any:
    """A result, or an error, as it is compared."""
    if isinstance(result, SlidememError):
        return repr(result)
    if isinstance(result, tuple):
        return [message.text for message in result]
    return None if isinstance(result, (Context, Segment)) else result


@cache
def serial(world: World, named: Named) -> tuple[Whole, dict[str, Any]]:
    """What comes of operations one after the other."""
    store, results = copied(world.store), dict[str, Any]()
    for who, operation in named:
        results[who] = told(attempt(world.call(world.memory(store).session("s"), operation, who)))
    check_state(store)
    return whole_of(store), results


@cache
def legal(world: World, named: Named, killed: str) -> list[Outcome]:
    """Outcomes of the serial orders; without, and with all but the result of, one that was killed."""
    orders = [*permutations(named), tuple(one for one in named if one[0] != killed)]
    outcomes = [serial(world, order) for order in orders]
    return [
        outcome(whole, {who: one for who, one in results.items() if who != killed}) for whole, results in outcomes
    ]


@cache
def milestones(world: World, operation: str) -> list[Whole]:
    """What may be stored when an operation ends anywhere: nothing of it, all of it, all but what was due then."""
    wholes = [whole_of(world.store)]
    for mode in ("manual", "inline"):
        store = copied(world.store)
        world.call(world.memory(store, mode=mode).session("s"), operation, "a")()
        wholes.append(whole_of(store))
    return wholes


# ------------------------------------------------------------------ a play


async def done(given: Any) -> Any:
    """What is given, awaited where a gate for tasks gave it."""
    return await given if inspect.isawaitable(given) else given


@dataclass
class Play:
    """Operations on one session at once.

    Attributes:
        world: where it begins.
        operations: what "a" does, and "b".
        tasks: whether they are tasks, not threads.
        kills: whether one of them may be killed at any stop; each is then a process of its own.
        after: whether a call stops once more when it has taken effect.
        wrap: makes the gated store.
        store: what they have left.
        killed: who was killed.
    """

    world: World
    operations: tuple[str, ...]
    tasks: bool = False
    kills: bool = False
    after: bool = False
    wrap: Callable[..., GatedStore] = GatedStore
    store: MemoryStore = field(init=False, repr=False)
    killed: str = field(init=False, default="")
    _states: list[tuple[Whole, Lease | None, Context]] = field(init=False, repr=False, default_factory=list[Any])

    @property
    def named(self) -> Named:
        """Who does what."""
        return tuple(zip("ab", self.operations, strict=False))

    def orders(self, also: Callable[[Play], None] = lambda play: None) -> int:
        """Play every order, and check what comes of it; how many there were."""

        async def one(choose: Choose) -> None:
            await self._order(choose)
            also(self)

        return exhaust(one, tasks=self.tasks)

    async def _order(self, choose: Choose) -> None:
        self.store, self.killed = copied(self.world.store), ""
        gate: Any = TaskGate() if self.tasks else ThreadGate()
        gated = self.wrap(self.store, gate, after=self.after)
        shared = None if self.kills else self.world.memory(gated, tasks=self.tasks)
        for who, operation in self.named:
            memory = shared or self.world.memory(gated, tasks=self.tasks)
            await done(gate.start(who, self.world.call(memory.session("s"), operation, who, tasks=self.tasks)))
        read: dict[str, Whole] = {}
        while gate.waiting:
            may_die = gate.waiting if self.kills and not self.killed else ()
            chosen = choose((*gate.waiting, *(f"kill {who}" for who in may_die)))
            if chosen in gate.waiting:
                await self._step(gate, chosen, read)
            else:
                self.killed = chosen.removeprefix("kill ")
                await done(gate.kill(self.killed))
        self._check(gate, read)
        self._check_reads(shared)

    async def _step(self, gate: Any, who: str, read: dict[str, Whole]) -> None:
        """One call of one of them; a read leaves everything as it was."""
        at, before = gate.at(who), whole_of(self.store)
        if at == "snapshot":
            read[who] = before
        await done(gate.step(who))
        assert before == whole_of(self.store) or not (at in READS or at.startswith("after"))

    def _check(self, gate: Any, read: dict[str, Whole]) -> None:
        """The outcome is that of a serial order, and nothing is lost."""
        results, whole = dict[str, Any](), whole_of(self.store)
        for who, operation in self.named:
            if who != self.killed:
                result = attempt(partial(gate.result, who))
                results[who] = told(result)
                if operation == "context":
                    check_context(result, read[who])
        kept = [*whole.entries, *(entry for branch in whole.branches for entry in branch.entries)]

        assert outcome(whole, results) in legal(self.world, self.named, self.killed)
        assert "clear" in self.operations or self._said(results) <= set(codes(texts_of(kept)))
        check_state(self.store)

    def _said(self, results: dict[str, Any]) -> set[str]:
        """Codes of all that was there, and was appended since by those who were not killed."""
        before = whole_of(self.world.store)
        there = [*before.entries, *(entry for branch in before.branches for entry in branch.entries)]
        added = (message["content"] for who, one in self.named if who in results for message in says(one, who))
        return set(codes((*texts_of(there), *added)))

    def _check_reads(self, memory: SlideMem | None) -> None:
        """The same state gives the same context, in the process that worked on it and in a new one."""
        whole, lease = whole_of(self.store), self.store._there("s").lease
        known = (one for was, left, one in self._states if (was, bool(left)) == (whole, bool(lease)))
        context = next(known, None)
        if context is None:
            context = self.world.memory(self.store).session("s").context()
            self._states.append((whole, lease, context))
            check_context(context, whole)
            if self.kills:
                check_goes_on(self.world, copied(self.store))
        assert memory is None or context == memory.session("s").context()


def exhaust(play: Callable[[Choose], Coroutine[Any, Any, None]], *, tasks: bool) -> int:
    """Play every order, in an event loop or without one."""
    if not tasks:
        return every_order(lambda choose: drive(play(choose), ""))
    with closing(asyncio.new_event_loop()) as loop:
        return every_order(lambda choose: loop.run_until_complete(play(choose)))


# ------------------------------------------------------------------ every order

PAIRS: Final = tuple(combinations_with_replacement(OPERATIONS, 2))
DEEP: Final = tuple(product(("rewind", "reconcile"), ("context", "consolidate", "clear", "pin")))
RUNS: Final = {
    ("plain", "threads"): (*PAIRS, ("append", "rewind_to")),
    ("plain", "tasks"): (*PAIRS, ("append", "rewind_to")),
    ("extractive", "threads"): PAIRS,
    ("rewound", "tasks"): PAIRS,
    ("merging", "threads"): PAIRS,
    ("merged", "tasks"): DEEP,
}
DRIVERS: Final = ("threads", "tasks")


def rows(pairs: Iterable[Sequence[Any]]) -> list[Any]:
    """Parameters with an id that names them all."""
    return [pytest.param(*row, id="-".join(row)) for row in pairs]


@pytest.mark.parametrize("world", WORLDS)
def test_a_world_is_about_to_overflow(world: str) -> None:
    """In each world the next turn makes a consolidation due, so that the operations have something to disturb."""
    before, appended, settled = milestones(WORLDS[world], "append")

    assert 0 < before.record.boundary == appended.record.boundary < settled.record.boundary
    assert (world == "merging") == (settled.record.archive.segments[-1].level > 0)


def test_every_order_is_played() -> None:
    """Two operations of two calls each have six orders, and in nine ways each of them can be killed."""
    play = Play(WORLDS["plain"], ("pin", "pin"))

    assert 6 == play.orders()
    assert 6 + 2 * 9 == replace(play, kills=True).orders()


@pytest.mark.parametrize(
    "world,driver,first,second", rows((*run, *pair) for run, pairs in RUNS.items() for pair in pairs)
)
def test_two_operations_in_every_order(world: str, driver: str, first: str, second: str) -> None:
    """Whatever the order of their calls, two operations leave what one after the other leaves; nothing is lost."""
    play = Play(WORLDS[world], (first, second), tasks=driver == "tasks")

    assert 1 < play.orders()


@pytest.mark.parametrize("other", OPERATIONS)
def test_a_context_and_an_operation_stopped_within_their_calls(other: str) -> None:
    """A context is of one state, and leaves none behind, though others work between a call and its use."""
    play = Play(WORLDS["plain"], ("context", other), after=True)

    assert 5 < play.orders()


@pytest.mark.parametrize("first,second", rows(PAIRS))
def test_two_operations_one_of_them_killed_at_every_call(first: str, second: str) -> None:
    """One that is killed anywhere has happened or has not, the other notices nothing, and the session goes on."""
    play = Play(WORLDS["plain"], (first, second), tasks=True, kills=True)

    assert 5 < play.orders()


@pytest.mark.parametrize("world,driver,operation", rows(product(WORLDS, DRIVERS, OPERATIONS)))
def test_an_operation_killed_at_every_call(world: str, driver: str, operation: str) -> None:
    """Killed before a call or right after it took effect, an operation leaves its state before, or one after it."""
    may_be = milestones(WORLDS[world], operation)

    def check(play: Play) -> None:
        left = whole_of(play.store)
        assert left in may_be if play.killed else may_be[-1] == left

    play = Play(WORLDS[world], (operation,), tasks=driver == "tasks", kills=True, after=True)

    assert 2 < play.orders(check)


@pytest.mark.parametrize("world,driver", rows(product(("plain", "extractive", "merging"), DRIVERS)))
def test_a_consolidation_commits_though_an_append_comes_between_every_two_of_its_steps(
    world: str, driver: str
) -> None:
    """Appends do not disturb a consolidation: it commits, and what was appended meanwhile is live."""
    begun, tasks, store = WORLDS[world], driver == "tasks", copied(WORLDS[world].store)
    appended: list[str] = []

    async def play(choose: Choose) -> None:
        gate: Any = TaskGate() if tasks else ThreadGate()
        chat = begun.memory(GatedStore(store, gate, after=True), tasks=tasks).session("s")
        others = begun.memory(store, mode="manual").session("s")
        await done(gate.start("it", begun.call(chat, "consolidate", "it", tasks=tasks)))
        while await done(gate.step("it")):
            others.append(turn(len(appended) + 100))
            appended.extend(message["content"] for message in turn(len(appended) + 100))
        segment = gate.result("it")
        assert segment.end == chat.archive()[-1].end == whole_of(store).record.boundary

    assert 1 == exhaust(play, tasks=tasks)
    assert 6 <= len(appended)
    assert appended == texts_of(drive(store.snapshot("s"), "").live)[-len(appended) :]
    check_state(store)


# ------------------------------------------------------------------ planted faults


class TwoSteps(GatedStore):
    """A store that appends where it has read that the end is."""

    async def append(  # type: ignore[override]
        self, session: str, entries: Sequence[Entry], *rest: Any
    ) -> Totals:
        """Read, then write."""
        end = len(await self.read(session))
        await self.gate("append")
        kept = self.store._sessions[session]  # type: ignore[attr-defined]
        del kept.entries[end:]
        kept.totals = Totals.of(kept.record, kept.live, kept.totals.counter)
        return await self.store.append(session, entries, *rest)


def blind_commit(patch: pytest.MonkeyPatch) -> None:
    """A commit on whatever revision is there."""
    real = MemoryStore.commit

    async def commit(self: MemoryStore, session: str, expected: int, change: Change) -> bool:
        return await real(self, session, self._there(session).record.revision, change)

    patch.setattr(MemoryStore, "commit", commit)


def blind_rewrite(patch: pytest.MonkeyPatch) -> None:
    """A rewrite that closes messages which it has not seen."""
    real = MemoryStore.rewrite

    async def rewrite(
        self: MemoryStore, session: str, expected: tuple[int, int], change: Rewrite, *rest: Any
    ) -> Totals | None:
        return await real(self, session, (expected[0], self._there(session).totals.next_seq), change, *rest)

    patch.setattr(MemoryStore, "rewrite", rewrite)


def torn_snapshot(patch: pytest.MonkeyPatch) -> None:
    """A read of messages and record one after the other."""

    async def snapshot(self: Session) -> Snapshot:
        first = await self.store.snapshot(self.id)
        return replace(first, record=(await self.store.held(self.id)).record)

    patch.setattr(Session, "snapshot", snapshot)


def endless_lease(patch: pytest.MonkeyPatch) -> None:
    """A lease that a dead worker keeps for good."""
    real = MemoryStore.claim

    async def claim(self: MemoryStore, session: str, expected: int, lease: Lease, now: float) -> bool:
        return await real(self, session, expected, lease, 0)

    patch.setattr(MemoryStore, "claim", claim)


def nothing(patch: pytest.MonkeyPatch) -> None:
    """No fault."""


@pytest.mark.parametrize(
    "plant,play",
    [
        (nothing, Play(WORLDS["plain"], ("append", "append"), wrap=TwoSteps)),
        (blind_commit, Play(WORLDS["extractive"], ("append", "consolidate"))),
        (blind_commit, Play(WORLDS["plain"], ("append", "reconcile"))),
        (blind_rewrite, Play(WORLDS["plain"], ("append", "rewind"))),
        (torn_snapshot, Play(WORLDS["plain"], ("context", "consolidate"))),
        (endless_lease, Play(WORLDS["plain"], ("consolidate",), kills=True)),
    ],
    ids=["append in two steps", "commit", "commit of what was rewound", "rewrite", "snapshot", "lease"],
)
def test_a_planted_fault_is_caught(
    plant: Callable[[pytest.MonkeyPatch], None], play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fault is caught in some order: a check that cannot fail proves nothing."""
    plant(monkeypatch)

    with pytest.raises(AssertionError, match=r"order \d+ \("):
        play.orders()
