"""`inferenceRouting`: an endpoint picker chooses the model server of each request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.end_to_end.ext_authz_rig import shown
from tests.end_to_end.ext_proc_rig import DESTINATION, BodyBackend, ProcessorPeer, content, picking, unchanged
from tests.end_to_end.running import free_port

from headgate.config.load import TextSource, load
from headgate.errors import ConfigErrors

pytestmark = pytest.mark.warm

HOST = """
gateways:
  default: {{port: {{port}}}}
routes:
- name: models
  backends:
  - host: 127.0.0.1:{port}
    policies: {{inferenceRouting: {policy}}}
"""
SERVICE = """
gateways:
  default: {{port: {{port}}}}
services:
- name: pool
  namespace: models
  hostname: pool.models.test
  ports: {{"80": 8000}}
workloads:
{workloads}
routes:
- name: models
  backends:
  - service: {{name: models/pool.models.test, port: 80}}
    policies: {{inferenceRouting: {policy}}}
"""


@pytest.fixture
def picker() -> Iterator[ProcessorPeer]:
    found = ProcessorPeer()
    yield found
    found.stop()


@pytest.fixture
def servers() -> Iterator[list[BodyBackend]]:
    found = [BodyBackend() for _ in range(3)]
    for number, one in enumerate(found):
        one.chunks = lambda number=number: [b"server %d" % number]
    yield found
    for one in found:
        one.stop()


def place(server: BodyBackend) -> str:
    return f"127.0.0.1:{server.port}"


def config(server: BodyBackend, picker_port: int, **policy: Any) -> str:
    shape = {"endpointPicker": {"host": f"127.0.0.1:{picker_port}"}, **policy}
    return HOST.format(port=server.port, policy=shown(shape))


@pytest.mark.parametrize("metadata", [False, True])
def test_the_picked_server_gets_the_request(
    gateway: Any, picker: ProcessorPeer, servers: list[BodyBackend], metadata: bool
) -> None:
    running = gateway(config(servers[0], picker.port, destinationMode="passthrough"))
    for number in (2, 1, 0):
        picker.react = picking(place(servers[number]), metadata=metadata)
        answer = httpx.post(running.url + "/v1/x", json={"model": "m"}, headers={DESTINATION: "10.0.0.1:1"})
        assert (answer.status_code, answer.text) == (200, f"server {number}")
        [seen] = servers[number].seen
        assert json.loads(seen.body) == {"model": "m-lora"}
        assert seen.fields[DESTINATION] == place(servers[number])
    assert picker.parts == ["request_headers", "request_body", "response_headers", "response_body"]
    assert DESTINATION not in str(picker.seen[0][0])
    picker.react = picking(place(servers[1]))
    assert httpx.get(running.url + "/").text == "server 1"


def test_the_next_server_follows_one_that_is_gone(
    gateway: Any, picker: ProcessorPeer, servers: list[BodyBackend]
) -> None:
    running = gateway(config(servers[0], picker.port, destinationMode="passthrough"))
    picker.react = picking(f"127.0.0.1:{free_port()}", "no place", f"127.0.0.1:{free_port()}", place(servers[2]))
    answer = httpx.post(running.url + "/", json={"model": "m"})
    assert (answer.status_code, answer.text) == (200, "server 2")
    assert json.loads(servers[2].seen[0].body) == {"model": "m-lora"}
    assert len(picker.seen) == 1
    picker.react = picking(f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}")
    assert httpx.post(running.url + "/", json={"model": "m"}).status_code == 503


def test_only_known_servers_are_used_unless_others_may_be(
    gateway: Any, picker: ProcessorPeer, servers: list[BodyBackend]
) -> None:
    running = gateway(config(servers[0], picker.port))
    picker.react = picking(place(servers[1]))
    answer = httpx.post(running.url + "/", json={"model": "m"})
    assert answer.status_code == 503
    assert servers[1].seen == []
    picker.react = picking(place(servers[1]), place(servers[0]))
    assert httpx.post(running.url + "/", json={"model": "m"}).text == "server 0"


def test_endpoints_of_a_service_are_picked(gateway: Any, picker: ProcessorPeer, servers: list[BodyBackend]) -> None:
    """Each worker of a service has its own address; the picker names one of them."""
    shape = shown({"endpointPicker": {"host": f"127.0.0.1:{picker.port}"}})
    text = SERVICE.format(policy=shape, workloads="\n".join(
        f"- {{uid: w{number}, name: w{number}, namespace: models, workloadIps: [127.0.0.1], "
        f"services: {{models/pool.models.test: {{80: {one.port}}}}}}}" for number, one in enumerate(servers)
    ))  # fmt: skip
    running = gateway(text)
    for number in (1, 0, 2):
        picker.react = picking(place(servers[number]))
        assert httpx.post(running.url + "/", json={"model": "m"}).text == f"server {number}"
    picker.react = picking("127.0.0.1:1")
    assert httpx.post(running.url + "/", json={"model": "m"}).status_code == 503


def test_metadata_services_may_not_be_picked(gateway: Any, picker: ProcessorPeer, servers: list[BodyBackend]) -> None:
    running = gateway(config(servers[0], picker.port, destinationMode="passthrough"))
    picker.react = picking("169.254.169.254:80")
    assert httpx.post(running.url + "/", json={"model": "m"}).status_code == 503


def test_a_picker_that_names_nothing_or_is_gone(gateway: Any, picker: ProcessorPeer, servers: list[BodyBackend]) -> None:
    running = gateway(config(servers[0], picker.port))
    picker.react = unchanged
    answer = httpx.post(running.url + "/", json={"model": "m"})
    assert (answer.status_code, answer.text) == (503, "the endpoint picker has named no endpoint")
    picker.react = lambda part, message: iter([{"immediateResponse": {"status": {"code": 429}, "body": content(b"busy")}}])
    answer = httpx.post(running.url + "/", json={"model": "m"})
    assert (answer.status_code, answer.text) == (429, "busy")
    running.reload(config(servers[0], free_port()))
    answer = httpx.post(running.url + "/", json={"model": "m"})
    assert (answer.status_code, answer.text[:16]) == (500, "ext_proc failed:")
    assert servers[0].seen == []


@pytest.mark.parametrize(("mode", "status"), [("failClosed", 500), ("failOpen", 200)])
def test_what_a_failure_of_the_picker_means(
    gateway: Any, picker: ProcessorPeer, servers: list[BodyBackend], mode: str, status: int
) -> None:
    running = gateway(config(servers[1], free_port(), failureMode=mode))
    answer = httpx.post(running.url + "/v1/x", json={"model": "m"}, headers={DESTINATION: place(servers[2])}, timeout=60)
    assert answer.status_code == status
    assert (answer.text == "server 1") == (status == 200)
    # A picker that works but names nothing has not failed.
    picker.react = unchanged
    running.reload(config(servers[1], picker.port, failureMode=mode))
    assert httpx.post(running.url + "/v1/x", json={"model": "m"}, timeout=60).status_code == 503
    _, dump = running.fetch(f"http://127.0.0.1:{running.admin}/config_dump")
    assert f'"failureMode":"{mode}"' in "".join(dump.split())
    assert len(servers[2].seen) == 0


def test_streams_of_models_pass(gateway: Any, picker: ProcessorPeer, servers: list[BodyBackend]) -> None:
    running = gateway(config(servers[0], picker.port))
    picker.react = picking(place(servers[0]))
    events = [b"data: %d\n\n" % number for number in range(200)]
    servers[0].chunks = lambda: events
    servers[0].fields = [("content-type", "text/event-stream")]
    answer = httpx.post(running.url + "/", json={"model": "m"})
    assert answer.content == b"".join(events)


@pytest.mark.parametrize(
    "backend",
    [
        "mcp: {targets: [{name: a, mcp: {host: 'http://127.0.0.1:1/mcp'}}]}", "dynamic: {}",
        "ai: {name: a, provider: {openAI: {}}}",
    ],
)  # fmt: skip
def test_other_backends_are_refused(backend: str) -> None:
    policies = "policies: {inferenceRouting: {endpointPicker: {host: 'a:1'}}}"
    text = f"gateways: {{default: {{port: 3000}}}}\nroutes:\n- backends:\n  - {backend}\n    {policies}\n"
    with pytest.raises(ConfigErrors, match="inferenceRouting is for host and service backends"):
        load(TextSource(text))
