"""What a notebook shows of a context and of a session."""

import asyncio
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slidemem import Context, ConversationMemory, Event, MemoryStore, Message, Part, SlideMem, SQLiteStore
from slidemem.show.html import safely
from slidemem.show.rows import COLORS
from slidemem.show.tell import segment_line
from slidemem.testing import GatedStore

NASTY = "<script>alert(1)</script></details></td></table> &amp; \x1b[31m \u202ekcab 'x' \"y\" <img src=x onerror=a()>"


class Page(HTMLParser):
    """Reads a piece of a page, and checks that each element is closed where it should be."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()
        assert [] == self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element that opens."""
        self.tags[tag] += 1
        self.attributes.extend((name, value or "") for name, value in attrs)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the element that is open."""
        assert tag == self.open.pop()

    def handle_data(self, data: str) -> None:
        """Note a text."""
        self.texts.append(data)

    @property
    def text(self) -> str:
        """All that is to be read."""
        return " ".join(" ".join(self.texts).split())


def said(role: str, text: str, **more: Any) -> dict[str, Any]:
    """Return a message."""
    return {"role": role, "content": text, **more}


def session(turns: int, text: str = "word " * 12, id_: str = "s", **options: Any) -> ConversationMemory:
    """Return a session of short turns, a token being a character."""
    options = {"max_tokens": 2000, "counter": len, "clock": lambda: 0.0, **options}
    chat = SlideMem(**options).session(id_)
    for turn in range(turns):
        chat.append(
            [said("user", f"question {turn} {text}"), said("assistant", f"It costs {turn + 100} EUR. {text}")]
        )
    return chat


# ------------------------------------------------------------------ what is seen


def test_a_context_shows_its_zones_rows_and_receipt() -> None:
    """The title holds the budget, the legend each zone, the table a row a message, the last line the receipt."""
    chat = session(30)
    chat.append(said("user", "What did question 3 cost?"))
    context = chat.context(system="Be brief.")
    page = Page(context._repr_html_())
    zones = context.zones

    assert f"Context : {context.tokens:,} of 2,000 tokens" in page.text
    for name in ("system", "archive", "window", "recall"):
        assert f"{name} {getattr(zones, name):,}" in page.text
    assert f"free {2000 - context.tokens:,}" in page.text
    assert page.tags["tr"] == 1 + 1 + 1 + 1 + len(context.receipt.shown)  # titles, system, head, quotes, messages
    assert f"{len(context.receipt.recalled)} old ones quoted" in page.text
    assert f"{context.receipt.covered} messages are archived" in page.text


def test_a_bar_is_as_wide_as_the_zones_say() -> None:
    """The widths of the bar's pieces are the zones' shares of the budget."""
    context = session(30).context(system="Be brief.")
    widths = [float(width) for width in re.findall(r"width:([\d.]+)%;min-width", context._repr_html_())]
    tokens = [context.zones.system, context.zones.archive, context.zones.window]

    assert [round(count / 20, 2) for count in tokens] == widths


def test_a_system_prompt_beside_the_budget_does_not_overflow_the_bar() -> None:
    """With `count_system=False` the pieces of the bar still fit into it."""
    context = session(3, count_system=False).context(system="Be brief. " * 180)
    widths = [float(width) for width in re.findall(r"width:([\d.]+)%;min-width", context._repr_html_())]

    assert context.zones.system + context.zones.window > 2000
    assert 100 == pytest.approx(sum(widths), abs=0.05)


def test_what_was_done_to_a_message_is_said() -> None:
    """A clamped message, and one that waits for the results of tools, say so."""
    chat = session(0)
    chat.append(said("user", "long " * 1000))
    calls = [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    chat.append({"role": "assistant", "content": None, "tool_calls": calls})
    page = Page(chat.context()._repr_html_())

    assert "clamped" in page.texts
    assert "1 of them clamped" in page.text
    assert "look {}" in page.text
    assert "so it is no prompt yet" in page.text


def test_a_session_shows_its_archive_down_to_the_messages() -> None:
    """Each segment opens to its lines and to the messages that it was made from, and says how many more there are."""
    chat = session(60, max_tokens=1000)
    page = Page(chat._repr_html_())
    found = [line for line in page.texts if re.match(r"messages \d+ to \d+: ", line)]
    tops = [segment_line(segment) for segment in chat.archive()]

    assert set(tops) <= set(found)
    assert any("merged from 4" in line for line in tops)
    assert len(found) > len(tops)
    assert "0 user: question 0 word" in page.text
    assert re.search(r"\d+ more messages", page.text)


def test_quoted_sources_are_told_from_others() -> None:
    """A message of the archive's sources that the context quotes says so."""
    chat = session(4, max_tokens=1000)
    chat.consolidate(force=True)
    chat.append(said("user", "What of question 1?"))
    seqs = chat.context().receipt.recalled

    assert seqs
    assert len(seqs) == Page(chat._repr_html_()).text.count("archived, quoted now")


