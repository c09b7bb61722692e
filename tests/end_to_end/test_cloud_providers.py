"""Models of clouds with the vendors' own clients: signatures, tokens, paths and bodies as the clouds want them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import boto3
import botocore.config
import openai
import pytest
from google import genai
from google.oauth2.credentials import Credentials
from tests.end_to_end.cloud_stand_in import CONTAINER, Clouds, Key, role_key, verify
from tests.end_to_end.conftest import Gateway
from tests.end_to_end.llm_formats import frame
from tests.end_to_end.llm_translated_rig import CONVERSE, GEMINI
from tests.end_to_end.provider_stand_in import StandIn, chat, event, message, message_events, stream, whole

MESSAGES: list[Any] = [{"role": "user", "content": "hi"}]
CONFIG = """
gateways:
  default: {port: {port}}
llm:
  providers:
  - name: google
    provider: vertex
    params: {vertexProject: p1, vertexRegion: europe-west4, baseUrl: "http://127.0.0.1:BACKEND"}
  models:
  - {name: "aws-*", provider: bedrock, params: {baseUrl: "http://127.0.0.1:BACKEND", awsRegion: eu-west-1}}
  - name: keyed
    provider: bedrock
    params: {baseUrl: "http://127.0.0.1:BACKEND", model: "arn:aws:bedrock:us-west-2:123456789012:inference-profile/us.x-v1:0"}
    auth: {aws: {accessKeyId: AKIAOWN, secretAccessKey: CANARY-own-secret, region: us-west-2}}
  - name: of-role
    provider: bedrock
    params: {baseUrl: "http://127.0.0.1:BACKEND", awsRegion: us-east-1, model: amazon.titan-embed-text-v2:0}
    auth: {aws: {assumeRole: {roleArn: "arn:aws:iam::123456789012:role/a", sessionName: fixed}}}
  - {name: "claude-*", provider: {reference: google}}
  - {name: "gemini-*", provider: {reference: google}}
  - {name: short, provider: {reference: google}, params: {model: publishers/google/models/gemini-3-pro}}
  - {name: "text-*", provider: {reference: google}}
  - {name: "meta/*", provider: {reference: google}}
  - name: azure
    provider: azure
    params: {azureResourceName: r, azureResourceType: openAI, baseUrl: "http://127.0.0.1:BACKEND"}
  - name: foundry
    provider: azure
    params: {azureResourceName: r, azureResourceType: foundry, baseUrl: "http://127.0.0.1:BACKEND"}
  - {name: unsigned, provider: bedrock, params: {baseUrl: "http://127.0.0.1:BACKEND", apiKey: CANARY-bedrock-key}}
