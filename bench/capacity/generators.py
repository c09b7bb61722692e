"""What a request costs a load generator: CPU time of `headgate bench` beside wrk, and over HTTP/2 beside h2load, at the same target.

Usage: python -m bench.capacity.generators [--rounds 5] [--seconds 2] [--connections 8,64]

The target is an nginx on core 0 that answers from memory; generators run on core 1, one after the other in each round. The time is that of user
and system of the generator's process over the requests that it made.

wrk has no open loop. So an open loop is compared with two runs of it: in its closed loop, where it sends as fast as answers come, and with a pause of some
milliseconds before each request (its `delay` hook), which makes it as slow as the open loop: same rate, same connections, and as many waits.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from bench.http2.run import NGINX, free_port, started
from bench.macro.load import DONE
from bench.macro.peers import OTHER_CORE, PROXY_CORE
from headgate.capacity.step import LoadShape, Traffic, run_step
from headgate.capacity.transport import Trust, requests_of, target_of
from headgate.capacity.workload import RequestSpec, TargetPlace

# Of wrk between two requests of a connection, by connections.
PAUSES_MS = {8: 1, 64: 3}
# What a run is compared with, where it is not wrk in its closed loop.
BASES = {"h2load": "h2load", "HTTP/2, closed loop": "h2load", "wrk, paced": "wrk, paced", "open loop, paced": "wrk, paced"}


class Cost(NamedTuple):
    """CPU microseconds a request, and how many a second."""

    cpu_us: float
    rps: float


def children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cost(run: Callable[[], tuple[int, float]]) -> Cost:
    """The cost of a run by processes that have been waited for when it returns; it returns requests and seconds."""
    before = children_cpu()
    requests, seconds = run()
    return Cost((children_cpu() - before) * 1e6 / requests, requests / seconds)


def of_wrk(port: int, connections: int, seconds: int, pause_ms: int = 0) -> tuple[int, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "done.lua"
        # No request() hook: wrk formats its request once, as without a script.
        path.write_text(DONE + (f"delay = function() return {pause_ms} end" if pause_ms else ""))
        words = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(path), f"http://127.0.0.1:{port}/"]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    found = re.search(r'"requests":(\d+),"us":(\d+)', done.stdout)
    assert found is not None, done.stdout
    return int(found[1]), int(found[2]) / 1e6


def of_h2load(port: int, connections: int, seconds: int) -> tuple[int, float]:
    words = ["h2load", f"-c{connections}", "-m8", f"-D{seconds}", f"http://127.0.0.1:{port}/"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found = re.search(r"(\d+) done", done.stdout)
    assert found is not None, done.stdout
    return int(found[1]), float(seconds)


def of_ours(port: int, shape: LoadShape, rate: float) -> Cost:
    """Of the run alone: a process of ours begins as a copy of this one, which says nothing of requests."""
    place = TargetPlace(False, "127.0.0.1", port, "/")
    traffic = Traffic(target_of(place, Trust(), shape.streams > 0), requests_of((RequestSpec("GET", place.target, ()),), place))
    figures = run_step(traffic, shape, rate, None, lambda tick: None)
    assert set(figures.errors) <= {"not sent by the end of the run", "no answer by the end of the run"}, figures.errors
    return Cost(figures.generator_cpu_s * 1e6 / figures.good, figures.good / figures.seconds)


@contextlib.contextmanager
def target(port: int, http2_port: int) -> Iterator[None]:
    """An nginx on a core of its own."""
    answer = "location / { default_type text/plain; return 200 'xxxxxx'; }"
    servers = f"server {{ listen 127.0.0.1:{port}; {answer} }} server {{ listen 127.0.0.1:{http2_port} http2; {answer} }}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nginx.conf"
        path.write_text(NGINX.format(folder=folder, name="target", servers=servers))
        with started(["taskset", "-c", str(PROXY_CORE), "nginx", "-e", "/dev/null", "-c", str(path), "-p", folder], port):
            yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--connections", default="8,64")
    options = parser.parse_args()
    os.sched_setaffinity(0, {OTHER_CORE})
    ports = free_port(), free_port()
    with target(*ports):
        for connections in map(int, options.connections.split(",")):
            compare(ports, connections, options.rounds, options.seconds)


def compare(ports: tuple[int, int], connections: int, rounds: int, seconds: int) -> None:
    port, http2_port = ports
    shape = LoadShape(connections, seconds=float(seconds))
    shape2 = shape._replace(streams=8)
    rate = of_wrk(port, connections, 1)[0]
    pause_ms = PAUSES_MS.get(connections, 1)
    paced = of_wrk(port, connections, 1, pause_ms)[0]
    runs: dict[str, Callable[[], Cost]] = {
        "wrk": lambda: cost(lambda: of_wrk(port, connections, seconds)),
        "closed loop": lambda: of_ours(port, shape, 0.0),
        "open loop at 80 %": lambda: of_ours(port, shape, rate * 0.8),
        "open loop at 40 %": lambda: of_ours(port, shape, rate * 0.4),
        "wrk, paced": lambda: cost(lambda: of_wrk(port, connections, seconds, pause_ms)),
        "open loop, paced": lambda: of_ours(port, shape, float(paced)),
        "open loop at 200 %": lambda: of_ours(port, shape._replace(grace=0.1), rate * 2),
        "h2load": lambda: cost(lambda: of_h2load(http2_port, connections, seconds)),
        "HTTP/2, closed loop": lambda: of_ours(http2_port, shape2, 0.0),
    }
    found: dict[str, list[Cost]] = {name: [] for name in runs}
    for number in range(rounds):
        for name in list(runs)[number % len(runs) :] + list(runs)[: number % len(runs)]:
            found[name].append(runs[name]())
            time.sleep(0.1)
    for name, costs in found.items():
        base_name = BASES.get(name, "wrk")
        ratio = statistics.median(one.cpu_us / base.cpu_us for one, base in zip(costs, found[base_name], strict=True))
        print(
            f"{connections:4} connections  {name:20} {statistics.median(one.cpu_us for one in costs):6.2f} us of CPU a request "
            f"at {statistics.median(one.rps for one in costs):8,.0f}/s  {ratio:.2f} x {base_name}",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
