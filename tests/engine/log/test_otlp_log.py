"""Finished requests as log records."""

from __future__ import annotations

from opentelemetry.proto.logs.v1.logs_pb2 import ScopeLogs
from tests.end_to_end.otlp_rig import attributes_of

from headgate.expr.compile import compile_expression
from headgate_engine.context.request import make_context
from headgate_engine.log.fields import LogFields
from headgate_engine.log.otlp_fields import OtlpFields
from headgate_engine.log.otlp_log import OtlpLogPlan
from headgate_engine.log.otlp_sink import OtlpSink

NOON = 1_767_225_600_123_456_789


def test_a_record_has_what_a_line_has() -> None:
    plan = OtlpLogPlan(OtlpFields(), OtlpSink())
    plan.add(make_context("GET", "/a"), NOON)
    plan.add(make_context("PUT", "/b"), NOON + 1)
    batch = plan.sink.take()
    assert batch is not None
    first, second = ScopeLogs.FromString(batch[0]).log_records
    assert batch[1] == 2
    assert (first.time_unix_nano, first.observed_time_unix_nano, second.time_unix_nano) == (NOON, NOON, NOON + 1)
    assert (first.body.string_value, first.severity_text, first.severity_number) == ("request", "INFO", 9)
    assert (first.trace_id, first.span_id, first.flags) == (b"", b"", 0)
    assert [attributes_of(one.attributes)["http.method"] for one in (first, second)] == ["GET", "PUT"]


def test_the_filter_keeps_requests_out() -> None:
    chosen = LogFields(compile_expression("request.path == '/a'", "log"))
    plan = OtlpLogPlan(OtlpFields(fields=chosen), OtlpSink())
    plan.add(make_context("GET", "/b"), NOON)
    assert plan.sink.count == 0
    plan.add(make_context("GET", "/a"), NOON)
    assert plan.sink.count == 1
