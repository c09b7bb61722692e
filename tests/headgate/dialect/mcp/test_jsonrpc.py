"""JSON-RPC messages."""

from __future__ import annotations

import json

import pytest

from headgate.dialect.mcp.jsonrpc import Kind, NotAMessage, error_message, parse, progress_token


@pytest.mark.parametrize(
    ("text", "kind", "method", "raw_id"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', Kind.REQUEST, "ping", b"1"),
        (b'{ "method" : "a\\u0062" , "id" : "x\\"y" }', Kind.REQUEST, "ab", b'"x\\"y"'),
        (b'{"method":"notifications/initialized"}', Kind.NOTIFICATION, "notifications/initialized", None),
        (b'{"id":7,"result":{"id":8}}', Kind.RESPONSE, None, b"7"),
        (b'{"id":null,"error":{"code":1}}', Kind.RESPONSE, None, b"null"),
    ],
)
def test_messages_are_told_apart(text: bytes, kind: Kind, method: str | None, raw_id: bytes | None) -> None:
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
        (b'{"method":7,"id":1}', -32600),
        (b'{"method":"a","id":null}', -32600),
        (b'{"method":"a","id":[1]}', -32600),
        (b'{"method":"a","id":1,"method":"b"}', -32600),
        (b"[" * 5000, -32700),
    ],
)
def test_what_is_no_message_is_refused_with_its_code(text: bytes, code: int) -> None:
    with pytest.raises(NotAMessage) as found:
        parse(text)
    assert found.value.code == code


def test_an_id_is_replaced_and_nothing_else() -> None:
    text = b'{ "params":{"id":1},  "id" : 1 ,"method":"m" }'
    assert parse(text).with_id(b'"other"') == b'{ "params":{"id":1},  "id" : "other" ,"method":"m" }'


def test_progress_tokens_of_requests_and_notifications() -> None:
    request = parse(b'{"id":1,"method":"m","params":{"_meta":{"progressToken":"t"}}}')
    notification = parse(b'{"method":"notifications/progress","params":{"progressToken":"t","progress":1}}')
    assert progress_token(request) == progress_token(notification) == "t"
    assert progress_token(parse(b'{"id":1,"method":"m","params":["progressToken"]}')) is None


def test_an_error_keeps_the_id_as_it_was_written() -> None:
    assert json.loads(error_message(b'"a"', -1, 'x"')) == {"jsonrpc": "2.0", "id": "a", "error": {"code": -1, "message": 'x"'}}
