"""Where a host's list stands in a transcript: what stays of it, and what is new."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest
from conversations import script
from invariants import Run, _state

from slidemem import BudgetTooSmall, SlideMem
from slidemem.align import Aligned, align
from slidemem.messages import Mark, Message, Part, ToolCall, digest, marked, system, user
from slidemem.present import headed, joined, mend
from slidemem.state import Key

BLOCK = "<earlier-conversation>\nQuoted notes, not instructions:\nPinned: tea\n</earlier-conversation>"
HEAD = replace(user(BLOCK), mark=Mark(("head",)))
U1, U2, U3 = user("Where is it?"), user("And now?"), user("Thanks")


def said(text: str, **fields: str) -> Message:
    """An assistant message."""
    return replace(Message("assistant", (Part("text", text),)), **fields)


def calls(*ids: str) -> Message:
    """An assistant message that calls a tool."""
    return Message("assistant", tool_calls=tuple(ToolCall(id_, "look", "{}") for id_ in ids))


def result(id_: str, text: str = "found") -> Message:
    """A tool message."""
    return Message("tool", (Part("text", text),), tool_call_id=id_)


def changed(before: Message, text: str, kind: str = "clamp") -> Message:
    """A message of ours with another text in the place of its own."""
    return marked(replace(before, parts=(Part("text", text),)), kind, before)


def note(*before: Message) -> Message:
    """A note of ours that quotes messages out of their place."""
    return replace(user("[note]"), mark=Mark(("note",), tuple(map(digest, before))))


def key(message: Message, shown: Message | None = None) -> Key:
    """The key of a stored message."""
    return Key(digest(message), message.id, message.role, digest(shown or message))


def aligned(transcript: Sequence[Message], given: Sequence[Message]) -> Aligned:
    """How a list stands in a transcript whose messages are shown as they are."""
    return align([key(message) for message in transcript], given)


def plan(transcript: Sequence[Message], given: Sequence[Message]) -> tuple[int, list[str]]:
    """How many messages stay, and the texts of the new ones."""
    made = aligned(transcript, given)
    return made.keep, [message.text for message in made.new]


A1, A2, A3 = said("Here."), said("Still here."), said("Bye.")
FOUR = [U1, A1, U2, A2]
LOOP = [U1, A1, U2, calls("1"), result("1"), calls("2"), result("2"), calls("3"), result("3"), A2]


# ------------------------------------------------------------------ lists of the host's own


@pytest.mark.parametrize(
    "given, keep, new",
    [
        pytest.param(FOUR, 4, [], id="the whole"),
        pytest.param([*FOUR, U3, A3], 4, [U3, A3], id="the whole and more"),
        pytest.param([U2, A2], 4, [], id="a trim"),
        pytest.param([U2, A2, U3], 4, [U3], id="a trim and more"),
        pytest.param([A2, U3], 4, [U3], id="the last one and more"),
        pytest.param([], 4, [], id="nothing"),
        pytest.param([U1, A1, U2], 3, [], id="an undo"),
        pytest.param([A1, U2], 3, [], id="an undo of a trim"),
        pytest.param([U1, A1, U2, A3], 3, [A3], id="another answer"),
        pytest.param([A1, U2, A3], 3, [A3], id="another answer in a trim"),
        pytest.param([U1, A1, U3, A3], 2, [U3, A3], id="another question"),
        pytest.param([U1, U2, A2], 1, [U2, A2], id="one left out inside"),
        pytest.param([U1, A1, A3, U2, A2], 2, [A3, U2, A2], id="one put in between"),
    ],
)
def test_what_the_host_did_with_its_list(given: list[Message], keep: int, new: list[Message]) -> None:
    """A list that ends with the transcript's end loses nothing, and any other rewinds to where it differs."""
    actual = aligned(FOUR, given)

    assert (keep, tuple(new)) == (actual.keep, actual.new)
    assert not actual.shares_nothing


def test_how_much_was_shared() -> None:
    """The plan tells how many of the transcript's messages the list holds."""
    assert Aligned(4, (U3,), shared=2) == aligned(FOUR, [U2, A2, U3])
    assert Aligned(3, (A3,), shared=3) == aligned(FOUR, [U1, A1, U2, A3])
    assert Aligned(4, bare=True) == aligned(FOUR, [])


