from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from slidemem.driver import drive
from slidemem.state import Pin
from slidemem.stores.base import Blocking, Store
from slidemem.stores.memory import MemoryStore
from slidemem.testing import Choose, GatedStore, Killed, TaskGate, ThreadGate, every_order

METHODS = sorted(name for name in dir(Store) if not name.startswith("_"))


async def done(given: Any) -> Any:
    """What is given, awaited where a gate for tasks gave it."""
    return await given if inspect.isawaitable(given) else given


class Threads:
    """A gate whose operations are threads."""

    def __init__(self, patience: float = 60) -> None:
        self.gate: Any = ThreadGate(patience)
        self.store = GatedStore(MemoryStore(), self.gate)

    @staticmethod
    def run(test: Coroutine[Any, Any, None]) -> None:
        """Run a test that never suspends."""
        drive(test, "")

    async def start(self, name: str, operation: Callable[[], Coroutine[Any, Any, Any]]) -> str | None:
        """Start an operation that never suspends."""
        at: str | None = self.gate.start(name, lambda: drive(operation(), ""))
        return at


class Tasks:
    """A gate whose operations are tasks."""

    def __init__(self, patience: float = 60) -> None:
        self.gate: Any = TaskGate(patience)
        self.store = GatedStore(MemoryStore(), self.gate)

    @staticmethod
    def run(test: Coroutine[Any, Any, None]) -> None:
        """Run a test in an event loop."""
        asyncio.run(test)

    async def start(self, name: str, operation: Callable[[], Awaitable[Any]]) -> str | None:
        """Start an operation."""
        at: str | None = await self.gate.start(name, operation)
        return at


World = Threads | Tasks
both = pytest.mark.parametrize("kind", [Threads, Tasks], ids=["threads", "tasks"])


# ------------------------------------------------------------------ the store


def test_a_gated_store_is_a_store() -> None:
    """It has every method of a store, with its signature, and no other face for async callers."""
    store = GatedStore(MemoryStore(), ThreadGate())

    assert isinstance(store, Store)
    assert not isinstance(store, Blocking)
    assert METHODS == sorted(name for name in vars(GatedStore) if not name.startswith("_"))
    assert inspect.signature(Store.rewrite) == inspect.signature(GatedStore.rewrite)
    assert Store.rewrite.__doc__ == GatedStore.rewrite.__doc__
    assert "GatedStore(MemoryStore(0 sessions))" == repr(store)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_each_call_waits_before_it_does_anything(method: str, after: bool) -> None:  # noqa: FBT001  # a parameter of the test
    """The gate hears of a call before the store does, and once more afterwards where that is asked for."""
    heard: list[str] = []

    class Told:
        def __getattr__(self, name: str) -> Any:
            async def call(*arguments: Any, **named: Any) -> Any:
                heard.append(f"{name} {arguments} {named}")
                return "result"

            return call

    async def gate(name: str) -> None:
        heard.append(name)

    store: Any = GatedStore(Told(), gate, after=after)

    assert "result" == drive(getattr(store, method)("s", 1, one=2), "")
    assert [method, f"{method} ('s', 1) {{'one': 2}}", *([f"after {method}"] * after)] == heard


# ------------------------------------------------------------------ the gates


@both
def test_an_operation_goes_one_gate_a_step(kind: type[World]) -> None:
    """An operation stands at its first call when it is started, and each step lets one call happen."""

    async def test() -> None:
        world = kind()
        gate, seen = world.gate, []

        async def pin() -> str:
            await world.store.pin("s", Pin("1", "one"))
            seen.append("between")
            return f"{len((await world.store.held('s')).pins)} pinned"

        assert "pin" == await world.start("it", pin) == gate.at("it")
        assert ([], ("it",), False) == (seen, gate.waiting, gate.finished("it"))
        assert "held" == await done(gate.step("it")) == gate.at("it")
        assert ["between"] == seen
        assert await done(gate.step("it")) is gate.at("it") is None
        assert ("1 pinned", (), True) == (gate.result("it"), gate.waiting, gate.finished("it"))

    kind.run(test())


@both
def test_an_operation_without_a_call_ends_at_once(kind: type[World]) -> None:
    """Others go on where they stand when one has ended, and its error is raised where its result is asked for."""

    async def test() -> None:
        world = kind()

        async def fail() -> None:
            raise LookupError("not here")

        await world.start("other", lambda: world.store.keys("s"))
        assert await world.start("it", fail) is None
        assert (("other",), "keys") == (world.gate.waiting, world.gate.at("other"))
        with pytest.raises(LookupError, match="not here"):
            world.gate.result("it")
        assert await done(world.gate.step("other")) is None
        assert () == world.gate.result("other")

    kind.run(test())


@both
def test_a_killed_operation_does_nothing_more(kind: type[World]) -> None:
    """Killed at its gate an operation ends with `Killed`, and the store refuses what its handlers call."""

    async def test() -> None:
        world = kind()
        refused: list[type[BaseException]] = []

        async def stubborn() -> None:
            for id_ in "123":
                try:
                    await world.store.pin("s", Pin(id_, id_))
                except Killed as killed:  # noqa: PERF203  # what no program should do
                    refused.append(type(killed))
            await world.store.clear("s")

        await world.start("it", stubborn)
        await done(world.gate.step("it"))
        await done(world.gate.kill("it"))

        assert [Killed, Killed] == refused
        assert world.gate.finished("it")
        with pytest.raises(Killed):
            world.gate.result("it")
        assert ["1"] == [pin.id for pin in (await world.store.held("s")).pins]

    kind.run(test())


