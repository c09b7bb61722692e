"""Workloads of a mesh: backends that are reached through HBONE, with the gateway's X.509-SVID."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests import forked_rig
from tests.end_to_end.mesh_rig import MeshConnection, Relay, Workload, echo, http_answer
from tests.end_to_end.running import Gateway, free_port
from tests.end_to_end.spiffe_rig import PEM, TrustDomain, WorkloadApi, response
from tests.end_to_end.tcp_rig import named

OWN = "td.test"
GATEWAY, WEB, STRANGER = f"spiffe://{OWN}/gateway", f"spiffe://{OWN}/ns/shop/sa/web", f"spiffe://{OWN}/ns/shop/sa/stranger"

CONFIG = """
binds:
- port: {port}
  listeners:
  - name: http
    routes: [{name: web, backends: [{service: {name: shop/web.test, port: 80}, POLICIES}]}]
- port: TCP
  listeners:
  - {name: tcp, protocol: TCP, tcpRoutes: [{name: db, backends: [{service: {name: shop/web.test, port: 5432}}]}]}
services:
- {name: web, namespace: shop, hostname: web.test, ports: {80: 8080, 5432: 5433}}
workloads:
- uid: w1
  name: web
  namespace: shop
  serviceAccount: web
  trustDomain: td.test
  workloadIps: ["ADDRESS"]
  protocol: HBONE
  services: {shop/web.test: {80: HTTP_TARGET}}
"""


class Mesh:
    """A trust domain, its agent, and gateways within it."""

    def __init__(self, gateway: Callable[..., Gateway], folder: Path) -> None:
        self.gateway, self.folder = gateway, folder
        self.domain = TrustDomain(OWN)
        self.agent = WorkloadApi(folder / "agent.sock")
        self.agent.start()
        self.agent.give(response(self.domain.issue(GATEWAY), self.domain))
        self.tcp = free_port()
        self._workloads: list[Workload | Relay] = []

    def workload(self, answer: Callable[[MeshConnection, int, bytes], None], identity: str = WEB, **options: int) -> Workload:
        found = Workload(self.folder, self.domain, identity, answer, **options)
        self._workloads.append(found)
        return found

    def relay(self, port: int) -> Relay:
        found = Relay(port)
        self._workloads.append(found)
        return found

    def start(self, address: str, policies: str = "policies: {}", hbone: str = "{}", target: int = 8080) -> Gateway:
        text = CONFIG.replace("ADDRESS", address).replace("port: TCP", f"port: {self.tcp}")
        text = text.replace("POLICIES", policies).replace("HTTP_TARGET", str(target))
        settings = f"spiffe: {{endpoint: '{self.agent.uri}'}}\nhbone: {hbone}"
        return self.gateway(text, settings=settings)

    def stop(self) -> None:
        for one in self._workloads:
            one.stop()
        self.agent.stop()


@pytest.fixture
def mesh(gateway, tmp_path) -> Iterator[Mesh]:
    found = Mesh(gateway, tmp_path)
    yield found
    found.stop()


def get(port: int, count: int = 1) -> list[tuple[int, bytes]]:
    """Status and body of requests on one connection."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as client:
        found = []
        for _ in range(count):
            client.request("GET", "/")
            answer = client.getresponse()
            found.append((answer.status, answer.read()))
        return found


def test_requests_go_through_tunnels_of_the_workload(mesh: Mesh) -> None:
    workload = mesh.workload(http_answer)
    running = mesh.start(workload.address)
    # Connections within tunnels are kept like others.
    assert get(running.port, 3) == [(200, b"tunnel 1")] * 3
    assert workload.tunnels == [f"{workload.address}:8080"]
    assert workload.connections[0].peer == GATEWAY
    dump = json.loads(running.fetch(f"http://127.0.0.1:{running.admin}/config_dump")[1])
    assert dump["workloads"][0]["protocol"] == "HBONE"


def test_a_gateway_as_the_workload(mesh: Mesh, gateway, upstream) -> None:
    """From a client through one gateway to the tunnels of another, and to its ports."""
    mesh.domain.issue(WEB).write(mesh.folder, "web")
    (mesh.folder / "root.pem").write_bytes(mesh.domain.root.public_bytes(PEM))
    plain = free_port()
    inner = gateway(
        """
binds:
- port: {port}
  tunnelProtocol: hboneGateway
  listeners:
  - {name: mesh, protocol: HBONE, tls: {cert: FOLDER/web.pem, key: FOLDER/web.key, root: FOLDER/root.pem}}
- port: PLAIN
  listeners:
  - name: plain
    routes:
    - name: plain
      policies:
        transformations: {response: {set: {x-spiffe: source.spiffeId}}}
        directResponse: {status: 200, body: inner}
- mode: internal
  listeners: [{name: rest, protocol: TCP, tcpRoutes: [{name: rest, backends: [{host: "127.0.0.1:BACKEND"}]}]}]
""".replace("FOLDER", str(mesh.folder)).replace("PLAIN", str(plain)).replace("BACKEND", str(upstream(named(b"db"))))
    )
    outer = mesh.start(mesh.relay(inner.port).address, target=plain)
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", outer.port, timeout=60)) as client:
        client.request("GET", "/")
        answer = client.getresponse()
        assert (answer.status, answer.read(), answer.headers["x-spiffe"]) == (200, b"inner", GATEWAY)
    with socket.create_connection(("127.0.0.1", mesh.tcp)) as sock:
        sock.settimeout(60)
        sock.sendall(b"x" * 3_000_000)
        sock.shutdown(socket.SHUT_WR)
        found = bytearray()
        while part := sock.recv(65536):
            found += part
    assert bytes(found) == b"db\n" + b"x" * 3_000_000


