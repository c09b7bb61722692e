"""`services` and `workloads` of the file as Services without selectors and their EndpointSlices.

https://kubernetes.io/docs/concepts/services-networking/service/#services-without-selectors
"""

from __future__ import annotations

import ipaddress
from typing import Any, Final

from headgate.cluster.convert.conversion import Conversion
from headgate.cluster.convert.said import SaidMap
from headgate.cluster.snapshot import ObjectKey
from headgate.cluster.translate.fragments import Json
from headgate.cluster.translate.services import host

_OWNER: Final = "kubernetes.io/service-name"


def services(of: Conversion, root: SaidMap) -> None:
    """Make the Services of a file, of those that have the names of Services, with what serves them."""
    known = {}
    for one in root.maps("services"):
        key = ObjectKey(one["namespace"], one["name"])
        of.objects.origin = (one.path, one.line)
        if one["hostname"] != host(key):
            of.losses.add(one, "hostname", f"Service {key} has the name {host(key)}")
            continue
        of.losses.rest(one, "name", "namespace", "hostname", "ports", "appProtocols")
        made = of.objects.add("Service", key.namespace, key.name, {"spec": {"ports": _ports(one)}})
        if made["metadata"]["name"] != key.name:
            of.losses.add(one, "name", "it is not a valid name of a Service")
        known[f"{key.namespace}/{one['hostname']}"] = key
    for one in root.maps("workloads"):
        _workload(of, one, known)


def _ports(value: SaidMap) -> list[Json]:
    protocols = value.get("appProtocols", {})
    return [
        {"name": f"p{port}", "port": int(port), "targetPort": target}
        | ({"appProtocol": protocols[port]} if port in protocols else {})
        for port, target in value.get("ports", {}).items()
    ]


def _workload(of: Conversion, value: SaidMap, known: dict[str, ObjectKey]) -> None:
    of.losses.rest(value, "uid", "name", "namespace", "workloadIps", "services", "locality", "node", "status")
    of.objects.origin = (value.path, value.line)
    addresses: list[str] = value.get("workloadIps", [])
    for name, ports in value.get("services", {}).items():
        key = known.get(name)
        if key is None or not addresses:
            of.losses.add(value, "services", f"there is no Service {name} with an address of this workload")
            continue
        endpoint: dict[str, Any] = {"conditions": {"ready": value.get("status", "healthy") == "healthy"}}
        endpoint |= {"targetRef": {"kind": "Pod", "namespace": value["namespace"], "name": value["name"]}}
        place = value.get("locality")
        if place is not None:
            zone = place.get("zone") if isinstance(place, SaidMap) else place
            endpoint |= {"zone": zone} if zone else {}
        endpoint |= {"nodeName": value["node"]} if "node" in value else {}
        for address in addresses:
            content = {
                "addressType": f"IPv{ipaddress.ip_address(address).version}",
                "endpoints": [{"addresses": [address], **endpoint}],
                "ports": [{"name": f"p{port}", "port": target} for port, target in ports.items()],
            }
            made = of.objects.add("EndpointSlice", key.namespace, f"{key.name}-{value['name']}", content)
            made["metadata"]["labels"] = {_OWNER: key.name}
