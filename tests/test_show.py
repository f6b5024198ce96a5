import io
import re
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slidemem import SlideMem, SQLiteStore, Zones
from slidemem.replay import Report, replay
from slidemem.show import rich as show
from slidemem.show import terminal
from slidemem.show.rich import PlainConsole, draw, page, printable
from slidemem.show.terminal import cells
from slidemem.transcripts import Fact, parse_transcript

SAMPLE = "travel_support.json"
NASTY = "[bold]loud[/bold] \x1b[31mred\x1b[0m \x07 \u202eback :smile:"
SHOWN = r"[bold]loud[/bold] \x1b[31mred\x1b[0m \x07 \u202eback :smile:"


class Terminal(io.StringIO):
    """A text stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


def said(role: str, text: str, **more: Any) -> dict[str, Any]:
    """Return a message."""
    return {"role": role, "content": text, **more}


def chat(turns: int) -> list[dict[str, Any]]:
    """Return a conversation of short turns."""
    return [said(role, f"turn {turn} " + "word " * 12) for turn in range(turns) for role in ("user", "assistant")]


def run(messages: list[dict[str, Any]], *facts: Fact, **options: Any) -> Report:
    """Replay under 4,000 characters unless told otherwise, a token being a character."""
    return replay(messages, facts, **{"max_tokens": 4000, "counter": len, "clock": lambda: 0.0, **options})


def drawn(report: Report, width: int = 100, every: int | None = None, title: str = "A chat") -> str:
    """Return what is printed into a pipe."""
    out = io.StringIO()
    draw(report, PlainConsole(out, width=width), title=title, every=every)
    return out.getvalue()


def rows(text: str) -> list[str]:
    """Return the lines that are prompts."""
    return [line for line in text.splitlines() if re.match(r" *\d+ +\d+  \S+  [\d,]+/[\d,]+$", line)]


def markers(text: str) -> list[str]:
    """Return the lines below prompts that say what happened."""
    return [line.partition("└ ")[2] for line in text.splitlines() if "└ " in line]


def messages_shown(text: str) -> list[list[str]]:
    """Return number, role, tokens and manner of each message of the last context."""
    lines = text.partition("The last context")[2].partition("\n\n")[0].splitlines()[2:]
    found = [re.match(r" *([\d-]*) +(\w+) +([\d,]+) (\w+(?:, \w+)*)", line) for line in lines]
    return [list(match.groups()) for match in found if match]


@pytest.fixture(scope="module")
def demo() -> Report:
    """The report of the sample conversation."""
    held = parse_transcript((files("slidemem") / "data" / SAMPLE).read_bytes(), SAMPLE)
    return replay(held.messages, held.facts, max_tokens=4000, counter="approximate", clock=lambda: 0.0)


# ------------------------------------------------------------------ the whole of it


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_fits_its_width_without_escape_codes(demo: Report, width: int) -> None:
    """In a pipe no line is wider than asked for, and no escape code is in it."""
    text = drawn(demo, width)
    actual = (max(map(show.Text, text.splitlines()), key=len).cell_len <= width, "\x1b" in text)
    expected = (True, False)

    assert expected == actual


def test_says_first_what_is_seen(demo: Report) -> None:
    """The first lines name the conversation, its size, the budget, what a row is, and what each glyph means."""
    lines = drawn(demo, 120, title="Aai's birthday").splitlines()
    rest = " ".join(lines[1:3])
    actual = (
        lines[0],
        all(word in rest for word in ("229 messages", "80 user turns", "4,000", "is a prompt")),
        lines[4],
    )
    expected = ("Aai's birthday", True, "▓▓ system  ◆◆ pinned  ▒▒ archive  ██ window  ░░ recall  ·· free")

    assert expected == actual


def test_ends_with_the_figures(demo: Report) -> None:
    """The last lines set the memory's figures beside those of the sliding window."""
    actual = [re.split(r"  +", line.strip()) for line in drawn(demo).splitlines()[-5:]]
    steps = demo.steps
    expected = [
        ["slidemem", "one-turn slide"],
        [
            "prompt tokens in all",
            f"{sum(s.prefix.tokens for s in steps):,}",
            f"{sum(s.slide.tokens for s in steps):,}",
        ],
        ["re-used from the prompt before", f"{demo.reuse:.0%}", f"{demo.slide_reuse:.0%}"],
        [
            "tokens that are new to a cache",
            f"{sum(s.prefix.tokens - s.prefix.reused for s in steps):,}",
            f"{sum(s.slide.tokens - s.slide.reused for s in steps):,}",
        ],
        ["facts there when needed", f"{demo.facts_held} of 20", f"{demo.slide_facts_held} of 20"],
    ]

    assert expected == actual


