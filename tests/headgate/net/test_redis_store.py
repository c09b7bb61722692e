"""The client of a Redis server that replicas share."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end.redis_rig import RedisServer, needs_redis
from tests.end_to_end.running import free_port

from headgate.document.secret import Secret
from headgate.ir.shared_state import SharedState
from headgate.net.redis_store import RedisStore, StoreFailure

NUMBERS = "return {tonumber(ARGV[1]), #KEYS}"


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    found = RedisServer(tmp_path, "--requirepass", "the-secret")
    yield found
    found.stop()


def store(port: int, script: str = NUMBERS, password: str = "the-secret", timeout_ms: int = 30_000) -> RedisStore:
    url = Secret(f"redis://:{password}@127.0.0.1:{port}")
    return RedisStore(SharedState(url=url, place="", timeout_ms=timeout_ms), script)


async def once(one: RedisStore) -> list[int]:
    try:
        await one.ping()
        return await one.run([b"a", b"b"], [5])
    finally:
        await one.aclose()


def test_a_transport_that_is_closed_while_it_is_written_to_is_a_failure() -> None:
    async def work() -> None:
        one = store(1)
        with pytest.raises(StoreFailure, match="the handler is closed"):
            async with one.failing():
                raise RuntimeError("unable to perform operation on <TCPTransport closed=True>; the handler is closed")
        await one.aclose()

    asyncio.run(work())


@needs_redis
def test_a_script_is_loaded_again_when_the_server_has_lost_it(redis: RedisServer) -> None:
    async def work() -> None:
        one = store(redis.port)
        assert await one.run([b"a"], [5]) == [5, 1]
        assert await one.run([b"a", b"b"], [6]) == [6, 2]
        redis.kill()
        redis.restart()
        # The connection of before; a pool that sees its end in time is right, too.
        with contextlib.suppress(StoreFailure):
            await one.run([b"a"], [7])
        assert await one.run([b"a"], [7]) == [7, 1]
        await one.aclose()

    asyncio.run(work())


@needs_redis
@pytest.mark.parametrize(("script", "told"), [("return 'text'", "unexpected response"), ("return redis.call('NO')", "ResponseError")])
def test_answers_that_are_none(redis: RedisServer, script: str, told: str) -> None:
    with pytest.raises(StoreFailure, match=told):
        asyncio.run(once(store(redis.port, script)))


@needs_redis
def test_no_error_has_the_password(redis: RedisServer) -> None:
    with pytest.raises(StoreFailure) as caught:
        asyncio.run(once(store(redis.port, password="not-this-one")))
    assert "not-this-one" not in repr(caught.value)
    assert "AuthenticationError" in str(caught.value)
    with pytest.raises(StoreFailure) as caught:
        asyncio.run(once(store(redis.port, "error('said: the-secret')")))
    assert "the-secret" not in str(caught.value)


@needs_redis
def test_a_server_that_hangs(redis: RedisServer) -> None:
    redis.hang()
    with pytest.raises(StoreFailure, match="no answer within 100 ms"):
        asyncio.run(once(store(redis.port, timeout_ms=100)))


def test_no_server() -> None:
    with pytest.raises(StoreFailure, match="ConnectionError"):
        asyncio.run(once(store(free_port())))


@needs_redis
def test_a_connection_reads_nothing_from_the_disk(redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(importlib.metadata, "version", lambda name: asked.append(name) or "1")
    assert asyncio.run(once(store(redis.port))) == [5, 2]
    assert asked == []
