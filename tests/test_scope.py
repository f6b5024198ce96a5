"""Recall through all sessions of a user."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from meanings import OwnIndex

from slidemem import ConfigurationError, ConversationMemory, MemoryStore, SlideMem

FACT = "The spare key of the boathouse hangs behind the barometer."
ASKED = "Where does the spare key of the boathouse hang?"


def memory(**options: Any) -> SlideMem:
    """A memory of 400 words that looks through a user's sessions."""
    given: dict[str, Any] = {"recall_scope": "user", "max_tokens": 400, **options}
    return SlideMem(counter=lambda text: len(text.split()), clock=lambda: 0.0, **given)


def user(text: str, **more: Any) -> dict[str, Any]:
    """A user message."""
    return {"role": "user", "content": text, **more}


def told(chat: ConversationMemory, *facts: str) -> ConversationMemory:
    """Tell facts."""
    for fact in facts:
        chat.append([user(fact), {"role": "assistant", "content": "I see."}])
    return chat


def filler(chat: ConversationMemory, turns: int = 20) -> None:
    """Tell other things until what was told has left the window."""
    for turn in range(turns):
        chat.append([user(f"Subject {turn} " + "please " * 15), {"role": "assistant", "content": "Right, " * 15}])


def test_a_new_session_is_answered_from_another() -> None:
    """What the user said in another session is quoted in a new one, told apart, from the first question on."""
    mem = memory()
    told(mem.session("old", user_id="meera"), FACT)
    chat = mem.session("new", user_id="meera")
    chat.append(user(ASKED))

    context = chat.context()

    assert f"From another conversation:\nuser: {FACT}\n" in context.messages[-1].text
    assert () == context.receipt.recalled
    assert 0 < context.zones.recall <= 400 - context.zones.window


@pytest.mark.parametrize(
    "other",
    [{"user_id": "disha"}, {}, {"user_id": "meera", "scope": "session"}],
    ids=["another user's", "nobody's", "one session alone"],
)
def test_other_users_are_never_quoted(other: dict[str, Any]) -> None:
    """Another user, nobody, and a memory that keeps to one session see nothing of it."""
    store = MemoryStore()
    told(memory(store=store).session("old", user_id="meera"), FACT)
    scope = other.pop("scope", "user")
    chat = memory(store=store, recall_scope=scope).session("new", **other)
    chat.append(user(ASKED))

    assert "barometer" not in "".join(message.text for message in chat.context().messages)
    assert () == chat.search("barometer")


def test_both_are_quoted_in_their_order() -> None:
    """Other conversations come first, in the order in which they began, then this one's, each said to be so."""
    mem = memory(max_tokens=800)
    told(mem.session("first", user_id="meera"), "The boathouse is green.")
    told(mem.session("second", user_id="meera"), "The boathouse has a spare key.")
    chat = told(mem.session("third", user_id="meera"), FACT)
    filler(chat, 40)
    chat.append(user(ASKED))

    context = chat.context()

    text = context.messages[-1].text
    places = [text.index(said) for said in ("is green", "has a spare key", "From this one:", "behind the barometer")]
    assert sorted(places) == places
    assert 2 == text.count("From another conversation:")
    assert 0 in context.receipt.recalled
    assert context.tokens <= 800


def test_a_call_is_quoted_with_its_result() -> None:
    """A tool's call in another session comes with what it gave."""
    mem = memory()
    call = {"id": "1", "type": "function", "function": {"name": "find_key", "arguments": '{"of": "boathouse"}'}}
    mem.session("old", user_id="meera").append(
        [
            user("Look it up."),
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": "Behind the barometer."},
            {"role": "assistant", "content": "Found."},
        ]
    )
    chat = mem.session("new", user_id="meera")
    chat.append(user(ASKED))

    text = chat.context().messages[-1].text

    assert 'called find_key({"of": "boathouse"})' in text
    assert "Behind the barometer." in text


def test_a_search_looks_through_all() -> None:
    """A search finds what any of the user's sessions holds, each hit with its session, best first."""
    mem = memory()
    told(mem.session("old", user_id="meera"), FACT)
    chat = told(mem.session("new", user_id="meera"), "The barometer fell.")

    hits = chat.search("barometer boathouse")

    assert ("old", 0) == (hits[0].session, hits[0].seq)
    assert {"old", "new"} == {hit.session for hit in hits}
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_async_callers_and_a_database_do_the_same(tmp_path: Path) -> None:
    """The twins look through the sessions of a database."""

    async def go() -> tuple[str, list[str]]:
        with memory(store=f"sqlite:///{tmp_path / 'chat.db'}") as mem:
            await mem.session("old", user_id="meera").aappend(user(FACT))
            chat = mem.session("new", user_id="meera")
            await chat.aappend(user(ASKED))
            hits = await chat.asearch("barometer")
            return (await chat.acontext()).messages[-1].text, [hit.session for hit in hits]

    text, sessions = asyncio.run(go())

    assert "behind the barometer" in text
    assert ["old"] == sessions


def test_meaning_looks_through_all_too() -> None:
    """With embeddings a session's question finds what another one holds in other words."""
    mem = memory(embeddings=OwnIndex())
    other = told(mem.session("old", user_id="meera"), "My terrier snores.")
    filler(other)
    chat = mem.session("new", user_id="meera")
    chat.append(user("Which hound do I own?"))

    assert "terrier" in chat.context().messages[-1].text


def test_parts_of_a_store_know_no_users() -> None:
    """A transcript apart does not know whose a session is, and is refused at once."""
    with pytest.raises(ConfigurationError, match="needs a store that knows whose a session is"):
        memory(transcript=MemoryStore())


def test_only_so_many_sessions_are_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of very many sessions of a user the latest are looked through."""
    monkeypatch.setattr("slidemem.recollect._OTHERS", 2)
    mem = memory()
    for number in range(4):
        told(mem.session(f"s{number}", user_id="meera"), f"Barometer number {number} fell.")

    hits = mem.session("new", user_id="meera").search("barometer", 9)

    assert {"s2", "s3"} == {hit.session for hit in hits}
