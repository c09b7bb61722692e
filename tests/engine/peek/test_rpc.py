"""JSON-RPC messages re-labelled in place; what is a message is told in tests/headgate/dialect/mcp/test_jsonrpc.py."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_engine.peek.rpc import NAME_SOURCE, NotAMessage, RpcKind, RpcMessage, parse, quoted

NAMES = st.text(max_size=12)


def message(**members: Any) -> RpcMessage:
    return parse(json.dumps({"jsonrpc": "2.0", **members}, ensure_ascii=False).encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize(("method", "member"), NAME_SOURCE.items())
def test_a_request_about_something_else_is_the_same_but_for_that(method: str, member: str) -> None:
    params = {"x": [1.50, {"name": "inner"}], member: "old", "arguments": {member: "own"}}
    asked = message(id="q", method=method, params=params)
    assert asked.name == "old"
    assert json.loads(asked.with_name('n"ew')) == {
        "jsonrpc": "2.0", "id": "q", "method": method, "params": {**params, member: 'n"ew'}}  # fmt: skip


@pytest.mark.parametrize("params", [{}, {"name": 5}, {"uri": "x"}])
def test_what_has_no_name_cannot_get_another(params: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="nothing that has a name"):
        message(id=1, method="tools/call", params=params).with_name("a")
    with pytest.raises(ValueError, match="nothing that has a name"):
        message(id=1, method="other", params={"name": "a"}).with_name("a")


@pytest.mark.parametrize(
    ("result", "task"),
    [
        ({"taskId": "t", "task": {"taskId": "u"}}, "t"),
        ({"task": {"status": "working", "taskId": "u"}}, "u"),
        ({"task": {"taskId": 1}}, None),
        ({"content": [{"taskId": "x"}]}, None),
    ],
)
def test_the_task_of_a_result(result: dict[str, Any], task: str | None) -> None:
    found = message(id=1, result=result)
    assert found.result_task == task
    if task is None:
        with pytest.raises(ValueError, match="no task"):
            found.with_task("a+t")
    else:
        assert parse(found.with_task("a+t")).result_task == "a+t"


def test_what_a_response_holds() -> None:
    good, bad = message(id=1, result={"nextCursor": "c"}), message(id=1, error={"code": 1, "message": "m"})
    assert (good.kind, good.has_result_object, good.has_error_object, good.next_cursor) == (RpcKind.RESPONSE, True, False, "c")
    assert (bad.is_error, bad.has_result_object, bad.has_error_object, bad.next_cursor) == (True, False, True, None)
    start, stop = good.result_span
    assert json.loads(good.text[start:stop]) == {"nextCursor": "c"}
    assert message(id=1, result=None).has_result_object is False


def test_a_message_comes_of_a_text_only() -> None:
    with pytest.raises(TypeError):
        RpcMessage()
    with pytest.raises(NotAMessage) as caught:
        parse(b"[]")
    assert caught.value.code == -32600


@given(NAMES)
def test_law_quoted_texts_are_read_back(text: str) -> None:
    assert json.loads(quoted(text)) == text


@given(NAMES, NAMES, st.dictionaries(st.text(max_size=4), st.text(max_size=4) | st.integers(), max_size=3))
def test_law_a_name_there_and_back_is_the_same_text(old: str, new: str, more: dict[str, Any]) -> None:
    asked = message(id=1, method="tools/call", params={"arguments": more, "name": old, "z": more})
    there = parse(asked.with_name(new))
    assert there.name == new
    assert json.loads(there.with_name(old)) == json.loads(asked.text)


@pytest.mark.parametrize(
    ("params", "version", "capabilities"),
    [
        ('{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}',
         "2026-07-28", True),
        ('{"_meta":{"io.modelcontextprotocol/protocolVersion":5,"io.modelcontextprotocol/clientCapabilities":[]}}', None, False),
        ('{"_meta":{"io.modelcontextprotocol\\/protocolVersion":"v"}}', "v", False),
        ('{"_meta":5}', None, False),
        ('{"io.modelcontextprotocol/protocolVersion":"v"}', None, False),
        ("{}", None, False),
    ],
)  # fmt: skip
def test_a_request_says_its_revision(params: str, version: str | None, capabilities: bool) -> None:
    asked = parse(f'{{"jsonrpc":"2.0","id":1,"method":"x","params":{params}}}'.encode())
    assert (asked.meta_version, asked.has_client_capabilities) == (version, capabilities)


def test_a_task_is_told_by_its_id() -> None:
    asked = parse(b'{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"a\\u0062"}}')
    assert asked.name == "ab"
