"""Policy servers are asked about requests and results, and what they say holds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.federation_rig import SAMPLE, Raw, asking, config, messages
from tests.end_to_end.identity_rig import JWKS, token
from tests.end_to_end.mcp_guardrails_rig import changed, guarded
from tests.end_to_end.modern_rig import Modern, process
from tests.end_to_end.policy_peer import Policy, passed, refused, telling_server

from headgate.dialect.mcp.ext_mcp import McpRequestResult, McpResponseResult

pytestmark = pytest.mark.warm





@pytest.fixture
def policy() -> Iterator[Policy]:
    found = Policy()
    yield found
    found.stop()


@pytest.fixture
def telling() -> Iterator[Any]:
    with telling_server() as (port, seen):
        yield f'mcp: {{host: "http://127.0.0.1:{port}/mcp"}}', seen




def test_both_phases_see_names_as_they_are_there(gateway: Callable[..., Any], policy: Policy, telling: Any) -> None:
    target, _ = telling
    raw = Raw(gateway(config({"a": target, "b": asking("b")}, guarded(policy.port)), 2))
    answer = raw.ask("tools/call", name="a_tell", arguments={"n": 1})
    assert answer["result"] == {"content": [{"type": "text", "text": "told"}], "n": 1.5}
    request, response = policy.asked("tools/call")
    assert (list(request.service_names), json.loads(request.mcp_request)) == (["a"], {"name": "tell", "arguments": {"n": 1}})
    assert list(response.service_names) == ["a"]
    assert b'"n": 1.50' in response.mcp_response, "numbers as they came"
    [content] = raw.ask("resources/read", uri="a+note://1")["result"]["contents"]
    assert content["uri"] == "a+note://1"
    request, response = policy.asked("resources/read")
    assert json.loads(request.mcp_request) == {"uri": "note://1"}
    assert json.loads(response.mcp_response)["contents"][0]["uri"] == "note://1"
    names = raw.names("tools/list", "tools")
    request, response = policy.asked("tools/list")
    assert not request.HasField("mcp_request")
    assert list(request.service_names) == list(response.service_names) == ["a", "b"]
    assert [one["name"] for one in json.loads(response.mcp_response)["tools"]] == names
    assert names[:2] == ["a_tell", "a_hide"]
    opening, opened = policy.asked("initialize")
    assert not opening.HasField("mcp_request")
    assert json.loads(opened.mcp_response)["serverInfo"]["name"] == "headgate"
    assert raw.ask("ping")["result"] == {}
    assert len(policy.asked("ping")) == 2
    raw.ask("completion/complete", ref={"type": "ref/prompt", "name": "b_hello"}, argument={"name": "x", "value": ""})
    [response] = policy.asked("completion/complete")
    assert response.mcp_response, "no request phase"
    assert raw.post({"method": "notifications/roots/list_changed"}).status_code == 202
    assert not [one for one in policy.seen if one.method.startswith("notifications/")]


def test_refusals(gateway: Callable[..., Any], policy: Policy, telling: Any) -> None:
    target, seen = telling
    running = gateway(config({"a": target}, guarded(policy.port)))
    raw = Raw(running)
    cases = (
        (1, "not you", None, {"code": -32001, "message": "not you"}),
        (2, "too many", b'{"retry": 5}', {"code": -32003, "message": "too many", "data": {"retry": 5}}),
        (3, "bad", b"{", {"code": -32600, "message": "bad"}),
        (0, "", None, {"code": -32603, "message": "rejected by policy"}),
        (77, "new", None, {"code": -32603, "message": "new"}),
    )
    for code, reason, data, error in cases:
        policy.on_request = lambda question, context, code=code, reason=reason, data=data: refused(code, reason, data)
        answer = raw.post({"id": "x", "method": "tools/call", "params": {"name": "tell"}})
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
        assert answer.json() == {"jsonrpc": "2.0", "id": "x", "error": error}
    assert not [one for one in seen if one["method"] == "tools/call"]
    policy.on_request = lambda question, context: None
    policy.on_response = lambda question, context: refused(1, "too secret", kind=McpResponseResult)
    answer = raw.post({"id": 5, "method": "tools/call", "params": {"name": "tell"}})
    assert answer.headers["content-type"] == "text/event-stream"
    assert messages(answer) == [{"jsonrpc": "2.0", "id": 5, "error": {"code": -32001, "message": "too secret"}}]
    running.wait_log('mcp.error.message="too secret"')
    assert "mcp.error.code=-32001" in running.log()
    answer = Raw(running).opened
    assert answer.json()["error"] == {"code": -32001, "message": "too secret"}
    assert "mcp-session-id" not in answer.headers
    assert raw.ask("ping")["error"]["message"] == "too secret"
    assert raw.ask("tools/nothing")["error"]["code"] == -32601, "errors of targets are not checked"


def test_changes_chain(gateway: Callable[..., Any], policy: Policy, telling: Any) -> None:
    target, seen = telling
    second = Policy()
    try:
        raw = Raw(gateway(config({"a": target, "b": target}, guarded(policy.port, second.port)), 2))

        def first_request(question: Any, context: Any) -> Any:
            if not question.HasField("mcp_request"):
                return changed(McpRequestResult, b"not even JSON")
            return changed(McpRequestResult, b'{"name": "tell",\n "arguments": {"n": 12345678901234567890.50}}')

        policy.on_request = first_request
        raw.text("a_tell")
        assert b"12345678901234567890.50" in second.asked("tools/call")[0].mcp_request
        [sent] = [one for one in seen if one["method"] == "tools/call"]
        assert "12345678901234567890.50" in sent["text"]
        policy.on_request = lambda question, context: None

        def hide(question: Any, context: Any) -> Any:
            result = json.loads(question.mcp_response)
            result["tools"] = [one for one in result["tools"] if "hide" not in one["name"]]
            return changed(McpResponseResult, result)

        policy.on_response = hide
        assert raw.names("tools/list", "tools") == ["a_tell", "b_tell"]
        assert len(json.loads(second.asked("tools/list")[-1].mcp_response)["tools"]) == 2
        policy.on_response = lambda question, context: changed(
            McpResponseResult, {"contents": [{"uri": "note://2", "text": "another"}]}
        )
        [content] = raw.ask("resources/read", uri="b+note://1")["result"]["contents"]
        assert content == {"uri": "b+note://2", "text": "another"}
        policy.on_request = lambda question, context: refused(1, "enough")
        before = len(second.seen)
        assert raw.text("a_tell") == "error enough"
        assert len(second.seen) == before, "the first to refuse is the last to be asked"
    finally:
        second.stop()


def test_violations(gateway: Callable[..., Any], policy: Policy, telling: Any) -> None:
    target, _ = telling
    strict = Raw(gateway(config({"a": target}, guarded(policy.port, more="methods: {'tools/*': full}"))))
    easy = Raw(gateway(config({"a": target}, guarded(policy.port, more="methods: {'tools/*': full}, failureMode: failOpen"))))
    bad = (
        (b"", "the answer has no result"),
        (b"\xff\xff\xff", "the answer is no McpRequestResult"),
        (changed(McpRequestResult, [1]), "the changed params cannot be used: params is not an object"),
        (changed(McpRequestResult, b"{"), "the changed params cannot be used"),
        (changed(McpRequestResult, {"arguments": {}}), "the changed params of tools/call have no name"),
        (changed(McpRequestResult, {"name": "tell", "arguments": 5}), "arguments of the changed params is not an object"),
        (changed(McpRequestResult, b'{"name": "tell", "name": "hide"}'), "the changed params cannot be used"),
    )
    for found, message in bad:
        policy.on_request = lambda question, context, found=found: found
        error = strict.ask("tools/call", name="tell")["error"]
        assert error["code"] == -32603
        assert error["message"].startswith(f"mcpGuardrails protocol violation: {message}"), error
        assert easy.text("tell") == "told", message
    policy.on_request = lambda question, context: None
    for found in (b"", changed(McpResponseResult, "x"), changed(McpResponseResult, {"content": 1})):
        policy.on_response = lambda question, context, found=found: found
        error = strict.ask("tools/call", name="tell")["error"]
        assert (error["code"], error["message"][:34]) == (-32603, "mcpGuardrails protocol violation: ")
        assert easy.text("tell") == "told"
    policy.on_response = lambda question, context: changed(McpResponseResult, {"tools": None})
    assert "the changed result of tools/list has no tools" in strict.ask("tools/list")["error"]["message"]


def test_header_fields(gateway: Callable[..., Any], policy: Policy, telling: Any) -> None:
    target, seen = telling

    def edit(question: Any, context: Any) -> Any:
        found = passed()
        for key, value in (("X-Team", b"red"), ("x-team", b"blue"), ("authorization", b"Bearer for-target"), ("x-utf", "ü".encode()),
                           ("bad name", b"x"), ("x-bad", b"a\r\nb: c"), ("content-length", b"5"), ("host", b"evil"),
                           (":path", b"/evil"), ("x-gw-relay-backend", b"x")):  # fmt: skip
            found.header_mutation.set.add(key=key, value=value)
        found.header_mutation.remove.extend(["X-Secret", "mcp-session-id"])
        return found

    policy.on_request = edit
    running = gateway(config({"a": target}, guarded(policy.port, more="methods: {tools/call: full}")), 2)
    raw = Raw(running)
    raw.http.headers.update({"x-secret": "s", "x-team": "green", "authorization": "Bearer mine", "x-two": "1"})
    assert raw.text("tell") == "told"
    [request, _] = policy.asked("tools/call")
    told = [(one.key, one.value) for one in request.headers]
    assert {(":method", b"POST"), (":path", b"/mcp"), (":scheme", b"http"), (":authority", running.url[7:].encode())} <= set(told)
    assert {("x-secret", b"s"), ("authorization", b"Bearer mine")} <= set(told)
    [sent] = [one for one in seen if one["method"] == "tools/call"]
    fields = [(name.lower(), value) for name, value in sent["fields"]]
    assert [value for name, value in fields if name == "x-team"] == ["red", "blue"]
    assert [value for name, value in fields if name == "authorization"] == ["Bearer for-target"]
    assert ("x-utf", "ü".encode().decode("latin-1")) in fields
    assert not {"x-secret", "x-bad", "x-gw-relay-backend", "evil"} & {name for name, _ in fields}
    assert dict(fields)["host"] != "evil"
    running.wait_log("header is ignored")


def test_header_filters(gateway: Callable[..., Any], policy: Policy) -> None:
    more = "methods: {ping: request}, requestHeaders: {allowed: [X-Team, ':path', x-no], disallowed: [X-NO]}"
    raw = Raw(gateway(config({"a": SAMPLE}, guarded(policy.port, more=more))))
    raw.http.headers.update({"x-no": "1"})
    raw.http.headers = [*raw.http.headers.raw, (b"x-team", b"red"), (b"X-Team", b"blue")]  # type: ignore[assignment]
    raw.ask("ping")
    [question] = policy.seen
    assert [(one.key, one.value) for one in question.headers] == [(":path", b"/mcp"), ("x-team", b"red"), ("x-team", b"blue")]


def test_metadata_goes_both_ways(gateway: Callable[..., Any], policy: Policy) -> None:
    rules = f"""
    jwtAuth: {{issuer: "https://idp.test", audiences: [api], jwks: '{JWKS}', mode: optional}}
    mcpAuthorization:
      rules:
      - 'mcpGuardrails.level > 1.5 && mcpGuardrails.groups.exists(g, g == "ops")'
