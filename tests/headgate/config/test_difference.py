"""What a new configuration would change."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.config.difference import HIDDEN, differences
from headgate.config.dump import Runtime, dump
from headgate.config.load import TextSource, load

FIRST = """
gateways:
  default: {port: 3000}
routes:
- name: a
  policies: {urlRewrite: {path: {prefix: /x}}, apiKey: {keys: [{key: first-secret-key}]}}
  backends: [{host: "127.0.0.1:9000"}]
- name: b
  policies: {directResponse: {status: 200}}
"""


def shown(text: str, **runtime: int):
    return dump(load(TextSource(text)).gateway, Runtime(**{"generation": 1, "workers": 1, **runtime}))


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        (("", ""), []),
        (("# nothing", "# nothing else"), []),
        (("status: 200", "status: 404"),
         ["~ binds[bind/3000].listeners.default/default.default.routes.default/b.inlinePolicies[0].directResponse.status: 200 -> 404"]),
        (("- name: b", "- name: c"), ["- binds[bind/3000].listeners.default/default.default.routes.default/b ",
                                      "+ binds[bind/3000].listeners.default/default.default.routes.default/c "]),
        (("port: 3000", "port: 3001"), ["- binds[bind/3000]", "+ binds[bind/3001]"]),
        (("first-secret-key", "second-secret-key"), [HIDDEN]),
    ],
)  # fmt: skip
def test_lines(change: tuple[str, str], lines: list[str]) -> None:
    new = FIRST.replace(*change) if change[0] else FIRST
    found = differences(shown(FIRST), shown(new))
    assert [line.startswith(start) for line, start in zip(found, lines, strict=True)] == [True] * len(lines), found
    assert "secret-key" not in str(found)


def test_what_time_has_changed_is_no_difference() -> None:
    old = shown(FIRST, generation=7, started_unix_s=5)
    old["workers"] = [{"pid": 1}]
    assert differences(old, shown(FIRST)) == []


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ({"a": [1, 2]}, {"a": [2, 1]}, ["~ a: [1, 2] -> [2, 1]"]),
        ({"a": [{"name": "x", "v": 1}]}, {"a": [{"name": "x", "v": 2}]}, ["~ a[x].v: 1 -> 2"]),
        ({"a": [{"name": "x"}, {"name": "x"}]}, {"a": [{"name": "x"}]}, ['~ a: [{"name": "x"}, {"name": "x"}] -> [{"name": "x"}]']),
        ({"a": True}, {"a": 1}, ["~ a: true -> 1"]),
        ({"a": {"b": None}}, {"a": {}}, ["- a.b null"]),
        ({}, {"a": "x" * 200}, ['+ a "' + "x" * 99 + "..."]),
        ({"a": {"b": 1}}, {"a": [1]}, ['~ a: {"b": 1} -> [1]']),
    ],
)  # fmt: skip
def test_values(old, new, lines: list[str]) -> None:
    assert differences(old, new) == lines


def test_what_time_has_done_to_endpoints_is_no_difference() -> None:
    def state(side: str, capacity: int, **info: float) -> dict[str, Any]:
        group = {"active": {}, "rejected": {}, side: {"one": {"endpoint": {}, "capacity": capacity, "info": info}}}
        return {"services": [{"hostname": "shop.test", "endpoints": [group]}]}

    fresh = state("active", 1, health=1.0, totalRequests=0)
    assert differences(state("rejected", 1, health=0.2, totalRequests=7), fresh) == []
    assert differences(state("rejected", 2, health=0.2), fresh) == [
        "~ services[shop.test].endpoints[0].one.capacity: 2 -> 1"
    ]