@both
def test_who_is_no_operation_goes_through(kind: type[World]) -> None:
    """A test reads and writes the gated store itself, whoever stands at the gate."""

    async def test() -> None:
        world = kind()
        await world.start("it", lambda: world.store.held("s"))

        await world.store.pin("s", Pin("1", "one"))

        await done(world.gate.step("it"))
        assert (Pin("1", "one"),) == world.gate.result("it").pins

    kind.run(test())


@both
def test_a_play_that_asks_for_what_cannot_be_is_told(kind: type[World]) -> None:
    """A name twice, a result too early and a step too many are faults of the play, with the operation's name."""

    async def test() -> None:
        world = kind()
        await world.start("it", lambda: world.store.keys("s"))

        with pytest.raises(ValueError, match="'it' already"):
            await world.start("it", lambda: world.store.keys("s"))
        with pytest.raises(RuntimeError, match="'it' has not ended: it stands at 'keys'"):
            world.gate.result("it")
        await done(world.gate.step("it"))
        for move in (world.gate.step, world.gate.kill):
            with pytest.raises(RuntimeError, match="'it' stands at no gate"):
                await done(move("it"))

    kind.run(test())


def test_a_thread_that_hangs_is_told() -> None:
    """A thread that neither comes to a gate nor ends fails the play when its patience ends."""
    gate, hangs = ThreadGate(patience=0.01), threading.Event()

    with pytest.raises(TimeoutError, match=r"'it' neither came to a gate nor ended in 0\.01 seconds"):
        gate.start("it", hangs.wait)
    hangs.set()


def test_a_task_that_hangs_is_told() -> None:
    """A task that neither comes to a gate nor ends fails the play when its patience ends."""

    async def test() -> None:
        with pytest.raises(TimeoutError, match=r"'it' neither came to a gate nor ended in 0\.01 seconds"):
            await TaskGate(patience=0.01).start("it", asyncio.Event().wait)

    asyncio.run(test())


def test_tasks_of_an_operation_stand_in_its_line() -> None:
    """Tasks that an operation starts and awaits go through one a step, in the order in which they came."""

    async def test() -> None:
        world = Tasks()
        calls = world.store.keys, world.store.held, world.store.branches

        await world.start("it", lambda: asyncio.gather(*(call("s") for call in calls)))
        stood = [world.gate.at("it"), *[await done(world.gate.step("it")) for _ in calls]]

        assert ["keys", "held", "branches", None] == stood

    asyncio.run(test())


def test_a_task_that_an_operation_leaves_behind_goes_through() -> None:
    """Where nobody steps an operation any more, its tasks wait no longer."""

    async def test() -> None:
        world, left = Tasks(), list[asyncio.Task[Any]]()

        async def leaving() -> None:
            left.append(asyncio.create_task(world.store.keys("s")))
            await asyncio.sleep(0)

        await world.start("it", leaving)
        while world.gate.waiting:
            await world.gate.step("it")

        assert () == await left[0]

    asyncio.run(test())


def test_a_task_of_a_killed_operation_is_refused() -> None:
    """The dead call nothing, though they left a task behind."""

    async def test() -> None:
        world, left = Tasks(), list[asyncio.Task[Any]]()

        async def leaving() -> None:
            left.append(asyncio.create_task(world.store.clear("s")))
            await world.store.pin("s", Pin("1", "one"))

        await world.start("it", leaving)
        await world.gate.kill("it")

        with pytest.raises(Killed):
            await left[0]

    asyncio.run(test())


# ------------------------------------------------------------------ every order


def test_every_sequence_of_choices_is_played_once() -> None:
    """How many choices there are, and of how many options, may depend on the choices before."""
    played: list[str] = []

    def play(choose: Choose) -> None:
        said = choose("abc")
        if said != "a":
            said += choose(["x", "y"][: 1 + (said == "b")])
        played.append(said)

    assert 4 == every_order(play)
    assert ["a", "bx", "by", "cx"] == played


def test_a_play_without_choices_is_played_once() -> None:
    """Where nothing is chosen there is one order."""
    assert 1 == every_order(lambda choose: None)


def test_two_operations_meet_in_each_order() -> None:
    """Two operations of two calls each meet in six orders, however many other operations have ended."""
    met: list[str] = []

    def play(choose: Choose) -> None:
        gate = ThreadGate()
        store = GatedStore(MemoryStore(), gate)
        gate.start("ends", lambda: None)
        for name in "ab":
            gate.start(name, lambda: [drive(store.keys("s"), "") for _ in range(2)])
        order = ""
        while gate.waiting:
            order += choose(gate.waiting)
            gate.step(order[-1])
        met.append(order)

    assert 6 == every_order(play)
    assert ["aabb", "abab", "abba", "baab", "baba", "bbaa"] == met


def test_a_failure_tells_its_order() -> None:
    """An order that fails is told by its choices, and what was raised is the cause."""

    def play(choose: Choose) -> None:
        if "by" == choose("ab") + choose("xy"):
            raise LookupError("lost")

    with pytest.raises(AssertionError, match=r"order 4 \(b, y\): LookupError: lost") as failed:
        every_order(play)
    assert isinstance(failed.value.__cause__, LookupError)


@pytest.mark.parametrize(
    "second,told", [("yz", "led to the options"), ("", "led to the options"), (None, "led to another choice")]
)
def test_a_play_that_does_not_repeat_itself_is_told(second: str | None, told: str) -> None:
    """A play that goes on differently after the same choices cannot be played in every order."""
    options = iter(["xy", second])

    def play(choose: Choose) -> None:
        choose("a")
        offered = next(options)
        if offered is not None:
            choose(offered)

    with pytest.raises(AssertionError, match=told):
        every_order(play)
