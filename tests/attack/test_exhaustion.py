"""What costs a client little and the gateway much. A bystander is served all the while, and memory stays bounded (CWE-400; see README.md).

How long the bystander waits is a figure (`make attack`), not an assertion: it is a matter of the machine.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import socket
import statistics
import struct
import zlib
from collections.abc import Callable, Iterator

import pytest
from tests.attack.conftest import Figures
from tests.attack.exhaustion_rig import Plenty, connected, forget_peak, last_answers, memory_mib, timed, until
from tests.end_to_end.running import Gateway

CONFIG = """
gateways:
  default: {port: {port}}
llm:
  models:
  - {name: m, provider: openai, params: {baseUrl: "http://127.0.0.1:BACKEND/v1", apiKey: k}, guardrails: {response: [{regex: {action: reject, rules: [{pattern: forbidden}]}}]}}
  - {name: plain, provider: openai, params: {baseUrl: "http://127.0.0.1:BACKEND/v1", apiKey: k}}
mcp:
  targets: [{name: t, mcp: {host: "http://127.0.0.1:BACKEND/mcp"}}]
routes:
- name: patterns
  matches: [{path: {pathPrefix: /pattern}}]
  policies: {authorization: {rules: ['request.headers["x-long"].matches("^(a+)+$") || true', 'request.headers["x-long"].matches("(a|aa)*b") || true']}}
  backends: [{host: "127.0.0.1:BACKEND"}]
- name: loops
  matches: [{path: {pathPrefix: /loop}}]
  policies: {authorization: {rules: ['request.headers["x-long"].split("").all(a, request.headers["x-long"].split("").all(b, a == b)) || true']}}
  backends: [{host: "127.0.0.1:BACKEND"}]
- name: rest
  matches: [{path: {pathPrefix: /slow}}, {path: {pathPrefix: /big}}, {path: {exact: /p}}, {path: {exact: /h}}, {path: {exact: /churn}}, {path: {pathPrefix: /bystander}}]
  backends: [{host: "127.0.0.1:BACKEND"}]
