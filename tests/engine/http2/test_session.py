"""What a connection refuses, gives up and bounds, frame by frame."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from headgate_drivers.hpack import encoded
from headgate_drivers.http2 import Http2FrameWriter as Frame
from headgate_drivers.http2 import Http2Peer
from headgate_engine.http2.faults import ConnectionFault
from headgate_engine.http2.frames import PREFACE, Http2FrameReader
from headgate_engine.http2.hpack import HpackEncoder
from headgate_engine.http2.kinds import ERRORS
from headgate_engine.http2.limits import Http2Limits

GET = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"a")]
POST = [(b":method", b"POST"), *GET[1:]]
SETTINGS = Frame.settings(())
Fields = list[tuple[bytes, bytes]]


def raw(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


class Client:
    """Frames of a client, with one encoder, towards a server of ours."""

    def __init__(self, limits: Http2Limits | None = None, extended: bool = False) -> None:
        self.peer = Http2Peer(True, limits, extended)
        self.encoder = HpackEncoder()
        self.reader = Http2FrameReader(max_frame=1 << 20)
        self.peer.receive(PREFACE + SETTINGS + Frame.settings())
        self.got()

    def head(self, number: int, fields: Fields, end: bool = False) -> bytes:
        return Frame.headers(number, encoded(self.encoder, ((*field, False) for field in fields)), end)

    def send(self, data: bytes, later: float = 0.0) -> list[tuple[object, ...]]:
        return self.peer.receive(data, later)

    def got(self) -> list[tuple[int, int, int, bytes, bool]]:
        return self.reader.frames(self.peer.output())

    def resets(self) -> list[tuple[int, str]]:
        return [(frame[2], ERRORS[int.from_bytes(frame[3], "big")]) for frame in self.got() if frame[0] == 3]


def open_streams(client: Client, *numbers: int) -> None:
    for number in numbers:
        client.send(client.head(number, POST))


# What a client sends, and the error that ends its connection.
FAULTS: dict[str, tuple[Callable[[Client], bytes], str]] = {
    "DATA on stream 0": (lambda c: raw(0, 0, 0, b"x"), "PROTOCOL_ERROR"),
    "DATA on an idle stream": (lambda c: Frame.data(1, b"x"), "PROTOCOL_ERROR"),
    "RST_STREAM of an idle stream": (lambda c: Frame.reset(1, 8), "PROTOCOL_ERROR"),
    "WINDOW_UPDATE of an idle stream": (lambda c: Frame.window_update(1, 1), "PROTOCOL_ERROR"),
    "a window that grows by nothing": (lambda c: Frame.window_update(0, 0), "PROTOCOL_ERROR"),
    "a window over the maximum": (lambda c: Frame.window_update(0, 2**31 - 1), "FLOW_CONTROL_ERROR"),
    "a push promise": (lambda c: raw(5, 4, 1, b"\0\0\0\2"), "PROTOCOL_ERROR"),
    "an even stream": (lambda c: c.head(2, GET, True), "PROTOCOL_ERROR"),
    "a stream that was passed over": (lambda c: c.head(5, GET, True) + c.head(3, GET, True), "PROTOCOL_ERROR"),
    "CONTINUATION without HEADERS": (lambda c: raw(9, 4, 1, b""), "PROTOCOL_ERROR"),
    "another frame within a block": (lambda c: raw(1, 0, 1, b"\x82") + Frame.ping(b"12345678"), "PROTOCOL_ERROR"),
    "a block that is no HPACK": (lambda c: raw(1, 5, 1, b"\xff\xff\xff\xff\xff\xff"), "COMPRESSION_ERROR"),
    "a frame over the limit": (lambda c: raw(0, 0, 1, bytes(16385)), "FRAME_SIZE_ERROR"),
    "SETTINGS of 5 bytes": (lambda c: raw(4, 0, 0, bytes(5)), "FRAME_SIZE_ERROR"),
    "an initial window over the maximum": (lambda c: Frame.settings(((4, 2**31),)), "FLOW_CONTROL_ERROR"),
    "an initial window that overflows": (
        lambda c: c.head(1, POST) + Frame.window_update(1, 2**31 - 1 - 65535) + Frame.settings(((4, 65536),)),
        "FLOW_CONTROL_ERROR"),
    "a frame size below the minimum": (lambda c: Frame.settings(((5, 16383),)), "PROTOCOL_ERROR"),
    "PUSH of 2": (lambda c: Frame.settings(((2, 2),)), "PROTOCOL_ERROR"),
    "a short PING": (lambda c: raw(6, 0, 0, bytes(7)), "FRAME_SIZE_ERROR"),
    "GOAWAY on a stream": (lambda c: raw(7, 0, 1, bytes(8)), "PROTOCOL_ERROR"),
    "more padding than frame": (lambda c: c.head(1, POST) + raw(0, 8, 1, b"\x05abc"), "PROTOCOL_ERROR"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_ends_the_connection(name: str) -> None:
    data, code = FAULTS[name]
    client = Client()
    with pytest.raises(ConnectionFault) as caught:
        client.send(data(client))
    assert ERRORS[caught.value.code] == code
    client.peer.fault(caught.value.code, str(caught.value))
    goaway = client.got()[-1]
    assert goaway[0] == 7
    assert ERRORS[int.from_bytes(goaway[3][4:8], "big")] == code


def test_readers_that_take_nothing_bound_the_connection() -> None:
    client = Client(Http2Limits(connection_window=65536))
    open_streams(client, 1, 3)
    for number in (1, 3):
        client.peer.pause(number)
    with pytest.raises(ConnectionFault) as caught:
        client.send(b"".join(Frame.data(number, bytes(10000)) for _ in range(4) for number in (1, 3)))
    assert ERRORS[caught.value.code] == "FLOW_CONTROL_ERROR"


def test_the_first_frame_is_settings_behind_the_preface() -> None:
    for data in (b"GET / HTTP/1.1\r\n\r\n", PREFACE + Frame.ping(b"12345678"), PREFACE + Frame.settings()):
        with pytest.raises(ConnectionFault):
            Http2Peer(True).receive(data)


# What a client does on stream 1 once it is open, and the error that the stream gets.
STREAM_FAULTS: dict[str, tuple[Callable[[Client], bytes], str]] = {
    "a window that grows by nothing": (lambda c: Frame.window_update(1, 0), "PROTOCOL_ERROR"),
    "a window over the maximum": (lambda c: Frame.window_update(1, 2**31 - 1), "FLOW_CONTROL_ERROR"),
    "DATA behind the end": (lambda c: Frame.data(1, b"", True) + Frame.data(1, b"x"), "STREAM_CLOSED"),
    "HEADERS behind the end": (lambda c: Frame.data(1, b"", True) + c.head(1, [(b"a", b"b")], True), "STREAM_CLOSED"),
    "trailers without an end": (lambda c: c.head(1, [(b"a", b"b")]), "PROTOCOL_ERROR"),
    "a pseudo-header field in trailers": (lambda c: c.head(1, [(b":path", b"/")], True), "PROTOCOL_ERROR"),
    "a stream that depends on itself": (lambda c: raw(2, 0, 1, b"\0\0\0\1\x10"), "PROTOCOL_ERROR"),
    "PRIORITY of 4 bytes": (lambda c: raw(2, 0, 1, bytes(4)), "FRAME_SIZE_ERROR"),
    "more DATA than the stream's window": (
        lambda c: b"".join(Frame.data(1, bytes(16384)) for _ in range(5)), "FLOW_CONTROL_ERROR"),
}


@pytest.mark.parametrize("name", STREAM_FAULTS)
def test_what_gives_a_stream_up(name: str) -> None:
    data, code = STREAM_FAULTS[name]
    client = Client()
    open_streams(client, 1)
    client.peer.pause(1)
    client.send(data(client))
    assert (1, code) in client.resets()
    # The connection lives.
    client.send(client.head(3, GET, True))
    assert client.peer.open_streams == 1


@pytest.mark.parametrize(("length", "pieces", "good"), [
    (b"4", [b"ab", b"cd"], True), (b"4", [b"abc"], False), (b"4", [b"abcde"], False), (b"0", [b""], True), (b"0", [b"a"], False)])
def test_content_length_does_not_lie(length: bytes, pieces: list[bytes], good: bool) -> None:
    client = Client()
    client.send(client.head(1, [*POST, (b"content-length", length)]))
    events = client.send(b"".join(Frame.data(1, piece, piece is pieces[-1]) for piece in pieces))
    assert (events[-1][0] == "end") is good
    assert ((1, "PROTOCOL_ERROR") in client.resets()) is not good


# Heads that are no requests, and the status of the answer.
MALFORMED: list[tuple[Fields, int]] = [
    ([*GET, (b"Upper", b"x")], 400), ([*GET, (b"a\r\nb", b"x")], 400), ([*GET, (b"a", b"x\r\ny")], 400),
    ([*GET, (b"a", b"x\0y")], 400), ([*GET, (b"transfer-encoding", b"chunked")], 400), ([*GET, (b"connection", b"close")], 400),
    ([*GET, (b"te", b"gzip")], 400), ([(b"a", b"b"), *GET], 400), ([*GET, (b":path", b"/b")], 400), (GET[:3], 400), (GET[1:], 400),
    ([*GET[:2], (b":path", b"/ x"), GET[3]], 400), ([*GET[:2], (b":path", b""), GET[3]], 400), ([*GET, (b"host", b"b")], 400),
    ([*GET, (b":status", b"200")], 400), ([*GET, (b"content-length", b"5")], 400),
    ([*GET, (b"content-length", b"0"), (b"content-length", b"0")], 400), ([*GET, (b"expect", b"magic")], 417),
    ([*GET, (b"a", bytes(20000).replace(b"\0", b"x"))], 431), ([*GET, *[(b"a%d" % i, b"") for i in range(300)]], 431),
]


@pytest.mark.parametrize(("fields", "status"), MALFORMED, ids=lambda value: str(value)[-60:])
def test_malformed_requests_are_answered_and_given_up(fields: Fields, status: int) -> None:
    client = Client()
    events = client.send(client.head(1, fields, True))
    assert [(event[0], event[2]) for event in events] == [("refused", status)]
    frames = client.got()
    assert [frame[0] for frame in frames[:2]] == [1, 0]
    assert client.peer.open_streams == 0
    assert [frame[0] for frame in frames[2:]] == ([] if status == 431 else [3])
    # The table of the decoder is right for the next one.
    assert client.send(client.head(3, [*GET, (b"a", b"b")], True))[0][0] == "head"


def test_streams_over_the_limit_are_refused_and_may_come_again() -> None:
    client = Client(Http2Limits(max_streams=2))
    open_streams(client, 1, 3, 5)
    assert client.resets() == [(5, "REFUSED_STREAM")]
    # What was on its way for it is passed over.
    assert client.send(Frame.data(5, b"late") + client.head(5, [(b"a", b"b")], True)) == []
    client.send(Frame.reset(1, 8))
    open_streams(client, 7)
    assert client.peer.open_streams == 2


# Floods: limits, what is sent over and over, and how often that is allowed.
FLOODS: dict[str, Callable[[Client, int], bytes]] = {
    "SETTINGS": lambda c, i: SETTINGS,
    "acknowledged SETTINGS": lambda c, i: Frame.settings(),
    "PING": lambda c, i: Frame.ping(b"12345678"),
    "PING answers": lambda c, i: Frame.ping(b"12345678", True),
    "empty DATA": lambda c, i: Frame.data(1, b""),
    "PRIORITY": lambda c, i: raw(2, 0, 9, b"\0\0\0\0\x10"),
    "PRIORITY_UPDATE": lambda c, i: raw(16, 0, 0, b"\0\0\0\1u=1"),
    "unknown frames": lambda c, i: raw(77, 0, 0, b"x"),
    "tiny windows": lambda c, i: Frame.window_update(1, 1),
    "GOAWAY": lambda c, i: Frame.goaway(0, 0),
    "RST_STREAM of a stream that is over": lambda c, i: Frame.reset(3, 8),
}
RESETS: dict[str, Callable[[Client, int], bytes]] = {
    "rapid resets": lambda c, i: c.head(2 * i + 5, GET, True) + Frame.reset(2 * i + 5, 8),
    "resets that we are made to send": lambda c, i: c.head(2 * i + 5, GET, True) + Frame.window_update(2 * i + 5, 0),
    "malformed requests": lambda c, i: c.head(2 * i + 5, GET[1:], True),
    "refused streams": lambda c, i: c.head(2 * i + 5, POST),
}


@pytest.mark.parametrize("name", [*FLOODS, *RESETS])
def test_floods_end_the_connection(name: str) -> None:
    client = Client(Http2Limits(
        oddities=20, oddities_per_second=10, resets=20, resets_per_second=10, max_streams=3 if name == "refused streams" else 200))
    open_streams(client, 1, 3)
    client.send(Frame.reset(3, 8))
    flood = FLOODS.get(name) or RESETS[name]
    sent = 0

    def send(most: int) -> None:
        nonlocal sent
        for _ in range(most):
            client.send(flood(client, sent))
            sent += 1

    send(16)
    # With time comes room.
    client.send(b"", 1.0)
    send(10)
    with pytest.raises(ConnectionFault) as caught:
        send(20)
    assert ERRORS[caught.value.code] == "ENHANCE_YOUR_CALM"
    assert sent < 40


def test_frames_that_carry_something_pay_for_others() -> None:
    client = Client(Http2Limits(oddities=20, oddities_per_second=0))
    open_streams(client, 1)
    client.peer.respond(1, [(b":status", b"200")])
    for _ in range(200):
        client.peer.send(1, b"a piece")
        client.send(Frame.ping(b"12345678"))
    with pytest.raises(ConnectionFault):
        client.send(Frame.ping(b"12345678") * 30)


def test_answers_to_small_messages_are_no_flood() -> None:
    """grpcio sends two WINDOW_UPDATEs and a PING for each message."""
    client = Client(Http2Limits(oddities=20, oddities_per_second=0))
    open_streams(client, 1)
    client.peer.respond(1, [(b":status", b"200")])
    for _ in range(200):
        client.peer.send(1, b"a piece")
        client.send(Frame.window_update(0, 7) + Frame.window_update(1, 7) + Frame.ping(b"12345678"))


def test_continuations_and_blocks_are_bounded() -> None:
    for frames in (raw(1, 0, 1, b"\x82") + raw(9, 0, 1, b"") * 100, raw(1, 0, 1, bytes(16384)) + raw(9, 0, 1, bytes(16384)) * 10):
        client = Client()
        with pytest.raises(ConnectionFault) as caught:
            client.send(frames)
        assert ERRORS[caught.value.code] == "ENHANCE_YOUR_CALM"


def test_a_bomb_of_references_costs_a_byte_each() -> None:
    client = Client()
    bomb = encoded(client.encoder, [(b"x-bomb", b"b" * 3900, False)])
    client.send(Frame.headers(1, encoded(client.encoder, ((*field, False) for field in GET)) + bomb, True))
    again = b"\xbe" * 16000
    events = client.send(Frame.headers(3, encoded(client.encoder, ((*field, False) for field in GET)) + again, True))
    assert [(event[0], event[2]) for event in events] == [("refused", 431)]


# -- flow control -------------------------------------------------------------------------------------------------------
def windows(frames: list[tuple[int, int, int, bytes, bool]]) -> dict[int, int]:
    found: dict[int, int] = {}
    for kind, _, stream, data, _ in frames:
        if kind == 8:
            found[stream] = found.get(stream, 0) + int.from_bytes(data, "big")
    return found


def test_a_reader_that_keeps_up_gets_more_room_up_to_the_limit() -> None:
    client = Client(Http2Limits(window=65536, max_window=262144, connection_window=1 << 20))
    open_streams(client, 1)
    window = told = 65536
    for _ in range(40):
        client.send(Frame.data(1, bytes(16384)))
        told -= 16384
        told += windows(client.got()).get(1, 0)
        window = max(window, told)
        assert told > 0
    assert window == 262144


def test_a_paused_reader_stops_its_stream_alone() -> None:
    client = Client(Http2Limits(window=65536, connection_window=1 << 20))
    open_streams(client, 1, 3)
    client.peer.pause(1)
    for _ in range(3):
        assert client.send(Frame.data(1, bytes(16384))) == []
        assert [event[0] for event in client.send(Frame.data(3, bytes(16384)))] == ["data"]
    assert set(windows(client.got())) == {3}
    client.send(Frame.data(1, b"end", True))
    held, ended = client.peer.resume(1)
    assert (len(held), ended) == (3 * 16384 + 3, True)


def test_padding_is_given_back() -> None:
    client = Client(Http2Limits(window=65536, connection_window=65536))
    open_streams(client, 1)
    sent = 0
    for _ in range(2000):
        client.send(raw(0, 8, 1, b"\xff" + b"x" + bytes(255)))
        sent += 257
    got = windows(client.got())
    assert sent - 65536 < got[1]
    assert sent - 65536 < got[0]


def test_small_windows_of_ours_hold_once_they_are_known() -> None:
    limits = Http2Limits(window=10, connection_window=65536)
    peer = Http2Peer(True, limits)
    encoder = HpackEncoder()

    def head(number: int) -> bytes:
        return Frame.headers(number, encoded(encoder, ((*field, False) for field in POST)))

    # Before the client knows, it sends by the default.
    assert peer.receive(PREFACE + SETTINGS + head(1) + Frame.data(1, bytes(1000)))[-1][0] == "data"
    peer.receive(Frame.settings() + head(3) + Frame.data(3, bytes(10)))
    peer.output()
    peer.pause(3)
    events = peer.receive(Frame.data(3, bytes(11)))
    assert events[-1][0] == "reset"


def test_the_line_is_served_in_turn() -> None:
    client = Client()
    numbers = [1 + 2 * index for index in range(10)]
    client.send(Frame.window_update(0, 1 << 24) + Frame.settings(((4, 1 << 20),)))
    open_streams(client, *numbers)
    client.peer.block(True)
    for number in numbers:
        client.peer.respond(number, [(b":status", b"200")])
        client.peer.send(number, bytes(100_000))
        client.peer.end(number)
    client.got()
    client.peer.block(False)
    order = [frame[2] for _ in range(20) for frame in client.got() if frame[0] == 0]
    # One frame each, round by round, until all have ended together.
    assert order[:40] == numbers * 4
    assert sorted(order[-10:]) == numbers
    assert client.peer.open_streams == 10
    assert client.resets() == []


def test_a_window_of_one_byte_sends_one_byte() -> None:
    client = Client()
    client.send(Frame.settings(((4, 1),)))
    open_streams(client, 1)
    client.peer.respond(1, [(b":status", b"200")])
    client.peer.send(1, b"abc")
    client.peer.end(1, [(b"t", b"1")])
    assert [frame[3] for frame in client.got() if frame[0] == 0] == [b"a"]
    client.send(Frame.settings(((4, 0),)))           # below what is used up
    client.send(Frame.window_update(1, 2))
    assert [frame[3] for frame in client.got() if frame[0] == 0] == [b"b"]
    client.send(Frame.window_update(1, 2))
    assert [(frame[0], frame[1] & 1, frame[3]) for frame in client.got()][:1] == [(0, 0, b"c")]


def test_an_end_is_a_flag_of_the_last_frame() -> None:
    client = Client()
    open_streams(client, 1, 3, 5)
    client.got()
    client.peer.respond(1, [(b":status", b"204")])
    client.peer.end(1)
    client.peer.respond(3, [(b":status", b"200")])
    client.peer.send(3, b"x")
    client.peer.end(3)
    client.peer.respond(5, [(b":status", b"200")])
    client.peer.send(5, b"x")
    first = client.got()
    client.peer.end(5)
    assert [(f[0], f[1] & 1, f[2]) for f in first + client.got()] == [
        (1, 1, 1), (1, 0, 3), (0, 1, 3), (1, 0, 5), (0, 0, 5), (0, 1, 5)]


# -- the end ------------------------------------------------------------------------------------------------------------
def test_leaving_takes_two_steps() -> None:
    client = Client()
    open_streams(client, 1)
    client.peer.notice()
    (goaway, ping) = [frame for frame in client.got() if frame[0] in (6, 7)]
    assert struct.unpack(">II", goaway[3]) == (2**31 - 1, 0)
    assert ping[:2] == (6, 0)
    open_streams(client, 3)                          # was on its way
    assert client.send(Frame.ping(ping[3], True)) == [("pong",)]
    client.peer.goaway(0)
    assert struct.unpack(">II", client.got()[-1][3]) == (3, 0)
    open_streams(client, 5)                          # is not taken any more, and nobody is told again
    assert client.peer.open_streams == 2
    assert client.got() == []
    client.peer.notice()
    assert client.got() == []


def test_a_client_learns_what_was_not_processed() -> None:
    client = Http2Peer(False)
    client.receive(SETTINGS)
    assert [client.request(GET), client.request(GET), client.request(GET)] == [1, 3, 5]
    assert client.receive(Frame.goaway(2**31 - 1, 0)) == [("goaway", 2**31 - 2, 0)]
    assert client.receive(Frame.goaway(3, 11)) == [("goaway", 3, 11)]
    assert client.request(GET) is None


def test_extended_connect_needs_leave() -> None:
    fields = [(b":method", b"CONNECT"), (b":protocol", b"websocket"), *GET[1:]]
    for extended in (False, True):
        client = Client(extended=extended)
        assert client.send(client.head(1, fields))[0][0] == ("head" if extended else "refused")


@pytest.mark.parametrize("settings", [
    {"window": 0}, {"connection_window": 2**31}, {"max_frame": 16383}, {"max_frame": 2**24}, {"max_streams": 0}, {"max_fields": 0},
    {"resets": 0}, {"oddities_per_second": -1}, {"ping_interval": -1.0}, {"ping_timeout": 0.0}])
def test_limits_that_mean_nothing_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        Http2Limits(**settings)  # type: ignore[arg-type]