def test_holds_budget_and_counts(demo: Report) -> None:
    """Budget, largest and last prompt, and what became of the messages are said in words."""
    receipt = demo.final.receipt
    actual = drawn(demo).partition("In figures\n")[2].partition("The slide")[0]
    expected = (
        f"{len(demo.steps)} prompts, none over 4,000 tokens; the largest took {demo.worst_tokens:,}, "
        f"the last {demo.final.tokens:,}.\n"
        f"{len(receipt.shown)} messages are verbatim in the last, {receipt.covered} archived by "
        f"{demo.consolidations} consolidations.\n"
    )

    assert expected == actual


def test_ticks_each_fact(demo: Report) -> None:
    """Each fact has a line with its turns, a tick and its place or a cross, and the slide's tick or cross."""
    table = drawn(demo, 120).partition("Facts needed later")[2].partition("In figures")[0].splitlines()[2:]
    found = [re.match(r" *(\d+) +(\d+) (.*?) +([✓✗])( \w+)? +([✓✗]) *$", line) for line in table if line]
    actual = [match and (int(match[1]), int(match[2]), match[4], match[5], match[6]) for match in found]
    expected = [
        (
            check.fact.said_in,
            check.fact.needed_in,
            "✓" if check.place else "✗",
            f" {check.place}" if check.place else None,
            "✓" if check.in_slide else "✗",
        )
        for check in demo.facts
    ]

    assert expected == actual


def test_shows_the_head_as_the_model_reads_it(demo: Report) -> None:
    """Pins and archive are shown whole, fence and all."""
    text = " ".join(drawn(demo, 80).split())
    head = demo.final.messages[1].text.partition("</earlier-conversation>")
    actual = [" ".join(line.split()) in text for line in (head[0] + head[1]).splitlines()]
    expected = [True] * len(actual)

    assert expected == actual


# ------------------------------------------------------------------ rows


@pytest.mark.parametrize("every, expected", [(1, 10), (4, 4), (100, 2), (None, 10)])
def test_shows_every_so_many_prompts(every: int | None, expected: int) -> None:
    """Of ten quiet prompts every so many are shown, and the last one always."""
    actual = len(rows(drawn(run(chat(9)), every=every)))

    assert expected == actual


def test_prompts_at_which_something_left_are_always_shown(demo: Report) -> None:
    """However few prompts are asked for, consolidations are among them."""
    text = drawn(demo, every=1000)
    actual = sum(marker.startswith("archived: ") for marker in markers(text))
    expected = demo.consolidations

    assert expected == actual


def test_a_screenful_or_two_is_enough() -> None:
    """Where consolidations are many and nobody says how many rows, no more than some fifty are shown."""
    report = run(chat(600), max_tokens=400, consolidator=None)
    text = drawn(report)
    actual = (report.consolidations > 100, len(rows(text)) <= 50, f"of {len(report.steps):,} rows" in text)
    expected = (True, True, True)

    assert expected == actual


def test_tokens_stand_beside_the_bar() -> None:
    """A row has turn, message, bar and tokens of the budget."""
    report = run([said("user", "x" * 1000), said("assistant", "y")], max_tokens=4000)
    actual = rows(drawn(report, 68))[0]
    expected = f"    1     1  {'█' * 10}{'·' * 30}  1,000/4,000"

    assert expected == actual


