"""What is counted as what: streams are no durations of requests, answers of the gateway no calls of providers, errors have
types, sampled requests are exemplars, and labels stay where they are.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from tests.end_to_end.federation_rig import SAMPLE, Raw, config
from tests.end_to_end.metrics_rig import samples, total, until
from tests.end_to_end.otlp_rig import GrpcCollector, tracing
from tests.end_to_end.provider_stand_in import StandIn, chat, stream, whole
from tests.end_to_end.running import PATIENCE, Gateway
from tests.end_to_end.tcp_rig import named
from tests.end_to_end.test_connect import opened as connected
from tests.end_to_end.websocket_rig import WebSocketBackend, opened

pytestmark = [pytest.mark.cold, pytest.mark.http1(reason="upgrades and CONNECT of HTTP/1.1")]  # counts of a gateway alone

HOST = """
gateways:
  default: {port: {port}}
frontendPolicies: {connect: {mode: route}}
routes:
- backends: [{host: "127.0.0.1:BACKEND"}]
"""
HANDED_ON = """
binds:
- port: {port}
  listeners: [{routes: [{backends: [{internal: 8080}]}]}]
- port: 8080
  mode: internal
  listeners: [{routes: [{backends: [{host: "127.0.0.1:BACKEND"}]}]}]
"""
DURATION, STREAM = "gw_request_duration_seconds_count", "gw_stream_duration_seconds_count"
CALL = "gw_gen_ai_server_request_duration_count"
MODEL = """
gateways:
  default: {port: {port}}
FRONTENDllm:
  POLICIES
  models:
