"""Retry and buffering from the configuration file to the wire."""

from __future__ import annotations

import http.client
import math
import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.end_to_end.retry_rig import Scripted
from tests.end_to_end.running import Gateway

pytestmark = pytest.mark.warm

CONFIG = """
gateways:
  default: {port: {port}}
routes:
- policies:
    retry: {attempts: 2, codes: [503], backoff: 10ms}
  backends: [{host: "127.0.0.1:%d"}]
"""
BUFFER = """
gateways:
  default: {port: {port}}
routes:
- policies:
    buffer: {%s}
  backends: [{host: "127.0.0.1:%d"}]
"""




def test_a_failed_attempt_is_repeated_with_its_body(gateway, upstream, send_raw) -> None:
    script = Scripted((503, b"no"), (503, b"no"), (200, b"yes"))
    running = gateway(CONFIG % upstream(script))
    answer = send_raw(
        running.port, b"POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello"
    )
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b"yes")
    assert [request.endswith(b"\r\n\r\nhello") for request in script.seen] == [True] * 3
    assert b"x-retry-attempt: 2" in script.seen[2]
    running.wait_metric("gw_retries_total", 2)
    assert running.metric('gw_upstream_call_duration_seconds_count{kind="Primary",subtype="Http"}') == 3
    assert running.metric("gw_request_processing_seconds_count") == 1
    assert running.metric("gw_response_processing_seconds_count") == 1
    running.wait_log("retry.attempt=2")


def test_the_last_answer_counts_when_nothing_is_left(gateway, upstream) -> None:
    script = Scripted((503, b"no"))
    running = gateway(CONFIG % upstream(script))
    assert running.fetch(running.url) == (503, "no")
    assert len(script.seen) == 3


REQUESTS = [
    ("request: {maxBytes: 5}", b"hello", 200),
    ("request: {maxBytes: 4}", b"hello", 413),
    ("request: {maxBytes: 4, failureMode: failOpen}", b"hello", 200),
    ("request: {}", b"x" * (2 << 20), 200),
    ("request: {}", b"x" * ((2 << 20) + 1), 413),
    ("response: {maxBytes: 3}", b"hello", 200),
    ("response: {maxBytes: 2}", b"hello", 502),
    ("response: {maxBytes: 2, failureMode: failOpen}", b"hello", 200),
]


@pytest.mark.parametrize(("policy", "body", "status"), REQUESTS, ids=lambda value: str(value)[:40])
def test_bodies_are_read_whole_or_refused(gateway, upstream, send_raw, policy: str, body: bytes, status: int) -> None:
    script = Scripted((200, b"yes"))
    running = gateway(BUFFER % (policy, upstream(script)))
    head = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
    answer = send_raw(running.port, head + body)
    assert answer.startswith(b"HTTP/1.1 %d" % status)
    assert answer.endswith(b"yes" if status == 200 else b"\r\n\r\n")
    if status == 413:
        assert script.seen == []


class Shop:
    """An endpoint that is out, or not; counts what it is asked by path."""

    def __init__(self) -> None:
        self.out = True
        self.asked: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, connection: socket.socket) -> None:
        stream = connection.makefile("rb")
        while line := stream.readline():
            while stream.readline() not in (b"\r\n", b""):
                pass
            with self._lock:
                self.asked[line.split()[1].decode().strip("/")] += 1
            connection.sendall(b"HTTP/1.1 %d X\r\ncontent-length: 0\r\n\r\n" % (503 if self.out else 200))


# Of each route: its budget as written, then `percent` and `minPerSecond` as they count.
BUDGETS = {
    "default": ("", 20, 10),
    "share": (", budget: {percent: 50, minPerSecond: 0}", 50, 0),
    "least": (", budget: {percent: 0, minPerSecond: 2}", 0, 2),
    "none": (", budget: {percent: 0, minPerSecond: 0}", 0, 0),
}
CLIENTS, EACH = 8, 50


