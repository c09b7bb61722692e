"""Route choice: tables of behaviours, and the naive oracle."""

from __future__ import annotations

from dataclasses import asdict
from types import ModuleType
from typing import Any

import effort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_drivers.route import matched, nanoseconds_per_match
from headgate_engine.route.table import HostTable, RouteRule, RouteTable


def chosen(rules: list[dict[str, Any]], host: str, target: str, method: str = "GET", headers: Any = ()) -> Any:
    """Return the target of the rule taken; targets are positions in the list."""
    table = RouteTable(RouteRule(target=position, **rule) for position, rule in enumerate(rules))
    rule = matched(table, host, method, target, headers)
    return None if rule is None else rule.target


PATH_CASES = [
    ("exact", "/a", "/a", True),
    ("exact", "/a", "/a/", False),
    ("exact", "/a", "/A", False),
    ("exact", "/a", "/a?b=c", True),
    ("exact", "/a", "/%61", False),
    ("exact", "/a/./b", "/a/./b", True),
    ("exact", "/a/b", "/a/./b", False),
    ("exact", "/", "/", True),
    ("prefix", "/a", "/a", True),
    ("prefix", "/a", "/a/", True),
    ("prefix", "/a", "/a/b", True),
    ("prefix", "/a", "/ab", False),
    ("prefix", "/a", "/A/b", False),
    ("prefix", "/a", "//a", False),
    ("prefix", "/a", "/a//b", True),
    ("prefix", "/a", "/a?x=/b", True),
    ("prefix", "/a/", "/a", True),
    ("prefix", "/a/", "/a/b", True),
    ("prefix", "/a/", "/ab", False),
    ("prefix", "/a/b", "/a", False),
    ("prefix", "/", "/", True),
    ("prefix", "/", "/anything/at/all", True),
    ("prefix", "/abcdefg", "/abcdefg/h", True),
    ("prefix", "/abcdefgh", "/abcdefgh/i", True),
    ("regex", "/a.*", "/abc", True),
    ("regex", "/a", "/ab", False),
    ("regex", "a", "/a", False),
    ("regex", "/a|/ab", "/ab", True),
    ("regex", "/v[0-9]+/x", "/v12/x?y", True),
    ("regex", "/v[0-9]+/x", "/v/x", False),
    ("regex", "(?i)/AbC", "/aBc", True),
    ("regex", ".*", "/", True),
]


@pytest.mark.parametrize(("kind", "path", "target", "expected"), PATH_CASES)
def test_a_path_matches_by_its_kind(kind: str, path: str, target: str, expected: bool) -> None:
    assert (chosen([{"path_kind": kind, "path": path}], "a.test", target) == 0) is expected


HOST_CASES = [
    ("a.test", "a.test", True),
    ("a.test", "A.Test:8080", True),
    ("A.TEST", "a.test", True),
    ("a.test", "a.test.", True),
    ("a.test", "a.test.:80", True),
    ("a.test", "b.a.test", False),
    ("a.test", "", False),
    ("*.a.test", "b.a.test", True),
    ("*.a.test", "c.b.a.test:1", True),
    ("*.a.test", "a.test", False),
    ("*.a.test", ".a.test", False),
    ("*.a.test", "xa.test", False),
    ("*", "a.test", True),
    ("*", "", True),
    ("[::1]", "[::1]:8080", True),
    ("[::1]", "[::1]", True),
    ("[::1]", "[::2]", False),
    ("127.0.0.1", "127.0.0.1:80", True),
    ("a.test", "x" * 300, False),
]


@pytest.mark.parametrize(("name", "host", "expected"), HOST_CASES)
def test_a_host_name_covers_hosts(name: str, host: str, expected: bool) -> None:
    assert (chosen([{"hostnames": (name,)}], host, "/") == 0) is expected
    assert (HostTable([(name, "yes")]).get(host) == "yes") is expected


def test_a_more_specific_host_wins_and_falls_through_when_nothing_in_it_matches() -> None:
    rules: list[dict[str, Any]] = [
        {"path": "/any"},
        {"hostnames": ("*.test",), "path": "/short"},
        {"hostnames": ("*.a.test",), "path": "/long"},
        {"hostnames": ("b.a.test",), "path": "/exact"},
        {"hostnames": ("b.a.test",), "path": "/"},
    ]
    assert chosen(rules, "b.a.test", "/exact") == 3
    assert chosen(rules, "b.a.test", "/long") == 4
    rules.pop()
    for position, path in enumerate(("/any", "/short", "/long", "/exact")):
        assert chosen(rules, "b.a.test", path) == position
    assert chosen(rules, "b.a.test", "/none") is None
    assert chosen(rules, "c.a.test", "/exact") is None


