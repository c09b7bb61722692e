"""Connects to the first address of a host that answers: Happy Eyeballs (RFC 8305 section 5).

The next address is tried when the one before has failed, or has not answered for the attempt delay. The first
connection wins, and the other attempts end.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from typing import Final

# The recommended value of RFC 8305 section 8.
ATTEMPT_DELAY_SECONDS: Final = 0.25


class _Race:
    """Attempts at some addresses. `winner` gets the first socket that is connected, or the last error."""

    def __init__(self, addresses: list[str], port: int, delay: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting = list(reversed(addresses))
        self._port = port
        self._delay = delay
        self._running: set[socket.socket] = set()
        self._timer: asyncio.TimerHandle | None = None
        self.winner: asyncio.Future[socket.socket] = self._loop.create_future()

    def next(self) -> None:
        """Begin the next attempt, and those behind it as long as they fail at once."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting and not self.winner.done():
            error = self._begin(self._waiting.pop())
            if error is not None:
                self._failed(error)
                continue
            if self._waiting and not self.winner.done():
                self._timer = self._loop.call_later(self._delay, self.next)
            return

    def _begin(self, address: str) -> OSError | None:
        """Begin an attempt. Return why it failed at once."""
        try:
            sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        except OSError as error:
            return error
        sock.setblocking(False)
        code = sock.connect_ex((address, self._port))
        if code == errno.EINPROGRESS:
            self._running.add(sock)
            self._loop.add_writer(sock, self._settled, sock)
        elif code == 0:
            self.winner.set_result(sock)
        else:
            sock.close()
            return OSError(code, os.strerror(code))
        return None

    def _settled(self, sock: socket.socket) -> None:
        self._loop.remove_writer(sock)
        self._running.discard(sock)
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code == 0 and not self.winner.done():
            self.winner.set_result(sock)
            return
        sock.close()
        if code and not self.winner.done():
            self._failed(OSError(code, os.strerror(code)))
            self.next()

    def _failed(self, error: OSError) -> None:
        if not self._waiting and not self._running:
            self.winner.set_exception(error)

    def close(self) -> None:
        """End the attempts that have not won."""
        if self._timer is not None:
            self._timer.cancel()
        for sock in self._running:
            self._loop.remove_writer(sock)
            sock.close()
        self._running.clear()
        self._waiting.clear()


async def first_connected(addresses: list[str], port: int, delay: float = ATTEMPT_DELAY_SECONDS) -> socket.socket:
    """Return a connected, non-blocking socket. Raises the OSError of the last attempt when all have failed.

    `delay`: seconds between two attempts of which the first has not failed.
    """
    race = _Race(addresses, port, delay)
    try:
        race.next()
        return await race.winner
    except asyncio.CancelledError:
        # Who waits may be cancelled in the moment in which it is won.
        if not race.winner.cancelled() and race.winner.done() and race.winner.exception() is None:
            race.winner.result().close()
        raise
    finally:
        race.close()
