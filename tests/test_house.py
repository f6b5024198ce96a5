"""The house: what may import what, and what the documents show runs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from slidemem import SlideMem, count_tokens
from slidemem.cli import main

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
FIGURES = ["facts there when needed", "re-used from the prompt before", "tokens that are new to a cache"]
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


def test_importing_the_core_loads_no_framework() -> None:
    """`import slidemem` brings in neither framework, nor rich."""
    code = "import sys, slidemem; print(sorted({m.partition('.')[0] for m in sys.modules}))"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout  # noqa: S603  # our own code

    assert set() == (FRAMEWORKS | {"rich"}) & set(ast.literal_eval(loaded))


def blocks(path: str) -> str:
    """The Python blocks of a document, as one program."""
    return "\n".join(re.findall(r"```python\n(.*?)```", (ROOT / path).read_text(encoding="utf-8"), re.DOTALL))


@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        *(
            f"docs/{name}.md"
            for name in ("core", "state", "recall", "providers", "langchain", "llamaindex", "notebooks")
        ),
    ],
)
def test_the_documents_run(path: str) -> None:
    """Every Python block of a document runs as it stands, in order."""
    program = blocks(path)

    exec(compile(program, path, "exec"), {"__name__": path})  # noqa: S102  # our own documents

    assert "slidemem" in program


def test_the_readme_shows_what_its_first_block_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """The output printed in the README is the output of its first block."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"```text\n(.*?)```", text, re.DOTALL)
    assert shown is not None

    exec(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0], {})  # noqa: S102  # our own document

    assert shown.group(1) == capsys.readouterr().out


def test_the_readme_tells_the_figures_of_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    """The table in the README is what the demo comes to."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    main(["demo"])
    figures = capsys.readouterr().out
    found = [re.search(rf"{name} +(\S.*?)  +(\S.*?) *$", figures, re.MULTILINE) for name in FIGURES]

    expected = [
        f"| {ours.replace('%', ' %')} | {theirs.replace('%', ' %')} |"
        for ours, theirs in (f.groups() for f in found if f)
    ]
    assert 3 == len(expected)
    assert [] == [row for row in expected if row not in text]


def one_liners() -> list[str]:
    """The code in the second column of the core's table."""
    rows = re.findall(r"^\| .* \| (.*) \|$", (ROOT / "docs/core.md").read_text(encoding="utf-8"), re.MULTILINE)
    codes = [code for row in rows for code in re.findall(r"`([^`]+)`", row)]
    return [code for code in codes if code.endswith((")", ".tokens", ".receipt")) and not code.startswith("await")]


@pytest.mark.parametrize("code", one_liners())
@pytest.mark.usefixtures("vocabulary")
def test_each_line_of_the_table_runs(code: str) -> None:
    """Each one-liner of the core's table runs with the names the document uses."""
    mem = SlideMem(max_tokens=4000, counter="approximate")
    chat, messages = mem.session("s"), [{"role": role, "content": "hi"} for role in ("user", "assistant")]
    chat.append(messages)
    names = {
        "SlideMem": SlideMem,
        "count_tokens": count_tokens,
        "mem": mem,
        "chat": chat,
        "messages": messages,
        "N": 3,
    }

    exec(code, names)  # noqa: S102  # our own document

    assert (code != "chat.clear()") == bool(chat.transcript())


def test_the_table_is_read_whole() -> None:
    """The one-liners are found: a pattern that matches nothing would pass over all of them."""
    assert len(one_liners()) > 20