MODELS
"""
ASK = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def model(name: str, port: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "provider": "openai", "params": {"baseUrl": f"http://127.0.0.1:{port}/v1", "apiKey": "sk-canary"}, **more}


def models(*found: dict[str, Any], policies: dict[str, Any] | None = None, frontend: str = "") -> str:
    text = MODEL.replace("MODELS", "\n".join(f"  - {json.dumps(one)}" for one in found))
    text = text.replace("POLICIES", "" if policies is None else f"policies: {json.dumps(policies)}")
    return text.replace("FRONTEND", f"frontendPolicies: {{tracing: {frontend}}}\n" if frontend else "")


@pytest.fixture
def provider() -> Iterator[StandIn]:
    found = StandIn(whole(chat()))
    yield found
    found.close()


def ask(running: Gateway, **more: Any) -> int:
    return httpx.post(running.url + "/v1/chat/completions", json={**ASK, **more}, timeout=60).status_code


def is_stream(running: Gateway, kind: str) -> None:
    """The only request was a stream of this kind."""
    until(lambda: total(running, STREAM) == 1)
    assert total(running, STREAM, kind=kind) == 1
    assert total(running, "gw_requests_total") == 1
    assert total(running, DURATION) == 0
    assert total(running, "gw_request_duration_seconds_sum") == 0


# -- streams -------------------------------------------------------------------------------------------------------------
def test_a_websocket_is_no_duration_of_a_request(gateway: Callable[..., Gateway]) -> None:
    backend = WebSocketBackend()
    running = gateway(HOST.replace("BACKEND", str(backend.port)))
    pipe = opened(running.port, "1.1", "/echo/1")
    assert total(running, "gw_requests_in_flight") == 1
    pipe.end()
    pipe.close()
    is_stream(running, "upgrade")
    assert [one.labels["status"] for one in samples(running, "gw_requests_total")] == ["101"]
    backend.close()


def test_a_tunnel_is_no_duration_of_a_request(gateway: Callable[..., Gateway], upstream: Any) -> None:
    running = gateway(HOST.replace("BACKEND", str(upstream(named(b"db")))))
    sock, head = connected(running.port, "db.test:5432")
    assert head.startswith(b"HTTP/1.1 200 ")
    with sock:
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(65536):
            pass
    is_stream(running, "tunnel")


def test_events_of_a_host_are_no_duration_of_a_request(gateway: Callable[..., Gateway], provider: StandIn) -> None:
    provider.answers = [stream(b"data: 1\n\n")]
    running = gateway(HOST.replace("BACKEND", str(provider.port)))
    assert httpx.get(running.url, timeout=60).text == "data: 1\n\n"
    is_stream(running, "events")


def test_an_answer_of_a_model_is_a_duration(gateway: Callable[..., Gateway], provider: StandIn) -> None:
    provider.answers = [stream(b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n', b"data: [DONE]\n\n")]
    running = gateway(models(model("m", provider.port)))
    assert ask(running, stream=True) == 200
    until(lambda: total(running, DURATION) == 1)
    assert total(running, STREAM) == 0


def test_the_event_stream_of_a_session_is_no_duration(gateway: Callable[..., Gateway]) -> None:
    running = gateway(config({"t": SAMPLE}))
    raw = Raw(running)
    until(lambda: total(running, DURATION) == 2)
    with raw.http.stream("GET", "/mcp", headers={"accept": "text/event-stream"}) as answer:
        assert answer.status_code == 200
    until(lambda: total(running, STREAM, kind="events") == 1)
    assert total(running, DURATION) == 2
    raw.ask("tools/list")
    until(lambda: total(running, DURATION) == 3)


# -- providers -----------------------------------------------------------------------------------------------------------
def test_errors_of_providers_have_their_type(gateway: Callable[..., Gateway], provider: StandIn) -> None:
    provider.answers = [whole(chat()), whole({"error": {"message": "no"}}, 429), whole({"error": {"message": "no"}}, 400)]
    running = gateway(models(model("m", provider.port), model("gone", 1)))
    assert [ask(running), ask(running), ask(running), ask(running, model="gone")] == [200, 429, 400, 503]
    until(lambda: total(running, CALL) == 4)
    found = {(one.labels["gen_ai_request_model"], one.labels["error_type"]): one.value for one in samples(running, CALL)}
    assert found == {("m", ""): 1, ("m", "429"): 1, ("m", "400"): 1, ("gone", "failed"): 1}


POLICIES: dict[str, tuple[dict[str, Any], int]] = {
    "guard": ({"guardrails": {"request": [{"regex": {"action": "Reject", "matches": [{"pattern": "hi"}]}}]}}, 403),
    "limit": ({"localRateLimit": [{"maxTokens": 1, "tokensPerFill": 1, "fillInterval": "3600s"}]}, 429),
    "authorization": ({"authorization": {"rules": ["false"]}}, 403),
    "api key": ({"apiKey": {"keys": [{"key": "k"}], "mode": "strict"}}, 401),
}


@pytest.mark.parametrize("kind", POLICIES)
def test_an_answer_of_a_policy_is_no_call_of_a_provider(kind: str, gateway: Callable[..., Gateway], provider: StandIn) -> None:
    policy, status = POLICIES[kind]
    running = gateway(models(model("m", provider.port), policies=policy))
    if kind == "limit":
        assert ask(running) == 200
    calls, tokens = total(running, CALL), total(running, "gw_gen_ai_client_token_usage_count")
    assert ask(running) == status
    until(lambda: total(running, "gw_requests_total", status=str(status)) == 1)
    assert total(running, CALL) == calls
    assert total(running, "gw_upstream_call_duration_seconds_count", subtype="Llm") == calls
    assert total(running, "gw_gen_ai_client_token_usage_count") == tokens


def test_an_answer_of_a_models_own_policy_is_no_call(gateway: Callable[..., Gateway], provider: StandIn) -> None:
    guards = {"request": [{"regex": {"action": "Reject", "matches": [{"pattern": "hi"}]}}]}
    running = gateway(models(model("m", provider.port, guardrails=guards)))
    assert ask(running) == 403
    until(lambda: total(running, "gw_requests_total", status="403") == 1)
    assert total(running, CALL) == total(running, "gw_upstream_call_duration_seconds_count", subtype="Llm") == 0
    assert not provider.seen


def test_labels_stay_when_a_model_is_inserted_above(gateway: Callable[..., Gateway], provider: StandIn) -> None:
    text = models(model("m", provider.port), model("n", provider.port))
    running = gateway(text)
    assert ask(running, model="n") == 200
    until(lambda: total(running, "gw_requests_total") == 1)
    [before] = samples(running, "gw_requests_total")
    more = models(model("first", provider.port), model("m", provider.port), model("n", provider.port))
    running.write(more)
    running.wait_metric('gw_config_reloads_total{result="success"}', 1)
    assert ask(running, model="n") == 200
    until(lambda: total(running, "gw_requests_total") == 2)
    [after] = samples(running, "gw_requests_total")
    assert (after.labels, after.value) == (before.labels, 2)


# -- exemplars -----------------------------------------------------------------------------------------------------------
def marked(running: Gateway, name: str) -> list[Any]:
    return [one.exemplar for one in samples(running, name) if one.exemplar is not None]


def test_sampled_requests_are_exemplars(gateway: Callable[..., Gateway], provider: StandIn) -> None:
    collector = GrpcCollector()
    running = gateway(models(model("m", provider.port), frontend=tracing(collector)))
    assert ask(running) == 200
    [server] = [span for span in collector.trace(2) if span.kind == "server"]
    for name in ("gw_request_duration_seconds_bucket", "gw_gen_ai_server_request_duration_bucket"):
        [found] = marked(running, name)
        assert found.labels == {"trace_id": server.trace, "span_id": server.id}
        assert found.value > 0
    collector.stop()


@pytest.mark.parametrize("more", [{"randomSampling": False}, {"filter": "response.code == 418"}])
def test_requests_without_spans_are_none(gateway: Callable[..., Gateway], provider: StandIn, more: dict[str, Any]) -> None:
    collector = GrpcCollector()
    running = gateway(models(model("m", provider.port), frontend=tracing(collector, **more)))
    assert ask(running) == 200
    until(lambda: total(running, DURATION) == 1)
    assert marked(running, "gw_request_duration_seconds_bucket") == []
    collector.stop()


# -- hops ----------------------------------------------------------------------------------------------------------------
def test_what_the_owner_of_a_session_knows_is_counted(gateway: Callable[..., Gateway]) -> None:
    running = gateway(config({"t": SAMPLE, "b": SAMPLE}), 2)
    raw = Raw(running)
    for _ in range(8):      # connections of their own: both workers
        with httpx.Client(base_url=running.url, headers=raw.http.headers, timeout=60) as client:
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t_echo", "arguments": {"message": "a"}}}
            assert "x-gw-relay-addressed" not in client.post("/mcp", json=call).headers
    name = "gw_mcp_requests_total"
    until(lambda: total(running, name, method="tools/call") == 8, lambda: samples(running, name))
    found = samples(running, name, method="tools/call")
    assert {(one.labels["server"], one.labels["resource"]) for one in found} == {("t", "echo")}
    # What one worker asks another is no request of a client.
    assert total(running, "gw_requests_total", bind="relay") == 0


def test_a_relayed_request_is_in_flight_once(gateway: Callable[..., Gateway]) -> None:
    running = gateway(config({"t": SAMPLE}), 2)
    with contextlib.ExitStack() as stack:
        for _ in range(6):          # connections of their own: not all meet the worker that has their session
            fields = {**Raw(running).http.headers, "accept": "text/event-stream"}
            client = stack.enter_context(httpx.Client(base_url=running.url, headers=fields, timeout=60))
            assert stack.enter_context(client.stream("GET", "/mcp")).status_code == 200
        until(lambda: total(running, "gw_requests_in_flight") == 6, lambda: samples(running, "gw_requests_in_flight"))
    until(lambda: total(running, "gw_requests_in_flight") == 0, lambda: samples(running, "gw_requests_in_flight"))


def test_a_request_that_was_handed_on_is_in_flight_once(gateway: Callable[..., Gateway], upstream: Any) -> None:
    come, go_on = threading.Event(), threading.Event()

    def held(connection: socket.socket) -> None:
        connection.recv(65536)
        come.set()
        go_on.wait(PATIENCE)
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

    running = gateway(HANDED_ON.replace("BACKEND", str(upstream(held))))
    with socket.create_connection(("127.0.0.1", running.port)) as client:
        client.sendall(b"GET / HTTP/1.1\r\nhost: a.test\r\n\r\n")
        assert come.wait(PATIENCE)
        until(lambda: total(running, "gw_requests_in_flight") == 1, lambda: samples(running, "gw_requests_in_flight"))
        go_on.set()
        assert client.recv(65536).startswith(b"HTTP/1.1 200")
    until(lambda: total(running, "gw_requests_in_flight") == 0, lambda: samples(running, "gw_requests_in_flight"))
