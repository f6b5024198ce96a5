"""What a context shows: the budget, the cut, the zones, and what gives way."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from slidemem import BudgetTooSmall, Context, ConversationMemory, SlideMem
from slidemem.check import violations
from slidemem.messages import digest, origins


def words(text: str) -> int:
    """Words of a text."""
    return len(text.split())


def said(role: str, count: int, name: str = "w") -> dict[str, Any]:
    """A message of `count` words, each told apart by its number."""
    return {"role": role, "content": " ".join(f"{name}{at}" for at in range(count))}


def turn(count: int, name: str = "w") -> list[dict[str, Any]]:
    """A user message and an answer, `count` words together."""
    return [said("user", count // 2, name), said("assistant", count - count // 2, name.upper())]


def tool_round(at: int, count: int = 8) -> list[dict[str, Any]]:
    """A call and its result of `count` words."""
    call = {"id": f"c{at}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{at}", "content": " ".join(f"r{at}" for _ in range(count))},
    ]


def memory(max_tokens: int = 100, **options: Any) -> ConversationMemory:
    """A session that counts words, without consolidator and recall unless they are given."""
    options = {"counter": words, "consolidator": None, "recall_share": 0, "archive_share": 0, **options}
    return SlideMem(max_tokens=max_tokens, **options).session("s")


def texts(context: Context) -> list[str]:
    """First word of each message that has one."""
    return [message.text.split()[0] if message.text else message.role for message in context.messages]


def test_the_worked_example() -> None:
    """Four messages of 15 words under a budget of 12 leave the last two, 9 words."""
    chat = SlideMem(max_tokens=12, counter=words, consolidator=None, recall_share=0).session("trip")
    for role, text in [
        ("user", "Book Mumbai to Pune"),
        ("assistant", "Which date?"),
        ("user", "Tomorrow morning"),
        ("assistant", "Deccan Queen at 7:10, 2S or CC?"),
    ]:
        chat.append({"role": role, "content": text})

    context = chat.context()

    assert ["Tomorrow morning", "Deccan Queen at 7:10, 2S or CC?"] == [m.text for m in context.messages]
    assert 9 == context.tokens


def test_whole_turns_leave_first_down_to_compact_to() -> None:
    """Past nine tenths of the window the oldest turns go until half of it is left."""
    chat = memory()
    for at in range(10):
        chat.append(turn(10, f"t{at}_"))

    context = chat.context()

    assert ["t5_0", "T5_0"] == texts(context)[:2]
    assert (50, 10) == (context.tokens, context.receipt.boundary)


def test_until_the_first_cut_the_window_may_use_all() -> None:
    """With shares for archive and recall the first consolidation still starts at nine tenths of usable."""
    chat = memory(archive_share=0.15, recall_share=0.25)
    for _ in range(8):
        chat.append(turn(11))
    before = chat.context().tokens

    chat.append(turn(11))

    after = chat.context()
    assert (88, 22) == (before, after.tokens - words(after.head))


def test_one_commit_does_not_make_the_next_one_due() -> None:
    """After a cut several turns fit before the next one."""
    events: list[Any] = []
    chat = memory(archive_share=0.15, recall_share=0.25, on_event=events.append)
    for _ in range(40):
        chat.append(turn(6))

    consolidations = [event.start for event in events if event.kind == "consolidated"]

    assert min(later - sooner for sooner, later in itertools.pairwise(consolidations)) >= 6
    assert chat.consolidate() is None


@pytest.mark.parametrize("keep, expected", [(1, 1), (3, 3), (30, 8)])
def test_keep_turns_stay_while_they_fit(keep: int, expected: int) -> None:
    """The newest turns stay when a cut is forced, as many as asked for and as fit."""
    chat = memory(keep_turns=keep, compact_to=0.1, mode="manual")
    for at in range(9):
        chat.append(turn(11, f"t{at}_"))

    chat.consolidate(force=True)

    assert expected == sum(message.role == "user" for message in chat.context().messages)


def test_a_long_tool_loop_is_cut_inside_its_turn() -> None:
    """The turn's user message stays in front of the newest rounds, each whole."""
    chat = memory()
    chat.append(said("user", 5, "task"))
    for at in range(30):
        for message in tool_round(at):
            chat.append(message)
        context = chat.context()

        assert (("task0", "assistant"), []) == (tuple(texts(context)[:2]), violations(context.to_openai()))
        assert context.tokens <= 100
    assert chat.context().receipt.boundary > 1


