"""Reloads leave nothing behind: the memory of a worker and of the supervisor, as the kernel counts it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.end_to_end.running import PATIENCE, Gateway

# What a process may have more at the end: a few of the small configurations, not forty.
SLACK_KB = 2_500


def private_kb(pid: int) -> int:
    """Memory that a process shares with nobody."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def text_of(routes: int, mark: str) -> str:
    """A configuration of which every route is another one for each mark."""
    lines = ["gateways:", "  default:", "    port: {port}", "routes:"]
    for number in range(routes):
        lines += [
            f"- name: r{number}",
            f"  matches: [{{path: {{pathPrefix: /{mark}/{number}}}}}]",
            "  policies:",
            f"    directResponse: {{status: 200, body: '{mark}'}}",
            "    authorization:",
            "      rules:",
            f"      - 'request.path.startsWith(\"/{mark}/{number}\") && request.method in [\"GET\", \"{mark}\"]'",
            "    transformations:",
            "      request:",
            f"        set: {{x-route: '\"{mark}-{number}-\" + request.method'}}",
        ]
    return "\n".join(lines) + "\n"


def reload(gateway: Gateway, text: str, count: int) -> None:
    """Bring another configuration in, the `count`th since the start."""
    gateway.write(text)
    deadline = time.monotonic() + PATIENCE
    while gateway.log().count("configuration reloaded") < count:
        assert gateway.process.poll() is None
        assert "Failed to reload" not in gateway.log(), gateway.log()
        assert time.monotonic() < deadline, gateway.log()
        time.sleep(0.01)


def grown_kb(gateway: Gateway, routes: int, first: int, rest: int) -> dict[str, int]:
    """Reload `first` times and then `rest` times; what the supervisor and the worker have more behind the latter."""
    [worker] = gateway.worker_pids()
    pids = {"supervisor": gateway.process.pid, "worker": worker}
    before: dict[str, int] = {}
    for number in range(1, first + rest + 1):
        reload(gateway, text_of(routes, f"m{number}"), number)
        if number == first:
            before = {name: private_kb(pid) for name, pid in pids.items()}
    assert gateway.worker_pids() == [worker]
    return {name: private_kb(pid) - before[name] for name, pid in pids.items()}


def run(folder: Path, routes: int, first: int, rest: int) -> dict[str, int]:
    gateway = Gateway(folder, text_of(routes, "m0"), 1, {})
    try:
        gateway.wait_ready()
        return grown_kb(gateway, routes, first, rest)
    finally:
        gateway.stop()


def test_sixty_reloads_leave_nothing_behind(tmp_path: Path) -> None:
    """A configuration that stayed would be about 1 MB in either process."""
    grown = run(tmp_path, routes=200, first=20, rest=40)
    assert all(more < SLACK_KB for more in grown.values()), grown


@pytest.mark.slow
def test_reloads_of_ten_thousand_routes_leave_nothing_behind(tmp_path: Path) -> None:
    """One that stayed would be 20 MB and more."""
    grown = run(tmp_path, routes=10_000, first=4, rest=6)
    assert all(more < 20 * SLACK_KB for more in grown.values()), grown
