"""What requests of a worker want of leases: asked for in few messages that are never too long, and waited for once."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from headgate.net.tasks import spawn
from headgate.policy import leases
from headgate.policy.leases import LeaseDesk, LeaseWant
from headgate.server.control import MAX_PACKET, WantLeases
from headgate_engine.limit.account import LeaseState, UsageAccount, UsageLimits
from headgate_engine.shared.segment import Segment


class Sent:
    """The messages of a desk, by their numbers."""

    def __init__(self, desk: LeaseDesk) -> None:
        self.messages: dict[int, tuple[LeaseWant, ...]] = {}
        self._came = asyncio.Event()
        desk.say = self._take

    def _take(self, number: int, wants: tuple[LeaseWant, ...]) -> None:
        self.messages[number] = wants
        self._came.set()

    async def first(self) -> None:
        """Return when the desk has sent what it had to: it does so in one turn of the loop."""
        await self._came.wait()


def limits_of(segment: Segment, *names: str) -> tuple[UsageLimits, ...]:
    state = LeaseState()
    state.configure(True, False)
    return tuple(UsageLimits(UsageAccount(segment, "team", name), [("day", "tokens", 2**62, -1)], state) for name in names)


def run(test: Callable[[LeaseDesk, Sent, Segment], Any]) -> None:
    async def inside() -> None:
        async with asyncio.timeout(60):
            desk = LeaseDesk()
            await test(desk, Sent(desk), Segment.create(state_bytes=8 << 20))

    asyncio.run(inside())


def test_what_is_asked_for_at_once_goes_into_one_message() -> None:
    async def test(desk: LeaseDesk, sent: Sent, segment: Segment) -> None:
        [one] = limits_of(segment, "a")
        callers = [spawn("caller", desk.asked((one,), (0, tokens, 0))) for tokens in (5, 3)]
        await sent.first()
        assert sent.messages == {1: (LeaseWant("team", "a", "day", "tokens", 3, 8, 2**62),)}
        assert not any(caller.done() for caller in callers)
        desk.came(1)
        await asyncio.gather(*callers)

    run(test)


def test_a_caller_may_go_on_while_it_is_asked_for() -> None:
    async def test(desk: LeaseDesk, sent: Sent, segment: Segment) -> None:
        [one] = limits_of(segment, "a")
        waiting = desk.ahead((one,), (0, 5, 0))
        assert waiting is not None
        await sent.first()
        assert not waiting.done()
        desk.came(1)
        assert waiting.done()
        assert desk.ahead((one,), (0, 0, 0)) is None

    run(test)


@pytest.mark.parametrize("letter", ["a", "\N{GRINNING FACE}"])
def test_no_message_is_longer_than_a_packet(letter: str) -> None:
    async def test(desk: LeaseDesk, sent: Sent, segment: Segment) -> None:
        many = limits_of(segment, *(f"{number:04d}{letter * 124}" for number in range(300)))
        waiting = desk.ahead(many, (0, 2**61 + 1, 0))
        assert waiting is not None
        await sent.first()
        assert sum(map(len, sent.messages.values())) == 300
        assert all(len(pickle.dumps(WantLeases(number, wants))) <= MAX_PACKET for number, wants in sent.messages.items())
        for number in sent.messages:
            assert not waiting.done()
            desk.came(number)
        assert waiting.done()

    run(test)


def test_nobody_waits_for_ever_for_a_supervisor_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "ANSWER_SECONDS", 0.01)

    async def test(desk: LeaseDesk, sent: Sent, segment: Segment) -> None:
        [one] = limits_of(segment, "a")
        told: list[bool] = []
        asks_again = asyncio.Event()

        def set_down(down: bool) -> None:
            told.append(down)
            if len(told) == 3:
                asks_again.set()

        state: Any = type("State", (), {"set_down": staticmethod(set_down)})()
        desk.use(state)
        await desk.asked((one,), (0, 5, 0))
        assert desk._waiting == {}
        # What holds without the store holds for a while, and the supervisor is asked again later.
        await asks_again.wait()
        assert told == [False, True, False]

    run(test)