def test_the_anchor_is_clamped_to_half_of_the_windows_allotment() -> None:
    """A task of 48 words in a window of 80 stands before the loop with at most 40."""
    chat = memory(archive_share=0.2)
    chat.append(said("user", 48, "task"))
    for at in range(12):
        chat.append(tool_round(at))

    context = chat.context()
    first = context.messages[0]

    task = first.text.removeprefix(context.head).strip()
    assert words(task) <= 40
    assert (True, True) == (task.startswith("task0"), "left out" in task)
    assert {"clamp", "anchor"} <= set(first.mark.kinds if first.mark else ())


def test_a_turn_with_reasoning_is_cut_before_reasoning() -> None:
    """The first assistant message behind the anchor starts with its thinking block."""
    chat = memory()
    chat.append(said("user", 5))
    for at in range(20):
        call, result = tool_round(at, 12)
        block = {"type": "thinking", "thinking": "hm hm", "signature": "s"}
        chat.append([call if at % 2 else {**call, "content": [block]}, result])

        shown = chat.context().messages[1]

        assert shown.starts_with_reasoning, at


def test_reasoning_of_a_turn_goes_when_it_cannot_be_cut_before_any() -> None:
    """A turn that thinks only in its first round is shown without reasoning once it is cut."""
    chat = memory()
    chat.append(said("user", 5))
    call, result = tool_round(0, 12)
    chat.append([{**call, "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}]}, result])
    for at in range(1, 12):
        chat.append(tool_round(at, 12))

    context = chat.context()

    assert [] == [message for message in context.messages if message.reasons]
    assert [] == violations(context.to_openai())


def test_a_turn_cap() -> None:
    """A window of ten turns lets five go when the eleventh is answered."""
    chat = memory(10_000, window_turns=10, batch_turns=5)
    counts = []
    for _ in range(17):
        chat.append(turn(4))
        counts.append(sum(message.role == "user" for message in chat.context().messages))

    assert [*range(1, 11), 6, 7, 8, 9, 10, 6, 7] == counts


def test_the_last_pairs_only() -> None:
    """A batch of one keeps exactly the last turns, and the question that is being answered."""
    chat = memory(10_000, window_turns=3, batch_turns=1)
    for at in range(6):
        chat.append(turn(4, f"t{at}_"))
    chat.append(said("user", 2, "question"))

    assert ["t3_0", "T3_0", "t4_0", "T4_0", "t5_0", "T5_0", "question0"] == texts(chat.context())


def test_many_turns_at_once_leave_in_whole_batches() -> None:
    """One append of thirty turns brings the window under its cap with one consolidation."""
    chat = memory(10_000, window_turns=10, batch_turns=5)

    chat.append([message for at in range(32) for message in turn(4, f"t{at}_")])

    assert ("t25_0", 1) == (texts(chat.context())[0], chat.stats().consolidations)


def test_without_consolidation_the_start_moves_in_batches() -> None:
    """In manual mode the window shows the newest turns, jumps seldom, and says what it leaves out."""
    chat = memory(mode="manual")
    starts = []
    for _ in range(30):
        chat.append(turn(10))
        starts.append(chat.context().receipt.start)

    assert len(set(starts)) <= 5
    assert starts == sorted(starts)
    assert starts[-1] == chat.context().receipt.left_out
    assert (60, 0) == (chat.stats().live_messages, chat.context().receipt.boundary)


def test_pending_messages_are_counted_and_not_returned() -> None:
    """A question about to be sent takes its room from the window."""
    chat = memory(mode="manual")
    for at in range(9):
        chat.append(turn(10, f"t{at}_"))

    context = chat.context(pending=said("user", 40, "question"))

    assert "question0" not in texts(context)
    assert context.tokens <= 60
    assert 90 == chat.context().tokens


def test_pending_results_complete_the_open_unit() -> None:
    """A call whose result is pending is no longer open, and is not stubbed."""
    chat = memory()
    call, result = tool_round(0)
    chat.append([said("user", 3), call])

    without, pending = chat.context(), chat.context(pending=[result])

    assert (True, False) == (without.receipt.open, pending.receipt.open)
    assert ["user", "assistant"] == [message.role for message in pending.messages]


def test_pending_alone_may_leave_nothing_of_ours() -> None:
    """A question that fills the budget is sent alone; one that passes it is refused with both numbers."""
    chat = memory()
    chat.append(turn(10))

    assert () == chat.context(pending=said("user", 99)).messages
    with pytest.raises(BudgetTooSmall) as refused:
        chat.context(pending=said("user", 120))
    assert (True, 100) == (refused.value.needed > 100, refused.value.usable)


def test_the_first_question_of_a_session_gets_its_pins() -> None:
    """With nothing stored yet the head stands alone before the pending question."""
    chat = memory(archive_share=0.5)
    chat.pin("allergic to peanuts")

    context = chat.context(pending=said("user", 3))

    assert ["user"] == [message.role for message in context.messages]
    assert "allergic to peanuts" in context.messages[0].text
    assert () == chat.context().messages


def test_system_messages() -> None:
    """The call's system prompt comes first, then the transcript's; a later one is a note where it stands."""
    chat = memory()
    chat.append(
        [{"role": "system", "content": "be kind"}, said("user", 2), {"role": "system", "content": "be brief"}]
    )

    context = chat.context(system="be quick")

    assert ["be quick", "be kind"] == [message.text for message in context.messages[:2]]
    assert ["system", "system", "user"] == [message.role for message in context.messages]
    assert context.messages[2].text.endswith("[note from the system]\nbe brief")
    assert 4 == context.zones.system


def test_the_system_prompt_is_never_archived() -> None:
    """Leading system messages stay when the boundary passes them, an empty one is left out."""
    chat = memory()
    chat.append([{"role": "system", "content": "be kind"}, {"role": "system", "content": " "}])
    for _ in range(12):
        chat.append(turn(10))

    context = chat.context()

    assert ["be kind"] == [message.text for message in context.messages if message.role == "system"]
    assert context.receipt.boundary > 2


def test_a_system_prompt_outside_the_budget() -> None:
    """With count_system=False the prompt is shown and not counted."""
    chat = memory(20, count_system=False)
    chat.append([{"role": "system", "content": "word " * 30}, *turn(10)])

    context = chat.context(system=[{"role": "system", "content": "more " * 30}])

    assert (10, 60, 10) == (context.tokens, context.zones.system, context.zones.window)


def test_a_system_prompt_larger_than_the_budget() -> None:
    """A system prompt never gives way: it is refused, with what is needed."""
    chat = memory(20)
    chat.append(turn(10))

    with pytest.raises(BudgetTooSmall) as refused:
        chat.context(system="word " * 30)

    assert (31, 20) == (refused.value.needed, refused.value.usable)


def test_what_gives_way_first() -> None:
    """As less is left, older turns go, then archive lines, the archive, the pin, the newest turn, its answer."""
    chat = memory(200, archive_share=0.4, consolidator=lambda messages: "Pune 1\nDelhi 2\nGoa 3", compact_to=0.6)
    chat.pin("allergic")
    for at in range(10):
        chat.append(turn(20, f"Pune{at}_"))

    seen = []
    for reserve in range(197):
        context = chat.context(reserve=reserve)
        zones = context.zones
        shown = (len(context.messages) > 2, zones.archive > 0, zones.pinned > 0, len(context.messages) > 1)
        assert context.tokens <= 200 - reserve
        if not seen or seen[-1] != shown:
            seen.append(shown)

    assert [
        (True, True, True, True),
        (False, True, True, True),
        (False, False, True, True),
        (False, False, False, True),
        (False, False, False, False),
    ] == seen


@pytest.mark.parametrize(
    "role, expected", [("merge", ["user", "assistant"]), ("user", ["user", "user"]), ("system", ["system", "user"])]
)
def test_where_the_head_stands(role: str, expected: list[str]) -> None:
    """The head is merged into the first user message, or stands before it with a role of its own."""
    chat = memory(archive_share=0.4, archive_role=role)
    chat.pin("allergic to peanuts")
    chat.append(turn(10))

    context = chat.context()

    assert expected == [message.role for message in context.messages[:2]]
    assert context.messages[0].text.startswith("<earlier-conversation>")
    assert context.tokens == context.zones.pinned + context.zones.window


def test_the_first_user_message_can_be_kept() -> None:
    """With keep_first_user the task stays in the head once the window has passed it, cut to its share."""
    chat = memory(200, archive_share=0.4, keep_first_user=True)
    chat.append([said("user", 60, "task"), said("assistant", 4)])
    for _ in range(12):
        chat.append(turn(20))

    head = chat.context().messages[0].text

    assert "First message: task0" in head
    assert "left out" in head


def test_equal_neighbours_can_be_joined() -> None:
    """With alternate=True the user's own two messages are one, and so are an answer and a call after it."""
    chat = memory(alternate=True)
    call, result = tool_round(0)
    chat.append([said("user", 2, "a"), said("user", 2, "b"), said("assistant", 2), call, result])

    context = chat.context()

    assert ["user", "assistant", "tool"] == [message.role for message in context.messages]
    assert "a0 a1\n\nb0 b1" == context.messages[0].text
    stored = [digest(message) for message in chat.transcript()]
    assert (stored[:2], stored[2:4]) == tuple(list(origins(message)) for message in context.messages[:2])


def test_a_window_starts_with_a_user_message() -> None:
    """A greeting before the first user message is not shown; alone it gives an empty list."""
    chat = memory()
    chat.append(said("assistant", 3, "hello"))
    alone = chat.context()

    chat.append(said("user", 2, "hi"))

    assert ((), ["hi0"]) == (alone.messages, texts(chat.context()))
    assert 1 == chat.context().receipt.left_out


def test_notes_join_the_user_message_beside_them() -> None:
    """A late result is told to the user message before it, or to the one after it when an answer is before."""
    chat = memory()
    late = {"role": "tool", "tool_call_id": "x", "content": "late"}
    chat.append(
        [said("user", 1, "a"), late, said("assistant", 1), late, late, said("user", 1, "b"), said("user", 1, "c")]
    )

    shown = chat.context().messages

    assert ["user", "assistant", "user", "user"] == [message.role for message in shown]
    assert [1, 2] == [message.text.count("late") for message in (shown[0], shown[2])]
    assert shown[2].text.endswith("b0")


@pytest.mark.parametrize("size", [1, 2, 6, 7, 12, 13, 40, 400])
def test_at_a_dozen_tokens_the_newest_message_is_there(size: int) -> None:
    """However large it is, the newest user message is in the context, whole or cut to the budget."""
    chat = memory(12)
    chat.append([*turn(6), said("user", size, "new")])

    context = chat.context()

    assert context.messages[-1].text.startswith("new0")
    assert context.tokens <= 12


def test_nothing_fits_at_all() -> None:
    """When a single mark is too much, the error names what is needed."""
    chat = SlideMem(max_tokens=1, counter=lambda text: 5 + len(text), consolidator=None, recall_share=0).session("s")
    chat.append(said("user", 9))

    with pytest.raises(BudgetTooSmall) as refused:
        chat.context()

    assert (8, 1) == (refused.value.needed, refused.value.usable)
    assert "raise max_tokens by at least 7" in str(refused.value)


def test_in_a_tool_loop_the_task_is_the_last_to_go() -> None:
    """As less is left, the loop's newest round is cut, then left out, and the task alone stays, whole then cut."""
    chat = memory(archive_share=0)
    chat.append(said("user", 9, "task"))
    for at in range(20):
        chat.append(tool_round(at, 12))

    seen = []
    for reserve in range(100):
        context = chat.context(reserve=reserve)
        shape = (len(context.messages) > 1, context.messages[0].text.endswith("task8"))
        assert context.tokens <= 100 - reserve
        assert [] == violations(context.to_openai())
        if not seen or seen[-1] != shape:
            seen.append(shape)

    assert [(True, True), (False, True), (False, False)] == seen


def test_a_large_result_is_cut_before_the_question_is() -> None:
    """Beside a result that leaves no room, a question of nearly half the budget stays word for word."""
    chat = memory(300, mode="manual")
    call, result = tool_round(0, 149)
    chat.append([said("user", 140, "ask"), call, result])

    context = chat.context(system="w " * 30)

    assert 140 == words(context.messages[1].text)
    assert ("left out" in context.messages[3].text, True) == (True, context.tokens <= 300)


def test_an_empty_session_gives_an_empty_context() -> None:
    """Nothing said, nothing shown."""
    context = memory(alternate=True).context()

    assert ((), 0, False) == (context.messages, context.tokens, context.receipt.open)
