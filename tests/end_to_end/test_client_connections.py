"""`frontendPolicies.http`: what a client's connection is told, may hold, and how long it lives."""

from __future__ import annotations

import http.client
import socket
import time

import pytest
from tests.end_to_end.http2_frames_rig import (
    ACK,
    GET,
    GOAWAY,
    INITIAL_WINDOW_SIZE,
    MAX_CONCURRENT_STREAMS,
    MAX_FRAME_SIZE,
    MAX_HEADER_LIST_SIZE,
    PING,
    WINDOW_UPDATE,
    Client,
    frame,
)  # fmt: skip
from tests.end_to_end.running import PATIENCE

pytestmark = pytest.mark.warm

TEXT = """
gateways: {default: {port: {port}}}
routes: [{name: made, policies: {directResponse: {status: 200, body: made here}}}]
frontendPolicies: {http: {SETTINGS}}
"""


def plain(port: int, request: bytes) -> bytes:
    """What comes back on a connection of its own until it ends."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
        client.sendall(request)
        found = b""
        while data := client.recv(65536):
            found += data
    return found


def test_sizes_are_told_to_the_client(gateway) -> None:
    text = "http2WindowSize: 70000, http2ConnectionWindowSize: 200000, http2FrameSize: 20000, http2MaxHeaderSize: 9000"
    client = Client(gateway(TEXT.replace("SETTINGS", text)).port)
    told = client.settings()
    assert (told[INITIAL_WINDOW_SIZE], told[MAX_FRAME_SIZE], told[MAX_HEADER_LIST_SIZE]) == (70000, 20000, 9000)
    assert told[MAX_CONCURRENT_STREAMS] == 200
    assert int.from_bytes(client.first(WINDOW_UPDATE, 0)[3], "big") == 200_000 - 65_535


def test_fields_of_an_older_request_are_counted(gateway) -> None:
    running = gateway(TEXT.replace("SETTINGS", "http1MaxHeaders: 4"))
    head = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n"
    assert plain(running.port, head + b"a: 1\r\nb: 1\r\n\r\n").startswith(b"HTTP/1.1 200 ")
    assert plain(running.port, head + b"a: 1\r\nb: 1\r\nc: 1\r\n\r\n").startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"])
def test_an_idle_connection_ends(gateway, sent: bytes) -> None:
    port = gateway(TEXT.replace("SETTINGS", "http1IdleTimeout: 300ms")).port
    found = plain(port, sent)
    assert found.startswith(b"HTTP/1.1 200 ") if sent else found == b""
    client = Client(port)
    if sent:
        client.send(client.head(1, GET))
        assert client.status(1) == "200"
    assert client.error() == 0


def test_a_connection_lives_so_long(gateway) -> None:
    running = gateway(TEXT.replace("SETTINGS", "maxConnectionDuration: 300ms"))
    older = http.client.HTTPConnection("127.0.0.1", running.port, timeout=PATIENCE)
    deadline = time.monotonic() + PATIENCE
    while True:
        older.request("GET", "/")
        answer = older.getresponse()
        assert (answer.status, answer.read()) == (200, b"made here")
        if answer.headers["connection"] == "close":
            break
        assert time.monotonic() < deadline
        time.sleep(0.02)
    client, number, seen = Client(running.port), 1, []
    while not seen or seen[-1][0] != GOAWAY:
        assert time.monotonic() < deadline
        client.send(client.head(number, GET))
        # Each answer ends with its DATA; the word to go elsewhere comes between two.
        for one in client.frames():
            seen.append(one)
            if one[0] == GOAWAY or (one[0] == 0 and one[2] == number):
                break
        number += 2
        time.sleep(0.02)
    assert int.from_bytes(seen[-1][3][4:8], "big") == 0


def test_a_client_that_answers_no_ping_is_left(gateway) -> None:
    running = gateway(TEXT.replace("SETTINGS", "http2KeepaliveInterval: 100ms, http2KeepaliveTimeout: 30s"))
    client = Client(running.port)
    for _ in range(3):
        client.send(frame(PING, ACK, 0, client.first(PING, 0)[3]))
    client.send(client.head(1, GET))
    assert client.status(1) == "200"
    running = gateway(TEXT.replace("SETTINGS", "http2KeepaliveInterval: 100ms, http2KeepaliveTimeout: 100ms"))
    silent = Client(running.port)
    silent.first(PING, 0)
    assert silent.error() == 0
