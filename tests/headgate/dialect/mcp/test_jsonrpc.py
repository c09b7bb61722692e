"""JSON-RPC messages."""

from __future__ import annotations

import json

import pytest

from headgate.dialect.mcp.jsonrpc import NotAMessage, RpcKind, RpcMessage, error_message, parse, progress_token, same_id


def message(**members: object) -> RpcMessage:
    """A message with these members."""
    return parse(json.dumps({"jsonrpc": "2.0", **members}).encode())


@pytest.mark.parametrize(
    ("text", "kind", "method", "raw_id"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', RpcKind.REQUEST, "ping", b"1"),
        (b'{ "jsonrpc":"2.0","method" : "a\\u0062" , "id" : "x\\"y" }', RpcKind.REQUEST, "ab", b'"x\\"y"'),
        (
            b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
            RpcKind.NOTIFICATION,
            "notifications/initialized",
            None,
        ),
        (b'{"jsonrpc":"2.0","id":7,"result":{"id":8}}', RpcKind.RESPONSE, None, b"7"),
        (b'{"jsonrpc":"2.0","id":null,"error":{"code":1}}', RpcKind.RESPONSE, None, b"null"),
    ],
)
def test_messages_are_told_apart(text: bytes, kind: RpcKind, method: str | None, raw_id: bytes | None) -> None:
    found = parse(text)
    assert (found.kind, found.method, found.raw_id) == (kind, method, raw_id)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b'{"a":\xff}', -32700),
        (b"[]", -32600),
        (b"7", -32600),
        (b"{}", -32600),
        (b'{"method":"ping","id":1}', -32600),
        (b'{"jsonrpc":"1.0","method":"ping","id":1}', -32600),
        (b'{"jsonrpc":2.0,"method":"ping","id":1}', -32600),
        (b'{"jsonrpc":"2.0","method":7,"id":1}', -32600),
        (b'{"jsonrpc":"2.0","method":"a","id":null}', -32600),
        (b'{"jsonrpc":"2.0","method":"a","id":[1]}', -32600),
        (b'{"jsonrpc":"2.0","method":"a","id":1,"method":"b"}', -32600),
        (b'{"jsonrpc":"2.0","method":"a","id":1,"params":[1]}', -32602),
        (b'{"jsonrpc":"2.0","method":"a","params":null}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', -32600),
        (b'{"jsonrpc":"2.0","result":{}}', -32600),
        (b'{"jsonrpc":"2.0","id":{},"error":{}}', -32600),
        (b"[" * 5000, -32700),
    ],
)
def test_what_is_no_message_is_refused_with_its_code(text: bytes, code: int) -> None:
    with pytest.raises(NotAMessage) as found:
        parse(text)
    assert found.value.code == code


def test_an_id_is_replaced_and_nothing_else() -> None:
    text = b'{ "params":{"id":1},"jsonrpc":"2.0",  "id" : 1 ,"method":"m" }'
    expected = b'{ "params":{"id":1},"jsonrpc":"2.0",  "id" : "other" ,"method":"m" }'
    assert parse(text).with_id(b'"other"') == expected


def test_progress_tokens_of_requests_and_notifications() -> None:
    request = message(method="m", id=1, params={"_meta": {"progressToken": "t"}})
    progress = message(method="notifications/progress", params={"progressToken": "t", "progress": 1})
    assert progress_token(request) == progress_token(progress) == "t"
    assert progress_token(message(method="m", id=1, params={"a": "progressToken"})) is None
    assert progress_token(message(method="notifications/other", params={"progressToken": "t"})) is None
    assert progress_token(message(method="m", id=1, params={"_meta": "progressToken"})) is None


def test_params_with_a_number_that_python_does_not_take_are_none_at_all() -> None:
    digits = b"9" * 5000
    request = parse(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"progressToken":1,"n":' + digits + b"}}")
    assert request.decoded_params() == {}
    assert progress_token(request) is None


@pytest.mark.parametrize(
    ("raw_id", "value", "same"),
    [
        (b"1", 1, True),
        (b"1", "1", False),
        (b'"1"', 1, False),
        (b'"a\\u0062"', "ab", True),
        (b"1.0", 1, True),
        (b"1", True, False),
        (b"1", None, False),
        (b"1", [1], False),
        (None, 1, False),
        (b"9" * 5000, 1, False),
    ],
)
def test_ids_are_the_same_by_value_and_type(raw_id: bytes | None, value: object, same: bool) -> None:
    assert same_id(raw_id, value) is same


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "echo", "uri": "x"}, "echo"),
        ("resources/read", {"uri": "file:///a", "name": "x"}, "file:///a"),
        ("tasks/get", {"taskId": "t1"}, "t1"),
        ("tasks/get", {"taskId": 1}, None),
        ("tools/list", {"name": "x"}, None),
    ],
)
def test_a_request_s_name_lies_where_its_method_has_it(
    method: str, params: dict[str, object], name: str | None
) -> None:
    assert message(method=method, id=1, params=params).name == name


def test_an_error_response_is_told_from_a_result() -> None:
    assert message(id=1, error={"code": 1, "message": ""}).is_error
    assert not message(id=1, result={}).is_error
    assert not message(id=1, method="m").is_error


def test_an_error_keeps_the_id_as_it_was_written() -> None:
    assert json.loads(error_message(b'"a"', -1, 'x"')) == {
        "jsonrpc": "2.0",
        "id": "a",
        "error": {"code": -1, "message": 'x"'},
    }
