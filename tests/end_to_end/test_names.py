"""Names of backends: which addresses they have, and which of them gets the connection."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from tests.dns_rig import A, NameServer
from tests.end_to_end.tls_rig import authority, tls_upstream  # noqa: F401

NAMES = """
gateways: {default: {port: {port}}}
routes:
- {name: two, matches: [{path: {exact: /two}}], backends: [{host: "two.test:BACKEND"}]}
- {name: none, matches: [{path: {exact: /none}}], backends: [{host: "none.test:BACKEND"}]}
- name: tls
  matches: [{path: {exact: /tls}}]
  backends: [{host: "a.test:SECURE", policies: {backendTLS: {root: "ROOT"}}}]
"""
DEAF = "gateways: {default: {port: {port}}}\nroutes: [{backends: [{host: 'two.test:BACKEND'}]}]\n"


@pytest.fixture
def names() -> Iterator[NameServer]:
    with NameServer() as found:
        yield found


def ask(port: int, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", path, headers={"connection": "close"})
    answer = connection.getresponse()
    return answer.status, answer.read()


def served(sock: socket.socket) -> None:
    sock.recv(1000)
    sock.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok")


def test_backends_are_found_by_name(gateway: Any, upstream: Any, names: NameServer, authority: Any, tmp_path: Any) -> None:
    text = NAMES.replace("BACKEND", str(upstream(served))).replace("SECURE", str(tls_upstream(authority, "a.test")))
    # Nobody is at the first address: a connection that is refused is followed by the next at once.
    names.answers |= {"two.test": ["127.0.0.9", "127.0.0.1"], "a.test": ["127.0.0.9", "127.0.0.1"]}
    settings = f"  dns: {{servers: ['{names.place}'], edns0: true, lookupFamily: V4Only}}\n"
    running = gateway(text.replace("ROOT", str(tmp_path / "ca.pem")), settings=settings)
    assert [ask(running.port, "/two") for _ in range(4)] == [(200, b"ok")] * 4
    assert names.count("two.test") == 1
    assert all(one[3] for one in names.asked), "questions carry EDNS"
    assert ask(running.port, "/tls")[0] == 200
    assert ask(running.port, "/none") == (503, b"backends required DNS resolution which failed")
    running.wait_log("not found")
    assert {one[1] for one in names.asked} == {A}, "V4Only"


def test_a_silent_address_holds_no_connection_up(gateway: Any, names: NameServer) -> None:
    """The queue of the listener at one address is full: the kernel drops what comes (listen(2))."""
    with socket.socket() as good, socket.socket() as deaf, socket.socket() as one, socket.socket() as two:
        good.bind(("127.0.0.1", 0))
        good.listen()
        port = good.getsockname()[1]
        deaf.bind(("127.0.0.9", port))
        deaf.listen(0)
        for filler in (one, two):
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.9", port))
        names.answers["two.test"] = ["127.0.0.9", "127.0.0.1"]
        running = gateway(DEAF.replace("BACKEND", str(port)), settings=f"  dns: {{servers: ['{names.place}']}}\n")
        for _ in range(2):      # whichever is the first of the turn
            with socket.create_connection(("127.0.0.1", running.port)) as client:
                client.sendall(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
                backend, _ = good.accept()
                with backend:
                    assert backend.recv(1000).startswith(b"GET / ")
                    backend.sendall(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
                    assert client.recv(1000).startswith(b"HTTP/1.1 204 ")
