"""`ai` backends of routes with the vendors' own clients: what the provider sees, what the client gets, what is counted."""

from __future__ import annotations

import gzip
import json
import random
from typing import Any

import anthropic
import pytest
from tests.end_to_end.llm_rig import anthropic_client, openai_client
from tests.end_to_end.provider_stand_in import (
    DONE,
    Answer,
    chat,
    chunk,
    event,
    message,
    message_events,
    stream,
    whole,
)

pytestmark = pytest.mark.warm

MESSAGES: list[Any] = [{"role": "user", "content": "Tell me more"}]
CONFIG = """
gateways:
  default: {port: {port}}
routes:
- gateways: [default]
  backends:
  - ai:
      name: it
      hostOverride: 127.0.0.1:BACKEND
"""


@pytest.fixture
def serve(gateway, stand_in):
    """`serve(lines, *answers)`: a gateway with one `ai` backend of these lines, and its provider."""

    def start(lines: str, *answers: Answer):
        provider = stand_in(*answers)
        text = CONFIG + "".join(f"      {line}\n" for line in lines.strip("\n").split("\n"))
        return gateway(text.replace("BACKEND", str(provider.port))), provider

    return start


OPENAI = """
provider: {openAI: {}}
policies: {backendAuth: {key: sk-gateway}}
"""
ANTHROPIC = """
provider: {anthropic: {}}
policies: {backendAuth: {key: sk-ant-api-gateway}}
"""


def test_a_chat_goes_to_openai_with_the_gateway_s_key(serve) -> None:
    running, provider = serve(OPENAI, whole(chat()))
    answer = openai_client(running).chat.completions.create(model="gpt-9", messages=MESSAGES)
    assert answer.choices[0].message.content == "hello"
    assert (provider.last.method, provider.last.path) == ("POST", "/v1/chat/completions")
    assert provider.last.headers["authorization"] == "Bearer sk-gateway"
    assert provider.last.json == {"model": "gpt-9", "messages": MESSAGES}
    running.wait_log("gen_ai.usage.output_tokens=7")
    line = running.log()
    for told in ("protocol=llm", "gen_ai.provider.name=openai", "gen_ai.request.model=gpt-9",
                 "gen_ai.response.model=real", "gen_ai.usage.input_tokens=11",
                 "gen_ai.usage.cache_read.input_tokens=4"):  # fmt: skip
        assert told in line, line


def test_an_unedited_body_goes_byte_for_byte(serve) -> None:
    running, provider = serve(OPENAI, whole(chat()))
    body = b'{ "messages" : [ {"role":"user","content":"h\\u00e9\xc3\xa9"} ],\n "model":"m", "x":1e5, "y": 1.0 }'
    running.fetch(f"{running.url}/v1/chat/completions?a=b", "POST", data=body)
    assert provider.last.body == body
    assert provider.last.path == "/v1/chat/completions?a=b"


def test_only_the_model_is_replaced_in_place(serve) -> None:
    running, provider = serve('provider: {openAI: {model: "other"}}', whole(chat()))
    body = b'{"a":[1, 2],  "model" : "m" ,"messages":[]}'
    running.fetch(f"{running.url}/v1/chat/completions", "POST", data=body)
    assert provider.last.body == b'{"a":[1, 2],  "model" : "other" ,"messages":[]}'
    running.fetch(f"{running.url}/v1/chat/completions", "POST", data=b'{"messages":[]}')
    assert provider.last.json == {"messages": [], "model": "other"}


EDITS = """
provider: {openAI: {}}
policies:
  ai:
    defaults: {temperature: 0.5, top_p: 0.9}
    overrides: {user: gateway, metadata: {a: [1]}}
    transformations: {seed: "llmRequest.messages.size() + 6", stop: "null", gone: "llmRequest.nothing"}
    finalTransformations: {n: "llmRequest.messages.size()"}
    modelAliases: {fast: gpt-mini, "fast*": gpt-other}
"""


