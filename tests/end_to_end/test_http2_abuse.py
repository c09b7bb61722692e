"""What a client of HTTP/2 can do to a gateway: each limit of `frontendPolicies.http` holds, and holds at what is configured."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest
from tests.end_to_end.http2_frames_rig import (
    CALM,
    CANCEL,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GET,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    MAX_CONCURRENT_STREAMS,
    PING,
    POST,
    PRIORITY,
    REFUSED_STREAM,
    RESET,
    SETTINGS,
    WINDOW_UPDATE,
    Client,
    frame,
)  # fmt: skip
from tests.end_to_end.running import PATIENCE

pytestmark = pytest.mark.warm

TEXT = """
gateways: {default: {port: {port}}}
routes:
- {name: made, matches: [{path: {exact: /}}], policies: {directResponse: {status: 200, body: made here}}}
- {name: slow, matches: [{path: {exact: /slow}}], backends: [{host: "127.0.0.1:SLOW"}]}
frontendPolicies: {http: {SETTINGS}}
"""


SLOW = [*GET[:1], (":path", "/slow"), *GET[2:]]


def unanswered(connection: socket.socket) -> None:
    """A backend that reads, and says nothing."""
    while connection.recv(65536):
        pass


def text(settings: str, slow: int = 1) -> str:
    """slow: the port of a backend that does not answer."""
    return TEXT.replace("SETTINGS", settings).replace("SLOW", str(slow))

def resets(client: Client) -> bytes:
    """Of requests whose answer is not there yet."""
    return b"".join(client.head(number, SLOW) + frame(RESET, 0, number, bytes(3) + b"\x08") for number in range(3, 123, 2))


def continuations(client: Client) -> bytes:
    """One request, its head in ten pieces and one."""
    block = client.encoder.encode(GET)
    return frame(HEADERS, END_STREAM, 3, block) + frame(CONTINUATION, 0, 3) * 9 + frame(CONTINUATION, END_HEADERS, 3)


def repeated(one: bytes) -> Callable[[Client], bytes]:
    return lambda _client: one * 60


def empty_data(client: Client) -> bytes:
    return client.head(3, POST, END_HEADERS) + frame(DATA, 0, 3) * 60 + frame(DATA, END_STREAM, 3)


# What a client does, and the limit that it then goes beyond.
FLOODS: dict[str, tuple[str, Callable[[Client], bytes]]] = {
    "rapid reset": ("http2MaxResets: 5", resets),
    "CONTINUATION": ("http2MaxContinuations: 3", continuations),
    "SETTINGS": ("http2MaxControlFrames: 5", repeated(frame(SETTINGS, 0, 0))),
    "PING": ("http2MaxControlFrames: 5", repeated(frame(PING, 0, 0, bytes(8)))),
    "empty DATA": ("http2MaxControlFrames: 5", empty_data),
    "tiny windows": ("http2MaxControlFrames: 5", repeated(frame(WINDOW_UPDATE, 0, 0, bytes(3) + b"\1"))),
    "PRIORITY": ("http2MaxControlFrames: 5", repeated(frame(PRIORITY, 0, 9, bytes(4) + b"\x10"))),
}


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_ends_the_connection_at_what_is_configured(name: str, gateway, upstream) -> None:
    limit, flood = FLOODS[name]
    running = gateway(text(limit, upstream(unanswered)))
    client = Client(running.port)
    client.send(flood(client))
    assert client.error() == CALM
    # Nobody else notices.
    other = Client(running.port)
    other.send(other.head(1, GET))
    assert other.status(1) == "200"


@pytest.mark.parametrize("name", FLOODS)
def test_as_much_is_no_flood_without_it(name: str, gateway, upstream) -> None:
    client = Client(gateway(text("", upstream(unanswered))).port)
    client.send(FLOODS[name][1](client))
    client.send(client.head(1001, GET))
    assert client.status(1001) == "200"


BOMB = [*GET, ("x-bomb", "b" * 1000)]
LISTS: dict[str, tuple[str, list[tuple[str, str]]]] = {
    # A byte for each field of 1,000: it is in the table by then.
    "HPACK bomb": ("http2MaxHeaderSize: 9000", BOMB + BOMB[-1:] * 8),
    "a long value": ("http2MaxHeaderSize: 900", BOMB),
    "many fields": ("http2MaxHeaders: 10", [*GET, *((f"x-{number}", "1") for number in range(20))]),
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_of_fields_are_bounded_by_what_is_configured(name: str, gateway) -> None:
    limit, fields = LISTS[name]
    for settings, status in ((limit, "431"), ("", "200")):
        client = Client(gateway(text(settings)).port)
        client.send(client.head(1, GET) + client.head(3, fields))
        assert client.status(3) == status
        client.send(client.head(5, GET))
        assert client.status(5) == "200", "the connection goes on"


def test_streams_beyond_the_limit_are_refused(gateway, upstream) -> None:
    client = Client(gateway(text("http2MaxConcurrentStreams: 3", upstream(unanswered))).port)
    assert client.settings()[MAX_CONCURRENT_STREAMS] == 3
    client.send(b"".join(client.head(number, SLOW) for number in (1, 3, 5, 7)))
    assert int.from_bytes(client.first(RESET, 7)[3], "big") == REFUSED_STREAM
    # Room for another one: the client sends it again.
    client.send(frame(RESET, 0, 1, bytes(3) + b"\x08") + client.head(9, GET))
    assert client.status(9) == "200"


def test_a_window_that_stays_closed_gives_the_stream_up(gateway) -> None:
    running = gateway(text("stallTimeout: 300ms"))
    client = Client(running.port, {INITIAL_WINDOW_SIZE: 0})
    client.send(client.head(1, GET))
    assert client.status(1) == "200"
    assert int.from_bytes(client.first(RESET, 1)[3], "big") == CANCEL
    # An end of time for one is no end for others.
    client.send(client.head(3, GET) + frame(WINDOW_UPDATE, 0, 3, b"\0\0\1\0"))
    assert client.first(DATA, 3)[3] == b"made here"


def test_a_body_that_does_not_come_is_given_up(gateway, upstream) -> None:
    running = gateway(text("stallTimeout: 300ms", upstream(unanswered)))
    client = Client(running.port)
    client.send(client.head(1, [*POST[:1], (":path", "/slow"), *POST[2:]], END_HEADERS))
    assert client.status(1) == "408"
    # And over HTTP/1.1.
    with socket.create_connection(("127.0.0.1", running.port), timeout=PATIENCE) as plain:
        plain.sendall(b"POST /slow HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nab")
        assert plain.recv(65536).startswith(b"HTTP/1.1 408 ")
