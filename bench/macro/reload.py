"""Reloads beside traffic: start, the longest gap a client sees, when a change is in force, and an unchanged file.

Usage: python -m bench.macro.reload [--routes 1000,10000] [--expressions 0,2] [--rate 500] [--load headgate]

A client in a process of its own sends at a fixed rate over one kept connection. What it notes is the time from when a
request should have been sent to its answer, so that requests which waited behind a stall count with all of their wait.
It is the generator of `headgate bench`, or with `--load client` one of a few lines in Python, as a cross-check.
The same is measured without reloads: that is what the machine does by itself. A change is timed from the moment that
the file is replaced, what the watcher takes to notice it included.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, NamedTuple

from bench.macro.operating import free_ports
from bench.macro.procfs import cpu_us, memory, tree
from headgate.capacity.transport import Trust, requests_of, target_of
from headgate.capacity.workload import RequestSpec, TargetPlace
from headgate_engine.load.arrivals import Arrivals
from headgate_engine.load.generator import Generator

START_SECONDS: Final = 300.0
QUIET_SECONDS: Final = 5.0
RELOADS: Final = 5
# How long the generator runs between two looks at the pipe, and in all.
SLICE_NS: Final = 20_000_000
MOST_NS: Final = 24 * 3600 * 1_000_000_000


class Size(NamedTuple):
    routes: int
    expressions: int


def configuration(size: Size, ports: list[int], mark: str) -> str:
    """Return the file; `mark` is in a header of the middle route's answers."""
    port, admin, stats, ready = ports
    lines = [
        f"config: {{workerThreads: 1, adminAddr: '127.0.0.1:{admin}', statsAddr: '127.0.0.1:{stats}',",
        f"  readinessAddr: '127.0.0.1:{ready}', logging: {{level: 'request=off,info'}}}}",
        f"gateways:\n  default:\n    port: {port}\nroutes:",
    ]
    for number in range(size.routes):
        lines += [f"- name: r{number}", "  matches:", "  - path:", f"      pathPrefix: /svc{number}", "  policies:"]
        lines += ["    directResponse:", "      status: 200", "      body: ok"]
        if size.expressions:
            rule = f'request.path.startsWith("/svc{number}") && request.method in ["GET", "POST"]'
            lines += ["    authorization:", "      rules:", f"      - '{rule}'"]
        if size.expressions > 1:
            lines += ["    transformations:", "      request:", "        set:"]
            lines.append(f"          x-route: '\"r{number}-\" + request.method'")
        if number == size.routes // 2:
            lines += ["    responseHeaderModifier:", "      set:", f"        x-mark: '{mark}'"]
    return "\n".join(lines) + "\n"


def ask(connection: socket.socket, path: str) -> bytes:
    """Return a whole answer."""
    connection.sendall(f"GET {path} HTTP/1.1\r\nhost: a\r\n\r\n".encode())
    data = b""
    while not data.endswith(b"\r\n\r\nok"):
        more = connection.recv(65536)
        if not more:
            raise ConnectionError("the gateway has hung up")
        data += more
    return data


