"""Calls that wait for their clients."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from headgate.backend.mcp.failure import McpFailure, TargetFailure
from headgate.backend.mcp.federation import suspended_calls
from headgate.backend.mcp.federation.suspended_calls import SuspendedCall, SuspendedCallKey, SuspendedCalls
from headgate.crypto.sealed import Sealer
from headgate.dialect.mcp.jsonrpc import RpcMessage, parse

CALL = parse(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}')
ASK = b'{"jsonrpc":"2.0","id":7,"method":"roots/list","params":{}}'
ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{}}'
PLACE = SuspendedCallKey("ada", "one", b"d")
KEY = bytes(32)


class Session:
    """A session at a server that says what it is given; `None` is where it waits for an answer."""

    name, capabilities, pinned, state = "one", None, True, None

    def __init__(self, *texts: bytes | None, aside: tuple[bytes, ...] | None = None) -> None:
        self.texts = texts
        self.aside = aside
        self.told: list[dict[str, Any]] = []
        self.answered = asyncio.Event()
        self.over = False
        self.closed = asyncio.Event()

    async def request(self, message: RpcMessage, fields: Any) -> AsyncGenerator[bytes, None]:
        try:
            for text in self.texts:
                if text is None:
                    await self.answered.wait()
                    self.answered.clear()
                else:
                    yield text
        finally:
            self.over = True

    async def ask(self, message: RpcMessage, fields: Any, on_message: Any) -> RpcMessage:
        raise AssertionError

    async def notify(self, message: RpcMessage, fields: Any) -> None:
        self.told.append(json.loads(message.text))
        self.answered.set()

    async def events(self, fields: Any) -> AsyncGenerator[bytes, None] | None:
        return None if self.aside is None else self._events(self.aside)

    @staticmethod
    async def _events(texts: tuple[bytes, ...]) -> AsyncGenerator[bytes, None]:
        for text in texts:
            yield text

    async def close(self) -> None:
        pass


async def release(session: Any) -> None:
    session.closed.set()


async def started(session: Session) -> SuspendedCall:
    call = SuspendedCall(session, CALL, "2025-11-25", release)
    await call.begin(CALL, [])
    return call


def test_a_call_waits_with_all_that_was_asked_together() -> None:
    async def run() -> None:
        session = Session(ASK, ASK.replace(b"7", b'"eight"'), None, None, ANSWER)
        call = await started(session)
        for _ in range(2):
            text = await call.next()
            assert text is not None
            assert call.add(parse(text))
        assert await call.next() is None, "it waits"
        first, second = call.questions
        await call.answer({second: b'{"roots":[]}', "other": b"{}"}, [])
        assert list(call.questions) == [first]
        assert await call.next() is None
        await call.answer({first: b"{}", second: b"{}"}, [])
        assert await call.next() == ANSWER
        assert session.told == [
            {"jsonrpc": "2.0", "id": "eight", "result": {"roots": []}}, {"jsonrpc": "2.0", "id": 7, "result": {}},
        ]  # fmt: skip
        with pytest.raises(TargetFailure):
            await call.next()
        await call.stop()

    asyncio.run(run())


def test_questions_come_on_the_event_stream_too_and_nothing_else_that_is_not_of_the_call() -> None:
    async def run() -> None:
        changed = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
        call = await started(Session(None, aside=(changed, b"?", ASK)))
        assert await call.next() == ASK
        await call.stop()

    asyncio.run(run())


def test_a_server_that_gives_no_stream_is_asked_without(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Session):
        async def events(self, fields: Any) -> AsyncGenerator[bytes, None] | None:
            await asyncio.Event().wait()
            return None

    async def run() -> None:
        monkeypatch.setattr(suspended_calls, "STREAM_SECONDS", 0.01)
        call = await started(Slow(ANSWER))
        assert await call.next() == ANSWER
        await call.stop()

    asyncio.run(run())


def test_there_is_an_end_to_questions() -> None:
    async def run() -> None:
        session = Session(ASK, None)
        call = await started(session)
        assert await call.next() == ASK
        assert all(call.add(parse(ASK.replace(b"7", b"%d" % number))) for number in range(suspended_calls.MAX_QUESTIONS))
        assert not call.add(parse(ASK))
        await call.refuse([])
        assert len(session.told) == suspended_calls.MAX_QUESTIONS
        assert {one["error"]["code"] for one in session.told} == {-32603}
        assert not call.questions
        await call.stop()
        assert session.over, "the request is over at the server as well"

    asyncio.run(run())


def table(hold_s: float = 60.0, now: list[float] | None = None, worker: int = 3) -> SuspendedCalls:
    clock = [1000.0] if now is None else now
    return SuspendedCalls(Sealer(KEY, "questions of a"), worker, hold_s, clock=lambda: clock[0])


def refused(calls: SuspendedCalls, state: str, place: SuspendedCallKey = PLACE) -> str:
    with pytest.raises(McpFailure) as caught:
        calls.take(state, place)
    assert (caught.value.status, caught.value.code) == (400, -32602)
    return caught.value.message


def test_a_state_brings_back_its_call_once_for_the_same_request_of_the_same_client() -> None:
    async def run() -> None:
        calls = table()
        call = await started(Session(None))
        state = calls.keep(call, PLACE)
        assert state is not None
        assert calls.worker_of(state) == 3
        assert calls.worker_of("another server's") is None
        assert "ended" in refused(calls, state, SuspendedCallKey("bob", "one", b"d"))
        assert "another request" in refused(calls, state, SuspendedCallKey("ada", "one", b"e"))
        assert "another request" in refused(calls, state, SuspendedCallKey("ada", "two", b"d"))
        for strange in (state + "A", state[:-1], suspended_calls.STATE_PREFIX, "x", suspended_calls.STATE_PREFIX + Sealer(KEY, "questions of b").seal(bytes(26))):
            assert "does not belong to this backend" in refused(calls, strange)
        assert "ended" in refused(table(), state), "a worker that knows nothing of it"
        assert calls.take(state, PLACE) is call
        assert "ended" in refused(calls, state)
        assert len(calls) == 0
        await call.stop()

    asyncio.run(run())


def test_who_takes_too_long_finds_the_call_ended() -> None:
    async def run() -> None:
        now = [1000.0]
        calls = table(0.01, now)
        session = Session(ASK, None)
        call = await started(session)
        assert await call.next() == ASK
        state = calls.keep(call, PLACE)
        assert state is not None
        async with asyncio.timeout(10):
            await session.closed.wait()
        assert len(calls) == 0
        assert session.over
        assert "ended" in refused(calls, state)
        now[0] += 1
        assert "expired" in refused(calls, state)
        with pytest.raises(McpFailure):
            calls.worker_of(state)

    asyncio.run(run())


def test_there_is_room_for_so_many_and_all_end_with_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        monkeypatch.setattr(suspended_calls, "MAX_SUSPENDED", 2)
        calls = table()
        sessions = [Session(None) for _ in range(3)]
        states = [calls.keep(await started(session), PLACE) for session in sessions[:2]]
        assert len(set(states)) == 2
        last = await started(sessions[2])
        assert calls.keep(last, PLACE) is None
        await last.stop()
        await calls.aclose()
        assert all(session.closed.is_set() for session in sessions[:2])
        assert len(calls) == 0

    asyncio.run(run())
