"""Where GatewayModels are served, and what their statuses say."""

from __future__ import annotations

from typing import Any

import pytest
from manifests import (
    Json,
    gateway,
    gateway_class,
    grant,
    http_route,
    listener,
    listener_set,
    model,
    of_models,
    of_set,
    own,
)

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.everything import World, everything
from headgate.cluster.translate.fragments import assembled
from headgate.cluster.translate.memory import TranslationMemory
from headgate.config.load import TextSource, load
from headgate.document.write import write

FINE = {"Accepted": ("True", "Accepted"), "ResolvedRefs": ("True", "ResolvedRefs")}
MODELS = listener("ai", 8080, **of_models())
ALL = own("*", "GatewayModel")
OF_ROUTE = {"kind": "HTTPRoute", "name": "chat"}


def world(*documents: Json) -> World:
    return everything(Snapshot.of([gateway_class(), *documents]), {})


def file_of(found: World) -> Json:
    tree = assembled(found.gateways[ObjectKey("edge", "main")])
    assert load(TextSource(write(tree)), environ={}) is not None
    return tree


def served(found: World) -> dict[str, list[str]]:
    """Return the public names of each backend of models."""
    backends = file_of(found).get("backends", ())
    return {one["name"]: [each["name"] for each in one["llm"]["models"] if "visibility" not in each] for one in backends}


def said(found: World, name: str = "gpt") -> list[dict[str, tuple[str, str]]]:
    statuses = [one.content for one in found.statuses if one.kind.kind == "GatewayModel" and one.key.name == name]
    return [
        {one["type"]: (one["status"], one["reason"]) for one in parent["conditions"]}
        for content in statuses
        for parent in content["parents"]
    ]


def attached(found: World, name: str = "ai") -> int:
    (status,) = (one.content for one in found.statuses if one.kind.kind == "Gateway")
    return int(next(one["attachedRoutes"] for one in status["listeners"] if one["name"] == name))


def test_a_listener_that_asks_for_models_has_the_paths_of_llm_apis() -> None:
    found = world(gateway(MODELS, listener()), model())
    (bind,) = (one for one in file_of(found)["binds"] if one["port"] == 8080)
    (route,) = bind["listeners"][0]["routes"]
    assert (route["name"], route["namespace"], route["backends"]) == ("models/ai", "edge", [{"backend": "models/edge/main/ai"}])
    assert {"path": {"pathPrefix": "/v1"}} in route["matches"]
    assert {"path": {"exact": "/chat/completions"}} in route["matches"]
    assert served(found) == {"models/edge/main/ai": ["gpt"]}
    assert (said(found), attached(found), attached(found, "web")) == ([FINE], 1, 0)


def test_supported_kinds_have_models_only_where_they_are_asked_for() -> None:
    found = world(gateway(MODELS, listener("web", 80, **of_models("HTTPRoute")), listener("plain", 81)))
    (status,) = (one.content for one in found.statuses if one.kind.kind == "Gateway")
    kinds = {one["name"]: [each["kind"] for each in one["supportedKinds"]] for one in status["listeners"]}
    assert kinds == {"ai": ["GatewayModel"], "web": ["GatewayModel", "HTTPRoute"], "plain": ["HTTPRoute", "GRPCRoute"]}


@pytest.mark.parametrize(
    ("documents", "reason"),
    [
        ([gateway(), model()], "NotAllowedByListeners"),
        ([gateway(MODELS), model("shop/gpt", {"name": "main", "namespace": "edge", "sectionName": "x"})], "NoMatchingParent"),
        (
            [gateway(listener("ai", **of_models(namespaces={"from": "Same"}))), model()],
            "NotAllowedByListeners",
        ),
    ],
)
def test_why_a_model_is_not_attached(documents: list[Json], reason: str) -> None:
    found = world(*documents)
    assert said(found) == [FINE | {"Accepted": ("False", reason)}]
    assert served(found) == {}