def test_bodies_are_edited_in_order(serve) -> None:
    running, provider = serve(EDITS, whole(chat()))
    body = {"model": "fast", "messages": MESSAGES, "temperature": 1, "user": "me", "stop": ["x"], "gone": 1}
    running.fetch(f"{running.url}/v1/chat/completions", "POST", data=json.dumps(body).encode())
    assert provider.last.json == {
        "model": "gpt-mini", "messages": MESSAGES, "temperature": 1, "top_p": 0.9, "user": "gateway",
        "metadata": {"a": [1]}, "seed": 7, "n": 1,
    }  # fmt: skip
    running.fetch(f"{running.url}/v1/chat/completions", "POST", data=json.dumps(body | {"model": "faster"}).encode())
    assert provider.last.json["model"] == "gpt-other"
    running.wait_log("gen_ai.request.model=gpt-other")
    # A long body is read beside the loop before that.
    long = [{"role": "user", "content": f"turn {number}"} for number in range(6_000)]
    running.fetch(f"{running.url}/v1/chat/completions", "POST", data=json.dumps(body | {"messages": long}).encode())
    assert len(provider.last.body) > 131_072
    assert provider.last.json["messages"] == long
    assert (provider.last.json["seed"], provider.last.json["model"], provider.last.json["n"]) == (6_006, "gpt-mini", 6_000)
    # So is one in a content coding, which it is taken out of beside the loop, too.
    packed = gzip.compress(json.dumps(body | {"messages": long, "noise": random.Random(1).randbytes(20_000).hex()}).encode())
    assert len(packed) > 16_384
    headers = {"content-encoding": "gzip"}
    running.fetch(f"{running.url}/v1/chat/completions", "POST", headers=headers, data=packed)
    assert (provider.last.json["seed"], provider.last.json["messages"]) == (6_006, long)
    for broken, status in ((packed[:-9], 400), (gzip.compress(b" " * (16 << 20)), 413)):
        assert running.fetch(f"{running.url}/v1/chat/completions", "POST", headers=headers, data=broken)[0] == status


def test_max_tokens_of_gpt_models_has_its_new_name(serve) -> None:
    running, provider = serve("provider: {openAI: {}}", whole(chat()))
    client = openai_client(running)
    client.chat.completions.create(model="gpt-5", messages=MESSAGES, max_tokens=9)
    assert provider.last.json == {"model": "gpt-5", "messages": MESSAGES, "max_completion_tokens": 9}
    client.chat.completions.create(model="gpt-5", messages=MESSAGES, max_tokens=9, max_completion_tokens=8)
    assert provider.last.json["max_completion_tokens"] == 8
    client.chat.completions.create(model="o-other", messages=MESSAGES, max_tokens=9)
    assert provider.last.json["max_tokens"] == 9


def test_a_stream_is_passed_on_and_counted(serve) -> None:
    usage = event({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "real", "choices": [],
                   "usage": {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}})  # fmt: skip
    running, provider = serve(OPENAI, stream(chunk("a"), chunk("b"), chunk(finish="stop"), usage, DONE))
    client = openai_client(running)
    chunks = list(client.chat.completions.create(model="m", messages=MESSAGES, stream=True))
    assert "".join(one.choices[0].delta.content or "" for one in chunks) == "ab"
    assert provider.last.json["stream_options"] == {"include_usage": True}
    running.wait_log("gen_ai.usage.output_tokens=5")
    assert "gw.ai.time_to_first_token=" in running.log()


