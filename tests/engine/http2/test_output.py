"""Whose DATA goes next: streams that have as much to send get as much of the connection, counted in bytes."""

from __future__ import annotations

import random

import pytest

from headgate_drivers.http2 import Http2Peer
from headgate_engine.http2.limits import Http2Limits

GET = [(b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/"), (b":authority", b"a.test")]
STREAMS = 100
MIB = 1 << 20


def shares(sizes: list[int], *, frame: int = 16384, window: int = 65536, rounds: int = 400, chance: random.Random | None = None) -> dict[int, int]:
    """Bytes that each stream got when every one always has the next piece of its size as soon as the one before has left."""
    server = Http2Peer(True)
    client = Http2Peer(False, Http2Limits(window=window, connection_window=MIB, max_frame=frame, max_streams=STREAMS))
    numbers = [client.request(GET) for _ in range(STREAMS)]
    server.receive(client.output())
    client.receive(server.output())
    server.receive(client.output())
    for number in numbers:
        server.respond(number, [(b":status", b"200")])
    got = dict.fromkeys(numbers, 0)
    for _ in range(rounds):
        for at, number in enumerate(numbers):
            if server.waiting(number) == 0:
                server.send(number, bytes(chance.randrange(8192, 65536) if chance else sizes[at % len(sizes)]))
        for event in client.receive(server.output()):
            if event[0] == "data":
                got[event[1]] += len(event[2])
        server.receive(client.output())
    return got


@pytest.mark.parametrize("sizes", [[65536], [16384], [17000], [17000, 65536], [24576, 40000, 65536], [65536] * 99 + [17000]], ids=str)
@pytest.mark.parametrize("frame", [16384, MIB])
def test_streams_share_a_connection_evenly(sizes: list[int], frame: int) -> None:
    got = shares(sizes, frame=frame, rounds=1200)
    assert min(got.values()) > 6 * 65536
    assert max(got.values()) / min(got.values()) <= 1.5


def test_small_windows_do_not_matter() -> None:
    got = shares([65536], window=20_000)
    assert max(got.values()) / min(got.values()) <= 1.5


def test_pieces_of_any_size() -> None:
    got = shares([], rounds=1200, chance=random.Random(9113))
    assert max(got.values()) / min(got.values()) <= 1.5


def test_a_stream_that_begins_late_waits_for_one_round_only() -> None:
    server, client = Http2Peer(True), Http2Peer(False)
    numbers = [client.request(GET) for _ in range(STREAMS)]
    server.receive(client.output())
    client.receive(server.output())
    server.receive(client.output())
    for number in numbers:
        server.respond(number, [(b":status", b"200")])
    server.block(True)
    for number in numbers[:-1]:
        server.send(number, bytes(60_000))
    server.send(numbers[-1], b"small")
    server.block(False)
    before = 0
    while True:
        events = client.receive(server.output())
        server.receive(client.output())
        data = [(number, len(piece)) for name, number, piece in (event for event in events if event[0] == "data")]
        mine = [at for at, (number, _) in enumerate(data) if number == numbers[-1]]
        before += sum(size for _, size in data[: mine[0] if mine else None])
        if mine:
            break
    assert before == (STREAMS - 1) * 16384
