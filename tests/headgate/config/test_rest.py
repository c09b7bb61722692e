"""What a text says beside its routes: which routes a change of it concerns."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from headgate.config.context import Context, Notes
from headgate.config.load import TextSource, interpret, opened
from headgate.config.rest import Rest, dependents, rest_of

TEXT = """config: {workerThreads: 1}
gateways: {default: {port: 3000}}
policies:
- name: {name: slow, namespace: default}
  target: {route: {name: a, namespace: default}}
  policy: {timeout: {requestTimeout: 3s}}
backends:
- name: one
  host: one.test:80
- name: two
  host: two.test:80
services:
- {name: s, namespace: n, hostname: s.test, ports: {'80': 8080}}
- {name: t, namespace: n, hostname: t.test, ports: {'80': 8080}}
workloads:
- {uid: w, name: w, namespace: n, workloadIps: [10.0.0.1], services: {n/s.test: {'80': 8080}}}
- {uid: v, name: v, namespace: n, workloadIps: [10.0.0.2], services: {n/s.test: {'80': 8080}, n/t.test: {'80': 8081}}}
routes:
- name: a
  backends: [{backend: one}]
"""
ENVIRON = {"PLACE": "two.test:80"}


class Part(NamedTuple):
    """A route, by default at no listener and without references."""

    full_names: frozenset[str] = frozenset()
    backends: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    notes: Notes | None = None


def named(name: str, **of_it: tuple[str, ...]) -> Part:
    return Part(frozenset((name,)), **of_it)  # type: ignore[arg-type]


def context_of(text: str) -> Context:
    return opened(TextSource(text), ENVIRON)[1]


def rest(text: str) -> Rest:
    return rest_of(interpret(text, context_of(text), ()).standalone)


def test_only_what_is_said_counts_not_where_it_stands_or_how_it_is_written() -> None:
    other = TEXT.replace("backends:\n- name: one\n  host: one.test:80", "# more\n\nbackends:\n- {name: one, host: 'one.test:80'}")
    assert rest(other) == rest(TEXT)
    assert rest(TEXT.replace("two.test:80", "${PLACE}")) != rest(TEXT), "it may be a secret, and is shown in another way"
    assert rest(TEXT.replace("- name: a\n", "- name: b\n")) == rest(TEXT), "a route"


@pytest.mark.parametrize(
    ("change", "concerned"),
    [
        (("one.test", "o.test"), {"one"}),
        (("- name: two", "- name: three"), {"two", "three"}),
        (("requestTimeout: 3s", "requestTimeout: 4s"), {"default/a", "policies[0]"}),
        (("route: {name: a,", "route: {name: b,"), {"default/a", "default/b", "policies[0]"}),
        (("route: {name: a, namespace: default}", "backend: {backend: {name: two, namespace: ''}}"),
         {"default/a", "two", "policies[0]"}),
    ],
)  # fmt: skip
def test_a_change_concerns_those_who_refer_to_it(change: tuple[str, str], concerned: set[str]) -> None:
    text = TEXT.replace(*change)
    if "backend: {backend" in text:
        text = text.replace("{timeout: {requestTimeout: 3s}}", "{requestHeaderModifier: {set: {a: b}}}")
    depends = dependents(rest(TEXT), rest(text), Notes())
    assert depends is not None
    found = {name for name in ("default/a", "default/b", "default/c") if depends(named(name))}
    found |= {name for name in ("one", "two", "three") if depends(named("default/c", backends=(name,)))}
    other = named("default/c")
    found |= {path for path in ("policies[0]", "policies[1]") if depends(other._replace(notes=Notes(used={path})))}
    assert found == concerned
    assert depends(Part()) == any("/" in one for one in concerned), "a route at no listener"


@pytest.mark.parametrize(
    ("change", "concerned"),
    [
        (("10.0.0.1", "10.0.0.3"), {"n/s.test", "s.test"}),
        (("8081", "8082"), {"n/t.test", "t.test"}),
        (("n/s.test: {'80': 8080}, ", ""), {"n/s.test", "s.test"}),
        (("10.0.0.2", "10.0.0.3"), {"n/s.test", "s.test", "n/t.test", "t.test"}),
        (("hostname: t.test", "hostname: u.test"), {"n/t.test", "t.test", "n/u.test", "u.test"}),
        (("hostname: s.test, ports: {'80': 8080}", "hostname: s.test, ports: {'81': 8080}"), {"n/s.test", "s.test"}),
    ],
)  # fmt: skip
def test_a_change_of_a_service_or_of_what_serves_it_concerns_those_who_refer_to_it(
    change: tuple[str, str], concerned: set[str]
) -> None:
    assert change[0] in TEXT
    changed = rest(TEXT.replace(*change))
    depends = dependents(rest(TEXT), changed, Notes())
    assert depends is not None
    names = [f"{space}{name}.test" for name in "stu" for space in ("", "n/")]
    assert {name for name in names if depends(Part(services=(name,)))} == concerned
    assert not depends(named("default/a", backends=("one",)))
    assert dependents(rest(TEXT), changed, Notes(services=concerned)) is None, "a policy refers to it"


def test_services_in_another_order_concern_nobody() -> None:
    first, second = TEXT.split("services:\n")[1].splitlines()[:2]
    depends = dependents(rest(TEXT), rest(TEXT.replace(f"{first}\n{second}", f"{second}\n{first}")), Notes())
    assert depends is not None
    assert not depends(Part(services=("n/s.test", "n/t.test")))


def test_the_order_of_services_of_one_host_name_concerns_those_who_refer_to_it() -> None:
    text = TEXT.replace("namespace: n, hostname: t.test", "namespace: m, hostname: s.test").replace("n/t.test", "m/s.test")
    first, second = text.split("services:\n")[1].splitlines()[:2]
    depends = dependents(rest(text), rest(text.replace(f"{first}\n{second}", f"{second}\n{first}")), Notes())
    assert depends is not None
    assert depends(Part(services=("s.test",)))
    assert not depends(Part(services=("n/s.test", "m/s.test")))


def test_a_backend_that_has_only_moved_concerns_those_with_warnings() -> None:
    moved = TEXT.replace("backends:\n", "backends:\n- name: zero\n  host: zero.test:80\n", 1)
    depends = dependents(rest(TEXT), rest(moved), Notes())
    assert depends is not None
    route = named("default/a", backends=("one",))
    assert not depends(route._replace(notes=Notes()))
    assert depends(route._replace(notes=Notes(warnings=["backends[0]: said"])))


@pytest.mark.parametrize(
    "change",
    [
        ("workerThreads: 1", "workerThreads: 2"),
        ("port: 3000", "port: 3001"),
        ("target: {route: {name: a, namespace: default}}", "target: {gateway: {gatewayName: default, gatewayNamespace: default}}"),
    ],
)  # fmt: skip
def test_other_changes_concern_everything(change: tuple[str, str]) -> None:
    assert dependents(rest(TEXT), rest(TEXT.replace(*change)), Notes()) is None


def test_a_backend_that_a_policy_refers_to_concerns_everything() -> None:
    changed = rest(TEXT.replace("one.test", "o.test"))
    assert dependents(rest(TEXT), changed, Notes(backends={"one"})) is None
    assert dependents(rest(TEXT), changed, Notes(backends={"two"})) is not None


def test_sections_are_compared_one_by_one() -> None:
    before = rest(TEXT)
    assert set(before.sections) == {"config", "gateways"}
    assert dependents(before, replace_section(before), Notes()) is None


def replace_section(before: Rest) -> Rest:
    return before._replace(sections={**before.sections, "llm": b"new"})
