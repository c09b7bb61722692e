"""GatewayPolicies at their targets, and what their statuses say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from manifests import (
    Json,
    gateway,
    gateway_backend,
    gateway_class,
    grpc_route,
    http_route,
    listener,
    made,
    own,
    service,
    to,
)

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.everything import World, everything
from headgate.cluster.translate.fragments import assembled
from headgate.config.load import TextSource, load

MAIN = ObjectKey("edge", "main")
SLOW = {"timeouts": {"request": "3s"}}
ROUTE = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "cart"}
OWNER = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "main"}
CLUSTER = [
    gateway_class(), gateway(listener(), listener("in", 81)), gateway(name="edge/other"), service(),
    http_route("shop/cart", {"name": "buy", "backendRefs": [to()]}, {"backendRefs": [to()]}, hostnames=("cart.test",), labels={"tier": "a"}),
    grpc_route("shop/cart", {"name": "call", "backendRefs": [to()]}, hostnames=("calls.test",)),
    http_route("shop/lost", parent={"name": "main", "namespace": "edge", "sectionName": "none"}),
]  # fmt: skip


def policy(target: Json | None, name: str = "shop/slow", traffic: Json | None = None, created: str = "2026-01-01T00:00:00Z", **spec: Any) -> Json:
    content = ({} if target is None else {"targetRefs": [target]}) | {"traffic": traffic or SLOW} | spec
    return made("GatewayPolicy", name, content, "headgate.dev/v1alpha1", creationTimestamp=created)


def world(*policies: Json) -> World:
    return everything(Snapshot.of([*CLUSTER, *policies]), {})


def placed(found: World, owner: ObjectKey = MAIN) -> list[tuple[str, str, Json]]:
    """Return phase, kinds and target of the policies of a Gateway's file, which the loader takes."""
    file = assembled(found.gateways[owner])
    load(TextSource(json.dumps(file)))
    return [(one["phase"], *one["policy"], one["target"]) for one in file.get("policies", ())]


def ancestors(found: World, name: str = "slow") -> list[tuple[str, dict[str, tuple[str, str]]]]:
    content = next(one.content for one in found.statuses if one.kind.kind == "GatewayPolicy" and one.key.name == name)
    return [
        (one["ancestorRef"]["name"], {each["type"]: (each["status"], each["reason"]) for each in one["conditions"]})
        for one in content["ancestors"]
    ]


FINE = {"Accepted": ("True", "Valid"), "Attached": ("True", "Attached")}
PENDING = ("StatusSummary", {"Attached": ("False", "Pending")})
FILE = {"gatewayName": "default", "gatewayNamespace": "default"}


@pytest.mark.parametrize(
    ("name", "target", "place"),
    [
        ("shop/slow", ROUTE, {"route": {"name": "cart", "namespace": "shop"}}),
        ("shop/slow", {**ROUTE, "sectionName": "buy"}, {"route": {"name": "cart", "namespace": "shop", "ruleName": "buy"}}),
        ("shop/slow", {**ROUTE, "kind": "GRPCRoute"}, {"route": {"name": "grpc/cart", "namespace": "shop"}}),
        (
            "shop/slow", {**ROUTE, "kind": "GRPCRoute", "sectionName": "call"},
            {"route": {"name": "grpc/cart", "namespace": "shop", "ruleName": "call"}},
        ),
        ("edge/slow", OWNER, {"gateway": FILE}),
        ("edge/slow", {**OWNER, "sectionName": "in"}, {"gateway": {**FILE, "listenerName": "in"}}),
    ],
)
def test_a_policy_stands_at_its_target_and_in_no_other_gateway(name: str, target: Json, place: Json) -> None:
    found = world(policy(target, name))
    assert placed(found) == [("route", "timeout", place)]
    assert placed(found, ObjectKey("edge", "other")) == []
    assert ancestors(found) == [("main", FINE)]


@pytest.mark.parametrize(
    ("name", "target", "words"),
    [
        ("shop/slow", {**ROUTE, "name": "gone"}, "HTTPRoute shop/gone not found"),
        ("shop/slow", {**ROUTE, "name": "lost"}, "HTTPRoute shop/lost is not attached to any Gateway"),
        ("edge/slow", ROUTE, "HTTPRoute edge/cart not found"),
        ("shop/slow", {**ROUTE, "sectionName": "none"}, "HTTPRoute shop/cart is not attached to any Gateway"),
        ("shop/slow", None, "its selectors match nothing"),
    ],
)
def test_a_policy_that_is_nowhere_says_so(name: str, target: Json | None, words: str) -> None:
    found = world(policy(target, name))
    assert placed(found) == []
    assert ancestors(found) == [PENDING]
    content = next(one.content for one in found.statuses if one.key.name == "slow")
    assert words in content["ancestors"][0]["conditions"][0]["message"]


