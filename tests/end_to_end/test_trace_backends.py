"""/debug/trace of requests to models, tools, and of calls on the side."""

from __future__ import annotations

import base64
import json
import sys

import pytest
from tests.end_to_end.asking import ask
from tests.end_to_end.trace_rig import PLAIN
from tests.end_to_end.tracing import Watch, one, row, rows

pytestmark = pytest.mark.warm

LLM = """
gateways:
  default: {port: {port}}
llm:
  models:
  - name: pinned
    provider: openai
    params: {baseUrl: "http://127.0.0.1:BACKEND/v1", apiKey: sk-sample-key, model: real-model}
"""
MCP = """
gateways:
  default: {port: {port}}
mcp:
  targets:
  - name: one
    mcp: {host: "http://127.0.0.1:BACKEND/mcp"}
  - name: two
    stdio: {cmd: "PYTHON", args: ["-m", "headgate.sample.mcp_server"]}
""".replace("PYTHON", sys.executable)
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_call_shows_provider_and_both_bodies(gateway, sample, stream: bool) -> None:
    running = gateway(LLM.replace("BACKEND", str(sample("llm_provider", "--api-key", "sk-sample-key"))))
    watch = Watch(running)
    body = {"model": "pinned", "messages": [{"role": "user", "content": "Hello"}], "stream": stream}
    answer = ask(running, "POST", "/v1/chat/completions", {"content-type": "application/json"}, json.dumps(body))
    assert answer.status == 200
    events = watch.wait()
    names = rows(events)
    expected = [
        "requestSnapshot route policies", "policySelection backend", "bodySnapshot llm request before translation",
        "llmRouteResolved", "llmRequestDetected", "requestSnapshot final request", "backendCallStart",
        "bodySnapshot final request", "backendCallResult", "responseSnapshot raw response",
        "responseSnapshot backend response ready", "responseSnapshot final response", "bodySnapshot response",
        "requestFinished",
    ]  # fmt: skip
    assert [name for name in names if name in expected] == expected, names
    assert one(events, "llmRouteResolved") == {
        "type": "llmRouteResolved", "provider": "openai", "routeType": "completions"
    }
    detected = one(events, "llmRequestDetected")
    assert detected["streaming"] is stream
    assert detected["requestModel"] == "real-model", "what is asked of the provider"
    assert (detected["inputFormat"], detected["upstreamRouteType"]) == ("completions", "completions")
    assert "llmStreamingTranslation" not in names
    before = json.loads(base64.b64decode(one(events, "bodySnapshot llm request before translation")["body"]))
    after = json.loads(base64.b64decode(one(events, "bodySnapshot final request")["body"]))
    assert (before["model"], after["model"]) == ("pinned", "real-model")
    assert "sk-sample-key" not in json.dumps(events)


@pytest.mark.parametrize("stream", [False, True])
def test_a_translated_model_call_shows_both_formats(gateway, sample, stream: bool) -> None:
    running = gateway(LLM.replace("BACKEND", str(sample("llm_provider", "--api-key", "sk-sample-key"))))
    watch = Watch(running)
    body = {"model": "pinned", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}], "stream": stream}
    answer = ask(running, "POST", "/v1/messages", {"content-type": "application/json"}, json.dumps(body))
    assert answer.status == 200
    events = watch.wait()
    formats = {"provider": "openai", "inputFormat": "messages", "upstreamRouteType": "completions"}
    detected = one(events, "llmRequestDetected")
    assert detected == {
        "type": "llmRequestDetected", "requestModel": "real-model", "streaming": stream, **formats
    }  # fmt: skip
    if not stream:
        assert "llmStreamingTranslation" not in rows(events)
        return
    assert one(events, "llmStreamingTranslation") == {
        "type": "llmStreamingTranslation", "streamFormat": "sse", **formats
    }  # fmt: skip
    names = rows(events)
    assert names.index("responseSnapshot raw response") < names.index("llmStreamingTranslation")
    assert names.index("llmStreamingTranslation") < names.index("bodySnapshot llm raw response")


def test_a_tool_call_shows_what_was_asked_of_each_target(gateway, sample) -> None:
    running = gateway(MCP.replace("BACKEND", str(sample("mcp_server", "--http", "127.0.0.1:0"))))
    watch = Watch(running)
    answer = ask(running, "POST", "/mcp", JSON, json.dumps(INITIALIZE))
    assert answer.status == 200
    session = answer.headers["mcp-session-id"]
    events = watch.wait()
    nested = [event for event in events if "scope" in event]
    assert [row(event) for event in nested][:2] == ["backendCallStart", "backendCallResult"]
    assert all(event["scope"][0].startswith("mcp") for event in nested)
    outer = [row(event) for event in events if "scope" not in event]
    assert outer[-1] == "requestFinished"
    assert outer.count("backendCallStart") == 1

    watch = Watch(running)
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {"name": "one_echo", "arguments": {"message": "hello"}}}  # fmt: skip
    assert ask(running, "POST", "/mcp", {**JSON, "mcp-session-id": session}, json.dumps(call)).status == 200
    events = watch.wait()
    told = one(events, "policyEvent mcp")["details"]
    assert told["method.name"] == "tools/call"
    assert session not in json.dumps([event for event in events if row(event).startswith("policy")])


def test_a_mirror_is_a_nested_call(policies, upstream) -> None:
    def script(connection) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    running = policies(f"requestMirror: {{backend: {{host: '127.0.0.1:{upstream(script)}'}}, percentage: 1.0}}")
    watch = Watch(running)
    ask(running)
    events = watch.wait()
    assert [row(event) for event in events if event.get("scope") == ["mirror"]] == [
        "backendCallStart", "backendCallResult"
    ]
    assert [row(event) for event in events if "scope" not in event and not row(event).startswith("policy ")
            and "mirror" not in row(event)] == PLAIN  # fmt: skip
