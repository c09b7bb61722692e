"""The links of one session, and the combination of their responses."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import field
from typing import Any, Final, NamedTuple

from headgate.backend.contract import BackendCall
from headgate.backend.mcp.failure import TargetFailure
from headgate.backend.mcp.federation.link import Link
from headgate.backend.mcp.federation.target_answer import Fields, StreamClosed
from headgate.backend.mcp.federation.target_span import begin_span
from headgate.backend.mcp.target_calls import CountedCall
from headgate.backend.mcp.targets.remote import ClientFields
from headgate.dialect.mcp import naming
from headgate.dialect.mcp.edit import replaced
from headgate.dialect.mcp.jsonrpc import METHOD_NOT_FOUND, NotAMessage, RpcKind, RpcMessage, parse
from headgate.dialect.mcp.methods import CANCELLED, DISCOVER, INITIALIZE
from headgate.dialect.mcp.versions import MODERN
from headgate.document.lazy_dataclass import dataclass
from headgate_engine.peek.items import Item, list_of

logger = logging.getLogger("headgate.mcp")

UPDATED: Final = "notifications/resources/updated"
# Time for one of several targets to respond, unless its policies set a time-out.
TOGETHER_SECONDS: Final = 60.0
GRACE_SECONDS: Final = 0.5
# Maximum number of pages that are fetched from a target for one request of the client.
MAX_PAGES: Final = 64
Emit = Callable[[bytes], Awaitable[None]]


class List(NamedTuple):
    """A kind of list: `member` of the result, and member `key` of an item with its name.

    `capability`: the capability of servers that have such a list; `kind`: the name of an item in rules.
    """

    member: bytes
    key: bytes
    capability: str
    kind: str


class Outcome:
    """The outcome of a request to one target: its response or a failure. The response is decoded on first access."""

    __slots__ = ("_response", "failure", "text")

    def __init__(self, response: RpcMessage | None = None, failure: TargetFailure | None = None) -> None:
        if response is not None and not (response.has_result_object or response.has_error_object):
            failure = TargetFailure("the answer has neither result nor error")
        self._response = response if failure is None else None
        self.failure = failure
        self.text = b"" if response is None else response.text

    @property
    def response(self) -> RpcMessage | None:
        """The target's response, None after a failure."""
        return self._response

    @property
    def good(self) -> bool:
        """True if the response has a result."""
        return self._response is not None and self._response.has_result_object

    @property
    def result(self) -> dict[str, Any] | None:
        """Return the result of the response, None without one."""
        return self._member("result") if self.good else None

    @property
    def error(self) -> dict[str, Any] | None:
        """Return the error of the response, None without one."""
        return None if self._response is None or self.good else self._member("error")

    def _member(self, name: str) -> dict[str, Any] | None:
        try:
            found = json.loads(self.text)[name]
        except (ValueError, RecursionError):
            # Python's int() refuses integers with thousands of digits, which JSON permits.
            return {}
        return found if isinstance(found, dict) else None

    @property
    def unknown_method(self) -> bool:
        """True if the target does not know the method."""
        error = self.error
        return error is not None and error.get("code") == METHOD_NOT_FOUND


@dataclass(slots=True)
class Listed:
    """The items on all pages of a target's list, or the outcome that failed."""

    items: list[Item]
    failed: Outcome | None = None


def outcome_of(text: bytes) -> Outcome:
    """Return the outcome in the text of a response."""
    try:
        message = parse(text)
    except NotAMessage:
        return Outcome(failure=TargetFailure("the answer is no message"))
    if message.kind is not RpcKind.RESPONSE:
        return Outcome(failure=TargetFailure("the answer has neither result nor error"))
    return Outcome(message)


