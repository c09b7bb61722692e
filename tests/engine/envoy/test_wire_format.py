"""The reader takes what the protobuf library takes, and refuses what it refuses."""

from __future__ import annotations

import random

import pytest
from google.protobuf import unknown_fields
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError

from headgate_drivers.protobuf import utf8, wire_fields

MESSAGES = (
    b"", b"\x08\x01", b"\x08\x96\x01", b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x12\x03abc", b"\x12\x00",
    b"\x0d\x01\x02\x03\x04", b"\x09\x01\x02\x03\x04\x05\x06\x07\x08", b"\x0b\x08\x01\x0c", b"\x0b\x13\x14\x0c\x08\x07",
    b"\xfa\xff\xff\xff\x0f\x01a",
    # Malformed: cut short, groups that do not fit, wire types that do not exist, lengths beyond the end.
    b"\x08", b"\x12\x03ab", b"\x12", b"\x0b\x08\x01", b"\x0b\x14", b"\x0c", b"\x0e", b"\x0f", b"\x0d\x01",
    b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x09\x01",
)  # fmt: skip


def library(message: bytes) -> list[tuple[int, int]] | None:
    try:
        found = Empty.FromString(message)
    except DecodeError:
        return None
    return [(one.field_number, one.wire_type) for one in unknown_fields.UnknownFieldSet(found)]


@pytest.mark.parametrize("message", MESSAGES)
def test_fields(message: bytes) -> None:
    found = wire_fields(message)
    assert (None if found is None else [field[:2] for field in found]) == library(message)


def test_values() -> None:
    message = b"\x08\x96\x01\x12\x03abc\x1d\x01\x02\x03\x04\x18\x00"
    assert wire_fields(message) == [(1, 0, 150, b""), (2, 2, 3, b"abc"), (3, 5, 0, b""), (3, 0, 0, b"")]


def test_spoiled_messages() -> None:
    chance = random.Random(1)
    for _ in range(20_000):
        message = bytearray(b"".join(chance.sample(MESSAGES, 3)))
        for _ in range(chance.randrange(4)):
            if message:
                message[chance.randrange(len(message))] = chance.randrange(256)
        expected = library(bytes(message))
        found = wire_fields(bytes(message))
        if found is None and min(message, default=8) < 8:
            continue        # the number 0, which no field has: this message of the library takes it, others do not
        assert (None if found is None else [field[:2] for field in found]) == expected, bytes(message)


@pytest.mark.parametrize("message", [b"\x00\x01", b"\x02\x00", b"\x0b\x00\x01\x0c"])
def test_no_field_has_the_number_0(message: bytes) -> None:
    assert wire_fields(message) is None


def test_text() -> None:
    chance = random.Random(2)
    edges = (b"\x7f", b"\xc2\x80", b"\xc1\xbf", b"\xdf\xbf", b"\xe0\xa0\x80", b"\xe0\x9f\xbf", b"\xed\x9f\xbf", b"\xed\xa0\x80",
             b"\xef\xbf\xbf", b"\xf0\x90\x80\x80", b"\xf0\x8f\xbf\xbf", b"\xf4\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5", b"a", b"\x80")  # fmt: skip
    for _ in range(20_000):
        text = b"".join(chance.choices(edges, k=chance.randrange(5)))[: chance.randrange(1, 12)]
        try:
            text.decode()
        except UnicodeDecodeError:
            assert not utf8(text), text
        else:
            assert utf8(text), text
