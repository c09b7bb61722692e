"""What looking into a gateway costs it: CPU time of its worker per plain request, and requests per second.

Usage: python -m bench.macro.operating [--against CHECKOUT]

One worker answers pipelined requests of one connection by itself. CPU time comes from the kernel's scheduler
(/proc/<pid>/schedstat), so that other programs on the machine count little. `--against`: another checkout, built, whose
gateway is measured in turn. A CPU profile is made on another core than the worker's, and stops the worker for each sample: what it
costs is told by the throughput under wrk, with a profile and without one in turn.
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
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REQUEST = b"GET /a HTTP/1.1\r\nhost: a\r\n\r\n"
BATCH = 50
COUNT = 20_000
ROUNDS = 7
PROFILE_SECONDS = 5
PROFILE_ROUNDS = 7
# py-spy reads symbols first.
START_SECONDS = 0.5
CONFIG = """
config:
  workerThreads: 1
  adminAddr: 127.0.0.1:{admin}
  statsAddr: "off"
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
        self.port, self.admin, ready = free_ports(3)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "headgate.cli.main", "-c",
             CONFIG.format(port=self.port, admin=self.admin, ready=ready)],
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

    def profile(self) -> None:
        """Make a CPU profile."""
        self.call("GET", f"/debug/pprof/profile?seconds={PROFILE_SECONDS}")

    def rate(self) -> float:
        """Requests per second under wrk, which fills the worker for as long as a profile takes."""
        told = subprocess.run(
            ["wrk", "-t1", "-c32", f"-d{PROFILE_SECONDS}s", f"http://127.0.0.1:{self.port}/a"],
            capture_output=True, check=True, text=True,
        ).stdout  # fmt: skip
        found = re.search(r"Requests/sec:\s+([\d.]+)", told)
        assert found is not None, told
        return float(found[1])

    def profiled(self) -> float:
        """As rate(), while a CPU profile is made."""
        thread = threading.Thread(target=self.profile)
        thread.start()
        time.sleep(START_SECONDS)
        found = self.rate()
        thread.join()
        return found


def profile_cost(gateway: Gateway) -> list[float]:
    """Requests per second with a profile, as a share of those without, round by round."""
    gateway.rate()
    found = []
    for _ in range(PROFILE_ROUNDS):
        plain = gateway.rate()
        profiled = gateway.profiled()
        found.append(profiled / ((plain + gateway.rate()) / 2))
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
        print(f"CPU profile, 100 Hz          {statistics.median(shares):7.3f} of the requests ({shares[0]:.3f} to "
              f"{shares[-1]:.3f} in {len(shares)} rounds)")
    finally:
        for one in (gateway, other):
            if one is not None:
                one.process.terminate()
                one.process.wait()


if __name__ == "__main__":
    main()
