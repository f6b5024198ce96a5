"""The house: what may import what."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CORE = ROOT / "slidemem"
PURE = [
    *(
        "messages",
        "media",
        "present",
        "tokens",
        "estimate",
        "units",
        "state",
        "archive",
        "retention",
        "wishes",
        "head",
        "merge",
        "facts",
        "terms",
        "recall",
        "index",
        "quote",
        "post",
        "lines",
        "fusion",
    ),
    *("request", "accept", "extract", "language", "cues", "corrections", "costs"),
    *("consolidate", "plan", "leaving", "compose", "question", "align", "prompts", "config"),
    *("usage", "checked"),
    *("blocks", "show/rows", "show/html"),
    *(
        f"check/{room}"
        for room in ("__init__", "rule", "reading", "roles", "content", "calls", "results", "thinking")
    ),
]
EFFECTS = {
    "asking",
    "breaker",
    "cli",
    "conversation",
    "driver",
    "events",
    "export",
    "flow",
    "meaning",
    "memory",
    "profile",
    "recollect",
    "replay",
    "rewind",
    "schedule",
    "search",
    "session",
    "settle",
    "show",
    "stores",
    "vectors",
    "worker",
}
IMPURE = {"asyncio", "time", "random", "datetime", "os", "pathlib", "socket", "sqlite3", "rich"}
FRAMEWORKS = {"langchain", "langchain_core", "langgraph", "llama_index"}


def imports(path: Path) -> set[str]:
    """Full names of what a file imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


@pytest.mark.parametrize("name", PURE)
def test_pure_files_stay_pure(name: str) -> None:
    """A file that decides imports no store, no flow, no clock, no event loop and no framework."""
    named = imports(CORE / f"{name}.py")

    tops = {module.partition(".")[0] for module in named}
    pure = {f"slidemem.{one.replace('/', '.')}" for one in PURE}
    others = {module for module in named if not {module, module.rpartition(".")[0]} & pure}
    inner = {module.split(".")[1] for module in others if module.startswith("slidemem.")}

    assert set() == tops & (IMPURE | FRAMEWORKS)
    assert set() == inner & EFFECTS


@pytest.mark.parametrize("path", sorted(CORE.rglob("*.py")), ids=lambda path: path.relative_to(CORE).as_posix())
def test_every_module_says_what_it_decides(path: Path) -> None:
    """Each file of the core has a docstring, and none imports a framework."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))

    assert docstring
    assert set() == {module.partition(".")[0] for module in imports(path)} & FRAMEWORKS


ADAPTERS = {"langchain_slidemem": "llama_index", "llamaindex_slidemem": "langchain_core"}
PUBLIC = {"slidemem", "slidemem.errors", "slidemem.testing"}


@pytest.mark.parametrize(
    "path", [path for name in ADAPTERS for path in sorted((ROOT / name).glob("*.py"))], ids=lambda path: path.stem
)
def test_an_adapter_imports_what_is_public(path: Path) -> None:
    """An adapter reaches the core by its public names alone, and knows one framework."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    tops = {module.partition(".")[0] for module in imports(path)}

    assert ast.get_docstring(tree)
    assert set() == {module for module in named if module.partition(".")[0] == "slidemem"} - PUBLIC
    assert tops & {"langchain_slidemem", "llamaindex_slidemem"} <= {path.parent.name}
    assert ADAPTERS[path.parent.name] not in tops


NEEDED = {"annotated_types", "pydantic", "pydantic_core", "slidemem", "tiktoken", "tiktoken_ext"}
NEEDED |= {"typing_extensions", "typing_inspection"}


def test_importing_the_core_loads_no_framework() -> None:
    """`import slidemem` brings in neither framework, nor an extra: its two dependencies and theirs, no more."""
    code = "import sys; before = set(sys.modules); import slidemem; print(sorted(set(sys.modules) - before))"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout  # noqa: S603  # our own code

    tops = {name.partition(".")[0] for name in ast.literal_eval(loaded)}
    foreign = {name for name in tops - sys.stdlib_module_names if not name.startswith("_")}
    assert {"slidemem", "pydantic"} <= foreign <= NEEDED


def test_the_layout_names_each_file_of_the_core() -> None:
    """The ten lines of CONTRIBUTING.md are ten, and have every file and folder of the core."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    lines = re.findall(
        r"^    (.+)$", text.partition("## The layout in ten lines")[2].partition("\n## ")[0], re.MULTILINE
    )
    named = {word.strip("/") for line in lines for word in line.split()}
    files = {path.stem for path in CORE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}

    assert 10 == len(lines)
    assert set() == files - named - {"__init__", "__main__"}
