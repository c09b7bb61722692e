"""Ports of a file in one form: `binds`, `gateways` and the ports that sections open for themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from headgate.cluster.convert.losses import Losses
from headgate.cluster.convert.said import SaidMap
from headgate.config.standalone import LLM_PORT, MCP_PORT

DEFAULT: Final = "default"
_HTTP: Final = ("HTTP", "HTTPS")
# Sections that are an endpoint, with their usual ports.
_SECTIONS: Final = {"llm": LLM_PORT, "mcp": MCP_PORT}


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
    """Return the listeners of a file with their routes. Losses are collected."""
    found = [*_of_binds(root, losses), *_of_gateways(root)]
    own = {
        name: _own(root[name], name, usual)
        for name, usual in _SECTIONS.items()
        if name in root and (root[name].keys() & {"port", "tls"} or not _chosen(found, root[name], tcp=False))
    }
    for kind in ("routes", "tcpRoutes"):
        for one in root.maps(kind):
            for port in _chosen(found, one, tcp=kind == "tcpRoutes"):
                (port.tcp_routes if kind == "tcpRoutes" else port.routes).append(one)
    for name in _SECTIONS:
        if name in root:
            route = _section_route(root[name], name, alone=name in own)
            for port in [own[name]] if name in own else _chosen(found, root[name], tcp=False):
                port.routes.append(route)
    return [*found, *own.values()]


def _own(value: SaidMap, name: str, usual: int) -> FilePort:
    """Return the port that a section opens for itself."""
    said = SaidMap("", value.path, value.line)
    if "tls" in value:
        said["tls"], said.lines["tls"] = value["tls"], value.lines["tls"]
    return FilePort(name, value.get("port", usual), said)


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


def _section_route(value: SaidMap, name: str, *, alone: bool) -> SaidMap:
    """Return the route that a section stands for. `alone`: it has a port of its own."""
    route = SaidMap("Route", value.path, value.line)
    route["name"] = name
    if name == "mcp" and not alone:
        route["matches"] = [_match(value, path) for path in ("/mcp", "/sse", "/.well-known")]
    backend = SaidMap("RouteBackend", value.path, value.line)
    backend[name] = value
    route["backends"] = [backend]
    if "policies" in value:
        route["policies"] = value["policies"]
        route.lines["policies"] = value.lines["policies"]
    return route


def _match(value: SaidMap, path: str) -> SaidMap:
    found = SaidMap("RouteMatch", value.path, value.line)
    found["path"] = {"pathPrefix": path}
    return found
