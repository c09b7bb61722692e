"""What looking into a gateway costs it: CPU time of its worker per plain request, and requests per second.

Usage: python -m bench.macro.operating [--against CHECKOUT]

One worker answers pipelined requests of one connection by itself. CPU time comes from the kernel's scheduler
(/proc/<pid>/schedstat), so that other programs on the machine count little. `--against`: another checkout, built, whose
gateway is measured in turn. A CPU profile takes time of other processes, and stops the worker for each sample: what it
costs is told by the requests that a worker still answers while wrk fills it and a profile is made, from its first
moment to its last, beside those of the times before and behind it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REQUEST = b"GET /a HTTP/1.1\r\nhost: a\r\n\r\n"
BATCH = 50
COUNT = 20_000
ROUNDS = 7
# The default of the endpoint.
PROFILE_SECONDS = 10
PROFILE_ROUNDS = 8
COUNTERS = re.compile(r"^\w*_requests_total\{.*\} ([\d.e+]+)$", re.MULTILINE)
CONFIG = """
config:
  workerThreads: 1
  adminAddr: 127.0.0.1:{admin}
  statsAddr: 127.0.0.1:{stats}
  readinessAddr: 127.0.0.1:{ready}
  logging: {{level: "request=off,info"}}
gateways:
  default: {{port: {port}}}
routes:
- policies: {{directResponse: {{status: 200, body: x}}}}
"""


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(socket.socket()) for _ in range(count)]
        for sock in socks:
            sock.bind(("127.0.0.1", 0))
        return [sock.getsockname()[1] for sock in socks]


class Gateway:
    """One gateway of a checkout, and a connection to it."""

    def __init__(self, root: Path) -> None:
        self.port, self.admin, self.stats, ready = free_ports(4)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "headgate.cli.main", "-c",
             CONFIG.format(port=self.port, admin=self.admin, stats=self.stats, ready=ready)],
            env={**os.environ, "PYTHONPATH": f"{root}/engine:{root}/pysrc", "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        self._wait(f"http://127.0.0.1:{ready}/healthz/ready")
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        self._worker = int(children[0])
        self._sock = socket.create_connection(("127.0.0.1", self.port))
        self._sock.sendall(REQUEST)
        self._size = len(self._sock.recv(65536))

    def _wait(self, url: str) -> None:
        while True:
            if self.process.poll() is not None:
                raise SystemExit("the gateway does not start")
            with contextlib.suppress(OSError):
                urllib.request.urlopen(url, timeout=2).close()
                return
            time.sleep(0.1)

    def call(self, method: str, path: str) -> bytes:
        request = urllib.request.Request(f"http://127.0.0.1:{self.admin}{path}", method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return bytes(answer.read())

    def _cpu_ns(self) -> int:
        return int(Path(f"/proc/{self._worker}/schedstat").read_text().split()[0])

    def run(self, count: int = COUNT) -> tuple[float, float]:
        """Nanoseconds of CPU per request, and requests per second."""
        cpu, began = self._cpu_ns(), time.perf_counter()
        for _ in range(count // BATCH):
            self._sock.sendall(REQUEST * BATCH)
            missing = self._size * BATCH
            while missing:
                missing -= len(self._sock.recv(min(missing, 1 << 20)))
        return (self._cpu_ns() - cpu) / count, count / (time.perf_counter() - began)

    def cpu(self) -> float:
        return statistics.median(self.run()[0] for _ in range(ROUNDS))

    @contextlib.contextmanager
    def watcher(self) -> Iterator[None]:
        """A watcher that waits for another request."""
        text = "POST /debug/trace?expression=request.path==%22/no%22 HTTP/1.1\r\nhost: localhost\r\n\r\n"
        with socket.create_connection(("127.0.0.1", self.admin)) as sock:
            sock.sendall(text.encode())
            seen = b""
            while b": ready" not in seen:
                seen += sock.recv(4096)
            yield

    @contextlib.contextmanager
    def page(self) -> Iterator[None]:
        """An admin page that is looked at: it asks once a second."""
        over = threading.Event()

        def look() -> None:
            while not over.wait(1):
                self.call("GET", "/api/state")

        thread = threading.Thread(target=look)
        thread.start()
        yield
        over.set()
        thread.join()

    def _answered(self) -> float:
        """Requests so far."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.stats}/metrics", timeout=10) as answer:
            return sum(float(found) for found in COUNTERS.findall(answer.read().decode()))

    def rate(self, during: Callable[[], object]) -> float:
        """Requests per second meanwhile."""
        count, began = self._answered(), time.perf_counter()
        during()
        return (self._answered() - count) / (time.perf_counter() - began)

    def profile(self) -> None:
        """Make a CPU profile."""
        self.call("GET", f"/debug/pprof/profile?seconds={PROFILE_SECONDS}")

    @contextlib.contextmanager
    def filled(self) -> Iterator[None]:
        """As many requests as the worker can answer."""
        words = ["wrk", "-t1", "-c32", "-d1h", f"http://127.0.0.1:{self.port}/a"]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL) as load:
            try:
                time.sleep(1)
                yield
            finally:
                load.terminate()


def profile_cost(gateway: Gateway) -> list[float]:
    """Requests per second with a profile, as a share of those before and behind it, round by round."""
    found = []
    with gateway.filled():
        plain = gateway.rate(lambda: time.sleep(PROFILE_SECONDS))
        for _ in range(PROFILE_ROUNDS):
            profiled = gateway.rate(gateway.profile)
            before, plain = plain, gateway.rate(lambda: time.sleep(PROFILE_SECONDS))
            found.append(2 * profiled / (before + plain))
    return sorted(found)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.macro.operating", description=__doc__)
    parser.add_argument("--against", type=Path, help="another checkout, built")
    options = parser.parse_args()
    gateway = Gateway(ROOT)
    other = None if options.against is None else Gateway(options.against)
    try:
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(ROUNDS):
            ours.append(gateway.run()[0])
            if other is not None:
                theirs.append(other.run()[0])
        print(f"nobody looks                 {statistics.median(ours):7.0f} ns CPU per request")
        if theirs:
            print(f"the other checkout           {statistics.median(theirs):7.0f}")
        with gateway.watcher():
            print(f"a trace waits for another    {gateway.cpu():7.0f}")
        with gateway.page():
            print(f"the admin page is open       {gateway.cpu():7.0f}")
        gateway.call("POST", "/debug/pprof/heap?rate=524288")
        print(f"heap sampled, 512 KiB        {gateway.cpu():7.0f}")
        gateway.call("POST", "/debug/pprof/heap?rate=0")
        shares = profile_cost(gateway)
        error = statistics.stdev(shares) / len(shares) ** 0.5
        print(f"CPU profile, 100 Hz          {statistics.mean(shares):7.3f} of the requests, standard error {error:.3f} "
              f"({shares[0]:.3f} to {shares[-1]:.3f} in {len(shares)} rounds)")
    finally:
        for one in (gateway, other):
            if one is not None:
                one.process.terminate()
                one.process.wait()


if __name__ == "__main__":
    main()
