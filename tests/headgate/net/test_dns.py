"""Name resolution."""

from __future__ import annotations

import asyncio
import gc
import socket
import traceback
import weakref
from collections.abc import Iterable

import pytest

from headgate.ir.process import DnsSettings
from headgate.net import dns
from headgate.net.dns import (
    FAILURE_TTL_SECONDS,
    LEAST_TTL_SECONDS,
    MAX_ADDRESSES,
    MOST_TTL_SECONDS,
    Found,
    Resolver,
    SystemLookup,
    interleaved,
    is_address,
)
from headgate_engine.errors import NameResolutionError


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Asked(list[str]):
    """Names asked for; answers come from `answers`, and are good for `ttl` seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.families: list[int] = []
        self.ttl = 0.0
        self.answers: dict[str, Iterable[str]] = {
            "two.test": ["10.0.0.1", "10.0.0.2"],
            "both.test": ["fd00::1", "10.0.0.3"],
            "six.test": ["fd00::1"],
        }

    async def ask(self, host: str, family: socket.AddressFamily) -> list[Found]:
        self.append(host)
        self.families.append(family)
        await asyncio.sleep(0)
        if host not in self.answers:
            raise NameResolutionError("Name or service not known")
        return [Found(address, self.ttl) for address in self.answers[host]]


@pytest.fixture
def asked() -> Asked:
    return Asked()


def test_an_address_is_nothing_to_ask_for(asked: Asked) -> None:
    assert asyncio.run(Resolver(lookup=asked).lookup("::1")) == ["::1"]
    assert not asked
    assert is_address("10.0.0.1")
    assert not is_address("localhost")


def test_addresses_take_turns_and_are_asked_for_once_per_ttl(asked: Asked) -> None:
    async def run() -> None:
        clock = Clock()
        resolver = Resolver(lookup=asked, clock=clock)
        firsts = [(await resolver.lookup("two.test"))[0] for _ in range(4)]
        assert set(firsts) == {"10.0.0.1", "10.0.0.2"}
        assert firsts[0] != firsts[1]
        assert asked == ["two.test"]
        clock.now += LEAST_TTL_SECONDS - 1
        await resolver.lookup("two.test")
        assert asked == ["two.test"], "an answer with a TTL of 0 is kept for the least time"
        clock.now += 2
        await resolver.lookup("two.test")
        assert asked == ["two.test", "two.test"]

    asyncio.run(run())


@pytest.mark.parametrize(("ttl", "kept"), [(60.0, 60.0), (2.0, LEAST_TTL_SECONDS), (1e9, MOST_TTL_SECONDS)])
def test_an_answer_is_kept_for_its_ttl_within_bounds(asked: Asked, ttl: float, kept: float) -> None:
    async def run() -> None:
        clock = Clock()
        resolver = Resolver(lookup=asked, clock=clock)
        asked.ttl = ttl
        await resolver.lookup("two.test")
        clock.now += kept - 0.5
        await resolver.lookup("two.test")
        assert len(asked) == 1
        clock.now += 1
        await resolver.lookup("two.test")
        assert len(asked) == 2

    asyncio.run(run())


def test_many_at_once_ask_once(asked: Asked) -> None:
    async def run() -> None:
        resolver = Resolver(lookup=asked)
        await asyncio.gather(*(resolver.lookup("two.test") for _ in range(20)))

    asyncio.run(run())
    assert asked == ["two.test"]


@pytest.mark.parametrize(
    ("family", "name", "addresses", "wanted"),
    [
        ("V4Preferred", "both.test", ["10.0.0.3"], socket.AF_UNSPEC),
        ("V4Preferred", "six.test", ["fd00::1"], socket.AF_UNSPEC),
        ("All", "both.test", ["fd00::1", "10.0.0.3"], socket.AF_UNSPEC),
        ("V4Only", "two.test", ["10.0.0.2", "10.0.0.1"], socket.AF_INET),
        ("V6Only", "six.test", ["fd00::1"], socket.AF_INET6),
    ],
)
def test_families_are_those_of_the_settings(
    asked: Asked, family: dns.LookupFamily, name: str, addresses: list[str], wanted: int
) -> None:
    resolver = Resolver(DnsSettings(family=family), lookup=asked)
    assert asyncio.run(resolver.lookup(name)) == addresses
    assert asked.families == [wanted]


def test_families_take_turns() -> None:
    mixed = ["::1", "::2", "::3", "10.0.0.1", "10.0.0.2"]
    assert interleaved(mixed) == ["::1", "10.0.0.1", "::2", "10.0.0.2", "::3"]
    assert interleaved(mixed, 1) == ["::2", "10.0.0.2", "::3", "10.0.0.1", "::1"]
    assert interleaved(["10.0.0.1", "::1", "::2"]) == ["10.0.0.1", "::1", "::2"]


def test_a_failure_is_remembered_for_a_moment_only(asked: Asked) -> None:
    async def run() -> None:
        clock = Clock()
        resolver = Resolver(lookup=asked, clock=clock)
        for _ in range(2):
            with pytest.raises(NameResolutionError):
                await resolver.lookup("none.test")
        assert asked == ["none.test"]
        clock.now += FAILURE_TTL_SECONDS + 1
        with pytest.raises(NameResolutionError):
            await resolver.lookup("none.test")
        assert len(asked) == 2

    asyncio.run(run())


def test_a_name_without_addresses_is_a_failure(asked: Asked) -> None:
    asked.answers["empty.test"] = []
    with pytest.raises(NameResolutionError, match="no address"):
        asyncio.run(Resolver(lookup=asked).lookup("empty.test"))


def test_a_look_up_goes_on_without_who_asked_first(asked: Asked) -> None:
    async def run() -> None:
        resolver = Resolver(lookup=asked)
        first = asyncio.get_running_loop().create_task(resolver.lookup("two.test"))
        second = asyncio.get_running_loop().create_task(resolver.lookup("two.test"))
        await asyncio.sleep(0)
        first.cancel()
        assert sorted(await second) == ["10.0.0.1", "10.0.0.2"]
        assert (first.cancelled(), asked) == (True, ["two.test"])

    asyncio.run(run())


def test_look_ups_that_run_have_a_bound(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dns, "MAX_LOOKUPS", 1)

    async def run() -> None:
        resolver = Resolver(lookup=asked)
        first = asyncio.get_running_loop().create_task(resolver.lookup("two.test"))
        await asyncio.sleep(0)
        with pytest.raises(NameResolutionError, match="too many names"):
            await resolver.lookup("both.test")
        await first
        assert await resolver.lookup("both.test") == ["10.0.0.3"]

    asyncio.run(run())


def test_names_and_addresses_that_are_kept_have_a_bound(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dns, "MAX_NAMES", 2)

    async def run() -> None:
        asked.answers |= {f"n{number}.test": ["10.0.0.1"] for number in range(3)}
        asked.answers["many.test"] = [f"10.0.{number}.1" for number in range(200)]
        resolver = Resolver(lookup=asked, clock=Clock())
        for name in ("n0.test", "n1.test", "n2.test", "n1.test", "n2.test"):
            await resolver.lookup(name)
        assert asked == ["n0.test", "n1.test", "n2.test"]
        await resolver.lookup("n0.test")
        assert asked[3:] == ["n0.test"], "the oldest had gone"
        assert len(await resolver.lookup("many.test")) == MAX_ADDRESSES

    asyncio.run(run())


def test_a_failure_that_is_told_again_holds_nobody(asked: Asked) -> None:
    """Each who asks gets an error of its own: one that is raised again knows the frames of all who have met it."""

    async def frames(resolver: Resolver) -> int:
        try:
            await resolver.lookup("none.test")
        except NameResolutionError as error:
            if str(error) != "Name or service not known":
                raise
            return len(traceback.extract_tb(error.__traceback__))
        raise AssertionError("it was found")

    async def main() -> None:
        resolver = Resolver(lookup=asked, clock=Clock())
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


def test_the_c_library_is_asked_where_c_ares_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "headgate.net.cares", None)

    async def run() -> None:
        resolver = Resolver(DnsSettings(family="V4Only"))
        assert await resolver.lookup("localhost") == ["127.0.0.1"]
        with pytest.raises(NameResolutionError):
            await SystemLookup().ask("a..b", socket.AF_INET)
        assert isinstance(resolver._asked, SystemLookup)

    asyncio.run(run())
