import io
import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from slidemem import __version__, count_tokens
from slidemem.cli import main

Capture = pytest.CaptureFixture[str]

HI = {"role": "user", "content": "Hi [bold]there[/bold] \x1b[31m"}
HELLO = {"role": "assistant", "content": "Hello"}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every test the same terminal."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")


@pytest.fixture
def chat(tmp_path: Path) -> str:
    """A short transcript on disk."""
    path = tmp_path / "chat.jsonl"
    path.write_text(json.dumps(HI) + "\n" + json.dumps(HELLO) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def long_chat(tmp_path: Path) -> str:
    """A transcript of 600 messages on disk."""
    path = tmp_path / "long.json"
    turns = [
        {"role": role, "content": f"{turn} {'word ' * 20}"} for turn in range(300) for role in ("user", "assistant")
    ]
    path.write_text(json.dumps(turns), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def demo() -> dict[str, Any]:
    """What `slidemem demo --json` prints."""
    out = io.StringIO()
    with redirect_stdout(out):
        assert main(["demo", "--json"]) == 0
    loaded: dict[str, Any] = json.loads(out.getvalue())
    return loaded


def python(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own."""
    return subprocess.run(  # noqa: S603  # our own interpreter and arguments
        [sys.executable, *args],
        capture_output=True,
        check=False,
        encoding="utf-8",
        timeout=60,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **env},
    )


# ------------------------------------------------------------------ demo


def test_demo_keeps_its_budget_and_its_prefix(demo: dict[str, Any]) -> None:
    """No prompt is over budget, the largest fills most of it, and more is re-used than by the slide."""
    slide = demo["one_turn_slide"]
    actual = (
        demo["prompts_over_budget"],
        3000 < demo["worst_tokens"] <= 4000,
        all(step["tokens"] <= 4000 for step in demo["steps"]),
        demo["prefix_reuse"] > slide["prefix_reuse"] + 0.05,
        demo["prompt_tokens"] < slide["prompt_tokens"],
    )
    expected = (0, True, True, True, True)

    assert expected == actual


def test_demo_counts_messages_and_facts(demo: dict[str, Any]) -> None:
    """Every message is verbatim or archived at the end, and each of the twenty facts was judged."""
    held = [check for check in demo["facts"] if check["place"]]
    actual = (
        demo["verbatim_messages"] + demo["archived_messages"],
        demo["facts_needed"],
        demo["facts_held"],
        demo["counter"],
        demo["slidemem"],
    )
    expected = (demo["messages"], 20, len(held), "approximate", __version__)

    assert expected == actual


def test_demo_shows_what_its_json_says(demo: dict[str, Any], capsys: Capture) -> None:
    """What is drawn has the title and the figures of the JSON object, and no escape code."""
    code = main(["demo"])
    out, err = capsys.readouterr()
    actual = (
        code,
        err,
        out.startswith("Aai's birthday"),
        f"{demo['facts_held']} of 20" in out,
        f"largest took {demo['worst_tokens']:,}" in out,
        "\x1b" in out,
    )
    expected = (0, "", True, True, True, False)

    assert expected == actual


def test_demo_takes_another_budget(capsys: Capture) -> None:
    """With twice the budget prompts are larger, and none passes it."""
    code = main(["demo", "--max-tokens", "8000", "--json"])
    report = json.loads(capsys.readouterr().out)
    actual = (code, report["usable_tokens"], 4000 < report["worst_tokens"] <= 8000)
    expected = (0, 8000, True)

    assert expected == actual


def test_demo_shows_every_so_many(capsys: Capture) -> None:
    """`--every 1` shows each prompt."""
    code = main(["demo", "--every", "1"])
    actual = (code, "All rows are shown." in capsys.readouterr().out)
    expected = (0, True)

    assert expected == actual


# ------------------------------------------------------------------ replay


def test_replay_shows_a_file(chat: str, capsys: Capture) -> None:
    """A file is titled by its name, and its text is shown as text."""
    code = main(["replay", chat, "--max-tokens", "500"])
    out = capsys.readouterr().out
    actual = (code, out.splitlines()[0], r"Hi [bold]there[/bold] \x1b[31m" in out, "\x1b" in out)
    expected = (0, "chat.jsonl", True, False)

    assert expected == actual


def test_replay_json_is_one_object_and_nothing_else(chat: str, capsys: Capture) -> None:
    """`--json` prints one line of ASCII that holds the last context as it would be sent."""
    code = main(["replay", chat, "--max-tokens", "500", "--json"])
    out, err = capsys.readouterr()
    actual = (code, err, out.count("\n"), out.isascii(), json.loads(out)["final"]["messages"])
    expected = (0, "", 1, True, [HI, HELLO])

    assert expected == actual


def test_replay_counts_as_told(chat: str, capsys: Capture, vocabulary: Path) -> None:
    """`--counter` takes the name of an encoding, and the report says which counted."""
    code = main(["replay", chat, "--max-tokens", "500", "--counter", "cl100k_base", "--json"])
    report = json.loads(capsys.readouterr().out)
    actual = (code, report["counter"], report["final_tokens"])
    expected = (0, "cl100k_base", count_tokens([HI, HELLO], "cl100k_base"))

    assert expected == actual


@pytest.mark.parametrize(
    "flags, check",
    [
        pytest.param(["--no-archive"], lambda r: all(s["text"] == "" for s in r["archive"]), id="no-archive"),
        pytest.param(["--archive-share", "0.3"], lambda r: 100 < r["archive_tokens"] <= 300, id="archive-share"),
        pytest.param(["--archive-share", "90"], lambda r: r["archive_tokens"] <= 90, id="archive-tokens"),
        pytest.param(["--recall-share", "0.0"], lambda r: r["worst_tokens"] > 700, id="recall-share"),
        pytest.param(
            ["--window-turns", "6", "--batch-turns", "3"],
            lambda r: max(step["shown"] for step in r["steps"]) <= 13,
            id="window-turns",
        ),
        pytest.param(["--keep-turns", "2"], lambda r: r["consolidations"] > 0, id="keep-turns"),
    ],
)
def test_replay_hands_options_on(
    long_chat: str, capsys: Capture, flags: list[str], check: Callable[[dict[str, Any]], bool]
) -> None:
    """Each flag reaches the memory."""
    code = main(["replay", long_chat, "--max-tokens", "1000", "--json", *flags])
    actual = (code, check(json.loads(capsys.readouterr().out)))
    expected = (0, True)

    assert expected == actual


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_replay_writes_a_page(chat: str, tmp_path: Path, capsys: Capture, flags: list[str]) -> None:
    """`--html` writes one page that fetches nothing, beside what is printed."""
    out = tmp_path / "page.html"
    code = main(["replay", chat, "--max-tokens", "500", "--html", str(out), *flags])
    text = out.read_text(encoding="utf-8")
    fetches = re.findall(r"<script|<link|<img|src=|href=|@import|url\(", text)
    actual = (code, fetches, "<title>chat.jsonl</title>" in text, bool(capsys.readouterr().out))
    expected = (0, [], True, True)

    assert expected == actual


# ------------------------------------------------------------------ what is wrong


@pytest.mark.parametrize(
    "args, expected",
    [
        pytest.param(["replay"], "the following arguments are required: FILE, --max-tokens", id="no-file"),
        pytest.param(["replay", "{chat}"], "the following arguments are required: --max-tokens", id="no-budget"),
        pytest.param(["bogus"], "argument {demo,replay,worker}: invalid choice: 'bogus'", id="no-such-command"),
        pytest.param(["demo", "--every", "0"], "argument --every: must be a whole number of 1", id="every-0"),
        pytest.param(["demo", "--every", "x"], "argument --every: must be a whole number of 1", id="every-x"),
        pytest.param(["demo", "--max-tokens", "x"], "argument --max-tokens: invalid int value: 'x'", id="no-number"),
        pytest.param(["demo", "--max-tokens", "0"], "wrong options: max_tokens: ", id="no-tokens"),
        pytest.param(["demo", "--max-tokens", "9"], "the smallest possible context takes ", id="too-small"),
        pytest.param(["replay", "{folder}/none", "--max-tokens", "9"], "{folder}/none: No such file", id="missing"),
        pytest.param(["replay", "{folder}", "--max-tokens", "9"], "{folder}: Is a directory", id="folder"),
        pytest.param(
            ["replay", "{chat}", "--max-tokens", "99", "--batch-turns", "2"],
            "batch_turns (2) needs window_turns",
            id="options",
        ),
        pytest.param(
            ["replay", "{chat}", "--max-tokens", "99", "--archive-share", "x"],
            "argument --archive-share: must be a share or tokens, got 'x'",
            id="no-share",
        ),
        pytest.param(
            ["replay", "{chat}", "--max-tokens", "99", "--archive-share", "1.5"],
            "wrong options: archive_share",
            id="share",
        ),
        pytest.param(
            ["replay", "{chat}", "--max-tokens", "99", "--counter", "nobody"], "tiktoken knows no model", id="counter"
        ),
        pytest.param(
            ["demo", "--html", "{folder}/none/page.html"],
            "--html {folder}/none/page.html: there is no folder {folder}/none; make it first",
            id="no-folder",
        ),
        pytest.param(["demo", "--html", ""], "--html needs the name of a file", id="no-page"),
        pytest.param(["demo", "--html", "{folder}"], "--html {folder}: cannot be written (", id="page-is-a-folder"),
    ],
)
def test_what_is_wrong_is_one_line(
    chat: str, tmp_path: Path, capsys: Capture, args: list[str], expected: str
) -> None:
    """Bad input and options are told in one line on stderr, with exit code 2 and nothing on stdout."""
    places = {"{chat}": chat, "{folder}": str(tmp_path)}
    for name, place in places.items():
        args, expected = [arg.replace(name, place) for arg in args], expected.replace(name, place)
    code = main(args)
    out, err = capsys.readouterr()
    expected = f"slidemem: {expected}"
    actual = err[: len(expected)]

    assert (expected, 2, "", 1) == (actual, code, out, err.count("\n"))


@pytest.mark.parametrize(
    "content, expected",
    [
        pytest.param(b"", "the file is empty", id="empty"),
        pytest.param(b"\x89PNG\0", "a binary file", id="binary"),
        pytest.param(b'[{"role": "user"', "line 1: truncated JSON", id="truncated"),
        pytest.param(b"[1]", "messages[0]: expected a message with role and content", id="no-dicts"),
        pytest.param(b"{}", "an object without messages", id="no-messages"),
        pytest.param(b'[{"role": "robot"}]', "messages[0]: unknown role 'robot'", id="unknown-role"),
        pytest.param(b'[{"role": "\\u001b[31m"}]', r"messages[0]: unknown role '\x1b[31m'", id="control-role"),
        pytest.param(b"[]", "the list of messages is empty", id="no-message"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path: Path, capsys: Capture, content: bytes, expected: str) -> None:
    """A file that is no transcript is told in one line that names it, with exit code 2."""
    path = tmp_path / "chat.json"
    path.write_bytes(content)
    code = main(["replay", str(path), "--max-tokens", "99"])
    out, err = capsys.readouterr()
    actual = (code, out, err.startswith(f"slidemem: {path}"), err.count("\n"), "\x1b" in err)

    assert expected in err
    assert actual == (2, "", True, 1, False)


def test_a_missing_vocabulary_is_one_line(chat: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tokenizer without its vocabulary is told with what to do about it."""

    def get_encoding(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr("tiktoken.get_encoding", get_encoding)
    code = main(["replay", chat, "--max-tokens", "99", "--counter", "gpt-4o"])
    err = capsys.readouterr().err
    actual = (code, err.startswith("slidemem: the tiktoken vocabulary of 'gpt-4o'"), err.count("\n"))
    expected = (2, True, 1)

    assert expected == actual


def test_control_characters_of_arguments_are_written_out(capsys: Capture) -> None:
    """What a complaint quotes of the arguments cannot reach the terminal raw."""
    code = main(["demo", "--html", "\x1b[31m/\u202ex\n.html"])
    err = capsys.readouterr().err
    actual = (code, r"\x1b[31m/\u202ex .html" in err, "\x1b" in err, err.count("\n"))
    expected = (2, True, False, 1)

    assert expected == actual


# ------------------------------------------------------------------ without rich


@pytest.fixture
def no_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the extra away."""
    monkeypatch.delitem(sys.modules, "slidemem.show.rich", raising=False)
    monkeypatch.setitem(sys.modules, "rich", None)
    for name in [name for name in sys.modules if name.startswith("rich.")]:
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.usefixtures("no_rich")
@pytest.mark.parametrize("flags", [[], ["--json", "--html", "page.html"]])
def test_without_rich_the_extra_is_named(chat: str, capsys: Capture, flags: list[str]) -> None:
    """The terminal view and the page need an extra, and its pip command is told before anything is replayed."""
    code = main(["replay", chat, "--max-tokens", "500", *flags])
    actual = (code, *capsys.readouterr())
    sentence = "the terminal view (everything but --json) needs the extra 'cli': pip install 'slidemem[cli]'"
    expected = (2, "", f"slidemem: {sentence}\n")

    assert expected == actual


@pytest.mark.usefixtures("no_rich")
def test_without_rich_json_works(long_chat: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--json` needs no extra, also where a long file would show its progress."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    code = main(["replay", long_chat, "--max-tokens", "1000", "--json"])
    out, err = capsys.readouterr()
    actual = (code, err, json.loads(out)["messages"])
    expected = (0, "", 600)

    assert expected == actual


# ------------------------------------------------------------------ progress and endings


class Terminal(io.StringIO):
    """A text stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


def test_a_long_file_shows_its_progress(long_chat: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where somebody watches, a long file moves a bar on stderr, and stdout holds the object alone."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    code = main(["replay", long_chat, "--max-tokens", "1000", "--json"])
    actual = (code, "replaying" in terminal.getvalue(), json.loads(capsys.readouterr().out)["messages"])
    expected = (0, True, 600)

    assert expected == actual


def test_a_short_file_shows_none(chat: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A short file is done before a bar could be read."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    code = main(["replay", chat, "--max-tokens", "1000", "--json"])
    actual = (code, terminal.getvalue())
    expected = (0, "")

    assert expected == actual


def test_a_stream_without_an_encoding_will_do(chat: str) -> None:
    """What is drawn can be caught in a plain text buffer."""
    out = io.StringIO()
    with redirect_stdout(out):
        code = main(["replay", chat, "--max-tokens", "500"])
    actual = (code, "█" in out.getvalue())
    expected = (0, True)

    assert expected == actual


def test_ctrl_c_ends_with_130(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends without a word, with the code that shells know."""

    def interrupted(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("slidemem.cli.replay", interrupted)
    actual = (main(["demo"]), *capsys.readouterr())
    expected = (130, "", "")

    assert expected == actual


@pytest.mark.parametrize("args", [["demo"], ["demo", "--json"], ["replay", "{chat}", "--max-tokens", "99", "--json"]])
def test_a_closed_pipe_ends_without_a_word(
    chat: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch, args: list[str]
) -> None:
    """When nobody reads any more, be it much or little, the command ends with the code that shells know."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", encoding="utf-8") as pipe:
        monkeypatch.setattr("sys.stdout", pipe)
        code = main([arg.replace("{chat}", chat) for arg in args])
        monkeypatch.undo()
    actual = (code, capsys.readouterr().err)
    expected = (141, "")

    assert expected == actual


def test_head_takes_the_first_line() -> None:
    """Piped into a reader that stops after a line, the process itself ends without a word, too."""
    with subprocess.Popen(  # our own interpreter and arguments
        [sys.executable, "-m", "slidemem", "demo", "--every", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    ) as process:
        assert process.stdout
        assert process.stderr
        first = process.stdout.readline().decode()
        process.stdout.close()
        actual = (first, process.stderr.read(), process.wait(60))
    expected = ("Aai's birthday and two cities in Portugal\n", b"", 141)

    assert expected == actual


# ------------------------------------------------------------------ the command itself


def test_runs_as_a_module() -> None:
    """`python -m slidemem demo` draws the demo, without colour in a pipe and whatever the terminal's encoding."""
    ran = python("-m", "slidemem", "demo", PYTHONIOENCODING="ascii")
    actual = (ran.returncode, ran.stderr, "facts there when needed" in ran.stdout, "\x1b" in ran.stdout)
    expected = (0, "", True, False)

    assert expected == actual


def test_the_core_imports_no_rich() -> None:
    """Importing the command brings no rich with it."""
    ran = python("-c", "import sys, slidemem.cli; print('rich' in sys.modules)")
    actual = (ran.returncode, ran.stdout.strip())
    expected = (0, "False")

    assert expected == actual


@pytest.mark.parametrize(
    "name, expected", [("__main__", (0, f"slidemem {__version__}\n")), ("slidemem.__main__", (None, ""))]
)
def test_main_runs_only_as_main(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, name: str, expected: tuple[int | None, str]
) -> None:
    """The module runs the command with the process's arguments, and not when it is merely imported."""
    monkeypatch.setattr("sys.argv", ["slidemem", "--version"])
    code = None
    try:
        runpy.run_module("slidemem.__main__", run_name=name)
    except SystemExit as ended:
        code = ended.code
    actual = (code, capsys.readouterr().out)

    assert expected == actual


@pytest.mark.parametrize("args", [pytest.param([], id="nothing"), pytest.param(["--help"], id="help")])
def test_says_what_it_can_do(capsys: Capture, args: list[str]) -> None:
    """Without a command, as with `--help`, the commands are listed."""
    try:
        code = main(args)
    except SystemExit as ended:
        code = int(ended.code or 0)
    out = capsys.readouterr().out
    actual = (code, out.startswith("usage: slidemem"), "demo" in out, "replay" in out)
    expected = (0, True, True, True)

    assert expected == actual


def test_help_says_what_counts(capsys: Capture) -> None:
    """The help of `replay` says that the default counter needs no vocabulary."""
    with pytest.raises(SystemExit):
        main(["replay", "--help"])
    actual = '"approximate", the default, which needs no vocabulary' in " ".join(capsys.readouterr().out.split())
    expected = True

    assert expected == actual


def test_a_full_disk_is_one_line() -> None:
    """Output that cannot be written is told in one line, with exit code 2."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(  # our own interpreter and arguments
            [sys.executable, "-m", "slidemem", "demo", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert (2, "slidemem: the output cannot be written (No space left on device)\n") == (done.returncode, done.stderr)


def test_no_output_at_all_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    """A standard output that the shell closed is told in one line."""
    monkeypatch.setattr(sys, "stdout", None)

    code = main(["demo"])

    assert 2 == code
    assert "slidemem: there is no standard output to write to\n" == capsys.readouterr().err


def test_output_that_fails_on_the_way(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """A write that fails in this process ends with exit code 2."""

    def fails(self: object, args: object) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr("slidemem.cli._drop_output", lambda: None)
    monkeypatch.setattr("slidemem.cli._demo", fails.__get__(object()))

    code = main(["demo", "--json"])

    assert (2, "slidemem: the output cannot be written (the disk is gone)\n") == (code, capfd.readouterr().err)


def test_the_page_never_overwrites_the_transcript(chat: str, capsys: Capture) -> None:
    """A page that would be written over the transcript is refused."""
    before = Path(chat).read_bytes()

    code = main(["replay", chat, "--max-tokens", "99", "--html", chat])

    assert (2, before) == (code, Path(chat).read_bytes())
    assert "this is the transcript itself" in capsys.readouterr().err
