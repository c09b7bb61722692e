"""Hostile bytes on real sockets: refused with the right status, closed, and never seen by a backend."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from typing import Any

import pytest
from hostile_http1 import HOSTILE_REQUESTS, HOSTILE_RESPONSES

CONFIG = """
gateways:
  default: {port: {port}}
routes:
- name: all
  backends: [{host: "127.0.0.1:BACKEND"}]
"""


@pytest.mark.timeout(600)
def test_no_hostile_request_reaches_a_backend(gateway, upstream, send_raw) -> None:
    seen: dict[str, list[bytes]] = {"head": [], "body": []}

    def listening(part: str) -> int:
        def script(connection: socket.socket) -> None:
            while data := connection.recv(65536):
                # Bodies that turn out malformed later may have begun to stream: answer nothing, just note what came.
                seen[part].append(data)

        return upstream(script)

    running, bodies = (gateway(CONFIG.replace("BACKEND", str(listening(part)))) for part in ("head", "body"))
    marker = b"hello"
    for name, data, status in HOSTILE_REQUESTS:
        port = bodies.port if name.startswith(("chunk", "trailer")) else running.port
        answer = send_raw(port, data)
        assert answer.startswith(b"HTTP/1.1 %d " % status), (name, answer[:200])
        assert b"connection: close" in answer, name
    # What was wrong in a head was found before anything left; a bad body ends the upstream call unfinished.
    assert seen["head"] == []
    for piece in seen["body"]:
        assert marker not in piece, piece
        assert b"0\r\n\r\n" not in piece, piece
    assert running.fetch(f"http://127.0.0.1:{running.readiness}/healthz/ready")[0] == 200
    refused = sum(one.metric("gw_downstream_refused_total") for one in (running, bodies))
    assert refused >= len(HOSTILE_REQUESTS) - 20
    assert running.metric("gw_worker_restarts_total") == bodies.metric("gw_worker_restarts_total") == 0


@pytest.mark.timeout(600)
def test_hostile_responses_are_a_502(gateway, upstream) -> None:
    current = [b""]

    def script(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(current[0])
        connection.shutdown(socket.SHUT_WR)
        connection.recv(65536)

    running = gateway(CONFIG.replace("BACKEND", str(upstream(script))))
    for name, data in HOSTILE_RESPONSES:
        current[0] = data
        if name == "chunk-size-bad":
            # The head was fine and has left: the client sees a broken connection, not an answer.
            with pytest.raises((OSError, http.client.HTTPException)):
                running.fetch(running.url)
            continue
        status, body = running.fetch(running.url)
        assert (status, name) == (502, name), body
    current[0] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
    assert running.fetch(running.url) == (200, "ok")


def test_a_body_that_turns_bad_ends_the_call_upstream(gateway, upstream, send_raw) -> None:
    ends: list[bytes] = []
    begun = threading.Event()

    def script(connection: socket.socket) -> None:
        data = b""
        try:
            while piece := connection.recv(65536):
                data += piece
                if b"hello" in data:
                    begun.set()
        except ConnectionResetError:
            pass
        ends.append(data)

    running = gateway(CONFIG.replace("BACKEND", str(upstream(script))))
    head = b"POST / HTTP/1.1\r\nhost: a.test\r\ntransfer-encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", running.port)) as sock:
        sock.sendall(head + b"5\r\nhello\r\n")
        assert begun.wait(40)
        sock.sendall(b"zz\r\n")
        assert sock.recv(65536).startswith(b"HTTP/1.1 400 ")
    deadline = time.monotonic() + 40
    while not ends:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert b"hello" in ends[0]
    assert b"0\r\n\r\n" not in ends[0], "the backend was told that the body is complete"
    running.wait_log("duration=")
    line = next(line for line in running.log().splitlines() if "duration=" in line)
    assert "http.status=400" in line
    assert 'error="invalid chunk size"' in line
    assert "reason=InvalidRequest" in line


PLAIN = """
gateways:
  default: {port: {port}}
routes:
- backends: [{host: "127.0.0.1:%d"}]
"""


@pytest.mark.parametrize(("hints", "status"), [(100, 200), (101, 502), (100_000, 502)])
def test_a_backend_that_only_sends_hints(gateway, upstream, hints: int, status: int) -> None:
    """RFC 9110 section 15.2 sets no limit to informational responses; a backend must not send them for ever."""

    def script(connection: Any) -> None:
        stream = connection.makefile("rb")
        while stream.readline().strip():
            pass
        connection.sendall(b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n" * hints)
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

    running = gateway(PLAIN % upstream(script))
    with socket.create_connection(("127.0.0.1", running.port), timeout=60) as client:
        client.sendall(b"GET / HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n")
        answer = client.makefile("rb").read()
    assert answer.count(b"HTTP/1.1 103 ") == 100
    assert f"HTTP/1.1 {status} ".encode() in answer
