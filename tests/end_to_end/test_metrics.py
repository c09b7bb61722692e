"""Metrics of a running gateway: what docs/metrics.md says of labels, and gauges while something happens."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.end_to_end.conftest import free_port
from tests.end_to_end.federation_rig import SAMPLE, Raw, config
from tests.end_to_end.mcp_guardrails_rig import guarded
from tests.end_to_end.running import PATIENCE, Gateway

from headgate.telemetry.families import BY_NAME

pytestmark = pytest.mark.warm

CONFIG = """
gateways:
  default: {port: {port}}
backends:
- {name: held, host: "127.0.0.1:BACKEND", policies: {health: {eviction: {consecutiveFailures: 1, duration: 600s}}}}
routes:
- name: limited
  matches: [{path: {pathPrefix: /limited}}]
  policies:
    localRateLimit: [{maxTokens: 2, tokensPerFill: 1, fillInterval: 3600s}]
    directResponse: {status: 200, body: hi}
- name: held
  backends: [{backend: /held}]
"""
LINE = re.compile(r'^(gw_\w+?)(_bucket|_sum|_count)?(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-zA-Z_]\w*)="(?:[^"\\]|\\.)*"')


def held(connection: socket.socket, go_on: threading.Event) -> None:
    """Answers the first request when it may, and closes the connection on all others."""
    if go_on.is_set():
        return
    connection.recv(65536)
    go_on.wait(PATIENCE)
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
    connection.recv(65536)


@pytest.fixture
def running(gateway: Callable[..., Gateway], upstream: Any, request: pytest.FixtureRequest) -> tuple[Gateway, threading.Event]:
    go_on = threading.Event()
    port = upstream(lambda connection: held(connection, go_on))
    return gateway(CONFIG.replace("BACKEND", str(port))), go_on


def gauge(running: Gateway, start: str) -> float:
    """The sum of the current samples whose line begins with `start`."""
    page = running.fetch(f"http://127.0.0.1:{running.stats}/metrics")[1]
    return sum(float(line.rpartition(" ")[2]) for line in page.splitlines() if line.startswith(start))


def families(running: Gateway) -> set[str]:
    """The families that have samples; each sample has the labels that the table names."""
    seen = set()
    for line in running.fetch(f"http://127.0.0.1:{running.stats}/metrics")[1].splitlines():
        if line.startswith("#"):
            continue
        found = LINE.match(line)
        assert found, line
        family = BY_NAME.get(found[1]) or BY_NAME[found[1] + (found[2] or "")]
        labels = [name for name in LABEL.findall(found[3] or "") if name != "le"]
        assert tuple(labels) == family.labels, line
        seen.add(family.name)
    return seen


def until(running: Gateway, start: str, value: float) -> None:
    deadline = time.monotonic() + PATIENCE
    while (found := gauge(running, start)) != value:
        assert time.monotonic() < deadline, (start, found)
        time.sleep(0.02)


@pytest.mark.cold      # streams of clients of tests before it may still be under way
def test_requests_and_connections_are_seen_while_they_last(running: tuple[Gateway, threading.Event]) -> None:
    gateway, go_on = running
    with socket.create_connection(("127.0.0.1", gateway.port)) as client:
        client.sendall(b"GET / HTTP/1.1\r\nhost: a.test\r\n\r\n")
        until(gateway, "gw_requests_in_flight", 1)
        until(gateway, 'gw_downstream_connections_open{worker="0",state="active"}', 1)
        until(gateway, 'gw_upstream_connections_open{endpoint="127.0.0.1:', 1)
        go_on.set()
        assert client.recv(65536).startswith(b"HTTP/1.1 200")
        until(gateway, "gw_requests_in_flight", 0)
        until(gateway, 'gw_downstream_connections_open{worker="0",state="idle"}', 1)
    until(gateway, "gw_downstream_connections_open", 0)


def test_ejections_of_endpoints_are_counted(running: tuple[Gateway, threading.Event]) -> None:
    gateway, go_on = running
    go_on.set()                 # the backend closes all connections
    before = gauge(gateway, "gw_endpoint_ejections_total")
    assert gateway.fetch(gateway.url)[0] in (502, 503)
    until(gateway, "gw_endpoint_ejections_total", before + 1)
    assert gauge(gateway, "gw_endpoint_ejected") == 1


def test_decisions_of_limits_are_counted(running: tuple[Gateway, threading.Event]) -> None:
    gateway, _ = running
    assert [gateway.fetch(f"{gateway.url}/limited")[0] for _ in range(3)] == [200, 200, 429]
    gateway.wait_metric('gw_limit_decisions_total{limit="requests",decision="passed"}', 2)
    gateway.wait_metric('gw_limit_decisions_total{limit="requests",decision="limited"}', 1)


@pytest.mark.cold
def test_reloads_are_counted(running: tuple[Gateway, threading.Event]) -> None:
    gateway, _ = running
    text = gateway.path.read_text()
    gateway.path.write_text(text + "\nroutes: 5\n")
    gateway.wait_metric('gw_config_reloads_total{result="failure"}', 1)
    gateway.path.write_text(text.replace("body: hi", "body: ho"))
    gateway.wait_metric('gw_config_reloads_total{result="success"}', 1)
    gateway.wait_metric("gw_config_reload_duration_seconds_count", 1)
    assert time.time() - gauge(gateway, "gw_config_last_success_timestamp_seconds") < PATIENCE


def test_every_sample_has_the_labels_that_the_table_names(running: tuple[Gateway, threading.Event]) -> None:
    gateway, go_on = running
    go_on.set()
    for path in ("/limited", "/", "/none"):
        gateway.fetch(gateway.url + path)
    seen = families(gateway)
    assert {"gw_requests_total", "gw_process_cpu_seconds_total", "gw_process_open_descriptors", "gw_process_max_descriptors",
            "gw_process_start_time_seconds", "gw_endpoint_health", "gw_upstream_calls_waiting"} <= seen  # fmt: skip


def test_guards_of_models_and_of_mcp_have_the_same_labels(gateway: Callable[..., Gateway]) -> None:
    guard = '{regex: {action: Reject, matches: [{pattern: "no"}]}, rejection: {status: 422}}'
    models = f'llm:\n  policies: {{guardrails: {{request: [{guard}]}}}}\n  models: [{{name: m, provider: openai, params: {{apiKey: k}}}}]\n'
    running = gateway(config({"a": SAMPLE}, guarded(free_port(), more="methods: {tools/list: full}, failureMode: failOpen")) + models)
    assert Raw(running).names("tools/list", "tools")
    asked = {"model": "m", "messages": [{"role": "user", "content": "no"}]}
    assert httpx.post(f"{running.url}/v1/chat/completions", json=asked, timeout=PATIENCE).status_code == 422
    running.wait_metric('gw_guardrail_checks_total{phase="Request",action="FailOpen",guard="remote"}', 1)
    running.wait_metric('gw_guardrail_checks_total{phase="Request",action="Reject",guard="regex"}', 1)
    assert "gw_guardrail_checks_total" in families(running)
