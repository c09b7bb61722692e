"""Addresses of a Gateway from its Service."""

from __future__ import annotations

from typing import Any, Final

from headgate.cluster.deploy.objects import wanted_addresses

Json = dict[str, Any]
# Of `status.addresses` (the CRD of the Gateway API).
MOST: Final = 16


def addresses_of(gateway: Json, service: Json | None) -> tuple[Json, ...]:
    """Return what stands in `status.addresses`: where the load balancer is, else where the cluster finds it."""
    if service is None:
        return ()
    spec = service.get("spec") or {}
    balancer = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    found = [_ingress(one) for one in balancer if one.get("hostname") or one.get("ip")]
    if not found:
        own = spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else [])
        found = [("IPAddress", one) for one in own if one != "None"]
    if spec.get("type") != "LoadBalancer":
        found += wanted_addresses(gateway)
    return tuple({"type": kind, "value": value} for kind, value in dict.fromkeys(found))[:MOST]


def _ingress(one: Json) -> tuple[str, str]:
    return ("Hostname", one["hostname"]) if one.get("hostname") else ("IPAddress", one["ip"])
