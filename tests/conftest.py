"""Fixtures that several test files share."""

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

pytest.register_assert_rewrite("slidemem.contract")

# The same examples in each run, and no clock: how busy a machine is fails no test.
hypothesis.settings.register_profile("the same each time", derandomize=True, deadline=None)
hypothesis.settings.load_profile("the same each time")

NO_SERVER = "no server: "


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in the last lines how many tests did not run because their server cannot be reached."""
    reasons = [str(report.longrepr[-1]) for report in terminalreporter.stats.get("skipped", ())]
    without = [reason.partition(NO_SERVER)[2] for reason in reasons if NO_SERVER in reason]
    for server in sorted(set(without)):
        terminalreporter.write_line(f"NOT RUN: {without.count(server)} tests, for want of a server: {server}.")
        terminalreporter.write_line(
            "Its files are left out of coverage. Start it (docs/stores.md), or set SLIDEMEM_POSTGRES, SLIDEMEM_REDIS."
        )


@pytest.fixture(scope="session")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Point tiktoken to the vocabularies that llama-index-core ships, so that no test needs a network.

    To a copy of them, because tiktoken deletes a file whose hash is not what it expects.
    """
    package = importlib.util.find_spec("llama_index") and importlib.util.find_spec("llama_index.core")
    if package is None or package.origin is None:
        pytest.fail("the tests take tiktoken's vocabularies from llama-index-core: pip install llama-index-core")
    folder = tmp_path_factory.mktemp("tiktoken") / "cache"
    shutil.copytree(Path(package.origin).parent / "_static" / "tiktoken_cache", folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
        yield folder
