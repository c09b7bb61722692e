"""Workers that hang: what is noticed, what is told, who is killed, and what does not count."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headgate.server.heartbeat import Heartbeat, heartbeat_gauge
from headgate.server.watchdog import HANGS, PENDING, SILENT_CHECKS, Watchdog
from headgate.telemetry.metrics import series_key
from headgate_engine.shared.counters import Counter
from headgate_engine.shared.segment import Segment


class Worker:
    """A worker as the supervisor sees it."""

    def __init__(self, segment: Segment, index: int) -> None:
        self.index = index
        self.ready = True
        self.stale = False
        self.killed = 0
        self._gauge = heartbeat_gauge(segment, index)

    def beat(self) -> None:
        self._gauge.set(self._gauge.value + 1)

    def send_kill(self) -> None:
        self.killed += 1
        self.ready = False


class Scene:
    def __init__(self, workers: int = 2, limit_s: float = 30.0) -> None:
        self.segment = Segment.create()
        self.workers = [Worker(self.segment, index) for index in range(workers)]
        self.pending: set[str] = set()
        self.limit_s = limit_s
        self.caught_up: list[int] = []
        self.signs = 0
        handles = cast(Any, self.workers)
        self.watchdog = Watchdog(self.segment, handles, self.gateway, self.catch_up, self.pending, self.alive)

    def alive(self) -> None:
        self.signs += 1

    def gateway(self) -> Any:
        return SimpleNamespace(process=SimpleNamespace(worker_heartbeat_timeout_ms=self.limit_s * 1000))

    async def catch_up(self, worker: Any) -> None:
        self.caught_up.append(worker.index)

    def check(self, times: int, *beating: int) -> None:
        for _ in range(times):
            for index in beating:
                self.workers[index].beat()
            self.watchdog.check()

    def answering(self) -> list[int]:
        return [worker.index for worker in self.watchdog.answering(cast(Any, self.workers))]

    @property
    def hangs(self) -> int:
        return Counter(self.segment, series_key(HANGS, {})).value


def test_a_worker_without_a_beat_is_killed_once(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.check(30, 0, 1)
    scene.check(29, 0)
    assert [worker.killed for worker in scene.workers] == [0, 0]
    scene.check(1, 0)
    scene.check(40, 0)
    assert [worker.killed for worker in scene.workers] == [0, 1]
    assert scene.hangs == 1
    told = [record.message for record in caplog.records]
    assert told == ["worker does not respond", "worker hangs, and is killed"]
    # Its successor begins anew.
    scene.workers[1].ready = True
    scene.check(29, 0)
    assert (scene.workers[1].killed, scene.hangs) == (1, 1)


def test_a_limit_of_nothing_kills_nobody() -> None:
    scene = Scene(limit_s=0)
    scene.check(1000, 0)
    assert scene.workers[1].killed == 0
    scene.limit_s = 5
    scene.check(1, 0)
    assert scene.workers[1].killed == 1, "a reload changes it"


def test_only_checks_count() -> None:
    # The supervisor stood still, or the machine slept, between two checks: that is one check without a beat.
    scene = Scene()
    scene.check(SILENT_CHECKS - 1, 0)
    assert scene.answering() == [0, 1]
    scene.check(1, 0, 1)
    scene.check(SILENT_CHECKS - 1, 0)
    assert scene.answering() == [0, 1]


def test_a_worker_that_begins_or_has_ended_misses_nothing() -> None:
    scene = Scene()
    scene.workers[1].ready = False
    scene.check(100, 0)
    assert (scene.workers[1].killed, scene.hangs) == (0, 0)


def test_a_silent_worker_is_passed_over_and_catches_up(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "headgate.supervisor")

    async def run() -> None:
        scene = Scene(limit_s=0)
        scene.check(SILENT_CHECKS, 0)
        assert scene.answering() == [0]
        scene.workers[1].stale = True
        scene.check(1, 0)
        assert scene.workers[1].stale, "it is silent still"
        scene.check(3, 0, 1)
        assert scene.answering() == [0, 1]
        assert not scene.workers[1].stale
        await asyncio.sleep(0)
        assert scene.caught_up == [1]

    asyncio.run(run())
    assert [record.message for record in caplog.records] == ["worker does not respond", "worker responds again"]


def test_without_a_worker_that_answers_the_gateway_is_not_ready() -> None:
    scene = Scene(limit_s=0)
    scene.check(100, 0)
    assert scene.pending == set()
    scene.check(SILENT_CHECKS)
    assert scene.pending == {PENDING}
    assert scene.answering() == [0, 1], "all are waited for where none answers"
    scene.check(1, 1)
    assert scene.pending == set()
    for worker in scene.workers:
        worker.ready = False
    scene.check(1)
    assert scene.pending == {PENDING}


def test_a_heartbeat_goes_on_until_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.server.heartbeat.BEAT_SECONDS", 0.001)
    segment = Segment.create()
    gauge = heartbeat_gauge(segment, 3)

    async def run() -> None:
        found = Heartbeat(segment, 3, asyncio.get_running_loop())
        found.beat()
        seen = {gauge.value}
        async with asyncio.timeout(60):
            while len(seen) < 4:
                await asyncio.sleep(0.001)
                seen.add(gauge.value)
        found.stop()
        found.stop()
        last = gauge.value
        await asyncio.sleep(0.01)
        assert gauge.value == last

    asyncio.run(run())
    assert heartbeat_gauge(segment, 0).value == 0


def test_signs_of_life_stop_when_no_worker_answers() -> None:
    scene = Scene(limit_s=0)
    scene.check(3, 0)
    assert scene.signs == 3
    scene.check(SILENT_CHECKS - 1)
    assert scene.signs == 3 + SILENT_CHECKS - 1, "a worker that misses some beats is not silent yet"
    scene.check(5)
    assert scene.signs == 3 + SILENT_CHECKS - 1
    scene.check(1, 1)
    assert scene.signs == 3 + SILENT_CHECKS
    scene.workers[1].ready = False
    scene.check(2)
    assert scene.signs == 3 + SILENT_CHECKS, "the other one is still silent"