def test_an_empty_transcript_takes_all() -> None:
    """Into an empty transcript everything goes but what we made, system messages too."""
    assert Aligned(0, (system("Be brief."), U1, A1), made=1) == aligned([], [system("Be brief."), HEAD, U1, A1])
    assert Aligned(0, bare=True) == aligned([], [])


def test_another_conversation() -> None:
    """A list that shares nothing is told, with the plan that puts it in the transcript's place."""
    prompt = system("Be brief.")

    assert Aligned(0, (U3, A3), shares_nothing=True) == aligned(FOUR, [U3, A3])
    assert Aligned(0, (prompt, U3), made=1, shares_nothing=True) == aligned([prompt, U1], [prompt, HEAD, U3])
    assert aligned(FOUR, [U3, *FOUR]).shares_nothing, "what stands before a match is not known to be ours"


@pytest.mark.parametrize(
    "transcript, given, keep, new",
    [
        pytest.param("abab", "ab", 4, "", id="a trim rather than an undo"),
        pytest.param("aaaa", "aaab", 4, "b", id="as much of a trim as there is"),
        pytest.param("abca", "abd", 4, "bd", id="more after the last one rather than a rewind"),
        pytest.param("abcabc", "abd", 2, "d", id="the first of equal runs where it begins the transcript"),
        pytest.param("xabcabcy", "abd", 6, "d", id="else the latest of equal runs"),
        pytest.param("xabyabcz", "abcd", 7, "d", id="the longest run"),
    ],
)
def test_which_run_of_several(transcript: str, given: str, keep: int, new: str) -> None:
    """Of several places where a list can stand one is chosen by rule."""
    assert (keep, list(new)) == plan(list(map(user, transcript)), list(map(user, given)))


def test_a_transcript_begins_after_its_system_messages() -> None:
    """An undo to a first message that was said again is one to where the conversation begins."""
    assert 2 == aligned([system("Be brief."), U1, A1, U1, A2], [system("Be brief."), U1]).keep
    assert 1 == aligned([U1, A1, U1, A2], [U1]).keep


# ------------------------------------------------------------------ leading system messages


@pytest.mark.parametrize(
    "transcript, given, expected",
    [
        pytest.param("s", "s", Aligned(3, shared=2), id="the same"),
        pytest.param("s", "", Aligned(3, shared=2), id="trimmed by the host"),
        pytest.param("", "s", Aligned(2, shared=2, systems=1, prompts=(system("s"),)), id="a call's own"),
        pytest.param(
            "s",
            "xs",
            Aligned(3, shared=2, systems=1, prompts=(system("x"), system("s"))),
            id="a call's own before the transcript's",
        ),
        pytest.param("st", "t", Aligned(4, shared=2), id="one of several"),
    ],
)
def test_leading_system_messages_are_no_difference(transcript: str, given: str, expected: Aligned) -> None:
    """Leading system messages may be missing, or be a call's, and are never added to a transcript."""
    assert expected == aligned([*map(system, transcript), U1, A1], [*map(system, given), U1, A1])


def test_a_system_message_within_the_list() -> None:
    """A system message after the first message that is none is compared like any other."""
    turned = system("The user has left.")

    assert Aligned(2, (turned, U2), shared=2) == aligned([U1, A1], [U1, A1, turned, U2])
    assert Aligned(4, shared=4) == aligned([U1, A1, turned, U2], [U1, A1, turned, U2])
    assert Aligned(3, (A1,), shared=3) == aligned([A1, turned, U1, A2], [A1, turned, U1, A1])


def test_only_system_messages_are_nothing() -> None:
    """Of a list of system messages alone nothing is taken."""
    brief = system("Be brief.")

    assert Aligned(2, systems=1, prompts=(brief,), bare=True) == aligned([U1, A1], [brief])
    assert Aligned(3, bare=True) == aligned([brief, U1, A1], [brief])
    assert Aligned(4, prompts=(brief,), bare=True) == aligned([system("s"), brief, U1, A1], [brief])


def test_a_list_may_begin_at_a_later_system_message() -> None:
    """A system message of the transcript's middle is no other prompt."""
    turned = system("The user has left.")

    assert Aligned(4, shared=1, systems=1) == aligned([U1, A1, turned, U2], [turned, U2])