def test_tunnels_share_connections(mesh: Mesh) -> None:
    workload = mesh.workload(echo)
    mesh.start(workload.address, hbone="{poolMaxStreamsPerConn: 2, poolUnusedReleaseTimeout: 1ms}")
    clients = []
    for number in range(5):
        sock = socket.create_connection(("127.0.0.1", mesh.tcp))
        sock.settimeout(60)
        sock.sendall(b"%d" % number)
        assert sock.recv(10) == b"%d" % number
        clients.append(sock)
    assert sorted(one.most for one in workload.connections) == [1, 2, 2]
    assert workload.tunnels == [f"{workload.address}:5433"] * 5
    for sock in clients:
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(10) == b""
        sock.close()
    # Without tunnels they are let go of.
    for one in workload.connections:
        assert one.closed.wait(60)


def test_a_workload_with_another_identity_is_refused(mesh: Mesh) -> None:
    workload = mesh.workload(http_answer, STRANGER)
    running = mesh.start(workload.address)
    [(status, body)] = get(running.port)
    assert status == 503
    assert b"is not accepted" in body
    assert workload.tunnels == []


def test_a_workload_that_refuses_the_tunnel(mesh: Mesh) -> None:
    workload = mesh.workload(http_answer, status=403)
    running = mesh.start(workload.address)
    [(status, body)] = get(running.port)
    assert status == 503
    assert b"the workload refused the tunnel with status 403" in body


def test_nothing_listens_at_the_workload(mesh: Mesh) -> None:
    workload = mesh.workload(http_answer)
    workload.stop()
    running = mesh.start(workload.address)
    [(status, body)] = get(running.port)
    assert status == 503
    assert b"HBONE" in body


def test_tls_and_grpc_settings_are_those_of_what_is_in_the_tunnel(mesh: Mesh) -> None:
    """A backend with TLS of its own behind the workload: it answers a ClientHello with an alert, within the tunnel."""

    def alert(connection: MeshConnection, number: int, data: bytes) -> None:
        del data
        connection.send(number, b"\x15\x03\x03\x00\x02\x02\x28")

    workload = mesh.workload(alert)
    running = mesh.start(workload.address, "policies: {backendTLS: {insecure: true}}")
    [(status, body)] = get(running.port)
    assert status == 503
    assert b"TLS" in body
    assert workload.connections[0].received[1][:3] == b"\x16\x03\x01"


REFUSED = {
    "address": ("workloadIps: [10.0.0.1], ", "", "protocol HBONE requires an address"),
    "account": ("serviceAccount: web, ", "", "protocol HBONE requires a serviceAccount"),
    "domain": ("trustDomain: td.test", "trustDomain: 'td/test'", "is not the SPIFFE ID"),
    "agent": ("spiffe: {endpoint: 'unix:///a.sock'}", "spiffe: {}", "protocol HBONE requires a certificate of the gateway"),
    "proxy": ("policies: {}", "policies: {backendTunnel: {proxy: {host: 'a.test:1'}}}", "which has protocol HBONE"),
    "header": ("policies: {}", "policies: {proxyProtocol: {version: v2}}", "which has protocol HBONE"),
    "proxy service": ("host: b.test:80, policies: {}", "host: b.test:80, policies: {backendTunnel: {proxy: {service: {name: shop/web.test, port: 80}}}}",
                      "a service whose workloads have protocol HBONE"),
    "streams": ("hbone: {}", "hbone: {poolMaxStreamsPerConn: 0}", "poolMaxStreamsPerConn"),
    "waypoint": ("ports: {80: 80}", "ports: {80: 80}, waypoint: {}", "not supported yet: services[0].waypoint"),
}  # fmt: skip
WHOLE = """
config: {hbone: {}, spiffe: {endpoint: 'unix:///a.sock'}}
binds:
- port: 8080
  listeners:
  - routes:
    - {backends: [{service: {name: shop/web.test, port: 80}, policies: {}}, {host: b.test:80, policies: {}}]}
services: [{name: web, namespace: shop, hostname: web.test, ports: {80: 80}}]
workloads:
- {uid: w1, name: web, namespace: shop, serviceAccount: web, workloadIps: [10.0.0.1], trustDomain: td.test, protocol: HBONE,
   services: {shop/web.test: {80: 80}}}
"""


def validated(folder: Path, text: str) -> tuple[int, str]:
    path = folder / "config.yaml"
    path.write_text(text)
    done = forked_rig.run("headgate.cli.main", "--validate-only", "-f", str(path))
    return done.returncode, done.stdout + done.stderr


def test_the_whole_is_accepted(tmp_path) -> None:
    assert validated(tmp_path, WHOLE)[0] == 0


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_at_load(tmp_path, case) -> None:
    before, after, message = REFUSED[case]
    assert before in WHOLE
    code, told = validated(tmp_path, WHOLE.replace(before, after, 1))
    assert code != 0
    assert message in told
