"""Decides how a test decides every order: a store whose calls wait at a gate, and who opens it.

Operations run as threads (`ThreadGate`) or as tasks (`TaskGate`), one at a time: whenever the test looks, each
stands at a gate or has ended. Nothing sleeps and nothing is left to luck, so what `every_order` has been through
is all there is.

    def play(choose):
        gate = ThreadGate()
        chat = SlideMem(max_tokens=4000, store=GatedStore(MemoryStore(), gate)).session("s")
        gate.start("append", lambda: chat.append({"role": "user", "content": "hi"}))
        gate.start("clear", chat.clear)
        while gate.waiting:
            gate.step(choose(gate.waiting))
        assert ...

    every_order(play)
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import CoroutineType
from typing import Any, Concatenate, Final, Generic, ParamSpec, Protocol, TypeVar

from slidemem.stores.base import Store

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE: Final = 60.0  # seconds; only a play that hangs takes so long, and it fails

Gate = Callable[[str], Awaitable[None]]


# ------------------------------------------------------------------ the store


def _gated(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[GatedStore, P], CoroutineType[Any, Any, T]]:
    """What stands for a store's method in a gated store."""
    name = method.__name__

    @functools.wraps(method)
    async def call(self: GatedStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        await self.gate(name)
        result: T = await getattr(self.store, name)(*args, **kwargs)
        if self.after:
            await self.gate(f"after {name}")
        return result

    return call  # type: ignore[return-value]  # mypy calls what an async function returns a Coroutine, no more


class GatedStore:
    """A store each call of which waits at a gate before it does anything.

    Args:
        store: does the work.
        gate: awaited with the name of the method, before the call.
        after: whether it is awaited once more, with `"after "` before the name, when the call has taken effect
            and its caller has not heard of it yet.
    """

    def __init__(self, store: Store, gate: Gate, *, after: bool = False) -> None:
        self.store = store
        self.gate = gate
        self.after = after

    def __repr__(self) -> str:
        return f"GatedStore({self.store!r})"

    append = _gated(Store.append)
    read = _gated(Store.read)
    pick = _gated(Store.pick)
    matching = _gated(Store.matching)
    documents = _gated(Store.documents)
    keys = _gated(Store.keys)
    cut = _gated(Store.cut)
    branches = _gated(Store.branches)
    held = _gated(Store.held)
    describe = _gated(Store.describe)
    commit = _gated(Store.commit)
    segment = _gated(Store.segment)
    pin = _gated(Store.pin)
    unpin = _gated(Store.unpin)
    claim = _gated(Store.claim)
    release = _gated(Store.release)
    clear = _gated(Store.clear)
    snapshot = _gated(Store.snapshot)
    recount = _gated(Store.recount)
    rewrite = _gated(Store.rewrite)
    whole = _gated(Store.whole)
    restore = _gated(Store.restore)
    sessions = _gated(Store.sessions)


# ------------------------------------------------------------------ who opens the gate


class Killed(BaseException):
    """Raised in an operation at the gate where it was killed; no `Exception`, as the end of a process is none."""


@dataclass
class _Operation:
    """What a test started.

    Attributes:
        at: the gate at which it stands; None while it runs, and once it has ended.
        ended: whether it has.
        killed: whether it counts as dead.
        value: what it returned.
        fault: what it raised.
    """

    at: str | None = None
    ended: bool = False
    killed: bool = False
    value: Any = None
    fault: BaseException | None = None

    def end(self) -> None:
        """Stand nowhere any more."""
        self.at, self.ended = None, True


@dataclass
class _Thread(_Operation):
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    stands: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))


@dataclass
class _Task(_Operation):
    go: asyncio.Event = field(default_factory=asyncio.Event)
    stands: asyncio.Event = field(default_factory=asyncio.Event)
    door: asyncio.Lock = field(default_factory=asyncio.Lock)  # where the tasks of one operation wait in line
    task: asyncio.Task[None] | None = None  # kept, because the event loop holds it only weakly


Operation = TypeVar("Operation", bound=_Operation)