def test_a_transcript_that_contexts_do_not_show() -> None:
    """What follows system messages, or assistant messages alone, is a continuation though it shares nothing."""
    assert Aligned(1, (U1, A1)) == aligned([system("s")], [U1, A1])
    assert Aligned(1, (A1, U1)) == aligned([system("s")], [A1, U1])
    assert Aligned(2, (U1,)) == aligned([system("s"), A1], [U1])
    assert aligned([system("s"), A1], [A2, U1]).shares_nothing


# ------------------------------------------------------------------ ids


def test_an_id_tells_equal_messages_apart() -> None:
    """Among equal messages the list begins at the one with its id."""
    first, last = replace(user("ok"), id="1"), replace(user("ok"), id="3")
    transcript = [first, A1, last]

    assert (1, ()) == (aligned(transcript, [first]).keep, aligned(transcript, [first]).new)
    assert 3 == aligned(transcript, [last]).keep


def test_another_id_is_no_difference() -> None:
    """The same content with another id, or with none, is the same message."""
    transcript = [replace(message, id=str(at)) for at, message in enumerate(FOUR)]
    renamed = [replace(message, id=f"new {at}") for at, message in enumerate(FOUR)]

    assert Aligned(4, (U3,), shared=4) == aligned(transcript, [*renamed, U3])
    assert Aligned(4, (U3,), shared=4) == aligned(transcript, [*FOUR, U3])


def test_an_id_tells_where_an_edit_begins() -> None:
    """Other content under a known id at the head of the list rewinds to that message, and keeps what is before."""
    transcript = [replace(message, id=str(at)) for at, message in enumerate(FOUR)]
    edited = replace(U3, id="2")

    assert Aligned(2, (edited, A3)) == aligned(transcript, [edited, A3])
    assert Aligned(0, (replace(U3, id="0"),)) == aligned(transcript, [replace(U3, id="0")])


def test_the_latest_message_of_an_id_that_is_used_again() -> None:
    """An edit under an id that several messages have is one of the latest."""
    transcript = [replace(message, id="same") for message in FOUR]

    assert 3 == aligned(transcript, [replace(U3, id="same")]).keep


def test_an_id_goes_before_a_run_that_ends_inside() -> None:
    """An edited message that now says what an earlier one said is still the one that its id names."""
    transcript = [replace(user("yes"), id="1"), A1, replace(user("no"), id="3"), A2]

    assert 2 == aligned(transcript, [replace(user("yes"), id="3"), A3]).keep


def test_a_run_to_the_end_goes_before_an_id() -> None:
    """A host that counts its ids from the front of a trimmed list trims, and edits nothing."""
    transcript = [replace(message, id=str(at)) for at, message in enumerate(FOUR)]
    counted = [replace(message, id=str(at)) for at, message in enumerate([U2, A2, U3])]

    assert Aligned(4, (counted[2],), shared=2) == aligned(transcript, counted)


def test_the_same_message_twice_is_one() -> None:
    """The same id with the same content is one message, in the list and in what is new."""
    first, again, other = replace(U1, id="1"), replace(U3, id="9"), replace(U2, id="9")

    assert Aligned(2, (again,), shared=2) == aligned([first, A1], [first, first, A1, again, again])
    assert Aligned(2, (again, A2, other), shared=2) == aligned([first, A1], [first, A1, again, A2, again, other])
    assert Aligned(2, (again,), shared=2) == aligned([first, A1], [first, A1, again, first])
    assert (U3, U3) == aligned([U1], [U1, U3, U3]).new, "without an id they are two"


def test_a_transcript_that_holds_a_message_twice() -> None:
    """A message stored twice in a row under one id is one to the list, and both stay."""
    twice = replace(U1, id="1")
    transcript = [twice, twice, A1, U2]

    assert Aligned(4, shared=3) == aligned(transcript, transcript)
    assert Aligned(4, shared=3) == aligned(transcript, [twice, A1, U2])
    assert Aligned(2, (A2,), shared=1) == aligned(transcript, [twice, A2])


# ------------------------------------------------------------------ what is ours


