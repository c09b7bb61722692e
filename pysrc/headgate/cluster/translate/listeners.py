"""Listeners of a Gateway and of its ListenerSets: which can be served, and what is wrong with the others.

https://gateway-api.sigs.k8s.io/reference/spec/#listener
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from headgate.cluster.snapshot import (
    GATEWAY,
    GATEWAY_API,
    GATEWAY_MODEL,
    LISTENER_SET,
    GroupKind,
    ObjectKey,
    Snapshot,
    key_of,
    kind_of,
)
from headgate.cluster.translate.certificates import server_pair
from headgate.cluster.translate.conditions import Condition, Unmet, fails, holds, judged
from headgate.cluster.translate.fragments import Json
from headgate.cluster.translate.gateway_tls import client_trust

# Ports of the gateway's own servers.
# Certificates beside the first, as the file has them.
MOST_MORE: Final = 63
RESERVED: Final = (15_000, 15_020, 15_021)
# Which kinds of routes a protocol can serve. What is behind TLS that ends here may be any bytes.
KINDS: Final[dict[str, tuple[str, ...]]] = {
    "HTTP": ("HTTPRoute", "GRPCRoute"),
    "HTTPS": ("HTTPRoute", "GRPCRoute"),
    "TLS": ("TLSRoute", "TCPRoute"),
    "TCP": ("TCPRoute",),
}
_PASSED_ON: Final = ("TLSRoute",)
_OF_REQUESTS: Final = ("HTTP", "HTTPS")
# Listeners of one port are told apart by what a client shows first: the name in the TLS handshake or in the request.
_SHARING: Final = {"HTTPS": "TLS", "TLS": "TLS"}


@dataclass(slots=True)
class ListenerState:
    """A listener while it is looked at. `refused`: why it is not accepted. `unresolved`: references that lead nowhere.

    `holder`: the kind and key of the Gateway or ListenerSet that it stands in. `tls`: the file's `tls`, when it has a
    certificate. `attached` counts routes.
    """

    spec: Json
    holder: tuple[GroupKind, ObjectKey] = (GATEWAY, ObjectKey("", ""))
    refused: Unmet | None = None
    conflict: Unmet | None = None
    unresolved: list[Unmet] = field(default_factory=list)
    supported: tuple[GroupKind, ...] = ()
    tls: Json | None = None
    # It is counted when the rest is known, and says nothing about the listener itself.
    attached: int = field(default=0, compare=False)

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def title(self) -> str:
        """The name among all listeners of the Gateway, which has a slash if it is from a ListenerSet."""
        kind, key = self.holder
        return f"{key}/{self.name}" if kind == LISTENER_SET else self.name

    @property
    def namespace(self) -> str:
        return self.holder[1].namespace

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
        """Whether TLS ends here; if it does not, it is passed on."""
        mode = (self.spec.get("tls") or {}).get("mode", "Terminate")
        return self.protocol == "HTTPS" or (self.protocol == "TLS" and mode == "Terminate")

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
            reason = "Invalid" if self.conflict is None else wrong.reason
            found.append(Condition("Programmed", False, reason, wrong.message))
        elif not self.served:
            found.append(Condition("Programmed", False, "Invalid", "Bad TLS configuration"))
        return found


def listeners(snapshot: Snapshot, gateway: Json, sets: Iterable[Json] = ()) -> list[ListenerState]:
    """Return the listeners of a Gateway and of the ListenerSets that it takes, in this order: of two that cannot be
    told apart the earlier one is served."""
    found = [
        ListenerState(spec, (kind_of(holder), key_of(holder)))
        for holder in (gateway, *sets)
        for spec in holder["spec"].get("listeners") or ()
    ]
    for one in found:
        _protocol(one)
        if one.refused is None:
            _kinds(one)
            _certificates(snapshot, one)
            _clients(snapshot, gateway, one)
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
    passes = listener.protocol == "TLS" and not listener.terminates
    able = [GroupKind(GATEWAY_API, kind) for kind in (_PASSED_ON if passes else KINDS[listener.protocol])]
    asked = (listener.spec.get("allowedRoutes") or {}).get("kinds")
    if not asked:
        listener.supported = tuple(able)
        return
    wanted = [GroupKind(one.get("group", GATEWAY_API), one["kind"]) for one in asked]
    if listener.protocol in _OF_REQUESTS:
        # Whoever does not ask for models has none: they bring paths of their own.
        able.append(GATEWAY_MODEL)
    listener.supported = tuple(dict.fromkeys(one for one in wanted if one in able))
    for one in wanted:
        if one not in able:
            message = f"routes of kind {one.kind} cannot be served by a listener of protocol {listener.protocol}"
            listener.unresolved.append(Unmet("InvalidRouteKinds", message))


def _certificates(snapshot: Snapshot, listener: ListenerState) -> None:
    """Find the certificates of a listener that ends TLS. Of those that can be used the first is shown where no other
    has the name that a client asks for."""
    if not listener.terminates:
        return
    references = (listener.spec.get("tls") or {}).get("certificateRefs") or ()
    if not references:
        listener.unresolved.append(Unmet("InvalidCertificateRef", "tls.certificateRefs has no certificate"))
    for reference in references:
        pair = server_pair(snapshot, listener.namespace, reference, listener.holder[0])
        if isinstance(pair, Unmet):
            listener.unresolved.append(pair)
        elif listener.tls is None:
            listener.tls = pair
        elif not any(pair.items() <= one.items() for one in (listener.tls, *listener.tls.get("moreCertificates", ()))):
            more = [*listener.tls.get("moreCertificates", ()), pair]
            listener.tls = listener.tls | {"moreCertificates": more[:MOST_MORE]}


def _clients(snapshot: Snapshot, gateway: Json, listener: ListenerState) -> None:
    """Find whose certificates clients of HTTPS need. Without any authority the listener is not accepted: it would be
    open to all.
    """
    trust = client_trust(snapshot, gateway, listener.port) if listener.protocol == "HTTPS" else None
    if trust is None:
        return
    listener.unresolved += trust.unmet
    if trust.form is None:
        listener.refused = Unmet("NoValidCACertificate", "no reference of caCertificateRefs leads to an authority")
    elif listener.tls is not None:
        listener.tls = listener.tls | trust.form


def _conflicts(found: list[ListenerState]) -> None:
    """Mark listeners that cannot be told from an earlier one of their port."""
    by_port: dict[int, list[ListenerState]] = {}
    for one in found:
        if one.refused is not None:
            continue
        earlier = by_port.setdefault(one.port, [])
        if earlier and _family(earlier[0]) != _family(one):
            message = f"port {one.port} has protocol {earlier[0].protocol} already{_told(earlier[0], one)}"
            one.conflict = Unmet("ProtocolConflict", message)
            continue
        same = next((other for other in earlier if other.hostname == one.hostname), None)
        if same is not None:
            name = one.hostname or "no host name"
            message = f"port {one.port} has a listener with {name} already{_told(same, one)}"
            one.conflict = Unmet("HostnameConflict", message)
            continue
        earlier.append(one)


def _family(listener: ListenerState) -> str:
    return _SHARING.get(listener.protocol, listener.protocol)


def _told(other: ListenerState, to: ListenerState) -> str:
    """Return which listener it is, unless that would tell one team of the objects of another."""
    return f" (listener {other.name})" if other.namespace == to.namespace else ""


def fragment_value(listener: ListenerState, namespace: str) -> dict[str, Any]:
    """Return the listener as the file has it, without routes. `namespace`: that of the Gateway."""
    found: dict[str, Any] = {"name": listener.title, "namespace": namespace, "protocol": listener.protocol}
    if listener.hostname:
        found["hostname"] = listener.hostname
    if listener.tls is not None:
        found["tls"] = listener.tls
    return found
