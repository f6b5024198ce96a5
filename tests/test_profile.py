"""What is known of a user and shared by their sessions, and what a user asks to remember and to forget."""

# several scripts are tested
from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from slidemem import Asked, ConversationMemory, Event, MemoryStore, SlideMem, SQLiteStore
from slidemem.errors import ConfigurationError, InvalidMessage, PinBudgetError
from slidemem.stores.joined import JoinedStore
from slidemem.wishes import means, to_forget


def words(text: str) -> int:
    """Words of a text."""
    return len(text.split())


def memory(**options: Any) -> SlideMem:
    """A memory of 300 words."""
    return SlideMem(max_tokens=300, **{"counter": words, "archive_share": 0.3, "recall_share": 0, **options})


def say(chat: ConversationMemory, *texts: str) -> None:
    """Let the user say something, and be answered."""
    for text in texts:
        chat.append([{"role": "user", "content": text}, {"role": "assistant", "content": "So it is."}])


def chatter(chat: ConversationMemory, turns: int = 40) -> None:
    """Fill the window with what states nothing."""
    say(chat, *["and how was the sea today, calm or rather rough?"] * turns)


# ------------------------------------------------------------------ profile


@pytest.fixture(params=["memory", "sqlite", "apart"])
def mem(request: pytest.FixtureRequest, tmp_path: Path) -> SlideMem:
    """A memory over each kind of store."""
    stores = {
        "memory": MemoryStore,
        "sqlite": lambda: SQLiteStore(tmp_path / "chat.db"),
        "apart": lambda: JoinedStore(MemoryStore(), MemoryStore()),
    }
    return memory(store=stores[request.param]())


def test_a_profile_is_shared_by_the_users_sessions(mem: SlideMem) -> None:
    """It stands in the pinned zone of each of them, and of nobody else's."""
    first, second = mem.session("a", user_id="alice"), mem.session("b", user_id="alice")
    other, nobody = mem.session("c", user_id="bob"), mem.session("d")
    for chat in (first, second, other, nobody):
        say(chat, "hello")

    first.profile.set("city", "Pune")
    first.profile.set("age", 41)
    first.profile.set("city", "  Nashik\nRoad ")

    assert {"city": "Nashik Road", "age": "41"} == second.profile.all()
    assert "city: Nashik Road\nage: 41" in second.context().head
    assert second.context().zones.pinned > 0
    assert ["", ""] == [other.context().head, nobody.context().head]
    assert {"a", "b", "c", "d"} >= set(mem.sessions())  # a store in two parts lists none


def test_a_profile_outlives_its_sessions(mem: SlideMem) -> None:
    """Clearing a session leaves it, and it is forgotten value by value, or as a whole."""
    chat = mem.session("a", user_id="alice")
    chat.profile.set("city", "Pune")
    chat.profile.set("age", 41)
    chat.clear()

    assert "Pune" == mem.session("b", user_id="alice").profile.get("city")
    assert chat.profile.get("name") is None
    assert (True, False) == (chat.profile.remove("city"), chat.profile.remove("city"))
    assert {"age": "41"} == chat.profile.all()
    chat.profile.clear()
    assert {} == chat.profile.all()


def test_a_profile_has_async_twins(mem: SlideMem) -> None:
    """They do the same."""
    chat = mem.session("a", user_id="alice")

    async def talk() -> tuple[Any, ...]:
        await chat.profile.aset("city", "Pune")
        known = await chat.profile.aall(), await chat.profile.aget("city")
        await chat.aappend({"role": "user", "content": "hello"})
        head = (await chat.acontext()).head
        gone = await chat.profile.aremove("city")
        await chat.profile.aclear()
        return *known, "city: Pune" in head, gone, await chat.profile.aall()

    assert ({"city": "Pune"}, "Pune", True, True, {}) == asyncio.run(talk())


