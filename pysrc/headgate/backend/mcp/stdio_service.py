"""StreamableHTTP in front of a stdio server: one process per session."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

from headgate.backend.contract import BackendCall, ResponseStream
from headgate.backend.mcp.event_streams import Note
from headgate.backend.mcp.failure import McpFailure, TargetFailure, session_not_found
from headgate.backend.mcp.federation.answering import Answering
from headgate.backend.mcp.federation.target_answer import is_response
from headgate.backend.mcp.front import STREAM_HEADERS, needs_session
from headgate.backend.mcp.relay import Relay
from headgate.backend.mcp.replay import HEADER as LAST_EVENT_ID
from headgate.backend.mcp.request_telemetry import logged_session_id
from headgate.backend.mcp.session import McpSession, Sessions, owner_of
from headgate.backend.mcp.target_calls import CountedCall
from headgate.backend.mcp.targets.exchanges import TargetExchange
from headgate.backend.mcp.targets.inbox import Inbox
from headgate.backend.mcp.targets.stdio import StdioServer
from headgate.dialect.mcp.jsonrpc import INTERNAL_ERROR, RpcMessage
from headgate.dialect.mcp.versions import SESSION_HEADER
from headgate.ir.mcp import StdioTarget
from headgate_engine.mcp.meter import McpTargetMeter
from headgate_engine.sse.encode import encode_comment, encode_event

# Intermediaries close idle connections; clients ignore comments.
KEEPALIVE_SECONDS = 15.0


class StdioService:
    """The service of one target. `relay` reaches the workers that own other sessions; `key` names the backend there.
    `meter` counts the requests.
    """

    def __init__(
        self, target: StdioTarget, sessions: Sessions, relay: Relay, key: str, meter: McpTargetMeter | None = None
    ) -> None:
        self._target = target
        self._meter = meter
        self.sessions = sessions
        self._relay = relay
        self._key = key

    async def post(self, call: BackendCall, message: RpcMessage, session_id: str | None) -> None:
        """Forward a message; the response to a request is a stream that ends with the JSON-RPC response.

        Raises McpFailure.
        """
        if session_id is None:
            if needs_session(message):
                raise McpFailure(400, "a session id is required; initialize first")
            await self.open(call, message, None)
            return
        session = await self._session(call, session_id)
        if session is None:
            return
        with self.sessions.in_use(session):
            counted = CountedCall(self._meter, message)
            await answer(call, session, await self._send(session, message, counted), [], counted)

    async def _send(self, session: McpSession, message: RpcMessage, counted: CountedCall) -> TargetExchange | None:
        """Forward a message to the process; raises McpFailure."""
        try:
            exchange: TargetExchange | None = await session.server.send(message)
        except TargetFailure as error:
            counted.ended(error)
            raise McpFailure(500, f"failed to send message: {error}", INTERNAL_ERROR) from error
        return exchange

    async def _session(self, call: BackendCall, session_id: str) -> McpSession | None:
        """Return the session; None if another worker has responded."""
        owner = self.sessions.ids.owner(session_id)
        if owner is not None and owner != self._relay.index:
            await self._relay.forward(call, owner, self._key)
            return None
        session = self.sessions.find(session_id, owner_of(call.context))
        if session is None:
            raise session_not_found()
        self.sessions.confirm(session)
        return session

    async def open(self, call: BackendCall, message: RpcMessage, refused: Callable[[int, bytes], bool] | None) -> bool:
        """Start a process with a session, which remains only if the process accepts it.

        Returns False, without responding, if `refused(200, answer)` is True: the server has no sessions.
        Raises McpFailure.
        """
        counted = CountedCall(self._meter, message)
        with self.sessions.room():
            server = StdioServer(self._target, lambda: self.sessions.forget(server))
            try:
                await server.start()
            except TargetFailure as error:
                counted.ended(error)
                raise McpFailure(500, f"failed to start session: {error}", INTERNAL_ERROR) from error
            except BaseException:
                await server.stop()
                raise
            session = self.sessions.add(server, owner_of(call.context))
        exchange: TargetExchange | None = None
        try:
            with self.sessions.in_use(session):
                exchange = await self._send(session, message, counted)
                first = None if refused is None or exchange is None else await soon(exchange.inbox)
                if refused is not None and first is not None and refused(200, first):
                    return False
                call.add_log_field("mcp.session.id", logged_session_id(session.id))
                opened = await answer(call, session, exchange, [(SESSION_HEADER, session.id)], counted, first)
                if self._meter is not None and opened:
                    self._meter.opened(opened, None)
                return True
        finally:
            # The session remains if the client has disconnected: a client with a response may return.
            if exchange is None or not exchange.answered or exchange.failed:
                await self.sessions.remove(session.id)
            else:
                self.sessions.await_client(session)

    async def get(self, call: BackendCall, session_id: str | None) -> None:
        """Stream the server's unsolicited messages, on the newest of the client's streams. Raises McpFailure."""
        if session_id is None:
            raise McpFailure(400, "a session id is required")
        session = await self._session(call, session_id)
        if session is None:
            return
        last_id = call.headers.get(LAST_EVENT_ID)
        with self.sessions.in_use(session):
            stream = call.stream(200, STREAM_HEADERS)
            kept = session.answers.find(last_id)
            if kept is not None and last_id is not None:
                await kept.follow(stream, last_id)
                return
            begun: list[bool] = []

            async def listen(note: Note) -> Coroutine[Any, Any, None]:
                # No await between the two calls: each message must be in exactly one of them.
                inbox, missed = session.server.events(), [] if begun else session.replay.after(last_id)
                begun.append(True)
                return pass_on(missed, inbox, note)

            async def pass_on(missed: list[tuple[str, bytes]], inbox: Inbox, note: Note) -> None:
                for event_id, text in missed:
                    await stream.send(encode_event(text, "message", event_id))
                await pump(stream, inbox, note)

            await session.streams.serve(last_id, listen, stream.send)
            with contextlib.suppress(ConnectionResetError):
                await stream.end()

    async def delete(self, call: BackendCall, session_id: str | None) -> None:
        """End the session; an unknown session counts as ended. Raises McpFailure."""
        if session_id is None:
            raise McpFailure(400, "a session id is required")
        owner = self.sessions.ids.owner(session_id)
        if owner is not None and owner != self._relay.index:
            await self._relay.forward(call, owner, self._key)
            return
        if self.sessions.find(session_id, owner_of(call.context)) is not None:
            await self.sessions.remove(session_id)
        # Official clients treat 202 as a refusal.
        call.reply(200)


async def soon(inbox: Inbox) -> bytes | None:
    """Return the first message, None if it takes longer than KEEPALIVE_SECONDS."""
    try:
        async with asyncio.timeout(KEEPALIVE_SECONDS):
            return await inbox.get()
    except TimeoutError:
        return None


async def answer(
    call: BackendCall,
    session: McpSession,
    exchange: TargetExchange | None,
    headers: list[tuple[str, str]],
    counted: CountedCall,
    first: bytes | None = None,
) -> bytes:
    """Respond to a message that was forwarded: a request gets a stream that ends with its response. `first` is the part
    of the response that was read already. Returns the response, b"" if there was none.
    """
    if exchange is None:
        call.reply(202)
        return b""
    answering = Answering(call, headers, session.answers)
    found = b""

    async def noted() -> bytes:
        nonlocal found
        found = await response(exchange, answering, first)
        if found:
            counted.answered(found)
        else:
            counted.dropped()  # the client has cancelled it
        return found

    try:
        await answering.until(noted())
        return found
    finally:
        if not exchange.answered:
            session.server.give_up(exchange)


async def response(exchange: TargetExchange, answering: Answering, first: bytes | None) -> bytes:
    """Return the response to a request, b"" if there will be none; earlier messages are sent at once."""
    text = first if first is not None else await exchange.inbox.get()
    while text is not None:
        if is_response(text, exchange.message):
            return text
        await answering.emit(text)
        text = await exchange.inbox.get()
    return b""


async def pump(stream: ResponseStream, inbox: Inbox, note: Callable[[bytes], str] | None = None) -> None:
    """Send messages as events until the inbox ends, with ids from `note`, and with comments as keep-alive."""
    while True:
        try:
            async with asyncio.timeout(KEEPALIVE_SECONDS):
                message = await inbox.get()
        except TimeoutError:
            await stream.send(encode_comment())
            continue
        if message is None:
            break
        await stream.send(encode_event(message, "message", None if note is None else note(message)))
    with contextlib.suppress(ConnectionResetError):
        await stream.end()
