"""Calls as requests, answers as results: escapes, styles, and arguments that would lead elsewhere."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.dialect.openapi.calls import ArgumentError, failure_of, request_of, result_of
from headgate.dialect.openapi.tools import OperationTool, read_tools

Json = dict[str, Any]


def tool(path: str = "/x", method: str = "get", **operation: Any) -> OperationTool:
    text = {"openapi": "3.1.0", "paths": {path: {method: {"operationId": "op", **operation}}}}
    return read_tools(json.dumps(text)).tools["op"]


def parameter(name: str, place: str, **more: Any) -> Json:
    return {"name": name, "in": place, **more}


PATHS = [
    ("a b", "/u/a%20b"),
    ("../x", "/u/..%2Fx"),
    ("a/b?c#d&e=f", "/u/a%2Fb%3Fc%23d%26e%3Df"),
    ("ünï", "/u/%C3%BCn%C3%AF"),
    ("A-z.0_~", "/u/A-z.0_~"),
    ("%2e", "/u/%252e"),
    (7, "/u/7"),
    (True, "/u/true"),
    (["a", "b,c"], "/u/a,b%2Cc"),
]


@pytest.mark.parametrize(("value", "target"), PATHS)
def test_values_in_the_path_are_escaped(value: object, target: str) -> None:
    assert request_of(tool("/u/{id}"), {"path": {"id": value}}).target == target


@pytest.mark.parametrize("value", ["..", ".", "", None, {}, {"a": 1}, []])
def test_values_that_would_make_another_path_are_refused(value: object) -> None:
    with pytest.raises(ArgumentError, match="path"):
        request_of(tool("/u/{id}"), {"path": {"id": value}})


def test_dots_of_two_values_do_not_make_a_dot_segment() -> None:
    with pytest.raises(ArgumentError, match="dot segment"):
        request_of(tool("/u/{a}{b}/c"), {"path": {"a": ".", "b": "."}})


@given(st.text(min_size=1).filter(lambda text: text not in (".", "..")))
def test_a_value_stays_one_segment_of_the_path(value: str) -> None:
    """The segment decodes to the value, whatever it is; nothing of it leaves its place."""
    try:
        target = request_of(tool("/u/{id}/end"), {"path": {"id": value}}).target
    except ArgumentError:
        assert not value.isascii()  # a lone surrogate
        return
    empty, first, segment, last = target.split("/")
    assert (empty, first, unquote(segment), last) == ("", "u", value, "end")
    assert "?" not in target
    assert "#" not in target


def query(value: object, **options: Any) -> str:
    made = tool(parameters=[parameter("q", "query", **options)])
    return request_of(made, {"query": {"q": value}}).target.removeprefix("/x").removeprefix("?")


@pytest.mark.parametrize(
    ("value", "options", "expected"),
    [
        ("a b&c=d", {}, "q=a%20b%26c%3Dd"),
        (True, {}, "q=true"),
        (1.5, {}, "q=1.5"),
        (None, {}, "q"),
        ([1, "b c"], {}, "q=1&q=b%20c"),
        ([], {}, ""),
        (["a", "b,c"], {"explode": False}, "q=a,b%2Cc"),
        (["a", "b"], {"style": "pipeDelimited"}, "q=a%7Cb"),
        ({"a": 1, "b": "x&y"}, {}, "a=1&b=x%26y"),
        ({"a": 1, "b": 2}, {"explode": False}, "q=a,1,b,2"),
        ({"a": "x y"}, {"style": "deepObject", "explode": True}, "q%5Ba%5D=x%20y"),
    ],
)
def test_styles_of_the_query(value: object, options: Json, expected: str) -> None:
    assert query(value, **options) == expected


@given(st.text(alphabet=st.characters(codec="utf-8"), min_size=1))
def test_a_value_of_the_query_stays_one_value(value: str) -> None:
    """The query decodes to the one pair."""
    assert parse_qsl(query(value), keep_blank_values=True) == [("q", value)]


def test_names_that_the_tool_does_not_have_are_refused_in_query_and_body_and_dropped_in_headers() -> None:
    made = tool(parameters=[parameter("X-Ok", "header")])
    with pytest.raises(ArgumentError, match=r"query\.admin"):
        request_of(made, {"query": {"admin": "1"}})
    with pytest.raises(ArgumentError, match="body is not an argument"):
        request_of(made, {"body": {}})
    found = request_of(made, {"header": {"X-Ok": "yes", "x-ok": "no", "X-Other": "no", "Host": "evil"}})
    assert found.headers == (("X-Ok", "yes"),)


@pytest.mark.parametrize("value", ["a\r\nevil: 1", "a\0", "ü", "\x7f", "a\nb"])
def test_no_argument_ends_its_header(value: str) -> None:
    with pytest.raises(ArgumentError, match=r"header\.X-A"):
        request_of(tool(parameters=[parameter("X-A", "header")]), {"header": {"X-A": value}})


def body_tool(media: str, required: bool = False) -> OperationTool:
    return tool(method="post", requestBody={"required": required, "content": {media: {"schema": {}}}})


def test_bodies() -> None:
    found = request_of(body_tool("application/json"), {"body": {"a": [1, None, "ü"]}})
    assert (found.method, found.body, found.media) == ("POST", '{"a":[1,null,"ü"]}'.encode(), "application/json")
    found = request_of(body_tool("application/octet-stream"), {"body": "AAH/"})
    assert (found.body, found.media) == (b"\x00\x01\xff", "application/octet-stream")
    assert request_of(body_tool("text/plain"), {"body": "ü"}).body == "ü".encode()
    assert request_of(body_tool("application/merge-patch+json"), {"body": None}).body == b"null"
    found = request_of(body_tool("application/json"), None)
    assert (found.body, found.media) == (None, None)


@pytest.mark.parametrize(
    ("made", "arguments", "reason"),
    [
        (body_tool("application/json", True), {}, "body is missing"),
        (body_tool("application/octet-stream"), {"body": "not base64!"}, "not base64"),
        (body_tool("application/octet-stream"), {"body": {}}, "not a string"),
        (body_tool("application/json"), {"body": float("inf")}, "too large"),
        (body_tool("application/json"), {"body": "\ud800"}, "UTF-8"),
        (tool(), [], "arguments is not an object"),
        (tool(), {"path": "x"}, "path is not an object"),
        (tool(parameters=[parameter("q", "query")]), {"query": {"q": {"a": {}}}}, r"query\.q"),
    ],
)
def test_arguments_that_make_no_request(made: OperationTool, arguments: object, reason: str) -> None:
    with pytest.raises(ArgumentError, match=reason):
        request_of(made, arguments)


RESULTS = [
    (200, b'{ "a": 1e400, "b": 12345678901234567890.10 }', '{ "a": 1e400, "b": 12345678901234567890.10 }', {"a": float("inf"), "b": 1.2345678901234567e19}),
    (404, b'{"error": "none"}', '{"error": "none"}', {"error": "none"}),
    (200, b"[1, 2]", '{"data":[1, 2]}', {"data": [1, 2]}),
    (200, b'"text"', '{"data":"text"}', {"data": "text"}),
    (200, b"null", "null", None),
    (204, b"", '{"code": 204, "message": ""}', {"code": 204, "message": ""}),
    (400, b"no such thing", '{"code": 400, "message": "no such thing"}', {"code": 400, "message": "no such thing"}),
    (200, b"NaN", '{"code": 200, "message": "NaN"}', {"code": 200, "message": "NaN"}),
    (200, b"\xff{}", '{"code": 200, "message": "\ufffd{}"}', {"code": 200, "message": "\ufffd{}"}),
    (200, "\ufeff{}".encode(), "{}", {}),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "text", "structured"), RESULTS)
def test_answers_as_results(status: int, body: bytes, text: str, structured: object) -> None:
    found = json.loads(result_of(status, body))
    assert found["content"] == [{"type": "text", "text": text}]
    assert found.get("structuredContent") == structured
    assert found["isError"] is False
    assert found["_meta"] == {"headgate.dev/status": status}


@given(st.binary())
def test_every_answer_makes_a_result(body: bytes) -> None:
    """A result is JSON with a text and, but for null, an object."""
    found = json.loads(result_of(200, body))
    assert isinstance(found["content"][0]["text"], str)
    assert isinstance(found.get("structuredContent", {}), dict)


def test_failures_tell_the_status_and_a_part_of_the_body() -> None:
    assert failure_of("op", 503, b"busy\n") == "Upstream API call for tool 'op' failed with status 503: busy"
    assert failure_of("op", 500, b"") == "Upstream API call for tool 'op' failed with status 500"
    assert len(failure_of("op", 500, b"x" * 100_000)) < 5000
