"""Ports, gateways and listeners while they are collected, and references to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from headgate.config.check import Record, near
from headgate.config.context import Context
from headgate.config.tls_material import server_tls
from headgate.document.lazy_dataclass import dataclass, replace
from headgate.errors import Problem
from headgate.ir.listener import Protocol
from headgate.ir.tcp_route import TcpRoute
from headgate.ir.tls import ServerTls

DEFAULT: Final = "default"
# The one gateway of a file, as namespace and name.
GATEWAY: Final = f"{DEFAULT}/{DEFAULT}"
HTTP_KINDS: Final = ("HTTP", "HTTPS", "HBONE")
PLAIN: Final = ("HTTP", "TCP")
# The internal bind for all ports that no other one serves.
WILDCARD: Final = 0


@dataclass(slots=True)
class OpenListener:
    """A listener whose routes are still being collected. `routes` holds what `standalone` will build.

    All listeners of a file belong to the gateway `default/default`. `section`: the entry of `gateways` that it stands
    in, "" where it stands elsewhere. `own`: its name within the section.
    """

    key: str
    name: str
    port: int
    record: Record
    section: str = ""
    own: str = ""
    protocol: Protocol = "HTTP"
    hostname: str | None = None
    tls: ServerTls | None = None
    routes: list[Any] = field(default_factory=list)
    tcp_routes: list[TcpRoute] = field(default_factory=list)

    @property
    def carries_http(self) -> bool:
        """As of ir.listener.Listener."""
        return self.protocol in HTTP_KINDS

    @property
    def names(self) -> frozenset[str]:
        """The names under which a policy may target it: its own, that of its section, and both."""
        both = (self.section, f"{self.section}/{self.own}") if self.section else ()
        return frozenset((self.name, *both))


class PortMode(NamedTuple):
    """`tunnelProtocol` of a bind, and whether it has no socket."""

    tunnel: str = "direct"
    internal: bool = False

    @property
    def hbone(self) -> bool:
        """Whether it takes the tunnels of a mesh."""
        return self.tunnel == "hboneGateway"


class Ports:
    """The ports of a file with who opened them, and the gateways by name. `common_tls` is `frontendPolicies.tls`;
    `tls_of`: the same for ports that have their own."""

    def __init__(
        self, context: Context, common_tls: Record, tls_of: Mapping[int, Record] = MappingProxyType({})
    ) -> None:
        self.context = context
        self.common_tls = common_tls
        self.tls_of = tls_of
        self.listeners: dict[int, list[OpenListener]] = {}
        self.owners: dict[int, str] = {}
        self.gateways: dict[str, list[OpenListener]] = {}
        self.modes: dict[int, PortMode] = {}

    def claim(self, port: int, owner: str, record: Record) -> bool:
        """Reserve a port; reports and returns False when another part of the file has it."""
        first = self.owners.get(port)
        if first is not None:
            shown = f"port {port}" if port else "the internal port without a number"
            both = f"{shown} is configured by both {first} and {owner}"
            message = f"{both}; binds, llm, and mcp must use unique ports"
            self.context.fault(Problem.CONFLICT, record, "port", message)
            return False
        self.owners[port] = owner
        self.listeners[port] = []
        return True

    def key(self, port: int) -> str:
        """Return the key of the bind of a port."""
        if not self.modes.get(port, PortMode()).internal:
            return f"bind/{port}"
        return f"bind/internal/{port}" if port else "bind/internal"

    def add(self, listener: OpenListener) -> None:
        """Add a listener to its port and check it against those that are there."""
        others = self.listeners[listener.port]
        port, message = listener.port, ""
        if others and (others[0].protocol in PLAIN) != (listener.protocol in PLAIN):
            message = f"gateway listeners on port {port} cannot mix TLS and plaintext protocols"
        elif others and others[0].carries_http != listener.carries_http and (
            listener.section or listener.protocol in PLAIN  # the long form may: SNI tells HTTPS from TLS
        ):
            message = f"gateway listeners on port {port} cannot mix HTTP and TCP protocols"
        elif others and listener.protocol == "TCP":
            message = f"a TCP port can have only one listener, and port {port} already has {others[0].name}"
        if message:
            self.context.fault(Problem.CONFLICT, listener.record, "protocol", message)
        for other in [] if message else others:
            if other.key == listener.key:
                message = f"two listeners on port {port} are named {listener.name!r}"
                self.context.fault(Problem.CONFLICT, listener.record, "name", message)
            elif other.hostname == listener.hostname:
                shown = listener.hostname or "*"
                message = f"listeners {other.name} and {listener.name} on port {port} both have the host {shown}"
                self.context.fault(Problem.CONFLICT, listener.record, "hostname", message)
        others.append(listener)

    def open(self, listener: OpenListener) -> OpenListener | None:
        """Fill protocol, TLS and host name from the listener's record, and add it; None when it is not
        built yet.
        """
        record = listener.record
        if "protocol" in record and record["protocol"] is None:
            return None
        tls = record.get("tls")
        protocol: Protocol = record.get("protocol") or ("HTTPS" if tls is not None else "HTTP")
        if protocol in PLAIN and tls is not None:
            self.context.fault(Problem.CONFLICT, record, "tls", f"protocol {protocol} cannot set tls")
        if protocol == "HTTPS" and tls is None:
            self.context.fault(Problem.MISSING, record, "protocol", "protocol HTTPS requires tls")
        listener.protocol = protocol
        hostname = record.get("hostname")
        listener.hostname = None if hostname == "*" else hostname
        if protocol == "TCP" and listener.hostname is not None:
            self.context.fault(Problem.CONFLICT, record, "hostname", "protocol TCP has no host names")
        if protocol not in PLAIN and tls is not None:
            listener.tls = server_tls(self.context, tls, self.tls_of.get(listener.port, self.common_tls))
            if protocol == "TLS" and listener.tls is not None:
                # What is spoken in it is a matter of client and backend.
                listener.tls = replace(listener.tls, alpn=(), key=f"{listener.tls.key}#tcp")
        if protocol == "HBONE":
            self._mesh(listener, record)
        elif self.modes.get(listener.port, PortMode()).hbone:
            message = "tunnelProtocol hboneGateway needs listeners of protocol HBONE"
            self.context.fault(Problem.CONFLICT, record, "protocol", message)
        self.add(listener)
        return listener

    def _mesh(self, listener: OpenListener, record: Record) -> None:
        """Check a listener of the mesh: HTTP/2 over mutual TLS, with nothing but tunnels in it."""
        if not self.modes.get(listener.port, PortMode()).hbone:
            message = "protocol HBONE is only for binds with tunnelProtocol hboneGateway"
            self.context.fault(Problem.CONFLICT, record, "protocol", message)
        if listener.tls is not None and listener.tls.root_pem is not None:
            listener.tls = replace(listener.tls, alpn=(b"h2",), key=f"{listener.tls.key}#hbone")
        elif record.get("tls") is None or record["tls"].get("root") is None:
            message = "protocol HBONE requires tls with cert, key and root, for client certificates"
            self.context.fault(Problem.MISSING, record, "tls", message)
        if listener.tls is not None and listener.tls.strangers:
            message = "protocol HBONE requires client certificates"
            self.context.fault(Problem.CONFLICT, record, "tls", message)
        for key in ("routes", "tcpRoutes", "policies"):
            if record.get(key):
                message = f"protocol HBONE cannot have {key}: set them on the ports that its tunnels lead to"
                self.context.fault(Problem.CONFLICT, record, key, message)

    def open_gateways(self, gateways: dict[str, Record]) -> None:
        """Open the ports of `gateways`: `gateways.<x>` is the listener `<x>`, or has listeners of its own."""
        for name, record in gateways.items():
            self.gateways[name] = []
            if not name or "/" in name:
                self.context.fault(Problem.VALUE, record, "", "a gateway name cannot be empty or contain '/'")
            port = record.get("port")
            if port is None:
                self.context.report.add(Problem.MISSING, "", f"{record.path}.port is required", record.node)
                continue
            if self.claim(port, f"gateways.{name}", record):
                self._gateway(name, port, record)

    def _gateway(self, name: str, port: int, record: Record) -> None:
        entries = record.records("listeners")
        if entries:
            assert isinstance(record.node.value, dict)
            for key in record.node.value:
                if key not in ("port", "listeners"):
                    message = "set this on the listeners: the gateway has 'listeners'"
                    self.context.fault(Problem.CONFLICT, record, key, message)
        listeners = entries or [record]
        for index, entry in enumerate(listeners):
            given = entry.get("name") if entries else None
            own = given if given is not None else f"listener{index}"
            opened = self.open(
                OpenListener(
                    key=f"{GATEWAY}.{name}/{own}" if entries else f"{GATEWAY}.{name}",
                    name=own if entries else name,
                    port=port,
                    record=entry,
                    section=name,
                    own=own,
                )
            )
            if opened is not None:
                self.gateways[name].append(opened)

    def open_own(self, port: int, name: str, record: Record) -> list[OpenListener]:
        """Open a port for the `llm` or `mcp` section alone."""
        if not self.claim(port, name, record):
            return []
        found = self.open(
            OpenListener(
                key=f"{GATEWAY}:{port}.{name}",
                name=name,
                port=port,
                record=Record(
                    record.node, record.path, {key: record[key] for key in ("tls",) if key in record}
                ),
            )
        )
        return [found] if found is not None else []

    def resolve(self, record: Record, *, tcp: bool = False) -> list[OpenListener] | None:
        """Return the listeners of `gateways` of a record: those it names, else of gateway `default`; None
        without both. tcp: those that carry no HTTP, instead of those that do.
        """
        refs = record.get("gateways")
        kind = "TCP" if tcp else "HTTP"
        if isinstance(refs, str):
            refs = [refs]
        if not refs:
            fitting = [one for one in self.gateways.get(DEFAULT) or () if one.carries_http != tcp]
            return fitting or ([] if DEFAULT in self.gateways and self.context.report.errors else None)
        found: dict[str, OpenListener] = {}
        for ref in refs:
            gateway, slash, name = ref.partition("/")
            listeners = self.gateways.get(gateway)
            chosen = [one for one in listeners or [] if not slash or one.own == name]
            if listeners is None or (slash and listeners and not chosen):
                hint = near(gateway, self.gateways) if listeners is None else ""
                self.context.fault(Problem.REFERENCE, record, "gateways", f"unknown gateway reference {ref}{hint}")
            fitting = [one for one in chosen if one.carries_http != tcp]
            if listeners is not None and (chosen or not slash) and not fitting and not self.context.report.errors:
                message = f"gateway reference {ref} has no {kind} listeners"
                self.context.fault(Problem.REFERENCE, record, "gateways", message)
            found |= {one.key: one for one in fitting}
        return list(found.values())
