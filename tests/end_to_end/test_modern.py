"""Revision 2026-07-28 at the gateway: checks, discovery, subscriptions, backends without sessions, and bridges between
clients and servers of different revisions.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from mcp import ClientSession, types
from mcp.client.streamable_http import streamable_http_client
from tests.end_to_end.modern_rig import (
    ACCEPT,
    META,
    NEW,
    SAMPLE,
    SPACE,
    Listening,
    Modern,
    Started,
    config,
    messages,
    process,
    remote,
    server,  # noqa: F401
)

pytestmark = pytest.mark.warm

















@pytest.mark.parametrize("target", ["remote", "process", "rules", "several"])
def test_requests_are_checked_before_any_target_sees_them(
    gateway: Callable[..., Any], server: Started, target: str
) -> None:
    one = process() if target == "process" else remote(server())
    more = "  policies: {mcpAuthorization: {rules: ['true']}}\n" if target == "rules" else ""
    client = Modern(gateway(config(more, one=one, **({"two": SAMPLE} if target == "several" else {}))))

    def refused(body: dict[str, Any], fields: dict[str, str], status: int, code: int) -> dict[str, Any]:
        answer = client.http.post("/mcp", json=body, headers=fields)
        assert answer.status_code == status, answer.text
        found = answer.json()
        assert (found["id"], found["error"]["code"]) == (body["id"], code)
        return dict(found["error"])

    for method in ("initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "no/such"):
        error = refused(*client.message(method), 404, -32601)
        assert method in error["message"]
    body, fields = client.message("tools/list")
    refused({**body, "params": {}}, fields, 400, -32602)
    refused({**body, "params": {"_meta": {SPACE + "protocolVersion": NEW}}}, fields, 400, -32602)
    refused(body, {"mcp-method": "tools/list"}, 400, -32020)
    refused(body, {**fields, "mcp-method": "prompts/list"}, 400, -32020)
    refused(body, {"mcp-protocol-version": NEW}, 400, -32020)
    body, fields = client.message("tools/call", name="one_test_simple_text" if target == "several" else "test_simple_text")
    refused(body, {**fields, "mcp-name": "other"}, 400, -32020)
    refused(body, {**fields, "mcp-param-x": "=?base64?*?="}, 400, -32020)
    error = refused(*client.message("tools/list", {**META, SPACE + "protocolVersion": "v9"}), 400, -32020)
    error = refused(body, {**fields, "mcp-protocol-version": "v9"}, 400, -32022)
    assert error["data"]["requested"] == "v9"
    assert NEW in error["data"]["supported"]
    body, fields = client.message("tools/list")
    assert client.http.post("/mcp", json=body, headers={**fields, "mcp-session-id": "x"}).status_code == 400
    for method in ("GET", "DELETE"):
        answer = client.http.request(method, "/mcp", headers={"mcp-protocol-version": NEW, "mcp-session-id": "x"})
        assert answer.status_code == 400, method


def test_one_target_says_itself_what_it_can(gateway: Callable[..., Any], server: Started) -> None:
    port = server("--only", "new")
    direct = httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=ACCEPT, timeout=60)
    client = Modern(gateway(config(one=remote(port))))
    body, fields = client.message("server/discover")
    wanted = messages(direct.post("/mcp", json=body, headers=fields))[0]["result"]
    assert client.ask("server/discover")["result"] == wanted
    assert wanted["supportedVersions"] == [NEW]
    body, fields = client.message("tools/list")
    unknown = client.http.post("/mcp", json=body, headers={**fields, "mcp-protocol-version": "v9"}).json()
    assert unknown["error"]["data"]["supported"] == [NEW], "what the target speaks, not what the gateway does"


def test_several_targets_speak_with_one_voice(gateway: Callable[..., Any], server: Started) -> None:
    client = Modern(gateway(config(a=remote(server("--only", "new")), b=process())))
    found = client.ask("server/discover")["result"]
    assert found["supportedVersions"] == [NEW], "what all of them speak"
    assert (found["ttlMs"], found["cacheScope"], found["resultType"]) == (0, "private", "complete")
    assert found["_meta"][SPACE + "serverInfo"]["name"] == "headgate"
    tools = client.ask("tools/list")["result"]
    names = [tool["name"] for tool in tools["tools"]]
    assert {"a_test_simple_text", "b_test_simple_text"} <= set(names)
    assert (tools["ttlMs"], tools["cacheScope"], tools["resultType"]) == (0, "private", "complete")
    for name in ("a", "b"):
        assert client.text(f"{name}_test_simple_text").startswith("This is a simple text")
        [content] = client.ask("resources/read", uri=f"{name}+test://static-text")["result"]["contents"]
        assert content["uri"] == f"{name}+test://static-text"
        missing = client.ask("resources/read", uri=f"{name}+test://none")["error"]
        assert (missing["code"], missing["data"]) == (-32602, {"uri": f"{name}+test://none"})
    unknown = client.post("tools/call", name="zz_x")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (400, -32602)
    needs = client.post("tools/call", name="a_test_missing_capability")
    assert (needs.status_code, needs.json()["error"]["code"]) == (400, -32021)
    assert needs.json()["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}


def test_questions_and_answers_pass_unchanged(gateway: Callable[..., Any], server: Started) -> None:
    client = Modern(gateway(config(a=remote(server()), b=process())))
    able = {**META, SPACE + "clientCapabilities": {"elicitation": {}}}
    for name in ("a", "b"):
        tool = f"{name}_test_input_required_result_request_state"
        first = client.ask("tools/call", able, name=tool, arguments={})["result"]
        assert first["resultType"] == "input_required"
        assert first["inputRequests"]["confirm"]["method"] == "elicitation/create"
        answers = {"confirm": {"action": "accept", "content": {"ok": True}}}
        found = client.ask(
            "tools/call", able, name=tool, arguments={}, inputResponses=answers, requestState=first["requestState"]
        )
        assert found["result"]["content"][0]["text"] == "state-ok"


def test_a_mixed_backend_sends_clients_to_sessions(gateway: Callable[..., Any], server: Started) -> None:
    running = gateway(config(new=remote(server("--only", "new")), old=SAMPLE))
    client = Modern(running)
    answer = client.post("server/discover")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, -32601)
    # A client that goes on without discovery is served all the same, by both.
    names = [tool["name"] for tool in client.ask("tools/list")["result"]["tools"]]
    assert {"new_test_simple_text", "old_echo"} <= set(names)
    assert client.text("old_echo", message="x") == "Echo: x"
    assert client.text("new_test_simple_text").startswith("This is a simple text")


def test_progress_comes_with_its_request_from_a_shared_process(gateway: Callable[..., Any]) -> None:
    running = gateway(config(one=process()))

    def call() -> list[dict[str, Any]]:
        answer = Modern(running).post("tools/call", {**META, "progressToken": 1}, name="test_tool_with_progress")
        return messages(answer)

    assert call()[-1]["result"]["content"]
    found: list[list[dict[str, Any]]] = []
    threads = [threading.Thread(target=lambda: found.append(call())) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == 5
    for one in found:
        notes = [note["params"] for note in one[:-1]]
        assert [note["progress"] for note in notes] == [0, 50, 100], "its own, and nobody else's"
        assert {note["progressToken"] for note in notes} == {1}


def test_a_subscription_hears_what_it_asked_for(gateway: Callable[..., Any], server: Started) -> None:
    running = gateway(config(a=remote(server()), b=remote(server("--only", "new"))))
    client = Modern(running)
    uris = ["b+test://watched-resource", "a+test://watched-resource"]
    everything = Listening(client, toolsListChanged=True, resourceSubscriptions=uris)
    assert everything.acknowledged() == {"toolsListChanged": True, "resourceSubscriptions": uris}
    prompts = Listening(client, promptsListChanged=True)
    assert prompts.acknowledged() == {"promptsListChanged": True}
    client.text("a_test_trigger_prompt_change")
    client.text("b_test_trigger_tool_change")
    note = everything.next()
    assert note == {
        "jsonrpc": "2.0",
        "method": "notifications/tools/list_changed",
        "params": {"_meta": {SPACE + "subscriptionId": everything.id}},
    }
    note = prompts.next()
    assert note is not None
    assert note["method"] == "notifications/prompts/list_changed"
    refused = Listening(client, resourceSubscriptions=["test://watched-resource"]).next()
    assert refused is not None
    assert refused["error"]["code"] == -32602, "nobody's resource"
    # The end is told.
    stopping = threading.Thread(target=running.stop)
    stopping.start()
    over = everything.next()
    assert over == {
        "jsonrpc": "2.0",
        "id": everything.id,
        "result": {"resultType": "complete", "_meta": {SPACE + "subscriptionId": everything.id}},
    }
    assert everything.next() is None
    stopping.join(30)


def test_a_server_with_sessions_has_subscriptions_too(gateway: Callable[..., Any], server: Started) -> None:
    client = Modern(gateway(config(a=remote(server("--only", "old")), b=SAMPLE)))
    uri = "a+test://watched-resource"
    listening = Listening(client, toolsListChanged=True, resourceSubscriptions=[uri])
    assert listening.acknowledged() == {"toolsListChanged": True, "resourceSubscriptions": [uri]}
    client.text("a_test_trigger_tool_change")
    note = listening.next()
    assert note is not None
    assert note["method"] == "notifications/tools/list_changed"


def test_rules_hold_without_sessions(gateway: Callable[..., Any], server: Started) -> None:
    rules = "  policies: {mcpAuthorization: {rules: [\"mcp.tool.name != 'test_error_handling'\"]}}\n"
    client = Modern(gateway(config(rules, one=remote(server()))))
    names = [tool["name"] for tool in client.ask("tools/list")["result"]["tools"]]
    assert "test_simple_text" in names
    assert "test_error_handling" not in names
    answer = client.post("tools/call", name="test_error_handling")
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, "Unknown tool: test_error_handling")


@pytest.mark.parametrize("target", ["old", "both", "process"])
def test_a_backend_without_sessions_serves_official_clients(
    gateway: Callable[..., Any], server: Started, target: str
) -> None:
    one = process("--only", "old") if target == "process" else remote(server(*(["--only", "old"] if target == "old" else [])))
    running = gateway(config("  statefulMode: stateless\n", one=one, two=SAMPLE), 2)

    async def run() -> tuple[list[str], str, str]:
        async with (
            streamable_http_client(f"{running.url}/mcp") as (read, write, *_),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            tools = [tool.name for tool in (await session.list_tools()).tools]
            first = await session.call_tool("one_test_simple_text", {})
            second = await session.call_tool("two_echo", {"message": "hi"})
            return tools, first.content[0].text, second.content[0].text

    tools, first, second = asyncio.run(run())
    assert {"one_test_simple_text", "two_echo"} <= set(tools)
    assert first.startswith("This is a simple text")
    assert second == "Echo: hi"
    http = httpx.Client(base_url=running.url, headers=ACCEPT, timeout=60)
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    answer = http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    assert answer.status_code == 200
    assert "mcp-session-id" not in answer.headers
    assert "subscribe" not in messages(answer)[0]["result"]["capabilities"]["resources"]
    assert http.get("/mcp").status_code == 405
    assert http.delete("/mcp").status_code == 405
    assert http.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}).status_code == 202
    assert http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "result": {}}).status_code == 400


@pytest.mark.parametrize("target", ["remote", "process", "several"])
def test_a_client_with_a_session_loses_nothing_at_a_server_without(
    gateway: Callable[..., Any], server: Started, target: str
) -> None:
    one = process("--only", "new") if target == "process" else remote(server("--only", "new"))
    start = "one_" if target == "several" else ""
    resource = "one+test://watched-resource" if target == "several" else "test://watched-resource"
    running = gateway(config(one=one, **({"two": SAMPLE} if target == "several" else {})), 2)
    heard: list[str] = []
    logs: list[str] = []

    async def run() -> list[Any]:
        async def elicit(_context: Any, params: Any) -> Any:
            return types.ElicitResult(action="accept", content={"name": "Ada", "ok": True, "color": "red"})

        async def sample(_context: Any, _params: Any) -> Any:
            content = types.TextContent(type="text", text="Paris")
            return types.CreateMessageResult(role="assistant", content=content, model="m")

        async def roots(_context: Any) -> Any:
            return types.ListRootsResult(roots=[types.Root(uri="file:///x")])

        async def log(params: Any) -> None:
            logs.append(str(params.data))

        changed = asyncio.Event()

        async def note(found: Any) -> None:
            if "list_changed" in str(getattr(found, "method", "")):
                heard.append(found.method)
                changed.set()

        async with (
            streamable_http_client(f"{running.url}/mcp") as (read, write, *_),
            ClientSession(
                read, write, elicitation_callback=elicit, sampling_callback=sample, list_roots_callback=roots,
                logging_callback=log, message_handler=note,
            ) as session,
        ):  # fmt: skip
            opened = await session.initialize()
            assert opened.protocol_version < NEW
            found = [
                (await session.call_tool(f"{start}test_input_required_result_{name}", {})).content[0].text
                for name in ("elicitation", "sampling", "list_roots", "request_state", "multi_round", "multiple_inputs")
            ]
            await session.set_logging_level("info")
            await session.call_tool(f"{start}test_tool_with_logging", {})
            await session.subscribe_resource(resource)
            await session.unsubscribe_resource(resource)
            await session.send_ping()
            # The subscription of the event stream is made when it is read; until then changes are nobody's.
            async with asyncio.timeout(30):
                while not changed.is_set():
                    await session.call_tool(f"{start}test_trigger_tool_change", {})
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(changed.wait(), 0.5)
            return found

    name, capital, root, state, rounds, everything = asyncio.run(run())
    assert (name, capital, root, state, rounds) == ("Hello, Ada!", "Paris", "file:///x", "state-ok", "All rounds are done")
    assert set(json.loads(everything)) == {"user_name", "greeting", "client_roots"}
    assert heard
    assert logs[:3] == ["Tool execution started", "Tool processing data", "Tool execution completed"]


def test_a_session_at_a_server_without_is_the_gateways(gateway: Callable[..., Any], server: Started) -> None:
    running = gateway(config(one=remote(server("--only", "new"))), 2)
    http = httpx.Client(base_url=running.url, headers=ACCEPT, timeout=30)
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    answer = http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    assert messages(answer)[-1]["result"]["protocolVersion"] == "2025-06-18"
    session = {"mcp-session-id": answer.headers["mcp-session-id"]}
    listening, ended = threading.Event(), threading.Event()

    def listen() -> None:
        with (
            httpx.Client(base_url=running.url, timeout=60) as other,
            other.stream("GET", "/mcp", headers={**session, "accept": "text/event-stream"}) as stream,
        ):
            assert stream.status_code == 200
            listening.set()
            for _ in stream.iter_lines():
                pass
        ended.set()

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    assert listening.wait(30)
    # Any worker takes the request to the one that has the session.
    for number in range(10):
        with httpx.Client(base_url=running.url, headers={**ACCEPT, **session}, timeout=30) as other:
            body = {"jsonrpc": "2.0", "id": number, "method": "resources/read", "params": {"uri": "test://none"}}
            found = messages(other.post("/mcp", json=body))[-1]
            assert (found["id"], found["error"]["code"]) == (number, -32602)
            body = {"jsonrpc": "2.0", "id": number, "method": "tools/list"}
            assert "resultType" not in messages(other.post("/mcp", json=body))[-1]["result"]
    assert http.delete("/mcp", headers=session).status_code == 200
    assert ended.wait(30), "the event stream ends with the session"
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert http.post("/mcp", json=body, headers=session).status_code == 404


def test_only_this_machine_is_served_where_that_is_wanted(gateway: Callable[..., Any]) -> None:
    running = gateway(config("  dnsRebindingProtection: true\n", one=SAMPLE))
    client = Modern(running)
    assert client.text("echo", message="x") == "Echo: x"
    body, fields = client.message("tools/list")
    for more, status in (
        ({"origin": "http://localhost:5173"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"host": "evil.example"}, 403),
    ):
        assert client.http.post("/mcp", json=body, headers={**fields, **more}).status_code == status, more