def test_of_two_models_of_one_name_the_older_is_served() -> None:
    older = model("shop/b", match={"model": "gpt"}, model="old") | {}
    newer = model("shop/a", match={"model": "gpt"}, model="new")
    newer["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
    inner = model("shop/c", match={"model": "gpt"}, visibility="Internal")
    found = world(gateway(MODELS), newer, older, inner)
    assert (said(found, "b"), said(found, "a")) == ([FINE], [FINE | {"Accepted": ("False", "Conflicted")}])
    assert said(found, "c") == [FINE]
    (backend,) = file_of(found)["backends"]
    assert [one["params"]["model"] for one in backend["llm"]["models"]] == ["old"]
    assert attached(found) == 2


def test_listeners_with_the_same_models_have_one_backend() -> None:
    other, third = listener("more", 8081, **of_models()), listener("own", 8082, **of_models())
    section = {"name": "main", "namespace": "edge", "sectionName": "own"}
    found = world(gateway(MODELS, other, third), model("shop/a", {**section, "sectionName": "ai"}, {**section, "sectionName": "more"}),
                  model("shop/b", section))  # fmt: skip
    assert served(found) == {"models/edge/main/ai": ["a"], "models/edge/main/own": ["b"]}
    backends = [one["listeners"][0]["routes"][0]["backends"][0]["backend"] for one in file_of(found)["binds"]]
    assert backends == ["models/edge/main/ai", "models/edge/main/ai", "models/edge/main/own"]


def test_a_model_is_counted_once_at_a_listener() -> None:
    whole = {"name": "main", "namespace": "edge"}
    found = world(gateway(MODELS), model("shop/gpt", whole, whole | {"sectionName": "ai"}))
    assert attached(found) == 1
    assert served(found) == {"models/edge/main/ai": ["gpt"]}


def test_a_listener_of_a_set() -> None:
    more = listener_set("shop/more", listener("ai", 8080, **of_models()))
    found = world(gateway(listener(), sets="All"), more, model("shop/gpt", of_set()))
    assert served(found) == {"models/edge/main/shop/more/ai": ["gpt"]}
    assert said(found) == [FINE]


def test_a_rule_of_a_route_has_models_of_its_own() -> None:
    rule = {"matches": [{"path": {"value": "/team"}}], "backendRefs": [ALL]}
    found = world(gateway(), http_route("shop/chat", rule), model("shop/gpt", OF_ROUTE))
    (route,) = file_of(found)["binds"][0]["listeners"][0]["routes"]
    assert (route["name"], route["backends"]) == ("chat", [{"weight": 1, "backend": "models/route/shop/chat/"}])
    assert served(found) == {"models/route/shop/chat/": ["gpt"]}
    assert said(found) == [FINE]


def test_rules_by_their_names() -> None:
    rules = [{"name": name, "matches": [{"path": {"value": f"/{name}"}}], "backendRefs": [ALL]} for name in ("a", "b")]
    found = world(gateway(), http_route("shop/chat", *rules), model("shop/one", OF_ROUTE | {"sectionName": "a"}), model("shop/none", OF_ROUTE))
    assert served(found) == {"models/route/shop/chat/a": ["one"], "models/route/shop/chat/b": []}
    assert said(found, "none") == [FINE | {"Accepted": ("False", "NoMatchingParent")}]


@pytest.mark.parametrize(
    "rule",
    [
        {"backendRefs": [ALL, ALL]},
        {"backendRefs": [own("gpt", "GatewayModel")]},
        {"matches": [{"path": {"type": "Exact", "value": "/x"}}], "backendRefs": [ALL]},
    ],
)
def test_a_rule_that_can_have_no_models(rule: Json) -> None:
    found = world(gateway(), http_route("shop/chat", rule), model("shop/gpt", OF_ROUTE))
    assert said(found) == [FINE | {"Accepted": ("False", "NoMatchingParent")}]
    (route,) = (one.content for one in found.statuses if one.kind.kind == "HTTPRoute")
    assert {one["type"]: one["reason"] for one in route["parents"][0]["conditions"]}["ResolvedRefs"] == "UnsupportedValue"
    assert served(found) == {}


def test_a_route_of_another_namespace_must_permit_it() -> None:
    route = http_route("team/chat", {"backendRefs": [ALL]})
    reference = OF_ROUTE | {"namespace": "team"}
    origin = {"group": "headgate.dev", "kind": "GatewayModel", "namespace": "shop"}
    leave = grant("team/models", origin, {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute"})
    assert said(world(gateway(), route, model("shop/gpt", reference))) == [FINE | {"Accepted": ("False", "RefNotPermitted")}]
    assert said(world(gateway(), route, leave, model("shop/gpt", reference))) == [FINE]


def test_a_model_with_several_parents_has_an_entry_for_each() -> None:
    found = world(gateway(MODELS, listener()), http_route("shop/chat", {"backendRefs": [ALL]}),
                  model("shop/gpt", {"name": "main", "namespace": "edge"}, OF_ROUTE, {"name": "other"}))  # fmt: skip
    (status,) = (one.content for one in found.statuses if one.kind.kind == "GatewayModel")
    assert [one["parentRef"].get("kind", "Gateway") for one in status["parents"]] == ["Gateway", "HTTPRoute"]


def test_faults_are_told_at_every_parent() -> None:
    broken: dict[str, Any] = {"policies": {"auth": {"secretRef": {"name": "gone"}}}}
    best = model("shop/best", virtualModel={"weighted": {"targets": [{"modelRef": "away"}]}})
    found = world(gateway(MODELS), model(**broken), best)
    assert said(found) == [FINE | {"Accepted": ("False", "UnsupportedValue")}]
    assert said(found, "best") == [FINE | {"ResolvedRefs": ("False", "BackendNotFound")}]


def test_a_changed_model_is_translated_again() -> None:
    documents = [gateway_class(), gateway(MODELS), model(), model("shop/best", virtualModel={"weighted": {"targets": [{"modelRef": "gpt"}]}})]
    memory = TranslationMemory()
    for name in ("first", "second"):
        documents[2] = model(model=name)
        snapshot = Snapshot.of(documents)
        found = memory.translate(snapshot, {})
        assert found.gateways == everything(snapshot, {}).gateways
        assert served(found) == {"models/edge/main/ai": ["gpt"]}
