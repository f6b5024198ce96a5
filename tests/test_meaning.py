"""Recall by meaning: what is embedded, when, and what becomes of a turn when embedding fails."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from meanings import AwaitedSenses, Failing, OwnIndex, Senses

from slidemem import ConversationMemory, Event, SlideMem, StoreError, VectorIndex
from slidemem.stores.memory import MemoryStore

FACT = "My terrier is afraid of thunder."
ASKED = "Which hound do I own?"


def words(text: str) -> int:
    """Tokens of a text: its words."""
    return len(text.split())


def memory(embeddings: Any, **options: Any) -> SlideMem:
    """A memory of 300 words that compares by meaning."""
    return SlideMem(
        **{"max_tokens": 300, "counter": words, "embeddings": embeddings, "consolidator": None, **options}
    )


def user(text: str) -> dict[str, Any]:
    """A user message."""
    return {"role": "user", "content": text}


def turns(number: int, start: int = 0) -> list[dict[str, Any]]:
    """Turns in which no word of the fact or of the question is said."""
    return [
        message
        for turn in range(start, start + number)
        for message in (
            user(f"Tell me about subject number {turn}, " + "please " * 10),
            {"role": "assistant", "content": f"Subject {turn} is wide, " + "really " * 10},
        )
    ]


def told(chat: ConversationMemory, number: int = 12) -> None:
    """Tell a fact, and then of other things until it has left the window."""
    chat.append([user(FACT), {"role": "assistant", "content": "Poor thing."}])
    for place in range(number):
        chat.append(turns(1, place))


def recalled(chat: ConversationMemory, asked: str = ASKED) -> tuple[int, ...]:
    """What a question brings back."""
    return chat.context(user(asked)).receipt.recalled


def best(chat: ConversationMemory, query: str) -> int | None:
    """The place of what a search finds first."""
    return chat.search(query, 1)[0].seq


# ------------------------------------------------------------------ what it brings


def test_a_question_finds_what_means_the_same() -> None:
    """A fact none of whose words the question says is quoted with embeddings, and is not without."""
    with_them, without = memory(Senses()).session("s"), memory(None).session("s")
    for chat in (with_them, without):
        told(chat)

    assert 0 in recalled(with_them)
    assert 0 not in recalled(without)
    assert FACT in "".join(message.text for message in with_them.context(user(ASKED)).messages)


def test_an_index_of_ones_own_is_asked() -> None:
    """What compares may be the user's: it is given every message that left the window, by session."""
    index = OwnIndex()
    chat = memory(index).session("s")
    told(chat)

    assert 0 in recalled(chat)
    assert chat.context(query="").receipt.boundary == len(index.kept["s"])


def test_a_search_goes_by_meaning_too() -> None:
    """A search finds what no word of it says, by its session alone."""
    both = memory(Senses())
    told(both.session("s"))
    both.session("other").append([user("My puppy is small."), *turns(12)])

    hits = both.session("s").search("hound", 1)

    assert [(0, "s")] == [(hit.seq, hit.session) for hit in hits]


def test_a_remark_brings_nothing_back() -> None:
    """What asks nothing draws no quote by its meaning alone, and the model is not even asked."""
    model = Senses()
    chat = memory(model).session("s")
    told(chat)

    assert () == recalled(chat, "A puppy barked outside, lovely weather.")
    assert [] == model.questions


def test_a_question_is_embedded_once() -> None:
    """A context read again for the same question asks the model nothing, through its tool rounds."""
    model = Senses()
    chat = memory(model).session("s")
    told(chat)
    chat.append(user(ASKED))

    texts = {tuple(message.text for message in chat.context().messages) for _ in range(3)}

    assert 1 == len(texts)
    assert 1 == len(model.questions)


def test_only_what_came_before_the_question_counts() -> None:
    """A search up to a message finds none after it, however much alike."""
    chat = memory(Senses()).session("s")
    told(chat, 4)
    chat.append([user("My hound sleeps."), *turns(12, 20)])

    found = chat.context(query=ASKED).receipt.recalled

    assert {0, 10} <= set(found)


# ------------------------------------------------------------------ what is embedded


