"""What events of realtime clients say, and to whom it counts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.dialect.llm.transcript.table import request_texts
from headgate_engine.guard.readers import event_types

ITEM = "conversation.item.create"
HI = {"type": "input_text", "text": "hi"}


def texts(event: Any) -> list[str]:
    raw = json.dumps(event).encode()
    return [run.text(raw).decode() for run in request_texts(raw, "realtime").runs]


def scoped(event: Any) -> list[tuple[str, str]]:
    raw = json.dumps(event).encode()
    return [(str(run.scope), run.text(raw).decode()) for run in request_texts(raw, "realtime").runs]


def item(**members: Any) -> dict[str, Any]:
    return {"type": ITEM, "item": members}


def test_all_texts_of_a_user_are_one() -> None:
    content = [HI, {"type": "input_audio", "audio": "AAAA"}, {"type": "input_text", "text": "you"}]
    event = {"type": ITEM, "item": {"type": "message", "role": "user", "content": content}}
    assert texts(event) == ["hi you"]
    [turn] = request_texts(json.dumps(event).encode(), "realtime").turns
    assert (turn.role, turn.text(json.dumps(event).encode())) == ("user", b"hi you")


SAID = [
    (item(role="assistant", content=[HI]), [("messages", "hi")]),
    (item(role="system", content=[HI]), [("systemPrompt", "hi")]),
    (item(type="message", role="developer", content=[HI]), [("systemPrompt", "hi")]),
    (item(role="user", content="hi"), [("messages", "hi")]),
    (item(role="user", content=HI), [("messages", "hi")]),
    (item(role="user", content=["hi", HI]), [("messages", "hi hi")]),
    (item(role="user", content=[{"type": "text", "text": "hi"}]), [("messages", "hi")]),
    (item(role="user", content=[{"type": "odd", "text": "hi"}]), [("messages", "hi")]),
    (item(role="user", content=[{"type": "input_audio", "transcript": "hi"}]), [("messages", "hi")]),
    (item(type="odd", content=[HI]), [("messages", "hi")]),
    (item(type="function_call_output", output="hi"), [("toolOutput", "hi")]),
    (item(type="function_call_output", output={"a": "hi"}), [("toolOutput", '{"a": "hi"}')]),
    (item(type="function_call_output", output=[HI, HI]), [("toolOutput", "hi hi")]),
    (item(type="function_call", name="f", arguments='{"a": 1}'), [("toolInput", '{"a": 1}')]),
    ({"type": ITEM, "item": "hi"}, [("messages", "hi")]),
    ({"type": "response.create", "response": {"instructions": "hi"}}, [("systemPrompt", "hi")]),
    ({"type": "response.create", "response": {"instructions": "one", "input": [
        {"type": "message", "role": "user", "content": [HI]}, {"type": "function_call_output", "output": "two"},
        {"role": "system", "content": "three"}, "four"]}},
     [("systemPrompt", "one"), ("messages", "hi"), ("toolOutput", "two"), ("systemPrompt", "three"), ("messages", "four")]),
    ({"type": "response.create", "response": {"input": "hi"}}, [("messages", "hi")]),
    ({"type": "response.create", "response": {"input": {"role": "user", "content": [HI]}}}, [("messages", "hi")]),
    ({"type": "response.create", "response": {"prompt": {"id": "p", "variables": {"a": "hi", "b": HI}}}},
     [("messages", "hi"), ("messages", "hi")]),
    ({"type": "session.update", "session": {"instructions": "hi", "voice": "v", "prompt": {"variables": {"a": "b"}}}},
     [("systemPrompt", "hi"), ("messages", "b")]),
    ({"type": "session.update", "session": {"audio": {"input": {"transcription": {"model": "m", "prompt": "hi"}}}}},
     [("systemPrompt", "hi")]),
    ({"type": "transcription_session.update", "session": {"input_audio_transcription": {"prompt": "hi"}}},
     [("systemPrompt", "hi")]),
]  # fmt: skip


@pytest.mark.parametrize(("event", "found"), SAID, ids=[str(number) for number in range(len(SAID))])
def test_what_a_client_says(event: Any, found: list[tuple[str, str]]) -> None:
    assert scoped(event) == found


@pytest.mark.parametrize(
    "event",
    [
        {"type": "input_audio_buffer.append", "audio": "AAAA"},
        {"type": "session.update", "session": {"voice": "v", "tools": [{"name": "f", "description": "d"}]}},
        item(role="user", content=[{"type": "input_text", "text": 5}]),
        item(type="function_call_output", output=None),
        item(role="user"),
        {"type": "response.create"},
        {"type": "response.create", "response": "x"},
    ],
)
def test_everything_else_says_nothing(event: Any) -> None:
    assert texts(event) == []


def test_what_stands_twice_counts_twice() -> None:
    one = json.dumps({"role": "user", "content": [HI]})
    raw = f'{{"type":"{ITEM}","item":{one},"item":{one.replace("hi", "you")}}}'.encode()
    assert [run.text(raw) for run in request_texts(raw, "realtime").runs] == [b"hi", b"you"]
    raw = b'{"response":{"instructions":"a","instructions":"b"},"response":{"instructions":"c"}}'
    assert [run.text(raw) for run in request_texts(raw, "realtime").runs] == [b"a", b"b", b"c"]


@pytest.mark.parametrize(
    ("raw", "types"),
    [
        (b"{}", []),
        (b'{"type":"a"}', ["a"]),
        (b'{"type":"a","x":{"type":"b"},"t\\u0079pe":"\\u0063"}', ["a", "c"]),
        (b'{"type":5,"type":null}', [None, None]),
    ],
)
def test_types_of_an_event(raw: bytes, types: list[str | None]) -> None:
    assert event_types(raw) == types


@pytest.mark.parametrize("raw", [b"", b"[]", b"5", b'{"type":', b'{"type":"a"} x'])
def test_what_is_no_event_has_no_type(raw: bytes) -> None:
    with pytest.raises(ValueError):
        event_types(raw)
