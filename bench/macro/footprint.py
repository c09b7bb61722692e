"""Start time and memory of a proxy: at start, per idle connection, after load."""

from __future__ import annotations

import compileall
import socket
import time
from pathlib import Path

from bench.macro import check, load, peers, procfs
from bench.macro.cases import BY_NAME

IDLE_CONNECTIONS = 10_000
# HAProxy wants two descriptors for each connection that it may have, and 20,000 is a common hard limit.
FEWER = {"haproxy": 9_900}
SETTLE_SECONDS = 0.7
# Descriptors that are needed for other things than idle connections.
SPARE_DESCRIPTORS = 300
CASE = BY_NAME["get-small"]
REQUEST = b"GET /small HTTP/1.1\r\nhost: bench.test\r\n\r\n"
MB = 1024
SOURCES = Path(__file__).resolve().parents[2]


def open_idle(port: int, count: int) -> list[socket.socket]:
    """Connections that each made one request and stay open."""
    found: list[socket.socket] = []
    for _ in range(count):
        sock = socket.create_connection(("127.0.0.1", port), timeout=10)
        sock.sendall(REQUEST)
        answer = b""
        while not answer.endswith(CASE.answer or b""):
            piece = sock.recv(4096)
            if not piece:
                raise check.WrongAnswer(f"connection {len(found)} was closed: {answer!r}")
            answer += piece
        found.append(sock)
    return found


def compile_sources() -> None:
    """Write the bytecode of the sources, as pip does for a package that it installs.

    Where there is none and PYTHONDONTWRITEBYTECODE forbids to keep it, each start compiles 320 modules, which takes as
    long as the rest of it.
    """
    for folder in ("engine", "pysrc"):
        compileall.compile_dir(SOURCES / folder, quiet=1)


def measure(name: str, backend: int, folder: Path, descriptors: int) -> dict[str, float]:
    """One start of one peer. Times in seconds, sizes as named."""
    compile_sources()
    running = peers.start_proxy(name, "plain", folder, backend)
    try:
        ready = check.wait(running.port, CASE)
        found: dict[str, float] = {"start_s": time.monotonic() - running.started}
        time.sleep(SETTLE_SECONDS)
        at_start = procfs.memory(running.pid)
        found["processes"] = at_start.processes
        found["rss_start_mb"] = at_start.rss_kb / MB
        found["pss_start_mb"] = at_start.pss_kb / MB
        # What the first requests allocate once is not the price of a connection.
        load.run(CASE, running.port, ready.headers, 32, 1, folder)
        time.sleep(SETTLE_SECONDS)
        before = procfs.memory(running.pid)
        count = min(FEWER.get(name, IDLE_CONNECTIONS), descriptors - SPARE_DESCRIPTORS)
        sockets = open_idle(running.port, count)
        time.sleep(SETTLE_SECONDS)
        idle = procfs.memory(running.pid)
        for sock in sockets:
            sock.close()
        found["idle_connections"] = count
        found["idle_bytes"] = (idle.pss_kb - before.pss_kb) * 1024 / count
        time.sleep(SETTLE_SECONDS)
        load.run(CASE, running.port, ready.headers, 512, 2, folder)
        time.sleep(SETTLE_SECONDS)
        after = procfs.memory(running.pid)
        found["rss_after_mb"] = after.rss_kb / MB
        found["pss_after_mb"] = after.pss_kb / MB
    finally:
        running.stop()
    return found