def send_at_a_rate(port: int, rate: int, pipe: Connection) -> None:
    """Send until told; each word on the pipe is answered by the longest time since the last, in ms."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        due, longest = time.perf_counter(), 0.0
        while True:
            if pipe.poll():
                pipe.recv()
                pipe.send(longest * 1000)
                due, longest = time.perf_counter(), 0.0
            time.sleep(max(0.0, due - time.perf_counter()))
            ask(connection, "/svc0")
            longest = max(longest, time.perf_counter() - due)
            due += 1 / rate


def generate_at_a_rate(port: int, rate: int, pipe: Connection) -> None:
    """The same with the generator of `headgate bench`."""
    place = TargetPlace(False, "127.0.0.1", port, "/svc0")
    requests = requests_of((RequestSpec("GET", place.target, ()),), place)
    generator = Generator(target_of(place, Trust(), False), requests, 1)
    generator.open()
    generator.start(Arrivals(time.monotonic_ns(), float(rate), MOST_NS))
    ledger = generator.ledger
    while not generator.run(time.monotonic_ns() + SLICE_NS):
        if ledger.failed:
            raise ConnectionError(f"requests failed: {ledger.errors}")
        if pipe.poll():
            pipe.recv()
            pipe.send(ledger.window.most / 1e6)
            ledger.window.clear()


SENDERS: Final = {"headgate": generate_at_a_rate, "client": send_at_a_rate}


def longest(pipe: Connection) -> float:
    """Return the longest wait since the last question, ms."""
    pipe.send(None)
    found: float = pipe.recv()
    return found


def wait_for_mark(port: int, size: Size, mark: str) -> float:
    """Return the moment at which the middle route answers with the mark."""
    end = time.perf_counter() + START_SECONDS
    while time.perf_counter() < end:
        try:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                if f"x-mark: {mark}".encode() in ask(connection, f"/svc{size.routes // 2}"):
                    return time.perf_counter()
        except OSError:
            pass
        time.sleep(0.002)
    raise TimeoutError(f"no {mark!r} within {START_SECONDS} s")


def workers_of(root: int) -> list[int]:
    return [pid for pid in tree(root) if b"worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def replace(path: Path, text: str) -> float:
    """Put another file in the place of one; return when."""
    other = path.with_suffix(".new")
    other.write_text(text)
    now = time.perf_counter()
    os.replace(other, path)
    return now


def measure(size: Size, options: argparse.Namespace, folder: Path) -> str:
    """Return a row of the table."""
    ports, path = free_ports(4), folder / "config.yaml"
    replace(path, configuration(size, ports, "m0"))
    began = time.perf_counter()
    words = [sys.executable, "-m", "headgate.cli.main", "-f", str(path)]
    gateway = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        start = wait_for_mark(ports[0], size, "m0") - began
        ours, theirs = get_context("spawn").Pipe()
        client = get_context("spawn").Process(target=SENDERS[options.load], args=(ports[0], options.rate, theirs), daemon=True)
        client.start()
        longest(ours)
        time.sleep(QUIET_SECONDS)
        quiet, before = longest(ours), memory(gateway.pid).pss_kb
        times, gaps = [], []
        for number in range(1, RELOADS + 1):
            mark = f"m{number}"
            changed = replace(path, configuration(size, ports, mark))
            times.append(wait_for_mark(ports[0], size, mark) - changed)
            time.sleep(1.0)
            gaps.append(longest(ours))
        client.kill()
        used = {pid: cpu_us(pid) for pid in workers_of(gateway.pid)}
        os.utime(path)
        time.sleep(QUIET_SECONDS)
        idle = sum(cpu_us(pid) - before_us for pid, before_us in used.items()) / 1000
        grown = (memory(gateway.pid).pss_kb - before) / 1024
    finally:
        gateway.terminate()
        gateway.wait()
    return (
        f"| {size.routes:,} | {size.expressions} | {start:.2f} | {quiet:.1f} | {sorted(gaps)[RELOADS // 2]:.1f} | "
        f"{max(gaps):.1f} | {sorted(times)[RELOADS // 2] * 1000:.0f} | {idle:.0f} | {grown:.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--routes", default="1000,10000")
    parser.add_argument("--expressions", default="0,2")
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--load", choices=tuple(SENDERS), default="headgate", help="who sends the requests")
    given = parser.parse_args()
    print(
        "| routes | expressions each | start s | longest gap without reloads ms | median of the longest per reload ms "
        "| longest ms | change in force ms | workers' CPU for an unchanged file, 5 s, ms | growth of PSS MB |"
    )
    print("|---" * 9 + "|")
    for routes in given.routes.split(","):
        for expressions in given.expressions.split(","):
            with tempfile.TemporaryDirectory() as folder:
                print(measure(Size(int(routes), int(expressions)), given, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