@dataclass(slots=True)
class LinkGroup:
    """The links of a session by target, in configured order. `bare`: one target, whose names clients see unchanged."""

    links: dict[str, Link]
    bare: bool
    dead: bool = False
    owners: dict[tuple[str, str], str] = field(default_factory=dict)

    # -- messages to the client ----------------------------------------------------------------------------------------
    def outward(self, target: str, text: bytes) -> bytes | None:
        """Return a target's message for the client: ids of requests and URIs identify the target.

        None for invalid messages and for responses to unknown requests, because their id may be that of a request to
        another target.
        """
        try:
            message = parse(text)
        except NotAMessage as error:
            logger.warning("not a message", extra={"target": target, "error": str(error)})
            return None
        if message.kind is RpcKind.RESPONSE:
            logger.warning("response without a request", extra={"target": target})
            return None
        if message.kind is RpcKind.REQUEST and message.raw_id is not None:
            return message.with_id(naming.request_id(target, message.raw_id))
        if message.method == CANCELLED:
            return cancelled(target, message)
        if message.method == UPDATED and message.uri is not None and not self.bare:
            return replaced(text, ("params", "uri"), naming.uri_with_target(target, message.uri))
        return text

    async def ask(
        self,
        target: str,
        message: RpcMessage,
        fields: Fields,
        emit: Emit,
        close_stream: Callable[[float], Awaitable[None]] | None = None,
    ) -> Outcome:
        """Return the outcome of a request to one target; its other messages go to `emit`.

        `close_stream` is called with the seconds after which the target wants to be polled.
        """

        async def on_message(text: bytes) -> None:
            if not isinstance(text, StreamClosed):
                shown = self.outward(target, text)
                if shown is not None:
                    await emit(shown)
            elif close_stream is not None:
                await close_stream(text.pause_s)

        link = self.links[target]
        counted = counted_at(link, message, fields.call if isinstance(fields, ClientFields) else None)
        span = begin_span(fields)
        try:
            outcome = Outcome(await link.ask(span.carried(message), fields, on_message))
        except TargetFailure as error:
            outcome = Outcome(failure=error)
        except BaseException as error:
            span.end(target, message, str(error) or type(error).__name__)
            raise
        if message.method != DISCOVER or outcome.good:
            # A server of earlier revisions refuses to be discovered, which is no fault of it.
            if outcome.failure is not None:
                counted.ended(outcome.failure)
            elif outcome.error is not None and link.refuses(outcome.error.get("code")):
                counted.dropped()
            else:
                counted.answered(outcome.text)
            if link.meter is not None and message.method == DISCOVER:
                link.meter.opened(outcome.text, MODERN)
        span.end(target, message, None if outcome.failure is None else str(outcome.failure), outcome.text)
        return outcome

    async def ask_all(
        self, targets: list[str], message: RpcMessage, fields: Fields, emit: Emit
    ) -> dict[str, Outcome]:
        """Return the outcomes of a request that is sent to several targets concurrently."""
        found = await asyncio.gather(*(self.ask_in_time(target, message, fields, emit) for target in targets))
        return dict(zip(targets, found, strict=True))

    async def ask_in_time(self, target: str, message: RpcMessage, fields: Fields, emit: Emit) -> Outcome:
        """Return the outcome of a request to one of several targets, with a time-out for the complete response."""
        timeout_s = self.links[target].timeout_s
        if timeout_s is not None:
            # The link has a time-out for the start of the response; its error is more precise, so it goes first.
            timeout_s += GRACE_SECONDS
        elif message.method != INITIALIZE:
            # `initialize` has no default time-out: a server may have to be installed first.
            timeout_s = TOGETHER_SECONDS
        counted = counted_at(self.links[target], message)
        try:
            async with asyncio.timeout(timeout_s):
                return await self.ask(target, message, fields, emit)
        except TimeoutError:
            failure = TargetFailure("upstream call timeout")
            counted.ended(failure)
            return Outcome(failure=failure)

    async def listed(self, target: str, message: RpcMessage, kind: List, fields: Fields, emit: Emit) -> Listed:
        """Return one target's list with all pages."""
        items: list[Item] = []
        cursors: set[str] = set()
        asked = message
        for _ in range(MAX_PAGES):
            outcome = await self.ask_in_time(target, asked, fields, emit)
            if outcome.response is None or not outcome.good:
                return Listed([], outcome)
            items += list_of(outcome.response, kind.member, kind.key)[1]
            cursor = outcome.response.next_cursor
            # An empty cursor also means the end for some servers. A repeated cursor would loop for ever.
            if not cursor or cursor in cursors:
                break
            cursors.add(cursor)
            asked = with_cursor(message, cursor)
        return Listed(items)

    # -- life cycle ----------------------------------------------------------------------------------------------------
    async def stop(self) -> None:
        """Close all links."""
        self.dead = True
        await asyncio.gather(*(link.close() for link in self.links.values()), return_exceptions=True)

    async def release(self) -> None:
        """Close the links whose session lives in this worker; sessions at remote servers continue."""
        self.dead = True
        held = [link for link in self.links.values() if link.state is None]
        await asyncio.gather(*(link.close() for link in held), return_exceptions=True)

    async def streams(self, fields: Fields) -> dict[str, AsyncGenerator[bytes, None]]:
        """Return the event streams of the targets that have one."""
        found = await asyncio.gather(
            *(link.events(fields) for link in self.links.values()), return_exceptions=True
        )
        return {
            target: stream
            for target, stream in zip(self.links, found, strict=True)
            if stream is not None and not isinstance(stream, BaseException)
        }


def counted_at(link: Link, message: RpcMessage, call: BackendCall | None = None) -> CountedCall:
    """Return what the meter of a target gets of a request: nothing of one that the gateway answers by itself."""
    return CountedCall(link.meter if link.reaches(message.method) else None, message, call)


def cancelled(target: str, message: RpcMessage) -> bytes:
    """Return a server's cancellation of its own request, with the id that the client knows."""
    try:
        raw_id = json.dumps(message.decoded_params()["requestId"]).encode()
        own = json.loads(naming.request_id(target, raw_id))
    except (KeyError, ValueError):
        return message.text
    return replaced(message.text, ("params", "requestId"), own)


def with_cursor(message: RpcMessage, cursor: str) -> RpcMessage:
    """Return the list request for the page at a cursor."""
    params = {**message.decoded_params(), "cursor": cursor}
    raw = json.dumps({"jsonrpc": "2.0", "id": 0, "method": message.method, "params": params})
    return parse(parse(raw.encode()).with_id(message.raw_id or b"0"))
