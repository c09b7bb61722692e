"""PROXY protocol headers for backends: their bytes, and that no connection carries the calls of two clients."""

from __future__ import annotations

import struct

import proxy_naive as naive
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rig import GET, Rig, Upstream, on_rig
from tests.engine.link.test_tcp_server import over_tcp

from headgate_drivers.tls import read_proxy_header
from headgate_engine.link.pool import Pool
from headgate_engine.link.proxy_header import ProxyHeader, ProxyRules
from headgate_engine.link.proxy_sender import SIGNATURE, ProxySender, header
from headgate_engine.link.tcp_upstream import TcpUpstream
from headgate_engine.link.upstream import Http1Upstream

WHOLE = 1
# From sections 2.1 and 2.2 of https://github.com/haproxy/haproxy/blob/master/doc/proxy-protocol.txt.
SIX = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
LINES = {
    b"PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n": (("255.255.255.255", 65535),) * 2,
    f"PROXY TCP6 {SIX} {SIX} 65535 65535\r\n".encode(): ((SIX, 65535),) * 2,
    b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n": (("192.168.0.1", 56324), ("192.168.0.11", 443)),
    b"PROXY UNKNOWN\r\n": (None, None),
}
MAGIC = bytes.fromhex("0D 0A 0D 0A 00 0D 0A 51 55 49 54 0A")


@pytest.mark.parametrize("line", LINES)
def test_lines_of_version_1(line: bytes) -> None:
    assert header(1, *LINES[line]) == line


def test_blocks_of_version_2() -> None:
    assert SIGNATURE == MAGIC
    four = header(2, ("192.168.0.1", 56324), ("192.168.0.11", 443))
    assert four == MAGIC + bytes.fromhex("21 11 00 0C  C0 A8 00 01  C0 A8 00 0B  DC 04  01 BB")
    six = header(2, ("2001:db8::1", 1), ("::1", 65535), [(2, b"a.test"), (5, b"id")])
    block = bytes.fromhex("20010db8000000000000000000000001 00000000000000000000000000000001 0001 FFFF")
    block += b"\x02\x00\x06a.test" + b"\x05\x00\x02id"
    assert six == MAGIC + bytes.fromhex("21 21") + struct.pack("!H", len(block)) + block
    # LOCAL, and no addresses: what is not of IP is not told.
    for ends in ((None, None), (("", 0), ("127.0.0.1", 1)), (("127.0.0.1", 1), ("", 0)), (("a.test", 1), ("::1", 1))):
        assert header(2, *ends) == MAGIC + bytes.fromhex("20 00 00 00")
        assert header(1, *ends) == b"PROXY UNKNOWN\r\n"


def test_addresses_of_two_families_and_with_zones() -> None:
    assert header(1, ("192.0.2.1", 1), ("2001:db8::2", 2)) == b"PROXY TCP6 ::ffff:192.0.2.1 2001:db8::2 1 2\r\n"
    assert header(1, ("fe80::1%eth0", 1), ("fe80::2%eth0", 2)) == b"PROXY TCP6 fe80::1 fe80::2 1 2\r\n"
    assert header(2, ("192.0.2.1", 1), ("2001:db8::2", 2))[13] == 0x21


def test_extensions_that_do_not_fit_are_left_out() -> None:
    whole = header(2, ("192.0.2.1", 1), ("192.0.2.2", 2), [(1, bytes(300)), (2, bytes(300)), (3, bytes(190))])
    assert struct.unpack("!H", whole[14:16])[0] == 12 + 303 + 193
    assert naive.read(whole) == (WHOLE, len(whole), "192.0.2.1", 1)
    with pytest.raises(ValueError, match="no such version"):
        ProxySender(3, lambda _: None)  # type: ignore[arg-type,return-value]


HOSTS = st.ip_addresses().map(str)
PORTS = st.integers(0, 65535)


