"""Decides how what belongs to an event loop is kept: one for each loop, closed when the loop ends.

A loop that ends closes the async generators that it began (`asyncio.run` and every server do so), and one of those
holds what is kept here. What a loop left that was never ended is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class PerLoop(Generic[T]):
    """One value for each event loop; loops of several threads may ask at once.

    Args:
        make: makes it, in its loop, without awaiting anything.
        close: closes it, in its loop.
    """

    def __init__(self, make: Callable[[], T], close: Callable[[T], Awaitable[object]]) -> None:
        self._make = make
        self._close = close
        self._lives: dict[asyncio.AbstractEventLoop, AsyncGenerator[T, None]] = {}
        self._values: dict[asyncio.AbstractEventLoop, T] = {}
        self._lock = Lock()

    async def get(self) -> T:
        """The value of the running loop, made if need be."""
        loop = asyncio.get_running_loop()
        if loop not in self._values:
            self._sweep()
            life = self._life(loop)
            value = await anext(life)
            with self._lock:
                self._lives[loop], self._values[loop] = life, value
        return self._values[loop]

    async def aclose(self) -> None:
        """Close the value of the running loop; a later call makes another."""
        life = self._lives.get(asyncio.get_running_loop())
        if life is not None:
            await life.aclose()

    async def _life(self, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[T, None]:
        value = self._make()
        try:
            yield value
        finally:
            self._drop(loop)
            await self._close(value)

    def _sweep(self) -> None:
        for loop in [loop for loop in list(self._values) if loop.is_closed()]:
            self._drop(loop)

    def _drop(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            self._values.pop(loop, None)
            self._lives.pop(loop, None)
