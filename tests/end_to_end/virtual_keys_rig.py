"""Gateways with virtual keys, the calls of their API, and requests with a key."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
from tests.end_to_end.conftest import Gateway
from tests.end_to_end.provider_stand_in import StandIn
from tests.end_to_end.stored_rig import ask

Start = Callable[..., Gateway]
# Dollars per million tokens: a picodollar is a millionth of them.
PRICES = {"providers": {"openai": {"models": {"real": {"rates": {"input": "2", "output": "8"}}}}}}
FILE = """
gateways: {default: {port: {port}}}
llm:
  gateways: [default]
  policies: {apiKey: {virtualKeys: true}}
  models:
  - {name: real, provider: openai, params: {apiKey: sk-own, hostOverride: "127.0.0.1:PORT"}}
  - {name: other, provider: openai, params: {apiKey: sk-own, hostOverride: "127.0.0.1:PORT"}}
"""


def settings(url: str) -> str:
    return f"""
storage: {{mode: hybrid}}
database: {{url: '{url}'}}
modelCatalog:
- inline: {json.dumps(PRICES)}
"""


def started(gateway: Start, provider: StandIn, url: str, workers: int = 1) -> Gateway:
    return gateway(FILE.replace("PORT", str(provider.port)), workers, settings=settings(url))


def make(running: Gateway, name: str, **more: Any) -> str:
    """Make a key and return it."""
    status, answer = ask(running, "POST", "/api/keys", {"name": name, **more})
    assert status == 201, answer
    return str(answer["key"])


def chat(running: Gateway, key: str | None, model: str = "real", **more: Any) -> httpx.Response:
    """Ask a model, on a connection of its own: any worker may have it."""
    fields = {} if key is None else {"authorization": f"Bearer {key}"}
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}], **more}
    return httpx.post(f"{running.url}/v1/chat/completions", json=body, headers=fields, timeout=60)
