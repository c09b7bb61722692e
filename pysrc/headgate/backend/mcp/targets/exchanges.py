"""Requests under way with one server whose answers come on one stream, matched by their ids.

Ids of requests are replaced by numbers of our own on the way in and put back on the way out, so that two clients, or
one that repeats itself, cannot meet under one id.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from headgate.backend.mcp.failure import TargetFailure
from headgate.backend.mcp.targets.inbox import Inbox
from headgate.dialect.mcp.jsonrpc import (
    INTERNAL_ERROR,
    Kind,
    Message,
    NotAMessage,
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
# How long a server may leave the news unread that nobody waits for an answer any more.
CANCEL_SECONDS = 5.0
Write = Callable[[bytes], Awaitable[None]]


class Exchange:
    """A request under way: its answer and what belongs to it arrive in `inbox`, then the end.

    `answered`: the server has answered or is gone. `failed`: with an error.
    """

    def __init__(self, message: Message) -> None:
        self.message = message
        self.inbox = Inbox()
        self.token = progress_token(message)
        self.answered = False
        self.failed = False

    def finish(self, answer: bytes | None, failed: bool) -> None:
        """Deliver the answer, if there will be one, and the end."""
        self.answered = True
        self.failed = failed
        self.inbox.finish(answer)


class Exchanges:
    """All of one server, whose name in logs is `target`. `write` passes a message to it; raises TargetFailure."""

    def __init__(self, target: str, write: Write) -> None:
        self._target = target
        self._write = write
        self.pending: dict[int, Exchange] = {}
        self._next_id = 0
        self._events = Inbox()
        self._lost = 0
        self._over = False

    # -- towards the server --------------------------------------------------------------------------------------------
    async def send(self, message: Message, write: Write | None = None) -> Exchange | None:
        """Pass a message on, by `write` when that is given; a request gives the exchange to read its answer from."""
        write = write or self._write
        if message.kind is not Kind.REQUEST:
            if message.method == CANCELLED:
                await self._cancel(message, write)
            else:
                await write(message.text)
            return None
        if len(self.pending) >= MAX_PENDING:
            raise TargetFailure("too many requests are under way")
        self._next_id += 1
        number = self._next_id
        exchange = self.pending[number] = Exchange(message)
        try:
            await write(message.with_id(b"%d" % number))
        except asyncio.CancelledError:
            self.give_up(exchange)
            raise
        except BaseException:
            self.pending.pop(number, None)
            raise
        return exchange

    def give_up(self, exchange: Exchange) -> None:
        """The client no longer waits: tell the server, at its leisure."""
        number = next((number for number, known in self.pending.items() if known is exchange), None)
        if number is not None:
            del self.pending[number]
            note = notification(CANCELLED, {"requestId": number, "reason": "the client closed its connection"})
            spawn(f"mcp cancel {self._target}", self._tell(note))

    async def _tell(self, note: bytes) -> None:
        with contextlib.suppress(TargetFailure, TimeoutError):
            async with asyncio.timeout(CANCEL_SECONDS):
                await self._write(note)

    async def _cancel(self, message: Message, write: Write) -> None:
        """Pass on that a client cancels a request, whose id is another one here. One that is over is over."""
        params = message.decoded_params()
        for number, exchange in reversed(self.pending.items()):
            if same_id(exchange.message.raw_id, params.get("requestId")):
                del self.pending[number]
                # No answer is to be expected now; one that comes nevertheless is dropped.
                exchange.finish(None, failed=True)
                await write(notification(CANCELLED, {**params, "requestId": number}))
                return

    # -- from the server -----------------------------------------------------------------------------------------------
    def receive(self, text: bytes) -> None:
        """Take a message of the server to whom it is for; what is no message is skipped with a warning."""
        try:
            message = parse(text)
        except NotAMessage as error:
            logger.warning("not a message", extra={"target": self._target, "error": str(error)})
            return
        if message.kind is Kind.RESPONSE and message.raw_id not in (None, b"null"):
            self._on_response(message)
            return
        exchange = self._owner(message)
        inbox = self._events if exchange is None else exchange.inbox
        if not inbox.put(text):
            self._on_lost(message)

    def _on_response(self, message: Message) -> None:
        raw_id = message.raw_id or b""
        # Our numbers have at most as many digits as the last one given out.
        number = int(raw_id) if raw_id.isdigit() and len(raw_id) <= len(str(self._next_id)) else 0
        exchange = self.pending.pop(number, None)
        if exchange is not None and exchange.message.raw_id is not None:
            exchange.finish(message.with_id(exchange.message.raw_id), message.is_error)

    def _on_lost(self, message: Message) -> None:
        """A message found no room: the reader is too slow, or there is none."""
        self._lost += 1
        if self._lost == 1:
            logger.warning("messages are lost, the client does not read", extra={"target": self._target})
        if message.kind is Kind.REQUEST:
            # The server must not wait for an answer that nobody will give.
            answer = error_message(message.raw_id, INTERNAL_ERROR, "the client does not read")
            spawn(f"mcp refuse {self._target}", self._tell(answer))

    def _owner(self, message: Message) -> Exchange | None:
        """Return the request a notification or server request belongs to: by its token, or the only one there is."""
        listening = subscription_id(message)
        if listening is not None:
            return self.pending.get(listening) if isinstance(listening, int) else None
        token = progress_token(message) if message.method == PROGRESS else None
        if token is not None:
            return next((exchange for exchange in self.pending.values() if exchange.token == token), None)
        # Subscriptions last; what is for them says so.
        waiting = (exchange for exchange in self.pending.values() if exchange.message.method != LISTEN)
        first = next(waiting, None)
        return first if next(waiting, None) is None else None

    def events(self) -> Inbox:
        """Return where arrives what the server says unasked, with what it said before; an earlier one ends."""
        earlier, self._events = self._events, Inbox()
        self._events.take_over(earlier)
        if self._over:
            self._events.finish()
        return self._events

    def end(self) -> None:
        """The server is gone: whoever waits gets an error, streams end."""
        self._over = True
        for exchange in self.pending.values():
            reason = f"MCP server {self._target} ended before it answered"
            exchange.finish(error_message(exchange.message.raw_id, INTERNAL_ERROR, reason), failed=True)
        self.pending.clear()
        self._events.finish()
