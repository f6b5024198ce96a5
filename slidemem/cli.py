"""Decides what the command `slidemem` takes, and how it ends: 0, 2 for what is wrong, 130 for Ctrl-C.

What is measured is `replay.py`'s, how it looks is `show`'s. `--json` needs no extra.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from typing import Any, Final, NoReturn

import slidemem
from slidemem.errors import ConfigurationError, MissingExtra, SlidememError
from slidemem.memory import SlideMem
from slidemem.replay import Report, Step, replay
from slidemem.transcripts import TranscriptFile, parse_transcript, read_transcript
from slidemem.worker import loop

_SAMPLE: Final = "travel_support.json"
_LONG: Final = 500  # messages; from here on a replay shows its progress
_WRONG, _CLOSED_PIPE, _INTERRUPTED = 2, 141, 130  # the last two as shells report the signals

_OPTIONS: Final = ("archive_share", "recall_share", "keep_turns", "window_turns", "batch_turns")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: its arguments; None takes the process's own.

    Returns:
        The exit code.
    """
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]  # so it is where the shell closed it
        return _refuse("there is no standard output to write to")
    try:
        parser = _parser()
        args = parser.parse_args(argv)
        if args.run:
            args.run(args)
        else:
            parser.print_help()
        sys.stdout.flush()
    except SlidememError as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return _CLOSED_PIPE
    except OSError as error:
        _drop_output()
        return _refuse(f"the output cannot be written ({error.strerror or error})")
    return 0


# ------------------------------------------------------------------ arguments


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints are one line, like all others."""

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong with the arguments."""
        raise ConfigurationError(f"{message} (see {self.prog} --help)")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="slidemem", description="See what a conversation memory under a token budget does.")
    parser.add_argument("--version", action="version", version=f"slidemem {slidemem.__version__}")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="{demo,replay,worker}")
    _add_demo(commands.add_parser("demo", help="replay the sample conversation that ships with slidemem"))
    _add_replay(commands.add_parser("replay", help="replay a conversation of your own"))
    _add_worker(commands.add_parser("worker", help="consolidate what is due in the sessions of a store"))
    return parser


def _add_demo(demo: argparse.ArgumentParser) -> None:
    demo.description = "Replay a travel-support conversation under a small budget; needs no network and no model."
    demo.add_argument(
        "--max-tokens", type=int, default=4000, metavar="N", help="budget of each prompt (default: 4000)"
    )
    _add_output(demo)
    demo.set_defaults(run=_demo)


def _add_replay(command: argparse.ArgumentParser) -> None:
    command.description = "Replay a conversation, one message at a time, and show each prompt on the way."
    command.add_argument(
        "file",
        metavar="FILE",
        help="OpenAI-format messages: a JSON list, one JSON message a line, or an object with messages "
        "(and, if you like, title and facts)",
    )
    command.add_argument(
        "--max-tokens", type=int, required=True, metavar="N", help="budget of each prompt, in tokens"
    )
    command.add_argument(
        "--query", metavar="TEXT", help="a question to ask at the end: what it finds, and what is quoted for it"
    )
    command.add_argument(
        "--counter",
        default="approximate",
        metavar="NAME",
        help='what counts tokens: "approximate", the default, which needs no vocabulary, '
        "or a model or encoding that tiktoken knows, such as gpt-4o",
    )
    _add_options(command)
    _add_output(command)
    command.set_defaults(run=_replay)


def _add_worker(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Consolidate what is due in the sessions of a store, until SIGTERM or Ctrl-C. Start as many as you like. "
        'The options must be those that the sessions are used with, there with mode="manual".'
    )
    add = command.add_argument
    add("--store", required=True, metavar="URL", help="as sqlite:///chat.db, postgresql://... or redis://...")
    add("--max-tokens", type=int, required=True, metavar="N", help="budget of each prompt, in tokens")
    add("--counter", metavar="NAME", help="what counts tokens, as of SlideMem")
    add(
        "--consolidator",
        metavar="MODULE:NAME",
        help="a summarize(messages) or a Consolidator to import; default: the extractive one",
    )
    add("--every", type=float, default=5.0, metavar="SECONDS", help="pause where nothing was due (default: 5)")
    add("--limit", type=_positive, metavar="N", help="sessions of one round")
    add("--once", action="store_true", help="end after one round")
    _add_options(command)
    command.set_defaults(run=_worker)


