"""headgate_engine.http1.codec against h11."""

from __future__ import annotations

from collections.abc import Iterator

import h11

from bench.micro.timing import Row, compare, same, show
from headgate_drivers import events
from headgate_drivers.http1 import CLIENT, SERVER, PythonCodec, bench_parse

FIELDS = b"".join(b"X-Header-%d: value number %d\r\n" % (number, number) for number in range(6))
REQUEST = b"GET /some/path?x=1 HTTP/1.1\r\nHost: a.test\r\nUser-Agent: bench/1\r\nAccept: */*\r\n" + FIELDS + b"\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1024\r\n" + FIELDS + b"\r\n" + b"x" * 1024
CHUNKS = b"".join(b"100\r\n" + b"y" * 256 + b"\r\n" for _ in range(50)) + b"0\r\n\r\n"
CHUNKED = b"POST /in HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS
PARSES = 1000


def ours(role: int, data: bytes) -> int:
    """Bytes of body in one message."""
    codec = PythonCodec(role)
    if role == CLIENT:
        codec.send(events.RequestHead("GET", "/", "a.test"))
        codec.send(events.EndOfMessage())
    codec.receive(data)
    total = 0
    while not isinstance(event := codec.next_event(), events.EndOfMessage):
        if isinstance(event, events.DataEvent):
            total += len(event.data)
    return total


def theirs(role: int, data: bytes) -> int:
    """The same by h11."""
    connection = h11.Connection(h11.SERVER if role == SERVER else h11.CLIENT)
    if role == CLIENT:
        connection.send(h11.Request(method="GET", target="/", headers=[("host", "a.test")]))
        connection.send(h11.EndOfMessage())
    connection.receive_data(data)
    total = 0
    while not isinstance(event := connection.next_event(), h11.EndOfMessage):
        if isinstance(event, h11.Data):
            total += len(event.data)
    return total


def rows() -> Iterator[Row]:
    yield compare(
        "http1: request head of 9 fields, parser in C", lambda: bench_parse(REQUEST, PARSES), operations=PARSES
    )
    for name, role, data in (
        ("http1: request without a body", SERVER, REQUEST),
        ("http1: response with 1 KiB", CLIENT, ANSWER),
        ("http1: request with 50 chunks", SERVER, CHUNKED),
    ):
        same(ours(role, data), theirs(role, data))
        yield compare(name, lambda r=role, d=data: ours(r, d), lambda r=role, d=data: theirs(r, d), against="h11")  # type: ignore[misc]


if __name__ == "__main__":
    show(rows())
