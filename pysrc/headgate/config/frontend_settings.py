"""`frontendPolicies` (and its deprecated form in `config.logging`) to Frontend."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from headgate.config import policy
from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy.expression import check, check_map
from headgate.config.ports import DEFAULT, GATEWAY
from headgate.config.process_settings import keepalives
from headgate.errors import Problem
from headgate.ir.endpoint import Keepalives
from headgate.ir.frontend import STALL_TIMEOUT_MS, AccessLog, Frontend, ProxyProtocol
from headgate.ir.policy.ext_authz import ExtAuthz
from headgate.ir.telemetry import OtlpMetrics, Tracing

# Older names of parts.
_SAME: Final = {"proxy": "proxyProtocol", "logging": "accessLog"}
# Parts with an older form in `config`.
_OLDER: Final = (("accessLog", "logging"), ("tracing", "tracing"))
# What of each part a port may not have for itself.
_OF_ALL: Final = {
    "http": ("maxBufferSize", "maxModelResponseSize", "pathNormalization"),
    "accessLog": ("database",),
}
# Variables that name a collector of traces; the first that is set holds.
COLLECTORS: Final = ("OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


class PortSide(NamedTuple):
    """Settings of client connections of one port, with what all ports have. `own`: the parts that it has for itself."""

    record: Record
    own: frozenset[str]


class ClientSide(NamedTuple):
    """Settings of client connections: of all ports, and of those ports that have others."""

    whole: Record
    ports: dict[int, PortSide]


def attached(context: Context, record: Record, policies: list[Record]) -> ClientSide:
    """Return `frontendPolicies` with what `frontend` of policies of the gateway and its ports adds. Of each part the
    first counts, and what is said of a port before what is said of all."""
    found = {_SAME.get(kind, kind): value for kind, value in record.values.items()}
    ports: dict[int, dict[str, Any]] = {}
    for one in policies:
        if "frontend" not in one:
            continue
        target = one["target"].get("gateway")
        names = {} if target is None else {name: said for name, said in target.values.items() if said is not None}
        port = names.pop("port", None)
        if names != {"gatewayName": DEFAULT, "gatewayNamespace": DEFAULT}:
            message = f"frontend is for the whole gateway {GATEWAY} or one of its ports"
            context.fault(Problem.VALUE, one, "target", message)
        place = found if port is None else ports.setdefault(port, {})
        for kind, value in one["frontend"].values.items():
            if port is not None:
                _check_of_port(context, one["frontend"], kind, value)
            place.setdefault(_SAME.get(kind, kind), value)
    whole = Record(record.node, record.path, found)
    return ClientSide(whole, {port: _port_side(whole, own) for port, own in ports.items()})


def _port_side(whole: Record, own: dict[str, Any]) -> PortSide:
    """Return what a port has. The request log is that of the gateway, also of ports with an access log of their own."""
    log, stored = own.get("accessLog"), (whole.get("accessLog") or {}).get("database")
    more = {} if log is None else {"accessLog": Record(log.node, log.path, {**log.values, "database": stored})}
    return PortSide(Record(whole.node, whole.path, {**whole.values, **own, **more}), frozenset(own))


def _check_of_port(context: Context, record: Record, kind: str, value: Any) -> None:
    """Report what all ports have together."""
    for name in _OF_ALL.get(_SAME.get(kind, kind), ()) if value is not None else ():
        if value.get(name) is not None:
            context.fault(Problem.VALUE, value, name, "is for the whole gateway, not for one port")
    if kind == "connect" and value is not None and value.get("mode") == "route":
        context.fault(Problem.VALUE, value, "mode", "route is for the whole gateway, not for one port")


def frontend(context: Context, record: Record, process: Record, own: frozenset[str] = frozenset()) -> Frontend:
    """Return the settings of `frontendPolicies`; `process` is `config`, which has older forms of some. They do not hold
    for what a port has for itself (`own`)."""
    process = _without(process, *(older for part, older in _OLDER if part in own))
    http = record.get("http") or Record(record.node, record.path, {})
    tls, tcp, rules, connect = (record.get(key) for key in ("tls", "tcp", "networkAuthorization", "connect"))
    return Frontend(
        max_buffer_bytes=http.get("maxBufferSize", 2_097_152),
        max_model_response_bytes=http.get("maxModelResponseSize"),
        http1_idle_timeout_ms=http.get("http1IdleTimeout", 600_000),
        http1_max_headers=http.get("http1MaxHeaders"),
        max_connection_duration_ms=http.get("maxConnectionDuration"),
        http2_window=http.get("http2WindowSize"),
        http2_connection_window=http.get("http2ConnectionWindowSize"),
        http2_frame=http.get("http2FrameSize"),
        http2_max_header=http.get("http2MaxHeaderSize"),
        http2_max_fields=http.get("http2MaxHeaders"),
        http2_streams=http.get("http2MaxConcurrentStreams"),
        http2_continuations=http.get("http2MaxContinuations"),
        http2_resets=http.get("http2MaxResets"),
        http2_control_frames=http.get("http2MaxControlFrames"),
        http2_keepalive_ms=http.get("http2KeepaliveInterval") or None,
        http2_keepalive_timeout_ms=_some_time(context, http, "http2KeepaliveTimeout", 20_000),
        stall_timeout_ms=_some_time(context, http, "stallTimeout", STALL_TIMEOUT_MS),
        keeps_underscores=http.get("headersWithUnderscores") == "keep",
        keeps_header_case=http.get("http1HeaderCase") == "preserve",
        path_normalization=http.get("pathNormalization", "resolve"),
        request_ids=http.get("requestId", "off"),
        tls_handshake_timeout_ms=tls.get("handshakeTimeout", 15_000) if tls is not None else 15_000,
        keepalives=Keepalives() if tcp is None else keepalives(tcp["keepalives"]),
        network_authorization=None if rules is None else policy.authorization.parse(context, rules, "network"),
        network_ext_authz=_asked(context, record.get("networkExtAuthz")),
        proxy_protocol=_proxy_protocol(record.get("proxyProtocol") or record.get("proxy")),
        connect="deny" if connect is None else connect.get("mode", "deny"),
        access_log=_access_log(context, record, process.get("logging")),
        tracing=_tracing(context, record.get("tracing"), process),
        metrics=_metrics(context, process),
    )


def _without(record: Record, *names: str) -> Record:
    left = {name: value for name, value in record.values.items() if name not in names}
    return Record(record.node, record.path, left) if names else record


def _some_time(context: Context, record: Record, key: str, default_ms: int) -> int:
    """Return a duration in milliseconds. 0s is refused: it would end every connection, or be taken for no limit."""
    found: int | None = record.get(key)
    if found == 0:
        context.fault(Problem.VALUE, record, key, f"must be more than 0s; the default is {default_ms // 1000}s")
    return found or default_ms


def _asked(context: Context, record: Record | None) -> ExtAuthz | None:
    return None if record is None else policy.network_ext_authz.parse(context, record)


def _proxy_protocol(record: Record | None) -> ProxyProtocol | None:
    if record is None:
        return None
    return ProxyProtocol(version=record.get("version", "v2"), strict=record.get("mode", "strict") == "strict")


def _tracing(context: Context, record: Record | None, process: Record) -> Tracing | None:
    named = next((name for name in COLLECTORS if context.environ.get(name)), None)
    if record is None and process.get("tracing") is None and named is None:
        return None
    return policy.otlp.tracing(context, record, process, named)


def _metrics(context: Context, process: Record) -> OtlpMetrics | None:
    metrics = process.get("metrics")
    if metrics is None or metrics.get("otlp") is None:
        return None
    return policy.otlp.otlp_metrics(context, metrics["otlp"], metrics, process.get("histograms") == "native")


def _access_log(context: Context, record: Record, logging: Record | None) -> AccessLog:
    entry = record.get("accessLog") or record.get("logging")
    old = logging.get("fields") if logging is not None else None
    old_filter = logging.get("filter") if logging is not None else None
    for key, value in (("fields", old), ("filter", old_filter)):
        if entry is not None and value is not None:
            assert logging is not None
            context.fault(Problem.CONFLICT, logging, key, "'frontendPolicies.accessLog' is set as well")
    chosen = entry or old
    place, filter_ = (logging, old_filter) if entry is None else (entry, entry.get("filter"))
    if filter_ is not None and place is not None:
        check(context, place, "filter", filter_, "log")
    if chosen is None:
        return AccessLog(filter=filter_)
    add = check_map(context, chosen, "add", "log")
    database = chosen.get("database")
    stored = check_map(context, database, "add", "log") if database is not None else ()
    return AccessLog(
        remove=tuple(chosen.get("remove") or ()),
        add=add,
        filter=filter_,
        database_add=stored,
        database_full=database is not None and database.get("llm") == "full",
        otlp=None if chosen.get("otlp") is None else policy.otlp.otlp_log(context, chosen["otlp"]),
    )