@given(st.lists(st.integers(0, 3000), min_size=5, max_size=5), st.integers(8, 100))
def test_cells_fill_the_bar(tokens: list[int], width: int) -> None:
    """The cells of a bar are as many as it is wide, and any zone that holds anything has one while there is room."""
    zones = Zones(*tokens)
    drawn = cells(zones, 5000, width)
    seen = [name for name, count in drawn if count]
    held = [
        name for name, count in zip(("system", "pinned", "archive", "window", "recall"), tokens, strict=True) if count
    ]
    actual = (sum(count for _, count in drawn), set(held) <= set(seen) or sum(tokens) > 4000 or width < 20)
    expected = (width, True)

    assert expected == actual


@pytest.mark.parametrize(
    "options, expected",
    [
        pytest.param({}, "archived: messages 0 to 4", id="archived"),
        pytest.param(
            {"consolidator": None}, "left the window: messages 0 to 4; nothing of it is archived", id="no-archive"
        ),
        pytest.param({"mode": "manual"}, "left out for now: messages 0 to 3", id="left-out"),
        pytest.param({"consolidator": lambda _: ""}, "refused: empty, though the span holds facts", id="refused"),
    ],
)
def test_says_what_happened(options: dict[str, Any], expected: str) -> None:
    """Below a prompt stands what left the window since the one before, and how."""
    texts = ["Take the 17:05 to Pune.", "Booked, 17:05 to Pune.", "And back on the 14th.", "Booked for the 14th."]
    first = [said("user" if at % 2 == 0 else "assistant", text + " word" * 80) for at, text in enumerate(texts)]
    last = [said("user", "word " * 150), said("assistant", "word " * 150), said("user", "Thanks.")]
    told = markers(drawn(run([*first, *last], max_tokens=3000, **options)))
    actual = [marker[: len(expected)] for marker in told]

    assert expected in actual


def test_says_what_the_counter_could_not_count() -> None:
    """An event of another kind is told by its name and its sentence, control characters written out."""

    def count(text: str) -> int:
        if text == "two":
            raise ValueError("\x1b[31m")
        return len(text)

    report = run([said("user", "one"), said("assistant", "two"), said("user", "three")], counter=count)
    actual = markers(drawn(report, 200))
    expected = [
        r"counter failed: one assistant message is counted approximately: the counter raised ValueError: \x1b[31m"
    ]

    assert expected == actual


def test_no_prompt_at_all_is_said() -> None:
    """A conversation in which no model could be called has no rows, and says so."""
    text = drawn(run([said("assistant", "Hello?")]))
    actual = (rows(text), "no prompt" in text, "0 prompts, none over" in text)
    expected = ([], True, True)

    assert expected == actual


# ------------------------------------------------------------------ the last context


def test_numbers_and_counts_the_last_context() -> None:
    """Each message of the last context has its number, role and tokens, and the system prompt comes first."""
    messages = [said("system", "Be kind."), said("user", "Hi"), said("assistant", "Hello"), said("user", "Bye")]
    actual = messages_shown(drawn(run(messages)))
    expected = [
        ["", "system", "8", "kept"],
        ["1", "user", "2", "kept"],
        ["2", "assistant", "5", "kept"],
        ["3", "user", "3", "kept"],
    ]

    assert expected == actual


def test_the_head_has_a_row_of_its_own() -> None:
    """What stands in front of the first message is no part of it, and the tokens add up."""
    report = run([*chat(60)])
    shown = messages_shown(drawn(report))
    actual = (shown[0][:2] + shown[0][3:], shown[1][1], sum(int(row[2].replace(",", "")) for row in shown))
    expected = (["", "head", "composed"], "user", report.final.tokens)

    assert expected == actual


def test_a_head_in_a_message_of_its_own_has_one_row() -> None:
    """With `archive_role="user"` no empty row stands behind the head."""
    report = run(chat(60), archive_role="user")
    shown = messages_shown(drawn(report))
    actual = ([row[1] for row in shown[:3]], len(shown))
    expected = (["head", "user", "assistant"], len(report.final.messages))

    assert expected == actual


