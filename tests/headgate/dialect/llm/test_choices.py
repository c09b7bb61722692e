"""Several answers of one choice each, as one answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.dialect.llm import choices, pairs
from headgate.dialect.llm.contract import Options, Untranslatable

CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
GEMINI: dict[str, Any] = {"contents": [{"parts": [{"text": "hi"}]}]}


def with_count(client: str, count: Any) -> dict[str, Any]:
    if client == "gemini":
        return {**GEMINI, "generationConfig": {"candidateCount": count}}
    return {**(CHAT if client == "completions" else {"model": "m", "prompt": "hi"}), "n": count}


PAIRS = [pair for pair in pairs.PAIRS.values() if pair.client in choices.MEMBERS]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.client}-{pair.upstream}")
@pytest.mark.parametrize("streams", [False, True])
def test_choices_are_made_by_the_provider_or_by_so_many_calls(pair: pairs.Converter, streams: bool) -> None:
    body = with_count(pair.client, 3)
    if pair.client != "gemini":
        body["stream"] = streams
    asked = pair.request(body, Options(model="m", stream=streams))
    alone = not streams and pair.upstream in ("completions", "gemini")
    assert asked.choices == (1 if alone else 3)
    told = asked.body.get("n") or asked.body.get("generationConfig", {}).get("candidateCount")
    assert told == (3 if alone else None)
    assert pair.request(with_count(pair.client, 1), Options(model="m")).choices == 1


def test_vendors_that_ignore_n_are_asked_for_each_choice() -> None:
    asked = pairs.PAIRS["gemini", "completions"].request(with_count("gemini", 2), Options(model="m", vendor="ollama"))
    assert (asked.choices, "n" in asked.body) == (2, False)


@pytest.mark.parametrize("count", [0, -1, "2", 1.5, choices.MOST + 1])
def test_numbers_that_cannot_be_are_refused(count: Any) -> None:
    with pytest.raises(Untranslatable, match=r"^n: "):
        pairs.PAIRS["completions", "messages"].request({**CHAT, "n": count}, Options())


def test_whole_answers() -> None:
    def answer(text: str, tokens: int, **more: Any) -> dict[str, Any]:
        usage = {"prompt_tokens": 3, "completion_tokens": tokens, "completion_tokens_details": {"reasoning_tokens": 1}}
        return {"id": text, "choices": [{"index": 0, "message": {"content": text}}], "usage": usage, **more}

    made = choices.whole("completions", [answer("a", 5), answer("b", 7), answer("c", 2)])
    assert [(one["index"], one["message"]["content"]) for one in made["choices"]] == [(0, "a"), (1, "b"), (2, "c")]
    assert made["usage"] == {
        "prompt_tokens": 9, "completion_tokens": 14, "completion_tokens_details": {"reasoning_tokens": 3},
    }  # fmt: skip
    assert made["id"] == "a"
    none = {"id": "x", "choices": [{"index": 0}]}
    assert choices.whole("completions", [none, answer("b", 7)])["usage"]["completion_tokens"] == 7
    assert "usage" not in choices.whole("completions", [none, none])


def events(*told: Any) -> bytes:
    return b"".join(b"data: " + (one.encode() if isinstance(one, str) else json.dumps(one).encode()) + b"\n\n" for one in told)


def read(data: bytes) -> list[Any]:
    return [json.loads(line[6:]) if line != "data: [DONE]" else "[DONE]" for line in data.decode().splitlines() if line]


def chunk(ident: str, text: str | None = None, **more: Any) -> dict[str, Any]:
    listed = [] if text is None else [{"index": 0, "delta": {"content": text}, "finish_reason": None}]
    return {"id": ident, "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": listed, **more}


def test_streams_are_told_as_they_come_with_one_end() -> None:
    merged = choices.MergedStream("completions", 2)
    out = merged.feed(0, events(chunk("a", "One")))
    out += merged.feed(1, events(chunk("b", "Zwei"))[:20])
    out += merged.feed(1, events(chunk("b", "Zwei"))[20:])
    out += merged.feed(1, events(chunk("b", usage={"prompt_tokens": 3, "total_tokens": 5}), "[DONE]"))
    out += merged.feed(0, events(chunk("a", "."), chunk("a", usage={"prompt_tokens": 3, "total_tokens": 4}), "[DONE]"))
    *told, last, done = read(out)
    assert [(one["id"], one["choices"][0]["index"], one["choices"][0]["delta"]["content"]) for one in told] == [
        ("a", 0, "One"), ("a", 1, "Zwei"), ("a", 0, "."),
    ]  # fmt: skip
    assert (last["usage"], last["choices"], done) == ({"prompt_tokens": 6, "total_tokens": 9}, [], "[DONE]")


def test_google_s_usage_stands_in_the_last_event() -> None:
    def event(text: str, **more: Any) -> dict[str, Any]:
        return {"candidates": [{"content": {"parts": [{"text": text}]}, "index": 0, **more}], "responseId": text}

    merged = choices.MergedStream("gemini", 2)
    end = {**event("", finishReason="STOP"), "usageMetadata": {"totalTokenCount": 4}}
    out = merged.feed(1, events(event("a"), end)) + merged.feed(0, events(event("b"), end))
    told = read(out)
    assert [one["candidates"][0]["index"] for one in told] == [1, 1, 0, 0]
    assert {one["responseId"] for one in told} == {"a"}
    assert [one.get("usageMetadata") for one in told] == [None, None, None, {"totalTokenCount": 8}]


def test_an_error_is_passed_on_as_it_is() -> None:
    merged = choices.MergedStream("completions", 2)
    error = {"error": {"message": "busy"}}
    assert read(merged.feed(1, events(error))) == [error]