def test_figures_are_said_in_sentences() -> None:
    """The last lines tell what the transcript holds, and what this process has read and consolidated."""
    chat = session(30)
    chat.context()
    stats, text = chat.stats(), Page(chat._repr_html_()).text

    assert f"The transcript has 60 messages: {stats.live_messages} live" in text
    assert f"{stats.consolidations} consolidations of {stats.tokens_in:,} tokens" in text
    assert f"1 context read, {stats.prompt_tokens:,} tokens" in text


def test_an_empty_session_is_shown() -> None:
    """A session without messages is an empty bar and one sentence."""
    text = Page(session(0)._repr_html_()).text

    assert "0 of 2,000 tokens" in text
    assert "The transcript has 0 messages" in text


# ------------------------------------------------------------------ what it must not do


@settings(max_examples=30, deadline=None)
@given(st.text(st.characters(codec="utf-8"), max_size=200) | st.sampled_from([NASTY, "</pre>" * 300]))
def test_text_is_text(text: str) -> None:
    """Whatever is said in any place, the page has the elements that it has for harmless words, and each is closed."""
    harmless = "w\nw" if "\n" in text.strip() else "w"
    pages = []
    for words in (text, harmless):
        message = Message("user", (Part("text", f"{words or 'w'}."),))
        chat = SlideMem(max_tokens=10_000, counter=lambda _: 1).session("s", metadata={"k": words[:100]})
        chat.append([message, said("assistant", f"{words}.")])
        chat.consolidate(force=True)
        pages.append(Page(chat._repr_html_()))
    allowed = {"div", "p", "b", "i", "span", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "pre"}

    assert set(pages[0].tags) <= allowed
    assert {name for name, _ in pages[0].attributes} <= {"style", "title"}
    assert not any(char in pages[0].text for char in "\x1b\u202e\x00")


def test_an_attack_is_read_as_it_was_written() -> None:
    """Tags of a message, of a session's name and of metadata are to be read, control characters are written out."""
    chat = SlideMem(max_tokens=4000, counter=len).session(NASTY, metadata={"note": NASTY})
    chat.append(said("user", NASTY))
    page = Page(chat._repr_html_())

    assert page.text.count("<script>alert(1)</script></details>") >= 3
    assert r"\x1b[31m \u202ekcab" in page.text
    assert 0 == page.tags["script"] + page.tags["img"]


def test_it_fetches_and_runs_nothing() -> None:
    """There is no script, no stylesheet, no address and no class in it; what it shows stands in itself."""
    page = session(60, max_tokens=1000)._repr_html_()

    assert not re.search(r"<script|<style|<link|<iframe|href=|src=|url\(|class=|@import|on\w+=", page)


