"""BackendTLSPolicies: what holds for which Service, and what is said of them."""

from __future__ import annotations

import random
from typing import Any

import pytest
import trustme
from manifests import (
    Json,
    endpoints,
    entries,
    gateway,
    gateway_backend,
    gateway_class,
    http_route,
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
from headgate.ir.backend import ServiceBackend
from headgate.ir.model import AiBackend

CA = trustme.CA().cert_pem.bytes().decode()
OTHER = trustme.CA().cert_pem.bytes().decode()
MAIN = ObjectKey("edge", "main")
LATER = "2026-02-01T00:00:00Z"
FINE = {"Accepted": ("True", "Accepted"), "ResolvedRefs": ("True", "ResolvedRefs")}
HOST = "cart.shop.svc.cluster.local"


def reference(name: str = "ca", kind: str = "ConfigMap", group: str = "") -> Json:
    return {"group": group, "kind": kind, "name": name}


def policy(name: str, *targets: Json, age: str | None = None, **validation: Any) -> Json:
    said = {"caCertificateRefs": [reference()], "hostname": "cart.test", **validation}
    spec = {"targetRefs": [{"group": "", "kind": "Service", "name": "cart", **one} for one in targets or ({},)], "validation": said}
    return made("BackendTLSPolicy", name, spec, **({} if age is None else {"creationTimestamp": age}))


KNOWN = [
    gateway_class(), gateway(), service("shop/cart", {"name": "web", "port": 8080}, {"name": "tls", "port": 8443}),
    http_route("shop/cart", {"backendRefs": [to(), to(port=8443)]}), entries("ConfigMap", "shop/ca", **{"ca.crt": CA}),
]  # fmt: skip


def world(*documents: Json) -> World:
    return everything(Snapshot.of([*KNOWN, *documents]), {})


def file(*documents: Json) -> Json:
    return assembled(world(*documents).gateways[MAIN])


def said(found: World, name: str) -> dict[str, dict[str, tuple[str, str]]]:
    """Return by Gateway the conditions of a policy."""
    (status,) = [one for one in found.statuses if (one.kind.kind, one.key.name) == ("BackendTLSPolicy", name)]
    return {
        f"{one['ancestorRef']['namespace']}/{one['ancestorRef']['name']}": {each["type"]: (each["status"], each["reason"]) for each in one["conditions"]}
        for one in status.content["ancestors"]
    }


@pytest.mark.parametrize(
    ("validation", "tls"),
    [
        ({}, {"root": CA}),
        ({"caCertificateRefs": None, "wellKnownCACertificates": "System"}, {}),
        (
            {"subjectAltNames": [{"type": "Hostname", "hostname": "a.test"}, {"type": "URI", "uri": "spiffe://a.test/x"}]},
            {"root": CA, "subjectAltNames": ["a.test", "spiffe://a.test/x"]},
        ),
        ({"caCertificateRefs": [reference(), reference("more")]}, {"root": CA + OTHER}),
    ],
)
def test_what_is_said_of_a_service(validation: Json, tls: Json) -> None:
    documents = policy("shop/tls", **validation), entries("ConfigMap", "shop/more", **{"ca.crt": OTHER})
    (only,) = file(*documents)["policies"]
    assert only == {
        "name": {"name": "tls:backend-tls:shop/cart", "namespace": "shop"},
        "target": {"backend": {"service": {"hostname": HOST, "namespace": "shop"}}},
        "policy": {"backendTLS": {"hostname": "cart.test", **tls}},
    }
    assert said(world(*documents), "tls") == {"edge/main": FINE}


@pytest.mark.parametrize(
    ("validation", "accepted", "resolved"),
    [
        ({"caCertificateRefs": [reference("gone")]}, "NoValidCACertificate", "InvalidCACertificateRef"),
        ({"caCertificateRefs": [reference("bad")]}, "NoValidCACertificate", "InvalidCACertificateRef"),
        ({"caCertificateRefs": [reference("none")]}, "NoValidCACertificate", "InvalidCACertificateRef"),
        ({"caCertificateRefs": [reference(kind="Thing", group="x.test")]}, "NoValidCACertificate", "InvalidKind"),
        ({"caCertificateRefs": [reference("gone"), reference()]}, "Accepted", "InvalidCACertificateRef"),
        ({"caCertificateRefs": None, "wellKnownCACertificates": "x.test/Own"}, "Invalid", "ResolvedRefs"),
    ],
)
def test_without_an_authority_no_backend_is_believed(validation: Json, accepted: str, resolved: str) -> None:
    documents = (
        policy("shop/tls", **validation),
        entries("ConfigMap", "shop/bad", **{"ca.crt": "x"}), entries("ConfigMap", "shop/none", other="x"),
    )  # fmt: skip
    found = said(world(*documents), "tls")["edge/main"]
    assert (found["Accepted"][1], found["ResolvedRefs"][1]) == (accepted, resolved)
    root = file(*documents)["policies"][0]["policy"]["backendTLS"]["root"]
    assert (root == CA) is (accepted == "Accepted")
    assert root.startswith("-----BEGIN CERTIFICATE-----")


def test_the_oldest_policy_has_a_target_and_a_port_is_another() -> None:
    documents = (
        policy("shop/b", {}), policy("shop/a", {}, age=LATER), policy("shop/port", {"sectionName": "tls"}, age=LATER),
        policy("shop/both", {"sectionName": "tls"}, {"sectionName": "web"}, age="2026-03-01T00:00:00Z"),
        policy("shop/gone", {"sectionName": "gone"}), policy("shop/other", {"name": "other"}), policy("shop/kind", {"kind": "Thing"}),
    )  # fmt: skip
    found = world(*documents)
    assert [(one["name"]["name"], one["target"]["backend"]["service"].get("port")) for one in file(*documents)["policies"]] == [
        ("b:backend-tls:shop/cart", None), ("both:backend-tls:shop/cart/web", 8080), ("port:backend-tls:shop/cart/tls", 8443),
    ]  # fmt: skip
    conflicted = {"Accepted": ("False", "Conflicted"), "ResolvedRefs": ("True", "ResolvedRefs")}
    assert {name: said(found, name) for name in ("a", "b", "port", "both", "gone", "other", "kind")} == {
        "a": {"edge/main": conflicted}, "b": {"edge/main": FINE}, "port": {"edge/main": FINE}, "both": {"edge/main": FINE},
        "gone": {}, "other": {}, "kind": {},
    }  # fmt: skip


def test_each_gateway_that_uses_the_service_is_an_ancestor() -> None:
    more = [gateway(name=f"edge/g{index:02}") for index in range(20)]
    routes = [http_route(f"shop/r{index:02}", parent={"name": f"g{index:02}", "namespace": "edge"}) for index in range(20)]
    found = world(policy("shop/tls"), *more[:2], gateway(name="edge/unused"), *routes[:2])
    assert list(said(found, "tls")) == ["edge/g00", "edge/g01", "edge/main"]
    assert "policies" not in assembled(found.gateways[ObjectKey("edge", "unused")])
    assert len(said(world(policy("shop/tls"), *more, *routes), "tls")) == 16


def test_the_order_of_events_does_not_matter() -> None:
    documents = [*KNOWN, policy("shop/b", {}), policy("shop/a", {}), policy("shop/c", {}, age=LATER), policy("shop/d", {"sectionName": "tls"})]
    first = everything(Snapshot.of(documents), {})
    for seed in range(10):
        random.Random(seed).shuffle(documents)
        other = everything(Snapshot.of(documents), {})
        assert (other.statuses, assembled(other.gateways[MAIN])) == (first.statuses, assembled(first.gateways[MAIN]))


def test_the_loader_of_the_file_reads_it() -> None:
    ports = [{"name": "web", "port": 80}, {"name": "tls", "port": 443}]
    documents = (
        policy("shop/tls"), policy("shop/lost", {"sectionName": "tls"}, caCertificateRefs=[reference("gone")]),
        endpoints("shop/cart-1", "cart", ["10.0.0.1"], ports=ports),
    )  # fmt: skip
    loaded = load(TextSource(write(file(*documents))))
    assert not loaded.warnings
    (route,) = loaded.gateway.binds[0].listeners[0].routes
    backends = [one.backend for one in route.backends]
    roots = {one.port: one.endpoints[0].endpoint.tls for one in backends if isinstance(one, ServiceBackend)}
    assert {port: None if tls is None else tls.root_pem == CA.encode() for port, tls in roots.items()} == {8080: True, 8443: False}


OF_BACKEND = {"group": "headgate.dev", "kind": "GatewayBackend", "name": "away"}


def test_what_is_said_of_a_backend_and_of_its_sections() -> None:
    groups = [{"providers": [{"name": name, "openai": {}} for name in ("one", "two")]}]
    backend = gateway_backend("shop/away", ai={"groups": groups})
    documents = [backend, http_route("shop/chat", {"backendRefs": [own("away")]})]
    late = policy("shop/late", OF_BACKEND, age="2026-01-02T00:00:00Z")
    gone = policy("shop/gone", OF_BACKEND | {"sectionName": "three"})
    found = world(*documents, policy("shop/all", OF_BACKEND), policy("shop/one", OF_BACKEND | {"sectionName": "one"}), late, gone)
    tree = assembled(found.gateways[MAIN])
    targets = [one["target"]["backend"]["backend"] for one in tree["policies"]]
    assert targets == [{"name": "shop/away", "namespace": ""}, {"name": "shop/away", "namespace": "", "section": "one"}]
    fine = {"Accepted": ("True", "Accepted"), "ResolvedRefs": ("True", "ResolvedRefs")}
    assert (said(found, "all"), said(found, "one")) == ({"edge/main": fine}, {"edge/main": fine})
    assert said(found, "late") == {"edge/main": fine | {"Accepted": ("False", "Conflicted")}}
    assert said(found, "gone") == {}
    routes = load(TextSource(write(tree)), environ={}).gateway.binds[0].listeners[0].routes
    (backend_of_models,) = (one.backend for route in routes for one in route.backends if isinstance(one.backend, AiBackend))
    assert ["cart.test" in str(one.provider.endpoint.tls) for group in backend_of_models.groups for one in group] == [True, True]