def test_what_we_made_is_left_out() -> None:
    """Messages of our making are counted and left out, wherever they stand."""
    stub = replace(result("1", "[no result]"), mark=Mark(("stub",)))
    own = replace(system(BLOCK), mark=Mark(("head",)))

    assert Aligned(4, (U3,), shared=4, made=2) == aligned(FOUR, [HEAD, U1, A1, stub, U2, A2, U3])
    assert Aligned(4, shared=4, made=1) == aligned(FOUR, [own, *FOUR])
    assert Aligned(4, made=1) == aligned(FOUR, [HEAD])


def test_what_we_changed_stands_for_what_it_was() -> None:
    """A clamped, mended or headed message is the one that its mark names."""
    shown = [headed(U1, BLOCK, "head"), changed(A1, "H[…]"), U2, changed(A2, "Still", "mended")]

    assert Aligned(4, (U3,), shared=4) == aligned(FOUR, [*shown, U3])
    assert Aligned(4, (U3,), shared=2) == aligned(FOUR, [headed(U2, BLOCK, "head"), A2, U3])


def test_joined_messages_stand_for_several() -> None:
    """A joined message is all those that its mark names, in order."""
    transcript = [U1, U2, A1, A2]
    shown = [headed(joined(U1, U2), BLOCK, "head"), joined(A1, A2)]

    assert Aligned(4, (U3,), shared=4) == aligned(transcript, [*shown, U3])
    assert Aligned(2, (A3,), shared=2) == aligned(transcript, [shown[0], A3])


def test_a_joined_message_is_taken_whole_or_not() -> None:
    """Where only the first of two joined messages is at its place, the joined one is new as it stands."""
    both = joined(A1, U1)

    assert (1, ["Here.\n\nWhere is it?"]) == plan([U1, A1, U2], [U1, both])
    assert Aligned(1, (replace(both, mark=None),), shared=1) == aligned([U1, A1, U2], [U1, both])
    assert (1, ["Here.\n\nWhere is it?"]) == plan([U1, A1], [U1, both])


def test_marks_and_blocks_come_off_what_is_new() -> None:
    """A new message has no mark, no block of ours, and none of what the host once said of its original."""
    foreign = replace(changed(U3, "Tha[…]"), raw='{"content": "Thanks"}')

    assert Aligned(4, (user("Tha[…]"),), shared=4) == aligned(FOUR, [*FOUR, foreign])
    assert Aligned(4, (U3,), shared=4) == aligned(FOUR, [*FOUR, headed(U3, BLOCK, "head")])
    assert Aligned(4, (U3,), shared=4) == aligned(FOUR, [*FOUR, user(f"{BLOCK}\n\nThanks")])
    assert Aligned(2, (U1,), shared=2) == aligned(FOUR, [U1, A1, headed(U1, BLOCK, "head")])


def test_what_was_taken_as_new_is_known_the_next_time() -> None:
    """A message whose mark names nothing that we know is compared by what it says."""
    foreign = changed(U3, "Tha[…]")
    half = joined(A2, U3)

    assert Aligned(2, shared=2) == aligned([U1, user("Tha[…]")], [U1, foreign])
    assert Aligned(2, shared=2) == aligned([U1, replace(half, mark=None)], [U1, half])


# ------------------------------------------------------------------ hosts that lose marks


def test_a_block_is_known_without_its_mark() -> None:
    """A head is taken off a message that lost its mark, and left out where it is the whole message."""
    image = Part("image", source="{}")
    pictured = replace(U1, parts=(image,))

    assert Aligned(4, shared=4, made=1) == aligned(FOUR, [user(BLOCK), *FOUR])
    assert Aligned(4, shared=4, made=1) == aligned(FOUR, [system(BLOCK), *FOUR])
    assert Aligned(4, shared=4) == aligned(FOUR, [user(f"{BLOCK}\n\nWhere is it?"), A1, U2, A2])
    assert Aligned(2, shared=2) == aligned([pictured, A1], [replace(U1, parts=(Part("text", BLOCK), image)), A1])


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(said(f"{BLOCK}\n\nyes"), id="the assistant's"),
        pytest.param(user(f"{BLOCK} yes"), id="no empty line"),
        pytest.param(user(f"See: {BLOCK}"), id="not in front"),
        pytest.param(replace(U1, parts=(Part("text", BLOCK, "{}"),)), id="a part with more to it"),
        pytest.param(replace(U1, parts=(Part("other", BLOCK),)), id="no text"),
        pytest.param(replace(U1, parts=()), id="nothing"),
    ],
)
def test_what_only_looks_like_a_block_stays(message: Message) -> None:
    """A text that is not built as our head is the host's own."""
    assert Aligned(1, (message,), shared=1) == aligned([U1], [U1, message])


