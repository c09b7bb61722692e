"""What is in force, from the statuses that the translator makes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from manifests import Json, gateway, gateway_backend, gateway_class, http_route, listener, made, own, service, to

from headgate.cluster import inventory
from headgate.cluster.api import ApiRefused, ApiServer
from headgate.cluster.snapshot import ObjectKey, Snapshot, key_of, kind_of
from headgate.cluster.translate.everything import everything
from headgate.cluster.translate.gateway import Acknowledged

KEY = ObjectKey("edge", "main")
TARGET = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "cart"}
LIMIT = {"rateLimit": {"local": [{"requests": 5, "unit": "Minutes"}]}}


def policy(name: str, age: int, **spec: Any) -> Json:
    found = made("GatewayPolicy", name, {"targetRefs": [TARGET], **spec}, "headgate.dev/v1alpha1")
    found["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:{age:02d}Z"
    return found


DOCUMENTS = [
    gateway_class(), gateway(listener("web"), listener("again", 80, "HTTPS", tls={"certificateRefs": [{"name": "tls"}]})),
    http_route("shop/cart", {"backendRefs": [own("away")]}), http_route("shop/gone", {"backendRefs": [to("gone")]}),
    http_route("shop/lost", parent={"name": "nobody", "namespace": "edge"}), service("shop/cart"),
    gateway_backend("shop/away", static={"host": "a.test", "port": 80}),
    gateway_backend("shop/bad", static={"host": "a.test", "port": 80}, policies={"auth": {"secretRef": {"name": "gone"}}}),
    policy("shop/first", 1, traffic=LIMIT), policy("shop/second", 2, traffic=LIMIT),
    {**policy("shop/nowhere", 3, traffic=LIMIT), "spec": {"targetRefs": [{**TARGET, "name": "nothing"}], "traffic": LIMIT}},
]  # fmt: skip


def judged(acknowledged: int = 1, rejection: str = "") -> dict[str, list[Json]]:
    """Return the objects by kind, each with the status that the translator makes of it."""
    documents = copy.deepcopy(DOCUMENTS)
    world = everything(Snapshot.of(documents), {KEY: Acknowledged(acknowledged, rejection)})
    told = {(one.kind, one.key): one.content for one in world.statuses}
    found: dict[str, list[Json]] = {}
    for one in documents:
        status = told.get((kind_of(one), key_of(one)))
        found.setdefault(one["kind"], []).append(one | ({"status": status} if status else {}))
    return found


def test_a_gateway_is_in_force_with_the_generation_that_its_data_planes_have_taken() -> None:
    (row,) = inventory.gateway_rows(judged()["Gateway"])
    assert (row["namespace"], row["name"], row["class"]) == ("edge", "main", "headgate")
    assert (row["generation"], row["acknowledged"], row["inForce"]) == (1, 1, "partly")
    web, again = row["listeners"]
    assert (web["name"], web["port"], web["routes"], web["inForce"], web["why"]) == ("web", 80, 2, "yes", "")
    assert again["inForce"] == "no"
    assert again["why"].startswith("conflict: port 80 has protocol HTTP already")


@pytest.mark.parametrize(
    ("acknowledged", "rejection", "why"),
    [(0, "", "Pending: no data plane has acknowledged generation 1 yet"), (1, "port 80 is taken", "port 80 is taken")],
)
def test_what_data_planes_have_not_taken_is_not_in_force(acknowledged: int, rejection: str, why: str) -> None:
    found = judged(acknowledged, rejection)
    (row,) = inventory.gateway_rows(found["Gateway"])
    assert (row["acknowledged"], row["inForce"]) == (None, "no")
    assert why in row["why"]
    cart = next(iter(inventory.route_rows(found["HTTPRoute"], found["Gateway"])))
    assert cart["inForce"] == "no"
    assert cart["why"].startswith("Gateway edge/main: ")


def test_routes_say_at_which_parent_and_why_not() -> None:
    found = judged()
    rows = {one["name"]: one for one in inventory.route_rows(found["HTTPRoute"], found["Gateway"])}
    assert (rows["cart"]["parent"], rows["cart"]["inForce"], rows["cart"]["why"]) == ("Gateway edge/main", "yes", "")
    assert (rows["gone"]["inForce"], rows["gone"]["why"]) == ("partly", "BackendNotFound: Service shop/gone not found")
    assert (rows["lost"]["inForce"], rows["lost"]["why"]) == ("no", "no controller has said anything about it")


def test_a_status_about_an_older_generation_says_nothing_of_this_one() -> None:
    found = judged()
    found["HTTPRoute"][0]["metadata"]["generation"] = 7
    row = next(iter(inventory.route_rows(found["HTTPRoute"], found["Gateway"])))
    assert (row["inForce"], row["why"]) == ("no", "the controller has seen generation 1, not yet 7")


def test_backends_say_who_leads_to_them() -> None:
    found = judged()
    away, bad = inventory.backend_rows(found["GatewayBackend"], found["HTTPRoute"])
    assert (away["type"], away["usedBy"], away["inForce"]) == ("static", ["HTTPRoute shop/cart"], "yes")
    assert (bad["usedBy"], bad["inForce"]) == ([], "no")
    assert "Secret shop/gone not found" in bad["why"]


def test_policies_say_where_and_which_other_one_holds() -> None:
    rows = {one["name"]: one for one in inventory.policy_rows(judged()["GatewayPolicy"])}
    assert (rows["first"]["where"], rows["first"]["says"], rows["first"]["inForce"]) == ("Gateway edge/main", ["traffic"], "yes")
    assert (rows["second"]["where"], rows["second"]["inForce"]) == ("Gateway edge/main", "partly")
    assert "is that of the older policy shop/first" in rows["second"]["why"]
    assert (rows["nowhere"]["where"], rows["nowhere"]["inForce"]) == ("", "no")
    assert "HTTPRoute shop/nothing not found" in rows["nowhere"]["why"]
    (unseen,) = inventory.policy_rows([{**policy("shop/a", 1, traffic=LIMIT), "kind": "GatewayPolicy"}])
    assert (unseen["targets"], unseen["inForce"]) == (["HTTPRoute cart"], "no")


class Pages(ApiServer):
    """Answers of an API server, by path and where the page begins."""

    def __init__(self, answers: dict[tuple[str, str], Json | int]) -> None:
        self.answers = answers

    def get(self, path: str, query: Any = None) -> Json:
        found = self.answers[path, query.get("continue", "")]
        if isinstance(found, int):
            raise ApiRefused(found, f"{found}")
        return found


def test_lists_are_read_in_pages_and_from_the_newest_version_that_is_served() -> None:
    group = "/apis/gateway.networking.k8s.io"
    answers: dict[tuple[str, str], Json | int] = {
        (f"{group}/v1/namespaces/shop/tcproutes", ""): 404,
        (f"{group}/v1alpha2/namespaces/shop/tcproutes", ""): {"items": [{"a": 1}], "metadata": {"continue": "x"}},
        (f"{group}/v1alpha2/namespaces/shop/tcproutes", "x"): {"items": [{"a": 2}], "metadata": {}},
        (f"{group}/v1/grpcroutes", ""): 404,
        (f"{group}/v1/httproutes", ""): 403,
    }
    api = Pages(answers)
    assert [(one["a"], one["kind"]) for one in inventory.listed(api, "TCPRoute", "shop")] == [(1, "TCPRoute"), (2, "TCPRoute")]
    assert inventory.listed(api, "GRPCRoute", None) == []
    with pytest.raises(ApiRefused):
        inventory.listed(api, "HTTPRoute", None)
