"""Header filters and changes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from headgate.backend.mcp.guardrails.header_fields import FieldFilter, change


@pytest.mark.parametrize(
    ("allowed", "disallowed", "passing", "kept"),
    [
        ((), (), ("x-a", ":path", "cookie"), ("x-gw-relay-identity",)),
        (("X-A",), (), ("x-a",), ("x-b", ":path")),
        ((), ("X-A", ":path"), ("x-b", ":method"), ("x-a", ":path")),
        (("x-a", ":path"), ("x-a",), (":path",), ("x-a", ":method")),
    ],
)
def test_filters(
    allowed: tuple[str, ...], disallowed: tuple[str, ...], passing: tuple[str, ...], kept: tuple[str, ...]
) -> None:
    rule = FieldFilter(allowed, disallowed)
    assert all(rule.passes(name) for name in passing)
    assert not any(rule.passes(name) for name in kept)


def test_changes() -> None:
    fields = [("X-Team", "green"), ("x-old", "1"), ("X-OLD", "2"), ("host", "a.test")]
    sets = [SimpleNamespace(key=key, value=value) for key, value in (
        ("x-team", b"red"), ("X-TEAM", b"blue"), ("x-empty", b""), ("x-raw", b"\xff"), ("x-new", b"1"), ("host", b"b"),
        ("x y", b"1"), ("x-line", b"1\n2"), ("x-blank", b" 1"), ("x-nul", b"\0"), ("transfer-encoding", b"chunked"),
    )]  # fmt: skip
    change(fields, sets, ["X-Old", "X-New", "content-length", "host", "not there"])
    assert fields == [("host", "a.test"), ("x-team", "red"), ("x-team", "blue"), ("x-empty", ""), ("x-raw", "\udcff")]