"""
OWN: Key = ("AKIAOWN", "CANARY-own-secret", None)
PLACE = "/v1/projects/p1/locations/europe-west4"
FRAMES = [
    frame("messageStart", {"role": "assistant"}),
    frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "hel"}}),
    frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "lo"}}),
    frame("contentBlockStop", {"contentBlockIndex": 0}),
    frame("messageStop", {"stopReason": "end_turn"}),
    frame("metadata", {"usage": {"inputTokens": 3, "outputTokens": 5, "totalTokens": 8}, "metrics": {"latencyMs": 1}}),
]
BINARY = "application/vnd.amazon.eventstream"


class Scene:
    def __init__(self, folder: Path) -> None:
        self.clouds, self.backend = Clouds(), StandIn(whole({}))
        self.running = Gateway(
            folder, CONFIG.replace("BACKEND", str(self.backend.port)), 1, self.clouds.environment(folder)
        )
        self.running.wait_ready()
        base = self.running.url
        self.openai = openai.OpenAI(base_url=f"{base}/v1", api_key="CANARY-client", max_retries=0)
        self.anthropic = anthropic.Anthropic(base_url=base, api_key="CANARY-client", max_retries=0)
        self.bedrock = boto3.session.Session().client(
            "bedrock-runtime", region_name="ap-south-1", endpoint_url=base, aws_access_key_id="AKIACLIENT",
            aws_secret_access_key="CANARY-client", aws_session_token="CANARY-client",
            config=botocore.config.Config(retries={"total_max_attempts": 1}),
        )  # fmt: skip

    def says(self, answer: Any) -> None:
        self.backend.answers[:] = [answer]

    def close(self) -> None:
        self.running.stop()
        self.clouds.close()
        self.backend.close()


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    found = Scene(tmp_path_factory.mktemp("providers"))
    yield found
    found.close()
    log = found.running.log()
    assert "Traceback" not in log, log
    assert "CANARY" not in log
    # Nothing that a client sent as its key went anywhere.
    assert not any("CANARY-client" in str(one.headers) + one.path for one in found.backend.seen)


# -- Bedrock -----------------------------------------------------------------------------------------------------------
def test_converse_is_signed(scene: Scene) -> None:
    scene.says(whole(CONVERSE))
    answer = scene.anthropic.messages.create(model="aws-x:0", max_tokens=9, messages=MESSAGES)
    assert answer.content[0].text == "hello"
    assert scene.backend.last.path == "/model/aws-x%3A0/converse"
    verify(scene.backend.last, CONTAINER, "eu-west-1", "bedrock")


def test_converse_stream_is_signed(scene: Scene) -> None:
    scene.says(stream(*FRAMES, kind=BINARY))
    chunks = list(scene.openai.chat.completions.create(model="aws-x", messages=MESSAGES, stream=True))
    assert "".join(one.choices[0].delta.content or "" for one in chunks if one.choices) == "hello"
    verify(scene.backend.last, CONTAINER, "eu-west-1", "bedrock")
    answer = scene.openai.responses.create(model="aws-x", input="hi", stream=True)
    assert [one.type for one in answer][-1] == "response.completed"
    verify(scene.backend.last, CONTAINER, "eu-west-1", "bedrock")


def test_an_arn_is_one_segment_of_the_path(scene: Scene) -> None:
    scene.says(whole(CONVERSE))
    scene.openai.chat.completions.create(model="keyed", messages=MESSAGES)
    seen = scene.backend.last
    assert seen.path == (
        "/model/arn%3Aaws%3Abedrock%3Aus-west-2%3A123456789012%3Ainference-profile%2Fus.x-v1%3A0/converse"
    )
    verify(seen, OWN, "us-west-2", "bedrock")


def test_embeddings_with_the_keys_of_a_role(scene: Scene) -> None:
    scene.says(whole({"embedding": [0.5], "inputTextTokenCount": 2}))
    answer = scene.openai.embeddings.create(model="of-role", input="x", encoding_format="float")
    assert (answer.data[0].embedding, answer.usage.prompt_tokens) == ([0.5], 2)
    assert scene.backend.last.path == "/model/amazon.titan-embed-text-v2%3A0/invoke"
    verify(scene.backend.last, role_key("fixed"), "us-east-1", "bedrock")


def test_an_api_key_is_sent_instead_of_a_signature(scene: Scene) -> None:
    scene.says(whole(CONVERSE))
    scene.openai.chat.completions.create(model="unsigned", messages=MESSAGES)
    assert scene.backend.last.headers["authorization"] == "Bearer CANARY-bedrock-key"
    assert "x-amz-date" not in scene.backend.last.headers


def test_amazon_s_own_client_is_signed_anew(scene: Scene) -> None:
    scene.says(whole(CONVERSE))
    told = [{"role": "user", "content": [{"text": "hi"}]}]
    answer = scene.bedrock.converse(modelId="aws-x:0", messages=told)
    assert answer["output"]["message"]["content"] == [{"text": "hello"}]
    assert scene.backend.last.path == "/model/aws-x%3A0/converse"
    verify(scene.backend.last, CONTAINER, "eu-west-1", "bedrock")
    scene.says(stream(*FRAMES, kind=BINARY))
    events = list(scene.bedrock.converse_stream(modelId="aws-x:0", messages=told)["stream"])
    text = "".join(one["contentBlockDelta"]["delta"]["text"] for one in events if "contentBlockDelta" in one)
    assert (text, events[-1]["metadata"]["usage"]["outputTokens"]) == ("hello", 5)
    assert scene.backend.last.path == "/model/aws-x%3A0/converse-stream"
    verify(scene.backend.last, CONTAINER, "eu-west-1", "bedrock")


# -- Vertex AI ---------------------------------------------------------------------------------------------------------
def google(scene: Scene, path: str) -> Any:
    """The body that went to a path of Vertex AI, with Google's token."""
    seen = scene.backend.last
    assert seen.path == PLACE + path
    assert seen.headers["authorization"] == "Bearer google-metadata"
    assert not {"x-api-key", "x-goog-api-key"} & seen.headers.keys()
    return seen.json


