"""A worker that stands still: what the others do, how it is replaced, and how it goes on."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.end_to_end.policy_peer import wait_for
from tests.end_to_end.running import Gateway

# What is tested is of the process: its memory, its frames, its end.
pytestmark = pytest.mark.executed

CONFIG = """
gateways:
  default: {port: {port}}
routes:
- name: a
  policies: {directResponse: {status: 200, body: BODY}}
"""


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_for(lambda: state(pid) == "T")
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def ask(client: http.client.HTTPConnection) -> str:
    client.request("GET", "/")
    return client.getresponse().read().decode()


def clients_of_all(running: Gateway) -> list[http.client.HTTPConnection]:
    """Connections that all workers share."""
    found = [http.client.HTTPConnection("127.0.0.1", running.port, timeout=60) for _ in range(8)]
    for client in found:
        assert ask(client) == "old"
    return found


def test_a_worker_that_hangs_is_replaced(gateway: Callable[..., Gateway]) -> None:
    running = gateway(CONFIG.replace("BODY", "old"), 2, settings="workerHeartbeatTimeout: 6s")
    before = running.worker_pids()
    with stopped(before[0]):
        for _ in range(8):
            assert ask(http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)) == "old"
        running.wait_log("worker does not respond")
        assert running.fetch(f"http://127.0.0.1:{running.readiness}/healthz/ready")[0] == 200
        running.wait_log("worker hangs, and is killed")
        running.wait_log("worker restarted")
    running.wait_metric("gw_worker_hangs_total", 1)
    running.wait_metric("gw_worker_restarts_total", 1)
    after = running.worker_pids()
    assert len(after) == 2
    assert set(after) - set(before)
    assert before[0] not in after
    assert {ask(client) for client in clients_of_all(running)} == {"old"}


def test_reloads_go_on_without_a_worker_that_is_silent_and_it_catches_up(gateway: Callable[..., Gateway]) -> None:
    running = gateway(CONFIG.replace("BODY", "old"), 2, settings="workerHeartbeatTimeout: 0s")
    kept = clients_of_all(running)
    pid = running.worker_pids()[1]
    with stopped(pid):
        running.wait_log("worker does not respond")
        for body in ("new", "newer"):
            reloads = running.log().count("configuration reloaded")
            running.write(CONFIG.replace("BODY", body))
            wait_for(lambda seen=reloads: running.log().count("configuration reloaded") > seen)
            assert ask(http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)) == body
        assert pid in running.worker_pids()
    running.wait_log("worker responds again")
    running.wait_log("worker has caught up")
    assert {ask(client) for client in kept} == {"newer"}
    running.write(CONFIG.replace("BODY", "newest"))
    wait_for(lambda: {ask(client) for client in kept} == {"newest"})
    assert running.metric("gw_worker_hangs_total") == 0
    assert "worker died" not in running.log()


def test_a_gateway_without_a_worker_that_answers_is_not_ready(gateway: Callable[..., Gateway]) -> None:
    running = gateway(CONFIG.replace("BODY", "old"), 1, settings="workerHeartbeatTimeout: 0s")
    probe = f"http://127.0.0.1:{running.readiness}/healthz/ready"
    with stopped(running.worker_pids()[0]):
        wait_for(lambda: running.fetch(probe) == (500, "not ready, pending: workers\n"), seconds=60)
    wait_for(lambda: running.fetch(probe)[0] == 200, seconds=60)
    assert ask(http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)) == "old"