def test_says_what_was_done_to_a_message() -> None:
    """Clamped and mended messages, notes, joined messages and stubs are named."""
    call = {"id": "x", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        said("user", "long " * 1000),
        said("assistant", "fine"),
        said("user", "  "),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        said("assistant", "No answer."),
        {"role": "tool", "tool_call_id": "x", "content": "late"},
        said("assistant", "Ah."),
    ]
    actual = messages_shown(drawn(run(messages)))
    expected = [
        ["0", "user", "clamped"],
        ["1", "assistant", "kept"],
        ["2", "user", "mended"],
        ["3", "assistant", "kept"],
        ["", "tool", "stub"],
        ["4", "assistant", "kept"],
        ["5", "user", "note"],
        ["6", "assistant", "kept"],
    ]

    assert expected == [[number, role, how] for number, role, _, how in actual]


def test_joined_messages_are_numbered_together() -> None:
    """A note that is joined to the user's message stands in one row with both numbers."""
    messages = [
        said("user", "Hi"),
        said("assistant", "Hello"),
        {"role": "tool", "tool_call_id": "x", "content": "late"},
        said("user", "Bye"),
    ]
    actual = [row[:2] for row in messages_shown(drawn(run(messages)))]
    expected = [["0", "user"], ["1", "assistant"], ["2-3", "user"]]

    assert expected == actual


