"""Asks a gateway for one route, 1 ms after each answer, until its input ends; then prints how long answers took, as JSON.

`python -m bench.cluster.stalls PORT HOST`, a process of its own: beside threads of the same interpreter it would measure their lock.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
import time
from typing import Any


class Stalls:
    """Runs the program from its making until `end`."""

    def __init__(self, port: int, host: str) -> None:
        command = [sys.executable, "-m", "bench.cluster.stalls", str(port), host]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def end(self, about: str) -> None:
        """Print what it has seen."""
        output, _ = self._process.communicate("")
        if self._process.returncode:
            raise RuntimeError(f"a request was lost: {output}")
        found = json.loads(output)
        print(
            f"{about:44} {found['answers']} answers, p99 {found['p99']:.2f} ms, longest {found['longest']:.1f} ms, {found['over']} over 5 ms",
            flush=True,
        )


def looked(port: int, host: str, ended: threading.Event) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    taken: list[float] = []
    while not ended.is_set():
        began = time.perf_counter()
        connection.request("GET", "/", headers={"host": host})
        answer = connection.getresponse()
        answer.read()
        taken.append((time.perf_counter() - began) * 1e3)
        if answer.status != 302:
            raise SystemExit(f"status {answer.status}")
        time.sleep(0.001)
    taken.sort()
    return {
        "answers": len(taken), "p99": taken[len(taken) * 99 // 100], "longest": taken[-1], "over": sum(one > 5 for one in taken),
    }  # fmt: skip


def main(arguments: list[str]) -> int:
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    print(json.dumps(looked(int(arguments[0]), arguments[1], ended)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
