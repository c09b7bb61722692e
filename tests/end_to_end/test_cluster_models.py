"""InferencePools, as the controller's translator writes them, served by a gateway."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import grpc
import httpx
import pytest
import trustme
from manifests import Json, endpoints, gateway_class, http_route, listener, made, service
from manifests import gateway as gateway_manifest
from tests.end_to_end.ext_proc_rig import BodyBackend, ProcessorPeer, picking
from tests.end_to_end.running import Gateway

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.everything import everything
from headgate.cluster.translate.fragments import assembled
from headgate.document.write import write

pytestmark = pytest.mark.warm

# Stands for the port that a gateway is given.
PORT = 64_999


@pytest.fixture
def picker() -> Iterator[ProcessorPeer]:
    """Return a picker whose certificate nobody knows, as those of the extension have."""
    pair = trustme.CA().issue_cert("picker.test")
    chain = b"".join(one.bytes() for one in pair.cert_chain_pems)
    found = ProcessorPeer(credentials=grpc.ssl_server_credentials([(pair.private_key_pem.bytes(), chain)]))
    yield found
    found.stop()


@pytest.fixture
def servers() -> Iterator[list[BodyBackend]]:
    found = [BodyBackend() for _ in range(2)]
    yield found
    for one in found:
        one.stop()


def configuration(picker: int, servers: list[BodyBackend], mode: str) -> str:
    reference = {"name": "picker", "port": {"number": 8080}, "failureMode": mode}
    ports = [{"number": one.port} for one in servers]
    spec = {"selector": {"matchLabels": {"app": "model"}}, "targetPorts": ports, "endpointPickerRef": reference}
    pod = {
        **made("Pod", "shop/a", {}, "v1", labels={"app": "model"}),
        "status": {"podIP": "127.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]},
    }
    backend: Json = {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "models"}
    documents = [
        gateway_class(), gateway_manifest(listener(port=PORT)), http_route("shop/models", {"backendRefs": [backend]}), pod,
        made("InferencePool", "shop/models", spec, "inference.networking.k8s.io/v1"),
        service("shop/picker"), endpoints("shop/picker-1", "picker", ["127.0.0.1"], picker),
    ]  # fmt: skip
    world = everything(Snapshot.of(documents), {})
    return write(assembled(world.gateways[ObjectKey("edge", "main")])).replace(f"port: {PORT}", "port: {port}")


def test_the_picker_chooses_among_the_pods_of_a_pool(
    gateway: Callable[..., Gateway], picker: ProcessorPeer, servers: list[BodyBackend]
) -> None:
    running = gateway(configuration(picker.port, servers, "FailClose"))

    def ask() -> int:
        return httpx.post(f"http://127.0.0.1:{running.port}/v1/completions", json={"model": "m"}).status_code

    for chosen, other in (servers, reversed(servers)):
        picker.react = picking(f"127.0.0.1:{chosen.port}")
        before = len(other.seen)
        assert ask() == 200
        assert (chosen.seen[-1].body, len(other.seen)) == (b'{"model": "m-lora"}', before)
    picker.stop()
    assert ask() >= 500
    assert sum(len(one.seen) for one in servers) == 2


def test_without_a_picker_that_may_fail_any_pod_serves(
    gateway: Callable[..., Gateway], picker: ProcessorPeer, servers: list[BodyBackend]
) -> None:
    picker.stop()
    running = gateway(configuration(picker.port, servers, "FailOpen"))
    assert httpx.post(f"http://127.0.0.1:{running.port}/v1/completions", json={"model": "m"}).status_code == 200
    assert [one.body for server in servers for one in server.seen] == [b'{"model":"m"}']
