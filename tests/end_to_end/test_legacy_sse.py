"""Clients over HTTP+SSE (2024-11-05): the official client, and raw ones that vanish, do not read, or come from elsewhere."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from mcp import ClientSession
from mcp.client.sse import sse_client
from mcp.types import CreateMessageResult, TextContent
from tests.end_to_end.federation_rig import INITIALIZE, SAMPLE, Raw, asking, config
from tests.end_to_end.legacy_sse_rig import RawSse
from tests.end_to_end.processes import children_of

pytestmark = pytest.mark.warm


@asynccontextmanager
async def client(running: Any, path: str = "/sse", **options: Any) -> AsyncIterator[ClientSession]:
    async with sse_client(f"{running.url}{path}") as (read, write), ClientSession(read, write, **options) as session:
        await session.initialize()
        yield session




TARGETS = [
    ({"one": SAMPLE}, ""),
    ({"one": SAMPLE, "two": SAMPLE}, "one_"),
]


@pytest.mark.parametrize(("targets", "prefix"), TARGETS, ids=["one", "several"])
def test_the_official_client_uses_the_gateway_over_sse(
    gateway: Callable[..., Any], targets: dict[str, str], prefix: str
) -> None:
    async def use() -> None:
        async with client(running) as session:
            names = [tool.name for tool in (await session.list_tools()).tools]
            assert f"{prefix}echo" in names
            found = await session.call_tool(f"{prefix}echo", {"message": "ü"})
            assert "ü" in found.content[0].text  # type: ignore[union-attr]
            await session.send_ping()

    running = gateway(config(targets))
    asyncio.run(use())


def test_requests_of_servers_and_their_news_reach_the_client(gateway: Callable[..., Any]) -> None:
    async def sampled(*_: Any) -> CreateMessageResult:
        return CreateMessageResult(role="assistant", model="m", content=TextContent(type="text", text="hi"))

    async def noted(message: Any) -> None:
        if type(getattr(message, "root", message)).__name__ == "ToolListChangedNotification":
            changed.set()

    async def use() -> None:
        async with client(running, sampling_callback=sampled, message_handler=noted) as session:
            found = await session.call_tool("a_ask", {})
            assert "hi" in found.content[0].text  # type: ignore[union-attr]
            await session.call_tool("a_later", {})
            await asyncio.wait_for(changed.wait(), 20)

    changed = asyncio.Event()
    running = gateway(config({"a": asking("a"), "b": asking("b")}))
    asyncio.run(use())


def test_answers_statuses_and_faults_of_posts(gateway: Callable[..., Any]) -> None:
    running = gateway(config({"one": SAMPLE}))
    raw = RawSse(running, "/sse?team=red")
    assert raw.endpoint.startswith("/sse?team=red&sessionId=")
    assert raw.ask("tools/list")["error"] == {"code": -32600, "message": "initialize first"}
    assert raw.open()["result"]["serverInfo"]
    assert raw.ask("initialize", **INITIALIZE)["error"]["code"] == -32602
    assert raw.ask("tools/call", name="nope")["id"] == raw.id
    assert raw.http.post("/sse", json={}).status_code == 422
    assert raw.http.post("/sse?sessionId=", json={}).status_code == 422
    assert raw.http.post("/sse?sessionId=made-up", json={}).status_code == 404
    assert raw.http.post(raw.endpoint, content=b"[]").status_code == 400
    assert raw.http.post(raw.endpoint, content=b"{").status_code == 400
    assert raw.http.delete("/sse").status_code == 405
    # Its id is none of the other transport's, and the other way round.
    session = raw.endpoint.partition("sessionId=")[2]
    accept = {"accept": "application/json, text/event-stream", "mcp-session-id": session}
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert raw.http.post("/mcp", json=ping, headers=accept).status_code == 404


def test_a_target_that_does_not_start_is_told_on_the_stream(gateway: Callable[..., Any]) -> None:
    raw = RawSse(gateway(config({"one": SAMPLE, "bad": "stdio: {cmd: /no/such/program}"})))
    error = raw.ask("initialize", **INITIALIZE)["error"]
    assert (error["code"], "cannot start /no/such/program" in error["message"]) == (-32603, True)


def test_a_client_that_vanishes_takes_its_processes_with_it(gateway: Callable[..., Any]) -> None:
    running = gateway(config({"one": SAMPLE}))

    def servers() -> list[int]:
        return [pid for worker in running.worker_pids() for pid in children_of(worker)]

    raws = [RawSse(running) for _ in range(3)]
    for raw in raws:
        raw.open()
    assert len(servers()) == 3
    raws[0].sock.shutdown(socket.SHUT_RDWR)
    deadline = time.monotonic() + 40
    while len(servers()) != 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert raws[0].post({"id": 9, "method": "ping"}).status_code == 404
    assert raws[1].ask("ping")["result"] == {}


def test_posts_reach_the_worker_that_has_the_stream(gateway: Callable[..., Any]) -> None:
    raws = [RawSse(running) for running in [gateway(config({"one": SAMPLE}), workers=2)] * 4]
    for raw in raws:
        raw.open()
        # Each POST on a connection of its own: both workers get some.
        raw.http.headers["connection"] = "close"
        for _ in range(4):
            assert raw.ask("ping")["result"] == {}


def test_the_endpoint_is_the_url_that_the_client_sent(gateway: Callable[..., Any]) -> None:
    running = gateway(
        f"""
        gateways: {{default: {{port: {{port}}}}}}
        routes:
        - matches: [{{path: {{pathPrefix: /team}}}}]
          policies: {{urlRewrite: {{path: {{prefix: /}}}}}}
          backends: [{{mcp: {{targets: [{{name: one, {SAMPLE}}}]}}}}]
        """
    )
    raw = RawSse(running, "/team/sse")
    assert raw.endpoint.startswith("/team/sse?sessionId=")
    assert raw.open()["result"]["serverInfo"]


def test_a_reload_that_leaves_the_backend_alone_keeps_its_sessions(gateway: Callable[..., Any]) -> None:
    running = gateway(config({"one": SAMPLE}))
    raw = RawSse(running)
    raw.open()
    running.write(config({"one": SAMPLE}) + "frontendPolicies: {http: {maxBufferSize: 1000000}}\n")
    running.wait_log("configuration reloaded")
    assert raw.ask("ping")["result"] == {}


def test_a_session_is_of_who_began_it_at_every_worker(gateway: Callable[..., Any]) -> None:
    keys = "  policies: {apiKey: {keys: [{key: ada}, {key: bob}]}}\n"
    raw = RawSse(gateway(config({"one": SAMPLE}, keys), workers=2), authorization="Bearer ada")
    raw.open()
    ping = {"id": 9, "method": "ping"}
    # Connections of their own, so that both workers are asked.
    raw.http.headers["connection"] = "close"
    for _ in range(6):
        theft = raw.post(ping, authorization="Bearer bob")
        assert (theft.status_code, theft.text) == (404, "mcp: session not found")
        assert raw.post(ping, authorization="Bearer eve").status_code == 401
        assert raw.ask("ping")["result"] == {}


def test_sessions_count_against_the_cap_of_all_workers(gateway: Callable[..., Any]) -> None:
    running = gateway(config({"one": SAMPLE}), workers=2, settings="mcp: {maxSessions: 2}")
    first, second = RawSse(running), RawSse(running)
    running.wait_metric("gw_mcp_sessions{", 2)
    for _ in range(4):
        answer = httpx.get(f"{running.url}/sse", headers={"connection": "close"}, timeout=60)
        assert (answer.status_code, answer.text) == (503, "mcp: too many sessions: 2 are open")
    # Those of the other transport are of the same number.
    refused = Raw(running).opened
    assert (refused.status_code, refused.text) == (503, "mcp: too many sessions: 2 are open")
    first.sock.shutdown(socket.SHUT_RDWR)
    deadline = time.monotonic() + 40
    while running.metric("gw_mcp_sessions{") != 1:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert RawSse(running).open()["result"]["serverInfo"]
    assert second.open()["result"]["serverInfo"]


def test_requests_are_told_once_wherever_the_stream_is(gateway: Callable[..., Any]) -> None:
    running = gateway(config({"one": SAMPLE}), workers=2)
    raw = RawSse(running)
    raw.open()
    raw.http.headers["connection"] = "close"
    for number in range(6):
        found = raw.ask("tools/call", name="echo", arguments={"message": str(number)})
        assert found["result"]["content"]
    running.wait_metric('gw_mcp_requests_total{method="tools/call"', 6)
    session = raw.endpoint.partition("sessionId=")[2]
    running.stop()
    assert session not in running.log(), "whoever has the id has the session"
    lines = [line for line in running.log().splitlines() if "mcp.method.name=tools/call" in line]
    assert len(lines) == 6
    for line in lines:
        assert f"mcp.session.id={session[:16]}" in line
        assert "gen_ai.tool.name=echo" in line
        assert "http.status=202" in line
