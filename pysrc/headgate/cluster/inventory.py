"""What is in force in a cluster, and why not: Gateways, routes, backends and policies by what their statuses say.

Objects are only read. https://gateway-api.sigs.k8s.io/guides/troubleshooting/
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from headgate.cluster.api import ApiRefused, ApiServer
from headgate.cluster.snapshot import GATEWAY_API, OWN, ObjectKey, generation, key_of

Json = dict[str, Any]
# Objects of one page of a list.
_PAGE: Final = 500
_NOT_FOUND: Final = 404
_UNSEEN: Final = "no controller has said anything about it"


class ObservedKind(NamedTuple):
    """A kind with its group, and its versions from the newest one."""

    group: str
    versions: tuple[str, ...]
    plural: str


KINDS: Final = {
    "Gateway": ObservedKind(GATEWAY_API, ("v1",), "gateways"),
    "HTTPRoute": ObservedKind(GATEWAY_API, ("v1",), "httproutes"),
    "GRPCRoute": ObservedKind(GATEWAY_API, ("v1",), "grpcroutes"),
    "TLSRoute": ObservedKind(GATEWAY_API, ("v1", "v1alpha3"), "tlsroutes"),
    "TCPRoute": ObservedKind(GATEWAY_API, ("v1", "v1alpha2"), "tcproutes"),
    "BackendTLSPolicy": ObservedKind(GATEWAY_API, ("v1",), "backendtlspolicies"),
    "GatewayBackend": ObservedKind(OWN, ("v1alpha1",), "gatewaybackends"),
    "GatewayPolicy": ObservedKind(OWN, ("v1alpha1",), "gatewaypolicies"),
}
ROUTES: Final = ("HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute")


class Verdict(NamedTuple):
    """`in_force`: yes, partly or no; `why` it is not, in the controller's words."""

    in_force: str
    why: str = ""


def listed(api: ApiServer, kind: str, namespace: str | None) -> list[Json]:
    """Return all objects of a kind, of one namespace unless that is None; none where the cluster has no such kind.

    Raises ClusterError.
    """
    group, versions, plural = KINDS[kind]
    inside = "" if namespace is None else f"/namespaces/{namespace}"
    for version in versions:
        try:
            found = list(_pages(api, f"/apis/{group}/{version}{inside}/{plural}"))
        except ApiRefused as error:
            if error.status != _NOT_FOUND:
                raise
            continue
        return [{**one, "kind": kind} for one in found]
    return []


def _pages(api: ApiServer, path: str) -> Iterator[Json]:
    query = {"limit": str(_PAGE)}
    while True:
        page = api.get(path, query)
        yield from page.get("items") or ()
        more = (page.get("metadata") or {}).get("continue")
        if not more:
            return
        query = {"limit": str(_PAGE), "continue": more}


def gateway_rows(gateways: Iterable[Json]) -> Iterator[Json]:
    """Yield a row for each Gateway. `acknowledged`: the generation that its data planes have taken, None before."""
    for one in gateways:
        verdict = _of_gateway(one)
        status = one.get("status") or {}
        programmed = _condition(status.get("conditions"), "Programmed")
        taken = programmed is not None and programmed["status"] == "True"
        yield {
            **_named(one),
            "class": one["spec"]["gatewayClassName"],
            "addresses": [each["value"] for each in status.get("addresses") or ()],
            "generation": generation(one),
            "acknowledged": programmed.get("observedGeneration", 0) if programmed is not None and taken else None,
            "inForce": verdict.in_force,
            "why": verdict.why,
            "listeners": list(_listeners(one)),
        }


def _listeners(gateway: Json) -> Iterator[Json]:
    told = {one["name"]: one for one in (gateway.get("status") or {}).get("listeners") or ()}
    for one in gateway["spec"].get("listeners") or ():
        status = told.get(one["name"], {})
        conflict = _condition(status.get("conditions"), "Conflicted")
        verdict = _judged(status.get("conditions"), ("Accepted", "ResolvedRefs", "Programmed"), generation(gateway))
        if conflict is not None and conflict["status"] == "True":
            verdict = Verdict("no", f"conflict: {conflict['message']}")
        yield {
            "name": one["name"],
            "port": one["port"],
            "protocol": one["protocol"],
            "routes": status.get("attachedRoutes", 0),
            "inForce": verdict.in_force,
            "why": verdict.why,
        }


def _of_gateway(gateway: Json) -> Verdict:
    return _judged((gateway.get("status") or {}).get("conditions"), ("Accepted", "Programmed"), generation(gateway))


def route_rows(routes: Iterable[Json], gateways: Iterable[Json]) -> Iterator[Json]:
    """Yield a row for each route and what it names as its parent. It is in force where its Gateway is programmed."""
    known = {key_of(one): _of_gateway(one) for one in gateways}
    for one in routes:
        told = [each for each in (one.get("status") or {}).get("parents") or ()]
        for reference in one["spec"].get("parentRefs") or ():
            entry = next((each for each in told if _same(each["parentRef"], reference)), None)
            verdict = Verdict("no", _UNSEEN)
            if entry is not None:
                verdict = _judged(entry["conditions"], ("Accepted", "ResolvedRefs"), generation(one))
            key = ObjectKey(reference.get("namespace") or key_of(one).namespace, reference["name"])
            kind = reference.get("kind", "Gateway")
            above = known.get(key) if kind == "Gateway" else None
            if verdict.in_force != "no" and above is not None and above.in_force == "no":
                verdict = Verdict("no", f"Gateway {key}: {above.why}")
            section = f"/{reference['sectionName']}" if reference.get("sectionName") else ""
            hostnames = list(one["spec"].get("hostnames") or ())
            parent = f"{kind} {key}{section}"
            yield _row(one, verdict, kind=one["kind"], hostnames=hostnames, parent=parent)


