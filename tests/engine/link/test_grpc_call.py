"""Unary calls to a real gRPC server through a pool: messages, statuses, limits, time-outs, cancellation, lost connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
import uvloop
from tests.engine.link.grpc_peer import HEAD, GrpcPeer, framed, peer_and_caller
from tests.headgate.net.grpc_peers import SERVICE, Echo, serving

from headgate_engine.link.grpc_call import GrpcCaller, GrpcFailure
from headgate_engine.link.http2_upstream import Http2Upstream
from headgate_engine.link.pool import Pool
from headgate_engine.link.worker import Worker

UNARY = f"/{SERVICE}/Unary"


def run(work: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(60):
            await work

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(limited())


def caller_of(port: int, streams: int = 1000) -> GrpcCaller:
    loop = asyncio.get_running_loop()
    worker = Worker(loop, None, 0, -1, lambda name, work: loop.create_task(work))

    async def dial(factory: Callable[[], asyncio.BaseProtocol], *_: object) -> None:
        await loop.create_connection(factory, "127.0.0.1", port)

    pool = Pool(worker, "test", f"127.0.0.1:{port}".encode(), dial, Http2Upstream(worker, streams=streams), idle_timeout=60)
    return GrpcCaller(pool, f"127.0.0.1:{port}")


@asynccontextmanager
async def calling() -> AsyncIterator[tuple[Echo, GrpcCaller]]:
    async with serving() as (echo, port, _):
        caller = caller_of(port)
        yield echo, caller
        caller.pool.close()


async def failure(work: Awaitable[bytes]) -> GrpcFailure:
    with pytest.raises(GrpcFailure) as caught:
        await work
    return caught.value


def test_messages_and_metadata() -> None:
    async def work() -> None:
        async with calling() as (echo, caller):
            sizes = (0, 1, 70_000, 3_000_000)
            calls = (caller.unary(UNARY, b"x" * size) for size in sizes * 5)
            assert [len(found) for found in await asyncio.gather(*calls)] == list(sizes) * 5
            assert len(echo.connections) == 1
            await caller.unary(UNARY, b"", [("x-name", "value")])
            assert echo.metadata[-1]["x-name"] == "value"

    run(work())


def test_statuses() -> None:
    async def work() -> None:
        async with calling() as (echo, caller):

            async def abort(message: bytes, context: Any) -> bytes:
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "100% of\nit ü")
                return b""

            echo.react = abort
            error = await failure(caller.unary(UNARY, b""))
            assert (error.code, error.text, error.unsent) == (8, "100% of it ü", False)
            error = await failure(caller.unary(f"/{SERVICE}/Nothing", b""))
            assert error.code == 12
            echo.react = echo.same
            error = await failure(caller.unary(UNARY, b"x" * 101, limit=100))
            assert (error.code, error.text) == (8, "the message has more than 100 bytes")
            assert await caller.unary(UNARY, b"x" * 100, limit=100) == b"x" * 100

    run(work())


def test_time_outs_and_cancelled_tasks_end_the_call_at_the_server() -> None:
    async def work() -> None:
        async with calling() as (echo, caller):

            async def forever(message: bytes, context: Any) -> bytes:
                await asyncio.Event().wait()
                return b""

            echo.react = forever
            error = await failure(caller.unary(UNARY, b"", timeout_s=0.05))
            # The server was told the same limit: the one whose clock is first says so.
            assert (error.code, error.text) in {(4, "no answer in time"), (4, "Deadline Exceeded")}
            await echo.cancelled.wait()
            echo.cancelled.clear()
            task = asyncio.get_running_loop().create_task(caller.unary(UNARY, b"", timeout_s=50))
            await echo.begun(2)
            task.cancel()
            await echo.cancelled.wait()
            with pytest.raises(asyncio.CancelledError):
                await task

    run(work())


def test_a_server_that_says_nothing() -> None:
    async def work() -> None:
        left = asyncio.Event()

        async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await left.wait()
            writer.close()

        server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
        caller = caller_of(server.sockets[0].getsockname()[1])
        error = await failure(caller.unary(UNARY, b"", timeout_s=0.05))
        assert (error.code, error.text) == (4, "no answer in time")
        caller.pool.close()
        left.set()
        server.close()
        await server.wait_closed()

    run(work())


def test_no_server_and_others() -> None:
    async def work() -> None:
        async def speak_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(speak_http, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        caller = caller_of(port)
        error = await failure(caller.unary(UNARY, b""))
        assert error.code == 14
        server.close()
        await server.wait_closed()
        error = await failure(caller_of(port).unary(UNARY, b""))
        assert (error.code, error.unsent) == (14, True)

    run(work())


def test_wrong_arguments() -> None:
    async def work() -> None:
        caller = caller_of(1)
        for wrong in ((None, b""), ("/a", None), ("/a", "text")):
            with pytest.raises(TypeError):
                await caller.unary(*wrong)  # type: ignore[arg-type]
        for options in ({"timeout_s": -1.0}, {"limit": -1}):
            with pytest.raises(ValueError, match="negative"):
                await caller.unary("/a", b"", **options)
        with pytest.raises(ValueError, match="target"):
            await caller.unary("no slash", b"")

    run(work())


# Connections of HTTP/2 that calls get beside those that have room, and idle ones that are kept.
MOST_SPREAD = 8


def answer(peer: GrpcPeer, event: str, stream: int) -> None:
    if event == "end":
        peer.peer.respond(stream, HEAD)
        peer.peer.send(stream, framed(b"yes"))
        peer.peer.end(stream, [(b"grpc-status", b"0")])


def test_a_server_that_refuses_every_stream_gets_a_few_connections() -> None:
    async def work() -> None:
        async with peer_and_caller() as (server, caller):

            def refuse(peer: GrpcPeer, event: str, stream: int) -> None:
                if event == "head":
                    peer.peer.reset(stream, 7)

            server.react = refuse
            for _ in range(5):
                calls = (failure(caller.unary(UNARY, b"", timeout_s=60)) for _ in range(60))
                assert {(error.code, error.unsent) for error in await asyncio.gather(*calls)} == {(14, True)}
            assert len(server.peers) <= MOST_SPREAD
            server.react = answer
            assert await caller.unary(UNARY, b"") == b"yes"
            assert len(server.peers) <= MOST_SPREAD

    run(work())


def test_few_connections_are_kept_when_many_were_needed() -> None:
    async def work() -> None:
        async with peer_and_caller() as (server, _):
            caller = caller_of(server.port, streams=2)
            waiting: list[tuple[GrpcPeer, int]] = []
            everything, over = asyncio.Event(), asyncio.Event()

            def wait(peer: GrpcPeer, event: str, stream: int) -> None:
                if event == "end":
                    waiting.append((peer, stream))
                    if len(waiting) == 40:
                        everything.set()

            def left() -> None:
                if server.lost == 20 - MOST_SPREAD:
                    over.set()

            server.react, server.left = wait, left
            calls = asyncio.gather(*(caller.unary(UNARY, b"", timeout_s=60) for _ in range(40)))
            await everything.wait()
            assert caller.pool.open == 20
            for peer, stream in waiting:
                answer(peer, "end", stream)
                peer.push()
            assert await calls == [b"yes"] * 40
            assert caller.pool.idle_count == MOST_SPREAD
            await over.wait()
            assert caller.pool.open == MOST_SPREAD
            caller.pool.close()

    run(work())
