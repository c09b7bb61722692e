"""A Gateway with all that belongs to it: fragments of the file's model, and statuses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from headgate.cluster.snapshot import (
    GATEWAY,
    GATEWAY_CLASS,
    GATEWAY_MODEL,
    GRPC_ROUTE,
    HTTP_ROUTE,
    TCP_ROUTE,
    TLS_ROUTE,
    ObjectKey,
    Snapshot,
    generation,
    key_of,
    kind_of,
)
from headgate.cluster.translate.attached_models import attach_models
from headgate.cluster.translate.claims import Claims
from headgate.cluster.translate.conditions import Condition, ObjectStatus, Unmet, fails, holds, judged
from headgate.cluster.translate.deployed import Placed, observed, undeployed
from headgate.cluster.translate.filters import Delegated
from headgate.cluster.translate.fragments import Fragment, Json
from headgate.cluster.translate.gateway_tls import conditions, own_certificate
from headgate.cluster.translate.grpc_routes import grpc_route
from headgate.cluster.translate.http_routes import http_route
from headgate.cluster.translate.inference_pools import pickers, pools_named
from headgate.cluster.translate.listener_sets import accepted_by, refused, taken
from headgate.cluster.translate.listener_sets import status as set_status
from headgate.cluster.translate.listeners import ListenerState, fragment_value, listeners
from headgate.cluster.translate.parents import Attachment, attachments, gateway_named
from headgate.cluster.translate.routes import RouteResult
from headgate.cluster.translate.stream_routes import tcp_route, tls_route

CONTROLLER: Final = "headgate.dev/headgate"
_ACCEPTED: Final = "Successfully accepted Route"
_TRANSLATORS: Final = {HTTP_ROUTE: http_route, GRPC_ROUTE: grpc_route, TLS_ROUTE: tls_route, TCP_ROUTE: tcp_route}


class Acknowledged(NamedTuple):
    """What data planes have said. `generation`: of the Gateway, in the newest state that all of them have taken.

    `rejection`: why one of them could not take what came after it; "" if none has.
    """

    generation: int = -1
    rejection: str = ""


@dataclass(frozen=True, slots=True)
class GatewayTranslation:
    """`statuses`: of the Gateway and of the ListenerSets for it. `parents`: by route the entries of its status that are
    about this Gateway. `used`, `backends` and `pools`: Services, GatewayBackends and InferencePools behind it.
    `certificate`: what it shows to its backends, None if it has none."""

    fragments: tuple[Fragment, ...]
    statuses: list[ObjectStatus]
    parents: dict[tuple[str, ObjectKey], list[Json]]
    used: frozenset[ObjectKey]
    backends: frozenset[ObjectKey]
    pools: frozenset[ObjectKey]
    certificate: Json | None = None


def is_own(snapshot: Snapshot, gateway: Json) -> bool:
    """Tell whether the class of a Gateway names this controller."""
    found = snapshot.find(GATEWAY_CLASS, "", gateway["spec"]["gatewayClassName"])
    return found is not None and found["spec"]["controllerName"] == CONTROLLER


def translate(
    snapshot: Snapshot,
    gateway: Json,
    sets: list[Json],
    routes: list[Json],
    acknowledged: Acknowledged,
    deployed: Placed | None = None,
) -> GatewayTranslation:
    """Return what a Gateway comes to. `sets` and `routes`: ListenerSets and routes that name it, the oldest first."""
    key, takes = key_of(gateway), [one for one in sets if taken(snapshot, gateway, one)]
    # The same objects as before where nothing about them has changed, so that routes compare them by identity.
    known = snapshot.remembered("listeners", listeners, gateway, takes)
    for one in known:
        one.attached = 0
    found = _Routed(snapshot, key, known)
    for route in routes:
        found.add(route)
    found.add_models()
    certificate = own_certificate(snapshot, gateway)
    statuses = [refused(gateway, one) for one in sets if one not in takes]
    statuses += _statuses(gateway, takes, known, acknowledged, certificate, deployed)
    fragments = (*_listeners(key, known), *found.fragments)
    found.used |= pickers(snapshot, found.pools)
    return GatewayTranslation(
        fragments,
        statuses,
        found.parents,
        frozenset(found.used),
        frozenset(found.backends),
        frozenset(found.pools),
        None if isinstance(certificate, Unmet) else certificate,
    )


class _Routed:
    """The routes of a Gateway, from the oldest to the newest."""

    def __init__(self, snapshot: Snapshot, gateway: ObjectKey, known: list[ListenerState]) -> None:
        self._snapshot = snapshot
        self._gateway = gateway
        self._known = known
        self._places = {one.title: f"listener/{gateway}.{one.title}" for one in known}
        self._claims = Claims()
        self._found: dict[str, Fragment] = {}
        self.used: set[ObjectKey] = set()
        self.backends: set[ObjectKey] = set()
        self.pools: set[ObjectKey] = set()
        self.parents: dict[tuple[str, ObjectKey], list[Json]] = {}
        # HTTPRoutes that are served, which models may be attached to.
        self._served: dict[ObjectKey, Json] = {}

    @property
    def fragments(self) -> Iterable[Fragment]:
        return self._found.values()

    def add(self, route: Json) -> None:
        snapshot = self._snapshot
        about, key = kind_of(route), key_of(route)
        entries: list[Json] = []
        counted: set[str] = set()
        # A listener that two parentRefs name has the route once.
        found: dict[str, Fragment] = {}
        for index, reference in enumerate(route["spec"].get("parentRefs") or ()):
            attached = snapshot.remembered(
                ("at", about, key, index), _attached, route, reference, self._gateway, self._known
            )
            if attached is None:
                continue
            if not isinstance(attached, Unmet):
                attached = self._claims.left(route, attached)
            usable: list[Attachment] = [] if isinstance(attached, Unmet) else attached
            result, entry = snapshot.remembered(
                ("route", about, key, index), _at_parent, route, reference, attached, self._places
            )
            counted |= {one.listener.title for one in usable}
            if _some_rule_holds(route, result):
                self._claims.hold(route, usable)
            found.update((one.key, one) for one in result.fragments)
            self._hand_on(result.delegated)
            self.used |= set(result.used)
            self.backends |= set(result.backends)
            entries.append(entry)
        if counted:
            self.pools |= pools_named(snapshot, route)
            if about == HTTP_ROUTE:
                self._served[key] = route
        for one in self._known:
            one.attached += one.title in counted
        self._found |= found
        if entries:
            self.parents.setdefault((about.kind, key), []).extend(entries)

    def add_models(self) -> None:
        """Add the models of listeners and of the routes that were added."""
        made = attach_models(self._snapshot, self._gateway, self._known, self._served)
        self._found.update((one.key, one) for one in made.fragments)
        self.used |= made.used
        self.backends |= made.backends
        for key, entries in made.parents.items():
            about = self._snapshot.find(GATEWAY_MODEL, *key)
            assert about is not None
            self.parents[GATEWAY_MODEL.kind, key] = [
                {
                    "parentRef": dict(one.reference),
                    "controllerName": CONTROLLER,
                    "conditions": [each.printed(generation(about)) for each in one.conditions],
                }
                for one in entries
            ]

    def _hand_on(self, below: Iterable[Delegated]) -> None:
        """Note the routes that a route hands requests on to. They may be below several, and several times."""
        for one in below:
            self.pools |= pools_named(self._snapshot, one.route)
            self._served[key_of(one.route)] = one.route
            if one.reference is None:
                continue
            result = RouteResult(
                invalid={index: each.invalid for index, each in enumerate(one.filters) if each.invalid},
                unresolved=[unmet for each in one.filters for unmet in each.unresolved],
            )
            entries = self.parents.setdefault((HTTP_ROUTE.kind, key_of(one.route)), [])
            if all(entry["parentRef"] != one.reference for entry in entries):
                entries.append(_parent(one.route, one.reference, None, result))


def _attached(
    snapshot: Snapshot, route: Json, reference: Json, gateway: ObjectKey, known: list[ListenerState]
) -> list[Attachment] | Unmet | None:
    """Return where a route attaches by one parentRef; None if that leads to another Gateway."""
    if gateway_named(snapshot, route, reference) != gateway:
        return None
    return attachments(snapshot, route, reference, known)


def _at_parent(
    snapshot: Snapshot, route: Json, reference: Json, attached: list[Attachment] | Unmet, places: dict[str, str]
) -> tuple[RouteResult, Json]:
    """Return what a route comes to at one parent, and the entry of its status about that."""
    refused = attached if isinstance(attached, Unmet) else None
    usable = [] if isinstance(attached, Unmet) else attached
    result = _TRANSLATORS[kind_of(route)](snapshot, route, usable, places)
    return result, _parent(route, reference, refused, result)


def _listeners(key: ObjectKey, known: list[ListenerState]) -> Iterator[Fragment]:
    """Return a bind for each port that is opened, and the listeners there."""
    for port in dict.fromkeys(one.port for one in known if one.served):
        yield Fragment(key=f"bind/{port}/{key}", place="binds", value={"port": port}, order=(port,))
    for index, one in enumerate(known):
        if one.served:
            yield Fragment(
                key=f"listener/{key}.{one.title}",
                place="listeners",
                value=fragment_value(one, key.namespace),
                parent=f"bind/{one.port}/{key}",
                order=(index,),
            )


def _some_rule_holds(route: Json, result: RouteResult) -> bool:
    return not result.invalid or len(result.invalid) < len(route["spec"].get("rules") or ())


def _parent(route: Json, reference: Json, refused: Unmet | None, result: RouteResult) -> Json:
    """Return the entry of a route's status for one parentRef. Rules that are left out do not take the others away."""
    dropped = [one for refusals in result.invalid.values() for one in refusals]
    conditions = [holds("Accepted", "Accepted", _ACCEPTED)]
    if refused is not None:
        conditions = [fails("Accepted", refused)]
    elif not _some_rule_holds(route, result):
        conditions = [judged("Accepted", dropped, _ACCEPTED)]
    elif dropped:
        reason, message = judged("", dropped, "")[2:]
        rules = ", ".join(map(str, sorted(result.invalid)))
        # The beginning is fixed: https://gateway-api.sigs.k8s.io/geps/gep-1364/.
        conditions.append(Condition("PartiallyInvalid", True, reason, f"Dropped Rule(s) {rules}: {message}"))
    conditions.append(judged("ResolvedRefs", result.unresolved, "All references resolved"))
    return {
        "parentRef": dict(reference),
        "controllerName": CONTROLLER,
        "conditions": [one.printed(generation(route)) for one in conditions],
    }


