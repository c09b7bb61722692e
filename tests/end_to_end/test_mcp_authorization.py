"""Which tools, prompts and resources there are for whom."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.end_to_end.federation_rig import ACCEPT, INITIALIZE, SAMPLE, Raw, asking, config, messages
from tests.end_to_end.identity_rig import JWKS, token

pytestmark = pytest.mark.warm

RULES = """
  policies:
    jwtAuth: {issuer: "https://idp.test", audiences: [api], jwks: 'JWKS', mode: optional}
    mcpAuthorization:
      rules:
      - 'mcp.tool.name == "ask"'
      - {allow: 'mcp.tool.target == "b" && "admin" in jwt.groups'}
      - {allow: 'mcp.prompt.name == "hello"'}
      - {allow: 'mcp.resource.name.startsWith("note://a/")'}
      - {deny: 'has(mcp.tool) && mcp.tool.name == "exit"'}
      - {require: 'request.headers["x-team"] == "red"'}
      - {require: 'json(request.body).jsonrpc == "2.0"'}
""".replace("JWKS", JWKS).lstrip("\n")
ADMIN = {"authorization": f"Bearer {token(groups=['admin'], exp=4_000_000_000)}"}


class Client(Raw):
    """Asks on a new connection each time, so that both workers are met."""

    def __init__(self, running: Any, **fields: str) -> None:
        self.fields = fields
        super().__init__(running)

    def post(self, message: dict[str, Any]) -> httpx.Response:
        with httpx.Client(base_url=self.http.base_url, headers={**self.http.headers, **self.fields}, timeout=60) as one:
            return one.post("/mcp", json={"jsonrpc": "2.0", **message})


@pytest.fixture
def running(gateway: Callable[..., Any]) -> Any:
    return gateway(config({"a": asking("a"), "b": asking("b")}, RULES), 2)


def test_lists_hold_what_there_is_for_the_client(running: Any) -> None:
    plain = Client(running, **{"x-team": "red"})
    admin = Client(running, **{"x-team": "red"}, **ADMIN)
    for _ in range(4):
        assert plain.names("tools/list", "tools") == ["a_ask", "b_ask"]
        tools = admin.names("tools/list", "tools")
        assert tools == ["a_ask", *(f"b_{name}" for name in ("ask", "roots", "log", "change", "numbers", "later", "only-b"))]
    assert plain.names("prompts/list", "prompts") == ["a_hello", "b_hello"]
    assert plain.names("resources/list", "resources", "uri") == ["a+note://a/1"]
    assert plain.names("resources/templates/list", "resourceTemplates", "uriTemplate") == []
    other = Client(running, **{"x-team": "blue"})
    assert other.names("tools/list", "tools") == []


def test_calls_are_refused_as_if_there_were_nothing(running: Any) -> None:
    plain = Client(running, **{"x-team": "red"})
    admin = Client(running, **{"x-team": "red"}, **ADMIN)
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("tools/call", {"name": "b_only-b", "arguments": {}}, "Unknown tool: b_only-b"),
        ("tools/call", {"name": "a_exit", "arguments": {}}, "Unknown tool: a_exit"),
        ("resources/read", {"uri": "b+note://b/1"}, "Unknown resource: b+note://b/1"),
        ("resources/subscribe", {"uri": "b+note://b/1"}, "Unknown resource: b+note://b/1"),
        ("completion/complete", {"ref": {"type": "ref/resource", "uri": "b+note://x"}}, "Unknown resource: note://x"),
    ]
    for method, params, message in refused:
        for _ in range(2):
            answer = plain.post({"id": 1, "method": method, "params": params})
            error = answer.json()["error"]
            assert (answer.status_code, error["code"], error["message"]) == (400, -32602, message), method
            assert error.get("data") in (None, {"uri": params.get("uri")}), "what was asked for, and nothing else"
    for _ in range(4):
        assert admin.text("b_only-b") == "b: only-b"
        assert plain.ask("resources/read", uri="a+note://a/1")["result"]["contents"][0]["text"] == "a reads note://a/1"
    assert plain.ask("ping")["result"] == {}


def test_rules_change_with_the_configuration_and_sessions_go_on(running: Any) -> None:
    client = Client(running, **{"x-team": "red"})
    text = running.path.read_text()
    running.write(text[text.index("gateways:"):].replace('mcp.tool.name == "ask"', 'mcp.tool.name == "log"'))
    deadline = time.monotonic() + 40
    while client.names("tools/list", "tools") != ["a_log", "b_log"]:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_single_target_keeps_its_names(gateway: Callable[..., Any], sample: Any) -> None:
    rules = "  policies: {mcpAuthorization: {rules: ['mcp.tool.name == \"echo\"', 'has(mcp.resource)']}}\n"
    far = f'mcp: {{host: "http://127.0.0.1:{sample("mcp_server", "--http", "127.0.0.1:0")}/mcp"}}'
    for target in (SAMPLE, far):
        raw = Raw(gateway(config({"one": target}, rules), 2))
        assert raw.names("tools/list", "tools") == ["echo"]
        assert raw.text("echo", message="x") == "Echo: x"
        assert raw.text("add", a=1, b=2) == "error Unknown tool: add"
        assert raw.names("prompts/list", "prompts") == []
        assert raw.names("resources/list", "resources", "uri") == ["sample://readme"]
        [content] = raw.ask("resources/read", uri="sample://readme")["result"]["contents"]
        assert content["uri"] == "sample://readme"


SEEN = """
  policies:
    transformations: {request: {metadata: {team: '"red"', limits: '{"a": 1u}'}}}
    mcpAuthorization:
      rules:
      - {require: 'source.address == "127.0.0.1" && source.port > 0 && destination.port == {port} && destination.address == "127.0.0.1"'}
      - {require: 'metadata.team == "red" && metadata.limits.a == 1u'}
      - {require: 'proxy.bind == "bind/{port}" && proxy.gateway.name == "default" && proxy.route.name == "default" && proxy.listener.name == "default"'}
      - {require: 'request.headers["x_team"] == "a" && request.path == "/mcp" && size(request.headers["x-long"]) == 60000'}
      - {deny: 'source.spiffeId != null || source.connectHeaders != null || destination.hostname != null'}
      - {deny: 'request.startTime > timestamp("2100-01-01T00:00:00Z") || backend.name != "mcp"'}
      - 'true'
