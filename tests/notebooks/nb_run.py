"""Runs every notebook from top to bottom, without a key and without a network, and compares it with what it shows.

    python tests/notebooks/nb_run.py            # what `make notebooks` does
    python tests/notebooks/nb_run.py --write    # and keeps the outputs, stripped of what changes from run to run

Every text and every page that a cell puts out must be what the committed notebook shows; a picture must be there.
Beside that each notebook has sentences to keep: what its words promise.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from traitlets.config import Config

FOLDER = Path(__file__).parents[2] / "notebooks"
SECONDS = 120  # that a cell may take
PICTURE = "image/png"
PROMISES = {
    "01_langchain": (
        r"turn \d+: context length exceeded",
        "trimmed: A peanut bar",
        "slidemem: Fruit and seeds",
        r"\d+ messages in the transcript",
    ),
    "02_langchain_agent": ("plain agent: .*context length exceeded", "with the middleware: Fruit and seeds"),
    "03_llamaindex": ("ChatMemoryBuffer: A peanut bar", "SlidingChatMemoryBuffer: Fruit and seeds", "agent: Fruit"),
    "04_inside_the_window": (r"[\d,]+ of [\d,]+ facts", r"re-used: \d+ %, sliding window \d+ %"),
    "05_one_session_two_frameworks": ("LlamaIndex: Fruit and seeds", "the same archive: True"),
}
_HERE = (gettempdir(), str(Path.home()), str(FOLDER.parent), sys.prefix)
PLACES = re.compile("|".join([*map(re.escape, _HERE), "ipykernel_", "0x[0-9a-f]{6,}"]))  # of a machine, of a run


def outputs(cell: Any) -> list[tuple[str, str]]:
    """What a cell shows, as kind and text; consecutive pieces of a stream are one, a picture is only there."""
    shown: list[tuple[str, str]] = []
    for output in cell.get("outputs", ()):
        kind = output["output_type"]
        if kind == "stream":
            text = output["text"]
            if shown and shown[-1][0] == output["name"]:
                text = shown.pop()[1] + text
            shown.append((output["name"], text))
        elif kind == "error":
            shown.append(("error", f"{output['ename']}: {output['evalue']}"))
        else:
            for mime, text in sorted(output["data"].items()):
                picture = mime == PICTURE
                shown.append((mime, "" if picture else text))
    return shown


def plain(notebook: Any) -> str:
    """All that a notebook shows, as one text."""
    return "\n".join(text for cell in notebook.cells for _, text in outputs(cell))


def faults(name: str, committed: Any, run: Any) -> list[str]:
    """What is wrong with a notebook, in sentences."""
    found: list[str] = []
    for number, (old, new) in enumerate(zip(committed.cells, run.cells, strict=True)):
        before, now = outputs(old), outputs(new)
        found += [f"cell {number} ends in an error: {text}" for kind, text in before if kind == "error"]
        found += [f"cell {number} writes to stderr: {text:.200}" for kind, text in now if kind == "stderr"]
        if before != now:
            found.append(f"cell {number} shows\n{now!r:.1500}\nand the committed notebook\n{before!r:.1500}")
    shown = plain(committed)
    found += [f"it does not show {promise!r}" for promise in PROMISES[name] if not re.search(promise, shown)]
    found += [f"it shows a place of one machine: {match[0]}" for match in PLACES.finditer(shown)]
    return found


def stripped(notebook: Any) -> Any:
    """The notebook without what changes from run to run."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number:02}"
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", ()):
            if {PICTURE, "text/html"} & set(output.get("data", {})):
                output["data"].pop("text/plain", None)  # the same again, less readable
                output["metadata"] = {}
    return notebook


def executed(path: Path) -> Any:
    """The notebook as it is after a run, in a kernel of its own."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    NotebookClient(notebook, timeout=SECONDS, config=Config(KernelManager={"transport": "ipc"})).execute()
    return stripped(notebook)


def main(arguments: list[str]) -> int:
    """Run the notebooks; 1 where one of them is not what it shows."""
    parser = argparse.ArgumentParser(description="Run the notebooks and compare them with what they show.")
    parser.add_argument("--write", action="store_true", help="keep the outputs")
    parser.add_argument("names", nargs="*", help="of notebooks, without .ipynb; all without")
    given = parser.parse_args(arguments)
    os.environ.update(PYTHONHASHSEED="0", MPLBACKEND="module://matplotlib_inline.backend_inline")
    wrong = 0
    for name in given.names or sorted(PROMISES):
        path = FOLDER / f"{name}.ipynb"
        try:
            run = executed(path)
        except CellExecutionError as fault:
            print(f"{name}: {fault}")
            wrong += 1
            continue
        if given.write:
            nbformat.write(run, path)
        found = faults(name, nbformat.read(path, as_version=4), run)
        wrong += bool(found)
        print(f"{name}: {'ok' if not found else ''}", *found, sep="\n  " if found else "")
    unknown = {path.stem for path in FOLDER.glob("*.ipynb")} - set(PROMISES)
    if unknown:
        print(f"notebooks of which nothing is promised: {', '.join(sorted(unknown))}")
    return int(bool(wrong or unknown))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
