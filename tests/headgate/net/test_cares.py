"""Questions to a name server of the tests, by c-ares."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.dns_rig import AAAA, A, NameServer

from headgate.ir.process import DnsSettings
from headgate.net import cares
from headgate.net.cares import CaresLookup, system_edns0
from headgate.net.dns import Found, Resolver
from headgate.net.tasks import spawn
from headgate_engine.errors import NameResolutionError


@pytest.fixture
def server() -> Iterator[NameServer]:
    with NameServer() as found:
        yield found


def lookup(server: NameServer, edns0: bool | None = None) -> CaresLookup:
    return CaresLookup(DnsSettings(servers=(server.place,), edns0=edns0))


def ask(found: CaresLookup, name: str, family: socket.AddressFamily = socket.AF_INET) -> list[Found]:
    return asyncio.run(found.ask(name, family))


def test_records_come_with_their_ttl(server: NameServer) -> None:
    server.answers["a.test"] = ["10.0.0.1", "fd00::1"]
    server.ttl = 77
    found = lookup(server)
    assert ask(found, "a.test") == [Found("10.0.0.1", 77.0)]
    assert ask(found, "a.test", socket.AF_INET6) == [Found("fd00::1", 77.0)]
    assert sorted(ask(lookup(server), "a.test", socket.AF_UNSPEC)) == [Found("10.0.0.1", 77.0), Found("fd00::1", 77.0)]
    assert (server.count("a.test", A), server.count("a.test", AAAA)) == (2, 2)


def test_what_does_not_fit_comes_by_tcp(server: NameServer) -> None:
    server.answers["big.test"] = [f"10.0.{number}.1" for number in range(120)]
    assert len(ask(lookup(server), "big.test")) == 120
    assert [one[2] for one in server.asked] == ["udp", "tcp"]


@pytest.mark.parametrize("edns0", [True, False])
def test_questions_carry_edns_as_configured(server: NameServer, edns0: bool) -> None:
    server.answers["a.test"] = ["10.0.0.1"]
    ask(lookup(server, edns0), "a.test")
    assert server.asked == [("a.test", A, "udp", edns0)]


def test_edns_is_that_of_the_system_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RES_OPTIONS", raising=False)
    file = tmp_path / "resolv.conf"
    assert not system_edns0(file), "no such file"
    file.write_text("nameserver 10.0.0.1\n# options edns0\noptions ndots:2\n")
    assert not system_edns0(file)
    file.write_text("nameserver 10.0.0.1\noptions ndots:2 edns0\n")
    assert system_edns0(file)
    file.write_text("")
    monkeypatch.setenv("RES_OPTIONS", "edns0 rotate")
    assert system_edns0(file)


def test_search_domains_are_honoured(server: NameServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALDOMAIN", "corp.test")
    server.answers["short.corp.test"] = ["10.0.0.9"]
    assert ask(lookup(server), "short") == [Found("10.0.0.9", 60.0)]


def test_the_hosts_file_is_honoured(server: NameServer) -> None:
    lines = (line.partition("#")[0].split() for line in Path("/etc/hosts").read_text().splitlines())
    address, name = next((line[0], line[1]) for line in lines if len(line) > 1 and ":" not in line[0])
    assert address in {one.address for one in ask(lookup(server), name)}
    assert server.asked == []


def test_a_name_that_does_not_exist_fails(server: NameServer) -> None:
    with pytest.raises(NameResolutionError, match="not found"):
        ask(lookup(server), "none.test")
    server.answers["six.test"] = ["fd00::1"]
    with pytest.raises(NameResolutionError):
        ask(lookup(server), "six.test")
    with pytest.raises(NameResolutionError):
        ask(lookup(server), "a..test")


def test_a_server_that_is_silent_fails_in_time(server: NameServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cares, "TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr(cares, "TRIES", 2)
    server.silent = True
    with pytest.raises(NameResolutionError, match=r"(?i)time"):
        ask(lookup(server), "a.test")
    assert server.count("a.test") == 2


def test_a_caller_that_leaves_takes_nothing_along(server: NameServer) -> None:
    server.answers["a.test"] = ["10.0.0.1"]
    found = lookup(server)

    async def run() -> list[Found]:
        waiting = spawn("ask", found.ask("a.test", socket.AF_INET))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert waiting.cancelled()
        return await found.ask("a.test", socket.AF_INET)

    assert asyncio.run(run()) == [Found("10.0.0.1", 60.0)]


def test_a_channel_serves_so_many_look_ups(server: NameServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """c-ares keeps answers without a bound on their number: they go with the channel."""
    monkeypatch.setattr(cares, "LOOKUPS_OF_CHANNEL", 2)
    server.answers["a.test"] = ["10.0.0.1"]
    found = lookup(server)

    async def run() -> None:
        for _ in range(5):
            await found.ask("a.test", socket.AF_INET)
        # Look-ups that run while their channel is replaced are answered.
        together = await asyncio.gather(*(found.ask("a.test", socket.AF_INET) for _ in range(7)))
        assert together == [[Found("10.0.0.1", 60.0)]] * 7

    asyncio.run(run())
    assert server.count("a.test") >= 3


def test_the_resolver_asks_once_per_ttl(server: NameServer) -> None:
    server.answers["a.test"] = ["10.0.0.1"]
    server.ttl = 600
    now = [0.0]

    async def run() -> None:
        resolver = Resolver(DnsSettings(servers=(server.place,)), clock=lambda: now[0])
        for moment in (0.0, 599.0):
            now[0] = moment
            assert await resolver.lookup("a.test") == ["10.0.0.1"]
        assert server.count("a.test") == 1

    asyncio.run(run())
