"""Documents lead to what is there: relative links, anchors as GitHub makes them, questions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import DOCS, PAGES, ROOT, named, text

WRITTEN = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *PAGES]
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
QUESTION = re.compile(r"\A# .+\n\n> (.+\?)\n")


def prose(path: Path) -> str:
    """A document without its blocks of code."""
    return FENCED.sub("", path.read_text(encoding="utf-8"))


def anchors(path: Path) -> set[str]:
    """The anchors of its headings, as GitHub makes them: lower case, without punctuation, dashes for spaces."""
    headings = re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(path: Path) -> list[str]:
    """The links of a document that lead nowhere."""
    found = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if link.startswith(("http://", "https://")):
            continue
        place, _, anchor = link.partition("#")
        target = (path.parent / place).resolve() if place else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("path", WRITTEN, ids=named)
def test_links_lead_somewhere(path: Path) -> None:
    """Each relative link of a document names a file of the repository, and a heading in it."""
    assert [] == broken(path)


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    """The check sees a missing file and a missing heading, and passes over code."""
    page = tmp_path / "page.md"
    page.write_text("# Here\n\n[a](#here) [b](#there) [c](none.md)\n\n```\n[d](none.md)\n```\n", encoding="utf-8")

    assert ["#there", "none.md"] == broken(page)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_page_begins_with_the_question_that_leads_to_it(page: Path) -> None:
    """Under its title stands what a user would type, and the page of questions lists it with a link."""
    asked = QUESTION.match(page.read_text(encoding="utf-8"))

    assert asked is not None
    if page.name != "questions.md":
        assert f"- [{asked[1]}]({page.relative_to(DOCS).as_posix()})" in text("docs/questions.md")


def test_each_page_is_in_the_navigation() -> None:
    """The site leads to every page."""
    listed = set(re.findall(r"(\S+\.md)$", text("mkdocs.yml"), re.MULTILINE))

    assert {page.relative_to(DOCS).as_posix() for page in PAGES} == listed
