"""Route groups: what delegated routes inherit, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.config.dump import Runtime, dump
from headgate.config.load import FileSource, load
from headgate.config.route_groups import CYCLE, MAX_DEPTH, MAX_ROUTES
from headgate.config.source_reader import SourceReader
from headgate.ir.gateway import Gateway
from headgate.ir.route import Route

HEAD = "gateways: {default: {port: 1}}\n"
Loads = Callable[..., Gateway]
Faults = Callable[..., list[str]]


def routes_of(gateway: Gateway) -> dict[str, Route]:
    return {route.key: route for route in gateway.binds[0].listeners[0].routes}


def group(name: str, *routes: str) -> str:
    return f"- {{name: {name}, routes: [{', '.join(routes)}]}}\n"


def to(*names: str) -> str:
    return f"{{backends: [{', '.join(f'{{routeGroup: {name}}}' for name in names)}]}}"


INHERITING = """
routes:
- name: outer
  hostnames: [a.test]
  matches: [{path: {pathPrefix: /o}}]
  policies:
    timeout: {requestTimeout: 3s}
    urlRewrite: {path: {prefix: /x}}
    authorization: {rules: ['request.method == "GET"']}
    localRateLimit: [{maxTokens: 5, tokensPerFill: 5, fillInterval: 1s}]
  backends:
  - {routeGroup: middle, weight: 2, policies: {requestHeaderModifier: {set: {x-way: middle}}}}
  - {host: "b.test:80", weight: 1}
routeGroups:
- name: middle
  routes:
  - name: plain
    backends: [{host: "c.test:80"}]
  - name: own
    matches: [{path: {pathPrefix: /o/own}}]
    policies:
      timeout: {requestTimeout: 1s}
      authorization: {rules: ['request.path != "/o/own/no"']}
      urlRewrite: {path: {prefix: /y}}
    backends: [{routeGroup: inner}]
- name: inner
  routes:
  - {name: leaf, backends: [{host: "d.test:80", policies: {requestHeaderModifier: {set: {x-way: leaf}}}}]}
