"""Policy servers that fail, clients that leave, configurations that change, and the example with the official client."""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import types
from tests.end_to_end.asking import leaving
from tests.end_to_end.conftest import free_port
from tests.end_to_end.federation_rig import SAMPLE, Raw, asking, client, config
from tests.end_to_end.mcp_guardrails_rig import changed, guarded
from tests.end_to_end.policy_peer import Policy, refused, telling_server, wait_for

from headgate.dialect.mcp.ext_mcp import McpResponseResult

pytestmark = pytest.mark.warm

EXAMPLE = Path(__file__).parents[2] / "examples" / "mcp-guardrails"
CALLS = "methods: {tools/call: full}"


@pytest.fixture
def policy() -> Iterator[Policy]:
    found = Policy()
    yield found
    found.stop()


def failure(raw: Raw) -> str:
    error = raw.ask("tools/call", name="echo", arguments={"message": "x"})["error"]
    assert error["code"] == -32603
    return str(error["message"])


def test_a_dead_server_and_one_that_comes_back(gateway: Callable[..., Any]) -> None:
    port = free_port()
    strict = Raw(gateway(config({"a": SAMPLE}, guarded(port, more=CALLS))))
    running = gateway(config({"a": SAMPLE}, guarded(port, more=f"{CALLS}, failureMode: failOpen")))
    easy = Raw(running)
    assert failure(strict).startswith("mcpGuardrails checkRequest failed: UNAVAILABLE: Connection refused")
    assert easy.text("echo", message="x") == "Echo: x"
    running.wait_metric('gw_guardrail_checks_total{phase="Request",action="FailOpen",guard="remote"}', 1)
    running.wait_metric('gw_guardrail_checks_total{phase="Response",action="FailOpen",guard="remote"}', 1)
    for _ in range(2):
        policy = Policy(port)
        try:
            wait_for(lambda: strict.text("echo", message="x") == "Echo: x", "it is found again")
            policy.on_request = lambda question, context: refused(1, "no")
            assert strict.text("echo", message="x") == "error no"
        finally:
            policy.stop()
        assert failure(strict).startswith("mcpGuardrails checkRequest failed: UNAVAILABLE")


def test_a_slow_server(gateway: Callable[..., Any], policy: Policy) -> None:
    stopped = threading.Event()

    def wait(question: Any, context: Any) -> None:
        context.add_callback(stopped.set)
        stopped.wait(60)

    policy.on_request = wait
    more = f"{CALLS}, policies: {{http: {{requestTimeout: 300ms}}}}"
    strict = Raw(gateway(config({"a": SAMPLE}, guarded(policy.port, more=more))))
    # The server knows the deadline, too: either side may tell of it first.
    reasons = ("no answer in time", "Deadline Exceeded")
    assert failure(strict) in [f"mcpGuardrails checkRequest failed: DEADLINE_EXCEEDED: {reason}" for reason in reasons]
    assert stopped.wait(40), "the server is told to stop"
    easy = Raw(gateway(config({"a": SAMPLE}, guarded(policy.port, more=f"{more}, failureMode: failOpen"))))
    stopped.clear()
    assert easy.text("echo", message="x") == "Echo: x"


