"""Histories of requests that are not translated, as bytes."""

from __future__ import annotations

import json

import pytest

from headgate.backend.llm.foreign_turns import foreign_history

FOREIGN = {"messages": [{"role": "tool", "tool_call_id": "a__thought__b", "content": "r"}], "model": "é"}


def test_bodies_are_cleaned_and_anything_else_stays() -> None:
    history = foreign_history("completions", "openai")
    assert history is not None
    raw = json.dumps(FOREIGN).encode()
    assert json.loads(history.clean(raw))["messages"][0]["tool_call_id"] == "a"
    for odd in (b"", b"{", b"[]", b'{"messages":[{"tool_call_id":"a"}]}', b'"a__thought__b"'):
        assert history.clean(odd) is odd


def test_a_long_body_is_cleaned_too() -> None:
    history = foreign_history("completions", "openai")
    assert history is not None
    body = {"messages": [{"role": "user", "content": "x" * 999}] * 999 + FOREIGN["messages"]}  # type: ignore[operator]
    assert json.loads(history.clean(json.dumps(body).encode()))["messages"][-1]["tool_call_id"] == "a"


@pytest.mark.parametrize("client", ["embeddings", "rerank", "realtime", "gemini", "detect", "passthrough"])
def test_formats_without_histories(client: str) -> None:
    assert foreign_history(client, "openai") is None
