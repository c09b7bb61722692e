"""MCP sessions: whose they are, how many and how long, and what of them outlives a worker or the gateway."""

from __future__ import annotations

import concurrent.futures
import json
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.end_to_end.federation_rig import ACCEPT, INITIALIZE, SAMPLE, Raw, children, config, messages
from tests.end_to_end.mcp_sessions_rig import KEYS, PING, begun, parent, wait_for
from tests.end_to_end.processes import kill

pytestmark = pytest.mark.warm

KINDS = ("stdio", "remote", "remotes", "mixed")




def targets(kind: str, sample: Any) -> dict[str, str]:
    """One target or two, processes or remote servers."""
    if kind == "stdio":
        return {"a": SAMPLE}
    remote = f'mcp: {{host: "http://127.0.0.1:{sample("mcp_server", "--http", "127.0.0.1:0")}/mcp"}}'
    return {"remote": {"a": remote}, "remotes": {"a": remote, "b": remote}, "mixed": {"a": remote, "b": SAMPLE}}[kind]






@pytest.mark.parametrize("kind", KINDS)
def test_nobody_goes_on_with_the_session_of_somebody_else(kind: str, gateway: Callable[..., Any], sample: Any) -> None:
    running = gateway(config(targets(kind, sample), KEYS), 2)
    ada = begun(running, "ada")
    theft = {"authorization": "Bearer bob", "mcp-session-id": ada.headers["mcp-session-id"]}
    for _ in range(6):  # connections of their own: both workers
        with httpx.Client(base_url=running.url, headers={**ACCEPT, **theft}, timeout=60) as bob:
            answer = bob.post("/mcp", json=PING)
            assert (answer.status_code, answer.text) == (404, "mcp: session not found")
            assert bob.get("/mcp").status_code == 404
            assert bob.delete("/mcp").status_code in (200, 404)
        with httpx.Client(base_url=running.url, headers=ada.headers, timeout=60) as same:
            assert messages(same.post("/mcp", json=PING))[-1]["result"] == {}
    assert ada.delete("/mcp").status_code == 200
    assert ada.post("/mcp", json=PING).status_code == 404


def test_a_session_is_of_one_backend(gateway: Callable[..., Any], sample: Any, upstream: Any) -> None:
    asked: list[bytes] = []
    other = upstream(lambda connection: asked.append(connection.recv(65536)))
    own = sample("mcp_server", "--http", "127.0.0.1:0")
    routes = "".join(
        f"- matches: [{{path: {{pathPrefix: /{name}}}}}]\n  policies: {{urlRewrite: {{path: {{full: /mcp}}}}}}\n"
        f'  backends: [{{mcp: {{targets: [{{name: t, mcp: {{host: "http://127.0.0.1:{port}/mcp"}}}}]}}}}]\n'
        for name, port in (("a", own), ("b", other))
    )
    running = gateway("gateways:\n  default: {port: {port}}\nroutes:\n" + routes)
    with httpx.Client(base_url=running.url, headers=ACCEPT, timeout=60) as client:
        body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}
        client.headers["mcp-session-id"] = client.post("/a", json=body).headers["mcp-session-id"]
        assert client.post("/a", json=PING).status_code == 200
        assert client.post("/b", json=PING).status_code == 404
        assert client.get("/b").status_code == 404
    assert asked == []


@pytest.mark.parametrize("kind", ["stdio", "mixed"])
def test_there_is_a_cap_for_all_workers(kind: str, gateway: Callable[..., Any], sample: Any) -> None:
    running = gateway(config(targets(kind, sample)), 2, settings="mcp: {maxSessions: 3}")
    clients = [begun(running) for _ in range(3)]
    running.wait_metric("gw_mcp_sessions{", 3)
    body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}
    for _ in range(4):
        answer = httpx.post(f"{running.url}/mcp", json=body, headers=ACCEPT, timeout=60)
        assert (answer.status_code, answer.text) == (503, "mcp: too many sessions: 3 are open")
    assert all(client.post("/mcp", json=PING).status_code == 200 for client in clients)
    assert clients[0].delete("/mcp").status_code == 200
    begun(running)
    # A worker that dies takes its sessions with it, and their number.
    for pid in running.worker_pids():
        kill(pid)
    wait_for(lambda: running.log().count("worker restarted") == 2)
    running.wait_metric("gw_mcp_sessions{", 0)
    begun(running)


