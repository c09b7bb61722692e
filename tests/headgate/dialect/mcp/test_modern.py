"""Requests of revision 2026-07-28: what is refused, in which order, and which servers do not know them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.dialect.mcp import modern
from headgate.dialect.mcp.jsonrpc import RpcMessage, parse

NEW = "2026-07-28"
META = {modern.PROTOCOL_VERSION: NEW, modern.CLIENT_CAPABILITIES: {}}


def request(method: str, meta: dict[str, Any] | None = META, **params: Any) -> RpcMessage:
    if meta is not None:
        params["_meta"] = meta
    return parse(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode())


def fields(method: str, name: str | None = None) -> list[tuple[str, str]]:
    return [("Mcp-Method", method), *([("mcp-name", name)] if name else [])]


CASES: list[tuple[str, RpcMessage, str | None, list[tuple[str, str]], tuple[int, int] | None]] = [
    ("fine", request("tools/list"), NEW, fields("tools/list"), None),
    ("fine with a name", request("tools/call", name="x"), NEW, fields("tools/call", "x"), None),
    ("with a session", request("tools/list", None), "2025-06-18", [], None),
    ("before there was a field", request("initialize", None), None, [], None),
    ("removed, before _meta", request("ping", None), NEW, [], (404, -32601)),
    ("removed", request("resources/subscribe", uri="x:y"), NEW, [], (404, -32601)),
    ("of earlier tasks", request("tasks/list"), NEW, fields("tasks/list"), (404, -32601)),
    ("unknown", request("no/such"), NEW, fields("no/such"), (404, -32601)),
    ("unknown, without _meta", request("no/such", None), NEW, [], (404, -32601)),
    ("no _meta", request("tools/list", None), NEW, fields("tools/list"), (400, -32602)),
    ("no version", request("tools/list", {modern.CLIENT_CAPABILITIES: {}}), NEW, fields("tools/list"), (400, -32602)),
    ("no capabilities", request("tools/list", {modern.PROTOCOL_VERSION: NEW}), NEW, fields("tools/list"), (400, -32602)),
    ("capabilities that are none", request("tools/list", {**META, modern.CLIENT_CAPABILITIES: []}), NEW,
     fields("tools/list"), (400, -32602)),
    ("another version", request("tools/list", {**META, modern.PROTOCOL_VERSION: "v9"}), NEW, fields("tools/list"),
     (400, -32020)),
    ("body alone", request("tools/list"), None, fields("tools/list"), (400, -32020)),
    ("body alone, removed method", request("ping"), None, [], (400, -32020)),
    ("field of another revision", request("tools/list"), "2025-06-18", fields("tools/list"), (400, -32020)),
    ("no method field", request("tools/list"), NEW, [], (400, -32020)),
    ("no name field", request("tools/call", name="x"), NEW, fields("tools/call"), (400, -32020)),
    ("no name", request("tools/call"), NEW, fields("tools/call"), (400, -32602)),
    ("task without field", request("tasks/get", taskId="t"), NEW, fields("tasks/get"), (400, -32020)),
]  # fmt: skip


@pytest.mark.parametrize(("message", "header", "given", "wanted"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_requests_are_checked(
    message: RpcMessage, header: str | None, given: list[tuple[str, str]], wanted: tuple[int, int] | None
) -> None:
    found = modern.fault(message, header, given, True)
    assert (None if found is None else (found.status, found.code)) == wanted


def test_a_target_may_know_methods_that_nobody_here_does() -> None:
    assert modern.fault(request("no/such"), NEW, fields("no/such"), False) is None
    found = modern.fault(request("ping"), NEW, fields("ping"), False)
    assert found is not None, "one that was removed is no unknown one"


def test_results_say_that_they_are_whole() -> None:
    text = b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"x":1.10}]}}'
    found = modern.completed("tools/list", text)
    assert b'"tools":[{"x":1.10}]' in found
    assert json.loads(found)["result"] == {
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [{"x": 1.1}],
    }  # fmt: skip
    assert json.loads(modern.completed("tools/call", b'{"id":1,"result":{}}'))["result"] == {"resultType": "complete"}
    kept = b'{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required"}}'
    assert modern.completed("tools/call", kept) == kept
    error = b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}'
    assert modern.completed("tools/list", error) == error


def test_servers_with_sessions_do_not_get_what_they_cannot_read() -> None:
    found = modern.legacy_words(request("tools/call", {**META, "progressToken": 5, modern.LOG_LEVEL: "info"}, name="x"))
    assert found.decoded_params() == {"name": "x", "_meta": {"progressToken": 5}}
    same = request("tools/call", {"progressToken": 5}, name="x")
    assert modern.legacy_words(same) is same


@pytest.mark.parametrize(
    ("status", "body", "legacy"),
    [
        (400, "Bad Request: no session", True),
        (404, "", True),
        (405, "", True),
        (400, '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"session required"}}', True),
        (400, '{"error":{"code":-32022,"data":{"supported":["2025-11-25"]}}}', True),
        (400, '{"error":{"code":-32022,"data":{"supported":["2025-11-25","2026-07-28"]}}}', False),
        (400, '{"error":{"code":-32020,"message":"mismatch"}}', False),
        (400, '{"error":{"code":-32021,"message":"capability"}}', False),
        (404, '{"error":{"code":-32601,"message":"method not found"}}', False),
        (401, "", False),
        (503, "", False),
        (200, "{}", False),
    ],
)
def test_servers_with_sessions_show_it(status: int, body: str, legacy: bool) -> None:
    assert modern.is_legacy_refusal(status, body.encode()) is legacy


def test_what_a_client_without_a_session_cannot_do_is_not_promised() -> None:
    params = {"capabilities": {"roots": {}, "sampling": {}, "elicitation": {}, "tasks": {}, "extensions": {"x/y": {}}}}
    assert modern.stripped_capabilities(params) == {"capabilities": {"extensions": {"x/y": {}}}}
    assert modern.stripped_capabilities({}) == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"result":{"supportedVersions":["a",5,"b"]}}', ["a", "b"]),
        ('{"result":{"supportedVersions":"a"}}', []),
        ('{"error":{"code":-32601}}', []),
        ("no", []),
    ],
)
def test_revisions_are_read_with_care(text: str, found: list[str]) -> None:
    assert modern.revisions_of(text.encode()) == found
