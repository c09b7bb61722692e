"""Name resolution."""

from __future__ import annotations

import asyncio
import gc
import socket
import traceback
import weakref

import pytest

from headgate.net.dns import FAILURE_TTL_SECONDS, TTL_SECONDS, Resolver, is_address


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def asked(monkeypatch):
    """Names asked for; answers come from `asked.answers`."""

    class Asked(list):
        answers: dict[str, list[str]] = {"two.test": ["10.0.0.1", "10.0.0.2"], "both.test": ["fd00::1", "10.0.0.3"]}

    found = Asked()

    async def getaddrinfo(_self, host, _port, **_options):
        found.append(host)
        await asyncio.sleep(0)
        if host not in found.answers:
            raise socket.gaierror(-2, "Name or service not known")
        return [
            (socket.AF_INET6 if ":" in item else socket.AF_INET, 1, 6, "", (item, 0)) for item in found.answers[host]
        ]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", getaddrinfo)
    return found


def test_an_address_is_nothing_to_ask_for(asked) -> None:
    assert asyncio.run(Resolver().lookup("::1")) == ["::1"]
    assert not asked
    assert is_address("10.0.0.1")
    assert not is_address("localhost")


def test_addresses_take_turns_and_are_asked_for_once_per_ttl(asked) -> None:
    async def run() -> None:
        clock = Clock()
        resolver = Resolver(clock=clock)
        firsts = [(await resolver.lookup("two.test"))[0] for _ in range(4)]
        assert set(firsts) == {"10.0.0.1", "10.0.0.2"}
        assert firsts[0] != firsts[1]
        assert asked == ["two.test"]
        clock.now += TTL_SECONDS + 1
        await resolver.lookup("two.test")
        assert asked == ["two.test", "two.test"]

    asyncio.run(run())


def test_many_at_once_ask_once(asked) -> None:
    async def run() -> None:
        resolver = Resolver()
        await asyncio.gather(*(resolver.lookup("two.test") for _ in range(20)))

    asyncio.run(run())
    assert asked == ["two.test"]


def test_ipv4_is_preferred_where_a_name_has_both(asked) -> None:
    assert asyncio.run(Resolver().lookup("both.test")) == ["10.0.0.3"]


def test_a_failure_is_remembered_for_a_moment_only(asked) -> None:
    async def run() -> None:
        clock = Clock()
        resolver = Resolver(clock=clock)
        for _ in range(2):
            with pytest.raises(OSError):
                await resolver.lookup("none.test")
        assert asked == ["none.test"]
        clock.now += FAILURE_TTL_SECONDS + 1
        with pytest.raises(OSError):
            await resolver.lookup("none.test")
        assert len(asked) == 2

    asyncio.run(run())


def test_a_look_up_goes_on_without_who_asked_first(asked) -> None:
    async def run() -> None:
        resolver = Resolver()
        first = asyncio.get_running_loop().create_task(resolver.lookup("two.test"))
        second = asyncio.get_running_loop().create_task(resolver.lookup("two.test"))
        await asyncio.sleep(0)
        first.cancel()
        assert sorted(await second) == ["10.0.0.1", "10.0.0.2"]
        assert (first.cancelled(), asked) == (True, ["two.test"])

    asyncio.run(run())


def test_look_ups_that_run_have_a_bound(asked, monkeypatch) -> None:
    monkeypatch.setattr("headgate.net.dns.MAX_LOOKUPS", 1)

    async def run() -> None:
        resolver = Resolver()
        first = asyncio.get_running_loop().create_task(resolver.lookup("two.test"))
        await asyncio.sleep(0)
        with pytest.raises(OSError, match="too many names"):
            await resolver.lookup("both.test")
        await first
        assert await resolver.lookup("both.test") == ["10.0.0.3"]

    asyncio.run(run())


def test_a_failure_that_is_told_again_holds_nobody(asked) -> None:
    """Each who asks gets an error of its own: one that is raised again knows the frames of all who have met it."""

    async def frames(resolver: Resolver) -> int:
        try:
            await resolver.lookup("none.test")
        except socket.gaierror as error:
            if (error.errno, error.strerror) != (-2, "Name or service not known"):
                raise
            return len(traceback.extract_tb(error.__traceback__))
        raise AssertionError("it was found")

    async def main() -> None:
        resolver = Resolver(clock=Clock())
        assert await frames(resolver) > 2
        assert [await frames(resolver) for _ in range(5)] == [2] * 5
        assert asked == ["none.test"]
        gone = weakref.ref(resolver)
        for _ in range(3):      # until the turn is over in which the loop holds what has just come
            await asyncio.sleep(0)
        gc.disable()
        try:
            del resolver
            assert gone() is None, "what it keeps of a failure does not lead back to it"
        finally:
            gc.enable()

    asyncio.run(main())