def luminance(color: str) -> float:
    """Return how light a colour is, as WCAG 2 defines it."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("ground", ["#ffffff", "#111111"])
def test_it_reads_on_light_and_dark(ground: str) -> None:
    """Each zone stands out at three to one, as WCAG 2 wants of graphics, and text takes the notebook's own colour."""
    for color in COLORS.values():
        light, dark = sorted((luminance(color), luminance(ground)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3
    page = session(30)._repr_html_()

    assert not re.search(r"[;\"]color:", page)
    assert set(re.findall(r"background:([^;\"]+)", page)) <= {
        *COLORS.values(),
        "rgba(128,128,128,.25)",
        "transparent",
    }


def test_looking_changes_nothing() -> None:
    """A look writes nothing, tells no event, consolidates nothing, and moves no figure."""
    events: list[Event] = []
    chat = session(30, mode="manual", on_event=events.append)
    chat.consolidate()
    chat.append(said("user", "What did question 3 cost?"))
    before, stats, told = chat.export(), chat.stats(), len(events)

    first = chat._repr_html_()

    assert first == chat._repr_html_()
    assert (before, stats, told) == (chat.export(), chat.stats(), len(events))
    assert "old ones quoted" in first


def test_looking_asks_no_embedding_model() -> None:
    """With embeddings, a look leaves out quotes, and says so."""
    asked: list[str] = []

    class Embedding:
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            asked.extend(texts)
            return [[1.0, 0.0] for _ in texts]

        def embed_query(self, text: str) -> list[float]:
            asked.append(text)
            return [1.0, 0.0]

    chat = session(30, embeddings=Embedding())
    chat.append(said("user", "What did question 3 cost?"))
    asked.clear()

    assert "would ask the embedding model" in Page(chat._repr_html_()).text
    assert [] == asked


# ------------------------------------------------------------------ bounds


def test_a_long_session_is_shown_in_part() -> None:
    """Of a long window the newest rows are shown, and it is said how many are not."""
    chat = SlideMem(max_tokens=10_000_000, counter=lambda _: 1).session("long")
    chat.append([said(role, f"word {n}") for n in range(1500) for role in ("user", "assistant")])
    page = chat._repr_html_()

    assert len(page) < 50_000
    assert "2,970 rows before these are not shown" in page
    assert "word 1484" not in page
    assert "word 1499" in page


def test_a_page_of_the_largest_messages_is_bounded() -> None:
    """Messages, archive lines, names and metadata of any length take a bounded page."""
    big = "<&>" * 10_000
    chat = SlideMem(max_tokens=1_000_000, counter=len).session("n" * 100_000, metadata={"k": "v" * 10_000})
    for _ in range(40):
        chat.append([said("user", big), said("assistant", f"It costs 100 EUR. {big}")])

    assert len(chat._repr_html_()) < 1_000_000
    assert f"{len(big) - 2000:,} more characters" in chat._repr_html_()


def test_many_segments_are_shown_in_part() -> None:
    """Of a large archive a bounded number of segments is looked at, and messages that are not read are counted."""
    chat = session(700, text="", max_tokens=300)
    chat.append(said("user", "last"))
    overview = chat.overview()

    def walk(traced: Any) -> list[Any]:
        return [traced, *(one for child in traced.children for one in walk(child))]

    looked = [one for top in overview.archive for one in walk(top)]
    covered = sum(one.more + len(one.sources) for one in looked)

    assert len(looked) <= 40
    assert "3 older segments not shown" in replace(overview, older=3)._repr_html_()
    assert chat.stats().covered_messages == covered


# ------------------------------------------------------------------ where it cannot be looked at


def test_a_store_that_can_only_be_awaited_is_said_to_be_one() -> None:
    """The look of a session whose store suspends is a sentence that names the twin, and the awaited look shows it."""

    async def looked() -> tuple[str, str]:
        store = GatedStore(MemoryStore(), lambda _: asyncio.sleep(0))
        chat = SlideMem(max_tokens=2000, counter=len, store=store).session("s")
        await chat.aappend(said("user", "hi"))
        return chat._repr_html_(), (await chat.aoverview())._repr_html_()

    sentence, page = asyncio.run(looked())

    assert "its store can only be awaited: show `await chat.aoverview()`" in Page(sentence).text
    assert "The transcript has 1 message: 1 live" in Page(page).text


def test_a_store_that_fails_is_a_sentence() -> None:
    """A look never raises: what the store raised is told."""

    class Broken(SQLiteStore):
        async def snapshot(self, session: str) -> Any:
            raise OSError("<disk> gone")

    chat = SlideMem(max_tokens=2000, counter=len, store=Broken()).session("s")

    assert "it cannot be shown: OSError('<disk> gone')" in Page(chat._repr_html_()).text


def test_a_budget_that_nothing_fits_is_a_sentence() -> None:
    """Where not even the newest message fits, the numbers stand in the place of the context."""
    store = SQLiteStore()
    SlideMem(max_tokens=2000, counter=len, store=store).session("s").append(said("user", "word " * 300))
    chat = SlideMem(max_tokens=2, counter=len, store=store).session("s")
    text = Page(chat._repr_html_()).text

    assert "takes 3 tokens and 2 are usable" in text
    assert "The transcript has 1 message" in text


def test_a_context_that_cannot_be_shown_is_a_sentence() -> None:
    """A context made by hand, whose costs are not its messages', is no error of a cell."""
    context = session(1).context()
    wrong = Context(context.messages, (), context.tokens, context.zones, context.head, context.receipt)

    assert "It cannot be shown: ValueError" in Page(wrong._repr_html_()).text
    assert "p" in Page(safely(lambda: "<p>fine</p>")).tags
