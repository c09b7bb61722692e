"""`internal` among backends: requests that go on at a bind of `mode: internal` of the process, or to the admin API.

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
from headgate.config.ui_route import PREFIXES, is_claimed
from headgate.errors import Problem
from headgate.ir.backend import InternalBackend, UiBackend
from headgate.ir.bind import Bind
from headgate.ir.endpoint import Endpoint

ANY: Final = "*"
# To the admin API, at the request's own path.
FORWARD: Final = "forward"
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
        # Whether a backend leads to the admin API.
        self.to_admin = False

    def backend(self, record: Record, options: BackendOptions, name: str) -> InternalBackend | UiBackend | None:
        """Return the backend of a record with `internal`; None after reporting an error. `name`: of a named backend."""
        written = str(record["internal"])
        admin = written == FORWARD or written.startswith("/")
        port = self._path(record, written) if admin else self._port(record, written)
        if port is None:
            return None
        for field, policy in OF_CONNECTIONS.items():
            if getattr(options, field) is not None:
                message = f"{policy} applies to connections, which an internal backend does not have"
                self._context.fault(Problem.CONFLICT, record, "internal", message)
                return None
        if isinstance(port, str):
            return self._admin(port, name)
        found = self._made.get(port)
        if found is None:
            name = f"internal/{port or ANY}"
            endpoint = Endpoint(key=name, port=port, inward=key_of(port))
            found = self._made[port] = InternalBackend(key=name, name=name, bind=key_of(port), endpoint=endpoint)
        self._asked.append((record, found))
        return found

    def _admin(self, written: str, name: str) -> UiBackend:
        self.to_admin = True
        path = None if written == FORWARD else written
        key = f"internal/admin{path or ''}"
        return UiBackend(key=key, name=name or key, path=path)

    def _path(self, record: Record, written: str) -> str | None:
        if written == FORWARD or is_claimed(written):
            return written
        known = ", ".join(PREFIXES)
        message = f"{written!r} is not a path of the admin API: use / or a path below {known}, without a query"
        self._context.fault(Problem.VALUE, record, "internal", message)
        return None

    def _port(self, record: Record, text: str) -> int | None:
        if text == ANY:
            return WILDCARD
        if text.isascii() and text.isdigit() and 0 < int(text) < 65536:
            return int(text)
        message = (
            f"{text!r} is neither the port of a bind of mode internal, nor {ANY!r} for the bind without a port, "
            f"nor {FORWARD!r} or a path for the admin API"
        )
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
                message = "listeners of an internal port must have the protocol HTTP"
                self._context.fault(Problem.CONFLICT, record, "internal", message)
        leads = {key: _targets(bind) for key, bind in known.items()}
        circle = _circle(leads)
        if circle:
            for record, backend in self._asked:
                if backend.bind == circle[0]:
                    way = " > ".join((*circle, circle[0]))
                    self._context.fault(Problem.CONFLICT, record, "internal", f"internal ports form a loop: {way}")
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