def test_claude_at_vertex(scene: Scene) -> None:
    scene.says(whole(message()))
    cached: Any = [{"role": "user", "content": [
        {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral", "scope": "global"}},
    ]}]  # fmt: skip
    answer = scene.anthropic.messages.create(model="claude-x-20250514", max_tokens=9, messages=cached)
    assert answer.content[0].text == "hello"
    body = google(scene, "/publishers/anthropic/models/claude-x@20250514:rawPredict")
    assert body["anthropic_version"] == "vertex-2023-10-16"
    assert "model" not in body
    assert body["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}


def test_claude_at_vertex_streamed(scene: Scene) -> None:
    scene.says(stream(*message_events("hel", "lo")))
    with scene.anthropic.messages.stream(model="claude-x", max_tokens=9, messages=MESSAGES) as found:
        assert "".join(found.text_stream) == "hello"
    assert google(scene, "/publishers/anthropic/models/claude-x:streamRawPredict")["stream"] is True
    scene.says(stream(*message_events("hel", "lo")))
    chunks = scene.openai.chat.completions.create(model="claude-x", messages=MESSAGES, stream=True)
    assert "".join(one.choices[0].delta.content or "" for one in chunks if one.choices) == "hello"
    body = google(scene, "/publishers/anthropic/models/claude-x:streamRawPredict")
    assert body["anthropic_version"] == "vertex-2023-10-16"
    assert "model" not in body


def test_tokens_of_claude_at_vertex_are_counted_there(scene: Scene) -> None:
    scene.says(whole({"input_tokens": 7}))
    assert scene.anthropic.messages.count_tokens(model="claude-x-20250514", messages=MESSAGES).input_tokens == 7
    assert google(scene, "/publishers/anthropic/models/count-tokens:rawPredict")["model"] == "claude-x@20250514"


def test_anthropic_s_client_for_vertex(scene: Scene) -> None:
    client = anthropic.AnthropicVertex(
        base_url=f"{scene.running.url}/v1", region="x", project_id="y", access_token="CANARY-client", max_retries=0
    )
    scene.says(whole(message()))
    assert client.messages.create(model="claude-x@20250514", max_tokens=9, messages=MESSAGES).content[0].text == "hello"
    google(scene, "/publishers/anthropic/models/claude-x@20250514:rawPredict")
    scene.says(stream(*message_events("hel", "lo")))
    with client.messages.stream(model="claude-x", max_tokens=9, messages=MESSAGES) as found:
        assert "".join(found.text_stream) == "hello"
    google(scene, "/publishers/anthropic/models/claude-x:streamRawPredict")


def test_gemini_at_vertex(scene: Scene) -> None:
    scene.says(whole(GEMINI))
    answer = scene.openai.chat.completions.create(model="gemini-2.5-pro", messages=MESSAGES)
    assert answer.choices[0].message.content == "hello"
    body = google(scene, "/publishers/google/models/gemini-2.5-pro:generateContent")
    assert body["contents"] == [{"role": "user", "parts": [{"text": "hi"}]}]
    scene.openai.chat.completions.create(model="short", messages=MESSAGES, reasoning_effort="low")
    body = google(scene, "/publishers/google/models/gemini-3-pro:generateContent")
    assert body["generationConfig"]["thinkingConfig"]["thinkingLevel"] == "low"
    scene.says(stream(event(GEMINI)))
    with scene.anthropic.messages.stream(model="gemini-2.5-pro", max_tokens=9, messages=MESSAGES) as found:
        assert "".join(found.text_stream) == "hello"
    google(scene, "/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse")


def test_google_s_own_client_for_vertex(scene: Scene) -> None:
    client = genai.Client(
        vertexai=True, project="other", location="elsewhere", credentials=Credentials(token="CANARY-client"),
        http_options={"base_url": scene.running.url},
    )  # fmt: skip
    scene.says(whole(GEMINI))
    assert client.models.generate_content(model="gemini-2.5-pro", contents="hi").text == "hello"
    google(scene, "/publishers/google/models/gemini-2.5-pro:generateContent")
    scene.says(stream(event(GEMINI)))
    pieces = client.models.generate_content_stream(model="gemini-2.5-pro", contents="hi")
    assert "".join(piece.text or "" for piece in pieces) == "hello"
    google(scene, "/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse")
    scene.says(whole({"totalTokens": 4}))
    assert client.models.count_tokens(model="gemini-2.5-pro", contents="hi").total_tokens == 4
    google(scene, "/publishers/google/models/gemini-2.5-pro:countTokens")


def test_embeddings_at_vertex(scene: Scene) -> None:
    scene.says(whole({"predictions": [{"embeddings": {"values": [0.5], "statistics": {"token_count": 2}}}]}))
    answer = scene.openai.embeddings.create(model="text-embedding-005", input="x", encoding_format="float")
    assert (answer.data[0].embedding, answer.usage.prompt_tokens) == ([0.5], 2)
    assert google(scene, "/publishers/google/models/text-embedding-005:predict")["instances"][0]["content"] == "x"


def test_other_models_at_vertex_are_openai_s(scene: Scene) -> None:
    scene.says(whole(chat()))
    scene.openai.chat.completions.create(model="meta/llama-4", messages=MESSAGES)
    assert google(scene, "/endpoints/openapi/chat/completions")["model"] == "meta/llama-4"


# -- reranking ---------------------------------------------------------------------------------------------------------
def reranked(scene: Scene, model: str) -> Any:
    body = {"model": model, "query": "q", "documents": ["a", "b"]}
    status, text = scene.running.fetch(
        f"{scene.running.url}/v1/rerank", "POST", data=json.dumps(body).encode(), headers={"content-type": "application/json"}
    )
    assert status == 200, text
    return [(one["index"], one["relevance_score"]) for one in json.loads(text)["results"]]


def test_reranking(scene: Scene) -> None:
    scene.says(whole({"results": [{"index": 1, "relevanceScore": 0.9}, {"index": 0, "relevanceScore": 0.1}]}))
    assert reranked(scene, "aws-rerank") == [(1, 0.9), (0, 0.1)]
    assert scene.backend.last.path == "/rerank"
    told = scene.backend.last.json["rerankingConfiguration"]["bedrockRerankingConfiguration"]
    assert told["modelConfiguration"]["modelArn"] == "arn:aws:bedrock:eu-west-1::foundation-model/aws-rerank"
    verify(scene.backend.last, CONTAINER, "eu-west-1", "bedrock")
    scene.says(whole({"records": [{"id": "1", "score": 0.9}, {"id": "0", "score": 0.1}]}))
    assert reranked(scene, "text-ranker") == [(1, 0.9), (0, 0.1)]
    assert google(scene, "/rankingConfigs/default_ranking_config:rank")["model"] == "text-ranker"


# -- Azure -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("model", "scope"), [("azure", "https://cognitiveservices.azure.com"), ("foundry", "https://ai.azure.com")]
)
def test_azure_without_a_key_gets_a_token(scene: Scene, model: str, scope: str) -> None:
    scene.says(whole(chat()))
    scene.openai.chat.completions.create(model=model, messages=MESSAGES)
    assert scene.backend.last.headers["authorization"] == f"Bearer managed-system-{scope}"
