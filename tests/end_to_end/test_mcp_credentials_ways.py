"""No credential of a client reaches an MCP target unless `passthrough` says so: clients over HTTP+SSE, of backends without
sessions and of revision 2026-07-28, and processes. With sessions over StreamableHTTP: test_mcp_credentials.py.
"""

from __future__ import annotations

import concurrent.futures
import json
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from tests.end_to_end.federation_rig import ACCEPT, ASKING, INITIALIZE, messages
from tests.end_to_end.legacy_sse_rig import RawSse
from tests.end_to_end.mcp_credentials_rig import INBOUND, OUTBOUND, TAKEN, TOKEN, Way, allowed, target_of
from tests.end_to_end.modern_rig import META, NEW
from tests.end_to_end.recorder import Recorder

pytestmark = pytest.mark.warm

CLIENTS = ("legacy", "stateless", "modern")
OUT = ("none", "key", "passthrough", "passthrough-header")
TRANSPORTS = ("plain", "mcp", "sse", "openapi", "new")


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    found = Recorder()
    yield found
    found.stop()


def cases(client: str) -> Iterator[tuple[str, str, str, str]]:
    for way in INBOUND:
        for out in OUT:
            # Each way in meets each way out and each transport, if not all of both.
            if out in ("key", "passthrough-header") and way not in ("raw", "jwt", "basic"):
                continue
            for transport in TRANSPORTS if way in ("raw", "jwt", "mcp") else TRANSPORTS[1:4]:
                yield f"{client}.{way}.{out}.{transport}", way, out, transport


def route(client: str, case: tuple[str, str, str, str], recorder: Recorder) -> dict[str, Any]:
    key, way, out, transport = case
    auth = OUTBOUND[out][0]
    target = target_of("mcp" if transport == "new" else transport, key, recorder, {"backendAuth": auth} if auth else {})
    if transport == "new":
        target["mcp"] = {"host": f"http://127.0.0.1:{recorder.port}/r/{key}/new"}
    mcp: dict[str, Any] = {"targets": [target], **({} if transport == "plain" else {"prefixMode": "always"})}
    if client == "stateless":
        mcp["statefulMode"] = "stateless"
    return {
        "matches": [{"path": {"pathPrefix": f"/{key}"}}],
        "policies": {**INBOUND[way].policies, "urlRewrite": {"path": {"prefix": "/"}}},
        "backends": [{"mcp": mcp}],
    }


def tool_call(transport: str) -> dict[str, Any]:
    arguments = {"header": {"Authorization": "Bearer argument"}}
    return {"name": "call" if transport == "plain" else "t_call", "arguments": arguments if transport == "openapi" else {}}


def use_legacy(running: Any, key: str, way: Way, transport: str) -> None:
    raw = RawSse(running, f"/{key}/sse{way.query}", **way.fields)
    raw.open()
    raw.ask("tools/list")
    assert "result" in raw.ask("tools/call", **tool_call(transport)), key
    assert raw.post({"method": "notifications/roots/list_changed"}).status_code == 202
    raw.sock.shutdown(socket.SHUT_RDWR)


def use_without_session(running: Any, key: str, way: Way, transport: str, modern: bool) -> None:
    url = f"{running.url}/{key}/mcp{way.query}"
    with httpx.Client(headers={**ACCEPT, **way.fields}, timeout=30) as http:
        asked: list[tuple[str, dict[str, Any]]] = [("tools/list", {}), ("tools/call", tool_call(transport))]
        if not modern:
            asked.insert(0, ("initialize", INITIALIZE))
        for number, (method, params) in enumerate(asked):
            fields = {}
            if modern:
                params = {**params, "_meta": META}
                fields = {"mcp-protocol-version": NEW, "mcp-method": method}
                fields |= {"mcp-name": params["name"]} if "name" in params else {}
            body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            answer = http.post(url, json=body, headers=fields)
            assert "result" in messages(answer)[-1], (key, answer.text)


@pytest.mark.parametrize("client", CLIENTS)
def test_credentials_stay_here(gateway: Callable[..., Any], recorder: Recorder, client: str) -> None:
    routes = [route(client, case, recorder) for case in cases(client)]
    running = gateway("gateways: {default: {port: {port}}}\nroutes: " + json.dumps(routes) + "\n")

    def used(case: tuple[str, str, str, str]) -> None:
        key, way, _, transport = case
        if client == "legacy":
            use_legacy(running, key, INBOUND[way], transport)
        else:
            use_without_session(running, key, INBOUND[way], transport, client == "modern")

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for _ in pool.map(used, cases(client)):
            pass
    faults = []
    for key, way, out, _ in cases(client):
        seen = list(recorder.seen[key])
        assert any("call" in one.text for one in seen), key
        field = allowed(out, way)
        for one in seen:
            text = one._replace(fields={name: value for name, value in one.fields.items() if name != field}).text
            faults += [key for secret in INBOUND[way].secrets if secret in text]
            if not OUTBOUND[out][1](one) or "Bearer argument" in one.fields.values():
                faults.append(key)
        if out == "passthrough" and way in TAKEN:
            faults += [key for one in seen if one.fields.get("authorization") != f"Bearer {TOKEN}"]
    assert not faults


def test_a_process_is_told_nothing_of_who_asks(gateway: Callable[..., Any]) -> None:
    """Neither its environment nor what it reads has a credential of a client."""
    [process, other] = [{"name": name, "stdio": {"cmd": sys.executable, "args": [str(ASKING), name]}} for name in "ab"]
    kinds: dict[str, dict[str, Any]] = {
        "one": {"targets": [process]},
        "several": {"targets": [process, other]},
        "stateless": {"targets": [process], "statefulMode": "stateless"},
    }
    ways = [(f"{kind}.{name}", kind, way) for kind in kinds for name, way in INBOUND.items() if kind != "several" or name in ("raw", "jwt")]
    routes = [
        {"matches": [{"path": {"pathPrefix": f"/{key}"}}], "policies": way.policies, "backends": [{"mcp": kinds[kind]}]}
        for key, kind, way in ways
    ]
    running = gateway("gateways: {default: {port: {port}}}\nroutes: " + json.dumps(routes) + "\n")

    def told(key: str, kind: str, way: Way) -> str:
        url = f"{running.url}/{key}{way.query}"
        with httpx.Client(headers={**ACCEPT, **way.fields}, timeout=30) as http:
            opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}
            opened = http.post(url, json=opening)
            assert opened.status_code == 200, (key, opened.text)
            if kind != "stateless":
                http.headers["mcp-session-id"] = opened.headers["mcp-session-id"]
            tool = "a_tell" if kind == "several" else "tell"
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool}}
            found = messages(http.post(url, json=call))[-1]["result"]["content"][0]["text"]
            if kind != "stateless":
                http.delete(url)
            return str(found)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        texts = list(pool.map(lambda way: told(*way), ways))
    for (key, _, way), text in zip(ways, texts, strict=True):
        assert '"received"' in text, key
        assert not [secret for secret in way.secrets if secret in text], key
