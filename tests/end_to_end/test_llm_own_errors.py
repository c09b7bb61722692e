"""Answers of the gateway's own on the paths of models: errors in each client's format, and lists of models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import anthropic
import boto3
import httpx
import openai
import pytest
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError
from google import genai
from google.genai import errors as google_errors
from tests.end_to_end.llm_rig import Rig, served, stand_ins
from tests.end_to_end.provider_stand_in import StandIn, chat, reset, whole

# `k-*` are keys; each path of the route below leads to the same models with another limit or guard in front.
CONFIG = """
gateways:
  default: {port: {port}}
frontendPolicies: {http: {maxBufferSize: 4096}}
llm:
  providers:
  - {name: c, provider: {custom: {formats: [{type: completions}, {type: messages}, {type: responses}, {type: generateContent},
     {type: embeddings}, {type: rerank}]}}, params: {baseUrl: "http://127.0.0.1:BACKEND/v1"}}
  models:
  - {name: plain, provider: {reference: c}}
  - {name: "org/*", provider: {reference: c}}
  - {name: guarded, provider: {reference: c}, guardrails: {request: [{regex: {action: reject, rules: [{pattern: heron}]}}]}}
  - {name: worded, provider: {reference: c}, guardrails: {request: [
      {regex: {action: reject, rules: [{pattern: heron}]}, rejection: {status: 422, body: no herons}}]}}
  - {name: hidden, provider: {reference: c}, visibility: internal}
  - {name: denied, provider: {reference: c}, authorization: {rules: ['request.headers["x-team"] == "research"']}}
  - {name: gone, provider: {custom: {formats: [{type: completions}, {type: messages}, {type: responses},
     {type: generateContent}]}}, params: {baseUrl: "http://127.0.0.1:1/v1"}}
  virtualModels:
  - {name: either, routing: {failover: {targets: [{model: plain, priority: 1}, {model: guarded, priority: 2}]}}}
  policies:
    apiKey:
      keys:
      - {key: k-all}
      - {key: k-one, allowedModels: [plain, org/known]}
"""
LIMITED = """
gateways:
  default: {port: {port}}
llm:
  models:
  - {name: plain, provider: {custom: {formats: [{type: completions}, {type: messages}, {type: responses}]}}, params: {baseUrl: "http://127.0.0.1:BACKEND/v1"}}
  policies: {localRateLimit: [{maxTokens: 1, tokensPerFill: 1, fillInterval: 3600s, type: KIND}]}
"""
TALK: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9}
GOOGLE = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
# Path and body by format of the client; {model} stands for the model in paths.
CLIENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "completions": ("/v1/chat/completions", TALK),
    "messages": ("/v1/messages", TALK),
    "responses": ("/v1/responses", {"input": "hi"}),
    "gemini": ("/v1beta/models/{model}:generateContent", GOOGLE),
}
EVERY = pytest.mark.parametrize("client", CLIENTS)


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with (
        stand_ins(whole(chat())) as [provider],
        served(tmp_path_factory.mktemp("own"), CONFIG.replace("BACKEND", str(provider.port))) as running,
    ):
        yield Rig(running, provider)


def ask(rig: Rig, client: str, model: str, text: str = "hi", key: str | None = "k-all", **headers: str) -> httpx.Response:
    path, body = CLIENTS[client]
    told = json.loads(json.dumps(body).replace('"hi"', json.dumps(text)))
    if "{model}" not in path:
        told["model"] = model
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    return rig.post(told, path.replace("{model}", model), **headers)


def read(client: str, answer: httpx.Response) -> tuple[str | None, str]:
    """Return code (or what the format has in its place) and message of an error in a client's shape."""
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    if client == "messages":
        assert (set(body), body["type"], set(body["error"])) == ({"type", "error"}, "error", {"type", "message"})
        return body["error"]["type"], body["error"]["message"]
    if client == "gemini":
        assert body["error"]["code"] == answer.status_code
        return body["error"]["status"], body["error"]["message"]
    assert set(body["error"]) == {"message", "type", "param", "code"}
    return body["error"]["code"], body["error"]["message"]


