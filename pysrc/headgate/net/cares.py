"""Asks name servers with c-ares (https://c-ares.org), which does its work in a thread of its own.

It reads `resolv.conf`, `nsswitch.conf` and `hosts`, honours search domains and `LOCALDOMAIN`, repeats by TCP what was
truncated, and tells the TTL of each record.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from pathlib import Path
from typing import Any, Final

import pycares

from headgate.ir.process import DnsSettings
from headgate.net.dns import Found
from headgate_engine.errors import NameResolutionError

RESOLV_CONF: Final = Path("/etc/resolv.conf")
# Each server is asked so often; the first time it has so long, and then twice that (ares_init_options(3)). One server
# that is silent is given up within the default of connectTimeout, so that the answer says what is wrong.
TRIES: Final = 2
TIMEOUT_SECONDS: Final = 2.0
# c-ares keeps answers, too, and has no bound on them but their TTL: who may have any name looked up could fill the
# memory. They go with their channel, which serves so many look-ups.
LOOKUPS_OF_CHANNEL: Final = 256


class _Channel:
    """A channel of c-ares with the number of its look-ups, and of those under way."""

    def __init__(self, settings: DnsSettings, flags: int) -> None:
        servers = list(settings.servers) or None
        self.channel: Any = pycares.Channel(flags=flags, timeout=TIMEOUT_SECONDS, tries=TRIES, servers=servers)
        self.begun = 0
        self.running = 0


class CaresLookup:
    """The look-ups of one process. `resolv_conf`: the file that says whether questions carry EDNS by default."""

    def __init__(self, settings: DnsSettings, resolv_conf: Path = RESOLV_CONF) -> None:
        self._settings = settings
        edns0 = system_edns0(resolv_conf) if settings.edns0 is None else settings.edns0
        self._flags = pycares.ARES_FLAG_EDNS if edns0 else 0
        self._current: _Channel | None = None

    async def ask(self, host: str, family: socket.AddressFamily) -> list[Found]:
        """Return the addresses of `host`. Raises NameResolutionError."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[tuple[Any, int | None]] = loop.create_future()
        try:
            channel = self._channel()
        except pycares.AresError as error:
            raise NameResolutionError(str(error)) from None

        def settle(result: Any, failure: int | None) -> None:
            channel.running -= 1
            if channel is not self._current and channel.running == 0:
                channel.channel.close()
            if not answered.done():
                answered.set_result((result, failure))

        def came(result: Any, failure: int | None) -> None:
            # In the thread of c-ares. The loop may have been closed while it waited for a server.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, result, failure)

        channel.begun += 1
        channel.running += 1
        try:
            channel.channel.getaddrinfo(host, None, family=family, type=socket.SOCK_STREAM, callback=came)
        except (UnicodeError, ValueError, pycares.AresError) as error:
            channel.running -= 1
            raise NameResolutionError(str(error)) from None
        result, failure = await answered
        if failure is not None:
            raise NameResolutionError(pycares.errno.strerror(failure))
        return [Found(node.addr[0].decode("ascii"), float(node.ttl)) for node in result.nodes]

    def _channel(self) -> _Channel:
        before = self._current
        if before is not None and before.begun < LOOKUPS_OF_CHANNEL:
            return before
        self._current = _Channel(self._settings, self._flags)
        if before is not None and before.running == 0:
            before.channel.close()
        return self._current


def system_edns0(resolv_conf: Path = RESOLV_CONF) -> bool:
    """Return whether the options of the system (resolv.conf(5), `RES_OPTIONS`) have `edns0`."""
    try:
        lines = resolv_conf.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    words = [line.split() for line in lines]
    options = [option for line in words if line[:1] == ["options"] for option in line[1:]]
    return "edns0" in options + os.environ.get("RES_OPTIONS", "").split()