def test_targets_are_found_by_label_in_the_policy_s_namespace() -> None:
    selector = {"group": ROUTE["group"], "kind": "HTTPRoute", "matchLabels": {"tier": "a"}}
    assert placed(world(policy(None, targetSelectors=[selector]))) == [("route", "timeout", {"route": {"name": "cart", "namespace": "shop"}})]
    assert placed(world(policy(None, "edge/slow", targetSelectors=[selector]))) == []


def test_before_routing_is_the_phase_of_the_gateway() -> None:
    rules = {"phase": "PreRouting", "authorization": {"policy": {"matchExpressions": ["true"]}}}
    assert placed(world(policy(OWNER, "edge/slow", rules))) == [("gateway", "authorization", {"gateway": FILE})]


def test_of_two_policies_the_older_one_holds_and_the_other_is_told() -> None:
    both = {**SLOW, "delay": {"duration": "'1s'"}}
    found = world(policy(ROUTE, "shop/slow", both, "2026-02-01T00:00:00Z"), policy(ROUTE, "shop/zoo"))
    assert sorted(kind for _, kind, _ in placed(found)) == ["delay", "timeout"]
    assert ancestors(found, "zoo") == [("main", FINE)]
    assert ancestors(found) == [("main", {"Accepted": ("True", "PartiallyValid")})]
    content = next(one.content for one in found.statuses if one.key.name == "slow")
    message = content["ancestors"][0]["conditions"][0]["message"]
    assert message == "timeout of HTTPRoute shop/cart is that of the older policy shop/zoo"


def test_a_policy_of_several_kinds_and_targets_is_one_entry_for_each() -> None:
    both = {**SLOW, "delay": {"duration": "'1s'"}}
    found = world(policy(None, traffic=both, targetRefs=[{**ROUTE, "sectionName": "buy"}, ROUTE]))
    assert sorted(kind for _, kind, _ in placed(found)) == ["delay", "delay", "timeout", "timeout"]


def test_what_a_policy_calls_is_in_the_file_of_its_gateway() -> None:
    asked = {"extAuth": {"backendRef": to("judge"), "grpc": {}}, "extProc": {"backendRef": own("away")}}
    found = everything(Snapshot.of([*CLUSTER, service("shop/judge"), gateway_backend(), policy(ROUTE, traffic=asked)]), {})
    file = assembled(found.gateways[MAIN])
    assert {one["name"] for one in file["services"]} == {"cart", "judge"}
    assert [one["name"] for one in file["backends"]] == ["shop/away"]
    assert sorted(kind for _, kind, _ in placed(found)) == ["extAuthz", "extProc"]
    other = assembled(found.gateways[ObjectKey("edge", "other")])
    assert ("services" in other, "backends" in other) == (False, False)


def test_rules_of_authorization_add_up() -> None:
    rules = {"authorization": {"policy": {"matchExpressions": ["true"]}}}
    found = world(policy(ROUTE, "shop/a", rules), policy(ROUTE, "shop/b", rules))
    assert [kind for _, kind, _ in placed(found)] == ["authorization", "authorization"]
    assert ancestors(found, "b") == [("main", FINE)]


@pytest.mark.parametrize(
    ("spec", "accepted"),
    [
        ({"backend": {"tls": {}}}, ("True", "PartiallyValid")),
        ({"traffic": {"jwtAuthentication": {"providers": [], "mcp": {}}}}, ("True", "PartiallyValid")),
        ({"traffic": {"delay": {"duration": "1 +"}}}, ("False", "Invalid")),
    ],
)
def test_what_is_not_supported_is_told(spec: Json, accepted: tuple[str, str]) -> None:
    assert ancestors(world(policy(ROUTE, **spec))) == [("main", {"Accepted": accepted})]


def test_a_status_has_sixteen_entries_at_most() -> None:
    owners = [gateway(name=f"shop/g{number:02d}") for number in range(20)]
    targets = [{**OWNER, "name": f"g{number:02d}"} for number in range(20)]
    found = everything(Snapshot.of([gateway_class(), *owners, policy(None, targetRefs=targets)]), {})
    entries = ancestors(found)
    assert len(entries) == 16
    assert entries[-1] == ("StatusSummary", {"StatusSummarized": ("True", "StatusSummarized")})
