"""Records of requests, and the pipe they go into."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import pytest

from headgate.expr.compile import compile_expression
from headgate_drivers.log import add_record, record_of, waiting_bytes
from headgate_engine.context.request import RequestContext, make_context
from headgate_engine.log.access import AccessLogFormat
from headgate_engine.log.fields import LogFields
from headgate_engine.log.records import FIELDS, RecordFormat, RecordSink
from headgate_engine.shared.counters import Counter
from headgate_engine.shared.segment import Segment

NOON_NS = 1_767_225_600_123_456_789
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def form(filter: str | None = None, **add: str) -> RecordFormat:
    program = None if filter is None else compile_expression(filter, "log")
    fields = LogFields(program, [(key, compile_expression(text, "log")) for key, text in add.items()])
    return RecordFormat(AccessLogFormat("json", fields=fields))


def record(ctx: RequestContext, **options: Any) -> dict[str, Any]:
    line = record_of(form(**options), NOON_NS, ctx)
    assert line.endswith(b"}]\n")
    assert line.count(b"\n") == 1
    return dict(zip(FIELDS, json.loads(line), strict=True))


def test_a_record_has_its_fields_and_the_line() -> None:
    found = record(make_context(target="/a?x=1", headers=(("traceparent", PARENT), ("x", "y"))), who="'me'")
    assert found["completed_us"] == NOON_NS // 1000
    assert found["traceparent"] == PARENT
    assert (found["provider"], found["input_tokens"], found["cost_picos"]) == (None, -1, -1)
    assert (found["prompt"], found["completion"]) == (None, None)
    assert found["attributes"]["who"] == "me"


def test_hostile_values_stay_values() -> None:
    found = record(make_context(headers=(("traceparent", 'x"],["\\' * 40), ("x", '"}]'))), x="request.headers['x']")
    assert found["traceparent"] == ('x"],["\\' * 40)[:128]
    assert found["attributes"]["x"] == '"}]'


def test_the_filter_keeps_requests_out() -> None:
    assert record_of(form(filter="request.path != '/a'"), NOON_NS, make_context(target="/a")) == b""
    assert record_of(form(filter="request.path != '/a'"), NOON_NS, make_context(target="/b")) != b""


def test_text_lines_are_no_attributes() -> None:
    with pytest.raises(ValueError, match="JSON"):
        RecordFormat(AccessLogFormat("text"))


def test_records_go_through_the_pipe_in_order() -> None:
    async def run() -> bytes:
        reading, writing = os.pipe()
        sink = RecordSink(asyncio.get_running_loop(), writing)
        for number in range(3):
            add_record(sink, make_context(target=f"/{number}"), form(path="request.path"))
        await sink.aclose()
        assert sink.fd == -1
        data = os.read(reading, 65536)
        assert os.read(reading, 1) == b""
        os.close(reading)
        return data

    found = [json.loads(line)[-1]["path"] for line in asyncio.run(run()).splitlines()]
    assert found == ["/0", "/1", "/2"]


def test_they_leave_by_themselves() -> None:
    async def run() -> None:
        came = asyncio.Event()
        reading, writing = os.pipe()
        sink = RecordSink(asyncio.get_running_loop(), writing)
        add_record(sink, make_context(), form())
        assert waiting_bytes(sink)
        await asyncio.sleep(0)
        asyncio.get_running_loop().add_reader(reading, came.set)
        await asyncio.wait_for(came.wait(), 20)
        assert waiting_bytes(sink) == 0
        assert os.read(reading, 65536).endswith(b"\n")
        await sink.aclose()
        os.close(reading)

    asyncio.run(run())


def test_a_reader_that_does_not_read_costs_a_bounded_buffer_and_drops_are_counted() -> None:
    async def run() -> tuple[int, int, int]:
        dropped = Counter(Segment.create(), b"gw_request_log_records_total\0")
        reading, writing = os.pipe()
        sink = RecordSink(asyncio.get_running_loop(), writing, dropped)
        ctx, kept = make_context(target="/" + "x" * 4000), form(path="request.path")
        for _ in range(1500):
            add_record(sink, ctx, kept)
        held, lost = waiting_bytes(sink), dropped.value
        os.set_blocking(reading, False)
        lines = 0
        while waiting_bytes(sink):
            try:
                lines += os.read(reading, 1 << 20).count(b"\n")
            except BlockingIOError:
                await asyncio.sleep(0.005)
        await sink.aclose()
        rest = os.read(reading, 1 << 20)
        os.close(reading)
        return held, lost, lines + rest.count(b"\n")

    held, lost, arrived = asyncio.run(run())
    assert 4_194_304 <= held < 4_300_000
    assert lost > 0
    assert lost + arrived == 1500


def test_a_reader_that_is_gone_is_noticed_once() -> None:
    async def run() -> None:
        dropped = Counter(Segment.create(), b"gw_request_log_records_total\0")
        reading, writing = os.pipe()
        os.close(reading)
        sink = RecordSink(asyncio.get_running_loop(), writing, dropped)
        add_record(sink, make_context(), form())
        await sink.aclose()
        add_record(sink, make_context(), form())
        assert (sink.fd, waiting_bytes(sink), dropped.value) == (-1, 0, 2)

    asyncio.run(run())


def test_the_name_of_traceparent_is_read_in_any_case() -> None:
    assert record(make_context(headers=(("TraceParent", PARENT),)), x="1")["traceparent"] == PARENT
