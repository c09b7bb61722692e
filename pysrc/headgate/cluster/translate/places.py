"""Targets of policies as the file names them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from headgate.cluster.snapshot import (
    GATEWAY,
    GATEWAY_BACKEND,
    GRPC_ROUTE,
    HTTP_ROUTE,
    INFERENCE_POOL,
    LISTENER_SET,
    SERVICE,
    GroupKind,
    ObjectKey,
    Snapshot,
)
from headgate.cluster.translate.fragments import INNER, Called, Fragment, Json, group_key
from headgate.cluster.translate.gateway_backends import TranslatedBackend, sections, translate_backend
from headgate.cluster.translate.gateway_backends import file_name as backend_name
from headgate.cluster.translate.grpc_routes import file_name
from headgate.cluster.translate.inference_pools import pool_host
from headgate.cluster.translate.services import host

# All listeners of a file belong to one gateway.
_FILE_GATEWAY: Final = {"gatewayName": "default", "gatewayNamespace": "default"}
# What is behind routes and policies, which may call it.
CALLED: Final = (SERVICE, GATEWAY_BACKEND, INFERENCE_POOL)


class RuleCalls(NamedTuple):
    """The named backends that a rule calls, at a listener and its port. A rule below others has one for each listener
    that leads to it."""

    listener: str
    port: int
    route: ObjectKey
    rule: str
    backends: frozenset[str]


class Reach(NamedTuple):
    """What a Gateway serves: ports, listeners by name with the port that each has for itself (None: it shares one),
    routes, as the file names them, with the names of their rules, and what they call: everything, and the named
    backends of each rule."""

    gateway: ObjectKey
    listeners: Mapping[str, int | None]
    ports: frozenset[int]
    routes: Mapping[ObjectKey, frozenset[str]]
    called: Called
    rules: tuple[RuleCalls, ...]


def reach(gateway: ObjectKey, fragments: Sequence[Fragment]) -> Reach:
    """Return what the fragments of a gateway serve."""
    binds = {one.key: one.value["port"] for one in fragments if one.place == "binds"}
    at = {one.value["name"]: binds[one.parent] for one in fragments if one.place == "listeners"}
    shared = [port for port, count in Counter(at.values()).items() if count > 1]
    listeners = {name: None if port in shared else port for name, port in at.items()}
    routes: dict[ObjectKey, frozenset[str]] = {}
    for one in fragments:
        if one.place == "routes":
            key = ObjectKey(one.value["namespace"], one.value["name"])
            routes[key] = routes.get(key, frozenset()) | {one.value.get("ruleName", "")}
    ports = frozenset(binds.values())
    return Reach(gateway, listeners, ports, routes, called(fragments), tuple(_rules(fragments)))


def _rules(fragments: Sequence[Fragment]) -> Iterator[RuleCalls]:
    ports = {one.key: one.value["port"] for one in fragments if one.place == "binds"}
    at = {one.key: (one.value["name"], ports[one.parent]) for one in fragments if one.place == "listeners"}
    routes = [one for one in fragments if one.place in ("routes", "tcpRoutes")]
    # What leads to a group: listeners and other groups.
    above: dict[str, set[str]] = {}
    for one in routes:
        for each in one.value.get("backends") or ():
            if "routeGroup" in each:
                above.setdefault(group_key(each["routeGroup"]), set()).add(one.parent)
    for one in routes:
        backends = frozenset(each["backend"] for each in one.value.get("backends") or () if "backend" in each)
        if backends:
            route = ObjectKey(one.value["namespace"], one.value["name"])
            for listener, port in sorted(at[key] for key in _origins(one.parent, above) if key in at):
                yield RuleCalls(listener, port, route, one.value.get("ruleName", ""), backends)


def _origins(key: str, above: Mapping[str, Collection[str]]) -> set[str]:
    """Return what a key is and what leads to it, however far above."""
    found, left = {key}, [key]
    while left:
        new = set(above.get(left.pop(), ())) - found
        found |= new
        left += new
    return found


def called_from(place: Place, reached: Reach) -> frozenset[str]:
    """Return the named backends that requests of a target are sent to: a Gateway, a listener, a port or a route."""
    form = place.form.get("gateway") or {}
    listener, port = form.get("listenerName"), form.get("port")
    route = place.form.get("route")
    found: set[str] = set()
    for one in reached.rules:
        if route is not None:
            # The route of a group of its own is below the one that is targeted.
            key = ObjectKey(one.route.namespace, one.route.name.removesuffix(INNER))
            if key == (route["namespace"], route["name"]) and route.get("ruleName") in (None, one.rule):
                found |= one.backends
        elif listener in (None, one.listener) and port in (None, one.port):
            found |= one.backends
    return frozenset(found)


def called(fragments: Iterable[Fragment]) -> Called:
    """Return what fragments call."""
    calls = [one.called() for one in fragments]
    return Called(
        frozenset().union(*(one.services for one in calls)), frozenset().union(*(one.backends for one in calls))
    )


class Place(NamedTuple):
    """A target: `form` as the file names it, `spot` with its section as people do. `order`: of two at one level of the
    file the later one is the stronger. `backend`: the kind of a backend; of those that each request names the place of,
    `bounded` where it is said which places there are, else `dynamic`."""

    form: Json
    kind: str
    spot: str
    order: tuple[int, ...] = ()
    backend: str = ""
    listener: str = ""
    # Of a Gateway, one port or listener; `alone`: the port that this listener has for itself.
    narrow: bool = False
    alone: int | None = None

    @property
    def of_connections(self) -> Json:
        """Return the target of what is said of connections: the file knows ports there, no listeners."""
        return self.form if self.alone is None else {"gateway": {**_FILE_GATEWAY, "port": self.alone}}

    @property
    def rank(self) -> tuple[int, ...]:
        """Return the order of what is said of connections: of two of one port the first counts, a listener's own."""
        return () if not self.narrow else (0 if self.alone is not None else 1,)


