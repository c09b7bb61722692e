"""Exports: batches, attempts, what is lost."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from headgate.net.tasks import spawn
from headgate.policy.otlp.exporter import ATTEMPTS, OtlpExporter
from headgate.policy.otlp.transport import ExportFailure
from headgate_engine.log.otlp_sink import BATCH_COUNT, OtlpSink
from headgate_engine.shared.counters import Counter
from headgate_engine.shared.segment import Segment

Test = Callable[..., Coroutine[Any, Any, None]]


def in_a_loop(test: Test) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(test(*arguments, **named))

    return run


AGAIN, NEVER = ExportFailure("busy", again=True), ExportFailure("bad", again=False)


class Scripted:
    """`script`: what the next exports come to; the last one stays."""

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.sent: list[bytes] = []

    async def send(self, message: bytes) -> tuple[int, str]:
        self.sent.append(message)
        found = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(found, asyncio.Event):
            await found.wait()
            return 0, ""
        if isinstance(found, Exception):
            raise found
        return found  # type: ignore[no-any-return]


class Rig:
    def __init__(self, *script: Any, pause: float = 0.0) -> None:
        segment = Segment.create()
        self.dropped, self.exported = Counter(segment, b"dropped"), Counter(segment, b"exported")
        self.sink = OtlpSink(self.dropped)
        self.pauses: list[int] = []
        self.exporter = OtlpExporter(self.sink, spawn, self.exported, self._pause)
        self.exporter.transport = self.transport = Scripted(*script)
        self.exporter.wrap = lambda content: b"<" + content + b">"
        self._seconds = pause

    def _pause(self, attempt: int) -> float:
        self.pauses.append(attempt)
        return self._seconds

    def fill(self) -> None:
        """A whole batch: it is sent at once."""
        self.sink.put(b"x", BATCH_COUNT)

    async def settled(self, exports: int) -> None:
        while len(self.transport.sent) < exports or self.exporter._task is not None:  # noqa: ASYNC110 - it ends by itself
            await asyncio.sleep(0.001)


@in_a_loop
async def test_a_batch_is_wrapped_and_counted() -> None:
    rig = Rig((0, ""))
    rig.fill()
    await rig.settled(1)
    assert rig.transport.sent == [b"<x>"]
    assert (rig.exported.value, rig.dropped.value) == (BATCH_COUNT, 0)
    rig.fill()
    await rig.settled(2)
    assert rig.exported.value == 2 * BATCH_COUNT


@in_a_loop
async def test_what_fails_for_now_is_sent_again_with_longer_pauses() -> None:
    rig = Rig(AGAIN, AGAIN, (0, ""))
    rig.fill()
    await rig.settled(3)
    assert rig.pauses == [0, 1]
    assert (rig.exported.value, rig.dropped.value) == (BATCH_COUNT, 0)


@in_a_loop
async def test_the_attempts_have_an_end() -> None:
    rig = Rig(AGAIN)
    rig.fill()
    await rig.settled(ATTEMPTS)
    assert (len(rig.transport.sent), rig.exported.value, rig.dropped.value) == (ATTEMPTS, 0, BATCH_COUNT)


@in_a_loop
async def test_the_collector_says_how_long_to_wait() -> None:
    rig = Rig(ExportFailure("busy", again=True, wait_s=0.0), (0, ""), pause=60)
    rig.fill()
    await rig.settled(2)
    assert rig.pauses == []


@in_a_loop
async def test_what_cannot_be_taken_is_dropped_at_once() -> None:
    rig = Rig(NEVER)
    rig.fill()
    await rig.settled(1)
    assert (len(rig.transport.sent), rig.dropped.value) == (1, BATCH_COUNT)


@in_a_loop
async def test_what_is_rejected_counts_as_dropped(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig((2, "too old"))
    rig.fill()
    await rig.settled(1)
    assert (rig.exported.value, rig.dropped.value) == (BATCH_COUNT - 2, 2)
    assert "a collector did not accept an export" in caplog.text


@in_a_loop
async def test_the_end_sends_what_waits() -> None:
    rig = Rig((0, ""))
    rig.sink.put(b"y")
    await rig.exporter.aclose()
    assert rig.transport.sent == [b"<y>"]
    rig.sink.put(b"late")
    await rig.exporter.aclose()
    assert rig.exported.value == 2


@in_a_loop
async def test_the_end_waits_for_a_hung_collector_no_longer_than_it_has_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.policy.otlp.exporter.FLUSH_S", 0.01)
    rig = Rig(asyncio.Event())
    rig.fill()
    rig.sink.put(b"z", 3)
    await rig.exporter.aclose()
    assert rig.dropped.value == BATCH_COUNT + 3
