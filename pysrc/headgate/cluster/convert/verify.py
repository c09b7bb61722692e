"""Whether resources come to what the file came to: the translator of the controller is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Final

from headgate.cluster.convert.crd_check import unfit
from headgate.cluster.convert.gateway import Converted, GatewayNames
from headgate.cluster.convert.ports import FilePort
from headgate.cluster.convert.process import own_file
from headgate.cluster.convert.said import SaidMap
from headgate.cluster.convert.same_models import router_differences
from headgate.cluster.deploy.configuration import over
from headgate.cluster.snapshot import GATEWAY, ObjectKey, Snapshot
from headgate.cluster.translate.conditions import ObjectStatus
from headgate.cluster.translate.everything import World, everything
from headgate.cluster.translate.fragments import Json, assembled
from headgate.cluster.translate.gateway import CONTROLLER
from headgate.config.load import TextSource, load
from headgate.document.secret import Secret
from headgate.document.write import write
from headgate.errors import ConfigErrors
from headgate.ir.gateway import Gateway
from headgate.ir.listener import Listener
from headgate.ir.match import Match
from headgate.ir.model import LlmRouter
from headgate.ir.route import Route
from headgate.ir.tcp_route import TcpRoute

# GatewayNames and identities: both sides have their own. Where clients see a name, it is looked at.
_ANY: Final = frozenset((
    "key", "digest", "owner", "named", "file", "place", "cert_file", "key_file", "root_file",
))  # fmt: skip
# Of a reference to what is told by itself.
_NOT_ACCEPTED: Final = " is not accepted: "
_NAMES: Final = {
    "Route": ("name", "namespace", "rule_name", "parent"), "TcpRoute": ("name", "namespace", "rule_name"),
    "HostBackend": ("name",), "AiBackend": ("name",), "McpBackend": ("name",), "AgentRuntimeBackend": ("name",),
    "DynamicBackend": ("name",), "GroupBackend": ("name",), "MissingBackend": ("name",), "ServiceBackend": ("name",),
    "RemoteService": ("name", "kind"), "CopyTarget": ("name", "kind"), "Listener": ("name",), "Model": ("name",),
}  # fmt: skip


def world_of(documents: list[Json]) -> World:
    """Return what the controller makes of objects; classes that none of them is belong to it."""
    classes = {one["spec"]["gatewayClassName"] for one in documents if one["kind"] == "Gateway"}
    own: list[Json] = [
        {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "GatewayClass",
            "metadata": {"name": name},
            "spec": {"controllerName": CONTROLLER},
        }
        for name in sorted(classes)
    ]
    return everything(Snapshot.of([*own, *documents]), {})


def unmet(statuses: list[ObjectStatus]) -> Iterator[tuple[ObjectStatus, str]]:
    """Yield what objects are told that is not in force, in the controller's words."""
    for one in statuses:
        for condition in _conditions(one.content):
            partial = condition["type"] == "PartiallyInvalid" or condition["reason"] == "PartiallyValid"
            untrue = condition["status"] == "False" and condition["type"] not in ("Programmed", "Conflicted")
            if partial or untrue:
                yield one, condition["message"]


def _conditions(content: Any) -> Iterator[Json]:
    if isinstance(content, list):
        for one in content:
            yield from _conditions(one)
    elif isinstance(content, dict):
        for name, one in content.items():
            if name == "conditions":
                yield from one
            else:
                yield from _conditions(one)


def file_of(documents: list[Json], world: World, key: ObjectKey) -> tuple[Json, dict[str, str]]:
    """Return the file of a Gateway with that of its processes, and the known variables of their environment.

    Raises ValueError if its parameters cannot be used.
    """
    snapshot = Snapshot.of(documents)
    gateway = snapshot.find(GATEWAY, *key)
    assert gateway is not None
    own, variables = own_file(snapshot, gateway)
    return over(own, assembled(world.gateways[key])), variables


def verify(made: Converted, before: Gateway, names: GatewayNames) -> None:
    """Note among the losses what would be different in the cluster."""
    documents = made.of.objects.in_order()
    losses, objects = made.of.losses, made.of.objects
    for one, message in unfit(documents):
        key = f"{one['metadata']['namespace']}/{one['metadata']['name']}"
        losses.more(*objects.origin_of(one["kind"], key), f"{one['kind']} {key}: {message}")
    world = world_of(documents)
    for status, message in unmet(world.statuses):
        if _NOT_ACCEPTED not in message:
            place = objects.origin_of(status.kind.kind, str(status.key))
            losses.more(*place, f"{status.kind.kind} {status.key}: {message}")
    if not made.ports:
        # There is no Gateway, which has been told.
        return
    file, variables = file_of(documents, world, ObjectKey(names.namespace, names.gateway))
    try:
        after = load(TextSource(write(file)), environ=variables).gateway
    except ConfigErrors as errors:
        for error in errors.errors:
            losses.more("", 0, f"in the cluster: {error.path}: {error.message}")
        return
    differences(made, before, after)


