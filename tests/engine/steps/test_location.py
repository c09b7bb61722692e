"""Credentials found, taken out and put in."""

from __future__ import annotations

import pytest

from headgate.expr.compile import compile_expression
from headgate_engine.context.redact import redacted
from headgate_engine.context.request import make_context
from headgate_engine.steps.location import CredentialLocation

HEADER = CredentialLocation("header", "Authorization", "Bearer ")
QUERY = CredentialLocation("query", "place")
COOKIE = CredentialLocation("cookie", "sid")

FOUND = [
    (HEADER, "/", [("authorization", "Bearer abc")], b"abc"),
    (HEADER, "/", [("authorization", "bEARER   abc")], b"abc"),
    (HEADER, "/", [("authorization", "Basic abc")], None),
    (HEADER, "/", [("authorization", "Bearer ")], None),
    (HEADER, "/", [("authorization", "Bearer a"), ("authorization", "Bearer a")], None),
    (QUERY, "/?place=a%20b&x=1", [], b"a b"),
    (QUERY, "/?pl%61ce=a", [], b"a"),
    (QUERY, "/?place=a&place=a", [], None),
    (QUERY, "/?place=", [], None),
    (QUERY, "/?other=1", [], None),
    (COOKIE, "/", [("cookie", "a=1; sid=x"), ("cookie", "b=2")], b"x"),
    (COOKIE, "/", [("cookie", "sid=x; sid=y")], None),
    (COOKIE, "/", [("cookie", "xsid=x")], None),
]


@pytest.mark.parametrize(("location", "target", "headers", "found"), FOUND)
def test_found(location: CredentialLocation, target: str, headers: list[tuple[str, str]], found: bytes | None) -> None:
    assert location.take(make_context("GET", target, "a.test", headers)) == found


def test_taken_out() -> None:
    ctx = make_context("GET", "/p?a=1&place=s&b=2", "a.test", [("authorization", "Bearer t"), ("cookie", "sid=1; z=2")])
    for location in (HEADER, QUERY, COOKIE):
        assert location.take(ctx)
        assert location.take(ctx) is None
    assert ctx.target == "/p?a=1&b=2"
    assert ctx.request.items() == [("cookie", "z=2")]


def test_put_in_the_place_of_the_client_s() -> None:
    ctx = make_context("GET", "/p?place=old", "a.test", [("Authorization", "old"), ("cookie", "sid=old; z=2")])
    HEADER.set(ctx, b"new")
    QUERY.set(ctx, b"n w&")
    COOKIE.set(ctx, b"new")
    assert ctx.target == "/p?place=n%20w%26"
    assert sorted(ctx.request.items()) == [("authorization", "Bearer new"), ("cookie", "z=2; sid=new")]


def test_a_parameter_is_hidden_in_logs_while_its_location_lives() -> None:
    location = CredentialLocation("query", "Some-Mark")
    assert redacted("/?some-mark=1") == "/?some-mark=<redacted>"
    assert CredentialLocation("cookie", "other-mark").kind != location.kind
    assert redacted("/?other-mark=1") == "/?other-mark=1"
    del location
    assert redacted("/?some-mark=1") == "/?some-mark=1"


def test_an_expression_only_reads() -> None:
    location = CredentialLocation("expression", program=compile_expression("request.headers['x-t'].stripPrefix('T ')"))
    ctx = make_context("GET", "/", "a.test", [("x-t", "T abc")])
    assert location.take(ctx) == location.take(ctx) == b"abc"
    assert location.take(make_context()) is None
    with pytest.raises(ValueError, match="expression"):
        location.set(ctx, b"x")
