"""`accessLog.otlp`: requests as log records for a collector, and what lines of the access log have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.end_to_end.otlp_rig import GrpcCollector, HttpCollector, tracing
from tests.end_to_end.provider_stand_in import StandIn, whole
from tests.end_to_end.running import free_port

pytestmark = pytest.mark.warm

ROUTE = """
frontendPolicies:
  accessLog: {{otlp: {otlp}}}
  tracing: {tracing}
gateways:
  default: {{port: {{port}}}}
  own: {{port: {own}}}
policies:
- name: {{name: own, namespace: default}}
  target: {{gateway: {{gatewayName: default, gatewayNamespace: default, port: {own}}}}}
  frontend:
    accessLog: {{add: {{place: "'own'"}}, otlp: {{host: 127.0.0.1:{others}, protocol: grpc}}}}
    tracing: {{host: 127.0.0.1:{others}, protocol: grpc, randomSampling: true}}
routes:
- name: refused
  matches: [{{path: {{exact: /refused}}}}]
  policies: {{directResponse: {{status: 404}}}}
- name: broken
  matches: [{{path: {{exact: /broken}}}}]
  backends: [{{host: 127.0.0.1:1}}]
- name: plain
  gateways: [default, own]
  matches: [{{path: {{pathPrefix: /}}}}]
  backends: [{{host: 127.0.0.1:{backend}}}]
"""


@pytest.fixture
def backend() -> Iterator[StandIn]:
    found = StandIn(whole({"fine": True}))
    yield found
    found.close()


@pytest.fixture(params=["grpc", "http"])
def collector(request: pytest.FixtureRequest) -> Iterator[Any]:
    found: Any = GrpcCollector() if request.param == "grpc" else HttpCollector()
    yield found
    found.stop()


@pytest.fixture
def others() -> Iterator[GrpcCollector]:
    found = GrpcCollector()
    yield found
    found.stop()


def test_requests_are_log_records(gateway: Any, backend: StandIn, collector: Any, others: GrpcCollector) -> None:
    protocol = collector.protocol
    otlp = {
        "host": f"127.0.0.1:{collector.port}", "protocol": protocol, "filter": "request.path != '/quiet'",
        "fields": {"add": {"who": "request.headers['x-who']"}, "remove": ["http.version"]},
    }  # fmt: skip
    own = free_port()
    text = ROUTE.format(
        otlp=json.dumps(otlp), tracing=tracing(collector, protocol=protocol), backend=backend.port, own=own, others=others.port,
    )  # fmt: skip
    running = gateway(text)
    # A port with a log and spans of its own.
    httpx.get(f"http://127.0.0.1:{own}/own")
    others.wait(lambda: others.records and others.spans)
    [record] = others.records
    assert (record.attributes["http.path"], {one.trace for one in others.spans}) == ("/own", {record.trace})
    running.wait_log("place=own")
    httpx.get(running.url + "/quiet")
    httpx.post(running.url + "/a", headers={"x-who": "ann"}, content=b"12345")
    httpx.get(running.url + "/refused")
    httpx.get(running.url + "/broken")
    collector.wait(lambda: len(collector.records) >= 3)
    good, refused, broken = collector.records
    assert [(one.body, one.severity, one.number) for one in collector.records] == [
        ("request", "INFO", 9), ("request", "WARN", 13), ("request", "ERROR", 17),
    ]  # fmt: skip
    wanted = {"http.path": "/a", "http.status": 200, "who": "ann", "bytes.received": 5, "route": "default/plain"}
    assert {key: good.attributes.get(key) for key in wanted} == wanted
    assert good.attributes["duration_ms"] >= good.attributes["upstream.duration_ms"] > 0
    assert not good.attributes.keys() & {"http.version"}
    assert "who" not in refused.attributes
    assert broken.attributes["reason"] == "UpstreamFailure"
    assert good.resource["service.name"] == "headgate"
    collector.wait(lambda: len([span for span in collector.spans if span.kind == "server"]) >= 4)
    ids = {(span.trace, span.id) for span in collector.spans if span.kind == "server"}
    assert {(one.trace, one.span) for one in collector.records} <= ids
    assert {one.flags for one in collector.records} == {1}
    running.wait_metric('gw_otlp_exported_total{signal="logs"}', 4)
    assert not {one.trace for one in others.spans} & {one.trace for one in collector.spans}


def test_lines_have_sizes_times_and_levels(gateway: Any, backend: StandIn) -> None:
    text = f"""
gateways: {{default: {{port: {{port}}}}}}
routes:
- matches: [{{path: {{exact: /b}}}}]
  backends: [{{host: 127.0.0.1:1}}]
- backends: [{{host: 127.0.0.1:{backend.port}}}]
"""
    running = gateway(text, settings="  logging: {format: json}\n")

    def line(path: str) -> dict[str, Any]:
        running.wait_log(f'"http.path":"{path}"')
        [found] = [one for one in running.log().splitlines() if f'"http.path":"{path}"' in one]
        return dict(json.loads(found))

    answer = httpx.post(running.url + "/a", content=b"12345", headers={"user-agent": "me/1"})
    wanted = {"level": "info", "bytes.received": 5, "bytes.sent": len(answer.content), "user_agent.original": "me/1"}
    assert {key: line("/a").get(key) for key in wanted} == wanted
    assert line("/a")["duration_ms"] >= line("/a")["upstream.duration_ms"] > 0
    assert httpx.get(running.url + "/b").status_code == 503
    assert (line("/b")["level"], line("/b")["reason"]) == ("error", "UpstreamFailure")
