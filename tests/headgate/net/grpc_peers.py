"""A gRPC server in this process, and ways to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc

from headgate.net.grpc import GrpcChannel

SERVICE = "test.v1.Echo"


def dialer(port: int, tls: Any = None) -> Callable[..., Awaitable[None]]:
    async def dial(factory: Callable[[], asyncio.BaseProtocol]) -> None:
        name = "localhost" if tls is not None else None
        await asyncio.get_running_loop().create_connection(factory, "127.0.0.1", port, ssl=tls, server_hostname=name)

    return dial


def channel(port: int, tls: Any = None) -> GrpcChannel:
    return GrpcChannel(f"127.0.0.1:{port}", dialer(port, tls), secure=tls is not None)


class Echo:
    """`Unary` runs `react(message, context)`; `Streams` gives each message back; `Three` and `Sum` stream one way."""

    def __init__(self) -> None:
        self.react: Callable[[bytes, Any], Awaitable[bytes]] = self.same
        self.cancelled = asyncio.Event()
        self.connections: set[str] = set()
        self.metadata: list[dict[str, Any]] = []
        self._changed = asyncio.Condition()

    async def begun(self, count: int) -> None:
        """Wait until so many calls have come."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.metadata) >= count)

    async def same(self, message: bytes, context: Any) -> bytes:
        return message

    async def unary(self, message: bytes, context: Any) -> bytes:
        self.connections.add(context.peer())
        self.metadata.append(dict(context.invocation_metadata()))
        try:
            async with self._changed:
                self._changed.notify_all()
            return await self.react(message, context)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    async def streams(self, messages: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        try:
            async for message in messages:
                if message == b"abort":
                    await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "as asked")
                if message == b"end":
                    return
                yield message
            yield b"that was all"
        except (asyncio.CancelledError, GeneratorExit):
            # The second where the call ends while a message is on its way out.
            self.cancelled.set()
            raise

    async def three(self, message: bytes, context: Any) -> AsyncIterator[bytes]:
        for _ in range(3):
            yield message

    async def total(self, messages: AsyncIterator[bytes], context: Any) -> bytes:
        count = 0
        async for message in messages:
            count += len(message)
        return str(count).encode()


@asynccontextmanager
async def serving(port: int = 0, credentials: Any = None, **options: Any) -> AsyncIterator[tuple[Echo, int, Any]]:
    """The service, its port and its server. `options`: of the server, with `_` for dots."""
    echo = Echo()
    limits = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    server = grpc.aio.server(options=[*limits, *(("grpc." + key, value) for key, value in options.items())], compression=options.get("compression"))
    handlers = {
        "Unary": grpc.unary_unary_rpc_method_handler(echo.unary),
        "Streams": grpc.stream_stream_rpc_method_handler(echo.streams),
        "Three": grpc.unary_stream_rpc_method_handler(echo.three),
        "Sum": grpc.stream_unary_rpc_method_handler(echo.total),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    address = f"127.0.0.1:{port}"
    bound = server.add_insecure_port(address) if credentials is None else server.add_secure_port(address, credentials)
    await server.start()
    try:
        yield echo, bound, server
    finally:
        await server.stop(0)
