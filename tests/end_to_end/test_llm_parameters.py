"""What becomes of parameters that the provider's format has no place for: `unsupportedParameters`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.end_to_end.llm_formats import frame
from tests.end_to_end.llm_rig import Rig, served, stand_ins
from tests.end_to_end.llm_translated_rig import CONVERSE, GEMINI
from tests.end_to_end.provider_stand_in import chat, event, message, message_events, stream, whole
from tests.end_to_end.tracing import wait_for

CONFIG = """
gateways:
  default: {port: {port}}
llm:
  providers:
  - name: strict
    provider: anthropic
    params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: sk-ant-api}
    defaults: {unsupportedParameters: refuse}
  models:
  - {name: claude-warn, provider: anthropic, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: k}}
  - {name: claude-drop, provider: anthropic, unsupportedParameters: drop,
     params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: k}}
  - {name: claude-refuse, provider: {reference: strict}}
  - {name: claude-mild, provider: {reference: strict}, unsupportedParameters: warn}
  - {name: gpt-refuse, provider: openai, unsupportedParameters: refuse,
     params: {baseUrl: "http://127.0.0.1:PROVIDER/v1", apiKey: k}}
  - {name: gem-refuse, provider: gemini, unsupportedParameters: refuse,
     params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: k}}
  - {name: gem-warn, provider: gemini, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: k}}
  - {name: aws-warn, provider: bedrock, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: k}}
"""
ROUTES = """
binds:
- port: {port}
  listeners:
  - routes:
    - policies: {ai: {unsupportedParameters: refuse, prompts: {prepend: [{role: system, content: be very brief}]}}}
      backends:
      - ai: {name: one, provider: {PROVIDES}, hostOverride: "127.0.0.1:PROVIDER"}
        policies: {backendAuth: {key: k}}
