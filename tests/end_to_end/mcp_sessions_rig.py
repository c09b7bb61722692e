"""What tests of mcp sessions and others share."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx
from tests.end_to_end.federation_rig import ACCEPT, INITIALIZE

KEYS = "  policies: {apiKey: {keys: [{key: ada}, {key: bob}]}}\n"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def wait_for(condition: Callable[[], object], seconds: float = 40.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def parent(pid: int) -> int:
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rsplit(") ", 1)[1].split()[1])


def begun(running: Any, key: str | None = None) -> httpx.Client:
    """A client with a session."""
    client = httpx.Client(base_url=running.url, headers=ACCEPT, timeout=60)
    if key is not None:
        client.headers["authorization"] = f"Bearer {key}"
    body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}
    answer = client.post("/mcp", json=body)
    assert answer.status_code == 200, answer.text
    client.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
    return client
