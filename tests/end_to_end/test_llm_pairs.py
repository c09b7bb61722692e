"""Google's client at every provider, OpenAI's at models of Responses only, and legacy text completions at chat models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from google import genai
from google.genai import errors, types
from llm_sdk_shapes import shape_faults
from tests.end_to_end.llm_formats import CHAT, CHAT_EVENTS, RESPONSE, RESPONSE_EVENTS, frame
from tests.end_to_end.llm_rig import Rig, openai_client, served, stand_ins
from tests.end_to_end.llm_translated_rig import CONVERSE, GEMINI
from tests.end_to_end.provider_stand_in import Answer, chat, event, message, message_events, stream, whole

CONFIG = """
gateways:
  default: {port: {port}}
llm:
  providers:
  - {name: only-responses, provider: {custom: {formats: [{type: responses}]}},
     params: {baseUrl: "http://127.0.0.1:PROVIDER/v1", apiKey: sk-own}}
  - {name: local, provider: {custom: {formats: [{type: completions}]}}, params: {baseUrl: "http://127.0.0.1:PROVIDER/v1"}}
  models:
  - {name: "gpt-*", provider: openai, params: {baseUrl: "http://127.0.0.1:PROVIDER/v1", apiKey: sk-openai}}
  - {name: "o3*", provider: openai, params: {baseUrl: "http://127.0.0.1:PROVIDER/v1", apiKey: sk-openai}}
  - {name: "claude-*", provider: anthropic, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: sk-ant-api}}
  - {name: "gem-*", provider: gemini, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: AIza-key}}
  - {name: "aws-*", provider: bedrock, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: bedrock-key}}
  - {name: "resp-*", provider: {reference: only-responses}}
  - {name: "local-*", provider: {reference: local}}
  - {name: "acme/*", provider: {reference: local}}
  - {name: claude-guarded, provider: anthropic, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: k},
     guardrails: {request: [{regex: {rules: [{pattern: secret}], action: reject}}]}}
