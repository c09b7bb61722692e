"""Calls with messages in both directions: order, pieces, limits, statuses, backpressure, and their end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
import uvloop
from tests.engine.link.grpc_peer import HEAD, GrpcPeer, framed, peer_and_caller

from headgate_engine.link.grpc_call import GrpcFailure
from headgate_engine.link.grpc_stream import GrpcDuplexCall

PATH = "/test.v1.Echo/Streams"
FINE = [(b"grpc-status", b"0")]


def run(work: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(60):
            await work

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(limited())


class Told:
    """What a call has told. `over`: its end."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.flushes = 0
        self.failure: GrpcFailure | None = None
        self.over = asyncio.Event()
        self.some = asyncio.Event()

    def message(self, data: bytes) -> None:
        self.messages.append(data)
        self.some.set()

    def flushed(self) -> None:
        self.flushes += 1

    def writable(self) -> None:
        pass

    def failed(self, failure: GrpcFailure) -> None:
        self.failure = failure
        self.over.set()

    def ended(self) -> None:
        self.over.set()


async def came(peer_has: Any) -> None:
    while not peer_has():  # noqa: ASYNC110 - the server of the test has no event for it
        await asyncio.sleep(0.001)


def test_messages_both_ways() -> None:
    async def work() -> None:
        async with peer_and_caller() as (server, caller):

            def react(peer: GrpcPeer, event: str, stream: int) -> None:
                if event == "end":
                    peer.peer.respond(stream, HEAD)
                    peer.peer.send(stream, peer.come[stream])
                    peer.peer.end(stream, FINE)

            server.react = react
            told = Told()
            call = GrpcDuplexCall(told)
            sent = [b"", b"a", b"b" * 70_000, b"c"]
            call.send(framed(sent[0]))
            call.open(caller, PATH, [("x-a", "1")])
            for message in sent[1:]:
                call.send(framed(message))
            call.finish()
            call.send(framed(b"too late"))
            await told.over.wait()
            assert told.failure is None
            assert told.messages == sent
            assert told.flushes >= 1
            assert call.answered
            assert not call.congested

    run(work())


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 30, 1000])
def test_messages_in_pieces(size: int) -> None:
    """Whatever the pieces are, the messages are the same."""

    async def work() -> None:
        async with peer_and_caller() as (server, caller):
            messages = [b"", b"abcdef", b"", b"g" * 20, b"h"]
            whole = b"".join(map(framed, messages))

            def react(peer: GrpcPeer, event: str, stream: int) -> None:
                if event == "head":
                    peer.peer.respond(stream, HEAD)
                    for at in range(0, len(whole), size):
                        peer.peer.send(stream, whole[at : at + size])
                    peer.peer.end(stream, FINE)

            server.react = react
            told = Told()
            GrpcDuplexCall(told).open(caller, PATH)
            await told.over.wait()
            assert (told.failure, told.messages) == (None, messages)

    run(work())


LIES = {
    "cut in the prefix": (framed(b"a")[:3], FINE, 13, "the last message is cut short"),
    "cut in the message": (framed(b"abc")[:7], FINE, 13, "the last message is cut short"),
    "too long": (framed(b"a" * 101), FINE, 8, "a message has more than 100 bytes"),
    "says it is too long": (b"\0\xff\xff\xff\xff", FINE, 8, "a message has more than 100 bytes"),
    "compressed": (b"\1\0\0\0\1a", FINE, 13, "a message is compressed"),
    "no status": (b"", None, 2, "the answer has no status"),
    "a status": (b"", [(b"grpc-status", b"7"), (b"grpc-message", b"no %41")], 7, "no A"),
    "a status that is none": (b"", [(b"grpc-status", b"seven")], 2, ""),
}


