"""Streams through decoder, reader and writer: the same for the client wherever the provider's bytes are split."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_streams import WRITERS

from headgate_engine.llm.eventstream import encode_frame
from headgate_engine.llm.translate.clouds import ConverseReader, GeminiReader
from headgate_engine.llm.translate.converter import StreamConverter
from headgate_engine.llm.translate.readers import CompletionsReader, EventReader, MessagesReader
from headgate_engine.llm.translate.responses_reader import ResponsesReader
from headgate_engine.sse.decode import DEFAULT_MAX_EVENT, SseDecoder

READERS: dict[str, type[EventReader]] = {
    "completions": CompletionsReader,
    "messages": MessagesReader,
    "responses": ResponsesReader,
    "gemini": GeminiReader,
}
# A member that occurs twice with the same value keeps an event off the short way, and means the same.
TWICE = {"completions": '"usage":null,"usage":null,', "messages": '"type":"content_block_delta",',
         "responses": '"type":"response.output_text.delta",', "gemini": '"error":null,"error":null,'}  # fmt: skip
FIRST: dict[str, Any] = {
    "completions": {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
    "messages": {"type": "message_start", "message": {"id": "msg_1", "model": "m", "usage": {"input_tokens": 3}}},
    "responses": {"type": "response.created", "response": {"id": "resp_1", "model": "m"}},
    "gemini": {"responseId": "r", "modelVersion": "m", "candidates": []},
}
LAST: dict[str, list[Any]] = {
    "completions": [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, "[DONE]"],
    "messages": [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}},
                 {"type": "message_stop"}],
    "responses": [{"type": "response.completed", "response": {"usage": {"input_tokens": 3, "output_tokens": 4}}}],
    "gemini": [{"candidates": [{"index": 0, "finishReason": "STOP"}]}],
}  # fmt: skip


def converter(form: str, client: str = "messages") -> StreamConverter:
    extra: dict[str, object] = {"include_usage": True} if client == "completions" else {}
    return StreamConverter(READERS[form](WRITERS[client]("0f", "model", 7, {}, extra)), False)


def delta(form: str, text: str, *, wide: bool = False, index: int = 0) -> str:
    """One text delta; wide: its characters are not escaped."""
    said = json.dumps(text, ensure_ascii=not wide)
    if form == "completions":
        return f'{{"choices":[{{"index":{index},"delta":{{"content":{said}}},"finish_reason":null}}]}}'
    if form == "messages":
        return f'{{"type":"content_block_delta","index":{index},"delta":{{"type":"text_delta","text":{said}}}}}'
    if form == "responses":
        return f'{{"type":"response.output_text.delta","output_index":{index},"content_index":0,"delta":{said}}}'
    return (f'{{"candidates":[{{"index":{index},"content":{{"parts":[{{"text":{said}}}]}}}}],'
            f'"usageMetadata":{{"promptTokenCount":3,"totalTokenCount":7}}}}')  # fmt: skip


def whole(form: str, deltas: list[str]) -> list[str]:
    """The data of all events of a reply."""
    last = [event if isinstance(event, str) else json.dumps(event) for event in LAST[form]]
    return [json.dumps(FIRST[form]), *deltas, *last]


def sse(events: list[str], end: str = "\n") -> bytes:
    return "".join(f"data: {data}{end}{end}" for data in events).encode()


def framed(name: str, body: str) -> bytes:
    return encode_frame({":event-type": name, ":content-type": "application/json", ":message-type": "event"}, body.encode())


def through(one: StreamConverter, data: bytes, size: int = 0) -> bytes:
    size = size or max(1, len(data))
    out = b"".join(one.feed(data[at : at + size]) for at in range(0, len(data), size))
    return out + one.end(None)


@pytest.mark.parametrize("client", WRITERS)
@pytest.mark.parametrize("form", READERS)
@settings(max_examples=50, deadline=None)
@given(texts=st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"])), st.booleans(), st.integers(0, 1)), max_size=6),
       size=st.integers(1, 200))  # fmt: skip
def test_plain_deltas_are_what_decoded_ones_are(form: str, client: str, texts: list[tuple[str, bool, int]], size: int) -> None:
    deltas = [delta(form, text, wide=wide, index=index) for text, wide, index in texts]
    decoded = ["{" + TWICE[form] + event[1:] for event in deltas]
    plain, slow = converter(form, client), converter(form, client)
    assert through(plain, sse(whole(form, deltas)), size) == through(slow, sse(whole(form, decoded)))
    assert plain.failed is slow.failed is None
    assert plain.finished
    counts = [None if one.usage is None else (one.usage.input, one.usage.output) for one in (plain, slow)]
    assert counts[0] == counts[1]
    assert plain.model == slow.model == "m"


# What opens a tool call, and deltas of its arguments and of a thought: %s is a JSON string, %d the number of the call.
OPENING = {
    "completions": '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":"c%d","function":{"name":"find"}}]}}]}',
    "messages": '{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":"toolu_%d","name":"find"}}',
    "responses": '{"type":"response.output_item.added","output_index":%d,"item":{"type":"function_call","call_id":"c%d","name":"find"}}',
}  # fmt: skip
OTHERS = {
    "completions": ('{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}}]}',
                    '{"choices":[{"index":0,"delta":{"reasoning_content":%s}}]}'),
    "messages": ('{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%s}}',
                 '{"type":"content_block_delta","index":7,"delta":{"type":"thinking_delta","thinking":%s}}'),
    "responses": ('{"type":"response.function_call_arguments.delta","output_index":%d,"delta":%s}',
                  '{"type":"response.reasoning_summary_text.delta","output_index":7,"delta":%s}'),
    "converse": ('{"contentBlockIndex":%d,"delta":{"toolUse":{"input":%s}}}',
                 '{"contentBlockIndex":7,"delta":{"reasoningContent":{"text":%s}}}'),
}  # fmt: skip
# As TWICE, for these deltas.
AGAIN = {**TWICE, "responses": '"output_index":7,', "converse": '"contentBlockIndex":7,'}
SAID = st.text(st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from('"\\\n\t/{}:')), max_size=12)


@pytest.mark.parametrize("client", WRITERS)
@pytest.mark.parametrize("form", OTHERS)
@settings(max_examples=40, deadline=None)
@given(parts=st.lists(st.tuples(st.sampled_from(["call 0", "call 1", "call 5", "thought", "text"]), SAID, st.booleans()), max_size=9),
       size=st.integers(1, 300))  # fmt: skip
def test_plain_arguments_and_thoughts_are_what_decoded_ones_are(
    form: str, client: str, parts: list[tuple[str, str, bool]], size: int
) -> None:
    """Call 5 was never opened; parts of calls and thoughts come in any order."""
    plain, slow = [], []
    for kind, text, wide in parts:
        said = json.dumps(text, ensure_ascii=not wide)
        call = kind.removeprefix("call ")
        if kind == "text" and form != "converse":
            event = delta(form, text, wide=wide)
        else:
            event = OTHERS[form][0] % (int(call), said) if call != kind else OTHERS[form][1] % said
        plain.append(event)
        slow.append("{" + AGAIN[form] + event[1:])
    if form == "converse":
        started = [{"contentBlockIndex": call, "start": {"toolUse": {"toolUseId": f"t{call}", "name": "find"}}} for call in (0, 1)]
        opening = [framed("messageStart", "{}"), *(framed("contentBlockStart", json.dumps(one)) for one in started)]
        ending = [framed("messageStop", '{"stopReason":"tool_use"}'), framed("metadata", "{}")]
        streams = [b"".join([*opening, *(framed("contentBlockDelta", one) for one in deltas), *ending]) for deltas in (plain, slow)]
        both = [StreamConverter(ConverseReader(WRITERS[client]("0f", "model", 7, {}, {})), True) for _ in range(2)]
    else:
        opening = [OPENING[form] % (call, call) for call in (0, 1)]
        streams = [sse(whole(form, opening + deltas)) for deltas in (plain, slow)]
        both = [converter(form, client) for _ in range(2)]
    assert through(both[0], streams[0], size) == through(both[1], streams[1])
    assert both[0].failed == both[1].failed


def test_counts_of_gemini_are_those_of_its_last_event() -> None:
    event = '{"candidates":[{"content":{"parts":[{"text":"x"}]}}],"usageMetadata":%s}'
    counts = ['{"promptTokenCount":3,"totalTokenCount":4}', '{"promptTokenCount":3,"totalTokenCount":9}', '{"trafficType":"ON_DEMAND"}']
    one = converter("gemini")
    one.feed(sse([json.dumps(FIRST["gemini"]), *(event % count for count in counts)]))
    assert one.usage is not None
    assert one.usage.total == 9


@pytest.mark.parametrize("form", READERS)
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"], ids=["LF", "CR", "CR LF"])
def test_a_reply_is_the_same_wherever_it_is_split(form: str, end: str) -> None:
    events = whole(form, [delta(form, "one "), delta(form, 'two "\n\u00e9'), delta(form, "\u00e9\U0001f600", wide=True)])
    expected = through(converter(form), sse(events))
    stream = (f"\ufeff: hello{end}{end}retry: 5{end}id: 1{end}" + sse(events, end).decode() + f":{end}{end}").encode()
    for at in range(len(stream)):
        one = converter(form)
        assert one.feed(stream[:at]) + one.feed(stream[at:]) + one.end(None) == expected
    assert through(converter(form), stream, 1) == expected


@pytest.mark.parametrize("form", READERS)
def test_data_in_several_lines_is_one_event(form: str) -> None:
    events = whole(form, [delta(form, "one"), delta(form, "two")])
    lines = "".join("".join(f"data: {part}\n" for part in data.replace(",", ",\n").split("\n")) + "\n" for data in events)
    assert through(converter(form), lines.encode()) == through(converter(form), sse(events))


@pytest.mark.parametrize("form", READERS)
def test_a_last_event_without_its_blank_line_is_told(form: str) -> None:
    stream = sse(whole(form, [delta(form, "one")]))
    assert through(converter(form), stream.rstrip(b"\n")) == through(converter(form), stream)


def test_the_names_of_events_stand_for_a_missing_type() -> None:
    one = converter("messages", "completions")
    told = one.feed(b'event: message_start\ndata: {"message":{}}\n\nevent: content_block_delta\ndata: {"delta":'
                    b'{"type":"text_delta","text":"hi"}}\n\nevent: message_stop\ndata: {}\n\n')  # fmt: skip
    assert b'"content":"hi"' in told
    assert one.finished


def test_events_in_front_of_a_fault_are_told() -> None:
    one = converter("completions")
    events = whole("completions", [delta("completions", "one")])[:2]
    told = one.feed(sse(events) + b"data: " + b"x" * DEFAULT_MAX_EVENT + b"\n\n")
    names = [event.event for event in SseDecoder().decode(told)]
    assert names == ["message_start", "content_block_start", "content_block_delta", "error"]
    assert one.failed == "the provider's stream is broken: event is too long"
    assert one.feed(b"data: x\n\n") == one.end(None) == b""


def test_a_huge_delta_is_told() -> None:
    text = "x" * (DEFAULT_MAX_EVENT - 1000)
    told = through(converter("completions"), sse(whole("completions", [delta("completions", text)])), 65536)
    assert text.encode() in told


def test_nothing_is_read_behind_the_end() -> None:
    one = converter("completions")
    one.feed(sse(whole("completions", [])))
    assert one.finished
    assert one.feed(b"data: x\n\n" * 10) == b""
    assert one.event(None, b"{") == b""
    assert one.failed is None


def test_a_cut_stream_ends_with_an_error() -> None:
    one = converter("completions")
    one.feed(sse(whole("completions", [delta("completions", "one")])[:2]))
    assert b"event: error" in one.end(None)
    assert one.failed is not None


def test_frames_are_split_anywhere() -> None:
    deltas = [f'{{"contentBlockIndex":0,"delta":{{"text":"{text}"}}}}' for text in ("one", "\u00e9", "\\u00e9")]
    frames = [framed("messageStart", '{"role":"assistant"}'), *(framed("contentBlockDelta", body) for body in deltas),
              framed("contentBlockStop", '{"contentBlockIndex":0}'), framed("messageStop", '{"stopReason":"end_turn"}'),
              framed("metadata", '{"usage":{"inputTokens":3,"outputTokens":4}}')]  # fmt: skip
    stream = b"".join(frames)

    def made() -> StreamConverter:
        return StreamConverter(ConverseReader(WRITERS["completions"]("0f", "model", 7, {}, {})), True)

    expected = through(made(), stream)
    assert expected.count('"content":"\u00e9"'.encode()) == 2
    for size in (1, 7, 100):
        assert through(made(), stream, size) == expected
    cut = made()
    cut.feed(stream[:-3])
    assert b"inside of a frame" in cut.end(None)
    broken = made()
    assert b"stream is broken" in broken.feed(b"x" * 20)
    # A text in an event of another name says nothing.
    other = made()
    assert other.feed(frames[0]) == other.feed(framed("somethingElse", deltas[0])) == b""
