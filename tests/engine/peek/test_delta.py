"""Deltas of texts, thoughts and arguments are recognised where an event says nothing else, and only there."""

from __future__ import annotations

import json
from typing import Any

import effort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_engine.peek.delta import DeltaPeek

EVENTS: dict[str, Any] = {
    "completions": {"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "hi"},
                                            "finish_reason": None, "logprobs": {"content": ["hi"]}}], "usage": None},
    "messages": {"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta", "text": "hi"}},
    "responses": {"type": "response.output_text.delta", "output_index": 3, "content_index": 1, "delta": "hi", "logprobs": [1]},
    "gemini": {"candidates": [{"index": 3, "content": {"parts": [{"text": "hi", "thought": False}]}, "logprobsResult": {}}],
               "usageMetadata": {"totalTokenCount": 5}},
    "converse": {"contentBlockIndex": 3, "delta": {"text": "hi"}, "p": "abc"},
}  # fmt: skip
# Members that change the meaning: the path of an object, a name and a value.
OTHERS: list[tuple[str, tuple[Any, ...], str, Any]] = [
    *(("completions", ("choices", 0, "delta"), name, "x") for name in ("refusal", "reasoning", "reasoning_content")),
    ("completions", ("choices", 0, "delta"), "reasoning_signature", "x"),
    ("completions", ("choices", 0, "delta"), "tool_calls", []),
    ("completions", ("choices", 0, "delta"), "content", None),
    ("completions", ("choices", 0, "delta"), "content", [{"type": "text", "text": "hi"}]),
    ("completions", ("choices", 0), "finish_reason", "stop"),
    ("completions", ("choices", 0), "index", "0"),
    ("completions", (), "usage", {"total_tokens": 1}),
    ("completions", (), "error", {"message": "x"}),
    ("completions", (), "choices", []),
    ("completions", (), "choices", {"": {"delta": {"content": "hi"}}}),
    ("messages", (), "type", "content_block_start"),
    ("messages", (), "index", None),
    ("messages", ("delta",), "type", "input_json_delta"),
    ("messages", ("delta",), "text", 1),
    ("responses", (), "type", "response.refusal.delta"),
    ("responses", (), "content_index", "1"),
    ("responses", (), "delta", {"text": "hi"}),
    ("gemini", (), "error", {"status": "x"}),
    ("gemini", ("candidates", 0), "finishReason", "STOP"),
    ("gemini", ("candidates", 0, "content", "parts", 0), "thought", True),
    ("gemini", ("candidates", 0, "content", "parts", 0), "functionCall", None),
    ("converse", ("delta",), "text", {}),
]  # fmt: skip


DELTA = ("choices", 0, "delta")
# Deltas of other kinds: what they are, the format and the event.
KINDS: list[tuple[str, str, Any]] = [
    ("arguments", "completions", {"choices": [{"index": 0, "delta": {
        "content": None, "reasoning": "", "tool_calls": [{"index": 2, "id": "c", "type": "function",
                                                          "function": {"name": None, "arguments": "hi"}}]}}]}),
    ("thought", "completions", {"choices": [{"index": 0, "delta": {"content": "", "reasoning_content": "hi", "tool_calls": None}}]}),
    ("thought", "completions", {"choices": [{"index": 0, "delta": {"reasoning": "hi", "reasoning_content": None}}]}),
    ("text", "completions", {"choices": [{"index": 0, "delta": {"content": "hi", "reasoning_content": "", "annotations": None}}]}),
    ("arguments", "messages", {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "hi"}}),
    ("thought", "messages", {"type": "content_block_delta", "index": 1, "delta": {"type": "thinking_delta", "thinking": "hi"}}),
    ("arguments", "responses", {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "hi"}),
    ("thought", "responses", {"type": "response.reasoning_summary_text.delta", "output_index": 1, "delta": "hi"}),
    ("thought", "responses", {"type": "response.reasoning_text.delta", "output_index": 1, "delta": "hi"}),
    ("arguments", "converse", {"contentBlockIndex": 1, "delta": {"toolUse": {"input": "hi"}}}),
    ("thought", "converse", {"contentBlockIndex": 1, "delta": {"reasoningContent": {"text": "hi"}}}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "form", "event"), KINDS)
def test_deltas_of_all_kinds_are_told_apart(kind: str, form: str, event: Any) -> None:
    peek = DeltaPeek(form)
    data = json.dumps(event).encode()
    assert peek.read(data) == (kind, b'"hi"')
    assert data[peek.call_start : peek.call_stop] == (b"2" if (kind, form) == ("arguments", "completions") else b"")
    assert peek.read(data.replace(b'"hi"', b"1")) is None
    assert all(peek.read(data[:at]) is None for at in range(len(data)))