"""
# MiB that a worker may have more of, beside what its kernel buffers hold.
MOST_MIB = 96
BOMB = gzip.compress(b"x" * (64 << 20), 9)


@pytest.fixture(scope="module")
def backend() -> Iterator[Plenty]:
    found = Plenty(BOMB)
    yield found
    found.close()


@pytest.fixture(scope="module")
def running(serving: Callable[..., Gateway], backend: Plenty) -> Gateway:
    return serving(CONFIG.replace("BACKEND", str(backend.port)))


def post(path: bytes, body: bytes, *fields: bytes) -> bytes:
    return b"POST %s HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n%s\r\n%s" % (path, len(body), b"".join(one + b"\r\n" for one in fields), body)


def status_of(port: int, data: bytes) -> int:
    """Send, and read the status of the first answer; 0: the connection was ended without one."""
    with connected(port) as client, contextlib.suppress(OSError):
        client.sendall(data)
        while not (found := client.recv(65536)).startswith(b"HTTP/1.1 "):
            if not found:
                return 0
        return int(found[9:12])
    return 0


# -- attacks: each takes the port and how many of it; what it returns is said in the figures --------------------------------
def slow_heads(port: int, count: int) -> str:
    clients = [connected(port) for _ in range(count)]
    head = b"GET /slow HTTP/1.1\r\nhost: a\r\nx-a: "
    for at in range(len(head)):
        for client in clients:
            client.sendall(head[at : at + 1])
    for client in clients:
        client.close()
    return f"{count} clients, a byte at a time"


def slow_bodies(port: int, count: int) -> str:
    clients = [connected(port) for _ in range(count)]
    for client in clients:
        client.sendall(b"POST /slow HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\n")
    for _ in range(20):
        for client in clients:
            client.sendall(b"x")
    for client in clients:
        client.close()
    return f"{count} clients, a byte at a time"


def slow_readers(port: int, count: int) -> str:
    clients = []
    for _ in range(count):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", port))
        client.sendall(b"GET /big/8 HTTP/1.1\r\nhost: a\r\n\r\n")
        assert client.recv(9) == b"HTTP/1.1 "
        clients.append(client)
    for _ in range(10):
        for client in clients:
            assert client.recv(1)
    for client in clients:
        client.close()
    return f"{count} answers of 8 MiB, read a byte at a time"


def idle_flood(port: int, count: int) -> str:
    clients = [connected(port) for _ in range(count * 4)]
    assert all(one.fileno() >= 0 for one in clients)
    for client in clients:
        client.close()
    return f"{count * 4} connections that say nothing"


def pipelining(port: int, count: int) -> str:
    wanted = count * 20
    with connected(port) as client:
        client.settimeout(0.5)
        data, sent = b"GET /p HTTP/1.1\r\nhost: a\r\n\r\n" * wanted, 0
        with contextlib.suppress(TimeoutError):
            while sent < len(data):        # without reading: what the gateway does not take stays here
                sent += client.send(data[sent:])
        client.settimeout(60)
        whole = sent // 28
        assert last_answers(client, whole) >= whole - 1
    return f"{wanted} requests in one go, no answer read"


def huge_heads(port: int, count: int) -> str:
    kinds = {
        b"GET /h HTTP/1.1\r\nhost: a\r\nx: " + b"y" * 2_000_000 + b"\r\n\r\n": (431, 400, 0),
        b"GET /" + b"y" * 2_000_000 + b" HTTP/1.1\r\nhost: a\r\n\r\n": (414, 431, 400, 0),
        b"GET /h HTTP/1.1\r\nhost: a\r\n" + b"x: y\r\n" * 100_000 + b"\r\n": (431, 400, 0),
        b"\r\n" * 500_000 + b"GET /h HTTP/1.1\r\nhost: a\r\n\r\n": (400, 431, 0),
    }  # fmt: skip
    for _ in range(max(count // 32, 1)):
        for data, statuses in kinds.items():
            assert status_of(port, data) in statuses, data[:40]
    return f"{4 * max(count // 32, 1)} heads of 1 to 2 MB"


def bombs(port: int, count: int) -> str:
    deflated = zlib.compress(b" " * (64 << 20), 9)
    chat = b"/v1/chat/completions"
    for _ in range(max(count // 32, 1)):
        assert status_of(port, post(chat, BOMB, b"content-encoding: gzip")) in (400, 413)
        assert status_of(port, post(chat, deflated, b"content-encoding: deflate")) in (400, 413)
        assert status_of(port, post(chat, BOMB, b"content-encoding: gzip, gzip")) in (400, 413, 415)
        body = b'{"model":"m","messages":[{"role":"user","content":"hello"}]}'
        assert status_of(port, post(chat, body)) in (413, 502, 503), "a provider's answer"
        assert status_of(port, post(chat, body.replace(b'"m"', b'"plain"'))) == 200, "goes on as it came, and is read for usage no further than it is long"
    return f"{5 * max(count // 32, 1)} bodies of 64 KB that are 64 MB, of clients and a provider"


def deep_json(port: int, count: int) -> str:
    chat, mcp = b"/v1/chat/completions", b"/mcp"
    shapes = [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000,
              b'{"model":"m","messages":' + b"[" * 50_000 + b"]" * 50_000 + b"}", b'{"model":"m","x":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}"]  # fmt: skip
    kinds = (b"content-type: application/json", b"accept: application/json, text/event-stream")
    for _ in range(max(count // 64, 1)):
        for body in shapes:
            for path in (chat, mcp):
                # What is well-formed and deep may go to the provider, whose answer here is a bomb.
                assert 400 <= status_of(port, post(path, body, *kinds)) < 600, (path, body[:30])
    return f"{10 * max(count // 64, 1)} bodies nested 50,000 to 100,000 deep"


def patterns(port: int, count: int) -> str:
    for at in range(count):
        path, long = (b"/pattern", b"a" * 12_000) if at % 2 else (b"/loop", b"a" * 12_000)
        assert status_of(port, b"GET %s HTTP/1.1\r\nhost: a\r\nx-long: %s\r\n\r\n" % (path, long)) in (200, 403)
    return f"{count} requests with fields of 12 KB for patterns and loops"


def churn(port: int, count: int) -> str:
    for at in range(count * 10):
        client = connected(port)
        if at % 3:
            client.sendall(b"GET /churn HTTP/1.1\r\nhost: a\r\n\r\n"[: at % 29])
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    return f"{count * 10} connections that are reset at once or in a head"


def abandoned(port: int, count: int) -> str:
    for _ in range(count):
        with connected(port) as client:
            client.sendall(b"GET /big/1 HTTP/1.1\r\nhost: a\r\n\r\n")
            assert client.recv(1)
    return f"{count} answers of 1 MiB that are left behind"


ATTACKS = {
    "slow heads": slow_heads, "slow bodies": slow_bodies, "slow readers": slow_readers, "idle connections": idle_flood, "pipelining": pipelining,
    "huge heads": huge_heads, "compression bombs": bombs, "deep JSON": deep_json, "patterns and loops": patterns, "churn": churn,
    "abandoned answers": abandoned,
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_a_bystander_is_served_and_memory_is_bounded(running: Gateway, long: bool, figures: Figures, name: str) -> None:
    [worker] = running.worker_pids()
    forget_peak(worker)
    before = memory_mib(worker)
    with timed(running.port) as bystander:
        until(lambda: bystander.waits, "the bystander was not served before the attack")
        at = len(bystander.waits)
        what = ATTACKS[name](running.port, 400 if long else 32)
        during = len(bystander.waits)
        until(lambda: len(bystander.waits) > during, "the bystander was not served behind the attack")
        waits = sorted(bystander.waits[at:])
    grown = memory_mib(worker) - before
    assert grown < MOST_MIB, f"{grown:.0f} MiB more"
    assert running.worker_pids() == [worker], "the worker was replaced"
    figures.add("exhaustion", name, what, {
        "bystander's median": f"{statistics.median(waits) * 1e3:.1f} ms", "longest": f"{waits[-1] * 1e3:.0f} ms", "memory": f"+{grown:.0f} MiB"})


def test_nothing_is_left_of_all_that(running: Gateway) -> None:
    """Connections end with their clients: what was held for them is given back."""
    [worker] = running.worker_pids()
    assert json.loads(running.fetch(f"http://127.0.0.1:{running.admin}/debug/tasks")[1] or "{}") is not None
    until(lambda: sockets_of(worker) < 60, f"{sockets_of(worker)} sockets are still open")
    assert running.metric("gw_worker_restarts_total") == 0


def sockets_of(pid: int) -> int:
    found = 0
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            found += os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:")
    return found
