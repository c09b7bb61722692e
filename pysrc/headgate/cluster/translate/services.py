"""Services and their endpoints as the file's static discovery has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from headgate.cluster.snapshot import ENDPOINT_SLICE, SERVICE, ObjectIndex, ObjectKey, Snapshot, key_of
from headgate.cluster.translate.fragments import Fragment, Json

DOMAIN: Final = "cluster.local"
# https://kubernetes.io/docs/reference/labels-annotations-taints/#kubernetesioservice-name
_OWNER: Final = "kubernetes.io/service-name"


def host(key: ObjectKey) -> str:
    """Return the name that a Service has in the cluster's DNS."""
    return f"{key.name}.{key.namespace}.svc.{DOMAIN}"


def address(name: str, port: int) -> str:
    """Return `name:port`, with brackets around an IPv6 address."""
    return f"[{name}]:{port}" if ":" in name and not name.startswith("[") else f"{name}:{port}"


def cluster_host(snapshot: Snapshot, key: ObjectKey, port: int) -> str:
    """Return the name of a Service for what reaches it by name alone; ValueError if it has no such port."""
    service = snapshot.find(SERVICE, *key)
    if service is None:
        raise ValueError(f"Service {key} not found")
    if service["spec"].get("type") == "ExternalName" or port_of(service, port) is None:
        raise ValueError(f"Service {key} has no port {port}")
    return host(key)


def port_of(service: Json, port: int | None) -> Json | None:
    """Return what a Service says of one of its ports."""
    return next((one for one in service["spec"].get("ports") or () if one["port"] == port), None)


def discovered(snapshot: Snapshot, used: Iterable[ObjectKey]) -> list[Fragment]:
    """Return the Services that routes use and what serves them. A workload of several Services is there once."""
    found: list[Fragment] = []
    workloads: dict[str, Json] = {}
    for key in sorted(set(used)):
        service = snapshot.find(SERVICE, *key)
        if service is not None:
            found.append(
                Fragment(key=f"service/{key.namespace}/{host(key)}", place="services", value=_service(key, service))
            )
            for one in sorted(snapshot.indexed(_SLICES, key), key=key_of):
                _endpoints(key, service, one, workloads)
    found += [
        Fragment(key=f"workload/{uid}", place="workloads", value=value) for uid, value in sorted(workloads.items())
    ]
    return found


def _served(endpoint_slice: Json) -> Iterator[ObjectKey]:
    """Yield the Service that an EndpointSlice belongs to."""
    owner = (endpoint_slice["metadata"].get("labels") or {}).get(_OWNER)
    if owner and endpoint_slice.get("addressType") in ("IPv4", "IPv6"):
        yield ObjectKey(key_of(endpoint_slice).namespace, owner)


_SLICES: Final = ObjectIndex(ENDPOINT_SLICE, _served)


def _service(key: ObjectKey, service: Json) -> Json:
    ports = [one for one in service["spec"].get("ports") or () if one.get("protocol", "TCP") == "TCP"]
    found: dict[str, Any] = {
        "name": key.name,
        "namespace": key.namespace,
        "hostname": host(key),
        # Where each endpoint listens is said by the endpoint.
        "ports": {str(one["port"]): one["port"] for one in ports},
    }
    if protocols := {str(one["port"]): one["appProtocol"] for one in ports if one.get("appProtocol")}:
        found["appProtocols"] = protocols
    return found


def _endpoints(key: ObjectKey, service: Json, endpoint_slice: Json, workloads: dict[str, Json]) -> None:
    """Add the endpoints of one slice that are ready."""
    named = {one.get("name") or "": one["port"] for one in endpoint_slice.get("ports") or () if one.get("port")}
    ports = {
        str(one["port"]): named[one.get("name") or ""]
        for one in service["spec"].get("ports") or ()
        if (one.get("name") or "") in named and one.get("protocol", "TCP") == "TCP"
    }
    for endpoint in endpoint_slice.get("endpoints") or ():
        # Unset means ready (https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/#conditions).
        if (endpoint.get("conditions") or {}).get("ready") is False or not ports:
            continue
        target = endpoint.get("targetRef") or {}
        address = endpoint["addresses"][0]
        pod = target.get("kind") == "Pod"
        name = target["name"] if pod else address
        uid = f"pod/{key.namespace}/{name}" if pod else f"address/{key.namespace}/{address}"
        workload = workloads.setdefault(
            uid, {"uid": uid, "name": name, "namespace": key.namespace, "workloadIps": [], "services": {}}
        )
        if address not in workload["workloadIps"]:
            workload["workloadIps"].append(address)
        workload["services"].setdefault(f"{key.namespace}/{host(key)}", {}).update(ports)
        if endpoint.get("zone"):
            workload["locality"] = {"zone": endpoint["zone"]}
        if endpoint.get("nodeName"):
            workload["node"] = endpoint["nodeName"]