"""
FRAMES = (
    frame("messageStart", {"role": "assistant"}),
    frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "hel"}}),
    frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "lo"}}),
    frame("contentBlockStop", {"contentBlockIndex": 0}),
    frame("messageStop", {"stopReason": "end_turn"}),
    frame("metadata", {"usage": {"inputTokens": 3, "outputTokens": 5, "totalTokens": 8}}),
)
SPOKEN = (
    *RESPONSE_EVENTS[:2],
    event({"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": "lo"},
          "response.output_text.delta"),
    RESPONSE_EVENTS[2],
)  # fmt: skip
AWS = "application/vnd.amazon.eventstream"
# Model, path and format of the provider's request, whole and streamed answer, tokens of the output.
WAYS: dict[str, tuple[str, str, str, Answer, Answer, int]] = {
    "openai": ("gpt-x", "/v1/chat/completions", "completions", whole(CHAT), stream(*CHAT_EVENTS), 70),
    "anthropic": ("claude-x", "/v1/messages", "messages", whole(message()), stream(*message_events("hel", "lo")), 7),
    "responses": ("resp-x", "/v1/responses", "responses", whole(RESPONSE), stream(*SPOKEN), 12),
    "bedrock": ("aws-x", "/model/aws-x/converse", "converse", whole(CONVERSE), stream(*FRAMES, kind=AWS), 5),
}
EVERY_WAY = pytest.mark.parametrize("way", WAYS)
CONTENTS: Any = [
    {"role": "user", "parts": [{"text": "look"}, {"inline_data": {"mime_type": "image/png", "data": b"\xfb\xff"}}]},
    {"role": "model", "parts": [{"function_call": {"id": "c1", "name": "look", "args": {"at": "sky"}}}]},
    {"role": "user", "parts": [{"function_response": {"id": "c1", "name": "look", "response": {"result": "blue"}}}]},
]
ASKED: Any = types.GenerateContentConfig(
    system_instruction="be brief", max_output_tokens=99, temperature=0.5,
    tools=[types.Tool(function_declarations=[types.FunctionDeclaration(
        name="look", description="looks", parameters=types.Schema(
            type=types.Type.OBJECT, properties={"at": types.Schema(type=types.Type.STRING)}))])],
    automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
)  # fmt: skip


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with stand_ins(whole(chat())) as [provider]:
        text = CONFIG.replace("PROVIDER", str(provider.port))
        with served(tmp_path_factory.mktemp("pairs"), text) as running:
            yield Rig(running, provider)


@pytest.fixture(scope="module")
def google(rig: Rig) -> genai.Client:
    return genai.Client(api_key="own", http_options={"base_url": rig.running.url})


@EVERY_WAY
def test_google_s_client_gets_answers(rig: Rig, google: genai.Client, way: str) -> None:
    model, path, form, answer, _, tokens = WAYS[way]
    rig.answers(answer)
    reply = google.models.generate_content(model=model, contents=CONTENTS, config=ASKED)
    assert reply.text == "hello"
    assert reply.candidates is not None
    assert reply.candidates[0].finish_reason == types.FinishReason.STOP
    usage = reply.usage_metadata
    assert usage is not None
    assert (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0) == tokens
    seen = rig.provider.last
    assert seen.path == path
    assert shape_faults(form, seen.json) == []
    told = json.dumps(seen.json)
    assert all(word in told for word in ("be brief", "blue", "sky", "+/8=", "looks", "99"))
    assert "own" not in seen.headers.values()
    rig.running.wait_log(f"gen_ai.request.model={model}")


@EVERY_WAY
def test_google_s_client_gets_streams(rig: Rig, google: genai.Client, way: str) -> None:
    model, path, form, _, answer, tokens = WAYS[way]
    rig.answers(answer)
    chunks = list(google.models.generate_content_stream(model=model, contents="hi"))
    assert "".join(chunk.text or "" for chunk in chunks) == "hello"
    last = chunks[-1]
    assert last.candidates is not None
    assert last.usage_metadata is not None
    assert last.candidates[0].finish_reason == types.FinishReason.STOP
    assert (last.usage_metadata.candidates_token_count or 0) + (last.usage_metadata.thoughts_token_count or 0) == tokens
    assert rig.provider.last.path.startswith(path)
    assert rig.provider.last.json.get("stream", True) is True
    assert shape_faults(form, rig.provider.last.json) == []


@EVERY_WAY
def test_without_alt_a_stream_is_an_array(rig: Rig, way: str) -> None:
    model, _, _, _, answer, _ = WAYS[way]
    rig.answers(answer)
    reply = rig.post({"contents": [{"parts": [{"text": "hi"}]}]}, f"/v1beta/models/{model}:streamGenerateContent")
    assert reply.headers["content-type"] == "application/json"
    entries = reply.json()
    texts = [part.get("text", "") for one in entries for part in one["candidates"][0]["content"]["parts"]]
    assert "".join(texts) == "hello"
    assert len(entries) > 2


def test_a_native_stream_is_an_array_too(rig: Rig) -> None:
    rig.answers(stream(event(GEMINI), event(GEMINI)))
    path = "/v1beta/models/gem-x:streamGenerateContent"
    reply = rig.post({"contents": [{"parts": [{"text": "hi"}]}]}, f"{path}?alt=json&$prettyPrint=false")
    assert reply.headers["content-type"] == "application/json"
    assert reply.json() == [GEMINI, GEMINI]
    assert rig.provider.last.path == f"{path}?$prettyPrint=false&alt=sse"
    assert rig.post({"contents": []}, path).json() == [GEMINI, GEMINI]
    assert rig.provider.last.path == f"{path}?alt=sse"
    rig.running.wait_log("gen_ai.usage.output_tokens=5")
    rig.answers(whole({"error": {"code": 400, "message": "bad", "status": "INVALID_ARGUMENT"}}, 400))
    refused = rig.post({"contents": []}, path)
    assert (refused.status_code, refused.json()["error"]["message"]) == (400, "bad")


@pytest.mark.parametrize("model", ["claude-x", "gem-x"])
def test_an_array_that_breaks_ends_in_one_error(rig: Rig, model: str) -> None:
    events = message_events("hel", "lo")[:4] if model == "claude-x" else [event({**GEMINI, "candidates": [
        {"content": {"parts": [{"text": "hello"}], "role": "model"}, "index": 0}]})]  # fmt: skip
    rig.answers(stream(*events, end="cut"))
    reply = rig.post({"contents": [{"parts": [{"text": "hi"}]}]}, f"/v1beta/models/{model}:streamGenerateContent")
    entries = reply.json()
    assert [("error" in one) for one in entries] == [False] * (len(entries) - 1) + [True]
    assert len(entries) > 1


def test_thoughts_and_calls_come_and_go(rig: Rig, google: genai.Client) -> None:
    said = message()
    said["content"] = [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln+/=="},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "sky"}},
    ]
    said["stop_reason"] = "tool_use"
    rig.answers(whole(said))
    reply = google.models.generate_content(model="claude-x", contents="look", config=ASKED)
    assert reply.function_calls is not None
    assert reply.candidates is not None
    assert [(call.id, call.name, call.args) for call in reply.function_calls] == [("toolu_1", "look", {"at": "sky"})]
    rig.answers(whole(message()))
    history: Any = [
        types.Content(role="user", parts=[types.Part(text="look")]),
        reply.candidates[0].content,
        types.Content(role="user", parts=[types.Part(function_response=types.FunctionResponse(
            id="toolu_1", name="look", response={"output": "blue"}))]),
    ]  # fmt: skip
    google.models.generate_content(model="claude-x", contents=history, config=ASKED)
    turns = rig.provider.last.json["messages"]
    assert turns[1]["content"] == said["content"]
    assert turns[2]["content"] == [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "blue"}]


def test_errors_are_google_s(rig: Rig, google: genai.Client) -> None:
    rig.answers(whole({"type": "error", "error": {"type": "rate_limit_error", "message": "too many"}}, 429))
    with pytest.raises(errors.ClientError) as found:
        google.models.generate_content(model="claude-x", contents="hi")
    assert (found.value.code, found.value.status, found.value.message) == (429, "RESOURCE_EXHAUSTED", "too many")
    before = len(rig.provider.seen)
    with pytest.raises(errors.ClientError) as refused:
        google.models.generate_content(model="claude-x", contents="hi", config={"cached_content": "cachedContents/1"})
    assert (refused.value.code, refused.value.status) == (400, "INVALID_ARGUMENT")
    assert len(rig.provider.seen) == before


def test_tokens_are_counted(rig: Rig, google: genai.Client) -> None:
    rig.answers(whole({"input_tokens": 42}))
    assert google.models.count_tokens(model="claude-x", contents="hi").total_tokens == 42
    assert rig.provider.last.path == "/v1/messages/count_tokens"
    rig.answers(whole({"inputTokens": 43}))
    assert google.models.count_tokens(model="aws-x", contents="hi").total_tokens == 43
    assert rig.provider.last.path == "/model/aws-x/count-tokens"
    before = len(rig.provider.seen)
    assert google.models.count_tokens(model="gpt-x", contents="one two three").total_tokens == 3 + 4 + 3
    whole_request = {"generateContentRequest": {"contents": [{"parts": [{"text": "one two three"}]}]}}
    assert rig.post(whole_request, "/v1beta/models/gpt-x:countTokens").json() == {"totalTokens": 10}
    assert len(rig.provider.seen) == before


@pytest.mark.parametrize("model", ["acme/claude", "acme/models/r1:free"])
def test_google_s_client_names_models_with_slashes(rig: Rig, google: genai.Client, model: str) -> None:
    rig.answers(whole(CHAT))
    assert google.models.generate_content(model=model, contents="hi").text == "hello"
    assert rig.provider.last.json["model"] == model
    rig.answers(stream(*CHAT_EVENTS))
    assert "".join(one.text or "" for one in google.models.generate_content_stream(model=model, contents="hi")) == "hello"
    assert rig.provider.last.json["model"] == model
    assert google.models.count_tokens(model=model, contents="one two three").total_tokens == 10
    with pytest.raises(errors.ClientError) as unknown:
        google.models.generate_content(model=f"other/{model}", contents="hi")
    assert (unknown.value.code, unknown.value.status) == (404, "NOT_FOUND")


@pytest.mark.parametrize("model", ["resp-x", "o3-pro"])
def test_chat_clients_at_models_of_responses_only(rig: Rig, model: str) -> None:
    rig.answers(whole(RESPONSE))
    client = openai_client(rig.running)
    turns: Any = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]
    reply = client.chat.completions.create(model=model, messages=turns, reasoning_effort="high", max_tokens=99)
    assert reply.choices[0].message.content == "hello"
    assert reply.usage is not None
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (30, 12)
    seen = rig.provider.last
    assert seen.path == "/v1/responses"
    assert (seen.json["reasoning"], seen.json["max_output_tokens"], seen.json["store"]) == ({"effort": "high"}, 99, False)
    assert shape_faults("responses", seen.json) == []
    rig.answers(stream(*SPOKEN))
    chunks = list(client.chat.completions.create(model=model, messages=turns, stream=True))
    assert "".join(one.choices[0].delta.content or "" for one in chunks if one.choices) == "hello"
    assert chunks[-1].choices[0].finish_reason == "stop"


TEXT_MODELS = {"gpt-x": "openai", "claude-x": "anthropic", "resp-x": "responses", "aws-x": "bedrock"}


@pytest.mark.parametrize("model", TEXT_MODELS)
def test_text_completions_at_chat_models(rig: Rig, model: str) -> None:
    _, path, form, answer, streamed, tokens = WAYS[TEXT_MODELS[model]]
    client = openai_client(rig.running)
    rig.answers(answer)
    reply = client.completions.create(model=model, prompt="once upon", max_tokens=16, echo=True)
    assert (reply.object, reply.choices[0].text) == ("text_completion", "once uponhello")
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage is not None
    assert reply.usage.completion_tokens == tokens
    assert rig.provider.last.path == path
    assert shape_faults(form, rig.provider.last.json) == []
    rig.answers(streamed)
    chunks = list(client.completions.create(model=model, prompt="once", stream=True, stream_options={"include_usage": True}))
    text = "".join(one.choices[0].text for one in chunks if one.choices)
    assert text == "hello"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == tokens


@pytest.mark.parametrize("model", ["gpt-3.5-turbo-instruct", "local-llama"])
def test_text_completions_at_models_that_take_them(rig: Rig, model: str) -> None:
    told = {"id": "c", "object": "text_completion", "created": 1, "model": model, "choices": [
        {"text": "a time", "index": 0, "logprobs": None, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 2, "completion_tokens": 61, "total_tokens": 63}}  # fmt: skip
    rig.answers(whole(told))
    reply = openai_client(rig.running).completions.create(model=model, prompt=[1, 2], suffix="x", n=1)
    assert reply.choices[0].text == "a time"
    assert rig.provider.last.path == "/v1/completions"
    assert rig.provider.last.json == {"model": model, "prompt": [1, 2], "suffix": "x", "n": 1}
    rig.running.wait_log("gen_ai.usage.output_tokens=61")


def test_text_completions_do_not_pass_guards_unread(rig: Rig) -> None:
    before = len(rig.provider.seen)
    reply = rig.post({"model": "claude-guarded", "prompt": "the secret"}, "/v1/completions")
    assert (reply.status_code, reply.json()["error"]["code"]) == (403, "unknown_path")
    path = "/v1beta/models/claude-guarded:generateContent"
    assert rig.post({"contents": [{"parts": [{"text": "the secret"}]}]}, path).status_code == 403
    assert len(rig.provider.seen) == before