def test_responses_pass_whole_and_streamed(serve) -> None:
    response = {
        "id": "resp_1", "object": "response", "created_at": 1, "model": "real", "status": "completed",
        "output": [{"type": "message", "id": "m", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": "hello", "annotations": []}]}],
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
        "usage": {"input_tokens": 6, "input_tokens_details": {"cached_tokens": 2}, "output_tokens": 9,
                  "output_tokens_details": {"reasoning_tokens": 4}, "total_tokens": 15},
    }  # fmt: skip
    started = response | {"status": "in_progress", "output": [], "usage": None}
    events = [
        event({"type": "response.created", "sequence_number": 0, "response": started}, "response.created"),
        event({"type": "response.completed", "sequence_number": 1, "response": response}, "response.completed"),
    ]
    running, provider = serve(OPENAI, whole(response), stream(*events))
    client = openai_client(running)
    assert client.responses.create(model="m", input="hi").output_text == "hello"
    assert provider.last.path == "/v1/responses"
    running.wait_log("gen_ai.usage.reasoning_tokens=4")
    with client.responses.stream(model="m", input="hi") as found:
        assert found.get_final_response().output_text == "hello"
    # The client may leave with the last event in its hands.
    running.wait_metric('gw_gen_ai_client_token_usage_sum{gen_ai_token_type="output"', 18)


def test_the_anthropic_client_whole(serve) -> None:
    running, provider = serve(ANTHROPIC, whole(message()))
    answer = anthropic_client(running).messages.create(model="claude-9", max_tokens=9, messages=MESSAGES)
    assert answer.content[0].text == "hello"
    seen = provider.last
    assert seen.path == "/v1/messages"
    assert seen.headers["x-api-key"] == "sk-ant-api-gateway"
    assert "authorization" not in seen.headers
    assert seen.json == {"model": "claude-9", "max_tokens": 9, "messages": MESSAGES}
    # Anthropic's input tokens are without those of the cache: 10 + 90 + 5.
    running.wait_log("gen_ai.usage.input_tokens=105")
    assert "gen_ai.usage.cache_creation.input_tokens=5 gen_ai.usage.cache_read.input_tokens=90" in running.log()


def test_the_version_that_anthropic_wants_is_added_and_fields_of_browsers_go(serve) -> None:
    running, provider = serve(ANTHROPIC, whole(message()))
    url = f"{running.url}/v1/messages"
    running.fetch(url, "POST", data=b'{"model":"c"}', headers={"origin": "http://x", "sec-fetch-mode": "cors"})
    assert provider.last.headers["anthropic-version"] == "2023-06-01"
    assert not {"origin", "sec-fetch-mode"} & provider.last.headers.keys()
    running.fetch(url, "POST", data=b'{"model":"c"}', headers={"anthropic-version": "2024-01-01"})
    assert provider.last.headers["anthropic-version"] == "2024-01-01"


def test_the_anthropic_client_streamed(serve) -> None:
    running, _ = serve(ANTHROPIC, stream(*message_events("hel", "lo")))
    with anthropic_client(running).messages.stream(model="c", max_tokens=9, messages=MESSAGES) as found:
        assert "".join(found.text_stream) == "hello"
        assert found.get_final_message().usage.output_tokens == 7
    running.wait_log("gen_ai.usage.output_tokens=7")
    assert "gen_ai.usage.input_tokens=105" in running.log()


def test_an_oauth_token_of_anthropic_stays_a_bearer(serve) -> None:
    running, provider = serve(ANTHROPIC.replace("sk-ant-api", "sk-ant-oat"), whole(message()))
    anthropic_client(running).messages.create(model="c", max_tokens=9, messages=MESSAGES)
    assert provider.last.headers["authorization"] == "Bearer sk-ant-oat-gateway"
    assert "x-api-key" not in provider.last.headers


def test_without_a_key_of_the_gateway_the_client_s_passes(serve) -> None:
    running, provider = serve("provider: {anthropic: {}}", whole(message()))
    anthropic_client(running).messages.create(model="c", max_tokens=9, messages=MESSAGES)
    assert provider.last.headers["x-api-key"] == "the client's own"


def test_an_error_of_the_provider_passes_byte_for_byte(serve) -> None:
    body = b'{"type":"error", "error":{"type":"invalid_request_error","message":"bad"} }'
    running, _ = serve(ANTHROPIC, whole(body, 400))
    with pytest.raises(anthropic.BadRequestError) as found:
        anthropic_client(running).messages.create(model="c", max_tokens=9, messages=MESSAGES)
    assert found.value.response.content == body


def test_a_format_that_the_provider_lacks_is_refused_before_any_call(serve) -> None:
    running, provider = serve(ANTHROPIC, whole(chat()))
    status, text = running.fetch(f"{running.url}/v1/embeddings", "POST", data=b'{"model": "g", "input": "a heron"}')
    assert status == 400
    assert "unsupported conversion: from embeddings to provider anthropic" in text
    assert provider.seen == []


def test_the_model_list_and_unknown_paths_pass_through(serve) -> None:
    listed = {"object": "list", "data": [{"id": "real", "object": "model", "created": 1, "owned_by": "x"}]}
    running, provider = serve(OPENAI, whole(listed))
    assert [one.id for one in openai_client(running).models.list()] == ["real"]
    assert (provider.last.method, provider.last.path) == ("GET", "/v1/models")
    running.fetch(f"{running.url}/v1/files/abc", "POST", data=b"not json at all")
    assert (provider.last.path, provider.last.body) == ("/v1/files/abc", b"not json at all")


def test_a_compressed_body_is_read_and_sent_plain(serve) -> None:
    running, provider = serve('provider: {openAI: {model: "other"}}', whole(chat()))
    body = gzip.compress(b'{"model":"m","messages":[]}')
    running.fetch(f"{running.url}/v1/chat/completions", "POST", data=body, headers={"content-encoding": "gzip"})
    assert provider.last.body == b'{"model":"other","messages":[]}'
    assert "content-encoding" not in provider.last.headers


PATHS = [
    ("provider: {openAI: {}}", "/v1/chat/completions", "/v1/chat/completions"),
    ("provider: {openAI: {}}\npathPrefix: /api/v3", "/v1/chat/completions?q=1", "/api/v3/chat/completions?q=1"),
    ("provider: {openAI: {}}\npathOverride: /there", "/v1/chat/completions?q=1", "/there"),
    ("provider: {custom: {formats: [{type: completions}]}}", "/v1/chat/completions", "/v1/chat/completions"),
    ("provider: {custom: {formats: [{type: completions, path: /x/y}]}}", "/v1/chat/completions", "/x/y"),
    ("provider: {azure: {resourceName: r, resourceType: openAI}}", "/v1/chat/completions",
     "/openai/v1/chat/completions"),
    ("provider: {azure: {resourceName: r, resourceType: openAI, apiVersion: preview}}", "/v1/embeddings",
     "/openai/v1/embeddings?api-version=preview"),
    ("provider: {azure: {resourceName: r, resourceType: openAI, apiVersion: '2025-01-01'}}", "/v1/chat/completions",
     "/openai/deployments/m%2F1/chat/completions?api-version=2025-01-01"),
    ("provider: {azure: {resourceName: r, resourceType: foundry, projectName: p}}", "/v1/responses",
     "/api/projects/p/openai/v1/responses"),
    ("provider: {azure: {resourceName: r, resourceType: foundry, model: claude-1}}", "/v1/messages",
     "/anthropic/v1/messages"),
    ("provider: {azure: {resourceName: r, resourceType: openAI}}", "/v1/messages?beta=true", "/openai/v1/chat/completions"),
    *((f"provider: {{{kind}}}\npathOverride: /there", f"/v1/{path}", "/there") for kind, path in (
        ("gemini: {}", "chat/completions"), ("vertex: {projectId: p, model: gemini-1}", "chat/completions"),
        ("vertex: {projectId: p}", "embeddings"), ("bedrock: {}", "messages"), ("bedrock: {}", "rerank"))),
    ("provider: {gemini: {}}", "/v1beta/models/g-1:generateContent?alt=proto&q=1", "/v1beta/models/g-1:generateContent?q=1"),
    ("provider: {gemini: {}}", "/v1/embeddings", "/v1beta/openai/embeddings"),
    ("provider: {gemini: {model: g-2}}", "/v1beta/models/g-1:generateContent", "/v1beta/models/g-2:generateContent"),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "asked", "wanted"), PATHS, ids=[f"{a} {b}" for a, b, _ in PATHS])
def test_paths(serve, lines: str, asked: str, wanted: str) -> None:
    # Without a key of its own Azure is called with the identity of the environment.
    key = "\npolicies: {backendAuth: {key: k}}" if any(cloud in lines for cloud in ("azure", "vertex", "bedrock")) else ""
    running, provider = serve(lines + key, whole(chat()))
    body = {"model": "m/1", "messages": [{"role": "user", "content": "hi"}], "input": "x", "query": "q", "documents": ["d"]}
    status, text = running.fetch(f"{running.url}{asked}", "POST", data=json.dumps(body).encode())
    # What a stand-in of another format says cannot be translated.
    assert status in (200, 502), text
    assert provider.last.path == wanted


def test_a_gemini_key_goes_where_google_looks_for_it(serve) -> None:
    lines = "provider: {gemini: {}}\npolicies: {backendAuth: {key: AIzaKey}}"
    usage = {"usageMetadata": {"promptTokenCount": 12, "candidatesTokenCount": 5, "thoughtsTokenCount": 30,
                               "cachedContentTokenCount": 4}, "modelVersion": "g-1-001"}  # fmt: skip
    running, provider = serve(lines, whole(usage))
    running.fetch(f"{running.url}/v1beta/models/g-1:generateContent", "POST", data=b'{"contents":[]}')
    assert provider.last.headers["x-goog-api-key"] == "AIzaKey"
    assert "authorization" not in provider.last.headers
    running.fetch(f"{running.url}/v1beta/models/g-1:generateContent?key=mine&alt=json&%6bey=x", "POST", data=b'{"contents":[]}')
    assert provider.last.path == "/v1beta/models/g-1:generateContent", "the client's key stays here"
    running.wait_log("gen_ai.usage.output_tokens=35")
    assert "gen_ai.response.model=g-1-001" in running.log()
    running.fetch(f"{running.url}/v1/embeddings", "POST", data=b'{"model":"g","input":"x"}')
    assert provider.last.headers["authorization"] == "Bearer AIzaKey"


def test_expressions_see_the_call(gateway, stand_in) -> None:
    provider = stand_in(whole(message()))
    text = CONFIG + "      provider: {anthropic: {model: c}}\n" + """
frontendPolicies:
  accessLog:
    add:
      told: 'llm.requestModel + "/" + llm.responseModel + "/" + llm.provider'
      input: "llm.inputTokens"
      raw: "llm.providerInputTokens"
      streams: "llm.streaming"
"""
    running = gateway(text.replace("BACKEND", str(provider.port)))
    anthropic_client(running).messages.create(model="x", max_tokens=9, messages=MESSAGES)
    running.wait_log("told=")
    line = running.log()
    for told in ("told=c/claude-real/anthropic", "input=105", "raw=10", "streams=false"):
        assert told in line, line


def test_realtime_is_a_tunnel_with_the_model_replaced(gateway, upstream) -> None:
    import socket

    seen: list[bytes] = []

    def script(connection: socket.socket) -> None:
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65536)
        seen.append(data)
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\nhello")
        connection.sendall(connection.recv(10).upper())

    text = CONFIG + "      provider: {openAI: {model: other}}\n      policies: {backendAuth: {key: sk-gateway}}\n"
    running = gateway(text.replace("BACKEND", str(upstream(script))))
    with socket.create_connection(("127.0.0.1", running.port), timeout=60) as client:
        client.sendall(
            b"GET /v1/realtime?model=mine&x=1 HTTP/1.1\r\nhost: a\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n"
        )
        found = b""
        while not found.endswith(b"hello"):
            found += client.recv(65536)
        assert found.startswith(b"HTTP/1.1 101")
        client.sendall(b"frames")
        assert client.recv(10) == b"FRAMES"
    assert seen[0].startswith(b"GET /v1/realtime?model=other&x=1 HTTP/1.1\r\n")
    assert b"authorization: Bearer sk-gateway" in seen[0]


