"""Copilot: the developer's token is exchanged, and what the provider sees, by model. One gateway for the whole file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.end_to_end import llm_rig
from tests.end_to_end.conftest import Gateway
from tests.end_to_end.llm_rig import anthropic_client, openai_client, served, stand_ins
from tests.end_to_end.provider_stand_in import Answer, StandIn, chat, chunk, event, message, response, stream, whole

from headgate import __version__

CONFIG = """
gateways:
  default: {port: {port}}
llm:
  models:
  - {name: "*", provider: copilot, params: {baseUrl: "http://127.0.0.1:BACKEND/api"}, auth: copilot}
  - {name: keyed, provider: copilot, params: {baseUrl: "http://127.0.0.1:BACKEND/api", apiKey: CANARY-key}}
routes:
- gateways: [default]
  matches: [{path: {pathPrefix: /own}}]
  policies: {urlRewrite: {path: {prefix: /}}}
  backends:
  - ai: {name: own, provider: {copilot: {model: gpt-4.1}}, hostOverride: "127.0.0.1:BACKEND", policies: {backendAuth: copilot}}
"""
SETTINGS = """
modelCatalog:
- inline: {providers: {copilot: {models: {odd: {tags: [openai_responses]}}}}}
"""
MESSAGES: list[Any] = [{"role": "user", "content": "hi"}]
FIELDS = {
    "editor-version": f"headgate/{__version__}",
    "x-github-api-version": "2025-10-01",
    "x-initiator": "agent",
    "x-interaction-type": "conversation-agent",
    "openai-intent": "conversation-agent",
}


def exchanged(token: str = "CANARY-short") -> Answer:
    return whole({"token": token, "expires_at": int(time.time()) + 1800, "refresh_in": 1500, "endpoints": {"api": "x"}})


class Rig(llm_rig.Rig):
    def __init__(self, running: Gateway, provider: StandIn, github: StandIn) -> None:
        super().__init__(running, provider)
        self.github = github
        self.openai, self.anthropic = openai_client(running), anthropic_client(running)

    def placed(self) -> str:
        """Where the last request went; the credential and the vendor's fields must be right."""
        seen = self.provider.last
        assert {name: seen.headers.get(name) for name in FIELDS} == FIELDS
        assert seen.headers["authorization"] == "Bearer CANARY-short"
        assert not {"x-api-key", "api-key", "x-goog-api-key"} & seen.headers.keys()
        return seen.path


@pytest.fixture(scope="module")
def module_rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("copilot")
    with stand_ins(whole(chat()), exchanged()) as [provider, github]:
        environment = {
            "COPILOT_TOKEN_URL": f"http://127.0.0.1:{github.port}/copilot_internal/v2/token",
            "COPILOT_GITHUB_TOKEN": "CANARY-developer",
        }
        with served(folder, CONFIG.replace("BACKEND", str(provider.port)), environment, SETTINGS) as running:
            yield Rig(running, provider, github)
            assert "CANARY" not in running.log()


@pytest.fixture
def rig(module_rig: Rig) -> Rig:
    module_rig.answers(whole(chat()))
    return module_rig


def test_all_requests_share_one_exchange(rig: Rig) -> None:
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(rig.post, {"model": "gpt-4.1", "messages": MESSAGES}, x_api_key="own") for _ in range(16)]
    assert [one.result().status_code for one in asked] == [200] * 16
    assert rig.placed() == "/api/chat/completions"
    [exchange] = rig.github.seen
    assert (exchange.method, exchange.path) == ("GET", "/copilot_internal/v2/token")
    assert exchange.headers["authorization"] == "token CANARY-developer"
    assert exchange.headers["editor-version"] == exchange.headers["user-agent"] == f"headgate/{__version__}"


def test_what_a_client_says_of_its_editor_stays(rig: Rig) -> None:
    rig.post({"model": "gpt-4.1", "messages": MESSAGES}, editor_version="mine/1", x_initiator="user")
    seen = rig.provider.last.headers
    assert (seen["editor-version"], seen["x-initiator"], seen["openai-intent"]) == ("mine/1", "user", "conversation-agent")


PICTURE = "data:image/png;base64,iVBORw0="


