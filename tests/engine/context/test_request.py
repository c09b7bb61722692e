"""The state of one request as Python sees it."""

from __future__ import annotations

from typing import Any

import pytest

from headgate_drivers.requests import own_reply
from headgate_engine.context.request import Reply, RequestContext, TokenUsage, derived_context, log_extra, make_context


def test_a_context_shows_its_request() -> None:
    ctx = make_context("POST", "/a?b", "h.test", [("x", "1")], body=b"hi")
    assert (ctx.method, ctx.target, ctx.path, ctx.authority) == ("POST", "/a?b", "/a", "h.test")
    assert (ctx.request_body, ctx.body_state, ctx.request.get("X")) == (b"hi", 1, "1")
    ctx.request_body = b"other"
    assert ctx.request_body == b"other"


def test_steps_leave_fields_and_answers() -> None:
    ctx = make_context()
    reply = Reply(403, b"no", ((b"a", b"b"),), "X")
    ctx.respond(reply)
    ctx.add_response_header("X-Y", "1")
    ctx.add_log_field("k", 5)
    assert own_reply(ctx) is reply
    assert ctx.added_response_headers == [(b"x-y", b"1")]
    assert ctx.log_field_items == [("k", 5)]
    assert (reply.status, reply.body, reply.headers, reply.reason) == (403, b"no", ((b"a", b"b"),), "X")


def test_log_lines_tell_which_request_they_are_about() -> None:
    ctx = make_context()
    assert log_extra(ctx, n=1) == {"n": 1}
    ctx.own_request_id = "id-1"
    assert log_extra(ctx, n=1) == {"n": 1, "request.id": "id-1"}
    assert log_extra(None, n=1) == {"n": 1}


@pytest.mark.parametrize(("name", "value"), [("", "1"), ("a b", "1"), ("a:", "1"), ("a", "1\r\nb: 2"), ("a", "\0"), ("\xe9", "1")])
def test_an_added_response_header_is_checked(name: str, value: str) -> None:
    ctx = make_context()
    with pytest.raises(ValueError, match=r"header name|control character|codec"):
        ctx.add_response_header(name, value)
    assert ctx.added_response_headers == []


def test_a_method_refuses_a_foreign_self() -> None:
    with pytest.raises(TypeError, match="RequestContext"):
        RequestContext.add_response_header(object(), "x", "1")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [b"", b"a b", b"a:", b"a\r\n", b"\xe9"])
def test_a_reply_takes_names_that_are_tokens(name: bytes) -> None:
    with pytest.raises(ValueError, match="is not a header name"):
        Reply(200, b"", ((b"a", b"b"), (name, b"1")))


@pytest.mark.parametrize("value", [b"a\r\nb: c", b"a\nb", b"\0", b"\x7f"])
def test_a_reply_takes_values_without_control_characters(value: bytes) -> None:
    with pytest.raises(ValueError, match="control character"):
        Reply(200, b"", ((b"a", value),))


@pytest.mark.parametrize("pair", [None, b"ab", (b"a",), (b"a", None), ("a", b"b"), (b"a", "b"), [b"a", b"b"]])
def test_a_reply_takes_pairs_of_bytes(pair: Any) -> None:
    with pytest.raises(TypeError):
        Reply(200, b"", (pair,))


def test_a_reply_keeps_tabs_and_other_alphabets() -> None:
    assert Reply(200, b"", ((b"a", b"b\tc \xc3\xa9"),)).headers == ((b"a", b"b\tc \xc3\xa9"),)


@pytest.mark.parametrize("status", [0, 99, 1000, -1])
def test_a_reply_has_a_status_that_can_be_sent(status: int) -> None:
    with pytest.raises(ValueError, match="100"):
        Reply(status)


def test_identity_is_unknown_until_a_step_sets_it() -> None:
    ctx = make_context()
    assert (ctx.jwt, ctx.jwt_token, ctx.api_key, ctx.basic_user, ctx.metadata, ctx.dynamic) == (None,) * 6
    usage = TokenUsage(1, 2)
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens) == (1, 2, -1, -1)


def test_a_derived_context_knows_who_asks_and_changes_nothing_of_its_source() -> None:
    source = make_context("POST", "/mcp", "gw.test", [("authorization", "Bearer t")], body=b"{}", secure=True)
    source.jwt, source.jwt_token, source.basic_user = {"sub": "ada"}, b"t", "ada"
    source.metadata, source.dynamic = {"a": 1}, {"extauthz": {}}
    found = derived_context(source, "GET", "/events", "target.test", [("x-a", "1")])
    assert (found.method, found.target, found.authority, found.secure) == ("GET", "/events", "target.test", True)
    assert found.request.items() == [("x-a", "1")]
    assert (found.jwt, found.jwt_token, found.basic_user) == ({"sub": "ada"}, b"t", "ada")
    assert found.metadata == {"a": 1}
    found.metadata["b"] = 2
    found.jwt_token = None
    assert (source.metadata, source.jwt_token) == ({"a": 1}, b"t")
    assert derived_context(None, "GET", "/", "a.test", (), b"x").request_body == b"x"
