"""Threads for password hashes."""

from __future__ import annotations

import asyncio
import threading

import pytest

from headgate.crypto.password_pool import PasswordPool, PoolFull
from headgate.net.tasks import spawn


class Slow:
    """A check that ends when it may."""

    def __init__(self) -> None:
        self.may_end, self.begun = threading.Event(), threading.Event()

    def __call__(self) -> bool:
        self.begun.set()
        return self.may_end.wait(60)


def test_what_does_not_fit_is_refused_at_once() -> None:
    async def run() -> None:
        pool, slow = PasswordPool(threads=1, most=3), Slow()
        waiting = [spawn("hash", pool.run(slow)) for _ in range(3)]
        await asyncio.to_thread(slow.begun.wait, 60)
        with pytest.raises(PoolFull):
            await pool.run(slow)
        slow.may_end.set()
        assert await asyncio.gather(*waiting) == [True] * 3
        assert await pool.run(lambda: False) is False

    asyncio.run(run())


def test_a_hash_whose_client_has_left_keeps_its_place() -> None:
    async def run() -> None:
        pool, slow = PasswordPool(threads=1, most=1), Slow()
        left = spawn("hash", pool.run(slow))
        await asyncio.to_thread(slow.begun.wait, 60)
        left.cancel()
        await asyncio.wait([left])
        with pytest.raises(PoolFull):
            await pool.run(slow)
        slow.may_end.set()
        while True:
            try:
                assert await pool.run(lambda: True)
                break
            except PoolFull:
                await asyncio.sleep(0)

    asyncio.run(run())


def test_errors_reach_who_waits() -> None:
    def fails() -> bool:
        raise ValueError("no")

    async def run() -> None:
        pool = PasswordPool(most=1)
        for _ in range(3):
            with pytest.raises(ValueError, match="no"):
                await pool.run(fails)

    asyncio.run(run())
