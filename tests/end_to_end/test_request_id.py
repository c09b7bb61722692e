"""`frontendPolicies.http.requestId`: requests have an id, which clients, backends and the log are told."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.end_to_end.conftest import free_port
from tests.end_to_end.federation_rig import SAMPLE, Raw, config, messages
from tests.end_to_end.otlp_rig import GrpcCollector, tracing
from tests.end_to_end.provider_stand_in import StandIn, whole
from tests.end_to_end.tracing import Watch, wait_for, watchers

pytestmark = pytest.mark.warm

JSON = "  logging: {format: json}\n"
ROUTE = """
frontendPolicies: {{http: {{requestId: {mode}}}}}
gateways:
  default: {{port: {{port}}}}
routes:
- name: refused
  matches: [{{path: {{exact: /refused}}}}]
  policies:
    directResponse: {{status: 418, body: "no"}}
- name: plain
  matches: [{{path: {{pathPrefix: /}}}}]
  backends:
  - host: 127.0.0.1:{backend}
"""


@pytest.fixture
def backend() -> Iterator[StandIn]:
    found = StandIn(whole({"fine": True}))
    yield found
    found.close()


def last_line(running: Any, path: str) -> dict[str, Any]:
    running.wait_log(f'"http.path":"{path}"')
    [line] = [line for line in running.log().splitlines() if f'"http.path":"{path}"' in line]
    found: dict[str, Any] = json.loads(line)
    return found


def test_nothing_is_added_by_default(gateway: Any, backend: StandIn) -> None:
    running = gateway(ROUTE.format(mode="off", backend=backend.port), settings=JSON)
    answer = httpx.get(running.url + "/a", headers={"x-request-id": "mine"})
    assert "x-request-id" not in answer.headers
    assert backend.seen[-1].headers["x-request-id"] == "mine"
    assert "request.id" not in last_line(running, "/a")


def test_a_made_id_is_told_to_everybody(gateway: Any, backend: StandIn) -> None:
    running = gateway(ROUTE.format(mode="generate", backend=backend.port), settings=JSON)
    answer = httpx.get(running.url + "/a", headers={"x-request-id": "mine"})
    found = answer.headers["x-request-id"]
    assert uuid.UUID(found).version == 4
    assert backend.seen[-1].headers["x-request-id"] == found
    assert last_line(running, "/a")["request.id"] == found
    refused = httpx.get(running.url + "/refused")
    assert refused.status_code == 418
    assert last_line(running, "/refused")["request.id"] == refused.headers["x-request-id"] != found


def test_a_clients_id_is_kept_where_it_is_trusted(gateway: Any, backend: StandIn) -> None:
    running = gateway(ROUTE.format(mode="trust", backend=backend.port), settings=JSON)
    answer = httpx.get(running.url + "/a", headers={"x-request-id": "mine"})
    assert answer.headers["x-request-id"] == "mine"
    assert last_line(running, "/a")["request.id"] == "mine"
    answer = httpx.get(running.url + "/b", headers={"x-request-id": "not mine"})
    assert uuid.UUID(answer.headers["x-request-id"])
    assert backend.seen[-1].headers["x-request-id"] == answer.headers["x-request-id"]


def test_traces_and_spans_have_it(gateway: Any, backend: StandIn) -> None:
    collector = GrpcCollector()
    text = ROUTE.format(mode="trust", backend=backend.port).replace("requestId: trust}", f"requestId: trust}}, tracing: {tracing(collector)}")
    running = gateway(text)
    watch = Watch(running)
    wait_for(lambda: watchers(running))
    assert httpx.get(running.url + "/a", headers={"x-request-id": "mine"}).status_code == 200
    states = [event["message"]["requestState"] for event in watch.wait() if "requestState" in event["message"]]
    assert {state["request"]["headers"]["x-request-id"] for state in states} == {"mine"}
    assert [span.attributes["request.id"] for span in collector.trace(2) if span.kind == "server"] == ["mine"]
    collector.stop()


GUARDED = """
frontendPolicies: {{http: {{requestId: trust}}, tracing: {tracing}}}
llm:
  port: {{port}}
  models:
  - name: m
    provider: openai
    params: {{baseUrl: "http://127.0.0.1:{port}/v1", apiKey: k}}
    guardrails: {{request: [{{webhook: {{target: {{host: "127.0.0.1:{port}"}}}}}}]}}
"""


def test_lines_about_a_request_have_its_ids(gateway: Any) -> None:
    """Not only the line of the access log: also those that say what went wrong on its way."""
    collector = GrpcCollector()
    running = gateway(GUARDED.format(tracing=tracing(collector), port=free_port()), settings=JSON)
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    answer = httpx.post(running.url + "/v1/chat/completions", json=body, headers={"x-request-id": "mine"}, timeout=60)
    assert answer.status_code >= 400
    access = last_line(running, "/v1/chat/completions")
    [failed] = [json.loads(line) for line in running.log().splitlines() if '"guard failed"' in line]
    ids = ("request.id", "trace.id", "span.id")
    assert [failed[name] for name in ids] == [access[name] for name in ids]
    assert failed["request.id"] == "mine"
    collector.stop()


MODELS = """
frontendPolicies: {http: {requestId: trust}}
llm:
  port: {port}
  models: [{name: m, provider: anthropic, params: {apiKey: k}}]
"""


def test_error_bodies_have_it_where_the_format_has_a_place(gateway: Any) -> None:
    running = gateway(MODELS, settings=JSON)
    body = {"model": "other", "max_tokens": 1, "messages": [{"role": "user", "content": "x"}]}
    answer = httpx.post(running.url + "/v1/messages", json=body, headers={"x-request-id": "mine"})
    assert answer.status_code == 404
    assert answer.json()["request_id"] == answer.headers["x-request-id"] == "mine"
    contents = {"contents": [{"parts": [{"text": "x"}]}]}
    target = "/v1beta/models/other:generateContent"
    answer = httpx.post(running.url + target, json=contents, headers={"x-request-id": "mine"})
    details = answer.json()["error"]["details"]
    assert {"@type": "type.googleapis.com/google.rpc.RequestInfo", "requestId": "mine"} in details
    answer = httpx.post(running.url + "/v1/chat/completions", json=body, headers={"x-request-id": "mine"})
    assert answer.headers["x-request-id"] == "mine"
    assert "request_id" not in answer.text


@pytest.mark.parametrize("workers", [1, 2])
def test_errors_of_mcp_have_it_as_data(gateway: Any, workers: int) -> None:
    text = "frontendPolicies: {http: {requestId: trust}}\n" + config({"t": SAMPLE, "b": SAMPLE})
    raw = Raw(gateway(text, workers))
    for number in range(4 * workers):      # connections of their own: the owner of the session and others
        fields = {**raw.http.headers, "x-request-id": f"mine-{number}"}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "z_none", "arguments": {}}}
        answer = httpx.post(f"{raw.running.url}/mcp", json=call, headers=fields, timeout=60)
        assert messages(answer)[-1]["error"]["data"]["requestId"] == answer.headers["x-request-id"] == f"mine-{number}"
    assert "data" not in raw.ask("tools/call", name="t_nope", arguments={})["error"], "a target's own error stays as it is"


def test_errors_of_mcp_say_nothing_without_ids(gateway: Any) -> None:
    raw = Raw(gateway(config({"t": SAMPLE, "b": SAMPLE})), **{"x-request-id": "mine"})
    assert "data" not in raw.ask("tools/call", name="z_none", arguments={})["error"]