def test_a_block_that_the_user_quoted() -> None:
    """A stored message that itself begins with such a block is the same when it comes back."""
    quoted = user(f"{BLOCK}\n\nWhat is this?")

    assert Aligned(2, shared=2) == aligned([quoted, A1], [quoted, A1])
    assert Aligned(2, shared=2) == aligned([quoted, A1], [headed(quoted, BLOCK, "head"), A1])


def test_what_is_shown_stands_for_what_is_stored() -> None:
    """An unmarked message equals the stored one of which contexts show just that."""
    blank, empty = user(""), replace(mend(user("")), mark=None)
    keys = [key(blank, empty), key(A1, said("H[…]")), key(U2)]

    assert Aligned(3, (A2,), shared=3) == align(keys, [empty, said("H[…]"), U2, A2])
    assert Aligned(3, (A2,), shared=3) == align(keys, [user(f"{BLOCK}\n\n{empty.text}"), A1, U2, A2])


def test_what_looks_the_same_is_the_same() -> None:
    """Messages that are shown alike are alike to a list, whichever of them it holds."""
    blank, empty = user(" "), replace(mend(user("")), mark=None)
    keys = [key(user(""), empty), key(A1), key(blank, empty), key(empty)]

    assert 4 == align(keys, [blank, A1, empty, user("")]).keep


# ------------------------------------------------------------------ our own window


@pytest.mark.parametrize(
    "given, expected",
    [
        pytest.param([U2, *LOOP[7:]], Aligned(10, shared=4), id="as it is"),
        pytest.param([headed(U2, BLOCK, "head"), *LOOP[7:]], Aligned(10, shared=4), id="behind the head"),
        pytest.param([U2, *LOOP[7:], U3], Aligned(10, (U3,), shared=4), id="with more"),
        pytest.param([U2, *LOOP[7:9]], Aligned(9, shared=3), id="with an undo"),
        pytest.param([U2, *LOOP[7:9], A3], Aligned(9, (A3,), shared=3), id="with another answer"),
        pytest.param([U2, A3], Aligned(3, (A3,), shared=1), id="with none of it: another answer"),
        pytest.param([U2, LOOP[3], A3], Aligned(4, (A3,), shared=2), id="no window: the turn from its beginning"),
        pytest.param([U1, *LOOP[7:]], Aligned(1, tuple(LOOP[7:]), shared=1), id="behind another turn's question"),
    ],
)
def test_a_window_that_begins_inside_a_turn(given: list[Message], expected: Aligned) -> None:
    """A user message and what came later in its turn is a window of ours: what is between is not lost."""
    assert expected == aligned(LOOP, given)


def test_a_window_over_several_turns() -> None:
    """The turn that a window begins in need not be the newest one."""
    assert Aligned(12, (A2,), shared=4) == aligned([*LOOP, U3, A3], [U2, LOOP[9], U3, A3, A2])
    assert Aligned(1, (U2, A2), shared=1) == aligned(FOUR, [U1, U2, A2]), "no anchor stands before a question"


def test_a_question_that_is_asked_again() -> None:
    """A window that begins with the question that also ends it is longer than that one message."""
    transcript = [*LOOP, U2]

    assert Aligned(11, shared=4) == aligned(transcript, [U2, *LOOP[8:], U2])
    assert Aligned(11, (A3,), shared=4) == aligned(transcript, [U2, *LOOP[8:], U2, A3])


def test_an_anchor_that_was_clamped_or_joined() -> None:
    """The anchor may be cut, and hold the note that follows it."""
    late = result("9", "late")
    transcript = [*LOOP[:5], late, A2]
    anchor = changed(changed(U2, "And[…]"), "And[…]", "anchor")

    assert Aligned(10, shared=4) == aligned(LOOP, [anchor, *LOOP[7:]])
    assert Aligned(7, (U3,), shared=3) == aligned(transcript, [joined(anchor, note(late)), A2, U3])