@pytest.mark.parametrize(
    ("path", "model", "said", "marked"),
    [
        ("/v1/chat/completions", "gpt-4.1", {"type": "image_url", "image_url": {"url": PICTURE}}, "true"),
        ("/v1/chat/completions", "gpt-4.1", {"type": "text", "text": '{"type": "image_url"}'}, None),
        (
            "/v1/messages", "claude-opus-4.5",
            {"type": "tool_result", "tool_use_id": "t", "content": [
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0="}}]},
            "true",
        ),
        ("/v1/responses", "gpt-5.1", {"type": "input_image", "image_url": PICTURE}, "true"),
    ],
)  # fmt: skip
def test_requests_with_pictures_are_marked(rig: Rig, path: str, model: str, said: Any, marked: str | None) -> None:
    turns = [{"role": "user", "content": [said]}]
    rig.post({"model": model, "input" if "responses" in path else "messages": turns, "max_tokens": 9}, path)
    assert rig.provider.last.headers.get("copilot-vision-request") == marked
    rig.placed()


def test_a_key_is_sent_as_it_is(rig: Rig) -> None:
    assert rig.post({"model": "keyed", "messages": MESSAGES}).status_code == 200
    seen = rig.provider.last.headers
    assert seen["authorization"] == "Bearer CANARY-key"
    assert {name: seen[name] for name in FIELDS} == FIELDS


def test_claude_is_asked_for_messages(rig: Rig) -> None:
    rig.answers(whole(message()))
    answer = rig.anthropic.messages.create(model="claude-opus-4.5", max_tokens=9, messages=MESSAGES)
    assert answer.content[0].type == "text"
    assert (rig.placed(), rig.provider.last.json["messages"]) == ("/api/v1/messages", MESSAGES)
    # Clients of other formats are translated to that, but for chat completions, which Claude takes.
    told = rig.openai.responses.create(model="claude-opus-4.5", input="hi")
    assert (told.output_text, rig.placed()) == ("hello", "/api/v1/messages")
    rig.answers(whole(chat()))
    rig.openai.chat.completions.create(model="claude-opus-4.5", messages=MESSAGES)
    assert rig.placed() == "/api/chat/completions"


@pytest.mark.parametrize(("model", "tokens"), [("claude-sonnet-4.5", 15), ("gpt-4.1", 11)])
def test_the_input_of_claude_counts_no_cache(rig: Rig, model: str, tokens: int) -> None:
    series = 'gw_gen_ai_client_token_usage_sum{gen_ai_token_type="input"'
    before = rig.running.metric(series)
    rig.openai.chat.completions.create(model=model, messages=MESSAGES)
    assert rig.running.metric(series) - before == tokens


@pytest.mark.parametrize("model", ["gpt-5.1", "grok-4", "odd"])
def test_models_that_only_take_responses(rig: Rig, model: str) -> None:
    rig.answers(whole(response()))
    assert rig.openai.responses.create(model=model, input="hi").output_text == "hello"
    assert rig.placed() == "/api/responses"
    told = rig.anthropic.messages.create(model=model, max_tokens=9, messages=MESSAGES)
    assert (told.content[0].type, rig.placed()) == ("text", "/api/responses")
    said = rig.openai.chat.completions.create(model=model, messages=MESSAGES)
    assert (said.choices[0].message.content, rig.placed()) == ("hello", "/api/responses")


def test_limits_of_gpt_models_have_their_newer_name(rig: Rig) -> None:
    rig.post({"model": "gpt-4.1", "max_tokens": 5, "messages": MESSAGES})
    assert {name for name in rig.provider.last.json if "max" in name} == {"max_completion_tokens"}


def test_streams_pass_and_are_counted(rig: Rig) -> None:
    usage = event({"choices": [], "usage": chat()["usage"]})
    rig.answers(stream(chunk("hel"), chunk("lo"), chunk(finish="stop"), usage, b"data: [DONE]\n\n"))
    heard = rig.openai.chat.completions.create(model="gpt-4.1", messages=MESSAGES, stream=True)
    assert "".join(one.choices[0].delta.content or "" for one in heard if one.choices) == "hello"
    assert rig.provider.last.json["stream_options"] == {"include_usage": True}


def test_embeddings_are_completed(rig: Rig) -> None:
    rig.answers(whole({"data": [{"embedding": [0.25, 1.5]}], "usage": {"prompt_tokens": 2, "total_tokens": 2}}))
    found = rig.openai.embeddings.create(model="text-embedding-3-small", input="hi", encoding_format="float")
    assert (found.object, found.model, found.data[0].object) == ("list", "text-embedding-3-small", "embedding")
    assert (found.data[0].embedding, found.usage.prompt_tokens) == ([0.25, 1.5], 2)
    assert (rig.placed(), rig.provider.last.json["input"]) == ("/api/embeddings", ["hi"])
    rig.answers(whole({"object": "own", "model": "real", "data": []}))
    assert rig.post({"model": "m", "input": "hi"}, "/v1/embeddings").json() == {"object": "own", "model": "real", "data": []}
    rig.answers(whole({"data": "nothing"}))
    broken = rig.post({"model": "m", "input": "hi"}, "/v1/embeddings")
    assert (broken.status_code, "failed to process LLM response" in broken.text) == (502, True)


def test_reranking_and_unknown_paths_pass(rig: Rig) -> None:
    rig.answers(whole({"results": []}))
    body = {"model": "rerank", "query": "q", "documents": ["d"]}
    assert rig.post(body, "/v1/rerank").json() == {"results": []}
    assert rig.placed() == "/api/rerank"


def test_an_ai_backend_has_the_same(rig: Rig) -> None:
    assert rig.post({"messages": MESSAGES}, "/own/v1/chat/completions").status_code == 200
    # A host of the file keeps the client's path.
    assert rig.placed() == "/v1/chat/completions"
    assert rig.provider.last.json["model"] == "gpt-4.1"


def test_without_a_token_requests_are_refused(gateway, stand_in) -> None:
    provider, github = stand_in(whole(chat())), stand_in(whole({"message": "Bad credentials CANARY"}, 401))
    environment = {
        "COPILOT_TOKEN_URL": f"http://127.0.0.1:{github.port}/x", "COPILOT_GITHUB_TOKEN": "", "GH_TOKEN": "CANARY-gh",
    }  # fmt: skip
    running = gateway(CONFIG.replace("BACKEND", str(provider.port)), environment=environment)
    answer = llm_rig.Rig(running, provider).post({"model": "gpt-4.1", "messages": MESSAGES})
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal_error")
    assert answer.json()["error"]["message"].startswith("backend authentication failed: Copilot: GitHub answered 401: ")
    assert provider.seen == []
    assert github.last.headers["authorization"] == "token CANARY-gh"
    assert "CANARY" not in running.log()
