"""Requests in progress at a server that sends all responses on one stream, matched by id.

The ids of requests are replaced by numbers of the gateway, and restored in responses: clients may use equal ids.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from headgate.backend.mcp.failure import OwnFailure, TargetFailure
from headgate.backend.mcp.targets.inbox import Inbox
from headgate.dialect.mcp.jsonrpc import (
    INTERNAL_ERROR,
    NotAMessage,
    RpcKind,
    RpcMessage,
    error_message,
    notification,
    parse,
    progress_token,
    same_id,
    subscription_id,
)
from headgate.dialect.mcp.methods import CANCELLED, LISTEN, PROGRESS
from headgate.net.tasks import spawn

logger = logging.getLogger("headgate.mcp.targets")

MAX_PENDING = 256
# Time for a server to read a cancellation; then it is dropped.
CANCEL_SECONDS = 5.0
# In the error that a client gets in the place of a response: the server has ended, or the gateway has ended it.
ENDED = "ended before it answered"
STOPPED = "was stopped before it answered"
Write = Callable[[bytes], Awaitable[None]]


class TargetExchange:
    """A request in progress: its messages and finally its response arrive in `inbox`.

    `answered`: the server has responded or has ended. `failed`: the response is an error. `cancelled`: by the client,
    so that there is no response.
    """

    def __init__(self, message: RpcMessage) -> None:
        self.message = message
        self.inbox = Inbox()
        self.token = progress_token(message)
        self.answered = False
        self.failed = False
        self.cancelled = False

    def finish(self, answer: bytes | None, failed: bool) -> None:
        """Deliver the response, if there is one, and end the inbox."""
        self.answered = True
        self.failed = failed
        self.inbox.finish(answer)


class Exchanges:
    """The exchanges of one server, named `target` in logs. `write` sends a message to it and raises TargetFailure."""

    def __init__(self, target: str, write: Write) -> None:
        self._target = target
        self._write = write
        self.pending: dict[int, TargetExchange] = {}
        self._next_id = 0
        self._events = Inbox()
        self._lost = 0
        self._over = False

    # -- to the server -------------------------------------------------------------------------------------------------
    async def send(self, message: RpcMessage, write: Write | None = None) -> TargetExchange | None:
        """Send a message with `write`, if given; return the exchange of a request, None for other messages.

        Raises OwnFailure when too many requests are in progress.
        """
        write = write or self._write
        if message.kind is not RpcKind.REQUEST:
            if message.method == CANCELLED:
                await self._cancel(message, write)
            else:
                await write(message.text)
            return None
        if len(self.pending) >= MAX_PENDING:
            raise OwnFailure("too many requests are in progress")
        self._next_id += 1
        number = self._next_id
        exchange = self.pending[number] = TargetExchange(message)
        try:
            await write(message.with_id(b"%d" % number))
        except asyncio.CancelledError:
            self.give_up(exchange)
            raise
        except BaseException:
            self.pending.pop(number, None)
            raise
        return exchange

    def give_up(self, exchange: TargetExchange) -> None:
        """Cancel a request whose client has disconnected; the notification is sent in the background."""
        number = next((number for number, known in self.pending.items() if known is exchange), None)
        if number is not None:
            del self.pending[number]
            note = notification(CANCELLED, {"requestId": number, "reason": "the client closed its connection"})
            spawn(f"mcp cancel {self._target}", self._tell(note))

    async def _tell(self, note: bytes) -> None:
        with contextlib.suppress(TargetFailure, TimeoutError):
            async with asyncio.timeout(CANCEL_SECONDS):
                await self._write(note)

    async def _cancel(self, message: RpcMessage, write: Write) -> None:
        """Forward a client's cancellation with the gateway's id of the request. Completed requests are ignored."""
        params = message.decoded_params()
        for number, exchange in reversed(self.pending.items()):
            if same_id(exchange.message.raw_id, params.get("requestId")):
                del self.pending[number]
                # The server need not respond any more; a late response is dropped.
                exchange.cancelled = True
                exchange.finish(None, failed=True)
                await write(notification(CANCELLED, {**params, "requestId": number}))
                return

    # -- from the server -----------------------------------------------------------------------------------------------
    def receive(self, text: bytes) -> None:
        """Pass a server's message to its reader; an invalid message is dropped with a warning."""
        try:
            message = parse(text)
        except NotAMessage as error:
            logger.warning("not a message", extra={"target": self._target, "error": str(error)})
            return
        if message.kind is RpcKind.RESPONSE and message.raw_id not in (None, b"null"):
            self._on_response(message)
            return
        exchange = self._owner(message)
        inbox = self._events if exchange is None else exchange.inbox
        if not inbox.put(text):
            self._on_lost(message)

    def _on_response(self, message: RpcMessage) -> None:
        raw_id = message.raw_id or b""
        # Longer numbers cannot be ids of the gateway; int() would be slow for them.
        number = int(raw_id) if raw_id.isdigit() and len(raw_id) <= len(str(self._next_id)) else 0
        exchange = self.pending.pop(number, None)
        if exchange is not None and exchange.message.raw_id is not None:
            exchange.finish(message.with_id(exchange.message.raw_id), message.is_error)

    def _on_lost(self, message: RpcMessage) -> None:
        """Handle a message for which the inbox has no room: its reader is too slow, or there is none."""
        self._lost += 1
        if self._lost == 1:
            logger.warning("messages are dropped, the client does not read", extra={"target": self._target})
        if message.kind is RpcKind.REQUEST:
            # The client will not answer, so the gateway does: the server must not wait.
            answer = error_message(message.raw_id, INTERNAL_ERROR, "the client does not read")
            spawn(f"mcp refuse {self._target}", self._tell(answer))

    def _owner(self, message: RpcMessage) -> TargetExchange | None:
        """Return the exchange of a notification or server request: that of its token, or the only one in progress."""
        listening = subscription_id(message)
        if listening is not None:
            return self.pending.get(listening) if isinstance(listening, int) else None
        token = progress_token(message) if message.method == PROGRESS else None
        if token is not None:
            return next((exchange for exchange in self.pending.values() if exchange.token == token), None)
        # Messages of subscriptions name their subscription.
        waiting = (exchange for exchange in self.pending.values() if exchange.message.method != LISTEN)
        first = next(waiting, None)
        return first if next(waiting, None) is None else None

    def events(self) -> Inbox:
        """Return a new inbox for unsolicited messages, with those not read yet; the previous inbox ends."""
        earlier, self._events = self._events, Inbox()
        self._events.take_over(earlier)
        if self._over:
            self._events.finish()
        return self._events

    def end(self, stopped: bool = False) -> None:
        """Handle the end of the server: requests in progress get an error, and the inbox for events ends. `stopped`: by
        the gateway.
        """
        self._over = True
        for exchange in self.pending.values():
            reason = f"MCP server {self._target} {STOPPED if stopped else ENDED}"
            exchange.finish(error_message(exchange.message.raw_id, INTERNAL_ERROR, reason), failed=True)
        self.pending.clear()
        self._events.finish()
