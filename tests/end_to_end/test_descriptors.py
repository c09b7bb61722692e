"""A gateway whose descriptors run out: it says so, answers in the right form, and serves those whom it has."""

from __future__ import annotations

import contextlib
import http.client
import json
import resource
import select
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.end_to_end import running
from tests.end_to_end.connections_rig import ok, read_request, receive
from tests.end_to_end.policy_peer import wait_for
from tests.end_to_end.running import Gateway

LIMIT = 160
TOLD = "no descriptors are left for connections to backends"
CONFIG = """
gateways:
  default: {port: {port}}
routes:
- name: direct
  matches: [{path: {pathPrefix: /direct}}]
  policies: {directResponse: {status: 200, body: here}}
- name: llm
  matches: [{path: {pathPrefix: /v1}}]
  backends:
  - ai: {name: m, provider: {openAI: {model: m}}, hostOverride: "127.0.0.1:BACKEND"}
    policies: {backendAuth: {key: k}}
- name: all
  backends: [{host: "127.0.0.1:BACKEND"}]
"""
CHAT = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]})
CHAT_CALL = (
    "POST /v1/chat/completions HTTP/1.1\r\nhost: a.test\r\ncontent-type: application/json\r\n"
    f"content-length: {len(CHAT)}\r\n\r\n{CHAT}"
).encode()


class Backend:
    """Answers `/slow` only when it is told to."""

    def __init__(self, upstream: Callable[[Callable[[socket.socket], None]], int]) -> None:
        self.release = threading.Event()
        self.begun = threading.Semaphore(0)
        self.port = upstream(self.serve)

    def serve(self, connection: socket.socket) -> None:
        while request := read_request(connection):
            if b" /slow " in request:
                self.begun.release()
                self.release.wait()
            connection.sendall(ok(b"backend"))


@pytest.fixture
def backend(upstream) -> Iterator[Backend]:
    found = Backend(upstream)
    yield found
    found.release.set()


@pytest.fixture
def small(tmp_path: Path, backend: Backend, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    limit = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (LIMIT, LIMIT))
    with monkeypatch.context() as patched:
        patched.setattr(running.subprocess, "Popen", partial(subprocess.Popen, preexec_fn=limit))
        found = Gateway(tmp_path, CONFIG.replace("BACKEND", str(backend.port)), 1, {})
    found.wait_ready()
    yield found
    found.stop()


def begun_or_answered(backend: Backend, client: socket.socket) -> bool:
    return backend.begun.acquire(blocking=False) or bool(select.select([client], [], [], 0)[0])


def ask(client: http.client.HTTPConnection, path: str, body: str | None = None) -> tuple[int, str]:
    client.request("GET" if body is None else "POST", path, body, {"content-type": "application/json"} if body else {})
    answer = client.getresponse()
    return answer.status, answer.read().decode()


def test_calls_beyond_the_descriptors_are_refused_and_others_served(small: Gateway, backend: Backend) -> None:
    bystander = http.client.HTTPConnection("127.0.0.1", small.port)
    assert ask(bystander, "/fast") == (200, "backend")
    clients: list[socket.socket] = []
    # Each takes a connection of its own to the backend, until there are no more.
    while TOLD not in small.log():
        assert len(clients) < LIMIT, small.log()
        client = socket.create_connection(("127.0.0.1", small.port))
        clients.append(client)
        client.sendall(b"GET /slow HTTP/1.1\r\nhost: a.test\r\n\r\n")
        wait_for(partial(begun_or_answered, backend, client))
    small.wait_log(TOLD)
    refused = clients.pop()
    answer = receive(refused, b"connection")
    assert answer.startswith(b"HTTP/1.1 503 "), answer
    assert answer.endswith(b"upstream call failed: no descriptor is left for a connection"), answer
    assert len(clients) > LIMIT // 4
    # Who is there goes on, without a backend and, told that there is no way to one, with one.
    for _ in range(20):
        assert ask(bystander, "/direct") == (200, "here")
        status, text = ask(bystander, "/fast")
        assert (status, text) == (503, "upstream call failed: no descriptor is left for a connection")
    status, told = ask(bystander, "/v1/chat/completions", CHAT)
    assert (status, json.loads(told)["error"]["message"].startswith(f"{text}: ")) == (503, True)
    bystander.request("POST", "/fast", b"", {"content-type": "application/grpc", "te": "trailers"})
    answer = bystander.getresponse()
    assert (answer.status, answer.read(), answer.headers["grpc-status"]) == (200, b"", "14")
    assert small.log().count(TOLD) == 1, "a flood of calls is no flood of lines"
    assert small.metric("gw_upstream_refused_total") >= 22
    # A few more clients still fit in, and those that do not are closed at once.
    with contextlib.ExitStack() as stack:
        for _ in range(LIMIT):
            stack.enter_context(socket.create_connection(("127.0.0.1", small.port)))
        small.wait_log("client connections refused: too many are open")
        assert ask(bystander, "/direct") == (200, "here")
    backend.release.set()
    for client in clients:
        assert receive(client, b"backend").startswith(b"HTTP/1.1 200 ")
        client.close()
    # Where idle connections take the descriptors, they make room.
    assert ask(bystander, "/fast") == (200, "backend")
    assert ask(http.client.HTTPConnection("127.0.0.1", small.port), "/fast") == (200, "backend")
    assert "Too many open files" not in small.log()


def test_a_client_that_leaves_ends_its_connect(gateway: Callable[..., Gateway]) -> None:
    # A listener whose queue is full answers nobody: connects to it stay under way.
    with socket.socket() as full, contextlib.ExitStack() as stack:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        for _ in range(3):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        small = gateway(CONFIG.replace("BACKEND", str(port)), settings="backend: {connectTimeout: 600s}")
        [pid] = small.worker_pids()
        before = connecting(pid, port)
        clients = [socket.create_connection(("127.0.0.1", small.port)) for _ in range(30)]
        for number, client in enumerate(clients):
            if number % 2:
                client.sendall(b"GET / HTTP/1.1\r\nhost: a.test\r\n\r\n")
            else:
                client.sendall(CHAT_CALL)
        wait_for(lambda: connecting(pid, port) == before + 30, "they connect")
        for number, client in enumerate(clients):
            if number % 2:  # who only closes may still read
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        wait_for(lambda: connecting(pid, port) == before, "none connects any more")
        assert ask(http.client.HTTPConnection("127.0.0.1", small.port), "/direct") == (200, "here")


def connecting(pid: int, port: int) -> int:
    """Sockets of a process on their way to a port of this machine (state SYN_SENT)."""
    lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    rows = (line.split() for line in lines)
    return sum(row[3] == "02" and row[2].endswith(f":{port:04X}") for row in rows)
