"""CPU that one worker spends on passing 1 GiB on over TCP, beside HAProxy with copies and with splice(2).

Usage: python -m bench.tcp.run [--mebibytes 1024] [--connections 1] [--rounds 3]

Needs haproxy. All write one line to a log for each connection; their turns alternate. The CPU is the time that the
process was on a processor (/proc/<pid>/schedstat), in seconds; the bytes come from a child of this process, and another
child is the backend that reads them.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from bench.http2.run import free_port, started

HAPROXY = """
global
  nbthread 1
  maxconn 1000
  log {folder}/log local0
defaults
  mode tcp
  log global
  option tcplog
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  {more}
listen all
  bind 127.0.0.1:{port}
  server one 127.0.0.1:{backend}
"""
OURS = """
binds:
- port: {port}
  listeners: [{{protocol: TCP, tcpRoutes: [{{backends: [{{host: "127.0.0.1:{backend}"}}]}}]}}]
"""
MEBIBYTE = 1 << 20


def on_cpu_seconds(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def read_all(listener: socket.socket) -> None:
    """Be the backend: read what comes and say how much it was."""

    def serve(sock: socket.socket) -> None:
        room = bytearray(MEBIBYTE)
        size = 0
        with sock, contextlib.suppress(OSError):
            while count := sock.recv_into(room):
                size += count
            sock.sendall(str(size).encode())

    while True:
        sock, _ = listener.accept()
        threading.Thread(target=serve, args=(sock,), daemon=True).start()


@contextlib.contextmanager
def backend() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        process = multiprocessing.Process(target=read_all, args=(listener,), daemon=True)
        process.start()
        yield int(listener.getsockname()[1])
        process.kill()
        process.join()


def send(port: int, mebibytes: int, connections: int) -> None:
    """Send an equal part over each connection, and wait until the backend has all."""
    sizes: list[int] = []

    def one() -> None:
        data = memoryview(bytes(MEBIBYTE))
        with socket.create_connection(("127.0.0.1", port)) as sock:
            for _ in range(mebibytes // connections):
                sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            sizes.append(int(sock.recv(100)))

    threads = [threading.Thread(target=one) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if sum(sizes) != mebibytes // connections * connections * MEBIBYTE:
        raise RuntimeError(f"only {sizes} bytes have come")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mebibytes", type=int, default=1024)
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    if shutil.which("haproxy") is None:
        sys.exit("needs haproxy")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        place = stack.enter_context(backend())
        servers = []
        for name, more in (("haproxy", ""), ("haproxy with splice", "option splice-request\n  option splice-response")):
            port = free_port()
            path = Path(folder, f"{port}.conf")
            path.write_text(HAPROXY.format(folder=folder, port=port, backend=place, more=more))
            servers.append((name, port, stack.enter_context(started(["haproxy", "-db", "-q", "-f", str(path)], port))))
        port = free_port()
        path = Path(folder, "ours.yaml")
        path.write_text(OURS.format(port=port, backend=place))
        pid = stack.enter_context(started([sys.executable, "-m", "bench.instructions.serve", str(path)], port))
        servers.append(("headgate", port, pid))
        best: dict[str, float] = {}
        for _ in range(options.rounds):
            for name, port, pid in servers:
                before = on_cpu_seconds(pid)
                send(port, options.mebibytes, options.connections)
                spent = on_cpu_seconds(pid) - before
                best[name] = min(spent, best.get(name, spent))
        print(f"{options.mebibytes} MiB over {options.connections}: "
              + ", ".join(f"{name} {seconds:.3f} s" for name, seconds in best.items()),
              f"= {best['headgate'] / best['haproxy']:.2f} x, {best['headgate'] / best['haproxy with splice']:.2f} x")


if __name__ == "__main__":
    main()
