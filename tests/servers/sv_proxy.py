"""A way to a server that a test counts and cuts."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Thread
from urllib.parse import urlsplit


class Proxy:
    """Stands between a store and its server, on a port of its own.

    Args:
        url: of the server.

    Attributes:
        url: that leads here.
        trips: how often a client had to wait for the server: what it sends without an answer between is one.
        cut_after: how many more answers get through before one is withheld and its connection is cut; None for all.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname, parts.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = url.replace(f":{parts.port}", f":{self._listener.getsockname()[1]}")
        self.trips = 0
        self.cut_after: int | None = None
        self._lock = Lock()
        self._clients: list[socket.socket] = []
        self._threads = [Thread(target=self._accept)]
        self._threads[0].start()

    def cut(self) -> None:
        """Break all connections."""
        with self._lock:
            for one in self._clients:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            self._clients.clear()

    def close(self) -> None:
        """Take no more, and break what there is."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join()
        self.cut()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self._clients.append(client)
                self._threads.append(Thread(target=self._carry, args=(client,)))
            self._threads[-1].start()

    def _carry(self, client: socket.socket) -> None:
        """One connection, until one of its ends is closed."""
        with (
            client,
            socket.create_connection(self._server) as server,
            selectors.DefaultSelector() as ready,
            suppress(OSError),
        ):
            ready.register(client, selectors.EVENT_READ, server)
            ready.register(server, selectors.EVENT_READ, client)
            waits = False  # whether the client spoke last
            while True:
                for key, _ in ready.select():
                    asks, data = key.fileobj is client, key.fileobj.recv(65536)
                    if not data or (waits and not asks and self._is_cut()):
                        return
                    self.trips += asks and not waits
                    waits = asks
                    key.data.sendall(data)

    def _is_cut(self) -> bool:
        with self._lock:
            left = self.cut_after
            if left is not None:
                self.cut_after = left - 1 if left else None
            return left == 0


@contextmanager
def proxied(url: str) -> Iterator[Proxy]:
    """A proxy of a server."""
    proxy = Proxy(url)
    try:
        yield proxy
    finally:
        proxy.close()