def test_what_is_no_policy_server(gateway: Callable[..., Any], upstream: Any) -> None:
    def web(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")

    def noise(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(bytes(range(256)) * 400)

    def settings_then_noise(connection: socket.socket) -> None:
        connection.sendall(b"\0\0\0\4\0\0\0\0\0")
        time.sleep(0.2)
        connection.recv(65536)
        connection.sendall(b"\0\0\4\1\5\0\0\0\1\xff\xff\xff\xff")
        connection.recv(65536)

    def silence(connection: socket.socket) -> None:
        connection.recv(65536)
        time.sleep(30)

    def leaves(connection: socket.socket) -> None:
        connection.recv(10)

    for script, words in ((web, "UNAVAILABLE"), (noise, "UNAVAILABLE"), (settings_then_noise, "UNAVAILABLE"),
                          (silence, "DEADLINE_EXCEEDED"), (leaves, "UNAVAILABLE")):  # fmt: skip
        more = f"{CALLS}, policies: {{http: {{requestTimeout: {'1s' if script is silence else '60s'}}}}}"
        raw = Raw(gateway(config({"a": SAMPLE}, guarded(upstream(script), more=more))))
        assert failure(raw).startswith(f"mcpGuardrails checkRequest failed: {words}"), script.__name__


def test_other_ends_of_calls(gateway: Callable[..., Any], policy: Policy) -> None:
    import grpc

    raw = Raw(gateway(config({"a": SAMPLE}, guarded(policy.port, more=CALLS))))

    def abort(question: Any, context: Any) -> None:
        context.abort(grpc.StatusCode.PERMISSION_DENIED, "grün\n" * 3)

    def crash(question: Any, context: Any) -> None:
        raise RuntimeError("secret of the server")

    policy.on_request = abort
    assert failure(raw) == "mcpGuardrails checkRequest failed: PERMISSION_DENIED: grün grün grün"
    policy.on_request = crash
    assert failure(raw).startswith("mcpGuardrails checkRequest failed: UNKNOWN: ")
    policy.on_request = lambda question, context: b"\x12" + b"\x80\x80\x80\x10" + bytes(30 * 1024 * 1024)
    assert failure(raw).startswith("mcpGuardrails checkRequest failed: RESOURCE_EXHAUSTED: ")
    policy.on_request = lambda question, context: None
    big = "x" * 15_000_000
    policy.on_response = lambda question, context: changed(McpResponseResult, {"content": [{"type": "text", "text": big}]})
    assert raw.text("echo", message="x") == big


def test_other_targets_are_not_held_up(gateway: Callable[..., Any], policy: Policy) -> None:
    """One client waits for the policy server; others, and calls that it does not see, go on."""
    release = threading.Event()
    policy.on_request = lambda question, context: release.wait(60) and None if b"wait" in question.mcp_request else None
    running = gateway(config({"a": SAMPLE}, guarded(policy.port, more=CALLS)))
    raw, other = Raw(running), Raw(running)
    found: list[str] = []
    waiting = threading.Thread(target=lambda: found.append(raw.text("echo", message="wait")))
    waiting.start()
    wait_for(lambda: policy.asked("tools/call"))
    assert other.text("echo", message="x") == "Echo: x"
    assert other.ask("ping")["result"] == {}
    release.set()
    waiting.join(60)
    assert found == ["Echo: wait"]


def test_a_client_that_leaves(gateway: Callable[..., Any], policy: Policy) -> None:
    told = threading.Event()

    def wait(question: Any, context: Any) -> None:
        if b"wait" in question.mcp_request:
            context.add_callback(told.set)
            told.wait(60)

    policy.on_request = wait
    more = f"{CALLS}, policies: {{http: {{requestTimeout: 60s}}}}"
    raw = Raw(gateway(config({"a": SAMPLE}, guarded(policy.port, more=more))))
    call = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "echo", "arguments": {"message": "wait"}}}
    with leaving(raw, call):
        wait_for(lambda: policy.asked("tools/call"))
    assert told.wait(40), "the call is cancelled"
    assert raw.text("echo", message="x") == "Echo: x"


def test_reload_in_the_middle_of_a_call(gateway: Callable[..., Any], policy: Policy) -> None:
    release, second = threading.Event(), Policy()
    policy.on_request = lambda question, context: release.wait(60) and None
    policy.on_response = lambda question, context: changed(McpResponseResult, {"content": [{"type": "text", "text": "first"}]})
    second.on_response = lambda question, context: changed(McpResponseResult, {"content": [{"type": "text", "text": "second"}]})
    try:
        running = gateway(config({"a": SAMPLE, "b": SAMPLE}, guarded(policy.port, more=CALLS)), 2)
        raw, late = Raw(running), Raw(running)
        found: list[str] = []
        waiting = threading.Thread(target=lambda: found.append(raw.text("a_echo", message="x")))
        waiting.start()
        wait_for(lambda: policy.asked("tools/call"))
        running.write(config({"a": SAMPLE, "b": SAMPLE}, guarded(second.port, more=CALLS)))
        wait_for(lambda: running.metric("gw_config_generation") == 2)
        wait_for(lambda: late.text("b_echo", message="x") == "second", "a session goes on with the new server")
        release.set()
        waiting.join(60)
        assert found == ["first"], "a call keeps to what it began with"
        running.write(config({"a": SAMPLE, "b": SAMPLE}))
        wait_for(lambda: late.text("b_echo", message="x") == "Echo: x", "and without one")
    finally:
        second.stop()


def test_routes_may_check_one_backend_differently(gateway: Callable[..., Any], policy: Policy) -> None:
    policy.on_request = lambda question, context: refused(1, "no")
    text = f"""
gateways: {{default: {{port: {{port}}}}}}
backends:
- name: tools
  mcp: {{targets: [{{name: a, {SAMPLE}}}, {{name: b, {SAMPLE}}}]}}
routes:
- matches: [{{path: {{pathPrefix: /free/mcp}}}}]
  policies: {{mcpAuthorization: {{rules: ['mcp.tool.name == "echo"']}}}}
  backends: [{{backend: tools}}]
- matches: [{{path: {{pathPrefix: /mcp}}}}]
  policies: {{mcpGuardrails: {{processors: [{{kind: remote, host: "127.0.0.1:{policy.port}", {CALLS}}}]}}}}
  backends: [{{backend: tools}}]
"""
    running = gateway(text, 2)
    checked = Raw(running)
    assert checked.text("a_echo", message="x") == "error no"
    free = Raw(running)
    free.http.headers.pop("mcp-session-id")
    opened = free.http.post("/free/mcp", json={"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})  # fmt: skip
    fields = {"mcp-session-id": opened.headers["mcp-session-id"]}
    for tool, words in (("a_echo", "Echo: x"), ("a_add", "Unknown tool: a_add")):
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {"message": "x"}}}
        assert words in free.http.post("/free/mcp", json=body, headers=fields).text


