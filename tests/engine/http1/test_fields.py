"""Names and values of fields, byte by byte: they are looked at eight bytes at a time, and no place may hide one."""

from __future__ import annotations

import pytest

from headgate_drivers.events import RequestHead
from headgate_drivers.http1 import SERVER, PythonCodec
from headgate_engine.errors import RemoteProtocolError

TOKEN = frozenset(b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
VALUE = frozenset({9, *range(32, 127), *range(128, 256)})
# Fields that do not go on: what is taken for one of them is not among the fields of the request.
HOP_BY_HOP = (b"te", b"trailer", b"upgrade", b"connection", b"keep-alive", b"proxy-connection")


def fields(line: bytes) -> dict[bytes, bytes] | None:
    """The fields of a request with this line, None if it is refused."""
    codec = PythonCodec(SERVER)
    codec.receive(b"GET / HTTP/1.1\r\nHost: a.test\r\n" + line + b"\r\n\r\n")
    try:
        event = codec.next_event()
    except RemoteProtocolError:
        return None
    assert isinstance(event, RequestHead)
    return {name.encode("utf-8", "surrogateescape"): value.encode("utf-8", "surrogateescape") for name, value in event.headers}


@pytest.mark.parametrize("size", [*range(1, 19), 31, 32, 33])
def test_no_place_in_a_value_hides_a_byte(size: int) -> None:
    for odd in range(256):
        for place in range(size) if odd not in (10, 13) else ():
            value = b"v" * place + bytes([odd]) + b"v" * (size - place - 1)
            assert fields(b"x-a: " + value) == ({b"x-a": value.strip(b" \t")} if odd in VALUE else None), (odd, place)


@pytest.mark.parametrize("known", HOP_BY_HOP)
def test_no_place_in_a_name_makes_it_another_one(known: bytes) -> None:
    for odd in range(256):
        for place in range(len(known)):
            name = known[:place] + bytes([odd]) + known[place + 1 :]
            if odd in (10, 58):
                continue
            wanted = None if odd not in TOKEN else {} if name.lower() == known else {name: b"v"}
            assert fields(name + b": v") == wanted, name


@pytest.mark.parametrize("odd", [0, 13, 27, 127])
def test_a_control_character_in_a_known_name_is_no_hyphen(odd: int) -> None:
    assert fields(b"content" + bytes([odd]) + b"length: 5") is None
    assert fields(b"transfer" + bytes([odd]) + b"encoding: chunked") is None
