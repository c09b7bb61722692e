"""InferencePools and GatewayModels, as the controller's translator writes them, served by a gateway."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import grpc
import httpx
import pytest
import trustme
from manifests import (
    Json,
    endpoints,
    entries,
    gateway_class,
    http_route,
    listener,
    made,
    model,
    of_models,
    own,
    service,
)
from manifests import gateway as gateway_manifest
from tests.end_to_end.cluster_file_rig import PORT
from tests.end_to_end.cluster_file_rig import configuration as configuration_of
from tests.end_to_end.ext_proc_rig import BodyBackend, ProcessorPeer, picking
from tests.end_to_end.provider_stand_in import Answer, StandIn, whole
from tests.end_to_end.running import Gateway

pytestmark = pytest.mark.warm


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
    return configuration_of(documents)


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


def answering(words: str) -> Answer:
    message = {"role": "assistant", "content": words}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return whole({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]})


def test_models_of_a_listener_and_of_a_rule(gateway: Callable[..., Gateway], stand_in: Callable[..., StandIn]) -> None:
    first, second = stand_in(answering("first")), stand_in(answering("second"))

    def at(peer: StandIn, name: str, *parents: Json, **more: Json) -> Json:
        # The CRD refuses loopback addresses; translation takes what the API server has taken.
        spec = {"provider": "Custom", "custom": {"formats": [{"type": "Completions"}]}, "baseURL": f"http://127.0.0.1:{peer.port}/v1"}
        return model(name, *parents, **spec, **more)

    auth = {"auth": {"secretRef": {"name": "key"}}}
    rule = {"name": "team", "matches": [{"path": {"value": "/team"}}], "backendRefs": [own("*", "GatewayModel")]}
    closed = {"authorization": {"policy": {"matchExpressions": ["request.headers['x-team'] == 'a'"]}}}
    text = configuration_of([
        gateway_class(), gateway_manifest(listener(port=PORT, **of_models("HTTPRoute"))), http_route("shop/chat", rule),
        entries("Secret", "shop/key", Authorization="CANARY"),
        at(first, "shop/one", match={"model": "gpt-*"}, policies=auth),
        at(second, "shop/two", match={"model": "other"}, policies=closed),
        at(second, "shop/hidden", visibility="Internal", model="pinned"),
        at(second, "shop/team", {"kind": "HTTPRoute", "name": "chat", "sectionName": "team"}, match={"model": "*"}),
        model("shop/best", virtualModel={"conditional": {"targets": [{"modelRef": "hidden", "when": "llmRequest.seed == 7"}, {"modelRef": "one", "model": "gpt-5"}]}}),
        model("shop/lost", virtualModel={"weighted": {"targets": [{"modelRef": "gone", "weight": 1}]}}),
    ])  # fmt: skip
    running = gateway(text)

    def ask(name: str, path: str = "/v1", **more: Json | int) -> httpx.Response:
        body = {"model": name, "messages": [{"role": "user", "content": "hello"}], **more}
        return httpx.post(f"http://127.0.0.1:{running.port}{path}/chat/completions", json=body)

    def words(found: httpx.Response) -> str:
        return str(found.json()["choices"][0]["message"]["content"])

    assert words(ask("gpt-4")) == words(ask("gpt-4", path="")) == "first"
    assert (first.last.json["model"], first.last.headers["authorization"]) == ("gpt-4", "Bearer CANARY")
    assert (ask("other").status_code, ask("hidden").status_code, ask("elsewhere").status_code) == (403, 404, 404)
    assert (words(ask("best")), first.last.json["model"]) == ("first", "gpt-5")
    assert (words(ask("best", seed=7)), second.last.json["model"]) == ("second", "pinned")
    assert (words(ask("gpt-4", path="/team/v1")), second.last.json["model"]) == ("second", "gpt-4")
    # Its share is kept: nobody else gets its requests.
    assert ask("lost").status_code >= 500
    listed = httpx.get(f"http://127.0.0.1:{running.port}/v1/models").json()["data"]
    assert sorted(one["id"] for one in listed) == ["best", "gpt-*", "lost"]
