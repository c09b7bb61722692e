"""Tunnels through an HTTP proxy with CONNECT (RFC 9110 section 9.3.6)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from headgate_engine.lazy_pattern import lazy_pattern

MAX_HEAD: Final = 8192
# RFC 9110 sections 5.5 and 5.6.2.
FIELD: Final = lazy_pattern(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+: [^\x00-\x08\x0a-\x1f\x7f]*")
STATUS: Final = lazy_pattern(rb"HTTP/1\.[01] ([0-9]{3})(?: [^\r\n]*)?\r\n")


class TunnelError(ConnectionError):
    """The proxy did not open the tunnel."""


class TunnelRefused(TunnelError):
    """The proxy responded, but did not open the tunnel."""


class ProxyAnswer(asyncio.Protocol):
    """Sends CONNECT to a proxy and waits for the response.

    `authority` is the backend as `host:port`, `fields` are further headers (name, value) for the proxy. `lost` is True
    once the connection to the proxy is lost. `speaks_first` tells that the backend may send something before it got
    anything, as servers of HTTP/2 do; `early` is what it has sent.
    """

    def __init__(self, authority: str, fields: Sequence[tuple[str, str]] = (), *, speaks_first: bool = False) -> None:
        self._request = request_for(authority, fields)
        self._speaks_first = speaks_first
        self.early = b""
        self._received = b""
        self._answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.transport: asyncio.Transport | None = None
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request."""
        self.transport = transport  # type: ignore[assignment]
        assert self.transport is not None
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Collect the head of the response and evaluate it once it is complete."""
        if self._answered.done():
            self._keep(data)
            return
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        if end < 0 and len(self._received) <= MAX_HEAD:
            return
        fault = fault_of(self._received, end, speaks_first=self._speaks_first)
        if fault is not None:
            self._answered.set_exception(TunnelRefused(fault))
            return
        self._answered.set_result(None)
        self._keep(self._received[end + 4 :])

    def _keep(self, data: bytes) -> None:
        """Keep what the backend has sent. More than a first frame or two is not waited for."""
        self.early += data
        if self.early and (not self._speaks_first or len(self.early) > MAX_HEAD) and self.transport is not None:
            self.transport.abort()
            self.lost = True

    def hand_over(self, protocol: asyncio.BaseProtocol) -> None:
        """Make another protocol that of the connection, and give it what the backend has sent so far."""
        assert self.transport is not None
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        if isinstance(protocol, asyncio.Protocol):
            if self.early:
                protocol.data_received(self.early)
            return
        # The engine's connections are protocols with buffers, and no subclasses of asyncio's.
        buffered: Any = protocol
        left = memoryview(self.early)
        while left:
            buffer = memoryview(buffered.get_buffer(len(left)))
            size = min(len(buffer), len(left))
            buffer[:size] = left[:size]
            buffered.buffer_updated(size)
            left = left[size:]

    def eof_received(self) -> bool:
        """Return False, so that the transport closes the connection."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Fail the waiter of `opened()`."""
        self.lost = True
        if not self._answered.done():
            self._answered.set_exception(TunnelError("the proxy closed the connection"))

    async def opened(self) -> asyncio.Transport:
        """Wait until the proxy has opened the tunnel and return the transport. Raises TunnelError."""
        await self._answered
        assert self.transport is not None
        return self.transport


def request_for(authority: str, fields: Sequence[tuple[str, str]]) -> bytes:
    """Return the request for a tunnel to `authority`. Raises TunnelError if a header cannot be sent."""
    lines = [f"CONNECT {authority} HTTP/1.1".encode(), f"host: {authority}".encode()]
    for name, value in fields:
        line = f"{name}: {value}".encode("utf-8", "surrogateescape")
        if not FIELD.fullmatch(line):
            raise TunnelError(f"the request for a tunnel cannot have this header {name!r}")
        lines.append(line)
    return b"\r\n".join([*lines, b"", b""])


def fault_of(received: bytes, end: int, *, speaks_first: bool = False) -> str | None:
    """Return the reason why a response does not open a tunnel, or None if it does.

    `end` is the offset of the blank line behind the head, or -1 if the head is too long. `speaks_first`: bytes of the
    backend may follow.
    """
    if not 0 <= end <= MAX_HEAD:
        return f"the proxy's answer has a head of more than {MAX_HEAD} bytes"
    found = STATUS.match(received)
    if found is None:
        return "the proxy's response is not HTTP"
    if found[1][:1] != b"2":
        return f"the proxy refused the tunnel with status {found[1].decode()}"
    if len(received) > end + 4 and not speaks_first:
        # The backend cannot have sent anything yet: clients of TLS and HTTP/1.1 send the first bytes.
        return "the proxy sent data after its response"
    return None
