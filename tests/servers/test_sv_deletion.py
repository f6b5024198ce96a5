"""What is deleted is gone, in every store: nothing of it is in what is held, and nothing of others is missing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sv_places import Place, dump, run, talking

from slidemem import ConfigurationError, SlideMem
from slidemem.contract.base import ODD_IDS, ODD_TEXTS
from slidemem.errors import StoreError
from slidemem.stores.memory import MemoryStore
from slidemem.stores.sqlite import SQLiteStore
from slidemem.stores.wire import fingerprint

ODD = ("'; DROP TABLE messages; --", "redis.call('FLUSHALL')", "{a}:b:*", "a\0b", "]]--", "$1 %s {}")


class Kept:
    """A store, and how to look at all that it holds.

    Attributes:
        store: it.
        dump: everything as text.
        remains: parts of the dump that stay when all is deleted: revisions under digests.
    """

    def __init__(self, store: Any, look: Callable[[], str]) -> None:
        self.store = store
        self.dump = look


def sqlite_dump(path: Path) -> str:
    """The bytes of the database and its log."""
    return "".join(one.read_bytes().decode("latin-1") for one in path.parent.glob("chat.db*"))


@pytest.fixture(params=["memory", "sqlite", "postgres", "redis"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kept]:
    """Each store that there is."""
    if request.param == "memory":
        store = MemoryStore()
        yield Kept(store, lambda: repr((store._sessions, store._gone)))
    elif request.param == "sqlite":
        with SQLiteStore(tmp_path / "chat.db") as file:
            yield Kept(file, lambda: sqlite_dump(tmp_path / "chat.db"))
    else:
        place = Place(request.param)
        name = place.fresh()
        yield Kept(place.store(prefix=name), lambda: dump(request.param, name))
        place.close()


def memory(store: Any) -> SlideMem:
    """A memory that consolidates often."""
    return SlideMem(max_tokens=120, counter=lambda text: len(text.split()), store=store)


def live(mem: SlideMem, session: str, user: str, mark: str) -> None:
    """Give a session everything: messages, archive, a branch, pins, metadata, a profile."""
    chat = mem.session(session, user_id=user, metadata={f"place{mark}": f"{mark}ville"})
    for at in range(12):
        said = f"{mark}question {at} remember that {mark}tea" + " word" * 8
        chat.append(
            [{"role": "user", "id": f"{mark}{at}", "content": said}, {"role": "assistant", "content": mark * 2}]
        )
    chat.pin(f"{mark}pin")
    chat.profile.set(f"{mark}name", f"{mark}value")
    chat.rewind(-1)
    assert chat.archive()
    assert chat.branches()


def found(kept: Kept, mark: str) -> bool:
    """Whether a mark is anywhere, as it is or escaped."""
    held = kept.dump()
    return any(form in held for form in (mark, json.dumps(mark)[1:-1]))


def test_a_deleted_user_leaves_nothing(kept: Kept) -> None:
    """No text, term, id or name of the user is anywhere; another user's sessions are as they were."""
    mem = memory(kept.store)
    live(mem, "zebra-1", "zebraann", "zebra")
    live(mem, "zebra-2", "zebraann", "zebra")
    live(mem, "horse-1", "horsebob", "horse")
    before = mem.session("horse-1").export()
    assert found(kept, "zebra")

    assert ("zebra-1", "zebra-2") == mem.delete_user("zebraann")

    assert not found(kept, "zebra")
    assert before == mem.session("horse-1").export()
    assert {"horsename": "horsevalue"} == mem.session("x", user_id="horsebob").profile.all()
    assert ("horse-1",) == mem.sessions()
    assert () == mem.delete_user("zebraann")


def test_a_deleted_user_may_come_again(kept: Kept) -> None:
    """Async as sync; what is said afterwards is theirs, and is deleted again."""
    mem = memory(kept.store)
    live(mem, "zebra-1", "zebraann", "zebra")
    chat = mem.session("zebra-1", user_id="zebraann")

    assert ("zebra-1",) == asyncio.run(mem.adelete_user("zebraann"))
    chat.append({"role": "user", "content": "zebra again"})
    assert ["zebra again"] == [message.text for message in chat.transcript()]
    assert {} == chat.profile.all()
    assert ("zebra-1",) == mem.delete_user("zebraann")
    assert not found(kept, "zebra")


def test_a_session_that_moved_here_is_deleted_with_its_user(kept: Kept) -> None:
    """What is restored for a user is theirs at once, sync and async, without another append."""
    other, mem = memory(MemoryStore()), memory(kept.store)
    live(other, "zebra-1", "zebraann", "zebra")
    exported = other.session("zebra-1").export()

    chat = mem.restore(exported, user_id="zebraann")
    asyncio.run(mem.arestore(exported, "zebra-2", user_id="zebraann"))
    again = mem.restore(exported, user_id="zebraann", replace=True)

    assert other.session("zebra-1").transcript() == chat.transcript() == again.transcript()
    assert ("zebra-1", "zebra-2") == mem.delete_user("zebraann")
    assert not found(kept, "zebra")


