"""What a short connection costs with several workers: one listening socket for all, or one for each.

Usage: python -m bench.macro.accepting [--workers 2,8] [--turns 12] [--connections 32]

Two gateways run at the same time, with the same configuration. Workers of the first accept from the socket that they share
(`link/accept`), as they do in the product; workers of the second have a socket of their own each, among which the kernel
chooses by the addresses (SO_REUSEPORT). Each is loaded in turn by wrk, whose requests say `connection: close`. What is
compared is the CPU time of all workers for each connection, within a turn.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bench.macro.operating import free_ports
from bench.macro.procfs import tree
from bench.macro.reload import Size, wait_for_mark

SECONDS: Final = 1
CONFIGURATION: Final = """\
config: {{workerThreads: {workers}, adminAddr: '127.0.0.1:{admin}', statsAddr: '127.0.0.1:{stats}',
  readinessAddr: '127.0.0.1:{ready}', logging: {{level: 'request=off,info'}}}}
gateways: {{default: {{port: {port}}}}}
routes:
- name: all
  policies:
    directResponse: {{status: 200, body: ok}}
    responseHeaderModifier: {{set: {{x-mark: m}}}}
"""


def gateway_with_own_sockets(arguments: list[str]) -> int:
    """Run a gateway whose workers do not share their sockets."""
    from headgate.cli.main import main as headgate
    from headgate.net.sockets import open_socket
    from headgate.server import supervisor
    from headgate.server.listen import Acceptor
    from headgate.server.worker import WorkerProcess

    def only_bound(host: str, port: int, *, shared: bool) -> socket.socket:
        """Hold the port without listening: a socket of the supervisor would get connections as well."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind((host, port))
        return sock

    def acceptor(self: Any, key: str, factory: Any, context: Any, handshake_s: float) -> Acceptor:
        host, port = self._sockets[key].getsockname()[:2]
        return Acceptor(open_socket(host, port, shared=True), factory, context, handshake_s)

    supervisor.open_socket = only_bound
    WorkerProcess._acceptor = acceptor  # type: ignore[method-assign]
    run = WorkerProcess.run

    async def alone(self: Any) -> None:
        self._wake_fds = ()
        await run(self)

    WorkerProcess.run = alone  # type: ignore[method-assign]
    return headgate(arguments)


@contextlib.contextmanager
def running(folder: Path, workers: int, own: bool) -> Iterator[tuple[int, list[int]]]:
    """Run a gateway; yield its port and the ids of its workers."""
    port, admin, stats, ready = ports = free_ports(4)
    path = folder / f"{own}.yaml"
    path.write_text(CONFIGURATION.format(workers=workers, port=port, admin=admin, stats=stats, ready=ready))
    module = ["bench.macro.accepting", "--own"] if own else ["headgate.cli.main"]
    words = [sys.executable, "-m", *module, "-f", str(path)]
    gateway = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for_mark(ports[0], Size(0, 0), "m")
        yield port, [pid for pid in tree(gateway.pid) if b"worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    finally:
        gateway.terminate()
        gateway.wait()


def cpu_ns(pids: list[int]) -> list[int]:
    return [int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids]


def load(port: int, pids: list[int], connections: int) -> tuple[float, float]:
    """Load a gateway; return the CPU time of its workers for each connection, us, and the share of the busiest one."""
    before = cpu_ns(pids)
    words = ["wrk", "-t1", f"-c{connections}", f"-d{SECONDS}s", "-H", "connection: close", f"http://127.0.0.1:{port}/svc0"]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    used = [now - then for now, then in zip(cpu_ns(pids), before, strict=True)]
    found = re.search(r"(\d+) requests in", told)
    assert found is not None, told
    return sum(used) / int(found[1]) / 1000, max(used) / sum(used)


def measure(workers: int, turns: int, connections: int) -> str:
    """Return a row of the table."""
    times: dict[bool, list[float]] = {False: [], True: []}
    shares: dict[bool, list[float]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        both = {own: stack.enter_context(running(Path(name), workers, own)) for own in (False, True)}
        for turn in range(-1, turns):
            for own in (False, True) if turn % 2 else (True, False):
                spent, share = load(*both[own], connections)
                if turn >= 0:
                    times[own].append(spent)
                    shares[own].append(share)
    ratios = sorted(one / other for one, other in zip(times[False], times[True], strict=True))
    return (
        f"| {workers} | {connections} | {statistics.median(times[False]):.1f} | {statistics.median(times[True]):.1f} | "
        f"{statistics.median(ratios):.2f} ({ratios[len(ratios) // 4]:.2f} to {ratios[-len(ratios) // 4]:.2f}) | "
        f"{statistics.median(shares[False]):.0%} | {statistics.median(shares[True]):.0%} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", default="2,8")
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--connections", type=int, default=32)
    given = parser.parse_args()
    print(
        "| workers | connections | shared us | own us | shared / own (quartiles) | busiest worker's share of the CPU time, "
        "shared | own |"
    )
    print("|---" * 7 + "|")
    for workers in given.workers.split(","):
        print(measure(int(workers), given.turns, given.connections), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--own"]:
        sys.exit(gateway_with_own_sockets(sys.argv[2:]))
    main()