def test_each_message_is_embedded_once() -> None:
    """Messages are embedded when they have left the window, and not again."""
    model = Senses()
    chat = memory(model).session("s")
    told(chat)
    boundary = chat.context(query="").receipt.boundary

    assert boundary == len(model.texts) > 0
    told(chat)
    assert chat.context(query="").receipt.boundary == len(model.texts)


def test_what_is_embedded_is_redacted_and_short() -> None:
    """The model sees neither secrets nor more than the start of a long message, calls included, and never a blank."""
    model = Senses()
    chat = memory(model, max_tokens=4000, redact=lambda text: text.replace("hunter2", "[…]")).session("s")
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"for": "hunter2"}'}}
    chat.append(
        [
            user("The password is hunter2. " + "a" * 9000),
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [call],
            },
            {"role": "tool", "tool_call_id": "1", "content": ""},
            {"role": "assistant", "content": "Done."},
        ]
    )
    chat.append([user("word " * 3500), {"role": "assistant", "content": "Yes."}])
    chat.consolidate(force=True)

    assert "The password is […]. aaa" == model.texts[0][:24]
    assert 4000 == len(model.texts[0])
    assert ['called look({"for": "[…]"})', "[empty]", "Done."] == [text[:30] for text in model.texts[1:4]]


def test_another_process_embeds_what_it_does_not_have() -> None:
    """A memory that meets a session in a store embeds it with the next append, some hundred messages at a time."""
    store = MemoryStore()
    first = memory(Senses(), store=store).session("s")
    first.append([user(FACT), *turns(300)])
    model = Senses()
    chat = memory(model, store=store).session("s")

    assert () == recalled(chat)
    chat.append(turns(1, 300))
    assert 256 == len(model.texts)
    chat.append(turns(1, 301))
    assert 512 == len(model.texts)
    assert 0 in recalled(chat)
    while len(model.texts) < chat.context(query="").receipt.boundary:
        chat.append(turns(1, 302))
    known = len(model.texts)
    chat.append(turns(1, 303))
    assert known == len(model.texts)


def test_consolidating_by_hand_embeds_all() -> None:
    """With `mode="manual"` nothing is embedded before it is asked for, and then everything."""
    model = Senses()
    chat = memory(model, mode="manual").session("s")
    chat.append([user(FACT), *turns(300)])

    assert [] == model.texts
    chat.consolidate()
    assert chat.context(query="").receipt.boundary == len(model.texts) > 500
    chat.append(turns(12, 300))
    job = chat.due()
    assert job is not None
    assert chat.commit(job.run())
    assert chat.context(query="").receipt.boundary == len(model.texts)


def test_what_another_process_archives_is_noticed() -> None:
    """A boundary that moved elsewhere is seen by the next context, and embedded with the next append."""
    store = MemoryStore()
    model = Senses()
    here, there = memory(model, store=store).session("s"), memory(None, store=store).session("s")
    told(here)
    there.append(turns(12, 40))
    known = len(model.texts)

    boundary = here.context(user(ASKED)).receipt.boundary
    here.append(user("Go on."))

    assert known < boundary == len(model.texts)


@pytest.mark.parametrize("mode", ["inline", "background"])
def test_async_callers_embed_without_their_loop(mode: str) -> None:
    """The twins work in each mode: what left the window is embedded and found."""
    model = AwaitedSenses()

    async def go() -> tuple[int, ...]:
        chat = memory(model, mode=mode).session("s")
        await chat.aappend([user(FACT), {"role": "assistant", "content": "Poor thing."}])
        for turn in range(12):
            await chat.aappend(turns(1, turn))
        assert await chat.aflush()
        return (await chat.acontext(user(ASKED))).receipt.recalled

    assert 0 in asyncio.run(go())
    assert model.threads


def test_the_background_embeds_everything() -> None:
    """A worker thread goes on until all that left the window is embedded."""
    model = Senses()
    chat = memory(model, mode="background").session("s")
    chat.append([user(FACT), *turns(300)])

    assert chat.flush()
    assert chat.context(query="").receipt.boundary == len(model.texts) > 256


