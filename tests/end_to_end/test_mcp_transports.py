"""Transports and sessions, clause by clause of the checklist (ci/mcp-checklist.md)."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from mcp import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from tests.end_to_end.federation_rig import ACCEPT, INITIALIZE, SAMPLE, Raw, children, config, messages
from tests.end_to_end.mcp_sessions_rig import wait_for
from tests.end_to_end.mcp_stand_in import NEW, Fault, StandIn, tool
from tests.end_to_end.processes import kill
from tests.end_to_end.recorder import Recorder
from tests.end_to_end.sse_targets_rig import peer

pytestmark = pytest.mark.warm

__all__ = ["peer"]
DOCUMENT = {"openapi": "3.0.0", "paths": {"/call": {"get": {"operationId": "call"}}}}


@pytest.fixture(scope="module")
def stand_in() -> Iterator[StandIn]:
    found = StandIn()
    yield found
    found.stop()


def post(running: Any, message: dict[str, Any], path: str = "/mcp", **fields: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in fields.items()}
    return httpx.post(f"{running.url}{path}", json={"jsonrpc": "2.0", **message}, headers={**ACCEPT, **named}, timeout=60)


def opening(**more: Any) -> dict[str, Any]:
    return {"id": 0, "method": "initialize", "params": {**INITIALIZE, **more}}


# -- clients and targets of both transports --------------------------------------------------------------------------------
def test_both_transports_of_clients_reach_both_of_targets(
    gateway: Callable[..., Any], peer: Callable[..., Any], sample: Any
) -> None:
    remotes = {
        "http": f'mcp: {{host: "http://127.0.0.1:{sample("mcp_server", "--http", "127.0.0.1:0")}/mcp"}}',
        "sse": f'sse: {{host: "127.0.0.1:{peer("sse", "old")[1]}"}}',
    }
    routes = "".join(
        f"- matches: [{{path: {{pathPrefix: /{name}}}}}]\n  policies: {{urlRewrite: {{path: {{prefix: /}}}}}}\n"
        f"  backends: [{{mcp: {{targets: [{{name: t, {target}}}]}}}}]\n"
        for name, target in remotes.items()
    )
    running = gateway("gateways:\n  default: {port: {port}}\nroutes:\n" + routes)
    arguments = {"http": {"message": '{"a": 1}'}, "sse": {"text": '{"a": 1}'}}

    async def use(session: ClientSession, name: str) -> None:
        await session.initialize()
        assert "echo" in [one.name for one in (await session.list_tools()).tools]
        found = await session.call_tool("echo", arguments[name])
        assert json.loads(found.content[0].text.partition(": ")[2]) == {"a": 1}  # type: ignore[union-attr]

    async def run() -> None:
        for name in remotes:
            async with (
                streamable_http_client(f"{running.url}/{name}/mcp") as (read, write, *_),
                ClientSession(read, write) as session,
            ):
                await use(session, name)
            async with sse_client(f"{running.url}/{name}/sse") as (read, write), ClientSession(read, write) as session:
                await use(session, name)

    asyncio.run(run())


@pytest.mark.parametrize("kind", ["sessions", "none", "new"])
def test_a_backend_without_sessions_serves_the_official_client(
    gateway: Callable[..., Any], stand_in: StandIn, kind: str
) -> None:
    server = stand_in.add(
        f"s-{kind}", sessions=kind == "sessions", **({"revisions": (NEW,)} if kind == "new" else {})
    )
    running = gateway(config({"t": stand_in.target(server)}, "  statefulMode: stateless\n"))

    async def use() -> None:
        async with (
            streamable_http_client(f"{running.url}/mcp") as (read, write, *_),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            assert [one.name for one in (await session.list_tools()).tools] == ["call"]
            found = await session.call_tool("call", {})
            assert found.content[0].text == f"s-{kind} called"  # type: ignore[union-attr]

    asyncio.run(use())
    # What has a session at the server is ended there, and nothing else.
    wait_for(lambda: server.methods().count("DELETE") == (server.methods().count("initialize") if kind == "sessions" else 0))


# -- sessions --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["stdio", "remote", "several"])
def test_nothing_but_initialize_comes_without_a_session(
    gateway: Callable[..., Any], stand_in: StandIn, kind: str
) -> None:
    server = stand_in.add(f"no-{kind}")
    targets = {"stdio": {"a": SAMPLE}, "remote": {"a": stand_in.target(server)}}
    running = gateway(config(targets.get(kind, {"a": stand_in.target(server), "b": SAMPLE})))
    for message in (
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/list"},
        {"id": 1, "result": {}},
        {"id": 1, "error": {"code": -1, "message": "no"}},
    ):
        answer = post(running, message)
        assert (answer.status_code, "mcp-session-id" in answer.headers) == (400, False), (message, answer.text)
    assert httpx.get(f"{running.url}/mcp", headers={"accept": "text/event-stream"}, timeout=60).status_code == 400
    assert httpx.delete(f"{running.url}/mcp", timeout=60).status_code == 400
    assert server.seen == []


@pytest.mark.parametrize("kind", ["stdio", "remote", "several"])
def test_events_have_their_name(gateway: Callable[..., Any], stand_in: StandIn, kind: str) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}}
    server = stand_in.add(f"named-{kind}", stream=True, before={"tools/call": [note]})
    one = SAMPLE if kind == "stdio" else stand_in.target(server)
    raw = Raw(gateway(config({"a": one, **({"b": SAMPLE} if kind == "several" else {})})))
    name = {"stdio": "echo", "remote": "call", "several": "a_call"}[kind]
    call = {"id": 1, "method": "tools/call", "params": {"name": name, "arguments": {"message": "m"}}}
    for answer in (raw.opened, raw.post({"id": 2, "method": "tools/list"}), raw.post(call)):
        blocks = [block for block in answer.text.split("\n\n") if "data: " in block]
        assert blocks
        assert all("event: message\n" in f"{block}\n" for block in blocks), answer.text
        assert answer.headers["cache-control"] == "no-cache"


def test_without_sessions_only_who_is_asked_is_opened(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    one, two = (
        stand_in.add(name, results={"prompts/get": {"messages": []}}, capabilities={"tools": {}, "prompts": {}})
        for name in ("o-one", "o-two")
    )
    two.sessions = False
    running = gateway(config({"one": stand_in.target(one), "two": stand_in.target(two)}, "  statefulMode: stateless\n"))
    for method, params in (("tools/call", {"name": "one_call", "arguments": {}}), ("prompts/get", {"name": "one_p"})):
        assert "result" in messages(post(running, {"id": 1, "method": method, "params": params}))[-1]
    wait_for(lambda: one.methods().count("DELETE") == 2)
    assert one.methods().count("initialize") == 2
    assert two.seen == []
    # A server that gave no session is not told of its end.
    assert "result" in messages(post(running, {"id": 1, "method": "tools/list"}))[-1]
    wait_for(lambda: one.methods().count("DELETE") == 3)
    assert (two.methods().count("initialize"), two.methods().count("DELETE")) == (1, 0)
    assert post(running, {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}).status_code == 202


def test_which_targets_outlive_a_restart(gateway: Callable[..., Any], peer: Callable[..., Any], stand_in: StandIn) -> None:
    """The id says all there is to know of remote servers and OpenAPI targets; processes end."""
    recorder, environment = Recorder(), {"SESSION_KEY": "6b" * 32}
    far = {
        "api": f'openapi: {{host: "http://127.0.0.1:{recorder.port}", schema: {json.dumps({**DOCUMENT, "servers": [{"url": "/r/x"}]})}}}',
        "new": stand_in.target(stand_in.add("outlives")),
        "bare": stand_in.target(stand_in.add("outlives-bare", sessions=False)),
    }
    old = f'sse: {{host: "127.0.0.1:{peer("sse", "old")[1]}"}}'
    for targets, goes_on in ((far, True), ({**far, "process": SAMPLE}, False), ({**far, "old": old}, True)):
        raw = Raw(gateway(config(targets), 1, environment))
        names = raw.names("tools/list", "tools")
        assert {"api_call", "new_call"} <= set(names)
        other = gateway(config(targets), 1, environment)
        raw.http.base_url = httpx.URL(other.url)
        if not goes_on:
            assert raw.post({"id": 1, "method": "tools/list"}).status_code == 404
            continue
        assert raw.names("tools/list", "tools") == names
        assert raw.text("new_call") == "outlives called"
        assert raw.text("bare_call") == "outlives-bare called"
        assert "called" in raw.text("api_call")
    recorder.stop()


def test_a_session_finds_its_targets_by_their_names(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    environment = {"SESSION_KEY": "6b" * 32}
    far = {name: stand_in.target(stand_in.add(f"by-{name}")) for name in ("a", "b", "c")}
    two = {"a": far["a"], "b": far["b"]}
    raw = Raw(gateway(config(two), 1, environment))
    reordered = gateway(config({"b": far["b"], "a": far["a"]}), 1, environment)
    raw.http.base_url = httpx.URL(reordered.url)
    assert raw.text("a_call") == "by-a called"
    assert raw.text("b_call") == "by-b called"
    sessions = {one.fields.get("mcp-session-id") for one in stand_in.servers["by-a"].asked("tools/call")}
    assert sessions == {"by-a-1"}, "its own, and none that was opened anew"
    for targets, told in (({"a": far["a"], "c": far["c"]}, "b"), ({"b": far["b"], "c": far["c"]}, "a")):
        running = gateway(config(targets), 1, environment)
        raw.http.base_url = httpx.URL(running.url)
        assert raw.post({"id": 1, "method": "tools/list"}).status_code == 404
        running.wait_log("session belongs to other targets")
        assert f"missing={told}" in running.log()


# -- processes -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["one", "several"])
def test_a_process_that_ends_ends_what_waits_for_it(gateway: Callable[..., Any], kind: str) -> None:
    running = gateway(config({"a": SAMPLE, **({"b": SAMPLE} if kind == "several" else {})}))
    raw, prefix = Raw(running), "a_" if kind == "several" else ""
    assert raw.ask("tools/call", name=f"{prefix}nope")["error"]["code"] == -32602, "an error is an answer"
    ended = threading.Event()
    listening = threading.Event()

    def listen() -> None:
        with raw.http.stream("GET", "/mcp", headers={"accept": "text/event-stream"}) as events:
            assert events.status_code == 200
            listening.set()
            for _ in events.iter_lines():
                pass
        ended.set()

    threading.Thread(target=listen, daemon=True).start()
    assert listening.wait(40)
    found: list[dict[str, Any]] = []
    slow = {"id": 5, "method": "tools/call", "params": {"name": f"{prefix}slow", "arguments": {"seconds": 30}, "_meta": {"progressToken": 1}}}
    begun = threading.Event()

    def call() -> None:
        with raw.http.stream("POST", "/mcp", json={"jsonrpc": "2.0", **slow}) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: {"):
                    found.append(json.loads(line[6:]))
                    begun.set()

    calling = threading.Thread(target=call)
    calling.start()
    assert begun.wait(40)
    wait_for(lambda: len(children(running, "mcp_server")) == (2 if kind == "several" else 1))
    for pid in children(running, "mcp_server"):
        kill(pid)
    calling.join(60)
    assert (found[-1]["id"], found[-1]["error"]["code"]) == (5, -32603)
    assert ended.wait(40), "the event stream ends with what it was of"
    if kind == "one":
        assert raw.http.get("/mcp", headers={"accept": "text/event-stream"}).status_code == 404


@pytest.mark.parametrize("mode", ["failOpen", "failClosed"])
def test_a_session_can_be_ended_beside_a_dead_target(gateway: Callable[..., Any], stand_in: StandIn, mode: str) -> None:
    server, dying = stand_in.add(f"alive-{mode}"), stand_in.add(f"dying-{mode}")
    targets = {"a": stand_in.target(server), "b": stand_in.target(dying)}
    raw = Raw(gateway(config(targets, f"  failureMode: {mode}\n")))
    dying.dead = True
    answer = raw.http.delete("/mcp")
    assert (answer.status_code, answer.content) == (200, b"")
    wait_for(lambda: server.methods().count("DELETE") == 1)
    assert raw.post({"id": 1, "method": "tools/list"}).status_code == 404


def test_a_refusal_of_a_target_s_own_reaches_the_client(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    server = stand_in.add("refusing", results={"tools/list": Fault(-32000, "not now", {"why": 1}, 429)})
    server.results["tools/call"] = lambda params: {"tools": [tool("x")]} if params else Fault(-1, "x")
    answer = Raw(gateway(config({"a": stand_in.target(server)}))).post({"id": 7, "method": "tools/list"})
    assert (answer.status_code, answer.json()["error"]) == (429, {"code": -32000, "message": "not now", "data": {"why": 1}})


def test_a_client_has_a_session_where_the_server_has_none(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    server = stand_in.add("bare", sessions=False)
    keys = "  policies: {apiKey: {keys: [{key: ada}, {key: bob}]}}\n"
    running = gateway(config({"a": stand_in.target(server)}, keys), 2)
    raw = Raw(running, authorization="Bearer ada")
    for _ in range(4):      # connections of their own: both workers
        found = post(running, {"id": 1, "method": "tools/call", "params": {"name": "call"}}, **dict(raw.http.headers))
        assert messages(found)[-1]["result"]["content"][0]["text"] == "bare called"
    stolen = {**dict(raw.http.headers), "authorization": "Bearer bob"}
    assert post(running, {"id": 1, "method": "ping"}, **stolen).status_code == 404
    assert not [one for one in server.seen if "mcp-session-id" in one.fields]
    assert raw.http.delete("/mcp").status_code == 200
    assert raw.post({"id": 1, "method": "ping"}).status_code == 404
    assert "DELETE" not in server.methods()
