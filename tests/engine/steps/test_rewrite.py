"""Rewrites and redirects without a prefix; those with one need a route (tests/end_to_end/test_policies.py)."""

from __future__ import annotations

import pytest

from headgate_drivers.requests import own_reply
from headgate_engine.context.request import Reply, make_context
from headgate_engine.plan.step import run_step
from headgate_engine.steps.rewrite import AuthorityChange, PathChange, RedirectStep, RewriteStep

FAILED = Reply(500)
AUTHORITIES = [
    (AuthorityChange(full="b.test:1"), "a.test:80", "b.test:1"),
    (AuthorityChange(host="b.test"), "a.test:80", "b.test"),
    (AuthorityChange(host="b.test"), "a.test", "b.test"),
    (AuthorityChange(port=81), "a.test:80", "a.test:81"),
    (AuthorityChange(port=81), "[::1]", "[::1]:81"),
    (AuthorityChange(host="[::2]"), "[::1]:80", "[::2]"),
]


@pytest.mark.parametrize(("change", "before", "after"), AUTHORITIES)
def test_authorities(change: AuthorityChange, before: str, after: str) -> None:
    ctx = make_context(authority=before)
    assert run_step(RewriteStep(change, None, FAILED), ctx) == 0
    assert ctx.authority == after


def test_a_prefix_without_a_route_fails() -> None:
    ctx = make_context()
    assert run_step(RewriteStep(None, PathChange(prefix="/a"), FAILED), ctx) == 1
    assert own_reply(ctx) is FAILED


@pytest.mark.parametrize("bad", ["", "a b", "a/b", "a?b", "a#b", "u@a", "a\r\nb"])
def test_what_is_no_authority(bad: str) -> None:
    with pytest.raises(ValueError, match=r"authority|host"):
        AuthorityChange(full=bad)


@pytest.mark.parametrize("bad", ["/a b", "/a?b", "/a#b", "/\r\n"])
def test_what_is_no_path(bad: str) -> None:
    with pytest.raises(ValueError, match="path"):
        PathChange(full=bad)


HOST = AuthorityChange(host="b.test")
REDIRECTS: list[tuple[bool, str, str | None, AuthorityChange | None, str]] = [
    (False, "a.test:80", None, None, "http://a.test"),
    (True, "a.test:443", None, None, "https://a.test"),
    (True, "a.test:8443", None, None, "https://a.test:8443"),
    (False, "a.test:8080", "https", None, "https://a.test"),
    (False, "a.test:8080", "http", None, "http://a.test:8080"),
    (False, "a.test:8080", None, HOST, "http://b.test:8080"),
    (False, "a.test:8080", "http", HOST, "http://b.test"),
    (False, "a.test:8080", "https", HOST, "https://b.test"),
    (False, "[::1]:8080", "https", AuthorityChange(port=8443), "https://[::1]:8443"),
    (False, "a.test:8080", "https", AuthorityChange(full="b.test:9"), "https://b.test:9"),
]


@pytest.mark.parametrize(("secure", "authority", "scheme", "change", "location"), REDIRECTS)
def test_ports_of_redirects(
    secure: bool, authority: str, scheme: str | None, change: AuthorityChange | None, location: str
) -> None:
    ctx = make_context("GET", "/x?y", authority, secure=secure)
    assert run_step(RedirectStep(scheme, change, None, 301, FAILED), ctx) == 1
    reply = own_reply(ctx)
    assert reply is not None
    assert (reply.status, reply.headers) == (301, ((b"location", f"{location}/x?y".encode()),))
