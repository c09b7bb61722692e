"""InferencePools as services of the file whose endpoints a picker chooses."""

from __future__ import annotations

import random
from typing import Any

import pytest
from manifests import Json, gateway, gateway_class, grant, http_route, made, passthrough, service, tls_route, to

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.everything import World, everything
from headgate.cluster.translate.fragments import assembled
from headgate.config.load import TextSource, load
from headgate.document.write import write
from headgate.ir.backend import ServiceBackend

MAIN = ObjectKey("edge", "main")
NAME = "shop/models.shop.inference.cluster.local"
PICKER = {"service": {"name": "shop/picker.shop.svc.cluster.local", "port": 9002}}
FINE = {"Accepted": ("True", "Accepted"), "ResolvedRefs": ("True", "ResolvedRefs")}


def pool(name: str = "shop/models", ports: tuple[int, ...] = (8000,), picker: Json | None = None, **spec: Any) -> Json:
    reference = {"name": "picker", "port": {"number": 9002}} if picker is None else picker
    said = {"selector": {"matchLabels": {"app": "model"}}, "targetPorts": [{"number": one} for one in ports], "endpointPickerRef": reference, **spec}
    return made("InferencePool", name, said, "inference.networking.k8s.io/v1")


def pod(name: str, address: str, ready: str = "True", app: str = "model", **metadata: Any) -> Json:
    found = made("Pod", name, {}, "v1", labels={"app": app}, **metadata)
    return {**found, "status": {"podIP": address, "conditions": [{"type": "Ready", "status": ready}]}}


def models(**more: Any) -> Json:
    return {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "models", **more}


KNOWN = [
    gateway_class(), gateway(), service("shop/picker", {"name": "grpc", "port": 9002}), http_route("shop/models", {"backendRefs": [models()]}),
    pod("shop/a", "10.0.0.1"), pod("shop/b", "10.0.0.2"), pod("shop/slow", "10.0.0.3", ready="False"), pod("shop/other", "10.0.0.4", app="x"),
    pod("store/far", "10.0.0.5"), pod("shop/leaving", "10.0.0.6", deletionTimestamp="2026-01-01T00:00:00Z"),
]  # fmt: skip


def world(*documents: Json) -> World:
    return everything(Snapshot.of([*KNOWN, *documents]), {})


def file(*documents: Json) -> Json:
    return assembled(world(*documents).gateways[MAIN])


def backends(found: Json) -> list[Json]:
    return [one for route in found["binds"][0]["listeners"][0]["routes"] for one in route.get("backends", ())]


def said(found: World, kind: str, name: str = "models") -> list[dict[str, tuple[str, str]]]:
    (status,) = [one for one in found.statuses if (one.kind.kind, one.key.name) == (kind, name)]
    return [{each["type"]: (each["status"], each["reason"]) for each in one["conditions"]} for one in status.content["parents"]]


def test_a_pool_is_a_service_of_pods_and_its_picker_is_asked() -> None:
    found = file(pool(ports=(8000, 8001)))
    assert backends(found) == [
        {
            "weight": 1, "service": {"name": NAME, "port": 80},
            "policies": {"inferenceRouting": {"endpointPicker": PICKER}, "http": {"version": "HTTP/1.1"}},
        }
    ]  # fmt: skip
    assert [(one["name"], one["workloadIps"], one["services"]) for one in found["workloads"]] == [
        (name, [address], {NAME: {"80": port}}) for name, address in (("a", "10.0.0.1"), ("b", "10.0.0.2")) for port in (8000, 8001)
    ]
    (policy,) = found["policies"]
    assert policy["policy"] == {"backendTLS": {"insecure": True}}
    assert policy["target"]["backend"]["service"] == {"hostname": "picker.shop.svc.cluster.local", "namespace": "shop", "port": 9002}
    assert {one["name"] for one in found["services"]} == {"models", "picker"}
    found = world(pool())
    assert said(found, "InferencePool") == [FINE]
    assert said(found, "HTTPRoute") == [FINE]


@pytest.mark.parametrize(
    ("spec", "policies"),
    [
        ({"appProtocol": "kubernetes.io/h2c"}, {"inferenceRouting": {"endpointPicker": PICKER}, "http": {"version": "HTTP/2"}}),
        (
            {"picker": {"name": "picker", "port": {"number": 9002}, "failureMode": "FailOpen"}},
            {"inferenceRouting": {"endpointPicker": PICKER, "failureMode": "failOpen"}, "http": {"version": "HTTP/1.1"}},
        ),
    ],
)
def test_protocol_and_failures(spec: Json, policies: Json) -> None:
    assert backends(file(pool(**spec)))[0]["policies"] == policies