def _statuses(
    gateway: Json,
    sets: list[Json],
    known: list[ListenerState],
    acknowledged: Acknowledged,
    certificate: Json | Unmet | None,
    deployed: Placed | None,
) -> Iterator[ObjectStatus]:
    """Return the statuses of the ListenerSets that the Gateway takes, and its own.

    Who waits for the Gateway's looks at those of its sets next: they are written in this order.
    """
    by_holder: dict[ObjectKey | None, list[ListenerState]] = {}
    for one in known:
        kind, key = one.holder
        by_holder.setdefault(None if kind == GATEWAY else key, []).append(one)
    accepted = _accepted(gateway, known)
    if deployed is not None and accepted.holds and deployed.condition == "Accepted" and deployed.refusal is not None:
        accepted = fails("Accepted", deployed.refusal)
    programmed = undeployed(deployed) if deployed is not None and accepted.holds else None
    programmed = programmed or _programmed(gateway, accepted, acknowledged)
    attached = {key_of(one): accepted_by(accepted, by_holder.get(key_of(one), [])) for one in sets}
    about = generation(gateway)
    content: dict[str, Any] = {
        "conditions": [
            accepted.printed(about),
            programmed.printed(observed(deployed, about)),
            *(one.printed(about) for one in conditions(gateway, certificate)),
        ],
        "listeners": [_listener_status(one, about, programmed) for one in by_holder.get(None, ())],
        "attachedListenerSets": sum(one.holds for one in attached.values()),
    }
    if deployed is not None:
        content["addresses"] = list(deployed.addresses)
    for found in sets:
        key = key_of(found)
        entries = [_listener_status(one, generation(found), programmed) for one in by_holder.get(key, ())]
        yield set_status(found, attached[key], programmed, entries)
    yield ObjectStatus(GATEWAY, key_of(gateway), content)


