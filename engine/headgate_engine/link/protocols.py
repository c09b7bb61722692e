"""What is spoken on a port and with a backend: one row per protocol.

A server row makes the asyncio protocol of an accepted connection from the worker, the slot of its bind and what makes
requests of what comes (contract.pxd RequestFactory). Besides what asyncio asks of it, such an object has the
properties and control methods of link.downstream.DownstreamConnection, and reports itself with
Worker.connection_made() and connection_lost(). A client row makes the kind of connection of a pool.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol

from headgate_engine.errors import TlsError
from headgate_engine.link.addresses import address_of, address_text
from headgate_engine.link.contract import RequestFactory, UpstreamProtocol
from headgate_engine.link.downstream import DownstreamConnection
from headgate_engine.link.factory import ExchangeFactory
from headgate_engine.link.handshake import SecureServer
from headgate_engine.link.http2_upstream import Http2Upstream
from headgate_engine.link.inward import InwardProtocol
from headgate_engine.link.proxy_header import ProxyFront
from headgate_engine.link.tcp_server import TcpConnection
from headgate_engine.link.tcp_upstream import TcpUpstream
from headgate_engine.link.upstream import Http1Upstream
from headgate_engine.link.worker import Worker
from headgate_engine.log.labels import label
from headgate_engine.plan.plans import BindSlot
from headgate_engine.shared.counters import Counter
from headgate_engine.tls.context import TlsContext

HTTP1 = "http/1.1"
HTTP2 = "h2"
TCP = "tcp"
# With a port of this process.
INWARD = "internal"
# Of a port with TLS: the listener that the client asks for decides between HTTP1 and TCP.
MIXED = "mixed"

# A client of HTTP/1.1 may turn out to speak HTTP/2: link.downstream then goes on with link.http2_server.
# Protocols of asyncio, but by their methods only: a compiled class cannot have a Python class as its base.
SERVERS: dict[str, Callable[[Worker, BindSlot, RequestFactory], Any]] = {
    HTTP1: DownstreamConnection, TCP: TcpConnection,
}  # fmt: skip
CLIENTS: dict[str, Callable[[Worker], UpstreamProtocol]] = {
    HTTP1: Http1Upstream, HTTP2: Http2Upstream, TCP: TcpUpstream, INWARD: InwardProtocol,
}  # fmt: skip
# What a client may choose in a TLS handshake (ALPN, RFC 7301), in our order, and its row of SERVERS. A client that does
# not choose gets what the port speaks.
NEGOTIATED: dict[str, str] = {HTTP2: HTTP1, HTTP1: HTTP1}      # HTTP/2 takes over a connection of HTTP/1.1

# What a port says of a name whose listener leaves TLS to the backend: the handshake is passed on.
PASSTHROUGH = "passthrough"

HANDSHAKE_FAILURES = "gw_tls_handshake_failures_total"
HEADER_FAILURES = "gw_proxy_protocol_failures_total"
NS_PER_S = 1_000_000_000

logger = logging.getLogger("headgate.tls")


Found = TlsContext | asyncio.Task[TlsContext | TlsError] | str | None


class ServerNames(Protocol):
    """Chooses the TLS settings of a connection by the name that its client asks for."""

    def find(self, name: str | None) -> Found:
        """Return the settings for a name in lower case (None if the client sent none), or PASSTHROUGH.

        None: no listener has the name. A task: somebody is making them; its result may be the error.
        """


class Port:
    """Makes the connections of one port: the protocol factory of its sockets. KeyError before Worker.set_bind().

    Each connection speaks what the plan says that runs when it is accepted, behind TLS if there are names.
    """

    def __init__(self, worker: Worker, key: str) -> None:
        self.worker = worker
        self.handshake_ns = 15 * NS_PER_S
        self._slot = worker.slot(key)
        self._requests = ExchangeFactory(worker)
        self._names: ServerNames | None = None
        self._failures: dict[str, Counter] = {}
        self._unproxied: Counter | None = None

    def secure(self, names: ServerNames | None, handshake_s: float) -> None:
        """Accept with TLS, or without it, from now on. handshake_s: seconds that a handshake may take."""
        self._names = names
        self.handshake_ns = int(handshake_s * NS_PER_S)

    def __call__(self) -> Any:
        """Return the protocol of an accepted socket."""
        rules = self._slot.plan.proxy_rules
        return self.behind() if rules is None else ProxyFront(self, rules)

    def behind(self) -> Any:
        """Return the protocol of what comes behind a PROXY protocol header, or without one."""
        return self.connection(None) if self._names is None else SecureServer(self)

    def connection(self, negotiated: str | None, name: str | None = None) -> Any:
        """Return a connection that speaks what was negotiated (None: nothing was) with the listener of a name."""
        plan = self._slot.plan
        row = plan.protocol
        if row == MIXED:
            listener = plan.listeners.get(name or "")
            row = TCP if listener is not None and listener.tcp is not None else HTTP1
        if row != TCP:
            row = NEGOTIATED.get(negotiated or "", row)
        return SERVERS[row](self.worker, self._slot, self._requests)

    def passing(self, name: str | None, first: bytes) -> Any:
        """Return a connection that passes the handshake on. name: that the client asks for; first: what has come."""
        return TcpConnection(self.worker, self._slot, self._requests, name, first)

    def find(self, name: str | None) -> Found:
        """Return the TLS settings for a name or who is making them, PASSTHROUGH where its listener has none, None
        without a listener.
        """
        return None if self._names is None else self._names.find(name)

    def unproxied(self, fault: str, transport: Any) -> None:
        """Count and report a connection that ends for want of a PROXY protocol header. fault: what is wrong with it."""
        if self.worker.segment is not None:
            if self._unproxied is None:
                labels = label("bind", self._slot.key)
                self._unproxied = Counter(self.worker.segment, f"{HEADER_FAILURES}\0{labels}".encode())
            self._unproxied.add(1)
        peer = address_text(*address_of(transport, "peername"))
        told = {"bind": self._slot.key, "src.addr": peer, "error": fault}
        logger.info("PROXY protocol header refused", extra=told)

    def failed(self, reason: str, detail: str | None, transport: Any, name: str | None) -> None:
        """Count and report a failed handshake. reason: one of tls.faults.REASONS."""
        counter = self._failures.get(reason)
        if counter is None and self.worker.segment is not None:
            labels = f"{label('bind', self._slot.key)},{label('reason', reason)}"
            counter = Counter(self.worker.segment, f"{HANDSHAKE_FAILURES}\0{labels}".encode())
            self._failures[reason] = counter
        if counter is not None:
            counter.add(1)
        peer = "" if transport is None else address_text(*address_of(transport, "peername"))
        told = {"bind": self._slot.key, "src.addr": peer, "tls.sni": name, "reason": reason, "error": detail}
        logger.info("TLS handshake failed", extra={key: value for key, value in told.items() if value})


def connection_factory(worker: Worker, key: str) -> Port:
    """Return the protocol factory for the sockets of a port; KeyError before Worker.set_bind()."""
    return Port(worker, key)
