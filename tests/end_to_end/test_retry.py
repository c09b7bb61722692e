"""Retry and buffering from the configuration file to the wire."""

from __future__ import annotations

import pytest
from tests.end_to_end.retry_rig import Scripted

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
