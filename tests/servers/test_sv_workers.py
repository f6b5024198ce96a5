"""Many processes on one store: what they say, what they see, and what is left when they are killed."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
import sv_work
from sv_places import Place, needed, run, talking
from sv_work import Spec

from slidemem.driver import drive
from slidemem.errors import StoreError
from slidemem.messages import user

ROUNDS = 8  # turns of each worker
KILLS = int(os.environ.get("SLIDEMEM_KILLS", "10"))
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["slidemem.testing", *(f"slidemem.stores.{name}" for name in sv_work.KINDS)])
WORKERS = {"postgres": 16, "redis": 16, "sqlite": 8}


@pytest.fixture(params=["postgres", "redis", "sqlite"])
def spec(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Spec]:
    """A store that processes share, empty at first."""
    if request.param == "sqlite":
        yield "sqlite", str(tmp_path / "chat.db"), {}
        return
    place = Place(request.param)
    yield request.param, place.url, {"prefix": place.fresh(), "connections": 2}
    place.close()


class Crew:
    """Worker processes, each with a log of what was acknowledged.

    Args:
        spec: of the store.
        sessions: of the workers, by number.
        folder: for logs.
        rounds: turns of each.
    """

    def __init__(self, spec: Spec, sessions: Sequence[str], folder: Path, rounds: int = ROUNDS) -> None:
        self.spec, self.sessions, self.rounds = spec, sessions, rounds
        self.logs = [folder / f"{who}.log" for who in range(len(sessions))]
        self.processes = [self.start(who) for who in range(len(sessions))]

    def __enter__(self) -> Crew:  # noqa: PYI034  # typing.Self is of Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.join()

    def start(self, who: int) -> BaseProcess:
        """A process that goes on where this worker was."""
        arguments = (self.spec, who, self.sessions[who], self.rounds, self.logs[who])
        process = CONTEXT.Process(target=sv_work.speak, args=arguments)
        process.start()
        return process

    def kill(self, chance: random.Random) -> bool:
        """Kill one of those that live where it stands, and have another process go on; False when none lives."""
        living = [who for who, process in enumerate(self.processes) if process.is_alive()]
        if living:
            who = chance.choice(living)
            self.processes[who].kill()
            self.processes[who].join()
            self.processes[who] = self.start(who)
        return bool(living)

    def said(self) -> int:
        """Turns that were acknowledged."""
        return sum(map(sv_work.acknowledged, self.logs))

    def until(self, turns: int) -> None:
        """Wait until so many turns were acknowledged, or all workers have ended."""
        while self.said() < turns and any(process.is_alive() for process in self.processes):
            time.sleep(0.005)

    def end(self) -> list[int | None]:
        """How the workers ended."""
        for process in self.processes:
            process.join(120)
        return [process.exitcode for process in self.processes]

    def check(self) -> None:
        """Each session holds what its workers said, each turn once."""
        store = sv_work.opened(self.spec)
        for session in sorted(set(self.sessions)):
            workers = [who for who, its in enumerate(self.sessions) if its == session]
            sv_work.settled(drive(store.whole(session), ""), session, workers, self.rounds)
            sv_work.look(session, drive(store.snapshot(session), ""))
        store.close()
        assert set(self.sessions) == set(sv_work.sessions_of(self.spec))


@pytest.mark.parametrize("shared", [True, False], ids=["one session", "a session each"])
def test_processes_speak_at_once(spec: Spec, tmp_path: Path, shared: bool) -> None:  # noqa: FBT001
    """Every turn is there once, in its caller's order, each span is archived once, and nobody saw a gap."""
    count = WORKERS[spec[0]]
    with Crew(spec, ["all" if shared else f"s{who}" for who in range(count)], tmp_path) as crew:
        assert [0] * count == crew.end()
        crew.check()


