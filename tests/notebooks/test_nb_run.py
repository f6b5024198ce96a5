"""The check of notebooks finds what it is to find."""

from __future__ import annotations

from typing import Any

import nb_run
import nbformat
import pytest
from nbformat import v4


def notebook(*outputs: Any) -> Any:
    """Return a notebook of one cell that shows these."""
    return v4.new_notebook(cells=[v4.new_code_cell("1", outputs=list(outputs))])


def printed(text: str, name: str = "stdout") -> Any:
    """Return what a cell printed."""
    return v4.new_output("stream", name=name, text=text)


def shown(**data: str) -> Any:
    """Return what a cell shows, by kind of media: `text_html` for `text/html`."""
    return v4.new_output("display_data", {kind.replace("_", "/"): text for kind, text in data.items()})


@pytest.fixture(autouse=True)
def _promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a notebook promise one number."""
    monkeypatch.setattr(nb_run, "PROMISES", {"one": (r"\d+ turns",)})


def test_what_is_kept_is_no_fault() -> None:
    """The same texts in other pieces, and another picture, are what was shown."""
    committed = notebook(printed("12 turns\n"), shown(image_png="aaa"))
    run = notebook(printed("12 "), printed("turns\n"), shown(image_png="bbb"))

    assert [] == nb_run.faults("one", committed, run)


@pytest.mark.parametrize(
    "committed, run, fault",
    [
        ([printed("12 turns")], [printed("13 turns")], "cell 0 shows"),
        ([printed("12 turns")], [], "cell 0 shows"),
        ([], [printed("12 turns")], "it does not show"),
        ([printed("12 turns"), shown(image_png="a")], [printed("12 turns")], "cell 0 shows"),
        ([shown(text_html="12 turns")], [shown(text_html="<p>12 turns")], "cell 0 shows"),
        ([printed("12 turns", "stderr")], [printed("12 turns", "stderr")], "cell 0 writes to stderr"),
        ([printed("12 turns in /tmp/x")], [printed("12 turns in /tmp/x")], "a place of one machine: /tmp"),
        ([printed("twelve turns")], [printed("twelve turns")], "it does not show"),
    ],
)
def test_what_is_not_kept_is_a_fault(committed: list[Any], run: list[Any], fault: str) -> None:
    """A text that differs, an output that is missing, noise, a place of a machine and a broken promise are told."""
    found = nb_run.faults("one", notebook(*committed), notebook(*run))

    assert any(fault in one for one in found)


def test_an_error_is_a_fault() -> None:
    """A committed notebook that ends in an error is wrong, though it ends so again."""
    error = v4.new_output("error", ename="ValueError", evalue="12 turns", traceback=[])

    assert ["cell 0 ends in an error: ValueError: 12 turns"] == nb_run.faults("one", notebook(error), notebook(error))


@pytest.mark.parametrize("path", sorted(nb_run.FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_committed_notebooks_are_stripped(path: Any) -> None:
    """A committed notebook has nothing that changes from run to run, and is as it would be written again."""
    committed = nbformat.read(path, as_version=4)
    nbformat.validate(committed)

    assert path.read_text(encoding="utf-8").rstrip() == nbformat.writes(nb_run.stripped(committed)).rstrip()
