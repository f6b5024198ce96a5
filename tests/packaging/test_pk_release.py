"""What a release is held to, and what the workflows call."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from released import faults

ROOT = Path(__file__).parents[2]
MODULE = '__version__ = "1.2.0"\n'


@pytest.mark.parametrize(
    "tag, changelog, expected",
    [
        ("v1.2.0", "## 1.2.0 (2026-11-30)\n", []),
        ("v1.2.0", "## Unreleased\n", ["CHANGELOG.md has no heading '## 1.2.0 (YYYY-MM-DD)'"]),
        ("v1.3.0", "## 1.3.0 (2026-11-30)\n", ["the tag is v1.3.0, the version is 1.2.0"]),
    ],
)
def test_a_tag_is_released_with_its_version_and_its_changes(tag: str, changelog: str, expected: list[str]) -> None:
    """The tag is the version's, and the changelog tells its changes under a date."""
    assert expected == faults(tag, MODULE, changelog)


def test_a_module_without_a_version_is_not_released() -> None:
    """The fault is told, and nothing raises."""
    assert ["the tag is v1.2.0, the version is nowhere"] == faults("v1.2.0", "", "## 1.2.0 (2026-11-30)\n")


@pytest.mark.parametrize("path", sorted((ROOT / ".github/workflows").glob("*.yml")), ids=lambda path: path.name)
def test_workflows_call_what_is_there(path: Path) -> None:
    """Each command of a workflow is a target of the Makefile, or a file of the repository."""
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job.get("steps", ()) if "run" in step]
    targets = re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    called = [command.split() for command in commands]

    assert called
    assert [] == [words for words in called if words[0] == "make" and words[1] not in targets]
    assert [] == [
        word for words in called for word in words if word.endswith((".py", "/run")) and not (ROOT / word).exists()
    ]


def test_each_supported_python_is_tested() -> None:
    """The matrix, the classifiers and what pyproject.toml demands name the same versions."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    classified = re.findall(r"Python :: (3\.\d+)", project)
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))["jobs"]

    assert {"tests", "wheel"} == {name for name, job in jobs.items() if "strategy" in job}
    assert [classified] * 2 == [job["strategy"]["matrix"]["python"] for job in jobs.values() if "strategy" in job]
    assert f'requires-python = ">={classified[0]}"' in project
