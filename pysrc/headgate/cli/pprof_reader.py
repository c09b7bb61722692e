"""Reads profiles in the format of pprof.

Source: https://github.com/google/pprof/blob/main/proto/profile.proto.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

GZIP: Final = b"\x1f\x8b"
# What a profile may have when it is unpacked.
MAX_BYTES: Final = 256 * 1024 * 1024
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True)
class ReadSample:
    """One stack, the leaf last, with a value for each type. `process` is what the label of that name says."""

    stack: tuple[str, ...]
    values: tuple[int, ...]
    process: str


@dataclass(frozen=True)
class ReadProfile:
    """Types of values as (name, unit), and the samples."""

    types: tuple[tuple[str, str], ...]
    samples: tuple[ReadSample, ...]

    def index(self, name: str) -> int:
        """Return the index of the values of a type; the last one where there is none of that name."""
        return next((at for at, one in enumerate(self.types) if one[0] == name), len(self.types) - 1)


def read_profile(content: bytes) -> ReadProfile:
    """Return a profile, packed or not. Raises ValueError if the bytes are none."""
    if content.startswith(GZIP):
        try:
            # Nothing beyond the bound is unpacked.
            unpacked = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(content, MAX_BYTES)
        except zlib.error as error:
            raise ValueError(f"not a profile: {error}") from None
        content = unpacked
    try:
        return _profile(content)
    except (IndexError, UnicodeDecodeError, KeyError):
        raise ValueError("not a profile in the format of pprof") from None


def _profile(content: bytes) -> ReadProfile:
    parts: dict[int, list[bytes]] = {1: [], 2: [], 4: [], 5: [], 6: []}
    for tag, value in _fields(content):
        if tag in parts and isinstance(value, bytes):
            parts[tag].append(value)
    texts = [one.decode() for one in parts[6]]
    types = []
    for one in parts[1]:
        pair = dict(_fields(one))
        types.append((texts[_whole(pair.get(1, 0))], texts[_whole(pair.get(2, 0))]))
    functions = {}
    for one in parts[5]:
        fields = dict(_fields(one))
        functions[fields.get(1, 0)] = texts[_whole(fields.get(2, 0))]
    places = {}
    for one in parts[4]:
        fields = dict(_fields(one))
        line = fields.get(4)
        called = dict(_fields(line)).get(1, 0) if isinstance(line, bytes) else 0
        places[fields.get(1, 0)] = functions.get(called, "?")
    return ReadProfile(tuple(types), tuple(_sample(one, places, texts) for one in parts[2]))


def _sample(content: bytes, places: dict[int | bytes, str], texts: list[str]) -> ReadSample:
    stack: list[str] = []
    values: list[int] = []
    process = ""
    for tag, value in _fields(content):
        if tag == 1:
            stack += [places[one] for one in _numbers(value)]
        elif tag == 2:
            values += [one - (1 << 64) if one >> 63 else one for one in _numbers(value)]
        elif tag == 3 and isinstance(value, bytes):
            label = dict(_fields(value))
            if texts[_whole(label.get(1, 0))] == "process":
                process = texts[_whole(label.get(2, 0))]
    return ReadSample(tuple(reversed(stack)), tuple(values), process)


def _whole(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise IndexError
    return value


def _numbers(value: int | bytes) -> Iterator[int]:
    if isinstance(value, int):
        yield value
        return
    at = 0
    while at < len(value):
        found, at = _varint(value, at)
        yield found


def _varint(content: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        byte = content[at]
        at += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found, at
        shift += 7
        if shift > 63:
            raise IndexError


def _fields(content: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field of a message. Raises IndexError if it is none."""
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        kind = key & 7
        if kind == VARINT:
            value, at = _varint(content, at)
            yield key >> 3, value
            continue
        if kind == BYTES:
            size, at = _varint(content, at)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
        else:
            raise IndexError
        if at + size > len(content):
            raise IndexError
        yield key >> 3, content[at : at + size]
        at += size
