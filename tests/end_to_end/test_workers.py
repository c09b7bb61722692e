"""Connections of clients spread over the workers, whatever becomes of a worker."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.end_to_end.processes import kill
from tests.end_to_end.running import PATIENCE, Gateway
from tests.end_to_end.tls_rig import (
    authority,  # noqa: F401
    issue,
)

# What is tested is of the process: its memory, its frames, its end.
pytestmark = pytest.mark.executed

DIRECT = """
gateways:
  default: {port: {port}}
routes:
- name: a
  policies: {directResponse: {status: 200, body: hello}}
"""
SECURE = """
gateways:
  default:
    port: {port}
    listeners: [{name: a, protocol: HTTPS, tls: {cert: FOLDER/a.pem, key: FOLDER/a.key}}]
routes:
- name: a
  policies: {directResponse: {status: 200, body: hello}}
"""
WORKERS = 8
CONNECTIONS = 32
GET = b"GET / HTTP/1.1\r\nhost: a.test\r\n\r\n"
ESTABLISHED = "01"


def owners(gateway: Gateway) -> dict[int, int]:
    """How many connections of clients each worker has, by its process id."""
    port = f":{gateway.port:04X}"
    rows = [
        line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]
    inodes = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(port) and row[3] == ESTABLISHED}
    found = {}
    for pid in gateway.worker_pids():
        links = []
        with contextlib.suppress(OSError):
            for path in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    links.append(os.readlink(path))
        found[pid] = len(inodes.intersection(links))
    return found


class Clients:
    """Connections that stay."""

    def __init__(self, gateway: Gateway, context: ssl.SSLContext | None = None) -> None:
        self._gateway = gateway
        self._context = context
        self.sockets: list[socket.socket] = []

    def open(self, count: int) -> None:
        """Each with one answered request."""
        for _ in range(count):
            sock = socket.create_connection(("127.0.0.1", self._gateway.port), timeout=PATIENCE)
            if self._context is not None:
                sock = self._context.wrap_socket(sock)
            self.sockets.append(sock)
            sock.sendall(GET)
            data = b""
            while not data.endswith(b"hello"):
                piece = sock.recv(4096)
                assert piece, "the connection was closed"
                data += piece

    def close(self) -> None:
        for sock in self.sockets:
            sock.close()
        self.sockets.clear()
        wait(lambda: sum(owners(self._gateway).values()) == 0, "all connections closed")


def wait(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.02)


@pytest.fixture
def crowd(gateway) -> Gateway:
    return gateway(DIRECT, workers=WORKERS)


@pytest.fixture
def clients(crowd: Gateway) -> Iterator[Clients]:
    found = Clients(crowd)
    yield found
    found.close()


def test_each_worker_has_its_share(crowd: Gateway, clients: Clients) -> None:
    """A worker that the machine keeps from running for some milliseconds is passed over; with the kernel's own way of
    spreading, one trial of a thousand would end like this."""

    def even() -> bool:
        clients.close()
        clients.open(CONNECTIONS)
        return max(owners(crowd).values()) <= CONNECTIONS // WORKERS

    wait(even, "4 of 32 connections for each of 8 workers")


def test_a_worker_that_stands_still_gets_no_connection(crowd: Gateway, clients: Clients) -> None:
    clients.open(WORKERS)
    stopped = crowd.worker_pids()[0]
    before = owners(crowd)[stopped]
    os.kill(stopped, signal.SIGSTOP)
    try:
        wait(lambda: Path(f"/proc/{stopped}/stat").read_text().rpartition(")")[2].split()[0] == "T", "it is stopped")
        clients.open(CONNECTIONS)
        assert owners(crowd)[stopped] == before
    finally:
        os.kill(stopped, signal.SIGCONT)


def test_the_successor_of_a_worker_begins_at_nothing(crowd: Gateway, clients: Clients) -> None:
    clients.open(CONNECTIONS)
    victim = max(owners(crowd).items(), key=lambda item: item[1])[0]
    others = set(crowd.worker_pids()) - {victim}
    kill(victim)
    crowd.wait_log("worker restarted")
    [successor] = set(crowd.worker_pids()) - others

    def served() -> bool:
        clients.open(1)
        return owners(crowd)[successor] > 0

    wait(served, "a connection at the worker that has none")
    for sock in clients.sockets:
        sock.close()
    clients.sockets.clear()


def test_connections_that_wait_are_served_by_the_other_workers(crowd: Gateway, clients: Clients) -> None:
    victims = crowd.worker_pids()[1:]
    for pid in victims:
        os.kill(pid, signal.SIGSTOP)
    try:
        clients.open(CONNECTIONS)
        assert sum(owners(crowd)[pid] for pid in victims) == 0
    finally:
        for pid in victims:
            os.kill(pid, signal.SIGCONT)


def test_connections_with_tls_are_spread_and_broken_handshakes_count_no_more(
    gateway,
    authority,
    tmp_path: Path,
) -> None:
    issue(authority, tmp_path, "a", "a.test")
    running = gateway(SECURE.replace("FOLDER", str(tmp_path)), workers=2)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    secure = Clients(running, context)
    for data in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01", b"") * 3:
        with socket.create_connection(("127.0.0.1", running.port), timeout=PATIENCE) as sock:
            sock.sendall(data)

    def even() -> bool:
        secure.close()
        secure.open(8)
        return set(owners(running).values()) == {4}

    wait(even, "4 of 8 connections for each of 2 workers")
    secure.close()
