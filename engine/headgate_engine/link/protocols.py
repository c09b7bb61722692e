"""What is spoken on a port and with a backend: one row per protocol.

A server row makes the asyncio protocol of an accepted connection from the worker, the slot of its bind and what makes
requests of what comes (contract.pxd RequestFactory). Besides what asyncio asks of it, such an object has the
properties and control methods of link.downstream.DownstreamConnection, and reports itself with
Worker.connection_made() and connection_lost(). A client row makes the kind of connection of a pool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from headgate_engine.link.contract import RequestFactory, UpstreamProtocol
from headgate_engine.link.downstream import DownstreamConnection
from headgate_engine.link.factory import ExchangeFactory
from headgate_engine.link.http2_upstream import Http2Upstream
from headgate_engine.link.upstream import Http1Upstream
from headgate_engine.link.worker import Worker
from headgate_engine.plan.plans import BindSlot

HTTP1 = "http/1.1"
HTTP2 = "h2"

# A client of HTTP/1.1 may turn out to speak HTTP/2: link.downstream then goes on with link.http2_server.
# Protocols of asyncio, but by their methods only: a compiled class cannot have a Python class as its base.
SERVERS: dict[str, Callable[[Worker, BindSlot, RequestFactory], Any]] = {HTTP1: DownstreamConnection}
CLIENTS: dict[str, Callable[[Worker], UpstreamProtocol]] = {HTTP1: Http1Upstream, HTTP2: Http2Upstream}


def connection_factory(worker: Worker, key: str) -> Callable[[], asyncio.BaseProtocol]:
    """Return the protocol factory for the sockets of a port; KeyError before Worker.set_bind().

    Each connection speaks what the plan says that runs when it is accepted.
    """
    slot = worker.slot(key)
    requests = ExchangeFactory(worker)
    return lambda: SERVERS[slot.plan.protocol](worker, slot, requests)
