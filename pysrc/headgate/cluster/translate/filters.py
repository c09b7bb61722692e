"""Filters of rules and backends as policies of the file.

https://gateway-api.sigs.k8s.io/reference/spec/#httproutefilter
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.backends import Target, target
from headgate.cluster.translate.checked import faults_of_policy
from headgate.cluster.translate.conditions import Unmet
from headgate.cluster.translate.fragments import Fragment, Json

_SCHEME_PORTS: Final = {"http": 80, "https": 443}
_FOUND: Final = 302
_MIRROR: Final = "requestMirror"
# What a filter is that cannot be had.
ANSWER: Final = "directResponse"
_NO_FILTER: Final = 500
# One of these answers or changes where the request goes: together they have no meaning.
_EXCLUSIVE: Final = {"RequestRedirect", "URLRewrite"}


# What the loader of the file takes: routes that one route leads to.
MOST_DELEGATED: Final = 10_000


class Delegated(NamedTuple):
    """A route below another. `reference`: the parentRef that names the route above, None without one."""

    route: Json
    reference: Json | None
    filters: tuple[FilterReader, ...]


class FilterReader:
    """Reads the filters of one rule at one listener. `invalid`: the rule cannot be in force; `unresolved`: references
    that lead nowhere; `used` and `backends`: Services and GatewayBackends that are led to.

    Where the rule hands requests on: `fragments` and `delegated` are what it leads to, `chain` the routes above, and
    `budget` how many rules there may still be.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        route: Json,
        port: int,
        chain: tuple[ObjectKey, ...] = (),
        budget: list[int] | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._route = route
        self._port = port
        self.invalid: list[Unmet] = []
        self.unresolved: list[Unmet] = []
        self.used: list[ObjectKey] = []
        self.backends: list[ObjectKey] = []
        self.chain = chain
        self.budget = [MOST_DELEGATED] if budget is None else budget
        self.fragments: list[Fragment] = []
        self.delegated: list[Delegated] = []

    def below(self, route: Json) -> FilterReader:
        """Return a reader of a rule of a route that this one leads to."""
        return FilterReader(self._snapshot, route, 0, self.chain, self.budget)

    def read(self, filters: Sequence[Json]) -> dict[str, Any]:
        """Return the policies that the filters are."""
        kinds = [one["type"] for one in filters]
        if set(kinds) >= _EXCLUSIVE:
            self.invalid.append(Unmet("IncompatibleFilters", "RequestRedirect and URLRewrite in one rule"))
        readers: dict[str, Callable[[Json], tuple[str, Any] | None]] = {
            "RequestHeaderModifier": lambda one: ("requestHeaderModifier", _headers(one["requestHeaderModifier"])),
            "ResponseHeaderModifier": lambda one: ("responseHeaderModifier", _headers(one["responseHeaderModifier"])),
            "RequestRedirect": lambda one: ("requestRedirect", self._redirect(one["requestRedirect"])),
            "URLRewrite": lambda one: ("urlRewrite", _rewrite(one["urlRewrite"])),
            "RequestMirror": lambda one: self._mirror(one["requestMirror"]),
            "CORS": lambda one: ("cors", _cors(one["cors"])),
            "ExternalAuth": lambda one: self._external_auth(one["externalAuth"]),
            "ExtensionRef": lambda one: self._extension(one["extensionRef"]),
        }
        found: dict[str, Any] = {}
        for one in filters:
            reader = readers.get(one["type"])
            if reader is None:
                self.invalid.append(Unmet("UnsupportedValue", f"filter {one['type']} is not supported"))
                continue
            policy = reader(one)
            if policy is None:
                continue
            if policy[0] == _MIRROR:
                found.setdefault(_MIRROR, []).append(policy[1])
                continue
            if policy[0] in found and policy[0] != ANSWER:
                self.invalid.append(Unmet("UnsupportedValue", f"more than one filter {one['type']} in one rule"))
            found[policy[0]] = policy[1]
        if ANSWER in found:
            # Nothing else answers in its place.
            found.pop("requestRedirect", None)
        if len(found.get(_MIRROR, ())) == 1:
            [found[_MIRROR]] = found[_MIRROR]
        return found

    def _redirect(self, value: Json) -> Json:
        scheme, hostname = value.get("scheme"), value.get("hostname")
        port = value.get("port") or (_SCHEME_PORTS.get(scheme) if scheme else self._port)
        found: Json = {"status": value.get("statusCode", _FOUND)}
        if scheme:
            found["scheme"] = scheme
        if hostname:
            found["authority"] = {"full": f"{hostname}:{port}"} if port else {"host": hostname}
        elif port:
            found["authority"] = {"port": port}
        if path := value.get("path"):
            found["path"] = _path(path)
        return found

    def _mirror(self, value: Json) -> tuple[str, Any] | None:
        reached = target(self._snapshot, self._route, value["backendRef"])
        if isinstance(reached, Unmet):
            self.unresolved.append(reached)
            return None
        if "policies" in reached.form:
            message = f"InferencePool {value['backendRef']['name']}: nothing can be mirrored to one"
            self.unresolved.append(Unmet("UnsupportedValue", message))
            return None
        if reached.dynamic:
            message = f"GatewayBackend {reached.backend}: a dynamic forward proxy has no place to mirror to"
            self.unresolved.append(Unmet("UnsupportedValue", message))
            return None
        self.note(reached)
        return _MIRROR, {"backend": reached.form, "percentage": _share(value)}

    def _external_auth(self, value: Json) -> tuple[str, Any]:
        """Return what asks a service. One that cannot be asked lets nobody pass."""
        reached = target(self._snapshot, self._route, value["backendRef"])
        if isinstance(reached, Target) and (reached.dynamic or reached.form.keys() - {"service", "backend"}):
            name = value["backendRef"]["name"]
            reached = Unmet("UnsupportedValue", f"{name} is no service that can be asked about requests")
        if isinstance(reached, Unmet):
            self.unresolved.append(reached)
            return "authorization", {"rules": [{"deny": "true"}]}
        found = {**reached.form, **_asking(value), "failureMode": "deny"}
        if wrong := faults_of_policy("extAuthz", found):
            self.invalid.append(Unmet("UnsupportedValue", f"filter ExternalAuth: {'; '.join(wrong)}"))
        self.note(reached)
        return "extAuthz", found

    def _extension(self, value: Json) -> tuple[str, Any]:
        """Return an error: there are no filters of other kinds, and requests must not pass without one
        (https://gateway-api.sigs.k8s.io/reference/spec/#httproutefilter, type)."""
        kind = value["kind"]
        message = f"filter {kind} {value['name']}: kind {kind} of group {value['group']!r} is no filter"
        self.unresolved.append(Unmet("InvalidKind", message))
        return ANSWER, {"status": _NO_FILTER}

    def note(self, reached: Target) -> None:
        """Remember what a rule leads to."""
        if reached.service is not None:
            self.used.append(reached.service)
        if reached.backend is not None:
            self.backends.append(reached.backend)


