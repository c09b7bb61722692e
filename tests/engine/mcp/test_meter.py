"""What a worker keeps of an MCP target."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from headgate.telemetry.families import BUCKETS, BY_NAME
from headgate.telemetry.metrics import labels_of
from headgate_engine.mcp.meter import FAMILY, MAX_TEXT, SECONDS, TOOL_FAILED, McpTargetMeter
from headgate_engine.shared.histogram import HistogramValue, snapshot
from headgate_engine.shared.segment import Segment

RESULT = b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":false}}'
ERROR = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no such tool"}}'


@pytest.fixture
def segment() -> Iterator[Segment]:
    made = Segment.create()
    yield made
    made.close()


def counts(segment: Segment) -> dict[str, int]:
    found = {}
    for one in snapshot(segment):
        labels = labels_of(one.labels)
        assert (one.family, labels["backend"], labels["server"]) == (FAMILY.decode(), "b", "t")
        assert isinstance(one.value, HistogramValue)
        found[labels["outcome"]] = sum(one.value.counts)
    return found


def test_buckets_and_labels_are_those_of_the_family() -> None:
    assert BUCKETS[BY_NAME[FAMILY.decode()].buckets] == SECONDS
    assert set(BY_NAME[FAMILY.decode()].labels) == {"outcome", "backend", "server"}


def test_answers_errors_and_failures_are_told_apart(segment: Segment) -> None:
    meter = McpTargetMeter(segment, "b", "t")
    assert (meter.state(), counts(segment)) == ({}, {}), "a target that was never called has no series"
    meter.answered(1_000_000, "tools/call", RESULT)
    meter.answered(1_000_000, None, RESULT)
    first = meter.state()
    assert (first["error"], first["erred"], first["failed"], counts(segment)) == (None, 0, 0, {"ok": 2})
    assert abs(first["answered"] - time.time() * 1000) < 60_000
    meter.answered(1_000_000, "tools/call", ERROR)
    assert (meter.state()["error"], counts(segment)) == ("no such tool", {"ok": 2, "error": 1})
    meter.refused_with(1_000_000, "status 404")
    meter.failed(1_000_000, "x" * (MAX_TEXT + 9))
    last = meter.state()
    assert (last["error"], counts(segment)) == ("x" * MAX_TEXT, {"ok": 2, "error": 2, "failed": 1})
    assert last["failed"] == last["erred"] > 0
    assert last["failed"] >= last["answered"]


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        (b'{"result":{"isError":true}}', True),
        (b'{"result":{"isError" : \n true}}', True),
        (b'{"result":{"isError":false,"x":{"isError":true}}}', True),
        (b'{"result":{"isError":false}}', False),
        (b'{"result":{"isError":tru', False),
        (b'{"result":{"isError"', False),
        (b"", False),
    ],
)
def test_a_tool_that_has_failed_is_an_error_of_calls_alone(segment: Segment, text: bytes, failed: bool) -> None:
    meter = McpTargetMeter(segment, "b", "t")
    meter.answered(0, "tools/call", text)
    assert meter.state()["error"] == (TOOL_FAILED if failed else None)
    other = McpTargetMeter(segment, "b", "t")
    other.answered(0, "resources/read", text)
    assert other.state()["error"] is None


@pytest.mark.parametrize(
    ("result", "protocol", "found"),
    [
        ({"serverInfo": {"name": "n", "version": "1"}, "protocolVersion": "2025-06-18"}, None, ("n", "1", "2025-06-18")),
        ({"_meta": {"io.modelcontextprotocol/serverInfo": {"name": "n", "version": "2"}}}, "2026-07-28", ("n", "2", "2026-07-28")),
        ({"serverInfo": {"name": 5, "version": "v" * 999}, "_meta": 7}, None, (None, "v" * MAX_TEXT, None)),
    ],
)  # fmt: skip
def test_a_server_gives_name_version_and_revision(segment: Segment, result: Any, protocol: Any, found: Any) -> None:
    meter = McpTargetMeter(segment, "b", "t")
    meter.opened(json.dumps({"result": result}).encode(), protocol)
    state = meter.state()
    assert (state["name"], state["version"], state["protocol"]) == found
    assert state["opened"] > 0


@pytest.mark.parametrize("text", [b"", b"[]", b"7", b'{"error":{}}', b'{"result":[]}', b"[" * 100_000])
def test_what_is_no_answer_tells_nothing(segment: Segment, text: bytes) -> None:
    meter = McpTargetMeter(segment, "b", "t")
    meter.opened(text, "2026-07-28")
    assert meter.state() == {}


def test_wrong_types_are_refused(segment: Segment) -> None:
    bad: Any = 7
    for wrong in ((None, "b", "t"), (segment, None, "t"), (segment, "b", bad)):
        with pytest.raises(TypeError):
            McpTargetMeter(*wrong)
    meter = McpTargetMeter(segment, "b", "t")
    for call in (lambda: meter.answered(0, None, bad), lambda: meter.failed(0, bad), lambda: meter.opened(bad, None)):
        with pytest.raises(TypeError):
            call()
