"""Answers as event streams: begun with the first thing there is to say, kept alive in long silences."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Coroutine
from typing import Any, Final

from headgate.backend.contract import Call, Stream
from headgate.backend.mcp.failure import TargetFailure
from headgate.backend.mcp.federation.group import LinkGroup
from headgate.backend.mcp.federation.link import Fields
from headgate.backend.mcp.front import STREAM_HEADERS
from headgate.dialect.mcp.jsonrpc import Message
from headgate.net.tasks import spawn
from headgate_engine.sse.encode import encode_comment, encode_event

KEEPALIVE_SECONDS: Final = 15.0


class Answering:
    """The answer to one request: begun with the first thing there is to say, kept alive in long silences."""

    def __init__(self, call: Call, fields: Fields) -> None:
        self._call = call
        self._fields = fields
        self._stream: Stream | None = None
        self._lock = asyncio.Lock()

    async def emit(self, text: bytes) -> None:
        """Send a message."""
        async with self._lock:
            await self._begin().send(encode_event(text, "message"))

    def _begin(self) -> Stream:
        if self._stream is None:
            self._stream = self._call.stream(200, [*STREAM_HEADERS, *self._fields])
        return self._stream

    @property
    def begun(self) -> bool:
        """Whether the client has the head of the answer."""
        return self._stream is not None

    async def until(self, work: Coroutine[Any, Any, bytes]) -> None:
        """Send what the work gives, and comments while it takes its time."""
        beat = spawn("mcp keepalive", self._beat())
        try:
            await self.emit(await work)
        finally:
            beat.cancel()
        assert self._stream is not None
        with contextlib.suppress(ConnectionResetError):
            await self._stream.end()

    async def _beat(self) -> None:
        with contextlib.suppress(ConnectionResetError):
            while True:
                await asyncio.sleep(KEEPALIVE_SECONDS)
                async with self._lock:
                    await self._begin().send(encode_comment())


async def merged(stream: Stream, group: LinkGroup, streams: dict[str, AsyncIterator[bytes]]) -> None:
    """Send what several streams bring, as it comes; comments in long silences."""
    queue: asyncio.Queue[tuple[str, bytes | None]] = asyncio.Queue(64)

    async def read(target: str, texts: AsyncIterator[bytes]) -> None:
        try:
            with contextlib.suppress(TargetFailure):
                async for text in texts:
                    await queue.put((target, text))
        finally:
            await queue.put((target, None))

    tasks = [spawn(f"mcp events {target}", read(target, texts)) for target, texts in streams.items()]
    left = len(tasks)
    try:
        while left:
            try:
                async with asyncio.timeout(KEEPALIVE_SECONDS):
                    target, text = await queue.get()
            except TimeoutError:
                await stream.send(encode_comment())
                continue
            if text is None:
                left -= 1
            else:
                await stream.send(encode_event(group.outward(target, text), "message"))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    with contextlib.suppress(ConnectionResetError):
        await stream.end()


def response_to(message: Message, result: dict[str, Any]) -> bytes:
    """Return a response with this result."""
    body = json.dumps(result, ensure_ascii=False, separators=(",", ":")).encode()
    return b'{"jsonrpc":"2.0","id":' + (message.raw_id or b"null") + b',"result":' + body + b"}"