def test_relayed_requests_are_checked_once(gateway: Callable[..., Any], policy: Policy) -> None:
    running = gateway(config({"a": SAMPLE}, guarded(policy.port, more=f"{CALLS}, metadata: {{path: request.path}}")), 2)
    raw = Raw(running)
    for number in range(12):
        with httpx.Client(base_url=raw.http.base_url, headers=raw.http.headers, timeout=60) as one:
            body = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "echo", "arguments": {"message": "x"}}}
            assert "Echo: x" in one.post("/mcp", json=body).text
    assert len(policy.asked("tools/call")) == 24
    for question in policy.asked("tools/call"):
        told = {one.key: one.value for one in getattr(question, "headers", ())}
        assert not [name for name in told if name.startswith("x-gw-")]
        if told:
            assert told[":authority"].decode() == running.url[7:]
        assert question.metadata_context.fields["path"].string_value == "/mcp"


def test_streamed_answers_and_questions_of_servers(gateway: Callable[..., Any], policy: Policy) -> None:
    """Progress and requests of the server pass at once; the result alone is checked."""
    policy.on_response = lambda question, context: changed(McpResponseResult, {"content": [{"type": "text", "text": "checked"}]})
    running = gateway(config({"a": SAMPLE, "b": asking("b")}, guarded(policy.port, more=CALLS)))

    async def sampled(_context: Any, _params: Any) -> types.CreateMessageResult:
        return types.CreateMessageResult(role="assistant", content=types.TextContent(type="text", text="hi"), model="m")

    async def run() -> None:
        steps: list[float] = []

        async def progress(done: float, _total: float | None, _message: str | None) -> None:
            steps.append(done)

        async with client(running, sampling_callback=sampled) as session:
            result = await session.call_tool("a_slow", {"seconds": 0.1}, progress_callback=progress)
            assert [one.text for one in result.content if isinstance(one, types.TextContent)] == ["checked"]
            assert steps == [1, 2, 3, 4, 5]
            result = await session.call_tool("b_ask", {})
            assert [one.text for one in result.content if isinstance(one, types.TextContent)] == ["checked"]
        [_, _, _, last] = policy.asked("tools/call")
        assert b"hi" in last.mcp_response

    asyncio.run(run())


@pytest.fixture
def example() -> Iterator[Callable[[], str]]:
    """The configuration of the example, its server started."""
    processes: list[subprocess.Popen[str]] = []

    def start() -> str:
        command = [sys.executable, str(EXAMPLE / "policy_server.py"), "--listen", "127.0.0.1:0"]
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        stdout = processes[-1].stdout
        assert stdout is not None
        port = stdout.readline().split()[1]
        text = (EXAMPLE / "gateway.yaml").read_text()
        text = text.replace("cmd: python", f"cmd: {sys.executable}").replace("port: 3000", "port: {port}")
        return text.replace("127.0.0.1:9000", f"127.0.0.1:{port}")

    yield start
    for process in processes:
        process.terminate()
        assert process.wait(40) == 0


def test_the_example_with_the_official_client(gateway: Callable[..., Any], example: Callable[[], str]) -> None:
    running = gateway(example(), 2)

    async def run() -> None:
        async with client(running) as session:
            assert [tool.name for tool in (await session.list_tools()).tools] == ["echo", "add"]
            result = await session.call_tool("add", {"a": 2, "b": 3})
            assert result.content[0].text == "42", "the policy sets b"  # type: ignore[union-attr]
            result = await session.call_tool("echo", {"message": "write to ada@example.org with sk-1234567890"})
            assert result.content[0].text == "Echo: write to [redacted] with [redacted]"  # type: ignore[union-attr]
            with pytest.raises(Exception, match="slow is not allowed") as caught:
                await session.call_tool("slow", {"seconds": 0})
            assert getattr(caught.value, "error", caught.value).code == -32001
            assert (await session.list_resources()).resources
            await session.read_resource("sample://readme")  # type: ignore[arg-type]

    asyncio.run(run())
    running.wait_metric('gw_guardrail_checks_total{phase="Response",action="Mask",guard="remote"}', 2)
    running.wait_metric('gw_guardrail_checks_total{phase="Request",action="Reject",guard="remote"}', 1)
    assert running.metric('gw_upstream_call_duration_seconds_count{kind="Policy",subtype="Guardrail"}') >= 6


def test_remote_targets_get_the_fields_of_the_example(gateway: Callable[..., Any], example: Callable[[], str]) -> None:
    with telling_server() as (port, seen):
        text = re.sub(r"stdio: .*", f'mcp: {{host: "http://127.0.0.1:{port}/mcp"}}', example())
        raw = Raw(gateway(text))
        assert raw.text("tell") == "told"
    [sent] = [one for one in seen if one["method"] == "tools/call"]
    assert ("x-policy", "checked") in [(name.lower(), value) for name, value in sent["fields"]]
