"""Asks a gateway for one route, 1 ms after each answer, until its input ends; then prints how long answers took, as JSON.

`python -m bench.cluster.stalls PORT HOST WORKER`, a process of its own: beside threads of the same interpreter it would measure their lock.
WORKER: the process that answers. Of each answer over 5 ms is told what it waited for: how long the worker ran, how long worker and client were
ready to run while the kernel had something else on their processor (`/proc/PID/schedstat`). What the worker ran is the gateway's own part.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from bench.cluster.placing import beside_traffic

# Milliseconds from which an answer is a stall.
STALL_MS = 5.0


class Scheduled(NamedTuple):
    """What the kernel has counted for the first thread of a process, in milliseconds."""

    ran: float
    waited: float

    @classmethod
    def of(cls, pid: int | str) -> Scheduled:
        words = Path(f"/proc/{pid}/schedstat").read_bytes().split()
        return cls(int(words[0]) / 1e6, int(words[1]) / 1e6)


class Stalls:
    """Runs the program from its making until `end`."""

    def __init__(self, port: int, host: str, worker: int) -> None:
        command = [sys.executable, "-m", "bench.cluster.stalls", str(port), host, str(worker)]
        with beside_traffic():
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def end(self, about: str) -> None:
        """Print what it has seen."""
        output, _ = self._process.communicate("")
        if self._process.returncode:
            raise RuntimeError(f"a request was lost: {output}")
        found = json.loads(output)
        print(f"{about:44} {found['answers']} answers, p99 {found['p99']:.2f} ms, longest {found['longest']:.1f} ms, {len(found['over'])} over 5 ms")
        for one in found["over"]:
            print(
                f"{'':44} {one['took']:.1f} ms: the worker ran {one['ran']:.1f} ms and waited {one['waited']:.1f} ms for the processor, "
                f"the client {one['client']:.1f} ms"
            )
        sys.stdout.flush()


def looked(port: int, host: str, worker: int, ended: threading.Event) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    taken: list[float] = []
    over: list[dict[str, float]] = []
    while not ended.is_set():
        before, own = Scheduled.of(worker), Scheduled.of("self")
        began = time.perf_counter()
        connection.request("GET", "/", headers={"host": host})
        answer = connection.getresponse()
        answer.read()
        taken.append((time.perf_counter() - began) * 1e3)
        if taken[-1] > STALL_MS:
            after, client = Scheduled.of(worker), Scheduled.of("self").waited - own.waited
            over.append({"took": taken[-1], "ran": after.ran - before.ran, "waited": after.waited - before.waited, "client": client})
        if answer.status != 302:
            raise SystemExit(f"status {answer.status}")
        time.sleep(0.001)
    taken.sort()
    return {"answers": len(taken), "p99": taken[len(taken) * 99 // 100], "longest": taken[-1], "over": over}


def main(arguments: list[str]) -> int:
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    print(json.dumps(looked(int(arguments[0]), arguments[1], int(arguments[2]), ended)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
