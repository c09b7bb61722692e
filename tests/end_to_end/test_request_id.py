"""`frontendPolicies.http.requestId`: requests have an id, which clients, backends and the log are told."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.end_to_end.federation_rig import SAMPLE, Raw, config, messages
from tests.end_to_end.provider_stand_in import StandIn, whole

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