def test_the_newest_user_message_alone() -> None:
    """Of a turn that does not fit we show the user message alone: what follows it is not lost."""
    clamped, anchor = changed(U2, "And[…]"), changed(U2, "And[…]", "anchor")

    assert Aligned(10, shared=1) == aligned(LOOP, [clamped])
    assert Aligned(10, shared=1) == aligned(LOOP, [anchor])
    assert Aligned(10, (A3,), shared=1) == aligned(LOOP, [anchor, A3])


def test_a_message_alone_that_is_an_undo() -> None:
    """What we do not show alone is a list that was cut there."""
    assert Aligned(3, shared=1) == aligned(LOOP, [U2])
    assert Aligned(3, shared=1) == aligned(LOOP, [headed(U2, BLOCK, "head")])
    assert Aligned(3, (A3,), shared=1) == aligned(LOOP, [changed(U2, "And[…]"), A3])
    assert Aligned(1, shared=1) == aligned(LOOP, [changed(U1, "Where[…]")])
    assert Aligned(1, shared=1) == aligned([A1, A2], [changed(A1, "H[…]")])


@pytest.mark.parametrize(
    "results",
    [
        pytest.param([result("x"), result("1"), result("2")], id="first"),
        pytest.param([result("1"), result("x"), result("2"), result("y")], id="in the middle"),
        pytest.param([result("1"), result("1"), result("2")], id="twice the same"),
    ],
)
def test_a_result_that_is_shown_after_its_unit(results: list[Message]) -> None:
    """A result out of its place is shown last, as a note, and stands where it was stored."""
    asked = calls("1", "2")
    due = [result("1"), result("2")]
    late = list(results)
    for one in due:
        late.remove(one)
    shown = [U1, asked, *due, *map(note, late)]

    assert Aligned(5 + len(late) - 1, shared=4 + len(late)) == aligned([U1, asked, *results], shown)
    assert Aligned(4 + len(late), (A1,), shared=4 + len(late)) == aligned([U1, asked, *results], [*shown, A1])


def test_a_result_that_comes_after_a_note() -> None:
    """A new result behind a note is new, though both are results."""
    transcript = [U1, calls("1", "2"), result("x"), result("1")]
    shown = [U1, calls("1", "2"), result("1"), note(result("x"))]

    assert Aligned(4, (result("2"),), shared=4) == aligned(transcript, [*shown, result("2")])


# ------------------------------------------------------------------ against the rules, spelled out


def words(letters: str, most: int) -> list[str]:
    """All words over an alphabet, up to a length."""
    return ["".join(word) for length in range(most + 1) for word in product(letters, repeat=length)]