"""
HEADER = "x-gw-unsupported-parameters"
TURNS = [{"role": "user", "content": "hi"}]
CHAT: dict[str, Any] = {"messages": TURNS, "seed": 7, "logit_bias": {"1": 2}, "user": "u", "n": 1}


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with stand_ins(whole(message())) as [provider]:
        text = CONFIG.replace("PROVIDER", str(provider.port))
        with served(tmp_path_factory.mktemp("parameters"), text) as running:
            yield Rig(running, provider)


def counted(rig: Rig, *labels: str) -> list[float]:
    """Return the counts of series with all of these labels."""
    _, page = rig.running.fetch(f"http://127.0.0.1:{rig.running.stats}/metrics")
    return [
        float(line.rpartition(" ")[2])
        for line in page.splitlines()
        if line.startswith("gw_gen_ai_unsupported_parameters_total") and all(label in line for label in labels)
    ]


def test_a_response_names_what_was_not_carried(rig: Rig) -> None:
    rig.answers(whole(message()))
    reply = rig.post({**CHAT, "model": "claude-warn", "made\nup": 1})
    assert reply.status_code == 200
    assert reply.headers[HEADER] == "seed, logit_bias, made?up"
    assert {"seed", "logit_bias", "made\nup"}.isdisjoint(rig.provider.last.json)
    place = ('client_format="completions"', 'upstream_format="messages"', 'gen_ai_system="anthropic"')
    for name in ("seed", "logit_bias", "other"):
        assert counted(rig, f'parameter="{name}"', *place) == [1], name
    assert counted(rig, 'parameter="made') == []


def test_a_stream_names_it_too(rig: Rig) -> None:
    rig.answers(stream(*message_events("hel", "lo")))
    reply = rig.post({**CHAT, "model": "claude-warn", "stream": True, "presence_penalty": 0.5})
    assert reply.headers[HEADER] == "seed, logit_bias, presence_penalty"
    assert reply.text.endswith("data: [DONE]\n\n")
    assert counted(rig, 'parameter="presence_penalty"') == [1]


def test_an_error_of_the_provider_names_it_too(rig: Rig) -> None:
    rig.answers(whole({"error": {"type": "rate_limit_error", "message": "no"}}, 429))
    reply = rig.post({**CHAT, "model": "claude-warn"})
    assert (reply.status_code, reply.headers[HEADER]) == (429, "seed, logit_bias")


def test_nothing_is_told_of_what_is_carried(rig: Rig) -> None:
    rig.answers(whole(message()))
    reply = rig.post({"model": "claude-warn", "messages": TURNS, "n": 1, "stop": ["x"], "store": False})
    assert HEADER not in reply.headers


def test_nothing_is_told_where_it_is_dropped(rig: Rig) -> None:
    rig.answers(whole(message()))
    reply = rig.post({"model": "claude-drop", "messages": TURNS, "top_logprobs": 3})
    assert reply.status_code == 200
    assert HEADER not in reply.headers
    assert counted(rig, 'parameter="top_logprobs"') == [1]


REFUSED = [
    ("/v1/chat/completions", {**CHAT, "model": "claude-refuse"}, "seed, logit_bias"),
    ("/v1/responses", {"model": "claude-refuse", "input": "hi", "max_tool_calls": 3}, "max_tool_calls"),
    ("/v1/responses", {"model": "gem-refuse", "input": "hi", "truncation": "auto"}, "truncation"),
    ("/v1/messages", {"model": "gpt-refuse", "max_tokens": 9, "messages": TURNS, "top_k": 3}, "top_k"),
    ("/v1/messages", {"model": "gem-refuse", "max_tokens": 9, "messages": TURNS, "container": "c"}, "container"),
    ("/v1/chat/completions", {"model": "gem-refuse", "messages": [{**TURNS[0], "name": "ann"}]}, "messages[0].name"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body", "named"), REFUSED)
def test_a_request_is_refused_before_the_call_in_the_client_s_format(
    rig: Rig, path: str, body: dict[str, Any], named: str
) -> None:
    before = len(rig.provider.seen)
    reply = rig.post(body, path)
    error = reply.json()["error"]
    assert reply.status_code == 400
    assert error["message"].endswith(f"the provider of this model does not support {named}")
    if path == "/v1/messages":
        assert (reply.json()["type"], error["type"]) == ("error", "invalid_request_error")
    else:
        assert (error["type"], error["code"]) == ("invalid_request_error", "unsupported_parameter")
    assert len(rig.provider.seen) == before


def test_hints_and_what_others_said_earlier_are_told_but_not_refused(rig: Rig) -> None:
    rig.answers(whole(chat()))
    turns = [
        {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                                          {"type": "text", "text": "yes"}]},
        *TURNS,
    ]  # fmt: skip
    reply = rig.post({"model": "gpt-refuse", "max_tokens": 9, "messages": turns}, "/v1/messages")
    assert (reply.status_code, HEADER in reply.headers) == (200, False)


def test_a_model_overrides_its_provider(rig: Rig) -> None:
    rig.answers(whole(message()))
    assert rig.post({**CHAT, "model": "claude-mild"}).headers[HEADER] == "seed, logit_bias"


def test_other_vendors(rig: Rig) -> None:
    rig.answers(whole(CONVERSE))
    reply = rig.post({**CHAT, "model": "aws-warn", "parallel_tool_calls": False})
    assert reply.headers[HEADER] == "seed, logit_bias, user, parallel_tool_calls"
    frames = [frame("messageStart", {"role": "assistant"}), frame("messageStop", {"stopReason": "end_turn"})]
    rig.answers(stream(*frames, kind="application/vnd.amazon.eventstream"))
    assert rig.post({**CHAT, "model": "aws-warn", "stream": True}).headers[HEADER] == "seed, logit_bias, user"
    rig.answers(stream(event(GEMINI)))
    assert HEADER not in rig.post({"model": "gem-refuse", "messages": TURNS, "seed": 3, "stream": True}).headers


def test_a_policy_of_a_route(gateway: Any, stand_in: Any) -> None:
    provider = stand_in(whole(message()))
    running = gateway(ROUTES.replace("PROVIDES", "anthropic: {model: c}").replace("PROVIDER", str(provider.port)))
    reply = Rig(running, provider).post({**CHAT, "model": "any"})
    assert reply.status_code == 400
    assert reply.json()["error"]["code"] == "unsupported_parameter"
    assert provider.seen == []


def test_an_estimate_counts_added_prompts(gateway: Any, stand_in: Any) -> None:
    provider = stand_in(whole(chat()))
    rig = Rig(gateway(ROUTES.replace("PROVIDES", "openAI: {model: m}").replace("PROVIDER", str(provider.port))), provider)
    body = {"model": "m", "messages": [{"role": "user", "content": "one two"}]}
    # Three words and the frame of a message are added.
    assert rig.post(body, "/v1/messages/count_tokens").json() == {"input_tokens": (2 + 4 + 3) + (3 + 4)}
    assert rig.post({"contents": [{"parts": [{"text": "one two"}]}]}, "/v1beta/models/m:countTokens").json() == {
        "totalTokens": (2 + 4 + 3) + (3 + 4)
    }
    assert provider.seen == []


@pytest.mark.parametrize("streams", [False, True])
def test_what_the_client_s_format_cannot_say_of_an_answer_is_told(rig: Rig, streams: bool) -> None:
    image = "data:image/png;base64,aGVsbG8="
    said = {"content": "look", "images": [{"type": "image_url", "image_url": {"url": image}, "index": 0}]}
    end = {"index": 0, "finish_reason": "stop"}
    if streams:
        rig.answers(stream(event({**chat(), "choices": [{**end, "delta": said}]}), event("[DONE]")))
    else:
        rig.answers(whole({**chat(), "choices": [{**end, "message": said}]}))
    place = ('client_format="text"', 'upstream_format="completions"', 'parameter="answer"')
    before = sum(counted(rig, *place))
    reply = rig.post({"model": "gem-warn", "prompt": "hi", "stream": streams}, "/v1/completions")
    assert (reply.status_code, "look" in reply.text) == (200, True)
    assert reply.headers.get(HEADER) == (None if streams else "answer")
    wait_for(lambda: sum(counted(rig, *place)) == before + 1)
    # Chat completions have a place for it.
    shown = {"parts": [{"text": "look"}, {"inlineData": {"mimeType": "image/png", "data": "aGVsbG8="}}], "role": "model"}
    answer = {**GEMINI, "candidates": [{"content": shown, "finishReason": "STOP", "index": 0}]}
    rig.answers(stream(event(answer)) if streams else whole(answer))
    reply = rig.post({"model": "gem-warn", "messages": TURNS, "stream": streams})
    assert HEADER not in reply.headers
    assert image in reply.text
