"""Routes of the file as HTTPRoutes, GRPCRoutes, TLSRoutes and TCPRoutes with their policies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from headgate.cluster.convert.backends import backend
from headgate.cluster.convert.calls import OF_CALLS, calls
from headgate.cluster.convert.conversion import Conversion
from headgate.cluster.convert.endpoints import backend_ref, service_ref
from headgate.cluster.convert.filters import OF_BACKEND, OF_RULE, filters, is_host_choice
from headgate.cluster.convert.guards import prompt_guard
from headgate.cluster.convert.matches import grpc_method, match
from headgate.cluster.convert.models import models
from headgate.cluster.convert.ports import FilePort
from headgate.cluster.convert.requests import traffic
from headgate.cluster.convert.said import SaidMap
from headgate.cluster.snapshot import GATEWAY_API, GATEWAY_BACKEND, GATEWAY_MODEL, OWN, SERVICE
from headgate.cluster.translate.fragments import Json

# https://gateway-api.sigs.k8s.io/reference/spec/#httproutespec
_MOST_RULES: Final = 16
_GROUP_LABEL: Final = "headgate.dev/route-group"
_GRPC: Final = "grpc/"
_INLINE: Final = "inline"


@dataclass
class RoutePlace:
    """Where a route of the file went: kind, namespace and name of the object, and the number of its rule."""

    said: SaidMap
    kind: str
    namespace: str
    name: str
    rule: int
    rule_name: str = ""


@dataclass
class Routed:
    """The routes of a Gateway while they are made. `parents`: the parentRefs of each route, by its identity."""

    of: Conversion
    gateway: str
    parents: dict[int, list[Json]] = field(default_factory=dict)
    places: list[RoutePlace] = field(default_factory=list)
    groups: dict[str, str] = field(default_factory=dict)
    # GatewayNames of routes that entries of `policies` target: what stands on such a route comes before those.
    aimed: frozenset[str] = frozenset()
    _objects: dict[tuple[Any, ...], Json] = field(default_factory=dict)
    # The GatewayModels of a section in a namespace.
    _models: dict[tuple[int, str], list[Json]] = field(default_factory=dict)

    def attach(self, ports: list[FilePort]) -> list[SaidMap]:
        """Note which listeners serve which routes; return the routes, each once, in the order of the file."""
        found: dict[int, SaidMap] = {}
        for port in ports:
            for one in (*port.routes, *port.tcp_routes):
                space = one.get("namespace") or self.of.home
                parent = {"name": self.gateway, "sectionName": port.object_name}
                away = {"namespace": self.of.home} if space != self.of.home else {}
                self.parents.setdefault(id(one), []).append(parent | away)
                found[id(one)] = one
        return list(found.values())

    def add(self, value: SaidMap, index: int, group: str = "") -> None:
        """Add a route of HTTP. `group`: the route group that it stands in."""
        self.of.objects.origin = (value.path, value.line)
        name, space = value.get("name") or f"{group or 'route'}-{index:03d}", value.get("namespace") or self.of.home
        of = self.of.named(name, space)
        kind = "GRPCRoute" if name.startswith(_GRPC) and self._is_grpc(value) else "HTTPRoute"
        hosts = [one for one in value.get("hostnames") or () if one != "*"]
        hosts = [] if "*" in (value.get("hostnames") or ()) else hosts
        parents = [] if group else self.parents[id(value)]
        rule = self._rule(of, value, kind)
        made = self._object(kind, space, name, (tuple(hosts), str(parents), group), rule.get("name"))
        spec = made["spec"]
        if parents:
            spec["parentRefs"] = parents
        if hosts:
            spec["hostnames"] = hosts
        if group:
            made["metadata"]["labels"] = {_GROUP_LABEL: group}
        spec.setdefault("rules", []).append(rule)
        place = RoutePlace(value, kind, space, made["metadata"]["name"], len(spec["rules"]) - 1, rule.get("name", ""))
        self.places.append(place)
        for one in value.maps("backends"):
            if (section := self._section(one)) is not None:
                self._add_models(of, section, place)
        self._policies(of, value, place)

    def _section(self, backend: SaidMap) -> SaidMap | None:
        """Return the models that a backend of a route stands for, None for others."""
        name = str(backend.get("backend") or "").removeprefix("/")
        found: SaidMap | None = backend.get("llm") or self.of.models.get(name)
        return found

    def _add_models(self, of: Conversion, section: SaidMap, place: RoutePlace) -> None:
        """Attach the models of a section to a rule; they are made for the first one."""
        parent: Json = {"group": GATEWAY_API, "kind": place.kind, "name": place.name}
        parent |= {"sectionName": place.rule_name} if place.rule_name else {}
        known = self._models.get((id(section), place.namespace))
        if known is None:
            self._models[id(section), place.namespace] = models(of, section, parent)
            return
        for one in known:
            one["spec"]["parentRefs"].append(parent)

    def _is_grpc(self, value: SaidMap) -> bool:
        return all(grpc_method(one) is not None for one in value.maps("matches"))

    def _object(self, kind: str, space: str, name: str, same: tuple[Any, ...], rule: str | None) -> Json:
        """Return the object that a rule goes to: routes of one name are rules of one object if they are named."""
        key = (kind, space, name, *same)
        found = self._objects.get(key)
        if found is None or rule is None or len(found["spec"]["rules"]) >= _MOST_RULES:
            wanted = name.removeprefix(_GRPC) if kind == "GRPCRoute" else name
            found = self._objects[key] = self.of.objects.add(kind, space, wanted, {"spec": {}})
        return found

    def _rule(self, of: Conversion, value: SaidMap, kind: str) -> Json:
        policies = value.inner("policies")
        rule: Json = {"name": value["ruleName"]} if "ruleName" in value else {}
        if not rule and policies.keys() - {*OF_RULE, "timeout"} and value.get("name") in self.aimed:
            # A policy at a rule is stronger than those at the route.
            rule = {"name": _INLINE}
        matches = value.maps("matches")
        if matches:
            rule["matches"] = [_grpc_match(of, one) if kind == "GRPCRoute" else match(of, one) for one in matches]
        own = [one for one in OF_RULE if not (one == "urlRewrite" and is_host_choice(policies.inner(one)))]
        if found := filters(of, policies, *own):
            rule["filters"] = found
        agents = [_agent(one, policies) for one in value.maps("backends")]
        if references := [made for one in agents if (made := self._reference(of, one, kind)) is not None]:
            rule["backendRefs"] = references
        said = policies.inner("timeout")
        names = {"requestTimeout": "request", "backendRequestTimeout": "backendRequest"}
        if times := {theirs: said[ours] for ours, theirs in names.items() if ours in said}:
            rule["timeouts"] = times
        return rule

    def _reference(self, of: Conversion, value: SaidMap, kind: str) -> Json | None:
        weight = {"weight": value["weight"]} if "weight" in value else {}
        policies = value.inner("policies")
        if "routeGroup" in value:
            of.losses.rest(policies)
            known = self.groups.get(value["routeGroup"])
            if known is None:
                of.losses.add(value, "routeGroup", "there is no such group")
                return None
            space = {"namespace": of.home} if of.namespace != of.home else {}
            label = f"{_GROUP_LABEL}={known}"
            return {"group": GATEWAY_API, "kind": "HTTPRoute", "name": label, **space, **weight}
        edits = filters(of, policies, *OF_BACKEND)
        if self._section(value) is not None:
            for one in policies:
                if one not in OF_BACKEND:
                    of.losses.add(policies, one, "a backendRef to models can only have filters")
            reference = {"group": OWN, "kind": GATEWAY_MODEL.kind, "name": "*"}
        elif "service" in value:
            for one in policies:
                if one not in OF_BACKEND:
                    of.losses.add(policies, one, "a backendRef to a Service can only have filters")
            found = service_ref(of, value)
            if found is None:
                return None
            reference = found
            of.objects.grant(kind, of.namespace, SERVICE, reference.get("namespace", of.namespace))
        elif "backend" in value:
            for one in policies:
                if one not in OF_BACKEND:
                    of.losses.add(policies, one, "a backendRef to a backend can only have filters")
            name = value["backend"].removeprefix("/")
            if name not in of.backends:
                of.losses.add(value, "backend", f"backend {name} cannot be converted")
                return None
            reference = backend_ref(of, name)
            of.objects.grant(kind, of.namespace, GATEWAY_BACKEND, of.home)
        else:
            made = backend(of, value, of.about, *OF_BACKEND)
            if made is None:
                return None
            reference = {"group": OWN, "kind": "GatewayBackend", "name": made}
        return reference | weight | ({"filters": edits} if edits else {})

    def _policies(self, of: Conversion, value: SaidMap, place: RoutePlace) -> None:
        """Make the policies of a route that stand in objects of their own."""
        policies = value.inner("policies")
        in_rule = [one for one in OF_RULE if not (one == "urlRewrite" and is_host_choice(policies.inner(one)))]
        rest = [*in_rule, "timeout", *(one for one in OF_CALLS if one in policies), "a2a", "guardrails"]
        sections = [{"traffic": one} for one in traffic(of, policies, *rest)]
        others = [one for one in policies if one not in OF_CALLS]
        if made := calls(of, policies, *others):
            sections.append({"backend": made})
        if "guardrails" in policies and (guards := prompt_guard(of, policies["guardrails"], calls)):
            sections.append({"backend": {"ai": {"promptGuard": guards}}})
        if "a2a" in policies and not any("host" in one for one in value.maps("backends")):
            of.losses.add(policies, "a2a")
        if not sections:
            return
        target: Json = {"group": GATEWAY_API, "kind": place.kind, "name": place.name}
        if place.rule_name:
            target["sectionName"] = place.rule_name
        elif place.rule:
            raise AssertionError("rules without a name are alone")
        for one in sections:
            of.objects.add("GatewayPolicy", place.namespace, place.name, {"spec": {"targetRefs": [target], **one}})

    def add_stream(self, value: SaidMap, index: int, *, tls: bool) -> None:
        """Add a route of connections."""
        self.of.objects.origin = (value.path, value.line)
        kind = "TLSRoute" if tls else "TCPRoute"
        name, space = value.get("name") or f"connections-{index:03d}", value.get("namespace") or self.of.home
        of = self.of.named(name.removeprefix("tls/").removeprefix("tcp/"), space)
        rule: Json = {"name": value["ruleName"]} if "ruleName" in value else {}
        inline = value.inner("policies")
        for one in inline:
            of.losses.add(inline, one, "TCP routes have no policies in resources: use those of their backends")
        made = [self._reference(of, one, kind) for one in value.maps("backends")]
        if references := [one for one in made if one is not None]:
            rule["backendRefs"] = references
        spec: Json = {"parentRefs": self.parents[id(value)]}
        hosts = [one for one in value.get("hostnames") or () if one != "*"]
        if tls and not hosts:
            of.losses.at(value.path, value.line, "a TLSRoute needs hostnames")
            return
        if tls:
            spec["hostnames"] = hosts
        route = of.objects.add(kind, space, of.about, {"spec": spec | {"rules": [rule]}})
        self.places.append(RoutePlace(value, kind, space, route["metadata"]["name"], 0, rule.get("name", "")))


def _agent(value: SaidMap, policies: SaidMap) -> SaidMap:
    """Return a backend of a route, as an agent if the route says that it is one and the backend can say so itself."""
    if "a2a" not in policies or "host" not in value:
        return value
    found, inner = SaidMap(value.shape, value.path, value.line), value.inner("policies")
    found.update(value)
    found["policies"] = SaidMap("BackendPolicies", inner.path, inner.line)
    found["policies"].update(inner, a2a=policies["a2a"])
    found["policies"].lines = inner.lines
    return found


def _grpc_match(of: Conversion, value: SaidMap) -> Json:
    found = grpc_method(value)
    assert found is not None
    headers = match(of, value).get("headers")
    return found | ({"headers": headers} if headers else {})
