"""Builds wheel and sdist, and tries the wheel in empty environments: `make wheel`.

Each row is a Python, an extra (or none), and the newest or the lowest dependencies that pyproject.toml allows. On
this Python each extra is tried alone; on the others none and all of them, the lowest on the oldest.
`--each 3.12 3.13` tries each extra alone there, and nothing else.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path

ROOT = Path(__file__).parents[2]
UV = str(Path(sys.executable).with_name("uv"))
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
THIS = f"{sys.version_info.major}.{sys.version_info.minor}"
IN_WHEEL = ("slidemem/stores/postgres.sql", "slidemem/stores/redis.lua", "slidemem/data/travel_support.json")
IN_SDIST = ("docs", "tests", "benchmarks", "notebooks", "Makefile", "CHANGELOG.md", "mkdocs.yml")


@dataclass(frozen=True)
class Row:
    """One environment."""

    python: str
    extra: str
    lowest: bool

    def __str__(self) -> str:
        return f"{self.python:5} {self.extra or 'none':17} {'lowest' if self.lowest else 'newest'}"


@dataclass(frozen=True)
class Wheel:
    """The wheel, and what its metadata say it needs."""

    path: Path
    extras: tuple[str, ...]
    needs: tuple[str, ...]

    def needed(self, extra: str) -> list[str]:
        """Its requirements with an extra, each as one given on the command line, so that `lowest` is about it."""
        named = {extra} if extra != "all" else set(self.extras)
        plain = [need for need in self.needs if "extra ==" not in need]
        asked = [need for need in self.needs if any(f"extra == '{name}'" in need for name in named)]
        return [need.partition(";")[0].strip() for need in plain + asked if not need.startswith("slidemem")]


def run(*command: str, cwd: Path | None = None) -> str:
    """A command's output.

    Raises:
        RuntimeError: it ended with another code than 0; with what it said last.
    """
    clean = {name: value for name, value in os.environ.items() if name not in {"VIRTUAL_ENV", "PYTHONPATH"}}
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, env=clean)  # noqa: S603  # our own
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:4])} ...: {done.returncode}\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def built(out: Path) -> Wheel:
    """Build sdist and wheel, the wheel from the sdist, and look into both."""
    run(UV, "build", "--quiet", "--out-dir", str(out), str(ROOT))
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    with tarfile.open(sdist) as packed:
        tops = {name.split("/")[1] for name in packed.getnames()}
    lacking = [name for name in IN_SDIST if name not in tops and (ROOT / name).exists()]
    with zipfile.ZipFile(wheel) as packed_wheel:
        held = set(packed_wheel.namelist())
        (metadata,) = (name for name in held if name.endswith(".dist-info/METADATA"))
        told = message_from_bytes(packed_wheel.read(metadata))
    typed = [f"{name}/py.typed" for name in ("slidemem", "langchain_slidemem", "llamaindex_slidemem")]
    lacking += [name for name in (*IN_WHEEL, *typed) if name not in held]
    foreign = sorted(
        {name.split("/")[0] for name in held} - {"slidemem", "langchain_slidemem", "llamaindex_slidemem"}
    )
    if lacking or len(foreign) != 1:
        raise RuntimeError(f"lacking: {lacking}; beside the packages: {foreign}")
    return Wheel(wheel, tuple(told.get_all("Provides-Extra", [])), tuple(told.get_all("Requires-Dist", [])))


def interpreters() -> dict[str, str]:
    """The Pythons of this machine that slidemem supports: on the path, or pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    found = {}
    for version in PYTHONS:
        beside = sorted(pyenv.glob(f"{version}.*/bin/python"))
        try:
            wanted = str(beside[-1]) if beside else version
            found[version] = run(UV, "python", "find", "--no-python-downloads", wanted).strip()
        except RuntimeError:
            print(f"{version:5} not on this machine, not tried")
    return found


def tried(row: Row, wheel: Wheel, python: str) -> tuple[Row, float, str]:
    """A row, how long it took in seconds, and what went wrong with it."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        env = Path(folder, "env")
        inside = str(env / "bin" / "python")
        wanted = [f"slidemem{f'[{row.extra}]' if row.extra else ''} @ {wheel.path.as_uri()}"]
        lowest = ["--resolution", "lowest-direct", *wheel.needed(row.extra)] if row.lowest else []
        try:
            run(UV, "venv", "--quiet", "--python", python, str(env))
            run(UV, "pip", "install", "--quiet", "--no-build", "--python", inside, *wanted, *lowest)
            smoke = [str(ROOT / "tests/packaging/smoke.py"), str(ROOT / "README.md")]
            run(inside, "-I", *smoke, *([row.extra] if row.extra else []), cwd=Path(folder))
        except RuntimeError as fault:
            return row, time.monotonic() - began, str(fault)
    return row, time.monotonic() - began, ""


def _is_tried(python: str, extra: str, *, lowest: bool) -> bool:
    """Whether a row is one of those that every run tries."""
    return python == THIS or (extra in {"", "all"} and (not lowest or python == PYTHONS[0]))


def main() -> int:
    """Try each row, two at a time; 1 when one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--each", nargs="+", choices=PYTHONS, default=[], help="try each extra on these Pythons alone"
    )
    each = parser.parse_args().each
    with tempfile.TemporaryDirectory() as folder:
        wheel = built(Path(folder))
        pythons = interpreters()
        rows = [
            Row(python, extra, lowest)
            for python in pythons
            for extra in ("", *wheel.extras)
            for lowest in (False, True)
            if (python in each if each else _is_tried(python, extra, lowest=lowest))
        ]
        failed = 0
        with ThreadPoolExecutor(2) as pool:
            for row, seconds, fault in pool.map(lambda row: tried(row, wheel, pythons[row.python]), rows):
                print(f"{row}  {seconds:5.1f} s  {'failed' if fault else 'works'}", flush=True)
                failed += bool(fault)
                if fault:
                    print(fault)
    on = ", ".join(sorted({row.python for row in rows}, key=PYTHONS.index))
    print(f"{len(rows) - failed} of {len(rows)} environments work, on {on}")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
