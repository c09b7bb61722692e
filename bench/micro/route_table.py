"""headgate_engine.route.table against going through all rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from bench.micro.timing import Row, compare_times, nanoseconds, same, show
from headgate_drivers.route import matched, nanoseconds_per_match
from headgate_engine.route.table import RouteRule, RouteTable

HEADERS = (("accept", "*/*"), ("user-agent", "bench/1"), ("x-tier", "gold"))
REQUESTS = 50


class Naive(NamedTuple):
    """One prefix rule as a reader of the specification would write it."""

    host: str
    path: str
    tier: str
    target: int

    def holds(self, host: str, path: str, headers: tuple[tuple[str, str], ...]) -> bool:
        return (
            (not self.host or self.host == host)
            and (path == self.path or path.startswith(self.path.rstrip("/") + "/"))
            and (not self.tier or ("x-tier", self.tier) in headers)
        )


def naive_match(rules: list[Naive], host: str, path: str) -> int | None:
    """The target of the best rule: host before no host, longer path first, more conditions first."""
    found = [rule for rule in rules if rule.holds(host, path, HEADERS)]
    best = max(found, key=lambda rule: (rule.host != "", len(rule.path), rule.tier != ""), default=None)
    return None if best is None else best.target


def rule_of(naive: Naive) -> RouteRule:
    """The same rule for the engine."""
    return RouteRule(
        hostnames=(naive.host,) if naive.host else (),
        path=naive.path,
        headers=(("x-tier", "exact", naive.tier),) if naive.tier else (),
        target=naive.target,
    )


def service(number: int) -> str:
    return f"/team{number % 8}/service{number}"


SETS: dict[str, Callable[[int], Naive]] = {
    "prefixes": lambda n: Naive("", service(n), "", n),
    "hosts with a prefix each": lambda n: Naive(f"host{n}.test", "/api", "", n),
    "prefixes with a header condition": lambda n: Naive("", service(n), "gold" if n % 2 else "silver", n),
}


def requests(rules: list[Naive], count: int = REQUESTS) -> list[tuple[str, str]]:
    """Hosts and paths, evenly spread over the rules, and one that no rule wants."""
    chosen = rules[:: max(1, len(rules) // count)]
    return [*((rule.host or "a.test", rule.path + "/v1/items") for rule in chosen), ("nobody.test", "/nowhere")]


def rows() -> Iterator[Row]:
    for size in (10, 10_000):
        for name, make in SETS.items():
            rules = [make(number) for number in range(size)]
            table = RouteTable([rule_of(rule) for rule in rules])
            asked = requests(rules)
            for host, path in asked[-5:]:
                found = matched(table, host, "GET", path, HEADERS)
                same(None if found is None else found.target, naive_match(rules, host, path))
            parts = [(host, "GET", path, HEADERS) for host, path in asked]
            # One request of the naive search among 10,000 rules is enough: it always looks at all of them.
            host, path = asked[len(asked) // 2]
            yield compare_times(
                f"route: {size:,} {name}",
                lambda t=table, p=parts: nanoseconds_per_match(t, p, rounds=2000),  # type: ignore[misc]
                lambda r=rules, h=host, p=path: nanoseconds(lambda: naive_match(r, h, p)),  # type: ignore[misc]
                against="all rules in turn",
            )


if __name__ == "__main__":
    show(rows())
