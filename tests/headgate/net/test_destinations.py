"""Places that clients name: how they are written, and which may be reached."""

from __future__ import annotations

import asyncio
from ipaddress import ip_address

import pytest

from headgate.ir.backend import DestinationRules
from headgate.net.destinations import DestinationGuard, GuardedNames, denied, is_local, place_of, written
from headgate_engine.errors import DestinationRefusedError


@pytest.mark.parametrize(
    ("authority", "place"),
    [
        ("a.test", ("a.test", 80)),
        ("A.Test:8080", ("a.test", 8080)),
        ("a.test.", ("a.test", 80)),
        ("a.test.:443", ("a.test", 443)),
        ("a.test:", ("a.test", 80)),
        ("_srv.a-b.test", ("_srv.a-b.test", 80)),
        ("1.2.3.4:80", ("1.2.3.4", 80)),
        ("1.2.3.4.", ("1.2.3.4", 80)),
        ("127.0.0.1.nip.test", ("127.0.0.1.nip.test", 80)),
        ("[2001:DB8::0001]:443", ("2001:db8::1", 443)),
        ("[::ffff:10.0.0.1]", ("10.0.0.1", 80)),
        ("[::ffff:a00:1]:81", ("10.0.0.1", 81)),
    ],
)
def test_there_is_one_way_to_write_a_place(authority: str, place: tuple[str, int]) -> None:
    assert place_of(authority.encode(), 80) == place
    assert place_of(written(*place).encode(), None) == place


@pytest.mark.parametrize(
    "authority",
    [
        "", ":80", ".", "a..test", "a.test..", "-a.test", "a-.test", "a b", "a.test:0", "a.test:65536", "a.test:-1", "a.test:x",
        "user@a.test", "user:secret@a.test", "a.test/path", "a%2etest", "a\u00e9.test", f"{'a' * 64}.test", f"{'a.' * 130}test",
        # Other ways to write 127.0.0.1, as inet_aton(3) reads them.
        "0x7f.1", "0x7f000001", "2130706433", "017700000001", "127.1", "127.0.1", "0177.0.0.1", "127.0.0.01", "127.0.0.1.2",
        "0X7F.0.0.1", "127.0.0.0x1", "1.2.3.256", "a.1", "a.0x", "256",
        # Zones and what is no address.
        "[fe80::1%25eth0]", "[fe80::1%eth0]:80", "[::1", "::1", "[1.2.3.4]", "[]", "[::1]x", "[:::1]", "[g::1]",
    ],
)  # fmt: skip
def test_what_is_no_place_is_refused(authority: str) -> None:
    with pytest.raises(ValueError) as refusal:
        place_of(authority.encode("latin-1"), 80)
    assert not isinstance(refusal.value, UnicodeError)


def test_a_place_without_a_port_needs_a_default() -> None:
    with pytest.raises(ValueError, match="no port"):
        place_of(b"a.test", None)


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("0.0.0.0", "unspecified"), ("0.1.2.3", "unspecified"), ("10.1.2.3", "private"), ("100.64.0.1", "shared"),
        ("100.127.255.255", "shared"), ("127.0.0.1", "loopback"), ("127.255.255.254", "loopback"),
        ("169.254.1.1", "link-local"), ("169.254.169.254", "metadata"), ("169.254.170.2", "metadata"),
        ("168.63.129.16", "metadata"), ("172.16.0.1", "private"), ("172.31.255.255", "private"), ("192.0.0.1", "reserved"),
        ("192.0.2.1", "reserved"), ("192.88.99.1", "reserved"), ("192.168.1.1", "private"), ("198.18.0.1", "reserved"),
        ("198.19.255.255", "reserved"), ("224.0.0.1", "multicast"), ("239.255.255.255", "multicast"),
        ("240.0.0.1", "reserved"), ("255.255.255.255", "reserved"),
        ("::", "unspecified"), ("::1", "loopback"), ("fe80::1", "link-local"), ("febf::1", "link-local"), ("fc00::1", "private"),
        ("fd12:3456::1", "private"), ("fd00:ec2::254", "metadata"), ("ff02::1", "multicast"), ("fec0::1", "reserved"),
        ("100::1", "reserved"), ("2001:db8::1", "reserved"), ("2001::1", "reserved"), ("2002:7f00:1::", "6to4"),
        ("2002:808:808::", "6to4"), ("3fff::1", "reserved"), ("::127.0.0.1", "reserved"), ("::8.8.8.8", "reserved"),
        ("::ffff:127.0.0.1", "loopback"), ("::ffff:169.254.169.254", "metadata"), ("64:ff9b::7f00:1", "loopback"),
        ("64:ff9b::a9fe:a9fe", "metadata"), ("64:ff9b:1::808:808", "reserved"), ("2606:4700::5efe:a00:1", "ISATAP"),
        ("2606:4700::200:5efe:a00:1", "ISATAP"), ("4000::1", "reserved"),
        ("8.8.8.8", None), ("1.1.1.1", None), ("100.63.255.255", None), ("100.128.0.0", None), ("172.15.255.255", None),
        ("172.32.0.0", None), ("169.253.255.255", None), ("223.255.255.255", None), ("2606:4700::1111", None),
        ("::ffff:8.8.8.8", None), ("64:ff9b::808:808", None), ("2001:4860:4860::8888", None),
    ],
)  # fmt: skip
def test_kinds_of_addresses(address: str, kind: str | None) -> None:
    assert denied(ip_address(address)) == kind


