"""What is due in many sessions, done by whoever asks: a task, a worker process, several of them."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event as Flag
from typing import Any

import pytest

from slidemem import AsyncOnly, ConfigurationError, Event, SlideMem
from slidemem.cli import main
from slidemem.contract import entry
from slidemem.driver import drive
from slidemem.state import Lease
from slidemem.stores.base import Store
from slidemem.stores.memory import MemoryStore
from slidemem.stores.sqlite import SQLiteStore
from slidemem.worker import loop


def words(text: str) -> int:
    """Counts."""
    return len(text.split())


def memory(store: Store | str, **options: Any) -> SlideMem:
    """A memory that leaves its work to others."""
    return SlideMem(
        **{"max_tokens": 100, "counter": words, "recall_share": 0, "mode": "manual", **options}, store=store
    )


def talk(mem: SlideMem, session: str, turns: int) -> None:
    """So many turns of 20 words."""
    for at in range(turns):
        mem.session(session, user_id="ann").append(
            [{"role": role, "content": f"{session} {at}" + " word" * 8} for role in ("user", "assistant")]
        )


@pytest.fixture
def store() -> Store:
    """Three sessions in which something is due, and one in which nothing is."""
    made = MemoryStore()
    for session, turns in (("a", 6), ("idle", 1), ("b", 6), ("c", 20)):
        talk(memory(made), session, turns)
    memory(made).session("a", user_id="ann").profile.set("name", "Ann")
    return made


def boundaries(store: Store) -> dict[str, int]:
    """How far each session is archived."""
    return {id_: drive(store.held(id_), "").record.boundary for id_ in memory(store).sessions()}


def test_what_is_due_is_consolidated_everywhere(store: Store) -> None:
    """In each session until nothing is due there; a second call finds nothing."""
    mem = memory(store)
    assert {"a": 0, "idle": 0, "b": 0, "c": 0} == boundaries(store)

    assert ("a", "b", "c") == mem.consolidate_due()

    assert () == mem.consolidate_due() == asyncio.run(mem.aconsolidate_due())
    assert [False, True, False, False] == [not boundary for boundary in boundaries(store).values()]
    assert [None] * 4 == [mem.session(id_).due() for id_ in mem.sessions()]


def test_a_limit_is_of_sessions(store: Store) -> None:
    """So many are worked on at most, the rest later; async as sync."""
    mem = memory(store)

    assert ("a",) == mem.consolidate_due(1)
    assert ("b", "c") == asyncio.run(mem.aconsolidate_due(2))
    for wrong in (0, -1, 1.5, "2"):
        with pytest.raises(ConfigurationError, match="limit must be a whole number of 1 or more"):
            mem.consolidate_due(wrong)  # type: ignore[arg-type]


def test_it_stops_between_two_sessions(store: Store) -> None:
    """What is at work is finished, and what comes after it stays due."""
    answers = iter([False, False, False, True])

    assert ("a", "b") == memory(store).consolidate_due(stop=lambda: next(answers))


def test_a_session_that_fails_keeps_nobody_from_the_others(store: Store) -> None:
    """Its fault is told by an event, and it stays due."""
    events: list[Event] = []

    class Torn(MemoryStore):
        async def commit(self, session: str, *rest: Any) -> bool:
            if session == "a":
                raise OSError("torn")
            return await super().commit(session, *rest)

    torn = Torn()
    torn._sessions = store._sessions  # type: ignore[attr-defined]

    assert ("b", "c") == memory(torn, on_event=events.append).consolidate_due()
    assert [("postponed", "a")] == [(event.kind, event.session) for event in events if event.kind == "postponed"]
    assert ("a",) == memory(store).consolidate_due()


def test_a_summary_is_paid_for_once(store: Store) -> None:
    """A session on which another worker has the lease is left alone, until the lease of one that died has ended."""
    asked: list[str] = []
    now = [1000.0]

    def summarize(messages: Sequence[Any]) -> str:
        asked.append(messages[0]["content"][:1])
        return f"{messages[0]['content'][:1]} spoke of words"

    mem = memory(store, consolidator=summarize, clock=lambda: now[0])
    drive(store.claim("b", 0, Lease("another", 1300.0), 1000.0), "")

    assert ("a", "c") == mem.consolidate_due()
    assert "b" not in asked
    now[0] = 1300.0
    assert ("b",) == mem.consolidate_due()
    assert "b" in asked


def test_an_awaited_summariser_needs_the_async_twin(store: Store) -> None:
    """The sync call says so; the twin does it."""

    async def summarize(messages: Sequence[Any]) -> str:
        await asyncio.sleep(0)
        return "They spoke of words."

    mem = memory(store, consolidator=summarize)

    with pytest.raises(AsyncOnly, match="aconsolidate_due"):
        mem.consolidate_due()
    assert ("a", "b", "c") == asyncio.run(mem.aconsolidate_due())


def test_a_loop_goes_on_until_it_is_told_to_stop() -> None:
    """It looks again at once where something was done, and waits where nothing was."""
    rounds: Iterator[tuple[str, ...]] = iter([("a", "b"), (), ("c",), ()])
    told: list[str] = []
    limits: list[int | None] = []

    class Waiting(Flag):
        def wait(self, timeout: float | None = None) -> bool:
            told.append(f"waits {timeout}")
            if len(told) > 3:
                self.set()
            return self.is_set()

    class Memory:
        def consolidate_due(self, limit: int | None = None, *, stop: Any = None) -> tuple[str, ...]:
            limits.append(limit)
            return next(rounds)

    assert 3 == loop(Memory(), Waiting(), 5.0, 7, lambda line: told.append(line.partition(" in ")[0]))
    assert ["consolidated 2 sessions", "waits 5.0", "consolidated 1 sessions", "waits 5.0"] == told
    assert [7] * 4 == limits


# ---------------------------------------------------------------------- the command


def url_of(path: Path) -> str:
    """A database with one session in which something is due."""
    with SQLiteStore(path) as store:
        talk(memory(store, counter="approximate"), "s", 30)
    return f"sqlite:///{path}"


def test_the_command_works_off_a_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One round with a summariser of one's own, from the folder that it was started in."""
    url = url_of(tmp_path / "chat.db")
    (tmp_path / "own_summaries.py").write_text(
        "def summarize(messages):\n    open('asked', 'w').close()\n    return ''\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    command = [
        "worker",
        "--store",
        url,
        "--max-tokens",
        "100",
        "--counter",
        "approximate",
        "--once",
        "--recall-share",
    ]

    assert 0 == main([*command, "0", "--consolidator", "own_summaries:summarize"])
    assert 0 == main([*command, "0"])
    lines = capsys.readouterr().out.splitlines()
    assert ["consolidated 1 sessions", "stopped after 1 sessions", "stopped after 0 sessions"] == [
        line.partition(" in ")[0] for line in lines
    ]
    assert (tmp_path / "asked").exists()


