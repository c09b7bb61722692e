"""Name resolution for backends: answers are kept for their TTL, and the addresses of a name are used in turn.

Name servers are asked by c-ares (`headgate.net.cares`) where the extra `dns` is installed: getaddrinfo(3) tells no TTL,
knows no time-out of its own, and holds a thread for each name. Without it the C library is asked, and each answer is
kept for the shortest time.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from collections.abc import Callable, Iterable
from itertools import zip_longest
from typing import Final, NamedTuple, Protocol

from headgate.ir.process import DnsSettings, LookupFamily
from headgate.net.tasks import spawn
from headgate_engine.errors import NameResolutionError

# An answer is kept for its TTL within these bounds. Some servers say 0 for all that they answer.
LEAST_TTL_SECONDS: Final = 5.0
MOST_TTL_SECONDS: Final = 86_400.0
# A failed look-up is not repeated within this time, so that a burst of requests costs one look-up.
FAILURE_TTL_SECONDS: Final = 1.0
# Names that are kept, failures among them; the oldest go first.
MAX_NAMES = 4096
# Addresses that are kept of one name.
MAX_ADDRESSES: Final = 32
# Look-ups that run at a time: they go on without who asked, since others may ask for the same name.
MAX_LOOKUPS = 1024

FAMILIES: Final[dict[LookupFamily, socket.AddressFamily]] = {
    "All": socket.AF_UNSPEC, "V4Preferred": socket.AF_UNSPEC, "V4Only": socket.AF_INET, "V6Only": socket.AF_INET6,
}  # fmt: skip
DEFAULTS: Final = DnsSettings()


class Found(NamedTuple):
    """One address of a name. `ttl`: seconds for which it may be kept."""

    address: str
    ttl: float


class Lookup(Protocol):
    """Asks for the addresses of names."""

    async def ask(self, host: str, family: socket.AddressFamily) -> list[Found]:
        """Return the addresses of `host`, the best first. Raises NameResolutionError."""


class NameResolver(Protocol):
    """Resolves host names: a Resolver, or one that lets some addresses through (headgate.net.destinations)."""

    async def lookup(self, host: str) -> list[str]:
        """Return the addresses of a name in the order in which they are to be tried. Raises OSError."""


class SystemLookup:
    """Asks the C library, in threads of the loop."""

    async def ask(self, host: str, family: socket.AddressFamily) -> list[Found]:
        """Return the addresses of `host`. Raises NameResolutionError."""
        loop = asyncio.get_running_loop()
        try:
            answer = await loop.getaddrinfo(host, None, family=family, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:  # a name that IDNA does not know is a UnicodeError
            raise NameResolutionError(getattr(error, "strerror", None) or str(error)) from None
        return [Found(str(entry[4][0]), 0.0) for entry in answer]


class _Failure(NamedTuple):
    """A failed look-up. An exception that is raised again and again would hold the frames of all who have met it."""

    reason: str

    def error(self) -> NameResolutionError:
        return NameResolutionError(self.reason)


class Resolver:
    """Resolves host names to addresses. `clock` returns monotonic time in seconds.

    `lookup`: who is asked; None means c-ares, or the C library where that is not installed.
    """

    def __init__(
        self,
        settings: DnsSettings = DEFAULTS,
        *,
        lookup: Lookup | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._family = FAMILIES[settings.family]
        self._asked = lookup
        self._clock = clock
        self._known: dict[str, tuple[float, list[str] | _Failure]] = {}
        self._running: dict[str, asyncio.Future[list[str]]] = {}
        self._turn = 0

    async def lookup(self, host: str) -> list[str]:
        """Return the addresses of `host` in the order in which they are to be tried. Raises NameResolutionError.

        Those of each family are rotated by one with each look-up, and the families take turns (RFC 8305 section 4). An
        IP address is returned as it is.
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
        if len(addresses) == 1:
            return addresses.copy()
        self._turn += 1
        return interleaved(addresses, self._turn)

    async def _ask_once(self, host: str) -> list[str]:
        if host not in self._running:
            if len(self._running) >= MAX_LOOKUPS:
                raise NameResolutionError("too many names are being looked up")
            self._running[host] = asyncio.get_running_loop().create_future()
            spawn(f"look up {host}", self._answer(host, self._running[host]))
        # In no variable: the frame is part of the error that the future holds.
        return await asyncio.shield(self._running[host])

    async def _answer(self, host: str, running: asyncio.Future[list[str]]) -> None:
        try:
            running.set_result(await self._ask(host))
        except NameResolutionError as error:
            running.set_exception(_Failure(str(error)).error())
            running.exception()  # marks the exception as retrieved: who waited for it may have left
        finally:
            del self._running[host]
            if not running.done():
                running.cancel()

    async def _ask(self, host: str) -> list[str]:
        if self._asked is None:
            self._asked = _best_lookup(self._settings)
        try:
            answer = await self._asked.ask(host, self._family)
            if not answer:
                raise NameResolutionError("the name has no address")
        except NameResolutionError as error:
            self._keep(host, FAILURE_TTL_SECONDS, _Failure(str(error)))
            raise
        addresses = self._chosen(one.address for one in answer)
        ttl = min(max(min(one.ttl for one in answer), LEAST_TTL_SECONDS), MOST_TTL_SECONDS)
        self._keep(host, ttl, addresses)
        return addresses

    def _chosen(self, found: Iterable[str]) -> list[str]:
        addresses = list(dict.fromkeys(found))
        if self._settings.family == "V4Preferred":
            addresses = [address for address in addresses if ":" not in address] or addresses
        return addresses[:MAX_ADDRESSES]

    def _keep(self, host: str, ttl: float, value: list[str] | _Failure) -> None:
        self._known.pop(host, None)
        if len(self._known) >= MAX_NAMES:
            del self._known[next(iter(self._known))]
        self._known[host] = (self._clock() + ttl, value)


def _best_lookup(settings: DnsSettings) -> Lookup:
    try:
        from headgate.net.cares import CaresLookup  # c-ares: where a name is looked up first
    except ImportError:  # the extra is not installed, and no setting asks for it (headgate.config.dns_settings)
        return SystemLookup()
    return CaresLookup(settings)


def interleaved(addresses: list[str], turn: int = 0) -> list[str]:
    """Return the addresses with their families in turns, beginning with that of the first one.

    Each family is rotated by `turn`.
    """
    six = ":" in addresses[0]
    first = [address for address in addresses if (":" in address) == six]
    second = [address for address in addresses if (":" in address) != six]
    pairs = zip_longest(_rotated(first, turn), _rotated(second, turn))
    return [address for pair in pairs for address in pair if address is not None]


def _rotated(addresses: list[str], turn: int) -> list[str]:
    start = turn % len(addresses) if addresses else 0
    return addresses[start:] + addresses[:start]


def is_address(host: str) -> bool:
    """Return whether `host` is an IPv4 or IPv6 address without brackets."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
