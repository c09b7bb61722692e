"""Listening sockets, for IPv4 and IPv6 where the machine has both."""

from __future__ import annotations

import contextlib
import ctypes
import ipaddress
import socket
import struct

from headgate.ir.endpoint import Keepalives

BACKLOG = 4096
SO_ATTACH_FILTER = 26  # asm-generic/socket.h
# Classic BPF over the TCP header, (code, jump if true, jump if false, operand): drops segments with SYN, passes others.
NO_SYN = (
    (0x30, 0, 0, 13),  # load byte 13: the flags
    (0x45, 0, 1, 0x02),  # is SYN set?
    (0x06, 0, 0, 0),  # drop
    (0x06, 0, 0, 0xFFFFFFFF),  # pass whole
)


class LentSocket(socket.socket):
    """A listening socket that another process owns and continues to use after this process has closed it."""


def open_socket(host: str, port: int, *, shared: bool) -> socket.socket:
    """Return a bound, listening, non-blocking socket; see bind_socket(). Raises OSError."""
    sock = bind_socket(host, port, shared=shared)
    try:
        sock.listen(BACKLOG)
    except BaseException:
        sock.close()
        raise
    return sock


def bind_socket(host: str, port: int, *, shared: bool) -> socket.socket:
    """Return a bound, non-blocking socket, which refuses connections until it listens. Raises OSError.

    `::` accepts IPv4 as well; on a machine without IPv6 it becomes `0.0.0.0`. With `shared`, several sockets may bind
    the same port (SO_REUSEPORT), and the kernel spreads connections over them.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if family == socket.AF_INET6 and not ipv6_works():
        family, host = socket.AF_INET, "0.0.0.0"  # noqa: S104 - the configured "every address"
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind((host, port))
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock


def listens_at(sock: socket.socket, host: str, port: int) -> bool:
    """Return whether open_socket() with these arguments would open what this socket is."""
    wanted = ipaddress.ip_address(host)
    if wanted == ipaddress.IPv6Address(0) and not ipv6_works():
        wanted = ipaddress.IPv4Address(0)
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    found = sock.getsockname()
    return bool(port == found[1] and wanted == ipaddress.ip_address(found[0]))


def set_keepalives(sock: socket.socket, keepalives: Keepalives) -> None:
    """Set the TCP keepalive of a connection, or of all that a listening socket will accept (tcp(7))."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, int(keepalives.enabled))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, max(1, keepalives.time_ms // 1000))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, max(1, keepalives.interval_ms // 1000))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, keepalives.retries)


def refuse_handshakes(sock: socket.socket) -> bool:
    """Make a listening TCP socket drop new SYNs while running handshakes complete. Return False if the kernel refuses.

    A connection whose handshake completes between the last `accept` and `close` would be reset, with its first request
    already on the way. If SYNs are dropped first, the client sends its SYN again and finds the port closed, before it
    has sent a request. See "SO_ATTACH_FILTER" in https://man7.org/linux/man-pages/man7/socket.7.html.
    """
    program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in NO_SYN))
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("@HP", len(NO_SYN), ctypes.addressof(program)))
        return True
    return False


def taken(host: str, port: int) -> bool:
    """Return whether another program listens on the port. SO_REUSEPORT alone could share the port by accident."""
    family = socket.AF_INET6 if ":" in host and ipv6_works() else socket.AF_INET
    address = host if family == socket.AF_INET6 or ":" not in host else "0.0.0.0"  # noqa: S104
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except PermissionError:
            return False  # open_socket() will raise the same error with its reason
        except OSError:
            return True
    return False


_ipv6: bool | None = None


def ipv6_works() -> bool:
    """Return whether an IPv6 socket can be bound on this machine."""
    global _ipv6
    if _ipv6 is None:
        try:
            with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
                probe.bind(("::1", 0))
            _ipv6 = True
        except OSError:
            _ipv6 = False
    return _ipv6