def test_killed_workers_lose_nothing(spec: Spec, tmp_path: Path) -> None:
    """Whoever is killed, what it was told is kept is there, and what the next one sends again is there once."""
    count = WORKERS[spec[0]] // 2
    chance, killed = random.Random(1), 0
    with Crew(spec, ["a" if who % 2 else "b" for who in range(count)], tmp_path, rounds=4 + KILLS) as crew:
        for at in range(KILLS):
            crew.until((at + 1) * count)
            killed += crew.kill(chance)

        assert [0] * count == crew.end()
        assert KILLS == killed
        crew.check()


@pytest.mark.parametrize("name", ["postgres", "redis"])
def test_connections_that_are_ended_lose_nothing(name: str, tmp_path: Path) -> None:
    """Where the server ends connections in the middle of whatever they do, callers call again and all is well."""
    place, mark, ended = Place(name), f"ended_{os.getpid()}", 0
    url = f"{place.url}?{'application_name' if name == 'postgres' else 'client_name'}={mark}"
    spec = (name, url, {"prefix": place.fresh(), "connections": 2})
    with Crew(spec, ["a", "b"] * 3, tmp_path, 16) as crew:
        for at in range(10):
            crew.until(at * 6 + 1)
            ended += end_connections(name, mark)

        assert [0] * 6 == crew.end()
        assert ended >= 10
        crew.check()
    place.close()


