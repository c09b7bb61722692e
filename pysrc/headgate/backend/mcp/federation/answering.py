"""Responses as event streams, which begin with the first message and send comments during long pauses."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, Final

from headgate.backend.contract import BackendCall, ResponseStream
from headgate.backend.mcp.failure import McpFailure, PassedRefusal, TargetFailure, TargetRefusal, error_of
from headgate.backend.mcp.federation.group import LinkGroup, Outcome
from headgate.backend.mcp.federation.target_answer import Fields
from headgate.backend.mcp.front import STREAM_HEADERS
from headgate.backend.mcp.request_telemetry import addressed
from headgate.backend.mcp.resuming import KeptAnswer, KeptAnswers
from headgate.dialect.mcp.jsonrpc import INTERNAL_ERROR, RpcMessage
from headgate.dialect.mcp.versions import HEADER
from headgate.net.tasks import spawn
from headgate_engine.sse.encode import encode_comment, encode_event

KEEPALIVE_SECONDS: Final = 15.0
# The revision whose clients take an event without data, which only tells where to go on.
PRIMED: Final = "2025-11-25"
RETRY_MS: Final = 1000


class Answering:
    """The response to one request. It begins with the first message, and sends comments during long pauses.

    With `answers`, events have ids, and a client whose connection breaks can resume the response.
    """

    def __init__(self, call: BackendCall, fields: Fields, answers: KeptAnswers | None = None) -> None:
        self._call = call
        self._fields = fields
        self._answers = answers
        self._kept: KeptAnswer | None = None
        self._task: asyncio.Task[Any] | None = None
        self._stream: ResponseStream | None = None
        self._lock = asyncio.Lock()
        self._beating: asyncio.Task[None] | None = None
        self._primed = self._stream_closed = False

    async def emit(self, text: bytes) -> None:
        """Send a message."""
        async with self._lock:
            stream = await self._begin()
            event_id = None if self._kept is None else self._kept.add(text)
            await self._send(stream, encode_event(text, "message", event_id))

    async def _begin(self) -> ResponseStream:
        if self._stream is None:
            self._stream = self._call.stream(200, [*STREAM_HEADERS, *self._fields])
            if self._answers is not None and self._task is not None:
                self._kept = self._answers.open(self._task.cancel)
                # The client's leaving no longer ends the work: it has an id to come back with.
                self._call.task = self._kept
                self._primed = (self._call.headers.get(HEADER) or "") >= PRIMED
                if self._primed:
                    first = encode_event(b"", None, self._kept.replay.last_id, RETRY_MS)
                    await self._send(self._stream, first)
        return self._stream

    async def _send(self, stream: ResponseStream, data: bytes) -> None:
        if self._stream_closed:
            return
        try:
            await stream.send(data)
        except ConnectionResetError:
            if self._kept is None:
                raise

    async def close_stream(self, retry_s: float) -> None:
        """Let the client reconnect later, as the target demands (SEP-1699). One that cannot resume keeps waiting."""
        async with self._lock:
            stream = await self._begin()
            if self._kept is None or self._stream_closed or not self._primed:
                return
            last = encode_event(b"", None, self._kept.replay.last_id, int(retry_s * 1000))
            await self._send(stream, last)
            self._stream_closed = True
            with contextlib.suppress(ConnectionResetError):
                await stream.end()
            if not self._call.gone:
                self._kept.cancel()

    @property
    def begun(self) -> bool:
        """Whether the head of the response was sent."""
        return self._stream is not None

    async def until(self, work: Coroutine[Any, Any, bytes]) -> None:
        """Send the result of the work, if any, and comments while it runs."""
        # The engine may have waited before.
        waited_s = 0.0 if self._call.begun is None else self._call.begun.waited_s
        timer = asyncio.get_running_loop().call_later(max(0.0, KEEPALIVE_SECONDS - waited_s), self._start_beating)
        if self._answers is not None:
            self._task = asyncio.current_task()
        try:
            text = await work
        finally:
            timer.cancel()
            if self._beating is not None:
                self._beating.cancel()
        if self._stream is None and text:
            # Nothing has been said yet: the whole answer leaves in one piece.
            self._call.reply(200, [*STREAM_HEADERS, *self._fields], encode_event(text, "message"))
            return
        if text:
            await self.emit(text)
        if self._kept is not None and self._answers is not None:
            self._kept.finish()
            self._answers.forget_later(self._kept)
        if not self._stream_closed:
            with contextlib.suppress(ConnectionResetError):
                await (await self._begin()).end()

    def _start_beating(self) -> None:
        self._beating = spawn("mcp keepalive", self._beat())

    async def _beat(self) -> None:
        with contextlib.suppress(ConnectionResetError):
            while True:
                async with self._lock:
                    await self._send(await self._begin(), encode_comment())
                await asyncio.sleep(KEEPALIVE_SECONDS)


async def answered(
    call: BackendCall, answering: Answering, message: RpcMessage, work: Coroutine[Any, Any, bytes]
) -> None:
    """Send the result of the work. A failure is an HTTP status before the response begins, and a JSON-RPC error
    afterwards."""

    async def guarded() -> bytes:
        try:
            return await work
        except McpFailure as failure:
            if not answering.begun:
                raise
            call.add_log_field("mcp.error.message", failure.message)
            return failure.identified(call.context).in_stream(message.raw_id)

    await answering.until(guarded())


def refuse(call: BackendCall, message: RpcMessage, target: str, outcome: Outcome) -> None:
    """Respond to an `initialize` that a target refuses, with the error of the target if it sent one.

    Raises McpFailure or PassedRefusal.
    """
    addressed(call, target, None, "")
    failure = outcome.failure
    if isinstance(failure, TargetRefusal):
        raise PassedRefusal(failure.status, failure.fields, failure.body)
    if outcome.error is not None:
        call.reply(*error_of(target, outcome.error).answer(message.raw_id), reason="MCP")
        return
    raise McpFailure(500, f"failed to start session: {target}: {failure}", INTERNAL_ERROR)


async def merged(
    stream: ResponseStream,
    group: LinkGroup,
    streams: dict[str, AsyncGenerator[bytes, None]],
    note: Callable[[bytes], str] | None = None,
) -> None:
    """Send the messages of several streams as they arrive, with ids from `note`, and comments during long pauses.

    Messages that arrive when the client has gone are noted, too: the client asks for them when it resumes the stream.
    """
    queue: asyncio.Queue[tuple[str, bytes | None]] = asyncio.Queue(64)

    async def read(target: str, texts: AsyncGenerator[bytes, None]) -> None:
        try:
            with contextlib.suppress(TargetFailure):
                async with contextlib.aclosing(texts):
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
                outward = group.outward(target, text)
                if outward is None:
                    continue
                await stream.send(encode_event(outward, "message", None if note is None else note(outward)))
    finally:
        for task in tasks:
            task.cancel()
        rest = asyncio.gather(*tasks, return_exceptions=True)
        while note is not None and not queue.empty():
            target, text = queue.get_nowait()
            outward = None if text is None else group.outward(target, text)
            if outward is not None:
                note(outward)
        await rest
    with contextlib.suppress(ConnectionResetError):
        await stream.end()


def response_to(message: RpcMessage, result: dict[str, Any]) -> bytes:
    """Return a response with this result."""
    body = json.dumps(result, ensure_ascii=False, separators=(",", ":")).encode()
    return b'{"jsonrpc":"2.0","id":' + (message.raw_id or b"null") + b',"result":' + body + b"}"
