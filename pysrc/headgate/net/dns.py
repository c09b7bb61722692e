"""Name resolution for backends: results are cached, and the addresses of a name are used in turn."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from collections.abc import Callable
from typing import NamedTuple

from headgate.net.tasks import spawn

# getaddrinfo() does not return a TTL, so names are looked up again after this time.
TTL_SECONDS = 5.0
# A failed look-up is not repeated within this time, so that a burst of requests costs one look-up.
FAILURE_TTL_SECONDS = 1.0
MAX_NAMES = 4096
# Look-ups that run at a time: they go on without who asked, since others may ask for the same name.
MAX_LOOKUPS = 1024


class _Failure(NamedTuple):
    """A failed look-up. An exception that is raised again and again would hold the frames of all who have met it."""

    kind: type[OSError]
    args: tuple[object, ...]

    def error(self) -> OSError:
        return self.kind(*self.args)


class Resolver:
    """Resolves host names to addresses.

    With `ipv6` False only IPv4 addresses are looked up. `clock` returns monotonic time in seconds.
    """

    def __init__(self, *, ipv6: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        self._family = socket.AF_UNSPEC if ipv6 else socket.AF_INET
        self._clock = clock
        self._known: dict[str, tuple[float, list[str] | _Failure]] = {}
        self._running: dict[str, asyncio.Future[list[str]]] = {}
        self._turn = 0

    async def lookup(self, host: str) -> list[str]:
        """Return the addresses of `host`, rotated by one with each look-up. Raises OSError.

        If the name has IPv4 addresses, only those are returned. An IP address is returned as it is.
        """
        if is_address(host):
            return [host]
        found = self._known.get(host)
        if found is None or found[0] <= self._clock():
            addresses = await self._ask_once(host)
        elif isinstance(found[1], _Failure):
            raise found[1].error()
        else:
            addresses = found[1]
        self._turn += 1
        start = self._turn % len(addresses)
        return addresses[start:] + addresses[:start]

    async def _ask_once(self, host: str) -> list[str]:
        if host not in self._running:
            if len(self._running) >= MAX_LOOKUPS:
                raise OSError("too many names are being looked up")
            self._running[host] = asyncio.get_running_loop().create_future()
            spawn(f"look up {host}", self._answer(host, self._running[host]))
        # In no variable: the frame is part of the error that the future holds.
        return await asyncio.shield(self._running[host])

    async def _answer(self, host: str, running: asyncio.Future[list[str]]) -> None:
        try:
            running.set_result(await self._ask(host))
        except OSError as error:
            running.set_exception(_Failure(type(error), error.args).error())
            running.exception()  # marks the exception as retrieved: who waited for it may have left
        finally:
            del self._running[host]
            if not running.done():
                running.cancel()

    async def _ask(self, host: str) -> list[str]:
        loop = asyncio.get_running_loop()
        if len(self._known) >= MAX_NAMES:
            self._known.clear()
        try:
            answer = await loop.getaddrinfo(host, None, family=self._family, type=socket.SOCK_STREAM)
        except OSError as error:
            self._known[host] = (self._clock() + FAILURE_TTL_SECONDS, _Failure(type(error), error.args))
            raise
        ordered = sorted(answer, key=lambda entry: entry[0] != socket.AF_INET)
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in ordered))
        v4 = [address for address in addresses if ":" not in address]
        self._known[host] = (self._clock() + TTL_SECONDS, v4 or addresses)
        return v4 or addresses


def is_address(host: str) -> bool:
    """Return whether `host` is an IPv4 or IPv6 address without brackets."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
