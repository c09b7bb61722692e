"""Which requests to the links of a session the meters of their targets hear of."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.backend.mcp.federation.group import LinkGroup
from headgate.backend.mcp.federation.modern_link import EitherLink, ModernLink
from headgate.backend.mcp.federation.stateless_target import StatelessTarget
from headgate.backend.mcp.federation.target_answer import RequestTarget
from headgate.backend.mcp.targets.openapi import OpenApiLink
from headgate.dialect.mcp.jsonrpc import RpcMessage, parse
from headgate.dialect.openapi.tools import Api, read_tools


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


@pytest.mark.parametrize("name", ["nope", "read"])
def test_a_call_that_never_goes_out_is_no_error_of_the_service(name: str) -> None:
    """A tool that its document does not have, and arguments that do not fit."""

    async def run() -> None:
        meter: Any = Meter()
        api = read_tools(
            '{"openapi":"3.0.0","paths":{"/a/{b}":{"get":{"operationId":"read","parameters":'
            '[{"name":"b","in":"path","required":true,"schema":{"type":"string"}}]}}}}'
        )

        async def found() -> Api:
            return api

        remote: Any = SimpleNamespace(document=SimpleNamespace(api=found), policies=None, timeout_s=None)
        group = LinkGroup({"t": OpenApiLink("t", remote, meter)}, True)

        async def nobody(_text: bytes) -> None: ...

        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": {}}}
        outcome = await group.ask("t", parse(json.dumps(call).encode()), [], nobody)
        assert (outcome.error or {})["code"] == -32602
        assert meter.told == []

    asyncio.run(run())
