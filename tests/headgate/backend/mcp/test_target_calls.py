"""Calls of targets that Python makes, and what their meter gets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headgate.backend.mcp.failure import (
    NoAnswer,
    OwnFailure,
    OwnRefusal,
    TargetFailure,
    TargetRefusal,
    call_failure,
)
from headgate.backend.mcp.target_calls import CountedCall
from headgate.backend.mcp.targets.exchanges import ENDED, STOPPED
from headgate.dialect.mcp.jsonrpc import error_message, parse
from headgate_engine.link.client import CallError

REQUEST = parse(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}')
NOTIFICATION = parse(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')


class Meter:
    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.took: list[int] = []

    def answered(self, took_ns: int, method: str | None, text: bytes) -> None:
        self.took.append(took_ns)
        self.told.append(("answered", method, text))

    def refused_with(self, _took_ns: int, text: str) -> None:
        self.told.append(("refused", text))

    def failed(self, _took_ns: int, text: str) -> None:
        self.told.append(("failed", text))


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (TargetFailure("upstream call timeout"), ("failed", "upstream call timeout")),
        (TargetRefusal(404, [], b""), ("refused", "status 404")),
        (TargetRefusal(503, [], b""), ("failed", "status 503")),
        (NoAnswer("there was no answer"), ("refused", "there was no answer")),
    ],
)
def test_a_failure_is_told_once(failure: TargetFailure, told: tuple[str, str]) -> None:
    meter: Any = Meter()
    call = CountedCall(meter, REQUEST)
    call.ended(failure)
    call.answered(b"late")
    assert meter.told == [told]


def test_the_error_for_a_server_that_has_ended_is_a_failure() -> None:
    meter: Any = Meter()
    CountedCall(meter, REQUEST).answered(error_message(b"1", -32603, f"MCP server a {ENDED}"))
    assert meter.told == [("failed", ENDED)]


REFUSED = CallError("too many calls wait for a connection", refused=True)


def test_a_call_that_finds_nobody_is_a_failure() -> None:
    meter: Any = Meter()
    CountedCall(meter, REQUEST).ended(call_failure(ConnectionError("connection refused")))
    assert meter.told == [("failed", "upstream call failed: connection refused")]


@pytest.mark.parametrize(
    "failure", [OwnFailure("the request was cancelled"), OwnRefusal(503, [], b""), call_failure(REFUSED)]
)
def test_what_the_gateway_decides_says_nothing_of_the_target(failure: TargetFailure) -> None:
    meter: Any = Meter()
    call = CountedCall(meter, REQUEST)
    call.ended(failure)
    call.failed("late")
    CountedCall(meter, REQUEST).answered(error_message(b"1", -32603, f"MCP server a {STOPPED}"))
    assert meter.told == []


def test_a_result_may_say_what_errors_of_the_gateway_say() -> None:
    meter: Any = Meter()
    text = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"it ended before it answered"}],"x":{"y":"%s"}}}' % ENDED.encode()
    for result in (text, text[: text.index(b',"x"')] + b"}}", b'{"jsonrpc":"2.0","id":1,"result":{"error":"%s"}}' % ENDED.encode()):
        CountedCall(meter, REQUEST).answered(result)
    assert [one[0] for one in meter.told] == ["answered"] * 3


def test_only_requests_count() -> None:
    meter: Any = Meter()
    for message in (NOTIFICATION, None):
        CountedCall(meter, message).failed("x")
    CountedCall(None, REQUEST).failed("x")
    assert meter.told == []


def test_a_call_that_the_engine_has_begun_counts_from_there() -> None:
    meter: Any = Meter()
    begun: Any = SimpleNamespace(begun=SimpleNamespace(waited_s=1000.0))
    CountedCall(meter, REQUEST, begun).answered(b"{}")
    assert meter.told == [("answered", "tools/call", b"{}")]
    assert meter.took[0] >= 1000 * 10**9
