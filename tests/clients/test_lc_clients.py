"""LangChain's real clients against the strict provider, through each surface of ours."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from client_script import BUDGET, lines
from lc_clients import CALLS_TOOLS, SURFACES, THINKS, Surface
from strict_provider import StrictProvider, running

pytestmark = [  # the clients' own: what they call, and connections that they leave to the garbage collector
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

MODES = ["invoke", "ainvoke", "stream", "astream"]
CLIENTS = ["openai", "responses", "anthropic", "gemini", "bedrock", "template"]
WHOLE = {(4, 1)}  # run whole: a client and a surface; `make clients` runs all of them whole
EVERYTHING = bool(os.environ.get("SLIDEMEM_CLIENTS"))


@pytest.fixture(scope="module")
def served(vocabulary: object) -> Iterator[StrictProvider]:
    """A server for the tests of this file."""
    with running(BUDGET) as provider:
        yield provider


def session(surface: Surface, turns: int) -> None:
    """A whole session."""
    for line in lines(turns, tools=surface.name in CALLS_TOOLS, think=surface.name in THINKS):
        if line.kind == "interrupted":
            surface.break_off(line)
            continue
        if line.kind == "restart":
            surface.open()
        surface.say(line)


def matrix() -> Iterator[tuple[str, str, str, int]]:
    """Surface, client, mode and turns."""
    for at, client in enumerate(CLIENTS):
        for down, surface in enumerate(SURFACES):
            for across, mode in enumerate(MODES):
                if EVERYTHING:
                    yield surface, client, mode, 200
                elif (at + down) % 4 == across:
                    yield surface, client, mode, 200 if (at, down) in WHOLE else 20


@pytest.mark.parametrize("surface, client, mode, turns", list(matrix()))
def test_nothing_is_refused(
    served: StrictProvider, tmp_path: Path, surface: str, client: str, mode: str, turns: int
) -> None:
    """Every request of a session is taken, inside the model's window, and nothing of it is lost."""
    served.clear(limit=BUDGET)
    used = SURFACES[surface](client, served, mode, tmp_path)

    session(used, turns)
    told, written = used.said, used.consolidations

    assert [] == served.refused
    assert turns == sum(message.type == "human" for message in told)
    assert written >= (20 if turns == 200 else 1)