def _accepted(gateway: Json, known: list[ListenerState]) -> Condition:
    for address in gateway["spec"].get("addresses") or ():
        if address.get("type", "IPAddress") not in ("IPAddress", "Hostname"):
            return fails(
                "Accepted", Unmet("UnsupportedAddress", f"addresses of type {address['type']} are not supported")
            )
    bad = [one.title for one in known if not one.served and one.holder[0] == GATEWAY]
    if not bad:
        return holds("Accepted", "Accepted", "Successfully accepted Gateway")
    message = f"listeners with faults: {', '.join(bad)}"
    return Condition("Accepted", any(one.served for one in known), "ListenersNotValid", message)


def _programmed(gateway: Json, accepted: Condition, acknowledged: Acknowledged) -> Condition:
    """A Gateway is programmed when data planes have taken this generation, not when it was sent to them."""
    if not accepted.holds:
        return fails("Programmed", Unmet("Invalid", accepted.message))
    about = generation(gateway)
    if any(one.get("type") == "Hostname" for one in gateway["spec"].get("addresses") or ()):
        return fails("Programmed", Unmet("AddressNotUsable", "an address must be an IP address"))
    if acknowledged.rejection:
        return fails("Programmed", Unmet("Invalid", f"rejected by a data plane: {acknowledged.rejection}"))
    if acknowledged.generation < about:
        return fails("Programmed", Unmet("Pending", f"no data plane has acknowledged generation {about} yet"))
    return holds("Programmed", "Programmed", "Successfully programmed Gateway")


def _listener_status(listener: ListenerState, about: int, programmed: Condition) -> dict[str, Any]:
    conditions = listener.conditions()
    if listener.served:
        message = "Listener programmed" if programmed.holds else programmed.message
        conditions.append(programmed._replace(message=message))
    return {
        "name": listener.name,
        "attachedRoutes": listener.attached,
        "supportedKinds": [{"group": one.group, "kind": one.kind} for one in listener.supported],
        "conditions": [one.printed(about) for one in conditions],
    }
