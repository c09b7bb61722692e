"""`policies` of the file as GatewayPolicies."""

from __future__ import annotations

from typing import Final

from headgate.cluster.convert.calls import OF_CALLS, calls
from headgate.cluster.convert.conversion import Conversion
from headgate.cluster.convert.endpoints import service_ref
from headgate.cluster.convert.frontend import frontend
from headgate.cluster.convert.ports import FilePort
from headgate.cluster.convert.requests import traffic
from headgate.cluster.convert.routes import RoutePlace
from headgate.cluster.convert.said import SaidMap
from headgate.cluster.snapshot import GATEWAY_API, OWN
from headgate.cluster.translate.fragments import Json

_NOT_SERVED: Final = "its target is not there"
_MOST_TARGETS: Final = 16
# What the file has among the policies of backends, and resources among those of requests.
_OF_REQUESTS: Final = ("requestHeaderModifier", "responseHeaderModifier", "authorization", "requestRedirect")


# A target with its namespace.
Aim = tuple[str, Json]


def targeted(of: Conversion, value: SaidMap, gateway: str, ports: list[FilePort], places: list[RoutePlace]) -> None:
    """Make the GatewayPolicies for an entry of `policies`."""
    of.objects.origin = (value.path, value.line)
    aims = _aims(of, value, gateway, ports, places)
    if not aims:
        of.losses.add(value, "target", _NOT_SERVED)
    for space in dict.fromkeys(one for one, _ in aims):
        # A policy stands in the namespace of what it targets.
        own = of.named(value["name"]["name"].partition(":")[0], space)
        found = [target for one, target in aims if one == space]
        if "frontend" in value:
            sections: list[Json] = [{"frontend": made}] if (made := frontend(own, value["frontend"])) else []
        else:
            sections = _sections(own, value)
        for section in sections:
            for number in range(0, len(found), _MOST_TARGETS):
                spec = {"targetRefs": found[number : number + _MOST_TARGETS], **section}
                own.objects.add("GatewayPolicy", space, own.about, {"spec": spec})


def _sections(of: Conversion, value: SaidMap) -> list[Json]:
    policy: SaidMap = value["policy"]
    phase = value.get("phase", "route")
    if phase == "backend" or "backend" in value["target"]:
        for name in _OF_REQUESTS:
            if name in policy:
                of.losses.add(policy, name, "resources have no such setting for calls to backends")
        made = calls(of, policy, *_OF_REQUESTS)
        return [{"backend": made}] if made else []
    if any(name in policy for name in OF_CALLS):
        made = calls(of, policy)
        return [{"backend": made}] if made else []
    early = {"phase": "PreRouting"} if phase == "gateway" else {}
    return [{"traffic": early | one} for one in traffic(of, policy)]


def _aims(of: Conversion, value: SaidMap, gateway: str, ports: list[FilePort], places: list[RoutePlace]) -> list[Aim]:
    """Return the targets with their namespaces."""
    target: SaidMap = value["target"]
    if "gateway" in target:
        return [(of.home, one) for one in _listeners(target["gateway"], gateway, ports)]
    if "route" in target:
        return _routes(target["route"], places, of)
    if "backend" in target and isinstance(target["backend"], SaidMap):
        return _backend(of, target["backend"])
    return []


def _listeners(value: SaidMap, gateway: str, ports: list[FilePort]) -> list[Json]:
    if (value["gatewayName"], value["gatewayNamespace"]) != ("default", "default"):
        return []
    whole: Json = {"group": GATEWAY_API, "kind": "Gateway", "name": gateway}
    if "listenerName" not in value and "port" not in value:
        return [whole]
    return [
        {**whole, "sectionName": one.object_name}
        for one in ports
        if value.get("listenerName") in (None, *one.names) and value.get("port") in (None, one.port)
    ]


def _routes(value: SaidMap, places: list[RoutePlace], of: Conversion) -> list[Aim]:
    found: dict[str, Aim] = {}
    for one in places:
        space = one.said.get("namespace") or of.home
        wanted = value["namespace"] if value["namespace"] != "default" else of.home
        if (one.said.get("name"), space) != (value["name"], wanted):
            continue
        if value.get("ruleName") not in (None, one.rule_name):
            continue
        section = {"sectionName": one.rule_name} if "ruleName" in value else {}
        aim = {"group": GATEWAY_API, "kind": one.kind, "name": one.name, **section}
        found[f"{one.kind} {one.name} {section}"] = (one.namespace, aim)
    return list(found.values())


def _backend(of: Conversion, value: SaidMap) -> list[Aim]:
    if "service" in value:
        said: SaidMap = value["service"]
        stand_in = SaidMap("", said.path, said.line)
        stand_in["service"] = SaidMap("ServiceReference", said.path, said.line)
        stand_in["service"].update(name=f"{said['namespace']}/{said['hostname']}", port=said.get("port", 1))
        reference = service_ref(of, stand_in)
        if reference is None:
            return []
        section = {"sectionName": str(said["port"])} if "port" in said else {}
        return [(said["namespace"], {"group": "", "kind": "Service", "name": reference["name"], **section})]
    said = value["backend"]
    name = of.backends.get(said["name"])
    if name is None:
        return []
    section = {"sectionName": said["section"]} if "section" in said else {}
    return [(of.home, {"group": OWN, "kind": "GatewayBackend", "name": name, **section})]
