"""`frontendPolicies.tracing`: spans of requests, for a collector over gRPC and HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.end_to_end.otlp_rig import GrpcCollector, HttpCollector, Span, tracing
from tests.end_to_end.over_http2 import WANTED
from tests.end_to_end.provider_stand_in import StandIn, whole
from tests.end_to_end.tracing import Watch, rows, wait_for, watchers

pytestmark = pytest.mark.warm

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
ROUTE = """
frontendPolicies: {{tracing: {tracing}, http: {{requestId: generate}}}}
gateways:
  default: {{port: {{port}}}}
routes:
- name: plain
  matches: [{{path: {{pathPrefix: /p}}}}]
  policies:
    retry: {{attempts: 1, codes: [503], backoff: 1ms}}
  backends:
  - host: 127.0.0.1:{backend}
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
def grpc_collector() -> Iterator[GrpcCollector]:
    found = GrpcCollector()
    yield found
    found.stop()


def route(backend: StandIn, collector: Any, **more: Any) -> str:
    more["protocol"] = collector.protocol
    return ROUTE.format(tracing=tracing(collector, **more), backend=backend.port)


def pair(spans: list[Span]) -> tuple[Span, Span]:
    """The span of the request and that of its attempt."""
    [server] = [span for span in spans if span.kind == "server"]
    [client] = [span for span in spans if span.kind == "client"]
    assert client.parent == server.id
    assert client.trace == server.trace
    assert server.start <= client.start <= client.end <= server.end
    return server, client


def test_a_request_and_its_attempt_are_spans(gateway: Any, backend: StandIn, collector: Any) -> None:
    running = gateway(route(backend, collector))
    answer = httpx.get(running.url + "/p/x?token=secret&y=1", headers={"user-agent": "me/1"})
    assert answer.status_code == 200
    server, client = pair(collector.trace(2))
    assert backend.seen[-1].headers["traceparent"] == f"00-{server.trace}-{client.id}-01"
    assert (server.name, client.name) == ("GET /p/*", f"GET 127.0.0.1:{backend.port}")
    assert (server.parent, server.failed, client.failed) == ("", False, False)
    assert (server.scope, server.resource["service.name"]) == ("gw", "headgate")
    told = server.attributes
    wanted = {
        "http.request.method": "GET", "url.scheme": "http", "url.path": "/p/x", "url.query": "token=<redacted>&y=1",
        "server.address": "127.0.0.1", "server.port": running.port, "client.address": "127.0.0.1",
        "network.protocol.version": "2" if WANTED else "1.1", "http.response.status_code": 200, "http.route": "/p/*",
        "http.status": 200, "http.path": "/p/x?token=<redacted>&y=1", "route": "default/plain",
        "user_agent.original": "me/1", "request.id": answer.headers["x-request-id"], "trace.id": server.trace,
        "endpoint": f"127.0.0.1:{backend.port}",
    }  # fmt: skip
    assert {key: told.get(key) for key in wanted} == wanted
    wanted = {
        "gw.outbound.kind": "Primary", "gw.outbound.subtype": "Http", "http.request.method": "GET",
        "server.address": "127.0.0.1", "server.port": backend.port, "http.response.status_code": 200, "url.path": "/p/x",
    }  # fmt: skip
    assert client.attributes == wanted
    running.wait_metric('gw_otlp_exported_total{signal="traces"}', 2)


def test_a_client_begins_the_trace(gateway: Any, backend: StandIn, grpc_collector: GrpcCollector) -> None:
    running = gateway(route(backend, grpc_collector, randomSampling=False))
    fields = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "a=b,c=d", "baggage": "k=v"}
    httpx.get(running.url + "/p", headers=fields)
    server, client = pair(grpc_collector.trace(2))
    assert (server.trace, server.parent, server.flags) == (TRACE, PARENT, 0x301)
    sent = backend.seen[-1].headers
    assert (sent["tracestate"], sent["baggage"]) == ("a=b,c=d", "k=v")
    assert sent["traceparent"] == f"00-{TRACE}-{client.id}-01"
    running.wait_log(f"trace.id={TRACE} span.id={server.id}")


def test_what_is_not_sampled_is_still_in_a_trace(gateway: Any, backend: StandIn, grpc_collector: GrpcCollector) -> None:
    rules = {"randomSampling": "request.path == '/p/yes'", "clientSampling": "'x-yes' in request.headers"}
    running = gateway(route(backend, grpc_collector, **rules))
    httpx.get(running.url + "/p/no")
    version, trace, _, flags = backend.seen[-1].headers["traceparent"].split("-")
    assert (version, flags) == ("00", "00")
    running.wait_log(f"trace.id={trace} ")
    parent = f"00-{TRACE}-{PARENT}-01"
    httpx.get(running.url + "/p/no", headers={"traceparent": parent})
    assert backend.seen[-1].headers["traceparent"] == parent, "nothing of the gateway's stands between"
    httpx.get(running.url + "/p/yes", headers={"traceparent": "00-nonsense", "tracestate": "a=b"})
    assert "tracestate" not in backend.seen[-1].headers
    httpx.get(running.url + "/p/no", headers={"traceparent": parent, "x-yes": "1"})
    spans = grpc_collector.trace(4)
    assert {span.attributes["url.path"] for span in spans} == {"/p/yes", "/p/no"}
    assert [span.trace == TRACE for span in spans] == [False, False, True, True]


