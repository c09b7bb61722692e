"""Revision 2026-07-28 and every transport: OpenAPI and HTTP+SSE targets for clients without a session, HTTP+SSE clients of
servers without sessions, and whose credentials go along when words change.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from tests.end_to_end.federation_rig import SAMPLE, config
from tests.end_to_end.legacy_sse_rig import RawSse
from tests.end_to_end.mcp_credentials_rig import OUTBOUND, TOKEN, jwt_auth, target_of, use
from tests.end_to_end.modern_rig import NEW, SPACE, Listening, Modern, messages, process, remote, server
from tests.end_to_end.recorder import Recorder

pytestmark = pytest.mark.warm

__all__ = ["server"]
LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
DOCUMENT = {
    "openapi": "3.0.0",
    "info": {"title": "Pets", "version": "7"},
    "paths": {"/r/pets/get": {"get": {"operationId": "get_pet"}}},
}


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    found = Recorder()
    yield found
    found.stop()


def openapi(recorder: Recorder) -> str:
    return f'openapi: {{host: "http://127.0.0.1:{recorder.port}", schema: {json.dumps(DOCUMENT)}}}'


def sse(recorder: Recorder, key: str) -> str:
    return f'sse: {{host: "http://127.0.0.1:{recorder.port}/r/{key}/sse"}}'


# -- OpenAPI targets ---------------------------------------------------------------------------------------------------
def test_an_http_service_speaks_every_revision(gateway: Callable[..., Any], recorder: Recorder) -> None:
    client = Modern(gateway(config({"pets": openapi(recorder)})))
    found = client.ask("server/discover")["result"]
    assert found["supportedVersions"] == [*LEGACY, NEW]
    assert found["capabilities"] == {"tools": {}}
    assert found["_meta"] == {SPACE + "serverInfo": {"name": "Pets", "version": "7"}}
    assert (found["resultType"], found["ttlMs"], found["cacheScope"]) == ("complete", 0, "private")
    tools = client.ask("tools/list")["result"]
    assert ([tool["name"] for tool in tools["tools"]], tools["resultType"]) == (["get_pet"], "complete")
    called = client.ask("tools/call", name="get_pet", arguments={})["result"]
    assert (called["structuredContent"], called["resultType"]) == ({"called": True}, "complete")
    sent = recorder.seen["pets"][-1].fields
    assert not [name for name in sent if name.startswith("mcp-")]
    unknown = client.post("tasks/get", taskId="1")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, -32601)
    body, fields = client.message("tools/list")
    refused = client.http.post("/mcp", json=body, headers={**fields, "mcp-protocol-version": "v9"})
    assert refused.json()["error"]["data"]["supported"] == [*LEGACY, NEW]
    opened = client.http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": NEW, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})  # fmt: skip
    assert messages(opened)[0]["result"]["protocolVersion"] == LEGACY[-1], "sessions are of earlier revisions"


def test_a_subscription_to_an_http_service_stays_open_and_empty(
    gateway: Callable[..., Any], recorder: Recorder, server: Callable[..., int]
) -> None:
    running = gateway(config({"pets": openapi(recorder)}))
    listening = Listening(Modern(running), toolsListChanged=True)
    assert listening.acknowledged() == {}
    running.write(config({"other": SAMPLE}))
    end = listening.next()
    assert end is not None
    assert (end["id"], end["result"]["resultType"]) == (listening.id, "complete")
    # Beside another target it takes nothing away.
    both = gateway(config({"pets": openapi(recorder), "new": remote(server("--only", "new"))}))
    client = Modern(both)
    assert client.ask("server/discover")["result"]["supportedVersions"] == [NEW]
    assert {"pets_get_pet", "new_test_simple_text"} <= {one["name"] for one in client.ask("tools/list")["result"]["tools"]}
    assert Listening(client, toolsListChanged=True).acknowledged() == {"toolsListChanged": True}


# -- targets over HTTP+SSE ---------------------------------------------------------------------------------------------
def test_a_server_over_sse_gets_a_session_for_each_request(gateway: Callable[..., Any], recorder: Recorder) -> None:
    client = Modern(gateway(config({"one": sse(recorder, "each")})))
    answer = client.post("server/discover")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, -32601)
    assert recorder.seen["each"] == [], "its transport says that it has sessions: nobody asks it"
    for _ in range(2):
        found = client.ask("tools/call", name="call", arguments={})["result"]
        assert (found["content"][0]["text"], found["resultType"]) == ("called", "complete")
    said = [json.loads(one.body)["method"] for one in recorder.seen["each"] if one.body]
    assert said == ["initialize", "notifications/initialized", "tools/call"] * 2
    assert [one.method for one in recorder.seen["each"]].count("GET") == 2
    assert SPACE not in json.dumps([one.body for one in recorder.seen["each"]])


# -- clients over HTTP+SSE ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["remote", "process"])
def test_a_client_over_sse_uses_a_server_without_sessions(
    gateway: Callable[..., Any], server: Callable[..., int], kind: str
) -> None:
    one = remote(server("--only", "new")) if kind == "remote" else process("--only", "new")
    raw = RawSse(gateway(config({"one": one})))
    assert raw.open()["result"]["protocolVersion"] == "2025-06-18"
    found = raw.ask("tools/call", name="test_simple_text", arguments={})["result"]
    assert found["content"][0]["text"].startswith("This is a simple text")
    assert "resultType" not in found


def test_without_sessions_there_is_no_stream_of_one(gateway: Callable[..., Any]) -> None:
    running = gateway(config({"one": SAMPLE}, "  statefulMode: stateless\n"))
    answer = httpx.get(f"{running.url}/sse", headers={"accept": "text/event-stream"}, timeout=60)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    answer = httpx.post(f"{running.url}/sse", json=ping, headers=headers, timeout=60)
    assert (messages(answer)[-1]["result"], "mcp-session-id" in answer.headers) == ({}, False)


def test_sessions_over_sse_are_for_this_machine_where_that_is_asked(gateway: Callable[..., Any]) -> None:
    running = gateway(config({"one": SAMPLE}, "  dnsRebindingProtection: true\n"))
    for fields in ({"host": "rebound.example"}, {"host": "localhost", "origin": "http://rebound.example"}):
        for method in ("GET", "POST"):
            answer = httpx.request(method, f"{running.url}/sse?sessionId=x", headers=fields, timeout=60)
            assert (answer.status_code, answer.text) == (403, "mcp: host or origin is not local")
    with httpx.stream("GET", f"{running.url}/sse", headers={"host": "localhost"}, timeout=60) as answer:
        assert answer.status_code == 200
        assert next(answer.iter_lines()) == "event: endpoint"


# -- credentials -------------------------------------------------------------------------------------------------------
WAYS = ("none", "key", "passthrough")
KINDS = ("plain", "mcp", "sse", "openapi", "new-plain", "new")


def routed(recorder: Recorder) -> str:
    routes = []
    for kind in KINDS:
        for out in WAYS:
            key = f"{kind}.{out}"
            auth = OUTBOUND[out][0]
            target = target_of(kind.removeprefix("new-").replace("new", "mcp"), key, recorder, {"backendAuth": auth} if auth else {})
            if kind.startswith("new"):
                target["mcp"] = {"host": f"http://127.0.0.1:{recorder.port}/r/{key}/new"}
            mcp: dict[str, Any] = {"targets": [target], **({} if kind.endswith("plain") else {"prefixMode": "always"})}
            routes.append({
                "matches": [{"path": {"pathPrefix": f"/{key}/"}}],
                "policies": jwt_auth(),
                "backends": [{"mcp": mcp}],
            })  # fmt: skip
    return "gateways: {default: {port: {port}}}\nroutes: " + json.dumps(routes) + "\n"


def test_credentials_go_along_when_words_change_and_only_where_they_may(
    gateway: Callable[..., Any], recorder: Recorder
) -> None:
    running = gateway(routed(recorder))
    client = Modern(running)
    fields = {"authorization": f"Bearer {TOKEN}"}
    for kind in KINDS:
        prefix = "" if kind.endswith("plain") else "t_"
        for out in WAYS:
            key = f"{kind}.{out}"
            for method, params in (("tools/list", {}), ("tools/call", {"name": f"{prefix}call", "arguments": {}})):
                body, own = client.message(method, **params)
                answer = client.http.post(f"/{key}/mcp", json=body, headers={**own, **fields})
                assert "result" in messages(answer)[-1], (key, answer.text)
            if kind.startswith("new"):
                use(f"{running.url}/{key}/mcp", fields, "", prefix)
            seen = list(recorder.seen[key])
            assert any("call" in one.text for one in seen), key
            for one in seen:
                assert OUTBOUND[out][1](one), (key, one)
                assert (TOKEN in one.text) == (out == "passthrough"), (key, one)