@given(st.sampled_from([1, 2]), st.tuples(HOSTS, PORTS), st.tuples(HOSTS, PORTS))
def test_the_reader_gets_what_was_sent(version: int, source: tuple[str, int], destination: tuple[str, int]) -> None:
    data = header(version, source, destination)
    reader = ProxyHeader()
    assert read_proxy_header(reader, data) == WHOLE
    result, length, host, port = naive.read(data)
    assert (result, length) == (WHOLE, len(data)) == (WHOLE, reader.length)
    assert (reader.host, reader.port) == (host, port)
    assert reader.destination is not None
    assert reader.destination[1] == destination[1]
    # As in logs, an IPv4 address is one wherever it came from.
    known = header(2, (reader.host, reader.port), reader.destination)
    assert naive.read(known)[2:] == (host, port)


class Opened:
    """The pools of a rig's clients, by the headers that their connections would begin with."""

    def __init__(self, rig: Rig, protocol: type) -> None:
        self.rig, self.protocol = rig, protocol
        self.headers: list[bytes] = []
        self.pools: list[Pool] = []
        rig.pool.clients = ProxySender(1, self.open)

    def open(self, head: bytes) -> Pool:
        rig = self.rig
        self.headers.append(head)
        self.pools.append(Pool(rig.worker, "b", b"backend:80", rig.connect_upstream, self.protocol(rig.worker)))
        return self.pools[-1]


async def numbered(up: Upstream) -> None:
    while True:
        await up.request()
        await up.reply(b"%d" % up.number)


@on_rig()
async def test_a_connection_is_kept_for_its_client_alone(rig: Rig) -> None:
    rig.script = numbered
    opened = Opened(rig, Http1Upstream)
    one, other = await rig.client(), await rig.client()
    assert [(await one.ask(GET)).body for _ in range(3)] == [b"1"] * 3
    assert [(await other.ask(GET)).body for _ in range(2)] == [b"2"] * 2
    assert (await one.ask(GET)).body == b"1"
    ends = [f"{host} {port}" for client in (one, other) for host, port in [client.sock.getsockname()]]
    expected = [end.replace(" ", " 127.0.0.1 ").encode() for end in ends]
    assert [head.removeprefix(b"PROXY TCP4 ").rsplit(b" ", 1)[0] for head in opened.headers] == expected
    # What was opened for a client ends with it, and nothing else does.
    one.close()
    await rig.wait(lambda: opened.pools[0].closed and opened.pools[0].open == 0, "its connections are closed")
    assert not opened.pools[1].closed
    assert (await other.ask(GET)).body == b"2"
    # Nor does anybody get the connection of one that has left.
    third = await rig.client()
    assert (await third.ask(GET)).body == b"3"
    other.close()
    third.close()
    await rig.wait(lambda: all(pool.closed and pool.open == 0 for pool in opened.pools), "they are closed")
    assert rig.pool.opened == 0


@on_rig()
async def test_pools_of_places_that_are_gone_are_forgotten(rig: Rig) -> None:
    rig.script = numbered
    first = Opened(rig, Http1Upstream)
    client = await rig.client()
    assert (await client.ask(GET)).body == b"1"
    rig.pool.close()
    rig.backend.pool = rig.pool = Pool(rig.worker, "c", b"backend:80", rig.connect_upstream, Http1Upstream(rig.worker))
    second = Opened(rig, Http1Upstream)
    assert (await client.ask(GET)).body == b"2"
    assert first.pools[0].closed
    client.close()
    await rig.wait(lambda: second.pools[0].closed and second.pools[0].open == 0, "all is closed")


@on_rig()
async def test_bytes_behind_a_header_that_came_in(rig: Rig) -> None:
    async def all_of_it(up: Upstream) -> None:
        await up.send(await up.intake.rest())

    rig.script = all_of_it
    over_tcp(rig)
    rig.bind.proxy_rules = ProxyRules(True, True, True)
    opened = Opened(rig, TcpUpstream)
    client = await rig.client()
    await client.send(naive.v2("192.0.2.8", 4712) + b"abc")
    client.eof()
    assert await client.ended() == b"abc"
    # The address that the client connected to is the one that the header had.
    assert opened.headers == [b"PROXY TCP4 192.0.2.8 127.0.0.1 4712 443\r\n"]
    await rig.wait(lambda: opened.pools[0].closed and opened.pools[0].open == 0, "it is closed")
