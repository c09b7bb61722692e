"""Matches."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.ir.gateway import Gateway
from headgate.ir.match import ANY_REQUEST, Match, PathMatch, ValueMatch

CASES = [
    ("[]", ANY_REQUEST),
    ("[{}]", ANY_REQUEST),
    ("[{path: {exact: /a}}]", Match(path=PathMatch(kind="exact", value="/a"))),
    ("[{path: {pathPrefix: /a/}}]", Match(path=PathMatch(kind="prefix", value="/a/"))),
    ("[{path: {regex: '/a$'}}]", Match(path=PathMatch(kind="regex", value="/a$"))),
    ("[{method: get}]", Match(method="get")),
    (
        "[{headers: [{name: X-A, value: {exact: v}}, {name: ':path', value: {regex: '/.*'}}]}]",
        Match(
            headers=(
                ValueMatch(name="x-a", kind="exact", value="v"),
                ValueMatch(name=":path", kind="regex", value="/.*"),
            )
        ),
    ),
    (
        "[{query: [{name: Q, value: {exact: ''}}]}]",
        Match(query=(ValueMatch(name="Q", kind="exact", value=""),)),
    ),
]


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[case[0] for case in CASES])
def test_matches_are_read(text: str, expected: Match, loaded: Callable[..., Gateway]) -> None:
    gateway = loaded(f"gateways: {{default: {{port: 1}}}}\nroutes: [{{matches: {text}}}]")
    assert gateway.binds[0].listeners[0].routes[0].matches == (expected,)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{path: {exact: a}}", "a path must begin with /"),
        ("{path: {exact: /a, regex: /b}}", "only one of"),
        ("{path: invalid}", "not supported yet"),
        ("{path: {regex: '(?=a)'}}", "not a regular expression"),
        ("{method: 'G T'}", "not a method"),
        ("{headers: [{name: ':host', value: {exact: a}}]}", "not a header name"),
        ("{headers: [{name: a}]}", "missing field 'value'"),
    ],
)
def test_bad_matches_are_refused(text: str, fault: str, faults: Callable[..., list[str]]) -> None:
    found = faults(f"gateways: {{default: {{port: 1}}}}\nroutes: [{{matches: [{text}]}}]")
    assert any(fault in line for line in found)


def test_a_star_among_host_names_means_any_host(loaded: Callable[..., Gateway]) -> None:
    gateway = loaded(
        "gateways: {default: {port: 1}}\nroutes: [{hostnames: ['*', a.test]}, {hostnames: [A.test]}]"
    )
    first, second = gateway.binds[0].listeners[0].routes
    assert first.hostnames == ()
    assert second.hostnames == ("a.test",)
