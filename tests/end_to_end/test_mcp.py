"""The official MCP client through the gateway, to a stdio and to a StreamableHTTP server."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time

import httpx
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from tests.end_to_end.processes import children_of, kill

pytestmark = pytest.mark.warm

STDIO = """
gateways:
  default: {port: {port}}
mcp:
  targets:
  - name: sample
    stdio: {cmd: "PYTHON", args: ["-m", "headgate.sample.mcp_server"], env: {SAMPLE_TOKEN: not-shown}}
""".replace("PYTHON", sys.executable)
REMOTE = """
gateways:
  default: {port: {port}}
mcp:
  targets:
  - name: remote
    mcp: {host: "http://127.0.0.1:BACKEND/mcp"}
"""
ACCEPT = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


@pytest.fixture(params=["stdio", "remote", "remote-json"])
def running(request, gateway, sample):
    if request.param == "stdio":
        return gateway(STDIO, workers=2)
    extra = ["--json"] if request.param == "remote-json" else []
    return gateway(REMOTE.replace("BACKEND", str(sample("mcp_server", "--http", "127.0.0.1:0", *extra))), workers=2)


async def use(url: str, count: int = 3) -> list[str]:
    """Initialize, list, call `count` tools at once; the texts that came back."""
    async with streamable_http_client(url) as (read, write, *_), ClientSession(read, write) as session:
        await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]
        assert tools == ["echo", "add", "slow"]
        results = await asyncio.gather(*(session.call_tool("echo", {"message": f"m{i}"}) for i in range(count)))
        prompt = await session.get_prompt("greet", {"name": "Ada"})
        assert "Ada" in prompt.messages[0].content.text
        resource = await session.read_resource("sample://readme")
        assert resource.contents[0].text == "This is a sample."
        return [result.content[0].text for result in results]


def test_the_official_client_lists_calls_and_reads(running) -> None:
    assert asyncio.run(use(f"{running.url}/mcp")) == ["Echo: m0", "Echo: m1", "Echo: m2"]


def test_many_sessions_at_once_do_not_mix(running) -> None:
    async def many() -> list[list[str]]:
        return await asyncio.gather(*(use(f"{running.url}/mcp", 2) for _ in range(8)))

    assert asyncio.run(many()) == [["Echo: m0", "Echo: m1"]] * 8


def test_progress_arrives_with_the_call_it_belongs_to(gateway) -> None:
    running = gateway(STDIO, workers=2)
    seen: list[float] = []

    async def call() -> None:
        async with (
            streamable_http_client(f"{running.url}/mcp") as (read, write, *_),
            ClientSession(read, write) as session,
        ):
            await session.initialize()

            async def progress(done: float, _total: float | None, _message: str | None) -> None:
                seen.append(done)

            await session.call_tool("slow", {"seconds": 0.2}, progress_callback=progress)

    asyncio.run(call())
    assert seen == [1, 2, 3, 4, 5]


def post(running, message: object, **headers: str) -> tuple[int, str, dict[str, str]]:
    import urllib.error
    import urllib.request

    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    request = urllib.request.Request(f"{running.url}/mcp", data=data, method="POST", headers={**ACCEPT, **headers})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), dict(error.headers)


@pytest.mark.parametrize(
    ("message", "headers", "status", "text"),
    [
        (INITIALIZE, {"accept": "application/json"}, 406, "accept"),
        (INITIALIZE, {"content-type": "text/plain"}, 415, "content-type"),
        (b"{", {}, 400, "-32700"),
        (b"[]", {}, 400, "batches"),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', {}, 400, "twice"),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping"}, {}, 400, "session"),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"mcp-session-id": "0-unknown"}, 404, "session not found"),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"mcp-session-id": "77-unknown"}, 404, "session not found"),
        (INITIALIZE, {"mcp-protocol-version": "1999-01-01"}, 400, "-32022"),
    ],
)
def test_what_is_no_proper_message_is_refused(gateway, message, headers, status: int, text: str) -> None:
    running = gateway(STDIO)
    found, body, _ = post(running, message, **headers)
    assert found == status
    assert text in body


def servers(running) -> list[int]:
    return [child for worker in running.worker_pids() for child in children_of(worker)]


def wait_for(condition, seconds: float = 40.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_session_has_a_process_that_ends_with_it(gateway) -> None:
    running = gateway(STDIO)
    status, _, headers = post(running, INITIALIZE)
    assert status == 200
    assert len(servers(running)) == 1
    running.fetch(f"{running.url}/mcp", "DELETE", headers={"mcp-session-id": headers["mcp-session-id"]})
    wait_for(lambda: not servers(running))


def test_a_server_that_is_killed_fails_its_call_and_its_session(gateway) -> None:
    running = gateway(STDIO)
    _, _, headers = post(running, INITIALIZE)
    session = {"mcp-session-id": headers["mcp-session-id"]}
    call = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {
        "name": "slow", "arguments": {"seconds": 100}, "_meta": {"progressToken": 1}}}  # fmt: skip
    with httpx.stream("POST", f"{running.url}/mcp", json=call, headers={**ACCEPT, **session}, timeout=60) as answer:
        lines = answer.iter_lines()
        next(line for line in lines if "notifications/progress" in line)
        kill(servers(running)[0])
        assert answer.status_code == 200
        assert any("ended before it answered" in line for line in lines)
    assert post(running, {"jsonrpc": "2.0", "id": 6, "method": "ping"}, **session)[0] == 404


def test_no_server_outlives_the_gateway(gateway) -> None:
    running = gateway(STDIO, workers=2)
    for _ in range(3):
        post(running, INITIALIZE)
    pids = servers(running)
    assert len(pids) == 3
    assert running.stop() == 0
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))


def test_no_server_outlives_a_killed_worker(gateway) -> None:
    running = gateway(STDIO)
    post(running, INITIALIZE)
    pids = servers(running)
    kill(running.worker_pids()[0])
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))
    running.wait_log("worker restarted")


def test_a_target_that_cannot_start_is_a_500_that_says_so(gateway) -> None:
    running = gateway(STDIO.replace(sys.executable, "/no/such/program"))
    status, body, _ = post(running, INITIALIZE)
    assert status == 500
    assert "cannot start" in body


def test_the_client_s_credentials_do_not_reach_a_remote_target(gateway, upstream) -> None:
    seen: list[bytes] = []

    def script(connection) -> None:
        data = b""
        while b'"initialize"' not in data:
            data += connection.recv(65536)
        seen.append(data)
        connection.sendall(b"HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer x\r\ncontent-length: 2\r\n\r\nno")

    running = gateway(REMOTE.replace("BACKEND", str(upstream(script))))
    status, body, headers = post(running, INITIALIZE, authorization="Bearer mine", cookie="a=b", **{"x-kept": "1"})
    assert (status, body) == (401, "no")
    assert headers["www-authenticate"] == "Bearer x"
    head = seen[0].lower()
    assert b"x-kept: 1" in head
    assert b"mine" not in head
    assert b"cookie" not in head
