"""The few wire forms of Protocol Buffers that are written by hand: no library for messages that are only sent."""

from __future__ import annotations

import struct
from collections.abc import Iterable


def varint(value: int) -> bytes:
    """Return a number in base 128; a negative one as 64 bits."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(tag: int, value: int) -> bytes:
    """Return a field with a number; zero is the default and is left out."""
    return varint(tag << 3) + varint(value) if value else b""


def double(tag: int, value: float) -> bytes:
    """Return a field with a floating-point number; zero too, for messages that have nothing else."""
    return varint(tag << 3 | 1) + struct.pack("<d", value)


def message(tag: int, body: bytes) -> bytes:
    """Return a field with a message, a text or bytes."""
    return varint(tag << 3 | 2) + varint(len(body)) + body


def packed(tag: int, values: Iterable[int]) -> bytes:
    """Return a field with many numbers."""
    return message(tag, b"".join(varint(value) for value in values))
