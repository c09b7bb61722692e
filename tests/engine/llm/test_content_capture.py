"""What is said in requests and answers of every format, as expressions see it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_drivers.llm import add_body, add_event
from headgate_engine.llm.content_capture import CapturedAnswer, CaptureOptions, counted, prompts


def said(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


IMAGE = {"type": "image_url", "image_url": {"url": "x"}}
PROMPTS: list[tuple[str, Any, list[dict[str, str]]]] = [
    ("completions", {"messages": [{"role": "system", "content": "a"}, {"role": "user", "content": [
        {"type": "text", "text": "b"}, IMAGE, {"type": "text", "text": "c"}]}]}, [said("system", "a"), said("user", "b c")]),
    ("completions", {"messages": [{"role": "assistant", "content": None, "tool_calls": [{}]}, {"role": "tool", "content": "r"}]},
     [said("assistant", ""), said("tool", "r")]),
    ("messages", {"system": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "messages": [
        {"role": "user", "content": [{"type": "tool_result", "content": "x"}, {"type": "text", "text": "c"}]}]},
     [said("system", "a\nb"), said("user", "c")]),
    ("messages", {"system": "a", "messages": [{"role": "user", "content": "b"}]}, [said("system", "a"), said("user", "b")]),
    ("responses", {"instructions": "a", "input": "b"}, [said("system", "a"), said("user", "b")]),
    ("responses", {"input": [{"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
                             {"type": "function_call_output", "call_id": "c", "output": "x"}]}, [said("user", "a\nb")]),
    ("gemini", {"systemInstruction": {"parts": [{"text": "a"}]}, "contents": [
        {"parts": [{"text": "b"}]}, {"role": "model", "parts": [{"text": "t", "thought": True}, {"text": "c"}]}]},
     [said("system", "a"), said("user", "b"), said("model", "c")]),
    ("count_tokens", {"messages": [{"role": "user", "content": "a"}]}, [said("user", "a")]),
    ("embeddings", {"input": ["a", "b"]}, [said("user", "a"), said("user", "b")]),
    ("embeddings", {"input": [1, 2, 3]}, []),
    ("rerank", {"query": "q", "documents": ["a", {"text": "b"}]}, [said("user", "q"), said("user", "a"), said("user", "b")]),
    # Bodies of formats that nobody named say by their members what they are.
    ("passthrough", {"system": [{"text": "a"}], "messages": [{"role": "user", "content": [{"text": "b"}]}]},
     [said("system", "a"), said("user", "b")]),
    ("detect", {"prompt": "draw"}, [said("user", "draw")]),
    ("detect", {"input": "a"}, [said("user", "a")]),
    ("detect", {}, []),
]  # fmt: skip


@pytest.mark.parametrize(("form", "body", "expected"), PROMPTS)
def test_prompts(form: str, body: Any, expected: list[dict[str, str]]) -> None:
    assert prompts(form, json.dumps(body).encode()) == expected


@pytest.mark.parametrize("body", [b"", b"[]", b"3", b"{", b"\xff"])
def test_what_is_no_object_says_nothing(body: bytes) -> None:
    assert prompts("completions", body) is None
    answer = CapturedAnswer("completions")
    add_body(answer, body)
    assert (answer.completion(), answer.tool_calls()) == ([], [])


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["messages", "content", "choices", "delta", "message", "tool_calls", "function", "output", "item", "parts",
             "candidates", "index", "type", "text", "input", "contents", "system", "content_block", "contentBlockDelta",
             "functionCall", "toolUse", "start", "role", "usage", "input_tokens"]
        ),
        inner, max_size=5,
    ),
    max_leaves=15,
)  # fmt: skip
FORMATS = ["completions", "messages", "responses", "gemini", "embeddings", "rerank", "count_tokens", "detect", "passthrough"]


@given(body=JUNK, form=st.sampled_from(FORMATS), name=st.sampled_from(["", "content_block_delta", "contentBlockDelta",
       "response.output_item.done", "content_block_start", "response.output_text.delta"]))  # fmt: skip
def test_nothing_that_a_provider_says_raises(body: Any, form: str, name: str) -> None:
    raw = json.dumps(body).encode()
    prompts(form, raw)
    counted(raw)
    answer = CapturedAnswer(form)
    add_event(answer, name, raw)
    add_body(answer, raw)
    assert all(isinstance(text, str) for text in answer.completion())
    assert all(set(call) == {"id", "name", "arguments"} for call in answer.tool_calls())


def test_arguments_that_are_no_json_stay_the_text_they_are() -> None:
    answer = CapturedAnswer("completions")
    calls = [{"id": str(at), "function": {"name": "f", "arguments": text}} for at, text in enumerate(['{"a":1}', "{oops", " "])]
    add_body(answer, json.dumps({"choices": [{"message": {"content": None, "tool_calls": calls}}]}).encode())
    assert [call["arguments"] for call in answer.tool_calls()] == [{"a": 1}, "{oops", {}]
    assert answer.completion() == [""]


def test_what_is_kept_of_a_stream_is_bounded() -> None:
    answer = CapturedAnswer("completions", 10)
    for _ in range(9):
        add_event(answer, "", b'{"choices":[{"index":0,"delta":{"content":"word"}}]}')
        add_event(answer, "", b'{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"wide"}}]}}]}')
    text = "".join([*answer.completion(), str(answer.tool_calls()[0]["arguments"])])
    assert len(text) == 10


@pytest.mark.parametrize(
    ("body", "tokens"),
    [(b'{"input_tokens": 3}', 3), (b'{"totalTokens": 4}', 4), (b'{"inputTokens": 5}', 5), (b"{}", -1), (b"[1]", -1),
     (b'{"input_tokens": true}', -1)],
)  # fmt: skip
def test_counts(body: bytes, tokens: int) -> None:
    assert counted(body) == tokens


def test_only_what_an_expression_names_is_wanted() -> None:
    wanted = CaptureOptions()
    wanted.note(frozenset(("llm", "llm.inputTokens")))
    assert (wanted.prompt, wanted.answer, wanted.count) == (False, False, False)
    wanted.note(frozenset(("llm.prompt",)))
    wanted.note(frozenset(("llm.toolCalls",)))
    wanted.note(frozenset(("llm.countTokens",)))
    assert (wanted.prompt, wanted.answer, wanted.count) == (True, True, True)
