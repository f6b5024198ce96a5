"""LlamaIndex's real clients against the strict provider, through its engines and agents with our memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from client_script import BUDGET, lines
from li_clients import MODES, SURFACES, THINKS, Surface
from strict_provider import StrictProvider, running

pytestmark = [  # the clients' own: what they call, and connections that they leave to the garbage collector
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

CLIENTS = ["openai", "responses", "like", "anthropic", "gemini", "template"]
WHOLE = {(0, 0)}  # run whole: a client and a surface; `make clients` runs all of them whole
EVERYTHING = bool(os.environ.get("SLIDEMEM_CLIENTS"))


@pytest.fixture(scope="module")
def served(vocabulary: object) -> Iterator[StrictProvider]:
    """A server for the tests of this file."""
    with running(BUDGET) as provider:
        yield provider


def session(surface: Surface, turns: int) -> tuple[int, int]:
    """A whole session: turns said, and turns broken off."""
    said = broken = 0
    for line in lines(turns, tools=surface.tools, think=surface.name in THINKS, pictures=surface.pictures):
        if line.kind == "interrupted":
            surface.break_off(line)
            broken += 1
            continue
        if line.kind == "restart":
            surface.open()
        if surface.takes_paste or len(line.text) < BUDGET:
            surface.say(line)
            said += 1
    return said, broken


def matrix() -> Iterator[tuple[str, str, str, int]]:
    """Surface, client, mode and turns; a template without tools has no agents."""
    for at, client in enumerate(CLIENTS):
        for down, surface in enumerate(SURFACES):
            modes = [mode for mode in MODES if not SURFACES[surface].tools or mode.startswith("a")]
            for across, mode in enumerate(modes):
                if client == "template" and (SURFACES[surface].tools or surface != "simple"):
                    continue
                if EVERYTHING:
                    yield surface, client, mode, 200
                elif (at + down) % len(modes) == across:
                    short = 20 if SURFACES[surface].tools else 40
                    yield surface, client, mode, 200 if (at, down) in WHOLE else short


@pytest.mark.parametrize("surface, client, mode, turns", list(matrix()))
def test_nothing_is_refused(
    served: StrictProvider, tmp_path: Path, surface: str, client: str, mode: str, turns: int
) -> None:
    """Every request of a session is taken, inside the model's window, and nothing of it is lost."""
    served.clear(limit=BUDGET)
    used = SURFACES[surface](client, served, mode, tmp_path)

    said, broken = session(used, turns)
    told, written = [message.role.value for message in used.memory.get_all()], used.written

    assert [] == served.refused
    assert said <= told.count("user") <= said + broken
    assert written >= (20 if turns == 200 else 1)
