"""A model without a public tokenizer: the memory counts with another one's, and follows what the replies report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from client_script import BUDGET, Line, lines
from lc_clients import SURFACES as LC_SURFACES
from lc_clients import Surface
from li_clients import SURFACES as LI_SURFACES
from llama_index.core.instrumentation import get_dispatcher
from strict_provider import Ledger, StrictProvider, running

from llamaindex_slidemem import follow_usage

pytestmark = [  # the clients' own
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

DEARER = 1.35
TURNS = 40


@pytest.fixture(scope="module")
def served(vocabulary: object) -> Iterator[StrictProvider]:
    """A server whose tokenizer makes 1.35 tokens of one of tiktoken's."""
    with running(BUDGET) as provider:
        yield provider


@pytest.fixture
def provider(served: StrictProvider) -> StrictProvider:
    """The server, as new."""
    served.clear(limit=BUDGET, ledger=Ledger(DEARER))
    return served


def session() -> Iterator[Line]:
    """Turns without a paste, a picture or an interruption: what is measured is the tokenizer."""
    return (line for line in lines(TURNS, tools=False, think=False, pictures=False) if len(line.text) < BUDGET)


def refusals(surface: Any, provider: StrictProvider) -> int:
    """How many turns of a session are refused."""

    def is_refused(line: Line) -> bool:
        try:
            surface.say(line)
        except Exception:  # noqa: BLE001  # each client has its own error; the server says which rule it was
            return True
        return False

    failed = sum(map(is_refused, session()))
    assert {"context-length"} >= {line.split(": ")[1] for line in provider.refused}
    return failed


@pytest.mark.parametrize("name", LC_SURFACES)
@pytest.mark.parametrize("follows", [True, False])
def test_langchain_stays_inside_the_real_window(
    provider: StrictProvider, tmp_path: Path, name: str, *, follows: bool
) -> None:
    """With `correct_counts` nothing is over the limit; without, turns are refused from the first full window on."""

    class Following(LC_SURFACES[name]):  # type: ignore[misc]  # a base by its name
        def open(self) -> None:
            self.options["correct_counts"] = follows
            super().open()

    surface: Surface = Following("openai", provider, "invoke", tmp_path)

    assert follows == (refusals(surface, provider) == 0)


@pytest.mark.parametrize("name", ["simple", "agent"])
@pytest.mark.parametrize("follows", [True, False])
def test_llamaindex_stays_inside_the_real_window(
    provider: StrictProvider, tmp_path: Path, name: str, *, follows: bool
) -> None:
    """The same in an engine and an agent, where the framework's events tell what was counted."""
    surface: Any = LI_SURFACES[name]("openai", provider, "achat", tmp_path)
    surface.memory.options = {**surface.memory.options, "reserve_tokens": 150, "correct_counts": follows}
    handler = follow_usage(surface.memory)

    try:
        assert follows == (refusals(surface, provider) == 0)
    finally:
        get_dispatcher().event_handlers.remove(handler)
