"""Services and workloads of the file (static discovery)."""

from __future__ import annotations

from typing import Final

from headgate.config.shape.scalars import STRING, STRINGS, UINT16, UINT32
from headgate.config.shape.vocabulary import (
    Anything,
    MapOf,
    Object,
    Union,
    WordChoice,
    later,
    maybe,
    optional,
    required,
)

# Ports are keys of maps: text in JSON, numbers in YAML.
PORTS: Final = MapOf(UINT16)
SERVICE_ENTRY: Final = Object(
    "DiscoveredService",
    {
        "name": required(STRING),
        "namespace": required(STRING),
        "hostname": required(STRING),
        "vips": optional(STRINGS),
        "ports": optional(PORTS),
        "appProtocols": optional(MapOf(STRING)),
        "loadBalancer": later(maybe(Anything())),
        "endpoints": later(optional(Anything()), {}),
        "subjectAltNames": later(optional(STRINGS), []),
        "waypoint": later(maybe(Anything())),
        "ipFamilies": maybe(STRING),
    },
)
# What says nothing about where requests go is kept for the dump.
LABELS: Final = (
    "serviceAccount", "trustDomain", "workloadName", "workloadType", "canonicalName", "canonicalRevision",
    "node", "clusterId", "network",
)  # fmt: skip
WORKLOAD_ENTRY: Final = Object(
    "DiscoveredWorkload",
    {
        "uid": required(STRING),
        "name": required(STRING),
        "namespace": required(STRING),
        "workloadIps": optional(STRINGS),
        "hostname": optional(STRING),
        "services": optional(MapOf(PORTS)),
        "capacity": optional(UINT32),
        "status": optional(WordChoice("WorkloadStatus", ("healthy", "unhealthy"))),
        "locality": maybe(Union("Locality", (STRING, Anything()))),
        "protocol": maybe(WordChoice("WorkloadProtocol", ("none", "HBONE"), ("HBONE",), {"TCP": "none"})),
        "networkMode": maybe(WordChoice("NetworkMode", ("standard", "hostNetwork"))),
        "authorizationPolicies": later(optional(STRINGS), []),
        **{label: maybe(STRING) for label in LABELS},
    },
)
