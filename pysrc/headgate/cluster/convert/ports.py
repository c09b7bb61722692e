"""Ports of a file in one form: `binds`, `gateways` and the ports that sections open for themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from headgate.cluster.convert.losses import Losses
from headgate.cluster.convert.said import SaidMap
from headgate.config.standalone import MCP_PORT

DEFAULT: Final = "default"
_HTTP: Final = ("HTTP", "HTTPS")


@dataclass
class FilePort:
    """A listener of the file. `section`: the entry of `gateways` that it stands in, `own` its name there. `routes` and
    `tcp_routes` are those that it serves, in their order."""

    name: str
    port: int
    said: SaidMap
    section: str = ""
    own: str = ""
    routes: list[SaidMap] = field(default_factory=list)
    tcp_routes: list[SaidMap] = field(default_factory=list)
    object_name: str = ""

    @property
    def protocol(self) -> str:
        return str(self.said.get("protocol") or ("HTTPS" if "tls" in self.said else "HTTP"))

    @property
    def hostname(self) -> str:
        name = str(self.said.get("hostname") or "").lower()
        return "" if name == "*" else name

    @property
    def names(self) -> tuple[str, ...]:
        """The names under which a policy may target it."""
        return (self.name, *((self.section, f"{self.section}/{self.own}") if self.section else ()))


def ports(root: SaidMap, losses: Losses) -> list[FilePort]:
    """Return the listeners of a file with their routes. What has no form is noted."""
    found = [*_of_binds(root, losses), *_of_gateways(root)]
    mcp = root.get("mcp")
    own = None
    if mcp is not None and ("port" in mcp or not _chosen(found, mcp, tcp=False)):
        own = FilePort("mcp", mcp.get("port", MCP_PORT), SaidMap("", mcp.path, mcp.line))
    for kind in ("routes", "tcpRoutes"):
        for one in root.maps(kind):
            for port in _chosen(found, one, tcp=kind == "tcpRoutes"):
                (port.tcp_routes if kind == "tcpRoutes" else port.routes).append(one)
    if mcp is not None:
        route = _mcp_route(mcp, alone=own is not None)
        for port in [own] if own is not None else _chosen(found, mcp, tcp=False):
            port.routes.append(route)
    return [*found, *([own] if own is not None else ())]


def _of_binds(root: SaidMap, losses: Losses) -> Iterator[FilePort]:
    for bind in root.maps("binds"):
        for name, plain in (("mode", "standard"), ("tunnelProtocol", "direct")):
            if bind.get(name, plain) != plain:
                losses.add(bind, name)
                break
        else:
            for index, one in enumerate(bind["listeners"]):
                port = FilePort(one.get("name") or f"listener{index}", bind["port"], one)
                port.routes += one.maps("routes")
                port.tcp_routes += one.maps("tcpRoutes")
                yield port


def _of_gateways(root: SaidMap) -> Iterator[FilePort]:
    for name, gateway in (root.get("gateways") or {}).items():
        entries = gateway.maps("listeners")
        for index, one in enumerate(entries or [gateway]):
            own = one.get("name") if entries else None
            own = own if own is not None else f"listener{index}"
            yield FilePort(own if entries else name, gateway["port"], one, section=name, own=own)


def _chosen(found: list[FilePort], value: SaidMap, *, tcp: bool) -> list[FilePort]:
    """Return the listeners that `gateways` of a value names, else those of the gateway `default`."""
    names: Any = value.get("gateways") or [DEFAULT]
    chosen: dict[int, FilePort] = {}
    for name in [names] if isinstance(names, str) else names:
        gateway, slash, own = name.partition("/")
        for one in found:
            if one.section == gateway and (not slash or one.own == own) and (one.protocol in _HTTP) != tcp:
                chosen[id(one)] = one
    return list(chosen.values())


def _mcp_route(value: SaidMap, *, alone: bool) -> SaidMap:
    """Return the route that the section `mcp` stands for."""
    route = SaidMap("Route", value.path, value.line)
    route["name"] = "mcp"
    if not alone:
        route["matches"] = [_match(value, path) for path in ("/mcp", "/sse", "/.well-known")]
    backend = SaidMap("RouteBackend", value.path, value.line)
    backend["mcp"] = value
    route["backends"] = [backend]
    if "policies" in value:
        route["policies"] = value["policies"]
        route.lines["policies"] = value.lines["policies"]
    return route


def _match(value: SaidMap, path: str) -> SaidMap:
    found = SaidMap("RouteMatch", value.path, value.line)
    found["path"] = {"pathPrefix": path}
    return found