STICKY = """
groups:
- providers:
  - {name: a, provider: {openAI: {model: a}}, hostOverride: "127.0.0.1:BACKEND"}
  - {name: b, provider: {openAI: {model: b}}, hostOverride: "127.0.0.1:BACKEND"}
  - {name: c, provider: {openAI: {model: c}}, hostOverride: "127.0.0.1:BACKEND"}
"""


@pytest.mark.parametrize("source", ['request.headers["x-user"]', "llmRequest.user", "llm.prompt[0].content"])
def test_a_conversation_stays_at_one_provider(gateway, stand_in, source: str) -> None:
    provider = stand_in(whole(chat()))
    head = CONFIG.split("      name: it")[0]
    lines = "".join(f"      {line}\n" for line in STICKY.strip("\n").split("\n"))
    text = f"{head}{lines}    policies:\n      sessionAffinity: {{source: '{source}'}}\n"
    running = gateway(text.replace("BACKEND", str(provider.port)))

    def asked(user: str) -> str:
        client = openai_client(running).with_options(default_headers={"x-user": user})
        client.chat.completions.create(model="m", user=user, messages=[{"role": "user", "content": user}])
        return str(provider.last.json["model"])

    homes = {user: asked(user) for user in map(str, range(12))}
    assert len(set(homes.values())) > 1
    assert {user: asked(user) for user in homes} == homes
    # When its provider fails, another one answers; the next request begins at home again.
    provider.answers[:] = [whole({}, 500), whole(chat())]
    assert asked("3") != homes["3"]
    assert provider.seen[-2].json["model"] == homes["3"]
    assert asked("3") == homes["3"]
