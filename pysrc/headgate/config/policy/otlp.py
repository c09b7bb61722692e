"""`frontendPolicies.tracing`, `accessLog.otlp` and their forms in `config` and the environment, to the IR and back."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping
from functools import cache
from typing import Any, Final
from urllib.parse import unquote

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy.expression import check, check_map, checked
from headgate.config.policy.remote_service import dump_policies, dump_target
from headgate.document import fields
from headgate.document.secret import Secret
from headgate.errors import Problem
from headgate.ir.secret import SecretRef
from headgate.ir.telemetry import DEFAULT_INTERVAL_MS, DEFAULT_TIMEOUT_MS, OtlpLog, OtlpMetrics, OtlpTarget, Tracing

TRACES, LOGS, METRICS = "/v1/traces", "/v1/logs", "/v1/metrics"
HEADERS: Final = ("OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
PROTOCOLS: Final = ("OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
# Attributes of the process by variables of its environment (https://opentelemetry.io/docs/specs/semconv/resource/).
OF_PROCESS: Final = (
    ("service.namespace", "NAMESPACE"), ("k8s.namespace.name", "NAMESPACE"), ("k8s.pod.name", "POD_NAME"),
    ("k8s.node.name", "NODE_NAME"), ("k8s.pod.ip", "INSTANCE_IP"),
)  # fmt: skip
LEAST_INTERVAL_MS: Final = 1_000
# The phase of expressions that say which requests are sampled.
SAMPLING: Final = "gateway"
NAME: Final = "headgate"


def tracing(context: Context, record: Record | None, process: Record, named: str | None) -> Tracing | None:
    """Return the settings of traces: those of `frontendPolicies.tracing`, of `config.tracing`, or of the environment.

    `named`: the variable of the environment that names a collector, which wins over `config.tracing`.
    """
    old = process.get("tracing")
    if record is not None and old is not None:
        context.fault(Problem.CONFLICT, process, "tracing", "'frontendPolicies.tracing' is set as well")
        return None
    if record is not None:
        return _tracing(context, record)
    return _old_tracing(context, process if old is None else old, named, process.get("tracing") is not None)


def _tracing(context: Context, record: Record) -> Tracing | None:
    target = _target(context, record, TRACES)
    attributes = check_map(context, record, "attributes", "log")
    resources = check_map(context, record, "resources", "log")
    chosen = checked(context, record, "filter", "log")
    random_sampling = _sampling(context, record, "randomSampling", 0.0)
    client_sampling = _sampling(context, record, "clientSampling", 1.0)
    if target is None:
        return None
    return Tracing(
        target=target,
        attributes=attributes,
        remove=tuple(record.get("remove") or ()),
        filter=chosen,
        random_sampling=random_sampling,
        client_sampling=client_sampling,
        resource=resource(context.environ),
        resources=resources,
    )


def _old_tracing(context: Context, record: Record, variable: str | None, there: bool) -> Tracing | None:
    """Return what `config.tracing` says (`there`), or the variable of the environment that names a collector."""
    endpoint = context.environ[variable] if variable is not None else record.get("otlpEndpoint")
    if not endpoint:
        context.fault(
            Problem.VALUE, record, "otlpEndpoint", "expected the URL of a collector, such as http://host:4317"
        )
        return None
    protocol = _protocol(context, record if there else None)
    try:
        place, path = _endpoint(str(endpoint), variable, protocol)
    except ValueError as error:
        where = "" if variable is None else f"environment variable {variable}: "
        context.fault(Problem.VALUE, record, "otlpEndpoint" if variable is None else "", f"{where}{error}")
        return None
    path = (record.get("path") if there else None) or path
    fields_ = (record.get("fields") if there else None) or Record(record.node, record.path, {})
    directory = context.directory
    inner = Record(record.node, record.path, {"host": place})
    service = None if directory is None else directory.remote_service(inner, grpc=protocol == "grpc")
    if service is None:
        return None
    return Tracing(
        target=OtlpTarget(
            service=service, protocol=protocol, path=path, headers=_headers(context, record if there else None)
        ),
        attributes=check_map(context, fields_, "add", "log"),
        remove=tuple(fields_.get("remove") or ()),
        random_sampling=_sampling(context, record, "randomSampling", 0.0) if there else 0.0,
        client_sampling=_sampling(context, record, "clientSampling", 1.0) if there else 1.0,
        resource=resource(context.environ),
    )  # fmt: skip


def otlp_log(context: Context, record: Record) -> OtlpLog | None:
    """Return where and how the access log goes to a collector. None after a report."""
    target = _target(context, record, LOGS)
    inner = record.get("fields") or Record(record.node, f"{record.path}.fields", {})
    add, chosen = check_map(context, inner, "add", "log"), checked(context, record, "filter", "log")
    if target is None:
        return None
    return OtlpLog(
        target=target, remove=tuple(inner.get("remove") or ()), add=add, filter=chosen,
        resource=resource(context.environ),
    )  # fmt: skip


def otlp_metrics(context: Context, record: Record, metrics: Record, native: bool) -> OtlpMetrics | None:
    """Return where and how often metrics go to a collector. None after a report. `metrics`: `config.metrics`."""
    target = _target(context, record, METRICS)
    interval_ms = record.get("interval", DEFAULT_INTERVAL_MS)
    if interval_ms < LEAST_INTERVAL_MS:
        context.fault(Problem.VALUE, record, "interval", "must be at least 1s")
        return None
    if target is None:
        return None
    return OtlpMetrics(
        target=target, interval_ms=interval_ms, native=native, remove=tuple(metrics.get("remove") or ()),
        resource=resource(context.environ), started_ns=started_ns(),
    )  # fmt: skip


@cache
def started_ns() -> int:
    """Return when this process has first asked: the gateway has counted nothing before it reads its configuration."""
    return time.time_ns()


def _target(context: Context, record: Record, path: str) -> OtlpTarget | None:
    http = record.get("protocol") == "http"
    chosen = record.get("path")
    if chosen is not None and not chosen.startswith("/"):
        context.fault(Problem.VALUE, record, "path", "a path must begin with /")
    directory = context.directory
    service = None if directory is None else directory.remote_service(record, grpc=not http)
    if service is None:
        return None
    return OtlpTarget(
        service=service,
        protocol="http" if http else "grpc",
        path=chosen or path,
        timeout_ms=service.policies.request_timeout_ms or DEFAULT_TIMEOUT_MS,
    )


def _sampling(context: Context, record: Record, key: str, default: float) -> float | str:
    """Return a share of requests, or an expression. Numbers below 0 and above 1 count as these."""
    value = record.get(key)
    if value is None:
        return default
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            check(context, record, key, value, SAMPLING)
            return str(value)
    if value != value:
        context.fault(Problem.VALUE, record, key, "not a number")
        return default
    return min(max(float(value), 0.0), 1.0)


def _protocol(context: Context, record: Record | None) -> Any:
    name = next((name for name in PROTOCOLS if context.environ.get(name)), None)
    if name is None:
        return (None if record is None else record.get("otlpProtocol")) or "grpc"
    text = context.environ[name]
    if text in ("http", "http/protobuf"):
        return "http"
    if text != "grpc":
        context.report.add(
            Problem.VALUE, "", f"environment variable {name}: {text!r} is not grpc, http or http/protobuf"
        )
    return "grpc"


def _endpoint(text: str, variable: str | None, protocol: str) -> tuple[fields.ConnectTarget, str]:
    """Return host and path of `http(s)://host[:port][/path]` or `host:port`. Raises ValueError.

    The general variable is the URL below which `/v1/traces` is; those for traces are the whole URL
    (https://opentelemetry.io/docs/specs/otel/protocol/exporter/).
    """
    found = fields.url(text if "://" in text else f"http://{text}")
    port = found.port
    if ":" not in text.partition("://")[2].partition("/")[0] and "://" in text and found.scheme == "http":
        port = 4317 if protocol == "grpc" else 4318
    below = (found.path or "").rstrip("/")
    general = variable is None or variable.endswith("OTLP_ENDPOINT")
    return fields.ConnectTarget(found.host, port, scheme=found.scheme), f"{below}{TRACES}" if general else below or "/"


def _headers(context: Context, record: Record | None) -> tuple[tuple[str, SecretRef], ...]:
    """Return the fields of exports: those of the environment, else of `config.tracing.headers`."""
    name = next((name for name in HEADERS if context.environ.get(name)), None)
    if name is None:
        told = {} if record is None else record.get("headers") or {}
        return tuple((key.lower(), SecretRef(secret=value)) for key, value in told.items())
    text = context.environ[name]
    try:
        pairs = json.loads(text).items() if text.startswith("{") else _pairs(text)
        return tuple((fields.header_name(key), SecretRef(secret=Secret(str(value)))) for key, value in pairs)
    except ValueError:
        context.report.add(Problem.VALUE, "", f"environment variable {name}: not name=value,name=value or JSON")
        return ()


def _pairs(text: str) -> list[tuple[str, str]]:
    found = []
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = pair.partition("=")
        if not equals:
            raise ValueError("no value")
        found.append((name.strip(), unquote(value.strip())))
    return found


def resource(environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the attributes of this process, from its environment."""
    found = {
        "service.name": environ.get("GATEWAY") or NAME,
        "service.instance.id": f"{socket.gethostname()}-{os.getpid()}",
    }
    found |= {key: environ[name] for key, name in OF_PROCESS if environ.get(name)}
    try:
        found |= dict(_pairs(environ.get("OTEL_RESOURCE_ATTRIBUTES", "")))
    except ValueError:  # the specification of OpenTelemetry: the whole variable is passed over
        pass
    if environ.get("OTEL_SERVICE_NAME"):
        found["service.name"] = environ["OTEL_SERVICE_NAME"]
    return tuple(sorted(found.items()))


def dump_tracing(value: Tracing) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    found = _dump_target(value.target)
    found |= {"randomSampling": value.random_sampling, "clientSampling": value.client_sampling}
    found |= {"attributes": dict(value.attributes), "resources": dict(value.resources), "remove": list(value.remove)}
    return found if value.filter is None else {**found, "filter": value.filter}


def dump_log(value: OtlpLog) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    found = _dump_target(value.target)
    found["fields"] = {"add": dict(value.add), "remove": list(value.remove)}
    return found if value.filter is None else {**found, "filter": value.filter}


def dump_metrics(value: OtlpMetrics) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    return {**_dump_target(value.target), "interval": f"{value.interval_ms / 1000:g}s"}


def _dump_target(target: OtlpTarget) -> dict[str, Any]:
    found = {
        **dump_target(target.service),
        "protocol": target.protocol,
        "path": target.path,
        "policies": dump_policies(target.service, target.timeout_ms),
    }
    return (
        found if not target.headers else {**found, "headers": {name: str(ref.secret) for name, ref in target.headers}}
    )
