"""Services, workloads and endpoint state as JSON of the dump."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from headgate.document.fields import show_milliseconds
from headgate.ir.service import Service, Workload

Json = dict[str, Any]
State = Mapping[str, Any] | None
FRESH: Final[Mapping[str, Any]] = {
    "health": 1.0,
    "latency": 0.0,
    "pending": 0,
    "total": 0,
    "failures": 0,
    "ejected": 0,
    "left": None,
}


def info(state: State) -> Json:
    """Return the state of an endpoint. An unknown endpoint has the state of a new one."""
    known = FRESH if state is None else state
    left = known["left"]
    return {
        "health": round(known["health"], 6),
        "requestLatency": round(known["latency"], 6),
        "pendingRequests": known["pending"],
        "totalRequests": known["total"],
        "consecutiveFailures": known["failures"],
        "timesEjected": known["ejected"],
        "evictedUntil": None if left is None else show_milliseconds(max(int(left * 1000), 1)),
    }


def group(endpoints: Mapping[str, tuple[Json, int, State]]) -> Json:
    """Return one priority group: endpoints in use and ejected ones, by key, each with its capacity."""
    found: Json = {"active": {}, "rejected": {}}
    for key, (shown, capacity, state) in sorted(endpoints.items()):
        side = "active" if state is None or state["left"] is None else "rejected"
        found[side][key] = {"endpoint": shown, "info": info(state), "capacity": capacity}
    return found


def service(one: Service, workloads: tuple[Workload, ...], state: Callable[[str, str], State]) -> Json:
    """Return a service with the endpoints of all its ports."""
    endpoints = {}
    for workload in workloads:
        ports = dict(workload.services).get(one.key)
        if ports is not None:
            shown = {
                "workloadUid": workload.uid,
                "port": {str(port): target for port, target in ports or one.ports},
                "status": _status(workload),
            }
            endpoints[workload.uid] = (shown, workload.capacity, state(f"service/{one.key}", workload.uid))
    found: Json = {
        "name": one.name,
        "namespace": one.namespace,
        "hostname": one.hostname,
        "vips": list(one.vips),
        "ports": {str(port): target for port, target in one.ports},
        "endpoints": [group(endpoints)],
    }
    if one.app_protocols:
        found["appProtocols"] = {str(port): protocol for port, protocol in one.app_protocols}
    if one.alt_names:
        found["subjectAltNames"] = list(one.alt_names)
    if one.balancing is not None:
        found["loadBalancer"] = {
            "mode": one.balancing.mode,
            "routingPreferences": list(one.balancing.scopes),
            "healthPolicy": "allowAll" if one.balancing.all_healthy else "onlyHealthy",
        }
    return found


def _status(workload: Workload) -> str:
    return "healthy" if workload.healthy else "unhealthy"


def workload(one: Workload) -> Json:
    """Return a workload."""
    found: Json = {"workloadIps": list(one.addresses), "uid": one.uid, "name": one.name, "namespace": one.namespace}
    if one.hostname:
        found["hostname"] = one.hostname
    found.update(one.labels)
    if one.locality:
        found["locality"] = one.locality
    if one.hbone:
        found["protocol"] = "HBONE"
    found["services"] = {key: {str(port): target for port, target in ports} for key, ports in one.services}
    found["status"] = _status(one)
    found["capacity"] = one.capacity
    return found
