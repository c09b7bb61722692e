"""Clients that ask as Azure's do, at every provider, and Azure's own realtime conversations."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from tests.end_to_end.llm_rig import Rig, served, stand_ins
from tests.end_to_end.provider_stand_in import DONE, chat, chunk, message, stream, whole
from websockets.sync.client import connect
from websockets.sync.server import ServerConnection, serve

CONFIG = """
gateways:
  default: {port: {port}}
llm:
  models:
  - {name: "gpt-*", provider: openai, params: {baseUrl: "http://127.0.0.1:PROVIDER/v1", apiKey: sk-openai}}
  - {name: "claude-*", provider: anthropic, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: sk-ant-api}}
  - {name: "own-*", provider: azure, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: k, azureResourceName: r,
     azureResourceType: openAI, azureApiVersion: "2024-10-21"}}
  - {name: real-dated, provider: azure, params: {baseUrl: "http://127.0.0.1:PEER", apiKey: k, azureResourceName: r,
     azureResourceType: openAI, azureApiVersion: "2025-04-01-preview"}}
  - {name: real-v1, provider: azure, params: {baseUrl: "http://127.0.0.1:PEER", apiKey: k, azureResourceName: r,
     azureResourceType: openAI}}
  - {name: real-openai, provider: openai, params: {baseUrl: "http://127.0.0.1:PEER/v1", apiKey: k}}
  virtualModels:
  - name: either
    routing: {failover: {targets: [{model: own-a, priority: 1}, {model: gpt-b, priority: 2}]}}
"""
TURNS: Any = [{"role": "user", "content": "hi"}]


class Peer:
    """A realtime server that notes the paths it is asked for, and says what it was asked."""

    def __init__(self) -> None:
        self.server = serve(self._talk, "127.0.0.1", 0)
        self.port = self.server.socket.getsockname()[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def _talk(self, connection: ServerConnection) -> None:
        assert connection.request is not None
        for _ in connection:
            connection.send(json.dumps({"type": "heard", "path": connection.request.path}))


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    peer = Peer()
    with stand_ins(whole(chat())) as [provider]:
        text = CONFIG.replace("PROVIDER", str(provider.port)).replace("PEER", str(peer.port))
        with served(tmp_path_factory.mktemp("azure"), text) as running:
            yield Rig(running, provider)
    peer.server.shutdown()


def azure(rig: Rig) -> openai.AzureOpenAI:
    return openai.AzureOpenAI(
        azure_endpoint=rig.running.url, api_key="own", api_version="2024-10-21", max_retries=0, timeout=30
    )


@pytest.mark.parametrize(
    ("model", "answer", "path"),
    [("gpt-x", whole(chat()), "/v1/chat/completions"), ("claude-x", whole(message()), "/v1/messages"),
     ("own-x", whole(chat()), "/openai/deployments/own-x/chat/completions?api-version=2024-10-21")],
)  # fmt: skip
def test_azure_s_client_at_every_provider(rig: Rig, model: str, answer: Any, path: str) -> None:
    rig.answers(answer)
    reply = azure(rig).chat.completions.create(model=model, messages=TURNS)
    assert reply.choices[0].message.content == "hello"
    assert rig.provider.last.path == path
    assert rig.provider.last.json["model"] == model
    assert "api-key" not in rig.provider.last.headers


def test_the_deployment_wins_over_the_body(rig: Rig) -> None:
    rig.answers(whole(chat()))
    path = "/openai/deployments/gpt%2Dx/chat/completions?api-version=2024-10-21"
    for body in ({"messages": TURNS}, {"messages": TURNS, "model": "claude-x"}):
        assert rig.post(body, path).status_code == 200
        assert (rig.provider.last.path, rig.provider.last.json) == ("/v1/chat/completions", {**body, "model": "gpt-x"})
    refused = rig.post({"messages": TURNS}, "/openai/deployments/unheard/chat/completions?api-version=1")
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "model_not_found")
    assert rig.post(b"[]", path).status_code == 400


def test_streams_and_other_formats(rig: Rig) -> None:
    rig.answers(stream(chunk("hel"), chunk("lo"), chunk(finish="stop"), DONE))
    chunks = list(azure(rig).chat.completions.create(model="gpt-x", messages=TURNS, stream=True))
    assert "".join(one.choices[0].delta.content or "" for one in chunks if one.choices) == "hello"
    rig.answers(whole({"object": "list", "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1},
                       "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}]}))  # fmt: skip
    assert azure(rig).embeddings.create(model="gpt-x", input="a", encoding_format="float").data[0].embedding == [0.5]
    assert rig.provider.last.path == "/v1/embeddings"
    rig.answers(whole(message()))
    assert azure(rig).responses.create(model="claude-x", input="hi").output_text == "hello"
    assert azure(rig).completions.create(model="claude-x", prompt="hi").choices[0].text == "hello"


def test_the_next_provider_is_asked_the_same(rig: Rig) -> None:
    rig.provider.answers[:] = [whole({"error": {"message": "no"}}, 503), whole(chat())]
    reply = azure(rig).chat.completions.create(model="either", messages=TURNS)
    assert reply.choices[0].message.content == "hello"
    first, second = rig.provider.seen[-2:]
    assert first.path == "/openai/deployments/own-a/chat/completions?api-version=2024-10-21"
    assert (second.path, second.json["model"]) == ("/v1/chat/completions", "gpt-b")


@pytest.mark.parametrize(
    ("model", "asked"),
    [("real-dated", "/openai/realtime?deployment=real-dated&api-version=2025-04-01-preview"),
     ("real-v1", "/openai/v1/realtime?model=real-v1"), ("real-openai", "/v1/realtime?model=real-openai")],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/openai/realtime?api-version=2025-04-01-preview&deployment=", "/v1/realtime?model="])
def test_realtime_conversations(rig: Rig, path: str, model: str, asked: str) -> None:
    with connect(rig.running.url.replace("http", "ws") + path + model) as client:
        client.send(json.dumps({"type": "conversation.item.retrieve"}))
        assert json.loads(client.recv(timeout=30)) == {"type": "heard", "path": asked}
