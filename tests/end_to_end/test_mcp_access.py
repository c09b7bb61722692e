"""Who may do what, OAuth documents, MCP Apps and what is told, clause by clause (ci/mcp-checklist.md)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from tests.end_to_end.federation_rig import ACCEPT, INITIALIZE, SAMPLE, Raw, config, messages
from tests.end_to_end.identity_rig import JWKS, token
from tests.end_to_end.legacy_sse_rig import RawSse
from tests.end_to_end.mcp_stand_in import StandIn, tool
from tests.end_to_end.mcp_telemetry_rig import lines

pytestmark = pytest.mark.warm

TOKEN = {"authorization": f"Bearer {token(sub='ada', groups=['ops'], exp=4_000_000_000)}"}
OPEN = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}


@pytest.fixture(scope="module")
def stand_in() -> Iterator[StandIn]:
    found = StandIn()
    yield found
    found.stop()


# -- rules -----------------------------------------------------------------------------------------------------------------
def test_nothing_is_there_for_nobody(gateway: Callable[..., Any]) -> None:
    raw = Raw(gateway(config({"a": SAMPLE}, "  policies: {mcpAuthorization: {rules: [{deny: 'true'}]}}\n")))
    for method, params, message in (
        ("tools/call", {"name": "echo"}, "Unknown tool: echo"),
        ("prompts/get", {"name": "greet"}, "Unknown prompt: greet"),
        ("resources/read", {"uri": "sample://readme"}, "Unknown resource: sample://readme"),
        ("tasks/get", {"taskId": "t"}, "Unknown task: t"),
    ):
        answer = raw.post({"id": 1, "method": method, "params": params})
        assert (answer.status_code, answer.json()["error"]["code"], answer.json()["error"]["message"]) == (400, -32602, message)
    assert raw.names("tools/list", "tools") == raw.names("resources/list", "resources") == []


def test_rules_of_all_levels_hold_together(gateway: Callable[..., Any]) -> None:
    """A deny of the route survives what a backend allows, and the other way round; missing claims fit nothing."""

    def rules(*texts: str) -> dict[str, Any]:
        return {"mcpAuthorization": {"rules": [json.loads(text) if text.startswith("{") else text for text in texts]}}

    deny_add = '{"deny": "mcp.tool.name == \'add\'"}'
    cases = {
        "base": (rules(deny_add), rules("true")),
        "backend": (rules("true"), rules(deny_add)),
        "empty": (rules(), rules()),
        "either": (rules("mcp.tool.name == 'add'"), rules("mcp.tool.name == 'echo'")),
        "claims": (rules("jwt.sub == 'ada' && mcp.tool.name == 'echo'", "jwt.team.name == 'x'"), rules()),
        "nested": (rules("'ops' in jwt.realm.groups"), rules()),
    }
    wanted = {
        "base": ["echo", "slow"], "backend": ["echo", "slow"], "empty": ["echo", "add", "slow"], "either": ["echo", "add"],
        "claims": ["echo"], "nested": [],
    }  # fmt: skip
    auth = {"issuer": "https://idp.test", "audiences": ["api"], "jwks": JWKS, "mode": "optional"}
    target = {"name": "t", "stdio": json.loads(json.dumps({"cmd": SAMPLE.split('"')[1], "args": ["-m", "headgate.sample.mcp_server"]}))}
    routes = [
        {
            "matches": [{"path": {"pathPrefix": f"/{name}"}}],
            "policies": {"jwtAuth": auth, **route},
            "backends": [{"mcp": {"targets": [target]}, "policies": backend}],
        }
        for name, (route, backend) in cases.items()
    ]
    running = gateway("gateways: {default: {port: {port}}}\nroutes: " + json.dumps(routes) + "\n")

    def tools(name: str, fields: dict[str, str]) -> list[str]:
        with httpx.Client(base_url=running.url, headers={**ACCEPT, **fields}, timeout=60) as http:
            http.headers["mcp-session-id"] = http.post(f"/{name}", json=OPEN).headers["mcp-session-id"]
            found = messages(http.post(f"/{name}", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}))[-1]
            return [one["name"] for one in found["result"]["tools"]]

    assert {name: tools(name, TOKEN) for name in cases} == wanted
    assert tools("claims", {}) == [], "nobody has no claims"


# -- in front of the targets -----------------------------------------------------------------------------------------------
def test_a_limit_counts_each_request(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    server = stand_in.add("limited")
    limit = "  policies: {localRateLimit: [{maxTokens: 5, tokensPerFill: 1, fillInterval: 3600s, type: requests}]}\n"
    raw = Raw(gateway(config({"a": stand_in.target(server)}, limit)))  # initialize, initialized
    assert raw.http.get("/mcp", headers={"accept": "text/event-stream"}).status_code == 405
    assert raw.text("call") == "limited called"
    assert raw.ask("ping")["result"] == {}
    before = len(server.seen)
    over = raw.post({"id": 9, "method": "ping"})
    assert (over.status_code, over.text) == (429, "rate limit exceeded")
    assert len(server.seen) == before


def test_keys_for_targets(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    servers = [stand_in.add(f"keyed-{name}") for name in ("a", "b")]
    targets = {
        server.name[-1]: stand_in.target(server) + f"\n    policies: {{backendAuth: {{key: my-key-{server.name[-1]}}}}}"
        for server in servers
    }
    raw = Raw(gateway(config(targets)))
    raw.ask("tools/list")
    for server in servers:
        assert {one.fields["authorization"] for one in server.seen} == {f"Bearer my-key-{server.name[-1]}"}


# -- OAuth documents -------------------------------------------------------------------------------------------------------
PLACES = ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp",
          "/.well-known/oauth-authorization-server/mcp")  # fmt: skip


def test_documents_of_the_one_server_pass(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    """A server that is a resource of its own works unmodified behind the gateway."""
    documents = StandIn()
    for name in (".well-known", "mcp"):
        documents.add(name)
    port = documents.server_address[1]
    running = gateway(config({"a": f'mcp: {{host: "127.0.0.1:{port}"}}'}))
    with httpx.Client(base_url=running.url, timeout=60) as http:
        for place in PLACES:
            answer = http.get(f"{place}?x=1", headers={"authorization": "Bearer mine", "x-kept": "1"})
            assert (answer.status_code, answer.json()["path"]) == (200, f"{place}?x=1")
            assert http.options(place).status_code == 200
        for one in documents.servers[".well-known"].seen:
            assert "authorization" not in one.fields
        assert documents.servers[".well-known"].seen[0].fields["x-kept"] == "1"
        assert http.post(PLACES[0], json={}).status_code in (400, 406), "a message, and no document"
        assert http.get("/.well-known/openid-configuration").status_code in (400, 406)
    strict = gateway(config({"a": f'mcp: {{host: "127.0.0.1:{port}"}}'}, "  dnsRebindingProtection: true\n"))
    assert httpx.get(f"{strict.url}{PLACES[0]}", timeout=60).status_code == 200
    for fields in ({"host": "evil.example"}, {"origin": "http://evil.example"}, {"origin": "null"}):
        assert httpx.get(f"{strict.url}{PLACES[0]}", headers=fields, timeout=60).status_code == 403
    # Of several there is none, nor of a process.
    for targets in ({"a": f'mcp: {{host: "127.0.0.1:{port}"}}', "b": SAMPLE}, {"b": SAMPLE}):
        assert httpx.get(f"{gateway(config(targets)).url}{PLACES[0]}", timeout=60).status_code in (400, 406)
    documents.stop()
    away = gateway(config({"a": 'mcp: {host: "127.0.0.1:1"}'}))
    gone = httpx.get(f"{away.url}{PLACES[0]}", timeout=60)
    assert (gone.status_code, gone.json()["error"]["code"]) == (503, -32603)


def test_own_documents_come_first_and_see_their_request(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    server = stand_in.add("protected")
    policies = {
        "mcpAuthentication": {"issuer": "https://idp.test", "audiences": ["api"], "jwks": JWKS,
                              "resourceMetadata": {"resource": "https://gw.test/mcp"}},
        "transformations": {"response": {"set": {"x-of": 'request.path + " " + request.headers["x-who"]'}}},
    }  # fmt: skip
    running = gateway(config({"a": stand_in.target(server)}, f"  policies: {json.dumps(policies)}\n"))
    answer = httpx.get(f"{running.url}{PLACES[1]}", headers={"x-who": "ada"}, timeout=60)
    assert answer.json()["resource"] == "https://gw.test/mcp"
    assert answer.headers["x-of"] == f"{PLACES[1]} ada"
    assert server.seen == []


def test_any_origin_is_served_unless_that_is_forbidden(gateway: Callable[..., Any]) -> None:
    for more, wanted in (("", (200, 200, 200, 200)), ("  dnsRebindingProtection: true\n", (403, 403, 403, 200))):
        running = gateway(config({"a": SAMPLE}, more))
        found = tuple(
            httpx.post(f"{running.url}/mcp", json=OPEN, headers={**ACCEPT, **fields}, timeout=60).status_code
            for fields in (
                {"origin": "https://evil.example"}, {"origin": "null"}, {"host": "evil.example:1"},
                {"origin": "http://localhost:1234"},
            )
        )  # fmt: skip
        assert found == wanted


# -- MCP Apps --------------------------------------------------------------------------------------------------------------
def app(uri: Any) -> dict[str, Any]:
    return {"ui": {"resourceUri": uri, "visibility": ["model"]}, "ui/resourceUri": uri, "own": 1}


APPS = {
    "tools/list": {"tools": [tool("one", _meta=app("ui://app/1")), tool("two", _meta=app("https://x/")), tool("three", _meta=app(5))]},
    "resources/list": {"resources": [{"uri": "ui://app/1", "name": "app"}, {"uri": "UI://app/2", "name": "big"}]},
    "resources/read": lambda params: {"contents": [{"uri": params["uri"], "text": "<html>"}]},
}


def test_user_interfaces_keep_their_uris_together(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    servers = [stand_in.add(f"apps-{name}", capabilities={"tools": {}, "resources": {}}, results=dict(APPS)) for name in ("a", "b")]
    raw = Raw(gateway(config({server.name[-1]: stand_in.target(server) for server in servers})))
    tools = raw.ask("tools/list")["result"]["tools"]
    assert [one["_meta"] for one in tools] == [
        app(f"ui://{name}+app/1") if number == 0 else app("https://x/" if number == 1 else 5) for name in "ab" for number in range(3)
    ]
    listed = raw.names("resources/list", "resources", "uri")
    assert listed == ["ui://a+app/1", "UI://a+app/2", "ui://b+app/1", "UI://b+app/2"]
    for uri in listed:
        [content] = raw.ask("resources/read", uri=uri)["result"]["contents"]
        assert content["uri"] == uri
    for hostile in ("a+ui://app/1", "ui://app/a+1", "ui://+app/1", "ui://zz+app/1", "ui://app/1", "ui://a?+app/1", "ui://a#+x"):
        assert raw.ask("resources/read", uri=hostile)["error"]["message"] == f"Unknown resource: {hostile}"
    assert [one.message["params"]["uri"] for one in servers[0].asked("resources/read")] == ["ui://app/1", "UI://app/2"]
    single = Raw(gateway(config({"a": stand_in.target(servers[0])})))
    assert single.ask("tools/list")["result"] == APPS["tools/list"]


@pytest.mark.parametrize("kind", ["one", "several"])
def test_a_forbidden_interface_is_not_told_of(gateway: Callable[..., Any], stand_in: StandIn, kind: str) -> None:
    results = {**APPS, "tools/list": {"tools": [tool("one", _meta=app("ui://app/1")), tool("bare", _meta={"ui": {"resourceUri": "ui://app/1"}})]}}
    server = stand_in.add(f"hidden-{kind}", capabilities={"tools": {}, "resources": {}}, results=results)
    rules = "  policies: {mcpAuthorization: {rules: [{deny: 'has(mcp.resource) && mcp.resource.name == \"ui://app/1\"'}]}}\n"
    targets = {"a": stand_in.target(server), **({"b": SAMPLE} if kind == "several" else {})}
    raw, prefix = Raw(gateway(config(targets, rules))), "a_" if kind == "several" else ""
    tools = [one for one in raw.ask("tools/list")["result"]["tools"] if one["name"] in (f"{prefix}one", f"{prefix}bare")]
    assert [one.get("_meta") for one in tools] == [{"ui": {"visibility": ["model"]}, "own": 1}, None]
    shown = "ui://a+app/1" if kind == "several" else "ui://app/1"
    assert shown not in raw.names("resources/list", "resources", "uri")
    assert raw.ask("resources/read", uri=shown)["error"]["message"] == f"Unknown resource: {shown}"


# -- what is told ----------------------------------------------------------------------------------------------------------
def test_what_is_told_of_calls(gateway: Callable[..., Any]) -> None:
    more = """frontendPolicies:
  accessLog:
    add:
      x.arguments: mcp.tool.arguments
      x.result: mcp.tool.result.content[0].text
      x.took: 'proxy.requestProcessingDuration >= duration("0s") && proxy.upstreamDuration >= duration("0s") && proxy.responseProcessingDuration >= duration("0s")'
config: {logging: {format: json}}
"""
    running = gateway(config({"a": SAMPLE}) + more.split("config:")[0], settings="logging: {format: json}")
    raw = Raw(running)
    raw.ask("tools/call", name="echo", arguments={"message": "CANARY"})
    old = RawSse(running)
    old.open()
    old.ask("tools/call", name="echo", arguments={"message": "OLD"})
    first, second = lines(running, "tools/call", 2)
    assert (first["x.arguments"], first["x.result"], first["x.took"]) == ({"message": "CANARY"}, "Echo: CANARY", True)
    assert (second["x.arguments"], second.get("x.result")) == ({"message": "OLD"}, None), "its result is on the stream"
    plain = gateway(config({"a": SAMPLE}), settings="logging: {format: json}")
    raw = Raw(plain)
    raw.ask("tools/call", name="echo", arguments={"message": "CANARY"})
    lines(plain, "tools/call")
    assert "CANARY" not in plain.log()