@pytest.mark.parametrize("kind", ["stdio", "mixed"])
def test_processes_have_a_cap_and_so_have_those_that_begin(
    kind: str, gateway: Callable[..., Any], sample: Any
) -> None:
    running = gateway(config(targets(kind, sample)), 2, settings="mcp: {maxProcesses: 3, maxUninitialized: 2}")
    body = {"jsonrpc": "2.0", "id": 5, "method": "initialize", "params": INITIALIZE}

    def refused(reason: str) -> None:
        for _ in range(4):
            answer = httpx.post(f"{running.url}/mcp", json=body, headers=ACCEPT, timeout=60)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
            error = {"code": -32603, "message": reason}
            assert answer.json() == {"jsonrpc": "2.0", "id": 5, "error": error}
        assert len(children(running, "mcp_server")) == len(clients)

    clients = [begun(running) for _ in range(2)]
    refused("too many sessions begin: 2 are not initialized")
    assert clients[0].post("/mcp", json=PING).status_code == 200
    clients.append(begun(running))
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert [client.post("/mcp", json=note).status_code for client in clients] == [202] * 3
    refused("too many processes: 3 sessions have one")
    assert clients[1].delete("/mcp").status_code == 200
    begun(running)
    assert clients[2].post("/mcp", json=PING).status_code == 200


@pytest.mark.parametrize("kind", ["stdio", "mixed"])
def test_who_does_not_come_back_after_initialize_keeps_no_process(
    kind: str, gateway: Callable[..., Any], sample: Any
) -> None:
    running = gateway(config(targets(kind, sample)), 2, settings="mcp: {initializeTimeout: 1s}")
    clients = [begun(running) for _ in range(3)]
    wait_for(lambda: not children(running, "mcp_server"))
    running.wait_log("session ended: not initialized")
    assert [client.post("/mcp", json=PING).status_code for client in clients] == [404] * 3
    wait_for(lambda: running.metric("gw_mcp_sessions{") == 0)


def test_a_full_table_of_remote_sessions_forgets_nobody(gateway: Callable[..., Any], sample: Any) -> None:
    running = gateway(config(targets("remotes", sample)), 1, settings="mcp: {maxSessions: 3}")
    clients = [begun(running) for _ in range(8)]
    running.wait_metric("gw_mcp_sessions{", 3)
    assert [client.post("/mcp", json=PING).status_code for client in clients] == [200] * 8
    running.wait_metric("gw_mcp_sessions{", 3)


def test_an_idle_session_ends_and_its_process_with_it(gateway: Callable[..., Any], sample: Any) -> None:
    running = gateway(config(targets("mixed", sample)), 1, settings="mcp: {sessionTtl: 3s}")
    client = begun(running)
    assert len(children(running, "mcp_server")) == 1
    # A call that takes longer than the idle time is use.
    slow = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "b_slow", "arguments": {"seconds": 4.5}}}
    assert "result" in messages(client.post("/mcp", json=slow))[-1]
    wait_for(lambda: not children(running, "mcp_server"))
    running.wait_log("session ended: idle")
    assert client.post("/mcp", json=PING).status_code == 404
    wait_for(lambda: running.metric("gw_mcp_sessions{") == 0)


@pytest.mark.parametrize("kind", ["remote", "remotes"])
def test_remote_sessions_outlive_idleness_reload_and_restart(kind: str, gateway: Callable[..., Any], sample: Any) -> None:
    text, environment = config(targets(kind, sample)), {"SESSION_KEY": "6b" * 32}
    running = gateway(text, 1, environment, "mcp: {sessionTtl: 1s}")
    client = begun(running)
    echo = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
        "name": "echo" if kind == "remote" else "b_echo", "arguments": {"message": "still here"}}}  # fmt: skip

    def goes_on() -> None:
        answer = client.post("/mcp", json=echo)
        assert answer.status_code == 200, answer.text
        assert messages(answer)[-1]["result"]["content"][0]["text"] == "Echo: still here"

    running.wait_log("session ended: idle")
    running.wait_metric("gw_mcp_sessions{", 0)
    goes_on()
    running.write(text.replace("mcp:\n", "mcp:\n  failureMode: failOpen\n", 1))
    running.wait_log("configuration reloaded")
    goes_on()
    running.stop()  # in good order: nothing tells the servers that a session is over
    client.base_url = httpx.URL(gateway(text, 2, environment).url)
    goes_on()


