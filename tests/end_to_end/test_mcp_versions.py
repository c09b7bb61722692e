"""Protocol revisions and discovery, clause by clause of the checklist (ci/mcp-checklist.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from tests.end_to_end.federation_rig import ACCEPT, INITIALIZE, SAMPLE, Raw, config, messages
from tests.end_to_end.mcp_stand_in import NEW, Fault, Server, StandIn
from tests.end_to_end.mcp_telemetry_rig import lines
from tests.end_to_end.modern_rig import META, SPACE, Modern

pytestmark = pytest.mark.warm

OLD = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
BOTH = (*OLD, NEW)
KINDS = ("one", "several", "stateless")


@pytest.fixture(scope="module")
def stand_in() -> Iterator[StandIn]:
    found = StandIn()
    yield found
    found.stop()


@pytest.fixture
def server(stand_in: StandIn) -> Server:
    return stand_in.add("both", revisions=BOTH)


def started(gateway: Callable[..., Any], stand_in: StandIn, kind: str, server: Server) -> Any:
    more = "  statefulMode: stateless\n" if kind == "stateless" else ""
    targets = {"t": stand_in.target(server)}
    if kind == "several":
        targets["u"] = stand_in.target(stand_in.add("other", revisions=BOTH))
    return gateway(config(targets, more))


def post(running: Any, message: dict[str, Any], fields: dict[str, str]) -> httpx.Response:
    return httpx.post(f"{running.url}/mcp", json={"jsonrpc": "2.0", **message}, headers={**ACCEPT, **fields}, timeout=60)


def refused(answer: httpx.Response, status: int, code: int, raw_id: Any = 7) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    found = answer.json()
    assert (found["id"], found["error"]["code"]) == (raw_id, code)
    return dict(found["error"])


@pytest.mark.parametrize("kind", KINDS)
def test_versions_that_nobody_knows_or_that_differ(
    gateway: Callable[..., Any], stand_in: StandIn, server: Server, kind: str
) -> None:
    running = started(gateway, stand_in, kind, server)
    opening = {"id": 7, "method": "initialize", "params": INITIALIZE}
    error = refused(post(running, opening, {"mcp-protocol-version": "1999-01-01"}), 400, -32022)
    assert "data" not in error
    assert "1999-01-01" in error["message"]
    refused(post(running, opening, {"mcp-protocol-version": "2025-03-26"}), 400, -32020)
    error = refused(post(running, opening, {"mcp-protocol-version": NEW, "mcp-method": "initialize"}), 404, -32601)
    assert error == {"code": -32601, "message": "method not found: initialize"}
    asked = {"id": 7, "method": "tools/list"}
    error = refused(post(running, asked, {"mcp-protocol-version": "1999-01-01"}), 400, -32022)
    assert error["data"]["requested"] == "1999-01-01"
    assert {"2025-06-18", NEW} <= set(error["data"]["supported"])
    assert post(running, asked, {"mcp-protocol-version": "bad\tone"}).status_code == 400
    if kind != "stateless":
        raw = Raw(running)
        headers = {"mcp-session-id": raw.session}
        refused(post(running, asked, {**headers, "mcp-protocol-version": "2031-01-01"}), 400, -32022)
        assert messages(post(running, asked, {**headers, "mcp-protocol-version": "2025-06-18"}))[-1]["result"]


@pytest.mark.parametrize("kind", KINDS)
def test_methods_that_there_are_not(gateway: Callable[..., Any], stand_in: StandIn, server: Server, kind: str) -> None:
    running = started(gateway, stand_in, kind, server)
    gone = ("initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe")
    for method in (*gone, "unknown/method", "tasks/list"):
        fields = {"mcp-protocol-version": NEW, "mcp-method": method}
        asked = {"id": 7, "method": method, "params": {"_meta": META}}
        # Where messages pass unread to one target, it is the one to say so of methods that nobody here knows.
        refused(post(running, asked, fields), 404, -32601)
        refused(post(running, {"id": 7, "method": method}, fields), 404, -32601)
    asked = {"id": 7, "method": "ping", "params": {"_meta": META}}
    assert post(running, asked, {}).status_code == 400, "the revision is in the body alone"
    refused(post(running, {"id": 7, "method": "tools/call", "params": {"_meta": META}},
                 {"mcp-protocol-version": NEW, "mcp-method": "tools/call"}), 400, -32602)  # fmt: skip
    wrong = httpx.post(f"{running.url}/mcp", json={"jsonrpc": "2.1", "id": 7, "method": "ping"}, headers=ACCEPT, timeout=60)
    assert wrong.status_code == 400


@pytest.mark.parametrize("kind", ["one", "several"])
def test_methods_within_a_session(gateway: Callable[..., Any], stand_in: StandIn, server: Server, kind: str) -> None:
    raw = Raw(started(gateway, stand_in, kind, server))
    assert raw.ask("ping")["result"] == {}
    answer = raw.post({"id": 7, "method": "unknown/method"})
    assert answer.status_code != 404, "it would mean that the session is over"
    if kind == "several":
        refused(answer, 400, -32601)
        # A mistake of the client, too, is a name that leads to no target.
        for method, params in (("tools/call", {"name": "zz_x"}), ("prompts/get", {"name": "x"}), ("resources/read", {"uri": "zz+a:b"})):
            refused(raw.post({"id": 7, "method": method, "params": params}), 400, -32602)
        modern = Modern(raw.running)
        assert modern.post("tools/call", name="zz_x").json()["error"]["code"] == -32602
    else:
        assert messages(answer)[-1]["error"]["code"] == -32601, "the server's own word"
    assert raw.ask("ping")["result"] == {}


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_request_says_of_its_client(
    gateway: Callable[..., Any], stand_in: StandIn, server: Server, kind: str
) -> None:
    client = Modern(started(gateway, stand_in, kind, server))
    for meta in ({}, {SPACE + "clientCapabilities": {}}):
        body, fields = client.message("tools/list", meta)
        refused(client.http.post("/mcp", json=body, headers=fields), 400, -32602, body["id"])
    body, fields = client.message("tools/list")
    for params in ({}, None):
        without = {**body, "params": params} if params is not None else {key: body[key] for key in ("jsonrpc", "id", "method")}
        refused(client.http.post("/mcp", json=without, headers=fields), 400, -32602, body["id"])
    for info in (None, 5, "x", {"name": 1}):
        meta = META if info is None else {**META, SPACE + "clientInfo": info}
        assert "result" in client.ask("tools/list", meta), info
    # ask() has looked that no session came; one that is sent is refused.
    body, fields = client.message("tools/list")
    assert client.http.post("/mcp", json=body, headers={**fields, "mcp-session-id": "x"}).status_code == 400


@pytest.mark.parametrize("kind", ["one", "stateless"])
def test_a_request_reaches_one_server_unchanged(
    gateway: Callable[..., Any], stand_in: StandIn, server: Server, kind: str
) -> None:
    running = started(gateway, stand_in, kind, server)
    text = (
        '{"jsonrpc": "2.0",\n "id": "ü", "method":"tools/list", "params":{"cursor":"c", "more": 1.50, "_meta":{'
        f'"{SPACE}protocolVersion":"{NEW}", "{SPACE}clientCapabilities":{{}}, "{SPACE}clientInfo": 7, "own/key": []}}}}}}'
    )
    fields = {**ACCEPT, "mcp-protocol-version": NEW, "mcp-method": "tools/list", "mcp-param-x": "kept", "x-mine": "1"}
    answer = httpx.post(f"{running.url}/mcp", content=text.encode(), headers=fields, timeout=60)
    assert messages(answer)[-1]["id"] == "ü"
    [asked] = server.asked("tools/list")
    assert asked.text == text
    sent = {name: asked.fields[name] for name in ("mcp-protocol-version", "mcp-method", "mcp-param-x", "x-mine")}
    assert sent == {"mcp-protocol-version": NEW, "mcp-method": "tools/list", "mcp-param-x": "kept", "x-mine": "1"}
    assert "initialize" not in server.methods()


@pytest.mark.parametrize("kind", ["one", "several", "stateless"])
def test_a_trace_goes_along_in_what_a_request_says(
    gateway: Callable[..., Any], stand_in: StandIn, server: Server, kind: str
) -> None:
    running = started(gateway, stand_in, kind, server)
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=1", "baggage": "k=v"}
    raw = Raw(running, **trace)
    name = "t_call" if kind == "several" else "call"
    for params, meta in (
        ({"name": name}, trace),
        ({"name": name, "_meta": {"own": 1}}, {"own": 1, **trace}),
        ({"name": name, "_meta": {"traceparent": "mine"}}, {**trace, "traceparent": "mine"}),
        ({"name": name, "arguments": {"_meta": 5}}, trace),
    ):
        assert "result" in messages(raw.post({"id": 3, "method": "tools/call", "params": params}))[-1]
        assert server.asked("tools/call")[-1].message["params"]["_meta"] == meta
    assert "result" in messages(raw.post({"id": 3, "method": "ping"}))[-1]
    if kind != "stateless":
        assert server.asked("ping")[-1].message["params"]["_meta"] == trace
    assert server.asked("tools/call")[-1].fields["traceparent"] == trace["traceparent"]


# -- discovery -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["one", "stateless"])
def test_one_server_tells_its_revisions(gateway: Callable[..., Any], stand_in: StandIn, kind: str) -> None:
    server = stand_in.add(f"tells-{kind}", revisions=("2031-01-01", NEW), says={"instructions": "mine", "serverInfo": {"name": "x"}})
    client = Modern(started(gateway, stand_in, kind, server))
    found = client.ask("server/discover")["result"]
    assert found["supportedVersions"] == ["2031-01-01", NEW]
    assert (found["instructions"], found["serverInfo"]) == ("mine", {"name": "x"})
    assert "initialize" not in server.methods()


def test_several_servers_tell_what_all_of_them_speak(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    one = stand_in.add("inter-1", revisions=("2024-11-05", "2025-06-18", NEW, "2031-01-01"))
    two = stand_in.add("inter-2", revisions=("2025-06-18", "2025-11-25", NEW))
    three = stand_in.add("inter-3", revisions=(NEW,))
    client = Modern(gateway(config({"a": stand_in.target(one), "b": stand_in.target(two)})))
    assert client.ask("server/discover")["result"]["supportedVersions"] == ["2025-06-18", NEW]
    client = Modern(gateway(config({"a": stand_in.target(one), "c": stand_in.target(three)})))
    assert client.ask("server/discover")["result"]["supportedVersions"] == [NEW]


def test_old_new_and_dead_servers_in_one_backend(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    targets = {
        "old": stand_in.target(stand_in.add("mix-old")),
        "new": stand_in.target(stand_in.add("mix-new", revisions=(NEW,))),
        "dead": 'mcp: {host: "http://127.0.0.1:1/mcp"}',
    }
    running = gateway(config(targets, "  failureMode: failOpen\n"), settings="logging: {format: json}")
    answer = Modern(running).post("server/discover")
    assert refused(answer, 404, -32601, 1)
    raw = Raw(running)
    assert messages(raw.opened)[-1]["result"]["protocolVersion"] == "2025-06-18"
    assert raw.names("tools/list", "tools") == ["old_call", "new_call"]
    assert raw.text("new_call") == "mix-new called"
    [line] = lines(running, "server/discover")
    assert (line["mcp.error.code"], line["http.status"]) == (-32601, 404)
    assert line["mcp.error.message"] == "method not found: server/discover"


def test_a_server_that_fails_discovery_is_told_of(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    bad = stand_in.add("bad-discover", revisions=(NEW,), results={"server/discover": Fault(-32602, "on fire")})
    targets = {"a": stand_in.target(stand_in.add("good-discover", revisions=(NEW,))), "b": stand_in.target(bad)}
    running = gateway(config(targets), settings="logging: {format: json}")
    found = messages(Modern(running).post("server/discover"))[-1]["error"]
    assert (found["code"], found["message"]) == (-32602, "b: on fire")
    [line] = lines(running, "server/discover")
    assert (line["mcp.error.code"], line["mcp.error.message"]) == (-32602, "b: on fire")
    tolerant = Modern(gateway(config(targets, "  failureMode: failOpen\n")))
    assert tolerant.ask("server/discover")["result"]["supportedVersions"] == [NEW]


def test_methods_of_processes(gateway: Callable[..., Any]) -> None:
    raw = Raw(gateway(config({"a": SAMPLE})))
    assert raw.ask("ping")["result"] == {}
    assert raw.post({"id": 7, "method": "unknown/method"}).status_code != 404