def test_metadata_of_the_session_come_before_the_profile() -> None:
    """A name that both have is the session's."""
    mem = memory()
    mem.session("a", user_id="alice").profile.set("timezone", "CET")
    chat = mem.session("a", user_id="alice", metadata={"timezone": "IST"})
    say(chat, "hello")

    assert "timezone: IST" in chat.context().head
    assert "CET" not in chat.context().head


def test_a_profile_keeps_the_budget() -> None:
    """What does not fit beside the session's pins is refused, and the head is never over its budget."""
    mem = memory()
    chat = mem.session("a", user_id="alice")
    chat.pin("word " * 60)

    with pytest.raises(PinBudgetError, match=r"with 'story' in the profile .* archive_share allows 90"):
        chat.profile.set("story", "word " * 40)
    chat.profile.set("story", "word " * 5)
    chatter(chat)
    assert chat.context().tokens <= 300
    assert {"story": "word word word word word"} == chat.profile.all()


@pytest.mark.parametrize("name, value", [("", "x"), (" ", "x"), ("x", ""), ("x", None), (None, "x"), ("x", ["y"])])
def test_what_is_no_name_or_value_is_refused(name: Any, value: Any) -> None:
    """Both are short texts or numbers that say something."""
    with pytest.raises(InvalidMessage, match="must be text or a number that is not blank"):
        memory().session("a", user_id="alice").profile.set(name, value)


def test_nobodys_session_has_no_profile() -> None:
    """Each call says how to give it one."""
    profile = memory().session("a").profile

    with pytest.raises(ConfigurationError, match="user_id"):
        profile.set("city", "Pune")
    assert "Profile(None)" == repr(profile)


@pytest.mark.parametrize("wrong", ["", 7])
def test_a_wrong_user_is_refused(wrong: Any) -> None:
    """An id is text that is not empty."""
    with pytest.raises(ConfigurationError, match="a user id must be text"):
        memory().session("a", user_id=wrong)


def test_no_session_may_pass_for_a_profile() -> None:
    """The ids under which profiles are kept are theirs."""
    with pytest.raises(ConfigurationError, match="must not begin with"):
        memory().session("slidemem:profile:alice")


def test_a_profile_is_counted_when_something_is_due() -> None:
    """A memory with another counter counts the head with the profile in it."""
    store = MemoryStore()
    chat = memory(store=store).session("a", user_id="alice")
    chat.profile.set("story", "word " * 30)
    chatter(chat, 4)

    other = SlideMem(max_tokens=1_200, counter=len, store=store, archive_share=0.5, recall_share=0)
    chatter(other.session("a", user_id="alice"), 20)

    assert other.session("a", user_id="alice").context().tokens <= 1_200


# ------------------------------------------------------------------ forget that


@pytest.mark.parametrize(
    "text, asked",
    [
        ("Forget that I like onions.", ["I like onions."]),
        ("please forget about the gate code", ["the gate code"]),
        ("Oh, and you can forget my birthday wish.", ["my birthday wish."]),
        ("Thanks. Forget what I said about onions. Bye.", ["onions."]),
        ("Don't remember that I moved", ["I moved"]),
        ("请忘记我对花生过敏。", ["我对花生过敏。"]),
        ("Don't forget that I like onions.", []),
        ("I forget that every time.", []),
        ("Did you forget that I like onions?", []),
        ("Forget that I like onions?", []),
        ("Forget it.", []),
        ("Forget about it.", []),
        ("> Forget that I like onions", []),
    ],
)
def test_what_is_asked_to_be_forgotten(text: str, asked: list[str]) -> None:
    """An imperative where a sentence begins; no question, nothing quoted, nothing that names nothing."""
    assert asked == to_forget(text)


@pytest.mark.parametrize(
    "asked, pinned, same",
    [
        ("I like onions", "I like onions in my soup.", True),
        ("the gate code", "our gate has the code 4471", True),
        ("onions", "no onions, please", True),
        ("I like onions", "I like the opera", False),
        ("my birthday wish", "the gate is 4471", False),
    ],
)
def test_which_pin_is_meant(asked: str, pinned: str, same: bool) -> None:  # noqa: FBT001  # a row of the table
    """The one that has most of the words."""
    assert same == means(asked, pinned)


