"""What the documents show runs, and prints what they say it prints."""

from __future__ import annotations

import re
import warnings
from contextlib import nullcontext
from pathlib import Path

import pytest
from pages import DOCS, PAGES, ROOT, named, program, text

from slidemem import SlideMem, count_tokens

ON_SERVERS = DOCS / "stores.md"  # run by tests/servers
RUN = [page for page in PAGES if page != ON_SERVERS and "```python" in page.read_text(encoding="utf-8")]
OTHERS = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the memories that a page replaces


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=OTHERS if page.stem == "migrating" else ()) for page in (ROOT / "README.md", *RUN)],
    ids=named,
)
@pytest.mark.usefixtures("vocabulary")
def test_the_documents_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every Python block of a document runs as it stands, in order."""
    code = program(page)
    monkeypatch.chdir(tmp_path)

    with warnings.catch_warnings(record=True) if page.stem == "migrating" else nullcontext():
        exec(compile(code, named(page), "exec"), {"__name__": page.stem})  # noqa: S102  # our own documents

    assert "slidemem" in code


def test_most_pages_are_run() -> None:
    """The pages with code are found: a pattern that matches nothing would pass over all of them."""
    assert len(RUN) > 8


def test_the_readme_shows_what_its_first_block_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """The output printed in the README is the output of its first block."""
    shown = re.search(r"```text\n(.*?)```", text("README.md"), re.DOTALL)
    assert shown is not None

    exec(re.findall(r"```python\n(.*?)```", text("README.md"), re.DOTALL)[0], {})  # noqa: S102  # our own document

    assert shown.group(1) == capsys.readouterr().out


def test_the_readme_is_read_in_five_minutes() -> None:
    """The README has at most 150 lines, and says in at most 50 words what this is."""
    said = text("README.md").split("\n\n")[1]

    assert len(text("README.md").splitlines()) <= 150
    assert len(said.split()) <= 50


def one_liners() -> list[str]:
    """The code in the second column of the table of wishes."""
    wishes = text("docs/options.md").partition("## Every option")[0]
    rows = re.findall(r"^\| .* \| (.*) \|$", wishes, re.MULTILINE)
    codes = [code for row in rows for code in re.findall(r"`([^`]+)`", row)]
    return [code for code in codes if code.endswith((")", ".tokens", ".receipt")) and not code.startswith("await")]


@pytest.mark.parametrize("code", one_liners())
@pytest.mark.usefixtures("vocabulary")
def test_each_line_of_the_table_runs(code: str) -> None:
    """Each one-liner of the table of wishes runs with the names that the page uses."""
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
