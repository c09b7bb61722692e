"""What workers cost: `python -m bench.macro.workers [--counts 1,2,8] [--rounds 3] [--operator]`.

A plain HTTP file (one route to one backend; --operator: with the servers for the operator) is started with each number of workers, pinned to
one processor. Told are the time from the start to the first answer, CPU time of the tree until it is at rest, PSS of the
tree (a page counts for each process by its share), what each worker beyond the first adds, and what the tree takes where no other process
has mapped the same files.
"""

from __future__ import annotations

import argparse
import http.server
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from bench.macro import procfs

CONFIG = """\
config: {{workerThreads: {workers}, adminAddr: {servers[0]}, statsAddr: {servers[1]}, readinessAddr: {servers[2]}}}
gateways: {{default: {{port: {port}}}}}
routes: [{{name: all, backends: [{{host: "127.0.0.1:{backend}"}}]}}]
"""
REQUEST = b"GET / HTTP/1.1\r\nhost: bench.test\r\nconnection: close\r\n\r\n"
# What a start leaves to do after the first answer is done by then.
SETTLE_SECONDS = 1.0
PATIENCE_SECONDS = 60.0
MB = 1024


class Start(NamedTuple):
    """One start. Seconds, and MB of the whole tree."""

    seconds: float
    cpu: float
    pss: float
    alone: float


class Hello(http.server.BaseHTTPRequestHandler):
    """The backend."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "6")
        self.end_headers()
        self.wfile.write(b"hello\n")

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def answered(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
            sock.sendall(REQUEST)
            return sock.recv(4096).startswith(b"HTTP/1.1 200 ")
    except OSError:
        return False


def start(workers: int, backend: int, folder: Path, operator: bool) -> Start:
    """Start a gateway, wait for its first answer, and measure it at rest."""
    port, path = free_port(), folder / "config.yaml"
    servers = [f"127.0.0.1:{free_port()}" if operator else '"off"' for _ in range(3)]
    path.write_text(CONFIG.format(workers=workers, port=port, backend=backend, servers=servers))
    words = ["taskset", "-c", "0", sys.executable, "-m", "headgate.cli.main", "-f", str(path)]
    began = time.monotonic()
    with (folder / "log").open("wb") as log, subprocess.Popen(words, stdout=log, stderr=log) as process:
        try:
            while not answered(port):
                if process.poll() is not None or time.monotonic() - began > PATIENCE_SECONDS:
                    raise SystemExit((folder / "log").read_text())
                time.sleep(0.001)
            seconds = time.monotonic() - began
            time.sleep(SETTLE_SECONDS)
            pss, alone = procfs.memory(process.pid).pss_kb / MB, procfs.memory_alone_kb(process.pid) / MB
            return Start(seconds, procfs.cpu_us(process.pid) / 1e6, pss, alone)
        finally:
            process.terminate()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--counts", default="1,2,8")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--operator", action="store_true")
    given = options.parse_args()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hello)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    counts = [int(word) for word in given.counts.split(",")]
    print(
        "| workers | start to first answer, s | CPU time of the start, s | PSS of the tree, MB | each further worker, MB "
        "| where nobody else has mapped its files, MB |"
    )
    print("|---|---|---|---|---|---|")
    first: tuple[int, float] | None = None
    for count in counts:
        with tempfile.TemporaryDirectory() as folder:
            found = [start(count, server.server_address[1], Path(folder), given.operator) for _ in range(given.rounds)]
        seconds, cpu, pss, alone = (statistics.median(one[index] for one in found) for index in range(4))
        further = "" if first is None else f"{(pss - first[1]) / (count - first[0]):.1f}"
        first = first or (count, pss)
        print(f"| {count} | {seconds:.2f} | {cpu:.2f} | {pss:.1f} | {further} | {alone:.1f} |")


if __name__ == "__main__":
    main()
