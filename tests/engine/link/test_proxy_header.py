"""PROXY protocol headers: what is one, wherever the bytes are cut, and what a connection does behind it."""

from __future__ import annotations

import asyncio
import logging

import proxy_naive as naive
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rig import GET, Rig, on_rig
from tests.engine.link.test_tcp_server import over_tcp

from headgate_drivers.tls import read_proxy_header
from headgate_engine.link.proxy_header import ProxyAddresses, ProxyHeader, ProxyRules

MORE, WHOLE, NONE, REFUSED = range(4)
V1 = b"PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n"
V1_6 = b"PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n"
V2 = naive.v2("192.0.2.1", 56324)
# A name and a checksum behind the addresses.
V2_6 = naive.v2("2001:db8::1", 7, more=b"\x02\0\6a.test" + b"\x03\0\4abcd")
CASES = {
    "v1": (V1, WHOLE, "192.0.2.1", 56324),
    "v1 over IPv6": (V1_6, WHOLE, "2001:db8::1", 1),
    "v1 mapped": (b"PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n", WHOLE, "192.0.2.1", 1),
    "v1 unknown": (b"PROXY UNKNOWN\r\n", WHOLE, None, 0),
    "v1 unknown with more": (b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", WHOLE, None, 0),
    "v1 longest": (b"PROXY UNKNOWN " + b"x" * 91 + b"\r\n", WHOLE, None, 0),
    "v1 too long": (b"PROXY UNKNOWN " + b"x" * 92 + b"\r\n", REFUSED, None, 0),
    "v1 other family": (b"PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n", REFUSED, None, 0),
    "v1 two spaces": (b"PROXY  TCP4 1.2.3.4 1.2.3.4 1 2\r\n", REFUSED, None, 0),
    "v1 wrong family": (b"PROXY TCP4 ::1 ::1 1 2\r\n", REFUSED, None, 0),
    "v1 zone": (b"PROXY TCP6 fe80::1%%eth0 ::1 1 2\r\n", REFUSED, None, 0),
    "v1 name": (b"PROXY TCP4 a.test 1.2.3.4 1 2\r\n", REFUSED, None, 0),
    "v1 port": (b"PROXY TCP4 1.2.3.4 1.2.3.4 65536 2\r\n", REFUSED, None, 0),
    "v1 port with a zero": (b"PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n", REFUSED, None, 0),
    "v1 sign": (b"PROXY TCP4 1.2.3.4 1.2.3.4 +1 2\r\n", REFUSED, None, 0),
    "v1 octal": (b"PROXY TCP4 01.2.3.4 1.2.3.4 1 2\r\n", REFUSED, None, 0),
    "v1 newline alone": (b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n", REFUSED, None, 0),
    "v1 high bytes": (b"PROXY TCP4 1.2.3.\xb2 1.2.3.4 1 2\r\n", REFUSED, None, 0),
    "v2": (V2, WHOLE, "192.0.2.1", 56324),
    "v2 over IPv6": (V2_6, WHOLE, "2001:db8::1", 7),
    "v2 mapped": (naive.v2("::ffff:192.0.2.1", 7), WHOLE, "192.0.2.1", 7),
    "v2 local": (naive.v2("192.0.2.1", 1, command=0x20), WHOLE, None, 0),
    "v2 local, empty": (naive.SIGNATURE + b"\x20\0\0\0", WHOLE, None, 0),
    "v2 unspecified": (naive.SIGNATURE + b"\x21\0\0\3abc", WHOLE, None, 0),
    "v2 unix": (naive.SIGNATURE + b"\x21\x31\0\xd8" + bytes(216), WHOLE, None, 0),
    "v2 datagrams": (naive.SIGNATURE + b"\x21\x12\0\x0c" + bytes(12), REFUSED, None, 0),
    "v2 short": (naive.SIGNATURE + b"\x21\x11\0\x0b" + bytes(11), REFUSED, None, 0),
    "v2 longest": (naive.v2("192.0.2.1", 1, more=bytes(500)), WHOLE, "192.0.2.1", 1),
    "v2 too long": (naive.v2("192.0.2.1", 1, more=bytes(501)), REFUSED, None, 0),
    "v2 version": (naive.SIGNATURE + b"\x31\x11\0\x0c" + bytes(12), REFUSED, None, 0),
    "v2 command": (naive.SIGNATURE + b"\x22\x11\0\x0c" + bytes(12), REFUSED, None, 0),
    "http": (GET, NONE, None, 0),
    "a method that looks like it": (b"PROXIES / HTTP/1.1\r\n", NONE, None, 0),
    "tls": (b"\x16\x03\x01\0", NONE, None, 0),
    "an empty line": (b"\r\n\r\nGET /", NONE, None, 0),
}  # fmt: skip


def result(data: bytes) -> tuple[int, int, str | None, int]:
    header = ProxyHeader()
    found = read_proxy_header(header, data)
    assert (found == REFUSED) == (header.fault is not None)
    return (found, header.length, header.host, header.port) if found == WHOLE else (found, 0, None, 0)


@pytest.mark.parametrize("case", CASES)
def test_what_is_a_header(case: str) -> None:
    data, expected, host, port = CASES[case]
    assert result(data) == (expected, len(data) if expected == WHOLE else 0, host, port)
    if expected == WHOLE:
        assert result(data + b"PROXY more") == (expected, len(data), host, port), "what follows is not looked at"
    # Cut at every byte: the same in the end, and nothing else before.
    header = ProxyHeader()
    for end in range(len(data) + 1):
        found = read_proxy_header(header, data[:end])
        if found != MORE:
            break
    assert (found, header.host) == (expected, host)
    if expected == WHOLE:
        assert end == len(data)


@given(st.sampled_from([data for data, *_ in CASES.values()]), st.data())
def test_spoiled_headers_are_read_as_the_oracle_reads_them(data: bytes, draws: st.DataObject) -> None:
    spoiled = bytearray(data)
    for _ in range(draws.draw(st.integers(0, 3))):
        at = draws.draw(st.integers(0, len(spoiled)))
        spoiled[at : at + draws.draw(st.integers(0, 2))] = draws.draw(st.binary(max_size=3))
    assert result(bytes(spoiled)) == naive.read(bytes(spoiled))


@pytest.mark.parametrize(("data", "v1", "v2"), [(V1, False, True), (V2, True, False)])
def test_only_versions_that_are_accepted_are_read(data: bytes, v1: bool, v2: bool) -> None:
    header = ProxyHeader(v1=v1, v2=v2)
    assert read_proxy_header(header, data) == REFUSED
    assert header.fault == f"version {1 if v2 else 2} is not accepted"


def test_rules_and_addresses() -> None:
    rules = ProxyRules(True, False, True)
    assert (rules.versions, rules.strict) == (1, True)
    addresses = ProxyAddresses("192.0.2.1", 1, "::1", 2)
    assert (addresses.host, addresses.port, addresses.raw_host, addresses.raw_port) == ("192.0.2.1", 1, "::1", 2)


@pytest.mark.parametrize("piece", [1, 7, 10_000])
@pytest.mark.parametrize("data", [V1, V1_6, V2, V2_6, b""])
@on_rig()
async def test_what_comes_behind_it_is_served(rig: Rig, data: bytes, piece: int) -> None:
    rig.bind.proxy_rules = ProxyRules(True, True, bool(data))
    client = await rig.client()
    both = data + GET
    for at in range(0, len(both), piece):
        await client.send(both[at : at + piece])
        await asyncio.sleep(0)
    assert (await client.answer()).body == b"/ "
    # A second header is no header.
    assert (await client.ask(GET)).body == b"/ "


@pytest.mark.parametrize("data", [GET, b"PROXY TCP4\r\n", b"\r\n\r\n\0\r\nQUIT\n\x31\0\0\0", b"PROXY UNKNOWN" + b"x" * 200])
def test_without_a_header_the_connection_ends(data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    @on_rig()
    async def attempt(rig: Rig) -> None:
        caplog.set_level(logging.INFO, "headgate.tls")
        rig.bind.proxy_rules = ProxyRules(True, True, True)
        client = await rig.client()
        await client.send(data)
        try:
            assert await client.ended() == b""
        except ConnectionResetError:
            pass
        await rig.wait(lambda: rig.worker.arriving_count() == 0, "it is forgotten")

    attempt(caplog)
    [line] = [record for record in caplog.records if record.message == "PROXY protocol header refused"]
    assert line.__dict__["src.addr"].startswith("127.0.0.1:")


@on_rig()
async def test_an_optional_header_may_break_off_anywhere(rig: Rig) -> None:
    """What begins like a header and is none goes on whole, at whichever byte that shows."""
    async def script(up) -> None:
        await up.send(await up.intake.rest())

    rig.script = script
    over_tcp(rig)
    rig.bind.proxy_rules = ProxyRules(True, True, False)
    for start in (b"PROXY ", naive.SIGNATURE):
        for end in range(len(start)):
            client = await rig.client()
            await client.send(start[:end])
            await asyncio.sleep(0)
            await client.send(b"#")
            client.eof()
            assert await client.ended() == start[:end] + b"#"
            # It ends within.
            client = await rig.client()
            await client.send(start[:end])
            client.eof()
            try:
                assert await client.ended() == start[:end]
            except ConnectionResetError:
                assert end == 0
