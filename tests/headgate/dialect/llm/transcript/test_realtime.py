"""What events of realtime clients have a user say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.dialect.llm.transcript.table import request_texts

ITEM = "conversation.item.create"
HI = {"type": "input_text", "text": "hi"}


def texts(event: Any) -> list[str]:
    raw = json.dumps(event).encode()
    return [run.text(raw).decode() for run in request_texts(raw, "realtime").runs]


def test_all_texts_of_a_user_are_one() -> None:
    content = [HI, {"type": "input_audio", "audio": "AAAA"}, {"type": "input_text", "text": "you"}]
    event = {"type": ITEM, "item": {"type": "message", "role": "user", "content": content}}
    assert texts(event) == ["hi you"]
    [turn] = request_texts(json.dumps(event).encode(), "realtime").turns
    assert (turn.role, turn.text(json.dumps(event).encode())) == ("user", b"hi you")


@pytest.mark.parametrize(
    "event",
    [
        {"type": "session.update", "item": {"role": "user", "content": [HI]}},
        {"type": ITEM, "item": {"role": "assistant", "content": [HI]}},
        {"type": ITEM, "item": {"type": "function_call_output", "role": "user", "content": [HI]}},
        {"type": ITEM, "item": {"role": "user", "content": [{"type": "text", "text": "hi"}]}},
        {"type": ITEM, "item": {"role": "user", "content": [{"type": "input_text", "text": 5}]}},
        {"type": ITEM, "item": "user"},
    ],
)
def test_everything_else_is_none_of_it(event: Any) -> None:
    assert texts(event) == []


def test_an_item_that_stands_twice_counts_twice() -> None:
    item = json.dumps({"role": "user", "content": [HI]})
    raw = f'{{"type":"{ITEM}","item":{item},"item":{item.replace("hi", "you")}}}'.encode()
    assert [run.text(raw) for run in request_texts(raw, "realtime").runs] == [b"hi", b"you"]
