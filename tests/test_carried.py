"""Records that travel in a host's state: what they say of a list that the host has changed meanwhile."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from slidemem import Carried, CarriedRecords, ConversationMemory, Message, SlideMem, StoreError
from slidemem.driver import drive
from slidemem.messages import Part, user
from slidemem.state import Lease, Pin


def said(turns: int, first: int = 0) -> list[Message]:
    """Turns with ids."""
    return [
        Message(
            role,
            (Part("text", f"{role} says that seat {n}A is booked, PNR-{n:04}. " + "word " * 10),),
            id=f"{role}-{n}",
        )
        for n in range(first, first + turns)
        for role in ("user", "assistant")
    ]


class Host:
    """A host that keeps a list, and next to it a state that it hands over as JSON."""

    def __init__(self, messages: Sequence[Message] = (), **options: Any) -> None:
        self.messages = list(messages)
        self.state: dict[str, Any] | None = None
        self.records = CarriedRecords()
        self.memory = SlideMem(
            max_tokens=600, counter="approximate", transcript=self.records, records=self.records, **options
        )

    def work(self, *, pin: str = "") -> None:
        """Consolidate until nothing is due, and keep what came of it."""
        with self.records.carrying(Carried(self.messages, self.state)) as carried:
            chat = self.chat()
            if pin:
                chat.pin(pin)
            while chat.consolidate():
                pass
            self.state = self.state if carried.state is None else json.loads(json.dumps(carried.state))

    def talk(self, turns: int) -> None:
        """Turn by turn."""
        for n in range(turns):
            self.messages += said(1, n)
            self.work()

    def shown(self) -> str:
        """The context as text."""
        with self.records.carrying(Carried(self.messages, self.state)):
            return "\n".join(message.text for message in self.chat().context().messages)

    def chat(self) -> ConversationMemory:
        """The session."""
        return self.memory.session("s")

    @property
    def boundary(self) -> int:
        """How many messages the archive covers, of the list as it is."""
        with self.records.carrying(Carried(self.messages, self.state)):
            return self.chat().context().receipt.covered

    @property
    def ends(self) -> list[int]:
        """Where the segments end that stand for the list as it is."""
        with self.records.carrying(Carried(self.messages, self.state)):
            return [segment.end for segment in self.chat().archive()]


@pytest.fixture
def host() -> Host:
    """A host with thirty turns, most of them archived in several segments."""
    made = Host()
    made.talk(30)
    assert len(made.ends) > 2
    return made


def test_a_state_goes_on_where_it_was(host: Host) -> None:
    """Another object over the same list and state shows the same, and has nothing to keep."""
    other = Host(host.messages)
    other.state = host.state

    assert host.shown() == other.shown()
    other.work()
    assert other.state is host.state


def test_a_state_of_nothing_is_none() -> None:
    """Reading, and a consolidation that is not due, leave nothing to keep."""
    host = Host(said(1))

    host.work()

    assert (None, 0) == (host.state, host.boundary)


@pytest.mark.parametrize("at", [0, 20, 40])
def test_an_edit_takes_back_the_segments_from_there_on(host: Host, at: int) -> None:
    """Segments before the edited message stay, the later ones are gone, and their messages are live."""
    before = host.ends
    host.messages[at] = replace(host.messages[at], parts=(Part("text", "Something else."),))

    assert [end for end in before if end <= at] == host.ends
    assert [end for end in before if end <= at][-1:] == [host.boundary or None][: bool(host.boundary)]
    host.work()
    assert f"seat {at // 2}A" not in host.shown().partition("</earlier-conversation>")[0]


def test_an_edit_of_the_first_live_message_keeps_the_archive(host: Host) -> None:
    """What stands at the boundary may change; what is before it is still what it was."""
    before = host.boundary
    host.messages[before] = replace(host.messages[before], parts=(Part("text", "Something else."),))

    assert (before, True) == (host.boundary, "Something else." in host.shown())


def test_a_removal_takes_back_the_segments_from_there_on(host: Host) -> None:
    """Where a covered message has left the list, later segments no longer stand for what is there."""
    before = host.ends
    del host.messages[before[0] + 2]

    assert before[:1] == host.ends


def test_a_list_cut_short_keeps_what_it_still_holds(host: Host) -> None:
    """Where the list ends inside of what is archived, whole segments before that stay."""
    before = host.ends
    del host.messages[before[1] + 2 :]

    assert before[:2] == host.ends


def test_a_list_cut_at_the_boundary_keeps_all(host: Host) -> None:
    """Where nothing is live any more the archive still stands."""
    before = host.ends
    del host.messages[before[-1] :]

    assert before == host.ends


@pytest.mark.parametrize("left", [0, 5, 20])
def test_messages_off_the_front_are_still_archived(host: Host, left: int) -> None:
    """A host that trims what is archived keeps the archive, then and after more turns, and trims again."""
    shown, covered = host.shown(), host.boundary
    del host.messages[: covered - left]

    assert (shown, covered) == (host.shown(), host.boundary)
    host.messages += said(20, 30)
    host.work()
    assert host.boundary > covered
    shown, covered = host.shown(), host.boundary
    del host.messages[:10]
    assert (shown, covered) == (host.shown(), host.boundary)


def test_a_partly_trimmed_list_that_is_cut_short_loses_what_it_lacks(host: Host) -> None:
    """A segment that was partly off the front and is now partly off the end is believed no more."""
    del host.messages[: host.ends[-1] - 4]
    host.messages += said(1, 30)
    host.work()
    before = host.ends
    host.messages += said(20, 31)
    host.work()

    del host.messages[3:]

    assert before != host.ends
    assert "seat 30A" not in host.shown()


def test_another_conversation_has_no_record(host: Host) -> None:
    """A list that holds neither the first message nor the boundary's is another's."""
    host.messages = said(2, 90)

    assert ([], True, False) == (host.ends, "seat 90A" in host.shown(), "earlier messages" in host.shown())


def test_messages_without_ids_are_told_by_what_they_say(host: Host) -> None:
    """A trim of messages without ids is found by the boundary's words."""
    bare = Host()
    for n in range(30):
        bare.messages += [replace(message, id=None) for message in said(1, n)]
        bare.work()
    covered = bare.boundary

    del bare.messages[: covered - 3]

    assert covered == bare.boundary > 0


