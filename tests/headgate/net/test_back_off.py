"""Pauses between failed connects."""

from __future__ import annotations

import asyncio

import pytest

from headgate.net.back_off import GROWTH, JITTER, LEAST_PAUSE_S, MOST_PAUSE_S, ConnectBackOff, NotTried


class Peer:
    """Something to connect to, and a clock."""

    def __init__(self, chance: float = 0.5) -> None:
        self.now = 100.0
        self.tried = 0
        self.failure: OSError | None = ConnectionRefusedError(111, "Connection refused")
        self.connect = ConnectBackOff(self._connect, lambda: self.now, lambda: chance)

    async def _connect(self, factory: object) -> None:
        self.tried += 1
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure

    def call(self) -> str:
        """What a connect comes to."""
        try:
            asyncio.run(self.connect(asyncio.Protocol))
        except NotTried as error:
            return str(error)
        except OSError:
            return "failed"
        return "connected"


def test_after_a_failure_connects_fail_at_once_until_the_pause_is_over() -> None:
    peer = Peer()
    assert peer.call() == "failed"
    assert {peer.call() for _ in range(5)} == {"Connection refused; it is not retried yet"}
    assert peer.tried == 1
    peer.now += LEAST_PAUSE_S + 0.001
    assert peer.call() == "failed"
    assert peer.tried == 2


@pytest.mark.parametrize(("chance", "factor"), [(0.0, 1 - JITTER), (0.5, 1.0), (1.0, 1 + JITTER)])
def test_pauses_grow_to_a_bound_and_vary(chance: float, factor: float) -> None:
    peer = Peer(chance)
    for number in range(40):
        assert peer.call() == "failed", number
        pause = min(LEAST_PAUSE_S * GROWTH**number, MOST_PAUSE_S) * factor
        peer.now += pause - 0.001
        assert "not retried" in peer.call()
        peer.now += 0.002


def test_a_success_ends_it() -> None:
    peer = Peer()
    for _ in range(5):
        peer.call()
        peer.now += MOST_PAUSE_S * 2
    peer.failure = None
    assert peer.call() == "connected"
    assert peer.call() == "connected"
    peer.failure = TimeoutError()
    assert peer.call() == "failed"
    assert peer.call().startswith("connect timeout; it is not retried")
    peer.now += LEAST_PAUSE_S + 0.001
    assert peer.call() == "failed"


def test_connects_that_fail_together_count_once() -> None:
    peer = Peer()

    async def work() -> None:
        found = await asyncio.gather(*(peer.connect(asyncio.Protocol) for _ in range(9)), return_exceptions=True)
        assert not any(isinstance(one, NotTried) for one in found)

    asyncio.run(work())
    assert peer.tried == 9
    peer.now += LEAST_PAUSE_S + 0.001
    assert peer.call() == "failed"


def test_a_caller_that_leaves_is_no_failure() -> None:
    peer = Peer()

    async def work() -> None:
        task = asyncio.get_running_loop().create_task(peer.connect(asyncio.Protocol))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    assert peer.call() == "failed"
