"""Services of extAuthz, remote limits and external processors whose answers have no end, or that leave at each call.

Each is called several hundred times: requests get the answer of the failure mode, and nothing is left behind.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end import endless_rig as rig
from tests.end_to_end.asking import Asker
from tests.end_to_end.endless_rig import Connection, EndlessHttpService, EndlessService
from tests.end_to_end.ext_authz_rig import shown
from tests.end_to_end.running import Gateway

pytestmark = pytest.mark.warm

CALLS = 300
AT_ONCE = 32
# Connections to the service that may be kept for a while, and files that nobody counts.
KEPT = 16
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
FAILS: list[Callable[[Connection, int, str], None]] = [
    rig.endless_head,
    rig.trickled_head,
    rig.trickled_trailers,
    rig.trickled_message,
    rig.endless_body,
    rig.endless_messages,
    rig.refuses_and_leaves,
    rig.fails_and_leaves,
]
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
# Of an answer over HTTP/1.1: its beginning, what comes again and again, and the pause between in seconds.
ENDLESS_OVER_HTTP: dict[str, tuple[bytes, bytes, float]] = {
    "body": (CHUNKED, b"3e80\r\n" + bytes(16_000) + b"\r\n", 0.0),
    "trickled body": (CHUNKED, b"1\r\nx\r\n", 0.01),
    "trickled head": (b"HTTP/1.1 200 OK\r\nx-a: ", b"y", 0.01),
    "trailers": (CHUNKED + b"0\r\n", b"x-a: y\r\n", 0.0),
    "informational answers": (b"", b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n", 0.001),
}


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
        with Asker(running.port) as client:
            return [client.status(path) for _ in range(part)]

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [one for part in pool.map(some, [count // AT_ONCE + 1] * AT_ONCE) for one in part]


def is_well(running: Gateway, path: str) -> bool:
    with Asker(running.port) as client:
        return client.status(path) == 200


@contextmanager
def nothing_left(running: Gateway, heal: Callable[[], None], path: str) -> Iterator[None]:
    """Calls that fail have been made before, and are made inside; then the service is well."""
    ledger = Ledger(running)
    running.wait_metric("gw_requests_in_flight", 0)
    before, memory, logged = ledger.descriptors(), ledger.resident(), running.log().count("Traceback")
    yield
    heal()
    running.wait(lambda: is_well(running, path))
    running.wait_metric("gw_requests_in_flight", 0)
    # The clients have left; a few connections to the service are kept for a while.
    running.wait(lambda: ledger.descriptors() <= before + KEPT)
    assert ledger.resident() - memory < 16 * 1024 * 1024
    assert running.log().count("Traceback") == logged


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("react", FAILS)
def test_one_that_fails_so(gateway: Any, service: EndlessService, react: Callable[..., None], kind: str) -> None:
    running = gateway(text(service.port, SHORT))
    well = service.react
    running.wait(lambda: is_well(running, f"/{kind}/closed"))
    service.react = react
    # What is made once, for the first failures, is there.
    ask(running, f"/{kind}/closed", AT_ONCE)
    calls = service.calls
    with nothing_left(running, lambda: setattr(service, "react", well), f"/{kind}/closed"):
        assert set(ask(running, f"/{kind}/closed", CALLS)) == {KINDS[kind]}
        assert set(ask(running, f"/{kind}/open", AT_ONCE)) == {200}
        assert service.calls > calls


@pytest.mark.parametrize("what", ENDLESS_OVER_HTTP)
def test_extauthz_over_http(gateway: Any, what: str) -> None:
    service = EndlessHttpService()
    routes = [
        {
            "name": failure,
            "matches": [{"path": {"pathPrefix": f"/{failure}"}}],
            "policies": {
                "extAuthz": {**policy_of("extAuthz", service.port, failure, SHORT), "protocol": {"http": {}}},
                "directResponse": {"status": 200, "body": "through"},
            },
        }
        for failure in ("open", "closed")
    ]

    def answer(begin: bytes, more: bytes, pause_s: float) -> None:
        service.begin, service.more, service.pause_s = begin, more, pause_s

    running = gateway(f"gateways: {{default: {{port: {{port}}}}}}\nroutes: {shown(routes)}\n")
    running.wait(lambda: is_well(running, "/closed"))
    answer(*ENDLESS_OVER_HTTP[what])
    ask(running, "/closed", AT_ONCE)
    calls = service.calls
    with nothing_left(running, lambda: answer(rig.OK, b"", 0.0), "/closed"):
        assert set(ask(running, "/closed", CALLS)) == {403}
        assert set(ask(running, "/open", AT_ONCE)) == {200}
        # Not one call for each: a service that answers nothing may not be asked for a while.
        assert service.calls > calls
    service.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_one_that_leaves_behind_each_answer(gateway: Any, service: EndlessService, kind: str) -> None:
    running = gateway(text(service.port, LONG))
    service.react = rig.answers_and_leaves
    ledger = Ledger(running)
    before = ledger.descriptors()
    # One behind the other: the service refuses what else comes on the connection that it leaves.
    with Asker(running.port) as client:
        assert {client.status(f"/{kind}/closed") for _ in range(CALLS)} == {200}
    assert service.connections >= CALLS
    running.wait_metric("gw_requests_in_flight", 0)
    running.wait(lambda: ledger.descriptors() <= before + KEPT)
