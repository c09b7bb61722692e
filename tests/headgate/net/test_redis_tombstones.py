"""What replicas tell one another has ended, at a real Redis server."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest
from tests.end_to_end.redis_rig import RedisServer, needs_redis

from headgate.document.secret import Secret
from headgate.ir.shared_state import SharedState
from headgate.net import redis_tombstones
from headgate.net.redis_store import StoreFailure
from headgate.net.redis_tombstones import EndedWord, RedisTombstones
from headgate.net.tasks import spawn

pytestmark = needs_redis


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    found = RedisServer(tmp_path)
    yield found
    found.stop()


async def next_of(words: AsyncGenerator[EndedWord | None, None]) -> EndedWord | None:
    return await anext(words)


def tombstones(port: int, timeout_ms: int = 30_000) -> RedisTombstones:
    url = Secret(f"redis://127.0.0.1:{port}")
    return RedisTombstones(SharedState(url=url, place="", timeout_ms=timeout_ms, max_connections=1), "kind")


def test_names_are_noted_and_told(redis: RedisServer) -> None:
    async def work() -> None:
        first, second = tombstones(redis.port), tombstones(redis.port)
        words = second.words()
        assert await anext(words) is None
        assert await second.has(["a", "b"]) == [False, False], "a connection is left beside that which listens"
        redis.ask("PUBLISH", "headgate:kind", "nonsense")
        await first.add("a name", 100)
        await first.restore({"b": 50, "c": 60})
        assert await anext(words) == EndedWord("a name", 100)
        assert await second.has(["a name", "b", "d"]) == [True, True, False]
        keys = redis.ask("KEYS", "*").splitlines()
        assert len(keys) == 3
        assert not any("name" in key for key in keys)
        assert all(0 < int(redis.ask("TTL", key)) <= 100 for key in keys)
        await words.aclose()
        await first.aclose()
        await second.aclose()

    asyncio.run(work())


def test_a_server_that_is_killed_is_lost(redis: RedisServer) -> None:
    async def work() -> None:
        one = tombstones(redis.port)
        words = one.words()
        assert await anext(words) is None
        redis.kill()
        with pytest.raises(StoreFailure):
            await anext(words)
        with pytest.raises(StoreFailure):
            await one.add("a", 10)
        with pytest.raises(StoreFailure):
            await one.has(["a"])
        await one.aclose()

    asyncio.run(work())


def test_a_server_that_hangs_is_lost(redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        monkeypatch.setattr(redis_tombstones, "QUIET_S", 0.05)
        patient = tombstones(redis.port)
        words = patient.words()
        assert await anext(words) is None
        # Silence is none: the server answers pings until somebody says something.
        told = spawn("word", next_of(words))
        while int(re.findall(r"cmdstat_ping:calls=(\d+)", redis.ask("INFO", "commandstats") + "cmdstat_ping:calls=0")[0]) < 2:
            await asyncio.wait([told], timeout=0.01)
            assert not told.done()
        await patient.add("a", 10)
        assert await told == EndedWord("a", 10)
        await words.aclose()
        await patient.aclose()
        one = tombstones(redis.port, timeout_ms=2_000)
        words = one.words()
        assert await anext(words) is None
        redis.hang()
        with pytest.raises(StoreFailure):
            await anext(words)
        with pytest.raises(StoreFailure, match="no answer within 2000 ms"):
            await one.has(["a"])
        redis.go_on()
        await words.aclose()
        await one.aclose()

    asyncio.run(work())
