"""The OpenAI SDK through the gateway to the sample provider."""

from __future__ import annotations

import json
import socket

import openai
import pytest

pytestmark = pytest.mark.warm

CONFIG = """
gateways:
  default: {port: {port}}
llm:
  models:
  - name: pinned-*
    provider: openai
    params: {baseUrl: "http://127.0.0.1:BACKEND/v1", apiKey: sk-sample, model: real-model}
  - name: sample
    provider: openai
    params: {baseUrl: "http://127.0.0.1:BACKEND/v1", apiKey: sk-sample}
  - name: missing
    provider: openai
    params: {baseUrl: "http://127.0.0.1:BACKEND/v1", apiKey: sk-sample}
"""
MESSAGES = [{"role": "user", "content": "Tell me more"}]


@pytest.fixture
def running(gateway, sample):
    return gateway(CONFIG.replace("BACKEND", str(sample("llm_provider", "--api-key", "sk-sample"))))


@pytest.fixture
def client(running):
    return openai.OpenAI(base_url=f"{running.url}/v1", api_key="the client's own", max_retries=0)


def test_a_completion_comes_back_and_is_counted(running, client) -> None:
    answer = client.chat.completions.create(model="sample", messages=MESSAGES)
    assert answer.choices[0].message.content == "You said: Tell me more"
    assert answer.usage.total_tokens == 8
    running.wait_log("gen_ai.usage.output_tokens=5")
    running.wait_metric('gw_gen_ai_client_token_usage_sum{gen_ai_token_type="output"', 5)
    running.wait_metric('gw_gen_ai_client_token_usage_sum{gen_ai_token_type="input"', 3)


def test_a_pinned_model_replaces_the_client_s(client) -> None:
    assert client.chat.completions.create(model="pinned-x", messages=MESSAGES).model == "real-model"


def test_a_stream_is_counted_although_the_client_did_not_ask(running, client) -> None:
    chunks = list(client.chat.completions.create(model="sample", messages=MESSAGES, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "You said: Tell me more"
    assert all(chunk.choices for chunk in chunks), "the usage event we asked for ourselves reached the client"
    running.wait_log("gen_ai.usage.output_tokens=5")


def test_a_client_that_asks_for_usage_gets_it(client) -> None:
    chunks = list(
        client.chat.completions.create(
            model="sample", messages=MESSAGES, stream=True, stream_options={"include_usage": True}
        )
    )
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == 5


def test_embeddings_pass_through(client) -> None:
    answer = client.embeddings.create(model="sample", input=["a b", "c"], encoding_format="float")
    assert len(answer.data) == 2
    assert answer.usage.prompt_tokens == 3


def test_the_provider_s_error_reaches_the_client(client) -> None:
    with pytest.raises(openai.NotFoundError) as found:
        client.chat.completions.create(model="missing", messages=MESSAGES)
    assert found.value.code == "model_not_found"


def test_an_unknown_model_is_a_404_of_the_gateway(client) -> None:
    with pytest.raises(openai.NotFoundError) as found:
        client.chat.completions.create(model="other", messages=MESSAGES)
    assert found.value.code == "model_not_found"
    assert "other" in str(found.value)


def test_the_models_are_listed(client) -> None:
    assert [model.id for model in client.models.list()] == ["pinned-*", "sample", "missing"] or {
        model.id for model in client.models.list()
    } == {"pinned-*", "sample", "missing"}


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "invalid_request_body"),
        (b"[]", 400, "invalid_request_body"),
        (b'{"messages": []}', 400, "missing_model"),
        (b'{"model": 7}', 400, "invalid_model"),
        (b'{"model": ""}', 400, "invalid_model"),
        (b'{"model": "sample", "model": "other"}', 400, "invalid_request_body"),
        (b'{"model": "\xff"}', 400, "invalid_request_body"),
    ],
)
def test_bodies_that_name_no_model_are_refused(running, body: bytes, status: int, code: str) -> None:
    found, text = running.fetch(f"{running.url}/v1/chat/completions", "POST", data=body)
    assert (found, json.loads(text)["error"]["code"]) == (status, code)


def test_a_request_nobody_edits_reaches_the_provider_byte_for_byte(gateway, upstream) -> None:
    seen: list[bytes] = []

    def script(connection: socket.socket) -> None:
        data = b""
        while b"\r\n\r\n" not in data or not data.endswith(b"}"):
            data += connection.recv(65536)
        seen.append(data)
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")

    running = gateway(CONFIG.replace("BACKEND", str(upstream(script))))
    body = b'{ "model":"sample",\n "messages" : [ {"role":"user","content":"h\\u00e9\xc3\xa9"} ], "x":1e5 }'
    running.fetch(f"{running.url}/v1/chat/completions", "POST", data=body)
    head, _, sent = seen[0].partition(b"\r\n\r\n")
    assert sent == body
    assert b"authorization: Bearer sk-sample" in head
    assert b"own" not in head


def test_a_client_that_leaves_ends_the_provider_s_work(gateway, upstream) -> None:
    import threading

    gone = threading.Event()

    def script(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            b'f\r\ndata: {"x":1}\n\n\r\n'
        )
        connection.settimeout(60)
        try:
            if connection.recv(1) == b"":
                gone.set()
        except ConnectionResetError:
            gone.set()

    running = gateway(CONFIG.replace("BACKEND", str(upstream(script))))
    body = b'{"model":"sample","stream":true}'
    with socket.create_connection(("127.0.0.1", running.port), timeout=60) as client:
        client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        found = b""
        while b'data: {"x":1}' not in found:
            found += client.recv(65536)
    assert gone.wait(40)


def test_a_key_may_be_for_some_models_only(gateway, sample) -> None:
    keys = """
  policies:
    apiKey:
      keys:
      - {key: all}
      - {key: some, allowedModels: ["pinned-*", missing]}
      - {key: none, allowedModels: []}
"""
    text = CONFIG.replace("BACKEND", str(sample("llm_provider", "--api-key", "sk-sample"))) + keys.strip("\n")
    running = gateway(text)

    def use(key: str, model: str) -> str:
        client = openai.OpenAI(base_url=f"{running.url}/v1", api_key=key, max_retries=0)
        try:
            client.chat.completions.create(model=model, messages=MESSAGES)
        except openai.APIStatusError as error:
            return f"{error.status_code} {error.code}"
        return "ok"

    def listed(key: str) -> list[str]:
        client = openai.OpenAI(base_url=f"{running.url}/v1", api_key=key, max_retries=0)
        return [model.id for model in client.models.list()]

    assert [use("all", model) for model in ("sample", "pinned-x")] == ["ok", "ok"]
    assert [use("some", model) for model in ("sample", "pinned-x")] == ["403 model_not_allowed", "ok"]
    assert use("none", "sample") == "403 model_not_allowed"
    assert use("strange", "sample") == "401 invalid_api_key"
    assert sorted(listed("all")) == ["missing", "pinned-*", "sample"]
    assert (listed("some"), listed("none")) == (["pinned-*", "missing"], [])
