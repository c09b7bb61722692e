"""User memory of an idle connection of HTTP/2 that has made one request, of this gateway and of nginx.

Usage: python -m bench.http2.idle [--connections 2000]

Needs nginx. The figure is what the private memory of the worker process has grown by, in bytes for each connection: after some
connections that are not counted, and with fields as a browser sends them.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import socket
import sys
import tempfile
import time
from pathlib import Path

from hpack import Encoder
from hyperframe.frame import HeadersFrame, SettingsFrame

from bench.http2.run import BACKEND, NGINX, OURS, PROXY, free_port, started, worker_of

FIELDS = [
    (":method", "GET"), (":scheme", "http"), (":authority", "bench.test"), (":path", "/a?page=1"),
    ("user-agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/128.0.0.0 Safari/537.36"),
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"),
    ("accept-encoding", "gzip, deflate, br, zstd"), ("accept-language", "en-US,en;q=0.9"), ("x-request-id", "8f14e45fceea167a5a36dedd4bea2543"),
]  # fmt: skip
WARM = 200


def opened(port: int) -> socket.socket:
    """A connection whose one request has been answered, and all that it was asked acknowledged."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=30)
    head = HeadersFrame(1, data=Encoder().encode(FIELDS), flags=["END_STREAM", "END_HEADERS"])
    ack = SettingsFrame(0, flags=["ACK"])
    sock.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SettingsFrame(0).serialize() + ack.serialize() + head.serialize())
    found = b""
    while b"a small answer of a backend" not in found:
        piece = sock.recv(65536)
        if not piece:
            raise RuntimeError(f"the connection was ended: {found!r}")
        found += piece
    return sock


def private_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("Private_Clean", "Private_Dirty")))


def measured(port: int, pid: int, count: int) -> float:
    with contextlib.ExitStack() as stack:
        for _ in range(WARM):
            stack.enter_context(opened(port))
        time.sleep(1)
        before = private_bytes(pid)
        for _ in range(count):
            stack.enter_context(opened(port))
        time.sleep(1)
        return (private_bytes(pid) - before) / count


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=2000)
    options = parser.parse_args(arguments)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    backend, nginx, ours = free_port(), free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        for name, port, servers in (("backend", backend, BACKEND), ("proxy", nginx, PROXY)):
            text = NGINX.format(folder=folder, name=name, servers=servers.format(port=port, backend=backend))
            Path(folder, f"{name}.conf").write_text(text)
        Path(folder, "ours.yaml").write_text(OURS.format(port=ours, backend=backend))
        stack.enter_context(started(["nginx", "-c", f"{folder}/backend.conf"], backend))
        theirs = stack.enter_context(started(["nginx", "-c", f"{folder}/proxy.conf"], nginx))
        own = stack.enter_context(started([sys.executable, "-m", "bench.instructions.serve", f"{folder}/ours.yaml"], ours))
        for name, port, pid in (("nginx", nginx, worker_of(theirs)), ("headgate", ours, own)):
            print(f"{name}: {measured(port, pid, options.connections):,.0f} bytes")


if __name__ == "__main__":
    main()