def test_says_when_the_last_context_waits() -> None:
    """A context whose calls wait for results is no prompt, and says so."""
    call = {"id": "x", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    text = drawn(run([said("user", "Hi"), {"role": "assistant", "content": None, "tool_calls": [call]}]))
    actual = re.findall(r"The last context: .*", text)[0].strip()
    expected = "The last context: 10 of 4,000 tokens, waiting for results"

    assert expected == actual


def test_without_archive_and_facts_there_is_no_section_for_them() -> None:
    """What there is nothing of has no heading."""
    text = drawn(run(chat(2)))
    actual = ("The head" in text, "Facts needed later" in text, "facts there" in text)
    expected = (False, False, False)

    assert expected == actual


def test_a_message_has_one_line_of_a_hundred_characters() -> None:
    """A long message of many lines is cut to its first hundred characters, in one line."""
    text = drawn(run([said("user", "one\ntwo  three\n" * 50)]), 200)
    line = next(line for line in text.splitlines() if "kept" in line)
    actual = line.partition("kept ")[2].strip()
    expected = ("one two three " * 50)[:99].rstrip() + "…"

    assert expected == actual


# ------------------------------------------------------------------ figures


@pytest.mark.parametrize("starved, expected", [(0, "full."), (1, "1 prompt of it held"), (2, "2 prompts of it held")])
def test_says_where_the_slide_lacks_the_user(starved: int, expected: str) -> None:
    """Prompts in which the sliding window holds no user message are counted in words."""
    messages = [*chat(1), *[said("user", "long " * 900), said("assistant", "Well.")] * starved, *chat(1)]
    actual = re.findall(r"The slide drops .*", drawn(run(messages), 200))[0]

    assert expected in actual


def test_says_what_is_left_out() -> None:
    """Messages that are live and not shown are counted beside the archived ones."""
    report = run(chat(30), max_tokens=1000, mode="manual")
    actual = f"{report.final.receipt.left_out} left out for now." in drawn(report)
    expected = True

    assert expected == actual


# ------------------------------------------------------------------ what others wrote


def test_text_is_shown_as_text() -> None:
    """No markup of a message, a title or a fact is obeyed, and no control character gets through."""
    report = run([said("user", NASTY)], Fact(1, 1, NASTY, "loud"))
    text = drawn(report, 120, title=NASTY)
    actual = (text.count(SHOWN), re.findall(r"[^\S\n ]|[\x00-\x09\x0b-\x1f\u202e]", text))
    expected = (3, [])

    assert expected == actual


def test_the_console_obeys_no_markup() -> None:
    """Text that is printed as it came is not marked up either."""
    out = io.StringIO()
    PlainConsole(out).print("[bold]loud[/bold] :smile:")
    actual = out.getvalue()
    expected = "[bold]loud[/bold] :smile:\n"

    assert expected == actual


def test_archived_text_is_shown_as_text() -> None:
    """What a summariser wrote is shown as text too."""
    summary = "[red]code QX-4471[/red] \x1b]0;owned\x07"
    messages = [
        said("user", "My code is QX-4471."),
        *[said("assistant", "on and on " * 5), said("user", "so on")] * 70,
    ]
    text = drawn(run(messages, consolidator=lambda _: summary))
    actual = (r"[red]code QX-4471[/red] \x1b]0;owned\x07" in text, "\x1b" in text)
    expected = (True, False)

    assert expected == actual


@pytest.mark.parametrize(
    "text, expected",
    [
        pytest.param("plain", "plain", id="plain"),
        pytest.param(" two\n\tlines\r\n", "two lines", id="white-space"),
        pytest.param("a\x00b\x7fc\x9bd", r"a\x00b\x7fc\x9bd", id="control"),
        pytest.param("\u202egnp.exe\u2066", r"\u202egnp.exe\u2066", id="direction"),
        pytest.param("\ud800", r"\ud800", id="lone-surrogate"),
        pytest.param("क्\u200dष 👩\u200d🚀", "क्\u200dष 👩\u200d🚀", id="joiners"),
    ],
)
def test_writes_out_what_a_terminal_would_obey(text: str, expected: str) -> None:
    """Control characters are written out, white space becomes one space, and joiners stay."""
    actual = printable(text)

    assert expected == actual


# ------------------------------------------------------------------ colour, encodings, the page


def on_terminal(report: Report) -> str:
    """Return what is printed on a terminal."""
    out = Terminal()
    draw(report, PlainConsole(out, width=80), title="A chat")
    return out.getvalue()


def test_a_terminal_gets_colour(demo: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal each zone has its colour."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = on_terminal(demo)
    actual = [code in text for code in ("\x1b[35m▓", "\x1b[31m◆", "\x1b[33m▒", "\x1b[32m█", "\x1b[90m·")]
    expected = [True] * 5

    assert expected == actual


def test_no_color_leaves_none(demo: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `NO_COLOR` no colour code is printed, and each zone is told by its glyph."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    text = on_terminal(demo)
    actual = (re.findall(r"\x1b\[[\d;]*3\d[\d;]*m|\x1b\[9\dm", text), all(glyph in text for glyph in "▓◆▒█·✓✗"))
    expected = ([], True)

    assert expected == actual


def test_a_stream_that_is_not_utf_8_gets_ascii(demo: Report) -> None:
    """Bars, boxes and ticks are drawn in ASCII where the encoding knows no other, and the rest is replaced."""
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii", errors="replace")
    draw(demo, PlainConsole(out, width=80), title="A chat")
    out.flush()
    text = raw.getvalue().decode("ascii")
    actual = (
        "%% system  ++ pinned  == archive  ## window  ?? recall  .. free" in text,
        " no " in text,
        "+---" in text,
    )
    expected = (True, True, True)

    assert expected == actual


def test_a_page_stands_alone(demo: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page fetches nothing, has its title and the figures, and colours whatever the environment says."""
    monkeypatch.setenv("NO_COLOR", "1")
    text = page(demo, title="A <chat> of {braces}")
    fetches = re.findall(r"<script|<link|<img|src=|href=|@import|url\(", text)
    actual = (
        text.startswith("<!DOCTYPE html>"),
        fetches,
        "<title>A &lt;chat&gt; of {braces}</title>" in text,
        "facts there when needed" in text,
        "color: #008000" in text,
    )
    expected = (True, [], True, True, True)

    assert expected == actual


def test_a_page_escapes_what_others_wrote() -> None:
    """Tags in a message are text on the page."""
    text = page(run([said("user", "<script>alert(1)</script>")]), title="A chat")
    actual = ("<script>" in text, "&lt;script&gt;alert(1)&lt;/script&gt;" in text)
    expected = (False, True)

    assert expected == actual


def test_progress_is_told_on_stderr(
    demo: Report, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bar moves on stderr alone."""
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", terminal)
    with show.progress_bar(229) as on_step:
        on_step(demo.steps[-1])
    told = terminal.getvalue()
    actual = (capsys.readouterr().out, "replaying" in told, "100%" in told)
    expected = ("", True, True)

    assert expected == actual


def test_a_closed_pipe_is_the_callers() -> None:
    """Where rich would end the process, the error is raised."""
    with pytest.raises(BrokenPipeError) as caught:
        PlainConsole(io.StringIO()).on_broken_pipe()
    actual = caught.type
    expected = BrokenPipeError

    assert expected == actual


# ------------------------------------------------------------------ a question


def test_a_question_shows_what_it_finds() -> None:
    """Below the last context stand the messages and lines that a question finds, and where the prompt shows them."""
    report = run(
        [
            said("user", "The boathouse key hangs behind the barometer, and my locker has the code 4417."),
            said("assistant", "Noted."),
            *chat(20),
            said("user", "Is there a key to the cabin as well?"),
        ],
        query="Where is the boathouse key, and which code has my locker?",
        max_tokens=2400,
    )
    text = drawn(report).partition("which code has my locker? (")[2]

    found = re.findall(r"^ *(\d*) (user|archive) +\d\.\d\d (window|recall|archive|no) ", text, re.MULTILINE)

    assert ("0", "user", "recall") in found
    assert ("42", "user", "window") in found
    assert {("", "archive", "archive")} == {row for row in found if not row[0]}
    assert text.startswith(f"{report.answer.context.zones.recall:,} tokens are quoted") if report.answer else False


def test_a_question_may_find_nothing() -> None:
    """A question about something that was never said says so; without one there is no such section."""
    assert "Nothing was found." in drawn(run(chat(3), query="zebra?"))
    assert "Asked:" not in drawn(run(chat(3)))


# ------------------------------------------------------------------ one context, one session


def printed(thing: Any, width: int = 100) -> str:
    """Return what is printed of a session into a pipe."""
    out = io.StringIO()
    PlainConsole(out, width=width).print(thing)
    return out.getvalue()


def test_a_session_prints_its_context_archive_and_figures() -> None:
    """A session is a bar, a legend, a row a message, its segments with their lines, and its figures."""
    session = SlideMem(max_tokens=2000, counter=len, clock=lambda: 0.0).session("s")
    for turn in range(30):
        session.append([said("user", f"question {turn}"), said("assistant", f"It costs {turn + 100} EUR, {NASTY}")])
    context = session.context()
    text = printed(session, 200)

    assert f"Session s: {context.tokens:,} of 2,000 tokens" in text
    assert f"archive {context.zones.archive:,}" in text
    assert SHOWN in text
    assert f"messages 0 to {session.archive()[0].end - 1}: " in text
    assert "The transcript has 60 messages" in text
    assert text == printed(session.overview(), 200)


def test_a_context_prints_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """`show` prints a context to the terminal, or to a console."""
    session = SlideMem(max_tokens=2000, counter=len).session("s")
    session.append(said("user", "hello"))
    out = io.StringIO()

    terminal.show(session.context(), PlainConsole(out, width=80))
    terminal.show(session.context())

    assert "Context: " in out.getvalue()
    assert "hello" in out.getvalue()
    assert "hello" in capsys.readouterr().out


def test_a_session_that_cannot_be_looked_at_prints_a_sentence() -> None:
    """Where a store fails, or the budget is too small for anything, the print says so."""

    class Broken(SQLiteStore):
        async def snapshot(self, session: str) -> Any:
            raise OSError("gone")

    store = SQLiteStore()
    SlideMem(max_tokens=2000, counter=len, store=store).session("s").append(said("user", "word " * 300))
    small = SlideMem(max_tokens=2, counter=len, store=store).session("s")

    assert "it cannot be shown: OSError('gone')" in printed(
        SlideMem(max_tokens=9, counter=len, store=Broken()).session("s")
    )
    assert "takes 3 tokens and 2 are usable" in printed(small)
