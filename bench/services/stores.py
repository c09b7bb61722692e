"""What stores beside the way of a request cost: limits that replicas share through Redis, the request log in PostgreSQL.

Usage: python -m bench.services.stores [--seconds 2] [--rounds 5] [--connections 32] [--rate 500]

Needs nginx, wrk, redis-server and PostgreSQL. Each case is a real gateway with one worker; CPU time is that of all its processes, user and kernel,
for each request: medians of the rounds, in which the cases take turns. `more`: beyond the case that the table names. Then what a worker's loop does in one
turn (`bench.macro.timed_gateway`) while a client asks at a fixed rate: what a request waits for, by CPU time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.end_to_end.redis_rig import RedisServer
from tests.oracles.postgres_rig import postgres

from bench.macro import peers, procfs
from bench.macro.reload import send_at_a_rate
from bench.macro.timed_gateway import VARIABLE, turns
from bench.services.run import COMPLETED, FAULTS

# Never used up, and a tenth of it, which a lease is, lasts a second at 10,000 requests a second.
LIMIT: Final = {"localRateLimit": [{"requests": 100_000, "unit": "Seconds"}]}
# Bounds of the classes of turns, ms.
BOUNDS: Final = (0.2, 0.5, 1.0, 2.0, 5.0)


class StoreCase(NamedTuple):
    """`base`: the case that is the same without the store."""

    name: str
    base: str
    config: dict[str, Any]
    policies: dict[str, Any]


def cases(redis: int, database: str, folder: Path) -> list[StoreCase]:
    def shared(mode: str) -> dict[str, Any]:
        return {"sharedState": {"redis": {"url": f"redis://127.0.0.1:{redis}", "mode": mode}}}

    return [
        StoreCase("plain", "", {}, {}),
        StoreCase("limit", "plain", {}, LIMIT),
        StoreCase("limit-share", "limit", shared("share"), LIMIT),
        StoreCase("limit-exact", "limit", shared("exact"), LIMIT),
        StoreCase("log-sqlite", "plain", {"database": {"url": f"sqlite://{folder}/data.db"}}, {}),
        StoreCase("log-postgres", "plain", {"database": {"url": database}}, {}),
    ]


@contextlib.contextmanager
def running(case: StoreCase, backend: int, folder: Path, *, timed: bool = False) -> Iterator[tuple[int, int]]:
    """A gateway; its process and port."""
    port, admin, stats, ready = (peers.free_port() for _ in range(4))
    told = {"workerThreads": 1, "adminAddr": f"127.0.0.1:{admin}", "statsAddr": f"127.0.0.1:{stats}", "readinessAddr": f"127.0.0.1:{ready}"}
    tree = {
        "config": {**told, **case.config}, "gateways": {"default": {"port": port}},
        "routes": [{"name": "all", "policies": case.policies, "backends": [{"host": f"127.0.0.1:{backend}"}]}],
    }  # fmt: skip
    path = folder / f"{case.name}.json"
    path.write_text(json.dumps(tree))
    module = "bench.macro.timed_gateway" if timed else "headgate.cli.main"
    process = subprocess.Popen(
        [sys.executable, "-m", module, "-f", str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, VARIABLE: str(folder)},
    )  # fmt: skip
    try:
        while process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        yield process.pid, port
    finally:
        process.terminate()
        process.wait()


def loaded(port: int, options: argparse.Namespace) -> int:
    """Load a gateway. Return how many requests were answered."""
    words = ["wrk", "-t", "1", "-c", str(options.connections), "-d", f"{options.seconds}s", f"http://127.0.0.1:{port}/small"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found = COMPLETED.search(done.stdout)
    if found is None or FAULTS.search(done.stdout):
        raise RuntimeError(done.stdout)
    return int(found[1])


def costs(found: list[StoreCase], backend: int, folder: Path, options: argparse.Namespace) -> None:
    """Print CPU time for each request."""
    spent: dict[str, list[float]] = {case.name: [] for case in found}
    with contextlib.ExitStack() as stack:
        gateways = [(case, *stack.enter_context(running(case, backend, folder))) for case in found]
        for _, _, port in gateways:
            loaded(port, options)
        for _ in range(options.rounds):
            for case, pid, port in gateways:
                before = procfs.cpu_us(pid)
                made = loaded(port, options)
                spent[case.name].append((procfs.cpu_us(pid) - before) / made)
    for case in found:
        more = "" if not case.base else f" (+{statistics.median(spent[case.name]) - statistics.median(spent[case.base]):.1f} beyond {case.base})"
        print(f"{case.name:14} {statistics.median(spent[case.name]):6.1f} us{more}, {min(spent[case.name]):.1f} to {max(spent[case.name]):.1f}", flush=True)


def lags(found: list[StoreCase], backend: int, folder: Path, options: argparse.Namespace) -> None:
    """Print how long turns of the worker's loop take."""
    for case in found:
        own = folder / f"turns-{case.name}"
        own.mkdir()
        with running(case, backend, own, timed=True) as (_, port):
            mine, theirs = get_context("spawn").Pipe()
            client = get_context("spawn").Process(target=send_at_a_rate, args=(port, options.rate, theirs), daemon=True)
            client.start()
            time.sleep(2)
            since = time.perf_counter()
            time.sleep(options.seconds * options.rounds)
            seen = [turn.ms for turn in turns(own, since)]
            client.kill()
            client.join()
            mine.close()
        classes = ", ".join(f"{sum(ms >= bound for ms in seen)} of {bound} ms and more" for bound in BOUNDS)
        print(f"{case.name:14} longest turn {max(seen, default=0.0):.2f} ms; {classes}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--rate", type=int, default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        backend = peers.start_backend("web", folder)
        stack.callback(backend.stop)
        redis = RedisServer(folder)
        stack.callback(redis.kill)
        server = stack.enter_context(postgres())
        found = cases(redis.port, server.url(server.database()), folder)
        costs(found, backend.port, folder, options)
        lags([case for case in found if case.name in ("plain", "limit-share", "log-sqlite", "log-postgres")], backend.port, folder, options)


if __name__ == "__main__":
    main()
