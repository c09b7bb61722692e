"""Targets over HTTP+SSE (2024-11-05): the official SDK's server behind, its clients in front, and hostile servers."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from mcp.types import CreateMessageResult, TextContent
from tests.end_to_end.federation_rig import SAMPLE, Raw, client, config, messages
from tests.end_to_end.processes import kill
from tests.end_to_end.running import free_port
from tests.end_to_end.sse_targets_rig import (
    peer,  # noqa: F401
    sse,
)

pytestmark = pytest.mark.warm







def test_the_official_client_uses_a_server_over_sse(gateway: Callable[..., Any], peer: Callable[..., Any]) -> None:
    steps: list[tuple[float, str | None]] = []

    async def noted(progress: float, total: float | None, message: str | None) -> None:
        del total
        steps.append((progress, message))

    async def sampled(*_: Any) -> CreateMessageResult:
        return CreateMessageResult(role="assistant", model="m", content=TextContent(type="text", text="hi"))

    async def use() -> None:
        async with client(running, sampling_callback=sampled) as session:
            assert {"echo", "progress", "sample"} <= {tool.name for tool in (await session.list_tools()).tools}
            assert (await session.call_tool("echo", {"text": "ü"})).content[0].text == "old: ü"  # type: ignore[union-attr]
            found = await session.call_tool("progress", {"steps": 3}, progress_callback=noted)
            assert found.content[0].text == "done"  # type: ignore[union-attr]
            found = await session.call_tool("sample", {})
            assert found.content[0].text == "old heard hi"  # type: ignore[union-attr]
            assert (await session.read_resource("note://one")).contents[0].text == "note of old"  # type: ignore[union-attr]
            assert (await session.get_prompt("hello")).messages
            await session.send_ping()

    _, port = peer("sse", "old")
    running = gateway(config({"old": sse(port)}))
    asyncio.run(use())
    assert steps == [(1.0, "step 1"), (2.0, "step 2"), (3.0, "step 3")]


def test_beside_other_targets_and_with_several_workers(gateway: Callable[..., Any], peer: Callable[..., Any]) -> None:
    _, old = peer("sse", "old")
    _, new = peer("http", "new")
    targets = {"old": sse(old), "new": f'mcp: {{host: "127.0.0.1:{new}"}}', "sample": SAMPLE}
    running = gateway(config(targets), workers=2)
    raws = [Raw(running) for _ in range(4)]
    for raw in raws:
        names = raw.names("tools/list", "tools")
        assert {"old_echo", "new_echo"} < set(names)
        for _ in range(3):
            # Each on a connection of its own, so that both workers get some.
            raw.http.headers["connection"] = "close"
            assert raw.text("old_echo", text="a") == "old: a"
            assert raw.text("new_echo", text="b") == "new: b"
    assert raws[0].http.delete("/mcp").status_code == 200
    assert raws[0].post({"id": 5, "method": "ping"}).status_code == 404
    assert raws[1].text("old_echo", text="c") == "old: c"


def test_a_server_that_ends_is_connected_to_again_and_calls_under_way_fail_clearly(
    gateway: Callable[..., Any], peer: Callable[..., Any]
) -> None:
    port = free_port()
    process, _ = peer("sse", "old", port)
    raw = Raw(gateway(config({"old": sse(port)})))
    assert raw.text("echo", text="a") == "old: a"
    assert raw.text("exit") == "error MCP server old ended before it answered"
    process.wait(40)
    failed = raw.post({"id": 90, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "b"}}})
    assert failed.status_code == 500
    peer("sse", "old", port)
    deadline = time.monotonic() + 30
    while raw.text("echo", text="c") != "old: c":
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.mark.parametrize("end", ["worker", "gateway"])
def test_a_session_outlasts_its_worker_and_the_gateway(
    end: str, gateway: Callable[..., Any], peer: Callable[..., Any]
) -> None:
    _, old = peer("sse", "old")
    _, new = peer("http", "new")
    text = config({"old": sse(old), "new": f'mcp: {{host: "127.0.0.1:{new}"}}'})
    environment = {"SESSION_KEY": "5a" * 32}
    running = gateway(text, 2, environment)
    raws = [Raw(running) for _ in range(6)]  # of both workers
    for raw in raws:
        assert raw.text("old_echo", text="a") == "old: a"
    if end == "worker":
        kill(running.worker_pids()[0])
    else:
        running.stop()
        running = gateway(text, 2, environment)
    for raw in raws:
        raw.http.close()
        raw.http = httpx.Client(base_url=running.url, headers=raw.http.headers, timeout=60, transport=httpx.HTTPTransport(retries=20))
        for _ in range(2):
            # The server opens a session in place of the one that ended, unseen.
            assert raw.text("old_echo", text="b") == "old: b"
            assert raw.text("new_echo", text="c") == "new: c"
    assert raws[0].http.delete("/mcp").status_code == 200
    assert raws[0].post({"id": 5, "method": "ping"}).status_code == 404


def test_a_client_that_leaves_cancels_its_call_and_the_end_of_a_session_closes_the_stream(
    gateway: Callable[..., Any], peer: Callable[..., Any]
) -> None:
    _, port = peer("sse", "old")
    running = gateway(config({"old": sse(port)}))
    raw = Raw(running)
    body = json.dumps({"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": {"name": "slow", "arguments": {}}})
    head = f"POST /mcp HTTP/1.1\r\nhost: x\r\nmcp-session-id: {raw.session}\r\naccept: application/json, text/event-stream\r\n"
    with socket.create_connection(("127.0.0.1", running.port)) as sock:
        sock.sendall(f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode())
        while '{"began": "slow"}' not in raw.text("seen"):
            time.sleep(0.02)
    deadline = time.monotonic() + 40
    while '{"cancelled": "slow"}' not in raw.text("seen"):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def script(events: bytes, answer: bytes = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n") -> Callable[..., None]:
    def run(connection: socket.socket) -> None:
        got = b""
        while b"\r\n\r\n" not in got:
            got += connection.recv(65536)
        if got.startswith(b"GET"):
            connection.sendall(answer + events)
            connection.settimeout(10)
            connection.recv(1)
        else:
            connection.sendall(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")

    return run


HOSTILE = [
    (script(b"event: endpoint\ndata: http://evil.example/collect\n\n"), "the endpoint has another origin"),
    (script(b"event: endpoint\ndata: //evil.example/collect\n\n"), "the endpoint has another origin"),
    (script(b"event: endpoint\ndata: http://x@127.0.0.1/collect\n\n"), "the endpoint has another origin"),
    (script(b"event: endpoint\ndata: /a b\n\n"), "not a URL"),
    (script(b"", b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n"), "content type text/html"),
    (script(b"", b"HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer\r\ncontent-length: 2\r\n\r\nno"), "no"),
    (script(b"", b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 0\r\n\r\n"), "the event stream ended"),
    (script(b": nothing\n\n"), "was not opened in time"),
]  # fmt: skip


@pytest.mark.parametrize(("server", "reason"), HOSTILE, ids=[case[1] + str(n) for n, case in enumerate(HOSTILE)])
def test_servers_that_do_not_open_are_told_of(
    gateway: Callable[..., Any], upstream: Callable[..., int], server: Callable[..., None], reason: str
) -> None:
    patience = "1s" if "in time" in reason else "60s"
    running = gateway(config({"old": sse(upstream(server), f"{{http: {{requestTimeout: {patience}}}}}")}))
    opened = Raw(running).opened
    assert reason in opened.text
    assert opened.status_code == (401 if reason == "no" else 500)
    if reason == "no":
        assert opened.headers["www-authenticate"] == "Bearer"


def test_junk_on_the_stream_is_passed_over(gateway: Callable[..., Any], upstream: Callable[..., int]) -> None:
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}}
    events = (
        b"event: message\ndata: early\n\nevent: other\ndata: x\n\nevent: endpoint\ndata: ?s=1\n\n"
        b"event: endpoint\ndata: http://evil.example/\n\ndata: not json\n\ndata: []\n\n"
        b'data: {"jsonrpc":"2.0","id":77,"result":{}}\n\n'
    )

    def run(connection: socket.socket) -> None:
        got = b""
        while b"\r\n\r\n" not in got:
            got += connection.recv(65536)
        if got.startswith(b"GET"):
            streams.append(connection)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + events)
            connection.settimeout(20)
            connection.recv(1)
            return
        targets.append(got.split(b" ")[1])
        connection.sendall(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        streams[0].sendall(b"event: message\ndata: " + json.dumps(answer).encode() + b"\n\n")

    streams: list[socket.socket] = []
    targets: list[bytes] = []
    opened = Raw(gateway(config({"old": sse(upstream(run))}))).opened
    assert messages(opened)[0]["result"] == answer["result"]
    assert targets[0] == b"/sse?s=1"