def _add_options(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("options of the memory")
    share = "a share of the budget, as 0.2, or tokens, as 600"
    group.add_argument(
        "--archive-share", type=_share, metavar="SHARE", help=f"limit of archive and pins (default: 0.2): {share}"
    )
    group.add_argument(
        "--recall-share", type=_share, metavar="SHARE", help=f"kept free for recall (default: 0.25): {share}"
    )
    group.add_argument("--keep-turns", type=int, metavar="N", help="newest turns that stay verbatim (default: 1)")
    group.add_argument("--window-turns", type=int, metavar="N", help="archive also beyond so many turns")
    group.add_argument("--batch-turns", type=int, metavar="N", help="how many turns leave then")
    group.add_argument(
        "--no-archive", action="store_true", help="keep nothing of what leaves the window in the prompt"
    )


def _add_output(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("output")
    group.add_argument(
        "--every",
        type=_positive,
        metavar="K",
        help="show every K-th prompt, and those at which something left the window (default: a screenful or two)",
    )
    group.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    group.add_argument("--html", metavar="OUT", help="also write one self-contained page")


def _share(text: str) -> float:
    """A share of the budget, or tokens: the core tells them by type."""
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a share or tokens, got {text!r}") from None


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of 1 or more, got {text!r}")
    return int(text)


# ------------------------------------------------------------------ commands


def _demo(args: argparse.Namespace) -> None:
    data = (files("slidemem") / "data" / _SAMPLE).read_bytes()
    _run(args, parse_transcript(data, _SAMPLE), _SAMPLE, {"counter": "approximate"})


def _worker(args: argparse.Namespace) -> None:
    options = _memory_options(args)
    if args.consolidator:
        options["consolidator"] = _imported(args.consolidator)
    with (
        SlideMem(max_tokens=args.max_tokens, store=args.store, counter=args.counter, mode="manual", **options) as mem,
        _stopped_by_signals() as stop,
    ):
        total = loop(mem, stop, args.every, args.limit, _say, once=args.once)
    _say(f"stopped after {total} sessions")


@contextmanager
def _stopped_by_signals() -> Generator[Event, None, None]:
    """A flag that SIGTERM and Ctrl-C set, in the place of what they do otherwise."""
    stop = Event()

    def handle(*_: object) -> None:
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _imported(place: str) -> Any:
    """What `module:name` names; modules of the folder that the command was started in are found."""
    module, _, name = place.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as fault:
        raise ConfigurationError(f"--consolidator {place}: cannot be imported ({fault})") from None


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _memory_options(args: argparse.Namespace) -> dict[str, Any]:
    options = {name: getattr(args, name) for name in _OPTIONS if getattr(args, name) is not None}
    return {**options, "consolidator": None} if args.no_archive else options


def _replay(args: argparse.Namespace) -> None:
    options = _memory_options(args)
    if args.html and Path(args.html).exists() and Path(args.html).samefile(args.file):
        raise ConfigurationError(f"--html {args.html}: this is the transcript itself; name another file")
    _run(args, read_transcript(args.file), Path(args.file).name, {"counter": args.counter, **options}, args.query)


def _run(
    args: argparse.Namespace, held: TranscriptFile, name: str, options: dict[str, Any], query: str | None = None
) -> None:
    title = held.title or name
    if args.html is not None:
        _check_folder(args.html)
    if args.html or not args.json:
        _check_rich()
    with _progress(len(held.messages)) as on_step:
        report = replay(
            held.messages, held.facts, query=query, on_step=on_step, max_tokens=args.max_tokens, **options
        )
    if args.html:
        _write_page(report, Path(args.html), title, args.every)
    if args.json:
        counted = {"slidemem": slidemem.__version__, "title": title, "counter": options["counter"]}
        sys.stdout.write(json.dumps({**counted, **report.to_json()}) + "\n")
    else:
        _draw(report, title, args.every)


def _draw(report: Report, title: str, every: int | None) -> None:
    from slidemem.show.rich import PlainConsole, draw  # noqa: PLC0415  # needs an extra

    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure:
        reconfigure(errors="replace")  # a terminal that is not UTF-8 shows what it can
    draw(report, PlainConsole(), title=title, every=every)


def _write_page(report: Report, out: Path, title: str, every: int | None) -> None:
    from slidemem.show.rich import page  # noqa: PLC0415  # needs an extra

    try:
        out.write_text(page(report, title=title, every=every), encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"--html {out}: cannot be written ({error.strerror})") from None


def _check_folder(out: str) -> None:
    if not out:
        raise ConfigurationError("--html needs the name of a file")
    if not Path(out).parent.is_dir():
        raise ConfigurationError(f"--html {out}: there is no folder {Path(out).parent}; make it first")


def _check_rich() -> None:
    try:
        import_module("slidemem.show.rich")
    except ImportError as missing:
        raise MissingExtra("the terminal view (everything but --json)", "cli") from missing


@contextmanager
def _progress(messages: int) -> Generator[Callable[[Step], None] | None, None, None]:
    """What is told of each step: a bar on stderr for a long file where somebody watches, else nothing."""
    if messages < _LONG or not sys.stderr.isatty() or find_spec("rich") is None:
        yield None
        return
    from slidemem.show.rich import progress_bar  # noqa: PLC0415  # needs an extra

    with progress_bar(messages) as on_step:
        yield on_step


# ------------------------------------------------------------------ endings


def _refuse(sentence: str) -> int:
    line = " ".join(sentence.split())
    shown = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in line)
    sys.stderr.write(f"slidemem: {shown}\n")
    return _WRONG


def _drop_output() -> None:
    """Let what is still buffered go nowhere, or Python would complain at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
