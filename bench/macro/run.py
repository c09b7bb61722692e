"""Runs the cases against all peers in turn, several rounds, and writes a result file.

Usage: python -m bench.macro.run [--cases a,b] [--peers a,b] [--seconds 5] [--rounds 3] [--out bench/results/x.json]
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.macro import measure, peers
from bench.macro.cases import CASES, Case

WARM_SECONDS = 1.0
IDLE_CONNECTIONS = 10_000


def start(name: str, case: Case, folder: Path, port: int) -> peers.Process:
    backend = peers.WEB_PORT if case.backend == "web" else peers.AI_PORT
    if name == "headgate":
        return peers.start_headgate(folder, backend, port, case.name)
    return peers.STARTERS[name](folder, backend, port)


def one(
    name: str, case: Case, connections: int, options: argparse.Namespace, folder: Path, port: int
) -> dict[str, Any]:
    """One peer, one case, once."""
    if name == "direct":
        backend = peers.WEB_PORT if case.backend == "web" else peers.AI_PORT
        measure.wait_right(backend, case)
        return measure.load(case, backend, connections, options.seconds, folder)
    process = start(name, case, folder, port)
    try:
        measure.wait_right(port, case)
        at_start = measure.memory_kb(process.popen.pid)
        measure.load(case, port, connections, WARM_SECONDS, folder)
        before = measure.cpu_us(process.popen.pid)
        found = measure.load(case, port, connections, options.seconds, folder)
        found["cpu_us"] = round((measure.cpu_us(process.popen.pid) - before) / found["requests"], 2)
        found["memory_start"] = at_start
        found["memory_after"] = measure.memory_kb(process.popen.pid)
    finally:
        process.stop()
    return found


def summary(rounds: list[dict[str, Any]], base: list[dict[str, Any]] | None) -> dict[str, Any]:
    """Medians and spread; the ratio to nginx is taken within each round."""
    found: dict[str, Any] = {"rounds": rounds, "errors": sum(item["errors"] for item in rounds)}
    found["rps"] = statistics.median(item["rps"] for item in rounds)
    if "cpu_us" in rounds[0]:
        values = [item["cpu_us"] for item in rounds]
        found["cpu_us"] = statistics.median(values)
        found["cpu_us_spread"] = [min(values), max(values)]
        if base:
            pairs = zip(rounds, base, strict=True)
            found["ratio_nginx"] = round(statistics.median(a["cpu_us"] / b["cpu_us"] for a, b in pairs), 3)
    return found


def run_case(case: Case, connections: int, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    chosen = [name for name in case.peers if not options.peers or name in options.peers.split(",")]
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in chosen}
    port = 19200
    for _ in range(options.rounds):
        for name in chosen:
            port += 1
            rounds[name].append(one(name, case, connections, options, folder, port))
    base = rounds.get("nginx")
    result = {name: summary(found, base if name != "nginx" else None) for name, found in rounds.items()}
    for name, found in result.items():
        ratio = found.get("ratio_nginx", "")
        print(f"{case.name:12} c={connections:<4} {name:9} {found.get('cpu_us', ''):>8} us  {found['rps']:>10.0f}/s  "
              f"{ratio} errors={found['errors']}", flush=True)  # fmt: skip
    return result


def footprint(folder: Path) -> dict[str, Any]:
    """Start, memory and idle connections of the gateway and of nginx."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = min(IDLE_CONNECTIONS, hard - 500)
    case = CASES[0]
    result = {}
    for name in ("nginx", "headgate"):
        port = 19190 if name == "nginx" else 19191
        process = start(name, case, folder, port)
        try:
            seconds = measure.wait_right(port, case)
            time.sleep(0.5)
            result[name] = {
                "start_to_first_response_s": round(seconds, 3),
                "memory": measure.memory_kb(process.popen.pid),
                "idle": measure.idle_memory(process.popen.pid, port, count),
            }
        finally:
            process.stop()
        print(f"footprint {name}: {json.dumps(result[name])}", flush=True)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", default="")
    parser.add_argument("--peers", default="")
    parser.add_argument("--connections", default="")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-footprint", action="store_true")
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    wanted = options.cases.split(",") if options.cases else [case.name for case in CASES]
    document: dict[str, Any] = {
        "machine": {"cpu": platform.processor() or platform.machine(), "system": platform.platform(), "cores": 2},
        "method": {"seconds": options.seconds, "rounds": options.rounds},
        "versions": peers.versions(),
        "cases": {},
    }
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as name:
        folder = Path(name)
        backends = [peers.web_backend(folder), peers.ai_backend(folder)]
        time.sleep(1)
        try:
            for case in CASES:
                if case.name not in wanted:
                    continue
                for connections in case.connections:
                    if options.connections and str(connections) not in options.connections.split(","):
                        continue
                    key = f"{case.name}/{connections}"
                    document["cases"][key] = run_case(case, connections, options, folder)
            if not options.no_footprint:
                document["footprint"] = footprint(folder)
        finally:
            for backend in backends:
                backend.stop()
    if options.out:
        Path(options.out).write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