class _Gate(Generic[Operation]):
    """What is known of the operations that were started, whatever runs them."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._operations: dict[str, Operation] = {}

    @property
    def waiting(self) -> tuple[str, ...]:
        """Names of the operations that have not ended, in the order in which they were started."""
        return tuple(name for name, operation in self._operations.items() if not operation.ended)

    def at(self, name: str) -> str | None:
        """The gate at which an operation stands: a method's name; None when it has ended."""
        return self._operations[name].at

    def finished(self, name: str) -> bool:
        """Whether an operation has ended: returned, raised, or was killed."""
        return self._operations[name].ended

    def result(self, name: str) -> Any:
        """What an operation returned.

        Raises:
            RuntimeError: it has not ended.
            BaseException: what it raised; `Killed` when it was killed.
        """
        operation = self._operations[name]
        if not operation.ended:
            raise RuntimeError(f"the operation {name!r} has not ended: it stands at {operation.at!r}")
        if operation.fault is not None:
            raise operation.fault
        return operation.value

    def _begun(self, name: str, operation: Operation) -> Operation:
        if name in self._operations:
            raise ValueError(f"an operation has the name {name!r} already: give this one another")
        self._operations[name] = operation
        return operation

    def _leaving(self, name: str) -> Operation:
        """An operation that stands at a gate, about to leave it."""
        operation = self._operations[name]
        if operation.at is None:
            raise RuntimeError(f"the operation {name!r} stands at no gate: `waiting` names those that have not ended")
        operation.at = None
        return operation

    def _late(self, name: str) -> TimeoutError:
        return TimeoutError(f"the operation {name!r} neither came to a gate nor ended in {self._patience:g} seconds")


class ThreadGate(_Gate[_Thread]):
    """Decides when threads go through: a call waits by blocking its thread, so a sync caller's store can be gated.

    What is called by none of its operations goes through at once.

    Args:
        patience: seconds after which an operation that neither comes to a gate nor ends is a fault.
    """

    def __init__(self, patience: float = PATIENCE) -> None:
        super().__init__(patience)
        self._own = threading.local()

    async def __call__(self, method: str) -> None:
        """Stand here until stepped; never suspends."""
        operation: _Thread | None = getattr(self._own, "operation", None)
        if operation is None:
            return
        if not operation.killed:
            operation.at = method
            operation.stands.release()
            operation.go.acquire()
        if operation.killed:
            raise Killed

    def start(self, name: str, operation: Callable[[], object]) -> str | None:
        """Run a function on a thread of its own, as far as its first gate.

        Args:
            name: of the operation from now on.
            operation: the function.

        Returns:
            The gate at which it stands: a method's name; None when it has ended.

        Raises:
            ValueError: another operation has the name.
            TimeoutError: it neither came to a gate nor ended.
        """
        begun = self._begun(name, _Thread())
        threading.Thread(target=self._run, args=(begun, operation), name=f"gated {name}", daemon=True).start()
        return self._stood(name, begun)

    def step(self, name: str) -> str | None:
        """Let an operation through its gate, and wait until it stands at the next one or has ended.

        Returns:
            The gate at which it stands now: a method's name; None when it has ended.

        Raises:
            RuntimeError: it stood at no gate.
            TimeoutError: it neither came to a gate nor ended.
        """
        operation = self._leaving(name)
        operation.go.release()
        return self._stood(name, operation)

    def kill(self, name: str) -> None:
        """Raise `Killed` in an operation at its gate, and at once at any that it comes to then, until it has ended.

        Raises:
            RuntimeError: it stood at no gate.
            TimeoutError: it did not end.
        """
        operation = self._leaving(name)
        operation.killed = True
        operation.go.release()
        self._stood(name, operation)

    def _run(self, begun: _Thread, operation: Callable[[], object]) -> None:
        self._own.operation = begun
        try:
            begun.value = operation()
        except BaseException as fault:  # noqa: BLE001  # whatever it is, `result` raises it
            begun.fault = fault
        begun.end()
        begun.stands.release()

    def _stood(self, name: str, operation: _Thread) -> str | None:
        if not operation.stands.acquire(timeout=self._patience):
            raise self._late(name)
        return operation.at