def test_addresses_of_this_machine() -> None:
    for text in ("127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "::"):
        assert is_local(ip_address(text)), text
    for text in ("192.0.2.77", "8.8.8.8", "2001:db8::77"):
        assert not is_local(ip_address(text)), text


def guard(
    hosts: tuple[str, ...] | None = None, ranges: tuple[str, ...] = (), ports: tuple[int, ...] = (), own: int = 15000
) -> DestinationGuard:
    return DestinationGuard(DestinationRules(hosts=hosts, ranges=ranges, ports=ports), lambda port: port == own)


@pytest.mark.parametrize(
    ("rules", "host", "port", "message"),
    [
        (guard(), "127.0.0.1", 80, "loopback"),
        (guard(("127.0.0.1",)), "127.0.0.1", 80, "loopback"),
        (guard(ports=(443,)), "a.test", 80, "port 80"),
        (guard(("a.test", "*.b.test")), "b.test", 80, "allowedHosts"),
        (guard(("a.test", "*.b.test")), "xb.test", 80, "allowedHosts"),
        (guard(("a.test",)), "a.test.b.test", 80, "allowedHosts"),
        (guard(("a.test",)), "8.8.8.8", 80, "allowedHosts"),
        (guard(ranges=("169.254.0.0/16",)), "169.254.169.254", 80, "metadata"),
        (guard(ranges=("0.0.0.0/0", "::/0")), "fd00:ec2::254", 80, "metadata"),
        (guard(ranges=("0.0.0.0/0",)), "64:ff9b::a9fe:a9fe", 80, "metadata"),
        (guard(ranges=("127.0.0.0/8",)), "127.0.0.1", 15000, "the gateway's own"),
        (guard(ranges=("127.0.0.0/8",)), "::ffff:127.0.0.2", 15000, "the gateway's own"),
        (guard(ranges=("0.0.0.0/8", "::/128")), "0.0.0.0", 15000, "the gateway's own"),
        (guard(ranges=("0.0.0.0/8", "::/128")), "::", 15000, "the gateway's own"),
        (guard(ranges=("10.0.0.0/8",)), "192.168.0.1", 80, "private"),
    ],
)
def test_refused(rules: DestinationGuard, host: str, port: int, message: str) -> None:
    with pytest.raises(DestinationRefusedError, match=message):
        rules.check(host, port)


@pytest.mark.parametrize(
    ("rules", "host", "port"),
    [
        (guard(), "a.test", 80),
        (guard(), "8.8.8.8", 15000),
        (guard(("a.test", "*.b.test")), "a.test", 80),
        (guard(("a.test", "*.b.test")), "x.y.b.test", 80),
        (guard(("8.8.8.8",)), "8.8.8.8", 53),
        (guard(ports=(443, 80)), "a.test", 443),
        (guard(ranges=("10.0.0.0/8",)), "10.9.9.9", 80),
        (guard(ranges=("10.0.0.0/8",)), "::ffff:10.9.9.9", 80),
        (guard(ranges=("10.0.0.0/8",)), "64:ff9b::a09:909", 80),
        (guard(ranges=("169.254.169.254/32",)), "169.254.169.254", 80),
        (guard(ranges=("fd00:ec2::254/128",)), "fd00:ec2::254", 80),
        (guard(ranges=("127.0.0.0/8",)), "127.0.0.1", 15001),
    ],
)
def test_allowed(rules: DestinationGuard, host: str, port: int) -> None:
    rules.check(host, port)


class Fixed:
    def __init__(self, *addresses: str) -> None:
        self.addresses = list(addresses)

    async def lookup(self, host: str) -> list[str]:
        return self.addresses


def test_only_addresses_that_are_allowed_are_dialled() -> None:
    async def run() -> None:
        mixed = GuardedNames(Fixed("10.0.0.1", "8.8.8.8", "::1", "2606:4700::1"), guard(), 80)
        assert await mixed.lookup("a.test") == ["8.8.8.8", "2606:4700::1"]
        with pytest.raises(DestinationRefusedError, match=r"a\.test: 10\.0\.0\.1 is a private address"):
            await GuardedNames(Fixed("10.0.0.1"), guard(), 80).lookup("a.test")
        opened = GuardedNames(Fixed("127.0.0.1"), guard(ranges=("127.0.0.1/32",)), 15000)
        with pytest.raises(DestinationRefusedError, match="own"):
            await opened.lookup("a.test")

    asyncio.run(run())
