"""Search: what was ever said of something, best first."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from slidemem import ConfigurationError, ConversationMemory, SlideMem

SAID = [
    ("user", "The ferry to Tangier leaves at noon."),
    ("assistant", "Noon it is, from the western pier."),
    ("user", "My cabin is number 214."),
    ("assistant", "Cabin 214, noted."),
    ("user", "Is there a ferry at night too?"),
]


@pytest.fixture
def chat() -> ConversationMemory:
    """A session of five messages, a second apart."""
    clock = iter(range(100, 200))
    made = SlideMem(max_tokens=1_000, counter=lambda text: len(text.split()), clock=lambda: next(clock)).session("s")
    for role, text in SAID:
        made.append({"role": role, "content": text})
    return made


def test_the_best_hit_comes_first(chat: ConversationMemory) -> None:
    """A hit tells the message, its place, its session, and when it was appended."""
    hit = chat.search("ferry Tangier", k=1)[0]

    assert (SAID[0][1], 0, "s", 100, None) == (hit.text, hit.seq, hit.session, hit.at, hit.segment)
    assert hit.message == chat.transcript()[0]
    assert hit.score > 0


def test_live_messages_are_found_too(chat: ConversationMemory) -> None:
    """Whatever is in the transcript is found, shown or not."""
    assert {0, 4} <= {hit.seq for hit in chat.search("ferry")}
    assert chat.search("ferry") == asyncio.run(chat.asearch("ferry"))


@pytest.mark.parametrize(
    "given, expected",
    [
        pytest.param({"roles": "assistant"}, {"assistant"}, id="a-role"),
        pytest.param({"roles": ["user", "tool"]}, {"user"}, id="roles"),
        pytest.param({"roles": []}, set(), id="no-role"),
    ],
)
def test_a_search_keeps_to_roles(chat: ConversationMemory, given: dict[str, Any], expected: set[str]) -> None:
    """Only messages of the roles asked for are found."""
    assert expected == {hit.message.role for hit in chat.search("cabin noon ferry", **given) if hit.message}


def test_a_search_keeps_to_a_time(chat: ConversationMemory) -> None:
    """`since` counts in, `until` does not."""
    assert {1, 2, 3} == {hit.seq for hit in chat.search("cabin noon ferry", k=9, since=101, until=104)}


def test_a_search_goes_on_until_it_has_enough() -> None:
    """A filter that lets few hits pass looks further down the ranking."""
    chat = SlideMem(max_tokens=9_000, counter=lambda text: len(text.split())).session("s")
    chat.append([{"role": "user", "content": f"The ferry number {at} sails."} for at in range(90)])
    chat.append({"role": "assistant", "content": "Which ferry was it, of all those that there are in these waters?"})

    assert [90] == [hit.seq for hit in chat.search("ferry", k=1, roles="assistant")]


def test_lines_of_the_archive_are_found() -> None:
    """A hit in the archive names its segment, and has no message."""
    mem = SlideMem(max_tokens=300, counter=lambda text: len(text.split()), consolidator=lambda _: "- Likes quinces.")
    chat = mem.session("s")
    for number in range(24):
        chat.append({"role": "user", "content": f"quinces are one of {'so ' * number}many words that are said here"})
        chat.append({"role": "assistant", "content": "quite so"})
    hit = next(hit for hit in chat.search("quinces", k=99) if hit.segment)

    assert ("Likes quinces.", None, None) == (hit.text, hit.seq, hit.message)
    assert hit.segment in chat.archive()
    assert all(found.message for found in chat.search("quinces", k=99, roles="user"))


@pytest.mark.parametrize("query", ["", "   ", "the of and", "?!", "\0", "\ud83d", "AND OR NOT NEAR(", '" * " : ^'])
def test_a_query_is_text_and_never_syntax(chat: ConversationMemory, query: str) -> None:
    """What would be syntax elsewhere finds nothing, and breaks nothing."""
    assert () == chat.search(query)


def test_a_huge_query_is_safe(chat: ConversationMemory) -> None:
    """A query of 100 kB finds what it names."""
    assert 0 in {hit.seq for hit in chat.search("Tangier " + "ferry noon pier " * 6_500)}


@pytest.mark.parametrize(
    "given, told",
    [
        ({"query": 5}, "a query is text, got int"),
        ({"query": "x", "k": 0}, "k must be a whole number of 1 or more, got 0"),
        ({"query": "x", "k": True}, "k must be a whole number"),
        ({"query": "x", "roles": "bot"}, "roles must be among assistant, system, tool, user, got 'bot'"),
        ({"query": "x", "tool": ""}, "tool must be the name of the tool that searches, got ''"),
        ({"query": "x", "tool": 5}, "tool must be the name"),
        ({"query": "x", "since": "now"}, "since must be seconds since 1970, got 'now'"),
        ({"query": "x", "until": False}, "until must be seconds since 1970, got False"),
    ],
)
def test_wrong_arguments_are_told(chat: ConversationMemory, given: dict[str, Any], told: str) -> None:
    """The error says what was given and what is wanted."""
    with pytest.raises(ConfigurationError, match=told):
        chat.search(**given)


def test_a_hit_reads_as_it_would_be_quoted() -> None:
    """Its text is redacted and has the calls written out; its message is as it was said."""
    chat = SlideMem(max_tokens=900, counter=len, redact=lambda text: text.replace("hunter2", "***")).session("s")
    function = {"name": "log_in", "arguments": '{"password": "hunter2"}'}
    called = [{"id": "1", "type": "function", "function": function}]
    chat.append([{"role": "user", "content": "My password: hunter2."}, {"role": "assistant", "tool_calls": called}])
    said = {hit.seq: hit for hit in chat.search("password")}

    assert ("My password: ***.", 'called log_in({"password": "***"})') == (said[0].text, said[1].text)
    assert chat.transcript()[0] == said[0].message


# ------------------------------------------------------------------ a tool that searches for a model


def call(name: str, id_: str, query: str) -> dict[str, Any]:
    """A message that calls a tool."""
    function = {"name": name, "arguments": json.dumps({"query": query})}
    return {"role": "assistant", "tool_calls": [{"id": id_, "type": "function", "function": function}]}


def test_a_tool_does_not_find_what_is_being_asked(chat: ConversationMemory) -> None:
    """The turn that is not answered yet, its calls and results too, is no answer; once it is answered it is."""
    chat.append([call("look", "1", "ferry at night"), {"role": "tool", "tool_call_id": "1", "content": "no ferry"}])
    while_asked = {hit.seq for hit in chat.search("ferry", k=9, tool="recall")}
    chat.append({"role": "assistant", "content": "There is none."})

    assert {0} == while_asked & {0, 4, 5, 6}
    assert {0, 4, 5, 6} <= {hit.seq for hit in chat.search("ferry", k=9, tool="recall")}


def test_a_question_that_the_window_was_cut_behind_is_being_asked_still() -> None:
    """Where a long run of tools has left its question in the archive, that is no answer either."""
    chat = SlideMem(max_tokens=200, counter=lambda text: len(text.split()), consolidator=None).session("s")
    chat.append([{"role": "user", "content": "The ferry is blue."}, {"role": "assistant", "content": "I see."}])
    chat.append({"role": "user", "content": "Which ferry?"})
    for at in range(40):
        chat.append(
            [call("look", str(at), "ferry"), {"role": "tool", "tool_call_id": str(at), "content": "word " * 9}]
        )

    assert chat.archive()[-1].end > 3
    assert [0] == [hit.seq for hit in chat.search("ferry", k=9, tool="recall")]


def test_a_tools_own_calls_and_answers_are_no_answers(chat: ConversationMemory) -> None:
    """Those of other tools are; an answer whose call is not there is as well."""
    chat.append([call("recall", "1", "ferry"), {"role": "tool", "tool_call_id": "1", "content": "ferry: noon"}])
    chat.append([call("look", "1", "ferry"), {"role": "tool", "tool_call_id": "1", "content": "a blue ferry"}])
    chat.append({"role": "tool", "tool_call_id": "gone", "content": "a late ferry"})
    chat.append({"role": "assistant", "content": "So it is."})

    assert {0, 4, 7, 8, 9} == {hit.seq for hit in chat.search("ferry", k=9, tool="recall")} - {1, 2, 3}
