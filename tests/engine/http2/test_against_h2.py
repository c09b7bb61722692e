"""Whole connections against the h2 package, in both roles: what one side sends arrives at the other, however bytes are cut."""

from __future__ import annotations

import random
from typing import Any

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, ResponseReceived, StreamEnded, StreamReset, TrailersReceived
from h2.settings import SettingCodes
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_drivers.http2 import Http2Peer
from headgate_engine.http2.limits import Http2Limits

REQUEST = [(b":method", b"POST"), (b":scheme", b"http"), (b":authority", b"host"), (b":path", b"/a?b")]


class Pair:
    """Our side and theirs, and what each has heard, by stream."""

    def __init__(self, our_server: bool, source: random.Random, limits: Http2Limits | None = None) -> None:
        self.ours = Http2Peer(our_server, limits)
        self.theirs = H2Connection(H2Configuration(client_side=our_server, header_encoding=None))
        self.theirs.initiate_connection()
        self.source = source
        self.we_heard: dict[int, list[Any]] = {}
        self.they_heard: dict[int, list[Any]] = {}
        self.run()

    def run(self) -> None:
        """Carry bytes until both sides are quiet."""
        while True:
            to_us, to_them = self.theirs.data_to_send(), self.ours.output()
            if not to_us and not to_them:
                return
            while to_us:
                cut = self.source.choice((1, 7, 100, 1 << 20))
                for event in self.ours.receive(to_us[:cut]):
                    self._we_hear(event)
                to_us = to_us[cut:]
            for event in self.theirs.receive_data(to_them) if to_them else ():
                self._they_hear(event)

    def _we_hear(self, event: tuple[Any, ...]) -> None:
        if event[0] in ("settings", "pong"):
            return
        heard = self.we_heard.setdefault(event[1], [])
        if event[0] == "data" and heard and heard[-1][0] == "data":
            heard[-1] = ("data", heard[-1][1] + event[2])
        elif event[0] in ("data", "end"):
            heard.append((event[0], event[2]))
        else:
            heard.append((event[0], event[-1]))

    def _they_hear(self, event: Any) -> None:
        heard = self.they_heard.setdefault(getattr(event, "stream_id", 0), [])
        if isinstance(event, (RequestReceived, ResponseReceived)):
            heard.append(("head", event.headers))
        elif isinstance(event, DataReceived):
            self.theirs.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            if heard[-1][0] == "data":
                heard[-1] = ("data", heard[-1][1] + event.data)
            elif event.data:
                heard.append(("data", event.data))
        elif isinstance(event, TrailersReceived):
            heard.append(("trailers", event.headers))
        elif isinstance(event, StreamEnded):
            heard.append(("end", None))
        elif isinstance(event, StreamReset):
            heard.append(("reset", event.error_code))

    def they_send(self, number: int, data: bytes, end: bool) -> None:
        """Send as the windows allow."""
        while data:
            room = min(self.theirs.local_flow_control_window(number), self.theirs.max_outbound_frame_size, len(data))
            if room:
                padding = self.source.choice((None, 0, 5)) if room > 10 else None
                size = room if padding is None else room - 6
                self.theirs.send_data(number, data[:size], pad_length=padding)
                data = data[size:]
            self.run()
        if end:
            self.theirs.end_stream(number)
        self.run()