# What is asked; status, code of OpenAI's formats, type of Messages, status word of Google; the text, and what to do.
CASES: dict[str, tuple[dict[str, Any], int, str, str, str, str, str]] = {
    "no key": ({"model": "plain", "key": None}, 401, "invalid_api_key", "authentication_error", "UNAUTHENTICATED",
               "api key authentication failure: no API Key found", "send a key"),
    "wrong key": ({"model": "plain", "key": "k-bad"}, 401, "invalid_api_key", "authentication_error", "UNAUTHENTICATED",
                  "api key authentication failure: invalid credentials", "send a key"),
    "unknown": ({"model": "nothing"}, 404, "model_not_found", "not_found_error", "NOT_FOUND",
                "model 'nothing' is not served here", "`GET /v1/models`"),
    "internal": ({"model": "hidden"}, 404, "model_not_found", "not_found_error", "NOT_FOUND", "not served", "`GET"),
    "key": ({"model": "guarded", "key": "k-one"}, 403, "model_not_allowed", "permission_error", "PERMISSION_DENIED",
            "the API key may not use the model 'guarded'", "`GET /v1/models`"),
    "rule": ({"model": "denied"}, 403, "model_authorization_denied", "permission_error", "PERMISSION_DENIED",
             "no rule lets this request use the model", "`GET /v1/models`"),
    "guard": ({"model": "guarded", "text": "a heron"}, 403, "guardrail_intervention", "permission_error",
              "PERMISSION_DENIED", "The request was rejected due to inappropriate content", "change the prompt"),
    "long": ({"model": "plain", "text": "x" * 5000}, 413, "request_body_too_large", "request_too_large",
             "INVALID_ARGUMENT", "the request body is larger than the buffer", "maxBufferSize"),
    "refused": ({"model": "gone"}, 503, "upstream_error", "api_error", "UNAVAILABLE", "upstream call failed: ", "later"),
}  # fmt: skip


@EVERY
@pytest.mark.parametrize("case", CASES)
def test_errors_of_the_gateway_have_the_client_s_shape_and_say_what_to_do(rig: Rig, client: str, case: str) -> None:
    given, status, code, kind, word, text, advice = CASES[case]
    answer = ask(rig, client, **given)
    told, message = read(client, answer)
    assert (answer.status_code, told) == (status, {"messages": kind, "gemini": word}.get(client, code)), message
    assert text in message
    assert advice in message


@EVERY
def test_a_provider_that_breaks_off_is_an_error_of_the_client_s_shape(rig: Rig, client: str) -> None:
    rig.answers(reset)
    answer = ask(rig, client, "plain")
    told, message = read(client, answer)
    assert answer.status_code == 503
    assert told == {"messages": "api_error", "gemini": "UNAVAILABLE"}.get(client, "upstream_error")
    assert "upstream call failed" in message
    rig.answers(whole(chat()))


@EVERY
def test_a_configured_rejection_is_sent_as_it_is_configured(rig: Rig, client: str) -> None:
    answer = ask(rig, client, "worded", "a heron")
    assert (answer.status_code, answer.text) == (422, "no herons")


@pytest.mark.parametrize(
    ("model", "key", "code", "text"),
    [("nothing", "k-all", "ResourceNotFoundException", "model 'nothing' is not served here"),
     ("guarded", "k-one", "AccessDeniedException", "the API key may not use the model 'guarded'"),
     ("gone", "k-all", "ServiceUnavailableException", "upstream call failed"),
     ("plain", "k-bad", "UnrecognizedClientException", "api key authentication failure")],
)  # fmt: skip
def test_bedrock_s_client_reads_what_is_wrong(rig: Rig, model: str, key: str, code: str, text: str) -> None:
    def with_key(request: Any, **_: Any) -> None:
        request.headers["authorization"] = f"Bearer {key}"

    client = boto3.client("bedrock-runtime", region_name="eu-west-1", endpoint_url=rig.running.url,
                          config=Config(signature_version=UNSIGNED, retries={"max_attempts": 0}))  # fmt: skip
    client.meta.events.register("before-send.bedrock-runtime", with_key)
    for call in (client.converse, client.converse_stream):
        with pytest.raises(ClientError) as found:
            call(modelId=model, messages=[{"role": "user", "content": [{"text": "hi"}]}])
        error = found.value.response["Error"]
        assert error["Code"] == code
        assert error["Message"].startswith(text)


@pytest.mark.parametrize("version", ["v1", "v1beta"])
@pytest.mark.parametrize(("model", "status"), [("nothing", (404, "NOT_FOUND")), ("gone", (503, "UNAVAILABLE"))])
def test_google_s_shape_for_embeddings(rig: Rig, version: str, model: str, status: tuple[int, str]) -> None:
    answer = rig.post({"requests": []}, f"/{version}/models/{model}:batchEmbedContents", authorization="Bearer k-all")
    assert (answer.status_code, read("gemini", answer)[0]) == status


def test_google_s_shape_without_events(rig: Rig) -> None:
    answer = rig.post(GOOGLE, "/v1beta/models/nothing:streamGenerateContent", authorization="Bearer k-all")
    assert (answer.status_code, read("gemini", answer)[0]) == (404, "NOT_FOUND")