RANK_CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "exact before a longer pattern",
        {"path_kind": "exact", "path": "/a/b"},
        {"path_kind": "regex", "path": "/a/b(/c)*"},
    ),
    ("exact before prefix", {"path_kind": "exact", "path": "/a/b"}, {"path": "/a/b"}),
    ("longer prefix first", {"path": "/a/b"}, {"path": "/a", "method": "GET"}),
    ("any prefix before a pattern", {"path": "/"}, {"path_kind": "regex", "path": "/a/.*", "method": "GET"}),
    ("method before none", {"method": "GET"}, {"headers": (("x-a", "exact", "1"), ("x-b", "exact", "2"))}),
    (
        "more headers first",
        {"headers": (("x-a", "exact", "1"),)},
        {"query": (("q", "exact", "1"), ("r", "exact", "2"))},
    ),
    ("more query conditions first", {"query": (("q", "exact", "1"),), "order": 9}, {"order": 1}),
    ("lower order first", {"order": 1}, {"order": 2}),
    (
        "method before none among patterns",
        {"path_kind": "regex", "path": "/a/.", "method": "GET"},
        {"path_kind": "regex", "path": "/a/[a-z]"},
    ),
    (
        "order among patterns, not length",
        {"path_kind": "regex", "path": "/.*", "order": 1},
        {"path_kind": "regex", "path": "/[a]/[a-z]", "order": 2},
    ),
]


@pytest.mark.parametrize(("winner", "loser"), [case[1:] for case in RANK_CASES], ids=[case[0] for case in RANK_CASES])
def test_rank_decides_whatever_the_order_of_writing(winner: dict[str, Any], loser: dict[str, Any]) -> None:
    request = ("a.test", "/a/b?q=1&r=2", "GET", (("x-a", "1"), ("x-b", "2")))
    assert chosen([winner, loser], *request) == 0
    assert chosen([loser, winner], *request) == 1
    assert chosen([loser], *request) == 0


def test_equal_rules_go_by_the_order_they_were_given() -> None:
    assert chosen([{}, {}], "a", "/") == 0


def test_a_prefix_whose_conditions_fail_leaves_the_request_to_shorter_ones() -> None:
    rules: list[dict[str, Any]] = [
        {"path": "/"},
        {"path": "/a", "method": "PUT"},
        {"path": "/a/b", "headers": (("x-a", "exact", "1"),)},
        {"path": "/a/b/c", "query": (("q", "exact", "1"),)},
        {"path_kind": "exact", "path": "/a/b/c", "method": "POST"},
        {"path_kind": "regex", "path": "/a.*"},
    ]
    assert chosen(rules, "h", "/a/b/c", "POST") == 4
    assert chosen(rules, "h", "/a/b/c?q=1", "PUT") == 3
    assert chosen(rules, "h", "/a/b/c", "PUT", (("x-a", "1"),)) == 2
    assert chosen(rules, "h", "/a/b/c", "PUT") == 1
    assert chosen(rules, "h", "/a/b/c") == 0
    assert chosen(rules[1:], "h", "/a/b/c") == 4


def test_a_method_is_compared_byte_by_byte() -> None:
    assert chosen([{"method": "GET"}], "a", "/", "get") is None
    assert chosen([{"method": "GET"}], "a", "/", "GETS") is None


def test_ten_thousand_rules_are_told_apart() -> None:
    rules: list[dict[str, Any]] = []
    for i in range(2500):
        rules += [
            {"hostnames": (f"h{i}.test",)},
            {"path_kind": "exact", "path": f"/exact/{i}"},
            {"path": f"/shared/prefix/{i}"},
            {"path": "/one", "headers": (("x-tenant", "exact", str(i)),)},
        ]
    table = RouteTable(RouteRule(target=position, **rule) for position, rule in enumerate(rules))
    assert table.size == 10_000
    for i in (0, 1, 1249, 2499):
        requests = [
            (f"h{i}.test", "/one"),
            ("a", f"/exact/{i}"),
            ("a", f"/shared/prefix/{i}/more"),
            ("a", "/one/x"),
        ]
        for kind, (host, path) in enumerate(requests):
            rule = matched(table, host, "GET", path, (("x-tenant", str(i)),))
            assert rule is not None
            assert rule.target == 4 * i + kind


def test_the_listener_of_a_host_is_the_most_specific_one() -> None:
    table = HostTable([("*", 0), ("*.a.test", 1), ("*.b.a.test", 2), ("c.b.a.test", 3), ("C.B.A.TEST", 4), ("*", 5)])
    hosts = {"c.b.a.test:443": 3, "d.b.a.test": 2, "b.a.test": 1, "a.test": 0, "[::1]:80": 0, "": 0}
    assert {host: table.get(host) for host in hosts} == hosts
    assert HostTable([("a.test", 1)]).get("b.test") is None
    assert HostTable([]).get("a") is None