def test_forget_that_unpins() -> None:
    """A pin goes at once, whoever made it, with an event; others stay."""
    events: list[Event] = []
    chat = memory(on_event=events.append).session("s")
    chat.pin("the gate is 4471")
    chat.pin("allergic to onions")

    say(chat, "Please forget about the gate.")

    assert ["allergic to onions"] == [pin.text for pin in chat.pins()]
    assert ["'the gate is 4471', as the user asked"] == [event.detail for event in events if event.kind == "unpinned"]


def test_what_is_forgotten_before_it_is_pinned_is_not_pinned() -> None:
    """A wish and its withdrawal that leave the window together pin nothing; asked again later it is pinned."""
    chat = memory().session("s")
    say(chat, "Remember that I like onions.", "Remember that the gate is 4471.", "Forget that I like onions.")
    chatter(chat)

    assert ["the gate is 4471."] == [pin.text for pin in chat.pins()]
    say(chat, "Remember that I like onions.")
    chatter(chat)
    assert ["the gate is 4471.", "I like onions."] == [pin.text for pin in chat.pins()]


def test_a_host_says_what_is_asked() -> None:
    """`asked` finds more, in any language; what is found without it still counts."""

    def asked(text: str) -> Asked | None:
        if text.startswith("Minne: "):
            return Asked(remember=(text[7:],))
        return Asked(forget=(text[7:],)) if text.startswith("Unohda ") else None

    chat = memory(asked=asked).session("s")
    say(chat, "Minne: portti on 4471", "Remember that I like onions.", "Minne: sauna on kello seitsemän")
    chatter(chat)

    assert ["portti on 4471", "I like onions.", "sauna on kello seitsemän"] == [pin.text for pin in chat.pins()]
    say(chat, "Unohda sauna kello seitsemän")
    assert ["portti on 4471", "I like onions."] == [pin.text for pin in chat.pins()]


def test_a_host_that_fails_holds_nothing_up() -> None:
    """What it raises is an event, and the rest goes on."""
    events: list[Event] = []

    def asked(text: str) -> Asked:
        raise KeyError(text[:5])

    chat = memory(asked=asked, on_event=events.append).session("s")
    say(chat, "Remember that I like onions.")
    chatter(chat)

    assert ["I like onions."] == [pin.text for pin in chat.pins()]
    assert "asked raised KeyError: 'Remem'" == events[0].detail
    assert "hook_failed" == events[0].kind


def test_a_reconciled_message_may_ask_too() -> None:
    """A host that owns the list hands over what the user asks."""
    chat = memory().session("s")
    chat.pin("the gate is 4471")

    chat.reconcile([{"role": "user", "content": "Forget about the gate."}], replace=True)

    assert () == chat.pins()


# ------------------------------------------------------------------ pins of a user


@pytest.fixture
def shared(mem: SlideMem) -> SlideMem:
    """A memory over each kind of store whose pins are the user's."""
    return memory(store=mem.store, pin_scope="user")


def test_a_users_pins_are_in_all_of_their_sessions(shared: SlideMem) -> None:
    """What is pinned in one, by a call or by being asked for, is shown in the others, and in nobody else's."""
    first, second = shared.session("a", user_id="alice"), shared.session("b", user_id="alice")
    other = shared.session("c", user_id="bob")
    for chat in (first, second, other):
        say(chat, "hello")

    pinned = first.pin("the gate is 4471")
    say(first, "Remember that I like onions.")
    chatter(first)

    assert ["the gate is 4471", "I like onions."] == [pin.text for pin in second.pins()]
    assert first.pins() == second.pins()
    assert "Pinned: the gate is 4471\nPinned: I like onions." in second.context().head
    assert (2, (), "") == (second.stats().pins, other.pins(), other.context().head)
    assert {} == first.profile.all()
    assert second.unpin(pinned)
    assert ["I like onions."] == [pin.text for pin in first.pins()]