def test_other_formats_and_paths(rig: Rig) -> None:
    answer = rig.post({"model": "nothing", "query": "q", "documents": ["d"]}, "/v2/rerank", authorization="Bearer k-all")
    assert (answer.status_code, set(answer.json())) == (404, {"message"})
    answer = rig.post({"model": "nothing", "input": "x"}, "/v1/embeddings", authorization="Bearer k-all")
    assert read("completions", answer)[0] == "model_not_found"
    answer = rig.post({}, "/v1/unheard-of", authorization="Bearer k-all", anthropic_version="2023-06-01")
    assert read("messages", answer)[0] == "invalid_request_error"
    answer = rig.post(b"no json", "/v1/messages", authorization="Bearer k-all")
    assert read("messages", answer)[0] == "invalid_request_error"


@pytest.mark.parametrize("kind", ["requests", "tokens"])
def test_limits_say_when_to_come_back(tmp_path_factory: pytest.TempPathFactory, kind: str) -> None:
    text = LIMITED.replace("KIND", kind)
    with (
        stand_ins(whole(chat())) as [provider],
        served(tmp_path_factory.mktemp("limits"), text.replace("BACKEND", str(provider.port))) as running,
    ):
        rig = Rig(running, provider)
        assert ask(rig, "completions", "plain", key=None).status_code == 200
        for client in CLIENTS:
            answer = ask(rig, client, "plain", key=None)
            told, message = read(client, answer)
            wait = int(answer.headers["retry-after"])
            assert answer.status_code == 429
            assert told == {"messages": "rate_limit_error", "gemini": "RESOURCE_EXHAUSTED"}.get(client, "rate_limit_exceeded")
            assert message == f"rate limit exceeded: wait {wait} s, then send the request again"
            assert 0 < wait <= 3600
            fields = {name: value for name, value in answer.headers.items() if "ratelimit" in name}
            assert fields["x-ratelimit-limit"] == "1"
            if client == "messages":
                assert fields[f"anthropic-ratelimit-{kind}-limit"] == "1"
                assert fields[f"anthropic-ratelimit-{kind}-remaining"] == "0"
                assert fields[f"anthropic-ratelimit-{kind}-reset"].endswith("Z")
            elif client == "gemini":
                assert answer.json()["error"]["details"][0]["retryDelay"] == f"{wait}s"
            else:
                assert fields[f"x-ratelimit-limit-{kind}"] == "1"
                assert fields[f"x-ratelimit-remaining-{kind}"] == "0"
                assert fields[f"x-ratelimit-reset-{kind}"].endswith("s")
        with pytest.raises(anthropic.RateLimitError, match="rate limit exceeded"):
            anthropic.Anthropic(base_url=running.url, api_key="k", max_retries=0).messages.create(model="plain", **TALK)
        with pytest.raises(openai.RateLimitError) as found:
            openai.OpenAI(base_url=f"{running.url}/v1", api_key="k", max_retries=0).responses.create(
                model="plain", input="hi"
            )
        assert found.value.code == "rate_limit_exceeded"


LISTED = ["plain", "guarded", "gone", "org/*", "either"]


def clients(rig: Rig, key: str = "k-all") -> tuple[openai.OpenAI, anthropic.Anthropic, genai.Client]:
    headers = {"authorization": f"Bearer {key}"}
    return (
        openai.OpenAI(base_url=f"{rig.running.url}/v1", api_key=key, max_retries=0),
        anthropic.Anthropic(base_url=rig.running.url, auth_token=key, max_retries=0),
        genai.Client(api_key="unused", http_options={"base_url": rig.running.url, "headers": headers}),
    )


def test_lists_of_models_for_every_vendor_s_client(rig: Rig) -> None:
    of_openai, of_anthropic, of_google = clients(rig)
    listed = of_openai.models.list().data
    assert {one.id for one in listed} == {*LISTED, "worded"}
    owners = {one.id: one.owned_by for one in listed}
    assert owners == {**dict.fromkeys((*LISTED, "worded"), "c"), "gone": "custom", "either": "c"}
    found = list(of_anthropic.models.list())
    assert {one.id for one in found} == {*LISTED, "worded"}
    assert {(one.type, one.display_name == one.id) for one in found} == {("model", True)}
    google = list(of_google.models.list())
    assert {one.name for one in google} == {f"models/{name}" for name in (*LISTED, "worded")}
    assert google[0].supported_actions == ["generateContent", "countTokens"]
    key = clients(rig, "k-one")
    assert {one.id for one in key[0].models.list()} == {"plain", "org/known"}
    assert {one.id for one in key[1].models.list()} == {"plain", "org/known"}


