"""Several choices of one answer (`n`, `candidateCount`) at providers that make one at a time."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx
import openai
import pytest
from google import genai
from google.genai import types
from tests.end_to_end.llm_formats import RESPONSE, frame
from tests.end_to_end.llm_rig import Rig, openai_client, served, stand_ins
from tests.end_to_end.llm_translated_rig import CONVERSE, GEMINI
from tests.end_to_end.provider_stand_in import (
    Answer,
    StandIn,
    chat,
    event,
    message,
    message_events,
    reset,
    silence,
    stream,
    whole,
)
from tests.end_to_end.test_llm_pairs import AWS, SPOKEN

CONFIG = """
gateways:
  default: {port: {port}}
llm:
  providers:
  - {name: only-responses, provider: {custom: {formats: [{type: responses}]}},
     params: {baseUrl: "http://127.0.0.1:PROVIDER/v1", apiKey: sk-own}}
  models:
  - {name: "gpt-*", provider: openai, params: {baseUrl: "http://127.0.0.1:PROVIDER/v1", apiKey: sk-openai}}
  - {name: "groq-*", provider: groq, params: {baseUrl: "http://127.0.0.1:PROVIDER/v1", apiKey: sk-groq}}
  - {name: "claude-*", provider: anthropic, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: sk-ant-api}}
  - {name: "gem-*", provider: gemini, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: AIza-key}}
  - {name: "aws-*", provider: bedrock, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: bedrock-key}}
  - {name: "resp-*", provider: {reference: only-responses}}
  - {name: claude-guarded, provider: anthropic, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: k},
     guardrails: {response: [{regex: {rules: [{pattern: hello}], action: mask}}]}}
  virtualModels:
  - {name: twice, routing: {failover: {targets: [{model: claude-a, priority: 0}, {model: claude-b, priority: 1}]}}}
