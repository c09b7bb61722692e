"""Listening sockets that a service manager (systemd) has opened and lends: sd_listen_fds(3), without its library.

They belong to the manager: what waits in their queues while no gateway runs is served by the next one. So a gateway
that ends takes what has come, and leaves the rest alone.
https://www.freedesktop.org/software/systemd/man/latest/sd_listen_fds.html
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import os
import socket
from collections.abc import Iterable, MutableMapping
from typing import Final, NamedTuple

from headgate.admin.servers import configured
from headgate.ir.gateway import Gateway
from headgate.ir.process import ProcessSettings
from headgate.net.sockets import LentSocket, ipv6_works
from headgate.server.failures import ReloadFailed

logger = logging.getLogger("headgate.supervisor")

FIRST_DESCRIPTOR: Final = 3
VARIABLES: Final = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID")
IPV6: Final = 6


class Lent(NamedTuple):
    """A socket with the name that the unit gives it, and where it listens."""

    name: str
    sock: socket.socket
    address: ipaddress.IPv4Address | ipaddress.IPv6Address
    port: int

    @property
    def text(self) -> str:
        """The address as a configuration writes it, and the name."""
        host = f"[{self.address}]" if self.address.version == IPV6 else str(self.address)
        return f"{host}:{self.port} ({self.name})"

    def serves(self, host: str, port: int) -> bool:
        """Return whether a bind means this socket. `::` means every address, which without IPv6 is 0.0.0.0."""
        wanted = ipaddress.ip_address(host)
        if wanted.version == IPV6 and wanted.is_unspecified and not ipv6_works():
            wanted = ipaddress.IPv4Address(0)
        return port == self.port and wanted == self.address


def lent_sockets(environ: MutableMapping[str, str]) -> list[Lent]:
    """Take the sockets that `environ` tells of, and its variables: processes that the gateway starts get neither.

    Sockets for another process (LISTEN_PID) are left alone. Raises ReloadFailed for what is no listening TCP socket.
    """
    pid, count, names = (environ.pop(name, "") for name in VARIABLES[:3])
    environ.pop(VARIABLES[3], None)
    if not count or pid != str(os.getpid()):
        return []
    if not count.isascii() or not count.isdigit():
        raise ReloadFailed(f"LISTEN_FDS is not a number: {count!r}")
    named = names.split(":") if names else []
    found: list[Lent] = []
    for index in range(int(count)):
        descriptor = FIRST_DESCRIPTOR + index
        name = named[index] if index < len(named) else "unknown"
        try:
            os.set_inheritable(descriptor, False)
        except OSError as error:
            why = f"LISTEN_FDS={count}, but descriptor {descriptor} is not open: {error.strerror}"
            raise ReloadFailed(why) from None
        found.append(_lent(name, descriptor))
    return found


def _lent(name: str, descriptor: int) -> Lent:
    who = f"descriptor {descriptor} of LISTEN_FDS ({name})"
    try:
        sock = LentSocket(fileno=descriptor)
        tcp = sock.family in (socket.AF_INET, socket.AF_INET6) and sock.type == socket.SOCK_STREAM
        listens = tcp and bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    except OSError as error:
        raise ReloadFailed(f"{who} is not a socket: {error.strerror}") from None
    if not listens:
        raise ReloadFailed(f"{who} is not a listening TCP socket (ListenStream= with a port in the socket unit)")
    lent = lent_at(name, sock)
    # As the gateway opens its own: :: takes clients of IPv4 too.
    if lent.address == ipaddress.IPv6Address(0) and sock.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY):
        raise ReloadFailed(f"{who} at [::]:{lent.port} does not accept IPv4: set BindIPv6Only=both in the socket unit")
    sock.setblocking(False)
    return lent


def lent_at(name: str, sock: socket.socket) -> Lent:
    """Return a listening TCP socket with the place where it listens."""
    host, port = sock.getsockname()[:2]
    return Lent(name, sock, ipaddress.ip_address(host), port)


def check_lent(sockets: Iterable[Lent], gateway: Gateway) -> None:
    """Raise ReloadFailed if one is at an address where the configuration does not listen, be it a port or a server of
    the operator's.
    """
    binds = [bind for bind in gateway.binds if not bind.internal]
    servers = configured(gateway.process).values()
    places = [(bind.host, bind.port) for bind in binds]
    places += [(host, address.port) for address in servers for host in address.hosts]
    strange = [lent.text for lent in sockets if not any(lent.serves(host, port) for host, port in places)]
    if strange:
        ports = ", ".join([*(bind.address for bind in binds), *(address.text for address in servers)]) or "nowhere"
        raise ReloadFailed(
            f"the service manager hands over {', '.join(strange)}, where the configuration does not listen "
            f"(it listens at: {ports})"
        )


def lent_servers(sockets: Iterable[Lent], process: ProcessSettings) -> list[tuple[str, socket.socket]]:
    """Return copies of the sockets that the operator's servers mean, with their names."""
    return [
        (name, lent.sock.dup())
        for lent in sockets
        for name, address in configured(process).items()
        if any(lent.serves(host, address.port) for host in address.hosts)
    ]


def find_lent(sockets: Iterable[Lent], host: str, port: int) -> socket.socket | None:
    """Return a copy of the socket that a bind means, None if there is none."""
    for lent in sockets:
        if lent.serves(host, port):
            with contextlib.suppress(OSError):
                return lent.sock.dup()
    return None
