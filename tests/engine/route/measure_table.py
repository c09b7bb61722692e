"""Prints nanoseconds per match in each layout of many routes: python tests/engine/route/measure_table.py

Not a test: nothing is asserted. Each line is the best of five runs over a list of requests for different routes, so
that the tables are read where they lie and not from the first-level cache.
"""

from __future__ import annotations

from collections.abc import Callable

from headgate_drivers.route import nanoseconds_per_match
from headgate_engine.route.table import RouteRule, RouteTable

ROUTES = 10_000
SAMPLE = range(0, ROUTES, 37)
Request = tuple[str, str, str, tuple[tuple[str, str], ...]]
Layout = tuple[str, Callable[[int], RouteRule], Callable[[int], Request]]


def get(host: str, target: str, *headers: tuple[str, str]) -> Request:
    return (host, "GET", target, (("user-agent", "curl/8.0"), ("accept", "*/*"), *headers))


def rule_by_header(i: int) -> RouteRule:
    return RouteRule(path="/x", headers=(("x-tenant", "exact", str(i)),), order=i)


LAYOUTS: tuple[Layout, ...] = (
    ("host names", lambda i: RouteRule(hostnames=(f"h{i}.test",)), lambda i: get(f"h{i}.test:80", "/a/b")),
    ("wildcard host names", lambda i: RouteRule(hostnames=(f"*.h{i}.test",)), lambda i: get(f"a.b.h{i}.test", "/a/b")),
    (
        "exact paths",
        lambda i: RouteRule(path_kind="exact", path=f"/api/v1/{i}"),
        lambda i: get("a", f"/api/v1/{i}?q=1"),
    ),
    ("prefixes", lambda i: RouteRule(path=f"/service{i}/v1"), lambda i: get("a", f"/service{i}/v1/x/y/z")),
    ("prefixes below one", lambda i: RouteRule(path=f"/api/team/{i}"), lambda i: get("a", f"/api/team/{i}/x/y")),
    ("prefixes, none fits", lambda i: RouteRule(path=f"/api/team/{i}"), lambda i: get("a", f"/api/team/n{i}/x/y")),
    (
        "one path, by query",
        lambda i: RouteRule(path="/x", query=(("q", "exact", str(i)),)),
        lambda i: get("a", f"/x?q={i}"),
    ),
    ("one path, by header", rule_by_header, lambda i: get("a", "/x", ("x-tenant", str(i)))),
    (
        "one path, by header name",
        lambda i: RouteRule(headers=((f"x-{i}", "exact", ""),)),
        lambda i: get("a", "/", (f"x-{i}", "")),
    ),
    ("patterns", lambda i: RouteRule(path_kind="regex", path=f"/s{i}/[0-9]+"), lambda i: get("a", f"/s{i}/17")),
)


def main() -> None:
    for name, rule, request in LAYOUTS:
        table = RouteTable(rule(i) for i in range(ROUTES))
        requests = [request(i) for i in SAMPLE]
        best = min(nanoseconds_per_match(table, requests, rounds=3) for _ in range(5))
        print(f"{ROUTES} routes, {name:26} {best:10.0f} ns")


if __name__ == "__main__":
    main()
