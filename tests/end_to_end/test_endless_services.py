"""Services of extAuthz, remote limits and external processors whose heads have no end, or that leave at each call.

Each is called several hundred times: requests get the answer of the failure mode, and nothing is left behind.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.end_to_end import endless_rig as rig
from tests.end_to_end.endless_rig import Connection, EndlessService
from tests.end_to_end.ext_authz_rig import shown
from tests.end_to_end.running import Gateway

CALLS = 300
AT_ONCE = 32
# Connections that may be kept for a while: each of the calls at once may have tried three, and taken a fourth before.
KEPT = 4 * AT_ONCE
# The time of a call that nothing ends earlier.
SHORT, LONG = "400ms", "60s"
PROCESSING = {"requestBodyMode": "none", "responseBodyMode": "none", "responseHeaderMode": "skip"}


@pytest.fixture
def service() -> Iterator[EndlessService]:
    found = EndlessService()
    yield found
    found.stop()


def policy_of(kind: str, port: int, failure: str, time: str) -> dict[str, Any]:
    place = {"host": f"127.0.0.1:{port}", "policies": {"http": {"requestTimeout": time}}}
    if kind == "extAuthz":
        return {**place, "failureMode": "allow" if failure == "open" else "deny"}
    mode = {"failureMode": "failOpen" if failure == "open" else "failClosed"}
    if kind == "extProc":
        return {**place, **mode, "processingOptions": PROCESSING}
    return {**place, **mode, "domain": "d", "descriptors": [{"entries": [{"key": "k", "value": "'v'"}]}]}


def text(port: int, time: str) -> str:
    """A route for each kind of service and each failure mode: /extAuthz/closed, ..."""
    routes = [
        {
            "name": f"{kind}-{failure}",
            "matches": [{"path": {"pathPrefix": f"/{kind}/{failure}"}}],
            "policies": {kind: policy_of(kind, port, failure, time), "directResponse": {"status": 200, "body": "through"}},
        }
        for kind in KINDS
        for failure in ("open", "closed")
    ]
    return f"gateways: {{default: {{port: {{port}}}}}}\nroutes: {shown(routes)}\n"


# The status where the service fails and nobody may pass.
KINDS = {"extAuthz": 403, "remoteRateLimit": 500, "extProc": 500}
FAILS: list[Callable[[Connection, int, str], None]] = [rig.endless_head, rig.refuses_and_leaves, rig.fails_and_leaves]


class Ledger:
    """What the worker of a gateway holds."""

    def __init__(self, running: Gateway) -> None:
        [self._pid] = running.worker_pids()

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self._pid}/fd"))

    def resident(self) -> int:
        """Bytes of memory."""
        lines = Path(f"/proc/{self._pid}/status").read_text().splitlines()
        [line] = [line for line in lines if line.startswith("VmRSS")]
        return int(line.split()[1]) * 1024


def ask(running: Gateway, path: str, count: int) -> list[int]:
    def some(part: int) -> list[int]:
        with httpx.Client(timeout=60) as client:
            return [client.get(f"{running.url}{path}").status_code for _ in range(part)]

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [one for part in pool.map(some, [count // AT_ONCE + 1] * AT_ONCE) for one in part]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("react", FAILS)
def test_one_that_fails_so(gateway: Any, service: EndlessService, react: Callable[..., None], kind: str) -> None:
    running = gateway(text(service.port, SHORT))
    running.wait(lambda: httpx.get(f"{running.url}/{kind}/closed", timeout=60).status_code == 200)
    ledger = Ledger(running)
    service.react = react
    # What is made once, for the first failures, is there.
    ask(running, f"/{kind}/closed", AT_ONCE)
    running.wait_metric("gw_requests_in_flight", 0)
    before, memory, calls = ledger.descriptors(), ledger.resident(), service.calls
    assert set(ask(running, f"/{kind}/closed", CALLS)) == {KINDS[kind]}
    assert set(ask(running, f"/{kind}/open", AT_ONCE)) == {200}
    assert service.calls > calls
    service.react = lambda connection, stream, path: connection.answer(stream, path)
    running.wait(lambda: httpx.get(f"{running.url}/{kind}/closed", timeout=60).status_code == 200)
    running.wait_metric("gw_requests_in_flight", 0)
    # The clients have left; connections to the service are kept for a while.
    running.wait(lambda: ledger.descriptors() <= before + KEPT)
    assert ledger.resident() - memory < 16 * 1024 * 1024
    assert "Traceback" not in running.log()


@pytest.mark.parametrize("kind", KINDS)
def test_one_that_leaves_behind_each_answer(gateway: Any, service: EndlessService, kind: str) -> None:
    running = gateway(text(service.port, LONG))
    service.react = rig.answers_and_leaves
    ledger = Ledger(running)
    before = ledger.descriptors()
    # One behind the other: the service refuses what else comes on the connection that it leaves.
    with httpx.Client(timeout=60) as client:
        assert {client.get(f"{running.url}/{kind}/closed").status_code for _ in range(CALLS)} == {200}
    assert service.connections >= CALLS
    running.wait_metric("gw_requests_in_flight", 0)
    running.wait(lambda: ledger.descriptors() <= before + KEPT)