"""


def test_routes_of_a_group_inherit_kind_by_kind(loaded: Loads) -> None:
    found = routes_of(loaded(HEAD + INHERITING))
    outer, plain, own, leaf = found.values()
    assert [one.name for one in found.values()] == ["outer", "plain", "own", "leaf"]
    assert outer.parent == ""
    assert plain.parent == own.parent == "default/outer>middle#0"
    assert leaf.parent == f"{own.key}>inner#0"
    assert plain.policies.timeout == outer.policies.timeout
    assert own.policies.timeout != outer.policies.timeout
    assert leaf.policies.timeout == own.policies.timeout
    # One bucket for all that the limit is above of.
    assert leaf.policies.local_rate_limits == plain.policies.local_rate_limits == outer.policies.local_rate_limits
    assert outer.policies.authorization is not None
    assert own.policies.authorization is not None
    assert len(own.policies.authorization.allow) == 2
    assert plain.policies.authorization == outer.policies.authorization
    [middle, _] = outer.backends
    assert middle.weight == 2
    [backend] = plain.backends
    assert backend.policies.request_headers is not None
    assert dict(backend.policies.request_headers.set) == {"x-way": "middle"}
    [backend] = leaf.backends
    assert backend.policies.request_headers is not None
    assert dict(backend.policies.request_headers.set) == {"x-way": "leaf"}


def test_an_inherited_prefix_is_that_of_the_route_which_says_so(loaded: Loads) -> None:
    outer, plain, own, leaf = routes_of(loaded(HEAD + INHERITING)).values()
    levels = [one.policies.rewrite.path.level for one in (outer, plain, own, leaf)]  # type: ignore[union-attr]
    assert levels == [None, 0, None, 1]


def test_the_dump_has_groups_by_the_way_to_them(loaded: Loads) -> None:
    shown = dump(loaded(HEAD + INHERITING), Runtime(generation=1, workers=1))
    [listener] = shown["binds"][0]["listeners"].values()
    assert list(listener["routes"]) == ["default/outer"]
    key = listener["routes"]["default/outer"]["backends"][0]["routeGroup"]
    groups = shown["routes"]["routeGroups"]
    assert [route["name"] for route in groups[key].values()] == ["own", "plain"]
    [own] = [route for route in groups[key].values() if route["name"] == "own"]
    assert [route["name"] for route in groups[own["backends"][0]["routeGroup"]].values()] == ["leaf"]


def test_groups_that_lead_back_are_refused(faults: Faults) -> None:
    text = f"{HEAD}routes: [{to('a')}]\nrouteGroups:\n{group('a', to('b'))}{group('b', to('a'))}"
    [told] = faults(text)
    assert f"routeGroups[1].routes[0].backends[0].routeGroup: {CYCLE}: a > b > a" in told
    [told] = faults(f"{HEAD}routeGroups:\n{group('a', to('a'))}")
    assert f"{CYCLE}: a > a" in told


def test_depth_and_size_are_bounded(loaded: Loads, faults: Faults) -> None:
    def chain(length: int) -> str:
        return "".join(group(f"g{n}", to(f"g{n + 1}")) for n in range(length - 1)) + group(f"g{length - 1}", "{}")

    text = f"{HEAD}routes: [{to('g0')}]\nrouteGroups:\n"
    assert len(routes_of(loaded(text + chain(MAX_DEPTH)))) == MAX_DEPTH + 1
    assert any(f"more than {MAX_DEPTH} groups" in told for told in faults(text + chain(MAX_DEPTH + 1)))
    # Each group leads to the next one ten times.
    wide = "".join(group(f"g{n}", *[to(f"g{n + 1}")] * 10) for n in range(4)) + group("g4", "{}")
    assert any(f"routes, more than {MAX_ROUTES}" in told for told in faults(text + wide))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (group("a", "{}") + group("a", "{}"), "route group 'a' is declared twice"),
        (group("''", "{}"), "a route group needs a name"),
        (group("a", "{backends: [{host: x}]}"), "routeGroups[0].routes[0].backends[0].host"),
        (group("a", "{policies: {ai: {}}, backends: [{host: 'a:1'}]}"), "ai of the route is only for AI backends"),
    ],
)
def test_faults_of_groups_are_told_though_nobody_delegates(text: str, fault: str, faults: Faults) -> None:
    assert any(fault in told for told in faults(f"{HEAD}routeGroups:\n{text}"))


def test_rules_for_tools_that_reach_none_are_refused(faults: Faults) -> None:
    rules = "policies: {mcpAuthorization: {rules: ['true']}}"
    text = f"{HEAD}routes: [{{{rules}, backends: [{{routeGroup: a}}]}}]\nrouteGroups:\n"
    assert any("it leads to none" in told for told in faults(text + group("a", "{backends: [{host: 'a:1'}]}")))


def read(path: Path, text: str) -> None:
    path.write_text(text)


def test_missing_and_unused_groups_are_told(tmp_path: Path) -> None:
    read(tmp_path / "c.yaml", f"{HEAD}routes: [{to('gone')}]\nrouteGroups:\n{group('idle', '{}')}")
    told = load(FileSource(str(tmp_path / "c.yaml"))).warnings
    assert any("routes[0].backends[0].routeGroup: no route group is named 'gone'" in one for one in told)
    assert any("routeGroups (idle): no route delegates to it" in one for one in told)


PLAIN = "- name: p{n}\n  backends: [{{host: 'p{n}.test:80'}}]\n"
SEVERAL = (
    HEAD + "routes:\n" + "".join(PLAIN.format(n=n) for n in range(100))
    + "- name: one\n  backends: [{routeGroup: a}]\n- name: two\n  backends: [{routeGroup: b}]\n"
    "routeGroups:\n- name: a\n  routes:\n  - {name: x, backends: [{routeGroup: c}]}\n"
    "- name: b\n  routes:\n  - {name: y, backends: [{host: 'y.test:80'}]}\n"
    "- name: c\n  routes:\n  - {name: z, backends: [{host: 'z.test:80'}]}\n"
)  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "read_again"),
    [
        ("z.test:80", "zz.test:80", {"one", "x", "z"}),
        ("y.test:80", "yy.test:80", {"two", "y"}),
        ("p3.test:80", "p33.test:80", {"p3"}),
    ],
)
def test_an_edit_in_a_group_reads_what_depends_on_it(
    before: str, after: str, read_again: set[str], tmp_path: Path
) -> None:
    path = tmp_path / "c.yaml"
    read(path, SEVERAL)
    reader = SourceReader(FileSource(str(path)))
    old = routes_of(reader.load({}).gateway)
    read(path, SEVERAL.replace(before, after))
    loaded = reader.load({})
    new = routes_of(loaded.gateway)
    assert reader.whole == 1
    assert {route.name for key, route in new.items() if old.get(key) is not route} == read_again
    whole = load(FileSource(str(path)), environ={})
    assert loaded.gateway == whole.gateway
    assert loaded.gateway.digest == whole.gateway.digest
    assert loaded.warnings == whole.warnings
