"""Words of a client with a session for a server without, and the other way round."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.dialect.mcp import bridging, modern
from headgate.dialect.mcp.jsonrpc import RpcMessage, parse

META = {modern.PROTOCOL_VERSION: "2026-07-28", modern.CLIENT_CAPABILITIES: {"sampling": {}}}


def message(text: str) -> RpcMessage:
    return parse(text.encode())


def test_a_client_is_what_its_initialize_said() -> None:
    given = {"sampling": {}, "tasks": {}, "extensions": {bridging.TASKS_EXTENSION: {}, "x/y": {"a": 1}}}
    client = bridging.ClientIdentity.of_initialize({"capabilities": given, "clientInfo": {"name": "c"}})
    assert client.capabilities == {"sampling": {}, "extensions": {"x/y": {"a": 1}}}, "tasks are another thing now"
    assert client.meta("info") == {
        modern.PROTOCOL_VERSION: "2026-07-28",
        modern.CLIENT_CAPABILITIES: client.capabilities,
        modern.CLIENT_INFO: {"name": "c"},
        modern.LOG_LEVEL: "info",
    }
    assert bridging.ClientIdentity.of_initialize({"capabilities": 5, "clientInfo": []}).meta(None) == {
        modern.PROTOCOL_VERSION: "2026-07-28", modern.CLIENT_CAPABILITIES: {},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kept", "params"),
    [
        ('{"jsonrpc":"2.0","id":1,"method":"tools/list"}', "", {"_meta": META}),
        ('{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}', "", {"_meta": META}),
        (
            '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"n":1.10}}}',
            '"arguments":{"n":1.10}',
            {"name": "x", "arguments": {"n": 1.1}, "_meta": META},
        ),
        (
            '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":7},"name":"x"}}',
            '"name":"x"',
            {"name": "x", "_meta": {"progressToken": 7, **META}},
        ),
    ],
)
def test_requests_say_what_initialize_said(text: str, kept: str, params: dict[str, Any]) -> None:
    found = bridging.worded(message(text), META)
    assert json.loads(found)["params"] == params
    assert kept in found.decode(), "arguments stay byte for byte"


def test_answers_go_with_the_request_when_it_is_sent_again() -> None:
    first = message('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}')
    found = json.loads(bridging.again(first, META, {"q": {"action": "accept"}}, "state"))["params"]
    assert found == {"name": "x", "_meta": META, "inputResponses": {"q": {"action": "accept"}}, "requestState": "state"}
    assert "inputResponses" not in json.loads(bridging.again(first, META, {}, "state"))["params"]
    assert "requestState" not in json.loads(bridging.again(first, META, {"q": {}}, None))["params"]


def test_questions_of_a_server_are_told_from_answers() -> None:
    assert bridging.input_required(b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"input_required"}]}}') is None
    asked = {"resultType": "input_required", "requestState": "s", "inputRequests": {
        "a": {"method": "roots/list"}, "b": {"method": "tools/call", "params": {}}, "c": 5}}  # fmt: skip
    found = bridging.input_required(json.dumps({"jsonrpc": "2.0", "id": 1, "result": asked}).encode())
    assert found == bridging.BridgedNeeds({"a": {"method": "roots/list"}, "b": {"method": "tools/call", "params": {}}, "c": {}}, "s")
    assert json.loads(bridging.question(b"7", found.requests["a"])) == {
        "jsonrpc": "2.0", "id": 7, "method": "roots/list", "params": {},
    }  # fmt: skip


def test_results_lose_what_clients_with_sessions_do_not_know() -> None:
    text = b'{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[{"x":1.10}],"ttlMs":0,"cacheScope":"private"}}'
    assert bridging.legacy_response(text) == b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"x":1.10}]}}'
    for same in (b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"ttlMs"}}', b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}'):
        assert bridging.legacy_response(same) == same


def test_initialize_is_answered_from_what_was_discovered() -> None:
    said = {
        "capabilities": {"tools": {"listChanged": True}, "tasks": {}, "extensions": {bridging.TASKS_EXTENSION: {}}},
        "instructions": "Be kind.",
        "_meta": {modern.SERVER_INFO: {"name": "s", "version": "1"}},
    }
    assert bridging.initialize_result(said, "2025-03-26", "t") == {
        "protocolVersion": "2025-03-26",
        "capabilities": {"logging": {}, "tools": {"listChanged": True}, "extensions": {}},
        "serverInfo": {"name": "s", "version": "1"},
        "instructions": "Be kind.",
    }
    found = bridging.initialize_result({}, "1999-01-01", "t")
    assert (found["protocolVersion"], found["serverInfo"]["name"]) == ("2025-11-25", "t")


def test_only_what_is_there_is_listened_to() -> None:
    capabilities = {"tools": {"listChanged": True}, "prompts": {}, "resources": {"subscribe": True}}
    assert bridging.listen_filter(capabilities, []) == {"toolsListChanged": True}
    assert bridging.listen_filter(capabilities, ["x:y"]) == {"toolsListChanged": True, "resourceSubscriptions": ["x:y"]}
    assert bridging.listen_filter({}, []) == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            '{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:y","_meta":{"'
            + modern.SUBSCRIPTION + '":1}}}',
            {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "x:y"}},
        ),
        (
            '{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"'
            + modern.SUBSCRIPTION + '":1,"a":2}}}',
            {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": {"a": 2}}},
        ),
        ('{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{}}', None),
        ('{"jsonrpc":"2.0","id":1,"method":"notifications/tools/list_changed"}', None),
        ("no", None),
    ],
)  # fmt: skip
def test_notifications_lose_the_mark_of_the_subscription(text: str, found: object) -> None:
    note = bridging.subscription_notification(text.encode())
    assert (None if note is None else json.loads(note)) == found


@pytest.mark.parametrize(
    ("status", "body", "without"),
    [
        (404, '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found"}}', True),
        (200, '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found"}}', True),
        (400, '{"error":{"code":-32022,"data":{"supported":["2026-07-28"]}}}', True),
        (400, '{"error":{"code":-32022,"data":{"supported":["2026-07-28","2025-11-25"]}}}', False),
        (400, '{"error":{"code":-32022}}', False),
        (400, '{"error":{"code":-32602}}', True),
        (400, "Bad Request", False),
        (401, '{"error":{"code":-32601}}', False),
        (200, '{"result":{}}', False),
        (200, "[]", False),
    ],
)
def test_servers_without_sessions_show_it(status: int, body: str, without: bool) -> None:
    assert bridging.has_no_sessions(status, body.encode()) is without


def test_a_session_and_its_revision_do_not_reach_the_server() -> None:
    fields = [("MCP-Session-Id", "x"), ("mcp-protocol-version", "2025-06-18"), ("Last-Event-ID", "1"), ("x-y", "z")]
    assert bridging.fields_for(fields) == [("x-y", "z"), ("mcp-protocol-version", "2026-07-28")]


def test_a_task_is_no_result_for_a_client_with_a_session() -> None:
    text = b'{"jsonrpc":"2.0","id":"a","result":{"resultType":"task","taskId":"1","status":"working"}}'
    found = json.loads(bridging.legacy_response(text))
    assert (found["id"], found["error"]["code"]) == ("a", -32603)
    assert "started a task" in found["error"]["message"]
    same = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"task"}],"kind":"task"}}'
    assert bridging.legacy_response(same) == same
