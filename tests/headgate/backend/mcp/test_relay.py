"""Requests for sessions of other workers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from headgate.backend.mcp.failure import McpFailure
from headgate.backend.mcp.relay import IDENTITY_HEADER, Relay, broken_off, socket_path, workers_in
from headgate.backend.mcp.session import SessionIds, owner_of
from headgate.expr.compile import compile_expression
from headgate_engine.context.request import make_context

CALL = b'{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"a"}}'


class Fields:
    def __init__(self, items: list[tuple[str, str]]) -> None:
        self._items = items

    def get(self, name: str, default: str | None = None) -> str | None:
        return next((value for key, value in self._items if key.lower() == name), default)

    def items(self) -> list[tuple[str, str]]:
        return self._items


class FakeCall:
    """A request, and what it is answered with."""

    method, target, path, authority, secure = "POST", "/mcp", "/mcp", "a.test", False

    def __init__(self, body: bytes = CALL, fields: list[tuple[str, str]] | None = None) -> None:
        self.body = body
        self.headers = Fields(fields or [])
        self.context: Any = make_context()
        self.sent = b""
        self.ended = False
        self.log: list[tuple[str, object]] = []

    def add_log_field(self, key: str, value: object) -> None:
        self.log.append((key, value))

    def stream(self, status: int, headers: Any = ()) -> FakeCall:
        del status, headers
        return self

    def reply(self, status: int, headers: Any = (), body: bytes = b"", reason: str | None = None) -> None:
        raise AssertionError(status)

    async def send(self, data: bytes) -> None:
        self.sent += data

    async def end(self) -> None:
        self.ended = True


class Answer:
    """Another worker's answer, which breaks off."""

    status = 200

    def __init__(self, *pieces: bytes) -> None:
        self.headers: list[tuple[str, str]] = []
        self._pieces = pieces

    def header(self, name: str) -> str | None:
        del name

    async def read(self, limit: int) -> bytes:
        raise AssertionError(limit)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece
        raise OSError("gone")

    async def aclose(self) -> None:
        pass


class Client:
    def __init__(self, answer: Answer | None) -> None:
        self.answer = answer
        self.fields: list[tuple[str, str]] = []

    async def request(self, method: str, target: str, headers: Any = (), body: bytes | None = None) -> Answer:
        del method, target, body
        self.fields = list(headers)
        if self.answer is None:
            raise OSError("nobody there")
        return self.answer


def relayed(call: FakeCall, answer: Answer | None, lasting: bool = False) -> Client:
    client = Client(answer)
    asked: list[tuple[int, bool]] = []

    def client_of(index: int, patient: bool) -> Client:
        asked.append((index, patient))
        return client

    relay = Relay(0, SessionIds(bytes(32)), client_of)
    try:
        asyncio.run(relay.forward(call, 1, "key", lasting))
    finally:
        assert asked == [(1, lasting)]
    return client


def test_what_a_worker_that_died_leaves_open_is_ended_with_an_error() -> None:
    call = FakeCall()
    relayed(call, Answer(b"event: message\ndata: 1\n", b"\n"))
    first, second, end = call.sent.split(b"\n\n")
    assert (first, end, call.ended) == (b"event: message\ndata: 1", b"", True)
    error = json.loads(second.split(b"data: ")[1])
    assert (error["id"], error["error"]["code"]) == ("x", -32603)
    assert "ended before its server answered" in error["error"]["message"]
    assert call.log


def test_half_an_event_is_not_made_a_whole_one() -> None:
    for body, piece in ((CALL, b"data: {"), (b'{"jsonrpc":"2.0","method":"notifications/x"}', b"")):
        call = FakeCall(body)
        with pytest.raises(OSError, match="gone"):
            relayed(call, Answer(piece))
        assert (call.sent, call.ended) == (piece, False)


def test_without_the_worker_there_is_no_session() -> None:
    with pytest.raises(McpFailure) as failure:
        relayed(FakeCall(), None)
    assert failure.value.status == 404


def test_a_session_that_outlasts_its_worker_is_not_gone() -> None:
    with pytest.raises(McpFailure) as failure:
        relayed(FakeCall(), None, lasting=True)
    assert (failure.value.status, failure.value.code) == (503, -32603)
    call = FakeCall()
    relayed(call, Answer(b""), lasting=True)
    assert b"the session's worker ended before its server answered" in call.sent


def test_only_requests_have_answers() -> None:
    assert broken_off(b"no json") is None
    assert broken_off(b'{"jsonrpc":"2.0","id":1,"result":{}}') is None


def test_the_owner_is_the_same_at_the_other_worker() -> None:
    relay = Relay(0, SessionIds(bytes(32)), lambda _index, _lasting: Client(None))
    for fill in ({"jwt": {"iss": "i", "sub": "ada"}}, {"basic_user": "ada"}, {"api_key_text": b"\xff\0", "api_key": {"a": 1}}, {}):
        call = FakeCall()
        for name, value in fill.items():
            setattr(call.context, name, value)
        client = Client(Answer())
        sender = Relay(0, SessionIds(bytes(32)), lambda _index, _lasting, client=client: client)  # type: ignore[misc]
        asyncio.run(sender.forward(call, 1, "key"))
        assert "ada" not in str(client.fields)
        there = FakeCall(fields=client.fields)
        relay.restore(there)
        assert owner_of(there.context) == owner_of(call.context)
        forged = FakeCall(fields=[(IDENTITY_HEADER, "A" * 80)])
        relay.restore(forged)
        assert owner_of(forged.context) == ""


def test_the_other_worker_knows_what_expressions_see() -> None:
    call = FakeCall()
    call.context.metadata = {"team": "red", "bytes": b"\xff"}
    call.context.dynamic = {"extauthz": {"a": [1.5, None]}, "mcp": {"tool": {"name": "x"}}}
    client = Client(Answer())
    asyncio.run(Relay(0, SessionIds(bytes(32)), lambda _index, _lasting: client).forward(call, 1, "key"))
    there = FakeCall(fields=client.fields)
    there.context = make_context("GET", "/else", "b.test", secure=True)
    Relay(1, SessionIds(bytes(32)), lambda _index, _lasting: Client(None)).restore(there)
    for text in ("metadata.team + string(size(metadata.bytes))", "extauthz.a[0]", "request.startTime", "request.version", "request.scheme", "source.address == null"):
        assert compile_expression(text).evaluate(there.context) == compile_expression(text).evaluate(call.context), text
    assert there.context.dynamic == {"extauthz": {"a": [1.5, None]}}, "and nothing that belongs to the message"
    there.context.origin = {"source.address": "10.0.0.1", "proxy.bind": "bind/1"}
    known = compile_expression("[source.address, proxy.bind, source.subject]").evaluate(there.context)
    assert known == ["10.0.0.1", "bind/1", None]


def test_the_other_workers(tmp_path: Path) -> None:
    for index in (0, 1, 12):
        Path(socket_path(str(tmp_path), index)).touch()
    (tmp_path / "worker-x.sock").touch()
    assert sorted(workers_in(str(tmp_path))) == [0, 1, 12]
    asked: list[int] = []

    def client_of(index: int, lasting: bool) -> Client:
        assert not lasting
        asked.append(index)
        return Client(None if index == 1 else Answer())

    relay = Relay(0, SessionIds(bytes(32)), client_of, lambda: workers_in(str(tmp_path)))
    asyncio.run(relay.tell_ended("s", "key"))
    assert sorted(asked) == [1, 12], "one that does not answer is no reason to stop"
