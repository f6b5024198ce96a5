"""Decides how what is known of a user is kept: names and values, shared by the user's sessions, in any store.

A profile stands where pins stand, under an id of its own that no session may have, so every store can keep it as it
is. It is shown in the pinned zone of each of the user's sessions. With `pin_scope="user"` the user's pins stand there
too, each under an id that no name can have.
"""

from __future__ import annotations

from typing import Final

from slidemem.driver import drive
from slidemem.errors import ConfigurationError, InvalidMessage, PinBudgetError
from slidemem.plan import pinned_tokens
from slidemem.session import Session, profile_id
from slidemem.state import Pin, is_of_user, with_profile

_NAMELESS: Final = "a profile is a user's: give mem.session(id, user_id=...) one"


async def entries(session: Session) -> dict[str, str]:
    """What is known of the session's user, by name, oldest first."""
    held = await session.store.held(_id(session))
    return {pin.id: pin.text for pin in held.pins if not is_of_user(pin)}


async def put(session: Session, name: str, value: object) -> None:
    """Keep a value under a name, in the place of the one before.

    Raises:
        InvalidMessage: name or value is blank, or no short value.
        PinBudgetError: it does not fit into `archive_share` beside what is pinned in this session.
    """
    new = Pin(_line("name", name), _line("value", value))
    known = {**await entries(session), new.id: new.text}
    snapshot = with_profile(await session.snapshot(), tuple(known.items()))
    needed = pinned_tokens(snapshot, session.options, session.tally)
    if needed > session.options.archive_tokens:
        raise PinBudgetError(needed, session.options.archive_tokens, f"{new.id!r} in the profile")
    await session.store.pin(_id(session), new)


async def remove(session: Session, name: str) -> bool:
    """Forget a value; False when there was none."""
    return await session.store.unpin(_id(session), _line("name", name))


async def clear(session: Session) -> None:
    """Forget all that is known of the user, the user's pins too."""
    await session.store.clear(_id(session))


class Profile:
    """What is known of one user, as the holder of a session sees it."""

    def __init__(self, sync: Session, awaited: Session) -> None:
        self._sync = sync
        self._async = awaited

    def __repr__(self) -> str:
        return f"Profile({self._sync.user!r:.80})"

    def set(self, name: str, value: object) -> None:
        """Keep a value under a name, in the place of the one before; shown in all sessions of the user.

        Raises:
            ConfigurationError: the session has no user.
            InvalidMessage: name or value is blank, or no short value.
            PinBudgetError: it does not fit into `archive_share` beside what is pinned in this session.
        """
        drive(put(self._sync, name, value), "aset")

    async def aset(self, name: str, value: object) -> None:
        """Async twin of `set`."""
        await put(self._async, name, value)

    def get(self, name: str) -> str | None:
        """The value under a name; None when there is none."""
        return self.all().get(name)

    async def aget(self, name: str) -> str | None:
        """Async twin of `get`."""
        return (await self.aall()).get(name)

    def all(self) -> dict[str, str]:
        """Names and values, oldest first; yours to change."""
        return drive(entries(self._sync), "aall")

    async def aall(self) -> dict[str, str]:
        """Async twin of `all`."""
        return await entries(self._async)

    def remove(self, name: str) -> bool:
        """Forget a value; False when there was none."""
        return drive(remove(self._sync, name), "aremove")

    async def aremove(self, name: str) -> bool:
        """Async twin of `remove`."""
        return await remove(self._async, name)

    def clear(self) -> None:
        """Forget all that is known of the user, the user's pins too."""
        drive(clear(self._sync), "aclear")

    async def aclear(self) -> None:
        """Async twin of `clear`."""
        await clear(self._async)


def _id(session: Session) -> str:
    if session.user is None:
        raise ConfigurationError(_NAMELESS)
    return profile_id(session.user)


def _line(what: str, value: object) -> str:
    """A name or a value on one line."""
    if not isinstance(value, (str, int, float)) or not str(value).strip():
        raise InvalidMessage(f"a profile's {what} must be text or a number that is not blank, got {value!r:.80}")
    return " ".join(str(value).encode("utf-8", "replace").decode().split())