"""


def test_rules_see_the_same_at_every_worker(gateway: Callable[..., Any]) -> None:
    """A process belongs to one worker, to which the others relay its requests."""
    settings = "frontendPolicies: {http: {headersWithUnderscores: keep, http2MaxHeaderSize: 131072}}\n"
    running = gateway(settings + config({"one": SAMPLE}, SEEN.lstrip("\n")), 3)
    fields = {**ACCEPT, "x_team": "a", "x-long": "x" * 60_000}
    opened = httpx.post(f"{running.url}/mcp", headers=fields, json={"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}, timeout=60)
    fields["mcp-session-id"] = opened.headers["mcp-session-id"]
    with contextlib.ExitStack() as stack:
        # Connections that stay open are shared out among the workers.
        clients = [stack.enter_context(httpx.Client(headers=fields, timeout=60)) for _ in range(12)]
        for number, one in enumerate(clients * 2):
            answer = one.post(f"{running.url}/mcp", json={"jsonrpc": "2.0", "id": number, "method": "tools/list"})
            assert {tool["name"] for tool in messages(answer)[-1]["result"]["tools"]} >= {"echo", "add"}, (number, answer.text)


def test_rules_are_for_mcp_backends() -> None:
    from headgate.config.load import LoadErrors, TextSource, load

    text = """
gateways: {default: {port: 1}}
routes:
- backends: [{host: "a.test:1", policies: {mcpAuthorization: {rules: ["true"]}}}]
"""
    with pytest.raises(LoadErrors, match="mcpAuthorization is for MCP backends"):
        load(TextSource(text))
    with pytest.raises(LoadErrors, match="undeclared reference to 'nobody'"):
        load(TextSource("mcp: {targets: [{name: a, stdio: {cmd: x}}], policies: {mcpAuthorization: {rules: [nobody]}}}"))