# Longer than the window of a stream, and together than that of a connection.
BODIES = st.lists(st.integers(0, 100_000), min_size=1, max_size=4)
# Of the smallest window so many are sent: h2 takes long for each.
MOST_WINDOWS = 20


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 1 << 32), BODIES, BODIES, st.booleans(), st.sampled_from([1000, 65536, 300_000]))
def test_requests_of_the_package_reach_us_and_answers_reach_it(
        seed: int, up: list[int], down: list[int], trailers: bool, window: int) -> None:
    source = random.Random(seed)
    pair = Pair(True, source, Http2Limits(window=window, max_window=2 * window, connection_window=max(window, 65536)))
    numbers = [1 + 2 * index for index in range(len(up))]
    bodies = {number: source.randbytes(min(size, MOST_WINDOWS * window)) for number, size in zip(numbers, up, strict=True)}
    for number in numbers:
        pair.theirs.send_headers(number, [*REQUEST, (b"x-stream", b"%d" % number), (b"content-length", b"%d" % len(bodies[number]))])
    pair.run()
    for number in numbers:
        pair.they_send(number, bodies[number], end=not trailers)
        if trailers:
            pair.theirs.send_headers(number, [(b"checksum", b"1")], end_stream=True)
    pair.run()
    for number in numbers:
        heard = pair.we_heard[number]
        assert heard[0][0] == "head"
        assert (b"x-stream", b"%d" % number) in heard[0][1]
        assert b"".join(data for kind, data in heard if kind == "data") == bodies[number]
        assert heard[-1] == ("end", [(b"checksum", b"1")] if trailers else None)
    answers = {number: source.randbytes(source.choice(down)) for number in numbers}
    for number in numbers:
        pair.ours.respond(number, [(b":status", b"200"), (b"server", b"us")])
        pair.ours.send(number, answers[number])
        pair.ours.end(number, [(b"done", b"yes")] if trailers else None)
    pair.run()
    for number in numbers:
        heard = pair.they_heard[number]
        assert dict(heard[0][1])[b":status"] == b"200"
        assert b"".join(data for kind, data in heard if kind == "data") == answers[number]
        assert ("trailers", [(b"done", b"yes")]) in heard or not trailers
        assert heard[-1] == ("end", None)
    assert pair.ours.open_streams == 0
    assert pair.theirs.open_inbound_streams == 0


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 1 << 32), BODIES, st.booleans(), st.sampled_from([0, 1, 65535, 1 << 20]), st.sampled_from([16384, 20000]))
def test_our_requests_reach_the_package_and_its_answers_reach_us(
        seed: int, sizes: list[int], trailers: bool, window: int, frame: int) -> None:
    source = random.Random(seed)
    pair = Pair(False, source)
    pair.theirs.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: window, SettingCodes.MAX_FRAME_SIZE: frame,
                                 SettingCodes.HEADER_TABLE_SIZE: source.choice((0, 100, 4096, 65536))})
    pair.run()
    if window == 1:
        # Each byte takes a frame, and an update of the window by the package.
        sizes = [min(size, 200) for size in sizes]
    bodies: dict[int, bytes] = {}
    for size in sizes:
        number = pair.ours.request(REQUEST)
        assert number is not None
        bodies[number] = source.randbytes(size)
        pair.ours.send(number, bodies[number])
        pair.ours.end(number, [(b"checksum", b"1")] if trailers else None)
    pair.run()
    if window == 0:
        assert {number: pair.ours.waiting(number) for number in bodies} == {n: len(body) for n, body in bodies.items()}
    if window < 65535:
        # What does not fit waits; the windows open, and all of it comes.
        pair.theirs.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 65535})
        pair.run()
    for number, body in bodies.items():
        heard = pair.they_heard[number]
        assert [pair_ for pair_ in heard[0][1] if pair_[0].startswith(b":")] == [
            (b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/a?b"), (b":authority", b"host")]
        assert b"".join(data for kind, data in heard if kind == "data") == body
        assert ("trailers", [(b"checksum", b"1")]) in heard or not trailers
        pair.theirs.send_headers(number, [(b":status", b"103"), (b"link", b"<a>")])
        pair.theirs.send_headers(number, [(b":status", b"200"), (b"content-length", b"%d" % len(body))])
        pair.they_send(number, body, end=True)
        assert [kind for kind, _ in pair.we_heard[number]] == ["head", "head", *["data"] * bool(body), "end"]
        assert b"".join(data for kind, data in pair.we_heard[number] if kind == "data") == body
    assert pair.ours.open_streams == 0


@pytest.mark.parametrize("our_server", [True, False])
def test_resets_go_both_ways_and_late_frames_are_passed_over(our_server: bool) -> None:
    pair = Pair(our_server, random.Random(1))
    if our_server:
        pair.theirs.send_headers(1, REQUEST)
    else:
        assert pair.ours.request(REQUEST) == 1
    pair.run()
    # Ours, while theirs is on its way.
    if our_server:
        pair.theirs.send_data(1, b"late")
    else:
        pair.theirs.send_headers(1, [(b":status", b"200")])
        pair.theirs.send_data(1, b"late")
    pair.ours.reset(1, 8)
    pair.run()
    assert ("reset", 8) in pair.they_heard[1]
    assert ("data", b"late") not in pair.we_heard.get(1, [])
    # Theirs.
    if our_server:
        pair.theirs.send_headers(3, REQUEST)
    else:
        assert pair.ours.request(REQUEST) == 3
    pair.run()
    pair.theirs.reset_stream(3, 5)
    pair.run()
    assert pair.we_heard[3][-1][0] == "reset"
    assert pair.ours.state(3) == "CLOSED"
    assert pair.ours.open_streams == 0
