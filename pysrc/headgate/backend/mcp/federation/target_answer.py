"""Responses of targets, independent of their transport."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Protocol

from headgate.backend.mcp.failure import NoAnswer
from headgate.dialect.mcp.jsonrpc import NotAMessage, RpcKind, RpcMessage, agree, parse
from headgate_engine.mcp.meter import McpTargetMeter
from headgate_engine.mcp.sessions import TargetSession

Fields = list[tuple[str, str]]
OnMessage = Callable[[bytes], Awaitable[None]]
NO_ANSWER = "there was no answer"
CANCELLED_CALL = "the request was cancelled"


class StreamClosed(bytes):
    """Not a message: the target has ended its stream before the response, and is polled again in `pause_s` seconds."""

    pause_s: float

    def __new__(cls, pause_s: float) -> StreamClosed:
        """Make one."""
        made = super().__new__(cls)
        made.pause_s = pause_s
        return made


class RequestTarget(Protocol):
    """Accepts requests: `request` yields the messages that belong to a request, the response last. `direct`: the
    session at the target if the engine can make calls by itself. `meter` counts the requests, if there is one.
    """

    direct: TargetSession | None = None
    meter: McpTargetMeter | None = None

    @property
    def timeout_s(self) -> float | None:
        """The time in seconds that the target may take to begin its response, None without a limit."""
        return None

    def reaches(self, method: str | None) -> bool:
        """Tell whether requests with this method go to the target; the gateway answers others by itself."""
        del method
        return True

    def refuses(self, code: object) -> bool:
        """Tell whether an error with this code comes from the gateway, which has not asked the target."""
        del code
        return False

    def request(self, message: RpcMessage, fields: Fields) -> AsyncGenerator[bytes, None]: ...

    async def ask(self, message: RpcMessage, fields: Fields, on_message: OnMessage) -> RpcMessage:
        """Return the response to a request. `on_message` gets the messages before it. Raises TargetFailure without a
        response.
        """
        return await gathered(self.request(message, fields), message, on_message)


async def gathered(texts: AsyncGenerator[bytes, None], message: RpcMessage, on_message: OnMessage) -> RpcMessage:
    """Return the response among the messages that belong to a request; `on_message` gets the others.

    Raises TargetFailure, NoAnswer if the messages end without a response.
    """
    answer: RpcMessage | None = None
    async with contextlib.aclosing(texts):
        async for text in texts:
            found = response_to(text, message)
            if found is None:
                # It must not wait: the target may be waiting for the client's answer to it.
                await on_message(text)
            else:
                answer = found
    if answer is None:
        raise NoAnswer(NO_ANSWER)
    return answer


def response_to(text: bytes, message: RpcMessage) -> RpcMessage | None:
    """Return a text as the response to a request, None if it is no response to it."""
    if isinstance(text, StreamClosed):
        return None
    try:
        found = parse(text)
    except NotAMessage:
        return None
    return found if found.kind is RpcKind.RESPONSE and agree(found.raw_id, message.raw_id) else None


def nameless(text: bytes, message: RpcMessage) -> bytes:
    """Return the response of a target over HTTP. An error without an id concerns the request that it answers."""
    if b'"error"' not in text:
        return text
    try:
        found = parse(text)
    except NotAMessage:
        return text
    if not found.is_error or found.raw_id not in (None, b"null"):
        return text
    own = message.raw_id or b"null"
    return found.with_id(own) if found.raw_id is not None else b'{"id":%b,%b' % (own, text.lstrip()[1:])


def is_response(text: bytes, message: RpcMessage) -> bool:
    """Tell whether a text is the response to a request."""
    return response_to(text, message) is not None
