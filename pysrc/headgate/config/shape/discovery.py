"""Services and workloads of the file (static discovery)."""

from __future__ import annotations

from typing import Final

from headgate.config.shape.scalars import STRING, STRINGS, UINT16, UINT32
from headgate.config.shape.vocabulary import (
    Anything,
    ListOf,
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
HEALTH: Final = WordChoice("WorkloadStatus", ("healthy", "unhealthy"))
SERVICE_ENDPOINT: Final = Object(
    "ServiceEndpoint",
    {"workloadUid": required(STRING), "port": optional(PORTS), "status": optional(HEALTH)},
)
SCOPES: Final = ("region", "zone", "subzone", "node", "cluster", "network")
LOAD_BALANCER: Final = Object(
    "LoadBalancer",
    {
        "mode": optional(
            WordChoice("LoadBalancerMode", ("standard", "strict", "failover", "passthrough"), ("passthrough",))
        ),
        "routingPreferences": optional(ListOf(WordChoice("LoadBalancerScope", SCOPES))),
        "healthPolicy": optional(WordChoice("LoadBalancerHealth", ("onlyHealthy", "allowAll"))),
    },
)
SERVICE_ENTRY: Final = Object(
    "DiscoveredService",
    {
        "name": required(STRING),
        "namespace": required(STRING),
        "hostname": required(STRING),
        "vips": optional(STRINGS),
        "ports": optional(PORTS),
        "appProtocols": optional(MapOf(STRING)),
        "loadBalancer": maybe(LOAD_BALANCER),
        "endpoints": optional(MapOf(SERVICE_ENDPOINT)),
        "subjectAltNames": optional(STRINGS),
        "waypoint": later(maybe(Anything())),
        "ipFamilies": maybe(STRING),
    },
)
# What says nothing about where requests go is kept for the dump.
LABELS: Final = (
    "serviceAccount", "trustDomain", "workloadName", "workloadType", "canonicalName", "canonicalRevision",
    "node", "clusterId", "network",
)  # fmt: skip
LOCALITY: Final = Union(
    "Locality",
    (STRING, Object("LocalityParts", {"region": maybe(STRING), "zone": maybe(STRING), "subzone": maybe(STRING)})),
)
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
        "status": optional(HEALTH),
        "locality": maybe(LOCALITY),
        "protocol": maybe(WordChoice("WorkloadProtocol", ("none", "HBONE"), aliases={"TCP": "none"})),
        "networkMode": maybe(WordChoice("NetworkMode", ("standard", "hostNetwork"))),
        "authorizationPolicies": later(optional(STRINGS), []),
        **{label: maybe(STRING) for label in LABELS},
    },
)
