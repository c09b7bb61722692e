"""What a reload takes of a worker's loop: the turns of the loop by CPU time, for several kinds of changes.

Usage: python -m bench.macro.turns [--routes 10000] [--expressions 0,2] [--repeat 3] [--changes route,more,...]

The gateway is started with the timer of `bench.macro.timed_gateway`. For each change a line says how long the file took to be
in force, how much CPU time supervisor and workers used for it, how many turns took how long, and the longest ones. A client
sends at a fixed rate meanwhile. CPU time is what other programs of the machine hardly change.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Final, NamedTuple

from bench.macro.operating import free_ports
from bench.macro.reload import Size, configuration, longest, replace, send_at_a_rate, wait_for_mark
from bench.macro.timed_gateway import VARIABLE, Turn, turns

# Bounds of the classes of turns, ms.
BOUNDS: Final = (0.2, 1.0, 1.5, 2.0, 3.0, 5.0)
RATE: Final = 500
# After a change is in force, its predecessor is let go of, in turns as well.
SETTLE_SECONDS: Final = 1.5
# What all files of a run have: a backend that two routes use, and a policy that targets a route.
BACKEND: Final = """\
backends:
- name: named
  host: 127.0.0.1:{port}
policies:
- name: {{name: targeted, namespace: default}}
  target: {{route: {{name: r1, namespace: default}}}}
  policy: {{timeout: {{requestTimeout: {seconds}s}}}}
"""
USERS: Final = """\
- name: user
  matches: [{path: {pathPrefix: /user}}]
  backends: [{backend: /named}]
"""
MCP: Final = """\
- name: tools
  matches: [{path: {pathPrefix: /tools}}]
  backends: [{mcp: {targets: [{name: one, mcp: {host: "http://127.0.0.1:9"}}]}}]
"""
AI = """\
- name: model
  matches: [{path: {pathPrefix: /model}}]
  backends: [{ai: {name: model, provider: {openAI: {}}, policies: {backendAuth: {key: key}}}}]
"""


class Text(NamedTuple):
    """A file: everything but the routes, the routes of the size, and more routes. `ended`: with a line end."""

    size: Size
    ports: list[int]
    mark: str
    number: int = 0
    backend: int = 9
    seconds: int = 10
    more: str = USERS
    ended: bool = True

    def text(self) -> str:
        """Return the file."""
        start = configuration(self.size, self.ports, self.mark)
        if self.number:
            # Another text in every route, which the answers do not show.
            start = start.replace("      body: ok", f"      body: ok\n      headers: {{x-turn: '\"{self.number}\"'}}")
        head, mark, routes = start.partition("routes:\n")
        found = head + BACKEND.format(port=self.backend, seconds=self.seconds) + mark + routes + self.more
        return found if self.ended else found.rstrip("\n")


CHANGES: Final[dict[str, Callable[[Text, int], Text]]] = {
    "route": lambda text, number: text,
    "more": lambda text, number: text._replace(more=text.more + USERS.replace("user", f"user{number}")),
    "backend": lambda text, number: text._replace(backend=number + 10),
    "policy": lambda text, number: text._replace(seconds=number + 10),
    "unended": lambda text, number: text._replace(ended=not text.ended),
    "every": lambda text, number: text._replace(number=number),
    "mcp": lambda text, number: text._replace(more=text.more + MCP.replace("tools", f"tools{number}")),
    "ai": lambda text, number: text._replace(more=text.more + AI.replace("model", f"model{number}")),
}


class Measured(NamedTuple):
    """One change. `supervisor_ms`: CPU time of the supervisor; `found`: the turns of the worker; `gap_ms`: the client's."""

    in_force_ms: float
    supervisor_ms: float
    found: list[Turn]
    gap_ms: float

    def row(self, name: str) -> str:
        """Return the line of a change."""
        edges = (*BOUNDS, float("inf"))
        counts = [sum(low <= turn.ms < high for turn in self.found) for low, high in pairwise(edges)]
        highest = " ".join(f"{ms:.1f}" for ms in sorted((turn.ms for turn in self.found), reverse=True)[:3])
        return (
            f"| {name} | {self.in_force_ms:.0f} | {self.supervisor_ms:.0f} | {sum(turn.ms for turn in self.found):.0f} | "
            f"{' | '.join(map(str, counts))} | {highest} | {self.gap_ms:.1f} |"
        )


def own_cpu_ms(pid: int) -> float:
    """Return the CPU time of one process, all threads, in milliseconds."""
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e6


def measure(size: Size, names: list[str], repeat: int, folder: Path) -> None:
    """Print the lines of all changes at one size."""
    path, written = folder / "config.yaml", folder / "turns"
    written.mkdir()
    text = Text(size, free_ports(4), "m0")
    replace(path, text.text())
    words = [sys.executable, "-m", "bench.macro.timed_gateway", "-f", str(path)]
    environ = {**os.environ, VARIABLE: str(written)}
    gateway = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environ)
    try:
        wait_for_mark(text.ports[0], size, text.mark)
        ours, theirs = get_context("spawn").Pipe()
        client = get_context("spawn").Process(target=send_at_a_rate, args=(text.ports[0], RATE, theirs), daemon=True)
        client.start()
        number = 0
        for name in names:
            for turn in range(1, repeat + 1):
                number += 1
                text = CHANGES[name](text._replace(mark=f"m{number}"), number)
                content = text.text()
                longest(ours)
                before, changed = own_cpu_ms(gateway.pid), replace(path, content)
                in_force = wait_for_mark(text.ports[0], size, text.mark) - changed
                time.sleep(SETTLE_SECONDS)
                used = own_cpu_ms(gateway.pid) - before
                found = Measured(in_force * 1000, used, turns(written, changed), longest(ours))
                print(found.row(f"{size.expressions} | {name} {turn}"), flush=True)
        client.kill()
    finally:
        gateway.terminate()
        gateway.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--routes", type=int, default=10_000)
    parser.add_argument("--expressions", default="0,2")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--changes", default=",".join(CHANGES))
    given = parser.parse_args()
    edges = [*map(str, BOUNDS), "more"]
    classes = " | ".join(f"{low} to {high}" for low, high in pairwise(edges))
    print(
        f"| expressions | change | in force ms | supervisor ms | worker's turns ms | {classes} | longest ms "
        "| longest gap of the client ms |"
    )
    print("|---" * (len(BOUNDS) + 7) + "|")
    for expressions in given.expressions.split(","):
        with tempfile.TemporaryDirectory() as folder:
            size = Size(given.routes, int(expressions))
            measure(size, given.changes.split(","), given.repeat, Path(folder))


if __name__ == "__main__":
    main()