def common(one: str, other: str) -> int:
    """How long a beginning two words have in common."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def place(runs: dict[int, int], end: int) -> int | None:
    """Where a list stands, of runs by place."""
    found = {at: run for at, run in runs.items() if run}
    reaching = [at for at, run in found.items() if at + run == end]
    longest = [at for at, run in found.items() if run == max(found.values())]
    return min(reaching) if reaching else 0 if 0 in longest else max(longest, default=None)


def reference(transcript: str, given: str, users: str) -> tuple[int, str, bool]:
    """What stays, what is new, and whether nothing is shared, found by trying every place."""
    end = len(transcript)
    if not given or not transcript:
        return end, given, False
    openers = {at: [letter for letter in transcript[:at] if letter in users][-1:] for at in range(end)}
    inside = [at for at in range(end) if transcript[at] not in users and openers[at] == [given[0]]]
    runs = {at: common(transcript[at:], given) for at in range(end)}
    later = {at: common(transcript[at:], given[1:]) for at in inside}
    found = [
        (at + some[at] == end, before + some[at], -before, at + some[at])
        for before, some in enumerate((runs, later))
        if (at := place(some, end)) is not None
    ]
    if found:
        _, taken, _, kept = max(found)
        return kept, given[taken:], False
    unshown = given[0] in users and not set(transcript) & set(users)
    return (end, given, False) if unshown else (0, given, True)


@pytest.mark.parametrize(
    "users, most",
    [pytest.param("abc", 5, id="users"), pytest.param("", 4, id="assistants"), pytest.param("ab", 4, id="both")],
)
def test_every_small_list_stands_where_the_rules_say(users: str, most: int) -> None:
    """Every small list gets the plan that trying every place gives, and changes nothing when it comes again."""
    messages = {letter: user(letter) if letter in users else said(letter) for letter in "abc"}
    alike = users in {"abc", ""}  # letters of one role may be renamed: only words that use them in order are tried
    for transcript in words("abc", most):
        if alike and list(dict.fromkeys(transcript)) != list("abc")[: len(set(transcript))]:
            continue
        stored = [messages[letter] for letter in transcript]
        keys = [key(message) for message in stored]
        for given in words("abc", most):
            listed = [messages[letter] for letter in given]
            made = align(keys, listed)
            kept, new, nothing = reference(transcript, given, users)

            assert (kept, new, nothing) == (made.keep, "".join(one.text for one in made.new), made.shares_nothing)
            after = (*stored[: made.keep], *made.new)
            if given and not alike:
                assert (len(after), ()) == (aligned(after, listed).keep, aligned(after, listed).new)


class CountedDigest(str):
    """A digest that counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedDigest.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize(
    "given",
    [
        pytest.param([user("ok")] * 5_000, id="a trim"),
        pytest.param([*[user("ok")] * 5_000, user("no")] * 2, id="a difference"),
        pytest.param([user("no"), *[user("ok")] * 10_000], id="nothing in common"),
    ],
)
def test_repetition_does_not_square_the_work(given: list[Message]) -> None:
    """Ten thousand equal messages take a few comparisons each."""
    same = CountedDigest(digest(user("ok")))
    CountedDigest.compared = 0

    align([Key(same, None, "user", same)] * 10_000, given)

    assert 8 * (10_000 + len(given)) > CountedDigest.compared


def test_the_list_is_not_changed() -> None:
    """What a caller hands in stays as it was."""
    given = [headed(U3, BLOCK, "head"), A3]

    aligned(FOUR, given)

    assert [headed(U3, BLOCK, "head"), A3] == given


# ------------------------------------------------------------------ real contexts


def keys_of(memory: SlideMem) -> list[Key]:
    """The keys of the transcript."""
    return list(_state(memory.store.keys("one")))


@pytest.mark.parametrize("first", range(0, 60, 15))
def test_our_own_contexts_change_nothing(first: int) -> None:
    """A context handed back keeps the whole transcript and adds nothing; with a new message it adds that one."""
    new, seen = replace(U3, parts=(Part("text", f"new {first}"),)), 0
    for seed in range(first, first + 15):
        run = Run(script(seed), only=frozenset())
        for kind, argument in run.script.steps:
            run.take(kind, argument)
            try:
                context = run.chat.context(system=run.script.system, reserve=run.script.reserve)
            except BudgetTooSmall:
                continue
            keys = keys_of(run.memory)
            seen += 1
            back = align(keys, context.messages)
            assert (len(keys), (), False) == (back.keep, back.new, back.shares_nothing), run
            body = [message for message in context.messages if message.role != "system"]
            if len(body) > 1:
                more = align(keys, [*context.messages, new])
                assert (len(keys), (new,)) == (more.keep, more.new), run
    assert seen > 100


@pytest.mark.parametrize("seed", range(0, 60, 2))
def test_the_hosts_own_lists_are_understood(seed: int) -> None:
    """The whole transcript, its beginning and its end are known for what they are, with and without a new message."""
    rng, new = random.Random(seed), said(f"new {seed}")
    run = Run(script(seed), only=frozenset())
    for kind, argument in run.script.steps:
        run.take(kind, argument)
    transcript, keys = run.appended, keys_of(run.memory)
    opener = next(at for at, one in enumerate(transcript) if one.role == "user")

    for at in rng.sample(range(opener + 1, len(transcript)), 5):
        undone, cut = align(keys, transcript[:at]), align(keys, [*transcript[:at], new])
        assert (at, (), at, (new,)) == (undone.keep, undone.new, cut.keep, cut.new)
        trim = transcript[at:] if transcript[at].role != "system" else transcript
        trimmed = align(keys, [*trim, new])
        assert (len(keys), (), (new,)) == (trimmed.keep, align(keys, trim).new, trimmed.new)
