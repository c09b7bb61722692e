"""What kinds of routes have in common."""

from __future__ import annotations

import pytest
from manifests import Json, gateway_backend, http_route, listener, own, service, to

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.http_routes import http_route as http_translated
from headgate.cluster.translate.listeners import ListenerState
from headgate.cluster.translate.parents import Attachment
from headgate.cluster.translate.routes import ANY, RouteDialect, RouteResult, entries, translated


def match(value: Json) -> Json:
    if value.get("bad"):
        raise ValueError("bad")
    return {"seen": value}


DIALECT = RouteDialect("x.", lambda name: f"x/{name}", match, lambda rule: {"timeout": rule["slow"]} if "slow" in rule else {}, {"status": 418}, grpc=True)
SNAPSHOT = Snapshot.of([service("shop/plain"), service("shop/told", {"port": 8080, "appProtocol": "http"})])


def result(*rules: Json, listeners: tuple[str, ...] = ("web",)) -> RouteResult:
    attached = [Attachment(ListenerState(listener(name)), ()) for name in listeners]
    return translated(SNAPSHOT, http_route("shop/a", *rules), DIALECT, attached, {name: f"listener/{name}" for name in listeners})


def test_what_a_dialect_says_is_in_each_route() -> None:
    found = result({"matches": [{"a": 1}], "slow": "3s", "backendRefs": [to("plain"), to("told")]}, listeners=("web", "tls"))
    assert [(one.key, one.parent) for one in found.fragments] == [("route/shop/a.00.x.web", "listener/web"), ("route/shop/a.00.x.tls", "listener/tls")]
    value = found.fragments[0].value
    assert (value["name"], value["matches"], value["policies"]) == ("x/a", [{"seen": {"a": 1}}], {"timeout": "3s"})
    assert [one.get("policies") for one in value["backends"]] == [{"http": {"version": "HTTP/2"}}, None]
    (bare,) = result({}).fragments
    assert (bare.value["matches"], bare.value["policies"]) == ([ANY], {"directResponse": {"status": 418}})


def test_a_match_that_cannot_be_said_takes_its_rule_away() -> None:
    found = result({"matches": [{"a": 1}, {"bad": 1}]}, {})
    assert [one.key for one in found.fragments] == ["route/shop/a.01.x.web"]
    assert [(one.reason, one.message) for one in found.invalid[0]] == [("UnsupportedValue", "a match is bad")]


def test_of_several_entries_of_one_name_the_first_counts() -> None:
    said = {"headers": [{"name": "A", "value": "1"}, {"name": "a", "value": "2"}, {"name": "b", "type": "RegularExpression", "value": "x+"}]}
    second = {"name": "b", "value": {"regex": "x+"}}
    assert entries(said, "headers", folded=True) == [{"name": "A", "value": {"exact": "1"}}, second]
    assert entries(said, "headers", folded=False) == [{"name": "A", "value": {"exact": "1"}}, {"name": "a", "value": {"exact": "2"}}, second]
    with pytest.raises(ValueError, match="not a regular expression"):
        entries({"headers": [{"name": "b", "type": "RegularExpression", "value": "("}]}, "headers", folded=True)


def test_a_rule_whose_parts_do_not_go_together_leaves_the_others() -> None:
    rewrite = {"type": "URLRewrite", "urlRewrite": {"hostname": "x.test"}}
    mirror = {"type": "RequestMirror", "requestMirror": {"backendRef": own("model")}}
    snapshot = Snapshot.of([service("shop/plain"), gateway_backend("shop/model", ai={"provider": {"openai": {}}}), gateway_backend()])
    rules = [
        {"backendRefs": [own("model", filters=[rewrite])]}, {"backendRefs": [to("plain")], "filters": [mirror]},
        {"backendRefs": [own("model")]}, {"backendRefs": [own("away")], "filters": [{"type": "RequestMirror", "requestMirror": {"backendRef": own("away")}}]},
    ]  # fmt: skip
    found = http_translated(snapshot, http_route("shop/a", *rules), [Attachment(ListenerState(listener()), ())], {"web": "listener/web"})
    assert {index: [one.reason for one in refusals] for index, refusals in found.invalid.items()} == {1: ["UnsupportedValue"]}
    assert "cannot be used in mirror" in found.invalid[1][0].message
    assert [one.key for one in found.fragments] == ["route/shop/a.00.web", "route/shop/a.02.web", "route/shop/a.03.web"]
    assert set(found.backends) == {ObjectKey("shop", "model"), ObjectKey("shop", "away")}
