"""Encoders for the wire format of Protocol Buffers, for messages that are only sent.

Source: https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable


def varint(value: int) -> bytes:
    """Return an integer as a base 128 varint. A negative integer is encoded as 64 bits in two's complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(tag: int, value: int) -> bytes:
    """Return a varint field, or b"" for zero, which is the default value."""
    return varint(tag << 3) + varint(value) if value else b""


def signed(tag: int, value: int) -> bytes:
    """Return a field of type sint32 or sint64 (ZigZag). Zero is encoded as well."""
    return varint(tag << 3) + varint(zigzag(value))


def zigzag(value: int) -> int:
    """Return an integer of 64 bits as the unsigned one that stands for it in sint32 and sint64."""
    return value << 1 ^ value >> 63


def double(tag: int, value: float) -> bytes:
    """Return a field of type double. Zero is encoded as well, so that a message is never empty."""
    return varint(tag << 3 | 1) + struct.pack("<d", value)


def fixed64(tag: int, value: int) -> bytes:
    """Return a field of type fixed64 or sfixed64. Zero is encoded as well."""
    return varint(tag << 3 | 1) + struct.pack("<q", value)


def message(tag: int, body: bytes) -> bytes:
    """Return a length-delimited field: a message, a string or bytes."""
    return varint(tag << 3 | 2) + varint(len(body)) + body


def packed(tag: int, values: Iterable[int]) -> bytes:
    """Return a packed repeated field of integers."""
    return message(tag, b"".join(varint(value) for value in values))