def test_an_edit_inside_a_long_turn_goes_back_to_the_turns_beginning() -> None:
    """No anchor is left of a turn whose archived part is believed no more."""
    host = Host([*said(5), user("A long task, ticket X-1.")])
    for n in range(40):
        host.messages += [message for message in said(1, n + 50) if message.role == "assistant"]
        host.work()
    assert len(host.ends) > 1
    at = host.ends[-2] + 1
    host.messages[at] = replace(host.messages[at], parts=(Part("text", "Something else."),))

    assert all(end <= 10 for end in host.ends)
    assert "X-1" in host.shown()


def test_pins_travel_and_leave_with_their_source(host: Host) -> None:
    """A pin of a call stays; one that was taken from a message is gone where that is live again."""
    own = Host([*said(2), user("Remember this: I am allergic to peanuts."), *said(20, 2)])
    own.work(pin="a window seat")
    pinned = own.shown()

    own.messages[2] = replace(own.messages[2], parts=(Part("text", "Something else."),), id="edited")

    assert (True, True) == (
        "Pinned: allergic" in pinned or "allergic to peanuts" in pinned,
        "a window seat" in pinned,
    )
    assert (False, True) == ("allergic" in own.shown(), "a window seat" in own.shown())


@pytest.mark.parametrize(
    "damage",
    [
        {"record": {}},
        {"pins": 7},
        {"covers": None},
        {"gone": "many"},
        {"record": {"boundary_id": 1}},
    ],
)
def test_a_state_that_is_damaged_is_told(host: Host, damage: dict[str, Any]) -> None:
    """What this version did not write is an error that says what to do, and no half record."""
    assert host.state is not None

    with pytest.raises(StoreError, match="take the record out of the state"):
        Carried(host.messages[1:], {**host.state, **damage})


def test_it_is_a_whole_records() -> None:
    """Every member works on what is carried at the time, and adding messages is the host's."""
    records, lease = CarriedRecords(), Lease("me", 10.0)
    pin = Pin("p", "a window seat")

    with records.carrying(Carried((), None)) as carried:
        assert drive(records.claim("s", 0, lease, 0.0), "")
        drive(records.release("s", "me"), "")
        drive(records.describe("s", [("timezone", "IST")]), "")
        drive(records.pin("s", pin), "")
        assert drive(records.segment("s", "none"), "") is None
        kept = carried.state
        assert drive(records.unpin("s", "p"), "")
        drive(records.clear("s"), "")
        with pytest.raises(StoreError, match="are their host's to add"):
            drive(records.add("s", said(1)), "")

    assert kept is not None
    assert ([pin.to_json()], "") == (kept["pins"], kept["first"])


def test_two_at_once_are_kept_apart(host: Host) -> None:
    """What is carried inside of another carrying ends with it."""
    with host.records.carrying(Carried(host.messages, host.state)):
        outside = host.chat().context().tokens
        with host.records.carrying(Carried(said(1), None)):
            inside = host.chat().context().tokens
        again = host.chat().context().tokens

    assert (True, outside) == (inside < outside, again)
