"""The links of one session, and how their answers become one."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from headgate.backend.mcp.failure import TargetFailure
from headgate.backend.mcp.federation.link import Link
from headgate.backend.mcp.federation.target_answer import Fields, StreamClosed
from headgate.dialect.mcp import naming
from headgate.dialect.mcp.edit import replaced
from headgate.dialect.mcp.jsonrpc import METHOD_NOT_FOUND, Kind, Message, NotAMessage, parse
from headgate.dialect.mcp.methods import CANCELLED, INITIALIZE
from headgate_engine.peek.items import Item, list_of

logger = logging.getLogger("headgate.mcp")

UPDATED: Final = "notifications/resources/updated"
# How long one target may keep the others waiting where its policies do not say.
TOGETHER_SECONDS: Final = 60.0
GRACE_SECONDS: Final = 0.5
# Pages of one list that are asked for in one request of the client.
MAX_PAGES: Final = 64
Emit = Callable[[bytes], Awaitable[None]]


class List(NamedTuple):
    """Where a list stands: member of the result, and member that names an item. `capability`: of servers that have one;
    `kind`: what rules call an item.
    """

    member: bytes
    key: bytes
    capability: str
    kind: str


class Outcome:
    """How one target ended a request: its response, or why there is none. What a response says is decoded when
    somebody asks.
    """

    __slots__ = ("_response", "failure", "text")

    def __init__(self, response: Message | None = None, failure: TargetFailure | None = None) -> None:
        if response is not None and not (response.has_result_object or response.has_error_object):
            failure = TargetFailure("the answer has neither result nor error")
        self._response = response if failure is None else None
        self.failure = failure
        self.text = b"" if response is None else response.text

    @property
    def response(self) -> Message | None:
        """The target's response."""
        return self._response

    @property
    def good(self) -> bool:
        """Whether there is a result."""
        return self._response is not None and self._response.has_result_object

    @property
    def result(self) -> dict[str, Any] | None:
        """What the response holds as its result."""
        return self._member("result") if self.good else None

    @property
    def error(self) -> dict[str, Any] | None:
        """What the response holds as its error."""
        return None if self._response is None or self.good else self._member("error")

    def _member(self, name: str) -> dict[str, Any] | None:
        try:
            found = json.loads(self.text)[name]
        except (ValueError, RecursionError):
            # An integer of thousands of digits is JSON, and more than int() takes.
            return {}
        return found if isinstance(found, dict) else None

    @property
    def unknown_method(self) -> bool:
        """Whether the target does not know what it was asked."""
        error = self.error
        return error is not None and error.get("code") == METHOD_NOT_FOUND


@dataclass(slots=True)
class Listed:
    """The items of all pages of one target's list, or how the target failed."""

    items: list[Item]
    failed: Outcome | None = None


def outcome_of(text: bytes) -> Outcome:
    """Return the outcome that a response tells."""
    try:
        message = parse(text)
    except NotAMessage:
        return Outcome(failure=TargetFailure("the answer is no message"))
    if message.kind is not Kind.RESPONSE:
        return Outcome(failure=TargetFailure("the answer has neither result nor error"))
    return Outcome(message)


