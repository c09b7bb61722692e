"""Where messages are posted to, only ever to the origin of the stream; and who has ended a connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from headgate.backend.mcp.targets.remote import Remote
from headgate.backend.mcp.targets.sse import SseServer, endpoint_path
from headgate.dialect.mcp.jsonrpc import parse
from headgate.ir.endpoint import Endpoint
from headgate.ir.mcp import SseTarget

BASE = "http://h.test:80/a/sse?x=1"


@pytest.mark.parametrize(
    ("announced", "path"),
    [
        ("/messages?session_id=1", "/messages?session_id=1"),
        ("?s=1", "/a/sse?s=1"),
        ("messages/1", "/a/messages/1"),
        ("../m", "/m"),
        ("http://h.test/m?s=2#f", "/m?s=2"),
        ("http://H.test:80/m", "/m"),
        ("//h.test/m", "/m"),
        ("http://h.test", "/"),
    ],
)
def test_endpoints_of_the_own_origin(announced: str, path: str) -> None:
    assert endpoint_path(BASE, announced) == path


@pytest.mark.parametrize(
    "announced",
    [
        "http://evil.test/m",
        "https://h.test/m",
        "http://h.test:81/m",
        "//evil.test/m",
        "http://h.test@evil.test/m",
        "http://user@h.test/m",
        "file:///etc/passwd",
        "/a\r\nhost: evil",
        "/a b",
        "\\\\evil.test\\m",
        "http://[::1",
        "http://h.test:x/m",
    ],
)
def test_endpoints_elsewhere_are_refused(announced: str) -> None:
    with pytest.raises(ValueError, match=r"(?i)origin|URL|port|invalid|IPv6"):
        endpoint_path(BASE, announced)


class Stream:
    """The response to each request: the stream with the endpoint, which lasts until `over` is set."""

    status, headers = 200, ()

    def __init__(self, over: asyncio.Event) -> None:
        self._over = over

    def header(self, name: str) -> str | None:
        return "text/event-stream" if name.lower() == "content-type" else None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"event: endpoint\ndata: /m\n\n"
        await self._over.wait()

    async def aclose(self) -> None: ...


class Client:
    def __init__(self) -> None:
        self.over = asyncio.Event()

    async def request(self, *_request: Any) -> Any:
        return Stream(self.over)


@pytest.mark.parametrize(("stopped", "reason"), [(True, "was stopped"), (False, "ended")])
def test_a_call_hears_who_has_ended_the_connection(stopped: bool, reason: str) -> None:
    async def run() -> None:
        client: Any = Client()
        target = SseTarget(key="k", name="t", endpoint=Endpoint(key="e", host="h.test", port=80), path="/sse")
        server = SseServer(target, Remote(client, "h.test"), lambda: None)
        await server.start([])
        exchange = await server.send(parse(b'{"jsonrpc":"2.0","id":1,"method":"m"}'), [])
        assert exchange is not None
        if stopped:
            await server.stop()
        else:
            client.over.set()
        text = await exchange.inbox.get()
        assert json.loads(text or b"")["error"]["message"] == f"MCP server t {reason} before it answered"
        await server.stop()

    asyncio.run(run())