# ------------------------------------------------------------------ what is deleted


def test_a_cleared_session_leaves_no_vector() -> None:
    """Clearing deletes the vectors first; when that fails nothing is deleted, and the error says so."""
    index = OwnIndex()
    chat = memory(index).session("s")
    told(chat)

    def broken(*_: object) -> None:
        raise ConnectionError("away")

    whole, index.cut = index.cut, broken  # type: ignore[method-assign]  # an index that is away
    with pytest.raises(StoreError, match=r"vectors of session 's' could not be deleted \(ConnectionError: away\)"):
        chat.clear()
    assert chat.transcript()
    index.cut = whole  # type: ignore[method-assign]  # and back
    chat.clear()
    assert [] == index.kept["s"]
    assert () == chat.transcript()
    memory(None).session("s").clear()


def test_a_deleted_user_leaves_no_vector() -> None:
    """What is deleted of a user are the vectors of the user's sessions too, and of no other's."""
    index = OwnIndex()
    kept = memory(index)
    for session, owner in (("a", "meera"), ("b", "meera"), ("c", "disha")):
        told(kept.session(session, user_id=owner))

    assert {"a", "b"} == set(kept.delete_user("meera"))
    assert [True, True, False] == [not index.kept[session] for session in ("a", "b", "c")]


def test_a_rewind_takes_vectors_along() -> None:
    """What leaves the conversation is found by its meaning no more, and what is said instead is."""
    index = OwnIndex()
    chat = memory(index).session("s")
    chat.append([*turns(1), user(FACT), {"role": "assistant", "content": "Poor thing."}, *turns(12, 1)])
    chat.consolidate()

    chat.rewind(2)

    assert 2 >= len(index.kept["s"])
    chat.append([user("My automobile is red."), {"role": "assistant", "content": "Nice."}, *turns(12, 1)])
    chat.consolidate()
    assert [True, False] == [best(chat, asked) == 2 for asked in ("What vehicle do I own?", ASKED)]


def test_a_conversation_that_begins_anew_is_embedded_anew() -> None:
    """An index that is kept may know the session's id from an earlier life: what it holds there is not this one."""
    index = OwnIndex()
    told(memory(index).session("s"), 20)
    chat = memory(index).session("s")  # whose store is a new one
    chat.append([user("My automobile is red."), {"role": "assistant", "content": "Nice."}, *turns(12, 50)])

    boundary = chat.context(query="").receipt.boundary

    assert "My automobile is red." == index.kept["s"][0]
    assert boundary == len(index.kept["s"])
    assert [True, False] == [best(chat, asked) == 0 for asked in ("What vehicle do I own?", ASKED)]


def test_a_rewind_elsewhere_is_noticed() -> None:
    """A conversation that another process rewound and went on with is embedded anew."""
    store, model = MemoryStore(), Senses()
    here, there = memory(model, store=store).session("s"), memory(None, store=store).session("s")
    here.append([*turns(1), user(FACT), {"role": "assistant", "content": "Poor thing."}, *turns(12, 1)])
    here.consolidate()

    there.rewind(2)
    there.append([user("My automobile is red."), {"role": "assistant", "content": "Nice."}, *turns(14, 50)])
    there.consolidate()
    here.consolidate()

    assert [True, False] == [best(here, asked) == 2 for asked in ("What vehicle do I own?", ASKED)]


def test_a_rewind_elsewhere_before_what_was_embedded_is_noticed() -> None:
    """A conversation that is shorter now than what was embedded of it is embedded anew."""
    store, index = MemoryStore(), OwnIndex()
    here, there = memory(index, store=store).session("s"), memory(None, store=store).session("s")
    told(here, 30)

    there.rewind(2)
    there.append(turns(8))
    here.consolidate()

    assert here.context(query="").receipt.boundary == len(index.kept["s"])


def test_a_restored_session_is_embedded_anew() -> None:
    """A session that takes the place of another is found by its own meanings."""
    other = memory(None).session("s")
    other.append([user("My automobile is red."), {"role": "assistant", "content": "Nice."}, *turns(14)])
    kept = memory(Senses())
    told(kept.session("s"), 30)

    chat = kept.restore(other.export(), "s", replace=True)
    chat.append(turns(1, 70))

    assert [True, False] == [best(chat, asked) == 0 for asked in ("What vehicle do I own?", ASKED)]


