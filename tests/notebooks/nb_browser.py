"""Opens each notebook in JupyterLab in headless Chromium, runs all of it, and keeps pictures of what is seen.

    python tests/notebooks/nb_browser.py --out pictures

What a cell shows is looked for in the page: no error, nothing on stderr, each promise kept, each map there, and
no script of a message obeyed. Light and dark each have a picture. Needs JupyterLab, Selenium, chromium, chromedriver.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import nbformat
from nb_run import FOLDER, PROMISES
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

SECONDS = 300  # that a notebook may take
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
RUN_ALL = "[data-command='notebook:restart-run-all']"
ACCEPT = ".jp-Dialog .jp-mod-accept"
PROMPTS = "return [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')].map(prompt => prompt.textContent)"
TEXT = "return [...document.querySelectorAll('.jp-OutputArea-output')].map(one => one.textContent).join('\\n')"
IDLE = ".jp-Notebook-ExecutionIndicator[data-status='idle']"
FAULTS = (
    'return document.querySelectorAll(\'.jp-RenderedText[data-mime-type="application/vnd.jupyter.stderr"],'
    '[data-mime-type="application/vnd.jupyter.error"]\').length'
)
SUMMARIES = ".jp-RenderedHTML summary"
TOP = "document.querySelectorAll('.jp-WindowedPanel-outer').forEach(one => one.scrollTop = 0)"
HEIGHT = "return document.querySelector('.jp-NotebookPanel .jp-WindowedPanel-inner').scrollHeight"


@contextmanager
def lab(folder: Path, theme: str) -> Generator[str]:
    """JupyterLab over a copy of the notebooks; its address with a token."""
    settings = folder / "settings" / "@jupyterlab"
    for name, setting in (
        ("apputils-extension/themes", {"theme": THEMES[theme]}),
        ("apputils-extension/notification", {"fetchNews": "false", "checkForUpdates": False}),
        ("notebook-extension/tracker", {"windowingMode": "none"}),
    ):
        path = settings / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(setting), encoding="utf-8")
    shutil.copytree(FOLDER, folder / "notebooks")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"]
    options = [f"--ServerApp.root_dir={folder / 'notebooks'}", "--IdentityProvider.token=notebooks"]
    environment = {**os.environ, "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings")}
    with (folder / "log").open("w") as log:
        server = subprocess.Popen([*command, *options], env=environment, stdout=log, stderr=log)  # noqa: S603  # ours
        try:
            yield f"http://127.0.0.1:{port}/lab/tree/{{name}}.ipynb?token=notebooks&reset"
        finally:
            server.terminate()
            server.wait(timeout=30)


def until(driver: Any, seen: Callable[[Any], Any], what: str) -> Any:
    """Wait for something in the page."""
    return WebDriverWait(driver, SECONDS, poll_frequency=0.5).until(seen, what)


def answers(address: str) -> bool:
    """Whether the server is up."""
    try:
        with urlopen(address, timeout=5) as page:  # noqa: S310  # our own, on loopback
            return bool(page.status)
    except (URLError, OSError):
        return False


def clear(name: str) -> None:
    """Take the outputs out of the copy, so that what is seen is what was run."""
    path = Path(name)
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbformat.write(notebook, path)


def finished(driver: Any) -> bool:
    """Whether every cell has run."""
    prompts = driver.execute_script(PROMPTS)
    return bool(prompts) and all(re.fullmatch(r"\[\d+\]:", prompt.strip()) for prompt in prompts)


def seen(driver: Any, address: str, name: str, pictures: Path, theme: str) -> list[str]:
    """Run a notebook in the browser, keep a picture of it, and tell what is wrong in sentences."""
    driver.set_window_size(1200, 1000)
    driver.get(address.format(name=name))
    until(driver, lambda page: page.execute_script(PROMPTS), f"{name} is not shown")
    until(driver, lambda page: page.find_elements(By.CSS_SELECTOR, IDLE), "the kernel does not come up")
    until(driver, lambda page: page.find_elements(By.CSS_SELECTOR, RUN_ALL), "there is no button to run all")[
        0
    ].click()
    until(driver, lambda page: page.find_elements(By.CSS_SELECTOR, ACCEPT), "nobody asks whether to restart")[
        0
    ].click()
    until(driver, finished, f"{name} has not run to its end")
    text, wrong = driver.execute_script(TEXT), driver.execute_script(FAULTS)
    summaries = [one for one in driver.find_elements(By.CSS_SELECTOR, SUMMARIES) if one.is_displayed()]
    for summary in summaries[-1:]:  # opens by a click, as there is no script
        driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", summary)
        summary.click()
    opened = driver.execute_script("return document.querySelectorAll('.jp-RenderedHTML details[open]').length")
    height = min(16_000, driver.execute_script(HEIGHT) + 250)
    driver.set_window_size(1200, height)
    driver.execute_script(TOP)
    driver.save_screenshot(str(pictures / f"{name}-{theme}.png"))
    found = [f"it does not show {promise!r}" for promise in PROMISES[name] if not re.search(promise, text)]
    found += [f"{wrong} outputs are errors or noise"] if wrong else []
    return found + ([] if opened or name == "02_langchain_agent" else ["no map of a context opens"])


def main(arguments: list[str]) -> int:
    """See every notebook; 1 where something is wrong with one."""
    parser = argparse.ArgumentParser(description="Run the notebooks in JupyterLab in headless Chromium.")
    parser.add_argument("--out", default="build/notebooks", type=Path, help="folder of the pictures")
    parser.add_argument("--theme", choices=[*THEMES, "both"], default="both")
    parser.add_argument("names", nargs="*", help="of notebooks, without .ipynb; all without")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    wrong = 0
    for theme in THEMES if given.theme == "both" else [given.theme]:
        with TemporaryDirectory() as folder, lab(Path(folder), theme) as address:
            for path in Path(folder, "notebooks").glob("*.ipynb"):
                clear(str(path))
            options = webdriver.ChromeOptions()
            options.binary_location = os.environ.get("CHROMIUM", "/usr/bin/chromium")
            for flag in (*FLAGS, f"--user-data-dir={folder}/profile"):
                options.add_argument(flag)
            service = webdriver.ChromeService(os.environ.get("CHROMEDRIVER", "/usr/bin/chromedriver"))
            until(None, lambda _, at=address: answers(at.partition("/lab")[0]), "JupyterLab does not answer")
            with webdriver.Chrome(options=options, service=service) as driver:
                for name in given.names or sorted(PROMISES):
                    found = seen(driver, address, name, given.out, theme)
                    wrong += bool(found)
                    print(f"{name}, {theme}: {'ok' if not found else ''}", *found, sep="\n  " if found else "")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
