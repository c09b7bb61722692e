"""What a client told a target that lasts, log level and subscriptions, is told it anew when its session begins anew unseen."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.end_to_end.federation_rig import Raw, config
from tests.end_to_end.mcp_sessions_rig import wait_for
from tests.end_to_end.mcp_stand_in import StandIn

pytestmark = pytest.mark.warm

LASTING = {"logging/setLevel", "resources/subscribe", "resources/unsubscribe"}


@pytest.fixture(scope="module")
def stand_in() -> Iterator[StandIn]:
    found = StandIn()
    yield found
    found.stop()


def say(raw: Raw, prefix: str) -> None:
    for method, params in (
        ("logging/setLevel", {"level": "error"}), ("logging/setLevel", {"level": "debug"}), ("resources/subscribe", {"uri": f"{prefix}+x://1"}),
        ("resources/subscribe", {"uri": f"{prefix}+x://2"}), ("resources/unsubscribe", {"uri": f"{prefix}+x://1"}),
    ):  # fmt: skip
        assert raw.ask(method, **params)["result"] == {}, method


def lasting(received: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    return [(one["method"], one["params"].get("level", one["params"].get("uri"))) for one in received if one.get("method") in LASTING]


# A server that agrees to everything, tells what it was told, and ends when it is asked to.
SERVER = """
import json, sys
received = []
for line in sys.stdin:
    message = json.loads(line)
    received.append(message)
    name = message.get("params", {}).get("name")
    if name == "exit":
        sys.exit()
    if "id" not in message:
        continue
    result = {}
    if message["method"] == "initialize":
        able = {"tools": {}, "logging": {}, "resources": {"subscribe": True}}
        result = {"protocolVersion": "2025-06-18", "capabilities": able, "serverInfo": {"name": "s", "version": "1"}}
    elif name == "tell":
        result = {"content": [{"type": "text", "text": json.dumps(received)}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
PROCESS = f"stdio: {{cmd: {json.dumps(sys.executable)}, args: {json.dumps(['-c', SERVER])}}}"
WANTED = [("logging/setLevel", "debug"), ("resources/subscribe", "x://2")]


def test_a_server_that_forgot_its_session(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    able = {"tools": {}, "logging": {}, "resources": {"subscribe": True}}
    good = {"logging/setLevel": {}, "resources/subscribe": {}, "resources/unsubscribe": {}}
    far = stand_in.add("far", capabilities=able, results=good)
    raw = Raw(gateway(config({"far": stand_in.target(far), "near": stand_in.target(stand_in.add("near"))})))
    say(raw, "far")
    before = len(far.seen)
    far.forgotten.add("far-1")
    assert raw.text("far_call") == "far called"
    after = [one.message for one in far.seen[before:] if one.fields.get("mcp-session-id") == "far-2"]
    assert lasting(after) == WANTED
    assert [one["method"] for one in after][-1] == "tools/call", "before anything else"


def test_a_process_that_is_started_again(gateway: Callable[..., Any]) -> None:
    running = gateway(config({"a": PROCESS, "b": PROCESS}))
    raw = Raw(running)
    say(raw, "a")
    raw.text("a_exit")
    wait_for(lambda: "not started again" not in raw.text("a_tell"))
    running.wait_log("server is restarted")
    received = json.loads(raw.text("a_tell"))
    assert lasting(received) == WANTED
    assert [one["method"] for one in received][:2] == ["initialize", "notifications/initialized"]
