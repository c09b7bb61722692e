"""Revision 2026-07-28 and what is told and kept of clients: log fields, series, owners, and sessions that are the gateway's."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.end_to_end.federation_rig import ACCEPT, INITIALIZE, children, messages
from tests.end_to_end.mcp_sessions_rig import KEYS, PING, begun, parent, wait_for
from tests.end_to_end.mcp_telemetry_rig import lines
from tests.end_to_end.modern_rig import SAMPLE, Modern, Started, config, process, remote, server
from tests.end_to_end.processes import kill

pytestmark = pytest.mark.warm

__all__ = ["server"]
KINDS = ("remote", "process", "mixed")
LIST = {**PING, "method": "tools/list"}


def targets(kind: str, server: Started) -> dict[str, str]:
    """A server without sessions, alone or beside one that has some."""
    if kind == "process":
        return {"one": process("--only", "new")}
    one = {"one": remote(server("--only", "new"))}
    return one if kind == "remote" else {**one, "two": remote(server("--only", "old"))}


@pytest.mark.parametrize("kind", ["old", "new", "process", "several", "rules"])
def test_fields_and_series_without_sessions(kind: str, gateway: Callable[..., Any], server: Started) -> None:
    own = process() if kind == "process" else remote(server(*(["--only", kind] if kind in ("old", "new") else [])))
    more = "  policies: {mcpAuthorization: {rules: ['true']}}\n" if kind == "rules" else ""
    several = kind == "several"
    text = config(more, one=own, **({"two": SAMPLE} if several else {}))
    running = gateway(text, 1, settings="logging: {format: json}")
    client, tool = Modern(running), "one_test_simple_text" if several else "test_simple_text"
    assert client.text(tool).startswith("This is a simple text")
    assert "error" in client.ask("tools/call", name="one_nope" if several else "nope", arguments={})
    client.ask("tools/list")
    calls, [listed] = lines(running, "tools/call", 2), lines(running, "tools/list")
    [called] = [line for line in calls if line["gen_ai.tool.name"] == "test_simple_text"]
    [failed] = [line for line in calls if line["gen_ai.tool.name"] == "nope"]
    common = {"protocol": "mcp", "mcp.target": "one", "mcp.resource.type": "tool"}
    assert called | common == called
    assert failed | common == failed
    assert "mcp.error.code" in failed
    assert "mcp.error.code" not in called
    assert ("mcp.target" in listed) is not several
    assert all("mcp.session.id" not in line for line in (*calls, listed))
    assert all(line.count('"mcp.target"') <= 1 for line in running.log().splitlines())
    series = 'gw_mcp_requests_total{method="tools/call",resource_type="tool",server="one",resource='
    running.wait_metric(f'{series}"test_simple_text"', 1)
    running.wait_metric(f'{series}"unknown"', 1)
    running.wait_metric('gw_mcp_requests_total{method="tools/list"', 1)
    running.wait_metric("gw_mcp_sessions{", 0)      # a client of this revision has none


def test_a_stateless_backend_tells_as_much(gateway: Callable[..., Any], server: Started) -> None:
    text = config("  statefulMode: stateless\n", one=remote(server("--only", "old")), two=SAMPLE)
    running = gateway(text, 1, settings="logging: {format: json}")
    call = {**PING, "method": "tools/call", "params": {"name": "two_echo", "arguments": {"message": "hi"}}}
    assert "result" in messages(httpx.post(f"{running.url}/mcp", json=call, headers=ACCEPT, timeout=30))[-1]
    [line] = lines(running, "tools/call")
    assert (line["mcp.target"], line["gen_ai.tool.name"]) == ("two", "echo")
    running.wait_metric('gw_mcp_requests_total{method="tools/call",resource_type="tool",server="two",resource="echo"', 1)
    running.wait_metric("gw_mcp_sessions{", 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_bridged_session_is_its_owners(kind: str, gateway: Callable[..., Any], server: Started) -> None:
    running = gateway(config(KEYS, **targets(kind, server)), 2, settings="logging: {format: json}")
    ada = begun(running, "ada")
    session = ada.headers["mcp-session-id"]
    running.wait_metric("gw_mcp_sessions{", 1)
    assert lines(running, "initialize")[0]["mcp.session.id"] == session[:16]
    [opened] = [line for line in running.log().splitlines() if '"initialize"' in line]
    assert opened.count('"mcp.session.id"') == 1, "also where a process was tried in vain"
    for _ in range(6):  # connections of their own: both workers
        theft = {**ACCEPT, "authorization": "Bearer bob", "mcp-session-id": session}
        with httpx.Client(base_url=running.url, headers=theft, timeout=60) as bob:
            answer = bob.post("/mcp", json=LIST)
            assert (answer.status_code, answer.text) == (404, "mcp: session not found")
            assert bob.get("/mcp").status_code == 404
            assert bob.delete("/mcp").status_code in (200, 404)
        with httpx.Client(base_url=running.url, headers=ada.headers, timeout=60) as same:
            assert "result" in messages(same.post("/mcp", json=LIST))[-1]
    assert ada.delete("/mcp").status_code == 200
    wait_for(lambda: running.metric("gw_mcp_sessions{") == 0)
    for _ in range(6):
        assert httpx.post(f"{running.url}/mcp", json=LIST, headers=ada.headers, timeout=60).status_code == 404
    running.wait_metric('gw_mcp_requests_total{method="tools/list"', 18)      # each is counted once


@pytest.mark.parametrize("kind", KINDS)
def test_bridged_sessions_are_kept_and_have_a_cap(kind: str, gateway: Callable[..., Any], server: Started) -> None:
    running = gateway(config("", **targets(kind, server)), 2, settings="mcp: {maxSessions: 3}")
    clients = [begun(running) for _ in range(3)]
    running.wait_metric("gw_mcp_sessions{", 3)
    body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}
    for _ in range(6):  # connections of their own: both workers
        answer = httpx.post(f"{running.url}/mcp", json=body, headers=ACCEPT, timeout=60)
        assert answer.status_code == 503
        assert "too many sessions: 3 are" in answer.text
    # Nothing could bring one of them back, so none is let go of for another.
    assert [client.post("/mcp", json=LIST).status_code for client in clients] == [200] * 3
    clients[0].delete("/mcp")
    begun(running)
    # A worker that dies takes its sessions with it, and their number.
    for pid in running.worker_pids():
        kill(pid)
    wait_for(lambda: running.log().count("worker restarted") == 2)
    for _ in range(3):
        begun(running)
    assert httpx.post(f"{running.url}/mcp", json=body, headers=ACCEPT, timeout=60).status_code == 503


@pytest.mark.parametrize("kind", KINDS)
def test_an_idle_bridged_session_ends(kind: str, gateway: Callable[..., Any], server: Started) -> None:
    running = gateway(config("", **targets(kind, server)), 1, settings="mcp: {sessionTtl: 1s}")
    client = begun(running)
    assert client.post("/mcp", json=LIST).status_code == 200
    wait_for(lambda: running.metric("gw_mcp_sessions{") == 0)
    assert client.post("/mcp", json=LIST).status_code == 404


@pytest.mark.parametrize("kind", KINDS)
def test_a_bridged_session_after_its_worker_was_killed(kind: str, gateway: Callable[..., Any], server: Started) -> None:
    """With remote targets it goes on as if nothing had been; a process ends with its worker, and the session with it."""
    running = gateway(config(KEYS, **targets(kind, server)), 2, settings="logging: {format: json}")
    clients = [begun(running, "ada") for _ in range(6)]  # of both workers
    while kind == "process" and len({parent(pid) for pid in children(running, "tests.peers.conformant")}) < 2:
        assert len(clients) < 60        # the kernel chooses the worker
        clients.append(begun(running, "ada"))
    assert len({pid for pid in running.worker_pids()}) == 2
    killed = running.worker_pids()[0] if kind != "process" else parent(children(running, "tests.peers.conformant")[0])
    kill(killed)
    statuses = []
    for client in clients:
        # At once: the other worker waits for the successor.
        for _ in range(2):
            with httpx.Client(base_url=running.url, headers=client.headers, timeout=60) as same:
                statuses.append(attempt(same))
    if kind == "process":
        running.wait_log("worker restarted")
        assert set(statuses) == {200, 404}
        begun(running, "ada")
        return
    assert set(statuses) == {200}
    running.wait_log("worker restarted")
    # It is still whose it was, and ends where it is ended.
    theft = {**clients[0].headers, "authorization": "Bearer bob"}
    for client in clients:
        assert httpx.post(f"{running.url}/mcp", json=LIST, headers={**client.headers, **theft}, timeout=60).status_code == 404
    client = clients[0]
    assert httpx.delete(f"{running.url}/mcp", headers=client.headers, timeout=60).status_code == 200
    for _ in range(4):
        assert httpx.post(f"{running.url}/mcp", json=LIST, headers=client.headers, timeout=60).status_code == 404


def attempt(client: httpx.Client) -> int:
    """The status of a request; a listening socket that just lost its worker may break one connection."""
    for _ in range(20):
        try:
            answer = client.post("/mcp", json=LIST)
        except httpx.TransportError:
            time.sleep(0.1)
            continue
        assert answer.status_code != 200 or "result" in messages(answer)[-1]
        return answer.status_code
    raise AssertionError("no connection")


@pytest.mark.parametrize("kind", ["remote", "mixed"])
def test_a_bridged_session_outlasts_the_gateway(kind: str, gateway: Callable[..., Any], server: Started) -> None:
    text, environment = config("", **targets(kind, server)), {"SESSION_KEY": "6b" * 32}
    running = gateway(text, 2, environment)
    client = begun(running)
    assert client.post("/mcp", json=LIST).status_code == 200
    running.stop()
    client.base_url = httpx.URL(gateway(text, 2, environment).url)
    answer = client.post("/mcp", json=LIST)
    assert answer.status_code == 200
    assert "result" in messages(answer)[-1]
    # What the client said of itself in the beginning still goes with its requests: it has sampling, and nothing else.
    start = "one_" if kind == "mixed" else ""

    def call(name: str) -> dict[str, Any]:
        body = {**PING, "method": "tools/call", "params": {"name": start + name, "arguments": {}}}
        return messages(client.post("/mcp", json=body))[-1]

    assert call("test_missing_capability")["result"]["content"][0]["text"] == "The client has sampling"
    error = call("test_input_required_result_elicitation")["error"]
    assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": {"elicitation": {}}})
