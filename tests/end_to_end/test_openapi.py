"""HTTP services as MCP servers: the official client calls the operations of a document."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
from mcp.shared.exceptions import MCPError
from tests.end_to_end.asking import leaving
from tests.end_to_end.federation_rig import SAMPLE, Raw, client, config
from tests.end_to_end.tracing import wait_for

pytestmark = pytest.mark.warm

DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Pets", "version": "7"},
    "servers": [{"url": "https://ignored.example/v1"}],
    "paths": {
        "/pets/{id}": {
            "parameters": [{"$ref": "#/components/parameters/Id"}],
            "get": {
                "operationId": "get_pet",
                "summary": "One pet",
                "parameters": [
                    {"name": "fields", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                    {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                    {"name": "User-Agent", "in": "header", "schema": {"type": "string"}},
                ],
            },
            "put": {
                "operationId": "put_pet",
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}},
                },
            },
        },
        "/blobs": {
            "post": {"operationId": "put_blob", "requestBody": {"content": {"application/octet-stream": {}}}}
        },
        "/answers/{kind}": {"get": {"operationId": "answer"}},
    },
    "components": {
        "parameters": {"Id": {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}},
        "schemas": {"Pet": {"type": "object", "properties": {"name": {"type": "string"}}}},
    },
}
ANSWERS: dict[str, tuple[int, bytes, dict[str, str]]] = {
    "list": (200, b"[1, 2]", {}),
    "null": (200, b"null", {}),
    "none": (404, b'{"error": "no such pet"}', {}),
    "text": (400, b"bad words", {"content-type": "text/plain"}),
    "busy": (503, b"come back", {}),
    "gzip": (200, gzip.compress(b'{"packed": true}'), {"content-encoding": "gzip"}),
    "bomb": (200, gzip.compress(b"0" * 20_000_000), {"content-encoding": "gzip"}),
    "brotli": (200, b"??", {"content-encoding": "br"}),
    "empty": (204, b"", {}),
}


class Service(BaseHTTPRequestHandler):
    """Says what it was asked; /v1/answers/<kind> says ANSWERS; /api.json is the document; /slow waits for the end."""

    seen: ClassVar[list[dict[str, Any]]] = []
    gone: ClassVar[threading.Event] = threading.Event()
    document: ClassVar[bytes] = json.dumps(DOCUMENT).encode()
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length)
        said = {
            "method": self.command,
            "target": self.path,
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "body": body.decode("latin-1"),
        }
        self.seen.append(said)
        kind = self.path.removeprefix("/v1/answers/")
        status, answer, fields = ANSWERS.get(kind, (200, json.dumps(said).encode(), {}))
        if self.path == "/api.json":
            answer = self.document
        elif kind == "slow":
            self.gone.clear()
            self.connection.settimeout(20)
            # The gateway closes its connection when nobody waits any more.
            if self.connection.recv(1) == b"":
                self.gone.set()
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in {"content-type": "application/json", **fields}.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_PUT = do_POST = _serve

    def log_message(self, *_: object) -> None:
        """Nothing: pytest has enough to say."""


@pytest.fixture
def service() -> Iterator[int]:
    Service.seen.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def target(port: int, schema: str = "{file: api.json}", policies: str = "") -> str:
    text = f'openapi: {{host: "http://127.0.0.1:{port}/ignored", schema: {schema}}}'
    return f"{text}\n    policies: {policies}" if policies else text


@pytest.fixture
def api(gateway: Callable[..., Any], service: int, tmp_path: Any) -> Callable[..., Any]:
    """`api(policies)` starts a gateway with the service as its one target, its document a file."""
    path = tmp_path / "api.json"
    path.write_text(json.dumps(DOCUMENT))
    return lambda policies="", more="": gateway(
        config({"pets": target(service, f"{{file: {json.dumps(str(path))}}}", policies)}, more)
    )


def test_operations_are_tools_of_the_official_client(api: Callable[..., Any]) -> None:
    async def use() -> None:
        async with client(running) as session:
            tools = {tool.name: tool for tool in (await session.list_tools()).tools}
            assert list(tools) == ["get_pet", "put_pet", "put_blob", "answer"]
            assert tools["get_pet"].title == tools["get_pet"].description == "One pet"
            assert tools["put_pet"].input_schema == {
                "type": "object",
                "required": ["path", "body"],
                "properties": {
                    "path": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}},
                    "body": {"type": "object", "properties": {"name": {"type": "string"}}},
                },
            }
            arguments = {
                "path": {"id": "../a b"},
                "query": {"fields": ["name", "a&b"]},
                "header": {"X-Trace": "t1", "User-Agent": "mine", "X-Other": "no", "Host": "evil"},
            }
            found = await session.call_tool("get_pet", arguments)
            said = found.structured_content
            assert said is not None
            assert json.loads(found.content[0].text) == said  # type: ignore[union-attr]
            assert (said["method"], said["target"]) == ("GET", "/v1/pets/..%2Fa%20b?fields=name&fields=a%26b")
            assert said["headers"]["x-trace"] == "t1"
            assert said["headers"]["accept"] == "application/json"
            # The client's own field comes first; what only the client and the gateway have to say stays here.
            assert said["headers"]["user-agent"] != "mine"
            assert said["headers"]["host"].startswith("127.0.0.1")
            assert "x-other" not in said["headers"]
            assert not [name for name in said["headers"] if name.startswith("mcp-")]
            said = (await session.call_tool("put_pet", {"path": {"id": "1"}, "body": {"name": "Ü"}})).structured_content
            assert said is not None
            assert (said["method"], said["headers"]["content-type"]) == ("PUT", "application/json")
            assert said["body"].encode("latin-1").decode() == '{"name":"Ü"}'
            said = (await session.call_tool("put_blob", {"body": "AAH/"})).structured_content
            assert said is not None
            assert (said["headers"]["content-type"], said["body"]) == ("application/octet-stream", "\x00\x01\xff")
            await session.send_ping()
            assert (await session.list_prompts()).prompts == []
            assert (await session.list_resources()).resources == []

    running = api()
    asyncio.run(use())


def test_answers_of_the_service(api: Callable[..., Any]) -> None:
    raw = Raw(api())
    opened = json.loads(raw.opened.text.partition("data: ")[2])["result"]
    assert opened["serverInfo"] == {"name": "Pets", "version": "7"}
    assert opened["capabilities"] == {"tools": {}}

    def answer(kind: str) -> dict[str, Any]:
        return raw.ask("tools/call", name="answer", arguments={"path": {"kind": kind}})

    assert answer("list")["result"]["structuredContent"] == {"data": [1, 2]}
    assert "structuredContent" not in answer("null")["result"]
    none = answer("none")["result"]
    assert (none["structuredContent"], none["_meta"]) == ({"error": "no such pet"}, {"headgate.dev/status": 404})
    assert answer("text")["result"]["structuredContent"] == {"code": 400, "message": "bad words"}
    assert answer("empty")["result"]["structuredContent"] == {"code": 204, "message": ""}
    assert answer("gzip")["result"]["structuredContent"] == {"packed": True}
    busy = answer("busy")["error"]
    assert busy == {"code": -32603, "message": "Upstream API call for tool 'answer' failed with status 503: come back"}
    assert "longer than" in answer("bomb")["error"]["message"]
    assert "cannot be decompressed" in answer("brotli")["error"]["message"]
    assert raw.ask("tools/call", name="nope")["error"] == {"code": -32602, "message": "tool nope not found"}
    dots = raw.ask("tools/call", name="answer", arguments={"path": {"kind": ".."}})["error"]
    assert (dots["code"], "dot segment" in dots["message"]) == (-32602, True)
    assert raw.ask("resources/read", uri="a:b")["error"]["code"] == -32601
    assert raw.ask("logging/setLevel", level="info")["result"] == {}


def test_policies_of_the_target_and_credentials_of_the_client(api: Callable[..., Any], service: int) -> None:
    policies = "{backendAuth: {key: s3cret}, requestHeaderModifier: {set: {x-team: red}}}"
    running = api(policies)
    raw = Raw(running)
    hostile = {"authorization": "Bearer inbound", "cookie": "inbound=1", "x-api-key": "inbound", "last-event-id": "9"}
    raw.http.headers.update(hostile)
    said = raw.ask("tools/call", name="get_pet", arguments={"path": {"id": "1"}})["result"]["structuredContent"]
    assert said["headers"]["authorization"] == "Bearer s3cret"
    assert said["headers"]["x-team"] == "red"
    assert "inbound" not in json.dumps(Service.seen)
    assert not {"cookie", "x-api-key", "last-event-id", "mcp-session-id"} & set(said["headers"])
    # A session goes on with the policies of a newer configuration.
    text = running.path.read_text()
    running.write(text[text.index("gateways:") :].replace("s3cret", "n3wer").replace("red", "blue"))
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        said = raw.ask("tools/call", name="get_pet", arguments={"path": {"id": "1"}})["result"]["structuredContent"]
        if said["headers"]["x-team"] == "blue":
            break
    assert (said["headers"]["authorization"], said["headers"]["x-team"]) == ("Bearer n3wer", "blue")


def test_a_client_that_leaves_ends_its_call(api: Callable[..., Any]) -> None:
    running = api()
    raw = Raw(running)
    body = {"id": 9, "method": "tools/call", "params": {"name": "answer", "arguments": {"path": {"kind": "slow"}}}}
    with leaving(raw, {"jsonrpc": "2.0", **body}):
        wait_for(lambda: any(one["target"].endswith("/slow") for one in Service.seen))
    assert Service.gone.wait(40)


def test_beside_other_targets_names_are_prefixed_and_a_document_out_of_reach_is_passed_over(
    gateway: Callable[..., Any], service: int, tmp_path: Any
) -> None:
    url = f'{{url: "http://127.0.0.1:{service}/api.json"}}'
    dead = f'{{url: "http://127.0.0.1:{service}/v1/answers/none"}}'
    running = gateway(
        config({"pets": target(service, url), "gone": target(service, dead), "sample": SAMPLE}, "  failureMode: failOpen\n")
    )
    raw = Raw(running)
    names = raw.names("tools/list", "tools")
    assert {"pets_get_pet", "pets_put_pet", "pets_put_blob", "pets_answer"} < set(names)
    assert not [name for name in names if name.startswith("gone_")]
    said = raw.ask("tools/call", name="pets_get_pet", arguments={"path": {"id": "1"}})["result"]["structuredContent"]
    assert said["target"] == "/v1/pets/1"
    running.wait_log("cannot read OpenAPI document")
    strict = gateway(config({"gone": target(service, dead)}))
    answer = Raw(strict).opened
    assert answer.status_code == 500
    assert "the OpenAPI document cannot be used: status 404" in answer.text


def test_a_changed_document_changes_the_tools_of_the_session(api: Callable[..., Any], tmp_path: Any) -> None:
    raw = Raw(api())
    assert "answer" in raw.names("tools/list", "tools")
    changed = {**DOCUMENT, "paths": {"/new": {"get": {"operationId": "brand_new"}}}}
    (tmp_path / "api.new").write_text(json.dumps(changed))
    (tmp_path / "api.new").rename(tmp_path / "api.json")
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        names = raw.names("tools/list", "tools")
        if names == ["brand_new"]:
            break
    assert names == ["brand_new"]


def test_errors_of_calls_reach_the_official_client(api: Callable[..., Any]) -> None:
    async def use() -> None:
        async with client(running) as session:
            with pytest.raises(MCPError, match="failed with status 503"):
                await session.call_tool("answer", {"path": {"kind": "busy"}})
            with pytest.raises(MCPError, match=r"path\.kind is missing"):
                await session.call_tool("answer", {})

    running = api()
    asyncio.run(use())
