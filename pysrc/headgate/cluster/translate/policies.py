"""GatewayPolicies: which Gateways they reach, as targeted policies of the file, and their statuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from headgate.cluster.snapshot import (
    GATEWAY_API,
    INFERENCE_POOL,
    OWN,
    GroupKind,
    ObjectKey,
    Snapshot,
    generation,
    key_of,
)
from headgate.cluster.translate.ancestors import MOST_ANCESTORS, by_reference
from headgate.cluster.translate.calls import OF_ROUTES, calls, unsuited
from headgate.cluster.translate.checked import faults_of_port
from headgate.cluster.translate.client_side import OF_LISTENERS, REFUSED, SHARED, client_side
from headgate.cluster.translate.conditions import Condition, ObjectStatus
from headgate.cluster.translate.fragments import Called, Fragment, Json
from headgate.cluster.translate.places import (
    CALLED,
    Place,
    Reach,
    called,
    called_from,
    is_open,
    places,
)
from headgate.cluster.translate.selectors import selects
from headgate.cluster.translate.traffic import CLOSED, traffic
from headgate.config.targeted import PROTECTING

POLICY: Final = GroupKind(OWN, "GatewayPolicy")
# Of several policies of these kinds all hold.
_ADDS_UP: Final = frozenset(("authorization", "mcpAuthorization"))
_FRONTEND: Final = "frontend"
_TUNNEL: Final = "backendTunnel"
# Policies of requests that can be those of calls to a pool.
_OF_POOLS: Final = ("authorization", "extAuthz", "transformations", "requestHeaderModifier", "responseHeaderModifier")


class PolicyPart(NamedTuple):
    """A policy of the file. `phase`: `gateway`, `route`, `backend` or `frontend`."""

    phase: str
    kind: str
    value: Any


class TranslatedPolicy(NamedTuple):
    """A translated policy. `faults`: what could not be translated. `used` and `backends`: Services and GatewayBackends
    that it calls. `overrides`: policies of more specific targets do not change it.
    """

    parts: list[PolicyPart]
    faults: list[str]
    used: frozenset[ObjectKey]
    backends: frozenset[ObjectKey]
    overrides: bool = False


# Which policy says a kind at a target.
Holders = dict[tuple[object, ...], ObjectKey]


class Attached(NamedTuple):
    """For each Gateway fragments, and the Services and GatewayBackends that they call; the statuses of all policies."""

    fragments: dict[ObjectKey, list[Fragment]]
    used: dict[ObjectKey, set[ObjectKey]]
    backends: dict[ObjectKey, set[ObjectKey]]
    statuses: list[ObjectStatus]


def policies(snapshot: Snapshot, reached: list[Reach], controller: str, everywhere: str = "") -> Attached:
    """Attach all policies. If two set the same for one target, the oldest applies. `everywhere`: a namespace
    whose policies are about objects of all namespaces."""
    found = _Attaching(reached)
    known = [
        (
            policy,
            snapshot.remembered(("translated policy", key_of(policy)), _translated, policy),
            _targets(snapshot, policy, everywhere),
        )
        for policy in snapshot.oldest_first(POLICY)
    ]
    # Those of what is called come last: other policies may call it.
    for policy, translated, targets in sorted(known, key=lambda one: _about_calls(one[2])):
        if _about_calls(targets):
            found.look_further()
        found.attach(snapshot, policy, translated, targets)
    statuses = []
    for policy, translated, targets in known:
        key = key_of(policy)
        unplaced = [target for index, target in enumerate(targets) if (key, index) not in found.placed]
        why = [_why(snapshot, one) for one in unplaced]
        status = _status(policy, translated, found.ancestors.get(key, {}), why, controller)
        statuses.append(ObjectStatus(POLICY, key, status))
    return Attached(found.fragments, found.used, found.backends, statuses)


def _about_calls(targets: list[Json]) -> bool:
    return any(GroupKind(one["group"], one["kind"]) in CALLED for one in targets)


def _translated(snapshot: Snapshot, policy: Json) -> TranslatedPolicy:
    """Translate a policy, wherever it is attached."""
    spec, namespace = policy["spec"], key_of(policy).namespace
    early = spec.get("traffic", {}).get("phase") == "PreRouting"
    asked = traffic(snapshot, namespace, spec.get("traffic") or {})
    # `ai` is another name of `backend.ai`.
    answered = calls(snapshot, namespace, (spec.get("backend") or {}) | ({"ai": spec["ai"]} if "ai" in spec else {}))
    # As the file has it: `route`, or `gateway` for what runs before a route is known.
    parts = [PolicyPart("gateway" if early else "route", kind, value) for kind, value in asked.found.items()]
    parts += [
        PolicyPart("route" if kind in OF_ROUTES else "backend", kind, value) for kind, value in answered.found.items()
    ]
    front = client_side(snapshot, namespace, spec.get("frontend") or {})
    parts += [PolicyPart(_FRONTEND, kind, value) for kind, value in front.found.items()]
    faults = [*asked.faults, *answered.faults, *front.faults]
    used, backends = asked.used | answered.used | front.used, asked.backends | answered.backends | front.backends
    overrides = (spec.get("strategy") or {}).get("inheritance") == "Override"
    return TranslatedPolicy(parts, faults, used, backends, overrides)


class _Attaching:
    """Policies while they are attached. `ancestors`: by policy, for each Gateway what is not in force there.
    `placed`: targets, by policy and number, that are somewhere."""

    def __init__(self, reached: list[Reach]) -> None:
        self._reached = reached
        self._holders: Holders = {}
        self._looked = False
        self.fragments: dict[ObjectKey, list[Fragment]] = {one.gateway: [] for one in reached}
        self.used: dict[ObjectKey, set[ObjectKey]] = {one.gateway: set() for one in reached}
        self.backends: dict[ObjectKey, set[ObjectKey]] = {one.gateway: set() for one in reached}
        self.ancestors: dict[ObjectKey, dict[ObjectKey, list[str]]] = {}
        self.placed: set[tuple[ObjectKey, int]] = set()

    def look_further(self) -> None:
        """Also treat what the policies so far call as reached."""
        if self._looked:
            return
        self._looked = True
        further = []
        for one in self._reached:
            more = called(self.fragments[one.gateway])
            both = Called(one.called.services | more.services, one.called.backends | more.backends)
            further.append(one._replace(called=both))
        self._reached = further

    def attach(self, snapshot: Snapshot, policy: Json, translated: TranslatedPolicy, targets: list[Json]) -> None:
        key = key_of(policy)
        for gateway in self._reached:
            owner = gateway.gateway
            for index, target in enumerate(targets):
                for place in places(snapshot, target["namespace"], target, gateway):
                    self.placed.add((key, index))
                    self.used[owner] |= translated.used
                    self.backends[owner] |= translated.backends
                    told = self.ancestors.setdefault(key, {}).setdefault(owner, list(translated.faults))
                    told += self._put(key, translated, owner, place)
                    told += _taken_away(snapshot, translated, place, gateway)

    def _put(self, key: ObjectKey, translated: TranslatedPolicy, gateway: ObjectKey, place: Place) -> list[str]:
        """Add the fragments of a policy for one target. Return what is not in force there."""
        lost: list[str] = []
        for part in _suited(translated.parts, place, lost):
            phase, kind, value = part
            holder = self._holders.setdefault((gateway, phase, kind, place.kind, place.spot), key)
            if holder != key and kind not in _ADDS_UP:
                lost.append(f"{kind} of {place.kind} {place.spot} is that of the older policy {holder}")
                continue
            # The file has a policy of one kind at one target, and no two of one name.
            section = phase if phase in ("backend", _FRONTEND) else "traffic"
            told = kind if section == "traffic" else f"{phase}.{kind}"
            spot = f"{place.spot}@{place.listener}" if place.listener else place.spot
            name = {"name": f"{key.name}:{told}:{spot}", "namespace": key.namespace}
            entry: Json = {"name": name, "target": place.form if phase != _FRONTEND else place.of_connections}
            entry |= {_FRONTEND: {kind: value}} if phase == _FRONTEND else {"phase": phase, "policy": {kind: value}}
            if translated.overrides and section == "traffic":
                entry["inheritance"] = "override"
            elif translated.overrides:
                lost.append(f"{place.kind} {place.spot}: strategy is for targets whose requests others may target, too")
            order = place.order if phase != _FRONTEND else place.rank
            fragment = Fragment(
                key=f"policy/{section}/{key}:{kind}:{spot}", place="policies", value=entry, order=order
            )
            self.fragments[gateway].append(fragment)
        return lost


def _taken_away(snapshot: Snapshot, translated: TranslatedPolicy, place: Place, reached: Reach) -> Iterator[str]:
    """Yield the backends of a target that are refused because they could bypass a policy."""
    if place.backend or not any(one.kind == _TUNNEL for one in translated.parts):
        return
    for name in sorted(called_from(place, reached)):
        if is_open(snapshot, name):
            yield f"{place.kind} {place.spot}: {unsuited(_TUNNEL, {}, 'dynamic')}: GatewayBackend {name} is refused"


def _suited(parts: list[PolicyPart], place: Place, lost: list[str]) -> Iterator[PolicyPart]:
    """Yield the parts of a policy for one target. If a protecting part does not apply, nothing passes.
    `lost`: takes what is not in force."""
    closed = False
    rules: list[Json] = []
    for part in parts:
        phase, kind, value = part
        wrong = _told_of_port(kind, value, place) if phase == _FRONTEND and place.narrow else ""
        if wrong:
            lost.append(f"{place.kind} {place.spot}: {wrong}")
            if kind == "networkAuthorization":
                # Of what cannot be said of the port alone, at least nobody comes in there.
                yield PolicyPart("gateway", "authorization", {"rules": [CLOSED]})
            continue
        if phase not in ("backend", _FRONTEND) and place.kind == INFERENCE_POOL.kind:
            if kind == "timeout":
                part = PolicyPart("backend", "http", value)
            elif kind in _OF_POOLS and "conditional" not in value:
                part = PolicyPart("backend", kind, value)
            else:
                lost.append(f"{kind} is not for an InferencePool")
                closed = closed or kind in PROTECTING
                continue
        why = unsuited(kind, value, place.backend) if part.phase == "backend" else None
        if kind in OF_ROUTES and place.backend:
            why = f"{kind} is for routes, or stands in the GatewayBackend"
        if why is not None:
            lost.append(f"{place.kind} {place.spot}: {why}")
            closed = closed or kind in PROTECTING or (kind == "ai" and "promptGuard" in value)
            continue
        if part.phase == "backend" and kind == "authorization":
            rules += part.value["rules"]
            continue
        yield part
    if closed or rules:
        yield PolicyPart("backend", "authorization", {"rules": [*rules, *([CLOSED] if closed else ())]})


def _told_of_port(kind: str, value: Any, place: Place) -> str:
    """Return why a part of `frontend` cannot be set for one port or listener, "" if it can."""
    if "port" not in place.form["gateway"]:
        if kind not in OF_LISTENERS:
            return f"frontend.{kind} is for a whole Gateway or a port"
        if place.alone is None:
            return f"frontend.{kind} of a {SHARED} is refused: {REFUSED[kind, SHARED]}"
    return "; ".join(faults_of_port(kind, value))


def _targets(snapshot: Snapshot, policy: Json, everywhere: str) -> list[Json]:
    """Return the targets of a policy by namespace and name. `everywhere`: see policies()."""
    namespace, spec = key_of(policy).namespace, policy["spec"]
    in_all = namespace == everywhere
    found: list[Json] = []
    for one in spec.get("targetRefs") or ():
        known = snapshot.kinds.get(GroupKind(one["group"], one["kind"]), {}) if in_all else {}
        spaces = sorted(key.namespace for key in known if key.name == one["name"])
        found += [one | {"namespace": space} for space in spaces or [namespace]]
    for one in spec.get("targetSelectors") or ():
        said = {name: value for name, value in one.items() if name != "matchLabels"}
        for key, chosen in sorted(snapshot.kinds.get(GroupKind(one["group"], one["kind"]), {}).items()):
            inside = in_all or key.namespace == namespace
            if inside and selects(one, chosen["metadata"].get("labels") or {}):
                found.append(said | {"name": key.name, "namespace": key.namespace})
    return found


def _status(
    policy: Json,
    translated: TranslatedPolicy,
    ancestors: dict[ObjectKey, list[str]],
    unplaced: list[str],
    controller: str,
) -> Json:
    """Return the status: an entry for each Gateway, and one that sums up what is attached to none."""
    found = []
    for gateway, faults in ancestors.items():
        reference = {"group": GATEWAY_API, "kind": "Gateway", "namespace": gateway.namespace, "name": gateway.name}
        conditions = [Condition("Accepted", True, "Valid", "Policy accepted")]
        if faults:
            reason = "PartiallyValid" if translated.parts else "Invalid"
            conditions = [Condition("Accepted", bool(translated.parts), reason, "; ".join(dict.fromkeys(faults)))]
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


def _why(snapshot: Snapshot, target: Json) -> str:
    namespace = target["namespace"]
    about = f"{target['kind']} {namespace}/{target['name']}"
    if snapshot.find(GroupKind(target["group"], target["kind"]), namespace, target["name"]) is None:
        return f"Policy is not attached: {about} not found"
    return f"Policy is not attached: {about} is not attached to any Gateway"
