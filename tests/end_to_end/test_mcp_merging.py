"""Several servers as one, clause by clause of the checklist (ci/mcp-checklist.md)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import httpx
import pytest
from mcp import ClientSession, types
from mcp.client.streamable_http import streamable_http_client
from tests import forked_rig
from tests.end_to_end.federation_rig import ACCEPT, INITIALIZE, SAMPLE, Raw, asking, config, messages
from tests.end_to_end.mcp_sessions_rig import wait_for
from tests.end_to_end.mcp_stand_in import NEW, Fault, StandIn, tool
from tests.end_to_end.modern_rig import Listening, Modern

pytestmark = pytest.mark.warm

ALL = {"tools": {}, "prompts": {}, "resources": {"subscribe": True}}


@pytest.fixture(scope="module")
def stand_in() -> Iterator[StandIn]:
    found = StandIn()
    yield found
    found.stop()


# -- what a server says of itself ------------------------------------------------------------------------------------------
def test_what_several_servers_promise(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    one = stand_in.add("promises-1", says={"instructions": ""}, capabilities={"resources": {"subscribe": True}})
    two = stand_in.add("promises-2")
    targets = {"a": stand_in.target(one), "b": stand_in.target(two)}
    opened = messages(Raw(gateway(config(targets))).opened)[-1]["result"]
    assert opened["capabilities"] == {
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
    }
    assert "instructions" not in opened, "nobody said any"
    assert (opened["serverInfo"]["name"], opened["serverInfo"]["title"]) == ("headgate", "Headgate")
    stateless = messages(Raw(gateway(config(targets, "  statefulMode: stateless\n"))).opened)[-1]["result"]
    assert stateless["capabilities"]["resources"] == {"listChanged": True}, "there is no stream to tell it on"


def test_one_server_says_itself_what_it_is(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    says = {"instructions": "as I say", "serverInfo": {"name": "own", "version": "7", "icons": []}, "_meta": {"a": 1}}
    server = stand_in.add("itself", says=says, capabilities={"tools": {}, "extensions": {"x/y": {"z": 1}}})
    [opened] = messages(Raw(gateway(config({"a": stand_in.target(server)}))).opened)
    assert opened["result"] == {**server.result({"method": "initialize", "params": INITIALIZE}), "protocolVersion": "2025-06-18"}


def test_extensions_are_those_of_all(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    given: list[dict[str, Any]] = [
        {"io.modelcontextprotocol/ui": {"mimeTypes": ["a"]}, "own/one": {"x": 1}, "own/both": {"n": 1}},
        {"io.modelcontextprotocol/ui": {"mimeTypes": ["a"]}, "own/both": {"n": 2}},
    ]
    merged = {"io.modelcontextprotocol/ui": {"mimeTypes": ["a"]}, "own/one": {"x": 1}, "own/both": {}}
    for revisions in (("2025-06-18",), (NEW,)):
        targets = {
            f"t{number}": stand_in.target(
                stand_in.add(f"ext-{revisions[0]}-{number}", revisions=revisions, capabilities={"extensions": one})
            )
            for number, one in enumerate(given)
        }
        running = gateway(config(targets))
        assert messages(Raw(running).opened)[-1]["result"]["capabilities"]["extensions"] == merged
        if revisions == (NEW,):
            assert Modern(running).ask("server/discover")["result"]["capabilities"]["extensions"] == merged


def test_a_backend_has_targets(tmp_path: Path) -> None:
    for count, text in ((0, "[]"), (129, json.dumps([{"name": f"t{one}", "stdio": {"cmd": "x"}} for one in range(129)]))):
        path = tmp_path / f"{count}.yaml"
        path.write_text(f"mcp: {{targets: {text}}}\n")
        done = forked_rig.run("headgate.cli.main", "-f", str(path), "--validate-only")
        assert done.returncode == 1
        assert "mcp.targets" in done.stdout + done.stderr


# -- names -----------------------------------------------------------------------------------------------------------------
def ui_tool(name: str) -> dict[str, Any]:
    return tool(name, _meta={"ui": {"resourceUri": "ui://app/1"}})


@pytest.mark.parametrize("mode", ["stateful", "stateless"])
def test_names_without_their_targets(gateway: Callable[..., Any], stand_in: StandIn, mode: str) -> None:
    def pages(*names: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
        def page(params: dict[str, Any]) -> dict[str, Any]:
            at = int(params.get("cursor", "0"))
            more = {"nextCursor": str(at + 1)} if at + 1 < len(names) else {}
            return {"tools": [ui_tool(names[at])], **more}

        return page

    targets = {}
    for name, own in (("a", ("shared", "first")), ("b", ("second", "shared"))):
        results = {
            "tools/list": pages(*own),
            "prompts/list": {"prompts": [{"name": f"hello-{name}"}, {"name": "both"}]},
            "prompts/get": lambda params, name=name: {"messages": [], "description": f"{name} {params['name']}"},
        }
        targets[name] = stand_in.target(stand_in.add(f"never-{mode}-{name}", capabilities=ALL, results=results))
    raw = Raw(gateway(config(targets, f"  prefixMode: never\n  statefulMode: {mode}\n")))
    tools = raw.ask("tools/list")["result"]["tools"]
    assert [one["name"] for one in tools] == ["first", "second"]
    assert [one["_meta"]["ui"]["resourceUri"] for one in tools] == ["ui://a+app/1", "ui://b+app/1"]
    assert raw.names("prompts/list", "prompts") == ["hello-a", "hello-b"]
    assert raw.text("first") == f"never-{mode}-a called"
    assert raw.text("second") == f"never-{mode}-b called"
    assert raw.ask("prompts/get", name="hello-b")["result"]["description"] == "b hello-b"
    for method, name in (("tools/call", "shared"), ("prompts/get", "both")):
        assert raw.ask(method, name=name)["error"]["message"] == f"{name} is served by multiple targets"
    assert raw.ask("tools/call", name="a_first")["error"]["code"] == -32602


@pytest.mark.parametrize("kind", ["one", "several"])
def test_subscriptions_lead_to_their_server(gateway: Callable[..., Any], stand_in: StandIn, kind: str) -> None:
    results = {"resources/subscribe": {}, "resources/unsubscribe": {}}
    servers = [
        stand_in.add(f"sub-{kind}-{name}", capabilities=ALL, results=results, events=Queue())
        for name in ("a", "b")[: 1 if kind == "one" else 2]
    ]
    targets = {server.name[-1]: stand_in.target(server) for server in servers}
    raw = Raw(gateway(config(targets)))
    prefix = "" if kind == "one" else "b+"
    owner = servers[-1]
    for method in ("resources/subscribe", "resources/unsubscribe"):
        assert raw.ask(method, uri=f"{prefix}note://1")["result"] == {}
        assert [one.message["params"]["uri"] for one in owner.asked(method)] == ["note://1"]
        if kind == "several":
            assert servers[0].asked(method) == []
            assert raw.ask(method, uri="note://1")["error"]["code"] == -32602
    assert owner.events is not None
    note = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "note://1"}}
    with raw.http.stream("GET", "/mcp", headers={"accept": "text/event-stream"}) as events:
        owner.events.put(note)
        told = next(json.loads(line[6:]) for line in events.iter_lines() if line.startswith("data: {"))
    assert told["params"]["uri"] == f"{prefix}note://1"
    for server in servers:
        assert server.events is not None
        server.events.put(None)


# -- targets that fail -----------------------------------------------------------------------------------------------------
def test_lists_of_targets_that_fail_by_and_by(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    good, erring, dying = stand_in.add("fine"), stand_in.add("erring"), stand_in.add("dying")
    targets = {server.name: stand_in.target(server) for server in (good, erring, dying)}
    closed, open_ = Raw(gateway(config(targets))), Raw(gateway(config(targets, "  failureMode: failOpen\n")))
    everybody = ["fine_call", "erring_call", "dying_call"]
    assert closed.names("tools/list", "tools") == open_.names("tools/list", "tools") == everybody
    erring.results["tools/list"] = Fault(-32000, "not now")
    assert open_.names("tools/list", "tools") == ["fine_call", "dying_call"]
    assert closed.ask("tools/list")["error"] == {"code": -32000, "message": "erring: not now"}
    dying.dead = True
    assert open_.names("tools/list", "tools") == ["fine_call"]
    assert open_.ask("ping")["result"] == {}
    assert closed.text("fine_call") == "fine called", "calls are of one target in both modes"
    good.results["tools/list"] = Fault(-32001, "neither")
    assert open_.ask("tools/list")["error"] == {"code": -32001, "message": "fine: neither"}
    opened = Raw(gateway(config({"a": 'mcp: {host: "http://127.0.0.1:1/mcp"}', "b": "stdio: {cmd: /no/such}"}, "  failureMode: failOpen\n"))).opened
    assert opened.status_code == 500
    assert "mcp-session-id" not in opened.headers


# -- servers that ask ------------------------------------------------------------------------------------------------------
def test_requests_of_two_servers_with_one_id(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    ping = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
    servers = [stand_in.add(f"pings-{name}", before={"tools/call": [ping]}) for name in ("a", "b")]
    raw = Raw(gateway(config({server.name[-1]: stand_in.target(server) for server in servers})))
    ids = []
    for name in ("a", "b"):
        answer = raw.post({"id": 1, "method": "tools/call", "params": {"name": f"{name}_call"}})
        asked, answered = messages(answer)
        assert (asked["method"], answered["id"]) == ("ping", 1)
        ids.append(asked["id"])
    assert ids == ["gw_a_n_7", "gw_b_n_7"]
    assert raw.post({"id": ids[1], "result": {}}).status_code == 202
    wait_for(lambda: "response" in servers[1].methods())
    [pong] = [one.message for one in servers[1].seen if one.verb == "POST" and "method" not in one.message]
    assert pong == {"jsonrpc": "2.0", "id": 7, "result": {}}
    assert "response" not in servers[0].methods()


@pytest.mark.parametrize("kind", ["one", "several"])
def test_a_server_asks_the_user_in_a_call(gateway: Callable[..., Any], kind: str) -> None:
    running = gateway(config({"a": asking("a", "june"), **({"b": SAMPLE} if kind == "several" else {})}))

    async def elicited(_context: Any, params: Any) -> Any:
        assert params.message == "who are you?"
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def run() -> str:
        async with (
            streamable_http_client(f"{running.url}/mcp") as (read, write, *_),
            ClientSession(read, write, elicitation_callback=elicited) as session,
        ):
            opened = await session.initialize()
            assert opened.protocol_version == "2025-06-18"
            found = await session.call_tool("a_elicit" if kind == "several" else "elicit", {})
            return found.content[0].text  # type: ignore[union-attr]

    assert "Ada" in asyncio.run(run())


@pytest.mark.parametrize("kind", ["one", "several", "stateless"])
def test_capabilities_of_clients(gateway: Callable[..., Any], stand_in: StandIn, kind: str) -> None:
    """A server may ask where there is a session; where there is none it is not told that it could."""
    server = stand_in.add(f"asks-{kind}")
    targets = {"a": stand_in.target(server), **({"b": SAMPLE} if kind == "several" else {})}
    running = gateway(config(targets, "  statefulMode: stateless\n" if kind == "stateless" else ""))
    asking_ = {"sampling": {}, "elicitation": {"form": {}}, "roots": {"listChanged": True}}
    others = {"experimental": {"x": {}}, "extensions": {"own/x": {"y": 1}}}
    tasks = {"io.modelcontextprotocol/tasks": {}}
    able = {**asking_, **others, "extensions": {**others["extensions"], **tasks}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {**INITIALIZE, "capabilities": able}}
    assert httpx.post(f"{running.url}/mcp", json=body, headers=ACCEPT, timeout=60).status_code == 200
    told = server.asked("initialize")[-1].message["params"]["capabilities"]
    assert told == (others if kind == "stateless" else able)


@pytest.mark.parametrize("kind", ["one", "rules", "several"])
def test_a_server_without_sessions_does_not_ask_directly(gateway: Callable[..., Any], stand_in: StandIn, kind: str) -> None:
    question = {"jsonrpc": "2.0", "id": 7, "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}}
    server = stand_in.add(f"direct-{kind}", revisions=(NEW,), before={"tools/call": [question]})
    more = "  policies: {mcpAuthorization: {rules: ['true']}}\n" if kind == "rules" else ""
    client = Modern(gateway(config({"a": stand_in.target(server), **({"b": SAMPLE} if kind == "several" else {})}, more)))
    answer = client.post("tools/call", name="a_call" if kind == "several" else "call")
    [found] = messages(answer)
    assert (found["id"], found["error"]["code"]) == (client.id, -32603), "and nothing of what came later"
    assert "input_required" in found["error"]["message"]


# -- subscriptions without sessions ----------------------------------------------------------------------------------------
def acknowledging(more: list[dict[str, Any]], refused: str = "") -> Callable[[Any], list[dict[str, Any]]]:
    def frames(message: dict[str, Any]) -> list[dict[str, Any]]:
        wanted = dict(message["params"]["notifications"])
        if refused:
            wanted["resourceSubscriptions"] = [one for one in wanted.get("resourceSubscriptions", []) if one != refused]
        meta = {"io.modelcontextprotocol/subscriptionId": message["id"]}
        first = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {"notifications": wanted, "_meta": meta}}
        return [first, *more]

    return frames


def test_each_server_is_asked_for_its_own(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    updated = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "note://1"}}
    stranger = {"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"}
    servers = {}
    for name in ("a", "b"):
        servers[name] = stand_in.add(f"listen-{name}", revisions=(NEW,), capabilities=ALL)
        servers[name].listens = acknowledging([stranger, updated], refused="note://2" if name == "b" else "")
    client = Modern(gateway(config({name: stand_in.target(server) for name, server in servers.items()})))
    one = Listening(client, toolsListChanged=True, resourceSubscriptions=["a+note://1"])
    assert one.acknowledged() == {"toolsListChanged": True, "resourceSubscriptions": ["a+note://1"]}
    asked = {name: server.asked("subscriptions/listen")[-1].message["params"]["notifications"] for name, server in servers.items()}
    assert asked == {"a": {"toolsListChanged": True, "resourceSubscriptions": ["note://1"]}, "b": {"toolsListChanged": True}}
    told = one.next()
    assert told is not None
    assert (told["params"]["uri"], told["params"]["_meta"]) == ("a+note://1", {"io.modelcontextprotocol/subscriptionId": one.id})
    # Both streams end without a last word: the client is told.
    over = one.next()
    assert over is not None
    assert (over["id"], over["error"]["code"]) == (one.id, -32603)
    assert one.next() is None
    two = Listening(client, resourceSubscriptions=["b+note://2", "a+note://1", "b+note://1"])
    assert two.acknowledged() == {"resourceSubscriptions": ["a+note://1", "b+note://1"]}
    asked = {name: server.asked("subscriptions/listen")[-1].message["params"]["notifications"] for name, server in servers.items()}
    assert asked == {"a": {"resourceSubscriptions": ["note://1"]}, "b": {"resourceSubscriptions": ["note://2", "note://1"]}}