@pytest.fixture
def outage(gateway, upstream) -> tuple[Gateway, list[Shop]]:
    """A gateway with a route for each budget, all to a service of three endpoints that fail."""
    shops = [Shop() for _ in range(3)]
    lines = [
        "gateways: {default: {port: {port}}}",
        "services: [{name: shop, namespace: prod, hostname: shop.test, ports: {80: 8080}}]",
        "workloads:",
        *(
            f"- {{uid: w-{at}, name: w-{at}, namespace: prod, workloadIps: [127.0.0.1],"
            f' services: {{"prod/shop.test": {{80: {upstream(shop)}}}}}}}'
            for at, shop in enumerate(shops)
        ),
        "routes:",
    ]
    for name, (budget, *_) in BUDGETS.items():
        lines += [
            f"- name: {name}",
            f"  matches: [{{path: {{exact: /{name}}}}}]",
            f"  policies: {{retry: {{attempts: 3, codes: [503]{budget}}}}}",
            "  backends: [{service: {name: prod/shop.test, port: 80}}]",
        ]
    return gateway("\n".join(lines)), shops


def statuses(running: Gateway, name: str, count: int) -> list[int]:
    """Of requests one after the other on one connection."""
    client, found = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60), []
    for _ in range(count):
        client.request("GET", f"/{name}")
        answer = client.getresponse()
        answer.read()
        found.append(answer.status)
    client.close()
    return found


def counted(running: Gateway, family: str, route: str) -> float:
    _, page = running.fetch(f"http://127.0.0.1:{running.stats}/metrics")
    lines = [line for line in page.splitlines() if line.startswith(f"{family}{{") and f'route="default/{route}"' in line]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def test_retries_of_a_wide_outage_stay_within_the_budget(outage: tuple[Gateway, list[Shop]]) -> None:
    """All endpoints fail under load: without a budget, each request would be four at the endpoints."""
    running, shops = outage
    count = CLIENTS * EACH
    for name, (_, percent, least) in BUDGETS.items():
        for shop in shops:
            shop.out = True
        began = time.monotonic()
        with ThreadPoolExecutor(CLIENTS) as clients:
            answers = Counter(one for found in clients.map(lambda _, name=name: statuses(running, name, EACH), range(CLIENTS)) for one in found)
        taken = time.monotonic() - began
        assert answers == {503: count}, name
        retries = sum(shop.asked[name] for shop in shops) - count
        # What ends within nine seconds lies in one window; what takes longer, in windows of which each request is in two at most.
        windows = 1 if taken < 9 else taken // 10 + 2
        most = max(percent * count / 100, least * 10) if windows == 1 else 2 * percent * count / 100 + windows * least * 10
        assert retries <= most < 3 * count, f"{name}: {retries} retries in {taken:.1f} s"
        assert retries >= math.floor(max(percent / 100, least * 10 / count) * EACH), f"{name}: the budget is there to be used"
        while counted(running, "gw_requests_total", name) < count:      # a request is counted when its answer has gone
            time.sleep(0.01)
        assert counted(running, "gw_retries_total", name) == retries, name
        # Each request had its three retries, or was refused one.
        assert count - retries / 3 <= counted(running, "gw_retries_refused_total", name) <= count, name
        # What is back is used at once, and nothing is tried twice.
        for shop in shops:
            shop.out = False
        asked = sum(shop.asked[name] for shop in shops)
        assert Counter(statuses(running, name, EACH)) == {200: EACH}
        assert sum(shop.asked[name] for shop in shops) == asked + EACH
    running.wait_log("gw.retry.refused=budget")


def test_retries_come_back_after_an_outage(outage: tuple[Gateway, list[Shop]]) -> None:
    """Requests that succeed fill the budget again: a failure of one endpoint is healed by another as before."""
    running, shops = outage
    statuses(running, "share", 60)
    assert counted(running, "gw_retries_refused_total", "share") > 0
    for shop in shops[1:]:
        shop.out = False
    until = time.monotonic() + 60
    # Two of three answer, and a retry goes elsewhere: all is well when the budget has room for the failures of the third.
    while statuses(running, "share", 30) != [200] * 30:
        assert time.monotonic() < until
    assert shops[0].asked["share"] > 0
