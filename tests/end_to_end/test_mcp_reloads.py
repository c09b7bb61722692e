"""Sessions and changes of the configuration: what goes on, and what is another session's."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from queue import Queue
from typing import Any

import httpx
import pytest
from tests.end_to_end.federation_rig import ACCEPT, INITIALIZE, SAMPLE, Raw, config, messages
from tests.end_to_end.mcp_stand_in import StandIn

pytestmark = pytest.mark.warm


@pytest.fixture(scope="module")
def stand_in() -> Iterator[StandIn]:
    found = StandIn()
    yield found
    found.stop()


def reload(running: Any, text: str) -> None:
    """Have the gateway serve another configuration, and wait until it does."""
    before = running.log().count("configuration reloaded")
    running.write(text)
    for _ in range(500):
        if running.log().count("configuration reloaded") > before:
            return
        threading.Event().wait(0.02)
    raise AssertionError(running.log()[-2000:])


RULE = "  policies: {mcpAuthorization: {rules: ['mcp.tool.name != \"slow\"']}}\n"


@pytest.mark.parametrize("more", ["  failureMode: failOpen\n", RULE])
def test_sessions_with_a_process_go_on_with_other_rules(gateway: Callable[..., Any], stand_in: StandIn, more: str) -> None:
    targets = {"a": SAMPLE, "b": stand_in.target(stand_in.add("b"))}
    running = gateway(config(targets))
    raw = Raw(running)
    reload(running, config(targets, more))
    assert raw.text("a_echo", message="here") == "Echo: here"
    assert ("a_slow" in raw.names("tools/list", "tools")) == (more != RULE)
    reload(running, config(targets))
    assert "a_slow" in raw.names("tools/list", "tools")


def test_a_session_of_one_server_goes_on_with_rules(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    running = gateway(config({"a": stand_in.target(stand_in.add("a"))}))
    raw = Raw(running)
    for more, names in ((RULE.replace("slow", "call"), []), ("", ["call"]), (RULE, ["call"])):
        reload(running, config({"a": stand_in.target(stand_in.servers["a"])}, more))
        assert raw.names("tools/list", "tools") == names
    assert len(stand_in.servers["a"].asked("initialize")) == 1


def test_failures_are_passed_over_from_a_reload_on(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    bad = stand_in.add("bad")
    targets = {"a": stand_in.target(stand_in.add("a")), "bad": stand_in.target(bad)}
    running = gateway(config(targets))
    raw = Raw(running)
    bad.dead = True
    assert raw.ask("tools/list")["error"]["message"].startswith("failed to send message: bad: ")
    reload(running, config(targets, "  failureMode: failOpen\n"))
    assert raw.names("tools/list", "tools") == ["a_call"]
    reload(running, config(targets))
    assert "error" in raw.ask("tools/list")


def test_a_session_is_of_all_targets_and_no_others(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    a, b = (stand_in.target(stand_in.add(name)) for name in ("a", "b"))
    running = gateway(config({"a": a, "b": b}))
    raw = Raw(running)
    for targets in ({"a": a}, {"a": a, "b": b, "c": stand_in.target(stand_in.add("c"))}):
        reload(running, config(targets))
        found = raw.post({"id": 1, "method": "tools/list"})
        assert (found.status_code, found.text) == (404, "mcp: session not found")
    reload(running, config({"b": b, "a": a}))
    assert raw.text("a_call") == "a called"
    one = gateway(config({"a": a}))
    single = Raw(one)
    reload(one, config({"a": a, "b": b}))
    assert single.post({"id": 1, "method": "tools/list"}).status_code == 404


def test_an_event_stream_ends_with_its_session(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    events: Queue[dict[str, Any] | None] = Queue()
    a, b = stand_in.target(stand_in.add("a", events=events)), stand_in.target(stand_in.add("b"))
    running = gateway(config({"a": a, "b": b}))
    raw = Raw(running)
    heard: list[Any] = []
    listening, ended = threading.Event(), threading.Event()

    def listen() -> None:
        with httpx.stream("GET", f"{running.url}/mcp", headers={**raw.http.headers, "accept": "text/event-stream"}, timeout=20) as found:
            for line in found.iter_lines():
                if line.startswith("data: "):
                    heard.append(json.loads(line[6:])["method"])
                    listening.set()
        ended.set()

    threading.Thread(target=listen, daemon=True).start()
    events.put({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    assert listening.wait(20)
    reload(running, config({"b": b}))
    assert ended.wait(20), "nobody hears a target that is not configured any more"
    assert messages(Raw(running).opened)[0]["result"]["serverInfo"]["name"] == "b"


TWINS = """
    gateways:
      default: {port: {port}}
    routes:
    - matches: [{path: {pathPrefix: /kept}}]
      backends: [{mcp: {targets: [{name: a, SAMPLE}]}}]
    - matches: [{path: {pathPrefix: /other}}]
      backends: [{mcp: {targets: [{name: a, SAMPLE}]}}]
    - matches: [{path: {pathPrefix: /stateless}}]
      backends: [{mcp: {statefulMode: stateless, targets: [{name: a, SAMPLE}]}}]
"""


@pytest.mark.parametrize("kind", ["process", "remote"])
def test_backends_with_one_target_have_sessions_of_their_own(gateway: Callable[..., Any], stand_in: StandIn, kind: str) -> None:
    target = SAMPLE if kind == "process" else stand_in.target(stand_in.add("a", results={"tools/call": {"content": []}}))
    running = gateway(TWINS.replace("SAMPLE", target), 2)
    for _ in range(4):
        http = httpx.Client(base_url=running.url, headers=ACCEPT, timeout=20)
        opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}
        session = {"mcp-session-id": http.post("/kept", json=opening).headers["mcp-session-id"]}
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        for _ in range(4):  # connections of their own: both workers
            assert httpx.post(f"{running.url}/other", json=ping, headers={**ACCEPT, **session}, timeout=20).status_code == 404
            answer = httpx.post(f"{running.url}/kept", json=ping, headers={**ACCEPT, **session}, timeout=20)
            assert "result" in messages(answer)[0]
        assert httpx.delete(f"{running.url}/kept", headers={**ACCEPT, **session}, timeout=20).status_code == 200
        for _ in range(4):
            assert httpx.post(f"{running.url}/kept", json=ping, headers={**ACCEPT, **session}, timeout=20).status_code == 404
    if kind == "remote":
        assert len(stand_in.servers["a"].asked("initialize")) == 4
