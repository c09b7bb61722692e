"""The same cases for Headgate and Envoy."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

BODY: Final = b"x" * 16384
FILTERS: Final = "type.googleapis.com/envoy.extensions.filters.http."
ADDRESS: Final = "127.0.0.1"


class Ports(NamedTuple):
    """Where the proxy listens, and where its backend, the service and a Redis server do."""

    own: int
    backend: int
    service: int
    redis: int = 0


class ServiceCase(NamedTuple):
    """What is asked, and how the two are told to ask a service about it.

    `ours`: policies, which get the service's host. `theirs`: fields of an HTTP filter, `kind` its type ("": Envoy has no such thing).
    `base`: the case that is the same without a service. `log`: the format of the access log, "" for none; `traced`: the share of
    requests with spans, which are posted to the backend. `limit`: of requests, by this process ("own") or by all that share a
    Redis server ("share").
    """

    name: str
    base: str
    ours: dict[str, Any]
    kind: str = ""
    theirs: dict[str, Any] | None = None
    path: str = "/small"
    body: bytes | None = None
    log: str = "text"
    traced: float = 0.0
    limit: str = ""


GRPC: Final = {"envoy_grpc": {"cluster_name": "service"}, "timeout": "10s"}
CACHE: Final = {"key": ["request.headers['authorization']"], "ttl": "duration('1h')"}
PATH: Final = {"entries": [{"key": "path", "value": "request.path"}]}
HEADS: Final = {"request_header_mode": "SEND", "response_header_mode": "SEND"}
STREAMED: Final = {
    "request_body_mode": "FULL_DUPLEX_STREAMED",
    "response_body_mode": "FULL_DUPLEX_STREAMED",
    "request_trailer_mode": "SEND",
    "response_trailer_mode": "SEND",
}


def _processed(body: str) -> dict[str, Any]:
    return {"extProc": {"processingOptions": {"requestBodyMode": body, "responseBodyMode": body}}}


def _processor(mode: dict[str, str]) -> dict[str, Any]:
    return {"message_timeout": "10s", "processing_mode": mode, "grpc_service": GRPC}


CASES: Final = (
    ServiceCase("plain", "", {}, "none"),
    ServiceCase("authz", "plain", {"extAuthz": {"protocol": {"grpc": {}}}}, "ext_authz.v3.ExtAuthz",
                {"transport_api_version": "V3", "grpc_service": GRPC}),
    ServiceCase("authz-cached", "plain", {"extAuthz": {"protocol": {"grpc": {}}, "cache": CACHE}}),
    ServiceCase("limit", "plain", {"remoteRateLimit": {"domain": "d", "descriptors": [PATH]}}, "ratelimit.v3.RateLimit",
                {"domain": "d", "timeout": "10s", "enable_x_ratelimit_headers": "DRAFT_VERSION_03",
                 "rate_limit_service": {"transport_api_version": "V3", "grpc_service": GRPC}}),
    ServiceCase("proc-headers", "plain", _processed("none"), "ext_proc.v3.ExternalProcessor", _processor(HEADS)),
    ServiceCase("plain-16k", "", {}, "none", None, "/16k", BODY),
    ServiceCase("proc-body", "plain-16k", _processed("fullDuplexStreamed"), "ext_proc.v3.ExternalProcessor",
                _processor({**HEADS, **STREAMED}), "/16k", BODY),
    ServiceCase("limit-own", "plain", {}, limit="own"),
    ServiceCase("limit-share", "limit-own", {}, limit="share"),
    ServiceCase("quiet", "", {}, log=""),
    ServiceCase("log-json", "quiet", {}, log="json"),
    ServiceCase("traced-1", "quiet", {}, log="", traced=0.01),
    ServiceCase("traced", "quiet", {}, log="", traced=1.0),
)  # fmt: skip
# Never used up, and a tenth of it, which a lease is, lasts a second at 10,000 requests a second.
LIMIT: Final = [{"requests": 100_000, "unit": "Seconds"}]


def ours(case: ServiceCase, ports: Ports) -> str:
    """Return Headgate's configuration."""
    policies: dict[str, Any] = {name: {"host": f"{ADDRESS}:{ports.service}", **fields} for name, fields in case.ours.items()}
    config: dict[str, Any] = {"logging": {"level": "info" if case.log else "warn", "format": case.log or "text"}}
    if case.limit:
        policies["localRateLimit"] = LIMIT
    if case.limit == "share":
        config["sharedState"] = {"redis": {"url": f"redis://{ADDRESS}:{ports.redis}", "mode": "share"}}
    frontend: dict[str, Any] = {}
    if case.traced:
        place = f"{ADDRESS}:{ports.backend}"
        frontend["tracing"] = {"host": place, "protocol": "http", "path": "/small", "randomSampling": case.traced}
    route = {"name": "all", "policies": policies, "backends": [{"host": f"{ADDRESS}:{ports.backend}"}]}
    binds = [{"port": ports.own, "listeners": [{"routes": [route]}]}]
    return json.dumps({"config": config, "frontendPolicies": frontend, "binds": binds})


def _address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": ADDRESS, "port_value": port}}


def _cluster(name: str, port: int, **more: Any) -> dict[str, Any]:
    endpoint = {"endpoint": {"address": _address(port)}}
    load = {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]}
    return {"name": name, "type": "STATIC", "load_assignment": load, **more}


def theirs(case: ServiceCase, ports: Ports) -> str:
    """Return Envoy's configuration. It writes its access log as well, to /dev/null."""
    filters: list[dict[str, Any]] = []
    if case.theirs is not None:
        filters.append({"name": "asked", "typed_config": {"@type": FILTERS + case.kind, **case.theirs}})
    filters.append({"name": "router", "typed_config": {"@type": FILTERS + "router.v3.Router"}})
    counted = {"actions": [{"request_headers": {"header_name": ":path", "descriptor_key": "path"}}]}
    route = {"match": {"prefix": "/"}, "route": {"cluster": "backend", "timeout": "0s", "rate_limits": [counted]}}
    log = {"@type": "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog", "path": "/dev/null"}
    manager = {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "bench",
        "access_log": [{"name": "file", "typed_config": log}],
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
        "http_filters": filters,
    }
    chain = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
    options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    http2 = {options: {"@type": f"type.googleapis.com/{options}", "explicit_http_config": {"http2_protocol_options": {}}}}
    clusters = [_cluster("backend", ports.backend), _cluster("service", ports.service, typed_extension_protocol_options=http2)]
    return json.dumps({
        "static_resources": {"listeners": [{"address": _address(ports.own), "filter_chains": [chain]}], "clusters": clusters},
    })  # fmt: skip
