"""`config.metrics.otlp`: metrics at a collector, at intervals and at the end, and what is lost."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import httpx
import pytest
from tests.end_to_end.conftest import free_port
from tests.end_to_end.otlp_rig import Collector, GrpcCollector, HttpCollector, Point, tracing
from tests.end_to_end.running import Gateway

from headgate.telemetry.families import BY_NAME

pytestmark = pytest.mark.cold        # counts of a gateway alone

CONFIG = """
frontendPolicies: {TRACING}
gateways:
  default: {port: {port}}
routes:
- policies: {directResponse: {status: 200, body: hi}}
"""
REQUESTS, DURATION = "gw_requests_total", "gw_request_duration_seconds"
EXPORTED, DROPPED = 'gw_otlp_exported_total{signal="metrics"}', 'gw_otlp_dropped_total{signal="metrics"}'


def started(gateway: Callable[..., Gateway], port: int, *, workers: int = 1, traces: Any = None, more: str = "", **fields: Any) -> Gateway:
    text = CONFIG.replace("TRACING", "" if traces is None else f"tracing: {tracing(traces)}")
    target = {"host": f"127.0.0.1:{port}", "interval": "1s", **fields}
    return gateway(text, workers, settings=f"metrics: {{otlp: {json.dumps(target)}}}\n{more}")


@pytest.fixture(params=["grpc", "http"])
def collector(request: pytest.FixtureRequest) -> Iterator[Any]:
    found: Any = GrpcCollector() if request.param == "grpc" else HttpCollector()
    yield found
    found.stop()


@pytest.fixture
def grpc_collector() -> Iterator[Any]:
    found = GrpcCollector()
    yield found
    found.stop()


def ask(running: Gateway, count: int = 1) -> None:
    for _ in range(count):
        assert httpx.get(running.url, timeout=60).status_code == 200


def counted(collector: Collector, number: int) -> Point:
    """The newest point of requests, once it has this number."""
    collector.wait(lambda: (found := collector.last(REQUESTS)) is not None and found.value == number)
    found = collector.last(REQUESTS)
    assert found is not None
    return found


def test_metrics_are_sent_at_intervals(gateway: Callable[..., Gateway], collector: Any) -> None:
    before = time.time_ns()
    running = started(gateway, collector.port, protocol=collector.protocol)
    ask(running, 3)
    first = counted(collector, 3)
    assert (first.kind, first.unit, first.cumulative) == ("sum", "1", True)
    assert first.attributes["reason"] == "DirectResponse"
    assert before - 60 * 10**9 < first.start < first.time
    assert first.resource["service.name"]
    ask(running, 2)
    second = counted(collector, 5)
    assert (second.start, second.attributes) == (first.start, first.attributes)
    assert second.time > first.time
    duration = collector.last(DURATION)
    assert duration is not None
    assert (duration.kind, duration.unit, duration.cumulative) == ("histogram", "s", True)
    assert (duration.value.count, sum(duration.value.bucket_counts)) == (5, 5)
    assert len(duration.value.bucket_counts) == len(duration.value.explicit_bounds) + 1
    assert duration.value.sum > 0
    workers = collector.last("gw_workers")
    assert workers is not None
    assert (workers.kind, workers.value) == ("gauge", 1)
    assert {one.name for one in collector.points} <= BY_NAME.keys()


def test_the_last_numbers_are_sent_at_the_end(gateway: Callable[..., Gateway], collector: Any) -> None:
    running = started(gateway, collector.port, workers=2, protocol=collector.protocol, interval="3600s")
    ask(running, 7)
    assert not collector.points
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(60) == 0
    assert counted(collector, 7).attributes["status"] == "200"


def test_a_collector_that_refuses_loses_points_that_are_counted(gateway: Callable[..., Gateway], grpc_collector: Any) -> None:
    grpc_collector.fail = [grpc.StatusCode.INVALID_ARGUMENT]
    running = started(gateway, grpc_collector.port)
    running.wait_log("a collector did not accept an export")
    ask(running)
    counted(grpc_collector, 1)
    assert running.metric(DROPPED) > 0
    assert running.metric(EXPORTED) > 0


def test_a_collector_that_is_away_stops_nobody(gateway: Callable[..., Gateway]) -> None:
    port = free_port()
    running = started(gateway, port)
    ask(running, 2)
    # What a newer picture replaces is counted as dropped.
    deadline = time.monotonic() + 60
    while not running.metric(DROPPED):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    late = GrpcCollector(port)
    ask(running)
    counted(late, 3)
    late.stop()


def test_exemplars_and_exponential_buckets(gateway: Callable[..., Gateway], grpc_collector: Any) -> None:
    running = started(gateway, grpc_collector.port, traces=grpc_collector, more="histograms: native")
    ask(running)
    [span] = grpc_collector.trace(1)
    grpc_collector.wait(lambda: (found := grpc_collector.last(DURATION)) is not None and len(found.value.exemplars) == 1)
    found = grpc_collector.last(DURATION)
    assert found is not None
    assert found.kind == "exponential_histogram"
    [exemplar] = found.value.exemplars
    assert (exemplar.trace_id.hex(), exemplar.span_id.hex()) == (span.trace, span.id)
    value = found.value
    assert (value.count, value.scale, sum(value.positive.bucket_counts) + value.zero_count) == (1, 3, 1)
    # The bucket of the only value has it between its ends.
    at = value.positive.offset + list(value.positive.bucket_counts).index(1)
    assert 2 ** (at / 8) < value.sum <= 2 ** ((at + 1) / 8) * 1.000001


def test_removed_families_and_headers_of_policies(gateway: Callable[..., Gateway], grpc_collector: Any) -> None:
    policies = {"requestHeaderModifier": {"set": {"x-tenant": "a"}}}
    running = started(gateway, grpc_collector.port, policies=policies)
    ask(running)
    counted(grpc_collector, 1)
    assert grpc_collector.fields[-1]["x-tenant"] == "a"


def test_a_reload_changes_where_they_go(gateway: Callable[..., Gateway], grpc_collector: Any) -> None:
    running = started(gateway, grpc_collector.port)
    ask(running)
    counted(grpc_collector, 1)
    other = GrpcCollector()
    text = running.path.read_text()
    running.path.write_text(text.replace(f"127.0.0.1:{grpc_collector.port}", f"127.0.0.1:{other.port}"))
    running.wait_metric('gw_config_reloads_total{result="success"}', 1)
    ask(running)
    counted(other, 2)
    other.stop()
