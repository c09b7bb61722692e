"""The links of one session, and how their answers become one."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from headgate.backend.mcp.failure import TargetFailure
from headgate.backend.mcp.federation.link import Fields, Link, is_response
from headgate.dialect.mcp import naming
from headgate.dialect.mcp.edit import replaced
from headgate.dialect.mcp.jsonrpc import METHOD_NOT_FOUND, Kind, Message, NotAMessage, parse

UPDATED: Final = "notifications/resources/updated"
# Pages of one list that are asked for in one request of the client.
MAX_PAGES: Final = 64
Emit = Callable[[bytes], Awaitable[None]]


@dataclass(slots=True)
class Outcome:
    """How one target ended a request: its response, decoded, or why there is none."""

    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    failure: TargetFailure | None = None
    text: bytes = b""

    @property
    def good(self) -> bool:
        """Whether there is a result."""
        return self.result is not None

    @property
    def unknown_method(self) -> bool:
        """Whether the target does not know what it was asked."""
        return self.error is not None and self.error.get("code") == METHOD_NOT_FOUND


def outcome_of(text: bytes) -> Outcome:
    """Return the outcome that a response tells."""
    try:
        found = json.loads(text)
    except ValueError:
        return Outcome(failure=TargetFailure("the answer is no message"), text=text)
    result, error = found.get("result"), found.get("error")
    if isinstance(error, dict):
        return Outcome(error=error, text=text)
    if isinstance(result, dict):
        return Outcome(result=result, text=text)
    return Outcome(failure=TargetFailure("the answer has neither result nor error"), text=text)


@dataclass(slots=True)
class LinkGroup:
    """`links` by target, in the order of the configuration. `bare`: one target, whose URIs are the client's."""

    links: dict[str, Link]
    bare: bool
    dead: bool = False
    owners: dict[tuple[str, str], str] = field(default_factory=dict)

    # -- messages on their way to the client ---------------------------------------------------------------------------
    def outward(self, target: str, text: bytes) -> bytes:
        """Return a message of a target as the client gets it: requests can be answered, URIs lead back."""
        try:
            message = parse(text)
        except NotAMessage:
            return text
        if message.kind is Kind.REQUEST and message.raw_id is not None:
            return message.with_id(naming.request_id(target, message.raw_id))
        if message.method == UPDATED and message.uri is not None and not self.bare:
            return replaced(text, ("params", "uri"), naming.uri_with_target(target, message.uri))
        return text

    async def ask(self, target: str, message: Message, fields: Fields, emit: Emit) -> Outcome:
        """Have one target answer; what it says on the way is emitted."""
        last = b""
        try:
            async with contextlib.aclosing(self.links[target].request(message, fields)) as texts:
                async for text in texts:
                    # What is no response must not wait: the target may be waiting for the client's answer to it.
                    if is_response(text, message):
                        last = text
                    else:
                        await emit(self.outward(target, text))
        except TargetFailure as error:
            return Outcome(failure=error)
        if not last:
            return Outcome(failure=TargetFailure("there was no answer"))
        return outcome_of(last)

    async def ask_all(
        self, targets: list[str], message: Message, fields: Fields, emit: Emit
    ) -> dict[str, Outcome]:
        """Have several targets answer at once."""
        found = await asyncio.gather(*(self.ask(target, message, fields, emit) for target in targets))
        return dict(zip(targets, found, strict=True))

    async def listed(self, target: str, message: Message, key: str, fields: Fields, emit: Emit) -> Outcome:
        """Have one target list something, page by page; the result holds the items of all of them under `key`."""
        items: list[dict[str, Any]] = []
        asked = message
        for _ in range(MAX_PAGES):
            outcome = await self.ask(target, asked, fields, emit)
            if outcome.result is None:
                return outcome
            page = outcome.result.get(key)
            items += [item for item in page if isinstance(item, dict)] if isinstance(page, list) else []
            cursor = outcome.result.get("nextCursor")
            if not isinstance(cursor, str):
                break
            asked = with_cursor(message, cursor)
        return Outcome(result={key: items})

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


def with_cursor(message: Message, cursor: str) -> Message:
    """Return the request for the page behind a cursor."""
    params = {**message.decoded_params(), "cursor": cursor}
    raw = json.dumps({"jsonrpc": "2.0", "id": 0, "method": message.method, "params": params})
    return parse(parse(raw.encode()).with_id(message.raw_id or b"0"))
