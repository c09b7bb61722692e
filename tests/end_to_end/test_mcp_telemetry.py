"""What logs, metrics and expressions tell of MCP requests."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.end_to_end.federation_rig import INITIALIZE, SAMPLE, Raw, asking, config, messages
from tests.end_to_end.mcp_telemetry_rig import lines

pytestmark = pytest.mark.warm

ADD = """frontendPolicies:
  accessLog:
    add:
      x.method: mcp.methodName
      x.session: mcp.sessionId
      x.tool: mcp.tool.name + "@" + mcp.tool.target
      x.arguments: mcp.tool.arguments
      x.result: mcp.tool.result.content[0].text
      x.error: mcp.tool.error.message
      x.prompt: mcp.prompt.name
      x.resource: mcp.resource.name
config:
  logging: {format: json}
"""
ECHO = {"name": "echo", "arguments": {"message": "CANARY"}}




def remote(sample: Any, *more: str) -> str:
    return f'mcp: {{host: "http://127.0.0.1:{sample("mcp_server", "--http", "127.0.0.1:0", *more)}/mcp"}}'


@pytest.mark.cold
@pytest.mark.parametrize("kind", ["stdio", "remote", "remote-json", "several"])
def test_fields_and_series(kind: str, gateway: Callable[..., Any], sample: Any) -> None:
    own = SAMPLE if kind == "stdio" else remote(sample, *(["--json"] if kind == "remote-json" else []))
    several = kind == "several"
    running = gateway(config({"t": own, **({"b": SAMPLE} if several else {})}), 1, settings="logging: {format: json}")
    raw, prefix = Raw(running), "t_" if several else ""
    raw.ask("tools/call", **{**ECHO, "name": f"{prefix}echo"})
    raw.ask("prompts/get", name=f"{prefix}greet", arguments={"name": "Ada"})
    raw.ask("resources/read", uri="t+sample://readme" if several else "sample://readme")
    raw.ask("tools/list")
    assert raw.ask("tools/call", name=f"{prefix}nope", arguments={})["error"]["code"] == -32602
    [call, failed] = lines(running, "tools/call", 2)
    session = raw.session[:16]
    common = {"protocol": "mcp", "mcp.target": "t", "mcp.resource.type": "tool", "mcp.session.id": session}
    assert call | common | {"gen_ai.tool.name": "echo"} == call
    assert failed | common | {"gen_ai.tool.name": "nope", "mcp.error.code": -32602} == failed
    assert "nope" in failed["mcp.error.message"]
    assert "mcp.error.code" not in call
    [prompt], [read], [listed] = (lines(running, method) for method in ("prompts/get", "resources/read", "tools/list"))
    assert (prompt["gen_ai.prompt.name"], prompt["mcp.resource.type"]) == ("greet", "prompt")
    assert "gen_ai.tool.name" not in prompt
    assert (read["mcp.resource.uri"], read["mcp.resource.type"]) == ("sample://readme", "resource")
    assert listed["mcp.resource.type"] == "tool"
    assert ("mcp.target" in listed) is not several
    assert lines(running, "initialize")[0]["mcp.session.id"] == session
    assert lines(running, "notifications/initialized")[0]["mcp.session.id"] == session
    assert "CANARY" not in running.log(), "arguments are only logged where an expression asks for them"
    assert raw.session not in running.log(), "a whole session id is half of what it takes to go on with it"

    def count(**labels: str) -> float:
        _, page = running.fetch(f"http://127.0.0.1:{running.stats}/metrics")
        found = [line for line in page.splitlines() if line.startswith("gw_mcp_requests_total{")]
        wanted = [f'{name}="{value}"' for name, value in labels.items()]
        assert found, page
        return sum(float(line.rsplit(" ", 1)[1]) for line in found if all(label in line for label in wanted))

    place = {"gateway": "default/default", "route": "internal/default", "server": "t"}
    assert count(method="tools/call", resource_type="tool", resource="echo", **place) == 1
    assert count(method="tools/call", resource_type="tool", resource="unknown", **place) == 1
    assert count(method="prompts/get", resource_type="prompt", resource="greet", **place) == 1
    assert count(method="resources/read", resource_type="resource", resource="sample://readme", **place) == 1
    assert count(resource="nope") == 0
    assert count(method="initialize") == count(method="notifications/initialized") == count(method="tools/list") == 1
    raw.post({"id": 9, "method": "made/up"})
    assert count(method="other") == 1
    known = {one["target"]: one for one in json.loads(running.fetch(f"http://127.0.0.1:{running.admin}/api/mcp")[1])["targets"]}
    own = known["t"]
    assert (own["state"], own["name"], own["version"]) == ("up", "headgate-sample", "0.1.0")
    assert own["protocol"] == INITIALIZE["protocolVersion"]
    # Initialize, two calls, prompt, resource and list; what nobody knows goes to the one target there is.
    assert (own["calls"], own["errors"], own["failures"]) == ((6, 1, 0) if several else (7, 2, 0))
    assert own["error"]
    assert own["answered"] >= own["erred"] >= own["opened"]
    assert 0 < own["p50Ms"] <= own["p95Ms"]
    if several:
        # What is a list of all is asked of it too.
        assert (known["b"]["calls"], known["b"]["errors"], known["b"]["name"]) == (2, 0, "headgate-sample")


@pytest.mark.parametrize("kind", ["stdio", "remote", "several"])
def test_expressions(kind: str, gateway: Callable[..., Any], sample: Any) -> None:
    own = SAMPLE if kind == "stdio" else remote(sample)
    several = kind == "several"
    # A rule looks at every tool of a list; what the log tells is about the request all the same.
    more = "  policies: {mcpAuthorization: {rules: ['mcp.tool.name != \"add\"', 'has(mcp.prompt)', 'has(mcp.resource)']}}\n"
    text = config({"t": own, **({"b": SAMPLE} if several else {})}, more if several else "")
    running = gateway(text + ADD.split("config:")[0], 1, settings="logging: {format: json}")
    raw, prefix = Raw(running), "t_" if several else ""
    raw.ask("tools/list")
    raw.ask("tools/call", **{**ECHO, "name": f"{prefix}echo"})
    raw.ask("tools/call", name=f"{prefix}nope", arguments={})
    raw.ask("resources/read", uri="t+sample://readme" if several else "sample://readme")
    [call, failed] = lines(running, "tools/call", 2)
    assert (call["x.method"], call["x.session"], call["x.tool"]) == ("tools/call", raw.session, "echo@t")
    assert (call["x.arguments"], call["x.result"]) == ({"message": "CANARY"}, "Echo: CANARY")
    assert not {"x.error", "x.prompt", "x.resource"} & {key for key, value in call.items() if value is not None}
    assert "nope" in failed["x.error"]
    [listed], [read] = lines(running, "tools/list"), lines(running, "resources/read")
    assert listed.get("x.tool") is None
    assert read["x.resource"] == "sample://readme"


def test_a_client_that_leaves_and_a_worker_that_relays(gateway: Callable[..., Any]) -> None:
    running = gateway(config({"t": SAMPLE, "b": asking("b")}), 2, settings="logging: {format: json}")
    raw = Raw(running)
    slow = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "t_slow", "arguments": {"seconds": 30}}}
    for _ in range(6):      # connections of their own: both workers
        with httpx.Client(base_url=running.url, headers=raw.http.headers, timeout=0.5) as client, pytest.raises(httpx.TimeoutException):
            client.post("/mcp", json=slow)
        with httpx.Client(base_url=running.url, headers=raw.http.headers, timeout=60) as client:
            found = messages(client.post("/mcp", json={"jsonrpc": "2.0", "id": 6, "method": "ping"}))
            assert found[-1]["result"] == {}
    assert len(lines(running, "tools/call", 6)) == 6
    assert len(lines(running, "ping", 6)) == 6
    deadline = time.monotonic() + 40
    while running.metric('gw_mcp_requests_total{method="tools/call"') != 6:
        assert time.monotonic() < deadline, "each is counted once"
        time.sleep(0.05)
    running.wait_metric('gw_mcp_requests_total{method="ping"', 6)
    # What one worker asks another is no request of a client.
    _, page = running.fetch(f"http://127.0.0.1:{running.stats}/metrics")
    asked = [line for line in page.splitlines() if line.startswith("gw_requests_total{") and 'bind="relay"' in line]
    assert sum(float(line.rpartition(" ")[2]) for line in asked) == 0


def test_labels_of_the_configuration(gateway: Callable[..., Any]) -> None:
    text = config({"t": f'stdio: {{cmd: "{sys.executable}", args: ["-m", "headgate.sample.mcp_server"]}}'})
    running = gateway(text, 1, settings="metrics: {fields: {add: {who: 'request.headers[\"x-who\"]'}}}")
    raw = Raw(running)
    for who in ("ada", "bob", "ada"):
        raw.http.headers["x-who"] = who
        raw.ask("tools/call", **ECHO)
    _, page = running.fetch(f"http://127.0.0.1:{running.stats}/metrics")
    found = {line.split('who="')[1].split('"')[0]: line[-2:] for line in page.splitlines()
             if line.startswith('gw_mcp_requests_total{method="tools/call"')}  # fmt: skip
    assert found == {"ada": " 2", "bob": " 1"}
