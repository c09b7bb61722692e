"""What a codec reads, by tables: whole, byte by byte, and cut in two everywhere."""

from __future__ import annotations

import pytest
from hostile_http1 import HOSTILE_REQUESTS, HOSTILE_RESPONSES

from headgate_drivers.events import (
    ConnectionClosed,
    DataEvent,
    EndOfMessage,
    InformationalResponse,
    NeedData,
    Paused,
    RequestHead,
    ResponseHead,
    Upgraded,
)
from headgate_drivers.http1 import CLIENT, SERVER, PythonCodec
from headgate_engine.errors import RemoteProtocolError
from headgate_engine.http1.receiver import ReceiverLimits

HOST = b"Host: a.test\r\n"


def read(codec: PythonCodec, pieces: list[bytes]) -> list[object]:
    """Events of the pieces, bodies joined, without NeedData."""
    found: list[object] = []
    for piece in pieces:
        codec.receive(piece)
        while True:
            event = codec.next_event()
            if isinstance(event, NeedData):
                break
            if isinstance(event, DataEvent) and found and isinstance(found[-1], DataEvent):
                found[-1] = DataEvent(found[-1].data + event.data)
                continue
            found.append(event)
            if isinstance(event, Paused | ConnectionClosed | Upgraded):
                break
        if found and isinstance(found[-1], Paused):
            found.pop()
    return found


def ways(data: bytes) -> list[list[bytes]]:
    halves = [[data[:at], data[at:]] for at in range(1, len(data))]
    return [[data], [data[i : i + 1] for i in range(len(data))], *halves]


