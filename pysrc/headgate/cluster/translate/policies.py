"""GatewayPolicies: which Gateways they reach, as targeted policies of the file, and their statuses.

Parts other than `traffic` are not translated yet, which the status says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from headgate.cluster.snapshot import (
    GATEWAY,
    GATEWAY_API,
    GRPC_ROUTE,
    HTTP_ROUTE,
    OWN,
    GroupKind,
    ObjectKey,
    Snapshot,
    generation,
    key_of,
)
from headgate.cluster.translate.ancestors import MOST_ANCESTORS, by_reference
from headgate.cluster.translate.conditions import Condition, ObjectStatus
from headgate.cluster.translate.fragments import Fragment, Json
from headgate.cluster.translate.grpc_routes import file_name
from headgate.cluster.translate.selectors import selects
from headgate.cluster.translate.traffic import Policies, traffic

POLICY: Final = GroupKind(OWN, "GatewayPolicy")
# All listeners of a file belong to one gateway.
_FILE_GATEWAY: Final = {"gatewayName": "default", "gatewayNamespace": "default"}
# Of several policies of these kinds all hold.
_ADDS_UP: Final = frozenset(("authorization",))
_SECTIONS: Final = ("frontend", "backend", "ai", "strategy")


class Reach(NamedTuple):
    """What a Gateway serves: listeners by name, and routes, as the file names them, with the names of their rules."""

    gateway: ObjectKey
    listeners: frozenset[str]
    routes: Mapping[ObjectKey, frozenset[str]]


def reach(gateway: ObjectKey, fragments: Iterable[Fragment]) -> Reach:
    """Return the names of a gateway's listeners and of the rules of each of its routes."""
    listeners: set[str] = set()
    routes: dict[ObjectKey, frozenset[str]] = {}
    for one in fragments:
        if one.place == "listeners":
            listeners.add(one.value["name"])
        elif one.place == "routes":
            key = ObjectKey(one.value["namespace"], one.value["name"])
            routes[key] = routes.get(key, frozenset()) | {one.value.get("ruleName", "")}
    return Reach(gateway, frozenset(listeners), routes)


class Place(NamedTuple):
    """A target: `form` as the file names it, `spot` with its section as people do."""

    form: Json
    kind: str
    spot: str


# Which policy says a kind at a target.
Holders = dict[tuple[object, ...], ObjectKey]


class Attached(NamedTuple):
    """For each Gateway fragments, and the Services and GatewayBackends that they call; the statuses of all policies."""

    fragments: dict[ObjectKey, list[Fragment]]
    used: dict[ObjectKey, set[ObjectKey]]
    backends: dict[ObjectKey, set[ObjectKey]]
    statuses: list[ObjectStatus]


def policies(snapshot: Snapshot, reached: list[Reach], controller: str) -> Attached:
    """Attach all policies, the oldest first: of two that say the same of one target it holds."""
    fragments: dict[ObjectKey, list[Fragment]] = {one.gateway: [] for one in reached}
    used: dict[ObjectKey, set[ObjectKey]] = {one.gateway: set() for one in reached}
    backends: dict[ObjectKey, set[ObjectKey]] = {one.gateway: set() for one in reached}
    statuses = []
    holders: Holders = {}
    for policy in snapshot.oldest_first(POLICY):
        said = traffic(snapshot, key_of(policy).namespace, policy["spec"].get("traffic") or {})
        said.faults.extend(f"{name} is not supported yet" for name in _SECTIONS if name in policy["spec"])
        ancestors: dict[ObjectKey, list[str]] = {}
        targets = list(_targets(snapshot, policy))
        placed = set()
        for gateway in reached:
            for index, target in enumerate(targets):
                place = _place(key_of(policy).namespace, target, gateway)
                if place is None:
                    continue
                placed.add(index)
                used[gateway.gateway] |= said.used
                backends[gateway.gateway] |= said.backends
                lost = _attach(policy, said, gateway.gateway, place, holders, fragments[gateway.gateway])
                ancestors.setdefault(gateway.gateway, list(said.faults)).extend(lost)
        unplaced = [target for index, target in enumerate(targets) if index not in placed]
        content = _status(policy, said, ancestors, [_why(snapshot, policy, one) for one in unplaced], controller)
        statuses.append(ObjectStatus(POLICY, key_of(policy), content))
    return Attached(fragments, used, backends, statuses)


