"""GatewayPolicies at their targets, and what their statuses say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from certificates_rig import secret
from manifests import (
    Json,
    gateway,
    gateway_backend,
    gateway_class,
    grpc_route,
    http_route,
    listener,
    listener_set,
    made,
    own,
    service,
    to,
)

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.everything import World, everything
from headgate.cluster.translate.fragments import assembled
from headgate.config.load import TextSource, load
from headgate.document.write import write
from headgate.ir.backend import DynamicBackend

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
        ({"backend": {"auth": {"secretRef": {"name": "gone"}}}}, ("True", "PartiallyValid")),
        ({"traffic": {"jwtAuthentication": {"providers": [{"issuer": "i", "jwks": {"inline": "{}"}}]}}}, ("True", "PartiallyValid")),
        ({"traffic": {"delay": {"duration": "1 +"}}}, ("False", "Invalid")),
    ],
)
def test_what_is_not_supported_is_told(spec: Json, accepted: tuple[str, str]) -> None:
    assert ancestors(world(policy(ROUTE, **spec))) == [("main", {"Accepted": accepted})]


MCP_KEYS = {"issuer": "https://i.test", "jwks": {"url": "https://i.test/keys"}}


def test_authentication_of_mcp_clients_is_one_of_routes() -> None:
    found = world(policy(ROUTE, backend={"mcp": {"authentication": MCP_KEYS}}))
    assert ("route", "mcpAuthentication") in [(phase, kind) for phase, kind, _ in placed(found)]
    assert ancestors(found) == [("main", FINE)]


def test_metadata_of_a_route_is_not_served_before_it_is_known() -> None:
    given = {"phase": "PreRouting", "jwtAuthentication": {"providers": [{"issuer": "https://i.test", "jwks": {"remote": MCP_KEYS["jwks"]}}], "mcp": {}}}
    found = world(policy(OWNER, "edge/slow", given))
    assert [(phase, kind) for phase, kind, _ in placed(found)] == [("gateway", "authorization")]
    assert ancestors(found) == [("main", {"Accepted": ("True", "PartiallyValid")})]


def test_policies_of_one_namespace_may_be_about_objects_of_all() -> None:
    by_label = {name: value for name, value in ROUTE.items() if name != "name"} | {"matchLabels": {"x": "y"}}
    given = [policy(ROUTE, "ops/named"), policy(None, "ops/chosen", {"delay": {"duration": "1ms"}}, targetSelectors=[by_label])]
    other = http_route("store/cart", {"backendRefs": [to()]}, hostnames=("store.test",), labels={"x": "y"})
    snapshot = Snapshot.of([*CLUSTER, other, *given])
    assert ancestors(everything(snapshot, {}), "named")[0][0] == "StatusSummary"
    found = everything(snapshot, {}, None, "ops")
    routes = {(kind, target["route"]["namespace"]) for _, kind, target in placed(found)}
    assert routes == {("timeout", "shop"), ("timeout", "store"), ("delay", "store")}
    assert ancestors(found, "named") == ancestors(found, "chosen") == [("main", FINE)]


def test_a_policy_may_hold_against_more_specific_ones() -> None:
    found = world(policy(OWNER, "edge/slow", strategy={"inheritance": "Override"}), policy(ROUTE, "shop/own"))
    file = assembled(found.gateways[MAIN])
    assert [(one["name"]["namespace"], one.get("inheritance")) for one in file["policies"]] == [("edge", "override"), ("shop", None)]
    assert ancestors(found) == [("main", FINE)]


def test_a_status_has_sixteen_entries_at_most() -> None:
    owners = [gateway(name=f"shop/g{number:02d}") for number in range(20)]
    targets = [{**OWNER, "name": f"g{number:02d}"} for number in range(20)]
    found = everything(Snapshot.of([gateway_class(), *owners, policy(None, targetRefs=targets)]), {})
    entries = ancestors(found)
    assert len(entries) == 16
    assert entries[-1] == ("StatusSummary", {"StatusSummarized": ("True", "StatusSummarized")})


SLOW_CALLS = {"http": {"requestTimeout": "3s"}}
PARTS = [
    gateway_class(), gateway(listener()), service(),
    gateway_backend("shop/away"), *(gateway_backend(f"shop/{name}", **spec) for name, spec in {
        "models": {"ai": {"groups": [{"providers": [{"name": "a", "openai": {}}, {"name": "b", "openai": {}}]}]}},
        "tools": {"mcp": {"targets": [{"name": "t", "static": {"host": "mcp.test", "port": 80}}]}},
    }.items()),
    http_route("shop/cart", {"name": "buy", "backendRefs": [to()]}, {"matches": [{"path": {"value": "/a"}}], "backendRefs": [own("away")]},
               {"matches": [{"path": {"value": "/m"}}], "backendRefs": [own("models")]},
               {"matches": [{"path": {"value": "/t"}}], "backendRefs": [own("tools")]}),
]  # fmt: skip


def calls(target: Json, name: str = "shop/slow", *others: Json, **spec: Any) -> World:
    """Return the translation of one policy of calls, with traffic only if it is given."""
    content = made("GatewayPolicy", name, {"targetRefs": [target], **spec}, "headgate.dev/v1alpha1", creationTimestamp="2026-01-01T00:00:00Z")
    return everything(Snapshot.of([*PARTS, content, *others]), {})


SERVICE = {"group": "", "kind": "Service", "name": "cart"}
BACKEND = {"group": "headgate.dev", "kind": "GatewayBackend", "name": "away"}


@pytest.mark.parametrize(
    ("name", "target", "place"),
    [
        ("shop/slow", ROUTE, {"route": {"name": "cart", "namespace": "shop"}}),
        ("shop/slow", {**ROUTE, "sectionName": "buy"}, {"route": {"name": "cart", "namespace": "shop", "ruleName": "buy"}}),
        ("edge/slow", OWNER, {"gateway": FILE}),
        ("edge/slow", {**OWNER, "sectionName": "web"}, {"gateway": {**FILE, "listenerName": "web"}}),
        ("shop/slow", SERVICE, {"backend": {"service": {"hostname": "cart.shop.svc.cluster.local", "namespace": "shop"}}}),
        (
            "shop/slow", {**SERVICE, "sectionName": "8080"},
            {"backend": {"service": {"hostname": "cart.shop.svc.cluster.local", "namespace": "shop", "port": 8080}}},
        ),
        ("shop/slow", BACKEND, {"backend": {"backend": {"name": "shop/away", "namespace": ""}}}),
        (
            "shop/slow", {**BACKEND, "name": "models", "sectionName": "b"},
            {"backend": {"backend": {"name": "shop/models", "namespace": "", "section": "b"}}},
        ),
        (
            "shop/slow", {**BACKEND, "name": "tools", "sectionName": "t"},
            {"backend": {"backend": {"name": "shop/tools", "namespace": "", "section": "t"}}},
        ),
    ],
)
def test_policies_of_calls_stand_at_their_targets(name: str, target: Json, place: Json) -> None:
    found = calls(target, name, backend=SLOW_CALLS)
    assert placed(found) == [("backend", "http", place)]
    assert ancestors(found) == [("main", FINE)]


@pytest.mark.parametrize(
    "target",
    [
        {**SERVICE, "sectionName": "81"}, {**SERVICE, "name": "gone"}, {**BACKEND, "sectionName": "x"},
        {**BACKEND, "name": "models", "sectionName": "c"}, {**BACKEND, "name": "gone"},
    ],
)  # fmt: skip
def test_calls_that_nothing_makes_have_no_policy(target: Json) -> None:
    found = calls(target, backend=SLOW_CALLS)
    assert placed(found) == []
    assert ancestors(found) == [PENDING]


def test_ai_is_another_name_of_backend_ai() -> None:
    target = {**BACKEND, "name": "models"}
    said = {"defaults": [{"field": "temperature", "value": 0}]}
    assert placed(calls(target, ai=said)) == placed(calls(target, backend={"ai": said}))
    assert [kind for _, kind, _ in placed(calls(target, ai=said))] == ["ai"]


@pytest.mark.parametrize(
    ("target", "section", "kinds", "words"),
    [
        (BACKEND, {"mcp": {"authorization": {"policy": {"matchExpressions": ["true"]}}}}, ["authorization"], "is for mcp backends"),
        (BACKEND, {"ai": {"defaults": [{"field": "a", "value": 1}]}}, [], "ai is for ai backends"),
        ({**BACKEND, "name": "tools"}, {"health": {"eviction": {"duration": "1s"}}}, [], "health is not for MCP servers"),
        (SERVICE, {"extAuth": {"backendRef": to("gone"), "grpc": {}}}, ["authorization"], "Service shop/gone not found"),
        (SERVICE, {"health": {"unhealthyCondition": "1 +"}}, [], "the expression ends too early"),
    ],
)
def test_calls_that_are_not_protected_are_not_made(target: Json, section: Json, kinds: list[str], words: str) -> None:
    found = calls(target, backend=section)
    assert [kind for _, kind, _ in placed(found)] == kinds
    content = next(one.content for one in found.statuses if one.key.name == "slow")
    assert words in content["ancestors"][0]["conditions"][0]["message"]


def test_what_policies_call_has_policies_too() -> None:
    asks = policy(ROUTE, "shop/asks", {"extAuth": {"backendRef": to("judge"), "grpc": {}}})
    found = calls({**SERVICE, "name": "judge"}, "shop/slow", asks, service("shop/judge"), backend={"tls": {}})
    assert sorted(kind for _, kind, _ in placed(found)) == ["backendTLS", "extAuthz"]
    assert ancestors(found) == [("main", FINE)]


def test_a_listener_set_is_all_of_its_listeners() -> None:
    sets = listener_set("edge/more", listener("a", 81), listener("b", 82))
    allowing = gateway(listener(), sets="Same")
    target = {"group": ROUTE["group"], "kind": "ListenerSet", "name": "more"}
    one = policy({**target, "sectionName": "b"}, "edge/one", {"timeouts": {"request": "1s"}})
    found = everything(Snapshot.of([*CLUSTER[2:], gateway_class(), allowing, sets, policy(target, "edge/all"), one]), {})
    names = [place["gateway"]["listenerName"] for _, _, place in placed(found)]
    assert names == ["edge/more/a", "edge/more/b", "edge/more/b"]
    last = assembled(found.gateways[MAIN])["policies"][-1]
    assert last["policy"] == {"timeout": {"requestTimeout": "1s"}}, "the section is the stronger one"


def test_traffic_of_a_pool_is_that_of_calls_to_it() -> None:
    picker = {"name": "picker", "port": {"number": 9002}}
    spec = {"selector": {"matchLabels": {"app": "x"}}, "targetPorts": [{"number": 8000}], "endpointPickerRef": picker}
    pool = made("InferencePool", "shop/pool", spec, "inference.networking.k8s.io/v1")
    target = {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "pool"}
    route = http_route("shop/pool", {"backendRefs": [target]})
    traffic = {**SLOW, "delay": {"duration": "'1s'"}, "csrf": {}}
    objects = [gateway_class(), gateway(), service("shop/picker", {"port": 9002}), pool, route]
    found = everything(Snapshot.of([*objects, policy(target, traffic=traffic)]), {})
    file = assembled(found.gateways[MAIN])
    load(TextSource(json.dumps(file)))
    entries = [(one["phase"], one["policy"]) for one in file["policies"] if one["name"]["name"].startswith("slow")]
    closed = {"authorization": {"rules": [{"deny": "true"}]}}
    assert entries == [("backend", closed), ("backend", {"http": {"requestTimeout": "3s"}})]
    content = next(one.content for one in found.statuses if one.key.name == "slow")
    assert "delay is not for an InferencePool; csrf is not for an InferencePool" in str(content)


DYNAMIC = {"group": "headgate.dev", "kind": "GatewayBackend", "name": "any"}


def dynamic(said: Json, **backend: Any) -> World:
    route = http_route("shop/any", {"backendRefs": [own("any")]}, hostnames=("any.test",))
    calls = made("GatewayPolicy", "shop/calls", {"targetRefs": [DYNAMIC], "backend": backend}, "headgate.dev/v1alpha1")
    return world(gateway_backend("shop/any", dynamicForwardProxy=said), route, calls)


def test_policies_of_a_dynamic_forward_proxy() -> None:
    found = dynamic({"allowedHosts": ["a.test"]}, http={"version": "HTTP2"}, auth={"key": "k"})
    target = {"backend": {"backend": {"name": "shop/any", "namespace": ""}}}
    assert placed(found) == [("backend", "backendAuth", target), ("backend", "http", target)]
    assert ancestors(found, "calls") == [("main", {"Accepted": ("True", "Valid"), "Attached": ("True", "Attached")})]


def test_what_proves_who_we_are_is_not_for_any_place() -> None:
    found = dynamic({"allowedPorts": [443]}, http={"version": "HTTP2"}, auth={"key": "k"}, health={"eviction": {"duration": "3s"}})
    assert [one[1] for one in placed(found)] == ["http"]
    assert ancestors(found, "calls") == [("main", {"Accepted": ("True", "PartiallyValid")})]


GONE = {"Accepted": ("True", "PartiallyValid")}


@pytest.mark.parametrize(
    ("target", "said", "status"),
    [
        (OWNER, {}, GONE),
        (OWNER, {"allowedHosts": ["a.test"]}, FINE),
        ({**OWNER, "sectionName": "web"}, {}, GONE),
        ({**OWNER, "port": 80}, {}, GONE),
        ({**OWNER, "sectionName": "in"}, {}, FINE),
        ({**OWNER, "port": 81}, {}, FINE),
        ({**ROUTE, "name": "any"}, {}, GONE),
        ({**ROUTE, "name": "any", "sectionName": "buy"}, {}, GONE),
        (ROUTE, {}, FINE),
    ],
)
def test_a_tunnel_tells_which_dynamic_backends_it_takes_away(target: Json, said: Json, status: Json) -> None:
    """A data plane refuses a dynamicForwardProxy without allowedHosts behind a tunnel, so the policy says so."""
    space = "edge" if target["kind"] == "Gateway" else "shop"
    spec = {"targetRefs": [target], "backend": {"tunnel": {"url": "http://proxy.test:3128"}}}
    found = world(
        gateway_backend("shop/any", dynamicForwardProxy=said),
        http_route("shop/any", {"name": "buy", "backendRefs": [own("any")]}, hostnames=("any.test",), parent={"name": "main", "namespace": "edge", "sectionName": "web"}),
        made("GatewayPolicy", f"{space}/calls", spec, "headgate.dev/v1alpha1"),
    )  # fmt: skip
    assert ancestors(found, "calls") == [("main", status)]
    [content] = [one.content for one in found.statuses if one.key.name == "calls"]
    told = content["ancestors"][0]["conditions"][0]["message"]
    assert ("GatewayBackend shop/any is refused" in told) == (status is GONE), told


@pytest.mark.parametrize(("section", "status"), [("web", GONE), ("in", FINE)])
def test_a_tunnel_of_a_listener_does_not_concern_what_another_one_leads_to(section: str, status: Json) -> None:
    """The backend is called two routes below a listener."""
    child = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute"}
    lower = http_route("shop/lower", {"backendRefs": [own("any")]})
    middle = http_route("shop/middle", {"backendRefs": [{**child, "name": "lower"}]})
    for one in (lower, middle):
        del one["spec"]["parentRefs"]
    spec = {"targetRefs": [{**OWNER, "sectionName": section}], "backend": {"tunnel": {"url": "http://proxy.test:3128"}}}
    found = world(
        gateway_backend("shop/any", dynamicForwardProxy={}), lower, middle,
        http_route("shop/top", {"backendRefs": [{**child, "name": "middle"}]}, hostnames=("any.test",), parent={"name": "main", "namespace": "edge", "sectionName": "web"}),
        made("GatewayPolicy", "edge/calls", spec, "headgate.dev/v1alpha1"),
    )  # fmt: skip
    assert ancestors(found, "calls") == [("main", status)]


@pytest.mark.parametrize("target", [OWNER, {**ROUTE, "name": "any"}], ids=["gateway", "route"])
def test_what_all_backends_have_does_not_take_a_dynamic_one_away(target: Json) -> None:
    """A client certificate, a key and health checks beside a dynamicForwardProxy without allowedHosts."""
    space = "edge" if target is OWNER else "shop"
    spec = {"targetRefs": [target], "backend": {"tls": {"mtlsCertificateRef": [{"name": "tls"}]}, "auth": {"key": "k"}, "health": {"eviction": {}}}}
    found = world(
        gateway_backend("shop/any", dynamicForwardProxy={"allowedPorts": [443]}), http_route("shop/any", {"backendRefs": [own("any")]}, hostnames=("any.test",)),
        secret(f"{space}/tls"), made("GatewayPolicy", f"{space}/calls", spec, "headgate.dev/v1alpha1"),
    )  # fmt: skip
    assert ancestors(found, "calls") == [("main", {"Accepted": ("True", "Valid"), "Attached": ("True", "Attached")})]
    routes = load(TextSource(write(assembled(found.gateways[MAIN]))), environ={}).gateway.binds[0].listeners[0].routes
    [dynamic] = [one.backends[0] for one in routes if one.name == "any"]
    assert isinstance(dynamic.backend, DynamicBackend)
    assert dynamic.backend.endpoint.tls is not None
    assert (dynamic.backend.endpoint.tls.client, dynamic.policies.auth, dynamic.policies.health) == (None, None, None)
    others = [one.backends[0] for one in routes if one.name != "any"]
    assert all((one.policies.health is not None) == (target is OWNER) for one in others)
