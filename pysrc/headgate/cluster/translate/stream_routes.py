"""TLSRoutes and TCPRoutes as `tcpRoutes` of the file: connections whose bytes go to a backend as they come.

https://gateway-api.sigs.k8s.io/reference/spec/#tlsroute
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headgate.cluster.snapshot import GATEWAY_BACKEND, Snapshot, key_of, seniority
from headgate.cluster.translate.backends import Target, nowhere, target
from headgate.cluster.translate.checked import faults_of_tcp_route
from headgate.cluster.translate.conditions import Unmet
from headgate.cluster.translate.fragments import Fragment, Json
from headgate.cluster.translate.gateway_backends import named, translate_backend
from headgate.cluster.translate.parents import Attachment
from headgate.cluster.translate.routes import RouteResult


def tls_route(snapshot: Snapshot, route: Json, attachments: list[Attachment], places: dict[str, str]) -> RouteResult:
    """Return the routes of the file for a TLSRoute, as `translated` of other kinds does."""
    return _translated(snapshot, route, "tls", attachments, places)


def tcp_route(snapshot: Snapshot, route: Json, attachments: list[Attachment], places: dict[str, str]) -> RouteResult:
    """Return the routes of the file for a TCPRoute, as `translated` of other kinds does."""
    return _translated(snapshot, route, "tcp", attachments, places)


def _translated(
    snapshot: Snapshot, route: Json, mark: str, attachments: list[Attachment], places: dict[str, str]
) -> RouteResult:
    result = RouteResult()
    key = key_of(route)
    for index, rule in enumerate(route["spec"].get("rules") or ()):
        if index:
            message = "nothing tells connections of one rule from those of another: the first rule has them all"
            result.invalid[index] = [Unmet("UnsupportedValue", message)]
            continue
        value: dict[str, Any] = {"name": f"{mark}/{key.name}", "namespace": key.namespace}
        if rule.get("name"):
            value["ruleName"] = rule["name"]
        value["backends"] = list(_backends(snapshot, route, rule, result))
        for one in attachments:
            if not one.listener.served:
                continue
            hostnames = {"hostnames": list(one.hostnames)} if one.hostnames else {}
            fragment = Fragment(
                key=f"route/{key}.{index:02d}.{mark}.{one.listener.title}",
                place="tcpRoutes",
                value=value | hostnames,
                parent=places[one.listener.title],
                order=(*seniority(route), index),
            )
            result.fragments.append(fragment)
    return result


def _backends(snapshot: Snapshot, route: Json, rule: Json, result: RouteResult) -> Iterator[dict[str, Any]]:
    for reference in rule.get("backendRefs") or ():
        reached = target(snapshot, route, reference)
        if isinstance(reached, Target):
            reached = _of_bytes(snapshot, reached)
        weight = {"weight": reference.get("weight", 1)}
        if isinstance(reached, Unmet):
            result.unresolved.append(reached)
            yield weight | nowhere(route, reference)
            continue
        if reached.service is not None:
            result.used.append(reached.service)
        if reached.backend is not None:
            result.backends.append(reached.backend)
        yield weight | reached.form


def _of_bytes(snapshot: Snapshot, reached: Target) -> Target | Unmet:
    """Return a destination, or why it takes no bytes as they come."""
    if reached.service is not None:
        return reached
    if reached.backend is None:
        return Unmet("InvalidKind", "an InferencePool takes requests alone, no connections")
    found = snapshot.find(GATEWAY_BACKEND, *reached.backend)
    made = None if found is None else translate_backend(snapshot, found)
    about = f"GatewayBackend {reached.backend}"
    if made is None or isinstance(made, Unmet) or not made.form.keys() & {"host", "dynamic"}:
        return Unmet("UnsupportedValue", f"{about} is no host that connections could be sent to")
    known = [one.value for one in named(snapshot, {reached.backend})]
    if wrong := faults_of_tcp_route({"backends": [reached.form]}, known):
        return Unmet("UnsupportedValue", f"{about}: {'; '.join(wrong)}")
    return reached
