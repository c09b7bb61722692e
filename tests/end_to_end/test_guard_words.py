"""What an operator is told of guards: by `--validate-only`, at the start, in the dump, at the admin server, and of MCP by what happens."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.federation_rig import Raw, asking, config
from tests.end_to_end.mcp_guardrails_rig import guarded
from tests.end_to_end.policy_peer import Policy, telling_server

from headgate.dialect.mcp.ext_mcp import McpRequest

pytestmark = pytest.mark.warm

MODELS = """
gateways:
  default: {port: {port}}
llm:
  policies:
    guardrails: {request: [{regex: {builtins: [email]}}]}
  models:
  - {name: one, provider: openai, params: {apiKey: k}}
  - {name: two, provider: openai, params: {apiKey: k}, guardrails: {response: [{regex: {builtins: [ssn]}}]}, passthrough: opaque}
  - {name: three, provider: openai, params: {apiKey: k}}
"""


def test_an_operator_is_told_what_guards_see(gateway: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(MODELS.replace("{port}", "4000"))
    found = subprocess.run(
        [sys.executable, "-m", "headgate.cli.main", "-f", str(path), "--validate-only"], capture_output=True, text=True, check=True
    )
    lines = found.stdout.splitlines()
    assert lines[-1] == "Configuration is valid!"
    assert lines[0].startswith("Guards of three at internal/llm:request; one at "), "what is the same is told once"
    assert "  request 1, regex: mask" in lines
    assert "    yes      plain     messages (completions, messages, responses, gemini, converse)" in lines
    wanted = "    no       tools     results of tools (completions, messages, responses, gemini, converse): `scope` is without toolOutput"
    assert wanted in lines
    first, second = [line for line in found.stderr.splitlines() if line.startswith("warning: llm.models")]
    assert first.startswith("warning: llm.models[0] and 1 more: guards do not check of requests: earlier tool calls (tools), ")
    assert "responses at all: there is no guard for them" in first
    assert second.startswith("warning: llm.models[1]: guards do not check paths of no known format; of requests: ")
    assert "the answer (stream)" in second
    running = gateway(MODELS)
    running.wait_log("guards do not check of requests")
    dump = json.loads(running.fetch(f"http://127.0.0.1:{running.admin}/config_dump")[1])
    told, *others = [one for one in objects(dump) if "guardCoverage" in one and "response" in one["guardCoverage"]]
    assert all(one["guardCoverage"] == told["guardCoverage"] for one in others)
    [entry] = told["guardCoverage"]["response"]
    assert (entry["guard"], entry["sees"]) == ("regex: mask", ["the answer"])
    assert entry["doesNotSee"]["the answer (stream)"] == "`streaming` is off"


def objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from objects(one)


@pytest.fixture
def policy() -> Iterator[Policy]:
    found = Policy()
    yield found
    found.stop()


METHODS = "methods: {'tools/*': full, 'prompts/get': request, '*/list': response, 'initialize': full, 'ping': 'off', 'completion/complete': full}"


def test_policy_servers_are_asked_about_what_is_declared(gateway: Callable[..., Any], policy: Policy) -> None:
    with telling_server() as (port, _):
        target = f'mcp: {{host: "http://127.0.0.1:{port}/mcp"}}'
        _compare(gateway(config({"a": target, "b": asking("b")}, guarded(policy.port, more=METHODS))), policy)


def _compare(running: Any, policy: Policy) -> None:
    rows = json.loads(running.fetch(f"http://127.0.0.1:{running.admin}/api/guards")[1])["rows"]
    declared = {(method, row["side"]): row["seen"] for row in rows for method in row["text"].split(", ")}
    raw = Raw(running)
    raw.ask("tools/call", name="a_tell", arguments={})
    raw.ask("prompts/get", name="a_hello")
    raw.ask("resources/read", uri="a+note://1")
    raw.ask("ping")
    raw.ask("completion/complete", ref={"type": "ref/prompt", "name": "b_hello"}, argument={"name": "x", "value": ""})
    for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
        raw.ask(method)
    assert raw.post({"method": "notifications/roots/list_changed"}).status_code == 202
    happened = {}
    for one in policy.seen:
        if isinstance(one, McpRequest):
            happened[one.method, "request"] = "yes" if one.HasField("mcp_request") else "refusals"
        else:
            happened[one.method, "response"] = "yes"
    called = ("initialize", "tools/call", "prompts/get", "resources/read", "ping", "completion/complete", "tools/list",
              "prompts/list", "resources/list", "resources/templates/list")  # fmt: skip
    for method in called:
        for side in ("request", "response"):
            assert happened.get((method, side), "no") == declared[method, side], (method, side)
    assert declared["notifications", "request"] == "no"
    assert not [one for one in policy.seen if one.method not in called]
