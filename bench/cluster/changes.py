"""What a change of one route costs on its way from the controller into force: `python -m bench.cluster.changes [routes] [changes]`.

One data plane with one worker, and the service in this process. Printed: CPU time of the start, seconds from `update()` until the data plane
has acknowledged (the change is in force then), CPU time of each process for a change, memory (Pss), and for how long the loop of the worker was
held (`held_gateway`).
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import time
from pathlib import Path

from tests.end_to_end.delivery_rig import Controller, bind, data_plane, route
from tests.end_to_end.processes import children_of
from tests.end_to_end.running import free_port

from bench.cluster import held_gateway
from headgate.cluster.translate.fragments import Fragment

PAUSE_S = 0.05


def cpu_ms(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def run(count: int, changes: int) -> None:
    controller, port, folder = Controller(), free_port(), Path(tempfile.mkdtemp())
    routes: list[Fragment] = [route(f"r{number}", "x") for number in range(count)]
    controller.update(*bind(port), *routes)
    holds = folder / "holds"
    holds.mkdir()
    os.environ[held_gateway.VARIABLE] = str(holds)
    gateway = data_plane(folder, controller.environment(folder), port, module="bench.cluster.held_gateway")
    try:
        gateway.wait_ready()
        own = gateway.process.pid
        processes = [os.getpid(), own, *children_of(own)]
        print("CPU of the start:", [round(cpu_ms(pid)) for pid in processes[1:]], "ms")
        before, taken, start = [cpu_ms(pid) for pid in processes], [], time.monotonic()
        chance = random.Random(1)
        for number in range(changes):
            at = chance.randrange(count)
            routes[at] = route(f"r{at}", f"v{number}")
            began = time.perf_counter()
            controller.update(*bind(port), *routes, generation=number + 2)
            controller.wait(lambda it, wanted=number + 2: it.generation == wanted)
            taken.append((time.perf_counter() - began) * 1000)
            time.sleep(PAUSE_S)
        spent = [(cpu_ms(pid) - was) / changes for pid, was in zip(processes, before, strict=True)]
        print(f"in force: p50 {statistics.median(taken):.1f} ms, p99 {sorted(taken)[int(changes * 0.99)]:.1f} ms")
        print("CPU of a change (controller, supervisor, its children):", [round(one, 1) for one in spent], "ms")
        print("loop of the worker:", held_gateway.told(holds, start))
        print("memory (supervisor, its children):", [round(memory_mb(pid)) for pid in processes[1:]], "MB")
    finally:
        gateway.process.kill()
        gateway.process.wait()
        controller.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("routes", type=int, nargs="?", default=10_000)
    parser.add_argument("changes", type=int, nargs="?", default=100)
    options = parser.parse_args()
    run(options.routes, options.changes)


if __name__ == "__main__":
    main()
