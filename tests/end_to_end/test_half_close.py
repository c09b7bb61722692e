"""Clients that shut down their side of a connection behind a request: they still read, and get their answers."""

from __future__ import annotations

import contextlib
import re
import socket
import threading

import pytest
from tests.end_to_end.connections_rig import (
    GET,
    ok,
    read_request,
    receive,
    start,  # noqa: F401
    turns,
)

pytestmark = pytest.mark.warm


def test_a_client_that_stops_sending_still_gets_its_answer(start) -> None:
    asked, go = threading.Event(), threading.Event()

    def script(connection: socket.socket) -> None:
        read_request(connection)
        asked.set()
        assert go.wait(60)
        connection.sendall(ok(b"late"))

    running, connect = start(script)
    sock = connect()
    sock.sendall(GET % b"/")
    assert asked.wait(60)
    sock.shutdown(socket.SHUT_WR)
    turns(running)
    go.set()
    assert receive(sock).endswith(b"\r\n\r\nlate")


# Policies that wait: what comes next is decided when the client has stopped sending long ago.
WAITING = """
gateways:
  default: {port: {port}}
routes:
- name: backend
  matches: [{path: {pathPrefix: /backend}}]
  policies: {delay: {duration: 200ms}}
  backends: [{host: "127.0.0.1:BACKEND"}]
- name: direct
  matches: [{path: {pathPrefix: /direct}}]
  policies: {delay: {duration: 200ms}, directResponse: {status: 200, body: here}}
- name: user
  matches: [{path: {pathPrefix: /user}}]
  policies: {basicAuth: {htpasswd: "ada:$$2b$$10$$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy"}}
  backends: [{host: "127.0.0.1:BACKEND"}]
- name: behind
  matches: [{path: {pathPrefix: /behind}}]
  backends: [{host: "127.0.0.1:BACKEND", policies: {transformations: {request: {set: {x-body: "string(request.body)"}}}}}]
- name: model
  matches: [{path: {pathPrefix: /v1}}]
  policies: {delay: {duration: 200ms}}
  backends: [{ai: {name: it, hostOverride: "127.0.0.1:BACKEND", provider: {openAI: {}}}}]
- name: keyed-model
  matches: [{path: {pathPrefix: /keyed/v1}}]
  policies:
    delay: {duration: 200ms}
    csrf: {}
    directResponse: {conditional: [{condition: 'request.headers["x-stop"] == "yes"', status: 418, body: stopped}]}
  backends: [{ai: {name: it, hostOverride: "127.0.0.1:BACKEND", provider: {openAI: {}}}}]
"""
STOPPED = [
    (GET % b"/backend/x", b"200", b"/backend/x"),
    (GET % b"/direct", b"200", b"here"),
    (GET % b"/backend/1" + GET % b"/direct" + GET % b"/backend/2", b"200", b"/backend/2"),
    (b"GET /user HTTP/1.1\r\nhost: a.test\r\nauthorization: Basic YWRhOm5v\r\n\r\n", b"401", b"invalid credentials"),
    (b"POST /behind HTTP/1.1\r\nhost: a.test\r\ncontent-length: 3\r\n\r\nabc", b"200", b"/behind"),
    # Nobody pays for the model's tokens, but what policies answer themselves still comes.
    (b"POST /keyed/v1/chat/completions HTTP/1.1\r\nhost: a.test\r\nx-stop: yes\r\ncontent-length: 2\r\n\r\n{}", b"418", b"stopped"),
]  # fmt: skip


def test_a_client_that_stops_sending_while_policies_wait_still_gets_its_answer(start) -> None:
    asked: list[bytes] = []

    def script(connection: socket.socket) -> None:
        while request := read_request(connection):
            asked.append(request.split(b" ")[1])
            connection.sendall(ok(asked[-1]))

    running, connect = start(script, WAITING)
    for request, status, end in STOPPED:
        sock = connect()
        sock.sendall(request)
        sock.shutdown(socket.SHUT_WR)
        answer = receive(sock)
        found = re.findall(rb"HTTP/1\.1 (\d+) ", answer)
        assert (found, answer.endswith(end)) == ([status] * request.count(b"HTTP/1.1"), True), (request, answer)
    sock = connect()
    sock.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: a.test\r\ncontent-length: 28\r\n\r\n" + b'{"model":"m","messages": []}')
    sock.shutdown(socket.SHUT_WR)
    with contextlib.suppress(ConnectionResetError):
        assert receive(sock) == b""
    running.wait_log("client closed the connection")
    assert b"/v1/chat/completions" not in asked
