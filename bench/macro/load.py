"""Loads a port as fast as connections allow: with wrk, whose `done` hook says what it saw, or with the generator of `headgate bench`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import NamedTuple

from bench.macro.cases import Case
from bench.macro.peers import OTHER_CORE
from headgate.capacity.step import LoadShape, Traffic, run_step
from headgate.capacity.transport import Trust, requests_of, target_of
from headgate.capacity.workload import RequestSpec, TargetPlace

DONE = """
done = function(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    'RESULT {"requests":%d,"us":%d,"bytes":%d,"status":%d,"socket":%d,"p50":%d,"p99":%d}\\n',
    summary.requests, summary.duration, summary.bytes, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout, latency:percentile(50), latency:percentile(99)))
end
"""
SEVERAL = """
local wanted, at = {}, 0
init = function(args)
  for i, path in ipairs(paths) do wanted[i] = wrk.format(wrk.method, path) end
end
request = function()
  at = at % #wanted + 1
  return wanted[at]
end
"""


class Load(NamedTuple):
    """What one run of wrk saw. errors: answers other than 2xx/3xx, and connections or requests that failed."""

    requests: int
    seconds: float
    bytes: int
    errors: int
    p50_us: int
    p99_us: int

    @property
    def rps(self) -> float:
        return self.requests / self.seconds

    @property
    def bytes_each(self) -> float:
        return self.bytes / max(1, self.requests)


def script(case: Case, headers: dict[str, str]) -> str:
    """The case as a wrk script."""
    lines = [f'wrk.method = "{"GET" if case.body is None else "POST"}"']
    if case.body is not None:
        lines.append(f"wrk.body = [==[{case.body.decode()}]==]")
    lines += [f'wrk.headers["{name}"] = "{value}"' for name, value in headers.items()]
    if len(case.paths) > 1:
        lines.append("local paths = {" + ",".join(f'"{path}"' for path in case.paths) + "}")
        lines.append(SEVERAL)
    return "\n".join(lines) + DONE


def run_headgate(case: Case, port: int, headers: dict[str, str], connections: int, seconds: int, streams: int = 0) -> Load:
    """Load a port with our own generator, on the processors of this process; BenchError when it fails.

    It judges an answer by its status alone, as wrk does. streams: at a time on each connection of HTTP/2; 0: HTTP/1.1.
    """
    method, body = ("GET", b"") if case.body is None else ("POST", case.body)
    place = TargetPlace(False, "127.0.0.1", port, case.paths[0])
    specs = tuple(RequestSpec(method, path, tuple(headers.items()), body) for path in case.paths)
    traffic = Traffic(target_of(place, Trust(), streams > 0), requests_of(specs, place))
    found = run_step(traffic, LoadShape(connections, streams, seconds=float(seconds), timeout=10.0), 0.0, None, lambda tick: None)
    return Load(
        requests=found.total,
        seconds=found.seconds,
        bytes=found.bytes_read,
        errors=found.failed,
        p50_us=found.latency.percentile(50) // 1000,
        p99_us=found.latency.percentile(99) // 1000,
    )


def run(case: Case, port: int, headers: dict[str, str], connections: int, seconds: int, folder: Path) -> Load:
    """Load a port with wrk from the other core; RuntimeError when wrk fails."""
    path = folder / f"{case.name}.lua"
    path.write_text(script(case, headers))
    words = ["taskset", "-c", str(OTHER_CORE), "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s"]
    words += ["-s", str(path), f"http://127.0.0.1:{port}{case.paths[0]}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=seconds + 60)
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            found = json.loads(line.removeprefix("RESULT "))
            return Load(
                requests=found["requests"],
                seconds=found["us"] / 1e6,
                bytes=found["bytes"],
                errors=found["status"] + found["socket"],
                p50_us=found["p50"],
                p99_us=found["p99"],
            )
    raise RuntimeError(f"wrk: {done.stdout[-300:]} {done.stderr[-300:]}")