def test_a_users_pin_goes_from_any_session(shared: SlideMem) -> None:
    """By its text, by its id, or because the user asks in another session."""
    first, second = shared.session("a", user_id="alice"), shared.session("b", user_id="alice")
    texts = ["the gate is 4471", "the sauna is at seven", "the boat is blue"]
    pins = [first.pin(text) for text in texts]

    assert (True, True, False) == (second.unpin(texts[0]), second.unpin(pins[1].id), second.unpin(texts[0]))
    say(second, "Please forget about the boat.")
    assert () == first.pins()


def test_a_users_pins_have_async_twins(shared: SlideMem) -> None:
    """They do the same."""
    first, second = shared.session("a", user_id="alice"), shared.session("b", user_id="alice")

    async def talk() -> tuple[Any, ...]:
        pinned = await first.apin("the gate is 4471")
        await second.aappend({"role": "user", "content": "hello"})
        head = (await second.acontext()).head
        return await second.apins() == (pinned,), "Pinned: the gate is 4471" in head, await second.aunpin(pinned)

    assert (True, True, True) == asyncio.run(talk())
    assert () == first.pins()


def test_a_session_without_a_user_keeps_its_own_pins(shared: SlideMem) -> None:
    """Nobody's pins are the session's, as they are where pins are a session's anyway."""
    nobody = shared.session("d")
    nobody.pin("the gate is 4471")

    assert ["the gate is 4471"] == [pin.text for pin in nobody.pins()]
    assert () == shared.session("e").pins()


def test_a_pin_of_both_is_shown_once(mem: SlideMem, shared: SlideMem) -> None:
    """A session's own pin that is the user's too is one, and both go together."""
    own, users = mem.session("a", user_id="alice"), shared.session("a", user_id="alice")
    say(own, "hello")
    own.pin("the gate is 4471")
    users.pin("the gate is 4471")

    assert 1 == len(own.pins()) == own.context().head.count("the gate is 4471")
    assert own.unpin("the gate is 4471")
    assert () == own.pins()


def test_a_users_pins_outlive_the_session_and_go_with_the_profile(shared: SlideMem) -> None:
    """Clearing a session leaves them; clearing what is known of the user does not."""
    chat = shared.session("a", user_id="alice")
    chat.pin("the gate is 4471")
    chat.clear()

    assert ["the gate is 4471"] == [pin.text for pin in chat.pins()]
    chat.profile.clear()
    assert () == chat.pins()


def test_a_users_pins_keep_the_budget() -> None:
    """What a pin, and what is found of the user, take is counted together, in each session."""
    events: list[Event] = []
    mem = memory(pin_scope="user", on_event=events.append, extract_facts=lambda messages: {"story": "word " * 50})
    first, second = mem.session("a", user_id="alice"), mem.session("b", user_id="alice")
    first.pin("word " * 35)

    with pytest.raises(PinBudgetError, match="archive_share allows 90"):
        second.pin("thing " * 60)
    say(first, "Remember that I like onions.")
    chatter(first)

    assert "no room for 'story' in the profile" in {event.detail for event in events if event.kind == "pin_left_out"}
    assert ["I like onions."] == [pin.text for pin in second.pins()[1:]]
    assert first.context().tokens <= 300


def test_a_wrong_scope_is_a_wrong_option() -> None:
    """There are two."""
    with pytest.raises(ConfigurationError, match="pin_scope"):
        memory(pin_scope="everyone")


# ------------------------------------------------------------------ facts of a span


def found(messages: list[dict[str, Any]]) -> dict[str, object]:
    """The city and the age that a user names."""
    text = " ".join(str(message["content"]) for message in messages)
    named = re.findall(r"(city|age) is (\w+)", text)
    return dict(named)