@pytest.mark.parametrize("lie", LIES)
def test_servers_that_lie(lie: str) -> None:
    async def work() -> None:
        content, trailers, code, text = LIES[lie]
        async with peer_and_caller() as (server, caller):

            def react(peer: GrpcPeer, event: str, stream: int) -> None:
                if event == "head":
                    peer.peer.respond(stream, HEAD)
                    if content:
                        peer.peer.send(stream, content)
                    peer.peer.end(stream, trailers)

            server.react = react
            told = Told()
            call = GrpcDuplexCall(told, 100)
            call.open(caller, PATH)
            await told.over.wait()
            assert told.failure is not None
            assert (told.failure.code, told.failure.unsent) == (code, False)
            assert text in told.failure.text
            assert told.messages == []
            call.send(framed(b"nobody gets this"))
            call.finish()

    run(work())


@pytest.mark.parametrize("how", ["reset", "closed", "goaway"])
def test_a_call_that_breaks_off(how: str) -> None:
    async def work() -> None:
        async with peer_and_caller() as (server, caller):

            def react(peer: GrpcPeer, event: str, stream: int) -> None:
                if event == "head":
                    peer.peer.respond(stream, HEAD)
                    peer.peer.send(stream, framed(b"a"))
                elif event == "data":
                    if how == "reset":
                        peer.peer.reset(stream, 8)
                    elif how == "goaway":
                        peer.peer.goaway(2)
                        peer.push()
                        peer.transport.close()
                    else:
                        peer.transport.abort()

            server.react = react
            told = Told()
            call = GrpcDuplexCall(told)
            call.open(caller, PATH)
            await told.some.wait()
            call.send(framed(b"b"))
            await told.over.wait()
            assert told.failure is not None
            assert (told.failure.code, told.failure.unsent) == (14, False)
            assert told.messages == [b"a"]

    run(work())


def test_one_that_is_closed_is_reset_and_tells_nothing() -> None:
    async def work() -> None:
        async with peer_and_caller() as (server, caller):

            def react(peer: GrpcPeer, event: str, stream: int) -> None:
                if event == "head":
                    peer.peer.respond(stream, HEAD)
                    peer.peer.send(stream, framed(b"a"))

            server.react = react
            told = Told()
            call = GrpcDuplexCall(told)
            call.open(caller, PATH)
            await told.some.wait()
            call.close()
            await came(lambda: server.resets == 1)
            assert not told.over.is_set()
            # Before there is a connection as well.
            early = GrpcDuplexCall(told)
            early.send(framed(b"x"))
            early.open(caller, PATH)
            early.close()
            await came(lambda: all(peer.peer.open_streams == 0 for peer in server.peers))
            assert not told.over.is_set()

    run(work())


def test_one_that_is_not_read() -> None:
    async def work() -> None:
        async with peer_and_caller() as (server, caller):
            streams: list[tuple[GrpcPeer, int]] = []

            def react(peer: GrpcPeer, event: str, stream: int) -> None:
                if event == "head":
                    peer.peer.respond(stream, HEAD)
                    peer.peer.send(stream, framed(b"a"))
                    streams.append((peer, stream))

            server.react = react
            told = Told()
            call = GrpcDuplexCall(told)
            call.open(caller, PATH)
            await told.some.wait()
            call.pause()
            [(peer, stream)] = streams
            peer.peer.send(stream, framed(b"b"))
            peer.peer.ping()
            peer.push()
            peer.peer.end(stream, FINE)
            peer.push()
            await came(lambda: caller.pool is not None and peer.peer.open_streams <= 1)
            assert told.messages == [b"a"]
            call.resume()
            await told.over.wait()
            assert (told.failure, told.messages) == (None, [b"a", b"b"])

    run(work())


def test_what_is_refused() -> None:
    async def work() -> None:
        async with peer_and_caller() as (_, caller):
            with pytest.raises(ValueError, match="negative"):
                GrpcDuplexCall(Told(), -1)
            call = GrpcDuplexCall(Told())
            call.open(caller, PATH)
            with pytest.raises(RuntimeError, match="open"):
                call.open(caller, PATH)
            call.close()

    run(work())
