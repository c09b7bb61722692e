"""Calls to a real gRPC server: one message, streams, deadlines, cancellation, lost connections, TLS, limits."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Coroutine
from typing import Any

import grpc
import pytest
import trustme
from tests.headgate.net.grpc_peers import SERVICE, channel, serving

from headgate.net.grpc import GrpcError, Status

UNARY, STREAMS = f"/{SERVICE}/Unary", f"/{SERVICE}/Streams"


def run(work: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(20):
            await work

    asyncio.run(limited())


async def failure(call: Coroutine[Any, Any, Any]) -> GrpcError:
    with pytest.raises(GrpcError) as caught:
        await call
    return caught.value


def test_many_calls_share_a_connection() -> None:
    async def work() -> None:
        async with serving() as (echo, port, _):
            one = channel(port)
            sizes = (0, 1, 70_000, 3_000_000)
            answers = await asyncio.gather(*(one.unary(UNARY, b"x" * size, timeout_s=30) for size in sizes * 10))
            assert [len(answer) for answer in answers] == list(sizes) * 10
            assert len(echo.connections) == 1
            await one.unary(UNARY, b"", timeout_s=30, metadata=[("x-name", "value"), ("x-name2", "ü")])
            assert echo.metadata[-1]["x-name"] == "value"
            one.close()

    run(work())


def test_statuses() -> None:
    async def work() -> None:
        async with serving() as (echo, port, _):
            one = channel(port)

            async def abort(message: bytes, context: Any) -> bytes:
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "100% of\nit ü")
                return b""

            echo.react = abort
            error = await failure(one.unary(UNARY, b"", timeout_s=30))
            assert (error.status, error.message) == (Status.RESOURCE_EXHAUSTED, "100% of it ü")
            assert str(error) == "RESOURCE_EXHAUSTED: 100% of it ü"
            error = await failure(one.unary(f"/{SERVICE}/Nothing", b"", timeout_s=30))
            assert error.status is Status.UNIMPLEMENTED
            echo.react = echo.same
            error = await failure(one.unary(UNARY, b"x" * 101, timeout_s=30, limit=100))
            assert error.status is Status.RESOURCE_EXHAUSTED
            assert await one.unary(UNARY, b"x" * 100, timeout_s=30, limit=100) == b"x" * 100
            one.close()

    run(work())


def test_deadline_and_cancellation_reach_the_server() -> None:
    async def work() -> None:
        async with serving() as (echo, port, _):
            one = channel(port)

            async def wait(message: bytes, context: Any) -> bytes:
                await asyncio.sleep(50)
                return b""

            echo.react = wait
            error = await failure(one.unary(UNARY, b"", timeout_s=0.2))
            assert (error.status, error.message) == (Status.DEADLINE_EXCEEDED, "no answer in 0.2 s")
            await echo.cancelled.wait()
            echo.cancelled.clear()
            task = asyncio.get_running_loop().create_task(one.unary(UNARY, b"", timeout_s=50))
            await echo.begun(2)
            task.cancel()
            await echo.cancelled.wait()
            echo.react = echo.same
            assert await one.unary(UNARY, b"x", timeout_s=30) == b"x"
            assert len(echo.connections) == 1
            one.close()

    run(work())


def test_streams() -> None:
    async def work() -> None:
        async with serving() as (_, port, _server):
            one = channel(port)
            with contextlib.closing(await one.open(STREAMS, timeout_s=30)) as stream:
                for message in (b"", b"a", b"x" * 3_000_000):
                    await stream.send(message)
                    assert await stream.receive() == message
                await stream.finish()
                assert [message async for message in stream] == [b"that was all"]
                assert await stream.receive() is None
            with contextlib.closing(await one.open(f"/{SERVICE}/Three")) as stream:
                await stream.send(b"x" * 2_000_000)
                await stream.finish()
                assert [len(message) async for message in stream] == [2_000_000] * 3
            with contextlib.closing(await one.open(f"/{SERVICE}/Sum")) as stream:
                for _ in range(40):
                    await stream.send(b"x" * 100_000)
                await stream.finish()
                assert [message async for message in stream] == [b"4000000"]
            assert await one.unary(UNARY, b"x", timeout_s=30) == b"x"
            one.close()

    run(work())


def test_how_streams_end() -> None:
    async def work() -> None:
        async with serving() as (echo, port, server):
            one = channel(port)
            with contextlib.closing(await one.open(STREAMS)) as stream:
                await stream.send(b"abort")
                error = await failure(stream.receive())
                assert (error.status, error.message) == (Status.FAILED_PRECONDITION, "as asked")
            with contextlib.closing(await one.open(STREAMS)) as stream:
                await stream.send(b"end")
                assert await stream.receive() is None
                await stream.send(b"nobody hears it")
            with contextlib.closing(await one.open(STREAMS)) as stream:
                await stream.send(b"x")
                assert await stream.receive() == b"x"
            await echo.cancelled.wait()
            with contextlib.closing(await one.open(STREAMS, timeout_s=0.2)) as stream:
                assert (await failure(stream.receive())).status is Status.DEADLINE_EXCEEDED
            with contextlib.closing(await one.open(STREAMS, limit=10)) as stream:
                await stream.send(b"x" * 11)
                assert (await failure(stream.receive())).status is Status.RESOURCE_EXHAUSTED
            with contextlib.closing(await one.open(f"/{SERVICE}/Nothing")) as stream:
                assert (await failure(stream.receive())).status is Status.UNIMPLEMENTED
            stream = await one.open(STREAMS)
            await stream.send(b"x")
            assert await stream.receive() == b"x"
            await server.stop(0)
            assert (await failure(stream.receive())).status in (Status.UNAVAILABLE, Status.CANCELLED)
            stream.close()
            one.close()

    run(work())


def test_unread_messages_hold_the_server_up() -> None:
    """A stream that nobody reads keeps its window shut, and takes nothing from the others once it is closed."""

    async def work() -> None:
        async with serving() as (_, port, _server):
            one = channel(port)
            for _ in range(12):
                stream = await one.open(f"/{SERVICE}/Three", limit=4 << 20)
                await stream.send(b"x" * 1_000_000)
                await stream.finish()
                assert await stream.receive() is not None
                stream.close()
            assert len(await one.unary(UNARY, b"x" * 3_000_000, timeout_s=30)) == 3_000_000
            one.close()

    run(work())


def test_a_server_that_restarts() -> None:
    async def work() -> None:
        async with serving() as (_, port, _server):
            one = channel(port)
            assert await one.unary(UNARY, b"x", timeout_s=30) == b"x"
        error = await failure(one.unary(UNARY, b"x", timeout_s=30))
        assert (error.status, error.unsent) == (Status.UNAVAILABLE, True)
        assert "cannot connect" in error.message
        for _ in range(2):
            async with serving(port) as (_, _port, _server):
                answer = b""
                while not answer:
                    with contextlib.suppress(GrpcError):
                        answer = await one.unary(UNARY, b"y", timeout_s=30)
                    await asyncio.sleep(0.02)
                assert answer == b"y"
        one.close()

    run(work())


def test_a_server_that_drains_and_ages() -> None:
    """GOAWAY: calls under way end well, later ones go to a new connection, and none fails."""

    async def work() -> None:
        async with serving(max_connection_age_ms=300, max_connection_age_grace_ms=20_000) as (echo, port, _):
            one = channel(port)

            async def slowly(message: bytes, context: Any) -> bytes:
                await asyncio.sleep(0.02)
                return message

            echo.react = slowly
            while len(echo.connections) < 3:
                answers = await asyncio.gather(*(one.unary(UNARY, b"%d" % n, timeout_s=30) for n in range(20)))
                assert answers == [b"%d" % n for n in range(20)]
            one.close()

    run(work())


def test_few_streams_at_once() -> None:
    async def work() -> None:
        async with serving(max_concurrent_streams=2) as (echo, port, _):
            one = channel(port)
            assert await one.unary(UNARY, b"", timeout_s=30) == b""
            answers = await asyncio.gather(*(one.unary(UNARY, b"%d" % n, timeout_s=30) for n in range(30)))
            assert answers == [b"%d" % n for n in range(30)]
            assert len(echo.connections) == 1
            one.close()

    run(work())


def test_compressed_answers() -> None:
    async def work() -> None:
        async with serving(compression=grpc.Compression.Gzip) as (_, port, _server):
            one = channel(port)
            assert await one.unary(UNARY, b"x" * 100_000, timeout_s=30) == b"x" * 100_000
            error = await failure(one.unary(UNARY, b"x" * 100_000, timeout_s=30, limit=99_999))
            assert error.status is Status.RESOURCE_EXHAUSTED, "a small answer that unpacks to a large one"
            with contextlib.closing(await one.open(f"/{SERVICE}/Three")) as stream:
                await stream.send(b"x" * 100_000)
                await stream.finish()
                assert [len(message) async for message in stream] == [100_000] * 3
            one.close()

    run(work())


def test_tls() -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    chain = b"".join(blob.bytes() for blob in certificate.cert_chain_pems)
    credentials = grpc.ssl_server_credentials([(certificate.private_key_pem.bytes(), chain)])
    trusting, strict, without = ssl.create_default_context(), ssl.create_default_context(), ssl.create_default_context()
    for context in (trusting, without):
        authority.configure_trust(context)
    for context in (trusting, strict):
        context.set_alpn_protocols(["h2"])
    without.set_alpn_protocols(["http/1.1"])

    async def work() -> None:
        async with serving(credentials=credentials) as (_, port, _server):
            one = channel(port, trusting)
            assert await one.unary(UNARY, b"x", timeout_s=30) == b"x"
            one.close()
            for bad in (strict, without):
                error = await failure(channel(port, bad).unary(UNARY, b"x", timeout_s=30))
                assert (error.status, error.unsent) == (Status.UNAVAILABLE, True), error

    run(work())


def test_a_closed_channel_serves_calls_that_come_late() -> None:
    async def work() -> None:
        async with serving() as (echo, port, _):
            one = channel(port)
            released = asyncio.Event()

            async def wait(message: bytes, context: Any) -> bytes:
                await released.wait()
                return message

            echo.react = wait
            task = asyncio.get_running_loop().create_task(one.unary(UNARY, b"x", timeout_s=30))
            await echo.begun(1)
            one.close()
            released.set()
            assert await task == b"x"
            assert await one.unary(UNARY, b"y", timeout_s=30) == b"y"
            assert len(echo.connections) == 2
            assert one._connection is None, "nothing is kept"

    run(work())