def test_facts_of_a_span_go_into_the_profile(mem: SlideMem) -> None:
    """They are there when the span has left the window, in the user's other sessions too."""
    own = SlideMem(
        max_tokens=300, counter=words, archive_share=0.3, recall_share=0, store=mem.store, extract_facts=found
    )
    chat = own.session("a", user_id="alice")
    say(chat, "my city is Pune, and my age is 41")
    assert {} == chat.profile.all()
    chatter(chat)

    assert {"city": "Pune", "age": "41"} == chat.profile.all()
    assert "city: Pune" in chat.context().head
    other = mem.session("b", user_id="alice")
    say(other, "hello")
    assert "city: Pune\nage: 41" in other.context().head


def test_facts_of_a_lost_race_stay(mem: SlideMem) -> None:
    """Another worker archived the span, so what it tells of the user is true all the same."""
    own = SlideMem(max_tokens=300, counter=words, store=mem.store, mode="manual", extract_facts=found)
    chat = own.session("a", user_id="alice")
    chat.profile.set("age", "41")
    say(chat, "my city is Pune, and my age is 41")
    chatter(chat)
    one, other = chat.due(), chat.due()
    assert one is not None
    assert other is not None
    first, second = one.run(), other.run()
    chat.commit(first)
    chat.profile.remove("city")

    assert not chat.commit(second)

    assert {"age": "41", "city": "Pune"} == chat.profile.all()


def test_facts_of_a_cleared_session_are_taken_back(mem: SlideMem) -> None:
    """What was being archived when its session was cleared is told of no more; what was known before is as it was."""

    def told(messages: list[dict[str, Any]]) -> dict[str, object]:
        return {"name": "Alice", **found(messages)}

    own = SlideMem(max_tokens=300, counter=words, store=mem.store, mode="manual", extract_facts=told)
    chat = own.session("a", user_id="alice")
    chat.profile.set("age", "40")
    say(chat, "my city is Pune, and my age is 41")
    chatter(chat)
    job = chat.due()
    assert job is not None
    made = job.run()
    commit = own.store.commit

    async def meanwhile(session: str, *given: Any) -> bool:
        chat.clear()
        chat.profile.set("name", "Alicia")
        return bool(await commit(session, *given))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own.store, "commit", meanwhile)
        assert not chat.commit(made)

    assert {"age": "40", "name": "Alicia"} == chat.profile.all()


def test_nobodys_span_is_not_searched() -> None:
    """Without a user there is no profile to put anything in."""
    asked: list[int] = []
    chat = memory(extract_facts=lambda messages: asked.append(1) or {}).session("s")
    chatter(chat)

    assert [] == asked
    assert chat.stats().consolidations > 0


@pytest.mark.parametrize("wrong", [lambda messages: 1 / 0, lambda messages: None, lambda messages: {"a": Wordless()}])
def test_a_search_that_fails_holds_nothing_up(wrong: Any) -> None:
    """What it raises is an event, and the span leaves all the same."""
    events: list[Event] = []
    chat = memory(extract_facts=wrong, on_event=events.append).session("s", user_id="alice")
    chatter(chat)

    assert {"extract_facts raised"} == {event.detail[:20] for event in events if event.kind == "hook_failed"}
    assert chat.stats().consolidations > 0
    assert {} == chat.profile.all()


class Wordless:
    """Raises when it is asked for its text."""

    def __str__(self) -> str:
        raise ValueError("none")


def test_facts_that_do_not_fit_are_left_out() -> None:
    """Each is an event; blank ones are none; what fits is kept."""
    events: list[Event] = []
    facts = {"story": "word " * 200, "city": "Pune", "": "x", "blank": " "}
    chat = memory(extract_facts=lambda messages: facts, on_event=events.append).session("s", user_id="alice")
    chatter(chat)

    assert {"city": "Pune"} == chat.profile.all()
    assert {
        "no room for 'story' in the profile",
        "no room for '' in the profile",
        "no room for 'blank' in the profile",
    } == {event.detail for event in events if event.kind == "pin_left_out"}
    assert chat.context().tokens <= 300
