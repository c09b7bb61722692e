"""Delivered changes, with failures on their way into force."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headgate.config.delivered import DeliveredPart
from headgate.config.delivered_reader import DeliveredReader
from headgate.config.load import TextSource
from headgate.server import delivery
from headgate.server.delivery import PENDING, Delivery, delivered_reader
from headgate.server.failures import ReloadFailed, WorkerLost

PARTS = {
    "bind/1": DeliveredPart("binds", "", (), '{"port": 1}'), "bind/2": DeliveredPart("binds", "", (), '{"port": 2}'),
}  # fmt: skip


class Renewal:
    """Fails with these, one after the other, and then succeeds."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.calls = 0

    async def __call__(self) -> None:
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)


class NoFeed:
    def restore(self, parts: Any) -> None:
        parts.change(PARTS)

    async def run(self, parts: Any, take: Any, meter: Any) -> None: ...


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "PAUSE_S", 0.0)


def taken(renewal: Renewal, pending: set[str]) -> dict[str, str]:
    async def take() -> dict[str, str]:
        reader = DeliveredReader(TextSource("{}"))
        return await Delivery(NoFeed(), reader, renewal, asyncio.Lock(), pending).take(PARTS, ())

    return asyncio.run(take())


def test_a_change_that_is_in_force_makes_ready() -> None:
    pending: set[str] = {"other"}
    assert taken(Renewal(), pending) == {}
    assert pending == {"other"}


def test_what_was_refused_for_something_outside_is_tried_again() -> None:
    async def take() -> None:
        reader = DeliveredReader(TextSource("{}"))
        renewal = Renewal(ReloadFailed("bind/2: in use", (2,)))
        it = Delivery(NoFeed(), reader, renewal, asyncio.Lock(), set())
        assert list(await it.take(PARTS, ())) == ["bind/2"]
        assert reader.parts.passing == {"bind/2"}
        renewal.failures = [ReloadFailed("bind/2: in use", (2,))]
        assert list(await it.take({}, ())) == ["bind/2"]
        assert await it.take({}, ()) == {}
        assert not reader.parts.passing
        # A fault of the part itself stays one.
        reader.parts.refuse({"bind/2": "misspelled"})
        assert await it.take({}, ()) == {"bind/2": "misspelled"}

    asyncio.run(take())


def test_a_lost_worker_is_no_fault_of_the_change() -> None:
    renewal = Renewal(WorkerLost("died"), WorkerLost("died"))
    assert taken(renewal, set()) == {}
    assert renewal.calls == 3


def test_ports_that_cannot_be_opened_are_left_out() -> None:
    found = taken(Renewal(ReloadFailed("bind/2: in use", (2,))), set())
    assert found == {"bind/2": "its port cannot be opened: bind/2: in use"}


def test_what_fails_as_a_whole_is_taken_back() -> None:
    found = taken(Renewal(ReloadFailed("worker 0: no")), set())
    assert found == {"bind/1": "worker 0: no", "bind/2": "worker 0: no"}


def test_what_cannot_be_brought_into_force_at_all_is_not_taken() -> None:
    pending: set[str] = set()
    with pytest.raises(ReloadFailed, match="broken"):
        taken(Renewal(*[ReloadFailed("broken")] * 9), pending)
    assert pending == {PENDING}
    with pytest.raises(ReloadFailed, match="could not be applied"):
        taken(Renewal(*[WorkerLost("died")] * 99), pending)


def test_what_a_feed_remembers_is_there_before_the_start() -> None:
    reader = delivered_reader(TextSource("{}"), NoFeed())
    assert set(reader.parts.wanted) == set(PARTS)
    pending: set[str] = set()
    Delivery(NoFeed(), reader, Renewal(), asyncio.Lock(), pending)
    assert pending == set()
