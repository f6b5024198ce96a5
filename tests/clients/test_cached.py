"""What a provider reports of cached tokens agrees with what the memory says of itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from client_script import BUDGET, lines
from lc_clients import History
from strict_provider import Ledger, StrictProvider, running

pytestmark = [  # the clients' own
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def provider(vocabulary: object) -> Iterator[StrictProvider]:
    """A server that counts shared prefixes to the token."""
    with running(BUDGET, ledger=Ledger(exact=True)) as served:
        yield served


def test_the_provider_counts_what_the_memory_counts(provider: StrictProvider, tmp_path: Path) -> None:
    """Prompt tokens are the same; cached ones are those of `stats()`, and what else of a message was the same."""
    surface = History("template", provider, "invoke", tmp_path)

    for line in lines(60, tools=False, think=False, pictures=False):
        surface.say(line)
    ours = surface.history.session.stats()

    assert [] == provider.refused
    assert ours.prompt_tokens == provider.prompts
    assert 0 <= provider.cached / provider.prompts - ours.prefix_reuse < 0.05
