"""Listeners of a Gateway: which of them can be served, and what is wrong with the others.

https://gateway-api.sigs.k8s.io/reference/spec/#listener
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from headgate.cluster.snapshot import GATEWAY_API, GroupKind, Snapshot, key_of
from headgate.cluster.translate.certificates import server_pair
from headgate.cluster.translate.conditions import Condition, Unmet, fails, holds, judged
from headgate.cluster.translate.fragments import Json

# Ports of the gateway's own servers.
RESERVED: Final = (15_000, 15_020, 15_021)
# Which kinds of routes a protocol can serve; of other protocols and kinds none is translated yet.
KINDS: Final[dict[str, tuple[str, ...]]] = {
    "HTTP": ("HTTPRoute", "GRPCRoute"),
    "HTTPS": ("HTTPRoute", "GRPCRoute"),
}


@dataclass(slots=True)
class ListenerState:
    """A listener while it is looked at. `refused`: why it is not accepted. `unresolved`: references that lead nowhere.

    `tls`: the file's `tls`, when it has a certificate. `attached` counts routes.
    """

    spec: Json
    refused: Unmet | None = None
    conflict: Unmet | None = None
    unresolved: list[Unmet] = field(default_factory=list)
    supported: tuple[GroupKind, ...] = ()
    tls: Json | None = None
    attached: int = 0

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def port(self) -> int:
        return int(self.spec["port"])

    @property
    def protocol(self) -> str:
        return str(self.spec["protocol"])

    @property
    def hostname(self) -> str:
        return str(self.spec.get("hostname") or "").lower()

    @property
    def terminates(self) -> bool:
        return self.protocol == "HTTPS"

    @property
    def accepted(self) -> bool:
        return self.refused is None and self.conflict is None

    @property
    def served(self) -> bool:
        """Whether it can be opened: what ends TLS needs its certificate."""
        return self.accepted and (not self.terminates or self.tls is not None)

    def conditions(self) -> list[Condition]:
        wrong = self.conflict or self.refused
        found = [holds("Accepted", "Accepted", "Listener accepted") if wrong is None else fails("Accepted", wrong)]
        if self.conflict is not None:
            found.append(Condition("Conflicted", True, *self.conflict))
        else:
            found.append(Condition("Conflicted", False, "NoConflicts", "No conflicts"))
        found.append(judged("ResolvedRefs", self.unresolved, "All references resolved"))
        if wrong is not None:
            found.append(Condition("Programmed", False, "Invalid", wrong.message))
        elif not self.served:
            found.append(Condition("Programmed", False, "Invalid", "Bad TLS configuration"))
        return found


def listeners(snapshot: Snapshot, gateway: Json) -> list[ListenerState]:
    """Return the listeners of a Gateway in their order."""
    found = [ListenerState(spec) for spec in gateway["spec"].get("listeners") or ()]
    for one in found:
        _protocol(one)
        if one.refused is None:
            _kinds(one)
            _certificates(snapshot, key_of(gateway).namespace, one)
    _conflicts(found)
    return found


def _protocol(listener: ListenerState) -> None:
    if listener.protocol not in KINDS:
        message = f"protocol {listener.protocol} is not supported"
        listener.refused = Unmet("UnsupportedProtocol", message)
    elif listener.port in RESERVED:
        message = f"port {listener.port} is reserved for the gateway's own servers"
        listener.refused = Unmet("UnsupportedProtocol", message)


def _kinds(listener: ListenerState) -> None:
    """Find the kinds of routes that are both possible and allowed."""
    able = [GroupKind(GATEWAY_API, kind) for kind in KINDS[listener.protocol]]
    asked = (listener.spec.get("allowedRoutes") or {}).get("kinds")
    if not asked:
        listener.supported = tuple(able)
        return
    wanted = [GroupKind(one.get("group", GATEWAY_API), one["kind"]) for one in asked]
    listener.supported = tuple(dict.fromkeys(one for one in wanted if one in able))
    for one in wanted:
        if one not in able:
            message = f"routes of kind {one.kind} cannot be served by a listener of protocol {listener.protocol}"
            listener.unresolved.append(Unmet("InvalidRouteKinds", message))


def _certificates(snapshot: Snapshot, namespace: str, listener: ListenerState) -> None:
    """Find the certificate of a listener that ends TLS: the first that can be used."""
    if not listener.terminates:
        return
    references = (listener.spec.get("tls") or {}).get("certificateRefs") or ()
    if not references:
        listener.unresolved.append(Unmet("InvalidCertificateRef", "tls.certificateRefs has no certificate"))
    for reference in references:
        pair = server_pair(snapshot, namespace, reference)
        if isinstance(pair, Unmet):
            listener.unresolved.append(pair)
        elif listener.tls is None:
            listener.tls = pair


def _conflicts(found: list[ListenerState]) -> None:
    """Mark listeners that cannot be told from an earlier one of their port."""
    by_port: dict[int, list[ListenerState]] = {}
    for one in found:
        if one.refused is not None:
            continue
        earlier = by_port.setdefault(one.port, [])
        if earlier and earlier[0].protocol != one.protocol:
            message = f"port {one.port} has protocol {earlier[0].protocol} already (listener {earlier[0].name})"
            one.conflict = Unmet("ProtocolConflict", message)
            continue
        same = next((other for other in earlier if other.hostname == one.hostname), None)
        if same is not None:
            name = one.hostname or "no host name"
            message = f"port {one.port} has a listener with {name} already (listener {same.name})"
            one.conflict = Unmet("HostnameConflict", message)
            continue
        earlier.append(one)


def fragment_value(listener: ListenerState, namespace: str) -> dict[str, Any]:
    """Return the listener as the file has it, without routes."""
    found: dict[str, Any] = {"name": listener.name, "namespace": namespace, "protocol": listener.protocol}
    if listener.hostname:
        found["hostname"] = listener.hostname
    if listener.tls is not None:
        found["tls"] = listener.tls
    return found