@pytest.mark.parametrize("place", ["no_such_module:x", "slidemem:no_such_name", ""])
def test_a_summariser_that_is_not_there_is_told(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The error names what was asked for."""
    code = main(["worker", "--store", "sqlite://", "--max-tokens", "100", "--consolidator", place or ":", "--once"])

    assert 2 == code
    assert f"--consolidator {place or ':'}: cannot be imported" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_loop(number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does so in the place of what it does otherwise, which it does again afterwards."""
    before = signal.getsignal(number)
    stopped: list[bool] = []

    def loop_(_: Any, stop: Flag, *__: Any, **___: Any) -> int:
        signal.raise_signal(number)
        stopped.append(stop.is_set())
        return 0

    monkeypatch.setattr("slidemem.cli.loop", loop_)

    assert 0 == main(["worker", "--store", "sqlite://", "--max-tokens", "100", "--counter", "approximate"])
    assert [True] == stopped
    assert before == signal.getsignal(number)


def test_a_worker_ends_gracefully(tmp_path: Path) -> None:
    """On SIGTERM it finishes what it is at, says what it did, and ends with 0."""
    url = url_of(tmp_path / "chat.db")
    command = ["worker", "--store", url, "--max-tokens", "100", "--counter", "approximate", "--every", "60"]
    worker = subprocess.Popen(  # noqa: S603  # our own
        [sys.executable, "-m", "slidemem", *command, "--recall-share", "0"], stdout=subprocess.PIPE, text=True
    )
    assert worker.stdout is not None
    first = worker.stdout.readline()
    worker.send_signal(signal.SIGTERM)
    rest, _ = worker.communicate(timeout=60)

    assert first.startswith("consolidated 1 sessions in ")
    assert (0, "stopped after 1 sessions\n") == (worker.returncode, rest)


def test_a_store_that_knows_better_is_asked() -> None:
    """Where it tells which sessions hold much, no others are read, and profiles are none."""
    asked: list[tuple[int, int | None]] = []

    class Knowing(MemoryStore):
        async def loaded(self, tokens: int, turns: int | None) -> tuple[str, ...]:
            asked.append((tokens, turns))
            return ("b", "slidemem:profile:ann")

    store = Knowing()
    for session in ("a", "b"):
        talk(memory(store), session, 6)

    assert ("b",) == memory(store, window_turns=9).consolidate_due()
    assert [(57, 9)] == asked


def test_candidates_are_read_one_by_one_where_a_store_knows_no_better() -> None:
    """Profiles are no sessions, and a message that is alone is nothing to work on."""
    store = MemoryStore()
    drive(store.append("s", [entry(0, "user", "hello")]), "")
    memory(store).session("s", user_id="ann").profile.set("name", "Ann")

    assert () == memory(store).consolidate_due()
