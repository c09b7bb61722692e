"""What MCP requests tell."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.backend.mcp.request_telemetry import (
    MAX_TEXT,
    RequestTelemetry,
    addressed,
    error_in,
    log_without_message,
    response_in,
)
from headgate.dialect.mcp.jsonrpc import parse
from headgate_engine.context.request import make_context

CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a_echo","arguments":{"x":1}}}'
RESULT = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"the \\"error\\" is here"}]}}'
ERROR = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool: a"}}'


class FakeCall:
    def __init__(self) -> None:
        self.context: Any = make_context()
        self.telemetry: RequestTelemetry | None = None

    def add_log_field(self, key: str, value: object) -> None:
        self.context.add_log_field(key, value)

    @property
    def log(self) -> dict[str, object]:
        found = self.context.log_field_items
        assert len(dict(found)) == len(found), "a field stands twice"
        return dict(found)


def telemetry(text: bytes, session: str | None = "s" * 40, server: str | None = None) -> tuple[FakeCall, RequestTelemetry, list[str | None]]:
    call, counted = FakeCall(), []
    call.telemetry = RequestTelemetry(call, parse(text), session, server, lambda _call, one: counted.append(one.name))  # type: ignore[arg-type]
    return call, call.telemetry, counted


def shown(call: FakeCall) -> Any:
    return call.context.dynamic["mcp"]


def test_a_call_of_one_of_several_targets() -> None:
    call, found, counted = telemetry(CALL)
    assert call.log == {"mcp.method.name": "tools/call", "mcp.session.id": "s" * 16, "mcp.resource.type": "tool"}
    assert "tool" not in shown(call), "nobody knows yet whose it is"
    assert shown(call)["methodName"] == "tools/call"
    assert shown(call)["sessionId"] == "s" * 40
    addressed(call, "a", "echo", "tool")  # type: ignore[arg-type]
    assert call.log | {"mcp.target": "a", "gen_ai.tool.name": "echo"} == call.log
    assert shown(call)["tool"] == {"target": "a", "name": "echo", "arguments": {"x": 1}}
    found.ended(200, b"event: message\ndata: " + RESULT + b"\n\n")
    assert shown(call)["tool"]["result"]["content"][0]["type"] == "text"
    assert (found.failed, counted) == (False, ["echo"])
    assert not {"mcp.error.code", "mcp.error.message"} & set(call.log)
    found.ended(500, ERROR)
    assert (found.failed, counted) == (False, ["echo"]), "only one end"


def test_what_is_known_is_told_once() -> None:
    call, found, _ = telemetry(CALL, server="a")
    before = call.log
    addressed(call, "a", "a_echo", "tool")  # type: ignore[arg-type]
    addressed(call, "a", None, "")  # type: ignore[arg-type]
    assert call.log == before
    assert found.server == "a"


def test_the_only_target_is_known_from_the_start() -> None:
    for text, kind, field in (
        (CALL, "tool", "gen_ai.tool.name"),
        (CALL.replace(b"tools/call", b"prompts/get"), "prompt", "gen_ai.prompt.name"),
        (b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a_echo"}}', "resource", "mcp.resource.uri"),
    ):
        call, _, _ = telemetry(text, None, "only")
        assert (call.log["mcp.target"], call.log[field]) == ("only", "a_echo")
        assert "mcp.session.id" not in call.log
        assert "sessionId" not in shown(call)
        assert [one for one in ("tool", "prompt", "resource", "task") if one in shown(call)] == [kind]
        assert ("arguments" in shown(call)[kind]) == (kind != "resource")


def test_errors() -> None:
    call, found, counted = telemetry(CALL, server="a")
    found.ended(200, b": quiet\n\nevent: message\r\ndata: " + ERROR + b"\r\n\r\n")
    assert (call.log["mcp.error.code"], call.log["mcp.error.message"]) == (-32602, "Unknown tool: a")
    assert (found.failed, counted) == (True, ["a_echo"])
    assert shown(call)["tool"]["error"]["code"] == -32602
    call, found, _ = telemetry(CALL)
    call.add_log_field("mcp.error.message", "said before")
    found.ended(400, ERROR.replace(b"Unknown", b"x" * 1000))
    assert call.log["mcp.error.message"] == "said before"
    call, found, _ = telemetry(CALL)
    found.ended(200, ERROR.replace(b"Unknown", b"x" * 1000))
    assert call.log["mcp.error.message"] == "x" * MAX_TEXT
    for status in (0, 404, 500):
        _, found, _ = telemetry(CALL)
        found.ended(status, b"")
        assert found.failed


@pytest.mark.parametrize(("text", "outcome"), [
    (b"", b""), (b'{"a":1}', b'{"a":1}'), (b"mcp: session not found", b""), (b": c\n\n", b""),
    (b"data: 1\n\ndata: 2\n\n", b"2"), (b"id: 7\ndata: {\ndata: }\n\n", b"{\n}"), (b"data:x\n\n: end\n\n", b""),
])  # fmt: skip
def test_the_response_of_an_answer(text: bytes, outcome: bytes) -> None:
    assert response_in(text) == outcome


def test_what_is_no_error() -> None:
    for text in (b"", RESULT, b'{"error": 1', b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"error":{"code":1}}}'):
        assert error_in(text) is None


def test_requests_without_a_message() -> None:
    call = FakeCall()
    log_without_message(call, "s" * 40, "a")  # type: ignore[arg-type]
    assert call.log == {"mcp.target": "a", "mcp.session.id": "s" * 16}
    call = FakeCall()
    log_without_message(call, None, None)  # type: ignore[arg-type]
    addressed(call, "b", "x", "tool")  # type: ignore[arg-type]
    assert call.log == {"mcp.target": "b"}
