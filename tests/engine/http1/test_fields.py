"""Names and values of fields, byte by byte: they are looked at sixteen bytes at a time, and no place may hide one."""

from __future__ import annotations

import pytest

from headgate_drivers.events import NeedData, RequestHead, ResponseHead
from headgate_drivers.http1 import CLIENT, SERVER, PythonCodec
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


@pytest.mark.parametrize("size", [*range(1, 19), 31, 32, 33])
def test_no_place_in_a_reason_hides_a_byte(size: int) -> None:
    for odd in (0, 8, 9, 31, 32, 65, 126, 127, 128, 255):
        for place in range(size):
            codec = PythonCodec(CLIENT)
            codec.send(RequestHead("GET", "/", "a.test"))
            reason = b"r" * place + bytes([odd]) + b"r" * (size - place - 1)
            codec.receive(b"HTTP/1.1 200 " + reason + b"\r\n\r\n")
            if odd in VALUE:
                assert isinstance(codec.next_event(), ResponseHead)
            else:
                with pytest.raises(RemoteProtocolError, match="reason"):
                    codec.next_event()


@pytest.mark.parametrize("blank", [b"", b"\r", b"\n"])
@pytest.mark.parametrize("start", [1, 2, 3, 16, 19])
def test_no_place_hides_a_line_without_a_cr_or_the_end_of_the_section(start: int, blank: bytes) -> None:
    """However the bytes are cut, and wherever in a block of sixteen the LF lies."""
    for size in range(1, 50):
        head = b"GET / HTTP/1.1\r\nx: " + b"v" * size + blank + b"\n\r\nHost: a.test\r\n\r\n"
        codec = PythonCodec(SERVER)
        codec.receive(head[:start])
        assert isinstance(codec.next_event(), NeedData)
        codec.receive(head[start:])
        if blank == b"\r":        # the section ends here, without a host
            with pytest.raises(RemoteProtocolError, match="host"):
                codec.next_event()
        else:
            with pytest.raises(RemoteProtocolError, match="CR LF"):
                codec.next_event()


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


@pytest.mark.parametrize("size", [*range(1, 19), 31, 32, 33, 47, 48, 49])
def test_the_first_colon_ends_the_name_wherever_it_lies(size: int) -> None:
    for value in (b"", b":", b"v:w", b"v" * 40 + b":"):
        assert fields(b"n" * size + b":" + value) == {b"n" * size: value}
    for line in (b"n" * size, b"n" * size + b"\x01:", b"n" * size + b" :v", b":" + b"v" * size):
        assert fields(line) is None


REFUSED_LINES = {
    b"x: a\nb: c": "line does not end in CR LF",
    b"x: a\rb": "control character in a field value",
    b"x\r: a": "invalid field name",
    b"x\x00: a": "invalid field name",
    b"x: \x7f": "control character in a field value",
    b"nothing": "field without a colon",
    b"nothing\x00": "field without a colon",
    b": v": "invalid field name",
    b"\r": "control character|CR LF|without a colon",
}


@pytest.mark.parametrize("line", REFUSED_LINES)
def test_what_is_wrong_with_a_line_is_told(line: bytes) -> None:
    for before in (b"", b"x-before: " + b"v" * 20 + b"\r\n"):
        codec = PythonCodec(SERVER)
        codec.receive(b"GET / HTTP/1.1\r\nHost: a.test\r\n" + before + line + b"\r\n\r\n")
        with pytest.raises(RemoteProtocolError, match=REFUSED_LINES[line]):
            codec.next_event()


def test_more_fields_than_there_is_room_for_at_first() -> None:
    for count in (22, 23, 24, 25, 26, 48, 49, 200):
        found = fields(b"\r\n".join(b"x-%d: %d" % (number, number) for number in range(count)))
        assert found == {b"x-%d" % number: b"%d" % number for number in range(count)}
