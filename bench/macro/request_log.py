"""What the request log costs: CPU time of the worker and of the supervisor per plain request, with it and without.

Usage: python -m bench.macro.request_log

As bench.macro.operating: one worker answers pipelined requests of one connection by itself, without an access log. Two
gateways are measured in turn. Records that the database does not keep up with are dropped, and told.
"""

from __future__ import annotations

import re
import statistics
import tempfile
import urllib.request
from pathlib import Path

from bench.macro import operating
from bench.macro.operating import ROUNDS, Gateway

COUNT = 20_000
ADDED = '  database: {{url: "sqlite://FOLDER/data.db"}}\n'


class Measured(Gateway):
    """A gateway whose supervisor is measured, too."""

    def cpu_of(self, pid: int) -> int:
        """Nanoseconds of all threads of a process."""
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)

    def round(self) -> tuple[float, float]:
        """Nanoseconds per request: worker, supervisor."""
        before = self.cpu_of(self.process.pid)
        worker = self.run(COUNT)[0]
        return worker, (self.cpu_of(self.process.pid) - before) / COUNT


def records(gateway: Gateway, stats: int) -> str:
    """What has become of the records."""
    with urllib.request.urlopen(f"http://127.0.0.1:{stats}/metrics") as answer:
        page = answer.read().decode()
    found = re.findall(r'gw_request_log_records_total\{outcome="(\w+)"\} (\d+)', page)
    return ", ".join(f"{count} {outcome}" for outcome, count in found)


def main() -> None:
    without = Measured(operating.ROOT)
    (stats,) = operating.free_ports(1)
    plain = operating.CONFIG
    with tempfile.TemporaryDirectory() as folder:
        text = plain.replace('statsAddr: "off"', f"statsAddr: 127.0.0.1:{stats}")
        operating.CONFIG = text.replace("gateways:", ADDED.replace("FOLDER", folder) + "gateways:", 1)
        kept = Measured(operating.ROOT)
        try:
            rounds = [(without.round(), kept.round()) for _ in range(ROUNDS)]
            for name, index in (("no request log", 0), ("request log", 1)):
                worker, supervisor = (statistics.median(one[index][part] for one in rounds) for part in (0, 1))
                print(f"{name:<16} worker {worker:7.0f} ns, supervisor {supervisor:7.0f} ns CPU per request")
            print("records:", records(kept, stats))
        finally:
            for one in (without, kept):
                one.process.terminate()
                one.process.wait()


if __name__ == "__main__":
    main()
