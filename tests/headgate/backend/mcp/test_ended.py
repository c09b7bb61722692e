"""What a worker knows of sessions that replicas have ended: a store that does what a test tells it to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from typing import Any

import pytest

from headgate.backend.mcp import ended
from headgate.backend.mcp.ended import EndedSessions
from headgate.backend.mcp.failure import SharedStoreAway
from headgate.backend.mcp.session import SessionIds, SessionLimits, Sessions
from headgate.document.secret import Secret
from headgate.ir.shared_state import SharedState
from headgate.net.redis_store import StoreFailure
from headgate.net.redis_tombstones import EndedWord
from headgate.net.tasks import spawn
from headgate_engine.shared.segment import Segment


class Held:
    dead = False
    released = False

    async def stop(self) -> None: ...

    async def release(self) -> None:
        self.released = True


class Store:
    """A server in memory. `away`: it does not answer; `asking`: what is done while it is asked."""

    def __init__(self) -> None:
        self.keys: dict[str, int] = {}
        self.away = self.closed = False
        self.told: asyncio.Queue[EndedWord | None] = asyncio.Queue()
        self.asked: list[str] = []
        self.said: list[str] = []
        self.asking: Callable[[], object] = bool

    def check(self) -> None:
        if self.away:
            raise StoreFailure("away")

    async def add(self, name: str, seconds: int) -> None:
        self.check()
        self.keys[name] = seconds
        self.said.append(name)
        self.told.put_nowait(EndedWord(name, seconds))

    async def restore(self, names: Mapping[str, int]) -> None:
        self.check()
        self.keys |= names

    async def has(self, names: Sequence[str]) -> list[bool]:
        self.check()
        self.asked += names
        found = [name in self.keys for name in names]
        self.asking()
        await asyncio.sleep(0)
        return found

    async def words(self) -> AsyncGenerator[EndedWord | None, None]:
        self.check()
        yield None
        while True:
            word = await self.told.get()
            self.check()
            yield word

    async def aclose(self) -> None:
        self.closed = True


def made(store: Any, failure: Any = "local") -> EndedSessions:
    settings = SharedState(url=Secret("redis://h"), place="h", failure=failure)
    return EndedSessions(settings, Segment.create(), spawn, store)


def table(of: EndedSessions) -> Sessions:
    found = Sessions(0, SessionIds(bytes(32)), SessionLimits(60, 10), resumable=True)
    found.ended = of
    return found


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def run(work: Callable[[Store], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        await work(Store())

    asyncio.run(whole())


def test_a_word_ends_what_is_known() -> None:
    async def work(store: Store) -> None:
        one = made(store)
        sessions, held = table(one), Held()
        sessions.adopt("known", held)
        sessions.adopt("other", Held())
        store.told.put_nowait(EndedWord("known", 10))
        await until(lambda: held.released)
        assert ("known" in sessions, "other" in sessions) == (False, True)
        asked = len(store.asked)
        assert await sessions.was_ended("known")
        assert len(store.asked) == asked, "it is known here"
        await one.aclose()
        assert store.closed

    run(work)


def test_a_session_that_ended_while_nobody_listened_is_found() -> None:
    async def work(store: Store) -> None:
        one = made(store)
        sessions, held = table(one), Held()
        store.keys["known"] = 10
        sessions.adopt("known", held)
        await until(lambda: held.released)
        await one.aclose()

    run(work)


def test_an_answer_from_before_the_subscription_is_asked_for_again() -> None:
    async def work(store: Store) -> None:
        one = made(store)

        def meanwhile() -> None:
            # Ended and told behind the answer's back, and a worker that has just begun to listen.
            store.asking = bool
            store.keys["it"] = 10
            one._turn += 1

        store.asking = meanwhile
        assert await one.has("it")
        assert store.asked == ["it", "it"]
        await one.aclose()

    run(work)


@pytest.mark.parametrize("failure", ["local", "deny"])
def test_a_store_that_is_away(failure: str) -> None:
    async def work(store: Store) -> None:
        one = made(store, failure)
        sessions = table(one)
        sessions.adopt("known", Held())
        await until(lambda: one._turn)
        store.away = True
        if failure == "deny":
            with pytest.raises(SharedStoreAway):
                await sessions.tell_replicas("gone")
            with pytest.raises(SharedStoreAway):
                await sessions.was_ended("unknown")
        else:
            await sessions.tell_replicas("gone")
            assert not await sessions.was_ended("unknown")
        assert await one.has("gone")
        assert store.keys == {}
        store.keys["known"] = 10
        store.away = False
        await until(lambda: "gone" in store.keys and "known" not in sessions)
        assert store.said == ["gone"]
        await until(lambda: not one._down)
        assert not await sessions.was_ended("unknown")
        await one.aclose()

    run(work)


def test_what_is_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(store: Store) -> None:
        monkeypatch.setattr(ended, "MOST_KNOWN", 3)
        one = made(store)
        for number in range(5):
            await one.add(str(number), 10)
        assert list(one._known) == ["2", "3", "4"]
        assert await one.has("0"), "the store still knows it"
        await one.aclose()

    run(work)