@pytest.mark.parametrize(
    ("picker", "words"),
    [
        ({"name": "gone", "port": {"number": 9002}}, ["Service not found"]),
        ({"name": "gone"}, ["no port is given", "Service not found"]),
        ({"name": "picker", "port": {"number": 1}}, ["no TCP port 1"]),
        ({"name": "outside", "port": {"number": 9002}}, ["ExternalName"]),
        ({"name": "picker", "kind": "Thing", "group": "x.test"}, ["must be a Service"]),
    ],
)
def test_without_its_picker_nobody_passes(picker: Json, words: list[str]) -> None:
    documents = pool(picker=picker), service("shop/outside", {"port": 9002}, type="ExternalName")
    found = world(*documents)
    assert said(found, "InferencePool") == [FINE | {"ResolvedRefs": ("False", "InvalidExtensionRef")}]
    assert said(found, "HTTPRoute")[0]["ResolvedRefs"] == ("False", "Invalid")
    (status,) = [one for one in found.statuses if one.kind.kind == "InferencePool"]
    message = status.content["parents"][0]["conditions"][1]["message"]
    assert [one in message for one in words] == [True] * len(words)
    assert message.count("; ") == len(words) - 1
    assert backends(file(*documents)) == [{"weight": 1, "backend": "unresolved/shop/models"}]
    assert "workloads" not in file(*documents)


def test_a_pool_that_no_route_names_has_no_parent() -> None:
    assert said(world(pool(), pool("shop/unused")), "InferencePool", "unused") == []
    assert said(world(), "HTTPRoute")[0]["ResolvedRefs"] == ("False", "BackendNotFound")


def test_a_pool_of_another_namespace_needs_a_grant() -> None:
    documents = [pool("store/models"), service("store/picker", {"port": 9002}), http_route("shop/far", {"backendRefs": [models(namespace="store")]})]
    allowed = grant(
        "store/g", {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "shop"},
        {"group": "inference.networking.k8s.io", "kind": "InferencePool"},
    )  # fmt: skip
    assert said(world(*documents), "HTTPRoute", "far")[0]["ResolvedRefs"] == ("False", "RefNotPermitted")
    assert said(world(*documents), "InferencePool") == []
    assert said(world(*documents, allowed), "HTTPRoute", "far")[0] == FINE
    assert said(world(*documents, allowed), "InferencePool") == [FINE]


def test_what_cannot_be_sent_to_a_pool() -> None:
    mirror = {"type": "RequestMirror", "requestMirror": {"backendRef": models()}}
    documents = (
        pool(), gateway(passthrough(), name="edge/tls"), service(), http_route("shop/copies", {"filters": [mirror], "backendRefs": [to()]}),
        tls_route("shop/bytes", {"backendRefs": [models()]}, hostnames=("a.test",), parent={"name": "tls", "namespace": "edge"}),
    )  # fmt: skip
    found = world(*documents)
    assert said(found, "HTTPRoute", "copies")[0]["ResolvedRefs"] == ("False", "UnsupportedValue")
    assert said(found, "TLSRoute", "bytes")[0]["ResolvedRefs"] == ("False", "InvalidKind")


def test_the_order_of_events_does_not_matter() -> None:
    documents = [*KNOWN, pool(), pool("shop/more")]
    first = everything(Snapshot.of(documents), {})
    for seed in range(10):
        random.Random(seed).shuffle(documents)
        other = everything(Snapshot.of(documents), {})
        assert (other.statuses, assembled(other.gateways[MAIN])) == (first.statuses, assembled(first.gateways[MAIN]))


def test_the_loader_of_the_file_reads_it() -> None:
    loaded = load(TextSource(write(file(pool(picker={"name": "picker", "port": {"number": 9002}, "failureMode": "FailOpen"})))))
    assert not loaded.warnings
    (choice,) = loaded.gateway.binds[0].listeners[0].routes[0].backends
    assert isinstance(choice.backend, ServiceBackend)
    assert [one.endpoint.address for one in choice.backend.endpoints] == ["10.0.0.1:8000", "10.0.0.2:8000"]
    assert choice.policies.inference is not None
    assert choice.policies.inference.fail_open