@pytest.mark.parametrize(
    ("number", "path", "name", "value"),
    [
        (0, (*DELTA, "tool_calls", 0, "function"), "name", "find"),
        (0, (*DELTA, "tool_calls", 0), "extra_content", {"google": {}}),
        (0, DELTA, "tool_calls", [{"function": {"arguments": "a"}}, {"function": {"arguments": "b"}}]),
        (0, DELTA, "content", "words"),
        (0, DELTA, "reasoning", "words"),
        (1, DELTA, "content", "words"),
        (1, DELTA, "thinking_blocks", []),
        (3, DELTA, "annotations", []),
        (4, ("delta",), "type", "citations_delta"),
        (9, ("delta", "toolUse"), "input", {}),
        (9, ("delta",), "toolUse", [1]),
        (10, ("delta", "reasoningContent"), "signature", "s"),
        (10, ("delta",), "citation", {}),
    ],
)
def test_a_delta_of_any_kind_that_says_more_is_not_plain(number: int, path: tuple[Any, ...], name: str, value: object) -> None:
    _, form, event = KINDS[number]
    event = json.loads(json.dumps(event))
    holder = event
    for step in path:
        holder = holder[step]
    holder[name] = value
    assert DeltaPeek(form).read(json.dumps(event).encode()) is None


def changed(form: str, path: tuple[Any, ...], name: str, value: object) -> Any:
    event = json.loads(json.dumps(EVENTS[form]))
    holder = event
    for step in path:
        holder = holder[step]
    holder[name] = value
    return event


@pytest.mark.parametrize("form", EVENTS)
def test_a_text_delta_is_found_with_what_stands_around_it(form: str) -> None:
    peek = DeltaPeek(form)
    data = json.dumps(EVENTS[form]).encode()
    assert peek.read(data) == ("text", b'"hi"')
    assert data[peek.index_start : peek.index_stop] == (b"0" if form == "completions" else b"3")
    marks = {"completions": b'{"content": ["hi"]}', "responses": b"[1]", "gemini": b"{}"}.get(form, b"")
    assert (data[peek.marks_start : peek.marks_stop] if peek.marks_stop else b"") == marks
    assert (data[peek.part_start : peek.part_stop] if peek.part_stop else b"") == (b"1" if form == "responses" else b"")
    assert bool(peek.usage_stop) is (form == "gemini")
    assert not peek.calls


@pytest.mark.parametrize(("form", "path", "name", "value"), OTHERS)
def test_an_event_that_says_more_is_no_plain_delta(form: str, path: tuple[Any, ...], name: str, value: object) -> None:
    assert DeltaPeek(form).read(json.dumps(changed(form, path, name, value)).encode()) is None


@pytest.mark.parametrize("form", EVENTS)
def test_what_is_cut_doubled_or_no_json_is_no_delta(form: str) -> None:
    data = json.dumps(EVENTS[form]).encode()
    peek = DeltaPeek(form)
    for at in range(len(data)):
        assert peek.read(data[:at]) is None
    assert peek.read(data + b"x") is None
    assert peek.read(b"[" + data + b"]") is None
    assert peek.read(data.replace(b"hi", b"\xff")) is None
    for name in (b'"delta":', b'"parts":', b'"text":', b'"content":'):
        if name in data and (form, name) != ("gemini", b'"delta":'):
            assert peek.read(data.replace(name, name + b"1, " + name, 1)) is None
    assert peek.read(data) == ("text", b'"hi"')


@pytest.mark.parametrize(("form", "items"), [("completions", "choices"), ("gemini", "candidates")])
def test_several_choices_are_no_plain_delta(form: str, items: str) -> None:
    event = EVENTS[form]
    for more in (event[items] * 2, [*event[items], 1], [1, *event[items]], [[], *event[items]], [event[items]]):
        assert DeltaPeek(form).read(json.dumps({**event, items: more}).encode()) is None


def test_null_calls_are_told() -> None:
    peek = DeltaPeek("completions")
    assert peek.read(json.dumps(changed("completions", ("choices", 0, "delta"), "tool_calls", None)).encode()) == ("text", b'"hi"')
    assert peek.calls


@settings(max_examples=effort.examples(300), deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"])), form=st.sampled_from(sorted(EVENTS)), wide=st.booleans())
def test_the_text_is_the_json_of_the_event(text: str, form: str, wide: bool) -> None:
    written = json.dumps(text, ensure_ascii=not wide)
    data = json.dumps(EVENTS[form]).replace('"hi"', written).encode()
    found = DeltaPeek(form).read(data)
    assert found == ("text", written.encode())


def test_other_formats_have_no_deltas() -> None:
    with pytest.raises(ValueError, match="no deltas"):
        DeltaPeek("embeddings")