def test_other_prompts_at_the_head_move_the_vectors() -> None:
    """A system message more at a host's head moves every place, so all is embedded anew."""
    index = OwnIndex()
    chat = memory(index).session("s")
    said = [user(FACT), {"role": "assistant", "content": "Poor thing."}, *turns(14)]
    chat.reconcile(said)
    chat.consolidate()

    chat.reconcile([{"role": "system", "content": "Be brief."}, *said], replace=True)
    chat.consolidate()

    assert FACT == index.kept["s"][1]


def test_a_session_that_shrinks_meanwhile_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages that are gone when they are to be embedded end the work, and nothing is kept of them."""
    store, index = MemoryStore(), OwnIndex()
    chat = memory(index, store=store, mode="manual").session("s")
    chat.append([user(FACT), *turns(12)])
    chat.consolidate(force=True)
    chat._sync.vectors.known.reach("s", None)  # type: ignore[union-attr]  # as in a new process
    index.kept.clear()

    async def nothing(*_: object) -> tuple[()]:
        return ()

    monkeypatch.setattr(store, "read", nothing)
    chat.consolidate()

    assert not index.kept["s"]


# ------------------------------------------------------------------ failure


def events_of(embeddings: Any, **options: Any) -> tuple[SlideMem, list[Event]]:
    """A memory, and what it tells."""
    events: list[Event] = []
    return memory(embeddings, on_event=events.append, **options), events


def test_a_model_that_fails_keeps_nothing_from_the_turn() -> None:
    """Appends and contexts work by the words alone, each fault is told, and after three the model is left alone."""
    model = Failing()
    now = [1e9]
    kept, events = events_of(model, clock=lambda: now[0])
    chat = kept.session("s")
    told(chat, 16)
    failed = [event for event in events if event.kind == "embedding_failed"]

    assert 3 == len(failed)
    assert "recall goes by the words alone: ConnectionError: the model is away" in failed[0].detail
    assert "for 60 seconds" in failed[2].detail
    assert [] == model.questions
    assert 0 in recalled(chat, "Is my terrier afraid of something?")

    model.fault, now[0] = None, now[0] + 61
    chat.append(turns(1, 50))
    assert 0 in recalled(chat)


def test_a_question_that_cannot_be_embedded_is_told() -> None:
    """A model that fails at a question leaves it to the words, with an event."""
    model = Failing()
    model.fault = None
    kept, events = events_of(model)
    chat = kept.session("s")
    told(chat)

    model.fault = ValueError("too long")

    assert () == recalled(chat)
    assert ["embedding_failed"] == [event.kind for event in events if event.kind == "embedding_failed"]


def test_a_model_that_hangs_is_left_alone_at_once() -> None:
    """A call that takes longer than `embedding_seconds` is told once, and for a minute not made again."""
    model = Failing(TimeoutError("no embedding within 10 seconds"))
    kept, events = events_of(model)
    told(kept.session("s"), 20)

    failed = [event.detail for event in events if event.kind == "embedding_failed"]

    assert 1 == len(failed)
    assert "for 60 seconds: TimeoutError: no embedding within 10 seconds" in failed[0]


def test_embeddings_are_kept_with_a_database(tmp_path: Path) -> None:
    """Any store does: what is embedded is read from it, and an index kept apart is not embedded again."""
    index, url = OwnIndex(), f"sqlite:///{tmp_path / 'chat.db'}"
    with memory(index, store=url) as first:
        told(first.session("s"))
    known = list(index.kept["s"])
    with memory(index, store=url) as again:
        chat = again.session("s")
        assert 0 in recalled(chat)
        chat.append(user("Go on."))
        assert known == index.kept["s"][: len(known)]


def test_the_protocol_is_public() -> None:
    """An index of one's own is checked by the protocol that is exported."""
    assert isinstance(OwnIndex(), VectorIndex)