def places(snapshot: Snapshot, namespace: str, target: Json, reached: Reach) -> Iterator[Place]:
    """Yield a target as the file names it, nothing if the Gateway does not serve it. A ListenerSet is one for each of
    its listeners."""
    key, section = ObjectKey(namespace, target["name"]), target.get("sectionName")
    kind = GroupKind(target["group"], target["kind"])
    spot = f"{key}/{section}" if section else str(key)
    if kind == GATEWAY and key == reached.gateway and section in (None, *reached.listeners):
        named: Json = {"listenerName": section} if section else {}
        if "port" in target:
            named, spot = {"port": target["port"]}, f"{key}:{target['port']}"
        # A listener of the Gateway itself is stronger than those of sets.
        form: Json = {"gateway": {**_FILE_GATEWAY, **named}}
        if target.get("port") in (None, *reached.ports):
            alone = reached.listeners.get(section) if section else None
            yield Place(form, kind.kind, spot, (2,) if section else (), narrow=bool(named), alone=alone)
    elif kind == LISTENER_SET:
        for name in sorted(reached.listeners):
            if name.startswith(f"{key}/") and section in (None, name.rpartition("/")[2]):
                form = {"gateway": {**_FILE_GATEWAY, "listenerName": name}}
                yield Place(form, kind.kind, spot, (1,) if section else (0,), listener=name)
    elif kind in (HTTP_ROUTE, GRPC_ROUTE):
        route = ObjectKey(key.namespace, file_name(key.name) if kind == GRPC_ROUTE else key.name)
        if route in reached.routes and section in (None, *reached.routes[route]):
            named = {"ruleName": section} if section else {}
            yield Place({"route": {"name": route.name, "namespace": route.namespace, **named}}, kind.kind, spot)
    elif kind == GATEWAY_BACKEND:
        yield from _backend(snapshot, key, section, reached.called, spot)
    elif kind in CALLED:
        yield from _service(kind, key, section, reached.called, spot)


def is_open(snapshot: Snapshot, name: str) -> bool:
    """Tell whether a named backend is a GatewayBackend whose place each request names, whichever it likes."""
    namespace, _, own = name.partition("/")
    found = snapshot.find(GATEWAY_BACKEND, namespace, own)
    dynamic = None if found is None else found["spec"].get("dynamicForwardProxy")
    return dynamic is not None and "allowedHosts" not in dynamic


def _service(kind: GroupKind, key: ObjectKey, section: str | None, called_: Called, spot: str) -> Iterator[Place]:
    name = host(key) if kind == SERVICE else pool_host(key)
    ports = {port for service, port in called_.services if service == f"{key.namespace}/{name}"}
    if not ports or (section is not None and int(section) not in ports):
        return
    port = {} if section is None else {"port": int(section)}
    form = {"backend": {"service": {"hostname": name, "namespace": key.namespace, **port}}}
    yield Place(form, kind.kind, spot, backend="service")


def _backend(
    snapshot: Snapshot, key: ObjectKey, section: str | None, called_: Called, spot: str
) -> Iterator[Place]:
    name = backend_name(key)
    found = snapshot.find(GATEWAY_BACKEND, *key)
    if found is None or name not in called_.backends:
        return
    made = translate_backend(snapshot, found)
    if not isinstance(made, TranslatedBackend) or section not in (None, *sections(made.form)):
        return
    kind = next((one for one in ("ai", "mcp", "aws", "dynamic") if one in made.form), "host")
    if kind == "dynamic" and "allowedHosts" in made.form[kind]:
        kind = "bounded"
    named = {} if section is None else {"section": section}
    form = {"backend": {"backend": {"name": name, "namespace": "", **named}}}
    yield Place(form, "GatewayBackend", spot, backend=kind)
