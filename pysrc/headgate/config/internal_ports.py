"""`internal` among backends: requests that go on at a bind of `mode: internal`, within the process.

Ports that lead to each other in a circle are refused at load, whatever their routes match: a route may rewrite a
request so that the next one matches it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy_values import BackendOptions
from headgate.config.ports import WILDCARD
from headgate.errors import Problem
from headgate.ir.backend import InternalBackend
from headgate.ir.bind import Bind
from headgate.ir.endpoint import Endpoint

ANY: Final = "*"
# What a connection would have, and none is there.
OF_CONNECTIONS: Final = {
    "tls": "backendTLS", "tunnel": "backendTunnel", "proxy_protocol": "proxyProtocol",
    "connect_timeout_ms": "tcp", "keepalives": "tcp",
    "http2": "http.version", "health": "health", "affinity": "sessionAffinity",
}  # fmt: skip


def key_of(port: int) -> str:
    """Return the key of an internal bind."""
    return f"bind/internal/{port}" if port else "bind/internal"


class InternalPorts:
    """The backends that are ports of the process, and where they stand."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._asked: list[tuple[Record, InternalBackend]] = []
        self._made: dict[int, InternalBackend] = {}

    def backend(self, record: Record, options: BackendOptions) -> InternalBackend | None:
        """Return the backend of a record with `internal`; None after reporting an error."""
        port = self._port(record, record["internal"])
        if port is None:
            return None
        for name, policy in OF_CONNECTIONS.items():
            if getattr(options, name) is not None:
                message = f"{policy} is for connections, and an internal port has none"
                self._context.fault(Problem.CONFLICT, record, "internal", message)
                return None
        found = self._made.get(port)
        if found is None:
            name = f"internal/{port or ANY}"
            endpoint = Endpoint(key=name, port=port, inward=key_of(port))
            found = self._made[port] = InternalBackend(key=name, name=name, bind=key_of(port), endpoint=endpoint)
        self._asked.append((record, found))
        return found

    def _port(self, record: Record, written: str | int) -> int | None:
        text = str(written)
        if text == ANY:
            return WILDCARD
        if text.isascii() and text.isdigit() and 0 < int(text) < 65536:
            return int(text)
        if text == "forward" or text.startswith("/"):
            self._context.fault(Problem.UNSUPPORTED, record, "internal", " (the admin API)")
        else:
            message = f"{text!r} is no port of a bind of mode internal, nor {ANY!r} for the one without a number"
            self._context.fault(Problem.VALUE, record, "internal", message)
        return None

    def check(self, binds: Iterable[Bind]) -> None:
        """Report ports that are not there or carry no plain HTTP, and circles."""
        known = {bind.key: bind for bind in binds}
        for record, backend in self._asked:
            bind = known.get(backend.bind)
            if bind is None:
                message = f"there is no bind of mode internal with the port {backend.endpoint.port or ANY}"
                self._context.fault(Problem.REFERENCE, record, "internal", message)
            elif bind.tls or not all(listener.carries_http for listener in bind.listeners):
                message = "the listeners of the internal port have to be of protocol HTTP"
                self._context.fault(Problem.CONFLICT, record, "internal", message)
        leads = {key: _targets(bind) for key, bind in known.items()}
        circle = _circle(leads)
        if circle:
            for record, backend in self._asked:
                if backend.bind == circle[0]:
                    way = " > ".join((*circle, circle[0]))
                    self._context.fault(Problem.CONFLICT, record, "internal", f"ports lead to each other: {way}")
                    break


def _targets(bind: Bind) -> list[str]:
    """Return the keys of the internal ports that a port leads to."""
    routes = (route for listener in bind.listeners for route in listener.routes)
    backends = (choice.backend for route in routes for choice in route.backends)
    return list(dict.fromkeys(one.bind for one in backends if isinstance(one, InternalBackend)))


def _circle(leads: dict[str, list[str]]) -> list[str]:
    """Return the keys of ports that lead to each other in a circle; empty if none do."""
    done: set[str] = set()

    def visit(key: str, above: tuple[str, ...]) -> list[str]:
        if key in above:
            return list(above[above.index(key) :])
        if key in done:
            return []
        done.add(key)
        for other in leads.get(key, ()):
            found = visit(other, (*above, key))
            if found:
                return found
        return []

    for key in leads:
        found = visit(key, ())
        if found:
            return found
    return []