def differences(made: Converted, before: Gateway, after: Gateway) -> None:
    """Note differences of two configurations, the file's and the cluster's."""
    losses = made.of.losses
    theirs = {(bind.port, listener.name): listener for bind in after.binds for listener in bind.listeners}
    ours = _by_port(before)
    for port in made.ports:
        one = ours.get((port.port, port.hostname or None))
        other = theirs.get((port.port, port.object_name))
        if one is None or other is None:
            losses.at(port.said.path, port.said.line, "the cluster has no such listener")
            continue
        for path, what in _listener(made, port, one, other):
            losses.at(path[0], path[1], what)
    for section, name in (("frontendPolicies", "frontend"), ("config", "process")):
        for place in _different(getattr(before, name), getattr(after, name)):
            if not losses.covers(section):
                losses.at(f"{section} ({place})", 0, "the cluster would treat it differently")


def _by_port(gateway: Gateway) -> dict[tuple[int, str | None], Listener]:
    return {
        (bind.port, listener.hostname): listener
        for bind in gateway.binds
        if not (bind.internal or bind.tunnels or bind.proxied)
        for listener in bind.listeners
    }


def _listener(
    made: Converted, port: FilePort, before: Listener, after: Listener
) -> Iterator[tuple[tuple[str, int], str]]:
    losses = made.of.losses
    place = (port.said.path, port.said.line)
    for name in ("protocol", "hostname", "tls", "policies"):
        found = _different(getattr(before, name), getattr(after, name))
        if found and not losses.covers(port.said.path):
            yield place, f"its {name} would be different: {', '.join(found)}"
    routes = [*port.routes, *port.tcp_routes]
    order = _expected(made, port, routes)
    yield from _turned(routes, before, order)
    ours, others = _chunks(before), _chunks(after)
    if len(others) != len(order):
        yield place, f"of {len(order)} routes {len(others)} would be served"
        return
    for number, one in enumerate(ours[: len(routes)]):
        if id(routes[number]) not in order:
            continue
        other, said = others[order[id(routes[number])]], routes[number]
        found = _different(one[0], other[0])
        if not found and not _same_below(one[1:], other[1:]):
            found = ["routes that it hands requests on to"]
        if found and not losses.covers(said.path):
            yield (said.path, said.line), f"it would be different: {', '.join(found)}"


def _chunks(listener: Listener) -> list[list[Route | TcpRoute]]:
    """Return each route of a listener with those that it hands requests on to, which stand behind it."""
    found: list[list[Route | TcpRoute]] = []
    every: list[Route | TcpRoute] = [*listener.routes, *listener.tcp_routes]
    for one in every:
        if isinstance(one, Route) and one.parent:
            found[-1].append(one)
        else:
            found.append([one])
    return found


def _turned(routes: list[SaidMap], listener: Listener, order: dict[int, int]) -> Iterator[tuple[tuple[str, int], str]]:
    """Yield routes that would come before earlier ones which match as much as they do: names decide there."""
    ranked = [
        (one, order[id(one)], {(*hosts, _rank(each)) for hosts in [tuple(route.hostnames)] for each in route.matches})
        for one, route in zip(routes, (chunk[0] for chunk in _chunks(listener)), strict=False)
        if isinstance(route, Route) and id(one) in order
    ]
    first: dict[object, tuple[SaidMap, int]] = {}
    for one, number, ranks in ranked:
        for each in ranks:
            other, last = first.get(each, (one, -1))
            if number < last:
                yield (one.path, one.line), f"the cluster would look at it before {other.path}: its name comes first"
                break
            first[each] = (one, max(number, last))


def _rank(match: Match) -> tuple[object, ...]:
    """Return how specific a match is: of two of one rank the route decides that comes first.

    https://gateway-api.sigs.k8s.io/reference/spec/#httprouterule
    """
    path = len(match.path.value)
    return match.path.kind, path, match.method is not None, len(match.headers), len(match.query)


def _same_below(before: list[Route | TcpRoute], after: list[Route | TcpRoute]) -> bool:
    """Tell whether routes are the same, in any order: both sides sort them by names of their own."""
    left = list(after)
    for one in before:
        match = next((other for other in left if not _different(one, other)), None)
        if match is None:
            return False
        left.remove(match)
    return not left


def _expected(made: Converted, port: FilePort, routes: list[SaidMap]) -> dict[int, int]:
    """Return by route which one it is at a listener of the cluster: they are in the order of names, then of rules."""
    wanted = {id(one) for one in routes}
    places = [one for one in made.routed.places if id(one.said) in wanted]
    places.sort(key=lambda one: (one.namespace, one.name, one.rule))
    return {id(one.said): number for number, one in enumerate(places)}


def _different(before: Any, after: Any, path: str = "") -> list[str]:
    """Return where two values differ, names of their own aside."""
    if isinstance(before, Secret) and isinstance(after, Secret):
        return [] if before.reveal() == after.reveal() else [path]
    if isinstance(before, LlmRouter) and isinstance(after, LlmRouter):
        return list(router_differences(before, after, path, _different))
    found: list[tuple[str, Any, Any]] = []
    if is_dataclass(before) and type(before) is type(after):
        left = {*_ANY, *_NAMES.get(type(before).__name__, ())}
        if getattr(before, "key_file", None):
            left.add("key_pem")  # it is read later
        names = [field.name for field in fields(before) if field.name not in left]
        found = [(f"{path}.{name}".strip("."), getattr(before, name), getattr(after, name)) for name in names]
    elif isinstance(before, tuple) and isinstance(after, tuple) and len(before) == len(after):
        found = [(f"{path}[{index}]", *pair) for index, pair in enumerate(zip(before, after, strict=True))]
    elif before != after:
        return [path or "all of it"]
    return [place for name, one, other in found for place in _different(one, other, name)]
