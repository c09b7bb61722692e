"""The estimate of prompts: what is counted, and that it stays near what tokenizers say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_drivers.llm import tokens_of, tokens_of_prompt

# Tokens by o200k_base, counted once with OpenAI's own tables.
KNOWN = {
    "It was the best of times, it was the worst of times, it was the age of wisdom.": 21,
    "def _model(cost: Mapping[str, Any], where: str, found: Imported) -> Model:\n    tiers = []\n": 25,
    '{"role": "user", "content": "hi", "n": 12345}': 19,
    "The committee's recommendations emphasised international cooperation.": 9,
}


@pytest.mark.parametrize("text", KNOWN)
def test_an_estimate_is_near(text: str) -> None:
    assert abs(tokens_of(text) - KNOWN[text]) <= max(3, KNOWN[text] * 0.25)


def prompt(format: str, **body: Any) -> int:
    return tokens_of_prompt(format, json.dumps(body).encode())


def test_messages_cost_what_they_say_and_their_frame() -> None:
    one = tokens_of("hello there")
    assert prompt("completions", messages=[{"role": "user", "content": "hello there"}]) == one + 4 + 3
    parts = [{"type": "text", "text": "hello there"}, {"type": "image_url", "image_url": {"url": "data:AAAA"}}]
    assert prompt("completions", messages=[{"role": "user", "content": parts}] * 2, tools=[{"a": "b c d"}]) == (
        2 * (one + 4) + 3
    )
    assert prompt("messages", system="hello there", messages=[{"role": "user", "content": parts}]) == 2 * (one + 4) + 3
    assert prompt("responses", instructions="hello there", input="hello there") == 2 * (one + 4) + 3
    assert prompt("gemini", contents=[{"role": "user", "parts": [{"text": "hello there"}]}]) == one + 4 + 3
    assert prompt("embeddings", input=["hello there", "hello there"]) == 2 * one
    assert prompt("embeddings", input=[1, 2, 3]) == 3
    assert prompt("rerank", query="hello there", documents=["hello there", {"text": "hello there"}]) == 3 * one


@pytest.mark.parametrize("body", [b"", b"[]", b"1", b"{", b'{"messages": 3}', b'{"messages": null}'])
def test_what_is_no_prompt_costs_little(body: bytes) -> None:
    assert tokens_of_prompt("completions", body) <= 8


@given(st.text())
def test_any_text_has_an_estimate(text: str) -> None:
    assert 0 <= tokens_of(text) <= 2 * len(text.encode("utf-8", "replace")) + 1
    assert (tokens_of(text) == 0) is (text in ("", " ", "\t"))


@given(st.binary(max_size=200))
def test_any_bytes_are_endured(body: bytes) -> None:
    tokens_of_prompt("messages", body)
