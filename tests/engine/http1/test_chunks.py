"""The lines in front of chunks: sizes, extensions, their bounds; wherever the input is cut."""

from __future__ import annotations

import pytest

from headgate_drivers.events import DataEvent, EndOfMessage, NeedData
from headgate_drivers.http1 import SERVER, PythonCodec
from headgate_engine.errors import RemoteProtocolError
from headgate_engine.http1.receiver import ReceiverLimits

HEAD = b"POST / HTTP/1.1\r\nhost: a.test\r\ntransfer-encoding: chunked\r\n\r\n"


def body(data: bytes, cut: int, limits: ReceiverLimits | None = None) -> bytes | None:
    """The body behind HEAD, in two pieces; None when its end has not come."""
    codec = PythonCodec(SERVER, limits)
    found = b""
    codec.receive(HEAD)
    codec.next_event()
    for piece in filter(None, (data[:cut], data[cut:])):
        codec.receive(piece)
        while not isinstance(event := codec.next_event(), NeedData):
            if isinstance(event, EndOfMessage):
                return found
            assert isinstance(event, DataEvent)
            found += event.data
    return None


def test_nothing_has_come_behind_the_head() -> None:
    """The sanitizers see what a search of no bytes is given (`make sanitize`)."""
    codec = PythonCodec(SERVER)
    codec.receive(HEAD)
    codec.next_event()
    assert isinstance(codec.next_event(), NeedData)


@pytest.mark.parametrize(("line", "fine"), [
    (b"5;a", True), (b"5;a=b;c", True), (b'5;a="b;c\\""', True), (b"5; a = b", True), (b"000005", True),
    (b"5 ;a", False), (b"5;", False), (b"5;=b", False), (b'5;a="b', False), (b"5;a=", False), (b"5;a b", False),
    (b"5 ", False), (b" 5", False), (b"0x5", False), (b"+5", False), (b"-5", False), (b"", False), (b"5\r", False),
    (b"0" * 14 + b"5", True), (b"0" * 15 + b"5", False), (b"f" * 16, False), (b"g", False), (b"5;a=\0", False)])
def test_lines(line: bytes, fine: bool) -> None:
    data = line + b"\r\nhello\r\n0\r\n\r\n"
    for cut in range(len(data)):
        if fine:
            assert body(data, cut) == b"hello"
        else:
            with pytest.raises(RemoteProtocolError):
                body(data, cut)


def test_a_size_is_hexadecimal_in_either_case() -> None:
    assert body(b"a\r\n" + b"x" * 10 + b"\r\nB\r\n" + b"y" * 11 + b"\r\n0\r\n\r\n", 0) == b"x" * 10 + b"y" * 11


def test_the_line_ends_in_cr_lf() -> None:
    with pytest.raises(RemoteProtocolError):
        body(b"5\nhello\r\n0\r\n\r\n", 0)


@pytest.mark.parametrize("over", [0, 1])
def test_a_line_has_a_bound_also_before_it_ends(over: int) -> None:
    line = b"5;a=" + b"b" * (60 + over)
    limits = ReceiverLimits(max_chunk_line=64)
    if over:
        with pytest.raises(RemoteProtocolError):
            body(line, 0, limits)
    else:
        assert body(line, 0, limits) is None