def test_bytes_that_are_no_text_are_replaced(gateway: Any, backend: StandIn, grpc_collector: GrpcCollector) -> None:
    running = gateway(route(backend, grpc_collector))
    httpx.get(running.url + "/p", headers={b"user-agent": b"\xff\xfe\xc3\xa9"})
    server, _ = pair(grpc_collector.trace(2))
    assert server.attributes["user_agent.original"] == "\ufffd\ufffd\xe9"


def test_a_watched_request_is_traced_as_well(gateway: Any, backend: StandIn, grpc_collector: GrpcCollector) -> None:
    running = gateway(route(backend, grpc_collector))
    watch = Watch(running)
    wait_for(lambda: watchers(running))
    assert httpx.get(running.url + "/p").status_code == 200
    server, client = pair(grpc_collector.trace(2))
    told = rows(watch.wait())
    assert {"requestStarted", "backendCallStart", "backendCallResult", "requestFinished"} <= {row.split()[0] for row in told}
    assert backend.seen[-1].headers["traceparent"] == f"00-{server.trace}-{client.id}-01"


def test_a_share_of_requests_is_sampled(gateway: Any, backend: StandIn, grpc_collector: GrpcCollector) -> None:
    running = gateway(route(backend, grpc_collector, randomSampling=0.5))
    with httpx.Client() as client:
        for _ in range(200):
            client.get(running.url + "/p")
    flags = [one.headers["traceparent"][-2:] for one in backend.seen]
    assert 50 < flags.count("01") < 150, "11 standard deviations"
    grpc_collector.trace(2 * flags.count("01"))


def test_a_retry_links_to_the_attempt_before_it(gateway: Any, backend: StandIn, grpc_collector: GrpcCollector) -> None:
    backend.answers = [whole({}, 503), whole({})]
    running = gateway(route(backend, grpc_collector))
    assert httpx.get(running.url + "/p").status_code == 200
    spans = grpc_collector.trace(3)
    first, second = (span for span in spans if span.kind == "client")
    assert (first.failed, first.attributes["http.response.status_code"], first.attributes["error.type"]) == (
        True,
        503,
        "503",
    )
    assert (second.failed, second.attributes["http.request.resend_count"]) == (False, 1)
    assert second.links == [(first.trace, first.id)]
    assert first.links == []
    [server] = [span for span in spans if span.kind == "server"]
    assert (server.failed, server.attributes["retry.attempt"]) == (False, 1)


def test_a_failure_is_told(gateway: Any, backend: StandIn, grpc_collector: GrpcCollector) -> None:
    backend.close()
    running = gateway(route(backend, grpc_collector))
    assert httpx.get(running.url + "/p").status_code == 503
    spans = grpc_collector.trace(2)
    [server] = [span for span in spans if span.kind == "server"]
    assert (server.failed, server.attributes["error.type"]) == (True, "UpstreamFailure")
    assert "upstream call failed" in server.attributes["error"] or server.message
    client = next(span for span in spans if span.kind == "client")
    assert client.failed
    assert client.message
    assert httpx.get(running.url + "/none").status_code == 404
    lost = next(span for span in grpc_collector.trace(len(spans) + 1) if span.attributes.get("http.status") == 404)
    assert (lost.name, lost.failed) == ("GET", False), "a 4xx is no failure of the server"


def test_attributes_are_added_and_removed(gateway: Any, backend: StandIn, grpc_collector: GrpcCollector) -> None:
    running = gateway(
        route(
            backend,
            grpc_collector,
            attributes={"who": "request.headers['x-who']", "n": "7", "span.name": "'own ' + request.method",
                        "broken": "request.headers['none']", "url.path": "'/mine'"},
            remove=["http.path", "url.query", "client.address", "src.addr"],
            resources={"service.name": "'shop'", "zone": "'a'", "failing": "request.headers['x']"},
            filter="request.path != '/p/quiet'",
        )
    )  # fmt: skip
    httpx.get(running.url + "/p/quiet")
    httpx.get(running.url + "/p/x?y=1", headers={"x-who": "ann"})
    server, _ = pair(grpc_collector.trace(2))
    assert server.name == "own GET"
    told = server.attributes
    assert (told["who"], told["n"], told["url.path"]) == ("ann", 7, "/mine")
    assert not told.keys() & {"broken", "http.path", "url.query", "client.address", "src.addr", "span.name"}
    assert (server.resource["service.name"], server.resource["zone"]) == ("shop", "a")
    assert "failing" not in server.resource
    assert len(grpc_collector.spans) == 2, "the filter has kept out a whole trace"


def test_the_older_place_of_the_settings(gateway: Any, backend: StandIn, collector: Any) -> None:
    settings = f"  tracing: {{otlpEndpoint: 'http://127.0.0.1:{collector.port}', otlpProtocol: {collector.protocol}, randomSampling: true}}\n"
    text = f"""
gateways: {{default: {{port: {{port}}}}}}
routes:
- backends: [{{host: 127.0.0.1:{backend.port}}}]
"""
    running = gateway(text, settings=settings)
    assert httpx.get(running.url + "/p").status_code == 200
    pair(collector.trace(2))
