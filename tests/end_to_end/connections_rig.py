"""What tests of connections share: a scripted upstream, and a client of bytes."""

from __future__ import annotations

import re
import socket

import pytest

CONFIG = """
gateways:
  default: {port: {port}}
routes:
- name: direct
  matches: [{path: {pathPrefix: /direct}}]
  policies: {directResponse: {status: 200, body: here}}
- name: all
  backends: [{host: "127.0.0.1:BACKEND"}]
"""


def read_request(connection: socket.socket) -> bytes:
    """A request with its content-length body."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return data
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    found = re.search(rb"content-length: (\d+)", head.lower())
    while found and len(body) < int(found[1]):
        piece = connection.recv(65536)
        if not piece:
            raise ConnectionResetError("the request ends within its body")
        body += piece
    return head + b"\r\n\r\n" + body


def ok(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


def echo_path(connection: socket.socket) -> None:
    while request := read_request(connection):
        connection.sendall(ok(request.split(b" ")[1]))


def receive(sock: socket.socket, until: bytes | None = None) -> bytes:
    """Bytes until they end with `until`, or until the end."""
    data = b""
    while until is None or not data.endswith(until):
        piece = sock.recv(65536)
        if not piece:
            break
        data += piece
    return data


def turns(running, count: int = 3) -> None:
    """Return when the worker has served other requests: what had come to its sockets before, it has seen."""
    for _ in range(count):
        assert running.fetch(f"{running.url}/direct")[0] == 200


def fill(sock: socket.socket, running, data: bytes) -> int:
    """Send until there is no room for more, though the worker goes on with other requests; how many bytes were sent."""
    sent, full = 0, 0
    sock.setblocking(False)
    while full < 5 and sent < len(data):
        try:
            sent += sock.send(data[sent : sent + 65536])
            full = 0
        except BlockingIOError:
            turns(running)
            full += 1
    sock.settimeout(60)
    return sent


@pytest.fixture
def start(gateway, upstream):
    """`start(script)` gives a gateway in front of a scripted upstream, and a connection to it."""
    sockets: list[socket.socket] = []

    def begin(script, text: str = CONFIG):
        running = gateway(text.replace("BACKEND", str(upstream(script))))

        def connect() -> socket.socket:
            sock = socket.create_connection(("127.0.0.1", running.port), timeout=60)
            sockets.append(sock)
            return sock

        return running, connect

    yield begin
    for sock in sockets:
        sock.close()


GET = b"GET %s HTTP/1.1\r\nhost: a.test\r\n\r\n"
