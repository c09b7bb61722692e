"""What a decision does to a request."""

from __future__ import annotations

import pytest

from headgate.policy.ext_authz.decision import AuthzDecision, refusal, usable_pseudo, with_query
from headgate.policy.header_values import (
    ADD_IF_ABSENT,
    APPEND,
    REPLACE_IF_PRESENT,
    REPLACE_OR_ADD,
    FieldEdit,
    usable_edit,
)
from headgate_engine.context.request import make_context


@pytest.mark.parametrize(
    ("action", "there", "absent"),
    [
        (APPEND, ["old", "new"], ["new"]),
        (ADD_IF_ABSENT, ["old"], ["new"]),
        (REPLACE_OR_ADD, ["new"], ["new"]),
        (REPLACE_IF_PRESENT, ["new"], []),
    ],
)
def test_fields(action: int, there: list[str], absent: list[str]) -> None:
    for headers, expected in (([("x-a", "old")], there), ([], absent)):
        ctx = make_context(headers=headers)
        assert AuthzDecision(edits=(FieldEdit(action, "x-a", "new"),)).apply(ctx) is None
        assert ctx.request.get_list("x-a") == expected


def test_start_line() -> None:
    ctx = make_context(target="/old?a=1", authority="a.test")
    edits = (FieldEdit(REPLACE_OR_ADD, ":path", "/new?b=2"), FieldEdit(REPLACE_OR_ADD, "host", "b.test"))
    AuthzDecision(edits=edits, query_set=(("c", "3"),)).apply(ctx)
    assert (ctx.target, ctx.authority) == ("/new?b=2&c=3", "b.test")
    AuthzDecision(edits=(FieldEdit(0, ":path", "/a b"), FieldEdit(0, ":authority", "a b"))).apply(ctx)
    assert (ctx.target, ctx.authority) == ("/new?b=2&c=3", "b.test"), "what is not valid changes nothing"


def test_metadata_adds_up_and_refusals_leave_the_request() -> None:
    ctx = make_context(headers=[("x-a", "1")])
    AuthzDecision(metadata={"a": 1, "b": 1}).apply(ctx)
    reply = refusal(403)
    refused = AuthzDecision(reply=reply, metadata={"b": 2}, removed=("x-a",))
    assert refused.apply(ctx) is reply
    assert ctx.dynamic == {"extauthz": {"a": 1, "b": 2}}
    assert ctx.request.get("x-a") == "1"


@pytest.mark.parametrize(
    ("edit", "usable"),
    [
        (("x-a", "v"), True),
        (("x-a", "\udcff"), True),
        (("x-a", ""), True),
        (("", "v"), False),
        (("x a", "v"), False),
        (("x-ä", "v"), False),
        (("x-a", "v\r\nx-b: w"), False),
        (("x-a", "\0"), False),
        (("content-length", "1"), False),
        (("transfer-encoding", "chunked"), False),
        (("connection", "x-a"), False),
        ((":method", "GET"), False),
    ],
)
def test_what_a_service_may_set(edit: tuple[str, str], usable: bool) -> None:
    assert usable_edit(FieldEdit(APPEND, *edit)) is usable


@pytest.mark.parametrize(
    ("name", "value", "usable"),
    [
        (":path", "/a?b", True), (":path", "a", False), (":path", "/a#b", False), (":authority", "a.test:1", True),
        ("host", "a.test", True), ("host", "", False), ("host", "u@a.test", False), (":scheme", "http", False),
    ],
)  # fmt: skip
def test_what_a_service_may_make_of_the_start_line(name: str, value: str, usable: bool) -> None:
    assert usable_pseudo(FieldEdit(REPLACE_OR_ADD, name, value)) is usable


@pytest.mark.parametrize(
    ("target", "put", "removed", "expected"),
    [
        ("/a", (), ("x",), "/a"),
        ("/a?x=1", (), ("x",), "/a"),
        ("/a?x=1&y=%20&x=2", (), ("x",), "/a?y=%20"),
        ("/a?x=1&y=2", (("x", "3"),), (), "/a?y=2&x=3"),
        ("/a?%78=1", (("x", "a&b= c"),), ("x",), "/a?x=a%26b%3D+c"),
        ("/a?x", (), ("x",), "/a"),
        ("/a?&&y", (("z", ""),), (), "/a?y&z="),
    ],
)
def test_queries(target: str, put: tuple[tuple[str, str], ...], removed: tuple[str, ...], expected: str) -> None:
    assert with_query(target, put, removed) == expected
