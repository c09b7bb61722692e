"""Runs the cases against all peers, round by round, and writes a result file.

Usage: python -m bench.macro.run [--cases a,b] [--peers a,b] [--connections 32,128,512] [--seconds 3] [--rounds 3]
                                 [--turns 1] [--load wrk] [--no-footprint] [--out bench/results/x.json]

In a round every case is run against every peer, one right after the other, so that a noisy minute meets all of them;
the order is turned by one from round to round. With --turns, the processes of a round are used several times: many short
loads beside each other, for a machine that others use as well. Proxies run on core 0, backends and wrk on core 1.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.macro import check, footprint, load, peers, procfs, summary
from bench.macro.cases import BY_NAME, CASES, Case
from headgate.capacity.errors import BenchError

SCHEMA = 1
WARM_SECONDS = 1
FAILURES = (check.WrongAnswer, BenchError, OSError, RuntimeError)
# Bytes of an answer besides its body: head, chunk lines, answers under way when the time was up.
HEAD_BYTES = 1200


class Farm:
    """The processes of one round: backends, and each proxy once per setting, started when first asked for."""

    def __init__(self, folder: Path, generator: str) -> None:
        self._folder = folder
        self._generator = generator
        self._running: dict[tuple[str, str], peers.Running] = {}
        self._ready: dict[tuple[str, str], check.Ready] = {}
        for kind in ("web", "ai"):
            self._running["backend", kind] = peers.start_backend(kind, self._place(f"backend-{kind}"))

    def _place(self, name: str) -> Path:
        path = self._folder / name
        path.mkdir()
        return path

    def backend(self, setting: str) -> peers.Running:
        return self._running["backend", peers.BACKEND_OF[setting]]

    def peer(self, name: str, case: Case, connections: int) -> tuple[peers.Running, check.Ready]:
        """A peer that answered the case rightly and is warm."""
        running = self.backend(case.setting) if name == "direct" else self._running.get((name, case.setting))
        if running is None:
            place = self._place(f"{name}-{case.setting}")
            running = peers.start_proxy(name, case.setting, place, self.backend(case.setting).port)
            self._running[name, case.setting] = running
        if (name, case.name) not in self._ready:
            ready = check.wait(running.port, case)
            load.run(case, running.port, ready.headers, connections, WARM_SECONDS, self._folder)
            self._ready[name, case.name] = ready
        return running, self._ready[name, case.name]

    def sample(self, name: str, case: Case, connections: int, seconds: int) -> dict[str, Any]:
        """Load a peer once. cpu_us: microseconds per request; busy: share of one core that the peer used."""
        running, ready = self.peer(name, case, connections)
        before = procfs.cpu_us(running.pid)
        if self._generator == "headgate":
            seen = load.run_headgate(case, running.port, ready.headers, connections, seconds)
        else:
            seen = load.run(case, running.port, ready.headers, connections, seconds, self._folder)
        used = procfs.cpu_us(running.pid) - before
        if running.popen.poll() is not None:
            raise check.WrongAnswer(f"{name} ended: {running.complaint()}")
        if running.output is not None and running.output.stat().st_size:
            raise check.WrongAnswer(f"{name} is to write no access log and does")
        if seen.errors or not seen.requests:
            raise check.WrongAnswer(f"{seen.errors} errors in {seen.requests} requests")
        if not ready.size * 0.95 <= seen.bytes_each <= ready.size * 1.05 + HEAD_BYTES:
            raise check.WrongAnswer(f"{seen.bytes_each:.0f} bytes per answer, its body has {ready.size}")
        direct = name == "direct"
        return {
            "cpu_us": None if direct else round(used / seen.requests, 3),
            "busy": None if direct else round(used / 1e6 / seen.seconds, 3),
            "rps": round(seen.rps, 1),
            "p50_us": seen.p50_us,
            "p99_us": seen.p99_us,
            "requests": seen.requests,
            "bytes_each": round(seen.bytes_each, 1),
        }

    def stop(self) -> None:
        for running in reversed(self._running.values()):
            running.stop()


class Bench:
    """All samples of a run."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options = options
        self.samples: dict[summary.Key, list[summary.Sample]] = {}
        self.problems: dict[summary.Key, list[str]] = {}
        self.footprints: dict[str, list[dict[str, float]]] = {}
        self._folder = folder

    @contextlib.contextmanager
    def farm(self, number: int) -> Iterator[Farm]:
        place = self._folder / f"round{number}"
        place.mkdir()
        farm = Farm(place, self.options.load)
        try:
            yield farm
        finally:
            farm.stop()

    def peers_of(self, case: Case, number: int) -> list[str]:
        chosen = case.of(self.options.peers)
        turn = number % len(chosen) if chosen else 0
        return chosen[turn:] + chosen[:turn]

    def round(self, number: int) -> None:
        """Every case against every peer, once per turn."""
        with self.farm(number) as farm:
            for turn in range(number * self.options.turns, (number + 1) * self.options.turns):
                for case in self.options.cases:
                    for connections in case.connections:
                        if connections in self.options.connections:
                            self._case(farm, case, connections, turn)

    def _case(self, farm: Farm, case: Case, connections: int, number: int) -> None:
        # The order of rows is that of the table, whatever the order of measurement.
        for name in case.of(self.options.peers):
            self.samples.setdefault((case.name, connections, name), [])
        for name in self.peers_of(case, number):
            key = (case.name, connections, name)
            try:
                found = farm.sample(name, case, connections, self.options.seconds)
            except FAILURES as error:
                self.problems.setdefault(key, []).append(f"round {number}: {error}")
                print(f"  {case.name} c={connections} {name}: INVALID: {error}", flush=True)
                continue
            self.samples[key].append({"round": number, **found})
            cost = f"{found['cpu_us']:8.2f} us" if found["cpu_us"] else " " * 11
            print(f"  {case.name:12} c={connections:<4} {name:13} {cost} {found['rps']:>9.0f}/s "
                  f"p50 {found['p50_us']:>6} p99 {found['p99_us']:>6} us", flush=True)  # fmt: skip

    def footprint(self, number: int, descriptors: int) -> None:
        """Start and memory of every proxy, once."""
        names = [name for name in peers.PROXIES if name in self.options.peers and name not in peers.LOGGERS]
        with self.farm(number) as farm:
            backend = farm.backend("plain").port
            check.wait(backend, footprint.CASE)
            for name in names:
                place = self._folder / f"footprint-{name}-{number}"
                place.mkdir()
                try:
                    found = footprint.measure(name, backend, place, descriptors)
                except FAILURES as error:
                    self.problems.setdefault(("footprint", 0, name), []).append(f"round {number}: {error}")
                    print(f"  footprint {name}: INVALID: {error}", flush=True)
                    continue
                self.footprints.setdefault(name, []).append(found)
                print(f"  footprint {name:9} " + " ".join(f"{k}={v:.4g}" for k, v in found.items()), flush=True)

    def document(self, about: dict[str, Any]) -> dict[str, Any]:
        """The result file."""
        plain = {key: found for key, found in self.problems.items() if key[0] != "footprint"}
        found = {**about, "rows": summary.rows(self.samples, plain)}
        found["footprint"] = summary.footprint(self.footprints)
        found["footprint_problems"] = {key[2]: list for key, list in self.problems.items() if key[0] == "footprint"}
        found["targets"] = summary.targets(found)
        return found


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line; leaves out peers that are not installed."""
    parser = argparse.ArgumentParser(prog="python -m bench.macro.run", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--cases", default=",".join(BY_NAME), help="of " + ", ".join(BY_NAME))
    parser.add_argument("--peers", default=",".join(peers.DEFAULT), help="of " + ", ".join(peers.NAMES))
    parser.add_argument("--connections", default="1,32,128,512", help="of those that a case lists")
    parser.add_argument("--seconds", type=int, default=3, help="of one load")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turns", type=int, default=1, help="how often each round goes through the cases")
    parser.add_argument("--load", choices=("wrk", "headgate"), default="wrk", help="the generator; the other one as a cross-check")
    parser.add_argument("--no-footprint", action="store_true", help="leave out start time and memory")
    parser.add_argument("--out", default="", help="where to write the result file")
    options = parser.parse_args(arguments)
    for word in options.cases.split(","):
        if word and word not in BY_NAME:
            parser.error(f"no case {word!r}")
    for word in options.peers.split(","):
        if word not in peers.NAMES:
            parser.error(f"no peer {word!r}")
    wanted = options.cases.split(",")
    options.cases = [case for case in CASES if case.name in wanted]
    options.connections = {int(word) for word in options.connections.split(",")}
    chosen = options.peers.split(",")
    for name in chosen:
        if why := peers.missing(name):
            print(f"leaving out {name}: {why}", file=sys.stderr)
    options.peers = [name for name in chosen if not peers.missing(name)]
    return options


def main(arguments: list[str] | None = None) -> int:
    """Run; 1 when a row is not valid."""
    options = parse(arguments)
    os.sched_setaffinity(0, {peers.OTHER_CORE})
    descriptors = peers.raise_descriptor_limit()
    started, steal = time.time(), procfs.steal_ticks()
    about: dict[str, Any] = {
        "schema": SCHEMA,
        "date": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime()),
        "machine": procfs.machine(),
        "versions": peers.versions(),
        "options": {"seconds": options.seconds, "rounds": options.rounds, "turns": options.turns, "load": options.load},
        "load_average_before": [round(value, 2) for value in os.getloadavg()],
    }
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as name:
        bench = Bench(options, Path(name))
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds}", flush=True)
            bench.round(number)
            if not options.no_footprint:
                bench.footprint(options.rounds + number, descriptors)
            document = bench.document(about)
            document["seconds_taken"] = round(time.time() - started)
            document["steal_ticks"] = procfs.steal_ticks() - steal
            if options.out:
                Path(options.out).parent.mkdir(parents=True, exist_ok=True)
                Path(options.out).write_text(json.dumps(document, indent=1) + "\n")
    for target in document["targets"]:
        verdict = "reached" if target["reached"] else "MISSED"
        print(
            f"{target['title']:40} {target['value']['median']:>9} {target['unit']:2} <= {target['limit']:<7} {verdict}"
        )
    return 1 if bench.problems else 0


if __name__ == "__main__":
    sys.exit(main())
