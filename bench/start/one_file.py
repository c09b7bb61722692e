"""How long the one-file program takes from its start to its first response.

    python -m bench.start.one_file PROGRAM [--runs 10] [--other COMMAND]

`first` unpacks its image into a new folder; `later` are starts after it. `cpu` is the processor time of all its processes
from their start to their end, which says something on a busy machine, too. `--other` measures another command that takes
`-f FILE` in the same way, such as the `headgate` of an installation.
"""

from __future__ import annotations

import argparse
import json
import resource
import shlex
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PATIENCE = 120.0
CONFIG = """\
config: {{adminAddr: "off", statsAddr: "off", readinessAddr: "off", workerThreads: {workers}}}
gateways: {{default: {{port: {port}}}}}
routes: [{{policies: {{directResponse: {{status: 200, body: "first"}}}}}}]
"""


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def answered(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
            return sock.recv(4096).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def cpu() -> float:
    """Processor seconds of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds(command: list[str], folder: Path, workers: int) -> tuple[float, float]:
    """From the start of the process to its first response, and the processor time until its end."""
    port = free_port()
    config = folder / "config.yaml"
    config.write_text(CONFIG.format(port=port, workers=workers))
    environment = {"HEADGATE_UNPACK_DIR": str(folder), "PATH": "/usr/bin:/bin"}
    begun, used = time.perf_counter(), cpu()
    process = subprocess.Popen(
        [*command, "-f", str(config)], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while not answered(port):
            if process.poll() is not None or time.perf_counter() - begun > PATIENCE:
                sys.exit(f"{command[0]} does not serve")
            time.sleep(0.002)
        taken = time.perf_counter() - begun
    finally:
        process.terminate()
        process.wait(PATIENCE)
    return taken, cpu() - used


def figures(command: list[str], runs: int, workers: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        first, first_cpu = seconds(command, Path(folder), workers)
        later = [seconds(command, Path(folder), workers) for _ in range(runs)]
    taken, used = zip(*later, strict=True)
    found = {"first_s": first, "later_median_s": statistics.median(taken), "later_most_s": max(taken)}
    found |= {"first_cpu_s": first_cpu, "later_median_cpu_s": statistics.median(used)}
    return {name: round(value, 3) for name, value in found.items()}


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("program", type=Path)
    reader.add_argument("--runs", type=int, default=10)
    reader.add_argument("--workers", type=int, default=1)
    reader.add_argument("--other", help="another command to measure, without -f")
    options = reader.parse_args()
    found = {"program": figures([str(options.program.resolve())], options.runs, options.workers)}
    if options.other:
        found["other"] = figures(shlex.split(options.other), options.runs, options.workers)
    size = options.program.stat().st_size if options.program.is_file() else 0
    print(json.dumps({"bytes": size, **found}, indent=1))


if __name__ == "__main__":
    main()