def _same(one: Json, other: Json) -> bool:
    names = ("name", "namespace", "sectionName", "port")
    return all(one.get(name) == other.get(name) for name in names) and one.get("kind", "Gateway") == other.get(
        "kind", "Gateway"
    )


def backend_rows(backends: Iterable[Json], routes: Iterable[Json]) -> Iterator[Json]:
    """Yield a row for each GatewayBackend, with the routes that lead to it."""
    users: dict[ObjectKey, list[str]] = {}
    for route in routes:
        for reference in _references(route["spec"].get("rules")):
            if reference.get("kind") == "GatewayBackend":
                key = ObjectKey(reference.get("namespace") or key_of(route).namespace, reference["name"])
                users.setdefault(key, []).append(f"{route['kind']} {key_of(route)}")
    for one in backends:
        verdict = _judged((one.get("status") or {}).get("conditions"), ("Accepted",), generation(one))
        type_ = next((name for name in one["spec"] if name != "policies"), "")
        used = list(dict.fromkeys(users.get(key_of(one), ())))
        yield _row(one, verdict, type=type_, usedBy=used)


def _references(value: Any) -> Iterator[Json]:
    """Yield what rules lead to, and what their filters call."""
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _references(one)
    if isinstance(value, dict):
        yield from value.get("backendRefs") or ()
        yield from [value["backendRef"]] if "backendRef" in value else ()


def policy_rows(policies: Iterable[Json]) -> Iterator[Json]:
    """Yield a row for each policy and each Gateway, or other ancestor, that its status names."""
    for one in policies:
        spec = one["spec"]
        says = [name for name in ("frontend", "traffic", "backend", "ai", "validation") if name in spec]
        targets = [_target(each) for name in ("targetRefs", "targetSelectors") for each in spec.get(name) or ()]
        entries = (one.get("status") or {}).get("ancestors") or ()
        for entry in entries:
            wanted = ("Accepted", "Attached") if one["kind"] == "GatewayPolicy" else ("Accepted", "ResolvedRefs")
            verdict = _judged(entry["conditions"], wanted, generation(one))
            reference = entry["ancestorRef"]
            space = f"{reference['namespace']}/" if reference.get("namespace") else ""
            summary = reference["name"] == "StatusSummary"
            where = "" if summary else f"{reference.get('kind', 'Gateway')} {space}{reference['name']}"
            yield _row(one, verdict, kind=one["kind"], says=says, targets=targets, where=where)
        if not entries:
            yield _row(one, Verdict("no", _UNSEEN), kind=one["kind"], says=says, targets=targets, where="")


def _target(target: Json) -> str:
    name = target.get("name") or ",".join(f"{key}={value}" for key, value in sorted(target["matchLabels"].items()))
    section = target.get("sectionName") or target.get("port")
    return f"{target['kind']} {name}{f'/{section}' if section else ''}"


def _named(document: Json) -> Json:
    key = key_of(document)
    return {"namespace": key.namespace, "name": key.name}


def _row(document: Json, verdict: Verdict, **more: Any) -> Json:
    return {**_named(document), **more, "inForce": verdict.in_force, "why": verdict.why}


def _condition(conditions: Iterable[Json] | None, type_: str) -> Json | None:
    return next((one for one in conditions or () if one["type"] == type_), None)


def _judged(conditions: Iterable[Json] | None, wanted: tuple[str, ...], about: int) -> Verdict:
    """Return what conditions come to: all of the wanted ones hold, of those that are there, for this generation."""
    found = [one for name in wanted if (one := _condition(conditions, name)) is not None]
    if not found:
        return Verdict("no", _UNSEEN)
    oldest = min(one.get("observedGeneration", about) for one in found)
    if oldest < about:
        return Verdict("no", f"the controller has seen generation {oldest}, not yet {about}")
    untrue = [one for one in found if one["status"] != "True"]
    accepted = _condition(conditions, "Accepted")
    if untrue:
        words = "; ".join(dict.fromkeys(f"{one['reason']}: {one['message']}" for one in untrue))
        # What is accepted and has bad references serves with the rest.
        partly = accepted is not None and accepted["status"] == "True" and untrue[0]["type"] == "ResolvedRefs"
        return Verdict("partly" if partly else "no", words)
    for one in (_condition(conditions, "PartiallyInvalid"), accepted):
        if one is not None and one["status"] == "True" and _is_partial(one):
            return Verdict("partly", f"{one['reason']}: {one['message']}")
    return Verdict("yes")


def _is_partial(condition: Mapping[str, Any]) -> bool:
    return condition["type"] == "PartiallyInvalid" or condition["reason"] in ("PartiallyValid", "ListenersNotValid")
