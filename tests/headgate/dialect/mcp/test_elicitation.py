"""Questions of servers with sessions in the words of revision 2026-07-28."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.dialect.mcp import elicitation
from headgate.dialect.mcp.jsonrpc import RpcMessage, parse

CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


def message(method: str, /, **params: Any) -> RpcMessage:
    return parse(json.dumps({"jsonrpc": "2.0", "id": "q", "method": method, "params": params}).encode())


def test_what_a_client_can_do_is_what_its_request_says() -> None:
    able = {"sampling": {"tools": {}}, "elicitation": {}}
    assert elicitation.capabilities_of(message("tools/call", name="x", _meta={CAPABILITIES: able})) == able
    assert elicitation.capabilities_of(message("tools/call", name="x")) == {}
    assert elicitation.capabilities_of(message("tools/call", name="x", _meta={CAPABILITIES: 5})) == {}
    assert elicitation.askable(able)
    assert not elicitation.askable({"extensions": {}, "sampling": None})


def test_a_server_hears_only_what_can_be_brought_about() -> None:
    given = {
        "roots": {"listChanged": True}, "sampling": {"tools": {}}, "elicitation": {"url": {}}, "tasks": {"list": {}},
        "extensions": {"io.modelcontextprotocol/tasks": {}, "example/x": {"a": 1}}, "future": {},
    }  # fmt: skip
    assert elicitation.legacy_capabilities(given) == {
        "roots": {}, "sampling": {"tools": {}}, "elicitation": {"url": {}}, "extensions": {"example/x": {"a": 1}},
    }  # fmt: skip
    assert elicitation.legacy_capabilities({"extensions": {"io.modelcontextprotocol/tasks": {}}}) == {}


@pytest.mark.parametrize(("method", "params", "able", "code"), [
    ("ping", {}, {}, None),
    ("tools/call", {"name": "x"}, {"sampling": {}}, -32601),
    ("roots/list", {}, {}, -32601),
    ("roots/list", {}, {"roots": None}, -32601),
    ("elicitation/create", {}, {"elicitation": {"url": {}}}, -32602),
    ("elicitation/create", {"mode": "url"}, {"elicitation": {}}, -32602),
    ("elicitation/create", {"mode": ["form"]}, {"elicitation": {"form": {}}}, -32602),
    ("sampling/createMessage", {"tools": []}, {"sampling": {}}, -32602),
    ("sampling/createMessage", {"x": "y" * elicitation.MAX_QUESTION}, {"sampling": {}}, -32602),
])  # fmt: skip
def test_what_the_gateway_answers_itself(method: str, params: Any, able: Any, code: int | None) -> None:
    found = json.loads(elicitation.own_answer(message(method, **params), able) or b"")
    assert found["id"] == "q"
    assert found.get("error", {}).get("code") == code


@pytest.mark.parametrize(("method", "params", "able"), [
    ("roots/list", {}, {"roots": {}}),
    ("elicitation/create", {}, {"elicitation": {}}),
    ("elicitation/create", {"mode": "form"}, {"elicitation": {"form": {}}}),
    ("elicitation/create", {"mode": "url"}, {"elicitation": {"url": {}}}),
    ("sampling/createMessage", {"tools": []}, {"sampling": {"tools": {}}}),
])  # fmt: skip
def test_what_is_for_the_client_to_answer(method: str, params: Any, able: Any) -> None:
    assert elicitation.own_answer(message(method, **params), able) is None


def test_questions_and_answers_keep_their_bytes() -> None:
    question = parse(b'{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"x":1.10, "y":"\\u00e4"}}')
    bare = parse(b'{"jsonrpc":"2.0","id":8,"method":"roots/list"}')
    text = elicitation.input_required(b'"a"', {"1": elicitation.as_input(question), "2": elicitation.as_input(bare)}, "st\"ate")
    assert b'{"x":1.10, "y":"\\u00e4"}' in text
    assert json.loads(text) == {"jsonrpc": "2.0", "id": "a", "result": {
        "resultType": "input_required", "requestState": "st\"ate", "inputRequests": {
            "1": {"method": "elicitation/create", "params": {"x": 1.1, "y": "ä"}}, "2": {"method": "roots/list", "params": {}},
        }}}  # fmt: skip
    back = parse(b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"t","inputResponses":'
                 b'{"1":{"content":{"n": 1.50}},"2":5},"requestState":"s"}}')  # fmt: skip
    assert elicitation.state_of(back) == "s"
    assert elicitation.answers_of(back) == {"1": b'{"content":{"n": 1.50}}'}
    assert elicitation.answer(b"7", b'{"content":{"n": 1.50}}') == b'{"jsonrpc":"2.0","id":7,"result":{"content":{"n": 1.50}}}'


@pytest.mark.parametrize("params", [{}, {"inputResponses": 5}, {"inputResponses": ["a"]}, {"inputResponses": {"a": []}}])
def test_what_is_no_answer_is_none(params: dict[str, Any]) -> None:
    assert elicitation.answers_of(message("tools/call", **params)) == {}
    assert elicitation.state_of(message("tools/call", requestState=5, **params)) is None


def test_a_request_that_is_repeated_has_the_same_digest() -> None:
    first = message("tools/call", name="a", arguments={"x": 1, "y": 2}, _meta={"progressToken": 1})
    again = message("tools/call", requestState="s", inputResponses={}, arguments={"y": 2, "x": 1}, name="a", _meta={})
    assert elicitation.digest_of(first) == elicitation.digest_of(again)
    for other in (message("tools/call", name="a", arguments={"x": 2, "y": 2}), message("prompts/get", name="a")):
        assert elicitation.digest_of(first) != elicitation.digest_of(other)


def test_a_client_with_a_session_is_asked_what_it_can_do() -> None:
    call = message("tools/call", name="x")
    assert elicitation.cannot_answer(call, {"method": "roots/list"}, {"roots": {}}) is None
    lacking = json.loads(elicitation.cannot_answer(call, {"method": "sampling/createMessage"}, {"roots": {}}) or b"")
    assert lacking["error"]["code"] == -32021
    assert lacking["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}
    for strange in ({"method": "tools/call"}, {}, {"method": 5}):
        assert json.loads(elicitation.cannot_answer(call, strange, {"roots": {}}) or b"")["error"]["code"] == -32603
