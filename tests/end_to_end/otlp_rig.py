"""Collectors for tests: one that is sent to over gRPC, one over HTTP. They decode what they get with the package's messages."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import grpc
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

PATIENCE = 60
KINDS = {1: "internal", 2: "server", 3: "client"}


class Span(NamedTuple):
    """A span; ids in hexadecimal digits, times in ns."""

    name: str
    kind: str
    trace: str
    id: str
    parent: str
    start: int
    end: int
    attributes: dict[str, Any]
    links: list[tuple[str, str]]
    failed: bool
    message: str
    flags: int
    resource: dict[str, Any]
    scope: str


class Record(NamedTuple):
    """A log record."""

    body: str
    severity: str
    number: int
    trace: str
    span: str
    flags: int
    attributes: dict[str, Any]
    resource: dict[str, Any]


def value_of(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [value_of(one) for one in value.array_value.values]
    if kind == "kvlist_value":
        return attributes_of(value.kvlist_value.values)
    return None if kind is None else getattr(value, kind)


def attributes_of(pairs: Any) -> dict[str, Any]:
    found = {pair.key: value_of(pair.value) for pair in pairs}
    assert len(found) == len(pairs), f"a key is given twice: {sorted(pair.key for pair in pairs)}"
    return found


def spans_of(message: bytes) -> list[Span]:
    found = []
    for group in ExportTraceServiceRequest.FromString(message).resource_spans:
        resource = attributes_of(group.resource.attributes)
        for scoped in group.scope_spans:
            for one in scoped.spans:
                found.append(
                    Span(
                        one.name, KINDS[one.kind], one.trace_id.hex(), one.span_id.hex(), one.parent_span_id.hex(),
                        one.start_time_unix_nano, one.end_time_unix_nano, attributes_of(one.attributes),
                        [(link.trace_id.hex(), link.span_id.hex()) for link in one.links], one.status.code == 2,
                        one.status.message, one.flags, resource, scoped.scope.name,
                    )
                )  # fmt: skip
    return found


def records_of(message: bytes) -> list[Record]:
    found = []
    for group in ExportLogsServiceRequest.FromString(message).resource_logs:
        resource = attributes_of(group.resource.attributes)
        for scoped in group.scope_logs:
            for one in scoped.log_records:
                found.append(
                    Record(
                        one.body.string_value, one.severity_text, one.severity_number, one.trace_id.hex(),
                        one.span_id.hex(), one.flags, attributes_of(one.attributes), resource,
                    )
                )  # fmt: skip
    return found


class Point(NamedTuple):
    """A point of data. `value`: a number, or the whole HistogramDataPoint or ExponentialHistogramDataPoint."""

    name: str
    unit: str
    kind: str
    attributes: dict[str, Any]
    value: Any
    start: int
    time: int
    cumulative: bool
    resource: dict[str, Any]


def points_of(message: bytes) -> list[Point]:
    found = []
    for group in ExportMetricsServiceRequest.FromString(message).resource_metrics:
        resource = attributes_of(group.resource.attributes)
        for one in (one for scoped in group.scope_metrics for one in scoped.metrics):
            kind = one.WhichOneof("data")
            data = getattr(one, kind)
            for point in data.data_points:
                value = point if "histogram" in kind else getattr(point, point.WhichOneof("value"))
                found.append(
                    Point(
                        one.name, one.unit, kind, attributes_of(point.attributes), value, point.start_time_unix_nano,
                        point.time_unix_nano, getattr(data, "aggregation_temporality", 0) == 2, resource,
                    )
                )  # fmt: skip
    return found


class Collector:
    """What collectors have in common. `fields`: metadata or headers of each export."""

    protocol = "grpc"

    def __init__(self) -> None:
        self.exports: list[bytes] = []
        self.spans: list[Span] = []
        self.records: list[Record] = []
        self.points: list[Point] = []
        self.fields: list[dict[str, str]] = []
        self._changed = threading.Condition()
        self.port = 0

    def took(self, signal: str, message: bytes, fields: dict[str, str]) -> None:
        with self._changed:
            self.exports.append(message)
            self.fields.append(fields)
            if signal == "traces":
                self.spans += spans_of(message)
            elif signal == "metrics":
                self.points += points_of(message)
            else:
                self.records += records_of(message)
            self._changed.notify_all()

    def wait(self, ready: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(ready, PATIENCE), (self.spans, self.records, len(self.points))

    def last(self, name: str, **labels: str) -> Point | None:
        """The newest point of this name with these attributes."""
        return next((one for one in reversed(self.points) if one.name == name and labels.items() <= one.attributes.items()), None)

    def trace(self, count: int, trace: str | None = None) -> list[Span]:
        """The spans of a trace, once there are so many; None: of all."""

        def found() -> list[Span]:
            return [span for span in self.spans if trace is None or span.trace == trace]

        self.wait(lambda: len(found()) >= count)
        return sorted(found(), key=lambda span: span.start)


class GrpcCollector(Collector):
    """`fail`: the next exports end with these codes, in order. `pause_s`: before each answer."""

    def __init__(self, port: int = 0) -> None:
        super().__init__()
        self.fail: list[grpc.StatusCode] = []
        self.pause_s = 0.0
        self.answer = b""
        self.server = grpc.server(ThreadPoolExecutor(16))
        for name, signal in (("trace.v1.Trace", "traces"), ("logs.v1.Logs", "logs"), ("metrics.v1.Metrics", "metrics")):
            handler = grpc.unary_unary_rpc_method_handler(
                lambda text, context, signal=signal: self._take(signal, text, context)
            )
            service = grpc.method_handlers_generic_handler(
                f"opentelemetry.proto.collector.{name}Service", {"Export": handler}
            )
            self.server.add_generic_rpc_handlers((service,))
        self.port = self.server.add_insecure_port(f"127.0.0.1:{port}")
        self.server.start()

    def _take(self, signal: str, text: bytes, context: Any) -> bytes:
        time.sleep(self.pause_s)
        if self.fail:
            context.abort(self.fail.pop(0), "not now")
        self.took(signal, text, {name: str(value) for name, value in context.invocation_metadata()})
        return self.answer

    def stop(self) -> None:
        self.server.stop(None).wait()


class HttpCollector(Collector):
    """`fail`: the next exports get these statuses, in order, with `retry-after: 0`."""

    protocol = "http"

    def __init__(self) -> None:
        super().__init__()
        self.fail: list[int] = []
        self.paths: list[str] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                message = self.rfile.read(int(self.headers["content-length"]))
                status = collector.fail.pop(0) if collector.fail else 200
                collector.paths.append(self.path)
                if status == 200:
                    fields = {name.lower(): value for name, value in self.headers.items()}
                    collector.took(self.path.rpartition("/")[2], message, fields)
                self.send_response(status)
                self.send_header("content-type", "application/x-protobuf")
                if status != 200:
                    self.send_header("retry-after", "0")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = int(self.server.server_address[1])
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def tracing(collector: Any, **more: Any) -> str:
    """`frontendPolicies.tracing` as JSON; every request is sampled unless `more` says otherwise."""
    return json.dumps({"host": f"127.0.0.1:{collector.port}", "randomSampling": True, **more})