def end_connections(name: str, mark: str) -> int:
    """End the connections that bear a mark, and say how many there were."""
    if name == "postgres":
        return len(run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", mark))
    with talking() as client:
        marked = [one["addr"] for one in client.client_list() if one["name"] == mark]
        for address in marked:
            client.execute_command("CLIENT", "KILL", "ADDR", address)
        return len(marked)


# ---------------------------------------------------------------------- a server that ends


def free_port() -> int:
    """A port that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def as_postgres(*command: str) -> None:
    """Run a program of PostgreSQL, which refuses to be root."""
    first = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    subprocess.run([*first, *command], check=True, cwd="/", stdout=subprocess.DEVNULL, timeout=120)  # noqa: S603  # our own


class PrivatePostgres:
    """A server of the test's own, in a folder of its own."""

    def __init__(self, _: Path) -> None:
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
        if not programs:
            needed("postgres")
            pytest.skip("no server: postgres (its programs are not on this machine)")
        self.bin, self.port = programs[-1].parent, free_port()
        self.data = Path(tempfile.mkdtemp(prefix="slidemem-"))  # pytest's folders are closed to other users
        if os.getuid() == 0:
            shutil.chown(self.data, "postgres")
        as_postgres(str(self.bin / "initdb"), "-D", str(self.data), "-U", "postgres", "--auth=trust")

    def start(self) -> None:
        """Start it, or start it again."""
        options = f"-p {self.port} -k {self.data} -c listen_addresses=127.0.0.1"
        log = str(self.data / "log")
        as_postgres(str(self.bin / "pg_ctl"), "-D", str(self.data), "-w", "-l", log, "-o", options, "start")

    def stop(self) -> None:
        """Kill it: nothing is written that was not written yet."""
        as_postgres(str(self.bin / "pg_ctl"), "-D", str(self.data), "-m", "immediate", "stop")

    @property
    def url(self) -> str:
        """Of its database."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"


class PrivateRedis:
    """A server of the test's own, in a folder, that keeps an append-only file."""

    def __init__(self, folder: Path) -> None:
        if not shutil.which("redis-server"):
            needed("redis")
            pytest.skip("no server: redis (its program is not on this machine)")
        self.folder, self.port = folder, free_port()

    def start(self) -> None:
        """Start it, or start it again, and wait until it has read its file."""
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--save", ""]
        command = ["redis-server", *options, "--appendonly", "yes", "--appendfsync", "always"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # noqa: S603  # our own
        ping = ["redis-cli", "-p", str(self.port), "ping"]
        while b"PONG" not in subprocess.run(ping, capture_output=True, check=False).stdout:  # noqa: S603  # our own
            assert self.process.poll() is None, f"redis-server ended with {self.process.poll()}"
            time.sleep(0.02)

    def stop(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()

    @property
    def url(self) -> str:
        """Of it."""
        return f"redis://127.0.0.1:{self.port}/0"


@contextmanager
def private(kind: Any, folder: Path) -> Iterator[Any]:
    """A server that runs."""
    server = kind(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(getattr(server, "data", folder), ignore_errors=True)


@pytest.mark.parametrize("kind", [PrivatePostgres, PrivateRedis])
def test_a_server_that_is_killed_loses_nothing(kind: Any, tmp_path: Path) -> None:
    """What was acknowledged before the server was killed is there when it runs again, and callers go on."""
    with private(kind, tmp_path) as server:
        name = "postgres" if kind is PrivatePostgres else "redis"
        options = {"connections": 2, "busy_seconds": 2.0}
        with Crew((name, server.url, options), ["a", "b", "a", "b"], tmp_path, 12) as crew:
            crew.until(16)
            server.stop()
            server.start()

            assert [0] * 4 == crew.end()
            assert 48 == crew.said()
            crew.check()


# ---------------------------------------------------------------------- a disk that is full


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(place)]
    if os.getuid() != 0 or subprocess.run(mount, check=False).returncode:  # noqa: S603  # our own
        pytest.skip("only root may make a small file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)  # noqa: S603, S607  # our own


def test_a_disk_that_is_full_harms_nothing_that_is_there(small_disk: Path) -> None:
    """A write for which there is no room raises and changes nothing; what is there is read, and goes on with room."""
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 500_000)
    with sv_work.opened(("sqlite", str(small_disk / "chat.db"), {})) as store:
        mem, said = sv_work.memory(store), []
        mem.session("kept").append(sv_work.turn("kept", 0, 0))
        large = {"role": "user", "content": "many words " * 10_000}

        def fill() -> None:
            while len(said) < 100:
                mem.session("large").append(large)
                said.append(large["content"])

        with pytest.raises(StoreError, match=r"full.*make room on its disk"):
            fill()

        assert said == [message.text for message in mem.session("large").transcript()] != []
        assert 2 == len(mem.session("kept").transcript())
        ballast.unlink()
        mem.session("kept").append(sv_work.turn("kept", 0, 1))
        assert 4 == len(mem.session("kept").transcript())


# ---------------------------------------------------------------------- planted faults


def test_the_checks_notice_what_they_are_for(tmp_path: Path) -> None:
    """A turn lost, said twice or out of order, a span archived twice, and a gap before the window are found."""
    spec = ("sqlite", str(tmp_path / "chat.db"), {})
    for at in range(2):
        sv_work.speak(spec, at, "s", 8, tmp_path / f"{at}.log")
    store = sv_work.opened(spec)
    whole, seen = drive(store.whole("s"), ""), drive(store.snapshot("s"), "")
    store.close()
    twice = (*whole.segments, replace(whole.segments[0], id="again"))
    entries = whole.entries

    sv_work.settled(whole, "s", [0, 1], 8)
    for wrong in (
        replace(whole, entries=entries[2:]),
        replace(whole, entries=(*entries, *entries[:2])),
        replace(whole, entries=(*entries[2:4], *entries[:2], *entries[4:])),
        replace(whole, segments=twice),
        replace(whole, segments=whole.segments[1:]),
    ):
        with pytest.raises(AssertionError):
            sv_work.settled(wrong, "s", [0, 1], 8)
    sv_work.look("s", seen)
    for torn in (
        replace(seen, live=seen.live[1:]),
        replace(seen, record=replace(seen.record, boundary=seen.record.boundary - 1)),
        replace(seen, live=(replace(seen.live[0], message=user("t")), *seen.live[1:])),
    ):
        with pytest.raises(AssertionError):
            sv_work.look("s", torn)
