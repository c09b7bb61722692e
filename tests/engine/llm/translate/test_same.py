"""Streams that stay in their format, for one of several choices."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.dialect.llm import pairs
from headgate.dialect.llm.contract import Options, TranslatedRequest
from headgate_engine.llm.translate.same import SameReader

USAGE = {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}


def asked(usage: bool = True, client: str = "completions") -> TranslatedRequest:
    body = {"model": "m", "messages": [], "prompt": "hi", "n": 2, "stream": True, "stream_options": {"include_usage": usage}}
    made = pairs.CHOICE_BY_CHOICE[client].request(body, Options(model="m", vendor="groq"))
    assert (made.choices, made.include_usage, made.body["stream_options"]) == (2, usage, {"include_usage": True})
    assert "n" not in made.body
    return made


def events(*told: Any) -> bytes:
    return b"".join(b"data: " + (one.encode() if isinstance(one, str) else json.dumps(one).encode()) + b"\n\n" for one in told)


def read(data: bytes) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in data.decode().splitlines() if line]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def chunk(text: str = "", **more: Any) -> dict[str, Any]:
    return {"id": "c", "model": "real", "choices": [{"index": 0, "delta": {"content": text}, **more}], "x_vendor": [1]}


TOLD = (chunk("a"), chunk(finish_reason="stop"), {"id": "c", "model": "real", "choices": [], "usage": USAGE})


@pytest.mark.parametrize("usage", [False, True])
@pytest.mark.parametrize("end", ["[DONE]", None])
def test_events_keep_their_members(usage: bool, end: str | None) -> None:
    stream = pairs.CHOICE_BY_CHOICE["completions"].stream(asked(usage))
    text = events(*TOLD, *([end] if end else []))
    out = b"".join(stream.feed(text[at : at + 7]) for at in range(0, len(text), 7)) + stream.end(None)
    assert read(out) == [*TOLD[: 3 if usage else 2], "[DONE]"]
    assert (stream.finished, stream.failed, stream.model) == (True, None, "real")
    assert stream.usage is not None
    assert (stream.usage.input, stream.usage.output) == (2, 3)


def test_usage_beside_words_goes_and_the_words_stay() -> None:
    stream = pairs.CHOICE_BY_CHOICE["completions"].stream(asked(False))
    [told] = read(stream.feed(events({**chunk("a"), "usage": USAGE})))
    assert told == {**chunk("a"), "usage": None}


@pytest.mark.parametrize("bad", ["{", "[]", {"choices": [1]}, {"choices": {}}, {"error": {"message": "busy", "type": "x"}}])
def test_what_is_no_event_ends_the_stream_with_an_error(bad: Any) -> None:
    stream = pairs.CHOICE_BY_CHOICE["completions"].stream(asked())
    *_, last = read(stream.feed(events(chunk("a"), bad)))
    assert last["error"]["message"]
    assert stream.failed is not None
    assert (stream.feed(events(chunk("b"))), stream.end(None)) == (b"", b"")


def test_a_stream_without_its_end_is_cut() -> None:
    stream = pairs.CHOICE_BY_CHOICE["text"].stream(asked(client="text"))
    told = {"id": "t", "model": "real", "choices": [{"index": 0, "text": "a", "finish_reason": None}]}
    assert read(stream.feed(events(told))) == [told]
    assert "error" in read(stream.end(None))[0]


def test_readers_take_writers_only() -> None:
    for other in (None, 1):
        with pytest.raises(TypeError):
            SameReader(other)  # type: ignore[arg-type]