def _share(value: Json) -> float:
    """Return the part of the requests that is mirrored, 0..1."""
    if fraction := value.get("fraction"):
        return float(min(Fraction(fraction["numerator"], fraction.get("denominator", 100)), Fraction(1)))
    return float(Fraction(value["percent"], 100)) if value.get("percent") is not None else 1.0


def _asking(value: Json) -> Json:
    """Return how a service is asked about a request, and what it is told."""
    said = value.get("grpc" if value["protocol"] == "GRPC" else "http") or {}
    found: Json = {"protocol": {"grpc": {}}}
    if value["protocol"] != "GRPC":
        http: Json = {}
        if said.get("path"):
            http["path"] = f"{json.dumps(said['path'].rstrip('/'))} + request.pathAndQuery"
        if said.get("allowedResponseHeaders"):
            http["includeResponseHeaders"] = list(said["allowedResponseHeaders"])
        found = {"protocol": {"http": http}}
    if said.get("allowedHeaders"):
        found["includeRequestHeaders"] = list(said["allowedHeaders"])
    if most := (value.get("forwardBody") or {}).get("maxSize"):
        found["includeRequestBody"] = {"maxRequestBytes": most, "allowPartialMessage": False}
    return found


def _headers(value: Json) -> Json:
    """Return a header modifier. Of two entries for one name, in any case, the first counts."""
    found: Json = {}
    for action in ("set", "add"):
        names: dict[str, tuple[str, str]] = {}
        for one in value.get(action) or ():
            names.setdefault(one["name"].lower(), (one["name"], one["value"]))
        if names:
            found[action] = dict(names.values())
    if value.get("remove"):
        found["remove"] = list(value["remove"])
    return found


def _rewrite(value: Json) -> Json:
    found: Json = {}
    if hostname := value.get("hostname"):
        found["authority"] = {"full": hostname}
    if path := value.get("path"):
        found["path"] = _path(path)
    return found


def _path(value: Json) -> Json:
    if value["type"] == "ReplaceFullPath":
        return {"full": value["replaceFullPath"]}
    # An empty prefix takes the matched one away.
    return {"prefix": value["replacePrefixMatch"] or "/"}


def _cors(value: Json) -> Json:
    lists = ("allowOrigins", "allowMethods", "allowHeaders", "exposeHeaders")
    found: Json = {name: list(value[name]) for name in lists if value.get(name)}
    if value.get("allowCredentials") is not None:
        found["allowCredentials"] = value["allowCredentials"]
    found["maxAge"] = f"{value.get('maxAge', 5)}s"
    return found