def test_one_model_for_every_vendor_s_client(rig: Rig) -> None:
    of_openai, of_anthropic, of_google = clients(rig)
    for name in ("plain", "either", "org/anything:8b"):
        assert of_openai.models.retrieve(name).id == name
        assert of_anthropic.models.retrieve(name).id == name
    assert of_google.models.get(model="plain").name == "models/plain"
    for name in ("hidden", "denied", "nothing"):
        with pytest.raises(openai.NotFoundError) as found:
            of_openai.models.retrieve(name)
        assert found.value.code == "model_not_found"
        with pytest.raises(anthropic.NotFoundError):
            of_anthropic.models.retrieve(name)
        with pytest.raises(google_errors.ClientError, match="NOT_FOUND"):
            of_google.models.get(model=name)
    with pytest.raises(openai.NotFoundError):
        clients(rig, "k-one")[0].models.retrieve("guarded")
    assert clients(rig, "k-one")[0].models.retrieve("org/known").id == "org/known"


ASKED = """
gateways:
  default: {port: {port}}
llm:
  models:
  - {name: "gpt-*", provider: openai, params: {baseUrl: "http://127.0.0.1:ONE/v1", apiKey: sk-openai}}
  - {name: "claude-*", provider: anthropic, params: {baseUrl: "http://127.0.0.1:ONE", apiKey: sk-ant-api}}
  - {name: "gemini-*", provider: gemini, params: {baseUrl: "http://127.0.0.1:ONE", apiKey: AIza-key}}
  - {name: "lost-*", provider: openai, params: {baseUrl: "http://127.0.0.1:1/v1", apiKey: sk-lost}}
  - {name: "pinned-*", provider: openai, params: {baseUrl: "http://127.0.0.1:ONE/v1", apiKey: sk-openai, model: gpt-5}}
"""
LISTS: dict[str, Any] = {
    "sk-openai": {"object": "list", "data": [{"id": "gpt-5"}, {"id": "gpt-5-mini"}, {"id": "whisper-1"}]},
    "sk-ant-api": {"data": [{"type": "model", "id": "claude-opus"}], "has_more": False},
    "AIza-key": {"models": [{"name": "models/gemini-3-pro"}, {"name": "models/imagen"}]},
}


def lists(stand_in: StandIn, handler: BaseHTTPRequestHandler) -> None:
    """Answer with the models of the vendor whose key was sent in its own field, and refuse any other."""
    headers = stand_in.last.headers
    key = headers.get("x-api-key") or headers.get("x-goog-api-key") or headers["authorization"].removeprefix("Bearer ")
    whole(LISTS[key])(stand_in, handler)


def test_patterns_list_the_ids_of_their_providers(tmp_path_factory: pytest.TempPathFactory) -> None:
    with (
        stand_ins(lists) as [provider],
        served(tmp_path_factory.mktemp("ids"), ASKED.replace("ONE", str(provider.port))) as running,
    ):
        expected = {"gpt-5": "openai", "gpt-5-mini": "openai", "claude-opus": "anthropic", "gemini-3-pro": "gcp.gemini",
                    "lost-*": "openai", "pinned-*": "openai"}  # fmt: skip
        client = openai.OpenAI(base_url=f"{running.url}/v1", api_key="k", max_retries=0)
        for _ in range(3):
            assert {one.id: one.owned_by for one in client.models.list()} == expected
        # Each worker asks once, however often it is asked.
        asked = [one.path for one in provider.seen]
        assert sorted(asked) == ["/v1/models", "/v1/models?limit=1000", "/v1beta/models?pageSize=1000"]
        of_anthropic = anthropic.Anthropic(base_url=running.url, api_key="k", max_retries=0)
        assert {one.id for one in of_anthropic.models.list()} == set(expected)
        assert client.models.retrieve("gpt-5").owned_by == "openai"
        assert client.models.retrieve("lost-1").id == "lost-1"
        with pytest.raises(openai.NotFoundError):
            client.models.retrieve("gpt-unheard-of")
        google = genai.Client(api_key="k", http_options={"base_url": running.url})
        actions = {one.name: one.supported_actions for one in google.models.list()}
        assert actions["models/gemini-3-pro"] == ["generateContent", "countTokens"]
        assert actions["models/gpt-5"] == ["generateContent", "countTokens"]
        assert len(provider.seen) == 3
        running.wait_log("path=/v1/models")
        assert "sk-openai" not in running.log()
