"""Envoy and the gateway before the same backend, with the same service: what it is told and what clients and backends get."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import h11
import httpx
from bench.macro.peers import envoy_binary
from bench.services.settings import CASES, Ports, ServiceCase, theirs
from tests.end_to_end.ext_proc_rig import BodyBackend, fields_of
from tests.end_to_end.running import free_port

ROUTE: Final = """
gateways:
  default: {{port: {{port}}}}
routes:
- name: asked
  policies: {policies}
  backends:
  - host: 127.0.0.1:{backend}
"""
NAMED: Final = {case.name: case for case in CASES}
# What is not compared, and why.
OWN_FIELDS: Final = {
    "x-request-id": "Envoy makes one for every request; here ids are off unless the configuration asks for them",
    "x-forwarded-proto": "Envoy adds it at its edge; here a policy does",
    "x-envoy-upstream-service-time": "Envoy's own",
    "server": "Envoy puts its own name in the place of the backend's",
    "date": "time passes",
    "connection": "Envoy closes where a refusal comes before the body has, which is chance",
}
DIFFERENT: Final = {
    "source": "the port of the client's connection",
    "destination": "the port of the proxy",
    "request.time": "time passes",
    "request.http.id": "Envoy's id of a stream; here x-request-id, if there is one",
    "request.http.size": "Envoy leaves it out unless the body is sent; here it is the length that the client has told",
    "metadata_context": "Envoy sends an empty message; here it is left out",
    "route_metadata_context": "the same; there is no metadata of routes here",
}


def without_own(fields: dict[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in fields.items() if name.lower() not in OWN_FIELDS}


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """The fields of a message by their paths."""
    if not isinstance(value, dict):
        return {path: value}
    found: dict[str, Any] = {}
    for name, inner in value.items():
        # A name of a header may have a dot; its value is text in any case.
        found |= flat(inner, f"{path}.{name}" if path else name)
    return found


def check_of(question: dict[str, Any]) -> dict[str, Any]:
    attributes = question["attributes"]
    http = attributes["request"]["http"]
    http["headers"] = without_own(http["headers"])
    return {name: value for name, value in flat(attributes).items() if not any(name == one or name.startswith(one + ".") for one in DIFFERENT)}


# Fields of one hop (RFC 9110 section 7.6.1), which Envoy shows processors and the gateway does not.
HOP: Final = frozenset({"transfer-encoding", "te"})


def part_of(message: dict[str, Any]) -> Any:
    """What a processor is told in one message."""
    (name,) = [one for one in message if one.startswith(("request_", "response_"))]
    if name.endswith("_body"):
        return name, base64.b64decode(message[name].get("body", "")), message[name].get("end_of_stream", False)
    fields = {key: value for key, value in without_own(fields_of(message)).items() if key not in HOP}
    return name, fields, message[name].get("end_of_stream", False), message.get("protocol_config")


class Answer(NamedTuple):
    """An answer with its trailers."""

    status_code: int
    headers: dict[str, str]
    content: bytes
    trailers: dict[str, str]


def exchanged(url: str, text: bytes) -> Answer:
    """Send the bytes of one request, and read the answer."""
    peer = h11.Connection(h11.CLIENT)
    peer.send(h11.Request(method="GET", target="/", headers=[("host", "a")]))
    peer.send(h11.EndOfMessage())
    host, _, port = url.removeprefix("http://").partition(":")
    fields: dict[str, str] = {}
    status, content = 0, b""
    with socket.create_connection((host, int(port)), timeout=60) as client:
        client.sendall(text)
        while True:
            event = peer.next_event()
            if event is h11.NEED_DATA:
                peer.receive_data(client.recv(65536))
            elif isinstance(event, h11.Response):
                status, fields = event.status_code, {name.decode(): value.decode() for name, value in event.headers}
            elif isinstance(event, h11.Data):
                content += event.data
            elif isinstance(event, h11.EndOfMessage):
                return Answer(status, fields, content, {name.decode(): value.decode() for name, value in event.headers})


def ignored(tree: dict[str, Any]) -> None:
    """Change nothing of Envoy's configuration."""


class Opinions:
    """`ask(case, service, request)` gives what is seen through both. `case`: or the name of one of the bench. `beside`: policies of the
    gateway that ask no service. `edit` changes Envoy's configuration. `tail`: of the gateway's.
    """

    def __init__(self, gateway: Any, backend: BodyBackend) -> None:
        self.gateway = gateway
        self.backend = backend

    def ask(
        self, case: ServiceCase | str, service: Any, send: Callable[[str], httpx.Response | Answer], *,
        beside: dict[str, Any] | None = None, edit: Callable[[dict[str, Any]], None] = ignored,
    ) -> list[dict[str, Any]]:  # fmt: skip
        found = []
        case = NAMED[case] if isinstance(case, str) else case
        with self.envoy(case, service.port, edit) as url:
            found.append(self.seen(service, send(url)))
        policies = {name: {"host": f"127.0.0.1:{service.port}", **fields} for name, fields in case.ours.items()} | (beside or {})
        running = self.gateway(ROUTE.format(policies=json.dumps(policies), backend=self.backend.port))
        found.append(self.seen(service, send(running.url)))
        return found

    @contextlib.contextmanager
    def envoy(self, case: ServiceCase, service: int, edit: Callable[[dict[str, Any]], None]) -> Iterator[str]:
        ports = Ports(free_port(), self.backend.port, service)
        program = envoy_binary()
        assert program is not None
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "envoy.json")
            tree = json.loads(theirs(case, ports))
            edit(tree)
            path.write_text(json.dumps(tree))
            words = [program, "-c", str(path), "--concurrency", "1", "--log-level", "off", "--use-dynamic-base-id"]
            process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                transport = httpx.HTTPTransport(retries=10)
                with httpx.Client(transport=transport, timeout=60) as client:
                    client.get(f"http://127.0.0.1:{ports.own}/warm")
                self.backend.seen.clear()
                yield f"http://127.0.0.1:{ports.own}"
            finally:
                process.terminate()
                process.wait()

    def seen(self, service: Any, answer: httpx.Response | Answer) -> dict[str, Any]:
        upstream = [(one.method, one.target, without_own(one.fields), one.body, one.trailers) for one in self.backend.seen]
        told = list(service.seen)
        self.backend.seen.clear()
        service.seen.clear()
        trailers = answer.trailers if isinstance(answer, Answer) else {}
        return {"status": answer.status_code, "fields": without_own(dict(answer.headers)), "body": answer.content, "trailers": trailers,
                "upstream": [one for one in upstream if one[1] != "/warm"], "told": told}  # fmt: skip


def post(url: str) -> httpx.Response:
    fields = {"host": "a.test", "X-One": "1", "cookie": "a=b", "x-gone": "1"}
    return httpx.post(f"{url}/p/q?x=1", headers=fields, content=b"hello", timeout=60)
