"""InferencePools: model servers of which an endpoint picker chooses one for each request.

https://gateway-api-inference-extension.sigs.k8s.io/api-types/inferencepool/

A pool is a service of the file whose endpoints are the pods, and a backend of it has the policy `inferenceRouting`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any, Final, NamedTuple

from headgate.cluster.snapshot import (
    GATEWAY_API,
    INFERENCE_POOL,
    POD,
    SERVICE,
    GroupKind,
    ObjectKey,
    Snapshot,
    generation,
    key_of,
    kind_of,
)
from headgate.cluster.translate.ancestors import by_reference
from headgate.cluster.translate.conditions import ObjectStatus, Unmet, holds, judged
from headgate.cluster.translate.fragments import Fragment, Json
from headgate.cluster.translate.grants import permitted
from headgate.cluster.translate.selectors import selects
from headgate.cluster.translate.services import DOMAIN, host, port_of

# Of the service that stands for a pool; each pod says where it listens.
PORT: Final = 80
_H2C: Final = ("kubernetes.io/h2c", "h2c")
_MOST_PARENTS: Final = 32


class InferencePoolTarget(NamedTuple):
    """`form`: the backend of the file. `picker`: the Service of the endpoint picker."""

    form: dict[str, Any]
    picker: ObjectKey


def pool_host(key: ObjectKey) -> str:
    """Return the host name of the service that stands for a pool."""
    return f"{key.name}.{key.namespace}.inference.{DOMAIN}"


def pool_target(snapshot: Snapshot, pool: Json) -> InferencePoolTarget | Unmet:
    """Return a pool as a backend, or why its endpoint picker cannot be asked: then nobody may pass it by."""
    key, reference = key_of(pool), pool["spec"]["endpointPickerRef"]
    if wrong := _faults(snapshot, key.namespace, reference):
        return Unmet("InvalidExtensionRef", "; ".join(wrong))
    picker = ObjectKey(key.namespace, reference["name"])
    place = {"service": {"name": f"{key.namespace}/{host(picker)}", "port": reference["port"]["number"]}}
    routing: Json = {"endpointPicker": place}
    if reference.get("failureMode") == "FailOpen":
        routing["failureMode"] = "failOpen"
    version = "HTTP/2" if pool["spec"].get("appProtocol") in _H2C else "HTTP/1.1"
    service = {"name": f"{key.namespace}/{pool_host(key)}", "port": PORT}
    policies = {"inferenceRouting": routing, "http": {"version": version}}
    return InferencePoolTarget({"service": service, "policies": policies}, picker)


def _faults(snapshot: Snapshot, namespace: str, reference: Json) -> list[str]:
    about = f"endpoint picker {namespace}/{reference['name']}"
    if GroupKind(reference.get("group") or "", reference.get("kind") or "Service") != SERVICE:
        return [f"{about}: {reference['kind']} is not supported, it must be a Service"]
    wrong = [] if reference.get("port") else [f"{about}: no port is given"]
    service = snapshot.find(SERVICE, namespace, reference["name"])
    if service is None:
        return [*wrong, f"{about}: Service not found"]
    if service["spec"].get("type") == "ExternalName":
        wrong.append(f"{about}: an ExternalName may lead out of the cluster")
    elif reference.get("port"):
        entry = port_of(service, reference["port"]["number"])
        if entry is None or entry.get("protocol", "TCP") != "TCP":
            wrong.append(f"{about}: Service has no TCP port {reference['port']['number']}")
    return wrong


def pools_named(snapshot: Snapshot, route: Json) -> set[ObjectKey]:
    """Return the pools that a route may refer to and does."""
    if not snapshot.kinds.get(INFERENCE_POOL):
        return set()
    found, namespace = set(), key_of(route).namespace
    for rule in route["spec"].get("rules") or ():
        for one in rule.get("backendRefs") or ():
            key = ObjectKey(one.get("namespace") or namespace, one["name"])
            if GroupKind(one.get("group", ""), one.get("kind", "")) == INFERENCE_POOL and (
                permitted(snapshot, kind_of(route), namespace, INFERENCE_POOL, key)
            ):
                found.add(key)
    return found


def pickers(snapshot: Snapshot, pools: Iterable[ObjectKey]) -> set[ObjectKey]:
    """Return the Services of the endpoint pickers of pools that can be used."""
    found = (snapshot.find(INFERENCE_POOL, *key) for key in pools)
    reached = (pool_target(snapshot, one) for one in found if one is not None)
    return {one.picker for one in reached if isinstance(one, InferencePoolTarget)}


def pool_fragments(snapshot: Snapshot, used: Iterable[ObjectKey]) -> list[Fragment]:
    """Return for each pool a service, its pods, and that its picker is called in TLS that proves nothing, which the
    extension demands: its pickers make certificates of their own."""
    found: list[Fragment] = []
    told: dict[ObjectKey, Fragment] = {}
    for key in sorted(set(used)):
        pool = snapshot.find(INFERENCE_POOL, *key)
        reached = None if pool is None else pool_target(snapshot, pool)
        if pool is None or not isinstance(reached, InferencePoolTarget):
            continue
        name = pool_host(key)
        entry = {"name": key.name, "namespace": key.namespace, "hostname": name, "ports": {str(PORT): PORT}}
        found.append(Fragment(key=f"service/{key.namespace}/{name}", place="services", value=entry))
        found += _pods(snapshot, key, pool)
        form = {
            "hostname": host(reached.picker), "namespace": key.namespace,
            "port": pool["spec"]["endpointPickerRef"]["port"]["number"],
        }  # fmt: skip
        policy = {
            "name": {"name": f"{key.name}:inference", "namespace": key.namespace},
            "target": {"backend": {"service": form}},
            "policy": {"backendTLS": {"insecure": True}},
        }
        fragment = Fragment(key=f"policy/backend/{key}:inference", place="policies", value=policy)
        told.setdefault(reached.picker, fragment)
    return [*found, *told.values()]


def _pods(snapshot: Snapshot, key: ObjectKey, pool: Json) -> Iterable[Fragment]:
    """Return an endpoint for each port of each pod that is ready."""
    ports = [one["number"] for one in pool["spec"]["targetPorts"]]
    for place, pod in sorted(snapshot.kinds.get(POD, {}).items()):
        labels = pod["metadata"].get("labels") or {}
        if place.namespace != key.namespace or not selects(pool["spec"]["selector"], labels) or not _ready(pod):
            continue
        for port in ports:
            # One pod may be in several pools, and serve on several ports.
            uid = f"pool/{key}/{place.name}/{port}"
            value = {
                "uid": uid, "name": place.name, "namespace": place.namespace, "workloadIps": [pod["status"]["podIP"]],
                "services": {f"{key.namespace}/{pool_host(key)}": {str(PORT): port}},
            }  # fmt: skip
            yield Fragment(key=f"workload/{uid}", place="workloads", value=value)


def _ready(pod: Json) -> bool:
    status = pod.get("status") or {}
    conditions = {one["type"]: one["status"] for one in status.get("conditions") or ()}
    leaving = pod["metadata"].get("deletionTimestamp") is not None
    return bool(status.get("podIP")) and conditions.get("Ready") == "True" and not leaving


def pool_statuses(
    snapshot: Snapshot, used: Mapping[ObjectKey, Set[ObjectKey]], controller: str
) -> list[ObjectStatus]:
    """Return the statuses of all pools. `used`: by Gateway the pools that its routes name."""
    statuses = []
    for pool in snapshot.oldest_first(INFERENCE_POOL):
        key, about = key_of(pool), generation(pool)
        reached = pool_target(snapshot, pool)
        conditions = [
            holds("Accepted", "Accepted", "Referenced by an HTTPRoute that the Gateway serves"),
            judged("ResolvedRefs", [reached] if isinstance(reached, Unmet) else [], "All references resolved"),
        ]
        parents: list[Json] = [
            {
                "parentRef": {"group": GATEWAY_API, "kind": "Gateway", "namespace": one.namespace, "name": one.name},
                "controllerName": controller,
                "conditions": [each.printed(about) for each in conditions],
            }
            for one, pools in used.items()
            if key in pools
        ]
        parents.sort(key=lambda one: by_reference(one["parentRef"]))
        statuses.append(ObjectStatus(INFERENCE_POOL, key, {"parents": parents[:_MOST_PARENTS]}))
    return statuses
