"""What becomes of requests to a process whose client or session goes, and what the target's meter hears of it."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.backend.mcp.failure import OwnFailure
from headgate.backend.mcp.federation.link import ServerLink
from headgate.backend.mcp.stdio_service import answer
from headgate.backend.mcp.target_calls import CountedCall
from headgate.backend.mcp.targets import exchanges
from headgate.backend.mcp.targets.exchanges import Exchanges
from headgate.dialect.mcp.jsonrpc import parse
from headgate.net.tasks import spawn

REQUEST = parse(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}')
CANCELLED = parse(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}')


class Meter:
    def __init__(self) -> None:
        self.told: list[str] = []

    def answered(self, _took_ns: int, _method: str | None, _text: bytes) -> None:
        self.told.append("answered")

    def failed(self, _took_ns: int, text: str) -> None:
        self.told.append(text)


class Server(Exchanges):
    """Answers nothing."""

    dead = False

    def __init__(self) -> None:
        super().__init__("t", self._take)
        self.written = asyncio.Event()

    async def _take(self, _text: bytes) -> None:
        self.written.set()

    async def start(self, fields: Any) -> None:
        pass

    async def send(self, message: Any, fields: Any = None) -> Any:
        return await super().send(message)


class Client:
    """A call that takes its response whole, or as a stream without events."""

    begun = None

    def __init__(self) -> None:
        self.body: bytes | None = None

    def reply(self, _status: int, _fields: Any, body: bytes) -> None:
        self.body = body

    def stream(self, _status: int, _fields: Any) -> Any:
        async def end() -> None:
            pass

        return SimpleNamespace(end=end)


@pytest.mark.parametrize(
    ("end", "told"), [("cancelled", []), ("stopped", []), ("ended", [exchanges.ENDED]), ("answered", ["answered"])]
)
def test_only_what_the_process_does_is_counted(end: str, told: list[str]) -> None:
    async def run() -> None:
        server, meter = Server(), Meter()
        client: Any = Client()
        session: Any = SimpleNamespace(server=server, answers=None)
        exchange = await server.send(REQUEST)
        counted = CountedCall(meter, REQUEST)  # type: ignore[arg-type]
        answering = spawn("answer", answer(client, session, exchange, [], counted))
        if end == "cancelled":
            await server.send(CANCELLED)
        elif end == "answered":
            server.receive(b'{"jsonrpc":"2.0","id":1,"result":{}}')
        else:
            server.end(stopped=end == "stopped")
        found = await answering
        assert meter.told == told
        assert (client.body is None) == (end == "cancelled") == (found == b"")
        if end == "stopped":
            assert json.loads(found)["error"]["message"] == "MCP server t was stopped before it answered"

    asyncio.run(run())


def test_a_federated_call_that_the_client_cancels_is_no_failure_of_the_server() -> None:
    async def run() -> None:
        server = Server()
        link = ServerLink("t", lambda: server)

        async def ignored(text: bytes) -> None:
            pass

        asking = spawn("ask", link.ask(REQUEST, [], ignored))
        await server.written.wait()
        await link.notify(CANCELLED, [])
        with pytest.raises(OwnFailure, match="the request was cancelled"):
            await asking

    asyncio.run(run())


def test_a_limit_of_the_gateway_is_no_failure_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchanges, "MAX_PENDING", 0)
    with pytest.raises(OwnFailure, match="too many requests"):
        asyncio.run(Server().send(REQUEST))
