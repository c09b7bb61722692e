"""The client's half of streams for Bedrock's clients."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.dialect.llm.idents import in_base64
from headgate_drivers.llm import rest_of_frames
from headgate_engine.llm.eventstream import EventStreamDecoder
from headgate_engine.llm.translate.amazon import ConverseWriter, converse_usage_of, exception_of
from headgate_engine.llm.translate.counts import UsageCounts
from headgate_engine.llm.translate.readers import MessagesReader
from headgate_engine.llm.translate.responses_reader import ResponsesReader


def told(reader: Any, *events: Any, fault: str | None = None) -> list[tuple[str, Any]]:
    out = b"".join(reader.event(one["type"], json.dumps(one).encode()) for one in events) + reader.end(fault)
    decoder = EventStreamDecoder()
    found = [(one.event, json.loads(one.data)) for one in decoder.decode(out)]
    assert rest_of_frames(decoder) == b""
    return found


def writer() -> ConverseWriter:
    return ConverseWriter("0f", "model", 7, {"made": "given"}, {"latency": lambda: 12, "mask": in_base64})


def block(index: int, content: Any, *deltas: Any) -> list[Any]:
    return [{"type": "content_block_start", "index": index, "content_block": content},
            *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
            {"type": "content_block_stop", "index": index}]  # fmt: skip


START = {"type": "message_start", "message": {"id": "m", "model": "x", "usage": {"input_tokens": 3, "output_tokens": 1}}}
END = [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}, {"type": "message_stop"}]


def test_blocks_have_one_index_each_and_only_tools_a_start() -> None:
    events = [*block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": 'a"\u2603'}),
              *block(1, {"type": "tool_use", "id": "t", "name": "made", "input": {}},
                     {"type": "input_json_delta", "partial_json": "{}"})]  # fmt: skip
    found = told(MessagesReader(writer()), START, *events, *END)
    assert found == [
        ("messageStart", {"role": "assistant"}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": 'a"\u2603'}}),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        ("contentBlockStart", {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "t", "name": "given"}}}),
        ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"toolUse": {"input": "{}"}}}),
        ("contentBlockStop", {"contentBlockIndex": 1}),
        ("messageStop", {"stopReason": "tool_use"}),
        ("metadata", {"usage": {"inputTokens": 3, "outputTokens": 5, "totalTokens": 8, "cacheReadInputTokens": 0,
                                "cacheWriteInputTokens": 0}, "metrics": {"latencyMs": 12}}),
    ]  # fmt: skip


def test_pictures_are_shown_in_formats_that_clients_know() -> None:
    for form, shown in (("png", True), ("bmp", False)):
        made = writer()
        item = {"type": "image_generation_call", "id": "i", "status": "completed", "result": "aGk=", "output_format": form}
        found = told(ResponsesReader(made), {"type": "response.output_item.done", "output_index": 0, "item": item},
                     {"type": "response.completed", "response": {"status": "completed", "output": [item]}})  # fmt: skip
        starts = [one for name, one in found if name == "contentBlockStart"]
        assert starts == [{"contentBlockIndex": 0, "start": {"image": {"format": "png"}}}] * shown
        assert made.untold != shown


@pytest.mark.parametrize(
    ("kind", "code", "status", "name"),
    [(None, None, 0, "modelStreamErrorException"), ("rate_limit_error", None, 429, "throttlingException"),
     ("overloaded_error", None, 529, "serviceUnavailableException"), ("api_error", None, 503, "serviceUnavailableException"),
     ("invalid_request_error", None, 400, "validationException"), ("authentication_error", None, 401, "validationException"),
     ("api_error", None, 500, "internalServerException"), ("api_error", "modelStreamErrorException", 502, "modelStreamErrorException")],
)  # fmt: skip
def test_errors_are_the_exceptions_of_the_vendor(kind: str | None, code: str | None, status: int, name: str) -> None:
    assert exception_of(kind, code, status) == name


def test_a_break_is_an_exception_frame() -> None:
    found = told(MessagesReader(writer()), START, fault="it broke")
    assert found == [("messageStart", {"role": "assistant"}), ("modelStreamErrorException", {"message": "it broke"})]


def test_usage_leaves_out_what_caches_had() -> None:
    assert converse_usage_of(UsageCounts(30, 5, 7, 3, 0, 40)) == {
        "inputTokens": 20, "outputTokens": 5, "totalTokens": 40, "cacheReadInputTokens": 7, "cacheWriteInputTokens": 3}  # fmt: skip