@pytest.mark.parametrize("when", ["while it is written", "while it is kept"])
def test_what_is_in_flight_tells_nothing_of_a_deleted_user(kept: Kept, when: str) -> None:
    """A summary that was begun before the deletion leaves no fact and no pin in the profile, whenever it ends."""
    mem = SlideMem(
        max_tokens=120,
        counter=lambda text: len(text.split()),
        store=kept.store,
        mode="manual",
        pin_scope="user",
        extract_facts=lambda messages: {"zebrafact": "zebra"},
    )
    chat = mem.session("zebra-1", user_id="zebraann")
    chat.append({"role": "user", "content": "Remember that zebras drink tea."})
    for at in range(12):
        chat.append({"role": "user", "content": f"zebra {at}" + " word" * 8})
    job = chat.due()
    made = job and job.run()
    assert made is not None
    assert {"zebrafact"} < {pin.id for pin in made.profile}
    commit = kept.store.commit

    async def deleted_first(session: str, *given: Any) -> bool:
        mem.delete_user("zebraann")
        return bool(await commit(session, *given))

    with pytest.MonkeyPatch.context() as patch:
        if when == "while it is written":
            mem.delete_user("zebraann")
        else:
            patch.setattr(kept.store, "commit", deleted_first)
        assert not chat.commit(made)

    assert {} == chat.profile.all()
    assert not found(kept, "zebra")


def test_a_cleared_session_leaves_nothing(kept: Kept) -> None:
    """Its texts, terms and ids are nowhere; the profile of its user is."""
    mem = memory(kept.store)
    live(mem, "zebra-1", "horseann", "zebra")
    mem.session("zebra-1", user_id="horseann").profile.clear()

    mem.session("zebra-1").clear()

    assert not found(kept, "zebra")
    assert () == mem.sessions()


@pytest.mark.parametrize("name", ["postgres", "redis"])
def test_what_is_left_is_a_digest_and_a_revision(name: str) -> None:
    """For a day a server knows the revision of a cleared session, so that what is in flight is dropped."""
    place = Place(name)
    where = place.fresh()
    mem = memory(place.store(prefix=where))
    live(mem, "zebra-1", "zebraann", "zebra")
    mem.delete_user("zebraann")
    digests = {fingerprint(id_) for id_ in ("zebra-1", "slidemem:profile:zebraann")}

    if name == "postgres":
        rows = run(f"SELECT key, id, owner, metadata, next_seq FROM {where}.sessions")
        assert sorted((digest, None, None, "[]", 0) for digest in digests) == sorted(rows)
        tables = ("records", "messages", "branches", "segments", "pins", "documents", "postings")
        assert [(0,)] * 7 == [run(f"SELECT count(*) FROM {where}.{table}")[0] for table in tables]
    else:
        with talking() as client:
            left = {key.decode() for key in client.scan_iter(f"{where}:*")}
            assert {f"{where}:count", *(f"{where}:{digest}:head" for digest in digests)} == left
            assert all(0 < client.ttl(f"{where}:{digest}:head") <= 86_400 for digest in digests)
            assert {None} == {client.hget(f"{where}:{digest}:head", "id") for digest in digests}
    place.close()


def test_odd_characters_are_data(kept: Kept) -> None:
    """Session ids, users, names and texts with quotes, NUL, lone surrogates, SQL, Lua and separators stay apart."""
    mem = SlideMem(max_tokens=40_000, counter="approximate", store=kept.store)
    ids = (*ODD_IDS, *ODD)
    for id_ in ids:
        chat = mem.session(id_, user_id=id_)
        chat.append([{"role": "user", "id": id_, "content": f"{text[:60]} of {id_}"} for text in ODD_TEXTS if text])
        chat.profile.set("name", id_.encode("utf-8", "replace").decode().strip() or "blank")
        chat.pin(f"pin {id_}")
    gone = ids[::2]

    assert [(id_,) for id_ in gone] == [mem.delete_user(id_) for id_ in gone]

    for id_ in ids[1::2]:
        chat = mem.session(id_, user_id=id_)
        assert [f"{text[:60]} of {id_}" for text in ODD_TEXTS if text] == [one.text for one in chat.transcript()]
        assert 1 == len(chat.pins()) == len(chat.profile.all())
    assert set(ids[1::2]) == set(mem.sessions())


def test_a_user_must_be_named() -> None:
    """An empty id, or none, deletes nothing and says so."""
    for wrong in ("", None, 5):
        with pytest.raises(ConfigurationError, match="a user id must be text that is not empty"):
            memory(None).delete_user(wrong)  # type: ignore[arg-type]


def test_parts_do_not_know_users() -> None:
    """A transcript and records apart say so, instead of deleting half."""
    mem = SlideMem(max_tokens=4000, counter=len, transcript=MemoryStore())
    mem.session("s", user_id="ann").pin("a")

    with pytest.raises(StoreError, match=r"does not know whose a session is.*one by one"):
        mem.delete_user("ann")
