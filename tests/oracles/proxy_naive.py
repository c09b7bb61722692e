"""PROXY protocol headers, read from whole inputs and written the way their document is."""

from __future__ import annotations

import ipaddress
import re
import struct

MORE, WHOLE, NONE, REFUSED = range(4)
SIGNATURE = b"\x0d\x0a\x0d\x0a\x00\x0d\x0a\x51\x55\x49\x54\x0a"
PORT = rb"(0|[1-9][0-9]{0,4})"
LINE = re.compile(rb"PROXY (TCP4|TCP6) ([^ ]*) ([^ ]*) " + PORT + b" " + PORT + rb"\r\n")
UNKNOWN = re.compile(rb"PROXY UNKNOWN(?: [^\n]*)?\r\n")


def read(data: bytes) -> tuple[int, int, str | None, int]:
    """Result, length of the header, host and port of the client."""
    if not data:
        return MORE, 0, None, 0
    for start in (SIGNATURE, b"PROXY "):
        if start.startswith(data) and len(data) < len(start):
            return MORE, 0, None, 0
    if data.startswith(SIGNATURE):
        return _block(data)
    if data.startswith(b"PROXY "):
        return _line(data)
    return NONE, 0, None, 0


def _line(data: bytes) -> tuple[int, int, str | None, int]:
    line, end, _ = data[:107].partition(b"\n")
    line += end
    if not end:
        return (MORE if len(data) < 107 else REFUSED), 0, None, 0
    if UNKNOWN.fullmatch(line):
        return WHOLE, len(line), None, 0
    found = LINE.fullmatch(line)
    try:
        assert found is not None
        kind = ipaddress.IPv4Address if found[1] == b"TCP4" else ipaddress.IPv6Address
        host, _ = kind(found[2].decode("ascii")), kind(found[3].decode("ascii"))
        assert int(found[4]) < 65536
        assert int(found[5]) < 65536
    except (AssertionError, ValueError):
        return REFUSED, 0, None, 0
    return WHOLE, len(line), _shown(host), int(found[4])


def _block(data: bytes) -> tuple[int, int, str | None, int]:
    if len(data) < 16:
        return MORE, 0, None, 0
    command, family, length = struct.unpack("!BBH", data[12:16])
    if command not in (0x20, 0x21) or length > 512:
        return REFUSED, 0, None, 0
    whole = data[16 : 16 + length]
    if len(whole) < length:
        return MORE, 0, None, 0
    if command == 0x20 or family in (0, 0x31):
        return WHOLE, 16 + length, None, 0
    if family == 0x11 and length >= 12:
        return WHOLE, 16 + length, str(ipaddress.IPv4Address(whole[:4])), struct.unpack("!H", whole[8:10])[0]
    if family == 0x21 and length >= 36:
        return WHOLE, 16 + length, _shown(ipaddress.IPv6Address(whole[:16])), struct.unpack("!H", whole[32:34])[0]
    return REFUSED, 0, None, 0


def _shown(host: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    if isinstance(host, ipaddress.IPv6Address) and host.ipv4_mapped is not None:
        return str(host.ipv4_mapped)
    return str(host)


def v2(source: str, port: int, *, command: int = 0x21, more: bytes = b"") -> bytes:
    """A header of version 2."""
    host = ipaddress.ip_address(source)
    here = ipaddress.ip_address("127.0.0.1" if host.version == 4 else "::1")
    block = host.packed + here.packed + struct.pack("!HH", port, 443) + more
    return SIGNATURE + struct.pack("!BBH", command, 0x11 if host.version == 4 else 0x21, len(block)) + block