"""
FRAMES = (
    frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "hel"}}),
    frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "lo"}}),
    frame("messageStop", {"stopReason": "end_turn"}),
    frame("metadata", {"usage": {"inputTokens": 3, "outputTokens": 5, "totalTokens": 8}}),
)
# Model, whole and streamed answer, and output tokens of each choice.
WAYS: dict[str, tuple[str, Answer, Answer, int]] = {
    "messages": ("claude-x", whole(message()), stream(*message_events("hel", "lo")), 7),
    "responses": ("resp-x", whole(RESPONSE), stream(*SPOKEN), 12),
    "converse": ("aws-x", whole(CONVERSE), stream(*FRAMES, kind=AWS), 5),
    "gemini": ("gem-x", whole(GEMINI), stream(event(GEMINI)), 5),
}
EVERY_WAY = pytest.mark.parametrize("way", WAYS)
HI: Any = [{"role": "user", "content": "hi"}]


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with stand_ins(whole(chat())) as [provider]:
        text = CONFIG.replace("PROVIDER", str(provider.port))
        with served(tmp_path_factory.mktemp("choices"), text) as running:
            yield Rig(running, provider)


@pytest.fixture(scope="module")
def client(rig: Rig) -> openai.OpenAI:
    return openai_client(rig.running)


def asked(rig: Rig) -> int:
    return len(rig.provider.seen)


def together(count: int, answer: Answer) -> Answer:
    """An answer that comes when so many requests have been made: calls that wait for each other never get one."""
    barrier = threading.Barrier(count)

    def wait(stand_in: StandIn, handler: BaseHTTPRequestHandler) -> None:
        barrier.wait(30)
        answer(stand_in, handler)

    return wait


@pytest.mark.parametrize("way", [way for way in WAYS if way != "gemini"])
def test_every_choice_is_asked_for_at_once_and_their_usage_is_added(rig: Rig, client: openai.OpenAI, way: str) -> None:
    model, answer, _, tokens = WAYS[way]
    before = asked(rig)
    rig.answers(together(3, answer))
    made = client.chat.completions.create(model=model, messages=HI, n=3)
    assert asked(rig) - before == 3
    assert len({one.body for one in rig.provider.seen[before:]}) == 1
    assert [(one.index, one.message.content, one.finish_reason) for one in made.choices] == [
        (at, "hello", "stop") for at in range(3)
    ]
    assert made.usage is not None
    assert made.usage.completion_tokens == 3 * tokens
    assert made.usage.total_tokens == made.usage.prompt_tokens + made.usage.completion_tokens
    rig.running.wait_log(f"gen_ai.usage.output_tokens={3 * tokens}")


@EVERY_WAY
def test_streams_of_choices_come_as_one(rig: Rig, client: openai.OpenAI, way: str) -> None:
    model, _, answer, tokens = WAYS[way]
    rig.answers(together(3, answer))
    chunks = list(client.chat.completions.create(
        model=model, messages=HI, n=3, stream=True, stream_options={"include_usage": True}))  # fmt: skip
    assert len({chunk.id for chunk in chunks}) == 1
    texts, stops = [""] * 3, [0] * 3
    for chunk in chunks:
        for choice in chunk.choices:
            assert not stops[choice.index]
            texts[choice.index] += choice.delta.content or ""
            stops[choice.index] += choice.finish_reason is not None
    assert (texts, stops) == (["hello"] * 3, [1] * 3)
    counted = [chunk.usage for chunk in chunks if chunk.usage is not None]
    assert [one.completion_tokens for one in counted] == [3 * tokens]
    assert chunks[-1].usage is not None


def test_a_client_that_wants_no_usage_gets_none_and_is_charged(rig: Rig) -> None:
    rig.answers(stream(*message_events("hel", "lo")))
    told = rig.post({"model": "claude-quiet", "messages": HI, "n": 2, "stream": True}).text
    assert '"usage"' not in told
    assert told.endswith("data: [DONE]\n\n")
    assert told.count("[DONE]") == 1
    rig.running.wait_log("gen_ai.request.model=claude-quiet")
    [line] = [line for line in rig.running.log().splitlines() if "gen_ai.request.model=claude-quiet" in line]
    assert "gen_ai.usage.output_tokens=14" in line


@pytest.mark.parametrize("way", [way for way in WAYS if way != "gemini"])
def test_google_s_client_gets_candidates(rig: Rig, way: str) -> None:
    model, answer, events, tokens = WAYS[way]
    google = genai.Client(api_key="own", http_options={"base_url": rig.running.url})
    config = types.GenerateContentConfig(candidate_count=2)
    rig.answers(together(2, answer))
    reply = google.models.generate_content(model=model, contents="hi", config=config)
    assert reply.candidates is not None
    assert [one.index for one in reply.candidates] == [0, 1]
    rig.answers(together(2, events))
    texts = ["", ""]
    chunks = list(google.models.generate_content_stream(model=model, contents="hi", config=config))
    for chunk in chunks:
        for candidate in chunk.candidates or []:
            assert candidate.index is not None
            parts = (candidate.content.parts if candidate.content else None) or []
            texts[candidate.index] += "".join(part.text or "" for part in parts)
    assert texts == ["hello", "hello"]
    last = chunks[-1].usage_metadata
    assert last is not None
    assert (last.candidates_token_count or 0) + (last.thoughts_token_count or 0) == 2 * tokens
    assert all(chunk.usage_metadata is None for chunk in chunks[:-1])


def test_legacy_completions_have_choices_too(rig: Rig, client: openai.OpenAI) -> None:
    rig.answers(whole(message()))
    made = client.completions.create(model="claude-x", prompt="hi", n=2)
    assert [(one.index, one.text) for one in made.choices] == [(0, "hello"), (1, "hello")]


@pytest.mark.parametrize(("model", "path", "member"), [
    ("gpt-x", "/v1beta/models/gpt-x:generateContent", ("n",)), ("gem-x", "/v1/chat/completions", ("candidateCount",)),
])  # fmt: skip
def test_a_provider_that_makes_several_is_asked_once(rig: Rig, model: str, path: str, member: tuple[str]) -> None:
    answer = chat()
    answer["choices"].append({**answer["choices"][0], "index": 1})
    two = {**GEMINI, "candidates": [*GEMINI["candidates"], {**GEMINI["candidates"][0], "index": 1}]}  # type: ignore[misc]
    rig.answers(whole(answer if model == "gpt-x" else two))
    before = asked(rig)
    body: Any = {"model": model, "messages": HI, "n": 2}
    if model == "gpt-x":
        body = {"contents": [{"parts": [{"text": "hi"}]}], "generationConfig": {"candidateCount": 2}}
    reply = rig.post(body, path).json()
    assert asked(rig) - before == 1
    sent = rig.provider.last.json
    assert {**sent, **sent.get("generationConfig", {})}[member[0]] == 2
    assert [one["index"] for one in reply.get("choices", reply.get("candidates"))] == [0, 1]


def one_fails(model: str, failure: Answer, others: Answer) -> Answer:
    """Answers of which the second one for a model fails: calls that another test has given up may still arrive."""
    count, lock = [0], threading.Lock()

    def answer(stand_in: StandIn, handler: BaseHTTPRequestHandler) -> None:
        with lock:
            count[0] += handler.asked.json["model"] == model  # type: ignore[attr-defined]
            number = count[0]
        (failure if number == 2 else others)(stand_in, handler)

    return answer


OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
LIMITED = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(("status", "body", "code"), [(529, OVERLOADED, 529), (429, LIMITED, 429)])
def test_one_refusal_is_the_answer(rig: Rig, streams: bool, status: int, body: Any, code: int) -> None:
    good = stream(*message_events("hello")) if streams else whole(message())
    model = f"claude-{code}-{streams}"
    rig.answers(one_fails(model, whole(body, status, retry_after="7"), good))
    told = rig.post({"model": model, "messages": HI, "n": 3, "stream": streams})
    assert told.status_code == code
    assert told.json()["error"]["message"] == body["error"]["message"]
    assert told.headers["content-type"] == "application/json"


def test_an_error_that_begins_a_stream_has_its_status(rig: Rig) -> None:
    rig.answers(one_fails("claude-begun", stream(event(OVERLOADED, "error")), silence))
    told = rig.post({"model": "claude-begun", "messages": HI, "n": 2, "stream": True})
    assert (told.status_code, told.json()["error"]["message"]) == (529, "busy")


@pytest.mark.parametrize("end", ["cut", "error"])
def test_a_stream_that_breaks_ends_all_of_them(rig: Rig, end: str) -> None:
    begun = message_events("hel")[:4]
    broken = stream(*begun, event(OVERLOADED, "error")) if end == "error" else stream(*begun, end="cut")
    rig.provider.gone.clear()
    rig.answers(one_fails(f"claude-{end}", broken, stream(*begun, end="stall")))
    told = rig.post({"model": f"claude-{end}", "messages": HI, "n": 3, "stream": True})
    assert told.status_code == 200
    *_, last = [line for line in told.text.splitlines() if line]
    assert "error" in json.loads(last.removeprefix("data: "))
    assert "[DONE]" not in told.text
    # The calls that would have gone on are given up.
    assert rig.provider.gone.wait(30)


def test_a_connection_that_breaks_is_a_failure_of_the_gateway_s_own(rig: Rig) -> None:
    rig.answers(one_fails("claude-reset", reset, whole(message())))
    told = rig.post({"model": "claude-reset", "messages": HI, "n": 2})
    assert told.status_code in (502, 503)
    assert told.json()["error"]["message"]


def test_a_failure_goes_to_the_next_provider_with_all_choices(rig: Rig) -> None:
    before = asked(rig)

    def answer(stand_in: StandIn, handler: BaseHTTPRequestHandler) -> None:
        turned = any(one.json["model"] == "claude-b" for one in stand_in.seen[before:])
        (whole(message()) if turned else whole(OVERLOADED, 529))(stand_in, handler)

    rig.answers(answer)
    told = rig.post({"model": "twice", "messages": HI, "n": 2})
    assert told.status_code == 200
    assert len(told.json()["choices"]) == 2
    assert [one.json["model"] for one in rig.provider.seen[before:]].count("claude-b") == 2


@pytest.mark.parametrize("streams", [False, True])
def test_guards_see_all_choices(rig: Rig, streams: bool) -> None:
    rig.answers(stream(*message_events("hel", "lo")) if streams else whole(message()))
    told = rig.post({"model": "claude-guarded", "messages": HI, "n": 2, "stream": streams})
    assert told.status_code == 200
    assert "hello" not in told.text
    assert '"index":1' in told.text


def test_a_client_that_leaves_ends_all_calls(rig: Rig) -> None:
    rig.provider.gone.clear()
    rig.answers(stream(*message_events("hel")[:4], end="stall"))
    body = {"model": "claude-left", "messages": HI, "n": 2, "stream": True}
    with httpx.stream("POST", f"{rig.running.url}/v1/chat/completions", json=body, timeout=30) as reply:
        next(reply.iter_raw())
    assert rig.provider.gone.wait(30)
    rig.running.wait_log("gen_ai.request.model=claude-left")


@pytest.mark.parametrize(("n", "why"), [(9, "must be at most 8"), (0, "must be a number"), ("two", "must be a number")])
def test_numbers_that_cannot_be_are_refused(rig: Rig, n: Any, why: str) -> None:
    before = asked(rig)
    told = rig.post({"model": "claude-x", "messages": HI, "n": n})
    assert (told.status_code, why in told.json()["error"]["message"]) == (400, True)
    assert asked(rig) == before


def test_slow_clients_hold_the_providers_up(rig: Rig) -> None:
    """What the client does not read yet is not kept without bound."""
    text = "x" * 4000
    events = message_events(*[text] * 600)
    rig.answers(stream(*events))
    body = {"model": "claude-slow", "messages": HI, "n": 4, "stream": True}
    got = 0
    with httpx.stream("POST", f"{rig.running.url}/v1/chat/completions", json=body, timeout=60) as reply:
        for piece in reply.iter_raw():
            got += len(piece)
    assert got > 4 * 600 * 4000