def _targets(snapshot: Snapshot, policy: Json) -> Iterable[Json]:
    """Return the targets of a policy by name."""
    yield from policy["spec"].get("targetRefs") or ()
    for one in policy["spec"].get("targetSelectors") or ():
        for key, found in sorted(snapshot.kinds.get(GroupKind(one["group"], one["kind"]), {}).items()):
            if key.namespace == key_of(policy).namespace and selects(one, found["metadata"].get("labels") or {}):
                yield {name: value for name, value in one.items() if name != "matchLabels"} | {"name": key.name}


def _place(namespace: str, target: Json, reached: Reach) -> Place | None:
    """Return a target as the file names it; None if the Gateway does not serve it."""
    key, section = ObjectKey(namespace, target["name"]), target.get("sectionName")
    kind = GroupKind(target["group"], target["kind"])
    spot = f"{key}/{section}" if section else str(key)
    if kind == GATEWAY and key == reached.gateway and section in (None, *reached.listeners):
        named = {"listenerName": section} if section else {}
        return Place({"gateway": {**_FILE_GATEWAY, **named}}, kind.kind, spot)
    if kind not in (HTTP_ROUTE, GRPC_ROUTE):
        return None
    route = ObjectKey(key.namespace, file_name(key.name) if kind == GRPC_ROUTE else key.name)
    if route not in reached.routes or section not in (None, *reached.routes[route]):
        return None
    named = {"ruleName": section} if section else {}
    return Place({"route": {"name": route.name, "namespace": route.namespace, **named}}, kind.kind, spot)


def _attach(
    policy: Json, said: Policies, gateway: ObjectKey, place: Place, holders: Holders, fragments: list[Fragment]
) -> list[str]:
    """Add the fragments of a policy at one target; return what an older policy says there already."""
    key, lost = key_of(policy), []
    early = policy["spec"].get("traffic", {}).get("phase") == "PreRouting"
    # As the file has it: `route`, or `gateway` for what runs before a route is known.
    phase = "gateway" if early else "route"
    for kind, value in said.found.items():
        holder = holders.setdefault((gateway, phase, kind, place.kind, place.spot), key)
        if holder != key and kind not in _ADDS_UP:
            lost.append(f"{kind} of {place.kind} {place.spot} is that of the older policy {holder}")
            continue
        # The file has a policy of one kind at one target, and no two of one name.
        name = {"name": f"{key.name}:{kind}:{place.spot}", "namespace": key.namespace}
        entry = {"name": name, "target": place.form, "phase": phase, "policy": {kind: value}}
        fragments.append(Fragment(key=f"policy/traffic/{key}:{kind}:{place.spot}", place="policies", value=entry))
    return lost


def _status(
    policy: Json, said: Policies, ancestors: dict[ObjectKey, list[str]], unplaced: list[str], controller: str
) -> Json:
    """Return the status: an entry for each Gateway, and one that sums up what is attached to none."""
    found = []
    for gateway, faults in ancestors.items():
        reference = {"group": GATEWAY_API, "kind": "Gateway", "namespace": gateway.namespace, "name": gateway.name}
        conditions = [Condition("Accepted", True, "Valid", "Policy accepted")]
        if faults:
            reason = "PartiallyValid" if said.found else "Invalid"
            conditions = [Condition("Accepted", bool(said.found), reason, "; ".join(dict.fromkeys(faults)))]
        else:
            conditions.append(Condition("Attached", True, "Attached", "Attached to all targets"))
        found.append(_entry(reference, conditions, policy, controller))
    found.sort(key=lambda one: by_reference(one["ancestorRef"]))
    own = {"group": OWN, "kind": "GatewayPolicy", "name": "StatusSummary"}
    if unplaced or not found:
        words = "\n".join(unplaced) or "Policy is not attached: its selectors match nothing"
        found.append(_entry(own, [Condition("Attached", False, "Pending", words)], policy, controller))
    if len(found) > MOST_ANCESTORS:
        words = f"{len(found) - MOST_ANCESTORS + 1} more entries are left out"
        summary = [Condition("StatusSummarized", True, "StatusSummarized", words)]
        found = [*found[: MOST_ANCESTORS - 1], _entry(own, summary, policy, controller)]
    return {"ancestors": found}


def _entry(reference: Json, conditions: list[Condition], policy: Json, controller: str) -> Json:
    return {
        "ancestorRef": reference,
        "controllerName": controller,
        "conditions": [one.printed(generation(policy)) for one in conditions],
    }


def _why(snapshot: Snapshot, policy: Json, target: Json) -> str:
    namespace = key_of(policy).namespace
    about = f"{target['kind']} {namespace}/{target['name']}"
    if snapshot.find(GroupKind(target["group"], target["kind"]), namespace, target["name"]) is None:
        return f"Policy is not attached: {about} not found"
    return f"Policy is not attached: {about} is not attached to any Gateway"
