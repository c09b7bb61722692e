"""Which requests to the links of a session the meters of their targets hear of."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from headgate.backend.mcp.federation.group import LinkGroup
from headgate.backend.mcp.federation.modern_link import EitherLink, ModernLink
from headgate.backend.mcp.federation.stateless_target import StatelessTarget
from headgate.backend.mcp.federation.target_answer import RequestTarget
from headgate.backend.mcp.targets.openapi import OpenApiLink
from headgate.dialect.mcp.jsonrpc import RpcMessage, parse


class Meter:
    def __init__(self) -> None:
        self.told: list[str | None] = []

    def answered(self, _took_ns: int, method: str | None, _text: bytes) -> None:
        self.told.append(method)


class Server(RequestTarget):
    """Answers everything."""

    name, pinned, state, capabilities = "t", False, None, None

    def __init__(self, meter: Any) -> None:
        self.meter = meter

    async def request(self, message: RpcMessage, fields: Any) -> AsyncGenerator[bytes, None]:
        yield b'{"jsonrpc":"2.0","id":%b,"result":{"resultType":"complete"}}' % (message.raw_id or b"0")


class Service(OpenApiLink):
    """Answers everything as a service with a document would."""

    async def request(self, message: RpcMessage, fields: Any) -> AsyncGenerator[bytes, None]:
        yield b'{"jsonrpc":"2.0","id":1,"result":{}}'


def link_of(kind: str, meter: Any) -> Any:
    remote: Any = None
    match kind:
        case "server":
            return EitherLink(lambda _state: Server(meter), None)
        case "bridged":
            return EitherLink(lambda _state: ModernLink(Server(meter)), None)
        case "service":
            return Service("t", remote, meter)
    return StatelessTarget("t", lambda: Service("t", remote, meter), False, 1.0, meter).link(True, None)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("server", ["ping", "logging/setLevel", "tools/list", "tools/call"]),
        ("bridged", ["tools/list", "tools/call"]),
        ("service", ["tools/call"]),
        ("service without sessions", ["tools/call"]),
    ],
)
def test_what_the_gateway_answers_by_itself_says_nothing_of_the_target(kind: str, told: list[str]) -> None:
    async def run() -> None:
        meter = Meter()
        group = LinkGroup({"t": link_of(kind, meter)}, True)

        async def nobody(_text: bytes) -> None: ...

        for method in ("ping", "logging/setLevel", "tools/list", "tools/call"):
            message = parse(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}}).encode())
            for ask in (group.ask, group.ask_in_time):
                outcome = await ask("t", message, [], nobody)
                assert outcome.good, outcome.failure
        assert meter.told == [method for method in told for _ in range(2)]

    asyncio.run(run())