class TaskGate(_Gate[_Task]):
    """Decides when tasks of one event loop go through: a call waits by being awaited.

    What is called by none of its operations goes through at once. A task that an operation starts belongs to it:
    its calls stand in the same line as long as the operation lasts, and are refused once it was killed.

    Args:
        patience: seconds after which an operation that neither comes to a gate nor ends is a fault.
    """

    def __init__(self, patience: float = PATIENCE) -> None:
        super().__init__(patience)
        self._own: ContextVar[_Task | None] = ContextVar("operation", default=None)

    async def __call__(self, method: str) -> None:
        """Stand here until stepped."""
        operation = self._own.get()
        if operation is None:
            return
        async with operation.door:
            if not operation.ended and not operation.killed:
                operation.at = method
                operation.go.clear()
                operation.stands.set()
                await operation.go.wait()
        if operation.killed:
            raise Killed

    async def start(self, name: str, operation: Callable[[], Awaitable[object]]) -> str | None:
        """Run what a function returns as a task, as far as its first gate.

        Args:
            name: of the operation from now on.
            operation: the function: `lambda: chat.aappend(message)`, say.

        Returns:
            The gate at which it stands: a method's name; None when it has ended.

        Raises:
            ValueError: another operation has the name.
            TimeoutError: it neither came to a gate nor ended.
        """
        begun = self._begun(name, _Task())
        begun.task = asyncio.create_task(self._run(begun, operation), name=f"gated {name}")
        return await self._stood(name, begun)

    async def step(self, name: str) -> str | None:
        """Let an operation through its gate, and wait until it stands at the next one or has ended.

        Returns:
            The gate at which it stands now: a method's name; None when it has ended.

        Raises:
            RuntimeError: it stood at no gate.
            TimeoutError: it neither came to a gate nor ended.
        """
        operation = self._leaving(name)
        operation.stands.clear()
        operation.go.set()
        return await self._stood(name, operation)

    async def kill(self, name: str) -> None:
        """Raise `Killed` in an operation at its gate, and at once at any that it comes to then, until it has ended.

        Raises:
            RuntimeError: it stood at no gate.
            TimeoutError: it did not end.
        """
        operation = self._leaving(name)
        operation.killed = True
        operation.stands.clear()
        operation.go.set()
        await self._stood(name, operation)

    async def _run(self, begun: _Task, operation: Callable[[], Awaitable[object]]) -> None:
        self._own.set(begun)
        try:
            begun.value = await operation()
        except BaseException as fault:  # noqa: BLE001  # whatever it is, `result` raises it
            begun.fault = fault
        begun.end()
        begun.go.set()  # a task that it leaves behind waits no longer
        begun.stands.set()

    async def _stood(self, name: str, operation: _Task) -> str | None:
        try:
            await asyncio.wait_for(operation.stands.wait(), self._patience)
        except asyncio.TimeoutError:
            raise self._late(name) from None
        return operation.at


# ------------------------------------------------------------------ every order


class Choose(Protocol):
    """Decides how a play goes on."""

    def __call__(self, options: Sequence[T], /) -> T:
        """One of the options."""
        ...


@dataclass
class _Course:
    """The choices of one run: as given, and the first option of those after.

    Attributes:
        given: for each choice the place of the option, and the options.
        made: the same of this run.
    """

    given: list[tuple[int, tuple[Any, ...]]]
    made: list[tuple[int, tuple[Any, ...]]] = field(default_factory=list[tuple[int, tuple[Any, ...]]])

    def __str__(self) -> str:
        return ", ".join(str(options[place]) for place, options in self.made)

    def choose(self, options: Sequence[T], /) -> T:
        """The option that is given, or the first one."""
        place, before = self.given[len(self.made)] if len(self.made) < len(self.given) else (0, tuple(options))
        if before != tuple(options):
            raise AssertionError(f"the same choices led to the options {before} before, and to {tuple(options)} now")
        self.made.append((place, before))
        return before[place]

    def next(self) -> _Course | None:
        """The course after this one: another option at the last choice that has one; None when all were taken."""
        if len(self.made) < len(self.given):
            raise AssertionError(f"the choices {self} led to another choice before, and to none now")
        left = list(self.made)
        while left:
            place, options = left.pop()
            if place + 1 < len(options):
                return _Course([*left, (place + 1, options)])
        return None


def every_order(play: Callable[[Choose], object]) -> int:
    """Run a play once for each sequence of choices that it can meet, depth first.

    Each run begins anew and repeats the choices of the one before as far as the last that has an option left. So
    the play builds its world itself, and does the same when the choices are the same; how many there are, and
    between what, may depend on those before.

    Args:
        play: gets `choose(options) -> option`, and asks it for all that is to be tried in every way.

    Returns:
        How many orders there were.

    Raises:
        AssertionError: the play raised an `Exception`, or went on differently after the same choices; the text
            tells the choices.
    """
    orders = 0
    course: _Course | None = _Course([])
    while course:
        try:
            play(course.choose)
        except Exception as fault:
            raise AssertionError(f"order {orders + 1} ({course}): {type(fault).__name__}: {fault}") from fault
        orders, course = orders + 1, course.next()
    return orders