""".lstrip("\n")
    more = (
        "methods: {'*': full}, metadata: {user: jwt.sub, groups: jwt.groups, n: '2u', none: 'null', "
        "path: request.path, tool: mcp.tool.name, wrong: 'jwt.nothing'}"
    )
    running = gateway(config({"a": SAMPLE}, guarded(policy.port, more=more, rules=rules)), 2)
    raw = Raw(running, authorization=f"Bearer {token(sub='ada', groups=['ops'], exp=4_000_000_000)}")
    assert raw.names("tools/list", "tools") == []
    assert raw.text("echo", message="x") == "error Unknown tool: echo"
    level = [2.5]
    policy.on_request = lambda question, context: passed(level=level[0], groups=["ops", None], more={"a": True})
    assert raw.names("tools/list", "tools") == ["echo", "add", "slow"]
    assert raw.text("echo", message="x") == "Echo: x"
    level[0] = 1
    assert raw.text("echo", message="x") == "error Unknown tool: echo"
    context = {"user": "ada", "groups": ["ops"], "n": 2.0, "none": None, "path": "/mcp"}
    assert policy.told("tools/list")[0] == context
    assert policy.told("tools/call")[0] == {**context, "tool": "echo"}
    assert len(policy.told("tools/call")) == 4, "a result that nobody gets is not checked"


def test_method_paths_and_credentials(gateway: Callable[..., Any]) -> None:
    policy = Policy(service="other.v2.Policy")
    more = (
        "methods: {'tools/*': request}, grpc: {checkRequest: /other.v2.Policy/CheckRequest}, policies: {backendAuth: {key: not-a-real-key}, "
        "requestHeaderModifier: {set: {x-gateway: headgate}}}"
    )
    try:
        raw = Raw(gateway(config({"a": SAMPLE}, guarded(policy.port, more=more))))
        assert raw.text("echo", message="x") == "Echo: x"
        assert policy.fields[0]["authorization"] == "Bearer not-a-real-key"
        assert policy.fields[0]["x-gateway"] == "headgate"
    finally:
        policy.stop()


def test_the_configuration_of_the_page(gateway: Callable[..., Any], policy: Policy, telling: Any) -> None:
    page = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text()
    [text] = re.findall(r"```yaml\n(.*?)```", page[page.index("## Guardrails") :], re.DOTALL)
    target, _ = telling
    text = text.replace("port: 3000", "port: {port}").replace("policy.internal:9000", f"127.0.0.1:{policy.port}")
    raw = Raw(gateway(text.replace('mcp: {host: "http://files.internal:8080/mcp"}', target)))
    raw.http.headers.update({"x-team": "red", "authorization": "Bearer mine"})
    assert raw.text("tell") == "told"
    assert raw.names("tools/list", "tools") == ["tell", "hide"]
    request, _, listed = policy.seen
    assert (request.method, listed.method) == ("tools/call", "tools/list")
    assert policy.told("tools/call") == [{"tool": "tell", "team": "red"}] * 2
    assert policy.told("tools/list") == [{"team": "red"}]
    assert "authorization" not in {one.key for one in request.headers}


def test_rejections_of_a_backend_without_rules_leave_no_way_round(gateway: Callable[..., Any], policy: Policy) -> None:
    """One target and no rules: the shortest way through the gateway, and it is not taken."""
    policy.on_request = lambda question, context: refused(1, "no")
    running = gateway(config({"a": SAMPLE}, guarded(policy.port, more="methods: {tools/call: request}")), 2)
    raw = Raw(running)
    for _ in range(4):
        assert raw.text("echo", message="x") == "error no"
    for message in (
        {"id": 1, "method": "tools/call"},
        {"id": 1, "method": "tools/call", "params": {}},
        {"id": 1, "method": r"tools\/call".replace("\\", ""), "params": {"name": "echo"}},
    ):
        assert messages(raw.post(message))[-1]["error"]["message"] == "no"
    odd = raw.http.post("/mcp", content=b'{"jsonrpc":"2.0","id":1,"meth\\u006fd":"tools/c\\u0061ll","params":{"name":"echo"}}')
    assert "Echo" not in odd.text


@pytest.mark.parametrize("targets", [{"a": process()}, {"a": process(), "b": process()}], ids=["one", "several"])
def test_clients_without_a_session_are_checked_too(
    gateway: Callable[..., Any], policy: Policy, targets: dict[str, str]
) -> None:
    client = Modern(gateway(config(targets, guarded(policy.port))))

    def hidden(question: Any, _context: Any) -> Any:
        result = json.loads(question.mcp_response)
        return changed(McpResponseResult, {**result, "instructions": "by the policy server"})

    policy.on_response = hidden
    assert client.ask("server/discover")["result"]["instructions"] == "by the policy server"
    request, response = policy.asked("server/discover")
    assert not request.HasField("mcp_request")
    assert list(request.service_names) == list(response.service_names) == list(targets)
    policy.on_response = lambda question, context: None
    policy.on_request = lambda question, context: refused(1, "not for you")
    for method, params in (
        ("server/discover", {}),
        ("tools/list", {}),
        ("subscriptions/listen", {"notifications": {"toolsListChanged": True}}),
    ):
        found = client.ask(method, **params)
        assert found["error"] == {"code": -32001, "message": "not for you"}, method
    assert len(policy.asked("subscriptions/listen")) == 1


def test_initialize_of_a_backend_without_sessions_is_checked(gateway: Callable[..., Any], policy: Policy) -> None:
    running = gateway(config({"a": SAMPLE, "b": SAMPLE}, "  statefulMode: stateless\n" + guarded(policy.port)))
    assert Raw(running).opened.status_code == 200
    assert len(policy.asked("initialize")) == 2
    policy.on_request = lambda question, context: refused(1, "not for you")
    assert messages(Raw(running).opened)[-1]["error"] == {"code": -32001, "message": "not for you"}
