"""`usageHeaders`: cost, tokens and times of answers of models, in the head or behind a stream, native and translated."""

from __future__ import annotations

import json
import re
import socket
from typing import Any

import httpx
import pytest
from tests.end_to_end.conftest import Gateway
from tests.end_to_end.provider_stand_in import DONE, StandIn, chunk, event, stream, whole
from tests.end_to_end.provider_stand_in import chat as answer
from tests.end_to_end.virtual_keys_rig import PRICES, Start

FILE = """
gateways: {default: {port: {port}}}
llm:
  gateways: [default]
  policies: {usageHeaders: FIELDS}
  models:
  - {name: real, provider: openai, params: {apiKey: sk-own, hostOverride: "127.0.0.1:PORT"}}
"""
COUNTED = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
# 11 tokens at 2 and 7 at 8 dollars per million.
TOLD = {"x-headgate-cost": "0.000078", "x-headgate-input-tokens": "11", "x-headgate-output-tokens": "7"}
TIMES = ("x-headgate-overhead-ms", "x-headgate-generation-ms")
MILLISECONDS = re.compile(r"\d+\.\d{3}")


@pytest.fixture
def provider(stand_in: Any) -> StandIn:
    found: StandIn = stand_in(whole(answer() | {"usage": COUNTED}))
    return found


def started(gateway: Start, provider: StandIn, fields: str = "{}") -> Gateway:
    text = FILE.replace("PORT", str(provider.port)).replace("FIELDS", fields)
    return gateway(text, settings=f"modelCatalog:\n- inline: {json.dumps(PRICES)}\n")


def body_for(path: str, **more: Any) -> dict[str, Any]:
    return {"model": "real", "max_tokens": 50, "messages": [{"role": "user", "content": "hi"}], **more}


def own(fields: Any) -> dict[str, str]:
    return {name: value for name, value in fields.items() if name.startswith("x-headgate-")}


def check(found: dict[str, str]) -> None:
    assert {name: value for name, value in found.items() if name not in TIMES} == TOLD
    for name in TIMES:
        assert MILLISECONDS.fullmatch(found[name])


def raw(running: Gateway, path: str, body: dict[str, Any]) -> tuple[dict[str, str], bytes, dict[str, str]]:
    """The head, the body and the trailers of an answer in chunks."""
    content = json.dumps(body).encode()
    head = f"POST /v1/{path} HTTP/1.1\r\nhost: gw\r\nconnection: close\r\ncontent-length: {len(content)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", running.port), 60) as sock:
        sock.sendall(head.encode() + content)
        got = b""
        while piece := sock.recv(65536):
            got += piece
    start, _, rest = got.partition(b"\r\n\r\n")
    said = b""
    while True:
        size, _, rest = rest.partition(b"\r\n")
        if int(size, 16) == 0:
            return fields_of(start), said, fields_of(b"\r\n" + rest.removesuffix(b"\r\n\r\n"))
        said, rest = said + rest[: int(size, 16)], rest[int(size, 16) + 2 :]


def fields_of(text: bytes) -> dict[str, str]:
    lines = [line.partition(": ") for line in text.decode().split("\r\n")[1:]]
    return {name.lower(): value for name, _, value in lines}


@pytest.mark.parametrize("path", ["chat/completions", "messages"])
def test_a_whole_answer_tells_it_in_its_head(path: str, gateway: Start, provider: StandIn) -> None:
    """OpenAI's format as the provider has it, and Anthropic's, translated."""
    running = started(gateway, provider)
    found = httpx.post(f"{running.url}/v1/{path}", json=body_for(path), timeout=60)
    assert found.status_code == 200
    check(own(found.headers))
    assert found.json()


@pytest.mark.http1(reason="reads trailers off the connection")
@pytest.mark.parametrize("path", ["chat/completions", "messages"])
def test_a_stream_tells_it_behind_its_end(path: str, gateway: Start, provider: StandIn) -> None:
    running = started(gateway, provider)
    counted = event({"choices": [], "model": "real", "usage": COUNTED})
    provider.answers[:] = [stream(chunk("a"), chunk("b", "stop"), counted, DONE)]
    head, said, trailers = raw(running, path, body_for(path, stream=True))
    assert own(head) == {}
    assert head["content-type"].startswith("text/event-stream")
    assert b"x-headgate" not in said
    check(trailers)
    # One that breaks tells what is known.
    provider.answers[:] = [stream(chunk("a"))]
    _, said, trailers = raw(running, path, body_for(path, stream=True))
    assert b"error" in said
    assert trailers.keys() == set(TIMES)


def test_only_what_is_wanted_is_told_and_only_of_models(gateway: Start, provider: StandIn) -> None:
    running = started(gateway, provider, "{overhead: false, generation: false, cost: false}")
    found = httpx.post(f"{running.url}/v1/chat/completions", json=body_for("chat/completions"), timeout=60)
    assert own(found.headers) == {name: TOLD[name] for name in TOLD if "tokens" in name}
    listed = httpx.get(f"{running.url}/v1/models", timeout=60)
    assert (listed.status_code, own(listed.headers)) == (200, {})
    provider.answers[:] = [whole({"error": {"message": "no"}}, 500)]
    failed = httpx.post(f"{running.url}/v1/chat/completions", json=body_for("chat/completions"), timeout=60)
    assert (failed.status_code, own(failed.headers)) == (500, {})


def test_without_the_policy_nothing_is_told(gateway: Start, provider: StandIn) -> None:
    text = FILE.replace("PORT", str(provider.port)).replace("  policies: {usageHeaders: FIELDS}\n", "")
    running = gateway(text)
    found = httpx.post(f"{running.url}/v1/chat/completions", json=body_for("chat/completions"), timeout=60)
    assert (found.status_code, own(found.headers)) == (200, {})