REQUESTS = [
    ("get", b"GET /a?b=c HTTP/1.1\r\n" + HOST + b"\r\n", [RequestHead("GET", "/a?b=c", "a.test"), EndOfMessage()]),
    ("blank-line-first", b"\r\nGET / HTTP/1.1\r\n" + HOST + b"\r\n", [RequestHead("GET", "/", "a.test"), EndOfMessage()]),
    (
        "length",
        b"POST / HTTP/1.1\r\n" + HOST + b"content-LENGTH: 5\r\n\r\nhello",
        [RequestHead("POST", "/", "a.test", content_length=5), DataEvent(b"hello"), EndOfMessage()],
    ),
    (
        "chunks-extensions-trailers",
        b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: CHUNKED\r\n\r\n"
        b'5;a="b;c"\r\nhello\r\n01\r\n!\r\n0\r\nX-T: v \r\nContent-Length: 3\r\n\r\n',
        [RequestHead("POST", "/", "a.test", chunked=True), DataEvent(b"hello!"), EndOfMessage((("X-T", "v"),))],
    ),
    (
        "absolute-form-wins-over-host",
        b"GET http://b.test:8080/x?y HTTP/1.1\r\n" + HOST + b"\r\n",
        [RequestHead("GET", "/x?y", "b.test:8080"), EndOfMessage()],
    ),
    (
        "absolute-without-path",
        b"GET http://b.test?q HTTP/1.1\r\n" + HOST + b"\r\n",
        [RequestHead("GET", "/?q", "b.test"), EndOfMessage()],
    ),
    ("asterisk", b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n", [RequestHead("OPTIONS", "*", "a.test"), EndOfMessage()]),
    (
        "connect",
        b"CONNECT b.test:443 HTTP/1.1\r\n" + HOST + b"\r\n",
        [RequestHead("CONNECT", "b.test:443", "b.test:443"), EndOfMessage()],
    ),
    ("ipv6-host", b"GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", [RequestHead("GET", "/", "[::1]:80"), EndOfMessage()]),
    ("old-without-host", b"GET / HTTP/1.0\r\n\r\n", [RequestHead("GET", "/", "", minor_version=0), EndOfMessage()]),
    (
        "hop-by-hop-fields-are-dropped",
        b"GET / HTTP/1.1\r\n" + HOST + b"Connection: X-Private , keep-alive\r\nX-Private: 1\r\nKeep-Alive: 5\r\n"
        b"Proxy-Connection: x\r\nTE: trailers\r\nTrailer: x\r\nUpgrade: h2c\r\nX-Kept:  a b\t\r\n\r\n",
        [RequestHead("GET", "/", "a.test", (("X-Kept", "a b"),)), EndOfMessage()],
    ),
    (
        "connection-cannot-drop-what-the-request-is-for",
        b"GET / HTTP/1.1\r\n" + HOST + b"Connection: authorization, host\r\nAuthorization: x\r\n\r\n",
        [RequestHead("GET", "/", "a.test", (("Authorization", "x"),)), EndOfMessage()],
    ),
]


@pytest.mark.parametrize(("data", "wanted"), [case[1:] for case in REQUESTS], ids=[case[0] for case in REQUESTS])
def test_requests_read_the_same_however_they_are_cut(data: bytes, wanted: list[object]) -> None:
    for pieces in ways(data):
        assert read(PythonCodec(SERVER), pieces) == wanted, pieces


def ask(method: str = "GET") -> PythonCodec:
    codec = PythonCodec(CLIENT)
    codec.send(RequestHead(method, "/", "a.test"))
    codec.send(EndOfMessage())
    return codec


OK = b"HTTP/1.1 200 OK\r\n"
RESPONSES = [
    (
        "length",
        "GET",
        OK + b"Content-Length: 2\r\n\r\nhi",
        [ResponseHead(200, reason="OK", content_length=2), DataEvent(b"hi"), EndOfMessage()],
    ),
    ("no-reason", "GET", b"HTTP/1.1 204\r\n\r\n", [ResponseHead(204), EndOfMessage()]),
    ("head", "HEAD", OK + b"Content-Length: 9\r\n\r\n", [ResponseHead(200, reason="OK", content_length=9), EndOfMessage()]),
    (
        "not-modified",
        "GET",
        b"HTTP/1.1 304 x\r\nContent-Length: 9\r\n\r\n",
        [ResponseHead(304, reason="x", content_length=9), EndOfMessage()],
    ),
    (
        "informational-first",
        "GET",
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK + b"Content-Length: 0\r\n\r\n",
        [InformationalResponse(103, (("Link", "x"),), "Early Hints"), ResponseHead(200, reason="OK", content_length=0), EndOfMessage()],
    ),
    (
        "chunked",
        "GET",
        OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        [ResponseHead(200, reason="OK", chunked=True), DataEvent(b"hi"), EndOfMessage()],
    ),
]


@pytest.mark.parametrize(
    ("method", "data", "wanted"), [case[1:] for case in RESPONSES], ids=[case[0] for case in RESPONSES]
)
def test_responses_read_the_same_however_they_are_cut(method: str, data: bytes, wanted: list[object]) -> None:
    for pieces in ways(data):
        assert read(ask(method), pieces) == wanted, pieces


def test_a_body_without_length_runs_until_the_end_of_the_connection() -> None:
    codec = ask()
    assert read(codec, [OK + b"\r\nab", b"cd", b""]) == [
        ResponseHead(200, reason="OK"),
        DataEvent(b"abcd"),
        EndOfMessage(),
        ConnectionClosed(),
    ]
    assert not codec.can_reuse


@pytest.mark.parametrize(
    ("data", "status"), [case[1:] for case in HOSTILE_REQUESTS], ids=[case[0] for case in HOSTILE_REQUESTS]
)
def test_hostile_requests_are_refused_with_their_status(data: bytes, status: int) -> None:
    step = 997 if len(data) > 2000 else 1
    for pieces in ([data], [data[i : i + step] for i in range(0, len(data), step)]):
        with pytest.raises(RemoteProtocolError) as found:
            read(PythonCodec(SERVER), [*pieces, b""])
        assert found.value.status == status


@pytest.mark.parametrize("data", [case[1] for case in HOSTILE_RESPONSES], ids=[case[0] for case in HOSTILE_RESPONSES])
def test_hostile_responses_are_refused(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        read(ask(), [data, b""])


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HT",
        b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nhel",
        b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhe",
    ],
)
def test_input_that_ends_inside_a_message_is_refused(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        read(PythonCodec(SERVER), [data, b""])


def test_pipelined_requests_wait_for_the_answer() -> None:
    codec = PythonCodec(SERVER)
    one = b"GET /1 HTTP/1.1\r\n" + HOST + b"\r\n"
    assert read(codec, [one + one.replace(b" /1", b" /2")]) == [RequestHead("GET", "/1", "a.test"), EndOfMessage()]
    assert isinstance(codec.next_event(), Paused)
    assert codec.send(ResponseHead(204)).startswith(b"HTTP/1.1 204 No Content\r\n")
    codec.send(EndOfMessage())
    codec.next_cycle()
    assert codec.next_event() == RequestHead("GET", "/2", "a.test")


def test_limits_are_those_given() -> None:
    small = ReceiverLimits(max_head=200, max_headers=3, max_start_line=50)
    for data, status in (
        (b"GET /" + b"a" * 60 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414),
        (b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"y" * 200 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A: 1\r\nB: 2\r\nC: 3\r\n\r\n", 431),
    ):
        with pytest.raises(RemoteProtocolError) as found:
            read(PythonCodec(SERVER, small), [data])
        assert found.value.status == status
