"""Collectors that are slow, hung, away or refuse: requests do not notice, and what is lost is counted."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import grpc
import httpx
import pytest
from tests.end_to_end.conftest import free_port
from tests.end_to_end.otlp_rig import GrpcCollector, HttpCollector, tracing
from tests.end_to_end.provider_stand_in import StandIn, whole
from tests.end_to_end.test_traces import ROUTE

pytestmark = pytest.mark.warm

EXPORTED, DROPPED = 'gw_otlp_exported_total{signal="traces"}', 'gw_otlp_dropped_total{signal="traces"}'


def at(port: int) -> str:
    return json.dumps({"host": f"127.0.0.1:{port}", "randomSampling": True})


@pytest.fixture
def backend() -> Iterator[StandIn]:
    found = StandIn(whole({"fine": True}))
    yield found
    found.close()


def test_an_export_is_sent_again_when_the_collector_could_not_take_it(gateway: Any, backend: StandIn) -> None:
    collector = GrpcCollector()
    collector.fail = [grpc.StatusCode.UNAVAILABLE]
    running = gateway(ROUTE.format(tracing=tracing(collector), backend=backend.port))
    assert httpx.get(running.url + "/p").status_code == 200
    collector.trace(2)
    running.wait_metric(EXPORTED, 2)
    collector.stop()


def test_the_same_over_http(gateway: Any, backend: StandIn) -> None:
    collector = HttpCollector()
    collector.fail = [503, 429]
    running = gateway(ROUTE.format(tracing=tracing(collector, protocol="http"), backend=backend.port))
    assert httpx.get(running.url + "/p").status_code == 200
    collector.trace(2)
    assert collector.paths == ["/v1/traces"] * 3
    collector.fail = [400]
    assert httpx.get(running.url + "/p").status_code == 200
    running.wait_metric(DROPPED, 2)
    running.wait_log("a collector did not accept an export")
    collector.stop()


def test_what_a_collector_rejects_is_counted(gateway: Any, backend: StandIn) -> None:
    collector = GrpcCollector()
    collector.answer = b"\n\x09\x08\x01\x12\x05no ad"
    running = gateway(ROUTE.format(tracing=tracing(collector), backend=backend.port))
    assert httpx.get(running.url + "/p").status_code == 200
    running.wait_metric(DROPPED, 1)
    running.wait_metric(EXPORTED, 1)
    running.wait_log("no ad")
    collector.stop()


def test_a_collector_that_was_away_comes_back(gateway: Any, backend: StandIn) -> None:
    port = free_port()
    running = gateway(
        ROUTE.format(
            tracing=at(port), backend=backend.port
        )
    )  # fmt: skip
    began = time.monotonic()
    for _ in range(20):
        assert httpx.get(running.url + "/p").status_code == 200
    assert time.monotonic() - began < 20, "nobody waits for the collector"
    collector = GrpcCollector(port)
    collector.trace(40)
    collector.stop()


def test_a_hung_collector_costs_no_request_and_the_end_does_not_wait_for_it(gateway: Any, backend: StandIn) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hung:
        target = at(hung.getsockname()[1])
        running = gateway(ROUTE.format(tracing=target, backend=backend.port))
        with httpx.Client() as client:
            for _ in range(50):
                assert client.get(running.url + "/p").status_code == 200
        assert running.stop() == 0


def test_pressure_drops_spans_and_counts_them(gateway: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hung:
        # Nine batches of at most 1 MiB wait: 200 spans with 64 KiB each are more.
        attributes = {f"long{number}": "request.headers['x-long']" for number in range(8)}
        target = {"host": f"127.0.0.1:{hung.getsockname()[1]}", "randomSampling": True, "attributes": attributes}
        running = gateway(f"""
frontendPolicies: {{tracing: {json.dumps(target)}}}
gateways: {{default: {{port: {{port}}}}}}
routes: [{{policies: {{directResponse: {{status: 200}}}}}}]
""")
        with httpx.Client(headers={"x-long": "x" * 8000}) as client:
            for _ in range(200):
                assert client.get(running.url).status_code == 200
        assert running.metric(DROPPED) > 20


def test_spans_that_wait_are_sent_at_the_end(gateway: Any, backend: StandIn) -> None:
    collector = GrpcCollector()
    running = gateway(ROUTE.format(tracing=tracing(collector), backend=backend.port))
    assert httpx.get(running.url + "/p").status_code == 200
    assert running.stop() == 0
    assert len(collector.spans) == 2
    collector.stop()


def test_a_reload_keeps_what_waits(gateway: Any, backend: StandIn) -> None:
    collector = GrpcCollector()
    text = ROUTE.format(tracing=tracing(collector), backend=backend.port)
    running = gateway(text)
    assert httpx.get(running.url + "/p").status_code == 200
    running.reload(text.replace("name: plain", "name: other"))
    assert httpx.get(running.url + "/p").status_code == 200
    spans = collector.trace(4)
    assert {span.attributes.get("route") for span in spans if span.kind == "server"} == {
        "default/plain",
        "default/other",
    }
    collector.stop()