@pytest.mark.parametrize("kind", KINDS)
def test_an_ended_session_is_ended_at_all_workers(kind: str, gateway: Callable[..., Any], sample: Any) -> None:
    running = gateway(config(targets(kind, sample)), 2)
    for _ in range(4):
        headers = dict(begun(running).headers)
        for message in (PING, {**PING, "method": "tools/list"}) * 4:  # connections of their own: both workers
            assert httpx.post(f"{running.url}/mcp", json=message, headers=headers, timeout=60).status_code == 200
        assert httpx.delete(f"{running.url}/mcp", headers=headers, timeout=60).status_code == 200
        for _ in range(6):
            answer = httpx.post(f"{running.url}/mcp", json=PING, headers=headers, timeout=60)
            assert (answer.status_code, answer.text) == (404, "mcp: session not found")
    wait_for(lambda: running.metric("gw_mcp_sessions{") == 0)


@pytest.mark.parametrize("kind", ["remote", "remotes"])
def test_a_session_that_nobody_knows_any_more(kind: str, gateway: Callable[..., Any], sample: Any) -> None:
    """Server and gateway have been restarted: the client has to begin anew, and is told so."""
    text, environment = config(targets(kind, sample)), {"SESSION_KEY": "6b" * 32}
    client = begun(gateway(text, 1, environment))
    running = gateway(config(targets(kind, sample)), 1, environment)
    client.base_url = httpx.URL(running.url)
    call = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
        "name": "echo" if kind == "remote" else "b_echo", "arguments": {"message": "m"}}}  # fmt: skip
    for message in (call, {**call, "method": "tools/list", "params": {}}):
        assert client.post("/mcp", json=message).status_code == 404, message
    begun(running)


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_killed_in_a_call(kind: str, gateway: Callable[..., Any], sample: Any) -> None:
    """Whose connection the worker had sees it break, whose session it had is told. The next call works, or is told."""
    running = gateway(config(targets(kind, sample)), 2)
    local, prefix = kind in ("stdio", "mixed"), "" if kind in ("stdio", "remote") else "b_"
    headers = {**ACCEPT, "mcp-session-id": begun(running).headers["mcp-session-id"]}
    begun_calls = threading.Semaphore(0)

    def call(number: int) -> str:
        slow = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {
            "name": f"{prefix}slow", "arguments": {"seconds": 10}, "_meta": {"progressToken": number}}}  # fmt: skip
        try:
            with httpx.stream("POST", f"{running.url}/mcp", json=slow, headers=headers, timeout=60) as answer:
                begun_calls.release()
                assert answer.status_code == 200
                return answer.read().decode()
        except httpx.TransportError:
            return "broken"

    with concurrent.futures.ThreadPoolExecutor(18) as pool:
        calls = [pool.submit(call, number) for number in range(18)]
        for _ in calls:
            assert begun_calls.acquire(timeout=60)
        owner = parent(children(running, "mcp_server")[0]) if local else running.worker_pids()[0]
        kill(owner)
        answers = [one.result() for one in calls]
    ends = {number: json.loads(one.strip().rsplit("data: ", 1)[1]) for number, one in enumerate(answers) if one != "broken"}
    assert ends, "all connections at one of two workers"
    assert all(one["id"] == number for number, one in ends.items())
    if local:
        assert {one["error"]["message"] for one in ends.values()} == {"the session ended before its server answered"}
    else:
        assert all("result" in one for one in ends.values()), "the other worker's calls went on"
    running.wait_log("worker restarted")
    ping = httpx.post(f"{running.url}/mcp", json=PING, headers=headers, timeout=60)
    if local:
        assert (ping.status_code, ping.text) == (404, "mcp: session not found")
    else:
        assert messages(ping)[-1]["result"] == {}
    assert Raw(running).text(f"{prefix}echo", message="next") == "Echo: next"