@pytest.mark.parametrize("name", ["", ".", "*.", "**", "a.*.b", "*a", "*.*.a", "a" * 256])
def test_a_misplaced_star_or_an_empty_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is no host name"):
        RouteRule(hostnames=(name,))
    with pytest.raises(ValueError, match="is no host name"):
        HostTable([(name, 1)])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"path_kind": "glob"}, "'glob' is no kind of path match"),
        ({"path": "a"}, "'a' does not begin with a slash"),
        ({"path_kind": "exact", "path": ""}, "does not begin with a slash"),
        ({"path_kind": "regex", "path": "/(?=a)"}, r"pattern '/\(\?=a\)'"),
        ({"headers": (("x-a", "regex", "("),)}, r"pattern '\('"),
        ({"query": (("q", "glob", "*"),)}, "'glob' is no kind of match"),
    ],
)
def test_a_rule_that_cannot_be_compiled_says_why(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RouteRule(**fields)


def test_what_cannot_stand_in_a_request_line_is_refused() -> None:
    with pytest.raises(ValueError, match="not a request target"):
        matched(RouteTable([]), "a", "GET", "no-slash")
    with pytest.raises(ValueError, match="rounds"):
        nanoseconds_per_match(RouteTable([]), [], rounds=0)
    assert matched(RouteTable([]), "a", "GET", "/") is None
    assert nanoseconds_per_match(RouteTable([]), [("a", "GET", "/", ())]) >= 0


NAMES = ["a.test", "b.a.test", "*.a.test", "*.test", "*.b.a.test", "*"]
HOSTS = ["a.test", "B.a.test:80", "c.b.a.test", "x.test.", "other", "[::1]:8", ""]
SEGMENTS = st.lists(st.sampled_from(["", "a", "b", "abcdefgh", "A"]), max_size=5)
PATHS = SEGMENTS.map(lambda parts: "/" + "/".join(parts))
PATTERNS = st.sampled_from(["/a.*", "/(a|b)/?.*", ".*", "/a/b", "(?i)/A", "/[ab]+(/abcdefgh)*", "/a|/b/b", ""])
HEADER_NAMES = st.sampled_from(["x-a", "X-B", "x-c"])
VALUES = st.sampled_from(["", "1", "2", "12", "1,2"])
VALUE_TESTS = st.one_of(
    st.tuples(st.just("exact"), VALUES), st.tuples(st.just("regex"), st.sampled_from(["1.*", "[12]*", "2|12", ".+"]))
)
HEADER_TESTS = st.one_of(
    st.tuples(HEADER_NAMES, VALUE_TESTS),
    st.tuples(
        st.sampled_from([":method", ":authority", ":scheme", ":path"]),
        st.sampled_from([("exact", "GET"), ("regex", ".*t.*"), ("exact", "http"), ("regex", r"/a.*\?.*")]),
    ),
)
QUERY_TESTS = st.tuples(st.sampled_from(["q", "r", "q r", ""]), VALUE_TESTS)


@st.composite
def rules(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["exact", "prefix", "prefix", "regex"]))
    return {
        "hostnames": tuple(draw(st.lists(st.sampled_from(NAMES), max_size=2))),
        "path_kind": kind,
        "path": draw(PATTERNS if kind == "regex" else PATHS),
        "method": draw(st.sampled_from([None, None, "GET", "POST"])),
        "headers": tuple((name, *test) for name, test in draw(st.lists(HEADER_TESTS, max_size=2))),
        "query": tuple((name, *test) for name, test in draw(st.lists(QUERY_TESTS, max_size=2))),
        "order": draw(st.integers(0, 3)),
    }


REQUESTS = st.tuples(
    st.sampled_from(HOSTS),
    st.sampled_from(["GET", "POST"]),
    st.tuples(
        PATHS, st.lists(st.sampled_from(["q=1", "q=2", "r=12", "q+r=1", "q%20r", "=2", "q=%31", "", "q"]), max_size=4)
    ),
    st.lists(st.tuples(HEADER_NAMES, VALUES), max_size=4),
)


@settings(max_examples=effort.examples(400), deadline=None)
@given(st.lists(rules(), max_size=25), st.lists(REQUESTS, min_size=1, max_size=4))
def test_every_choice_is_the_oracles(naive: ModuleType, given_rules: list[dict[str, Any]], requests: list[Any]) -> None:
    table = RouteTable(RouteRule(target=position, **rule) for position, rule in enumerate(given_rules))
    slow = [naive.NaiveRule(**rule) for rule in given_rules]
    for host, method, (path, query), headers in requests:
        request = naive.Request(host, method, path + ("?" + "&".join(query) if query else ""), tuple(headers))
        found = matched(table, **asdict(request))
        assert (None if found is None else found.target) == naive.naive_match(slow, request)
