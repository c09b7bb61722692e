"""A gRPC call with streams of messages in both directions, which may run at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headgate.net.grpc_wire import (
    PREFIX,
    GrpcError,
    Status,
    check_end,
    check_head,
    encoding_of,
    failure_of,
    framed,
    unpacked,
)
from headgate.net.http2 import Http2Stream
from headgate.net.http2_exchange import Http2Error


class GrpcStream:
    """One call. All methods raise GrpcError, with DEADLINE_EXCEEDED after `when` (seconds of the loop's clock).

    At most one task may read and at most one task may send, but they may be two different tasks. The caller of `open()`
    must call `close()`, which calls `released`.
    """

    def __init__(
        self, stream: Http2Stream, limit: int, when: float | None, released: Callable[[], None]
    ) -> None:
        self._stream = stream
        self._released = released
        self._limit = limit
        self._when = when
        self._pending = bytearray()
        self._ended = self._closed = False

    async def send(self, message: bytes) -> None:
        """Send a message. Waits while the flow-control window of the server is full."""
        await self._write(framed(message), end=False)

    async def finish(self) -> None:
        """Half-close the call: no more messages will be sent."""
        await self._write(b"", end=True)

    async def receive(self) -> bytes | None:
        """Return the next message, or None when the call has ended with OK."""
        try:
            async with asyncio.timeout_at(self._when):
                while not self._ended:
                    message = self._next()
                    if message is not None:
                        return message
                    await self._more()
        except TimeoutError:
            raise GrpcError(Status.DEADLINE_EXCEEDED, "the call takes too long") from None
        except Http2Error as error:
            raise failure_of(error) from error
        return None

    def __aiter__(self) -> GrpcStream:
        return self

    async def __anext__(self) -> bytes:
        message = await self.receive()
        if message is None:
            raise StopAsyncIteration
        return message

    def close(self) -> None:
        """End the call. A running call is cancelled."""
        if not self._closed:
            self._closed = True
            self._stream.close()
            self._released()

    async def _write(self, data: bytes, *, end: bool) -> None:
        try:
            async with asyncio.timeout_at(self._when):
                await self._stream.send(data, end=end)
        except TimeoutError:
            raise GrpcError(Status.DEADLINE_EXCEEDED, "the call takes too long") from None
        except Http2Error as error:
            raise failure_of(error) from error

    async def _more(self) -> None:
        check_head(await self._stream.head())
        data = await self._stream.read()
        if data:
            self._pending += data
            return
        self._ended = True
        check_end(self._stream.answer)
        if self._pending:
            raise GrpcError(Status.INTERNAL, "the last message is cut short")

    def _next(self) -> bytes | None:
        """Return the next complete message from the buffer, or None if there is none yet."""
        pending = self._pending
        if len(pending) < PREFIX:
            return None
        flag, length = pending[0], int.from_bytes(pending[1:PREFIX])
        if length > self._limit:
            raise GrpcError(Status.RESOURCE_EXHAUSTED, f"a message has more than {self._limit} bytes")
        stop = PREFIX + length
        if len(pending) < stop:
            return None
        message = bytes(pending[PREFIX:stop])
        del pending[:stop]
        return unpacked(flag, message, encoding_of(self._stream.answer.headers), self._limit)
