"""Several MCP servers behind one endpoint: the official client, raw messages, and targets that fail."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests import forked_rig
from tests.end_to_end.federation_rig import ACCEPT, INITIALIZE, SAMPLE, Raw, asking, children, client, config, messages
from tests.end_to_end.processes import children_of, command_line, kill
from tests.end_to_end.tracing import wait_for

pytestmark = pytest.mark.warm













@pytest.fixture
def pair(gateway: Callable[..., Any]) -> Any:
    return gateway(config({"a": asking("a"), "b.2": asking("b", "noprompts")}), 2)


def test_initialize_tells_of_all(pair: Any) -> None:
    raw = Raw(pair)
    [found] = messages(raw.opened)
    result = found["result"]
    assert result["protocolVersion"] == "2025-03-26", "the lowest of all"
    assert result["capabilities"] == {
        "tools": {"listChanged": True}, "prompts": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True}, "completions": {},
    }  # fmt: skip
    assert result["serverInfo"]["name"] == "headgate"
    assert result["instructions"].endswith("\n\n[a]\nI am a.\n\n[b.2]\nI am b.")


def test_tasks_lead_back_to_their_target(pair: Any) -> None:
    raw = Raw(pair)
    for target, name in (("a", "a"), ("b.2", "b")):
        begun = raw.ask("tools/call", name=f"{target}_log", arguments={}, task={"ttl": 60000})["result"]
        task = begun["task"]["taskId"]
        assert task == f"{target}+t+{name}"
        assert raw.ask("tasks/get", taskId=task)["result"] == {"taskId": task, "status": "completed"}
        assert raw.ask("tasks/result", taskId=task)["result"]["content"][0]["text"] == f"{name} did t+{name}"
        assert raw.ask("tasks/cancel", taskId=task)["result"] == {"taskId": task, "status": "cancelled"}
    for method in ("tasks/get", "tasks/result", "tasks/cancel"):
        assert raw.ask(method, taskId="c+t")["error"]["message"] == "Unknown task: c+t"


def test_lists_are_whole_and_named_after_their_target(pair: Any) -> None:
    raw = Raw(pair)
    tools = ["ask", "roots", "exit", "log", "change", "numbers", "later"]
    wanted = [f"a_{name}" for name in (*tools, "only-a")] + [f"b.2_{name}" for name in (*tools, "only-b")]
    assert raw.names("tools/list", "tools") == wanted, "all pages of both"
    assert raw.names("prompts/list", "prompts") == ["a_hello"], "a target without prompts is not asked"
    assert raw.names("resources/list", "resources", "uri") == [
        "a+note://a/1", "ui://a+app/1", "b.2+note://b/1", "ui://b.2+app/1",
    ]  # fmt: skip
    templates = raw.names("resources/templates/list", "resourceTemplates", "uriTemplate")
    assert templates == ["a+note://{id}", "b.2+note://{id}"]
    assert raw.ask("tools/list", cursor="x")["error"]["code"] == -32602


def test_requests_reach_their_target(pair: Any) -> None:
    raw = Raw(pair)
    assert raw.text("a_only-a") == "a: only-a"
    assert raw.text("b.2_only-b") == "b: only-b"
    got = raw.ask("prompts/get", name="a_hello")["result"]["messages"][0]["content"]["text"]
    assert got == "a hello"
    for uri, plain in (("b.2+note://b/1", "note://b/1"), ("ui://b.2+app/1", "ui://app/1")):
        [content] = raw.ask("resources/read", uri=uri)["result"]["contents"]
        assert content == {"uri": uri, "text": f"b reads {plain}"}
    ref = {"type": "ref/prompt", "name": "a_hello"}
    assert raw.ask("completion/complete", ref=ref, argument={"name": "x", "value": ""})["result"]["completion"] == {
        "values": ['a {"name": "hello", "type": "ref/prompt"}']
    }
    ref = {"type": "ref/resource", "uri": "b.2+note://{id}"}
    assert "b " in raw.ask("completion/complete", ref=ref)["result"]["completion"]["values"][0]
    assert raw.ask("ping")["result"] == {}
    # Nothing of the arguments is lost on the way.
    sent = '{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"a_numbers","arguments":{"big":12345678901234567890123,"f":1.10,"e":1e3,"u":"\\u00e9é"}}}'
    answer = raw.http.post("/mcp", content=sent.encode())
    assert json.loads(messages(answer)[-1]["result"]["content"][0]["text"]) == {
        "big": 12345678901234567890123, "f": 1.1, "e": 1000.0, "u": "éé",
    }  # fmt: skip


UNKNOWN: list[tuple[str, dict[str, Any], str]] = [
    ("tools/call", {"name": "nobody_x"}, "Unknown tool: nobody_x"),
    ("tools/call", {"name": "echo"}, "Unknown tool: echo"),
    ("tools/call", {}, "Unknown tool: "),
    ("prompts/get", {"name": "zz_x"}, "Unknown prompt: zz_x"),
    ("resources/read", {"uri": "note://a/1"}, "Unknown resource: note://a/1"),
    ("resources/read", {"uri": "a+ui://x"}, "Unknown resource: a+ui://x"),
    ("resources/read", {"uri": "ui://app/a+1"}, "Unknown resource: ui://app/a+1"),
    ("tasks/get", {"taskId": "x"}, "Unknown task: x"),
    ("completion/complete", {"ref": {}}, "ref has neither"),
]


def test_what_nobody_has_is_unknown(pair: Any) -> None:
    raw = Raw(pair)
    for method, params, message in UNKNOWN:
        answer = raw.post({"id": 1, "method": method, "params": params})
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (400, -32602), (method, params)
        assert message in error["message"], (method, params)
    strange = raw.post({"id": 1, "method": "no/such"})
    assert (strange.status_code, strange.json()["error"]) == (400, {"code": -32601, "message": "unsupported method: no/such"})
    assert raw.post({"id": "gw_zz_n_1", "result": {}}).status_code == 400
    assert raw.post({"id": 5, "result": {}}).status_code == 400


@pytest.mark.http1(reason="httpx blocks a request while another thread reads a stream of the same connection")
def test_servers_ask_the_client(pair: Any) -> None:
    async def run() -> list[str]:
        async def sample(_context: Any, _params: Any) -> Any:
            from mcp import types

            return types.CreateMessageResult(
                role="assistant", content=types.TextContent(type="text", text="fine"), model="m"
            )

        async def roots(_context: Any) -> Any:
            from mcp import types

            return types.ListRootsResult(roots=[types.Root(uri="file:///x")])

        async with client(pair, sampling_callback=sample, list_roots_callback=roots) as session:
            calls = [
                session.call_tool("a_ask", {}),
                session.call_tool("b.2_ask", {"number": True}),
                session.call_tool("b.2_roots", {}),
            ]
            return [found.content[0].text for found in await asyncio.gather(*calls)]

    first, second, third = asyncio.run(run())
    assert first.startswith("a heard")
    assert '"fine"' in first
    assert second.startswith("b heard")
    assert '"fine"' in second
    assert "file:///x" in third


def test_notifications_come_with_their_call_or_on_the_stream(pair: Any) -> None:
    raw = Raw(pair)
    answer = raw.post({"id": 9, "method": "tools/call", "params": {"name": "a_log", "arguments": {}}})
    assert [one.get("method") for one in messages(answer)] == ["notifications/message", None]
    raw.ask("resources/subscribe", uri="b.2+note://b/1")
    answer = raw.post({"id": 9, "method": "tools/call", "params": {"name": "b.2_change", "arguments": {}}})
    updated, changed, _ = messages(answer)
    assert updated["params"] == {"uri": "b.2+note://b/1"}
    assert changed["method"] == "notifications/tools/list_changed"


def test_the_event_stream_brings_what_all_of_them_say(gateway: Callable[..., Any]) -> None:
    running = gateway(config({"a": asking("a"), "b": asking("b")}), 2)
    raw = Raw(running)
    for name in ("a", "b"):
        raw.ask("resources/subscribe", uri=f"{name}+note://{name}/1")
    seen: list[str] = []
    with raw.http.stream("GET", "/mcp", headers={"accept": "text/event-stream"}) as stream:
        assert stream.status_code == 200
        for name in ("a", "b"):
            raw.text(f"{name}_later")
        for line in stream.iter_lines():
            if "resources/updated" in line:
                seen.append(json.loads(line[6:])["params"]["uri"])
            if len(seen) == 2:
                break
    assert sorted(seen) == ["a+note://a/1", "b+note://b/1"]


def test_names_without_targets(gateway: Callable[..., Any]) -> None:
    running = gateway(config({"a": asking("a"), "b": asking("b")}, "  prefixMode: never\n"))
    raw = Raw(running)
    assert raw.names("tools/list", "tools") == ["only-a", "only-b"], "what both have nobody can call"
    assert raw.text("only-b") == "b: only-b"
    answer = raw.post({"id": 1, "method": "tools/call", "params": {"name": "log", "arguments": {}}}).json()
    assert answer["error"]["message"] == "log is served by multiple targets"
    assert raw.post({"id": 1, "method": "tools/call", "params": {"name": "x"}}).json()["error"]["code"] == -32602
    assert raw.names("resources/list", "resources", "uri")[0] == "a+note://a/1", "URIs always carry their target"


def test_one_target_with_its_name(gateway: Callable[..., Any]) -> None:
    raw = Raw(gateway(config({"a": asking("a")}, "  prefixMode: always\n")))
    assert raw.names("tools/list", "tools")[0] == "a_ask"
    assert raw.text("a_only-a") == "a: only-a"


def test_a_target_that_fails_at_the_start(gateway: Callable[..., Any]) -> None:
    dead = {"a": asking("a"), "b": 'mcp: {host: "http://127.0.0.1:1/mcp"}', "c": asking("c", "badinit")}
    closed = Raw(gateway(config(dead)))
    assert closed.opened.status_code == 500
    assert "failed to start session: b: upstream call failed" in closed.opened.json()["error"]["message"]
    refused = Raw(gateway(config({"a": asking("a"), "c": asking("c", "badinit")})))
    assert refused.opened.json()["error"] == {"code": -32000, "message": "c: not today"}
    running = gateway(config(dead, "  failureMode: failOpen\n"))
    raw = Raw(running)
    assert raw.names("tools/list", "tools") == [f"a_{name}" for name in
                                                ("ask", "roots", "exit", "log", "change", "numbers", "later", "only-a")]  # fmt: skip
    assert raw.text("b_x") == "error Unknown tool: b_x"
    nobody = {name: target for name, target in dead.items() if name != "a"}
    refused = Raw(gateway(config(nobody, "  failureMode: failOpen\n"))).opened
    assert "mcp-session-id" not in refused.headers
    assert "error" in refused.json()




def test_a_server_that_ends_is_started_again_unseen(pair: Any) -> None:
    raw = Raw(pair)
    assert raw.text("a_only-a") == "a: only-a"
    time.sleep(1.1)
    first = raw.text("a_exit")
    assert "ended before it answered" in first
    assert raw.text("b.2_only-b") == "b: only-b", "the other one goes on"
    assert raw.text("a_only-a") == "a: only-a"
    pair.wait_log("server is restarted")
    # Not in a loop: one that ends within its first second is not started again before that is over.
    wait_for(lambda: "ended before" in raw.text("a_exit") and "not started again yet" in raw.text("a_only-a"))


def test_nothing_is_left_behind(pair: Any) -> None:
    raw = Raw(pair)
    assert raw.opened.status_code == 200, raw.opened.text
    assert len(children(pair, "asking_server")) == 2
    assert raw.http.delete("/mcp").status_code == 200
    wait_for(lambda: not children(pair, "asking_server"))
    assert raw.post({"id": 1, "method": "ping"}).status_code == 404
    for _ in range(3):
        Raw(pair)
    started = children(pair, "asking_server")
    assert len(started) == 6
    pair.stop()
    # Not by name: tests of other files run such servers at the same time.
    wait_for(lambda: not [pid for pid in started if "asking_server" in command_line(pid)])


@pytest.mark.http1(reason="httpx does not open another connection when one has ended")
def test_a_worker_that_dies_ends_its_sessions_only(pair: Any) -> None:
    raws = [Raw(pair)]
    while not all(children_of(pid) for pid in pair.worker_pids()):      # the kernel chooses the worker
        assert len(raws) < 60
        raws.append(Raw(pair))
    victim = pair.worker_pids()[0]
    kill(victim)
    pair.wait_log("worker restarted")
    answers = [raw.post({"id": 1, "method": "ping"}).status_code for raw in raws]
    assert set(answers) <= {200, 404}
    assert 200 in answers


# -- remote targets ----------------------------------------------------------------------------------------------------------
def test_sessions_of_remote_targets_outlive_workers_and_restarts(gateway: Callable[..., Any], sample: Any) -> None:
    ports = [sample("mcp_server", "--http", "127.0.0.1:0"), sample("mcp_server", "--http", "127.0.0.1:0", "--json")]
    text = config({name: f'mcp: {{host: "http://127.0.0.1:{port}/mcp"}}' for name, port in zip("ab", ports, strict=True)})
    environment = {"SESSION_KEY": "6b" * 32}
    running = gateway(text, 2, environment)
    raw = Raw(running)
    for number in range(6):         # new connections: both workers
        with httpx.Client(base_url=running.url, headers=raw.http.headers, timeout=60) as other:
            body = {"jsonrpc": "2.0", "id": number, "method": "tools/call",
                    "params": {"name": f"{'ab'[number % 2]}_echo", "arguments": {"message": "m"}}}  # fmt: skip
            assert messages(other.post("/mcp", json=body))[-1]["result"]["content"][0]["text"] == "Echo: m"
    for pid in running.worker_pids():
        kill(pid)
    running.wait_log("worker restarted")
    deadline = time.monotonic() + 40
    while True:
        try:
            assert raw.text("a_echo", message="again") == "Echo: again"
            break
        except httpx.TransportError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    other = gateway(text, 1, environment)
    raw.http.base_url = httpx.URL(other.url)
    assert raw.text("b_add", a=1, b=2) == "3"
    assert raw.http.delete("/mcp").status_code == 200
    assert raw.post({"id": 1, "method": "ping"}).status_code == 404, "an ended session does not come back"
    with httpx.Client(base_url=other.url, headers=ACCEPT, timeout=60) as stranger:
        for bad in ("x", raw.session[:-3] + "AAA", "A" * 200):
            answer = stranger.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers={"mcp-session-id": bad})
            assert answer.status_code == 404, bad


def listens(port: int) -> bool:
    """Whether somebody does there."""
    with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), 60):
        return True
    return False


def test_a_server_that_forgot_its_sessions_gets_a_new_one_unseen(gateway: Callable[..., Any], tmp_path: Path) -> None:
    from tests.end_to_end.conftest import free_port

    port = free_port()
    command = [sys.executable, "-m", "headgate.sample.mcp_server", "--http", f"127.0.0.1:{port}"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: listens(port))
        running = gateway(config({"far": f'mcp: {{host: "http://127.0.0.1:{port}/mcp"}}', "near": SAMPLE}))
        raw = Raw(running)
        assert raw.text("far_echo", message="1") == "Echo: 1"
        server.kill()
        server.wait()
        assert "upstream call failed" in raw.text("far_echo", message="2")
        assert raw.text("near_echo", message="3") == "Echo: 3"
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        wait_for(lambda: listens(port))
        assert raw.text("far_echo", message="4") == "Echo: 4"
        running.wait_log("session is reopened")
    finally:
        server.kill()
        server.wait()


def test_credentials_of_the_client_reach_no_target(gateway: Callable[..., Any], upstream: Any) -> None:
    seen: list[bytes] = []

    def script(connection: Any) -> None:
        while data := connection.recv(65536):
            seen.append(data)
            body = b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{}}}'
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: up-1\r\n"
                               b"content-length: %d\r\n\r\n" % len(body) + body)  # fmt: skip

    port = upstream(script)
    targets = {"a": f'mcp: {{host: "http://127.0.0.1:{port}/mcp"}}\n    policies: {{backendAuth: {{key: mine}}}}', "b": SAMPLE}
    running = gateway(config(targets))
    secret = {"authorization": "Bearer CANARY", "cookie": "s=CANARY", "x-api-key": "CANARY", "x-other": "kept"}
    body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}
    answer = httpx.post(f"{running.url}/mcp", json=body, headers={**ACCEPT, **secret}, timeout=60)
    assert answer.status_code == 200
    sent = b"".join(seen)
    assert b"CANARY" not in sent
    assert b"x-other: kept" in sent
    assert b"authorization: Bearer mine" in sent


def test_two_targets_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("mcp:\n  targets:\n  - {name: a, stdio: {cmd: x}}\n  - {name: a, stdio: {cmd: y}}\n  - {name: a_b, stdio: {cmd: y}}\n")
    done = forked_rig.run("headgate.cli.main", "-f", str(path), "--validate-only")
    assert done.returncode == 1
    assert "target 'a' is defined twice" in done.stdout + done.stderr
    assert "a target name has" in done.stdout + done.stderr
