"""Questions to authorization services and what these allow, beside the protobuf library."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
from envoy.service.auth.v3.attribute_context_pb2 import AttributeContext
from envoy.service.auth.v3.external_auth_pb2 import CheckRequest, CheckResponse
from envoy_library import allows
from google.protobuf.json_format import MessageToDict, ParseDict

from headgate_engine.context.request import RequestContext, make_context
from headgate_engine.envoy.check import Allowance, CheckQuestion, read_allowance

FIELDS = [("Accept", "a"), ("accept", "b"), ("Cookie", "c=1"), ("cookie", "d=2"), ("X-Request-ID", "17"), ("x-odd", "\u00fc\udcff")]
# Client and this side as the expressions say them; the start is 1.5 s after the epoch.
ENDS = ["1.2.3.4", 5, "spiffe://a/b", "PEM", "5.6.7.8", 443, "a.test", SimpleNamespace(ns=1_500_000_000), "HTTP/2.0"]


def asked(ctx: RequestContext, *, sent: Any = None, body_bytes: int = -1, as_bytes: bool = False, more: bytes = b"", ends: Any = None,
          context: Any = ()) -> dict[str, Any]:  # fmt: skip
    found = CheckRequest.FromString(CheckQuestion(sent, body_bytes, as_bytes, context).encode(ctx, more, ends))
    told: dict[str, Any] = MessageToDict(found.attributes, preserving_proto_field_name=True)
    return told


def test_a_request() -> None:
    ctx = make_context("POST", "/p?q=1", "a.test:80", FIELDS, body=b"h\xff")
    found = asked(ctx, context=[("k", "v"), ("l", "w" * 200)], ends=ENDS)
    assert found["source"] == {
        "address": {"socket_address": {"address": "1.2.3.4", "port_value": 5}},
        "principal": "spiffe://a/b",
        "certificate": "PEM",
    }
    assert found["destination"] == {"address": {"socket_address": {"address": "5.6.7.8", "port_value": 443}}}
    assert found["tls_session"] == {"sni": "a.test"}
    assert found["context_extensions"] == {"k": "v", "l": "w" * 200}
    assert found["request"]["time"] == "1970-01-01T00:00:01.500Z"
    http = found["request"]["http"]
    assert http.pop("headers") == {
        ":method": "POST", ":path": "/p?q=1", ":authority": "a.test:80", ":scheme": "http", "accept": "a, b", "cookie": "c=1; d=2",
        "x-request-id": "17", "x-odd": "\u00fc\ufffd", "content-length": "2",
    }  # fmt: skip
    assert http == {
        "id": "17", "method": "POST", "path": "/p?q=1", "host": "a.test:80", "scheme": "http", "size": "2", "protocol": "HTTP/2",
    }  # fmt: skip


def test_headers_that_are_sent() -> None:
    ctx = make_context("GET", "/", "a.test", FIELDS, secure=True)
    assert asked(ctx, sent=["accept", ":scheme"])["request"]["http"]["headers"] == {":scheme": "https", "accept": "a, b"}
    assert "headers" not in asked(ctx, sent=[])["request"]["http"]


@pytest.mark.parametrize(("size", "cut"), [(10, "false"), (3, "false"), (2, "true"), (0, "true")])
def test_a_body(size: int, cut: str) -> None:
    ctx = make_context("POST", "/", "a.test", body=b"a\xffb")
    http = asked(ctx, body_bytes=size)["request"]["http"]
    assert http["headers"]["x-envoy-auth-partial-body"] == cut
    assert http.get("body", "") == b"a\xffb"[:size].decode("utf-8", "replace")
    found = CheckRequest.FromString(CheckQuestion(None, size, True, ()).encode(ctx))
    assert found.attributes.request.http.raw_body == b"a\xffb"[:size]


def test_more_attributes() -> None:
    more = AttributeContext()
    more.metadata_context.filter_metadata["a"].update({"b": "c"})
    found = asked(make_context(), more=more.SerializeToString())
    assert found["metadata_context"] == {"filter_metadata": {"a": {"b": "c"}}}
    assert found["request"]["http"]["protocol"] == "HTTP/1.1"
    assert "source" not in found


@pytest.mark.parametrize("size", [100, 119, 120, 123, 124, 127, 128, 16_384])
def test_long_headers(size: int) -> None:
    assert asked(make_context(headers=[("x-a", "v" * size)]))["request"]["http"]["headers"]["x-a"] == "v" * size


# -- answers -------------------------------------------------------------------------------------------------------------
def response(told: dict[str, Any]) -> bytes:
    return ParseDict(told, CheckResponse()).SerializeToString()


def option(name: str, value: str, **more: Any) -> dict[str, Any]:
    return {"header": {"key": name, "value": value}, **more}


ALLOWED: list[dict[str, Any]] = [
    {},
    {"status": {}},
    {"status": {"message": "fine"}, "ok_response": {}},
    {"ok_response": {"headers": [option("X-A", "1"), option("x-b", "2", append=True), option("content-length", "9")],
                     "headers_to_remove": ["X-Gone", "host"], "response_headers_to_add": [option("x-c", "3")]}},
]  # fmt: skip
OTHERS: list[dict[str, Any]] = [
    {"status": {"code": 7}},
    {"denied_response": {}},
    {"dynamic_metadata": {"a": 1}},
    {"ok_response": {"dynamic_metadata": {"a": 1}}},
    {"ok_response": {"query_parameters_to_set": [{"key": "a", "value": "b"}]}},
    {"ok_response": {"query_parameters_to_remove": ["a"]}},
    {"ok_response": {"headers": [option(":path", "/b")]}},
    {"ok_response": {"headers": [option("Host", "b.test")]}},
]


@pytest.mark.parametrize("told", ALLOWED, ids=str)
def test_what_is_allowed(told: dict[str, Any]) -> None:
    assert isinstance(read_allowance(response(told)), Allowance)


@pytest.mark.parametrize("told", OTHERS, ids=str)
def test_what_is_read_elsewhere(told: dict[str, Any]) -> None:
    assert read_allowance(response(told)) is None


def test_changes() -> None:
    found = read_allowance(response(ALLOWED[-1]))
    assert found is not None
    ctx = make_context(headers=[("x-a", "0"), ("x-b", "0"), ("x-gone", "0")])
    found.apply(ctx)
    assert ctx.request.items() == [("x-b", "0"), ("x-a", "1"), ("x-b", "2")]


def test_spoiled_answers() -> None:
    """What is taken for an allowance is one for the library as well."""
    chance = random.Random(4)
    taken = 0
    for _ in range(20_000):
        message = bytearray(b"".join(response(told) for told in chance.choices(ALLOWED + OTHERS, k=chance.randrange(1, 3))))
        for _ in range(chance.randrange(4)):
            if message:
                message[chance.randrange(len(message))] = chance.randrange(256)
        if read_allowance(bytes(message)) is None:
            continue
        taken += 1
        assert allows(CheckResponse.FromString(bytes(message))), bytes(message)
    assert taken > 1000
