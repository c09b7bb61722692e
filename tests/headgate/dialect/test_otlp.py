"""Answers to exports, with the messages of the package as the oracle."""

from __future__ import annotations

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope

from headgate.dialect.otlp import rejected, scope


def test_what_is_rejected_is_read() -> None:
    traces = ExportTraceServiceResponse(partial_success={"rejected_spans": 3, "error_message": "no"})
    logs = ExportLogsServiceResponse(partial_success={"rejected_log_records": 2})
    assert rejected(traces.SerializeToString()) == (3, "no")
    assert rejected(logs.SerializeToString()) == (2, "")


@pytest.mark.parametrize("answer", [b"", b"\xff", b"{}", b"\n\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"])
def test_nothing_is_rejected_by_other_answers(answer: bytes) -> None:
    assert rejected(answer) == (0, "")


def test_a_scope() -> None:
    assert InstrumentationScope.FromString(scope("gw", "1")) == InstrumentationScope(name="gw", version="1")
