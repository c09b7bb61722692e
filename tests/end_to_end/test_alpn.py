"""Backends that choose between HTTP/1.1 and HTTP/2 in the TLS handshake (ALPN)."""

from __future__ import annotations

import http.server
import socket
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import trustme
from tests.end_to_end.running import Gateway, free_port
from tests.end_to_end.tls_rig import (
    authority,  # noqa: F401
    issue,
)

pytestmark = pytest.mark.warm

CONFIG = """
gateways:
  default: {port: {port}}
  inner: {port: INNER, protocol: HTTPS, tls: {cert: FOLDER/a.pem, key: FOLDER/a.key}}
routes:
- name: either
  gateways: [default]
  matches: [{path: {pathPrefix: /either}}]
  backends: [{host: "localhost:INNER", policies: {backendTLS: {root: FOLDER/ca.pem, alpn: [h2, http/1.1]}}}]
- name: fixed
  gateways: [default]
  matches: [{path: {pathPrefix: /fixed}}]
  backends: [{host: "localhost:INNER", policies: {http: {version: HTTP/1.1}, backendTLS: {root: FOLDER/ca.pem, alpn: [h2, http/1.1]}}}]
- name: older
  gateways: [default]
  matches: [{path: {pathPrefix: /older}}]
  backends: [{host: "localhost:OLDER", policies: {backendTLS: {root: FOLDER/ca.pem, alpn: [h2, http/1.1]}}}]
- name: silent
  gateways: [default]
  matches: [{path: {pathPrefix: /silent}}]
  backends: [{host: "localhost:SILENT", policies: {backendTLS: {root: FOLDER/ca.pem, alpn: [h2, http/1.1]}}}]
- name: switched
  gateways: [inner]
  matches: [{path: {pathPrefix: /either/switched}}]
  backends: [{host: "127.0.0.1:SWITCHED"}]
- name: said
  gateways: [inner]
  policies:
    transformations: {response: {set: {x-version: request.version}, body: request.version}}
    directResponse: {status: 200, body: made}
"""


def server(authority: trustme.CA, chosen: list[str], offered: list[str]) -> int:
    """A server of HTTP/1.1 that says which client port it talks to, and notes what was chosen; its port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            connection = self.connection
            assert isinstance(connection, ssl.SSLSocket)
            chosen.append(connection.selected_alpn_protocol() or "")
            body = str(self.client_address[1]).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    if offered:
        context.set_alpn_protocols(offered)
    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.socket = context.wrap_socket(found.socket, server_side=True)
    threading.Thread(target=found.serve_forever, daemon=True).start()
    return int(found.server_address[1])


def switching(connection: socket.socket) -> None:
    """Switches protocols, and sends back what comes then."""
    head = b""
    while b"\r\n\r\n" not in head:
        head += connection.recv(65536)
    connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n")
    while data := connection.recv(65536):
        connection.sendall(data)


class Rig:
    def __init__(self, gateway: Callable[..., Gateway], authority: trustme.CA, folder: Path, switched: int) -> None:
        issue(authority, folder, "a", "localhost")
        self.older: list[str] = []
        self.silent: list[str] = []
        ports = {
            "INNER": free_port(), "OLDER": server(authority, self.older, ["http/1.1"]),
            "SILENT": server(authority, self.silent, []), "SWITCHED": switched,
        }  # fmt: skip
        text = CONFIG.replace("FOLDER", str(folder))
        for name, port in ports.items():
            text = text.replace(name, str(port))
        self.running = gateway(text)
        self.inner = ports["INNER"]

    def get(self, path: str) -> tuple[int, str]:
        return self.running.fetch(f"{self.running.url}{path}")

    def opened(self) -> float:
        """Connections that were made to the inner listener."""
        return self.running.metric(f'gw_downstream_connections_total{{bind="bind/{self.inner}"')


@pytest.fixture
def rig(gateway, authority, tmp_path, upstream) -> Rig:
    return Rig(gateway, authority, tmp_path, upstream(switching))


def test_what_the_backend_chooses_is_spoken(rig: Rig) -> None:
    assert rig.get("/either") == (200, "HTTP/2.0")
    assert rig.get("/fixed") == (200, "HTTP/1.1")
    assert rig.get("/older")[0] == rig.get("/silent")[0] == 200
    assert (rig.older, rig.silent) == (["http/1.1"], [""])


def test_many_calls_at_once(rig: Rig) -> None:
    with ThreadPoolExecutor(32) as pool:
        found = list(pool.map(rig.get, ["/either"] * 200))
        assert set(found) == {(200, "HTTP/2.0")}
        assert rig.opened() == 1, "all share a connection"
        assert {status for status, _ in pool.map(rig.get, ["/older"] * 200)} == {200}


def test_kept_connections_carry_the_next_call(rig: Rig) -> None:
    assert len({rig.get("/older")[1] for _ in range(5)}) == 1
    assert {rig.get("/either") for _ in range(5)} == {(200, "HTTP/2.0")}
    assert rig.opened() == 1


def test_upgrades_go_over_http1(rig: Rig) -> None:
    assert rig.get("/either") == (200, "HTTP/2.0")
    for _ in range(2):
        with socket.create_connection(("127.0.0.1", rig.running.port), timeout=60) as client:
            client.sendall(b"GET /either/switched HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n")
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(65536)
            assert head.startswith(b"HTTP/1.1 101")
            client.sendall(b"hello")
            assert client.recv(5, socket.MSG_WAITALL) == b"hello"
    assert rig.get("/either") == (200, "HTTP/2.0")