@dataclass(slots=True)
class LinkGroup:
    """`links` by target, in the order of the configuration. `bare`: one target, whose URIs are the client's."""

    links: dict[str, Link]
    bare: bool
    dead: bool = False
    owners: dict[tuple[str, str], str] = field(default_factory=dict)

    # -- messages on their way to the client ---------------------------------------------------------------------------
    def outward(self, target: str, text: bytes) -> bytes | None:
        """Return a message of a target as the client gets it: requests can be answered, URIs lead back. None for what
        is no message, and for a response to something else: the client may have asked that of another target.
        """
        try:
            message = parse(text)
        except NotAMessage as error:
            logger.warning("not a message", extra={"target": target, "error": str(error)})
            return None
        if message.kind is Kind.RESPONSE:
            logger.warning("response to no request", extra={"target": target})
            return None
        if message.kind is Kind.REQUEST and message.raw_id is not None:
            return message.with_id(naming.request_id(target, message.raw_id))
        if message.method == CANCELLED:
            return cancelled(target, message)
        if message.method == UPDATED and message.uri is not None and not self.bare:
            return replaced(text, ("params", "uri"), naming.uri_with_target(target, message.uri))
        return text

    async def ask(
        self,
        target: str,
        message: Message,
        fields: Fields,
        emit: Emit,
        close_stream: Callable[[float], Awaitable[None]] | None = None,
    ) -> Outcome:
        """Have one target answer; what it says on the way is emitted. `close_stream` is called with the seconds after
        which the target wants to be polled.
        """

        async def on_message(text: bytes) -> None:
            if not isinstance(text, StreamClosed):
                shown = self.outward(target, text)
                if shown is not None:
                    await emit(shown)
            elif close_stream is not None:
                await close_stream(text.pause_s)

        try:
            return Outcome(await self.links[target].ask(message, fields, on_message))
        except TargetFailure as error:
            return Outcome(failure=error)

    async def ask_all(
        self, targets: list[str], message: Message, fields: Fields, emit: Emit
    ) -> dict[str, Outcome]:
        """Have several targets answer at once."""
        found = await asyncio.gather(*(self.ask_in_time(target, message, fields, emit) for target in targets))
        return dict(zip(targets, found, strict=True))

    async def ask_in_time(self, target: str, message: Message, fields: Fields, emit: Emit) -> Outcome:
        """Have one of several targets answer, the others wait for it: its whole answer must come in time."""
        timeout_s = self.links[target].timeout_s
        if timeout_s is not None:
            # The link itself has a word for what did not begin in time.
            timeout_s += GRACE_SECONDS
        elif message.method != INITIALIZE:
            # Who begins may have to be installed before.
            timeout_s = TOGETHER_SECONDS
        try:
            async with asyncio.timeout(timeout_s):
                return await self.ask(target, message, fields, emit)
        except TimeoutError:
            return Outcome(failure=TargetFailure("upstream call timeout"))

    async def listed(self, target: str, message: Message, kind: List, fields: Fields, emit: Emit) -> Listed:
        """Have one target list something, page by page."""
        items: list[Item] = []
        cursors: set[str] = set()
        asked = message
        for _ in range(MAX_PAGES):
            outcome = await self.ask_in_time(target, asked, fields, emit)
            if outcome.response is None or not outcome.good:
                return Listed([], outcome)
            items += list_of(outcome.response, kind.member, kind.key)[1]
            cursor = outcome.response.next_cursor
            # Servers also write "" for none; one that leads to itself would lead nowhere else the next time.
            if not cursor or cursor in cursors:
                break
            cursors.add(cursor)
            asked = with_cursor(message, cursor)
        return Listed(items)

    # -- life ----------------------------------------------------------------------------------------------------------
    async def stop(self) -> None:
        """End all links."""
        self.dead = True
        await asyncio.gather(*(link.close() for link in self.links.values()), return_exceptions=True)

    async def release(self) -> None:
        """Let go of what is held here; sessions at servers that have a state of their own stay."""
        self.dead = True
        held = [link for link in self.links.values() if link.state is None]
        await asyncio.gather(*(link.close() for link in held), return_exceptions=True)

    async def streams(self, fields: Fields) -> dict[str, AsyncGenerator[bytes, None]]:
        """Return the event streams of those targets that have one."""
        found = await asyncio.gather(
            *(link.events(fields) for link in self.links.values()), return_exceptions=True
        )
        return {
            target: stream
            for target, stream in zip(self.links, found, strict=True)
            if stream is not None and not isinstance(stream, BaseException)
        }


def cancelled(target: str, message: Message) -> bytes:
    """Return the news that a server takes its request back, under the id that the client knows."""
    try:
        raw_id = json.dumps(message.decoded_params()["requestId"]).encode()
        own = json.loads(naming.request_id(target, raw_id))
    except (KeyError, ValueError):
        return message.text
    return replaced(message.text, ("params", "requestId"), own)


def with_cursor(message: Message, cursor: str) -> Message:
    """Return the request for the page behind a cursor."""
    params = {**message.decoded_params(), "cursor": cursor}
    raw = json.dumps({"jsonrpc": "2.0", "id": 0, "method": message.method, "params": params})
    return parse(parse(raw.encode()).with_id(message.raw_id or b"0"))
